/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Taking completions, in the ordinary and in the extended way. */
#ifndef VRNIC_PROVIDER_CQ_H
#define VRNIC_PROVIDER_CQ_H

#include "vrnic.h"

/* Fields that ibv_create_cq_ex() offers. */
#define VRNIC_CQ_EX_FIELDS	(IBV_WC_STANDARD_FLAGS |		     \
				 IBV_WC_EX_WITH_FLOW_TAG |		     \
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |	     \
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

void vrnic_cq_init(struct vrnic_cq *cq, bool one_thread);
void vrnic_cq_fini(struct vrnic_cq *cq);

/**
 * vrnic_ring_peek_cqe() - look at a completion
 * @ring: a completion ring
 * @i: index of the entry
 *
 * Return: the entry, or NULL if the kernel has not written it yet.
 */
static inline struct vrnic_cqe *
vrnic_ring_peek_cqe(const struct vrnic_ring *ring, uint32_t i)
{
	struct vrnic_cqe *cqe = vrnic_ring_slot(ring, i);
	uint32_t valid = 1 + !!(i & ring->entries);

	/* C1: acquire of phase before the entry is read, with the kernel's release of it */
	if (__atomic_load_n(&cqe->phase, __ATOMIC_ACQUIRE) != valid)
		return NULL;
	return cqe;
}

/* Take @lock, which is one of @cq's, when no thread resizes @cq. */
static inline void vrnic_cq_lock(struct vrnic_cq *cq, struct vrnic_lock *lock)
{
	vrnic_gate_lock(&cq->gate, lock);
}

/* The arm word asks for an event, or has. The caller holds @cq->arm_lock. */
static inline void vrnic_cq_note_armed(struct vrnic_cq *cq)
{
	/* A1: release the count after the arm word; the acquire is in vrnic_cq_note_raised() */
	__atomic_store_n(&cq->arms, cq->arms + 1, __ATOMIC_RELEASE);
}

/**
 * vrnic_cq_arm() - ask for an event
 * @cq: the completion queue, whose arm_lock the caller holds
 * @solicited: only at a solicited or failed completion
 */
static inline void vrnic_cq_arm(struct vrnic_cq *cq, bool solicited)
{
	vrnic_ring_arm(&cq->ring, solicited);
	vrnic_cq_note_armed(cq);
}

/* Note it if all events that were asked for have come. The caller holds @cq->lock. */
static inline void vrnic_cq_note_raised(struct vrnic_cq *cq)
{
	/* A1 */
	uint32_t arms = __atomic_load_n(&cq->arms, __ATOMIC_ACQUIRE);

	if (arms != cq->raised && !vrnic_ring_is_armed(&cq->ring))
		__atomic_store_n(&cq->raised, arms, __ATOMIC_RELAXED);
}

/* Is an event asked for that has not come, as far as polls have noted? Needs no lock. */
static inline bool vrnic_cq_is_armed(const struct vrnic_cq *cq)
{
	return __atomic_load_n(&cq->arms, __ATOMIC_RELAXED) !=
	       __atomic_load_n(&cq->raised, __ATOMIC_RELAXED);
}

/**
 * struct vrnic_sides - the sides of queue pairs that complete into a completion queue
 * @older: the table that this one replaced, which polls may still be reading
 * @mask: number of slots, less one
 * @used: slots that are not NULL
 * @slot: a side lies in the slot of its key modulo the size, or in the next free one
 */
struct vrnic_sides {
	struct vrnic_sides *older;
	uint32_t mask;
	uint32_t used;
	struct vrnic_polled *slot[];
};

void vrnic_sides_free(struct vrnic_cq *cq);

/* QP numbers have 24 bits, so the key fits. None is 0, so only an emptied slot has key 0. */
static inline uint32_t vrnic_polled_key(uint32_t qpn, enum vrnic_side side)
{
	return qpn << 1 | side;
}

/*
 * Find the side of a queue pair with @key. The caller holds @cq->lock, so no table is freed, but
 * sides may be added meanwhile. Return: NULL if no side with @key is counted.
 */
static inline struct vrnic_polled *vrnic_cq_find(const struct vrnic_cq *cq,
						 uint32_t key)
{
	/* D2: acquire of the table and of a slot, with sides_grow() and sides_put() */
	const struct vrnic_sides *sides =
		__atomic_load_n(&cq->sides, __ATOMIC_ACQUIRE);
	struct vrnic_polled *polled;
	uint32_t i = key;

	if (!sides)
		return NULL;
	while ((polled = __atomic_load_n(&sides->slot[i & sides->mask],
					 __ATOMIC_ACQUIRE))) {
		if (polled->key == key)
			break;
		i++;
	}
	return polled;
}

/* The request of @cqe and those before it are not under way any more. Caller holds @cq->lock. */
static inline void vrnic_cq_retire(struct vrnic_cq *cq,
				   const struct vrnic_cqe *cqe)
{
	bool send = cqe->flags & VRNIC_CQE_SEND;
	struct vrnic_polled *polled =
		vrnic_cq_find(cq, vrnic_polled_key(cqe->qpn, send));

	if (!polled)
		return;
	/* D1: release, so that a post that sees the count sees the ring's free slots, too */
	__atomic_store_n(&polled->done, send ? cqe->sq_done : polled->done + 1,
			 __ATOMIC_RELEASE);
}

/**
 * vrnic_cq_take() - take the next completion
 * @cq: the completion queue, locked
 *
 * Return: a copy, which may be read until the next one is taken; NULL if there is none.
 */
static inline const struct vrnic_cqe *vrnic_cq_take(struct vrnic_cq *cq)
{
	const struct vrnic_cqe *cqe = vrnic_ring_peek_cqe(&cq->ring, cq->ring.next);

	if (!cqe)
		return NULL;
	cq->ring.next++;
	cq->copy = *cqe;
	/* give the entry back first: a thread that sees the count may post and need the entry */
	vrnic_ring_release(&cq->ring);
	vrnic_cq_retire(cq, &cq->copy);
	return &cq->copy;
}

#define VRNIC_IDLE_POLLS	16	/* polls in vain before another process gets its turn */

/* Count a poll. Return: should this thread, on its only CPU, yield? Caller holds @cq->lock. */
static inline bool vrnic_cq_should_yield(struct vrnic_cq *cq, bool empty)
{
	if (!empty) {
		cq->idle = 0;
		return false;
	}
	__atomic_store_n(&cq->vain, cq->vain + 1, __ATOMIC_RELAXED);
	return ++cq->idle % VRNIC_IDLE_POLLS == 0 &&
	       to_vctx(cq->vcq.cq.context)->one_cpu;
}

/**
 * vrnic_cq_unlock() - end a poll; ring doorbells that are due, if it was in vain
 * @cq: the completion queue, whose lock the caller holds
 * @empty: the poll found nothing
 *
 * If there is one CPU only, the process that is to bring the completion cannot run while this
 * thread spins. Without the yield, two processes that poll for each other would spend a timer
 * tick, some milliseconds, on each message.
 */
static inline void vrnic_cq_unlock(struct vrnic_cq *cq, bool empty)
{
	bool yield = vrnic_cq_should_yield(cq, empty);

	vrnic_cq_note_raised(cq);
	vrnic_unlock(&cq->lock);
	if (empty)
		vrnic_doorbell_flush(to_vctx(cq->vcq.cq.context));
	if (yield)
		sched_yield();
}

#endif /* VRNIC_PROVIDER_CQ_H */
