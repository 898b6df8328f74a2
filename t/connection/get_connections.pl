# Which connections a session has, closing them, and how many all have together.

use strict;
use warnings;

use IO::Socket::INET;
use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $mongod = MongoFdwTest::Mongod->new;
my $set = MongoFdwTest::ReplicaSet->new(1);
my $node = new_postgres('get_connections', q{shared_preload_libraries = 'mongo_fdw'});

create_server($node, 'mongodb', $mongod);
create_server($node, 'replica_set', $set->primary, replica_set => 'rs', compressors => 'zlib');
create_point_table($node, 'mongodb', $mongod, 5000);
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE in_set (_id int, info text) SERVER replica_set OPTIONS (database 'db');
	INSERT INTO in_set VALUES (1, 'one')});

my $connections = 'SELECT server_name, user_name, server_role, state, valid, in_transaction, idle_since IS NULL, '
  . 'compressor, tls FROM mongo_fdw_get_connections() ORDER BY 1';
my $point = 'SELECT info FROM points WHERE id = 1';
my $session = MongoFdwTest::Session->new($node);
my $user = $session->ask('SELECT current_user');

# --- what is shown ---------------------------------------------------------------
is($session->ask('SELECT count(*) FROM mongo_fdw_get_connections()'), 0, 'a session begins with none');
is($session->ask('SELECT mongo_fdw_disconnect_all()'), 'f', 'so there is none to close');
$session->ask($point);
is($session->ask($connections), "mongodb|$user|Standalone|idle|t|f|f||f", 'one after a query');
is($session->ask('SELECT host, age < interval \'1 minute\', bytes_sent > 100, bytes_received > 100 FROM mongo_fdw_get_connections()'),
	'127.0.0.1:' . $mongod->port . '|t|t|t', 'where it leads to, and what it has carried');
my $commands = 'SELECT commands FROM mongo_fdw_get_connections()';
my $before = $session->ask($commands);
$session->ask($point) foreach 1 .. 10;
is($session->ask($commands) - $before, 10, 'a query is a command');
$before = $session->ask('SELECT bytes_received FROM mongo_fdw_get_connections()');
$session->ask('SELECT count(*) FROM points WHERE length(info) > 0');
$session->ask('SET mongo_fdw.enable_pushdown = off; SELECT count(*) FROM points WHERE length(info) > 0; RESET mongo_fdw.enable_pushdown');
cmp_ok($session->ask('SELECT bytes_received FROM mongo_fdw_get_connections()') - $before, '>', 5000 * 30, 'bytes of a scan');

$session->ask('BEGIN; INSERT INTO in_set VALUES (2)');
is($session->ask($connections), "mongodb|$user|Standalone|idle|t|f|f||f\n"
	  . "replica_set|$user|RSPrimary|in transaction|t|t|t|zlib|f", 'a transaction of MongoDB\'s');
is($session->ask('SELECT mongo_fdw_disconnect(\'replica_set\')'), 'f', 'is not closed');
like($session->{err}, qr/WARNING:  cannot close connection for server "replica_set" because it is still in use/, 'with a warning');
is($session->ask('SELECT mongo_fdw_disconnect_all()'), 't', 'what is idle is');
like($session->{err}, qr/server "replica_set" because/, 'and the other is warned of');
is($session->ask('SAVEPOINT s; SELECT mongo_fdw_disconnect_all(); ROLLBACK TO s'), 'f', 'in a subtransaction');
$session->ask('COMMIT');
is($session->ask('SELECT count(*) FROM in_set'), 2, 'and its transaction commits');
is($session->ask('SELECT mongo_fdw_disconnect(\'replica_set\')'), 't', 'after it, it is closed');
is($session->ask($connections), '', 'and gone');

