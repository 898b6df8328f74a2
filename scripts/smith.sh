#!/usr/bin/env bash
# make smith: runs sqlsmith's random queries over foreign tables; no crash, no internal error.
#
# QUERIES=20000 and SEED=1 by default.  Failures are written to .lab/smith/failures, and
# the exit status is then 1.
. "$(dirname "$0")/common.sh"
SUITE=smith
TEST_PACKAGES="
sqlsmith /usr/bin/sqlsmith
"
. "$ROOT/scripts/suites_servers.sh"

run_suite smith.py --source "$REGRESS/source" --psql "$PG_BIN/psql" \
	--log "$RUN/postgresql.log" --output "$RESULTS/failures" \
	--queries "${QUERIES:-20000}" --seed "${SEED:-1}" || {
	say "see ${RESULTS#"$ROOT/"}/failures"
	exit 1
}
