/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Deliberate faults, for tests of programs: Documentation/fault-injection.rst. This file decides
 * whether an event (a packet, a request ...) fails; the code that has the event decides how.
 */
#ifndef VRNIC_FAULT_H
#define VRNIC_FAULT_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/jump_label.h>
#include <linux/mutex.h>
#include <linux/skbuff.h>
#include <linux/types.h>

struct dentry;
struct vrnic_dev;
struct vrnic_qp;

/* One line for each kind: its name in the code, its folder, and the name of its own file or "". */
#define VRNIC_FAULTS(X)				\
	X(DROP,		"drop",		"")	\
	X(CORRUPT,	"corrupt",	"")	\
	X(DELAY,	"delay",	"us")	\
	X(REORDER,	"reorder",	"us")	\
	X(DUPLICATE,	"duplicate",	"")	\
	X(RNR,		"rnr",		"")	\
	X(COMPLETION,	"completion",	"status")	\
	X(LINK,		"link",		"")

#define X(sym, folder, own) VRNIC_FAULT_##sym,
enum vrnic_fault_kind { VRNIC_FAULTS(X) VRNIC_FAULT_NR };
#undef X

/**
 * struct vrnic_fault - one kind of fault of a device
 * @all: faults of the device
 * @probability: percent; 0: not armed. Written with @all->lock held. This member and those below
 *	are read without a lock
 * @interval: only one event in this many may fail
 * @space: number of events that pass before any may fail
 * @times: number of faults that are left; negative: no limit
 * @own: value of the kind's own file: microseconds, or enum ib_wc_status
 * @seen: events since the fault was armed, or the seed was set
 * @injected: how many of these events failed
 */
struct vrnic_fault {
	struct vrnic_faults *all;
	u32 probability;
	u32 interval;
	u32 space;
	atomic_t times;
	u32 own;
	atomic64_t seen;
	atomic64_t injected;
};

/**
 * struct vrnic_faults - faults of a device
 * @lock: serialises arming and disarming
 * @seed: decides which events fail, together with their numbers
 * @qpn: only events of the queue pair with this number may fail; 0: of any queue pair
 * @kind: by enum vrnic_fault_kind
 * @late: packets that are delayed, in the order in which they are due
 * @timer: fires when the first of @late is due
 * @dir: the device's folder in debugfs
 */
struct vrnic_faults {
	struct mutex lock;		/* serialises arming and disarming */
	u64 seed;
	u32 qpn;
	struct vrnic_fault kind[VRNIC_FAULT_NR];
	struct sk_buff_head late;
	struct hrtimer timer;
	struct dentry *dir;
};

/* True if at least one kind of fault of one device is armed. */
DECLARE_STATIC_KEY_FALSE(vrnic_faults_armed);

bool vrnic_fault_strikes(struct vrnic_qp *qp, enum vrnic_fault_kind kind);
u32 vrnic_fault_own(const struct vrnic_qp *qp, enum vrnic_fault_kind kind);

/**
 * vrnic_fault() - decide whether an event fails
 * @qp: queue pair that has the event
 * @kind: kind of fault
 *
 * Return: true if the event is to fail.
 * Context: any.
 */
static inline bool vrnic_fault(struct vrnic_qp *qp, enum vrnic_fault_kind kind)
{
	return static_branch_unlikely(&vrnic_faults_armed) &&
	       vrnic_fault_strikes(qp, kind);
}

void vrnic_faults_init(void);
void vrnic_faults_exit(void);
int vrnic_faults_alloc(struct vrnic_dev *dev);
void vrnic_faults_free(struct vrnic_dev *dev);
void vrnic_faults_show(struct vrnic_dev *dev);
void vrnic_faults_drop(struct vrnic_dev *dev);

#endif /* VRNIC_FAULT_H */
