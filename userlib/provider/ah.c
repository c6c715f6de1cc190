// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles. */

#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "vrnic.h"

struct ibv_ah *vrnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct vrnic_cmd_create_ah_resp resp = {};
	struct vrnic_ah *ah;
	int ret;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ret = ibv_cmd_create_ah(pd, &ah->ah, attr, &resp.ibv_resp,
				sizeof(resp));
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}
	ah->id = resp.ah;
	vrnic_pd_get(pd);
	return &ah->ah;
}

int vrnic_destroy_ah(struct ibv_ah *ibah)
{
	int ret = ibv_cmd_destroy_ah(ibah);

	if (ret)
		return ret;
	vrnic_pd_put(ibah->pd);
	free(to_vah(ibah));
	return 0;
}
