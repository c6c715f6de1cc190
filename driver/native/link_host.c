// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Other hosts that have links to this one, by address: the memory that each may use on this host,
 * and the number by which records tell hosts apart.
 *
 * A peer may lie about everything but its address, to which the answers of this host go. So this
 * host limits the memory for each address, and tells FIFOs of other hosts apart by address and
 * number.
 */

#include <linux/hashtable.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>

#include "native/link.h"
#include "native/link_host.h"

#define HOST_BYTES	SZ_64M	/* most bytes that one other host may use on this host */
#define ALL_BYTES	SZ_256M	/* most bytes that all other hosts together may use */

/**
 * struct vrnic_host - another host
 * @node: in the table of hosts
 * @net: cookie of the network namespace of this host that reaches the other host
 * @gid: address of the host
 * @number: number that records have in place of @gid
 * @refs: number of links to the host; protected by hosts_lock
 * @bytes: bytes in use on behalf of the host; protected by hosts_lock
 */
struct vrnic_host {
	struct hlist_node node;
	u64 net;
	union ib_gid gid;
	u64 number;
	unsigned int refs;
	u64 bytes;
};

static DEFINE_HASHTABLE(hosts, 8);
static u64 all_bytes;
static DEFINE_SPINLOCK(hosts_lock);	/* protects the table, and @all_bytes */

/*
 * The hash has a secret key, so nobody can choose an address that has the number of another host.
 * The number 0 stands for this host.
 */
static siphash_key_t hosts_key __ro_after_init;

void vrnic_hosts_init(void)
{
	get_random_bytes(&hosts_key, sizeof(hosts_key));
}

static u64 gid_number(const union ib_gid *gid)
{
	return siphash(gid->raw, sizeof(gid->raw), &hosts_key) ?: 1;
}

static struct vrnic_host *host_find(u64 net, const union ib_gid *gid, u64 number)
{
	struct vrnic_host *host;

	lockdep_assert_held(&hosts_lock);
	hash_for_each_possible(hosts, host, node, number)
		if (host->net == net && !memcmp(&host->gid, gid, sizeof(*gid)))
			return host;
	return NULL;
}

/**
 * vrnic_host_get() - find or make the entry of another host
 * @net: cookie of the network namespace of this host that reaches the other host
 * @gid: address of the host
 *
 * Return: entry, for vrnic_host_put(), or NULL if there is no memory.
 */
struct vrnic_host *vrnic_host_get(u64 net, const union ib_gid *gid)
{
	struct vrnic_host *host, *new;
	u64 number = gid_number(gid);

	new = kzalloc(sizeof(*new), VRNIC_GFP_LINK);
	if (!new)
		return NULL;
	new->net = net;
	new->gid = *gid;
	new->number = number;
	spin_lock_bh(&hosts_lock);
	host = host_find(net, gid, number);
	if (!host) {
		hash_add(hosts, &new->node, number);
		swap(host, new);
	}
	host->refs++;
	spin_unlock_bh(&hosts_lock);
	kfree(new);
	return host;
}

void vrnic_host_put(struct vrnic_host *host)
{
	bool last;

	spin_lock_bh(&hosts_lock);
	last = !--host->refs;
	if (last)
		hash_del(&host->node);
	spin_unlock_bh(&hosts_lock);
	if (!last)
		return;
	WARN_ON_ONCE(host->bytes);
	kfree(host);
}

/* The number that stands for @host in struct vrnic_record. */
u64 vrnic_host_number(const struct vrnic_host *host)
{
	return host->number;
}

/**
 * vrnic_host_charge() - charge memory to the other host that makes this host use it
 * @host: the other host
 * @bytes: size; to be given back with vrnic_host_uncharge()
 *
 * Return: false if @host, or all other hosts together, would have too much.
 */
bool vrnic_host_charge(struct vrnic_host *host, u64 bytes)
{
	bool fits;

	spin_lock_bh(&hosts_lock);
	fits = host->bytes + bytes <= HOST_BYTES && all_bytes + bytes <= ALL_BYTES;
	if (fits) {
		host->bytes += bytes;
		all_bytes += bytes;
	}
	spin_unlock_bh(&hosts_lock);
	return fits;
}

void vrnic_host_uncharge(struct vrnic_host *host, u64 bytes)
{
	spin_lock_bh(&hosts_lock);
	host->bytes -= bytes;
	all_bytes -= bytes;
	spin_unlock_bh(&hosts_lock);
}
