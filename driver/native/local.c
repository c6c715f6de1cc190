// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The loopback flow for native descriptors: the peer is on this host, so the flow uses the peer's
 * memory, counters and reception ring directly. References, not locks, keep the peer's FIFO and
 * regions meanwhile.
 *
 * An injected descriptor (S4) runs with the rights of the peer that injected it: a remote key names
 * its "local" memory, which must let peers read, and counters_fit() knows which counters it may
 * name. Nothing else differs.
 */

#include <linux/ktime.h>

#include "engine/budget.h"
#include "mem/seg.h"
#include "native/native.h"
#include "native/type.h"
#include "queue/opcode.h"
#include "queue/ring.h"
#include "vrnic.h"

/* If a queue of remote gets is full, wait 20 us, then twice as long each time; 21 s in all. */
#define FULL_FIRST_NS	20000ULL
#define FULL_TRIES	20

/* A step of a typed transfer copies at most twice so many chunks. */
#define TYPED_CHUNKS	65536

static enum vrnic_step local_fail_own(struct vrnic_nop *op, int verr)
{
	return vrnic_nop_fail(op, IB_WC_LOC_PROT_ERR, verr);
}

static enum vrnic_step local_fail_peer(struct vrnic_injector *inj, int verr)
{
	vrnic_count(inj->peer->dev, REMOTE_ERRORS);
	return vrnic_nop_fail(&inj->op, IB_WC_REM_ACCESS_ERR, verr);
}

/* Find local memory by the descriptor's @lkey, which is a remote key in an injected descriptor. */
static int local_open_own(struct vrnic_injector *inj, u64 addr, u64 len,
			  bool write, struct vrnic_seg *seg)
{
	struct vrnic_fifo *fifo = inj->fifo;
	int access = write ? IB_ACCESS_LOCAL_WRITE : 0;

	if (inj->rget)
		access = write ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_READ;
	return vrnic_seg_region(fifo->dev, fifo->pd, inj->op.d.lkey, inj->rget,
				addr, len, access, &inj->local, seg);
}

static int local_open_peer(struct vrnic_injector *inj, u64 addr, u64 len,
			   int access, struct vrnic_seg *seg)
{
	struct vrnic_fifo *peer = inj->peer;

	return vrnic_seg_region(peer->dev, peer->pd, inj->op.d.rkey, true, addr,
				len, access, &inj->remote, seg);
}

/*
 * May the descriptor name its counters? The process that wrote it may name all counters of its own,
 * but only open counters of the other process. This process wrote a descriptor of the ring, so the
 * target's counter must be open. The peer wrote an injected one, so this process's counter must be
 * open. If the peer only relayed it, the peer's counters must be open, too, or bound to this FIFO.
 */
static bool counters_fit(struct vrnic_injector *inj)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	u64 peer = inj->peer->owner;

	if (!inj->rget)
		return !d->target_counter ||
		       vrnic_counter_is_open(d->target_counter, peer);
	return (!d->local_counter ||
		vrnic_counter_is_open(d->local_counter, inj->fifo->owner)) &&
	       vrnic_nop_may_name(inj, d->remote_counter) &&
	       vrnic_nop_may_name(inj, d->target_counter);
}

/*
 * Find byte @pos from the start of the descriptor, and the number @len of bytes up to the end of
 * the ring. Data are used where they lie (S2): if the process changes them meanwhile, that harms
 * only its own message. A lane has a copy.
 */
static void *ring_data(struct vrnic_injector *inj, u64 pos, u64 *len)
{
	struct vrnic_ring *ring = &inj->fifo->ring;
	u32 at = (ring->idx + (u32)(pos / VRNIC_SLOT_SIZE)) & (ring->entries - 1);
	u64 offset = pos % VRNIC_SLOT_SIZE;

	if (inj->slots) {
		*len = U64_MAX;
		return inj->slots + pos - VRNIC_SLOT_SIZE;
	}
	*len = (u64)(ring->entries - at) * VRNIC_SLOT_SIZE - offset;
	return vrnic_ring_slot(ring, at) + offset;
}

