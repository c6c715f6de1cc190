// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connects the RoCEv2 flow to the network: a UDP socket for each address family of a network
 * namespace, which all devices in the namespace share; routes; and the dispatch of packets to their
 * queue pairs.
 */

#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/udp_tunnel.h>

#include "base/fault.h"
#include "base/gid.h"
#include "base/port.h"
#include "base/stats.h"
#include "compat/compat.h"
#include "engine/engine.h"
#include "lib/hdr.h"
#include "queue/mcast.h"
#include "queue/qp.h"
#include "queue/qp_table.h"
#include "queue/room.h"
#include "roce/av_route.h"
#include "roce/roce.h"
#include "roce/socket.h"
#include "verbs/flow.h"
#include "vrnic.h"

static bool force_roce;
module_param(force_roce, bool, 0644);
MODULE_PARM_DESC(force_roce, "RoCE also between peers on this host, for tests (default N)");

bool vrnic_force_roce(void)
{
	return READ_ONCE(force_roce);
}

/* Receive buffer of a socket. It need not be large: data_ready() takes each buffer out at once. */
#define RCVBUF_BYTES	SZ_4M

/*
 * A holder of wires_lock may open sockets, wait for a grace period to close them, or walk the
 * address handles of a device whose network namespace ends. So no system call on a queue pair and
 * no sender takes it: a work item of the device opens its sockets.
 */
static LIST_HEAD(wires);
static DEFINE_MUTEX(wires_lock);

/*
 * Runs the devices' openers. To free memory, the kernel may have to connect to a disk over RDMA,
 * and then wait for an opener: hence WQ_MEM_RECLAIM.
 */
static struct workqueue_struct *openers;

/* A member that does not want the packet costs no copy: a group may have many of them. */
static void enqueue_member(struct vrnic_qp *qp, void *arg)
{
	struct sk_buff *skb = NULL;

	if (vrnic_pkt_welcome(qp, arg))
		skb = skb_clone(arg, GFP_ATOMIC);
	if (!skb)
		vrnic_count_add(qp->dev, RCVD_DROPPED, vrnic_pkt_count(vrnic_pkt(arg)));
	else if (vrnic_pkt_arrive(qp, skb))
		vrnic_pkt_run(qp, false);
}

/*
 * Give a multicast packet to the members of its group on the device that heard it. If that is the
 * sender's own device, it has delivered the datagram already.
 */
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

/*
 * Get a packet's queue pair, with a reference unless it is @last, the previous packet's; or NULL.
 */
static struct vrnic_qp *find_qp(struct net *net, struct sk_buff *skb,
				struct vrnic_qp *last)
{
	struct vrnic_pkt *pkt = vrnic_pkt(skb);
	union ib_gid from, to;
	struct vrnic_qp *qp;

	if (last && pkt->qpn == last->qpn)
		return last;
	if (pkt->qpn == 1) {
		vrnic_pkt_gids(skb, &from, &to);
		qp = vrnic_gsi_by_net(net, skb->dev, &to);
	} else {
		qp = vrnic_qp_get(pkt->qpn);
	}
	if (!qp)
		return NULL;
	if (qp != last && vrnic_in_net(qp->dev, net))
		return qp;
	/* packets for a GSI queue pair do not have its number, so it may be @last */
	vrnic_qp_put(qp);
	return qp == last ? last : NULL;
}

static void (*on_hello)(struct net *net, struct sk_buff *skb);

/**
 * vrnic_wire_on_hello() - set the handler of datagrams about native links
 * @fn: called in softirq for each datagram, which it has to free
 *
 * The caller has to do this before the first socket is opened.
 */
void vrnic_wire_on_hello(void (*fn)(struct net *net, struct sk_buff *skb))
{
	on_hello = fn;
}

static void socket_drop(struct net *net, struct sk_buff *skb, enum vrnic_stat why,
			u32 count)
{
	vrnic_dev_count(net, skb->dev, why, count);
	kfree_skb(skb);
}

