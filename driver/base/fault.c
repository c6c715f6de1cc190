// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fault injection: the settings that root makes in debugfs, and the dice. Probability, interval,
 * space and times have the names and meanings of the kernel's own fault injection, which
 * distributions do not build.
 *
 * Events of a kind are numbered. Besides the settings, only the seed, the kind and n decide whether
 * the n-th event fails, so the same traffic meets the same faults again.
 */

#include <linux/debugfs.h>
#include <linux/random.h>
#include <linux/siphash.h>

#include "base/fault.h"
#include "queue/qp.h"
#include "vrnic.h"

#define US_DEFAULT	1000
#define US_MAX		(10 * USEC_PER_SEC)

DEFINE_STATIC_KEY_FALSE(vrnic_faults_armed);

static struct dentry *root;

static const struct {
	const char *folder;
	const char *own;
} kinds[] = {
#define X(sym, folder_name, own_name) { folder_name, own_name },
	VRNIC_FAULTS(X)
#undef X
};

/* ---- the dice ---- */

static bool fault_chance(const struct vrnic_faults *all, enum vrnic_fault_kind kind,
			 u64 n, u32 percent)
{
	const siphash_key_t key = { { READ_ONCE(all->seed), 0 } };

	return reciprocal_scale(siphash_2u64(kind, n, &key), 100) < percent;
}

static bool take_one(atomic_t *times)
{
	return atomic_read(times) < 0 || atomic_dec_if_positive(times) >= 0;
}

/* The number that the consumer knows: 1 for a GSI queue pair. */
static u32 shown_qpn(const struct vrnic_qp *qp)
{
	return qp->type == IB_QPT_GSI ? 1 : qp->qpn;
}

/* The slow path of vrnic_fault(): at least one kind of fault of one device is armed. */
bool vrnic_fault_strikes(struct vrnic_qp *qp, enum vrnic_fault_kind kind)
{
	struct vrnic_faults *all = qp->dev->faults;
	struct vrnic_fault *f = &all->kind[kind];
	u32 percent = READ_ONCE(f->probability);
	u32 only = READ_ONCE(all->qpn), space;
	u64 n;

	if (!percent || (only && only != shown_qpn(qp)))
		return false;
	n = atomic64_inc_return(&f->seen);
	space = READ_ONCE(f->space);
	if (n <= space || (n - space) % READ_ONCE(f->interval))
		return false;
	if (!fault_chance(all, kind, n, percent) || !take_one(&f->times))
		return false;
	atomic64_inc(&f->injected);
	vrnic_count(qp->dev, FAULTS_INJECTED);
	return true;
}

/* The value of the file that only this kind has: microseconds, or enum ib_wc_status. */
u32 vrnic_fault_own(const struct vrnic_qp *qp, enum vrnic_fault_kind kind)
{
	return READ_ONCE(qp->dev->faults->kind[kind].own);
}

/* ---- files ---- */

/* Count from zero: the next event is the first. */
static void fault_restart(struct vrnic_fault *f)
{
	atomic64_set(&f->seen, 0);
	atomic64_set(&f->injected, 0);
}

static void set_probability(struct vrnic_fault *f, u32 percent)
{
	mutex_lock(&f->all->lock);
	if (percent && !f->probability)
		static_branch_inc(&vrnic_faults_armed);
	else if (!percent && f->probability)
		static_branch_dec(&vrnic_faults_armed);
	/* a fault that is disarmed keeps its counts, so that they can be read */
	if (percent)
		fault_restart(f);
	WRITE_ONCE(f->probability, percent);
	mutex_unlock(&f->all->lock);
}

static int probability_set(void *data, u64 val)
{
	if (val > 100)
		return -EINVAL;
	set_probability(data, val);
	return 0;
}

