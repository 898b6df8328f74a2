# docs/tutorial.md, pasted into psql from its first line to its last: every statement runs without a
# word of complaint and gives what the page shows.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $node = new_postgres('tutorial', q{shared_preload_libraries = 'mongo_fdw'});
my $port = $mongod->port;

system_or_bail($ENV{PYTHON} || 'python3', 'demo/load_sample.py', '--port', $port);
$node->safe_psql('postgres', 'CREATE DATABASE tutorial');

# A block of SQL, and the block without a language that comes right after it, if one does.
my $page = slurp_file('docs/tutorial.md');
my @blocks;

push @blocks, [ $1, $2 ] while $page =~ /^```sql\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg;
cmp_ok(scalar @blocks, '>', 10, 'the page has statements');
cmp_ok(scalar(grep { defined $_->[1] } @blocks), '>', 4, 'and results');

my $script = join("\n", map { "\\echo == $_\n$blocks[$_][0]" } 0 .. $#blocks);

is($script =~ s/port '27017'/port '$port'/g, 1, 'the port stands in one place');
is($script =~ s/replica_set 'rs0'/replica_set 'rs'/g, 1, 'and so does the replica set');

my ($status, $stdout, $stderr) = $node->psql('tutorial',
	"SET client_min_messages = warning;\n\\pset format aligned\n\\pset tuples_only off\n$script", on_error_stop => 1);

is($status, 0, 'the statements run');
is($stderr, '', 'without a word of complaint');
note($stdout);

my %given = (split /^== (\d+)\n/m, $stdout)[ 1 .. 2 * @blocks ];

foreach my $number (0 .. $#blocks)
{
	my ($sql, $shown) = @{ $blocks[$number] };
	my ($name) = $sql =~ /(.*)/;

	next if !defined $shown;
	# a plan without psql's frame
	s/^ *QUERY PLAN *\n-+\n|^\(\d+ rows\)\n//mg foreach $name =~ /^EXPLAIN/ ? $given{$number} : ();
	s/ +$//mg, s/^\n|\n+\z//g foreach ($shown, $given{$number});
	is($given{$number}, $shown, "$name: gives what is shown");
}

# What the page says of reading only, and of another role.
my (undef, undef, $refused) = $node->psql('tutorial', 'DELETE FROM shop.orders');

like($refused, qr/does not allow deletes/, 'nobody writes');
is($node->safe_psql('tutorial', 'SET ROLE analyst; SELECT count(*) FROM shop.orders'), 20000, 'others read');

done_testing();
