// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that the provider chooses for a program. The module's copies are made by the CPU, so any
 * memory will do, also that of a confidential guest, which no device could reach.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "vrnic.h"

#ifdef VRNIC_HAVE_BUF

/* Whole pages, so that what ibv_fork_init() does to them does not touch other memory. */
void *vrnic_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **out)
{
	struct ibv_buf *buf;
	void *addr;

	buf = calloc(1, sizeof(*buf));
	if (!buf)
		return NULL;
	/* fails with EINVAL if @size is 0 */
	addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED) {
		free(buf);
		return NULL;
	}
	ibv_buf_init(buf, pd, addr, size);
	vrnic_pd_get(pd);
	*out = buf;
	return addr;
}

void vrnic_free_buf(struct ibv_buf *buf)
{
	munmap(buf->addr, buf->size);
	vrnic_pd_put(buf->pd);
	free(buf);
}

#endif /* VRNIC_HAVE_BUF */
