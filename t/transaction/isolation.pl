# What transactions see of each other on a replica set: specs/*.spec, run by
# PostgreSQL's own isolationtester and compared with expected/*.out.
# ISOLATION="savepoint write_skew" runs just those.

use strict;
use warnings;

use File::Basename qw(dirname);
use MongoFdwTest;
use Test::More;

my $programs = dirname($ENV{PG_REGRESS}) . '/../isolation';
if (!-x "$programs/pg_isolation_regress" || !-x "$programs/isolationtester")
{
	plan skip_all => 'this PostgreSQL came without isolationtester';
}

my @specs = $ENV{ISOLATION} ? split(' ', $ENV{ISOLATION}) : sort map { s{^specs/|\.spec$}{}gr } glob('specs/*.spec');
# What isolationtester does not print: how often each SQLSTATE was raised.
my %states = (
	duplicate_key => { 40001 => 2, 23505 => 2 },
	lost_update => { 40001 => 1 },
	savepoint => { '0A000' => 7, 23505 => 1 },
	write_conflict => { 40001 => 7 },
	write_skew => { 40001 => 1 },
);

my $set = MongoFdwTest::ReplicaSet->new(1);
my $node = new_postgres('isolation', "log_line_prefix = '%a %e '");
create_server($node, 'mongodb', $set->primary, replica_set => 'rs');
# or else two transactions at once would want to create them
$set->primary->command("{\"create\": \"$_\"}", 'isolation') foreach ('account', 'duty');

my $output = '';
my $folder = 'tmp_check/isolation';
mkdir $folder;
IPC::Run::run(
	[
		"$programs/pg_isolation_regress", '--inputdir=.', "--outputdir=$folder",
		'--bindir=', '--use-existing', '--dbname=postgres',
		'--host=' . $node->host, '--port=' . $node->port, @specs
	],
	'>', \$output, '2>&1');

my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
# which is TAP since PostgreSQL 16
my %result = map {
	/^\s*test\s+(\S+)\s+\.\.\. (\S+)/ ? ($1 => $2)
	  : /^(ok|not ok) \d+\s+[-+]\s+(\S+)/ ? ($2 => $1)
	  : ()
} split(/\n/, $output);
foreach my $spec (@specs)
{
	my %raised;
	$raised{$1}++ while $log =~ m{^isolation/\Q$spec\E/\S+ (\S+) ERROR}mg;
	is($result{$spec}, 'ok', "isolation: $spec");
	is_deeply(\%raised, $states{$spec} // {}, "isolation: $spec: SQLSTATEs");
}
if (grep { ($result{$_} // '') ne 'ok' } @specs)
{
	diag(-s "$folder/regression.diffs" ? PostgreSQL::Test::Utils::slurp_file("$folder/regression.diffs") : $output);
}

done_testing();
