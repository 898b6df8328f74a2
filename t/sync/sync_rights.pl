# Synchronized tables: that nobody gains another's rights by them, nor stops what others
# synchronize.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $node = new_postgres('sync_rights', q{shared_preload_libraries = 'mongo_fdw'});
create_server($node, 'mongodb', $mongod);

sub as { my ($role, $sql) = @_; return sql("SET ROLE $role; $sql") }
sub raises_as
{
	my ($name, $role, $sql, @expected) = @_;
	return raises($name, "SET ROLE $role;\n$sql", @expected);
}
sub insert { $mongod->command("{\"insert\": \"$_[0]\", \"documents\": [{\"_id\": $_[1], \"a\": 1}]}", 'db') }

# What code of "mallory" has run as: only she may be there.
sub victims { return sql(q{SELECT string_agg(DISTINCT ran_as, ',') FROM trap.ran WHERE ran_as <> 'mallory'}) }
sub sprung { return sql(q{WITH gone AS (DELETE FROM trap.ran RETURNING 1) SELECT count(*) > 0 FROM gone}) }

# "boss" owns the database, "alice" and "mallory" synchronize tables; none of them can log in.
sql(q{CREATE EXTENSION mongo_sync; CREATE ROLE boss; CREATE ROLE alice; CREATE ROLE mallory; ALTER DATABASE postgres OWNER TO boss;
	GRANT USAGE ON FOREIGN SERVER mongodb TO alice, mallory, boss; CREATE USER MAPPING FOR alice SERVER mongodb; CREATE USER MAPPING FOR mallory SERVER mongodb;
	CREATE SCHEMA app AUTHORIZATION alice; CREATE SCHEMA evil AUTHORIZATION mallory; CREATE SCHEMA common; GRANT ALL ON SCHEMA common TO alice, mallory;
	CREATE SCHEMA trap; GRANT USAGE ON SCHEMA trap TO PUBLIC; CREATE TABLE trap.ran (ran_as text, session text); GRANT INSERT ON trap.ran TO PUBLIC;
	SET ROLE mallory;
	CREATE FUNCTION evil.note() RETURNS boolean LANGUAGE plpgsql AS $$BEGIN INSERT INTO trap.ran VALUES (current_user, session_user); RETURN true; END$$;
	CREATE FUNCTION evil.trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM evil.note(); RETURN NEW; END$$;
	GRANT USAGE ON SCHEMA evil TO PUBLIC; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA evil TO PUBLIC;
	CREATE FOREIGN TABLE evil.f (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'm');
	SET ROLE alice;
	CREATE FOREIGN TABLE app.f (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'a')});
insert($_, 1) foreach 'a', 'm';

# --- 1, 2, 7: the extension's schema --------------------
raises_as('a database\'s owner creates nothing in the schema', 'boss', 'CREATE TABLE mongo_sync.x ()', '42501', 'permission denied');
raises_as('nor renames it', 'boss', 'ALTER SCHEMA mongo_sync RENAME TO other', '42501', 'must be owner');
raises_as('nor drops it', 'boss', 'DROP EXTENSION mongo_sync', '42501', 'must be owner');
raises_as('nor writes its tables', 'boss', "UPDATE mongo_sync.groups SET owner = 10", '42501', 'permission denied');
raises_as('nor locks them', 'boss', "BEGIN; LOCK TABLE mongo_sync.members IN ACCESS SHARE MODE", '42501', 'permission denied');
raises_as('nor by a view', 'boss', "BEGIN; LOCK TABLE mongo_sync.status IN ROW EXCLUSIVE MODE", '42501', 'permission denied');
raises_as('nor has a trigger on them', 'boss', 'CREATE TRIGGER t AFTER INSERT ON mongo_sync.groups EXECUTE FUNCTION evil.trap()', '42501', 'permission denied');
raises_as('nor creates the extension', 'boss', 'CREATE EXTENSION mongo_sync SCHEMA evil CASCADE', '42(501|710)', '');
sql('ALTER SCHEMA mongo_sync RENAME TO aside');
as('boss', q{CREATE SCHEMA mongo_sync; CREATE TABLE mongo_sync.members (target oid, group_id int); CREATE VIEW mongo_sync.active_groups AS SELECT 1 AS id WHERE evil.note()});
raises_as('a schema in its place has no effect', 'alice', q{CALL aside.sync('app.f', 'app.l')}, '55000', 'schema mongo_sync');
is(victims(), '', 'and nothing in it runs');
sql('DROP SCHEMA mongo_sync CASCADE; ALTER SCHEMA aside RENAME TO mongo_sync');

