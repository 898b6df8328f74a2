# mongo_sync(): what it creates, copies and applies, and that nothing is lost or doubled when
# PostgreSQL or MongoDB fail.

use strict;
use warnings;

use IPC::Run;
use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $rounds = random_amount(5);
my $set = MongoFdwTest::ReplicaSet->new(3, arguments => [ '--oplogSize', '16' ]);
my $hosts = join(',', map { '127.0.0.1:' . $_->port } $set->members);
my $uri = "mongodb://$hosts/?replicaSet=rs&serverSelectionTimeoutMS=20000&w=majority&readConcernLevel=majority";
my $node = new_postgres('sync', 'jit = off', 'max_parallel_workers_per_gather = 0', 'restart_after_crash = on');
create_server($node, 'mongodb', $set->primary, address => undef, port => undef, transactions => 'off',
	uri => $uri);

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub refused
{
	my ($name, $sql, $sqlstate, $message) = @_;
	my (undef, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	like($stderr, qr/ERROR:  $sqlstate: .*$message/s, $name);
}

# Are both tables equal, row by row?
sub in_step
{
	my ($name, $foreign, $local, $columns) = @_;
	$columns //= '*';
	is(sql("SELECT (SELECT count(*) FROM $foreign) - (SELECT count(*) FROM $local)"), 0, "$name: as many rows");
	is(sql("SELECT $columns FROM $foreign EXCEPT SELECT $columns FROM $local"), '', "$name: all documents are rows");
	is(sql("SELECT $columns FROM $local EXCEPT SELECT $columns FROM $foreign"), '', "$name: all rows are documents");
}

# --- the first copy, and changes ---------------------------------------------------------
sql(q{CREATE SCHEMA shop;
	CREATE FOREIGN TABLE shop.c (_id int, a int, t text, d jsonb OPTIONS (path 'n'), m numeric) SERVER mongodb OPTIONS (database 'db', collection 'c');
	INSERT INTO shop.c SELECT g, g, 'text' || g, '{"deep": [1, null]}', g / 2.0 FROM generate_series(0, 2499) g});
my ($status, undef, $notices) = $node->psql('postgres', q{CALL mongo_sync('shop.c', 'public.c', 10)});
is($status, 0, 'the first call');
is(scalar(() = $notices =~ /copied [1-9]\d* rows/g), 4, 'it copies by ranges');
is(sql(q{SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'public.c'::regclass AND contype = 'p'}), 'PRIMARY KEY (_id)', 'it has a primary key');
in_step('copied', 'shop.c', 'public.c');
is(sql(q{SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'public.c'::regclass AND attnum > 0}),
	'_id integer, a integer, t text, d jsonb, m numeric', 'the local table');
is(sql(q{SELECT local_table, foreign_table, state, rows_copied, changes_applied, errors, lag_seconds < 60, last_error IS NULL FROM mongo_sync_status}),
	'c|shop.c|applying|2500|0|0|t|t', 'mongo_sync_status');
sql(q{INSERT INTO shop.c SELECT g, g, NULL, NULL, NULL FROM generate_series(3000, 3249) g; UPDATE shop.c SET t = 'changed', a = NULL WHERE _id < 250;
	DELETE FROM shop.c WHERE _id % 7 = 0; UPDATE shop.c SET a = a + 1 WHERE _id < 100; UPDATE shop.c SET d = '{"deep": {"er": 1}}' WHERE _id = 5});
$set->primary->command('{"update": "c", "updates": [{"q": {"_id": 3}, "u": {"a": 33}}, {"q": {"_id": 99999}, "u": {"$set": {"t": "upsert"}}, "upsert": true}]}', 'db');
sql(q{INSERT INTO shop.c VALUES (6000, 1); DELETE FROM shop.c WHERE _id = 6000; INSERT INTO shop.c VALUES (6000, 2), (6001, 1); DELETE FROM shop.c WHERE _id = 6001});
sql(q{CALL mongo_sync('shop.c'::regclass, 'public.c'::text, 100)});
in_step('applied', 'shop.c', 'public.c');
cmp_ok(sql('SELECT changes_applied FROM mongo_sync_data'), '>', 600, 'changes are counted');

# an update whose event does not find the document, as in a cluster after a change of its shard key
if ($set->primary->has_version('6.0'))
{
	sql(q{ALTER FOREIGN TABLE c_changes OPTIONS (ADD full_document 'whenAvailable');
		UPDATE shop.c SET t = 'moved' WHERE _id = 100; DELETE FROM shop.c WHERE _id = 101; CALL mongo_sync('shop.c', 'public.c')});
	is(sql('SELECT _id, t FROM public.c WHERE _id IN (100, 101)'), '100|moved', 'a document that has another shard key now');
	sql(q{CREATE FOREIGN TABLE shop.by_objectid (_id objectid, a int) SERVER mongodb OPTIONS (database 'db'); INSERT INTO shop.by_objectid (a) VALUES (1), (2);
		CALL mongo_sync('shop.by_objectid', 'public.by_objectid'); ALTER FOREIGN TABLE by_objectid_changes OPTIONS (ADD full_document 'whenAvailable');
		UPDATE shop.by_objectid SET a = 3 WHERE a = 1; CALL mongo_sync('shop.by_objectid', 'public.by_objectid'); CALL mongo_sync('shop.c', 'public.c')});
	is(sql('SELECT string_agg(a::text, \' \' ORDER BY a) FROM public.by_objectid'), '2 3', 'a key of another type, in one session');
	sql('ALTER FOREIGN TABLE c_changes OPTIONS (DROP full_document)');
}
in_step('and all others', 'shop.c', 'public.c');

# all tables may be published, and then must be identifiable
sql(q{SET client_min_messages = error; CREATE PUBLICATION everything FOR ALL TABLES; UPDATE shop.c SET t = 'published' WHERE _id = 102;
	CALL mongo_sync('shop.c', 'public.c'); DROP PUBLICATION everything});
is(sql('SELECT t FROM public.c WHERE _id = 102'), 'published', 'with a publication of all tables');

sql(q{CREATE FOREIGN TABLE shop.special (_id int, __collection text) SERVER mongodb OPTIONS (database 'db')});
refused('a column with the name of a special one of change streams', q{CALL mongo_sync('shop.special', 'public.special')}, '42P10', 'another meaning');
my $before = sql('SELECT position FROM mongo_sync_data');
sleep 1;
$set->primary->command('{"appendOplogNote": 1, "data": {"a": 1}}');
sql(q{CALL mongo_sync('shop.c', 'public.c')});
cmp_ok(sql('SELECT position FROM mongo_sync_data'), 'gt', $before, 'the position moves on without changes');

# --- the local table is its owner's -----------------------------------------------------
sql(q{ALTER TABLE c ADD COLUMN length int GENERATED ALWAYS AS (length(t)) STORED, ADD COLUMN noted timestamptz DEFAULT now();
	CREATE INDEX ON c (a);
	CREATE TABLE log (operation text, id int);
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.log VALUES (TG_OP, coalesce(NEW._id, OLD._id)); RETURN NULL; END$$;
	CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON c FOR EACH ROW EXECUTE FUNCTION note();
	INSERT INTO shop.c VALUES (5000, 1, 'abc'); UPDATE shop.c SET t = 'four' WHERE _id = 8; DELETE FROM shop.c WHERE _id = 9;
	CALL mongo_sync('shop.c', 'public.c')});
is(sql('SELECT * FROM log ORDER BY id'), "UPDATE|8\nDELETE|9\nINSERT|5000", 'triggers');
is(sql('SELECT length, noted IS NOT NULL FROM c WHERE _id IN (8, 5000) ORDER BY _id'), "4|t\n3|t", 'generated and further columns');
sql(q{ALTER FOREIGN TABLE shop.c ADD COLUMN z int; ALTER TABLE c ADD COLUMN z int; UPDATE shop.c SET z = 7 WHERE _id = 8; CALL mongo_sync('shop.c', 'c')});
is(sql('SELECT z FROM c WHERE _id = 8'), 7, 'a new column');
sql('DROP TRIGGER note ON c');

# changes while the collection is copied, of documents that were copied before
sql(q{CREATE FOREIGN TABLE shop.busy (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'busy');
	INSERT INTO shop.busy SELECT g, g FROM generate_series(1, 500) g;
	CREATE TABLE busy (_id int PRIMARY KEY, a int);
	CREATE FUNCTION interfere() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
		UPDATE shop.busy SET a = -1 WHERE _id = 5; DELETE FROM shop.busy WHERE _id = 6; INSERT INTO shop.busy VALUES (-5, 0); RETURN NULL; END$$;
	CREATE TRIGGER interfere AFTER INSERT ON busy FOR EACH ROW WHEN (NEW._id = 250) EXECUTE FUNCTION interfere();
	CALL mongo_sync('shop.busy', 'public.busy', 2)});
is(sql('SELECT * FROM shop.busy WHERE _id < 7 ORDER BY _id'), "-5|0\n1|1\n2|2\n3|3\n4|4\n5|-1", 'changes during the copy');
in_step('and are applied', 'shop.busy', 'public.busy');

# the primary does not know the position yet: one that is in the future
sql(q{CREATE FOREIGN TABLE shop.early (_id int) SERVER mongodb OPTIONS (database 'db', collection 'early'); INSERT INTO shop.early VALUES (1);
	SELECT mongo_sync_prepare('shop.early', 'public.early', 10);
	UPDATE mongo_sync_positions SET position = overlay(position placing upper(lpad(to_hex(extract(epoch FROM position_time)::bigint + 4), 8, '0')) FROM 3) WHERE local_table = 'early'::regclass});
my $early = background_query($node, q{CALL mongo_sync('shop.early', 'public.early')});
sleep 2;
is(sql('SELECT count(*) FROM early'), 0, 'a copy waits until the primary knows the position');
sleep 3;
$set->primary->command('{"appendOplogNote": 1, "data": {"a": 1}}');
$early->finish;
is(sql('SELECT count(*) FROM early'), 1, 'and then goes on');

# several sessions copy, each of which has begun a range before any other one ends
sql(q{CREATE FOREIGN TABLE shop.large (_id int, f int) SERVER mongodb OPTIONS (database 'db', collection 'large');
	INSERT INTO shop.large SELECT g, g FROM generate_series(1, 20000) g;
	CREATE TABLE large (_id int PRIMARY KEY, f int);
	CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_advisory_xact_lock_shared(111); RETURN NULL; END$$;
	CREATE TRIGGER wait AFTER INSERT ON large EXECUTE FUNCTION wait()});
my $gate = MongoFdwTest::Session->new($node);
$gate->ask('SELECT pg_advisory_lock(111)');
my @calls = map { background_query($node, q{SET default_transaction_isolation = 'repeatable read'; CALL mongo_sync('shop.large', 'public.large', 50)}) } 1 .. 4;
$node->poll_query_until('postgres', q{SELECT count(*) = 4 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) or die;
$gate->close;
my @said = map { ($_->finish)[2] } @calls;
unlike("@said", qr/ERROR/, 'several sessions copy');
is(scalar(grep { /copied [1-9]\d* rows/ } @said), 4, 'each a part');
is(sql(q{SELECT state, rows_copied FROM mongo_sync_status WHERE local_table = 'large'::regclass}), 'applying|20000', 'all parts');
is(sql('SELECT count(*) FROM mongo_sync_ranges'), 0, 'no range is left');
in_step('copied by several sessions', 'shop.large', 'public.large');

# two documents with one key in PostgreSQL: the key, which is added at the end, finds them
sql(q{CREATE FOREIGN TABLE shop.days (_id date, a int) SERVER mongodb OPTIONS (database 'db', collection 'days')});
$set->primary->command('{"insert": "days", "documents": [{"_id": {"$date": "2020-01-01T01:00:00Z"}, "a": 1}, {"_id": {"$date": "2020-01-01T02:00:00Z"}, "a": 2}], "writeConcern": {"w": "majority"}}', 'db');
refused('two documents of one key', q{CALL mongo_sync('shop.days', 'public.days')}, '23505', 'days_pkey');
refused('stay so', q{CALL mongo_sync('shop.days', 'public.days')}, '23505', 'days_pkey');

# a session that comes while another one adds the key applies what has changed
sql(q{CREATE FOREIGN TABLE shop.waited (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'waited');
	INSERT INTO shop.waited SELECT g, g FROM generate_series(1, 50) g; SELECT mongo_sync_prepare('shop.waited', 'public.waited', 10000)});
my $reader = MongoFdwTest::Session->new($node);
$reader->ask('BEGIN; SELECT FROM waited');
@calls = ();
foreach my $lock ('relation', 'transactionid')
{
	push @calls, background_query($node, q{CALL mongo_sync('shop.waited', 'public.waited')});
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = '$lock' AND NOT granted") or die;
}
sql('INSERT INTO shop.waited VALUES (51, 51)');
$reader->close;
unlike(($_->finish)[2], qr/ERROR/, 'a session waits for the key') foreach @calls;
in_step('and goes on', 'shop.waited', 'public.waited');

# the same while it is copied, since a document is replaced by another one of its key
sql(q{CREATE FOREIGN TABLE shop.again (_id uuid, a int) SERVER mongodb OPTIONS (database 'db', collection 'again');
	INSERT INTO shop.again SELECT md5(g::text)::uuid, g FROM generate_series(1, 10) g;
	SELECT mongo_sync_prepare('shop.again', 'public.again', 10);
	INSERT INTO again SELECT md5('1')::uuid, 0});
($status, undef, $notices) = $node->psql('postgres', q{CALL mongo_sync('shop.again', 'public.again')});
like($notices, qr/copied 10 rows.*copying again.*copied 10 rows/s, 'a key that was read twice');
in_step('copied again', 'shop.again', 'public.again');

# keys that do not fit are in some range
sql(q{CREATE FOREIGN TABLE shop.numbers (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'numbers')});
$set->primary->command('{"insert": "numbers", "documents": [' . join(', ', map { "{\"_id\": $_}" } 1 .. 299) . '], "writeConcern": {"w": "majority"}}', 'db');
foreach my $value ('{"$numberDouble": "NaN"}', '1.5', '1e12', '"x"')
{
	$set->primary->command("{\"insert\": \"numbers\", \"documents\": [{\"_id\": $value}], \"writeConcern\": {\"w\": \"majority\"}}", 'db');
	my ($out, undef, $error) = $node->psql('postgres', q{CALL mongo_sync('shop.numbers', 'public.numbers', 1)});
	like($error, qr/ERROR:  could not read field "_id"/, "the key $value does not fit");
	$set->primary->command("{\"delete\": \"numbers\", \"deletes\": [{\"q\": {\"_id\": $value}, \"limit\": 1}], \"writeConcern\": {\"w\": \"majority\"}}", 'db');
	sql(q{DROP TABLE numbers; DROP FOREIGN TABLE numbers_changes; DELETE FROM mongo_sync_data WHERE foreign_table = 'shop.numbers'::regclass;
		DELETE FROM mongo_sync_ranges; DELETE FROM mongo_sync_errors});
}
sql(q{CREATE FOREIGN TABLE shop.jsons (_id json) SERVER mongodb OPTIONS (database 'db', collection 'numbers')});
refused('a key without an order', q{CALL mongo_sync('shop.jsons', 'public.jsons')}, '42883', 'ordering operator');

# no sample can be had: jsonb has no U+0000
sql(q{CREATE FOREIGN TABLE shop.named (_id text COLLATE "C", a int) SERVER mongodb OPTIONS (database 'db', collection 'named')});
$set->primary->command('{"insert": "named", "documents": [' . join(', ', map { "{\"_id\": \"$_\\u0000\"}" } 1 .. 299) . '], "writeConcern": {"w": "majority"}}', 'db');
($status, undef, $notices) = $node->psql('postgres', q{CALL mongo_sync('shop.named', 'public.named', 1)});
like($notices, qr/copied in one transaction.*ERROR.*could not read field "_id"/s, 'keys that PostgreSQL cannot have');
sql(q{DELETE FROM mongo_sync_errors WHERE local_table = 'named'::regclass});

# a collection that is dropped, renamed or replaced is followed by what has its name
sql(q{CREATE FOREIGN TABLE shop.followed (_id int, a int) SERVER mongodb OPTIONS (database 'followed', collection 'c');
	INSERT INTO shop.followed SELECT g, 1 FROM generate_series(1, 500) g;
	CALL mongo_sync('shop.followed', 'public.followed', follow => true)});
foreach my $gone (
	[ drop => '{"drop": "c"}' ],
	[ rename => '{"renameCollection": "followed.c", "to": "followed.d"}', 'admin' ],
	[ 'replaced by $out' => '{"aggregate": "d", "pipeline": [{"$match": {"_id": {"$lt": 99}}}, {"$out": "c"}], "cursor": {}}' ],
	[ 'replaced by a rename' => '{"renameCollection": "followed.d", "to": "followed.c", "dropTarget": true}', 'admin' ],
	[ dropDatabase => '{"dropDatabase": 1}' ])
{
	my ($name, $command, $database) = @$gone;

	sql('INSERT INTO shop.followed SELECT g, 2 FROM generate_series(1001, 1010) g; UPDATE shop.followed SET a = 3 WHERE _id < 5');
	$set->primary->command($command, $database // 'followed');
	sql(q{CALL mongo_sync('shop.followed', 'public.followed', 10)});
	in_step("followed: $name", 'shop.followed', 'public.followed');
	sql('DELETE FROM shop.followed WHERE _id > 1000; INSERT INTO shop.followed VALUES (2000, 1)');
	sql(q{CALL mongo_sync('shop.followed', 'public.followed')});
	in_step("followed: after $name", 'shop.followed', 'public.followed');
	sql('DELETE FROM shop.followed WHERE _id = 2000');
}
sql(q{INSERT INTO shop.followed VALUES (1, 1); CALL mongo_sync('shop.followed', 'public.followed', follow => false)});
$set->primary->command('{"drop": "c"}', 'followed');
refused('no longer followed', q{CALL mongo_sync('shop.followed', 'public.followed')}, '55000', 'is gone: drop.*HINT:.*follow => true');
sql(q{CALL mongo_sync('shop.followed', 'public.followed', follow => true)});
is(sql('SELECT count(*) FROM followed'), 0, 'followed again');

# --- what it refuses ----------------------------------------------------------------------
refused('a transaction block', q{BEGIN; CALL mongo_sync('shop.c', 'public.c'); COMMIT}, '25001', 'mongo_sync\(\) cannot run in a transaction block.*HINT');
refused('a function', q{CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$BEGIN CALL mongo_sync('shop.c', 'public.c'); END$$; SELECT f()}, '2D000', '');
refused("arguments: $_", "CALL mongo_sync($_)", '22023', 'needs a foreign table') foreach q{NULL, 'x'}, q{'shop.c', NULL}, q{'shop.c', 'c', 0}, q{'shop.c', 'c', NULL};
refused('a name that is none', q{CALL mongo_sync('shop.c', 'a b.c; DROP TABLE c')}, '22023', 'not a valid identifier');
refused('a local source', q{CALL mongo_sync('public.c', 'public.x')}, '42809', 'cannot be the source');
sql(q{CREATE FOREIGN TABLE shop.p (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'c', pipeline '[]');
	CREATE FOREIGN TABLE shop.keyless (a int) SERVER mongodb OPTIONS (database 'db', collection 'c');
	CREATE FOREIGN TABLE shop.other (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'other');
	CREATE TABLE filled (_id int PRIMARY KEY, a int); INSERT INTO filled VALUES (1, 1);
	CREATE TABLE uniqueless (_id int, a int); CREATE VIEW view AS SELECT 1 AS _id});
refused('a pipeline', q{CALL mongo_sync('shop.p', 'public.x')}, '42809', 'cannot be the source');
refused('no _id', q{CALL mongo_sync('shop.keyless', 'public.x')}, '42809', 'cannot be the source');
refused('a table with rows', q{CALL mongo_sync('shop.other', 'public.filled')}, '55000', 'is not empty.*HINT');
refused('a view', q{CALL mongo_sync('shop.other', 'public.view')}, '42809', 'is not a table');
refused('another source', q{CALL mongo_sync('shop.other', 'public.c')}, '55006', 'is kept in step with "shop.c"');
sql(q{INSERT INTO shop.other VALUES (1, 1)});
refused('a table without a key', q{CALL mongo_sync('shop.other', 'public.uniqueless')}, '42P10', 'no unique index on column "_id".*HINT:.*ADD PRIMARY KEY \(_id\)');
sql(q{ALTER TABLE uniqueless ADD PRIMARY KEY (_id); CALL mongo_sync('shop.other', 'public.uniqueless')});
is(sql(q{TABLE uniqueless}), '1|1', 'and one with a key');
sql(q{DROP TABLE uniqueless; DROP FOREIGN TABLE uniqueless_changes; DELETE FROM mongo_sync_data WHERE foreign_table = 'shop.other'::regclass});
my $session = MongoFdwTest::Session->new($node);
$session->ask(q{BEGIN; SELECT FROM mongo_sync_positions WHERE local_table = 'c'::regclass FOR UPDATE});
refused('two sessions', q{CALL mongo_sync('shop.c', 'public.c')}, '55006', 'another session');
$session->ask('ROLLBACK');
$session->close;

# --- documents that do not fit ------------------------------------------------------------
my $insert = sub { $set->primary->command("{\"insert\": \"dirty\", \"documents\": [$_[0]], \"writeConcern\": {\"w\": \"majority\"}}", 'db') };
$insert->('{"_id": 1, "a": 1}, {"_id": 2, "a": "two"}, {"_id": "three", "a": 3}, {"_id": 4, "a": 4}');
sql(q{CREATE FOREIGN TABLE shop.dirty (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'dirty')});
refused('a document that does not fit stops the copy', q{CALL mongo_sync('shop.dirty', 'public.dirty')}, '\w+', 'dirty');
sql(q{ALTER FOREIGN TABLE shop.dirty ADD COLUMN __mismatch jsonb; CALL mongo_sync('shop.dirty', 'public.dirty')});
is(sql('SELECT * FROM dirty ORDER BY _id'), "1|1\n4|4", 'or is left out');
is(sql(q{SELECT id LIKE '%three%', mismatch->0->>'field', mismatch->0->>'type' FROM mongo_sync_errors WHERE id IS NOT NULL ORDER BY 1}), "f|a|String\nt|_id|String", 'and noted');
$insert->('{"_id": 5, "a": "five"}, {"_id": "six", "a": 6}, {"_id": 7, "a": 7}');
$set->primary->command('{"update": "dirty", "updates": [{"q": {"_id": 2}, "u": {"$set": {"a": 2}}}, {"q": {"_id": 4}, "u": {"$set": {"a": [4]}}}], "writeConcern": {"w": "majority"}}', 'db');
sql(q{CALL mongo_sync('shop.dirty', 'public.dirty')});
is(sql('SELECT * FROM dirty ORDER BY _id'), "1|1\n2|2\n7|7", 'changes that do not fit');
is(sql(q{SELECT count(*), count(*) FILTER (WHERE id = '4'), count(*) FILTER (WHERE id = '2') FROM mongo_sync_errors WHERE id IS NOT NULL}), '4|1|0', 'they are noted until they fit');
is(sql(q{SELECT errors FROM mongo_sync_status WHERE local_table = 'dirty'::regclass}), 4, 'and counted');

# left out by type_mismatch 'skip', and a stream that somebody has dropped
$insert->('{"_id": 11, "a": 1}, {"_id": 12, "a": 1}');
sql(q{CREATE FOREIGN TABLE shop.skipped (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'dirty', type_mismatch 'skip');
	CALL mongo_sync('shop.skipped', 'public.skipped'); DROP FOREIGN TABLE skipped_changes});
is(sql('SELECT * FROM skipped ORDER BY _id'), "1|1\n2|2\n7|7\n11|1\n12|1", 'documents are skipped');
$set->primary->command('{"update": "dirty", "updates": [{"q": {"_id": 11}, "u": {"$set": {"a": "x"}}}, {"q": {"_id": 12}, "u": {"$set": {"a": 2}}}], "writeConcern": {"w": "majority"}}', 'db');
sql(q{CALL mongo_sync('shop.skipped', 'public.skipped')});
is(sql('SELECT * FROM skipped ORDER BY _id'), "1|1\n2|2\n7|7\n12|2", 'also those that fitted before');

# --- types of keys ---------------------------------------------------------------------------
sql(q{CREATE FOREIGN TABLE shop.objects (_id objectid, a int) SERVER mongodb OPTIONS (database 'db', collection 'objects');
	CREATE FOREIGN TABLE shop.texts ("the key" text OPTIONS (path '_id'), "A" int OPTIONS (path 'a')) SERVER mongodb OPTIONS (database 'db', collection 'texts');
	CREATE FOREIGN TABLE shop.ctexts (_id text COLLATE "C", a int) SERVER mongodb OPTIONS (database 'db', collection 'texts');
	CREATE FOREIGN TABLE shop.doubles (_id int8, a int) SERVER mongodb OPTIONS (database 'db', collection 'doubles');
	CREATE FOREIGN TABLE shop.mixed (_id text, a int) SERVER mongodb OPTIONS (database 'db', collection 'mixed');
	CREATE FOREIGN TABLE shop.uuids (_id uuid, a int) SERVER mongodb OPTIONS (database 'db', collection 'uuids');
	CREATE FOREIGN TABLE shop.dates (_id timestamptz(0), a int) SERVER mongodb OPTIONS (database 'db', collection 'dates');
	CREATE FOREIGN TABLE shop.collated (_id text COLLATE "C", a int) SERVER mongodb OPTIONS (database 'db', collection 'collated');
	INSERT INTO shop.uuids SELECT md5(g::text)::uuid, g FROM generate_series(1, 250) g;
	INSERT INTO shop.dates SELECT timestamptz '1960-01-01' + g * interval '1 year 3 days', g FROM generate_series(1, 250) g;
	INSERT INTO shop.objects (a) SELECT g FROM generate_series(1, 250) g; INSERT INTO shop.texts SELECT chr(65 + g % 60) || g, g FROM generate_series(1, 250) g});
$set->primary->command('{"insert": "doubles", "documents": [' . join(', ', map { "{\"_id\": ${_}e15, \"a\": $_}" } 1 .. 250) . '], "writeConcern": {"w": "majority"}}', 'db');
$set->primary->command('{"insert": "mixed", "documents": [' . join(', ', map { sprintf('{"_id": {"$oid": "%024x"}}, {"_id": "%x"}', $_ * 0x123456789abc, $_ * 0x2345) } 1 .. 150) . '], "writeConcern": {"w": "majority"}}', 'db');
$set->primary->command('{"create": "collated", "collation": {"locale": "en", "strength": 2}}', 'db');
sql(q{INSERT INTO shop.collated SELECT chr(65 + g % 60) || g, g FROM generate_series(1, 250) g});
foreach my $table ('objects', 'texts', 'ctexts', 'doubles', 'mixed', 'uuids', 'dates', 'collated')
{
	($status, undef, $notices) = $node->psql('postgres', qq{CALL mongo_sync('shop.$table', 'public."A $table"', 1)});
	is((() = $notices =~ /copied/g) > 2, $table ne 'collated', "keys: ranges of $table");
	sql('DELETE FROM shop.objects WHERE a < 20; UPDATE shop.objects SET a = -a WHERE a > 200; DELETE FROM shop.texts WHERE "A" % 9 = 0; UPDATE shop.texts SET "A" = 0 WHERE "A" > 240');
	sql(qq{CALL mongo_sync('shop.$table', 'public."A $table"')});
	in_step("keys: $table", "shop.$table", "\"A $table\"");
}
sql(q{CREATE SCHEMA extensions; ALTER EXTENSION mongo_fdw SET SCHEMA extensions; DELETE FROM shop.objects WHERE a > 150;
	CALL extensions.mongo_sync('shop.objects', 'public."A objects"'); ALTER EXTENSION mongo_fdw SET SCHEMA public});
in_step('an extension that is not in the search_path', 'shop.objects', '"A objects"');

# --- names ---------------------------------------------------------------------------------------
sql(q{CREATE SCHEMA "My ""Schema"; CALL mongo_sync('shop.c', '"My ""Schema"."My Table"'); CREATE TABLE "My ""Schema".there (LIKE c INCLUDING INDEXES);
	CALL mongo_sync('shop.c', '"My ""Schema".there'); SET search_path = "My ""Schema", public; CALL mongo_sync('shop.c', 'Unquoted')});
in_step("a schema with quotes: $_", 'shop.c', qq{"My ""Schema".$_}, '_id, a, t, d, m') foreach ('"My Table"', 'there', 'unquoted');
my $long = "\xe6\x9c\xac" x 21;
sql(qq{CALL mongo_sync('shop.c', 'public."$long"')});
in_step('a name of 63 bytes', 'shop.c', qq{public."$long"}, '_id, a, t, d, m');

# --- privileges --------------------------------------------------------------------------------
# functions that somebody with CREATE in a schema of the search_path has added to PostgreSQL's
sql(q{CREATE SCHEMA shadowing; CREATE FUNCTION shadowing.overload() RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'another function is called'; END$$;
	CREATE FUNCTION shadowing.format(text, text) RETURNS text LANGUAGE sql AS 'SELECT shadowing.overload()';
	CREATE FUNCTION shadowing.format(text, text, regclass) RETURNS text LANGUAGE sql AS 'SELECT shadowing.overload()';
	CREATE FUNCTION shadowing.to_regclass(text) RETURNS regclass LANGUAGE sql AS 'SELECT shadowing.overload()::regclass';
	CREATE FUNCTION shadowing.md5(text) RETURNS text LANGUAGE sql AS 'SELECT shadowing.overload()'});
sql(q{SET search_path = shop, shadowing, public; CREATE FOREIGN TABLE found (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'found');
	INSERT INTO found VALUES (1, 1); CALL mongo_sync('found', '"found here"'); INSERT INTO found VALUES (2, 2); CALL mongo_sync('found', '"found here"')});
is(sql('SELECT * FROM shop."found here" ORDER BY _id'), "1|1\n2|2", 'the search_path is that of the names of tables only');
refused('and has to have a schema', q{SET search_path = ''; CALL public.mongo_sync('shop.found', 'other')}, '3F000', 'no schema has been selected to create "other" in');
sql(q{CREATE ROLE other LOGIN; GRANT USAGE ON SCHEMA shop TO other; GRANT CREATE ON SCHEMA public TO other});
refused('another user', q{SET ROLE other; CALL mongo_sync('shop.c', 'public.c')}, '42501', 'must be owner of table "public.c"');
refused('no privilege on the server', q{SET ROLE other; CALL mongo_sync('shop.other', 'public.x')}, '42501', 'foreign server');
is(sql(q{SET ROLE other; SELECT count(*) FROM mongo_sync_status}), 0, 'others do not see positions');
is(sql(q{SET ROLE other; WITH u AS (UPDATE mongo_sync_positions SET position = '' RETURNING 1) SELECT count(*) FROM u}), 0, 'nor change them');
refused('others cannot enter a table', q{SET ROLE other; INSERT INTO mongo_sync_positions (local_table, foreign_table, changes_table, position, position_time) VALUES ('filled', 'shop.c', 'shop.c', '', now())}, '44000', 'check option');
sql(q{GRANT USAGE ON FOREIGN SERVER mongodb TO other; CREATE USER MAPPING FOR other SERVER mongodb; GRANT SELECT ON shop.other TO other;
	SET ROLE other; CALL mongo_sync('shop.other', 'public.others_table')});
is(sql('TABLE others_table'), '1|1', 'a user with privileges');
sql(q{CREATE FUNCTION public.mongo_match(shop.c, json) RETURNS boolean LANGUAGE sql AS 'SELECT shadowing.overload()::boolean'});
sql(q{CREATE FUNCTION public.mongo_fdw_handler(int) RETURNS int LANGUAGE sql AS 'SELECT shadowing.overload()::int'; CALL mongo_sync('shop.c', 'public.overloaded', 5)});
in_step('ranges, beside a function for the row that is not of the extension', 'shop.c', 'overloaded', '_id, a, t, d, m');
sql(q{DROP FUNCTION public.mongo_match(shop.c, json), public.mongo_fdw_handler(int); CREATE FUNCTION public.equal(varchar, objectid) RETURNS boolean LANGUAGE sql AS 'SELECT shadowing.overload()::boolean';
	CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = objectid, FUNCTION = public.equal);
	CREATE TABLE short (_id varchar(24) PRIMARY KEY, a int); CALL mongo_sync('shop.objects', 'short'); UPDATE shop.objects SET a = a + 1; DELETE FROM shop.objects WHERE a < 120;
	CALL mongo_sync('shop.objects', 'short')});
is(sql('SELECT count(*), sum(a) FROM short'), sql('SELECT count(*), sum(a) FROM shop.objects'), 'a key of another type, beside an operator that is not of the extension');
sql('DROP OPERATOR public.= (varchar, objectid); DROP FUNCTION public.equal');

create_server($node, 'secondary', $set->primary, read_preference => 'secondaryPreferred');
sql(q{CREATE FOREIGN TABLE shop.behind (_id int) SERVER secondary OPTIONS (database 'db', collection 'c')});
refused('a secondary', q{CALL mongo_sync('shop.behind', 'public.behind')}, '42809', 'is not read from the primary');

# --- keys of other types, NULL, and columns of other names ---------------------------------------
sql(q{CREATE DOMAIN shop.domained AS objectid; CREATE FOREIGN TABLE shop.domain_keys (_id shop.domained, a int) SERVER mongodb OPTIONS (database 'db', collection 'domain_keys');
	INSERT INTO shop.domain_keys (a) VALUES (1), (2); CALL mongo_sync('shop.domain_keys', 'public.domain_keys');
	DELETE FROM shop.domain_keys WHERE a = 1; CALL mongo_sync('shop.domain_keys', 'public.domain_keys')});
is(sql('SELECT a FROM public.domain_keys'), 2, 'a domain over objectid');
foreach ([ 'timestamptz', 'timestamptz(0)', '2024-01-01 10:00:00.7+00' ],
	[ 'timestamptz', 'date', '2024-01-01 10:00:00.7+00' ], [ 'int', 'text', '12' ])
{
	my ($foreign, $here, $value) = @$_;
	sql(qq{CREATE FOREIGN TABLE shop.typed (_id $foreign, a int) SERVER mongodb OPTIONS (database 'db', collection 'typed'); CREATE TABLE typed (_id $here PRIMARY KEY, a int);
		INSERT INTO shop.typed VALUES ('$value', 1); CALL mongo_sync('shop.typed', 'typed'); UPDATE shop.typed SET a = 2; CALL mongo_sync('shop.typed', 'typed')});
	is(sql('SELECT a FROM typed'), 2, "$foreign as $here: changed");
	is(sql(q{DELETE FROM shop.typed; CALL mongo_sync('shop.typed', 'typed'); SELECT count(*) FROM typed}), 0, 'and deleted');
	sql(q{SELECT mongo_sync_end('typed'); DROP TABLE typed; DROP FOREIGN TABLE shop.typed});
}
# an _id that the local type lacks stops it, until the document is deleted; longer texts are other
# keys
sql('CREATE DOMAIN three AS varchar(3)');
foreach ([ 'bigint', 'int', '5000000000', '4', '22003' ], [ 'text', 'three', 'abcd', 'abc', '22001' ], [ 'numeric', 'numeric(5,2)', '123456', '4.00', '22003' ])
{
	my ($foreign, $here, $value, $stays, $state) = @$_;
	sql(qq{CREATE FOREIGN TABLE shop.typed (_id $foreign, a int) SERVER mongodb OPTIONS (database 'db', collection 'typed'); CREATE TABLE typed (_id $here PRIMARY KEY, a int);
		INSERT INTO shop.typed VALUES ('$stays', 1); CALL mongo_sync('shop.typed', 'typed'); INSERT INTO shop.typed VALUES ('$value', 2)});
	refused("$foreign as $here", q{CALL mongo_sync('shop.typed', 'typed')}, $state, '');
	is(sql(qq{DELETE FROM shop.typed WHERE _id = '$value'; CALL mongo_sync('shop.typed', 'typed'); SELECT _id FROM typed}), $stays, 'until it is deleted');
	sql(q{DELETE FROM shop.typed; SELECT mongo_sync_end('typed'); DROP TABLE typed; DROP FOREIGN TABLE shop.typed});
}
# keys that are equal in PostgreSQL
my $has_citext = sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'});
sql('CREATE EXTENSION citext') if $has_citext;
foreach ([ 'char(10)', 'x', 'x ' ], $has_citext ? [ 'citext', 'ab', 'AB' ] : ())
{
	my ($here, $old, $new) = @$_;
	sql(qq{CREATE FOREIGN TABLE shop.typed (_id text, a int) SERVER mongodb OPTIONS (database 'db', collection 'typed'); CREATE TABLE typed (_id $here PRIMARY KEY, a int);
		INSERT INTO shop.typed VALUES ('$old', 1); CALL mongo_sync('shop.typed', 'typed'); INSERT INTO shop.typed VALUES ('$new', 2); DELETE FROM shop.typed WHERE _id = '$old';
		CALL mongo_sync('shop.typed', 'typed')});
	is(sql('SELECT a FROM typed'), 2, "$here: a document renamed");
	is(sql(qq{INSERT INTO shop.typed VALUES ('$old', 3); UPDATE shop.typed SET a = 4; CALL mongo_sync('shop.typed', 'typed'); SELECT a FROM typed}), 4, 'two of one key');
	sql(q{DELETE FROM shop.typed; SELECT mongo_sync_end('typed'); DROP TABLE typed; DROP FOREIGN TABLE shop.typed});
}
is(sql(q{SELECT count(*) FROM pg_class WHERE relname = 'typed_changes'}), 0, 'mongo_sync_end() drops the stream');
refused('of tables in step only', q{SELECT mongo_sync_end('pg_class')}, '55000', 'is not kept in step');
sql(q{CREATE FOREIGN TABLE shop.any_key (_id int OPTIONS (type_mismatch 'null'), a int, __mismatch jsonb) SERVER mongodb OPTIONS (database 'db', collection 'any_key');
	CREATE TABLE any_key (_id int PRIMARY KEY, a int, __mismatch jsonb)});
$set->primary->command('{"insert": "any_key", "documents": [{"_id": 1, "a": 1}, {"_id": null, "a": 2}, {"_id": "x", "a": 3}]}', 'db');
sql(q{CALL mongo_sync('shop.any_key', 'any_key')});
$set->primary->command('{"insert": "any_key", "documents": [{"_id": 4, "a": 4}, {"_id": "y", "a": 5}]}', 'db');
sql(q{DELETE FROM shop.any_key WHERE _id = 1; CALL mongo_sync('shop.any_key', 'any_key')});
is(sql('SELECT _id, a FROM any_key'), '4|4', 'documents whose _id is null or does not fit, and a column __mismatch');
sql(q{SELECT mongo_sync_end('any_key')});

# --- what anybody may do -------------------------------------------------------------------------
foreach my $relation (qw(mongo_sync_positions mongo_sync_data mongo_sync_errors mongo_sync_ranges mongo_sync_status))
{
	refused("nobody locks $relation", "SET ROLE other; BEGIN; LOCK TABLE $relation", '42501', 'permission denied');
}
my $holder = MongoFdwTest::Session->new($node);
$holder->ask(q{SET ROLE other; SELECT pg_advisory_lock(hashtext('mongo_sync'), 'shop.c'::regclass::oid::int)});
sql(q{SET lock_timeout = '5s'; CALL mongo_sync('shop.c', 'public.c')});
$holder->close;
refused('nobody uses the trigger', q{SET ROLE other; CREATE TABLE triggered (a int); CREATE TRIGGER t BEFORE UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION mongo_sync_delete_row()}, '42501', 'permission denied');
sql(q{SET ROLE other; SELECT mongo_sync_end('others_table'); CALL mongo_sync('shop.other', 'public.others_too'); SELECT mongo_sync_end('others_too')});
sql(q{CREATE TABLE victim (); SET ROLE other; INSERT INTO mongo_sync_positions (local_table, foreign_table, changes_table, position, position_time, key_at_end)
	VALUES ('others_too', 'shop.other', 'victim', '', now(), false); RESET ROLE; SELECT mongo_sync_end('others_too')});
is(sql(q{SELECT to_regclass('victim')}), 'victim', 'a table of another is not dropped');
is(sql(q{SELECT count(*) FROM mongo_sync_data WHERE local_table IN ('others_table'::regclass, 'others_too'::regclass)}), 0, 'an owner ends it');

# --- dumps ---------------------------------------------------------------------------------------
my $dump = $node->basedir . '/dump.sql';
sql(q{SELECT mongo_sync_prepare('shop.other', 'public.begun', 10)});
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'a dump');
sql('CREATE DATABASE restored');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'is restored');
sql(q{INSERT INTO shop.c VALUES (8000, 8, 'after the dump')});
$node->safe_psql('restored', q{CALL mongo_sync('shop.c', 'public.c')});
is($node->safe_psql('restored', 'SELECT t FROM c WHERE _id = 8000'), 'after the dump', 'and brought into step');
is($node->safe_psql('restored', q{SELECT rows_copied FROM mongo_sync_status WHERE local_table = 'c'::regclass}), 2500, 'without another copy');
is($node->safe_psql('restored', q{SELECT count(*) FROM mongo_sync_data WHERE local_table = 'begun'::regclass}), 0, 'a copy that has not ended is not dumped');
$node->safe_psql('restored', q{DROP TABLE begun; DROP FOREIGN TABLE begun_changes; CALL mongo_sync('shop.other', 'public.begun')});
is($node->safe_psql('restored', 'TABLE begun'), '1|1', 'and begins again');
sql(q{DELETE FROM mongo_sync_positions WHERE local_table = 'begun'::regclass});
is(sql(q{SET ROLE other; SELECT count(*) > 0 FROM mongo_sync_data}), 't', 'whoever dumps a database can read the positions');

