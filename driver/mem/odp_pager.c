// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The pager: brings pages of regions in, when a run needs them or a program asks for them. */

#include <linux/memcontrol.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "mem/odp_chunk.h"
#include "mem/seg.h"
#include "vrnic.h"

#define ASK_BYTES	SZ_2M		/* most that a run asks for at once */
#define BAD_FRESH	(HZ / 100 + 1)	/* a waiting run looks again by then, without an RNR NAK */

/* A page-in that somebody has asked for. */
struct page_in {
	struct work_struct work;
	struct vrnic_odp *odp;
	u64 off;
	u64 len;
	enum vrnic_odp_how how;
	unsigned long *asked;	/* entry in vrnic_odp.asked */
	bool run;		/* a run has asked, and wants to hear if it fails */
};

/* Number of page-ins that have begun, of all regions. */
static atomic64_t begun = ATOMIC64_INIT(0);

/* Its works may wait for a disk, or for a process that serves faults itself. */
static struct workqueue_struct *pager;

int vrnic_odp_init(void)
{
	pager = alloc_workqueue("vrnic_pager", WQ_UNBOUND, WQ_MAX_ACTIVE);
	return pager ? 0 : -ENOMEM;
}

/* Called when there is no device any more, which page-ins keep. */
void vrnic_odp_exit(void)
{
	destroy_workqueue(pager);
}

void vrnic_odp_queue(struct rcu_work *work)
{
	queue_rcu_work(pager, work);
}

static bool is_fresh(const struct vrnic_bad_page *bad)
{
	return time_before_eq(jiffies, bad->at + BAD_FRESH);
}

/*
 * The entry for a page: its own, or a free one, or any that runs have had the time to look at; or
 * NULL. Any, not the oldest: when more pages than entries are looked at in turn, the oldest entry
 * is the next one that is looked for, each time.
 */
static struct vrnic_bad_page *bad_entry(struct vrnic_odp *odp, unsigned long page)
{
	struct vrnic_bad_page *bad, *stale = NULL;
	unsigned int first = get_random_u32(), i;

	for (i = 0; i < VRNIC_ODP_BAD; i++) {
		bad = &odp->bad[(first + i) % VRNIC_ODP_BAD];
		if (bad->number && bad->page == page)
			return bad;
		if (!bad->number || (!stale && !is_fresh(bad)))
			stale = bad;
	}
	return stale;
}

/*
 * Note a page that could not be brought in. If there is no room, the run that waits asks again. The
 * note of a page-in that began later stays.
 */
static void note_bad(struct vrnic_odp *odp, unsigned long va, bool write, u64 number)
{
	unsigned long page = (va & PAGE_MASK) | (write ? VRNIC_TO_WRITE : 0);
	struct vrnic_bad_page *bad;

	spin_lock_bh(&odp->run_lock);
	bad = bad_entry(odp, page);
	if (bad && (bad->page != page || bad->number < number))
		*bad = (struct vrnic_bad_page){ .page = page, .number = number, .at = jiffies };
	spin_unlock_bh(&odp->run_lock);
}

/*
 * Does a page-in that failed still count? If that was not just now, the page may be there by now,
 * so the operation asks once more. If the next page-in fails, too, that one counts whenever the
 * operation looks: for datagrams that come seldom, it would be too late each time.
 */
static bool still_bad(const struct vrnic_bad_page *bad, struct vrnic_page_wait *wait)
{
	if (wait->again || is_fresh(bad))
		return true;
	wait->again = true;
	wait->since = atomic64_read(&begun);
	return false;
}

/* Has a page-in failed that began after the wait did? */
static bool was_bad(const struct vrnic_odp *odp, struct vrnic_page_wait *wait)
{
	const struct vrnic_bad_page *bad;

	for (bad = odp->bad; bad < odp->bad + VRNIC_ODP_BAD; bad++)
		if (bad->page == wait->page && bad->number > wait->since)
			return still_bad(bad, wait);
	return false;
}