/**
 * vrnic_native_ring() - find data in the slots of a descriptor
 * @inj: injector of the ring; the descriptor's slots have all of the data
 * @pos: offset of the first byte from the start of the descriptor
 * @n: number of bytes
 * @seg: to be filled in: one segment, or two where the ring wraps
 *
 * Return: number of segments.
 */
unsigned int vrnic_native_ring(struct vrnic_injector *inj, u64 pos, u64 n,
			       struct vrnic_seg *seg)
{
	unsigned int nr = 0;
	u64 run;

	for (; n; n -= run, pos += run, nr++) {
		seg[nr] = (struct vrnic_seg) {
			.kva = ring_data(inj, pos, &run),
		};
		run = min(run, n);
		seg[nr].len = run;
	}
	return nr;
}

/**
 * vrnic_native_message() - find header and data of a message, as far as they lie in the ring
 * @inj: injector of the ring
 * @seg: to be filled in: up to three segments, because the ring wraps once at most
 *
 * Return: number of segments.
 */
unsigned int vrnic_native_message(struct vrnic_injector *inj, struct vrnic_seg *seg)
{
	const struct vrnic_ndesc *d = &inj->op.d;
	unsigned int nr;

	nr = vrnic_native_ring(inj, VRNIC_SLOT_SIZE, d->header_len, seg);
	if (d->flags & VRNIC_NDESC_INLINE)
		nr += vrnic_native_ring(inj, d->local_addr, d->length, seg + nr);
	return nr;
}

/* Number of bytes that this burst may move. */
static u64 local_share(const struct vrnic_nop *op, const struct vrnic_budget *budget)
{
	return min(op->d.length - op->done, budget->bytes);
}

/* @n more bytes have moved: count them, in the counters and the budget. */
static enum vrnic_step local_moved(struct vrnic_injector *inj, u64 n,
				   struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;
	int verr;

	op->done += n;
	budget->bytes -= n;
	verr = n ? vrnic_nop_count(inj, n) : 0;
	if (verr)
		return vrnic_nop_fail(op, IB_WC_LOC_QP_OP_ERR, verr);
	return op->done == op->d.length ? VRNIC_STEP_DONE : VRNIC_STEP_MORE;
}

static void local_put_inline(struct vrnic_injector *inj, struct vrnic_seg *remote,
			     u64 n)
{
	u64 end = inj->op.done + n, pos = 0;
	struct vrnic_seg seg[2];
	unsigned int i, nr;

	nr = vrnic_native_ring(inj, inj->op.d.local_addr + inj->op.done, n, seg);
	for (i = 0; i < nr; i++) {
		vrnic_seg_copy(remote, pos, &seg[i], 0, seg[i].len,
			       end == inj->op.d.length && i == nr - 1);
		pos += seg[i].len;
	}
}

/* Copy between registered memory of this process and the peer's memory @remote. */
static int move_registered(struct vrnic_injector *inj,
			   struct vrnic_seg *remote, u64 n)
{
	bool get = inj->op.d.opcode == VRNIC_NOP_GET;
	bool final = inj->op.done + n == inj->op.d.length;
	struct vrnic_seg local;
	int verr;

	verr = local_open_own(inj, inj->op.d.local_addr + inj->op.done, n, get,
			      &local);
	if (verr)
		return verr;
	if (get)
		vrnic_seg_copy(&local, 0, remote, 0, n, final);
	else
		vrnic_seg_copy(remote, 0, &local, 0, n, final);
	vrnic_seg_put(&local);
	return 0;
}

static int remote_access(const struct vrnic_nop *op)
{
	return op->d.opcode == VRNIC_NOP_GET ? IB_ACCESS_REMOTE_READ :
					       IB_ACCESS_REMOTE_WRITE;
}

/* Find the peer's memory for the @n bytes of this burst. */
static int open_share(struct vrnic_injector *inj, u64 n, struct vrnic_seg *seg)
{
	return local_open_peer(inj, inj->op.d.remote_addr + inj->op.done, n,
			       remote_access(&inj->op), seg);
}

