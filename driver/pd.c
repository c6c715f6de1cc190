// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains: the core's object is all there is. */

#include "vrnic.h"

int vrnic_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return vrnic_udata_empty(udata) ? -EINVAL : 0;
}

int vrnic_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}
