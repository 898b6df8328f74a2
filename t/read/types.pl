# Every type of column over every kind of field: what is read, and what is a
# mismatch under either setting of type_mismatch.

use strict;
use warnings;
use utf8;

use Encode qw(encode_utf8);
use JSON::PP;
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $ID = '{"$oid": "5f1e2d3c4b5a69788796a5b4"}';

sub decimal { return qq({"\$numberDecimal": "$_[0]"}) }
sub long { return qq({"\$numberLong": "$_[0]"}) }
sub double { return qq({"\$numberDouble": "$_[0]"}) }
sub date { return '{"$date": ' . long($_[0]) . '}' }
sub binary { return qq({"\$binary": {"base64": "$_[0]", "subType": "$_[1]"}}) }

# column type, field as Extended JSON, what it reads as: a text, or the
# SQLSTATE of a mismatch as [SQLSTATE]
my @cases = (
	# integers: integral and in range, in whatever guise
	[ 'integer', '1', '1' ],
	[ 'integer', '3.0', '3' ],
	[ 'integer', '-0.0', '0' ],
	[ 'integer', '3.5', ['22003'] ],
	[ 'integer', double('NaN'), ['22003'] ],
	[ 'integer', double('Infinity'), ['22003'] ],
	[ 'integer', long('2147483647'), '2147483647' ],
	[ 'integer', long('2147483648'), ['22003'] ],
	[ 'integer', long('-2147483649'), ['22003'] ],
	[ 'integer', decimal('0E-6176'), '0' ],
	[ 'integer', 'true', ['22P02'] ],
	[ 'integer', '"abc"', ['22P02'] ],
	[ 'integer', $ID, ['22P02'] ],
	[ 'integer', '{"$undefined": true}', undef ],
	[ 'integer', 'null', undef ],
	[ 'smallint', '32767', '32767' ],
	[ 'smallint', '32768', ['22003'] ],
	[ 'smallint', decimal('1E+3'), '1000' ],
	[ 'smallint', decimal('100.00'), '100' ],
	[ 'bigint', long('9223372036854775807'), '9223372036854775807' ],
	[ 'bigint', long('-9223372036854775808'), '-9223372036854775808' ],
	[ 'bigint', double('9223372036854774784'), '9223372036854774784' ],
	[ 'bigint', double('9223372036854775808'), ['22003'] ],
	[ 'bigint', double('-9223372036854775808'), '-9223372036854775808' ],
	[ 'bigint', decimal('9223372036854775807'), '9223372036854775807' ],
	[ 'bigint', decimal('-9223372036854775808'), '-9223372036854775808' ],
	[ 'bigint', decimal('9223372036854775808'), ['22003'] ],
	[ 'bigint', decimal('1E+6144'), ['22003'] ],
	[ 'bigint', decimal('1E-6176'), ['22003'] ],
	[ 'bigint', decimal('NaN'), ['22003'] ],

	# doubles: the very same number
	[ 'double precision', '0.1', '0.1' ],
	[ 'double precision', double('-0.0'), '-0' ],
	[ 'double precision', double('5e-324'), '5e-324' ],
	[ 'double precision', double('1.7976931348623157e308'), '1.7976931348623157e+308' ],
	[ 'double precision', double('NaN'), 'NaN' ],
	[ 'double precision', double('-Infinity'), '-Infinity' ],
	[ 'double precision', long('9007199254740992'), '9.007199254740992e+15' ],
	[ 'double precision', long('9007199254740993'), ['22003'] ],
	[ 'double precision', long('9223372036854775807'), ['22003'] ],
	[ 'double precision', long('-9223372036854775808'), '-9.223372036854776e+18' ],
	[ 'double precision', decimal('0.125'), '0.125' ],
	[ 'double precision', decimal('0.1'), ['22003'] ],
	[ 'double precision', decimal('-0'), '-0' ],
	[ 'double precision', decimal('1E+22'), '1e+22' ],
	[ 'double precision', decimal('1E+23'), ['22003'] ],
	[ 'double precision', decimal('1E+400'), ['22003'] ],
	[ 'double precision', decimal('1E-6176'), ['22003'] ],
	[ 'double precision', decimal('NaN'), 'NaN' ],
	[ 'double precision', decimal('-Infinity'), '-Infinity' ],
	[ 'real', '0.1', '0.1' ],
	[ 'real', decimal('0.1'), '0.1' ],
	[ 'real', double('1e39'), ['22003'] ],
	[ 'real', double('Infinity'), 'Infinity' ],
	[ 'real', decimal('1E+400'), ['22003'] ],

	# numeric
	[ 'numeric', '5', '5' ],
	[ 'numeric', long('-9223372036854775808'), '-9223372036854775808' ],
	[ 'numeric', decimal('1.10'), '1.10' ],
	[ 'numeric', decimal('-0.001'), '-0.001' ],
	[ 'numeric', decimal('9999999999999999999999999999999999'), '9999999999999999999999999999999999' ],
	[ 'numeric', decimal('12345678901234567890.12345678901234'), '12345678901234567890.12345678901234' ],
	[ 'numeric', decimal('1E+40'), '1' . '0' x 40 ],
	[ 'numeric', decimal('1E-6176'), '0.' . '0' x 6175 . '1' ],
	[ 'numeric', decimal('9.999999999999999999999999999999999E+6144'), '9' x 34 . '0' x 6111 ],
	[ 'numeric', decimal('0E-3'), '0.000' ],
	[ 'numeric', decimal('NaN'), 'NaN' ],
	[ 'numeric', decimal('-Infinity'), '-Infinity' ],
	[ 'numeric', '0.1', '0.1' ],
	[ 'numeric', double('0.3333333333333333'), '0.333333333333333' ],
	[ 'numeric', double('NaN'), 'NaN' ],
	[ 'numeric', '"1"', ['22P02'] ],
	[ 'numeric(5,2)', '1', '1.00' ],
	[ 'numeric(5,2)', decimal('123.456'), '123.46' ],
	[ 'numeric(5,2)', decimal('999.994'), '999.99' ],
	[ 'numeric(5,2)', decimal('-9.99996E+2'), ['22003'] ],
	[ 'numeric(5,2)', decimal('-9.9E+2'), '-990.00' ],
	[ 'numeric(5,2)', decimal('1.1'), '1.10' ],
	[ 'numeric(5,2)', decimal('-0E-6176'), '0.00' ],
	[ 'numeric(5,2)', decimal('1E+18'), ['22003'] ],
	[ 'numeric(5,2)', long('9223372036854775807'), ['22003'] ],
	[ 'numeric(5,2)', double('-0.0'), '0.00' ],
	[ 'numeric(5,2)', double('999.99'), '999.99' ],
	[ 'numeric(5,2)', double('999.995'), ['22003'] ],
	[ 'numeric(18,18)', decimal('-0.999999999999999999'), '-0.999999999999999999' ],
	[ 'numeric(2,4)', decimal('0.0099'), '0.0099' ],
	[ 'numeric(2,4)', decimal('0.01'), ['22003'] ],
	[ 'numeric(3,-2)', 12345, '12300' ],
	[ 'numeric', decimal('9223372036854775807E-20'), '0.09223372036854775807' ],
	[ 'numeric', decimal('-9223372036854775808E-1'), '-922337203685477580.8' ],
	[ 'numeric', double('1e15'), '1000000000000000' ],
	[ 'numeric', double('-100.0'), '-100' ],
	[ 'numeric(5,2)', decimal('999.995'), ['22003'] ],
	[ 'numeric(5,2)', decimal('NaN'), 'NaN' ],
	[ 'numeric(5,2)', decimal('Infinity'), ['22003'] ],
	[ 'numeric(4,-3)', '1234567', '1235000' ],

	# texts
	[ 'text', '"abc"', 'abc' ],
	[ 'text', '""', '' ],
	[ 'text', '"Grüße 🐘 \u4e16\udbff\udffd"', "Grüße 🐘 世\x{10fffd}" ],
	[ 'text', '"a\u0000b"', ['22021'] ],
	[ 'text', $ID, '5f1e2d3c4b5a69788796a5b4' ],
	[ 'text', '5', ['22P02'] ],
	[ 'text', '{"$regularExpression": {"pattern": "a", "options": ""}}', ['22P02'] ],
	[ 'text', '{"$code": "a"}', ['22P02'] ],
	[ 'text', date(0), ['22P02'] ],
	[ 'varchar(3)', '"äöü"', 'äöü' ],
	[ 'varchar(3)', '"abc  "', 'abc' ],
	[ 'varchar(3)', '"abcd"', ['22001'] ],
	[ 'char(3)', '"ä"', 'ä' ],
	[ 'char(3)', '"abcd"', ['22001'] ],
	[ 'name', $ID, '5f1e2d3c4b5a69788796a5b4' ],
	[ 'name', '"' . 'x' x 63 . '"', 'x' x 63 ],
	[ 'name', '"' . 'x' x 64 . '"', ['22001'] ],


	# others
	[ 'boolean', 'true', 'true' ],
	[ 'boolean', 'false', 'false' ],
	[ 'boolean', '1', ['22P02'] ],
	[ 'bytea', binary('AAH/', '00'), '\x0001ff' ],
	[ 'bytea', binary('AAH/', '02'), '\x0001ff' ],
	[ 'bytea', binary('', '80'), '\x' ],
	[ 'bytea', $ID, '\x5f1e2d3c4b5a69788796a5b4' ],
	[ 'bytea', '"abc"', ['22P02'] ],
	[ 'uuid', binary('AAAAAAAAAAAAAAAAAAAAAQ==', '04'), '00000000-0000-0000-0000-000000000001' ],
	[ 'uuid', binary('AAAAAAAAAAAAAAAAAAAAAQ==', '03'), '00000000-0000-0000-0000-000000000001' ],
	[ 'uuid', binary('AAAAAAAAAAAAAAAAAAAAAQ==', '00'), ['22P02'] ],
	[ 'uuid', binary('AAAA', '04'), ['22P02'] ],
	[ 'objectid', $ID, '5f1e2d3c4b5a69788796a5b4' ],
	[ 'objectid', '"5f1e2d3c4b5a69788796a5b4"', ['22P02'] ],

	# dates
	[ 'timestamptz', date(0), '1970-01-01 00:00:00+00' ],
	[ 'timestamptz', date(-1), '1969-12-31 23:59:59.999+00' ],
	[ 'timestamptz', date('-62135596800000'), '0001-01-01 00:00:00+00' ],
	[ 'timestamptz', date('253402300799999'), '9999-12-31 23:59:59.999+00' ],
	[ 'timestamptz', date('-210866803200000'), '4714-11-24 00:00:00+00 BC' ],
	[ 'timestamptz', date('-210866803200001'), ['22008'] ],
	[ 'timestamptz', date('9224318015999999'), '294276-12-31 23:59:59.999+00' ],
	[ 'timestamptz', date('9224318016000000'), ['22008'] ],
	[ 'timestamptz', date('9223372036854775807'), ['22008'] ],
	[ 'timestamptz', '{"$timestamp": {"t": 1, "i": 2}}', ['22P02'] ],
	[ 'timestamptz', '"2020-01-01"', ['22P02'] ],
	[ 'timestamp', date(-1), '1969-12-31 23:59:59.999' ],
	[ 'timestamp(0)', date(999), '1970-01-01 00:00:01' ],
	[ 'date', date(-1), '1969-12-31' ],
	[ 'date', date(86400000), '1970-01-02' ],
	[ 'date', date('9223372036854775807'), ['22008'] ],

	# Strings in a type's text form
	[ 'time', '"12:34:56.789"', '12:34:56.789' ],
	[ 'time', '"nonsense"', ['22P02'] ],
	[ 'timetz', '"12:34:56+02"', '12:34:56+02' ],
	[ 'interval', '"P1Y2M3DT4H"', '1 year 2 mons 3 days 04:00:00' ],
	[ 'interval', '"a while"', ['22P02'] ],
	[ 'inet', '"10.0.0.1"', '10.0.0.1/32' ],
	[ 'inet', '"10.0.0"', ['22P02'] ],
	[ 'cidr', '"10.0.0.0/8"', '10.0.0.0/8' ],
	[ 'macaddr', '"08:00:2b:01:02:03"', '08:00:2b:01:02:03' ],
	[ 'bit(3)', '"101"', '101' ],
	[ 'bit(3)', '"1011"', ['22P02'] ],
	[ 'int4range', '"[1,5)"', '[1,5)' ],
	[ 'time', '5', ['22P02'] ],

	# points
	[ 'point', '{"type": "Point", "coordinates": [1, -2.5]}', '(1,-2.5)' ],
	[ 'point', '{"coordinates": [{"$numberLong": "3"}, {"$numberDecimal": "0.5"}], "type": "Point"}', '(3,0.5)' ],
	[ 'point', '[1, 2]', '(1,2)' ],
	[ 'point', '"(3,4)"', '(3,4)' ],
	[ 'point[]', '[[1, 2], "(3,4)"]', '{"(1,2)","(3,4)"}' ],
	(map { [ 'point', $_, ['22P02'] ] } '"nonsense"', '5', '[]', '[1]', '[1, 2, 3]', '[1, "2"]', '[[1, 2], [3, 4]]', '{}',
		'{"type": "Point"}', '{"coordinates": [1, 2]}', '{"type": "LineString", "coordinates": [1, 2]}',
		'{"type": "Point", "coordinates": [1, 2], "bbox": []}'),
	[ 'point', '[1, {"$numberLong": "9007199254740993"}]', ['22003'] ],

	# enums, domains, composites
	[ 'mood', '"fine"', 'fine' ],
	[ 'mood', '"lousy"', ['22P02'] ],
	[ 'positive', '5', '5' ],
	[ 'positive', '-5', ['23514'] ],
	[ 'positive', '"x"', ['22P02'] ],
	[ 'positive', 'null', undef ],
	[ 'address', '{"zip": 1, "city": "Ulm", "more": 1, "tags": ["a"], "feels": "fine"}', '(Ulm,1,{a},fine)' ],
	[ 'address', '{}', '(,,,)' ],
	[ 'address', '{"zip": "one"}', ['22P02'] ],
	[ 'address', '[]', ['22P02'] ],

	# arrays
	[ 'int[]', '[1, null, 3.0]', '{1,NULL,3}' ],
	[ 'int[]', '[]', '{}' ],
	[ 'int[]', '[[1, 2], [3, 4]]', '{{1,2},{3,4}}' ],
	[ 'int[]', '[[1, 2], [3]]', ['2202E'] ],
	[ 'int[]', '[[1], 2]', ['2202E'] ],
	[ 'int[]', '[1, [2]]', ['2202E'] ],
	[ 'int[]', '[[]]', ['2202E'] ],
	[ 'int[]', '[[[[[[[1]]]]]]]', ['2202E'] ],
	[ 'int[]', '[1, "x"]', ['22P02'] ],
	[ 'int[]', '5', ['22P02'] ],
	[ 'text[]', '["a", "b c", ""]', '{a,"b c",""}' ],
	[ 'objectid[]', "[$ID]", '{5f1e2d3c4b5a69788796a5b4}' ],
	[ 'jsonb[]', '[{"a": 1}, [2]]', '{"{\"a\": 1}",[2]}' ],
	[ 'address[]', '[{"city": "Ulm"}, null]', '{"(Ulm,,,)",NULL}' ],
	[ 'positive[]', '[1, 2]', '{1,2}' ],
	[ 'positive[]', '[1, -2]', ['23514'] ],

	# a type with casts from and to real[]
	[ 'embedding', '[1, 2.5, {"$numberLong": "3"}]', '[1,2.5,3]' ],
	[ 'embedding', '[]', '[]' ],
	[ 'embedding', '[1, "x"]', ['22P02'] ],
	[ 'embedding', '"[1,2]"', ['22P02'] ],
	[ 'embedding', double('1'), ['22P02'] ],
	[ 'embedding', '[1e39]', ['22003'] ],
	[ 'embedding', 'null', undef ],
	[ 'embedding[]', '[[1, 2], null]', '{"[1,2]",NULL}' ],
	[ 'embeddings', '[0.5]', '[0.5]' ],

	# JSON, relaxed
	[ 'jsonb', 'null', undef ],
	[ 'jsonb', '1', '1' ],
	[ 'jsonb', long('9223372036854775807'), '9223372036854775807' ],
	[ 'jsonb', '"a"', '"a"' ],
	[ 'jsonb', '"\u0000"', ['22021'] ],
	[ 'json', '"\u0000"', ['22021'] ],
	[ 'json', double('3'), '3.0' ],
	[ 'json', double('0.1'), '0.1' ],
	[ 'json', double('-0.0'), '-0.0' ],
	[ 'json', double('1e300'), '1e+300' ],
	[ 'jsonb', double('1e18'), '1000000000000000000.0' ],
	[ 'jsonb', double('NaN'), '{"$numberDouble": "NaN"}' ],
	[ 'json', decimal('1.10'), '{"$numberDecimal":"1.10"}' ],
	[ 'json', date(1577934245123), '{"$date":"2020-01-02T03:04:05.123Z"}' ],
	[ 'json', date(1577934245000), '{"$date":"2020-01-02T03:04:05Z"}' ],
	[ 'json', date('253402300799999'), '{"$date":"9999-12-31T23:59:59.999Z"}' ],
	[ 'json', date('253402300800000'), '{"$date":{"$numberLong":"253402300800000"}}' ],
	[ 'json', date(-1), '{"$date":{"$numberLong":"-1"}}' ],
	[ 'json', $ID, '{"$oid":"5f1e2d3c4b5a69788796a5b4"}' ],
	[ 'json', binary('AAH/', '80'), '{"$binary":{"base64":"AAH/","subType":"80"}}' ],
	[ 'json', '{"$regularExpression": {"pattern": "a\"b", "options": "im"}}', '{"$regularExpression":{"pattern":"a\"b","options":"im"}}' ],
	[ 'json', '{"$timestamp": {"t": 4294967295, "i": 2}}', '{"$timestamp":{"t":4294967295,"i":2}}' ],
	[ 'json', '{"$code": "f()"}', '{"$code":"f()"}' ],
	[ 'json', '{"$code": "f()", "$scope": {"a": 1}}', '{"$code":"f()","$scope":{"a":1}}' ],
	[ 'json', '{"$minKey": 1}', '{"$minKey":1}' ],
	[ 'json', '{"$maxKey": 1}', '{"$maxKey":1}' ],
	[ 'json', '{"b": [1, {"": {}}, []], "a": true}', '{"b":[1,{"":{}},[]],"a":true}' ],
	[ 'jsonb', '{"b": [1, {"": {}}, []], "a": true}', '{"a": true, "b": [1, {"": {}}, []]}' ],
	[ 'json', '{"x":' x 100 . '1' . '}' x 100, '{"x":' x 100 . '1' . '}' x 100 ],
);

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('main');

