# Parameters of pipelines: values from conditions, outer rows and subselects.  The oracle is a
# view of a local table for each pipeline, which has the parameters as columns.

use strict;
use warnings;
use utf8;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('parameters', 'jit = off', 'max_parallel_workers_per_gather = 0');
create_server($node, 'mongodb', $mongod);

# A foreign table over collection c, and the view that stands for it.
sub create_table
{
	my ($name, $columns, $pipeline, $view) = @_;
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE foreigners.$name ($columns) SERVER mongodb
		OPTIONS (database 'db', collection 'c', pipeline '$pipeline')");
	$node->safe_psql('postgres', "CREATE VIEW locals.$name AS $view") if $view;
}

sub rows_in
{
	my ($schema, $sql) = @_;
	return $node->safe_psql('postgres', "SET search_path = $schema, public; $sql");
}

# The same answer as PostgreSQL's, and not an empty one; with 'commands', by so many commands.
sub same
{
	my ($name, $sql, $commands) = @_;
	my ($answer, $sent) = $mongod->asked($sql, 'foreigners');
	is($answer, rows_in('locals', $sql), $name);
	isnt($answer, '', "$name: rows");
	is($sent, $commands, "$name: commands") if defined $commands;
}

sub refused
{
	my ($name, $sql, $sqlstate, $message) = @_;
	my (undef, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET search_path = foreigners, public; $sql");
	utf8::decode($stderr);
	like($stderr, qr/ERROR:  $sqlstate: .*$message/s, $name);
	is($stdout, '', "$name: no row");
}

$node->safe_psql('postgres', q{
	CREATE SCHEMA foreigners;
	CREATE SCHEMA locals;
	CREATE FOREIGN TABLE foreigners.c (_id int, a int, t text, d numeric, tags int[]) SERVER mongodb OPTIONS (database 'db');
	CREATE TABLE locals.c AS SELECT g AS _id, CASE WHEN g % 11 > 0 THEN g % 10 END AS a, 'text' || g % 7 AS t,
		g / 4.0 AS d, ARRAY[g, g + 1] AS tags FROM generate_series(1, 100) g;
	INSERT INTO foreigners.c SELECT * FROM locals.c;
	CREATE TABLE o AS SELECT g AS x, 'text' || g AS y, g % 3 AS z FROM generate_series(1, 12) g;
	INSERT INTO o VALUES (NULL, NULL, 1), (3, 'text3', 2);
	ANALYZE locals.c;
	ANALYZE o});
my $fields = '_id int, a int, t text, d numeric';
create_table('s', "$fields, q int OPTIONS (parameter 'q')",
	'[{"$match": {"a": {"$eq": {"$param": "q"}}}}]', 'SELECT _id, a, t, d, a AS q FROM locals.c');
create_table('two', "$fields, q bigint OPTIONS (parameter 'q', path 'p.q'), w text OPTIONS (parameter 'W')",
	'[{"$match": {"$expr": {"$gt": ["$a", {"$param": "q"}]}, "t": {"$param": "W"}}}]',
	'SELECT _id, a, t, d, q, t AS w FROM locals.c JOIN generate_series(-20, 20) q ON a > q');

# --- conditions and what is above them ----------------------------------------
same('a constant', 'SELECT * FROM s WHERE q = 3 ORDER BY _id', 1);
same('two parameters', q{SELECT * FROM two WHERE w = 'text4' AND 5 = q ORDER BY _id}, 1);
same('count', 'SELECT count(*) FROM s WHERE q = 3', 1);
same('aggregates', 'SELECT sum(d), max(a + q), min(q), count(DISTINCT q) FROM s WHERE q = 4', 1);
same('GROUP BY the parameter', 'SELECT q, t, count(*) FROM s WHERE q = 4 GROUP BY q, t ORDER BY t', 1);
same('DISTINCT', 'SELECT DISTINCT q, a FROM s WHERE q = 4', 1);
same('other conditions', 'SELECT _id FROM s WHERE q = 4 AND _id > 20 AND d < 20 AND length(t) = q + 1 ORDER BY _id', 1);
same('conditions on it', 'SELECT q, _id FROM s WHERE q = 4 AND q > 2 AND q + a = 8 AND q IS NOT NULL ORDER BY _id', 1);
same('LIMIT', 'SELECT _id, q FROM s WHERE q = 5 ORDER BY _id DESC LIMIT 3');
same('the whole row', 'SELECT s FROM s WHERE q = 5 ORDER BY _id LIMIT 1');
same('an aggregate over nothing', 'SELECT count(*), max(q) FROM s WHERE q = 77', 1);
same('NULL, which nothing equals', 'SELECT count(*) FROM s WHERE q = NULL', 0);
same('a NULL parameter', 'PREPARE p (int) AS SELECT count(*), max(q) FROM s WHERE q = $1; EXECUTE p (NULL)', 0);
same('a value that is computed', q{SELECT _id, q FROM s WHERE q = length('abc') + extract(day FROM date '2024-01-01')::int ORDER BY 1}, 1);
same('a subselect', 'SELECT _id, q FROM s WHERE q = (SELECT max(z) FROM o) ORDER BY 1', 1);
same('two values', q{SELECT count(*) FROM s WHERE q = 3 AND q = 4});
same('two parameters of a statement for one', q{PREPARE p (int, bigint) AS SELECT count(*) FROM s WHERE q = $1 AND q = $2; EXECUTE p (3, 3)});
same('which differ', q{PREPARE p (int, bigint) AS SELECT count(*) FROM s WHERE q = $1 AND q = $2; EXECUTE p (3, 4)});
same("prepared, $_", "SET plan_cache_mode = $_; PREPARE p (int, text) AS SELECT count(*) FROM two WHERE q = \$1 AND w = \$2;
	EXECUTE p (1, 'text1'); EXECUTE p (7, 'text2')", 2) foreach 'force_generic_plan', 'force_custom_plan';
same("without pushdown, $_", "SET mongo_fdw.enable_pushdown = off; SELECT $_ FROM s WHERE q = 3", 1)
	foreach 'count(*)', 'sum(q + a)';
same('a UNION', 'SELECT _id, q FROM s WHERE q = 3 UNION ALL SELECT _id, q FROM s WHERE q = 4 ORDER BY 1', 2);
same('PL/pgSQL', q{CREATE OR REPLACE FUNCTION pg_temp.f(i int) RETURNS bigint LANGUAGE plpgsql AS
	$$BEGIN RETURN (SELECT sum(_id) FROM s WHERE q = i); END$$; SELECT pg_temp.f(g) FROM generate_series(1, 9) g});
same('a cursor that is rewound', 'BEGIN; DECLARE u SCROLL CURSOR FOR SELECT _id FROM s WHERE q = 6 ORDER BY _id; FETCH 3 FROM u;
	MOVE ABSOLUTE 0 IN u; FETCH 5 FROM u; COMMIT');

# --- outer rows -----------------------------------------------------------------
foreach my $settings ('', 'SET mongo_fdw.enable_pushdown = off;', 'SET enable_nestloop = off; SET enable_memoize = off;')
{
	my $by = $settings || 'as planned';
	same("a join ($by)", "$settings SELECT x, z, s.* FROM o JOIN s ON s.q = x ORDER BY x, z, _id");
	same("LATERAL ($by)", "$settings SELECT x, r.* FROM o, LATERAL (SELECT _id, q FROM s WHERE s.q = o.x ORDER BY _id LIMIT 2) r ORDER BY x, z, _id");
	same("LATERAL with an aggregate ($by)", "$settings SELECT x, r.* FROM o, LATERAL (SELECT count(*), max(q) FROM s WHERE s.q = o.x + 1) r ORDER BY x, z");
	same("a left join ($by)", "$settings SELECT x, z, _id, q FROM o LEFT JOIN s ON s.q = o.x AND _id < 20 ORDER BY x, z, _id");
	same("EXISTS ($by)", "$settings SELECT x, z FROM o WHERE EXISTS (SELECT FROM s WHERE s.q = o.x AND s._id < 15) ORDER BY x, z");
	same("NOT EXISTS ($by)", "$settings SELECT x, z FROM o WHERE NOT EXISTS (SELECT FROM s WHERE s.q = o.x AND s._id < 15) ORDER BY x, z");
	same("IN ($by)", "$settings SELECT _id, q FROM s WHERE q IN (SELECT x FROM o WHERE z = 1) ORDER BY _id");
	same("a scalar subselect ($by)", "$settings SELECT x, (SELECT string_agg(t, ',' ORDER BY _id) FROM s WHERE q = x AND _id < 30) FROM o ORDER BY x, z");
	same("two outer tables ($by)", "$settings SELECT o.x, p.y, two.* FROM o JOIN o p ON p.z = o.z JOIN two ON two.q = o.x AND two.w = p.y ORDER BY o.x, p.y, p.x, o.z, p.z, _id");
	same("one value from each ($by)", "$settings SELECT x, two.* FROM o JOIN two ON two.q = o.x WHERE two.w = 'text2' ORDER BY x, z, _id");
	same("one after another ($by)", "$settings SELECT s._id, two._id, two.w FROM s JOIN two ON two.w = s.t WHERE s.q = 3 AND two.q = 7 ORDER BY 1, 2");
	same("through an equivalence ($by)", "$settings SELECT o.x, p.z, s._id FROM o JOIN o p ON p.x = o.x JOIN s ON s.q = p.x ORDER BY 1, 2, o.z, 3");
}
same('a join that is aggregated', 'SELECT x, count(*), sum(d) FROM o JOIN s ON s.q = x GROUP BY x ORDER BY x');
same('three levels', 'SELECT x, (SELECT sum(r._id) FROM s r WHERE r.q = (SELECT min(a) FROM s i WHERE i.q = x)) FROM o ORDER BY x, z');
same('recursion', 'WITH RECURSIVE r(n, i) AS (SELECT 1, 1 UNION ALL SELECT n + 1, (SELECT min(_id) FROM s WHERE q = n + 1) FROM r WHERE n < 5) SELECT * FROM r ORDER BY 1');
same('rows that are locked', 'SELECT x, _id FROM o JOIN s ON s.q = x WHERE _id < 20 ORDER BY x, z, _id FOR UPDATE OF o');
same('many outer tables', 'SET geqo_threshold = 2; SELECT a1.x, s._id FROM o a1 JOIN o a2 ON a1.x = a2.x JOIN o a3 ON a2.x = a3.x JOIN s ON s.q = a3.x WHERE a1.z = 1 ORDER BY 1, 2');
like(rows_in('foreigners', 'EXPLAIN SELECT * FROM o JOIN s ON s.q = x'), qr/Nested Loop(?!.*Batched)/s, 'no batched join asks for values of a parameter');
like(rows_in('foreigners', 'SET enable_hashjoin = off; SET enable_mergejoin = off; ANALYZE o;
	EXPLAIN SELECT * FROM s JOIN c ON c._id = s._id WHERE s.q = 3'), qr/\$lookup|Batched/, 'rows of a pipeline join others as ever');
same('a join below it', 'SELECT c._id, c.tags, q FROM s JOIN c ON c._id = s._id WHERE s.q = 3 ORDER BY 1');

same('UPDATE from it', 'BEGIN; CREATE TEMP TABLE u AS SELECT x, z, y FROM o; UPDATE u SET y = s.t FROM s WHERE s.q = u.x AND s._id < 8; SELECT * FROM u ORDER BY x, z; ROLLBACK');
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE foreigners.s OPTIONS (ADD type_mismatch 'null')});
same("type_mismatch 'null': $_", $_) foreach 'SELECT _id, q FROM s WHERE q = 3 AND a > 2 AND _id < 50 ORDER BY _id LIMIT 3', 'SELECT count(*), max(q) FROM s WHERE q = 4',
	'SELECT x, _id FROM o JOIN s ON s.q = x ORDER BY 1, 2';
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE foreigners.s OPTIONS (DROP type_mismatch)});
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE foreigners.tags (_id int, a int, tag int OPTIONS (path 'tags'), n int, q int OPTIONS (parameter 'q')) SERVER mongodb
		OPTIONS (database 'db', collection 'c', pipeline '[{"$match": {"a": {"$param": "q"}}}]', unwind 'tags', ordinality 'n');
	CREATE VIEW locals.tags AS SELECT _id, a, tag, n::int, a AS q FROM locals.c, unnest(tags) WITH ORDINALITY AS t (tag, n)});
