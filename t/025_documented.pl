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

foreach my $case (
	[ 'CREATE SERVER', 'ALTER SERVER s OPTIONS (ADD x_x \'\')' ],
	[ 'CREATE USER MAPPING', 'CREATE USER MAPPING FOR PUBLIC SERVER s OPTIONS (x_x \'\')' ],
	[ 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE t OPTIONS (ADD x_x \'\')' ],
	[ 'Columns', 'ALTER FOREIGN TABLE t ALTER COLUMN a OPTIONS (ADD x_x \'\')' ])
{
	my ($heading, $sql) = @$case;

	is_deeply([ sort keys %{ $options->{$heading} } ], allowed($sql, 'Valid options in this context are'), $heading);
}
is_deeply([ sort keys %{ $options->{'Servers that lack something'} } ],
	allowed('ALTER SERVER s OPTIONS (ADD pushdown_disable \'x_x\')',
		'Allowed are names from this list, with commas between them'),
	'features');
is_deeply([ sort keys %{ tables('import.md')->{''} } ],
	allowed('IMPORT FOREIGN SCHEMA x FROM SERVER s INTO public OPTIONS (x_x \'\')', 'Valid options in this context are'),
	'IMPORT FOREIGN SCHEMA');

# Defaults and ranges, from the rows of the table of options.
my %heading_of = (
	ON_SERVER => 'CREATE SERVER', ON_MAPPING => 'CREATE USER MAPPING',
	ON_TABLE => 'CREATE FOREIGN TABLE', ON_COLUMN => 'Columns');
my $rows = 0;

foreach my $line (split /\n/, slurp_file("$root/src/options/option_table.c"))
{
	my ($name, $objects, $rest) = $line =~ /^\t\{"(\w+)", ([\w| ]+), \w+, \w+, \w+\([\w.]+\)(.*)\},$/ or next;
	my ($initial) = $rest =~ /^, "([^"]*)"/;
	my ($least, $most) = $rest =~ /BETWEEN\((\w+), (\w+)\)/;
	my ($object, @more) = split / \| /, $objects;
	my ($value, $default) = @{ $options->{ $heading_of{$object} }{$name} // [ (q{}) x 2 ] };

	$rows++;
	is($default =~ /^`(.*)`$/ ? $1 : undef, defined $initial && $initial ne '-1' ? $initial : undef,
		"the default of $name");
	is($value =~ /^(\w+) to (\w+)$/ ? "$1 $2" : '',
		defined $least ? "$least " . ($most eq 'INT_MAX' ? 2147483647 : $most) : '', "the range of $name");
	is($options->{ $heading_of{$_} }{$name}[1], 'the server\'s', "$name is the server's") foreach @more;
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

foreach (slurp_file("$root/docs/functions.md") =~ /^\*\*`(mongo_.*?)`\*\*/msg)
{
	my ($before, $types, $after) = /^(.*?)(\w+(?: \| \w+)+)(.*)$/s;

	push @functions, $types ? map { "$before$_$after" } split / \| /, $types : $_;
}
is_deeply([ sort map { lc } @functions ],
	[ sort map { lc } split /\n/, $node->safe_psql('postgres', q{
		SELECT format('%s(%s) returns %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
		FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
		WHERE e.extname = 'mongo_fdw' AND p.proname LIKE 'mongo%' AND p.proname NOT IN ('mongo_fdw_handler', 'mongo_fdw_validator')}) ],
	'functions');

# Lines of EXPLAIN.
my %shown;

foreach my $file (glob "$root/src/exec/*.c")
{
	$shown{$_} = 1 foreach slurp_file($file) =~ /(?:ExplainProperty\w+\(|numbered\(|label = [^"]*)"([^"]+)"/g;
}
my ($section) = slurp_file("$root/docs/pushdown.md") =~ /^## EXPLAIN\n(.*?)^## /ms;

is_deeply([ sort map { /`(.*?)`/g } $section =~ /^\| (`.*?) \|/mg ], [ sort keys %shown ], 'lines of EXPLAIN');

done_testing();