# --- 8: names that are found before PostgreSQL's --------------------
as('alice', q{CREATE TABLE app.pg_extension (oid oid, extname name, extowner oid, extnamespace oid); CREATE FUNCTION app.floor(double precision) RETURNS double precision LANGUAGE sql AS 'SELECT 1/0::float';
	CREATE FUNCTION app.equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT 1/0 = 1'; CREATE OPERATOR app.= (LEFTARG = text, RIGHTARG = text, FUNCTION = app.equal)});
as('alice', q{SET search_path = app, pg_catalog; CREATE TEMP TABLE groups (id int); CREATE TEMP TABLE pg_class (oid oid); CALL mongo_sync.sync('app.f', 'l')});
is(sql(q{SELECT count(*), min(tableowner) FROM app.l, pg_tables WHERE tablename = 'l'}), '1|alice', 'names of a search_path and of temporary tables are not used');

# --- 4: a foreign table's owner --------------------
sql('ALTER FOREIGN TABLE app.f OWNER TO mallory; GRANT USAGE ON SCHEMA app TO mallory');
as('mallory', q{CREATE DOMAIN evil.d AS int CHECK (evil.note()); ALTER FOREIGN TABLE app.f ALTER COLUMN a TYPE evil.d});
insert('a', 2);
raises_as('a foreign table that was given away', 'alice', q{CALL mongo_sync.sync('app.f', 'app.l')}, '55000', 'belongs to another role');
sql('GRANT SELECT ON app.f TO alice');
as('alice', q{SELECT FROM mongo_sync.check('app.f', 'app.l')});
sql(q{SELECT FROM mongo_sync.check('app.f')});
is(victims(), '', 'its domain is not evaluated');
as('mallory', 'ALTER FOREIGN TABLE app.f ALTER COLUMN a TYPE int');
sql('ALTER FOREIGN TABLE app.f OWNER TO alice');
as('alice', q{CALL mongo_sync.sync('app.f', 'app.l')});
is(sql('SELECT count(*) FROM app.l'), 2, 'given back, it goes on');

# --- 5: a superuser's call --------------------
as('mallory', q{CREATE FUNCTION evil.note(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM evil.note(); RETURN 1; END$$;
	CREATE TABLE common.t (_id int PRIMARY KEY, a int DEFAULT evil.note(1), b boolean DEFAULT evil.note(), c int GENERATED ALWAYS AS (evil.note(_id)) STORED, CHECK (evil.note()));
	CREATE TRIGGER t BEFORE INSERT OR UPDATE ON common.t FOR EACH ROW EXECUTE FUNCTION evil.trap();
	CREATE CONSTRAINT TRIGGER at_end AFTER INSERT OR UPDATE ON common.t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION evil.trap();
	CREATE TRIGGER s AFTER INSERT ON common.t EXECUTE FUNCTION evil.trap(); CREATE INDEX ON common.t (evil.note(a)) WHERE evil.note(_id) = 1; CREATE STATISTICS evil.s ON evil.note(a), evil.note(_id) FROM common.t;
	ALTER TABLE common.t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON common.t USING (evil.note())});
insert('m', $_) foreach 2 .. 5;
sql(q{CALL mongo_sync.sync('evil.f', 'common.t')});
is(sprung(), 't', 'what a table\'s owner has prepared runs in a superuser\'s call');
$mongod->command('{"update": "m", "updates": [{"q": {}, "u": {"$inc": {"a": 1}}, "multi": true}]}', 'db');
insert('m', 6);
ok($node->poll_query_until('postgres', 'SELECT count(*) = 6 AND min(a) = 1 FROM common.t'), 'and in the worker');
sql(q{SELECT FROM mongo_sync.compare('common.t', true); SELECT FROM mongo_sync.check('evil.f', 'common.t')});
sql(q{CALL mongo_sync.recopy('common.t')});
is(victims(), '', 'all of it as the owner');
is(sprung(), 't', 'it has run');
as('mallory', q{CREATE OR REPLACE FUNCTION evil.trap() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
	BEGIN RESET ROLE; EXCEPTION WHEN OTHERS THEN NULL; END; BEGIN SET SESSION AUTHORIZATION DEFAULT; EXCEPTION WHEN OTHERS THEN NULL; END;
	BEGIN PERFORM pg_catalog.set_config('role', 'none', false); EXCEPTION WHEN OTHERS THEN NULL; END;
	PERFORM pg_catalog.pg_advisory_lock(7); PERFORM evil.note(); RETURN NEW; END$$});
insert('m', 7);
ok($node->poll_query_until('postgres', 'SELECT count(*) = 7 FROM common.t'), 'a trigger that tries to leave its role');
is(victims(), '', 'does not');
is(sql('SELECT pg_try_advisory_lock(7)'), 't', 'and leaves no lock');
as('mallory', 'DROP TABLE common.t');

# --- 6: a table that is given away --------------------
sql(q{CREATE TABLE app.parts (_id int PRIMARY KEY, a int) PARTITION BY RANGE (_id); CREATE TABLE app.part PARTITION OF app.parts FOR VALUES FROM (0) TO (1000);
	ALTER TABLE app.parts OWNER TO alice; ALTER TABLE app.part OWNER TO alice; GRANT USAGE ON SCHEMA app TO mallory});
as('alice', q{CREATE FOREIGN TABLE app.g (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'a'); CALL mongo_sync.sync('app.g', 'app.parts'); CALL mongo_sync.recopy('app.parts')});
foreach my $table ('app.l', 'app.part')
{
	sql("ALTER TABLE $table OWNER TO mallory");
	as('mallory', "CREATE TRIGGER t BEFORE INSERT OR UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION evil.trap()");
}
insert('a', 3);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM mongo_sync.status WHERE state = 'failing' AND last_error ~ 'belongs to another role'}), 'tables and partitions that were given away');
raises_as('the old owner', 'alice', q{CALL mongo_sync.sync('app.f', 'app.l')}, '42501', 'must be owner');
raises_as('the new one', 'mallory', q{CALL mongo_sync.sync('app.f', 'app.l')}, '55000', 'belongs to another role');
is(victims(), '', 'and no trigger runs with the old owner\'s rights');
as('mallory', "DROP TRIGGER t ON $_") foreach 'app.l', 'app.part';
sql("ALTER TABLE $_ OWNER TO alice") foreach 'app.l', 'app.part';
ok($node->poll_query_until('postgres', 'SELECT count(*) = 3 FROM app.parts'), 'given back, they go on');

