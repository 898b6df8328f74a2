# Reads as of a time of MongoDB's clock: mongo_fdw.cluster_time and mongo_cluster_time().

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

# a secondary that does not vote: the primary alone is a majority
my $set = MongoFdwTest::ReplicaSet->new(2, voters => 1, arguments => [ '--syncdelay', '1' ]);
my $mongod = $set->primary;
my ($secondary) = grep { $_ != $mongod } $set->members;
my $node = new_postgres('times', 'jit = off', 'max_parallel_workers_per_gather = 0');
create_server($node, 'mongodb', $mongod, fdw_tuple_cost => 100);
create_server($node, 'behind', $secondary, read_preference => 'secondaryPreferred');

sub refused
{
	my ($name, $sql, @expected) = @_;

	# as the library is loaded, the setting is checked
	return raises($name, "SELECT mongo_fdw_version();\n$sql", @expected);
}

sub present { return sql(q{SELECT mongo_cluster_time('mongodb')}) }

my $a = '_id int, g int, n int, t text';
sql(qq{
	CREATE FOREIGN TABLE a ($a) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE b (_id int, a int, n int) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE items (_id int, item int) SERVER mongodb OPTIONS (database 'db', unwind 'item');
	CREATE FOREIGN TABLE view_of_a ($a) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE joined (_id int, n int) SERVER mongodb OPTIONS (database 'db', collection 'a', pipeline
		'[{"\$lookup": {"from": "b", "localField": "_id", "foreignField": "a", "as": "b"}}, {"\$unwind": "\$b"}, {"\$project": {"n": "\$b.n"}}]');
	CREATE FOREIGN TABLE lagging ($a) SERVER behind OPTIONS (database 'db', collection 'a');
	INSERT INTO a SELECT i, i % 7, i, 'x' || i FROM generate_series(1, 1000) i;
	INSERT INTO b SELECT i, i % 100, i FROM generate_series(1, 400) i});
$mongod->insert('db', 'items', '[{"_id": 1, "item": [1, 2, 3]}, {"_id": 2, "item": [4]}]');
$mongod->command('{"create": "view_of_a", "viewOn": "a", "pipeline": [{"$match": {"n": {"$lt": 50}}}]}', 'db');
$mongod->command('{"create": "empty"}', 'db');

# --- what is read -----------------------------------------------------------------------
my $then = present();
like($then, qr/^\d{10}:\d{10}$/, 'the present time');
my @tables = qw(a b items view_of_a joined);
sql(join '', map { "CREATE TABLE old_$_ AS SELECT * FROM $_;" } @tables);
sql(q{UPDATE a SET n = -n, t = 'changed' WHERE g < 4; DELETE FROM a WHERE g = 5; INSERT INTO a VALUES (9999, 1, 1, 'new');
	DELETE FROM b WHERE n > 200; UPDATE b SET a = 1});
$mongod->insert('db', 'later', '[{"_id": 1}]');
$mongod->command('{"update": "items", "updates": [{"q": {}, "u": {"$set": {"item": []}}, "multi": true}]}', 'db');
cmp_ok(present(), 'gt', $then, 'the time has gone on');
my @queries = (
	'SELECT * FROM a', 'SELECT * FROM a WHERE _id = 3', 'SELECT n FROM a WHERE t LIKE \'%99\'', 'SELECT count(*) FROM a', 'SELECT count(*) FROM a WHERE g = 5',
	'SELECT g, count(*), sum(n), min(t) FROM a GROUP BY g', 'SELECT DISTINCT g FROM a WHERE n < 0', 'SELECT sum(n) FROM a WHERE n > 100000',
	'SELECT a._id, b.n FROM a JOIN b ON b.a = a._id WHERE a.n < 20', 'SELECT a._id, b.n FROM a LEFT JOIN b ON b.a = a._id WHERE a.g = 5 AND a.n < 200',
	'SELECT * FROM a WHERE EXISTS (SELECT FROM b WHERE b.a = a._id AND b.n > 390)', 'SELECT a.g, sum(b.n) FROM a JOIN b ON b.a = a._id GROUP BY 1',
	'SELECT * FROM items', 'SELECT count(*) FROM view_of_a', 'SELECT * FROM view_of_a WHERE g = 2', 'SELECT * FROM joined WHERE n > 350',
	'SELECT n FROM a WHERE g = 1 UNION ALL SELECT n FROM b', 'SELECT * FROM a ORDER BY n DESC LIMIT 5',
	'SELECT x, (SELECT n FROM a WHERE _id = x) FROM generate_series(1, 20) x', 'SELECT * FROM a, LATERAL (SELECT n FROM b WHERE b.a = a._id ORDER BY n LIMIT 1) l WHERE a._id < 5');

