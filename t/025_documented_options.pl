# docs/options.md against the table of options, by way of the hints.

use strict;
use warnings;

use File::Basename qw(dirname);
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_postgres('options');
my (%documented, $section);

foreach my $line (split /\n/, slurp_file(dirname(__FILE__) . '/../docs/options.md'))
{
	$section = $1 if $line =~ /^## (.*)/;
	push @{ $documented{$section} }, $1 if $line =~ /^\| `([\w.]+)` \|/;
}

$node->safe_psql('postgres', 'CREATE SERVER s FOREIGN DATA WRAPPER mongo_fdw; CREATE FOREIGN TABLE t (a int) SERVER s');
foreach my $case (
	[ 'CREATE SERVER', 'ALTER SERVER s OPTIONS (ADD x_x \'\')' ],
	[ 'CREATE USER MAPPING', 'CREATE USER MAPPING FOR PUBLIC SERVER s OPTIONS (x_x \'\')' ],
	[ 'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE t OPTIONS (ADD x_x \'\')' ],
	[ 'Columns', 'ALTER FOREIGN TABLE t ALTER COLUMN a OPTIONS (ADD x_x \'\')' ])
{
	my ($heading, $sql) = @$case;
	my (undef, undef, $stderr) = $node->psql('postgres', $sql);
	my ($valid) = $stderr =~ /Valid options in this context are: (.*)/;
	is_deeply([ sort @{ $documented{$heading} } ], [ sort split /, /, $valid // $stderr ], $heading);
}

is_deeply([ sort @{ $documented{Settings} } ],
	[ split /\n/, $node->safe_psql('postgres',
			"LOAD 'mongo_fdw'; SELECT name FROM pg_settings WHERE name LIKE 'mongo\\_fdw.%' ORDER BY name COLLATE \"C\"") ],
	'Settings');

done_testing();
