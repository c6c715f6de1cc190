// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The queue pairs that are shot at, and memory of which most must stay what it is. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "packets.h"

#define PAGE		4096UL
#define AREA_BYTES	(16 * PAGE)
#define SKEW		72	/* regions begin and end in the middle of pages */
#define REGION_BYTES	(AREA_BYTES - 200)
#define STRIDE		(AREA_BYTES + 2 * PAGE)
#define SLOT		4352	/* of the receive area, with what may not be touched */
#define SLOTS		14
#define RQ_DEPTH	16
#define SRQ_DEPTH	64
#define REMOTE		(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |	\
			 IBV_ACCESS_REMOTE_ATOMIC)

struct area areas[AREAS];
u64 seen[SEEN_NR];

/* kind, name, IPv6, MTU, state that it is kept in, rights */
#define T(t, n, v6, m, r, a, ...)					\
	{ .type = IBV_QPT_##t, .name = n, .ipv6 = v6, .mtu = m,		\
	  .rest = IBV_QPS_##r, .access = a, ##__VA_ARGS__ }

struct target targets[] = {
	T(RC, "RC, IPv4", false, 1024, RTS, REMOTE),
	T(RC, "RC, IPv4, MTU 256", false, 256, RTS, REMOTE),
	T(RC, "RC, IPv4, MTU 4096", false, 4096, RTS, REMOTE),
	T(RC, "RC, IPv6", true, 1024, RTS, REMOTE),
	T(RC, "RC, IPv6, MTU 2048", true, 2048, RTS, REMOTE),
	T(RC, "RC, IPv4, SRQ", false, 1024, RTS, REMOTE, .srq = true),
	T(RC, "RC, no rights", false, 1024, RTS, 0, .other_pd = true),
	T(RC, "RC, to be written only", true, 1024, RTS, IBV_ACCESS_REMOTE_WRITE),
	T(RC, "RC, requester, IPv4", false, 1024, RTS, REMOTE, .requests = true),
	T(RC, "RC, requester, IPv6", true, 512, RTS, REMOTE, .requests = true),
	T(RC, "RC in RTR", false, 1024, RTR, REMOTE),
	T(RC, "RC in SQD", false, 1024, SQD, REMOTE),
	T(RC, "RC in RESET", false, 1024, RESET, REMOTE),
	T(RC, "RC in INIT", false, 1024, INIT, REMOTE),
	T(RC, "RC in ERR", true, 1024, ERR, REMOTE),
	T(RC, "XRC, IPv4", false, 1024, RTS, REMOTE, .xrc = true),
	T(RC, "XRC in RTR, IPv6", true, 2048, RTR, REMOTE, .xrc = true),
	T(UC, "UC, IPv4", false, 1024, RTS, IBV_ACCESS_REMOTE_WRITE),
	T(UC, "UC, IPv6", true, 4096, RTS, IBV_ACCESS_REMOTE_WRITE),
	T(UD, "UD, IPv4", false, 4096, RTS, 0),
	T(UD, "UD, IPv6", true, 4096, RTS, 0),
	T(UD, "UD, SRQ", false, 4096, RTS, 0, .srq = true),
	/* the device's own, of which only the number is known */
	T(DRIVER, "GSI, IPv4", false, 4096, RTS, 0),
	T(DRIVER, "GSI, IPv6", true, 4096, RTS, 0),
	T(DRIVER, "native link, IPv4", false, 1024, RTS, 0, .link = true),
	T(DRIVER, "native link, IPv6", true, 1024, RTS, 0, .link = true),
};

const unsigned int nr_targets = sizeof(targets) / sizeof(targets[0]);

static struct ibv_context *ctx;
static struct ibv_pd *pds[2];
static struct ibv_cq *cq;
static struct ibv_srq *srq, *xsrq;	/* the latter of @xrcd */
static struct ibv_xrcd *xrcd;
static u32 xsrqn;
static struct ibv_mr *mrs[AREAS];
static struct ibv_mw *window;
static u8 *map, *shadow;	/* and what it was at first */
static u32 generation;		/* of queue pairs: what completes late is not counted */

static u8 *area_at(enum area_kind kind)
{
	return map + kind * STRIDE + PAGE + SKEW;
}

static int mr_access(enum area_kind kind)
{
	static const int access[AREAS] = {
		[OPEN] = IBV_ACCESS_LOCAL_WRITE | REMOTE,
		[READ_ONLY] = IBV_ACCESS_REMOTE_READ,
		[WRITE_ONLY] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		[LOCAL] = IBV_ACCESS_LOCAL_WRITE,
		[OTHER_PD] = IBV_ACCESS_LOCAL_WRITE | REMOTE,
		[STALE] = IBV_ACCESS_LOCAL_WRITE | REMOTE,
		[WINDOW] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
		[RECV] = IBV_ACCESS_LOCAL_WRITE,
		[RESULT] = IBV_ACCESS_LOCAL_WRITE,
	};

	return access[kind];
}

static void fill(void)
{
	u64 *word = (u64 *)map;
	size_t i;

	for (i = 0; i < AREAS * STRIDE / 8; i++)
		word[i] = SECRET;
	/* what may be read, and what is sent */
	memset(area_at(OPEN), 0x11, REGION_BYTES);
	memset(area_at(READ_ONLY), 0x22, REGION_BYTES);
	memset(area_at(WINDOW), 0x33, REGION_BYTES);
	memset(area_at(RESULT), 0x44, REGION_BYTES);
	memcpy(shadow, map, AREAS * STRIDE);
}

static void open_memory(void)
{
	enum area_kind kind;

	map = mmap(NULL, 2 * AREAS * STRIDE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		die("no memory");
	shadow = map + AREAS * STRIDE;
	fill();
	for (kind = 0; kind < AREAS; kind++) {
		mrs[kind] = ibv_reg_mr(pds[kind == OTHER_PD], area_at(kind), REGION_BYTES,
				       mr_access(kind));
		if (!mrs[kind])
			die("cannot register area %u: %s", kind, strerror(errno));
		areas[kind] = (struct area){
			.va = (uintptr_t)area_at(kind), .len = REGION_BYTES,
			.rkey = mrs[kind]->rkey, .lkey = mrs[kind]->lkey,
			.rights = mr_access(kind) & REMOTE,
		};
	}
	areas[OTHER_PD].rights = 0;
	areas[STALE].rights = 0;
	if (ibv_dereg_mr(mrs[STALE]))
		die("cannot deregister");
	mrs[STALE] = NULL;
}

/* The middle of its area, for reads and writes. */
static void open_window(struct ibv_qp *qp)
{
	struct ibv_mw_bind bind = {
		.wr_id = SLOTS,
		.bind_info = {
			.mr = mrs[WINDOW], .addr = areas[WINDOW].va + AREA_BYTES / 4,
			.length = AREA_BYTES / 2,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		},
	};

	window = ibv_alloc_mw(pds[0], IBV_MW_TYPE_1);
	if (!window || ibv_bind_mw(qp, window, &bind))
		die("cannot bind a window: %s", strerror(errno));
	areas[WINDOW] = (struct area){
		.va = bind.bind_info.addr, .len = bind.bind_info.length,
		.rkey = window->rkey, .lkey = areas[WINDOW].lkey,
		.rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
}

/* changeable: may this area change, and from where to where? */
static bool changeable(enum area_kind kind, u64 *from, u64 *to)
{
	*from = (u64)(area_at(kind) - map);
	*to = *from + REGION_BYTES;
	switch (kind) {
	case WINDOW:
		*from = areas[WINDOW].va - (uintptr_t)map;
		*to = *from + areas[WINDOW].len;
		return true;
	case OPEN:
	case WRITE_ONLY:
	case RESULT:
		return true;
	default:
		return false;
	}
}

/* Slots take what is posted for them, and not a byte more. */
static u32 slot_len(u32 slot)
{
	static const u32 len[] = { 4136, 1180, 4136, 2000, 4136, 4136, 1300 };

	return len[slot % 7];
}

static void compare(enum area_kind kind, u64 from, u64 to)
{
	u64 i;

	if (!memcmp(map + from, shadow + from, to - from))
		return;
	for (i = from; map[i] == shadow[i]; i++)
		;
	die("memory was changed that nobody may change: area %u, byte %lld of it",
	    kind, (long long)(map + i - area_at(kind)));
}

static void compare_slots(void)
{
	u64 base = area_at(RECV) - map;
	u32 i;

	compare(RECV, RECV * STRIDE, base);
	for (i = 0; i < SLOTS; i++)
		compare(RECV, base + i * SLOT + slot_len(i), base + (i + 1) * SLOT);
	compare(RECV, base + SLOTS * SLOT, (RECV + 1) * STRIDE);
}

void memory_check(void)
{
	enum area_kind kind;
	u64 from, to;

	for (kind = 0; kind < AREAS; kind++) {
		if (kind == RECV) {
			compare_slots();
		} else if (changeable(kind, &from, &to)) {
			compare(kind, kind * STRIDE, from);
			compare(kind, to, (kind + 1) * STRIDE);
		} else {
			compare(kind, kind * STRIDE, (kind + 1) * STRIDE);
		}
	}
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			found = ibv_open_device(list[i]);
	if (!found)
		die("cannot open the device %s", name);
	ibv_free_device_list(list);
	return found;
}

static void open_xrc(void)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = SRQ_DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = pds[0], .cq = cq,
	};

	xrcd = ibv_open_xrcd(ctx, &domain);
	init.xrcd = xrcd;
	xsrq = xrcd ? ibv_create_srq_ex(ctx, &init) : NULL;
	if (!xsrq || ibv_get_srq_num(xsrq, &xsrqn))
		die("no XRC domain, or no SRQ in it: %s", strerror(errno));
}

u32 target_srqn(void)
{
	return one_in(100) ? draw() : xsrqn;
}

static struct ibv_qp *create_xrc(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	};

	return ibv_create_qp_ex(ctx, &init);
}

