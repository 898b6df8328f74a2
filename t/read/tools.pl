# What Hibernate, SQLAlchemy, Django, Prisma, Superset, dbt, Grafana, Metabase, Tableau and Power BI
# send (docs/tools.md): the answers are a local table's, and MongoDB examines few documents.
#
# The statements have the form that the tool gives them, with fewer columns, and parameters of
# the types that its driver declares.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('tools', 'max_parallel_workers_per_gather = 0', 'jit = off', 'shared_preload_libraries = mongo_fdw');
my ($orders, $customers) = (10000, 2000);    # the documents in each collection
my $all = $orders + $customers;
my %columns = (
	orders => '_id objectid NOT NULL, customer objectid, placed timestamptz, status text, total numeric(10,2), quantity int, lines jsonb',
	customers => '_id objectid NOT NULL, name text, email text, country text, active bool, since timestamptz');

# not under a C collation, as tools find databases
$node->safe_psql('postgres', 'CREATE DATABASE tools TEMPLATE template0 LOCALE "C.UTF-8"');
$node->safe_psql('tools', join(";\n",
	'CREATE EXTENSION mongo_fdw',
	"CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '" . $mongod->port . "',"
	  . " round_trip_time '0', bandwidth '1e9')",
	'CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb', 'CREATE SCHEMA foreigners', 'CREATE SCHEMA locals',
	map { ("CREATE TABLE locals.$_ ($columns{$_}, PRIMARY KEY (_id))",
		"CREATE FOREIGN TABLE foreigners.$_ ($columns{$_}) SERVER mongodb OPTIONS (database 'tools', collection '$_')") } sort keys %columns));
$node->safe_psql('tools', qq{
	INSERT INTO locals.customers SELECT ('cc' || lpad(to_hex(g), 22, '0'))::objectid, (ARRAY['Bob ', 'bob ', 'Ada ', 'Kim ', 'Zo' || chr(235) || ' '])[1 + g % 5] || g,
		CASE WHEN g % 20 > 0 THEN 'user' || g || '\@example.com' END, (ARRAY['PT', 'NO', 'JP', 'CA', 'KE', 'DE'])[1 + g % 6], g % 3 > 0,
		timestamptz '2020-01-01' + g * interval '11 hours' FROM generate_series(1, $customers) g;
	INSERT INTO locals.orders SELECT lpad(to_hex(g), 24, '0')::objectid,
		CASE WHEN g % 100 > 0 THEN ('cc' || lpad(to_hex(1 + g * 7 % $customers), 22, '0'))::objectid END, timestamptz '2023-01-01' + g * interval '97 minutes',
		(ARRAY['delivered', 'delivered', 'shipped', 'paid', 'cancelled'])[1 + g % 5], CASE WHEN g % 50 > 0 THEN g % 3000 / 4.0 END, g % 7,
		jsonb_build_array(jsonb_build_object('sku', 's' || g % 500, 'quantity', g % 4), jsonb_build_object('sku', 't' || g % 300, 'quantity', 1))
		FROM generate_series(1, $orders) g;
	INSERT INTO foreigners.customers SELECT * FROM locals.customers;
	INSERT INTO foreigners.orders SELECT * FROM locals.orders});
foreach my $index ([qw(customers name)], [qw(customers email)], [qw(customers country)], [qw(customers since)], [qw(orders customer)],
	[qw(orders status)], [qw(orders total)], [qw(orders placed _id)], [qw(orders lines.sku)])
{
	my ($collection, @keys) = @$index;
	my $fields = join(', ', map { qq("$_": 1) } @keys);
	$mongod->command(qq({"createIndexes": "$collection", "indexes": [{"key": {$fields}, "name": "by_$keys[0]"}]}), 'tools');
}
$node->safe_psql('tools', "ANALYZE $_.orders; ANALYZE $_.customers") foreach 'foreigners', 'locals';

my $schemas = MongoFdwTest::Schemas->new($node, $mongod, 'tools');

# sends
#	Examines a statement with parameters, each given as "type value".
sub sends
{
	my ($most, $sql, @parameters) = @_;
	my @types = map { /^(\S+)/ } @parameters;
	my @values = map { /^\S+ (.*)/ } @parameters;

	if (@parameters)
	{
		local $" = ', ';
		return $schemas->examines($most, "PREPARE sent (@types) AS $sql; EXECUTE sent (@values); DEALLOCATE sent", "$sql, with @parameters");
	}
	return $schemas->examines($most, $sql);
}

