// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The driver's part of a uverbs command: reads the request, writes the answer. */

#include <linux/minmax.h>
#include <linux/string.h>
#include <rdma/uverbs_ioctl.h>

#include "base/udata.h"
#include "ucontext.h"

struct ib_ucontext *vrnic_udata_ucontext(struct ib_udata *udata)
{
	struct vrnic_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct vrnic_ucontext, ibuc);

	return &uc->ibuc;
}

/*
 * Check the driver's part of a command that takes no data from the library. Return: true if there
 * is data nevertheless, that is, a byte that is not zero.
 */
int vrnic_udata_empty(struct ib_udata *udata)
{
	return udata && udata->inlen &&
	       !ib_is_udata_cleared(udata, 0, udata->inlen);
}

/**
 * vrnic_udata_request() - read the driver's part of a command
 * @udata: driver's part of the command; NULL for a kernel consumer
 * @req: the result; zero where the library sent nothing
 * @size: size of @req
 * @oldest: bytes that the first library with this ABI version sent
 *
 * The library may be older than the module, or newer. What a newer library sends beyond @size has
 * to be zero: the module does not know what it asks for.
 *
 * Return: 0 or a negative errno.
 */
int vrnic_udata_request(struct ib_udata *udata, void *req, size_t size,
			size_t oldest)
{
	memset(req, 0, size);
	if (!udata || !udata->inlen)
		return 0;
	if (udata->inlen < oldest)
		return -EINVAL;
	if (udata->inlen > size &&
	    !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EOPNOTSUPP;
	return ib_copy_from_udata(req, udata, min(size, udata->inlen));
}

/**
 * vrnic_udata_respond() - write the driver's part of the answer to a command
 * @udata: driver's part of the command
 * @resp: the answer; an older library takes only its beginning
 * @size: size of @resp
 * @oldest: bytes that the first library with this ABI version takes
 *
 * Return: 0 or a negative errno.
 */
int vrnic_udata_respond(struct ib_udata *udata, void *resp, size_t size,
			size_t oldest)
{
	if (udata->outlen < oldest)
		return -EINVAL;
	return ib_copy_to_udata(udata, resp, min(size, udata->outlen));
}
