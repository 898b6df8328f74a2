# A server that cannot be reached, or refuses: clear errors, in time, and a
# session that goes on.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $certificates = make_certificates();
my $plain = MongoFdwTest::Mongod->new;
my $auth = MongoFdwTest::Mongod->new(auth => 1);
my $tls = MongoFdwTest::Mongod->new(tls => $certificates);
my $node = new_postgres('errors');
my $unused = PostgreSQL::Test::Cluster::get_free_port();

$_->insert('db', 'points', '[{"_id": 1, "id": 1}]') foreach ($plain, $auth, $tls);

# connection_fails
#	A query on a server with these options fails so; the session goes on.
sub connection_fails
{
	my ($name, $sqlstate, $message, $limit, %options) = @_;
	my %mapping = %{ delete $options{mapping} // {} };

	$node->safe_psql('postgres',
		'DROP SERVER IF EXISTS s CASCADE; CREATE SERVER s FOREIGN DATA WRAPPER mongo_fdw'
		  . MongoFdwTest::option_list(
			address => '127.0.0.1', connect_timeout_ms => 2000, server_selection_timeout_ms => 2000, %options)
		  . '; CREATE USER MAPPING FOR PUBLIC SERVER s' . MongoFdwTest::option_list(%mapping)
		  . '; CREATE FOREIGN TABLE points (id int) SERVER s OPTIONS (database \'db\')');
	my ($status, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\n\\timing on\nSELECT id FROM points;\n\\timing off\n"
		  . "SELECT 'still here';\nSELECT id FROM points;\n",
		on_error_stop => 0);
	like($stderr, qr/ERROR:  $sqlstate: .*\bs\b/, "$name: SQLSTATE $sqlstate and the server's name");
	like($stderr, qr/DETAIL:.*$message/i, "$name: MongoDB's own words in DETAIL");
	my ($time) = $stdout =~ /Time: ([\d.]+)/;
	cmp_ok($time, '<', $limit, "$name: in time");
	like($stdout, qr/still here/, "$name: the session goes on");
	is(scalar(() = $stderr =~ /ERROR:  $sqlstate/g), 2, "$name: the second attempt says the same");
	# other than in the log of statements, which is on in these tests
	my @shown = grep { /hunter2/ && !/LOG:  statement:/ }
	  split /\n/, $stderr . PostgreSQL::Test::Utils::slurp_file($node->logfile);
	is("@shown", '', "$name: no password is shown");
}

connection_fails('MongoDB is down', '08001', 'refused', 2500, port => $unused);
connection_fails('unknown host', '08001', 'resolve|address', 6000,
	address => 'no-such-host.invalid', port => 27017);
connection_fails('wrong password', '28P01', 'auth', 2500, port => $auth->port,
	mapping => { username => 'app', password => 'hunter2' });
connection_fails('unknown user', '28P01', 'auth', 2500, port => $auth->port,
	mapping => { username => 'nobody', password => 'hunter2' });
connection_fails('TLS to a server without', '08001', 'TLS|handshake|closed|socket|server', 4500,
	port => $plain->port, ssl => 'true', ca_file => "$certificates/ca.pem");
connection_fails('no TLS to a server with', '08001', 'socket|closed|server', 4500, port => $tls->port);
connection_fails('unknown certificate authority', '08001', 'TLS|certificate|handshake', 4500,
	port => $tls->port, ssl => 'true', ca_file => "$certificates/other_ca.pem");
connection_fails('no replica set', '08001', 'belongs to no replica set', 4500, port => $plain->port, replica_set => 'nosuch');

# Without a password where one is needed, the connection is made but reading
# is not allowed.
$node->safe_psql('postgres', 'DROP SERVER s CASCADE');
create_server($node, 's', $auth, mapping => {});
my ($status, $stdout, $stderr) = $node->psql('postgres',
	"\\set VERBOSITY verbose\nCREATE FOREIGN TABLE points (id int) SERVER s OPTIONS (database 'db');\n"
	  . "SELECT id FROM points;\nSELECT 'still here';\n", on_error_stop => 0);
like($stderr, qr/ERROR:  (42501|28000|28P01)/, 'no credentials: SQLSTATE');
like($stderr, qr/DETAIL:.*auth/i, 'no credentials: MongoDB\'s own words');
like($stdout, qr/still here/, 'no credentials: the session goes on');

# A server that comes back is found by the same session.
$node->safe_psql('postgres', 'DROP SERVER s CASCADE');
create_server($node, 's', $plain, server_selection_timeout_ms => 2000);
$node->safe_psql('postgres', "CREATE FOREIGN TABLE points (id int) SERVER s OPTIONS (database 'db')");
my $session = MongoFdwTest::Session->new($node);
$plain->stop;
like($session->ask("\\set VERBOSITY verbose\nSELECT id FROM points"), qr/ERROR:  08001/, 'a server that is down: error');
$plain->start;
is($session->ask('SELECT id FROM points'), '1', 'and rows once it is back, in the same session');
$session->close;

done_testing();
