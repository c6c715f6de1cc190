/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel, for tests of the whole library but its system calls. It gives out objects by handle,
 * the lowest free one first, as uverbs does. Its engine takes the descriptors in the ring when it
 * is called, and does nothing with them. One file of a program includes this.
 */
#ifndef LIB_KERNEL_H
#define LIB_KERNEL_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../userlib/libvrnic/pace.h"
#include "unit.h"

#define HANDLES		64
#define FREE		0
#define SLOTS		8U
#define RECEIVE_SLOTS	256U
#define RECEIVE_AT	(1U << 16)	/* in the file */
#define CELLS_AT	(1U << 17)
#define FILE_BYTES	(1U << 18)

/**
 * struct kernel - the test in the place of the kernel
 * @object: by handle: the kind of the object, plus one; FREE
 * @bound: by handle of a counter: bindings
 * @mrs: registrations
 * @stopped: the engine takes nothing
 * @cells: by handle
 */
static struct kernel {
	unsigned int object[HANDLES];
	unsigned int bound[HANDLES];
	unsigned int mrs;
	bool stopped;
	struct vrnic_counter_cell *cells;
} kernel;

static uint32_t handle_new(unsigned int object)
{
	uint32_t handle = 1;

	while (kernel.object[handle] != FREE)
		handle++;
	kernel.object[handle] = object + 1;
	kernel.bound[handle] = 0;
	return handle;
}

static unsigned int nr_objects(void)
{
	unsigned int handle, n = 0;

	for (handle = 0; handle < HANDLES; handle++)
		n += kernel.object[handle] != FREE;
	return n;
}

int vrnic_uv_doorbell(struct ibv_context *verbs, int *fd, uint32_t *features)
{
	(void)verbs;
	(void)fd;
	(void)features;
	return -EOPNOTSUPP;
}

static struct vrnic_ring_info ring_info(uint64_t offset, uint32_t entries)
{
	return (struct vrnic_ring_info){
		.offset = offset,
		.bytes = VRNIC_RING_DATA + (uint64_t)entries * VRNIC_SLOT_SIZE,
		.entries = entries,
		.stride = VRNIC_SLOT_SIZE,
	};
}

int vrnic_uv_fifo_create(struct vrnic_client *client,
			 const struct vrnic_create_fifo_req *req,
			 struct vrnic_create_fifo_resp *resp, uint32_t *handle)
{
	(void)client;
	*resp = (struct vrnic_create_fifo_resp){
		.inject = ring_info(0, req->inject_slots),
		.receive = ring_info(RECEIVE_AT, req->receive_slots),
		.address = { .fifo = 1 },
	};
	*handle = handle_new(VRNIC_OBJECT_FIFO);
	return 0;
}

int vrnic_uv_fifo_lookup(struct vrnic_client *client,
			 const struct vrnic_lookup_req *req,
			 struct vrnic_address *address)
{
	(void)client;
	(void)req;
	(void)address;
	return -ENOENT;
}

int vrnic_uv_endpoint_create(struct vrnic_context *ctx,
			     const struct vrnic_address *address,
			     struct vrnic_create_endpoint_resp *resp,
			     uint32_t *handle)
{
	(void)ctx;
	(void)address;
	*handle = handle_new(VRNIC_OBJECT_ENDPOINT);
	*resp = (struct vrnic_create_endpoint_resp){ .endpoint = *handle };
	return 0;
}

int vrnic_uv_counter_create(struct vrnic_client *client,
			    const struct vrnic_counter_group *group,
			    const struct vrnic_create_counter_req *req,
			    struct vrnic_create_counter_resp *resp,
			    uint32_t *handle)
{
	(void)client;
	(void)group;
	(void)req;
	*handle = handle_new(VRNIC_OBJECT_COUNTER);
	kernel.cells[*handle] = (struct vrnic_counter_cell){};
	*resp = (struct vrnic_create_counter_resp){
		.offset = CELLS_AT,
		.cell = *handle,
		.counter = *handle,
	};
	return 0;
}

int vrnic_uv_counter_eventfd(struct vrnic_counter *counter, int32_t fd)
{
	(void)counter;
	(void)fd;
	return -EOPNOTSUPP;
}

static bool is_object(uint32_t handle, unsigned int object)
{
	return kernel.object[handle] == object + 1;
}

