// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Makes rules from what programs ask for, and refuses what they cannot have. */

#include <linux/etherdevice.h>
#include <linux/in.h>

#include "raw/rule.h"
#include "raw/tally.h"

/* Note that the rule wants @value in a field. Return: -EINVAL if it wants another value, too. */
static int want(u8 *value, u8 *mask, u8 wanted)
{
	if (*mask && *value != wanted)
		return -EINVAL;
	*value = wanted;
	*mask = 0xff;
	return 0;
}

#define WANT(rule, field, wanted) \
	want(&(rule)->match.value.field, &(rule)->match.mask.field, wanted)

#define COPY(rule, field, spec, from)						\
	do {									\
		BUILD_BUG_ON(sizeof((rule)->match.mask.field) <			\
			     sizeof((spec)->mask.from));			\
		memcpy(&(rule)->match.value.field, &(spec)->val.from,		\
		       sizeof((spec)->val.from));				\
		memcpy(&(rule)->match.mask.field, &(spec)->mask.from,		\
		       sizeof((spec)->mask.from));				\
	} while (0)

static int add_eth(struct vrnic_rule *rule, const struct ib_flow_spec_eth *spec)
{
	COPY(rule, dst_mac, spec, dst_mac);
	COPY(rule, src_mac, spec, src_mac);
	COPY(rule, ether_type, spec, ether_type);
	COPY(rule, vlan_tag, spec, vlan_tag);
	return spec->mask.vlan_tag ? WANT(rule, tagged, 1) : 0;
}

static int add_ipv4(struct vrnic_rule *rule, const struct ib_flow_spec_ipv4 *spec)
{
	COPY(rule, src_ip, spec, src_ip);
	COPY(rule, dst_ip, spec, dst_ip);
	COPY(rule, proto, spec, proto);
	COPY(rule, tos, spec, tos);
	COPY(rule, ttl, spec, ttl);
	COPY(rule, ip_flags, spec, flags);
	return WANT(rule, net, 4);
}

static int add_ipv6(struct vrnic_rule *rule, const struct ib_flow_spec_ipv6 *spec)
{
	COPY(rule, src_ip, spec, src_ip);
	COPY(rule, dst_ip, spec, dst_ip);
	COPY(rule, flow_label, spec, flow_label);
	COPY(rule, proto, spec, next_hdr);
	COPY(rule, tos, spec, traffic_class);
	COPY(rule, ttl, spec, hop_limit);
	return WANT(rule, net, 6);
}

static int add_ports(struct vrnic_rule *rule, const struct ib_flow_spec_tcp_udp *spec, u8 proto)
{
	COPY(rule, dst_port, spec, dst_port);
	COPY(rule, src_port, spec, src_port);
	return WANT(rule, transport, proto);
}

/* Layers of headers and actions, of which a rule has one each. */
#define LAYER_ETH	BIT(0)
#define LAYER_NET	BIT(1)
#define LAYER_PORTS	BIT(2)
#define ACTION_TAG	BIT(3)
#define ACTION_DROP	BIT(4)
#define ACTION_COUNT	BIT(5)

#define LAYERS		(LAYER_ETH | LAYER_NET | LAYER_PORTS)

static u32 spec_bit(u32 type)
{
	switch (type) {
	case IB_FLOW_SPEC_ETH:
		return LAYER_ETH;
	case IB_FLOW_SPEC_IPV4:
	case IB_FLOW_SPEC_IPV6:
		return LAYER_NET;
	case IB_FLOW_SPEC_TCP:
	case IB_FLOW_SPEC_UDP:
		return LAYER_PORTS;
	case IB_FLOW_SPEC_ACTION_TAG:
		return ACTION_TAG;
	case IB_FLOW_SPEC_ACTION_DROP:
		return ACTION_DROP;
	case IB_FLOW_SPEC_ACTION_COUNT:
		return ACTION_COUNT;
	default:
		return 0;
	}
}

