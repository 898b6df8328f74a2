# INSERT, COPY, UPDATE, DELETE and TRUNCATE: what is sent, what is stored, and
# what goes wrong.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('writes');
create_server($node, 'mongodb', $mongod, batch_size => '100');

sub documents
{
	my ($collection, $filter) = @_;
	my $reply = $mongod->command(
		"{\"find\": \"$collection\", \"filter\": {@{[$filter // '']}}, \"sort\": {\"_id\": 1}, \"batchSize\": 100000}", 'db');
	return $reply->{cursor}{firstBatch};
}

sub fails
{
	my ($sql, $expected, $name) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	like($stderr, $expected, $name);
}

# commands sends SQL and tells the commands that MongoDB counted.
sub commands
{
	my ($sql) = @_;
	$mongod->snapshot;
	$node->safe_psql('postgres', $sql);
	my $commands = $mongod->changes->{commands};
	delete @$commands{qw(hello isMaster ping saslStart saslContinue endSessions buildInfo)};
	return $commands;
}

$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE things (_id text, a int, b text, "sub.x" int, "sub.deep.y" text, n numeric, ts timestamptz)
		SERVER mongodb OPTIONS (database 'db', collection 'things');
	CREATE FOREIGN TABLE whole (__doc jsonb) SERVER mongodb OPTIONS (database 'db', collection 'things');
	CREATE FOREIGN TABLE numbered (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'numbered');
});

# what is stored
$node->safe_psql('postgres', q{
	INSERT INTO things VALUES ('one', 1, 'x', 5, 'y', 1.50, '2020-01-01 00:00:00.123Z'),
		('65a000000000000000000001', 2, NULL, NULL, 'z', NULL, NULL)});
is_deeply(documents('things'), [
	{ _id => 'one', a => 1, b => 'x', sub => { x => 5, deep => { y => 'y' } },
		n => { '$numberDecimal' => '1.50' }, ts => { '$date' => '2020-01-01T00:00:00.123Z' } },
	{ _id => { '$oid' => '65a000000000000000000001' }, a => 2, sub => { deep => { y => 'z' } } } ]
	, 'dotted columns are nested, NULLs left out, 24 digits an ObjectId')
	or diag(explain(documents('things')));

my $id = $node->safe_psql('postgres', q{INSERT INTO things (a) VALUES (3) RETURNING _id});
like($id, qr/^[0-9a-f]{24}$/, 'a generated _id is returned');
is($node->safe_psql('postgres', "SELECT a FROM things WHERE _id = '$id'"), 3, '... and is the one stored');

$node->safe_psql('postgres', q{INSERT INTO whole VALUES ('{"_id": {"k": 1}, "list": [1, {"$date": "2020-01-01T00:00:00Z"}]}')});
is_deeply(documents('things', '"_id": {"k": 1}'),
	[ { _id => { k => 1 }, list => [ 1, { '$date' => '2020-01-01T00:00:00Z' } ] } ], '__doc is the document');
$node->safe_psql('postgres', q{DELETE FROM whole WHERE __doc -> '_id' ->> 'k' = '1'});
is_deeply(documents('things', '"_id": {"k": 1}'), [], 'a document with any _id can be deleted');

# what is sent
$node->safe_psql('postgres', 'TRUNCATE things');
is_deeply(commands("INSERT INTO things (_id, a) SELECT 'g' || g, g FROM generate_series(1, 250) g"),
	{ insert => 3 }, 'INSERT sends a command for each batch');
is_deeply(commands("COPY things (_id) FROM PROGRAM 'seq -f c%g 1 150'"),
	{ insert => 2 }, 'COPY likewise');
is_deeply(commands("UPDATE things SET b = 'upd', a = a + 1 WHERE a > 100"), { update => 1 }, 'UPDATE is one command');
is($node->safe_psql('postgres', "SELECT count(*), min(a), max(a) FROM things WHERE b = 'upd'"), '150|102|251', '... that did it');
is_deeply(commands("DELETE FROM things WHERE a BETWEEN 10 AND 20"), { delete => 1 }, 'DELETE is one command');
is_deeply(commands("UPDATE things SET b = b || 'x' WHERE a > 100"), { find => 1, update => 2 },
	'what must be computed here is read once and sent in batches');