same("unwound: $_", $_) foreach 'SELECT * FROM tags WHERE q = 3 AND tag > 30 ORDER BY _id, n', 'SELECT q, count(*), sum(tag) FROM tags WHERE q = 3 GROUP BY q',
	'SELECT x, tags.* FROM o JOIN tags ON q = x AND tag = x ORDER BY x, z, n';

# --- views, partitions, policies ---------------------------------------------------
foreach my $schema ('foreigners', 'locals')
{
	$node->safe_psql('postgres', qq{
		CREATE VIEW $schema.v AS SELECT _id, q AS asked, t FROM $schema.s WHERE _id > 10;
		CREATE VIEW $schema.either AS SELECT _id, q FROM $schema.s UNION ALL SELECT -_id, q FROM $schema.s WHERE t = 'text1';
		CREATE VIEW $schema.grouped AS SELECT q, t, count(*) FROM $schema.s GROUP BY q, t;
		CREATE VIEW $schema.secured WITH (security_barrier) AS SELECT * FROM $schema.two WHERE w = current_setting('my.w') AND _id % 2 = 0});
}
same('a view', 'SELECT * FROM v WHERE asked = 4 ORDER BY 1', 1);
same('a view joined', 'SELECT x, v.* FROM o JOIN v ON asked = x ORDER BY x, z, _id');
same('a view of UNION ALL', 'SELECT * FROM either WHERE q = 4 ORDER BY 1, 2', 2);
same('a view that groups', 'SELECT * FROM grouped WHERE q = 4 ORDER BY t', 1);
my $w = "SET my.w = 'text3';";
same('a security barrier', "$w SELECT * FROM secured WHERE q = 2 ORDER BY _id", 1);
same('which gives the value itself', "$w SELECT count(*) FROM secured WHERE q = 2 AND w = 'text4'", 0);
same('also with a value that is not known when it is planned',
	"$w SET plan_cache_mode = force_generic_plan; PREPARE p (text) AS SELECT count(*), min(w) FROM secured WHERE q = 2 AND w = \$1; EXECUTE p ('text4')");
