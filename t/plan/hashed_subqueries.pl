# Correlated sub-selects that ask for many values, and are not batched: after a few finds all
# documents are fetched once.  Counted by MongoDB; the answers are local tables'.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('hashed', 'jit = off', 'max_parallel_workers_per_gather = 0', 'mongo_fdw.enable_batched_joins = off');
create_server($node, 'mongodb', $mongod, fetch_size => 10000);
my $rows = q{SELECT g AS _id, CASE WHEN g % 7 > 0 THEN g % 700 END AS k, g % 3 AS w, 'value ' || g % 700 AS v,
	CASE WHEN g % 500 = 0 THEN 'NaN' ELSE (g % 100) / 4.0 END AS x FROM generate_series(1, 3000) g};
$node->safe_psql('postgres', qq{
	CREATE SCHEMA foreigners;
	CREATE FOREIGN TABLE foreigners.t (_id int, k int OPTIONS (indexed 'true'), w int, v text, x numeric) SERVER mongodb
		OPTIONS (database 'db', collection 't', estimated_rows '3000');
	CREATE SCHEMA locals;
	CREATE TABLE locals.t AS $rows;
	INSERT INTO foreigners.t SELECT * FROM locals.t;
	ANALYZE locals.t;
	CREATE TABLE keys AS SELECT g AS n, CASE WHEN g % 9 > 0 THEN g END AS k, g % 5 AS w, 'value ' || g AS v, g / 4.0 AS x
		FROM generate_series(1, 300) g;
	INSERT INTO keys VALUES (301, 5, 2, NULL, 'NaN');
	ANALYZE keys});
$mongod->command('{"createIndexes": "t", "indexes": [{"key": {"k": 1}, "name": "k"}]}', 'db');

# An expression for each of the rows in keys: the local tables' answer, in few commands.
sub is_hashed
{
	my ($name, $expression, $settings) = @_;
	my $sql = ($settings // '') . "SELECT n, $expression FROM keys ORDER BY n";
	my ($answer, $commands) = $mongod->asked($sql, 'foreigners');
	is($answer, ($mongod->asked($sql, 'locals'))[0], "$name: the answer");
	cmp_ok($commands, '<=', 50, "$name: $commands commands");
}

# One that is asked for by value.
sub is_not_hashed
{
	my ($name, $expression, $settings) = @_;
	my $sql = ($settings // '') . "SELECT n, $expression FROM keys ORDER BY n";
	my ($answer, $commands) = $mongod->asked($sql, 'foreigners');
	is($answer, ($mongod->asked($sql, 'locals'))[0], "$name: the answer");
	cmp_ok($commands, '>', 100, "$name: $commands commands");
}

is_hashed('by an index', '(SELECT max(v || n) FROM t WHERE t.k = keys.k)');
# What one value asks for is no bound of the rows of all, though both are of one range.
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE foreigners.d (_id int, k int OPTIONS (indexed 'true'), j jsonb) SERVER mongodb
		OPTIONS (database 'db', collection 'd', estimated_rows '3000');
	CREATE TABLE locals.d AS SELECT g AS _id, g % 700 AS k,
		jsonb_build_object('v', 'value ' || g % 700, 'day', date '2024-01-01' + g % 300) AS j FROM generate_series(1, 3000) g;
	INSERT INTO foreigners.d SELECT * FROM locals.d;
	ANALYZE locals.d});
$mongod->command('{"createIndexes": "d", "indexes": [{"key": {"k": 1}, "name": "k"}]}', 'db');
is_hashed('a range of texts', q{(SELECT count(*) FROM d WHERE d.k = keys.n
	AND d.j ->> 'v' COLLATE "C" >= 'value ' || 400 - keys.n AND d.j ->> 'v' COLLATE "C" < 'value 9')});