# --- crashes, while several clients write --------------------------------------------------------
$set->primary->command('{"drop": "c"}', 'db');
refused('a collection that was dropped', q{CALL mongo_sync('shop.c', 'public.c')}, '55000', 'is gone: drop.*HINT');
refused('it stays so', q{CALL mongo_sync('shop.c', 'public.c')}, '55000', 'is gone: drop');
is(sql(q{SELECT state FROM mongo_sync_status WHERE local_table = 'c'::regclass}), 'stopped by drop', 'the status says so');
sql(q{DELETE FROM mongo_sync_positions WHERE local_table = 'c'::regclass; DROP FOREIGN TABLE c_changes; DROP TABLE c});
# the program gets all states of a document from MongoDB 6.0
if (!$set->primary->has_version('6.0'))
{
	done_testing();
	exit;
}
my $out = '';
my $writer = IPC::Run::start(
	[ python('programs/sync_writes.py', '--ports', join(',', map { $_->port } $set->members), '--dsn', $node->connstr('postgres'), '--seed', random_seed(1)) ],
	'<', \undef, '>', \$out, '2>&1');
eval { $writer->pump until $out =~ /^ports .*\n/; 1 } or die "$@$out";
$out =~ /^ports (.*)\n/;
my $members = join(',', map { "127.0.0.1:$_" } split /,/, $1);
sql("ALTER SERVER mongodb OPTIONS (SET uri '" . ($uri =~ s/$hosts/$members/r) . "')");
foreach my $round (1 .. $rounds)
{
	# the first round, and each after that of another collection, copies by ranges, which are
	# so small that many of them pass between two cuts
	my $batch = $round % 5 == 1 ? 3 : 20 + int(rand 200);
	my @calls = map { background_query($node, "CALL mongo_sync('shop.c', 'public.c', $batch, follow => true);\n" x 6) } 1 .. 2;

	sleep 0.3 + rand 1;
	if ($round % 5 == 1)
	{
		$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM mongo_sync_data WHERE local_table = to_regclass('public.c') AND rows_copied > 0});
		my $pid = sql(q{SELECT pid FROM pg_stat_activity WHERE query LIKE 'CALL mongo_sync%' AND pid <> pg_backend_pid() LIMIT 1});
		kill 'KILL', $pid if $pid;
		# PostgreSQL restarts
		sleep 0.2 until eval { ($node->psql('postgres', 'SELECT 1'))[0] == 0 };
	}
	elsif ($round % 5 == 2)
	{
		$node->stop('immediate');
		$node->start;
	}
	elsif ($round % 5 == 3)
	{
		$set->step_down;
	}
	elsif ($round % 5 == 4)
	{
		my $primary = $set->primary;
		$primary->kill;
		sleep rand 3;
		$primary->start;
	}
	else
	{
		$writer->signal('USR1');
	}
	$_->finish foreach @calls;
}
$writer->signal('TERM');
$writer->finish;
like($out, qr/^[1-9]\d* states of rows, 0 that no document had; [1-9]\d* cuts$/m, 'each row is a state that its document had');
note($out);
sql("ALTER SERVER mongodb OPTIONS (SET uri '$uri')");
is(sql(q{SELECT count(*) > 0 FROM shop.c}), 't', 'there are documents') or diag($out);
sql(q{CALL mongo_sync('shop.c', 'public.c')});
cmp_ok(sql('SELECT count(*) FROM c'), '>', 100, 'there are rows');
in_step("after $rounds crashes", 'shop.c', 'public.c', '_id, a, t, d, m, z');
cmp_ok(sql(q{SELECT changes_applied FROM mongo_sync_data WHERE local_table = 'c'::regclass}), '>', 100, 'changes were applied meanwhile');

done_testing();