same('or the same one', "$w SELECT _id, q, w FROM secured WHERE q = 2 AND w = 'text3' AND length(t) = 5 ORDER BY 1", 1);
foreach my $schema ('foreigners', 'locals')
{
	my $kind = $schema eq 'locals' ? '' : 'FOREIGN';
	my $part = $schema eq 'locals' ? '' : q{SERVER mongodb OPTIONS (database 'db', collection 'c', pipeline '[{"$match": {"a": {"$eq": {"$param": "q"}}}}]')};
	$node->safe_psql('postgres', qq{
		CREATE TABLE $schema.parts (q int, k text, _id int) PARTITION BY LIST (k);
		CREATE TABLE $schema.here PARTITION OF $schema.parts FOR VALUES IN ('here');
		INSERT INTO $schema.here VALUES (3, 'here', -1);
		CREATE $kind TABLE $schema.there (_id int, q int @{[$kind ? "OPTIONS (parameter 'q')" : '']}, k text @{[$kind ? "OPTIONS (path 't')" : '']}) $part;
		ALTER TABLE $schema.parts ATTACH PARTITION $schema.there DEFAULT});
}
$node->safe_psql('postgres', q{INSERT INTO locals.there SELECT _id, a, t FROM locals.c WHERE a IS NOT NULL});
same('a partition', 'SELECT * FROM parts WHERE q = 3 ORDER BY _id', 1);
same('a partition joined', 'SELECT x, parts.* FROM o JOIN parts ON q = x ORDER BY x, z, _id');

