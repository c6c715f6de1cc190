/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the linker's --wrap=pthread_mutex_unlock makes of it: the test's, and the real one. */
#ifndef UNLOCK_H
#define UNLOCK_H

#include <pthread.h>

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);

#endif /* UNLOCK_H */
