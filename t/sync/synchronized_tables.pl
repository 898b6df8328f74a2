# Synchronized tables: what compare() finds and mends, what check() says, and what dumps, copies of
# a database and DDL do to them.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $node = new_postgres('sync', 'wal_level = logical', 'max_wal_senders = 4');
create_server($node, 'mongodb', $mongod, read_concern => 'majority');

sub mongo { return $mongod->command($_[0], $_[1] // 'db') }
sub synchronize { sql("CALL mongo_sync.sync('shop.c', 'public.c')") }

# --- the extension --------------------
sql('CREATE SCHEMA mongo_sync');
raises('a schema that somebody has made before', 'CREATE EXTENSION mongo_sync', '42P06', 'already exists');
sql('DROP SCHEMA mongo_sync; CREATE EXTENSION mongo_sync; CREATE ROLE other; CREATE ROLE keeper; GRANT CREATE ON SCHEMA public TO keeper');
raises('nobody may create in it', 'SET ROLE other; CREATE TABLE mongo_sync.x ()', '42501', 'permission denied');
raises('nor write what it stores', 'SET ROLE other; DELETE FROM mongo_sync.groups', '42501', 'permission denied');

# --- compare --------------------
mongo('{"insert": "c", "documents": [' . join(', ', map { "{\"_id\": $_, \"a\": $_, \"lines\": [{\"t\": \"x$_\"}, {\"t\": \"y\"}]}" } 1 .. 50) . ']}');
sql(q{CREATE SCHEMA shop;
	CREATE FOREIGN TABLE shop.c (_id int, a int) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE shop.lines (_id int, n int, t text OPTIONS (path 'lines.t')) SERVER mongodb OPTIONS (database 'db', collection 'c', unwind 'lines', ordinality 'n');
	CALL mongo_sync.sync('shop.lines', 'lines')});
synchronize();
is(sql(q{SELECT count(*) FROM mongo_sync.compare('c')}), 0, 'nothing differs');
sql(q{CREATE TABLE noted (what text, at text);
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.noted VALUES (TG_OP || ' ' || coalesce(NEW._id, OLD._id), mongo_sync.cluster_time()); RETURN NULL; END$$;
	CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON c FOR EACH ROW EXECUTE FUNCTION note();
	UPDATE c SET a = 0 WHERE _id = 1; DELETE FROM c WHERE _id = 2; INSERT INTO c VALUES (-5, 1); TRUNCATE noted;
	DELETE FROM lines WHERE _id = 3 AND n = 2; UPDATE lines SET t = 'z' WHERE _id = 4 AND n = 1});
mongo('{"update": "c", "updates": [{"q": {"_id": 7}, "u": {"$set": {"a": 70}}}]}');
my $differences = "-5|not in MongoDB\n1|different\n2|missing";
is(sql(q{SELECT * FROM mongo_sync.compare('c') ORDER BY id}), $differences, 'at the position, not at the present');
is(sql(q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM mongo_sync.compare('c', mend => true) ORDER BY id}), $differences, 'and mends');
is(sql(q{SELECT * FROM mongo_sync.compare('c') ORDER BY id}), $differences, 'if it is committed');
sql(q{SELECT FROM mongo_sync.compare('c', mend => true)});
is(sql(q{SELECT count(*) FROM mongo_sync.compare('c')}), 0, 'then nothing differs');
is(sql('SELECT string_agg(what, \', \' ORDER BY what), count(DISTINCT at) FROM noted'), 'DELETE -5, INSERT 2, UPDATE 1|1', 'triggers are called, and know the time');
is(sql('SELECT a FROM c WHERE _id = 7'), 7, 'the position has not moved');
is(sql('SELECT mongo_sync.cluster_time() IS NULL'), 't', 'outside of triggers there is no time');
synchronize();
is(sql(q{SELECT a FROM c WHERE _id = 7}), 70, 'it goes on');
is(sql(q{SELECT * FROM mongo_sync.compare('lines') ORDER BY id}), "[3, 2]|missing\n[4, 1]|different", 'elements of an array');
sql(q{SELECT FROM mongo_sync.compare('lines', true)});
is(sql(q{SELECT count(*) FROM mongo_sync.compare('lines')}), 0, 'are mended, too');
raises('a stranger', q{SET ROLE other; SELECT FROM mongo_sync.compare('c')}, '42501', 'must be owner');
raises('a read-only transaction', q{BEGIN READ ONLY; SELECT FROM mongo_sync.compare('c')}, '25006', '');
raises('a table that is not synchronized', q{SELECT FROM mongo_sync.compare('noted')}, '55000', 'is not synchronized');
sql(q{ALTER TABLE c ADD CHECK (_id <> 9) NOT VALID; DELETE FROM c WHERE _id IN (8, 9)});
raises('a constraint', q{SELECT FROM mongo_sync.compare('c', true)}, '23514', 'c__id_check');
is(sql('SELECT count(*) FROM c WHERE _id = 8'), 0, 'nothing was mended');
is(sql('SELECT mongo_sync.cluster_time() IS NULL, count(*) FROM shop.c'), 't|50', 'and nothing is bound');
sql(q{ALTER TABLE c DROP CONSTRAINT c__id_check; SELECT FROM mongo_sync.compare('c', true)});
mongo('{"setParameter": 1, "minSnapshotHistoryWindowInSeconds": 0}', 'admin');
# until it has no snapshot of the position any more
my $tries = 0;
do
{
	mongo('{"update": "c", "updates": [{"q": {"_id": 7}, "u": {"$inc": {"a": 1}}}], "writeConcern": {"w": "majority"}}');
} until ($node->psql('postgres', q{SELECT FROM mongo_sync.compare('c')}))[0] != 0 || ++$tries > 2000;
raises('an old position', q{SELECT FROM mongo_sync.compare('c')}, '55000', 'cannot be compared.*no snapshot.*CALL mongo_sync.sync');
mongo('{"setParameter": 1, "minSnapshotHistoryWindowInSeconds": 300}', 'admin');
synchronize();
is(sql(q{SELECT count(*) FROM mongo_sync.compare('c')}), 0, 'and the present');

# --- check --------------------
sub check { return sql("SELECT item, detail, remedy IS NULL FROM mongo_sync.check($_[0]) WHERE NOT ok") }
is(check(q{'shop.c', 'public.new'}), '', 'nothing speaks against a new table');
is(sql(q{SELECT to_regclass('new') IS NULL}), 't', 'and it is not created');
cmp_ok(sql(q{SELECT count(*) FROM mongo_sync.check('shop.c')}), '>', 10, 'items');
sql(q{CREATE UNLOGGED TABLE bad (a text, x int NOT NULL); CREATE RULE r AS ON UPDATE TO bad DO NOTHING});
is(() = check(q{'shop.c', 'bad'}) =~ /^tables\|.*\|f$/mg, 6, 'all reasons against a table, with remedies');
is(check(q{'bad', 'bad'}), 'tables|"bad" is not a foreign table of mongo_fdw|f', 'and a source that is none');
mongo('{"insert": "odd", "documents": [{"_id": 1, "a": "x"}, {"_id": "' . 'k' x 3000 . '"}]}');
sql(q{CREATE FOREIGN TABLE shop.odd (_id text, a int) SERVER mongodb OPTIONS (database 'db')});
like(check(q{'shop.odd'}), qr/^documents that fit\|values that do not fit.*^keys\|1 of/ms, 'documents without a row');
sql(q{CREATE FOREIGN TABLE shop.none (_id int) SERVER mongodb OPTIONS (database 'db')});
like(check(q{'shop.none'}), qr/^collection \(listCollections\)\|there is no collection "db.none"\|f$/m, 'no collection');
$mongod->fail_command(1000, 13, 'collStats');
is(check(q{'shop.c'}) =~ s/\|.*\|/|...|/r, 'collStats|...|f', 'a privilege that is missing, by name');
$mongod->unblock_commands;
$mongod->fail_command(1000, 13, 'aggregate');
like(check(q{'shop.c'}), qr/^changeStream on the collection\|.*^changeStream on the database.*^keys/ms, 'and another one');
$mongod->unblock_commands;
my $alone = MongoFdwTest::Mongod->new;
$alone->insert('db', 'c', '[{"_id": 1}]');
create_server($node, 'alone', $alone);
sql(q{CREATE FOREIGN TABLE shop.alone (_id int) SERVER alone OPTIONS (database 'db', collection 'c')});
like(check(q{'shop.alone'}), qr/^replica set\|server "alone" is not a replica set.*^reads at a cluster time\|.*^changeStream on the collection\|/ms, 'a server that is no replica set');
raises('a stranger', q{SET ROLE other; SELECT FROM mongo_sync.check('shop.c', 'c')}, '42501', '');
sql('GRANT USAGE ON SCHEMA shop TO other');
like(sql(q{SET ROLE other; SELECT item, detail FROM mongo_sync.check('shop.c') WHERE NOT ok}), qr/^SELECT on the foreign table\|role "other"/m, 'a role that may not read');

# --- an owner who cannot log in --------------------
sql(q{GRANT USAGE ON SCHEMA shop TO keeper; GRANT SELECT ON shop.c TO keeper; CREATE USER MAPPING FOR keeper SERVER mongodb;
	GRANT USAGE ON FOREIGN SERVER mongodb TO keeper});
sql(q{SET ROLE keeper; CALL mongo_sync.sync('shop.c', 'public.kept')});
is(sql(q{SELECT count(*), min(tableowner) FROM kept, pg_tables WHERE tablename = 'kept'}), '50|keeper', 'it owns the table');
is(sql(q{SET ROLE keeper; SELECT count(*) FROM mongo_sync.compare('kept', true)}), 0, 'and compares it');

# --- dumps and copies are inert --------------------
my $dump = $node->basedir . '/dump.sql';
$node->command_ok([ 'pg_dump', '-f', $dump, '-d', $node->connstr('postgres') ], 'a dump');
$node->command_ok([ 'pg_dump', '--no-owner', '-f', "$dump.no_owner", '-d', $node->connstr('postgres') ], 'without owners');
sql("CREATE DATABASE $_") foreach qw(restored no_owner subscriber);
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('restored') ], 'is restored');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dump.no_owner", '-d', $node->connstr('no_owner') ], 'and the other one');
$node->safe_psql('template1', 'CREATE DATABASE template TEMPLATE postgres');
sql('CREATE PUBLICATION everything FOR ALL TABLES');
$node->safe_psql('subscriber', q{CREATE EXTENSION mongo_fdw; CREATE EXTENSION mongo_sync;
	CREATE TABLE c (_id int PRIMARY KEY, a int); CREATE TABLE lines (_id int, n int, t text, PRIMARY KEY (_id, n)); CREATE TABLE kept (LIKE c INCLUDING ALL); CREATE TABLE noted (what text, at text);
	CREATE TABLE bad (a text, x int NOT NULL);
	CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '} . $mongod->port . q{'); CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb;
	CREATE SCHEMA shop; CREATE FOREIGN TABLE shop.c (_id int, a int) SERVER mongodb OPTIONS (database 'db');
	CALL mongo_sync.sync('shop.c', 'public.own');
	-- as of a database in which all OIDs are the same
	UPDATE mongo_sync.members SET target = } . sql(q{SELECT 'c'::regclass::oid}));
