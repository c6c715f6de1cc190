// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Typed transfers: S3.3 to S3.6 in Documentation/native.rst. A transfer copies the chunks that the
 * types of both sides have in common. Each struct vrnic_common_row describes a row of such chunks.
 * No mode needs a buffer at the target. The mode says how a transfer finds the rows:
 *
 *	SAME	follow the one type that describes both sides
 *	CHUNKS	read the table of the pair of types; if there is none, follow
 *		both types side by side
 *	PACKED	follow one type at a time: copy from the origin into a buffer of
 *		the origin, and from there to the places that the target's type says
 *
 * SAME and CHUNKS copy straight from the origin's pages to the target's pages.
 *
 * Chunks are copied in the order of the types. Where chunks of the target overlap, the last one
 * counts. The last byte of the transfer becomes visible last. A chunk needs no check of its own:
 * the span of a type is computed when the type is made, and the caller checks it against the
 * region.
 */

#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "lib/type_rows.h"
#include "mem/mem.h"
#include "mem/seg.h"
#include "native/type.h"
#include "vrnic.h"

/* PACKED: most bytes that are packed at a time. */
#define BOUNCE_BYTES	SZ_64K

/* Tables with up to so many rows are fast, however short their rows are: is_shredded(). */
#define SHREDS		64

/* Chunks up to this size are copied in loops over many chunks, larger ones one by one. */
#define CHUNK_MAX	PAGE_SIZE

/* If chunks are farther apart than this, copy_paged() looks up the page of each. */
#define PAGED_STRIDE	512

/* Chunks of up to BATCH_BYTES may be loaded in batches of BATCH before they are stored. */
#define BATCH		16
#define BATCH_BYTES	16

/* For fewer chunks than this, a loop that is specialised for their size does not pay. */
#define FEW		4

/* Most bytes for which to look for contiguous pages. */
#define LOOK_AHEAD	SZ_64K

/**
 * struct view - memory of one side, and a window: bytes of it that are contiguous in the kernel
 * @seg: memory
 * @base: offset that the side's type gives the memory's first byte
 * @start: offset that the side's type gives the window's first byte
 * @size: number of bytes in the window
 * @mem: kernel address of the window's first byte
 * @side: the side
 */
struct view {
	const struct vrnic_seg *seg;
	u64 base;
	u64 start;
	u64 size;
	u8 *mem;
	enum vrnic_side side;
};

/* struct lane - a loop's position in a window, and the last position at which a chunk fits */
struct lane {
	u8 *mem;
	u64 at;
	u64 last;
	u64 stride;
};

/* struct paged - position of a loop that looks up the page of each chunk: copy_paged() */
struct paged {
	void **pages;
	u64 off;
	u64 stride;
};

static struct view view_of(const struct vrnic_seg *seg, enum vrnic_side side)
{
	return (struct view){ .seg = seg, .side = side };
}

/* Bytes that a window should have for the sake of the later chunks of @row. */
static u64 look_ahead(const struct vrnic_common_row *row, enum vrnic_side side)
{
	u64 stride = row->side[side].stride;

	return row->count > 1 && stride - 1 < PAGE_SIZE ? LOOK_AHEAD : 0;
}

/*
 * Move the window to the chunk at @at. The window begins with the first byte of a page, as chunks
 * may descend. It may exceed the segment, but chunks do not. Return: false if the chunk is not
 * contiguous.
 */
static noinline bool window_move(struct view *v,
				 const struct vrnic_common_row *row, u64 at)
{
	u64 off = v->seg->off + at - v->base, in_page = offset_in_page(off);
	u64 want = max(in_page + row->bytes, look_ahead(row, v->side));
	u64 page = off >> PAGE_SHIFT, last;
	void **pages;

	if (v->seg->kva) {
		v->mem = v->seg->kva;
		v->start = v->base;
		v->size = v->seg->len;
		return true;
	}
	last = (v->seg->off + v->seg->len - 1) >> PAGE_SHIFT;
	pages = v->seg->mr->pages;
	v->mem = pages[page];
	v->start = at - in_page;
	v->size = PAGE_SIZE;
	while (v->size < want && page < last &&
	       pages[page + 1] == pages[page] + PAGE_SIZE) {
		v->size += PAGE_SIZE;
		page++;
	}
	return in_page + row->bytes <= v->size;
}