/*
 * Copy from or to memory that was not registered (S1), in a system call of the process that has
 * it. The process's own page tables translate. @n becomes smaller if a page is not present.
 */
static int move_own(struct vrnic_injector *inj, u64 *n)
{
	struct vrnic_nop *op = &inj->op;
	struct vrnic_seg remote;
	int verr;

	verr = open_share(inj, *n, &remote);
	if (verr)
		return verr;
	*n = vrnic_seg_copy_user(&remote, op->d.local_addr + op->done, *n,
				 op->d.opcode == VRNIC_NOP_GET,
				 op->done + *n == op->d.length);
	vrnic_seg_put(&remote);
	return 0;
}

static void copy_pinned(struct vrnic_injector *inj, struct vrnic_seg *local,
			struct vrnic_seg *remote)
{
	bool final = inj->op.done + local->len == inj->op.d.length;

	if (inj->op.d.opcode == VRNIC_NOP_GET)
		vrnic_seg_copy(local, 0, remote, 0, local->len, final);
	else
		vrnic_seg_copy(remote, 0, local, 0, local->len, final);
}

/*
 * Copy from or to memory that was not registered, and pin it meanwhile: pages are not present, or
 * current is not the process that owns the memory. This process may delay a page for any time, so
 * hold nothing of the peer before the pages are pinned.
 */
static enum vrnic_step move_pinned(struct vrnic_injector *inj,
				   struct vrnic_budget *budget)
{
	struct vrnic_address peer = inj->peer->address;
	bool get = inj->op.d.opcode == VRNIC_NOP_GET;
	struct vrnic_seg local, remote;
	struct vrnic_nop *op = &inj->op;
	u64 n = local_share(op, budget);
	int verr;

	vrnic_injector_release(inj);
	verr = vrnic_virtual_pin(inj, op->d.local_addr + op->done, n, get,
				 &local);
	if (verr == -EAGAIN)
		return VRNIC_STEP_WAIT;
	if (verr)
		return local_fail_own(op, verr);
	if (!vrnic_injector_hold(inj, &peer)) {
		vrnic_virtual_unpin(inj, false);
		return vrnic_nop_fail(op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	}
	verr = open_share(inj, local.len, &remote);
	if (!verr) {
		copy_pinned(inj, &local, &remote);
		vrnic_seg_put(&remote);
	}
	vrnic_virtual_unpin(inj, get && !verr);
	return verr ? local_fail_peer(inj, verr) : local_moved(inj, local.len, budget);
}

/*
 * Check the memory of the whole operation before the first byte moves. Each burst checks its part
 * again.
 */
static int local_check_peer(struct vrnic_injector *inj, int access)
{
	struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg seg;
	int verr;

	verr = local_open_peer(inj, d->remote_addr, d->length, access, &seg);
	if (!verr)
		vrnic_seg_put(&seg);
	return verr;
}

static int local_check_own(struct vrnic_injector *inj)
{
	struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg seg;
	int verr;

	if (d->flags & VRNIC_NDESC_INLINE)
		return 0;
	verr = local_open_own(inj, d->local_addr, d->length,
			      d->opcode == VRNIC_NOP_GET, &seg);
	if (!verr)
		vrnic_seg_put(&seg);
	return verr;
}

static int local_check_both(struct vrnic_injector *inj, u64 n)
{
	if (inj->op.done || n == inj->op.d.length)
		return 0;
	return local_check_peer(inj, remote_access(&inj->op));
}

static enum vrnic_step move_virtual(struct vrnic_injector *inj,
				    struct vrnic_budget *budget)
{
	u64 n = local_share(&inj->op, budget);
	int verr = local_check_both(inj, n);

