// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Progress of several contexts in one call.
 *
 * One context is locked at a time, so calls for the same contexts in another order cannot block
 * each other for ever. The caller names the contexts in each call, and the library keeps no list of
 * them: so they may be of several clients, and a thread may name others than the next one does.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "lib.h"

/**
 * struct tour - one call for several contexts
 * @contexts: what the caller named
 * @count: how many
 * @skip: leave out contexts that other threads advance
 * @first: index of the context that a round begins with
 * @turn: the latest vrnic_context.turn of all
 * @max: callbacks and handlers that may be called
 * @made: how many were called
 * @skipped: how many contexts the last round left out
 * @error: the first one
 */
struct tour {
	struct vrnic_context *const *contexts;
	size_t count;
	bool skip;
	size_t first;
	uint64_t turn;
	int max;
	int made;
	size_t skipped;
	int error;
};

/*
 * Begin with the context whose turn is the longest ago: if @max is smaller than @count, the last
 * contexts of a round get nothing, and are the first ones in the next call.
 */
static void find_first(struct tour *t)
{
	uint64_t turn, oldest = UINT64_MAX;
	size_t i;

	for (i = 0; i < t->count; i++) {
		turn = __atomic_load_n(&t->contexts[i]->turn, __ATOMIC_RELAXED);
		if (turn < oldest) {
			oldest = turn;
			t->first = i;
		}
		if (turn > t->turn)
			t->turn = turn;
	}
}

/* What is left, shared out among this context and the others of the round, @nr in all. */
static int share(const struct tour *t, size_t nr)
{
	/* one record may end several transfers, so more than @max may have been called */
	size_t left = t->made < t->max ? (size_t)(t->max - t->made) : 0;

	return (int)((left + nr - 1) / nr);
}

/* Give @ctx its turn, with @max callbacks. Return: true if it has called as many. */
static bool visit(struct tour *t, struct vrnic_context *ctx, int max)
{
	int ret = vrnic_advance_one(ctx, max, t->skip);

	if (ret == -EBUSY) {
		t->skipped++;
		return false;
	}
	if (ret < 0) {
		if (!t->error)
			t->error = ret;
		return false;
	}
	if (max)
		__atomic_store_n(&ctx->turn, ++t->turn, __ATOMIC_RELAXED);
	t->made += ret;
	return max && ret >= max;
}

/*
 * Advance each context once, also with a share of 0, because operations move on then.
 *
 * Return: true if one of them may have more to deliver.
 */
static bool go_round(struct tour *t)
{
	bool more = false;
	size_t i;

	t->skipped = 0;
	for (i = 0; i < t->count; i++)
		more |= visit(t, t->contexts[(t->first + i) % t->count],
			      share(t, t->count - i));
	return more;
}

static bool args_fit(struct vrnic_context *const *contexts, size_t count, int max)
{
	size_t i;

	if (!contexts || !count || max < 0)
		return false;
	for (i = 0; i < count; i++)
		if (!contexts[i])
			return false;
	return true;
}

/*
 * A first round gives each context its share. What some did not need, others get in further
 * rounds, as long as one of them used up its share.
 */
static int advance_all(struct vrnic_context *const *contexts, size_t count, int max, bool skip)
{
	struct tour t = { .contexts = contexts, .count = count, .max = max, .skip = skip };

	find_first(&t);
	while (go_round(&t) && t.made < max)
		;
	if (t.error)
		return t.error;
	return !t.made && t.skipped == count ? -EBUSY : t.made;
}

VRNIC_EXPORT
int vrnic_advance_contexts(struct vrnic_context *const *contexts, unsigned int count, int max)
{
	return args_fit(contexts, count, max) ? advance_all(contexts, count, max, false) : -EINVAL;
}

VRNIC_EXPORT
int vrnic_advance_contexts_try(struct vrnic_context *const *contexts, unsigned int count, int max)
{
	return args_fit(contexts, count, max) ? advance_all(contexts, count, max, true) : -EINVAL;
}

/* ---- sleeping ---- */

#define GONE_NS		1000000000ULL
#define NS_PER_S	1000000000ULL
#define FEW		16	/* their struct pollfd lie on the stack */

static bool any_pending(struct vrnic_context *const *contexts, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (vrnic_ring_pending(&contexts[i]->receive))
			return true;
	return false;
}

/*
 * Ask for the events of all contexts. Return: how long the thread may sleep at most, 0: there is a
 * record. No event comes when the device goes, so look for that every GONE_NS. No event announces
 * room in an injection ring.
 */
static uint64_t arm_all(struct vrnic_context *const *contexts, size_t count)
{
	uint64_t most = GONE_NS;
	size_t i;

	for (i = 0; i < count; i++) {
		if (vrnic_context_rearm(contexts[i]))
			return 0;
		if (vrnic_is_queued(contexts[i]))
			most = VRNIC_QUEUED_NS;
	}
	return most;
}

/* Return: 0: the caller has to look again; or a negative errno. */
static int sleep_once(struct vrnic_context *const *contexts, size_t count, struct pollfd *fds,
		      uint64_t deadline)
{
	uint64_t left = vrnic_left(deadline), most;
	struct timespec timeout;

	if (!left)
		return -ETIME;
	most = arm_all(contexts, count);
	if (left > most)
		left = most;
	timeout = (struct timespec){
		.tv_sec = (time_t)(left / NS_PER_S),
		.tv_nsec = (long)(left % NS_PER_S),
	};
	return left && ppoll(fds, count, &timeout, NULL) < 0 ? -errno : 0;
}

static int advance_wait(struct vrnic_context *const *contexts, size_t count, int max,
			struct pollfd *fds, uint64_t deadline)
{
	int ret;

	for (;;) {
		ret = advance_all(contexts, count, max, false);
		/* with @max 0 nobody takes the record that ends the wait */
		if (ret || (!max && any_pending(contexts, count)))
			return ret;
		ret = sleep_once(contexts, count, fds, deadline);
		if (ret)
			return ret;
	}
}

VRNIC_EXPORT
int vrnic_advance_contexts_wait(struct vrnic_context *const *contexts, unsigned int count, int max,
				uint64_t timeout_ns)
{
	uint64_t deadline = vrnic_deadline(timeout_ns);
	struct pollfd few[FEW], *fds = few;
	unsigned int i;
	int ret;

	if (!args_fit(contexts, count, max))
		return -EINVAL;
	if (count > FEW)
		fds = calloc(count, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = contexts[i]->eventfd, .events = POLLIN };
	ret = advance_wait(contexts, count, max, fds, deadline);
	if (fds != few)
		free(fds);
	return ret;
}
