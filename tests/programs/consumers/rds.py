#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
rds.py serve ADDRESS PORT
rds.py echo OWN ADDRESS PORT COUNT [on]

In the guest: reliable datagrams. echo sends datagrams of up to 8 KiB to serve, some at a time, and fails if
what comes back is not each of them, in order. It sends COUNT of them, or goes on until it gets a SIGINT, and
then sends COUNT more.
"""

import collections
import random
import signal
import socket
import sys

AHEAD = 16


def rds_socket(address, port):
    s = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET, 0)
    s.bind((address, port))
    return s


def serve(address, port):
    with rds_socket(address, port) as s:
        while True:
            data, sender = s.recvfrom(65536)
            s.sendto(data, sender)


def echo(own, address, port, count, going_on):
    sent = collections.deque()
    left = count

    def stop(*_):
        nonlocal going_on
        going_on = False

    signal.signal(signal.SIGINT, stop)
    with rds_socket(own, port) as s:
        while left or sent:
            if left:
                data = len(sent).to_bytes(4, "big") + random.randbytes(random.randrange(1020, 8188))
                s.sendto(data, (address, port))
                sent.append(data)
                left -= not going_on
            if len(sent) == AHEAD or not left:
                if s.recv(65536) != sent.popleft():
                    sys.exit("rds.py: what came back is not what was sent")


match sys.argv[1:]:
    case ["serve", address, port]:
        serve(address, int(port))
    case ["echo", own, address, port, count, *rest]:
        echo(own, address, int(port), int(count), rest == ["on"])
    case _:
        sys.exit(__doc__.strip())
