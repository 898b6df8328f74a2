# Writes and transactions through a mongos: a proxy before the primary of a replica set that
# looks like one (t/lib/wire_recorder.py), as no mongos is to be had.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep);

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $mongos = MongoFdwTest::helper('mongos', port => $mongod->port);
my $node = new_postgres('mongos');

create_server($node, 'mongos', $mongod, port => $mongos, replica_set => undef);
create_server($node, 'untied', $mongod, port => $mongos, replica_set => undef, transactions => 'off');
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE t (_id int, a int) SERVER mongos OPTIONS (database 'db', collection 't');
	CREATE FOREIGN TABLE u (_id int, a int) SERVER untied OPTIONS (database 'db', collection 't')});
$mongod->command('{"create": "t"}', 'db');

my $session = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');

sub stored { return $node->safe_psql('postgres', q{SELECT string_agg(_id || ':' || a, ' ' ORDER BY _id) FROM u}) }

# ------------------------------- a transaction -----------------------------------

is($session->errors('BEGIN', 'INSERT INTO t VALUES (1, 1), (2, 2)', 'UPDATE t SET a = 5 WHERE _id = 2',
		'INSERT INTO t VALUES (1, 9), (3, 3) ON CONFLICT DO NOTHING', 'DELETE FROM t WHERE _id = 3 RETURNING a', 'COMMIT'),
	'', 'a transaction');
