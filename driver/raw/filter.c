// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Has the interface let in the frames that a rule wants. A NIC drops frames that are for other
 * addresses than its own, unless it was told of them, as packet sockets do.
 */

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "raw/filter.h"
#include "raw/rule.h"

/* Does the rule name one destination? */
static bool has_address(const struct vrnic_rule *rule)
{
	return is_broadcast_ether_addr(rule->match.mask.dst_mac);
}

/*
 * Add @n, 1 or -1, to the number of those that want all frames of other addresses or groups. A
 * normal rule without an address takes what comes anyway.
 */
static int filter_all(struct net_device *ndev, const struct vrnic_rule *rule, int n)
{
	if (rule->rank >> 16 == VRNIC_RULE_NORMAL)
		return 0;
	/* IB_FLOW_ATTR_MC_DEFAULT */
	if (rule->match.mask.dst_mac[0])
		return dev_set_allmulti(ndev, n);
	return dev_set_promiscuity(ndev, n);
}

/**
 * vrnic_filter_open() - let the frames of a rule in
 * @ndev: interface
 * @rule: rule
 *
 * Return: 0 or a negative errno. Undone by vrnic_filter_close().
 * Context: RTNL.
 */
int vrnic_filter_open(struct net_device *ndev, const struct vrnic_rule *rule)
{
	const u8 *mac = rule->match.value.dst_mac;

	ASSERT_RTNL();
	if (!has_address(rule))
		return filter_all(ndev, rule, 1);
	return is_multicast_ether_addr(mac) ? dev_mc_add(ndev, mac) : dev_uc_add(ndev, mac);
}

void vrnic_filter_close(struct net_device *ndev, const struct vrnic_rule *rule)
{
	const u8 *mac = rule->match.value.dst_mac;

	ASSERT_RTNL();
	if (!has_address(rule))
		filter_all(ndev, rule, -1);
	else if (is_multicast_ether_addr(mac))
		dev_mc_del(ndev, mac);
	else
		dev_uc_del(ndev, mac);
}
