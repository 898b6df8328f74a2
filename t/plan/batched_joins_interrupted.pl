# Batched joins that do not come to their end, by errors between two of their finds and
# within one or by closed cursors, and plans that are kept: the session goes on.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('interrupted', 'jit = off');
create_server($node, 'mongodb', $mongod, fetch_size => 500);
create_point_table($node, 'mongodb', $mongod, 10000);
$node->safe_psql('postgres', q{
	ALTER FOREIGN TABLE points ALTER COLUMN id OPTIONS (ADD indexed 'true');
	ALTER FOREIGN TABLE points OPTIONS (ADD estimated_rows '1000000');
	CREATE TABLE keys AS SELECT g AS n, g % 9000 AS k, repeat('x', 50) AS filler FROM generate_series(1, 10000) g;
	ANALYZE keys;
	ALTER DATABASE postgres SET enable_hashjoin = off;
	ALTER DATABASE postgres SET enable_mergejoin = off;
	ALTER DATABASE postgres SET enable_nestloop = off;
	ALTER DATABASE postgres SET max_parallel_workers_per_gather = 0});

my $session = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');
my $join = 'SELECT n, info, filler FROM keys JOIN points ON id = k';
my $all = "SELECT count(*), sum(n) FROM ($join OFFSET 0) j";
like($session->ask("EXPLAIN $join"), qr/Batched Join/, 'the plan');
my $answer = $session->ask($all);

sub goes_on
{
	my ($name) = @_;
	is($session->ask($all), $answer, "$name: the session goes on");
}

sub open_cursors
{
	my $open = $mongod->command('{"aggregate": 1, "pipeline": [{"$currentOp": {"idleCursors": true, "allUsers": true}},'
		  . ' {"$match": {"type": "idleCursor", "ns": "db.points"}}], "cursor": {}}');
	return map { $_->{cursor}{cursorId} } @{ $open->{cursor}{firstBatch} };
}

sub declare
{
	$session->ask("BEGIN; DECLARE c CURSOR FOR $join");
	$session->ask("MOVE FORWARD $_[0] IN c");
}

# closed in the first batch of rows and in a later one; then killed by somebody
foreach my $fetched (1, 3500)
{
	declare($fetched);
	$session->ask('CLOSE c; COMMIT');
	goes_on("closed after $fetched rows");
	ok(becomes(sub { !open_cursors() }), 'nothing stays open');
}
declare(3500);
my @ids = open_cursors();
is(scalar @ids, 1, 'one cursor is open, whatever was closed before');
$mongod->command('{"killCursors": "points", "cursors": [' . join(', ', map { "{\"\$numberLong\": \"$_\"}" } @ids) . ']}', 'db');
$session->ask('MOVE FORWARD ALL IN c');
like($session->{err}, qr/ERROR:  24000: could not read collection "db\.points"/, 'killed');
$session->ask('ROLLBACK');
goes_on('killed');

# in the first batch of rows, which is small in a cursor, and in a later one
foreach my $fetched (1, 3500)
{
	declare($fetched);
	$mongod->fail_command(5, undef, 'find', 'getMore');
	$session->ask('MOVE FORWARD ALL IN c');
	like($session->{err}, qr/ERROR:  08006/, "connection lost after $fetched rows");
	$mongod->unblock_commands;
	$session->ask('ROLLBACK');
	goes_on("connection lost after $fetched rows");

	declare($fetched);
	$mongod->fail_command(5, 11600, 'find', 'getMore');
	$session->ask('MOVE FORWARD ALL IN c');
	like($session->{err}, qr/ERROR:  \w+: /, "MongoDB shuts down after $fetched rows");
	$mongod->unblock_commands;
	$session->ask('ROLLBACK');
	goes_on("MongoDB shuts down after $fetched rows");

	declare($fetched);
	$mongod->block_commands(3000, 'find', 'getMore');
	$session->ask("SET LOCAL statement_timeout = '300ms'");
	$session->ask('MOVE FORWARD ALL IN c');
	like($session->{err}, qr/ERROR:  57014: canceling statement due to statement timeout/, "timeout after $fetched rows");
	$mongod->unblock_commands;
	$session->ask('ROLLBACK');
	goes_on("timeout after $fetched rows");
}

# an error of the outer side or of a clause; caught, with the connection still in use outside
$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT id FROM points; MOVE FORWARD 10 IN c');
foreach my $wrong ('FROM (SELECT k, n, 1 / (n - 5000) AS x FROM keys OFFSET 0) keys JOIN points ON id = k', 'FROM (SELECT n AS x, k FROM keys) keys JOIN points ON id = k AND 1 / (id - 5000) < x')
{
	$session->ask('SAVEPOINT s');
	$session->ask("SELECT count(*), sum(x) $wrong");
	like($session->{err}, qr/ERROR:  22012/, 'division by zero');
	$session->ask('ROLLBACK TO s');
}
$session->ask('MOVE FORWARD ALL IN c');
is($session->ask('COMMIT; SELECT 1'), '1', 'the cursor outside is read to its end');
goes_on('errors in a subtransaction');

# the plan outlives its table's options, its query and many executions with other parameters
$session->ask("SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS SELECT count(*), sum(id) FROM keys LEFT JOIN points ON id = k AND id <> \$1 WHERE n <= \$1");
like($session->ask('EXPLAIN EXECUTE p (1)'), qr/Batched Join.*\$1/s, 'a generic plan');
is($session->ask("EXECUTE p ($_)"), $session->ask("SELECT $_, nullif(sum(k) - $_, 0) FROM keys WHERE n <= $_"), "executed for $_") foreach 1, 300, 5000;
my $indexed = $session->ask('EXPLAIN EXECUTE p (1)');
$session->ask(q{ALTER FOREIGN TABLE points ALTER COLUMN id OPTIONS (SET indexed 'false')});
isnt($session->ask('EXPLAIN EXECUTE p (1)'), $indexed, 'planned anew: without an index');
$session->ask(q{ALTER FOREIGN TABLE points ALTER COLUMN id OPTIONS (SET indexed 'true')});
is($session->ask('EXPLAIN EXECUTE p (1)'), $indexed, 'and again: with an index');

# backwards, and WITH HOLD
$session->ask("BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR $join WHERE n <= 5 ORDER BY n; COMMIT");
is($session->ask('MOVE LAST IN c; FETCH BACKWARD 1 FROM c; CLOSE c'), '4|info 4|' . 'x' x 50, 'backwards');

# Under a function that is called for each row, so that the join runs within itself
$session->ask('CREATE FUNCTION inner_join(int) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE r bigint; BEGIN'
	  . ' SELECT count(*) INTO r FROM keys JOIN points ON id = k WHERE n <= $1; RETURN r; END $$');
is($session->ask('SELECT count(*), sum(inner_join(id)) FROM keys JOIN points ON id = k WHERE n <= 30'), '30|465', 'one within another');

$session->close;
done_testing();
