#!/usr/bin/env bash
# The long forms of the tests that take hours; see the usage below.
set -Eeuo pipefail

usage() {
    cat <<'TEXT'
Usage: scripts/endurance.sh [--hours N] [--log FILE] [STEP...]

Runs the endurance tests in their long forms, one after the other; without STEP all of them. Each step
is logged with its time and its result; a step that fails does not end the run. Exits 1 when any has failed, 2 on wrong
use. What a step has printed is in FILE.d/STEP.

  bank        banks of all methods, killed and with a full disk, for a share of the time
  bank-kills  the same, 500 kills
  kill        1,000 kills of eight writers
  utilities   utilities of the program, 1,000 kills
  soak        updates under a held reader, for a share of the time
  simulation  a crash at every I/O call, 1,000,000 distinct images for each hour
  full-disk   a disk that is full at any call: 100 runs for each hour
  growth      space under steady change, 2,000,000 changes a test
  model       random programs against a model, 1,000 of each kind for each hour, and histories of threads

  --hours N   how long bank and soak take together, and how much the others do: 1 unless given, a whole number
  --log FILE  where steps are logged: endurance.log in the target directory unless given

A variable that is set already counts: PAGEFOLD_BANK_SECONDS, PAGEFOLD_BANK_KILLS, PAGEFOLD_BANK_METHOD, PAGEFOLD_BANK_SEED,
PAGEFOLD_SOAK_SECONDS, PAGEFOLD_SIMULATION_IMAGES, PAGEFOLD_SIMULATION_SEED, PAGEFOLD_FULL_DISK_RUNS, PAGEFOLD_GROWTH_CHANGES,
PAGEFOLD_MODEL_PROGRAMS, PAGEFOLD_MODEL_COMMITS, PAGEFOLD_KILLS.
TEXT
}

all=(bank bank-kills kill utilities soak simulation full-disk growth model)
hours=1
log=""
steps=()
while [ $# -gt 0 ]; do
    case "$1" in
    -h | --help) usage && exit 0 ;;
    --hours | --log)
        if [ $# -lt 2 ]; then usage >&2 && exit 2; fi
        if [ "$1" = --hours ]; then hours="$2"; else log="$(realpath -m "$2")"; fi
        shift
        ;;
    -*) usage >&2 && exit 2 ;;
    *)
        if [[ " ${all[*]} " != *" $1 "* ]]; then usage >&2 && exit 2; fi
        steps+=("$1")
        ;;
    esac
    shift
done
if ! [[ "$hours" =~ ^[1-9][0-9]*$ ]]; then usage >&2 && exit 2; fi
if [ ${#steps[@]} -eq 0 ]; then steps=("${all[@]}"); fi

cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
export CARGO_TERM_COLOR="${CARGO_TERM_COLOR:-never}"
export CARGO_INCREMENTAL=0
log="${log:-$CARGO_TARGET_DIR/endurance.log}"
mkdir -p "$log.d"

# One test program of the engine, in the profile of tests: optimised, with all assertions. Behind it what goes to the program.
engine() {
    local program="$1"
    shift
    cargo test --quiet -p pagefold-engine --test "$program" -- --nocapture "$@"
}

bank() {
    PAGEFOLD_BANK_SECONDS="${PAGEFOLD_BANK_SECONDS:-$((hours * 1800))}" engine endurance --test-threads=1
}

bank-kills() {
    PAGEFOLD_BANK_SECONDS=0 PAGEFOLD_BANK_KILLS="${PAGEFOLD_BANK_KILLS:-500}" engine endurance --test-threads=1
}

kill() {
    engine kill --ignored
}

utilities() {
    PAGEFOLD_KILLS="${PAGEFOLD_KILLS:-1000}" cargo test --quiet -p pagefold-cli --test killed_utilities -- --nocapture
}

soak() {
    PAGEFOLD_SOAK_SECONDS="${PAGEFOLD_SOAK_SECONDS:-$((hours * 1800))}" engine soak
}

simulation() {
    PAGEFOLD_SIMULATION_IMAGES="${PAGEFOLD_SIMULATION_IMAGES:-$((hours * 1000000))}" engine simulation nothing_is_lost
}

full-disk() {
    PAGEFOLD_FULL_DISK_RUNS="${PAGEFOLD_FULL_DISK_RUNS:-$((hours * 100))}" engine simulation full_disk
}

growth() {
    PAGEFOLD_GROWTH_CHANGES="${PAGEFOLD_GROWTH_CHANGES:-2000000}" engine growth
}

model() {
    PAGEFOLD_MODEL_PROGRAMS="${PAGEFOLD_MODEL_PROGRAMS:-$((hours * 1000))}" \
        PAGEFOLD_MODEL_COMMITS="${PAGEFOLD_MODEL_COMMITS:-$((hours * 100000))}" engine model
}

say() {
    echo "$(date -u +%FT%TZ) $*" | tee -a "$log"
}

say "state $(git rev-parse --short HEAD 2>/dev/null || echo unknown), $hours hours: ${steps[*]}"
failed=0
for step in "${steps[@]}"; do
    start=$SECONDS
    say "$step: begins"
    if "$step" >"$log.d/$step" 2>&1; then
        result="ok"
    else
        result="FAILED, see $log.d/$step"
        failed=1
    fi
    say "$step: $result, $((SECONDS - start)) s"
done
say "all: $([ $failed = 0 ] && echo ok || echo FAILED), $SECONDS s"
exit $failed
