# Connections, descriptors, sessions: no more than needed, none longer than
# needed, and one that has been closed meanwhile is seen.

use strict;
use warnings;

use IO::Socket::INET;
use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('connections');
create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 1000);
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE written (_id int, info text) SERVER mongodb OPTIONS (database 'db')});

# connections
#	Those of ours that MongoDB has open.
sub connections
{
	my ($server) = @_;
	my $reply = ($server // $mongod)->command('{"aggregate": 1, "pipeline": [{"$currentOp": {"idleConnections": true, "allUsers": true}},'
		  . ' {"$match": {"appName": "mongo_fdw"}}, {"$count": "n"}], "cursor": {}}');
	return $reply->{cursor}{firstBatch}[0]{n} // 0;
}

my $set = MongoFdwTest::ReplicaSet->new(1);
my $member = $set->primary;
create_server($node, 'replica_set', $member, replica_set => 'rs', keep_connections => 'false');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE in_set (_id int, info text) SERVER replica_set OPTIONS (database 'db')});

# --- keep_connections -----------------------------------------------------------
my $session = MongoFdwTest::Session->new($node);
$session->ask('SELECT info FROM points WHERE id = 1');
is(connections(), 1, 'a connection is kept');
$session->ask('INSERT INTO in_set VALUES (1)');
is($session->{err}, '', 'a transaction that writes');
ok(becomes(sub { connections($member) == 0 }), 'keeps none where keep_connections forbids it');
$session->close;

$session = MongoFdwTest::Session->new($node);
$session->ask('INSERT INTO in_set VALUES (2)');
is($session->{err}, '', 'a session that begins by writing');
ok(becomes(sub { connections($member) == 0 }), 'keeps none either');
$session->ask('SELECT info FROM in_set WHERE _id = 1');
ok(becomes(sub { connections($member) == 0 }), 'nor after reading');
$node->safe_psql('postgres', q{ALTER SERVER replica_set OPTIONS (SET keep_connections 'true')});

# --- a connection closed meanwhile ------------------------------------------------
# Neither of these may be sent twice, so each has to be seen before.
my $number = 2;
foreach my $case (
	[ $mongod, q{SELECT mongo_command('mongodb', 'db', '{"insert": "commanded", "documents": [{"_id": %d}]}')->>'n'} ],
	[ $mongod, q{INSERT INTO written VALUES (%d) RETURNING 1} ],
	[ $member, q{UPDATE in_set SET info = 'updated %d' WHERE _id = 1 RETURNING 1} ],
	[ $member, q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) - %d FROM in_set; INSERT INTO in_set VALUES (%1$d); COMMIT; SELECT 1} ])
{
	my ($server, $statement) = @$case;

	$session->ask(sprintf $statement, ++$number);
	$server->restart;
	$set->primary if $server == $member;
	$session->ask(sprintf $statement, ++$number);
	is($session->{err}, '', "after a restart: $statement");
}

# --- sessions ---------------------------------------------------------------------
# remembered
#	Sessions that MongoDB has after those that were ended are gone.
sub remembered
{
	my ($server) = @_;
	$server->command('{"refreshLogicalSessionCacheNow": 1}');
	my $count = $server->command('{"aggregate": "system.sessions", "pipeline": [{"$count": "n"}], "cursor": {}}', 'config');
	return $count->{cursor}{firstBatch}[0]{n} // 0;
}

my $before = remembered($mongod);
run_pgbench($node, "INSERT INTO written (info) VALUES ('x');\n", '-C', '-c', 4, '-j', 2, '-t', 25)
  if $node->safe_psql('postgres', q{ALTER FOREIGN TABLE written ALTER _id TYPE objectid}) eq '';
ok(becomes(sub { remembered($mongod) <= $before }), '100 backends that wrote leave no session on MongoDB')
  or diag(remembered($mongod) . " against $before");

