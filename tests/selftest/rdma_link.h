/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Devices that a test makes and deletes, as `rdma link` does, but without a new process, which is
 * slow to start where page faults are slow. All of these functions return 0 or a negative errno.
 */
#ifndef RDMA_LINK_H
#define RDMA_LINK_H

/* Device @name of vrnic, on the network interface @netdev. */
int rdma_link_add(const char *name, const char *netdev);
/* The same by the caller's socket, of NETLINK_RDMA: for those that count what is allocated. */
int rdma_link_add_by(int fd, const char *name, const char *netdev);
/*
 * As rdma_link_add(), after the end of another device of this name: that of a test before, whose
 * network namespace ends some time after the test. The core says ENFILE until then.
 */
int rdma_link_add_anew(const char *name, const char *netdev);
int rdma_link_del(const char *name);

/* A network namespace of the process's own, with device @name on its lo, which is up. */
int rdma_link_apart(const char *name);

#endif /* RDMA_LINK_H */