static void create_qp(struct target *t)
{
	struct ibv_qp_init_attr init = {
		.qp_type = t->type, .send_cq = cq, .recv_cq = cq,
		.srq = t->srq ? srq : NULL, .sq_sig_all = 1,
		.cap = {
			.max_send_wr = 16, .max_recv_wr = RQ_DEPTH,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	t->peer = PHANTOM + (t - targets);
	if (t->type == IBV_QPT_DRIVER) {
		t->qpn = t->link ? 0 : 1;
		return;
	}
	t->qp = t->xrc ? create_xrc() : ibv_create_qp(pds[t->other_pd], &init);
	if (!t->qp)
		die("%s: cannot be created: %s", t->name, strerror(errno));
	t->qpn = t->qp->qp_num;
}

static void join(struct target *t)
{
	union ibv_gid group;

	memcpy(&group, opt.mine[0], 16);
	memcpy(t->ipv6 ? group.raw : group.raw + 12, t->ipv6 ? GROUP6 : GROUP4, t->ipv6 ? 16 : 4);
	if (ibv_attach_mcast(t->qp, &group, 0))
		die("%s: cannot become a member: %s", t->name, strerror(errno));
}

void verbs_open(void)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = SRQ_DEPTH, .max_sge = 1 } };
	u32 i;

	ctx = open_device(opt.device);
	pds[0] = ibv_alloc_pd(ctx);
	pds[1] = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 4096, NULL, NULL, 0);
	srq = pds[0] ? ibv_create_srq(pds[0], &srq_init) : NULL;
	if (!pds[1] || !cq || !srq)
		die("no protection domain or queue: %s", strerror(errno));
	for (i = 0; i < 2; i++)
		if (ibv_query_gid(ctx, 1, opt.gid[i], (union ibv_gid *)opt.mine[i]))
			die("%s has no GID %d", opt.device, opt.gid[i]);
	open_memory();
	native_open(ctx, pds[0]);
	open_xrc();
	fcntl(ctx->async_fd, F_SETFL, fcntl(ctx->async_fd, F_GETFL) | O_NONBLOCK);
	for (i = 0; i < nr_targets; i++) {
		create_qp(&targets[i]);
		target_connect(&targets[i]);
		if (targets[i].type == IBV_QPT_UD && !targets[i].srq)
			join(&targets[i]);
	}
	open_window(targets[0].qp);
}