# left
#	Compares what statements have left, with all that belongs to it.
sub left { sends($all, "SELECT * FROM $_ ORDER BY _id") foreach 'orders', 'customers' }

my ($id, $next, $other) = map { "'00000000000000000000$_'" } '004d', '1532', 'ffff';
my $customer = "'cc0000000000000000000008'";
my ($monday, $wednesday) = ("'2024-01-01 00:00:00+00'", "'2024-01-03 00:00:00+00'");

note('SQLAlchemy 2.1, with psycopg 3 or asyncpg');
sends(1, 'SELECT orders._id, orders.total FROM orders WHERE orders._id = $1', "unknown $id");
sends(600, 'SELECT orders._id FROM orders WHERE orders.status = $1::VARCHAR AND orders.total > $2::INTEGER', "unknown 'paid'", 'smallint 700');
sends(60, 'SELECT orders._id FROM orders ORDER BY orders.placed DESC LIMIT $1::INTEGER OFFSET $2::INTEGER', 'smallint 20', 'smallint 40');
sends(21, 'SELECT orders._id FROM orders WHERE (orders.placed, orders._id) < ($1::TIMESTAMP WITH TIME ZONE, $2) '
	. 'ORDER BY orders.placed DESC, orders._id DESC LIMIT $3::INTEGER', "timestamptz $monday", "unknown $next", 'smallint 20');
sends(0, 'SELECT count(*) AS count_1 FROM (SELECT orders._id AS orders__id, orders.customer AS orders_customer FROM orders '
	. 'WHERE orders.status = $1::VARCHAR) AS anon_1', "unknown 'paid'");
sends(10, 'SELECT orders._id, customers_1.name FROM orders LEFT OUTER JOIN customers AS customers_1 ON customers_1._id = orders.customer '
	. 'WHERE orders.total = $1::INTEGER ORDER BY orders._id LIMIT $2::INTEGER', 'smallint 105', 'smallint 10');
sends(400, 'SELECT anon_1._id, orders_1._id AS _id_1 FROM (SELECT customers._id AS _id, customers.name AS name FROM customers WHERE customers.country = $1::VARCHAR '
	. 'ORDER BY customers.name LIMIT $2::INTEGER) AS anon_1 LEFT OUTER JOIN orders AS orders_1 ON anon_1._id = orders_1.customer', "unknown 'NO'", 'smallint 5');
sends(10, 'SELECT orders.customer, orders._id FROM orders WHERE orders.customer IN ($1, $2)', "unknown $customer", "unknown 'cc0000000000000000000064'");
sends(10, 'SELECT orders._id AS orders__id, anon_1.customers__id AS anon_1_customers__id FROM (SELECT customers._id AS customers__id FROM customers '
	. 'WHERE customers.email = $1::VARCHAR) AS anon_1 JOIN orders ON anon_1.customers__id = orders.customer', q{unknown 'user17@example.com'});
sends(10, q{SELECT customers.name FROM customers WHERE (customers.name ILIKE '%' || $1::VARCHAR || '%' ESCAPE '/')}, "unknown 'ob 42'");
sends(10, 'SELECT customers.name FROM customers WHERE lower(customers.email) = $1::VARCHAR', q{unknown 'user17@example.com'});
sends(10, 'SELECT count(*) AS count_1 FROM customers WHERE EXISTS (SELECT 1 FROM orders WHERE customers._id = orders.customer AND orders.total = $1::INTEGER)', 'smallint 105');
sends($all, 'SELECT count(*) AS count_1 FROM customers WHERE NOT (EXISTS (SELECT 1 FROM orders WHERE customers._id = orders.customer))');
sends(0, 'SELECT DISTINCT orders.status FROM orders ORDER BY orders.status');
sends($orders, 'SELECT date_trunc($1::VARCHAR, orders.placed) AS m, count(*) AS count_1, sum(orders.total) AS sum_1 FROM orders GROUP BY m ORDER BY m', "unknown 'month'");
sends(20, 'SELECT count(*) AS count_1 FROM orders WHERE orders.lines @> $1::JSONB', q(jsonb '[{"sku": "s77"}]'));
sends(400, 'SELECT customers.name, (SELECT count(*) AS count_1 FROM orders WHERE orders.customer = customers._id) AS anon_1 FROM customers '
	. 'WHERE customers.country = $1::VARCHAR ORDER BY customers.since LIMIT $2::INTEGER', "unknown 'PT'", 'smallint 20');
