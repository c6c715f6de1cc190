/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Keys to memory: regions, windows, segments, and the copy itself. */
#ifndef VRNIC_MEM_H
#define VRNIC_MEM_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/vrnic-abi.h>

struct vrnic_dev;
struct vrnic_qp;

enum vrnic_mr_kind {
	VRNIC_MR_DMA,	/* all of kernel memory; addresses are kernel addresses */
	VRNIC_MR_USER,	/* pinned user memory */
	VRNIC_MR_FAST,	/* page list, filled in by REG_MR */
};

/**
 * struct vrnic_mr - a memory region
 * @ibmr: the part of the core
 * @rcu: for the RCU grace period between the end of the keys and the release
 * @refs: one reference of the owner, and one of each burst or window that uses the region
 * @gone: completed when the last reference was put
 * @kind: where the pages come from
 * @valid: the region may be used; for VRNIC_MR_FAST, the owner's send ring writes this
 * @access: IB_ACCESS_*
 * @lkey: local key
 * @rkey: remote key; its index differs from that of @lkey
 * @iova: address of the first byte, as users of the keys see it
 * @length: bytes
 * @offset: offset of the first byte in the first page
 * @pages: kernel address of each page; NULL for VRNIC_MR_DMA
 * @nr_pages: number of entries in @pages
 * @max_pages: VRNIC_MR_FAST: room in @pages
 * @umem: the pinned memory
 * @windows: number of memory windows bound to the region, or VRNIC_MR_CLOSED
 */
struct vrnic_mr {
	struct ib_mr ibmr;
	struct rcu_head rcu;
	refcount_t refs;
	struct completion gone;
	enum vrnic_mr_kind kind;
	bool valid;
	int access;
	u32 lkey;
	u32 rkey;
	u64 iova;
	u64 length;
	u32 offset;
	void **pages;
	u32 nr_pages;
	u32 max_pages;
	struct ib_umem *umem;
	atomic_t windows;
};

/* No window may be bound to the region. This stops binds only: other users do not look. */
#define VRNIC_MR_CLOSED	(-1)

static inline struct vrnic_mr *to_vmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct vrnic_mr, ibmr);
}

/**
 * struct vrnic_window - a memory window
 * @rcu: for kfree_rcu()
 * @lock: protects what follows
 * @rkey: key; its low 8 bits change with each bind
 * @bound: the window is bound to @mr
 * @dead: the window was deallocated: code that found it before must not bind it
 * @type: IB_MW_TYPE_1 or IB_MW_TYPE_2
 * @pd: protection domain
 * @mr: region that the window is bound to; counted in @mr->windows
 * @qpn: type 2: the queue pair that bound the window, and the only one that may use it
 * @access: IB_ACCESS_*
 * @addr: address of the first byte, as users of the region see it
 * @base: address of the first byte, as users of the window see it
 * @length: bytes
 *
 * A window is freed an RCU grace period after the core's object.
 */
struct vrnic_window {
	struct rcu_head rcu;
	spinlock_t lock;	/* protects all below */
	u32 rkey;
	bool bound;
	bool dead;
	enum ib_mw_type type;
	struct ib_pd *pd;
	struct vrnic_mr *mr;
	u32 qpn;
	int access;
	u64 addr;
	u64 base;
	u64 length;
};

struct vrnic_mw {
	struct ib_mw ibmw;
	struct vrnic_window *win;
};

/**
 * struct vrnic_held - the region found last, kept for the rest of a burst
 * @mr: region, with a reference held, or NULL
 * @key: key that the region was found by
 *
 * Operations that follow each other mostly name the same memory. Each struct vrnic_held is for one
 * kind of key: a local key never matches where a remote key is claimed.
 */
struct vrnic_held {
	struct vrnic_mr *mr;
	u32 key;
};

/**
 * struct vrnic_seg - a piece of memory that may be used until it is put
 * @mr: region, with a reference held; NULL if @kva is enough
 * @held: a struct vrnic_held owns the reference on @mr
 * @kva: kernel address, if the piece is contiguous in kernel memory
 * @off: otherwise: offset of the piece from the start of the region's first page
 * @len: bytes
 */
struct vrnic_seg {
	struct vrnic_mr *mr;
	bool held;
	void *kva;
	u64 off;
	u64 len;
};

