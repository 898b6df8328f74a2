# Hash- and range-partitioned foreign tables: rows go to the partition they
# belong to, queries to those that can have rows; joins and aggregates partition
# by partition give what one table gives.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('partitions');

create_server($node, 'mongodb', $mongod);

# finds
#	How many commands that read MongoDB sees of a statement, and its rows.
sub finds
{
	my ($statement) = @_;

	my ($answer, $commands) = $mongod->asked($statement);
	return ($commands, $answer);
}

# partition
#	A table of eight hash partitions, each a collection, and a local table of
#	the same columns.
sub partition
{
	my ($name, $columns, $key) = @_;

	sql("CREATE TABLE $name ($columns) PARTITION BY HASH ($key); CREATE TABLE local_$name ($columns)");
	sql(join(';', map {
				"CREATE FOREIGN TABLE ${name}_$_ PARTITION OF $name FOR VALUES WITH (MODULUS 8, REMAINDER $_)"
				  . " SERVER mongodb OPTIONS (database 'db', collection '${name}_$_', fetch_size '100')"
			} 0 .. 7));
}

# same
#	The statement's answer over the partitions is that over the local tables.
sub same
{
	my ($name, $statement, $settings) = @_;
	(my $local = $statement) =~ s/\b(FROM|JOIN) (orders|items)\b/$1 local_$2/g;

	is(sql(($settings // '') . $statement), sql($local), $name);
}

partition('orders', '_id int, customer int, total int', '_id');
partition('items', '_id objectid, "order" int, amount int', '"order"');

# --- routing ------------------------------------------------------------------
my $orders = 'SELECT g, g % 50, g * 7 % 1000 FROM generate_series(1, 4000) g';
my $items = 'SELECT g % 4000 + 1, g % 10 FROM generate_series(1, 8000) g';
sql("INSERT INTO orders $orders; INSERT INTO local_orders $orders;"
	  . " INSERT INTO items (\"order\", amount) $items; INSERT INTO local_items (\"order\", amount) $items");
is(sql('SELECT count(DISTINCT tableoid), count(*) FROM orders'), '8|4000', 'rows go to all partitions');
is(sql('SELECT count(*) FROM orders WHERE NOT satisfies_hash_partition(\'orders\'::regclass, 8,'
		  . ' substring(tableoid::regclass::text FROM \'.$\')::int, _id)'), '0', 'each to its own');
my $copy = $node->basedir . '/orders.csv';
PostgreSQL::Test::Utils::append_to_file($copy, join('', map { "$_,1,2\n" } 5001 .. 5100));
sql("COPY orders FROM '$copy' (FORMAT csv); COPY local_orders FROM '$copy' (FORMAT csv)");
same('COPY routes as well', 'SELECT count(*), sum(_id), sum(total) FROM orders');
sql('ANALYZE orders; ANALYZE items; ANALYZE local_orders; ANALYZE local_items');

# --- pruning ------------------------------------------------------------------
my ($commands, $answer) = finds('SELECT total FROM orders WHERE _id = 77');
is($answer, '539', 'a row by its key');
is($commands, 1, 'one partition is asked');
($commands, $answer) = finds('SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS SELECT total FROM orders WHERE _id = $1; EXECUTE p (78)');
is("$commands|$answer", '1|546', 'likewise when the key is a parameter');
($commands, $answer) = finds('SELECT sum(total) FROM orders WHERE _id IN (1, 2, 3)');
is($answer, '42', 'several keys');
cmp_ok($commands, '<=', 3, 'at most so many partitions');
($commands, $answer) = finds('SELECT count(*) FROM orders WHERE customer = 7');
is("$commands|$answer", '8|80', 'another condition asks all of them');

# --- writing ------------------------------------------------------------------
foreach my $statement (
	'UPDATE orders SET total = total + 1 WHERE _id = 77',
	'UPDATE orders SET total = 0 WHERE customer = 9',
	'DELETE FROM orders WHERE _id BETWEEN 5001 AND 5050')
{
	(my $local = $statement) =~ s/\borders\b/local_orders/;
	sql("$statement; $local");
	same($statement, 'SELECT count(*), sum(_id), sum(total) FROM orders');
}

# --- all at once --------------------------------------------------------------
my $all = 'SELECT count(*), sum(total) FROM orders';
like(sql("EXPLAIN (COSTS OFF) SELECT * FROM orders WHERE total > 10"), qr/Append(.*Async Foreign Scan){8}/s,
	'eight asynchronous scans of one server');
# behind a proxy that withholds replies until as many finds have come as there are connections
my $proxy = MongoFdwTest::helper('record', port => $mongod->port);
sql("ALTER SERVER mongodb OPTIONS (SET port '$proxy')");
foreach my $way ([ 'on', 1, 'together' ], [ 'off', '', 'one after the other' ])
{
	my ($setting, $together, $how) = @$way;
	my $query = 'SELECT count(*), sum(total) FROM (SELECT total FROM orders WHERE total >= 0 AND total % 1 = 0) o';

	MongoFdwTest::helper('hold', port => $proxy, count => 4, name => 'find');
	is(sql("SET enable_async_append = $setting; $query"), sql($query =~ s/orders/local_orders/r), "partitions read $how");
	is(MongoFdwTest::helper('held_enough', port => $proxy) ? 1 : '', $together, '... is how their commands are sent');
}
sql(q{ALTER SERVER mongodb OPTIONS (SET port '} . $mongod->port . q{')});

# --- joins and aggregates -------------------------------------------------------
my @wise = ('', 'SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on;');
my %shapes = (
	'a join on the key' => 'SELECT count(*), sum(o.total), sum(i.amount) FROM orders o JOIN items i ON o._id = i."order" WHERE o.customer < 25',
	'an outer join' => 'SELECT count(*), count(i.amount) FROM orders o LEFT JOIN items i ON o._id = i."order" AND i.amount = 3',
	'groups by the key' => 'SELECT _id, sum(total) FROM orders GROUP BY _id HAVING sum(total) > 990 ORDER BY 1',
	'groups by something else' => 'SELECT customer, count(*), sum(total), min(total), avg(total) FROM orders GROUP BY customer ORDER BY 1',
	'no groups' => 'SELECT count(*), min(total), max(total), avg(total) FROM orders',
	'an order' => 'SELECT _id FROM orders ORDER BY _id DESC LIMIT 20 OFFSET 5',
	'distinct' => 'SELECT DISTINCT customer FROM orders ORDER BY 1');
foreach my $name (sort keys %shapes)
{
	same($name, $shapes{$name}, $_) foreach @wise;
	same("$name, pushdown off", $shapes{$name}, "$wise[1] SET mongo_fdw.enable_pushdown = off;");
}
like(sql("$wise[1] SET enable_nestloop = off; EXPLAIN (COSTS OFF) $shapes{'a join on the key'}"),
	qr/Append(.*Foreign Scan on items_\d){8}/s, 'the join is made partition by partition');

# --- range partitions -------------------------------------------------------------
sql('CREATE TABLE log (at date, line text) PARTITION BY RANGE (at)');
sql("CREATE FOREIGN TABLE log_$_ PARTITION OF log FOR VALUES FROM ('$_-01-01') TO ('" . ($_ + 1) . "-01-01')"
	  . " SERVER mongodb OPTIONS (database 'db')") foreach 2020 .. 2023;
sql("CREATE TABLE log_default PARTITION OF log DEFAULT");
sql("INSERT INTO log SELECT '2019-12-31'::date + g, 'line ' || g FROM generate_series(0, 1500) g");
is(sql('SELECT tableoid::regclass, count(*), min(at), max(at) FROM log GROUP BY 1 ORDER BY 3'),
	join("\n", 'log_default|40|2019-12-31|2024-02-08', 'log_2020|366|2020-01-01|2020-12-31',
		'log_2021|365|2021-01-01|2021-12-31', 'log_2022|365|2022-01-01|2022-12-31', 'log_2023|365|2023-01-01|2023-12-31'),
	'rows go to the years they belong to, and to a local table');
($commands, $answer) = finds("SELECT count(*) FROM log WHERE at BETWEEN '2021-03-01' AND '2022-02-28'");
is("$commands|$answer", '2|365', 'two years are asked');
($commands, $answer) = finds("SELECT count(*) FROM log WHERE at < '2020-01-01'");
is("$commands|$answer", '0|1', 'and none where none can have rows');
sql("UPDATE log SET line = 'moved' WHERE at = '2021-05-05'");
is(sql("SELECT line FROM log WHERE at = '2021-05-05'"), 'moved', 'UPDATE within a partition');

# --- rows that would leave their partition -------------------------------------------
my $before = sql('SELECT tableoid::regclass, * FROM log ORDER BY at');
foreach (
	[ 'by a constant', "UPDATE log SET at = '2022-05-05' WHERE at = '2021-05-05'" ],
	[ 'by an expression', "UPDATE log SET at = at + 300 WHERE at BETWEEN '2021-03-01' AND '2021-05-05'" ],
	[ 'to where there is no partition but the default', "UPDATE log SET at = '1999-05-05' WHERE at = '2021-05-05'" ],
	[ 'by name', "UPDATE log_2021 SET line = 'x', at = '2022-05-05' WHERE at = '2021-05-05'" ],
	[ 'in a join', "UPDATE log SET at = v.at FROM (VALUES ('2022-01-01'::date)) v (at) WHERE log.at = '2021-05-05'" ],
	[ 'with RETURNING', "UPDATE log_2021 SET at = '2022-05-05' WHERE at = '2021-05-05' RETURNING *" ],
	[ 'to no value', "UPDATE log_2021 SET at = NULL WHERE at = '2021-05-05'" ])
{
	my ($name, $sql) = @$_;
	my ($status, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");

	like($stderr, qr/ERROR:  23514: new row for relation "log_2021" violates partition constraint/,
		"an UPDATE out of the partition is an error: $name");
}
is(sql('SELECT tableoid::regclass, * FROM log ORDER BY at'), $before, 'and changes nothing');
sql("UPDATE log SET at = '2021-05-06', line = 'elsewhere' WHERE at = '2021-05-05'");
is(sql("SELECT count(*), max(line) FROM log WHERE at = '2021-05-06'"), '2|line 492', 'UPDATE of the key within the partition');
sql("UPDATE log SET at = '2023-05-06' WHERE at = '2019-12-31'");
is(sql("SELECT count(*) FROM log_2023 WHERE at = '2023-05-06'"), '2', 'and from a local partition into a foreign one');
like(sql("EXPLAIN UPDATE log SET line = 'x' WHERE at = '2021-05-05'"), qr/Foreign Update on log_2021/,
	'other columns are set by one command');

done_testing();
