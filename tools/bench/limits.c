// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the machine could do at best: memory copies, a null system call, a
 * round trip between two processes, and process_vm_readv(2), which moves data
 * between processes without a NIC. Prints one "name size value" line each:
 * MB/s (10^6 bytes) for copies, microseconds for calls. With --brief, only hot
 * copies and the null system call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/*
 * Two of these are more than most caches hold, and their pages still fewer than
 * the mappings (vm.max_map_count) that user-mode Linux has for a process.
 */
#define COLD_BYTES	(64ul << 20)
/*
 * QEMU looks pages up in a table indexed by the low bits of their number: source
 * and destination must not be a power of two apart, or they take each other's place.
 */
#define SKEW		(37 * 4096)
#define RUN_NS		100000000ull

static void die(const char *what)
{
	fprintf(stderr, "limits: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	memset(p, 0x5a, bytes);
	return p;
}

/* Nanoseconds per call of @op, by doubling the count until it takes RUN_NS. */
static double time_per_call(void (*op)(void *), void *arg)
{
	uint64_t count = 1, start, ns;

	for (;;) {
		start = now_ns();
		for (uint64_t i = 0; i < count; i++)
			op(arg);
		ns = now_ns() - start;
		if (ns >= RUN_NS)
			return (double)ns / count;
		count *= 2;
	}
}

static void print_rate(const char *name, size_t size, double ns)
{
	printf("%s\t%zu\t%.1f\n", name, size, size * 1000.0 / ns);
}

static void print_us(const char *name, size_t size, double ns)
{
	printf("%s\t%zu\t%.3f\n", name, size, ns / 1000);
}

struct copy {
	char *dst, *src;
	size_t size, span, at;
	void (*move)(void *dst, const void *src, size_t size);
};

static void move_libc(void *dst, const void *src, size_t size)
{
	memcpy(dst, src, size);
}

static void move_movsq(void *dst, const void *src, size_t size)
{
	size_t words = size / 8;

	asm volatile("rep movsq" : "+D"(dst), "+S"(src), "+c"(words) : : "memory");
}

/*
 * What the kernel does for a processor without fast string operations, such as
 * QEMU's: there, it beats both others.
 */
static void move_words(void *dst, const void *src, size_t size)
{
	uint64_t *d = dst;
	const uint64_t *s = src;

	for (size_t i = 0; i < size / 8; i += 4) {
		uint64_t a = s[i], b = s[i + 1], c = s[i + 2], e = s[i + 3];

		/* in registers, and not made vectors or a call of memcpy */
		asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(e));
		d[i] = a;
		d[i + 1] = b;
		d[i + 2] = c;
		d[i + 3] = e;
	}
}

/* perftest sends the same buffer again and again: that is the hot case. */
static void copy_next(void *arg)
{
	struct copy *c = arg;

	c->move(c->dst + c->at, c->src + c->at, c->size);
	c->at += c->size;
	if (c->at + c->size > c->span)
		c->at = 0;
}

static void measure_copies(size_t size, bool brief)
{
	static const struct {
		const char *hot, *cold;
		void (*move)(void *dst, const void *src, size_t size);
	} ways[] = {
		{ "memcpy_hot", "memcpy_cold", move_libc },
		{ "movsq_hot", "movsq_cold", move_movsq },
		{ "words_hot", "words_cold", move_words },
	};
	char *dst = map(COLD_BYTES + SKEW), *src = map(COLD_BYTES);
	struct copy c = { .dst = dst + SKEW, .src = src, .size = size };

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		c.move = ways[i].move;
		c.at = 0;
		c.span = size;
		print_rate(ways[i].hot, size, time_per_call(copy_next, &c));
		if (brief)
			continue;
		c.span = COLD_BYTES;
		print_rate(ways[i].cold, size, time_per_call(copy_next, &c));
	}
	munmap(dst, COLD_BYTES + SKEW);
	munmap(src, COLD_BYTES);
}

static void null_call(void *arg)
{
	(void)arg;
	syscall(SYS_getppid);
}

struct pipes {
	int there[2], back[2];
};

static void round_trip(void *arg)
{
	struct pipes *p = arg;
	char c = 0;

	if (write(p->there[1], &c, 1) != 1 || read(p->back[0], &c, 1) != 1)
		die("pipe");
}

/* The peer of a measurement must not outlive it. */
static pid_t fork_peer(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void end_peer(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void measure_pipe(void)
{
	struct pipes p;
	pid_t pid;

	if (pipe(p.there) || pipe(p.back))
		die("pipe");
	pid = fork_peer();
	if (!pid) {
		char c;

		while (read(p.there[0], &c, 1) == 1 && write(p.back[1], &c, 1) == 1)
			;
		_exit(0);
	}
	print_us("pipe_round_trip", 0, time_per_call(round_trip, &p));
	end_peer(pid);
}

struct remote {
	pid_t pid;
	char *here, *there;
	size_t size;
};

static void read_remote(void *arg)
{
	struct remote *r = arg;
	struct iovec local = { r->here, r->size }, remote = { r->there, r->size };

	if (process_vm_readv(r->pid, &local, 1, &remote, 1, 0) != (ssize_t)r->size)
		die("process_vm_readv");
}

static void measure_vm_readv(size_t size)
{
	struct remote r = { .here = map(size), .there = map(size), .size = size };
	double ns;

	r.pid = fork_peer();
	if (!r.pid) {
		pause();
		_exit(0);
	}
	ns = time_per_call(read_remote, &r);
	end_peer(r.pid);
	print_rate("vm_readv", size, ns);
	print_us("vm_readv_us", size, ns);
	munmap(r.here, size);
	munmap(r.there, size);
}

int main(int argc, char **argv)
{
	static const size_t copies[] = { 65536, 1048576 };
	static const size_t reads[] = { 8, 4096, 65536, 1048576 };
	bool brief = argc > 1 && !strcmp(argv[1], "--brief");

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		measure_copies(copies[i], brief);
	print_us("null_call", 0, time_per_call(null_call, NULL));
	if (brief)
		return 0;
	measure_pipe();
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
		measure_vm_readv(reads[i]);
	return 0;
}
