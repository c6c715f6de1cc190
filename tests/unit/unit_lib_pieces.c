// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A message comes piece by piece (VRNIC_ACCEPT_DELIVER), and its own sender, or its host, sends
 * pieces that are not those of the message. A process with this module cannot do that, because only
 * descriptors that a peer injected have a cookie; other hosts can. The test plays the peer.
 */
#include "lib_kernel.h"

#define PEER	77U
#define HOST	5U
#define SHORT	100U
#define LENGTH	(VRNIC_MAX_MESSAGE + SHORT)

/**
 * struct bed - a message that comes in pieces
 * @client: client
 * @context: the receiver
 * @ep: endpoint to the sender
 * @id: the receiver's number of the transfer
 * @pieces: pieces that were delivered
 * @length: bytes of them
 * @bad: pieces that were delivered in the wrong place, or with wrong bytes
 * @ends: how often the end was told
 * @status: of the last end
 */
struct bed {
	struct vrnic_client *client;
	struct vrnic_context *context;
	struct vrnic_endpoint *ep;
	uint32_t id;
	unsigned int pieces;
	uint64_t length;
	unsigned int bad;
	unsigned int ends;
	struct vrnic_status status;
};

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 7 + 1);
}

static void take(struct vrnic_context *context, const void *piece, size_t length, uint64_t offset,
		 void *arg)
{
	const uint8_t *bytes = piece;
	struct bed *bed = arg;
	size_t i;

	(void)context;
	bed->pieces++;
	bed->bad += offset != bed->length;
	for (i = 0; i < length; i++)
		bed->bad += bytes[i] != byte_at(offset + i);
	bed->length += length;
}

static void end_told(struct vrnic_context *context, const struct vrnic_status *status, void *arg)
{
	struct bed *bed = arg;

	(void)context;
	bed->status = *status;
	bed->ends++;
}

static void begin(struct bed *bed, uint64_t length)
{
	const struct vrnic_context_attr attr = { .receive_slots = RECEIVE_SLOTS };
	const struct vrnic_address peer = { .fifo = PEER };
	const struct vrnic_rts rts = {
		.peer = { .fifo = PEER, .host = HOST },
		.length = length,
		.table_rows = 255,
		.id = 5,
	};
	const struct vrnic_accept_wr wr = {
		.comp_mask = VRNIC_ACCEPT_DELIVER,
		.deliver = take,
		.deliver_arg = bed,
	};
	const struct vrnic_done done = { .callback = end_told, .arg = bed };

	*bed = (struct bed){ .client = client_new() };
	bed->client->features = VRNIC_FEATURE_PIECES;
	CHECK_EQ(0, vrnic_context_create(bed->client, &attr, &bed->context));
	CHECK_EQ(0, vrnic_endpoint_create(bed->context, &peer, &bed->ep));
	bed->ep->host = HOST;
	CHECK_EQ(0, vrnic_accept(bed->ep, &rts, &wr, &done));
	bed->id = bed->context->transfers.slot[0]->id;
}

static void finish(struct bed *bed)
{
	CHECK_EQ(0, vrnic_endpoint_destroy(bed->ep));
	CHECK_EQ(0, vrnic_context_destroy(bed->context));
	CHECK_EQ(0, vrnic_client_close(bed->client));
	kernel_end();
}

/* The record @rec, with @length bytes of the message from @offset on, and what the library does. */
static void arrives(struct bed *bed, struct vrnic_record rec, uint64_t offset, uint32_t length)
{
	struct vrnic_ring *ring = &bed->context->receive;
	uint32_t prod = ring->hdr->prod, i;
	uint8_t *data = vrnic_ring_slot(ring, prod + 1);

	rec.length = length;
	rec.num_slots = (uint16_t)(1 + (length + VRNIC_SLOT_SIZE - 1) / VRNIC_SLOT_SIZE);
	/* the kernel pads the end of the ring; these tests do not get there */
	CHECK(prod + rec.num_slots < RECEIVE_SLOTS);
	memcpy(vrnic_ring_slot(ring, prod), &rec, sizeof(rec));
	for (i = 0; i < length; i++)
		data[i] = byte_at(offset + i);
	ring->hdr->prod = prod + rec.num_slots;
	CHECK(vrnic_advance(bed->context, 100) >= 0);
}

static void piece_from(struct bed *bed, uint32_t fifo, uint64_t host, uint64_t nr, uint64_t offset,
		       uint32_t length)
{
	arrives(bed, (struct vrnic_record){
		.kind = VRNIC_REC_MESSAGE,
		.arg = VRNIC_DISPATCH_PIECE,
		.cookie = bed->id | VRNIC_COOKIE_TARGET | nr << VRNIC_COOKIE_PIECE,
		.source = fifo,
		.host = host,
	}, offset, length);
}

