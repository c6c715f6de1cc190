// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Data in the slots of a ring (S2): what the library writes, at each place of the ring, from one
 * buffer and from several. The test is the engine, and reads the ring as the ABI says. And which
 * doorbell the library rings for deferred operations.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../../userlib/libvrnic/lib.h"
#include "unit.h"

#define SLOTS	16U
#define BYTES	(SLOTS * VRNIC_SLOT_SIZE)
#define FITS	((SLOTS - 1) * VRNIC_SLOT_SIZE)

static unsigned int rung, rung_deferred;

int vrnic_uv_advance(struct vrnic_context *ctx)
{
	(void)ctx;
	rung++;
	return 0;
}

int vrnic_uv_advance_deferred(struct vrnic_context *ctx)
{
	(void)ctx;
	rung_deferred++;
	return 0;
}

void vrnic_uv_advance_later(struct vrnic_context *ctx)
{
	(void)ctx;
}

void vrnic_uv_advance_late(struct vrnic_client *client)
{
	(void)client;
}

void vrnic_counter_undo(struct vrnic_counter *counter, uint64_t n)
{
	(void)counter;
	(void)n;
}

void vrnic_type_get(struct vrnic_type *type)
{
	(void)type;
}

void vrnic_type_put(struct vrnic_type *type)
{
	(void)type;
}

int vrnic_long_send(struct vrnic_endpoint *ep, const struct vrnic_send_wr *wr,
		    const struct vrnic_done *done)
{
	(void)ep;
	(void)wr;
	(void)done;
	return -EMSGSIZE;
}

void vrnic_pace_message(struct vrnic_context *ctx, const struct vrnic_record *rec)
{
	(void)ctx;
	(void)rec;
}

void vrnic_group_changed(struct vrnic_cell *cell)
{
	(void)cell;
}

struct bed {
	struct vrnic_client client;
	struct vrnic_context ctx;
	struct vrnic_endpoint ep;
};

/* The ring begins at slot @first. */
static void begin(struct bed *bed, uint32_t first, uint32_t features)
{
	struct vrnic_ring_info info = {
		.bytes = VRNIC_RING_DATA + BYTES,
		.entries = SLOTS,
		.stride = VRNIC_SLOT_SIZE,
	};
	struct vrnic_ring *ring = &bed->ctx.inject;

	memset(bed, 0, sizeof(*bed));
	bed->client.features = features;
	bed->ctx.client = &bed->client;
	bed->ctx.queue_end = &bed->ctx.queue;
	vrnic_ops_init(&bed->ctx.fences);
	vrnic_ring_init(ring, calloc(1, info.bytes), &info);
	ring->hdr->prod = first;
	ring->hdr->cons = first;
	ring->next = first;
	ring->cons = first;
	bed->ep.context = &bed->ctx;
	bed->ep.number = 5;
	vrnic_ops_init(&bed->ep.ops);
}

static void end(struct bed *bed)
{
	vrnic_ops_destroy(&bed->ctx);
	free(bed->ctx.inject.hdr);
}

/* The engine takes the next descriptor, and its data from where the descriptor says it lies. */
static struct vrnic_ndesc take(struct bed *bed, uint8_t *header, uint8_t *data)
{
	struct vrnic_ring *ring = &bed->ctx.inject;
	uint32_t start = ring->hdr->cons % SLOTS * VRNIC_SLOT_SIZE;
	struct vrnic_ndesc desc;
	uint64_t i, at;

	memcpy(&desc, ring->slots + start, sizeof(desc));
	at = desc.flags & VRNIC_NDESC_PLACED ? desc.local_addr :
					       VRNIC_SLOT_SIZE + desc.header_len;
	CHECK(at >= VRNIC_SLOT_SIZE);
	CHECK(at + desc.length <= (uint64_t)desc.num_slots * VRNIC_SLOT_SIZE);
	for (i = 0; header && i < desc.header_len; i++)
		header[i] = ring->slots[(start + VRNIC_SLOT_SIZE + i) % BYTES];
	for (i = 0; i < desc.length && i < BYTES; i++)
		data[i] = ring->slots[(start + at + i) % BYTES];
	ring->hdr->cons += desc.num_slots;
	return desc;
}

static uint8_t bytes[BYTES];

static void make_bytes(void)
{
	unsigned int i;

	for (i = 0; i < BYTES; i++)
		bytes[i] = i * 7 + i / 256 + 1;
}

static const struct vrnic_wr target = { .remote = 4096 };

