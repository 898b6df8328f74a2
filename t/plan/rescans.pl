# Scans that are begun again: within a statement no document is fetched twice for the
# same, whatever the plan is.  Counted by MongoDB; the answers are local tables'.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('rescans', 'jit = off', 'max_parallel_workers_per_gather = 0');
create_server($node, 'mongodb', $mongod, fetch_size => 500);
$node->safe_psql('postgres', q{
	CREATE SCHEMA foreigners;
	CREATE FOREIGN TABLE foreigners.t (_id int, k int OPTIONS (indexed 'true'), w int, v text) SERVER mongodb
		OPTIONS (database 'db', collection 't', estimated_rows '3000');
	CREATE FOREIGN TABLE foreigners.small (_id int NOT NULL, n int) SERVER mongodb
		OPTIONS (database 'db', collection 'small', estimated_rows '10');
	CREATE SCHEMA locals;
	CREATE TABLE locals.t AS SELECT g AS _id, CASE WHEN g % 7 > 0 THEN g % 100 END AS k, g % 100 AS w, 'value ' || g AS v
		FROM generate_series(1, 3000) g;
	CREATE TABLE locals.small AS SELECT g AS _id, CASE WHEN g <> 4 THEN g % 3 END AS n FROM generate_series(1, 10) g;
	INSERT INTO foreigners.t SELECT * FROM locals.t;
	INSERT INTO foreigners.small SELECT * FROM locals.small;
	ANALYZE locals.t, locals.small;
	CREATE TABLE keys AS SELECT g AS n, g % 3 AS k FROM generate_series(1, 30) g;
	ANALYZE keys;
	GRANT SELECT ON ALL TABLES IN SCHEMA foreigners, public TO PUBLIC});
$mongod->command('{"createIndexes": "t", "indexes": [{"key": {"k": 1}, "name": "k"}]}', 'db');

# Every join is a nested loop that keeps nothing itself.
my $bare = join(' ', map { "SET $_ = off;" } qw(enable_hashjoin enable_mergejoin enable_material enable_memoize
	enable_sort mongo_fdw.enable_batched_joins mongo_fdw.enable_join_pushdown));

# So many commands and getMores, and the local tables' answer.
sub is_asked
{
	my ($name, $sql, $commands, $get_mores, $settings) = @_;
	my $all = $bare . ($settings // '') . $sql;
	my ($rows, @sent) = $mongod->asked($all, 'foreigners');
	is($rows, ($mongod->asked($all, 'locals'))[0], "$name: the answer");
	is("@sent", "$commands $get_mores", "$name: commands and getMores");
}

# A nested loop over all of t for each of ten rows: two commands, and 6 or 7 batches of t once.
my $loop = 'SELECT count(*), sum(length(v)), min(v || n), max(v || n) FROM small JOIN t ON n < w';
is_asked('nested loop', $loop, 2, 6);
is_asked('in a temporary file', $loop, 2, 6, "SET work_mem = '64kB';");
is_asked('with Material', $loop, 2, 6, 'SET enable_material = on;');
is_asked('left join', 'SELECT count(*), sum(n), count(v) FROM small LEFT JOIN t ON n > w', 2, 6);
is_asked('a part of the rows is enough', 'SELECT count(*), sum(n) FROM small WHERE n IS NOT NULL AND EXISTS (SELECT 1 FROM t WHERE w > n)', 2, 0);
is_asked('none is', 'SELECT count(*), sum(n) FROM small WHERE NOT EXISTS (SELECT 1 FROM t WHERE w < n - 5)', 2, 6);
is_asked('the first of an order in parts', 'SELECT count(*), sum(k), sum(n) FROM small LEFT JOIN (SELECT k, w FROM t ORDER BY k DESC LIMIT 700) s ON w > n',
	1 + 2, 0, 'SET enable_sort = on;');
like($node->safe_psql('postgres', "SET search_path = foreigners; $bare EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $loop"),
	qr/Foreign Scan on t .*loops=10\).*Commands Saved: 9/s, 'EXPLAIN ANALYZE');

# by parameters, of which three and NULL come
is_asked('scans by parameter', 'SELECT small._id, count(*), max(v) FROM small JOIN t ON n = k GROUP BY 1 ORDER BY 1', 4, 0, 'SET enable_sort = on;');
is_asked('a correlated sub-select', 'SELECT n, (SELECT max(v || n) FROM t WHERE k = n) FROM small ORDER BY _id', 4, 0, 'SET enable_sort = on;');
is_asked('LATERAL', 'SELECT n, v FROM small, LATERAL (SELECT v FROM t WHERE k = n ORDER BY _id LIMIT 3) s ORDER BY 1, 2', 4, 0,
	'SET enable_sort = on;');
