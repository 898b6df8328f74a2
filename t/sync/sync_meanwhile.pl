# Synchronized tables: what one session changes while another one waits, and odd names and keys.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $node = new_postgres('sync_meanwhile');
create_server($node, 'mongodb', $mongod);

sub mongo { return $mongod->command($_[0], 'db') }
sub waits { return becomes(sub { sql(q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) > 0 }) }
sub create { my ($t, $columns) = @_; sql("CREATE FOREIGN TABLE shop.$t ($columns) SERVER mongodb OPTIONS (database 'db')") }

sql(q{CREATE EXTENSION mongo_sync; CREATE SCHEMA shop; CREATE ROLE alice; CREATE ROLE mallory;
	GRANT USAGE ON FOREIGN SERVER mongodb TO alice, mallory; CREATE USER MAPPING FOR alice SERVER mongodb; CREATE USER MAPPING FOR mallory SERVER mongodb;
	CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END$$});

# --- stop() by another session, while a call waits for the group --------------------
my $number = 0;
foreach (['SELECT mongo_sync.pause(%s)', qr/55000.*not synchronized/s], ['SELECT mongo_sync.stop(%s)', qr/55000.*not synchronized/s],
	['CALL mongo_sync.recopy(%s)', qr/55000.*not synchronized/s], ['SELECT mongo_sync.compare(%s)', qr/55000.*not synchronized/s],
	["CALL mongo_sync.sync('shop.TABLE', %s, true)", qr/NOTICE.*was stopped/s])
{
	my ($call, $expected) = @$_;
	my $table = 's' . ++$number;
	mongo("{\"insert\": \"$table\", \"documents\": [{\"_id\": 1}]}");
	create($table, '_id int');
	sql("CALL mongo_sync.sync('shop.$table', 'public.$table')");
	my $holder = MongoFdwTest::Session->new($node);
	$holder->ask("BEGIN; SELECT mongo_sync.stop('public.$table')");
	(my $sql = sprintf($call, "'public.$table'")) =~ s/TABLE/$table/;
	my $blocked = background_query($node, $sql);
	ok(waits(), "$sql waits");
	$holder->ask('COMMIT');
	like(($blocked->finish)[2], $expected, 'and says that the table was stopped');
}

# --- names that the engine uses itself --------------------
foreach my $column (qw(f n t __missing))
{
	my $table = "c_$column";
	mongo("{\"insert\": \"$table\", \"documents\": [{\"_id\": {\"x\": 1}, \"$column\": 1}, {\"_id\": {\"x\": 2}, \"$column\": 2}]}");
	create($table, "_id jsonb, $column int");
	sql("CALL mongo_sync.sync('shop.$table', 'public.$table')");
	mongo("{\"update\": \"$table\", \"updates\": [{\"q\": {\"$column\": 2}, \"u\": {\"\$inc\": {\"$column\": 1}}}]}");
	sql("CALL mongo_sync.sync('shop.$table', 'public.$table')");
	is(sql("SELECT sum($column), (SELECT count(*) FROM mongo_sync.compare('public.$table')) FROM $table"), '4|0', "a column \"$column\"");
}

# --- two documents with one key, and another one that is gone --------------------
mongo('{"insert": "two", "documents": [{"_id": {"$oid": "64d29dd2a752a1e3bb9c9b11"}, "a": 1}, {"_id": "y", "a": 2}]}');
create('two', '_id text, a int');
sql(q{CALL mongo_sync.sync('shop.two', 'public.two')});
mongo('{"insert": "two", "documents": [{"_id": "64d29dd2a752a1e3bb9c9b11", "a": 3}]}');
mongo('{"delete": "two", "deletes": [{"q": {"_id": "y"}, "limit": 1}]}');
raises('two documents with one key are told from each other', q{CALL mongo_sync.sync('shop.two', 'public.two')}, '23505', 'two documents');
is(sql(q{SELECT a FROM two WHERE _id <> 'y'}), 1, 'and neither replaces the other');

# --- a copy that waits --------------------
# Begins to copy a table; a trigger holds the range until the session that is returned commits.
sub begin_copy
{
	my ($table) = @_;
	mongo("{\"insert\": \"$table\", \"documents\": [{\"_id\": \"a\"}, {\"_id\": \"b\"}]}");
	create($table, '_id text, __mismatch jsonb');
	sql("CREATE TABLE public.$table (_id text PRIMARY KEY); CREATE TRIGGER hold AFTER INSERT ON public.$table EXECUTE FUNCTION public.hold()");
	my $holder = MongoFdwTest::Session->new($node);
	$holder->ask('BEGIN; SELECT pg_advisory_xact_lock(1)');
	my $copying = background_query($node, "CALL mongo_sync.sync('shop.$table', 'public.$table')");
	ok(waits(), 'a copy waits');
	return ($holder, $copying, background_query($node, "SET application_name = '$table'; CALL mongo_sync.sync('shop.$table', 'public.$table')"));
}

my ($holder, @calls) = begin_copy('long');
my $long = join('', map { chr(97 + int(rand(26))) } 1 .. 8000);
mongo("{\"insert\": \"long\", \"documents\": [{\"_id\": \"$long\"}, {\"_id\": \"c\"}]}");
ok(becomes(sub { sql('SELECT count(*) FROM mongo_sync.changed') == 2 }), 'keys of documents that have changed meanwhile');
$holder->ask('COMMIT');
unlike(($_->finish)[2], qr/ERROR/, 'may be longer than an index holds') foreach @calls;
is(sql('SELECT count(*) FROM long'), 3, 'the others have rows');
is(sql('SELECT count(*) FROM mongo_sync.errors'), 1, 'it is listed');

