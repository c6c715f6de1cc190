// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters of queue pairs, `rdma statistic qp`. The administrator binds queue pairs to a counter,
 * or makes a rule by which the core does so. The counter has what they count while they are bound.
 *
 * Each queue pair counts all the time, in fields of its own (struct vrnic_qp). A counter is the sum
 * of these counts and of a base. Binding a queue pair takes what it has counted until then from the
 * base, and unbinding adds what it has counted until then.
 *
 * The core takes the port's statistics for those of the queue pairs that have no counter. It adds
 * all counters to them, those of the past included. So vrnic_get_hw_stats() takes the same sum
 * away.
 *
 * Adding up takes as long as there are queue pairs, so the lock of a counter is a mutex. The core
 * holds a mutex of its own around every call for a counter, and any reader of statistics makes such
 * calls, so a spinlock here would spare nobody a wait. The core does not serialise two calls that
 * bind one queue pair to two counters.
 */

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "base/stats.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "verbs/verbs.h"
#include "vrnic.h"

/* The statistics that queue pairs have. */
enum qp_stat {
	QP_STAT_DESCRIPTORS,
	QP_STAT_XMIT_BYTES,
	QP_STAT_RCVD_BYTES,
	QP_STAT_SENT_PKTS,
	QP_STAT_RCVD_PKTS,
	QP_STAT_RETRANSMITTED_PKTS,
	QP_STAT_ACK_TIMEOUTS,
	QP_STAT_RETRIES,
	QP_STAT_RNR_WAITS,
	QP_STAT_SEND_RNR_ERR,
	QP_STAT_LOCAL_ERRORS,
	QP_STAT_REMOTE_ERRORS,
	QP_STAT_FLUSHED,
	QP_STAT_NR,
};

static_assert(QP_STAT_NR == VRNIC_QP_STAT_NR);

static const enum vrnic_stat stat_of[QP_STAT_NR] = {
	[QP_STAT_DESCRIPTORS] = VRNIC_STAT_DESCRIPTORS,
	[QP_STAT_XMIT_BYTES] = VRNIC_STAT_XMIT_BYTES,
	[QP_STAT_RCVD_BYTES] = VRNIC_STAT_RCVD_BYTES,
	[QP_STAT_SENT_PKTS] = VRNIC_STAT_SENT_PKTS,
	[QP_STAT_RCVD_PKTS] = VRNIC_STAT_RCVD_PKTS,
	[QP_STAT_RETRANSMITTED_PKTS] = VRNIC_STAT_RETRANSMITTED_PKTS,
	[QP_STAT_ACK_TIMEOUTS] = VRNIC_STAT_ACK_TIMEOUTS,
	[QP_STAT_RETRIES] = VRNIC_STAT_RETRIES,
	[QP_STAT_RNR_WAITS] = VRNIC_STAT_RNR_WAITS,
	[QP_STAT_SEND_RNR_ERR] = VRNIC_STAT_SEND_RNR_ERR,
	[QP_STAT_LOCAL_ERRORS] = VRNIC_STAT_LOCAL_ERRORS,
	[QP_STAT_REMOTE_ERRORS] = VRNIC_STAT_REMOTE_ERRORS,
	[QP_STAT_FLUSHED] = VRNIC_STAT_FLUSHED,
};

/**
 * struct vrnic_qp_counter - a counter, beside the core's struct rdma_counter
 * @refs: one reference of vrnic_dev.counters, one of each queue pair that is bound to it, and one
 *	of each reader: cores without rdma_restrack_begin_del() read counters that they release
 * @lock: protects what follows
 * @qps: queue pairs that are bound to it
 * @base: what to add to their counts
 */
struct vrnic_qp_counter {
	struct kref refs;
	struct mutex lock;	/* protects all below */
	struct list_head qps;
	u64 base[QP_STAT_NR];
};

static void read_counts(u64 *count, const struct vrnic_qp *qp)
{
	count[QP_STAT_DESCRIPTORS] = VRNIC_PEEK(qp->descriptors);
	count[QP_STAT_XMIT_BYTES] = VRNIC_PEEK(qp->xmit_bytes) + VRNIC_PEEK(qp->target_xmit);
	count[QP_STAT_RCVD_BYTES] = VRNIC_PEEK(qp->rcvd_bytes) + VRNIC_PEEK(qp->target_rcvd) +
				    VRNIC_PEEK(qp->read_bytes);
	count[QP_STAT_SENT_PKTS] = VRNIC_PEEK(qp->sent_pkts);
	count[QP_STAT_RCVD_PKTS] = VRNIC_PEEK(qp->rcvd_pkts);
	count[QP_STAT_RETRANSMITTED_PKTS] = VRNIC_PEEK(qp->rare.retransmitted_pkts);
	count[QP_STAT_ACK_TIMEOUTS] = VRNIC_PEEK(qp->rare.ack_timeouts);
	count[QP_STAT_RETRIES] = VRNIC_PEEK(qp->rare.retries);
	count[QP_STAT_RNR_WAITS] = VRNIC_PEEK(qp->rare.rnr_waits);
	count[QP_STAT_SEND_RNR_ERR] = VRNIC_PEEK(qp->target_rnr);
	count[QP_STAT_LOCAL_ERRORS] = VRNIC_PEEK(qp->rare.local_errors);
	count[QP_STAT_REMOTE_ERRORS] = VRNIC_PEEK(qp->target_errors);
	count[QP_STAT_FLUSHED] = VRNIC_PEEK(qp->rare.flushed);
}

