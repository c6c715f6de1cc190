// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The process's half of the rings, which provider and library share. The kernel is the test. */
#include <stdarg.h>
#include <stdlib.h>

#include "../../userlib/ring.h"
#include "unit.h"

#define ENTRIES		8
#define STRIDE		64
#define DOORBELL	7	/* the file */

static uint32_t rung[2 * VRNIC_LATE];
static unsigned int times, interrupted;

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	CHECK_EQ(DOORBELL, fd);
	CHECK_EQ(VRNIC_ADVANCE, request);
	if (interrupted) {
		interrupted--;
		errno = EINTR;
		return -1;
	}
	va_start(args, request);
	rung[times++] = (uint32_t)va_arg(args, unsigned long);
	va_end(args);
	return 0;
}

static void calls_that_a_signal_interrupts_are_made_again(void)
{
	times = 0;
	interrupted = 3;
	CHECK_EQ(0, vrnic_ring_call(DOORBELL, VRNIC_ADVANCE, 0x123456));
	CHECK_EQ(0, interrupted);
	CHECK_EQ(1, times);
	CHECK_EQ(0x123456, rung[0]);
}

/* Each number once, however often it was noted; one whose place is taken at once. */
static void late_doorbells_are_rung_once(void)
{
	struct vrnic_late late = {};
	unsigned int i;

	times = 0;
	CHECK(!vrnic_late_any(&late));
	for (i = 0; i < VRNIC_LATE; i++) {
		vrnic_late_add(&late, DOORBELL, VRNIC_ADVANCE, 3 * i);
		vrnic_late_add(&late, DOORBELL, VRNIC_ADVANCE, 3 * i);
	}
	CHECK_EQ(0, times);
	CHECK(vrnic_late_any(&late));
	vrnic_late_add(&late, DOORBELL, VRNIC_ADVANCE, VRNIC_LATE);
	CHECK_EQ(1, times);
	CHECK_EQ(0, rung[0]);
	times = 0;
	vrnic_late_ring(&late, DOORBELL, VRNIC_ADVANCE);
	CHECK_EQ(VRNIC_LATE, times);
	CHECK_EQ(VRNIC_LATE, rung[0]);
	CHECK(!vrnic_late_any(&late));
	vrnic_late_ring(&late, DOORBELL, VRNIC_ADVANCE);
	CHECK_EQ(VRNIC_LATE, times);
}

static struct vrnic_ring ring_new(uint32_t begin)
{
	struct vrnic_ring_info info = {
		.bytes = VRNIC_RING_DATA + ENTRIES * STRIDE,
		.entries = ENTRIES,
		.stride = STRIDE,
	};
	struct vrnic_ring ring;

	CHECK(vrnic_ring_info_is_sane(&info));
	vrnic_ring_init(&ring, calloc(1, info.bytes), &info);
	ring.hdr->prod = begin;
	ring.hdr->cons = begin;
	ring.next = begin;
	ring.cons = begin;
	return ring;
}

/* Indices run through 2^32; the kernel's is looked at only if there seems to be no room. */
static void there_is_room_until_the_ring_is_full(void)
{
	struct vrnic_ring ring = ring_new(UINT32_MAX - 3);

	CHECK(vrnic_ring_room(&ring, ring.next + ENTRIES));
	CHECK(!vrnic_ring_room(&ring, ring.next + ENTRIES + 1));
	ring.next += ENTRIES;
	CHECK(!vrnic_ring_room(&ring, ring.next + 1));
	ring.hdr->cons += 5;
	CHECK(vrnic_ring_room(&ring, ring.next + 5));
	CHECK(!vrnic_ring_room(&ring, ring.next + 6));
	CHECK_EQ(UINT32_MAX - 3 + 5, ring.cons);
	free(ring.hdr);
}

