# Synchronized tables: what once lost rows, kept old ones, or stopped for good.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(1, arguments => [ '--oplogSize', '64' ]);
my $mongod = $set->primary;
my $node = new_postgres('sync_faults', 'max_prepared_transactions = 2', 'wal_level = logical');
create_server($node, 'mongodb', $mongod, read_concern => 'majority');

sub mongo { return $mongod->command($_[0], $_[1] // 'db') }
sub synchronize { my ($local) = @_; sql("CALL mongo_sync.sync('shop.$local', 'public.$local')") }
sub equal
{
	my ($name, $table, $columns) = @_;
	$columns //= '*';
	is(sql("SELECT (SELECT count(*) FROM shop.$table), (SELECT count(*) FROM (SELECT $columns FROM shop.$table EXCEPT SELECT $columns FROM public.$table) a),"
			. " (SELECT count(*) FROM public.$table)"), sql("SELECT count(*), 0, count(*) FROM shop.$table"), $name);
}
sub state_of { return sql("SELECT state || coalesce(': ' || reason, '') FROM mongo_sync.members WHERE target = 'public.$_[0]'::regclass") }

sql('CREATE EXTENSION mongo_sync; CREATE SCHEMA shop');

# --- keys beyond 32 bits ------------------------------------------------------------------
sql(q{CREATE FOREIGN TABLE shop.big (_id numeric, a int) SERVER mongodb OPTIONS (database 'db')});
mongo('{"insert": "big", "documents": [{"_id": 1, "a": 1}]}');
synchronize('big');
mongo('{"insert": "big", "documents": [{"_id": {"$numberLong": "' . 2**40 . '"}, "a": 2}, {"_id": {"$numberDouble": "4503599627370497.5"}, "a": 3}, {"_id": {"$numberDecimal": "1E33"}, "a": 4}]}');
synchronize('big');
mongo("{\"update\": \"big\", \"updates\": [{\"q\": {\"a\": $_}, \"u\": {\"\$inc\": {\"a\": 10}}}]}"), synchronize('big') foreach 4, 3, 2;
equal('keys that are Int64, Double and Decimal128', 'big');

# --- columns ------------------------------------------------------------------------------
sql(q{CREATE FOREIGN TABLE shop.c (_id int, a int, t text, __doc jsonb) SERVER mongodb OPTIONS (database 'db');
	CREATE TABLE public.c (_id int PRIMARY KEY, a int, t text, __doc jsonb, noted int DEFAULT 7)});
mongo('{"insert": "c", "documents": [{"_id": 1, "a": 1, "t": "x", "b": 5}, {"_id": 2, "a": 2, "t": "y", "b": 6}]}');
synchronize('c');
equal('with __doc', 'c', '_id, a, t, __doc');
sql(q{CREATE TABLE fired (what text); CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.fired VALUES (TG_OP || ' ' || mongo_sync.cluster_time()); RETURN NULL; END$$;
	ALTER FOREIGN TABLE shop.c DROP COLUMN __doc; ALTER TABLE c DROP COLUMN __doc; CALL mongo_sync.recopy('c');
	CREATE TRIGGER fire AFTER INSERT OR UPDATE OR DELETE ON c FOR EACH STATEMENT EXECUTE FUNCTION fire()});
mongo('{"update": "c", "updates": [{"q": {}, "u": {"$inc": {"b": 1}}, "multi": true}]}');
synchronize('c');
is(sql('SELECT count(*) FROM fired'), 0, 'a field that is no column changes no row and fires no trigger');
mongo('{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}]}');
synchronize('c');
like(sql('SELECT what FROM fired'), qr/^UPDATE \d+:\d+$/, 'one that is does, and the trigger knows the cluster time');
sql('ALTER FOREIGN TABLE shop.c RENAME COLUMN a TO b');
mongo('{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$inc": {"b": 1}}}]}');
raises('a renamed column', q{CALL mongo_sync.sync('shop.c', 'c')}, '55000', 'no column "b".*Add the column');
sql('ALTER TABLE c RENAME COLUMN a TO b');
raises('and in both tables', q{CALL mongo_sync.sync('shop.c', 'c')}, '55000', 'columns or options have changed.*recopy');
is(state_of('c'), 'stopped: columns or options have changed', 'stands in the state');
sql(q{CALL mongo_sync.recopy('c')});
equal('copied again, it has the new values', 'c', '_id, b, t');
is(sql('SELECT min(noted) FROM c'), 7, 'a column of its own has its default');
sql(q{ALTER FOREIGN TABLE shop.c OPTIONS (ADD collection 'other')});
mongo('{"insert": "other", "documents": [{"_id": 1, "b": 100}]}');
mongo('{"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$inc": {"b": 1}}}]}');
raises('another collection', q{CALL mongo_sync.sync('shop.c', 'c')}, '55000', 'columns or options have changed');
sql(q{CALL mongo_sync.recopy('c')});
equal('and its copy', 'c', '_id, b, t');

# --- what is refused ------------------------------------------------------------------------
sql(q{CREATE FOREIGN TABLE shop.r (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'c')});
foreach (
	[ 'an unlogged table', 'CREATE UNLOGGED TABLE r (_id int PRIMARY KEY, a int)', 'temporary or unlogged' ],
	[ 'no key', 'CREATE TABLE r (_id int, a int)', 'no unique index.*ADD PRIMARY KEY' ],
	[ 'another type', 'CREATE TABLE r (_id int PRIMARY KEY, a bigint)', 'has type bigint, and integer' ],
	[ 'a generated column', 'CREATE TABLE r (_id int PRIMARY KEY, a int GENERATED ALWAYS AS (1) STORED)', 'is generated' ],
	[ 'a column without a value', 'CREATE TABLE r (_id int PRIMARY KEY, a int, x int NOT NULL)', 'may not be NULL' ],
	[ 'policies that bind the owner', 'CREATE TABLE r (_id int PRIMARY KEY, a int); ALTER TABLE r ENABLE ROW LEVEL SECURITY; ALTER TABLE r FORCE ROW LEVEL SECURITY', 'row-level security' ],
	[ 'a rule', 'CREATE TABLE r (_id int PRIMARY KEY, a int); CREATE RULE x AS ON INSERT TO r DO INSTEAD NOTHING', 'has rules' ],
	[ 'ON DELETE CASCADE', 'CREATE TABLE r (_id int PRIMARY KEY, a int REFERENCES c ON DELETE CASCADE)', 'foreign key.*NO ACTION' ],
	[ 'a partition key that is not _id', 'CREATE TABLE r (_id int, a int, UNIQUE (_id, a)) PARTITION BY LIST (a)', 'no unique index|partitioned by' ],
	[ 'a view', 'CREATE VIEW r AS SELECT 1 AS _id, 1 AS a', 'is not a table' ])
{
	my ($name, $sql, $message) = @$_;
	sql($sql);
	raises($name, q{CALL mongo_sync.sync('shop.r', 'r')}, '55000', $message);
	sql($sql =~ /VIEW/ ? 'DROP VIEW r' : 'DROP TABLE r');
}
raises('within a transaction', q{BEGIN; CALL mongo_sync.sync('shop.r', 'r')}, '25001', 'transaction block');
raises('no such collection', q{CREATE FOREIGN TABLE shop.none (_id int) SERVER mongodb OPTIONS (database 'db'); CALL mongo_sync.sync('shop.none', 'none')}, '42P01', 'no collection "db.none"');
mongo('{"create": "capped", "capped": true, "size": 10000}');
raises('a capped collection', q{CREATE FOREIGN TABLE shop.capped (_id int) SERVER mongodb OPTIONS (database 'db'); CALL mongo_sync.sync('shop.capped', 'capped')}, '(42809|0A000)', 'capped');
mongo('{"create": "over_c", "viewOn": "c", "pipeline": []}');
raises('a view of MongoDB', q{CREATE FOREIGN TABLE shop.over_c (_id int) SERVER mongodb OPTIONS (database 'db'); CALL mongo_sync.sync('shop.over_c', 'over_c')},
	'42809', '"db.over_c" is a view.*Synchronize the collection that a view is made of');

# --- keys ---------------------------------------------------------------------------------
mongo('{"insert": "k", "documents": [{"_id": {"$oid": "64d29dd2a752a1e3bb9c9b11"}, "a": 1}, {"_id": "y", "a": 2}]}');
sql(q{CREATE FOREIGN TABLE shop.k (_id text, a int, __mismatch jsonb) SERVER mongodb OPTIONS (database 'db')});
synchronize('k');
equal('ObjectIds and strings', 'k', '_id, a');
mongo('{"insert": "k", "documents": [{"_id": "64d29dd2a752a1e3bb9c9b11", "a": 3}]}');
raises('two documents with one key', q{CALL mongo_sync.sync('shop.k', 'k')}, '23505', 'two documents.*64d29dd2a752a1e3bb9c9b11');
mongo('{"delete": "k", "deletes": [{"q": {"_id": {"$oid": "64d29dd2a752a1e3bb9c9b11"}}, "limit": 1}]}');
synchronize('k');
is(sql(q{SELECT a FROM k WHERE _id = '64d29dd2a752a1e3bb9c9b11'}), 3, 'one is deleted: the row of the other');
my $long = join('', map { chr(97 + int(rand(26))) } 1 .. 6000);
mongo("{\"insert\": \"k\", \"documents\": [{\"_id\": null, \"a\": 5}, {\"_id\": \"$long\", \"a\": 6}, {\"_id\": 7, \"a\": 7}, {\"_id\": \"misfit\", \"a\": \"x\"}]}");
synchronize('k');
is(sql('SELECT count(*) FROM k'), 2, 'documents that can have no row have none');
is(sql('SELECT count(*), bool_or(id = \'null\'), bool_or(id = \'7\'), bool_or(id = \'"misfit"\') FROM mongo_sync.unfit'), '4|t|t|t', 'and are noted');
is(sql(q{CREATE ROLE watcher IN ROLE pg_monitor; SET ROLE watcher; SELECT problem FROM mongo_sync.health WHERE state = 'documents without a row'; RESET ROLE}),
	'4 documents have no row here', 'of which pg_monitor sees the number');
mongo('{"update": "k", "updates": [{"q": {"a": 6}, "u": {"$inc": {"b": 1}}}, {"q": {"_id": 7}, "u": {"$inc": {"b": 1}}}, {"q": {"_id": "misfit"}, "u": {"$set": {"a": 8}}}]}');
synchronize('k');
is(sql('SELECT count(*) FROM mongo_sync.unfit'), 3, 'once, and not when they fit');
mongo('{"delete": "k", "deletes": [{"q": {"_id": {"$in": [null, 7]}}, "limit": 0}]}');
synchronize('k');
is(sql('SELECT count(*) FROM mongo_sync.unfit'), 1, 'nor when they are gone');
sql('ALTER FOREIGN TABLE shop.k DROP COLUMN __mismatch');
mongo('{"insert": "k", "documents": [{"_id": null, "a": 5}]}');
raises('without __mismatch it stops', q{CALL mongo_sync.sync('shop.k', 'k')}, 'HV004', 'can have no row.*__mismatch');
mongo('{"delete": "k", "deletes": [{"q": {"_id": null}, "limit": 0}]}');
synchronize('k');

mongo('{"insert": "d", "documents": [{"_id": {"a": 1, "b": 2}, "n": 1}, {"_id": {"$date": "2026-05-01T10:00:00Z"}, "n": 2}, {"_id": {"$binary": {"base64": "AAEC", "subType": "00"}}, "n": 3}, {"_id": 1, "n": 4}]}');
sql(q{CREATE FOREIGN TABLE shop.d (_id jsonb, n int) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE shop.t (_id timestamp, n int) SERVER mongodb OPTIONS (database 'db')});
synchronize('d');
equal('keys of any type', 'd');
mongo('{"update": "d", "updates": [{"q": {}, "u": {"$inc": {"n": 10}}, "multi": true}]}');
mongo('{"delete": "d", "deletes": [{"q": {"_id": 1}, "limit": 1}]}');
synchronize('d');
equal('and their changes', 'd');
mongo('{"insert": "t", "documents": [{"_id": {"$date": "2026-05-01T10:00:00Z"}, "n": 2}]}');
sql(q{SET TimeZone = 'Asia/Tokyo'; CALL mongo_sync.sync('shop.t', 'public.t')});
mongo('{"update": "t", "updates": [{"q": {}, "u": {"$inc": {"n": 10}}, "multi": true}]}');
sql(q{SET TimeZone = 'America/Lima'; SET DateStyle = 'German'; CALL mongo_sync.sync('shop.t', 'public.t')});
equal('a timestamp as the key, under several time zones', 't');

# --- unique constraints, foreign keys, arrays ----------------------------------------------
sql(q{CREATE SCHEMA orders; CREATE SCHEMA reports;
	CREATE FOREIGN TABLE orders.orders (_id int, place int) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE orders.lines (_id int, n int, parts int OPTIONS (path 'lines.count')) SERVER mongodb OPTIONS (database 'db', collection 'orders', unwind 'lines', ordinality 'n');
	CREATE FOREIGN TABLE orders.parts (_id int, n int, m int, part text OPTIONS (path 'lines.parts')) SERVER mongodb OPTIONS (database 'db', collection 'orders', unwind 'lines, lines.parts', ordinality 'n, m');
	CREATE FOREIGN TABLE orders.places (_id int, name text) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE orders.changes (__operation text) SERVER mongodb OPTIONS (database 'db', collection 'orders', change_stream 'collection');
	CREATE TABLE reports.lines (_id int, n int, parts int, PRIMARY KEY (_id, n));
	CREATE TABLE reports.orders (_id int PRIMARY KEY, place int, UNIQUE (place) DEFERRABLE);
	CREATE TABLE reports.places (_id int PRIMARY KEY, name text);
	ALTER TABLE reports.lines ADD FOREIGN KEY (_id) REFERENCES reports.orders;
	ALTER TABLE reports.orders ADD FOREIGN KEY (place) REFERENCES reports.places});
mongo('{"insert": "places", "documents": [{"_id": 1, "name": "a"}, {"_id": 2, "name": "b"}, {"_id": 3, "name": "c"}]}');
mongo('{"insert": "orders", "documents": [{"_id": 1, "place": 1, "lines": [{"count": 2, "parts": ["x", "y"]}, {"count": 1, "parts": ["z"]}]}, {"_id": 2, "place": 2, "lines": []}, {"_id": 3, "place": 3}]}');
sql(q{CALL mongo_sync.sync_schema('orders', 'reports')});
sub reports
{
	my ($name) = @_;
	foreach my $table ('orders', 'lines', 'parts', 'places')
	{
		is(sql("SELECT count(*) FROM (SELECT * FROM orders.$table EXCEPT SELECT * FROM reports.$table) x"), 0, "$name: $table");
		is(sql("SELECT count(*) FROM reports.$table"), sql("SELECT count(*) FROM orders.$table"), "$name: as many $table");
	}
}
reports('a schema');
is(sql(q{SELECT count(*), count(DISTINCT group_id) FROM mongo_sync.members WHERE foreign_table IN (SELECT oid FROM pg_class WHERE relnamespace = 'orders'::regnamespace)}), '4|1', 'is one group');
mongo('{"update": "orders", "updates": [{"q": {"_id": 1}, "u": {"$set": {"place": 2, "lines.0.parts": ["y", "x", "w"]}}}, {"q": {"_id": 2}, "u": {"$set": {"place": 1, "lines": [{"count": 0, "parts": []}, {"count": 5}]}}}]}');
mongo('{"delete": "places", "deletes": [{"q": {"_id": 3}, "limit": 1}]}');
mongo('{"update": "orders", "updates": [{"q": {"_id": 3}, "u": {"$set": {"place": 4}}}]}');
mongo('{"insert": "places", "documents": [{"_id": 4, "name": "d"}]}');
sql(q{CALL mongo_sync.sync_schema('orders', 'reports')});
reports('swapped unique values, and a parent that moves');
mongo('{"delete": "orders", "deletes": [{"q": {"_id": 1}, "limit": 1}]}');
sql(q{CALL mongo_sync.sync_schema('orders', 'reports')});
reports('a document with arrays is deleted');
sql(q{CREATE FOREIGN TABLE orders.late (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'c'); CALL mongo_sync.sync_schema('orders', 'reports')});
is(sql('SELECT count(*) FROM reports.late'), sql('SELECT count(*) FROM orders.late'), 'a new table joins');
mongo('{"aggregate": "orders", "pipeline": [{"$match": {"_id": {"$ne": 2}}}, {"$out": "orders"}], "cursor": {}}');
raises('tables with foreign keys are stopped', q{CALL mongo_sync.sync_schema('orders', 'reports')}, '55000', 'not synchronized any more');
raises('and copied together', q{CALL mongo_sync.recopy('reports.orders')}, '55000', 'parts is not synchronized any more');
sql(q{CALL mongo_sync.recopy('reports.parts')});
reports('copied again');

# --- deleted documents keep their rows -------------------------------------------------------
sql(q{CREATE FOREIGN TABLE shop.kept (_id int, a int) SERVER mongodb OPTIONS (database 'db'); CREATE TABLE kept (_id int PRIMARY KEY, a int, gone timestamptz)});
mongo('{"insert": "kept", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}');
raises("deleted_at is '$_'", "CALL mongo_sync.sync('shop.kept', 'kept', deleted_at => '$_')", '42703', 'no column "' . $_ . '" of its own') foreach qw(a nothing);
sql(q{CALL mongo_sync.sync('shop.kept', 'kept', deleted_at => 'gone')});
mongo('{"delete": "kept", "deletes": [{"q": {"_id": 1}, "limit": 1}]}');
sql(q{CALL mongo_sync.sync('shop.kept', 'kept')});
is(sql(q{SELECT _id, a, gone > now() - interval '1 minute' FROM kept ORDER BY _id}), "1|1|t\n2|2|", 'a deleted document keeps its row');
mongo('{"insert": "kept", "documents": [{"_id": 1, "a": 5}]}');
sql(q{CALL mongo_sync.sync('shop.kept', 'kept')});
is(sql(q{SELECT _id, a, gone FROM kept ORDER BY _id}), "1|5|\n2|2|", 'until it is there again');

# --- collections that go ---------------------------------------------------------------------
sql(q{CREATE FOREIGN TABLE shop.g (_id int, a int) SERVER mongodb OPTIONS (database 'db')});
mongo('{"insert": "g", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}');
synchronize('g');
mongo('{"aggregate": "g", "pipeline": [{"$set": {"a": 9}}, {"$out": "g"}], "cursor": {}}');
raises('$out', q{CALL mongo_sync.sync('shop.g', 'g')}, '55000', 'not synchronized any more.*recopy');
is(sql('SELECT count(*) FROM g'), 2, 'its rows stay');
sql(q{CALL mongo_sync.recopy('g')});
equal('copied again', 'g');
sql(q{CALL mongo_sync.sync('shop.g', 'g', follow => true)});
mongo('{"aggregate": "g", "pipeline": [{"$set": {"a": 10}}, {"$out": "g"}], "cursor": {}}');
sql(q{CALL mongo_sync.sync('shop.g', 'g')});
equal('follow copies by itself', 'g');
mongo('{"drop": "g"}');
raises('drop', q{CALL mongo_sync.sync('shop.g', 'g')}, '55000', 'drop');
mongo('{"insert": "g", "documents": [{"_id": 5, "a": 5}]}');
sql(q{CALL mongo_sync.sync('shop.g', 'g')});
equal('a new collection of the name is followed', 'g');

# a collection whose end comes after more changes than two batches have
sql(q{CREATE SCHEMA gone; CREATE SCHEMA gone_local});
sql("CREATE FOREIGN TABLE gone.$_ (_id int, a int) SERVER mongodb OPTIONS (database 'db')") foreach qw(g1 g2);
sql('INSERT INTO gone.g1 SELECT i, 0 FROM generate_series(1, 25000) i; INSERT INTO gone.g2 VALUES (1, 1), (2, 2)');
sql(q{CALL mongo_sync.sync_schema('gone', 'gone_local')});
sql('UPDATE gone.g2 SET a = 3 WHERE _id = 1');
sql('UPDATE gone.g1 SET a = 1');
mongo('{"drop": "g2"}');
raises('a drop that comes much later', q{SET statement_timeout = '60s'; CALL mongo_sync.sync_schema('gone', 'gone_local')}, '55000', 'g2 is not synchronized any more: drop');
is(sql('SELECT min(a), count(*) FROM gone_local.g1'), '1|25000', 'the other table has all changes');
is(sql('SELECT count(*) FROM gone_local.g2'), 2, 'and the rows stay');

# --- copies that fail -----------------------------------------------------------------------
mongo("{\"insert\": \"$_\", \"documents\": [{\"_id\": 1, \"a\": " . (/^z/ ? 1 : '"x"') . "}]}") foreach qw(a1 a2 a3 a4 a5 z);
sql("CREATE SCHEMA several; CREATE SCHEMA several_local");
sql("CREATE FOREIGN TABLE several.$_ (_id int, a int) SERVER mongodb OPTIONS (database 'db')") foreach qw(a1 a2 a3 a4 a5 z);
raises('tables of which five cannot be copied', q{CALL mongo_sync.sync_schema('several', 'several_local')}, '\w+', 'field "a"');
is(sql('SELECT * FROM several_local.z'), '1|1', 'the sixth is copied nevertheless');
mongo('{"update": "z", "updates": [{"q": {}, "u": {"$inc": {"a": 1}}}]}');
raises('they fail again', q{CALL mongo_sync.sync_schema('several', 'several_local')}, '\w+', 'field "a"');
is(sql('SELECT * FROM several_local.z'), '1|2', 'and its changes are applied');
sql("SELECT mongo_sync.stop('several_local.$_')") foreach qw(a2 a3 a4 a5);
mongo('{"update": "a1", "updates": [{"q": {}, "u": {"$set": {"a": 3}}}]}');
sql(q{CALL mongo_sync.recopy('several_local.a1')});
is(sql('SELECT * FROM several_local.a1'), '1|3', 'what was never copied can be copied again');

sql(q{CREATE FOREIGN TABLE shop.interrupted (_id int, a int) SERVER mongodb OPTIONS (database 'db')});
mongo('{"insert": "interrupted", "documents": [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}]}');
$mongod->fail_command(1, 8, 'aggregate');
raises('a stream that cannot be opened', q{CALL mongo_sync.sync('shop.interrupted', 'interrupted')}, '\w+', 'MongoDB error 8 ');
is(sql(q{SELECT count(*) FROM interrupted}), 2, 'all is copied, but the key is not added yet');
mongo('{"delete": "interrupted", "deletes": [{"q": {"_id": 2}, "limit": 1}]}');
sql(q{CALL mongo_sync.recopy('interrupted')});
equal('it can be copied again', 'interrupted');
is(sql(q{SELECT count(*) FROM pg_index WHERE indrelid = 'interrupted'::regclass AND indisprimary}), 1, 'and gets its key');

# each opening of the stream looks for the last event, too
$mongod->fail_command(4, 8, 'aggregate');
raises('a copy that is made, and does not replace the rows yet', q{CALL mongo_sync.recopy('interrupted')}, '\w+', 'MongoDB error 8 ');
sql(q{ALTER FOREIGN TABLE shop.interrupted ALTER COLUMN a OPTIONS (path 'b')});
raises('is of no use after a column means another field', q{CALL mongo_sync.sync('shop.interrupted', 'interrupted')}, '55000', 'columns or options have changed');
is(sql('SELECT * FROM interrupted'), '1|1', 'the rows are those of before');
sql(q{CALL mongo_sync.recopy('interrupted')});
equal('until it is copied again', 'interrupted');

# --- a first call that waits for MongoDB ------------------------------------------------------
sql(q{CREATE FOREIGN TABLE shop.slow (_id int, a int) SERVER mongodb OPTIONS (database 'db')});
mongo('{"insert": "slow", "documents": [{"_id": 1, "a": 1}]}');
mongo('{"insert": "kept", "documents": [{"_id": 7, "a": 7}]}');
synchronize('kept');
$mongod->block_commands(6000, 'find');
my $first = background_query($node, q{CALL mongo_sync.sync('shop.slow', 'slow')});
ok($node->poll_query_until('postgres', q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'CALL mongo_sync.sync(''shop.slow%' AND wait_event_type = 'Extension')}),
	'a first call waits');