is_deeply(commands("UPDATE things SET a = 1 WHERE a = NULL::int"), {}, 'nothing is sent that cannot match');
is_deeply(commands("DELETE FROM things WHERE _id = 'g5'"), { delete => 1 }, 'DELETE by _id');
is_deeply(commands("TRUNCATE things"), { delete => 1 }, 'TRUNCATE is one command');

# RETURNING of one row
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE returned (_id int, a int, b text, "sub.x" int, j jsonb) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE returned_whole (_id int, a int, __doc jsonb) SERVER mongodb OPTIONS (database 'db', collection 'returned');
	INSERT INTO returned SELECT g, g, 'b' || g, g, '{"k": 1}' FROM generate_series(1, 10) g; INSERT INTO returned (_id, a) VALUES (11, 2147483647)});
sub returning
{
	my ($sql, $expected, $commands) = @_;
	my $result;
	$mongod->snapshot;
	$result = $node->safe_psql('postgres', $sql);
	my $counted = $mongod->changes->{commands};
	delete @$counted{qw(hello isMaster ping saslStart saslContinue endSessions buildInfo)};
	is($result, $expected, $sql);
	is_deeply($counted, $commands, '... and its commands') or diag(explain($counted));
}
my $one = { findAndModify => 1 };
returning(q{UPDATE returned SET a = a + 1 WHERE _id = 1 RETURNING a, a * 2, tableoid::regclass}, '2|4|returned', $one);
returning(q{UPDATE returned SET a = a - 1, b = NULL WHERE _id = 11 RETURNING *}, '11|2147483646|||', $one);
returning(q{UPDATE returned SET a = a + 1 WHERE _id = 11 RETURNING a}, '2147483647', $one);
returning(q{UPDATE returned SET b = upper('new') WHERE _id = 2 AND a BETWEEN 1 AND 5 RETURNING returned}, '(2,2,NEW,2,"{""k"": 1}")', $one);
returning(q{UPDATE returned SET b = 'none' WHERE _id = 2 AND a > 5 RETURNING *}, '', $one);
returning(q{UPDATE returned SET b = 'none' WHERE _id = NULL::int RETURNING *}, '', {});
returning(q{DELETE FROM returned WHERE _id = 3 RETURNING _id, b, "sub.x"}, '3|b3|3', $one);
returning(q{DELETE FROM returned WHERE _id = 3 RETURNING _id}, '', $one);
returning(q{DELETE FROM returned WHERE _id = 4 RETURNING 'gone'}, 'gone', $one);
returning(q{UPDATE returned_whole SET a = 50 WHERE _id = 5 RETURNING __doc}, '{"a": 50, "b": "b5", "j": {"k": 1}, "_id": 5, "sub": {"x": 5}}', $one);
returning(q{WITH u AS (UPDATE returned SET a = 60 WHERE _id = 6 RETURNING *) SELECT a, b FROM u}, '60|b6', $one);
returning(q{UPDATE returned SET a = 7 WHERE _id IN (7, 8) RETURNING _id}, "7\n8", { find => 1, update => 1 });
returning(q{PREPARE pop(int) AS DELETE FROM returned WHERE _id = $1 RETURNING b; EXECUTE pop(7); EXECUTE pop(8); EXECUTE pop(9)}, "b7\nb8\nb9", { findAndModify => 3 });
fails(q{UPDATE returned SET a = a + 1 WHERE _id = 11 RETURNING a}, qr/22003.*could not update/s, 'an overflow is an error with RETURNING too');
$node->safe_psql('postgres', q{CREATE TABLE returned_root (a int, _id int, j jsonb, b text, "sub.x" int) PARTITION BY RANGE (_id);
	ALTER TABLE returned_root ATTACH PARTITION returned FOR VALUES FROM (0) TO (100);
	CREATE TABLE returned_other PARTITION OF returned_root FOR VALUES FROM (100) TO (200)});
