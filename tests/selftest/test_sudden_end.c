// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process uses what few programs have, again and again, and is killed meanwhile; or its device
 * goes, then the process is told and can free what it has. Either way nothing keeps the device.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "comp_raw.h"
#include "harness.h"
#include "rdma_tool.h"
#include "rss_bed.h"
#include "xrc_bed.h"

#define LEN	(128 * 1024)
#define IOVA	0x123456000UL
#define LOG	2

/* What a process has. Each kind uses a part of it. */
struct life {
	struct wire_bed wire;
	struct bed *bed;
	struct ibv_mr *mr;
	int memfd, fd;
	struct ibv_dm *dm;
	struct cntr sent, received;
	uint64_t rounds;
	struct ibv_xrcd *xrcd;
	struct box box;
	struct side ini, tgt;
	struct raw_bed raw;
	struct ibv_counters *counters;
	struct ibv_flow *flow;
	struct queue queue[QUEUES];
	struct ibv_rwq_ind_table *table;
	struct spread spread;
};

/**
 * struct kind - of use
 * @device: what open() makes, in a network namespace of the process's own
 * @open: -EOPNOTSUPP: this kernel has no such thing
 * @use: one round. Status of a completion, or a negative errno
 * @close: also when the device has gone
 */
struct kind {
	const char *device;
	int (*open)(struct life *l, bool wire);
	int (*use)(struct life *l);
	int (*close)(struct life *l);
};

/* ---- queue pairs with something more ---- */

static int open_bed(struct life *l, bool wire)
{
	int ret;

	l->bed = &l->wire.bed;
	if (wire)
		return wire_bed_open(&l->wire, LEN, NULL);
	ret = wire_device();
	return ret ?: bed_open(l->bed, LEN, NULL);
}

/* The namespace takes the device along, if it is still there. */
static int close_bed(struct life *l)
{
	int ret = bed_close(l->bed);

	return ret ?: param_release(&l->wire.forced);
}

static int open_dmabuf(struct life *l, bool wire)
{
	l->fd = udmabuf_open(LEN, &l->memfd);
	if (l->fd < 0)
		return l->fd == -ENOENT ? -EOPNOTSUPP : l->fd;
	if (open_bed(l, wire))
		return -EIO;
	l->mr = ibv_reg_dmabuf_mr(l->bed->b->pd, 0, LEN, IOVA, l->fd, ACCESS_REMOTE);
	return l->mr ? 0 : -errno;
}

static int write_and_read(struct life *l, uint64_t at)
{
	struct bed *bed = l->bed;
	int ret = RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = LEN,
		      .raddr = at, .rkey = l->mr->rkey);

	return ret ?: RUN(bed->a, .op = IBV_WR_RDMA_READ, .local = &bed->src, .len = LEN,
			  .raddr = at, .rkey = l->mr->rkey);
}

static int use_dmabuf(struct life *l)
{
	return write_and_read(l, IOVA);
}

static int close_dmabuf(struct life *l)
{
	int ret = ibv_dereg_mr(l->mr);

	close(l->fd);
	close(l->memfd);
	return ret ?: close_bed(l);
}

static int open_dm(struct life *l, bool wire)
{
	struct ibv_alloc_dm_attr attr = { .length = LEN };

	if (open_bed(l, wire))
		return -EIO;
	l->dm = ibv_alloc_dm(l->bed->b->dev->ctx, &attr);
	if (!l->dm)
		return -errno;
	l->mr = ibv_reg_dm_mr(l->bed->b->pd, l->dm, 0, LEN, ACCESS_REMOTE | IBV_ACCESS_ZERO_BASED);
	return l->mr ? 0 : -errno;
}

/* With copies by the program, which need no device. */
static int use_dm(struct life *l)
{
	int ret = ibv_memcpy_to_dm(l->dm, 0, l->bed->dst.addr, 4096);

	return ret ? -abs(ret) : write_and_read(l, 0);
}

