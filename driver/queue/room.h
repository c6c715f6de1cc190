/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Room for packets that wait. */
#ifndef VRNIC_ROOM_H
#define VRNIC_ROOM_H

#include <linux/types.h>

struct sk_buff;
struct sk_buff_head;
struct vrnic_user;

/**
 * struct vrnic_room - room that a list of packets takes
 * @user: user who has the list; NULL: root, or the kernel
 * @bytes: memory of the packets
 * @most: bound on @bytes
 */
struct vrnic_room {
	struct vrnic_user *user;
	u32 bytes;
	u32 most;
};

bool vrnic_room_for(const struct vrnic_room *room, u32 more);
bool vrnic_room_put(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *prev,
		    struct sk_buff *skb);
void vrnic_room_return(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *skb);
void vrnic_room_take(struct vrnic_room *room, struct sk_buff_head *list, struct sk_buff *skb);
int vrnic_room_init(void);
void vrnic_room_exit(void);

#endif /* VRNIC_ROOM_H */