sends(2000, q{BEGIN; DECLARE "c_1" CURSOR WITHOUT HOLD FOR SELECT orders._id FROM orders WHERE orders.status = 'paid'; }
	. q{FETCH FORWARD 1 FROM "c_1"; FETCH FORWARD 5000 FROM "c_1"; CLOSE "c_1"; ROLLBACK});
sends(0, 'INSERT INTO customers (_id, name, active) VALUES ($1, $2::VARCHAR, $3)', "unknown $other", "unknown 'New'", 'bool true');
sends(1, 'UPDATE customers SET name=$1::VARCHAR WHERE customers._id = $2 RETURNING customers._id', "unknown 'Newer'", "unknown $other");
sends(1, 'SELECT customers._id, customers.name FROM customers WHERE customers._id = $1 FOR UPDATE', "unknown $other");
sends(0, 'INSERT INTO customers (_id, name) VALUES ($1, $2::VARCHAR) ON CONFLICT DO NOTHING', "unknown $other", "unknown 'Up'");
sends(1, 'DELETE FROM customers WHERE customers._id = $1', "unknown $other");
left();

note('Hibernate 7.4, with PostgreSQL JDBC 42.7, which declares strings as varchar');
sends(1, 'select o1_0._id,o1_0.status from orders o1_0 where o1_0._id=$1', "varchar $id");
sends(600, 'select o1_0._id from orders o1_0 where o1_0.status=$1 and o1_0.total>$2', "varchar 'paid'", 'numeric 700');
sends(60, 'select o1_0._id from orders o1_0 order by o1_0.placed desc offset $1 rows fetch first $2 rows only', 'int 40', 'int 20');
sends(21, 'select o1_0._id from orders o1_0 where (o1_0.placed,o1_0._id)<($1,$2) order by o1_0.placed desc,o1_0._id desc fetch first $3 rows only',
	"unknown $monday", "varchar $next", 'int 20');
sends(30, 'select o1_0._id,o1_0.placed from orders o1_0 where o1_0.placed<$1 or o1_0.placed=$2 and o1_0._id<$3 order by o1_0.placed desc,o1_0._id desc fetch first $4 rows only',
	"unknown $monday", "unknown $monday", "varchar $next", 'int 20');
sends(60, q{select o1_0._id,o1_0.placed from orders o1_0 where o1_0.status='paid' and (o1_0.placed<$1 or o1_0._id<$2 and o1_0.placed=$3) order by 2 desc,1 desc fetch first $4 rows only},
	"unknown $monday", "varchar $next", "unknown $monday", 'int 11');
sends(0, 'select count(*) from orders o1_0 where o1_0.status in ($1,$2)', "varchar 'paid'", "varchar 'cancelled'");
sends(10, 'select o1_0._id,c1_0.name from orders o1_0 join customers c1_0 on c1_0._id=o1_0.customer where c1_0.email=$1', q{varchar 'user17@example.com'});
sends(130, 'select o1_0._id,c1_0.name from orders o1_0 left join customers c1_0 on c1_0._id=o1_0.customer order by o1_0.placed desc fetch first $1 rows only', 'int 20');
sends(10, 'select o1_0.customer,o1_0._id from orders o1_0 where o1_0.customer = any ($1)', "varchar[] '{cc0000000000000000000008,cc0000000000000000000064,x}'");
sends(10, 'select o1_0._id from orders o1_0 where o1_0.customer in (select c3_0._id from customers c3_0 where c3_0.email=$1)', q{varchar 'user17@example.com'});
sends(10, q{select c1_0._id from customers c1_0 where c1_0.name like $1 escape '\\'}, "varchar 'Bob 42%'");
sends(10, q{select c1_0._id from customers c1_0 where lower(c1_0.name) like ('%'||lower($1)||'%') escape ''}, "varchar 'ob 42'");
sends(10, 'select c1_0._id from customers c1_0 where upper(c1_0.email)=upper($1)', q{varchar 'User17@example.com'});
sends(0, 'select count(*) from orders o1_0 where ($1 is null or o1_0.status=$2) and ($3 is null or o1_0.total>$4)', "varchar 'paid'", "varchar 'paid'", 'numeric NULL', 'numeric NULL');
sends($orders, 'select extract(year from o1_0.placed),extract(month from o1_0.placed),count(*),sum(o1_0.total) from orders o1_0 '
	. 'group by extract(year from o1_0.placed),extract(month from o1_0.placed) order by 1,2');
