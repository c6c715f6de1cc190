#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
sharing_report.py FOLDER [--least N]

What tools/bench/sharing saw: how often lines moved between CPUs for each WRITE, and which lines of
the module several pairs write, or one writes and others read. Lines that the same functions touch
are one row. Foreign stores are those of other pairs than the one that writes the line most: many of
them with few moves are a thread that went to another CPU with all it has. A line that is shared
moves all the time. What moves less often than --least (0.01) for each WRITE is left out: timers do.
"""

import argparse
import bisect
import collections
import os

RUNS = ("a region for each pair", "one region for all")

# What the functions suggest; nothing here knows where a thread was.
RING = "a ring in the program's memory: its thread was probably on a CPU that another pair left idle"

Site = collections.namedtuple("Site", "pc data pair loads stores within across")


class Symbols:
    def __init__(self, path):
        found = []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                address, _, name, *module = line.split()
                found.append((int(address, 16), name, module[0] if module else ""))
        found.sort()
        self.at = [f[0] for f in found]
        self.names = found

    def find(self, address):
        """The name of what is at the address, and its module: "user" of a program's."""
        if address < 1 << 63:
            return "user", ""
        i = bisect.bisect_right(self.at, address) - 1
        # beyond a megabyte it is none of a symbol's any more
        if i < 0 or address - self.at[i] > 1 << 20:
            return "heap", ""
        return self.names[i][1], self.names[i][2]


def read(path):
    """A list of runs, each {line: [Site]}."""
    runs = []
    with open(path, encoding="utf-8") as rows:
        for row in rows:
            words = row.split()
            if words[0] == "run":
                runs.append(collections.defaultdict(list))
            elif words[0] == "lost":
                print(f"{words[1]} accesses found no place in the plugin's tables")
            else:
                line, data, pc, *rest = (int(w, 16) for w in words)
                runs[-1][line].append(Site(pc, data, *rest))
    return runs


class Line:
    """What happened to a line, with the functions that did it."""

    def __init__(self, sites, symbols, writes):
        self.writers = collections.Counter()
        self.readers = collections.Counter()
        self.across = sum(s.across for s in sites) / writes
        self.within = sum(s.within for s in sites) / writes
        self.ours = False
        stores = collections.Counter()
        readers = set()
        for s in sites:
            name, module = symbols.find(s.pc)
            if module == "[vrnic]":
                name += "*"
                self.ours = True
            if s.stores:
                self.writers[name] += s.stores / writes
                stores[s.pair] += s.stores / writes
            if s.loads:
                self.readers[name] += s.loads / writes
                readers.add(s.pair)
        self.stores = sum(stores.values())
        self.foreign = self.stores - max(stores.values(), default=0)
        self.shared = stores and len(readers | set(stores)) > 1
        self.data = symbols.find(sites[0].data)[0]


def some(names, least):
    """The functions, the busiest first."""
    found = [name for name, n in names.most_common(6) if n >= least]
    return ", ".join(found) if found else "-"


def rows_of(lines, least):
    """Lines alike, together: [(moves, stores, foreign, how many, data, writers, readers)]."""
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for line in lines:
        key = (line.data, some(line.writers, least / 10), some(line.readers, least / 10))
        row = rows[key]
        for i, value in enumerate((line.across, line.stores, line.foreign, 1)):
            row[i] += value
    found = [(*sums, *key) for key, sums in rows.items() if sums[0] >= least]
    return sorted(found, reverse=True)


def show(title, lines, least, most=None):
    rows = rows_of(lines, least)[:most]
    print(f"\n  {title}:" + ("" if rows else " none"))
    for across, stores, foreign, count, data, writers, readers in rows:
        print(f"    {across:6.3f} moves, {stores:6.3f} stores, {foreign:6.3f} of them foreign, "
              f"{count} lines of {data}")
        print(f"           written by {writers}")
        print(f"           read by {readers}")
        if "user" in (writers.split(", ")[0], readers.split(", ")[0]):
            print(f"           ({RING})")


def report(title, run, writes, symbols, least):
    lines = [Line(sites, symbols, writes) for sites in run.values()]
    kernel = [line for line in lines if line.data != "user"]
    print(f"{title}, {writes} WRITEs. Moves for each, of the kernel's lines:")
    print(f"  within a pair {sum(k.within for k in kernel):.3f}, "
          f"between pairs {sum(k.across for k in kernel):.3f}, "
          f"of these the module's lines {sum(k.across for k in kernel if k.ours):.3f}")
    many = [k for k in kernel if k.ours and k.foreign >= least / 10]
    show("lines of the module that several pairs write", many, least)
    show("lines of the module that one pair writes and others read",
         [k for k in kernel if k.ours and k.shared and k not in many], least)
    show("lines of the rest of the kernel, the busiest",
         [k for k in kernel if not k.ours and k.shared], least, 5)
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--least", type=float, default=0.01)
    args = parser.parse_args()
    symbols = Symbols(os.path.join(args.folder, "symbols"))
    with open(os.path.join(args.folder, "writes"), encoding="utf-8") as numbers:
        writes = [int(n) for n in numbers]
    runs = read(os.path.join(args.folder, "accesses"))
    print("CPUs that work on different queue pairs. A function with * is of the module.\n")
    for title, run, n in zip(RUNS, runs, writes):
        report(title, run, n, symbols, args.least)


if __name__ == "__main__":
    main()
