// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

void rng_fill(struct rng *rng, void *data, size_t len)
{
	uint64_t word;
	size_t at, n;

	for (at = 0; at < len; at += n) {
		word = rng_next(rng);
		n = len - at < sizeof(word) ? len - at : sizeof(word);
		memcpy((uint8_t *)data + at, &word, n);
	}
}

static const uint64_t edges[] = {
	0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255,
	256, 511, 512, 1023, 1024, 4095, 4096, 4097, 65535, 65536, 65537,
	1ULL << 20, (1ULL << 31) - 1, 1ULL << 31, (1ULL << 32) - 1, 1ULL << 32,
	(1ULL << 32) + 1, (1ULL << 63) - 1, 1ULL << 63, ~0ULL, ~0ULL - 1,
	~0ULL - 4095, 0x7ffffffff000ULL, 0xffff800000000000ULL,
};

uint64_t rng_value(struct rng *rng)
{
	switch (rng_below(rng, 4)) {
	case 0:
		return rng_next(rng);
	case 1:
		return rng_below(rng, 256);
	case 2:
		return 1ULL << rng_below(rng, 64);
	default:
		return edges[rng_below(rng, ARRAY_SIZE(edges))];
	}
}

/* Overwrite, add to, or flip bits of a field of 1, 2, 4 or 8 bytes. */
static void mutate_field(struct rng *rng, uint8_t *at, size_t width)
{
	uint64_t field = 0;

	memcpy(&field, at, width);
	switch (rng_below(rng, 4)) {
	case 0:
		field = rng_value(rng);
		break;
	case 1:
		field += (int)rng_below(rng, 33) - 16;
		break;
	default:
		field ^= 1ULL << rng_below(rng, 8 * width);
		break;
	}
	memcpy(at, &field, width);
}

void rng_mutate(struct rng *rng, void *data, size_t len)
{
	size_t width = 1U << rng_below(rng, 4);

	while (width > len)
		width /= 2;
	if (width)
		mutate_field(rng, (uint8_t *)data +
			     rng_below(rng, len / width) * width, width);
}

static void misused(const char *name, const char *what)
{
	fprintf(stderr,
		"usage: %s [-s SEED] [-t SECONDS] [-n COUNT] [-m LEAST] [-o NAME] [-r ROUND]\n"
		"%s\n", name, what);
	exit(2);
}

struct options options_read(int argc, char **argv, const char *what)
{
	struct options o = { .seed = 1 };
	int c;

	while ((c = getopt(argc, argv, "s:t:n:m:o:r:")) != -1) {
		switch (c) {
		case 's':
			o.seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			o.seconds = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			o.count = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			o.least = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			o.only = optarg;
			break;
		case 'r':
			o.from = strtoull(optarg, NULL, 0);
			break;
		default:
			misused(argv[0], what);
		}
	}
	if (optind < argc)
		misused(argv[0], what);
	if (!o.seconds && !o.count)
		o.seconds = 30;
	return o;
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static unsigned int results, failures;

void ktap_begin(unsigned int plan)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..%u\n", plan);
}

void ktap_result(bool good, const char *fmt, ...)
{
	va_list args;

	pthread_mutex_lock(&output);
	printf("%s %u ", good ? "ok" : "not ok", ++results);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	failures += !good;
	pthread_mutex_unlock(&output);
}

void ktap_comment(const char *fmt, ...)
{
	va_list args;

	pthread_mutex_lock(&output);
	printf("# ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	pthread_mutex_unlock(&output);
}

int ktap_end(void)
{
	return failures ? 1 : 0;
}

const char *grouped(long long n)
{
	static __thread char texts[4][32];
	static __thread unsigned int next;
	char *text = texts[next++ % 4], digits[24];
	int i, len = snprintf(digits, sizeof(digits), "%lld", n);

	for (i = 0; *digits && i < len; i++) {
		*text++ = digits[i];
		if ((len - i) % 3 == 1 && i < len - 1 && digits[i] != '-')
			*text++ = ',';
	}
	*text = 0;
	return texts[(next - 1) % 4];
}