sql(q{SET lock_timeout = '1s'; CALL mongo_sync.sync('shop.kept', 'kept')});
is(sql(q{SELECT a FROM kept WHERE _id = 7}), 7, 'and holds up no other group');
$mongod->unblock_commands;
unlike(($first->finish)[2], qr{ERROR}, 'it ends');
equal('with all rows', 'slow');

# --- publications, and a trigger that suppresses a row ------------------------------------------
sql(q{CREATE PUBLICATION everything FOR ALL TABLES});
mongo('{"insert": "g", "documents": [{"_id": 6, "a": 6}]}');
synchronize('g');
equal('with a publication of all tables', 'g');
sql(q{DROP PUBLICATION everything; CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER suppress BEFORE UPDATE ON g FOR EACH ROW EXECUTE FUNCTION suppress()});
mongo('{"update": "g", "updates": [{"q": {"_id": 6}, "u": {"$set": {"a": 7}}}]}');
raises('a trigger that suppresses a row', q{CALL mongo_sync.sync('shop.g', 'g')}, '09000', 'trigger of the table has returned NULL');
sql('DROP TRIGGER suppress ON g');
synchronize('g');
equal('and without it', 'g');

# --- pause, resume, stop ----------------------------------------------------------------------
sql(q{SELECT mongo_sync.pause('g')});
mongo('{"update": "g", "updates": [{"q": {"_id": 6}, "u": {"$set": {"a": 8}}}]}');
synchronize('g');
is(sql('SELECT a FROM g WHERE _id = 6'), 7, 'paused');
sql(q{SELECT mongo_sync.resume('g')});
synchronize('g');
is(sql('SELECT a FROM g WHERE _id = 6'), 8, 'resumed');
sql(q{SELECT mongo_sync.stop('g')});
raises('stopped', q{SELECT mongo_sync.pause('g')}, '55000', 'is not synchronized');
synchronize('g');
equal('begun again over its rows', 'g');
my $dropped = sql(q{SELECT 'g'::regclass::oid});
sql('DROP TABLE g');
raises("a dropped table: $_", "SELECT mongo_sync.$_($dropped)", '42P01', 'the table does not exist any more') foreach qw(pause resume stop compare);
is(sql(q{SELECT (SELECT count(*) FROM mongo_sync.status WHERE foreign_table = 'shop.g'::regclass), (SELECT count(*) FROM mongo_sync.health WHERE object ~ '\mg\M')}),
	'0|0', 'which ends its synchronization');
