# pg_upgrade: what ANALYZE has learned of a collection is still known afterwards, and synchronized
# tables go on from their positions.
#
# From the version that is tested to itself, or from another: PG_OLD_BIN names the
# folder of its programs.  mongo_fdw must be installed there, too.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my ($old, $new) = clusters_for_upgrade();

$old->start;
$old->safe_psql('postgres', 'CREATE EXTENSION mongo_fdw; CREATE EXTENSION mongo_sync');
create_server($old, 'mongodb', $mongod, round_trip_time => '0.1ms', bandwidth => '1GB');
create_point_table($old, 'mongodb', $mongod, 20000);

# OIDs that a new cluster would not give by itself
$old->safe_psql('postgres', join('; ', map { "CREATE TABLE before_$_ (i int)" } 1 .. 20));
$old->safe_psql('postgres', q{
	CREATE FOREIGN TABLE later (id int, info text) SERVER mongodb OPTIONS (database 'db', collection 'points');
	CREATE FOREIGN TABLE not_analyzed (id int, info text) SERVER mongodb OPTIONS (database 'db', collection 'points');
	DROP FOREIGN TABLE points;
	ANALYZE later});

my $learned = q{SELECT relation, collection, learned_at, documents, indexes FROM mongo_fdw_statistics};
my $before = $old->safe_psql('postgres', $learned);
$mongod->insert('db', 'c', '[{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]');
$old->safe_psql('postgres', q{CREATE FOREIGN TABLE f (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'c'); CALL mongo_sync.sync('f', 'c');
	CREATE SCHEMA shop; CREATE SCHEMA reports; CREATE FOREIGN TABLE shop.c (_id int, a int) SERVER mongodb OPTIONS (database 'db'); CALL mongo_sync.sync_schema('shop', 'reports'); UPDATE c SET a = 5 WHERE _id = 2});
$mongod->command('{"insert": "c", "documents": [{"_id": 3, "a": 3}]}', 'db');
like($before, qr/^later\|db\.points\|.*"id_1"/, 'ANALYZE has learned something');
$old->stop;

pg_upgrade($old, $new);
$new->start;

is($new->safe_psql('postgres', $learned), $before, 'it is known in the new cluster');
$mongod->snapshot;
my ($cost) = $new->safe_psql('postgres', 'EXPLAIN SELECT * FROM later WHERE id = 7') =~ /cost=[\d.]+\.\.([\d.]+)/;
ok($cost < 100, 'the index is used') or diag($cost);
my ($rows) = $new->safe_psql('postgres', 'EXPLAIN SELECT * FROM later') =~ /rows=(\d+)/;
is($rows, 20000, 'the number of documents, which PostgreSQL has forgotten');
($rows) = $new->safe_psql('postgres', 'EXPLAIN SELECT * FROM not_analyzed') =~ /rows=(\d+)/;
is($rows, 1000, 'nothing is known of what was never analyzed');
is($mongod->changes->{requests}, 0, 'planning sends nothing');
is($new->safe_psql('postgres', 'SELECT info FROM later WHERE id = 7'), 'info 7', 'a query');

$new->safe_psql('postgres', q{CALL mongo_sync.sync('f', 'c'); CALL mongo_sync.sync_schema('shop', 'reports')});
is($new->safe_psql('postgres', 'SELECT * FROM reports.c ORDER BY _id'), "1|1\n2|2\n3|3", 'so does a schema');
is($new->safe_psql('postgres', 'SELECT * FROM c ORDER BY _id'), "1|1\n2|5\n3|3", 'a synchronized table goes on from its position');
is($new->safe_psql('postgres', q{SELECT state, rows_copied FROM mongo_sync.status WHERE local_table = 'c'::regclass}), 'no worker|2', 'and is not copied again');

$new->safe_psql('postgres', 'ANALYZE later');
is($new->safe_psql('postgres', 'SELECT count(*) FROM mongo_fdw_statistics_data'), '1', 'ANALYZE writes to the same row');

done_testing();
