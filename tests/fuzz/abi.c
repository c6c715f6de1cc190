// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * abi: calls into the uverbs file and the doorbell file that no library would
 * make. A script makes one call of each kind, as libraries do, and the program records
 * these calls. Then children make the calls again, on the objects of the same script, from
 * several threads at once. A field, a length, a handle, a pointer or an attribute is
 * wrong. The calls are made as ioctl() and as write(), while other threads destroy
 * the objects, and at last the file is closed meanwhile.
 *
 * The seed and the number of a child determine its calls: -r NUMBER begins with a child.
 * The scheduler decides the order of its threads.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "calls.h"
#include "verbs_util.h"

#define CALLS_MAX	512	/* that are written down */
#define ATTRS_MAX	16
#define THREADS		SCRIPT_TYPES
#define CALLS		600	/* of each thread of a child */
#define ARENA		(1U << 20)
#define CHILD_SECONDS	120	/* a child that takes longer hangs */
#define SPARE_FDS	256	/* descriptors that calls may make, before they are closed */

/**
 * struct call - a call with its attributes
 * @hdr, @attr: as it was made
 * @data: copies of what attributes point to, or NULL
 */
struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[ATTRS_MAX];
	uint8_t *data[ATTRS_MAX];
};

static struct call book[CALLS_MAX];
static unsigned int nr_book;
static struct options opts;

/* Counts of the children's calls, in memory that they share. */
static struct tally {
	uint64_t calls;
	uint64_t good;
	uint64_t writes;
	uint64_t good_writes;
	uint64_t bells;
	uint64_t maps;
	bool method_good[CALLS_MAX];	/* by the call it was made from */
} *tally;

static void count(uint64_t *n)
{
	__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

/* ---- recording ---- */

/* Small input lies in the attribute itself, output never does. */
static bool is_pointer(uint64_t data)
{
	uint8_t byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)data, 1 };

	return data > 65536 &&
	       process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

static uint8_t *copy_of(const struct ib_uverbs_attr *attr)
{
	uint8_t *copy;

	if (!attr->len || !is_pointer(attr->data))
		return NULL;
	copy = malloc(attr->len);
	if (copy)
		memcpy(copy, (void *)attr->data, attr->len);
	return copy;
}

/* call_hook: make the call, and keep a copy of its arguments from before. */
static int write_down(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct call *call = &book[nr_book];
	unsigned int i;

	if (nr_book < CALLS_MAX && hdr->num_attrs <= ATTRS_MAX) {
		nr_book++;
		call->hdr = *hdr;
		for (i = 0; i < hdr->num_attrs; i++) {
			call->attr[i] = hdr->attrs[i];
			call->data[i] = copy_of(&hdr->attrs[i]);
		}
	}
	return call_kernel(fd, RDMA_VERBS_IOCTL, hdr);
}

static int write_script(void)
{
	struct script s;
	int ret;

	call_hook = write_down;
	ret = script_begin(&s);
	if (!ret) {
		script_refused(&s);
		ret = script_end(&s);
	}
	call_hook = NULL;
	return ret;
}

/* ---- a call, once more ---- */

/**
 * struct abuser - a thread of a child
 * @rng: its own
 * @fd, @bell: uverbs file and doorbell file
 * @fifo, @counter, @group, @qpn: numbers of objects that a doorbell may name
 * @arena: memory for arguments; what follows it is not there
 * @at: bytes of @arena in use
 * @spare: descriptors from here on were made by calls
 * @stop: the file is closed
 */
struct abuser {
	pthread_t thread;
	struct rng rng;
	int fd, bell;
	uint32_t fifo, counter, group, qpn;
	uint8_t *arena;
	size_t at;
	int spare;
	const bool *stop;
};

static void *take(struct abuser *a, size_t len)
{
	void *p = a->arena + a->at;

	a->at += (len + 15) & ~15UL;
	return p;
}

/* A pointer that is none, or to less than there should be. */
static uint64_t bad_pointer(struct abuser *a)
{
	static const uint64_t bad[] = {
		0, 1, 4096, 0x7fffffffffffULL, 0xffff888000000000ULL, ~0ULL,
		~0ULL - 8,
	};

	if (rng_one_in(&a->rng, 2))
		return (uintptr_t)a->arena + ARENA - rng_below(&a->rng, 64);
	return bad[rng_below(&a->rng, ARRAY_SIZE(bad))];
}