# --- values that are missing ---------------------------------------------------------
my $no_value = 'parameter "q" of foreign table "s" has no value.*HINT:  Add a condition q = value';
refused("no value: $_", $_, '42P02', $no_value) foreach 'SELECT * FROM s', 'SELECT count(*) FROM s WHERE q > 3', 'SELECT _id FROM s WHERE q IN (1, 2)',
	'SELECT _id FROM s WHERE q = 1 OR q = 2', 'SELECT _id FROM s WHERE q = a', 'SELECT _id FROM s WHERE q IS NULL',
	'SELECT x FROM s LEFT JOIN o ON q = x', 'SELECT x FROM s FULL JOIN o ON q = x', 'SELECT _id FROM s WHERE q = random()::int',
	'SELECT _id FROM (SELECT * FROM s LIMIT 3) l WHERE q = 3', 'SET enable_seqscan = off; SELECT max(_id) FROM s', 'SELECT _id FROM s WHERE q::bigint = 3';
refused('one of two', q{SELECT * FROM two WHERE q = 3}, '42P02', 'parameter "W" of foreign table "two" has no value.*HINT:  Add a condition w = value');
refused('beside a NULL', 'SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS SELECT * FROM two WHERE q = $1; EXECUTE p (NULL)', '42P02', 'parameter "W"');
like(rows_in('foreigners', 'EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM two WHERE q = 3'),
	qr/\[ "\$a", \{ "\$literal" : "'3'::bigint" \} \].*"t" : \{ "\$param" : "W" \}/, 'which EXPLAIN shows');
like(rows_in('foreigners', q{SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS SELECT * FROM s WHERE q = $1; EXPLAIN (VERBOSE, COSTS OFF) EXECUTE p (3)}),
	qr/"\$eq" : "\$1"/, 'EXPLAIN shows the parameter');
like(rows_in('foreigners', q{SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS SELECT * FROM s WHERE q = $1; EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) EXECUTE p (3)}),
	qr/"\$eq" : 3/, 'EXPLAIN ANALYZE shows its value');
create_table('lacking', "$fields, q int OPTIONS (parameter 'q')", '[{"$match": {"a": {"$param": "r"}}}]');
create_table('none', $fields, '[{"$match": {"a": {"$param": "q"}}}]');
create_table('twice', "$fields, q int OPTIONS (parameter 'q'), p int OPTIONS (parameter 'q')", '[{"$match": {"a": {"$param": "q"}}}]');
create_table('odd', "$fields, q int OPTIONS (parameter 'q')", '[{"$match": {"a": {"$param": "q", "$gt": 1}, "t": {"$param": 5}}}]');
refused('no column', 'SELECT * FROM lacking WHERE q = 1', '42P02', 'the pipeline of foreign table "lacking" has a parameter "r" without a column');
refused('no column at all', 'SELECT * FROM none', '42P02', 'the pipeline of foreign table "none" has a parameter "q" without a column');
refused('two columns', 'SELECT * FROM twice WHERE q = 1 AND p = 1', '22023', 'two columns of foreign table "twice" have the parameter "q"');
refused('what is no parameter', 'SELECT * FROM odd WHERE q = 1', '\w+', 'unknown operator: \$param');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE foreigners.plain (_id int, q int OPTIONS (parameter 'q')) SERVER mongodb OPTIONS (database 'db', collection 'c')});
refused('no pipeline', 'SELECT * FROM plain WHERE q = 1', '22023', 'option "parameter" of column "q" requires the option "pipeline" of its table');
refused('an empty name', q{ALTER FOREIGN TABLE s ALTER a OPTIONS (ADD parameter '')}, '22023', 'must not be empty');
refused('INSERT', 'INSERT INTO s VALUES (1)', '55000', 'does not allow');

