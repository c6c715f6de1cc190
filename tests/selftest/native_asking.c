// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <stdlib.h>
#include <string.h>

#include "native_asking.h"

static struct held_param forced;

static void *do_it(void *arg)
{
	struct doing *d = arg;

	d->ret = d->what(d->arg);
	return NULL;
}

int begin(struct doing *d, int (*what)(void *arg), void *arg)
{
	d->what = what;
	d->arg = arg;
	return -pthread_create(&d->thread, NULL, do_it, d);
}

bool is_over(struct doing *d)
{
	return !pthread_tryjoin_np(d->thread, NULL);
}

int make_endpoint(void *arg)
{
	struct asking *a = arg;

	return raw_endpoint(a->fifo, &a->address, &a->endpoint, &a->handle);
}

struct asking asking_foe(struct raw_fifo *fifo)
{
	struct asking a = { .fifo = fifo, .address = { .fifo = 77, .secret = 1 } };
	const uint8_t gid[] = { 0xff, 0xff, FOE >> 24, FOE >> 16 & 0xff, FOE >> 8 & 0xff,
				FOE & 0xff };

	memcpy(a.address.gid + 10, gid, sizeof(gid));
	return a;
}

int reach_foe(struct asking *a, struct foe *foe)
{
	struct foe_hello hello;
	struct doing doing;
	int ret;

	ret = begin(&doing, make_endpoint, a) ?: foe_wait_hello(foe, FOE_ASK, &hello) ?:
	      foe_say_yes(foe);
	pthread_join(doing.thread, NULL);
	return ret ? ret : doing.ret;
}

/* On lo, a device has its port as soon as something leads to another host. */
static int open_port(struct dev *dev)
{
	struct pair_opts opts = {};
	struct pair pair;
	int ret = pair_open(&pair, dev, &opts);

	if (!ret)
		ret = pair_connect(&pair) ?: pair_close(&pair);
	return ret;
}

int foe_set_up(struct raw_fifo *fifo, uint32_t slots, size_t len, struct foe *foe)
{
	int ret;

	/* GID 1 of lo is 127.0.0.1 */
	ret = setenv("VRNIC_GID", "1", 1) ?: wire_device();
	return ret ?: param_hold(&forced, "force_roce", 1) ?: raw_open(fifo, slots, slots, len) ?:
	       open_port(&fifo->dev) ?: foe_open(foe, FOE);
}

int foe_tear_down(struct raw_fifo *fifo, struct foe *foe)
{
	int ret, err;

	foe_close(foe);
	ret = raw_close(fifo);
	err = param_release(&forced);
	ret = ret ? ret : err;
	return ret ? ret : rdma_link_del(WIRE_DEVICE);
}