sends(0, 'insert into orders (customer,lines,placed,quantity,status,total,_id) values ($1,$2,$3,$4,$5,$6,$7)',
	"varchar $customer", "jsonb '[]'", "unknown $monday", 'int NULL', "varchar 'bulk'", 'numeric 1.5', "varchar $other");
sends(1, 'update orders set customer=$1,placed=$2,quantity=$3,status=$4 where _id=$5', "varchar 'cc0000000000000000000009'", "unknown $wednesday", 'int 9', "varchar 'bulk'", "varchar $other");
sends(1, 'select o1_0._id,o1_0.customer from orders o1_0 where o1_0._id=$1 for no key update of o1_0', "varchar $other");
sends(2, q{update orders o1_0 set quantity=(coalesce(o1_0.quantity,0)+1) where o1_0.status='bulk'});
sends(1, 'delete from orders where _id=$1', "varchar $other");
left();

note('Django 6.1, with psycopg 3, whose parameters the client puts into the statement');
sends(1, qq{SELECT "orders"."_id", "orders"."status" FROM "orders" WHERE "orders"."_id" = $id LIMIT 21});
sends(20, qq{SELECT "orders"."_id" FROM "orders" WHERE ("orders"."placed" < ${monday}::timestamptz OR ("orders"."_id" < $next AND "orders"."placed" = ${monday}::timestamptz)) }
	. 'ORDER BY "orders"."placed" DESC, "orders"."_id" DESC LIMIT 20');
sends(0, q{SELECT COUNT(*) AS "__count" FROM "orders" WHERE "orders"."status" = 'paid'});
sends(1, q{SELECT 1 AS "a" FROM "orders" WHERE "orders"."status" = 'paid' LIMIT 1});
sends(10, q{SELECT "orders"."_id", "customers"."name" FROM "orders" INNER JOIN "customers" ON ("orders"."customer" = "customers"."_id") WHERE "customers"."email" = 'user17@example.com'});
sends(10, qq{SELECT "orders"."_id" FROM "orders" WHERE "orders"."customer" IN ($customer, 'cc0000000000000000000064')});
sends(10, q{SELECT "customers"."_id" FROM "customers" WHERE UPPER("customers"."email"::text) = UPPER('USER17@example.com')});
sends(10, q{SELECT "customers"."_id" FROM "customers" WHERE UPPER("customers"."name"::text) LIKE UPPER('%ob 42%')});
sends(10, q{SELECT "customers"."_id" FROM "customers" WHERE "customers"."name"::text LIKE 'Bob 42%'});
sends(10, q{SELECT "customers"."_id" FROM "customers" WHERE "customers"."name"::text ~ E'^Bob 42\\\\d$'});
sends($customers, q{SELECT "customers"."_id" FROM "customers" WHERE "customers"."name"::text ~* '^bob 42'});
sends($orders, q{SELECT DATE_TRUNC('month', "orders"."placed" AT TIME ZONE 'America/Chicago') AS "m", COUNT("orders"."_id") AS "n" FROM "orders" GROUP BY 1 ORDER BY 1 ASC});
sends(0, q{SELECT COUNT(*) AS "__count" FROM "orders" WHERE "orders"."placed" BETWEEN '2024-01-01 00:00:00-06:00'::timestamptz AND '2024-12-31 23:59:59.999999-06:00'::timestamptz});
sends(0, q{SELECT COUNT(*) AS "__count" FROM "orders" WHERE ("orders"."placed" AT TIME ZONE 'America/Chicago')::date = '2024-01-01'::date});
sends(10, q{SELECT "customers"."_id", (SELECT U0."_id" AS "pk" FROM "orders" U0 WHERE U0."customer" = ("customers"."_id") ORDER BY U0."placed" DESC LIMIT 1) AS "last" }
	. q{FROM "customers" WHERE "customers"."email" = 'user17@example.com'});
sends(10, q{SELECT COUNT(*) AS "__count" FROM "customers" WHERE EXISTS(SELECT 1 AS "a" FROM "orders" U0 WHERE (U0."customer" = ("customers"."_id") AND U0."total" = 105) LIMIT 1)});
sends(10, q{SELECT COUNT(*) AS "__count" FROM "orders" WHERE COALESCE("orders"."total", 0) = 105});
sends(2000, q{DECLARE "_django_curs_1" NO SCROLL CURSOR WITH HOLD FOR SELECT "orders"."_id" FROM "orders" WHERE "orders"."status" = 'paid'; FETCH FORWARD 5000 FROM "_django_curs_1"; CLOSE "_django_curs_1"});
sends(0, q{INSERT INTO "orders" ("_id", "customer", "status", "total") SELECT * FROM UNNEST(('{fffffffffffffffffffffff0,fffffffffffffffffffffff1}')::text[], }
	. q{('{NULL,cc0000000000000000000008}')::text[], ('{bulk,bulk}')::text[], ('{1.5,NULL}')::numeric[])});