# The sorted rows of each query, in one session.
sub rows_of
{
	my ($settings, @list) = @_;
	return map { join "\n", sort split /\n/ } split /^--\n/m, sql("$settings\n" . join '', map { "$_;\n\\echo --\n" } @list);
}

# The same queries over the copies.
my @old = @queries;
s/\b(FROM|JOIN) (\w+)\b(?!\()/$1 . ' ' . ((grep { $_ eq $2 } @tables) ? "old_$2 AS $2" : $2)/ge foreach @old;
my @expected = rows_of('', @old);

# The queries that do not give at a time what they give over the copies.
sub differences
{
	my ($time, $settings) = @_;
	my @rows = rows_of("SET mongo_fdw.cluster_time = '$time'; $settings", @queries);

	return join "\n", map { $queries[$_] } grep { $rows[$_] ne $expected[$_] } 0 .. $#queries;
}
is(differences($then, $_), '', "every query, $_") foreach '', 'SET mongo_fdw.enable_pushdown = off;',
	'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;';
isnt(differences('', ''), '', 'the present is another one');
is(sql("SET mongo_fdw.cluster_time = '$then'; RESET mongo_fdw.cluster_time; SELECT count(*) FROM a WHERE _id = 9999"), 1, 'RESET');
(my $short = $then) =~ s/:0*/:/;
is(sql("SET mongo_fdw.cluster_time = '$short'; SELECT count(*) FROM a"), 1000, 'a time as MongoDB shows it');

# --- where it applies -------------------------------------------------------------------
sql('ANALYZE a; ANALYZE b');
is(sql("SET mongo_fdw.cluster_time = '$then'; SELECT count(*), sum((d->>'n')::int) FROM mongo_aggregate('mongodb', 'db', 'a', '[{\"\$match\": {\"g\": 5}}]') d"), '143|71786', 'mongo_aggregate()');
is(sql("SET mongo_fdw.cluster_time = '$then'; SELECT mongo_command('mongodb', 'db', '{\"count\": \"a\", \"query\": {\"g\": 5}}')->'n'"), 0, 'mongo_command() reads the present');
is(sql("PREPARE p AS SELECT count(*) FROM a WHERE g = 5; SET plan_cache_mode = force_generic_plan; EXECUTE p; SET mongo_fdw.cluster_time = '$then'; EXECUTE p;
	SET mongo_fdw.cluster_time = ''; EXECUTE p"), "0\n143\n0", 'a prepared statement');
is(sql("BEGIN; SET LOCAL mongo_fdw.cluster_time = '$then'; SELECT count(*) FROM a WHERE g = 5; COMMIT; SELECT count(*) FROM a WHERE g = 5"), "143\n0", 'SET LOCAL');
is(sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL mongo_fdw.cluster_time = '$then'; SELECT count(*) FROM a WHERE g = 5; SELECT count(*) FROM b; COMMIT"), "143\n400", 'REPEATABLE READ');
is(sql("BEGIN; SET LOCAL mongo_fdw.cluster_time = '$then'; DECLARE c CURSOR FOR SELECT n FROM a ORDER BY _id; FETCH 1 FROM c; SET LOCAL mongo_fdw.cluster_time = '';
	MOVE 500 IN c; FETCH 1 FROM c; SELECT count(*) FROM a WHERE g = 5; COMMIT"), "1\n502\n0", 'a cursor keeps its time');
is(sql("SET mongo_fdw.cluster_time = '$then'; ANALYZE b; SELECT reltuples FROM pg_class WHERE relname = 'b'"), 200, 'ANALYZE reads the present');
sub commands_of { $mongod->snapshot; sql($_[0]); return $mongod->changes->{commands} }
is(commands_of('SELECT count(*) FROM a WHERE _id BETWEEN 10 AND 19')->{count}, 1, 'the command "count"');
my $commands = commands_of("SET mongo_fdw.cluster_time = '$then'; SELECT count(*) FROM a WHERE _id BETWEEN 10 AND 19");
is($commands->{count}, undef, 'is not sent at a time');
$commands = commands_of("SET mongo_fdw.cluster_time = '$then'; SELECT n FROM a WHERE _id = 5; SELECT n FROM a WHERE _id = 6; SELECT n FROM a WHERE _id = 7");
is_deeply([ @$commands{qw(find aggregate listCollections)} ], [ 4, undef, undef ], 'finds need one more command, once');

# --- privileges -------------------------------------------------------------------------
sql(q{CREATE ROLE reader; GRANT USAGE ON FOREIGN SERVER mongodb TO reader; CREATE USER MAPPING FOR reader SERVER mongodb; GRANT SELECT ON a TO reader; CREATE ROLE stranger});
refused('SET without the privilege', "SET ROLE reader; SET mongo_fdw.cluster_time = '$then'", '42501', 'permission denied to set parameter');
sql('GRANT SET ON PARAMETER mongo_fdw.cluster_time TO reader');
is(sql("SET ROLE reader; SET mongo_fdw.cluster_time = '$then'; SELECT count(*) FROM a"), 1000, 'SET with the privilege');
refused('mongo_cluster_time() without USAGE', q{SET ROLE stranger; SELECT mongo_cluster_time('mongodb')}, '42501', 'permission denied for foreign server mongodb');

# --- what cannot be done at a time ------------------------------------------------------
my $at = "SET mongo_fdw.cluster_time = '$then';";
refused("no write: $_", "$at $_", '25006', 'cannot write to MongoDB while mongo_fdw.cluster_time is set') foreach
	'INSERT INTO a VALUES (-1)', 'UPDATE a SET n = 0', 'UPDATE a SET n = 0 WHERE t = random()::text', 'DELETE FROM a', 'TRUNCATE a',
	q{SELECT * FROM mongo_aggregate('mongodb', 'db', 'a', '[{"$out": "copy"}]')};
refused('a read in a MongoDB transaction', "BEGIN; INSERT INTO a VALUES (-1); $at SELECT * FROM a", '25001', 'in a transaction that has read or written the present');
refused('a read in a snapshot', "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM b LIMIT 1; $at SELECT * FROM a", '25001', 'in a transaction');
refused('another read concern', "$at SELECT * FROM mongo_aggregate('mongodb', 'db', 'a', '[]', '{\"readConcern\": {\"level\": \"local\"}}')", '22023', 'takes no "readConcern"');
refused("no time: $_", "SET mongo_fdw.cluster_time = '$_'", '22023', 'invalid value for parameter') foreach 'x', '1', '0:0', ':1', '1:', '99999999999:1', '4294967296:1', '1:2:3', ' ';
refused('before MongoDB', "SET mongo_fdw.cluster_time = '1000000000:0000000001'; SELECT * FROM a", '55000', '246 .*HINT:  The collection has been created');
my $before = time;
refused('a time to come', "SET mongo_fdw.cluster_time = '4000000000:0000000001'; SELECT * FROM a", '55000', 'HINT:  The time in mongo_fdw.cluster_time has yet to come');
cmp_ok(time - $before, '<', 5, 'is not waited for');
$mongod->command('{"create": "capped", "capped": true, "size": 4096}', 'db');
sql(q{CREATE FOREIGN TABLE capped (_id int) SERVER mongodb OPTIONS (database 'db')});
refused('a capped collection', 'SET mongo_fdw.cluster_time = \'' . present() . '\'; SELECT * FROM capped', '0A000', 'HINT:  MongoDB reads a capped collection only at present');
my $standalone = MongoFdwTest::Mongod->new;
create_server($node, 'standalone', $standalone);
sql(q{CREATE FOREIGN TABLE alone (_id int) SERVER standalone OPTIONS (database 'db')});
refused("a standalone: $_", "$at $_", '0A000', 'server "standalone" has no cluster times') foreach 'SELECT * FROM alone', q{SELECT mongo_cluster_time('standalone')};

# --- a collection that is not the same one any more -------------------------------------
sql(q{CREATE FOREIGN TABLE x (_id int) SERVER mongodb OPTIONS (database 'other');
	CREATE FOREIGN TABLE y (_id int) SERVER mongodb OPTIONS (database 'other');
	CREATE FOREIGN TABLE view_of_x (_id int) SERVER mongodb OPTIONS (database 'other');
	CREATE FOREIGN TABLE union_of_both (_id int) SERVER mongodb OPTIONS (database 'other', collection 'y', pipeline '[{"$unionWith": "x"}]');
	CREATE FOREIGN TABLE facets (n int) SERVER mongodb OPTIONS (database 'other', collection 'x', pipeline '[{"$facet": {"f": [{"$count": "n"}]}}, {"$set": {"n": {"$size": "$f"}}}]')});
my @reads = ('SELECT * FROM x', 'SELECT * FROM x WHERE _id = 77', 'SELECT count(*) FROM x', 'SELECT * FROM view_of_x', 'SELECT count(*) FROM view_of_x', 'SELECT * FROM union_of_both LIMIT 1',
	'SELECT * FROM facets', 'SELECT * FROM y LEFT JOIN x USING (_id)', q{SELECT * FROM mongo_aggregate('mongodb', 'other', 'y', '[{"$lookup": {"from": "view_of_x", "pipeline": [], "as": "v"}}]')});

foreach my $change (
	[ 'dropped', '{"drop": "x"}' ], [ 'renamed', '{"renameCollection": "other.x", "to": "other.z", "dropTarget": true}' ], [ 'dropped with its database', '{"dropDatabase": 1}' ],
	[ 'created again', '{"drop": "x"}', '{"create": "x"}' ], [ 'replaced', '{"create": "new"}', '{"renameCollection": "other.new", "to": "other.x", "dropTarget": true}' ],
	[ 'renamed back', '{"renameCollection": "other.x", "to": "other.z", "dropTarget": true}', '{"renameCollection": "other.z", "to": "other.x"}' ])
{
	my ($name, @commands) = @$change;

	$mongod->insert('other', $_, '[{"_id": 1}, {"_id": 2}]') foreach 'x', 'y';
	eval { $mongod->command('{"create": "view_of_x", "viewOn": "x", "pipeline": []}', 'other') };
	my $time = present();
	is(sql("SET mongo_fdw.cluster_time = '$time'; SELECT count(*) FROM x WHERE _id = 77"), 0, "$name: no document is no error before");
	$mongod->command($_, /renameCollection/ ? 'admin' : 'other') foreach @commands;
	my (undef, undef, $errors) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET mongo_fdw.cluster_time = '$time';\n" . join('', map { "$_;\n" } @reads), on_error_stop => 0);
	is(scalar(() = $errors =~ /ERROR:  55000: could not read collection/g), scalar @reads, "$name: every read is refused") or diag $errors;
}
refused('a collection that was not there', "$at SELECT * FROM mongo_aggregate('mongodb', 'db', 'later', '[]')", '55000', '246');
refused('nor is now', "$at SELECT * FROM mongo_aggregate('mongodb', 'db', 'never', '[]')", '55000', 'There is no such collection at present');

# --- members, and the end of what MongoDB keeps -----------------------------------------
is(sql("$at SELECT count(*) FROM lagging"), 1000, 'a secondary');
$secondary->command('{"configureFailPoint": "stopReplProducer", "mode": "alwaysOn"}');
sleep 0.5;
sql("INSERT INTO a VALUES (-$_, 0, 0, '')") foreach 1 .. 3;
my $late = present();
my $background = background_query($node, "SET mongo_fdw.cluster_time = '$late'; SELECT count(*) FROM lagging WHERE _id < 0");
sleep 0.5;
$secondary->command('{"configureFailPoint": "stopReplProducer", "mode": "off"}');
is(($background->finish)[1], "3\n", 'a member that lags behind is waited for');
$mongod->command('{"setParameter": 1, "minSnapshotHistoryWindowInSeconds": 1}');
$before = time;
my $error = '';
until ($error =~ /72000/ || time - $before > 60)
{
	sql('INSERT INTO b VALUES (-1, 0, 0); DELETE FROM b WHERE _id = -1');
	(undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n$at SELECT * FROM a");
	sleep 0.3;
}
like($error, qr/72000: could not read collection "db.a".*239.*HINT:  MongoDB keeps earlier states for 300 seconds/s, 'a time that is too old');

done_testing();