sql(q{SELECT pg_create_logical_replication_slot('s', 'pgoutput')});
$node->safe_psql('subscriber', "CREATE SUBSCRIPTION s CONNECTION \$\$" . $node->connstr('postgres') . "\$\$ PUBLICATION everything WITH (create_slot = false, slot_name = 's')");
$node->wait_for_subscription_sync($node, 's', 'subscriber');
foreach my $copy (qw(restored no_owner template subscriber))
{
	my $ask = sub { $node->safe_psql($copy, @_) };

	cmp_ok($ask->('SELECT count(*) FROM mongo_sync.members'), '>', 2, "$copy: rows came along");
	my (undef, undef, $stderr) = $node->psql($copy, q{SELECT FROM mongo_sync.compare('c')});
	like($stderr, qr/is not synchronized/, "$copy: they have no effect");
	is($ask->(q{SELECT string_agg(DISTINCT state, ',') FROM mongo_sync.status WHERE "group" <> 'public.own'}), 'waiting for its owner', "$copy: the status says so");
	next if $copy eq 'subscriber';
	$ask->(q{CALL mongo_sync.sync('shop.c', 'public.c')});
	is($ask->(q{SELECT count(*) FROM mongo_sync.compare('c')}), 0, "$copy: until the owner's call");
	is($ask->(q{SELECT count(*) FROM mongo_sync.status WHERE "group" = 'public.c'}), 1, "$copy: which replaces them");
}
$node->safe_psql('subscriber', 'DROP SUBSCRIPTION s');
sql('DROP PUBLICATION everything');

