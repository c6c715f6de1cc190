/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Everything that differs between the kernels this module builds on. What a
 * kernel has is probed in Kbuild by looking into its headers, never by version.
 */
#ifndef VRNIC_COMPAT_H
#define VRNIC_COMPAT_H

#include <linux/hrtimer.h>
#include <rdma/ib_verbs.h>

/* The header moved in 6.12. */
#ifdef VRNIC_HAVE_LINUX_UNALIGNED
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
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

#ifndef VRNIC_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

/* ATOMIC WRITE and FLUSH are known to the core since 6.2. */
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

/* vm_flags became private in 6.3. */
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
 * A kernel patches its memcpy() for the CPU it finds. A user-mode kernel cannot:
 * its own moves 8 bytes at a time, at about half of what the CPU does. KASAN
 * looks into memcpy(), so where it is on the kernel's is used.
 */
#if defined(CONFIG_UML) && defined(CONFIG_X86_64) && !defined(CONFIG_KASAN)
static inline void vrnic_memcpy(void *to, const void *from, size_t n)
{
	asm volatile("rep movsb" : "+D" (to), "+S" (from), "+c" (n) : : "memory");
}
#else
#define vrnic_memcpy memcpy
#endif

#endif /* VRNIC_COMPAT_H */
