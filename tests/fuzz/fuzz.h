/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the fuzzers share: random numbers that a seed repeats, values that are
 * likely to hurt, options, and results as KTAP.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#endif

struct rng {
	uint64_t state;
};

static inline uint64_t rng_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline uint64_t rng_next(struct rng *rng)
{
	rng->state += 0x9e3779b97f4a7c15ULL;
	return rng_mix(rng->state);
}

/* From 0 to @n - 1. */
static inline uint32_t rng_below(struct rng *rng, uint32_t n)
{
	return (rng_next(rng) >> 32) * n >> 32;
}

static inline bool rng_one_in(struct rng *rng, uint32_t n)
{
	return !rng_below(rng, n);
}

/* A sequence of its own for each of @a and @b, so that one can be repeated alone. */
static inline struct rng rng_for(uint64_t seed, uint64_t a, uint64_t b)
{
	return (struct rng){ rng_mix(rng_mix(rng_mix(seed) ^ a) + b) };
}

void rng_fill(struct rng *rng, void *data, size_t len);
/* A number at an edge, or a small, or a large one. */
uint64_t rng_value(struct rng *rng);
/* Change a field of a structure, or some bits or bytes of it. */
void rng_mutate(struct rng *rng, void *data, size_t len);

/**
 * struct options - what the command line says
 * @seed: of everything
 * @seconds: how long; 0: until @count
 * @count: how much; 0: until @seconds
 * @least: a result of less than that is a failure
 * @only: name of what alone is to run, or NULL
 * @from: number of the first round
 */
struct options {
	uint64_t seed;
	unsigned int seconds;
	uint64_t count;
	uint64_t least;
	const char *only;
	uint64_t from;
};

/* Ends the process if the command line makes no sense. */
struct options options_read(int argc, char **argv, const char *what);

double now(void);

/* Results. */
void ktap_begin(unsigned int plan);
void ktap_result(bool good, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void ktap_comment(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Exit status. */
int ktap_end(void);

/* A number with separators, in one of a few static buffers. */
const char *grouped(long long n);

#endif /* FUZZ_H */
