/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Pieces of memory that a key names, and the copy itself. */
#ifndef VRNIC_SEG_H
#define VRNIC_SEG_H

#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <rdma/vrnic-abi.h>

struct ib_pd;
struct vrnic_dev;
struct vrnic_mr;
struct vrnic_odp;

/**
 * struct vrnic_key_user - the queue pair on whose behalf keys are looked up
 * @dev: device
 * @pd: protection domain that the memory has to have
 * @qpn: number of the queue pair, for type 2 windows, which only one queue pair may use
 */
struct vrnic_key_user {
	struct vrnic_dev *dev;
	struct ib_pd *pd;
	u32 qpn;
};

/**
 * struct vrnic_held - the first region that a run of a ring found, kept until the run ends
 * @mr: region, with a reference held, or NULL; each operation that uses it is checked
 * @key: key that the region was found by
 *
 * Operations that follow each other mostly name the same memory. A struct vrnic_held is for one
 * kind of key only, so that a local key never matches where a peer claims a remote one.
 */
struct vrnic_held {
	struct vrnic_mr *mr;
	u32 key;
};

/**
 * struct vrnic_pieces - bytes that lie in many places, and are read as if they lay together
 * @read: copy the bytes from @pos to @pos + @n to @to. Packets are made in order, and again if one
 *	is lost, so @pos may be less than before. Must not sleep
 */
struct vrnic_pieces {
	void (*read)(struct vrnic_pieces *pieces, u64 pos, void *to, u64 n);
};

/**
 * struct vrnic_seg - a piece of memory that may be used until vrnic_seg_put()
 * @mr: region, with a reference held; NULL for kernel memory that has no region
 * @held: a struct vrnic_held owns the reference on @mr
 * @on_demand: pages may be missing: only the bytes that vrnic_sgl_ready() has allowed may be used
 * @null: the bytes are nowhere: each run of them is at the beginning of the page at @kva
 * @kva: kernel address, if the region is all of kernel memory or there is no region; else NULL
 * @off: if @kva is NULL: offset of the piece from the start of the region's first page, or of its
 *	first extent
 * @len: bytes
 * @pieces: if not NULL: the bytes lie in places of @mr that only vrnic_sgl_read() finds; @kva and
 *	@off mean nothing
 */
struct vrnic_seg {
	struct vrnic_mr *mr;
	bool held;
	bool on_demand;
	bool null;
	void *kva;
	u64 off;
	u64 len;
	struct vrnic_pieces *pieces;
};

/**
 * struct vrnic_page_wait - the page that an operation waits for, from one of its runs to the next
 * @odp: pages of the region, only compared; NULL: it waits for none
 * @page: address of the page, and whether to write
 * @since: number of page-ins that had begun when the wait did. What these find does not matter: the
 *	process may have mapped the page since
 * @again: the operation looked so late at a page-in that failed, that it asked for another one
 */
struct vrnic_page_wait {
	const struct vrnic_odp *odp;
	unsigned long page;
	u64 since;
	bool again;
};

/**
 * struct vrnic_sgl - a list of segments, and a position in it
 * @nr: number of segments; those behind them mean nothing
 * @cur: index of the segment with the position
 * @pos: offset of the position in that segment
 * @seg: the segments; the list's owner has the memory, as much as it will ever need
 */
struct vrnic_sgl {
	unsigned int nr;
	unsigned int cur;
	u64 pos;
	struct vrnic_seg *seg;
};

int vrnic_seg_region(struct vrnic_dev *dev, struct ib_pd *pd, u32 key,
		     bool remote, u64 addr, u64 len, int access,
		     struct vrnic_held *held, struct vrnic_seg *seg);
int vrnic_seg_local(const struct vrnic_key_user *user, const struct vrnic_sge *sge,
		    int access, struct vrnic_held *held, struct vrnic_seg *seg);
int vrnic_seg_remote(const struct vrnic_key_user *user, u32 rkey, u64 addr, u64 len,
		     int access, struct vrnic_held *held,
		     struct vrnic_seg *seg);
void vrnic_held_put(struct vrnic_held *held);
int vrnic_seg_whole(const struct vrnic_key_user *user, u32 rkey, int access,
		    struct vrnic_seg *seg);
