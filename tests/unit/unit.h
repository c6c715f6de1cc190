/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A harness for pure files: named tests, KTAP on stdout, exit status 1 if any failed. */
#ifndef UNIT_H
#define UNIT_H

#include <stdio.h>

struct unit_test {
	const char *name;
	void (*run)(void);
};

static int unit_bad;

#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			printf("# %s:%d: %s\n", __FILE__, __LINE__,	\
			       #condition);				\
			unit_bad = 1;					\
		}							\
	} while (0)

#define CHECK_EQ(expected, seen)					\
	do {								\
		unsigned long long __e = (expected), __s = (seen);	\
									\
		if (__e != __s) {					\
			printf("# %s:%d: %s is %llu, not %llu\n",	\
			       __FILE__, __LINE__, #seen, __s, __e);	\
			unit_bad = 1;					\
		}							\
	} while (0)

#define UNIT(function)	{ #function, function }

static inline int unit_main(const struct unit_test *tests, int n)
{
	int i, failed = 0;

	printf("TAP version 13\n1..%d\n", n);
	for (i = 0; i < n; i++) {
		unit_bad = 0;
		tests[i].run();
		printf("%sok %d %s\n", unit_bad ? "not " : "", i + 1,
		       tests[i].name);
		failed |= unit_bad;
	}
	return failed;
}

#define UNIT_MAIN(tests)						\
	int main(void)							\
	{								\
		return unit_main(tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif /* UNIT_H */
