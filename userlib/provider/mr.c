// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions and memory windows. */

#include <errno.h>
#include <stdlib.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "vrnic.h"

struct ibv_mr *vrnic_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			    uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd = {};
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	vrnic_pd_get(pd);
	return &vmr->ibv_mr;
}

/*
 * libibverbs has a function for this, too, which got one more parameter without a new number of its
 * interface: a provider that was compiled with the older one would call the newer one.
 */
static int reg_dmabuf(struct verbs_mr *vmr, struct ibv_pd *pd, uint64_t offset, size_t length,
		      uint64_t iova, int fd, int access)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, 9);
	struct ib_uverbs_attr *handle;
	uint32_t lkey, rkey;
	int ret;

	handle = fill_attr_out_obj(cmd, UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
	fill_attr_out_ptr(cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &lkey);
	fill_attr_out_ptr(cmd, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &rkey);
	fill_attr_in_obj(cmd, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, pd->handle);
	fill_attr_in_uint64(cmd, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, offset);
	fill_attr_in_uint64(cmd, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, length);
	fill_attr_in_uint64(cmd, UVERBS_ATTR_REG_DMABUF_MR_IOVA, iova);
	fill_attr_in_uint32(cmd, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, access);
	fill_attr_in_uint32(cmd, UVERBS_ATTR_REG_DMABUF_MR_FD, fd);
	ret = execute_ioctl(pd->context, cmd);
	if (ret)
		return ret;
	vmr->ibv_mr.handle = read_attr_obj(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, handle);
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.lkey = lkey;
	vmr->ibv_mr.rkey = rkey;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.addr = (void *)(uintptr_t)offset;
	vmr->ibv_mr.length = length;
	vmr->mr_type = IBV_MR_TYPE_DMABUF_MR;
	vmr->access = access;
	return 0;
}

struct ibv_mr *vrnic_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				   int fd, int access)
{
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = reg_dmabuf(vmr, pd, offset, length, iova, fd, access);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	vrnic_pd_get(pd);
	return &vmr->ibv_mr;
}

struct ibv_mr *vrnic_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
			       size_t length, unsigned int access)
{
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = ibv_cmd_reg_dm_mr(pd, &to_vdm(dm)->vdm, offset, length, access, vmr, NULL);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	vrnic_pd_get(pd);
	return &vmr->ibv_mr;
}

/* The kernel has it already, for everybody: a key. */
struct ibv_mr *vrnic_alloc_null_mr(struct ibv_pd *pd)
{
	struct verbs_mr *vmr;

	if (!(to_vctx(pd->context)->features & VRNIC_FEATURE_NULL)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	vmr->mr_type = IBV_MR_TYPE_NULL_MR;
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.length = SIZE_MAX;
	vmr->ibv_mr.lkey = VRNIC_NULL_LKEY;
	vrnic_pd_get(pd);
	return &vmr->ibv_mr;
}

int vrnic_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		   void *addr, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd = {};
	int ret;

	if (vmr->mr_type == IBV_MR_TYPE_NULL_MR)
		return EINVAL;
	ret = ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
			       access, pd, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (ret || !(flags & IBV_REREG_MR_CHANGE_PD))
		return ret;
	/* libibverbs stores the new domain in the region after this function */
	vrnic_pd_get(pd);
	vrnic_pd_put(vmr->ibv_mr.pd);
	return 0;
}

int vrnic_dereg_mr(struct verbs_mr *vmr)
{
	int ret = vmr->mr_type == IBV_MR_TYPE_NULL_MR ? 0 : ibv_cmd_dereg_mr(vmr);

	if (ret)
		return ret;
	vrnic_pd_put(vmr->ibv_mr.pd);
	free(vmr);
	return 0;
}

int vrnic_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sges, uint32_t nr)
{
	return ibv_cmd_advise_mr(pd, advice, flags, sges, nr);
}

/* Use a region that another context of the same file has registered. */
struct ibv_mr *vrnic_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = ibv_cmd_query_mr(pd, vmr, handle);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	vrnic_pd_get(pd);
	return &vmr->ibv_mr;
}

void vrnic_unimport_mr(struct ibv_mr *mr)
{
	vrnic_pd_put(mr->pd);
	free(verbs_get_mr(mr));
}

struct ibv_mw *vrnic_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd = {};
	struct ibv_mw *mw;
	int ret;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	ret = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (ret) {
		free(mw);
		errno = ret;
		return NULL;
	}
	vrnic_pd_get(pd);
	return mw;
}

int vrnic_dealloc_mw(struct ibv_mw *mw)
{
	int ret = ibv_cmd_dealloc_mw(mw);

	if (ret)
		return ret;
	vrnic_pd_put(mw->pd);
	free(mw);
	return 0;
}

/*
 * Bind a type 1 window, by a request like that for type 2, but with a key that the provider
 * chooses. The window has this key as soon as the request is posted. If the request fails later,
 * only its completion tells, as the verb is defined.
 */
int vrnic_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		  struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info,
		},
	};
	int ret;

	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return EINVAL;
	ret = vrnic_post_send(qp, &wr, &bad);
	if (ret)
		return ret;
	mw->rkey = wr.bind_mw.rkey;
	return 0;
}