my @sent = recorded_commands($mongos);
is(names_of(@sent), 'insert update update findAndModify commitTransaction', '... its commands');
is(join(' ', map { $_->{startTransaction} ? 1 : 0 } @sent), '1 0 0 0 0', '... of which the first begins it');
my @tokens = map { $_->{recoveryToken}{number} // 0 } @sent;
cmp_ok($tokens[-1], '>=', 4, '... the commit has the last token that was told');
is(scalar(grep { $_ } @tokens), 1, '... and it alone');
is($sent[-1]{writeConcern}{w}, 'majority', '... and asks for a majority');
is(stored(), '1:1 2:5', '... all is done');
is($node->safe_psql('postgres', q{SELECT count(*) FROM t; SELECT DISTINCT server_role FROM mongo_fdw_get_connections()}), "2\nMongos",
	'a mongos is what it is taken for');

is($session->errors('BEGIN', 'DELETE FROM t', 'ROLLBACK'), '', 'a rollback');
@sent = recorded_commands($mongos);
is(names_of(@sent[ -2, -1 ]), 'delete abortTransaction', '... its commands');
ok($sent[-1]{recoveryToken}, '... the abort has a token');
is(stored(), '1:1 2:5', '... nothing is done');

# --------------------------- a commit over another one ----------------------------

$session->errors('BEGIN', 'UPDATE t SET a = 6 WHERE _id = 1');
MongoFdwTest::helper('cut', port => $mongos);
sleep 0.3;
recorded_commands($mongos);
is($session->errors('COMMIT'), '', 'a connection lost before COMMIT');
@sent = recorded_commands($mongos);
is(names_of(@sent), 'commitTransaction', '... is sent once, over another');
ok($sent[0]{recoveryToken}, '... with the token');
is(stored(), '1:6 2:5', '... and done');

$session->errors('BEGIN', 'UPDATE t SET a = 7 WHERE _id = 1');
recorded_commands($mongos);
$mongod->fail_command(1, undef, 'commitTransaction');
is($session->errors('COMMIT'), '', 'a connection lost with the commit');
@sent = recorded_commands($mongos);
is(names_of(@sent), 'commitTransaction commitTransaction', '... is sent again');
is_deeply($sent[1]{recoveryToken}, $sent[0]{recoveryToken}, '... with the token');
is_deeply([ @{ $sent[1]{writeConcern} }{qw(w wtimeout)} ], [ 'majority', 10000 ], '... and asks a majority, with a limit of time');
is(stored(), '1:7 2:5', '... and done');

# ---------------------------- without a transaction -------------------------------

recorded_commands($mongos);
is($session->errors('INSERT INTO u VALUES (4, 4)', 'UPDATE u SET a = 8 WHERE _id = 4 RETURNING a', 'DELETE FROM u WHERE _id = 2'), '',
	'writes without a transaction');
@sent = recorded_commands($mongos);
is(names_of(@sent), 'insert findAndModify delete', '... their commands');
is(scalar(grep { $_->{recoveryToken} || exists $_->{autocommit} } @sent), 0, '... of which none is in one');
is(stored(), '1:7 4:8', '... are done');
recorded_commands($mongos);
$mongod->fail_command(1, undef, 'insert');
is($session->errors('INSERT INTO u VALUES (5, 5)'), '', 'a connection lost with an insert');
@sent = recorded_commands($mongos);
is_deeply([ @{ $sent[1] }{qw(lsid txnNumber)} ], [ @{ $sent[0] }{qw(lsid txnNumber)} ], '... which is repeated as the same write');
is(stored(), '1:7 4:8 5:5', '... and done once');

# ------------------------- a collection that is sharded ---------------------------

# by its shard key only, MongoDB finds the one document of a findAndModify
foreach my $statement (q{UPDATE u SET a = 9 WHERE _id = 4 RETURNING a}, q{DELETE FROM t WHERE _id = 4 RETURNING a})
{
	$mongod->fail_command(1, 61, 'findAndModify');
	my $error = $session->errors($statement);
	like($error, qr/ERROR:  0A000: .*\nDETAIL:  MongoDB error 61 \(ShardKeyNotFound\).*\nHINT:  The collection is sharded, .*Add a condition on the shard key, .*leave out RETURNING/,
		"without the shard key: $statement");
	unlike($error, qr/WARNING/, '... which changes nothing, and warns of nothing');
}
is($session->errors(q{UPDATE u SET a = 9 WHERE _id = 4}, q{DELETE FROM u WHERE _id = 1}), '', 'and without RETURNING');
is(stored(), '4:9 5:5', '... they are done');

# ------------------------------ two of them --------------------------------------

my $second = MongoFdwTest::helper('mongos', port => $mongod->port);
$node->safe_psql('postgres', qq{
	CREATE SERVER pair FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1:$mongos,127.0.0.1:$second');
	CREATE USER MAPPING FOR CURRENT_USER SERVER pair;
	CREATE FOREIGN TABLE p (_id int, a int) SERVER pair OPTIONS (database 'db', collection 't')});
my %proxies = (first => $mongos, second => $second);

# sent_by: what each of them has got since this was last asked
sub sent_by
{
	return map { my @commands = recorded_commands($proxies{$_}); ($_ => \@commands) }
	  sort keys %proxies;
}

sent_by();
foreach my $number (1 .. 12)
{
	# a new session each time, as one keeps its connection
	my $one = MongoFdwTest::Session->new($node);
	$one->ask($_) foreach 'BEGIN', "INSERT INTO p VALUES (100 + $number, 1)", "UPDATE p SET a = a + 1 WHERE _id = 100 + $number",
	  "SELECT a FROM p WHERE _id = 100 + $number", 'COMMIT';
	my %commands = sent_by();
	my @used = grep { @{ $commands{$_} } } sort keys %commands;
	is(scalar(@used), 1, "transaction $number uses one mongos");
	is(names_of(@{ $commands{ $used[0] } }) =~ s/findAndModify/update/r, 'insert update find commitTransaction', '... for all its commands');
	$one->close;
}
is($node->safe_psql('postgres', 'SELECT count(*), min(a), max(a) FROM p WHERE _id > 100'), '12|2|2', '... and all are done');

# the mongos of a transaction dies: another one commits it, by the token
my $last = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');
sent_by();
$last->ask($_) foreach 'BEGIN', 'INSERT INTO p VALUES (200, 1)', 'UPDATE p SET a = 2 WHERE _id = 200';
my %commands = sent_by();
my ($pinned) = grep { @{ $commands{$_} } } keys %commands;
my ($rest) = grep { $_ ne $pinned } keys %proxies;
MongoFdwTest::helper('end', port => $proxies{$pinned});
$last->ask('COMMIT');
is($last->{err}, '', 'the mongos of a transaction dies before COMMIT');
%commands = sent_by();
like(names_of(@{ $commands{$rest} }), qr/^commitTransaction( commitTransaction)?$/, '... another one gets the commit');
ok($commands{$rest}[0]{recoveryToken}, '... with the token');
is($mongod->command('{"count": "t", "query": {"_id": 200, "a": 2}}', 'db')->{n}, 1, '... and the transaction is done');

# both are gone: MongoDB may have committed or not
$last->ask($_) foreach 'BEGIN', 'INSERT INTO p VALUES (300, 1)';
MongoFdwTest::helper('end', port => $proxies{$rest});
$last->ask('COMMIT');
like($last->{err}, qr/ERROR:  08\w{3}: /, 'no mongos is left at COMMIT');
is($mongod->command('{"count": "t", "query": {"_id": 300}}', 'db')->{n}, 0, '... the write is not there');
$last->close;

$session->close;
done_testing();
