#!/usr/bin/perl
#
# Runs psql, as pg_regress's launcher, and prints its output as PostgreSQL 15
# would, because versions describe the same plans in different words.
#
#	perl t/lib/normalise.pl psql ARGUMENTS...

use strict;
use warnings;

# normalise
#	Returns a line of psql's output in PostgreSQL 15's words.
sub normalise
{
	my ($line) = @_;

	# PostgreSQL 17 names the parameters of InitPlans, and 19 the InitPlans themselves
	$line =~ s/InitPlan (?:expr|minmax|exists|array)_(\d+)/InitPlan $1/g;
	$line =~ s/\(InitPlan (\d+)\)\.col1/'$' . ($1 - 1)/ge;
	$line =~ s/(InitPlan \d+) \(returns [\$,\d]+\)/$1/;

	# PostgreSQL 18 shows fractions of rows
	$line =~ s/(actual rows=\d+)\.\d\d/$1/;

	# and describes PL/pgSQL's expressions differently
	$line =~ s/^(CONTEXT:  )PL\/pgSQL (expression|assignment) "/$1SQL $2 "/;

	# the width of the heading depends on these changes
	$line =~ s/^ *QUERY PLAN *$/ QUERY PLAN/;
	return $line;
}

my $pid = open(my $psql, '-|') // die "could not fork: $!";
if ($pid == 0)
{
	open(STDERR, '>&', \*STDOUT) or die "could not redirect: $!";
	exec(@ARGV) or die "could not run $ARGV[0]: $!";
}

my $below_header = 0;
my $left_out = 0;
while (my $line = <$psql>)
{
	# PostgreSQL 19 names what a Result stands for
	next if $line =~ /^ *Replaces: / && ++$left_out;
	if ($line =~ /^\((\d+) rows?\)$/)
	{
		$line = '(' . ($1 - $left_out) . " rows)\n" if $left_out;
		$left_out = 0;
	}
	$line =~ s/^-+$/------------/ if $below_header;
	$line = normalise($line);
	$below_header = $line eq " QUERY PLAN\n";
	print $line;
}
close $psql;
exit($? >> 8 || ($? ? 1 : 0));