# --- what needs no values -------------------------------------------------------------
my (undef, undef, $warning) = $node->psql('postgres', 'ANALYZE foreigners.s');
like($warning, qr/WARNING:  skipping "s" --- cannot analyze this foreign table/, 'ANALYZE skips the table');
is($node->safe_psql('postgres', q{SELECT count(*) FROM mongo_fdw_check('foreigners.s')}), 0, 'mongo_fdw_check() finds nothing');
is($node->safe_psql('postgres', q{SELECT count(*) FROM mongo_fdw_refresh('foreigners', new_tables => false) AS r WHERE r LIKE '%foreigners.s %'}), 0,
	'nor does mongo_fdw_refresh()');
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE foreigners.s OPTIONS (ADD use_remote_estimate 'true', ADD estimated_rows '7')});
like(rows_in('foreigners', 'EXPLAIN SELECT * FROM s WHERE q = 3'), qr/rows=7 /, 'estimated_rows is what a value gives');
like(rows_in('foreigners', 'SET mongo_fdw.explain_remote = on; EXPLAIN SELECT * FROM s WHERE q = 3'), qr/COLLSCAN/, "MongoDB's plan");
refused('for which it needs the value', 'SET mongo_fdw.explain_remote = on; EXPLAIN SELECT * FROM s', '42P02', $no_value);
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE foreigners.s DROP q CASCADE, ADD r int OPTIONS (parameter 'q')});
is(rows_in('foreigners', 'SELECT count(*), max(r) FROM s WHERE r = 3'), rows_in('locals', 'SELECT count(*), max(q) FROM s WHERE q = 3'), 'another column');

# --- types --------------------------------------------------------------------------
$node->safe_psql('postgres', q{
	CREATE TYPE mood AS ENUM ('fine', 'sad');
	CREATE DOMAIN positive AS int CHECK (value > 0);
	CREATE TYPE pair AS (x int, y text)});
my $number = 0;
foreach my $type ([ 'int', 5 ], [ 'smallint', 5 ], [ 'bigint', '9007199254740993' ], [ 'numeric', '1.10' ], [ 'numeric(6,2)', '1.10' ], [ 'float8', "'0.1'" ], [ 'float8', "'NaN'" ],
	[ 'real', "'0.5'" ], [ 'text', "'it''s'" ], [ 'text', "'5f1e2d3c4b5a69788796a5b4'" ], [ 'varchar(5)', "'abc'" ], [ 'char(5)', "'ab'" ], [ 'name', "'n'" ],
	[ 'boolean', 'true' ], [ 'boolean', 'false' ], [ 'date', "'2024-02-29'" ], [ 'timestamp(3)', "'2024-02-29 12:00:00.123'" ], [ 'timestamptz', "'2024-02-29 12:00:00.5'" ],
	[ 'uuid', "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'" ], [ 'bytea', "'\\x00ff'" ], [ 'objectid', "'5f1e2d3c4b5a69788796a5b4'" ], [ 'jsonb', q{'{"a": [1, {"$oid": "5f1e2d3c4b5a69788796a5b4"}]}'} ],
	[ 'jsonb', "'null'" ], [ 'int[]', "'{1,NULL,3}'" ], [ 'text[]', q{'{$a,"b c"}'} ], [ 'mood', "'sad'" ], [ 'positive', 7 ], [ 'pair', q{'(1,"$x")'::pair} ],
	[ 'inet', "'10.0.0.1'" ], [ 'interval', "'1 day'" ], [ 'int4range', "'[1,5)'" ], [ 'point', "'(1,2.5)'" ])
{
	my ($name, $value) = @$type;
	my $operator = $name eq 'point' ? '~=' : '=';
	my $table = 'typed' . $number++;
	$node->safe_psql('postgres', qq{
		CREATE FOREIGN TABLE $table (_id int, v $name) SERVER mongodb OPTIONS (database 'db');
		INSERT INTO $table VALUES (1, $value), (2, NULL);
		CREATE FOREIGN TABLE asked_$table (_id int, v $name, p $name OPTIONS (parameter 'p')) SERVER mongodb
			OPTIONS (database 'db', collection '$table', pipeline '[{"\$match": {"v": {"\$eq": {"\$param": "p"}}}}]')});
	my $expected = $value eq "'null'" ? 0 : 1;    # which is NULL in a field
	is($node->safe_psql('postgres', "SELECT count(*) FROM asked_$table WHERE p $operator $value"), $value eq "'null'" ? 2 : 1, "$name = $value");
	is($node->safe_psql('postgres', "PREPARE p ($name) AS SELECT v $operator p, p $operator $value FROM asked_$table WHERE p $operator \$1 AND _id = 1; EXECUTE p ($value)"),
		't|t', "$name as a parameter of $value, and read again") if $expected;
}
my $over = q{(_id int, %s OPTIONS (parameter 'p')) SERVER mongodb OPTIONS (database 'db', collection 'typed0', pipeline '[]')};
my %typed = (v3 => 'p varchar(3)', n1 => 'p numeric(4,1)', i4 => 'p int', i8 => 'p bigint', d => 'p date', f4 => 'p real', id => 'p objectid', dom => 'p positive', b => 'p boolean');
$node->safe_psql('postgres', "CREATE FOREIGN TABLE foreigners.$_ " . sprintf($over, $typed{$_})) foreach sort keys %typed;
foreach my $case ([ 'v3', "'abcd'", '' ], [ 'v3', "'abc'", 'abc' ], [ 'n1', '1.25', '' ], [ 'n1', '1.5', '1.5' ], [ 'i4', '5::bigint', '5' ], [ 'i4', '5::smallint', '5' ], [ 'i8', '5', '5' ],
	[ 'd', "timestamp '2024-01-01'", '2024-01-01' ], [ 'd', "timestamp '2024-01-01 12:00'", '' ], [ 'f4', '0.1::float8', '' ], [ 'f4', '0.5::float8', '0.5' ])
{
	my ($table, $value, $expected) = @$case;
	is(rows_in('foreigners', "SELECT DISTINCT p FROM $table WHERE p = $value"), $expected, "$typed{$table} = $value");
	is(rows_in('foreigners', "SELECT DISTINCT p FROM $table JOIN (VALUES ($value)) v(x) ON p = x"), $expected, "$typed{$table} = $value of an outer row");
}
refused('a number out of range', 'SELECT * FROM i4 WHERE p = 5000000000', '22003', 'integer out of range');
refused('an infinite date', "SELECT * FROM d WHERE p = 'infinity'", '22008', 'infinite date cannot be written');
is(rows_in('foreigners', 'SELECT DISTINCT p FROM b WHERE p'), 't', 'a boolean that is true');
is(rows_in('foreigners', 'SELECT DISTINCT p FROM b WHERE NOT p'), 'f', 'or false');
is(rows_in('foreigners', 'SELECT DISTINCT p FROM b JOIN o ON p = (x > 3) ORDER BY 1'), "f\nt", 'or of an outer row');