returning(q{UPDATE returned_root SET a = a + 1 WHERE _id = 10 RETURNING a, b, tableoid::regclass}, '11|b10|returned', { find => 1, update => 1 });
like($node->safe_psql('postgres', q{EXPLAIN (VERBOSE, COSTS OFF) UPDATE returned SET a = a + 1 WHERE _id = 1 RETURNING a}),
	qr/"findAndModify" : "returned", "query" : .*"new" : true, "fields" : \{/, 'EXPLAIN shows it');

# nothing but the command is sent, also on a connection that has been idle
{
	my $psql = $node->basedir . '/idle.sql';
	PostgreSQL::Test::Utils::append_to_file($psql, q{INSERT INTO things (_id) VALUES ('idle');
		SELECT pg_sleep(7); DELETE FROM things WHERE _id = 'idle'; SELECT pg_sleep(2)});
	my $harness = IPC::Run::start([ 'psql', '-qAtX', '-d', $node->connstr('postgres'), '-f', $psql ], '>', \my $output);
	sleep 3;
	$mongod->snapshot;
	sleep 5;
	my $changes = $mongod->changes;
	is_deeply([ $changes->{commands}, $changes->{connections} ], [ { delete => 1 }, 0 ],
		'no ping, no hello, no new connection after a pause');
	$harness->finish;
}

# an INSERT that reads its own collection, an UPDATE that moves what it scans
$node->safe_psql('postgres', q{INSERT INTO numbered SELECT g, g FROM generate_series(1, 1000) g});
$mongod->command('{"createIndexes": "numbered", "indexes": [{"key": {"a": 1}, "name": "a"}]}', 'db');
$node->safe_psql('postgres', 'INSERT INTO numbered SELECT _id + 1000, a + 1000 FROM numbered');
is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM numbered'), '2000|2001000', 'INSERT does not read what it inserts');
$node->safe_psql('postgres', 'UPDATE numbered SET a = a + _id % 1 + 10000 WHERE a > 0');
is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM numbered'), '2000|22001000', 'UPDATE changes each row once');
# Several columns from one sub-select, which runs for each row, as in an ordinary table.
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE several (_id int, a int, b int, c text) SERVER mongodb OPTIONS (database 'db');
	CREATE TABLE several_here (_id int, a int, b int, c text)});
foreach my $assignment (
	'(b, a) = (SELECT a + 1, b FROM several_here i WHERE i._id = o._id)',
	'(b, a) = (SELECT 7, 8 FROM several_here i WHERE i._id = 3)',
	'(b, a) = (SELECT a, b FROM several_here i WHERE i._id = 99)',
	'(a, c) = (SELECT o.b * 2, o.c || o.a), b = 5',
	'a = o.a + 1, (b, c) = (SELECT max(i.a), min(i.c) FROM several_here i WHERE i.a <= o.a)',
	'(a, b) = ROW (b, a)')
{
	my $rows = q{SELECT g, g * 10, g * 100, 'c' || g FROM generate_series(1, 5) g};
	my @answers = map {
		$node->safe_psql('postgres', "TRUNCATE several; TRUNCATE several_here; INSERT INTO several $rows; INSERT INTO several_here $rows; "
			  . "UPDATE $_ o SET $assignment WHERE o._id <> 4; SELECT * FROM $_ ORDER BY _id")
	} qw(several_here several);
	is($answers[1], $answers[0], "SET $assignment");
}

is($node->safe_psql('postgres', 'WITH d AS (DELETE FROM numbered USING generate_series(1, 3) g WHERE _id <= 5 RETURNING 1) SELECT count(*) FROM d'),
	5, 'a row that a join gives three times is deleted, and returned, once');

# documents that do not fit are left alone by direct commands
$mongod->insert('db', 'mismatches', '[{"_id": 1, "a": [5]}, {"_id": 2, "a": 5.5}, {"_id": 3, "a": 5.0}, {"_id": 4, "a": "5"}, {"_id": 5, "a": 5}, {"_id": 6, "a": {"$numberLong": "5000000000"}}]');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE mismatches (_id int, a int, b int) SERVER mongodb OPTIONS (database 'db');
	UPDATE mismatches SET b = 1 WHERE a >= 5; UPDATE mismatches SET b = 2 WHERE a <> 1; UPDATE mismatches SET b = b + 1 WHERE a = 5});
is_deeply([ map { [ $_->{_id}, $_->{b} ] } @{ documents('mismatches') } ],
	[ [ 1, undef ], [ 2, undef ], [ 3, 3 ], [ 4, undef ], [ 5, 3 ], [ 6, undef ] ], 'only rows that can be read are changed')
	or diag(explain(documents('mismatches')));
fails('UPDATE mismatches SET a = a + 1', qr/22P02.*could not update.*does not fit its column: array/s, 'a sum with what does not fit is an error');