/**
 * struct vrnic_sgl - a list of segments, and a position in it
 * @nr: number of segments
 * @cur: index of the segment with the position
 * @pos: offset of the position in that segment
 * @seg: the segments
 */
struct vrnic_sgl {
	unsigned int nr;
	unsigned int cur;
	u64 pos;
	struct vrnic_seg seg[VRNIC_MAX_SGE];
};

/* mem.c */
int vrnic_seg_region(struct vrnic_dev *dev, struct ib_pd *pd, u32 key,
		     bool remote, u64 addr, u64 len, int access,
		     struct vrnic_held *held, struct vrnic_seg *seg);
int vrnic_seg_local(struct vrnic_qp *qp, const struct vrnic_sge *sge,
		    int access, struct vrnic_held *held, struct vrnic_seg *seg);
int vrnic_seg_remote(struct vrnic_qp *qp, u32 rkey, u64 addr, u64 len,
		     int access, struct vrnic_held *held,
		     struct vrnic_seg *seg);
void vrnic_held_put(struct vrnic_held *held);
int vrnic_seg_whole(struct vrnic_qp *qp, u32 rkey, int access,
		    struct vrnic_seg *seg);
bool vrnic_mr_get(struct vrnic_mr *mr);
void vrnic_seg_put(struct vrnic_seg *seg);
void *vrnic_seg_run(const struct vrnic_seg *seg, u64 pos, u64 want, u64 *len);
void vrnic_seg_copy(const struct vrnic_seg *dst, u64 dst_pos,
		    const struct vrnic_seg *src, u64 src_pos, u64 n, bool final);
u64 vrnic_seg_copy_user(const struct vrnic_seg *seg, u64 user, u64 n,
			bool to_user, bool final);
void *vrnic_seg_word(const struct vrnic_seg *seg, unsigned int width);

int vrnic_sgl_local(struct vrnic_qp *qp, const struct vrnic_sge *sge, u32 nr,
		    int access, struct vrnic_held *held, struct vrnic_sgl *sgl);
void vrnic_sgl_kva(struct vrnic_sgl *sgl, void *kva, u64 len);
void vrnic_sgl_put(struct vrnic_sgl *sgl);
void *vrnic_sgl_run(struct vrnic_sgl *sgl, u64 want, u64 *len);
void vrnic_sgl_skip(struct vrnic_sgl *sgl, u64 n);
void vrnic_sgl_copy(struct vrnic_sgl *dst, struct vrnic_sgl *src, u64 n,
		    bool final);
void vrnic_sgl_write(struct vrnic_sgl *dst, const void *from, u64 n, bool final);
u64 vrnic_sge_total(const struct vrnic_sge *sge, u32 nr);

/* mr.c */
struct ib_mr *vrnic_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *vrnic_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 iova, int access, struct ib_udata *udata);
struct ib_mr *vrnic_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 iova, int access,
				  struct ib_pd *pd, struct ib_udata *udata);
struct ib_mr *vrnic_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg);
int vrnic_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset);
int vrnic_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
void vrnic_mr_on_long_use(void (*fn)(const struct vrnic_mr *mr));
void vrnic_mr_put(struct vrnic_mr *mr);
int vrnic_key_alloc(struct vrnic_dev *dev, void *entry, u32 *key);
void vrnic_key_free(struct vrnic_dev *dev, u32 key);

/* mw.c */
int vrnic_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int vrnic_dealloc_mw(struct ib_mw *ibmw);
int vrnic_mw_bind(struct vrnic_qp *qp, const struct vrnic_desc *d);
int vrnic_window_bind(struct vrnic_qp *qp, struct vrnic_window *win,
		      const struct vrnic_desc *d);
int vrnic_mw_invalidate(struct vrnic_qp *qp, struct vrnic_window *win, u32 key,
			bool remote);
int vrnic_mw_open(struct vrnic_qp *qp, struct vrnic_window *win, u32 key,
		  u64 addr, u64 len, int access, struct vrnic_seg *seg);
int vrnic_key_invalidate(struct vrnic_qp *qp, u32 key, bool remote);
int vrnic_mr_fast_reg(struct vrnic_qp *qp, const struct vrnic_desc *d);

/* The entry of a window in vrnic_dev.keys is tagged, that of a region is not. */
#define VRNIC_KEY_WINDOW	1

#endif /* VRNIC_MEM_H */
