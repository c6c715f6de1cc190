// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "native_util.h"

bool native_device(void)
{
	return !strncmp(dev_name(), "vrnic", 5);
}

int scaled(int n)
{
	const char *bed = getenv("VRNIC_BED");

	/* uml-debug, and debug, which is emulated into the bargain */
	if (!bed || !strstr(bed, "debug"))
		return n;
	return n < 10 ? 1 : n / 10;
}

uint64_t rng_next(struct rng *rng)
{
	rng->state = rng->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (rng->state >> 29) ^ rng->state;
}

uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return n ? (rng_next(rng) >> 8) % n : 0;
}

void rng_fill(struct rng *rng, void *data, size_t len)
{
	uint64_t word;
	size_t at, n;

	for (at = 0; at < len; at += n) {
		word = rng_next(rng);
		n = len - at < sizeof(word) ? len - at : sizeof(word);
		memcpy((uint8_t *)data + at, &word, n);
	}
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

uint64_t cpu_step_ns(void)
{
	uint64_t start = cpu_ns(), now;

	do
		now = cpu_ns();
	while (now == start);
	return now - start;
}

static int node_build(struct node *node, size_t len,
		      const struct vrnic_context_attr *attr)
{
	int ret = vrnic_context_create(node->client, attr ? attr : CONTEXT(),
				       &node->context);

	if (!ret)
		ret = vrnic_counter_create(node->client, 0, &node->counter);
	if (!ret)
		ret = vrnic_counter_create(node->client, VRNIC_COUNTER_PEERS,
					   &node->open);
	if (!ret)
		ret = buf_open(&node->buf, vrnic_client_pd(node->client), len,
			       0, ACCESS_REMOTE);
	return ret;
}

int node_open(struct node *node, size_t len,
	      const struct vrnic_context_attr *attr)
{
	int ret = 0;

	if (!node->client) {
		ret = vrnic_client_open(dev_name(), &node->client);
		node->own_client = !ret;
	}
	if (!ret)
		ret = node_build(node, len, attr);
	if (ret)
		node_close(node);
	return ret;
}

/* Keep the first error, go on with the rest. */
static void keep(int *first, int ret)
{
	if (!*first)
		*first = ret;
}

int node_close(struct node *node)
{
	int ret = 0;

	if (node->to)
		keep(&ret, vrnic_endpoint_destroy(node->to));
	if (node->context)
		keep(&ret, vrnic_context_destroy(node->context));
	if (node->open)
		keep(&ret, vrnic_counter_destroy(node->open));
	if (node->counter)
		keep(&ret, vrnic_counter_destroy(node->counter));
	if (node->buf.map && !buf_guards_intact(&node->buf))
		keep(&ret, -EFAULT);
	buf_close(&node->buf);
	if (node->own_client)
		keep(&ret, vrnic_client_close(node->client));
	memset(node, 0, sizeof(*node));
	return ret;
}

struct node_info node_info(const struct node *node)
{
	struct node_info info;

	memset(&info, 0, sizeof(info));
	vrnic_context_address(node->context, &info.address);
	info.addr = (uintptr_t)node->buf.addr;
	info.rkey = node->buf.mr->rkey;
	info.counter = vrnic_counter_number(node->open);
	return info;
}

int node_join(struct node *node, const struct node_info *peer)
{
	node->peer = *peer;
	return vrnic_endpoint_create(node->context, &peer->address, &node->to);
}

int node_meet(struct node *node, int fd)
{
	struct node_info mine = node_info(node), peer;
	int ret;

	if (send(fd, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine) ||
	    recv(fd, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer))
		return -EPIPE;
	ret = node_join(node, &peer);
	if (!ret)
		ret = say(fd);
	return ret ? ret : hear(fd);
}

int nbed_open(struct nbed *bed, size_t len,
	      const struct vrnic_context_attr *attr)
{
	struct node_info info;
	int ret = node_open(&bed->a, len, attr);

	other_side();
	if (!ret)
		ret = node_open(&bed->b, len, attr);
	other_side();
	if (ret)
		return ret;
	info = node_info(&bed->b);
	ret = node_join(&bed->a, &info);
	info = node_info(&bed->a);
	return ret ? ret : node_join(&bed->b, &info);
}

int nbed_close(struct nbed *bed)
{
	int ret = node_close(&bed->a);

	keep(&ret, node_close(&bed->b));
	return ret;
}

int nbed_put(struct nbed *bed, size_t from, size_t to, size_t len,
	     const struct vrnic_done *done)
{
	struct node *a = &bed->a;

	return vrnic_put(a->to, WR(.local = a->buf.addr + from, .mr = a->buf.mr, .length = len,
				   .remote = a->peer.addr + to, .rkey = a->peer.rkey), done);
}

int nbed_get(struct nbed *bed, size_t to, size_t from, size_t len,
	     const struct vrnic_done *done)
{
	struct node *a = &bed->a;

	return vrnic_get(a->to, WR(.local = a->buf.addr + to, .mr = a->buf.mr, .length = len,
				   .remote = a->peer.addr + from, .rkey = a->peer.rkey), done);
}

bool nbed_arrived(const struct nbed *bed, uint32_t seed, size_t from,
		  size_t to, size_t len)
{
	return buf_differs(&bed->b.buf, to, len, seed, from) < 0;
}

void tell(struct vrnic_context *context, const struct vrnic_status *status,
	  void *arg)
{
	struct told *told = arg;

	told->status = *status;
	told->count++;
}

/* Nothing was there: the peer or the engine may need the only CPU. */
static void let_others(int looks)
{
	if (looks > 3)
		usleep(looks < 200 ? 20 : 2000);
}

static int until(struct vrnic_context *one, struct vrnic_context *other,
		 const int *count, int n)
{
	struct patience p = {};
	int ret, looks = 0;

	while (*(volatile const int *)count < n) {
		ret = vrnic_advance(one, 1000);
		if (ret >= 0 && other)
			ret += vrnic_advance(other, 1000);
		if (ret < 0)
			return ret;
		looks = ret ? 0 : looks + 1;
		let_others(looks);
		if (!still_patient(&p, *(volatile const int *)count))
			return -ETIMEDOUT;
	}
	return 0;
}

int advance_until(struct vrnic_context *context, const int *count, int n)
{
	return until(context, NULL, count, n);
}

int nbed_until(struct nbed *bed, const int *count, int n)
{
	return until(bed->a.context, bed->b.context, count, n);
}

int node_fill(struct node *node, size_t bytes, const struct vrnic_done *done)
{
	static uint8_t data[VRNIC_MAX_MESSAGE];
	const struct vrnic_send_wr wr = { .id = 1, .data = data, .length = bytes };
	int n = 0, refused = 0;

	while (n < 1000 && refused < 30) {
		if (!vrnic_send(node->to, &wr, done)) {
			n++;
			refused = 0;
			continue;
		}
		refused++;
		usleep(5000);
	}
	return n < 1000 ? n : -1;
}

int counter_done(struct vrnic_counter *counter)
{
	return vrnic_counter_wait(counter, 0, WAIT_NS);
}

int peer_start(struct peer *peer, int (*run)(int fd, const void *arg),
	       const void *arg)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return -errno;
	peer->pid = fork();
	if (peer->pid < 0)
		return -errno;
	if (!peer->pid) {
		close(fds[0]);
		other_side();
		_exit(abs(run(fds[1], arg)) & 0xff);
	}
	close(fds[1]);
	peer->fd = fds[0];
	return 0;
}

