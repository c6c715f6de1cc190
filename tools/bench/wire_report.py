#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
wire_report.py MEASUREMENTS [--json FILE] [--svg FILE]

What tools/bench/wire measured, as a text table on stdout, as JSON and as an SVG
chart. Every figure is the median of its rounds; TCP is iperf3 with one stream.
"""

import argparse
import json

from chart import BAR, BAR_GAP, GROUP_GAP, MARGIN, WIDTH, Drawing, Scale, style, theme
from report import NAMES, OPS, Results, better, number, percent, ratio, read, table, times

DEVICES = ("vrnic", "rxe")
TITLES = {"vrnic": "vrnic", "rxe": "rdma_rxe", "tcp": "TCP"}
COLOURS = {"vrnic": "vrnic", "rxe": "rxe", "tcp": "limit"}

# Kind of program, quantity, unit, size, whether a smaller figure is better.
ROWS = (
    ("lat", "typical_us", "latency, us", 8, True),
    ("bw", "Mmsgps", "million/s", 8, False),
    ("bw", "MBps", "MB/s", 1048576, False),
)

# Of tools/bench/native.c: text, operation, bytes, quantity, the same by verbs.
NATIVE = (
    ("put 8 B, million/s", "put", 8, "Mops", "verbs_write"),
    ("put and fence 8 B, us", "put_fence", 8, "us", "verbs_write"),
    ("put 1 MiB, MB/s", "put", 1048576, "MBps", "verbs_write"),
    ("get 8 B, us", "get", 8, "us", "verbs_read"),
    ("get 8 B, million/s", "get", 8, "Mops", "verbs_read"),
    ("get 1 MiB, MB/s", "get", 1048576, "MBps", "verbs_read"),
    ("messages 8 B to 63 of 64 endpoints, million/s", "crowd_one_stopped", 63, "Mops", None),
    ("typed put 4,096 x 8 B and a WRITE for each, us", "typed_put", 8, "us", "write_per_chunk"),
)

# Text, program, bytes, quantity, compared with, floor; at the largest MTU.
FLOORS = (
    ("WRITE 1 MiB, bandwidth over rdma_rxe's", "ib_write_bw", 1048576, "MBps", "rxe", 3),
    ("WRITE 1 MiB, bandwidth over TCP's", "ib_write_bw", 1048576, "MBps", "tcp", 0.7),
    ("WRITE 8 B, rdma_rxe's latency over it", "ib_write_lat", 8, "typical_us", "rxe", 3),
    ("WRITE 8 B, message rate over rdma_rxe's", "ib_write_bw", 8, "Mmsgps", "rxe", 4),
)

# Of native operations, at each MTU: text, operation and bytes, what it is compared with and its bytes,
# quantity, floor.
NATIVE_FLOORS = (
    ("put 8 B, rate over WRITE's", "put", 8, "verbs_write", 8, "Mops", 1),
    ("put and fence 8 B, a WRITE's latency over it", "put_fence", 8, "verbs_write", 8, "us", 0.83),
    ("put 1 MiB, bandwidth over WRITE's", "put", 1048576, "verbs_write", 1048576, "MBps", 0.9),
    ("fence behind 10,000 puts, one behind a put over it", "fence", 10000, "fence", 1, "us", 0.67),
    ("63 endpoints beside one that is stopped, rate over that without it", "crowd_one_stopped", 63, "crowd", 63, "Mops", 0.9),
    ("typed put 4,096 x 8 B, a WRITE for each over it", "typed_put", 8, "write_per_chunk", 8, "us", 5),
    ("typed put 4,096 x 8 B, pack, put and unpack over it", "typed_put", 8, "pack_put_unpack", 8, "us", 1),
)
OVERLAP = ("deferred put 64 MiB beside computing, computing alone over both",
           "overlapped", 67108864, "computing", 67108864, "us", 0.87)


def mtus(results):
    return sorted({int(what.partition("@")[2]) for _, what, _, _ in results.values if "@" in what})


def tcp(results, mtu):
    return results.get("tcp", f"iperf3@{mtu}", 0, "MBps")


def rows(results, mtu):
    """For each measurement: title, program, bytes, quantity, figures, spread, ratios."""
    for kind, quantity, unit, size, smaller in ROWS:
        for op in OPS:
            what = f"ib_{op}_{kind}"
            key = (f"{what}@{mtu}", size, quantity)
            got = {d: results.get(d, *key) for d in DEVICES}
            if not any(got.values()):
                continue
            spreads = [results.spread(d, *key) for d in DEVICES]
            ratios = {"rxe": better(got["vrnic"], got["rxe"], smaller),
                      "tcp": ratio(got["vrnic"], tcp(results, mtu)) if quantity == "MBps" else None}
            yield (f"{op.upper()} {NAMES[size]}, {unit}", what, size, quantity, got,
                   max((s for s in spreads if s is not None), default=None), ratios)


def native(results, mtu):
    """For each native operation: title, operation, bytes, quantity, its figure, that of verbs."""
    for title, what, size, quantity, other in NATIVE:
        mine = results.get("native", f"{what}@{mtu}", size, quantity)
        if mine is not None:
            theirs = results.get("native", f"{other}@{mtu}", size, quantity) if other else None
            yield title, what, size, quantity, mine, theirs


def native_table(results, mtu):
    lines = [["native, and the same program's WRITEs and READs", "native", "verbs"]]
    lines += [[title, number(mine), number(theirs) if theirs else ""]
              for title, _, _, _, mine, theirs in native(results, mtu)]
    return table(lines) if len(lines) > 1 else ""


def native_floors(results):
    # to compute while data move takes another CPU
    measured = NATIVE_FLOORS if results.facts.get("cpus") == "1" else (*NATIVE_FLOORS, OVERLAP)
    for mtu in mtus(results):
        for text, what, size, other, other_size, quantity, floor in measured:
            mine = results.get("native", f"{what}@{mtu}", size, quantity)
            theirs = results.get("native", f"{other}@{mtu}", other_size, quantity)
            figure = better(mine, theirs, quantity == "us")
            yield f"MTU {mtu}: {text}", figure, floor, None if figure is None else figure >= floor


def floors(results):
    known = {(what, size, quantity): ratios
             for _, what, size, quantity, _, _, ratios in rows(results, mtus(results)[-1])}
    for text, what, size, quantity, peer, floor in FLOORS:
        figure = known.get((what, size, quantity), {}).get(peer)
        yield text, figure, floor, None if figure is None else figure >= floor
    yield from native_floors(results)


def again(results):
    """Of each operation: packets that vrnic sent again, and times that it waited for a receive."""
    counts = {}
    for (device, what, _, _), values in results.values.items():
        kind, _, rest = what.partition("_")
        if device == "vrnic" and kind in ("again", "waits"):
            entry = counts.setdefault(rest.split("@")[0], {"again": 0, "waits": 0})
            entry[kind] += int(sum(values))
    return counts


def place(results):
    facts = results.facts
    return (f"Linux {facts.get('kernel')} on {facts.get('bed')}, {facts.get('cpus')} CPUs, "
            f"{facts.get('rounds')} rounds")


def text_report(results):
    out = [f"Two hosts of one machine and a veth wire: {place(results)}"]
    for mtu in mtus(results):
        lines = [["", *(TITLES[d] for d in DEVICES), "spread", "to rdma_rxe", "to TCP"]]
        for title, _, _, _, got, spread, ratios in rows(results, mtu):
            lines.append([title, *(number(got[d]) for d in DEVICES), percent(spread),
                          times(ratios["rxe"]), times(ratios["tcp"]) if ratios["tcp"] else ""])
        out += ["", f"MTU {mtu}; TCP (iperf3, one stream) has {number(tcp(results, mtu))} MB/s", "",
                table(lines), "", native_table(results, mtu)]
    out.append("")
    for text, figure, floor, met in floors(results):
        verdict = "not measured" if met is None else "met" if met else "MISSED"
        out.append(f"  {text}: {times(figure)}, floor {floor}x: {verdict}")
    for op, counts in again(results).items():
        out.append(f"  packets that vrnic sent again for a {op.upper()}: {counts['again']:,}, "
                   f"while {counts['waits']:,} times no receive was posted")
    return "\n".join(out)


def as_json(results):
    figures = [{"mtu": mtu, "program": what, "bytes": size, "quantity": quantity, **got,
                "spread": spread, "to_rxe": ratios["rxe"], "to_tcp": ratios["tcp"]}
               for mtu in mtus(results)
               for _, what, size, quantity, got, spread, ratios in rows(results, mtu)]
    native_figures = [{"mtu": mtu, "operation": what, "bytes": size, "quantity": quantity,
                       "native": mine, "verbs": theirs}
                      for mtu in mtus(results)
                      for _, what, size, quantity, mine, theirs in native(results, mtu)]
    return {"machine": results.facts, "figures": figures, "native": native_figures, "sent_again": again(results),
            "tcp_MBps": {mtu: tcp(results, mtu) for mtu in mtus(results)},
            "floors": [{"what": text, "figure": figure, "floor": floor, "met": met}
                       for text, figure, floor, met in floors(results)]}


def groups(results, mtu, quantity, size):
    """Rows of the chart: name of the group, series, value."""
    for _, what, bytes_, kind, got, _, _ in rows(results, mtu):
        if (kind, bytes_) == (quantity, size):
            for device in DEVICES:
                if got[device]:
                    yield what.split("_")[1].upper(), device, got[device]
    if quantity == "MBps" and tcp(results, mtu):
        yield "TCP", "tcp", tcp(results, mtu)


def panel(d, title, bars, left, top, width):
    d.text(left, top, title, "ink head")
    label = 52
    scale = Scale([value for _, _, value in bars], left + label, left + width - 60)
    y, last = top + 16, None
    for group, series, value in bars:
        if group != last:
            y += GROUP_GAP if last else 0
            d.text(left, y + BAR - 3, group, "dim")
            last = group
        end = max(scale(value), left + label + 2.0)
        d.add("rect", x=left + label, y=y, width=end - left - label, height=BAR, rx=2,
              class_=COLOURS[series])
        d.text(end + 5, y + BAR - 3, number(value))
        y += BAR + BAR_GAP
    return y


def chart(results):
    d = Drawing()
    d.text(MARGIN, 32, "RDMA devices made of software, two hosts and a wire", "ink title")
    d.text(WIDTH - MARGIN, 32, place(results), "dim", "end")
    x = MARGIN
    for series, title in TITLES.items():
        d.add("rect", x=x, y=50, width=14, height=14, rx=2, class_=COLOURS[series])
        d.text(x + 20, 62, title)
        x += 36 + 8 * len(title)
    top, width = 92, (WIDTH - 2 * MARGIN - 40) / 3
    for mtu in mtus(results):
        bottom = top
        for i, (title, quantity, size) in enumerate((
                ("1 MiB, MB/s", "MBps", 1048576), ("8 B, million/s", "Mmsgps", 8),
                ("8 B, latency in us", "typical_us", 8))):
            bars = list(groups(results, mtu, quantity, size))
            if bars:
                bottom = max(bottom, panel(d, f"MTU {mtu}: {title}", bars,
                                           MARGIN + i * (width + 20), top, width))
        top = bottom + 30
    d.text(MARGIN, top, "perftest and iperf3, medians; all scales are logarithmic", "dim")
    height = top + 20
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}">\n'
            "<!-- SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB -->\n"
            f"<style>{style(theme(1))}</style>\n"
            f'<rect class="bg" width="{WIDTH}" height="{height}"/>\n'
            + "\n".join(d.parts) + "\n</svg>\n")


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def main():
    parser = argparse.ArgumentParser(description="report on a run of tools/bench/wire")
    parser.add_argument("measurements")
    parser.add_argument("--json")
    parser.add_argument("--svg")
    options = parser.parse_args()
    results = Results(*read(options.measurements))
    if not mtus(results):
        parser.error(f"{options.measurements} has no measurement")
    if options.json:
        write(options.json, json.dumps(as_json(results), indent=1) + "\n")
    if options.svg:
        write(options.svg, chart(results))
    print(text_report(results))


if __name__ == "__main__":
    main()