static void modify(struct target *t, struct ibv_qp_attr *attr, int mask)
{
	if (ibv_modify_qp(t->qp, attr, IBV_QP_STATE | mask))
		die("%s: does not go to state %u: %s", t->name, attr->qp_state, strerror(errno));
}

static void to_init(struct target *t)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	int what = IBV_QP_ACCESS_FLAGS;

	if (t->type == IBV_QPT_UD)
		what = IBV_QP_QKEY;
	else
		attr.qp_access_flags = t->access;
	modify(t, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | what);
}

static enum ibv_mtu mtu_code(unsigned int bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while ((128U << code) < bytes)
		code++;
	return code;
}

static void to_rtr(struct target *t)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(t->mtu),
		.dest_qp_num = t->peer,
		.rq_psn = t->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .sgid_index = opt.gid[t->ipv6], .hop_limit = 64 },
		},
	};
	int what = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	memcpy(&attr.ah_attr.grh.dgid, opt.peer[t->ipv6], 16);
	if (t->type == IBV_QPT_RC)
		what |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	modify(t, &attr, t->type == IBV_QPT_UD ? 0 : what);
}

static void to_rts(struct target *t)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = draw() & VRNIC_PSN_MASK,
		.timeout = 12, .retry_cnt = 2, .rnr_retry = 3, .max_rd_atomic = 4,
	};
	int what = IBV_QP_SQ_PSN;

	if (t->xrc)
		what |= IBV_QP_TIMEOUT;
	else if (t->type == IBV_QPT_RC)
		what |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	modify(t, &attr, what);
}