static int probability_get(void *data, u64 *val)
{
	*val = READ_ONCE(((struct vrnic_fault *)data)->probability);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(probability_fops, probability_get, probability_set,
			 "%llu\n");

static int interval_set(void *data, u64 val)
{
	if (!val || val > U32_MAX)
		return -EINVAL;
	WRITE_ONCE(((struct vrnic_fault *)data)->interval, val);
	return 0;
}

static int interval_get(void *data, u64 *val)
{
	*val = READ_ONCE(((struct vrnic_fault *)data)->interval);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(interval_fops, interval_get, interval_set, "%llu\n");

static int own_get(void *data, u64 *val)
{
	*val = READ_ONCE(((struct vrnic_fault *)data)->own);
	return 0;
}

static int us_set(void *data, u64 val)
{
	if (!val || val > US_MAX)
		return -EINVAL;
	WRITE_ONCE(((struct vrnic_fault *)data)->own, val);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(us_fops, own_get, us_set, "%llu\n");

static int status_set(void *data, u64 val)
{
	if (val == IB_WC_SUCCESS || val > IB_WC_GENERAL_ERR)
		return -EINVAL;
	WRITE_ONCE(((struct vrnic_fault *)data)->own, val);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(status_fops, own_get, status_set, "%llu\n");

static int count_get(void *data, u64 *val)
{
	*val = atomic64_read(data);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(count_fops, count_get, NULL, "%llu\n");

static int seed_set(void *data, u64 val)
{
	struct vrnic_faults *all = data;
	unsigned int i;

	WRITE_ONCE(all->seed, val);
	for (i = 0; i < VRNIC_FAULT_NR; i++)
		fault_restart(&all->kind[i]);
	return 0;
}

static int seed_get(void *data, u64 *val)
{
	*val = READ_ONCE(((struct vrnic_faults *)data)->seed);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(seed_fops, seed_get, seed_set, "%llu\n");

static void show_kind(struct vrnic_fault *f, enum vrnic_fault_kind kind,
		      struct dentry *parent)
{
	struct dentry *dir = debugfs_create_dir(kinds[kind].folder, parent);

	debugfs_create_file_unsafe("probability", 0600, dir, f,
				   &probability_fops);
	debugfs_create_file_unsafe("interval", 0600, dir, f, &interval_fops);
	debugfs_create_u32("space", 0600, dir, &f->space);
	debugfs_create_atomic_t("times", 0600, dir, &f->times);
	debugfs_create_file_unsafe("seen", 0400, dir, &f->seen, &count_fops);
	debugfs_create_file_unsafe("injected", 0400, dir, &f->injected,
				   &count_fops);
	if (*kinds[kind].own)
		debugfs_create_file_unsafe(kinds[kind].own, 0600, dir, f,
					   kind == VRNIC_FAULT_COMPLETION ?
						   &status_fops : &us_fops);
}

/**
 * vrnic_faults_show() - make the debugfs files of a device
 * @dev: device; it has its name already
 *
 * Without debugfs there are no files, and no faults. The core enables a device again when the
 * device moves to another network namespace. The device keeps its files then.
 */
void vrnic_faults_show(struct vrnic_dev *dev)
{
	struct vrnic_faults *all = dev->faults;
	struct dentry *dir;
	unsigned int i;

	if (!IS_ERR_OR_NULL(all->dir))
		return;
	all->dir = debugfs_create_dir(dev_name(&dev->ibdev.dev), root);
	dir = debugfs_create_dir("fault", all->dir);
	debugfs_create_file_unsafe("seed", 0600, dir, all, &seed_fops);
	debugfs_create_u32("qpn", 0600, dir, &all->qpn);
	for (i = 0; i < VRNIC_FAULT_NR; i++)
		show_kind(&all->kind[i], i, dir);
}

/**
 * vrnic_faults_alloc() - allocate the fault settings of a device, with no fault armed
 * @dev: device
 *
 * Return: 0 or -ENOMEM.
 */
int vrnic_faults_alloc(struct vrnic_dev *dev)
{
	struct vrnic_faults *all = kzalloc(sizeof(*all), GFP_KERNEL);
	unsigned int i;

	if (!all)
		return -ENOMEM;
	mutex_init(&all->lock);
	all->seed = get_random_u32();
	for (i = 0; i < VRNIC_FAULT_NR; i++) {
		all->kind[i].all = all;
		all->kind[i].interval = 1;
		all->kind[i].own = US_DEFAULT;
		atomic_set(&all->kind[i].times, -1);
	}
	all->kind[VRNIC_FAULT_COMPLETION].own = IB_WC_GENERAL_ERR;
	dev->faults = all;
	return 0;
}

void vrnic_faults_free(struct vrnic_dev *dev)
{
	kfree(dev->faults);
}

/**
 * vrnic_faults_drop() - remove the debugfs files of a device, and disarm its faults
 * @dev: device
 */
void vrnic_faults_drop(struct vrnic_dev *dev)
{
	unsigned int i;

	/* waits for processes that use one of the files, so none of them arms a fault again */
	debugfs_remove(dev->faults->dir);
	for (i = 0; i < VRNIC_FAULT_NR; i++)
		set_probability(&dev->faults->kind[i], 0);
}

void vrnic_faults_init(void)
{
	root = debugfs_create_dir("vrnic", NULL);
}

void vrnic_faults_exit(void)
{
	debugfs_remove(root);
}
