# What a statement reads and writes, in SQL's order: data-modifying CTEs, RETURNING,
# triggers, functions and cursors over the collections that are written, each beside
# local tables with the same rows, with and without transactions of MongoDB's.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $alone = MongoFdwTest::Mongod->new;
my $set = MongoFdwTest::ReplicaSet->new(1);
my $member = $set->primary;
my $node = new_postgres('order_of_writes');
my %servers = (alone => $alone, member => $member, off => $member);

# The tables of each schema: t and u are filled, e is empty; "again", "viewed" and
# "piped" are t under other names, "upserted" is t with upserts, root has partitions; u and e
# inherit parts.
$node->safe_psql('postgres', q{
	CREATE SCHEMA local;
	CREATE TABLE local.t (_id int PRIMARY KEY, k int, b text);
	CREATE TABLE local.u (_id int PRIMARY KEY, k int, b text);
	CREATE TABLE local.e (_id int PRIMARY KEY, k int, b text);
	CREATE VIEW local.again AS SELECT * FROM local.t;
	CREATE VIEW local.viewed AS SELECT * FROM local.t;
	CREATE VIEW local.piped AS SELECT * FROM local.t;
	CREATE VIEW local.upserted AS SELECT * FROM local.t;
	CREATE TABLE local.root (_id int, k int, b text) PARTITION BY LIST (b);
	CREATE TABLE local.here PARTITION OF local.root FOR VALUES IN ('here');
	ALTER TABLE local.root ATTACH PARTITION local.t DEFAULT;
	CREATE TABLE local.parts (_id int, k int, b text);
	ALTER TABLE local.u INHERIT local.parts;
	ALTER TABLE local.e INHERIT local.parts});
foreach my $name (sort keys %servers)
{
	my $mongod = $servers{$name};
	my $database = "db_$name";

	create_server($node, $name, $mongod, batch_size => 3, fetch_size => 2,
		$name eq 'off' ? (replica_set => undef, transactions => 'off') : ());
	$mongod->command('{"create": "viewed", "viewOn": "t", "pipeline": []}', $database);
	$mongod->command('{"create": "viewed_u", "viewOn": "u", "pipeline": []}', $database);
	my $columns = '(_id int, k int, b text)';
	$node->safe_psql('postgres', qq{
		CREATE SCHEMA $name;
		CREATE FOREIGN TABLE $name.t (_id int, k int OPTIONS (indexed 'true'), b text) SERVER $name OPTIONS (database '$database');
		CREATE FOREIGN TABLE $name.u $columns SERVER $name OPTIONS (database '$database');
		CREATE FOREIGN TABLE $name.e $columns SERVER $name OPTIONS (database '$database');
		CREATE FOREIGN TABLE $name.again $columns SERVER $name OPTIONS (database '$database', collection 't');
		CREATE FOREIGN TABLE $name.viewed $columns SERVER $name OPTIONS (database '$database');
		CREATE FOREIGN TABLE $name.viewed_u $columns SERVER $name OPTIONS (database '$database');
		CREATE FOREIGN TABLE $name.piped $columns SERVER $name OPTIONS (database '$database', collection 't', pipeline '[{"\$match": {}}]');
		CREATE FOREIGN TABLE $name.upserted $columns SERVER $name OPTIONS (database '$database', collection 't', insert_mode 'upsert');
		CREATE TABLE $name.root $columns PARTITION BY LIST (b);
		CREATE TABLE $name.here PARTITION OF $name.root FOR VALUES IN ('here');
		CREATE FOREIGN TABLE $name.there PARTITION OF $name.root DEFAULT
			SERVER $name OPTIONS (database '$database', collection 't');
		CREATE TABLE $name.parts $columns;
		ALTER FOREIGN TABLE $name.u INHERIT $name.parts;
		ALTER FOREIGN TABLE $name.e INHERIT $name.parts});
}

