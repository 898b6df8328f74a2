# A sharded cluster: a mongos, a config server and two shards.  It needs a mongod and a mongos of
# MongoDB 3.6, the newest that a distribution packages; MONGODB_36 names their folder
# (docs/internals/testing.md).  PostgreSQL itself is the oracle, and each shard tells what reached
# it.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $programs = $ENV{MONGODB_36};
plan skip_all => 'MONGODB_36 does not name a folder with mongod and mongos' unless defined $programs;

my @pids;

END
{
	my $status = $?;
	foreach my $pid (@pids)
	{
		kill 'KILL', $pid;
		waitpid $pid, 0;
	}
	$? = $status;
}

sub command
{
	my ($port, $command, $database) = @_;
	return MongoFdwTest::helper('quiet', port => $port, command => $command, database => $database // 'admin');
}

# start_program: starts one in a new folder, and returns its port.
sub start_program
{
	my ($program, @arguments) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $deadline = time + 120;

	push @arguments, '--dbpath', $folder, '--wiredTigerCacheSizeGB', '0.25' if $program eq 'mongod';
	my $pid = fork // die "could not fork: $!";
	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>', "$folder/output");
		open(STDERR, '>&', \*STDOUT);
		POSIX::close($_) foreach 3 .. 255;
		exec "$programs/$program", @arguments, '--bind_ip', '127.0.0.1', '--port', $port, '--nounixsocket',
		  '--setParameter', 'enableTestCommands=1', '--setParameter', 'disableLogicalSessionCacheRefresh=true'
		  or POSIX::_exit(127);
	}
	push @pids, $pid;
	until (eval { command($port, '{"ping": 1}') })
	{
		die "$program does not start: " . slurp_file("$folder/output") if time > $deadline || waitpid($pid, POSIX::WNOHANG()) == $pid;
		sleep 0.1;
	}
	return $port;
}

# start_member: a replica set of one member.
sub start_member
{
	my ($name, $role) = @_;
	my $port = start_program('mongod', $role, '--replSet', $name, '--oplogSize', 16, '--setParameter', 'diagnosticDataCollectionEnabled=false',
		# documents that have moved stay for a while, and must not be read
		'--setParameter', 'orphanCleanupDelaySecs=2');
	my $configuration = $role eq '--configsvr' ? '"configsvr": true, ' : '';
	my $deadline = time + 60;

	command($port, qq({"replSetInitiate": {"_id": "$name", $configuration"members": [{"_id": 0, "host": "127.0.0.1:$port"}]}}));
	until (command($port, '{"isMaster": 1}')->{ismaster})
	{
		die "$name has no primary" if time > $deadline;
		sleep 0.1;
	}
	return $port;
}

my $config = start_member('config', '--configsvr');
my %shards = map { $_ => start_member($_, '--shardsvr') } qw(east west);
my $mongos = start_program('mongos', '--configdb', "config/127.0.0.1:$config");
command($mongos, qq({"addShard": "$_/127.0.0.1:$shards{$_}", "name": "$_"})) foreach sort keys %shards;
command($mongos, '{"enableSharding": "db"}');
command($mongos, '{"movePrimary": "db", "to": "east"}');
command($mongos, '{"balancerStop": 1}');
command($mongos, '{"shardCollection": "db.ranged", "key": {"k": 1}}');
command($mongos, '{"shardCollection": "db.hashed", "key": {"k": "hashed"}, "numInitialChunks": 8}');
command($mongos, '{"split": "db.ranged", "middle": {"k": 500}}');
command($mongos, '{"moveChunk": "db.ranged", "find": {"k": 500}, "to": "west"}');


# ------------------------- what MongoDB 3.6 lacks, by the HINTs ---------------------

my $columns = '_id int, k int, a int, b text, d timestamptz, n float8, tags text[], j jsonb';
my $node = new_postgres('sharded');
$node->safe_psql('postgres', qq{
	CREATE SERVER plain FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$mongos');
	CREATE SERVER cluster FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$mongos',
		transactions 'off', pushdown_disable 'disk_use, expr, let');
	CREATE USER MAPPING FOR CURRENT_USER SERVER plain;
	CREATE USER MAPPING FOR CURRENT_USER SERVER cluster;
	CREATE FOREIGN TABLE plain ($columns) SERVER plain OPTIONS (database 'db', collection 'ranged');
	CREATE FOREIGN TABLE ranged ($columns) SERVER cluster OPTIONS (database 'db');
	CREATE FOREIGN TABLE hashed ($columns) SERVER cluster OPTIONS (database 'db');
	CREATE TABLE local (_id int UNIQUE, k int, a int, b text, d timestamptz, n float8, tags text[], j jsonb);
	INSERT INTO ranged SELECT 0, 0});

