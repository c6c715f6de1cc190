// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <rdma/vrnic-abi.h>

static_assert(sizeof(vrnic_desc) == VRNIC_SLOT_SIZE, "a descriptor is a slot");
static_assert(sizeof(vrnic_cqe) == 64, "a completion is a cache line");
