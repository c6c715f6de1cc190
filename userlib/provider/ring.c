// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Mapping of the rings. */

#include <errno.h>
#include <sys/mman.h>

#include "vrnic.h"

/**
 * vrnic_ring_map() - map a ring that the kernel made
 * @ring: filled in; untouched on failure
 * @context: whose ring it is
 * @info: the kernel's answer
 *
 * With ibv_fork_init(), a child process gets no copy of the mapping, because two processes that
 * post to one ring would overwrite each other's descriptors.
 *
 * Return: 0 or an errno.
 */
int vrnic_ring_map(struct vrnic_ring *ring, struct ibv_context *context,
		   const struct vrnic_ring_info *info)
{
	void *base;
	int ret;

	if (!vrnic_ring_info_is_sane(info))
		return EPROTO;
	base = mmap(NULL, info->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		    context->cmd_fd, info->offset);
	if (base == MAP_FAILED)
		return errno;
	if (ibv_dontfork_range(base, info->bytes)) {
		ret = errno;	/* ibv_dontfork_range() returns -1, not an errno as verbs do */
		munmap(base, info->bytes);
		return ret;
	}
	vrnic_ring_init(ring, base, info);
	return 0;
}

/* @ring may also be one that was never mapped. */
void vrnic_ring_unmap(struct vrnic_ring *ring, struct ibv_context *context)
{
	if (!ring->hdr)
		return;
	if (ibv_dofork_range(ring->hdr, ring->bytes))
		verbs_warn(verbs_get_ctx(context),
			   "cannot undo the fork protection of a ring\n");
	munmap(ring->hdr, ring->bytes);
	ring->hdr = NULL;
}
