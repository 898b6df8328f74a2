# What ANALYZE has learned of a collection: how long it is kept, who may see it, and
# what keeps it from being learned.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $mongod = MongoFdwTest::Mongod->new;
my $node = PostgreSQL::Test::Cluster->new('statistics');
$node->init(allows_streaming => 1);
$node->start;
$node->safe_psql('postgres', 'CREATE SCHEMA fdw; CREATE EXTENSION mongo_fdw SCHEMA fdw');
create_server($node, 'mongodb', $mongod, round_trip_time => '0.1ms', bandwidth => '1GB');
create_point_table($node, 'mongodb', $mongod, 20000);

# Is a document found by the index?  Else the cost is that of looking at all.
sub is_cheap
{
	my ($table, $on) = @_;
	my ($cost) = ($on // $node)->safe_psql('postgres', "EXPLAIN SELECT * FROM $table WHERE id = 7") =~ /cost=[\d.]+\.\.([\d.]+)/;
	return $cost < 100 ? 1 : 0;
}

sub learned
{
	my ($what, $table, $database) = @_;
	return $node->safe_psql($database // 'postgres',
		"SELECT $what FROM fdw.mongo_fdw_statistics WHERE relation = '$table'::regclass");
}

# Kept: across sessions and restarts, from one session to another, in read-only transactions.
$node->safe_psql('postgres', "ALTER FOREIGN TABLE points OPTIONS (ADD estimated_rows '20000')");
is(is_cheap('points'), 0, 'before ANALYZE');
my $session = MongoFdwTest::Session->new($node);
my $explain = q{EXPLAIN (FORMAT json) SELECT * FROM points WHERE id = 7};
my ($before) = $session->ask($explain) =~ /"Total Cost": ([\d.]+)/;
$mongod->snapshot;
$node->safe_psql('postgres', 'ANALYZE points');
my $commands = $mongod->changes->{commands};
is_deeply([ map { $commands->{$_} // 0 } qw(aggregate count listIndexes explain) ], [ 2, 1, 1, 2 ],
	'what ANALYZE sends: an explain for each of two indexes');
my ($after) = $session->ask($explain) =~ /"Total Cost": ([\d.]+)/;
ok($before > 300 && $after < 100, 'a session that has planned before sees it') or diag("$before, $after");
is(is_cheap('points'), 1, 'a new session sees it');
$node->restart;
is(is_cheap('points'), 1, 'so does one after a restart');

$mongod->snapshot;
$node->safe_psql('postgres', join('; ', ('EXPLAIN SELECT * FROM points WHERE id = 7') x 10));
is($mongod->changes->{requests}, 0, 'planning sends nothing');
$node->safe_psql('postgres', join('; ', ('SELECT info FROM points WHERE id = 7') x 10));
is($mongod->changes->{commands}{find}, 10, 'a point query is one find');

my $learned_at = learned('learned_at', 'points');
$node->safe_psql('postgres', 'BEGIN READ ONLY; ANALYZE points; COMMIT');
isnt(learned('learned_at', 'points'), $learned_at, 'learned in a read-only transaction');

# What is cancelled leaves what was known.
$learned_at = learned('learned_at', 'points');
foreach my $command ('count', 'aggregate', 'listIndexes', 'explain')
{
	$mongod->block_commands(5000, $command);
	my $started = time;
	my ($status, undef, $stderr) = $node->psql('postgres', "SET statement_timeout = '300ms'; ANALYZE points");
	my $seconds = time - $started;
	$mongod->unblock_commands;
	ok($status != 0 && $stderr =~ /statement timeout/ && $seconds < 4, "cancelled while $command is waited for");
}
is(learned('learned_at', 'points'), $learned_at, 'what was known is still known');
is(is_cheap('points'), 1, 'and used');

# Several at once.
my @at_once = map { background_query($node, join('; ', ('ANALYZE points') x 5)) } 1 .. 4;
is(scalar(grep { ($_->finish)[0] != 0 } @at_once), 0, 'ANALYZE by four sessions at once');

# Children: a partition is analyzed with its parent, an ordinary child only since PostgreSQL 18.
$node->safe_psql('postgres', q{
	CREATE TABLE parted (id int, info text) PARTITION BY RANGE (id);
	CREATE FOREIGN TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (100000) SERVER mongodb OPTIONS (database 'db', collection 'points');
	CREATE TABLE parent (id int, info text);
	CREATE FOREIGN TABLE child () INHERITS (parent) SERVER mongodb OPTIONS (database 'db', collection 'points');
	CREATE FOREIGN TABLE both_ends (id int, info text) SERVER mongodb OPTIONS (database 'db', collection 'points');
	CREATE FOREIGN TABLE below () INHERITS (both_ends) SERVER mongodb OPTIONS (database 'db', collection 'points');
	ANALYZE parted; ANALYZE parent; ANALYZE both_ends;
	BEGIN; ANALYZE part; ANALYZE parted; ANALYZE both_ends, below; COMMIT});
is(learned('documents', 'part'), '20000', 'a partition');
is(learned('documents', 'child'), $node->config_data('--version') =~ /PostgreSQL (\d+)/ && $1 >= 18 ? '20000' : '',
	'a child is looked at for itself since PostgreSQL 18');
is(learned('documents', 'both_ends'), '20000', 'a table with children');
@at_once = map { background_query($node, join('; ', ("ANALYZE $_") x 5)) } 'parted', 'part', 'parent', 'child', 'parent';
is(scalar(grep { ($_->finish)[0] != 0 } @at_once), 0, 'parents and children at once');

# On a standby.
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('statistics_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
is(is_cheap('points', $standby), 1, 'a standby plans with it');
my $on_standby = MongoFdwTest::Session->new($standby);
($before) = $on_standby->ask($explain) =~ /"Total Cost": ([\d.]+)/;
$mongod->command('{"dropIndexes": "points", "index": "id_1"}', 'db');
is($node->safe_psql('postgres', 'SELECT count(*) FROM points WHERE id = 7'), '1', 'the index is gone, the answer is the same');
$node->safe_psql('postgres', 'ANALYZE points');
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
($after) = $on_standby->ask($explain) =~ /"Total Cost": ([\d.]+)/;
ok($before < 100 && $after > 300, 'a session of the standby sees that the index is gone') or diag("$before, $after");
$on_standby->close;
$standby->stop;
$mongod->command('{"createIndexes": "points", "indexes": [{"key": {"id": 1}, "name": "id_1"}]}', 'db');

# Who may what: an owner who is nobody special analyzes, others neither see nor write.
$node->safe_psql('postgres', q{
	CREATE ROLE owner LOGIN; CREATE ROLE stranger LOGIN;
	GRANT USAGE ON FOREIGN SERVER mongodb TO owner;
	GRANT ALL ON SCHEMA public TO owner;
	GRANT USAGE ON SCHEMA fdw TO owner, stranger;
	CREATE USER MAPPING FOR owner SERVER mongodb});
$node->safe_psql('postgres', q{
	SET ROLE owner;
	CREATE FOREIGN TABLE owned (id int, info text) SERVER mongodb OPTIONS (database 'db', collection 'points');
	ANALYZE owned});
is(learned('documents', 'owned'), '20000', 'an owner analyzes');
is($node->safe_psql('postgres', 'SET ROLE owner; SELECT relation FROM fdw.mongo_fdw_statistics'), 'owned', 'and sees what is his');
is($node->safe_psql('postgres', 'SET ROLE stranger; SELECT count(*) FROM fdw.mongo_fdw_statistics'), '0', 'a stranger sees nothing');
foreach my $sql ('SELECT * FROM fdw.mongo_fdw_statistics_data', 'DELETE FROM fdw.mongo_fdw_statistics_data',
	q{UPDATE fdw.mongo_fdw_statistics_data SET documents = 0}, 'TRUNCATE fdw.mongo_fdw_statistics_data')
{
	my (undef, undef, $stderr) = $node->psql('postgres', "SET ROLE owner; $sql");
	like($stderr, qr/permission denied for table mongo_fdw_statistics_data/, $sql);
}

# Dumped: the definitions, and nothing of what was learned.
my $dump = $node->data_dir . '/../dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-T', 'parted', '-T', 'part', $node->connstr('postgres') ], 'pg_dump');
unlike(slurp_file($dump), qr/statistics_data|id_1/, 'the dump has nothing of it');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, $node->connstr('restored') ], 'it is restored');
is($node->safe_psql('restored', 'SELECT count(*) FROM fdw.mongo_fdw_statistics_data'), '0', 'nothing is known there');
$node->safe_psql('restored', 'ANALYZE points');
is($node->safe_psql('restored', 'SELECT documents FROM fdw.mongo_fdw_statistics'), '20000', 'and can be learned again');