is_hashed('a range of days', q{(SELECT count(*) FROM d WHERE d.k = keys.n
	AND (d.j ->> 'day')::date >= date '2024-11-01' - keys.n AND (d.j ->> 'day')::date < '2024-10-01')});
is_hashed('without one', '(SELECT max(t.k || keys.v) FROM t WHERE t.v = keys.v)');
is_hashed('several rows', '(SELECT string_agg(_id::text, \',\' ORDER BY _id) FROM t WHERE t.k = keys.k)');
is_hashed('two columns', '(SELECT sum(_id + n) FROM t WHERE t.k = keys.k AND t.w = keys.w)');
is_hashed('a computed value', '(SELECT sum(_id + n) FROM t WHERE keys.n * 2 + 1 = t.k)');
is_hashed('numeric', '(SELECT sum(_id + n) FROM t WHERE t.x = keys.x)');
is_hashed('bigint', '(SELECT sum(_id + n) FROM t WHERE t.k = keys.k::bigint)');
is_hashed('other conditions of both', '(SELECT sum(_id + n) FROM t WHERE t.k = keys.k AND t.w > 0 AND t._id > keys.n AND length(t.v) + t.w > 8)');
is_hashed('a condition on nothing but the outer row', '(SELECT sum(_id + n) FROM t WHERE t.k = keys.k AND keys.n < 200)');
is_hashed('the same, sorted and limited', '(SELECT v || n FROM t WHERE t.k = keys.k AND keys.n % 3 > 0 ORDER BY t._id LIMIT 1)');
is_hashed('the same, grouped', 'ARRAY(SELECT sum(_id) FROM t WHERE t.k = keys.k AND keys.n % 3 > 0 GROUP BY w ORDER BY 1)::text');
is_hashed('EXISTS', 'EXISTS (SELECT 1 FROM t WHERE t.k = keys.k AND t.w = 1 OFFSET 0)');
is_hashed('IN', 'n IN (SELECT t.w FROM t WHERE t.k = keys.k OFFSET 0)');
is_hashed('a join within', '(SELECT count(*) FROM t a JOIN t b ON a._id = b._id + 1 WHERE a.k = keys.k AND b.w = keys.w)',
	'SET mongo_fdw.enable_join_pushdown = off; SET mongo_fdw.enable_batched_joins = off; SET enable_nestloop = off;');
is_hashed('two levels', '(SELECT sum((SELECT count(b._id + n) FROM t b WHERE b.k = keys.k AND b.w = a.w)) FROM t a WHERE a.k = keys.k)');
is_hashed('only its first values', '(SELECT max(v || n) FROM t WHERE t.k = keys.k % 3)');

my ($answer, $commands) = $mongod->asked('SELECT n, m FROM keys, LATERAL (SELECT max(t.v || n) AS m FROM t WHERE t.k = keys.k) s ORDER BY n', 'foreigners');
is($answer, ($mongod->asked('SELECT n, m FROM keys, LATERAL (SELECT max(t.v || n) AS m FROM t WHERE t.k = keys.k) s ORDER BY n', 'locals'))[0], 'LATERAL: the answer');
cmp_ok($commands, '<=', 50, "LATERAL: $commands commands");

# what MongoDB groups, sorts and limits for a value, PostgreSQL does after that
my $push = 'SET cpu_operator_cost = 20; ';
like($node->safe_psql('postgres', "SET search_path = foreigners, public; $push EXPLAIN SELECT (SELECT sum(_id) FROM t WHERE t.k = keys.k) FROM keys"),
	qr/Aggregate on/, 'MongoDB groups');
