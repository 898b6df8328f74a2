# docs/troubleshooting.md quotes messages as src/ has them, with their SQLSTATEs,
# and leaves none out but those that this test excludes, each for a reason.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

# What a user cannot act on, or what no user meets as it stands.
my %excluded = (
	'"%s": collection "%s.%s" contains %.0f documents, %d rows in sample' => 'what ANALYZE VERBOSE tells',
	'default conversion function for encoding "%s" to "%s" does not exist' => 'of a conversion that PostgreSQL always has',
	'could not rewind a temporary file' => 'an error of the operating system, in PostgreSQL\'s own file',
	'could not use a MongoDB session' => 'libmongoc adds to a document that is checked before',
);

my $string = qr/"(?:[^"\\]|\\.)*"/;
my $balanced = qr/(\((?:$string|'(?:[^'\\]|\\.)'|[^()"']++|(?1))*+\))/;
my $placeholder = qr/%[-.0-9]*l*[a-z]/;

# The text of the first C string in a piece of source, in pieces as it may be; undef if it has none.
sub text
{
	my ($source) = @_;

	return undef if $source !~ /^\s*($string(?:\s*$string)*)/;
	return join '', map { s/\\(.)/$1/gr } $1 =~ /"((?:[^"\\]|\\.)*)"/g;
}

# --- the source --------------------------------------------------------------------
my $header = `pg_config --includedir-server` =~ s/\n//r . '/utils/errcodes.h';
my %sqlstates = map { s/[^\w]//gr } (slurp_file($header) . slurp_file('include/compat.h')) =~ /^#define (\w+) MAKE_SQLSTATE\((.*?)\)/mg;
cmp_ok(scalar keys %sqlstates, '>', 200, 'SQLSTATEs were read');

# without comments
my %source = map { $_ => join '', map { $_ // '' } slurp_file($_) =~ m{($string|'(?:[^'\\]|\\.)')|/\*.*?\*/|([^"'/]++|/)}gs } glob('src/*.c src/*/*.[ch] include/*.h');
my (%messages, %literals, %contexts);

foreach my $file (keys %source)
{
	my $code = $source{$file};

	foreach ($code =~ /\bereport\s*$balanced/g)
	{
		my ($level, $report) = /^\((\w+),(.*)\)$/s;
		next if $level =~ /^LOG|^DEBUG/;
		my ($errcode) = $report =~ /\berrcode\s*$balanced/;
		my @states = $level =~ /WARNING|NOTICE/ ? $level : map { $sqlstates{$_} } ($errcode // '') =~ /ERRCODE_\w+/g;

		foreach ($report =~ /\berrmsg(?:_plural)?\s*$balanced/g)
		{
			my $message = text(substr $_, 1, -1);
			next if !defined $message;
			$messages{$message}{$_} = 1 foreach @states ? @states : '';
		}
	}

	my @found = $code =~ /((?:\b(?:errmsg|errdetail|elog)\s*\(\s*(?:\w+,\s*)?)?)($string(?:\s*$string)*)/g;
	while (my ($before, $literal) = splice @found, 0, 2)
	{
		$literal = text($literal);
		$literals{$literal} = 1;
		# what the helpers of remote.h and the like are given for errmsg("%s")
		$contexts{$literal} = 1
		  if $literal =~ /^could not / && $before eq '' && $file !~ m{/(?:connect|resolve|error)\.c$};
	}
}
delete @messages{ grep { /^(?:$placeholder)$/ } keys %messages };
cmp_ok(scalar keys %messages, '>', 100, 'messages were read');
cmp_ok(scalar keys %contexts, '>', 10, 'and those of helpers');

# --- the page ----------------------------------------------------------------------
my $page = slurp_file('docs/troubleshooting.md');
my ($heading, $first, %rows) = ('');

foreach my $line (split /\n/, $page)
{
	$heading = $1 if $line =~ /^##+ (.*)/;
	next if $line !~ /^\| ?(.*?) \| ?(.*?) ?\|/;
	my ($cell, $second) = ($1, $2);

	if ($cell !~ /^`/) { $first = $cell; next; }
	push @{ $rows{$first} }, [ $1, $second, $heading ] while $cell =~ /`(.*?)`(?:, |$)/g;
}

# A text of the page is one of the source's in which each placeholder is a NAME.
my %patterns;

sub pattern
{
	my ($text) = @_;
	my $pattern = join '[A-Z]+(?:_[A-Z]+)*', map { quotemeta } split /$placeholder/, $text, -1;

	return $patterns{$text} = qr/^$pattern$/;
}

sub find
{
	my ($quoted, $texts) = @_;

	return grep { $quoted =~ ($patterns{$_} // pattern($_)) } sort keys %$texts;
}

my %quoted;
foreach my $row (@{ $rows{message} })
{
	my ($message, $states) = @$row;
	my @found = find($message, { %messages, %contexts });

	is(scalar @found, 1, "a message of the source: $message") or next;
	$quoted{ $found[0] }{$_} = 1 foreach $states =~ /\b[0-9A-Z]{5}\b|WARNING|NOTICE/g;
	$quoted{ $found[0] }{''} = 1 if $states !~ /\b[0-9A-Z]{5}\b|WARNING|NOTICE/;
}
foreach my $message (sort keys %quoted)
{
	my %expected = %{ $messages{$message} // { '' => 1 } };
	# one that is computed cannot be seen here
	my @more = delete $expected{''} ? grep { !$expected{$_} } keys %{ $quoted{$message} } : ();

	is_deeply([ sort keys %{ $quoted{$message} } ], [ sort keys %expected, @more ], "its SQLSTATE: $message");
}
foreach my $message (sort keys %messages, keys %contexts)
{
	isnt(exists $quoted{$message}, exists $excluded{$message}, "either on the page or excluded: $message");
}
ok(exists $messages{$_} || exists $contexts{$_}, "excluded, and in the source: $_") foreach sort keys %excluded;

# Details.
foreach my $row (@{ $rows{DETAIL} })
{
	is(scalar(() = find($row->[0], \%literals)), 1, "a detail of the source: $row->[0]");
}
my ($hints) = $source{'src/remote/error.c'} =~ /connection_hints\[\] =\n\{(.*?)\n\};/s;
my %details = map { $_->[0] => 1 } @{ $rows{DETAIL} };
ok($details{$_}, "a detail of a connection that failed: $_") foreach $hints =~ /^\t\{"(.*?)"/mg;

# MongoDB's codes.
my ($rules) = $source{'src/remote/error.c'} =~ /RemoteErrorRule rules\[\] =\n\{(.*?)\n\};/s;
my %expected = map { my ($code, $state) = split /, /; $code => $sqlstates{$state} } $rules =~ /\{(\d+, ERRCODE_\w+)/g;
my %shown = map { $_->[0] => $_->[1] } @{ $rows{'MongoDB error'} };
is_deeply(\%shown, \%expected, 'MongoDB\'s codes and their SQLSTATEs');

# What PostgreSQL itself says is what tests see it say.
my $tests = join '', map { slurp_file($_) } grep { $_ ne 't/026_troubleshooting.pl' } glob('t/*.pl t/*.py expected/*.out');
foreach my $row (@{ $rows{'PostgreSQL\'s message'} })
{
	my ($words) = sort { length $b <=> length $a } split / ?"?\b[A-Z]+\b"? ?/, $row->[0];

	ok(index($tests, $words) >= 0, "PostgreSQL says: $row->[0]");
}

done_testing();