# One that has none sends nothing at its end, and a stopped server holds nobody up.
$mongod->snapshot;
$node->safe_psql('postgres', 'SELECT info FROM points WHERE id = 1');
is($mongod->changes->{commands}{endSessions} // 0, 0, 'who has only read ends no session');
my $writer = MongoFdwTest::Session->new($node);
$writer->ask('INSERT INTO written (info) VALUES (\'y\')');
my $pid = $writer->pid;
kill 'STOP', $mongod->{pid};
my $start = time;
$writer->close;
ok(becomes(sub { !kill 0, $pid }), 'a session ends while MongoDB is stopped');
cmp_ok(time - $start, '<', 5, 'without waiting for it');
kill 'CONT', $mongod->{pid};

$session->close;

# no_cursors
#	None is left open on the server.
sub no_cursors
{
	my ($after) = @_;
	my $open;

	ok(becomes(sub {
		$open = $mongod->command('{"serverStatus": 1}')->{metrics}{cursor}{open}{total};
		return $open == 0;
	}), "after $after: no cursor is left open") or diag("$open are open");
}

# --- many partitions of one server --------------------------------------------------
# Each is the same collection of 300 documents in three batches, so that every
# answer is so many times that of one.
$mongod->fill('db', 'points', 300);
$node->safe_psql('postgres', qq{
	CREATE TABLE many (p int, id int, info text) PARTITION BY LIST (p);
	CREATE TABLE lots (p int, id int, info text) PARTITION BY LIST (p);
	DO \$\$ BEGIN FOR i IN 1..500 LOOP
		EXECUTE format('CREATE FOREIGN TABLE part_%s PARTITION OF %I FOR VALUES IN (%s) SERVER mongodb'
			' OPTIONS (database ''db'', collection ''points'', fetch_size ''100'')',
			i, CASE WHEN i <= 100 THEN 'many' ELSE 'lots' END, i);
	END LOOP; END \$\$});

$session = MongoFdwTest::Session->new($node);
$session->ask('SELECT info FROM points WHERE id = 1');
is(connections(), 1, 'a session has one connection');

# descriptors
#	Of the session's backend that are MongoDB's, or to wait for it.
sub descriptors
{
	my $folder = '/proc/' . $session->pid . '/fd';
	opendir(my $handle, $folder) or die "cannot read $folder: $!";
	return scalar grep { (readlink("$folder/$_") // '') =~ /socket|eventpoll/ } readdir $handle;
}
my $descriptors = descriptors();

# opened_by
#	A statement's answer, and how many connections it opened.
sub opened_by
{
	my ($statement, $settings) = @_;
	$session->ask($settings) if defined $settings;
	$mongod->snapshot;
	my $answer = $session->ask($statement);
	return ($answer, $mongod->changes->{connections});
}

my $all = 'SELECT count(*), sum(id), count(DISTINCT tableoid), count(*) FILTER (WHERE info = \'info \' || id) FROM';
my %expected = (many => '30000|4515000|100|30000', lots => '120000|18060000|400|120000');
foreach my $table ('many', 'lots')
{
	foreach my $async ('on', 'off')
	{
		my $plan = $session->ask("SET enable_async_append = $async; EXPLAIN (COSTS OFF) $all $table");
		is($plan =~ /Async Foreign Scan/ ? 'on' : 'off', $async, "$table: asynchronous $async");
		my ($answer, $opened) = opened_by("$all $table");
		is($answer, $expected{$table}, '... all rows of each');
		cmp_ok($opened, '<=', 3, '... over four connections at most');
		cmp_ok(descriptors(), '<=', $descriptors + 6, '... and two descriptors each');
	}
}
my $count = $expected{lots} =~ s/\|.*//r;
my $order = 'SELECT count(*), count(*) FILTER (WHERE in_order) FROM (SELECT id >= lag(id, 1, 0) OVER () AS in_order'
  . ' FROM (SELECT id FROM lots ORDER BY id OFFSET 0) s) t';
$session->ask('SET enable_sort = off');
my $append = $session->ask("EXPLAIN (COSTS OFF) $order");
like($append, qr/Merge Append/, '400 sorted scans are open at the same time');
my ($answer, $opened) = opened_by($order);
is($answer, "$count|$count", '... and come in order');
cmp_ok($opened, '<=', 3, '... over four connections at most');

# scans that end early, fail or are cancelled
$session->ask('SET enable_async_append = on');
no_cursors('all rows');
is(($session->ask('SELECT count(*) FROM (SELECT id FROM lots LIMIT 5000) s')), '5000', 'a LIMIT over 400 scans');
no_cursors('a LIMIT');
like($session->ask('SELECT 1 / (id - 250) FROM lots'), qr/division by zero/, 'an error in the middle');
no_cursors('an error');
is($session->ask("$all many"), $expected{many}, '... after which all rows come');
$mongod->block_commands(400, 'find');
$session->ask("SET statement_timeout = '1s'");
like($session->ask("$all lots"), qr/statement timeout/, 'a timeout while most wait for their turn');
$session->ask('RESET statement_timeout');
$mongod->unblock_commands;
no_cursors('a timeout');
is($session->ask("$all many"), $expected{many}, '... after which all rows come');

# terminated while the next batch of one of three cursors is on its way, and is not soon
# there; the last time MongoDB cannot be told at all until the session has gone
my $terminated = 0;
foreach my $waiting ('a', 'b', 'c', 'b')
{
	$session->ask('SELECT pg_advisory_lock(1)');
	my $dying = background_query($node, 'BEGIN; '
		  . join('', map { "DECLARE $_ CURSOR FOR SELECT * FROM points; MOVE 50 IN $_; " } 'a', 'b', 'c')
		  . "SELECT pg_advisory_lock_shared(1); MOVE 200 IN $waiting;");
	my $is_at = "FROM pg_stat_activity WHERE query LIKE 'SELECT pg_advisory_lock_shared%' OR query LIKE 'MOVE 200%'";
	my $waits = sub { $session->ask("SELECT wait_event_type $is_at") eq $_[0] };
	ok(becomes(sub { $waits->('Lock') }), "three cursors are open, $waiting will be asked");
	$mongod->block_commands(2000, 'getMore');
	$session->ask('SELECT pg_advisory_unlock(1)');
	ok(becomes(sub { $waits->('Extension') }), '... its next batch');
	kill 'STOP', $mongod->{pid} if ++$terminated == 4;
	$session->ask("SELECT pg_terminate_backend(pid, 5000) $is_at");
	kill 'CONT', $mongod->{pid};
	$mongod->unblock_commands;
	$dying->finish;
	no_cursors('a termination');
}
is($session->ask(q{DO $$ DECLARE n bigint; BEGIN FOR i IN 1..3 LOOP BEGIN
	PERFORM 1 / (id - 250) FROM many; EXCEPTION WHEN division_by_zero THEN NULL; END;
	END LOOP; SELECT count(*) INTO n FROM many; RAISE NOTICE 'rows %', n; END $$}) =~ /(rows \d+)/ ? $1 : '', 'rows 30000',
	'errors that are caught');
no_cursors('errors that are caught');

# the one connection that is allowed
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD async_connections '1')});
($answer, $opened) = opened_by("$all lots");
is("$answer, $opened", "$expected{lots}, 1", 'async_connections 1');
($answer, $opened) = opened_by($order);
is("$answer, $opened", "$count|$count, 0", '... also with all scans open');
# a function that asks the same server for each row takes answers off connections
# that Append would wait for
$node->safe_psql('postgres', q{CREATE FUNCTION exists_too(n int) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN RETURN EXISTS (SELECT FROM points WHERE id = n); END $$});
foreach my $count (2, 3)
{
	$node->safe_psql('postgres', "CREATE TABLE asked_$count (p int, id int, info text) PARTITION BY LIST (p)");
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE asked_${count}_$_ PARTITION OF asked_$count FOR VALUES IN ($_)"
		  . " SERVER mongodb OPTIONS (database 'db', collection 'points', fetch_size '100')") foreach 1 .. $count;
	foreach my $connections (1, 2)
	{
		$node->safe_psql('postgres', "ALTER SERVER mongodb OPTIONS (SET async_connections '$connections')");
		$session->ask("SET statement_timeout = '100s'");
		is($session->ask("SELECT count(*), sum(id) FROM asked_$count WHERE exists_too(id)"),
			$count * 300 . '|' . $count * 45150, "... or $connections, and questions within $count scans");
		$session->ask('RESET statement_timeout');
	}
}
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (DROP async_connections, ADD socket_timeout_ms '60000')});
is($session->ask("$all many"), $expected{many}, 'with socket_timeout_ms, which only our own waits observe');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (DROP socket_timeout_ms)});