	if (!verr && (!n || current->mm == inj->fifo->mm)) {
		verr = move_own(inj, &n);
		if (!verr && (n || !inj->op.d.length)) {
			/* pages that were brought in: none is pinned when the counter falls */
			vrnic_virtual_forget(inj);
			return local_moved(inj, n, budget);
		}
	}
	if (verr)
		return local_fail_peer(inj, verr);
	return move_pinned(inj, budget);
}

static enum vrnic_step put_or_get(struct vrnic_injector *inj,
				  struct vrnic_budget *budget)
{
	struct vrnic_nop *op = &inj->op;
	u64 n = local_share(op, budget);
	struct vrnic_seg remote;
	int verr = 0;

	if (op->d.flags & VRNIC_NDESC_VIRTUAL)
		return move_virtual(inj, budget);
	if (!op->done && n < op->d.length)
		verr = local_check_own(inj);
	if (verr)
		return local_fail_own(op, verr);
	verr = local_check_both(inj, n);
	if (!verr)
		verr = open_share(inj, n, &remote);
	if (verr)
		return local_fail_peer(inj, verr);
	if (op->d.flags & VRNIC_NDESC_INLINE)
		local_put_inline(inj, &remote, n);
	else
		verr = move_registered(inj, &remote, n);
	vrnic_seg_put(&remote);
	if (verr)
		return local_fail_own(op, verr);
	return local_moved(inj, n, budget);
}

/* Open the local or remote storage of a typed transfer: one check covers all of its chunks. */
static int local_open_typed(struct vrnic_injector *inj, bool remote, int access,
			    struct vrnic_seg *seg)
{
	u64 addr, len;

	if (!vrnic_nop_typed_range(inj, remote, &addr, &len))
		return VRNIC_VERR_BOUNDS;
	if (remote)
		return local_open_peer(inj, addr, len, access, seg);
	return local_open_own(inj, addr, len, access, seg);
}

/* Bytes of a typed transfer that this step moves. Small chunks cost more than their bytes. */
static u64 typed_share(const struct vrnic_injector *inj, const struct vrnic_budget *budget)
{
	struct vrnic_type *const *type = inj->typed->type;
	u64 least = min3(type[0]->rows.least, type[1]->rows.least, budget->bytes);

	return min(budget->bytes, least * TYPED_CHUNKS);
}

/* Copy from page to page, chunk by chunk that both types have in common. */
static enum vrnic_step copy_typed(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	bool get = inj->op.d.opcode == VRNIC_NOP_GET;
	u64 n = typed_share(inj, budget);
	struct vrnic_seg local, remote;
	struct vrnic_nop *op = &inj->op;
	int verr;

	verr = local_open_typed(inj, false, get, &local);
	if (verr)
		return local_fail_own(op, verr);
	verr = local_open_typed(inj, true, get ? IB_ACCESS_REMOTE_READ :
				IB_ACCESS_REMOTE_WRITE, &remote);
	if (verr) {
		vrnic_seg_put(&local);
		return local_fail_peer(inj, verr);
	}
	if (get)
		n = vrnic_typed_copy(inj->typed, &local, &remote, false, n);
	else
		n = vrnic_typed_copy(inj->typed, &remote, &local, true, n);
	vrnic_seg_put(&remote);
	vrnic_seg_put(&local);
	return local_moved(inj, n, budget);
}

static enum vrnic_step local_typed(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	struct vrnic_address peer = inj->peer->address;
	int verr;

	if (inj->typed_begun)
		return copy_typed(inj, budget);
	/* beginning may sleep for memory: a peer that ends must not wait for that */
	vrnic_injector_release(inj);
	verr = vrnic_nop_typed_begin(inj, budget);
	if (verr)
		return local_fail_own(&inj->op, verr);
	if (!vrnic_injector_hold(inj, &peer))
		return vrnic_nop_fail(&inj->op, IB_WC_RETRY_EXC_ERR, VRNIC_VERR_PEER);
	return copy_typed(inj, budget);
}

static enum vrnic_step local_put(struct vrnic_injector *inj,
				 struct vrnic_budget *budget)
{
	enum vrnic_step step = inj->op.d.flags & VRNIC_NDESC_TYPED ?
			       local_typed(inj, budget) : put_or_get(inj, budget);