/* Add @sign times what @qp has counted to @sum. */
static void add_counts(u64 *sum, const struct vrnic_qp *qp, s64 sign)
{
	u64 count[QP_STAT_NR];
	unsigned int i;

	read_counts(count, qp);
	for (i = 0; i < QP_STAT_NR; i++)
		sum[i] += sign * count[i];
}

/* Add what the counter has to @sum. */
static void add_counter(u64 *sum, struct vrnic_qp_counter *c)
{
	const struct vrnic_qp *qp;
	unsigned int i;

	mutex_lock(&c->lock);
	for (i = 0; i < QP_STAT_NR; i++)
		sum[i] += c->base[i];
	list_for_each_entry(qp, &c->qps, counted) {
		add_counts(sum, qp, 1);
		cond_resched();
	}
	mutex_unlock(&c->lock);
}

static void qp_counter_free(struct kref *kref)
{
	kfree(container_of(kref, struct vrnic_qp_counter, refs));
}

static struct vrnic_qp_counter *qp_counter_new(struct vrnic_dev *dev, u32 *id)
{
	struct vrnic_qp_counter *c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	int err;

	if (!c)
		return ERR_PTR(-ENOMEM);
	kref_init(&c->refs);
	mutex_init(&c->lock);
	INIT_LIST_HEAD(&c->qps);
	err = xa_alloc(&dev->counters, id, c, xa_limit_32b, GFP_KERNEL_ACCOUNT);
	if (err) {
		kfree(c);
		return ERR_PTR(err);
	}
	return c;
}

/* Return: counter @id with a reference held, or NULL. */
static struct vrnic_qp_counter *qp_counter_get(struct vrnic_dev *dev, u32 id)
{
	struct vrnic_qp_counter *c;

	xa_lock(&dev->counters);
	c = xa_load(&dev->counters, id);
	if (c)
		kref_get(&c->refs);
	xa_unlock(&dev->counters);
	return c;
}

/* The queue pair takes over the reference. Return: false if it is bound already. */
static bool qp_counter_add(struct vrnic_qp_counter *c, struct vrnic_qp *qp)
{
	bool added;

	mutex_lock(&c->lock);
	added = !cmpxchg(&qp->counter, NULL, c);
	if (added) {
		add_counts(c->base, qp, -1);
		list_add(&qp->counted, &c->qps);
	}
	mutex_unlock(&c->lock);
	return added;
}

/* What the queue pair has counted while it was bound stays in its counter. */
static void qp_counter_remove(struct vrnic_qp *qp)
{
	struct vrnic_qp_counter *c = READ_ONCE(qp->counter);

	mutex_lock(&c->lock);
	add_counts(c->base, qp, 1);
	list_del_init(&qp->counted);
	mutex_unlock(&c->lock);
	WRITE_ONCE(qp->counter, NULL);
	kref_put(&c->refs, qp_counter_free);
}

/* Return: 0; -EBUSY: @qp is bound already; -EINVAL; -ENOMEM. */
static int qp_counter_bind(struct rdma_counter *counter, struct vrnic_qp *qp)
{
	bool first = !counter->id;
	struct vrnic_qp_counter *c;

	if (first) {
		c = qp_counter_new(qp->dev, &counter->id);
		if (IS_ERR(c))
			return PTR_ERR(c);
	}
	c = qp_counter_get(qp->dev, counter->id);
	if (!c)
		return -EINVAL;
	if (qp_counter_add(c, qp))
		return 0;
	kref_put(&c->refs, qp_counter_free);
	/* the core forgets a counter without its first queue pair, and does not say so */
	if (first)
		vrnic_qp_counter_dealloc(counter);
	return -EBUSY;
}

/**
 * vrnic_qp_counter_bind() - from now on, let a counter count what a queue pair counts
 * @counter: the core's part, and its lock is held; without a number at the first call
 * @ibqp: queue pair; see vrnic_qp_of()
 *
 * Return: 0; -EBUSY: @ibqp is bound already; -EINVAL: it is being destroyed; -ENOMEM.
 */
int vrnic_qp_counter_bind(struct rdma_counter *counter, struct ib_qp *ibqp)
{
	struct vrnic_qp *qp = vrnic_qp_of(ibqp);
	int err;

	if (!qp)
		return -EINVAL;
	err = qp_counter_bind(counter, qp);
	if (!err)
		WRITE_ONCE(ibqp->counter, counter);
	vrnic_qp_put(qp);
	return err;
}

