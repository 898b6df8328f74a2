#!/usr/bin/env bash
# make valgrind: runs scripts/valgrind.sql in a single-user PostgreSQL under valgrind,
# which detects reads of uninitialized memory, even within a chunk.
VARIANT=valgrind
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
TEST_RUN=$WORK/test
TEST_ENV=$WORK/test/env
. "$ROOT/scripts/servers.sh"

stop_servers_at_exit
start_mongod
DATA=$WORK/data
LOG=$WORK/valgrind.log
as_lab_user rm -rf "$DATA" "$LOG"
as_lab_user "$PG_BIN/initdb" --pgdata="$DATA" --username=postgres --auth=trust \
	--encoding=UTF8 --no-locale --no-sync >/dev/null
progress "running scripts/valgrind.sql, which takes a minute"
sed "s/@PORT@/$MONGO_PORT/" "$ROOT/scripts/valgrind.sql" |
	as_lab_user valgrind --quiet --leak-check=no --num-callers=30 --log-file="$LOG" \
		--suppressions="$WORK/build/source/src/tools/valgrind.supp" \
		"$PG_BIN/postgres" --single -j -D "$DATA" postgres >"$SCRATCH/out" 2>&1 ||
	{ tail -n 20 "$SCRATCH/out" >&2; fail "the session did not come to its end"; }

# scripts/valgrind.sql marks the statements that must fail.
ERRORS=$(grep -c ' ERROR:  ' "$SCRATCH/out" || true)
EXPECTED=$(grep -c '^-- fails' "$ROOT/scripts/valgrind.sql")
FAILED=0
if [ "$ERRORS" != "$EXPECTED" ]; then
	grep ' ERROR:  ' "$SCRATCH/out" || true
	say "$ERRORS statements failed, not $EXPECTED"
	FAILED=1
fi
if [ -s "$LOG" ]; then
	cat "$LOG"
	FAILED=$((FAILED + 1))
fi
say "$((FAILED == 0)) passed, $FAILED failed"
exit $((FAILED != 0))
