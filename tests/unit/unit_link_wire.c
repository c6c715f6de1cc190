// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Headers of native messages, and the datagrams that make links: byte by byte as
 * Documentation/wire.rst has them, and values that must be refused.
 */
#include <string.h>

#include "lib/link_wire.h"

#include "unit.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

static void sizes(void)
{
	CHECK_EQ(72, sizeof(struct vrnic_nwire));
	CHECK_EQ(56, sizeof(struct vrnic_hello_wire));
}

static void header_is_packed(void)
{
	static const u8 expected[] = {
		0x03, 0x02, 0x01, 0x0a, 0x00, 0x00, 0x00, 0x11,
		0x00, 0x00, 0x10, 0x00, 0x12, 0x34, 0x56, 0x78,
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x21, 0x00, 0x00, 0x00, 0x22,
		0x00, 0x00, 0x00, 0x23, 0x07, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x24, 0x00, 0x00, 0x00, 0x00,
		0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8,
	};
	const struct vrnic_nhdr h = {
		.op = 2, .flags = 1, .status = 10, .vendor_err = 7, .id = 0x11,
		.data = 4096, .key = 0x12345678, .addr = 0x1122334455667788,
		.total = 0x200000, .pos = 0x100000, .counter = { 0x21, 0x22 },
		.arg = 0x23, .type = 0x24, .cookie = 0xa1a2a3a4a5a6a7a8,
	};
	struct vrnic_nwire w;
	struct vrnic_nhdr back;

	memset(&w, 0x5a, sizeof(w));
	memset(&back, 0, sizeof(back));
	vrnic_nwire_fill(&w, &h);
	CHECK(!memcmp(&w, expected, sizeof(expected)));
	CHECK(vrnic_nwire_read(&w, &back));
	CHECK_EQ(h.addr, back.addr);
	CHECK_EQ(h.cookie, back.cookie);
	CHECK_EQ(h.counter[1], back.counter[1]);
	CHECK_EQ(h.vendor_err, back.vendor_err);
}

static bool good(const struct vrnic_nhdr *h)
{
	struct vrnic_nwire w;
	struct vrnic_nhdr back;

	vrnic_nwire_fill(&w, h);
	return vrnic_nwire_read(&w, &back);
}

#define GOOD(...)	CHECK(good(&(struct vrnic_nhdr){ __VA_ARGS__ }))
#define BAD(...)	CHECK(!good(&(struct vrnic_nhdr){ __VA_ARGS__ }))

static void versions_and_reserved_bytes(void)
{
	const struct vrnic_nhdr h = { .op = VRNIC_NWIRE_PUT };
	struct vrnic_nwire w;
	struct vrnic_nhdr back;
	int i;

	vrnic_nwire_fill(&w, &h);
	CHECK(vrnic_nwire_read(&w, &back));
	w.version = VRNIC_NWIRE_VERSION + 1;
	CHECK(!vrnic_nwire_read(&w, &back));
	w.version = 0;
	CHECK(!vrnic_nwire_read(&w, &back));
	for (i = 0; i < 3; i++) {
		vrnic_nwire_fill(&w, &h);
		w.reserved[i] = 1;
		CHECK(!vrnic_nwire_read(&w, &back));
	}
	vrnic_nwire_fill(&w, &h);
	w.reserved2 = 1;
	CHECK(!vrnic_nwire_read(&w, &back));
}

static void only_known_operations_and_flags(void)
{
	unsigned int op, flag;

	BAD(.op = 0);
	for (op = VRNIC_NWIRE_MAX; op < 256; op++)
		BAD(.op = op);
	for (flag = 4; flag < 8; flag++)
		for (op = 0; op < VRNIC_NWIRE_MAX; op++)
			BAD(.op = op, .flags = 1 << flag);
	GOOD(.op = VRNIC_NWIRE_GET, .flags = VRNIC_NWIRE_TYPED);
	GOOD(.op = VRNIC_NWIRE_GET, .flags = VRNIC_NWIRE_TYPED | VRNIC_NWIRE_PACK);
	BAD(.op = VRNIC_NWIRE_GET, .flags = VRNIC_NWIRE_PACK);
	BAD(.op = VRNIC_NWIRE_PUT, .flags = VRNIC_NWIRE_TYPED | VRNIC_NWIRE_PACK);
	BAD(.op = VRNIC_NWIRE_RMW, .total = 8, .flags = VRNIC_NWIRE_TYPED);
	BAD(.op = VRNIC_NWIRE_PUT, .flags = VRNIC_NWIRE_AGAIN);
}