# --- hostile values ------------------------------------------------------------------
$mongod->insert('db', 'people', q([{"_id": 1, "name": "a", "password": "secret", "j": {"x": 1}},
	{"_id": 2, "name": "$password", "password": "$5", "j": {"$gt": 1}}, {"_id": 3, "name": "same", "password": "same"}]));
sub create_search
{
	my ($name, $type, $pipeline) = @_;
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE foreigners.$name (_id int, name text, x jsonb, q $type OPTIONS (parameter 'q'), r text OPTIONS (parameter 'r'))
		SERVER mongodb OPTIONS (database 'db', collection 'people', pipeline '$pipeline')");
}

# name, in place of {"$param": "q"} in a pipeline: the same with a jsonb or a text
my %places = (
	field => '[{"$match": {"name": P}}]',
	nested => '[{"$match": {"$or": [{"j": P}, {"$nor": [{}]}]}}]',
	listed => '[{"$match": {"name": {"$in": [P, "b"]}}}]',
	equal => '[{"$match": {"j": {"$eq": P}}}]',
	expr => '[{"$match": {"$expr": {"$eq": ["$name", P]}}}]',
	set => '[{"$set": {"x": P}}]',
	in_set => '[{"$set": {"x": {"$concat": ["<", P, ">"]}}}]',
	array => '[{"$set": {"x": [1, {"y": P}]}}]',
	grouped => '[{"$group": {"_id": 1, "x": {"$max": P}}}]',
	looked => '[{"$lookup": {"from": "people", "let": {"q": P}, "pipeline": [{"$match": {"$expr": {"$eq": ["$name", "$$q"]}}}, {"$set": {"name": P}}], "as": "x"}}, {"$limit": 1}]',
	facet => '[{"$facet": {"x": [{"$match": {"name": P}}, {"$project": {"_id": 1, "y": P}}]}}]',
	union => '[{"$limit": 1}, {"$unionWith": {"coll": "people", "pipeline": [{"$match": {"name": P}}]}}]',
	limit => '[{"$limit": P}]',
	bucket => '[{"$bucket": {"groupBy": P, "boundaries": ["$", "z"], "output": {"query": {"$push": P}}}}]',
	literal => '[{"$bucket": {"groupBy": {"$literal": P}, "boundaries": ["$", "z"]}}]',
	window => '[{"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"x": {"$max": P}}}}]',
	whole => '[{"$match": P}]',
	stage => '[{"$set": {}}, {"$facet": {"x": P}}]',
);
foreach my $place (sort keys %places)
{
	create_search("j_$place", 'jsonb', $places{$place} =~ s/\bP\b/{"\$param": "q"}/gr);
	create_search("t_$place", 'text', $places{$place} =~ s/\bP\b/{"\$param": "q"}/gr);
}

