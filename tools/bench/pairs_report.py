#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
pairs_report.py FOLDER

What tools/bench/pairs-guest measured, as a table: for each figure the median of the old
runs and of the new ones, how many times as good the new one is in each pair, and how far
the runs of one side are apart. `worse`: the medians differ, for the worse, by more than
that, and each pair says so.
"""

import collections
import pathlib
import statistics
import sys

from report import NAMES, better, read

# A count of what went wrong is not a figure that is better or worse.
COUNTED = ("packets", "times")


def smaller_is_better(quantity):
    return quantity.endswith(("us", "ns", "instructions"))


def measured(folder):
    """{(program, bytes, quantity): {side: {pair: value}}}"""
    figures = collections.defaultdict(lambda: {"old": {}, "new": {}})
    for path in sorted(folder.glob("*-*.tsv")):
        side, pair = path.stem.split("-")[:2]
        for (_, what, size, quantity), values in read(path)[1].items():
            if quantity not in COUNTED and not what.startswith("iperf3"):
                figures[what, size, quantity][side][pair] = statistics.median(values)
    return figures


def spread(values):
    """How far apart, as a share of the median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0


def judge(quantity, old, new):
    """Ratio of each pair, ratio of the medians, spread, and a word."""
    smaller = smaller_is_better(quantity)
    pairs = [better(new[i], old[i], smaller) for i in sorted(old) if i in new]
    ratios = [r for r in pairs if r is not None]
    if not ratios:
        return None
    whole = better(statistics.median(new.values()), statistics.median(old.values()), smaller)
    apart = max(spread(old.values()), spread(new.values()))
    if whole is None:
        return None
    word = "worse" if max(ratios) < 1 and 1 - whole > apart else \
        "better" if min(ratios) > 1 and 1 - 1 / whole > apart else ""
    return ratios, whole, apart, word


def main():
    folder = pathlib.Path(sys.argv[1])
    words = collections.Counter()
    print(f"{'figure':<44} {'old':>10} {'new':>10} {'ratio':>6}  {'pairs':<20} {'spread':>6}")
    for (what, size, quantity), sides in sorted(measured(folder).items()):
        name = f"{what} {NAMES.get(size, f'{size} B')}, {quantity}"
        verdict = judge(quantity, sides["old"], sides["new"])
        if not verdict:
            print(f"{name:<44} {len(sides['old'])} old and {len(sides['new'])} new runs")
            continue
        ratios, whole, apart, word = verdict
        words[word] += 1
        each = " ".join(f"{r:.2f}" for r in ratios)
        old, new = (statistics.median(sides[s].values()) for s in ("old", "new"))
        print(f"{name:<44} {old:>10.4g} {new:>10.4g} {whole:>6.2f}  {each:<20} {apart:>6.0%} {word}")
    print(f"{sum(words.values())} figures: {words['worse']} worse and {words['better']} better "
          "by more than the runs are apart")


main()
