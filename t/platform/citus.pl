# Citus: a coordinator, two workers and a replica set.  PostgreSQL itself is the oracle: the schema
# "foreigners" has tables in MongoDB, distributed and reference tables, "locals" has the same as
# ordinary tables.  It needs a PostgreSQL in which Citus is installed, and CITUS set to anything
# (docs/internals/testing.md).

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'CITUS is not set' unless $ENV{CITUS};

# start_node: a PostgreSQL with Citus, which others reach by TCP.
sub start_node
{
	my ($name, $libraries) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf', join("\n", "shared_preload_libraries = '$libraries'", "listen_addresses = '127.0.0.1'",
			"unix_socket_directories = '" . $node->host . "'", "citus.local_hostname = '127.0.0.1'", 'citus.shard_count = 4',
			'citus.node_connection_timeout = 10000', 'max_prepared_transactions = 50', "timezone = 'UTC'") . "\n");
	append_to_file($node->data_dir . '/pg_hba.conf', "host all all 127.0.0.1/32 trust\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION citus');
	return $node;
}

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
# the coordinator has both libraries from its start, a worker loads mongo_fdw when it is needed
my $node = start_node('coordinator', 'citus, mongo_fdw');
my %workers = map { $_ => start_node($_, 'citus') } qw(east west);

note($node->safe_psql('postgres', 'SELECT citus_version()'));
$node->safe_psql('postgres', "SELECT citus_set_coordinator_host('127.0.0.1', " . $node->port . ')');
$node->safe_psql('postgres', "SELECT citus_add_node('127.0.0.1', " . $_->port . ')') foreach values %workers;
$node->safe_psql('postgres', 'CREATE EXTENSION mongo_fdw');
create_server($node, 'mongodb', $mongod, replica_set => 'rs', read_concern => 'majority');
$mongod->command(qq({"createIndexes": "orders", "indexes": [{"key": {"$_": 1}, "name": "$_"}]}), 'db') foreach qw(customer status);
$node->safe_psql('postgres', q{
	CREATE SCHEMA foreigners;
	CREATE SCHEMA locals;
	SET search_path = foreigners, public;
	CREATE FOREIGN TABLE orders (_id int, customer int, status text COLLATE "C", total numeric(10,2), placed date, tags text[] OPTIONS (path 'labels'))
		SERVER mongodb OPTIONS (database 'db', collection 'orders');
	CREATE TABLE customers (id int PRIMARY KEY, name text, country text);
	CREATE TABLE countries (code text PRIMARY KEY, number int, name text);
	CREATE TABLE copies (_id int, customer int, status text, total numeric(10,2), PRIMARY KEY (customer, _id));
	CREATE TABLE notes (_id int PRIMARY KEY, total numeric(10,2));
	SET search_path = locals;
	CREATE TABLE orders (_id int, customer int, status text COLLATE "C", total numeric(10,2), placed date, tags text[]);
	CREATE TABLE customers (id int PRIMARY KEY, name text, country text);
	CREATE TABLE countries (code text PRIMARY KEY, number int, name text);
	CREATE TABLE copies (_id int, customer int, status text, total numeric(10,2), PRIMARY KEY (customer, _id));
	CREATE TABLE notes (_id int PRIMARY KEY, total numeric(10,2));
	SET search_path = foreigners, public;
	CREATE FUNCTION orders_of(id int) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM foreigners.orders WHERE customer = id';
	CREATE SCHEMA tenant;
	SELECT citus_schema_distribute('tenant');
	SELECT create_distributed_table('customers', 'id'), create_distributed_table('copies', 'customer'),
		create_reference_table('countries'), create_reference_table('notes')});
is($node->safe_psql('postgres', q{SELECT string_agg(result, ',') FROM run_command_on_workers('SELECT count(*) FROM pg_foreign_server')}),
	'1,1', 'Citus creates extension and server on the workers');
is($node->safe_psql('postgres', q{SELECT string_agg(result, ',') FROM run_command_on_workers('SELECT count(*) FROM pg_user_mappings')}),
	'0,0', '... but no user mapping');