	if (step != VRNIC_STEP_DONE)
		return step;
	vrnic_count_add(inj->fifo->dev, BYTES_PUT, inj->op.done);
	vrnic_count_moved(inj->fifo->dev, inj->peer->dev, inj->op.done);
	return VRNIC_STEP_DONE;
}

static enum vrnic_step local_get(struct vrnic_injector *inj,
				 struct vrnic_budget *budget)
{
	enum vrnic_step step = inj->op.d.flags & VRNIC_NDESC_TYPED ?
			       local_typed(inj, budget) : put_or_get(inj, budget);

	if (step != VRNIC_STEP_DONE)
		return step;
	vrnic_count_add(inj->fifo->dev, BYTES_GOT, inj->op.done);
	vrnic_count_moved(inj->peer->dev, inj->fifo->dev, inj->op.done);
	return VRNIC_STEP_DONE;
}

static u64 rmw_value(u32 arg, u64 operand, u64 old)
{
	switch (arg & ~VRNIC_RMW_COMPARE) {
	case VRNIC_RMW_SET:
		return operand;
	case VRNIC_RMW_ADD:
		return old + operand;
	case VRNIC_RMW_AND:
		return old & operand;
	case VRNIC_RMW_OR:
		return old | operand;
	case VRNIC_RMW_XOR:
		return old ^ operand;
	default:
		return old;
	}
}

static bool rmw_applies(u32 arg, u64 compare, u64 old)
{
	return !(arg & VRNIC_RMW_COMPARE) || old == compare;
}

/* The CPU's atomic instructions make RMW atomic against the process's own atomics, too. */
static u64 rmw_64(u64 *word, u32 arg, const struct vrnic_ndesc_rmw *rmw)
{
	u64 old = READ_ONCE(*word);

	while (rmw_applies(arg, rmw->compare, old) &&
	       !try_cmpxchg(word, &old, rmw_value(arg, rmw->operand, old)))
		;
	return old;
}

static u32 rmw_32(u32 *word, u32 arg, const struct vrnic_ndesc_rmw *rmw)
{
	u32 old = READ_ONCE(*word);

	while (rmw_applies(arg, (u32)rmw->compare, old) &&
	       !try_cmpxchg(word, &old, (u32)rmw_value(arg, rmw->operand, old)))
		;
	return old;
}

/**
 * vrnic_native_rmw() - execute RMW
 * @word: target, 4 or 8 bytes, aligned
 * @width: 4 or 8
 * @arg: enum vrnic_rmw_op
 * @rmw: operands
 *
 * Return: the old value.
 */
u64 vrnic_native_rmw(void *word, unsigned int width, u32 arg,
		     const struct vrnic_ndesc_rmw *rmw)
{
	if (width == sizeof(u64))
		return rmw_64(word, arg, rmw);
	return rmw_32(word, arg, rmw);
}

/* Find the memory for the old value, if the descriptor names some. */
static int rmw_result(struct vrnic_injector *inj, struct vrnic_seg *local)
{
	*local = (struct vrnic_seg){};
	if (!inj->op.d.lkey)
		return 0;
	return local_open_own(inj, inj->op.d.local_addr, inj->op.d.length, true,
			      local);
}

static enum vrnic_step local_rmw(struct vrnic_injector *inj,
				 struct vrnic_budget *budget)
{
	struct vrnic_seg local, remote, value = { .kva = &inj->op.value };
	struct vrnic_nop *op = &inj->op;
	unsigned int width = op->d.length;
	void *word;
	int verr;