static __always_inline bool lane_open(struct view *v,
				      const struct vrnic_common_row *row,
				      u64 chunk, struct lane *lane)
{
	u64 at = row->side[v->side].offset +
		 chunk * row->side[v->side].stride;

	if (v->size < row->bytes || at - v->start > v->size - row->bytes)
		if (!window_move(v, row, at))
			return false;
	lane->mem = v->mem;
	lane->at = at - v->start;
	lane->last = v->size - row->bytes;
	lane->stride = row->side[v->side].stride;
	return true;
}

/* Copy in words as far as possible. If @n is constant, this compiles to a few moves. */
static __always_inline void copy_chunk(u8 *to, const u8 *from, u64 n)
{
	if (!__builtin_constant_p(n) && n > 64) {
		vrnic_memcpy(to, from, n);
		return;
	}
	for (; n >= 8; n -= 8, to += 8, from += 8)
		put_unaligned(get_unaligned((const u64 *)from), (u64 *)to);
	if (n & 4) {
		put_unaligned(get_unaligned((const u32 *)from), (u32 *)to);
		to += 4;
		from += 4;
	}
	if (n & 2) {
		put_unaligned(get_unaligned((const u16 *)from), (u16 *)to);
		to += 2;
		from += 2;
	}
	if (n & 1)
		*to = *from;
}

/*
 * Is a whole batch of chunks in the lane's window? Yes if the first and the last chunk are. A
 * position below the window wraps to one far above it, so one comparison for each is enough.
 */
static __always_inline bool lane_has_batch(const struct lane *lane)
{
	return lane->at <= lane->last &&
	       lane->at + (BATCH - 1) * lane->stride <= lane->last;
}

/*
 * Copy whole batches, as long as both lanes stay in their windows. Return: number of chunks copied.
 * Lanes are passed by value, so that the compiler knows that stores do not change them.
 */
static __always_inline u64 copy_batches(struct lane to, struct lane from,
					u64 bytes, u64 n)
{
	u8 some[BATCH * BATCH_BYTES];
	u64 done = 0;
	int i;

	for (; n - done >= BATCH && lane_has_batch(&to) && lane_has_batch(&from);
	     done += BATCH) {
		for (i = 0; i < BATCH; i++, from.at += from.stride)
			copy_chunk(some + i * bytes, from.mem + from.at, bytes);
		for (i = 0; i < BATCH; i++, to.at += to.stride)
			copy_chunk(to.mem + to.at, some + i * bytes, bytes);
	}
	return done;
}

/* Copy 1 to @n chunks, as long as both lanes stay in their windows. Return: number of chunks. */
static __always_inline u64 copy_lanes(struct lane to, struct lane from,
				      u64 bytes, u64 n)
{
	u64 left = n;

	do {
		copy_chunk(to.mem + to.at, from.mem + from.at, bytes);
		to.at += to.stride;
		from.at += from.stride;
	} while (--left && to.at <= to.last && from.at <= from.last);
	return n - left;
}

/*
 * Two lanes with the same stride may evict each other's cache lines and TLB entries at every chunk.
 * So load a batch from one lane before storing it to the other.
 */
static __always_inline u64 copy_small(struct lane to, struct lane from,
				      u64 bytes, u64 n)
{
	u64 done = 0;

	if (to.stride == from.stride)
		done = copy_batches(to, from, bytes, n);
	return done ?: copy_lanes(to, from, bytes, n);
}

static u64 copy_lane_run(struct lane to, struct lane from, u64 bytes, u64 n)
{
	switch (bytes) {
	case 4:
		return copy_small(to, from, 4, n);
	case 8:
		return copy_small(to, from, 8, n);
	case 16:
		return copy_small(to, from, 16, n);
	default:
		return copy_lanes(to, from, bytes, n);
	}
}

