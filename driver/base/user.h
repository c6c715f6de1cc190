/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Users, each with a share of what all users have together. */
#ifndef VRNIC_USER_H
#define VRNIC_USER_H

#include <linux/list.h>
#include <linux/percpu_counter.h>
#include <linux/types.h>
#include <linux/uidgid.h>

/**
 * struct vrnic_user - a user with a context, except root
 * @link: in the table of all users
 * @refs: references of contexts and queue pairs; protected by users_lock
 * @uid: the user
 * @waiting: memory of packets that wait for the user's queue pairs (queue/room.c)
 */
struct vrnic_user {
	struct hlist_node link;
	unsigned int refs;
	kuid_t uid;
	struct percpu_counter waiting;
};

struct vrnic_user *vrnic_user_get(kuid_t uid);
struct vrnic_user *vrnic_user_share(struct vrnic_user *user);
void vrnic_user_put(struct vrnic_user *user);

#endif /* VRNIC_USER_H */
