# MongoDB transactions that follow the PostgreSQL transaction.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $set = MongoFdwTest::ReplicaSet->new(3);
my $node = new_postgres('transactions', 'max_prepared_transactions = 5');
create_server($node, 'mongodb', $set->primary, replica_set => 'rs');
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE accounts (_id int, balance bigint) SERVER mongodb OPTIONS (database 'db');
	CREATE TABLE here (n int);
	INSERT INTO accounts SELECT g, 100 FROM generate_series(1, 10) g});

sub balance
{
	my ($id) = @_;
	my $reply = $set->primary->command("{\"find\": \"accounts\", \"filter\": {\"_id\": $id}}", 'db');
	my $document = $reply->{cursor}{firstBatch}[0];
	return defined $document ? $document->{balance} : undef;
}

my ($stdout, $stderr) = run_sql(q{BEGIN; UPDATE accounts SET balance = balance - 10 WHERE _id = 1;
	INSERT INTO accounts VALUES (11, 10); INSERT INTO here VALUES (1); SELECT count(*), sum(balance) FROM accounts; ROLLBACK});
is($stdout, '11|1000', 'a transaction reads what it wrote');
is_deeply([ balance(1), balance(11), $node->safe_psql('postgres', 'SELECT count(*) FROM here') ], [ 100, undef, 0 ], 'ROLLBACK undoes both sides');
is($stderr, '', '... without a word');
$node->safe_psql('postgres', q{BEGIN; UPDATE accounts SET balance = balance - 10 WHERE _id = 1;
	UPDATE accounts SET balance = balance + 10 WHERE _id = 2; INSERT INTO here VALUES (1); COMMIT});
is_deeply([ balance(1), balance(2), $node->safe_psql('postgres', 'SELECT count(*) FROM here') ], [ 90, 110, 1 ], 'COMMIT keeps both');

# an error in the middle of a statement, or in the transaction, undoes all of it
($stdout, $stderr) = run_sql(q{INSERT INTO accounts VALUES (20, 1), (21, 1), (1, 1), (22, 1)});
like($stderr, qr/23505: could not insert into foreign table "accounts", row 3/, 'a duplicate key names its row');
is(balance(20), undef, '... and nothing of the statement stays');
($stdout, $stderr) = run_sql(q{BEGIN; DELETE FROM accounts; INSERT INTO here VALUES ('x'); COMMIT});
is(balance(1), 90, 'an error elsewhere undoes the writes');
is($set->primary->open_transactions, 0, 'no transaction is left open');

# ON CONFLICT does not end the transaction
is($node->safe_psql('postgres', q{BEGIN; INSERT INTO accounts VALUES (1, 5), (30, 5), (30, 6) ON CONFLICT DO NOTHING;
	SELECT balance FROM accounts WHERE _id IN (1, 30) ORDER BY _id; ROLLBACK}), "90\n5", 'ON CONFLICT DO NOTHING in a transaction');

$set->primary->command('{"createIndexes": "labels", "indexes": [{"key": {"label": 1}, "name": "label", "unique": true}]}', 'db');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE labels (_id int, label text) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO labels VALUES (1, 'one'), (2, 'two')});
is($node->safe_psql('postgres', q{INSERT INTO labels VALUES (3, 'three'), (4, 'two'), (1, 'four'), (5, 'three'), (6, 'six') ON CONFLICT DO NOTHING;
	SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM labels}), '1 2 3 6', 'ON CONFLICT DO NOTHING passes over duplicates under any unique index');
is($node->safe_psql('postgres', q{INSERT INTO labels SELECT g, CASE WHEN g % 2 = 0 THEN 'six' ELSE 'label ' || g END FROM generate_series(4, 13) g ON CONFLICT DO NOTHING;
	SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM labels}), '1 2 3 5 6 7 9 11 13', '... of many rows');
is($node->safe_psql('postgres', q{INSERT INTO labels VALUES (20, 'one') ON CONFLICT DO NOTHING RETURNING _id;
	INSERT INTO labels VALUES (20, 'twenty') ON CONFLICT DO NOTHING RETURNING _id}), 20, '... with RETURNING, and when no row is left');
($stdout, $stderr) = run_sql(q{BEGIN; INSERT INTO labels VALUES (30, 'x'); INSERT INTO labels VALUES (31, 'one') ON CONFLICT DO NOTHING; COMMIT});
like($stderr, qr/23505: could not insert into foreign table "labels", row 1.*After the first command of a MongoDB transaction, ON CONFLICT DO NOTHING can only skip duplicates of _id/s,
	'later in a transaction those other than of _id are an error, which says so');
