// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Libraries that are newer or older than the module: the driver's parts of commands, in
 * sizes of their own.
 */
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/vrnic-abi.h>

#include "harness.h"

#define GROWN	64	/* bytes of what a newer library passes and expects */

FIXTURE(abi) {
	struct dev dev;
	uint8_t req[GROWN], resp[GROWN];
	uint32_t cqe, vector, handle;
};

FIXTURE_SETUP(abi)
{
	ASSERT_OK(dev_open(&self->dev));
	self->cqe = 16;
}

FIXTURE_TEARDOWN(abi)
{
	dev_close(&self->dev);
}

struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[7];
};

static struct ib_uverbs_attr *add(struct call *call, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &call->attrs[call->hdr.num_attrs++];

	attr->attr_id = id;
	attr->len = len;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->data = data;
	return attr;
}

/* Up to eight bytes travel in the attribute itself. */
static uint64_t data_of(const void *p, size_t len)
{
	uint64_t data = (uintptr_t)p;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, p, len);
	}
	return data;
}

/* Make a completion queue with driver parts of these lengths: 0, or an errno. */
static int create_cq(FIXTURE_DATA(abi) *self, size_t req_len, size_t resp_len)
{
	struct call call = { .hdr = { .object_id = UVERBS_OBJECT_CQ,
				      .method_id = UVERBS_METHOD_CQ_CREATE,
				      .driver_id = VRNIC_DRIVER_ID } };
	struct ib_uverbs_attr *handle;

	handle = add(&call, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	add(&call, UVERBS_ATTR_CREATE_CQ_CQE, 4, self->cqe);
	add(&call, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 0);
	add(&call, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, self->vector);
	add(&call, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, (uintptr_t)&self->cqe);
	if (req_len)
		add(&call, UVERBS_ATTR_UHW_IN, req_len, data_of(self->req, req_len));
	if (resp_len)
		add(&call, UVERBS_ATTR_UHW_OUT, resp_len, (uintptr_t)self->resp);
	call.hdr.length = sizeof(call.hdr) + call.hdr.num_attrs * sizeof(call.attrs[0]);
	if (ioctl(self->dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, &call.hdr))
		return errno;
	self->handle = handle->data;
	return 0;
}

static int destroy_cq(FIXTURE_DATA(abi) *self)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct call call = { .hdr = { .object_id = UVERBS_OBJECT_CQ,
				      .method_id = UVERBS_METHOD_CQ_DESTROY,
				      .driver_id = VRNIC_DRIVER_ID } };

	add(&call, UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, self->handle);
	add(&call, UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(resp), (uintptr_t)&resp);
	call.hdr.length = sizeof(call.hdr) + call.hdr.num_attrs * sizeof(call.attrs[0]);
	return ioctl(self->dev.ctx->cmd_fd, RDMA_VERBS_IOCTL, &call.hdr) ? errno : 0;
}

/* It has fields that this module does not know, and wants nothing of them. */
TEST_F(abi, a_newer_library)
{
	const struct vrnic_create_cq_resp *resp = (void *)self->resp;

	ASSERT_OK(create_cq(self, GROWN, GROWN));
	EXPECT_EQ(16, resp->ring.entries);
	EXPECT_EQ(sizeof(struct vrnic_cqe), resp->ring.stride);
	EXPECT_OK(destroy_cq(self));
}

TEST_F(abi, what_the_module_does_not_know_is_not_supported)
{
	self->req[GROWN - 1] = 1;
	EXPECT_EQ(EOPNOTSUPP, create_cq(self, GROWN, GROWN));
}

/* The request had as much from the beginning; without any it is all zero. */
TEST_F(abi, what_was_always_there_must_be_there)
{
	EXPECT_EQ(EINVAL, create_cq(self, sizeof(struct vrnic_create_cq_req) - 4, GROWN));
	EXPECT_EQ(EINVAL, create_cq(self, sizeof(struct vrnic_create_cq_req),
				    sizeof(struct vrnic_create_cq_resp) - 8));
	ASSERT_OK(create_cq(self, 0, sizeof(struct vrnic_create_cq_resp)));
	EXPECT_OK(destroy_cq(self));
}

TEST_HARNESS_MAIN
