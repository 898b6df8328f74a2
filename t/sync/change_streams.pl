# Change streams as foreign tables: what they return, where they start and end, and errors.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

# an oplog that soon forgets
my $set = MongoFdwTest::ReplicaSet->new(1, arguments => [ '--oplogSize', '1', '--syncdelay', '1' ]);
my $mongod = $set->primary;
my $node = new_postgres('streams', 'jit = off', 'max_parallel_workers_per_gather = 0');
create_server($node, 'mongodb', $mongod);

my $special = '__operation text, __token text COLLATE "C", __time timestamptz, __key jsonb, __id int';
my $fields = '_id int, a int, t text';
my $stream = "SERVER mongodb OPTIONS (database 'db', collection 'c', change_stream 'collection'";
$node->safe_psql('postgres', qq{
	CREATE FOREIGN TABLE c ($fields) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE d ($fields) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE s ($special, $fields) $stream);
	CREATE TABLE positions (name text, position text);
	INSERT INTO c VALUES (1, 10, 'one'), (2, 20, 'two'), (3, NULL, 'three'), (4, 40, 'four')});

# Where the stream stands.
sub position { return sql("SELECT __token FROM s WHERE __operation = 'position'") }

# The remote command of a query.
sub command { return sql("EXPLAIN (VERBOSE, COSTS OFF) $_[0]") =~ /Remote Command: (.*)/ ? $1 : '' }

# --- what it returns ------------------------------------------------------------------
is(sql('SELECT __operation, __token IS NULL, __time > now() - interval \'1 hour\', __key, _id FROM s'),
	'position|f|t||', 'without a start it begins at the present');
sql(q{CREATE EXTENSION mongo_sync; CALL mongo_sync.sync('c', 'c_here'); SELECT mongo_sync.pause('c_here')});
my $start = position();
like($start, qr/^82[0-9A-F]{16}/, 'the position');
is(sql("SELECT __operation FROM s WHERE __token > '$start'"), 'position', 'a read without changes has the position');
sql(q{INSERT INTO c VALUES (5, 50, 'five');
	UPDATE c SET a = 11 WHERE _id = 1;
	DELETE FROM c WHERE _id = 2;
	INSERT INTO d VALUES (1, 1, 'another collection')});
$mongod->command('{"update": "c", "updates": [{"q": {"_id": 3}, "u": {"a": 33}}]}', 'db');
my $events = join "\n", 'insert|{"_id": 5}|5|5|50|five', 'update|{"_id": 1}|1|1|11|one', 'delete|{"_id": 2}|2|||',
  'replace|{"_id": 3}|3|3|33|', 'position|||||';
