// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion counters: mapped memory to which the kernel adds. */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cq.h"
#include "vrnic.h"

#ifdef VRNIC_HAVE_COMP_CNTR

#include <rdma/ib_user_ioctl_cmds.h>

/**
 * struct vrnic_comp_cntr - a completion counter
 * @cc: libibverbs' part
 * @page: the mapping
 * @cell: the values, in @page
 * @seen: what the last reads of both values returned; atomic, as @idle
 * @idle: reads that returned what they had returned before
 */
struct vrnic_comp_cntr {
	struct ibv_comp_cntr cc;
	void *page;
	struct vrnic_comp_cell *cell;
	uint64_t seen[2];
	unsigned int idle;
};

static struct vrnic_comp_cntr *to_vcc(struct ibv_comp_cntr *cc)
{
	return container_of(cc, struct vrnic_comp_cntr, cc);
}

static size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* Map the values. Return: 0 or an errno. */
static int comp_cntr_map(struct vrnic_comp_cntr *cc,
			 const struct vrnic_create_comp_cntr_resp *resp)
{
	if (resp->cell >= page_size() / sizeof(*cc->cell))
		return EPROTO;
	cc->page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
			cc->cc.context->cmd_fd, resp->offset);
	if (cc->page == MAP_FAILED)
		return errno;
	cc->cell = (struct vrnic_comp_cell *)cc->page + resp->cell;
	return 0;
}

/* Make the kernel's part. Return: 0 or an errno. */
static int comp_cntr_make(struct ibv_context *context, struct vrnic_comp_cntr *cc, uint32_t flags)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_COMP_CNTR, UVERBS_METHOD_COMP_CNTR_CREATE, 2);
	struct vrnic_create_comp_cntr_resp resp;
	int ret;

	fill_attr_in_uint32(cmd, VRNIC_ATTR_COMP_CNTR_CREATE_FLAGS, flags);
	fill_attr_out_ptr(cmd, VRNIC_ATTR_COMP_CNTR_CREATE_RESP, &resp);
	ret = ibv_cmd_create_comp_cntr(context, &cc->cc, cmd);
	/* a kernel before 7.3, or an older module, does not know the object */
	if (ret)
		return ret == EPROTONOSUPPORT ? EOPNOTSUPP : ret;
	ret = comp_cntr_map(cc, &resp);
	if (ret)
		ibv_cmd_destroy_comp_cntr(&cc->cc);
	return ret;
}

struct ibv_comp_cntr *vrnic_create_comp_cntr(struct ibv_context *context,
					     struct ibv_comp_cntr_init_attr *attr)
{
	struct vrnic_comp_cntr *cc;
	uint32_t flags = 0;
	int ret = 0;

	if (attr->comp_mask || attr->flags)
		ret = EOPNOTSUPP;
	else if (attr->type == IBV_COMP_CNTR_TYPE_BYTES)
		flags = VRNIC_COMP_CNTR_BYTES;
	else if (attr->type != IBV_COMP_CNTR_TYPE_WRS)
		ret = EINVAL;
	if (ret) {
		errno = ret;
		return NULL;
	}
	cc = calloc(1, sizeof(*cc));
	if (!cc)
		return NULL;
	ret = comp_cntr_make(context, cc, flags);
	if (!ret)
		return &cc->cc;
	free(cc);
	errno = ret;
	return NULL;
}

int vrnic_destroy_comp_cntr(struct ibv_comp_cntr *ibcc)
{
	struct vrnic_comp_cntr *cc = to_vcc(ibcc);
	int ret = ibv_cmd_destroy_comp_cntr(ibcc);

	if (ret)
		return ret;
	munmap(cc->page, page_size());
	free(cc);
	return 0;
}

/* Nothing has changed, so the program may wait: as after a poll in vain, see vrnic_cq_unlock(). */
static void read_in_vain(struct vrnic_comp_cntr *cc)
{
	struct vrnic_context *ctx = to_vctx(cc->cc.context);

	__atomic_fetch_add(&ctx->vain, 1, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&cc->idle, 1, __ATOMIC_RELAXED) % VRNIC_IDLE_POLLS == 0 &&
	    ctx->one_cpu)
		sched_yield();
}

static int comp_cntr_read(struct vrnic_comp_cntr *cc, const __u64 *from, uint64_t *seen,
			  uint64_t *value)
{
	vrnic_doorbell_flush(to_vctx(cc->cc.context));
	/* pairs with the release in vrnic_comp_add() of the module */
	*value = __atomic_load_n(from, __ATOMIC_ACQUIRE);
	if (*value == __atomic_exchange_n(seen, *value, __ATOMIC_RELAXED))
		read_in_vain(cc);
	return 0;
}

int vrnic_read_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t *value)
{
	struct vrnic_comp_cntr *cc = to_vcc(ibcc);

	return comp_cntr_read(cc, &cc->cell->completed, &cc->seen[0], value);
}

int vrnic_read_err_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t *value)
{
	struct vrnic_comp_cntr *cc = to_vcc(ibcc);

	return comp_cntr_read(cc, &cc->cell->errors, &cc->seen[1], value);
}

int vrnic_set_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t value)
{
	__atomic_store_n(&to_vcc(ibcc)->cell->completed, value, __ATOMIC_RELEASE);
	return 0;
}

int vrnic_set_err_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t value)
{
	__atomic_store_n(&to_vcc(ibcc)->cell->errors, value, __ATOMIC_RELEASE);
	return 0;
}

int vrnic_inc_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t amount)
{
	__atomic_fetch_add(&to_vcc(ibcc)->cell->completed, amount, __ATOMIC_RELEASE);
	return 0;
}

int vrnic_inc_err_comp_cntr(struct ibv_comp_cntr *ibcc, uint64_t amount)
{
	__atomic_fetch_add(&to_vcc(ibcc)->cell->errors, amount, __ATOMIC_RELEASE);
	return 0;
}

/* As for vrnic_create_comp_cntr(), older kernels say that they do not know the method. */
int vrnic_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
			       size_t size)
{
	int ret = ibv_cmd_query_comp_cntr_caps(context, caps, size);

	return ret == EPROTONOSUPPORT ? EOPNOTSUPP : ret;
}

#endif /* VRNIC_HAVE_COMP_CNTR */