sends(2, q{UPDATE "orders" SET "quantity" = (CASE WHEN ("orders"."_id" = 'fffffffffffffffffffffff0') THEN 0 WHEN ("orders"."_id" = 'fffffffffffffffffffffff1') THEN 1 ELSE NULL END)::integer }
	. q{WHERE "orders"."_id" IN ('fffffffffffffffffffffff0', 'fffffffffffffffffffffff1')});
left();
sends(2, q{DELETE FROM "orders" WHERE "orders"."status" IN ('bulk', 'changed')});
left();

note('Prisma 7.10, with its adapter for the driver pg, which declares no types');
sends(1, 'SELECT "t0"."_id" AS "id", "t0"."total" FROM "orders" AS "t0" WHERE ("t0"."_id" = $1 AND 1=1) LIMIT $2', "unknown $id", 'unknown 1');
sends(30, 'SELECT "t0"."_id" AS "id" FROM "orders" AS "t0" WHERE ("t0"."placed" < $1 OR ("t0"."placed" = $2 AND "t0"."_id" < $3)) ORDER BY "t0"."placed" DESC, "t0"."_id" DESC LIMIT $4',
	"unknown '2024-01-01 00:00:00'", "unknown '2024-01-01 00:00:00'", "unknown $next", 'unknown 20');
sends(23, 'SELECT "orders"."_id" FROM "orders" WHERE "orders"."_id" >= (SELECT "orders"."_id" FROM "orders" WHERE ("orders"."_id") = ($1)) ORDER BY "orders"."_id" ASC LIMIT $2 OFFSET $3',
	"unknown $next", 'unknown 20', 'unknown 1');
sends(0, 'SELECT COUNT(*) AS "_count$_all" FROM (SELECT "orders"."_id" FROM "orders" WHERE "orders"."status" = $1 OFFSET $2) AS "sub"', "unknown 'paid'", 'unknown 0');
sends(0, 'SELECT COUNT(*) AS "_count$_all" FROM (SELECT "orders"."_id" FROM "orders" WHERE ("orders"."placed" >= $1 AND "orders"."placed" < $2) OFFSET $3) AS "sub"',
	"unknown $monday", "unknown $wednesday", 'unknown 0');
sends(2000, 'SELECT COUNT(*) AS "_count$_all" FROM (SELECT "orders"."_id" FROM "orders" WHERE "orders"."status" = $1 OFFSET $2) AS "sub"', "unknown 'paid'", 'unknown 10');
sends(2000, 'SELECT SUM("total") AS "_sum$total", MAX("placed") AS "_max$placed", COUNT(*) AS "_count$_all" FROM (SELECT "orders"."total", "orders"."placed", "orders"."_id" FROM "orders" '
	. 'WHERE "orders"."status" = $1 OFFSET $2) AS "sub"', "unknown 'paid'", 'unknown 0');
sends(10, 'SELECT "t0"."_id" AS "id", "Order_customer"."__prisma_data__" AS "customer" FROM "orders" AS "t0" LEFT JOIN LATERAL (SELECT JSONB_BUILD_OBJECT(\'id\', "t1"."_id", \'name\', "t1"."name") '
	. 'AS "__prisma_data__" FROM "customers" AS "t1" WHERE "t0"."customer" = "t1"."_id" LIMIT $1) AS "Order_customer" ON true WHERE "t0"."total" = $2', 'unknown 1', 'unknown 105');
sends(10, 'SELECT COUNT(*) AS "_count$_all" FROM (SELECT "customers"."_id" FROM "customers" WHERE EXISTS(SELECT "t0"."customer" FROM "orders" AS "t0" WHERE ("t0"."total" = $1 '
	. 'AND ("customers"."_id") = ("t0"."customer") AND "t0"."customer" IS NOT NULL)) OFFSET $2) AS "sub"', 'unknown 105', 'unknown 0');