static int add_spec(struct vrnic_rule *rule, const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		return add_eth(rule, &spec->eth);
	case IB_FLOW_SPEC_IPV4:
		return add_ipv4(rule, &spec->ipv4);
	case IB_FLOW_SPEC_IPV6:
		return add_ipv6(rule, &spec->ipv6);
	case IB_FLOW_SPEC_TCP:
		return add_ports(rule, &spec->tcp_udp, IPPROTO_TCP);
	case IB_FLOW_SPEC_UDP:
		return add_ports(rule, &spec->tcp_udp, IPPROTO_UDP);
	case IB_FLOW_SPEC_ACTION_TAG:
		rule->tag = spec->flow_tag.tag_id;
		return 0;
	case IB_FLOW_SPEC_ACTION_DROP:
		rule->drop = true;
		return 0;
	case IB_FLOW_SPEC_ACTION_COUNT:
		rule->tally = vrnic_tally_get(spec->flow_count.counters);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/*
 * The core has checked the type and size of each specification. Headers of tunnels, and those of
 * the inner packet, are none of those that spec_bit() knows. Return: the bits, or a negative errno.
 */
static int add_specs(struct vrnic_rule *rule, const struct ib_flow_attr *attr)
{
	const void *at = attr->flows;
	u32 seen = 0, bit;
	int i, err;

	for (i = 0; i < attr->num_of_specs; i++) {
		const union ib_flow_spec *spec = at;

		bit = spec_bit(spec->type);
		if (!bit)
			return -EOPNOTSUPP;
		if (seen & bit)
			return -EINVAL;
		seen |= bit;
		err = add_spec(rule, spec);
		if (err)
			return err;
		at += spec->size;
	}
	return seen;
}

/* May a frame have the EtherType, and the protocol, that other parts of the rule call for? */
static int check_sense(const struct vrnic_match *m)
{
	__be16 type = htons(m->value.net == 6 ? ETH_P_IPV6 : ETH_P_IP);

	if (m->mask.net && (m->value.ether_type ^ type) & m->mask.ether_type)
		return -EINVAL;
	if (m->mask.transport && (m->value.proto ^ m->value.transport) & m->mask.proto)
		return -EINVAL;
	return 0;
}

/* Bits of a value that its mask has not would keep the rule from matching anything. */
static void clear_unmasked(struct vrnic_match *m)
{
	u8 *value = (u8 *)&m->value;
	const u8 *mask = (const u8 *)&m->mask;
	size_t i;

	for (i = 0; i < sizeof(m->value); i++)
		value[i] &= mask[i];
}

static int set_kind(struct vrnic_rule *rule, const struct ib_flow_attr *attr)
{
	enum vrnic_rule_kind kind;

	switch (attr->type) {
	case IB_FLOW_ATTR_NORMAL:
		kind = VRNIC_RULE_NORMAL;
		break;
	case IB_FLOW_ATTR_MC_DEFAULT:
		/* the bit that makes an address that of a group */
		rule->match.value.dst_mac[0] = 1;
		rule->match.mask.dst_mac[0] = 1;
		fallthrough;
	case IB_FLOW_ATTR_ALL_DEFAULT:
		kind = VRNIC_RULE_DEFAULT;
		break;
	case IB_FLOW_ATTR_SNIFFER:
		kind = VRNIC_RULE_SNIFFER;
		break;
	default:
		return -EINVAL;
	}
	rule->rank = kind << 16 | attr->priority;
	rule->takes = kind == VRNIC_RULE_NORMAL &&
		      !(attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP);
	return 0;
}

/**
 * vrnic_rule_fill() - make a rule
 * @rule: all zeroes
 * @attr: what the program asked for
 *
 * Return: 0; -EOPNOTSUPP: such a rule cannot be had; -EINVAL: it makes no sense. After a failure,
 * too, the caller has to put @rule->tally.
 */
int vrnic_rule_fill(struct vrnic_rule *rule, const struct ib_flow_attr *attr)
{
	int seen, err;

	if (attr->flags & ~(u32)IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		return -EOPNOTSUPP;
	seen = add_specs(rule, attr);
	if (seen < 0)
		return seen;
	/* the other kinds say by themselves which frames they want, and take none */
	if (attr->type != IB_FLOW_ATTR_NORMAL && (seen & LAYERS || attr->flags))
		return -EINVAL;
	clear_unmasked(&rule->match);
	err = set_kind(rule, attr);
	if (err)
		return err;
	/* to drop a frame is to take it */
	if (rule->drop && (!rule->takes || seen & ACTION_TAG))
		return -EINVAL;
	return check_sense(&rule->match);
}
