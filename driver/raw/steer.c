// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flow steering. A frame tries the rules in order: sniffers first, then normal rules by priority,
 * then default rules. All normal rules of the priority at which a rule takes the frame get it, and
 * no other rule behind them does. Only a normal rule keeps the frame from the host. Default rules
 * get what no normal rule takes, but the host gets it, too: the host is a receiver like another,
 * and would be without a network otherwise.
 *
 * Frames try the rules under RCU alone. A caller that makes or removes a rule waits for memory and
 * RTNL without the lock, because callers of other users need the lock.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "base/objects.h"
#include "base/udata.h"
#include "compat/compat.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "raw/filter.h"
#include "raw/raw.h"
#include "raw/rss.h"
#include "raw/rule.h"
#include "raw/steer.h"
#include "raw/tally.h"
#include "vrnic.h"

/* One frame goes to so many queue pairs at most. */
#define COPIES_MAX	32

/**
 * struct steering - a frame on its way through the rules
 * @skb: the frame; its data starts behind the Ethernet header
 * @fields: what rules match
 * @qps: queue pairs that get it; only compared
 * @nr: how many
 * @last: the rule of the last of them, which has not got the frame yet
 * @taken: a rule has taken the frame
 * @rank: that one's rank
 */
struct steering {
	struct sk_buff *skb;
	struct vrnic_frame fields;
	const struct vrnic_qp *qps[COPIES_MAX];
	u32 nr;
	const struct vrnic_rule *last;
	bool taken;
	u32 rank;
};

/*
 * Read the fields. The VLAN tag is beside the frame if the interface or the stack has taken it out.
 * Return: false if the packet is none that came with an Ethernet header, as the stack's own copies
 * of multicast packets.
 */
static bool read_fields(const struct sk_buff *skb, struct vrnic_frame *f)
{
	u8 head[VRNIC_FRAME_HEAD], *at = head;
	u32 n;

	if (!skb_mac_header_was_set(skb) || skb_mac_offset(skb) != -ETH_HLEN)
		return false;
	memcpy(at, skb_mac_header(skb), 2 * ETH_ALEN);
	at += 2 * ETH_ALEN;
	if (skb_vlan_tag_present(skb)) {
		put_unaligned(skb->vlan_proto, (__be16 *)at);
		put_unaligned_be16(skb_vlan_tag_get(skb), at + 2);
		at += VLAN_HLEN;
	}
	/* from the EtherType on */
	n = min_t(u32, skb->len + 2, head + sizeof(head) - at);
	if (skb_copy_bits(skb, -2, at, n))
		return false;
	vrnic_frame_parse(head, at - head + n, f);
	return true;
}

/* Give @skb, the frame or a copy, to the queue pair of @rule, or to one of its work queues. */
static void steer_give(const struct steering *s, const struct vrnic_rule *rule,
		       struct sk_buff *skb)
{
	struct vrnic_qp *qp = rule->qp;

	if (!skb)
		return;
	/* the queue pair may have ended since its rule was found */
	if (!refcount_inc_not_zero(&qp->refs)) {
		kfree_skb(skb);
		return;
	}
	vrnic_raw_arrive(qp->rss ? vrnic_rss_pick(qp->rss, &s->fields) : qp, skb, rule->tag);
	vrnic_qp_put(qp);
}

static void give_copy(const struct steering *s, const struct vrnic_rule *rule)
{
	steer_give(s, rule, skb_clone(s->skb, GFP_ATOMIC));
}

/* Does the queue pair of the rule get the frame already? Or has the frame gone to enough? */
static bool steer_has_enough(const struct steering *s, const struct vrnic_qp *qp)
{
	u32 i;

	for (i = 0; i < s->nr; i++)
		if (s->qps[i] == qp)
			return true;
	return s->nr == COPIES_MAX;
}

static void tally_up(struct vrnic_tally *tally, const struct sk_buff *skb)
{
	u32 frames = max_t(u32, skb_shinfo(skb)->gso_segs, 1);

	atomic64_add(frames, &tally->frames);
	atomic64_add(skb->len + ETH_HLEN + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0),
		     &tally->bytes);
}

/* The frame matches the rule. */
static void apply(struct steering *s, const struct vrnic_rule *rule)
{
	if (rule->tally)
		tally_up(rule->tally, s->skb);
	if (rule->takes) {
		s->taken = true;
		s->rank = rule->rank;
	}
	if (rule->drop || steer_has_enough(s, rule->qp))
		return;
	s->qps[s->nr++] = rule->qp;
	if (s->last)
		give_copy(s, s->last);
	s->last = rule;
}

/**
 * vrnic_steer_frame() - bring a frame to the queue pairs that get it
 * @steer: rules of the device whose interface the frame came to
 * @skb: frame; its data starts behind the Ethernet header
 * @from: the queue pair that sent the frame, which does not get it; NULL: it came from elsewhere
 *
 * Return: true if the frame was taken, and is the caller's no more.
 * Context: softirqs are held off; RCU.
 */
bool vrnic_steer_frame(struct vrnic_steer *steer, struct sk_buff *skb, const struct vrnic_qp *from)
{
	struct steering s = { .skb = skb };
	const struct vrnic_rule *rule;

	if (list_empty(&steer->rules) || !read_fields(skb, &s.fields))
		return false;
	list_for_each_entry_rcu(rule, &steer->rules, link) {
		if (s.taken && rule->rank != s.rank)
			break;
		if (rule->qp != from && vrnic_frame_matches(&s.fields, &rule->match))
			apply(&s, rule);
	}
	if (!s.taken) {
		if (s.last)
			give_copy(&s, s.last);
		return false;
	}
	if (s.last)
		steer_give(&s, s.last, skb);
	else
		kfree_skb(skb);
	return true;
}

