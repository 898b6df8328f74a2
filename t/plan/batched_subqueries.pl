# Correlated subqueries over a collection that cannot be hashed whole: the values of many outer
# rows go in one command.  Counted by MongoDB; the answers are local tables'.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

# five documents for a key, of which one half are wanted
my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('batched', 'jit = off', 'max_parallel_workers_per_gather = 0', 'work_mem = 1MB',
	'hash_mem_multiplier = 1', 'session_preload_libraries = mongo_fdw');
create_server($node, 'mongodb', $mongod);
my $rows = q{SELECT g AS _id, CASE WHEN g % 11 > 0 THEN g % 6000 END AS k, g % 3 AS w, 'value ' || g % 6000 AS v,
	(g % 100) / 4.0 AS x FROM generate_series(1, 30000) g};
$node->safe_psql('postgres', qq{
	CREATE SCHEMA foreigners;
	CREATE FOREIGN TABLE foreigners.t (_id int, k int, w int, v text, x numeric) SERVER mongodb OPTIONS (database 'db', collection 't');
	CREATE FOREIGN TABLE foreigners.u (_id int, w int, v text) SERVER mongodb OPTIONS (database 'other', collection 'u', type_mismatch 'null');
	CREATE TABLE foreigners.parts (_id int, k int, w int, v text, x numeric) PARTITION BY RANGE (_id);
	CREATE FOREIGN TABLE foreigners.p1 PARTITION OF foreigners.parts FOR VALUES FROM (0) TO (15000) SERVER mongodb OPTIONS (database 'db', collection 'p1');
	CREATE FOREIGN TABLE foreigners.p2 PARTITION OF foreigners.parts DEFAULT SERVER mongodb OPTIONS (database 'db', collection 'p2');
	CREATE SCHEMA locals;
	CREATE TABLE locals.t AS $rows;
	CREATE INDEX ON locals.t (k);
	CREATE INDEX ON locals.t (v);
	INSERT INTO foreigners.t SELECT * FROM locals.t;
	CREATE TABLE locals.u AS SELECT _id, CASE WHEN _id % 17 > 0 THEN _id % 7 END AS w, CASE WHEN _id % 5 > 0 THEN v END AS v FROM locals.t;
	CREATE INDEX ON locals.u (_id);
	INSERT INTO foreigners.u SELECT * FROM locals.u;
	INSERT INTO foreigners.parts SELECT * FROM locals.t;
	CREATE VIEW locals.parts AS SELECT * FROM locals.t;
	CREATE TABLE keys AS SELECT g AS n, CASE WHEN g % 9 > 0 THEN g % 2500 END AS k, g % 5 AS w, 'value ' || g AS v, g % 40 AS p
		FROM generate_series(1, 3000) g;
	ANALYZE locals.t, locals.u, keys});
$mongod->command(qq({"createIndexes": "$_", "indexes": [{"key": {"k": 1}, "name": "k"}, {"key": {"v": 1, "w": 1}, "name": "v"}]}), 'db') foreach 't', 'p1', 'p2';
$node->safe_psql('postgres', 'ANALYZE foreigners.t, foreigners.u, foreigners.parts');

# A query whose answer is that of local tables, in so many commands.
sub is_answered
{
	my ($name, $query, $most, $least) = @_;
	my ($answer, $commands) = $mongod->asked($query, 'foreigners');
	my $local = ($mongod->asked($query, 'locals'))[0];

	unlike($local, qr/ERROR/, "$name: is answered");
	is($answer, $local, "$name: the answer");
	cmp_ok($commands, '<=', $most, "$name: $commands commands");
	cmp_ok($commands, '>=', $least, "$name: no fewer") if $least;
}