is_hashed('a sum', '(SELECT sum(_id) FROM t WHERE t.k = keys.k)', $push);
is_hashed('a sum beside a condition on the outer row', '(SELECT sum(_id) FROM t WHERE t.k = keys.k AND keys.n < 200)', $push);
is_hashed('a count', '(SELECT count(*) FROM t WHERE t.k = keys.k)', $push);
is_hashed('aggregates of nothing', "(SELECT count(*) || coalesce(sum(_id)::text, ' no') FROM t WHERE t.k = keys.k AND t.w = 5)", $push);
is_hashed('by two columns', '(SELECT 0.5 * sum(_id) FROM t WHERE t.k = keys.k AND t.w = keys.w AND t._id > 100)', $push);
is_hashed('finished aggregates', '(SELECT round(avg(_id), 3) || round(avg(k), 3)::text FROM t WHERE t.k = keys.k)', $push);
is_hashed('DISTINCT and FILTER', '(SELECT count(DISTINCT w) || count(*) FILTER (WHERE w > 1)::text FROM t WHERE t.k = keys.k)', $push);
is_hashed('HAVING', '(SELECT sum(_id) FROM t WHERE t.k = keys.k HAVING count(*) > 3 AND min(t.w) < 1)', $push);
is_hashed('GROUP BY', 'ARRAY(SELECT sum(_id) FROM t WHERE t.k = keys.k GROUP BY w ORDER BY 1)::text', $push);
is_hashed('GROUP BY and HAVING', 'EXISTS (SELECT 1 FROM t WHERE t.k = keys.k GROUP BY t.w HAVING sum(t._id) > 3000)', $push);
is_hashed('an aggregate beside the outer row', '(SELECT sum(_id) FROM t WHERE t.k = keys.k AND t.w > keys.w - 2) + n', $push);
is_hashed('min', '(SELECT min(_id) FROM t WHERE t.k = keys.k)', $push);
is_hashed('max of numbers with NaN', '(SELECT max(x) FROM t WHERE t.k = keys.k)', $push);
is_hashed('LIMIT', '(SELECT v FROM t WHERE t.k = keys.k LIMIT 1)', $push);
is_hashed('ORDER BY and LIMIT', '(SELECT _id FROM t WHERE t.k = keys.k ORDER BY x DESC, _id LIMIT 1)', $push);
is_hashed('OFFSET by the outer row', '(SELECT _id FROM t WHERE t.k = keys.k ORDER BY _id DESC LIMIT 1 OFFSET keys.w)', $push);
is_hashed('an expression over what is sorted', "(SELECT v || '-' || w FROM t WHERE t.k = keys.k ORDER BY _id LIMIT 1)", $push);
is_hashed('ORDER BY, and a condition of PostgreSQL', "(SELECT _id FROM t WHERE t.k = keys.k AND md5(v) > '4' ORDER BY _id LIMIT 1)");
is_hashed('ORDER BY an expression, and LIMIT', '(SELECT _id + w FROM t WHERE t.k = keys.k ORDER BY t._id % 10, t._id LIMIT 1)', $push);
is_hashed('GROUP BY, ORDER BY and LIMIT', '(SELECT sum(_id) + w FROM t WHERE t.k = keys.k GROUP BY w ORDER BY sum(_id) DESC LIMIT 1)', $push);
is_hashed('IN with LIMIT', 'n IN (SELECT t._id FROM t WHERE t.k = keys.k ORDER BY t._id LIMIT 2)', $push);
foreach my $query ('SELECT n, s.* FROM keys, LATERAL (SELECT _id, v FROM t WHERE t.k = keys.k ORDER BY _id DESC LIMIT 3) s ORDER BY n, _id',
	'SELECT n, s.* FROM keys LEFT JOIN LATERAL (SELECT w, count(*), sum(_id) FROM t WHERE t.k = keys.k GROUP BY w) s ON true ORDER BY n, w',
	'SELECT n, s.* FROM keys, LATERAL (SELECT count(*), max(_id), sum(x) FROM t WHERE t.k = keys.k) s ORDER BY n')
{
	my ($answer, $commands) = $mongod->asked($push . $query, 'foreigners');
	is($answer, ($mongod->asked($query, 'locals'))[0], "LATERAL: the answer of $query");
	cmp_ok($commands, '<=', 50, "LATERAL: $commands commands");
}

