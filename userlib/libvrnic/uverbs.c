// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Calls into the kernel: methods of the driver's own uverbs objects, and the
 * doorbell file. All return 0 or a negative errno.
 */

#include <errno.h>
#include <sys/ioctl.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "lib.h"

#define CMD_ATTRS	4

/* A method's call, with room for its attributes. */
union cmd {
	struct ib_uverbs_ioctl_hdr hdr;
	uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) +
		     CMD_ATTRS * sizeof(struct ib_uverbs_attr)];
};

static void cmd_init(union cmd *cmd, unsigned int object, unsigned int method)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->hdr.object_id = object;
	cmd->hdr.method_id = method;
	cmd->hdr.driver_id = VRNIC_DRIVER_ID;
}

static struct ib_uverbs_attr *cmd_attr(union cmd *cmd, unsigned int id)
{
	struct ib_uverbs_attr *attr = &cmd->hdr.attrs[cmd->hdr.num_attrs++];

	attr->attr_id = id;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	return attr;
}

/* The core wants small data in the attribute itself, not a pointer to it. */
static void cmd_in(union cmd *cmd, unsigned int id, const void *data,
		   size_t size)
{
	struct ib_uverbs_attr *attr = cmd_attr(cmd, id);

	attr->len = size;
	if (size <= sizeof(attr->data))
		memcpy(&attr->data, data, size);
	else
		attr->data = (uintptr_t)data;
}

static struct ib_uverbs_attr *cmd_out(union cmd *cmd, unsigned int id, void *data,
				      size_t size)
{
	struct ib_uverbs_attr *attr = cmd_attr(cmd, id);

	memset(data, 0, size);	/* an older module may fill in less */
	attr->len = size;
	attr->data = (uintptr_t)data;
	return attr;
}

/* An older module does not know the attribute, and leaves @data as it is: zero. */
static void cmd_out_optional(union cmd *cmd, unsigned int id, void *data, size_t size)
{
	cmd_out(cmd, id, data, size)->flags = 0;
}

static void cmd_object(union cmd *cmd, unsigned int id, uint32_t handle)
{
	cmd_attr(cmd, id)->data = handle;
}

static int cmd_run(union cmd *cmd, struct ibv_context *verbs)
{
	cmd->hdr.length = sizeof(cmd->hdr) +
			  cmd->hdr.num_attrs * sizeof(cmd->hdr.attrs[0]);
	if (ioctl(verbs->cmd_fd, RDMA_VERBS_IOCTL, &cmd->hdr))
		return -errno;
	return 0;
}

/**
 * vrnic_uv_doorbell() - open a doorbell file
 * @verbs: context of the doorbell
 * @fd: the result
 * @features: VRNIC_FEATURE_* of the module
 *
 * Return: 0 or a negative errno: -EINVAL from devices of other drivers, because the core compares
 * the driver's number.
 */
int vrnic_uv_doorbell(struct ibv_context *verbs, int *fd, uint32_t *features)
{
	struct ib_uverbs_attr *attr;
	union cmd cmd;
	int ret;

	cmd_init(&cmd, VRNIC_OBJECT_DOORBELL, VRNIC_METHOD_DOORBELL_ALLOC);
	attr = cmd_attr(&cmd, VRNIC_ATTR_DOORBELL_ALLOC_FD);
	cmd_out_optional(&cmd, VRNIC_ATTR_DOORBELL_ALLOC_FEATURES, features,
			 sizeof(*features));
	ret = cmd_run(&cmd, verbs);
	if (!ret)
		*fd = attr->data_s64;
	return ret;
}

int vrnic_uv_fifo_create(struct vrnic_client *client,
			 const struct vrnic_create_fifo_req *req,
			 struct vrnic_create_fifo_resp *resp, uint32_t *handle)
{
	struct ib_uverbs_attr *object;
	union cmd cmd;
	int ret;

	cmd_init(&cmd, VRNIC_OBJECT_FIFO, VRNIC_METHOD_FIFO_CREATE);
	object = cmd_attr(&cmd, VRNIC_ATTR_FIFO_CREATE_HANDLE);
	cmd_object(&cmd, VRNIC_ATTR_FIFO_CREATE_PD, client->pd->handle);
	cmd_in(&cmd, VRNIC_ATTR_FIFO_CREATE_REQ, req, sizeof(*req));
	cmd_out(&cmd, VRNIC_ATTR_FIFO_CREATE_RESP, resp, sizeof(*resp));
	ret = cmd_run(&cmd, client->verbs);
	if (!ret)
		*handle = object->data;
	return ret;
}

int vrnic_uv_fifo_lookup(struct vrnic_client *client,
			 const struct vrnic_lookup_req *req,
			 struct vrnic_address *address)
{
	union cmd cmd;

	cmd_init(&cmd, VRNIC_OBJECT_FIFO, VRNIC_METHOD_FIFO_LOOKUP);
	cmd_in(&cmd, VRNIC_ATTR_FIFO_LOOKUP_REQ, req, sizeof(*req));
	cmd_out(&cmd, VRNIC_ATTR_FIFO_LOOKUP_RESP, address, sizeof(*address));
	return cmd_run(&cmd, client->verbs);
}

