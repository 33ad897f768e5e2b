#!/usr/bin/env python3
"""Loads files, exports them again, and lets DuckDB compare: same rows, same types.

For each file, compression and page size: load, export, compare; then reorg to the other compression and
another page size, check, export, compare again. DuckDB shares no code with pagefold, so agreement means something.
The comparison is exact: row by row where the order counts, else as multisets (EXCEPT ALL both ways).

Needs the `duckdb` package (requirements.txt beside this file).

  round_trip.py --pagefold target/release/pagefold --tpch 0.01          TPC-H tables that DuckDB generates
  round_trip.py --pagefold ... --data DIR                               every CSV file in DIR
  round_trip.py --pagefold ... --sqlite FILE                            every table of an SQLite file, by Parquet
  round_trip.py --pagefold ... --tpch 1 --tables lineitem,orders        those tables only; at scale factor 1 all eight
                                                                        take about a quarter of an hour
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb

METHODS = ["none", "row", "page", "fixed", "huffman"]
PAGE_SIZES = ["2K", "4K", "8K", "16K", "32K"]


def run(pagefold, *words):
    done = subprocess.run([pagefold, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\nexit status {done.returncode}\n{done.stderr}")
    return done.stdout


class Comparer:
    """Compares two files by what DuckDB reads from them, every value of every row: no hashes."""

    def __init__(self):
        self.connection = duckdb.connect(config={"threads": 1})

    def source(self, path, columns=None):
        names = "" if columns is None else f"({', '.join(f'c{i}' for i in range(columns))})"
        if path.suffix == ".parquet":
            return f"read_parquet('{path}') t{names}"
        # As text, empty fields told from quoted empty ones only where the reader does.
        return f"read_csv('{path}', header=false, all_varchar=true, nullstr='', quote='\"', escape='\"', max_line_size=10000000) t{names}"

    def one(self, query):
        return self.connection.execute(query).fetchone()[0]

    def types(self, path):
        return [(row[0], row[1]) for row in self.connection.execute(f"describe select * from {self.source(path)}").fetchall()]

    def same(self, first, second, ordered=True, noted=()):
        types = self.types(first)
        if types != self.types(second):
            return False
        # As text two floating-point numbers are equal only when all their bits are; as numbers 0.0 and -0.0 are, too.
        values = [f"c{i}::varchar" if kind in ("FLOAT", "DOUBLE") else f"c{i}" for i, (_, kind) in enumerate(types)]
        # Columns of which LOAD says that their values will be written otherwise: numbers as such.
        values = [f"coalesce(try_cast(c{i} as double)::varchar, c{i})" if i in noted else value for i, value in enumerate(values)]
        prefixed = lambda side, i: values[i].replace(f"c{i}", f"{side}.c{i}")
        a, b = (self.source(path, len(types)) for path in (first, second))
        if self.one(f"select count(*) from {a}") != self.one(f"select count(*) from {b}"):
            return False
        if ordered:
            # Row n beside row n: none differs, so it is the same rows, and in the same order.
            differs = " or ".join(f"{prefixed('a', i)} is distinct from {prefixed('b', i)}" for i in range(len(values)))
            return self.one(f"select count(*) from (select * from {a}) a positional join (select * from {b}) b where {differs}") == 0
        rows = ", ".join(values)
        difference = "select count(*) from (select {0} from {1} except all select {0} from {2})"
        return all(self.one(difference.format(rows, x, y)) == 0 for x, y in ((a, b), (b, a)))


def files_of(arguments, scratch):
    for scale in arguments.tpch or []:
        folder = scratch / f"tpch-{scale}"
        folder.mkdir()
        connection = duckdb.connect()
        connection.execute(f"load tpch; call dbgen(sf={scale})")
        for (name,) in connection.execute("show tables").fetchall():
            path = folder / f"{name}.parquet"
            connection.execute(f"copy {name} to '{path}' (format parquet, compression zstd)")
            yield name, path
    for folder in arguments.data or []:
        for path in sorted(pathlib.Path(folder).glob("*.csv")):
            yield path.stem.replace("-", "_"), path
    for folder in arguments.parquet or []:
        for path in sorted(pathlib.Path(folder).glob("*.parquet")):
            yield path.stem, path
    for file in arguments.sqlite or []:
        connection = duckdb.connect()
        import sqlite3

        source = sqlite3.connect(file)
        names = [n for (n,) in source.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")]
        for name in names:
            rows = source.execute(f'select * from "{name}"')
            columns = [c[0] for c in rows.description]
            rows = rows.fetchall()
            path = scratch / f"{name}.parquet"
            write_parquet(connection, columns, rows, path)
            yield name, path


def write_parquet(connection, columns, rows, path):
    """SQLite's values as they are: a column is BIGINT, DOUBLE or VARCHAR by what it holds."""
    kinds = []
    for i in range(len(columns)):
        held = {type(row[i]) for row in rows} - {type(None)}
        kinds.append("BIGINT" if held == {int} else "DOUBLE" if held <= {int, float} and held else "VARCHAR")
    spec = ", ".join(f'"{c}" {k}' for c, k in zip(columns, kinds))
    connection.execute(f"create or replace table t ({spec})")
    if rows:
        connection.executemany(f"insert into t values ({', '.join('?' * len(columns))})", rows)
    connection.execute(f"copy t to '{path}' (format parquet)")