sub ask
{
	my ($sql) = @_;
	my ($out, $error) = ('', '');

	$node->psql('postgres', "\\set VERBOSITY verbose\nSET plan_cache_mode = force_generic_plan;$sql", stdout => \$out, stderr => \$error);
	return ($out, $error);
}

foreach my $case (
	[ 'PREPARE p AS SELECT _id FROM plain WHERE a + 1 = $1; EXECUTE p (3)' => qr/Add "let" to the option pushdown_disable/ ],
	[ 'INSERT INTO plain (_id) VALUES (5)' => qr/set its option transactions to 'off'/ ],
	[ 'DELETE FROM plain WHERE k = 0 RETURNING a' => qr/set its option transactions to 'off'/ ])
{
	my ($statement, $hint) = @$case;
	my (undef, $error) = ask($statement);
	like($error, qr/ERROR:  0A000: .*HINT:  .*$hint/s, $statement);
}

# ------------------ reading and writing, while chunks move --------------------------

my $moves = 0;
sub move_chunk
{
	my $to = $moves++ % 2 ? 'west' : 'east';
	command($mongos, qq({"moveChunk": "db.ranged", "find": {"k": 500}, "to": "$to"}));
}

my @statements = (
	q{INSERT INTO t SELECT g, g, g % 7, 'row ' || g, '2024-01-01'::timestamptz + g * interval '1 h', g / 4.0, ARRAY['x' || g % 3, 'y'], jsonb_build_object('k', g) FROM generate_series(1, 1000) g},
	q{COPY t (_id, k, b) FROM PROGRAM 'seq 1001 1200 | sed "s/.*/&,&,copied/"' (FORMAT csv)},
	'SELECT * FROM t ORDER BY _id', 'SELECT * FROM t WHERE k = 7', 'SELECT * FROM t WHERE _id = 7', q{SELECT _id FROM t WHERE b = 'row 9'},
	q{SELECT _id FROM t WHERE b LIKE 'row 99%'}, 'SELECT _id FROM t WHERE k IN (3, 700) OR a IS NULL', 'SELECT count(*), count(a) FROM t WHERE a = 3',
	'SELECT count(*) FROM t', 'SELECT _id FROM t WHERE a + 1 = 4 AND k < 20', q{SELECT _id FROM t WHERE upper(b) = 'ROW 9'},
	q{SELECT _id FROM t WHERE d::date = '2024-01-02'}, q{SELECT _id FROM t WHERE (j->>'k')::int = 77}, q{SELECT _id FROM t WHERE 'x1' = ANY (tags) AND k < 9},
	'SELECT max(n), min(d) FROM t', 'SELECT a, count(*), max(b), sum(n) FROM t GROUP BY a', 'SELECT DISTINCT a FROM t',
	'SELECT _id FROM t ORDER BY a NULLS FIRST, k DESC LIMIT 3', 'SELECT _id FROM t ORDER BY d DESC NULLS LAST LIMIT 2 OFFSET 1',
	'SELECT count(*) FROM t x JOIN t y ON y.k = x.a WHERE x.k < 100', 'SELECT x._id, y._id FROM t x LEFT JOIN t y ON y._id = x.a WHERE x.k < 9',
	'PREPARE p AS SELECT _id FROM t WHERE a + 1 = $1 AND k < $2; EXECUTE p (3, 40)',
	q{UPDATE t SET b = 'y' WHERE k = 3}, 'UPDATE t SET a = a + 1 WHERE k = 3', 'UPDATE t SET a = a + 1 WHERE a = 5', q{UPDATE t SET j = j || '{"l": [1]}' WHERE k = 600},
	q{UPDATE t SET b = 'z' WHERE k = 7 RETURNING a, b}, q{UPDATE t SET b = b || '!' WHERE a = 2 RETURNING _id},
	'DELETE FROM t WHERE k = 4 RETURNING _id', 'DELETE FROM t WHERE a = 4', 'INSERT INTO t (_id, k) VALUES (2001, 2001) RETURNING _id',
	'SELECT count(*) FROM t WHERE k > 450 AND k < 550', 'SELECT * FROM t ORDER BY _id');
$node->safe_psql('postgres', 'DELETE FROM ranged');
foreach my $table ('ranged', 'hashed')
{
	my $number = 0;
	$node->safe_psql('postgres', 'TRUNCATE local');
	foreach my $statement (@statements)
	{
		my @answers;

		foreach my $name ($table, 'local')
		{
			(my $sql = $statement) =~ s/\b(FROM|JOIN|INTO|UPDATE|COPY) t\b/$1 $name/g;
			my ($out, $error) = ask($sql);
			push @answers, join("\n", sort split /\n/, $out . ($name eq 'local' ? '' : $error));
		}
		is($answers[0], $answers[1], "$table: $statement");
		move_chunk() if $table eq 'ranged' && $number++ % 3 == 0;
	}
}

