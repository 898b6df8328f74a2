# Who one is to MongoDB: mappings, mechanisms, awkward passwords.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new(auth => 1,
	arguments => [ '--setParameter', 'authenticationMechanisms=SCRAM-SHA-1,SCRAM-SHA-256' ]);
my $node = new_postgres('authentication');

$mongod->insert('db', 'points', '[{"_id": 1, "id": 1}]');

# reads
#	Do a server and a mapping with these options read the collection?
my $number = 0;

sub reads
{
	my ($name, $mapping, %options) = @_;
	my $server = 's' . ++$number;

	create_server($node, $server, $mongod, mapping => $mapping, %options);
	my ($status, $stdout, $stderr) = $node->psql('postgres',
		"CREATE FOREIGN TABLE t_$server (id int) SERVER $server OPTIONS (database 'db', collection 'points'); "
		  . "SELECT id FROM t_$server");
	is($stdout, '1', $name) or diag($stderr);
	return $server;
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
like($stderr, qr/user mapping not found/, 'without a mapping there is an error');

done_testing();