static bool steer_hear(struct vrnic_ingress *in, struct sk_buff *skb)
{
	/*
	 * The reserves of memory are for the host's own use, and what lies in the memory of another
	 * device cannot be copied into a receive.
	 */
	if (skb_pfmemalloc(skb) || !skb_frags_readable(skb))
		return false;
	return vrnic_steer_frame(container_of(in, struct vrnic_steer, ingress), skb, NULL);
}

void vrnic_steer_init(struct vrnic_steer *s, struct net_device *ndev)
{
	INIT_LIST_HEAD(&s->rules);
	INIT_LIST_HEAD(&s->opened);
	spin_lock_init(&s->lock);
	s->ingress.ndev = ndev;
	s->ingress.frame = steer_hear;
}

static void rule_shut(struct vrnic_steer *s, struct vrnic_rule *rule)
{
	if (list_empty(&rule->opened))
		return;
	list_del_init(&rule->opened);
	vrnic_filter_close(s->ingress.ndev, rule);
}

/* The interface is unregistered, or moves to another namespace. Context: RTNL. */
void vrnic_steer_leave(struct vrnic_steer *s)
{
	struct vrnic_rule *rule, *next;

	ASSERT_RTNL();
	WRITE_ONCE(s->over, true);
	vrnic_ingress_close(&s->ingress);
	list_for_each_entry_safe(rule, next, &s->opened, opened)
		rule_shut(s, rule);
}

/* Frames come while there are rules. */
static void ingress_settle(struct vrnic_steer *s)
{
	if (list_empty(&s->opened))
		vrnic_ingress_close(&s->ingress);
}

static int rule_open(struct vrnic_steer *s, struct vrnic_rule *rule)
{
	int err;

	ASSERT_RTNL();
	if (s->over)
		return -ENODEV;
	/* what a NIC has merged in this way cannot be split again; a bridge turns it off, too */
	dev_disable_lro(s->ingress.ndev);
	err = vrnic_ingress_open(&s->ingress);
	if (err)
		return err;
	err = vrnic_filter_open(s->ingress.ndev, rule);
	if (err)
		ingress_settle(s);
	else
		list_add(&rule->opened, &s->opened);
	return err;
}

/* Have frames come for a rule that is to be inserted. */
static int rules_enter(struct vrnic_steer *s, struct vrnic_rule *rule)
{
	int err;

	rtnl_lock();
	err = rule_open(s, rule);
	rtnl_unlock();
	return err;
}

static void rules_leave(struct vrnic_steer *s, struct vrnic_rule *rule)
{
	rtnl_lock();
	rule_shut(s, rule);
	ingress_settle(s);
	rtnl_unlock();
}

/* Behind the rules of the same rank, which are older. */
static void rule_insert(struct vrnic_steer *s, struct vrnic_rule *new)
{
	struct vrnic_rule *rule;

	spin_lock_bh(&s->lock);
	list_for_each_entry(rule, &s->rules, link)
		if (rule->rank > new->rank)
			break;
	/* if no rule has a higher rank, this is the end of the list */
	list_add_tail_rcu(&new->link, &rule->link);
	spin_unlock_bh(&s->lock);
}

static void rule_remove(struct vrnic_steer *s, struct vrnic_rule *rule)
{
	spin_lock_bh(&s->lock);
	list_del_rcu(&rule->link);
	spin_unlock_bh(&s->lock);
}

static void rule_free(struct vrnic_rule *rule)
{
	vrnic_tally_put(rule->tally);
	kfree_rcu(rule, rcu);
}

static struct vrnic_rule *rule_new(struct vrnic_qp *qp, const struct ib_flow_attr *attr)
{
	struct vrnic_rule *rule = kzalloc(sizeof(*rule), GFP_KERNEL_ACCOUNT);
	int err;

	if (!rule)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&rule->opened);
	rule->qp = qp;
	err = vrnic_rule_fill(rule, attr);
	if (err) {
		rule_free(rule);
		return ERR_PTR(err);
	}
	return rule;
}

struct ib_flow *vrnic_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				  struct ib_udata *udata)
{
	struct vrnic_dev *dev = to_vdev(ibqp->device);
	struct vrnic_rule *rule;
	int err;

	if (vrnic_udata_empty(udata))
		return ERR_PTR(-EINVAL);
	/* the frames of UD have queue pair numbers */
	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return ERR_PTR(-EOPNOTSUPP);
	if (!vrnic_raw_allowed(dev))
		return ERR_PTR(-EPERM);
	if (!vrnic_object_get(dev, VRNIC_OBJECT_FLOW, true))
		return ERR_PTR(-ENOMEM);
	rule = rule_new(to_vqp(ibqp), attr);
	if (IS_ERR(rule)) {
		err = PTR_ERR(rule);
		goto err_put;
	}
	err = rules_enter(&dev->steer, rule);
	if (err)
		goto err_free;
	rule_insert(&dev->steer, rule);
	return &rule->ibflow;

err_free:
	rule_free(rule);
err_put:
	vrnic_object_put(dev, VRNIC_OBJECT_FLOW, true);
	return ERR_PTR(err);
}

int vrnic_destroy_flow(struct ib_flow *ibflow)
{
	struct vrnic_rule *rule = container_of(ibflow, struct vrnic_rule, ibflow);
	struct vrnic_dev *dev = to_vdev(ibflow->device);

	rule_remove(&dev->steer, rule);
	rules_leave(&dev->steer, rule);
	vrnic_object_put(dev, VRNIC_OBJECT_FLOW, true);
	rule_free(rule);
	return 0;
}
