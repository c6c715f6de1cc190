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

#endif /* VRNIC_PROVIDER_COMPAT_H */
