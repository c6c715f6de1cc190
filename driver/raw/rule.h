/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A rule of flow steering. */
#ifndef VRNIC_RULE_H
#define VRNIC_RULE_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

#include "lib/frame.h"

struct vrnic_qp;
struct vrnic_tally;

/* Frames try the rules by kind, then by priority, then by age. */
enum vrnic_rule_kind {
	VRNIC_RULE_SNIFFER,
	VRNIC_RULE_NORMAL,
	VRNIC_RULE_DEFAULT,
};

/**
 * struct vrnic_rule - a rule
 * @ibflow: the core's part
 * @rcu: to free it after a grace period
 * @link: in vrnic_steer.rules
 * @opened: in vrnic_steer.opened; protected by RTNL
 * @qp: queue pair that gets the frames; the core keeps it as long as the flow
 * @rank: kind and priority, as one number; frames try rules of less rank first
 * @takes: a frame that matches does not go on to rules of higher rank, nor to the host
 * @drop: nobody gets the frame
 * @tag: number for the completions
 * @tally: counts the frames; a reference is held; or NULL
 * @match: which frames
 */
struct vrnic_rule {
	struct ib_flow ibflow;
	struct rcu_head rcu;
	struct list_head link;
	struct list_head opened;
	struct vrnic_qp *qp;
	u32 rank;
	bool takes;
	bool drop;
	u32 tag;
	struct vrnic_tally *tally;
	struct vrnic_match match;
};

int vrnic_rule_fill(struct vrnic_rule *rule, const struct ib_flow_attr *attr);

#endif /* VRNIC_RULE_H */
