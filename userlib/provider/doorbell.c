// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The doorbell file: the one system call of the data path. */

#include "vrnic.h"

/* Open the doorbell file of @ctx, which the caller closes. Return: 0 or an errno. */
int vrnic_doorbell_open(struct vrnic_context *ctx)
{
	DECLARE_COMMAND_BUFFER(cmd, VRNIC_OBJECT_DOORBELL,
			       VRNIC_METHOD_DOORBELL_ALLOC, 1);
	struct ib_uverbs_attr *fd;
	int ret;

	fd = fill_attr_out_fd(cmd, VRNIC_ATTR_DOORBELL_ALLOC_FD, 0);
	ret = execute_ioctl(&ctx->vctx.context, cmd);
	if (ret)
		return ret;
	ctx->doorbell_fd = read_attr_fd(VRNIC_ATTR_DOORBELL_ALLOC_FD, fd);
	return 0;
}

/**
 * vrnic_doorbell_ring() - have the kernel run a queue pair's rings
 * @context: of the queue pair
 * @qpn: its number
 *
 * The requests are in the ring already, and stay there if this fails.
 *
 * Return: 0 or an errno.
 */
int vrnic_doorbell_ring(struct ibv_context *context, uint32_t qpn)
{
	return vrnic_ring_call(to_vctx(context)->doorbell_fd, VRNIC_DOORBELL, qpn);
}

/* Note a doorbell that is rung after more posts, or before the program waits. */
void vrnic_doorbell_later(struct ibv_qp *qp)
{
	struct vrnic_context *ctx = to_vctx(qp->context);

	vrnic_late_add(&ctx->late, ctx->doorbell_fd, VRNIC_DOORBELL, qp->qp_num);
}

/* Ring all doorbells that are due. */
void vrnic_doorbell_ring_late(struct vrnic_context *ctx)
{
	vrnic_late_ring(&ctx->late, ctx->doorbell_fd, VRNIC_DOORBELL);
}
