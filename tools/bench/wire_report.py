#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
wire_report.py MEASUREMENTS [--json FILE]

What tools/bench/wire measured, as a text table on stdout, and as JSON. Every
figure is the median of its rounds; TCP is iperf3 with one stream.
"""

import argparse
import json

from report import NAMES, OPS, Results, better, number, ratio, read, table, times

DEVICES = ("vrnic", "rxe")
TITLES = {"vrnic": "vrnic", "rxe": "rdma_rxe"}

# Kind of program, quantity, unit, sizes, whether a smaller figure is better.
ROWS = (
    ("lat", "typical_us", "latency, us", (8,), True),
    ("bw", "Mmsgps", "million messages/s", (8,), False),
    ("bw", "MBps", "MB/s", (65536, 1048576), False),
)

# Text, program, bytes, quantity, compared with, floor.
FLOORS = (
    ("WRITE 1 MiB, bandwidth over rdma_rxe's", "ib_write_bw", 1048576, "MBps", "rxe", 3),
    ("WRITE 1 MiB, bandwidth over TCP's", "ib_write_bw", 1048576, "MBps", "tcp", 0.7),
    ("WRITE 8 B, rdma_rxe's latency over it", "ib_write_lat", 8, "typical_us", "rxe", 3),
    ("WRITE 8 B, message rate over rdma_rxe's", "ib_write_bw", 8, "Mmsgps", "rxe", 4),
)


def tcp(results):
    return results.get("tcp", "iperf3", 0, "MBps")


def rows(results):
    """For each measurement: title, program, bytes, quantity, figures, ratios."""
    for kind, quantity, unit, sizes, smaller in ROWS:
        for op in OPS:
            what = f"ib_{op}_{kind}"
            for size in sizes:
                got = {d: results.get(d, what, size, quantity) for d in DEVICES}
                if not any(got.values()):
                    continue
                ratios = {"rxe": better(got["vrnic"], got["rxe"], smaller),
                          "tcp": ratio(got["vrnic"], tcp(results)) if quantity == "MBps" else None}
                yield f"{op.upper()} {NAMES[size]}, {unit}", what, size, quantity, got, ratios


def floors(results):
    known = {(what, size, quantity): ratios for _, what, size, quantity, _, ratios in rows(results)}
    for text, what, size, quantity, peer, floor in FLOORS:
        figure = known.get((what, size, quantity), {}).get(peer)
        yield text, figure, floor, None if figure is None else figure >= floor


def text_report(results):
    lines = [["", *(TITLES[d] for d in DEVICES), "to rdma_rxe", "to TCP"]]
    for title, _, _, _, got, ratios in rows(results):
        lines.append([title, *(number(got[d]) for d in DEVICES),
                      times(ratios["rxe"]), times(ratios["tcp"]) if ratios["tcp"] else ""])
    facts = results.facts
    out = [f"Two machines and a wire: {facts.get('bed')}, Linux {facts.get('kernel')}, "
           f"{facts.get('cpus')} CPU each, MTU {facts.get('mtu')}",
           "", table(lines), "", f"  TCP (iperf3, one stream): {number(tcp(results))} MB/s", ""]
    for text, figure, floor, met in floors(results):
        verdict = "not measured" if met is None else "met" if met else "MISSED"
        out.append(f"  {text}: {times(figure)}, floor {floor}x: {verdict}")
    return "\n".join(out)


def as_json(results):
    figures = [{"program": what, "bytes": size, "quantity": quantity, **got,
                "to_rxe": ratios["rxe"], "to_tcp": ratios["tcp"]}
               for _, what, size, quantity, got, ratios in rows(results)]
    return {"machine": results.facts, "tcp_MBps": tcp(results), "figures": figures,
            "floors": [{"what": text, "figure": figure, "floor": floor, "met": met}
                       for text, figure, floor, met in floors(results)]}


def main():
    parser = argparse.ArgumentParser(description="report on a run of tools/bench/wire")
    parser.add_argument("measurements")
    parser.add_argument("--json")
    options = parser.parse_args()
    results = Results(*read(options.measurements))
    if not results.values:
        parser.error(f"{options.measurements} has no measurement")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(as_json(results), out, indent=1)
            out.write("\n")
    print(text_report(results))


if __name__ == "__main__":
    main()
