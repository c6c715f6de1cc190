// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory: mapped memory of the kernel. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "vrnic.h"

/* Copies are of words of this size at least, as with NICs that have memory on board. */
#define WORD	sizeof(uint32_t)

/*
 * Copy the 8 bytes at @dm by one load or store, if they are aligned, else 4. A program may poll on
 * a word that a peer writes, or write one that peers poll on. @host may have any alignment.
 *
 * Return: bytes that were copied.
 */
static inline size_t copy_unit(uint8_t *dm, uint8_t *host, size_t left, bool to_dm)
{
	bool wide = left >= sizeof(uint64_t) && !((uintptr_t)dm % sizeof(uint64_t));
	uint64_t two;
	uint32_t one;

	if (wide && to_dm) {
		memcpy(&two, host, sizeof(two));
		__atomic_store_n((uint64_t *)dm, two, __ATOMIC_RELAXED);
	} else if (wide) {
		two = __atomic_load_n((uint64_t *)dm, __ATOMIC_RELAXED);
		memcpy(host, &two, sizeof(two));
	} else if (to_dm) {
		memcpy(&one, host, sizeof(one));
		__atomic_store_n((uint32_t *)dm, one, __ATOMIC_RELAXED);
	} else {
		one = __atomic_load_n((uint32_t *)dm, __ATOMIC_RELAXED);
		memcpy(host, &one, sizeof(one));
	}
	return wide ? sizeof(two) : sizeof(one);
}

static inline int copy(struct vrnic_dm *dm, uint64_t offset, uint8_t *host, size_t length,
		       bool to_dm)
{
	size_t done;

	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	if (offset % WORD || length % WORD)
		return EINVAL;
	for (done = 0; done < length; )
		done += copy_unit(dm->mem + offset + done, host + done, length - done, to_dm);
	return 0;
}

static int memcpy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length)
{
	return copy(to_vdm(dm), offset, (uint8_t *)host, length, true);
}

static int memcpy_from_dm(void *host, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	return copy(to_vdm(dm), offset, host, length, false);
}

static struct vrnic_dm *dm_new(struct ibv_context *context)
{
	struct vrnic_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->vdm.dm.context = context;
	dm->vdm.dm.memcpy_to_dm = memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = memcpy_from_dm;
	return dm;
}

/* Map the device memory that @dm->vdm.handle names. Return: 0 or an errno. */
static int dm_map(struct vrnic_dm *dm)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, VRNIC_METHOD_DM_QUERY, 2);
	struct ibv_context *context = dm->vdm.dm.context;
	struct vrnic_dm_info info;
	void *mem;
	int ret;

	fill_attr_in_obj(cmd, VRNIC_ATTR_DM_QUERY_HANDLE, dm->vdm.handle);
	fill_attr_out_ptr(cmd, VRNIC_ATTR_DM_QUERY_RESP, &info);
	ret = execute_ioctl(context, cmd);
	if (ret)
		return ret;
	if (info.length > info.bytes)
		return EPROTO;
	mem = mmap(NULL, info.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, context->cmd_fd,
		   info.offset);
	if (mem == MAP_FAILED)
		return errno;
	dm->mem = mem;
	dm->bytes = info.bytes;
	dm->length = info.length;
	return 0;
}

struct ibv_dm *vrnic_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct vrnic_dm *dm;
	int ret;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = dm_new(context);
	if (!dm)
		return NULL;
	ret = ibv_cmd_alloc_dm(context, attr, &dm->vdm, NULL);
	if (ret)
		goto err_free;
	ret = dm_map(dm);
	if (ret)
		goto err_kernel;
	return &dm->vdm.dm;

err_kernel:
	ibv_cmd_free_dm(&dm->vdm);
err_free:
	free(dm);
	errno = ret;
	return NULL;
}

int vrnic_free_dm(struct ibv_dm *ibdm)
{
	int ret = ibv_cmd_free_dm(&to_vdm(ibdm)->vdm);

	if (ret)
		return ret;
	vrnic_unimport_dm(ibdm);
	return 0;
}

struct ibv_dm *vrnic_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct vrnic_dm *dm = dm_new(context);
	int ret;

	if (!dm)
		return NULL;
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	ret = dm_map(dm);
	if (ret) {
		free(dm);
		errno = ret;
		return NULL;
	}
	return &dm->vdm.dm;
}

/* The kernel's part stays. */
void vrnic_unimport_dm(struct ibv_dm *ibdm)
{
	struct vrnic_dm *dm = to_vdm(ibdm);

	munmap(dm->mem, dm->bytes);
	free(dm);
}
