// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "native_raw.h"

#define MAX_ATTRS	4

/* One call of the uverbs ioctl interface. */
struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[MAX_ATTRS];
};

static void call_start(struct call *call, uint16_t object, uint16_t method)
{
	memset(call, 0, sizeof(*call));
	call->hdr.object_id = object;
	call->hdr.method_id = method;
	call->hdr.driver_id = VRNIC_DRIVER_ID;
}

static struct ib_uverbs_attr *call_attr(struct call *call, uint16_t id,
					uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &call->attrs[call->hdr.num_attrs++];

	attr->attr_id = id;
	attr->len = len;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->data = data;
	return attr;
}

static void call_ptr(struct call *call, uint16_t id, const void *p, size_t len)
{
	call_attr(call, id, len, (uintptr_t)p);
}

/* Up to 8 bytes of input travel in the attribute itself. */
static void call_in(struct call *call, uint16_t id, const void *p, size_t len)
{
	uint64_t data = (uintptr_t)p;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, p, len);
	}
	call_attr(call, id, len, data);
}

static int call_run(struct call *call, struct ibv_context *ctx)
{
	call->hdr.length = sizeof(call->hdr) +
			   call->hdr.num_attrs * sizeof(call->attrs[0]);
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, call) ? -errno : 0;
}

int raw_destroy(struct ibv_context *ctx, uint16_t object, uint16_t method,
		uint16_t attr, uint32_t handle)
{
	struct call call;

	call_start(&call, object, method);
	call_attr(&call, attr, 0, handle);
	return call_run(&call, ctx);
}

int raw_dm_query(struct ibv_context *ctx, uint32_t handle, struct vrnic_dm_info *info)
{
	struct call call;

	call_start(&call, UVERBS_OBJECT_DM, VRNIC_METHOD_DM_QUERY);
	call_attr(&call, VRNIC_ATTR_DM_QUERY_HANDLE, 0, handle);
	call_ptr(&call, VRNIC_ATTR_DM_QUERY_RESP, info, sizeof(*info));
	return call_run(&call, ctx);
}

int raw_open_bell(struct ibv_context *ctx)
{
	struct ib_uverbs_attr *fd;
	struct call call;
	int ret;

	call_start(&call, VRNIC_OBJECT_DOORBELL, VRNIC_METHOD_DOORBELL_ALLOC);
	fd = call_attr(&call, VRNIC_ATTR_DOORBELL_ALLOC_FD, 0, 0);
	ret = call_run(&call, ctx);
	return ret ? ret : (int)fd->data_s64;
}

int raw_features(struct ibv_context *ctx, uint32_t *features)
{
	struct ib_uverbs_attr *fd;
	struct call call;
	int ret;

	call_start(&call, VRNIC_OBJECT_DOORBELL, VRNIC_METHOD_DOORBELL_ALLOC);
	fd = call_attr(&call, VRNIC_ATTR_DOORBELL_ALLOC_FD, 0, 0);
	call_ptr(&call, VRNIC_ATTR_DOORBELL_ALLOC_FEATURES, features, sizeof(*features));
	ret = call_run(&call, ctx);
	if (!ret)
		close((int)fd->data_s64);
	return ret;
}

int raw_create_fifo(struct raw_fifo *fifo,
		    const struct vrnic_create_fifo_req *req, uint32_t *handle,
		    struct vrnic_create_fifo_resp *resp)
{
	struct ib_uverbs_attr *out;
	struct call call;
	int ret;

	call_start(&call, VRNIC_OBJECT_FIFO, VRNIC_METHOD_FIFO_CREATE);
	out = call_attr(&call, VRNIC_ATTR_FIFO_CREATE_HANDLE, 0, 0);
	call_attr(&call, VRNIC_ATTR_FIFO_CREATE_PD, 0, fifo->dev.pd->handle);
	call_in(&call, VRNIC_ATTR_FIFO_CREATE_REQ, req, sizeof(*req));
	call_ptr(&call, VRNIC_ATTR_FIFO_CREATE_RESP, resp, sizeof(*resp));
	ret = call_run(&call, fifo->dev.ctx);
	*handle = out->data;
	return ret;
}