my $schemas = MongoFdwTest::Schemas->new($node, $mongod);
my ($citus, $plain) = @$schemas{qw(foreigners locals)};

# same: runs statements with the same result in both schemas.
sub same
{
	my ($sql, $name) = @_;
	my @results = map { join("\n", sort split /\n/, $_->ask($sql)) } $citus, $plain;

	is($results[0], $results[1], $name // $sql);
}

# error_of: the error of a statement, with its SQLSTATE.
sub error_of
{
	my ($session, $sql) = @_;
	return $session->ask("\\set VERBOSITY verbose\n$sql;\n\\set VERBOSITY default");
}

# fill: the same rows again in both schemas.
sub fill
{
	$schemas->run(q{DELETE FROM orders; DELETE FROM customers; DELETE FROM countries; DELETE FROM copies; DELETE FROM notes;
		INSERT INTO orders SELECT g, g % 150, CASE g % 4 WHEN 0 THEN 'paid' ELSE 'open' END, g * 1.25, '2024-01-01'::date + g % 400, ARRAY['a', 'b' || g % 4]
			FROM generate_series(1, 3000) g;
		INSERT INTO orders VALUES (3001, NULL, NULL, NULL, NULL, NULL), (3002, 999, 'paid', 'NaN', NULL, '{}');
		INSERT INTO customers SELECT g, 'c' || g, 'k' || g % 4 FROM generate_series(0, 159) g;
		INSERT INTO countries SELECT 'k' || g, g, 'country ' || g FROM generate_series(0, 4) g;
		ANALYZE orders; ANALYZE countries});
	is($_->ask('SELECT count(*) FROM orders, countries'), 5 * 3002, 'the rows are there') foreach $citus, $plain;
}

# each with the most documents that MongoDB may examine
my @reads = (
	# with a distributed table: Citus fetches what its conditions select
	[ 20, 'SELECT c.name, o.total FROM orders o JOIN customers c ON c.id = o.customer WHERE o.customer = 7' ],
	[ 20, 'SELECT c.name, o.total FROM orders o JOIN customers c ON c.id = o.customer WHERE c.id = 7' ],
	[ 751, q{SELECT c.name, sum(o.total), count(*) FROM orders o JOIN customers c ON c.id = o.customer WHERE o.status = 'paid' GROUP BY c.name} ],
	[ 3002, q{SELECT o._id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.customer AND c.country = 'k1'} ],
	[ 3002, 'SELECT c.id, count(o._id) FROM customers c LEFT JOIN orders o ON c.id = o.customer GROUP BY c.id' ],
	[ 3002, 'SELECT o._id, c.id FROM customers c FULL JOIN orders o ON c.id = o.customer' ],
	[ 3002, 'SELECT name FROM customers WHERE id IN (SELECT customer FROM orders WHERE total > 3600)' ],
	[ 3002, 'SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders WHERE customer IS NOT NULL)' ],
	# whose result is estimated as 1,000 rows
	[ 3002, q{SELECT _id FROM orders WHERE customer IN (SELECT id FROM customers WHERE name = 'c3')} ],
	[ 1, 'SELECT name, (SELECT max(_id) FROM orders) FROM customers WHERE id = 3' ],
	[ 100, 'WITH o AS (SELECT customer, max(total) AS most FROM orders WHERE customer < 5 GROUP BY customer) SELECT c.name, o.most FROM customers c JOIN o ON o.customer = c.id' ],
	[ 6, 'SELECT c.name, o.total FROM (SELECT * FROM orders ORDER BY _id DESC LIMIT 5) o LEFT JOIN customers c ON c.id = o.customer' ],
	[ 20, 'SELECT c.name, rank() OVER (PARTITION BY c.country ORDER BY o.total) FROM orders o JOIN customers c ON c.id = o.customer WHERE o.customer = 2' ],
	[ 20, q{SELECT customer FROM orders WHERE customer = 5 UNION ALL SELECT id FROM customers WHERE country = 'k1'} ],
	[ 3002, 'SELECT customer FROM orders INTERSECT SELECT id FROM customers' ],
	[ 40, q{SELECT c.name, o.tags FROM orders o JOIN customers c ON c.id = o.customer WHERE o.customer IN (3, 4) AND 'b3' = ANY (o.tags)} ],
	[ 20, 'SELECT c.name, k.name, o.total FROM orders o JOIN customers c ON c.id = o.customer JOIN countries k ON k.code = c.country WHERE o.customer = 9' ],
	[ 3002, 'SELECT k.name, avg(o.total) FROM orders o JOIN customers c ON c.id = o.customer JOIN countries k ON k.code = c.country GROUP BY k.name' ],
	# with a reference table
	[ 3002, 'SELECT k.name, count(*) FROM orders o JOIN countries k ON k.number = o.customer % 4 GROUP BY k.name' ],
	[ 100, 'SELECT k.name, o._id FROM orders o JOIN countries k ON k.number = o.customer' ],
	[ 100, 'SELECT k.name, (SELECT count(*) FROM orders o WHERE o.customer = k.number) FROM countries k' ],
	[ 100, 'SELECT k.name FROM countries k WHERE NOT EXISTS (SELECT FROM orders o WHERE o.customer = k.number AND o.total > 3700)' ],
	[ 100, 'SELECT k.name, x.sum FROM countries k, LATERAL (SELECT sum(total) FROM orders o WHERE o.customer = k.number) x' ],
	[ 200, 'SELECT k.name, count(*) FROM orders o JOIN orders p ON p._id = o._id + 1 JOIN countries k ON k.number = o.customer GROUP BY k.name' ],
	# without any
	[ 1, 'SELECT * FROM orders WHERE _id = 7' ],
	[ 3002, 'SELECT status, count(*), sum(total), min(placed) FROM orders GROUP BY status' ],
	[ 6, 'SELECT _id, tags FROM orders ORDER BY _id LIMIT 5' ],
	# values that are known later
	[ 140, 'PREPARE p (int) AS SELECT c.name, count(*), sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer WHERE o.customer = $1 GROUP BY c.name; '
		  . 'EXECUTE p (0); EXECUTE p (1); EXECUTE p (2); EXECUTE p (3); EXECUTE p (4); EXECUTE p (5); EXECUTE p (6); DEALLOCATE p' ],
	[ 140, 'PREPARE p (int) AS SELECT k.name, o.total FROM orders o JOIN countries k ON k.number = o.customer % 5 WHERE o.customer = $1; '
		  . 'EXECUTE p (0); EXECUTE p (1); EXECUTE p (2); EXECUTE p (3); EXECUTE p (4); EXECUTE p (5); EXECUTE p (6); DEALLOCATE p' ],
	[ 3002, 'BEGIN; DECLARE c CURSOR FOR SELECT o._id, c.name FROM orders o JOIN customers c ON c.id = o.customer ORDER BY o._id; FETCH 3 FROM c; FETCH 4000 FROM c; COMMIT' ]);

my @writes = (
	'INSERT INTO copies SELECT _id, customer, status, total FROM orders WHERE customer < 10',
	'INSERT INTO copies SELECT _id, customer, status, total + 1 FROM orders WHERE customer < 12 ON CONFLICT (customer, _id) DO UPDATE SET total = excluded.total',
	'INSERT INTO notes SELECT _id, total FROM orders WHERE _id <= 50 RETURNING _id',
	'INSERT INTO notes SELECT _id, -1 FROM orders WHERE _id <= 60 ON CONFLICT DO NOTHING',
	'INSERT INTO orders (_id, customer, total) SELECT _id + 4000, 7, total FROM notes',
	q{UPDATE orders SET status = 'x' WHERE customer IN (SELECT id FROM customers WHERE country = 'k3')},
	'UPDATE orders o SET status = c.name FROM customers c WHERE c.id = o.customer AND c.id < 5',
	'UPDATE orders o SET total = total + 1 FROM countries k WHERE k.number = o.customer',
	'DELETE FROM orders o USING customers c WHERE c.id = o.customer AND o._id > 2900 RETURNING o._id',
	'UPDATE customers c SET name = o.status FROM orders o WHERE o.customer = c.id AND o._id IN (6, 8)',
	'DELETE FROM customers WHERE id IN (SELECT customer FROM orders WHERE _id = 17)',
	'UPDATE countries SET name = name || $$!$$ WHERE number IN (SELECT customer FROM orders WHERE _id IN (1, 2))',
	'UPDATE orders SET total = total + 1 WHERE _id < 20 RETURNING total',
	'BEGIN; INSERT INTO orders (_id, customer) VALUES (5000, 3); INSERT INTO customers VALUES (5000), (5001), (5002), (5003), (5004); '
	  . 'SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer; ROLLBACK',
	'BEGIN; INSERT INTO orders (_id, customer) VALUES (5000, 3); INSERT INTO customers VALUES (5000), (5001), (5002), (5003), (5004); '
	  . 'SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer; COMMIT',
	'BEGIN; SELECT count(*) FROM customers; UPDATE orders SET total = 0 WHERE _id = 5000; UPDATE countries SET name = $$none$$ WHERE number = 1; '
	  . 'SELECT k.name, o.total FROM orders o JOIN countries k ON k.number = o.customer WHERE o._id < 40; COMMIT');

foreach my $kind ('foreign table', 'Citus local table')
{
	fill();
	if ($kind ne 'foreign table')
	{
		$node->safe_psql('postgres', q{SELECT citus_add_local_table_to_metadata('foreigners.orders')});
		is($node->safe_psql('postgres', q{SELECT string_agg(result, ',') FROM run_command_on_workers('SELECT count(*) FROM foreigners.orders')}),
			'3002,3002', 'workers read a Citus local table');
	}
	$schemas->examines($_->[0], $_->[1], "$kind: $_->[1]") foreach @reads;
	foreach my $statement (@writes)
	{
		same($statement, "$kind: $statement");
		same("SELECT * FROM $_", "... then $_") foreach grep { $statement =~ /$_/ } qw(orders customers countries copies notes);
	}

	# what Citus refuses
	my @refused = (
		[ 'SELECT * FROM customers c WHERE EXISTS (SELECT FROM orders o WHERE o.customer = c.id AND o.total > 5)',
			'0A000: direct joins between distributed and local tables are not supported' ],
		[ 'SELECT c.id, (SELECT count(*) FROM orders o WHERE o.customer = c.id) FROM customers c',
			'0A000: direct joins between distributed and local tables are not supported' ],
		[ 'SELECT c.id, x.sum FROM customers c, LATERAL (SELECT sum(total) FROM orders o WHERE o.customer = c.id) x',
			'0A000: direct joins between distributed and local tables are not supported' ],
		[ 'SELECT name, orders_of(id) FROM customers', $kind eq 'foreign table' ? '42P01: ' : 'XX000: cannot execute a distributed query from a query on a shard' ],
		[ 'SELECT o._id FROM orders o JOIN customers c ON c.id = o.customer WHERE o._id < 9 FOR UPDATE', '0A000: could not run distributed query with FOR UPDATE/SHARE commands' ],
		# the workers test a condition once more
		[ q{SELECT c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE mongo_match(o, '{"customer": 4}')}, '0A000: mongo_match() can only be tested by MongoDB' ]);
	if ($kind eq 'foreign table')
	{
		push @refused,
		  [ q{SELECT create_distributed_table('orders', 'customer')}, 'XX000: foreign tables cannot be distributed' ],
		  [ q{SELECT create_reference_table('orders')}, 'XX000: foreign tables cannot be distributed' ],
		  [ 'CREATE FOREIGN TABLE tenant.orders (_id int) SERVER mongodb', 'XX000: cannot create a foreign table in a distributed schema' ],
		  [ 'UPDATE countries k SET name = o.status FROM orders o WHERE o.customer = k.number AND o._id = 2', 'XX000: relation orders is not distributed' ];
	}
	else
	{
		push @refused,
		  # the coordinator copies to its own shard by a second connection, which Citus prepares
		  [ q{COPY orders (_id, customer) FROM PROGRAM 'seq 7001 7009 | sed "s/.*/&,1/"' (FORMAT csv)},
			'0A000: cannot PREPARE a transaction that has operated on MongoDB foreign tables' ],
		  [ q{ALTER FOREIGN TABLE orders ALTER total OPTIONS (ADD bson_type 'decimal')}, '0A000: alter table command is currently unsupported' ],
		  [ q{ALTER FOREIGN TABLE orders ADD more text OPTIONS (path 'm.ore')}, '0A000: alter table command is currently unsupported' ];
	}
	like(error_of($citus, $_->[0]), qr/ERROR:  \Q$_->[1]/, "$kind: refused: $_->[0]") foreach @refused;
	same('SELECT * FROM orders', '... and nothing was written');
	is($citus->ask(q{WITH o AS MATERIALIZED (SELECT customer FROM orders o WHERE mongo_match(o, '{"customer": 4}')) SELECT count(*) FROM o JOIN customers c ON c.id = o.customer}),
		$plain->ask('SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer WHERE o.customer = 4'), "$kind: mongo_match() in a subselect");
}
same('UPDATE countries k SET name = o.status FROM orders o WHERE o.customer = k.number AND o._id = 2', 'a reference table from a Citus local table');
same('SELECT * FROM countries', '... then countries');
same('COPY (SELECT * FROM orders) TO STDOUT', 'COPY TO of a Citus local table');
same('TRUNCATE orders', 'TRUNCATE of a Citus local table');
is($mongod->command('{"count": "orders"}', 'db')->{n}, 0, '... empties the collection');
fill();

# -------------------------------- EXPLAIN -------------------------------------------

my $plan = $citus->ask('EXPLAIN (VERBOSE, COSTS OFF) SELECT c.name, sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer WHERE o.status = $$paid$$ GROUP BY c.name');
like($plan, qr/Distributed Subplan.*Remote Command: \{ "find" : "orders", "filter" : \{ "status" : \{ "\$eq" : "paid" \} \}/s,
	'a join with a distributed table fetches what its conditions select');
$plan = $citus->ask('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k.name FROM orders o JOIN countries k ON k.number = o.customer WHERE o._id = 7');
like($plan, qr/Foreign Scan.*orders.*rows=1/s, 'EXPLAIN ANALYZE');

# ----------------------------- from a worker ----------------------------------------

my $east = MongoFdwTest::Session->new($workers{east});
$east->ask('SET search_path = foreigners, public');
foreach my $statement (
	'SELECT * FROM orders WHERE customer = 3', 'SELECT c.name, sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.name',
	'SELECT k.name, count(*) FROM orders o JOIN countries k ON k.number = o.customer GROUP BY k.name',
	'INSERT INTO orders (_id, customer) VALUES (6001, 1) RETURNING _id', 'UPDATE orders SET total = 1 WHERE _id = 6001', 'DELETE FROM orders WHERE _id = 5 RETURNING _id',
	'BEGIN; INSERT INTO orders (_id) VALUES (6002); INSERT INTO orders (_id) VALUES (6003); SELECT count(*) FROM orders; ROLLBACK',
	'BEGIN; INSERT INTO orders (_id) VALUES (6004); INSERT INTO orders (_id) VALUES (6005); SELECT count(*) FROM orders; COMMIT',
	'BEGIN; SELECT count(*) FROM orders; INSERT INTO customers VALUES (6000), (6001), (6002), (6003); COMMIT',
	'INSERT INTO customers SELECT _id FROM orders WHERE _id > 6003', 'SELECT id FROM customers', 'SELECT * FROM orders')
{
	my @results = map { join("\n", sort split /\n/, $_->ask($statement)) } $east, $plain;
	is($results[0], $results[1], "from a worker: $statement");
}
foreach my $statement (
	'BEGIN; INSERT INTO orders (_id) VALUES (6006); INSERT INTO customers VALUES (6010), (6011), (6012), (6013); COMMIT',
	'INSERT INTO orders (_id) SELECT id + 10000 FROM customers')
{
	like(error_of($east, $statement), qr/ERROR:  0A000: cannot PREPARE a transaction that has operated on MongoDB foreign tables/, "from a worker: refused: $statement");
}
same("SELECT * FROM $_", "... and nothing was written to $_") foreach qw(orders customers);

# a worker may have tables of its own, with a user mapping
$east->ask(q{CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb;
	CREATE FOREIGN TABLE public.own (_id int, customer int) SERVER mongodb OPTIONS (database 'db', collection 'orders')});
is($east->ask('SELECT count(*), sum(o._id) FROM own o JOIN customers c ON c.id = o.customer'),
	$plain->ask('SELECT count(*), sum(o._id) FROM orders o JOIN customers c ON c.id = o.customer'), 'a foreign table of a worker');
$east->close;

# ------------------ a worker that dies before the transaction ends ------------------

$citus->ask('BEGIN; INSERT INTO orders (_id) VALUES (8000); INSERT INTO customers VALUES (8000), (8001), (8002), (8003), (8004)');
$workers{west}->stop('immediate');
like(error_of($citus, 'COMMIT'), qr/ERROR:  (XX000|08006): /, 'COMMIT fails if a worker cannot prepare');
$workers{west}->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM foreigners.customers WHERE id BETWEEN 8000 AND 8004'), 0, '... PostgreSQL has rolled back everywhere');
is($citus->ask('SELECT count(*) FROM orders WHERE _id = 8000'), 1, '... MongoDB had committed before');
$citus->ask('DELETE FROM orders WHERE _id = 8000');

# ... and MongoDB that cannot commit (NoSuchTransaction)
$mongod->fail_command(1, 251, 'commitTransaction');
like(error_of($citus, 'BEGIN; INSERT INTO orders (_id) VALUES (8000); INSERT INTO customers VALUES (8000), (8001), (8002), (8003), (8004); COMMIT'),
	qr/ERROR:  \w{5}: .*MongoDB/s, 'COMMIT fails if MongoDB cannot commit');
same("SELECT * FROM $_", "... then $_ are as before") foreach qw(orders customers);

# -------------------- a table of the option collection's default --------------------

$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE unnamed (_id int, name text OPTIONS (path 'n.ame')) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO unnamed VALUES (1, 'one');
	SELECT citus_add_local_table_to_metadata('unnamed')});
