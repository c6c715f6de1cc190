/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Completion counters by the calls that libibverbs makes since rdma-core 65, as older ones have
 * none. Each function returns 0 or an errno.
 */
#ifndef COMP_RAW_H
#define COMP_RAW_H

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/vrnic-abi.h>

/* Of the RDMA core, since Linux 7.3. */
enum {
	OBJECT_DEVICE = 0,
	OBJECT_QP = 4,
	OBJECT_COMP_CNTR = 19,
};

enum { CC_QUERY_CAPS = 8, CC_ATTACH = 2 };
enum { CC_CREATE, CC_DESTROY, CC_MODIFY, CC_READ };
enum { CC_COMPLETED, CC_ERRORS };
enum { CC_SET, CC_INC };

enum cc_op {
	CC_SEND = 1 << 0,
	CC_RECV = 1 << 1,
	CC_RDMA_READ = 1 << 2,
	CC_REMOTE_READ = 1 << 3,
	CC_RDMA_WRITE = 1 << 4,
	CC_REMOTE_WRITE = 1 << 5,
	CC_ALL = (1 << 6) - 1,
};

struct cntr_call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[4];
};

static inline void cntr_add(struct cntr_call *c, unsigned int id, unsigned int len, uint64_t data)
{
	c->attr[c->hdr.num_attrs++] = (struct ib_uverbs_attr){
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
	};
}

static inline int cntr_call(struct cntr_call *c, struct ibv_context *ctx, unsigned int object,
			    unsigned int method)
{
	c->hdr.length = sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attr[0]);
	c->hdr.object_id = object;
	c->hdr.method_id = method;
	c->hdr.driver_id = VRNIC_DRIVER_ID;
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, c) ? errno : 0;
}

struct cntr {
	struct ibv_context *ctx;
	uint32_t handle;
	void *page;
	volatile struct vrnic_comp_cell *cell;
};

static inline void cntr_unmap(struct cntr *cntr)
{
	if (cntr->page)
		munmap(cntr->page, getpagesize());
	cntr->page = NULL;
}

/* Without memory of its own in this process. */
static inline int cntr_create(struct cntr *cntr, struct ibv_context *ctx)
{
	struct cntr_call c = {};
	int ret;

	*cntr = (struct cntr){ .ctx = ctx };
	cntr_add(&c, 0, 0, 0);
	ret = cntr_call(&c, ctx, OBJECT_COMP_CNTR, CC_CREATE);
	cntr->handle = c.attr[0].data;
	return ret;
}

static inline int cntr_open(struct cntr *cntr, struct ibv_context *ctx, uint32_t flags)
{
	struct vrnic_create_comp_cntr_resp resp = {};
	struct cntr_call c = {};
	void *page;
	int ret;

	*cntr = (struct cntr){ .ctx = ctx };
	cntr_add(&c, 0, 0, 0);
	cntr_add(&c, VRNIC_ATTR_COMP_CNTR_CREATE_FLAGS, sizeof(flags), flags);
	cntr_add(&c, VRNIC_ATTR_COMP_CNTR_CREATE_RESP, sizeof(resp), (uintptr_t)&resp);
	ret = cntr_call(&c, ctx, OBJECT_COMP_CNTR, CC_CREATE);
	if (ret)
		return ret;
	cntr->handle = c.attr[0].data;
	page = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, ctx->cmd_fd,
		    resp.offset);
	if (page == MAP_FAILED)
		return errno;
	cntr->page = page;
	cntr->cell = (struct vrnic_comp_cell *)page + resp.cell;
	return 0;
}

static inline int cntr_destroy(const struct cntr *cntr)
{
	struct cntr_call c = {};

	cntr_add(&c, 0, 0, cntr->handle);
	return cntr_call(&c, cntr->ctx, OBJECT_COMP_CNTR, CC_DESTROY);
}

static inline int cntr_close(struct cntr *cntr)
{
	int ret = cntr_destroy(cntr);

	if (!ret)
		cntr_unmap(cntr);
	return ret;
}

static inline int cntr_attach(const struct cntr *cntr, const struct ibv_qp *qp, uint32_t ops)
{
	struct cntr_call c = {};

	cntr_add(&c, 0, 0, qp->handle);
	cntr_add(&c, 1, 0, cntr->handle);
	cntr_add(&c, 2, sizeof(ops), ops);
	return cntr_call(&c, cntr->ctx, OBJECT_QP, CC_ATTACH);
}

static inline int cntr_modify(const struct cntr *cntr, uint64_t entry, uint64_t op, uint64_t value)
{
	struct cntr_call c = {};

	cntr_add(&c, 0, 0, cntr->handle);
	cntr_add(&c, 1, sizeof(entry), entry);
	cntr_add(&c, 2, sizeof(op), op);
	cntr_add(&c, 3, sizeof(value), value);
	return cntr_call(&c, cntr->ctx, OBJECT_COMP_CNTR, CC_MODIFY);
}

/* What the kernel says; all ones if it says nothing. */
static inline uint64_t cntr_read(const struct cntr *cntr, uint64_t entry)
{
	uint64_t value = ~0ULL;
	struct cntr_call c = {};

	cntr_add(&c, 0, 0, cntr->handle);
	cntr_add(&c, 1, sizeof(entry), entry);
	cntr_add(&c, 2, sizeof(value), (uintptr_t)&value);
	return cntr_call(&c, cntr->ctx, OBJECT_COMP_CNTR, CC_READ) ? ~0ULL : value;
}

static inline int cntr_caps(struct ibv_context *ctx, uint32_t *counters, uint64_t *value,
			    uint32_t *ops)
{
	struct cntr_call c = {};

	cntr_add(&c, 0, sizeof(*counters), (uintptr_t)counters);
	cntr_add(&c, 1, sizeof(*value), (uintptr_t)value);
	cntr_add(&c, 2, sizeof(*ops), (uintptr_t)ops);
	return cntr_call(&c, ctx, OBJECT_DEVICE, CC_QUERY_CAPS);
}

#endif /* COMP_RAW_H */
