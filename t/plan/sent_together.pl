# Commands that are sent before the reply to the first is waited for, over a network: the parts of
# an order, the sides of a join, and subselects.  A proxy withholds replies until all have come.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_postgres('sent_together');
my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $number = 0;
my ($proxy, $session);

$mongod->fill('db', 'points', 3000, 100);
$mongod->fill('db', 'others', 3000, 100);
$mongod->fill('db', 'sorted', 5000, 100);
$mongod->command('{"update": "sorted", "updates": [{"q": {"id": {"$lt": 3}}, "u": {"$set": {"id": null}}, "multi": true}]}', 'db');
$mongod->insert('db', 'empty', '[{"_id": 1}]');
$mongod->command('{"delete": "empty", "deletes": [{"q": {}, "limit": 0}]}', 'db');

# far_tables
#	Tables of a server behind a proxy, and a session that is connected to it.
sub far_tables
{
	my (%options) = @_;
	my $server = 'far' . ++$number;

	$proxy = MongoFdwTest::helper('record', port => $mongod->port);
	create_server($node, $server, $mongod, port => $proxy, round_trip_time => '20ms', bandwidth => '12MB',
		enable_join_pushdown => 'false', transactions => 'auto', %options);
	my $tables = join(' ', map {
		"CREATE FOREIGN TABLE $_ (id int, info text) SERVER $server OPTIONS (database 'db', fetch_size '1000');"
	} qw(points others sorted empty written));
	$node->safe_psql('postgres', "CREATE SCHEMA $server; SET search_path = $server; $tables ANALYZE points, others, sorted, empty");
	$session = MongoFdwTest::Session->new($node);
	$session->ask("SET search_path = $server; SET enable_nestloop = off; SET enable_mergejoin = off; SET mongo_fdw.enable_batched_joins = off; SELECT count(*) FROM empty");
}

# sends_together
#	The statement's result, for which so many commands must have come before any reply.
sub sends_together
{
	my ($count, $sql, $result, $name) = @_;

	MongoFdwTest::helper('hold', port => $proxy, count => $count);
	is($session->ask($sql), $result, $name);
	ok(MongoFdwTest::helper('held_enough', port => $proxy), "$name: $count commands at once");
}

# sends_in_turn
#	The statement's result, whose first command must be answered before the next one comes.
sub sends_in_turn
{
	my ($sql, $result, $name) = @_;

	MongoFdwTest::helper('hold', port => $proxy, count => 2);
	is($session->ask($sql), $result, $name);
	ok(!MongoFdwTest::helper('held_enough', port => $proxy), "$name: one after the other")
	  or diag(explain(MongoFdwTest::helper('recorded', port => $proxy)));
}

my $newest = 'SELECT id FROM sorted ORDER BY id DESC LIMIT';
my $join = 'SELECT count(*), sum(length(p.info)), sum(length(o.info)) FROM points p JOIN others o ON p.id = o.id + 1';
my $joined = $mongod->command('{"count": "points"}', 'db')->{n} - 1;

foreach my $compressors (undef, 'zlib')
{
	my $kind = $compressors // 'plain';

	far_tables(compressors => $compressors);
	sends_together(2, "$newest 4", "\n\n5000\n4999", "$kind: NULLs, then the greatest");
	sends_together(2, "SELECT string_agg(id::text, ' ') FROM ($newest 10) AS s", '5000 4999 4998 4997 4996 4995 4994 4993',
		"$kind: no more rows than LIMIT");
	sends_in_turn('SELECT count(*), max(id) FROM (SELECT id FROM sorted ORDER BY id DESC OFFSET 0) AS s', '5000|5000',
		"$kind: more rows than a batch has");
	like($session->ask("EXPLAIN (COSTS OFF) $join"), qr/Hash Join/, "$kind: a hash join");
	my $sums = $session->ask($join);
	like($sums, qr/^$joined\|/, "$kind: the join");
	sends_together(2, $join, $sums, "$kind: the sides of a join, of several batches");
	sends_together(2, 'SELECT (SELECT max(id) FROM points), (SELECT count(*) FROM others WHERE id < 10)', '3000|9',
		"$kind: two subselects");
	sends_together(3, 'SELECT max(o.id), count(s.id) FROM others o LEFT JOIN (SELECT id FROM sorted ORDER BY id DESC LIMIT 9) s ON s.id = o.id',
		'3000|0', "$kind: a side with two commands");
	is($session->ask('SELECT count(*) FROM empty e JOIN others o ON e.id = o.id'), 0, "$kind: the first side is empty");
	is($session->ask("$newest 1"), '', "$kind: after that, a reply nobody has read");
}

