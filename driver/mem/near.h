/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a key has to grant, and the short way to memory: bytes within one page of the region that
 * the run keeps. Whatever is not as plain as that takes the long way, mem/seg.h, which also finds
 * out what is wrong.
 */
#ifndef VRNIC_NEAR_H
#define VRNIC_NEAR_H

#include <linux/mm.h>

#include "mem/mem.h"
#include "mem/seg.h"

void vrnic_held_find(struct vrnic_held *held, const struct vrnic_key_user *user, u32 key,
		     bool remote);

static __always_inline bool vrnic_in_bounds(u64 base, u64 size, u64 addr, u64 len)
{
	u64 off = addr - base;

	return addr >= base && off <= size && len <= size - off;
}

/*
 * May a user of protection domain @pd use this memory of @mr? The caller has a reference on @mr.
 * Return: 0 or enum vrnic_vendor_err.
 */
static __always_inline int vrnic_mr_check(const struct vrnic_mr *mr, const struct ib_pd *pd,
					  u64 addr, u64 len, int access)
{
	if (unlikely(mr->ibmr.pd != pd))
		return VRNIC_VERR_PD;
	if (unlikely((mr->access & access) != access))
		return VRNIC_VERR_ACCESS;
	if (unlikely(!vrnic_in_bounds(mr->iova, mr->length, addr, len)))
		return VRNIC_VERR_BOUNDS;
	return 0;
}

/* Does @held have a region for @key? */
static __always_inline bool vrnic_held_fits(const struct vrnic_held *held, u32 key)
{
	return held->mr && held->key == key;
}

/**
 * vrnic_near() - find bytes of the region that the run keeps, or of the first one that it needs
 * @held: where the run keeps it
 * @user: queue pair on whose behalf the key is used
 * @key: key that the user claims
 * @remote: @held is for remote keys
 * @addr: address
 * @len: bytes that the user names
 * @n: bytes of them that the operation needs, at least 1
 * @access: IB_ACCESS_* that the operation needs
 *
 * Return: kernel address of the bytes, valid as long as @held keeps the region; NULL: they have to
 * be looked up.
 */
static __always_inline void *vrnic_near(struct vrnic_held *held,
					const struct vrnic_key_user *user, u32 key, bool remote,
					u64 addr, u64 len, u64 n, int access)
{
	const struct vrnic_mr *mr;
	u64 off;

	if (unlikely(!held->mr))
		vrnic_held_find(held, user, key, remote);
	mr = held->mr;
	if (unlikely(!vrnic_held_fits(held, key) || !mr->pages ||
		     vrnic_mr_check(mr, user->pd, addr, len, access)))
		return NULL;
	off = addr - mr->iova + mr->offset;
	if (unlikely(offset_in_page(off) + n > PAGE_SIZE))
		return NULL;
	return mr->pages[off >> PAGE_SHIFT] + offset_in_page(off);
}

#endif /* VRNIC_NEAR_H */
