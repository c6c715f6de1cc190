// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Finds the memory that keys name, and copies.
 *
 * A process or a peer chose every address, length and key here. A function gets private copies of
 * them as arguments, checks them before it uses them, and compares in a way that cannot overflow.
 * Memory that was found stays usable until it is put: the reference on the region keeps its pages.
 *
 * Checks return 0, the enum vrnic_vendor_err that says what is wrong, or -EAGAIN if the process's
 * memory is changing: mem/odp.c. Then the run has to try again later.
 */

#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "lib/ids_find.h"
#include "mem/mem.h"
#include "mem/mw.h"
#include "mem/near.h"
#include "mem/odp.h"
#include "mem/seg.h"
#include "vrnic.h"

static void *key_entry(struct vrnic_dev *dev, u32 key)
{
	return vrnic_ids_find(&dev->keys, key >> 8);
}

/**
 * vrnic_mr_get() - take a reference on a region that was found by a key
 * @mr: region; the caller holds the RCU read lock under which it was found
 *
 * Return: false if the region is about to be freed, or is not valid.
 */
bool vrnic_mr_get(struct vrnic_mr *mr)
{
	if (!refcount_inc_not_zero(&mr->refs))
		return false;
	/*
	 * Pairs with the barrier in vrnic_fast_invalidate(): either that sees this reference, or we
	 * see that @valid is cleared.
	 */
	smp_mb__after_atomic();
	/* pairs with the release in vrnic_mr_fast_reg(): keys and bounds are read after @valid */
	if (smp_load_acquire(&mr->valid))
		return true;
	vrnic_mr_put(mr);
	return false;
}

static __always_inline void seg_set(struct vrnic_seg *seg, struct vrnic_mr *mr, bool held,
				    u64 addr, u64 len)
{
	enum vrnic_mr_kind kind = mr->kind;

	seg->mr = mr;
	seg->held = held;
	seg->on_demand = kind == VRNIC_MR_ODP;
	seg->null = false;
	seg->kva = kind == VRNIC_MR_DMA ? (void *)(uintptr_t)addr : NULL;
	seg->off = addr - mr->iova + mr->offset;
	seg->len = len;
	seg->pieces = NULL;
}

/*
 * Describe the memory in @seg, which takes over the caller's reference on @mr; or put the
 * reference. The caller has compared the key with that of @mr, which does not change while @mr is
 * valid.
 */
static int mr_seg_open(struct vrnic_mr *mr, bool key_fits, struct ib_pd *pd,
		       u64 addr, u64 len, int access, struct vrnic_seg *seg)
{
	int verr = VRNIC_VERR_KEY;

	if (key_fits)
		verr = vrnic_mr_check(mr, pd, addr, len, access);
	if (verr) {
		vrnic_mr_put(mr);
		return verr;
	}
	seg_set(seg, mr, false, addr, len);
	return 0;
}

/* Has the run a region for @key? */
static __always_inline bool held_fits(const struct vrnic_held *held, u32 key)
{
	return held && vrnic_held_fits(held, key);
}

/* Describe the memory in @seg: it is in the region that the run keeps. Return: 0 or the error. */
static __always_inline int held_open(const struct vrnic_held *held, struct ib_pd *pd, u64 addr,
				     u64 len, int access, struct vrnic_seg *seg)
{
	int verr = vrnic_mr_check(held->mr, pd, addr, len, access);

	if (likely(!verr))
		seg_set(seg, held->mr, true, addr, len);
	return verr;
}

/* Let @held take over the reference of @seg on its region, unless @held has a region already. */
static void held_keep(struct vrnic_held *held, u32 key, struct vrnic_seg *seg)
{
	if (!held || held->mr)
		return;
	held->mr = seg->mr;
	held->key = key;
	seg->held = true;
}

void vrnic_held_put(struct vrnic_held *held)
{
	if (held->mr)
		vrnic_mr_put(held->mr);
	held->mr = NULL;
}

