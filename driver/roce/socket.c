// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Where the RoCEv2 flow meets the network: a UDP socket for each address family
 * of a network namespace, shared by the devices in it; routes; and what comes in
 * goes to the queue pair that it is for.
 */

#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/udp_tunnel.h>

#include "roce/roce.h"

static bool force_roce;
module_param(force_roce, bool, 0644);
MODULE_PARM_DESC(force_roce, "RoCE also between peers on this host, for tests (default N)");

bool vrnic_force_roce(void)
{
	return READ_ONCE(force_roce);
}

/* What the sockets hold; softirqs empty them at once. */
#define RCVBUF_BYTES	SZ_4M

/*
 * The lock is held while sockets are opened, and for a grace period when they are closed; if
 * their namespace goes, while the address handles of its devices are walked. Nobody waits
 * for it who sends: vrnic_wire_open() takes it once for each device.
 */
static LIST_HEAD(wires);
static DEFINE_MUTEX(wires_lock);

static void enqueue_member(struct vrnic_qp *qp, void *arg)
{
	struct sk_buff *skb = skb_clone(arg, GFP_ATOMIC);

	if (!skb)
		vrnic_count_add(qp->dev, RCVD_DROPPED, vrnic_pkt_count(vrnic_pkt(arg)));
	else if (vrnic_pkt_arrive(qp, skb))
		vrnic_pkt_run(qp, false);
}

/* A group: to its members on all devices here that are not the sender's. */
static void dispatch_group(struct net *net, struct sk_buff *skb)
{
	union ib_gid from, to;

	vrnic_pkt_gids(skb, &from, &to);
	if (!vrnic_mcast_receive(net, skb->dev, &from, &to, enqueue_member,
				 skb))
		vrnic_dev_count(net, skb->dev, VRNIC_STAT_RCVD_DROPPED,
				vrnic_pkt_count(vrnic_pkt(skb)));
	kfree_skb(skb);
}

/* Return: with a reference held, unless it is @last, to which the last one went. */
static struct vrnic_qp *find_qp(struct net *net, struct sk_buff *skb,
				struct vrnic_qp *last)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	union ib_gid from, to;
	struct vrnic_qp *qp;

	if (last && pkt->qpn == last->qpn && vrnic_pkt_fits(last, pkt))
		return last;
	if (pkt->qpn == 1) {
		vrnic_pkt_gids(skb, &from, &to);
		qp = vrnic_gsi_by_net(net, skb->dev, &to);
	} else {
		qp = vrnic_qp_get(pkt->qpn);
	}
	if (!qp)
		return NULL;
	if (vrnic_pkt_fits(qp, pkt) && net_eq(dev_net(qp->dev->ndev), net))
		return qp;
	vrnic_qp_put(qp);
	return NULL;
}

static void (*on_hello)(struct net *net, struct sk_buff *skb);

/**
 * vrnic_wire_on_hello() - whose are datagrams about native links?
 * @fn: called for each, which is its from then on; in softirq
 *
 * Before there are sockets.
 */
void vrnic_wire_on_hello(void (*fn)(struct net *net, struct sk_buff *skb))
{
	on_hello = fn;
}

static void drop(struct net *net, struct sk_buff *skb, enum vrnic_stat why,
		 u32 count)
{
	vrnic_dev_count(net, skb->dev, why, count);
	kfree_skb(skb);
}

/*
 * One packet, or a train, which vrnic_pkt_parse() may have been content with.
 *
 * Return: queue pair that it waits for, to be run and put, but for @last, to which the
 * last one went; NULL: none does.
 */
