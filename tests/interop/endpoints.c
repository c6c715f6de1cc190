// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * endpoints -d DEVICE -n CONTEXTS -l ADDRESSES
 * endpoints -d DEVICE ADDRESSES...
 *
 * Endpoints of the native interface to contexts of other hosts, and the memory that they take. With
 * -l: make CONTEXTS contexts and a region, write the addresses of all to the file ADDRESSES, and
 * exit at the end of the input. Else make an endpoint for each address of all the files; print how
 * long that took, then wait for a line of the input; put and get words and send a message with
 * each, print, and wait for a line; and exit.
 */
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vrnic.h"

#define SECOND		1000000000ULL
#define PUTS		20	/* with each endpoint: more than a link that rests has room for */

struct place {			/* a line of a file, in binary */
	struct vrnic_address context;
	uint64_t addr;
	uint32_t rkey;
};

static struct vrnic_client *client;
static uint64_t word[32];		/* more than share a packet */
static struct ibv_mr *mr;

static int good(int result, const char *what)
{
	if (result < 0)
		errx(1, "%s: %s", what, strerror(-result));
	return result;
}

static void await_line(void)
{
	char line[16];

	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static void listen_for(unsigned int contexts, const char *name)
{
	struct place place = { .addr = (uintptr_t)word, .rkey = mr->rkey };
	struct vrnic_context_attr attr = { .inject_slots = 2 };
	struct vrnic_context *context;
	FILE *file = fopen(name, "w");

	if (!file)
		err(1, "%s", name);
	while (contexts--) {
		good(vrnic_context_create(client, &attr, &context), "context");
		vrnic_context_address(context, &place.context);
		if (fwrite(&place, sizeof(place), 1, file) != 1)
			err(1, "%s", name);
	}
	if (fclose(file))
		err(1, "%s", name);
	puts("ready");
	await_line();
}

static size_t read_places(char **names, struct place **places)
{
	size_t nr = 0, got;
	FILE *file;

	for (; *names; names++) {
		file = fopen(*names, "r");
		if (!file)
			err(1, "%s", *names);
		do {
			*places = realloc(*places, (nr + 1) * sizeof(**places));
			if (!*places)
				err(1, "places");
			got = fread(*places + nr, sizeof(**places), 1, file);
			nr += got;
		} while (got);
		fclose(file);
	}
	return nr;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void use(struct vrnic_endpoint *ep, const struct place *place)
{
	struct vrnic_wr wr = {
		.local = word, .mr = mr, .length = sizeof(word),
		.remote = place->addr, .rkey = place->rkey,
	};
	struct vrnic_send_wr message = { .data = word, .length = sizeof(word) };
	struct vrnic_done done = { .flags = VRNIC_QUEUE };
	int i;

	for (i = 0; i < PUTS; i++)
		good(vrnic_put(ep, &wr, &done), "put");
	good(vrnic_get(ep, &wr, &done), "get");
	good(vrnic_send(ep, &message, &done), "send");
}

static void use_all(struct vrnic_context *context, struct vrnic_endpoint **eps,
		    const struct place *places, size_t nr)
{
	struct vrnic_status status = {};
	size_t i;

	for (i = 0; i < nr; i++)
		use(eps[i], &places[i]);
	good(vrnic_fence_all_wait(context, 10 * SECOND, &status), "fence");
	if (status.status != IBV_WC_SUCCESS)
		errx(1, "an operation failed: %s", ibv_wc_status_str(status.status));
}

static void connect_to(char **names)
{
	struct vrnic_context_attr attr = {};
	struct vrnic_context *context;
	struct vrnic_endpoint **eps;
	struct place *places = NULL;
	size_t i, nr = read_places(names, &places);
	double begin;

	good(vrnic_context_create(client, &attr, &context), "context");
	eps = calloc(nr, sizeof(*eps));
	if (!eps)
		err(1, "endpoints");
	printf("%zu addresses\n", nr);
	await_line();
	begin = seconds();
	for (i = 0; i < nr; i++)
		good(vrnic_endpoint_create(context, &places[i].context, &eps[i]), "endpoint");
	printf("connected in %.3f s\n", seconds() - begin);
	await_line();
	use_all(context, eps, places, nr);
	puts("used");
	await_line();
}

int main(int argc, char **argv)
{
	const char *device = NULL, *file = NULL;
	unsigned int contexts = 1;
	int letter;

	while ((letter = getopt(argc, argv, "d:n:l:")) != -1) {
		switch (letter) {
		case 'd':
			device = optarg;
			break;
		case 'n':
			contexts = atoi(optarg);
			break;
		case 'l':
			file = optarg;
			break;
		default:
			device = NULL;
		}
	}
	if (!device || (!file && optind == argc))
		errx(1, "usage: see endpoints.c");
	good(vrnic_client_open(device, &client), device);
	mr = ibv_reg_mr(vrnic_client_pd(client), word, sizeof(word),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		err(1, "cannot register memory");
	if (file)
		listen_for(contexts, file);
	else
		connect_to(argv + optind);
	return 0;
}