# Moved, and dropped in other ways than DROP FOREIGN TABLE.
$node->safe_psql('postgres', 'ALTER EXTENSION mongo_fdw SET SCHEMA public; ANALYZE points');
is($node->safe_psql('postgres', "SELECT documents FROM public.mongo_fdw_statistics WHERE relation = 'points'::regclass"),
	'20000', 'the extension in another schema');
$node->safe_psql('postgres', q{
	ALTER EXTENSION mongo_fdw SET SCHEMA fdw;
	CREATE SCHEMA doomed;
	CREATE FOREIGN TABLE doomed.t (id int) SERVER mongodb OPTIONS (database 'db', collection 'points');
	CREATE SERVER other FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '} . $mongod->port . q{');
	CREATE USER MAPPING FOR CURRENT_USER SERVER other;
	CREATE FOREIGN TABLE elsewhere (id int) SERVER other OPTIONS (database 'db', collection 'points');
	ANALYZE doomed.t; ANALYZE elsewhere;
	DROP SCHEMA doomed CASCADE;
	DROP SERVER other CASCADE});
is($node->safe_psql('postgres', 'SELECT count(*) FROM fdw.mongo_fdw_statistics'),
	$node->safe_psql('postgres', 'ANALYZE points; SELECT count(*) FROM fdw.mongo_fdw_statistics_data'),
	'what is dropped is not shown, and removed by the next ANALYZE');

