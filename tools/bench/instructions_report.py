#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
instructions_report.py LOOPBACK WIRE [--last FILE] [--json FILE] [--version VERSION]

What tools/bench/instructions counted, as a text table on stdout, and as JSON. FILE has the JSON of the
last release, with which it is compared.
"""

import argparse
import json
import os
import sys

from report import TITLES, Results, number, read, table

MTU = "@1500"

# Title, what was measured, bytes, the most that is wanted of vrnic, or its most as a share of rdma_rxe's.
LOOPBACK = (
    ("WRITE 8 B, in a stream", "ib_write_bw", 8, 1000, None),
    ("WRITE 8 B, one at a time", "ib_write_bw_alone", 8, 1800, None),
    ("SEND 8 B, in a stream", "ib_send_bw", 8, 1800, None),
    ("WRITE 64 KiB, in a stream", "ib_write_bw", 65536, 12000, None),
    ("put 8 B, in a stream", "native_put", 8, None, None),
    ("put 8 B, one at a time", "native_put_alone", 8, None, None),
    ("put 8 B inline, one at a time", "native_put_inline_alone", 8, None, None),
    ("get 8 B, in a stream", "native_get", 8, None, None),
    ("get 8 B, one at a time", "native_get_alone", 8, None, None),
)
WIRE = (
    ("WRITE 8 B, in a stream", "ib_write_bw", 8, None, 0.25),
    ("WRITE 8 B, one at a time", "ib_write_bw_alone", 8, None, None),
    ("SEND 8 B, in a stream", "ib_send_bw", 8, None, None),
    ("WRITE 64 KiB, in a stream", "ib_write_bw", 65536, None, None),
    ("put 8 B, in a stream", "native_put", 8, None, None),
    ("put 8 B and a fence, one at a time", "native_put_fence_alone", 8, None, None),
    ("get 8 B, in a stream", "native_get", 8, None, None),
    ("get 8 B, one at a time", "native_get_alone", 8, None, None),
)


def counts(results, rows, suffix):
    """{title: {device: instructions}} of what was counted."""
    found = {}
    for title, what, size, *_ in rows:
        mine = {d: results.get(d, what + suffix, size, "instructions") for d in results.devices}
        mine = {d: round(count) for d, count in mine.items() if count is not None}
        if mine:
            found[title] = mine
    return found


def missing(results, rows, found):
    """Titles of what vrnic should have been counted at, and was not."""
    if "vrnic" not in results.devices:
        return []
    return [row[0] for row in rows if "vrnic" not in found.get(row[0], {})]


def wanted(row, mine):
    """The most that is wanted of vrnic, as far as that is known."""
    _, _, _, most, share = row
    if share is not None and "rxe" in mine:
        return share * mine["rxe"]
    return most


def change(mine, last):
    """Against the last release, in percent."""
    if not mine or not last:
        return "-"
    return f"{100 * (mine / last - 1):+.1f}%"


def counts_table(rows, devices, found, last):
    lines = [["", *(TITLES[d] for d in devices), "wanted", "last release", "change"]]
    for row in rows:
        mine = found.get(row[0])
        if mine is None:
            continue
        before = last.get(row[0], {}).get("vrnic")
        lines.append([row[0], *(number(mine.get(d)) for d in devices), number(wanted(row, mine)),
                      number(before), change(mine.get("vrnic"), before)])
    return table(lines)


def main():
    parser = argparse.ArgumentParser(description="report on what tools/bench/instructions counted")
    parser.add_argument("loopback")
    parser.add_argument("wire")
    parser.add_argument("--last")
    parser.add_argument("--json")
    parser.add_argument("--version")
    options = parser.parse_args()
    last = {}
    if options.last and os.path.exists(options.last):
        with open(options.last, encoding="utf-8") as lines:
            last = json.load(lines)
    out = {"version": options.version}
    parts, lost = [], []
    for name, title, path, rows, suffix in (
            ("loopback", "on one host", options.loopback, LOOPBACK, ""),
            ("wire", "between two hosts, MTU 1500", options.wire, WIRE, MTU)):
        results = Results(*read(path))
        out[name] = counts(results, rows, suffix)
        if not out[name]:
            parser.error(f"{path} has no count")
        lost += missing(results, rows, out[name])
        parts.append(f"Instructions of a message, both ends, {title}\n" +
                     counts_table(rows, results.devices, out[name], last.get(name, {})))
    print("\n\n".join(parts))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as lines:
            json.dump(out, lines, indent=1)
            lines.write("\n")
    if lost:
        sys.exit(f"vrnic was not counted at: {'; '.join(lost)}")


if __name__ == "__main__":
    main()
