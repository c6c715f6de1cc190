// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A plugin for QEMU that watches cache lines move between CPUs.
 *
 * Each line of physical memory is with the CPU that wrote it last, or with those that have read it
 * since. An access of a CPU that has not got the line moves it there. Caches have no end here: what
 * moves, moves because CPUs share. The CPUs 2n and 2n+1 are pair n.
 *
 * The program in the machine says from where to where (see mark.h). At the end, what each
 * instruction did to each line is written to the file of the plugin's argument out=, a run after
 * the other:
 *
 *	run
 *	LINE DATA INSTRUCTION PAIR LOADS STORES WITHIN ACROSS
 *
 * LINE is the physical address, DATA a virtual one, INSTRUCTION that of the code, PAIR who did it;
 * WITHIN and ACROSS are how often the line moved within the pair, and from another pair to it.
 * Numbers are hexadecimal.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marked.h"
#include "qemu.h"

#define LINE_BITS	6
#define SLOTS		2097152	/* of each table */
#define NOBODY		0xff

/* Where a line is. */
struct line {
	atomic_ullong tag;	/* number of the line, and 1; 0: free */
	atomic_flag lock;
	bool written;		/* since the start */
	uint8_t owner;
	uint64_t holders;
};

/* What an instruction of a pair did to a line; protected by the line's lock. */
struct site {
	atomic_ullong tag;	/* of the line */
	uint64_t pc, data;
	unsigned int pair;
	uint64_t loads, stores, within, across;
};

int qemu_plugin_version = PLUGIN_VERSION;

static struct line *lines;
static struct site *sites;
static atomic_bool armed;
static atomic_ullong lost;
static const char *out;

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ULL;
	return x ^ x >> 29;
}

static struct line *line_of(uint64_t tag)
{
	unsigned int i = mix(tag) % SLOTS, tries;

	for (tries = 0; tries < SLOTS; tries++, i = (i + 1) % SLOTS) {
		unsigned long long found = atomic_load(&lines[i].tag);

		if (!found && atomic_compare_exchange_strong(&lines[i].tag, &found, tag))
			return &lines[i];
		if (found == tag)
			return &lines[i];
	}
	return NULL;
}

/* Two instructions of one line cannot get here at once, but those of two lines can. */
static struct site *site_of(uint64_t tag, uint64_t pc, unsigned int pair, uint64_t data)
{
	unsigned int i = mix(tag ^ mix(pc + pair)) % SLOTS, tries;

	for (tries = 0; tries < SLOTS; tries++, i = (i + 1) % SLOTS) {
		unsigned long long found = atomic_load(&sites[i].tag);

		if (!found && atomic_compare_exchange_strong(&sites[i].tag, &found, tag)) {
			sites[i].pc = pc;
			sites[i].pair = pair;
			sites[i].data = data;
			return &sites[i];
		}
		/* the pc of another line's is not looked at: it may be on its way */
		if (found == tag && sites[i].pc == pc && sites[i].pair == pair)
			return &sites[i];
	}
	return NULL;
}

static bool of_other_pairs(const struct line *line, unsigned int cpu)
{
	uint64_t pair = 3ULL << (cpu & ~1U);

	return line->owner != NOBODY ? line->owner / 2 != cpu / 2 : (line->holders & ~pair) != 0;
}

static void touch(struct line *line, struct site *site, unsigned int cpu, bool store)
{
	uint64_t self = 1ULL << cpu;
	bool have = store ? line->owner == cpu || line->holders == self : line->holders & self;
	bool moves = !have && (store ? line->holders & ~self : line->written && line->holders);

	if (moves && of_other_pairs(line, cpu))
		site->across++;
	else if (moves)
		site->within++;
	if (store) {
		line->written = true;
		line->owner = cpu;
		line->holders = self;
		site->stores++;
	} else {
		if (!have)
			line->owner = NOBODY;
		line->holders |= self;
		site->loads++;
	}
}

static void access_line(uint64_t number, unsigned int cpu, bool store, uint64_t pc, uint64_t data)
{
	struct line *line = line_of(number + 1);
	struct site *site;

	if (!line) {
		atomic_fetch_add(&lost, 1);
		return;
	}
	while (atomic_flag_test_and_set_explicit(&line->lock, memory_order_acquire))
		;
	site = site_of(number + 1, pc, cpu / 2, data);
	if (site)
		touch(line, site, cpu, store);
	else
		atomic_fetch_add(&lost, 1);
	atomic_flag_clear_explicit(&line->lock, memory_order_release);
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *pc)
{
	struct qemu_plugin_hwaddr *at;
	uint64_t first, last;

	if (!atomic_load_explicit(&armed, memory_order_relaxed) || cpu >= 64)
		return;
	at = qemu_plugin_get_hwaddr(info, vaddr);
	if (!at || qemu_plugin_hwaddr_is_io(at))
		return;
	first = qemu_plugin_hwaddr_phys_addr(at);
	last = first + (1U << qemu_plugin_mem_size_shift(info)) - 1;
	for (first >>= LINE_BITS, last >>= LINE_BITS; first <= last; first++)
		access_line(first, cpu, qemu_plugin_mem_is_store(info), (uint64_t)(uintptr_t)pc,
			    vaddr);
}

static void on_start(unsigned int cpu, void *arg)
{
	(void)cpu;
	(void)arg;
	atomic_store(&armed, true);
}

static void write_run(FILE *file)
{
	unsigned int i;

	fprintf(file, "run\n");
	if (atomic_load(&lost))
		fprintf(file, "lost %llu\n", (unsigned long long)atomic_load(&lost));
	for (i = 0; i < SLOTS; i++) {
		const struct site *s = &sites[i];

		if (s->tag)
			fprintf(file, "%llx %llx %llx %x %llx %llx %llx %llx\n",
				((unsigned long long)s->tag - 1) << LINE_BITS,
				(unsigned long long)s->data, (unsigned long long)s->pc, s->pair,
				(unsigned long long)s->loads, (unsigned long long)s->stores,
				(unsigned long long)s->within, (unsigned long long)s->across);
	}
}

/* The CPUs of the machine wait meanwhile, or do what is not of interest. */
static void on_stop(unsigned int cpu, void *arg)
{
	FILE *file;

	(void)cpu;
	(void)arg;
	if (!atomic_exchange(&armed, false))
		return;
	file = fopen(out, "a");
	if (file) {
		write_run(file);
		fclose(file);
	} else {
		perror(out);
	}
	memset(lines, 0, SLOTS * sizeof(*lines));
	memset(sites, 0, SLOTS * sizeof(*sites));
	atomic_store(&lost, 0);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i;

	(void)id;
	for (i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		void *pc = (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn);

		watch_marks(insn, on_start, on_stop);
		qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, pc);
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_plugin_info *info, int argc,
			char **argv)
{
	marks_init(info);
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "lines: needs out=FILE\n");
		return -1;
	}
	out = strdup(argv[0] + 4);
	lines = calloc(SLOTS, sizeof(*lines));
	sites = calloc(SLOTS, sizeof(*sites));
	if (!out || !lines || !sites)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