static void descriptors_say_where_their_data_lies(void)
{
	struct vrnic_wr put = { .local = bytes, .length = 150, .remote = 4096 };
	struct vrnic_send_wr message = {
		.header = bytes, .header_len = 10, .data = bytes + 10, .length = 100,
	};
	uint8_t header[BYTES], data[BYTES];
	struct vrnic_ndesc desc;
	struct bed bed;

	begin(&bed, SLOTS - 2, VRNIC_FEATURE_PLACED);
	CHECK_EQ(0, vrnic_put_inline(&bed.ep, &put, NULL));
	desc = take(&bed, NULL, data);
	CHECK_EQ(VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED, desc.flags);
	CHECK_EQ(VRNIC_SLOT_SIZE, desc.local_addr);
	CHECK_EQ(4, desc.num_slots);
	CHECK_EQ(150, desc.length);
	CHECK(!memcmp(data, bytes, 150));
	CHECK_EQ(0, vrnic_send(&bed.ep, &message, NULL));
	desc = take(&bed, header, data);
	CHECK_EQ(VRNIC_NDESC_INLINE | VRNIC_NDESC_PLACED, desc.flags);
	CHECK_EQ(VRNIC_SLOT_SIZE + 10, desc.local_addr);
	CHECK_EQ(3, desc.num_slots);
	CHECK(!memcmp(header, bytes, 10));
	CHECK(!memcmp(data, bytes + 10, 100));
	end(&bed);
}

/* It would refuse the flag. */
static void older_modules_are_not_told(void)
{
	struct vrnic_wr put = { .local = bytes, .length = 150, .remote = 4096 };
	struct vrnic_ndesc desc;
	uint8_t data[BYTES];
	struct bed bed;

	begin(&bed, 0, VRNIC_FEATURE_SQ_DONE);
	CHECK_EQ(0, vrnic_put_inline(&bed.ep, &put, NULL));
	memcpy(&desc, bed.ctx.inject.slots, sizeof(desc));
	CHECK_EQ(VRNIC_NDESC_INLINE, desc.flags);
	CHECK_EQ(0, desc.local_addr);
	take(&bed, NULL, data);
	CHECK(!memcmp(data, bytes, 150));
	end(&bed);
}

/* What is not data has no place in the slots. */
static void other_descriptors_have_no_flag(void)
{
	struct ibv_mr mr = { .lkey = 3 };
	struct vrnic_wr put = { .local = bytes, .mr = &mr, .length = 64, .remote = 4096 };
	struct vrnic_rmw_wr rmw = { .remote = 4096, .width = 8 };
	const struct vrnic_ndesc *slot;
	struct bed bed;

	begin(&bed, 0, VRNIC_FEATURE_PLACED);
	slot = (const void *)bed.ctx.inject.slots;
	CHECK_EQ(0, vrnic_put(&bed.ep, &put, NULL));
	CHECK_EQ(0, vrnic_rmw(&bed.ep, &rmw, NULL));
	CHECK_EQ(0, slot[0].flags);
	CHECK_EQ((uintptr_t)bytes, slot[0].local_addr);
	CHECK_EQ(0, slot[1].flags);
	CHECK_EQ(2, slot[1].num_slots);
	end(&bed);
}

/* Cut @total bytes of @bytes into five buffers, of which one is empty and has no address. */
static void cut(struct iovec iov[5], size_t total)
{
	size_t a = total / 7, b = total / 2;

	iov[0] = (struct iovec){ bytes, a };
	iov[1] = (struct iovec){ NULL, 0 };
	iov[2] = (struct iovec){ bytes + a, b };
	iov[3] = (struct iovec){ bytes + a + b, 0 };
	iov[4] = (struct iovec){ bytes + a + b, total - a - b };
}

/* From each slot of the ring, each length: so all of them go around the end somewhere. */
static void sources_are_gathered_around_the_end(void)
{
	struct vrnic_ndesc desc;
	uint8_t data[BYTES];
	struct iovec iov[5];
	struct bed bed;
	uint32_t slot;
	size_t len;

	for (slot = 0; slot < SLOTS; slot++) {
		for (len = 0; len <= FITS; len += len < 130 ? 1 : 61) {
			begin(&bed, UINT32_MAX - 20 + slot, VRNIC_FEATURE_PLACED);
			cut(iov, len);
			CHECK_EQ(0, vrnic_put_inlinev(&bed.ep, &target, iov, 5, NULL));
			CHECK_EQ(bed.ctx.inject.next, bed.ctx.inject.hdr->prod);
			desc = take(&bed, NULL, data);
			CHECK_EQ(len, desc.length);
			CHECK_EQ(1 + (len + 63) / 64, desc.num_slots);
			CHECK_EQ(VRNIC_SLOT_SIZE, desc.local_addr);
			CHECK_EQ(bed.ctx.inject.next, bed.ctx.inject.hdr->cons);
			CHECK(!memcmp(data, bytes, len));
			end(&bed);
		}
	}
}