# Collections of other kinds.
sub analyze
{
	my ($collection, $columns) = @_;
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $collection ($columns) SERVER mongodb OPTIONS (database 'db')");
	my (undef, undef, $stderr) = $node->psql('postgres', "ANALYZE $collection");
	return $stderr;
}

my $names = q{(SELECT string_agg(i ->> 'name', ' ' ORDER BY i ->> 'name' COLLATE "C") FROM json_array_elements(indexes) AS i)};

$mongod->command('{"create": "series", "timeseries": {"timeField": "at", "metaField": "m"}}', 'db');
$mongod->command('{"insert": "series", "documents": [{"at": {"$date": "2024-01-01T00:00:00Z"}, "m": 1, "v": 2}]}', 'db');
$mongod->command('{"createIndexes": "series", "indexes": [{"key": {"m": 1, "at": 1}, "name": "m_at"}]}', 'db');
is(analyze('series', 'at timestamptz, m int, v int'), '', 'a time-series collection');
like(learned("$names || ' ' || documents", 'series'), qr/m_at.* 1$/, 'has indexes');

$mongod->command('{"create": "capped", "capped": true, "size": 100000}', 'db');
$mongod->command('{"insert": "capped", "documents": [{"_id": 1, "id": 1}]}', 'db');
is(analyze('capped', 'id int'), '', 'a capped collection');
is(learned($names, 'capped'), '_id_', 'has an index');

$mongod->command('{"createIndexes": "many", "indexes": [' . join(', ', map { "{\"key\": {\"f$_\": 1, \"id\": -1}, \"name\": \"f$_\"}" } 1 .. 63) . ']}', 'db');
is(analyze('many', join(', ', 'id int', map { "f$_ int" } 1 .. 63)), '', '64 indexes');
is(learned('json_array_length(indexes)', 'many'), '64', 'are all known');

$mongod->insert('db', 'strange', '[{"_id": 1, "a.b": 1, "$c": 2, "a": {"b": 3}, "": 4}]');
$mongod->command('{"createIndexes": "strange", "indexes": [{"key": {"a.b": 1}, "name": "Gr\u00fc\u00dfe \" \\\\ \ud83d\udc18"}]}', 'db');
is(analyze('strange', '"a.b" int, "$c" int, id int'), '', 'names with a dot, a dollar and quotes');
like(learned($names, 'strange'), qr/Gr\xc3\xbc\xc3\x9fe " \\/, 'and the name of an index');

# In another encoding.
$node->safe_psql('postgres', q{CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0});
$mongod->insert('db', 'strange', '[{"_id": 2, "\u4e16\u754c": 1, "ID": 2}]');
(undef, undef, my $warnings) = $node->psql('latin', q{CREATE EXTENSION mongo_fdw; CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '}
	  . $mongod->port . q{'); CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb;
	CREATE FOREIGN TABLE strange (id int) SERVER mongodb OPTIONS (database 'db'); ANALYZE strange});
like($warnings, qr/has the field "id"\n.*the field "ID"/, 'the nearest of the fields whose names it has');
is($node->safe_psql('latin', "SELECT $names FROM mongo_fdw_statistics"), '_id_', 'an index whose name the encoding lacks is left out');

# SQL objects that are older than the library.
$node->safe_psql('latin', 'ALTER EXTENSION mongo_fdw DROP VIEW mongo_fdw_statistics; ALTER EXTENSION mongo_fdw DROP TABLE mongo_fdw_statistics_data');
is($node->safe_psql('latin', 'UPDATE mongo_fdw_statistics_data SET documents = 5; ANALYZE strange; SELECT count(*) FROM strange; SELECT documents FROM mongo_fdw_statistics_data'),
	"1\n5", 'a table that is not the extension\'s is left alone');

# listIndexes refused by MongoDB's roles.
my $guarded = MongoFdwTest::Mongod->new(auth => 1);
$guarded->insert('db', 'points', '[{"_id": 1, "id": 7}]');
$guarded->command('{"createRole": "reader", "privileges": [{"resource": {"db": "db", "collection": ""}, "actions": ["find"]}], "roles": []}', 'db');
$guarded->command('{"createUser": "reader", "pwd": "reader", "roles": ["reader"]}', 'db');
create_server($node, 'guarded', $guarded, authentication_database => 'db', mapping => { username => 'reader', password => 'reader' });
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE guarded (id int) SERVER guarded OPTIONS (database 'db', collection 'points')});
my ($status, undef, $stderr) = $node->psql('postgres', 'ANALYZE guarded');
is($status, 0, 'listIndexes is not allowed');
like($stderr, qr/NOTICE:  could not list the indexes of collection "db\.points"\nDETAIL:  MongoDB answered: not authorized/, 'which is said');
is(learned('documents, indexes IS NULL', 'guarded'), '1|t', 'and the rest is learned');
is($node->safe_psql('postgres', 'SELECT id FROM guarded WHERE id = 7'), '7', 'queries work');

$session->close;
done_testing();