sends(10, q{SELECT "t0"."_id" AS "id" FROM "customers" AS "t0" WHERE "t0"."name" ILIKE ('%' || $1 || '%')}, "unknown 'ob 42'");
sends(10, q{SELECT "t0"."_id" AS "id" FROM "customers" AS "t0" WHERE "t0"."name"::text LIKE ($1 || '%')}, "unknown 'Bob 42'");
sends(10, 'SELECT "t0"."_id" AS "id" FROM "customers" AS "t0" WHERE "t0"."email" ILIKE $1', q{unknown 'USER17@example.com'});
sends(20, 'SELECT COUNT(*) AS "_count$_all" FROM (SELECT "orders"."_id" FROM "orders" WHERE ("orders"."lines" @> $1 AND JSONB_TYPEOF("orders"."lines") = $2) OFFSET $3) AS "sub"',
	q(unknown '[{"sku": "s77"}]'), "unknown 'array'", 'unknown 0');
sends(0, 'INSERT INTO "orders" ("_id","customer","status") VALUES ($1,$2,$3), ($4,$5,$6) RETURNING "orders"."_id", "orders"."status"',
	"unknown 'fffffffffffffffffffffff0'", "unknown $customer", "unknown 'bulk'", "unknown 'fffffffffffffffffffffff1'", 'unknown NULL', "unknown 'bulk'");
sends(1, 'UPDATE "orders" SET "quantity" = ("orders"."quantity" + $1) WHERE ("orders"."_id" = $2 AND 1=1) RETURNING "orders"."_id", "orders"."quantity"', 'unknown 1', "unknown $id");
sends(1, 'UPDATE "orders" SET "quantity" = $1 WHERE ("orders"."_id" = $2 AND 1=1) RETURNING "orders"."_id", "orders"."quantity"', 'unknown 0', "unknown $id");
sends(2, 'DELETE FROM "orders" WHERE "orders"."status" IN ($1,$2)', "unknown 'bulk'", "unknown 'bulk2'");
left();