static int map_ring(struct raw_fifo *fifo, const struct vrnic_ring_info *info,
		    struct vrnic_ring_hdr **hdr, uint8_t **slots)
{
	void *map = mmap(NULL, info->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 fifo->dev.ctx->cmd_fd, info->offset);

	if (map == MAP_FAILED)
		return -errno;
	*hdr = map;
	*slots = (uint8_t *)map + VRNIC_RING_DATA;
	return 0;
}

int raw_map_rings(struct raw_fifo *fifo, const struct vrnic_create_fifo_resp *resp)
{
	int ret = map_ring(fifo, &resp->inject, &fifo->inject,
			   &fifo->inject_slots);

	if (ret)
		return ret;
	fifo->inject_entries = resp->inject.entries;
	fifo->inject_bytes = resp->inject.bytes;
	ret = map_ring(fifo, &resp->receive, &fifo->receive,
		       &fifo->receive_slots);
	if (ret)
		return ret;
	fifo->receive_entries = resp->receive.entries;
	fifo->receive_bytes = resp->receive.bytes;
	fifo->address = resp->address;
	return 0;
}

int raw_open(struct raw_fifo *fifo, uint32_t inject_slots,
	     uint32_t receive_slots, size_t len)
{
	struct vrnic_create_fifo_req req = {
		.inject_slots = inject_slots,
		.receive_slots = receive_slots,
		.eventfd = -1,
	};
	struct vrnic_create_fifo_resp resp = {};
	int ret;

	memset(fifo, 0, sizeof(*fifo));
	ret = dev_open(&fifo->dev);
	if (ret)
		return ret;
	req.gid_index = fifo->dev.gid_index;
	fifo->bell = raw_open_bell(fifo->dev.ctx);
	if (fifo->bell < 0)
		return fifo->bell;
	ret = raw_create_fifo(fifo, &req, &fifo->handle, &resp);
	if (!ret)
		ret = raw_map_rings(fifo, &resp);
	if (!ret)
		ret = buf_open(&fifo->buf, fifo->dev.pd, len, 0, ACCESS_REMOTE);
	return ret;
}

int raw_close(struct raw_fifo *fifo)
{
	int ret = 0;

	if (!fifo->dev.ctx)
		return 0;
	if (fifo->inject)
		munmap(fifo->inject, fifo->inject_bytes);
	if (fifo->receive)
		munmap(fifo->receive, fifo->receive_bytes);
	if (fifo->address.secret)
		ret = raw_destroy(fifo->dev.ctx, VRNIC_OBJECT_FIFO,
				  VRNIC_METHOD_FIFO_DESTROY,
				  VRNIC_ATTR_FIFO_DESTROY_HANDLE, fifo->handle);
	if (!ret && fifo->buf.map && !buf_guards_intact(&fifo->buf))
		ret = -EFAULT;
	buf_close(&fifo->buf);
	close(fifo->bell);
	dev_close(&fifo->dev);
	memset(fifo, 0, sizeof(*fifo));
	return ret;
}

int raw_endpoint(struct raw_fifo *fifo, const struct vrnic_address *address,
		 uint32_t *endpoint, uint32_t *handle)
{
	struct vrnic_create_endpoint_resp resp = {};
	struct ib_uverbs_attr *out;
	struct call call;
	int ret;

	call_start(&call, VRNIC_OBJECT_ENDPOINT, VRNIC_METHOD_ENDPOINT_CREATE);
	out = call_attr(&call, VRNIC_ATTR_ENDPOINT_CREATE_HANDLE, 0, 0);
	call_attr(&call, VRNIC_ATTR_ENDPOINT_CREATE_FIFO, 0, fifo->handle);
	call_in(&call, VRNIC_ATTR_ENDPOINT_CREATE_ADDRESS, address,
		sizeof(*address));
	call_ptr(&call, VRNIC_ATTR_ENDPOINT_CREATE_RESP, &resp, sizeof(resp));
	ret = call_run(&call, fifo->dev.ctx);
	*handle = out->data;
	*endpoint = resp.endpoint;
	return ret;
}