static void messages_are_gathered_behind_their_header(void)
{
	struct vrnic_send_wr wr = { .header = bytes + 500, .id = 9 };
	uint8_t header[BYTES], data[BYTES];
	struct vrnic_ndesc desc;
	struct iovec iov[5];
	struct bed bed;
	uint32_t slot;

	for (slot = 0; slot < SLOTS; slot++) {
		for (wr.header_len = 0; wr.header_len < 200; wr.header_len += 9) {
			begin(&bed, slot, VRNIC_FEATURE_PLACED);
			cut(iov, 333);
			CHECK_EQ(0, vrnic_sendv(&bed.ep, &wr, iov, 5, NULL));
			desc = take(&bed, header, data);
			CHECK_EQ(333, desc.length);
			CHECK_EQ(wr.header_len, desc.header_len);
			CHECK_EQ(VRNIC_SLOT_SIZE + wr.header_len, desc.local_addr);
			CHECK_EQ(9, desc.arg);
			CHECK(!memcmp(header, wr.header, wr.header_len));
			CHECK(!memcmp(data, bytes, 333));
			end(&bed);
		}
	}
}

/* The ring is the same, byte by byte, however many buffers the data comes from. */
static void one_source_is_one_of_several(void)
{
	struct vrnic_wr one = { .local = bytes, .length = 200, .remote = 4096 };
	struct iovec iov[5];
	struct bed a, b;

	begin(&a, 3, VRNIC_FEATURE_PLACED);
	begin(&b, 3, VRNIC_FEATURE_PLACED);
	cut(iov, 200);
	CHECK_EQ(0, vrnic_put_inline(&a.ep, &one, NULL));
	CHECK_EQ(0, vrnic_put_inlinev(&b.ep, &target, iov, 5, NULL));
	CHECK(!memcmp(a.ctx.inject.slots, b.ctx.inject.slots, BYTES));
	end(&a);
	end(&b);
}

/* What waits for room gets its slots later, and its offset is right there, too. */
static void queued_operations_keep_their_place(void)
{
	const struct vrnic_done queue = { .flags = VRNIC_QUEUE };
	uint8_t data[BYTES], was[BYTES];
	struct vrnic_ndesc desc;
	struct iovec iov[5];
	struct bed bed;

	begin(&bed, 5, VRNIC_FEATURE_PLACED);
	cut(iov, FITS);
	memcpy(was, bytes, BYTES);
	CHECK_EQ(0, vrnic_put_inlinev(&bed.ep, &target, iov, 5, NULL));
	cut(iov, 300);
	CHECK_EQ(-EAGAIN, vrnic_put_inlinev(&bed.ep, &target, iov, 5, NULL));
	CHECK_EQ(0, vrnic_put_inlinev(&bed.ep, &target, iov, 5, &queue));
	memset(bytes, 0, BYTES);
	take(&bed, NULL, data);
	CHECK(!memcmp(data, was, FITS));
	CHECK_EQ(0, vrnic_post_flush(&bed.ctx));
	desc = take(&bed, NULL, data);
	CHECK_EQ(VRNIC_SLOT_SIZE, desc.local_addr);
	CHECK_EQ(300, desc.length);
	CHECK(!memcmp(data, was, 300));
	memcpy(bytes, was, BYTES);
	end(&bed);
}

static void what_cannot_be_is_refused(void)
{
	const struct iovec nothing = { NULL, 1 }, huge[2] = { { bytes, SIZE_MAX }, { bytes, 2 } };
	struct vrnic_wr both = { .local = bytes, .remote = 4096 };
	struct vrnic_send_wr message = { .id = 1 }, two = { .data = bytes };
	struct iovec iov[2] = { { bytes, FITS }, { bytes, 1 } };
	struct bed bed;

	begin(&bed, 1, VRNIC_FEATURE_PLACED);
	CHECK(vrnic_put_inlinev(&bed.ep, &target, iov, 2, NULL) == -EMSGSIZE);
	CHECK(vrnic_put_inlinev(&bed.ep, &target, huge, 2, NULL) == -EINVAL);
	CHECK(vrnic_put_inlinev(&bed.ep, &target, &nothing, 1, NULL) == -EINVAL);
	CHECK(vrnic_put_inlinev(&bed.ep, &target, NULL, 1, NULL) == -EINVAL);
	CHECK(vrnic_put_inlinev(&bed.ep, &target, iov, -1, NULL) == -EINVAL);
	CHECK(vrnic_put_inlinev(&bed.ep, &target, iov, IOV_MAX + 1, NULL) == -EINVAL);
	CHECK(vrnic_put_inlinev(&bed.ep, &both, iov, 1, NULL) == -EINVAL);
	CHECK(vrnic_put_inlinev(&bed.ep, NULL, iov, 1, NULL) == -EINVAL);
	CHECK(vrnic_put_inlinev(NULL, &target, iov, 1, NULL) == -EINVAL);
	CHECK(vrnic_sendv(&bed.ep, &message, iov, 2, NULL) == -EMSGSIZE);
	CHECK(vrnic_sendv(&bed.ep, &message, huge, 2, NULL) == -EMSGSIZE);
	CHECK(vrnic_sendv(&bed.ep, &message, &nothing, 1, NULL) == -EINVAL);
	CHECK(vrnic_sendv(&bed.ep, &message, iov, -1, NULL) == -EINVAL);
	CHECK(vrnic_sendv(&bed.ep, &two, iov, 1, NULL) == -EINVAL);
	CHECK(vrnic_sendv(&bed.ep, NULL, iov, 1, NULL) == -EINVAL);
	CHECK_EQ(1, bed.ctx.inject.next);
	CHECK_EQ(1, bed.ctx.inject.hdr->prod);
	end(&bed);
}