# --- DDL --------------------
sql(q{CREATE SCHEMA extensions; ALTER EXTENSION mongo_fdw SET SCHEMA extensions});
mongo('{"update": "c", "updates": [{"q": {"_id": 7}, "u": {"$inc": {"a": 1}}}]}');
synchronize();
is(sql(q{SELECT count(*) FROM mongo_sync.compare('c')}), 0, 'mongo_fdw in a schema that is not in the search_path');
sql(q{ALTER EXTENSION mongo_fdw SET SCHEMA public; ALTER TABLE c RENAME TO d; ALTER SCHEMA shop RENAME TO market; CREATE SCHEMA cellar; ALTER TABLE d SET SCHEMA cellar});
mongo('{"update": "c", "updates": [{"q": {"_id": 7}, "u": {"$inc": {"a": 1}}}]}');
sql(q{CALL mongo_sync.sync('market.c', 'cellar.d')});
is(sql(q{SELECT count(*) FROM mongo_sync.compare('cellar.d')}), 0, 'tables and schemas are renamed');
sql(q{UPDATE cellar.d SET a = 0 WHERE _id = 3; DROP EXTENSION mongo_sync; CREATE EXTENSION mongo_sync; CALL mongo_sync.sync('market.c', 'cellar.d')});
is(sql(q{SELECT count(*) FROM mongo_sync.compare('cellar.d')}), 0, 'the extension is created again, and the table reconciled');
sql(q{DROP SCHEMA cellar CASCADE; DROP TABLE lines});
is(sql(q{SELECT count(*) FROM mongo_sync.status WHERE local_table IS NOT NULL}), 0, 'tables are dropped') or diag(sql('SELECT * FROM mongo_sync.status'));

