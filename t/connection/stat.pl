# What is counted of the traffic with MongoDB, held against MongoDB's own counters; and
# from pg_stat_statements to MongoDB's share.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $set = MongoFdwTest::ReplicaSet->new(1);
my $node = new_postgres('stat', q{shared_preload_libraries = 'mongo_fdw, pg_stat_statements'});

create_server($node, 'mongodb', $mongod);
create_server($node, 'replica_set', $set->primary, replica_set => 'rs');
create_point_table($node, 'mongodb', $mongod, 3000);
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_stat_statements;
	CREATE FOREIGN TABLE written (_id int, info text) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE in_set (_id int, info text) SERVER replica_set OPTIONS (database 'db');
	ALTER SERVER mongodb OPTIONS (ADD fetch_size '1000', ADD estimated_rows '1000000')});

my $session = MongoFdwTest::Session->new($node);
my $point = 'SELECT info FROM points WHERE id = 1';

# counts
#	These columns, of this server's rows.
sub counts
{
	my ($columns, $server) = @_;
	my $sums = join(', ', map { "sum($_)" } split /, /, $columns);
	return $node->safe_psql('postgres', "SELECT $sums FROM mongo_fdw_stat WHERE server_name = '" . ($server // 'mongodb') . '\'');
}

sub reset_counts
{
	$node->safe_psql('postgres', 'SELECT mongo_fdw_stat_reset(), mongo_fdw_stat_statements_reset(), pg_stat_statements_reset()');
}

# --- commands, documents, bytes ---------------------------------------------------
$session->ask($point);
reset_counts();
$session->ask($point) foreach 1 .. 20;
is(counts('finds, get_mores, others, round_trips, documents_read, errors, connections'), '20|0|0|20|20|0|0',
	'a point query is a find, a round trip and a document');
my ($sent, $received, $waited) = split /\|/, counts('bytes_sent, bytes_received, wait_time');
cmp_ok($sent, '>', 20 * 80, 'bytes sent');
cmp_ok($received, '>', 20 * 80, 'bytes received');
cmp_ok($waited, '>', 0, 'time waited');

reset_counts();
is($session->ask('SET mongo_fdw.enable_pushdown = off; SELECT count(*) FROM points; RESET mongo_fdw.enable_pushdown'), 3000, 'a scan');
is(counts('finds, get_mores, documents_read'), '1|3|3000', 'is a find and three getMores');
$session->ask(q{SELECT count(*) FROM mongo_aggregate('mongodb', 'db', 'points', '[{"$limit": 3}]')});
is(counts('aggregates'), 1, 'an aggregate');
$session->ask('SET compute_query_id = off; SELECT count(*) FROM points WHERE id > 10; RESET compute_query_id');
is(counts('aggregates + counts'), 2, 'a count, of a statement without an id');
$session->ask(q{INSERT INTO written SELECT g, 'x' FROM generate_series(1, 10) g; UPDATE written SET info = 'y' WHERE _id <= 4; DELETE FROM written WHERE _id = 1});
is(counts('inserts, updates, deletes, documents_written'), '1|1|1|15', 'writes');
$session->ask(q{UPDATE written SET info = 'z' WHERE _id = 3 RETURNING info});
is(counts('find_and_modifies'), 1, 'findAndModify');
my $others = counts('others');
$session->ask(q{SELECT mongo_command('mongodb', 'db', '{"ping": 1}')});
is(counts('others') - $others, 1, 'others');
like($session->ask(q{SELECT mongo_command('mongodb', 'db', '{"nonsense": 1}')}), qr/ERROR/, 'an error');
is(counts('errors'), 1, 'is counted');

reset_counts();
is($session->ask(q{BEGIN; INSERT INTO in_set VALUES (1, 'one'); SELECT info FROM in_set; COMMIT}), 'one', 'a transaction of MongoDB\'s');
is(counts('finds, inserts, documents_read, documents_written, connections', 'replica_set'), '1|1|1|1|1', 'is counted at its end');

# a connection that is lost, a server that is away
reset_counts();
$mongod->restart;
is($session->ask($point), 'info 1', 'after a lost connection');
is(counts('connections, reconnects, finds, errors'), '1|1|2|0', 'the find is sent again, over another one');
$mongod->stop;
like($session->ask($point), qr/ERROR/, 'a server that is away');
is(counts('errors'), 1, 'is an error');
$mongod->start;
$session->ask($point);

# The exporter's query of docs/operations.md, as a role that may only monitor.
my ($exported) = PostgreSQL::Test::Utils::slurp_file('docs/operations.md') =~ /^## Alerts\n.*?^```sql\n(.*?)^```$/ms;
$node->safe_psql('postgres', 'CREATE ROLE exporter; GRANT pg_monitor TO exporter');
like($node->safe_psql('postgres', "SET ROLE exporter; $exported"), qr/^mongodb\|\w+\|\d+\|\d+\|1\|/m, 'an exporter sees the error');

# --- statements ---------------------------------------------------------------------
# The example of docs/operations.md.
my ($share) = PostgreSQL::Test::Utils::slurp_file('docs/operations.md') =~ /(SELECT s\.query.*?);/s;
reset_counts();
$session->ask("SELECT info FROM points WHERE id = $_") foreach 1 .. 30;
$session->ask('PREPARE p(int) AS SELECT id FROM points WHERE id = $1');
$session->ask("EXECUTE p($_)") foreach 1 .. 7;
$session->ask('SELECT 1');
$session->ask(q{DO $$ BEGIN FOR i IN 1 .. 5 LOOP PERFORM info FROM points WHERE id = i; END LOOP; END $$});
like($node->safe_psql('postgres', $share), qr/^SELECT info FROM points WHERE id = \$1\|30\|\d+\|\d+\|30\|30$/m,
	'MongoDB\'s share of a statement in pg_stat_statements');
unlike($node->safe_psql('postgres', $share), qr/^SELECT \$1\|/m, 'one without MongoDB has none');
my $statements = 'SELECT calls, commands, documents, wait_time > 0, wait_time <= total_exec_time FROM mongo_fdw_stat_statements '
  . 'JOIN (SELECT userid, dbid, queryid, query, total_exec_time FROM pg_stat_statements) s USING (userid, dbid, queryid) WHERE query LIKE ';
is($node->safe_psql('postgres', "$statements 'DO%'"), '1|5|5|t|t', 'what a block does is its own');
is($node->safe_psql('postgres', "$statements '%p(int)%'"), '7|7|7|t|t', 'a prepared statement');
$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT id FROM points; FETCH 10 FROM c; FETCH 10 FROM c; COMMIT');
is($node->safe_psql('postgres', 'SELECT count(*) FROM mongo_fdw_stat_statements WHERE documents < 0 OR wait_time < 0'), 0, 'cursors');


# --- what it takes part in ----------------------------------------------------------
$node->safe_psql('postgres', q{
	CREATE ROLE ann; GRANT SELECT ON points TO ann; CREATE USER MAPPING FOR ann SERVER mongodb});
reset_counts();
my $explain = $session->ask('EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF) SELECT info FROM points WHERE id <= 5');
like($explain, qr/Remote Traffic: commands=1 documents=5 sent=\d\d+ received=\d{3,} waited=\d+\.\d{3} ms$/m, 'EXPLAIN (ANALYZE)');
$explain = $session->ask('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT info FROM points WHERE id = NULL::int OR id < 0');
like($explain, qr/Remote Traffic: commands=\d documents=0$/m, 'without time and bytes');
unlike($session->ask('EXPLAIN SELECT info FROM points'), qr/Traffic/, 'nothing without ANALYZE');
$explain = $session->ask('BEGIN; INSERT INTO in_set VALUES (3); EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF) SELECT info FROM in_set; COMMIT');
like($explain, qr/Remote Traffic: commands=1 documents=2 sent=\d+ received=\d+ waited=[\d.]+ ms$/m, 'in a transaction of MongoDB\'s');

# --- who sees what ------------------------------------------------------------------
my $ann = MongoFdwTest::Session->new($node);
reset_counts();
$session->ask($point);
is($ann->ask('SET ROLE ann; SELECT info FROM points WHERE id = 2'), 'info 2', 'another role');
is($ann->ask('SELECT user_name, finds FROM mongo_fdw_stat'), 'ann|1', 'sees its own');
is($ann->ask('SELECT count(*) FROM mongo_fdw_stat_statements'), 1, 'and its statements');
is($session->ask(q{SELECT count(*) FROM mongo_fdw_stat WHERE finds = 1}), 2, 'a superuser all');
like($ann->ask('SELECT mongo_fdw_stat_reset()'), qr/permission denied/, 'and does not reset');
like($ann->ask('SELECT mongo_fdw_stat_statements_reset()'), qr/permission denied/, 'neither');
$_->close foreach ($session, $ann);

# many sessions at once lose no count
reset_counts();
$node->safe_psql('postgres', 'SELECT 1');
my @others = map { MongoFdwTest::Session->new($node) } 1 .. 6;
$_->{in} .= "$point;\n" x 50 foreach @others;
$_->ask($point) foreach @others;
is(counts('finds, documents_read'), '306|306', 'six sessions at once');
$_->close foreach @others;

# not preloaded
my $plain = new_postgres('not_preloaded');
my ($status, undef, $stderr);
foreach my $view ('mongo_fdw_stat', 'mongo_fdw_stat_connections')
{
	($status, undef, $stderr) = $plain->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM $view");
	like($stderr, qr/ERROR:  55000: mongo_fdw must be loaded via "shared_preload_libraries"/, "without preloading there is an error: $view");
}
($status, undef, $stderr) = $plain->psql('postgres', "CREATE SERVER s FOREIGN DATA WRAPPER mongo_fdw OPTIONS (max_connections '3')");
like($stderr, qr/WARNING:  option "max_connections" has no effect yet.*HINT/s, 'and max_connections warns');

done_testing();
