# A server that breaks the wire protocol, on purpose or at random, costs an error, never the
# session, nor shows anything from beyond a document.  More of what is random:
# MUTATED_REPLIES=100000 MUTATED_REPLIES_SEED=7 MUTATED_DOCUMENTS=1000000 TEST_FILE_TIMEOUT=7200

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $MUTATED_DOCUMENTS = $ENV{MUTATED_DOCUMENTS} || 10000;
my $MUTATED_REPLIES = $ENV{MUTATED_REPLIES} || 1000;
my $SEED = $ENV{MUTATED_REPLIES_SEED} || 0;

# ----------------------------- one fault in a reply --------------------------------

my $port = start_fake();
my $replica_set_port = start_fake('--replica-set');

my $node = new_postgres('hostile');
$node->safe_psql('postgres', qq{
	CREATE SERVER fake FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port');
	CREATE USER MAPPING FOR CURRENT_USER SERVER fake;
	CREATE FOREIGN TABLE good (id int, info text) SERVER fake OPTIONS (database 'db')});

# What each collection of fake_mongod.py brings: rows, or an SQLSTATE; asked
# with find, and then with getMore where the second value says so.
my @cases = (
	[ good => '7|seven', '7|seven' ],
	[ byte_by_byte => '7|seven', '7|seven' ],
	[ empty_batches => '7|seven' ],
	[ close_first_time => '7|seven' ],
	[ stepdown_first_time => '7|seven' ],
	(
		map { [ $_ => '08P01', '08P01' ] }
		  qw(length_zero length_15 length_negative length_huge length_too_short
		  header_only wrong_response_to wrong_opcode compressed more_to_come
		  checksum unknown_flag section_kind_1 two_replies document_too_long
		  document_too_short no_cursor cursor_of_another_type no_batch
		  element_too_long element_huge element_negative
		  element_not_terminated element_of_another_type element_key_open
		  element_without_value garbage_document string_too_long no_ok two_bodies
		  body_and_sequence section_kind_2 section_kind_255 batch_of_another_type
		  id_of_another_type id_double no_id garbage_after_cursor empty_document)
	),
	(map { [ "lost_$_" => '7|seven' ] } qw(43 136 175 237 10107 connection)),
	[ lost_twice => '24000' ],
	[ lost_connection_twice => '08006' ],
	[ other_error => 'HV000|22\w+' ],
	[ no_namespace => '08P01' ],
	[ namespace_too_long => '08P01' ],
	[ not_bson => 'HV000|08P01', 'HV000|08P01' ],
	[ close_at_once => '08006', '08006' ],
	[ close_after_header => '08006', '08006' ],
	[ close_in_mid_reply => '08006', '08006' ],
	[ cursor_not_found => '24000', '24000' ],
	[ unknown_stage => '0A000' ],
	[ unknown_expression => '0A000' ],
	[ unknown_accumulator => '0A000' ],
	[ error_without_code => 'HV000', 'HV000' ],
	[ error_of_odd_types => 'HV000', 'HV000' ],
	[ error_not_utf8 => 'HV000', 'HV000' ],
);

# One session for all of them; each is followed by a query that must succeed.
my @wanted;
my $script = "\\set VERBOSITY verbose\n";

foreach my $case (@cases)
{
	my ($name, @expected) = @$case;

	foreach my $prefix ('', 'next_')
	{
		my $expected = shift @expected // next;
		my $table = "$prefix$name";

		$script .= "CREATE FOREIGN TABLE IF NOT EXISTS $table (id int, info text)"
		  . " SERVER fake OPTIONS (database 'db');\n"
		  . "\\echo begin $table\n\\warn begin $table\n"
		  . "SELECT id, info FROM $table;\n"
		  . "SELECT 'then ' || info FROM good;\n";
		push @wanted, [ $table, $expected ];
	}
}

my ($stdout, $stderr);
$node->psql('postgres', $script, stdout => \$stdout, stderr => \$stderr, on_error_stop => 0,
	timeout => 120);

my %rows = map { /^(\w+)\n?(.*)/s ? ($1 => $2) : () } split /^begin /m, $stdout;
my %errors = map { /^(\w+)\n?(.*)/s ? ($1 => $2) : () } split /^begin /m, $stderr;

