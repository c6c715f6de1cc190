// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Groups of counters: one word says which of up to 64 counters are done (S4.6).
 *
 * The kernel sets the bits of counters that fall to zero, or fail. The threads that raise or set a
 * counter clear its bits here. driver/native/counter_group.c shows why this needs no lock.
 */

#include <errno.h>
#include <stdlib.h>

#include "lib.h"

/* ---- objects ---- */

/* Caller holds the client's lock. */
static int map_words(struct vrnic_counter_group *group, const struct vrnic_create_group_resp *resp)
{
	int ret;

	if (!resp->group)
		return -EPROTO;
	ret = vrnic_page_map(group->client, resp->offset, resp->cell, &group->page);
	if (ret)
		return ret;
	group->words = vrnic_page_piece(group->page, resp->cell);
	group->number = resp->group;
	return 0;
}

/* Hold the lock from making to mapping, so that no thread unmaps the page in between. */
static int create_in_kernel(struct vrnic_counter_group *group)
{
	static const struct vrnic_create_group_req req;
	struct vrnic_client *client = group->client;
	struct vrnic_create_group_resp resp;
	int ret;

	pthread_mutex_lock(&client->lock);
	ret = vrnic_uv_group_create(client, &req, &resp, &group->handle);
	if (!ret) {
		ret = map_words(group, &resp);
		if (ret)
			vrnic_uv_destroy(client, VRNIC_OBJECT_GROUP, group->handle);
		else
			client->users++;
	}
	pthread_mutex_unlock(&client->lock);
	/* the core's answer if the module is older, and has no such object */
	return ret == -EPROTONOSUPPORT ? -EOPNOTSUPP : ret;
}

VRNIC_EXPORT
int vrnic_counter_group_create(struct vrnic_client *client, uint32_t flags,
			       struct vrnic_counter_group **group)
{
	struct vrnic_counter_group *made;
	int ret;

	if (!client || !group || flags)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->client = client;
	made->refs = 1;
	ret = create_in_kernel(made);
	if (ret) {
		free(made);
		return ret;
	}
	*group = made;
	return 0;
}

static void group_get(struct vrnic_counter_group *group)
{
	__atomic_fetch_add(&group->refs, 1, __ATOMIC_RELAXED);
}

/* Drop a reference. The last one frees the group. @group may be NULL. */
void vrnic_group_put(struct vrnic_counter_group *group)
{
	struct vrnic_client *client;

	if (!group || __atomic_sub_fetch(&group->refs, 1, __ATOMIC_ACQ_REL))
		return;
	client = group->client;
	pthread_mutex_lock(&client->lock);
	vrnic_page_unmap(client, group->page);
	client->users--;
	pthread_mutex_unlock(&client->lock);
	free(group);
}

VRNIC_EXPORT
int vrnic_counter_group_destroy(struct vrnic_counter_group *group)
{
	int ret;

	if (!group)
		return -EINVAL;
	/* the kernel refuses while counters are in the group */
	ret = vrnic_uv_destroy(group->client, VRNIC_OBJECT_GROUP, group->handle);
	if (!ret)
		vrnic_group_put(group);
	return ret;
}

/* Note that the group has a counter with this bit, or does not. @cell: may have no group. */
void vrnic_group_member(const struct vrnic_cell *cell, bool there)
{
	if (!cell->group)
		return;
	if (there)
		__atomic_fetch_or(&cell->group->members, cell->bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&cell->group->members, ~cell->bit, __ATOMIC_RELAXED);
}

VRNIC_EXPORT
int vrnic_counter_create_in(struct vrnic_counter_group *group, uint32_t bit, uint32_t flags,
			    struct vrnic_counter **counter)
{
	int ret;

	if (!group || bit >= VRNIC_GROUP_COUNTERS)
		return -EINVAL;
	group_get(group);
	ret = vrnic_counter_make(group->client, group, flags, bit, counter);
	if (ret)
		vrnic_group_put(group);
	else
		vrnic_group_member((*counter)->cell, true);
	return ret;
}

/* ---- the words ---- */

static bool is_done(const struct vrnic_cell *cell)
{
	return vrnic_cell_remaining(cell) <= 0 || vrnic_cell_errors(cell);
}

static bool bit_of(const __u64 *word, uint64_t bit)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) & bit;
}

/* Is what the bits say true? */
static bool bits_fit(const struct vrnic_cell *cell)
{
	const struct vrnic_group_cell *words = cell->group->words;

	return bit_of(&words->done, cell->bit) == is_done(cell) &&
	       bit_of(&words->failed, cell->bit) == !!vrnic_cell_errors(cell);
}

