# Bytes made up by libFuzzer, guided by what code they reach: nothing crashes.
#
# For longer, and otherwise: FUZZ_SECONDS=3600 FUZZ_SEED=7 TEST_FILE_TIMEOUT=20000 make test.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

plan skip_all => 'it builds with sanitizers of its own' if $ENV{SANITIZED};

run_tests_of(
	'fuzz/fuzz.py', '--pg-config', 'pg_config', '--folder', "$ENV{TESTDIR}/tmp_check/fuzz",
	'--jobs', $ENV{FUZZ_JOBS} || 1, '--seed', $ENV{FUZZ_SEED} || 1,
	$ENV{FUZZ_SECONDS} ? ('--seconds', $ENV{FUZZ_SECONDS}) : (), split(' ', $ENV{FUZZ_ARGUMENTS} // ''));
done_testing();
