// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Attacks with connected queue pairs and completion queues. */
#include "neighbour.h"

#define LEN	(1 << 20)
#define WR	1024
#define LONG_WR	512
#define BELLS_WR	64

static struct bed bed;

/* ---- requests to a queue pair that did not ask for them ---- */

static const struct pair_opts impatient = {
	.timeout = 1, .retry = NO_RETRY, .rnr_retry = NO_RETRY, .max_wr = WR,
};

/* struct stranger - sends to @qpn of this device, which may not know it */
struct stranger {
	struct side side;
	struct pair_opts opts;
	uint32_t qpn;
};

static struct stranger strangers[2];

static void stranger_begin(struct stranger *s, uint32_t qpn)
{
	s->opts = pair_defaults(&impatient);
	s->qpn = qpn;
	must(side_open(&s->side, &bed.dev, &s->opts, false));
	must(side_connect(&s->side, &s->opts, qpn, &bed.dev.gid));
}

static void stranger_turn(struct stranger *s)
{
	struct ibv_wc wc[16];
	int i, n;

	for (i = 0; i < 16; i++)
		POST(&s->side, .op = IBV_WR_RDMA_WRITE, .local = &bed.src, .len = 4096,
		     .remote = &bed.dst, .rkey = 1);
	do {
		n = ibv_poll_cq(s->side.scq, 16, wc);
	} while (n > 0);
	if (qp_state(s->side.qp) != IBV_QPS_RTS) {
		qp_to(s->side.qp, IBV_QPS_RESET);
		side_connect(&s->side, &s->opts, s->qpn, &bed.dev.gid);
	}
}

void names_begin(const struct victim *victim)
{
	unsigned int i;

	must(bed_open(&bed, LEN, NULL));
	for (i = 0; i < ARRAY_SIZE(strangers); i++)
		stranger_begin(&strangers[i], victim->qpn);
}

void names_turn(unsigned int thread)
{
	stranger_turn(&strangers[thread]);
}

/* Thread 0 sends to a queue pair of its own that thread 1 connects and resets. */
void modify_begin(const struct victim *victim)
{
	must(bed_open(&bed, LEN, NULL));
	stranger_begin(&strangers[0], bed.a->qp->qp_num);
}

void modify_turn(unsigned int thread)
{
	struct pair_opts opts = pair_defaults(NULL);

	if (!thread) {
		stranger_turn(&strangers[0]);
		return;
	}
	qp_to(bed.a->qp, IBV_QPS_RESET);
	side_connect(bed.a, &opts, strangers[0].side.qp->qp_num, &bed.dev.gid);
}

/* ---- completion queues ---- */

static struct ibv_cq *large;

void resize_begin(const struct victim *victim)
{
	must(dev_open(&bed.dev));
	large = ibv_create_cq(bed.dev.ctx, bed.dev.attr->max_cqe / 4, NULL, NULL, 0);
	if (!large)
		die("no large completion queue: %d", errno);
}

void resize_turn(unsigned int thread)
{
	ibv_resize_cq(large, bed.dev.attr->max_cqe / 2);
	ibv_resize_cq(large, bed.dev.attr->max_cqe / 4);
}

/* ---- work that exceeds what a caller does itself ---- */

void long_begin(const struct victim *victim)
{
	must(bed_open(&bed, LEN, &(struct pair_opts){ .max_wr = LONG_WR, .cqe = LONG_WR }));
}

void long_turn(unsigned int thread)
{
	unsigned int i;

	for (i = 1; i < LONG_WR / 2; i++)
		POST(bed.a, .op = IBV_WR_RDMA_WRITE, .local = &bed.src, .len = LEN,
		     .remote = &bed.dst, .unsignaled = true);
	RUN(bed.a, .op = IBV_WR_RDMA_WRITE, .local = &bed.src, .len = LEN, .remote = &bed.dst);
}

void bells_begin(const struct victim *victim)
{
	must(bed_open(&bed, LEN, &(struct pair_opts){ .max_wr = BELLS_WR, .cqe = BELLS_WR }));
}

void bells_turn(unsigned int thread)
{
	struct ibv_wc wc[16];

	POST(bed.a, .op = IBV_WR_RDMA_WRITE, .local = &bed.src, .len = 64, .remote = &bed.dst);
	ibv_poll_cq(bed.a->scq, ARRAY_SIZE(wc), wc);
}

/* ---- receives that nobody needs ---- */

#define RECEIVES	8192

void flush_begin(const struct victim *victim)
{
	must(bed_open(&bed, LEN, &(struct pair_opts){ .max_wr = RECEIVES, .cqe = 2 * RECEIVES }));
}

void flush_turn(unsigned int thread)
{
	struct pair_opts opts = pair_defaults(NULL);
	struct ibv_wc wc[64];
	unsigned int i;

	for (i = 0; i < RECEIVES; i++)
		post_recv(bed.b, NULL, 0, 0, i);
	qp_to(bed.b->qp, IBV_QPS_ERR);
	while (ibv_poll_cq(bed.b->rcq, ARRAY_SIZE(wc), wc) > 0)
		;
	qp_to(bed.b->qp, IBV_QPS_RESET);
	side_to_init(bed.b, &opts);
}