int vrnic_uv_endpoint_create(struct vrnic_context *ctx,
			     const struct vrnic_address *address,
			     struct vrnic_create_endpoint_resp *resp,
			     uint32_t *handle)
{
	struct ib_uverbs_attr *object;
	union cmd cmd;
	int ret;

	cmd_init(&cmd, VRNIC_OBJECT_ENDPOINT, VRNIC_METHOD_ENDPOINT_CREATE);
	object = cmd_attr(&cmd, VRNIC_ATTR_ENDPOINT_CREATE_HANDLE);
	cmd_object(&cmd, VRNIC_ATTR_ENDPOINT_CREATE_FIFO, ctx->handle);
	cmd_in(&cmd, VRNIC_ATTR_ENDPOINT_CREATE_ADDRESS, address,
	       sizeof(*address));
	cmd_out(&cmd, VRNIC_ATTR_ENDPOINT_CREATE_RESP, resp, sizeof(*resp));
	ret = cmd_run(&cmd, ctx->client->verbs);
	if (!ret)
		*handle = object->data;
	return ret;
}

/* @group: group that the counter is to be in, or NULL */
int vrnic_uv_counter_create(struct vrnic_client *client,
			    const struct vrnic_counter_group *group,
			    const struct vrnic_create_counter_req *req,
			    struct vrnic_create_counter_resp *resp,
			    uint32_t *handle)
{
	struct ib_uverbs_attr *object;
	union cmd cmd;
	int ret;

	cmd_init(&cmd, VRNIC_OBJECT_COUNTER, VRNIC_METHOD_COUNTER_CREATE);
	object = cmd_attr(&cmd, VRNIC_ATTR_COUNTER_CREATE_HANDLE);
	cmd_in(&cmd, VRNIC_ATTR_COUNTER_CREATE_REQ, req, sizeof(*req));
	cmd_out(&cmd, VRNIC_ATTR_COUNTER_CREATE_RESP, resp, sizeof(*resp));
	if (group)
		cmd_object(&cmd, VRNIC_ATTR_COUNTER_CREATE_GROUP, group->handle);
	ret = cmd_run(&cmd, client->verbs);
	if (!ret)
		*handle = object->data;
	return ret;
}

int vrnic_uv_counter_eventfd(struct vrnic_counter *counter, int32_t fd)
{
	union cmd cmd;

	cmd_init(&cmd, VRNIC_OBJECT_COUNTER, VRNIC_METHOD_COUNTER_EVENTFD);
	cmd_object(&cmd, VRNIC_ATTR_COUNTER_EVENTFD_HANDLE, counter->handle);
	cmd_in(&cmd, VRNIC_ATTR_COUNTER_EVENTFD_FD, &fd, sizeof(fd));
	return cmd_run(&cmd, counter->client->verbs);
}

int vrnic_uv_counter_bind(struct vrnic_counter *counter,
			  const struct vrnic_endpoint *ep)
{
	union cmd cmd;

	cmd_init(&cmd, VRNIC_OBJECT_COUNTER, VRNIC_METHOD_COUNTER_BIND);
	cmd_object(&cmd, VRNIC_ATTR_COUNTER_BIND_HANDLE, counter->handle);
	cmd_object(&cmd, VRNIC_ATTR_COUNTER_BIND_ENDPOINT, ep->handle);
	return cmd_run(&cmd, counter->client->verbs);
}

int vrnic_uv_counter_unbind(struct vrnic_counter *counter,
			    const struct vrnic_endpoint *ep)
{
	union cmd cmd;

	cmd_init(&cmd, VRNIC_OBJECT_COUNTER, VRNIC_METHOD_COUNTER_UNBIND);
	cmd_object(&cmd, VRNIC_ATTR_COUNTER_UNBIND_HANDLE, counter->handle);
	cmd_object(&cmd, VRNIC_ATTR_COUNTER_UNBIND_ENDPOINT, ep->handle);
	return cmd_run(&cmd, counter->client->verbs);
}

int vrnic_uv_group_create(struct vrnic_client *client,
			  const struct vrnic_create_group_req *req,
			  struct vrnic_create_group_resp *resp, uint32_t *handle)
{
	struct ib_uverbs_attr *object;
	union cmd cmd;
	int ret;

	cmd_init(&cmd, VRNIC_OBJECT_GROUP, VRNIC_METHOD_GROUP_CREATE);
	object = cmd_attr(&cmd, VRNIC_ATTR_GROUP_CREATE_HANDLE);
	cmd_in(&cmd, VRNIC_ATTR_GROUP_CREATE_REQ, req, sizeof(*req));
	cmd_out(&cmd, VRNIC_ATTR_GROUP_CREATE_RESP, resp, sizeof(*resp));
	ret = cmd_run(&cmd, client->verbs);
	if (!ret)
		*handle = object->data;
	return ret;
}