is($node->safe_psql('postgres', 'SELECT count(*) FROM unnamed'), 0, 'without the option collection a Citus local table reads that of its new name');
$node->safe_psql('postgres', q{
	ALTER FOREIGN TABLE unnamed OPTIONS (ADD collection 'unnamed')});
is($node->safe_psql('postgres', 'SELECT * FROM unnamed'), '1|one', '... with it the same as before, by the same paths');
$node->safe_psql('postgres', q{SELECT undistribute_table('unnamed')});
is($node->safe_psql('postgres', 'SELECT * FROM unnamed'), '1|', 'undistribute_table() loses the options of columns');
$node->safe_psql('postgres', q{
	SET citus.use_citus_managed_tables = on;
	CREATE FOREIGN TABLE managed (_id int, name text OPTIONS (path 'n.ame')) SERVER mongodb OPTIONS (database 'db', collection 'unnamed')});
is($node->safe_psql('postgres', q{SELECT citus_table_type, m.* FROM citus_tables, managed m WHERE table_name = 'managed'::regclass}), 'local|1|one',
	'a table that citus.use_citus_managed_tables adds');

# without a MongoDB transaction, what Citus cannot prepare is written all the same
create_server($node, 'writing', $mongod, transactions => 'off');
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE written (_id int) SERVER writing OPTIONS (database 'db', collection 'written');
	SELECT citus_add_local_table_to_metadata('written')});
