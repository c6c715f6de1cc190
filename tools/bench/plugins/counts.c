// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A plugin for QEMU that counts how often a CPU executes each instruction, between the marks of the
 * program in the machine (mark.h). At the end, the counts are written to the file of the plugin's
 * argument out=, those of one run after the other:
 *
 *	run
 *	INSTRUCTION TIMES
 *
 * with the address of the instruction. An address may come several times. Numbers are hexadecimal.
 * Counted is the CPU that began: others are the machine's.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marked.h"
#include "qemu.h"

/* An instruction; those that QEMU translates again come again. */
struct count {
	struct count *next;
	uint64_t pc, times;
};

int qemu_plugin_version = PLUGIN_VERSION;

static struct count *counts;
static atomic_uint watched;	/* number of the CPU, and 1; 0: none */
static const char *out;

static void on_execute(unsigned int cpu, void *arg)
{
	struct count *count = arg;

	if (atomic_load_explicit(&watched, memory_order_relaxed) == cpu + 1)
		count->times++;
}

static void on_start(unsigned int cpu, void *arg)
{
	(void)arg;
	atomic_store(&watched, cpu + 1);
}

static void on_stop(unsigned int cpu, void *arg)
{
	struct count *count;
	FILE *file;

	(void)cpu;
	(void)arg;
	if (!atomic_exchange(&watched, 0))
		return;
	file = fopen(out, "a");
	if (!file) {
		perror(out);
		return;
	}
	fprintf(file, "run\n");
	for (count = __atomic_load_n(&counts, __ATOMIC_ACQUIRE); count; count = count->next) {
		if (count->times)
			fprintf(file, "%llx %llx\n", (unsigned long long)count->pc,
				(unsigned long long)count->times);
		count->times = 0;
	}
	fclose(file);
}

static struct count *count_new(uint64_t pc)
{
	struct count *count = calloc(1, sizeof(*count));

	if (!count)
		abort();
	count->pc = pc;
	count->next = __atomic_load_n(&counts, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&counts, &count->next, count, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return count;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i;

	(void)id;
	for (i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		watch_marks(insn, on_start, on_stop);
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_execute, QEMU_PLUGIN_CB_NO_REGS,
						       count_new(qemu_plugin_insn_vaddr(insn)));
	}
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_plugin_info *info, int argc,
			char **argv)
{
	marks_init(info);
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "counts: needs out=FILE\n");
		return -1;
	}
	out = strdup(argv[0] + 4);
	if (!out)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
