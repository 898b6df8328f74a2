#!/usr/bin/env bash
# make moment: t/moment/moment.pl, with a build in which a rule can be left out.  100 rounds take
# an hour or two.  MOMENT_ROUNDS=, MOMENT_SEED=, MOMENT_PARTS= and MOMENT_WITHOUT= are read there.
# Its figures are printed last.
VARIANT=moment
export TESTS=t/moment/moment.pl
export TEST_FILE_TIMEOUT=${TEST_FILE_TIMEOUT:-36000}
. "$(dirname "$0")/test.sh"
sed -n '/^# /p' "$WORK/src/tmp_check/log/moment.pl.out"
