// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * paced -d DEVICE -n SENDERS [OPTION...]
 * paced -d DEVICE [OPTION...] TARGET
 *
 * Several hosts offer messages to one, which accepts each of them: transfers that pace themselves
 * (S4). Each sender always has two offers out. How much does the target get of each sender? The
 * target prints for each sender the bytes that landed in the time that counts, and in all
 *   paced: SENDERS senders, BYTES bytes in SECONDS s, Jain INDEX
 *
 *   -D SECONDS that count (5)  -W SECONDS before that (1)  -s BYTES of a message (1048576)
 *   -l SECONDS that it may take (60)  -p PORT (18600)
 */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <vrnic.h>
#include <vrnic_rts.h>

#define OFFERS	2	/* of a sender at a time */
#define MAX	250

#define die(...)							\
	do {								\
		fflush(stdout);						\
		fprintf(stderr, "paced: " __VA_ARGS__);			\
		fputc('\n', stderr);					\
		exit(1);						\
	} while (0)

/* Die if a call of the library fails. */
#define must(call)							\
	do {								\
		int ret_ = (call);					\
									\
		if (ret_ < 0)						\
			die("%s: %s", #call, strerror(-ret_));		\
	} while (0)

static const char *device, *target;
static unsigned int senders, duration = 5, warm_up = 1, size = 1 << 20, limit = 60, port = 18600;

static struct vrnic_client *client;
static struct vrnic_context *context;

/* The other end: of each sender, the target has one. */
struct peer {
	int fd;
	struct vrnic_endpoint *ep;
	struct vrnic_counter *counter;	/* what of the accepted messages is still to come */
	struct ibv_mr *mr;
	uint64_t accepted;
	uint64_t ended;
	uint64_t before;
};

static struct peer peers[MAX];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* What has come within @ns. */
static void advance(uint64_t ns)
{
	int ret = vrnic_advance_wait(context, 64, ns);

	if (ret != -ETIME)
		must(ret);
}

static uint64_t word(size_t place)
{
	return (place + 1) * 0x9e3779b97f4a7c15ULL;
}

static struct ibv_mr *memory(void)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = NULL;

	if (map != MAP_FAILED)
		mr = ibv_reg_mr(vrnic_client_pd(client), map, size, access);
	if (!mr)
		die("%u bytes cannot be registered", size);
	return mr;
}

/* ---- the socket ---- */

static int listen_at(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int one = 1, fd = socket(AF_INET6, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, MAX))
		die("cannot listen: %s", strerror(errno));
	return fd;
}

static int call(void)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM }, *found;
	char name[8];
	int fd;

	snprintf(name, sizeof(name), "%u", port);
	if (getaddrinfo(target, name, &hint, &found))
		die("%s: no such host", target);
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (connect(fd, found->ai_addr, found->ai_addrlen))
		die("cannot connect: %s", strerror(errno));
	freeaddrinfo(found);
	return fd;
}

static void say(int fd)
{
	if (send(fd, "", 1, MSG_NOSIGNAL) != 1)
		die("the peer is gone");
}

static void hear(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, 0) != 1)
		die("the peer is gone");
}

/* Swap addresses, and make the endpoint for the other end. */
static void meet(struct peer *p)
{
	struct vrnic_address mine, its;

	vrnic_context_address(context, &mine);
	if (send(p->fd, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine) ||
	    recv(p->fd, &its, sizeof(its), MSG_WAITALL) != sizeof(its))
		die("the peer is gone");
	must(vrnic_endpoint_create(context, &its, &p->ep));
}

/* ---- senders ---- */

static bool over;

static void offer(struct peer *p);

/* A transfer fails because the target has ended, or the target sees the failure, too. */
static void taken(struct vrnic_context *ctx, const struct vrnic_status *status, void *arg)
{
	(void)ctx;
	if (status->status)
		over = true;
	else
		offer(arg);
}

static void offer(struct peer *p)
{
	struct vrnic_rts_wr wr = { .local = p->mr->addr, .mr = p->mr, .length = size };
	struct vrnic_done done = { .callback = taken, .arg = p, .flags = VRNIC_QUEUE };

	must(vrnic_rts_send(p->ep, &wr, &done));
}