int vrnic_uv_type_create(struct vrnic_client *client,
			 const struct vrnic_create_type_req *req,
			 struct vrnic_create_type_resp *resp, uint32_t *handle)
{
	struct ib_uverbs_attr *object;
	union cmd cmd;
	int ret;

	cmd_init(&cmd, VRNIC_OBJECT_TYPE, VRNIC_METHOD_TYPE_CREATE);
	object = cmd_attr(&cmd, VRNIC_ATTR_TYPE_CREATE_HANDLE);
	cmd_in(&cmd, VRNIC_ATTR_TYPE_CREATE_REQ, req, sizeof(*req));
	cmd_out(&cmd, VRNIC_ATTR_TYPE_CREATE_RESP, resp, sizeof(*resp));
	ret = cmd_run(&cmd, client->verbs);
	if (!ret)
		*handle = object->data;
	return ret;
}

/* How each kind of object is destroyed. */
static const struct {
	uint16_t object;
	uint16_t method;
	uint16_t handle;
} destroyers[] = {
	{ VRNIC_OBJECT_FIFO, VRNIC_METHOD_FIFO_DESTROY,
	  VRNIC_ATTR_FIFO_DESTROY_HANDLE },
	{ VRNIC_OBJECT_ENDPOINT, VRNIC_METHOD_ENDPOINT_DESTROY,
	  VRNIC_ATTR_ENDPOINT_DESTROY_HANDLE },
	{ VRNIC_OBJECT_COUNTER, VRNIC_METHOD_COUNTER_DESTROY,
	  VRNIC_ATTR_COUNTER_DESTROY_HANDLE },
	{ VRNIC_OBJECT_TYPE, VRNIC_METHOD_TYPE_DESTROY,
	  VRNIC_ATTR_TYPE_DESTROY_HANDLE },
	{ VRNIC_OBJECT_GROUP, VRNIC_METHOD_GROUP_DESTROY,
	  VRNIC_ATTR_GROUP_DESTROY_HANDLE },
};

/**
 * vrnic_uv_destroy() - destroy an object
 * @client: client of the object
 * @object: VRNIC_OBJECT_FIFO, _ENDPOINT, _COUNTER, _TYPE or _GROUP
 * @handle: its handle
 *
 * Return: 0 or a negative errno. EIO means that the device is gone, and the object with it, so
 * that counts as success.
 */
int vrnic_uv_destroy(struct vrnic_client *client, unsigned int object,
		     uint32_t handle)
{
	union cmd cmd;
	size_t i = 0;
	int ret;

	while (destroyers[i].object != object)
		i++;
	cmd_init(&cmd, object, destroyers[i].method);
	cmd_object(&cmd, destroyers[i].handle, handle);
	ret = cmd_run(&cmd, client->verbs);
	return ret == -EIO ? 0 : ret;
}

/* Have the kernel run the context's ring in this thread. If this fails, operations stay posted. */
int vrnic_uv_advance(struct vrnic_context *ctx)
{
	return -vrnic_ring_call(ctx->client->doorbell_fd, VRNIC_ADVANCE, ctx->address.fifo);
}

/* As vrnic_uv_advance(), but a thread of the kernel runs the ring. */
int vrnic_uv_advance_deferred(struct vrnic_context *ctx)
{
	return -vrnic_ring_call(ctx->client->doorbell_fd, VRNIC_ADVANCE_DEFERRED,
				ctx->address.fifo);
}

/* Note a call of VRNIC_ADVANCE that is made after more posts, or before the program waits. */
void vrnic_uv_advance_later(struct vrnic_context *ctx)
{
	struct vrnic_client *client = ctx->client;

	vrnic_late_add(&client->late, client->doorbell_fd, VRNIC_ADVANCE, ctx->address.fifo);
}

/* Make all calls of VRNIC_ADVANCE that are due. */
void vrnic_uv_advance_late(struct vrnic_client *client)
{
	vrnic_late_ring(&client->late, client->doorbell_fd, VRNIC_ADVANCE);
}

/* Ring due doorbells before the sleep, which may be for an operation that waits for one. */
int vrnic_uv_wait(struct vrnic_client *client, struct vrnic_wait *wait)
{
	vrnic_uv_looked_in_vain(client);
	return ioctl(client->doorbell_fd, VRNIC_WAIT, wait) ? -errno : 0;
}

int vrnic_uv_wait_group(struct vrnic_client *client, struct vrnic_wait_group *wait)
{
	vrnic_uv_looked_in_vain(client);
	return ioctl(client->doorbell_fd, VRNIC_WAIT_GROUP, wait) ? -errno : 0;
}

/* Have the kernel count what no engine counts, and wake the threads that sleep for that. */
int vrnic_uv_count(struct vrnic_client *client, const struct vrnic_count *count)
{
	return ioctl(client->doorbell_fd, VRNIC_COUNT, count) ? -errno : 0;
}
