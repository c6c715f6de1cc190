// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of other drivers: stays in place as long as it is used, and goes back whatever fails. */

#include <kunit/test.h>
#include <linux/device.h>
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fcntl.h>
#include <linux/iosys-map.h>
#include <linux/slab.h>

#include "mem/dmabuf.h"

#define SIZE	(2 * PAGE_SIZE)

/**
 * struct exporter - another driver, with one buffer
 * @dev: a device of ours
 * @mem: the buffer
 * @fd: its file
 * @attached: how often it is attached
 * @pinned: how often it is pinned
 * @mapped: it is mapped for the kernel
 * @moved: it was mapped without anything that keeps it in place
 * @iomem: it lies behind a bus
 * @pin_err: pinning fails
 */
struct exporter {
	struct device *dev;
	void *mem;
	int fd;
	int attached;
	int pinned;
	int mapped;
	bool moved;
	bool iomem;
	int pin_err;
};

static int attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct exporter *e = buf->priv;

	e->attached++;
	return 0;
}

static void detach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct exporter *e = buf->priv;

	e->attached--;
}

static int pin(struct dma_buf_attachment *attach)
{
	struct exporter *e = attach->dmabuf->priv;

	if (!e->pin_err)
		e->pinned++;
	return e->pin_err;
}

static void unpin(struct dma_buf_attachment *attach)
{
	struct exporter *e = attach->dmabuf->priv;

	e->pinned--;
}

/* No device of ours has DMA. */
static struct sg_table *map_dma(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct exporter *e = attach->dmabuf->priv;

	e->moved = true;
	return ERR_PTR(-EIO);
}

static void unmap_dma(struct dma_buf_attachment *attach, struct sg_table *sgt,
		      enum dma_data_direction dir)
{
}

static int map(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *e = buf->priv;

	if (!e->attached || (buf->ops->pin && !e->pinned))
		e->moved = true;
	if (e->iomem)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)e->mem);
	else
		iosys_map_set_vaddr(map, e->mem);
	e->mapped++;
	return 0;
}

static void unmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *e = buf->priv;

	if (!e->attached || (buf->ops->pin && !e->pinned))
		e->moved = true;
	e->mapped--;
}

static void release(struct dma_buf *buf)
{
}

static const struct dma_buf_ops movable = {
	.attach = attach,
	.detach = detach,
	.pin = pin,
	.unpin = unpin,
	.map_dma_buf = map_dma,
	.unmap_dma_buf = unmap_dma,
	.vmap = map,
	.vunmap = unmap,
	.release = release,
};

static const struct dma_buf_ops fixed = {
	.attach = attach,
	.detach = detach,
	.map_dma_buf = map_dma,
	.unmap_dma_buf = unmap_dma,
	.vmap = map,
	.vunmap = unmap,
	.release = release,
};

static void close_file(void *e)
{
	close_fd(((struct exporter *)e)->fd);
}

static struct exporter *export(struct kunit *test, const struct dma_buf_ops *ops, int flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct exporter *e = test->priv;
	struct dma_buf *buf;

	info.ops = ops;
	info.size = SIZE;
	info.flags = flags;
	info.priv = e;
	buf = dma_buf_export(&info);
	KUNIT_ASSERT_FALSE(test, IS_ERR(buf));
	e->fd = dma_buf_fd(buf, O_CLOEXEC);
	if (e->fd < 0)
		dma_buf_put(buf);
	KUNIT_ASSERT_LE(test, 0, e->fd);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, close_file, e));
	return e;
}

static struct vrnic_dmabuf *get(struct exporter *e)
{
	return vrnic_dmabuf_get(e->dev, e->fd, 0, SIZE, true);
}

/* All that it was asked for it was asked to undo. */
static void expect_nothing(struct kunit *test, const struct exporter *e)
{
	KUNIT_EXPECT_EQ(test, 0, e->attached);
	KUNIT_EXPECT_EQ(test, 0, e->pinned);
	KUNIT_EXPECT_EQ(test, 0, e->mapped);
	KUNIT_EXPECT_FALSE(test, e->moved);
}

