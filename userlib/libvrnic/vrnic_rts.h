/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libvrnic: large messages, which their receiver accepts: the sender offers one (RTS, ready to
 * send), and remote gets move it in portions. See vrnic_rts_send(3).
 */
#ifndef LIBVRNIC_RTS_H
#define LIBVRNIC_RTS_H

#include "vrnic.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vrnic_rts_mask {
	VRNIC_RTS_COUNTER = 1 << 0,	/* vrnic_rts.comp_mask: there is a counter */
	VRNIC_RTS_ROWS = 1 << 1,	/* the table has descriptors that lack only a location */
};

struct vrnic_rts {		/* an offer; may be copied and kept, since it does not grow */
	uint64_t comp_mask;	/* VRNIC_RTS_*: which of the later members have a meaning */
	struct vrnic_peer peer;
	uint64_t length;	/* bytes of the message */
	uint64_t remote;	/* address of the message, for vrnic_get() */
	uint32_t rkey;
	uint32_t id;		/* the sender's number for the offer */
	uint64_t table;		/* the sender's table, for vrnic_accept(): address, key, rows */
	uint32_t table_rkey;
	uint32_t table_rows;
	uint32_t counter;	/* the sender's counter that falls as the message is taken */
	uint32_t reserved0;
	uint64_t reserved[7];
};

typedef void (*vrnic_rts_handler)(struct vrnic_context *context, const struct vrnic_rts *rts,
				  const void *header, size_t header_len, void *arg);

struct vrnic_rts_wr {		/* an offer to be made */
	uint64_t comp_mask;
	const void *local;	/* in mr, which allows remote read */
	const struct ibv_mr *mr;
	size_t length;
	const void *header;	/* for the peer's handler */
	size_t header_len;	/* up to 1024 */
};

enum vrnic_accept_mask {
	VRNIC_ACCEPT_DELIVER = 1 << 0,	/* vrnic_accept_wr.comp_mask: there is deliver */
};

typedef void (*vrnic_deliver)(struct vrnic_context *context, const void *piece, size_t length,
			      uint64_t offset, void *arg);

struct vrnic_accept_wr {	/* where the message of an accepted offer goes */
	uint64_t comp_mask;
	void *local;		/* in mr, which allows remote write */
	const struct ibv_mr *mr;
	uint64_t portion;	/* bytes of a portion; 0: automatic */
	vrnic_deliver deliver;	/* gets the message piece by piece, in place of local */
	void *deliver_arg;	/* for deliver */
};

enum vrnic_rget_flags {
	VRNIC_RGET_TAKE = 1 << 0,	/* the other way: the peer's engine takes local memory */
};

struct vrnic_rget_wr {		/* what the peer's engine is to put into this process's memory */
	uint64_t comp_mask;
	void *local;		/* in mr, which allows remote write (TAKE: read) */
	const struct ibv_mr *mr;
	size_t length;
	uint64_t remote;	/* in the peer's region rkey: remote read (TAKE: write) */
	uint32_t rkey;
	uint32_t flags;		/* VRNIC_RGET_TAKE */
	uint32_t after;		/* number of a counter of the peer that is open to peers; 0: none */
	uint32_t target;	/* number of one that falls with the bytes that moved; 0: none */
	uint64_t after_left;	/* start once no more than so many bytes remain in after */
};

int vrnic_rts_handler_set(struct vrnic_context *context, vrnic_rts_handler handler, void *arg);
int vrnic_rts_send(struct vrnic_endpoint *ep, const struct vrnic_rts_wr *wr,
		   const struct vrnic_done *done);
int vrnic_accept(struct vrnic_endpoint *ep, const struct vrnic_rts *rts,
		 const struct vrnic_accept_wr *wr, const struct vrnic_done *done);
int vrnic_reject(struct vrnic_endpoint *ep, const struct vrnic_rts *rts);
int vrnic_rget(struct vrnic_endpoint *ep, const struct vrnic_rget_wr *wr,
	       const struct vrnic_done *done);

#ifdef __cplusplus
}
#endif

#endif /* LIBVRNIC_RTS_H */