/* @points: its data lies elsewhere. */
static void mutate_attr(struct abuser *a, struct ib_uverbs_attr *attr,
			bool points)
{
	struct rng *rng = &a->rng;

	switch (rng_below(rng, 16)) {
	case 0:
		attr->len = rng_value(rng);
		break;
	case 1:
		attr->len += (int)rng_below(rng, 17) - 8;
		break;
	case 2:
		attr->attr_id += rng_one_in(rng, 2) ? 1 : rng_value(rng);
		break;
	case 3:
		attr->data = bad_pointer(a);
		break;
	case 4:
		attr->flags = rng_value(rng);
		break;
	case 5:
		attr->attr_data.reserved = rng_value(rng);
		break;
	default:
		/* a handle: there are not that many; or small input */
		if (points)
			rng_mutate(rng, (void *)attr->data, attr->len);
		else if (attr->len)
			rng_mutate(rng, &attr->data, sizeof(attr->data));
		else
			attr->data = rng_below(rng, 48);
		break;
	}
}

static void mutate_hdr(struct abuser *a, struct call *c)
{
	struct rng *rng = &a->rng;
	unsigned int n = c->hdr.num_attrs;

	switch (rng_below(rng, 6)) {
	case 0:
		rng_mutate(rng, &c->hdr, sizeof(c->hdr));
		break;
	case 1:
		c->hdr.method_id += rng_one_in(rng, 2) ? 1 : rng_value(rng);
		break;
	case 2:
		if (n)
			c->hdr.num_attrs--;
		break;
	case 3:
		if (n && n < ATTRS_MAX) {
			c->attr[n] = c->attr[rng_below(rng, n)];
			c->hdr.num_attrs++;
			c->hdr.length += sizeof(c->attr[0]);
		}
		break;
	case 4:
		if (n)
			c->attr[rng_below(rng, n)] =
				book[rng_below(rng, nr_book)].attr[0];
		break;
	default:
		c->hdr.object_id = rng_one_in(rng, 2) ?
				   rng_below(rng, 24) : (1 << 12) + rng_below(rng, 8);
		break;
	}
}

/* With its arguments in the arena, and the last of them at its very end. */
static struct call *call_again(struct abuser *a, const struct call *from)
{
	struct call *c;
	unsigned int i;
	uint8_t *copy;

	a->at = 0;
	c = take(a, sizeof(*c));
	*c = *from;
	for (i = 0; i < c->hdr.num_attrs; i++) {
		if (!from->data[i])
			continue;
		copy = take(a, c->attr[i].len);
		memcpy(copy, from->data[i], c->attr[i].len);
		c->attr[i].data = (uintptr_t)copy;
	}
	return c;
}

static void mutate(struct abuser *a, struct call *c, const struct call *from)
{
	uint32_t i, n = rng_below(&a->rng, 4);

	/* each attribute once, as its length may be wrong then */
	for (i = 0; n && i < from->hdr.num_attrs; i++) {
		if (rng_below(&a->rng, from->hdr.num_attrs - i) >= n)
			continue;
		mutate_attr(a, &c->attr[i], from->data[i]);
		n--;
	}
	if (rng_one_in(&a->rng, 16))
		mutate_hdr(a, c);
}

static const struct ib_uverbs_attr *find_attr(const struct call *c, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < c->hdr.num_attrs; i++)
		if (c->attr[i].attr_id == id)
			return &c->attr[i];
	return NULL;
}

static bool is_write(const struct call *c)
{
	return c->hdr.object_id == UVERBS_OBJECT_DEVICE &&
	       c->hdr.method_id == UVERBS_METHOD_INVOKE_WRITE;
}

/*
 * When modify_wq names a state that is none, the core keeps the lock of the work queue
 * (uverbs_cmd.c of 6.12 and 7.3), and warns at its end. @body: of the command, or no address.
 */
static bool locks_for_ever(uint32_t command, const void *body)
{
	struct ib_uverbs_ex_modify_wq modify = {};
	struct iovec local = { &modify, sizeof(modify) }, remote = { (void *)body, sizeof(modify) };

	if ((command & IB_USER_VERBS_CMD_COMMAND_MASK) != IB_USER_VERBS_EX_CMD_MODIFY_WQ)
		return false;
	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0)
		return false;	/* nor can the core */
	return modify.wq_state > IBV_WQS_ERR || modify.curr_wq_state > IBV_WQS_ERR;
}

static bool call_locks_for_ever(const struct call *c)
{
	const struct ib_uverbs_attr *cmd = find_attr(c, UVERBS_ATTR_WRITE_CMD);
	const struct ib_uverbs_attr *in = find_attr(c, UVERBS_ATTR_CORE_IN);

	return is_write(c) && cmd && in && locks_for_ever(cmd->data, (void *)in->data);
}

