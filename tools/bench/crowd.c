// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * crowd [--seconds S]: messages of one context to 64 others, which another process reads, on the
 * device $VRNIC_PEER_DEV, or on this one. One of them is not read any more: first with nothing to
 * read, then with as many messages as it has room for, and some more. What do the other 63 keep of
 * their rate? Prints "name endpoints Mops value" lines.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <vrnic.h>
#include <vrnic_group.h>

#define CROWD	64
#define SLOTS	512		/* of each reception FIFO: messages of one slot take two */
#define WAITING	(SLOTS / 2 + 16)
#define WORD	1		/* messages: nothing; do not read the first context any more */
#define STOP	2

static struct vrnic_address address[CROWD];
static struct vrnic_endpoint *to[CROWD];
static struct vrnic_context *context;
static struct vrnic_counter *counter;

static void check(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void nothing(struct vrnic_context *at, const struct vrnic_message *message, void *arg)
{
	(void)at;
	(void)message;
	(void)arg;
}

static void stop(struct vrnic_context *at, const struct vrnic_message *message, void *arg)
{
	(void)at;
	(void)message;
	*(unsigned int *)arg = 1;
}

/* The readers. */
static void run_peer(const char *device, int sock)
{
	struct vrnic_context_attr attr = { .receive_slots = SLOTS };
	struct vrnic_context *at[CROWD];
	struct vrnic_client *client;
	unsigned int i, first = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	check(vrnic_client_open(device, &client), "vrnic_client_open");
	for (i = 0; i < CROWD; i++) {
		check(vrnic_context_create(client, &attr, &at[i]), "vrnic_context_create");
		check(vrnic_dispatch_set(at[i], WORD, nothing, NULL), "vrnic_dispatch_set");
		check(vrnic_dispatch_set(at[i], STOP, stop, &first), "vrnic_dispatch_set");
		vrnic_context_address(at[i], &address[i]);
	}
	if (write(sock, address, sizeof(address)) != sizeof(address))
		check(-errno, "write");
	for (;;)
		check(vrnic_advance_contexts_wait(at + first, CROWD - first, 16,
						  VRNIC_NO_TIMEOUT), "vrnic_advance_contexts_wait");
}

static void say(unsigned int k, uint32_t id, const struct vrnic_done *done)
{
	const uint64_t word = k;
	const struct vrnic_send_wr wr = { .id = id, .data = &word, .length = sizeof(word) };
	int ret;

	while ((ret = vrnic_send(to[k], &wr, done)) == -EAGAIN)
		vrnic_advance(context, 0);
	check(ret, "vrnic_send");
}

/* A message to each endpoint from @first on, round after round. Return: million per second. */
static double rate(unsigned int first, double seconds)
{
	const struct vrnic_done done = { .remote = counter };
	uint64_t begin = now_ns(), ns, n = 0;
	unsigned int k;

	do {
		for (k = first; k < CROWD; k++)
			say(k, WORD, &done);
		check(vrnic_counter_wait(counter, 0, VRNIC_NO_TIMEOUT), "a message failed");
		n += CROWD - first;
		ns = now_ns() - begin;
	} while (ns < seconds * 1e9);
	return 1000.0 * n / ns;
}

int main(int argc, char **argv)
{
	const char *device = getenv("VRNIC_DEV"), *theirs = getenv("VRNIC_PEER_DEV");
	double seconds = argc > 2 ? atof(argv[2]) : 0.5;
	struct vrnic_client *client;
	unsigned int k;
	int sock[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		check(-errno, "socketpair");
	pid = fork();
	check(pid < 0 ? -errno : 0, "fork");
	if (!pid)
		run_peer(theirs ? theirs : device, sock[1]);
	check(vrnic_client_open(device, &client), "vrnic_client_open");
	check(vrnic_context_create(client, &(struct vrnic_context_attr){ .inject_slots = 4096 },
				   &context), "vrnic_context_create");
	check(vrnic_counter_create(client, 0, &counter), "vrnic_counter_create");
	if (recv(sock[0], address, sizeof(address), MSG_WAITALL) != sizeof(address))
		check(-EPIPE, "the other process");
	for (k = 0; k < CROWD; k++)
		check(vrnic_endpoint_create(context, &address[k], &to[k]),
		      "vrnic_endpoint_create");
	rate(0, seconds / 4);
	say(1, STOP, NULL);
	rate(1, seconds / 4);
	printf("crowd\t%u\tMops\t%.6g\n", CROWD - 1, rate(1, seconds));
	for (k = 0; k < WAITING; k++)
		say(0, WORD, NULL);
	rate(1, seconds / 4);
	printf("crowd_one_stopped\t%u\tMops\t%.6g\n", CROWD - 1, rate(1, seconds));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
