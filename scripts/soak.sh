#!/usr/bin/env bash
# make soak: t/soak/soak.pl, which is no part of make test; SOAK_SECONDS=, SOAK_STATEMENTS=,
# SOAK_CLIENTS= and SOAK_SEED= say how much of what.  Its figures come last.
export TESTS=t/soak/soak.pl
# the clients' time, what the statements about memory take, and the ends of both
export TEST_FILE_TIMEOUT=${TEST_FILE_TIMEOUT:-$((SOAK_SECONDS + SOAK_STATEMENTS / 20 + 900))}

STATUS=0
"$(dirname "$0")/test.sh" || STATUS=$?
sed -n '/^# /p' "$(dirname "$0")/../.lab/src/tmp_check/log/soak.pl.out"
exit $STATUS