synchronize('g');
equal('a new table', 'g');

# --- whole databases, and all that a role owns --------------------
mongo('{"insert": "c", "documents": [{"_id": 1, "a": 1}]}', 'gone');
sql(q{CREATE FOREIGN TABLE shop.gone (_id int, a int) SERVER mongodb OPTIONS (database 'gone', collection 'c');
	CALL mongo_sync.sync('shop.gone', 'gone')});
mongo('{"dropDatabase": 1}', 'gone');
raises('a dropped database', q{CALL mongo_sync.sync('shop.gone', 'gone')}, '55000', 'not synchronized any more');
is(sql('SELECT * FROM gone'), '1|1', 'leaves the rows');
mongo('{"insert": "c", "documents": [{"_id": 2, "a": 2}]}', 'gone');
sql(q{CALL mongo_sync.recopy('gone')});
is(sql('SELECT * FROM gone'), '2|2', 'until the table is copied again');
sql(q{CREATE ROLE leaver; GRANT USAGE ON FOREIGN SERVER mongodb TO leaver; CREATE USER MAPPING FOR leaver SERVER mongodb;
	CREATE SCHEMA left_behind AUTHORIZATION leaver});
sql(q{SET ROLE leaver; CREATE FOREIGN TABLE left_behind.f (_id int, a int) SERVER mongodb OPTIONS (database 'gone', collection 'c');
	CALL mongo_sync.sync('left_behind.f', 'left_behind.t')});
