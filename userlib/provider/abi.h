/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Commands with the driver's part, as libibverbs' command functions want them. */
#ifndef VRNIC_PROVIDER_ABI_H
#define VRNIC_PROVIDER_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/vrnic-abi.h>
#include <kernel-abi/vrnic-abi.h>

DECLARE_DRV_CMD(vrnic_cmd_get_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, vrnic_alloc_ucontext_resp);
DECLARE_DRV_CMD(vrnic_cmd_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		vrnic_create_cq_req, vrnic_create_cq_resp);
DECLARE_DRV_CMD(vrnic_cmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		empty, vrnic_create_cq_resp);
DECLARE_DRV_CMD(vrnic_cmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP,
		empty, vrnic_create_qp_resp);
DECLARE_DRV_CMD(vrnic_cmd_create_qp_rss, IB_USER_VERBS_EX_CMD_CREATE_QP,
		vrnic_create_qp_req, vrnic_create_qp_resp);
DECLARE_DRV_CMD(vrnic_cmd_create_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		empty, vrnic_create_qp_resp);
DECLARE_DRV_CMD(vrnic_cmd_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		empty, vrnic_create_srq_resp);
DECLARE_DRV_CMD(vrnic_cmd_create_srq_ex, IB_USER_VERBS_CMD_CREATE_XSRQ,
		empty, vrnic_create_srq_resp);
DECLARE_DRV_CMD(vrnic_cmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, vrnic_create_ah_resp);

#endif /* VRNIC_PROVIDER_ABI_H */