/* As vrnic_mr_get(), with the reason. @mr: region, or NULL if the key names none */
static int region_get(struct vrnic_mr *mr)
{
	if (!mr)
		return VRNIC_VERR_KEY;
	if (vrnic_mr_get(mr))
		return 0;
	/* pages are being taken out of its table: mem/odp.c */
	return mr->kind == VRNIC_MR_ODP && !READ_ONCE(mr->closing) ? -EAGAIN : VRNIC_VERR_KEY;
}

/* Find the region that @key names, and take a reference. */
static int key_region_get(struct vrnic_dev *dev, u32 key, struct vrnic_mr **mr)
{
	int verr;

	rcu_read_lock();
	*mr = key_entry(dev, key);
	verr = xa_pointer_tag(*mr) ? VRNIC_VERR_KEY : region_get(*mr);
	rcu_read_unlock();
	return verr;
}

/**
 * vrnic_held_find() - find the region of a key, and keep it
 * @held: keeps no region yet; nor after this, if there is none that @user could use
 * @user: queue pair on whose behalf the key is used
 * @key: key that the user claims
 * @remote: @key has to be a remote key, not a local one
 */
void vrnic_held_find(struct vrnic_held *held, const struct vrnic_key_user *user, u32 key,
		     bool remote)
{
	struct vrnic_mr *mr;

	if (key_region_get(user->dev, key, &mr))
		return;
	if (mr->ibmr.pd != user->pd || key != (remote ? mr->rkey : mr->lkey)) {
		vrnic_mr_put(mr);
		return;
	}
	held->mr = mr;
	held->key = key;
}

/* What is written to a null region goes here, from all runs at once. Nobody reads it. */
static u8 sink[PAGE_SIZE] __page_aligned_bss;

/* The null region: any bytes of it, from any address on. @access tells whether they are written. */
static void seg_set_null(struct vrnic_seg *seg, u64 len, int access)
{
	*seg = (struct vrnic_seg){
		.held = true,	/* there is nothing to put */
		.null = true,
		.kva = access & IB_ACCESS_LOCAL_WRITE ? sink : page_address(ZERO_PAGE(0)),
		.len = len,
	};
}

/* Look the region up. Not inline, so that what finds it in @held saves no registers. */
static noinline int seg_region(struct vrnic_dev *dev, struct ib_pd *pd, u32 key, bool remote,
			       u64 addr, u64 len, int access, bool pinned,
			       struct vrnic_held *held, struct vrnic_seg *seg)
{
	struct vrnic_mr *mr;
	int verr;

	if (!len) {
		*seg = (struct vrnic_seg){};
		return 0;
	}
	if (held_fits(held, key))
		return held_open(held, pd, addr, len, access, seg);
	if (key == VRNIC_NULL_LKEY && !remote && !pinned) {
		seg_set_null(seg, len, access);
		return 0;
	}
	verr = key_region_get(dev, key, &mr);
	if (verr)
		return verr;
	verr = mr_seg_open(mr, key == (remote ? mr->rkey : mr->lkey), pd, addr, len,
			   access, seg);
	if (verr)
		return verr;
	/* not before: whose key it is not does not learn what kind of region there is */
	if (pinned && (mr->kind == VRNIC_MR_ODP || mr->kind == VRNIC_MR_GAPS)) {
		vrnic_seg_put(seg);
		return VRNIC_VERR_ACCESS;
	}
	held_keep(held, key, seg);
	return 0;
}

/**
 * vrnic_seg_region() - find the memory that a region's key names, for a native operation
 * @dev: device
 * @pd: protection domain that the region has to have
 * @key: key that a user or a peer claims
 * @remote: @key has to be a remote key, not a local one
 * @addr: address
 * @len: bytes; no key is needed for 0 bytes
 * @access: IB_ACCESS_* that the operation needs
 * @held: where the run keeps a region for keys of this kind, or NULL
 * @seg: to be filled in; the caller has to put it
 *
 * Native operations may hold memory for long, so they refuse regions with pages on demand. They
 * know no null region either, and want a table of pages.
 *
 * Return: 0 or enum vrnic_vendor_err.
 */
int vrnic_seg_region(struct vrnic_dev *dev, struct ib_pd *pd, u32 key,
		     bool remote, u64 addr, u64 len, int access,
		     struct vrnic_held *held, struct vrnic_seg *seg)
{
	int verr = seg_region(dev, pd, key, remote, addr, len, access, true, held, seg);

