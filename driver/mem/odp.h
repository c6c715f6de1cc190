/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* On-demand paging: regions that pin nothing. Their pages come when they are used. */
#ifndef VRNIC_ODP_H
#define VRNIC_ODP_H

#include <linux/types.h>

struct vrnic_mr;
struct vrnic_odp;
struct vrnic_page_wait;

/* What to do with pages that are not present. */
enum vrnic_odp_how {
	VRNIC_ODP_READ,		/* bring them in, to be read */
	VRNIC_ODP_WRITE,	/* bring them in, to be written */
	VRNIC_ODP_SNAPSHOT,	/* take what is in the page tables of the process */
};

/* How all memory of a process is registered: ibv_reg_mr(pd, NULL, SIZE_MAX, ...) */
static inline bool vrnic_odp_is_implicit(u64 start, u64 length)
{
	return !start && length == U64_MAX;
}

/* mem/odp.c */
bool vrnic_odp_supported(void);
struct vrnic_odp *vrnic_odp_new(struct vrnic_mr *mr, u64 start, u64 length);
void vrnic_odp_close_begin(struct vrnic_odp *odp);
void vrnic_odp_close_end(struct vrnic_odp *odp);
bool vrnic_odp_get_unless_gone(struct vrnic_odp *odp);
void vrnic_odp_put(struct vrnic_odp *odp);
int vrnic_odp_ready(struct vrnic_mr *mr, u64 off, u64 *n, u64 need, bool write,
		    struct vrnic_page_wait *wait);
void *vrnic_odp_run(const struct vrnic_mr *mr, u64 off, u64 want, u64 *len);

/* mem/odp_pager.c */
int vrnic_odp_init(void);
void vrnic_odp_exit(void);
int vrnic_odp_page_in(struct vrnic_odp *odp, u64 off, u64 len, enum vrnic_odp_how how);
int vrnic_odp_page_in_later(struct vrnic_odp *odp, u64 off, u64 len, enum vrnic_odp_how how);

#endif /* VRNIC_ODP_H */