# a trigger of the copy reads the present, and writes to MongoDB
create('audit', '_id text');
create('audited', '_id text');
mongo('{"insert": "audited", "documents": [{"_id": "a"}]}');
sql(q{CREATE FUNCTION public.audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO shop.audit VALUES (TG_WHEN || NEW._id); RETURN NEW; END$$;
	CREATE TABLE public.audited (_id text PRIMARY KEY); CREATE TRIGGER a AFTER INSERT ON public.audited FOR EACH ROW EXECUTE FUNCTION public.audit();
	CALL mongo_sync.sync('shop.audited', 'public.audited'); SELECT mongo_sync.stop('public.audited'); TRUNCATE public.audited;
	CREATE TRIGGER b BEFORE INSERT ON public.audited FOR EACH ROW EXECUTE FUNCTION public.audit(); DELETE FROM shop.audit; CALL mongo_sync.sync('shop.audited', 'public.audited')});
is(sql(q{SELECT string_agg(_id, ',' ORDER BY _id) FROM shop.audit}), 'AFTERa,BEFOREa', 'triggers of a copy write to MongoDB');

($holder, @calls) = begin_copy('memory');
my $process;
ok(becomes(sub { $process = sql(q{SELECT pid FROM pg_stat_activity WHERE application_name = 'memory'}) }), 'another call waits, too');
sub results
{
	my $begins = -s $node->logfile;
	sql("SELECT pg_log_backend_memory_contexts($process)");
	becomes(sub { PostgreSQL::Test::Utils::slurp_file($node->logfile, $begins) =~ /Grand total/ });
	my ($total) = PostgreSQL::Test::Utils::slurp_file($node->logfile, $begins) =~ /Grand total: (\d+) bytes/;
	return $total;
}
sleep 2;
my $before = results();
sleep 5;
cmp_ok(results() - $before, '<', 2e6, 'a call that waits for a copy needs no more memory');
$holder->ask('COMMIT');
$_->finish foreach @calls;

# --- the owners of groups --------------------
sql(q{CREATE SCHEMA reports; CREATE SCHEMA own; GRANT ALL ON SCHEMA reports, own TO alice, mallory; GRANT USAGE ON SCHEMA shop TO alice, mallory;
	CREATE SCHEMA two; GRANT USAGE ON SCHEMA two TO alice, mallory});
foreach my $table ('s1', 's2', 's3')
{
	sql("CREATE FOREIGN TABLE two.$table (_id int) SERVER mongodb OPTIONS (database 'db'); GRANT SELECT ON two.$table TO alice, mallory");
}
sql(q{SET ROLE mallory; CALL mongo_sync.sync_schema('two', 'reports', '{s1}')});
sql(q{SET ROLE alice; CALL mongo_sync.sync_schema('two', 'reports', '{s2}')});
is(sql(q{SELECT string_agg(tablename || ' ' || tableowner, ',' ORDER BY 1) FROM pg_tables WHERE schemaname = 'reports'}), 's1 mallory,s2 alice', 'two roles have groups of one schema');
sql(q{SET ROLE alice; CALL mongo_sync.sync_schema('two', 'own', '{s2,s3}'); RESET ROLE; ALTER TABLE own.s3 OWNER TO mallory});
raises('the new owner of a table does not pause its group', q{SET ROLE mallory; SELECT mongo_sync.pause('own.s3')}, '55000', 'belongs to another role');
raises('nor changes what it follows', q{SET ROLE mallory; CALL mongo_sync.sync('two.s3', 'own.s3', true)}, '55000', 'belongs to another role');
is(sql(q{SELECT follow, paused FROM mongo_sync.groups WHERE name = 'own'}), 'f|f', 'and nothing is stored');
sql(q{SET ROLE mallory; SELECT mongo_sync.stop('own.s3')});
sql(q{SET ROLE alice; CALL mongo_sync.sync_schema('two', 'own', '{s2}')});
is(sql(q{SELECT count(*) FROM mongo_sync.status WHERE "group" = 'own'}), 1, 'but stops it');

# --- a database whose worker always fails --------------------
my $visited = new_postgres('sync_visits', q{shared_preload_libraries = 'mongo_fdw'});
create_server($visited, 'mongodb', $mongod);
$visited->safe_psql('postgres', 'CREATE DATABASE later');
$visited->safe_psql('postgres', 'CREATE ROLE installer SUPERUSER; SET ROLE installer; CREATE EXTENSION mongo_sync; RESET ROLE; ALTER ROLE installer NOSUPERUSER');
$visited->safe_psql('later', q{CREATE EXTENSION mongo_fdw; CREATE EXTENSION mongo_sync; CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '}
	  . $mongod->port . q{'); CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb; CREATE FOREIGN TABLE s1 (_id int) SERVER mongodb OPTIONS (database 'db'); CALL mongo_sync.sync('s1', 'l1')});
$visited->restart;
mongo('{"insert": "s1", "documents": [{"_id": 2}]}');
ok($visited->poll_query_until('later', 'SELECT count(*) = 2 FROM l1'), 'does not hold up those of others after a restart');
done_testing();
