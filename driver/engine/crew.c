// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whose threads there are. A device has a crew of its own for what is no process's, or of
 * processes in the root cgroups. What others leave to threads is done in their own
 * cgroups: by a crew for each set of cgroups, which the contexts of all processes there
 * share, and which ends with the last of them. So whoever posts pays, and is limited,
 * wherever his rings are run.
 *
 * Crews begin and end in process context, without any lock: a thread is made, and joins
 * its cgroups, when memory and others' locks allow.
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

#include "engine/run.h"

static unsigned int engine_threads = 4;
module_param(engine_threads, uint, 0444);
MODULE_PARM_DESC(engine_threads, "most engine threads that a device has, and has for each cgroup; never more than CPUs (default 4)");

/*
 * The device's own crew serves consumers that memory is written out over, NVMe and NFS: what
 * it allocates for others does not wait for that. What another one allocates is its owner's,
 * who waits for memory as he does in his own calls.
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
 * Every runnable is parked for good by now. A thread leaves its cgroups before it ends, not a
 * while after that: then they can be removed, and it ends even if they get no CPU time.
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

/* Is @task in the same cgroups as the caller, of all hierarchies? */
static bool in_my_cgroups(const struct task_struct *task)
{
#ifdef CONFIG_CGROUPS
	/* only compared: there is one set for those who are in the same */
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

/* No user with many cgroups, of a subtree of his own, takes the crews of all others. */
static bool has_room(struct vrnic_engine *engine, kuid_t uid)
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

/* It counts from now on, and nobody finds it before it has references. */
static bool crew_announce(struct vrnic_crew *crew)
{
	struct vrnic_engine *engine = crew->engine;
	bool room;

	spin_lock(&engine->lock);
	room = has_room(engine, crew->uid);
	if (room)
		list_add(&crew->link, &engine->crews);
	spin_unlock(&engine->lock);
	return room;
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
	if (!err)
		return crew;
	crew_end(crew);
	return ERR_PTR(err);
}

/* A thread of the same cgroups may have been faster. */
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
 * vrnic_crew_get() - the threads in the caller's cgroups
 * @engine: a device's
 *
 * Return: a crew, for vrnic_crew_put(), or an ERR_PTR(): -ENOMEM, also if there are too
 * many, or why a thread cannot be in the cgroups. Context: a process; may sleep.
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
 * vrnic_crew_put() - somebody needs it no more
 * @crew: what he runs is parked for good
 *
 * With the last one its threads go, before this returns. Context: a process; may sleep.
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

/* ---- of a device ---- */

/* How many threads a crew has. */
unsigned int vrnic_engine_threads(void)
{
	return clamp(engine_threads, 1U, num_online_cpus());
}

/**
 * vrnic_engine_start() - start a device's threads
 * @engine: filled in
 * @name: the device's name, for the threads' names
 * @threads: of each crew
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

/* Every context is closed, and what is left to run is parked for good. */
void vrnic_engine_stop(struct vrnic_engine *engine)
{
	WARN_ON(!list_empty(&engine->crews));
	crew_stop(engine->own);
	crew_free(engine->own);
	engine->own = NULL;
}
