// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * scribble -d DEVICE -g GID-INDEX [OPTION...] [SERVER]
 *
 * The client READs memory that its owner, the server, writes to all the time. Both may do so:
 * the client gets old or new bytes, and every READ succeeds. The devices' counters tell whether
 * a READ took longer because an answer was spoiled on its way. The test needs
 * a wire on which packets are under way for longer than a write takes.
 *
 *   -n READS (2000)  -s BYTES (65536)  -w WINDOW (8)  -m PATH-MTU (1024)
 *   -u TIMEOUT-EXPONENT (14)  -l SECONDS that it may take (50)  -p PORT (18601)
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "stress.h"

static struct options opt = {
	.mtu = 1024, .ops = 2000, .max_size = 65536, .window = 8, .timeout = 14,
	.limit = 50, .port = 18601,
};

static struct host host;
static volatile int done;

static void *write_all_the_time(void *unused)
{
	unsigned int value = 0;

	while (!done) {
		memset(host.data, value++, host.data_len);
		/* the only CPU may be needed */
		usleep(200);
	}
	return unused;
}

static void server(void)
{
	pthread_t writer;

	if (pthread_create(&writer, NULL, write_all_the_time, NULL))
		die("cannot make a thread");
	host_meet(&host);
	done = 1;
	pthread_join(writer, NULL);
}

static void post_read(unsigned int n)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)host.data, .length = opt.max_size, .lkey = host.data_mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = host.peer.data, .rkey = host.peer.data_rkey },
	};

	if (ibv_post_send(host.qp, &wr, &bad))
		die("cannot post READ %u", n);
}

static void complete_read(unsigned int n)
{
	struct ibv_wc wc;
	int ret;

	while (!(ret = ibv_poll_cq(host.scq, 1, &wc)))
		;
	if (ret < 0 || wc.wr_id != n)
		die("READ %u has no completion", n);
	if (wc.status != IBV_WC_SUCCESS)
		die("READ %u ended with: %s", n, ibv_wc_status_str(wc.status));
}

static void client(void)
{
	unsigned int posted = 0, torn = 0, n;

	for (n = 0; n < opt.ops; n++) {
		while (posted < opt.ops && posted < n + opt.window)
			post_read(posted++);
		complete_read(n);
		torn += host.data[0] != host.data[opt.max_size - 1];
	}
	printf("all of %u READs succeeded, and %u met a writer\n", opt.ops, torn);
	host_meet(&host);
}

static void too_long(int signal)
{
	static const char text[] = "scribble: it takes too long\n";

	(void)signal;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

static unsigned int *option(int letter)
{
	switch (letter) {
	case 'n': return &opt.ops;
	case 's': return &opt.max_size;
	case 'w': return &opt.window;
	case 'm': return &opt.mtu;
	case 'u': return &opt.timeout;
	case 'l': return &opt.limit;
	case 'p': return &opt.port;
	}
	die("usage: scribble -d DEVICE -g GID-INDEX [OPTION...] [SERVER]; options: see scribble.c");
}

static void parse(int argc, char **argv)
{
	int letter;

	opt.gid_index = -1;
	while ((letter = getopt(argc, argv, "d:g:n:s:w:m:u:l:p:")) != -1) {
		if (letter == 'd')
			opt.device = optarg;
		else if (letter == 'g')
			opt.gid_index = atoi(optarg);
		else
			*option(letter) = strtoul(optarg, NULL, 0);
	}
	if (optind < argc)
		opt.host = argv[optind];
	if (!opt.device || opt.gid_index < 0 || !opt.max_size || !opt.window)
		option(0);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	signal(SIGALRM, too_long);
	alarm(opt.limit);
	host_open(&host, &opt, opt.max_size, 8);
	host_connect(&host, &opt);
	if (opt.host)
		client();
	else
		server();
	host_close(&host);
	return 0;
}
