// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Behaviour that only the wire has: each test has a network namespace with a device on its
 * lo, and RoCEv2 between its own queue pairs.
 */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "harness.h"

#define LEN	4096

FIXTURE(wire)
{
	struct wire_bed wire;
	struct bed *bed;
};

/* Nothing but an answer is to make it go on. */
static struct pair_opts patient = { .timeout = 22 };

FIXTURE_SETUP(wire)
{
	ASSERT_OK(wire_bed_open(&self->wire, LEN, &patient));
	self->bed = &self->wire.bed;
}

FIXTURE_TEARDOWN(wire)
{
	EXPECT_OK(wire_bed_close(&self->wire));
}

/* The two bits of the network header that a datagram came with. */
static int ecn_of(const uint8_t *grh)
{
	const struct iphdr *ip = (const struct iphdr *)(grh + GRH_BYTES - sizeof(*ip));

	if (grh[0] >> 4 == 6)
		return grh[1] >> 4 & 3;
	return ip->tos & 3;
}

#define MAD_BYTES	(12 + 8 + 256 + 4)	/* BTH, DETH, MAD, ICRC */

/* Datagrams to queue pair 1, in one buffer, as GRO would join them. */
static int send_mads(unsigned int nr)
{
	static const uint8_t heads[] = {
		0x64, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00,
		0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
	};
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(4791),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int size = MAD_BYTES, fd = socket(AF_INET, SOCK_DGRAM, 0), ret = 0;
	uint8_t mads[8 * MAD_BYTES] = {};
	unsigned int i;

	for (i = 0; i < nr; i++)
		memcpy(mads + i * MAD_BYTES, heads, sizeof(heads));
	if (fd < 0 || setsockopt(fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)) ||
	    sendto(fd, mads, nr * MAD_BYTES, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* They are for no agent, and have no right ICRC; and none of them keeps the device. */
TEST_F(wire, mads_of_strangers_that_come_together)
{
	ASSERT_OK(send_mads(8));
}

/* The responder remembers as many READs as it was connected for, and no more. */
TEST_F(wire, max_dest_rd_atomic_does_not_grow)
{
	struct ibv_qp *qp = self->bed->a->qp;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct ibv_qp_init_attr init;

	ASSERT_OK(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	ASSERT_OK(ibv_query_qp(qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC, &init));
	attr.qp_state = IBV_QPS_SQD;
	attr.max_dest_rd_atomic++;
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC));
	attr.max_dest_rd_atomic -= 2;
	EXPECT_OK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC));
}

/* Nobody tells the sender of a datagram that it was marked. */
TEST_F(wire, datagrams_do_not_claim_ecn)
{
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct bed *bed = self->bed;
	struct pair pair;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, LEN, 0));
	ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src, .len = 8));
	ASSERT_DONE(wait_recv(&pair.b));
	EXPECT_EQ(0, ecn_of((const uint8_t *)bed->dst.addr));
	EXPECT_OK(pair_close(&pair));
}

/* Of all sizes, one behind the other: each has memory of its own. */
TEST_F(wire, datagrams_of_all_sizes_are_whole)
{
	static const size_t sizes[] = { 0, 1, 255, 256, 257, 1023, 1024, 1025, 2048 };
	struct pair_opts opts = { .type = IBV_QPT_UD };
	struct bed *bed = self->bed;
	struct pair pair;
	unsigned int i;

	ASSERT_OK(pair_open(&pair, &bed->dev, &opts));
	ASSERT_OK(pair_connect(&pair));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		buf_fill(&bed->src, i);
		ASSERT_OK(post_recv(&pair.b, &bed->dst, 0, LEN, 0));
		ASSERT_DONE(RUN(&pair.a, .op = IBV_WR_SEND, .local = &bed->src,
				.len = sizes[i]));
		ASSERT_DONE(wait_recv(&pair.b));
		EXPECT_EQ(GRH_BYTES + sizes[i], pair.b.rwc.byte_len);
		EXPECT_EQ(-1, buf_differs(&bed->dst, GRH_BYTES, sizes[i], i, 0));
	}
	EXPECT_OK(pair_close(&pair));
}

/*
 * A kbit/s is 125 bytes a second: the acknowledgments alone would be paid for in minutes.
 * How many there are is the peer's choice.
 */