	return verr == -EAGAIN ? VRNIC_VERR_ACCESS : verr;
}

static __always_inline int seg_local(const struct vrnic_key_user *user,
				     const struct vrnic_sge *sge, int access,
				     struct vrnic_held *held, struct vrnic_seg *seg)
{
	if (likely(held_fits(held, sge->lkey) && sge->length))
		return held_open(held, user->pd, sge->addr, sge->length, access, seg);
	return seg_region(user->dev, user->pd, sge->lkey, false, sge->addr, sge->length, access,
			  false, held, seg);
}

/**
 * vrnic_seg_local() - find the memory of a local segment
 * @user: queue pair with the request; the protection domain has to match
 * @sge: segment, from a private copy
 * @access: IB_ACCESS_LOCAL_WRITE or 0
 * @held: where the run keeps a region for local keys, or NULL
 * @seg: to be filled in; the caller has to put it
 *
 * Return: 0, -EAGAIN or enum vrnic_vendor_err.
 */
int vrnic_seg_local(const struct vrnic_key_user *user, const struct vrnic_sge *sge,
		    int access, struct vrnic_held *held, struct vrnic_seg *seg)
{
	return seg_local(user, sge, access, held, seg);
}

/* vrnic_seg_remote(), for a key that the run has not used yet: of a region, or of a window. */
static noinline int seg_remote(const struct vrnic_key_user *user, u32 rkey, u64 addr, u64 len,
			       int access, struct vrnic_held *held, struct vrnic_seg *seg)
{
	struct vrnic_mr *mr;
	void *entry;
	int verr;

	if (!len) {
		*seg = (struct vrnic_seg){};
		return 0;
	}
	rcu_read_lock();
	entry = key_entry(user->dev, rkey);
	if (xa_pointer_tag(entry)) {
		verr = vrnic_mw_open(user, xa_untag_pointer(entry), rkey, addr,
				     len, access, seg);
		rcu_read_unlock();
		return verr;
	}
	mr = entry;
	verr = region_get(mr);
	rcu_read_unlock();
	if (verr)
		return verr;
	verr = mr_seg_open(mr, mr->rkey == rkey, user->pd, addr, len, access, seg);
	if (!verr)
		held_keep(held, rkey, seg);
	return verr;
}

/**
 * vrnic_seg_remote() - find the memory that a requester names
 * @user: queue pair of the target, whose protection domain has the memory
 * @rkey: key that the requester claims
 * @addr: address
 * @len: bytes; no key is needed for 0 bytes (IBTA C9-88)
 * @access: IB_ACCESS_REMOTE_* or flush right that the operation needs
 * @held: where the run keeps a region for remote keys, or NULL
 * @seg: to be filled in; the caller has to put it
 *
 * Return: 0, -EAGAIN or enum vrnic_vendor_err.
 */
int vrnic_seg_remote(const struct vrnic_key_user *user, u32 rkey, u64 addr, u64 len,
		     int access, struct vrnic_held *held, struct vrnic_seg *seg)
{
	if (likely(held_fits(held, rkey) && len))
		return held_open(held, user->pd, addr, len, access, seg);
	return seg_remote(user, rkey, addr, len, access, held, seg);
}

/**
 * vrnic_seg_whole() - find the whole region that a requester names by a key alone
 * @user: queue pair of the target
 * @rkey: key that the requester claims; must be of a region, not of a window
 * @access: rights that the operation needs
 * @seg: to be filled in; the caller has to put it
 *
 * Return: 0, -EAGAIN or enum vrnic_vendor_err.
 */
int vrnic_seg_whole(const struct vrnic_key_user *user, u32 rkey, int access,
		    struct vrnic_seg *seg)
{
	struct vrnic_mr *mr;
	int verr = key_region_get(user->dev, rkey, &mr);

	if (verr)
		return verr;
	return mr_seg_open(mr, mr->rkey == rkey, user->pd, mr->iova, mr->length,
			   access, seg);
}

void vrnic_seg_put(struct vrnic_seg *seg)
{
	if (seg->mr && !seg->held)
		vrnic_mr_put(seg->mr);
	seg->mr = NULL;
}

