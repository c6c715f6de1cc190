/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Raw packet queue pairs, which send and receive whole Ethernet frames.
 *
 *	raw/send.c	frames from a send ring to the interface
 *	raw/arrive.c	frames into the queue of their queue pair
 *	raw/receive.c	frames from that queue into receives
 *	raw/steer.h	which queue pairs get a frame
 *	raw/rss.h	which work queue of a queue pair gets it
 *	raw/rule.h	what a rule says
 *	raw/filter.h	what the interface lets in
 *	raw/tally.h	what rules count
 */
#ifndef VRNIC_RAW_H
#define VRNIC_RAW_H

#include <linux/types.h>

#include "queue/opcode.h"
#include "queue/qp.h"

struct sk_buff;
struct vrnic_budget;
struct vrnic_dev;
struct vrnic_op;

/* raw/send.c */
bool vrnic_raw_allowed(const struct vrnic_dev *dev);
bool vrnic_raw_supported(const struct vrnic_dev *dev);
enum vrnic_step vrnic_raw_execute(struct vrnic_qp *qp, struct vrnic_op *op,
				  struct vrnic_budget *budget);

/* raw/arrive.c */
void vrnic_raw_arrive(struct vrnic_qp *qp, struct sk_buff *skb, u32 tag);

/* raw/receive.c */
bool vrnic_raw_receive(struct vrnic_qp *qp, struct vrnic_budget *budget);

#endif /* VRNIC_RAW_H */
