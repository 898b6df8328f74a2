# COMMIT, and each statement that writes, reports what has become of the data: neither success
# nor an error that is not true.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $set = MongoFdwTest::ReplicaSet->new(3);
my $node = new_postgres('reports', 'max_prepared_transactions = 5');
my $uri = $set->uri;

# one server for each way to write
my %servers = (
	mongodb => '', off => '', three => '&w=3', three_briefly => '&w=3&wtimeoutMS=300', off_three => '&w=3&wtimeoutMS=300');
foreach my $server (sort keys %servers)
{
	create_server($node, $server, $set->primary, address => undef, port => undef, uri => $uri . $servers{$server},
		connect_timeout_ms => 500, server_selection_timeout_ms => 5000, $server =~ /^off/ ? (transactions => 'off') : ());
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE t_$server (_id int, v int, at timestamptz) SERVER $server "
		  . "OPTIONS (database 'db', collection 't')");
}
$node->safe_psql('postgres', sprintf(q{CREATE EXTENSION postgres_fdw;
	CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER itself OPTIONS (user 'postgres');
	CREATE TABLE here (n int UNIQUE DEFERRABLE INITIALLY DEFERRED);
	INSERT INTO here VALUES (1);
	CREATE FOREIGN TABLE itself_here (n int) SERVER itself OPTIONS (table_name 'here')}, $node->host, $node->port));
$set->primary->command('{"create": "t"}', 'db');

my $session = MongoFdwTest::Session->new($node);
$session->ask("\\set VERBOSITY verbose\nSELECT 1");

# run
#	What the session is told of the statements, without places in the source.
sub run
{
	my ($sql) = @_;
	$session->ask($sql);
	return "$session->{out}$session->{err}" =~ s/^(psql:\S+ |LOCATION.*\n|LINE.*\n)//mgr;
}

