/*-------------------------------------------------------------------------
 *
 * pattern_posix.c
 *		Reading POSIX patterns.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"

#include <ctype.h>

#include "mb/pg_wchar.h"
#include "port/pg_bitutils.h"

static void mongo_set_fold(MongoCharacterSet *set);

/*-------------------------------------------------------------------------
 * Regular expressions of "~" as trees, as far as they mean the same
 * everywhere.
 *
 * Read are characters, ".", "^" where an expression or one of its outer branches
 * starts, "$" where it ends, groups, branches, bracket expressions of characters
 * and of ranges within ASCII, quantifiers, and escapes of single characters.
 * A range goes by code points under any collation.  Classes like \d and [[:alpha:]]
 * go by the collation; under C they are of ASCII alone.
 *
 * Not read are look-around, back references, options ("(?i)", "***="), collating elements,
 * "^" and "$" elsewhere, and escapes that are conditions (\y, \m).
 *
 * https://www.postgresql.org/docs/current/functions-matching.html#POSIX-SYNTAX-DETAILS
 *-------------------------------------------------------------------------
 */

/* PostgreSQL's DUPMAX */
#define MAX_REPETITIONS		255

#define MAX_DEPTH			20

typedef struct Parser
{
	const char *next;
	const char *end;
	bool		folds;
	bool		c_ctype;
	int			depth;			/* of groups */
} Parser;

/* Classes of a C collation, as ranges of their characters. */
static const struct
{
	const char *name;
	char		escape;
	const char *ranges;
}			classes[] =
{
	{"alnum", .ranges = "09AZaz"},
	{"alpha", .ranges = "AZaz"},
	{"blank", .ranges = "\t\t  "},
	{"digit", 'd', "09"},
	{"graph", .ranges = "!~"},
	{"lower", .ranges = "az"},
	{"print", .ranges = " ~"},
	{"punct", .ranges = "!/:@[`{~"},
	{"space", 's', "\t\r  "},
	{"upper", .ranges = "AZ"},
	{"word", 'w', "09AZ__az"},
	{"xdigit", .ranges = "09AFaf"},
};

/* Escapes of one character. */
static const struct
{
	char		escape;
	char		character;
}			escapes[] =
{
	{'a', '\a'}, {'b', '\b'}, {'B', '\\'}, {'e', '\033'}, {'f', '\f'},
	{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'v', '\v'},
};

static bool parse_branches(Parser *parser, List **branches);

static bool
sees(const Parser *parser, char c)
{
	return parser->next < parser->end && *parser->next == c;
}

static bool
takes(Parser *parser, char c)
{
	if (!sees(parser, c))
		return false;
	parser->next++;
	return true;
}

/* add_ranges: pairs of characters: the first and the last one of each range. */
static void
add_ranges(MongoCharacterSet *set, const char *ranges)
{
	for (; *ranges != '\0'; ranges += 2)
		mongo_set_add(set, ranges[0], ranges[1]);
}

/* parse_named_class: after "[:"; up to and with ":]" */
static bool
parse_named_class(Parser *parser, MongoCharacterSet *set)
{
	for (size_t i = 0; parser->c_ctype && i < lengthof(classes); i++)
	{
		size_t		length = strlen(classes[i].name);

		if ((size_t) (parser->end - parser->next) < length + 2 ||
			strncmp(parser->next, classes[i].name, length) != 0 ||
			strncmp(parser->next + length, ":]", 2) != 0)
			continue;
		add_ranges(set, classes[i].ranges);
		parser->next += length + 2;
		return true;
	}
	return false;
}

/*
 * parse_escape: after "\".  Gives the ASCII character, or 0 for a class, which is
 * added to the set; -1 for what is not read.
 */