is($node->safe_psql('postgres', 'SELECT count(*) FROM labels WHERE _id >= 30'), 0, '... that undoes it');

# an _id that looks like a condition is a value like any other, which MongoDB does not store
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE any_id (__doc jsonb) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE any_id_x (_id json, x int) SERVER mongodb OPTIONS (database 'db', collection 'any_id')});
foreach my $id ('{"$exists": false}', '{"$gt": 0}')
{
	foreach my $before ('', q{INSERT INTO any_id VALUES ('{"_id": 1}');})
	{
		($stdout, $stderr) = run_sql("BEGIN; $before INSERT INTO any_id VALUES ('{\"_id\": $id, \"x\": 3}') ON CONFLICT DO NOTHING; COMMIT");
		like($stderr, qr/22023: could not insert.*MongoDB error 52/s, "an _id $id is refused" . ($before ? ' later in a transaction' : ''));
	}
}
is($node->safe_psql('postgres', q{BEGIN; INSERT INTO any_id VALUES ('{"_id": {"a": {"b": 1}}, "x": 1}');
	INSERT INTO any_id VALUES ('{"_id": {"a": {"b": 1}}, "x": 2}'), ('{"_id": null, "x": 3}'), ('{"x": 4, "_id": {"b": 1}}'),
		('{"_id": null, "x": 5}'), ('{"_id": {"$date": "2020-01-01T00:00:00Z"}}') ON CONFLICT DO NOTHING; COMMIT;
	SELECT string_agg(__doc::text, ' ' ORDER BY __doc ->> 'x') FROM any_id}),
	'{"x": 1, "_id": {"a": {"b": 1}}} {"x": 3, "_id": null} {"x": 4, "_id": {"b": 1}} {"_id": {"$date": "2020-01-01T00:00:00Z"}}',
	'documents, dates and null as _id with ON CONFLICT DO NOTHING in a transaction');

# ... but may have in older versions
$node->safe_psql('postgres', 'TRUNCATE any_id');
$set->primary->command('{"applyOps": [{"op": "i", "ns": "db.any_id", "o": {"_id": {"$gt": 0}, "x": 1}}]}');
is($node->safe_psql('postgres', q{INSERT INTO any_id VALUES ('{"_id": 1, "x": 0}');
	UPDATE any_id_x SET x = x + 10 WHERE x = 1 AND random() < 2; SELECT string_agg(x::text, ' ' ORDER BY x) FROM any_id_x;
	DELETE FROM any_id_x WHERE x = 11 AND random() < 2; SELECT string_agg(x::text, ' ' ORDER BY x) FROM any_id_x}), "0 11\n0",
	'the row with such an _id is updated and deleted, and no other');

# findAndModify
($stdout, $stderr) = run_sql(q{BEGIN; UPDATE accounts SET balance = 5 WHERE _id = 2 RETURNING balance; DELETE FROM accounts WHERE _id = 1 RETURNING _id; SELECT count(*) FROM accounts WHERE _id <= 2; ROLLBACK});
is($stdout . $stderr, "5\n1\n1", 'RETURNING in a transaction');
is(balance(1), 90, '... is undone');

# savepoints
$node->safe_psql('postgres', q{BEGIN; UPDATE accounts SET balance = 1 WHERE _id = 3; SAVEPOINT s; SELECT 1; ROLLBACK TO s; COMMIT});
is(balance(3), 1, 'a savepoint under which nothing was written may be rolled back');
($stdout, $stderr) = run_sql(q{BEGIN; SAVEPOINT s; UPDATE accounts SET balance = 2 WHERE _id = 3; RELEASE s; COMMIT});
is(balance(3), 2, 'released savepoint');
($stdout, $stderr) = run_sql(q{BEGIN; UPDATE accounts SET balance = 3 WHERE _id = 4; SAVEPOINT s;
	UPDATE accounts SET balance = 3 WHERE _id = 3; ROLLBACK TO s; COMMIT});
like($stderr, qr/0A000: cannot commit what was written to server "mongodb"/, 'a rolled back savepoint that wrote makes COMMIT fail');
is_deeply([ balance(3), balance(4) ], [ 2, 100 ], '... and undoes everything');
($stdout, $stderr) = run_sql(q{DO $$ BEGIN
	BEGIN INSERT INTO accounts VALUES (1, 1); EXCEPTION WHEN unique_violation THEN NULL; END;
	PERFORM count(*) FROM accounts; END $$});
