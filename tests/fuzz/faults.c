// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * faults: what if there is no memory? Each call of the script that makes one of
 * each kind is made with its first allocation failing, then with its second, and
 * so on until it succeeds; so are the mapping of each ring, the work of a doorbell,
 * and the making of a device. Every failure must say why, and leave
 * nothing behind: the same call is made again right after it. kmemleak looks for leaks
 * when the machine ends.
 *
 * Allocations that count are those below a function of the module, and so do copies
 * from and to the caller; with -o all, allocations of the core on the way there as
 * well. -r CALL is for that call alone, as they are counted from 1. Needs a kernel
 * with CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC and CONFIG_FAULT_INJECTION_DEBUG_FS.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "verbs_util.h"

#define FAULTS		"/sys/kernel/debug"
#define CALLS_MAX	512
#define NTH_MAX		2000	/* a call does not allocate that often */
#define UVERBS_MAJOR	231
#define LINK		"faults0"
#define LINK_MAX	20000
#define LINK_EACH	40	/* allocations of a device; behind them, */
#define LINK_SOME	61	/* one of so many: a prime, as loops allocate by turns */

static struct options opts;
static int nth_fd = -1;
static bool refused;	/* calls fail in any case */

/* Results of the children, in memory that they share. */
static struct tally {
	uint64_t injected;
	uint64_t failed;	/* calls: they said so */
	uint64_t tolerated;	/* they did without */
	uint64_t odd;		/* they failed for a reason that is not documented */
	uint64_t stuck;
	unsigned int calls;
	unsigned int from[CALLS_MAX];	/* the first to fail, by call */
	bool again;		/* a tolerated fault hides those behind it */
} *tally;

/* ---- one fault ---- */

static void set_nth(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(nth_fd, text, len, 0) != len)
		abort();
}

/* Did it happen? */
static bool was_injected(void)
{
	char text[16] = {};
	bool injected = pread(nth_fd, text, sizeof(text) - 1, 0) > 0 &&
			!strtoul(text, NULL, 0);

	set_nth(0);
	return injected;
}

/* The documented errors of a lack of memory: Documentation/abi.rst. */
static bool is_documented(int err)
{
	return err == ENOMEM || err == EFAULT || err == EAGAIN;
}

static void note_failure(const char *what, unsigned int call, unsigned int n,
			 int err)
{
	tally->failed++;
	if (is_documented(err))
		return;
	tally->odd++;
	ktap_comment("%s %u, allocation %u: %s", what, call, n, strerror(err));
}

/* Does the call, which is one that is refused, fail with @ret without a fault, too? */
static bool fails_anyway(int (*make)(void *arg), void *arg, int ret)
{
	return refused && !is_documented(-ret) && make(arg) == ret;
}

/**
 * fail_each() - make a call with each of its allocations failing in turn
 * @what: for reports
 * @make: the call: 0 or a negative errno
 * @arg: for @make
 *
 * Return: the result of @make when no allocation failed, or although one did.
 */
static int fail_each(const char *what, int (*make)(void *arg), void *arg)
{
	unsigned int call = tally->calls++ % CALLS_MAX, n;
	bool injected;
	int ret;

	if (opts.from && call + 1 != opts.from)
		return make(arg);
	for (n = tally->from[call] + 1; n < NTH_MAX; n++) {
		set_nth(n);
		ret = make(arg);
		injected = was_injected();
		if (!injected)
			return ret;
		tally->injected++;
		if (!ret || fails_anyway(make, arg, ret)) {
			tally->tolerated++;
			tally->from[call] = n;
			tally->again = true;
			return ret;
		}
		note_failure(what, call, n, -ret);
	}
	tally->stuck++;
	ktap_comment("%s %u: %u of its allocations failed, and there are more",
		     what, call + 1, n - 1);
	return -ENOMEM;
}

/* ---- calls into the uverbs file ---- */

struct ioctl_call {
	int fd;
	struct ib_uverbs_ioctl_hdr *hdr;
	struct ib_uverbs_ioctl_hdr *saved;
};

/* The kernel writes to attributes also when it fails. */
static int make_ioctl(void *arg)
{
	struct ioctl_call *c = arg;

	memcpy(c->hdr, c->saved, c->saved->length);
	return call_kernel(c->fd, RDMA_VERBS_IOCTL, c->hdr) ? -errno : 0;
}

