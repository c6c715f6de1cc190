/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libvrnic: several counters, or several contexts, in one call. See vrnic_counter_group_create(3)
 * and vrnic_advance(3).
 */
#ifndef LIBVRNIC_GROUP_H
#define LIBVRNIC_GROUP_H

#include "vrnic.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vrnic_counter_group;

int vrnic_counter_group_create(struct vrnic_client *client, uint32_t flags,
			       struct vrnic_counter_group **group);
int vrnic_counter_group_destroy(struct vrnic_counter_group *group);
int vrnic_counter_create_in(struct vrnic_counter_group *group, uint32_t bit, uint32_t flags,
			    struct vrnic_counter **counter);
uint64_t vrnic_counter_group_read(const struct vrnic_counter_group *group, uint64_t *failed);
const uint64_t *vrnic_counter_group_word(const struct vrnic_counter_group *group);
int vrnic_counter_group_wait(struct vrnic_counter_group *group, uint64_t mask, uint32_t flags,
			     uint64_t timeout_ns, uint64_t *done);

int vrnic_advance_contexts(struct vrnic_context *const *contexts, unsigned int count, int max);
int vrnic_advance_contexts_try(struct vrnic_context *const *contexts, unsigned int count, int max);
int vrnic_advance_contexts_wait(struct vrnic_context *const *contexts, unsigned int count, int max,
				uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* LIBVRNIC_GROUP_H */
