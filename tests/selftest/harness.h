/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel's harness, with a time limit that finds what hangs, and nothing else: it
 * suits beds with sanitizers, and emulated ones on a host that has more to do.
 */
#ifndef SELFTEST_HARNESS_H
#define SELFTEST_HARNESS_H

#include <endian.h>
#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "verbs_util.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#define ASSERT_OK(expr)		ASSERT_EQ(0, (expr))
#define EXPECT_OK(expr)		EXPECT_EQ(0, (expr))

/* Completion statuses are told by name when they are not what was expected. */
#define ASSERT_STATUS(expected, expr)					\
	do {								\
		int __status = (expr);					\
		ASSERT_EQ((int)(expected), __status)			\
			TH_LOG("status: %s", __status < 0 ?		\
			       strerror(-__status) :			\
			       ibv_wc_status_str(__status));		\
	} while (0)

#define EXPECT_STATUS(expected, expr)					\
	do {								\
		int __status = (expr);					\
		EXPECT_EQ((int)(expected), __status)			\
			TH_LOG("status: %s", __status < 0 ?		\
			       strerror(-__status) :			\
			       ibv_wc_status_str(__status));		\
	} while (0)

#define ASSERT_DONE(expr)	ASSERT_STATUS(IBV_WC_SUCCESS, expr)
#define EXPECT_DONE(expr)	EXPECT_STATUS(IBV_WC_SUCCESS, expr)

/* BED(name, bytes, options...): a fixture that is a struct bed and no more */
#define BED(name, bytes, ...)						\
	FIXTURE(name) { struct bed bed; };				\
	FIXTURE_SETUP(name)						\
	{								\
		ASSERT_OK(bed_open(&self->bed, (bytes),			\
				   &(struct pair_opts){ __VA_ARGS__ }));	\
	}								\
	FIXTURE_TEARDOWN(name)						\
	{								\
		EXPECT_OK(bed_close(&self->bed));			\
	}								\
	struct __need_semicolon_##name

#endif /* SELFTEST_HARNESS_H */
