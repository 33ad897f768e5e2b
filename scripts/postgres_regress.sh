#!/usr/bin/env bash
# PostgreSQL's regression tests against pagefold; see the usage below.
set -Eeuo pipefail

usage() {
    cat <<'TEXT'
Usage: scripts/postgres_regress.sh [--folder DIR] [OPTION...] [FILE...]

Fetches the regression tests of PostgreSQL 15.18 (the source package postgresql-15 of Debian), runs their statements in
pagefold, and prints for each file how many give what PostgreSQL says, and why the others do not. FILE is a name without
.sql; without any the usual ones are run. The tests are no part of this project: they go to the target directory.

  --folder DIR   where the tests are already: src/test/regress of PostgreSQL's sources

Other options go to the program postgres_regress: --list FILE shows the statements of a file that differ.
TEXT
}

version=15.18
sum=11df0df97fe3ea4ba9a791faaf39cee1d2fe571e78885b5b55d8517d27c323b4
name="postgresql-15_$version.orig.tar.bz2"
source="https://deb.debian.org/debian/pool/main/p/postgresql-15/$name"

folder=""
rest=()
while [ $# -gt 0 ]; do
    case "$1" in
    -h | --help) usage && exit 0 ;;
    --folder)
        if [ $# -lt 2 ]; then usage >&2 && exit 2; fi
        folder="$2"
        shift 2
        ;;
    *)
        rest+=("$1")
        shift
        ;;
    esac
done

cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
if [ -z "$folder" ]; then
    folder="$target/postgresql-$version/src/test/regress"
    if [ ! -d "$folder/expected" ]; then
        mkdir -p "$target"
        # Without TLS the sum below is what is relied on.
        curl -fsSL --retry 3 -o "$target/$name" "$source" || curl -fsSL --retry 3 -o "$target/$name" "${source/https:/http:}"
        echo "$sum  $target/$name" | sha256sum --check --quiet
        tar -xjf "$target/$name" -C "$target" "postgresql-$version/src/test/regress"
        rm "$target/$name"
    fi
fi
cargo run --release --quiet -p pagefold-lab-engine --bin postgres_regress -- "$folder" "${rest[@]}"
