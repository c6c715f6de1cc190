// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Data of a type, straight from the storage (S3.5): the packets of a message are made one after the
 * other, and each gathers its own. A packet that was lost is made again, so gathering may go back.
 */

#include "mem/seg.h"
#include "native/link.h"
#include "native/type.h"

/* Go to @pos in the packed data: not before the start of the message. */
void vrnic_ngather_seek(struct vrnic_ngather *gather, u64 pos)
{
	if (gather->half.pos > pos)
		vrnic_half_set(&gather->half, &gather->was);
	vrnic_half_skip(&gather->half, pos - gather->half.pos);
}

/* The run of the link does so, which nobody else does while it has the message. */
static void gather_read(struct vrnic_pieces *pieces, u64 pos, void *to, u64 n)
{
	struct vrnic_ngather *gather = container_of(pieces, struct vrnic_ngather, pieces);

	vrnic_ngather_seek(gather, gather->was.pos + pos);
	vrnic_half_copy(&gather->half, &gather->storage, to, n, true, false);
}

/**
 * vrnic_ngather_seg() - a segment for a message, of data that packets gather
 * @gather: its position @half is where the data begin
 * @storage: the type's storage; its reference on the region is the segment's from now on
 * @n: bytes of data
 *
 * Return: the segment.
 */
struct vrnic_seg vrnic_ngather_seg(struct vrnic_ngather *gather, const struct vrnic_seg *storage,
				   u64 n)
{
	struct vrnic_seg seg = *storage;

	vrnic_half_set(&gather->was, &gather->half);
	gather->storage = *storage;
	gather->pieces.read = gather_read;
	seg.len = n;
	seg.pieces = &gather->pieces;
	return seg;
}
