# Messages compressed where both sides agree on it, in each way there is.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('compression');
my $count = 20000;
my $query = 'SELECT count(info), sum(id), sum(length(info)) FROM points';

create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, $count, 300);
my $plain = $node->safe_psql('postgres', $query);
my $info = $node->safe_psql('postgres', 'SELECT info FROM points WHERE id = 7');

# compressed_bytes
#	What MongoDB has sent and received in a compressor: before and after.
sub compressed_bytes
{
	my ($name) = @_;
	my $all = $mongod->command('{"serverStatus": 1}')->{network}{compression}{$name};

	return @$all{qw(compressor decompressor)};
}

# with_server
#	Run SQL on table points of a server that has these options.
sub with_server
{
	my ($options, $sql) = @_;
	my $port = $mongod->port;

	$options =~ s/PLACE/127.0.0.1:$port/;
	$node->safe_psql('postgres', "DROP SERVER IF EXISTS packed CASCADE;
		CREATE SERVER packed FOREIGN DATA WRAPPER mongo_fdw OPTIONS ($options);
		CREATE USER MAPPING FOR CURRENT_USER SERVER packed;
		CREATE SCHEMA packed;
		CREATE FOREIGN TABLE packed.points (id int, info text) SERVER packed OPTIONS (database 'db');
		CREATE FOREIGN TABLE packed.written (id int, info text) SERVER packed OPTIONS (database 'db')");
	my $result = $node->safe_psql('postgres', "SET search_path = packed; $sql");
	$node->safe_psql('postgres', 'DROP SCHEMA packed CASCADE; DROP SERVER packed CASCADE');
	return $result;
}

foreach my $name ('snappy', 'zlib', 'zstd')
{
	foreach my $options ("uri 'mongodb://PLACE/?compressors=$name'",
		"address '127.0.0.1', port '" . $mongod->port . "', compressors '$name'")
	{
		my ($out_before, $in_before) = compressed_bytes($name);
		is(with_server($options, $query), $plain, "$name: the same answer ($options)");
		my ($out, $in) = compressed_bytes($name);

		# the server's compressor works on its replies, about 6.5 MB here
		cmp_ok($out->{bytesIn} - $out_before->{bytesIn}, '>', 6e6, "$name: the replies were compressed");
		cmp_ok($out->{bytesOut} - $out_before->{bytesOut}, '<', 3e6, "$name: to less than half");
		cmp_ok($in->{bytesIn} - $in_before->{bytesIn}, '>', 0, "$name: and so were the requests");
	}
	is(with_server("uri 'mongodb://PLACE/?compressors=$name&zlibCompressionLevel=9'",
			"INSERT INTO written SELECT i, repeat('x', 100) FROM generate_series(1, 1000) i;
			UPDATE written SET info = info || id;
			DELETE FROM written WHERE id > 10;
			SELECT count(*), sum(length(info)) FROM written;
			DELETE FROM written"),
		'10|1011', "$name: writes");
	is(with_server("uri 'mongodb://PLACE/?compressors=$name'",
			'SELECT id FROM points LIMIT 3; SELECT id FROM points WHERE id = -1'),
		"1\n2\n3", "$name: a scan that ends early, and one without rows");
	is(with_server("uri 'mongodb://PLACE/?compressors=$name'",
			'BEGIN; DECLARE c CURSOR FOR SELECT id FROM points; FETCH FORWARD 0 FROM c; MOVE FORWARD 150 IN c; FETCH 1 FROM c; '
			. 'SELECT info FROM points WHERE id = 7; ROLLBACK; SELECT id FROM points WHERE id = 8'),
		"151\n$info\n8",
		"$name: cursors killed half-way");
}

# The first that the server knows; one that it does not is no error.
my $other = MongoFdwTest::Mongod->new(arguments => [ '--networkMessageCompressors', 'zlib' ]);
$other->fill('db', 'points', 10, 0);
$node->safe_psql('postgres', "CREATE SERVER other FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address '127.0.0.1', port '" . $other->port . "', compressors 'zstd,zlib');
	CREATE USER MAPPING FOR CURRENT_USER SERVER other;
	CREATE FOREIGN TABLE others (id int) SERVER other OPTIONS (database 'db', collection 'points')");
is($node->safe_psql('postgres', 'SELECT count(*) FROM others WHERE id > 3'), '7', 'a server without the first choice');
cmp_ok($other->command('{"serverStatus": 1}')->{network}{compression}{zlib}{compressor}{bytesOut}, '>', 0,
	'takes the second');
$node->safe_psql('postgres', "ALTER SERVER other OPTIONS (SET compressors 'snappy')");
is($node->safe_psql('postgres', 'SELECT count(*) FROM others WHERE id > 3'), '7', 'none in common: uncompressed');

# What is not there is refused when it is said.
foreach my $options ("compressors 'lz4'", "compressors 'zlib,,zstd'", "compressors ''",
	"uri 'mongodb://h/?compressors=zlib,lz4'", "uri 'mongodb://h/?appname=a&Compressors=lz4'")
{
	my ($status, $stdout, $stderr) = $node->psql('postgres',
		"CREATE SERVER refused FOREIGN DATA WRAPPER mongo_fdw OPTIONS ($options)");
	isnt($status, 0, "$options: refused");
	like($stderr, qr/ERROR: .*(compressor|invalid)/, "$options: and why");
}

done_testing();