# what a statement does not look at is not read, so it may be anything
$mongod->insert('db', 'unread', '[{"_id": 1, "a": "x", "b": "b", "c": [1]}, {"_id": 2, "a": 2, "b": "b"}]');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE unread (_id int, a int, b text, c int) SERVER mongodb OPTIONS (database 'db');
	CREATE TABLE unread_root (c int, b text, a int, _id int) PARTITION BY LIST (b);
	ALTER TABLE unread_root ATTACH PARTITION unread DEFAULT});
is($node->safe_psql('postgres', q{UPDATE unread SET b = b || '!' RETURNING _id, b}), "1|b!\n2|b!", 'UPDATE reads only what it uses');
is($node->safe_psql('postgres', q{UPDATE unread_root SET b = b || '?' RETURNING _id, b}), "1|b!?\n2|b!?", '... also a partition with other column numbers');
is($node->safe_psql('postgres', q{UPDATE unread u SET b = b || g FROM generate_series(1, 2) g WHERE u._id = g RETURNING u.b, g}), "b!?1|1\nb!?2|2", '... and in a join');
is($node->safe_psql('postgres', q{DELETE FROM unread WHERE b || 'x' = 'b!?1x' RETURNING _id}), 1, 'so does DELETE');
$mongod->insert('db', 'unread', '[{"_id": 1, "a": "x", "b": "b", "c": [1]}]');
fails(qq{UPDATE unread SET b = b || '!' $_}, qr/mismatch|does not fit|cannot be read|type/i, "but with '$_' it reads the row")
	foreach ('RETURNING *', 'RETURNING unread', 'WHERE length(unread::text) > 0', 'RETURNING a');
$node->safe_psql('postgres', q{CREATE FUNCTION same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER same BEFORE UPDATE ON unread FOR EACH ROW EXECUTE FUNCTION same()});
fails(q{UPDATE unread SET b = b || '!'}, qr/mismatch|does not fit|cannot be read|type/i, 'and with a row trigger');

# so that fields without a column stay, whatever the trigger or the statement changes
$mongod->insert('db', 'nested', '[{"_id": 1, "n": 1, "c": {"zip": 1, "city": "x"}, "ca": [{"zip": 1, "city": "x"}, {"zip": 2, "city": "y"}], "m": {"l": {"$numberLong": "5"}, "b": 1}}]');
$node->safe_psql('postgres', q{CREATE TYPE address AS (zip int, street text);
	CREATE FOREIGN TABLE nested (_id int, n int, c address, ca address[], m jsonb) SERVER mongodb OPTIONS (database 'db');
	CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN NEW.c.zip := 2; NEW.ca[1].street := 'q'; NEW.m := NEW.m || '{"b": 2}'; RETURN NEW; END$$;
	CREATE TRIGGER change BEFORE UPDATE ON nested FOR EACH ROW EXECUTE FUNCTION change();
	UPDATE nested SET n = 2});
is_deeply($mongod->command('{"aggregate": "nested", "pipeline": [{"$set": {"l": {"$type": "$m.l"}}}], "cursor": {}}', 'db')->{cursor}{firstBatch},
	[ { _id => 1, n => 2, c => { zip => 2, city => 'x' }, ca => [ { zip => 1, city => 'x', street => 'q' }, { zip => 2, city => 'y' } ], m => { l => 5, b => 2 }, l => 'long' } ],
	'fields that a trigger does not change');

# names of tables are those of every search_path
$node->safe_psql('postgres', q{CREATE SCHEMA sa; CREATE TABLE sa.tt (); CREATE FOREIGN TABLE named (_id int, r regclass, f regproc[]) SERVER mongodb OPTIONS (database 'db');
	SET search_path = sa, public; INSERT INTO named VALUES (1, 'tt', '{change,now}')});
is_deeply(documents('named'), [ { _id => 1, r => 'sa.tt', f => [ 'public.change', 'now' ] } ], 'regclass and regproc');

# a text _id can be a String and an ObjectId: both are that row
$mongod->insert('db', 'twins', '[{"_id": "65a000000000000000000001"}, {"_id": {"$oid": "65a000000000000000000001"}}, {"_id": "other"}]');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE twins (_id text, a int) SERVER mongodb OPTIONS (database 'db');
	UPDATE twins SET a = 1 WHERE _id = '65a000000000000000000001'});
