# docs/tutorial.md as a script for psql, and a look at what psql writes.
#
#	perl tutorial.pl script PORT REPLICA_SET	of the mongod; the script goes to standard output
#	perl tutorial.pl compare	reads psql's output, and exits with an error where it differs

use strict;
use warnings;

my ($action, $port, $set) = @ARGV;

sub slurp
{
	my ($from) = @_;

	local $/ = undef;
	return scalar <$from>;
}

open(my $file, '<', __FILE__ =~ s{[^/]*$}{../../docs/tutorial.md}r) or die "docs/tutorial.md: $!\n";
my $page = slurp($file);

# A block of SQL, and the block without a language that comes right after it, if one does.
my @blocks;
push @blocks, [ $1, $2 ] while $page =~ /^```sql\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg;
die "the page has hardly a statement\n" if @blocks <= 10 || grep({ defined $_->[1] } @blocks) <= 4;

if ($action eq 'script')
{
	my $script = join("\n", map { "\\echo == $_\n$blocks[$_][0]" } 0 .. $#blocks);

	die "the port is not at one place\n" if ($script =~ s/port '27017'/port '$port'/g) != 1;
	die "the set is not at one place\n" if ($script =~ s/replica_set 'rs0'/replica_set '$set'/g) != 1;
	print "\\set QUIET on\nSET client_min_messages = warning;\n\\pset format aligned\n\\pset tuples_only off\n$script";
	exit;
}

my @given = split /^== (\d+)\n/m, slurp(*STDIN), -1;
my %given = @given[ 1 .. $#given ];
my $differ = 0;

foreach my $number (0 .. $#blocks)
{
	my ($sql, $shown) = @{ $blocks[$number] };
	my ($name) = $sql =~ /(.*)/;
	my $given = $given{$number};

	if (!defined $given)
	{
		print "$name\nand what comes before it did not run\n";
		exit 1;
	}
	next if !defined $shown;
	# a plan without psql's frame
	$given =~ s/^ *QUERY PLAN *\n-+\n|^\(\d+ rows\)\n//mg if $name =~ /^EXPLAIN/;
	s/ +$//mg, s/^\n|\n+\z//g foreach ($shown, $given);
	next if $given eq $shown;
	$differ = 1;
	print "$name\ngives\n$given\nin place of\n$shown\n";
}
exit $differ;
