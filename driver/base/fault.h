/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Faults on purpose, so that programs can be tried on a bad network, with a slow
 * peer and with requests that fail: Documentation/fault-injection.rst. This file
 * decides whether an event is to go wrong; how, is up to whoever asks.
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

/* One line a kind: name here, name of its folder, its own file or "". */
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
 * @all: what it is one of
 * @probability: percent; 0: none. Written with @all->lock held; as what follows,
 *	read without any
 * @interval: only every so many events may go wrong
 * @space: events that are left alone first
 * @times: how many faults are left; negative: no limit
 * @own: microseconds, or enum ib_wc_status
 * @seen: events since it was armed
 * @injected: those of them that went wrong
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
 * @lock: serialises those who arm and disarm
 * @seed: decides, with the number of the event, what goes wrong
 * @qpn: only events of the queue pair with this number; 0: of any
 * @kind: by enum vrnic_fault_kind
 * @late: packets that are held up, in the order in which they are due
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

/* Some kind of some device is armed. */
DECLARE_STATIC_KEY_FALSE(vrnic_faults_armed);

bool vrnic_fault_strikes(struct vrnic_qp *qp, enum vrnic_fault_kind kind);
u32 vrnic_fault_own(const struct vrnic_qp *qp, enum vrnic_fault_kind kind);

/**
 * vrnic_fault() - is this event to go wrong?
 * @qp: queue pair that it happens to
 * @kind: in which way
 *
 * Context: any.
 */
static inline bool vrnic_fault(struct vrnic_qp *qp, enum vrnic_fault_kind kind)
{
	return static_branch_unlikely(&vrnic_faults_armed) &&
	       vrnic_fault_strikes(qp, kind);
}

void vrnic_faults_init(void);
void vrnic_faults_exit(void);
void vrnic_faults_setup(struct vrnic_dev *dev);
void vrnic_faults_show(struct vrnic_dev *dev);
void vrnic_faults_drop(struct vrnic_dev *dev);

#endif /* VRNIC_FAULT_H */
