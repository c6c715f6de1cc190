// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The doorbell file: the one system call of the data path. */

#include <errno.h>
#include <sys/ioctl.h>

#include "vrnic.h"

/* Return: 0 or an errno; the file belongs to the caller. */
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

static int ring(const struct vrnic_context *ctx, uint32_t qpn)
{
	while (ioctl(ctx->doorbell_fd, VRNIC_DOORBELL, (unsigned long)qpn))
		if (errno != EINTR)
			return errno;
	return 0;
}

/**
 * vrnic_doorbell_ring() - let the engine look at a queue pair's rings
 * @qp: the queue pair
 *
 * The requests are in the ring already, and stay there if this fails.
 *
 * Return: 0 or an errno.
 */
int vrnic_doorbell_ring(struct ibv_qp *qp)
{
	return ring(to_vctx(qp->context), qp->qp_num);
}

/**
 * vrnic_doorbell_later() - ring after more posts, or before the program waits
 * @qp: the queue pair; the kernel looks at it by itself before long
 *
 * Two queue pairs may have the same place: then the older one is rung for now. If the
 * older one is gone, that is no error of @qp. A thread that rings due doorbells between the
 * two steps may take the newer number twice: then the older one waits for the kernel.
 */
void vrnic_doorbell_later(struct ibv_qp *qp)
{
	struct vrnic_context *ctx = to_vctx(qp->context);
	struct vrnic_late *late = &ctx->late;
	uint32_t place = qp->qp_num % VRNIC_LATE, other, set;

	other = __atomic_exchange_n(&late->qpn[place], qp->qp_num,
				    __ATOMIC_RELAXED);
	/* L1: release of the bit after the number, with the acquire below */
	set = __atomic_fetch_or(&late->set, 1U << place, __ATOMIC_RELEASE);
	if (set & 1U << place && other != qp->qp_num)
		ring(ctx, other);
}

/**
 * vrnic_doorbell_ring_late() - ring all doorbells that are due
 * @ctx: the context
 *
 * Errors concern queue pairs that are gone, or the next post reports them again.
 */
void vrnic_doorbell_ring_late(struct vrnic_context *ctx)
{
	/* L1 */
	uint32_t set = __atomic_exchange_n(&ctx->late.set, 0, __ATOMIC_ACQUIRE);

	for (; set; set &= set - 1)
		ring(ctx, __atomic_load_n(&ctx->late.qpn[__builtin_ctz(set)],
					  __ATOMIC_RELAXED));
}