	verr = rmw_result(inj, &local);
	if (verr)
		return local_fail_own(op, verr);
	verr = local_open_peer(inj, op->d.remote_addr, width,
			       IB_ACCESS_REMOTE_ATOMIC, &remote);
	if (verr) {
		vrnic_seg_put(&local);
		return local_fail_peer(inj, verr);
	}
	word = vrnic_seg_word(&remote, width);
	if (word)
		op->value = vrnic_native_rmw(word, width, op->d.arg, &op->rmw);
	vrnic_seg_put(&remote);
	if (word && op->d.lkey)
		vrnic_seg_copy(&local, 0, &value, 0, width, true);
	vrnic_seg_put(&local);
	if (!word)
		return local_fail_peer(inj, VRNIC_VERR_ALIGN);
	vrnic_count(inj->fifo->dev, ATOMICS);
	return VRNIC_STEP_DONE;
}

static void message_record(struct vrnic_injector *inj, struct vrnic_record *rec)
{
	*rec = (struct vrnic_record) {
		.kind = VRNIC_REC_MESSAGE,
		.opcode = VRNIC_NOP_MESSAGE,
		.header_len = inj->op.d.header_len,
		.length = inj->op.d.length,
		.arg = inj->op.d.arg,
		.cookie = inj->rget ? inj->op.d.cookie : 0,
		.source = inj->fifo->id,
		.task = inj->fifo->address.task,
	};
}

/* Send a message, whose header and data are in the @nr segments. */
static enum vrnic_step local_send(struct vrnic_injector *inj, struct vrnic_seg *seg,
				  unsigned int nr)
{
	struct vrnic_record rec;

	message_record(inj, &rec);
	if (vrnic_record_post(inj->peer, &rec, seg, nr)) {
		vrnic_stall(inj, inj->peer);
		return VRNIC_STEP_WAIT;
	}
	inj->op.done = inj->op.d.length;
	vrnic_count_add(inj->fifo->dev, BYTES_SENT, rec.header_len + rec.length);
	vrnic_count_moved(inj->fifo->dev, inj->peer->dev, rec.header_len + rec.length);
	return VRNIC_STEP_DONE;
}

/* Send data that were not registered. Hold nothing of the peer until all pages are pinned. */
static enum vrnic_step send_virtual(struct vrnic_injector *inj,
				    struct vrnic_seg *seg, unsigned int nr)
{
	struct vrnic_address peer = inj->peer->address;
	struct vrnic_ndesc *d = &inj->op.d;
	enum vrnic_step step;
	int verr;

	vrnic_injector_release(inj);
	verr = vrnic_virtual_pin(inj, d->local_addr, d->length, false, &seg[nr]);
	if (verr == -EAGAIN)
		return VRNIC_STEP_WAIT;
	if (verr)
		return local_fail_own(&inj->op, verr);
	if (seg[nr].len != d->length)
		step = local_fail_own(&inj->op, VRNIC_VERR_FAULT);
	else if (!vrnic_injector_hold(inj, &peer))
		step = vrnic_nop_fail(&inj->op, IB_WC_RETRY_EXC_ERR,
				      VRNIC_VERR_PEER);
	else
		step = local_send(inj, seg, nr + 1);
	vrnic_virtual_unpin(inj, false);
	return step;
}

static enum vrnic_step local_message(struct vrnic_injector *inj,
				     struct vrnic_budget *budget)
{
	struct vrnic_ndesc *d = &inj->op.d;
	bool in_ring = d->flags & VRNIC_NDESC_INLINE || !d->length;
	struct vrnic_seg seg[3];
	enum vrnic_step step;
	unsigned int nr;
	int verr;

	nr = vrnic_native_message(inj, seg);
	if (in_ring)
		return local_send(inj, seg, nr);
	if (d->flags & VRNIC_NDESC_VIRTUAL)
		return send_virtual(inj, seg, nr);
	verr = local_open_own(inj, d->local_addr, d->length, false, &seg[nr]);
	if (verr)
		return local_fail_own(&inj->op, verr);
	step = local_send(inj, seg, nr + 1);
	vrnic_seg_put(&seg[nr]);
	return step;
}

/* The queue of remote gets at the peer is full: try again later, for a limited time. */
enum vrnic_step vrnic_native_wait_full(struct vrnic_injector *inj)
{
	struct vrnic_nop *op = &inj->op;