static void bytes_go_on_at_the_start(void)
{
	struct vrnic_ring ring = ring_new(ENTRIES - 1);
	uint8_t data[2 * STRIDE];
	unsigned int i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i + 1;
	vrnic_ring_copy_in(&ring, ring.next, 32, data, sizeof(data));
	for (i = 0; i < sizeof(data); i++)
		CHECK_EQ(i + 1, ring.slots[(7 * STRIDE + 32 + i) % (ENTRIES * STRIDE)]);
	CHECK_EQ(0, ring.slots[7 * STRIDE + 31]);
	CHECK_EQ(0, ring.slots[STRIDE + 32]);
	vrnic_ring_copy_in(&ring, ring.next, 0, NULL, 0);
	free(ring.hdr);
}

/* Several buffers, one behind the other, at each place of the ring; some are empty. */
static void buffers_follow_each_other_around_the_end(void)
{
	const size_t size = ENTRIES * STRIDE;
	uint8_t data[5 * STRIDE];
	struct iovec iov[] = {
		{ data, 1 }, { NULL, 0 }, { data + 1, 2 * STRIDE }, { data + 1 + 2 * STRIDE, 0 },
		{ data + 1 + 2 * STRIDE, 3 * STRIDE - 1 },
	};
	struct vrnic_ring ring;
	unsigned int i;
	size_t from;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i % 255 + 1;
	for (from = 0; from < size; from++) {
		ring = ring_new(0);
		CHECK_EQ(from % STRIDE + sizeof(data),
			 vrnic_ring_copy_iov(&ring, from / STRIDE, from % STRIDE, iov, 5));
		for (i = 0; i < sizeof(data); i++)
			CHECK_EQ(data[i], ring.slots[(from + i) % size]);
		for (; i < size; i++)
			CHECK_EQ(0, ring.slots[(from + i) % size]);
		CHECK_EQ(7, vrnic_ring_copy_iov(&ring, 0, 7, NULL, 0));
		free(ring.hdr);
	}
}

/* What is taken is given back once; an empty ring's header is not written. */
static void taken_entries_are_given_back(void)
{
	struct vrnic_ring ring = ring_new(0);

	ring.next = 3;
	vrnic_ring_release(&ring);
	CHECK_EQ(3, ring.hdr->cons);
	vrnic_ring_arm(&ring, true);
	CHECK_EQ(VRNIC_ARM_SOLICITED, ring.hdr->arm);
	vrnic_ring_arm(&ring, false);
	vrnic_ring_arm(&ring, true);
	CHECK_EQ(VRNIC_ARM_NEXT, ring.hdr->arm);
	CHECK(vrnic_ring_is_armed(&ring));
	free(ring.hdr);
}

static void answers_that_cannot_be_are_refused(void)
{
	static const struct vrnic_ring_info bad[] = {
		{ .bytes = 1 << 20, .entries = 0, .stride = STRIDE },
		{ .bytes = 1 << 20, .entries = 3, .stride = STRIDE },
		{ .bytes = 1 << 20, .entries = ENTRIES, .stride = 0 },
		{ .bytes = VRNIC_RING_DATA, .entries = ENTRIES, .stride = STRIDE },
		{ .bytes = VRNIC_RING_DATA + ENTRIES * STRIDE - 1, .entries = ENTRIES,
		  .stride = STRIDE },
		{ .bytes = 1 << 20, .entries = 1U << 31, .stride = 1U << 31 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!vrnic_ring_info_is_sane(&bad[i]));
}

static const struct unit_test tests[] = {
	UNIT(calls_that_a_signal_interrupts_are_made_again),
	UNIT(late_doorbells_are_rung_once),
	UNIT(there_is_room_until_the_ring_is_full),
	UNIT(bytes_go_on_at_the_start),
	UNIT(buffers_follow_each_other_around_the_end),
	UNIT(taken_entries_are_given_back),
	UNIT(answers_that_cannot_be_are_refused),
};

UNIT_MAIN(tests)