create_server($node, 'mongodb', $mongod);
$node->safe_psql('postgres', q(
	CREATE TYPE mood AS ENUM ('fine', 'sad');
	CREATE DOMAIN positive AS int CHECK (value > 0) NOT NULL;
	CREATE TYPE address AS (city text, zip int, tags text[], feels mood);

	-- in place of pgvector's vector; casts have up to three arguments
	CREATE TYPE embedding;
	CREATE FUNCTION embedding_in(cstring) RETURNS embedding AS 'textin' LANGUAGE internal IMMUTABLE STRICT;
	CREATE FUNCTION embedding_out(embedding) RETURNS cstring AS 'textout' LANGUAGE internal IMMUTABLE STRICT;
	CREATE TYPE embedding (INPUT = embedding_in, OUTPUT = embedding_out, LIKE = text);
	CREATE CAST (text AS embedding) WITHOUT FUNCTION;
	CREATE CAST (embedding AS text) WITHOUT FUNCTION;
	CREATE FUNCTION embedding(real[], int, boolean) RETURNS embedding LANGUAGE sql IMMUTABLE
		AS $$SELECT ('[' || array_to_string($1, ',') || ']')::embedding$$;
	CREATE FUNCTION reals(embedding) RETURNS real[] LANGUAGE sql IMMUTABLE
		AS $$SELECT translate($1::text, '[]', '{}')::real[]$$;
	CREATE CAST (real[] AS embedding) WITH FUNCTION embedding(real[], int, boolean);
	CREATE CAST (embedding AS real[]) WITH FUNCTION reals(embedding) AS IMPLICIT;
	CREATE DOMAIN embeddings AS embedding;

	-- try_read: the field's text, or '[SQLSTATE]'
	CREATE FUNCTION try_read(foreign_table text, id int) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		result text;
	BEGIN
		EXECUTE format('SELECT v::text FROM %I WHERE _id = $1', foreign_table) INTO result USING id;
		RETURN coalesce(result, '[NULL]');
	EXCEPTION WHEN OTHERS THEN
		RETURN '[' || sqlstate || ']';
	END $$;));

