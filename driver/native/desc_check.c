// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a native descriptor may say. Each is checked once, in the private copy that is executed,
 * whether its owner has posted it or a peer has injected it.
 */

#include <linux/bitops.h>
#include <linux/string.h>

#include "native/native.h"

#define SIGNALED	VRNIC_NDESC_SIGNALED
#define INLINE		VRNIC_NDESC_INLINE
#define PLACED		VRNIC_NDESC_PLACED
#define VIRTUAL		VRNIC_NDESC_VIRTUAL
#define TYPED		VRNIC_NDESC_TYPED

/*
 * Are the flags valid for the opcode? An injected descriptor may have fewer flags than one in a
 * ring.
 */
static bool flags_fit(const struct vrnic_ndesc *d, bool injected)
{
	u8 known;

	switch (d->opcode) {
	case VRNIC_NOP_PUT:
		known = injected ? 0 : SIGNALED | INLINE | PLACED | VIRTUAL | TYPED;
		break;
	case VRNIC_NOP_GET:
		known = injected ? 0 : SIGNALED | VIRTUAL | TYPED;
		break;
	case VRNIC_NOP_MESSAGE:
		known = injected ? 0 : SIGNALED | INLINE | PLACED | VIRTUAL;
		break;
	case VRNIC_NOP_NOTIFY:
		known = VRNIC_NDESC_BACK;
		break;
	default:
		known = injected ? 0 : SIGNALED;
		break;
	}
	/* only data in the ring have a place in it */
	if ((d->flags & (PLACED | INLINE)) == PLACED)
		return false;
	/* at most one of the three: data have one source, and a type needs a region */
	return !(d->flags & ~known) &&
	       hweight8(d->flags & (INLINE | VIRTUAL | TYPED)) <= 1;
}

static bool opcode_fits(u8 opcode, bool injected)
{
	switch (opcode) {
	case VRNIC_NOP_PUT:
	case VRNIC_NOP_GET:
	case VRNIC_NOP_MESSAGE:
	case VRNIC_NOP_RGET:
	case VRNIC_NOP_WAIT:
		return true;
	case VRNIC_NOP_NOTIFY:
		return injected;
	case VRNIC_NOP_RMW:
	case VRNIC_NOP_FENCE:
	case VRNIC_NOP_FENCE_ALL:
		return !injected;
	default:
		return false;
	}
}

static bool length_fits(const struct vrnic_nop *op)
{
	const struct vrnic_ndesc *d = &op->d;

	switch (d->opcode) {
	case VRNIC_NOP_RMW:
		return d->length == sizeof(u32) || d->length == sizeof(u64);
	case VRNIC_NOP_MESSAGE:
		return d->length <= VRNIC_MAX_MESSAGE &&
		       d->header_len <= VRNIC_MAX_MESSAGE - d->length;
	case VRNIC_NOP_RGET:
		return d->length && d->length % sizeof(*d) == 0 &&
		       d->length <= VRNIC_RGET_DESCS * sizeof(*d);
	default:
		return d->length <= S64_MAX;
	}
}

/* Where a descriptor ends that has nothing more behind it than the header of a message. */
static u64 bare_end(const struct vrnic_ndesc *d)
{
	return VRNIC_SLOT_SIZE + (d->opcode == VRNIC_NOP_MESSAGE ? d->header_len : 0);
}

/*
 * Do the data of an INLINE descriptor lie in its slots, behind the header? If the descriptor does
 * not say where they lie (S2.2), say so in its private copy, for all that follows: an older library
 * puts them right behind slot or header.
 */
static bool place_fits(struct vrnic_ndesc *d)
{
	u64 end = (u64)d->num_slots * VRNIC_SLOT_SIZE;

	if (!(d->flags & INLINE))
		return true;
	if (!(d->flags & PLACED)) {
		d->local_addr = bare_end(d);
		return true;
	}
	return d->local_addr >= bare_end(d) && d->local_addr <= end &&
	       d->length <= end - d->local_addr;
}

/* Bytes from the start of the descriptor to the end of what its slots hold. */
static u64 used_bytes(const struct vrnic_ndesc *d)
{
	if (d->opcode == VRNIC_NOP_RMW || d->flags & TYPED)
		return 2 * VRNIC_SLOT_SIZE;
	/* place_fits() and length_fits() bound both, so this does not overflow */
	return d->flags & INLINE ? d->local_addr + d->length : bare_end(d);
}

static bool slots_fit(const struct vrnic_ndesc *d)
{
	return DIV_ROUND_UP_ULL(used_bytes(d), VRNIC_SLOT_SIZE) == d->num_slots;
}

static bool rmw_fits(const struct vrnic_nop *op)
{
	return (op->d.arg & ~VRNIC_RMW_COMPARE) <= VRNIC_RMW_XOR &&
	       IS_ALIGNED(op->d.remote_addr, op->d.length);
}

static bool is_zero(const u64 *reserved, size_t bytes)
{
	return !memchr_inv(reserved, 0, bytes);
}

/* A WAIT is for no endpoint, and names no memory and no counter that falls. */
static bool wait_fits(const struct vrnic_ndesc *d)
{
	return !(d->endpoint | d->local_addr | d->remote_addr | d->rkey) &&
	       !(d->local_counter | d->remote_counter | d->target_counter) &&
	       d->arg <= VRNIC_WAIT_DESCS;
}

/* Reserved fields must be zero, so that later versions can give them a meaning. */
static bool reserved_fits(const struct vrnic_nop *op)
{
	const struct vrnic_ndesc *d = &op->d;

	if (d->flags & TYPED)
		return !d->arg && !op->typed.reserved0 &&
		       is_zero(op->typed.reserved, sizeof(op->typed.reserved));
	switch (d->opcode) {
	case VRNIC_NOP_RMW:
		return is_zero(op->rmw.reserved, sizeof(op->rmw.reserved));
	case VRNIC_NOP_MESSAGE:
	case VRNIC_NOP_NOTIFY:
		return true;
	case VRNIC_NOP_WAIT:
		return wait_fits(d);
	case VRNIC_NOP_FENCE:
	case VRNIC_NOP_FENCE_ALL:
		/* the target of an earlier operation is no target of the fence */
		return !d->arg && !d->target_counter;
	default:
		return !d->arg;
	}
}

/**
 * vrnic_nop_check() - is a descriptor well-formed?
 * @op: operation with a private copy of the descriptor
 * @injected: a peer sent the descriptor
 *
 * Return: 0 or enum vrnic_vendor_err.
 */
int vrnic_nop_check(struct vrnic_nop *op, bool injected)
{
	if (!opcode_fits(op->d.opcode, injected) ||
	    !flags_fit(&op->d, injected))
		return VRNIC_VERR_OPCODE;
	if (!length_fits(op))
		return VRNIC_VERR_LENGTH;
	if (!place_fits(&op->d))
		return VRNIC_VERR_BOUNDS;
	/* an injected descriptor has no slots behind it, and so no header of a message */
	if (!slots_fit(&op->d) || (injected && op->d.num_slots != 1))
		return VRNIC_VERR_SLOTS;
	/* the number of slots is right, so inject_fetch() has copied the second, if any */
	if (!reserved_fits(op))
		return VRNIC_VERR_OPCODE;
	if (op->d.opcode == VRNIC_NOP_RMW && !rmw_fits(op))
		return VRNIC_VERR_ALIGN;
	op->checked = true;
	return 0;
}
