// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Takes frames from an interface by the ingress hook of netfilter, which the kernels of
 * distributions have. There may be any number of listeners besides, and the hook comes before VLANs
 * and bridges. A kernel without it has the receive handler. That is for one user only: an interface
 * that is a port of a bridge or a bond, or has a macvlan, has none left; and it does not see what a
 * VLAN interface takes.
 */

#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "compat/ingress.h"

#ifdef CONFIG_NETFILTER_INGRESS

static unsigned int hear(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct vrnic_ingress *in = priv;

	return in->frame(in, skb) ? NF_STOLEN : NF_ACCEPT;
}

static int ingress_start(struct vrnic_ingress *in)
{
	in->ops = (struct nf_hook_ops) {
		.hook = hear,
		.dev = in->ndev,
		.priv = in,
		.pf = NFPROTO_NETDEV,
		.hooknum = NF_NETDEV_INGRESS,
		/* behind the rules of an operator */
		.priority = INT_MAX,
	};
	return nf_register_net_hook(dev_net(in->ndev), &in->ops);
}

static void ingress_stop(struct vrnic_ingress *in)
{
	nf_unregister_net_hook(dev_net(in->ndev), &in->ops);
}

#else

static rx_handler_result_t hear(struct sk_buff **pskb)
{
	struct vrnic_ingress *in = rcu_dereference((*pskb)->dev->rx_handler_data);

	return in->frame(in, *pskb) ? RX_HANDLER_CONSUMED : RX_HANDLER_PASS;
}

static int ingress_start(struct vrnic_ingress *in)
{
	return netdev_rx_handler_register(in->ndev, hear, in);
}

static void ingress_stop(struct vrnic_ingress *in)
{
	netdev_rx_handler_unregister(in->ndev);
}

#endif

/**
 * vrnic_ingress_open() - let frames come
 * @in: listener, with its interface and function; nothing happens if it is open already
 *
 * Return: 0; -EBUSY: the interface has no place for a listener; or another negative errno.
 * Context: RTNL.
 */
int vrnic_ingress_open(struct vrnic_ingress *in)
{
	int err;

	ASSERT_RTNL();
	if (in->open)
		return 0;
	err = ingress_start(in);
	in->open = !err;
	return err;
}

/*
 * Let no more frames come. Those that came before may still be in vrnic_ingress.frame(), until an
 * RCU grace period has passed. The interface has to be in the namespace in which it was opened, or
 * is about to leave it. Context: RTNL.
 */
void vrnic_ingress_close(struct vrnic_ingress *in)
{
	ASSERT_RTNL();
	if (in->open)
		ingress_stop(in);
	in->open = false;
}