my $columns = '__operation, __key, __id, _id, a, t';
is(sql("SELECT $columns FROM s WHERE __token > '$start'"), $events, 'events');
is(sql("SELECT $columns FROM s WHERE __token > '$start'"), $events, 'they can be read again');
is(sql("SET mongo_fdw.enable_pushdown = off; SELECT $columns FROM s WHERE __token > '$start'"), $events, 'without pushdown');
is(sql("SELECT count(*), count(DISTINCT __token) - count(*) IN (0, -1), array_agg(__token) = array_agg(__token ORDER BY __token),
	array_agg(__time) = array_agg(__time ORDER BY __time)
	FROM s WHERE __token > '$start'"), '5|t|t|t', 'tokens are sorted as bytes, as are times');
my @tokens = split /\n/, sql("SELECT __token FROM s WHERE __token > '$start'");
is(sql("SELECT __operation FROM s WHERE __token > '$tokens[$_]'"), join("\n", (qw(insert update delete replace position))[ $_ + 1 .. 4 ]), "behind event $_")
	foreach 0 .. 3;
my $end = position();
cmp_ok($end, 'ge', $tokens[4], 'the position moves on');
is(sql("SELECT s::text ~ '^\\(position,$tokens[4]' FROM s WHERE __token > '$tokens[3]'"), 't', 'the whole row');

# --- starts ----------------------------------------------------------------------------
my $from = "__token > '$start'";
is(sql("SELECT count(*) FROM s WHERE $_"), 5, "start: $_") foreach
	"'$start' < __token", "$from COLLATE \"C\"", "__token > (SELECT '$start'::text)", "__token > '$start'::varchar", "$from AND __token > ''",
	"__time >= now() - interval '1 hour' AND $from";
is(sql("SELECT count(*) FROM s WHERE $from AND __token > '$tokens[1]'"), 3, 'two tokens');
is(sql("SELECT count(*) FROM s WHERE $from AND __token < '$tokens[2]'"), 2, 'and an end');
is(sql("PREPARE p (text) AS SELECT count(*) FROM s WHERE __token > \$1; SET plan_cache_mode = $_; EXECUTE p ('$start'); EXECUTE p ('$tokens[3]')"), "5\n1", "prepared, $_")
	foreach 'force_generic_plan', 'force_custom_plan';
is(sql('SELECT count(*) FROM s WHERE __token > NULL'), 0, 'NULL');
sql("INSERT INTO positions VALUES ('a', '$start'), ('b', '$tokens[2]'), (NULL, NULL)");
is(sql("$_ SELECT name, count(*) FROM positions JOIN s ON __token > position GROUP BY 1 ORDER BY 1"), "a|5\nb|2", "positions from a table, $_")
	foreach '', 'SET enable_material = off;', 'SET mongo_fdw.enable_pushdown = off;', 'SET enable_memoize = off;';
is(sql("SELECT name, __operation FROM positions, LATERAL (SELECT * FROM s WHERE __token > position ORDER BY __token DESC, __operation LIMIT 1) l ORDER BY 1"), "a|position\nb|position", 'LATERAL');
sleep 1.1;
my $time = sql("SELECT date_trunc('second', __time) + interval '0.5 s' FROM s");
sleep 1.1;
sql("UPDATE c SET t = 'later' WHERE _id = 4");
is(sql("SELECT __operation, t FROM s WHERE __time >= '$time'"), "update|later\nposition|", 'a time with a fraction');
my $later = sql(q{SELECT __time + interval '1 microsecond' FROM s WHERE __token > '} . $start . q{' AND t = 'later'});
is(sql("SELECT count(*) FROM s WHERE __time >= '$later' AND __time < '$later'"), 0, 'or of a microsecond');
is(sql("SELECT __operation, t FROM s WHERE '$time'::timestamptz <= __time AND __operation <> 'position'"), 'update|later', 'the operator turned');
like(command('SELECT __operation FROM s WHERE __time >= now()'), qr/startAtOperationTime/, 'which is startAtOperationTime');
raises('an infinite time', "SELECT * FROM s WHERE __time >= '-infinity'", '22008', '');

# --- conditions ------------------------------------------------------------------------
$from = "__token > '$start' AND __token <= '$tokens[3]'";
is(sql("SELECT __operation, __id FROM s WHERE $from AND ($_->[0]) ORDER BY __token"), $_->[1], "condition: $_->[0]") foreach
	[ "__operation = 'insert'", 'insert|5' ], [ "__operation IN ('update', 'delete')", "update|1\ndelete|2" ], [ 'a > 20', "insert|5\nreplace|3" ],
	[ 'a IS NULL', 'delete|2' ], [ "t = 'one'", 'update|1' ], [ "t LIKE 'f%'", 'insert|5' ], [ 'a + 1 = 51', 'insert|5' ], [ '__id = 2', 'delete|2' ],
	[ "__key = '{\"_id\": 2}'", 'delete|2' ], [ "(__key->>'_id')::int < 2", 'update|1' ], [ 'a = 11 OR __id = 2', "update|1\ndelete|2" ],
	[ 'random() < 2 AND a > 40', 'insert|5' ];
is(sql("SELECT __operation FROM s WHERE __token > '$tokens[3]' AND __operation = 'position'"), 'position', 'the position alone');
is(sql("SELECT __operation FROM s WHERE __token > '$start' AND a IS NULL"), "delete\nposition", 'the position has NULLs');
is(sql("SELECT __operation FROM s WHERE __token > '$start' AND a > 0"), "insert\nupdate\nreplace\nupdate", 'which conditions test');
like(command("SELECT t FROM s WHERE $from AND a = 11"), qr/"startAfter".*"\$match" : .*"fullDocument.a"/, 'conditions are sent');
is(sql("SELECT __operation FROM s WHERE __token > '$start' LIMIT 2 OFFSET 1"), "update\ndelete", 'LIMIT');
is(sql("SELECT t, count(*) FROM s WHERE $from GROUP BY t ORDER BY t NULLS FIRST LIMIT 2"), "|2\nfive|1", 'groups and orders are PostgreSQL\'s');
is(sql("SELECT x.t, y.t FROM s x JOIN c y ON y._id = x._id WHERE x.__token > '$start' AND x.__token <= '$tokens[3]' ORDER BY 1"), "five|five\none|one\n|", 'a join');
is(sql("SELECT x.__operation, y.__operation FROM s x LEFT JOIN s y ON y.__id = x.__id AND y.__token > '$start' WHERE x.__token > '$start' AND x.__id < 3"),
	"update|update\ndelete|delete", 'a stream with itself');
is(sql("SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
	SELECT count(DISTINCT y.__token), count(*) FROM generate_series(1, 3) g, s y WHERE y.__token > '$tokens[3]' AND y.a IS NULL"), '1|3', 'a stream that is scanned again');
is(sql("BEGIN; DECLARE u SCROLL CURSOR FOR SELECT __operation FROM s WHERE $from; MOVE 3 IN u; MOVE ABSOLUTE 0 IN u; FETCH 2 FROM u; COMMIT"), "insert\nupdate", 'a cursor that is rewound');

# --- what is looked up, and with which documents ----------------------------------------
unlike(command('SELECT __operation, __id FROM s'), qr/fullDocument|clusterTime/, 'what is not read is not looked up');
like(command('SELECT a FROM s'), qr/"fullDocument" : "updateLookup"/, 'the current document');
unlike(command('SELECT a FROM s'), qr/\$set/, 'a time is converted only if it is read');
# MongoDB 5.0 keeps no documents before and after changes
my $keeps_documents = $mongod->has_version('6.0');
if ($keeps_documents)
{
	$mongod->command('{"collMod": "c", "changeStreamPreAndPostImages": {"enabled": true}}', 'db');
	sql(qq{CREATE FOREIGN TABLE images ($special, __before jsonb, $fields) $stream, full_document 'required');
		CREATE FOREIGN TABLE available ($special, __before jsonb, $fields) $stream, full_document 'whenAvailable');
		CREATE FOREIGN TABLE whole (__token text, __doc jsonb) $stream)});
	unlike(command('SELECT a FROM images'), qr/BeforeChange/, 'the former document is not asked for');
	$start = position();
	sql("UPDATE c SET a = 1 WHERE _id = 4; UPDATE c SET a = 2 WHERE _id = 4; DELETE FROM c WHERE _id = 4");
	is(sql("SELECT __operation, a, __before->>'a' FROM $_ WHERE __token > '$start'"), "update|1|40\nupdate|2|1\ndelete||2\nposition||", "documents before and after, $_")
		foreach 'images', 'available';
	is(sql("SELECT __operation, a FROM s WHERE __token > '$start'"), "update|\nupdate|\ndelete|\nposition|", 'the current document is gone');
	is(sql("SELECT __doc->>'operationType', __doc->'documentKey', (__doc->'fullDocumentBeforeChange'->>'a') FROM whole WHERE __token > '$start' LIMIT 3"),
		qq{update|{"_id": 4}|40\nupdate|{"_id": 4}|1\ndelete|{"_id": 4}|2}, 'the whole event');
	raises('a document that is missing', "SELECT a FROM images WHERE __token > '$tokens[0]'", '\w+', 'could not read');
	$mongod->command('{"collMod": "c", "changeStreamPreAndPostImages": {"enabled": false}}', 'db');
}

# --- batches and transactions -----------------------------------------------------------
sql("CREATE FOREIGN TABLE slow ($special, $fields) $stream, fetch_size '2')");
$start = position();
sql('BEGIN; INSERT INTO c SELECT g, g, NULL FROM generate_series(1001, 1500) g; UPDATE c SET a = 0 WHERE _id > 1490; COMMIT');
is(sql("SELECT count(*), count(DISTINCT __token), count(*) FILTER (WHERE __operation = 'update'), count(DISTINCT __time) FROM $_ WHERE __token > '$start'"), '511|510|10|1', "a transaction, $_")
	foreach 's', 'slow';
my $middle = sql("SELECT __token FROM slow WHERE __token > '$start' OFFSET 255 LIMIT 1");
is(sql("SELECT count(*) FROM slow WHERE __token > '$middle'"), 255, 'the rest of a transaction');
is(sql("SELECT count(*), max(__operation) FROM slow WHERE __token > '$start' AND a = 1300"), '1|insert', 'one event of it');
is(sql("BEGIN; INSERT INTO c VALUES (2000, 1, 'in'); SELECT count(*) FROM s WHERE __token > '$start'; ROLLBACK"), 511, 'a transaction does not see its own changes');
is(sql("BEGIN; DECLARE u CURSOR FOR SELECT __operation FROM slow WHERE __token > '$middle'; FETCH 1 FROM u; DELETE FROM c WHERE _id > 1000; MOVE ALL IN u; COMMIT"), 'insert', 'writes beside an open stream');

# --- databases, servers, and the end of a collection --------------------------------------
sql("CREATE FOREIGN TABLE $_ (__database text, __collection text, $special, $fields) SERVER mongodb OPTIONS (database 'db', change_stream '$_')") foreach 'database', 'server';
sql("CREATE FOREIGN TABLE elsewhere (_id int, a int) SERVER mongodb OPTIONS (database 'other', collection 'e')");
$start = position();
sql("INSERT INTO d VALUES (7, 7, 'seven'); INSERT INTO elsewhere VALUES (8, 8); UPDATE c SET a = 5 WHERE _id = 5");
is(sql("SELECT __database, __collection, __operation, _id, a FROM $_->[0] WHERE __token > '$start'"), $_->[1], "a stream of a $_->[0]") foreach
	[ 'database', "db|d|insert|7|7\ndb|c|update|5|5\n||position||" ], [ 'server', "db|d|insert|7|7\nother|e|insert|8|8\ndb|c|update|5|5\n||position||" ];
is(sql("SELECT _id FROM server WHERE __token > '$start' AND __collection = 'e'"), 8, 'a condition on the collection');
$mongod->command('{"renameCollection": "db.c", "to": "db.renamed"}');
sql("INSERT INTO c VALUES (9, 9, 'nine')");
is(sql("SELECT __operation FROM s WHERE __token > '$start'"), "update\nrename\ninvalidate\nposition", 'a rename ends the stream');
my $invalid = sql("WITH all_rows AS MATERIALIZED (SELECT * FROM s WHERE __token > '$start') SELECT __token FROM all_rows WHERE __operation = 'position'");
# MongoDB 5.0 does not tell this position if no event meets the conditions
is(sql("SELECT __token FROM s WHERE __token > '$start' AND __operation = 'position'"), $keeps_documents ? $invalid : '', 'the position behind it alone');
is(sql("SELECT __operation, _id FROM s WHERE __token > '$invalid'"), "insert|9\nposition|", 'it goes on behind that');
$mongod->command('{"drop": "c"}', 'db');
is(sql("SELECT __operation FROM s WHERE __token > '$invalid' AND __id IS NULL"), "drop\ninvalidate\nposition", 'so does a drop');
is(sql("SELECT __operation FROM database WHERE __token > '$start' AND __operation IN ('drop', 'rename')"), "rename\ndrop", 'a stream of a database goes on');
sql("INSERT INTO c VALUES (1, 1, 'one')");

# --- waiting, and being cancelled ----------------------------------------------------------
sql("CREATE FOREIGN TABLE waiting ($special, $fields) $stream, max_wait '20s')");
# Does MongoDB come to have no open cursor?
sub no_cursor
{
	my $start = time;
	sleep 0.1 while $mongod->open_cursors > 0 && time - $start < 10;
	is($mongod->open_cursors, 0, $_[0]);
}
my $before = time;
sql("SELECT * FROM s WHERE __token > '" . position() . "'") foreach 1 .. 5;
cmp_ok(time - $before, '<', 8, 'it does not wait');
my $background = background_query($node, "SELECT __operation, _id FROM waiting WHERE __token > '" . position() . "'");
sleep 1.5;
$before = time;
sql("INSERT INTO c VALUES (77, 7, 'awaited')");
is(($background->finish)[1], "insert|77\nposition|\n", 'max_wait');
cmp_ok(time - $before, '<', 8, 'ends with the first event');
sql("ALTER FOREIGN TABLE waiting OPTIONS (SET max_wait '1500ms')");
$before = time;
is(sql("SELECT __operation FROM waiting WHERE __token > '" . position() . "'"), 'position', 'nothing came');
cmp_ok(time - $before, '>', 1.4, 'max_wait is waited for');
sql("ALTER FOREIGN TABLE waiting OPTIONS (SET max_wait '60s')");
$before = time;
raises('statement_timeout', "SELECT * FROM s; SET statement_timeout = '700ms'; SELECT * FROM waiting", '57014', 'statement timeout');
cmp_ok(time - $before, '<', 10, 'it is interrupted');
sql("SELECT * FROM s WHERE __token > '$invalid' LIMIT 1");
no_cursor('no cursor is left open');
sql("ALTER FOREIGN TABLE waiting OPTIONS (SET max_wait '300ms')");
my $position = position();
$mongod->fail_command(1, undef, 'getMore');
is(sql("SELECT __operation FROM waiting WHERE __token > '$position'"), 'position', 'a connection is lost while it waits');
no_cursor('no cursor is left open then');

# --- other options, and errors --------------------------------------------------------------
create_server($node, 'concerned', $mongod, read_concern => 'local', read_preference => 'secondaryPreferred');
(my $concerned = $stream) =~ s/mongodb/concerned/;
sql("CREATE FOREIGN TABLE concerned ($special, $fields) $concerned)");
is(sql("SELECT __operation FROM concerned WHERE __token > '$invalid' LIMIT 1"), 'insert', 'a read concern of the server');
raises('INSERT', "INSERT INTO s (_id) VALUES (1)", '\w+', 'change_stream');
raises('DELETE', 'DELETE FROM s', '\w+', 'change_stream');
raises('TRUNCATE', 'TRUNCATE s', '\w+', 'truncat');
is(sql('ANALYZE s; SELECT reltuples FROM pg_class WHERE relname = \'s\''), -1, 'ANALYZE leaves it out');
is(sql("SELECT count(*) FROM mongo_fdw_check('s')"), 0, 'mongo_fdw_check() finds nothing');
raises("options: $_->[0]", "CREATE FOREIGN TABLE x (_id int) SERVER mongodb OPTIONS ($_->[0])", '22023', $_->[1]) foreach
	[ "change_stream 'collections'", 'invalid value for option "change_stream"' ], [ "change_stream 'server', pipeline '[]'", 'cannot be given together' ],
	[ "change_stream 'server', unwind 'a'", 'cannot be given together' ], [ "max_wait '1s'", 'cannot be given without option "change_stream"' ], [ "split_events 'true'", 'cannot be given without option "change_stream"' ],
	[ "full_document 'required'", 'cannot be given without option "change_stream"' ], [ "change_stream 'server', full_document 'default'", 'invalid value' ];
raises("hostile token: $_", "SELECT * FROM s WHERE __token > '$_'", '22023', 'could not read collection "db.c".*HINT:  A position is the __token of a row') foreach '', 'x', '$token', '{"a": 1}', '82', '82' . 'F' x 40, 'Z' x 20000;
my $standalone = MongoFdwTest::Mongod->new;
create_server($node, 'standalone', $standalone);
(my $alone = $stream) =~ s/mongodb/standalone/;
sql("CREATE FOREIGN TABLE alone ($special, $fields) $alone)");
raises('a standalone', 'SELECT * FROM alone', '0A000', 'could not read collection.*HINT:  MongoDB has change streams only in replica sets');
$mongod->command('{"create": "v", "viewOn": "c", "pipeline": []}', 'db');
sql("CREATE FOREIGN TABLE of_view ($special) SERVER mongodb OPTIONS (database 'db', collection 'v', change_stream 'collection')");
raises('a view', 'SELECT * FROM of_view', '42809', 'could not read collection "db.v".*MongoDB error 166');

# LIMIT is the size of batches, as MongoDB has no $limit there
like(command('SELECT * FROM s LIMIT 7'), qr/"batchSize" : 7 /, 'LIMIT');
like(command('SELECT * FROM s LIMIT 5 OFFSET 2'), qr/"batchSize" : 7 /, 'LIMIT and OFFSET');
like(command('SELECT * FROM s ORDER BY _id LIMIT 7'), qr/"batchSize" : 10000 /, 'LIMIT of a sort');

# an event of more than 16 MB: the documents before and after the change
if ($keeps_documents)
{
	$mongod->command('{"collMod": "c", "changeStreamPreAndPostImages": {"enabled": true}}', 'db');
	$start = position();
	sql(q{INSERT INTO c VALUES (90, 0, repeat('x', 9000000)); UPDATE c SET t = repeat('y', 9000000) WHERE _id = 90});
	raises('an event of more than 16 MB', "SELECT length(t), __before IS NULL FROM available WHERE __token > '$start'", '54000', '16 ?MB');
	is(sql("SELECT __operation, length(t) FROM available WHERE __token > '$start'"), "insert|9000000\nupdate|9000000\nposition|", 'without the document before');
	sql(qq{CREATE FOREIGN TABLE split ($special, __before jsonb, $fields) $stream, full_document 'whenAvailable', split_events 'true')});
	if ($mongod->command('{"buildInfo": 1}')->{version} =~ /^6\.0\.[0-8]$/)
	{
		raises('MongoDB cannot split events', "SELECT __before FROM split WHERE __token > '$start'", '\w+', 'Unrecognized pipeline stage name: .*changeStreamSplitLargeEvent');
	}
	else
	{
		# with a larger oplog
		my $splitting = MongoFdwTest::ReplicaSet->new(1)->primary;
		create_server($node, 'splitting', $splitting);
		$splitting->command('{"create": "c", "changeStreamPreAndPostImages": {"enabled": true}}', 'db');
		(my $options = $stream) =~ s/mongodb/splitting/;
		sql(qq{DROP FOREIGN TABLE split, c; CREATE FOREIGN TABLE c ($fields) SERVER splitting OPTIONS (database 'db');
			CREATE FOREIGN TABLE split ($special, __before jsonb, $fields) $options, full_document 'whenAvailable', split_events 'true')});
		$start = sql('SELECT __token FROM split');
		sql("INSERT INTO c VALUES (90, 0, repeat('x', 9000000)); UPDATE c SET t = repeat('y', 9000000) WHERE _id = 90");
		sql("UPDATE c SET t = repeat('$_', 9000000) WHERE _id = 90; INSERT INTO c VALUES (100 + $_)") foreach 1 .. 3;
		my @events = split /\n/, sql("SELECT __token, __operation, __id, left(t, 1), length(t), left(__before->>'t', 1), length(__before->>'t') FROM split WHERE __token > '$start'");
		my @tokens = map { s/^(\w+)\|//r ? $1 : '' } @events;
		is(join("\n", map { s/^\w+\|//r } @events), join("\n", 'insert|90|x|9000000||', 'update|90|y|9000000|x|9000000', 'update|90|1|9000000|y|9000000', 'insert|101||||',
				'update|90|2|9000000|1|9000000', 'insert|102||||', 'update|90|3|9000000|2|9000000', 'insert|103||||', 'position|||||'), 'events that are split are joined');
		# a position within a split event is one of the same columns
		is(sql("SELECT string_agg(coalesce(left(t, 1), left(__before->>'t', 1), '-'), '') FROM split WHERE __token > '$tokens[$_]' AND __operation <> 'position'"),
			substr('xy1-2-3-', $_ + 1), "behind event $_")
		  foreach 0 .. $#tokens - 1;
		# the domain's CHECK writes while the event is being read, and so has the next ones read
		(my $written = $fields) =~ s/t text/t written/;
		sql(qq{ALTER SERVER splitting OPTIONS (ADD transactions 'off');
			CREATE FUNCTION writes(t text) RETURNS bool LANGUAGE plpgsql AS \$\$
				BEGIN IF t LIKE 'y%' THEN INSERT INTO c VALUES (200); END IF; RETURN true; END \$\$;
			CREATE DOMAIN written AS text CHECK (writes(VALUE));
			CREATE FOREIGN TABLE split_written ($special, $written, __before jsonb) $options, full_document 'whenAvailable', split_events 'true')});
		is(sql("SELECT __id, left(t, 1), left(__before->>'t', 1) FROM split_written WHERE __token > '$start' AND __operation = 'update'"),
			"90|y|x\n90|1|y\n90|2|1\n90|3|2", 'an event stays while a write has the next ones read');
	}
}