static void make_call(struct abuser *a)
{
	unsigned int which = rng_below(&a->rng, nr_book);
	struct call *c = call_again(a, &book[which]);

	mutate(a, c, &book[which]);
	if (call_leaks(&c->hdr) || call_locks_for_ever(c))
		return;
	count(&tally->calls);
	if (call_kernel(a->fd, RDMA_VERBS_IOCTL, &c->hdr))
		return;
	count(&tally->good);
	tally->method_good[which] = true;
}

/* ---- write() ---- */

static size_t append(struct abuser *a, uint8_t *to, const struct ib_uverbs_attr *attr)
{
	if (!attr)
		return 0;
	if (attr->len <= sizeof(attr->data) && !is_pointer(attr->data))
		memcpy(to, &attr->data, attr->len);
	else
		memcpy(to, (void *)attr->data, attr->len);
	return attr->len;
}

static size_t length_of(const struct ib_uverbs_attr *attr)
{
	return attr ? attr->len : 0;
}

/*
 * The attributes of INVOKE_WRITE, in the form that write() takes. The bytes up to @safe
 * hold the address of the answer, which stays right.
 */
static size_t as_write(struct abuser *a, const struct call *c, uint8_t *buf,
		       size_t *safe)
{
	const struct ib_uverbs_attr *in = find_attr(c, UVERBS_ATTR_CORE_IN);
	const struct ib_uverbs_attr *out = find_attr(c, UVERBS_ATTR_CORE_OUT);
	const struct ib_uverbs_attr *uin = find_attr(c, UVERBS_ATTR_UHW_IN);
	const struct ib_uverbs_attr *uout = find_attr(c, UVERBS_ATTR_UHW_OUT);
	const struct ib_uverbs_attr *cmd = find_attr(c, UVERBS_ATTR_WRITE_CMD);
	uint64_t response = (uintptr_t)take(a, 65536);
	struct ib_uverbs_cmd_hdr hdr = { .command = cmd ? cmd->data : 0 };
	struct ib_uverbs_ex_cmd_hdr ex = { .response = response };
	bool extended = hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	size_t at = sizeof(hdr) + (extended ? sizeof(ex) : 0), start = at;

	at += append(a, buf + at, in);
	at += append(a, buf + at, uin);
	if (extended) {
		hdr.in_words = length_of(in) / 8;
		hdr.out_words = length_of(out) / 8;
		ex.provider_in_words = length_of(uin) / 8;
		ex.provider_out_words = length_of(uout) / 8;
		memcpy(buf + sizeof(hdr), &ex, sizeof(ex));
	} else {
		hdr.in_words = at / 4;
		hdr.out_words = (length_of(out) + length_of(uout)) / 4;
		if (at >= start + sizeof(response))
			memcpy(buf + start, &response, sizeof(response));
	}
	memcpy(buf, &hdr, sizeof(hdr));
	*safe = extended ? start : start + sizeof(response);
	return at;
}

static void make_write(struct abuser *a)
{
	struct rng *rng = &a->rng;
	const struct call *from;
	uint32_t n, command;
	size_t len, safe;
	struct call *c;
	uint8_t *buf;

	do
		from = &book[rng_below(rng, nr_book)];
	while (!is_write(from));
	c = call_again(a, from);
	buf = take(a, 65536);
	len = as_write(a, c, buf, &safe);
	for (n = rng_below(rng, 4); n && len > safe; n--)
		rng_mutate(rng, buf + safe, len - safe);
	if (rng_one_in(rng, 8))
		rng_mutate(rng, buf, sizeof(struct ib_uverbs_cmd_hdr));
	if (rng_one_in(rng, 8))
		len = rng_one_in(rng, 2) ? rng_below(rng, len + 64) :
					   rng_value(rng) & 0xffff;
	memcpy(&command, buf, sizeof(command));
	if (locks_for_ever(command, buf + sizeof(struct ib_uverbs_cmd_hdr) +
				    sizeof(struct ib_uverbs_ex_cmd_hdr)))
		return;
	count(&tally->writes);
	if (write(a->fd, buf, len) >= 0)
		count(&tally->good_writes);
}

/* ---- the other doors ---- */