int raw_endpoint_destroy(struct raw_fifo *fifo, uint32_t handle)
{
	return raw_destroy(fifo->dev.ctx, VRNIC_OBJECT_ENDPOINT,
			   VRNIC_METHOD_ENDPOINT_DESTROY,
			   VRNIC_ATTR_ENDPOINT_DESTROY_HANDLE, handle);
}

/* @group: handle of the group, or NULL */
static int create_counter(struct raw_fifo *fifo, const struct vrnic_create_counter_req *req,
			  const uint32_t *group, struct raw_counter *counter)
{
	struct vrnic_create_counter_resp resp = {};
	struct ib_uverbs_attr *out;
	struct call call;
	int ret;

	memset(counter, 0, sizeof(*counter));
	call_start(&call, VRNIC_OBJECT_COUNTER, VRNIC_METHOD_COUNTER_CREATE);
	out = call_attr(&call, VRNIC_ATTR_COUNTER_CREATE_HANDLE, 0, 0);
	call_in(&call, VRNIC_ATTR_COUNTER_CREATE_REQ, req, sizeof(*req));
	call_ptr(&call, VRNIC_ATTR_COUNTER_CREATE_RESP, &resp, sizeof(resp));
	if (group)
		call_attr(&call, VRNIC_ATTR_COUNTER_CREATE_GROUP, 0, *group);
	ret = call_run(&call, fifo->dev.ctx);
	if (ret)
		return ret;
	counter->handle = out->data;
	counter->number = resp.counter;
	counter->page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			     MAP_SHARED, fifo->dev.ctx->cmd_fd, resp.offset);
	if (counter->page == MAP_FAILED)
		return -errno;
	counter->cell = (struct vrnic_counter_cell *)counter->page + resp.cell;
	return 0;
}

int raw_counter(struct raw_fifo *fifo, uint32_t flags,
		struct raw_counter *counter)
{
	const struct vrnic_create_counter_req req = { .flags = flags };

	return create_counter(fifo, &req, NULL, counter);
}

int raw_counter_in(struct raw_fifo *fifo, uint32_t group, uint32_t bit, uint32_t flags,
		   struct raw_counter *counter)
{
	const struct vrnic_create_counter_req req = { .flags = flags, .bit = bit };

	return create_counter(fifo, &req, &group, counter);
}

int raw_counter_destroy(struct raw_fifo *fifo, struct raw_counter *counter)
{
	munmap(counter->page, sysconf(_SC_PAGESIZE));
	return raw_destroy(fifo->dev.ctx, VRNIC_OBJECT_COUNTER,
			   VRNIC_METHOD_COUNTER_DESTROY,
			   VRNIC_ATTR_COUNTER_DESTROY_HANDLE, counter->handle);
}

int raw_counter_eventfd(struct raw_fifo *fifo, struct raw_counter *counter,
			int fd)
{
	struct call call;
	int32_t value = fd;

	call_start(&call, VRNIC_OBJECT_COUNTER, VRNIC_METHOD_COUNTER_EVENTFD);
	call_attr(&call, VRNIC_ATTR_COUNTER_EVENTFD_HANDLE, 0, counter->handle);
	call_in(&call, VRNIC_ATTR_COUNTER_EVENTFD_FD, &value, sizeof(value));
	return call_run(&call, fifo->dev.ctx);
}

int raw_counter_bind(struct raw_fifo *fifo, struct raw_counter *counter,
		     uint32_t endpoint, bool on)
{
	struct call call;

	call_start(&call, VRNIC_OBJECT_COUNTER, on ? VRNIC_METHOD_COUNTER_BIND :
						     VRNIC_METHOD_COUNTER_UNBIND);
	call_attr(&call, on ? VRNIC_ATTR_COUNTER_BIND_HANDLE :
			      VRNIC_ATTR_COUNTER_UNBIND_HANDLE, 0, counter->handle);
	call_attr(&call, on ? VRNIC_ATTR_COUNTER_BIND_ENDPOINT :
			      VRNIC_ATTR_COUNTER_UNBIND_ENDPOINT, 0, endpoint);
	return call_run(&call, fifo->dev.ctx);
}