# --- other ways to have many scans open ------------------------------------------------
# merge joins of twelve sorted scans, each of three batches
my $join = 'SELECT count(*), sum(t12.id) FROM ' . join(' JOIN ', 'points t1',
	map { "points t$_ ON t$_.id = t" . ($_ - 1) . '.id' } 2 .. 12);
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE points OPTIONS (ADD fetch_size '50')});
my $here = 'SET mongo_fdw.enable_join_pushdown = off; SET mongo_fdw.enable_batched_joins = off; SET join_collapse_limit = 1;'
  . ' SET enable_material = off;';
foreach my $way ('SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_mergejoin = on',
	'SET enable_hashjoin = on; SET enable_nestloop = off; SET enable_mergejoin = off')
{
	($answer, $opened) = opened_by($join, "$here $way");
	is($answer, '300|45150', "twelve tables, $way");
	cmp_ok($opened, '<=', 4, '... over four connections at most');
}
$session->ask("$here SET enable_hashjoin = off; SET enable_nestloop = on; SET enable_mergejoin = off");
is($session->ask('SELECT count(*), sum(a.id) FROM points a JOIN points b ON b.id = a.id JOIN points c ON c.id = b.id WHERE a.id % 3 = 0'),
	'100|15150', 'nested loops over scans of several batches');

