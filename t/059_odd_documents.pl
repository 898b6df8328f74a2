# Conditions inside json over documents with values of every BSON type: t/odd_documents.py
# with a fixed seed.  For more of it: RANDOM_TIMES=100 RANDOM_SEED=7.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('odd_documents', 'jit = off', 'fsync = off');
my ($seed, $conditions) = (random_seed(401), random_amount(1500));

run_program("$conditions conditions, seed $seed", 'odd_documents.py', '--dsn', $node->connstr('postgres'),
	'--mongo', $mongod->uri, '--seed', $seed, '--queries', $conditions);

done_testing();
