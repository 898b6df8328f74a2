# Transfers between documents while statements are cancelled, backends killed
# and primaries made to step down; see t/bank.py.  BANK_SECONDS sets how long.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(3,
	arguments => [ '--setParameter', 'transactionLifetimeLimitSeconds=5' ]);
my $node = new_postgres('bank', 'fsync = on', 'restart_after_crash = on', 'synchronous_commit = on');
my @ports = map { $_->port } $set->members;
my $hosts = join(',', map { "127.0.0.1:$_" } @ports);

create_server($node, 'mongodb', $set->primary, address => undef, port => undef,
	uri => "mongodb://$hosts/?replicaSet=rs");
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE accounts (_id int, balance bigint) SERVER mongodb OPTIONS (database 'bank');
	CREATE FOREIGN TABLE transfers (_id text, amount int) SERVER mongodb OPTIONS (database 'bank');
	CREATE TABLE journal (name text, amount int)});

my $seconds = $ENV{BANK_SECONDS} || 40;
my $output = '';
open(my $pipe, '-|', $ENV{PYTHON} || 'python3', 't/bank.py', '--dsn', $node->connstr('postgres'),
	'--mongo', "mongodb://$hosts/?replicaSet=rs", '--seconds', $seconds,
	'--members', map { "mongodb://127.0.0.1:$_/?directConnection=true" } @ports) or die "no python: $!";
$output .= $_ while <$pipe>;
close($pipe);
is($?, 0, "$seconds seconds of transfers: nothing lost, nothing twice, nothing undone that stays");
diag($output) if $?;
note($output);

done_testing();