void vrnic_seg_put(struct vrnic_seg *seg);
void *vrnic_seg_run(const struct vrnic_seg *seg, u64 pos, u64 want, u64 *len);
void vrnic_seg_read(const struct vrnic_seg *src, void *to, u64 n);
void vrnic_seg_copy(const struct vrnic_seg *dst, u64 dst_pos,
		    const struct vrnic_seg *src, u64 src_pos, u64 n, bool final);
u64 vrnic_seg_copy_user(const struct vrnic_seg *seg, u64 user, u64 n, bool to_user, bool final);
void vrnic_copy_final(void *dst, const void *src, size_t n);
void *vrnic_seg_word(const struct vrnic_seg *seg, unsigned int width);

int vrnic_sgl_local(const struct vrnic_key_user *user, const struct vrnic_sge *sge, u32 nr,
		    int access, struct vrnic_held *held, struct vrnic_sgl *sgl);
void vrnic_sgl_kva(struct vrnic_sgl *sgl, void *kva, u64 len);
int vrnic_sgl_await(struct vrnic_sgl *sgl, u64 *n, u64 need, bool write,
		    struct vrnic_page_wait *wait);
void vrnic_sgl_put_all(struct vrnic_sgl *sgl);
void *vrnic_sgl_run(struct vrnic_sgl *sgl, u64 want, u64 *len);
void vrnic_sgl_skip(struct vrnic_sgl *sgl, u64 n);
void vrnic_sgl_read(struct vrnic_sgl *src, void *to, u64 n);
void vrnic_sgl_copy(struct vrnic_sgl *dst, struct vrnic_sgl *src, u64 n, bool final);
void vrnic_sgl_write(struct vrnic_sgl *dst, const void *from, u64 n, bool final);
u64 vrnic_sge_total(const struct vrnic_sge *sge, u32 nr);

/* Most lists have one segment, of the region that the run keeps: there is nothing to put. */
static inline void vrnic_sgl_put(struct vrnic_sgl *sgl)
{
	if (likely(sgl->nr == 1 && sgl->seg[0].held))
		sgl->nr = 0;
	else if (sgl->nr)
		vrnic_sgl_put_all(sgl);
}

/* May pages of the list be missing? */
static inline bool vrnic_sgl_on_demand(const struct vrnic_sgl *sgl)
{
	unsigned int i;

	if (likely(sgl->nr == 1))
		return sgl->seg[0].on_demand;
	for (i = 0; i < sgl->nr; i++)
		if (unlikely(sgl->seg[i].on_demand))
			return true;
	return false;
}

/**
 * vrnic_sgl_ready() - may a run use the bytes at the position now?
 * @sgl: list
 * @n: bytes, of which the list has that many left; set to how many may be used until the list is
 *	put. If some may not, they are being brought in, and the run has to try again later
 * @need: bytes of them without which the run can do nothing
 * @write: to write to them; else to read
 * @wait: the operation's. If another operation uses it meanwhile, this one asks once more
 *
 * Return: 0, or enum vrnic_vendor_err: one of the bytes that are needed cannot be had.
 */
static inline int vrnic_sgl_ready(struct vrnic_sgl *sgl, u64 *n, u64 need, bool write,
				  struct vrnic_page_wait *wait)
{
	return likely(!vrnic_sgl_on_demand(sgl)) ? 0 : vrnic_sgl_await(sgl, n, need, write, wait);
}

/**
 * vrnic_sgl_ready_all() - may a run use all of the next bytes now?
 * @sgl: list
 * @n: bytes, of which the list has that many left
 * @write: to write to them; else to read
 * @wait: as of vrnic_sgl_ready()
 *
 * Return: 0, -EAGAIN (try again later), or enum vrnic_vendor_err.
 */
static inline int vrnic_sgl_ready_all(struct vrnic_sgl *sgl, u64 n, bool write,
				      struct vrnic_page_wait *wait)
{
	u64 some = n;
	int verr = vrnic_sgl_ready(sgl, &some, n, write, wait);

	return verr ?: some < n ? -EAGAIN : 0;
}

#endif /* VRNIC_SEG_H */