# --- 11: what is readable --------------------
foreach my $object (split /\n/, sql(q{SELECT oid::regclass FROM pg_class WHERE relnamespace = 'mongo_sync'::regnamespace AND relkind IN ('r', 'v', 'S') AND relname !~ '^(status|errors|health)$' ORDER BY 1}))
{
	raises_as("$object is not readable", $_, "SELECT * FROM $object", '42501', 'permission denied') foreach 'mallory';
}
sql('CREATE ROLE watcher; GRANT pg_monitor TO watcher');
as('alice', q{CREATE FUNCTION app.fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'secret %', NEW._id; END$$;
	CREATE TRIGGER fail BEFORE INSERT ON app.l FOR EACH ROW EXECUTE FUNCTION app.fail()});
insert('a', 4711);
ok($node->poll_query_until('postgres', q{SELECT last_error ~ '4711' FROM mongo_sync.status WHERE local_table = 'app.l'::regclass}), 'an error with a value');
is(as('mallory', q{SELECT count(*) FROM mongo_sync.status}), 0, 'a stranger sees no group');
is(as('watcher', q{SELECT last_error, failing_since IS NOT NULL FROM mongo_sync.status WHERE "group" = 'app.l'}), 'P0001: ...|t', 'pg_monitor sees that, but no value');
sql('ALTER TABLE app.l OWNER TO mallory');
unlike(as('mallory', q{SELECT state, last_error FROM mongo_sync.status}), qr/4711/, 'nor does a table\'s new owner');
sql('ALTER TABLE app.l OWNER TO alice');
as('alice', 'DROP TRIGGER fail ON app.l');
ok($node->poll_query_until('postgres', q{SELECT state = 'applying' FROM mongo_sync.status WHERE local_table = 'app.l'::regclass}), 'it goes on');