is_asked('min, for which one row is enough', 'SELECT n, (SELECT min(_id) FROM t WHERE k = n) FROM small ORDER BY _id', 4, 0, 'SET enable_sort = on;');
is_asked('an aggregate of nothing', 'SELECT n, (SELECT count(*) FROM t WHERE k = n + 100) FROM small ORDER BY _id', 4, 0, 'SET enable_sort = on;');
is_asked('a list by parameter', 'SELECT n, (SELECT count(v) FROM t WHERE k = ANY (ARRAY[n, 5])) FROM small ORDER BY _id', 5, 0, 'SET enable_sort = on;');
is_asked('a scan without parameters beside one with',
	'SELECT n, (SELECT count(*) FROM t a JOIN t b ON length(a.v) + a.w = b._id WHERE b.k = n) FROM small ORDER BY _id', 1 + 3 + 1, 6,
	'SET enable_sort = on; SET enable_hashjoin = on;');

# more values than work_mem holds: some are asked for again, and the answer is right
my ($rows) = $mongod->asked("$bare SET work_mem = '64kB'; SELECT sum((SELECT sum(length(v || n)) FROM t WHERE t.k = g % 90)) FROM generate_series(1, 300) g, small", 'foreigners');
is($rows, ($mongod->asked('SELECT sum((SELECT sum(length(v || n)) FROM t WHERE t.k = g % 90)) FROM generate_series(1, 300) g, small', 'locals'))[0],
	'more values than fit');

# a scan that is begun once keeps nothing: no file, however little work_mem there is
sub temporary_files
{
	$node->safe_psql('postgres', 'SELECT pg_stat_clear_snapshot(); SELECT temp_files FROM pg_stat_database WHERE datname = current_database()') =~ /(\d+)/;
	return $1;
}
my $session = MongoFdwTest::Session->new($node);
$session->ask("SET search_path = foreigners, public; SET work_mem = '64kB'; $bare");
my $before = temporary_files();
$session->ask('SELECT count(*), max(v) FROM t');
$session->ask('SELECT sum(length(v)) FROM t WHERE k > 3');
$session->ask("SELECT pg_stat_force_next_flush()") if $session->ask('SHOW server_version_num') >= 150000;
is(temporary_files(), $before, 'begun once: no temporary file');
$session->ask($loop);
$session->ask("SELECT pg_stat_force_next_flush()") if $session->ask('SHOW server_version_num') >= 150000;
cmp_ok(temporary_files(), '>', $before, 'begun again: there is one');

# the answer does not change within a statement, whatever happens to the documents
$node->safe_psql('postgres', q{CREATE FUNCTION write_one() RETURNS int LANGUAGE sql VOLATILE AS
	$$SELECT 0 FROM mongo_command('mongodb', 'db', '{"insert": "t", "documents": [{"k": 1, "v": "new"}]}')$$});
is($session->ask('SELECT count(DISTINCT c) FROM (SELECT (SELECT count(v) FROM t WHERE k = keys.k) + write_one() AS c FROM keys WHERE keys.k = 1) s'),
	1, 'documents written meanwhile');
$mongod->command('{"delete": "t", "deletes": [{"q": {"v": "new"}, "limit": 0}]}', 'db');