	if (op->tries == FULL_TRIES)
		return vrnic_nop_fail(op, IB_WC_RNR_RETRY_EXC_ERR,
				      VRNIC_VERR_FULL);
	inj->run.wait_until = ktime_get_ns() + (FULL_FIRST_NS << op->tries++);
	vrnic_count(inj->fifo->dev, RGET_WAITS);
	return VRNIC_STEP_WAIT;
}

/*
 * There is no memory for a remote get. Reclaim may take long, so release the peer before; the next
 * try holds the peer again.
 */
static enum vrnic_step wait_for_room(struct vrnic_injector *inj)
{
	enum vrnic_step step = vrnic_native_wait_full(inj);

	if (step != VRNIC_STEP_WAIT)
		return step;
	vrnic_injector_release(inj);
	vrnic_rget_make_room(inj->fifo, inj->op.d.length);
	return step;
}

static enum vrnic_step local_rget(struct vrnic_injector *inj,
				  struct vrnic_budget *budget)
{
	struct vrnic_ndesc *d = &inj->op.d;
	struct vrnic_seg descs;
	int ret;

	ret = local_open_own(inj, d->local_addr, d->length, false, &descs);
	if (ret)
		return local_fail_own(&inj->op, ret);
	ret = vrnic_rget_deliver(inj->peer, &inj->fifo->address, inj->fifo, NULL, &descs,
				 inj->rget);
	vrnic_seg_put(&descs);
	switch (ret) {
	case 0:
		inj->op.done = d->length;
		return VRNIC_STEP_DONE;
	case -ENOMEM:
		return wait_for_room(inj);
	case -EAGAIN:
		return vrnic_native_wait_full(inj);
	default:
		return vrnic_nop_fail(&inj->op, IB_WC_RETRY_EXC_ERR,
				      VRNIC_VERR_PEER);
	}
}

/*
 * Execute an injected NOTIFY: all descriptors before it are done. Tell this process, or, with BACK,
 * the peer that injected it.
 */
static enum vrnic_step local_notify(struct vrnic_injector *inj,
				    struct vrnic_budget *budget)
{
	bool back = inj->op.d.flags & VRNIC_NDESC_BACK;
	struct vrnic_fifo *to = back ? inj->peer : inj->fifo;
	struct vrnic_fifo *from = back ? inj->fifo : inj->peer;
	struct vrnic_failure failure = {};
	struct vrnic_record rec;

	vrnic_counter_failure(inj->op.d.target_counter, inj->peer->owner,
			      &failure);
	rec = (struct vrnic_record) {
		.kind = VRNIC_REC_NOTIFY,
		.opcode = VRNIC_NOP_NOTIFY,
		.status = failure.status,
		.vendor_err = failure.vendor_err,
		.arg = inj->op.d.arg,
		.cookie = inj->op.d.cookie,
		.source = from->id,
		.task = from->address.task,
	};
	if (!vrnic_record_post(to, &rec, NULL, 0))
		return VRNIC_STEP_DONE;
	vrnic_stall(inj, to);
	return VRNIC_STEP_WAIT;
}

/**
 * vrnic_loop_native() - execute a native descriptor
 * @inj: injector; its operation was checked, and it holds the peer
 * @budget: its bytes bound this burst
 *
 * Each burst looks memory up again. So deregistration waits for the current burst only, and the
 * next burst fails. Counters fall when bytes have moved.
 *
 * Return: enum vrnic_step.
 */
enum vrnic_step vrnic_loop_native(struct vrnic_injector *inj,
				  struct vrnic_budget *budget)
{
	if (!inj->op.done && !counters_fit(inj))
		return local_fail_peer(inj, VRNIC_VERR_COUNTER);
	switch (inj->op.d.opcode) {
	case VRNIC_NOP_PUT:
		return local_put(inj, budget);
	case VRNIC_NOP_GET:
		return local_get(inj, budget);
	case VRNIC_NOP_RMW:
		return local_rmw(inj, budget);
	case VRNIC_NOP_MESSAGE:
		return local_message(inj, budget);
	case VRNIC_NOP_RGET:
		return local_rget(inj, budget);
	default:
		return local_notify(inj, budget);
	}
}