static void ring_something(struct abuser *a)
{
	struct rng *rng = &a->rng;
	struct vrnic_wait wait = {
		.what = rng_below(rng, 4),
		.id = rng_one_in(rng, 2) ? a->counter : a->fifo,
		.threshold = rng_value(rng),
		/* not for ever: nobody would wake it */
		.timeout_ns = rng_below(rng, 1000000),
	};
	struct vrnic_count counted = {
		.id = wait.id,
		.status = rng_value(rng),
		.opcode = rng_value(rng),
		.reserved0 = rng_below(rng, 4) / 3,
		.bytes = rng_value(rng),
		.cookie = rng_value(rng),
	};
	struct vrnic_wait_group wait_group = {
		.group = rng_one_in(rng, 4) ? rng_value(rng) : a->group,
		.flags = rng_below(rng, 3),
		.mask = rng_one_in(rng, 4) ? rng_value(rng) : 1 << 5,
		.timeout_ns = wait.timeout_ns,
	};
	uint64_t id = rng_one_in(rng, 2) ? a->fifo : a->qpn;

	count(&tally->bells);
	if (rng_one_in(rng, 4))
		id = rng_value(rng);
	switch (rng_below(rng, 6)) {
	case 5:
		call_kernel(a->bell, VRNIC_WAIT_GROUP,
			    rng_one_in(rng, 8) ? (void *)bad_pointer(a) : &wait_group);
		break;
	case 4:
		call_kernel(a->bell, VRNIC_COUNT, &counted);
		break;
	case 0:
		call_kernel(a->bell, VRNIC_DOORBELL, (void *)id);
		break;
	case 1:
		call_kernel(a->bell, VRNIC_ADVANCE, (void *)id);
		break;
	case 2:
		call_kernel(a->bell, rng_value(rng), (void *)bad_pointer(a));
		break;
	default:
		if (rng_one_in(rng, 4))
			wait.id = rng_value(rng);
		call_kernel(a->bell, VRNIC_WAIT,
			    rng_one_in(rng, 8) ? (void *)bad_pointer(a) : &wait);
		break;
	}
}

/* Rings that are there, and those that are not; for a moment. */
static void map_something(struct abuser *a)
{
	static const int ways[] = {
		PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE, PROT_EXEC,
	};
	struct rng *rng = &a->rng;
	size_t len = 4096 * (1 + rng_below(rng, 4));
	off_t offset = 4096ULL * rng_below(rng, 64);
	int prot = ways[rng_below(rng, ARRAY_SIZE(ways))];
	uint32_t *map;

	if (rng_one_in(rng, 8))
		offset = rng_value(rng) & ~4095ULL;
	count(&tally->maps);
	map = mmap(NULL, len, prot,
		   rng_one_in(rng, 4) ? MAP_PRIVATE : MAP_SHARED,
		   a->fd, offset);
	if (map == MAP_FAILED)
		return;
	if (prot == (PROT_READ | PROT_WRITE))
		map[rng_below(rng, len / sizeof(*map))] = rng_value(rng);
	if (rng_one_in(rng, 4))
		mprotect(map, 4096, PROT_READ | PROT_WRITE);
	if (rng_one_in(rng, 4))
		madvise(map, len, MADV_DONTNEED);
	munmap(map, len);
}

static void *abuse(void *arg)
{
	struct abuser *a = arg;
	int i;

	for (i = 0; i < CALLS && !__atomic_load_n(a->stop, __ATOMIC_RELAXED); i++) {
		switch (rng_below(&a->rng, 16)) {
		case 0:
			ring_something(a);
			break;
		case 1:
			map_something(a);
			break;
		case 2:
		case 3:
			make_write(a);
			break;
		default:
			make_call(a);
			break;
		}
		if (i % 128 == 127)
			close_range(a->spare, ~0U, 0);
	}
	return NULL;
}

/* ---- children ---- */

/* What follows an arena faults. */
static uint8_t *new_arena(void)
{
	uint8_t *map = mmap(NULL, ARENA + 65536, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED || mprotect(map + ARENA, 65536, PROT_NONE))
		return NULL;
	return map;
}

/* Descriptors from here on are none of the script's. */
static int first_spare(void)
{
	int fd = open("/dev/null", O_RDONLY);

	close(fd);
	return fd + 16;
}