/* vrnic_seg_run(), for a region that has no table of pages. */
static noinline void *run_without_pages(const struct vrnic_mr *mr, u64 off, u64 want, u64 *len)
{
	if (mr->kind == VRNIC_MR_GAPS)
		return vrnic_extent_run(mr, off, want, len);
	return vrnic_odp_run(mr, off, want, len);
}

/* vrnic_seg_run(), within the copy of a few bytes, too: a call would take as long. */
static __always_inline void *run_at(const struct vrnic_seg *seg, u64 pos, u64 want,
				    u64 *len)
{
	u64 off = seg->off + pos;
	u64 page = off >> PAGE_SHIFT;
	void **pages, *start;
	u64 run;

	if (seg->kva) {
		*len = seg->null ? min_t(u64, want, PAGE_SIZE) : want;
		return seg->null ? seg->kva : seg->kva + pos;
	}
	pages = seg->mr->pages;
	if (unlikely(!pages))
		return run_without_pages(seg->mr, off, want, len);
	start = pages[page] + offset_in_page(off);
	run = PAGE_SIZE - offset_in_page(off);
	while (run < want && pages[page + 1] == pages[page] + PAGE_SIZE) {
		run += PAGE_SIZE;
		page++;
	}
	*len = min(run, want);
	return start;
}

/**
 * vrnic_seg_run() - find the longest piece of a segment that is contiguous in kernel memory
 * @seg: segment
 * @pos: offset in the segment; less than its length
 * @want: bytes that the caller can use; no more than the segment has left
 * @len: set to the bytes at the returned address, 1 to @want
 *
 * Return: kernel address of byte @pos.
 */
void *vrnic_seg_run(const struct vrnic_seg *seg, u64 pos, u64 want, u64 *len)
{
	return run_at(seg, pos, want, len);
}

static noinline int sgl_local_many(const struct vrnic_key_user *user, const struct vrnic_sge *sge,
				   u32 nr, int access, struct vrnic_held *held,
				   struct vrnic_sgl *sgl)
{
	int verr;

	for (sgl->nr = 0; sgl->nr < nr; sgl->nr++) {
		verr = vrnic_seg_local(user, &sge[sgl->nr], access, held,
				       &sgl->seg[sgl->nr]);
		if (verr) {
			vrnic_sgl_put(sgl);
			return verr;
		}
	}
	return 0;
}

/**
 * vrnic_sgl_local() - find the memory of a list of local segments
 * @user: queue pair with the request; the protection domain has to match
 * @sge: segments, from a private copy
 * @nr: number of segments; at most VRNIC_MAX_SGE
 * @access: IB_ACCESS_LOCAL_WRITE or 0
 * @held: where the run keeps a region for local keys, or NULL
 * @sgl: to be filled in; the caller has to put it, but not on failure
 *
 * Return: 0, -EAGAIN or enum vrnic_vendor_err.
 */
int vrnic_sgl_local(const struct vrnic_key_user *user, const struct vrnic_sge *sge, u32 nr,
		    int access, struct vrnic_held *held, struct vrnic_sgl *sgl)
{
	int verr;

	sgl->cur = 0;
	sgl->pos = 0;
	if (unlikely(nr != 1))
		return sgl_local_many(user, sge, nr, access, held, sgl);
	verr = seg_local(user, sge, access, held, &sgl->seg[0]);
	sgl->nr = !verr;
	return verr;
}

/* Make a list of one piece of kernel memory, which need not be put. */
void vrnic_sgl_kva(struct vrnic_sgl *sgl, void *kva, u64 len)
{
	sgl->nr = 1;
	sgl->cur = 0;
	sgl->pos = 0;
	sgl->seg[0] = (struct vrnic_seg){ .kva = kva, .len = len };
}

/* vrnic_sgl_ready(), if a segment has its pages on demand. */
int vrnic_sgl_await(struct vrnic_sgl *sgl, u64 *n, u64 need, bool write,
		    struct vrnic_page_wait *wait)
{
	u64 pos = sgl->pos, done = 0, want, some;
	const struct vrnic_seg *seg;
	unsigned int i;
	int verr;