# stored
#	The documents of the collection, as MongoDB has them; then it is emptied.
sub stored
{
	my $found = $set->primary->command('{"find": "t", "sort": {"_id": 1}}', 'db')->{cursor}{firstBatch};
	my $rows = join(' ', map { "$_->{_id}:" . ($_->{v} // '') } @$found);
	$set->primary->command('{"delete": "t", "deletes": [{"q": {}, "limit": 0}]}', 'db');
	return $rows;
}

# ---------------------- what fails after MongoDB's commit ---------------------

my $stays = qr/WARNING:  01000: changes on server "mongodb" were not rolled back\nDETAIL:  MongoDB had committed them/;

like(run('SELECT count(*) FROM itself_here; BEGIN; INSERT INTO t_mongodb VALUES (1, 1); INSERT INTO itself_here VALUES (1); COMMIT'),
	qr/23505.*here_n_key/s, 'a commit that another wrapper refuses');
# the library is loaded when the table is first used, and so, here, after postgres_fdw
my ($told, $left) = ($session->{err}, stored());
like($told, $stays, '... after MongoDB\'s says that that stays');
is($left, '1:1', '... as it does');

like(run(q{BEGIN; CREATE TEMP TABLE emptied (n int PRIMARY KEY) ON COMMIT DELETE ROWS;
	CREATE TEMP TABLE referring (n int REFERENCES emptied); INSERT INTO t_mongodb VALUES (2, 2); COMMIT}),
	qr/^(?=.*ERROR:  0A000: unsupported ON COMMIT).*$stays/s, 'ON COMMIT DELETE ROWS that PostgreSQL refuses');
is(stored(), '2:2', '... the same');
unlike(run('BEGIN; INSERT INTO t_mongodb VALUES (3, 3); ROLLBACK; BEGIN; INSERT INTO t_mongodb VALUES (3, 3); SELECT 1 / 0; COMMIT'),
	qr/WARNING/, 'a transaction that fails before its commit warns of nothing');
is(stored(), '', '... and leaves nothing');

# loaded first, it commits last
{
	my $first = MongoFdwTest::Session->new($node);
	like($first->ask("LOAD 'mongo_fdw'; BEGIN; SELECT count(*) FROM itself_here; INSERT INTO t_mongodb VALUES (1, 1); INSERT INTO itself_here VALUES (1); COMMIT") . $first->{err},
		qr/here_n_key(?!.*WARNING)/s, 'a commit that another wrapper refuses, if the library was loaded before');
	is(stored(), '', '... leaves nothing in MongoDB');
	$first->close;
}

like(run(q{BEGIN; SELECT mongo_command('mongodb', 'db', '{"insert": "t", "documents": [{"_id": 4}]}') ->> 'n'; PREPARE TRANSACTION 'x'}),
	qr/^(?=.*ERROR:  0A000: cannot PREPARE).*WARNING:  01000: changes on server "mongodb" were not rolled back/s, 'PREPARE TRANSACTION after mongo_command()');
is(stored(), '4:', '... whose change stays');

# --------------------- values that cannot be, for no row ----------------------

$session->ask(q{CREATE DOMAIN small AS int CHECK (VALUE < 10); CREATE TABLE places (v int);
	CREATE FOREIGN TABLE t_domain (_id int, v small) SERVER mongodb OPTIONS (database 'db', collection 't');
	CREATE FUNCTION fails(int) RETURNS int LANGUAGE plpgsql STABLE AS $$ DECLARE n int; BEGIN SELECT count(*) INTO n FROM places; RETURN n / $1; END $$;
	INSERT INTO t_mongodb VALUES (1, 1); SET plan_cache_mode = force_generic_plan;
	PREPARE divided(int, int) AS UPDATE t_mongodb SET v = 10 / $1 WHERE _id = $2;
	PREPARE checked(int, int) AS UPDATE t_domain SET v = $1 WHERE _id = $2;
	PREPARE stored(timestamptz, int) AS UPDATE t_mongodb SET at = $1 WHERE _id = $2;
	PREPARE called(int, int) AS UPDATE t_off SET v = fails($1) WHERE _id = $2 RETURNING v;
	PREPARE selected(int, int) AS UPDATE t_mongodb SET v = (SELECT 10 / $1 FROM (SELECT count(*) FROM places) p) WHERE _id = $2});
foreach my $case ([ 'divided', 0, '22012' ], [ 'checked', 11, '23514' ], [ 'stored', "'infinity'", '22008' ], [ 'called', 0, '22012' ], [ 'selected', 0, '22012' ])
{
	my ($name, $value, $error) = @$case;
	is(run("EXECUTE $name($value, 7)"), '', "$name: a value that cannot be computed or stored is no error for no row");
	is(run("BEGIN; EXECUTE $name($value, 7); INSERT INTO t_mongodb VALUES (2, 2); ROLLBACK"), '', '... nor in a transaction');
	like(run("EXECUTE $name($value, 1)"), qr/ERROR:  $error/, '... but for one row');
}
$session->ask(q{CREATE FUNCTION is_cancelled() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RAISE query_canceled; END $$});
run(q{DO $$ BEGIN BEGIN UPDATE t_mongodb SET v = is_cancelled() WHERE _id = 1; EXCEPTION WHEN query_canceled THEN NULL; END; INSERT INTO places VALUES (1); END $$});
is($node->safe_psql('postgres', 'SELECT count(*) FROM places'), '1', 'what follows a cancelled value that is caught is committed');
$set->primary->snapshot;
is(run('EXECUTE divided(5, 1)'), '', 'one that can be is computed');
my $sent = $set->primary->changes->{commands};
is_deeply([ @$sent{qw(update find commitTransaction)} ], [ 1, undef, 1 ], '... and sent as one command');
is(stored(), '1:2', '... and stored');

# ------------------------ savepoints that wrote nothing -----------------------

$session->ask('INSERT INTO t_mongodb VALUES (1, 1)');
is(run(q{BEGIN; UPDATE t_mongodb SET v = 2 WHERE _id = 1;
	SAVEPOINT s; UPDATE t_mongodb SET v = 9 WHERE _id = 7; ROLLBACK TO s;
	SAVEPOINT s; DELETE FROM t_mongodb WHERE _id = 7 RETURNING _id; ROLLBACK TO s;
	SAVEPOINT s; INSERT INTO t_mongodb VALUES (1, 9) ON CONFLICT DO NOTHING; ROLLBACK TO s; COMMIT}), '',
	'savepoints under which UPDATE, DELETE and ON CONFLICT found nothing');
is(stored(), '1:2', '... may be rolled back');
like(run(q{BEGIN; SAVEPOINT s; UPDATE t_mongodb SET v = 9 WHERE _id = 7; INSERT INTO t_mongodb VALUES (2, 2); UPDATE t_mongodb SET v = 9 WHERE _id = 7;
	ROLLBACK TO s; INSERT INTO t_mongodb VALUES (3, 3); COMMIT}), qr/0A000: server "mongodb" cannot be used/, '... but not one that wrote besides');
is(stored(), '', '... which leaves nothing');

# ---------------------------- commands on the catalog -------------------------

$session->ask('CREATE SCHEMA imported');
foreach my $begin ('BEGIN; INSERT INTO t_mongodb VALUES (1, 1)', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t_off', 'BEGIN; CREATE FOREIGN TABLE fresh (_id int) SERVER mongodb OPTIONS (database \'db\'); INSERT INTO fresh VALUES (1); INSERT INTO t_mongodb VALUES (1, 1)')
{
	unlike(run("$begin; IMPORT FOREIGN SCHEMA db FROM SERVER mongodb INTO imported; SELECT count(*) FROM mongo_fdw_refresh('imported'); "
			  . 'INSERT INTO t_mongodb VALUES (5, 5); COMMIT; DROP FOREIGN TABLE IF EXISTS imported.t, imported.fresh, fresh'), qr/ERROR/, "IMPORT FOREIGN SCHEMA and mongo_fdw_refresh() after $begin");
	like(stored(), qr/5:5/, '... and the transaction goes on');
}

# ------------- a document that a transaction of MongoDB's holds ---------------

$session->ask('INSERT INTO t_off VALUES (1, 1), (2, 2)');
foreach my $write ('UPDATE t_off SET v = 9 WHERE _id = 1', 'UPDATE t_off SET v = 9', 'INSERT INTO t_off VALUES (3, 9)',
	'UPDATE t_off SET v = 9 WHERE _id = 1 RETURNING v')
{
	like(run("SET lock_timeout = 500; BEGIN; UPDATE t_mongodb SET v = 3 WHERE _id = 1; INSERT INTO t_mongodb VALUES (3, 3); $write; ROLLBACK"),
		qr/ERROR:  55P03: canceling statement due to lock timeout/, "$write waits for the session's own transaction, but not for ever");
}
$session->ask('RESET lock_timeout');
is(stored() =~ s/ 2:9/ 2:2/r, '1:1 2:2', '... and does not change the document');

# ----------------------- a write concern that is not met ----------------------

$session->ask("SELECT count(*) FROM t_$_") foreach sort keys %servers;
$session->ask('INSERT INTO t_off VALUES (1, 1)');
my ($frozen) = grep { $_->port != $set->primary->port } $set->members;
kill 'STOP', $frozen->{pid};
my $unmet = qr/ERROR:  08007: could not commit on server "\w+"\nDETAIL:  MongoDB has applied the transaction, but not confirmed it as the write concern demands/;
like(run('INSERT INTO t_three_briefly VALUES (2, 2)'), $unmet, 'a commit that three members were to have, of whom one is frozen');
like(run("SET statement_timeout = '2s'; INSERT INTO t_three VALUES (3, 3); SET statement_timeout = 0"), qr/ERROR:  08007: could not commit/, '... without a limit of its own');
my $answer = run('INSERT INTO t_off_three VALUES (1, 9), (4, 4) ON CONFLICT DO NOTHING');
unlike($answer, qr/23505/, 'ON CONFLICT DO NOTHING in such a write is no error of the duplicate');
like($answer, qr/ERROR:  \w+: could not insert.*MongoDB error 64/s, '... but of the write concern');
kill 'CONT', $frozen->{pid};
is(stored(), '1:1 2:2 3:3 4:4', '... and all is there');
is(run('INSERT INTO t_three VALUES (5, 5)'), '', 'with all members it succeeds');
$set->primary->fail_command(1, undef, 'commitTransaction');
is(run('INSERT INTO t_three VALUES (6, 6)'), '', '... also after a repetition');
is(stored(), '5:5 6:6', '... and is there once');

done_testing();
