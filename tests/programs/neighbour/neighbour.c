// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * neighbour list
 * neighbour victim SECONDS FILE [native]
 * neighbour attack NAME FILE
 * neighbour idle NAME
 *
 * One process moves data for SECONDS, between two queue pairs or FIFOs of its own, and
 * prints how many operations were done. Before that it writes to FILE the numbers that others
 * can know, and waits until there is FILE.go. Another process makes, for as long as it lives,
 * calls that should not slow the first one: it prints "ready" when it begins. idle: as many
 * threads compute instead.
 * list: name, threads, verbs or native, memory or packets.
 */
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "neighbour.h"

#define LEN	65536
#define BYTES	4096	/* of an operation of the victim */
#define WINDOW	16

static const struct attack attacks[] = {
	{ "requests that name another's queue pair", 2, .begin = names_begin, .turn = names_turn },
	{ "a queue pair modified while it is named", 2, .begin = modify_begin,
	  .turn = modify_turn },
	{ "many groups joined", 1, .begin = groups_begin, .turn = groups_turn },
	{ "datagrams to a group of many", 1, .begin = members_begin, .turn = members_turn },
	{ "a large completion queue resized", 1, .begin = resize_begin, .turn = resize_turn },
	{ "long transfers", 1, .begin = long_begin, .turn = long_turn },
	{ "doorbells of many threads", 4, .begin = bells_begin, .turn = bells_turn },
	{ "many receives flushed", 1, .begin = flush_begin, .turn = flush_turn },
	{ "a full reception FIFO", 1, .native = true, .begin = full_begin, .turn = full_turn },
	{ "failing injected descriptors", 1, .native = true, .begin = failing_begin,
	  .turn = failing_turn },
	{ "a queue pair with too many packets", 1, .packets = true, .begin = queued_begin,
	  .turn = queued_turn },
	{ "early packets that nobody fetches", 1, .packets = true, .begin = early_begin,
	  .turn = early_turn },
};

static const char *path;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Write the file whole or not at all, because another process polls for it. */
static void tell_and_wait(const struct victim *victim)
{
	char temporary[300];
	FILE *f;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	f = fopen(temporary, "w");
	if (!f || fwrite(victim, sizeof(*victim), 1, f) != 1 || fclose(f) ||
	    rename(temporary, path))
		die("cannot write %s", path);
	snprintf(temporary, sizeof(temporary), "%s.go", path);
	while (access(temporary, F_OK))
		usleep(10000);
}

static void learn(struct victim *victim)
{
	FILE *f = fopen(path, "r");

	if (!f || fread(victim, sizeof(*victim), 1, f) != 1)
		die("cannot read %s", path);
	fclose(f);
}

static unsigned long verbs_victim(double seconds)
{
	struct victim victim = {};
	unsigned int posted = 0;
	unsigned long done = 0;
	struct ibv_wc wc[WINDOW];
	struct bed bed;
	double end;
	int n;

	must(bed_open(&bed, LEN, NULL));
	victim.qpn = bed.b->qp->qp_num;
	tell_and_wait(&victim);
	for (end = now() + seconds; now() < end; done += n, posted -= n) {
		for (; posted < WINDOW; posted++)
			must(POST(bed.a, .op = IBV_WR_RDMA_WRITE, .local = &bed.src,
				  .len = BYTES, .remote = &bed.dst));
		n = ibv_poll_cq(bed.a->scq, WINDOW, wc);
		if (n < 0 || (n && wc[n - 1].status))
			die("the victim's transfers fail: %s",
			    n < 0 ? "no completions" : ibv_wc_status_str(wc[n - 1].status));
	}
	return done;
}

static void *attacker(void *arg)
{
	const struct attack *attack = arg;
	static unsigned int next;
	unsigned int thread = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);

	for (;;)
		attack->turn(thread);
	return NULL;
}

static void compute(unsigned int thread)
{
	volatile unsigned int i;

	for (i = 0; i < 1000000; i++)
		;
}

static void run(const struct attack *attack)
{
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < attack->threads; i++)
		must(pthread_create(&thread, NULL, attacker, (void *)attack));
	puts("ready");
	fflush(stdout);
	pause();
}

static const struct attack *find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(attacks); i++)
		if (!strcmp(attacks[i].name, name))
			return &attacks[i];
	die("there is no attack '%s'", name);
}

static void be_idle(const char *name)
{
	struct attack idle = { .threads = find(name)->threads, .turn = compute };

	run(&idle);
}

static void be_attacker(const char *name)
{
	const struct attack *attack = find(name);
	struct victim victim;

	learn(&victim);
	attack->begin(&victim);
	run(attack);
}

static void list(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(attacks); i++)
		printf("%s\t%u\t%s\t%s\n", attacks[i].name, attacks[i].threads,
		       attacks[i].native ? "native" : "verbs",
		       attacks[i].packets ? "packets" : "memory");
}

int main(int argc, char **argv)
{
	double seconds;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
	} else if (argc >= 4 && !strcmp(argv[1], "victim")) {
		seconds = atof(argv[2]);
		path = argv[3];
		printf("%lu operations\n", argc > 4 ? native_victim(seconds, tell_and_wait) :
		       verbs_victim(seconds));
	} else if (argc == 4 && !strcmp(argv[1], "attack")) {
		path = argv[3];
		be_attacker(argv[2]);
	} else if (argc == 3 && !strcmp(argv[1], "idle")) {
		be_idle(argv[2]);
	} else {
		die("usage: see the head of neighbour.c");
	}
	return 0;
}
