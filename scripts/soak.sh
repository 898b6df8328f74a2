#!/usr/bin/env bash
# make soak: runs t/soak/soak.pl, which is not part of make test.  SOAK_SECONDS=,
# SOAK_STATEMENTS=, SOAK_CLIENTS= and SOAK_SEED= are its sizes.  Its figures are printed last.
export TESTS=t/soak/soak.pl
# the clients' time, the time of the statements for memory, and the ends of both
export TEST_FILE_TIMEOUT=${TEST_FILE_TIMEOUT:-$((SOAK_SECONDS + SOAK_STATEMENTS / 20 + 900))}

STATUS=0
"$(dirname "$0")/test.sh" || STATUS=$?
sed -n '/^# /p' "$(dirname "$0")/../.lab/src/tmp_check/log/soak.pl.out"
exit $STATUS
