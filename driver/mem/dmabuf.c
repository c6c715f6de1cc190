// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of other drivers, by dma-buf. The CPU copies, so the exporter maps the memory for the
 * kernel. That alone does not keep it in place: an attachment does. It is never mapped for a
 * device, nor is CPU access begun and ended: no device uses the addresses, the memory is used by
 * CPU and devices at once, and where DMA goes through a second buffer, both would overwrite the
 * memory.
 */

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/dmabuf.h"
#include "mem/dmabuf.h"

/**
 * struct vrnic_dmabuf - memory of another driver, mapped
 * @buf: the memory; a reference is held
 * @attach: keeps it in place
 * @map: where it is mapped
 * @mm: process that is charged for it, as for memory that it pins; NULL: none
 */
struct vrnic_dmabuf {
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	struct iosys_map map;
	struct mm_struct *mm;
};

#if IS_ENABLED(CONFIG_DMA_SHARED_BUFFER)

VRNIC_IMPORT_DMA_BUF;

/* Exporters that can move the memory do not as long as it is pinned. */
static const struct dma_buf_attach_ops pinned_ops = {
	VRNIC_DMA_BUF_NEVER_MOVED
};

/* Charge the process, which is bound by RLIMIT_MEMLOCK. */
static int dmabuf_charge(struct vrnic_dmabuf *dmabuf)
{
	unsigned long nr_pages = PFN_UP(dmabuf->buf->size);
	struct mm_struct *mm = current->mm;
	u64 sum;

	if (!mm)
		return 0;
	sum = atomic64_add_return(nr_pages, &mm->pinned_vm);
	if (sum > rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(nr_pages, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	dmabuf->mm = mm;
	return 0;
}

static void dmabuf_uncharge(struct vrnic_dmabuf *dmabuf)
{
	if (!dmabuf->mm)
		return;
	atomic64_sub(PFN_UP(dmabuf->buf->size), &dmabuf->mm->pinned_vm);
	mmdrop(dmabuf->mm);
}

static int pin(struct dma_buf_attachment *attach)
{
	int err;

	dma_resv_lock(attach->dmabuf->resv, NULL);
	err = dma_buf_pin(attach);
	dma_resv_unlock(attach->dmabuf->resv);
	return err;
}

static void unpin(struct dma_buf_attachment *attach)
{
	dma_resv_lock(attach->dmabuf->resv, NULL);
	dma_buf_unpin(attach);
	dma_resv_unlock(attach->dmabuf->resv);
}

/*
 * From now on the memory stays where it is. Those exporters that can move it want to be asked for
 * that. Others keep it in place for an attachment of either kind; but for one that could be told of
 * a move, old kernels would map it for the device.
 */
static int dmabuf_attach(struct vrnic_dmabuf *dmabuf, struct device *dev)
{
	bool movable = dma_buf_is_dynamic(dmabuf->buf);
	struct dma_buf_attachment *attach;
	int err;

	attach = dma_buf_dynamic_attach(dmabuf->buf, dev, movable ? &pinned_ops : NULL, dmabuf);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	err = movable ? pin(attach) : 0;
	if (err) {
		dma_buf_detach(dmabuf->buf, attach);
		return err;
	}
	dmabuf->attach = attach;
	return 0;
}

static void dmabuf_detach(struct vrnic_dmabuf *dmabuf)
{
	if (dma_buf_is_dynamic(dmabuf->buf))
		unpin(dmabuf->attach);
	dma_buf_detach(dmabuf->buf, dmabuf->attach);
}

/* Map the memory. Return: 0; -EOPNOTSUPP: it lies behind a bus; or what the exporter says. */
static int dmabuf_map(struct vrnic_dmabuf *dmabuf)
{
	int err;

	err = vrnic_dma_buf_vmap(dmabuf->buf, &dmabuf->map);
	if (err)
		return err;
	if (dmabuf->map.is_iomem) {
		vrnic_dma_buf_vunmap(dmabuf->buf, &dmabuf->map);
		return -EOPNOTSUPP;
	}
	/* a device may still be moving it to where it is now */
	dma_resv_wait_timeout(dmabuf->buf->resv, DMA_RESV_USAGE_KERNEL, false,
			      MAX_SCHEDULE_TIMEOUT);
	return 0;
}

/* May it be used so, by who has the file? */
static int dmabuf_check(const struct dma_buf *buf, u64 offset, u64 length, bool write)
{
	fmode_t mode = FMODE_READ | (write ? FMODE_WRITE : 0);

	if (offset > buf->size || length > buf->size - offset)
		return -EINVAL;
	return (buf->file->f_mode & mode) == mode ? 0 : -EACCES;
}

/* Let @dmabuf->buf stay, and be mapped. */
static int dmabuf_hold(struct vrnic_dmabuf *dmabuf, struct device *dev)
{
	int err;

	err = dmabuf_charge(dmabuf);
	if (err)
		return err;
	err = dmabuf_attach(dmabuf, dev);
	if (err)
		goto err_uncharge;
	err = dmabuf_map(dmabuf);
	if (err)
		goto err_detach;
	return 0;

err_detach:
	dmabuf_detach(dmabuf);
err_uncharge:
	dmabuf_uncharge(dmabuf);
	return err;
}

static int dmabuf_open(struct vrnic_dmabuf *dmabuf, struct device *dev, int fd, u64 offset,
		       u64 length, bool write)
{
	int err;

	dmabuf->buf = dma_buf_get(fd);
	if (IS_ERR(dmabuf->buf))
		return PTR_ERR(dmabuf->buf);
	err = dmabuf_check(dmabuf->buf, offset, length, write);
	if (!err)
		err = dmabuf_hold(dmabuf, dev);
	if (err)
		dma_buf_put(dmabuf->buf);
	return err;
}

/**
 * vrnic_dmabuf_get() - map memory of another driver
 * @dev: the device that uses it
 * @fd: file of the dma-buf
 * @offset: offset of the first byte that will be used
 * @length: number of bytes
 * @write: it will be written to
 *
 * The memory stays where it is until vrnic_dmabuf_put(), as a whole, and the process is charged for
 * that.
 *
 * Return: for vrnic_dmabuf_put(), or an ERR_PTR(): -EBADF or -EINVAL: @fd is no dma-buf; -EINVAL:
 * not all is in it; -EACCES: it is not open for that; -ENOMEM: there is no memory, or more than
 * RLIMIT_MEMLOCK would be pinned; -EOPNOTSUPP: it is memory of a device behind a bus; or what the
 * exporter says.
 */
struct vrnic_dmabuf *vrnic_dmabuf_get(struct device *dev, int fd, u64 offset, u64 length,
				      bool write)
{
	struct vrnic_dmabuf *dmabuf = kzalloc(sizeof(*dmabuf), GFP_KERNEL_ACCOUNT);
	int err;

	if (!dmabuf)
		return ERR_PTR(-ENOMEM);
	err = dmabuf_open(dmabuf, dev, fd, offset, length, write);
	if (err) {
		kfree(dmabuf);
		return ERR_PTR(err);
	}
	return dmabuf;
}

void vrnic_dmabuf_put(struct vrnic_dmabuf *dmabuf)
{
	vrnic_dma_buf_vunmap(dmabuf->buf, &dmabuf->map);
	dmabuf_detach(dmabuf);
	dmabuf_uncharge(dmabuf);
	dma_buf_put(dmabuf->buf);
	kfree(dmabuf);
}

/* Kernel address of a byte. */
void *vrnic_dmabuf_at(const struct vrnic_dmabuf *dmabuf, u64 offset)
{
	return dmabuf->map.vaddr + offset;
}

/*
 * Is what is mapped @offset bytes into the buffer its page? If not, it is the first page of a folio
 * of several, which may be no part of the buffer at all.
 */
bool vrnic_dmabuf_is_right(const struct vrnic_dmabuf *dmabuf, u64 offset)
{
	const void *page = vrnic_dmabuf_at(dmabuf, offset);

	if (!VRNIC_UDMABUF_TAKES_FIRST_PAGES || strcmp(dmabuf->buf->exp_name, "udmabuf"))
		return true;
	return !PageCompound(is_vmalloc_addr(page) ? vmalloc_to_page(page) : virt_to_page(page));
}

#else

struct vrnic_dmabuf *vrnic_dmabuf_get(struct device *dev, int fd, u64 offset, u64 length,
				      bool write)
{
	return ERR_PTR(-EOPNOTSUPP);
}

void vrnic_dmabuf_put(struct vrnic_dmabuf *dmabuf)
{
}

void *vrnic_dmabuf_at(const struct vrnic_dmabuf *dmabuf, u64 offset)
{
	return NULL;
}

bool vrnic_dmabuf_is_right(const struct vrnic_dmabuf *dmabuf, u64 offset)
{
	return true;
}

#endif /* CONFIG_DMA_SHARED_BUFFER */
