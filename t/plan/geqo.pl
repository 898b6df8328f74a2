# Joins whose order PostgreSQL's genetic optimizer (GEQO) looks for.  It plans
# each order that it tries in a memory context of its own and deletes that,
# while what is known of the tables goes on to the next order: of 2 to 20
# foreign tables, of partitions, in prepared statements, functions, sub-selects
# and UPDATEs, there must be a plan, and its answer must be that over local
# tables.  A build of PostgreSQL with assertions looks closer.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $TABLES = 20;
my $ROWS = 30;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('geqo', 'jit = off', 'fsync = off', 'max_parallel_workers_per_gather = 0',
	# every join is for GEQO, however many tables it has, and all of it at once
	'geqo_threshold = 2', 'geqo_effort = 1', 'from_collapse_limit = 100', 'join_collapse_limit = 100');

create_server($node, 'mongodb', $mongod);
$node->safe_psql('postgres', 'CREATE SCHEMA remote; CREATE SCHEMA local');

# over
#	What statements print over the tables of this schema.
sub over
{
	my ($schema, $statements) = @_;

	return $node->safe_psql('postgres', "SET search_path = $schema; $statements");
}

# same
#	The same is printed, and something.
sub same
{
	my ($name, $statements) = @_;
	my ($remote, $local) = map { over($_, $statements) } qw(remote local);

	isnt($local, '', "$name: there are rows");
	is($remote, $local, $name);
}

# --- tables ---------------------------------------------------------------------
my $columns = '_id int, next int%s, v int, "Name" text%s';
my @made;
foreach my $k (1 .. $TABLES)
{
	push @made, sprintf("CREATE TABLE local.t$k ($columns)", '', ''),
	  sprintf("CREATE FOREIGN TABLE remote.t$k ($columns) SERVER mongodb OPTIONS (database 'db', collection 't$k')",
		" OPTIONS (indexed 'true')", " OPTIONS (path 'sub.name')"),
	  map { "INSERT INTO $_.t$k SELECT g, CASE WHEN g % 11 <> 0 THEN (g * 7 + $k) % $ROWS + 1 END, g * $k % 10, 't$k ' || g"
		  . " FROM generate_series(1, $ROWS) g; ANALYZE $_.t$k" } qw(local remote);
}
$node->safe_psql('postgres', join(';', @made));

# --- joins of 2 to 20 tables ------------------------------------------------------
# Which earlier table the k-th is joined to.
my %shapes = (chain => sub { $_[0] - 1 }, star => sub { 1 }, tree => sub { int($_[0] / 2) });
# What makes joins one command, or finds that ask for the keys of many rows, or neither.
my %ways = (
	lookups => 'SELECT',
	batches => 'SET mongo_fdw.enable_join_pushdown = off; SET enable_hashjoin = off; SET enable_mergejoin = off;'
	  . ' SET enable_nestloop = off; SELECT');

# A join of so many tables, by turns inner, left, semi- and antijoins.
sub join_of
{
	my ($n, $shape) = @_;
	my ($from, @where) = ('t1');
	my @visible = (1);

	foreach my $k (2 .. $n)
	{
		my $j = $shapes{$shape}->($k);
		# what is behind EXISTS cannot be joined to
		$j = $visible[-1] if !grep { $_ == $j } @visible;
		my $kind = qw(JOIN LEFT EXISTS JOIN NOT LEFT)[ $k % 6 ];
		my $clause = $k % 2 ? "t$k._id = t$j.next" : "t$k.next = t$j._id";

		if ($kind eq 'EXISTS')
		{
			push @where, "EXISTS (SELECT 1 FROM t$k WHERE $clause AND t$k.v >= 0)";
		}
		elsif ($kind eq 'NOT')
		{
			push @where, "NOT EXISTS (SELECT 1 FROM t$k WHERE $clause AND t$k.v = t$j.v + 5)";
		}
		else
		{
			$from .= ($kind eq 'LEFT' ? ' LEFT' : '') . " JOIN t$k ON $clause" . ($k % 4 ? '' : " AND t$k.v <> 3");
			push @visible, $k;
		}
	}
	my $where = @where ? 'WHERE ' . join(' AND ', @where) : '';
	return (
		join(', ', map { "t$_.\"Name\"" } @visible) . " FROM $from $where ORDER BY " . join(', ', 1 .. @visible),
		"t1.v, count(*), count(t$visible[-1]._id), min(t$visible[-1].\"Name\") FROM $from $where GROUP BY 1 ORDER BY 1");
}