static int close_dm(struct life *l)
{
	int ret = ibv_dereg_mr(l->mr);

	return ret ?: ibv_free_dm(l->dm) ?: close_bed(l);
}

/* Counters are attached before queue pairs are connected. */
static int open_counters(struct life *l, bool wire)
{
	uint32_t most, ops;
	struct bed *bed;
	uint64_t value;
	int ret = open_bed(l, wire);

	if (ret)
		return ret;
	bed = l->bed;
	if (cntr_caps(bed->dev.ctx, &most, &value, &ops) == EPROTONOSUPPORT)
		return -EOPNOTSUPP;
	ret = qp_to(bed->a->qp, IBV_QPS_RESET) ?: qp_to(bed->b->qp, IBV_QPS_RESET);
	ret = ret ?: cntr_open(&l->sent, bed->a->dev->ctx, 0);
	ret = ret ?: cntr_open(&l->received, bed->b->dev->ctx, 0);
	ret = ret ?: cntr_attach(&l->sent, bed->a->qp, CC_RDMA_WRITE);
	ret = ret ?: cntr_attach(&l->received, bed->b->qp, CC_REMOTE_WRITE);
	return -abs(ret ?: pair_connect(&bed->pair));
}

static int use_counters(struct life *l)
{
	struct bed *bed = l->bed;
	int ret = RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8192,
		      .remote = &bed->dst);

	if (ret)
		return ret;
	l->rounds++;
	return l->sent.cell->completed == l->rounds ? 0 : -EBADMSG;
}

static int close_counters(struct life *l)
{
	int ret = close_bed(l);

	cntr_unmap(&l->sent);
	cntr_unmap(&l->received);
	return ret;
}

static int connect_xrc(struct life *l)
{
	const struct pair_opts ini = { .type = IBV_QPT_XRC_SEND, .access = NO_ACCESS };
	const struct pair_opts tgt = { .type = IBV_QPT_XRC_RECV };
	struct pair_opts to_ini = pair_defaults(&ini), to_tgt = pair_defaults(&tgt);
	int ret = side_connect(&l->ini, &to_ini, l->tgt.qp->qp_num, &l->bed->b->dev->gid);

	return ret ?: side_connect(&l->tgt, &to_tgt, l->ini.qp->qp_num, &l->bed->a->dev->gid);
}

static int open_xrc(struct life *l, bool wire)
{
	int ret = open_bed(l, wire);
	struct dev *dev;

	if (ret)
		return ret;
	dev = l->bed->b->dev;
	l->xrcd = open_domain(dev->ctx, -1, O_CREAT);
	if (!l->xrcd)
		return -errno;
	ret = box_open(&l->box, dev, l->xrcd) ?: open_initiator(&l->ini, l->bed, 0);
	l->tgt.dev = dev;
	l->tgt.qp = ret ? NULL : open_target(dev->ctx, l->xrcd);
	if (!l->tgt.qp)
		return ret ?: -errno;
	return connect_xrc(l);
}

static int use_xrc(struct life *l)
{
	struct bed *bed = l->bed;
	int ret = -post_recv(&l->box.side, &bed->dst, 0, LEN, 1);

	ret = ret ?: RUN(&l->ini, .op = IBV_WR_SEND, .local = &bed->src, .len = LEN,
			 .srqn = l->box.srqn);
	return ret ?: wait_recv(&l->box.side);
}

static int close_xrc(struct life *l)
{
	int ret = ibv_destroy_qp(l->ini.qp);

	ret = ret ?: ibv_destroy_qp(l->tgt.qp);
	ret = ret ?: box_close(&l->box);
	ret = ret ?: ibv_close_xrcd(l->xrcd);
	return ret ?: close_bed(l);
}

/* ---- whole frames ---- */

static struct frame some_frame(struct life *l)
{
	return to_host(&l->raw, l->rounds++);
}

