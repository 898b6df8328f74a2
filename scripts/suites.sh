#!/usr/bin/env bash
# make suites: runs PostgreSQL's own regression queries with tables in MongoDB, and
# compares the results with those of ordinary tables.
#
# ONLY=join,window runs only these.  Unknown differences are written to
# .lab/suites/differences, and the exit status is then 1.
. "$(dirname "$0")/common.sh"
SUITE=suites
. "$ROOT/scripts/suites_servers.sh"

run_suite run.py --source "$REGRESS/source" --psql "$PG_BIN/psql" \
	--output "$RESULTS/differences" "--only=${ONLY-}" || {
	say "see ${RESULTS#"$ROOT/"}/differences"
	exit 1
}