def there_and_back(arguments, scratch, file, method, size):
    """Loads a file, exports it, and both again after a REORG with another method and page size: whether all is as it was, and a line that says so."""
    start = time.monotonic()
    methods, sizes = arguments.methods.split(","), arguments.page_sizes.split(",")
    (name, path), comparer = file, Comparer()
    header = ["--header", "no"] if path.suffix == ".csv" else []
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        database, back = pathlib.Path(folder) / "db", pathlib.Path(folder) / f"back{path.suffix}"
        load = run(arguments.pagefold, "load", database, name, path, "--compress", method, "--page-size", size, "--json", *header)
        columns = json.loads(load)["decided"]["columns"]
        noted = {i for i, column in enumerate(columns) if column["note"]}
        run(arguments.pagefold, "export", database, name, back, *header)
        loaded = comparer.same(path, back, arguments.keep_order, noted)
        other_method = methods[(methods.index(method) + 1) % len(methods)]
        other_size = sizes[(sizes.index(size) + 1) % len(sizes)]
        run(arguments.pagefold, "reorg", database, name, "--compress", other_method, "--page-size", other_size)
        checked = json.loads(run(arguments.pagefold, "check", database, "--json"))
        run(arguments.pagefold, "export", database, name, back, *header)
        reorganized = comparer.same(path, back, arguments.keep_order, noted)
    good = loaded and reorganized and not checked["errors"]
    words = "same" if good else f"DIFFERS (load {loaded}, reorg {reorganized}, check {checked['errors'][:3]})"
    return good, f"{name:24} {method:6} {size:4} -> {other_method:6} {other_size:4} {words:8} {time.monotonic() - start:6.1f} s"


def some_ways(every_way, number, count):
    """The ways of file `number`. One file after the other they go through all ways again and again, in steps that mix methods and page sizes."""
    step = next(step for step in itertools.count(7) if math.gcd(step, len(every_way)) == 1)
    first = number * count
    return [every_way[step * (first + i) % len(every_way)] for i in range(min(count, len(every_way)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pagefold", required=True, help="the binary")
    parser.add_argument("--tpch", type=float, action="append", help="scale factor of TPC-H tables to generate")
    parser.add_argument("--data", action="append", help="folder of CSV files")
    parser.add_argument("--parquet", action="append", help="folder of Parquet files")
    parser.add_argument("--sqlite", action="append", help="SQLite file")
    parser.add_argument("--tables", help="these tables (or files, by name without suffix) only, separated by commas")
    parser.add_argument("--scratch", help="folder for databases and exported files; a temporary one by default")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--page-sizes", default=",".join(PAGE_SIZES))
    parser.add_argument("--ways", type=int, help="so many methods with page sizes for each file, others for each; all by default")
    parser.add_argument("--keep-order", action=argparse.BooleanOptionalAction, default=True, help="compare the order of rows too")
    arguments = parser.parse_args()
    methods, sizes = arguments.methods.split(","), arguments.page_sizes.split(",")
    compared, failed = 0, 0
    tables = arguments.tables and set(arguments.tables.split(","))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        scratch = pathlib.Path(folder)
        every_way = list(itertools.product(methods, sizes))
        files = (file for file in files_of(arguments, scratch) if not tables or file[0] in tables)
        for number, (name, path) in enumerate(files):
            ways = some_ways(every_way, number, arguments.ways or len(every_way))
            for good, line in pool.map(lambda way: there_and_back(arguments, scratch, (name, path), *way), ways):
                compared += 2
                failed += not good
                print(line, flush=True)
    print(f"{compared} comparisons, {failed} files with a difference")
    sys.exit(1 if failed or not compared else 0)


if __name__ == "__main__":
    main()