/* Copy @n bytes of the current chunk, even if they are not contiguous. */
static void copy_piece(const struct vrnic_walk *w, struct view *dst,
		       struct view *src, u64 n, bool last)
{
	u64 to = w->row->side[dst->side].offset +
		 w->chunk * w->row->side[dst->side].stride + w->skip;
	u64 from = w->row->side[src->side].offset +
		   w->chunk * w->row->side[src->side].stride + w->skip;

	vrnic_seg_copy(dst->seg, to - dst->base, src->seg, from - src->base, n,
		       last);
}

/*
 * A window would have few of the chunks that are far apart, so copy_paged() looks up the page of
 * each. Return: false if a chunk might cross a page boundary.
 */
static bool paged_open(const struct view *v, const struct vrnic_walk *w,
		       struct paged *p)
{
	u64 stride = w->row->side[v->side].stride;
	u64 unit = w->row->bytes;

	if (v->seg->kva)
		return false;
	p->pages = v->seg->mr->pages;
	p->stride = stride;
	p->off = v->seg->off + w->row->side[v->side].offset +
		 w->chunk * stride - v->base;
	return !((p->off | stride) & (unit - 1));
}

static __always_inline u8 *paged_next(struct paged *p)
{
	u64 off = p->off;

	p->off += p->stride;
	return p->pages[off >> PAGE_SHIFT] + offset_in_page(off);
}

static __always_inline void copy_paged(struct paged to, struct paged from,
				       u64 bytes, u64 n)
{
	u8 some[BATCH * BATCH_BYTES];
	int i;

	for (; n >= BATCH; n -= BATCH) {
		for (i = 0; i < BATCH; i++)
			copy_chunk(some + i * bytes, paged_next(&from), bytes);
		for (i = 0; i < BATCH; i++)
			copy_chunk(paged_next(&to), some + i * bytes, bytes);
	}
	for (; n; n--)
		copy_chunk(paged_next(&to), paged_next(&from), bytes);
}

static bool is_far(u64 stride)
{
	return stride + PAGED_STRIDE > 2 * PAGED_STRIDE;
}

static noinline bool copy_far_chunks(struct vrnic_walk *w, struct view *dst,
				     struct view *src, u64 n)
{
	struct paged to, from;

	if (!is_power_of_2(w->row->bytes) || !paged_open(dst, w, &to) ||
	    !paged_open(src, w, &from))
		return false;
	switch (w->row->bytes) {
	case 4:
		copy_paged(to, from, 4, n);
		break;
	case 8:
		copy_paged(to, from, 8, n);
		break;
	case 16:
		copy_paged(to, from, 16, n);
		break;
	default:
		return false;
	}
	w->chunk += n;
	return true;
}

static void copy_chunks(struct vrnic_walk *w, struct view *dst,
			struct view *src, u64 n)
{
	struct lane to, from;
	u64 done;

	if (n >= FEW && (is_far(w->row->side[0].stride) ||
			 is_far(w->row->side[1].stride)) &&
	    copy_far_chunks(w, dst, src, n))
		return;
	for (; n; n -= done, w->chunk += done) {
		if (lane_open(dst, w->row, w->chunk, &to) &&
		    lane_open(src, w->row, w->chunk, &from)) {
			done = n < FEW ?
			       copy_lanes(to, from, w->row->bytes, n) :
			       copy_lane_run(to, from, w->row->bytes, n);
		} else {
			copy_piece(w, dst, src, w->row->bytes, false);
			done = 1;
		}
	}
}

/* If the row is used up, go to the next one; the caller knows that there is one. */
static void walk_settle(struct vrnic_walk *w)
{
	if (w->chunk < w->row->count)
		return;
	w->chunk = 0;
	if (w->row != &w->own)
		w->row++;
	else
		vrnic_merge_next(&w->merge, &w->own);
}

/*
 * Number of whole chunks of the current row in the next @n bytes, for copy_chunks(). If they are
 * the @final bytes, the last chunk does not count, as copy_piece() has to store its end last.
 */