TEST_F(wire, acknowledgments_do_not_use_up_the_rate)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 1 };
	struct bed *bed = self->bed;
	int i;

	ASSERT_EQ(0, ibv_modify_qp_rate_limit(bed->b->qp, &limit));
	for (i = 0; i < 600; i++)
		ASSERT_DONE(RUN(bed->a, .op = IBV_WR_RDMA_WRITE, .local = &bed->src,
				.len = 8, .remote = &bed->dst));
	EXPECT_DONE(RUN(bed->b, .op = IBV_WR_RDMA_WRITE, .local = &bed->src, .len = 8,
			.remote = &bed->dst));
}

/* Write @len bytes by @side. Return: packets that its device has sent meanwhile, or -EIO. */
static long long packets_of(struct side *side, struct buf *from, struct buf *to, size_t len)
{
	long long before = statistic("sent_pkts");
	int ret = RUN(side, .op = IBV_WR_RDMA_WRITE, .local = from, .len = len, .remote = to);

	return ret ? -EIO : statistic("sent_pkts") - before;
}

/*
 * What a low rate delays is not lost: each packet asks for an acknowledgment. At a high rate, one
 * asks for many.
 */
TEST_F(wire, a_low_rate_is_no_loss)
{
	const struct pair_opts opts = { .timeout = 19 };	/* 2 s */
	struct ibv_qp_rate_limit_attr limit = {};
	struct buf from = {}, to = {};
	struct bed *bed = self->bed;
	struct pair pair;
	size_t mtu, len;

	mtu = 128 << bed->dev.port.active_mtu;
	len = 5 * mtu;
	ASSERT_OK(buf_open(&from, bed->a->pd, len, 0, 0));
	ASSERT_OK(buf_open(&to, bed->b->pd, len, 0, ACCESS_REMOTE));
	ASSERT_OK(bed_pair_open(bed, &pair, &opts));
	ASSERT_OK(pair_connect(&pair));
	buf_fill(&from, 1);
	limit.rate_limit = len * 8 / 1000;	/* five packets in a second */
	ASSERT_OK(ibv_modify_qp_rate_limit(pair.a.qp, &limit));
	/* more, if the machine is so slow that it takes something for lost */
	EXPECT_LE(5 + 5, packets_of(&pair.a, &from, &to, len));
	EXPECT_EQ(-1, buf_differs(&to, 0, len, 1, 0));
	/* this queue pair is patient */
	EXPECT_EQ(5 + 1, packets_of(bed->a, &from, &to, len));
	EXPECT_OK(pair_close(&pair));
	buf_close(&from);
	buf_close(&to);
}

#define LINK	"vrroute"

/* A device on an interface of its own, and an address handle for a host behind that. */
FIXTURE(route)
{
	struct dev dev;
	struct side side;
	struct buf buf;
};

/*
 * Each test's device has a name of its own: the kernel ends a network namespace, and the device in
 * it, some time after the test that made them.
 */
static int route_links(void)
{
	char name[32], add[96];
	const char *const commands[] = {
		"ip link set lo up", "ip link add " LINK " numtxqueues 2 type dummy",
		"ip addr add 10.1.0.1/24 dev " LINK, "ip link set " LINK " up", add,
	};
	unsigned int i;

	snprintf(name, sizeof(name), "vrnic_route%d", getpid());
	snprintf(add, sizeof(add), "rdma link add %s type vrnic netdev " LINK, name);

	if (unshare(CLONE_NEWNET))
		return -errno;
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (system(commands[i]))
			return -ENODEV;
	return setenv("VRNIC_DEV", name, 1);
}

static union ibv_gid gid_of(const char *ipv4)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	inet_pton(AF_INET, ipv4, &gid.raw[12]);
	return gid;
}

/* An address becomes a GID a little later. */
static int route_gid(struct dev *dev, const char *ipv4)
{
	union ibv_gid wanted = gid_of(ipv4);
	int i, ms;

	for (ms = 0; ms < WAIT_SECONDS * 1000; ms++) {
		for (i = 0; i < 8; i++) {
			if (ibv_query_gid(dev->ctx, 1, i, &dev->gid) ||
			    memcmp(&dev->gid, &wanted, sizeof(wanted)))
				continue;
			dev->gid_index = i;
			return 0;
		}
		usleep(1000);
	}
	return -ETIMEDOUT;
}

FIXTURE_SETUP(route)
{
	struct pair_opts given = { .type = IBV_QPT_UD }, opts = pair_defaults(&given);
	union ibv_gid peer = gid_of("10.1.0.2");

	unsetenv("VRNIC_PEER_DEV");
	unsetenv("VRNIC_GID");
	ASSERT_OK(route_links());
	ASSERT_OK(dev_open(&self->dev));
	ASSERT_OK(route_gid(&self->dev, "10.1.0.1"));
	ASSERT_OK(side_open(&self->side, &self->dev, &opts, false));
	ASSERT_OK(side_connect(&self->side, &opts, 17, &peer));
	ASSERT_OK(buf_open(&self->buf, self->dev.pd, LEN, 0, ACCESS_REMOTE));
}

