/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory of other drivers, by dma-buf. */
#ifndef VRNIC_DMABUF_H
#define VRNIC_DMABUF_H

#include <linux/types.h>

struct device;
struct vrnic_dmabuf;

struct vrnic_dmabuf *vrnic_dmabuf_get(struct device *dev, int fd, u64 offset, u64 length,
				      bool write);
void vrnic_dmabuf_put(struct vrnic_dmabuf *dmabuf);
void *vrnic_dmabuf_at(const struct vrnic_dmabuf *dmabuf, u64 offset);
bool vrnic_dmabuf_is_right(const struct vrnic_dmabuf *dmabuf, u64 offset);

#endif /* VRNIC_DMABUF_H */