	for (i = sgl->cur; done < *n; i++, pos = 0) {
		seg = &sgl->seg[i];
		want = min(*n - done, seg->len - pos);
		some = want;
		verr = !seg->on_demand ? 0 :
		       vrnic_odp_ready(seg->mr, seg->off + pos, &some,
				       need > done ? need - done : 0, write, wait);
		if (verr)
			return verr;
		done += some;
		if (some < want)
			break;
	}
	*n = done;
	if (done >= need)
		wait->odp = NULL;
	return 0;
}

/* vrnic_sgl_put(), of any list. */
void vrnic_sgl_put_all(struct vrnic_sgl *sgl)
{
	unsigned int i;

	for (i = 0; i < sgl->nr; i++)
		vrnic_seg_put(&sgl->seg[i]);
	sgl->nr = 0;
}

/* Move the position of the list on by @n bytes; the list has that many left. */
void vrnic_sgl_skip(struct vrnic_sgl *sgl, u64 n)
{
	while (n && n >= sgl->seg[sgl->cur].len - sgl->pos) {
		n -= sgl->seg[sgl->cur].len - sgl->pos;
		sgl->cur++;
		sgl->pos = 0;
	}
	sgl->pos += n;
}

/* The segment with the next byte. */
static const struct vrnic_seg *sgl_seg(struct vrnic_sgl *sgl)
{
	while (sgl->pos == sgl->seg[sgl->cur].len) {
		sgl->cur++;
		sgl->pos = 0;
	}
	return &sgl->seg[sgl->cur];
}

static __always_inline void *sgl_run(struct vrnic_sgl *sgl, u64 want, u64 *len)
{
	const struct vrnic_seg *seg = sgl_seg(sgl);

	return run_at(seg, sgl->pos, min(want, seg->len - sgl->pos), len);
}

/**
 * vrnic_sgl_run() - find the contiguous bytes at the position
 * @sgl: list without pieces; the caller moves its position on, within the run
 * @want: bytes that the caller can use; the list has that many left
 * @len: set to the bytes of the run, 1 to @want
 *
 * Return: kernel address of the run.
 */
void *vrnic_sgl_run(struct vrnic_sgl *sgl, u64 want, u64 *len)
{
	return sgl_run(sgl, want, len);
}

/**
 * vrnic_sgl_read() - copy the bytes at the position, and move it on
 * @src: list; it has at least @n bytes left
 * @to: kernel memory
 * @n: bytes
 */
void vrnic_sgl_read(struct vrnic_sgl *src, void *to, u64 n)
{
	struct vrnic_pieces *pieces;
	const struct vrnic_seg *seg;
	const void *from;
	u64 len;

	for (; n; n -= len, to += len, src->pos += len) {
		seg = sgl_seg(src);
		pieces = seg->pieces;
		if (pieces) {
			len = min(n, seg->len - src->pos);
			pieces->read(pieces, src->pos, to, len);
		} else {
			from = vrnic_sgl_run(src, n, &len);
			vrnic_memcpy(to, from, len);
		}
	}
}

/**
 * vrnic_copy_final() - copy the bytes that a message ends with
 * @dst: target
 * @src: source
 * @n: bytes, at least 1
 *
 * Programs poll on the end of a message, so it has to become visible last. Copies all but the last
 * naturally aligned unit of up to 8 bytes, then stores this unit with one store. An aligned message
 * of 1, 2, 4 or 8 bytes is one such unit.
 */
void vrnic_copy_final(void *dst, const void *src, size_t n)
{
	unsigned long end = (unsigned long)dst + n;
	size_t unit = min_t(size_t, 8, end & -end);

	if (likely(n == sizeof(u64) && unit == sizeof(u64))) {
		/* as below */
		smp_wmb();
		WRITE_ONCE(*(u64 *)dst, get_unaligned((const u64 *)src));
		return;
	}
	while (unit > n)
		unit >>= 1;
	n -= unit;
	if (n)
		vrnic_memcpy(dst, src, n);
	dst += n;
	src += n;
	/* pairs with whatever the polling program uses to order its loads */
	smp_wmb();
	switch (unit) {
	case 8:
		WRITE_ONCE(*(u64 *)dst, get_unaligned((const u64 *)src));
		break;
	case 4:
		WRITE_ONCE(*(u32 *)dst, get_unaligned((const u32 *)src));
		break;
	case 2:
		WRITE_ONCE(*(u16 *)dst, get_unaligned((const u16 *)src));
		break;
	default:
		WRITE_ONCE(*(u8 *)dst, *(const u8 *)src);
	}
}