static int peer_wait(struct peer *peer, int *status)
{
	pid_t pid = waitpid(peer->pid, status, 0);

	peer->pid = 0;
	close(peer->fd);
	return pid < 0 ? -errno : 0;
}

int peer_end(struct peer *peer)
{
	int status, ret;

	shutdown(peer->fd, SHUT_WR);
	ret = peer_wait(peer, &status);
	if (ret)
		return ret;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

int peer_kill(struct peer *peer)
{
	int status, ret;

	if (kill(peer->pid, SIGKILL))
		return -errno;
	ret = peer_wait(peer, &status);
	if (ret)
		return ret;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : -EIO;
}

int say(int fd)
{
	return send(fd, "", 1, MSG_NOSIGNAL) == 1 ? 0 : -EPIPE;
}

int hear(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) == 1 ? 0 : -EPIPE;
}

static const char * const gauges[] = {
	"native_fifos", "native_endpoints", "native_counters", "native_types",
};

long long native_objects(char *text, size_t size)
{
	long long value, sum = 0;
	unsigned int i;
	size_t n = 0;

	for (i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
		value = i ? kept_statistic(gauges[i]) : statistic(gauges[i]);
		if (value < 0)
			return -1;
		sum += value;
		n += snprintf(text + n, n < size ? size - n : 0, "%s %lld ",
			      gauges[i], value);
	}
	return sum;
}