is($node->safe_psql('postgres', 'SELECT count(*) FROM twins WHERE a = 1'), 2, 'UPDATE finds a text _id of either kind');
$node->safe_psql('postgres', q{DELETE FROM twins WHERE _id = '65a000000000000000000001'});
is($node->safe_psql('postgres', 'SELECT string_agg(_id, \',\') FROM twins'), 'other', 'and so does DELETE');

# several _ids can read as one date, or be of one day, month or year
my $times = join(', ', map { qq({"_id": {"\$date": "$_"}}) } qw(2024-01-01T00:00:00Z 2024-01-01T10:00:00Z 2025-06-01T00:00:00Z));
foreach my $case ([ 'date', "_id = '2024-01-01'" ], [ 'timestamptz', "(_id AT TIME ZONE 'UTC')::date = '2024-01-01'" ],
	[ 'timestamp', "_id::date = '2024-01-01'" ], [ 'timestamp', "date_trunc('day', _id) = '2024-01-01'" ],
	[ 'timestamp', 'extract(year FROM _id) = 2024' ])
{
	my ($type, $same) = @$case;
	foreach my $statement ("UPDATE same SET a = 1 WHERE $same", "DELETE FROM same WHERE $same")
	{
		foreach my $returning ('', ' RETURNING 1')
		{
			$mongod->insert('db', 'same', "[$times]");
			like($node->safe_psql('postgres', qq{DROP FOREIGN TABLE IF EXISTS same;
				CREATE FOREIGN TABLE same (_id $type, a int) SERVER mongodb OPTIONS (database 'db');
				$statement$returning; SELECT 'left ' || count(*) FROM same WHERE a IS NULL}),
				$returning ? qr/^1\n1\nleft 1$/ : qr/^left 1$/, "_id $type: $statement$returning");
		}
	}
}

# errors name the row
fails(q{INSERT INTO numbered VALUES (5001, 1), (5002, 2), (100, 3), (5003, 4)},
	qr/23505: could not insert into foreign table "numbered", row 3.*rows of this statement already written: 2/s, 'duplicate key');
fails(q{INSERT INTO numbered VALUES (5004, 1), (NULL, 2)}, qr/23502.*column "_id".*row 2 for foreign table "numbered"/s, 'NULL in _id');
fails(q{INSERT INTO things (a, n) VALUES (1, 1), (2, 1234567890123456789012345678901234567890)},
	qr/22003.*column "n".*row 2 for foreign table "things"/s, 'a numeric of 40 digits');
fails(q{INSERT INTO things (a, ts) VALUES (1, 'infinity')}, qr/22008.*column "ts".*row 1/s, 'infinity');
fails(q{INSERT INTO things (a, b) VALUES (1, repeat('x', 17000000))}, qr/54000.*too large.*row 1/s, 'a document above 16 MB');
fails(q{UPDATE numbered SET _id = 5}, qr/0A000.*_id/s, '_id cannot be assigned');

# __doc as a whole: replaced, and its _id stays
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE replaced (_id int, a int, __doc jsonb) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO replaced (_id, a) VALUES (1, 1), (2, 2), (3, 3);
	UPDATE replaced SET __doc = '{"b": {"$literal": "$a"}}' WHERE _id = 1; UPDATE replaced SET __doc = __doc || '{"c": [1]}' WHERE a = 2});
is_deeply(documents('replaced'), [ { _id => 1, b => { '$literal' => '$a' } }, { _id => 2, a => 2, c => [1] }, { _id => 3, a => 3 } ],
	'UPDATE of __doc replaces the document') or diag(explain(documents('replaced')));
fails(q{UPDATE replaced SET __doc = '{"_id": 9}' WHERE _id = 3}, qr/immutable/, 'but not its _id');
fails(q{UPDATE replaced SET __doc = NULL}, qr/23502.*__doc/s, 'NULL is no document');
fails(q{UPDATE replaced SET __doc = '{}', a = 5}, qr/0A000.*__doc.*together/s, 'nor are columns set beside it');
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE numbered OPTIONS (updatable 'false', truncatable 'false')});
fails('DELETE FROM numbered', qr/55000/, 'updatable');
fails('TRUNCATE numbered', qr/55000.*does not allow truncates/s, 'truncatable');
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE numbered OPTIONS (SET updatable 'true', SET truncatable 'true')});

