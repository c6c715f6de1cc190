// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The threads of a device, and the cgroups that they are in. A crew is a set of threads with one
 * queue. A device has its own crew, for work that belongs to no process and for processes in the
 * root cgroups. For other processes a device has a crew in each set of cgroups. All contexts of
 * processes in the set share the crew, which ends with the last of these contexts. So a process
 * pays for its rings, and its limits hold, also when threads run the rings.
 *
 * Crews begin and end in process context, with no lock of the engine held: starting a thread and
 * moving it to its cgroups waits for memory, and for locks of the kernel.
 */

#include <linux/cgroup.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "engine/crew.h"
#include "engine/run.h"
#include "engine/threads.h"

static unsigned int engine_threads = 4;
module_param(engine_threads, uint, 0444);
MODULE_PARM_DESC(engine_threads, "most engine threads that a device has, and has for each cgroup; never more than CPUs (default 4)");

/*
 * Join the crew's cgroups. A thread of the device's own crew stays in the root cgroups, and its
 * allocations start no I/O: it serves consumers over which the kernel writes memory out, such as
 * NVMe and NFS. What other crews allocate is charged to their processes, as in their own calls.
 */
static void thread_begin(struct vrnic_crew *crew)
{
	if (crew->owner) {
		crew->err = cgroup_attach_task_all(crew->owner, current);
		set_active_memcg(crew->memcg);
	} else {
		memalloc_noio_save();
	}
	complete(&crew->joined);
}

static int crew_thread(void *arg)
{
	struct vrnic_thread *thread = arg;

	thread_begin(thread->crew);
	vrnic_crew_turns(thread);
	set_active_memcg(NULL);
	return 0;
}

static int thread_start(struct vrnic_crew *crew)
{
	struct vrnic_thread *thread = &crew->threads[crew->nr];
	struct task_struct *task;

	thread->crew = crew;
	INIT_LIST_HEAD(&thread->idle);
	task = kthread_create(crew_thread, thread, "%s/%u", crew->engine->name, crew->nr);
	if (IS_ERR(task))
		return PTR_ERR(task);
	thread->task = task;
	crew->nr++;
	wake_up_process(task);
	wait_for_completion(&crew->joined);
	return crew->err;
}

/*
 * End the threads. Every runnable of the crew is parked for good by now. A thread moves to the root
 * cgroups before it ends, because an ended thread stays in its cgroups for a while. So the crew's
 * cgroups can be removed at once, and the thread ends even if they get no CPU time.
 */
static void crew_stop(struct vrnic_crew *crew)
{
	struct vrnic_crew *own = crew->engine->own;
	unsigned int i;

	WARN_ON(!list_empty(&crew->queue));
	for (i = 0; i < crew->nr; i++) {
		if (crew != own)
			cgroup_attach_task_all(own->threads[0].task, crew->threads[i].task);
		kthread_stop(crew->threads[i].task);
	}
	crew->nr = 0;
}

static void crew_free(struct vrnic_crew *crew)
{
	mem_cgroup_put(crew->memcg);
	kfree(crew);
}

static struct vrnic_crew *crew_alloc(struct vrnic_engine *engine)
{
	struct vrnic_crew *crew;

	crew = kzalloc(struct_size(crew, threads, engine->threads), GFP_KERNEL_ACCOUNT);
	if (!crew)
		return NULL;
	crew->engine = engine;
	spin_lock_init(&crew->lock);
	INIT_LIST_HEAD(&crew->queue);
	INIT_LIST_HEAD(&crew->idle);
	init_completion(&crew->joined);
	return crew;
}

static int crew_start(struct vrnic_crew *crew)
{
	int err = 0;

	while (!err && crew->nr < crew->engine->threads)
		err = thread_start(crew);
	return err;
}

/* ---- crews of processes ---- */

/* Is @task in the same cgroups as the caller, in all hierarchies? */
static bool in_my_cgroups(const struct task_struct *task)
{
#ifdef CONFIG_CGROUPS
	/* only compared, never followed: tasks in the same cgroups share one struct css_set */
	return rcu_access_pointer(task->cgroups) == rcu_access_pointer(current->cgroups);
#else
	return true;
#endif
}

static struct vrnic_crew *crew_find(struct vrnic_engine *engine)
{
	struct vrnic_crew *crew;

	lockdep_assert_held(&engine->lock);
	if (in_my_cgroups(engine->own->threads[0].task))
		return engine->own;
	list_for_each_entry(crew, &engine->crews, link) {
		if (crew->refs && in_my_cgroups(crew->threads[0].task)) {
			crew->refs++;
			return crew;
		}
	}
	return NULL;
}

