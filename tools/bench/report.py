#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
report.py MEASUREMENTS [--json FILE] [--svg FILE] [--short]

What tools/bench/guest measured, as a text table on stdout, and as JSON and an
SVG chart. Every figure is the median of its repeats; `spread` is how far the
repeats are apart, as a share of the median. --short is the demo's table.
"""

import argparse
import json
import math
import statistics

DEVICES = ("vrnic", "rxe", "siw")
TITLES = {"vrnic": "vrnic", "rxe": "rdma_rxe", "siw": "siw"}
OPS = ("write", "read", "send")
NAMES = {8: "8 B", 4096: "4 KiB", 65536: "64 KiB", 1048576: "1 MiB", 4194304: "4 MiB"}


def size_name(size):
    return NAMES.get(size, f"{size} B")


def read(path):
    """Facts about the machine, and {(device, what, size, quantity): [values]}."""
    facts, values = {}, {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                name, _, value = line[2:].strip().partition(" ")
                facts[name] = value
                continue
            device, what, size, quantity, value = line.rstrip("\n").split("\t")
            value = float(value)
            if math.isfinite(value):
                values.setdefault((device, what, int(size), quantity), []).append(value)
    return facts, values


class Results:
    def __init__(self, facts, values):
        self.facts = facts
        self.values = values
        self.devices = [d for d in DEVICES if any(k[0] == d for k in values)]

    def get(self, device, what, size, quantity):
        found = self.values.get((device, what, size, quantity))
        return statistics.median(found) if found else None

    def spread(self, device, what, size, quantity):
        found = self.values.get((device, what, size, quantity))
        if not found or len(found) < 2 or not statistics.median(found):
            return None
        return (max(found) - min(found)) / statistics.median(found)

    def limit(self, name, size=0):
        return self.get("limit", name, size, "value")

    def sizes(self, what, quantity):
        return sorted({k[2] for k in self.values
                       if k[0] != "limit" and k[1] == what and k[3] == quantity})

    def memcpy(self, size):
        """The bound for a transfer: the fastest way to copy as much, hot."""
        for bytes_ in (size, 65536):
            found = [self.limit(name, bytes_) for name in ("memcpy_hot", "movsq_hot", "words_hot")]
            if any(found):
                return max(filter(None, found))
        return None

    def libc(self, size):
        """What a program gets that calls memcpy() for as much, hot: what the floors mean."""
        return self.limit("memcpy_hot", size)


def ratio(a, b):
    return a / b if a is not None and b else None


def number(value):
    """About three digits that count, without an exponent."""
    if value is None:
        return "-"
    if 0 < value < 0.1:
        return f"{value:.{1 - math.floor(math.log10(value))}f}"
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def percent(value):
    return "-" if value is None else f"{value * 100:.0f}%"


def times(value):
    return "-" if value is None else f"{number(value)}x"


def table(rows):
    """Rows of cells, the first row the head; the first column is text."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join("  " + line for line in lines)


# A section of the report: title, kind of perftest program, quantity, whether a
# smaller figure is better, and what else a figure is compared with.
SECTIONS = (
    ("Latency, typical, us (half a round trip for WRITE and SEND)", "lat", "typical_us", True,
     ("null calls", lambda r, size, value: ratio(value, r.limit("null_call")))),
    ("Message rate, million/s", "bw", "Mmsgps", False, None),
    ("Bandwidth, MB/s", "bw", "MBps", False,
     ("copy", lambda r, size, value: ratio(value, r.memcpy(size)))),
)


def better(value, other, smaller):
    """How many times better `value` is than `other`."""
    return ratio(other, value) if smaller else ratio(value, other)