static struct vrnic_qp *sort_packet(struct net *net, struct sk_buff *skb,
				    bool fits, struct vrnic_qp *last)
{
	struct vrnic_qp *qp;

	if (!fits) {
		drop(net, skb, VRNIC_STAT_MALFORMED_PKTS, 1);
		return NULL;
	}
	if (vrnic_pkt(skb)->info & VRNIC_PKT_HELLO) {
		on_hello(net, skb);
		return NULL;
	}
	if (vrnic_pkt(skb)->qpn == VRNIC_BTH_QPN) {
		dispatch_group(net, skb);
		return NULL;
	}
	qp = find_qp(net, skb, last);
	if (!qp) {
		drop(net, skb, VRNIC_STAT_RCVD_DROPPED,
		     vrnic_pkt_count(vrnic_pkt(skb)));
		return NULL;
	}
	if (vrnic_pkt_arrive(qp, skb))
		return qp;
	if (qp != last)
		vrnic_qp_put(qp);
	return NULL;
}

/*
 * Packets that came together, each with a clone of the buffer; those that can be
 * executed as one share it. Almost always all are for the same queue pair; a thread
 * runs any other. Return: likewise.
 */
static struct vrnic_qp *sort_burst(struct net *net, struct sk_buff *skb)
{
	u32 size = skb_shinfo(skb)->gso_size, len = skb->len, at, end;
	struct vrnic_qp *all = NULL, *qp;
	struct sk_buff *one;
	bool fits;

	for (at = 0; at < len; at = end) {
		size = min(size, len - at);
		end = at + size;
		fits = vrnic_pkt_parse(skb, at, size);
		if (fits && !static_branch_unlikely(&vrnic_faults_armed))
			end += vrnic_pkt_couple(skb, at, size) * size;
		one = end < len ? skb_clone(skb, GFP_ATOMIC) : skb;
		if (!one) {
			vrnic_dev_count(net, skb->dev, VRNIC_STAT_RCVD_DROPPED,
					(end - at) / size);
			continue;
		}
		qp = sort_packet(net, one, fits, all);
		if (!qp || qp == all)
			continue;
		if (all) {
			vrnic_queue(&all->run);
			vrnic_qp_put(all);
		}
		all = qp;
	}
	return all;
}

/* A buffer that the socket got; under RCU. Return: likewise. */
static struct vrnic_qp *sort(struct net *net, struct sk_buff *skb)
{
	/* the socket used the place where the device was */
	skb->dev = dev_get_by_index_rcu(net, skb->skb_iif);
	if (!skb->dev) {
		kfree_skb(skb);
		return NULL;
	}
	if (skb_is_gso(skb))
		return sort_burst(net, skb);
	return sort_packet(net, skb, vrnic_pkt_parse(skb, 0, skb->len), NULL);
}

static struct sk_buff *take(struct sock *sk)
{
	struct sk_buff *skb;
	int off = 0, err;

	/* an error that the network reported comes before the packets, once */
	do {
		skb = __skb_recv_udp(sk, MSG_DONTWAIT, &off, &err);
	} while (!skb && err != -EAGAIN);
	return skb;
}

/*
 * sock.sk_data_ready: softirq, once for each buffer that was queued. Sockets of
 * tunnels (encap_rcv) are called without a queue, but what came as one buffer is
 * taken apart for them; this one takes it as it is, as if by UDP_GRO. Whoever takes a
 * buffer from the socket also sorts it under the lock, so that those of a flow cannot
 * overtake each other. What another CPU queued meanwhile is left to that.
 */
static void data_ready(struct sock *sk)
{
	struct vrnic_qp *qp = NULL;
	struct vrnic_wire *w;
	struct sk_buff *skb;
	bool small = false;

	rcu_read_lock();
	w = rcu_dereference_sk_user_data(sk);
	if (w) {
		spin_lock_bh(&w->order);
		skb = take(sk);
		if (skb) {
			small = vrnic_pkt_small(skb);
			qp = sort(sock_net(sk), skb);
		}
		spin_unlock_bh(&w->order);
	}
	if (qp) {
		vrnic_pkt_run(qp, small);
		vrnic_qp_put(qp);
	}
	rcu_read_unlock();
}

static void sock_attach(struct vrnic_wire *w, struct sock *sk)
{
	struct sk_buff *skb;

	write_lock_bh(&sk->sk_callback_lock);
	rcu_assign_sk_user_data(sk, w);
	sk->sk_data_ready = data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	/* what was queued before that: nobody would be called for it */
	while ((skb = take(sk)))
		kfree_skb(skb);
}