# a standalone server cannot roll back, and says so
my ($status, $stdout, $stderr) = $node->psql('postgres', 'BEGIN; INSERT INTO numbered VALUES (7001, 1), (7002, 2); ROLLBACK');
like($stderr, qr/WARNING:  changes on server "mongodb" were not rolled back.*\n.*2 documents/, 'ROLLBACK warns');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD transactions 'required')});
fails('DELETE FROM numbered', qr/0A000.*has no transactions/s, 'transactions required');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (SET transactions 'auto')});

# triggers, partitions, generated columns
$node->safe_psql('postgres', q{
	TRUNCATE numbered;
	CREATE TABLE seen (what text, n bigint);
	CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO seen SELECT TG_OP || ' ' || TG_LEVEL, count(*) FROM numbered; RETURN NULL; END $$;
	CREATE FUNCTION double() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := NEW.a * 2; RETURN NEW; END $$;
	CREATE TRIGGER row_after AFTER INSERT OR DELETE ON numbered FOR EACH ROW EXECUTE FUNCTION see();
	CREATE TRIGGER row_before BEFORE INSERT OR UPDATE ON numbered FOR EACH ROW EXECUTE FUNCTION double();
	INSERT INTO numbered VALUES (1, 10), (2, 20);
	UPDATE numbered SET a = 7 WHERE _id = 2;
	DELETE FROM numbered WHERE _id = 1});
is($node->safe_psql('postgres', 'SELECT * FROM seen'), "INSERT ROW|2\nINSERT ROW|2\nDELETE ROW|1", 'AFTER triggers see what was written');
is_deeply(documents('numbered'), [ { _id => 2, a => 14 } ], 'BEFORE triggers change what is written');
$node->safe_psql('postgres', q{
	CREATE TABLE parted (_id text, k int, v text) PARTITION BY LIST (k);
	CREATE TABLE parted_here PARTITION OF parted FOR VALUES IN (1);
	CREATE FOREIGN TABLE parted_there PARTITION OF parted FOR VALUES IN (2) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO parted VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 2, 'z');
	UPDATE parted SET v = v || '!';
	UPDATE parted SET k = 2 WHERE _id = 'a';
	DELETE FROM parted WHERE _id = 'b';
	CREATE FOREIGN TABLE generated (_id int, a int, d int GENERATED ALWAYS AS (a * 2) STORED, z text DEFAULT 'zz')
		SERVER mongodb OPTIONS (database 'db');
	INSERT INTO generated (_id, a) VALUES (1, 2);
	UPDATE generated SET a = 5});
is($node->safe_psql('postgres', 'SELECT tableoid::regclass, * FROM parted ORDER BY _id'),
	"parted_there|a|2|x!\nparted_there|c|2|z!", 'a foreign table as a partition');
is_deeply(documents('generated'), [ { _id => 1, a => 5, d => 10, z => 'zz' } ], 'generated columns and defaults');
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
SKIP:
{
	skip 'PostgreSQL has no virtual generated columns', 2 if $version < 180000;
	$node->safe_psql('postgres', q{CREATE FOREIGN TABLE virtual (_id int, a int, d int GENERATED ALWAYS AS (a * 2) VIRTUAL, t text)
			SERVER mongodb OPTIONS (database 'db', collection 'virtual');
		INSERT INTO virtual (_id, a) VALUES (1, 2), (2, 3); UPDATE virtual SET a = 5, t = 'x' WHERE d = 4; UPDATE virtual SET t = d WHERE _id = 2});
	is_deeply(documents('virtual'), [ { _id => 1, a => 5, t => 'x' }, { _id => 2, a => 3, t => '6' } ], 'virtual generated columns are not stored');
	is($node->safe_psql('postgres', 'SELECT * FROM virtual WHERE d > 6 ORDER BY d; SELECT sum(d), max(d) FROM virtual; DELETE FROM virtual WHERE d = 6 RETURNING d'),
		"1|5|10|x\n16|10\n6", 'and are computed');
}
SKIP:
{
	skip 'PostgreSQL has no infinite intervals', 1 if $version < 170000;
	$node->safe_psql('postgres', q{CREATE FOREIGN TABLE intervals (_id int, i interval) SERVER mongodb OPTIONS (database 'db');
		SET IntervalStyle = sql_standard; INSERT INTO intervals VALUES (1, 'infinity'), (2, '-infinity'), (3, '1 day')});
	is_deeply([ map { $_->{i} } @{ documents('intervals') } ], [ 'infinity', '-infinity', 'P1D' ], 'infinite intervals');
}