# In a MongoDB transaction commands follow each other.
sends_in_turn("BEGIN ISOLATION LEVEL REPEATABLE READ; $newest 3; COMMIT", "\n\n5000", 'in a transaction');

# A portal whose next batch has been requested is not disturbed by others.
is($session->ask(q{CREATE FUNCTION portals() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r record; s record; n int := 0; t int := 0; BEGIN
	FOR r IN SELECT info FROM points LOOP
		n := n + 1;
		CONTINUE WHEN n % 250 <> 0;
		FOR s IN SELECT id FROM sorted ORDER BY id DESC LIMIT 4 LOOP t := t + 1; EXIT WHEN n % 500 = 0; END LOOP;
		PERFORM 1 FROM empty e JOIN others o ON e.id = o.id JOIN sorted p ON p.id = o.id;
	END LOOP;
	RETURN n || ' ' || t; END $$; SELECT portals()}), '3000 30', 'while a portal is read, others are opened and left');

# Writes of the same statement, outside of MongoDB transactions.
$node->safe_psql('postgres', "ALTER SERVER far$number OPTIONS (SET transactions 'off')");
is($session->ask("INSERT INTO written SELECT * FROM sorted ORDER BY id DESC LIMIT 3000; SELECT count(*), count(id) FROM written"),
	'3000|2998', 'INSERT of what is read in parts');
$node->safe_psql('postgres', "ALTER SERVER far$number OPTIONS (SET transactions 'auto')");

# A plan shows each of its commands.
like($session->ask("EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) $newest 4"), qr/Command: .*\$eq.*Command 2: .*\$ne/s, 'EXPLAIN ANALYZE');

# Nobody waits for what is not needed.
sends_in_turn('SELECT count(*) FROM sorted WHERE id = 7', 1, 'a lone scan');

# Errors of the first and of the second leave the session usable.
$mongod->command('{"insert": "points", "documents": [{"_id": -1, "id": "no number"}]}', 'db');
$mongod->command('{"insert": "sorted", "documents": [{"_id": -1, "id": "no number"}]}', 'db');
foreach my $tables ('points p JOIN others o', 'others p JOIN points o', 'points p JOIN sorted o')
{
	like($session->ask("SELECT count(*), sum(length(p.info)), sum(o.id) FROM $tables ON p.id = o.id + 1"),
		qr/ERROR/, "$tables: an error");
	is($session->ask('SELECT count(*) FROM others'), 3000, "$tables: the next query");
}
$mongod->command('{"delete": "points", "deletes": [{"q": {"_id": -1}, "limit": 0}]}', 'db');
$mongod->command('{"delete": "sorted", "deletes": [{"q": {"_id": -1}, "limit": 0}]}', 'db');

# Cut connections: both commands are sent again.
MongoFdwTest::helper('cut', port => $proxy);
like($session->ask($join), qr/^$joined\|/, 'a connection lost before the query');

# A cursor does not see later writes, and later runs begin anew.
is($session->ask("BEGIN; DECLARE c CURSOR FOR $newest 5; FETCH 3 FROM c; DELETE FROM sorted WHERE id >= 4999 OR id IS NULL; "
	. 'FETCH 5 FROM c; ROLLBACK'), "\n\n5000\n4999\n4998", 'a write after the first rows');
is($session->ask("SELECT string_agg(id::text, ' ') FROM generate_series(1, 4) AS n, LATERAL ($newest n) AS s"), '5000 5000 4999',
	'again for each outer row');
is($session->ask("PREPARE p(int) AS $newest \$1; SET plan_cache_mode = force_generic_plan; EXECUTE p(3)"), "\n\n5000", 'LIMIT as a parameter');
is($session->ask('EXECUTE p(0)'), '', 'which is 0');
is($session->ask('EXECUTE p(NULL)') =~ tr/\n//, 4999, 'which is NULL');

# MongoDB kills a cursor some time after it was asked to.
ok(becomes(sub { $mongod->open_cursors == 0 }), 'no cursor is left');

# So does a cancelled wait.  The test's way of slowing MongoDB down lets it open the cursors later.
$mongod->block_commands(3000, 'find');
like($session->ask("SET statement_timeout = '1s'; $join"), qr/statement timeout/, 'cancelled');
$mongod->unblock_commands;
like($session->ask("RESET statement_timeout; $join"), qr/^$joined\|/, 'the next query after that');

$session->close;

done_testing();