# tokens have type bits behind an _id that is a Double, an Int64 or a Decimal128
sql(q{CREATE FOREIGN TABLE fractions (_id double precision) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE fraction_changes (__operation text, __token text COLLATE "C", __id double precision) SERVER mongodb
		OPTIONS (database 'db', collection 'fractions', change_stream 'collection')});
my $from = sql('SELECT __token FROM fraction_changes');
sql('INSERT INTO fractions VALUES (1), (5.5), (9007199254740991)');
my %behind = split /[|\n]/, sql("SELECT __id, __token FROM fraction_changes WHERE __token > '$from' AND __operation = 'insert'");
is(sql("SELECT string_agg(coalesce(__id::text, __operation), ' ') FROM fraction_changes WHERE __token > '$behind{$_->[0]}'"), $_->[1], "a position behind $_->[0]")
	foreach [ 1, '5.5 9.007199254740991e+15 position' ], [ 5.5, '9.007199254740991e+15 position' ], [ '9.007199254740991e+15', 'position' ];
like($behind{5.5}, qr/^82[0-9A-F]+\.[0-9a-f]+$/, 'they follow a dot');
(my $without = $behind{1}) =~ s/\..*//;
is(sql("SELECT count(*) FROM fraction_changes WHERE __token > '$without'"), 3, 'a position without them, as of older versions');
sql(q{CREATE FOREIGN TABLE whole_numbers (_id bigint) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE whole_changes (__operation text, __token text COLLATE "C", __id bigint) SERVER mongodb
		OPTIONS (database 'db', collection 'whole_numbers', change_stream 'collection', max_wait '2s');
	INSERT INTO whole_numbers VALUES (7000000000), (-7000000001), (9007199254740993)});