# Functions that find their tables in the schema that is first on search_path.
$node->safe_psql('postgres', q{
	SET check_function_bodies = off;
	CREATE TABLE log (number serial, line text);
	CREATE FUNCTION seen() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
		BEGIN RETURN (SELECT count(*) || ' rows, ' || count(*) FILTER (WHERE b = 'new') || ' new' FROM t); END $$;
	CREATE FUNCTION seen_before() RETURNS text LANGUAGE plpgsql STABLE AS $$
		BEGIN RETURN (SELECT count(*) || ' rows, ' || count(*) FILTER (WHERE b = 'new') || ' new' FROM t); END $$;
	CREATE FUNCTION tens_of_parts() RETURNS int LANGUAGE plpgsql STABLE AS $$
		BEGIN RETURN (SELECT count(*) / 10 FROM parts WHERE b = 'old'); END $$;
	CREATE FUNCTION seen_in_view() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM viewed WHERE b = $$new$$';
	CREATE FUNCTION seen_guarded(i int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
		DECLARE n bigint;
		BEGIN
			SELECT count(*) INTO n FROM t WHERE b = 'new';
			IF i % 2 = 0 THEN RAISE division_by_zero; END IF;
			RETURN n;
		EXCEPTION WHEN division_by_zero THEN RETURN 'caught ' || n;
		END $$;
	CREATE FUNCTION add_row(i int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
		BEGIN INSERT INTO t VALUES (i, 0, 'added'); RETURN i; END $$;
	CREATE FUNCTION change_row(i int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
		BEGIN UPDATE t SET b = b || '+' WHERE _id = i; RETURN i; END $$;
	CREATE FUNCTION drop_row(i int) RETURNS text LANGUAGE sql VOLATILE AS 'DELETE FROM t WHERE _id = i RETURNING b';
	CREATE FUNCTION rows_of_t() RETURNS SETOF int LANGUAGE sql VOLATILE AS 'SELECT _id FROM t OFFSET 0';
	CREATE FUNCTION rows_by_loop() RETURNS SETOF int LANGUAGE plpgsql VOLATILE AS $$
		DECLARE r record; BEGIN FOR r IN SELECT * FROM t LOOP RETURN NEXT r._id; END LOOP; END $$;
	CREATE FUNCTION note_seen() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO log (line) VALUES (TG_WHEN || ' ' || TG_OP || ' ' || seen());
			RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
		END $$;
	CREATE FUNCTION write_more() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW._id < 1000 THEN INSERT INTO t VALUES (NEW._id + 1000, NEW.k, 'of a trigger'); END IF;
			RETURN NEW;
		END $$;
	CREATE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql AS $$
		DECLARE c refcursor := 'c'; BEGIN OPEN c FOR SELECT * FROM t WHERE _id > 3 ORDER BY _id; RETURN c; END $$;
	CREATE TABLE target (_id int PRIMARY KEY, b text);
	CREATE FUNCTION write_source() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO t VALUES (NEW._id + 2000, 1, 'source');
			RETURN NEW;
		END $$;
	CREATE TRIGGER write_source BEFORE INSERT OR UPDATE ON target FOR EACH ROW EXECUTE FUNCTION write_source()});

# fill: t and u with ten rows each, in all schemas.
sub fill
{
	my ($schema) = @_;

	if (my $mongod = $servers{$schema})
	{
		$mongod->command("{\"delete\": \"$_\", \"deletes\": [{\"q\": {}, \"limit\": 0}]}", "db_$schema") foreach qw(t u e);
		foreach my $collection (qw(t u))
		{
			my $documents = join ', ', map { "{\"_id\": $_, \"k\": @{[$_ % 3]}, \"b\": \"old\"}" } 0 .. 9;
			$mongod->command("{\"insert\": \"$collection\", \"documents\": [$documents]}", "db_$schema");
		}
	}
	else
	{
		$node->safe_psql('postgres', q{TRUNCATE local.t, local.u, local.e;
			INSERT INTO local.t SELECT g, g % 3, 'old' FROM generate_series(0, 9) g;
			INSERT INTO local.u SELECT * FROM local.t});
	}
}

# outcome: what statements print, and what is there afterwards.
sub outcome
{
	my ($schema, $sql, $first) = @_;
	my $upsert = $schema eq 'local' ? 'ON CONFLICT (_id) DO UPDATE SET k = excluded.k, b = excluded.b' : '';

	fill($schema);
	$sql =~ s/\{upsert\}/$upsert/g;
	$sql = "BEGIN; INSERT INTO u VALUES (500, 0, 'first'); $sql; COMMIT" if $first;
	my ($status, $stdout, $stderr) = $node->psql('postgres', qq{\\set VERBOSITY sqlstate
		TRUNCATE $schema.here; TRUNCATE log RESTART IDENTITY; TRUNCATE target;
		SET statement_timeout = '10s'; SET search_path = $schema, public; $sql;
		SET client_min_messages = error; ROLLBACK;
		SELECT 'after'; SELECT 't', _id, k, b FROM t ORDER BY 2; SELECT 'u', _id, k, b FROM u WHERE b <> 'old' ORDER BY 2;
		SELECT 'e', * FROM e ORDER BY 2; SELECT 'here', * FROM here ORDER BY 2; SELECT 'log', line FROM log ORDER BY number;
		SELECT 'target', * FROM target ORDER BY 2}, on_error_stop => 0);
	my @errors = $stderr =~ /ERROR:  (\w+)/g;

	# without a transaction what was written before an error stays
	$stdout =~ s/^after\n.*//ms if @errors;
	return join ' ', $stdout, @errors;
}

# alike: is it the same on every server, and as a later part of a transaction?
sub alike
{
	my ($name, $sql) = @_;

	foreach my $first (0, 1)
	{
		my $expected = outcome('local', $sql, $first);
		foreach my $schema (sort keys %servers)
		{
			# without transactions it is no later part of one
			next if $first && $schema eq 'off';
			is(outcome($schema, $sql, $first), $expected, "$schema: $name" . ($first ? ', later in a transaction' : ''));
		}
	}
}

# --------------------------- data-modifying CTEs, RETURNING ----------------------

my $deleted = 'WITH d AS (DELETE FROM t WHERE _id < 3 RETURNING *)';
alike('deleted and inserted, ON CONFLICT', "$deleted INSERT INTO t SELECT _id, k, 'new' FROM d ON CONFLICT DO NOTHING");
alike('deleted and inserted', "$deleted INSERT INTO t SELECT _id, k, 'new' FROM d");
alike('deleted and inserted, RETURNING', "$deleted INSERT INTO t SELECT _id, k, 'new' FROM d RETURNING *");
alike('deleted and upserted', "$deleted INSERT INTO upserted SELECT _id, k, 'new' FROM d {upsert}");
alike('deleted and upserted, RETURNING', "$deleted INSERT INTO upserted SELECT _id, k, 'new' FROM d {upsert} RETURNING _id, b");
alike('deleted by one command and inserted', "WITH d AS (DELETE FROM t WHERE _id = 2 RETURNING *) INSERT INTO t SELECT _id, k, 'new' FROM d");
alike('in the order of rows', "WITH d AS (DELETE FROM t WHERE _id IN (0, 1, 9) RETURNING *) INSERT INTO t SELECT _id + 1, k, 'new' FROM d ORDER BY _id DESC ON CONFLICT DO NOTHING");
alike('row after row', "$deleted INSERT INTO t SELECT _id + 1, k, 'new' FROM d ON CONFLICT DO NOTHING");
alike('row after row, without ON CONFLICT', "$deleted INSERT INTO t SELECT _id + 1, k, 'new' FROM d");
alike('under another name', "WITH d AS (DELETE FROM again WHERE _id < 3 RETURNING *) INSERT INTO t SELECT _id, k, 'new' FROM d");
alike('through partitions', "WITH d AS (DELETE FROM t WHERE _id < 6 RETURNING *) INSERT INTO root SELECT _id, k, 'new' FROM d");
alike('in two CTEs', "$deleted, i AS (INSERT INTO t SELECT _id, k, 'new' FROM d RETURNING *) SELECT * FROM i ORDER BY 1");
alike('to another collection', "$deleted INSERT INTO e SELECT * FROM d");
alike('two INSERTs', "WITH i AS (INSERT INTO t SELECT _id + 100, k, 'new' FROM u RETURNING *) INSERT INTO t SELECT _id + 100, k, b FROM i");
alike('a duplicate of another CTE', "WITH i AS (INSERT INTO t SELECT _id + 100, k, 'new' FROM u RETURNING *) INSERT INTO t SELECT _id, k, b FROM i");
alike('a duplicate of another CTE, ON CONFLICT',
	"WITH i AS (INSERT INTO t SELECT _id + 100, k, 'new' FROM u RETURNING *) INSERT INTO t SELECT _id + _id % 2, k, b FROM i ON CONFLICT DO NOTHING");
alike('a row is changed once', "WITH x AS (UPDATE t SET b = 'new' WHERE _id < 5 RETURNING *) DELETE FROM t USING x WHERE t._id = x._id OR t._id = 7");
alike('a row that is deleted is not changed', "WITH d AS (DELETE FROM t WHERE _id < 5 RETURNING *) UPDATE t SET b = 'new' FROM d WHERE t._id = d._id OR t._id = 7 RETURNING t.*");
alike('by one command each', "WITH x AS (UPDATE t SET b = 'new' WHERE _id = 5 RETURNING *), d AS (DELETE FROM t WHERE _id = 5 RETURNING *)
	SELECT (SELECT count(*) FROM x), (SELECT count(*) FROM d)");
alike('nothing reads the CTE', "WITH x AS (UPDATE t SET b = 'new' WHERE k = 1) UPDATE t SET b = b || '!' WHERE k = 2");

# the main query sees what was there before
alike('SELECT beside DELETE', "$deleted SELECT (SELECT count(*) FROM d), count(*) FROM t");
alike('SELECT beside UPDATE', "WITH x AS (UPDATE t SET b = 'new' RETURNING *) SELECT t.b, x.b FROM t JOIN x USING (_id) ORDER BY _id");
alike('SELECT beside UPDATE by one command', "WITH x AS (UPDATE t SET b = 'new' WHERE k = 1) SELECT b, count(*) FROM t GROUP BY 1");
alike('SELECT beside one row', "WITH x AS (UPDATE t SET b = 'new' WHERE _id = 1 RETURNING *) SELECT x.b, t.b FROM x, t WHERE t.k = 1 ORDER BY t._id");
alike('SELECT beside one row deleted', "WITH x AS (DELETE FROM t WHERE _id = 1 RETURNING *) SELECT count(*) FROM x, t");
alike('SELECT beside INSERT', "WITH i AS (INSERT INTO t SELECT _id + 100, k, 'new' FROM u RETURNING *) SELECT i._id, (SELECT count(*) FROM t WHERE t.k = i.k) FROM i ORDER BY 1");
alike('through a view', "WITH i AS (INSERT INTO t SELECT _id + 100, k, 'new' FROM u RETURNING *) SELECT i._id, (SELECT count(*) FROM viewed t WHERE t.k = i.k) FROM i ORDER BY 1");
alike('RETURNING with a sub-select', "INSERT INTO t SELECT _id + 100, k, 'new' FROM u RETURNING _id, (SELECT count(*) FROM t)");
alike('RETURNING with a correlated one', "UPDATE t SET b = 'new' WHERE _id < 5 RETURNING _id, (SELECT count(*) FROM t x WHERE x.k = t.k AND x.b = 'old')");
# by one command, RETURNING would see what it has changed
alike('RETURNING of one row with a sub-select', "DELETE FROM t WHERE _id = 3 RETURNING _id, (SELECT count(*) FROM t)");
alike('RETURNING of one row with a correlated one', "UPDATE t SET b = 'new' WHERE _id = 3 RETURNING _id, (SELECT count(*) FROM t x WHERE x.k = t.k AND x.b = 'old')");

# ------------------------------------- INSERT reads what it writes ----------------

foreach my $source ('t', 'again', 'viewed', 'piped', 'rows_of_t() f(_id)', 'rows_by_loop() f(_id)', 'root')
{
	alike("INSERT from $source", "INSERT INTO t (_id, b) SELECT _id + 1000, 'new' FROM $source");
}
alike('INSERT from a function in the target list', "INSERT INTO t (_id, b) SELECT rows_of_t() + 1000, 'new'");
alike('INSERT into a partition', "INSERT INTO root SELECT _id + 1000, 1, 'new' FROM t");
alike('INSERT into a partition from the table', "INSERT INTO root SELECT _id + 1000, k, 'new' FROM root");
alike('upserts', "INSERT INTO upserted SELECT _id + 1000, k, 'new' FROM viewed {upsert}");
alike('ON CONFLICT', "INSERT INTO t SELECT _id + 5, k, 'new' FROM viewed ON CONFLICT DO NOTHING");
alike('a sub-select for each row', "INSERT INTO t SELECT _id + 100, (SELECT count(*) FROM t WHERE t.k = u.k), 'new' FROM u");
alike('NOT EXISTS', "INSERT INTO t SELECT _id + 5, k, 'new' FROM u WHERE NOT EXISTS (SELECT FROM viewed t WHERE t._id = u._id + 5)");

# ------------------------------------------ functions and triggers ----------------

alike('a volatile function in UPDATE', "UPDATE t SET b = 'new', k = split_part(seen(), ' ', 3)::int");
alike('a stable function in UPDATE', "UPDATE t SET b = 'new', k = split_part(seen_before(), ' ', 3)::int + _id - _id");
alike('a stable function in DELETE of two tables', 'INSERT INTO e SELECT * FROM u; DELETE FROM parts WHERE k < tens_of_parts()');
alike('a stable function in UPDATE of two tables', "INSERT INTO e SELECT * FROM u; UPDATE parts SET b = 'new', k = tens_of_parts() WHERE b = 'old'");
alike('a volatile function in INSERT', "INSERT INTO t SELECT 100 + g, split_part(seen(), ' ', 3)::int, 'new' FROM generate_series(1, 10) g");
alike('over a view', "INSERT INTO t SELECT 100 + g, seen_in_view(), 'new' FROM generate_series(1, 10) g");
alike('with an exception block', "UPDATE t SET b = 'new', k = right(seen_guarded(_id), 1)::int");
alike('in RETURNING', "DELETE FROM t WHERE _id % 2 = 0 RETURNING _id, seen()");
alike('in RETURNING, stable', "DELETE FROM t WHERE _id % 2 = 0 RETURNING _id, seen_before()");
alike('in RETURNING of one row, stable', "UPDATE t SET b = 'new' WHERE _id = 3 RETURNING _id, seen_before()");
alike('above a CTE', "$deleted SELECT _id, seen() FROM d");
alike('above a CTE, stable', "$deleted SELECT _id, seen_before() FROM d");
alike('above one row of a CTE, stable', "WITH d AS (DELETE FROM t WHERE _id = 2 RETURNING *) SELECT _id, seen_before() FROM d");
alike('in ON CONFLICT, RETURNING', "INSERT INTO t SELECT 5 + g, split_part(seen(), ' ', 3)::int, 'new' FROM generate_series(1, 10) g ON CONFLICT DO NOTHING RETURNING _id");
alike('a function that inserts', "UPDATE t SET b = 'new', k = add_row(_id + 100)");
alike('a function that changes other rows', "UPDATE t SET b = 'new', k = change_row((_id + 5) % 10) WHERE _id < 5");
alike('a function that changes rows changed before', "INSERT INTO t SELECT 100 + g, change_row(99 + g), 'new' FROM generate_series(1, 10) g");
alike('a function that deletes rows inserted before', "INSERT INTO t SELECT 100 + g, g, 'new' || coalesce(drop_row(98 + g), '-') FROM generate_series(1, 10) g");
alike('a function that writes in RETURNING', "DELETE FROM t WHERE _id < 3 RETURNING add_row(_id)");

foreach my $operation ('INSERT INTO t SELECT _id + 10, k, $$new$$ FROM u', 'UPDATE t SET b = $$new$$ WHERE _id < 4', 'DELETE FROM t WHERE _id < 4',
	'INSERT INTO t SELECT _id + 5, k, $$new$$ FROM u ON CONFLICT DO NOTHING')
{
	foreach my $when ('BEFORE', 'AFTER')
	{
		foreach my $level ('ROW', 'STATEMENT')
		{
			alike("$when $level of $operation", "CREATE TRIGGER noted $when INSERT OR UPDATE OR DELETE ON t
				FOR EACH $level EXECUTE FUNCTION note_seen(); $operation; DROP TRIGGER noted ON t");
		}
	}
}
foreach my $when ('BEFORE', 'AFTER')
{
	alike("$when trigger that writes", "CREATE TRIGGER more $when INSERT ON t FOR EACH ROW EXECUTE FUNCTION write_more();
		INSERT INTO t SELECT _id + 100, k, 'new' FROM t; DROP TRIGGER more ON t");
}
alike('MERGE into a local table', "MERGE INTO target USING t ON target._id = t._id % 5 WHEN NOT MATCHED THEN INSERT VALUES (t._id, t.b)");
alike('MERGE from what it has written', "INSERT INTO target SELECT 2003; MERGE INTO target USING t ON target._id = t._id
	WHEN MATCHED THEN UPDATE SET b = t.b WHEN NOT MATCHED THEN INSERT VALUES (t._id, t.b)");

# -------------------------------------------------- cursors and loops -------------

foreach my $source ('t', 'viewed', 'piped', 'again', 'rows_of_t() f(_id)')
{
	alike("a loop over $source that inserts", "DO \$\$ DECLARE r record; BEGIN FOR r IN SELECT _id FROM $source LOOP
		IF r._id < 3000 THEN INSERT INTO t VALUES (r._id + 1000, 0, 'new'); END IF; END LOOP; END \$\$");
}
alike('a loop that updates', q{DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM t WHERE k < 100 ORDER BY k LOOP
	UPDATE t SET k = k + 10 WHERE _id = r._id; END LOOP; END $$});
alike('a loop that deletes', q{DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM t LOOP
	DELETE FROM t WHERE _id = r._id + 1; INSERT INTO log (line) VALUES (r._id); END LOOP; END $$});
alike('a loop that truncates', q{DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM t LOOP
	TRUNCATE t; INSERT INTO log (line) VALUES (r._id); END LOOP; END $$});
alike('a loop over a join', q{DO $$ DECLARE r record; BEGIN FOR r IN SELECT t._id FROM t JOIN u USING (_id) ORDER BY length(t.b), _id LOOP
	INSERT INTO t VALUES (r._id + 1000, 0, 'new'); END LOOP; END $$});
# by two commands, one for what is null
foreach my $first ('', 'UPDATE t SET k = NULL WHERE k = 1;')
{
	alike('a cursor in the order of a column that may be null', "UPDATE t SET k = NULL WHERE k = 0; DO \$\$ DECLARE r record; c CURSOR FOR SELECT k FROM t ORDER BY k; BEGIN
		OPEN c; FETCH c INTO r; $first DELETE FROM t; LOOP INSERT INTO log (line) VALUES (coalesce(r.k, -1)); FETCH c INTO r; EXIT WHEN NOT FOUND; END LOOP; END \$\$");
}
alike('... that is older than the transaction', q{DO $$ DECLARE r record; c CURSOR FOR SELECT k FROM t ORDER BY k; BEGIN
		OPEN c; FETCH c INTO r; UPDATE t SET k = NULL WHERE _id < 5; LOOP INSERT INTO log (line) VALUES (coalesce(r.k, -1)); FETCH c INTO r; EXIT WHEN NOT FOUND; END LOOP; END $$});
foreach my $source ('t', 'viewed')
{
	alike("a cursor over $source", "DO \$\$ DECLARE c CURSOR FOR SELECT * FROM $source; r record; BEGIN
		OPEN c; FETCH c INTO r; INSERT INTO t SELECT _id + 100, k, 'new' FROM u; FETCH c INTO r; DELETE FROM t;
		LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; INSERT INTO log (line) VALUES (r::text); END LOOP; CLOSE c; END \$\$");
}

# ----------------------------------------- scans that begin after a later write ---

foreach my $source ('t', 'viewed', 'again', 'rows_of_t() f(_id)')
{
	alike("a cursor over $source that is first read after a DELETE", "BEGIN; DECLARE c CURSOR FOR SELECT _id FROM $source ORDER BY _id; DELETE FROM t WHERE _id < 6; FETCH ALL FROM c; COMMIT");
}
alike('... WITH HOLD', 'BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t ORDER BY _id; DELETE FROM t WHERE _id < 6; UPDATE t SET b = $$new$$; COMMIT; FETCH ALL FROM c; CLOSE c');
alike('... under a savepoint', 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY _id; SAVEPOINT s; DELETE FROM t WHERE _id < 6; RELEASE s; DELETE FROM t; FETCH ALL FROM c; COMMIT');
alike('... after a write that it sees', 'BEGIN; UPDATE t SET b = $$seen$$; DECLARE c CURSOR FOR SELECT count(*), b FROM t GROUP BY b; DELETE FROM t; INSERT INTO t VALUES (1, 1, $$new$$); FETCH ALL FROM c; COMMIT');
alike('... by a condition that is evaluated', 'BEGIN; DECLARE c CURSOR FOR SELECT _id FROM t WHERE b = current_setting($$my.b$$) ORDER BY _id; SET my.b = $$old$$; DELETE FROM t WHERE _id < 6; FETCH ALL FROM c; COMMIT');
alike('... opened in PL/pgSQL', q{DO $$ DECLARE c refcursor; r record; n int := 3; BEGIN OPEN c FOR SELECT * FROM t WHERE _id > n ORDER BY _id; n := 8; DELETE FROM t WHERE k = 1;
	LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; INSERT INTO log (line) VALUES (r::text); END LOOP; END $$});
alike('... that a function returns', 'BEGIN; SELECT opened(); DELETE FROM t WHERE _id < 6; FETCH ALL FROM c; COMMIT');
alike('... that a block has opened that fails', q{DO $$ DECLARE c refcursor; BEGIN
	BEGIN OPEN c FOR SELECT * FROM t; PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END; DELETE FROM t WHERE _id < 6; END $$});
alike('a join that is first read after a DELETE', 'SET enable_nestloop = off; BEGIN; DECLARE c CURSOR FOR SELECT t._id, u.k FROM t JOIN u USING (_id) ORDER BY length(t.b), 1; DELETE FROM t WHERE _id < 6; DELETE FROM u WHERE k = 1; FETCH ALL FROM c; COMMIT');
alike('in the order of a column that may be null', 'UPDATE t SET k = NULL WHERE k = 0; BEGIN; DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k; UPDATE t SET k = NULL; FETCH ALL FROM c; COMMIT');
alike('a sub-select that is evaluated late', 'SELECT _id, add_row(_id + 100), (SELECT count(*) FROM t) FROM u ORDER BY _id');
alike('... after a CTE that writes', 'WITH w AS MATERIALIZED (SELECT add_row(100 + g) FROM generate_series(1, 3) g) SELECT count(*), (SELECT count(*) FROM t) FROM w');
alike('... in RETURNING of rows that are sent at once', "INSERT INTO t SELECT _id + 5, k, 'new' FROM u ON CONFLICT DO NOTHING RETURNING _id, (SELECT count(*) FROM t)");
alike('the next branch of an Append', q{SET enable_async_append = off; INSERT INTO e SELECT _id + 100, k, b FROM u; DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT * FROM parts LOOP UPDATE parts SET k = k + 100; INSERT INTO log (line) VALUES (r.k); END LOOP; END $$; SELECT sum(k) FROM parts});
alike('... with a value from a sub-select', q{SET enable_async_append = off; INSERT INTO e SELECT _id + 100, k, b FROM u; DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT * FROM parts WHERE k < (SELECT max(k) FROM t) LOOP UPDATE parts SET k = k + 100; INSERT INTO log (line) VALUES (r.k); END LOOP; END $$});
alike('the next branch of UNION ALL', q{SET enable_async_append = off; DO $$ DECLARE r record; BEGIN FOR r IN SELECT 1 AS k FROM generate_series(1, 60) UNION ALL SELECT k FROM t LOOP
	UPDATE t SET k = k + 1; INSERT INTO log (line) VALUES (r.k); END LOOP; END $$});
alike('a loop over outer rows and their inner rows', q{SET enable_hashjoin = off; SET enable_mergejoin = off; DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT u._id, t.b FROM u, t WHERE t._id = u._id AND u._id < 5 LOOP UPDATE t SET b = 'new' WHERE _id = r._id; END LOOP; END $$});

# what a block undoes is not sent later
$node->safe_psql('postgres', 'CREATE FUNCTION fails_at(i int, n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / (n - i); END $$');
alike('a cursor for UPDATE that fails in a block', q{DO $$ DECLARE c refcursor; r record; BEGIN
	OPEN c FOR UPDATE t SET b = 'new', k = fails_at(_id, 5) RETURNING *;
	BEGIN FETCH c INTO r; EXCEPTION WHEN division_by_zero THEN NULL; END;
	INSERT INTO log (line) VALUES (seen()); END $$});

# a scan that needs values of rows cannot be begun before a write; it matters if it begins later
my $late = q{SET work_mem = '64kB'; DO $$ DECLARE r record; BEGIN FOR r IN
	SELECT i, p, (SELECT count(*) FROM READ x WHERE x._id = i) FROM (SELECT i, repeat('x', 1000) AS p FROM generate_series(1, ROWS) i OFFSET 0) s LOOP
	UPDATE u SET k = 1; END LOOP; END $$; COMMIT};
foreach my $case ([ 'u', 200, '', '0A000' ], [ 'viewed_u', 200, '', '0A000' ], [ 't', 200, '', '' ], [ 'u', 6, 'BEGIN', '' ])
{
	my ($table, $rows, $begin, $state) = @$case;

	foreach my $schema (sort keys %servers)
	{
		fill($schema);
		my ($status, $stdout, $stderr) = $node->psql('postgres',
			"\\set VERBOSITY sqlstate\nSET search_path = $schema, public; $begin; " . $late =~ s/READ/$table/r =~ s/ROWS/$rows/r);
		is(join(' ', $stderr =~ /ERROR:  (\w+)/g), $state,
			"$schema: sub-selects over $table for each row, and writes " . ($begin ? 'when there are no more rows' : 'between'));
	}
}

# nor may a statement see its own writes, which its trigger has read; but rows to be changed may
# be read later
$node->safe_psql('postgres', 'CREATE FUNCTION sees() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM seen(); RETURN NEW; END $$');
foreach my $case ([ "b = (SELECT b || '!' FROM t y WHERE y._id = x._id - 1)", '0A000' ],
	[ "b = (SELECT b || '!' FROM u y WHERE y._id = x._id - 1)", '' ],
	[ "b = 'new' FROM (SELECT generate_series(2, 9) AS i OFFSET 0) y WHERE x._id = i", '' ])
{
	my ($change, $state) = @$case;

	foreach my $schema (sort keys %servers)
	{
		fill($schema);
		my ($status, $stdout, $stderr) = $node->psql('postgres', qq{\\set VERBOSITY sqlstate
			SET search_path = $schema, public; SET enable_hashjoin = off; SET enable_mergejoin = off; SET mongo_fdw.enable_batched_joins = off;
			BEGIN; CREATE TRIGGER sees BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION sees(); UPDATE t x SET $change; ROLLBACK});
		is(join(' ', $stderr =~ /ERROR:  (\w+)/g), $state, "$schema: a trigger reads the table, whose UPDATE sets $change");
	}
}

# a function in the scan's command cannot take the scan away
$node->safe_psql('postgres', q{CREATE FUNCTION takes(name refcursor) RETURNS int LANGUAGE plpgsql STABLE AS $$
	DECLARE r record; BEGIN
		IF current_setting('my.act') = 'close' THEN CLOSE name; ELSIF current_setting('my.act') = 'fetch' THEN FETCH name INTO r; END IF;
		RETURN 1; END $$});
foreach my $case ([ 'close', '24000' ], [ 'fetch', '55000' ])
{
	foreach my $schema (sort keys %servers)
	{
		fill($schema);
		my ($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY sqlstate\nSET search_path = $schema, public; SET my.act = 'none'; BEGIN; " .
			"DECLARE c CURSOR FOR SELECT _id FROM t WHERE k = takes('c'); SET LOCAL my.act = '$case->[0]'; DELETE FROM t");
		is(join(' ', $stderr =~ /ERROR:  (\w+)/g), $case->[1], "$schema: a scan that is begun before a DELETE, whose value would $case->[0] its cursor");
	}
}

# a subquery that is run again after a write, and again by two commands
$node->safe_psql('postgres', q{
	CREATE FUNCTION same(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN i; END $$;
	CREATE FUNCTION next_of_query(first bool) RETURNS int LANGUAGE plpgsql AS $$
		DECLARE c refcursor := 'c'; r record;
		BEGIN
			IF first THEN
				OPEN c FOR SELECT (SELECT t.k FROM t WHERE t.b = u.b || '' AND same(t._id) = t._id ORDER BY t.k OFFSET 1 LIMIT 1) FROM u ORDER BY _id;
			END IF;
			FETCH c INTO r;
			RETURN r.k;
		END $$});
alike('a subquery between writes', "SET enable_sort = off; INSERT INTO t SELECT 100 + g, next_of_query(g = 0), 'new' FROM generate_series(0, 9) g");

# ------------------------------------------- rows that are read before their time --

# run: on the standalone server, in one session; what it prints, its errors and warnings.
sub run
{
	my ($sql) = @_;

	fill('alone');
	my ($status, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\nSET search_path = alone, public; SET statement_timeout = '100s'; $sql", on_error_stop => 0);
	$stderr =~ s/^(?:LOCATION|CONTEXT|PL|SQL).*\n//mg;
	return ($stdout, $stderr);
}

my $many = 'INSERT INTO e SELECT g, 0, md5(g::text) FROM generate_series(1, 20000) g';
my $loop = q{DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN SELECT * FROM e LOOP
	n := n + (r.b = md5(r._id::text))::int; IF n % 5000 = 1 THEN INSERT INTO e VALUES (-n, 0, 'new'); END IF; END LOOP; RAISE NOTICE 'read %', n; END $$};
my ($out, $err) = run("ALTER SERVER alone OPTIONS (SET batch_size '10000', SET fetch_size '1000'); $many; SET work_mem = '64kB'; SET log_temp_files = 0; SET client_min_messages = log; $loop");
like($err, qr/read 20000/, 'a loop reads what there was');
like($err, qr/LOG:.*temporary file/, '... of which more than work_mem is in a file');
unlike($err, qr/WARNING|ERROR/, '... that is closed');

($out, $err) = run("$many; SET work_mem = '64kB'; SET temp_file_limit = '100kB'; $loop");
like($err, qr/ERROR:  53400/, 'temp_file_limit counts');
like((run("$many; SET work_mem = '64kB'; SET temp_file_limit = '100kB'; " . q{DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN SELECT * FROM e LOOP
		BEGIN INSERT INTO e VALUES (-1, 0, 'new'); EXCEPTION WHEN configuration_limit_exceeded THEN n := n + 1; END; END LOOP;
		RAISE NOTICE 'caught %', n; END $$}))[1], qr/ERROR:  HV000: could not keep the documents of collection "db_alone.e"/,
	'a cursor whose documents could not be kept is not read on');

# a loop, a cursor and a function that are left before their end, and an error within
($out, $err) = run("$many; SET work_mem = '64kB';" . q{
	DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM e LOOP INSERT INTO e VALUES (-1, 0, 'new'); EXIT; END LOOP; END $$;
	BEGIN; DECLARE c CURSOR FOR SELECT * FROM e; FETCH 1 FROM c; INSERT INTO e VALUES (-2, 0, 'new'); CLOSE c; COMMIT;
	BEGIN; DECLARE c CURSOR FOR SELECT * FROM e; FETCH 1 FROM c; INSERT INTO e VALUES (-3, 0, 'new'); COMMIT;
	BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT * FROM e; FETCH 1 FROM c; INSERT INTO e VALUES (-4, 0, 'new'); COMMIT; MOVE ALL FROM c; CLOSE c;
	CREATE FUNCTION pg_temp.put(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO e VALUES (i, 0, 'new'); RETURN i; END $$;
	SELECT pg_temp.put(-5), count(d) OVER () FROM mongo_aggregate('alone', 'db_alone', 'e', '[]') d LIMIT 1;
	SELECT mongo_aggregate('alone', 'db_alone', 'e', '[]') IS NULL, pg_temp.put(-6) LIMIT 1;
	DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM e LOOP INSERT INTO e VALUES (-7, 0, 'new'); PERFORM 1 / 0; END LOOP;
		EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'caught'; END $$;
	SELECT count(*), min(_id) FROM e});
unlike($err, qr/WARNING:.*leak|ERROR/, 'no file stays open');
like($out, qr/^20007\|-7$/m, 'all is written');

# a cursor that has failed under a savepoint is not read before later writes
($out, $err) = run("$many; SET work_mem = '64kB';" . q{BEGIN; DECLARE c CURSOR FOR SELECT fails_at(_id, 1500) FROM e; MOVE 10 FROM c;
	SAVEPOINT s; MOVE 2000 FROM c; ROLLBACK TO s; INSERT INTO e VALUES (-1, 0, 'new'); INSERT INTO e VALUES (-2, 0, 'new');
	SAVEPOINT s; FETCH 1 FROM c; ROLLBACK TO s; COMMIT; SELECT count(*) FROM e});
is($out, '20002', 'writes after a cursor has failed under a savepoint');
is(join(' ', $err =~ /(?:ERROR|WARNING):\s+(\w+)/g), '22012 55000', '... which is in use no more, and leaves no file');

# a cursor lacks what could not be read before a write, but a cancel leaves it to be read
$node->safe_psql('postgres', q{CREATE FUNCTION guarded(i int) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN INSERT INTO e VALUES (-i, 0, 'guarded'); RETURN ''; EXCEPTION WHEN OTHERS OR query_canceled THEN RETURN SQLSTATE; END $$});
my $guarded = 'BEGIN; DECLARE c CURSOR FOR SELECT fails_at(1, 2) FROM e; MOVE 1 FROM c; SELECT guarded(1); SELECT guarded(2);';
foreach my $failure ([ 'a lost connection', undef, '08006' ], [ 'an error', 13, '42501' ], [ 'what MongoDB interrupts', 11601, '57014' ])
{
	my ($name, $code, $state) = @$failure;

	$alone->fail_command(1, $code, 'getMore');
	($out, $err) = run("$many; $guarded MOVE ALL FROM c");
	$alone->unblock_commands;
	is($out, "$state\n", "a write fails by $name");
	is(join(' ', $err =~ /ERROR:  (.*? documents)/g), 'HV000: could not keep the documents', '... and the cursor says that documents are missing');
}
$alone->block_commands(1000, 'getMore');
($out, $err) = run("$many; SET statement_timeout = '300ms'; $guarded SET statement_timeout = 0; SELECT pg_sleep(2); FETCH ALL FROM c");
$alone->unblock_commands;
is(($out =~ s/^57014\n57014\n\n//r) =~ tr/1//, 19999, 'after a cancel it has all of them');
is($err, '', '... and no error');
$alone->command('{"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": ["find"], "errorCode": 13,'
	  . ' "namespace": "db_alone.e", "blockConnection": true, "blockTimeMS": 500}}');
($out, $err) = run("$many; SELECT count(s) FROM (SELECT guarded(_id) s FROM u UNION ALL SELECT b FROM e) s");
$alone->unblock_commands;
like($err, qr/ERROR:  HV000: could not keep the documents/, '... also if its first command has failed');

# a later command of a scan has the values with which the scan was begun
($out, $err) = run(q{UPDATE u SET b = repeat(_id::text, 40); UPDATE t SET b = repeat('0', 40); SET enable_sort = off;
	SET mongo_fdw.log_remote_query = on; SET client_min_messages = log; DO $$ DECLARE r record; BEGIN
	FOR r IN SELECT _id, CASE _id WHEN 0 THEN (SELECT k FROM t WHERE t.b = u.b || '' AND same(t._id) = t._id ORDER BY k OFFSET 1 LIMIT 1) END,
		repeat(b, 2), repeat(b, 3) FROM u ORDER BY _id LOOP
	IF r._id = 5 THEN INSERT INTO t VALUES (1000, 0, 'new'); EXIT; END IF; END LOOP; END $$});
is(join(' ', $err =~ /"(\d)\d{39}" \} \}, \{ "k" : \{ "(\$eq|\$ne)"/g), '0 $ne 0 $eq', 'a command that is sent after its row has the values of that row');

# what is sent while an exception block runs belongs to the statement outside of it
($out, $err) = run(q{UPDATE t SET b = 'new', k = right(seen_guarded(_id), 1)::int; SELECT sum(k) FROM t});
is("$out$err", '45', 'its end undoes nothing, and there is no WARNING that it could not');
($out, $err) = run(q{INSERT INTO t SELECT CASE g WHEN 5 THEN 1 ELSE 100 + g END, right(seen_guarded(2 * g + 1), 1)::int, 'new' FROM generate_series(1, 10) g});
like($err, qr/ERROR:  23505: could not insert into foreign table "t", row 5\n/, 'nor does it hide a failure');

# AFTER triggers do not keep rows from going in batches
$node->safe_psql('postgres', q{CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log (line) VALUES (NEW._id); RETURN NEW; END $$;
	CREATE TRIGGER noted AFTER INSERT ON alone.e FOR EACH ROW EXECUTE FUNCTION noted()});
$alone->snapshot;
run($many);
is($alone->changes->{commands}{insert}, 2 + 2, 'AFTER ROW triggers and batches');

# the settings of a scan that is begun before a write are its own
fill('alone');
is($node->safe_psql('postgres', q{
	CREATE FUNCTION set_path() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN
		IF current_setting('my.declared', true) = 'yes' THEN PERFORM set_config('search_path', 'elsewhere', false); END IF; RETURN 3; END $$;
	SET search_path = alone, public;
	BEGIN; DECLARE c CURSOR FOR SELECT _id FROM t WHERE _id > set_path();
	SET my.declared = 'yes'; DELETE FROM alone.t WHERE _id < 6; SHOW search_path; ROLLBACK}), 'alone, public', 'settings that a value of a cursor changes do not reach the DELETE before it');

# a table that ANALYZE knows is no view, and what is read there need not be kept
fill('alone');
$node->safe_psql('postgres', 'SET search_path = alone, public; INSERT INTO u SELECT g, 0, NULL FROM generate_series(1000, 9000) g; ANALYZE u');
$alone->snapshot;
$node->safe_psql('postgres', q{SET search_path = alone, public;
	DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM u LOOP INSERT INTO t VALUES (r._id + 10, 0, 'new'); EXIT; END LOOP; END $$});
cmp_ok($alone->changes->{commands}{getMore} // 0, '<=', 1, 'a collection that is not written to is read as it is asked for');

done_testing();