static u64 whole_chunks(const struct vrnic_walk *w, u64 n, bool final)
{
	u64 bytes = w->row->bytes, left = w->row->count - w->chunk;

	if (w->skip || bytes > CHUNK_MAX)
		return 0;
	left = left * bytes <= n ? left : div64_u64(n, bytes);
	return final && left * bytes == n ? left - 1 : left;
}

static void walk_copy(struct vrnic_walk *w, struct view *dst, struct view *src,
		      u64 n, bool final)
{
	u64 chunks, len;

	while (n) {
		walk_settle(w);
		chunks = whole_chunks(w, n, final);
		if (chunks) {
			copy_chunks(w, dst, src, chunks);
			n -= chunks * w->row->bytes;
			continue;
		}
		len = min(w->row->bytes - w->skip, n);
		copy_piece(w, dst, src, len, final && len == n);
		n -= len;
		w->skip += len;
		if (w->skip == w->row->bytes) {
			w->skip = 0;
			w->chunk++;
		}
	}
}

/* Move on by @n bytes. */
static void walk_skip(struct vrnic_walk *w, u64 n)
{
	u64 chunks, len;

	while (n) {
		walk_settle(w);
		chunks = w->skip ? 0 : min(w->row->count - w->chunk, div64_u64(n, w->row->bytes));
		if (chunks) {
			w->chunk += chunks;
			n -= chunks * w->row->bytes;
			continue;
		}
		len = min(w->row->bytes - w->skip, n);
		n -= len;
		w->skip += len;
		if (w->skip == w->row->bytes) {
			w->skip = 0;
			w->chunk++;
		}
	}
}

/* Pack @n bytes of the origin into the buffer, then put them into place at the target. */
static void packed_copy(struct vrnic_typed *t, struct view *dst,
			struct view *src, u64 n, bool final)
{
	struct vrnic_seg seg = { .kva = t->bounce, .len = n };
	struct view bounce = view_of(&seg, dst->side);

	bounce.base = t->type[dst->side]->rows.bytes - t->left;
	walk_copy(&t->walk[src->side], &bounce, src, n, false);
	bounce = view_of(&seg, src->side);
	bounce.base = t->type[dst->side]->rows.bytes - t->left;
	walk_copy(&t->walk[dst->side], dst, &bounce, n, final);
}

/**
 * vrnic_typed_copy() - copy the next bytes of a transfer
 * @t: transfer
 * @dst: memory of the target, from the lowest byte of its type on
 * @src: memory of the origin, from the lowest byte of its type on
 * @dst_is_remote: the target is the remote side; the same in every call
 * @max: most bytes to copy
 *
 * The segments need not be the same in every call, only describe the same memory.
 *
 * Return: number of bytes copied: the smaller of @max and @t->left.
 */
u64 vrnic_typed_copy(struct vrnic_typed *t, const struct vrnic_seg *dst,
		     const struct vrnic_seg *src, bool dst_is_remote, u64 max)
{
	enum vrnic_side side = dst_is_remote ? VRNIC_SIDE_REMOTE :
					       VRNIC_SIDE_LOCAL;
	struct view to = view_of(dst, side), from = view_of(src, !side);
	u64 n, done = 0;

	for (max = min(max, t->left); done < max; done += n, t->left -= n) {
		n = max - done;
		if (t->mode == VRNIC_TYPED_PACKED) {
			n = min_t(u64, n, BOUNCE_BYTES);
			packed_copy(t, &to, &from, n, n == t->left);
		} else {
			walk_copy(t->walk, &to, &from, n, n == t->left);
		}
	}
	vrnic_count_add(t->type[0]->dev, TYPED_BYTES, done);
	return done;
}

/* Follow both types side by side, which may be the same type. */
static void begin_merge(struct vrnic_typed *t, u32 mode)
{
	t->mode = mode;
	vrnic_merge_begin(&t->walk[0].merge,
			  &t->type[VRNIC_SIDE_LOCAL]->rows,
			  &t->type[VRNIC_SIDE_REMOTE]->rows);
}

