# Every row of the tables of expressions: t/programs/expressions.py.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('expressions', 'jit = off', 'fsync = off');

run_tests_of('programs/expressions.py', '--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri);

done_testing();