FIXTURE_TEARDOWN(route)
{
	side_close(&self->side);
	buf_close(&self->buf);
	dev_close(&self->dev);
}

/* Packets that left by the interface. */
static long long link_packets(void)
{
	char line[512];
	long long sent = -1;
	FILE *f = fopen("/proc/self/net/dev", "r");

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, LINK ":"))
			sscanf(strchr(line, ':') + 1, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %lld",
			       &sent);
	if (f)
		fclose(f);
	return sent;
}

static int send_one(struct side *side, struct buf *buf)
{
	return RUN(side, .op = IBV_WR_SEND, .local = buf, .len = 8);
}

TEST_F(route, datagrams_to_one_address_are_routed_once)
{
	long long looked, sent;
	int i;

	ASSERT_DONE(send_one(&self->side, &self->buf));
	looked = statistic("route_lookups");
	sent = link_packets();
	ASSERT_LT(0, looked);
	for (i = 0; i < 100; i++)
		ASSERT_DONE(send_one(&self->side, &self->buf));
	EXPECT_EQ(looked, statistic("route_lookups"));
	EXPECT_LE(sent + 100, link_packets());
}

/* The route is looked up again whenever it may have changed. */
TEST_F(route, datagrams_follow_a_route_that_changes)
{
	long long looked, sent;

	ASSERT_DONE(send_one(&self->side, &self->buf));
	looked = statistic("route_lookups");
	ASSERT_OK(system("ip route add 10.1.0.2/32 dev " LINK));
	ASSERT_DONE(send_one(&self->side, &self->buf));
	EXPECT_EQ(looked + 1, statistic("route_lookups"));
	ASSERT_OK(system("ip link set " LINK " down"));
	sent = link_packets();
	ASSERT_DONE(send_one(&self->side, &self->buf));
	EXPECT_EQ(sent, link_packets());
	ASSERT_OK(system("ip link set " LINK " up"));
	sent = link_packets();
	ASSERT_DONE(send_one(&self->side, &self->buf));
	/* the interface may have had something to say of itself */
	EXPECT_LT(sent, link_packets());
}

/* From now on @side sends to @ipv4. */
static int lead_to(struct side *side, struct dev *dev, const char *ipv4)
{
	struct pair_opts given = { .type = IBV_QPT_UD }, opts = pair_defaults(&given);
	union ibv_gid peer = gid_of(ipv4);
	int ret = side_close(side);

	memset(side, 0, sizeof(*side));
	if (!ret)
		ret = side_open(side, dev, &opts, false);
	return ret ?: side_connect(side, &opts, 17, &peer);
}

/* How often a route was looked up for @n datagrams; -1: they were not sent. */
static long long lookups_of(struct side *side, struct buf *buf, int n)
{
	long long looked = statistic("route_lookups"), sent = link_packets();
	int i;

	for (i = 0; i < n; i++)
		if (send_one(side, buf))
			return -1;
	return link_packets() < sent + n ? -1 : statistic("route_lookups") - looked;
}

/* A route that the network makes for each lookup would be memory that nobody pays for. */
TEST_F(route, a_route_that_the_network_does_not_cache_is_not_kept)
{
	/* a group is not what has the socket opened, so it is not the first */
	static const char *const uncached[] = { "10.9.0.2", "239.1.2.3", "255.255.255.255" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(uncached); i++) {
		ASSERT_OK(lead_to(&self->side, &self->dev, uncached[i]));
		EXPECT_EQ(10, lookups_of(&self->side, &self->buf, 10)) {
			TH_LOG("%s", uncached[i]);
		}
	}
	/* now there is one that it caches */
	ASSERT_OK(system("ip route add 10.9.0.0/16 dev " LINK));
	ASSERT_OK(lead_to(&self->side, &self->dev, uncached[0]));
	EXPECT_EQ(1, lookups_of(&self->side, &self->buf, 10));
}

/* An address handle keeps its route and the route's interface: both can go all the same. */
TEST_F(route, an_interface_goes_whoever_has_sent_by_it)
{
	ASSERT_DONE(send_one(&self->side, &self->buf));
	EXPECT_OK(system("ip link del " LINK));
	EXPECT_EQ(-1, link_packets());
}

