#!/usr/bin/env bash
# make suites: PostgreSQL's own regression queries with their tables in MongoDB,
# held against the same over ordinary tables.
#
# ONLY=join,window runs just those.  What differs and is not known to is written to
# .lab/suites/differences, and the exit status is then 1.
. "$(dirname "$0")/common.sh"
SUITE=suites
. "$ROOT/scripts/suites_servers.sh"

run_suite run.py --source "$REGRESS/source" --psql "$PG_BIN/psql" \
	--output "$RESULTS/differences" "--only=${ONLY-}" || {
	say "see ${RESULTS#"$ROOT/"}/differences"
	exit 1
}
