#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Knows: how sweeps of twill and of NCCL become a table of ratios. Never knows: how they were made.

Usage: perf/ratios.py FOLDER, with files gpu-FORM-MODE-LIB-R<registration>-<round>.csv of twill-perf in it.

A ratio is NCCL's time over twill's: above 1 twill is faster. Of the rounds the median of time_us
counts, of NCCL's registrations the faster one; twill's stand side by side. Rows out of place; what
in-place calls take against them is a table of its own.
"""
import csv
import glob
import os
import re
import statistics
import sys

NAME = re.compile(r"gpu-(\w+)-(\w+)-(twill|nccl)-R(\d)-(\d+)\.csv$")


def read(folder):
    """times[form, mode, lib, registration][op, bytes, in place] = [time of each round]"""
    times = {}
    for path in sorted(glob.glob(os.path.join(folder, "gpu-*.csv"))):
        match = NAME.search(os.path.basename(path))
        if not match:
            continue
        of_run = times.setdefault(match.groups()[:4], {})
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                key = row["op"], int(row["size_bytes"]), row["inplace"] == "1"
                of_run.setdefault(key, []).append(float(row["time_us"]))
    return times


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def time_text(us):
    return f"{us:.3g}" if us < 1000 else f"{us:.0f}"


def median(times, run, key):
    found = times.get(run, {}).get(key)
    return statistics.median(found) if found else None


def table(title, ops, sizes, cell):
    print(f"\n## {title}\n\n| bytes | " + " | ".join(ops) + " |")
    print("|---" * (len(ops) + 1) + "|")
    for size in sizes:
        cells = [cell(op, size) or "-" for op in ops]
        if any(text != "-" for text in cells):
            print(f"| {size_text(size)} | " + " | ".join(cells) + " |")


def ratio_cell(times, form, mode, registration):
    def cell(op, size):
        key = op, size, False
        own = median(times, (form, mode, "twill", registration), key)
        others = [(median(times, (form, mode, "nccl", r), key), r) for r in "0123"]
        others = [other for other in others if other[0]]
        if not own:
            return None
        if not others:
            return time_text(own)
        best, at = min(others)
        return f"**{best / own:.2f}** ({time_text(own)}; {time_text(best)} R{at})"

    return cell


def in_place_cell(times, form, mode, registration):
    def cell(op, size):
        run = form, mode, "twill", registration
        out, same = median(times, run, (op, size, False)), median(times, run, (op, size, True))
        return f"{same / out:.2f}" if out and same else None

    return cell


def main(folder):
    times = read(folder)
    runs = sorted((form, mode, r) for form, mode, lib, r in times if lib == "twill")
    keys = [key for of_run in times.values() for key in of_run]
    ops = list(dict.fromkeys(op for op, _, _ in keys))
    sizes = sorted({size for _, size, _ in keys})
    if not runs:
        print("no sweep of twill was found")
        return 1
    rounds = max(len(found) for of_run in times.values() for found in of_run.values())
    print("# NCCL's time / twill's (us of twill; us of NCCL, its faster registration)")
    print(f"\nMedians of {rounds} round(s), out of place, float32, sum.")
    for form, mode, registration in runs:
        title = f"{form}, {mode}, twill -R {registration}"
        table(title, ops, sizes, ratio_cell(times, form, mode, registration))
    print("\n# twill's time in place / out of place")
    for form, mode, registration in runs:
        title = f"{form}, {mode}, twill -R {registration}"
        table(title, ops, sizes, in_place_cell(times, form, mode, registration))
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: ratios.py FOLDER")
    sys.exit(main(sys.argv[1]))
