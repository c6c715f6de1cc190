// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The driver's part of a uverbs command: what is asked, and what is answered. */

#include <linux/minmax.h>
#include <linux/string.h>
#include <rdma/uverbs_ioctl.h>

#include "vrnic.h"

struct ib_ucontext *vrnic_udata_ucontext(struct ib_udata *udata)
{
	struct vrnic_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct vrnic_ucontext, ibuc);

	return &uc->ibuc;
}

/* Nothing is expected in a command's driver part: true if there is something. */
int vrnic_udata_empty(struct ib_udata *udata)
{
	return udata && udata->inlen &&
	       !ib_is_udata_cleared(udata, 0, udata->inlen);
}

/**
 * vrnic_udata_request() - read a command's driver part
 * @udata: the command's; NULL: a kernel consumer's
 * @req: the result; zero where the library has nothing
 * @size: of @req
 * @oldest: of the driver part of the first library that spoke this ABI
 *
 * The library may be older than the module, or newer: then it must not ask for what the
 * module does not know.
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
 * vrnic_udata_respond() - answer a command
 * @udata: the command's
 * @resp: the answer, of which an older library takes the beginning
 * @size: of @resp
 * @oldest: of the answer that the first library takes that spoke this ABI
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
