/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A device on one end of a veth pair, with raw packet queue pairs, and a packet socket on the other
 * end, in a network namespace of the test's own.
 */
#ifndef SELFTEST_RAW_BED_H
#define SELFTEST_RAW_BED_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "harness.h"
#include "rdma_link.h"

#define RAW_DEVICE	"vrnic_raw"
#define RAW_LINK	"rawv0"	/* the device's interface */
#define RAW_PEER	"rawv1"	/* the other end */
#define RAW_HOST_IP	"10.66.0.1"
#define RAW_PEER_IP	"10.66.0.2"
#define RAW_HOST_PORT	7777

#define RECVS		32
#define RECV_BYTES	4096

/* ---- frames ---- */

struct frame {
	uint8_t at[9100];
	size_t len;
};

static inline void put(struct frame *f, const void *bytes, size_t n)
{
	memcpy(f->at + f->len, bytes, n);
	f->len += n;
}

static inline void put8(struct frame *f, uint8_t value) { put(f, &value, 1); }

static inline void put16(struct frame *f, uint16_t value)
{
	value = htons(value);
	put(f, &value, sizeof(value));
}

static inline void put_eth(struct frame *f, const uint8_t *dst, const uint8_t *src, int tag)
{
	f->len = 0;
	put(f, dst, ETH_ALEN);
	put(f, src, ETH_ALEN);
	if (tag < 0)
		return;
	put16(f, ETH_P_8021Q);
	put16(f, tag);
}

static inline uint16_t ip_sum(const uint8_t *at, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i += 2)
		sum += at[i] << 8 | at[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

struct ip4 {
	const char *src, *dst;
	uint8_t proto, tos, ttl;
	uint16_t frag;
};

static inline void put_ip4(struct frame *f, const struct ip4 *ip, size_t payload)
{
	uint8_t *at;
	uint16_t sum;

	put16(f, ETH_P_IP);
	at = f->at + f->len;
	put8(f, 0x45);
	put8(f, ip->tos);
	put16(f, 20 + payload);
	put16(f, 1);
	put16(f, ip->frag);
	put8(f, ip->ttl ?: 64);
	put8(f, ip->proto);
	put16(f, 0);
	put(f, &(uint32_t){ inet_addr(ip->src) }, 4);
	put(f, &(uint32_t){ inet_addr(ip->dst) }, 4);
	sum = ip_sum(at, 20);
	at[10] = sum >> 8;
	at[11] = sum;
}

struct ip6 {
	const char *src, *dst;
	uint8_t next, class, hops;
	uint32_t label;
};

static inline void put_ip6(struct frame *f, const struct ip6 *ip, size_t payload)
{
	uint32_t first = htonl(6U << 28 | ip->class << 20 | ip->label);
	struct in6_addr addr;

	put16(f, ETH_P_IPV6);
	put(f, &first, 4);
	put16(f, payload);
	put8(f, ip->next);
	put8(f, ip->hops ?: 64);
	if (inet_pton(AF_INET6, ip->src, &addr) != 1)
		abort();
	put(f, &addr, 16);
	if (inet_pton(AF_INET6, ip->dst, &addr) != 1)
		abort();
	put(f, &addr, 16);
}

/* Without a checksum, as UDP may be. */
static inline void put_udp(struct frame *f, uint16_t sport, uint16_t dport, size_t payload)
{
	put16(f, sport);
	put16(f, dport);
	put16(f, 8 + payload);
	put16(f, 0);
}

static inline void put_data(struct frame *f, size_t n, uint8_t seed)
{
	while (n--)
		put8(f, seed += 7);
}

/* ---- rules ---- */

struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[512];
};

static inline struct rule rule_of(enum ibv_flow_attr_type type, uint16_t priority)
{
	return (struct rule){
		.attr = { .type = type, .size = sizeof(struct ibv_flow_attr),
			  .priority = priority, .port = 1 },
	};
}

static inline struct rule normal(uint16_t priority)
{
	return rule_of(IBV_FLOW_ATTR_NORMAL, priority);
}