#define WITH_ROWS	(VRNIC_NWIRE_TYPED | VRNIC_NWIRE_ROWS)

/* Rows with the first data: whole ones, and no more than there are bytes. */
static void rows_before_data(void)
{
	unsigned int op;

	GOOD(.op = VRNIC_NWIRE_PUT, .flags = WITH_ROWS, .arg = 64, .data = 72, .total = 8);
	GOOD(.op = VRNIC_NWIRE_PUT, .flags = WITH_ROWS, .arg = 64, .data = 72, .total = 9);
	BAD(.op = VRNIC_NWIRE_PUT, .flags = WITH_ROWS, .arg = 64, .data = 72, .total = 7);
	BAD(.op = VRNIC_NWIRE_PUT, .flags = WITH_ROWS, .arg = 65, .data = 73, .total = 8);
	BAD(.op = VRNIC_NWIRE_PUT, .flags = WITH_ROWS, .arg = 0, .data = 8, .total = 8);
	BAD(.op = VRNIC_NWIRE_PUT, .flags = WITH_ROWS, .arg = 96, .data = 64, .total = 8);
	BAD(.op = VRNIC_NWIRE_PUT, .flags = WITH_ROWS, .arg = 64, .data = 72, .pos = 8,
	    .total = 16);
	GOOD(.op = VRNIC_NWIRE_GET, .flags = WITH_ROWS, .arg = 8, .data = 64, .total = 8);
	BAD(.op = VRNIC_NWIRE_GET, .flags = WITH_ROWS, .arg = 8, .data = 65, .total = 8);
	BAD(.op = VRNIC_NWIRE_GET, .flags = WITH_ROWS, .arg = 8, .total = 8);
	BAD(.op = VRNIC_NWIRE_GET, .flags = WITH_ROWS, .arg = 8, .data = 64, .pos = 8,
	    .total = 16);
	BAD(.op = VRNIC_NWIRE_GET, .flags = VRNIC_NWIRE_TYPED, .arg = 8, .data = 64, .total = 8);
	for (op = 0; op < VRNIC_NWIRE_MAX; op++)
		BAD(.op = op, .flags = VRNIC_NWIRE_ROWS);
}

/* Sums that would wrap, and lengths beyond the limits. */
static void lengths_of_moves(void)
{
	GOOD(.op = VRNIC_NWIRE_PUT, .data = 10, .pos = 90, .total = 100);
	BAD(.op = VRNIC_NWIRE_PUT, .data = 11, .pos = 90, .total = 100);
	BAD(.op = VRNIC_NWIRE_PUT, .data = 10, .pos = ~0ULL, .total = 100);
	BAD(.op = VRNIC_NWIRE_PUT, .data = 10, .pos = ~0ULL - 4, .total = 100);
	BAD(.op = VRNIC_NWIRE_PUT, .total = 1ULL << 63);
	GOOD(.op = VRNIC_NWIRE_PUT, .total = (1ULL << 63) - 1);
	GOOD(.op = VRNIC_NWIRE_PUT, .data = 1 << 20, .total = 1 << 20);
	BAD(.op = VRNIC_NWIRE_PUT, .data = (1 << 20) + 1, .total = 1 << 21);
	GOOD(.op = VRNIC_NWIRE_GET, .arg = 1 << 20, .total = 1 << 20);
	BAD(.op = VRNIC_NWIRE_GET, .arg = (1 << 20) + 1, .total = 1 << 21);
	BAD(.op = VRNIC_NWIRE_GET, .arg = ~0U, .total = 1 << 21);
	BAD(.op = VRNIC_NWIRE_GET, .arg = 8, .data = 8, .total = 8);
}

