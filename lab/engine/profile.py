#!/usr/bin/env python3
"""Where the time goes: samples of seek, scan and update by part of the engine.

    lab/engine/profile.py target/release/pagefold-lab-engine lineitem.parquet none row page fixed huffman

Runs the harness for one method at a time under `perf record`, cuts the samples by the moments at which it reports, and puts functions together by name. Functions that the compiler has put
into others count there.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile
import time

# The first pattern that fits a function's name says its part.
PARTS = [
    ("log", r"log::|splice|bytes::difference|bytes::common|Frames|xxh|TakeWhile"),
    ("versions, locks", r"ersion|visible::|LockTable|transaction::|eftover|lock_queue|hashbrown|Reservations|PageFilter|Chain|row_image|hash_map|snapshot|state::"),
    ("tree", r"btree::|index::|NonLeaf|memcmp|key::|Leaf|KeyLayout"),
    ("page access", r"pool::|BufferManager|data_page|word::|translation|MiniTransaction|data_set|counters|DataSet"),
    ("encode", r"encode|left|Matcher|patch|parse"),
    ("decode", r"decode|expand|copy_tokens|run_wide|run_portable|TokenTable::|inline_offset|CompactLayout|CompactColumns|codec::page|codec::row"),
    ("page change", r"format::data|replace::|sort"),
    ("memory", r"malloc|free|alloc::|memmove|memset|memcpy"),
    ("reader", r"read_view::|scan::|lab_engine|types::row::read|value::"),
]
OPERATIONS = ["seek", "scan", "update"]
# The part of the time between two reports that is left out at its start: loading and warming up before look-ups.
LEFT_OUT = {"seek": 0.6, "scan": 0.1, "update": 0.1}


def part_of(name):
    return next((part for part, pattern in PARTS if re.search(pattern, name)), "rest")


def profile(binary, parquet, method, samples_file):
    page = 16 if method == "page" else 8
    harness = [binary, "--parquet", parquet, "--engines", f"pagefold {method} of {page} KB", "--rounds", "25"]
    harness += ["--seeks", "60000", "--updates", "12000"]
    record = ["perf", "record", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock", "-F", "1500", "-o", samples_file, "--"]
    running = subprocess.Popen(record + harness, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    reports = []
    for line in running.stdout:
        now = time.clock_gettime(time.CLOCK_MONOTONIC)
        reports += [(word, now) for word in OPERATIONS if line.startswith(word + ",")]
        reports += [("load", now)] if "size [MB]" in line else []
    running.wait()
    script = subprocess.run(["perf", "script", "-i", samples_file, "-F", "time,ip,sym"], capture_output=True, text=True).stdout
    samples = [re.match(r"\s*([\d.]+):\s+[0-9a-f]+\s+(.*)", line) for line in script.splitlines()]
    samples = [(float(sample[1]), part_of(sample[2])) for sample in samples if sample]
    for (_, before), (operation, end) in zip(reports, reports[1:]):
        start = before + (end - before) * LEFT_OUT[operation]
        counts = collections.Counter(part for at, part in samples if start <= at <= end)
        total = counts.total() or 1
        shares = ", ".join(f"{part} {100 * count / total:.0f} %" for part, count in counts.most_common())
        print(f"{method} {operation}: {shares} ({counts.total()} samples)", flush=True)


if __name__ == "__main__":
    for method in sys.argv[3:]:
        profile(sys.argv[1], sys.argv[2], method, os.path.join(tempfile.gettempdir(), f"profile-{method}.perf"))