static void send_all(void)
{
	struct peer *p = &peers[0];
	uint64_t *words;
	unsigned int i;
	char byte;

	p->fd = call();
	p->mr = memory();
	words = p->mr->addr;
	for (i = 0; i < size / sizeof(*words); i++)
		words[i] = word(i);
	meet(p);
	say(p->fd);
	hear(p->fd);
	for (i = 0; i < OFFERS; i++)
		offer(p);
	while (!over && recv(p->fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		advance(10000000);
}

/* ---- the target ---- */

static void landed(struct vrnic_context *ctx, const struct vrnic_status *status, void *arg)
{
	struct peer *p = arg;

	(void)ctx;
	if (status->status)
		die("a transfer failed: %s (%s)", ibv_wc_status_str(status->status),
		    vrnic_vendor_err_str(status->vendor_err));
	p->ended++;
}

static void offered(struct vrnic_context *ctx, const struct vrnic_rts *rts, const void *header,
		    size_t header_len, void *arg)
{
	struct vrnic_done done = { .callback = landed, .flags = VRNIC_QUEUE };
	struct vrnic_accept_wr wr = {};
	struct vrnic_endpoint *ep;
	unsigned int i = 0;

	(void)header, (void)header_len, (void)arg;
	must(vrnic_endpoint_of(ctx, &rts->peer, &ep));
	while (peers[i].ep != ep)
		i++;
	wr.local = peers[i].mr->addr;
	wr.mr = peers[i].mr;
	done.local = peers[i].counter;
	done.arg = &peers[i];
	must(vrnic_accept(ep, rts, &wr, &done));
	peers[i].accepted += rts->length;
}

static uint64_t landed_of(const struct peer *p)
{
	return p->accepted - vrnic_counter_read(p->counter);
}

static void advance_until(double end)
{
	while (now() < end)
		advance(1000000);
}

static void report(double took)
{
	double sum = 0, squares = 0, got;
	unsigned int i;

	for (i = 0; i < senders; i++) {
		got = landed_of(&peers[i]) - peers[i].before;
		printf("flow %u: %.0f bytes\n", i, got);
		sum += got;
		squares += got * got;
	}
	if (!sum)
		die("nothing has landed");
	printf("paced: %u senders, %.0f bytes in %.3f s, Jain %.4f\n", senders, sum, took,
	       sum * sum / (senders * squares));
}

/* All messages are the same, so one that has ended says what the memory has. */
static void check(void)
{
	const uint64_t *words;
	unsigned int i, k;

	for (i = 0; i < senders; i++) {
		words = peers[i].mr->addr;
		for (k = 0; peers[i].ended && k < size / sizeof(*words); k++)
			if (words[k] != word(k))
				die("sender %u: word %u is wrong", i, k);
	}
}

static void receive_all(void)
{
	int fd = listen_at();
	unsigned int i;
	double start;

	for (i = 0; i < senders; i++) {
		peers[i].mr = memory();
		must(vrnic_counter_create(client, 0, &peers[i].counter));
	}
	must(vrnic_rts_handler_set(context, offered, NULL));
	for (i = 0; i < senders; i++) {
		peers[i].fd = accept(fd, NULL, NULL);
		meet(&peers[i]);
		hear(peers[i].fd);
	}
	for (i = 0; i < senders; i++)
		say(peers[i].fd);
	advance_until(now() + warm_up);
	for (i = 0; i < senders; i++)
		peers[i].before = landed_of(&peers[i]);
	start = now();
	advance_until(start + duration);
	report(now() - start);
	check();
}

/* ---- the program ---- */

static void too_long(int signal)
{
	static const char text[] = "paced: not over in time\n";

	(void)signal;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

static unsigned int *option(int letter)
{
	switch (letter) {
	case 'n': return &senders;
	case 'D': return &duration;
	case 'W': return &warm_up;
	case 's': return &size;
	case 'l': return &limit;
	case 'p': return &port;
	}
	die("usage: paced -d DEVICE -n SENDERS | TARGET [OPTION...]; options: see paced.c");
	return NULL;
}

static void parse(int argc, char **argv)
{
	int letter;

	while ((letter = getopt(argc, argv, "d:n:D:W:s:l:p:")) != -1) {
		if (letter == 'd')
			device = optarg;
		else
			*option(letter) = strtoul(optarg, NULL, 0);
	}
	if (optind < argc)
		target = argv[optind];
	if (!device || !target == !senders || senders > MAX || size < sizeof(uint64_t))
		option('?');
}

int main(int argc, char **argv)
{
	struct vrnic_context_attr attr = { .inject_slots = 4096, .receive_slots = 4096 };

	parse(argc, argv);
	signal(SIGALRM, too_long);
	alarm(limit);
	must(vrnic_client_open(device, &client));
	must(vrnic_context_create(client, &attr, &context));
	if (target)
		send_all();
	else
		receive_all();
	/* what is under way may end in error: nobody looks any more */
	return 0;
}