/* From wherever it is to the state that it is to be shot at in. */
void target_connect(struct target *t)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	if (t->link)
		native_connect(t);
	if (t->type == IBV_QPT_DRIVER)
		return;
	verbs_poll();
	modify(t, &attr, 0);
	generation++;
	t->dead = false;
	t->live = true;
	t->nr_req = 0;
	t->psn = one_in(4) ? vrnic_psn_add(0, -(int)below(20)) : draw() & VRNIC_PSN_MASK;
	seen[SEEN_CONNECTED]++;
	if (t->rest == IBV_QPS_RESET)
		return;
	to_init(t);
	if (t->rest == IBV_QPS_INIT)
		return;
	to_rtr(t);
	if (t->rest != IBV_QPS_RTR)
		to_rts(t);
	attr.qp_state = t->rest;
	if (t->rest == IBV_QPS_SQD || t->rest == IBV_QPS_ERR)
		modify(t, &attr, 0);
	target_receives(t);
}

enum ibv_qp_state target_state(struct target *t)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	/* of one that is the device's own only its answers tell */
	if (!t->qp)
		return t->rest;
	if (ibv_query_qp(t->qp, &attr, IBV_QP_STATE, &init))
		die("%s: cannot be queried", t->name);
	return attr.qp_state;
}

static u64 wr_id(const struct target *t, u32 slot)
{
	return (u64)generation << 32 | (u64)(t - targets) << 16 | slot;
}