# a command costs much and a lookup nothing, so that joins are pushed
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD fdw_startup_cost '1000000', ADD fdw_lookup_cost '0')});
my %seen;
foreach my $n (2 .. $TABLES)
{
	my $shape = (sort keys %shapes)[ $n % 3 ];
	foreach my $way (sort keys %ways)
	{
		my $statements = join(';', 'SET geqo_seed = ' . ($n % 5) / 4,
			map { (my $query = $ways{$way}) =~ s/SELECT$/SELECT $_/; $query } join_of($n, $shape));
		same("$n tables, $shape, $way", $statements);

		# planned only, in other orders
		my $plan = over('remote', join(';', map {
					(my $query = $ways{$way}) =~ s/SELECT$/EXPLAIN (VERBOSE, COSTS OFF) SELECT $_/;
					'SET geqo_seed = ' . ($n % 7 + 1) / 8 . "; $query" } join_of($n, $shape)));
		$seen{lookups} += $plan =~ /"\$lookup"/;
		$seen{batches} += $plan =~ /MongoDB Batched Join/;
	}
}
cmp_ok($seen{lookups}, '>=', $TABLES / 2, 'joins were pushed');
cmp_ok($seen{batches}, '>=', $TABLES / 2, 'joins were batched');

# --- statements that are planned again ----------------------------------------------
my ($rows, $groups) = join_of(12, 'chain');
foreach my $mode (qw(auto force_custom_plan force_generic_plan))
{
	(my $query = $rows) =~ s/WHERE/WHERE t1._id BETWEEN \$1 AND \$1 + 20 AND/;
	same("prepared, $mode", "SET plan_cache_mode = $mode; PREPARE p (int) AS SELECT $query;"
		  . join(';', map { ("EXECUTE p ($_)", $_ % 3 ? () : 'ANALYZE t2') } 1 .. 7));
}
same('a cursor', "BEGIN; DECLARE c CURSOR FOR SELECT $rows; FETCH 5 FROM c; MOVE 3 IN c; FETCH ALL FROM c; COMMIT");
same('a function that asks again and again', qq{
	CREATE FUNCTION pg_temp.f(n int) RETURNS SETOF text LANGUAGE plpgsql AS \$\$
	DECLARE r record;
	BEGIN
		FOR i IN 1 .. n LOOP
			BEGIN
				FOR r IN SELECT $rows LOOP RETURN NEXT r::text; END LOOP;
				PERFORM 1 / (i - 3);
			EXCEPTION WHEN division_by_zero THEN RETURN NEXT 'failed';
			END;
		END LOOP;
	END \$\$;
	SELECT * FROM pg_temp.f(7)});

# --- joins within statements ----------------------------------------------------------
my $inner = 'SELECT count(*) FROM t1 JOIN t2 ON t2._id = t1.next LEFT JOIN t3 ON t3._id = t2.next JOIN t4 ON t4.next = t1._id';
same('sub-selects', "SELECT _id, ($inner WHERE t1.v = t5.v), (SELECT max(t7.\"Name\") FROM t6 JOIN t7 ON t7._id = t6.next"
	  . " WHERE t6.next > t5._id) FROM t5 JOIN t8 USING (_id) JOIN t9 USING (_id) ORDER BY 1");
same('CTEs, lateral joins and unions', "WITH a AS MATERIALIZED (SELECT t1._id, t2.v FROM t1 JOIN t2 ON t2._id = t1.next),"
	  . " b AS (SELECT t3._id, t4.v FROM t3 JOIN t4 ON t4._id = t3.next)"
	  . " SELECT * FROM a JOIN b USING (_id) CROSS JOIN LATERAL (SELECT count(*) FROM t5 JOIN t6 ON t6._id = t5.next"
	  . " WHERE t5.v > a.v) l UNION ALL SELECT t7._id, t7.v, t8.v, 0 FROM t7 JOIN t8 ON t8._id = t7.next ORDER BY 1, 2, 3, 4");
