// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * flood -d DEVICE -g GID-INDEX [OPTION...] [SERVER]
 *
 * Many RC queue pairs of one host WRITE to another host, each as fast as it may:
 * how much of the wire does each get? The client prints for each queue pair the bytes
 * that were acknowledged in the time that counts, and in all
 *   flood: FLOWS flows, BYTES bytes in SECONDS s, Jain INDEX
 *
 *   -n FLOWS (16)  -D SECONDS that count (4)  -W SECONDS before that (1)
 *   -T SECONDS on the monotonic clock, when they begin to count: the same for several
 *      clients, which are connected before the first of them sends
 *   -s BYTES of a WRITE (16384)  -m PATH-MTU (1024)  -u TIMEOUT-EXPONENT (17)
 *   -r LIMIT of each in kbit/s, by the verb (0: none)
 *   -l SECONDS that it may take (50)  -p PORT (18600)
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stress.h"

#define DEPTH	8	/* WRITEs that are posted at once */
#define MAX	64

static struct options opt = {
	.mtu = 1024, .ops = 16, .max_size = 16384, .window = DEPTH,
	.timeout = 17, .limit = 50, .port = 18600,
};

static unsigned int duration = 4, warm_up = 1, begin, rate;
static struct host host[MAX];
static unsigned long long bytes[MAX];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void refill(struct host *h)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)h->data, .length = opt.max_size,
		.lkey = h->data_mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {
			.remote_addr = h->peer.data, .rkey = h->peer.data_rkey,
		},
	};

	if (ibv_post_send(h->qp, &wr, &bad))
		die("cannot post a WRITE");
}

/* What is complete of flow @i is posted anew. Returns how much that was. */
static unsigned int turn(unsigned int i)
{
	struct ibv_wc wc[DEPTH];
	int n = ibv_poll_cq(host[i].scq, DEPTH, wc), k;

	if (n < 0)
		die("flow %u: its completion queue failed", i);
	for (k = 0; k < n; k++) {
		if (wc[k].status != IBV_WC_SUCCESS)
			die("flow %u: %s", i, ibv_wc_status_str(wc[k].status));
		bytes[i] += opt.max_size;
		refill(&host[i]);
	}
	return n;
}

static void sleep_until(double start)
{
	struct timespec nap = { .tv_nsec = 1000000 };

	while (now() < start)
		nanosleep(&nap, NULL);
}

static void run_until(double end)
{
	struct timespec nap = { .tv_nsec = 1000000 };
	unsigned int i, done;

	while (now() < end) {
		for (done = 0, i = 0; i < opt.ops; i++)
			done += turn(i);
		if (!done)
			nanosleep(&nap, NULL);
	}
}

static void report(double took)
{
	double sum = 0, squares = 0;
	unsigned int i;

	for (i = 0; i < opt.ops; i++) {
		printf("flow %u: %llu bytes\n", i, bytes[i]);
		sum += bytes[i];
		squares += (double)bytes[i] * bytes[i];
	}
	if (!sum)
		die("nothing was acknowledged");
	printf("flood: %u flows, %.0f bytes in %.3f s, Jain %.4f\n", opt.ops,
	       sum, took, sum * sum / (opt.ops * squares));
}

static void set_rate(struct host *h)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = rate };

	if (rate && ibv_modify_qp_rate_limit(h->qp, &limit))
		die("the rate limit is refused");
}

static void client(void)
{
	double start = begin ? begin - (double)warm_up : now();
	unsigned int i, k;

	if (begin && start < now())
		die("it is too late to begin at %.0f s", start);
	sleep_until(start);
	for (i = 0; i < opt.ops; i++) {
		set_rate(&host[i]);
		for (k = 0; k < DEPTH; k++)
			refill(&host[i]);
	}
	run_until(start + warm_up);
	memset(bytes, 0, sizeof(bytes));
	start = now();
	run_until(start + duration);
	report(now() - start);
}

static void too_long(int signal)
{
	static const char text[] = "flood: not over in time\n";

	(void)signal;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

static unsigned int *option(int letter)
{
	switch (letter) {
	case 'n': return &opt.ops;
	case 'D': return &duration;
	case 'W': return &warm_up;
	case 'T': return &begin;
	case 's': return &opt.max_size;
	case 'm': return &opt.mtu;
	case 'u': return &opt.timeout;
	case 'r': return &rate;
	case 'l': return &opt.limit;
	case 'p': return &opt.port;
	}
	die("usage: flood -d DEVICE -g GID-INDEX [OPTION...] [SERVER]; options: see flood.c");
	return NULL;
}

static void parse(int argc, char **argv)
{
	int letter;

	opt.gid_index = -1;
	while ((letter = getopt(argc, argv, "d:g:n:D:W:T:s:m:u:r:l:p:")) != -1) {
		if (letter == 'd')
			opt.device = optarg;
		else if (letter == 'g')
			opt.gid_index = atoi(optarg);
		else
			*option(letter) = strtoul(optarg, NULL, 0);
	}
	if (optind < argc)
		opt.host = argv[optind];
	if (!opt.device || opt.gid_index < 0 || !opt.max_size || !opt.ops ||
	    opt.ops > MAX)
		option('?');
}

int main(int argc, char **argv)
{
	unsigned int i;

	parse(argc, argv);
	signal(SIGALRM, too_long);
	alarm(opt.limit);
	for (i = 0; i < opt.ops; i++) {
		host_open(&host[i], &opt, opt.max_size, 8);
		host_connect(&host[i], &opt);
	}
	if (opt.host)
		client();
	/* the last flow's socket is the one that the client closes last */
	for (i = 0; i < opt.ops; i++)
		host_meet(&host[i]);
	/* what is under way may end in error: nobody looks any more */
	for (i = 0; i < opt.ops; i++)
		host_close(&host[i]);
	return 0;
}
