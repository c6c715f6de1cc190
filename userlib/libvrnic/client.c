// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Clients: opened devices. */

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib.h"

#define NS_PER_S	1000000000ULL

uint64_t vrnic_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);	/* cannot fail on Linux */
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Return: the time at which to stop waiting; if that overflows, VRNIC_NO_TIMEOUT. */
uint64_t vrnic_deadline(uint64_t timeout_ns)
{
	uint64_t deadline;

	if (timeout_ns == VRNIC_NO_TIMEOUT ||
	    __builtin_add_overflow(vrnic_now_ns(), timeout_ns, &deadline))
		return VRNIC_NO_TIMEOUT;
	return deadline;
}

/* Return: nanoseconds until @deadline; for VRNIC_NO_TIMEOUT: VRNIC_WAIT_FOREVER. */
uint64_t vrnic_left(uint64_t deadline)
{
	uint64_t now;

	if (deadline == VRNIC_NO_TIMEOUT)
		return VRNIC_WAIT_FOREVER;
	now = vrnic_now_ns();
	return deadline > now ? deadline - now : 0;
}

/* An object was made in the client. */
void vrnic_client_hold(struct vrnic_client *client)
{
	pthread_mutex_lock(&client->lock);
	client->users++;
	pthread_mutex_unlock(&client->lock);
}

/* An object of the client was destroyed. */
void vrnic_client_drop(struct vrnic_client *client)
{
	pthread_mutex_lock(&client->lock);
	client->users--;
	pthread_mutex_unlock(&client->lock);
}

/* Return: 0 or a negative errno: -EPROTO if the module has another version of the ABI. */
static int check_version(const struct ibv_device *device)
{
	char path[PATH_MAX];
	int version = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/abi_version", device->dev_path);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	if (fscanf(file, "%d", &version) != 1)
		version = -1;
	fclose(file);
	return version >= VRNIC_ABI_OLDEST && version <= VRNIC_ABI_VERSION ?
	       0 : -EPROTO;
}

/* Return: 0 or a negative errno: -ENODEV for other drivers, or a module without native objects. */
static int open_doorbell(struct vrnic_client *client)
{
	int ret = vrnic_uv_doorbell(client->verbs, &client->doorbell_fd, &client->features);

	switch (ret) {
	case 0:
		return check_version(client->verbs->device);
	case -EINVAL:
	case -EOPNOTSUPP:
	case -EPROTONOSUPPORT:
	case -ENOTTY:
		return -ENODEV;
	default:
		return ret;
	}
}

static int open_parts(struct vrnic_client *client)
{
	int ret = open_doorbell(client);

	if (ret || client->pd)
		return ret;
	client->pd = ibv_alloc_pd(client->verbs);
	if (!client->pd)
		return -errno;
	client->own_pd = true;
	return 0;
}

/* sched_getaffinity() fails if the kernel has more CPUs than fit into @cpus: that is not one. */
static bool has_one_cpu(void)
{
	cpu_set_t cpus;

	return !sched_getaffinity(0, sizeof(cpus), &cpus) &&
	       CPU_COUNT(&cpus) == 1;
}

VRNIC_EXPORT
int vrnic_client_from_verbs(struct ibv_context *verbs, struct ibv_pd *pd,
			    struct vrnic_client **client)
{
	struct vrnic_client *made;
	int ret;

	if (!verbs || !client || (pd && pd->context != verbs))
		return -EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->verbs = verbs;
	made->pd = pd;
	made->doorbell_fd = -1;
	made->one_cpu = has_one_cpu();
	made->page_size = (size_t)sysconf(_SC_PAGESIZE);
	ret = open_parts(made);
	if (ret) {
		if (made->doorbell_fd >= 0)
			close(made->doorbell_fd);
		free(made);
		return ret;
	}
	pthread_mutex_init(&made->lock, NULL);
	*client = made;
	return 0;
}

static int open_device(struct ibv_device *device, struct vrnic_client **client)
{
	struct ibv_context *verbs = ibv_open_device(device);
	int ret;

	if (!verbs)
		return errno ? -errno : -ENODEV;
	ret = vrnic_client_from_verbs(verbs, NULL, client);
	if (ret)
		ibv_close_device(verbs);
	else
		(*client)->own_verbs = true;
	return ret;
}

/*
 * Open the device @name or, if it is NULL, the first one that is a vrnic.
 *
 * Return: 0 or a negative errno; if several devices failed, the first error but -ENODEV.
 */
static int open_listed(struct ibv_device **list, const char *name,
		       struct vrnic_client **client)
{
	int ret, first = -ENODEV;

	for (; *list; list++) {
		if (name && strcmp(name, ibv_get_device_name(*list)))
			continue;
		ret = open_device(*list, client);
		if (!ret)
			return 0;
		if (first == -ENODEV)
			first = ret;
	}
	return first;
}

VRNIC_EXPORT
int vrnic_client_open(const char *device, struct vrnic_client **client)
{
	struct ibv_device **list;
	int ret;

	if (!client)
		return -EINVAL;
	list = ibv_get_device_list(NULL);
	/* other errors mean that the kernel has no RDMA, or nothing of it loaded */
	if (!list)
		return errno == ENOMEM || errno == EPERM ? -errno : -ENODEV;
	ret = open_listed(list, device, client);
	ibv_free_device_list(list);
	return ret;
}

static bool in_use(struct vrnic_client *client)
{
	bool used;

	pthread_mutex_lock(&client->lock);
	used = client->users;
	pthread_mutex_unlock(&client->lock);
	return used;
}

/* Free the protection domain first: while memory is registered in it, the call fails. */
VRNIC_EXPORT
int vrnic_client_close(struct vrnic_client *client)
{
	int ret;

	if (!client)
		return -EINVAL;
	if (in_use(client))
		return -EBUSY;
	vrnic_types_reap(client, NULL);
	if (client->own_pd) {
		ret = ibv_dealloc_pd(client->pd);
		if (ret)
			return -ret;
		client->own_pd = false;
	}
	close(client->doorbell_fd);
	ret = client->own_verbs ? ibv_close_device(client->verbs) : 0;
	pthread_mutex_destroy(&client->lock);
	free(client);
	return ret ? -EIO : 0;
}

VRNIC_EXPORT
struct ibv_context *vrnic_client_verbs(struct vrnic_client *client)
{
	return client->verbs;
}

VRNIC_EXPORT
struct ibv_pd *vrnic_client_pd(struct vrnic_client *client)
{
	return client->pd;
}