/* call_hook */
static int fail_ioctl(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ioctl_call c = { fd, hdr };
	int ret;

	if (call_leaks(hdr) || call_warns(hdr))
		return call_kernel(fd, RDMA_VERBS_IOCTL, hdr);
	c.saved = malloc(hdr->length);
	if (!c.saved)
		abort();
	memcpy(c.saved, hdr, hdr->length);
	ret = fail_each("call", make_ioctl, &c);
	free(c.saved);
	errno = -ret;
	return ret ? -1 : 0;
}

/* ---- mapping rings ---- */

struct mmap_call {
	void *addr;
	size_t len;
	int prot, flags, fd;
	off_t offset;
	void *result;
};

static int make_mmap(void *arg)
{
	struct mmap_call *c = arg;

	c->result = (void *)syscall(SYS_mmap, c->addr, c->len, c->prot,
				    c->flags, c->fd, c->offset);
	return c->result == MAP_FAILED ? -errno : 0;
}

static bool is_uverbs(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISCHR(st.st_mode) &&
	       major(st.st_rdev) == UVERBS_MAJOR;
}

/* The provider's calls come here; the Makefile exports it. */
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	struct mmap_call c = { addr, len, prot, flags, fd, offset, MAP_FAILED };
	int ret;

	if (call_hook && is_uverbs(fd))
		ret = fail_each("mapping", make_mmap, &c);
	else
		ret = make_mmap(&c);
	errno = -ret;
	return c.result;
}

/* By this name, if it was compiled for large files. */
void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

/* ---- the work of a doorbell ---- */

/**
 * struct operation - a native descriptor, and memory that it needs anew
 * @name: for reports
 * @d: descriptor; its addresses are filled in
 * @fresh: local memory is of pages that are not there yet
 * @typed: a second slot names types
 */
static const struct operation {
	const char *name;
	struct vrnic_ndesc d;
	bool fresh;
	bool typed;
} operations[] = {
	{ "put", { .opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 64 } },
	{ "typed put", { .opcode = VRNIC_NOP_PUT, .num_slots = 2, .length = 32,
			 .flags = VRNIC_NDESC_TYPED }, .typed = true },
	{ "virtual put", { .opcode = VRNIC_NOP_PUT, .num_slots = 1, .length = 4096,
			   .flags = VRNIC_NDESC_VIRTUAL }, .fresh = true },
	{ "virtual get", { .opcode = VRNIC_NOP_GET, .num_slots = 1, .length = 4096,
			   .flags = VRNIC_NDESC_VIRTUAL }, .fresh = true },
	{ "virtual message", { .opcode = VRNIC_NOP_MESSAGE, .num_slots = 1,
			       .length = 1024, .flags = VRNIC_NDESC_VIRTUAL },
	  .fresh = true },
	{ "remote get", { .opcode = VRNIC_NOP_RGET, .num_slots = 1, .length = 64 } },
};

/* Of the descriptor @cookie; other records are what messages and gets left. */
static int take_completion(struct raw_fifo *fifo, uint64_t cookie,
			   struct vrnic_record *record)
{
	int ret;

	do
		ret = raw_take(fifo, record);
	while (!ret && (record->kind != VRNIC_REC_COMPLETION ||
			record->cookie != cookie));
	return ret;
}

static void fill_operation(struct script *s, const struct operation *o,
			   uint8_t *fresh, uint64_t cookie)
{
	struct vrnic_ndesc_typed typed = {
		.local_type = s->type[0], .remote_type = s->type[1],
	};
	struct vrnic_ndesc d = o->d, *injected = (void *)s->fifo.buf.addr;

	d.flags |= VRNIC_NDESC_SIGNALED;
	d.endpoint = s->endpoint;
	d.cookie = cookie;
	d.local_addr = (uintptr_t)(o->fresh ? fresh : s->fifo.buf.addr);
	d.lkey = s->fifo.buf.mr->lkey;
	if (d.opcode != VRNIC_NOP_MESSAGE)
		d.rkey = s->fifo.buf.mr->rkey;
	d.remote_addr = (uintptr_t)s->fifo.buf.addr + 4096;
	*injected = (struct vrnic_ndesc){
		.opcode = VRNIC_NOP_NOTIFY, .num_slots = 1,
	};
	raw_fill(&s->fifo, &d, &typed, o->typed ? sizeof(typed) : 0);
}

