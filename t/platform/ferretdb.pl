# docs/ferretdb.md: a server that is only compatible with MongoDB.  Needs a ferretdb, whose
# path is in the environment (docs/internals/testing.md); only the HINTs are asked of a fake server.
# A FerretDB 2 needs a PostgreSQL, too, whose URL is in the environment; or t/lib/ferretdb.sh starts
# both, if the tests use it instead of a mongod.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = new_postgres('ferretdb');

# --- what the errors say ------------------------------------------------------------
my $fake_port = start_fake();
$node->safe_psql('postgres', qq{
	CREATE SERVER fake FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$fake_port');
	CREATE USER MAPPING FOR CURRENT_USER SERVER fake});
my %hints = (
	(map { $_ => qr/Add "collation" to the option pushdown_disable/ } qw(lacks_collation lacks_collation_of_find lacks_collation_of_update)),
	lacks_operator => qr/Add "expr" to the option pushdown_disable/,
	lacks_stage => qr/The option pushdown_disable of servers and tables disables what it does not know/);
foreach my $name (sort keys %hints)
{
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $name (id int) SERVER fake OPTIONS (database 'db')");
	my (undef, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM $name");
	like($stderr, qr/ERROR:  0A000: .*MongoDB error \d+.*HINT:  .*$hints{$name}/s, $name);
}

SKIP:
{
	skip 'FERRETDB does not name a ferretdb', 1 unless -x ($ENV{FERRETDB} // '');
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $mongod = ($ENV{MONGOD} // '') =~ m{/ferretdb\.sh$} ? MongoFdwTest::Mongod->new : undef;
	$port = $mongod->port if $mongod;
	# it reads this variable itself
	my $version = $mongod || $ENV{FERRETDB_POSTGRESQL_URL} ? 2 : 1;
	my $ferretdb = $mongod ? undef : IPC::Run::start([ $ENV{FERRETDB}, "--state-dir=$folder", "--listen-addr=127.0.0.1:$port", '--debug-addr=-',
			'--telemetry=disable', $version == 1 ? ('--log-level=error', '--handler=sqlite', "--sqlite-url=file:$folder/") :
			  ('--log-level=ERROR', '--no-auth') ],
		'<', \'', '>', \my $output, '2>&1');
	foreach (1 .. 100)
	{
		last if IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
		sleep 0.1;
	}

	# --- what the page says of options ----------------------------------------------
	my ($page) = slurp_file('docs/ferretdb.md') =~ /^## FerretDB $version\n(.*?)(?:^## |\z)/ms;
	my ($ddl) = $page =~ /^```sql\n(.*?)^```$/ms;
	$ddl =~ s/port '27017'/port '$port'/;
	$node->safe_psql('postgres', qq{$ddl
		CREATE USER MAPPING FOR CURRENT_USER SERVER ferretdb;
		SELECT mongo_command('ferretdb', 'db', '{"dropDatabase": 1}');
		CREATE FOREIGN TABLE t (_id int, a int, b text, d timestamptz, n float8, j jsonb, tags text[]) SERVER ferretdb OPTIONS (database 'db');
		CREATE TABLE local_t (_id int UNIQUE, a int, b text, d timestamptz, n float8, j jsonb, tags text[])});

	my $settings = 'SET plan_cache_mode = force_generic_plan; SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10;';
	my @statements = (
		q{INSERT INTO t SELECT g, g % 10, 'row ' || g, '2024-01-01'::timestamptz + g * interval '1 h', g * 1.5, jsonb_build_object('k', g), ARRAY['x' || g % 3, 'y'] FROM generate_series(1, 300) g},
		"COPY t (_id, b) FROM PROGRAM 'echo 301,copied' (FORMAT csv)",
		'SELECT * FROM t ORDER BY _id', 'SELECT * FROM t WHERE _id = 7', "SELECT _id FROM t WHERE b = 'row 9'", "SELECT _id FROM t WHERE b LIKE 'row 9%' ORDER BY 1",
		'SELECT _id FROM t WHERE a IN (3, 5) AND _id > 100 ORDER BY 1', 'SELECT _id FROM t WHERE a IS NULL OR a <> 3 ORDER BY 1', 'SELECT count(*), count(a) FROM t WHERE a = 3', 'SELECT count(*) FROM t',
		'SELECT _id FROM t WHERE a + 1 = 4 ORDER BY 1', "SELECT _id FROM t WHERE upper(b) = 'ROW 3'", "SELECT _id FROM t WHERE d::date = '2024-01-02' ORDER BY 1",
		"SELECT _id FROM t WHERE (j ->> 'k')::int = 77", 'SELECT _id FROM t ORDER BY d DESC NULLS LAST LIMIT 2', 'SELECT _id FROM t ORDER BY a NULLS FIRST, _id LIMIT 3',
		'SELECT max(n), min(d) FROM t', 'SELECT a, count(*), max(n) FROM t GROUP BY a ORDER BY 1', 'SELECT DISTINCT a FROM t ORDER BY 1',
		'SELECT x._id, y._id FROM t x LEFT JOIN t y ON y._id = x.a WHERE x._id < 9 ORDER BY 1, 2',
		'PREPARE p AS SELECT _id FROM t WHERE a + 1 = $1 ORDER BY 1; EXECUTE p (4)',
		q{UPDATE t SET b = 'y' WHERE a = 3}, q{UPDATE t SET j = j || '{"l": [1]}' WHERE _id = 5}, 'INSERT INTO t (_id) VALUES (1), (302) ON CONFLICT DO NOTHING',
		'UPDATE t SET a = a + 1 WHERE _id = 9', 'DELETE FROM t WHERE a = 4 RETURNING _id', 'DELETE FROM t WHERE _id > 301', 'SELECT * FROM t ORDER BY _id',
		# with version 1 by the setting that the page names
		q{SET mongo_fdw.enable_pushdown = off; UPDATE t SET a = a + 1 WHERE _id = 6 RETURNING a}, q{SET mongo_fdw.enable_pushdown = off; SELECT _id FROM t WHERE 'x1' = ANY (tags) ORDER BY 1},
		'SET mongo_fdw.enable_pushdown = off; SELECT _id FROM t WHERE n > 100 ORDER BY 1');
	foreach my $statement (@statements)
	{
		my @answers;
		$statement =~ s/^SET mongo_fdw.enable_pushdown = off; // if $version == 2;
		foreach my $table ('t', 'local_t')
		{
			(my $sql = $statement) =~ s/\b(FROM|JOIN|INTO|UPDATE|COPY) t\b/$1 $table/g;
			my ($status, $stdout, $stderr) = $node->psql('postgres', "$settings $sql");
			push @answers, $table eq 'local_t' ? $stdout : $stdout . $stderr;
		}
		is(join("\n", sort split /\n/, $answers[0]), join("\n", sort split /\n/, $answers[1]), $statement);
	}
	$node->safe_psql('postgres', 'CREATE SCHEMA imported; IMPORT FOREIGN SCHEMA db FROM SERVER ferretdb INTO imported');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM imported.t'), $node->safe_psql('postgres', 'SELECT count(*) FROM local_t'), 'IMPORT FOREIGN SCHEMA');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM mongo_fdw_check('t') WHERE finding LIKE '%fit%'}), 0, 'mongo_fdw_check()');
	is($node->safe_psql('postgres', 'ANALYZE t; SELECT documents FROM mongo_fdw_statistics'),
		$node->safe_psql('postgres', 'SELECT count(*) FROM local_t'), 'ANALYZE') if $version == 2;

	# --- search by vectors ------------------------------------------------------------
	if ($version == 2)
	{
		my $indexes = join ', ', '{"key": {"embedding": "cosmosSearch"}, "name": "v", "cosmosSearchOptions": {"kind": "vector-hnsw", "similarity": "COS", "dimensions": 3}}',
			'{"key": {"genre": 1}, "name": "genre"}';
		my $columns = q{_id int, genre text, vector real[] OPTIONS (parameter 'vector'), n int OPTIONS (parameter 'n')};
		$node->safe_psql('postgres', qq{
			CREATE TABLE local_books AS SELECT g AS _id, CASE WHEN g % 3 = 0 THEN 'crime' ELSE 'poems' END AS genre, ARRAY[sin(g), cos(g * g), sin(g * 3)]::real[] AS embedding
				FROM generate_series(1, 60) g;
			CREATE FUNCTION cosine(a real[], b real[]) RETURNS float8 LANGUAGE sql AS
				'SELECT sum(x * y) / sqrt(sum(x * x) * sum(y * y)) FROM unnest(a, b) AS u (x, y)';
			CREATE FOREIGN TABLE books (_id int, genre text, embedding real[]) SERVER ferretdb OPTIONS (database 'db');
			INSERT INTO books SELECT * FROM local_books;
			SELECT mongo_command('ferretdb', 'db', '{"createIndexes": "books", "indexes": [$indexes]}');
			CREATE FOREIGN TABLE similar_books ($columns) SERVER ferretdb OPTIONS (database 'db', collection 'books',
				pipeline '[{"\$vectorSearch": {"index": "v", "path": "embedding", "queryVector": {"\$param": "vector"}, "numCandidates": 60, "limit": {"\$param": "n"}}}]');
			CREATE FOREIGN TABLE similar_poems ($columns) SERVER ferretdb OPTIONS (database 'db', collection 'books',
				pipeline '[{"\$search": {"cosmosSearch": {"path": "embedding", "vector": {"\$param": "vector"}, "k": {"\$param": "n"}}}}, {"\$match": {"genre": "poems"}}]')});
		is($node->safe_psql('postgres', q{SELECT _id, genre, round(mongo_score(s)::numeric, 4) FROM similar_books s WHERE vector = ARRAY[1, 0.5, 0]::real[] AND n = 4 ORDER BY mongo_score(s) DESC}),
			$node->safe_psql('postgres', q{SELECT _id, genre, round(cosine(embedding, ARRAY[1, 0.5, 0]::real[])::numeric, 4) FROM local_books ORDER BY 3 DESC LIMIT 4}), '$vectorSearch, and its score');
		my $nearest = 'SELECT b._id, s._id FROM books b, LATERAL (SELECT _id FROM similar_books s WHERE s.vector = b.embedding AND n = 3 AND s._id <> b._id ORDER BY mongo_score(s) DESC LIMIT 1) s WHERE b._id < 6 ORDER BY 1';
		is($node->safe_psql('postgres', $nearest), $node->safe_psql('postgres',
				'SELECT b._id, s._id FROM local_books b, LATERAL (SELECT _id FROM local_books s WHERE s._id <> b._id ORDER BY cosine(s.embedding, b.embedding) DESC LIMIT 1) s WHERE b._id < 6 ORDER BY 1'),
			'the nearest book of each');
		is($node->safe_psql('postgres', q{SELECT count(*), min(genre), max(n) FROM similar_poems WHERE vector = ARRAY[0, 1, 0.25]::real[] AND n = 6}),
			$node->safe_psql('postgres', q{SELECT count(*), min(genre), 6 FROM (SELECT * FROM local_books ORDER BY cosine(embedding, ARRAY[0, 1, 0.25]::real[]) DESC LIMIT 6) s WHERE genre = 'poems'}),
			'$search of documentdb');
	}
	my (undef, undef, $warning) = $node->psql('postgres', 'BEGIN; UPDATE t SET a = 0 WHERE _id = 1; ROLLBACK');
	like($warning, qr/WARNING:.*not rolled back/, 'there are no transactions');

	# --- and that each word is needed -----------------------------------------------
	my %needs = (
		collation => "SELECT _id FROM t WHERE b = 'row 9'", expr => 'SELECT _id FROM t WHERE a + 1 = 4',
		group => 'SELECT a, max(n) FROM t GROUP BY a', sort => 'SELECT _id FROM t ORDER BY d DESC LIMIT 2');
	my ($all) = $ddl =~ /pushdown_disable '(.*?)'/;
	foreach my $word (grep { $all =~ /\b$_\b/ } sort keys %needs)
	{
		# expressions are what FerretDB does not know in groups and sorts
		my $rest = join(', ', grep { $_ ne $word && ($_ ne 'expr' || $word eq 'collation') } split /, /, $all) || 'disk_use';
		$node->safe_psql('postgres', "ALTER SERVER ferretdb OPTIONS (SET pushdown_disable '$rest')");
		my ($status) = $node->psql('postgres', "$settings $needs{$word}");
		isnt($status, 0, "without $word: $needs{$word}");
	}
	$ferretdb->kill_kill if $ferretdb;
}

done_testing();
