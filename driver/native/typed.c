// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The typed transfer (S3) of an injector: find the types that a descriptor names, begin and end the
 * transfer. typed_copy.c copies, type.c computes what two types have in common.
 */

#include <linux/slab.h>

#include "engine/budget.h"
#include "native/native.h"
#include "native/type.h"

static struct vrnic_typed *typed_get(struct vrnic_injector *inj)
{
	if (!inj->typed)
		inj->typed = kzalloc(sizeof(*inj->typed), GFP_KERNEL_ACCOUNT);
	return inj->typed;
}

/* Begin the transfer. It takes over the caller's references on the types; failure puts them. */
static int typed_begin(struct vrnic_injector *inj, struct vrnic_type *local,
		       struct vrnic_type *remote)
{
	struct vrnic_nop *op = &inj->op;

	if (!local || !remote || vrnic_type_bytes(local) != op->d.length) {
		if (local)
			vrnic_type_put(local);
		if (remote)
			vrnic_type_put(remote);
		return VRNIC_VERR_TYPE;
	}
	if (vrnic_typed_begin(inj->typed, local, remote, op->typed.mode))
		return VRNIC_VERR_TYPE;
	inj->typed_begun = true;
	return 0;
}

/**
 * vrnic_nop_typed_begin() - start the transfer of a typed descriptor
 * @inj: injector; its operation has the descriptor. It holds nothing of a peer on this host: this
 *	may sleep for memory
 * @budget: pays for the rows that are compared
 *
 * Return: 0 or enum vrnic_vendor_err. Undone by vrnic_nop_typed_end().
 */
int vrnic_nop_typed_begin(struct vrnic_injector *inj, struct vrnic_budget *budget)
{
	const struct vrnic_ndesc_typed *d = &inj->op.typed;
	struct vrnic_fifo *fifo = inj->fifo;
	int verr;

	if (!typed_get(inj))
		return VRNIC_VERR_TYPE;
	inj->typed->work = 0;
	verr = typed_begin(inj, vrnic_type_get(fifo->dev, fifo->owner, d->local_type),
			   vrnic_type_get(fifo->dev, fifo->owner, d->remote_type));
	budget->bytes -= min(budget->bytes, inj->typed->work);
	return verr;
}

/**
 * vrnic_nop_typed_range() - find the memory that a typed transfer may touch on one side
 * @inj: injector; the transfer has begun
 * @remote: find that of the remote side, not of the local one
 * @addr: set to the address of the lowest byte
 * @len: set to the number of bytes from the lowest to the highest, both included
 *
 * Return: false if the addresses wrap.
 */
bool vrnic_nop_typed_range(struct vrnic_injector *inj, bool remote, u64 *addr,
			   u64 *len)
{
	const struct vrnic_type *type = inj->typed->type[remote];
	u64 base = remote ? inj->op.d.remote_addr : inj->op.d.local_addr;
	s64 lower = vrnic_type_lower(type);

	*addr = base + lower;
	*len = vrnic_type_span(type);
	return lower < 0 ? *addr < base : *addr >= base;
}

/* End the transfer of @inj, whether it is complete or not. */
void vrnic_nop_typed_end(struct vrnic_injector *inj)
{
	if (!inj->typed_begun)
		return;
	vrnic_typed_end(inj->typed);
	inj->typed_begun = false;
}

void vrnic_nop_typed_free(struct vrnic_injector *inj)
{
	vrnic_nop_typed_end(inj);
	kfree(inj->typed);
	inj->typed = NULL;
}
