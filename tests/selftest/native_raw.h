/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The native interface without its library: FIFOs whose rings a test writes by
 * hand. For what a library would never write.
 */
#ifndef NATIVE_RAW_H
#define NATIVE_RAW_H

#include <rdma/vrnic-abi.h>

#include "verbs_util.h"

/**
 * struct raw_fifo - a FIFO, its rings as they are mapped, and a buffer
 * @dev: opened for it alone
 * @bell: doorbell file
 * @handle: of the uverbs object
 * @inject, @inject_slots, @inject_entries: injection ring
 * @receive, @receive_slots, @receive_entries: reception ring
 * @address: for peers; @address.fifo is its number
 * @buf: registered, peers may use it
 */
struct raw_fifo {
	struct dev dev;
	int bell;
	uint32_t handle;
	struct vrnic_ring_hdr *inject;
	uint8_t *inject_slots;
	uint32_t inject_entries;
	size_t inject_bytes;
	struct vrnic_ring_hdr *receive;
	uint8_t *receive_slots;
	uint32_t receive_entries;
	size_t receive_bytes;
	struct vrnic_address address;
	struct buf buf;
};

/* How to map device memory: 0 or -errno. */
int raw_dm_query(struct ibv_context *ctx, uint32_t handle, struct vrnic_dm_info *info);
/* Another doorbell file of a context, or -errno. */
int raw_open_bell(struct ibv_context *ctx);
/* VRNIC_FEATURE_* of the module: 0 or -errno. */
int raw_features(struct ibv_context *ctx, uint32_t *features);

int raw_open(struct raw_fifo *fifo, uint32_t inject_slots,
	     uint32_t receive_slots, size_t len);
int raw_close(struct raw_fifo *fifo);

/* Endpoint of a FIFO: its number for descriptors, and its handle. */
int raw_endpoint(struct raw_fifo *fifo, const struct vrnic_address *address,
		 uint32_t *endpoint, uint32_t *handle);
int raw_endpoint_destroy(struct raw_fifo *fifo, uint32_t handle);

/**
 * struct raw_counter - a counter and its cell
 */
struct raw_counter {
	struct vrnic_counter_cell *cell;
	void *page;
	uint32_t number;
	uint32_t handle;
};

int raw_counter(struct raw_fifo *fifo, uint32_t flags,
		struct raw_counter *counter);
/* In a group, by the group's handle. */
int raw_counter_in(struct raw_fifo *fifo, uint32_t group, uint32_t bit, uint32_t flags,
		   struct raw_counter *counter);
int raw_counter_destroy(struct raw_fifo *fifo, struct raw_counter *counter);
int raw_counter_eventfd(struct raw_fifo *fifo, struct raw_counter *counter,
			int fd);

/* VRNIC_METHOD_COUNTER_BIND or _UNBIND, by an endpoint's handle: 0 or -errno. */
int raw_counter_bind(struct raw_fifo *fifo, struct raw_counter *counter,
		     uint32_t endpoint, bool on);

/* A group of counters: its number, and its handle. */
int raw_group(struct raw_fifo *fifo, uint32_t *group, uint32_t *handle);
int raw_group_destroy(struct raw_fifo *fifo, uint32_t handle);

int raw_type(struct raw_fifo *fifo, const struct vrnic_type_row *rows,
	     uint32_t nr_rows, uint32_t *type, uint32_t *handle);
int raw_type_destroy(struct raw_fifo *fifo, uint32_t handle);

/* A FIFO of this host by its client's name: 0 or -errno. */
int raw_lookup(struct raw_fifo *fifo, const char *name, uint32_t task,
	       uint32_t context, struct vrnic_address *address);

/* Any call with any request, for what has to be refused: 0 or -errno. */
int raw_create_fifo(struct raw_fifo *fifo,
		    const struct vrnic_create_fifo_req *req, uint32_t *handle,
		    struct vrnic_create_fifo_resp *resp);
/* Of one that raw_create_fifo() made. */
int raw_map_rings(struct raw_fifo *fifo, const struct vrnic_create_fifo_resp *resp);
int raw_destroy(struct ibv_context *ctx, uint16_t object, uint16_t method,
		uint16_t attr, uint32_t handle);

/* Slots into the injection ring: descriptor, and what follows it. */
void raw_fill(struct raw_fifo *fifo, const struct vrnic_ndesc *d,
	      const void *more, size_t len);
/* The doorbell, whether or not it is needed: 0 or -errno. */
int raw_ring(struct raw_fifo *fifo);
int raw_post(struct raw_fifo *fifo, const struct vrnic_ndesc *d,
	     const void *more, size_t len);
/* The next record within WAIT_SECONDS, and its slots given back. */
int raw_take(struct raw_fifo *fifo, struct vrnic_record *record);
/* The same, but only a look: -EAGAIN. */
int raw_try(struct raw_fifo *fifo, struct vrnic_record *record);

/**
 * struct raw_pair - two of them; a has an endpoint to b, and b to a
 */
struct raw_pair {
	struct raw_fifo a, b;
	uint32_t a_to_b, b_to_a;
	uint32_t handle_a, handle_b;
	uint32_t slots, receive;
	size_t len;
};

int raw_pair_open(struct raw_pair *pair, uint32_t inject_slots,
		  uint32_t receive_slots, size_t len);
int raw_pair_close(struct raw_pair *pair);
/* Close and open again, as what was done to a ring may have ended it. */
int raw_reopen(struct raw_pair *pair);

#endif /* NATIVE_RAW_H */
