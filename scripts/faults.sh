#!/usr/bin/env bash
# make faults: t/faults/faults.pl, in a PostgreSQL that checks its memory, with the extension
# built with sanitizers and fault injection.  It takes an hour or two.
#
# FAULTS_ARGUMENTS="--only COPY --kinds send,receive" are arguments of t/faults/faults.py.
# Its figures are printed last.
VARIANT=faults
export TESTS=t/faults/faults.pl
export TEST_FILE_TIMEOUT=${TEST_FILE_TIMEOUT:-36000}
. "$(dirname "$0")/test.sh"
sed -n '/^# /p' "$WORK/src/tmp_check/log/faults.pl.out"
