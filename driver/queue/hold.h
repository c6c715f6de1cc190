/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a send ring keeps during a burst: struct vrnic_hold. */
#ifndef VRNIC_HOLD_H
#define VRNIC_HOLD_H

#include "vrnic.h"

struct vrnic_hold;
struct vrnic_qp;

void vrnic_hold_regions_put(struct vrnic_hold *hold);
void vrnic_hold_release(struct vrnic_qp *qp);

#endif /* VRNIC_HOLD_H */