# --- cursors ---------------------------------------------------------------------
$session->ask("ALTER SERVER mongodb OPTIONS (ADD fetch_size '100'); BEGIN; DECLARE c CURSOR FOR SELECT id FROM points; FETCH 150 FROM c");
like($session->ask($connections), qr/^mongodb\|$user\|Standalone\|(open cursor|active)\|t\|f/, 'a cursor that is open');
is($session->ask('SELECT mongo_fdw_disconnect(\'mongodb\')'), 'f', 'is not cut off');
like($session->{err}, qr/still in use/, 'with a warning');
is($session->ask('FETCH 1 FROM c'), 151, 'and goes on');
is($session->ask('MOVE 100000 IN c; FETCH 1 FROM c; COMMIT; SELECT mongo_fdw_disconnect(\'mongodb\')'), 't', 'at its end there is nothing in use');
is($mongod->counters->{open_cursors} // 0, 0, 'and MongoDB has no cursor');

# --- names, roles, what changes --------------------------------------------------
like($session->ask('SELECT mongo_fdw_disconnect(\'nonsense\')'), qr/server "nonsense" does not exist/, 'a server that is not there');
is($session->ask('SELECT mongo_fdw_disconnect(NULL)'), '', 'NULL');
my $port = $mongod->port;
$session->ask(qq{CREATE SERVER "a ""b' \x{c3}\x{bc}" FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port');
	CREATE USER MAPPING FOR PUBLIC SERVER "a ""b' \x{c3}\x{bc}";
	CREATE FOREIGN TABLE odd (id int) SERVER "a ""b' \x{c3}\x{bc}" OPTIONS (database 'db', collection 'points')});
is($session->ask('SELECT count(*) FROM odd WHERE id = 3'), 1, 'a server with an odd name');
like($session->ask($connections), qr/^a "b' \x{c3}\x{bc}\|public\|Standalone\|idle/, 'is shown by it, and the mapping of all as public');
is($session->ask(q{BEGIN; DROP SERVER "a ""b' } . "\x{c3}\x{bc}" . q{" CASCADE; SELECT server_name IS NULL, user_name IS NULL, valid FROM mongo_fdw_get_connections()}),
	't|t|f', 'dropped, it has no name and is not valid');
$session->ask('ROLLBACK');
is($session->ask(q{SELECT mongo_fdw_disconnect('a "b'' } . "\x{c3}\x{bc}')"), 'f', 'rolled back: it was closed meanwhile');
$session->ask('CREATE ROLE poor');
is($session->ask("$point; SET ROLE poor; SELECT count(*) FROM mongo_fdw_get_connections(); SELECT mongo_fdw_disconnect_all(); RESET ROLE"),
	"info 1\n1\nt", 'any role sees and closes those of its session');

# --- a connection that is lost, and a cancel --------------------------------------
$session->ask($point);
$mongod->restart;
like($session->ask($connections), qr/^mongodb/, 'a lost connection is noticed when it is used');
is($session->ask('SELECT mongo_fdw_disconnect(\'mongodb\')'), 't', 'and can be closed');
is($session->ask($point), 'info 1', 'the next one works');
$session->close;

# --- the connections of all sessions -------------------------------------------------
my $watch = MongoFdwTest::Session->new($node);
my $shown = q{SELECT pid, datname, user_name, server_name, state, state_change > now() - interval '1 minute', query FROM mongo_fdw_stat_connections};
is($watch->ask($shown), '', 'no session has one');
$session = MongoFdwTest::Session->new($node);
my $pid = $session->pid;
$session->ask($point);
is($watch->ask($shown), "$pid|postgres|$user|mongodb|idle|t|$point;", 'one of another session, and its last statement');
is($watch->ask('SELECT host FROM mongo_fdw_stat_connections'), '127.0.0.1:' . $mongod->port, 'and where it leads to');
$session->ask("BEGIN; DECLARE c CURSOR FOR SELECT id FROM points; FETCH 150 FROM c");
like($watch->ask($shown), qr/^$pid\|postgres\|$user\|mongodb\|(open cursor|active)\|t\|FETCH 150/, 'a cursor');
# read to its end: a reply that is not there 20 ms after CLOSE costs the connection
$session->ask('FETCH ALL FROM c; CLOSE c; INSERT INTO in_set VALUES (9)');
like($watch->ask("$shown ORDER BY server_name DESC LIMIT 1"), qr/^$pid\|postgres\|$user\|replica_set\|in transaction\|t\|INSERT INTO in_set/, 'a transaction');
$session->ask('ROLLBACK');
is($watch->ask('SELECT server_name, state FROM mongo_fdw_stat_connections ORDER BY 1'), "mongodb|idle\nreplica_set|idle", 'and after it');

$mongod->block_commands(2500, 'find');
$session->{in} .= "$point;\n";
$session->{harness}->pump_nb;
my $waits = '';
for (my $deadline = time + 4; $waits !~ /active\|\w/ && time < $deadline; sleep 0.05)
{
	$waits = $watch->ask(q{SELECT state, wait_event, connected_at < query_start FROM mongo_fdw_stat_connections WHERE server_name = 'mongodb'});
}
is($waits, 'active|' . ($node->pg_version >= 17 ? 'MongoFdwReply' : 'Extension') . '|t', 'one that waits for a reply, since its statement began');
$watch->ask("SELECT pg_cancel_backend($pid)");
$mongod->unblock_commands;
$session->ask('SELECT 1');

$node->safe_psql('postgres', 'CREATE DATABASE other');
is($node->safe_psql('other', 'CREATE EXTENSION mongo_fdw; SELECT DISTINCT pid, datname, server_name FROM mongo_fdw_stat_connections'),
	"$pid|postgres|", 'seen from another database');
is($watch->ask('SET ROLE poor; SELECT count(*) FROM mongo_fdw_stat_connections'), 0, 'other roles\' are not');
is($watch->ask('RESET ROLE; GRANT pg_read_all_stats TO poor; SET ROLE poor; SELECT DISTINCT pid FROM mongo_fdw_stat_connections'), $pid,
	'except for pg_read_all_stats');
$watch->ask('RESET ROLE');

# a server that accepts connections and is silent
my $silent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die $!;
$session->ask('ALTER SERVER mongodb OPTIONS (SET port \'' . $silent->sockport . "')");
$session->{in} .= "$point;\n";
$session->{harness}->pump_nb;
for (my $deadline = time + 4; $waits !~ /connecting\|\w/ && time < $deadline; sleep 0.05)
{
	$waits = $watch->ask(q{SELECT state, wait_event, host, connected_at FROM mongo_fdw_stat_connections WHERE server_name = 'mongodb'});
}
is($waits, 'connecting|' . ($node->pg_version >= 17 ? 'MongoFdwConnect' : 'Extension') . '||', 'one that is being opened');
$watch->ask("SELECT pg_terminate_backend($pid, 5000)");
is($watch->ask($shown), '', 'none is left of a session that was terminated');
$watch->ask('ALTER SERVER mongodb OPTIONS (SET port \'' . $mongod->port . "')");
eval { $session->close };
$watch->close;

# --- max_connections ---------------------------------------------------------------
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD max_connections '2', ADD server_selection_timeout_ms '700')});
my @sessions = map { MongoFdwTest::Session->new($node) } 1 .. 4;
is($_->ask($point), 'info 1', 'two sessions are let in') foreach @sessions[ 0, 1 ];
my $start = time;
like($sessions[2]->ask("\\set VERBOSITY verbose\n$point"), qr/ERROR:  53300: too many connections to server "mongodb".*"max_connections" of the server.*HINT/s, 'a third is not');
cmp_ok(time - $start, '>', 0.6, 'after it has waited');
is($sessions[0]->ask('SELECT count(*) FROM points a, points b WHERE a.id = b.id'), 5000, 'two scans at once take turns');

# one that waits is let in when another closes
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (SET server_selection_timeout_ms '60000')});
my $waiting = background_query($node, $point);
$waiting->{harness}->pump_nb foreach 1 .. 5;
sleep 0.5;
is($sessions[1]->ask($point), 'info 1', 'the others go on meanwhile');
is($sessions[0]->ask('SELECT mongo_fdw_disconnect_all()'), 't', 'one closes');
is(($waiting->finish)[1], "info 1\n", 'one that waits is let in');
is($sessions[0]->ask($point), 'info 1', 'and leaves room when it ends');

