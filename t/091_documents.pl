# Every command of docs/documents.md, with what the page says that it gives.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('documents');

system_or_bail($ENV{PYTHON} || 'python3', 'demo/load_sample.py', '--port', $mongod->port);
create_server($node, 'mongodb', $mongod);

# A block of SQL, and the block without a language that comes right after it, if one does.
my $page = slurp_file('docs/documents.md');
my @blocks;
push @blocks, [ $1, $2 ] while $page =~ /^```sql\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg;
cmp_ok(scalar @blocks, '>=', 2, 'the page has commands');

# All in one session.
my $script = join("\n", map { "\\echo == $_\n$blocks[$_][0]" } 0 .. $#blocks);
my ($status, $stdout, $stderr) = $node->psql('postgres', "\\pset format aligned\n\\pset tuples_only off\n$script");
is($status, 0, 'they run');
is($stderr, '', 'without a word of complaint');

my %given = (split /^== (\d+)\n/m, $stdout)[ 1 .. 2 * @blocks ];
foreach my $number (0 .. $#blocks)
{
	my ($sql, $shown) = @{ $blocks[$number] };
	my ($name) = $sql =~ /(.*)/;
	next if !defined $shown;
	s/ +$//mg, s/^\n|\n+\z//g foreach ($shown, $given{$number});
	is($given{$number}, $shown, "$name: gives what is shown");
}

done_testing();