/*
 * Dispatch one packet or a train; @fits: vrnic_pkt_parse() accepted it.
 *
 * Return: queue pair that the caller has to run, and then to put unless it is @last, which got the
 * previous packet; NULL if there is none to run.
 */
static struct vrnic_qp *sort_packet(struct net *net, struct sk_buff *skb,
				    bool fits, struct vrnic_qp *last)
{
	struct vrnic_qp *qp;

	if (!fits) {
		socket_drop(net, skb, VRNIC_STAT_MALFORMED_PKTS, 1);
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
		socket_drop(net, skb, VRNIC_STAT_RCVD_DROPPED,
			    vrnic_pkt_count(vrnic_pkt(skb)));
		return NULL;
	}
	if (vrnic_pkt_arrive(qp, skb))
		return qp;
	if (qp != last)
		vrnic_qp_put(qp);
	return NULL;
}

#define BUFFER_PKTS	128	/* most that UDP_SEGMENT, GRO, and roce/tx.c make */

/* Would the packets of a buffer, which may come from a virtual machine, take too long? */
static bool has_many(const struct sk_buff *skb)
{
	return skb->len > BUFFER_PKTS * skb_shinfo(skb)->gso_size;
}

/*
 * Dispatch the packets of one buffer. Each packet gets a clone of the buffer; the packets of a
 * train share one. Almost always, all packets are for one queue pair. Otherwise threads run all of
 * the queue pairs but the last. Return: queue pair that the caller has to run and put, or NULL.
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

/* Dispatch a buffer of the socket, under RCU. Return: queue pair to run and put, or NULL. */
static struct vrnic_qp *socket_sort(struct net *net, struct sk_buff *skb)
{
	/* the socket has overwritten skb->dev, which dispatch needs */
	skb->dev = dev_get_by_index_rcu(net, skb->skb_iif);
	if (!skb->dev) {
		kfree_skb(skb);
		return NULL;
	}
	if (skb_is_gso(skb) && has_many(skb)) {
		socket_drop(net, skb, VRNIC_STAT_MALFORMED_PKTS, 1);
		return NULL;
	}
	if (skb_is_gso(skb))
		return sort_burst(net, skb);
	return sort_packet(net, skb, vrnic_pkt_parse(skb, 0, skb->len), NULL);
}

static struct sk_buff *socket_take(struct sock *sk)
{
	struct sk_buff *skb;
	int off = 0, err;

	/* -EAGAIN: empty; the socket returns any other pending error once, ahead of its packets */
	do {
		skb = __skb_recv_udp(sk, MSG_DONTWAIT, &off, &err);
	} while (!skb && err != -EAGAIN);
	return skb;
}

/*
 * sock.sk_data_ready: the stack calls this in softirq, once for each buffer that it queues. (It
 * splits a GSO buffer before it calls a tunnel socket's encap_rcv. This socket has UDP_GRO and gets
 * the buffer whole.) One CPU at a time takes a buffer out and dispatches it, under @order, so that
 * the buffers of a flow cannot overtake each other. It leaves the next buffer to the CPU that
 * queued it.
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
		skb = socket_take(sk);
		if (skb) {
			small = vrnic_pkt_small(skb);
			qp = socket_sort(sock_net(sk), skb);
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
	/* drop what came before sk_data_ready was set: nothing calls data_ready() for it */
	while ((skb = socket_take(sk)))
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
	/* else socket_take() may call the NIC's driver, and that data_ready() once more */
	vrnic_sk_no_busy_poll((*sock)->sk);
	sock_attach(w, (*sock)->sk);
	return 0;
}

/* Close the sockets, after a grace period: senders use them under RCU. */
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
		/* the kernel or the namespace has no IPv6 */
		if (i && (err == -EAFNOSUPPORT || err == -EPFNOSUPPORT ||
			  err == -EADDRNOTAVAIL))
			continue;
		if (err)
			return err;
		rcu_assign_pointer(w->sk[i], w->sock[i]->sk);
	}
	return 0;
}

