// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains and XRC domains: only the core's objects, as others point to them. The core
 * keeps the table of XRC domains by file, and opens an XRC target for each process that asks.
 */

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

int vrnic_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	if (vrnic_udata_empty(udata))
		return -EINVAL;
	return vrnic_object_get(to_vdev(ibxrcd->device), VRNIC_OBJECT_XRCD, true) ? 0 : -ENOMEM;
}

/* The domain has no queue pairs and no SRQs. The last process that had it open has closed it. */
int vrnic_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	vrnic_object_put(to_vdev(ibxrcd->device), VRNIC_OBJECT_XRCD, true);
	return 0;
}