# --- the documentation, from the beginning to the end --------------------
my ($begin, $leave) = PostgreSQL::Test::Utils::slurp_file('docs/sync.md') =~ /## (?:Five minutes|Leaving MongoDB)\n.*?```sql\n(.*?)```/sg;
my $options = MongoFdwTest::option_list(address => '127.0.0.1', port => $mongod->port, $mongod->server_options);
$begin =~ s/ *OPTIONS \(address[^)]*\)/$options/ or die 'no server';
mongo('{"insert": "customers", "documents": [{"_id": 1, "name": "a"}, {"_id": 2, "name": "b"}]}', 'shop');
mongo('{"insert": "orders", "documents": [{"_id": 1, "customer": 1, "total": 7}, {"_id": 2, "customer": 2, "total": 5}]}', 'shop');
$node->safe_psql('postgres', 'CREATE DATABASE page');
like($node->safe_psql('page', "$begin SELECT sum(total), count(consistent_at) FROM reports.orders, mongo_sync.status WHERE status.local_table = 'reports.orders'::regclass"),
	qr/^reports\.customers\|\w+.*^reports\.orders\|.*^12\|2$/ms, 'five minutes');
my ($exporter) = PostgreSQL::Test::Utils::slurp_file('docs/sync.md') =~ /For an exporter:\n\n```sql\n(.*?)```/s;
like($node->safe_psql('page', $exporter), qr/^reports\.orders\|\w[\w ]*\|[\d.]+\|[\d.]*\|f$/m, 'the exporter\'s query');
$node->safe_psql('page', "SELECT mongo_sync.stop(local_table) FROM mongo_sync.status");
like($node->safe_psql('page', "$leave INSERT INTO app.orders VALUES (3, 1, 9); SELECT 'left', count(*), (SELECT count(*) FROM mongo_sync.status) FROM app.orders"),
	qr/left\|3\|0$/, 'leaving MongoDB');

done_testing();