static void piece(struct bed *bed, uint64_t nr, uint64_t offset, uint32_t length)
{
	piece_from(bed, PEER, HOST, nr, offset, length);
}

/* The regular end of the transfer. */
static void all_sent(struct bed *bed)
{
	arrives(bed, (struct vrnic_record){
		.kind = VRNIC_REC_NOTIFY,
		.arg = VRNIC_DISPATCH_ARRIVED,
		.cookie = bed->id | VRNIC_COOKIE_TARGET,
		.source = PEER,
		.host = HOST,
	}, 0, 0);
	CHECK_EQ(1, bed->ends);
}

static void check_whole(const struct bed *bed, unsigned int pieces, uint64_t length)
{
	CHECK_EQ(pieces, bed->pieces);
	CHECK_EQ(length, bed->length);
	CHECK_EQ(0, bed->bad);
	CHECK_EQ(IBV_WC_SUCCESS, bed->status.status);
}

/* The selftests that forge pieces from elsewhere count on this. */
static void the_first_transfer_has_a_known_number(void)
{
	struct bed bed;

	begin(&bed, LENGTH);
	CHECK_EQ(1U << VRNIC_TRANSFER_PLACE_BITS, bed.id);
	finish(&bed);
}

static void a_piece_is_longer_than_the_rest(void)
{
	struct bed bed;

	begin(&bed, LENGTH);
	piece(&bed, 0, 0, VRNIC_MAX_MESSAGE);
	CHECK_EQ(1, bed.pieces);
	piece(&bed, 1, VRNIC_MAX_MESSAGE, SHORT + 1);
	piece(&bed, 1, VRNIC_MAX_MESSAGE, VRNIC_MAX_MESSAGE);
	CHECK_EQ(1, bed.pieces);
	piece(&bed, 1, VRNIC_MAX_MESSAGE, SHORT);
	all_sent(&bed);
	check_whole(&bed, 2, LENGTH);
	finish(&bed);
}

static void a_piece_is_longer_than_its_message(void)
{
	struct bed bed;

	begin(&bed, SHORT);
	piece(&bed, 0, 0, SHORT + 1);
	piece(&bed, 0, 0, VRNIC_MAX_MESSAGE);
	CHECK_EQ(0, bed.pieces);
	piece(&bed, 0, 0, SHORT);
	all_sent(&bed);
	check_whole(&bed, 1, SHORT);
	finish(&bed);
}

static void a_piece_comes_behind_the_last_one(void)
{
	struct bed bed;

	begin(&bed, SHORT);
	piece(&bed, 0, 0, SHORT);
	piece(&bed, 1, SHORT, 1);
	piece(&bed, 0, 0, SHORT);
	all_sent(&bed);
	check_whole(&bed, 1, SHORT);
	finish(&bed);
}

static void a_piece_is_too_long_and_no_other_comes(void)
{
	struct bed bed;

	begin(&bed, LENGTH);
	piece(&bed, 0, 0, VRNIC_MAX_MESSAGE);
	piece(&bed, 1, VRNIC_MAX_MESSAGE, SHORT + 1);
	all_sent(&bed);
	CHECK_EQ(1, bed.pieces);
	CHECK_EQ(IBV_WC_BAD_RESP_ERR, bed.status.status);
	CHECK_EQ(VRNIC_VERR_LENGTH, bed.status.vendor_err);
	finish(&bed);
}

static void pieces_of_others(void)
{
	struct bed bed;

	begin(&bed, SHORT);
	piece_from(&bed, PEER + 1, HOST, 0, 0, SHORT);
	piece_from(&bed, PEER, HOST + 1, 0, 0, SHORT);
	piece_from(&bed, PEER, 0, 0, 0, SHORT);
	CHECK_EQ(0, bed.pieces);
	piece(&bed, 0, 0, SHORT);
	all_sent(&bed);
	check_whole(&bed, 1, SHORT);
	finish(&bed);
}

static const struct unit_test tests[] = {
	UNIT(the_first_transfer_has_a_known_number),
	UNIT(a_piece_is_longer_than_the_rest),
	UNIT(a_piece_is_longer_than_its_message),
	UNIT(a_piece_comes_behind_the_last_one),
	UNIT(a_piece_is_too_long_and_no_other_comes),
	UNIT(pieces_of_others),
};

UNIT_MAIN(tests)