# An expression for each of the rows in keys.
sub is_batched { is_answered($_[0], "SELECT n, $_[1] FROM keys ORDER BY n", $_[2] // 12) }

is_batched('count', '(SELECT count(*) FROM t WHERE t.k = keys.k)');
is_batched('count of none', '(SELECT count(*) FROM t WHERE t.k = keys.k AND t.w = 7)');
is_batched('sum', '(SELECT sum(_id + n) FROM t WHERE t.k = keys.k)');
is_batched('coalesce', 'coalesce((SELECT sum(_id) FROM t WHERE t.k = keys.k AND t.w > keys.w), -1)');
is_batched('max', '(SELECT max(_id) FROM t WHERE t.k = keys.k)');
is_batched('min and max of a text', '(SELECT min(v) || max(v) FROM t WHERE t.k = keys.k)');
is_batched('EXISTS', 'EXISTS (SELECT 1 FROM t WHERE t.k = keys.k AND t.w = keys.w)');
is_batched('NOT EXISTS', 'NOT EXISTS (SELECT 1 FROM t WHERE t.k = keys.k AND t.w = keys.w)');
is_batched('EXISTS in CASE', q{CASE WHEN EXISTS (SELECT 1 FROM t WHERE t.k = keys.k AND t.w = keys.w) THEN 'yes' ELSE 'no' END});
is_batched('the latest', '(SELECT t.v FROM t WHERE t.k = keys.k ORDER BY t._id DESC LIMIT 1)');
is_batched('any one', '(SELECT t.k FROM t WHERE t.k = keys.k LIMIT 1)');
is_batched('array', '(ARRAY(SELECT _id FROM t WHERE t.k = keys.k ORDER BY 1))::text');
is_batched('IN', 'n + 6000 IN (SELECT t._id FROM t WHERE t.k = keys.k)');
is_batched('ALL', 'n < ALL (SELECT t._id FROM t WHERE t.k = keys.k)');
is_batched('row comparison', '(n, w) < (SELECT min(t._id), max(t.w) FROM t WHERE t.k = keys.k)');
is_batched('GROUP BY', 'ARRAY(SELECT sum(_id) FROM t WHERE t.k = keys.k GROUP BY w ORDER BY 1)::text');
is_batched('bigint', '(SELECT sum(_id + n) FROM t WHERE t.k = keys.k::bigint)');
is_batched('text', '(SELECT sum(_id + n) FROM t WHERE t.v = keys.v)');
is_batched('two columns', '(SELECT sum(_id + n) FROM t WHERE t.v = keys.v AND t.w = keys.w)');
is_batched('two columns, one of them without an index', '(SELECT sum(_id + n) FROM t WHERE t.k = keys.k AND t.w = keys.w)');
is_batched('two subqueries', '(SELECT count(*) FROM t WHERE t.k = keys.k), (SELECT max(t.x) FROM t WHERE t.v = keys.v)', 24);
is_batched('UNION ALL', '(SELECT sum(i + n) FROM (SELECT _id AS i FROM t WHERE t.k = keys.k UNION ALL SELECT w FROM t WHERE t.v = keys.v) u)', 24);
is_batched('UNION ALL in order', '(SELECT i FROM (SELECT _id AS i FROM t WHERE t.k = keys.k UNION ALL SELECT w + 7 FROM t WHERE t.v = keys.v) u ORDER BY i LIMIT 1)', 24);
is_answered('partitions', 'SELECT n, (SELECT count(*) FROM parts WHERE parts.k = keys.k), (SELECT max(_id) FROM parts WHERE parts.v = keys.v AND w < 2) FROM keys ORDER BY n', 60);
is_batched('a join within', '(SELECT count(*) FROM t JOIN keys o ON o.n = t._id WHERE t.k = keys.k)');
is_answered('a batched join within',
	'SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT n, (SELECT sum(u._id * t.w) FROM t JOIN u ON u._id = t._id - n WHERE t.k = keys.k) FROM keys WHERE n < 60 ORDER BY n', 12);
is_batched('two levels', '(SELECT sum((SELECT count(*) FROM t b WHERE b.k = keys.k AND b.w = a.w)) FROM t a WHERE a.k = keys.k)', 3000);
is_batched('a value of few', '(SELECT count(*) FROM t WHERE t.k = keys.p)', 6);

# what it is above
is_answered('a qual', 'SELECT n FROM keys WHERE (SELECT count(*) FROM t WHERE t.k = keys.k) > 4 ORDER BY n', 12);
is_answered('a qual among others, and a column',
	'SELECT n, (SELECT min(t._id) FROM t WHERE t.k = keys.k) FROM keys WHERE n > 50 AND (SELECT count(*) FROM t WHERE t.k = keys.k) > 4 AND (SELECT max(t.w) FROM t WHERE t.k = keys.k) > 0 ORDER BY n', 24);
is_answered('no column', 'SELECT count(*) FROM keys WHERE (SELECT count(*) FROM t WHERE t.k = keys.k) > 4', 12);
is_answered('a group', 'SELECT k, count(*), (SELECT max(t.x) FROM t WHERE t.k = keys.k) FROM keys GROUP BY k ORDER BY k', 12);
is_answered('HAVING', 'SELECT k, count(*) FROM keys GROUP BY k HAVING count(*) + (SELECT count(*) FROM t WHERE t.k = keys.k) > 5 ORDER BY k', 12);
is_answered('a join', 'SELECT a.n, b.n, (SELECT count(*) FROM t WHERE t.k = b.k) FROM keys a JOIN keys b ON b.n = a.n + 1 ORDER BY 1', 12);
is_answered('a batched join', 'SELECT keys.n, u.v, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys LEFT JOIN t u ON u._id = keys.n ORDER BY 1', 24);
my $inner = 'SELECT keys.n, u.v FROM keys JOIN t u ON u._id = keys.n';
my $of_inner = '(SELECT count(*) FROM t WHERE t.k = u.k AND t.w = 1)';
is_answered('the inner side of a batched join', "$inner WHERE $of_inner > 1 ORDER BY 1", 12);
is_answered('the inner side, among other conditions',
	"SET enable_mergejoin = off; SET enable_hashjoin = off; $inner AND u.w >= keys.w AND $of_inner >= keys.w WHERE u.w::text > '0' AND $of_inner > 0 AND u.x > (SELECT min(x) FROM t WHERE t.k = u.k) ORDER BY 1", 24);
is_answered('the inner side, whole', 'SELECT keys.n, u FROM keys JOIN t u ON u._id = keys.n WHERE ' . $of_inner . " > length(u::text) / 100 ORDER BY 1", 12);
is_answered('the inner side of an ordered join', "$inner WHERE $of_inner > 1 ORDER BY n LIMIT 20", 10);
is_answered('the inner side of an outer join', "SELECT keys.n, u.v FROM keys LEFT JOIN t u ON u._id = keys.n AND $of_inner > 1 WHERE n < 40 ORDER BY 1", 80);
is_answered('the inner side of a semijoin', "SELECT n FROM keys WHERE n < 40 AND EXISTS (SELECT FROM t u WHERE u._id = keys.n AND $of_inner > 1) ORDER BY 1", 80);
is_answered('the inner side of an antijoin', "SELECT n FROM keys WHERE n < 40 AND NOT EXISTS (SELECT FROM t u WHERE u._id = keys.n AND $of_inner > 1) ORDER BY 1", 80);
is_answered('the inner side, volatile', "$inner WHERE n < 40 AND $of_inner + random() > 1 ORDER BY 1", 80, 10);
is_answered('few rows of a join, each of which is tested',
	'SELECT keys.n, u.v FROM keys JOIN t u ON u.k = keys.n WHERE keys.n % 150 = 1 AND u._id > (SELECT avg(t._id) FROM t WHERE t.k = keys.n) ORDER BY 1, 2', 6);
my $last = 'SELECT a.n, b.n FROM keys a JOIN keys b ON b.k = a.k AND b.n %s (SELECT max(t._id) % 6000 FROM t WHERE t.k = a.k) ORDER BY 1, 2';
is_answered("the clauses of a join by $_->[0]", "SET enable_hashjoin = $_->[1]; SET enable_mergejoin = $_->[2]; SET enable_nestloop = $_->[3]; " . sprintf($last, $_->[4]), 12)
	foreach ['hashing', 'on', 'off', 'off', '='], ['hashing', 'on', 'off', 'off', '<='], ['merging', 'off', 'on', 'off', '>'], ['loops', 'off', 'off', 'on', '<>'];
is_answered('the clauses of a join whose inner side is unique', 'SET enable_nestloop = off; SELECT a.n, b.n FROM keys a JOIN (SELECT k, max(n) AS n FROM keys GROUP BY k) b ON b.k = a.k AND b.n > (SELECT max(t._id) % 3000 FROM t WHERE t.k = a.n) ORDER BY 1, 2', 12);
is_answered('the only clause of a join', 'SET enable_nestloop = off; SELECT a.n, b.n FROM keys a JOIN keys b ON b.n = (SELECT max(t._id) % 6000 FROM t WHERE t.k = a.k) ORDER BY 1, 2', 3000);
is_answered('the clauses of an outer join', 'SELECT a.n, b.n FROM keys a LEFT JOIN keys b ON b.k = a.k AND b.n < (SELECT max(t._id) % 6000 FROM t WHERE t.k = a.k) WHERE a.n < 40 ORDER BY 1, 2', 80);
is_answered('a window function', 'SELECT n, row_number() OVER (ORDER BY n DESC), (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys ORDER BY n', 12);
is_answered('DISTINCT', 'SELECT DISTINCT (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys ORDER BY 1', 12);
is_answered('UNION ALL', 'SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys UNION ALL SELECT n, (SELECT sum(_id) FROM t WHERE t.k = keys.w) FROM keys ORDER BY 1, 2', 24);
is_answered('a CTE', 'WITH c AS MATERIALIZED (SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) AS m FROM keys) SELECT a.m, count(*) FROM c a JOIN c b USING (n) GROUP BY 1 ORDER BY 1', 12);
is_answered('a view', 'SELECT * FROM (SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) AS m FROM keys OFFSET 0) v WHERE m > 4 ORDER BY n', 12);
is_answered('an InitPlan beside it', 'SELECT n, (SELECT max(n) FROM keys) - (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys ORDER BY n LIMIT (SELECT 100)', 12);
is_answered('LATERAL', 'SELECT a.n, s.m FROM keys a, LATERAL (SELECT sum((SELECT count(*) FROM t WHERE t.k = b.k)) AS m FROM keys b WHERE b.p = a.p AND b.n > a.n + 2900) s ORDER BY 1', 600);
my $of_keys = 'LATERAL (SELECT count(*) AS c, max(t.v) AS v FROM t WHERE t.k = keys.k)';
my $list = 'LATERAL (SELECT json_agg(row_to_json(x)) AS list FROM (SELECT _id, w FROM t WHERE t.k = keys.k ORDER BY _id DESC LIMIT 2) x)';
is_answered('LATERAL of an aggregate', "SELECT n, s.* FROM keys CROSS JOIN $of_keys s ORDER BY n", 12);
is_answered('LATERAL of a list', "SELECT n, list::text FROM keys LEFT JOIN $list s ON true ORDER BY n", 12);
is_answered('LATERAL of rows', 'SELECT n, _id FROM keys LEFT JOIN LATERAL (SELECT _id FROM t WHERE t.k = keys.k ORDER BY w, _id LIMIT 3) s ON true ORDER BY n, _id', 12);
is_answered('LATERAL with conditions', "SELECT n, s.* FROM keys LEFT JOIN $of_keys s ON c > 4 AND w < 3 WHERE c > n % 6 OR c IS NULL ORDER BY n", 12);
is_answered('two of them', "SELECT n, s.c, r.list::text FROM keys LEFT JOIN $of_keys s ON true LEFT JOIN $list r ON true ORDER BY n", 24);
is_answered('LATERAL and a subquery', "SELECT n, s.c, (SELECT max(t.x) FROM t WHERE t.v = keys.v AND t.w < s.c) FROM keys LEFT JOIN $of_keys s ON true WHERE (SELECT count(*) FROM t WHERE t.k = keys.k) > 2 ORDER BY n", 36);
is_answered('LATERAL of two tables', 'SELECT a.n, s.c FROM keys a JOIN keys b ON b.n = a.n + 1, LATERAL (SELECT count(*) AS c FROM t WHERE t.k = a.k AND t.w = b.w) s ORDER BY 1', 12);
is_answered('LATERAL in LATERAL', "SELECT b.n, s.* FROM keys b, LATERAL (SELECT sum(r.c) FROM keys CROSS JOIN $of_keys r WHERE keys.n > b.n AND keys.p = b.p) s WHERE b.n < 40 ORDER BY 1", 100);
is_answered('LATERAL that remembers', "SET enable_memoize = on; SELECT o.n, s.* FROM keys o, LATERAL (SELECT count(*) FROM t WHERE t.k = o.p) s ORDER BY 1", 12);
is_answered('LATERAL with InitPlans', "SELECT n, s.* FROM (SELECT * FROM keys WHERE n < (SELECT max(n) - 5 FROM keys) OFFSET 0) keys CROSS JOIN $of_keys s WHERE c > (SELECT min(w) FROM keys) ORDER BY n", 12);
is_answered('LATERAL of a page', "SELECT n, s.c FROM (SELECT * FROM keys ORDER BY n LIMIT 20) keys LEFT JOIN $of_keys s ON true", 1, 1);
is_answered('LATERAL below LIMIT', "SELECT n, s.c FROM (SELECT * FROM keys ORDER BY n OFFSET 0) keys LEFT JOIN $of_keys s ON true LIMIT 20", 1, 1);
is_answered('LATERAL of a larger page', "SELECT n, s.c FROM (SELECT * FROM keys ORDER BY n OFFSET 0) keys LEFT JOIN $of_keys s ON true LIMIT 300 OFFSET 90", 1, 1);
is_answered('a page of two lists', "SELECT n, s.list::text, r.list::text FROM keys LEFT JOIN $list s ON true LEFT JOIN $list r ON true LIMIT 100 OFFSET 7", 4);
is_answered('a page of two lists, one with a condition', "SELECT n, s.list::text, r.list::text FROM (SELECT * FROM keys ORDER BY n OFFSET 0) keys LEFT JOIN $list s ON n > 3 CROSS JOIN $list r LIMIT 100", 4);
is_answered('a page of what fails later', "SELECT n, s.y, r.list::text FROM (SELECT * FROM keys ORDER BY n OFFSET 0) keys, LATERAL (SELECT sum(t._id / (keys.n - 101)) AS y FROM t WHERE t.k = keys.n) s, $list r LIMIT 100", 200);
is_answered('a page of what fails later, of several batches', "SELECT n, length(pad), s.y, r.list::text FROM (SELECT *, repeat('x', 20000) AS pad FROM keys ORDER BY n OFFSET 0) keys, LATERAL (SELECT sum(t._id / (keys.n - 101)) AS y FROM t WHERE t.k = keys.n) s, $list r LIMIT 100", 200);
is_answered('several rows of each, of which one fails later', "SELECT n, s.y, r._id FROM (SELECT * FROM keys ORDER BY n OFFSET 0) keys, LATERAL (SELECT sum(t._id / (keys.n - 101)) AS y FROM t WHERE t.k = keys.n) s, LATERAL (SELECT _id FROM t WHERE t.k = keys.n ORDER BY _id) r LIMIT 101", 200);
is_answered('LATERAL below LIMIT, with a condition', "SELECT n, s.c FROM (SELECT * FROM keys ORDER BY n OFFSET 0) keys JOIN $of_keys s ON c > 4 LIMIT 100", 2);
is_answered('LATERAL of what may fail', "SELECT n, x, s.c FROM (SELECT n, k, 1 / (n - 30) AS x FROM (SELECT * FROM keys ORDER BY n OFFSET 0) o OFFSET 0) keys LEFT JOIN $of_keys s ON true LIMIT 20", 20, 18);
my $ordered = '(SELECT * FROM keys ORDER BY n OFFSET 0) keys';
my $second = 'CROSS JOIN LATERAL (SELECT count(*) AS d FROM t WHERE t.v = keys.v) r';
is_answered('LATERAL after a condition that may fail', "SELECT n, d FROM $ordered CROSS JOIN $of_keys s $second WHERE 1 / (n - 30 + 0 * c) > -5 LIMIT 5", 20);
is_answered('LATERAL after an aggregate that may fail',
	"SELECT n, x, d FROM $ordered CROSS JOIN LATERAL (SELECT sum(1 / (keys.n - 30 + 0 * b.n)) AS x FROM keys b WHERE b.n < 3) s $second LIMIT 5", 20);
is_answered("LATERAL after $_->[0] that may fail", "SET enable_hashjoin = $_->[1]; SET enable_mergejoin = off; SELECT n, d FROM (SELECT keys.n, keys.v FROM $ordered LEFT JOIN $_->[2] OFFSET 0) keys $second LIMIT 5", 20)
	foreach ['a function', 'on', 'LATERAL generate_series(1, 1 / (keys.n - 30)) b(n) ON true'], ['a key of a hash', 'on', 'keys b ON b.n = 100 / (keys.n - 30)'],
	['a key of an index', 'off', 'locals.t b ON b.k = 100 / (keys.n - 30)'];
is_answered('LATERAL of groups that may fail', "SELECT k, x, c FROM (SELECT p AS k, 1 / (p - 3) AS x, count(*) FROM keys GROUP BY p OFFSET 0) keys CROSS JOIN $of_keys s LIMIT 1", 20);
is(system($ENV{PYTHON} || 'python3', '-c', 'import psycopg2, sys; cursor = psycopg2.connect(sys.argv[1]).cursor(); cursor.execute(sys.argv[2]); sys.exit(cursor.description[0].table_oid is None)',
	$node->connstr('postgres'), "SET search_path = foreigners, public; SELECT n, c FROM keys CROSS JOIN $of_keys s"), 0, 'clients see the table of a column');
is_answered('in a list of a list', "SELECT n, (SELECT json_agg(x)::text FROM (SELECT _id, w FROM t WHERE t.k = keys.k ORDER BY _id LIMIT 2) x) FROM keys ORDER BY n", 12);
is_answered('LATERAL, volatile', "CREATE TEMP SEQUENCE s; SELECT o.n, currval('s'), r.c FROM (SELECT nextval('s')::int AS n FROM keys LIMIT 50) o, LATERAL (SELECT count(*) AS c FROM t WHERE t.k = o.n) r", 50);
is_answered('LATERAL of what is volatile', "CREATE TEMP SEQUENCE s; SELECT * FROM (SELECT nextval('s')::int AS n FROM keys LIMIT 50) o, LATERAL (SELECT count(*) + currval('s') FROM t WHERE t.k = o.n) r", 50);
# the rows of the batch have a column that those of single commands lack
is_answered('a batch now and then', 'SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT a.n, s.* FROM keys a, LATERAL (SELECT (SELECT sum(u.w) FROM u JOIN keys o ON o.n = u.w * 10 WHERE u._id = b.n AND u.v IS NOT NULL) FROM keys b WHERE b.n = a.n OFFSET 0) s WHERE a.n <= 200 ORDER BY 1', 200);
is_answered('the foreign table itself', 'SELECT _id, (SELECT count(*) FROM t b WHERE b.k = a.k AND b._id < a._id) FROM t a WHERE a._id <= 2000 ORDER BY 1', 12);
is_answered('a merge join', 'SET enable_hashjoin = off; SET enable_nestloop = off; SELECT a.n, b.m FROM keys a JOIN (SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) AS m FROM keys OFFSET 0) b USING (n) ORDER BY 1', 12);
is_answered('Gather', q{SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys ORDER BY n; SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys WHERE w = 3 ORDER BY n LIMIT 30}, 24);
is_answered('CREATE TABLE AS', 'CREATE TEMP TABLE c AS SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) AS m FROM keys; SELECT * FROM c ORDER BY 1', 12);

# arguments of aggregates
my $counted = '(SELECT count(*) FROM t WHERE t.k = keys.k)';
is_answered('an argument', "SELECT sum($counted), count(*) FROM keys", 12);
is_answered('arguments of groups', "SELECT p, max($counted), json_agg(json_build_object('n', n, 'v', (SELECT max(t.v) FROM t WHERE t.k = keys.k)) ORDER BY n)::text FROM keys GROUP BY p ORDER BY p", 24);
is_answered('of sorted groups', "SET enable_hashagg = off; SELECT p, sum($counted) FROM keys GROUP BY p ORDER BY p", 12);
is_answered('of the first groups', "SET enable_hashagg = off; SELECT p, sum($counted) FROM keys GROUP BY p ORDER BY p LIMIT 3", 12);
is_answered('of grouping sets', "SELECT p, w, sum($counted), count(w) FROM keys GROUP BY GROUPING SETS ((p), (w), ()) ORDER BY 1, 2", 200);
is_answered('with FILTER, DISTINCT and ORDER BY', "SELECT w, sum($counted) FILTER (WHERE n > 50), count(DISTINCT (SELECT max(t.w) FROM t WHERE t.k = keys.p)), string_agg(v, ',' ORDER BY $counted, n) FROM keys GROUP BY w ORDER BY w", 36);
is_answered('in HAVING', "SELECT p FROM keys GROUP BY p HAVING sum($counted) > 150 AND (SELECT count(*) FROM t WHERE t.k = keys.p) > 1 ORDER BY p", 24);
is_answered('beside a window', "SELECT p, sum(sum($counted)) OVER (ORDER BY p) FROM keys GROUP BY p ORDER BY p", 12);
is_answered('of an aggregate above a LATERAL list', "SELECT json_agg(json_build_object('n', n, 'l', list, 'c', $counted) ORDER BY n)::text FROM keys CROSS JOIN $list s", 24);
is_answered('of a correlated aggregate', "SELECT b.n, (SELECT sum($counted) FROM keys WHERE keys.n BETWEEN b.n AND b.n + 40) FROM keys b WHERE b.n % 300 = 0 ORDER BY 1", 400);

# a page, of which the other rows need nothing
my $page = 'SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k), (SELECT t.v FROM t WHERE t.k = keys.k ORDER BY t._id DESC LIMIT 1) FROM keys ORDER BY w, n LIMIT 20';
is_answered('a page', $page, 2, 2);
is_answered('a large page', $page =~ s/LIMIT 20/LIMIT 900/r, 2, 2);
is_answered('another page', "$page OFFSET 1000", 2, 2);
is_answered('a page without an order', $page =~ s/ORDER BY w, n LIMIT 20/LIMIT 20/r, 2, 2);
is_answered('a page with ties', 'SELECT n / 1000, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys ORDER BY 1, 2 FETCH FIRST 20 ROWS WITH TIES', 8);
is_answered('few rows', 'SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys WHERE n IN (1, 2) ORDER BY n', 2, 2);
is_answered('no row', 'SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys WHERE n < 0', 0);

# not needed, or not to be computed for each row
is_answered('guarded', 'SELECT n, CASE WHEN n > 10 THEN 0 ELSE (SELECT count(*) FROM t WHERE t.k = keys.k) END FROM keys ORDER BY n', 10, 5);
is_answered('EXISTS behind OR', 'SELECT n FROM keys WHERE w = 9 OR EXISTS (SELECT FROM t WHERE t._id = keys.n AND t.w > 0) ORDER BY n', 30);
is_answered('computed by what may fail', 'SELECT n, CASE WHEN n <> 5 THEN (SELECT count(*) FROM t WHERE t.k = 100 / (n - 5)) END FROM keys WHERE n < 50 ORDER BY n', 50);
is_answered('volatile', 'SELECT n, random() < 2, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys WHERE n <= 50 ORDER BY n', 50, 40);
# a row below LIMIT, EXISTS or a cursor is perhaps never read, and no error of it is raised
my $sorted = '(SELECT 1 / (n - 20) AS x, n FROM (SELECT n FROM keys ORDER BY n) k OFFSET 0)';
my $kept = '(SELECT count(*) FROM t WHERE t.k = s.n) > 4';
is_answered('not read because of LIMIT', "SELECT n FROM $sorted s WHERE $kept LIMIT 2", 8);
is_answered('not read because of EXISTS', "SELECT EXISTS (SELECT FROM $sorted s WHERE $kept)", 8);
is_answered('not read by a cursor', "BEGIN; DECLARE c CURSOR FOR SELECT n FROM $sorted s WHERE $kept; FETCH 2 FROM c; COMMIT", 8);
is_answered('not read by a semijoin', "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SELECT n FROM keys WHERE n < 5
	AND EXISTS (SELECT FROM $sorted s WHERE $kept AND s.n > keys.n AND s.n < keys.n + 10) ORDER BY n", 100);
is_answered('volatile, and not read', "CREATE TEMP SEQUENCE s; SELECT n FROM (SELECT nextval('s')::int AS n FROM keys OFFSET 0) s WHERE $kept LIMIT 3; SELECT currval('s')", 8, 3);
is_answered('a page of what may fail', 'SELECT n, (SELECT count(*) FROM t WHERE t.k = s.n) FROM (SELECT n FROM keys WHERE 7 / n > -1 ORDER BY n) s LIMIT 20', 1);
is_answered('read, since no row of it fails', "SELECT n FROM (SELECT * FROM keys WHERE n > 3 AND n < 3 + 900 ORDER BY n) s WHERE $kept LIMIT 200", 4);
is_answered('all of what may fail', "SELECT n FROM (SELECT * FROM keys WHERE n % 2 = 1) s WHERE $kept ORDER BY n", 8);
is_answered('turned off', 'SET mongo_fdw.enable_batched_joins = off; SET work_mem = \'64kB\'; SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys WHERE n <= 50 ORDER BY n', 50, 40);
like($node->safe_psql('postgres', q{SET search_path = foreigners, public;
	EXPLAIN (VERBOSE, COSTS OFF) SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys ORDER BY w, n LIMIT 20}),
	qr/^Custom Scan \(MongoDB Batched Subqueries\)\n  Output: keys\.n, \(SubPlan \w+\)|^Custom Scan \(MongoDB Batched Subqueries\)\n  Output: keys\.n, \(SELECT .*\), keys\.w\n  ->  Limit\n/m, 'EXPLAIN');
like($node->safe_psql('postgres', q{SET search_path = foreigners, public;
	EXPLAIN (VERBOSE, COSTS OFF) SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys}),
	qr/Remote Command.*"\$in".*keys of the outer rows/, 'EXPLAIN of the command');
like($node->safe_psql('postgres', q{SET search_path = foreigners, public;
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys}),
	qr/Custom Scan \(MongoDB Batched Subqueries\) \(actual rows=3000\S* loops=1\).*commands=3 documents=/s, 'EXPLAIN ANALYZE');
$node->safe_psql('postgres', "SET search_path = foreigners, public; EXPLAIN (FORMAT $_, VERBOSE, ANALYZE) $page") foreach 'JSON', 'XML', 'YAML';

# statements that change or lock rows
sub changes { my ($name, $statement, $most, $least) = @_; is_answered($name, "BEGIN; $statement; SELECT * FROM keys ORDER BY n, k, v; ROLLBACK", $most, $least) }
my $count = '(SELECT count(*) FROM t WHERE t.k = keys.k)';
changes('UPDATE', "UPDATE keys SET w = $count", 12);
changes('UPDATE with a condition', "UPDATE keys SET w = $count, v = upper(v) WHERE $count > 3 AND p <> 7", 24);
changes('UPDATE FROM', "UPDATE keys SET w = $count FROM keys o WHERE o.n = keys.n + 1 AND o.w < 3", 12);
changes('UPDATE of two columns', "UPDATE keys SET w = $count, (p, v) = (SELECT count(*), min(v) FROM t WHERE t.k = keys.w)", 24);
changes('UPDATE RETURNING', "UPDATE keys SET w = $count RETURNING n, (SELECT max(_id) FROM t WHERE t.k = keys.p)", 60);
changes('DELETE', "DELETE FROM keys WHERE $count > 4", 12);
changes('INSERT', "INSERT INTO keys SELECT n + 10000, k, $count FROM keys", 12);
changes('INSERT into what is read', "INSERT INTO t SELECT 50000 + n, k, $count, v, 1 FROM keys WHERE n <= 1000; SELECT * FROM t WHERE _id > 50000 ORDER BY 1; DELETE FROM t WHERE _id > 50000", 20);
changes('UPDATE of what is read', "UPDATE t u SET w = (SELECT sum(w) FROM t WHERE t.k = u.k) WHERE _id <= 15000; SELECT _id, w FROM t ORDER BY 1; UPDATE t SET w = _id % 3", 60);
changes('UPDATE of partitions', "CREATE TEMP TABLE parts (LIKE keys) PARTITION BY LIST (w); CREATE TEMP TABLE p1 PARTITION OF parts FOR VALUES IN (1);
	CREATE TEMP TABLE p2 PARTITION OF parts DEFAULT; INSERT INTO parts SELECT * FROM keys; UPDATE parts SET w = (SELECT count(*) FROM t WHERE t.k = parts.k); SELECT * FROM parts ORDER BY n", 24);
changes('UPDATE FROM LATERAL', "UPDATE keys SET w = c FROM keys o, LATERAL (SELECT count(*) AS c FROM t WHERE t.k = o.k) s WHERE o.n = keys.n", 12);
changes('FOR UPDATE of LATERAL', "SELECT n, s.* FROM keys CROSS JOIN $of_keys s ORDER BY n FOR UPDATE OF keys", 12);
changes('FOR UPDATE', "SELECT n, $count FROM keys WHERE $count > 3 ORDER BY n FOR UPDATE", 24);
changes('MERGE', "MERGE INTO keys USING (SELECT n AS m, $count AS c FROM keys) s ON m = n WHEN MATCHED THEN UPDATE SET w = c", 3000) if $node->safe_psql('postgres', 'SHOW server_version_num') >= 150000;
# a row that another transaction changes meanwhile is tested again
foreach my $statement ("UPDATE keys SET w = 100 + $count WHERE $count + k % 7 > 5", "SELECT n, k, $count FROM keys WHERE $count + k % 7 > 5 ORDER BY n FOR UPDATE",
	"SELECT n, k, c FROM keys CROSS JOIN $of_keys s WHERE c + k % 7 > 5 ORDER BY n FOR UPDATE OF keys")
{
	my @answers;
	foreach my $schema ('foreigners', 'locals')
	{
		my $first = MongoFdwTest::Session->new($node);
		$first->ask('BEGIN');
		$first->ask('UPDATE keys SET k = k + 1 WHERE n % 10 = 0');
		my $second = MongoFdwTest::background_query($node, "SET search_path = $schema, public; BEGIN; $statement; SELECT * FROM keys ORDER BY n; ROLLBACK");
		MongoFdwTest::becomes(sub { $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) > 0 }) or die 'it does not wait';
		$first->ask('COMMIT');
		push @answers, join(' ', $second->finish);
		$first->ask('UPDATE keys SET k = k - 1 WHERE n % 10 = 0');
	}
	is($answers[0], $answers[1], "tested again: $statement");
}

# errors are PostgreSQL's
sub is_error
{
	my ($name, $query, $error, @schemas) = @_;

	foreach my $schema (@schemas ? @schemas : ('foreigners', 'locals'))
	{
		my ($status, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET search_path = $schema, public; $query");
		like($err, $error, "$name: $schema");
	}
}
is_error('more than one row', 'SELECT n, (SELECT t._id FROM t WHERE t.k = keys.k) FROM keys', qr/21000/);
is_answered('more than one row, of which nobody asks', 'SELECT n, (SELECT t._id FROM t WHERE t.k = keys.k AND t._id <= 6000) FROM keys ORDER BY n', 12);
is_error('a division', 'SELECT n, (SELECT sum(100 / (t._id - 500)) FROM t WHERE t.k = keys.k) FROM keys', qr/22012/);
is_answered('a division, of which nobody asks', 'SELECT n, (SELECT sum(100 / (t._id - 500)) FROM t WHERE t.k = keys.k) FROM keys WHERE n < 500 AND k < 500 ORDER BY n', 12);

# cursors, prepared statements, savepoints
foreach my $schema ('foreigners')
{
	my %sessions = map { $_ => MongoFdwTest::Session->new($node) } 'foreigners', 'locals';
	my $both = sub
	{
		my ($name, @statements) = @_;
		my %answers = map { my $session = $sessions{$_}; $_ => join('|', map { $session->ask($_) } @statements) } keys %sessions;
		is($answers{foreigners}, $answers{locals}, $name);
	};
	$sessions{$_}->ask("SET search_path = $_, public") foreach keys %sessions;
	my $query = 'SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k), (SELECT max(x) FROM t WHERE t.v = keys.v) FROM keys ORDER BY n';
	$both->('a cursor', 'BEGIN', "DECLARE c NO SCROLL CURSOR FOR $query", 'FETCH 5 FROM c', 'SAVEPOINT s', 'FETCH 100 FROM c', 'ROLLBACK TO s',
		'FETCH 500 FROM c', 'MOVE 100 FROM c', 'FETCH ALL FROM c', 'COMMIT');
	$both->('a cursor of LATERAL', 'BEGIN', "DECLARE c CURSOR FOR SELECT n, s.* FROM keys CROSS JOIN $of_keys s ORDER BY n", 'FETCH 40 FROM c', 'FETCH 300 FROM c', 'COMMIT');
	$both->('a cursor of LATERAL that goes back', 'BEGIN', "DECLARE c SCROLL CURSOR FOR SELECT n, s.* FROM keys CROSS JOIN $of_keys s ORDER BY n", 'FETCH 40 FROM c',
		'FETCH BACKWARD 10 FROM c', 'COMMIT');
	$both->('a cursor that goes back', 'BEGIN', "DECLARE c SCROLL CURSOR FOR $query", 'FETCH 50 FROM c', 'FETCH BACKWARD 10 FROM c', 'FETCH 3 FROM c', 'COMMIT');
	$both->('a cursor whose row is changed', 'BEGIN', 'DECLARE c CURSOR FOR SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys FOR UPDATE', 'FETCH 3 FROM c',
		'UPDATE keys SET w = (SELECT 70 + count(*) FROM t WHERE t.k = keys.k) WHERE CURRENT OF c', 'SELECT * FROM keys WHERE w >= 70', 'ROLLBACK');
	$both->('a cursor that is held', 'BEGIN', "DECLARE c CURSOR WITH HOLD FOR $query", 'COMMIT', 'FETCH 700 FROM c', 'CLOSE c');
	$both->('prepared', 'SET plan_cache_mode = force_generic_plan',
		'PREPARE p (int) AS SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k AND t.w < $1) FROM keys WHERE n % $1 = 0 ORDER BY n LIMIT $1 * 20',
		map { "EXECUTE p($_)" } (1 .. 7, 3));
	$both->('in a function', 'DO $$ DECLARE r record; s bigint := 0; BEGIN FOR r IN SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) AS m FROM keys LOOP s := s + r.m * r.n; '
		. 'EXIT WHEN r.n > 1500; END LOOP; PERFORM set_config(\'x.s\', s::text, false); END $$', 'SHOW x.s');

	# interrupted, and again
	my $session = $sessions{foreigners};
	my $before = $session->ask($query);
	$mongod->fail_command(1, 96, 'find');
	like($session->ask($query), qr/ERROR/, 'an error of MongoDB');
	$mongod->block_commands(3000, 'find');
	$session->ask("SET statement_timeout = '1s'");
	like($session->ask($query), qr/canceling statement/, 'cancelled');
	$session->ask('RESET statement_timeout');
	$mongod->unblock_commands;
	is($session->ask($query), $before, 'and all is well again');
	is($session->ask('SELECT count(*) FROM pg_ls_tmpdir()'), 0, 'no file is left');
}

# memory: less than the batches' documents need, and files
is_answered('little memory', "SET work_mem = '64kB'; SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys WHERE n <= 300 ORDER BY n", 300);
is_answered('a small file', "SET temp_file_limit = '100kB'; SELECT n, (SELECT max(v || n) FROM t WHERE t.k = keys.k) FROM keys WHERE n <= 600 ORDER BY n", 600);
is_answered('long keys', q{SELECT n, (SELECT count(*) FROM t WHERE t.v = 'value ' || o.n || o.b OR t.v = o.b), (SELECT count(*) FROM t WHERE t.v = o.b)
	FROM (SELECT n, repeat('x', CASE WHEN n % 50 = 0 THEN 1500000 ELSE 20000 END) || n AS b FROM keys WHERE n <= 200 OFFSET 0) o ORDER BY n}, 220);

# documents that do not fit
$mongod->command('{"insert": "t", "documents": [{"_id": 90001, "k": 2650, "w": "wrong", "v": "x"}, {"_id": 90002, "k": [7], "w": 1, "v": "x"}]}', 'db');
my $by_value = 'SELECT n, (SELECT max(t.w || t.v) FROM t WHERE t.k = o.k) FROM (SELECT n, k + %d AS k FROM keys OFFSET 0) o WHERE n <= 300 ORDER BY n';
is_answered('a document that does not fit, of which nobody asks', sprintf($by_value, 2700), 8);
is_error('one that is asked for', sprintf($by_value, 2500), qr/could not read field "w"/, 'foreigners');
is_error('one with an array', sprintf($by_value, 0), qr/could not read field "k"/, 'foreigners');
foreach my $mismatch ('null', 'skip')
{
	$node->safe_psql('postgres', "ALTER FOREIGN TABLE foreigners.t OPTIONS (" . ($mismatch eq 'null' ? 'ADD' : 'SET') . " type_mismatch '$mismatch')");
	$node->safe_psql('postgres', $mismatch eq 'null' ? "INSERT INTO locals.t VALUES (90001, 2650, NULL, 'x'), (90002, NULL, 1, 'x')" : 'DELETE FROM locals.t WHERE _id > 90000');
	is_answered("type_mismatch $mismatch", sprintf($by_value, $_), 8) foreach 2500, 0;
}

# policies on the outer table
$node->safe_psql('postgres', q{CREATE ROLE someone; GRANT USAGE ON SCHEMA foreigners, locals TO someone; GRANT SELECT ON foreigners.t, locals.t, keys TO someone;
	GRANT USAGE ON FOREIGN SERVER mongodb TO someone; CREATE USER MAPPING FOR someone SERVER mongodb;
	ALTER TABLE keys ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON keys USING ((SELECT count(*) FROM locals.t WHERE t.k = keys.k) > 3)});
is_answered('a policy', 'SET ROLE someone; SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys ORDER BY n', 12);

# the first statement of a session loads the library, unless it is preloaded
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=';
	my $first = 'SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) FROM keys ORDER BY n';
	is_answered('the first statement', $first, 12);
	is_answered('the first one, of which not all rows are read', "$first LIMIT 20", 1);
	is_answered('the first one, prepared', "SET plan_cache_mode = force_generic_plan; PREPARE p AS $first; EXECUTE p; EXECUTE p; $first", 36);
	is_answered('the first one, in a function', q{DO $$ DECLARE r record; BEGIN FOR r IN SELECT n, (SELECT count(*) FROM t WHERE t.k = keys.k) AS m FROM keys LOOP
		PERFORM set_config('x.m', coalesce(current_setting('x.m', true), '') || r.m, false); END LOOP; END $$; SHOW x.m}, 12);
	is_answered('the first one, that goes back', "BEGIN; DECLARE c SCROLL CURSOR FOR $first; FETCH 30 FROM c; FETCH BACKWARD 10 FROM c; COMMIT", 40);
	is_answered('the first one, an UPDATE', 'BEGIN; UPDATE keys SET w = n / 2 + (SELECT count(*) FROM t WHERE t.k = keys.k); SELECT * FROM keys ORDER BY n; ROLLBACK', 12);
	like($node->safe_psql('postgres', "SET search_path = foreigners, public; EXPLAIN $first"), qr/Batched Subqueries/, 'the first one, explained');
}

done_testing();
