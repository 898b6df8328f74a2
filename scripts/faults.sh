#!/usr/bin/env bash
# make faults: t/faults/faults.pl, in a PostgreSQL that checks its memory and with the extension
# built with sanitizers and what lets things fail.  It takes an hour or two.
#
# FAULTS_ARGUMENTS="--only COPY --kinds send,receive" are for t/faults/faults.py.  Its figures
# come last.
VARIANT=faults
export TESTS=t/faults/faults.pl
export TEST_FILE_TIMEOUT=${TEST_FILE_TIMEOUT:-36000}
. "$(dirname "$0")/test.sh"
sed -n '/^# /p' "$WORK/src/tmp_check/log/faults.pl.out"
