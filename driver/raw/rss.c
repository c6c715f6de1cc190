// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive side scaling. An RSS queue pair has no receives of its own: a hash over some of a frame's
 * fields picks the work queue that gets the frame. So frames of one connection go to one work
 * queue, in order.
 */

#include <linux/err.h>
#include <linux/slab.h>

#include "base/objects.h"
#include "base/udata.h"
#include "lib/frame.h"
#include "lib/toeplitz.h"
#include "raw/rss.h"
#include "vrnic.h"

#define TCP	6
#define UDP	17

#define ADDRS_IPV4	(VRNIC_RX_HASH_SRC_IPV4 | VRNIC_RX_HASH_DST_IPV4)
#define ADDRS_IPV6	(VRNIC_RX_HASH_SRC_IPV6 | VRNIC_RX_HASH_DST_IPV6)
#define PORTS_TCP	(VRNIC_RX_HASH_SRC_PORT_TCP | VRNIC_RX_HASH_DST_PORT_TCP)
#define PORTS_UDP	(VRNIC_RX_HASH_SRC_PORT_UDP | VRNIC_RX_HASH_DST_PORT_UDP)
#define FIELDS		(ADDRS_IPV4 | ADDRS_IPV6 | PORTS_TCP | PORTS_UDP)

#define SRC_ADDR	(VRNIC_RX_HASH_SRC_IPV4 | VRNIC_RX_HASH_SRC_IPV6)
#define DST_ADDR	(VRNIC_RX_HASH_DST_IPV4 | VRNIC_RX_HASH_DST_IPV6)
#define SRC_PORT	(VRNIC_RX_HASH_SRC_PORT_TCP | VRNIC_RX_HASH_SRC_PORT_UDP)
#define DST_PORT	(VRNIC_RX_HASH_DST_PORT_TCP | VRNIC_RX_HASH_DST_PORT_UDP)

/* ---- tables ---- */

int vrnic_create_rwq_ind_table(struct ib_rwq_ind_table *ibtbl,
			       struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata)
{
	struct vrnic_rwq_table *table = to_vrwq_table(ibtbl);
	struct vrnic_dev *dev = to_vdev(ibtbl->device);
	u32 i;

	if (vrnic_udata_empty(udata) || init->log_ind_tbl_size > VRNIC_RSS_LOG_MAX)
		return -EINVAL;
	if (!vrnic_object_get(dev, VRNIC_OBJECT_RWQ_TABLE, true))
		return -ENOMEM;
	table->mask = (1U << init->log_ind_tbl_size) - 1;
	table->qp = kcalloc(table->mask + 1, sizeof(*table->qp), GFP_KERNEL_ACCOUNT);
	if (!table->qp) {
		vrnic_object_put(dev, VRNIC_OBJECT_RWQ_TABLE, true);
		return -ENOMEM;
	}
	for (i = 0; i <= table->mask; i++)
		table->qp[i] = to_vwq(init->ind_tbl[i])->shell.qp;
	return 0;
}

int vrnic_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtbl)
{
	kfree(to_vrwq_table(ibtbl)->qp);
	vrnic_object_put(to_vdev(ibtbl->device), VRNIC_OBJECT_RWQ_TABLE, true);
	return 0;
}

/* ---- queue pairs ---- */

static int rss_fill(struct vrnic_rss *rss, struct ib_udata *udata)
{
	struct vrnic_create_qp_req req;
	int err;

	err = vrnic_udata_request(udata, &req, sizeof(req), sizeof(req));
	if (err)
		return err;
	if (req.rx_hash_function != VRNIC_RX_HASH_TOEPLITZ || req.rx_hash_fields & ~FIELDS ||
	    req.reserved)
		return -EOPNOTSUPP;
	if (req.rx_hash_key_len != VRNIC_RX_HASH_KEY)
		return -EINVAL;
	rss->fields = req.rx_hash_fields;
	memcpy(rss->key, req.rx_hash_key, sizeof(rss->key));
	return 0;
}

/**
 * vrnic_rss_new() - read how a queue pair is to spread frames
 * @ibtbl: table of work queues
 * @udata: driver's part of create_qp, with a struct vrnic_create_qp_req
 *
 * Return: for kfree(); or an ERR_PTR(): -EINVAL: the key is of another length; -EOPNOTSUPP: another
 * hash, or other fields; -ENOMEM; -EFAULT.
 */
struct vrnic_rss *vrnic_rss_new(struct ib_rwq_ind_table *ibtbl, struct ib_udata *udata)
{
	struct vrnic_rss *rss = kzalloc(sizeof(*rss), GFP_KERNEL_ACCOUNT);
	int err;

	if (!rss)
		return ERR_PTR(-ENOMEM);
	rss->table = to_vrwq_table(ibtbl);
	err = rss_fill(rss, udata);
	if (err) {
		kfree(rss);
		return ERR_PTR(err);
	}
	return rss;
}

/*
 * Which fields has the frame? Only the first fragment of a packet has ports, and all fragments are
 * to go the same way.
 */
static u32 fields_of(const struct vrnic_frame *f)
{
	u32 fields = 0;

	if (f->net == 4)
		fields = ADDRS_IPV4;
	else if (f->net == 6)
		fields = ADDRS_IPV6;
	if (f->ip_flags & VRNIC_FRAME_MF)
		return fields;
	if (f->transport == TCP)
		fields |= PORTS_TCP;
	else if (f->transport == UDP)
		fields |= PORTS_UDP;
	return fields;
}

static u32 rss_add(u8 *input, u32 n, const void *field, u32 len, bool wanted)
{
	if (!wanted)
		return n;
	memcpy(input + n, field, len);
	return n + len;
}

/* Put the fields that are hashed one behind the other. Return: their length; 0: @f has none. */
static u32 rss_input(const struct vrnic_rss *rss, const struct vrnic_frame *f, u8 *input)
{
	u32 fields = rss->fields & fields_of(f), ip = f->net == 4 ? 4 : 16, n = 0;

	n = rss_add(input, n, f->src_ip, ip, fields & SRC_ADDR);
	n = rss_add(input, n, f->dst_ip, ip, fields & DST_ADDR);
	n = rss_add(input, n, &f->src_port, sizeof(f->src_port), fields & SRC_PORT);
	return rss_add(input, n, &f->dst_port, sizeof(f->dst_port), fields & DST_PORT);
}

/**
 * vrnic_rss_pick() - which work queue gets a frame?
 * @rss: of a queue pair that the caller has a reference on
 * @f: fields of the frame; one that has none of those that are hashed goes to the first entry
 *
 * Return: the work queue's queue pair, which stays as long as the reference.
 */
struct vrnic_qp *vrnic_rss_pick(const struct vrnic_rss *rss, const struct vrnic_frame *f)
{
	u8 input[VRNIC_RX_HASH_KEY - 4];
	u32 n = rss_input(rss, f, input);

	return rss->table->qp[vrnic_toeplitz(rss->key, input, n) & rss->table->mask];
}