# write_null: a NULL inside another column, or inside _id, is no value
$node->psql('postgres', q{
	CREATE FOREIGN TABLE places (_id int, address jsonb, city text OPTIONS (path 'address.city'), zip int OPTIONS (path 'address.zip'))
		SERVER mongodb OPTIONS (database 'db', write_null 'true');
	INSERT INTO places (_id, address) VALUES (1, '{"city": "Oslo"}');
	INSERT INTO places (_id) VALUES (2);
	INSERT INTO places (_id, city) VALUES (3, 'Moss');
	CREATE FOREIGN TABLE keyed (_id jsonb, k int OPTIONS (path '_id.k'), v int) SERVER mongodb OPTIONS (database 'db', write_null 'true');
	INSERT INTO keyed (v) VALUES (1);
	INSERT INTO keyed (_id) VALUES ('{"k": 2}')}, on_error_stop => 0);
is_deeply(
	documents('places'),
	[ { _id => 1, address => { city => 'Oslo' } }, { _id => 2, address => undef }, { _id => 3, address => { city => 'Moss', zip => undef } } ],
	'write_null beside a column that contains the others');
like($node->safe_psql('postgres', 'SELECT _id, v FROM keyed ORDER BY v'), qr/^\{"\$oid": "\w+"\}\|1\n\{"k": 2\}\|$/, '... and in _id');

# text forms are the same whatever the session's settings
$node->safe_psql('postgres', q{
	CREATE TYPE spans AS RANGE (subtype = interval);
	CREATE FOREIGN TABLE formed (_id int, d daterange, ts tsrange[], b box, i spans) SERVER mongodb OPTIONS (database 'db');
	SET datestyle = 'SQL, DMY'; SET intervalstyle = sql_standard; SET extra_float_digits = -3;
	INSERT INTO formed VALUES (1, daterange('2024-02-01', '2024-03-01'), ARRAY[tsrange('2024-02-01', NULL)],
		box(point(0.1::float8 + 0.2, 1), point(0, 0)), spans(interval '1 year -2 days', interval '2 years'))});
is_deeply(
	documents('formed'),
	[ { _id => 1, d => '[2024-02-01,2024-03-01)', ts => ['["2024-02-01 00:00:00",)'], b => '(0.30000000000000004,1),(0,0)',
		i => '["1 year -2 days","2 years")' } ],
	'text forms do not depend on the session');

# sums, and conditions on what may not fit, at the edges of the integer types
run_program('integers at their edges, in every BSON type', 'write/write_edges.py',
	'--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri);

# members that do not belong into Extended JSON's wrappers; an empty Timestamp
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE wrapped (_id int, j jsonb) SERVER mongodb OPTIONS (database 'db')});
fails(qq{INSERT INTO wrapped VALUES (1, '$_')}, qr/22P02.*malformed Extended JSON/s, "malformed: $_")
  foreach '{"$regularExpression": {"pattern": "a", "options": "", "x": 1}}', '{"$timestamp": {"t": 1, "i": 1, "x": 1}}',
  '{"$binary": {"base64": "AAAA", "subType": "00", "x": 1}}', '{"$binary": {"base64": "AAAA", "subType": "00"}, "$type": "00"}',
  '{"$dbPointer": {"$ref": "a", "$id": {"$oid": "5f1e2d3c4b5a69788796a5b4"}, "x": 1}}';
fails(q{INSERT INTO wrapped VALUES (2, '{"$timestamp": {"t": 0, "i": 0}}') RETURNING j}, qr/0A000.*empty Timestamp/s, 'a row that MongoDB changes cannot be returned');
is($node->safe_psql('postgres', q{INSERT INTO wrapped VALUES (3, '{"$timestamp": {"t": 0, "i": 0}}') RETURNING _id;
	SELECT _id, (j #>> '{$timestamp,t}')::bigint > 0 FROM wrapped}), "3\n3|t", 'but inserted');

# what RETURNING and triggers show is what is stored; seed 5 has type_mismatch 'null'
foreach my $seed (4, 5)
{
	run_program("stored rows, seed $seed", 'write/stored_rows.py',
		'--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri, '--seed', $seed, '--statements', 300);
}

done_testing();