def section(results, kind, quantity, smaller, extra):
    peers = [d for d in results.devices if d != "vrnic"]
    head = ["", *(TITLES[d] for d in results.devices), "spread"]
    if "vrnic" in results.devices:
        head += [f"to {TITLES[d]}" for d in peers] + ([extra[0]] if extra else [])
    rows = [head]
    for op in OPS:
        what = f"ib_{op}_{kind}"
        for size in results.sizes(what, quantity):
            got = {d: results.get(d, what, size, quantity) for d in results.devices}
            spreads = [results.spread(d, what, size, quantity) for d in results.devices]
            row = [f"{op.upper()} {size_name(size)}", *(number(got[d]) for d in results.devices),
                   percent(max((s for s in spreads if s is not None), default=None))]
            if "vrnic" in got:
                row += [times(better(got["vrnic"], got[d], smaller)) for d in peers]
                if extra:
                    row.append(number(extra[1](results, size, got["vrnic"])))
            rows.append(row)
    return table(rows) if len(rows) > 1 else None


LIMITS = (
    ("memcpy, C library, hot", "memcpy_hot", "MB/s"),
    ("memcpy, C library, cold", "memcpy_cold", "MB/s"),
    ("rep movsq, hot", "movsq_hot", "MB/s"),
    ("rep movsq, cold", "movsq_cold", "MB/s"),
    ("64-bit words, hot", "words_hot", "MB/s"),
    ("64-bit words, cold", "words_cold", "MB/s"),
    ("null system call", "null_call", "us"),
    ("pipe round trip", "pipe_round_trip", "us"),
    ("process_vm_readv", "vm_readv_us", "us"),
    ("process_vm_readv", "vm_readv", "MB/s"),
)


def limits_table(results):
    rows = [["", "figure", "unit", "spread"]]
    for title, name, unit in LIMITS:
        sizes = sorted(k[2] for k in results.values if k[:2] == ("limit", name))
        if name == "vm_readv":
            sizes = [s for s in sizes if s > 8]
        for size in sizes:
            rows.append([f"{title}{', ' + size_name(size) if size else ''}",
                         number(results.limit(name, size)), unit,
                         percent(results.spread("limit", name, size, "value"))])
    return table(rows) if len(rows) > 1 else None


# Native operations: title, name of the figure, size, what it stands against, its name.
def native_rows():
    for size in (8, 64, 4096, 65536, 1048576, 4194304):
        yield f"put {size_name(size)}", "put", size, "verbs WRITE", "verbs_write"
        yield f"get {size_name(size)}", "get", size, "verbs WRITE", "verbs_write"
        if size <= 4096:
            yield f"put {size_name(size)}, inline", "put_inline", size, "put", "put"
    for size in (4096, 65536, 1048576, 4194304):
        yield f"read {size_name(size)}, unregistered", "read", size, "process_vm_readv", "vm_readv"
        yield f"write {size_name(size)}, unregistered", "write", size, "process_vm_writev", "vm_writev"
    for size, count in ((8, "4,096"), (4096, "64")):
        for what, title in (("typed_put", "one type"), ("typed_put_differ", "two types")):
            chunks = f"{count} chunks of {size_name(size)}, {title}"
            yield chunks, what, size, "pack, put, unpack", "pack_put_unpack"
            yield chunks, what, size, "a WRITE each", "write_per_chunk"
    for puts in (1, 100, 10000):
        yield f"fence after {puts:,} puts", "fence", puts, "a put there", "put_behind"
    yield "paced 64 MiB", "paced", 67108864, "unpaced", "unpaced"
    yield "deferred 64 MiB, and computing", "overlapped", 67108864, "computing", "computing"


def native_us(results, what, size):
    return results.get("native", what, size, "us")


def native_table(results):
    rows = [["", "us", "spread", "against", "us", "times better"]]
    for title, what, size, other, other_what in native_rows():
        mine, theirs = (native_us(results, w, size) for w in (what, other_what))
        if mine is not None:
            rows.append([title, number(mine), percent(results.spread("native", what, size, "us")),
                         other, number(theirs), times(ratio(theirs, mine))])
    return table(rows) if len(rows) > 1 else None


def native_streams_table(results):
    rows = [["", "million/s", "MB/s", "against", "million/s", "MB/s", "times better"]]
    for size in results.sizes("put", "Mops"):
        for what in ("put", "get"):
            mine, theirs = ([results.get("native", w, size, q) for q in ("Mops", "MBps")]
                            for w in (what, "verbs_write"))
            rows.append([f"{what} {size_name(size)}", *map(number, mine), "verbs WRITE",
                         *map(number, theirs), times(ratio(mine[0], theirs[0]))])
    return table(rows) if len(rows) > 1 else None


