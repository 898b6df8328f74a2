# GSSAPI with a Kerberos ticket, up to its first message: only MongoDB's Enterprise
# edition would go on.  Needs an MIT KDC (Debian: krb5-kdc, krb5-user,
# libsasl2-modules-gssapi-mit), which make test does not install.

use strict;
use warnings;

use Cwd qw(abs_path);
use IPC::Open2;
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{PATH} .= ':/usr/sbin:/sbin';
my ($kdc) = grep { -x } map { "$_/krb5kdc" } split(/:/, $ENV{PATH});
plan skip_all => 'there is no krb5kdc' unless $kdc;

my $folder = abs_path(PostgreSQL::Test::Utils::tempdir());
my $kdc_port = PostgreSQL::Test::Cluster::get_free_port();

append_to_file("$folder/krb5.conf", qq{
[libdefaults]
default_realm = TEST.EXAMPLE
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
[realms]
TEST.EXAMPLE = {
	kdc = 127.0.0.1:$kdc_port
}
[dbmodules]
TEST.EXAMPLE = {
	db_library = db2
	database_name = $folder/principal
}
} . ($ENV{KRB5_DB_MODULES} ? "db_module_dir = $ENV{KRB5_DB_MODULES}\n" : ''));
append_to_file("$folder/kdc.conf", qq{
[realms]
TEST.EXAMPLE = {
	kdc_listen = 127.0.0.1:$kdc_port
	kdc_tcp_listen = 127.0.0.1:$kdc_port
	database_name = $folder/principal
	key_stash_file = $folder/stash
}
});
$ENV{KRB5_CONFIG} = "$folder/krb5.conf";
$ENV{KRB5_KDC_PROFILE} = "$folder/kdc.conf";
$ENV{KRB5CCNAME} = "FILE:$folder/tickets";
system_or_bail('kdb5_util', 'create', '-s', '-r', 'TEST.EXAMPLE', '-P', 'master');
system_or_bail('kadmin.local', '-q', "addprinc -pw pencil $_") foreach ('ann', 'mongodb/localhost');
my $kdc_pid = open2(my $kdc_reader, my $kdc_writer, $kdc, '-n');

# What the database server is to Kerberos is in its environment.
my $node = new_postgres('kerberos');
my $port = start_fake();

$node->safe_psql('postgres', qq{
	CREATE SERVER s FOREIGN DATA WRAPPER mongo_fdw
		OPTIONS (address 'localhost', port '$port', auth_mechanism 'GSSAPI');
	CREATE USER MAPPING FOR CURRENT_USER SERVER s OPTIONS (username 'ann\@TEST.EXAMPLE');
	CREATE FOREIGN TABLE good (id int) SERVER s OPTIONS (database 'db')});

sub error
{
	my (undef, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT id FROM good");
	return $stderr;
}

like(error(), qr/ERROR:  \w{5}: .*SASL Failure/s, 'without a ticket there is an error');
unlike(error(), qr/bytes/, 'and nothing is sent');

IPC::Run::run([ 'kinit', 'ann' ], '<', \"pencil\n", '>', \my $output, '2>&1') or die 'kinit failed';
like(error(), qr/ERROR:  28P01: .*GSSAPI of \$external failed: \d{3,} bytes, 60/s, 'with one, it is what GSSAPI begins with');
$node->safe_psql('postgres', "ALTER SERVER s OPTIONS (ADD auth_properties 'SERVICE_NAME:other')");
like(error(), qr/ERROR:  \w{5}: .*SASL Failure/s, 'of a service that the KDC does not know there is none');

close($kdc_writer);
kill 'TERM', $kdc_pid;
waitpid($kdc_pid, 0);
done_testing();
