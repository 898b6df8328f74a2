# Planning sends nothing: EXPLAIN without ANALYZE needs no MongoDB.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('planning');

create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 1000);

my @queries = (
	'SELECT * FROM points WHERE id = 1',
	'SELECT count(*) FROM points',
	'SELECT * FROM points a JOIN points b USING (id) WHERE a.info > \'x\'',
	'SELECT info, sum(id) FROM points GROUP BY info ORDER BY 2 LIMIT 3');

# unchanged
#	Does MongoDB see nothing of this?
sub unchanged
{
	my ($sql, $name) = @_;

	$mongod->snapshot;
	my ($status) = $node->psql('postgres', $sql);
	my $seen = $mongod->changes;
	ok($status == 0 && !%{ $seen->{commands} } && !$seen->{connections} && !$seen->{requests}, $name)
	  or diag("status $status ", explain($seen));
}

unchanged("EXPLAIN $_", "EXPLAIN $_") foreach @queries;
unchanged("EXPLAIN (VERBOSE) $_", "EXPLAIN (VERBOSE) $_") foreach @queries;
unchanged('PREPARE p (int) AS SELECT * FROM points WHERE id = $1', 'PREPARE');
unchanged(
	'PREPARE p (int) AS SELECT * FROM points WHERE id = $1; EXPLAIN (VERBOSE) EXECUTE p(3); '
	  . 'SET plan_cache_mode = force_generic_plan; EXPLAIN (VERBOSE) EXECUTE p(3)',
	'EXPLAIN EXECUTE, custom and generic plan');
unchanged('CREATE VIEW v AS SELECT * FROM points', 'CREATE VIEW');
unchanged(
	'CREATE SERVER other FOREIGN DATA WRAPPER mongo_fdw; '
	  . 'CREATE FOREIGN TABLE t (a int) SERVER other; DROP SERVER other CASCADE',
	'DDL');

# The same once a session has a connection.
$mongod->snapshot;
$node->safe_psql('postgres', 'SELECT * FROM points WHERE id = 1');
my $warm = $mongod->changes->{commands};
$mongod->snapshot;
$node->safe_psql('postgres', join('; ', 'SELECT * FROM points WHERE id = 1', map { "EXPLAIN (VERBOSE) $_" } @queries));
is_deeply($mongod->changes->{commands}, $warm, 'EXPLAIN in a session that has connected');

# EXPLAIN (VERBOSE) shows the command that the query sends.
my $plan = $node->safe_psql('postgres', 'EXPLAIN (VERBOSE, COSTS OFF) SELECT info FROM points WHERE id = 42');
like($plan, qr/Foreign Namespace: db\.points/, 'EXPLAIN names the collection');
like($plan, qr/"find"\s*:\s*"points".*42/s, 'EXPLAIN (VERBOSE) shows the command');
unlike($node->safe_psql('postgres', 'EXPLAIN SELECT info FROM points WHERE id = 42'),
	qr/"find"/, 'EXPLAIN without VERBOSE does not');

# Estimates come from the option.
$node->safe_psql('postgres', 'ALTER FOREIGN TABLE points OPTIONS (ADD estimated_rows \'123456\')');
like($node->safe_psql('postgres', 'EXPLAIN SELECT * FROM points'), qr/rows=123456 /,
	'estimated_rows is the estimate');

# planning_memory
#	Returns what planning a star of ten tables adds to the peak of a backend's memory, in kB.
sub planning_memory
{
	my ($table) = @_;
	my $peak = q{SELECT substring(pg_read_file('/proc/self/status') from 'VmHWM:\s+(\d+)')};
	my $outputs = join(', ', map { "t$_.info" } 0 .. 9);
	my $joins = join(' ', map { "LEFT JOIN $table t$_ ON t$_.id = t0.id" } 1 .. 9);
	my @lines = split(
		/\n/,
		$node->safe_psql(
			'postgres',
			"SET join_collapse_limit = 10; EXPLAIN SELECT * FROM $table a LEFT JOIN $table b USING (id); "
			  . "$peak; EXPLAIN SELECT $outputs FROM $table t0 $joins; $peak"));
	my ($before, $after) = grep { /^\d+$/ } @lines;

	return $after - $before;
}

# Each of the 2,304 joins of two sides is estimated, but few are described in BSON.
$node->safe_psql('postgres',
	'CREATE TABLE local (id int PRIMARY KEY, info text); '
	  . "INSERT INTO local SELECT i, 'info' FROM generate_series(1, 1000) i; ANALYZE local; ANALYZE points");
my ($foreign, $local) = map { planning_memory($_) } qw(points local);
cmp_ok($foreign, '<', 2 * $local, 'planning joins of foreign tables takes little more memory than of local ones');

# And all that with MongoDB stopped.
$mongod->stop;
foreach my $query (@queries)
{
	my ($status, $stdout, $stderr) = $node->psql('postgres', "EXPLAIN (VERBOSE) $query");
	is($status, 0, "MongoDB stopped: EXPLAIN $query") or diag($stderr);
}

done_testing();
