# docs/sql-to-mongodb.md is what t/sql_to_mongodb.py produces.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $replica_set = MongoFdwTest::ReplicaSet->new(1);
my $node = new_postgres('sql_to_mongodb', 'jit = off', 'max_parallel_workers_per_gather = 0');
# elsewhere MongoDB's order of text is not PostgreSQL's
$node->safe_psql('postgres', q(CREATE DATABASE charts TEMPLATE template0 LOCALE 'C'));
my $produced = 'tmp_check/sql-to-mongodb.md';

run_program('the statements run', 'sql_to_mongodb.py', '--dsn', $node->connstr('charts'),
	'--port', $mongod->port, '--replica-set-port', $replica_set->primary->port, '--output', $produced);

my $difference = '';
IPC::Run::run([ 'diff', '-u', 'docs/sql-to-mongodb.md', $produced ], '>', \$difference, '2>&1');
is($difference, '', 'docs/sql-to-mongodb.md shows what is sent')
  or diag("If the new commands are right: cp .lab/src/$produced docs/");

done_testing();