like(error_of($citus, q{COPY public.written FROM PROGRAM 'seq 9'}), qr/ERROR:  0A000: cannot PREPARE/, 'COPY with transactions off fails');
is($mongod->command('{"count": "written"}', 'db')->{n}, 9, '... and its documents stay');

# ------------------------------ partitions ------------------------------------------

foreach my $schema ('foreigners', 'locals')
{
	my ($foreign, $options) = $schema eq 'foreigners' ? ('FOREIGN', q{SERVER mongodb OPTIONS (database 'db', collection 'events')}) : ('', '');
	$node->safe_psql('postgres', qq{
		SET search_path = $schema, public;
		CREATE TABLE events (_id int, day date, what text) PARTITION BY RANGE (day);
		CREATE TABLE events_new PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
		CREATE $foreign TABLE events_old PARTITION OF events FOR VALUES FROM ('2023-01-01') TO ('2024-01-01') $options});
}
$schemas->run(q{INSERT INTO events SELECT g, '2023-06-01'::date + g, 'e' || g FROM generate_series(1, 400) g});
like(error_of($citus, q{SELECT create_distributed_table('events', '_id')}), qr/XX000: foreign tables cannot be distributed/, 'a table with a partition in MongoDB cannot be distributed');
like(error_of($citus, q{SELECT citus_add_local_table_to_metadata('events_old')}), qr/XX000: cannot add local table events_old to metadata since it is a partition/,
	'a partition is not added by itself');