static int open_flow(struct life *l, bool wire)
{
	struct ibv_counter_attach_attr attach = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_counters_init_attr init = {};
	struct rule rule = normal(0);
	int ret = raw_bed_open(&l->raw);

	if (ret)
		return ret;
	l->counters = ibv_create_counters(l->raw.ctx, &init);
	if (!l->counters || ibv_attach_counters_point_flow(l->counters, &attach, NULL))
		return -errno;
	ADD(&rule, ibv_flow_spec_counter_action, IBV_FLOW_SPEC_ACTION_COUNT,
	    .counters = l->counters);
	l->flow = ibv_create_flow(l->raw.a.qp, &rule.attr);
	return l->flow ? 0 : -errno;
}

static int use_flow(struct life *l)
{
	struct frame f = some_frame(l);
	int ret = net_send(&l->raw, &f);

	return ret ?: raw_expect(&l->raw.a, &f);
}

static int close_flow(struct life *l)
{
	int ret = ibv_destroy_flow(l->flow);

	ret = ret ?: ibv_destroy_counters(l->counters);
	return ret ?: raw_bed_close(&l->raw);
}

static int open_rss(struct life *l, bool wire)
{
	int i, ret = raw_bed_open(&l->raw);

	make_hash_key();
	for (i = 0; i < QUEUES && !ret; i++)
		ret = queue_open(&l->queue[i], l->raw.pd) ?: -abs(queue_start(&l->queue[i]));
	if (ret)
		return ret;
	l->table = table_of(l->queue, l->raw.ctx, LOG);
	if (!l->table)
		return -errno;
	return spread_open(&l->spread, &l->raw, l->table,
			   IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4);
}

/* All frames have one pair of addresses, and so one queue. */
static int use_rss(struct life *l)
{
	struct frame f = some_frame(l);
	int n = 0, ret = net_send(&l->raw, &f);
	struct patience p = {};
	struct queue *q;

	for (q = l->queue; !ret && !n; q = q == &l->queue[QUEUES - 1] ? l->queue : q + 1) {
		n = ibv_poll_cq(q->cq, 1, &q->wc);
		if (n < 0)
			return -EIO;
		if (n)
			return q->wc.status ? (int)q->wc.status : -queue_post(q, q->wc.wr_id);
		if (!still_patient(&p, 0))
			return -ETIMEDOUT;
	}
	return ret;
}

static int close_rss(struct life *l)
{
	int i, ret = spread_close(&l->spread);

	ret = ret ?: ibv_destroy_rwq_ind_table(l->table);
	for (i = 0; i < QUEUES && !ret; i++)
		ret = queue_close(&l->queue[i]);
	return ret ?: raw_bed_close(&l->raw);
}

static const struct kind dmabuf = { WIRE_DEVICE, open_dmabuf, use_dmabuf, close_dmabuf };
static const struct kind dm = { WIRE_DEVICE, open_dm, use_dm, close_dm };
static const struct kind counters = { WIRE_DEVICE, open_counters, use_counters, close_counters };
static const struct kind xrc = { WIRE_DEVICE, open_xrc, use_xrc, close_xrc };
static const struct kind flow = { RAW_DEVICE, open_flow, use_flow, close_flow };
static const struct kind rss = { RAW_DEVICE, open_rss, use_rss, close_rss };

/* ---- lives, and how they end ---- */

/**
 * struct sudden - a process, and what keeps its network namespace, and the device, when it is gone
 * @child: the process
 * @fd: what it says: a byte when it is at work
 * @net: its namespace
 */
FIXTURE(sudden) {
	pid_t child;
	int fd, net;
};

FIXTURE_VARIANT(sudden) {
	const struct kind *kind;
	bool wire;
};

