// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters. They lie in pages that the kernel divides into cells. A client maps a page once,
 * however many of its cells it has.
 */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib.h"

/**
 * struct vrnic_counter_page - a page of counters
 * @next: in its bucket
 * @offset: by which the kernel knows it
 * @cells: the mapping
 * @users: counters in it
 *
 * All protected by the client's lock.
 */
struct vrnic_counter_page {
	struct vrnic_counter_page *next;
	uint64_t offset;
	struct vrnic_counter_cell *cells;
	unsigned int users;
};

static struct vrnic_counter_page **page_place(struct vrnic_client *client,
					      uint64_t offset)
{
	struct vrnic_counter_page **at;

	at = &client->pages[offset / client->page_size % VRNIC_PAGE_BUCKETS];
	while (*at && (*at)->offset != offset)
		at = &(*at)->next;
	return at;
}

static struct vrnic_counter_page *page_map(struct vrnic_client *client,
					   uint64_t offset)
{
	struct vrnic_counter_page *page = calloc(1, sizeof(*page));
	void *mem;

	if (!page)
		return NULL;
	mem = mmap(NULL, client->page_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   client->verbs->cmd_fd, (off_t)offset);
	if (mem == MAP_FAILED) {
		free(page);
		return NULL;
	}
	page->offset = offset;
	page->cells = mem;
	return page;
}

/**
 * vrnic_page_map() - map a piece of a page that the kernel divides
 * @client: client, locked
 * @offset: of the page
 * @index: of the piece
 * @page: the page
 *
 * Return: 0 or a negative errno: -EPROTO if the module's answer is wrong.
 */
int vrnic_page_map(struct vrnic_client *client, uint64_t offset, uint32_t index,
		   struct vrnic_counter_page **page)
{
	struct vrnic_counter_page **at = page_place(client, offset);

	/* after a wrong answer, the library would write outside of the page */
	if (index >= client->page_size / sizeof(*(*at)->cells))
		return -EPROTO;
	if (!*at)
		*at = page_map(client, offset);
	if (!*at)
		return -ENOMEM;
	(*at)->users++;
	*page = *at;
	return 0;
}

/* Return: a piece of a mapped page. */
void *vrnic_page_piece(const struct vrnic_counter_page *page, uint32_t index)
{
	return &page->cells[index];
}

/* Undo vrnic_page_map(). Caller holds the client's lock. */
void vrnic_page_unmap(struct vrnic_client *client, struct vrnic_counter_page *page)
{
	if (--page->users)
		return;
	*page_place(client, page->offset) = page->next;
	munmap(page->cells, client->page_size);
	free(page);
}

/* Caller holds the client's lock. */
static int map_cell(struct vrnic_counter *counter,
		    const struct vrnic_create_counter_resp *resp)
{
	int ret;

	if (!resp->counter)
		return -EPROTO;
	ret = vrnic_page_map(counter->client, resp->offset, resp->cell, &counter->page);
	if (ret)
		return ret;
	counter->cell->mem = vrnic_page_piece(counter->page, resp->cell);
	counter->number = resp->counter;
	return 0;
}

/*
 * Hold the lock from making to mapping, so that no thread unmaps the page in between.
 * vrnic_counter_unbind() relies on the lock, too.
 */
static int create_in_kernel(struct vrnic_counter *counter, uint32_t flags, uint32_t bit)
{
	struct vrnic_create_counter_req req = {
		.flags = flags & VRNIC_COUNTER_PEERS ? VRNIC_COUNTER_OPEN : 0,
		.bit = bit,
	};
	struct vrnic_client *client = counter->client;
	struct vrnic_create_counter_resp resp;
	int ret;

	pthread_mutex_lock(&client->lock);
	ret = vrnic_uv_counter_create(client, counter->cell->group, &req, &resp,
				      &counter->handle);
	if (!ret) {
		ret = map_cell(counter, &resp);
		if (ret)
			vrnic_uv_destroy(client, VRNIC_OBJECT_COUNTER,
					 counter->handle);
		else
			client->users++;
	}
	pthread_mutex_unlock(&client->lock);
	return ret;
}

/* Make a counter. @group: it gets the bit number @bit of this group; or NULL. */
int vrnic_counter_make(struct vrnic_client *client, struct vrnic_counter_group *group,
		       uint32_t flags, uint32_t bit, struct vrnic_counter **counter)
{
	struct vrnic_counter *made;
	int ret;

	if (!client || !counter || flags & ~(uint32_t)VRNIC_COUNTER_PEERS)
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->client = client;
	made->cell->group = group;
	made->cell->bit = 1ULL << bit;
	made->refs = 1;
	made->open = flags & VRNIC_COUNTER_PEERS;
	made->eventfd = -1;
	ret = create_in_kernel(made, flags, bit);
	if (ret) {
		free(made);
		return ret;
	}
	*counter = made;
	return 0;
}

VRNIC_EXPORT
int vrnic_counter_create(struct vrnic_client *client, uint32_t flags,
			 struct vrnic_counter **counter)
{
	return vrnic_counter_make(client, NULL, flags, 0, counter);
}

