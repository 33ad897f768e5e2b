#!/usr/bin/env python3
"""Makes a database for read.py with what the demo's has not: every type, NULLs, large values, several partitions,
folded leaves, DESC and nullable keys, rows that were changed, moved and deleted, rows of a few bytes.

  make.py DATABASE --pagefold target/release/pagefold [--rows 4000]
"""

import argparse
import csv
import pathlib
import random
import subprocess
import tempfile
import uuid

COLUMNS = [
    "id integer not null", "flag boolean", "small smallint", "big bigint", "day date", "at timestamp(6)", "at_ms timestamp(3)", "hour time(3)",
    "hour_us time(6)", "price decimal(9,2)", "wide decimal(25,4)", "ratio double", "part real", "code char(6)", "name varchar(40)", "note varchar",
    "blob bytea", "tag uuid",
]
WORDS = "pack my box with five dozen liquor jugs the quick brown fox jumps over a lazy dog sphinx of black quartz".split()
METHODS = {"none": ("2K", "plain"), "row": ("4K", "fold"), "page": ("4K", "prefix"), "fixed": ("8K", "fold"), "huffman": ("16K", "plain")}


def value(random, name, row):
    two = random.randrange(100)
    if name == "id":
        return str(row)
    if two < 12:
        return None
    number = random.choice([random.randrange(-3, 4), random.randrange(-30000, 30000), row])
    text = " ".join(random.choice(WORDS) for _ in range(random.randrange(0, 9)))
    return {
        "flag": "true" if two % 2 else "false",
        "small": str(number),
        "big": str(number * random.choice([1, 1000, 2**40 + 1])),
        "day": f"{1900 + two + 80}-{1 + two % 12:02}-{1 + row % 28:02}",
        "at": f"2024-01-{1 + row % 28:02} {two % 24:02}:{row % 60:02}:{two % 60:02}.{row % 1000000:06}",
        "at_ms": f"1969-12-{1 + row % 28:02} {two % 24:02}:00:59.{row % 1000:03}",
        "hour": f"{two % 24:02}:{row % 60:02}:00.{row % 1000:03}",
        "hour_us": f"{two % 24:02}:{row % 60:02}:00.{row % 1000000:06}",
        "price": f"{number / 100:.2f}",
        "wide": f"{number * 10**14}.{abs(number) % 10000:04}",
        "ratio": repr(random.choice([0.0, 1.5, -2.25, number / 7, 1e300])),
        "part": repr(random.choice([0.0, 0.5, -1024.0, float(number)])),
        "code": random.choice(["A", "AB", "ABCDEF", "Zürich", ""]),
        "name": text[:40],
        "note": text * random.choice([0, 1, 1, 3, 20]) if two < 98 else "".join(chr(97 + random.randrange(26)) for _ in range(random.randrange(2000, 150000))),
        "blob": "\\x" + random.randbytes(random.choice([0, 3, 20])).hex() if two < 99 else "\\x" + (b"\0\1\2" * random.randrange(1000, 50000)).hex(),
        "tag": str(uuid.UUID(int=random.getrandbits(128))),
    }[name]


def write(path, names, rows):
    """NULL is a field without quotes, an empty text one with them."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(",".join(names) + "\n")
        for row in rows:
            file.write(",".join("" if field is None else '"' + field.replace('"', '""') + '"' for field in row) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("--pagefold", required=True)
    parser.add_argument("--rows", type=int, default=4000)
    arguments = parser.parse_args()

    def run(*words):
        done = subprocess.run([arguments.pagefold, *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}\n{done.stderr}")

    names = [column.split()[0] for column in COLUMNS]
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as directory:
        paths = {what: pathlib.Path(directory) / f"{what}.csv" for what in ("new", "changed", "gone", "tiny", "longer")}
        write(paths["new"], names, [[value(chance, name, row) for name in names] for row in range(arguments.rows)])
        changed = sorted(chance.sample(range(arguments.rows), arguments.rows // 5))
        write(paths["changed"], names, [[value(chance, name, row) for name in names] for row in changed])
        gone = sorted(chance.sample(range(arguments.rows), arguments.rows // 8)) + list(range(1000, 1200))
        write(paths["gone"], ["id"], [[str(row)] for row in sorted(set(gone))])
        write(paths["tiny"], ["a", "b"], [[str(row), random.Random(row).choice(["", "x", "xy", "xyz", None])] for row in range(arguments.rows)])
        write(paths["longer"], ["a", "b"], [[str(row), "x" * (row % 90)] for row in range(0, arguments.rows, 5)])
        for method, (page, form) in METHODS.items():
            table = f"all_{method}"
            run("load", arguments.database, table, paths["new"], "--compress", method, "--page-size", page, "--primary-key", "id",
                "--key-format", form, "--key-page-size", "8K", "--partition-size", "1M", "--header", "yes", "--columns", ", ".join(COLUMNS))
            for format_name, size in (("plain", "2K"), ("fold", "16K"), ("prefix", "4K")):
                for number, key in enumerate(("name, id DESC", "code, day", "price DESC, wide, hour", "at, flag", "tag", "ratio, part, small")):
                    run("create-index", arguments.database, f"{table}_{format_name}_{number}", f"{table}({key})", "--format", format_name, "--page-size", size)
            run("upsert", arguments.database, table, paths["changed"], "--header", "yes")
            run("delete", arguments.database, table, paths["gone"], "--header", "yes")
            run("upsert", arguments.database, table, paths["changed"], "--header", "yes")
            # Rows shorter than a forward pointer.
            run("load", arguments.database, f"tiny_{method}", paths["tiny"], "--compress", method, "--page-size", page, "--header", "yes",
                "--columns", "a smallint, b varchar", "--primary-key", "a", "--key-format", "prefix")
            run("upsert", arguments.database, f"tiny_{method}", paths["longer"], "--header", "yes")


if __name__ == "__main__":
    main()
