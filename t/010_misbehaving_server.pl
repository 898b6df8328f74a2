# A server that breaks the wire protocol costs an error, never the session.

use strict;
use warnings;

use IPC::Open2;
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

# start_fake
#	Start fake_mongod.py; gives its port.  It ends with its standard input.
my @fakes;

sub start_fake
{
	my $pid = open2(my $reader, my $writer, python('fake_mongod.py', @_));
	push @fakes, [ $pid, $writer ];
	chomp(my $port = <$reader>);
	return $port;
}

my $port = start_fake();
my $replica_set_port = start_fake('--replica-set');

my $node = new_postgres('misbehaving');
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
	hosts_of_numbers passives_of_numbers compression_of_numbers authentication_text code_zero
	cluster_time_open))
{
	create_fake_server("greeted_$greeting", ", compressors 'zlib'", "--greeting=$greeting");
	run_cases("greeted_$greeting", 'SELECT id FROM TABLE', [ good => '08P01' ]);
}

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

# A connection that is lost meanwhile says nothing of the password.
create_fake_server('scram_lost', '', '--scram=lost');
$node->safe_psql('postgres', q{ALTER USER MAPPING FOR CURRENT_USER SERVER scram_lost OPTIONS (ADD username 'u', ADD password 'p')});
run_cases('scram_lost', 'SELECT id FROM TABLE', [ good => '08001' ]);

foreach my $fake (@fakes)
{
	close $fake->[1];
	waitpid $fake->[0], 0;
}
done_testing();