like($stderr, qr/0A000: server "mongodb" cannot be used/, 'an exception block that wrote');
# postgres_fdw cannot release the savepoint of a block that wrote here, so that it is rolled back
$node->safe_psql('postgres', sprintf(q{CREATE EXTENSION postgres_fdw;
	CREATE SERVER itself FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'postgres');
	CREATE USER MAPPING FOR CURRENT_USER SERVER itself OPTIONS (user 'postgres');
	CREATE FOREIGN TABLE itself_here (n int) SERVER itself OPTIONS (table_name 'here')}, $node->host, $node->port));
($stdout, $stderr) = run_sql(q{SELECT count(*) FROM itself_here;
	DO $$ BEGIN
		UPDATE accounts SET balance = 77 WHERE _id = 7;
		PERFORM count(*) FROM itself_here;
		PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'postgres_fdw';
	EXCEPTION WHEN OTHERS THEN RAISE WARNING '%', SQLERRM; END $$});
like($stderr, qr/WARNING:.*0A000: cannot commit what was written to server "mongodb"/s, 'a savepoint that another wrapper cannot release');
is(balance(7), 100, '... undoes everything, too');
($stdout, $stderr) = run_sql(q{BEGIN; UPDATE accounts SET balance = 3 WHERE _id = 3; PREPARE TRANSACTION 'x'});
like($stderr, qr/0A000: cannot PREPARE/, 'PREPARE TRANSACTION');
is(balance(3), 2, '... rolls back');

# one snapshot
($stdout, $stderr) = run_sql(q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT balance FROM accounts WHERE _id = 5;
	\! sleep 0
	COMMIT});
is($stdout, 100, 'REPEATABLE READ');
{
	my $reader = MongoFdwTest::Session->new($node);
	my $sum = $reader->ask('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(balance) FROM accounts');
	sql('UPDATE accounts SET balance = balance + 1000 WHERE _id = 5');
	is($reader->ask('SELECT sum(balance) FROM accounts'), $sum, 'REPEATABLE READ reads one snapshot');
	is($reader->ask('COMMIT; SELECT sum(balance) FROM accounts'), $sum + 1000, '... until it ends');
	$reader->close;
}

# conflicts
{
	my $first = MongoFdwTest::Session->new($node);
	$first->ask('BEGIN; UPDATE accounts SET balance = balance + 1 WHERE _id = 6');
	($stdout, $stderr) = run_sql(q{BEGIN; UPDATE accounts SET balance = balance + 1 WHERE _id = 7; UPDATE accounts SET balance = balance + 1 WHERE _id = 6; COMMIT});
	like($stderr, qr/40001: could not update foreign table "accounts"/, 'a write conflict is a serialization failure');
	is(balance(7), 100, '... which undoes what came before');
	($stdout, $stderr) = run_sql(q{SET lock_timeout = 300; UPDATE accounts SET balance = balance + 1 WHERE _id = 6});
	like($stderr, qr/55P03: canceling statement due to lock timeout/, 'the first write of a transaction waits, at most lock_timeout');
	($stdout, $stderr) = run_sql(q{SET statement_timeout = 300; UPDATE accounts SET balance = balance + 1 WHERE _id = 6});
	like($stderr, qr/57014/, '... or until it is cancelled');
	my $second = background_query($node, q{UPDATE accounts SET balance = balance + 1 WHERE _id = 6 RETURNING balance});
	becomes(sub { sql(q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'UPDATE % RETURNING balance'}) });
	$first->ask('COMMIT');
	(undef, $stdout, $stderr) = $second->finish;
	is($stdout . $stderr, "102\n", '... or until the other has ended');
	is(balance(6), 102, '... and changes what that left');
	is($set->primary->open_transactions, 0, 'no attempt stays open');
}
{
	my $first = MongoFdwTest::Session->new($node);
	$first->ask('BEGIN; UPDATE accounts SET balance = balance + 1 WHERE _id = 6');
	my $started = time;
	($stdout, $stderr) = run_sql(q{DELETE FROM accounts WHERE _id = 6});
	like($stderr, qr/40001: could not delete from/, 'nothing waits for long, as MongoDB sees no deadlocks');
	my $waited = time - $started;
	ok($waited > 9 && $waited < 15, '... but ten seconds') or diag("waited $waited s");
	$first->close;
}