/* Return: true if a fault was injected. */
static bool operate(struct script *s, const struct operation *o,
		    uint8_t *fresh, unsigned int n, bool *good)
{
	struct vrnic_record record = {};
	bool injected;
	int ret;

	madvise(fresh, 4096, MADV_DONTNEED);
	fill_operation(s, o, fresh, n);
	set_nth(n);
	ret = raw_ring(&s->fifo);
	injected = was_injected();
	if (!ret)
		ret = take_completion(&s->fifo, n, &record);
	tally->injected += injected;
	if (!ret && injected)
		tally->failed += record.status != IBV_WC_SUCCESS;
	if (!ret && injected && record.status == IBV_WC_SUCCESS)
		tally->tolerated++;
	*good = !ret && (injected || record.status == IBV_WC_SUCCESS);
	if (!*good)
		ktap_comment("%s, allocation %u: %s, status %u, reason %u",
			     o->name, n, strerror(-ret), record.status,
			     record.vendor_err);
	return injected;
}

static bool operate_all(struct script *s)
{
	uint8_t *fresh = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i, n;
	bool good = true;

	for (i = 0; i < ARRAY_SIZE(operations) && good; i++)
		for (n = 1; operate(s, &operations[i], fresh, n, &good) && good; n++)
			;
	munmap(fresh, 4096);
	return good;
}

/* ---- a device ---- */

static int run(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/*
 * The n-th allocation on the way to a device fails. Return: is there one? No program is started:
 * where all allocations count, exec() has failing ones, too, which user-mode Linux cannot bear.
 */
static bool link_added(int fd, unsigned int n, bool *injected)
{
	struct stat st;

	set_nth(n);
	rdma_link_add_by(fd, LINK, LINK);
	*injected = was_injected();
	return !stat("/sys/class/infiniband/" LINK, &st);
}

/*
 * It takes thousands, most of them in the core, for the GID table and the files in
 * sysfs: without -o all, some are left out. Return: how many faults there were, or -1.
 */
static int fail_link(void)
{
	bool each = opts.only && !strcmp(opts.only, "all");
	unsigned int n, failed = 0, tolerated = 0;
	bool added = false, injected = true;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd < 0)
		return -1;
	if (run("ip link add " LINK " type dummy")) {
		close(fd);
		return -1;
	}
	for (n = 1; n <= LINK_MAX; n += each || n < LINK_EACH ? 1 : LINK_SOME) {
		added = link_added(fd, n, &injected);
		if (added && run("rdma link delete " LINK))
			break;
		if (!injected)
			break;
		failed += !added;
		tolerated += added;
	}
	close(fd);
	if (run("ip link del " LINK))
		return -1;
	ktap_comment("a device: up to %u allocations; %u of those that failed it did without",
		     n - 1, tolerated);
	return injected || !added ? -1 : (int)(failed + tolerated);
}

/* ---- setting up ---- */

static bool put(const char *folder, const char *file, const char *text)
{
	char path[256];
	bool good;
	FILE *f;

	snprintf(path, sizeof(path), FAULTS "/%s/%s", folder, file);
	f = fopen(path, "w");
	good = f && fputs(text, f) >= 0;
	if (f)
		good = !fclose(f) && good;
	return good;
}

/* From the module's first function to after its last. */
static bool find_module(unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], type;
	unsigned long at;

	*start = ~0UL;
	*end = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "[vrnic]") ||
		    sscanf(line, "%lx %c", &at, &type) != 2 ||
		    (type | 32) != 't')
			continue;
		*start = at < *start ? at : *start;
		*end = at > *end ? at : *end;
	}
	if (f)
		fclose(f);
	*end += 4096;
	return *start && *start < *end;
}

/* From a function of the kernel to the one behind it. */
static bool find_function(const char *wanted, unsigned long *start,
			  unsigned long *end)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], name[256], type;
	bool found = false;
	unsigned long at;

	*start = 0;
	*end = ~0UL;
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx %c %255s", &at, &type, name) == 3 &&
		    !strcmp(name, wanted) && (type | 32) == 't') {
			*start = at;
			found = true;
		}
	if (f)
		rewind(f);
	while (found && f && fgets(line, sizeof(line), f)) {
		at = strtoul(line, NULL, 16);
		if (at > *start && at < *end)
			*end = at;
	}
	if (f)
		fclose(f);
	return found;
}

/* The core of 6.12 loses nodes of its tree when their allocation fails here. */
static bool spare_leaky(const char *folder)
{
	unsigned long start, end;
	char from[32], to[32];

	if (!find_function("uverbs_alloc_api", &start, &end))
		return false;
	snprintf(from, sizeof(from), "0x%lx", start);
	snprintf(to, sizeof(to), "0x%lx", end);
	return put(folder, "reject-start", from) && put(folder, "reject-end", to);
}