/**
 * vrnic_odp_is_bad() - can the page that an operation waits for not be brought in?
 * @odp: pages of the region
 * @va: address in the page
 * @write: it is to be written
 * @wait: the operation's wait, which begins here if it was for another page
 *
 * Only a page-in that began after the wait tells. One that was asked for earlier, and found nothing
 * there, may have come before the process mapped the page.
 */
bool vrnic_odp_is_bad(struct vrnic_odp *odp, unsigned long va, bool write,
		      struct vrnic_page_wait *wait)
{
	unsigned long page = (va & PAGE_MASK) | (write ? VRNIC_TO_WRITE : 0);
	bool bad = false;

	spin_lock_bh(&odp->run_lock);
	if (wait->odp == odp && wait->page == page)
		bad = was_bad(odp, wait);
	else
		*wait = (struct vrnic_page_wait){
			.odp = odp, .page = page, .since = atomic64_read(&begun),
		};
	spin_unlock_bh(&odp->run_lock);
	if (bad)
		wait->odp = NULL;
	return bad;
}

/*
 * Bring the pages of [@va, @end) in that are in the chunk of @va. Return: the end of those that are
 * there now, or an errno if the first one is not.
 */
static long page_in_some(struct vrnic_odp *odp, unsigned long va, unsigned long end,
			 enum vrnic_odp_how how)
{
	struct vrnic_chunk *c = vrnic_chunk_need(odp, va);
	int err;

	if (IS_ERR(c))
		return PTR_ERR(c);
	end = min(end, vrnic_chunk_end(c));
	err = vrnic_chunk_page_in(c, va, end, how);
	if (err && end > va + PAGE_SIZE) {
		/* those behind it may be the reason: the first need not be */
		end = va + PAGE_SIZE;
		err = vrnic_chunk_page_in(c, va, end, how);
	}
	vrnic_chunk_unuse(c);
	return err ?: (long)end;
}

/*
 * Bring pages of a region in. @off: offset from the beginning of the region's first page. Return:
 * 0, or a negative errno: pages from *@bad on are not there.
 */
static int page_in(struct vrnic_odp *odp, u64 off, u64 len, enum vrnic_odp_how how,
		   unsigned long *bad)
{
	unsigned long va = (odp->va + off) & PAGE_MASK;
	unsigned long end = PAGE_ALIGN(odp->va + off + len);
	long ret = 0;

	vrnic_count(to_vdev(odp->ibdev), ODP_PAGE_INS);
	*bad = va;
	/* what is in no process, or wraps around */
	if (end < va || end > (unsigned long)LONG_MAX)
		return -EFAULT;
	for (; va < end; va = ret) {
		ret = fatal_signal_pending(current) ? -EINTR : page_in_some(odp, va, end, how);
		if (ret < 0)
			break;
		cond_resched();
	}
	*bad = va;
	return ret < 0 ? ret : 0;
}

/**
 * vrnic_odp_page_in() - bring pages of a region in
 * @odp: pages of the region
 * @off: offset from the beginning of the region's first page
 * @len: bytes
 * @how: for what
 *
 * Return: 0, or a negative errno: pages from some page on are not there.
 * Context: may sleep for long; the caller has no reference on the region.
 */
int vrnic_odp_page_in(struct vrnic_odp *odp, u64 off, u64 len, enum vrnic_odp_how how)
{
	unsigned long bad;

	return page_in(odp, off, len, how, &bad);
}

/* Has the process no such page? */
static bool is_fault(int err)
{
	return err == -EFAULT || err == -EPERM || err == -EINVAL || err == -EOVERFLOW;
}

static void asked_done(struct vrnic_odp *odp, unsigned long *asked)
{
	spin_lock_bh(&odp->run_lock);
	*asked = VRNIC_NO_PAGE;
	spin_unlock_bh(&odp->run_lock);
}

