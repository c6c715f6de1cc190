// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains, thread domains, and parent domains, which join the two.
 * The latter two exist in the process only.
 */

#include <errno.h>
#include <stdlib.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "vrnic.h"

struct ibv_pd *vrnic_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd = {};
	struct vrnic_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ret = ibv_cmd_alloc_pd(context, &pd->pd, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->pd;
}

static void free_parent_domain(struct vrnic_pd *pd)
{
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	atomic_fetch_sub(&pd->contained->users, 1);
	free(pd);
}

int vrnic_dealloc_pd(struct ibv_pd *ibpd)
{
	struct vrnic_pd *pd = to_vpd(ibpd);
	int ret;

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->contained) {
		free_parent_domain(pd);
		return 0;
	}
	ret = ibv_cmd_dealloc_pd(ibpd);
	if (ret)
		return ret;
	free(pd);
	return 0;
}

/* Use a protection domain of the kernel that another context of the same file has made. */
struct ibv_pd *vrnic_import_pd(struct ibv_context *context, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_PD, VRNIC_METHOD_PD_QUERY, 1);
	struct vrnic_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	fill_attr_in_obj(cmd, VRNIC_ATTR_PD_QUERY_HANDLE, handle);
	ret = execute_ioctl(context, cmd);
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	pd->pd.context = context;
	pd->pd.handle = handle;
	return &pd->pd;
}

/* The verb cannot fail. A domain that a parent domain still contains stays in memory. */
void vrnic_unimport_pd(struct ibv_pd *ibpd)
{
	struct vrnic_pd *pd = to_vpd(ibpd);

	if (atomic_load(&pd->users))
		verbs_warn(verbs_get_ctx(ibpd->context),
			   "ibv_unimport_pd: a parent domain contains the domain\n");
	else
		free(pd);
}

struct ibv_td *vrnic_alloc_td(struct ibv_context *context,
			      struct ibv_td_init_attr *attr)
{
	struct vrnic_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = context;
	return &td->td;
}

int vrnic_dealloc_td(struct ibv_td *ibtd)
{
	struct vrnic_td *td = to_vtd(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

/*
 * The program may pass allocators, but the provider does not call them, because the kernel
 * allocates the rings. Nor does it need memory that a confidential guest shares with its host,
 * which the program may allow it to use: the CPU does the copying.
 */
struct ibv_pd *
vrnic_alloc_parent_domain(struct ibv_context *context,
			  struct ibv_parent_domain_init_attr *attr)
{
	struct vrnic_pd *pd;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	if (!check_comp_mask(attr->comp_mask,
			     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
			     VRNIC_PARENT_DOMAIN_CC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ibv_initialize_parent_domain(&pd->pd, attr->pd);
	pd->contained = to_vpd(attr->pd);
	atomic_fetch_add(&pd->contained->users, 1);
	if (attr->td) {
		pd->td = to_vtd(attr->td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	return &pd->pd;
}

/* Does the program vouch that one thread at a time uses the objects that it makes in @pd? */
bool vrnic_pd_one_thread(struct ibv_pd *pd)
{
	return to_vpd(pd)->td;
}