static bool set_up(const char *folder, bool everywhere)
{
	unsigned long start, end;
	char from[32], to[32];

	if (!put(folder, "verbose", "0") || !spare_leaky(folder))
		return false;
	if (strcmp(folder, "fail_usercopy") &&
	    !put(folder, "ignore-gfp-wait", "N"))
		return false;
	if (!strcmp(folder, "fail_page_alloc") &&
	    (!put(folder, "min-order", "0") ||
	     !put(folder, "ignore-gfp-highmem", "N")))
		return false;
	/* What the core has destroyed is gone, also if it cannot write its answer. */
	if (everywhere && strcmp(folder, "fail_usercopy"))
		return true;
	if (!find_module(&start, &end))
		return false;
	snprintf(from, sizeof(from), "0x%lx", start);
	snprintf(to, sizeof(to), "0x%lx", end);
	return put(folder, "require-start", from) &&
	       put(folder, "require-end", to);
}

static void clean_up(const char *folder)
{
	put(folder, "require-start", "0");
	put(folder, "require-end", "0xffffffffffffffff");
	put(folder, "reject-start", "0");
	put(folder, "reject-end", "0");
	if (strcmp(folder, "fail_usercopy"))
		put(folder, "ignore-gfp-wait", "Y");
	if (!strcmp(folder, "fail_page_alloc")) {
		put(folder, "min-order", "1");
		put(folder, "ignore-gfp-highmem", "Y");
	}
}

static const char * const doors[] = {
	"failslab", "fail_page_alloc", "fail_usercopy",
};

/* ---- the script, again and again ---- */

/* Exit status: 0, or which part did not work. */
static int child(void)
{
	struct script s;
	int ret = 0;

	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (nth_fd < 0)
		return 3;
	call_hook = fail_ioctl;
	tally->calls = 0;
	ret = script_begin(&s);
	if (ret) {
		ktap_comment("the script stops after call %u: %s", tally->calls,
			     strerror(abs(ret)));
		return 1;
	}
	refused = true;
	script_refused(&s);
	refused = false;
	if (!tally->again && !operate_all(&s))
		ret = 2;
	if (script_end(&s)) {
		ktap_comment("the script cannot be ended");
		ret = 1;
	}
	return ret;
}

/* Until no tolerated fault hides another: 0, or what a child returned. */
static int run_script(void)
{
	int status, runs = 0;
	pid_t pid;

	do {
		tally->again = false;
		pid = fork();
		if (!pid)
			_exit(child());
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 4;
		if (!WIFEXITED(status)) {
			ktap_comment("the script dies in call %u by signal %d",
				     tally->calls, WTERMSIG(status));
			return 4;
		}
		runs++;
	} while (!WEXITSTATUS(status) && tally->again && runs < NTH_MAX);
	ktap_comment("%u calls, %d runs of the script", tally->calls, runs);
	return WEXITSTATUS(status);
}

static bool nothing_left(void)
{
	usleep(100000);
	return !kept_statistic("native_fifos") && !kept_statistic("native_endpoints") &&
	       !kept_statistic("native_counters") && !kept_statistic("native_types");
}

static bool set_up_all(void)
{
	bool everywhere = opts.only && !strcmp(opts.only, "all");
	unsigned int i;

	if (access(FAULTS "/failslab", R_OK))
		return false;
	for (i = 0; i < ARRAY_SIZE(doors); i++)
		if (!set_up(doors[i], everywhere))
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct script s;
	int ret, links;
	unsigned int i;

	opts = options_read(argc, argv,
			    "fails each allocation of each call; NAME: all, for those of the core as well; ROUND: that call alone");
	if (access(FAULTS "/failslab", R_OK)) {
		printf("1..0 # SKIP the kernel has no fault injection\n");
		return 4;
	}
	ktap_begin(5);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (tally == MAP_FAILED || nth_fd < 0 || !set_up_all()) {
		ktap_result(false, "fault injection cannot be set up");
		return ktap_end();
	}
	ret = run_script();
	links = opts.from ? 1 : fail_link();
	for (i = 0; i < ARRAY_SIZE(doors); i++)
		clean_up(doors[i]);
	ktap_result(!ret && !tally->stuck && tally->failed,
		    "%llu allocations failed; %llu calls said so, %llu did without",
		    (unsigned long long)tally->injected,
		    (unsigned long long)tally->failed,
		    (unsigned long long)tally->tolerated);
	ktap_result(!tally->odd, "each for a reason that is documented");
	ktap_result(links > 0, "a device with each of %d allocations failing",
		    links);
	ktap_result(nothing_left(), "nothing is left of what failed");
	ret = script_begin(&s);
	ktap_result(!ret && !script_end(&s), "the device works");
	return ktap_end();
}