# place, value, what it gives, or the message of an error as [message]
my $not_plain = 'parameter "q" of foreign table "\w+" must be plain data';
foreach my $case (
	[ t_field => '$password', '2' ], [ t_field => '{"$ne": null}', '' ], [ t_listed => '$password', '2' ], [ t_union => '$password', "1\n2" ],
	[ t_expr => '$password', '2' ], [ t_expr => '$name', '' ], [ t_expr => '$$ROOT', '' ],
	[ t_limit => '$name', [$not_plain] ], [ t_bucket => '$name', [$not_plain] ], [ t_window => '$password', [$not_plain] ],
	[ j_field => '{"$ne": null}', [$not_plain] ], [ j_field => '{"$param": "r"}', [$not_plain] ], [ j_field => '{"$parameter": 0}', [$not_plain] ],
	[ j_field => '{"a": [{"$where": "sleep(1)"}]}', [$not_plain] ], [ j_field => '{"$where": "true"}', [$not_plain] ], [ j_field => '"$password"', '2' ],
	[ j_field => '{"$regularExpression": {"pattern": ".", "options": ""}}', [$not_plain] ], [ j_field => '{"$code": "true"}', [$not_plain] ],
	[ j_field => '{"$verbatim": []}', [$not_plain] ], [ j_field => '{"name": "a"}', '' ],
	[ j_nested => '{"$gt": 1}', [$not_plain] ], [ j_nested => '{"x": 1}', '1' ],
	[ j_listed => '{"$regularExpression": {"pattern": ".", "options": ""}}', [$not_plain] ], [ j_listed => '["a"]', '' ],
	[ j_equal => '{"$gt": 1}', '2' ], [ j_equal => '{"$param": "r"}', '' ], [ j_equal => '{"$parameter": 0}', '' ], [ j_equal => '{"$function": {"body": "x"}}', '' ],
	[ j_expr => '{"$function": {"body": "function() { return 1 }", "args": [], "lang": "js"}}', '' ], [ j_expr => '{"$literal": "a"}', '' ], [ j_expr => '"a"', '1' ],
	[ j_limit => '1', '1' ], [ j_limit => '{"$add": [1, 1]}', [$not_plain] ], [ j_bucket => '{"$literal": "a"}', [$not_plain] ],
	[ j_literal => '{"$toString": "$_id"}', ['MongoDB error'] ],
	[ j_whole => '{"$where": "true"}', [$not_plain] ], [ j_whole => '{"$or": [{"name": "a"}]}', [$not_plain] ], [ j_whole => '{"name": "a"}', '1' ],
	[ j_stage => '[{"$match": {}}]', [$not_plain] ], [ j_union => '{"$gt": ""}', [$not_plain] ])
{
	my ($table, $value, $expected) = @$case;
	my $literal = $value =~ s/'/''/gr;
	my $sql = "SELECT _id FROM $table WHERE q = '$literal' AND r = 'secret' ORDER BY 1";
	if (ref $expected) { refused("$table: $value", $sql, $expected->[0] eq $not_plain ? '22023' : '\w+', $expected->[0]) }
	else { is(rows_in('foreigners', $sql), $expected, "$table: $value") }
}