/* May @uid have one more crew? Without a bound, a user with many cgroups could take all crews. */
static bool crew_may_add(struct vrnic_engine *engine, kuid_t uid)
{
	unsigned int nr = 0, of_user = 0;
	struct vrnic_crew *crew;

	lockdep_assert_held(&engine->lock);
	list_for_each_entry(crew, &engine->crews, link) {
		nr++;
		of_user += uid_eq(crew->uid, uid);
	}
	return nr < VRNIC_MAX_CREWS &&
	       (of_user < VRNIC_MAX_USER_CREWS || uid_eq(uid, GLOBAL_ROOT_UID));
}

/* Count @crew from now on, if it may be added. crew_find() skips it while it has no references. */
static bool crew_announce(struct vrnic_crew *crew)
{
	struct vrnic_engine *engine = crew->engine;
	bool may;

	spin_lock(&engine->lock);
	may = crew_may_add(engine, crew->uid);
	if (may)
		list_add(&crew->link, &engine->crews);
	spin_unlock(&engine->lock);
	return may;
}

static void crew_end(struct vrnic_crew *crew)
{
	struct vrnic_engine *engine = crew->engine;

	crew_stop(crew);
	spin_lock(&engine->lock);
	list_del(&crew->link);
	spin_unlock(&engine->lock);
	crew_free(crew);
}

static struct vrnic_crew *crew_new(struct vrnic_engine *engine)
{
	struct vrnic_crew *crew = crew_alloc(engine);
	int err;

	if (!crew)
		return ERR_PTR(-ENOMEM);
	crew->uid = current_uid();
	crew->memcg = get_mem_cgroup_from_mm(current->mm);
	if (!crew_announce(crew)) {
		crew_free(crew);
		return ERR_PTR(-ENOMEM);
	}
	crew->owner = current;
	err = crew_start(crew);
	crew->owner = NULL;
	if (err) {
		crew_end(crew);
		return ERR_PTR(err);
	}
	return crew;
}

/* Make @new the crew of its cgroups, unless another task was faster: then end @new. */
static struct vrnic_crew *crew_add(struct vrnic_engine *engine, struct vrnic_crew *new)
{
	struct vrnic_crew *crew;

	spin_lock(&engine->lock);
	crew = crew_find(engine);
	if (!crew) {
		new->refs = 1;
		crew = new;
	}
	spin_unlock(&engine->lock);
	if (crew != new)
		crew_end(new);
	return crew;
}

/**
 * vrnic_crew_get() - find or start the crew in the cgroups of the calling process
 * @engine: a device's engine
 *
 * Return: a crew, for vrnic_crew_put(), or an ERR_PTR(): -ENOMEM: no memory, or too many crews; or
 * the reason why a thread cannot be created or cannot join the cgroups.
 * Context: a process; may sleep.
 */
struct vrnic_crew *vrnic_crew_get(struct vrnic_engine *engine)
{
	struct vrnic_crew *crew;

	might_sleep();
	spin_lock(&engine->lock);
	crew = crew_find(engine);
	spin_unlock(&engine->lock);
	if (crew)
		return crew;
	crew = crew_new(engine);
	return IS_ERR(crew) ? crew : crew_add(engine, crew);
}

/**
 * vrnic_crew_put() - a context is closed, and needs its crew no more
 * @crew: the crew; the runnables of this context are parked for good
 *
 * If this was the crew's last context, its threads end before this returns.
 * Context: a process; may sleep.
 */
void vrnic_crew_put(struct vrnic_crew *crew)
{
	struct vrnic_engine *engine = crew->engine;
	bool last;

	might_sleep();
	if (crew == engine->own)
		return;
	spin_lock(&engine->lock);
	last = !--crew->refs;
	spin_unlock(&engine->lock);
	if (last)
		crew_end(crew);
}

/* ---- the engine of a device ---- */

/* How many threads each crew has. */
unsigned int vrnic_engine_threads(void)
{
	return clamp(engine_threads, 1U, num_online_cpus());
}

/**
 * vrnic_engine_start() - start a device's threads
 * @engine: to be filled in
 * @name: the device's name, for the threads' names
 * @threads: number of threads in each crew
 *
 * Return: 0 or a negative errno.
 */
int vrnic_engine_start(struct vrnic_engine *engine, const char *name, unsigned int threads)
{
	int err;

	spin_lock_init(&engine->lock);
	INIT_LIST_HEAD(&engine->crews);
	engine->threads = threads;
	strscpy(engine->name, name, sizeof(engine->name));
	engine->own = crew_alloc(engine);
	if (!engine->own)
		return -ENOMEM;
	err = crew_start(engine->own);
	if (err)
		vrnic_engine_stop(engine);
	return err;
}

/* End a device's threads. Every context is closed, and every runnable is parked for good. */
void vrnic_engine_stop(struct vrnic_engine *engine)
{
	WARN_ON(!list_empty(&engine->crews));
	crew_stop(engine->own);
	crew_free(engine->own);
	engine->own = NULL;
}
