# Every BSON type and its edge values through SQL and back: t/programs/round_trip.py.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('round_trip', 'jit = off', 'fsync = off');

create_server($node, 'mongodb', $mongod);
$node->safe_psql('postgres', q(CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0));

run_tests_of('programs/round_trip.py', '--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri, @ARGV);

done_testing();