static void begin_table(struct vrnic_typed *t, struct vrnic_pair *pair)
{
	t->mode = VRNIC_TYPED_CHUNKS;
	t->pair = pair;
	t->walk[0].row = pair->row;
}

static int begin_packed(struct vrnic_typed *t)
{
	u64 bytes = t->left;
	struct vrnic_rows flat = { .nr = 1, .bytes = bytes, .row = &t->flat };

	t->bounce = vrnic_type_alloc(t->type[0], min_t(u64, bytes, BOUNCE_BYTES));
	if (!t->bounce)
		return -ENOMEM;
	t->mode = VRNIC_TYPED_PACKED;
	t->flat = (struct vrnic_type_row){ .bytes = bytes, .count = 1 };
	vrnic_merge_begin(&t->walk[VRNIC_SIDE_LOCAL].merge,
			  &t->type[VRNIC_SIDE_LOCAL]->rows, &flat);
	vrnic_merge_begin(&t->walk[VRNIC_SIDE_REMOTE].merge, &flat,
			  &t->type[VRNIC_SIDE_REMOTE]->rows);
	return 0;
}

/*
 * Do the two types cut each other into tiny chunks? Then PACKED is faster than the table, as each
 * type alone has long rows of equal chunks.
 */
static bool is_shredded(const struct vrnic_typed *t,
			const struct vrnic_pair *pair)
{
	u64 rows = (u64)t->type[0]->rows.nr + t->type[1]->rows.nr;

	return pair->nr > SHREDS && pair->nr > 2 * rows &&
	       t->left < 32ULL * pair->nr;
}

static struct vrnic_pair *pair_of(struct vrnic_typed *t)
{
	struct vrnic_type *local = t->type[VRNIC_SIDE_LOCAL];
	struct vrnic_type *remote = t->type[VRNIC_SIDE_REMOTE];
	struct vrnic_pair *pair = vrnic_pair_find(local, remote);

	if (pair)
		return pair;
	/* types of few rows may have a long table: one such is a whole run's work */
	t->work = U64_MAX;
	return vrnic_pair_get(local, remote);
}

/* Use the table of the pair if there is one and it is fast; else one of the other modes. */
static int begin_pair(struct vrnic_typed *t, u32 mode)
{
	struct vrnic_pair *pair = pair_of(t);
	enum vrnic_pair_kind kind = pair ? pair->kind : VRNIC_PAIR_LARGE;

	if (kind == VRNIC_PAIR_TABLE &&
	    (mode == VRNIC_TYPED_CHUNKS || !is_shredded(t, pair))) {
		begin_table(t, pair);
		return 0;
	}
	if (pair)
		vrnic_pair_put(pair);
	if (mode == VRNIC_TYPED_CHUNKS)
		begin_merge(t, mode);
	else if (kind == VRNIC_PAIR_SAME)
		begin_merge(t, VRNIC_TYPED_SAME);
	else if (begin_packed(t))
		begin_merge(t, VRNIC_TYPED_CHUNKS);
	return 0;
}

static bool types_are_same(struct vrnic_typed *t)
{
	const struct vrnic_type *a = t->type[0], *b = t->type[1];

	if (a == b)
		return true;
	t->work = ((u64)a->rows.nr + b->rows.nr) * sizeof(struct vrnic_type_row);
	return a->rows.lower == b->rows.lower && vrnic_rows_equal(&a->rows, &b->rows);
}

static int begin_mode(struct vrnic_typed *t, u32 mode)
{
	switch (mode) {
	case VRNIC_TYPED_AUTO:
		if (t->type[0] != t->type[1])
			return begin_pair(t, mode);
		begin_merge(t, VRNIC_TYPED_SAME);
		return 0;
	case VRNIC_TYPED_SAME:
		if (!types_are_same(t))
			return -EINVAL;
		begin_merge(t, mode);
		return 0;
	case VRNIC_TYPED_CHUNKS:
		return begin_pair(t, mode);
	case VRNIC_TYPED_PACKED:
		return begin_packed(t);
	default:
		return -EINVAL;
	}
}