note('Superset 6.1, with psycopg2');
sends($orders, q{SELECT DATE_TRUNC('MONTH', placed) AS placed, SUM(total) AS "SUM(total)", COUNT(*) AS count FROM orders WHERE placed >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') }
	. q{AND placed < TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('MONTH', placed) ORDER BY "SUM(total)" DESC LIMIT 1000});
sends(1000, q{SELECT DATE_TRUNC('MONTH', placed) AS placed, status AS status, SUM(total) AS "SUM(total)" FROM orders JOIN (SELECT status AS status__, SUM(total) AS mme_inner__ FROM orders }
	. q{WHERE placed >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND placed < TO_TIMESTAMP('2024-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') }
	. q{GROUP BY status ORDER BY SUM(total) DESC LIMIT 3) AS series_limit ON status = status__ }
	. q{WHERE placed >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND placed < TO_TIMESTAMP('2024-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') }
	. q{GROUP BY DATE_TRUNC('MONTH', placed), status LIMIT 1000});
sends(600, q{SELECT status AS status, COUNT(*) AS count FROM orders WHERE ( total > 700 ) GROUP BY status HAVING ( COUNT(*) > 100 ) LIMIT 10});
sends(600, q{SELECT _id AS _id, total AS total FROM orders WHERE status IN ('paid') AND total > 700 ORDER BY placed DESC LIMIT 100});
sends(10, q{SELECT name AS name FROM customers WHERE name ILIKE '%ob 42%' LIMIT 100});
sends(50, q{SELECT COUNT(*) AS rowcount FROM (SELECT _id AS _id, status AS status FROM orders WHERE status = 'paid' LIMIT 50) AS rowcount_qry});
sends(0, 'SELECT DISTINCT status AS column_values FROM orders LIMIT 1000');
sends(200, q{SELECT country AS country, SUM(total) AS "SUM(total)" FROM (SELECT o.*, c.country FROM orders AS o JOIN customers AS c ON c._id = o.customer) AS virtual_table WHERE status = 'paid' }
	. q{AND placed >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND placed < TO_TIMESTAMP('2024-01-10 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY country LIMIT 100});

note('dbt-core 1.11, with psycopg2');
$schemas->run('CREATE TEMP VIEW "stg_orders" AS (select _id::text as order_id, customer::text as customer_id, placed, status, total from orders)');
sends($orders, 'create temp table "orders_copy" as (select * from "stg_orders"); select count(*), max(placed) from orders_copy');
sends(0, 'create temp table "orders_copy__dbt_tmp" as (select * from "stg_orders" where placed > (select max(placed) from "orders_copy")); select count(*) from orders_copy__dbt_tmp');
sends(2400, q{with orders as (select * from "stg_orders"), customers as (select * from customers), final as (select c.name, o.order_id, o.total from orders o }
	. q{join customers c on c._id = o.customer_id where o.status = 'paid' and c.country = 'PT') select * from final});
sends(0, q{select count(*) as failures, count(*) != 0 as should_warn from (with all_values as (select status as value_field, count(*) as n_records from orders group by status) }
	. q{select * from all_values where value_field not in ('delivered','shipped','paid','cancelled')) dbt_internal_test});
sends(0, 'select count(*) as failures from (select _id from orders where _id is null) dbt_internal_test');
# PostgreSQL 17 leaves out IS NOT NULL of a NOT NULL column, for which MongoDB takes the index
sends($node->pg_version < 17 ? 0 : $orders, 'select count(*) as failures from (select _id as unique_field, count(*) as n_records from orders where _id is not null group by _id having count(*) > 1) dbt_internal_test');
sends($all, 'select count(*) as failures from (with child as (select customer as from_field from orders where customer is not null), parent as (select _id as to_field from customers) '
	. 'select from_field from child left join parent on child.from_field = parent.to_field where parent.to_field is null) dbt_internal_test');
sends(0, 'select max(placed) as max_loaded_at from orders');

note('Grafana, by its macros: $__timeGroup, and $__timeFilter with an index');
sends(17, q{SELECT floor(extract(epoch from placed)/3600)*3600 AS "time", count(*) AS "orders", sum(total) AS "total" FROM orders }
	. q{WHERE placed BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-02T00:00:00Z' GROUP BY 1 ORDER BY 1});

note('Metabase 0.62, by its source');
sends(0, 'SELECT TRUE AS "_" FROM "orders" WHERE 1 <> 1 LIMIT 0');
sends($customers, 'SELECT SUBSTRING("customers"."name", 1, 1234) AS "substring1" FROM "customers" LIMIT 10000');
sends(0, 'SELECT "orders"."status" AS "status" FROM "orders" GROUP BY "orders"."status" ORDER BY "orders"."status" ASC LIMIT 1000');
sends(1400, q{SELECT DATE_TRUNC('month', "orders"."placed") AS "placed", SUM("orders"."total") AS "sum" FROM "orders" WHERE ("orders"."placed" >= DATE_TRUNC('month', (timestamptz '2024-08-10' + (INTERVAL '-3 month')))) }
	. q{AND ("orders"."placed" < DATE_TRUNC('month', timestamptz '2024-08-10')) GROUP BY DATE_TRUNC('month', "orders"."placed") ORDER BY DATE_TRUNC('month', "orders"."placed") ASC});
sends(0, q{SELECT CAST("orders"."placed" AS date) AS "placed", COUNT(*) AS "count" FROM "orders" WHERE ("orders"."placed" >= timestamptz '2024-01-01 00:00:00.000Z') }
	. q{AND ("orders"."placed" < timestamptz '2024-02-01 00:00:00.000Z') GROUP BY CAST("orders"."placed" AS date) ORDER BY CAST("orders"."placed" AS date) ASC});
sends(10, 'SELECT "customers"."_id" AS "_id" FROM "customers" WHERE (LOWER("customers"."name") LIKE $1) LIMIT 2000', "varchar '%ob 42%'");
sends(10, q{SELECT "Customers - Customer"."country" AS "Customers - Customer__country", SUM("orders"."total") AS "sum" FROM "orders" LEFT JOIN "customers" AS "Customers - Customer" }
	. q{ON "orders"."customer" = "Customers - Customer"."_id" WHERE "orders"."total" = 105 GROUP BY "Customers - Customer"."country" ORDER BY "Customers - Customer"."country" ASC});
sends(600, q{SELECT "source"."status" AS "status", COUNT(*) AS "count" FROM (SELECT "orders"."status" AS "status", "orders"."total" AS "total" FROM "orders" WHERE "orders"."total" > 700) AS "source" }
	. q{GROUP BY "source"."status" ORDER BY "source"."status" ASC});
sends(1, 'SELECT "orders"."status" AS "status" FROM "orders" WHERE "orders"."_id" = $1 LIMIT 2000', "varchar $id");

note('Tableau, by published statements');
sends(0, q{BEGIN; declare "SQL_CUR1" cursor with hold for SELECT CAST("orders"."status" AS TEXT) AS "status" FROM "orders" "orders" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST; }
	. q{fetch 2048 in "SQL_CUR1"; commit; close "SQL_CUR1"});
sends($orders, 'SELECT COUNT(DISTINCT "orders"."customer") AS "ctd:customer:ok" FROM "orders" "orders" HAVING (COUNT(1) > 0)');
sends(500, q{SELECT DATE_TRUNC('MONTH', CAST("orders"."placed" AS TIMESTAMP)) AS "tmn:placed:ok", SUM("orders"."total") AS "sum:total:ok" FROM "orders" "orders" }
	. q{WHERE (("orders"."placed" >= (TIMESTAMP '2024-01-01 00:00:00.000')) AND ("orders"."placed" < (TIMESTAMP '2024-02-01 00:00:00.000'))) GROUP BY 1});
sends(0, qq{SELECT COUNT(1) AS "cnt" FROM "orders" "orders" WHERE ($_ = 2024) HAVING (COUNT(1) > 0)})
  foreach 'CAST(TRUNC(EXTRACT(YEAR FROM "orders"."placed")) AS INTEGER)', 'CAST(EXTRACT(YEAR FROM "orders"."placed") AS BIGINT)';
sends(0, q{SELECT COUNT(1) FROM "orders" "orders" WHERE (CAST("orders"."placed" AS DATE) = (DATE '2024-01-01'))});
sends(400, q{SELECT LOWER(CAST(CAST("customers"."name" AS TEXT) AS TEXT)) AS "Calculation_1", COUNT(1) FROM "customers" "customers" WHERE ("customers"."country" = 'NO') GROUP BY 1 }
	. q{HAVING ((COUNT(1) >= 1) AND (COUNT(1) <= 2))});
sends($orders + 200, q{SELECT "orders"."status" AS "status", SUM("orders"."total") AS "sum:total:ok" FROM "orders" "orders" INNER JOIN (SELECT "orders"."status" AS "status", SUM("orders"."total") AS "$__alias__0" }
	. q{FROM "orders" "orders" GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 2) "t0" ON ("orders"."status" = "t0"."status") WHERE ("orders"."total" > 740) GROUP BY 1});
sends(10, q{SELECT "customers"."name" AS "name" FROM "customers" "customers" WHERE (LOWER(CAST("customers"."name" AS TEXT)) LIKE (('%' || 'ob 42') || '%')) GROUP BY 1});
sends(600, q{SELECT "Custom SQL Query"."status" AS "status", COUNT(1) AS "c" FROM (select * from orders where placed >= '2024-10-01') "Custom SQL Query" GROUP BY 1});

note('Power BI, by published statements');
sends(600, q{select "_"."status", "_"."a0" from (select "rows"."status" as "status", sum("rows"."total") as "a0" from (select "_"."_id" as "_id", "_"."status" as "status", "_"."total" as "total" from "orders" "_" }
	. q{where "_"."placed" < timestamp '2024-02-01 00:00:00' and "_"."placed" >= timestamp '2024-01-01 00:00:00') "rows" group by "status") "_" where not "_"."a0" is null limit 1000001});
sends(30, q{select "_"."country", "_"."a0" from (select "rows"."country" as "country", count(1) as "a0" from (select "_"."country" from (select "country", "name" from "customers" "$Table") "_" }
	. q{where "_"."name" like 'Bob 4%' and ("_"."country" in ('NO', 'PT', 'JP'))) "rows" group by "country") "_" where not "_"."a0" is null limit 1000001});
sends(0, q{select "_"."status" from (select "rows"."status" as "status" from (select "status" from "orders" "$Table") "rows" group by "status") "_" order by "_"."status" limit 101});
sends($customers + 10, q{select "_"."c30", "_"."a0" from (select "rows"."semijoin1.c30" as "c30", sum(cast("rows"."basetable0.a0" as decimal)) as "a0" from (select "$Outer"."basetable0.a0", "$Inner"."semijoin1.c30" from }
	. q{(select "_"."customer" as "basetable0.c22", "_"."total" as "basetable0.a0" from "orders" "_" where "_"."total" = 105) "$Outer" inner join }
	. q{(select "_"."country" as "semijoin1.c30", "_"."_id" as "semijoin1.c22" from "customers" "_") "$Inner" on ("$Outer"."basetable0.c22" = "$Inner"."semijoin1.c22" }
	. q{or "$Outer"."basetable0.c22" is null and "$Inner"."semijoin1.c22" is null)) "rows" group by "semijoin1.c30") "_" where not "_"."a0" is null limit 1000001});

done_testing();
