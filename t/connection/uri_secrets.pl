# Secrets in the option uri, which everyone may read: none is let in, however it is
# written, and what an older version let in is refused.
# More of it: RANDOM_URIS=1000000 RANDOM_URIS_SEED=7 TEST_FILE_TIMEOUT=3600

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $COUNT = $ENV{RANDOM_URIS} || 10000;
my $SEED = $ENV{RANDOM_URIS_SEED} || 1;

my $mongod = MongoFdwTest::Mongod->new(auth => 1);
my $node = new_postgres('uri_secrets', 'log_statement = none');
my $place = '127.0.0.1:' . $mongod->port;

$mongod->insert('db', 'points', '[{"_id": 1, "id": 1}]');
$mongod->command('{"createUser": "ann", "pwd": "s3cr3t", "roles": [{"role": "read", "db": "db"}]}');
$mongod->command('{"createUser": "ann", "pwd": "s3c?r3t", "roles": [{"role": "read", "db": "db"}]}', 'other');
create_server($node, 'plain', $mongod, address => undef, port => undef, uri => "mongodb://$place/",
	mapping => { username => 'ann', password => 's3cr3t' });
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE t_plain (id int) SERVER plain OPTIONS (database 'db', collection 'points')});
is($node->safe_psql('postgres', 'SELECT id FROM t_plain'), '1', 'a uri without credentials, and a mapping');

# The first three log in with libmongoc 1.23, the others are read otherwise by
# another version, or are meant as credentials by whoever writes them.
my @uris = (
	"mongodb://ann:s3cr3t\@$place/",
	"mongodb://ann:s3c?r3t\@$place/?authSource=other",
	"mongodb://ann:s3c%3Fr3t\@$place/?authSource=other",
	"mongodb://ann\@$place/",
	"mongodb://ann:27/s3cr3t\@$place/",
	"mongodb://ann:27/?s3cr3t=x\@$place/",
	"mongodb://$place/?appName=\@ann:s3cr3t\@",
	"mongodb://ann:s3cr3t%40$place/",
	"mongodb://ann:s3cr3t&$place/",
	"mongodb://ann:s3cr3t\\\@$place/",
	"MONGODB://ann:s3cr3t\@$place/",
	"mongodb+srv://ann:s3c?r3t\@a.b.example.net/",
	"ann:s3cr3t\@$place",
	"mongodb://$place/?tls=true&TlsCertificateKeyFilePassword=s3cr3t",
	"mongodb://$place/?sslClientCertificateKeyPassword=s3cr3t",
	"mongodb://$place/?proxyHost=h&proxyPassword=s3cr3t",
	"mongodb://$place/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:s3cr3t",
	"mongodb://$place/?authMechanismProperties=SERVICE_NAME:AWS_SESSION_TOKEN:s3cr3t",
	"mongodb://$place/?compressors=zlibPassword=s3cr3t",
	"mongodb://$place/?ssl=s3cr3t",
	"mongodb://$place/?s3cr3t",
	"mongodb://$place/?ssl\" s3cr3t",
	"mongodb://$place/?ssl=\" s3cr3t \"");

foreach my $uri (@uris)
{
	foreach my $statement ("CREATE SERVER refused FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri '$uri')",
		"ALTER SERVER plain OPTIONS (SET uri '$uri')",
		"DO \$\$ BEGIN EXECUTE 'ALTER SERVER plain OPTIONS (SET uri ''$uri'')'; END \$\$")
	{
		my ($status, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
		ok($status != 0 && $stderr =~ /ERROR:  22023: (option "uri" must not hold|invalid value for option "uri")/, $statement)
		  or diag($stderr);
		# where a function's text is, is no news to its caller
		$stderr =~ s/^CONTEXT:.*?(?=^LOCATION)//ms;
		unlike($stderr, qr/s3c/, 'the message does not show it');
	}
}

# What an older version would have stored.
foreach my $uri (@uris[ 0 .. 7, 13 ])
{
	$node->safe_psql('postgres',
		"UPDATE pg_foreign_server SET srvoptions = ARRAY[\$\$uri=$uri\$\$] WHERE srvname = 'plain'; "
		  . 'DROP USER MAPPING FOR CURRENT_USER SERVER plain; CREATE USER MAPPING FOR CURRENT_USER SERVER plain');
	my ($status, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT id FROM t_plain");
	like($stderr, $uri =~ /%40/ ? qr/08001/ :
		  qr/22023: option "uri" of server "plain" must not hold.*HINT:  Give the server another uri with ALTER SERVER/s,
		"stored: $uri");
	unlike($stderr, qr/s3c/, 'the message does not show it');
}
$node->safe_psql('postgres',
	"ALTER SERVER plain OPTIONS (SET uri 'mongodb://$place/?appName=%40x'); "
	  . "ALTER USER MAPPING FOR CURRENT_USER SERVER plain OPTIONS (ADD username 'ann', ADD password 's3cr3t')");
is($node->safe_psql('postgres', 'SELECT id FROM t_plain'), '1', 'and with another uri all is well');

run_tests_of('random/uris.py', '--dsn', $node->connstr('postgres'), '--seed', $SEED, '--uris', $COUNT);

my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
unlike($log, qr/s3c.?r3t/i, 'the log does not show it');
like($log, qr/option "uri" must not hold credentials/, 'only that there was something');
done_testing();