def on_demand_share(results, size):
    return ratio(*(results.get("native", what, size, "MBps")
                   for what in ("resident_on_demand", "resident_pinned")))


def on_demand_table(results):
    """perftest's two regions are of two pieces of memory: it registers them before it uses them."""
    rows = [["", "on demand, MB/s", "pinned, MB/s", "ratio"]]
    def add(title, on_demand, pinned):
        if on_demand is not None:
            rows.append([title, number(on_demand), number(pinned), number(ratio(on_demand, pinned))])
    for size in results.sizes("resident_on_demand", "MBps"):
        add(f"resident, WRITE {size_name(size)}",
            *(results.get("native", what, size, "MBps") for what in ("resident_on_demand", "resident_pinned")))
    for size in results.sizes("ib_write_bw_odp", "MBps"):
        add(f"ib_write_bw --odp, {size_name(size)}",
            *(results.get("vrnic", what, size, "MBps") for what in ("ib_write_bw_odp", "ib_write_bw")))
    return table(rows) if len(rows) > 1 else None


def native_floors(results):
    def us(what, size):
        return native_us(results, what, size)

    def gain(what, other, size):
        return ratio(us(other, size), us(what, size))

    mib = 1048576
    if us("put", 8) is None:
        return []
    overlap = None
    if results.facts.get("cpus") != "1" and us("overlapped", 64 * mib):
        overlap = max(us("deferred", 64 * mib), us("computing", 64 * mib)) / us("overlapped", 64 * mib)
    fences = [(f"fence after {n:,} puts, 1.5 puts there to it", ratio(us("put_behind", n) * 1.5, us("fence", n)), 1.0)
              for n in (1, 10000) if us("put_behind", n)]
    return [
        ("put 8 B, verbs WRITE to it", gain("put", "verbs_write", 8), 1.0),
        ("put 1 MiB to memcpy",
         ratio(results.get("native", "put", mib, "MBps"), results.libc(mib)), 0.6),
        ("read 1 MiB, process_vm_readv to it", gain("read", "vm_readv", mib), 1.0),
        ("typed 8 B chunks, a WRITE each to it", gain("typed_put_differ", "write_per_chunk", 8), 5),
        ("typed 8 B chunks, pack, put, unpack to it",
         gain("typed_put_differ", "pack_put_unpack", 8), 1.0),
        *fences,
        ("paced 64 MiB, unpaced to it", gain("paced", "unpaced", 67108864), 0.9),
        ("deferred 64 MiB beside computing, the longer of the two to both", overlap, 0.87),
    ]


def floors(results):
    """[(text, figure, floor, met)], met None where there is no figure."""
    def bw(device, op, size):
        return results.get(device, f"ib_{op}_bw", size, "MBps")

    def rate(device):
        return results.get(device, "ib_write_bw", 8, "Mmsgps")

    def lat(device):
        return results.get(device, "ib_write_lat", 8, "typical_us")

    mib = 1048576
    if results.facts.get("bed", "").startswith("uml"):
        found = [(f"{op.upper()} 1 MiB to memcpy",
                  ratio(bw("vrnic", op, mib), results.libc(mib)), 0.5) for op in ("write", "read")]
    else:
        found = [
            ("WRITE 1 MiB to memcpy", ratio(bw("vrnic", "write", mib), results.libc(mib)), 0.6),
            ("WRITE 1 MiB to rxe", ratio(bw("vrnic", "write", mib), bw("rxe", "write", mib)), 20),
            ("WRITE 64 KiB to rxe",
             ratio(bw("vrnic", "write", 65536), bw("rxe", "write", 65536)), 20),
            ("WRITE 8 B message rate to rxe", ratio(rate("vrnic"), rate("rxe")), 12),
            ("WRITE 8 B latency, rxe to vrnic", ratio(lat("rxe"), lat("vrnic")), 10),
        ]
    found += [(f"WRITE {size_name(size)}, resident memory on demand to pinned",
               on_demand_share(results, size), 0.9) for size in (65536, mib)]
    found += native_floors(results)
    return [(text, figure, floor, None if figure is None else figure >= floor)
            for text, figure, floor in found]


