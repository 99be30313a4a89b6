#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Knows: how sweeps with --overlap become a table. Never knows: how they were made.

Usage: perf/overlap.py FOLDER, with files gpu-overlap-FORM-PRIORITY-RUN.csv of twill-perf in it.
"""
import csv
import glob
import os
import re
import sys

NAME = re.compile(r"gpu-overlap-(\w+)-(equal|first)-(.+)\.csv$")
PRIORITIES = {"equal": "streams of equal priority", "first": "calls on the stream that goes first"}


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def read(folder):
    """rows[form, priority]: [(run, row of the file)]"""
    rows = {}
    for path in sorted(glob.glob(os.path.join(folder, "gpu-overlap-*.csv"))):
        match = NAME.search(os.path.basename(path))
        if match:
            form, priority, run = match.groups()
            with open(path, newline="") as file:
                rows.setdefault((form, priority), []).extend((run, row) for row in csv.DictReader(file))
    return rows


def pair_text(row, alone, beside, loss):
    return f"{float(row[alone]):.0f} | {float(row[beside]):.0f} | {float(row[loss]):+.0f} %"


def main(folder):
    found = read(folder)
    if not found:
        print("no sweep with --overlap was found")
        return 1
    print("# Calls beside matrix products")
    for form, priority in sorted(found):
        print(f"\n## {form}, {PRIORITIES[priority]}\n")
        print("| call | bytes | run | SMs | alone us | beside us | loss | product alone us "
              "| beside us | loss | together |\n|" + "---|" * 11)
        for run, row in sorted(found[form, priority], key=lambda each: each[1]["op"]):
            call = pair_text(row, "time_us", "time_beside_us", "time_loss_percent")
            product = pair_text(row, "product_us", "product_beside_us", "product_loss_percent")
            print(f"| {row['op']} | {size_text(int(row['size_bytes']))} | {run} | {row['channels'] or '-'} "
                  f"| {call} | {product} | {float(row['together']):.2f} |")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: overlap.py FOLDER")
    sys.exit(main(sys.argv[1]))
