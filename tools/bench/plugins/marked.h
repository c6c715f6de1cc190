/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How plugins find the marks of a program. */
#ifndef MARKED_H
#define MARKED_H

#include <stdbool.h>
#include <string.h>

#include "mark.h"
#include "qemu.h"

static bool copies;	/* QEMU 9.1 copies an instruction's bytes for the caller */

static inline void marks_init(const struct qemu_plugin_info *info)
{
	copies = info->version.cur >= 3;
}

static inline bool is_mark(const struct qemu_plugin_insn *insn, const char *wanted)
{
	size_t (*copy)(const struct qemu_plugin_insn *insn, void *to, size_t n) =
		(void *)qemu_plugin_insn_data;
	uint8_t bytes[MARK_BYTES];

	if (qemu_plugin_insn_size(insn) != MARK_BYTES)
		return false;
	if (copies)
		copy(insn, bytes, sizeof(bytes));
	else
		memcpy(bytes, qemu_plugin_insn_data(insn), sizeof(bytes));
	return !memcmp(bytes, wanted, sizeof(bytes));
}

/* Call @start or @stop whenever the instruction is executed, if it is a mark. */
static inline void watch_marks(struct qemu_plugin_insn *insn, qemu_plugin_exec_cb start,
			       qemu_plugin_exec_cb stop)
{
	if (is_mark(insn, MARK_START_BYTES))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, start, QEMU_PLUGIN_CB_NO_REGS, NULL);
	else if (is_mark(insn, MARK_STOP_BYTES))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, stop, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

#endif /* MARKED_H */
