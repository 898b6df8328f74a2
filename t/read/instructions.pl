# What counting costs a point query (docs/operations.md: What is counted): less than one
# instruction in a hundred, by valgrind's callgrind, which make test does not install.

use strict;
use warnings;

use IPC::Run;
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my ($valgrind) = grep { -x } map { "$_/valgrind" } split(/:/, $ENV{PATH});
plan skip_all => 'there is no valgrind' unless $valgrind;
plan skip_all => 'sanitizers and valgrind do not go together' if sanitized();

my $folder = PostgreSQL::Test::Utils::tempdir();
my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('instructions');
my $bindir = $node->config_data('--bindir');

create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 1000);
$node->stop;

# instructions
#	What a single-user PostgreSQL executes for so many point queries.
sub instructions
{
	my ($settings, $count) = @_;
	my $sql = join('', map { 'SELECT info FROM points WHERE id = ' . (1 + $_ % 1000) . ";\n\n" } 1 .. $count);
	my ($output, $errors);

	$sql .= "SELECT (SELECT sum(finds) FROM mongo_fdw_stat) || ',' || max(calls) AS counted FROM mongo_fdw_stat_statements;\n\n" if "@$settings" =~ /shared/;
	IPC::Run::run([ $valgrind, '--tool=callgrind', "--callgrind-out-file=$folder/counts", "$bindir/postgres", '--single', '-j',
			'-D', $node->data_dir, (map { ('-c', $_) } @$settings), 'postgres' ],
		'<', \$sql, '>', \$output, '2>', \$errors) or die $errors;
	is(scalar(() = $output =~ /info = "info \d+"/g), $count, "$count queries: @$settings");
	is(($output =~ /counted = "(.*?)"/)[0], "$count,$count", 'all of them are counted') if "@$settings" =~ /shared/;
	return (slurp_file("$folder/counts") =~ /^(?:summary|totals):\s*(\d+)/m)[0];
}

# one query, without the start of the session
sub of_a_query
{
	my (@settings) = @_;
	return (instructions(\@settings, 1200) - instructions(\@settings, 200)) / 1000;
}

my $without = of_a_query('compute_query_id=on');
my $with = of_a_query('compute_query_id=on', 'shared_preload_libraries=mongo_fdw');
my $without_ids = of_a_query('compute_query_id=off');
note(sprintf('instructions: %.0f, with counts in shared memory %.0f (%+.2f %%), without query ids %.0f',
		$without, $with, 100 * ($with / $without - 1), $without_ids));
cmp_ok($without, '>', 50_000, 'a query was measured');
cmp_ok($with, '<', 1.01 * $without, 'counting costs less than one per cent');

done_testing();
