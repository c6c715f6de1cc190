// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device: how it is recognised, opened and queried. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "abi.h"
#include "vrnic.h"

/* Tell the range of rate limits, in kbit/s. Every type of queue pair that sends can have one. */
static void tell_rate_limits(struct ibv_device_attr_ex *attr, size_t attr_size)
{
	if (attr_size < offsetof(struct ibv_device_attr_ex, packet_pacing_caps) +
			sizeof(attr->packet_pacing_caps))
		return;
	attr->packet_pacing_caps = (struct ibv_packet_pacing_caps) {
		.qp_rate_limit_min = 1,
		.qp_rate_limit_max = UINT32_MAX,
		.supported_qpts = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC |
				  1 << IBV_QPT_UD | 1 << IBV_QPT_XRC_SEND |
				  1 << IBV_QPT_RAW_PACKET,
	};
}

static int vrnic_query_device_ex(struct ibv_context *context,
				 const struct ibv_query_device_ex_input *input,
				 struct ibv_device_attr_ex *attr,
				 size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp,
				       &resp_size);
	if (ret)
		return ret;
	tell_rate_limits(attr, attr_size);
	if (attr_size >= offsetof(struct ibv_device_attr_ex, rss_caps) + sizeof(attr->rss_caps))
		vrnic_tell_rss(&attr->rss_caps);
	fw = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u.%u", (unsigned int)(fw >> 32) & 0xffff,
		 (unsigned int)(fw >> 16) & 0xffff, (unsigned int)fw & 0xffff);
	return 0;
}

static int vrnic_query_port(struct ibv_context *context, uint8_t port,
			    struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

#define NSEC_PER_SEC	1000000000L

/*
 * Read the clock that stamps completions. As with other devices, all of its value is in tv_nsec,
 * in the unit of the stamps: programs ignore tv_sec.
 */
static int vrnic_query_rt_values(struct ibv_context *context,
				 struct ibv_values_ex *values)
{
	uint32_t wanted = values->comp_mask;
	struct timespec now;

	values->comp_mask = 0;
	if (!check_comp_mask(wanted, IBV_VALUES_MASK_RAW_CLOCK))
		return EOPNOTSUPP;
	if (!wanted)
		return 0;
	if (clock_gettime(CLOCK_MONOTONIC_RAW, &now))
		return errno;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

static int vrnic_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			      uint16_t lid)
{
	return ibv_cmd_attach_mcast(qp, gid, lid);
}

static int vrnic_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			      uint16_t lid)
{
	return ibv_cmd_detach_mcast(qp, gid, lid);
}

