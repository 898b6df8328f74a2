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

# tables of each state: synchronized, with a document that can have no row, paused, of a schema, and
# one whose copy has not ended
$mongod->insert('db', 'c', '[{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]');
$mongod->insert('db', 'odd', '[{"_id": 1, "a": 1}, {"_id": 2, "a": "x"}]');
$old->safe_psql('postgres', q{
	CREATE FOREIGN TABLE f (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'c');
	CREATE FOREIGN TABLE fits (_id int, a int, __mismatch jsonb) SERVER mongodb OPTIONS (database 'db', collection 'odd');
	CREATE FOREIGN TABLE unfit (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'odd');
	CALL mongo_sync.sync('f', 'c');
	CALL mongo_sync.sync('f', 'paused');
	SELECT mongo_sync.pause('paused');
	CALL mongo_sync.sync('fits', 'odd');
	CREATE SCHEMA shop;
	CREATE SCHEMA reports;
	CREATE FOREIGN TABLE shop.c (_id int, a int) SERVER mongodb OPTIONS (database 'db');
	CALL mongo_sync.sync_schema('shop', 'reports')});
like(($old->psql('postgres', q{CALL mongo_sync.sync('unfit', 'copied')}))[2], qr/ERROR: /, 'a copy that does not come to its end');
my $synchronized = q{SELECT local_table, state, rows_copied FROM mongo_sync.status ORDER BY local_table::text};
my $state = $old->safe_psql('postgres', $synchronized);
is($state, "c|no worker|2\ncopied|failing|0\nodd|no worker|1\npaused|paused|2\nreports.c|no worker|2", 'synchronized tables');
# not of MongoDB, by which it is seen that nothing is copied again
$old->safe_psql('postgres', 'UPDATE c SET a = 5 WHERE _id = 2; UPDATE odd SET a = 5; UPDATE reports.c SET a = 5 WHERE _id = 2');
like($before, qr/^later\|db\.points\|.*"id_1"/, 'ANALYZE has learned something');
$old->stop;
$mongod->command('{"insert": "c", "documents": [{"_id": 3, "a": 3}]}', 'db');
$mongod->command('{"insert": "odd", "documents": [{"_id": 3, "a": 3}, {"_id": 4, "a": 4}]}', 'db');

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

is($new->safe_psql('postgres', $synchronized), $state, 'synchronized tables are what they were');
is($new->safe_psql('postgres', 'SELECT local_table, id FROM mongo_sync.errors'), 'odd|2', 'a document without a row is noted');

# the worker goes on by itself
$new->append_conf('postgresql.conf', q{shared_preload_libraries = 'mongo_fdw'});
$new->restart;
foreach my $table ('c', 'reports.c')
{
	ok($new->poll_query_until('postgres', "SELECT count(*) = 3 FROM $table"), "$table gets what has changed meanwhile");
	is($new->safe_psql('postgres', "SELECT * FROM $table ORDER BY _id"), "1|1\n2|5\n3|3", 'and is not copied again');
}
ok($new->poll_query_until('postgres', 'SELECT count(*) = 3 FROM odd'), 'so does the table with a document that has no row');
$mongod->command('{"update": "odd", "updates": [{"q": {"_id": 2}, "u": {"$set": {"a": 2}}}]}', 'db');
ok($new->poll_query_until('postgres', 'SELECT count(*) = 4 FROM odd'), 'which has one as soon as it fits');
is($new->safe_psql('postgres', 'SELECT * FROM odd ORDER BY _id; SELECT count(*) FROM mongo_sync.errors'), "1|5\n2|2\n3|3\n4|4\n0", 'and is not noted any more');
ok($new->poll_query_until('postgres', q{SELECT state = 'applying' FROM mongo_sync.status WHERE local_table = 'copied'::regclass}), 'the copy comes to its end');
is($new->safe_psql('postgres', 'SELECT * FROM copied ORDER BY _id'), "1|1\n2|2\n3|3\n4|4", 'with all documents');
is($new->safe_psql('postgres', q{SELECT count(*), max(state) FROM paused, mongo_sync.status WHERE local_table = 'paused'::regclass}), '2|paused', 'what was paused is still so');
$new->safe_psql('postgres', q{SELECT mongo_sync.resume('paused')});
ok($new->poll_query_until('postgres', 'SELECT count(*) = 3 FROM paused'), 'and goes on when it is told to');
is($new->safe_psql('postgres', $synchronized), "c|applying|2\ncopied|applying|4\nodd|applying|1\npaused|applying|2\nreports.c|applying|2", 'all are synchronized, and but one is copied once');

$new->safe_psql('postgres', 'ANALYZE later');
is($new->safe_psql('postgres', 'SELECT count(*) FROM mongo_fdw_statistics_data'), '1', 'ANALYZE writes to the same row');

done_testing();