int raw_lookup(struct raw_fifo *fifo, const char *name, uint32_t task,
	       uint32_t context, struct vrnic_address *address)
{
	struct vrnic_lookup_req req = { .task = task, .context = context };
	struct call call;

	snprintf(req.name, sizeof(req.name), "%s", name);
	call_start(&call, VRNIC_OBJECT_FIFO, VRNIC_METHOD_FIFO_LOOKUP);
	call_in(&call, VRNIC_ATTR_FIFO_LOOKUP_REQ, &req, sizeof(req));
	call_ptr(&call, VRNIC_ATTR_FIFO_LOOKUP_RESP, address, sizeof(*address));
	return call_run(&call, fifo->dev.ctx);
}

int raw_group(struct raw_fifo *fifo, uint32_t *group, uint32_t *handle)
{
	struct vrnic_create_group_req req = {};
	struct vrnic_create_group_resp resp = {};
	struct ib_uverbs_attr *out;
	struct call call;
	int ret;

	call_start(&call, VRNIC_OBJECT_GROUP, VRNIC_METHOD_GROUP_CREATE);
	out = call_attr(&call, VRNIC_ATTR_GROUP_CREATE_HANDLE, 0, 0);
	call_in(&call, VRNIC_ATTR_GROUP_CREATE_REQ, &req, sizeof(req));
	call_ptr(&call, VRNIC_ATTR_GROUP_CREATE_RESP, &resp, sizeof(resp));
	ret = call_run(&call, fifo->dev.ctx);
	*handle = out->data;
	*group = resp.group;
	return ret;
}

int raw_group_destroy(struct raw_fifo *fifo, uint32_t handle)
{
	return raw_destroy(fifo->dev.ctx, VRNIC_OBJECT_GROUP, VRNIC_METHOD_GROUP_DESTROY,
			   VRNIC_ATTR_GROUP_DESTROY_HANDLE, handle);
}

int raw_type(struct raw_fifo *fifo, const struct vrnic_type_row *rows,
	     uint32_t nr_rows, uint32_t *type, uint32_t *handle)
{
	struct vrnic_create_type_req req = {
		.rows = (uintptr_t)rows, .nr_rows = nr_rows,
	};
	struct vrnic_create_type_resp resp = {};
	struct ib_uverbs_attr *out;
	struct call call;
	int ret;

	call_start(&call, VRNIC_OBJECT_TYPE, VRNIC_METHOD_TYPE_CREATE);
	out = call_attr(&call, VRNIC_ATTR_TYPE_CREATE_HANDLE, 0, 0);
	call_in(&call, VRNIC_ATTR_TYPE_CREATE_REQ, &req, sizeof(req));
	call_ptr(&call, VRNIC_ATTR_TYPE_CREATE_RESP, &resp, sizeof(resp));
	ret = call_run(&call, fifo->dev.ctx);
	*handle = out->data;
	*type = resp.type;
	return ret;
}

int raw_type_destroy(struct raw_fifo *fifo, uint32_t handle)
{
	return raw_destroy(fifo->dev.ctx, VRNIC_OBJECT_TYPE,
			   VRNIC_METHOD_TYPE_DESTROY,
			   VRNIC_ATTR_TYPE_DESTROY_HANDLE, handle);
}

static void put_slot(struct raw_fifo *fifo, uint32_t index, const void *data,
		     size_t len)
{
	uint32_t slot = index & (fifo->inject_entries - 1);

	memcpy(fifo->inject_slots + (size_t)slot * VRNIC_SLOT_SIZE, data, len);
}