/**
 * vrnic_typed_begin() - start a typed transfer
 * @t: transfer; need not be initialised
 * @local: type of the local memory; this takes over the caller's reference
 * @remote: type of the remote memory; this takes over the caller's reference
 * @mode: enum vrnic_typed_mode, unchecked
 *
 * Whatever it returns, @t->work is what it has cost.
 *
 * Return: 0, undone by vrnic_typed_end(); -EINVAL: there is no such mode, or the mode is SAME and
 * the types differ, or the types have different numbers of bytes; -ENOMEM: no buffer for PACKED. On
 * failure the references on the types are put.
 *
 * Context: process context, may sleep.
 */
int vrnic_typed_begin(struct vrnic_typed *t, struct vrnic_type *local,
		      struct vrnic_type *remote, u32 mode)
{
	int err = -EINVAL;

	*t = (struct vrnic_typed){
		.type = { local, remote },
		.left = local->rows.bytes,
	};
	t->walk[0].row = &t->walk[0].own;
	t->walk[1].row = &t->walk[1].own;
	if (local->rows.bytes == remote->rows.bytes)
		err = begin_mode(t, mode);
	if (err)
		vrnic_typed_end(t);
	return err;
}

/* End a transfer, complete or not; may sleep. */
void vrnic_typed_end(struct vrnic_typed *t)
{
	kvfree(t->bounce);
	if (t->pair)
		vrnic_pair_put(t->pair);
	vrnic_type_put(t->type[VRNIC_SIDE_LOCAL]);
	vrnic_type_put(t->type[VRNIC_SIDE_REMOTE]);
}

/**
 * vrnic_half_begin() - start to pack data of a type, or to unpack them
 * @half: to be filled in; nothing has to be undone
 * @rows: the type, which must exist for as long as @half is used
 */
void vrnic_half_begin(struct vrnic_half *half, const struct vrnic_rows *rows)
{
	struct vrnic_rows flat = {
		.nr = 1,
		.bytes = rows->bytes,
		.row = &half->flat,
	};

	*half = (struct vrnic_half) {
		.rows = rows,
		.flat = { .bytes = rows->bytes, .count = 1 },
	};
	half->walk.row = &half->walk.own;
	vrnic_merge_begin(&half->walk.merge, rows, &flat);
}

/* Go to the position of @from. */
void vrnic_half_set(struct vrnic_half *half, const struct vrnic_half *from)
{
	struct vrnic_cursor *packed = &half->walk.merge.at[VRNIC_SIDE_REMOTE];

	*half = *from;
	half->walk.row = &half->walk.own;
	packed->row = &half->flat + (packed->row - &from->flat);
}

/* Move on by @n bytes; at least so many follow. */
void vrnic_half_skip(struct vrnic_half *half, u64 n)
{
	walk_skip(&half->walk, n);
	half->pos += n;
}

/**
 * vrnic_half_copy() - pack or unpack the next bytes
 * @half: position; at least @n more bytes follow
 * @storage: memory, from the type's lowest byte on, with the type's whole span
 * @packed: buffer of @n bytes for the data without gaps
 * @n: number of bytes
 * @pack: copy from @storage to @packed; else from @packed to @storage
 * @final: unpacking ends with these bytes, of which the last becomes visible last
 */
void vrnic_half_copy(struct vrnic_half *half, const struct vrnic_seg *storage,
		     void *packed, u64 n, bool pack, bool final)
{
	struct vrnic_seg seg = { .kva = packed, .len = n };
	struct view mem = view_of(storage, VRNIC_SIDE_LOCAL);
	struct view flat = view_of(&seg, VRNIC_SIDE_REMOTE);

	/* the walk checks nothing: the span of its type does, when the storage is opened */
	if (WARN_ON_ONCE(storage->len < half->rows->span))
		return;
	flat.base = half->pos;
	if (pack)
		walk_copy(&half->walk, &flat, &mem, n, false);
	else
		walk_copy(&half->walk, &mem, &flat, n, final);
	half->pos += n;
}