# a session does not wait for itself: its cursors are read to their end, or it is told at once
$node->safe_psql('postgres', q{ALTER SERVER replica_set OPTIONS (ADD max_connections '1'); ALTER SERVER mongodb OPTIONS (SET max_connections '0');
	CREATE FOREIGN TABLE many (_id int) SERVER replica_set OPTIONS (database 'db', fetch_size '10');
	INSERT INTO many SELECT generate_series(1, 1000)});
foreach my $fetch (5, 25, 0)
{
	is($node->safe_psql('postgres', "SET statement_timeout = '20s'; BEGIN; DECLARE c CURSOR FOR SELECT _id FROM many; MOVE $fetch FROM c; INSERT INTO in_set VALUES (10 + $fetch, '');"
		  . ' DELETE FROM many WHERE _id = 1000; CREATE TEMPORARY TABLE read AS SELECT 1; MOVE ALL FROM c; COMMIT; SELECT count(*) FROM many'),
		999, "a cursor that has been read to row $fetch, and a write");
	$node->safe_psql('postgres', 'INSERT INTO many VALUES (1000)');
}
$start = time;
like(($node->psql('postgres', q{\set VERBOSITY verbose
	BEGIN; INSERT INTO many VALUES (1001); SELECT mongo_command('replica_set', 'db', '{"ping": 1}')}))[2],
	qr/ERROR:  53300: too many connections to server "replica_set".*This session itself uses 1.*HINT/s, 'a command beside a transaction');
cmp_ok(time - $start, '<', 15, 'at once');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (SET max_connections '2')});

# cancelled while waiting; killed without a word
like($sessions[2]->ask("SET statement_timeout = 300; $point"), qr/canceling statement due to statement timeout/, 'a wait is interrupted');
$sessions[2]->ask('SET statement_timeout = 0');
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(' . $sessions[1]->pid . ', 5000)');
is($sessions[2]->ask($point), 'info 1', 'a session that was terminated leaves room');
$sessions[0]->close;

# another role in one session makes room for itself
$sessions[3]->ask($point);
$node->safe_psql('postgres', q{GRANT USAGE ON FOREIGN SERVER mongodb TO poor; GRANT SELECT ON points TO poor;
	CREATE USER MAPPING FOR poor SERVER mongodb});
is($sessions[3]->ask("SET ROLE poor; $point"), 'info 1', 'an idle connection of another role makes room');
is($sessions[3]->ask('SELECT count(*) FROM mongo_fdw_get_connections()'), 1, 'and is closed');
$_->close foreach @sessions[ 2, 3 ];

done_testing();