foreach my $id (7000000000, -7000000001, 9007199254740993)
{
	my $token = sql("SELECT __token FROM whole_changes WHERE __token > '$from' AND __id = $id");
	sql("SELECT * FROM whole_changes WHERE __token > '$token'");
	is(sql("SELECT bool_and(__token > '$token') FROM whole_changes WHERE __token > '$token' AND __operation = 'insert'"),
		$id == 9007199254740993 ? '' : 't', "what is behind $id sorts after it");
}

# --- cluster times ------------------------------------------------------------------------------
sql(qq{CREATE FOREIGN TABLE timed (__operation text, __token text COLLATE "C", __cluster_time text, __time timestamptz, __id int, a int) $stream)});
$start = sql("SELECT __token FROM timed");
my $present = sql("SELECT mongo_cluster_time('mongodb')");
like($present, qr/^\d{10}:\d{10}$/, 'the present time');
sql("INSERT INTO c VALUES ($_, $_, NULL)") foreach 301 .. 304;
my %time_of = split /[|\n]/, sql("SELECT __id, __cluster_time FROM timed WHERE __token > '$start' AND __operation = 'insert'");
is(join(' ', sort { $time_of{$a} cmp $time_of{$b} } keys %time_of), '301 302 303 304', 'the times of changes sort as texts');
cmp_ok($present, 'lt', $time_of{301}, 'the present is before them');
my $ids = "SELECT string_agg(coalesce(__id::text, __operation), ' ') FROM timed WHERE";
is(sql("$ids $_->[0]"), $_->[1], "start: $_->[0]") foreach
	[ "__cluster_time > '$time_of{302}'", '303 304 position' ], [ "__cluster_time >= '$time_of{302}'", '302 303 304 position' ],
	[ "'$time_of{302}' < __cluster_time", '303 304 position' ], [ "'$time_of{302}' <= __cluster_time", '302 303 304 position' ],
	[ "__cluster_time > '$present' AND a >= 303", '303 304' ], [ "__cluster_time > (SELECT '$time_of{303}'::text)", '304 position' ],
	[ "__cluster_time > '$time_of{301}' COLLATE \"C\" AND __cluster_time <= '$time_of{303}'", '302 303' ],
	[ "__cluster_time >= '$time_of{301}' AND __token > '$start' AND __cluster_time < '$time_of{303}'", '301 302' ],
	[ "__time >= '2020-01-01' AND __cluster_time >= '$time_of{304}'", '304 position' ], [ '__cluster_time > NULL', '' ];