/* Post @wr. Return: which doorbell was rung: 1: the usual one; 16: that of a thread. */
static unsigned int doorbell_of(struct bed *bed, const struct vrnic_wr *wr, uint32_t flags)
{
	rung = 0;
	rung_deferred = 0;
	CHECK_EQ(0, vrnic_put(&bed->ep, wr, &(struct vrnic_done){ .flags = flags }));
	bed->ctx.inject.hdr->cons = bed->ctx.inject.hdr->prod;
	return rung + 16 * rung_deferred;
}

static void deferred_operations_ring_for_a_thread(void)
{
	struct ibv_mr mr = { .lkey = 1 };
	struct vrnic_wr large = { .local = bytes, .mr = &mr, .length = 16384 };
	struct vrnic_wr small = { .local = bytes, .mr = &mr, .length = 16383 };
	struct bed bed;

	begin(&bed, 0, VRNIC_FEATURE_DEFER);
	bed.ctx.inject.hdr->flags = VRNIC_RING_DOORBELL;
	CHECK_EQ(1, doorbell_of(&bed, &large, 0));
	CHECK_EQ(16, doorbell_of(&bed, &large, VRNIC_DEFER));
	CHECK_EQ(1, doorbell_of(&bed, &small, VRNIC_DEFER));
	bed.ctx.defer = true;
	CHECK_EQ(16, doorbell_of(&bed, &large, 0));
	CHECK_EQ(1, doorbell_of(&bed, &small, 0));
	bed.ctx.inject.hdr->flags = 0;
	CHECK_EQ(0, doorbell_of(&bed, &large, VRNIC_DEFER));
	end(&bed);
}

/* The doorbell is that of the operations that a flush has put into the ring. */
static void queued_operations_are_deferred(void)
{
	const struct vrnic_done done = { .flags = VRNIC_QUEUE | VRNIC_DEFER };
	struct ibv_mr mr = { .lkey = 1 };
	struct vrnic_wr put = { .local = bytes, .mr = &mr, .length = 16384 };
	struct bed bed;
	unsigned int i;

	begin(&bed, 0, VRNIC_FEATURE_DEFER);
	bed.ctx.inject.hdr->flags = VRNIC_RING_DOORBELL;
	for (i = 0; i < SLOTS; i++)
		CHECK_EQ(0, vrnic_put(&bed.ep, &put, NULL));
	CHECK_EQ(0, vrnic_put(&bed.ep, &put, &done));
	CHECK(bed.ctx.queue);
	rung = 0;
	rung_deferred = 0;
	bed.ctx.inject.hdr->cons = SLOTS;
	CHECK_EQ(0, vrnic_post_flush(&bed.ctx));
	CHECK_EQ(0, rung);
	CHECK_EQ(1, rung_deferred);
	end(&bed);
}

static void older_modules_defer_nothing(void)
{
	const struct vrnic_done done = { .flags = VRNIC_DEFER };
	struct bed bed;

	begin(&bed, 0, VRNIC_FEATURE_PLACED);
	CHECK_EQ(-EOPNOTSUPP, vrnic_put_inline(&bed.ep, &target, &done));
	CHECK_EQ(0, bed.ctx.inject.hdr->prod);
	end(&bed);
}

static const struct unit_test tests[] = {
	UNIT(descriptors_say_where_their_data_lies),
	UNIT(older_modules_are_not_told),
	UNIT(other_descriptors_have_no_flag),
	UNIT(sources_are_gathered_around_the_end),
	UNIT(messages_are_gathered_behind_their_header),
	UNIT(one_source_is_one_of_several),
	UNIT(queued_operations_keep_their_place),
	UNIT(what_cannot_be_is_refused),
	UNIT(deferred_operations_ring_for_a_thread),
	UNIT(queued_operations_are_deferred),
	UNIT(older_modules_defer_nothing),
};

int main(void)
{
	make_bytes();
	return unit_main(tests, sizeof(tests) / sizeof(tests[0]));
}
