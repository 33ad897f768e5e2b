#!/usr/bin/env python3
"""What pagefold and DuckDB decide about 100 CSV files of odd shapes (make.py), and what a person says.

  compare.py --pagefold target/debug/pagefold [--table]

Fails when pagefold decides otherwise than the person says, but for what is known (KNOWN). With --table prints the lines where the two differ, as docs/csv.md has them.
Needs the `duckdb` package (../round-trip/requirements.txt).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import duckdb
import make

FAMILIES = {
    "SMALLINT": "int", "INTEGER": "int", "BIGINT": "int", "HUGEINT": "int", "DOUBLE": "double", "FLOAT": "double", "BOOLEAN": "bool", "DATE": "date",
    "UUID": "uuid", "VARCHAR": "text",
}


# Where pagefold is known to decide otherwise than a person: nothing in the files says what a person guesses.
KNOWN = {"semicolon-no-header-comma.csv", "longer-than-38-digits.csv"}


def family(kind):
    kind = kind.split("(")[0] + kind[kind.index(")") + 1 :] if "(" in kind else kind
    if kind.startswith("TIMESTAMP"):
        return "timestamptz" if "ZONE" in kind or kind.endswith("TZ") else "timestamp"
    if kind.startswith("TIME"):
        return "time"
    return "decimal" if kind.startswith("DECIMAL") else FAMILIES[kind]


def short(types):
    return types if types is None or len(types) < 60 else f"{len(types.split())} columns"


def of_pagefold(program, folder, file):
    done = subprocess.run([program, "load", folder / "db", "t", file, "--replace", "--json"], capture_output=True, text=True)
    found = json.loads(done.stdout)
    if done.returncode:
        return {"error": found["error"]}
    decided = found["decided"]
    written = decided["files"][0]
    names = [c["name"] for c in decided["columns"]]
    types = " ".join(family(c["type"]) for c in decided["columns"])
    return {"header": written["header"], "rows": found["rows"], "types": types, "names": names, "delimiter": written["delimiter"], "quote": written["quote"]}


def of_duckdb(connection, file):
    try:
        sniffed = connection.execute(f"select Delimiter, Quote, HasHeader, Columns from sniff_csv('{file}')").fetchone()
        rows = connection.execute(f"select count(*) from (select * from read_csv('{file}'))").fetchone()[0]
    except duckdb.Error as error:
        return {"error": str(error).splitlines()[0]}
    delimiter, quote, header, columns = sniffed
    types = " ".join(family(c["type"]) for c in columns)
    return {"header": header, "rows": rows, "types": types, "names": [c["name"] for c in columns], "delimiter": delimiter, "quote": None if quote in ("", "\0", "(empty)") else quote}


def say(found):
    if "error" in found:
        return "error"
    header = "names" if found["header"] else "no names"
    return f"{header}, {found['rows']} row{'s' if found['rows'] != 1 else ''}: {short(found['types'])}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pagefold", required=True)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.pagefold).resolve())
    wrong = differing = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        expected = make.write(folder / "shapes")
        connection = duckdb.connect()
        connection.execute("set enable_progress_bar = false")
        right = {"pagefold": 0, "DuckDB": 0}
        for file, said in expected.items():
            path = folder / "shapes" / file
            subprocess.run(["rm", "-rf", folder / "db"], check=True)
            ours, theirs = of_pagefold(program, folder, path), of_duckdb(connection, path)
            person = {"error": ""} if said["header"] is None else said

            def agrees(found):
                if "error" in person or "error" in found:
                    return "error" in person and "error" in found
                same = found["header"] == person["header"] and found["rows"] == person["rows"]
                # Whole numbers beyond 64 bits and decimals are numbers in either form.
                kinds = {"decimal": "number", "double": "number", "timestamptz": "timestamptz"}
                as_kinds = lambda types: [kinds.get(t, t) for t in types.split()]
                return same and as_kinds(found["types"]) == as_kinds(person["types"])

            own, other = agrees(ours), agrees(theirs)
            right["pagefold"] += own
            right["DuckDB"] += other
            if not own:
                wrong += file not in KNOWN
                print(f"WRONG {file}: {say(ours)} {ours.get('error', '')}; a person says {say(person)}")
            if say(ours) != say(theirs):
                differing += 1
                if arguments.table:
                    who = {(True, True): "both", (True, False): "pagefold", (False, True): "DuckDB", (False, False): "neither"}[own, other]
                    print(f"| `{file}` | {say(ours)} | {say(theirs)} | {who} |")
    print(f"{len(expected)} files, {differing} decided differently; as a person says: pagefold {right['pagefold']}, DuckDB {right['DuckDB']}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
