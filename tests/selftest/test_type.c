// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Type objects (S3.1), by the ioctls themselves: what is taken, and what is not. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/vrnic-abi.h>

#include "harness.h"

#define MANDATORY	1	/* UVERBS_ATTR_F_MANDATORY */

struct uverbs_request {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[3];
};

/* struct made - a type: the core's handle, and the number for descriptors */
struct made {
	uint32_t handle;
	uint32_t number;
};

static int type_ioctl(struct ibv_context *ctx, struct uverbs_request *r, uint16_t method,
		      unsigned int attrs)
{
	r->hdr.length = sizeof(r->hdr) + attrs * sizeof(r->attr[0]);
	r->hdr.object_id = VRNIC_OBJECT_TYPE;
	r->hdr.method_id = method;
	r->hdr.num_attrs = attrs;
	r->hdr.driver_id = VRNIC_DRIVER_ID;
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &r->hdr) ? -errno : 0;
}

static void put_attr(struct ib_uverbs_attr *a, uint16_t id, uint16_t len, void *data)
{
	*a = (struct ib_uverbs_attr){
		.attr_id = id, .len = len, .flags = MANDATORY, .data = (uintptr_t)data,
	};
	/* short input travels in the attribute */
	if (len && len <= sizeof(a->data) && id == VRNIC_ATTR_TYPE_CREATE_REQ)
		memcpy(&a->data, data, len);
}

static int create_req(struct ibv_context *ctx, struct vrnic_create_type_req *req,
		      void *resp, size_t resp_len, struct made *made)
{
	struct uverbs_request r = {};
	int err;

	put_attr(&r.attr[0], VRNIC_ATTR_TYPE_CREATE_HANDLE, 0, NULL);
	put_attr(&r.attr[1], VRNIC_ATTR_TYPE_CREATE_REQ, sizeof(*req), req);
	put_attr(&r.attr[2], VRNIC_ATTR_TYPE_CREATE_RESP, resp_len, resp);
	err = type_ioctl(ctx, &r, VRNIC_METHOD_TYPE_CREATE, 3);
	made->handle = r.attr[0].data;
	return err;
}

static int create(struct ibv_context *ctx, const struct vrnic_type_row *rows,
		  uint32_t nr, struct made *made)
{
	struct vrnic_create_type_req req = {
		.rows = (uintptr_t)rows, .nr_rows = nr,
	};
	struct vrnic_create_type_resp resp = {};
	int err;

	err = create_req(ctx, &req, &resp, sizeof(resp), made);
	made->number = resp.type;
	return err;
}

static int destroy(struct ibv_context *ctx, const struct made *made)
{
	struct uverbs_request r = {};

	put_attr(&r.attr[0], VRNIC_ATTR_TYPE_DESTROY_HANDLE, 0, NULL);
	r.attr[0].data = made->handle;
	return type_ioctl(ctx, &r, VRNIC_METHOD_TYPE_DESTROY, 1);
}

static struct vrnic_type_row row(int64_t offset, uint64_t bytes, uint64_t count,
				 int64_t stride)
{
	return (struct vrnic_type_row){
		.offset = offset, .bytes = bytes, .count = count, .stride = stride,
	};
}

FIXTURE(type)
{
	struct dev dev;
	struct made made;
};

FIXTURE_SETUP(type)
{
	ASSERT_OK(dev_open(&self->dev));
}

FIXTURE_TEARDOWN(type)
{
	dev_close(&self->dev);
}

TEST_F(type, s3_1_rows_of_chunks)
{
	struct vrnic_type_row rows[] = { row(-8, 2, 1, 0), row(5, 1, 4, -3),
					 row(7, 1, 9, 0) };
	struct made other;

	ASSERT_OK(create(self->dev.ctx, rows, 3, &self->made));
	ASSERT_OK(create(self->dev.ctx, rows, 3, &other));
	EXPECT_NE(0, self->made.number);
	EXPECT_NE(self->made.number, other.number);
	EXPECT_OK(destroy(self->dev.ctx, &self->made));
	EXPECT_EQ(-ENOENT, destroy(self->dev.ctx, &self->made));
	EXPECT_OK(destroy(self->dev.ctx, &other));
}

