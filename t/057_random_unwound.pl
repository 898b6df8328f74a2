# Random queries over tables that unwind arrays: t/random_unwound.py with fixed seeds.
# For hours of it: RANDOM_TIMES=100 RANDOM_SEED=7.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('random_unwound', 'jit = off', 'fsync = off');

foreach (
	[ 301, 500, 'clean', 'error' ], [ 302, 300, 'clean', 'null' ],
	[ 303, 500, 'hostile', 'null' ], [ 304, 250, 'hostile', 'error' ])
{
	my ($seed, $queries, $documents, $type_mismatch) = @$_;

	$seed = random_seed($seed);
	$queries = random_amount($queries);
	run_program("$queries queries, seed $seed, $documents documents, type_mismatch '$type_mismatch'",
		'random_unwound.py', '--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri,
		'--seed', $seed, '--queries', $queries, '--documents', $documents,
		'--type-mismatch', $type_mismatch);
}

done_testing();