is(sql("SELECT count(*) FROM timed WHERE __cluster_time > '$time_of{304}' AND to_timestamp(split_part(__cluster_time, ':', 1)::int) = __time"), 1, 'the position has one');
like(command("SELECT __id FROM timed WHERE __cluster_time > '$present' AND a = 5"), qr/startAtOperationTime.*"\$match" : \{ "fullDocument.a"/, 'a condition beside it is sent');
unlike(command("SELECT __id FROM timed WHERE __token > '$start' AND __cluster_time <> '$present' AND __token < 'x'"), qr/\$match/, 'conditions on texts of tokens are not');
raises("no time: $_", "SELECT * FROM timed WHERE __cluster_time > '$_'", '22007', 'invalid cluster time') foreach '', 'x', '1:2', "$present ";
sql("CREATE FOREIGN TABLE other_type (__token int, __id int) $stream)");
raises('a column of another type', 'SELECT * FROM other_type', '0A000', 'column "__token" of a change stream cannot be of type integer');

# --- conditions that the event of the position does not meet -----------------------------
my %token_of = split /[|\n]/, sql("SELECT __id, __token FROM timed WHERE __token > '$start' AND __operation = 'insert'");
is(sql("$ids __token > '$token_of{302}' AND a $_->[0]"), $_->[1], "a start behind an event, and a $_->[0]")
	foreach [ '= 304', '304' ], [ '<> 302', '303 304' ], [ '< 0', '' ], [ 'IS NULL', 'position' ];
sql(qq{CREATE FOREIGN TABLE skipping (__operation text, __token text COLLATE "C", __id int, a int, _id date) $stream, type_mismatch 'skip');
	CREATE VIEW behind_barrier WITH (security_barrier) AS SELECT * FROM timed WHERE a > 302});
