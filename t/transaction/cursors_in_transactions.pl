# Inside a MongoDB transaction no cursor stays open on the server that nobody
# reads, and a scan that is read to its end costs no command for that.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $TRANSACTIONS = $ENV{CURSOR_TRANSACTIONS} || 3000;

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $node = new_postgres('cursors_in_transactions');
create_server($node, 'mongodb', $mongod, replica_set => 'rs', fetch_size => 100);
create_point_table($node, 'mongodb', $mongod, 2000);
$mongod->fill('db', 'others', 2000);
$node->safe_psql('postgres',
	"CREATE FOREIGN TABLE others (id int, info text) SERVER mongodb OPTIONS (database 'db')");

# settled
#	Does it come to so many?  The last kill may still be on its way.
sub settled
{
	my ($count) = @_;
	foreach (1 .. 50)
	{
		return 1 if $mongod->open_cursors == $count;
		Time::HiRes::sleep(0.1);
	}
	diag($mongod->open_cursors . ' cursors are open');
	return 0;
}

my $session = MongoFdwTest::Session->new($node);
my $begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ';

# killed
#	How many killCursors MongoDB sees of these statements.
sub killed
{
	$mongod->snapshot;
	$session->ask($_) foreach @_;
	return $mongod->changes->{commands}{killCursors} // 0;
}

$session->ask("$begin; SELECT count(info) FROM points; COMMIT");
is($mongod->open_cursors, 0, 'none at the start');

# --- the common case sends nothing ------------------------------------------------
is(killed($begin, 'SELECT info FROM points WHERE id = 7', 'SELECT count(*) FROM points',
		'SELECT info FROM points LIMIT 3', 'SELECT sum(length(info)) FROM points', 'COMMIT'), 0,
	'scans that are read to their end, and limits that MongoDB knows of, send no killCursors');
is($mongod->open_cursors, 0, 'and leave no cursor');

# --- scans that end early -----------------------------------------------------------
my $early = 'SELECT count(*) FROM (SELECT info FROM points WHERE id % 2 = length(info) % 2 LIMIT 2) s';
my %ways = (
	'LIMIT, committed' => [ $early, 'COMMIT' ],
	'LIMIT, rolled back' => [ $early, 'ROLLBACK' ],
	'LIMIT after a write' => [ "UPDATE points SET info = 'x' WHERE id = 1", $early, 'COMMIT' ],
	'a closed cursor' => [ 'DECLARE c CURSOR FOR SELECT * FROM points', 'FETCH 3 FROM c', 'CLOSE c', 'COMMIT' ],
	'a cursor open at COMMIT' => [ 'DECLARE c CURSOR FOR SELECT * FROM points', 'FETCH 150 FROM c', 'COMMIT' ],
	'a cursor open at ROLLBACK' => [ 'DECLARE c CURSOR FOR SELECT * FROM points', 'FETCH 150 FROM c', 'ROLLBACK' ],
	'two collections' => [ 'DECLARE c CURSOR FOR SELECT * FROM points', 'FETCH 3 FROM c',
		'DECLARE d CURSOR FOR SELECT * FROM others', 'FETCH 3 FROM d', 'COMMIT' ],
	'an error' => [ 'SELECT 1 / (id - 150) FROM points', 'COMMIT' ],
	'an error in a savepoint' => [ 'SAVEPOINT s', 'SELECT 1 / (id - 150) FROM points', 'ROLLBACK TO s',
		'SELECT count(*) FROM points', 'COMMIT' ],
	'an error of MongoDB\'s' => [ 'DECLARE c CURSOR FOR SELECT * FROM points', 'FETCH 3 FROM c',
		'SELECT 1 / (id - id) FROM points', 'COMMIT' ],
	'a cursor WITH HOLD' => [ 'DECLARE c CURSOR WITH HOLD FOR SELECT * FROM points', 'FETCH 3 FROM c', 'COMMIT', 'CLOSE c' ],
	'EXISTS' => [ 'SELECT EXISTS (SELECT FROM points WHERE id > 5 OFFSET 0)', 'COMMIT' ],
	'EXISTS for many rows' => [ 'SET LOCAL mongo_fdw.enable_join_pushdown = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off',
		'SELECT count(*) FROM generate_series(1, 20) g WHERE EXISTS (SELECT FROM points p WHERE p.id % g = 0 AND length(p.info) > 0)', 'COMMIT' ]);
foreach my $name (sort keys %ways)
{
	my $commands = killed($begin, @{ $ways{$name} });
	cmp_ok($commands, '<=', $name eq 'two collections' ? 2 : 1, "$name: at most a command a collection");
	ok(settled(0), "$name: no cursor is left");
}

# within one long transaction they do not pile up either
$session->ask($begin);
$session->ask("DO \$\$ DECLARE n int; BEGIN FOR i IN 1..450 LOOP $early INTO n; END LOOP; END \$\$"
	  =~ s/SELECT count\(\*\) FROM (.*?) INTO n/SELECT count(*) INTO n FROM $1/r);
my $open = $mongod->open_cursors;
cmp_ok($open, '<=', 101, "450 scans of one transaction leave $open at a time");
$session->ask('DO $$ BEGIN FOR i IN 1..450 LOOP BEGIN PERFORM 1 / (id - 150) FROM points;'
	  . ' EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$');
$open = $mongod->open_cursors;
cmp_ok($open, '<=', 101, "450 scans that fail in a block leave $open");
$session->ask('COMMIT');
ok(settled(0), 'and none after COMMIT');

# a session that ends in mid-transaction
my $other = MongoFdwTest::Session->new($node);
$other->ask($_) foreach $begin, 'DECLARE c CURSOR FOR SELECT * FROM points', 'FETCH 3 FROM c';
is($mongod->open_cursors, 1, 'a cursor of a session');
$other->close;
ok(settled(0), 'goes with it');

# what is broken off, also where the server takes its time to answer the abort
foreach my $case ([ 'a getMore', 'getMore' ], [ 'a find', 'find' ],
	[ 'a getMore, with a slow abort', 'getMore', 'abortTransaction' ],
	[ 'a find, with a slow abort', 'find', 'abortTransaction' ])
{
	my ($name, @commands) = @$case;

	$mongod->block_commands(600, @commands);
	my (undef, undef, $message) = $node->psql('postgres',
		"SET statement_timeout = 200; $begin; SELECT count(DISTINCT info) FROM points WHERE length(info) > 0");
	$mongod->unblock_commands;
	like($message, qr/canceling statement due to statement timeout/, "$name that is cancelled");
	Time::HiRes::sleep(0.7);    # until MongoDB has done what it had begun
	ok(settled(0), 'leaves no cursor');
}

# a connection that is lost takes its cursors with it
$mongod->fail_command(1, undef, 'getMore');
my (undef, undef, $lost) = $node->psql('postgres',
	"$begin; SELECT count(DISTINCT info) FROM points WHERE length(info) > 0");
like($lost, qr/ERROR:  could not read collection/, 'a connection that is lost with a getMore');
ok(settled(0), 'leaves no cursor');

# --- thousands ------------------------------------------------------------------------
run_pgbench($node, "\\set id random(1, 1000)\n$begin;\n"
	  . "SELECT count(*) FROM (SELECT info FROM points WHERE id % 2 = length(info) % 2 LIMIT 2) s;\n"
	  . "SELECT 1 FROM others WHERE id >= :id AND length(info) > 0 LIMIT 1;\nEND;\n",
	'-c', 4, '-j', 2, '-t', int($TRANSACTIONS / 4));
ok(settled(0), "$TRANSACTIONS transactions leave no cursor");

$session->close;
done_testing();
