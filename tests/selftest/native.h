/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Fixtures of the tests of libvrnic. */
#ifndef SELFTEST_NATIVE_H
#define SELFTEST_NATIVE_H

#include "harness.h"
#include "native_util.h"

/* At the start of a fixture or a test. */
#define NEED_NATIVE()							\
	if (!native_device())						\
		SKIP(return, "%s has no native interface", dev_name())

/* NBED(name, bytes, attributes...): a fixture that is a struct nbed and no more */
#define NBED(name, bytes, ...)						\
	FIXTURE(name) { struct nbed bed; };				\
	FIXTURE_SETUP(name)						\
	{								\
		NEED_NATIVE();						\
		ASSERT_OK(nbed_open(&self->bed, (bytes),		\
				    CONTEXT(__VA_ARGS__)));		\
	}								\
	FIXTURE_TEARDOWN(name)						\
	{								\
		EXPECT_OK(nbed_close(&self->bed));			\
	}								\
	struct __need_semicolon_##name

/* What a counter or a callback says went wrong. */
#define EXPECT_FAILED(expected, error)					\
	EXPECT_EQ((int)(expected), (int)(error).status)			\
		TH_LOG("%s, %s", ibv_wc_status_str((error).status),	\
		       vrnic_vendor_err_str((error).vendor_err))

#endif /* SELFTEST_NATIVE_H */
