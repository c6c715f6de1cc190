/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the kernel would complain of ends a test. */
#ifndef SHIM_LINUX_BUG_H
#define SHIM_LINUX_BUG_H

#include <stdio.h>
#include <stdlib.h>

#define WARN_ON_ONCE(condition)						\
	({								\
		if (condition) {					\
			printf("# %s:%d: warning: %s\n", __FILE__,	\
			       __LINE__, #condition);			\
			abort();					\
		}							\
		false;							\
	})

#endif /* SHIM_LINUX_BUG_H */