/* Exit status: 0, or 2 if it could not even begin. */
static int child(uint64_t number)
{
	struct abuser abusers[THREADS] = {};
	bool stop = false;
	struct script s;
	int i;

	if (script_begin(&s))
		return 2;
	for (i = 0; i < THREADS; i++) {
		abusers[i] = (struct abuser){
			.rng = rng_for(opts.seed, number, i),
			.fd = s.dev.ctx->cmd_fd,
			.bell = s.fifo.bell,
			.fifo = s.fifo.address.fifo,
			.counter = s.counter.number,
			.group = s.group,
			.qpn = s.pair[i].a.qp->qp_num,
			.arena = new_arena(),
			.spare = first_spare(),
			.stop = &stop,
		};
		if (!abusers[i].arena ||
		    pthread_create(&abusers[i].thread, NULL, abuse, &abusers[i]))
			return 2;
	}
	/* some find their objects destroyed, some the file closed, under their hands */
	if (number % 4 == 1)
		script_end(&s);
	if (number % 4 == 2) {
		usleep(20000);
		close(s.dev.ctx->cmd_fd);
		close(s.fifo.bell);
	}
	if (number % 4 == 3)
		_exit(0);
	for (i = 0; i < THREADS; i++)
		pthread_join(abusers[i].thread, NULL);
	_exit(0);
}

/* Wait for it: its status, or -ETIMEDOUT. */
static int reap(pid_t pid)
{
	double end = now() + CHILD_SECONDS;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now() > end) {
			kill(pid, SIGKILL);
			return -ETIMEDOUT;
		}
		usleep(2000);
	}
	return status;
}

static void progress(double seconds, uint64_t children, uint64_t crashed)
{
	ktap_comment("%.0f s: %s calls, %s a second, %llu %% good; %llu processes, %llu died",
		     seconds, grouped(tally->calls + tally->writes),
		     grouped((tally->calls + tally->writes) / seconds),
		     (unsigned long long)((tally->good + tally->good_writes) * 100 /
					  (tally->calls + tally->writes + 1)),
		     (unsigned long long)children, (unsigned long long)crashed);
}

static bool enough(double start)
{
	if (opts.count && tally->calls + tally->writes >= opts.count)
		return true;
	return opts.seconds && now() - start >= opts.seconds;
}

/* Return: false if one hangs, or cannot begin. */
static bool run_children(void)
{
	double start = now(), next = start + 10;
	uint64_t n = opts.from, crashed = 0;
	int status;
	pid_t pid;

	do {
		pid = fork();
		if (pid < 0)
			return false;
		if (!pid)
			_exit(child(n));
		status = reap(pid);
		if (status < 0 || (WIFEXITED(status) && WEXITSTATUS(status))) {
			ktap_comment("process %llu of seed %llu: %s",
				     (unsigned long long)n,
				     (unsigned long long)opts.seed,
				     status < 0 ? "hangs" : "cannot begin");
			return false;
		}
		/* answers may have gone anywhere in its memory: that is its own fault */
		crashed += WIFSIGNALED(status);
		n++;
		if (now() >= next) {
			progress(now() - start, n - opts.from, crashed);
			next = now() + 10;
		}
	} while (!enough(start));
	progress(now() - start, n - opts.from, crashed);
	return true;
}

/* Recorded calls, and those that succeeded although something was wrong. */
static unsigned int good_kinds(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < nr_book; i++)
		n += tally->method_good[i];
	return n;
}

static bool nothing_left(void)
{
	usleep(100000);
	return !kept_statistic("native_fifos") && !kept_statistic("native_endpoints") &&
	       !kept_statistic("native_counters") && !kept_statistic("native_types");
}

int main(int argc, char **argv)
{
	struct script s;
	bool good;
	int ret;

	opts = options_read(argc, argv,
			    "calls that no library would make; COUNT: calls, ROUND: a process");
	ktap_begin(4);
	ktap_comment("seed %llu", (unsigned long long)opts.seed);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ret = tally == MAP_FAILED ? -errno : write_script();
	ktap_result(!ret, "%u calls were written down", nr_book);
	if (ret) {
		ktap_comment("%s", strerror(-ret));
		return ktap_end();
	}
	good = run_children();
	ktap_comment("%s as write(), %s of them good; %s doorbells; %s mappings",
		     grouped(tally->writes), grouped(tally->good_writes),
		     grouped(tally->bells), grouped(tally->maps));
	/* calls that all fail test nothing but the first check */
	ktap_result(good && tally->good * 20 > tally->calls &&
		    good_kinds() * 2 > nr_book,
		    "%s calls, %s of them good; of %u kinds, %u",
		    grouped(tally->calls), grouped(tally->good), nr_book,
		    good_kinds());
	ktap_result(nothing_left(), "nothing of them is left");
	ret = script_begin(&s);
	ktap_result(!ret && !script_end(&s), "the device works");
	return ktap_end();
}