void raw_fill(struct raw_fifo *fifo, const struct vrnic_ndesc *d,
	      const void *more, size_t len)
{
	uint32_t prod = fifo->inject->prod;
	uint32_t slots = d->num_slots;
	size_t at, n;

	put_slot(fifo, prod, d, sizeof(*d));
	for (at = 0; at < len; at += n) {
		n = len - at < VRNIC_SLOT_SIZE ? len - at : VRNIC_SLOT_SIZE;
		put_slot(fifo, prod + 1 + at / VRNIC_SLOT_SIZE,
			 (const uint8_t *)more + at, n);
	}
	/* a test that lies in num_slots posts what it wrote all the same */
	if (slots < 1 + (len + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE)
		slots = 1 + (len + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE;
	if (slots > fifo->inject_entries)
		slots = fifo->inject_entries;
	/* pairs with the engine's acquire, driver/queue/ring.h */
	__atomic_store_n(&fifo->inject->prod, prod + slots, __ATOMIC_RELEASE);
}

int raw_ring(struct raw_fifo *fifo)
{
	return ioctl(fifo->bell, VRNIC_ADVANCE,
		     (unsigned long)fifo->address.fifo) ? -errno : 0;
}

int raw_post(struct raw_fifo *fifo, const struct vrnic_ndesc *d,
	     const void *more, size_t len)
{
	raw_fill(fifo, d, more, len);
	return raw_ring(fifo);
}

/* False if there is no record. */
static bool next_record(struct raw_fifo *fifo, struct vrnic_record *record)
{
	struct vrnic_ring_hdr *hdr = fifo->receive;
	uint32_t cons = hdr->cons, slot;

	/* pairs with the engine's release of prod, driver/queue/ring.h */
	if (__atomic_load_n(&hdr->prod, __ATOMIC_ACQUIRE) == cons)
		return false;
	slot = cons & (fifo->receive_entries - 1);
	memcpy(record, fifo->receive_slots + (size_t)slot * VRNIC_SLOT_SIZE,
	       sizeof(*record));
	/* slots are given back after they were read */
	__atomic_store_n(&hdr->cons, cons + record->num_slots, __ATOMIC_SEQ_CST);
	return true;
}

int raw_try(struct raw_fifo *fifo, struct vrnic_record *record)
{
	while (next_record(fifo, record)) {
		if (!record->num_slots)
			return -EPROTO;
		if (fifo->receive->flags & VRNIC_RING_DOORBELL)
			raw_ring(fifo);
		if (record->kind != VRNIC_REC_PAD)
			return 0;
	}
	return -EAGAIN;
}

int raw_take(struct raw_fifo *fifo, struct vrnic_record *record)
{
	int ret, looks = 0;
	time_t end = time(NULL) + WAIT_SECONDS;

	while ((ret = raw_try(fifo, record)) == -EAGAIN) {
		if (fifo->inject->flags & VRNIC_RING_ERROR)
			return -EIO;
		if (time(NULL) > end)
			return -ETIMEDOUT;
		if (++looks > 10)
			usleep(looks < 1000 ? 50 : 2000);
	}
	return ret;
}

int raw_pair_open(struct raw_pair *pair, uint32_t inject_slots,
		  uint32_t receive_slots, size_t len)
{
	int ret = raw_open(&pair->a, inject_slots, receive_slots, len);

	pair->slots = inject_slots;
	pair->receive = receive_slots;
	pair->len = len;
	other_side();
	if (!ret)
		ret = raw_open(&pair->b, inject_slots, receive_slots, len);
	other_side();
	if (!ret)
		ret = raw_endpoint(&pair->a, &pair->b.address, &pair->a_to_b,
				   &pair->handle_a);
	if (!ret)
		ret = raw_endpoint(&pair->b, &pair->a.address, &pair->b_to_a,
				   &pair->handle_b);
	return ret;
}

int raw_pair_close(struct raw_pair *pair)
{
	int a = 0, b = 0;

	if (pair->a.dev.ctx)
		a = raw_endpoint_destroy(&pair->a, pair->handle_a);
	if (pair->b.dev.ctx)
		b = raw_endpoint_destroy(&pair->b, pair->handle_b);
	if (!a)
		a = raw_close(&pair->a);
	if (!b)
		b = raw_close(&pair->b);
	return a ? a : b;
}

int raw_reopen(struct raw_pair *pair)
{
	struct raw_pair old = *pair;
	int ret = raw_pair_close(pair);

	return ret ? ret : raw_pair_open(pair, old.slots, old.receive, old.len);
}