# cursors read in turn, one of them kept over the transaction
my @cursors = map { "c$_" } 1 .. 8;
$session->ask('BEGIN');
$session->ask("DECLARE $_ CURSOR " . ($_ eq 'c8' ? 'WITH HOLD ' : '') . 'FOR SELECT id FROM points') foreach @cursors;
my $wrong = 0;
$mongod->snapshot;
foreach my $round (0 .. 3)
{
	my $rows = join("\n", 60 * $round + 1 .. 60 * $round + 60);
	$session->ask("FETCH 60 FROM $_") eq $rows or $wrong++ foreach @cursors;
}
is($wrong, 0, 'eight cursors read in turn have each their rows');
cmp_ok($mongod->changes->{connections}, '<=', 3, '... over four connections at most');
$session->ask('INSERT INTO written (info) VALUES (\'z\')');
is($session->ask('FETCH 2 FROM c1'), "241\n242", '... also after a write');
$session->ask('COMMIT');
is($session->ask('FETCH 2 FROM c8'), "241\n242", '... and one goes on after COMMIT');
$session->ask('CLOSE c8');

# one that is cancelled while it waits for the answer to another one
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD async_connections '1')});
$session->ask('BEGIN; DECLARE outer_cursor CURSOR FOR SELECT id FROM points');
$mongod->block_commands(1000, 'getMore');
$session->ask('FETCH 110 FROM outer_cursor; SAVEPOINT s');
like($session->ask("SET LOCAL statement_timeout = '100ms'; SELECT count(*) FROM points WHERE info > ''"),
	qr/statement timeout/, 'a scan whose wait for the connection is cancelled');
$mongod->unblock_commands;
is($session->ask('ROLLBACK TO s; FETCH ALL FROM outer_cursor'), join("\n", 111 .. 300),
	'... takes no rows away from the cursor that has it');
$session->ask('COMMIT');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (DROP async_connections)});

# functions that ask in the middle of a scan, and fail there
$session->ask(q{CREATE FUNCTION ask(n int) RETURNS text LANGUAGE plpgsql AS
	$$ DECLARE t text; BEGIN
		SELECT info INTO STRICT t FROM points WHERE id = n;
		IF n % 50 = 0 THEN PERFORM 1 / (id - 120) FROM points; END IF;
		RETURN t;
	EXCEPTION WHEN division_by_zero THEN RETURN 'failed'; END $$});
is($session->ask('SELECT count(*), count(*) FILTER (WHERE ask(id) = info), count(*) FILTER (WHERE ask(id) = \'failed\') FROM points'),
	'300|294|6', 'functions that ask and fail in the middle of a scan');

# a function that fails in a transaction block leaves nothing open until ROLLBACK
my $open = $mongod->open_cursors;
$session->ask('BEGIN');
like($session->ask('DO $$ BEGIN PERFORM 1 / (id - 150) FROM points; END $$'), qr/division by zero/, 'a function fails');
ok(becomes(sub { $mongod->open_cursors == $open }), '... and its cursor is closed before ROLLBACK');
$session->ask('ROLLBACK');

