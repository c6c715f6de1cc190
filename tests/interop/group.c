// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * group -d DEVICE -g GID-INDEX -G GROUP [-n DATAGRAMS] [-p PORT] [SERVER]
 * group -d DEVICE -g GID-INDEX -G GROUP -m
 *
 * UD multicast between hosts. The server joins GROUP with two queue pairs and has
 * a third one that does not; the client sends datagrams to the group, waits, then
 * sends more after the server has left. Every member gets each datagram once,
 * byte by byte; nobody else gets any, and after leaving nobody does.
 *
 * With -m, one queue pair joins GROUP and those behind it until it is refused, or has
 * joined 256. Prints how many these were.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define QKEY		0x11111111
#define GRH		40
#define LEN		1000
#define SLOT		2048
#define DEPTH		64
#define MEMBERS		2
#define QPS		(MEMBERS + 1)
#define GROUP_QPN	0xffffff

#define die(...)							\
	do {								\
		fprintf(stderr, "group: " __VA_ARGS__);			\
		fputc('\n', stderr);					\
		exit(1);						\
	} while (0)

static const char *device, *group_name, *server;
static int gid_index = -1, port = 18601;
static unsigned int count = 32;

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cqs[QPS];
static struct ibv_qp *qps[QPS];
static struct ibv_mr *mr;
static uint8_t memory[QPS][DEPTH][SLOT];
static union ibv_gid group;

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			ctx = ibv_open_device(list[i]);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!mr)
		die("cannot open %s: %s", device, strerror(errno));
	ibv_free_device_list(list);
}

static void set_group(void)
{
	memset(&group, 0, sizeof(group));
	if (inet_pton(AF_INET6, group_name, group.raw) == 1)
		return;
	if (inet_pton(AF_INET, group_name, group.raw + 12) != 1)
		die("%s is no address", group_name);
	memset(group.raw + 10, 0xff, 2);
}

static void open_qp(int i)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .sq_sig_all = 1,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	int err;

	cqs[i] = ibv_create_cq(ctx, 2 * DEPTH, NULL, NULL, 0);
	init.send_cq = cqs[i];
	init.recv_cq = cqs[i];
	qps[i] = cqs[i] ? ibv_create_qp(pd, &init) : NULL;
	if (!qps[i])
		die("no queue pair: %s", strerror(errno));
	err = ibv_modify_qp(qps[i], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	err |= ibv_modify_qp(qps[i], &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	err |= ibv_modify_qp(qps[i], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err)
		die("queue pair does not become RTS");
}

static struct ibv_sge sge_of(int i, unsigned int slot, unsigned int len)
{
	return (struct ibv_sge){ (uintptr_t)memory[i][slot % DEPTH], len, mr->lkey };
}

static void post_receives(int i)
{
	struct ibv_recv_wr *bad, wr = { .num_sge = 1 };
	struct ibv_sge sge;

	for (wr.wr_id = 0; wr.wr_id < DEPTH; wr.wr_id++) {
		sge = sge_of(i, wr.wr_id, SLOT);
		wr.sg_list = &sge;
		if (ibv_post_recv(qps[i], &wr, &bad))
			die("cannot post a receive");
	}
}

static void fill(uint8_t *to, unsigned int number)
{
	unsigned int i;

	for (i = 0; i < LEN; i++)
		to[i] = number * 31 + i;
}

/* poll: the next completion of @i within @ms; 0: none came. */
static int poll(int i, int ms, struct ibv_wc *wc)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	int n;

	while ((n = ibv_poll_cq(cqs[i], 1, wc)) == 0 && ms--)
		nanosleep(&pause, NULL);
	if (n < 0 || (n && wc->status != IBV_WC_SUCCESS))
		die("queue pair %d: %s", i, n < 0 ? "queue failed" : ibv_wc_status_str(wc->status));
	return n;
}

static void check(int i, const struct ibv_wc *wc, unsigned int number)
{
	uint8_t want[LEN], *seen = memory[i][wc->wr_id];

	fill(want, number);
	if (wc->byte_len != LEN + GRH || memcmp(seen + GRH, want, LEN))
		die("member %d: datagram %u is not what was sent", i, number);
	/* where it went: an IPv4 header lies in the last 20 bytes */
	if (memcmp(seen + 24 + (group.raw[0] ? 0 : 12), group.raw + (group.raw[0] ? 0 : 12),
		   group.raw[0] ? 16 : 4))
		die("member %d: datagram %u says that it went elsewhere", i, number);
}

