// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains: only the core's object, as memory regions and queue pairs point to it. */

#include "base/objects.h"
#include "base/udata.h"
#include "verbs/verbs.h"
#include "vrnic.h"

int vrnic_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	if (vrnic_udata_empty(udata))
		return -EINVAL;
	return vrnic_object_get(to_vdev(ibpd->device), VRNIC_OBJECT_PD, udata) ? 0 : -ENOMEM;
}

int vrnic_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	vrnic_object_put(to_vdev(ibpd->device), VRNIC_OBJECT_PD, udata);
	return 0;
}
