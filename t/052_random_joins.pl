# Random joins against PostgreSQL's own answers: t/random_joins.py with fixed
# seeds.  For hours of it: RANDOM_TIMES=100 RANDOM_SEED=7.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('random_joins', 'jit = off', 'fsync = off');

foreach my $seed (map { random_seed($_) } 201, 202)
{
	my $queries = random_amount(1500);

	run_program("$queries joins, seed $seed",
		'random_joins.py', '--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri,
		'--seed', $seed, '--queries', $queries, '--drawn', 0.2);
}

done_testing();
