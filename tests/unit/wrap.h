/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the linker's --wrap makes of functions: the test's, and the real ones. */
#ifndef WRAP_H
#define WRAP_H

#include <pthread.h>
#include <stddef.h>

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_realloc(void *old, size_t size);

#endif /* WRAP_H */
