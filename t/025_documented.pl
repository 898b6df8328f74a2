# What docs/ say of options, settings, features, functions and lines of EXPLAIN is
# what there is, and all of it.

use strict;
use warnings;

use File::Basename qw(dirname);
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = dirname(__FILE__) . '/..';
my $node = new_postgres('documented');

$node->safe_psql('postgres', q{
	CREATE SERVER s FOREIGN DATA WRAPPER mongo_fdw;
	CREATE USER MAPPING FOR CURRENT_USER SERVER s;
	CREATE FOREIGN TABLE t (a int) SERVER s;
});

# The rows of a page's tables under each heading, as cells, by what is in `` in the first.
sub tables
{
	my ($page) = @_;
	my ($heading, %tables) = ('');

	foreach my $line (split /\n/, slurp_file("$root/docs/$page"))
	{
		$heading = $1 if $line =~ /^## (.*)/;
		$tables{$heading}{$1} = [ map { s/^ +| +$//gr } split /\|/, $2, -1 ]
		  if $line =~ /^\| `([\w.]+)` \|(.*)\|$/;
	}
	return \%tables;
}

# What a statement's error says is allowed.
sub allowed
{
	my ($sql, $hint) = @_;
	my (undef, undef, $stderr) = $node->psql('postgres', $sql);

	return $stderr =~ /HINT:  $hint: (.*?)\.?$/m ? [ sort split /, /, $1 ] : $stderr;
}

my $options = tables('options.md');

my @headings = ('CREATE SERVER', 'CREATE USER MAPPING', 'CREATE FOREIGN TABLE', 'Columns');

describe_library($node);
foreach my $object (0 .. $#headings)
{
	is_deeply([ sort keys %{ $options->{ $headings[$object] } } ],
		[ split /\n/, $node->safe_psql('postgres',
			"SELECT name FROM describe_options() WHERE objects >> $object & 1 = 1 ORDER BY name COLLATE \"C\"") ],
		$headings[$object]);
}
is_deeply([ sort keys %{ $options->{'Servers that lack something'} } ],
	allowed('ALTER SERVER s OPTIONS (ADD pushdown_disable \'x_x\')',
		'Valid values are names from this list, separated by commas'),
	'features');
is_deeply([ sort keys %{ tables('import.md')->{''} } ],
	allowed('IMPORT FOREIGN SCHEMA x FROM SERVER s INTO public OPTIONS (x_x \'\')', 'Valid options in this context are'),
	'IMPORT FOREIGN SCHEMA');

# Defaults and ranges, from the rows of the table of options.
my $rows = 0;

foreach my $row (split /\n/, $node->safe_psql('postgres', 'SELECT * FROM describe_options() WHERE objects < 16'))
{
	my ($name, $objects, $initial, $least, $most) = split /\|/, $row, -1;
	my ($heading, @more) = @headings[ grep { $objects >> $_ & 1 } 0 .. $#headings ];
	my ($value, $default) = @{ $options->{$heading}{$name} // [ (q{}) x 2 ] };

	$rows++;
	is($default =~ /^`(.*)`$/ ? $1 : '', $initial eq '-1' ? '' : $initial, "the default of $name");
	is($value =~ /^(\w+) to (\w+)$/ ? "$1 $2" : '', $least eq '' ? '' : "$least $most" =~ s/e\+/e/r, "the range of $name");
	is($options->{$_}{$name}[1], 'the server\'s', "$name is the server's") foreach @more;
}
cmp_ok($rows, '>', 40, 'the table of options was read');

is_deeply(
	[ map { my ($default, $who) = @{ $options->{Settings}{$_} }; "$_ $default $who" } sort keys %{ $options->{Settings} } ],
	[ split /\n/, $node->safe_psql('postgres', q{
		LOAD 'mongo_fdw';
		SELECT concat_ws(' ', name, boot_val, CASE context WHEN 'user' THEN 'everyone' ELSE context || 's' END)
		FROM pg_settings WHERE name LIKE 'mongo\_fdw.%' ORDER BY name COLLATE "C"}) ],
	'settings, their defaults and who may change them');

# Functions that are called by name; a page has one line for those that differ in one type.
my @functions;

foreach (slurp_file("$root/docs/functions.md") =~ /\*\*`(mongo_.*?)`\*\*/sg)
{
	my ($before, $types, $after) = /^(.*?)(\w+(?: \| \w+)+)(.*)$/s;

	push @functions, $types ? map { "$before$_$after" } split / \| /, $types : $_;
}
is_deeply([ sort map { lc } @functions ],
	[ sort map { lc } split /\n/, $node->safe_psql('postgres', q{
		SELECT format('%s(%s) returns %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
		FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
		WHERE e.extname = 'mongo_fdw' AND p.proname LIKE 'mongo%' AND p.proname NOT IN ('mongo_fdw_handler', 'mongo_fdw_validator')
		-- what views are made of
		AND p.proname NOT IN ('mongo_fdw_stat_get', 'mongo_fdw_stat_statements_get')}) ],
	'functions');

# Lines of EXPLAIN: what it has in JSON beside PostgreSQL's own.
my $mongod = MongoFdwTest::Mongod->new;
my %shown;

create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 1000);
$node->safe_psql('postgres', q{
	ALTER SERVER mongodb OPTIONS (estimated_rows '1000000', remote_parallelism '8');
	ALTER FOREIGN TABLE points ALTER id OPTIONS (indexed 'true');
	CREATE TABLE keys AS SELECT generate_series(1, 1000) AS k});

sub note_lines
{
	my ($options, $query, @settings) = @_;
	my $json = $node->safe_psql('postgres', join(';', (map { "SET $_" } @settings), "EXPLAIN (FORMAT JSON, $options) $query"));

	$shown{ s/ \d+$//r } = 1 foreach $json =~ /^\s*"([^"]+)": /mg;
}

my @postgresql = (
	'Node Type', 'Parent Relationship', 'Parallel Aware', 'Async Capable', 'Relation Name', 'Schema', 'Alias', 'Output',
	'Operation', 'Plan', 'Plans', 'Filter', 'Rows Removed by Filter', 'Workers Planned', 'Workers Launched', 'Single Copy',
	'Custom Plan Provider', 'Actual Rows', 'Actual Loops', 'Actual Startup Time', 'Actual Total Time', 'Planning Time',
	'Execution Time', 'Triggers', 'Strategy', 'Partial Mode', 'Workers', 'Worker Number', 'Disabled');

note_lines('VERBOSE, COSTS OFF', 'SELECT id FROM points ORDER BY id DESC');
note_lines('VERBOSE, COSTS OFF', 'INSERT INTO points VALUES (0)');
note_lines('VERBOSE, COSTS OFF', 'SELECT info FROM points', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0',
	'min_parallel_table_scan_size = 0');
note_lines('VERBOSE, COSTS OFF', 'SELECT k, info FROM keys JOIN points ON id = k', 'enable_hashjoin = off', 'enable_mergejoin = off',
	'enable_nestloop = off', 'max_parallel_workers_per_gather = 0');
note_lines('ANALYZE, BUFFERS OFF, COSTS OFF, SUMMARY OFF', 'SELECT info FROM points WHERE id = 7', 'mongo_fdw.explain_remote = on',
	'max_parallel_workers_per_gather = 0');
delete @shown{@postgresql};

my ($section) = slurp_file("$root/docs/pushdown.md") =~ /^## EXPLAIN\n(.*?)^## /ms;

is_deeply([ sort keys %shown ], [ sort map { /`(.*?)`/g } $section =~ /^\| (`.*?) \|/mg ], 'lines of EXPLAIN');

done_testing();
