/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * All differences between the kernels that this module supports. Kbuild probes a kernel's headers
 * for what the kernel has, never its version.
 */
#ifndef VRNIC_COMPAT_H
#define VRNIC_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

/* system_dfl_wq was system_unbound_wq before 6.18. */
#ifndef VRNIC_HAVE_DFL_WQ
#define system_dfl_wq system_unbound_wq
#endif

/* linux/unaligned.h was asm/unaligned.h before 6.12. */
#ifdef VRNIC_HAVE_LINUX_UNALIGNED
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

/* Before 6.12, the CPU could read all packets. */
#ifndef VRNIC_HAVE_FRAGS_READABLE
#define skb_frags_readable(skb)	true
#endif

/* The value of net.core.busy_read is in a socket only if the kernel can poll NICs for readers. */
static inline void vrnic_sk_no_busy_poll(struct sock *sk)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	WRITE_ONCE(sk->sk_ll_usec, 0);
#endif
}

/* Without XPS, an interface's queue for a packet does not depend on the CPU. */
static inline void vrnic_skb_sent_from(struct sk_buff *skb, u32 cpu)
{
#ifdef CONFIG_XPS
	skb->sender_cpu = cpu;
#endif
}

/* skb_gso_segment() was declared in linux/netdevice.h before 6.5. */
#ifdef VRNIC_HAVE_NET_GSO
#include <net/gso.h>
#endif

int vrnic_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct ib_udata *udata);

/* create_cq() takes the attribute bundle instead of its udata since 6.11. */
#ifdef VRNIC_HAVE_CREATE_CQ_BUNDLE
#include <rdma/uverbs_ioctl.h>

static inline int vrnic_create_cq_op(struct ib_cq *ibcq,
				     const struct ib_cq_init_attr *attr,
				     struct uverbs_attr_bundle *attrs)
{
	return vrnic_create_cq(ibcq, attr, attrs ? &attrs->driver_udata : NULL);
}
#else
#define vrnic_create_cq_op vrnic_create_cq
#endif

struct ib_mr *vrnic_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 iova, int access, struct ib_udata *udata);

/*
 * reg_user_mr() takes a DMA handle since 6.17. This device makes no handles, so none can be valid.
 */
#ifdef VRNIC_HAVE_REG_USER_MR_DMAH
static inline struct ib_mr *
vrnic_reg_user_mr_op(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
		     int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return vrnic_reg_user_mr(ibpd, start, length, iova, access, udata);
}
#else
#define vrnic_reg_user_mr_op vrnic_reg_user_mr
#endif

struct ib_mr *vrnic_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd,
				       int access, struct ib_udata *udata);

/* reg_user_mr_dmabuf() takes the attribute bundle since 6.12, and a DMA handle since 6.17. */
#if defined(VRNIC_HAVE_REG_USER_MR_DMAH)
static inline struct ib_mr *
vrnic_reg_user_mr_dmabuf_op(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd,
			    int access, struct ib_dmah *dmah, struct uverbs_attr_bundle *attrs)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return vrnic_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access,
					&attrs->driver_udata);
}
#elif defined(VRNIC_HAVE_REG_DMABUF_BUNDLE)
static inline struct ib_mr *
vrnic_reg_user_mr_dmabuf_op(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova, int fd,
			    int access, struct uverbs_attr_bundle *attrs)
{
	return vrnic_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access,
					&attrs->driver_udata);
}
#else
#define vrnic_reg_user_mr_dmabuf_op vrnic_reg_user_mr_dmabuf
#endif

int vrnic_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);

/* resize_cq() is called resize_user_cq(), and its count is unsigned, since 7.1. */
#ifdef VRNIC_HAVE_RESIZE_USER_CQ
static inline int vrnic_resize_user_cq(struct ib_cq *ibcq, unsigned int cqe,
				       struct ib_udata *udata)
{
	if (cqe > INT_MAX)
		return -EINVAL;
	return vrnic_resize_cq(ibcq, cqe, udata);
}

#define VRNIC_RESIZE_CQ_OP	.resize_user_cq = vrnic_resize_user_cq
#else
#define VRNIC_RESIZE_CQ_OP	.resize_cq = vrnic_resize_cq
#endif

/*
 * Since 6.14 the core itself reports changes of the port to consumers, except for bonds, unless the
 * device has report_port_event(). This module's notifier reports them for all interfaces, so this
 * function does nothing: else consumers would hear of a change twice.
 */
