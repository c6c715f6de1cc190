/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libibverbs' side of the provider, and all that differs between its releases. What they
 * call the private interface has a number, VRNIC_PABI, which grows with each change of it.
 */
#ifndef VRNIC_PROVIDER_COMPAT_H
#define VRNIC_PROVIDER_COMPAT_H

#include <infiniband/driver.h>

/* A context may be given file descriptors since 57. There is none to give. */
#if VRNIC_PABI >= 57
#define ibv_cmd_get_context(context, cmd, cmd_size, ...) \
	(ibv_cmd_get_context)(context, cmd, cmd_size, NULL, __VA_ARGS__)
#endif

/* A completion queue may be given memory by its user since 59. That is the kernel's here. */
#if VRNIC_PABI >= 59
#define ibv_cmd_create_cq_ex(context, attr, ...) \
	(ibv_cmd_create_cq_ex)(context, attr, NULL, __VA_ARGS__)
#endif

#endif /* VRNIC_PROVIDER_COMPAT_H */
