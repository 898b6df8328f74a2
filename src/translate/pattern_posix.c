/*-------------------------------------------------------------------------
 *
 * pattern_posix.c
 *		Regular expressions of "~" as trees, as far as they mean the same
 *		everywhere.
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
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "pattern_tree.h"

#include "mb/pg_wchar.h"

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