static void clear(__u64 *word, uint64_t bit)
{
	if (!bit_of(word, bit))
		return;
	__atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);	/* G3 */
}

/**
 * vrnic_group_changed() - a counter in a group was raised or set
 * @cell: its cell
 *
 * When this returns, the counter's bits are right, as far as this thread's change goes. The kernel,
 * or another thread, may change counter and bits meanwhile.
 */
void vrnic_group_changed(struct vrnic_cell *cell)
{
	struct vrnic_group_cell *words = cell->group->words;
	uint32_t turn;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);	/* G1 */
	turn = __atomic_load_n(&cell->mem->turn, __ATOMIC_ACQUIRE);	/* G2 */
	if (!is_done(cell))
		clear(&words->done, cell->bit);
	if (!vrnic_cell_errors(cell))
		clear(&words->failed, cell->bit);
	if (turn & 1 || !bits_fit(cell))
		vrnic_counter_tell(cell);
}

VRNIC_EXPORT
const uint64_t *vrnic_counter_group_word(const struct vrnic_counter_group *group)
{
	return (const void *)&group->words->done;
}

VRNIC_EXPORT
uint64_t vrnic_counter_group_read(const struct vrnic_counter_group *group, uint64_t *failed)
{
	/* N1; done before failed: the kernel sets them in the other order */
	uint64_t done = __atomic_load_n(&group->words->done, __ATOMIC_ACQUIRE);

	if (failed)
		*failed = __atomic_load_n(&group->words->failed, __ATOMIC_ACQUIRE);
	if (~done & __atomic_load_n(&group->members, __ATOMIC_RELAXED))
		vrnic_uv_looked_in_vain(group->client);
	return done;
}

/* ---- waiting ---- */

/* Return: 0: the wait is over; -EIO: a counter has failed; 1: neither. */
static int verdict(const struct vrnic_wait_group *wait)
{
	if (wait->failed)
		return -EIO;
	if (wait->flags & VRNIC_WAIT_ALL)
		return wait->done != wait->mask;
	return !wait->done;
}

static int look(const struct vrnic_counter_group *group, struct vrnic_wait_group *wait)
{
	uint64_t failed;

	wait->done = vrnic_counter_group_read(group, &failed) & wait->mask;
	wait->failed = failed & wait->mask;
	return verdict(wait);
}

static int sleep_until(struct vrnic_counter_group *group, struct vrnic_wait_group *wait,
		       uint64_t deadline)
{
	int ret;

	wait->timeout_ns = vrnic_left(deadline);
	if (!wait->timeout_ns)
		return -ETIME;
	ret = vrnic_uv_wait_group(group->client, wait);
	/* the bits had counters before: one has gone since */
	if (ret == -EINVAL)
		return -ECANCELED;
	/* what the kernel says of the counters counts, not the words, which may follow later */
	return ret ? ret : verdict(wait);
}

/* As for a single counter, see counter.c. */
#define SPINS	1000

static int spin(struct vrnic_counter_group *group, struct vrnic_wait_group *wait)
{
	int i, ret = look(group, wait);

	if (group->client->one_cpu)
		return ret;
	for (i = 0; i < SPINS && ret > 0; i++)
		ret = look(group, wait);
	return ret;
}

static int wait_for(struct vrnic_counter_group *group, struct vrnic_wait_group *wait,
		    uint64_t timeout_ns)
{
	int ret = look(group, wait);

	if (ret <= 0)
		return ret;
	if (!timeout_ns)
		return -ETIME;
	group_get(group);
	ret = spin(group, wait);
	if (ret > 0)
		ret = sleep_until(group, wait, vrnic_deadline(timeout_ns));
	vrnic_group_put(group);
	return ret;
}

VRNIC_EXPORT
int vrnic_counter_group_wait(struct vrnic_counter_group *group, uint64_t mask, uint32_t flags,
			     uint64_t timeout_ns, uint64_t *done)
{
	struct vrnic_wait_group wait = { .mask = mask, .flags = flags };
	int ret;

	if (!group || !mask || flags & ~VRNIC_WAIT_ALL ||
	    mask & ~__atomic_load_n(&group->members, __ATOMIC_RELAXED))
		return -EINVAL;
	wait.group = group->number;
	ret = wait_for(group, &wait, timeout_ns);
	if (done)
		*done = wait.done;
	return ret;
}