static void nothing_more(void)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < QPS; i++)
		if (poll(i, 100, &wc))
			die("queue pair %d: a datagram too many", i);
}

static int listen_once(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int one = 1, fd = socket(AF_INET6, SOCK_STREAM, 0), peer;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 1))
		die("cannot listen: %s", strerror(errno));
	peer = accept(fd, NULL, NULL);
	close(fd);
	return peer;
}

static int call(void)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM }, *found;
	char name[8];
	int fd;

	snprintf(name, sizeof(name), "%d", port);
	if (getaddrinfo(server, name, &hint, &found))
		die("%s: no such host", server);
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (connect(fd, found->ai_addr, found->ai_addrlen))
		die("cannot connect: %s", strerror(errno));
	freeaddrinfo(found);
	return fd;
}

static void meet(int fd)
{
	char byte = 0;

	if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || recv(fd, &byte, 1, 0) != 1)
		die("the peer is gone");
}

static void receive(void)
{
	struct ibv_wc wc;
	unsigned int n;
	int i, fd;

	for (i = 0; i < QPS; i++) {
		open_qp(i);
		post_receives(i);
		if (i < MEMBERS && ibv_attach_mcast(qps[i], &group, 0))
			die("cannot join %s: %s", group_name, strerror(errno));
	}
	fd = listen_once();
	meet(fd);
	meet(fd);
	for (i = 0; i < MEMBERS; i++) {
		for (n = 0; n < count; n++) {
			if (!poll(i, 2000, &wc))
				die("member %d: datagram %u did not come", i, n);
			check(i, &wc, n);
		}
	}
	nothing_more();
	for (i = 0; i < MEMBERS; i++)
		if (ibv_detach_mcast(qps[i], &group, 0))
			die("cannot leave");
	meet(fd);
	meet(fd);
	nothing_more();
	meet(fd);
	printf("%u datagrams came to each of %d members, to nobody else, and none later\n",
	       count, MEMBERS);
}

static void send_all(struct ibv_ah *ah)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {
		.num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah, .remote_qpn = GROUP_QPN, .remote_qkey = QKEY },
	};
	struct ibv_wc wc;
	unsigned int n;

	for (n = 0; n < count; n++) {
		fill(memory[0][0], n);
		sge = sge_of(0, 0, LEN);
		wr.sg_list = &sge;
		if (ibv_post_send(qps[0], &wr, &bad) || !poll(0, 2000, &wc))
			die("datagram %u cannot be sent", n);
	}
}

static void transmit(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = group, .sgid_index = gid_index, .hop_limit = 1 },
	};
	struct ibv_ah *ah;
	int fd = call();

	open_qp(0);
	ah = ibv_create_ah(pd, &attr);
	if (!ah)
		die("no address handle: %s", strerror(errno));
	meet(fd);
	send_all(ah);
	meet(fd);
	meet(fd);
	send_all(ah);
	meet(fd);
	meet(fd);
	ibv_destroy_ah(ah);
	printf("sent %u datagrams to %s, twice\n", count, group_name);
}

static void join_many(void)
{
	uint8_t first = group.raw[15];
	int n;

	open_qp(0);
	for (n = 0; n < 256; n++) {
		group.raw[15] = first + n;
		if (ibv_attach_mcast(qps[0], &group, 0))
			break;
	}
	printf("%d\n", n);
}

int main(int argc, char **argv)
{
	bool many = false;
	int letter;

	while ((letter = getopt(argc, argv, "d:g:G:n:p:m")) != -1) {
		switch (letter) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 'G':
			group_name = optarg;
			break;
		case 'm':
			many = true;
			break;
		case 'n':
			count = atoi(optarg);
			break;
		case 'p':
			port = atoi(optarg);
			break;
		default:
			device = NULL;
		}
	}
	if (optind < argc)
		server = argv[optind];
	if (!device || gid_index < 0 || !group_name || count > DEPTH)
		die("usage: see group.c");
	open_all();
	set_group();
	if (many)
		join_many();
	else if (server)
		transmit();
	else
		receive();
	return 0;
}