def verdict(met):
    return {True: "met", False: "missed", None: "not measured"}[met]


def floors_table(results):
    rows = [["", "figure", "floor", ""]]
    rows += [[text, number(figure), number(floor), verdict(met)]
             for text, figure, floor, met in floors(results)]
    return table(rows)


def text_report(results):
    facts = results.facts
    parts = [f"Linux {facts.get('kernel', '?')} on {facts.get('bed', '?')}, "
             f"{facts.get('cpus', '?')} CPUs, medians of {facts.get('repeats', '?')}; "
             "spread is the widest of the row"]
    for title, *what in SECTIONS:
        body = section(results, *what)
        if body:
            parts.append(f"{title}\n{body}")
    for title, body in (("Native operations, one at a time", native_table(results)),
                        ("Native operations, in a stream", native_streams_table(results)),
                        ("Memory on demand", on_demand_table(results)),
                        ("Limits of this machine", limits_table(results))):
        if body:
            parts.append(f"{title}\n{body}")
    if "vrnic" in results.devices:
        parts.append(f"Floors\n{floors_table(results)}")
    if facts.get("cpus") == "1":
        parts.append("With one CPU, latencies of programs that poll are mostly the scheduler's.")
    return "\n\n".join(parts)


def short_report(results):
    """What the demo ends with."""
    rows = [["", *(TITLES[d] for d in results.devices), "ratio", "limit"]]

    def add(title, what, size, quantity, smaller, limit):
        got = [results.get(d, what, size, quantity) for d in results.devices]
        gain = better(*(results.get(d, what, size, quantity) for d in ("vrnic", "rxe")), smaller)
        rows.append([title, *(number(v) for v in got), times(gain), limit])

    def memory(size):
        value = results.memcpy(size)
        return "" if value is None else f"copy {number(value)}"

    call = results.limit("null_call")
    add("WRITE 8 B latency, us", "ib_write_lat", 8, "typical_us", True,
        "" if call is None else f"system call {number(call)}")
    add("WRITE 8 B, million messages/s", "ib_write_bw", 8, "Mmsgps", False, "")
    for size in (65536, 1048576):
        add(f"WRITE {size_name(size)}, MB/s", "ib_write_bw", size, "MBps", False, memory(size))
    return table(rows)


def as_json(results):
    figures = []
    for (device, what, size, quantity), found in sorted(results.values.items()):
        figures.append({"device": device, "program": what, "bytes": size, "quantity": quantity,
                        "median": statistics.median(found), "min": min(found), "max": max(found),
                        "values": found})
    ratios = []
    for _, kind, quantity, smaller, _ in SECTIONS:
        for op in OPS:
            what = f"ib_{op}_{kind}"
            for size in results.sizes(what, quantity):
                mine = results.get("vrnic", what, size, quantity)
                entry = {"program": what, "bytes": size, "quantity": quantity}
                for peer in ("rxe", "siw"):
                    entry[peer] = better(mine, results.get(peer, what, size, quantity), smaller)
                if quantity == "MBps":
                    entry["memcpy"] = ratio(mine, results.memcpy(size))
                if quantity == "typical_us":
                    entry["null_calls"] = ratio(mine, results.limit("null_call"))
                ratios.append(entry)
    return {"machine": results.facts, "figures": figures, "ratios_of_vrnic": ratios,
            "floors": [{"what": text, "figure": figure, "floor": floor, "met": met}
                       for text, figure, floor, met in floors(results)]}


def main():
    parser = argparse.ArgumentParser(description="report on a run of tools/bench/guest")
    parser.add_argument("measurements")
    parser.add_argument("--json")
    parser.add_argument("--svg")
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    results = Results(*read(options.measurements))
    if not results.devices:
        parser.error(f"{options.measurements} has no measurement")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(as_json(results), out, indent=1)
            out.write("\n")
    if options.svg:
        from chart import chart
        with open(options.svg, "w", encoding="utf-8") as out:
            out.write(chart(results, DEVICES, TITLES, OPS, size_name, number))
    print(short_report(results) if options.short else text_report(results))


if __name__ == "__main__":
    main()