static inline void add_spec(struct rule *r, const void *spec, size_t size)
{
	memcpy((uint8_t *)r + r->attr.size, spec, size);
	r->attr.size += size;
	r->attr.num_of_specs++;
}

/* ADD(rule, struct, type, .val... = ..., .mask... = ...) */
#define ADD(r, of, spec_type, ...)						\
	do {									\
		struct of __spec = { .type = (spec_type), .size = sizeof(__spec),	\
				     __VA_ARGS__ };				\
										\
		add_spec((r), &__spec, sizeof(__spec));				\
	} while (0)

static inline void add_dst_mac(struct rule *r, const uint8_t *mac)
{
	struct ibv_flow_spec_eth spec = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(spec) };

	memcpy(spec.val.dst_mac, mac, ETH_ALEN);
	memset(spec.mask.dst_mac, 0xff, ETH_ALEN);
	add_spec(r, &spec, sizeof(spec));
}

/* ---- queue pairs ---- */

struct raw {
	struct ibv_qp *qp;
	struct ibv_cq *cq;	/* of receives */
	struct ibv_cq *scq;
	struct buf in, out;
	struct ibv_wc wc;
};

static inline int raw_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int ret;

	ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT);
	attr.qp_state = IBV_QPS_RTR;
	ret = ret ?: ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return ret ?: ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static inline struct ibv_qp *raw_qp(struct ibv_pd *pd, struct ibv_cq *scq, struct ibv_cq *rcq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = scq, .recv_cq = rcq,
		.cap = { .max_send_wr = RECVS, .max_recv_wr = RECVS, .max_send_sge = 4,
			 .max_recv_sge = 4, .max_inline_data = 256 },
	};

	return ibv_create_qp(pd, &init);
}

static inline int raw_post_recv(struct raw *raw, unsigned int slot, size_t len)
{
	struct ibv_sge sge = sge_of(&raw->in, slot * RECV_BYTES, len);
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(raw->qp, &wr, &bad);
}

static inline int raw_open(struct raw *raw, struct ibv_pd *pd)
{
	int ret;

	raw->cq = ibv_create_cq(pd->context, 256, NULL, NULL, 0);
	raw->scq = ibv_create_cq(pd->context, 256, NULL, NULL, 0);
	if (!raw->cq || !raw->scq)
		return -errno;
	raw->qp = raw_qp(pd, raw->scq, raw->cq);
	if (!raw->qp)
		return -errno;
	ret = buf_open(&raw->in, pd, RECVS * RECV_BYTES, 0, IBV_ACCESS_LOCAL_WRITE);
	return ret ?: buf_open(&raw->out, pd, 16384, 0, 0);
}

/* Receives in every slot, and RTS. */
static inline int raw_start(struct raw *raw)
{
	int ret = raw_to_rts(raw->qp);

	for (unsigned int i = 0; !ret && i < RECVS; i++)
		ret = raw_post_recv(raw, i, RECV_BYTES);
	return ret;
}

static inline int raw_close(struct raw *raw)
{
	int ret = 0;

	if (raw->qp)
		ret = ibv_destroy_qp(raw->qp);
	if (raw->cq)
		ret = ret ?: ibv_destroy_cq(raw->cq);
	if (raw->scq)
		ret = ret ?: ibv_destroy_cq(raw->scq);
	if (raw->in.map && !buf_guards_intact(&raw->in))
		ret = -EFAULT;
	buf_close(&raw->in);
	buf_close(&raw->out);
	return ret;
}

/* Post the frame: in @sges pieces, or inline if 0. Return: what ibv_post_send() returned. */
static inline int raw_post(struct raw *raw, const struct frame *f, int sges)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_sge sge[4];
	size_t at = 0, n;

	memcpy(raw->out.addr, f->at, f->len);
	wr.num_sge = sges ?: 1;
	if (!sges)
		wr.send_flags |= IBV_SEND_INLINE;
	for (int i = 0; i < wr.num_sge; i++, at += n) {
		n = i == wr.num_sge - 1 ? f->len - at : f->len / wr.num_sge;
		sge[i] = sge_of(&raw->out, at, n);
	}
	wr.sg_list = sge;
	return ibv_post_send(raw->qp, &wr, &bad);
}