static void vrnic_free_context(struct ibv_context *context)
{
	struct vrnic_context *ctx = to_vctx(context);

	close(ctx->doorbell_fd);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

/*
 * There is no query_qp_data_in_order. So libibverbs says that no order within a message is
 * promised, which is true: the driver copies with an ordinary memory copy.
 */
static const struct verbs_context_ops vrnic_ops = {
	.advise_mr = vrnic_advise_mr,
	.alloc_dm = vrnic_alloc_dm,
	.alloc_mw = vrnic_alloc_mw,
	.alloc_null_mr = vrnic_alloc_null_mr,
	.alloc_parent_domain = vrnic_alloc_parent_domain,
	.alloc_pd = vrnic_alloc_pd,
	.alloc_td = vrnic_alloc_td,
	.attach_counters_point_flow = vrnic_attach_counters_point_flow,
	.attach_mcast = vrnic_attach_mcast,
	.bind_mw = vrnic_bind_mw,
	.close_xrcd = vrnic_close_xrcd,
	.create_ah = vrnic_create_ah,
	.create_counters = vrnic_create_counters,
	.create_cq = vrnic_create_cq,
	.create_cq_ex = vrnic_create_cq_ex,
	.create_flow = vrnic_create_flow,
	.create_qp = vrnic_create_qp,
	.create_qp_ex = vrnic_create_qp_ex,
	.create_rwq_ind_table = vrnic_create_rwq_ind_table,
	.create_srq = vrnic_create_srq,
	.create_srq_ex = vrnic_create_srq_ex,
	.create_wq = vrnic_create_wq,
	.dealloc_mw = vrnic_dealloc_mw,
	.dealloc_pd = vrnic_dealloc_pd,
	.dealloc_td = vrnic_dealloc_td,
	.dereg_mr = vrnic_dereg_mr,
	.destroy_ah = vrnic_destroy_ah,
	.destroy_counters = vrnic_destroy_counters,
	.destroy_cq = vrnic_destroy_cq,
	.destroy_flow = vrnic_destroy_flow,
	.destroy_qp = vrnic_destroy_qp,
	.destroy_rwq_ind_table = vrnic_destroy_rwq_ind_table,
	.destroy_srq = vrnic_destroy_srq,
	.destroy_wq = vrnic_destroy_wq,
	.detach_mcast = vrnic_detach_mcast,
	.free_context = vrnic_free_context,
	.free_dm = vrnic_free_dm,
	.get_srq_num = vrnic_get_srq_num,
	.import_dm = vrnic_import_dm,
	.import_mr = vrnic_import_mr,
	.import_pd = vrnic_import_pd,
	.modify_cq = vrnic_modify_cq,
	.modify_qp = vrnic_modify_qp,
	.modify_qp_rate_limit = vrnic_modify_qp_rate_limit,
	.modify_srq = vrnic_modify_srq,
	.modify_wq = vrnic_modify_wq,
	.open_qp = vrnic_open_qp,
	.open_xrcd = vrnic_open_xrcd,
	.poll_cq = vrnic_poll_cq,
	.post_recv = vrnic_post_recv,
	.post_send = vrnic_post_send,
	.post_srq_recv = vrnic_post_srq_recv,
	.query_device_ex = vrnic_query_device_ex,
	.query_port = vrnic_query_port,
	.query_qp = vrnic_query_qp,
	.query_rt_values = vrnic_query_rt_values,
	.query_srq = vrnic_query_srq,
	.read_counters = vrnic_read_counters,
	.reg_dm_mr = vrnic_reg_dm_mr,
	.reg_dmabuf_mr = vrnic_reg_dmabuf_mr,
	.reg_mr = vrnic_reg_mr,
	.req_notify_cq = vrnic_req_notify_cq,
	.rereg_mr = vrnic_rereg_mr,
	.resize_cq = vrnic_resize_cq,
	.unimport_dm = vrnic_unimport_dm,
	.unimport_mr = vrnic_unimport_mr,
	.unimport_pd = vrnic_unimport_pd,
	VRNIC_BUF_OPS
	VRNIC_COMP_CNTR_OPS
	VRNIC_PORT_SPEED_OPS
};

/* Ask the kernel for a context. Return: 0 or an errno. */
static int open_in_kernel(struct vrnic_context *ctx, struct vrnic_alloc_ucontext_resp *about)
{
	struct vrnic_cmd_get_context cmd = {};
	struct vrnic_cmd_get_context_resp resp = {};
	int ret;

	ret = ibv_cmd_get_context(&ctx->vctx, &cmd.ibv_cmd, sizeof(cmd),
				  &resp.ibv_resp, sizeof(resp));
	*about = resp.drv_payload;
	return ret;
}

/* Ask about the context that another part of the program, or another process, has opened. */
static int query_in_kernel(struct vrnic_context *ctx, struct vrnic_alloc_ucontext_resp *about)
{
	DECLARE_COMMAND_BUFFER_LINK(driver, UVERBS_OBJECT_DEVICE,
				    UVERBS_METHOD_QUERY_CONTEXT, 1, NULL);

	fill_attr_out_ptr(driver, VRNIC_ATTR_QUERY_CONTEXT_RESP, about);
	return ibv_cmd_query_context(&ctx->vctx.context, driver);
}

/* Return: 0 or an errno. */
static int start(struct vrnic_context *ctx, bool import)
{
	struct vrnic_alloc_ucontext_resp about = {};
	int ret;

	ret = import ? query_in_kernel(ctx, &about) : open_in_kernel(ctx, &about);
	if (ret)
		return ret;
	if (about.abi_version < VRNIC_ABI_OLDEST ||
	    about.abi_version > VRNIC_ABI_VERSION) {
		verbs_err(&ctx->vctx,
			  "the module speaks ABI %u, this provider %u to %u\n",
			  about.abi_version, VRNIC_ABI_OLDEST, VRNIC_ABI_VERSION);
		return EPROTO;
	}
	ctx->features = about.features;
	return vrnic_doorbell_open(ctx);
}

static struct verbs_context *new_context(struct ibv_device *device, int cmd_fd, bool import)
{
	struct vrnic_context *ctx;
	int ret;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   VRNIC_DRIVER_ID);
	if (!ctx)
		return NULL;
	ctx->one_cpu = vrnic_has_one_cpu();
	ret = start(ctx, import);
	if (ret) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		errno = ret;
		return NULL;
	}
	verbs_set_ops(&ctx->vctx, &vrnic_ops);
	return &ctx->vctx;
}

static struct verbs_context *vrnic_alloc_context(struct ibv_device *device,
						 int cmd_fd, void *private_data)
{
	return new_context(device, cmd_fd, false);
}

/*
 * The two contexts of one file have each their own rings, doorbell file and files for events.
 * @cmd_fd is closed with the context, and on failure, as when a device is opened.
 */
static struct verbs_context *vrnic_import_context(struct ibv_device *device, int cmd_fd)
{
	return new_context(device, cmd_fd, true);
}

static struct verbs_device *vrnic_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct vrnic_device *dev = calloc(1, sizeof(*dev));

	return dev ? &dev->vdev : NULL;
}

static void vrnic_uninit_device(struct verbs_device *vdev)
{
	free(container_of(vdev, struct vrnic_device, vdev));
}

/* The number finds also a renamed device, the name also a device whose number is hidden. */
static const struct verbs_match_ent vrnic_matches[] = {
	VERBS_DRIVER_ID(VRNIC_DRIVER_ID),
	VERBS_NAME_MATCH("vrnic", NULL),
	{},
};

static const struct verbs_device_ops vrnic_device_ops = {
	.name = "vrnic",
	.match_min_abi_version = VRNIC_ABI_OLDEST,
	.match_max_abi_version = VRNIC_ABI_VERSION,
	.match_table = vrnic_matches,
	.alloc_context = vrnic_alloc_context,
	.alloc_device = vrnic_alloc_device,
	.import_context = vrnic_import_context,
	.uninit_device = vrnic_uninit_device,
};

PROVIDER_DRIVER(vrnic, vrnic_device_ops);