# --- settings of the database --------------------
foreach (q{role = 'boss'}, q{session_authorization = 'boss'}, q{search_path = evil}, q{default_transaction_read_only = on}, q{default_transaction_isolation = serializable},
	q{row_security = on}, q{statement_timeout = 1}, q{lock_timeout = 1}, q{client_encoding = 'LATIN1'})
{
	$node->safe_psql('template1', "SET ROLE boss; ALTER DATABASE postgres SET $_");
}
sub elsewhere { return $node->safe_psql('template1', $_[0]) }
my $worker = elsewhere(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'mongo_sync worker'});
elsewhere("SELECT pg_terminate_backend($worker)");
ok($node->poll_query_until('template1', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'mongo_sync worker' AND pid <> $worker AND wait_event_type = 'Extension'"), 'a worker with all settings of a database\'s owner');
elsewhere('ALTER DATABASE postgres RESET ALL');
insert('a', 4712);
ok($node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM app.l WHERE _id = 4712'), 'does as before');

# --- an operator for a domain, in the schema that has the type's --------------------
sql('CREATE EXTENSION citext SCHEMA common');
as('alice', 'CREATE DOMAIN app.name AS common.citext; GRANT USAGE ON SCHEMA app TO mallory');
foreach (['app.name', 'app.name'], ['app.name', 'common.citext'], ['common.citext', 'app.name'])
{
	my ($left, $right) = @$_;
	as('mallory', qq{CREATE FUNCTION evil.equal($left, $right) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN evil.note(); END';
		CREATE OPERATOR common.= (LEFTARG = $left, RIGHTARG = $right, FUNCTION = evil.equal)});
}
as('alice', q{SELECT 'x'::app.name OPERATOR(common.=) 'y'});
is(victims(), 'alice', 'an operator is found by its name');
sprung();
insert('d', '"x"');
as('alice', q{CREATE FOREIGN TABLE app.d (_id app.name, a int) SERVER mongodb OPTIONS (database 'db'); CALL mongo_sync.sync('app.d', 'app.d_local')});
$mongod->command('{"update": "d", "updates": [{"q": {"_id": "x"}, "u": {"$set": {"a": 2}}}]}', 'db');
insert('d', '"y"');
as('alice', q{CALL mongo_sync.sync('app.d', 'app.d_local'); CALL mongo_sync.recopy('app.d_local'); SELECT FROM mongo_sync.compare('app.d_local')});
is(sql('SELECT string_agg(_id || a, \',\' ORDER BY _id::text) FROM app.d_local'), 'x2,y1', 'keys are compared by the operator of their type');
is(victims(), '', 'and by no other');

# --- 16: nobody holds up others --------------------
my $holder = MongoFdwTest::Session->new($node);
my $other = MongoFdwTest::Session->new($node);
$other->ask('SET ROLE mallory');
$holder->ask("SET ROLE mallory; BEGIN; SELECT pg_advisory_lock(i) FROM generate_series(1, 100) i; CREATE TABLE evil.new (_id int); SELECT FROM mongo_sync.status; SELECT FROM mongo_sync.errors");
my $blocked = background_query($node, q{SET ROLE mallory; CALL mongo_sync.sync('evil.f', 'evil.new')});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ 'evil.new' AND wait_event_type = 'Lock'}), 'a first call that waits for its table');
as('alice', q{SET lock_timeout = '30s'; CREATE FOREIGN TABLE app.h (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'a'); CALL mongo_sync.sync('app.h', 'app.h_local')});
is(sql('SELECT count(*) > 0 FROM app.h_local'), 't', 'does not hold up the first call of another role');
$holder->ask('ROLLBACK');
$blocked->finish;
is(sql('SELECT count(*) FROM evil.new'), 7, 'and goes on');
$holder->ask(q{BEGIN; SELECT mongo_sync.stop('evil.new')});
as('alice', q{SET lock_timeout = '30s'; CREATE FOREIGN TABLE app.i (_id int, a int) SERVER mongodb OPTIONS (database 'db', collection 'a'); CALL mongo_sync.sync('app.i', 'app.i_local')});
is(sql('SELECT count(*) > 0 FROM app.i_local'), 't', 'nor does a transaction that has stopped a table');
$holder->ask('ROLLBACK');
done_testing();
