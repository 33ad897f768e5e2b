#!/usr/bin/env bash
# Builds and tests crates/sql-analytics, a workspace of its own; see the usage below.
set -Eeuo pipefail

usage() {
    cat <<'TEXT'
Usage: scripts/analytics.sh [STEP...]

Builds and tests crates/sql-analytics, by which large queries are run with DataFusion; without STEP all of it. It is a
workspace of its own, as DataFusion takes longer to build than all other crates together.

  format  is the code formatted?
  lint    clippy and documentation, without warnings
  test    the tests, in release: dependencies are built once
  build   the program pagefold-full

The long forms of the random tests: PAGEFOLD_SQL_ROUNDS, PAGEFOLD_SQL_SEED.
TEXT
}

all=(format lint test build)
steps=()
for step in "$@"; do
    case "$step" in
    -h | --help) usage && exit 0 ;;
    *)
        if [[ " ${all[*]} " != *" $step "* ]]; then usage >&2 && exit 2; fi
        steps+=("$step")
        ;;
    esac
done
if [ ${#steps[@]} -eq 0 ]; then steps=("${all[@]}"); fi

cd "$(dirname "$0")/../crates/sql-analytics"
for step in "${steps[@]}"; do
    case "$step" in
    format) cargo fmt --check ;;
    lint)
        cargo clippy --release --all-targets --all-features -- -D warnings
        RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps
        ;;
    test) cargo test --release ;;
    build) cargo build --release --features program --bin pagefold-full ;;
    esac
done
