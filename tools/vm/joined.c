// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * joined COMMAND...: run it with a pair of connected sockets at descriptors 8
 * and 9, the wire between two user-mode Linux machines. Sequenced packets keep
 * the frames apart and in order, and a full queue makes the sender wait.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define END_A	8
#define END_B	9
#define QUEUE	(4 << 20)	/* bytes: some hundred frames of 9000 */

/* keep FD at END, not closed by exec */
static int keep(int fd, int end)
{
	int queue = QUEUE;

	/* Without the right to more, the system's limit has to do. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &queue, sizeof(queue)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &queue, sizeof(queue));
	return dup2(fd, end) == end ? 0 : -1;
}

int main(int argc, char **argv)
{
	int pair[2];

	if (argc < 2) {
		fputs("usage: joined COMMAND...\n", stderr);
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) ||
	    keep(pair[0], END_A) || keep(pair[1], END_B)) {
		perror("joined");
		return 1;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