#ifdef VRNIC_HAVE_REPORT_PORT_EVENT
static inline void vrnic_report_port_event(struct ib_device *ibdev,
					   struct net_device *ndev,
					   unsigned long event)
{
}

#define VRNIC_REPORT_PORT_EVENT_OP .report_port_event = vrnic_report_port_event,
#else
#define VRNIC_REPORT_PORT_EVENT_OP
#endif

/* The speed of a port without rounding, since 7.0. */
#ifdef VRNIC_HAVE_QUERY_PORT_SPEED
#define VRNIC_QUERY_PORT_SPEED_OP .query_port_speed = vrnic_query_port_speed,
#else
#define VRNIC_QUERY_PORT_SPEED_OP
#endif

struct rdma_counter;

int vrnic_qp_counter_bind(struct rdma_counter *counter, struct ib_qp *ibqp);
int vrnic_qp_counter_unbind(struct ib_qp *ibqp);

/* counter_bind_qp() and counter_unbind_qp() take the port, of which there is one, since 6.16. */
#ifdef VRNIC_HAVE_COUNTER_PORT
static inline int vrnic_qp_counter_bind_op(struct rdma_counter *counter, struct ib_qp *ibqp,
					   u32 port)
{
	return vrnic_qp_counter_bind(counter, ibqp);
}

static inline int vrnic_qp_counter_unbind_op(struct ib_qp *ibqp, u32 port)
{
	return vrnic_qp_counter_unbind(ibqp);
}
#else
#define vrnic_qp_counter_bind_op	vrnic_qp_counter_bind
#define vrnic_qp_counter_unbind_op	vrnic_qp_counter_unbind
#endif

/*
 * Since 6.16 a driver has to say how large its counters are, and to initialize them. This driver's
 * are objects of their own, which older kernels need.
 */
#ifdef VRNIC_HAVE_COUNTER_INIT
#include <rdma/rdma_counter.h>

static inline void vrnic_qp_counter_init(struct rdma_counter *counter)
{
}

#define VRNIC_COUNTER_OPS					\
	.counter_init = vrnic_qp_counter_init,			\
	.size_rdma_counter = sizeof(struct rdma_counter),
#else
#define VRNIC_COUNTER_OPS
#endif

/* `rdma resource show srq -dd` asks the driver since 6.4. */
#ifdef VRNIC_HAVE_FILL_SRQ
#define VRNIC_FILL_SRQ_OP	.fill_res_srq_entry = vrnic_fill_srq,
#else
#define VRNIC_FILL_SRQ_OP
#endif

/* Bits for FLUSH and ATOMIC WRITE on memory that is paged on demand. */
#ifdef VRNIC_HAVE_ODP_FLUSH
#define VRNIC_ODP_RC_NEW	(IB_ODP_SUPPORT_FLUSH | IB_ODP_SUPPORT_ATOMIC_WRITE)
#else
#define VRNIC_ODP_RC_NEW	0
#endif

/* ib_umem_get() is called ib_umem_get_va() since 7.2. */
#ifndef VRNIC_HAVE_UMEM_GET_VA
#define ib_umem_get_va	ib_umem_get
#endif

/* Since 7.1 IPv6 is not a module of its own, and needs no stubs. */
#ifdef VRNIC_HAVE_IPV6_STUBS
#include <net/ipv6_stubs.h>
#define vrnic_ip6_dst_lookup_flow(net, sk, fl) \
	ipv6_stub->ipv6_dst_lookup_flow(net, sk, fl, NULL)
#else
#include <net/ipv6.h>
#define vrnic_ip6_dst_lookup_flow(net, sk, fl) \
	ip6_dst_lookup_flow(net, sk, fl, NULL)
#endif

/*
 * The kernel keeps routes that it does not cache in a list, to drop them when their interface goes.
 * Since 6.4 both address families have the list entry in struct dst_entry.
 */
#ifdef VRNIC_HAVE_DST_UNCACHED
#include <net/dst.h>

static inline bool vrnic_dst_is_cached(const struct dst_entry *dst)
{
	return list_empty(&dst->rt_uncached);
}
#else
#include <net/ip6_fib.h>
#include <net/route.h>

static inline bool vrnic_dst_is_cached(const struct dst_entry *dst)
{
	if (dst->ops->family == AF_INET6)
		return list_empty(&container_of(dst, struct rt6_info, dst)->rt6i_uncached);
	return list_empty(&container_of(dst, struct rtable, dst)->rt_uncached);
}
#endif