FIXTURE_VARIANT_ADD(sudden, dmabuf) { &dmabuf };
FIXTURE_VARIANT_ADD(sudden, dmabuf_wire) { &dmabuf, true };
FIXTURE_VARIANT_ADD(sudden, dm) { &dm };
FIXTURE_VARIANT_ADD(sudden, dm_wire) { &dm, true };
FIXTURE_VARIANT_ADD(sudden, counters) { &counters };
FIXTURE_VARIANT_ADD(sudden, counters_wire) { &counters, true };
FIXTURE_VARIANT_ADD(sudden, xrc) { &xrc };
FIXTURE_VARIANT_ADD(sudden, xrc_wire) { &xrc, true };
FIXTURE_VARIANT_ADD(sudden, flow) { &flow };
FIXTURE_VARIANT_ADD(sudden, rss) { &rss };

#define AT_WORK		'w'
#define NOT_HERE	'n'

static void say(int fd, char what)
{
	if (write(fd, &what, 1) != 1)
		_exit(3);
}

/*
 * What an operation may end with when its device goes. The core destroys the newest objects first:
 * so a key, or the queue pair at the other end, may be void before the device is.
 */
static bool is_an_end(int ret)
{
	switch (ret) {
	case -EIO:
	case IBV_WC_WR_FLUSH_ERR:
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_RETRY_EXC_ERR:
		return true;
	}
	return false;
}

static void live(const struct kind *kind, bool wire, int fd)
{
	static struct life l;
	int ret;

	/* a test that fails leaves nobody at work */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	unsetenv("VRNIC_PEER_DEV");
	unsetenv("VRNIC_GID");
	ret = kind->open(&l, wire);
	if (ret == -EOPNOTSUPP) {
		say(fd, NOT_HERE);
		_exit(0);
	}
	ret = ret ?: kind->use(&l);
	if (ret) {
		fprintf(stderr, "# it does not begin: %d\n", ret);
		_exit(1);
	}
	say(fd, AT_WORK);
	while (!ret)
		ret = kind->use(&l);
	if (!is_an_end(ret)) {
		fprintf(stderr, "# it ended with %d\n", ret);
		_exit(1);
	}
	ret = kind->close(&l);
	if (ret) {
		fprintf(stderr, "# what it had cannot be freed: %d\n", ret);
		_exit(1);
	}
	_exit(0);
}

static int net_of(pid_t pid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The hook for frames stays in use by this process: see raw_keep_hook(). */
static int keep_hook(const struct kind *kind)
{
	if (strcmp(kind->device, RAW_DEVICE))
		return 0;
	return unshare(CLONE_NEWNET) ? -errno : raw_keep_hook();
}

FIXTURE_SETUP(sudden)
{
	char what = 0;
	int fds[2];

	ASSERT_OK(keep_hook(variant->kind));
	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	self->child = fork();
	ASSERT_LE(0, self->child);
	if (!self->child) {
		close(fds[0]);
		live(variant->kind, variant->wire, fds[1]);
	}
	close(fds[1]);
	self->fd = fds[0];
	ASSERT_EQ(1, read(self->fd, &what, 1));
	if (what == NOT_HERE)
		SKIP(return, "this kernel has no such thing");
	self->net = net_of(self->child);
	ASSERT_LE(0, self->net);
	/* in the middle of something */
	usleep(20000);
}

FIXTURE_TEARDOWN(sudden)
{
	close(self->fd);
	close(self->net);
}

TEST_F(sudden, the_process_is_killed)
{
	int status, held = resources_of(variant->kind->device, self->child);

	ASSERT_OK(kill(self->child, SIGKILL));
	ASSERT_EQ(self->child, waitpid(self->child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_LT(0, held);
	EXPECT_EQ(0, resources_of(variant->kind->device, self->child));
	EXPECT_OK(rdma_link_del(variant->kind->device));
}

TEST_F(sudden, the_device_goes)
{
	int status;

	EXPECT_OK(rdma_link_del(variant->kind->device));
	ASSERT_EQ(self->child, waitpid(self->child, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
