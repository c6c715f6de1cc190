/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The driver's part of a uverbs command. Libraries may be older or newer than the module. */
#ifndef VRNIC_UDATA_H
#define VRNIC_UDATA_H

#include <linux/types.h>

struct ib_ucontext;
struct ib_udata;

struct ib_ucontext *vrnic_udata_ucontext(struct ib_udata *udata);
int vrnic_udata_empty(struct ib_udata *udata);
int vrnic_udata_request(struct ib_udata *udata, void *req, size_t size,
			size_t oldest);
int vrnic_udata_respond(struct ib_udata *udata, void *resp, size_t size,
			size_t oldest);

#endif /* VRNIC_UDATA_H */