# a cancelled statement, a killed backend: MongoDB's transaction ends with it
{
	my $primary = $set->primary;

	$primary->block_commands(20000, 'update');
	my $started = time;
	($stdout, $stderr) = run_sql(q{SET statement_timeout = 500; BEGIN; INSERT INTO accounts VALUES (40, 1); UPDATE accounts SET balance = balance + 1 WHERE _id = 7;});
	like($stderr, qr/57014/, 'a write can be cancelled');
	cmp_ok(time - $started, '<', 10, '... at once');
	$primary->unblock_commands;
	is($node->safe_psql('postgres', 'UPDATE accounts SET balance = balance + 5 WHERE _id = 7; SELECT balance FROM accounts WHERE _id = 7'),
		105, '... and leaves no lock behind');
	is($set->primary->open_transactions, 0, '... and no transaction');

	my $victim = MongoFdwTest::Session->new($node);
	$victim->ask('BEGIN; UPDATE accounts SET balance = 0 WHERE _id = 8');
	is(sql("SELECT pg_terminate_backend(@{[ $victim->pid ]}, 60000)"), 't', 'a backend is terminated');
	is($node->safe_psql('postgres', 'UPDATE accounts SET balance = balance + 5 WHERE _id = 8; SELECT balance FROM accounts WHERE _id = 8'),
		105, 'a terminated backend aborts its transaction');
}

# commits whose outcome is not known at first
{
	my $primary = $set->primary;

	$primary->fail_command(1, undef, 'commitTransaction');
	$node->safe_psql('postgres', 'UPDATE accounts SET balance = 1 WHERE _id = 9');
	is(balance(9), 1, 'a commit is sent again after a broken connection');
	$primary->fail_command(1, 91, 'commitTransaction');
	$node->safe_psql('postgres', 'UPDATE accounts SET balance = 2 WHERE _id = 9');
	is(balance(9), 2, '... and after an error that says nothing of the outcome');
	$primary->fail_command(1, 251, 'commitTransaction');
	($stdout, $stderr) = run_sql('UPDATE accounts SET balance = 3 WHERE _id = 9');
	like($stderr, qr/40001: could not commit on server "mongodb"/, 'a commit that is refused is a serialization failure');
	is(balance(9), 2, '... and was none');
	$primary->command('{"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": {"failCommands": ["commitTransaction"], "closeConnection": true}}');
	my $hopeless = background_query($node, '\set VERBOSITY verbose' . "\nUPDATE accounts SET balance = 4 WHERE _id = 2");
	sleep 2;
	$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'UPDATE accounts SET balance = 4%'});
	my ($status, $out, $error) = $hopeless->finish;
	like($error, qr/08007: could not commit on server "mongodb"/, 'an outcome that stays unknown is 08007');
	$primary->unblock_commands;
}

# an election in the middle
{
	my $writer = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');
	$writer->ask('BEGIN; UPDATE accounts SET balance = 0 WHERE _id = 10');
	$set->step_down;
	like($writer->errors('UPDATE accounts SET balance = 0 WHERE _id = 3; COMMIT'), qr/40001/, 'a transaction that an election ended is a serialization failure');
	is(balance(10), 100, '... and has left nothing');
	is($node->safe_psql('postgres', 'UPDATE accounts SET balance = 5 WHERE _id = 10; SELECT balance FROM accounts WHERE _id = 10'), 5, 'the next one reaches the new primary');
}

# mongo_command() takes no part
my $before = balance(2);
($stdout, $stderr) = run_sql(q{BEGIN; UPDATE accounts SET balance = 1 WHERE _id = 2;
	SELECT mongo_command('mongodb', 'db', '{"update": "accounts", "updates": [{"q": {"_id": 3}, "u": {"$set": {"balance": 33}}}]}') ->> 'n'; ROLLBACK});
is($stderr =~ s/^psql:\S+ |^LOCATION.*(\n|\z)//mgr, "WARNING:  01000: changes on server \"mongodb\" were not rolled back\nDETAIL:  1 command that may have changed something had been run in this transaction by mongo_command() or mongo_aggregate(), which take no part in MongoDB's transactions.\n",
	'ROLLBACK warns of mongo_command() beside a MongoDB transaction');
is(balance(3), 33, '... which stays');
is(balance(2), $before, '... while the transaction does not');

# transactions off
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD transactions 'off')});
($stdout, $stderr) = run_sql('BEGIN; UPDATE accounts SET balance = 77 WHERE _id = 1; ROLLBACK');
like($stderr, qr/WARNING:  01000: changes on server "mongodb" were not rolled back/, 'transactions off: ROLLBACK warns');
is(balance(1), 77, '... and changes nothing');
$set->primary->fail_command(1, 91, 'update');
$node->safe_psql('postgres', 'UPDATE accounts SET balance = 78 WHERE _id = 1');
is(balance(1), 78, 'writes that MongoDB can recognize are retried');

done_testing();
