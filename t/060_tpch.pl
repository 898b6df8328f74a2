# The 22 queries of TPC-H, by t/programs/tpch.py: each answer to the last digit as
# PostgreSQL gives it over local tables with the same rows.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('tpch', 'jit = off', 'fsync = off');

# text in the order of bytes, as MongoDB has it
$node->safe_psql('postgres', q(CREATE DATABASE tpch TEMPLATE template0 LOCALE 'C'));
run_tests_of('programs/tpch.py', '--dsn', $node->connstr('tpch'), '--port', $mongod->port);

done_testing();