static int
parse_escape(Parser *parser, MongoCharacterSet *set)
{
	unsigned char c;

	if (parser->next >= parser->end)
		return -1;
	c = *parser->next++;
	if (IS_HIGHBIT_SET(c))
		return -1;
	if (!isalnum(c))
		return c;
	for (size_t i = 0; i < lengthof(escapes); i++)
	{
		if (escapes[i].escape == c)
			return (unsigned char) escapes[i].character;
	}
	for (size_t i = 0; parser->c_ctype && i < lengthof(classes); i++)
	{
		if (classes[i].escape == '\0' || pg_ascii_tolower(c) != classes[i].escape)
			continue;
		if (c != classes[i].escape)
			set->negated = true;
		add_ranges(set, classes[i].ranges);
		return 0;
	}
	return -1;
}

/*
 * parse_member: of a bracket expression.  Gives an ASCII character, which may
 * start a range, or 0 for what has been added to the set; -1 for what is not read.
 */
static int
parse_member(Parser *parser, MongoCharacterSet *set, StringInfo others, bool first)
{
	int			bytes;

	if (IS_HIGHBIT_SET(*parser->next))
	{
		bytes = Min(pg_mblen(parser->next), parser->end - parser->next);
		appendBinaryStringInfo(others, parser->next, bytes);
		set->nothers++;
		parser->next += bytes;
		return 0;
	}
	if (takes(parser, '\\'))
	{
		int			character = parse_escape(parser, set);

		/* a complement among others */
		return set->negated ? -1 : character;
	}
	if (takes(parser, '['))
	{
		if (takes(parser, ':'))
			return parse_named_class(parser, set) ? 0 : -1;
		return sees(parser, '.') || sees(parser, '=') ? -1 : '[';
	}
	if (sees(parser, '-') && !first && !(parser->next + 1 < parser->end && parser->next[1] == ']'))
		return -1;
	return *parser->next++;
}

/* The end of a range, after "-": a character, or -1. */
static int
parse_range_end(Parser *parser)
{
	MongoCharacterSet ignored = {0};

	if (parser->next >= parser->end || IS_HIGHBIT_SET(*parser->next) || sees(parser, '['))
		return -1;
	if (takes(parser, '\\'))
		return parse_escape(parser, &ignored);
	return *parser->next++;
}

/* parse_bracket: after "[" */
static bool
parse_bracket(Parser *parser, MongoCharacterSet *set)
{
	bool		negated = takes(parser, '^');
	StringInfoData others;

	initStringInfo(&others);
	for (bool first = true; first || !sees(parser, ']'); first = false)
	{
		int			start;
		int			last;

		if (parser->next >= parser->end)
			return false;
		start = parse_member(parser, set, &others, first);
		if (start < 0)
			return false;
		last = start;
		if (sees(parser, '-') && !(parser->next + 1 < parser->end && parser->next[1] == ']'))
		{
			parser->next++;
			last = parse_range_end(parser);
			if (start == 0 || last < start)
				return false;
		}
		if (start > 0)
			mongo_set_add(set, start, last);
	}
	parser->next++;
	if (set->nothers > 0)
		set->others = others.data;
	if (parser->folds)
		mongo_set_fold(set);
	set->negated = negated;
	return true;
}

/* A number of up to MAX_REPETITIONS, or -1. */
static int
parse_number(Parser *parser)
{
	int			number = -1;

	while (parser->next < parser->end && isdigit((unsigned char) *parser->next))
	{
		number = Max(number, 0) * 10 + (*parser->next++ - '0');
		if (number > MAX_REPETITIONS)
			return -1;
	}
	return number;
}

/* parse_bounds: after "{" */
static bool
parse_bounds(Parser *parser, MongoPatternPiece *piece)
{
	piece->minimum = parse_number(parser);
	piece->maximum = piece->minimum;
	if (piece->minimum < 0)
		return false;
	if (takes(parser, ','))
	{
		piece->maximum = MONGO_UNBOUNDED;
		if (!sees(parser, '}') && (piece->maximum = parse_number(parser)) < piece->minimum)
			return false;
	}
	return piece->maximum != 0 && takes(parser, '}');
}

static bool
sees_quantifier(const Parser *parser)
{
	return sees(parser, '*') || sees(parser, '+') || sees(parser, '?') || sees(parser, '{');
}

