# Documents whose bytes are spoilt at random, and recursion bombs: an error or
# some value, never a crash and nothing from beyond the document.

use strict;
use warnings;

use IPC::Open2;
use MongoFdwTest;
use Test::More;

my $COUNT = $ENV{MUTATED_DOCUMENTS} || 10000;

my ($reader, $writer);
my $pid = open2($reader, $writer, python('fake_mongod.py'));
chomp(my $port = <$reader>);

my $node = new_postgres('mutated');
my $columns = q(_id objectid, double float8, string text, "document.b.c" text, document json, numbers int[],
	matrix int[], "binary" bytea, old_binary bytea, uuid uuid, "boolean" bool, date timestamptz, regex jsonb,
	code json, scoped jsonb, "int" int, "timestamp" jsonb, "long" numeric(30,2), "decimal" numeric,
	lowest json, address address, objects jsonb, "objects.0.p" int, missing int);
$node->safe_psql('postgres', qq{
	CREATE SERVER fake FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port');
	CREATE USER MAPPING FOR CURRENT_USER SERVER fake;
	CREATE TYPE address AS (city text, zip int, tags text[]);
	CREATE FOREIGN TABLE strict ($columns) SERVER fake OPTIONS (database 'db', collection 'mutated');
	CREATE FOREIGN TABLE lenient ($columns) SERVER fake
		OPTIONS (database 'db', collection 'mutated', type_mismatch 'null');
	CREATE FOREIGN TABLE documents (__doc jsonb) SERVER fake OPTIONS (database 'db', collection 'mutated');
	CREATE FOREIGN TABLE texts (__doc json) SERVER fake
		OPTIONS (database 'db', collection 'mutated', canonical_json 'true')} . q{;
	-- read_all: how often each SQLSTATE came, '00000' for a row
	CREATE FUNCTION read_all(times int) RETURNS SETOF text LANGUAGE plpgsql AS $$
	DECLARE
		foreign_table text;
		result text;
	BEGIN
		FOR i IN 1 .. times LOOP
			foreign_table := (ARRAY['strict', 'lenient', 'lenient', 'documents', 'texts'])[1 + i % 5];
			BEGIN
				EXECUTE format('SELECT t::text FROM %I AS t', foreign_table) INTO result;
				RETURN NEXT '00000';
			EXCEPTION WHEN OTHERS THEN
				RETURN NEXT sqlstate;
			END;
		END LOOP;
	END $$});

my $answer = $node->safe_psql('postgres',
	"SELECT state, count(*) FROM read_all($COUNT) AS state GROUP BY state ORDER BY state", timeout => 300);
my %count = map { split /\|/ } split /\n/, $answer;
my $sum = 0;
$sum += $_ foreach values %count;
note join(', ', map { "$_: $count{$_}" } sort keys %count);
is($sum, $COUNT, "$COUNT spoilt documents are read to an end");
ok($count{'00000'}, 'some of them are documents all the same');
ok($count{'08P01'}, 'some of them are not BSON');
is(join(' ', grep { !/^(00000|08P01|22...|54...)$/ } sort keys %count), '',
	'and no error is of another kind');

foreach my $table ('deep_documents', 'deep_arrays')
{
	foreach my $case ([ jsonb => '54001' ], [ json => '54001' ], [ int => '22P02' ])
	{
		my ($type, $state) = @$case;
		$node->safe_psql('postgres',
			"CREATE FOREIGN TABLE ${table}_$type (v $type) SERVER fake OPTIONS (database 'db', collection '$table')");
		my (undef, undef, $message) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT v FROM ${table}_$type");
		like($message, qr/ERROR:  $state:/, "$table as $type");
	}
}
is($node->safe_psql('postgres', 'SELECT 1'), '1', 'the server lives');
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/terminated by signal|PANIC/, 'and never died');

close $writer;
waitpid($pid, 0);
done_testing();