static void seg_copy_run(void *to, const void *from, u64 n, bool last)
{
	if (last)
		vrnic_copy_final(to, from, n);
	else
		vrnic_memcpy(to, from, n);
}

/*
 * Find the bytes at the position, if they are in one segment and one page, or in memory of the
 * kernel: those of most messages are. Return: their address, or NULL.
 */
static __always_inline void *sgl_near(const struct vrnic_sgl *sgl, u64 n)
{
	const struct vrnic_seg *seg = &sgl->seg[sgl->cur];
	u64 off = seg->off + sgl->pos;
	void **pages;

	if (n > seg->len - sgl->pos)
		return NULL;
	if (seg->kva)
		return seg->null ? NULL : seg->kva + sgl->pos;
	pages = seg->mr->pages;
	if (!pages || offset_in_page(off) + n > PAGE_SIZE)
		return NULL;
	return pages[off >> PAGE_SHIFT] + offset_in_page(off);
}

/*
 * vrnic_sgl_copy(), for bytes that may lie in many pages and segments. The contiguous bytes of each
 * list are looked up when the previous ones of this list are used up: those of the other list may
 * reach much farther.
 */
static noinline void sgl_copy_runs(struct vrnic_sgl *dst, struct vrnic_sgl *src, u64 n,
				   bool final)
{
	u64 dst_len = 0, src_len = 0, len;
	void *to, *from;

	for (; n; n -= len) {
		if (!dst_len)
			to = sgl_run(dst, n, &dst_len);
		if (!src_len)
			from = sgl_run(src, n, &src_len);
		len = min(dst_len, src_len);
		seg_copy_run(to, from, len, final && len == n);
		dst->pos += len;
		src->pos += len;
		to += len;
		from += len;
		dst_len -= len;
		src_len -= len;
	}
}

/**
 * vrnic_sgl_copy() - copy from one list to another
 * @dst: target; its position moves on
 * @src: source; its position moves on
 * @n: bytes; both lists have that many
 * @final: the message ends with these bytes
 *
 * Copies in ascending order, each byte once.
 */
void vrnic_sgl_copy(struct vrnic_sgl *dst, struct vrnic_sgl *src, u64 n,
		    bool final)
{
	void *to, *from;

	if (unlikely(!n))
		return;
	to = sgl_near(dst, n);
	from = sgl_near(src, n);
	if (unlikely(!to || !from)) {
		sgl_copy_runs(dst, src, n, final);
		return;
	}
	dst->pos += n;
	src->pos += n;
	seg_copy_run(to, from, n, final);
}

/**
 * vrnic_sgl_write() - copy from one piece of kernel memory to a list
 * @dst: target; its position moves on
 * @from: source
 * @n: bytes; @dst has that many
 * @final: the message ends with these bytes
 */
void vrnic_sgl_write(struct vrnic_sgl *dst, const void *from, u64 n, bool final)
{
	u64 len;
	void *to;

	while (n) {
		to = vrnic_sgl_run(dst, n, &len);
		seg_copy_run(to, from, len, final && len == n);
		dst->pos += len;
		from += len;
		n -= len;
	}
}

/**
 * vrnic_seg_read() - copy from the start of a segment to kernel memory
 * @src: source; its bytes do not lie in pieces
 * @to: target
 * @n: bytes
 */
void vrnic_seg_read(const struct vrnic_seg *src, void *to, u64 n)
{
	u64 done, len;
	void *from;

	for (done = 0; done < n; done += len) {
		from = vrnic_seg_run(src, done, n - done, &len);
		memcpy(to + done, from, len);
	}
}