/* Post until no more fit. */
void target_receives(struct target *t)
{
	static u32 slot;
	struct ibv_sge sge = { .lkey = areas[RECV].lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	int i, err;

	if (t->type == IBV_QPT_DRIVER || t->rest == IBV_QPS_RESET)
		return;
	for (i = 0; i < SRQ_DEPTH; i++) {
		slot = (slot + 1) % SLOTS;
		sge.addr = areas[RECV].va + slot * SLOT;
		sge.length = slot_len(slot);
		wr.wr_id = wr_id(t, slot);
		if (t->srq || t->xrc)
			err = ibv_post_srq_recv(t->xrc ? xsrq : srq, &wr, &bad);
		else
			err = ibv_post_recv(t->qp, &wr, &bad);
		if (err)
			return;
	}
}

/* A request of the device's own, whose answers will be drawn. */
void target_request(struct target *t, enum ibv_wr_opcode opcode, u32 len)
{
	struct ibv_sge sge = {
		.addr = areas[RESULT].va + below(REGION_BYTES / 2 / 8) * 8,
		.length = len, .lkey = areas[RESULT].lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id(t, SLOTS), .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.wr.atomic = { .remote_addr = draw() & ~7ULL, .rkey = draw() },
	};

	if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE)
		wr.wr.rdma.rkey = draw();
	/* a full queue, or one in error, has nothing to say here */
	(void)ibv_post_send(t->qp, &wr, &bad);
}

static void take_receive(const struct target *t, const struct ibv_wc *wc, u32 slot)
{
	if (wc->byte_len > slot_len(slot) && wc->opcode == IBV_WC_RECV)
		die("%s: a message of %u bytes in a receive of %u", t->name, wc->byte_len,
		    slot_len(slot));
	seen[t->type == IBV_QPT_RC ? SEEN_RC_RECEIVED :
	     t->type == IBV_QPT_UC ? SEEN_UC_RECEIVED : SEEN_UD_RECEIVED]++;
}

static void take_completion(const struct ibv_wc *wc)
{
	u32 i = wc->wr_id >> 16 & 0xffff, slot = wc->wr_id & 0xffff;
	const struct target *t = &targets[i];

	/* a shared receive is completed by whichever queue pair took it */
	for (i = 0; i < nr_targets; i++)
		if (targets[i].qp && targets[i].qpn == wc->qp_num)
			t = &targets[i];
	if (slot == SLOTS)
		seen[wc->status ? SEEN_SENDS_FAILED : SEEN_SENDS_DONE]++;
	else if (wc->status == IBV_WC_SUCCESS)
		take_receive(t, wc, slot);
	else if (wc->status != IBV_WC_WR_FLUSH_ERR)
		seen[SEEN_RECV_ERRORS]++;
}

void verbs_poll(void)
{
	struct ibv_async_event event;
	struct ibv_wc wc[32];
	int n, i;

	while ((n = ibv_poll_cq(cq, 32, wc)) > 0)
		for (i = 0; i < n; i++)
			take_completion(&wc[i]);
	if (n < 0)
		die("the completion queue failed");
	while (!ibv_get_async_event(ctx, &event)) {
		if (event.event_type == IBV_EVENT_CQ_ERR)
			die("the completion queue overflowed");
		seen[SEEN_EVENTS]++;
		ibv_ack_async_event(&event);
	}
}

static void leave(struct target *t)
{
	union ibv_gid group;

	memcpy(&group, opt.mine[0], 16);
	memcpy(t->ipv6 ? group.raw : group.raw + 12, t->ipv6 ? GROUP6 : GROUP4, t->ipv6 ? 16 : 4);
	if (ibv_detach_mcast(t->qp, &group, 0))
		die("%s: remains a member", t->name);
}

void verbs_close(void)
{
	enum area_kind kind;
	int err = 0;
	u32 i;

	verbs_poll();
	native_close();
	for (i = 0; i < nr_targets; i++) {
		if (targets[i].type == IBV_QPT_UD && !targets[i].srq)
			leave(&targets[i]);
		if (targets[i].qp)
			err |= ibv_destroy_qp(targets[i].qp);
	}
	err |= ibv_dealloc_mw(window) | ibv_destroy_srq(srq) | ibv_destroy_srq(xsrq);
	err |= ibv_close_xrcd(xrcd) | ibv_destroy_cq(cq);
	for (kind = 0; kind < AREAS; kind++)
		if (mrs[kind])
			err |= ibv_dereg_mr(mrs[kind]);
	err |= ibv_dealloc_pd(pds[0]) | ibv_dealloc_pd(pds[1]) | ibv_close_device(ctx);
	if (err)
		die("an object cannot be destroyed");
}