# a cursor that is open while a chunk moves returns each row once
my $session = MongoFdwTest::Session->new($node, '-At');
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE ranged OPTIONS (ADD fetch_size '100')});
$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT _id FROM ranged');
my @rows = split /\n/, $session->ask('FETCH 150 FROM c');
move_chunk();
push @rows, split /\n/, $session->ask('FETCH ALL FROM c');
$session->ask('COMMIT');
$session->close;
my %seen;
is(scalar(grep { $seen{$_}++ } @rows), 0, 'a cursor over a chunk that moves returns no row twice');
is(scalar(keys %seen), $node->safe_psql('postgres', 'SELECT count(*) FROM ranged'), '... and all rows');

$node->safe_psql('postgres', 'CREATE SCHEMA imported; IMPORT FOREIGN SCHEMA db FROM SERVER cluster INTO imported');
is($node->safe_psql('postgres', 'SELECT count(*) FROM imported.hashed'), $node->safe_psql('postgres', 'SELECT count(*) FROM hashed'), 'IMPORT FOREIGN SCHEMA');

# --------------------- which shards a command reaches -------------------------------

# a chunk cannot return before its old documents are deleted
my $deadline = time + 60;
until (eval { command($mongos, '{"moveChunk": "db.ranged", "find": {"k": 500}, "to": "west"}') })
{
	die $@ if time > $deadline;
	sleep 0.5;
}

# reads: how many finds and writes each shard has counted since the last call
my %counted;
sub reached
{
	my @reached;
	foreach my $name (sort keys %shards)
	{
		my $metrics = command($shards{$name}, '{"serverStatus": 1}')->{metrics}{commands};
		my $sum = 0;
		$sum += $metrics->{$_}{total} foreach qw(find aggregate count insert update delete findAndModify);
		push @reached, $name if defined $counted{$name} && $sum > $counted{$name};
		$counted{$name} = $sum;
	}
	return "@reached";
}

foreach my $case (
	[ 'SELECT a FROM ranged WHERE k = 7' => 'east' ], [ 'SELECT a FROM ranged WHERE k = 777' => 'west' ],
	[ 'SELECT count(*) FROM ranged WHERE k BETWEEN 600 AND 700' => 'west' ], [ 'SELECT max(a) FROM ranged WHERE k = 7' => 'east' ],
	[ 'SELECT count(a) FROM ranged' => 'east west' ], [ 'SELECT k FROM ranged WHERE b = $$row 9$$' => 'east west' ],
	[ 'UPDATE ranged SET b = $$t$$ WHERE k = 777' => 'west' ], [ 'DELETE FROM ranged WHERE k = 778' => 'west' ],
	# the row that was found is deleted by its _id, which any shard may have
	[ 'DELETE FROM ranged WHERE k = 9 RETURNING a' => 'east west' ], [ 'INSERT INTO ranged (_id, k) VALUES (3000, 3000)' => 'west' ])
{
	my ($statement, $expected) = @$case;

	reached();
	my (undef, $failure) = ask($statement);
	is(reached() . $failure, $expected, "$statement reaches $expected");
}
reached();
ask('SELECT a FROM hashed WHERE k = 7');
like(reached(), qr/^(east|west)$/, 'one shard by a hashed key');

# ---------------------------------- errors ------------------------------------------

my (undef, $error) = ask('INSERT INTO ranged (_id, k) VALUES (3000, 3000)');
like($error, qr/ERROR:  23505: /, 'a duplicate in one shard');
(undef, $error) = ask('DELETE FROM ranged WHERE _id = 10 RETURNING a');
like($error, qr/ERROR:  0A000: .*Add a condition on the shard key/s, 'RETURNING of one row without the shard key');
(undef, $error) = ask('UPDATE ranged SET k = 4000 WHERE k = 3000');
like($error, qr/ERROR:  \w+: .*MongoDB error/s, 'the shard key cannot be changed');
is($node->safe_psql('postgres', 'SELECT count(*) FROM ranged WHERE k = 3000'), 1, '... nor is it');

# a shard that is gone: the other one answers
kill 'KILL', $pids[2];
waitpid $pids[2], 0;
(my $out, $error) = ask(q{SET statement_timeout = '60s'; SELECT count(a) FROM ranged});
like($error, qr/ERROR:  (08\w{3}|57014|HV000): /, 'a shard is gone');
($out) = ask('SELECT b FROM ranged WHERE k = 7');
is($out, 'z', '... and the other one still answers');

done_testing();