/* parse_quantifier: how much is taken of what fits does not decide if it fits. */
static bool
parse_quantifier(Parser *parser, MongoPatternPiece *piece)
{
	if (!sees_quantifier(parser))
		return true;
	if (takes(parser, '{'))
	{
		if (!parse_bounds(parser, piece))
			return false;
	}
	else
	{
		piece->minimum = sees(parser, '+') ? 1 : 0;
		piece->maximum = sees(parser, '?') ? 1 : MONGO_UNBOUNDED;
		parser->next++;
	}
	takes(parser, '?');
	return !sees_quantifier(parser);
}

/* parse_group: after "(" */
static bool
parse_group(Parser *parser, MongoPatternPiece *piece)
{
	if (takes(parser, '?') && !takes(parser, ':'))
		return false;
	if (++parser->depth > MAX_DEPTH || !parse_branches(parser, &piece->branches))
		return false;
	parser->depth--;
	return takes(parser, ')');
}

/* parse_atom: what a quantifier may follow */
static MongoPatternPiece *
parse_atom(Parser *parser)
{
	MongoPatternPiece *piece = mongo_any_piece(1, 1);
	const char *start = parser->next;
	char		escaped;

	if (takes(parser, '.'))
		return piece;
	piece->set.negated = false;
	if (takes(parser, '('))
		return parse_group(parser, piece) ? piece : NULL;
	if (takes(parser, '['))
		return parse_bracket(parser, &piece->set) ? piece : NULL;
	if (takes(parser, '\\'))
	{
		int			character = parse_escape(parser, &piece->set);

		if (character <= 0)
			return character == 0 ? piece : NULL;
		escaped = (char) character;
		return mongo_character_piece(&escaped, 1, parser->folds);
	}
	if (strchr("^$*+?{", *start) != NULL)
		return NULL;
	parser->next += Min(pg_mblen(start), parser->end - start);
	return mongo_character_piece(start, parser->next - start, parser->folds);
}

/* parse_pieces: up to "|", ")", the end, or "$" outside of groups */
static bool
parse_pieces(Parser *parser, List **pieces)
{
	*pieces = NIL;
	while (parser->next < parser->end && !sees(parser, '|') && !sees(parser, ')') &&
		   !(sees(parser, '$') && parser->depth == 0))
	{
		MongoPatternPiece *piece = parse_atom(parser);
		bool		quantified = sees_quantifier(parser);

		if (piece == NULL || !parse_quantifier(parser, piece))
			return false;

		/* a group of one branch is as good as its pieces */
		if (!quantified && list_length(piece->branches) == 1)
			*pieces = list_concat(*pieces, linitial(piece->branches));
		else
			*pieces = lappend(*pieces, piece);
	}
	return true;
}

/* parse_branches: of a group, to its end */
static bool
parse_branches(Parser *parser, List **branches)
{
	*branches = NIL;
	do
	{
		List	   *pieces;

		if (!parse_pieces(parser, &pieces))
			return false;
		*branches = lappend(*branches, pieces);
	} while (takes(parser, '|'));
	return true;
}

List *
mongo_parse_posix(const char *string, int length, bool folds, bool c_ctype)
{
	Parser		parser = {string, string + length, folds, c_ctype, 0};
	List	   *branches = NIL;

	do
	{
		MongoPatternBranch *branch = palloc0(sizeof(MongoPatternBranch));

		branch->at_start = takes(&parser, '^');
		if (!parse_pieces(&parser, &branch->pieces))
			return NIL;
		branch->at_end = takes(&parser, '$');
		branches = lappend(branches, branch);
	} while (takes(&parser, '|'));
	return parser.next == parser.end ? branches : NIL;
}

/* ---------- What can be said of a pattern by looking at its tree ---------- */

/* More is as good as never. */
#define MANY_STEPS	1000000.0

/* Bytes of a compiled character, class and pair of brackets in PCRE, rounded up. */
#define CHARACTER_SIZE	8
#define CLASS_SIZE		48
#define GROUP_SIZE		12

MongoPatternPiece *
mongo_any_piece(int minimum, int maximum)
{
	MongoPatternPiece *piece = palloc0(sizeof(MongoPatternPiece));

	piece->set.negated = true;
	piece->minimum = minimum;
	piece->maximum = maximum;
	return piece;
}