same('one side that gives nothing', 'SELECT t1._id, t2._id FROM t1 LEFT JOIN (t2 JOIN t3 ON t3._id = t2.next) ON false'
	  . ' LEFT JOIN t4 ON t4._id = t1.next AND 1 = 0 JOIN t5 ON t5._id = t1.next ORDER BY 1');
same('rows that are changed', 'UPDATE t20 SET v = t2.v + t4.v FROM t1 JOIN t2 ON t2._id = t1.next JOIN t3 ON t3._id = t2._id'
	  . ' JOIN t4 ON t4._id = t3._id WHERE t20._id = t1._id; DELETE FROM t19 USING t1, t2, t3 WHERE t19._id = t1._id'
	  . ' AND t1.next = t2._id AND t2.next = t3._id AND t3.v < 4; SELECT t20._id, t20.v, t19._id FROM t20 LEFT JOIN t19'
	  . ' USING (_id) ORDER BY 1');
same('tables that change between plans', join(';', map { "$_; SELECT $rows" }
		'SELECT 1', 'ALTER TABLE t1 ADD more int', 'ALTER TABLE t2 RENAME v TO w; ALTER TABLE t2 RENAME w TO v'));

# --- partitions -------------------------------------------------------------------------
foreach my $name (qw(p q))
{
	$node->safe_psql('postgres', join(';',
			"CREATE TABLE local.$name (_id int, next int, v int)",
			"CREATE TABLE remote.$name (_id int, next int, v int) PARTITION BY HASH (_id)",
			(map { "CREATE FOREIGN TABLE remote.${name}_$_ PARTITION OF remote.$name FOR VALUES WITH (MODULUS 4, REMAINDER $_)"
					  . " SERVER mongodb OPTIONS (database 'db', collection '${name}_$_')" } 0 .. 3),
			map { "INSERT INTO $_.$name SELECT g, g * 3 % 50 + 1, g % 7 FROM generate_series(1, 50) g" } qw(local remote)));
}
foreach my $setting ('on', 'off')
{
	my $settings = "SET enable_partitionwise_join = $setting; SET enable_partitionwise_aggregate = $setting; SET geqo_seed = 0.3";
	same("partitions, partitionwise $setting", "$settings;"
		  . ' SELECT p._id, q.v, t1."Name", t2.v, o.v FROM p JOIN q ON q._id = p._id LEFT JOIN t1 ON t1._id = q.next'
		  . ' JOIN t2 ON t2._id = p.next LEFT JOIN p AS o ON o._id = q._id AND o.v > 2 ORDER BY 1;'
		  . ' SELECT p._id % 5, count(*), sum(q.v), max(t3."Name") FROM p JOIN q ON q._id = p._id JOIN t3 ON t3._id = p._id'
		  . ' WHERE EXISTS (SELECT 1 FROM t4 WHERE t4.next = q._id) GROUP BY 1 ORDER BY 1;'
		  . ' SELECT p._id, count(*) FROM p JOIN q USING (_id) JOIN p AS o USING (_id) GROUP BY p._id ORDER BY 1');
}

# --- twelve tables ------------------------------------------------------------------------
# With PostgreSQL's own settings GEQO begins with these.
same('twelve tables, with the settings that PostgreSQL comes with', 'SET geqo_threshold = 12; SET geqo_effort = 5;'
	  . ' SET from_collapse_limit = 8; SET join_collapse_limit = 8; SELECT ' . join(', ', map { "t$_.v" } 1 .. 12)
	  . ' FROM ' . join(', ', map { "t$_" } 1 .. 12) . ' WHERE ' . join(' AND ', map { 't' . ($_ + 1) . "._id = t$_.next" } 1 .. 11)
	  . ' ORDER BY t1._id');

done_testing();
