# TLS: certificates of the server and of the client, old options and uri.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $certificates = make_certificates();
my $server_only = MongoFdwTest::Mongod->new(tls => $certificates);
my $both = MongoFdwTest::Mongod->new(tls => $certificates, client_certificate => 1, auth => 1);
my $node = new_postgres('tls');

$_->insert('db', 'points', '[{"_id": 1, "id": 1}]') foreach ($server_only, $both);

my $number = 0;

# reads
#	Does a server with these options read the collection ("1"), or what is the
#	error?
sub reads
{
	my ($mongod, %options) = @_;
	my $server = 's' . ++$number;

	create_server($node, $server, $mongod, server_selection_timeout_ms => 2000, %options);
	my ($status, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\n"
		  . "CREATE FOREIGN TABLE t_$server (id int) SERVER $server OPTIONS (database 'db', collection 'points');\n"
		  . "SELECT id FROM t_$server;");
	return $status == 0 ? $stdout : $stderr;
}

is(reads($server_only), '1', 'a certificate authority by file');
is(reads($server_only, address => 'localhost'), '1', 'a host name');
like(reads($server_only, ca_file => "$certificates/other_ca.pem"), qr/ERROR:  08001/,
	'a server signed by another authority is refused');
is(reads($server_only, ca_file => "$certificates/other_ca.pem", weak_cert_validation => 'true'), '1',
	'unless certificates are not to be checked');
like(reads($server_only, ca_file => undef), qr/ERROR:  08001/, 'the system\'s authorities do not know it either');
is(reads($both), '1', 'a client certificate, and a password inside TLS');
like(reads($both, pem_file => undef), qr/ERROR:  08001/, 'a missing client certificate is an error');

my %no_address = (address => undef, port => undef, ssl => undef, ca_file => undef, pem_file => undef);
is(reads($server_only, %no_address,
		uri => 'mongodb://127.0.0.1:' . $server_only->port . "/?tls=true&tlsCAFile=$certificates/ca.pem"), '1',
	'TLS by uri');
is(reads($both, %no_address, uri => 'mongodb://127.0.0.1:' . $both->port
		  . "/?tls=true&tlsCAFile=$certificates/ca.pem&tlsCertificateKeyFile=$certificates/client.pem"), '1',
	'a client certificate by uri');
is(reads($server_only, %no_address,
		uri => 'mongodb://127.0.0.1:' . $server_only->port . '/?tls=true&tlsAllowInvalidCertificates=true'), '1',
	'unchecked by uri');

# Files for TLS imply it; without it, in clear text, this server would not answer.
is(reads($server_only, ssl => undef), '1', 'a certificate authority implies TLS');
is(reads($both, ssl => undef, ca_file => undef, weak_cert_validation => 'true'), '1', 'and a client certificate');
is(reads($both, ssl => undef, pem_file => undef, ca_file => undef, weak_cert_validation => 'true',
		mapping => { %{ $both->mapping }, pem_file => "$certificates/client.pem" }), '1', 'that of a user mapping, too');
like(reads($server_only, ssl => 'false'), qr/ERROR:  08001/, 'unless "ssl" is false');
is(reads($server_only, %no_address, ca_file => "$certificates/ca.pem",
		uri => 'mongodb://127.0.0.1:' . $server_only->port . '/'), '1', 'and beside a uri');
like(reads($server_only, %no_address, ca_file => "$certificates/ca.pem", uri => 'mongodb://127.0.0.1:'
		  . $server_only->port . '/?tls=false&serverSelectionTimeoutMS=2000'), qr/ERROR:  08001/, 'without tls=false in it');
my ($status, undef, $stderr) = $node->psql('postgres', q{CREATE SERVER in_clear FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (ssl 'off', crl_file '/x.pem', ca_file '/y.pem')});
like($stderr, qr/WARNING:  option "ca_file" has no effect\nDETAIL:  The option "ssl" is false.*WARNING:  option "crl_file"/s,
	'which is warned of');
(undef, undef, $stderr) = $node->psql('postgres', q{CREATE SERVER in_clear_by_uri FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (uri 'mongodb://h/?tls=false', ca_file '/y.pem')});
like($stderr, qr/WARNING:  option "ca_file" has no effect\nDETAIL:  The option "tls" of "uri" is false/, 'by uri, too');
unlike(reads($server_only), qr/WARNING/, 'not without reason');
like(reads($server_only, ssl => 'false', ca_file => undef, mapping => { pem_file => "$certificates/client.pem" }),
	qr/WARNING:  01000: option "pem_file" has no effect\nDETAIL:  The connection to server "s\d+" is not encrypted/,
	'and of a user mapping\'s file when connecting');

# A result of many records, each split over many TLS records.
$server_only->fill('db', 'wide', 20000, 2000);
create_server($node, 'wide_server', $server_only);
$node->safe_psql('postgres',
	'CREATE FOREIGN TABLE wide (id int, info text) SERVER wide_server OPTIONS (database \'db\', fetch_size \'3000\')');
is($node->safe_psql('postgres', 'SELECT count(*), sum(length(info)) FROM wide WHERE length(info) > 0'),
	'20000|40188894', 'a large result arrives whole');

# X.509: the certificate is who one is.
$both->command('{"createUser": "CN=client,O=mongo_fdw client", "roles": [{"role": "read", "db": "db"}]}', '$external');
my %x509 = (auth_mechanism => 'MONGODB-X509');
is(reads($both, %no_address, %x509, mapping => {}, uri => 'mongodb://127.0.0.1:' . $both->port
		  . "/?tls=true&tlsCAFile=$certificates/ca.pem&tlsCertificateKeyFile=$certificates/client.pem"
		  . '&authSource=$external'), '1', 'MONGODB-X509');

# The mapping's certificate, by options; a server with X.509 for all.
is(reads($both, %x509, mapping => {}), '1', 'MONGODB-X509 by option of the server');
is(reads($both, pem_file => undef, mapping => { %x509, pem_file => "$certificates/client.pem" }), '1',
	'MONGODB-X509 by options of the mapping');
is(reads($both, %x509, mapping => { username => 'CN=client,O=mongo_fdw client' }), '1', 'with the name that the certificate has');
like(reads($both, %x509, mapping => { username => 'CN=other' }), qr/ERROR:  28P01/, 'another name is refused');
like(reads($both, %x509, mapping => { pem_file => "$certificates/server.pem" }), qr/ERROR:  28P01/,
	'a certificate without a user is refused');
like(reads($both, %x509, mapping => { password => 'pencil' }), qr/MONGODB-X509 takes no password/, 'a password is refused');
like(reads($server_only, %x509, mapping => {}), qr/ERROR:  (28P01|08001)/, 'without a certificate there is an error');
is(reads($both, %no_address, %x509, mapping => {}, uri => 'mongodb://127.0.0.1:' . $both->port
		  . "/?tls=true&tlsCAFile=$certificates/ca.pem&tlsCertificateKeyFile=$certificates/client.pem"),
	'1', 'the source of X.509 need not be said');

done_testing();