/* udp_tunnel_sock_release() takes struct sock, not struct socket, since 7.2 and 7.1.5. */
#ifdef VRNIC_HAVE_UDP_TUNNEL_SOCK
#define vrnic_udp_tunnel_release(sock)	udp_tunnel_sock_release((sock)->sk)
#else
#define vrnic_udp_tunnel_release(sock)	udp_tunnel_sock_release(sock)
#endif

#ifndef VRNIC_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

/* The core knows ATOMIC WRITE and FLUSH since 6.2. */
#ifdef VRNIC_HAVE_FLUSH
#define VRNIC_CAP_FLUSH		(IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_ATOMIC_WRITE)
#define VRNIC_ACCESS_FLUSH	IB_ACCESS_FLUSH_GLOBAL
#define VRNIC_WC_ATOMIC_WRITE	IB_WC_ATOMIC_WRITE
#define VRNIC_WC_FLUSH		IB_WC_FLUSH
#else
#define VRNIC_CAP_FLUSH		0
#define VRNIC_ACCESS_FLUSH	0
#define VRNIC_WC_ATOMIC_WRITE	IB_WC_RDMA_WRITE
#define VRNIC_WC_FLUSH		IB_WC_RDMA_READ
#endif

/* pin_user_pages_remote() lost its array of areas in 6.5. */
#ifdef VRNIC_HAVE_PIN_REMOTE_VMAS
#define vrnic_pin_user_pages_remote(mm, addr, nr, flags, page) \
	pin_user_pages_remote(mm, addr, nr, flags, page, NULL, NULL)
#else
#define vrnic_pin_user_pages_remote(mm, addr, nr, flags, page) \
	pin_user_pages_remote(mm, addr, nr, flags, page, NULL)
#endif

/* vm_flags is private since 6.3. */
#ifndef VRNIC_HAVE_VM_FLAGS_SET
#define vm_flags_set(vma, flags)	((vma)->vm_flags |= (flags))
#endif

/* eventfd_signal() lost its count in 6.8. */
#ifdef VRNIC_HAVE_EVENTFD_COUNT
#define vrnic_eventfd_signal(ctx)	eventfd_signal(ctx, 1)
#else
#define vrnic_eventfd_signal(ctx)	eventfd_signal(ctx)
#endif

/* __assign_str() lost its source argument in 6.10. */
#ifdef VRNIC_HAVE_ASSIGN_STR_1
#define vrnic_assign_str(dst, src)	__assign_str(dst)
#else
#define vrnic_assign_str(dst, src)	__assign_str(dst, src)
#endif

/*
 * A kernel patches its memcpy() for its CPU. User-mode Linux cannot: its memcpy() moves 8 bytes at
 * a time, at about half of the CPU's speed. And since 6.4 memcpy() has a string instruction only
 * for CPUs on which it is fast for a few bytes (FSRM); others have a loop, which takes three times
 * as many instructions for a page as they need with the string instruction that suits them. The
 * sanitizers check what the kernel's memcpy() accesses, so with them it is used nevertheless.
 */
#if defined(CONFIG_X86_64) && !defined(CONFIG_KASAN) && !defined(CONFIG_KMSAN) && \
	!defined(CONFIG_KCSAN)
static __always_inline void vrnic_rep_movsb(void *to, const void *from, size_t n)
{
	asm volatile("rep movsb" : "+D" (to), "+S" (from), "+c" (n) : : "memory");
}

static __always_inline void vrnic_rep_movsq(void *to, const void *from, size_t n)
{
	size_t words = n / sizeof(u64);

	asm volatile("rep movsq" : "+D" (to), "+S" (from), "+c" (words) : : "memory");
	memcpy(to, from, n % sizeof(u64));
}

#ifdef CONFIG_UML
#define vrnic_memcpy	vrnic_rep_movsb
#else
/* Bytes from which on a string instruction pays that takes long to start. */
#define VRNIC_REP_MIN	512

static inline void vrnic_memcpy(void *to, const void *from, size_t n)
{
	if (n < VRNIC_REP_MIN || cpu_feature_enabled(X86_FEATURE_FSRM))
		memcpy(to, from, n);
	else if (cpu_feature_enabled(X86_FEATURE_ERMS))
		vrnic_rep_movsb(to, from, n);
	else if (cpu_feature_enabled(X86_FEATURE_REP_GOOD))
		vrnic_rep_movsq(to, from, n);
	else
		memcpy(to, from, n);
}
#endif
#else
#define vrnic_memcpy memcpy
#endif

#endif /* VRNIC_COMPAT_H */
