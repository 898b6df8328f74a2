# Who one is to MongoDB: mappings, mechanisms, awkward passwords.

use strict;
use warnings;

use Cwd qw(abs_path);
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new(auth => 1,
	arguments => [ '--setParameter', 'authenticationMechanisms=SCRAM-SHA-1,SCRAM-SHA-256' ]);
my $node = new_postgres('authentication');

$mongod->insert('db', 'points', '[{"_id": 1, "id": 1}]');

# reads
#	Do a server and a mapping with these options read the collection?
my $number = 0;

sub read_as
{
	my ($mapping, %options) = @_;
	my $server = 's' . ++$number;

	create_server($node, $server, $mongod, mapping => $mapping, server_selection_timeout_ms => 2000, %options);
	$node->safe_psql('postgres',
		"CREATE FOREIGN TABLE t_$server (id int) SERVER $server OPTIONS (database 'db', collection 'points')");
	my ($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT id FROM t_$server");
	return ($server, $stdout, $stderr);
}

sub reads
{
	my ($name, $mapping, %options) = @_;
	my ($server, $stdout, $stderr) = read_as($mapping, %options);

	is($stdout, '1', $name) or diag($stderr);
	return $server;
}

# fails
#	Or is the error like this, and nothing in it a password?
sub fails
{
	my ($name, $error, $mapping, %options) = @_;
	my ($server, undef, $stderr) = read_as($mapping, %options);

	like($stderr, $error, $name);
	unlike($stderr, qr/pencil/, "$name: no password is shown");
}

my @cases = (
	[ 'SCRAM-SHA-256', 'admin', 'sha256', 'pencil', '"SCRAM-SHA-256"' ],
	[ 'SCRAM-SHA-1', 'admin', 'sha1', 'pencil', '"SCRAM-SHA-1"' ],
	[ 'a password full of what a URI would trip over', 'admin', 'awkward', 'p@ss:w/o%41#?&=[x] \\"\'', '"SCRAM-SHA-256"' ],
	[ 'a user name like that', 'admin', 'us@er:/%20', 'pencil', '"SCRAM-SHA-256"' ],
	[ 'letters beyond ASCII', 'admin', "J\x{fc}rgen", "gr\x{fc}\x{df}e", '"SCRAM-SHA-1"' ],
	[ 'a user of another database', 'staff', 'clerk', 'pencil', '"SCRAM-SHA-256"' ]);
my $json = JSON::PP->new->utf8(0)->ascii->allow_nonref;

foreach my $case (@cases)
{
	my ($name, $database, $user, $password, $mechanism) = @$case;
	$mongod->command('{"createUser": ' . $json->encode($user) . ', "pwd": ' . $json->encode($password)
		  . ', "roles": [{"role": "read", "db": "db"}], "mechanisms": [' . $mechanism . ']}', $database);
	utf8::encode($user);
	utf8::encode($password);
	reads($name, { username => $user, password => $password },
		$database eq 'admin' ? () : (authentication_database => $database));
}

reads('the authentication database in a uri', { username => 'clerk', password => 'pencil' },
	address => undef, port => undef,
	uri => 'mongodb://127.0.0.1:' . $mongod->port . '/?authSource=staff');

# Mechanisms by options, also beside a uri; the mapping says who.
my %by_uri = (address => undef, port => undef, uri => 'mongodb://127.0.0.1:' . $mongod->port . '/?authSource=admin');
my %sha1 = (username => 'sha1', password => 'pencil');
my %sha256 = (username => 'sha256', password => 'pencil');

reads('SCRAM-SHA-1 on the server', \%sha1, auth_mechanism => 'SCRAM-SHA-1');
reads('SCRAM-SHA-256 in any case', \%sha256, auth_mechanism => 'scram-sha-256');
reads('on the mapping, which wins', { %sha1, auth_mechanism => 'SCRAM-SHA-1' }, auth_mechanism => 'SCRAM-SHA-256');
fails('a mechanism that the user does not have', qr/ERROR:  28P01/, \%sha1, auth_mechanism => 'SCRAM-SHA-256');
reads('a mechanism beside a uri', \%sha256, %by_uri, auth_mechanism => 'SCRAM-SHA-256');
fails('and it is the one used', qr/ERROR:  28P01/, \%sha1, %by_uri, auth_mechanism => 'SCRAM-SHA-256');
reads('the authentication database of a mapping',
	{ username => 'clerk', password => 'pencil', authentication_database => 'staff' });
fails('a user is needed', qr/ERROR:  08001.*DETAIL:  SCRAM-SHA-1 needs the option "username" of the user mapping/s,
	{}, auth_mechanism => 'SCRAM-SHA-1');
fails('and a password', qr/DETAIL:  SCRAM-SHA-1 needs the option "password" or "password_file"/,
	{ username => 'sha1' }, auth_mechanism => 'SCRAM-SHA-1');
fails('also without a mechanism', qr/DETAIL:  A user name needs the option "password" or "password_file" of the user mapping/, { username => 'sha256' });
fails('a password that takes long to hash', qr/DETAIL:  The password has more than 4096 bytes/, { username => 'sha256', password => 'x' x 4097 });
reads('the longest time to connect', \%sha256, connect_timeout_ms => 2147483647);
fails('X.509 takes none', qr/DETAIL:  MONGODB-X509 takes no password/, \%sha1, auth_mechanism => 'MONGODB-X509');
fails('PLAIN, which this server does not have', qr/ERROR:  \w{5}: .*server "s\d+"/, \%sha1, auth_mechanism => 'PLAIN');
fails('users of PLAIN are not of a database', qr/must be \$external for PLAIN/, \%sha1,
	auth_mechanism => 'PLAIN', authentication_database => 'staff');

# A password in a file, as it was when a connection is made.
my $folder = abs_path(PostgreSQL::Test::Utils::tempdir());
my $file = "$folder/pass'word";

sub write_file
{
	my ($text) = @_;
	open(my $handle, '>:raw', $file) or die "$file: $!";
	print $handle $text;
	close($handle);
}

foreach my $text ("pencil", "pencil\n", "pencil\r\n")
{
	write_file($text);
	reads('a password in a file', { username => 'sha256', password_file => $file });
}
write_file("gr\xc3\xbc\xc3\x9fe\n");
reads('a password in a file, beyond ASCII', { username => "J\xc3\xbcrgen", password_file => $file });
foreach my $case ([ '', 'It is empty' ], [ "\n", 'It is empty' ], [ "pencil\nmore\n", 'one line' ], [ "pencil\0", 'one line' ],
	[ "pencil\xff", 'not valid UTF-8' ], [ 'pencil' x 20000, 'too long' ])
{
	my ($text, $problem) = @$case;
	write_file($text);
	fails("a password file: $problem", qr/ERROR:  22023: could not use password file.*DETAIL:  .*$problem/s,
		{ username => 'sha256', password_file => $file });
}
fails('no such file', qr/ERROR:  58P01: could not open password file/, { username => 'sha256', password_file => "$folder/none" });
fails('a folder', qr/ERROR:  22023: .*not a regular file/s, { username => 'sha256', password_file => $folder });
system('mkfifo', "$folder/fifo");
fails('a pipe does not hang', qr/not a regular file/, { username => 'sha256', password_file => "$folder/fifo" });

# LDAP's mechanism, with a server that has it; what goes out of GSSAPI.
my @collection = (database => 'db', collection => 'good');

# read_fake
#	What is read, or the error, of the fake server as this user.
sub read_fake
{
	my ($port, $mapping, %options) = @_;
	my $server = 'fake' . ++$number;

	create_server($node, $server, $mongod, port => $port, mapping => $mapping, server_selection_timeout_ms => 2000, %options);
	$node->safe_psql('postgres',
		"CREATE FOREIGN TABLE t_$server (id int) SERVER $server OPTIONS (database 'db', collection 'good')");
	my ($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT id FROM t_$server");
	return $status == 0 ? $stdout : $stderr;
}

my $fake_port = start_fake("--plain=cn=J\xc3\xbcrgen,dc=x:p\@ss:w/o%41");
my %ldap = (username => "cn=J\xc3\xbcrgen,dc=x", password => 'p@ss:w/o%41');
is(read_fake($fake_port, \%ldap, auth_mechanism => 'PLAIN'), '7', 'PLAIN by option');
is(read_fake($fake_port, \%ldap, address => undef, port => undef, uri => "mongodb://127.0.0.1:$fake_port/", auth_mechanism => 'PLAIN'),
	'7', 'PLAIN beside a uri');
is(read_fake($fake_port, { %ldap, auth_mechanism => 'PLAIN', authentication_database => '$external' }), '7', 'PLAIN by mapping');
like(read_fake($fake_port, { %ldap, password => 'wrong' }, auth_mechanism => 'PLAIN'),
	qr/ERROR:  28P01.*PLAIN of \$external failed/s, 'PLAIN with a wrong password');
unlike(read_fake($fake_port, { username => 'ann' }, auth_mechanism => 'GSSAPI'), qr/GSSAPI of|\A7/,
	'GSSAPI without a ticket sends nothing');
like(read_fake($fake_port, { username => 'ann' }, auth_mechanism => 'GSSAPI'), qr/ERROR:  (28P01|08001): .*SASL Failure/s,
	'GSSAPI without a ticket is an error');

# Lists of hosts, with a port of their own and without; how old an answer may be.
my $set_port = start_fake('--replica-set');
foreach my $address ('127.0.0.1,127.0.0.1:1', '127.0.0.1:1, 127.0.0.1', ' 127.0.0.1 ,[::1]:1', '::1,127.0.0.1,[::1]')
{
	is(read_fake($set_port, {}, address => $address, replica_set => 'rs'), '7', "the port reaches each host of '$address'");
}
is(read_fake(1, {}, address => "127.0.0.1:$set_port"), '7', 'the port of an address wins');
foreach my $address (',', '127.0.0.1,', '127.0.0.1/db', '127.0.0.1:x')
{
	like(read_fake($set_port, {}, address => $address), qr/ERROR:  08001: .*\nDETAIL:  The address .* is not valid/, "address '$address'");
}
foreach my $seconds (90, 120, 100000)
{
	is(read_fake(undef, {}, address => undef, uri => "mongodb://127.0.0.1:$set_port/?replicaSet=rs"
			  . "&readPreference=primaryPreferred&maxStalenessSeconds=$seconds"), '7', "maxStalenessSeconds=$seconds");
}
like(read_fake(undef, {}, address => undef, uri => "mongodb://127.0.0.1:$set_port/?replicaSet=rs"
	  . '&readPreference=primaryPreferred&maxStalenessSeconds=60'), qr/ERROR:  08001.*maxStalenessSeconds is set to 60/s, 'less than 90 seconds are too few');

# Two roles, two mappings: each is the one that its mapping says.
my $server = reads('a role with a mapping of its own', { username => 'sha256', password => 'pencil' });
$mongod->command('{"createUser": "nothing", "pwd": "pencil", "roles": []}');
$node->safe_psql('postgres',
	"CREATE ROLE poor LOGIN; GRANT USAGE ON FOREIGN SERVER $server TO poor; "
	  . "CREATE USER MAPPING FOR poor SERVER $server OPTIONS (username 'nothing', password 'pencil'); "
	  . "GRANT SELECT ON t_$server TO poor");
my ($status, $stdout, $stderr) = $node->psql('postgres',
	"SELECT id FROM t_$server; SET ROLE poor; \\set VERBOSITY verbose\nSELECT id FROM t_$server; RESET ROLE; SELECT id FROM t_$server",
	on_error_stop => 0);
is($stdout, "1\n1", 'the mapping is that of the current role');
like($stderr, qr/42501.*\n.*not authorized/s, 'a user without rights is told so: 42501');

# A view reads as its owner.
$node->safe_psql('postgres', "CREATE VIEW v AS SELECT id FROM t_$server; GRANT SELECT ON v TO poor");
is($node->safe_psql('postgres', 'SET ROLE poor; SELECT id FROM v'), '1', 'a view reads with its owner\'s mapping');

# No mapping at all.
$node->safe_psql('postgres', 'CREATE ROLE nobody LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO nobody');
($status, $stdout, $stderr) = $node->psql('postgres', "SET ROLE nobody; SELECT id FROM t_$server");
like($stderr, qr/user mapping not found for user "nobody", server "$server"/, 'without a mapping there is an error');

# Wherever it is missing, it is said how to make one.
$node->safe_psql('postgres', qq{CREATE ROLE "No ""One" SUPERUSER; CREATE SERVER "A Server" FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1');
	CREATE FOREIGN TABLE unmapped (_id int, n int) SERVER "A Server";
	CREATE FOREIGN TABLE estimated (_id int, n int) SERVER "A Server" OPTIONS (use_remote_estimate 'true')});
foreach my $statement ('SELECT * FROM unmapped', 'EXPLAIN SELECT * FROM estimated', 'INSERT INTO unmapped VALUES (1)',
	'UPDATE unmapped SET n = 2', 'UPDATE unmapped SET n = random()', 'DELETE FROM unmapped WHERE n = 1', 'TRUNCATE unmapped',
	'IMPORT FOREIGN SCHEMA db FROM SERVER "A Server" INTO public', "SELECT mongo_command('A Server', 'db', '{\"ping\": 1}')",
	"SELECT mongo_aggregate('A Server', 'db', 't', '[]')", "SELECT mongo_fdw_check('unmapped')",
	"SELECT mongo_fdw_refresh('public', server => 'A Server', database => 'db')")
{
	($status, $stdout, $stderr) = $node->psql('postgres', "SET ROLE \"No \"\"One\"; \\set VERBOSITY verbose\n$statement");
	like($stderr, qr/ERROR:  42704: user mapping not found for user "No "One", server "A Server"\nHINT:  Use CREATE USER MAPPING FOR "No ""One" SERVER "A Server" OPTIONS \(username '...', password '...'\), or without OPTIONS/,
		$statement);
}
$node->safe_psql('postgres', 'ALTER FOREIGN TABLE unmapped OWNER TO "No ""One"');
($status, $stdout, $stderr) = $node->psql('postgres', 'ANALYZE unmapped');
like($stderr, qr/user mapping not found for user "No "One".*HINT/s, 'ANALYZE reads as the table\'s owner');
$node->safe_psql('postgres', 'CREATE USER MAPPING FOR PUBLIC SERVER "A Server"');
($status, $stdout, $stderr) = $node->psql('postgres', 'SELECT * FROM unmapped');
unlike($stderr, qr/user mapping/, 'and one for PUBLIC is everybody\'s');

# A cursor that reads first when the user mapping names another user reads as that user.
my $changed = reads('before the change', \%sha1);
my $reading = MongoFdwTest::Session->new($node);
$node->safe_psql('postgres', "CREATE FOREIGN TABLE twice (id int) SERVER $changed OPTIONS (database 'db', collection 'points')");
$reading->ask("BEGIN; DECLARE c CURSOR FOR SELECT id FROM t_$changed");
$node->safe_psql('postgres', "ALTER USER MAPPING FOR CURRENT_USER SERVER $changed OPTIONS (SET username 'sha256')");
is($reading->ask('SELECT count(*) FROM pg_class WHERE relname = \'twice\'; FETCH c; COMMIT'), "1\n1", 'a cursor');
is($reading->ask("SELECT mongo_command('$changed', 'admin', '{\"connectionStatus\": 1}') #>> '{authInfo,authenticatedUsers,0,user}'"), 'sha256', 'and what follows');

# A user who is dropped and created again: its connections are not authenticated any more.
sub create_clerk
{
	eval { $mongod->command('{"dropUser": "clerk"}', 'db') };
	$mongod->command('{"createUser": "clerk", "pwd": "pencil", "roles": ["readWrite"]}', 'db');
}
create_clerk();
my $recreated = reads('a user', { username => 'clerk', password => 'pencil', authentication_database => 'db' });
my $living = MongoFdwTest::Session->new($node);
$node->safe_psql('postgres', "CREATE FOREIGN TABLE w_$recreated (_id int, n int) SERVER $recreated OPTIONS (database 'db', collection 'w')");
my $number_of_row = 0;
foreach my $statement ("SELECT id FROM t_$recreated", "INSERT INTO w_$recreated VALUES (%d, 1) RETURNING 1",
	"UPDATE w_$recreated SET n = n + 1; SELECT 1", "DELETE FROM w_$recreated WHERE _id = (SELECT min(_id) FROM w_$recreated) RETURNING 1",
	"SELECT mongo_command('$recreated', 'db', '{\"count\": \"points\"}') -> 'n'",
	"SELECT mongo_command('$recreated', 'db', '{\"create\": \"c%d\"}') -> 'ok'")
{
	$living->ask("INSERT INTO w_$recreated VALUES (" . ++$number_of_row . ', 1)');
	create_clerk();
	is($living->ask(sprintf $statement, ++$number_of_row) =~ s/\.0//r, '1', "$statement after that");
	is($living->{err}, '', 'without an error');
}

done_testing();