/* Do the page-in, at the cost of the process that has the memory. */
static void page_in_work(struct work_struct *work)
{
	struct page_in *p = container_of(work, struct page_in, work);
	struct vrnic_odp *odp = p->odp;
	struct ib_device *ibdev = odp->ibdev;
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(odp->mm);
	struct mem_cgroup *before = set_active_memcg(memcg);
	u64 number = atomic64_inc_return(&begun);
	unsigned long bad;
	int err;

	err = page_in(odp, p->off, p->len, p->how, &bad);
	set_active_memcg(before);
	mem_cgroup_put(memcg);
	if (p->run && is_fault(err))
		note_bad(odp, bad, p->how == VRNIC_ODP_WRITE, number);
	asked_done(odp, p->asked);
	kfree(p);
	vrnic_odp_put(odp);
	ib_device_put(ibdev);
}

/*
 * Note that @page is asked for. Return: the entry; NULL: it was asked for, or all entries are used.
 */
static unsigned long *asked_new(struct vrnic_odp *odp, unsigned long page)
{
	unsigned long *free = NULL;
	unsigned int i;

	spin_lock_bh(&odp->run_lock);
	for (i = 0; i < VRNIC_ODP_ASKED; i++) {
		if (odp->asked[i] == page) {
			free = NULL;
			break;
		}
		if (odp->asked[i] == VRNIC_NO_PAGE)
			free = &odp->asked[i];
	}
	if (free)
		*free = page;
	spin_unlock_bh(&odp->run_lock);
	return free;
}

/* Queue a page-in. The device does not go before it is done. Return: 0 or a negative errno. */
static int page_in_queue(const struct page_in *what, gfp_t gfp)
{
	struct page_in *p;

	p = kmemdup(what, sizeof(*p), gfp);
	if (!p)
		return -ENOMEM;
	if (!ib_device_try_get(p->odp->ibdev)) {
		kfree(p);
		return -ENODEV;
	}
	kref_get(&p->odp->refs);
	INIT_WORK(&p->work, page_in_work);
	queue_work(pager, &p->work);
	return 0;
}

/* As page_in_queue(), unless the same is under way, or too much. */
static int page_in_ask(struct page_in *what, gfp_t gfp)
{
	unsigned long page = (what->odp->va + what->off) & PAGE_MASK;
	int err;

	if (what->how == VRNIC_ODP_WRITE)
		page |= VRNIC_TO_WRITE;
	what->asked = asked_new(what->odp, page);
	if (!what->asked)
		return -EBUSY;
	err = page_in_queue(what, gfp);
	if (err)
		asked_done(what->odp, what->asked);
	return err;
}

/**
 * vrnic_odp_page_in_later() - have the pager bring pages of a region in
 * @odp: pages of the region
 * @off: offset from the beginning of the region's first page
 * @len: bytes
 * @how: for what
 *
 * Return: 0 or a negative errno: -EBUSY: the pager has enough to do for this region.
 */
int vrnic_odp_page_in_later(struct vrnic_odp *odp, u64 off, u64 len, enum vrnic_odp_how how)
{
	struct page_in what = { .odp = odp, .off = off, .len = len, .how = how };

	return page_in_ask(&what, GFP_KERNEL_ACCOUNT);
}

/**
 * vrnic_odp_ask() - a run needs pages
 * @odp: pages of the region
 * @off: offset from the beginning of the region's first page
 * @len: bytes
 * @write: to write to them; else to read
 *
 * If that cannot be asked now, the run asks again when it tries again.
 */
void vrnic_odp_ask(struct vrnic_odp *odp, u64 off, u64 len, bool write)
{
	struct page_in what = {
		.odp = odp,
		.off = off,
		.len = min_t(u64, len, ASK_BYTES),
		.how = write ? VRNIC_ODP_WRITE : VRNIC_ODP_READ,
		.run = true,
	};

	page_in_ask(&what, GFP_ATOMIC | __GFP_NOWARN);
}