/**
 * vrnic_seg_copy() - copy from one segment to another
 * @dst: target
 * @dst_pos: offset in the target
 * @src: source
 * @src_pos: offset in the source
 * @n: bytes; both segments have that many from there on
 * @final: the message ends with these bytes
 */
void vrnic_seg_copy(const struct vrnic_seg *dst, u64 dst_pos,
		    const struct vrnic_seg *src, u64 src_pos, u64 n, bool final)
{
	u64 dst_len = 0, src_len = 0, len;
	void *to, *from;

	for (; n; n -= len) {
		if (!dst_len)
			to = vrnic_seg_run(dst, dst_pos, n, &dst_len);
		if (!src_len)
			from = vrnic_seg_run(src, src_pos, n, &src_len);
		len = min(dst_len, src_len);
		seg_copy_run(to, from, len, final && len == n);
		dst_pos += len;
		src_pos += len;
		to += len;
		from += len;
		dst_len -= len;
		src_len -= len;
	}
}

#define USER_CHUNK	SZ_64K

/*
 * Copy pieces of up to USER_CHUNK until one has a page that is not present. Return: bytes of the
 * pieces before this one, of which some bytes may have been copied, too.
 */
static u64 copy_user(const struct vrnic_seg *seg, u64 pos, u64 user, u64 n,
		     bool to_user)
{
	u64 done, len;
	void *kva;

	for (done = 0; done < n; done += len) {
		kva = vrnic_seg_run(seg, pos + done,
				    min_t(u64, n - done, USER_CHUNK), &len);
		if (to_user ? copy_to_user_nofault(u64_to_user_ptr(user + done),
						   kva, len) :
			      copy_from_user_nofault(kva,
						     u64_to_user_ptr(user + done),
						     len))
			break;
	}
	return done;
}

/*
 * Copy the last bytes of a message from the process. Programs may poll on them, so fetch them first
 * and let vrnic_copy_final() store them. Return: false if a page is not present.
 */
static bool copy_user_final(const struct vrnic_seg *dst, u64 pos, u64 user,
			    u64 n)
{
	u64 word;
	struct vrnic_seg src = { .kva = &word, .len = n };

	if (copy_from_user_nofault(&word, u64_to_user_ptr(user), n))
		return false;
	vrnic_seg_copy(dst, pos, &src, 0, n, true);
	return true;
}

/**
 * vrnic_seg_copy_user() - copy between a segment and memory of the current process
 * @seg: segment
 * @user: address in the process, unchecked
 * @n: bytes; the segment has that many
 * @to_user: copy to the process; else from the process
 * @final: the message ends with these bytes
 *
 * Does not wait for pages: stops at or before the first page that is not present.
 *
 * Return: number of bytes at the beginning that were copied.
 */
u64 vrnic_seg_copy_user(const struct vrnic_seg *seg, u64 user, u64 n,
			bool to_user, bool final)
{
	u64 tail = final && !to_user ? min_t(u64, n, sizeof(u64)) : 0;
	u64 done = copy_user(seg, 0, user, n - tail, to_user);

	if (tail && done == n - tail &&
	    copy_user_final(seg, done, user + done, tail))
		done = n;
	return done;
}

/**
 * vrnic_seg_word() - find a word at the start of a segment, for atomics of the CPU
 * @seg: segment
 * @width: length of the word: 4 or 8 bytes
 *
 * The owner of a region chooses its iova, so an aligned remote address may be unaligned in memory.
 * Where a list of extents makes the region, the bytes of a word may even lie in two places.
 *
 * Return: kernel address of the word, or NULL if that address is not a multiple of @width, or only
 * some of the word is there.
 */
void *vrnic_seg_word(const struct vrnic_seg *seg, unsigned int width)
{
	u64 run;
	void *word = vrnic_seg_run(seg, 0, width, &run);

	return run == width && IS_ALIGNED((unsigned long)word, width) ? word : NULL;
}

/* Sum of the lengths of a few segments. Lengths have 32 bits, so the sum cannot overflow. */
u64 vrnic_sge_total(const struct vrnic_sge *sge, u32 nr)
{
	u64 total = 0;
	u32 i;

	for (i = 0; i < nr; i++)
		total += sge[i].length;
	return total;
}