MongoPatternPiece *
mongo_character_piece(const char *character, int bytes, bool folds)
{
	MongoPatternPiece *piece = palloc0(sizeof(MongoPatternPiece));

	piece->minimum = 1;
	piece->maximum = 1;
	if (IS_HIGHBIT_SET(*character))
	{
		piece->set.others = pnstrdup(character, bytes);
		piece->set.nothers = 1;
	}
	else
		mongo_set_add(&piece->set, *character, *character);
	if (folds)
		mongo_set_fold(&piece->set);
	return piece;
}

void
mongo_set_add(MongoCharacterSet *set, unsigned char first, unsigned char last)
{
	Assert(!IS_HIGHBIT_SET(first) && !IS_HIGHBIT_SET(last));
	for (int c = first; c <= last; c++)
		set->ascii[c / 64] |= UINT64CONST(1) << (c % 64);
}

/* Add the other case of each ASCII letter. */
static void
mongo_set_fold(MongoCharacterSet *set)
{
	MongoCharacterSet listed = *set;

	listed.negated = false;
	for (unsigned char c = 'a'; c <= 'z'; c++)
	{
		unsigned char upper = pg_ascii_toupper(c);

		if (mongo_set_has(&listed, c) || mongo_set_has(&listed, upper))
		{
			mongo_set_add(set, c, c);
			mongo_set_add(set, upper, upper);
		}
	}
}

bool
mongo_set_has(const MongoCharacterSet *set, unsigned char ascii)
{
	bool		listed = (set->ascii[ascii / 64] >> (ascii % 64)) & 1;

	return listed != set->negated;
}

bool
mongo_set_is_any(const MongoCharacterSet *set)
{
	return set->negated && set->ascii[0] == 0 && set->ascii[1] == 0 && set->nothers == 0;
}

bool
mongo_set_is_one(const MongoCharacterSet *set)
{
	return !set->negated &&
		pg_popcount64(set->ascii[0]) + pg_popcount64(set->ascii[1]) + set->nothers == 1;
}

/* Has it characters that are not ASCII? */
static bool
has_others(const MongoCharacterSet *set)
{
	return set->negated || set->nothers > 0;
}

/* Of what is not ASCII, any two sets that have some are taken to have the same. */
static bool
sets_are_disjoint(const MongoCharacterSet *left, const MongoCharacterSet *right)
{
	for (unsigned char c = 0; c < 128; c++)
	{
		if (mongo_set_has(left, c) && mongo_set_has(right, c))
			return false;
	}
	return !(has_others(left) && has_others(right));
}

static bool piece_is_optional(const MongoPatternPiece *piece);

static bool
pieces_are_optional(const List *pieces)
{
	ListCell   *cell;

	foreach(cell, pieces)
	{
		if (!piece_is_optional(lfirst(cell)))
			return false;
	}
	return true;
}

/* piece_is_optional: does it match the empty text? */
static bool
piece_is_optional(const MongoPatternPiece *piece)
{
	ListCell   *cell;

	foreach(cell, piece->branches)
	{
		if (pieces_are_optional(lfirst(cell)))
			return true;
	}
	return piece->minimum == 0;
}

/* piece_meets: may it begin (step 1) or end (step -1) with a character of the set? */
static bool
piece_meets(const MongoPatternPiece *piece, int step, const MongoCharacterSet *set)
{
	ListCell   *cell;

	if (piece->branches == NIL)
		return !sets_are_disjoint(&piece->set, set);
	foreach(cell, piece->branches)
	{
		const List *branch = lfirst(cell);

		if (mongo_meets(branch, step > 0 ? 0 : list_length(branch) - 1, step, set, false))
			return true;
	}
	return false;
}

bool
mongo_meets(const List *pieces, int from, int step, const MongoCharacterSet *set, bool open)
{
	for (int i = from; i >= 0 && i < list_length(pieces); i += step)
	{
		const MongoPatternPiece *piece = list_nth(pieces, i);

		if (piece_meets(piece, step, set))
			return true;
		if (!piece_is_optional(piece))
			return false;
	}
	return open;
}