static int sock_open(struct vrnic_wire *w, bool ipv6, struct socket **sock)
{
	struct udp_port_cfg port = {
		.family = ipv6 ? AF_INET6 : AF_INET,
		.local_udp_port = htons(VRNIC_ROCE_PORT),
		.ipv6_v6only = ipv6,
	};
	int on = 1, err;

	err = udp_sock_create(w->net, &port, sock);
	if (err)
		return err;
	err = (*sock)->ops->setsockopt(*sock, SOL_UDP, UDP_GRO,
				       KERNEL_SOCKPTR(&on), sizeof(on));
	if (err) {
		vrnic_udp_tunnel_release(*sock);
		*sock = NULL;
		return err;
	}
	sock_set_rcvbuf((*sock)->sk, RCVBUF_BYTES);
	sock_attach(w, (*sock)->sk);
	return 0;
}

/* Senders use the sockets under RCU: wait for them. Caller holds wires_lock. */
static void wire_shut(struct vrnic_wire *w)
{
	int i;

	lockdep_assert_held(&wires_lock);
	for (i = 0; i < 2; i++)
		RCU_INIT_POINTER(w->sk[i], NULL);
	synchronize_rcu();
	for (i = 0; i < 2; i++) {
		if (w->sock[i])
			vrnic_udp_tunnel_release(w->sock[i]);
		w->sock[i] = NULL;
	}
	w->net = NULL;
}

static int wire_open_socks(struct vrnic_wire *w)
{
	int i, err;

	for (i = 0; i < 2; i++) {
		err = sock_open(w, i, &w->sock[i]);
		/* a kernel or namespace without IPv6 */
		if (i && (err == -EAFNOSUPPORT || err == -EPFNOSUPPORT ||
			  err == -EADDRNOTAVAIL))
			continue;
		if (err)
			return err;
		rcu_assign_pointer(w->sk[i], w->sock[i]->sk);
	}
	return 0;
}

/* Without sockets, and in no list. NULL: no memory. */
struct vrnic_wire *vrnic_wire_alloc(struct net *net)
{
	struct vrnic_wire *w = kzalloc(sizeof(*w), GFP_KERNEL);

	if (!w)
		return NULL;
	w->net = net;
	INIT_LIST_HEAD(&w->link);
	INIT_LIST_HEAD(&w->devs);
	INIT_LIST_HEAD(&w->qps);
	spin_lock_init(&w->order);
	spin_lock_init(&w->qps_lock);
	return w;
}

static struct vrnic_wire *wire_new(struct net *net)
{
	struct vrnic_wire *w = vrnic_wire_alloc(net);
	int err;

	if (!w)
		return ERR_PTR(-ENOMEM);
	err = wire_open_socks(w);
	if (err) {
		wire_shut(w);
		kfree(w);
		return ERR_PTR(err);
	}
	list_add(&w->link, &wires);
	return w;
}

static struct vrnic_wire *wire_find(struct net *net)
{
	struct vrnic_wire *w;

	lockdep_assert_held(&wires_lock);
	list_for_each_entry(w, &wires, link)
		if (w->net && net_eq(w->net, net))
			return w;
	return NULL;
}

static struct vrnic_wire *wire_get(struct net *net)
{
	struct vrnic_wire *w = wire_find(net) ?: wire_new(net);

	if (!IS_ERR(w))
		w->users++;
	return w;
}

static void wire_put(struct vrnic_wire *w)
{
	lockdep_assert_held(&wires_lock);
	if (--w->users)
		return;
	WARN_ON(!list_empty(&w->qps));
	list_del(&w->link);
	if (w->net)
		wire_shut(w);
	kfree(w);
}

/**
 * vrnic_wire_open() - have the sockets of a device's network namespace
 * @dev: device
 *
 * Return: 0, -EADDRINUSE (somebody else has the port, as rdma_rxe does), or
 * another negative errno.
 */
