// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Devices come and go: netlink messages to the RDMA core. */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "rdma_link.h"

union message {
	struct nlmsghdr head;
	uint8_t bytes[512];
};

static void begin(union message *msg, int command)
{
	memset(msg, 0, sizeof(*msg));
	msg->head.nlmsg_len = NLMSG_HDRLEN;
	msg->head.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
	msg->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
}

/* An attribute behind the others; there is room. */
static void put(union message *msg, uint16_t type, const void *data, size_t len)
{
	struct nlattr *attr = (void *)(msg->bytes + NLMSG_ALIGN(msg->head.nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy((uint8_t *)attr + NLA_HDRLEN, data, len);
	msg->head.nlmsg_len = NLMSG_ALIGN(msg->head.nlmsg_len) + NLA_ALIGN(attr->nla_len);
}

static void put_string(union message *msg, uint16_t type, const char *text)
{
	put(msg, type, text, strlen(text) + 1);
}

/* The kernel answers before send() ends, unless it has no memory for the answer. */
static int ask(int fd, union message *msg)
{
	const struct nlmsgerr *answer = NLMSG_DATA(&msg->head);

	if (send(fd, msg, msg->head.nlmsg_len, 0) < 0)
		return -errno;
	if (recv(fd, msg, sizeof(*msg), MSG_DONTWAIT) < 0)
		return -errno;
	return msg->head.nlmsg_type == NLMSG_ERROR ? answer->error : -EPROTO;
}

static int open_netlink(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	return fd < 0 ? -errno : fd;
}

int rdma_link_add_by(int fd, const char *name, const char *netdev)
{
	union message msg;

	begin(&msg, RDMA_NLDEV_CMD_NEWLINK);
	put_string(&msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	put_string(&msg, RDMA_NLDEV_ATTR_LINK_TYPE, "vrnic");
	put_string(&msg, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
	return ask(fd, &msg);
}

int rdma_link_add(const char *name, const char *netdev)
{
	int fd = open_netlink(), ret;

	if (fd < 0)
		return fd;
	ret = rdma_link_add_by(fd, name, netdev);
	close(fd);
	return ret;
}

static int index_of(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i, index = -ENODEV;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			index = ibv_get_device_index(list[i]);
	if (list)
		ibv_free_device_list(list);
	return index;
}

int rdma_link_del(const char *name)
{
	int index = index_of(name), fd, ret;
	union message msg;

	if (index < 0)
		return -ENODEV;
	fd = open_netlink();
	if (fd < 0)
		return fd;
	begin(&msg, RDMA_NLDEV_CMD_DELLINK);
	put(&msg, RDMA_NLDEV_ATTR_DEV_INDEX, &(uint32_t){ index }, sizeof(uint32_t));
	ret = ask(fd, &msg);
	close(fd);
	return ret;
}

static int lo_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = ioctl(fd, SIOCSIFFLAGS, &lo) ? -errno : 0;
	close(fd);
	return ret;
}

int rdma_link_add_anew(const char *name, const char *netdev)
{
	int ret = rdma_link_add(name, netdev);

	for (int i = 0; ret == -ENFILE && i < 3000; i++) {
		usleep(10000);
		ret = rdma_link_add(name, netdev);
	}
	return ret;
}

int rdma_link_apart(const char *name)
{
	int ret;

	if (unshare(CLONE_NEWNET))
		return -errno;
	ret = lo_up();
	return ret ? ret : rdma_link_add_anew(name, "lo");
}
