// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion counters, in a page of a file in place of the kernel's. */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring_test.h"

#ifdef VRNIC_HAVE_COMP_CNTR

#define CELL		5
#define AT		4096		/* where the kernel says that the page is */
#define HANDLE		77

static uint32_t made_flags;
static uint32_t made_cell;
static unsigned int made, destroyed;

/* Stands in for libibverbs' function, and for the kernel: notes what is asked for, and answers. */
int ibv_cmd_create_comp_cntr(struct ibv_context *ctx, struct ibv_comp_cntr *cc,
			     struct ibv_command_buffer *link)
{
	const struct ib_uverbs_attr *attr = link->hdr.attrs;
	struct vrnic_create_comp_cntr_resp *resp = (void *)(uintptr_t)attr[1].data;

	CHECK(attr[0].attr_id == VRNIC_ATTR_COMP_CNTR_CREATE_FLAGS && attr[0].len == 4);
	CHECK(attr[1].attr_id == VRNIC_ATTR_COMP_CNTR_CREATE_RESP && attr[1].len == sizeof(*resp));
	made_flags = attr[0].data;
	*resp = (struct vrnic_create_comp_cntr_resp){ .offset = AT, .cell = made_cell };
	cc->context = ctx;
	cc->handle = HANDLE;
	made++;
	return 0;
}

int ibv_cmd_destroy_comp_cntr(struct ibv_comp_cntr *cc)
{
	CHECK(cc->handle == HANDLE);
	destroyed++;
	return 0;
}

static struct vrnic_comp_cell *page_open(void)
{
	int fd = memfd_create("counters", 0);
	void *page;

	if (fd < 0 || ftruncate(fd, AT + 4096))
		abort();
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, AT);
	if (page == MAP_FAILED)
		abort();
	context.vctx.context.cmd_fd = fd;
	made_cell = CELL;
	made = 0;
	destroyed = 0;
	return page;
}

static void page_close(struct vrnic_comp_cell *page)
{
	munmap(page, 4096);
	close(context.vctx.context.cmd_fd);
}

static uint64_t value_of(struct ibv_comp_cntr *cc)
{
	uint64_t value = 0;

	CHECK(!vrnic_read_comp_cntr(cc, &value));
	return value;
}

static uint64_t errors_of(struct ibv_comp_cntr *cc)
{
	uint64_t value = 0;

	CHECK(!vrnic_read_err_comp_cntr(cc, &value));
	return value;
}

void test_comp_cntr(void)
{
	struct ibv_comp_cntr_init_attr attr = { .type = IBV_COMP_CNTR_TYPE_BYTES };
	struct vrnic_comp_cell *page = page_open(), *cell = page + CELL;
	struct ibv_comp_cntr *cc;

	cc = vrnic_create_comp_cntr(&context.vctx.context, &attr);
	if (!cc)
		abort();
	CHECK(made == 1 && made_flags == VRNIC_COMP_CNTR_BYTES);
	CHECK(!value_of(cc) && !errors_of(cc));
	cell->completed = 10;
	cell->errors = 3;
	CHECK(value_of(cc) == 10 && errors_of(cc) == 3);
	CHECK(!vrnic_inc_comp_cntr(cc, 5) && !vrnic_inc_err_comp_cntr(cc, 1));
	CHECK(cell->completed == 15 && cell->errors == 4);
	CHECK(!vrnic_set_comp_cntr(cc, ~0ULL) && !vrnic_set_err_comp_cntr(cc, 9));
	CHECK(cell->completed == ~0ULL && cell->errors == 9);
	CHECK(!vrnic_inc_comp_cntr(cc, 2));
	CHECK(value_of(cc) == 1);
	CHECK(!vrnic_destroy_comp_cntr(cc) && destroyed == 1);
	page_close(page);
}

/* Else a program that waits for the counter, and polls nothing, would wait for a timer. */
void test_comp_cntr_rings(void)
{
	struct ibv_comp_cntr_init_attr attr = { .type = IBV_COMP_CNTR_TYPE_WRS };
	struct vrnic_comp_cell *page = page_open();
	struct ibv_comp_cntr *cc;

	cc = vrnic_create_comp_cntr(&context.vctx.context, &attr);
	if (!cc)
		abort();
	CHECK(!made_flags);
	doorbells = 0;
	CHECK(!value_of(cc));
	CHECK(!doorbells);
	context.late.set = 1;
	CHECK(!value_of(cc));
	CHECK(doorbells == 1 && !context.late.set);
	context.late.set = 1;
	CHECK(!errors_of(cc));
	CHECK(doorbells == 2 && !context.late.set);
	/* and the posts before it were no stream */
	context.vain = 0;
	page[CELL].completed = 1;
	CHECK(value_of(cc) == 1 && !context.vain);
	CHECK(!errors_of(cc) && context.vain == 1);
	CHECK(value_of(cc) == 1 && context.vain == 2);
	CHECK(!vrnic_destroy_comp_cntr(cc));
	page_close(page);
}

static int refusal(struct ibv_comp_cntr_init_attr attr)
{
	errno = 0;
	CHECK(!vrnic_create_comp_cntr(&context.vctx.context, &attr));
	return errno;
}

void test_comp_cntr_refused(void)
{
	struct vrnic_comp_cell *page = page_open();

	CHECK(refusal((struct ibv_comp_cntr_init_attr){ .comp_mask = 1 }) == EOPNOTSUPP);
	CHECK(refusal((struct ibv_comp_cntr_init_attr){ .flags = 1 }) == EOPNOTSUPP);
	CHECK(refusal((struct ibv_comp_cntr_init_attr){ .type = 2 }) == EINVAL);
	CHECK(!made);
	/* a place behind the page */
	made_cell = 4096 / sizeof(*page);
	CHECK(refusal((struct ibv_comp_cntr_init_attr){}) == EPROTO);
	CHECK(made == 1 && destroyed == 1);
	page_close(page);
}

#else

/* This libibverbs has none. */
void test_comp_cntr(void) {}
void test_comp_cntr_rings(void) {}
void test_comp_cntr_refused(void) {}

#endif /* VRNIC_HAVE_COMP_CNTR */