foreach my $kind ('partitioned table', 'partitioned Citus local table')
{
	$node->safe_psql('postgres', q{SELECT citus_add_local_table_to_metadata('foreigners.events')}) if $kind =~ /Citus/;
	my $id = $kind =~ /Citus/ ? 2000 : 1000;
	foreach my $statement (
		'SELECT * FROM events', q{SELECT * FROM events WHERE day = '2023-07-01'}, q{SELECT count(*), max(what) FROM events WHERE day BETWEEN '2023-12-01' AND '2024-02-01'},
		q{SELECT c.name, e.what FROM events e JOIN customers c ON c.id = e._id WHERE day < '2024-02-01'}, 'SELECT k.name, e.what FROM events e JOIN countries k ON k.number = e._id % 9',
		"INSERT INTO events VALUES ($id, '2023-02-02', 'f'), ($id + 1, '2024-03-03', 'l')", "UPDATE events SET what = 'u' WHERE _id > 390", 'DELETE FROM events WHERE _id IN (3, 300)',
		'INSERT INTO copies (_id, customer, status) SELECT _id, 77 + ' . $id . q{, what FROM events WHERE day > '2023-12-20'}, 'SELECT * FROM copies', 'SELECT * FROM events')
	{
		same($statement, "$kind: $statement");
	}
	$schemas->examines(0, q{SELECT count(*) FROM events WHERE day >= '2024-01-01'}, "$kind: a partition that is pruned");
}
$node->safe_psql('postgres', q{SET search_path = foreigners, public;
	CREATE FOREIGN TABLE events_older PARTITION OF events FOR VALUES FROM ('2022-01-01') TO ('2023-01-01') SERVER mongodb OPTIONS (database 'db', collection 'older');
	CREATE TABLE spread (_id int, day date) PARTITION BY RANGE (day);
	SELECT create_distributed_table('spread', '_id')});