sql('DROP OWNED BY leaver CASCADE; DROP ROLE leaver');
is(sql(q{SELECT count(*) FROM mongo_sync.status WHERE "group" LIKE 'left_behind%'}), 0, 'DROP OWNED ends the synchronization');
is(sql(q{SELECT count(*) FROM mongo_sync.health WHERE object LIKE 'left_behind%'}), 0, 'and leaves nothing that is wrong');
synchronize('t');
equal('other tables go on', 't');

# --- two first calls at the same time --------------------
# the first one waits within CREATE TABLE, and so the second one for the table's name
sql(q{CREATE FOREIGN TABLE shop.together (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'together');
	CREATE FUNCTION wait_here() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_catalog.pg_advisory_xact_lock(7); END$$;
	CREATE EVENT TRIGGER wait_here ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION wait_here()});
mongo('{"insert": "together", "documents": [{"_id": 1, "a": 1}]}');
my $holder = MongoFdwTest::Session->new($node);
$holder->ask('SELECT pg_advisory_lock(7)');
my @calls = map { background_query($node, q{CALL mongo_sync.sync('shop.together', 'public.together')}) } 1, 2;
$node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objsubid IN (1, 3)});
$holder->close;
unlike(($_->finish)[2], qr/ERROR/, 'two first calls of a table at the same time') foreach @calls;
is(sql('SELECT * FROM together'), '1|1', 'copy it once');
sql('DROP EVENT TRIGGER wait_here');

done_testing();
