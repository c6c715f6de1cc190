// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The performance management agent (PMA) of IBTA 16.1. The core asks it when a process reads
 * /sys/class/infiniband/DEVICE/ports/1/counters, and programs may ask by a MAD. The agent answers
 * Get, and refuses Set.
 */

#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "base/stats.h"
#include "device.h"
#include "vrnic.h"

#define ATTRIBUTES	40	/* where the attribute begins in the data of a performance MAD */
#define RESPONSE_TIME	18	/* 4.096 us * 2^18: one second */

/* Port counters count data in words of four bytes. */
static u64 pma_words(const struct vrnic_dev *dev, enum vrnic_stat stat)
{
	return vrnic_stat_sum(dev, stat) / 4;
}

static u64 bad_packets(const struct vrnic_dev *dev)
{
	return vrnic_stat_sum(dev, VRNIC_STAT_BAD_ICRC) +
	       vrnic_stat_sum(dev, VRNIC_STAT_MALFORMED_PKTS);
}

/* A counter that is too small for its value stays at its maximum. */
static __be16 saturated16(u64 value)
{
	return cpu_to_be16(min_t(u64, value, U16_MAX));
}

static __be32 saturated32(u64 value)
{
	return cpu_to_be32(min_t(u64, value, U32_MAX));
}

static void class_port_info(struct ib_class_port_info *info)
{
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = 1;
	info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
	ib_set_cpi_resp_time(info, RESPONSE_TIME);
}

static void port_counters(const struct vrnic_dev *dev, struct ib_pma_portcounters *c)
{
	c->port_select = 1;
	c->port_rcv_errors = saturated16(bad_packets(dev));
	c->port_xmit_discards = saturated16(vrnic_stat_sum(dev, VRNIC_STAT_SEND_ERR));
	c->port_xmit_data = saturated32(pma_words(dev, VRNIC_STAT_XMIT_BYTES));
	c->port_rcv_data = saturated32(pma_words(dev, VRNIC_STAT_RCVD_BYTES));
	c->port_xmit_packets = saturated32(vrnic_stat_sum(dev, VRNIC_STAT_SENT_PKTS));
	c->port_rcv_packets = saturated32(vrnic_stat_sum(dev, VRNIC_STAT_RCVD_PKTS));
}

static void port_counters_ext(const struct vrnic_dev *dev, struct ib_pma_portcounters_ext *c)
{
	c->port_select = 1;
	c->port_xmit_data = cpu_to_be64(pma_words(dev, VRNIC_STAT_XMIT_BYTES));
	c->port_rcv_data = cpu_to_be64(pma_words(dev, VRNIC_STAT_RCVD_BYTES));
	c->port_xmit_packets = cpu_to_be64(vrnic_stat_sum(dev, VRNIC_STAT_SENT_PKTS));
	c->port_rcv_packets = cpu_to_be64(vrnic_stat_sum(dev, VRNIC_STAT_RCVD_PKTS));
	c->port_unicast_xmit_packets = c->port_xmit_packets;
	c->port_unicast_rcv_packets = c->port_rcv_packets;
}

static int pma_get(const struct vrnic_dev *dev, __be16 attribute, void *data)
{
	switch (attribute) {
	case IB_PMA_CLASS_PORT_INFO:
		class_port_info(data);
		return 0;
	case IB_PMA_PORT_COUNTERS:
		port_counters(dev, data);
		return 0;
	case IB_PMA_PORT_COUNTERS_EXT:
		port_counters_ext(dev, data);
		return 0;
	default:
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	}
}

/**
 * vrnic_process_mad() - answer a question about the port
 * @ibdev: device
 * @flags: IB_MAD_IGNORE_*; not used, as the port has neither an M_Key nor a B_Key to check
 * @port: 1
 * @wc: completion of the queue pair that received @in; NULL if the core itself asks
 * @grh: GRH of @in; NULL if the core itself asks
 * @in: a MAD of any class, from any sender
 * @out: answer
 * @out_size: bytes of @out
 * @out_pkey_index: not set, as there is only one index
 *
 * Return: IB_MAD_RESULT_SUCCESS, with IB_MAD_RESULT_REPLY if @out is an answer. There is no answer
 * to MADs of other classes and methods, which are for other agents.
 */
int vrnic_process_mad(struct ib_device *ibdev, int flags, u32 port,
		      const struct ib_wc *wc, const struct ib_grh *grh,
		      const struct ib_mad *in, struct ib_mad *out,
		      size_t *out_size, u16 *out_pkey_index)
{
	const struct ib_mad_hdr *hdr = &in->mad_hdr;
	int status = IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;

	if (hdr->mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    (hdr->method != IB_MGMT_METHOD_GET && hdr->method != IB_MGMT_METHOD_SET))
		return IB_MAD_RESULT_SUCCESS;
	memset(out, 0, sizeof(*out));
	out->mad_hdr = *hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	if (hdr->base_version != IB_MGMT_BASE_VERSION || hdr->class_version != 1)
		status = IB_MGMT_MAD_STATUS_BAD_VERSION;
	else if (hdr->method == IB_MGMT_METHOD_GET)
		status = pma_get(to_vdev(ibdev), hdr->attr_id, out->data + ATTRIBUTES);
	out->mad_hdr.status = cpu_to_be16(status);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