/* Send the frame. Return: the completion's status, or a negative errno. */
static inline int raw_send(struct raw *raw, const struct frame *f, int sges)
{
	int ret = raw_post(raw, f, sges);

	ret = ret ? -ret : poll_one(raw->scq, &raw->wc);
	return ret ?: (int)raw->wc.status;
}

/* Wait for a frame: 0 if it is @f, byte for byte; the receive is posted again. */
static inline int raw_expect(struct raw *raw, const struct frame *f)
{
	int ret = poll_one(raw->cq, &raw->wc);
	size_t at;

	if (ret)
		return ret;
	if (raw->wc.status)
		return raw->wc.status;
	at = raw->wc.wr_id * RECV_BYTES;
	if (raw->wc.opcode != IBV_WC_RECV || raw->wc.byte_len != f->len)
		return -EMSGSIZE;
	if (memcmp(raw->in.addr + at, f->at, f->len))
		return -EBADMSG;
	return raw_post_recv(raw, raw->wc.wr_id, RECV_BYTES);
}

/* From now on, the process may have no raw packets. */
static inline int drop_net_raw(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &h, caps))
		return -errno;
	caps[0].effective &= ~(1U << CAP_NET_RAW);
	return syscall(SYS_capset, &h, caps) ? -errno : 0;
}

/* ---- the bed ---- */

/**
 * struct raw_bed - the device, two queue pairs on it, and who is beside it
 * @net: packet socket at the other end of the wire
 * @host: UDP socket of the device's own host
 */
struct raw_bed {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct raw a, b;
	int net, host;
	uint8_t mac[ETH_ALEN], peer_mac[ETH_ALEN];
};

static inline int mac_of(const char *link, uint8_t *mac)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), ret;
	struct ifreq ifr = {};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", link);
	ret = ioctl(fd, SIOCGIFHWADDR, &ifr) ? -errno : 0;
	memcpy(mac, ifr.ifr_hwaddr.sa_data, ETH_ALEN);
	close(fd);
	return ret;
}

/* A packet socket on an interface, for what comes in there. */
static inline int tap_open(const char *link)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(link),
	};
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return -errno;
	return fd;
}

static inline int host_open(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(RAW_HOST_PORT),
		.sin_addr.s_addr = inet_addr(RAW_HOST_IP),
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) ? -errno : fd;
}

static inline bool run_all(const char *const *commands, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (system(commands[i]))
			return false;
	return true;
}

/* Without IPv6, whose neighbour discovery would send frames of its own. */
static inline int raw_links(void)
{
	static const char *const commands[] = {
		"ip link set lo up",
		"ip link add " RAW_LINK " type veth peer name " RAW_PEER,
		"ip link set " RAW_LINK " addrgenmode none",
		"ip link set " RAW_PEER " addrgenmode none",
		"ip addr add " RAW_HOST_IP "/24 dev " RAW_LINK,
		"ip link set " RAW_LINK " up",
		"ip link set " RAW_PEER " up",
	};
	int ret;

	if (unshare(CLONE_NEWNET))
		return -errno;
	if (!run_all(commands, sizeof(commands) / sizeof(commands[0])))
		return -ENODEV;
	ret = rdma_link_add_anew(RAW_DEVICE, RAW_LINK);
	if (ret)
		return ret;
	unsetenv("VRNIC_PEER_DEV");
	unsetenv("VRNIC_GID");
	return setenv("VRNIC_DEV", RAW_DEVICE, 1);
}

static inline int raw_bed_open(struct raw_bed *bed)
{
	int ret = raw_links();

	if (ret)
		return ret;
	bed->ctx = dev_open_context();
	bed->pd = bed->ctx ? ibv_alloc_pd(bed->ctx) : NULL;
	if (!bed->pd)
		return -errno;
	bed->net = tap_open(RAW_PEER);
	bed->host = host_open();
	if (bed->net < 0 || bed->host < 0)
		return -EIO;
	ret = mac_of(RAW_LINK, bed->mac) ?: mac_of(RAW_PEER, bed->peer_mac);
	ret = ret ?: raw_open(&bed->a, bed->pd);
	ret = ret ?: raw_open(&bed->b, bed->pd);
	ret = ret ?: raw_start(&bed->a);
	return ret ?: raw_start(&bed->b);
}