#define QUEUES	"/sys/class/net/" LINK "/queues"

/*
 * CPU 0 has the first queue of the interface, and CPU 1 the second. /sys shows the network
 * namespace in which it was mounted, so this has a /sys of its own.
 */
static int queues_of_cpus(void)
{
	return system("unshare -m sh -ec 'mount -t sysfs none /sys;"
		      "echo 1 >" QUEUES "/tx-0/xps_cpus; echo 2 >" QUEUES "/tx-1/xps_cpus'");
}

static int stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* A socket that gets the IPv4 packets that leave by queue @nr of an interface. */
static int queue_open(uint32_t nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_QUEUE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 64),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { ARRAY_SIZE(code), code };
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(LINK),
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)))
		return -errno;
	return fd;
}

/* Return: how many packets of RoCEv2 have come, after the device has sent as many as it has to. */
static int queue_count(int fd, long long sent)
{
	uint8_t packet[64];
	int ms, n = 0;

	for (ms = 0; ms < WAIT_SECONDS * 1000 && statistic("sent_pkts") < sent; ms++)
		usleep(1000);
	while (recv(fd, packet, sizeof(packet), 0) >= 28)
		n += packet[0] == 0x45 && packet[9] == IPPROTO_UDP && packet[22] == 4791 >> 8 &&
		     packet[23] == (4791 & 0xff);
	return n;
}

/*
 * The queues of an interface overtake each other. So while the packets of a queue pair are under
 * way, which they are for ever if there is no peer, they go by one queue, on whichever CPU they are
 * sent.
 */
TEST_F(route, packets_of_a_queue_pair_do_not_overtake_each_other)
{
	struct pair_opts given = { .timeout = 31 }, opts = pair_defaults(&given);
	union ibv_gid peer = gid_of("10.1.0.2");
	struct side side[2] = {};
	long long sent = statistic("sent_pkts");
	int queue[2], i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU has one queue");
	ASSERT_LE(0, sent);
	ASSERT_OK(queues_of_cpus());
	for (i = 0; i < 2; i++) {
		queue[i] = queue_open(i);
		ASSERT_LE(0, queue[i]);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_OK(side_open(&side[i], &self->dev, &opts, false));
		ASSERT_OK(side_connect(&side[i], &opts, 17, &peer));
		ASSERT_OK(stay_on(i));
		ASSERT_OK(POST(&side[i], .op = IBV_WR_SEND, .local = &self->buf, .len = 8));
		EXPECT_EQ(1, queue_count(queue[i], ++sent));
	}
	/* the first queue pair waits for its acknowledgment longer than a queue has to be quiet */
	usleep(100000);
	for (i = 0; i < 8; i++) {
		ASSERT_OK(stay_on(!(i % 2)));
		ASSERT_OK(POST(&side[0], .op = IBV_WR_SEND, .local = &self->buf, .len = 8));
	}
	EXPECT_LT(0, queue_count(queue[0], sent + 8));
	EXPECT_EQ(0, queue_count(queue[1], sent + 8));
	for (i = 0; i < 2; i++) {
		EXPECT_OK(side_close(&side[i]));
		close(queue[i]);
	}
}

/* ---- what tests do to the driver ---- */

static void hold_and_die(int fd)
{
	struct held_param held;
	int ret = param_hold(&held, "force_roce", 1);

	if (write(fd, &ret, sizeof(ret)) == sizeof(ret))
		pause();
	_exit(1);
}

/* A test that is killed, with its process group, leaves no parameter changed. */
TEST(the_end_of_a_test_restores_the_parameter)
{
	long was = module_param("force_roce");
	struct held_param held;
	int fds[2], ret;
	pid_t pid;

	if (was < 0)
		SKIP(return, "%s has no such parameter", dev_name());
	ASSERT_OK(pipe(fds));
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		hold_and_die(fds[1]);
	}
	ASSERT_EQ(sizeof(ret), read(fds[0], &ret, sizeof(ret)));
	ASSERT_OK(ret);
	EXPECT_EQ(1, module_param("force_roce"));
	ASSERT_OK(kill(-pid, SIGKILL));
	/* the next test that holds it finds what was there before */
	ASSERT_OK(param_hold(&held, "force_roce", !was));
	EXPECT_EQ(!was, module_param("force_roce"));
	ASSERT_OK(param_release(&held));
	EXPECT_EQ(was, module_param("force_roce"));
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
}

TEST_HARNESS_MAIN