static void lengths_of_messages(void)
{
	GOOD(.op = VRNIC_NWIRE_MESSAGE, .key = 96, .total = 4000, .data = 4096);
	BAD(.op = VRNIC_NWIRE_MESSAGE, .key = 97, .total = 4000, .data = 4097);
	BAD(.op = VRNIC_NWIRE_MESSAGE, .key = 96, .total = 4000, .data = 4095);
	BAD(.op = VRNIC_NWIRE_MESSAGE, .key = ~0U, .total = 1, .data = 0);
	BAD(.op = VRNIC_NWIRE_MESSAGE, .total = 1ULL << 32, .data = 0);
	GOOD(.op = VRNIC_NWIRE_RGET, .data = 1024);
	BAD(.op = VRNIC_NWIRE_RGET, .data = 1024 + 64);
	BAD(.op = VRNIC_NWIRE_RGET, .data = 63);
	BAD(.op = VRNIC_NWIRE_RGET, .data = 0);
	BAD(.op = VRNIC_NWIRE_NOTIFY, .data = 1);
	BAD(.op = VRNIC_NWIRE_ERROR, .data = 1);
	GOOD(.op = VRNIC_NWIRE_PUTS, .data = 24, .total = 1);
	GOOD(.op = VRNIC_NWIRE_PUTS, .data = 4096, .total = VRNIC_NPUTS_MAX,
	     .pos = VRNIC_NPUTS_MAX);
	BAD(.op = VRNIC_NWIRE_PUTS, .data = 4097, .total = VRNIC_NPUTS_MAX);
	BAD(.op = VRNIC_NWIRE_PUTS, .data = 24, .total = 0);
	GOOD(.op = VRNIC_NWIRE_PUTS, .data = 24, .total = 1, .counter = { 1, 0 });
	BAD(.op = VRNIC_NWIRE_PUTS, .data = 24, .total = 1, .counter = { 1, 1 });
	BAD(.op = VRNIC_NWIRE_PUTS, .data = 24, .total = VRNIC_NPUTS_MAX + 1);
	BAD(.op = VRNIC_NWIRE_PUTS, .data = 24, .total = (1ULL << 32) + 1);
	BAD(.op = VRNIC_NWIRE_PUTS, .data = 24, .total = 1, .pos = 2);
	BAD(.op = VRNIC_NWIRE_PUTS, .data = 24, .total = 1, .pos = 1ULL << 32);
}

static void words(void)
{
	GOOD(.op = VRNIC_NWIRE_RMW, .total = 8, .addr = 16);
	GOOD(.op = VRNIC_NWIRE_RMW, .total = 4, .addr = 4, .arg = 0x105);
	BAD(.op = VRNIC_NWIRE_RMW, .total = 8, .addr = 4);
	BAD(.op = VRNIC_NWIRE_RMW, .total = 2, .addr = 4);
	BAD(.op = VRNIC_NWIRE_RMW, .total = 0, .addr = 4);
	BAD(.op = VRNIC_NWIRE_RMW, .total = 8, .addr = 8, .arg = 6);
	BAD(.op = VRNIC_NWIRE_RMW, .total = 8, .addr = 8, .arg = 0x200);
}

static void rows_of_types(void)
{
	GOOD(.op = VRNIC_NWIRE_TYPE, .total = 32, .data = 32);
	BAD(.op = VRNIC_NWIRE_TYPE, .total = 0, .data = 0);
	BAD(.op = VRNIC_NWIRE_TYPE, .total = 33, .data = 33);
	BAD(.op = VRNIC_NWIRE_TYPE, .total = 32, .data = 32, .pos = 32);
	GOOD(.op = VRNIC_NWIRE_TYPE, .total = 32ULL << 20, .data = 1 << 20);
	BAD(.op = VRNIC_NWIRE_TYPE, .total = (32ULL << 20) + 32);
	BAD(.op = VRNIC_NWIRE_TYPE, .total = 1ULL << 62);
}

/* Puts of 8, 1 and 9 bytes, in 24, 24 and 32. */
static u32 make_puts(u8 *data)
{
	static const u32 lens[] = { 8, 1, 9 };
	struct vrnic_nput put;
	u32 at = 0, i;

	for (i = 0; i < 3; i++) {
		put.addr = cpu_to_be64(0x1000 + i);
		put.key = cpu_to_be32(i);
		put.len = cpu_to_be32(lens[i]);
		memcpy(data + at, &put, sizeof(put));
		at += vrnic_nput_bytes(lens[i]);
	}
	return at;
}

static void small_puts(void)
{
	struct vrnic_nput put;
	u8 data[128] = {};
	u32 bytes = make_puts(data), at = 0, cut;

	CHECK_EQ(80, bytes);
	CHECK(vrnic_nput_next(data, bytes, &at, &put) == data + 16);
	CHECK_EQ(24, at);
	CHECK(vrnic_nput_next(data, bytes, &at, &put) == data + 40);
	CHECK_EQ(0x1001, be64_to_cpu(put.addr));
	CHECK_EQ(1, be32_to_cpu(put.key));
	CHECK_EQ(48, at);
	CHECK(vrnic_nput_next(data, bytes, &at, &put) == data + 64);
	CHECK_EQ(80, at);
	CHECK(!vrnic_nput_next(data, bytes, &at, &put));
	/* cut anywhere, the last one is not whole */
	for (cut = 48; cut < bytes; cut++) {
		at = 48;
		CHECK(!vrnic_nput_next(data, cut, &at, &put));
		CHECK_EQ(48, at);
	}
	for (cut = 0; cut < 16; cut++) {
		at = 0;
		CHECK(!vrnic_nput_next(data, cut, &at, &put));
	}
}