static inline int raw_bed_close(struct raw_bed *bed)
{
	int ret = raw_close(&bed->a);

	ret = raw_close(&bed->b) ?: ret;
	ret = ibv_dealloc_pd(bed->pd) ?: ret;
	ret = ibv_close_device(bed->ctx) ?: ret;
	close(bed->net);
	close(bed->host);
	return ret;
}

/*
 * Keep the kernel's hook for frames in use, on another interface, to the end of the process. With
 * rules that come and go while frames come, the kernel would patch its code under them, and an
 * emulated CPU may stay in the breakpoint that this takes (QEMU 7.2).
 */
static inline int raw_keep_hook(void)
{
	struct rule rule = normal(0);
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct raw keep;
	int ret;

	ret = rdma_link_add_anew("vrnic_keep", "lo");
	if (ret)
		return ret;
	setenv("VRNIC_DEV", "vrnic_keep", 1);
	ctx = dev_open_context();
	setenv("VRNIC_DEV", RAW_DEVICE, 1);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd)
		return -ENODEV;
	return raw_open(&keep, pd) ?: ibv_create_flow(keep.qp, &rule.attr) ? 0 : -errno;
}

/* The network sends a frame to the device. */
static inline int net_send(struct raw_bed *bed, const struct frame *f)
{
	return send(bed->net, f->at, f->len, 0) == (ssize_t)f->len ? 0 : -errno;
}

/* The next frame that came out of the device; its VLAN tag, or -1, to @tag. */
static inline ssize_t net_recv(struct raw_bed *bed, void *at, size_t len, int *tag)
{
	union {
		struct cmsghdr hdr;
		uint8_t room[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct iovec iov = { at, len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct tpacket_auxdata aux;
	ssize_t n;

	if (!readable(bed->net, WAIT_SECONDS * 1000))
		return -ETIMEDOUT;
	n = recvmsg(bed->net, &msg, 0);
	if (n < 0)
		return -errno;
	memcpy(&aux, CMSG_DATA(&control.hdr), sizeof(aux));
	*tag = aux.tp_status & TP_STATUS_VLAN_VALID ? aux.tp_vlan_tci : -1;
	return n;
}

/* Wait for a frame at the network: 0 if it is @f. */
static inline int net_expect(struct raw_bed *bed, const struct frame *f)
{
	uint8_t got[sizeof(f->at)];
	int tag = -1;
	ssize_t n = net_recv(bed, got, sizeof(got), &tag);

	if (n < 0)
		return n;
	if (tag >= 0) {
		/* the stack has taken the tag out */
		memmove(got + 16, got + 12, n - 12);
		memcpy(got + 12, &(uint16_t){ htons(ETH_P_8021Q) }, 2);
		memcpy(got + 14, &(uint16_t){ htons(tag) }, 2);
		n += 4;
	}
	if (n != (ssize_t)f->len)
		return -EMSGSIZE;
	return memcmp(got, f->at, n) ? -EBADMSG : 0;
}

/* A UDP datagram to the host's socket, with @mark as its data. */
static inline struct frame to_host(const struct raw_bed *bed, uint8_t mark)
{
	const struct ip4 ip = { .src = RAW_PEER_IP, .dst = RAW_HOST_IP, .proto = IPPROTO_UDP };
	struct frame f;

	put_eth(&f, bed->mac, bed->peer_mac, -1);
	put_ip4(&f, &ip, 9);
	put_udp(&f, 5555, RAW_HOST_PORT, 1);
	put8(&f, mark);
	return f;
}

/* The mark of the next datagram that the host gets, or a negative errno. */
static inline int host_recv(struct raw_bed *bed)
{
	uint8_t mark;

	if (!readable(bed->host, WAIT_SECONDS * 1000))
		return -ETIMEDOUT;
	return recv(bed->host, &mark, 1, 0) == 1 ? mark : -errno;
}

#endif /* SELFTEST_RAW_BED_H */