# In expressions every value is what it is, and is read as that again.
foreach my $value ('$password', '$$ROOT', '{"$param": "r"}', '{"$parameter": 0}', '{"$function": {"body": "x"}}', '{"$literal": 1}', '[{"$add": [1, 2]}, "$name"]', '{"a": {"$ne": null}}')
{
	my $json = $value =~ /^[\[{]/ ? $value : "\"$value\"";
	foreach my $case ([ set => 'x' ], [ array => q{x #> '{1,y}'} ], [ grouped => 'x' ], [ facet => q{coalesce(x #> '{0,y}', q)} ], [ looked => q{coalesce(x #> '{0,name}', q)} ])
	{
		my ($place, $expression) = @$case;
		next if $place eq 'facet' && $value =~ /^[\[{]/;    # is a filter, too
		is(rows_in('foreigners', "SELECT bool_and($expression = q AND q = '$json') FROM j_$place WHERE q = '$json' AND r = 'secret'"), 't', "$place: $value");
	}
	next if $value =~ /^[\[{]/;
	is(rows_in('foreigners', "SELECT DISTINCT x FROM t_in_set WHERE q = '$value' AND r = ''"), "\"<$value>\"", "a text: $value");
}

# JavaScript is the author's to write, if the server's owner allows it.
create_search('js', 'text', '[{"$match": {"$where": {"$param": "q"}}}]');
refused('JavaScript', q{SELECT * FROM js WHERE q = 'true' AND r = ''}, '42501', 'must not use \$where');

# Large values: the command would be too long, also by a small value in many places.
refused('a value of 17 MB', q{SELECT _id FROM t_equal WHERE q = repeat('x', 17000000) AND r = ''}, '54000', 'command for MongoDB is too large');
create_search('often', 'text', '[{"$match": {"$or": [' . join(', ', ('{"name": {"$param": "q"}}') x 40) . ']}}]');
refused('of 1 MB in 40 places', q{SELECT _id FROM often WHERE q = repeat('x', 1000000) AND r = ''}, '54000', 'command for MongoDB is too large');
is(rows_in('foreigners', q{SELECT count(*) FROM often WHERE q = repeat('x', 1000) AND r = ''}), 0, 'of 1 kB');
my $deep = '{"a":' x 300 . '1' . '}' x 300;
refused('a deep value', "SELECT _id FROM j_set WHERE q = '$deep' AND r = ''", '\w+', '');

# --- hostile names ---------------------------------------------------------------------
foreach my $name ('q', '$param', 'a.b', 'with "quotes" \\', 'ä 世', '$verbatim', '0', 'x' x 300)
{
	my $json = $name =~ s/(["\\])/\\$1/gr;
	my $sql = qq{CREATE FOREIGN TABLE foreigners.named (_id int, "Odd ""column"" ä" int OPTIONS (parameter '$name', path 'v')) SERVER mongodb
		OPTIONS (database 'db', collection 'c', pipeline '[{"\$match": {"a": {"\$eq": {"\$param": "$json"}}}}]')};
	utf8::encode($sql);
	$node->safe_psql('postgres', $sql);
	my $query = 'SELECT count(*), max("Odd ""column"" ä") FROM named WHERE "Odd ""column"" ä" = 3';
	utf8::encode($query);
	is(rows_in('foreigners', $query), '9|3', "a parameter named " . substr($json, 0, 20) =~ s/[^ -~]/?/gr);
	refused('without a value', 'SELECT * FROM named', '42P02', 'parameter "' . quotemeta($name) . '" of foreign table "named" has no value.*Odd "column" ä = value');
	$node->safe_psql('postgres', 'DROP FOREIGN TABLE foreigners.named');
}
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE foreigners.paths (_id int, "a.b" int OPTIONS (parameter 'p'), __doc jsonb) SERVER mongodb OPTIONS (database 'db', collection 'c', pipeline '[{"$project": {"t": 1}}, {"$limit": 1}]')});
is(rows_in('foreigners', 'SELECT "a.b" FROM paths WHERE "a.b" = 3'), '3', 'a path');
is(rows_in('foreigners', qq{SELECT __doc - '_id' - 't'$_ FROM paths WHERE "a.b" = 3}), $_ ? '{"a": {"b": 3}}|3' : '{}', 'in the whole document, if it is read')
	foreach '', ', "a.b"';

# --- scores -----------------------------------------------------------------------------
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE places (_id int, loc point, words text) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO places SELECT n, point(n, n), 'word' || n || ' coffee' FROM generate_series(1, 9) n;
	CREATE FOREIGN TABLE found (_id int, words text, q text OPTIONS (parameter 'q')) SERVER mongodb
		OPTIONS (database 'db', collection 'places', pipeline '[{"$match": {"$text": {"$search": {"$param": "q"}}}}]');
	CREATE FOREIGN TABLE near (_id int, distance float8, here point OPTIONS (parameter 'here'), metres float8 OPTIONS (parameter 'metres')) SERVER mongodb
		OPTIONS (database 'db', collection 'places', pipeline '[{"$geoNear": {"near": {"$param": "here"}, "maxDistance": {"$param": "metres"},
			"query": {"words": {"$ne": "$x"}}, "distanceField": "distance", "key": "loc"}}]')});
$mongod->command('{"createIndexes": "places", "indexes": [{"key": {"loc": "2dsphere"}, "name": "loc"}, {"key": {"words": "text"}, "name": "words"}]}', 'db');
is($node->safe_psql('postgres', q{SELECT _id, mongo_score(f) FROM found f WHERE q = 'word3 coffee' ORDER BY mongo_score(f) DESC LIMIT 1}), '3|1.5', 'a text score');
is($node->safe_psql('postgres', q{SELECT count(*), sum(s) FROM (SELECT mongo_score(f) AS s, f.q FROM found f WHERE q = 'word3 coffee' OFFSET 0) s}), '9|7.5', 'with the value');
is($node->safe_psql('postgres', q{SELECT w, r._id FROM (VALUES ('word1'), ('word2 word3 coffee'), ('none'), ('$where')) v(w),
	LATERAL (SELECT _id, mongo_score(f) FROM found f WHERE q = w ORDER BY mongo_score(f) DESC, _id LIMIT 1) r ORDER BY 1}), "word1|1\nword2 word3 coffee|2", 'of each row');
is($node->safe_psql('postgres', q{SELECT _id, round(mongo_score(n)) = round(distance) FROM near n WHERE here ~= point(4, 4) AND metres = 200000}), "4|t\n5|t\n3|t", 'distances');
is($node->safe_psql('postgres', q{SELECT p._id, count(*) FROM places p JOIN near n ON n.here ~= p.loc WHERE metres = 200000 GROUP BY 1 ORDER BY 1 LIMIT 2}), "1|2\n2|3", 'places near others');
refused('no score', q{SELECT mongo_score(s) FROM two s WHERE q = 1 AND w = 'text1'}, '\w+', 'text ?score');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE foreigners.sorted (_id int) SERVER mongodb OPTIONS (database 'db', collection 'c', pipeline '[{"$sort": {"_id": 1}}]')});
refused('of another stage', 'SELECT mongo_score(s) FROM sorted s', '0A000', 'mongo_score\(\) can only be computed by MongoDB');

done_testing();
