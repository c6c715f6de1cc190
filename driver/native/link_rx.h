/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The parts of what receives messages of a native link (@link->rx) for each other. The caller of
 * all holds the run bit of the link's queue pair.
 */
#ifndef VRNIC_LINK_RX_H
#define VRNIC_LINK_RX_H

#include <linux/types.h>

struct sk_buff;
struct vrnic_held;
struct vrnic_link;
struct vrnic_link_rx;
struct vrnic_nhdr;
struct vrnic_pkt;
struct vrnic_seg;

/* native/link_rx.c */
void vrnic_rx_refuse(struct vrnic_link *link, u8 status, int verr);
void vrnic_rx_refuse_access(struct vrnic_link *link, int verr);
bool vrnic_rx_may_name(struct vrnic_link *link, u32 id);
void vrnic_rx_count(struct vrnic_link *link, u64 n);
int vrnic_rx_region(struct vrnic_link *link, u64 addr, u64 len, int access,
		    struct vrnic_held *held, struct vrnic_seg *seg);
bool vrnic_rx_is_final(const struct vrnic_link *link, const struct vrnic_pkt *pkt);
void *vrnic_rx_alloc(struct vrnic_link *link, u64 bytes);

/* native/link_type.c */
void vrnic_rx_rows_begin(struct vrnic_link *link, u64 bytes);
void vrnic_rx_rows_check(struct vrnic_link *link);
void vrnic_rx_rows_come(struct vrnic_link *link);
bool vrnic_rx_takes_rows(const struct vrnic_link_rx *rx);
void vrnic_rx_take_rows(struct vrnic_link *link, struct sk_buff *skb);
void vrnic_rx_typed_check(struct vrnic_link *link);
void vrnic_rx_place_typed(struct vrnic_link *link, struct sk_buff *skb);
void vrnic_rx_get_typed(struct vrnic_link *link);

/* native/link_puts.c */
int vrnic_rx_puts(struct vrnic_link *link, struct sk_buff *skb);

/* native/link_exec.c */
void vrnic_rx_put(struct vrnic_link *link);
void vrnic_rx_execute(struct vrnic_link *link, struct vrnic_nhdr *answer);

#endif /* VRNIC_LINK_RX_H */