# cursors, and errors that are caught
is($session->ask(q{DO $$
	DECLARE c CURSOR FOR SELECT n, v FROM foreigners.small JOIN foreigners.t ON n < w ORDER BY small._id, t._id; r record; total int := 0;
	BEGIN
		OPEN c;
		FOR i IN 1 .. 5000 LOOP
			BEGIN
				FETCH c INTO r;
				total := total + r.n;
				IF i % 10 = 0 THEN RAISE division_by_zero; END IF;
			EXCEPTION WHEN division_by_zero THEN
				total := total + 1;
			END;
		END LOOP;
		RAISE EXCEPTION 'total %', total;
	END $$}) =~ s/.*total (\d+).*/$1/sr,
	$node->safe_psql('postgres', 'SELECT sum(n) + 500 FROM (SELECT n FROM locals.small JOIN locals.t ON n < w ORDER BY small._id, t._id LIMIT 5000) s')
	=~ s/\s//gr, 'a cursor over subtransactions');
foreach my $limit (0, 10, 100)
{
	$session->ask("SET temp_file_limit = $limit");
	is($session->ask($loop), ($mongod->asked("SET work_mem = '64kB'; $bare $loop", 'locals'))[0], "temp_file_limit = $limit");
	is($session->ask('SELECT n, (SELECT max(v || n) FROM t WHERE k = n) FROM small WHERE _id = 3'),
		($mongod->asked('SELECT n, (SELECT max(v || n) FROM t WHERE k = n) FROM small WHERE _id = 3', 'locals'))[0], '... by parameter');
}
$session->ask('RESET temp_file_limit');
$session->ask("SET statement_timeout = '1s'");
$mongod->block_commands(2000, 'getMore');
like($session->ask($loop), qr/canceling statement/, 'cancelled');
$mongod->unblock_commands;
$session->ask('RESET statement_timeout');
is($session->ask($loop), $node->safe_psql('postgres', "SET search_path = locals; $loop"), 'and all is well again');
$session->ask('BEGIN');
$session->ask("DECLARE c CURSOR FOR SELECT n, v FROM small JOIN t ON n < w");
$session->ask('MOVE 4000 IN c');
$session->ask('CLOSE c; COMMIT');
my $open = $mongod->command('{"aggregate": 1, "pipeline": [{"$currentOp": {"idleCursors": true, "allUsers": true}},'
	. ' {"$match": {"type": "idleCursor"}}], "cursor": {}}');
is(scalar @{ $open->{cursor}{firstBatch} }, 0, 'no cursor stays open');

# rows that are to be changed have a number each, and are read anew
$node->safe_psql('postgres', "SET search_path = foreigners, public; $bare
	UPDATE t SET v = v || keys.n FROM keys WHERE t.k < keys.k - 1 AND keys.n < 6;
	SET search_path = locals, public; UPDATE t SET v = v || keys.n FROM keys WHERE t.k < keys.k - 1 AND keys.n < 6");
is($node->safe_psql('postgres', 'SELECT count(*) FROM foreigners.t a JOIN locals.t b USING (_id) WHERE a.v = b.v'), 3000, 'UPDATE');

# a policy that lets other rows be seen each time: a document that does not fit is an error
# when its row may be seen, and not before
$mongod->insert('db', 'rows', '[{"_id": 1, "o": 1, "x": 10}, {"_id": 2, "o": 2, "x": "wrong"}, {"_id": 3, "o": 3, "x": 30}]');
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE rows (_id int, o int, x int) SERVER mongodb OPTIONS (database 'db', collection 'rows');
	CREATE FUNCTION is_seen(o int, n int) RETURNS bool LANGUAGE plpgsql STABLE AS 'BEGIN RETURN o <= n; END';
	CREATE VIEW seen WITH (security_barrier) AS SELECT * FROM rows;});
sub seen { return $session->ask("SELECT n, (SELECT sum(x) FROM (SELECT * FROM public.rows WHERE is_seen(o, current_setting('my.o')::int)"
	. " OFFSET 0) s) FROM keys, LATERAL (SELECT set_config('my.o', '$_[0]', true)) c WHERE n < 4") }
like(seen(1), qr/could not read field "x"/, 'a document that does not fit');

# a MongoDB transaction, parallel workers, and asynchronous scans of partitions
$node->safe_psql('postgres', q{
	CREATE TABLE foreigners.parts (_id int, k int, w int, v text) PARTITION BY RANGE (_id);
	CREATE FOREIGN TABLE foreigners.part_1 PARTITION OF foreigners.parts FOR VALUES FROM (MINVALUE) TO (1001) SERVER mongodb
		OPTIONS (database 'db', collection 'part_1', async_capable 'true');
	CREATE FOREIGN TABLE foreigners.part_2 PARTITION OF foreigners.parts FOR VALUES FROM (1001) TO (MAXVALUE) SERVER mongodb
		OPTIONS (database 'db', collection 'part_2', async_capable 'true');
	INSERT INTO foreigners.parts SELECT * FROM locals.t;
	CREATE VIEW locals.parts AS SELECT * FROM locals.t});
is_asked('partitions', $loop =~ s/\bt\b/parts/r =~ s/JOIN t/JOIN parts/r, 3, 6);
is_asked('the first rows of partitions', 'SELECT count(*), sum(n) FROM small WHERE n IS NOT NULL AND EXISTS (SELECT 1 FROM parts WHERE w > n)', 3, 0);

done_testing();
