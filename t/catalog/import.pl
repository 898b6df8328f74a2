# IMPORT FOREIGN SCHEMA: inferred types, names, nesting, indexes.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('import');

create_server($node, 'mongodb', $mongod);

# import_database
#	Import a database into a new schema of the same name; what was said.
sub import_database
{
	my ($database, $rest, $options) = @_;
	my ($status, undef, $stderr) = $node->psql('postgres',
		"DROP SCHEMA IF EXISTS \"$database\" CASCADE; CREATE SCHEMA \"$database\"; "
		  . "IMPORT FOREIGN SCHEMA \"$database\" " . ($rest // '')
		  . " FROM SERVER mongodb INTO \"$database\" " . ($options // ''));
	return ($status, $stderr);
}

# columns
#	"name type path" of each column, one a line, "*" behind what is indexed.
sub columns
{
	my ($schema, $table) = @_;
	return [ split /\n/, $node->safe_psql('postgres',
		"SELECT concat_ws(' ', attname, format_type(atttypid, atttypmod), "
		  . "(SELECT option_value FROM pg_options_to_table(attfdwoptions) WHERE option_name = 'path'), "
		  . "(SELECT '*' FROM pg_options_to_table(attfdwoptions) WHERE option_name = 'indexed')) "
		  . "FROM pg_attribute WHERE attrelid = format('%I.%I', '$schema', \$t\$$table\$t\$)::regclass "
		  . 'AND attnum > 0 ORDER BY attnum') ];
}

# tables
sub tables
{
	my ($schema) = @_;
	return [ split /\n/, $node->safe_psql('postgres',
		'SELECT foreign_table_name FROM information_schema.foreign_tables '
		  . "WHERE foreign_table_schema = '$schema' ORDER BY foreign_table_name COLLATE \"C\"") ];
}

# select_all
#	Does every table of the schema SELECT, giving as many rows as it should?
sub select_all
{
	my ($schema) = @_;
	foreach my $table (@{ tables($schema) })
	{
		my $name = $node->safe_psql('postgres', "SELECT format('%I.%I', '$schema', \$t\$$table\$t\$)");
		my ($status, undef, $stderr) = $node->psql('postgres', "SELECT * FROM $name");
		is($status, 0, "SELECT from $name") or diag($stderr);
	}
}

# Types.
my @values = (
	[ 'bool', 'boolean', 'true', 'false' ],
	[ 'int', 'integer', '1', '2147483647', 'null' ],
	[ 'long', 'bigint', '1', '2147483648', '9223372036854775807' ],
	[ 'declared_long', 'bigint', '{"$numberLong": "5"}' ],
	[ 'dbl', 'double precision', '1.5', '{"$numberDouble": "NaN"}' ],
	[ 'int_dbl', 'double precision', '1', '2.5', '4294967296' ],
	[ 'wide_dbl', 'numeric', '9007199254740993', '2.5' ],
	[ 'dec', 'numeric', '{"$numberDecimal": "1.10"}', '1' ],
	[ 'dec_dbl', 'numeric', '{"$numberDecimal": "1.10"}', '1.5' ],
	[ 'str', 'text', '"x"', '""', 'null' ],
	[ 'oid', 'objectid', '{"$oid": "5f0000000000000000000001"}' ],
	[ 'oid_str', 'text', '{"$oid": "5f0000000000000000000001"}', '"x"' ],
	[ 'dt', 'timestamp with time zone', '{"$date": "2020-01-01T00:00:00Z"}' ],
	[ 'far', 'jsonb', '{"$date": {"$numberLong": "99999999999999999"}}', '{"$date": "2020-01-01T00:00:00Z"}' ],
	[ 'uid', 'uuid', '{"$uuid": "00112233-4455-6677-8899-aabbccddeeff"}' ],
	[ 'bin', 'bytea', '{"$binary": {"base64": "AQID", "subType": "00"}}', '{"$uuid": "00112233-4455-6677-8899-aabbccddeeff"}' ],
	[ 'str_int', 'jsonb', '"x"', '1' ],
	[ 'bool_int', 'jsonb', 'true', '1' ],
	[ 'nothing', 'jsonb', 'null' ],
	[ 'ts', 'jsonb', '{"$timestamp": {"t": 1, "i": 1}}' ],
	[ 're', 'jsonb', '{"$regularExpression": {"pattern": "a", "options": ""}}' ],
	[ 'low', 'jsonb', '{"$minKey": 1}' ],
	[ 'ints', 'integer[]', '[1, 2, null]', '[]' ],
	[ 'numbers', 'double precision[]', '[1, 2.5]' ],
	[ 'strs', 'text[]', '["a"]', '["b", "c"]', 'null' ],
	[ 'mixed', 'jsonb', '[1, "a"]' ],
	[ 'empties', 'jsonb', '[]' ],
	[ 'arr_int', 'jsonb', '[1]', '1' ],
	[ 'docs', 'jsonb', '[{"a": 1}]' ],
	[ 'arrays', 'jsonb', '[[1], [2, 3]]' ],
	[ 'doc_int', 'jsonb', '{"a": 1}', '1' ],
	[ 'empty', 'jsonb', '{}' ]);
my (@documents, @expected);

push @expected, '_id integer *';
foreach my $value (@values)
{
	my ($name, $type, @seen) = @$value;
	push @expected, "$name $type";
	$documents[$_]{$name} = $seen[$_] foreach 0 .. $#seen;
}
foreach my $i (0 .. $#documents)
{
	my @members = map { exists $documents[$i]{$_->[0]} ? "\"$_->[0]\": $documents[$i]{$_->[0]}" : () } @values;
	$documents[$i] = "{" . join(', ', @members, "\"_id\": $i") . '}';
}
$mongod->insert('types', 't', '[' . join(', ', @documents) . ']');
my ($status, $stderr) = import_database('types');
is($status, 0, 'import of types') or diag($stderr);
is_deeply(columns('types', 't'), \@expected, 'types hold all that was seen, and no more');
select_all('types');

# Nesting.
$mongod->insert('nest', 't', '[{"_id": 1, "a": {"b": {"c": {"d": 1}}, "e": 2}, "a_e": 3}]');
import_database('nest');
is_deeply(columns('nest', 't'), [ '_id integer *', 'a_b jsonb a.b', 'a_e_1 integer a.e', 'a_e integer' ],
	'nesting is 1 by default; a field keeps its name before one made of a path');
import_database('nest', '', "OPTIONS (nesting '0')");
is_deeply(columns('nest', 't'), [ '_id integer *', 'a jsonb', 'a_e integer' ], 'nesting 0');
import_database('nest', '', "OPTIONS (nesting '9')");
is_deeply(columns('nest', 't'),
	[ '_id integer *', 'a_b_c_d integer a.b.c.d', 'a_e_1 integer a.e', 'a_e integer' ], 'nesting 9');
is($node->safe_psql('postgres', 'SELECT a_b_c_d, a_e_1, a_e FROM nest.t'), '1|2|3', 'paths lead to the fields');

# Names.
my $long = '\\u00e9' x 40;    # JSON; 80 bytes in UTF-8
$mongod->insert('names', 't', '[{"_id": 1, "select": 1, "User": 2, "user": 3, "q\"uote": 4, "it\'s": 5, '
	  . '"back\\\\slash": 6, "$dollar": 7, "a$b": 8, " s p ": 9, "%s": 10, "ctid": 11, "__doc": 12, '
	  . "\"${long}x\": 13, \"${long}y\": 14, \"\\t\": 15}]");
$mongod->insert('names', $_, '[{"_id": 1, "x": 1}]')
  foreach ('select', 'Select', 'we"ird', "o'hara", 'a.b', 'c' x 70, ('c' x 70) . 'd', 'back\\slash', 'objectid');
$mongod->insert('names', 'no_column', '[{"_id": 1, "": 1, "d.o.t": 2, "x": 3}]');
($status, $stderr) = import_database('names');
is($status, 0, 'import of hostile names') or diag($stderr);
like($stderr, qr/WARNING:  some fields of collection "no_column" have no column of their own/, 'fields without a path');
is_deeply(columns('names', 'no_column'), [ '_id integer *', 'x integer', '__doc jsonb' ], 'then there is __doc');
is(scalar @{ tables('names') }, 11, 'every collection has a table');
is(scalar(grep { $_ eq 'c' x 63 || $_ eq 'c' x 61 . '_1' } @{ tables('names') }), 2, 'long names are cut and numbered');
select_all('names');
is($node->safe_psql('postgres', "SELECT \"select\", \"User\", \"user\", \"q\"\"uote\", \"it's\", \"back\\slash\", "
		  . '"$dollar", "a$b", " s p ", "%s", ctid_1, __doc_1, "' . "\xc3\xa9" x 31 . "\", "
		  . "\"\t\" FROM names.t"),
	join('|', 1 .. 13, 15), 'every field reads under its name');

# Where the schema has a type of a collection's name.
$node->safe_psql('postgres', 'IMPORT FOREIGN SCHEMA names LIMIT TO (objectid_1) FROM SERVER mongodb INTO public');
is($node->safe_psql('postgres', 'SELECT x FROM public.objectid_1'), '1', 'a table does not clash with a type');

# Which collections.
$mongod->insert('which', $_, '[{"_id": 1}]') foreach qw(a b c);
$mongod->command('{"create": "v", "viewOn": "a", "pipeline": [{"$project": {"_id": 0, "n": "$_id"}}]}', 'which');
import_database('which');
is_deeply(tables('which'), [qw(a b c v)], 'all, views too, without system.views');
is_deeply(columns('which', 'v'), ['n integer'], 'a view without _id');
import_database('which', 'LIMIT TO (a, c)');
is_deeply(tables('which'), [qw(a c)], 'LIMIT TO');
import_database('which', 'EXCEPT (a, v)');
is_deeply(tables('which'), [qw(b c)], 'EXCEPT');
import_database('which', '', "OPTIONS (import_views 'false')");
is_deeply(tables('which'), [qw(a b c)], 'without views');
$mongod->snapshot;
import_database('which', 'LIMIT TO (b)');
is($mongod->changes->{commands}{aggregate}, 1, 'only what is imported is sampled');

# Strings that no type holds, wherever they are.
$mongod->insert('unreadable', $_->[0], "[{\"_id\": 1, \"n\": $_->[1]}]")
  foreach ([ 'string', '"a\\u0000"' ], [ 'nested', '{"a": {"b": ["x", "\\u0000"]}}' ], [ 'deep', '{"a": {"b": {"c": {"$code": "\\u0000"}}}}' ],
	[ 'elements', '["x", "\\u0000"]' ], [ 'document', '1, "n.x": "\\u0000"' ], [ 'empty_name', '1, "": ["\\u0000"]' ],
	[ 'past_columns', '1, ' . join(', ', map { "\"c$_\": 1" } 1 .. 1700) . ', "last": "\\u0000"' ], [ 'code', '{"$code": "\\u0000"}' ], [ 'codes', '[{"$code": "\\u0000"}]' ], [ 'fine', '"x"' ]);
($status, $stderr) = import_database('unreadable');
is($status, 0, 'import of unreadable strings') or diag($stderr);
is(join(' ', sort $stderr =~ /WARNING:  field "(?:n|n\.a|__doc)" .*"(\w+)" has values that PostgreSQL cannot hold/g), 'code codes deep document elements empty_name nested past_columns string', 'warnings');
is($node->safe_psql('postgres', "SELECT string_agg(ftrelid::regclass::text, ' ' ORDER BY ftrelid::regclass::text COLLATE \"C\") "
	  . "FROM pg_foreign_table WHERE 'type_mismatch=null' = ANY (ftoptions)"),
	'unreadable.code unreadable.codes unreadable.deep unreadable.document unreadable.elements unreadable.empty_name unreadable.nested unreadable.past_columns unreadable.string', 'read as NULL');
select_all('unreadable');

# Indexes.
$mongod->insert('indexes', 't', '[{"_id": 1, "a": 1, "b": 2, "c": {"d": 3}, "h": 4, "p": 5, "t": "x", "n": 6}]');
$mongod->command('{"createIndexes": "t", "indexes": [{"key": {"a": 1}, "name": "a"}, '
	  . '{"key": {"c.d": -1, "b": 1}, "name": "c"}, {"key": {"h": "hashed"}, "name": "h"}, '
	  . '{"key": {"p": 1}, "name": "p", "partialFilterExpression": {"p": {"$gt": 5}}}, '
	  . '{"key": {"t": 1}, "name": "t", "collation": {"locale": "de"}}, {"key": {"$**": 1}, "name": "w"}]}', 'indexes');
import_database('indexes');
is_deeply([ grep { /\*$/ } @{ columns('indexes', 't') } ],
	[ '_id integer *', 'a integer *', 'c_d integer c.d *' ], 'columns that an index leads with');

# A sample is enough, whatever its order.
$mongod->fill('large', 't', 5000, 0);
import_database('large', '', "OPTIONS (sample_size '50')");
is_deeply([ map { s/^_id .*/_id/r } @{ columns('large', 't') } ], [ '_id', 'id bigint *', 'info text' ], 'a sample; other whole numbers may be larger');

# Another sample gives the same schema, and no column is narrower than values that it lacks.
$mongod->insert('drift', 't', '[' . join(', ', map {
	"{\"_id\": $_, \"n\": " . ($_ % 60 == 7 ? '"x"' : $_) . ", \"title\": " . ($_ % 50 == 0 ? $_ : '"x"') . ', "odd": ' . ($_ == 2501 ? 5 : '"x"') . ', "tags": ["a"], "long": {"$numberLong": "1"}, "d": '
	  . ($_ % 2 ? 1.5 : 2) . ($_ % 97 == 0 ? ', "rare' . $_ % 7 . '": 1' : '') . '}' } 0 .. 2999) . ']');
($status, $stderr) = import_database('drift', undef, "OPTIONS (sample_size '500')");
like($stderr, qr/NOTICE:  some values of collection "t" do not fit their columns\nDETAIL:  n: \d+ of 500 are String; title: \d+ of 500 are Int32\.\n/, 'one NOTICE of what does not fit');
like($stderr, qr/HINT:  Reading them is an error\. ALTER FOREIGN TABLE drift\.t OPTIONS \(ADD type_mismatch 'null'\), ADD COLUMN __mismatch jsonb; makes them NULL/, 'with the statement');
my $imported = columns('drift', 't');
is_deeply([ grep { !/rare/ } @$imported ], [ '_id bigint *', 'n bigint', 'title text', 'odd text', 'tags text[]', 'long bigint', 'd double precision' ],
	'types that a sample can know');
import_database('drift', undef, "OPTIONS (sample_size '500')");
is_deeply(columns('drift', 't'), $imported, 'are those of another import');
isnt(($node->psql('postgres', 'SELECT count(title || odd) FROM drift.t'))[0], 0, 'what does not fit is an error');
$node->safe_psql('postgres', $stderr =~ /(ALTER FOREIGN TABLE .*?;)/);
is($node->safe_psql('postgres', 'SELECT count(*), count(title), count(odd), count(__mismatch) FROM drift.t'), '3000|2940|2999|111', 'until the statement has run');
is($node->safe_psql('postgres', "SELECT * FROM mongo_fdw_refresh('drift', options => '{sample_size=500}')"), '', 'and a refresh leaves it');
(undef, $stderr) = import_database('drift', undef, "OPTIONS (sample_size '500', type_mismatch 'null')");
like($stderr, qr/HINT:  They are read as NULL, and the column __mismatch shows them\./, 'or by the option');
is($node->safe_psql('postgres', 'SELECT count(title) + count(odd), count(__mismatch) FROM drift.t'), '5939|111', 'which reads what the sample lacked, too');
is($node->safe_psql('postgres', "SELECT * FROM mongo_fdw_refresh('drift', options => '{sample_size=500,type_mismatch=null}')"), '', 'and a refresh leaves that');
$mongod->insert('few', 't', '[' . join(', ', map { $_ == 7 ? '{"_id": 7, "a": "x", "b": {"k": 1}, "c": ["x"]}' : "{\"_id\": $_, \"a\": 1, \"b\": \"x\", \"c\": [1, 2]}" } 1 .. 20) . ']');
import_database('few');
is_deeply(columns('few', 't'), [ '_id integer *', 'a integer', 'b text', 'c integer[]' ], 'the frequent type wins');
is($node->safe_psql('postgres', "SELECT * FROM mongo_fdw_refresh('few')"), '', 'in a refresh, too');
like($node->safe_psql('postgres', "SELECT * FROM mongo_fdw_refresh('few', options => '{type_mismatch=null}')"),
	qr/^ALTER FOREIGN TABLE few\.t\n\tOPTIONS \(ADD type_mismatch 'null'\),\n\tADD COLUMN __mismatch jsonb;$/, 'which adds the option');
$mongod->insert('few', 't', '[' . join(', ', map { "{\"_id\": $_, \"a\": " . ($_ % 9 == 0 ? 1 : '"x"') . '}' } 1 .. 90) . ']');
import_database('few');
is_deeply([ (@{ columns('few', 't') })[1] ], ['a jsonb'], 'but not if it has less than nine tenths');

# Maps.
$mongod->insert('maps', 't', '[' . join(', ', map { "{\"_id\": $_, \"m\": {\"k$_\": 1, \"eur\": 1}, \"r\": {\"a\": 1, \"b$_\": 1}, \"l\": [{\"k$_\": 1}], \"e\": {}}" } 1 .. 30) . ']');
import_database('maps');
is_deeply(columns('maps', 't'), [ '_id integer *', 'm jsonb', 'r jsonb', 'l jsonb', 'e jsonb' ], 'a document with a key of its own is a map');
$mongod->insert('maps', 't', '[' . join(', ', map { "{\"_id\": $_, \"m\": {\"k" . $_ % 50 . '": 1, "eur": 1, "usd": 1}, "l": [{"k' . "$_\": 1}, {\"l$_\": 1}]}" } 1 .. 100) . ']');
import_database('maps', undef, "OPTIONS (arrays 'tables')");
is_deeply(columns('maps', 't'), [ '_id integer *', 'm jsonb', 'l jsonb' ], 'also if some keys are frequent');
is_deeply(tables('maps'), ['t'], 'and no array of maps is a table');
$mongod->insert('records', 't', '[' . join(', ', map { "{\"_id\": $_, \"r\": {\"a\": 1" . ($_ % 10 == 0 ? ', "b": 1, "c": 2, "d": 3' : '') . '}}' } 1 .. 30) . ']');
import_database('records');
is_deeply(columns('records', 't'), [ '_id integer *', map { "r_$_ integer r.$_" } qw(a b c d) ], 'a record may have rare fields');

# Names without quotes.
my $names = '{"_id": 1, "userName": 1, "user name": 2, "user_name": 3, "HTTPStatus": 4, "first-name": 5, "2nd": 6, "order": 7, "a.b": 1, "_x": 8, "Stra\\u00dfe": 9, "???": 10, "sub Doc": {"subKey": 11}, "ID": 12}';
$mongod->insert('snake', 'userProfiles', "[$names]");
$mongod->insert('snake', 'Order', '[{"_id": 1, "lineItems": [{"unitPrice": 1}]}]');
(undef, $stderr) = import_database('snake', undef, "OPTIONS (names 'snake_case', arrays 'tables')");
is_deeply(tables('snake'), [qw(order_ order__line_items user_profiles)], 'tables in snake_case');
is_deeply(columns('snake', 'user_profiles'), [ '_id integer *', 'user_name_2 integer userName', 'user_name_1 integer user name', 'user_name integer', 'http_status integer HTTPStatus',
	'first_name integer first-name', '_2nd integer 2nd', 'order_ integer order', '_x integer', "stra\xc3\x9fe integer Stra\xc3\x9fe", '_ integer ???', 'sub_doc_sub_key integer sub Doc.subKey',
	'id integer ID', '__doc jsonb' ], 'columns, numbered by their paths') or diag(explain(columns('snake', 'user_profiles')));
select_all('snake');
is($node->safe_psql('postgres', "SELECT * FROM mongo_fdw_refresh('snake', options => '{names=snake_case}')"), '', 'a refresh knows them');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE snake.order_, snake.order__line_items');
is($node->safe_psql('postgres', "SELECT * FROM mongo_fdw_refresh('snake', options => '{names=snake_case}')"),
	"IMPORT FOREIGN SCHEMA snake LIMIT TO (order_) FROM SERVER mongodb INTO snake OPTIONS (names 'snake_case');", 'and the names of new ones');

# LIMIT TO and EXCEPT know the names of collections.
(undef, $stderr) = import_database('snake', 'LIMIT TO ("userProfiles", order_)', "OPTIONS (names 'snake_case')");
is($stderr =~ /NOTICE:  (?!drop|schema)/, '', 'names of collections and of tables') or diag($stderr);
is_deeply(tables('snake'), [qw(order_ user_profiles)], 'in LIMIT TO');
import_database('snake', 'EXCEPT ("userProfiles")', "OPTIONS (names 'snake_case')");
is_deeply(tables('snake'), [qw(order_)], 'and in EXCEPT');
(undef, $stderr) = import_database('snake', 'LIMIT TO (userprofiles, "userProfile", nothing)');
like($stderr, qr/"snake\.userprofiles" does not exist\nHINT:  Perhaps "userProfiles" is meant\.\n.*"snake\.userProfile" does not exist\nHINT:  Perhaps "userProfiles" is meant\.\n.*"snake\.nothing" does not exist$/,
	'the nearest name');

# A preview.
$node->safe_psql('postgres', 'DROP SCHEMA snake CASCADE; CREATE SCHEMA snake');
my $preview = $node->safe_psql('postgres', "SELECT * FROM mongo_fdw_import_preview('mongodb', 'snake', 'snake', '{Order,userProfiles}', '{names=snake_case}')");
like($preview, qr/^CREATE FOREIGN TABLE snake\.order_ \(\n\t_id integer.*\nCREATE FOREIGN TABLE snake\.user_profiles \(/s, 'a preview');
is_deeply(tables('snake'), [], 'creates nothing');
$node->safe_psql('postgres', $preview);
is_deeply(columns('snake', 'order_'), [ '_id integer *', 'line_items jsonb lineItems' ], 'its statements do');
like($node->safe_psql('postgres', "SELECT * FROM mongo_fdw_import_preview('mongodb', 'snake') LIMIT 1"), qr/^CREATE FOREIGN TABLE "Order" \(/, 'without a schema');
$node->safe_psql('postgres', "CREATE ROLE previewer; GRANT USAGE ON FOREIGN SERVER mongodb TO previewer; CREATE USER MAPPING FOR previewer SERVER mongodb");
like(($node->psql('postgres', "SET ROLE previewer; SELECT * FROM mongo_fdw_import_preview('mongodb', 'snake', 'snake')"))[2], qr/permission denied for schema snake/, 'as an import, only who may create tables there');
$node->safe_psql('postgres', 'REVOKE USAGE ON FOREIGN SERVER mongodb FROM previewer');
like(($node->psql('postgres', "SET ROLE previewer; SELECT * FROM mongo_fdw_import_preview('mongodb', 'snake')"))[2], qr/permission denied for foreign server mongodb/, 'and may use the server');

# A broken view is left out, the rest is imported.
$mongod->insert('views', 'good', '[{"_id": 1, "n": 0}]');
$mongod->command("{\"create\": \"$_->[0]\", \"viewOn\": \"good\", \"pipeline\": $_->[1]}", 'views')
  foreach ([ 'broken', '[{"$set": {"x": {"$divide": [1, "$n"]}}}]' ], [ 'fine', '[{"$set": {"x": 1}}]' ],
	[ 'lost', '[{"$lookup": {"from": "good", "localField": "n", "foreignField": "n", "as": "x", "pipeline": [{"$set": {"y": {"$toInt": "x"}}}]}}]' ]);
($status, $stderr) = import_database('views');
is($status, 0, 'broken views') or diag($stderr);
is(join(' ', sort $stderr =~ /WARNING:  skipping view "views\.(\w+)": ./g), 'broken lost', 'are skipped with a warning');
is_deeply(tables('views'), [qw(fine good)], 'and nothing else is');
$mongod->block_commands(5000, 'aggregate');
($status, undef, $stderr) = $node->psql('postgres', "CREATE SCHEMA views2; SET statement_timeout = '500ms'; "
	  . 'IMPORT FOREIGN SCHEMA views LIMIT TO (fine) FROM SERVER mongodb INTO views2');
$mongod->unblock_commands;
like($stderr, qr/ERROR:  canceling statement due to statement timeout/, 'a cancel is no reason to skip a view');

# Names in lower case, ObjectIds as text, names that are taken, names that nobody has.
$mongod->insert('Mixed', 'Orders', '[{"_id": {"$oid": "5f0000000000000000000001"}, "custId": 1, "custid": 2, "Address": {"ZipCode": "x"}, "refs": [{"$oid": "5f0000000000000000000002"}]}]');
$mongod->insert('Mixed', 'ORDERS', '[{"_id": 1}]');
import_database('Mixed', '', "OPTIONS (lower_case_names 'true', objectid 'text')");
is_deeply(tables('Mixed'), [qw(orders orders_1)], 'tables in lower case');
is_deeply(columns('Mixed', 'orders_1'), [ '_id text *', 'custid_1 integer custId', 'custid integer', 'address_zipcode text Address.ZipCode', 'refs text[]' ],
	'columns in lower case, ObjectIds as text');
($status, undef, $stderr) = $node->psql('postgres', q{IMPORT FOREIGN SCHEMA "Mixed" LIMIT TO (orders, orders_1, none) FROM SERVER mongodb INTO "Mixed" OPTIONS (lower_case_names 'true', if_exists 'skip')});
is($status, 0, 'names that are taken');
is(scalar(() = $stderr =~ /NOTICE:  relation "orders(?:_1)?" already exists, skipping/g), 2, 'are skipped');
like($stderr, qr/NOTICE:  collection "Mixed\.none" does not exist/, 'LIMIT TO what is not there');
($status) = $node->psql('postgres', q{IMPORT FOREIGN SCHEMA "Mixed" FROM SERVER mongodb INTO "Mixed" OPTIONS (lower_case_names 'true')});
isnt($status, 0, 'or are an error');
select_all('Mixed');

# Arrays of documents as tables.
$mongod->insert('arrays', 'orders', '[{"_id": 1, "lines": [{"product": 5, "_id": "a", "parts": [{"x": 1}], "box": {"w": 1}}, {"product": 6, "price": 1.5}], '
	  . '"nested": {"rows": [{"a": true}], "n": 1}, "tags": ["x"], "mixed": [{"a": 1}, 2], "empty": [], "ordinality": [{"k": 1}], "orders": 1}, '
	  . '{"_id": 2, "lines": []}]');
$mongod->insert('arrays', 'orders_lines', '[{"_id": 1}]');
($status, $stderr) = import_database('arrays', '', "OPTIONS (arrays 'tables', nesting '2')");
unlike($stderr, qr/WARNING|ERROR/, 'arrays as tables');
is_deeply(tables('arrays'), [qw(orders orders_lines orders_lines_1 orders_nested_rows orders_ordinality)],
	'a table for each array of documents, with a name of its own');
is_deeply(columns('arrays', 'orders_lines_1'),
	[ '_id integer', 'ordinality bigint', 'product integer lines.product', 'price double precision lines.price',
		'_id_1 text lines._id', 'parts jsonb lines.parts', 'box_w integer lines.box.w' ],
	'with the _id of the document, the number and the fields of the element')
  or diag(explain(columns('arrays', 'orders_lines_1')));
is_deeply(columns('arrays', 'orders_ordinality'), [ '_id integer', 'ordinality_1 bigint', 'k integer ordinality.k' ],
	'a number of another name');
is($node->safe_psql('postgres', 'SELECT * FROM arrays.orders_lines_1 ORDER BY _id, ordinality'),
	"1|1|5||a|[{\"x\": 1}]|1\n1|2|6|1.5|||", 'which can be read');
is($node->safe_psql('postgres', 'SELECT * FROM arrays.orders_nested_rows'), '1|1|t', 'in a nested document, too');
select_all('arrays');
(undef, undef, $stderr) = $node->psql('postgres', 'CREATE SCHEMA arrays2; IMPORT FOREIGN SCHEMA arrays LIMIT TO (orders, orders_ordinality) '
	  . "FROM SERVER mongodb INTO arrays2 OPTIONS (arrays 'tables')");
is($stderr, '', 'LIMIT TO knows them');
is_deeply(tables('arrays2'), [qw(orders orders_ordinality)], 'and leaves out the others');
is($node->safe_psql('postgres', "SELECT count(*) FROM mongo_fdw_refresh('arrays')"), '0', 'a refresh passes them over');

# GeoJSON is one column, as soon as one document has it; what only looks a little like it is not.
my $point = '{"type": "Point", "coordinates": [5.5, 60]}';
$mongod->insert('places', 'p', "[{\"_id\": 1, \"loc\": $point, \"area\": {\"type\": \"Polygon\", \"coordinates\": [[[0, 0], [0, 1], [1, 1], [0, 0]]]}, "
	  . "\"at\": {\"city\": \"Oslo\", \"loc\": $point}, \"mixed\": $point, \"other\": {\"type\": \"Point\", \"coordinates\": \"none\"}, \"kind\": {\"type\": \"x\"}}, "
	  . '{"_id": 2, "mixed": {"street": "Main"}, "area": {"type": "GeometryCollection", "geometries": []}, "loc": null}]');
import_database('places', undef, "OPTIONS (nesting '3')");
is_deeply(columns('places', 'p'), [ '_id integer *', 'loc jsonb', 'area jsonb', 'at_city text at.city', 'at_loc jsonb at.loc', 'mixed jsonb',
	'other_type text other.type', 'other_coordinates text other.coordinates', 'kind_type text kind.type' ], 'GeoJSON');
is($node->safe_psql('postgres', 'SELECT at_loc, mixed FROM places.p ORDER BY _id'), '{"type": "Point", "coordinates": [5.5, 60]}|'
	  . "{\"type\": \"Point\", \"coordinates\": [5.5, 60]}\n|{\"street\": \"Main\"}", 'is read whole');
is($node->safe_psql('postgres', "SELECT count(*) FROM mongo_fdw_refresh('places', options => '{nesting=3}')"), '0', 'and stays so');

# Bad input.
foreach my $case (
	[ 'SCHEMA nowhere', '', qr/database "nowhere" of server "mongodb" has no collections.*HINT/s ],
	[ 'SCHEMA which', "OPTIONS (sample_size '0')", qr/invalid value for integer option "sample_size": 0/ ],
	[ 'SCHEMA which', "OPTIONS (nesting '101')", qr/invalid value for integer option "nesting": 101/ ],
	[ 'SCHEMA which', "OPTIONS (objectid 'uuid')", qr/invalid value for option "objectid": "uuid".*Valid values are: objectid, text/s ],
	[ 'SCHEMA which', "OPTIONS (if_exists 'replace')", qr/invalid value for option "if_exists": "replace".*Valid values are: error, skip/s ],
	[ 'SCHEMA which', "OPTIONS (arrays 'rows')", qr/invalid value for option "arrays": "rows".*Valid values are: columns, tables/s ],
	[ 'SCHEMA which', "OPTIONS (depth '1')", qr/invalid option "depth".*sample_size, nesting, import_views, lower_case_names, names, type_mismatch, arrays, if_exists, objectid/s ],
	[ 'SCHEMA which', "OPTIONS (smaple_size '1')", qr/invalid option "smaple_size".*Perhaps the option "sample_size" is meant/s ],
	[ 'SCHEMA which', "OPTIONS (names 'camel')", qr/invalid value for option "names": "camel".*Valid values are: original, snake_case/s ],
	[ 'SCHEMA which', "OPTIONS (type_mismatch 'skip')", qr/invalid value for option "type_mismatch": "skip".*Valid values are: error, null/s ])
{
	my ($what, $options, $message) = @$case;
	(undef, undef, $stderr) =
	  $node->psql('postgres', "IMPORT FOREIGN $what FROM SERVER mongodb INTO public $options");
	like($stderr, $message, "IMPORT FOREIGN $what $options");
}

done_testing();
