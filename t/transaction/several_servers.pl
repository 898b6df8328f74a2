# docs/operations.md: a table over several MongoDB servers, and what runs where.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my %mongods = map { $_ => MongoFdwTest::Mongod->new } qw(a b c);
my $node = new_postgres('several_servers');
my ($section) = slurp_file('docs/operations.md') =~ /^## Several MongoDB servers\n(.*?)^## /ms;
my ($ddl) = $section =~ /^```sql\n(.*?)^```$/ms;

$ddl =~ s/address 'mongodb-(\w)\.example\.com'/"address '127.0.0.1', port '" . $mongods{$1}->port . "', server_selection_timeout_ms '2000'"/ge;
$node->safe_psql('postgres', "CREATE EXTENSION IF NOT EXISTS mongo_fdw; $ddl");
$node->safe_psql('postgres', 'CREATE TABLE local_readings (LIKE readings)');
my $rows = q{SELECT g % 100, '2024-01-01'::timestamptz + g * interval '1 minute', g FROM generate_series(1, 3000) g};
$node->safe_psql('postgres', "INSERT INTO $_ $rows") foreach qw(readings local_readings);
is($node->safe_psql('postgres', 'SELECT count(DISTINCT tableoid) FROM readings'), 3, 'each server has some');

# what is a command: neither greetings nor the test's own
my @kinds = qw(find getMore aggregate count insert update delete findAndModify);
my $session = MongoFdwTest::Session->new($node);
$session->ask('SET enable_partitionwise_aggregate = on; SELECT count(*) FROM readings');

# --- the table ----------------------------------------------------------------------
my $statements = 0;
foreach my $line (split /\n/, $section)
{
	my ($statement, $all, $most) = $line =~ /^\| `(.*?)` \| (\d), (\d) \|/ or next;
	my (@commands, $answer, $expected);

	$statements++;
	$_->snapshot foreach values %mongods;
	$answer = $session->ask($statement);
	foreach my $mongod (values %mongods)
	{
		my $counted = $mongod->changes->{commands};
		my $sum = 0;
		$sum += $counted->{$_} // 0 foreach @kinds;
		push @commands, $sum;
	}
	@commands = sort { $b <=> $a } @commands;
	is($commands[0] + $commands[1] + $commands[2] . ", $commands[0]", "$all, $most", $statement);

	(my $local = $statement) =~ s/\breadings\b/local_readings/;
	$expected = $session->ask($local);
	is(join("\n", sort split /\n/, $answer), join("\n", sort split /\n/, $expected), 'as a local table') if $statement =~ /^SELECT/;
}
is($statements, 6, 'all statements of the page were run');
is($session->ask('SELECT count(*), sum(value) FROM readings'), $session->ask('SELECT count(*), sum(value) FROM local_readings'), 'writes too');
$session->close;

# --- one is lost --------------------------------------------------------------------
my %on = map { split /\|/ } split /\n/, $node->safe_psql('postgres',
	q{SELECT right(tableoid::regclass::text, 1), min(device) FROM readings GROUP BY 1});
$mongods{b}->kill;
is($node->safe_psql('postgres', "SELECT count(*) > 0 FROM readings WHERE device = $on{$_}"), 't', "what is on server $_ is read") foreach qw(a c);
foreach my $statement ("SELECT * FROM readings WHERE device = $on{b}", 'SELECT count(*) FROM readings')
{
	my (undef, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
	like($stderr, qr/ERROR:  08001: could not connect to server "mongodb_b"/, "and it is said who is missing: $statement");
}

done_testing();