int vrnic_wire_open(struct vrnic_dev *dev)
{
	struct vrnic_wire *w;
	struct net *net;
	int err = 0;

	/* pairs with the release below: every datagram comes here */
	if (smp_load_acquire(&dev->wire))
		return 0;
	/* wire_net_exit() finds what is opened in it */
	net = vrnic_net_get(dev->ndev);
	if (!net)
		return -ENODEV;
	mutex_lock(&wires_lock);
	if (!dev->wire) {
		w = wire_get(net);
		if (IS_ERR(w)) {
			err = PTR_ERR(w);
		} else {
			list_add(&dev->wired, &w->devs);
			/* pairs with the acquire above, and that of vrnic_path_init() */
			smp_store_release(&dev->wire, w);
		}
	}
	mutex_unlock(&wires_lock);
	put_net(net);
	return err;
}

/* Nobody sends for the device any more. */
void vrnic_wire_close(struct vrnic_dev *dev)
{
	struct vrnic_wire *w = dev->wire;

	if (!w)
		return;
	mutex_lock(&wires_lock);
	list_del(&dev->wired);
	wire_put(w);
	mutex_unlock(&wires_lock);
	dev->wire = NULL;
}

/**
 * vrnic_wire_join() - a queue pair has a path, and may have a route from now on
 * @w: the path's
 * @qp: queue pair; parked
 *
 * If no route can be found any more, it does not matter who has the path.
 */
void vrnic_wire_join(struct vrnic_wire *w, struct vrnic_qp *qp)
{
	lockdep_assert_held(&qp->ctrl);
	spin_lock(&w->qps_lock);
	if (!w->shut)
		list_add(&qp->wired, &w->qps);
	spin_unlock(&w->qps_lock);
}

/* It has no route, and gets none. */
static void wire_leave(struct vrnic_wire *w, struct vrnic_qp *qp)
{
	lockdep_assert_held(&qp->ctrl);
	spin_lock(&w->qps_lock);
	list_del_init(&qp->wired);
	spin_unlock(&w->qps_lock);
}

/*
 * Its path has no route any more, and gets none: it is disconnected or destroyed, or the
 * namespace goes. Parked, with @ctrl held. The route goes first: who finds no queue pair in
 * the list of a wire knows that none has one.
 */
void vrnic_roce_leave(struct vrnic_qp *qp)
{
	/* only the holder of @ctrl puts it into a list, or takes it out */
	if (list_empty(&qp->wired))
		return;
	vrnic_path_drop(&qp->roce->path);
	wire_leave(qp->roce->path.wire, qp);
}

/*
 * The namespace goes that the queue pair's route leads to. The caller has a reference, and no
 * route is found for it any more. Waits for whoever changes the queue pair, or runs it: for a
 * burst.
 */
static void forget_route(struct vrnic_qp *qp)
{
	mutex_lock(&qp->ctrl);
	/* what is destroyed is parked for ever, and what was reset needs not be */
	if (!list_empty(&qp->wired)) {
		vrnic_park(&qp->run);
		vrnic_roce_leave(qp);
		vrnic_roce_resume(qp);
		vrnic_unpark(&qp->run);
		/* a timer that was cancelled, and who found it parked */
		vrnic_queue(&qp->run);
	}
	mutex_unlock(&qp->ctrl);
}

/* A queue pair that may have a route, with a reference; none will come behind the last. */
static struct vrnic_qp *next_qp(struct vrnic_wire *w)
{
	struct vrnic_qp *qp;

	spin_lock(&w->qps_lock);
	w->shut = true;
	qp = list_first_entry_or_null(&w->qps, struct vrnic_qp, wired);
	/* it leaves the list before its owner puts his */
	if (qp)
		refcount_inc(&qp->refs);
	spin_unlock(&w->qps_lock);
	return qp;
}

