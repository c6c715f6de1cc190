/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Every call that libibverbs, its provider and the native helpers make into the
 * kernel, as they make it: the function in call_hook sees it first. And a script
 * that makes one call of each kind.
 */
#ifndef FUZZ_CALLS_H
#define FUZZ_CALLS_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "comp_raw.h"
#include "fuzz.h"
#include "native_raw.h"

/*
 * Makes the call instead: 0, or -1 with errno. What it calls itself goes to
 * call_kernel(), which makes the system call and nothing else.
 */
extern int (*call_hook)(int fd, struct ib_uverbs_ioctl_hdr *hdr);

int call_kernel(int fd, unsigned long request, void *arg);

/*
 * Making a context by ioctl(): when that fails, because there is one or the driver
 * refuses, the core forgets its reference on the task
 * (uverbs_std_types_device.c of 6.12), and kmemleak reports the task.
 */
bool call_leaks(const struct ib_uverbs_ioctl_hdr *hdr);

/* A region over a dma-buf: when the exporter has no memory to map it, the core warns in the log. */
bool call_warns(const struct ib_uverbs_ioctl_hdr *hdr);

#define SCRIPT_TYPES	3	/* of queue pairs: RC, UC, UD */
#define SCRIPT_LEN	8192

/**
 * struct script - one object of each kind, on one device
 * @dev: the device
 * @fifo: native FIFO; @endpoint to itself
 * @pair: queue pairs of each type, connected; the last side has an SRQ
 * @buf: registered
 * @tgt: XRC target of the domain, twice
 * @odp: pages on demand: of @buf, and of all memory; NULL: the kernel cannot
 * @rss: has @table, which has @wq, and @rule, which counts in @counters
 * @counted: has @cntr; NULL: the kernel has no completion counters
 * Others: as their names say.
 */
struct script {
	struct dev dev;
	struct raw_fifo fifo;
	uint32_t endpoint, endpoint_handle;
	uint32_t group, group_handle;
	struct raw_counter counter;	/* in @group */
	int eventfd;
	uint32_t type[2], type_handle[2];
	struct pair pair[SCRIPT_TYPES];
	struct buf buf;
	struct ibv_dm *dm;
	struct ibv_mr *dm_mr;
	struct ibv_mr *foreign;	/* over a dma-buf; NULL: the kernel has no udmabuf that does */
	struct ibv_mr *odp[2];
	struct ibv_mr *null;
	struct ibv_mw *mw[2];
	struct ibv_ah *ah;
	struct ibv_cq_ex *cqx;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *xsrq;
	struct ibv_qp *tgt[2];
	struct ibv_wq *wq[2];
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *rss;
	struct ibv_counters *counters;
	struct ibv_flow *rule;
	struct cntr cntr[2];
	struct ibv_qp *counted;
	bool member;		/* of a multicast group */
};

/* Make everything, look at everything: 0 or -errno. */
int script_begin(struct script *s);
/* Things that have to fail, as the device does not offer them. */
void script_refused(struct script *s);
/* Take everything down again: 0 or -errno. */
int script_end(struct script *s);

#endif /* FUZZ_CALLS_H */
