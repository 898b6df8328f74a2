# docs/reference.md has every function, view, setting and line of EXPLAIN, and its
# examples run.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('reference', q{shared_preload_libraries = 'mongo_fdw'});
my $port = $mongod->port;
my $page = slurp_file('docs/reference.md');

system_or_bail($ENV{PYTHON} || 'python3', 'demo/load_sample.py', '--port', $port);

# The examples, in one session; COPY to standard output is psql's own.
my @blocks = $page =~ /^```sql\n(.*?)^```$/msg;
cmp_ok(scalar @blocks, '>=', 12, 'the page has examples');
my ($status, $stdout, $stderr) = $node->psql('postgres', join("\n", @blocks) =~ s/port '27017'/port '$port'/r, on_error_stop => 1);
is($status, 0, 'they run');
is($stderr, '', 'without a word of complaint');
like($stdout, qr/^20000$/m, 'the command gives the number of orders');
like($stdout, qr/^mongodb\|/m, 'the view has a row for the server');

# Names in `` outside of examples.
my %named = map { $_ => 1 } $page =~ s/^```.*?^```$//gmsr =~ /`([\w. ]+)(?:\(\))?`/g;

sub all_named
{
	my ($kind, @names) = @_;

	cmp_ok(scalar @names, '>', 2, "$kind were found");
	is_deeply([ grep { !$named{$_} } @names ], [], "all $kind are on the page");
}

my $member = q{JOIN pg_depend d ON d.objid = o.oid AND d.deptype = 'e'
	JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'mongo_fdw'};

# Not those that operators, types, the wrapper and views are made of.
all_named('functions', split /\n/, $node->safe_psql('postgres', qq{
	SELECT DISTINCT proname FROM pg_proc o $member AND d.classid = 'pg_proc'::regclass
	WHERE proname NOT LIKE 'objectid\\_%' AND proname NOT LIKE 'mongo\\_fdw\\_stat%\\_get'
	AND proname NOT IN ('mongo_fdw_handler', 'mongo_fdw_validator')}));
all_named('views', split /\n/, $node->safe_psql('postgres', qq{
	SELECT relname FROM pg_class o $member AND d.classid = 'pg_class'::regclass WHERE relkind = 'v'}));
all_named('settings', split /\n/, $node->safe_psql('postgres',
	q{SELECT name FROM pg_settings WHERE name LIKE 'mongo\_fdw.%'}));

# t/025_documented.pl holds that page against EXPLAIN.
my ($section) = slurp_file('docs/pushdown.md') =~ /^## EXPLAIN\n(.*?)^## /ms;
all_named('lines of EXPLAIN', map { /`(.*?)`/g } $section =~ /^\| (`.*?) \|/mg);

done_testing();
