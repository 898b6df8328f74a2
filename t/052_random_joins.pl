# Random joins against PostgreSQL's own answers: t/random_joins.py with fixed
# seeds.  For hours of it: random_joins.py --queries 1000000.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('random_joins', 'jit = off', 'fsync = off');

foreach my $seed (201, 202)
{
	my $queries = 1500;

	run_program("$queries joins, seed $seed",
		'random_joins.py', '--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri,
		'--seed', $seed, '--queries', $queries);
}

done_testing();
