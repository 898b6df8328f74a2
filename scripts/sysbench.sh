#!/usr/bin/env bash
# make sysbench: runs sysbench's scripts over a table in MongoDB; no error, no lost row.
#
# ROWS=10000, SECONDS_EACH=5 and THREADS=4 by default.
. "$(dirname "$0")/common.sh"
SUITE=sysbench
TEST_PACKAGES="
sysbench /usr/bin/sysbench
"
. "$ROOT/scripts/suites_servers.sh"

run_suite sysbench.py --rows "${ROWS:-10000}" --seconds "${SECONDS_EACH:-5}" \
	--threads "${THREADS:-4}"