/* piece_length: in characters; -1 if matches differ in length. */
static int
piece_length(const MongoPatternPiece *piece)
{
	int			length = 1;
	ListCell   *cell;

	if (piece->minimum != piece->maximum)
		return -1;
	foreach(cell, piece->branches)
	{
		int			of_branch = mongo_pieces_length(lfirst(cell));

		if (of_branch < 0 || (foreach_current_index(cell) > 0 && of_branch != length))
			return -1;
		length = of_branch;
	}
	return length * piece->minimum;
}

int
mongo_pieces_length(const List *pieces)
{
	int			length = 0;
	ListCell   *cell;

	foreach(cell, pieces)
	{
		int			of_piece = piece_length(lfirst(cell));

		if (of_piece < 0)
			return -1;
		length += of_piece;
	}
	return length;
}

/* group_steps: of one time that its branches are tried. */
static double
group_steps(const MongoPatternPiece *piece, double following)
{
	double		steps = 0;
	ListCell   *cell;

	foreach(cell, piece->branches)
		steps += 2 + mongo_pieces_steps(lfirst(cell), following);
	return Min(steps, MANY_STEPS);
}

/*
 * piece_steps: PCRE counts each place that it might have to come back to.  A
 * character as often as possible, never to be given back, is none.
 */
static double
piece_steps(const MongoPatternPiece *piece, double following)
{
	double		steps = following;

	if (piece->branches == NIL)
	{
		if (piece->maximum == MONGO_UNBOUNDED || piece->maximum == piece->minimum)
			return following;
		return (piece->maximum - piece->minimum + 1) * (1 + following);
	}
	if (piece->maximum == MONGO_UNBOUNDED)
		return MANY_STEPS;
	for (int i = piece->minimum; i < piece->maximum; i++)
		steps = 1 + following + group_steps(piece, steps);
	for (int i = 0; i < piece->minimum; i++)
		steps = group_steps(piece, steps);
	return steps;
}

double
mongo_pieces_steps(const List *pieces, double following)
{
	double		steps = following;

	for (int i = list_length(pieces) - 1; i >= 0; i--)
		steps = Min(piece_steps(list_nth(pieces, i), steps), MANY_STEPS);
	return steps;
}

static double
piece_size(const MongoPatternPiece *piece)
{
	int			times = Max(piece->minimum, piece->maximum);
	double		size = 0;
	ListCell   *cell;

	/* a class is written once, but PostgreSQL has a state for each time */
	if (piece->branches == NIL)
		return CHARACTER_SIZE * Max(times, 1) +
			(mongo_set_is_one(&piece->set) || mongo_set_is_any(&piece->set) ?
			 0 : CLASS_SIZE + CHARACTER_SIZE * piece->set.nothers);
	foreach(cell, piece->branches)
		size += GROUP_SIZE + mongo_pieces_size(lfirst(cell));
	return (GROUP_SIZE + size) * Max(times, 1);
}

double
mongo_pieces_size(const List *pieces)
{
	double		size = 0;
	ListCell   *cell;

	foreach(cell, pieces)
		size += piece_size(lfirst(cell));
	return size;
}

/*
 * piece_may_be_hex: may it match hexadecimal digits only, as the text of an ObjectId
 * does?
 */
static bool
piece_may_be_hex(const MongoPatternPiece *piece)
{
	ListCell   *cell;

	if (piece->minimum == 0)
		return true;
	if (piece->branches == NIL)
	{
		for (const char *digit = "0123456789abcdef"; *digit != '\0'; digit++)
		{
			if (mongo_set_has(&piece->set, *digit))
				return true;
		}
		return false;
	}
	foreach(cell, piece->branches)
	{
		if (mongo_pieces_may_be_hex(lfirst(cell)))
			return true;
	}
	return false;
}

bool
mongo_pieces_may_be_hex(const List *pieces)
{
	ListCell   *cell;

	foreach(cell, pieces)
	{
		if (!piece_may_be_hex(lfirst(cell)))
			return false;
	}
	return true;
}
