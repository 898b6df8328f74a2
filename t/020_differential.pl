# Random queries against PostgreSQL's own answers: t/differential.py with fixed
# seeds.  For hours of it: RANDOM_TIMES=100 RANDOM_SEED=7.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('differential', 'jit = off', 'fsync = off');

foreach my $run (
	[ 'clean', 'error', 101, 5500 ],
	[ 'clean', 'null', 102, 3500 ],
	[ 'hostile', 'null', 103, 9000 ])
{
	my ($documents, $type_mismatch) = @$run;
	my ($seed, $queries) = (random_seed($run->[2]), random_amount($run->[3]));

	run_program("$queries queries on $documents documents, type_mismatch $type_mismatch",
		'differential.py', '--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri,
		'--seed', $seed, '--queries', $queries, '--drawn', 0.2,
		'--documents', $documents, '--type-mismatch', $type_mismatch);
}

done_testing();