# what the statement is said to cost tells when many values are to be expected
my ($rows, $sent) = $mongod->asked($push . 'SELECT count((SELECT sum(_id) FROM t WHERE t.k = keys.k)) FROM keys', 'foreigners');
cmp_ok($sent, '<=', 4, "as early as that: $sent commands");
like($node->safe_psql('postgres', "SET search_path = foreigners, public; $push EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF)"
	  . ' SELECT count((SELECT sum(_id) FROM t WHERE t.k = keys.k)) FROM keys'),
	qr/SubPlan (?:1|expr_1)\s+->  Foreign Scan \(actual .*->  Aggregate \(actual .*->  Foreign Scan on t \(actual .*commands=1 documents=3000/s,
	'EXPLAIN of both plans');

# what was answered before stays so, whatever happens to the documents until all are fetched
$node->safe_psql('postgres', q{CREATE FUNCTION change() RETURNS int LANGUAGE sql VOLATILE AS
	$$SELECT 0 FROM mongo_command('mongodb', 'db', '{"update": "t", "updates": [{"q": {"_id": 1}, "u": {"$set": {"v": "changed"}}}]}')$$});
is($node->safe_psql('postgres', q{SET search_path = foreigners, public;
	SELECT count(DISTINCT m) FROM (SELECT o, k, CASE WHEN o = 2 THEN change() END, (SELECT min(t.v || t.w) FROM t WHERE t.k = i.k) AS m
		FROM (SELECT 1 AS o, 1 AS k UNION ALL SELECT 2, g FROM generate_series(2, 200) g UNION ALL SELECT 3, 1 OFFSET 0) i) s WHERE k = 1}),
	1, 'an answer that was given before');
$mongod->command('{"update": "t", "updates": [{"q": {"_id": 1}, "u": {"$set": {"v": "value 1"}}}]}', 'db');

# nothing is an error of which nobody asks
is_hashed('a division', '(SELECT sum(100 / (CASE WHEN t.k > 400 THEN 0 ELSE 1 END) + n) FROM t WHERE t.k = keys.k)');
is_hashed('a condition that could fail', '(SELECT sum(_id + n) FROM t WHERE t.k = keys.k AND 100 / (t.k - 500) < 1000)');

# memory
is_not_hashed('said to be too large', '(SELECT max(v || n) FROM t WHERE t.k = keys.k)', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1;");
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE foreigners.t OPTIONS (SET estimated_rows '100')});
is_not_hashed('found to be too large', '(SELECT max(v || n) FROM t WHERE t.k = keys.k)', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1;");
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE foreigners.t OPTIONS (SET estimated_rows '3000')});

is_not_hashed('a file that is too large', '(SELECT max(v || n) FROM t WHERE t.k = keys.k)', "SET temp_file_limit = '100kB';");

is(($mongod->asked($_, 'foreigners'))[0], ($mongod->asked($_, 'locals'))[0], 'three files that are too large together')
  foreach q{SET temp_file_limit = '400kB'; SELECT n, (SELECT max(v || n) FROM t WHERE t.k = keys.k),
	(SELECT min(v || n) FROM t WHERE t.k = keys.k), (SELECT max(v || n || t.w) FROM t WHERE t.k = keys.k) FROM keys ORDER BY n};

# interrupted, and again
my $session = MongoFdwTest::Session->new($node);
my $query = 'SELECT sum(n), count((SELECT max(t.v || n) FROM t WHERE t.k = keys.k)) FROM keys';
$session->ask('SET search_path = foreigners, public');
$answer = $session->ask($query);
is($answer, ($mongod->asked($query, 'locals'))[0], 'before');
$mongod->fail_command(1, 96, 'getMore');
$session->ask("ALTER FOREIGN TABLE t OPTIONS (ADD fetch_size '100')");
like($session->ask($query), qr/ERROR/, 'an error while all are fetched');
$mongod->block_commands(3000, 'getMore');
$session->ask("SET statement_timeout = '1s'");
like($session->ask($query), qr/canceling statement/, 'cancelled while all are fetched');
$session->ask('RESET statement_timeout');
$mongod->unblock_commands;
is($session->ask($query), $answer, 'and all is well again');
$session->ask('PREPARE p (int) AS ' . ($query =~ s/keys\.k\)/keys.k AND t.w < \$1)/r));
is(join(' ', map { $session->ask("EXECUTE p($_)") } (1 .. 8)),
	join(' ', map { ($mongod->asked($query =~ s/keys\.k\)/keys.k AND t.w < $_)/r, 'locals'))[0] } (1 .. 8)), 'prepared');
