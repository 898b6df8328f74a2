# A resolver that does not answer: what waits for it can be cancelled and has an end.

use strict;
use warnings;

use Cwd qw(abs_path);
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

# Far below the 20 seconds that slow_resolver.c takes, on the slowest machine.
my $soon = 8;

my $folder = abs_path(PostgreSQL::Test::Utils::tempdir());
my $shim = "$folder/slow_resolver.so";
my $log = "$folder/resolver.log";
my $compiler = $ENV{CC} // 'cc';

system("$compiler -shared -fPIC -O1 -o $shim t/lib/slow_resolver.c -ldl") == 0
  or plan skip_all => 'slow_resolver.c could not be compiled';

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $certificates = make_certificates();
my $atlas = MongoFdwTest::Mongod->new(tls => $certificates, auth => 1);
my $node;
{
	local $ENV{SERVICE_PORT} = $atlas->port;
	local $ENV{LD_PRELOAD} = join ':', grep { $_ } $ENV{LD_PRELOAD}, $shim;
	local $ENV{SLOW_RESOLVER_LOG} = $log;
	$node = new_postgres('resolver');
}

create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 10);

# add_server
#	Another one, with its table.
sub add_server
{
	my ($name, %options) = @_;
	create_server($node, $name, $mongod, %options);
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $name.points (id int) SERVER $name OPTIONS (database 'db')");
}

my %servers = (
	named => { address => 'localhost' },
	slow => { address => 'slow.test' },
	black => { address => 'black-hole.test' },
	brief => { address => 'black-hole.brief', connect_timeout_ms => 1000 },
	service => { address => undef, port => undef, uri => 'mongodb+srv://black-hole.service.test/' },
	brief_service => { address => undef, port => undef, uri => 'mongodb+srv://black-hole.brief.test/',
		connect_timeout_ms => 1000 },
	no_service => { address => undef, port => undef, uri => 'mongodb+srv://none.service.test/' },
	several => { address => undef, port => undef, connect_timeout_ms => 1000,
		uri => 'mongodb://black-hole.test,127.0.0.1:' . $mongod->port . '/?replicaSet=rs' },
);
foreach my $name (sort keys %servers)
{
	$node->safe_psql('postgres', "CREATE SCHEMA $name");
	add_server($name, %{ $servers{$name} });
}

# run
#	What psql says, and the seconds it took.
sub run
{
	my ($sql) = @_;
	my $start = time;
	my ($status, $stdout, $stderr) = background_query($node, $sql)->finish;
	return ($stdout, $stderr, time - $start);
}

# resolver_log
#	What the resolver was asked since the last time.
sub resolver_log
{
	my $text = -e $log ? slurp_file($log) : '';
	unlink $log;
	return $text;
}

resolver_log();
is($node->safe_psql('postgres', 'SELECT count(*) FROM points'), 10, 'a numeric address');
is(resolver_log(), '', 'and nobody is asked for it');
is($node->safe_psql('postgres', 'SELECT count(*) FROM named.points'), 10, 'a name');
is(resolver_log(), "localhost other\n", 'is asked for once, in another thread');
is($node->safe_psql('postgres', 'SELECT count(*) FROM slow.points'), 10, 'a slow resolver is waited for');

foreach my $server (qw(black service))
{
	my ($stdout, $stderr, $seconds) = run("SET statement_timeout = 500; SELECT id FROM $server.points;"
		  . 'SET statement_timeout = 0; SELECT count(*) FROM points;');
	like($stderr, qr/ERROR:  57014/, "$server: statement_timeout");
	cmp_ok($seconds, '<', $soon, "$server: within the time");
	like($stdout, qr/^10$/m, "$server: the session goes on");

	foreach my $function (qw(pg_cancel_backend pg_terminate_backend))
	{
		my $query = background_query($node, "SELECT id FROM $server.points");

		sleep 0.3;
		$node->poll_query_until('postgres', "SELECT $function(pid) FROM pg_stat_activity "
			  . "WHERE query LIKE 'SELECT id FROM $server%' AND state = 'active'");
		my $start = time;
		(undef, undef, $stderr) = $query->finish;
		like($stderr, $function =~ /cancel/ ? qr/ERROR:  57014/ : qr/FATAL:  57P01/, "$server: $function");
		cmp_ok(time - $start, '<', $soon, "$server: $function: at once");
	}
}

foreach my $server (qw(brief brief_service))
{
	my (undef, $stderr, $seconds) = run("SELECT id FROM $server.points");
	like($stderr, qr/ERROR:  08001.*could not resolve host name ".*black-hole\..*": the resolver does not answer/s,
		"$server: connect_timeout_ms is an error of its own");
	cmp_ok($seconds, '<', $soon, "$server: within the time");
}

my (undef, $stderr) = run('SELECT id FROM no_service.points');
like($stderr, qr/ERROR:  08001.*Failed to look up SRV/s, 'a service that is not there is libmongoc\'s to report');

# A service with records of both types, as Atlas has: the port, TLS, the database of the user.
$atlas->insert('db', 'points', '[{"_id": 1, "id": 1}]');
my %unsaid = (address => undef, port => undef, ssl => undef, ca_file => undef);
create_server($node, 'atlas', $atlas, %unsaid, uri => "mongodb+srv://cluster.service.test/?tlsCAFile=$certificates/ca.pem&retryWrites=true&w=majority");
create_server($node, 'stranger', $atlas, %unsaid, uri => "mongodb+srv://cluster.service.test/?tlsCAFile=$certificates/other_ca.pem",
	server_selection_timeout_ms => 1000);
foreach my $server (qw(atlas stranger))
{
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE at_$server (id int) SERVER $server OPTIONS (database 'db', collection 'points')");
}
resolver_log();
is($node->safe_psql('postgres', q{SELECT id FROM at_atlas; SELECT host, tls FROM mongo_fdw_get_connections()}),
	"1\nnode.service.test:" . $atlas->port . '|t', 'a service: its host, with TLS and a password');
like(resolver_log(), qr/^_mongodb\._tcp\.cluster\.service\.test other\ncluster\.service\.test other\n/, 'and its records are asked for in another thread first');
(undef, $stderr) = run('SELECT id FROM at_stranger');
like($stderr, qr/ERROR:  08001.*certificate/s, 'a service whose certificate another authority has signed is refused');

# Two hosts, one of which cannot be resolved.
my ($stdout) = run('SELECT count(*) FROM several.points');
like($stdout, qr/^10$/m, 'another host of the same URI is found');

# Whoever tries again waits for the look-up that is under way: no more threads, no more files.
my $session = MongoFdwTest::Session->new($node);
my $pid = $session->pid;
resolver_log();
$session->ask("SET statement_timeout = 20; \\set ON_ERROR_STOP 0");
$session->ask('SELECT id FROM black.points') foreach 1 .. 20;
my @threads = glob "/proc/$pid/task/*";
my @files = glob "/proc/$pid/fd/*";
cmp_ok(scalar @threads, '<=', 2, 'twenty tries in vain: one thread') if -e "/proc/$pid/task";
is(resolver_log(), "black-hole.test other\n", 'and the resolver was asked once');
$session->ask('SELECT id FROM black.points') foreach 1 .. 20;
is(scalar(my @later = glob "/proc/$pid/fd/*"), scalar @files, 'no file is left open');
is($session->ask('SET statement_timeout = 0; SELECT count(*) FROM points'), 10, 'the session goes on');
$session->close;

my @crashes = grep { /terminated by signal|PANIC/ } split /\n/, slurp_file($node->logfile);
is("@crashes", '', 'sessions ended while the resolver was asked, and the server never restarted');

done_testing();
