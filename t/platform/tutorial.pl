# docs/tutorial.md, pasted into psql from its first line to its last: every statement runs without a
# word of complaint and gives what the page shows.

use strict;
use warnings;

use IPC::Run qw(run);
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $node = new_postgres('tutorial', q{shared_preload_libraries = 'mongo_fdw'});
my $port = $mongod->port;
my @tutorial = ($^X, 't/lib/tutorial.pl');

system_or_bail($ENV{PYTHON} || 'python3', 'demo/load_sample.py', '--port', $port);
$node->safe_psql('postgres', 'CREATE DATABASE tutorial');

run([ @tutorial, 'script', $port, 'rs' ], '>', \my $script) or die 'no script';

my ($status, $stdout, $stderr) = $node->psql('tutorial', $script, on_error_stop => 1);

is($status, 0, 'the statements run');
is($stderr, '', 'without a word of complaint');
note($stdout);
ok(run([ @tutorial, 'compare' ], '<', \$stdout, '>', \my $differences), 'and give what is shown');
is($differences, '', 'each of them');

# What the page says of reading only, and of another role.
my (undef, undef, $refused) = $node->psql('tutorial', 'DELETE FROM shop.orders');

like($refused, qr/does not allow deletes/, 'nobody writes');
is($node->safe_psql('tutorial', 'SET ROLE analyst; SELECT count(*) FROM shop.orders'), 20000, 'others read');

done_testing();
