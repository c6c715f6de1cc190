/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Counters for operators: `rdma statistic show link vrnic0/1`. */
#ifndef VRNIC_STATS_H
#define VRNIC_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

/*
 * One line for each counter: its name in the code, and its name in `rdma statistic`. Counters of
 * objects (native_fifos ...) also go down: they tell how many objects there are now.
 */
#define VRNIC_STATS(X)					\
	X(DOORBELLS,		"doorbells")		\
	X(DESCRIPTORS,		"descriptors")		\
	X(BYTES_WRITTEN,	"bytes_written")	\
	X(BYTES_READ,		"bytes_read")		\
	X(BYTES_SENT,		"bytes_sent")		\
	X(ATOMICS,		"atomics")		\
	X(COMPLETIONS,		"completions")		\
	X(EVENTS,		"completion_events")	\
	X(RNR_WAITS,		"rnr_waits")		\
	X(RETRIES,		"retries")		\
	X(UD_DROPPED,		"ud_dropped")		\
	X(UC_DROPPED,		"uc_dropped")		\
	X(RAW_DROPPED,		"raw_dropped")		\
	X(LOCAL_ERRORS,		"local_errors")		\
	X(REMOTE_ERRORS,	"remote_errors")	\
	X(FLUSHED,		"flushed")		\
	X(CQ_OVERFLOWS,		"cq_overflows")		\
	X(RING_ERRORS,		"ring_errors")		\
	X(XMIT_BYTES,		"xmit_bytes")		\
	X(RCVD_BYTES,		"rcvd_bytes")		\
	X(SENT_PKTS,		"sent_pkts")		\
	X(RCVD_PKTS,		"rcvd_pkts")		\
	X(DUPLICATE_REQUEST,	"duplicate_request")	\
	X(OUT_OF_SEQ_REQUEST,	"out_of_seq_request")	\
	X(RCVD_RNR_ERR,		"rcvd_rnr_err")		\
	X(SEND_RNR_ERR,		"send_rnr_err")		\
	X(RCVD_SEQ_ERR,		"rcvd_seq_err")		\
	X(RETRY_EXCEEDED_ERR,	"retry_exceeded_err")	\
	X(RETRY_RNR_EXCEEDED_ERR, "retry_rnr_exceeded_err") \
	X(SEND_ERR,		"send_err")		\
	X(ROUTE_LOOKUPS,	"route_lookups")	\
	X(RETRANSMITTED_PKTS,	"retransmitted_pkts")	\
	X(ACK_TIMEOUTS,		"ack_timeouts")		\
	X(NP_ECN_MARKED_ROCE_PACKETS, "np_ecn_marked_roce_packets") \
	X(NP_CNP_SENT,		"np_cnp_sent")		\
	X(RP_CNP_HANDLED,	"rp_cnp_handled")	\
	X(BAD_ICRC,		"bad_icrc")		\
	X(MALFORMED_PKTS,	"malformed_pkts")	\
	X(RCVD_DROPPED,		"rcvd_dropped")		\
	X(ODP_PAGE_INS,		"odp_page_ins")		\
	X(ODP_INVALIDATIONS,	"odp_invalidations")	\
	X(FIFOS,		"native_fifos")		\
	X(LINKS,		"native_links")		\
	X(LINKS_CUT,		"native_links_cut")	\
	X(ENDPOINTS,		"native_endpoints")	\
	X(COUNTERS,		"native_counters")	\
	X(NATIVE_DESCRIPTORS,	"native_descriptors")	\
	X(NATIVE_ERRORS,	"native_errors")	\
	X(BYTES_PUT,		"bytes_put")		\
	X(BYTES_GOT,		"bytes_got")		\
	X(PUTS_TOGETHER,	"native_puts_together")	\
	X(RECORDS,		"records")		\
	X(RECEPTION_STALLS,	"reception_stalls")	\
	X(RGETS,		"remote_gets")		\
	X(RGET_WAITS,		"remote_get_waits")	\
	X(PACED_WAITS,		"native_paced_waits")	\
	X(PACED_LATE,		"native_paced_late")	\
	X(FENCES,		"fences")		\
	X(TYPES,		"native_types")		\
	X(TYPES_TOLD,		"native_types_told")	\
	X(TYPE_PAIRS,		"type_intersections")	\
	X(TYPED_BYTES,		"bytes_typed")		\
	X(FAULTS_INJECTED,	"faults_injected")

/* Read what a runner may be changing, to show it to an operator. */
#define VRNIC_PEEK(x)	data_race(READ_ONCE(x))

#define X(sym, name) VRNIC_STAT_##sym,
enum vrnic_stat { VRNIC_STATS(X) VRNIC_STAT_NR };
#undef X

struct vrnic_stats {
	u64 count[VRNIC_STAT_NR];
};

/* Number of statistics that each queue pair has for itself, too: verbs/qp_counter.c. */
#define VRNIC_QP_STAT_NR	13

struct ib_device;
struct rdma_hw_stats;
struct vrnic_dev;

u64 vrnic_stat_sum(const struct vrnic_dev *dev, enum vrnic_stat stat);
struct rdma_hw_stats *vrnic_alloc_hw_stats(struct ib_device *ibdev, u32 port);

#endif /* VRNIC_STATS_H */
