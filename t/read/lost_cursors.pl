# Cursors that MongoDB loses under a scan: killed, or with their collection.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('lost_cursors');
create_server($node, 'mongodb', $mongod, fetch_size => 100);
create_point_table($node, 'mongodb', $mongod, 2000);

my $session = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');

# kill_cursors
#	Close all that MongoDB has open on db.points, as somebody else; how many.
sub kill_cursors
{
	my $open = $mongod->command('{"aggregate": 1, "pipeline": [{"$currentOp": {"idleCursors": true, "allUsers": true}},'
		  . ' {"$match": {"type": "idleCursor", "ns": "db.points"}}], "cursor": {}}');
	my @ids = map { $_->{cursor}{cursorId} } @{ $open->{cursor}{firstBatch} };

	$mongod->command('{"killCursors": "points", "cursors": [' . join(', ', map { "{\"\$numberLong\": \"$_\"}" } @ids) . ']}', 'db')
	  if @ids;
	return scalar @ids;
}

my $next = 'SELECT info FROM points WHERE id = 7';

# Killed between two batches, some rows having been handed out; a second time
# with the next batch on its way already.
foreach my $fetched (1, 150)
{
	$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT id FROM points');
	$session->ask("MOVE FORWARD $fetched IN c");
	is(kill_cursors(), 1, "after $fetched rows: a cursor is open");
	$session->ask('MOVE FORWARD ALL IN c');
	like($session->{err}, qr/ERROR:  24000: could not read collection "db\.points"/, "after $fetched rows: 24000");
	like($session->{err}, qr/HINT:  .*Run the query again/, 'with what to do');
	$session->ask('ROLLBACK');
	is($session->ask($next), 'info 7', 'the next query in the session works');
}

# The collection is dropped under the scan, or renamed.
foreach my $command ('{"drop": "points"}', '{"renameCollection": "db.points", "to": "db.elsewhere", "dropTarget": true}')
{
	$mongod->fill('db', 'points', 2000, 0);
	$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT id FROM points');
	$session->ask('MOVE FORWARD 1 IN c');
	$mongod->command($command, $command =~ /rename/ ? 'admin' : 'db');
	$session->ask('MOVE FORWARD ALL IN c');
	like($session->{err}, qr/ERROR:  24000: could not read collection/, "$command: 24000");
	$session->ask('ROLLBACK');
	is($session->ask('SELECT count(*) FROM points'), '0', 'the session goes on');
}

# A capped collection that laps the scan.
$mongod->command('{"create": "points", "capped": true, "size": 200000}', 'db');
my $documents = join(', ', map { "{\"id\": $_, \"info\": \"info $_\"}" } 1 .. 1000);
$mongod->command("{\"insert\": \"points\", \"documents\": [$documents]}", 'db');
$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT id FROM points');
$session->ask('MOVE FORWARD 1 IN c');
$mongod->command("{\"insert\": \"points\", \"documents\": [$documents]}", 'db') foreach 1 .. 8;
$session->ask('MOVE FORWARD ALL IN c');
like($session->{err}, qr/ERROR:  24000: .*HINT:  New documents/s, 'overtaken in a capped collection: 24000');
$session->ask('ROLLBACK');
like($session->ask($next), qr/^(info 7\n?)*$/, 'the session goes on');

# The command that opened the cursor is asked again when the network fails on
# the first batch, also where the connection was found good before.
foreach my $times (1, 2)
{
	$mongod->fail_command($times, undef, 'find');
	my $answer = $session->ask('SELECT count(*) >= 0 FROM (SELECT id, info FROM points OFFSET 0) p');
	$times == 1 ? is($answer, 't', 'a connection lost once: asked again') : like($answer, qr/ERROR:  08006/, 'lost twice: 08006');
	$mongod->unblock_commands;
}
# ... but not for a later batch, when rows have gone out.
$mongod->fail_command(1, undef, 'getMore');
like($session->ask('SELECT count(*) >= 0 FROM (SELECT id, info FROM points OFFSET 0) p'), qr/ERROR:  08006/,
	'a connection lost on getMore: 08006');
$mongod->unblock_commands;
is($session->ask('SELECT count(*) > 0 FROM points'), 't', 'the session goes on');

$session->close;
done_testing();