/*
 * A self-paced transfer or a waiting thread may still point to the counter: then only
 * the kernel's part is destroyed now, and they learn it from vrnic_counter.dead.
 */
VRNIC_EXPORT
int vrnic_counter_destroy(struct vrnic_counter *counter)
{
	int ret;

	if (!counter)
		return -EINVAL;
	/* set first, so that a thread that wakes up because of the end knows the reason */
	__atomic_store_n(&counter->dead, true, __ATOMIC_RELEASE);
	/* afterwards another thread may give the bit to another counter */
	vrnic_group_member(counter->cell, false);
	ret = vrnic_uv_destroy(counter->client, VRNIC_OBJECT_COUNTER,
			       counter->handle);
	if (ret) {
		vrnic_group_member(counter->cell, true);
		__atomic_store_n(&counter->dead, false, __ATOMIC_RELEASE);
		return ret;
	}
	vrnic_counter_put(counter);
	return 0;
}

void vrnic_counter_get(struct vrnic_counter *counter)
{
	if (counter)
		__atomic_fetch_add(&counter->refs, 1, __ATOMIC_RELAXED);
}

/* Drop a reference. The last one frees the counter. */
void vrnic_counter_put(struct vrnic_counter *counter)
{
	struct vrnic_client *client;

	if (!counter ||
	    __atomic_sub_fetch(&counter->refs, 1, __ATOMIC_ACQ_REL))
		return;
	client = counter->client;
	if (counter->eventfd >= 0) {
		close(counter->eventfd);
		__atomic_fetch_sub(&client->fds, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_lock(&client->lock);
	vrnic_page_unmap(client, counter->page);
	client->users--;
	pthread_mutex_unlock(&client->lock);
	vrnic_group_put(counter->cell->group);
	free(counter);
}

static bool is_dead(const struct vrnic_counter *counter)
{
	return __atomic_load_n(&counter->dead, __ATOMIC_ACQUIRE);
}

/**
 * vrnic_counter_unbind() - end a counter's part in a transfer
 * @counter: counter; if the user has destroyed it, it is not bound any more
 * @ep: endpoint of the transfer
 *
 * The kernel reuses a free handle for the next counter. While the lock is held no counter is made,
 * so the handle is that of @counter, or of no counter.
 *
 * Return: 0 or a negative errno; -EPIPE: the peer is gone, so the kernel has failed the counter.
 */
int vrnic_counter_unbind(struct vrnic_counter *counter,
			 const struct vrnic_endpoint *ep)
{
	struct vrnic_client *client = counter->client;
	int ret = -ENOENT;

	pthread_mutex_lock(&client->lock);
	if (!is_dead(counter))
		ret = vrnic_uv_counter_unbind(counter, ep);
	pthread_mutex_unlock(&client->lock);
	return ret;
}

VRNIC_EXPORT
uint32_t vrnic_counter_number(const struct vrnic_counter *counter)
{
	return counter->number;
}

VRNIC_EXPORT
void vrnic_counter_add(struct vrnic_counter *counter, uint64_t bytes)
{
	vrnic_cell_add(counter->cell, (int64_t)bytes);
}

/* Clear the eventfd, too, which may have been signalled for the old value. */
VRNIC_EXPORT
void vrnic_counter_set(struct vrnic_counter *counter, int64_t bytes)
{
	eventfd_t seen;

	__atomic_store_n(&counter->cell->mem->remaining, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&counter->cell->mem->errors, 0, __ATOMIC_RELEASE);
	if (counter->cell->group)
		vrnic_group_changed(counter->cell);
	/* EAGAIN: the eventfd was not signalled */
	if (counter->eventfd >= 0)
		(void)!eventfd_read(counter->eventfd, &seen);
}

VRNIC_EXPORT
int64_t vrnic_counter_read(const struct vrnic_counter *counter)
{
	int64_t remaining = vrnic_cell_remaining(counter->cell);

	if (remaining > 0)
		vrnic_uv_looked_in_vain(counter->client);
	return remaining;
}

static int failures(uint32_t errors)
{
	return errors < INT_MAX ? (int)errors : INT_MAX;
}

VRNIC_EXPORT
int vrnic_counter_error(const struct vrnic_counter *counter, struct vrnic_error *error)
{
	const struct vrnic_counter_cell *cell = counter->cell->mem;
	uint32_t count = vrnic_cell_errors(counter->cell);

	if (!error)
		return failures(count);
	if (vrnic_is_extended(error->comp_mask, 0))
		return -E2BIG;
	error->count = count;
	error->status = count ? cell->status : 0;
	error->vendor_err = count ? cell->vendor_err : 0;
	error->opcode = count ? cell->opcode : 0;
	error->placed = count ? cell->placed : 0;
	error->cookie = count ? cell->cookie : 0;
	return failures(count);
}

/* Caller holds the client's lock. */
static int make_fd(struct vrnic_counter *counter)
{
	int ret, fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	ret = vrnic_uv_counter_eventfd(counter, fd);
	if (ret) {
		close(fd);
		return ret;
	}
	__atomic_store_n(&counter->eventfd, fd, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counter->client->fds, 1, __ATOMIC_RELAXED);
	/* posts from now on ring at once; doorbells of earlier posts may still be due */
	vrnic_uv_looked_in_vain(counter->client);
	return 0;
}

/* Make the eventfd at the first call: file descriptors are scarcer than counters. */
VRNIC_EXPORT
int vrnic_counter_fd(struct vrnic_counter *counter)
{
	int ret = 0;

	if (!counter)
		return -EINVAL;
	pthread_mutex_lock(&counter->client->lock);
	if (counter->eventfd < 0)
		ret = make_fd(counter);
	pthread_mutex_unlock(&counter->client->lock);
	return ret ? ret : counter->eventfd;
}

/* ---- waiting ---- */

/* Return: 0: no more than @threshold remains; -EIO: the counter has failed; 1: neither. */
static int look(const struct vrnic_counter *counter, int64_t threshold)
{
	if (vrnic_cell_errors(counter->cell))
		return -EIO;
	if (vrnic_cell_remaining(counter->cell) <= threshold)
		return 0;
	vrnic_uv_looked_in_vain(counter->client);
	return 1;
}

static int sleep_once(struct vrnic_counter *counter, int64_t threshold,
		      uint64_t deadline)
{
	struct vrnic_wait wait = {
		.what = VRNIC_WAIT_COUNTER,
		.id = counter->number,
		.threshold = threshold,
		.timeout_ns = vrnic_left(deadline),
	};

	return wait.timeout_ns ? vrnic_uv_wait(counter->client, &wait) : -ETIME;
}

static int sleep_until(struct vrnic_counter *counter, int64_t threshold,
		       uint64_t deadline)
{
	int ret;

	do {
		ret = sleep_once(counter, threshold, deadline);
		/* the cell may be another counter's by now */
		if (is_dead(counter))
			return -ECANCELED;
		if (ret && ret != -ETIME)
			return ret;
		if (look(counter, threshold) <= 0)
			return look(counter, threshold);
	} while (!ret);
	return ret;
}

/*
 * If the engine has another CPU, most waits end sooner than a sleep and the wake-up from it
 * would take.
 */
#define SPINS	1000

static int spin(struct vrnic_counter *counter, int64_t threshold)
{
	int i, ret = look(counter, threshold);

	if (counter->client->one_cpu)
		return ret;
	for (i = 0; i < SPINS && ret > 0; i++)
		ret = look(counter, threshold);
	return ret;
}

VRNIC_EXPORT
int vrnic_counter_wait(struct vrnic_counter *counter, int64_t threshold,
		       uint64_t timeout_ns)
{
	int ret;

	if (!counter)
		return -EINVAL;
	ret = look(counter, threshold);
	if (ret <= 0)
		return ret;
	if (!timeout_ns)
		return -ETIME;
	vrnic_counter_get(counter);
	ret = spin(counter, threshold);
	if (is_dead(counter))
		ret = -ECANCELED;
	else if (ret > 0)
		ret = sleep_until(counter, threshold, vrnic_deadline(timeout_ns));
	vrnic_counter_put(counter);
	return ret;
}

/* ---- counting that the library does, and no engine ---- */

/*
 * Have the kernel count, because it wakes the threads that sleep for the counter or poll its
 * eventfd. A counter that the user destroyed meanwhile has no number any more: do nothing.
 *
 * Return: 0 or a negative errno.
 */
static int count_in_kernel(struct vrnic_counter *counter, uint64_t bytes,
			   const struct vrnic_status *status)
{
	const struct vrnic_count count = {
		.id = counter->number,
		.status = (uint8_t)status->status,
		.opcode = (uint8_t)status->opcode,
		.vendor_err = status->vendor_err,
		.bytes = bytes,
		.cookie = status->cookie,
	};

	return is_dead(counter) ? 0 : vrnic_uv_count(counter->client, &count);
}

/* Have the kernel make the bits of a counter in a group what its values are. */
void vrnic_counter_tell(struct vrnic_cell *cell)
{
	static const struct vrnic_status nothing;
	char *counter = (char *)cell - offsetof(struct vrnic_counter, cell);

	count_in_kernel((struct vrnic_counter *)counter, 0, &nothing);
}

/* Note a failure that no engine has noted. */
void vrnic_counter_fail(struct vrnic_counter *counter,
			const struct vrnic_status *status)
{
	count_in_kernel(counter, status->value, status);
}

/* A transfer ended: take @bytes off its counter, or note its failure. @counter may be NULL. */
void vrnic_counter_end(struct vrnic_counter *counter, uint64_t bytes,
		       const struct vrnic_status *status)
{
	if (!counter)
		return;
	if (status->status)
		vrnic_counter_fail(counter, status);
	else
		count_in_kernel(counter, bytes, status);
}

/*
 * Nothing was posted: take back by how much the counter was raised. @counter may be NULL. What
 * others wait for may have landed meanwhile, so the kernel lowers it, unless the device is gone.
 */
void vrnic_counter_undo(struct vrnic_counter *counter, uint64_t n)
{
	static const struct vrnic_status good;

	if (counter && count_in_kernel(counter, n, &good))
		vrnic_cell_add(counter->cell, -(int64_t)n);
}
