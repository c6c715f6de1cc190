/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What kernels call differently of dma-bufs. */
#ifndef VRNIC_COMPAT_DMABUF_H
#define VRNIC_COMPAT_DMABUF_H

#include <linux/dma-buf.h>
#include <linux/module.h>
#include <linux/version.h>

/* Importers of dma-bufs lock them themselves, or leave it to these functions, since 6.2. */
#ifdef VRNIC_HAVE_DMA_BUF_UNLOCKED
#define vrnic_dma_buf_vmap	dma_buf_vmap_unlocked
#define vrnic_dma_buf_vunmap	dma_buf_vunmap_unlocked
#else
#define vrnic_dma_buf_vmap	dma_buf_vmap
#define vrnic_dma_buf_vunmap	dma_buf_vunmap
#endif

/*
 * An importer that pins has to have a function that is told of a move, until 7.1: of one to where
 * the memory is then pinned.
 */
#ifdef VRNIC_HAVE_MOVE_NOTIFY
static inline void vrnic_dma_buf_moved(struct dma_buf_attachment *attach)
{
}

#define VRNIC_DMA_BUF_NEVER_MOVED	.move_notify = vrnic_dma_buf_moved,
#else
#define VRNIC_DMA_BUF_NEVER_MOVED
#endif

/*
 * Before 6.13 udmabuf may map the first page of a folio in place of any of its pages. No header
 * tells whether it does.
 */
#if KERNEL_VERSION(6, 13, 0) > LINUX_VERSION_CODE
#define VRNIC_UDMABUF_TAKES_FIRST_PAGES	1
#else
#define VRNIC_UDMABUF_TAKES_FIRST_PAGES	0
#endif

/* The name of a namespace of symbols is a string since 6.13. */
#ifdef VRNIC_HAVE_IMPORT_NS_STRING
#define VRNIC_IMPORT_DMA_BUF	MODULE_IMPORT_NS("DMA_BUF")
#else
#define VRNIC_IMPORT_DMA_BUF	MODULE_IMPORT_NS(DMA_BUF)
#endif

#endif /* VRNIC_COMPAT_DMABUF_H */