/**
 * vrnic_wire_end() - the namespace of a wire goes
 * @w: wire; the caller keeps it
 *
 * A route leads to its namespace and does not keep it. So from here on nobody of ours has
 * one. Once the sockets are shut, none is found any more; and who looked one up before has put
 * it where it is looked for, because he did so under RCU, or with a run bit.
 *
 * Context: process context, may sleep. Waits for whoever has vrnic_qp.ctrl or a run bit.
 */
void vrnic_wire_end(struct vrnic_wire *w)
{
	struct vrnic_dev *dev;
	struct vrnic_qp *qp;

	mutex_lock(&wires_lock);
	wire_shut(w);
	list_for_each_entry(dev, &w->devs, wired)
		vrnic_avs_forget(dev);
	mutex_unlock(&wires_lock);
	/* without the lock, which is taken by who changes a queue pair */
	while ((qp = next_qp(w))) {
		forget_route(qp);
		vrnic_qp_put(qp);
	}
	/* what address vectors have just given back, and datagrams and acknowledgments use */
	synchronize_rcu();
	WRITE_ONCE(w->over, true);
}

/*
 * Interfaces that were made in the namespace went before it, and the devices on them. What is
 * left are devices whose interface moved away: nobody waited for their end, which a process
 * can put off. With pernet_ops_rwsem.
 */
static void wire_net_exit(struct net *net)
{
	struct vrnic_wire *w;

	mutex_lock(&wires_lock);
	w = wire_find(net);
	if (w)
		w->users++;
	mutex_unlock(&wires_lock);
	if (!w)
		return;
	vrnic_wire_end(w);
	mutex_lock(&wires_lock);
	wire_put(w);
	mutex_unlock(&wires_lock);
}

static struct pernet_operations wire_net_ops = { .exit = wire_net_exit };

int vrnic_wire_init(void)
{
	int err = vrnic_room_init();

	if (err)
		return err;
	err = register_pernet_subsys(&wire_net_ops);
	if (err)
		vrnic_room_exit();
	return err;
}

void vrnic_wire_exit(void)
{
	unregister_pernet_subsys(&wire_net_ops);
	/* a softirq may still be in here, of a socket that is gone */
	synchronize_net();
	vrnic_room_exit();
}

/**
 * vrnic_path_init() - where the packets of a flow go
 * @path: filled in; to be dropped
 * @dev: sender's device
 * @sgid: its address
 * @attr: address vector
 * @oif: interface of @sgid
 * @sqpn: sender, to make a source port of
 * @dqpn: receiver, likewise
 *
 * Return: 0 or -ENOTCONN: the device has no socket.
 */
int vrnic_path_init(struct vrnic_path *path, struct vrnic_dev *dev,
		    const union ib_gid *sgid, const struct rdma_ah_attr *attr,
		    int oif, u32 sqpn, u32 dqpn)
{
	const struct ib_global_route *grh = &attr->grh;
	struct in6_addr *to = (struct in6_addr *)grh->dgid.raw;

	memset(path, 0, sizeof(*path));
	/* pairs with the release of vrnic_wire_open() */
	path->wire = smp_load_acquire(&dev->wire);
	if (!path->wire)
		return -ENOTCONN;
	path->sgid = *sgid;
	path->dgid = grh->dgid;
	path->ipv6 = !ipv6_addr_v4mapped((struct in6_addr *)sgid->raw);
	/* congestion is nothing to a sender that nobody can tell of it */
	path->tos = grh->traffic_class & ~INET_ECN_MASK;
	path->ttl = grh->hop_limit;
	/* as of a socket's, and as rdma_cm has it, which makes a service level of that */
	path->priority = rt_tos2priority(path->tos);
	path->label = grh->flow_label & 0xfffff;
	path->sport = rdma_get_udp_sport(grh->flow_label, sqpn, dqpn);
	/* an address of this host is on whatever interface it is on */
	if (ipv6_addr_type(to) & IPV6_ADDR_LINKLOCAL ||
	    !vrnic_gid_is_local(dev, &grh->dgid))
		path->oif = oif;
	return 0;
}

