// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Other hosts that have links to this one, by address: what each of them may make
 * this host keep, and the number by which records tell them apart.
 *
 * What a peer says of itself is a claim, but for its address, to which the answers
 * go. So quotas are those of an address, and a FIFO's number means something only
 * together with it.
 */

#include <linux/hashtable.h>
#include <linux/once.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "native/link.h"

#define HOST_BYTES	SZ_64M	/* that one host may make this one keep */
#define ALL_BYTES	SZ_256M	/* that all of them may */

/**
 * struct vrnic_host - another host
 * @node: in the table
 * @net: namespace that it is reached from; only compared
 * @gid: its address
 * @number: of @gid, for records
 * @refs: links to it; protected by hosts_lock, as what follows
 * @bytes: kept because it said so
 */
struct vrnic_host {
	struct hlist_node node;
	const struct net *net;
	union ib_gid gid;
	u64 number;
	unsigned int refs;
	u64 bytes;
};

static DEFINE_HASHTABLE(hosts, 8);
static u64 all_bytes;
static DEFINE_SPINLOCK(hosts_lock);	/* protects the table, and @all_bytes */

/* Nobody can choose an address that has another one's number. 0 is this host. */
static u64 gid_number(const union ib_gid *gid)
{
	static siphash_key_t key;

	get_random_once(&key, sizeof(key));
	return siphash(gid->raw, sizeof(gid->raw), &key) ?: 1;
}

static struct vrnic_host *find(const struct net *net, const union ib_gid *gid, u64 number)
{
	struct vrnic_host *host;

	lockdep_assert_held(&hosts_lock);
	hash_for_each_possible(hosts, host, node, number)
		if (host->net == net && !memcmp(&host->gid, gid, sizeof(*gid)))
			return host;
	return NULL;
}

/**
 * vrnic_host_get() - what is kept of another host
 * @net: namespace that it is reached from
 * @gid: its address
 *
 * Return: for vrnic_host_put(), or NULL: no memory.
 */
struct vrnic_host *vrnic_host_get(const struct net *net, const union ib_gid *gid)
{
	struct vrnic_host *host, *new;
	u64 number = gid_number(gid);

	new = kzalloc(sizeof(*new), VRNIC_GFP_LINK);
	if (!new)
		return NULL;
	new->net = net;
	new->gid = *gid;
	new->number = number;
	spin_lock(&hosts_lock);
	host = find(net, gid, number);
	if (!host) {
		hash_add(hosts, &new->node, number);
		swap(host, new);
	}
	host->refs++;
	spin_unlock(&hosts_lock);
	kfree(new);
	return host;
}

void vrnic_host_put(struct vrnic_host *host)
{
	bool last;

	spin_lock(&hosts_lock);
	last = !--host->refs;
	if (last)
		hash_del(&host->node);
	spin_unlock(&hosts_lock);
	if (!last)
		return;
	WARN_ON_ONCE(host->bytes);
	kfree(host);
}

/* For struct vrnic_record. */
u64 vrnic_host_number(const struct vrnic_host *host)
{
	return host->number;
}

/**
 * vrnic_host_charge() - this host is about to keep something because another said so
 * @host: the other
 * @bytes: so much; vrnic_host_uncharge() when it is freed
 *
 * Return: false: that would be too much.
 */
bool vrnic_host_charge(struct vrnic_host *host, u64 bytes)
{
	bool fits;

	spin_lock(&hosts_lock);
	fits = host->bytes + bytes <= HOST_BYTES && all_bytes + bytes <= ALL_BYTES;
	if (fits) {
		host->bytes += bytes;
		all_bytes += bytes;
	}
	spin_unlock(&hosts_lock);
	return fits;
}

void vrnic_host_uncharge(struct vrnic_host *host, u64 bytes)
{
	spin_lock(&hosts_lock);
	host->bytes -= bytes;
	all_bytes -= bytes;
	spin_unlock(&hosts_lock);
}