# a server that is altered under a cursor
$session->ask('BEGIN');
$session->ask('DECLARE c CURSOR FOR SELECT id FROM points');
$session->ask('FETCH 10 FROM c');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD appname 'another')});
$session->ask('SELECT info FROM points WHERE id = 1');
is(scalar(split /\n/, $session->ask('FETCH ALL FROM c')), 290, 'a cursor is read to its end while the server is altered');
$session->ask('COMMIT');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (DROP appname)});

no_cursors('other ways');
$session->ask('SELECT info FROM points WHERE id = 1');
ok(becomes(sub { connections() == 1 }), 'of several connections one is kept, a moment later') or diag(connections());
cmp_ok(descriptors(), '<=', $descriptors, 'with its descriptors');

# --- idle_timeout -------------------------------------------------------------------
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD idle_timeout '700ms')});
$session->ask('SELECT info FROM points WHERE id = 1');
ok(becomes(sub { connections() == 1 }), 'a connection is kept');
ok(becomes(sub { connections() == 0 }), '... until it has been idle for idle_timeout');
is($session->ask('SELECT info FROM points WHERE id = 1'), 'info 1', '... and made anew when wanted');
$session->ask('SELECT 1 / 0');
ok(becomes(sub { connections() == 0 }), '... also after an error');
$session->close;

# --- too many open files ---------------------------------------------------------------
my $small = new_postgres('few_files', 'max_files_per_process = 64');
my $uri = 'mongodb://127.0.0.1:' . $member->port . '/?replicaSet=rs';
$member->fill('db', 'points', 300);
$small->safe_psql('postgres', join(";\n", 'CREATE TABLE spread (p int, id int, info text) PARTITION BY LIST (p)',
		map {; "CREATE SERVER server_$_ FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri '$uri')",
			"CREATE USER MAPPING FOR CURRENT_USER SERVER server_$_",
			"CREATE FOREIGN TABLE spread_$_ PARTITION OF spread FOR VALUES IN ($_)"
			  . " SERVER server_$_ OPTIONS (database 'db', collection 'points')" } 1 .. 30));
# none is answered, and so idle again, before the last one is wanted
$member->block_commands(1000, 'find', 'aggregate');
$start = time;
my ($status, $stdout, $stderr) = $small->psql('postgres', "$all spread");
my $elapsed = time - $start;
$member->unblock_commands;
like($stderr, qr/could not connect to server "server_\d+"\nDETAIL:  There are too many open files on the local server.\nHINT:  Raise/,
	'30 servers at once: too many open files');
cmp_ok($elapsed, '<', 15, '... which is said at once');
is($small->safe_psql('postgres', "SET enable_async_append = off; $all spread"), '9000|1354500|30|9000',
	'one after the other: idle connections make room');

# --- a further connection that MongoDB refuses ----------------------------------------
my $small = MongoFdwTest::Mongod->new(arguments => [ '--maxConns', 20 ]);
create_server($node, 'small', $small);
$small->fill('db', 'points', 1000);
$node->safe_psql('postgres', join(';', 'CREATE TABLE refused (part int, id int) PARTITION BY LIST (part)',
	map { "CREATE FOREIGN TABLE refused_$_ PARTITION OF refused FOR VALUES IN ($_) SERVER small "
		  . "OPTIONS (database 'db', collection 'points', pipeline '[{\"\$set\": {\"part\": $_}}]')" } 1 .. 4));
my $sharing = MongoFdwTest::Session->new($node);
is($sharing->ask('SELECT count(*) FROM refused_1 WHERE id = 1'), '1', 'a session has a connection');
my @others = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $small->port) } 1 .. 30;
like(MongoFdwTest::Session->new($node)->ask('SELECT count(*) FROM refused_1'), qr/could not connect/, 'MongoDB takes no more');
my $all = 'SELECT count(*), sum(id) FROM refused WHERE md5(id::text) IS NOT NULL';
is($sharing->ask($all), '4000|2002000', 'its scans share it') or diag($sharing->{err});
is($sharing->ask('SELECT count(*) FROM refused_1 a, refused_2 b WHERE md5(a.id::text) = md5(b.id::text)'), '1000', '... also in a join');
close $_ foreach @others;

done_testing();
