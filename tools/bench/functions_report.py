#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""
functions_report.py FOLDER

What tools/bench/functions counted: instructions for each WRITE or SEND, by function.
"""

import argparse
import bisect
import collections
import os


class Symbols:
    """Names by address, those of one file or of the kernel."""

    def __init__(self, found):
        self.found = sorted(found)
        self.at = [address for address, _ in self.found]

    def find(self, address):
        i = bisect.bisect_right(self.at, address) - 1
        return self.found[i][1] if i >= 0 else "?"


def kernel(path):
    found = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            address, kind, name, *module = line.split()
            if kind in "tTwW":
                found.append((int(address, 16), " ".join([name] + module)))
    return Symbols(found)


def files(path):
    """{file: Symbols}, as nm printed them."""
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words[0] == "file":
                name = words[1]
                found[name] = []
            elif len(words) == 3 and words[1] in "tTwWiV":
                found[name].append((int(words[0], 16), words[2].split("@")[0]))
    return {name: Symbols(symbols) for name, symbols in found.items()}


def maps(path):
    """[(start, end, offset, file)] of the code."""
    found = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if "x" in words[1]:
                start, end = (int(n, 16) for n in words[0].split("-"))
                found.append((start, end, int(words[2], 16), words[-1]))
    return found


class Places:
    def __init__(self, folder):
        self.kernel = kernel(os.path.join(folder, "symbols"))
        self.files = files(os.path.join(folder, "files"))
        self.maps = maps(os.path.join(folder, "maps"))

    def find(self, address):
        """(who, function)"""
        if address >> 63:
            name, *module = self.kernel.find(address).split()
            return ("module" if module == ["[vrnic]"] else "kernel"), name
        for start, end, offset, name in self.maps:
            if start <= address < end:
                symbols = self.files.get(name)
                where = os.path.basename(name)
                return where, symbols.find(address - start + offset) if symbols else "?"
        return "?", "?"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    folder = parser.parse_args().folder
    places = Places(folder)
    with open(os.path.join(folder, "writes"), encoding="utf-8") as number:
        writes = int(number.read())
    counts = collections.Counter()
    with open(os.path.join(folder, "counts"), encoding="utf-8") as rows:
        for row in rows:
            words = row.split()
            if words[0] != "run":
                counts[places.find(int(words[0], 16))] += int(words[1], 16)
    print(f"{sum(counts.values()) / writes:.0f} instructions for each of {writes} requests")
    whose = collections.Counter()
    for (who, _), n in counts.items():
        whose[who] += n
    for who, n in whose.most_common():
        print(f"\n{n / writes:8.1f} {who}")
        for (owner, name), some in counts.most_common():
            if owner == who and some / writes >= 1:
                print(f"    {some / writes:8.1f} {name}")


if __name__ == "__main__":
    main()