$node->safe_psql('postgres', q{CREATE TABLE locals.events_older PARTITION OF locals.events FOR VALUES FROM ('2022-01-01') TO ('2023-01-01')});
same($_, "a partition that is added later: $_") foreach q{INSERT INTO events VALUES (3000, '2022-02-02', 'older')}, 'SELECT * FROM events';
is($mongod->command('{"count": "older"}', 'db')->{n}, 1, '... is in MongoDB');
like(error_of($citus, q{CREATE FOREIGN TABLE spread_old PARTITION OF spread FOR VALUES FROM ('2023-01-01') TO ('2024-01-01') SERVER mongodb OPTIONS (database 'db')}),
	qr/XX000: foreign tables cannot be distributed/, 'a distributed table cannot have a partition in MongoDB');
like(error_of($citus, q{UPDATE events SET day = '2022-07-08' WHERE _id = 50}), qr/ERROR:  (23514|0A000): /, 'a row cannot move out of a foreign partition');

# ----------------------------- synchronized tables ----------------------------------

$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE stock (number int OPTIONS (path '_id'), item text OPTIONS (path 'i.tem') COLLATE "C", n int, __mismatch jsonb)
		SERVER mongodb OPTIONS (database 'db', collection 'stock');
	CREATE TABLE stock_distributed (number int PRIMARY KEY, item text COLLATE "C", n int);
	CREATE TABLE stock_reference (number int PRIMARY KEY, item text COLLATE "C", n int);
	CREATE TABLE stock_local (number int PRIMARY KEY, item text COLLATE "C", n int);
	CREATE TABLE stock_by_item (number int, item text COLLATE "C", n int, PRIMARY KEY (item, number));
	SELECT create_distributed_table('stock_distributed', 'number');
	SELECT create_reference_table('stock_reference');
	SELECT citus_add_local_table_to_metadata('stock_local');
	SELECT create_distributed_table('stock_by_item', 'item');
	INSERT INTO stock (number, item, n) SELECT g, 'item ' || g, g % 7 FROM generate_series(1, 300) g});