TEST_F(type, as_many_rows_as_there_may_be)
{
	struct vrnic_type_row *rows = calloc(VRNIC_TYPE_ROWS_MAX + 1, sizeof(*rows));
	uint32_t i;

	ASSERT_NE(NULL, rows);
	for (i = 0; i <= VRNIC_TYPE_ROWS_MAX; i++)
		rows[i] = row(i * 16ULL + (i & 4), 1 + (i & 3), 1, 0);
	EXPECT_EQ(-EINVAL, create(self->dev.ctx, rows, VRNIC_TYPE_ROWS_MAX + 1,
				  &self->made));
	EXPECT_OK(create(self->dev.ctx, rows, VRNIC_TYPE_ROWS_MAX, &self->made));
	EXPECT_OK(destroy(self->dev.ctx, &self->made));
	free(rows);
}

TEST_F(type, nonsense_is_refused)
{
	struct vrnic_type_row bad[] = {
		row(0, 0, 1, 0), row(0, 1, 0, 0), row(INT64_MAX, 1, 1, 0),
		row(0, 8, 2, INT64_MAX), row(INT64_MIN, 1, 2, -1),
		row(0, 1ULL << 40, 1ULL << 40, 0), row(0, UINT64_MAX, 1, 0),
	};
	unsigned int i;

	EXPECT_EQ(-EINVAL, create(self->dev.ctx, bad, 0, &self->made));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(-EINVAL, create(self->dev.ctx, &bad[i], 1, &self->made));
}

TEST_F(type, reserved_is_zero)
{
	struct vrnic_type_row one = row(0, 8, 1, 0);
	struct vrnic_create_type_req req = {
		.rows = (uintptr_t)&one, .nr_rows = 1, .reserved = 1,
	};
	struct vrnic_create_type_resp resp;

	EXPECT_EQ(-EINVAL, create_req(self->dev.ctx, &req, &resp, sizeof(resp),
				      &self->made));
}

/* Rows that are not there, or only half; and a request whose answer has no place. */
TEST_F(type, memory_that_is_not_there)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct vrnic_type_row one = row(0, 8, 1, 0), *edge;
	struct vrnic_create_type_req req = { .rows = (uintptr_t)&one, .nr_rows = 1 };
	uint8_t *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	ASSERT_NE(MAP_FAILED, map);
	ASSERT_OK(munmap(map + page, page));
	edge = (struct vrnic_type_row *)(map + page) - 1;
	*edge = one;
	EXPECT_OK(create(self->dev.ctx, edge, 1, &self->made));
	EXPECT_OK(destroy(self->dev.ctx, &self->made));
	EXPECT_EQ(-EFAULT, create(self->dev.ctx, edge, 2, &self->made));
	EXPECT_EQ(-EFAULT, create(self->dev.ctx, edge + 1, 1, &self->made));
	for (i = 0; i < 100; i++)
		EXPECT_EQ(-EFAULT, create_req(self->dev.ctx, &req, map + page,
					      sizeof(struct vrnic_create_type_resp),
					      &self->made));
	munmap(map, page);
}

/* A program that is older or newer than the module. */
TEST_F(type, short_and_long_answers)
{
	struct vrnic_type_row one = row(0, 8, 1, 0);
	struct vrnic_create_type_req req = { .rows = (uintptr_t)&one, .nr_rows = 1 };
	uint32_t words[8];

	memset(words, 0xff, sizeof(words));
	ASSERT_OK(create_req(self->dev.ctx, &req, words, 4, &self->made));
	EXPECT_NE(UINT32_MAX, words[0]);
	EXPECT_EQ(UINT32_MAX, words[1]);
	EXPECT_OK(destroy(self->dev.ctx, &self->made));
	ASSERT_OK(create_req(self->dev.ctx, &req, words, sizeof(words), &self->made));
	EXPECT_EQ(0, words[1]);
	EXPECT_EQ(0, words[7]);
	EXPECT_OK(destroy(self->dev.ctx, &self->made));
}

/* What a process leaves behind goes with it; kmemleak looks. */
TEST_F(type, die_with_their_process)
{
	struct vrnic_type_row one = row(0, 8, 4096, 16);
	struct ibv_context *ctx;
	int i, status;
	pid_t child = fork();

	ASSERT_NE(-1, child);
	if (!child) {
		ctx = dev_open_context();
		for (i = 0; ctx && i < 1000; i++)
			if (create(ctx, &one, 1, &self->made))
				_exit(1);
		kill(getpid(), SIGKILL);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_HARNESS_MAIN
