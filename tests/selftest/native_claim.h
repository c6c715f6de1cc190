/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a peer says of transfers, with numbers of its choice, to a library. */
#ifndef NATIVE_CLAIM_H
#define NATIVE_CLAIM_H

#include <pace_wire.h>

/* The cookie of piece @nr, for the receiver's transfer in @place, which was used @use times. */
static inline uint64_t piece_cookie(uint32_t use, uint32_t place, uint64_t nr)
{
	return VRNIC_COOKIE_TARGET | use << VRNIC_TRANSFER_PLACE_BITS | place |
	       nr << VRNIC_COOKIE_PIECE;
}

#endif /* NATIVE_CLAIM_H */