/* Make a wire that has no sockets and is in no list. Return: NULL if there is no memory. */
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
		kfree_rcu(w, rcu);
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
	kfree_rcu(w, rcu);
}

static int wire_open(struct vrnic_dev *dev)
{
	struct vrnic_wire *w;
	struct net *net;

	/* this reference keeps wire_net_exit() away until it can find what is opened here */
	net = vrnic_net_get(dev->ndev);
	if (!net)
		return -ENODEV;
	mutex_lock(&wires_lock);
	/* an interface that has moved leads nowhere any more */
	w = vrnic_in_net(dev, net) ? wire_get(net) : ERR_PTR(-ENODEV);
	if (!IS_ERR(w)) {
		list_add(&dev->wired, &w->devs);
		/* pairs with the acquires in wire_is_open() and vrnic_path_init() */
		smp_store_release(&dev->wire, w);
	}
	mutex_unlock(&wires_lock);
	put_net(net);
	return PTR_ERR_OR_ZERO(w);
}

static bool wire_is_open(struct vrnic_dev *dev)
{
	/* pairs with the release in wire_open() */
	return smp_load_acquire(&dev->wire);
}

/*
 * A work item opens the sockets, and not the caller: the holder of wires_lock then never waits for
 * the memory or the CPU time of the caller's control groups.
 */
static void opener_work(struct work_struct *work)
{
	struct vrnic_dev *dev = container_of(work, struct vrnic_dev, opener);
	int err;

	if (wire_is_open(dev))
		return;
	err = wire_open(dev);
	WRITE_ONCE(dev->wire_tried, jiffies);
	WRITE_ONCE(dev->wire_err, err);
}

/* After a failure it takes so long until the sockets are tried again, so that tries are few. */
#define RETRY_MS	100

static bool tried_lately(const struct vrnic_dev *dev)
{
	return READ_ONCE(dev->wire_err) &&
	       time_before(jiffies, READ_ONCE(dev->wire_tried) + msecs_to_jiffies(RETRY_MS));
}

void vrnic_wire_prepare(struct vrnic_dev *dev)
{
	INIT_WORK(&dev->opener, opener_work);
}

/**
 * vrnic_wire_open() - get the sockets of a device's network namespace
 * @dev: device
 *
 * Context: process context, may sleep.
 * Return: 0, -EADDRINUSE (other software has the port, such as rdma_rxe), or another negative
 * errno.
 */