like($session->ask("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF) $query"),
	qr/SubPlan (?:1|expr_1)\s+->  Aggregate \(actual rows=1\S* loops=301\)\s+->  Foreign Scan on t \(.*->  Foreign Scan on t \(actual .* documents=3000/s, 'EXPLAIN');

# a document that does not fit is an error if it is asked for, and no sooner
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE foreigners.t OPTIONS (DROP fetch_size);
	CREATE SCHEMA wrong; CREATE FOREIGN TABLE wrong.t (_id int, k int, w int, v text, x numeric) SERVER mongodb
		OPTIONS (database 'db', collection 't', estimated_rows '3000')});
$mongod->command('{"insert": "t", "documents": [{"_id": 9001, "k": 650, "w": "wrong", "v": "x"}, {"_id": 9002, "k": [651], "w": 1, "v": "x"}]}', 'db');
my $by_value = '(SELECT max(t.w || keys.v || n) FROM t WHERE t.k = keys.k)';
is_not_hashed('a document that does not fit', $by_value);
is_not_hashed('a document that does not fit, and MongoDB\'s aggregate', '(SELECT sum(w) FROM t WHERE t.k = keys.k)', $push);
foreach my $value (650, 651)
{
	my ($status, $out, $err) = $node->psql('postgres', "SET search_path = foreigners, public; SELECT $by_value FROM (SELECT n, k, v FROM keys UNION ALL SELECT 1, $value, 'x') keys");
	like($err, qr/could not read field/, "and is asked for: $value");
}
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE foreigners.t OPTIONS (ADD type_mismatch 'null');
	INSERT INTO locals.t VALUES (9001, 650, NULL, 'x'), (9002, NULL, 1, 'x'); INSERT INTO keys VALUES (302, 650, 1, 'x', 1), (303, 651, 1, 'x', 1)});
is_hashed('type_mismatch null', $by_value);

is_hashed('an aggregate under type_mismatch null', '(SELECT sum(_id) FROM t WHERE t.k = keys.k AND t.w = keys.w)', $push);

# domains' errors wait, too, and a policy's rows
$node->safe_psql('postgres', q{CREATE DOMAIN small AS int CHECK (VALUE < 2);
	DELETE FROM locals.t WHERE w = 2 AND k > 350;
	CREATE SCHEMA domains; CREATE FOREIGN TABLE domains.t (_id int, k int, w small) SERVER mongodb
		OPTIONS (database 'db', collection 'domains', estimated_rows '3000')});
$node->safe_psql('postgres', q{SET check_function_bodies = off; CREATE FOREIGN TABLE domains.all (_id int, k int, w int) SERVER mongodb
	OPTIONS (database 'db', collection 'domains'); INSERT INTO domains.all SELECT g, g, CASE WHEN g < 400 THEN 1 ELSE 2 END FROM generate_series(1, 1000) g});
is(($mongod->asked('SELECT count((SELECT max(t.w + n) FROM t WHERE t.k = keys.k)) FROM keys WHERE k < 400', 'domains'))[0],
	($mongod->asked('SELECT count(*) FROM keys WHERE k < 400', 'locals'))[0], 'a domain');

done_testing();
