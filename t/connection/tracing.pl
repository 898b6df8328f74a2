# From MongoDB's log and profiler to the statement, its user and backend: the option
# comment, appname's escapes, and mongo_fdw.slow_command_ms.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $alone = MongoFdwTest::Mongod->new;
my $node = new_postgres('tracing', q{shared_preload_libraries = 'mongo_fdw, pg_stat_statements'});

create_server($node, 'mongodb', $mongod, replica_set => 'rs', fetch_size => 100);
create_server($node, 'alone', $alone);
create_point_table($node, 'mongodb', $mongod, 1000);
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_stat_statements;
	CREATE FOREIGN TABLE written (_id int, info text) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE written_alone (_id int, info text) SERVER alone OPTIONS (database 'db');
	INSERT INTO written_alone VALUES (0)});
$_->command('{"profile": 2}', 'db') foreach ($mongod, $alone);

# profiled
#	What the profiler has of these commands since the last time: comments by name.
my %seen;

sub profiled
{
	my ($server) = @_;
	my $reply = ($server // $mongod)->command(
		'{"find": "system.profile", "filter": {"ns": {"$ne": "db.system.profile"}}, "sort": {"$natural": 1}, "batchSize": 1000}', 'db');
	my @entries = @{ $reply->{cursor}{firstBatch} };
	my %comments;

	# in the order of their writing, as several have the same time
	splice(@entries, 0, $seen{ $server // $mongod } // 0);
	$seen{ $server // $mongod } += @entries;
	foreach my $entry (@entries)
	{
		my $command = $entry->{command};
		my ($name) = grep { exists $command->{$_} }
		  qw(getMore findAndModify findandmodify find aggregate count insert update delete);
		next if !$name;
		$comments{$name} = $command->{comment} // $entry->{comment} // '';
	}
	return \%comments;
}

my $session = MongoFdwTest::Session->new($node);
my $point = 'SELECT info FROM points WHERE id = 1';
my $user = $session->ask('SELECT current_user');
my $pid = $session->pid;

# --- off, and on -------------------------------------------------------------------
$session->ask($point);
is_deeply(profiled(), { find => '' }, 'by default there is no comment');
$session->ask(q{ALTER SERVER mongodb OPTIONS (ADD comment '%a|%u|%d|%p|%C|%Q|100%%|%x%'); SET application_name = 'report é'});
$session->ask($point);
my $queryid = $node->safe_psql('postgres', q{SELECT queryid FROM pg_stat_statements WHERE query LIKE 'SELECT info FROM points%'});
my $name = $session->ask('SHOW application_name');
is(profiled()->{find}, "$name|$user|postgres|$pid|tracing|$queryid|100%|", 'escapes in the comment of a find');
$session->ask('SET application_name = \'\'');
$session->ask($point);
is(profiled()->{find}, "|$user|postgres|$pid|tracing|$queryid|100%|", 'as application_name is now');
$session->ask(q{ALTER SERVER mongodb OPTIONS (SET comment '%c')});
$session->ask($point);
is(profiled()->{find}, $session->ask(q{SELECT to_hex(trunc(extract(epoch FROM backend_start))::int) || '.' || to_hex(pid)
	FROM pg_stat_activity WHERE pid = pg_backend_pid()}), 'a session');

# --- each command -------------------------------------------------------------------
$session->ask(q{ALTER SERVER mongodb OPTIONS (SET comment 'of %p'); ALTER SERVER alone OPTIONS (ADD comment 'of %p')});
$session->ask('SET mongo_fdw.enable_pushdown = off; SELECT count(*) FROM points; RESET mongo_fdw.enable_pushdown');
$session->ask(q{SELECT count(*) FROM mongo_aggregate('mongodb', 'db', 'points', '[{"$limit": 1}]')});
$session->ask(q{SELECT mongo_command('mongodb', 'db', '{"count": "points"}')});
my $comments = profiled();
is($comments->{$_}, "of $pid", "a $_ has it") foreach qw(find getMore aggregate count);
foreach my $table ('written', 'written_alone')
{
	my $server = $table eq 'written' ? $mongod : $alone;
	$session->ask("INSERT INTO $table SELECT g, 'x' FROM generate_series(1, 5) g");
	$session->ask("UPDATE $table SET info = 'y' WHERE _id < 3");
	$session->ask("UPDATE $table SET info = 'z' WHERE _id = 3 RETURNING info");
	$session->ask("DELETE FROM $table WHERE _id = 1");
	my $found = profiled($server);
	is($found->{insert}, "of $pid", "insert, $table");
	is($found->{findandmodify} // $found->{findAndModify}, "of $pid", "findAndModify, $table");
	# of updates and deletes the profiler has the single statements, with the comment beside
	my @ops = map { $_->{command}{comment} // $_->{comment} // '' } @{ $server->command(
		'{"find": "system.profile", "filter": {"op": {"$in": ["update", "remove"]}}, "batchSize": 100}', 'db')->{cursor}{firstBatch} };
	cmp_ok(scalar(@ops), '>=', 2, "updates and deletes, $table");
}
profiled();
$session->ask('BEGIN; INSERT INTO written VALUES (20); SELECT count(*) FROM written WHERE _id > 5; SELECT info FROM written WHERE _id = 20; COMMIT');
is(profiled()->{find}, "of $pid", 'a read in a transaction of MongoDB\'s');
is($session->ask(q{SELECT mongo_command('mongodb', 'db', '{"find": "points", "filter": {"id": 3}, "comment": "mine"}') ->> 'ok'}), '1.0', 'a command');
is(profiled()->{find}, 'mine', 'whose own comment stays');
is($session->ask(q{SELECT mongo_command('mongodb', 'db', '{"insert": "w", "documents": [{}], "comment": "mine"}') ->> 'n'}), '1', 'one that writes');

# --- a table's own, in its server's place ----------------------------------------------
foreach (qw(points written))
{
	$session->ask("ALTER FOREIGN TABLE $_ OPTIONS (ADD comment '$_ %p%%')");
}
profiled();
$session->ask('SET mongo_fdw.enable_pushdown = off; SELECT count(*) FROM points; RESET mongo_fdw.enable_pushdown; SET cpu_tuple_cost = 10');
$session->ask('SELECT count(*) FROM points WHERE id < 5; SELECT count(DISTINCT info) FROM points; RESET cpu_tuple_cost');
$comments = profiled();
is($comments->{$_}, "points $pid%", "a table's $_") foreach qw(find getMore count aggregate);
$session->ask('ANALYZE points');
is(profiled()->{aggregate}, "points $pid%", 'ANALYZE');
$session->ask("BEGIN; INSERT INTO written VALUES (30, 'x'); SET LOCAL mongo_fdw.enable_pushdown = off; "
	  . 'SELECT count(*) FROM written, points; COMMIT');
$comments = profiled();
is($comments->{insert}, "written $pid%", "a table's insert");
is($comments->{getMore}, "points $pid%", "a table's getMore in a transaction");
$session->ask(q{UPDATE written SET info = 'z' WHERE _id = 3 RETURNING info});
my $found = profiled();
is($found->{findandmodify} // $found->{findAndModify}, "written $pid%", "a table's findAndModify");
$session->ask(q{SELECT info FROM written_alone WHERE _id = 2});
is(profiled($alone)->{find}, "of $pid", 'and no other\'s');
$session->ask("ALTER FOREIGN TABLE $_ OPTIONS (DROP comment)") foreach qw(points written);

# --- hostile and long ---------------------------------------------------------------
my $odd = "\"}\x{c3}\x{bc}%u%%'";
(my $odd_quoted = $odd) =~ s/'/''/g;
$node->safe_psql('postgres', qq{CREATE ROLE "a%Q ""\x{c3}\x{bc}" SUPERUSER LOGIN; CREATE USER MAPPING FOR "a%Q ""\x{c3}\x{bc}" SERVER mongodb});
$session->ask("ALTER SERVER mongodb OPTIONS (SET comment '$odd_quoted')");
my (undef, $stdout) = $node->psql('postgres', $point, extra_params => [ '-U', "a%Q \"\x{c3}\x{bc}" ]);
is($stdout, 'info 1', 'an odd name');
my $comment = profiled()->{find};
utf8::encode($comment) if utf8::is_utf8($comment);
is($comment, "\"}\x{c3}\x{bc}a%Q \"\x{c3}\x{bc}%'", 'is what it is');
$session->ask("ALTER SERVER mongodb OPTIONS (SET comment '" . "\x{c3}\x{bc}" x 2000 . '\')');
is($session->ask($point), 'info 1', 'a long comment');
$comment = profiled()->{find};
is(length($comment), 511, 'is cut between two characters');
like($session->ask(q{ALTER SERVER mongodb OPTIONS (SET comment '')}), qr/option "comment" must not be empty/, 'an empty one is refused');
$session->ask(q{ALTER SERVER mongodb OPTIONS (SET comment '%')});
is($session->ask($point), 'info 1', 'one of nothing is not sent');
is(profiled()->{find}, '', 'at all');

# --- appname ------------------------------------------------------------------------
$session->ask(q{ALTER SERVER mongodb OPTIONS (ADD application_name 'pg %d %p %a'); SET application_name = 'nightly'});
$session->ask($point);
my $operations = $mongod->command('{"aggregate": 1, "pipeline": [{"$currentOp": {"idleConnections": true, "allUsers": true}}, '
	  . '{"$match": {"appName": {"$regex": "^pg "}}}], "cursor": {}}')->{cursor}{firstBatch};
is($operations->[0]{appName}, "pg postgres $pid nightly", 'escapes in application_name');
like($session->ask(q{ALTER SERVER mongodb OPTIONS (ADD appname 'x')}), qr/options "appname" and "application_name" cannot be given together/,
	'which is another name for appname');
$session->ask(q{ALTER SERVER mongodb OPTIONS (SET application_name '} . 'x' x 500 . q{')});
is($session->ask($point), 'info 1', 'a long one is cut');

# --- docs/operations.md: a slow command, the statement, and the backend ---------------
my $page = slurp_file('docs/operations.md');
my ($alter) = $page =~ /^(ALTER SERVER mongodb OPTIONS \(ADD comment .*?);/m;
my ($slow) = $page =~ /^(SELECT p ->> 'ns'.*?);/ms;
my ($running) = $page =~ /^(SELECT a\.pid.*?);/ms;
my ($pipeline) = $page =~ /aggregate\((\[\{"\$currentOp.*\])\)$/m;
my ($filter) = $page =~ /system\.profile\.find\((\{.*?\})\)/;
$session->ask('ALTER SERVER mongodb OPTIONS (DROP comment, DROP application_name, ADD allow_javascript \'true\')');
$session->ask($alter);
$mongod->command('{"profile": 0}', 'db');
$mongod->command('{"drop": "system.profile"}', 'db');
$mongod->command('{"profile": 2}', 'db');
my %statements = (
	query => [ 'SELECT id FROM points WHERE info = \'info 5\'', 'SELECT id FROM points WHERE info = $1', 1000 ],
	count => [ 'SELECT count(*) FROM points WHERE id < 7', 'SELECT count(*) FROM points WHERE id < $1', '' ],
	aggregate => [ 'SELECT sum(id) FROM points', 'SELECT sum(id) FROM points', 1000 ]);
$session->ask("SET cpu_tuple_cost = 10; $_->[0]; RESET cpu_tuple_cost") foreach values %statements;
my $slowest = $node->safe_psql('postgres', $slow);
like($slowest, qr/^db\.points\|(query|command)\|\d+\|$_->[2]\d*\|pid=$pid user=$user query=-?\d+\|\Q$_->[1]\E$/m,
	"from the profiler to the statement: $_->[0]") foreach values %statements;
is(scalar(grep { $_->{ns} eq 'db.points' } @{ $mongod->command("{\"find\": \"system.profile\", \"filter\": $filter}", 'db')->{cursor}{firstBatch} }),
	3, 'and without comments');

my $busy = MongoFdwTest::Session->new($node);
my $busy_pid = $busy->pid;
my %long = (
	aggregate => q{SELECT * FROM mongo_aggregate('mongodb', 'db', 'points', '[{"$match": {"$expr": {"$function": {"body": "function() { sleep(50); return true; }", "args": [], "lang": "js"}}}}]')},
	count => q{SELECT count(*) FROM points p WHERE mongo_match(p, '{"$where": "sleep(50) || true"}')});
foreach my $command (sort keys %long)
{
	my $count = 0;

	$busy->{in} .= "$long{$command};\n";
	$busy->{harness}->pump_nb;
	foreach (1 .. 100)
	{
		my $reply = $mongod->command("{\"aggregate\": 1, \"pipeline\": $pipeline, \"cursor\": {}}");
		$count = grep { $_->{command}{$command} } @{ $reply->{cursor}{firstBatch} };
		last if $count;
		sleep 0.1;
	}
	is($count, 1, "currentOp shows the $command, without a comment");
	my $found = $node->safe_psql('postgres', $running);
	like($found, qr/^$busy_pid\|$user\|\Q$long{$command}\E;\|db\.points\|\d*$/m, 'from currentOp to the backend');
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($busy_pid)");
	like($busy->ask('SELECT 1'), qr/1|canceling/, 'which is cancelled');
}
$busy->close;

# --- slow_command_ms ------------------------------------------------------------------
my $log = $node->logfile;
my $size = -s $log;
$session->ask('SET mongo_fdw.slow_command_ms = 0; SELECT info FROM points WHERE id = 77');
like(slurp_file($log, $size), qr/LOG:  slow command: \d+\.\d{3} ms on server "mongodb": \{ "find" : "points".*77/, 'a command that took long');
$size = -s $log;
$session->ask('INSERT INTO written VALUES (30)');
like(slurp_file($log, $size), qr/LOG:  slow command: \d+\.\d{3} ms on server "mongodb": \{ "insert" : "written"(?!.*documents)/, 'a write, without its documents');
$size = -s $log;
$session->ask('SET mongo_fdw.slow_command_ms = \'1h\'; SELECT info FROM points WHERE id = 78');
unlike(slurp_file($log, $size), qr/slow command/, 'and none that did not');
$size = -s $log;
$session->ask(q{SET mongo_fdw.slow_command_ms = 0; SELECT mongo_command('mongodb', 'db', '{"createUser": "bounded", "pwd": "s3cr3t", "roles": []}')});
my $logged = slurp_file($log, $size);
like($logged, qr/slow command: .*: createUser \(\d+ bytes\)/, 'createUser is logged by its name');
unlike($logged, qr/slow command.*s3cr3t/, 'without the password');
$session->ask(q{SELECT mongo_command('mongodb', 'db', '{"dropUser": "bounded"}'); SET mongo_fdw.slow_command_ms = '1h'});

$session->ask('CREATE ROLE poor; SET ROLE poor');
like($session->ask('SET mongo_fdw.slow_command_ms = 0'), qr/permission denied/, 'the log is the superuser\'s');
$session->close;

done_testing();
