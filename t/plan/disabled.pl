# pushdown_disable: what it names is not sent, and answers stay the same.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('disabled');
create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 500);
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE others (id int, info text) SERVER mongodb OPTIONS (database 'db', collection 'points');
	ALTER FOREIGN TABLE points ALTER COLUMN id OPTIONS (ADD indexed 'true');
	ALTER FOREIGN TABLE others ALTER COLUMN id OPTIONS (ADD indexed 'true')});

# that MongoDB does all it can
my $settings = q{SET plan_cache_mode = force_generic_plan; SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10;};

# A feature, what stands in a command when it is used, and a query that uses it.
my @cases = (
	[ collation => qr/"collation"/, q{SELECT id FROM points WHERE info = 'x'} ],
	[ count => qr/"count" :/, 'SELECT count(*) FROM points WHERE id < 10' ],
	[ disk_use => qr/"allowDiskUse"/, 'SELECT id FROM points WHERE id < 9 ORDER BY id NULLS FIRST LIMIT 3' ],
	[ disk_use => qr/"allowDiskUse"/, 'SELECT id % 7, count(*) FROM points GROUP BY 1 ORDER BY 1' ],
	[ expr => qr/"\$expr"/, 'SELECT id FROM points WHERE id + 1 = 7' ],
	[ group => qr/"\$group"/, 'SELECT id % 7, count(*) FROM points GROUP BY 1 ORDER BY 1' ],
	[ let => qr/"let"/, 'EXECUTE p (7)', 'PREPARE p AS SELECT id FROM points WHERE id + 1 = $1;' ],
	[ lookup => qr/"\$lookup"/, 'SELECT p.id, o.id FROM points p JOIN others o ON o.id = p.id WHERE p.id < 5 ORDER BY 1',
		'SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_mergejoin = off;' ],
	[ sort => qr/"sort"/, 'SELECT id FROM points WHERE id < 9 ORDER BY id NULLS FIRST LIMIT 3' ]);

sub answer
{
	my ($how, $sql, $before) = @_;
	return $node->safe_psql('postgres', $settings . ($before // '') . "$how $sql");
}

foreach my $case (@cases)
{
	my ($feature, $sign, $sql, $before) = @$case;
	my $explain = 'EXPLAIN (VERBOSE, COSTS OFF)';
	my $rows = answer('', $sql, $before);

	like(answer($explain, $sql, $before), $sign, "$feature is used: $sql");
	$node->safe_psql('postgres', "ALTER SERVER mongodb OPTIONS (ADD pushdown_disable '$feature')");
	unlike(answer($explain, $sql, $before), $sign, "$feature is disabled by the server");
	is(answer('', $sql, $before), $rows, 'with the same answer');
	$node->safe_psql('postgres', q{ALTER FOREIGN TABLE points OPTIONS (ADD pushdown_disable '');
		ALTER FOREIGN TABLE others OPTIONS (ADD pushdown_disable '')});
	like(answer($explain, $sql, $before), $sign, 'but not where a table says otherwise');
	$node->safe_psql('postgres', q{ALTER FOREIGN TABLE points OPTIONS (DROP pushdown_disable);
		ALTER FOREIGN TABLE others OPTIONS (DROP pushdown_disable); ALTER SERVER mongodb OPTIONS (DROP pushdown_disable)});
}

# writes: one command where it needs no expression, else row by row
my $before = $node->safe_psql('postgres', 'SELECT count(*), sum(id) FROM points');
foreach my $statement ('DELETE FROM points WHERE id > 498', 'UPDATE points SET id = id + 1 WHERE info = \'info 7\'', 'UPDATE points SET info = \'x\' WHERE id = 9')
{
	$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD pushdown_disable 'expr')});
	my $plan = answer('EXPLAIN (VERBOSE, COSTS OFF)', $statement);
	unlike($plan, qr/"\$(expr|add)"/, "no expression: $statement");
	like($plan, $statement =~ /= 9/ ? qr/Foreign Update/ : qr/(Update|Delete) on public.points\n(?!.*Foreign (Update|Delete))/s, 'by one command or row by row');
	answer('', $statement);
	$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (DROP pushdown_disable)});
}
is($node->safe_psql('postgres', 'SELECT count(*), sum(id) FROM points'), '498|' . (500 * 501 / 2 - 999 + 1), "what they do, from $before");

done_testing();
