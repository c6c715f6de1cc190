/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libibverbs' interface for providers, and all differences between its releases. The
 * interface has a number, VRNIC_PABI, which grows with each change.
 */
#ifndef VRNIC_PROVIDER_COMPAT_H
#define VRNIC_PROVIDER_COMPAT_H

#include <infiniband/driver.h>

/* Since 57 this call takes file descriptors for the context. The provider has none. */
#if VRNIC_PABI >= 57
#define ibv_cmd_get_context(context, cmd, cmd_size, ...) \
	(ibv_cmd_get_context)(context, cmd, cmd_size, NULL, __VA_ARGS__)
#endif

/* Since 59 this call takes memory of the user for the ring. Here the kernel makes the rings. */
#if VRNIC_PABI >= 59
#define ibv_cmd_create_cq_ex(context, attr, ...) \
	(ibv_cmd_create_cq_ex)(context, attr, NULL, __VA_ARGS__)
#endif

/* Since 64 this call takes attributes of the driver. It has none. */
#if VRNIC_PABI >= 64
#define ibv_cmd_create_qp_ex2(...) (ibv_cmd_create_qp_ex2)(__VA_ARGS__, NULL)
#endif

/* Since 64 programs can have the provider choose memory for them. */
#if VRNIC_PABI >= 64
#define VRNIC_HAVE_BUF
#define VRNIC_BUF_OPS		.alloc_buf = vrnic_alloc_buf, .free_buf = vrnic_free_buf,
#define VRNIC_PARENT_DOMAIN_CC	IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC
#else
#define VRNIC_BUF_OPS
#define VRNIC_PARENT_DOMAIN_CC	0
#endif

/* Since 65 programs can have completions counted. */
#if VRNIC_PABI >= 65
#define VRNIC_HAVE_COMP_CNTR
#define VRNIC_COMP_CNTR_OPS					\
	.create_comp_cntr = vrnic_create_comp_cntr,		\
	.destroy_comp_cntr = vrnic_destroy_comp_cntr,		\
	.inc_comp_cntr = vrnic_inc_comp_cntr,			\
	.inc_err_comp_cntr = vrnic_inc_err_comp_cntr,		\
	.qp_attach_comp_cntr = ibv_cmd_qp_attach_comp_cntr,	\
	.query_comp_cntr_caps = vrnic_query_comp_cntr_caps,	\
	.read_comp_cntr = vrnic_read_comp_cntr,			\
	.read_err_comp_cntr = vrnic_read_err_comp_cntr,		\
	.set_comp_cntr = vrnic_set_comp_cntr,			\
	.set_err_comp_cntr = vrnic_set_err_comp_cntr,
#else
#define VRNIC_COMP_CNTR_OPS
#endif

/* Since 62; the interface's number has not changed. */
#ifdef HAVE_PORT_SPEED
#define VRNIC_PORT_SPEED_OPS	.query_port_speed = ibv_cmd_query_port_speed,
#else
#define VRNIC_PORT_SPEED_OPS
#endif

#endif /* VRNIC_PROVIDER_COMPAT_H */
