/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Two processes with a device context and one queue pair each. */
#ifndef SELFTEST_TWO_H
#define SELFTEST_TWO_H

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "harness.h"

struct address {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

/* One process's end: its own device, a side, and a buffer the peer may use. */
struct end {
	struct dev dev;
	struct pair_opts opts;
	struct side side;
	struct buf buf;
	struct address peer;
};

static inline int end_open(struct end *end, size_t len,
			   const struct pair_opts *opts)
{
	int ret = dev_open(&end->dev);

	end->opts = pair_defaults(opts);
	if (!ret)
		ret = side_open(&end->side, &end->dev, &end->opts, false);
	if (!ret)
		ret = buf_open(&end->buf, end->dev.pd, len, 0, ACCESS_REMOTE);
	return ret;
}

/* Swap addresses over the socket and connect; the peer does the same. */
static inline int end_connect(struct end *end, int fd)
{
	struct address mine = {
		.gid = end->dev.gid,
		.qpn = end->side.qp->qp_num,
		.rkey = end->buf.mr->rkey,
		.addr = (uintptr_t)end->buf.addr,
	};
	char byte = 0;
	int ret;

	if (send(fd, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine) ||
	    recv(fd, &end->peer, sizeof(mine), MSG_WAITALL) != sizeof(mine))
		return -EPIPE;
	ret = side_connect(&end->side, &end->opts, end->peer.qpn,
			   &end->peer.gid);
	if (ret)
		return ret;
	if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || recv(fd, &byte, 1, 0) != 1)
		return -EPIPE;
	return 0;
}

static inline int end_write(struct end *end, size_t len)
{
	return RUN(&end->side, .op = IBV_WR_RDMA_WRITE, .local = &end->buf,
		   .len = len, .raddr = end->peer.addr, .rkey = end->peer.rkey);
}

static inline void end_close(struct end *end)
{
	side_close(&end->side);
	buf_close(&end->buf);
	dev_close(&end->dev);
}

#endif /* SELFTEST_TWO_H */
