#!/usr/bin/env bash
# make bench: runs the workloads of bench/workloads/ and compares them with a
# native program.  Results are written to bench/results/.
. "$(dirname "$0")/common.sh"
PEERS=
if [[ "$*," =~ [,=]peers, ]]; then
	PEERS=$LAB/peers
	TEST_PACKAGES="maven /usr/bin/mvn"
fi
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
. "$ROOT/scripts/servers.sh"

BENCH=$WORK/src/bench
LIBMONGOC=$(pkg-config --exists libmongoc-1.0 && echo libmongoc-1.0 || echo mongoc2)
for program in "$BENCH"/native/*.c; do
	flags=(-o "${program%.c}" -pthread)
	if [[ $program = */floor_function.c ]]; then	# of PostgreSQL, not a program
		flags=(-o "$("$PG_BIN/pg_config" --pkglibdir)/floor_function.so" -shared -fPIC
			-isystem "$("$PG_BIN/pg_config" --includedir-server)")
	fi
	# shellcheck disable=SC2046
	as_lab_user gcc -std=gnu11 -O2 -Wall -Wextra "${flags[@]}" "$program" \
		$(pkg-config --cflags --libs "$LIBMONGOC")
done

if [ -n "$PEERS" ]; then
	. "$ROOT/scripts/peers.sh"
fi

stop_servers_at_exit
start_servers
as_lab_user mkdir -p "$BENCH/results"
if [ -f "$ROOT/bench/results/results.json" ]; then	# figures of other workloads remain
	as_lab_user tee "$BENCH/results/results.json" <"$ROOT/bench/results/results.json" >/dev/null
fi
export PGBENCH=$PG_BIN/pgbench
as_lab_user "$PYTHON" "$BENCH/run.py" --output "$BENCH/results/results.json" "$@"
as_lab_user find "$BENCH/results" -name '*.svg' -delete
as_lab_user "$PYTHON" "$BENCH/plot.py" "$BENCH/results/results.json" "$BENCH/results"

mkdir -p "$ROOT/bench/results"
say
for result in results.json {results,network,peers}{,_dark}.svg; do
	if [ -f "$BENCH/results/$result" ]; then
		as_lab_user cat "$BENCH/results/$result" >"$ROOT/bench/results/$result"
		say "written to bench/results/$result"
	fi
done
