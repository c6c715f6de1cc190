// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flows: rules that bring frames to raw packet queue pairs; and their counters. The kernel counts
 * both frames and bytes. Where a program wants which of them is the provider's affair.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "vrnic.h"

/* Values that the kernel counts, in the order of enum ibv_counter_description. */
#define VALUES		(IBV_COUNTER_BYTES + 1)

#define POINTS_MAX	64

/**
 * struct point - a value that a program has attached
 * @index: where ibv_read_counters() puts it
 * @value: enum ibv_counter_description
 */
struct point {
	uint32_t index;
	uint32_t value;
};

/**
 * struct vrnic_counters - counters
 * @vcounters: libibverbs' part
 * @lock: protects what follows
 * @flows: flows that name the counters; while there are some, no value can be attached
 * @nr: number of @points
 * @points: what the program wants to read
 */
struct vrnic_counters {
	struct verbs_counters vcounters;
	pthread_mutex_t lock;
	unsigned int flows;
	unsigned int nr;
	struct point points[POINTS_MAX];
};

/**
 * struct vrnic_flow - a flow
 * @flow: libibverbs' part
 * @counters: what the flow counts in, or NULL
 */
struct vrnic_flow {
	struct ibv_flow flow;
	struct vrnic_counters *counters;
};

static struct vrnic_counters *to_vcounters(struct ibv_counters *counters)
{
	return container_of(counters, struct vrnic_counters, vcounters.counters);
}

/* Find the counters that a flow names. The kernel refuses a flow that names several. */
static struct vrnic_counters *counters_of(struct ibv_flow_attr *attr)
{
	struct ibv_flow_spec *spec = (void *)(attr + 1);

	for (int i = 0; i < attr->num_of_specs; i++) {
		if (spec->hdr.type == IBV_FLOW_SPEC_ACTION_COUNT)
			return to_vcounters(spec->flow_count.counters);
		spec = (void *)spec + spec->hdr.size;
	}
	return NULL;
}

static void count_flow(struct vrnic_counters *counters, int n)
{
	if (!counters)
		return;
	pthread_mutex_lock(&counters->lock);
	counters->flows += n;
	pthread_mutex_unlock(&counters->lock);
}

struct ibv_flow *vrnic_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct vrnic_flow *flow = calloc(1, sizeof(*flow));
	int ret;

	if (!flow)
		return NULL;
	flow->counters = counters_of(attr);
	/* first, so that no value is attached when the flow already counts */
	count_flow(flow->counters, 1);
	ret = ibv_cmd_create_flow(qp, &flow->flow, attr, NULL, 0);
	if (ret) {
		count_flow(flow->counters, -1);
		free(flow);
		errno = ret;
		return NULL;
	}
	return &flow->flow;
}

int vrnic_destroy_flow(struct ibv_flow *ibflow)
{
	struct vrnic_flow *flow = container_of(ibflow, struct vrnic_flow, flow);
	int ret = ibv_cmd_destroy_flow(ibflow);

	if (ret)
		return ret;
	count_flow(flow->counters, -1);
	free(flow);
	return 0;
}

struct ibv_counters *vrnic_create_counters(struct ibv_context *context,
					   struct ibv_counters_init_attr *attr)
{
	struct vrnic_counters *counters = calloc(1, sizeof(*counters));
	int ret;

	if (!counters)
		return NULL;
	ret = ibv_cmd_create_counters(context, attr, &counters->vcounters, NULL);
	if (ret) {
		free(counters);
		errno = ret;
		return NULL;
	}
	pthread_mutex_init(&counters->lock, NULL);
	return &counters->vcounters.counters;
}

int vrnic_destroy_counters(struct ibv_counters *ibcounters)
{
	struct vrnic_counters *counters = to_vcounters(ibcounters);
	int ret = ibv_cmd_destroy_counters(&counters->vcounters);

	if (ret)
		return ret;
	pthread_mutex_destroy(&counters->lock);
	free(counters);
	return 0;
}

/* Caller holds @counters->lock. */
static int attach(struct vrnic_counters *counters, const struct ibv_counter_attach_attr *attr)
{
	if (counters->flows)
		return EBUSY;
	if (counters->nr == POINTS_MAX)
		return ENOMEM;
	counters->points[counters->nr++] = (struct point){
		.index = attr->index,
		.value = attr->counter_desc,
	};
	return 0;
}

/* Only in advance: @flow is NULL, and a flow that is made later names the counters. */
int vrnic_attach_counters_point_flow(struct ibv_counters *ibcounters,
				     struct ibv_counter_attach_attr *attr,
				     struct ibv_flow *flow)
{
	struct vrnic_counters *counters = to_vcounters(ibcounters);
	int ret;

	if (attr->comp_mask)
		return EOPNOTSUPP;
	if (flow || (uint32_t)attr->counter_desc >= VALUES)
		return ENOTSUP;
	pthread_mutex_lock(&counters->lock);
	ret = attach(counters, attr);
	pthread_mutex_unlock(&counters->lock);
	return ret;
}

/* Values that have the same index are added. */
int vrnic_read_counters(struct ibv_counters *ibcounters, uint64_t *values, uint32_t nr,
			uint32_t flags)
{
	struct vrnic_counters *counters = to_vcounters(ibcounters);
	uint64_t counted[VALUES] = {};
	int ret;

	ret = ibv_cmd_read_counters(&counters->vcounters, counted, VALUES, flags, NULL);
	if (ret)
		return ret;
	memset(values, 0, nr * sizeof(*values));
	pthread_mutex_lock(&counters->lock);
	for (unsigned int i = 0; i < counters->nr; i++)
		if (counters->points[i].index < nr)
			values[counters->points[i].index] += counted[counters->points[i].value];
	pthread_mutex_unlock(&counters->lock);
	return 0;
}