/* Lengths that wrap, or are none. */
static void small_puts_of_odd_lengths(void)
{
	static const u32 lens[] = { 0, 0xffffffff, 0xfffffff8, 0xfffffff0, 0x80000000, 65 };
	struct vrnic_nput put;
	u8 data[128] = {};
	u32 i, at;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		make_puts(data);
		put.len = cpu_to_be32(lens[i]);
		memcpy(data + 12, &put.len, sizeof(put.len));
		at = 0;
		CHECK(!vrnic_nput_next(data, sizeof(data), &at, &put));
		CHECK_EQ(0, at);
	}
}

static const u8 asks[] = {
	0x76, 0x72, 0x4e, 0x4c, 0x03, 0x01, 0x00, 0x00,
	0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
	0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
	0x00, 0x00, 0x00, 0x05, 0x00, 0x12, 0x34, 0x56,
	0x00, 0xab, 0xcd, 0xef, 0x00, 0x00, 0x10, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06,
	0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00,
};

static void hello_is_packed(void)
{
	const struct vrnic_hello h = {
		.kind = VRNIC_HELLO_ASK, .secret = 0xf1f2f3f4f5f6f7f8,
		.nonce = 0xe1e2e3e4e5e6e7e8, .fifo = 5, .qpn = 0x123456,
		.psn = 0xabcdef, .mtu = 4096, .from_fifo = 6, .task = 7,
	};
	struct vrnic_hello_wire w;
	struct vrnic_hello back;

	memset(&w, 0x5a, sizeof(w));
	vrnic_hello_fill(&w, &h);
	w.order = 0;
	CHECK(!memcmp(&w, asks, sizeof(asks)));
	CHECK(vrnic_hello_read(&w, &back));
	CHECK_EQ(h.secret, back.secret);
	CHECK_EQ(h.nonce, back.nonce);
	CHECK_EQ(h.psn, back.psn);
	CHECK_EQ(h.task, back.task);
}

/* Each byte whose change must not go unnoticed: where, what, is it read, does it fit. */
static void hello_is_not_believed(void)
{
	static const struct {
		u8 at, value;
		bool reads;
	} changes[] = {
		{ 0, 0x77, false },	/* magic */
		{ 4, 0x04, true },	/* version: to be told, not served */
		{ 5, 0x00, false }, { 5, 0x05, false }, { 5, 0xff, false },
		{ 28, 0x01, false },	/* numbers of 24 bits */
		{ 32, 0x01, false }, { 40, 0x80, false },
		{ 38, 0x00, true },	/* MTU of 0 */
	};
	struct vrnic_hello_wire w;
	struct vrnic_hello h;
	unsigned int i;

	memcpy(&w, asks, sizeof(w));
	w.order = VRNIC_HELLO_ORDER;
	CHECK(vrnic_hello_read(&w, &h) && vrnic_hello_fits(&h));
	w.order = !VRNIC_HELLO_ORDER;
	CHECK(vrnic_hello_read(&w, &h) && !vrnic_hello_fits(&h));
	for (i = 0; i < COUNT(changes); i++) {
		memcpy(&w, asks, sizeof(w));
		((u8 *)&w)[changes[i].at] = changes[i].value;
		CHECK_EQ(changes[i].reads, vrnic_hello_read(&w, &h));
		CHECK(!changes[i].reads || !vrnic_hello_fits(&h));
	}
}

/* That is what a link has which nobody was told of. */
static void hello_has_a_nonce(void)
{
	struct vrnic_hello_wire w;
	struct vrnic_hello h;

	memcpy(&w, asks, sizeof(w));
	w.nonce = 0;
	CHECK(!vrnic_hello_read(&w, &h));
	w.nonce = cpu_to_be64(1);
	CHECK(vrnic_hello_read(&w, &h));
}

static const struct unit_test tests[] = {
	UNIT(sizes), UNIT(header_is_packed), UNIT(versions_and_reserved_bytes),
	UNIT(only_known_operations_and_flags), UNIT(rows_before_data), UNIT(lengths_of_moves),
	UNIT(lengths_of_messages), UNIT(words), UNIT(rows_of_types), UNIT(small_puts),
	UNIT(small_puts_of_odd_lengths),
	UNIT(hello_is_packed), UNIT(hello_is_not_believed),
	UNIT(hello_has_a_nonce),
};

UNIT_MAIN(tests)
