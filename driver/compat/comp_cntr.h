/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion counters, which the RDMA core has since 7.3. */
#ifndef VRNIC_COMPAT_COMP_CNTR_H
#define VRNIC_COMPAT_COMP_CNTR_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#ifdef VRNIC_HAVE_COMP_CNTR
#include "mem/place.h"
#include "queue/comp.h"

/**
 * struct vrnic_comp_cntr - a completion counter
 * @ibcc: the core's part
 * @comp: the part that queue pairs see
 * @place: where its values are
 */
struct vrnic_comp_cntr {
	struct ib_comp_cntr ibcc;
	struct vrnic_comp comp;
	struct vrnic_place place;
};

extern const struct uapi_definition vrnic_comp_cntr_defs[];
int vrnic_create_comp_cntr(struct ib_comp_cntr *ibcc, struct uverbs_attr_bundle *attrs);
int vrnic_destroy_comp_cntr(struct ib_comp_cntr *ibcc);
int vrnic_modify_comp_cntr(struct ib_comp_cntr *ibcc, enum ib_comp_cntr_entry entry,
			   enum ib_comp_cntr_modify_op op, u64 value);
int vrnic_read_comp_cntr(struct ib_comp_cntr *ibcc, enum ib_comp_cntr_entry entry, u64 *value);
int vrnic_query_comp_cntr_caps(struct ib_device *ibdev, struct ib_comp_cntr_caps *caps,
			       struct uverbs_attr_bundle *attrs);
int vrnic_qp_attach_comp_cntr(struct ib_qp *ibqp, struct ib_comp_cntr *ibcc,
			      struct ib_qp_attach_comp_cntr_attr *attr);

#define VRNIC_COMP_CNTR_OPS						\
	.create_comp_cntr = vrnic_create_comp_cntr,			\
	.destroy_comp_cntr = vrnic_destroy_comp_cntr,			\
	.modify_comp_cntr = vrnic_modify_comp_cntr,			\
	.qp_attach_comp_cntr = vrnic_qp_attach_comp_cntr,		\
	.query_comp_cntr_caps = vrnic_query_comp_cntr_caps,		\
	.read_comp_cntr = vrnic_read_comp_cntr,				\
	INIT_RDMA_OBJ_SIZE(ib_comp_cntr, vrnic_comp_cntr, ibcc),
#define VRNIC_COMP_CNTR_DEFS	UAPI_DEF_CHAIN(vrnic_comp_cntr_defs),
#else
#define VRNIC_COMP_CNTR_OPS
#define VRNIC_COMP_CNTR_DEFS
#endif

#endif /* VRNIC_COMPAT_COMP_CNTR_H */
