#!/usr/bin/env bash
# make bench: the workloads of bench/workloads/, side by side with a native
# program.  Results go to bench/results/.
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
. "$ROOT/scripts/servers.sh"

# Servers that "make lab" left running stay up.
if servers_run; then STOP=no; else STOP=yes; fi
finish() {
	rm -rf "$SCRATCH"
	if [ $STOP = yes ]; then stop_servers; fi
}
trap finish EXIT

BENCH=$LAB/src/bench
LIBMONGOC=$(pkg-config --exists libmongoc-1.0 && echo libmongoc-1.0 || echo mongoc2)
for program in "$BENCH"/native/*.c; do
	# shellcheck disable=SC2046
	as_lab_user gcc -std=gnu11 -O2 -Wall -Wextra -o "${program%.c}" "$program" \
		$(pkg-config --cflags --libs "$LIBMONGOC") -pthread
done

start_servers
as_lab_user mkdir -p "$BENCH/results"
export PGBENCH=$PG_BIN/pgbench
as_lab_user "$PYTHON" "$BENCH/run.py" --output "$BENCH/results/results.json" "$@"

mkdir -p "$ROOT/bench/results"
as_lab_user cat "$BENCH/results/results.json" >"$ROOT/bench/results/results.json"
say "
written to bench/results/results.json"
