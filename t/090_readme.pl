# What README.md and the demo tell people to type works, and what they link to
# is there.

use strict;
use warnings;

use File::Basename qw(dirname);
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('readme');
my $port = $mongod->port;

system_or_bail($ENV{PYTHON} || 'python3', 'demo/load_sample.py', '--port', $port);

# README's SQL, in one session and in its order.
my $readme = slurp_file('README.md');
my $sql = join("\n", $readme =~ /^```sql\n(.*?)^```$/msg);

$sql =~ s/port '27017'/port '$port'/;
$node->safe_psql('postgres', 'CREATE DATABASE readme');
my ($status, $stdout, $stderr) = $node->psql('readme', "SET client_min_messages = warning;\n$sql");
is($status, 0, 'README: the SQL runs');
is($stderr, '', 'README: without a word of complaint');
like($stdout, qr/^\{"_id": "paid", "orders": \d+\}$/m, 'README: the pipeline gives its rows');

# The plan that README shows.
my ($query, $plan) = $readme =~ /^EXPLAIN \(VERBOSE, COSTS OFF\) (.*?);\n\n(.*?)^```$/ms;
my $shown = $node->safe_psql('readme', "EXPLAIN (VERBOSE, COSTS OFF) $query");
s/^ +//mg foreach ($plan, $shown);
is($shown, $plan =~ s/\n\z//r, 'README: the plan is the one shown');

# The demo.
$node->safe_psql('postgres', 'CREATE DATABASE demo');
local $ENV{MONGO_HOST} = '127.0.0.1';
local $ENV{MONGO_PORT} = $port;
local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('demo'), '-f', 'demo/demo.sql' ],
	'the demo\'s SQL runs');

# What the limits say of a standalone MongoDB.
(undef, undef, $stderr) = $node->psql('readme',
	'BEGIN; INSERT INTO customers (_id, number) VALUES (\'0123456789abcdef01234567\', 0); ROLLBACK');
like($stderr, qr/WARNING:.*not rolled back/, 'README: ROLLBACK over a standalone MongoDB warns');

# The same documents on every machine.
my $orders = $node->safe_psql('readme', 'SELECT count(*), sum(total), min(placed), max(placed) FROM orders');
is($orders, '20000|21944030.38|2021-01-01 01:51:43.401+00|2024-10-31 21:17:26.95+00', 'the sample is the same everywhere');

# The names by which a document's headings are linked to.
sub anchors
{
	my ($text) = @_;

	$text =~ s/^```.*?^```//msg;
	return map { lc =~ s/[^\w\- ]//gr =~ tr/ /-/r => 1 } $text =~ /^#+ +(.*)$/mg;
}

# Links of all documents.
foreach my $document (glob('*.md docs/*.md'))
{
	my $folder = dirname($document);
	foreach my $link (slurp_file($document) =~ /\]\(([^):]+)\)/g)
	{
		my ($target, $heading) = split /#/, $link;
		my $file = $target eq '' ? $document : "$folder/$target";

		ok(-e $file, "$document links to $link, which is there");
		next if !defined $heading || !-e $file;
		my %anchors = anchors(slurp_file($file));
		ok($anchors{$heading}, "$document links to $link, which has that heading");
	}
}

done_testing();