my @documents = map { qq({"_id": $_, "v": $cases[$_][1]}) } 0 .. $#cases;
$mongod->insert('db', 'values', '[' . join(',', @documents) . ']');

# One foreign table a type and setting.
my %tables;
my $script = '';
foreach my $type (map { $_->[0] } @cases)
{
	next if $tables{$type};
	my $table = $tables{$type} = 'values_' . keys %tables;
	$script .= "CREATE FOREIGN TABLE ${table}_$_ (_id int, v $type) SERVER mongodb "
	  . "OPTIONS (database 'db', collection 'values', type_mismatch '$_');\n"
	  foreach 'error', 'null';
}
$node->safe_psql('postgres', $script);

$script = '';
foreach my $i (0 .. $#cases)
{
	my $table = $tables{ $cases[$i][0] };
	$script .= "SELECT try_read('${table}_$_', $i);\n" foreach 'error', 'null';
}
my @answers = split /\n/, $node->safe_psql('postgres', $script), -1;

foreach my $i (0 .. $#cases)
{
	my ($type, $field, $expected) = @{ $cases[$i] };
	my $mismatch = ref $expected;
	my $name = "$type over " . (length $field > 60 ? substr($field, 0, 60) . '...' : $field);
	my $error = $mismatch ? "[$expected->[0]]" : $expected // '[NULL]';

	utf8::encode(my $bytes = $error);
	utf8::encode($name);
	is(join(' / ', @answers[ 2 * $i, 2 * $i + 1 ]),
		join(' / ', $bytes, $mismatch ? '[NULL]' : $bytes), $name);
}

# The message says where.
my (undef, undef, $stderr) = $node->psql('postgres',
	"SELECT v FROM $tables{integer}_error WHERE _id = " . (grep { $cases[$_][1] eq '"abc"' } 0 .. $#cases)[0]);
like($stderr, qr/could not read field "v" of collection "db.values" as type integer/, 'message of a mismatch');
like($stderr, qr/DETAIL:  The document with _id \d+ holds a value of BSON type String: "abc"\./, 'its detail');
like($stderr, qr/HINT:  .*type_mismatch/, 'its hint');

# Written as numbers, and read again.
$node->safe_psql('postgres', q(
	CREATE FOREIGN TABLE embedded (_id int, e embedding, es embedding[]) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE embedded_json (_id int, e jsonb, es jsonb) SERVER mongodb OPTIONS (database 'db', collection 'embedded');
	INSERT INTO embedded VALUES (1, '[1,2.5]', '{"[3]",NULL,"[4,5]"}'), (2, NULL, NULL);
	UPDATE embedded SET e = '[0.25,-0]' WHERE _id = 2));
is($node->safe_psql('postgres', 'SELECT * FROM embedded_json ORDER BY _id'),
	"1|[1.0, 2.5]|[[3.0], null, [4.0, 5.0]]\n2|[0.25, 0.0]|", 'arrays of Doubles');
is($node->safe_psql('postgres', 'SELECT e, es FROM embedded ORDER BY _id'),
	qq([1,2.5]|{[3],NULL,"[4,5]"}\n[0.25,-0]|), 'which read as the same');

SKIP:
{
	# halfvec and sparsevec are newer than Ubuntu 24.04's
	skip 'there is no pgvector 0.7', 4 if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions
		WHERE name = 'vector' AND string_to_array(default_version, '.')::int[] >= '{0,7}'}) == 0;
	$node->safe_psql('postgres', q(
		CREATE EXTENSION vector;
		CREATE FOREIGN TABLE vectors (_id int, v vector(3), h halfvec, s sparsevec) SERVER mongodb OPTIONS (database 'db');
		CREATE FOREIGN TABLE vectors_json (_id int, v jsonb, h jsonb, s jsonb) SERVER mongodb OPTIONS (database 'db', collection 'vectors');
		INSERT INTO vectors VALUES (1, '[1,2.5,-3]', '[0.5,2]', '{1:5}/3'), (2, NULL, NULL, NULL), (3, '[0,1,0]', NULL, NULL)));
	is($node->safe_psql('postgres', 'SELECT v, h, s FROM vectors_json WHERE _id = 1'), '[1.0, 2.5, -3.0]|[0.5, 2.0]|"{1:5}/3"', 'vectors are arrays of Doubles');
	is($node->safe_psql('postgres', q{SELECT _id, v, h, s, v <-> '[0,0,0]' FROM vectors WHERE v IS NOT NULL ORDER BY v <-> '[0,1,1]'}),
		"3|[0,1,0]|||1\n1|[1,2.5,-3]|[0.5,2]|{1:5}/3|4.031128874149275", 'which read as vectors');
	$node->safe_psql('postgres', q(
		CREATE FOREIGN TABLE same_vector (_id int, v vector(3), w vector OPTIONS (parameter 'w')) SERVER mongodb OPTIONS (database 'db', collection 'vectors',
			pipeline '[{"$match": {"v": {"$eq": {"$param": "w"}}}}]')));
	is($node->safe_psql('postgres', q{SELECT _id, v = w FROM same_vector WHERE w = '[0,1,0]'}), '3|t', 'parameters are vectors');
	$mongod->insert('db', 'vectors', '[{"_id": 4, "v": [1, 2]}]');
	my (undef, undef, $message) = $node->psql('postgres', 'SELECT v FROM vectors');
	like($message, qr/expected 3 dimensions, not 2/, 'and have as many dimensions as the column');
}

# psql does not print U+10FFFF.
$mongod->insert('db', 'last', '[{"_id": 1, "v": "\\udbff\\udfff"}]');
$node->safe_psql('postgres', q(CREATE FOREIGN TABLE last (_id int, v text) SERVER mongodb OPTIONS (database 'db')));
is($node->safe_psql('postgres', 'SELECT ascii(v) FROM last'), 0x10ffff, 'the last character of Unicode');

# Text forms have one value, whoever reads.
$mongod->insert('db', 'forms', '[{"_id": 1, "i": "-1 2:03:04", "z": "12:00:00", "d": "[01/02/2024,03/04/2024)", "t": ["[2024-01-01 00:00,2024-01-02 00:00)"]}, {"_id": 2, "i": "x", "d": "x"}]');
$node->safe_psql('postgres', q(CREATE FOREIGN TABLE forms (_id int, i interval, z timetz, d daterange, t tstzrange[]) SERVER mongodb OPTIONS (database 'db');
	CREATE TABLE local_forms AS SELECT * FROM forms WHERE _id = 1));
my $other_settings = "SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German, DMY'; SET IntervalStyle = 'sql_standard'; ";
is($node->safe_psql('postgres', "$other_settings SELECT f = l FROM forms f, local_forms l WHERE f._id = 1"), 't', 'text forms under other settings');
is($node->safe_psql('postgres', "SET TimeZone = 'UTC'; SELECT i, z, d, t FROM local_forms"),
	'-1 days +02:03:04|12:00:00+00|[2024-01-02,2024-03-04)|{"[\"2024-01-01 00:00:00+00\",\"2024-01-02 00:00:00+00\")"}', 'text forms');
foreach my $column ('i', 'd')
{
	is($node->safe_psql('postgres', "$other_settings SET client_min_messages = error; DO \$\$ BEGIN PERFORM $column FROM forms WHERE _id = 2; EXCEPTION WHEN data_exception THEN END \$\$;
		SELECT date '1.2.2024', interval '-1 2:03:04', timetz '12:00:00'") =~ s/\n.*//r, '01.02.2024|-1 2:03:04|12:00:00+09', "the settings after an error in $column");
}

# A database in another encoding.
$mongod->insert('db', 'encodings', '[{"_id": 1, "v": "äöü", "d": {"ä": ["ö"]}}, {"_id": 2, "v": "世界", "d": {"世": 1}}]');
$node->safe_psql('postgres', q(CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0));
my $latin1 = q(SET client_encoding = 'UTF8'; );
$node->safe_psql('latin1', 'CREATE EXTENSION mongo_fdw; CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw '
	  . "OPTIONS (address '127.0.0.1', port '" . $mongod->port . "'); "
	  . 'CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb; '
	  . join(' ', map { "CREATE FOREIGN TABLE encodings_$_ (_id int, v text, d jsonb) SERVER mongodb "
		  . "OPTIONS (database 'db', collection 'encodings', type_mismatch '$_');" } 'error', 'null'));
is($node->safe_psql('latin1', "$latin1 SELECT v, d, octet_length(v) FROM encodings_error WHERE _id = 1"),
	encode_utf8('äöü|{"ä": ["ö"]}|3'), 'strings in a LATIN1 database');
is($node->safe_psql('latin1', encode_utf8("$latin1 SELECT count(*) FROM encodings_error WHERE v = 'äöü'")),
	1, 'a filter from one');
is($node->safe_psql('latin1', 'SELECT v IS NULL, d IS NULL FROM encodings_null WHERE _id = 2'),
	't|t', 'characters that LATIN1 does not have read as NULL');
$mongod->insert('latin_names', $_->[0], $_->[1])
  foreach ([ 'plain', '[{"_id": 1, "日": 1, "ä": 1}]' ], [ '日本', '[{"_id": 1}]' ]);
is($node->safe_psql('latin1', qq{$latin1 SET client_min_messages = error; CREATE SCHEMA names; IMPORT FOREIGN SCHEMA latin_names FROM SERVER mongodb INTO names;
	SELECT string_agg(attrelid::regclass || '.' || attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'names.plain'::regclass AND attnum > 0}),
	encode_utf8('names.plain._id names.plain.ä names.plain.__doc'), 'names that LATIN1 does not have are left out');
$mongod->insert('db', 'größe', '[{"_id": 1}, {"_id": 2}, {"_id": 3}]');
is($node->safe_psql('latin1', encode_utf8("$latin1 CREATE FOREIGN TABLE sizes (_id int) SERVER mongodb OPTIONS (database 'db', collection 'größe', fetch_size '1'); ANALYZE sizes;
	SELECT collection, documents, n_distinct FROM mongo_fdw_statistics, pg_stats WHERE relation = 'sizes'::regclass AND tablename = 'sizes'")),
	encode_utf8('db.größe|3|-1'), 'ANALYZE reads a collection whose name is not ASCII');
foreach my $column ('v', 'd')
{
	my ($status, $stdout, $message) = $node->psql('latin1',
		"\\set VERBOSITY verbose\nSELECT $column FROM encodings_error WHERE _id = 2");
	like($message, qr/22021: could not read field "$column".*database's encoding does not have/s,
		"or are a mismatch of $column");
}

# Bytes of SQL_ASCII that are not UTF-8 equal nothing in MongoDB; groups of varchar(n) in both.
$node->safe_psql('postgres', q(CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0));
$mongod->insert('db', 'ascii', '[{"_id": 1, "v": "a", "j": {"k": "a", "m": ["b"]}}, {"_id": 2, "v": "ab", "j": {"k": "ä"}}, {"_id": 3, "v": "a"}, {"_id": 4}]');
foreach my $database ('ascii', 'latin1')
{
	$node->safe_psql('ascii', 'CREATE EXTENSION mongo_fdw; CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw '
		  . "OPTIONS (address '127.0.0.1', port '" . $mongod->port . "'); CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb")
	  if $database eq 'ascii';
	my $bytes = $database eq 'ascii' ? q(E'\\xff\\xfe') : "'zz'";
	$node->safe_psql($database, q{CREATE FOREIGN TABLE ascii (_id int, v text, w varchar(2) OPTIONS (path 'v'), n name OPTIONS (path 'v'), j jsonb, t json OPTIONS (path 'j'))
		SERVER mongodb OPTIONS (database 'db', fdw_tuple_cost '10000', estimated_rows '100000'); SET client_encoding = 'UTF8'; CREATE TABLE local AS TABLE ascii});
	foreach my $query ((map { "SELECT _id FROM TABLE WHERE $_ ORDER BY 1" }
			map({ my $c = $_; map { "$c $_" } '= VALUE', '<> VALUE', "IN ('a', VALUE)", "NOT IN ('a', VALUE)", "= (SELECT VALUE::text)",
				"|| 'x' <> (SELECT VALUE::text)", "|| '' = VALUE", "LIKE VALUE", "< VALUE" } 'v', 'w', 'n'),
			map({ ("j$_", "t$_") } "->>'k' = VALUE", "->>'k' IN ('a', VALUE)", '->>VALUE IS NULL', "->VALUE->>'k' = 'a'"),
			'j ? VALUE', q(j ?| ARRAY['m', VALUE]), q(j @> jsonb_build_object('k', VALUE::text)), q(j->'k' = to_jsonb(VALUE::text))),
		map({ ("SELECT DISTINCT $_ FROM TABLE ORDER BY 1", "SELECT $_, count(*) FROM TABLE GROUP BY 1 ORDER BY 1", "SELECT max($_) FROM TABLE", "SELECT count(DISTINCT $_) FROM TABLE") }
			'v', 'w', "w || ''"))
	{
		my ($remote, $local) = map { my $q = $query; $q =~ s/VALUE/$bytes/g; $q =~ s/TABLE/$_/; ($node->psql($database, "SET client_encoding = 'UTF8'; $q"))[1] // 'error' } 'ascii', 'local';
		is($remote, $local, "$database: $query");
	}
}

# An encoding whose order is not that of UTF-8: in WIN1252 the euro sign is below other letters.
$mongod->insert('db', 'ordered', '[{"_id": 1, "s": "€"}, {"_id": 2, "s": "é"}]');
$node->safe_psql('postgres', q(CREATE DATABASE win1252 ENCODING 'WIN1252' LOCALE 'C' TEMPLATE template0));
$node->safe_psql('win1252', 'CREATE EXTENSION mongo_fdw; CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw '
	  . "OPTIONS (address '127.0.0.1', port '" . $mongod->port . "'); CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb; "
	  . q{CREATE FOREIGN TABLE ordered (_id int, s text) SERVER mongodb OPTIONS (database 'db', estimated_rows '100000', fdw_tuple_cost '10')});
foreach my $case ([ "SELECT _id FROM ordered WHERE s < 'é'", '1' ], [ "SELECT _id FROM ordered WHERE s || 'x' < 'é'", '1' ],
	[ 'SELECT min(s), max(s) FROM ordered', '€|é' ],
	[ 'SELECT s FROM ordered ORDER BY s LIMIT 1', '€' ], [ "SELECT _id FROM ordered WHERE greatest(s, '€') = 'é'", '2' ])
{
	is($node->safe_psql('win1252', encode_utf8(qq(SET client_encoding = 'UTF8'; $case->[0]))), encode_utf8($case->[1]),
		encode_utf8("order in WIN1252: $case->[0]"));
}

# A column that the query does not use is not read.
is($node->safe_psql('postgres', "SELECT count(*), max(_id) FROM $tables{integer}_error"),
	@cases . '|' . $#cases, 'fields that nobody asked for are no mismatch');

# Paths.
$mongod->insert('db', 'paths', '[{"_id": 1, "a": {"b": 1, "c": {"d": "x"}}, "l": [{"p": 1}, {"p": 2}], "s": 5, "e": []}]');
$node->safe_psql('postgres', q(
	CREATE FOREIGN TABLE paths (_id int, "a.b" int, deep text OPTIONS (path 'a.c.d'), a jsonb, "a.c" jsonb,
		first int OPTIONS (path 'l.0.p'), third int OPTIONS (path 'l.2.p'), every int OPTIONS (path 'l.p'),
		l json, "s.x" int, "e.x" int) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE documents (_id int, __doc json) SERVER mongodb OPTIONS (database 'db', collection 'paths')));
is($node->safe_psql('postgres', 'SELECT "a.b", deep, a, "a.c", first, third, l, "s.x" FROM paths'),
	'1|x|{"b": 1, "c": {"d": "x"}}|{"d": "x"}|1||[{"p":1},{"p":2}]|', 'paths, and parents of paths');
is($node->safe_psql('postgres', 'SELECT first FROM paths'), '1', 'a path into an array alone');
foreach my $column ('every', '"e.x"')
{
	my ($status, $stdout, $message) = $node->psql('postgres', "SELECT $column FROM paths");
	like($message, qr/A path through an array has to say which element/, "path of $column through an array");
}
is($node->safe_psql('postgres', 'SELECT __doc FROM documents'),
	'{"_id":1,"a":{"b":1,"c":{"d":"x"}},"l":[{"p":1},{"p":2}],"s":5,"e":[]}', 'the whole document');

$node->safe_psql('postgres', q(
	CREATE FOREIGN TABLE canonical (__doc text, s jsonb) SERVER mongodb
		OPTIONS (database 'db', collection 'paths', canonical_json 'true')));
is($node->safe_psql('postgres', 'SELECT s, left(__doc, 33) FROM canonical'),
	'{"$numberInt": "5"}|{"_id":{"$numberInt":"1"},"a":{"b', 'canonical Extended JSON');

# The replication's log, whose clock is a BSON Timestamp.
my $set = MongoFdwTest::ReplicaSet->new(1);
$set->primary->insert('db', 'things', '[{"_id": 1}]');
create_server($node, 'replicas', $set->primary);
$node->safe_psql('postgres', q(
	CREATE FOREIGN TABLE oplog (ts jsonb, op text, ns text, wall timestamptz, o jsonb) SERVER replicas
		OPTIONS (database 'local', collection 'oplog.rs')));
is($node->safe_psql('postgres', q(
	SELECT o, to_timestamp((ts #>> '{$timestamp,t}')::bigint) BETWEEN wall - interval '1 minute' AND wall + interval '1 minute'
	FROM oplog WHERE op = 'i' AND ns = 'db.things')),
	'{"_id": 1}|t', 'the log of a replica set');

# JSON escapes whatever to_json() does, wherever in a string it stands.
$node->safe_psql('postgres', q(
	CREATE FOREIGN TABLE escaped (__doc json) SERVER mongodb OPTIONS (database 'db', collection 'escaped');
	CREATE TABLE strings AS SELECT n * 100 + at AS id, repeat('x', at) || chr(n) || repeat('y', (n + at) % 11) AS string
		FROM generate_series(1, 160) AS n, generate_series(0, 17) AS at;
	INSERT INTO escaped SELECT json_build_object('_id', id, 's', string) FROM strings));
is($node->safe_psql('postgres', q(
	SELECT count(*) FROM escaped JOIN strings ON id = (__doc->>'_id')::int
	WHERE (__doc->'s')::text = to_json(string)::text AND __doc->>'s' = string)),
	160 * 18, 'JSON escapes what to_json() does, wherever it stands');

# A $date in the form that most have is read as timestamptz would.
$node->safe_psql('postgres', q(
	CREATE FOREIGN TABLE dated (__doc json) SERVER mongodb OPTIONS (database 'db', collection 'dated');
	CREATE FOREIGN TABLE dates (_id int, d timestamptz) SERVER mongodb OPTIONS (database 'db', collection 'dated');
	CREATE TABLE instants AS
		SELECT n AS id, timestamptz '0001-01-01 00:00:00Z' + n * interval '117 days 5:03:07.041' AS d
		FROM generate_series(0, 31000) AS n
		UNION ALL VALUES (-1, timestamptz '2000-02-29 23:59:59.999Z'), (-2, '1900-02-28Z'), (-3, '9999-12-31 23:59:59.999Z');
	INSERT INTO dated SELECT json_build_object('_id', id, 'd', json_build_object('$date',
			to_char(d AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') ||
			CASE WHEN id % 2 = 0 THEN to_char(d AT TIME ZONE 'UTC', '.MS') ELSE '' END || 'Z'))
		FROM instants));
is($node->safe_psql('postgres', q(
	SELECT count(*) FROM instants JOIN dates ON id = _id
	WHERE dates.d = CASE WHEN id % 2 = 0 THEN instants.d ELSE date_trunc('second', instants.d) END)),
	31004, 'a $date as text');
foreach my $date (qw(1900-02-29T00:00:00Z 2001-00-01T00:00:00Z 2001-13-01T00:00:00Z 2001-01-00T00:00:00Z 2001-01-01T25:00:00Z))
{
	like(($node->psql('postgres', qq(INSERT INTO dated VALUES ('{"d": {"\$date": "$date"}}'))))[2],
		qr/date\/time field value out of range: "$date"/, "$date is no date");
}
is($node->safe_psql('postgres', q(
	INSERT INTO dated VALUES ('{"_id": -10, "d": {"$date": "2000-02-28T24:00:00Z"}}');
	SELECT d = '2000-02-29Z' FROM dates WHERE _id = -10)), 't', 'the end of a day');

# docs/types.md has the rows of the table in the code.
my $source = slurp_file('src/convert/types.c');
my $docs = slurp_file('docs/types.md');
my ($table) = $docs =~ /\n## The table\n(.*?)\n## /s;
my @documented = map { split /, /, s/`//gr } $table =~ /^\| (?!Column type|-)([^|]+?) \|/mg;
my @implemented = map { s/\\//gr } $source =~ /^\t(?:\[CATEGORY_\w+\] = )?\{\w+, "(.*?)", (?:KIND|TEXT_FORM|NOT_STORED)/mg;
is_deeply([ sort @documented ], [ sort @implemented ], 'docs/types.md lists the types that the code has');

my @bson_types = $source =~ /^\t\{BSON_TYPE_\w+, "(.*?)", "\w+"\},$/mg;
my ($json) = $docs =~ /\n## JSON\n(.*)/s;
my @in_json = map { split /, / } $json =~ /^\| (?!BSON|-)([^|]+?) \|/mg;
is_deeply([ sort @in_json ], [ sort @bson_types ], 'and every BSON type');

done_testing();