# is_synchronized: tests that a table has the documents that fit.
sub is_synchronized
{
	my ($table, $name) = @_;
	my @rows = map { $node->safe_psql('postgres', "SELECT number, item, n FROM $_ ORDER BY number") } 'stock WHERE __mismatch IS NULL', $table;
	is($rows[1], $rows[0], $name);
}

$node->safe_psql('postgres', q{CREATE EXTENSION mongo_sync; CALL mongo_sync.sync('stock', 'stock_later')});
$node->safe_psql('postgres', q{SELECT create_distributed_table('stock_later', 'number')});
foreach my $kind (qw(distributed reference local later))
{
	$node->safe_psql('postgres', "CALL mongo_sync.sync('stock', 'stock_$kind')");
	is_synchronized("stock_$kind", "mongo_sync.sync() copies to table stock_$kind");
}
$node->safe_psql('postgres', q{
	UPDATE stock SET n = n + 1 WHERE number < 100;
	DELETE FROM stock WHERE number BETWEEN 90 AND 110;
	INSERT INTO stock (number, item, n) SELECT g, 'new', 5 FROM generate_series(1001, 1100) g;
	INSERT INTO stock (number, item, n) VALUES (95, 'again', 1)});
$mongod->command(q({"update": "stock", "updates": [{"q": {"_id": {"$in": [3, 4]}}, "u": {"$set": {"n": "many"}}, "multi": true}]}), 'db');
foreach my $kind (qw(distributed reference local later))
{
	$node->safe_psql('postgres', "CALL mongo_sync.sync('stock', 'stock_$kind')");
	is_synchronized("stock_$kind", "mongo_sync.sync() applies changes to table stock_$kind");
	is($node->safe_psql('postgres', "SELECT string_agg(id::text, ',' ORDER BY id) FROM mongo_sync.errors WHERE local_table = 'stock_$kind'::regclass"),
		'3,4', '... and lists documents that do not fit');
}
is($node->safe_psql('postgres', q{SELECT count(DISTINCT result), count(*) FROM run_command_on_all_nodes('SELECT sum(hashtext(stock_reference::text)) FROM stock_reference')}),
	'1|3', 'all nodes have the same reference table');
my (undef, undef, $error) = $node->psql('postgres', q{\set VERBOSITY verbose
	CALL mongo_sync.sync('stock', 'stock_by_item')});
like($error, qr/ERROR:  55000: .*no unique index/, 'a table that is not distributed by _id cannot be synchronized');
# a Citus local table has lost the paths of its columns
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE stock_managed (_id int, item text OPTIONS (path 'i.tem') COLLATE "C", n int) SERVER mongodb OPTIONS (database 'db', collection 'stock');
	SELECT citus_add_local_table_to_metadata('stock_managed')});
(undef, undef, $error) = $node->psql('postgres', q{\set VERBOSITY verbose
	CALL mongo_sync.sync('stock_managed', 'stock_copy')});
like($error, qr/ERROR:  42809: .*outside of Citus's metadata/s, 'a Citus local table cannot be the source');

# the background worker does the same
$node->safe_psql('postgres', 'UPDATE stock SET n = 100 WHERE number BETWEEN 10 AND 20');
$_->close foreach $citus, $plain;
$node->restart;
ok($node->poll_query_until('postgres', "SELECT count(*) = 11 FROM stock_$_ WHERE n = 100"), "the background worker keeps a $_ table synchronized")
  foreach qw(distributed reference local);

done_testing();
