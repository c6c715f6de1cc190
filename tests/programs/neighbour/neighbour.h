/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the files of the neighbour share: neighbour.c runs one attack of the others. */
#ifndef NEIGHBOUR_H
#define NEIGHBOUR_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/vrnic-abi.h>

#include "verbs_util.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define die(...)							\
	do {								\
		fprintf(stderr, "neighbour: " __VA_ARGS__);		\
		fputc('\n', stderr);					\
		exit(1);						\
	} while (0)

#define must(expr)							\
	do {								\
		int err_ = (expr);					\
		if (err_)						\
			die("%s: %d", #expr, err_);			\
	} while (0)

/**
 * struct victim - what an attacker knows of the victim
 * @qpn: one of its queue pairs
 * @address: its FIFO; all zero if the victim uses verbs
 */
struct victim {
	uint32_t qpn;
	struct vrnic_address address;
};

/**
 * struct attack - calls by which a user may try to slow others down
 * @name: in the table
 * @threads: that run @turn, all the time
 * @native: the victim uses remote gets, not WRITEs
 * @packets: all goes by packets
 * @begin: once, before the threads
 * @turn: a round, of seconds at most
 */
struct attack {
	const char *name;
	unsigned int threads;
	bool native, packets;
	void (*begin)(const struct victim *victim);
	void (*turn)(unsigned int thread);
};

/* verbs.c */
void names_begin(const struct victim *victim);
void names_turn(unsigned int thread);
void modify_begin(const struct victim *victim);
void modify_turn(unsigned int thread);
void resize_begin(const struct victim *victim);
void resize_turn(unsigned int thread);
void long_begin(const struct victim *victim);
void long_turn(unsigned int thread);
void bells_begin(const struct victim *victim);
void bells_turn(unsigned int thread);
void flush_begin(const struct victim *victim);
void flush_turn(unsigned int thread);

/* datagrams.c */
void groups_begin(const struct victim *victim);
void groups_turn(unsigned int thread);
void members_begin(const struct victim *victim);
void members_turn(unsigned int thread);

/* native.c */
unsigned long native_victim(double seconds, void (*begin)(const struct victim *victim));
void full_begin(const struct victim *victim);
void full_turn(unsigned int thread);
void failing_begin(const struct victim *victim);
void failing_turn(unsigned int thread);

/* packets.c */
void queued_begin(const struct victim *victim);
void queued_turn(unsigned int thread);
void early_begin(const struct victim *victim);
void early_turn(unsigned int thread);

#endif /* NEIGHBOUR_H */
