# pg_upgrade: what ANALYZE has learned of a collection is still known afterwards.
#
# From the version that is tested to itself, or from another: PG_OLD_BIN names the
# folder of its programs.  mongo_fdw must be installed there, too.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my ($old, $new) = clusters_for_upgrade();

$old->start;
$old->safe_psql('postgres', 'CREATE EXTENSION mongo_fdw');
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

$new->safe_psql('postgres', 'ANALYZE later');
is($new->safe_psql('postgres', 'SELECT count(*) FROM mongo_fdw_statistics_data'), '1', 'ANALYZE writes to the same row');

done_testing();
