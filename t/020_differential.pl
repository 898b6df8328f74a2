# Random queries against PostgreSQL's own answers: t/differential.py with fixed
# seeds.  For hours of it: differential.py --queries 1000000.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('differential', 'jit = off', 'fsync = off');

foreach my $run (
	[ 'clean', 'error', 101, 6000 ],
	[ 'clean', 'null', 102, 4000 ],
	[ 'hostile', 'null', 103, 10000 ])
{
	my ($documents, $type_mismatch, $seed, $queries) = @$run;

	run_program("$queries queries on $documents documents, type_mismatch $type_mismatch",
		'differential.py', '--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri,
		'--seed', $seed, '--queries', $queries,
		'--documents', $documents, '--type-mismatch', $type_mismatch);
}

done_testing();