static void route_put(struct vrnic_wire *w, struct dst_entry *dst)
{
	/* the namespace that it leads to may be gone */
	WARN_ON_ONCE(dst && READ_ONCE(w->over));
	dst_release(dst);
}

/* A device's route is not kept any more. @dst may be NULL. */
void vrnic_route_put(struct vrnic_dev *dev, struct dst_entry *dst)
{
	route_put(READ_ONCE(dev->wire), dst);
}

void vrnic_path_drop(struct vrnic_path *path)
{
	route_put(path->wire, path->dst);
	path->dst = NULL;
}

static struct dst_entry *route4(struct vrnic_path *path, struct sock *sk)
{
	struct flowi4 fl = {
		.flowi4_oif = path->oif,
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(path->sport),
		.fl4_dport = htons(VRNIC_ROCE_PORT),
	};
	struct rtable *rt;

	memcpy(&fl.saddr, path->sgid.raw + 12, sizeof(fl.saddr));
	memcpy(&fl.daddr, path->dgid.raw + 12, sizeof(fl.daddr));
	rt = ip_route_output_key(sock_net(sk), &fl);
	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *route6(struct vrnic_path *path, struct sock *sk)
{
	struct flowi6 fl = {
		.flowi6_oif = path->oif,
		.flowi6_proto = IPPROTO_UDP,
		.fl6_sport = htons(path->sport),
		.fl6_dport = htons(VRNIC_ROCE_PORT),
	};
	struct dst_entry *dst;

	memcpy(&fl.saddr, path->sgid.raw, sizeof(fl.saddr));
	memcpy(&fl.daddr, path->dgid.raw, sizeof(fl.daddr));
	dst = vrnic_ip6_dst_lookup_flow(sock_net(sk), sk, &fl);
	if (IS_ERR(dst))
		return NULL;
	if (dst->error) {
		dst_release(dst);
		return NULL;
	}
	path->cookie = rt6_get_cookie((struct rt6_info *)dst);
	return dst;
}

/**
 * vrnic_path_route() - the route of a path, as of now
 * @qp: sender
 * @path: path
 *
 * Return: route; the path's reference keeps it. NULL: there is none.
 */
struct dst_entry *vrnic_path_route(struct vrnic_qp *qp, struct vrnic_path *path)
{
	struct sock *sk;

	if (path->dst && dst_check(path->dst, path->cookie))
		return path->dst;
	vrnic_path_drop(path);
	vrnic_count(qp->dev, ROUTE_LOOKUPS);
	rcu_read_lock();
	sk = rcu_dereference(path->wire->sk[path->ipv6]);
	if (sk)
		path->dst = path->ipv6 ? route6(path, sk) : route4(path, sk);
	rcu_read_unlock();
	return path->dst;
}

/**
 * vrnic_wire_send() - hand a packet with its IP header and its route to the network
 * @w: sockets of the sender's namespace
 * @skb: packet; gone afterwards
 *
 * Return: 0 or a negative errno. Either way it may still be lost.
 */
int vrnic_wire_send(struct vrnic_wire *w, struct sk_buff *skb)
{
	bool ipv6 = skb->protocol == htons(ETH_P_IPV6);
	struct sock *sk;
	int err = -ENETDOWN;

	rcu_read_lock();
	sk = rcu_dereference(w->sk[ipv6]);
	if (!sk)
		kfree_skb(skb);
	else if (ipv6)
		err = ip6_local_out(sock_net(sk), sk, skb);
	else
		err = ip_local_out(sock_net(sk), sk, skb);
	rcu_read_unlock();
	return net_xmit_eval(err);
}

/**
 * vrnic_path_send() - hand a packet with its IP header to the network
 * @path: path; its route was just looked up
 * @skb: packet; gone afterwards
 *
 * Return: as vrnic_wire_send().
 */
int vrnic_path_send(struct vrnic_path *path, struct sk_buff *skb)
{
	skb_dst_set(skb, dst_clone(path->dst));
	return vrnic_wire_send(path->wire, skb);
}