/* The core holds the lock of the counter. Return: 0 or -EINVAL. */
int vrnic_qp_counter_unbind(struct ib_qp *ibqp)
{
	struct vrnic_qp *qp = vrnic_qp_of(ibqp);
	int err = -EINVAL;

	if (!qp)
		return -EINVAL;
	if (READ_ONCE(qp->counter)) {
		WRITE_ONCE(ibqp->counter, NULL);
		qp_counter_remove(qp);
		err = 0;
	}
	vrnic_qp_put(qp);
	return err;
}

/**
 * vrnic_qp_counter_leave() - take a queue pair that ends out of its counter
 * @qp: queue pair, which nobody can find any more
 *
 * The core unbinds a queue pair before it has it destroyed, but older ones may bind it anew then.
 */
void vrnic_qp_counter_leave(struct vrnic_qp *qp)
{
	if (READ_ONCE(qp->counter))
		qp_counter_remove(qp);
}

/* The core has unbound all queue pairs, and has added what they counted to the port's past. */
int vrnic_qp_counter_dealloc(struct rdma_counter *counter)
{
	struct vrnic_dev *dev = to_vdev(counter->device);
	struct vrnic_qp_counter *c;
	unsigned int i;

	xa_lock(&dev->counters);
	c = __xa_erase(&dev->counters, counter->id);
	for (i = 0; c && i < QP_STAT_NR; i++)
		dev->counted[i] += c->base[i];
	xa_unlock(&dev->counters);
	counter->id = 0;
	if (c)
		kref_put(&c->refs, qp_counter_free);
	return 0;
}

/*
 * The core reads the statistics of a counter by the indices of those of the port, so both have the
 * same. Those that queue pairs do not have are disabled, which hides them.
 */
struct rdma_hw_stats *vrnic_qp_counter_alloc_stats(struct rdma_counter *counter)
{
	struct rdma_hw_stats *stats = vrnic_alloc_hw_stats(counter->device, counter->port);
	unsigned int i;

	if (!stats)
		return NULL;
	bitmap_fill(stats->is_disabled, VRNIC_STAT_NR);
	for (i = 0; i < QP_STAT_NR; i++)
		__clear_bit(stat_of[i], stats->is_disabled);
	return stats;
}

int vrnic_qp_counter_update_stats(struct rdma_counter *counter)
{
	struct vrnic_qp_counter *c = qp_counter_get(to_vdev(counter->device), counter->id);
	u64 sum[QP_STAT_NR] = {};
	unsigned int i;

	if (!c)
		return -EINVAL;
	add_counter(sum, c);
	kref_put(&c->refs, qp_counter_free);
	for (i = 0; i < QP_STAT_NR; i++)
		counter->stats->value[stat_of[i]] = sum[i];
	return 0;
}

/* Find the first counter from number @id on. Return: it, with a reference held, or NULL. */
static struct vrnic_qp_counter *qp_counter_from(struct vrnic_dev *dev, unsigned long *id)
{
	struct vrnic_qp_counter *c;

	xa_lock(&dev->counters);
	c = xa_find(&dev->counters, id, ULONG_MAX, XA_PRESENT);
	if (c)
		kref_get(&c->refs);
	xa_unlock(&dev->counters);
	return c;
}

/* The sum of all counters that there are and were. */
static void all_counters(struct vrnic_dev *dev, u64 *sum)
{
	struct vrnic_qp_counter *c;
	unsigned long id;

	xa_lock(&dev->counters);
	memcpy(sum, dev->counted, sizeof(dev->counted));
	xa_unlock(&dev->counters);
	for (id = 0; (c = qp_counter_from(dev, &id)); id++) {
		add_counter(sum, c);
		kref_put(&c->refs, qp_counter_free);
	}
}

/**
 * vrnic_get_hw_stats() - read the statistics of the port, without what counters have
 * @ibdev: device
 * @stats: to be filled in
 * @port: 1; 0: the device itself, which has none
 * @index: not used: all are read
 *
 * The core adds the counters afterwards. The port's statistics are read first here, so that no sum
 * is larger than what there is when the core has added all, whatever is counted meanwhile. Only a
 * counter that ends between the two readings of all_counters() may be in one answer twice.
 *
 * Return: number of statistics, or -EINVAL.
 */
int vrnic_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct vrnic_dev *dev = to_vdev(ibdev);
	u64 counted[QP_STAT_NR];
	unsigned int i;

	if (!port || !stats)
		return -EINVAL;
	for (i = 0; i < VRNIC_STAT_NR; i++)
		stats->value[i] = vrnic_stat_sum(dev, i);
	all_counters(dev, counted);
	for (i = 0; i < QP_STAT_NR; i++)
		stats->value[stat_of[i]] -= counted[i];
	return VRNIC_STAT_NR;
}