int vrnic_wire_open(struct vrnic_dev *dev)
{
	if (wire_is_open(dev))
		return 0;
	if (tried_lately(dev)) {
		schedule_timeout_killable(msecs_to_jiffies(RETRY_MS));
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	queue_work(openers, &dev->opener);
	flush_work(&dev->opener);
	return wire_is_open(dev) ? 0 : READ_ONCE(dev->wire_err);
}

/**
 * vrnic_wire_ready() - has a device its sockets? If not, begin to open them
 * @dev: device
 *
 * Return: 0; -EAGAIN: ask again after VRNIC_WIRE_OPENING_NS; another negative errno: the last try
 * failed, and a datagram is to be dropped.
 */
int vrnic_wire_ready(struct vrnic_dev *dev)
{
	if (wire_is_open(dev))
		return 0;
	if (tried_lately(dev))
		return READ_ONCE(dev->wire_err);
	queue_work(openers, &dev->opener);
	/* after a failure, datagrams do not wait for the next try */
	return READ_ONCE(dev->wire_err) ?: -EAGAIN;
}

/* Give the sockets of a device back. No sender uses the device any more. */
void vrnic_wire_close(struct vrnic_dev *dev)
{
	struct vrnic_wire *w;

	cancel_work_sync(&dev->opener);
	w = dev->wire;
	if (!w)
		return;
	mutex_lock(&wires_lock);
	list_del(&dev->wired);
	wire_put(w);
	mutex_unlock(&wires_lock);
	dev->wire = NULL;
}

/**
 * vrnic_wire_join() - list a queue pair that may look up a route from now on
 * @w: wire of its path
 * @qp: queue pair; parked
 *
 * If the wire is shut, no look-up finds a route any more, so the queue pair need not be listed.
 */
void vrnic_wire_join(struct vrnic_wire *w, struct vrnic_qp *qp)
{
	lockdep_assert_held(&qp->ctrl);
	spin_lock(&w->qps_lock);
	if (!w->shut)
		list_add(&qp->wired, &w->qps);
	spin_unlock(&w->qps_lock);
}

/* Take a queue pair, which has no route and gets none, off the list. */
static void wire_leave(struct vrnic_wire *w, struct vrnic_qp *qp)
{
	lockdep_assert_held(&qp->ctrl);
	spin_lock(&w->qps_lock);
	list_del_init(&qp->wired);
	spin_unlock(&w->qps_lock);
}

/*
 * Take the route from a queue pair for ever, because it is disconnected or destroyed, or its
 * network namespace ends. The caller has parked it, and holds @ctrl. The route is put before the
 * queue pair leaves the list, so if the list of a wire is empty, no queue pair has a route.
 */
void vrnic_roce_leave(struct vrnic_qp *qp)
{
	/* only the holder of @ctrl puts the queue pair into a list, or takes it out */
	if (list_empty(&qp->wired))
		return;
	vrnic_path_drop(&qp->roce->path);
	wire_leave(qp->roce->path.wire, qp);
}

/*
 * Drop the route of a queue pair whose network namespace is about to end. The sockets are shut, so
 * no look-up finds another. The caller has a reference. This waits for calls that modify the queue
 * pair, and for its present run, which lasts one burst.
 */
static void forget_route(struct vrnic_qp *qp)
{
	mutex_lock(&qp->ctrl);
	/*
	 * A queue pair that was reset or destroyed has no route, and is not in the list. A
	 * destroyed one stays parked for ever, so vrnic_park() would never return.
	 */
	if (!list_empty(&qp->wired)) {
		vrnic_park(&qp->run);
		vrnic_roce_leave(qp);
		vrnic_unpark(&qp->run);
		/* the park cancelled the timer, and runners that found it parked have gone away */
		vrnic_queue(&qp->run);
	}
	mutex_unlock(&qp->ctrl);
}

/* Get a listed queue pair, with a reference; or NULL. No other can join the list any more. */
static struct vrnic_qp *next_qp(struct vrnic_wire *w)
{
	struct vrnic_qp *qp;

	spin_lock(&w->qps_lock);
	w->shut = true;
	qp = list_first_entry_or_null(&w->qps, struct vrnic_qp, wired);
	/* its owner still has a reference, which is put only after wire_leave() */
	if (qp)
		refcount_inc(&qp->refs);
	spin_unlock(&w->qps_lock);
	return qp;
}

/**
 * vrnic_wire_end() - drop all routes of a network namespace that is about to end
 * @w: wire; the caller has a reference
 *
 * A route leads to its namespace without keeping it, so no code of this driver may have a route
 * afterwards. Once the sockets are shut, no look-up finds one. A route that an earlier look-up
 * found is by then in an address vector or a queue pair, where this function drops it: the look-up
 * and the store are one RCU section, or one run of the queue pair.
 *
 * Context: process context, may sleep. Waits for the holders of vrnic_qp.ctrl and of run bits.
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
	/* not under wires_lock: a modify call holds @ctrl and waits for opener_work() */
	while ((qp = next_qp(w))) {
		forget_route(qp);
		vrnic_qp_put(qp);
	}
	/* wait for datagrams and acknowledgments that still use a route under RCU, or in softirq */
	synchronize_rcu();
	WRITE_ONCE(w->over, true);
}