int vrnic_uv_counter_bind(struct vrnic_counter *counter,
			  const struct vrnic_endpoint *ep)
{
	if (!is_object(counter->handle, VRNIC_OBJECT_COUNTER) ||
	    !is_object(ep->handle, VRNIC_OBJECT_ENDPOINT))
		return -ENOENT;
	kernel.bound[counter->handle]++;
	return 0;
}

int vrnic_uv_counter_unbind(struct vrnic_counter *counter,
			    const struct vrnic_endpoint *ep)
{
	if (!is_object(counter->handle, VRNIC_OBJECT_COUNTER) ||
	    !is_object(ep->handle, VRNIC_OBJECT_ENDPOINT) ||
	    !kernel.bound[counter->handle])
		return -ENOENT;
	kernel.bound[counter->handle]--;
	return 0;
}

int vrnic_uv_count(struct vrnic_client *client, const struct vrnic_count *count)
{
	struct vrnic_counter_cell *cell = &kernel.cells[count->id];

	(void)client;
	if (count->status)
		cell->errors++;
	else
		cell->remaining -= (int64_t)count->bytes;
	return 0;
}

int vrnic_uv_group_create(struct vrnic_client *client,
			  const struct vrnic_create_group_req *req,
			  struct vrnic_create_group_resp *resp, uint32_t *handle)
{
	(void)client;
	(void)req;
	(void)resp;
	(void)handle;
	return -EOPNOTSUPP;
}

int vrnic_uv_wait_group(struct vrnic_client *client, struct vrnic_wait_group *wait)
{
	(void)client;
	(void)wait;
	return -EOPNOTSUPP;
}

int vrnic_uv_type_create(struct vrnic_client *client,
			 const struct vrnic_create_type_req *req,
			 struct vrnic_create_type_resp *resp, uint32_t *handle)
{
	(void)client;
	(void)req;
	*handle = handle_new(VRNIC_OBJECT_TYPE);
	*resp = (struct vrnic_create_type_resp){ .type = *handle };
	return 0;
}

int vrnic_uv_destroy(struct vrnic_client *client, unsigned int object,
		     uint32_t handle)
{
	(void)client;
	CHECK(is_object(handle, object));
	kernel.object[handle] = FREE;
	return 0;
}

int vrnic_uv_advance_deferred(struct vrnic_context *ctx)
{
	return vrnic_uv_advance(ctx);
}

int vrnic_uv_advance(struct vrnic_context *ctx)
{
	if (!kernel.stopped)
		ctx->inject.hdr->cons = ctx->inject.hdr->prod;
	return 0;
}

void vrnic_uv_advance_later(struct vrnic_context *ctx)
{
	vrnic_uv_advance(ctx);
}

void vrnic_uv_advance_late(struct vrnic_client *client)
{
	(void)client;
}

int vrnic_uv_wait(struct vrnic_client *client, struct vrnic_wait *wait)
{
	(void)client;
	(void)wait;
	return -ETIME;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	void *mr;

	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	kernel.mrs++;
	/* a test may let calloc() fail */
	if (posix_memalign(&mr, sizeof(void *), sizeof(struct ibv_mr)))
		return NULL;
	return memset(mr, 0, sizeof(struct ibv_mr));
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	(void)iova;
	return ibv_reg_mr(pd, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	kernel.mrs--;
	free(mr);
	return 0;
}

static struct ibv_context verbs;

static struct vrnic_client *client_new(void)
{
	struct vrnic_client *client = calloc(1, sizeof(*client));

	kernel = (struct kernel){};
	verbs.cmd_fd = memfd_create("kernel", MFD_CLOEXEC);
	CHECK_EQ(0, ftruncate(verbs.cmd_fd, FILE_BYTES));
	kernel.cells = mmap(NULL, HANDLES * sizeof(*kernel.cells), PROT_READ | PROT_WRITE,
			    MAP_SHARED, verbs.cmd_fd, CELLS_AT);
	client->verbs = &verbs;
	client->doorbell_fd = -1;
	client->one_cpu = true;
	client->page_size = (size_t)sysconf(_SC_PAGESIZE);
	pthread_mutex_init(&client->lock, NULL);
	return client;
}

static void kernel_end(void)
{
	CHECK_EQ(0, nr_objects());
	CHECK_EQ(0, kernel.mrs);
	munmap(kernel.cells, HANDLES * sizeof(*kernel.cells));
	close(verbs.cmd_fd);
}

#endif /* LIB_KERNEL_H */
