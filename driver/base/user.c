// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The users of this host's devices, so that what all of them have together can be shared among
 * them. Root and the kernel have no bound but that of all: for both, the user is NULL.
 */

#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "base/user.h"

static DEFINE_HASHTABLE(users, 6);
static DEFINE_SPINLOCK(users_lock);	/* protects the table, and references */

static struct vrnic_user *user_find(kuid_t uid)
{
	struct vrnic_user *user;

	lockdep_assert_held(&users_lock);
	hash_for_each_possible(users, user, link, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid)) {
			user->refs++;
			return user;
		}
	}
	return NULL;
}

static void user_free(struct vrnic_user *user)
{
	/* the last queue pair has given back all room */
	WARN_ON_ONCE(percpu_counter_sum(&user->waiting));
	percpu_counter_destroy(&user->waiting);
	kfree(user);
}

static struct vrnic_user *user_new(kuid_t uid)
{
	struct vrnic_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	if (percpu_counter_init(&user->waiting, 0, GFP_KERNEL_ACCOUNT)) {
		kfree(user);
		return NULL;
	}
	user->refs = 1;
	user->uid = uid;
	return user;
}

/* Put @new into the table, unless another task was faster: then free @new. */
static struct vrnic_user *user_add(struct vrnic_user *new)
{
	struct vrnic_user *user;

	spin_lock(&users_lock);
	user = user_find(new->uid);
	if (!user)
		hash_add(users, &new->link, __kuid_val(new->uid));
	spin_unlock(&users_lock);
	if (!user)
		return new;
	user_free(new);
	return user;
}

/**
 * vrnic_user_get() - find or make a user
 * @uid: the user
 *
 * Return: the user, for vrnic_user_put(); NULL: root; ERR_PTR(-ENOMEM).
 * Context: a process; may sleep.
 */
struct vrnic_user *vrnic_user_get(kuid_t uid)
{
	struct vrnic_user *user;

	if (uid_eq(uid, GLOBAL_ROOT_UID))
		return NULL;
	spin_lock(&users_lock);
	user = user_find(uid);
	spin_unlock(&users_lock);
	if (user)
		return user;
	user = user_new(uid);
	return user ? user_add(user) : ERR_PTR(-ENOMEM);
}

/* Take one more reference on @user, on which the caller has a reference, or which is NULL. */
struct vrnic_user *vrnic_user_share(struct vrnic_user *user)
{
	if (!user)
		return NULL;
	spin_lock(&users_lock);
	user->refs++;
	spin_unlock(&users_lock);
	return user;
}

/* Put a reference, if @user is not NULL. */
void vrnic_user_put(struct vrnic_user *user)
{
	bool last;

	if (!user)
		return;
	spin_lock(&users_lock);
	last = !--user->refs;
	if (last)
		hash_del(&user->link);
	spin_unlock(&users_lock);
	if (last)
		user_free(user);
}