/*
 * A network namespace ends. Interfaces that were made in it are gone, and so are their devices. A
 * device whose interface has moved to another namespace may still be there; a process can delay its
 * end, so this does not wait for it. The core holds pernet_ops_rwsem.
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
	int err = vrnic_roce_init();

	if (err)
		return err;
	err = vrnic_room_init();
	if (err)
		goto err_roce;
	openers = alloc_workqueue("vrnic-openers", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!openers) {
		err = -ENOMEM;
		goto err_room;
	}
	err = register_pernet_subsys(&wire_net_ops);
	if (err)
		goto err_openers;
	return 0;

err_openers:
	destroy_workqueue(openers);
err_room:
	vrnic_room_exit();
err_roce:
	vrnic_roce_exit();
	return err;
}

void vrnic_wire_exit(void)
{
	unregister_pernet_subsys(&wire_net_ops);
	destroy_workqueue(openers);
	/* a softirq may still be in data_ready() for a socket that was released */
	synchronize_net();
	vrnic_room_exit();
	vrnic_roce_exit();
}

/**
 * vrnic_path_init() - set up the path of a flow
 * @path: to be filled in; the caller has to drop it
 * @dev: sender's device
 * @sgid: sender's address
 * @attr: address vector
 * @oif: index of the interface that has @sgid
 * @sqpn: sender's queue pair number, for the source port
 * @dqpn: receiver's queue pair number, for the source port
 *
 * Return: 0, or -ENOTCONN if the device has no sockets.
 */
int vrnic_path_init(struct vrnic_path *path, struct vrnic_dev *dev,
		    const union ib_gid *sgid, const struct rdma_ah_attr *attr,
		    int oif, u32 sqpn, u32 dqpn)
{
	const struct ib_global_route *grh = &attr->grh;
	struct in6_addr *to = (struct in6_addr *)grh->dgid.raw;

	memset(path, 0, sizeof(*path));
	/* pairs with the release in wire_open() */
	path->wire = smp_load_acquire(&dev->wire);
	if (!path->wire)
		return -ENOTCONN;
	path->sgid = *sgid;
	path->dgid = grh->dgid;
	path->ipv6 = !ipv6_addr_v4mapped((struct in6_addr *)sgid->raw);
	/* no ECN bits: a UD sender gets no CNPs; path_to_peer() adds them for RC and UC */
	path->tos = grh->traffic_class & ~INET_ECN_MASK;
	path->ttl = grh->hop_limit;
	/* as for a socket with this IP_TOS; rdma_cm makes a service level of this priority */
	path->priority = rt_tos2priority(path->tos);
	path->label = grh->flow_label & 0xfffff;
	path->sport = rdma_get_udp_sport(grh->flow_label, sqpn, dqpn);
	/* a local destination may be on another interface than @sgid */
	if (ipv6_addr_type(to) & IPV6_ADDR_LINKLOCAL ||
	    !vrnic_gid_is_local(dev, &grh->dgid))
		path->oif = oif;
	return 0;
}

static void route_put(struct vrnic_wire *w, struct dst_entry *dst)
{
	/* once @over is set, the network namespace that @dst leads to may be gone */
	WARN_ON_ONCE(dst && READ_ONCE(w->over));
	dst_release(dst);
}

/* Put a route that a user of @dev kept. @dst may be NULL. */
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
 * vrnic_path_route() - get a valid route of a path: the one that it has, or a new one
 * @qp: sender
 * @path: path
 *
 * Return: route, which @path has a reference on; NULL if there is none.
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
 * @skb: packet; this function consumes it
 *
 * Return: 0, or a negative errno. After 0, too, the packet may be lost.
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
 * @path: path, with the route that vrnic_path_route() has just returned
 * @skb: packet; this function consumes it
 *
 * Return: as vrnic_wire_send().
 */
int vrnic_path_send(struct vrnic_path *path, struct sk_buff *skb)
{
	skb_dst_set(skb, dst_clone(path->dst));
	return vrnic_wire_send(path->wire, skb);
}