is(sql("SELECT string_agg(__operation, ' ') FROM skipping WHERE __token > '$token_of{302}'"), 'position', 'documents that do not fit are skipped');
is(sql("SELECT string_agg(__id::text, ' ') FROM behind_barrier WHERE __token > '$token_of{302}' AND __id > 303"), '304', 'a security barrier');

# a position that the oplog has lost
$before = time;
do
{
	sql(q{INSERT INTO d SELECT g, 0, repeat('x', 100000) FROM generate_series(1000, 1029) g; DELETE FROM d WHERE _id >= 1000});
	sleep 0.2;
} while time - $before < 30 && ($node->psql('postgres', "SELECT count(*) FROM s WHERE __token > '$start'"))[0] == 0;
raises('a position before the oplog', "SELECT * FROM s WHERE __token > '$start'", '72000', 'oplog.*HINT:  MongoDB has removed');
raises('a time before the oplog', "SELECT * FROM s WHERE __time >= '2020-01-01'", '72000', 'oplog');
sql(q{INSERT INTO c VALUES (900, 1, 'kept'), (901, 2, NULL); SELECT mongo_sync.resume('c_here')});
raises('a table synchronized with it', q{CALL mongo_sync.sync('c', 'c_here')}, '72000', 'oplog.*HINT:  MongoDB has removed');
sql(q{CALL mongo_sync.recopy('c_here')});
is(sql('SELECT count(*) FROM (TABLE c EXCEPT TABLE c_here) difference'), 0, 'copied again, all documents are rows');
is(sql('SELECT count(*) FROM (TABLE c_here EXCEPT TABLE c) difference'), 0, 'and all rows documents');

done_testing();
