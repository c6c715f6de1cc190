#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
smc.py serve ADDRESS PORT
smc.py echo ADDRESS PORT BYTES
smc.py eid|eid-remove NAME
smc.py pnet NAME INTERFACE DEVICE
smc.py pnet-flush

In the guest: sockets of SMC, and what smcr(8) and smc_pnet(8) do, which Debian does not have. echo sends
BYTES to serve while it takes what comes back, and fails if that differs.
"""

import errno
import os
import socket
import struct
import sys
import threading

IPPROTO_SMC = 256
PIECE = 1 << 18

# linux/netlink.h, linux/genetlink.h, linux/smc.h
NETLINK_GENERIC, GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
SMC_NETLINK_ADD_UEID, SMC_NETLINK_REMOVE_UEID, SMC_NLA_EID_TABLE_ENTRY = 10, 11, 1
SMC_PNETID_ADD, SMC_PNETID_FLUSH = 2, 4
SMC_PNETID_NAME, SMC_PNETID_ETHNAME, SMC_PNETID_IBNAME, SMC_PNETID_IBPORT = 1, 2, 3, 4
NLM_F_REQUEST, NLM_F_ACK, NLMSG_ERROR = 1, 4, 2


def attribute(kind, value):
    data = value if isinstance(value, bytes) else value.encode() + b"\0"
    return struct.pack("HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def ask(family, command, attributes):
    """Send one request. Return: the attributes of the answer, which may be none."""
    body = struct.pack("BBH", command, 1, 0) + attributes
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC) as s:
        s.bind((0, 0))
        s.send(struct.pack("IHHII", 16 + len(body), family, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body)
        answer = s.recv(65536)
    kind = struct.unpack_from("H", answer, 4)[0]
    if kind == NLMSG_ERROR:
        error = -struct.unpack_from("i", answer, 16)[0]
        if error:
            raise OSError(error, os.strerror(error))
        return b""
    return answer[20:struct.unpack_from("I", answer)[0]]


def family_of(name):
    answer = ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, attribute(CTRL_ATTR_FAMILY_NAME, name))
    while answer:
        length, kind = struct.unpack_from("HH", answer)
        if kind == CTRL_ATTR_FAMILY_ID:
            return struct.unpack_from("H", answer, 4)[0]
        answer = answer[(length + 3) & ~3:]
    sys.exit(f"smc.py: the kernel has no {name}")


def eid(command, name):
    ask(family_of("SMC_GEN_NETLINK"), command, attribute(SMC_NLA_EID_TABLE_ENTRY, name.ljust(32)))


def pnet(name, interface, device):
    try:
        ask(family_of("SMC_PNETID"), SMC_PNETID_ADD,
            attribute(SMC_PNETID_NAME, name) + attribute(SMC_PNETID_ETHNAME, interface) +
            attribute(SMC_PNETID_IBNAME, device) + attribute(SMC_PNETID_IBPORT, b"\1"))
    except OSError as e:
        if e.errno != errno.EEXIST:
            raise


def send_back(s):
    try:
        while data := s.recv(PIECE):
            s.sendall(data)
    except OSError as e:
        print(f"a connection ended: {e}", flush=True)
    s.close()


def serve(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SMC) as listener:
        listener.bind((address, port))
        listener.listen()
        while True:
            s, _ = listener.accept()
            threading.Thread(target=send_back, args=(s,), daemon=True).start()


def piece_at(at):
    return bytes((at >> 18) * 7 + i & 0xff for i in range(251)) * (PIECE // 251 + 1)


def echo(address, port, total):
    def send():
        for at in range(0, total, PIECE):
            s.sendall(piece_at(at)[:min(PIECE, total - at)])

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SMC) as s:
        s.connect((address, port))
        threading.Thread(target=send, daemon=True).start()
        for at in range(0, total, PIECE):
            want = piece_at(at)[:min(PIECE, total - at)]
            got = b""
            while len(got) < len(want):
                data = s.recv(len(want) - len(got))
                if not data:
                    sys.exit(f"smc.py: the connection ended after {at + len(got)} bytes")
                got += data
            if got != want:
                sys.exit(f"smc.py: what came back differs in the piece at {at}")


def main():
    match sys.argv[1:]:
        case ["serve", address, port]:
            serve(address, int(port))
        case ["echo", address, port, total]:
            echo(address, int(port), int(total))
        case ["eid", name]:
            eid(SMC_NETLINK_ADD_UEID, name)
        case ["eid-remove", name]:
            eid(SMC_NETLINK_REMOVE_UEID, name)
        case ["pnet", name, interface, device]:
            pnet(name, interface, device)
        case ["pnet-flush"]:
            ask(family_of("SMC_PNETID"), SMC_PNETID_FLUSH, b"")
        case _:
            sys.exit(__doc__.strip())


main()