foreach my $case (@wanted)
{
	my ($table, $expected) = @$case;

	if ($expected =~ /seven/)
	{
		like($rows{$table} // '', qr/^\Q$expected\E$/m, "$table: the row is read");
		unlike($errors{$table} // '', qr/ERROR/, "$table: and there is no error");
	}
	else
	{
		like($errors{$table} // '', qr/ERROR:  ($expected):/, "$table: $expected");
	}
	like($rows{$table} // '', qr/^then seven$/m, "$table: the session goes on");
}

# What a server does not know can be disabled.
like($errors{unknown_stage}, qr/HINT: .*pushdown_disable of servers and tables/, 'an unknown stage');
like($errors{unknown_expression}, qr/HINT: .*Add "expr" to the option pushdown_disable/, 'an unknown expression');
like($errors{unknown_accumulator}, qr/HINT: .*Add "group" to the option pushdown_disable/, 'an unknown accumulator');

# One row a batch, and next_good has two.
is(() = ($rows{next_good} // '') =~ /^7\|seven$/mg, 2, 'both batches are read');

# A replica set member that cannot be reached, met while another one's answer
# is processed: libmongoc must not be told at once (it would lock itself out).
is($node->safe_psql('postgres', qq{
		CREATE SERVER half FOREIGN DATA WRAPPER mongo_fdw
			OPTIONS (address '127.0.0.1', port '$replica_set_port', replica_set 'rs');
		CREATE USER MAPPING FOR CURRENT_USER SERVER half;
		CREATE FOREIGN TABLE half_good (id int, info text) SERVER half
			OPTIONS (database 'db', collection 'good');
		SET statement_timeout = '20s';
		SELECT id, info FROM half_good}, timeout => 60),
	'7|seven', 'a replica set with a member that is down');

# run_cases
#	Run statements on tables of a server, each followed by a query that must
#	succeed; they are named by the first value of a case, the second is an
#	SQLSTATE or '' for none.
sub run_cases
{
	my ($server, $statement, @run) = @_;
	my ($out, $err);
	my $text = "\\set VERBOSITY verbose\n";

	foreach my $case (@run)
	{
		$text .= "CREATE FOREIGN TABLE $server.$case->[0] (id int, info text) SERVER $server"
		  . " OPTIONS (database 'db');\n"
		  . "\\echo begin $case->[0]\n\\warn begin $case->[0]\n"
		  . ($statement =~ s/TABLE/$server.$case->[0]/r) . ";\n"
		  . "SELECT 'then ' || info FROM good;\n";
	}
	$node->safe_psql('postgres', "CREATE SCHEMA $server");
	$node->psql('postgres', $text, stdout => \$out, stderr => \$err, on_error_stop => 0, timeout => 120);
	my %out = map { /^(\w+)\n?(.*)/s ? ($1 => $2) : () } split /^begin /m, $out;
	my %err = map { /^(\w+)\n?(.*)/s ? ($1 => $2) : () } split /^begin /m, $err;
	foreach my $case (@run)
	{
		my ($table, $expected) = @$case;

		if ($expected eq '')
		{
			unlike($err{$table} // 'did not run', qr/ERROR|did not/, "$server, $table: no error");
		}
		else
		{
			like($err{$table} // '', qr/ERROR:  ($expected):/, "$server, $table: $expected");
		}
		like($out{$table} // '', qr/^then seven$/m, "$server, $table: the session goes on");
	}
}

sub create_fake_server
{
	my ($name, $options, @arguments) = @_;
	my $port = start_fake(@arguments);

	$node->safe_psql('postgres', qq{
		CREATE SERVER $name FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port' $options);
		CREATE USER MAPPING FOR CURRENT_USER SERVER $name});
}

# The same for what libmongoc reads: answers to writes.
create_fake_server('written', '');
run_cases('written', 'INSERT INTO TABLE VALUES (1)',
	[ good => '' ],
	map { [ $_ => '08006|08P01' ] }
	  qw(length_zero length_15 length_negative length_huge length_too_short header_only
	  wrong_response_to wrong_opcode compressed more_to_come checksum unknown_flag section_kind_1
	  two_replies document_too_long document_too_short close_at_once close_after_header
	  close_in_mid_reply
	  cluster_time_open cluster_time_short topology_version_open write_concern_error_open
	  write_concern_error_text write_concern_error_code_zero labels_text code_zero code_of_33_bits));

# Errors of rows that there are not, or of no row.
create_fake_server('refused', '');
run_cases('refused', 'INSERT INTO TABLE VALUES (1), (2) ON CONFLICT DO NOTHING',
	(map { [ $_ => 'HV000|08006|08P01|23505' ] }
	  qw(write_errors_of_odd_types write_errors_out_of_range write_errors_negative)));
create_fake_server('upserted', '', '--replica-set');
run_cases('upserted', 'INSERT INTO TABLE VALUES (1), (2) ON CONFLICT DO NOTHING',
	(map { [ $_ => 'HV000|08P01|23505' ] }
	  qw(upserted_negative upserted_out_of_range write_errors_out_of_range write_errors_negative)));

# Errors of rows with a label by which the write is repeated, and then no server for that.
foreach my $case ([ refused_and_gone => '', '08P01' ],
	[ duplicate_and_gone => ", insert_mode 'upsert'", '23505|08006' ])
{
	my ($table, $options, $expected) = @$case;

	create_fake_server("server_$table", ", transactions 'off', server_selection_timeout_ms '300'", '--replica-set');
	$node->safe_psql('postgres', qq{
		CREATE FOREIGN TABLE $table (_id int) SERVER server_$table OPTIONS (database 'db' $options)});
	my ($out, $err) = ('', '');
	$node->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO $table VALUES (1), (2);\nSELECT 'then'",
		stdout => \$out, stderr => \$err, on_error_stop => 0);
	like($err, qr/ERROR:  ($expected):/, "$table: $expected");
	is($out, 'then', "$table: the session goes on");
}

# Compressed replies, and what announces itself as such.
create_fake_server('packed', ", compressors 'zlib'", '--compressor=zlib');
run_cases('packed', 'SELECT id FROM TABLE',
	[ packed_good => '' ], [ packed_not_packed => '' ],
	map { [ "packed_$_" => '08P01' ] }
	  qw(size_zero size_small size_large size_huge size_negative bomb bomb_announced no_compressor
	  another_compressor unknown_compressor twice other_opcode garbage cut nothing one_byte bad_inside));
create_fake_server('packed_writes', ", compressors 'zlib'", '--compressor=zlib');
run_cases('packed_writes', 'INSERT INTO TABLE VALUES (1)',
	[ packed_good => '' ], [ packed_not_packed => '' ],
	map { [ "packed_$_" => '08006|08P01' ] }
	  qw(size_zero size_small size_large size_huge size_negative bomb bomb_announced no_compressor
	  another_compressor unknown_compressor twice other_opcode garbage cut nothing one_byte bad_inside));

# Answers to the first "hello", which libmongoc reads as well.
foreach my $greeting (
	qw(length_zero length_20 length_30 length_negative length_huge another_request count_0 count_huge
	document_long document_short document_open not_bson unknown_opcode insert query message_short
	message_section_1 message_empty compressed_size_huge compressed_overflow compressed_nothing
	hosts_of_numbers hosts_without_port hosts_of_colons hosts_bracket hosts_nothing hosts_open hosts_long hosts_many passives_of_numbers compression_of_numbers authentication_text code_zero
	cluster_time_open))
{
	create_fake_server("greeted_$greeting", ", compressors 'zlib'", "--greeting=$greeting");
	run_cases("greeted_$greeting", 'SELECT id FROM TABLE', [ good => '08P01' ]);
}

# A fragment of an event of a change stream.
my $fragment;
$node->psql('postgres', q{CREATE FOREIGN TABLE fragment_open (__token text, id int) SERVER fake
	OPTIONS (database 'db', change_stream 'collection', split_events 'true'); SELECT id FROM fragment_open}, stderr => \$fragment);
like($fragment, qr/invalid.*A fragment of an event is not valid BSON/s, 'a fragment of an event');

# Answers to a password's first message: what libmongoc would read beyond, or hash for an hour.
foreach my $message (qw(iterations iterations_too_many attribute_cut attribute_alone))
{
	create_fake_server("scram_$message", '', "--scram=$message");
	$node->safe_psql('postgres', "ALTER USER MAPPING FOR CURRENT_USER SERVER scram_$message OPTIONS (ADD username 'u', ADD password 'p')");
	run_cases("scram_$message", 'SELECT id FROM TABLE', [ good => '08P01' ]);
}

# More than that is not hashed, as nothing interrupts it; the error says what MongoDB does.
my $many;
$node->psql('postgres', 'SELECT id FROM scram_iterations_too_many.good', stderr => \$many);
like($many, qr/more than 100000 iterations.*HINT:.*scramSHA256IterationCount/s, 'too many iterations of a hash are named');
create_fake_server('scram_iterations_many', '', '--scram=iterations_many');
$node->safe_psql('postgres', q{ALTER USER MAPPING FOR CURRENT_USER SERVER scram_iterations_many
	OPTIONS (ADD username 'u', ADD password 'p')});
run_cases('scram_iterations_many', 'SELECT id FROM TABLE', [ good => '28P01' ]);

# A connection lost meanwhile, or a server that shuts down, says nothing of the password.
foreach my $end (qw(lost shutdown))
{
	create_fake_server("scram_$end", '', "--scram=$end");
	$node->safe_psql('postgres', "ALTER USER MAPPING FOR CURRENT_USER SERVER scram_$end OPTIONS (ADD username 'u', ADD password 'p')");
	run_cases("scram_$end", 'SELECT id FROM TABLE', [ good => '08001' ]);
}

# -------------------- documents with bytes spoilt, and recursion -------------------

my $columns = q(_id objectid, double float8, string text, "document.b.c" text, document json, numbers int[],
	matrix int[], "binary" bytea, old_binary bytea, uuid uuid, "boolean" bool, date timestamptz, regex jsonb,
	code json, scoped jsonb, "int" int, "timestamp" jsonb, "long" numeric(30,2), "decimal" numeric,
	lowest json, address address, objects jsonb, "objects.0.p" int, missing int);
$node->safe_psql('postgres', qq{
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
	"SELECT state, count(*) FROM read_all($MUTATED_DOCUMENTS) AS state GROUP BY state ORDER BY state", timeout => 300);
my %count = map { split /\|/ } split /\n/, $answer;
my $sum = 0;
$sum += $_ foreach values %count;
note join(', ', map { "$_: $count{$_}" } sort keys %count);
is($sum, $MUTATED_DOCUMENTS, "$MUTATED_DOCUMENTS spoilt documents are read to an end");
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

# ------------------------- replies with bytes spoilt -------------------------------

# A statement that ends without rows that count, whatever becomes of it.
$node->safe_psql('postgres', q{
	CREATE PROCEDURE attempt(statement text, attempts int) LANGUAGE plpgsql AS $$
	DECLARE
		failed int := 0;
		lost int := 0;
	BEGIN
		FOR i IN 1..attempts LOOP
			BEGIN
				SET LOCAL statement_timeout = '20s';
				EXECUTE statement;
			EXCEPTION WHEN OTHERS THEN
				failed := failed + 1;
				IF SQLSTATE = '57014' THEN lost := lost + 1; END IF;
			END;
			COMMIT;
		END LOOP;
		RAISE NOTICE 'failed %, timed out %', failed, lost;
	END $$});

foreach my $case (
	[ spoilt_plain => '', 'SELECT count(info) FROM spoilt_plain.spoilt' ],
	[ spoilt_next => '', 'SELECT count(info) FROM spoilt_next.next_spoilt' ],
	[ spoilt_packed => ", compressors 'zlib'", 'SELECT count(info) FROM spoilt_packed.packed_spoilt', '--compressor=zlib' ],
	[ spoilt_writes => '', 'INSERT INTO spoilt_writes.spoilt VALUES (1)' ],
	[ spoilt_packed_writes => ", compressors 'zlib'", 'INSERT INTO spoilt_packed_writes.packed_spoilt VALUES (1)', '--compressor=zlib' ],
	[ spoilt_greeting => '', 'SELECT count(info) FROM spoilt_greeting.good', '--greeting=spoilt' ])
{
	my ($name, $options, $statement, @arguments) = @$case;
	my ($table) = $statement =~ /(\w+\.\w+)/;

	create_fake_server($name, $options, "--seed=$SEED", @arguments);
	my ($status, $stdout, $stderr) = $node->psql('postgres', qq{
		CREATE SCHEMA $name;
		CREATE FOREIGN TABLE $table (id int, info text) SERVER $name OPTIONS (database 'db');
		CALL attempt('$statement', $MUTATED_REPLIES);
		SELECT 'alive'}, timeout => 1800);
	is($status, 0, "$name: no crash in $MUTATED_REPLIES replies") or diag($stderr);
	my ($failed, $lost) = $stderr =~ /failed (\d+), timed out (\d+)/;
	cmp_ok($failed // 0, '>', $MUTATED_REPLIES / 4, "$name: many of them are errors");
	is($lost, 0, "$name: and none is waited for in vain");
}

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|AddressSanitizer|runtime error/,
	'the log has no crash');
done_testing();
