# Instructions, by valgrind's callgrind, which make test does not install: what counting costs a
# point query (docs/operations.md: What is counted), which is less than one in a hundred; and how
# the cost of a field grows with the number of columns, if fields come in another order.

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

# documents whose fields come in one order, and in that order and its reverse by turns
my @widths = (100, 1500);
foreach my $width (@widths)
{
	my @fields = map { qq{"f$_": $_} } 1 .. $width;
	my $same = '{' . join(', ', @fields) . '}';
	my $reverse = '{' . join(', ', reverse @fields) . '}';
	my $columns = join(', ', map { "f$_ int" } 1 .. $width);

	$mongod->insert('db', "same_$width", '[' . join(', ', ($same) x 20) . ']');
	$mongod->insert('db', "other_$width", '[' . join(', ', ($same, $reverse) x 10) . ']');
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE ${_}_$width ($columns) SERVER mongodb OPTIONS (database 'db', collection '${_}_$width')")
	  foreach 'same', 'other';
}
$node->stop;

# instructions_of
#	What a single-user PostgreSQL executes for this, and its output.
sub instructions_of
{
	my ($settings, $sql) = @_;
	my ($output, $errors);

	IPC::Run::run([ $valgrind, '--tool=callgrind', "--callgrind-out-file=$folder/counts", "$bindir/postgres", '--single', '-j',
			'-D', $node->data_dir, (map { ('-c', $_) } @$settings), 'postgres' ],
		'<', \$sql, '>', \$output, '2>', \$errors) or die $errors;
	return ((slurp_file("$folder/counts") =~ /^(?:summary|totals):\s*(\d+)/m)[0], $output);
}

# instructions
#	What it executes for so many point queries.
sub instructions
{
	my ($settings, $count) = @_;
	my $sql = join('', map { 'SELECT info FROM points WHERE id = ' . (1 + $_ % 1000) . ";\n\n" } 1 .. $count);
	my ($sum, $output);

	$sql .= "SELECT (SELECT sum(finds) FROM mongo_fdw_stat) || ',' || max(calls) AS counted FROM mongo_fdw_stat_statements;\n\n" if "@$settings" =~ /shared/;
	($sum, $output) = instructions_of($settings, $sql);
	is(scalar(() = $output =~ /info = "info \d+"/g), $count, "$count queries: @$settings");
	is(($output =~ /counted = "(.*?)"/)[0], "$count,$count", 'all of them are counted') if "@$settings" =~ /shared/;
	return $sum;
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

# fields in another order, each in addition to one in the same order
sub of_a_field
{
	my ($width) = @_;
	my ($same, $other) = map { (instructions_of([], "EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM ${_}_$width;\n\n"))[0] } 'same', 'other';

	return ($other - $same) / (20 * $width);
}
my ($few, $many) = map { of_a_field($_) } @widths;
note(sprintf('instructions of a field in another order: %.0f of %d, %.0f of %d', $few, $widths[0], $many, $widths[1]));
cmp_ok($many, '<', 2 * abs($few) + 200, 'a field in another order costs about the same, however many there are');

done_testing();