static void use_twice(struct kunit *test, struct exporter *e, int pins)
{
	struct vrnic_dmabuf *a = get(e), *b = get(e);

	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	KUNIT_ASSERT_FALSE(test, IS_ERR(b));
	KUNIT_EXPECT_EQ(test, 2, e->attached);
	KUNIT_EXPECT_EQ(test, 2 * pins, e->pinned);
	KUNIT_EXPECT_PTR_EQ(test, e->mem + 3, vrnic_dmabuf_at(a, 3));
	vrnic_dmabuf_put(a);
	KUNIT_EXPECT_EQ(test, 1, e->attached);
	KUNIT_EXPECT_EQ(test, pins, e->pinned);
	KUNIT_EXPECT_EQ(test, 1, e->mapped);
	vrnic_dmabuf_put(b);
	expect_nothing(test, e);
}

static void memory_that_can_move_is_pinned(struct kunit *test)
{
	use_twice(test, export(test, &movable, O_RDWR), 1);
}

static void other_memory_is_attached(struct kunit *test)
{
	use_twice(test, export(test, &fixed, O_RDWR), 0);
}

static void what_cannot_be_pinned_is_not_mapped(struct kunit *test)
{
	struct exporter *e = export(test, &movable, O_RDWR);

	e->pin_err = -EBUSY;
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EBUSY), get(e));
	expect_nothing(test, e);
}

/* So is what the exporter cannot map, but then the core warns in the log. */
static void what_lies_behind_a_bus_is_let_go(struct kunit *test)
{
	struct exporter *e = export(test, &movable, O_RDWR);

	e->iomem = true;
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EOPNOTSUPP), get(e));
	expect_nothing(test, e);
}

static void who_may_only_read_does_not_write(struct kunit *test)
{
	struct exporter *e = export(test, &movable, O_RDONLY);
	struct vrnic_dmabuf *dmabuf;

	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EACCES), get(e));
	dmabuf = vrnic_dmabuf_get(e->dev, e->fd, 0, SIZE, false);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dmabuf));
	vrnic_dmabuf_put(dmabuf);
	expect_nothing(test, e);
}

static void who_may_only_write_has_nothing(struct kunit *test)
{
	struct exporter *e = export(test, &movable, O_WRONLY);

	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EACCES), get(e));
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EACCES), vrnic_dmabuf_get(e->dev, e->fd, 0, 1, false));
	expect_nothing(test, e);
}

static void nothing_beyond_the_end(struct kunit *test)
{
	struct exporter *e = export(test, &movable, O_RDWR);
	const u64 at[][2] = {
		{ 0, SIZE + 1 }, { SIZE, 1 }, { SIZE + 1, 0 }, { 1, -1ULL }, { -1ULL, 1 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(at); i++)
		KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EINVAL),
				    vrnic_dmabuf_get(e->dev, e->fd, at[i][0], at[i][1], false));
	expect_nothing(test, e);
}

static void end_device(void *dev)
{
	root_device_unregister(dev);
}

static int dmabuf_init(struct kunit *test)
{
	struct exporter *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);

	if (!e)
		return -ENOMEM;
	test->priv = e;
	e->mem = kunit_kzalloc(test, SIZE, GFP_KERNEL);
	if (!e->mem)
		return -ENOMEM;
	e->dev = root_device_register("vrnic-dmabuf-test");
	if (IS_ERR(e->dev))
		return PTR_ERR(e->dev);
	return kunit_add_action_or_reset(test, end_device, e->dev);
}

static struct kunit_case dmabuf_cases[] = {
	KUNIT_CASE(memory_that_can_move_is_pinned),
	KUNIT_CASE(other_memory_is_attached),
	KUNIT_CASE(what_cannot_be_pinned_is_not_mapped),
	KUNIT_CASE(what_lies_behind_a_bus_is_let_go),
	KUNIT_CASE(who_may_only_read_does_not_write),
	KUNIT_CASE(who_may_only_write_has_nothing),
	KUNIT_CASE(nothing_beyond_the_end),
	{}
};

static struct kunit_suite dmabuf_suite = {
	.name = "vrnic_dmabuf",
	.init = dmabuf_init,
	.test_cases = dmabuf_cases,
};

kunit_test_suite(dmabuf_suite);
