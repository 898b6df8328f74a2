/*-------------------------------------------------------------------------
 *
 * pattern.c
 *		LIKE, ILIKE, starts_with() and "~" as regular expressions of MongoDB.
 *
 * A pattern is read as branches, each of segments with any text between them: "%" or ".*".  A
 * segment is a sequence of characters and classes, so that all its matches have one length.
 * LIKE has nothing else, so it is exact.  A pattern of "~" may have groups of branches, "+" or "?":
 * any text is admitted there, and PostgreSQL tests the rows again.
 *
 * PCRE gives up after some 200,000 steps at one place of a text; find takes that for "does not
 * match", an expression for an error.  It counts no step for going on to the next place, for a
 * character, and for characters taken as often as possible and never given back (".*+").  Between
 * two places for any text, the first place where a segment fits is as good as a later one, as all
 * its matches have one length: "(?>.*?text)" takes a step for each character and has no way back.
 *
 * In the regular expression "." matches line feeds too, and a literal prefix is a range of an
 * index.  Where case does not matter ASCII alone folds under a C collation, and so do classes
 * like [Aa]; PCRE's option "i" would fold other letters as well.
 *
 * https://www.postgresql.org/docs/current/functions-matching.html
 * https://www.mongodb.com/docs/manual/reference/operator/query/regex/
 * https://www.pcre.org/original/doc/html/pcrepattern.html
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "common.h"
#include "convert.h"

#include <ctype.h>

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"

/* No sensible pattern comes near. */
#define MAX_PATTERN_LENGTH	4000

/* Of the regular expression; MongoDB takes about 32,000 bytes. */
#define MAX_LENGTH			30000

/* Of a compiled expression, for which PCRE has 65,536 bytes; and of its parts, rounded up. */
#define MAX_SIZE			50000
#define CHARACTER_SIZE		8
#define CLASS_SIZE			48

/* Characters of a text that PCRE gets through for sure, at a step for each. */
#define SAFE_LENGTH			60000

/* What a text holds between two places for any text. */
typedef struct Segment
{
	StringInfoData text;		/* of the regular expression */
	int			length;			/* in characters */
} Segment;

/*
 * One of several that a text may match.  The first segment stands where the text starts and the
 * last one where it ends; if they are not the same, either may be empty.
 */
typedef struct Branch
{
	List	   *segments;
	char		first;			/* what a text begins with; NUL: not known */
	bool		may_be_hex;		/* may it match hexadecimal digits alone? */
} Branch;

typedef struct Pattern
{
	List	   *branches;
	bool		lossy;			/* matches more than what it was read from */
	double		size;			/* compiled */

	/* of what is being read */
	const char *next;
	const char *end;
	bool		folds;			/* ASCII letters match in either case */
	bool		c_ctype;		/* classes are of a C collation: of ASCII
								 * alone */
	int			depth;			/* of groups */
} Pattern;

static bool translate_pattern(const MongoCall *call, MongoValue *result);

/* Its flags: what kind of pattern, LIKE's without one; is it true where that does not match? */
#define POSIX		0x100
#define PREFIX		0x200		/* no wildcards: what a text begins with */
#define FOLDS		0x400		/* case does not matter */
#define NEGATED		0x800

const MongoExpressionRow mongo_pattern_rows[] =
{
	{{F_TEXTLIKE, F_NAMELIKE}, .translate = translate_pattern},
	{{F_TEXTNLIKE, F_NAMENLIKE}, .flags = NEGATED, .translate = translate_pattern},
	{{F_TEXTICLIKE, F_NAMEICLIKE}, .flags = FOLDS, .translate = translate_pattern},
	{{F_TEXTICNLIKE, F_NAMEICNLIKE}, .flags = FOLDS | NEGATED, .translate = translate_pattern},
	{{F_TEXTREGEXEQ, F_NAMEREGEXEQ}, .flags = POSIX, .translate = translate_pattern},
	{{F_TEXTREGEXNE, F_NAMEREGEXNE}, .flags = POSIX | NEGATED, .translate = translate_pattern},
	{{F_TEXTICREGEXEQ, F_NAMEICREGEXEQ}, .flags = POSIX | FOLDS, .translate = translate_pattern},
	{{F_TEXTICREGEXNE, F_NAMEICREGEXNE}, .flags = POSIX | FOLDS | NEGATED,
	.translate = translate_pattern},
	{.functions = {InvalidOid}}
};

/* As a condition, starts_with() takes a pattern, too; as an expression it has a row elsewhere. */
static const MongoExpressionRow starts_with = {{F_STARTS_WITH}, .flags = PREFIX};

/*
 * Branches and segments
 */

static void
add_segment(Branch *branch)
{
	Segment    *segment = palloc0(sizeof(Segment));

	initStringInfo(&segment->text);
	branch->segments = lappend(branch->segments, segment);
}

static Branch *
add_branch(Pattern *pattern)
{
	Branch	   *branch = palloc0(sizeof(Branch));

	branch->may_be_hex = true;
	add_segment(branch);
	pattern->branches = lappend(pattern->branches, branch);
	return branch;
}

/* add_any_text: here, as "%" does; twice is no more than once. */
static void
add_any_text(Branch *branch)
{
	const Segment *last = llast(branch->segments);

	if (list_length(branch->segments) == 1 || last->length > 0)
		add_segment(branch);
}

/* append_literal: a "|" even escaped would keep MongoDB from looking for a prefix. */
static void
append_literal(StringInfo text, char c)
{
	if (isalnum((unsigned char) c) || c == ' ')
		appendStringInfoChar(text, c);
	else if (iscntrl((unsigned char) c) || c == '|')
		appendStringInfo(text, "\\x%02x", c);
	else
		appendStringInfo(text, "\\%c", c);
}

/* One character, or a class. */
typedef struct Piece
{
	StringInfoData text;		/* of the regular expression */
	char		character;		/* the only one, if it is ASCII; else NUL */
	bool		may_be_hex;
} Piece;

static void
start_piece(Piece *piece, const char *text)
{
	*piece = (Piece) {.may_be_hex = true};
	initStringInfo(&piece->text);
	appendStringInfoString(&piece->text, text);
}

static void
read_ascii(const Pattern *pattern, char c, Piece *piece)
{
	char		lower = pattern->folds ? pg_ascii_tolower(c) : c;
	char		upper = pattern->folds ? pg_ascii_toupper(c) : c;

	start_piece(piece, "");
	piece->may_be_hex = strchr("0123456789abcdef", lower) != NULL;
	if (lower != upper)
		appendStringInfo(&piece->text, "[%c%c]", upper, lower);
	else
	{
		piece->character = c;
		append_literal(&piece->text, c);
	}
}

/* read_character: the next one as it stands there. */
static void
read_character(Pattern *pattern, Piece *piece)
{
	int			bytes = pg_mblen(pattern->next);

	if (IS_HIGHBIT_SET(*pattern->next))
	{
		start_piece(piece, pnstrdup(pattern->next, bytes));
		piece->may_be_hex = false;
	}
	else
		read_ascii(pattern, *pattern->next, piece);
	pattern->next += bytes;
}

static void
add_piece(Pattern *pattern, const Piece *piece, int times)
{
	Branch	   *branch = llast(pattern->branches);
	Segment    *segment = llast(branch->segments);

	if (times == 0)
		return;
	if (list_length(branch->segments) == 1 && segment->length == 0)
		branch->first = piece->character;
	branch->may_be_hex &= piece->may_be_hex;
	appendStringInfoString(&segment->text, piece->text.data);
	if (times > 1)
		appendStringInfo(&segment->text, "{%d}", times);
	segment->length += times;
	pattern->size += CHARACTER_SIZE * (times + piece->text.len) +
		(piece->character == '\0' ? CLASS_SIZE : 0);
}

/*
 * LIKE
 */

/* read_like: false for what PostgreSQL itself raises an error on. */
static bool
read_like(Pattern *pattern)
{
	Branch	   *branch = add_branch(pattern);
	Piece		piece;

	while (pattern->next < pattern->end)
	{
		if (*pattern->next == '%')
		{
			add_any_text(branch);
			pattern->next++;
			continue;
		}
		if (*pattern->next == '_')
		{
			start_piece(&piece, ".");
			pattern->next++;
		}
		else
		{
			if (*pattern->next == '\\' && ++pattern->next >= pattern->end)
				return false;
			read_character(pattern, &piece);
		}
		add_piece(pattern, &piece, 1);
	}
	return true;
}

/* read_prefix: the argument of starts_with() */
static void
read_prefix(Pattern *pattern)
{
	Branch	   *branch = add_branch(pattern);
	Piece		piece;

	while (pattern->next < pattern->end)
	{
		read_character(pattern, &piece);
		add_piece(pattern, &piece, 1);
	}
	add_any_text(branch);
}

/*
 * Regular expressions
 *
 * What is read is known to be valid.  Not read are look-around, back references, options ("(?i)",
 * "***="), collating elements, ranges beyond ASCII, "^" and "$" but around the whole or one of its
 * outer branches, and escapes that are conditions (\y, \m).
 */

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

/* Classes that have the same characters in PCRE as under a C collation. */
static const char *const classes[] = {
	"[:alnum:]", "[:alpha:]", "[:blank:]", "[:digit:]", "[:graph:]", "[:lower:]", "[:print:]",
	"[:punct:]", "[:space:]", "[:upper:]", "[:word:]", "[:xdigit:]"
};

static bool
is_valid(const Pattern *pattern, Oid collation)
{
	int			length = pattern->end - pattern->next;
	pg_wchar   *characters = palloc((length + 1) * sizeof(pg_wchar));
	regex_t		compiled;

	length = pg_mb2wchar_with_len(pattern->next, characters, length);
	if (pg_regcomp(&compiled, characters, length,
				   REG_ADVANCED | (pattern->folds ? REG_ICASE : 0), collation) != REG_OKAY)
		return false;
	pg_regfree(&compiled);
	return true;
}

static bool
sees(const Pattern *pattern, char c)
{
	return pattern->next < pattern->end && *pattern->next == c;
}

static bool
takes(Pattern *pattern, char c)
{
	if (!sees(pattern, c))
		return false;
	pattern->next++;
	return true;
}

static bool
sees_quantifier(const Pattern *pattern)
{
	return sees(pattern, '*') || sees(pattern, '+') || sees(pattern, '?') ||
		(sees(pattern, '{') && isdigit((unsigned char) pattern->next[1]));
}

/*
 * parse_quantifier: if there is one; 'maximum' is -1 where there is none.  If as much or as little
 * as possible is taken does not decide if it fits.
 */
static void
parse_quantifier(Pattern *pattern, int *minimum, int *maximum)
{
	*minimum = *maximum = 1;
	if (!sees_quantifier(pattern))
		return;
	if (takes(pattern, '{'))
	{
		*minimum = *maximum = strtol(pattern->next, (char **) &pattern->next, 10);
		if (takes(pattern, ','))
			*maximum = sees(pattern, '}') ? -1 :
				strtol(pattern->next, (char **) &pattern->next, 10);
	}
	else
	{
		*minimum = sees(pattern, '+') ? 1 : 0;
		*maximum = sees(pattern, '?') ? 1 : -1;
	}
	pattern->next++;
	takes(pattern, '?');
}

/*
 * parse_escape: after "\".  Gives the character, or NUL for what is none.  A class has been
 * appended to 'class' then, unless it is not read.
 */
static char
parse_escape(Pattern *pattern, StringInfo class)
{
	char		c = *pattern->next;

	if (!isalnum((unsigned char) c))
		return IS_HIGHBIT_SET(c) ? '\0' : *pattern->next++;
	pattern->next++;
	for (size_t i = 0; i < lengthof(escapes); i++)
	{
		if (escapes[i].escape == c)
			return escapes[i].character;
	}
	if (pattern->c_ctype && strchr("dwsDWS", c) != NULL)
		appendStringInfo(class, "\\%c", c);
	return '\0';
}

/* parse_bracket: after "["; false if it is not read. */
static bool
parse_bracket(Pattern *pattern, StringInfo class)
{
	appendStringInfoString(class, takes(pattern, '^') ? "[^" : "[");
	for (const char *start = pattern->next; pattern->next == start || !sees(pattern, ']');)
	{
		int			length = class->len;
		char		c = *pattern->next;

		if (IS_HIGHBIT_SET(c))
		{
			int			bytes = pg_mblen(pattern->next);

			appendBinaryStringInfo(class, pattern->next, bytes);
			pattern->next += bytes;
			if (class->data[length - 1] == '-' || sees(pattern, '-'))
				return false;
			continue;
		}
		if (c == '[' && strchr(":.=", pattern->next[1]) != NULL)
		{
			for (size_t i = 0; pattern->c_ctype && i < lengthof(classes); i++)
			{
				if (strncmp(pattern->next, classes[i], strlen(classes[i])) == 0)
					appendStringInfoString(class, classes[i]);
			}
			pattern->next += class->len - length;
		}
		else if (takes(pattern, '\\'))
		{
			c = parse_escape(pattern, class);
			if (c != '\0')
				append_literal(class, c);
		}
		else
		{
			pattern->next++;
			if (c == '-')
				appendStringInfoChar(class, c);
			else
				append_literal(class, c);
		}
		if (class->len == length)
			return false;
	}
	pattern->next++;
	appendStringInfoChar(class, ']');
	return true;
}

/*
 * parse_group: after "(".  One branch, once, is as good as what it holds, which is read next.  Any
 * text is admitted for another group.
 */
static bool
parse_group(Pattern *pattern)
{
	Pattern		inside;
	StringInfoData ignored;
	int			depth = 1;
	int			times;
	bool		plain = true;

	if (takes(pattern, '?') && !takes(pattern, ':'))
		return false;
	inside = *pattern;
	initStringInfo(&ignored);
	while (depth > 0)
	{
		switch (*inside.next++)
		{
			case '\\':
				inside.next++;
				break;
			case '[':
				if (!parse_bracket(&inside, &ignored))
					return false;
				break;
			case '(':
				if (takes(&inside, '?') && !takes(&inside, ':'))
					return false;
				depth++;
				break;
			case ')':
				depth--;
				break;
			case '|':
				plain &= depth > 1;
				break;
		}
	}
	if (plain && !sees_quantifier(&inside))
		pattern->depth++;
	else
	{
		parse_quantifier(&inside, &times, &times);
		pattern->next = inside.next;
		pattern->lossy = true;
		add_any_text(llast(pattern->branches));
	}
	return true;
}

/* parse_piece: what a quantifier may follow, but for groups; false if it is not read. */
static bool
parse_piece(Pattern *pattern, Piece *piece)
{
	char		character;

	start_piece(piece, "");
	if (takes(pattern, '['))
	{
		if (!parse_bracket(pattern, &piece->text))
			return false;

		/* PCRE folds more than ASCII */
		if (pattern->folds)
		{
			start_piece(piece, ".");
			pattern->lossy = true;
		}
	}
	else if (takes(pattern, '.'))
		appendStringInfoChar(&piece->text, '.');
	else if (takes(pattern, '\\'))
	{
		character = parse_escape(pattern, &piece->text);
		if (character != '\0')
			read_ascii(pattern, character, piece);
	}
	else if (strchr("^$*", *pattern->next) == NULL)
		read_character(pattern, piece);
	return piece->text.len > 0;
}

/* parse_pieces: up to "|", "$" or the end outside of groups; false for what is not read. */
static bool
parse_pieces(Pattern *pattern)
{
	while (pattern->next < pattern->end &&
		   !(pattern->depth == 0 && (sees(pattern, '|') || sees(pattern, '$'))))
	{
		Piece		piece;
		int			minimum;
		int			maximum;

		if (takes(pattern, ')'))
			pattern->depth--;
		else if (takes(pattern, '('))
		{
			if (!parse_group(pattern))
				return false;
		}
		else
		{
			if (!parse_piece(pattern, &piece))
				return false;
			parse_quantifier(pattern, &minimum, &maximum);
			add_piece(pattern, &piece, minimum);
			if (maximum != minimum)
				add_any_text(llast(pattern->branches));
			if (maximum != minimum && (maximum >= 0 || strcmp(piece.text.data, ".") != 0))
				pattern->lossy = true;
		}
	}
	return true;
}

/* read_posix: false for what is not read, and for what would match any text. */
static bool
read_posix(Pattern *pattern)
{
	do
	{
		Branch	   *branch = add_branch(pattern);

		if (!takes(pattern, '^'))
			add_any_text(branch);
		if (!parse_pieces(pattern))
			return false;
		if (!takes(pattern, '$'))
			add_any_text(branch);
		if (pattern->lossy && list_length(branch->segments) == 2 &&
			((Segment *) linitial(branch->segments))->length == 0 &&
			((Segment *) lsecond(branch->segments))->length == 0)
			return false;
	} while (takes(pattern, '|'));
	return pattern->next == pattern->end;
}

/* read_pattern: NULL if it is not shippable. */
static Pattern *
read_pattern(int flags, Node *node, Oid collation)
{
	const Const *constant = (Const *) node;
	Pattern    *pattern = palloc0(sizeof(Pattern));

	/* a character is one there; it must not be a byte here */
	if (!IsA(node, Const) || constant->constisnull || constant->consttype != TEXTOID ||
		GetDatabaseEncoding() == PG_SQL_ASCII || !OidIsValid(collation) ||
		!get_collation_isdeterministic(collation) ||
		((flags & FOLDS) && !mongo_ctype_is_c(collation)))
		return NULL;
	pattern->next = TextDatumGetCString(constant->constvalue);
	pattern->end = pattern->next + strlen(pattern->next);
	pattern->folds = (flags & FOLDS) != 0;
	pattern->c_ctype = mongo_ctype_is_c(collation);
	if (pattern->end - pattern->next > MAX_PATTERN_LENGTH)
		return NULL;
	if (flags & PREFIX)
		read_prefix(pattern);
	else if (!(flags & POSIX))
	{
		if (!read_like(pattern))
			return NULL;
	}
	/* what has none of these is valid */
	else if ((strpbrk(pattern->next, "\\[](){}*+?") != NULL && !is_valid(pattern, collation)) ||
			 !read_posix(pattern))
		return NULL;
	return pattern->size > MAX_SIZE ? NULL : pattern;
}

/*
 * Conditions
 */

/* A regular expression for option "s", in UTF-8. */
typedef struct RegularExpression
{
	const char *text;
	const char *prefix;			/* of 'text', where a "|" keeps MongoDB from
								 * seeing it; or NULL */
	bool		is_safe;		/* no text is too long for it */
} RegularExpression;

static const char *
in_utf8(const char *text)
{
	return pg_server_to_any(text, strlen(text), PG_UTF8);
}

/* write_branch: 'searches' if there are segments between the first and the last. */
static void
write_branch(const List *segments, bool searches, bool admits_long, StringInfo text)
{
	const Segment *first = linitial(segments);
	const Segment *last = llast(segments);

	/* "$" would match before a final line feed as well */
	if (list_length(segments) == 1)
		appendStringInfo(text, "^%s\\z", first->text.data);
	else if (!searches && list_length(segments) == 3)
		appendStringInfoString(text, ((Segment *) lsecond(segments))->text.data);
	else
	{
		appendStringInfo(text, "^%s", first->text.data);
		if (searches && admits_long)
			appendStringInfo(text, "(?:.{%d}|", SAFE_LENGTH);
		for (int i = 1; i < list_length(segments) - 1; i++)
			appendStringInfo(text, "(?>.*?%s)", ((Segment *) list_nth(segments, i))->text.data);

		/* far enough from the end, and then what stands before it */
		if (last->length > 0)
			appendStringInfo(text, "(?=.{%d}).*+(?<=%s)", last->length, last->text.data);
		if (searches && admits_long)
			appendStringInfoChar(text, ')');
	}
}

/*
 * write_pattern: false if no regular expression does it in few steps.  With 'admits_long', texts
 * that are too long match as well; otherwise they may match or not.
 */
static bool
write_pattern(const Pattern *pattern, bool admits_long, RegularExpression *result)
{
	StringInfoData text;
	ListCell   *cell;

	*result = (RegularExpression) {.is_safe = true};
	initStringInfo(&text);
	foreach(cell, pattern->branches)
	{
		const List *segments = ((Branch *) lfirst(cell))->segments;
		const Segment *first = linitial(segments);
		const Segment *last = llast(segments);

		/* a segment alone is searched for by PCRE itself */
		bool		searches = list_length(segments) > 3 ||
			(list_length(segments) == 3 && first->length + last->length > 0);

		if (searches && list_length(pattern->branches) > 1)
			return false;
		if (cell != list_head(pattern->branches))
			appendStringInfoChar(&text, '|');
		write_branch(segments, searches, admits_long, &text);
		result->is_safe &= !searches;
		if (searches && admits_long && first->length > 0)
			result->prefix = in_utf8(psprintf("^%s", first->text.data));
	}
	result->text = in_utf8(text.data);
	return text.len <= MAX_LENGTH;
}

/* append_regex_match: a text that the regular expression matches, or one that it does not. */
static void
append_regex_match(const char *path, const RegularExpression *expression, bool positive, bson_t *match)
{
	bson_value_t regex = bson_regex(expression->text, "s");

	if (!positive)
		bson_append_template(match, "{@1: {$not: @2, $ne: null}}", bson_utf8(path), regex);
	else if (expression->prefix != NULL)
		bson_append_template(match, "{@1: {$all: [@2, @3]}}", bson_utf8(path),
							 bson_regex(expression->prefix, "s"), regex);
	else
		BSON_APPEND_VALUE(match, path, &regex);
}

/* is_within: do the first so many characters of a text tell whether it matches? */
static bool
is_within(const Pattern *pattern, int length)
{
	ListCell   *cell;

	foreach(cell, pattern->branches)
	{
		const List *segments = ((const Branch *) lfirst(cell))->segments;

		if (list_length(segments) != 2 || ((const Segment *) lsecond(segments))->length > 0 ||
			((const Segment *) linitial(segments))->length > length)
			return false;
	}
	return true;
}

/* open_at_end: the pattern with anything behind what it matches. */
static const Pattern *
open_at_end(const Pattern *pattern)
{
	Pattern    *result = palloc(sizeof(Pattern));
	ListCell   *cell;

	*result = *pattern;
	result->branches = NIL;
	result->lossy = true;
	foreach(cell, pattern->branches)
	{
		Branch	   *branch = palloc(sizeof(Branch));

		*branch = *(const Branch *) lfirst(cell);
		branch->segments = list_copy(branch->segments);
		if (list_length(branch->segments) == 1 || ((Segment *) llast(branch->segments))->length > 0)
			add_segment(branch);
		result->branches = lappend(result->branches, branch);
	}
	return result;
}

/* May the text of an ObjectId match? */
static bool
may_be_objectid(const Pattern *pattern)
{
	ListCell   *cell;

	foreach(cell, pattern->branches)
	{
		const Branch *branch = lfirst(cell);
		const Segment *first = linitial(branch->segments);

		if (branch->may_be_hex && (list_length(branch->segments) > 1 ||
								   first->length == MONGO_OBJECTID_TEXT_LENGTH))
			return true;
	}
	return false;
}

/*
 * translate_pattern: LIKE, "~" and their like as an expression, which may be an error for texts of
 * more than about 200,000 characters.
 */
static bool
translate_pattern(const MongoCall *call, MongoValue *result)
{
	const Pattern *pattern = read_pattern(call->row->flags, lsecond(call->args), call->collation);
	RegularExpression expression;
	MongoValue	values[2];

	if (pattern == NULL || pattern->lossy || !write_pattern(pattern, false, &expression) ||
		!mongo_normal_value_of_node(call->scope, linitial(call->args), &values[0]))
		return false;
	values[1] = mongo_text_value(expression.text);
	*result = mongo_result(call->row->flags & NEGATED ?
						   "{$cond: [{$gt: [@1, null]}, "
						   "{$not: [{$regexMatch: {input: @1, regex: @2, options: 's'}}]}, null]}" :
						   "{$cond: [{$gt: [@1, null]}, "
						   "{$regexMatch: {input: @1, regex: @2, options: 's'}}, null]}",
						   values, 2, BOOLOID, values[0].nullable);
	return true;
}

/* may_begin: may a text that the pattern matches begin so? */
static bool
may_begin(const void *context, char first)
{
	ListCell   *cell;

	foreach(cell, ((const Pattern *) context)->branches)
	{
		const Branch *branch = lfirst(cell);

		if (branch->first == '\0' || branch->first == first)
			return true;
	}
	return false;
}

/* json_text_pattern: the text of what is inside json, a superset. */
static MongoGrade
json_text_pattern(const MongoField *field, const Pattern *pattern, bson_t *match)
{
	RegularExpression expression;
	BsonArray	conditions = bson_array_create();
	bson_t		string;

	if (!write_pattern(pattern, true, &expression))
		return MONGO_NOT_SHIPPABLE;
	bson_array_begin_document(&conditions, &string);
	append_regex_match(field->path, &expression, true, &string);
	bson_array_end_document(&conditions, &string);
	mongo_append_other_json(&conditions, field->path, may_begin, pattern);
	BSON_APPEND_ARRAY(match, "$or", conditions.bson);
	return MONGO_SUPERSET;
}

MongoGrade
mongo_translate_pattern(const MongoField *field, Oid function, Node *node,
						Oid collation, bool wanted, bson_t *match)
{
	const MongoExpressionRow *row = function == F_STARTS_WITH ? &starts_with :
		mongo_find_row(mongo_pattern_rows, function);
	bool		is_json = field->type == JSONOID && field->operator_type == TEXTOID;
	const Pattern *pattern;
	RegularExpression expression;
	bool		positive;
	bool		is_exact;

	/* no text of that type is too long for PCRE */
	bool		is_short = getBaseType(field->type) == NAMEOID;

	if (row == NULL || (!is_json && !mongo_compares_text(getBaseType(field->type))) ||
		!mongo_path_is_addressable(field->path) || mongo_path_has_index(field->path))
		return MONGO_NOT_SHIPPABLE;
	pattern = read_pattern(row->flags, node, collation);
	if (pattern != NULL && mongo_reading_changes(getBaseType(field->type), field->typmod) &&
		!is_within(pattern, field->typmod - (int) VARHDRSZ))
		pattern = open_at_end(pattern);
	positive = (row->flags & NEGATED) == 0 ? wanted : !wanted;
	if (pattern == NULL || (!positive && (is_json || pattern->lossy)))
		return MONGO_NOT_SHIPPABLE;
	if (is_json)
		return json_text_pattern(field, pattern, match);
	if (!write_pattern(pattern, positive && !is_short, &expression))
		return MONGO_NOT_SHIPPABLE;

	is_exact = !pattern->lossy && (expression.is_safe || is_short);
	if (field->bson_type == BSON_TYPE_UTF8 || !may_be_objectid(pattern))
		append_regex_match(field->path, &expression, positive, match);
	else
	{
		/*
		 * a regular expression looks at Strings only; an ObjectId may match,
		 * too
		 */
		is_exact = false;
		if (positive)
		{
			bson_t	   *matches = bson_create_in(CurrentMemoryContext);

			append_regex_match(field->path, &expression, true, matches);
			bson_append_template(match, "{$or: [@1, {@2: {$type: 'objectId'}}]}",
								 bson_document(matches), bson_utf8(field->path));
		}
		else
			append_regex_match(field->path, &expression, false, match);
	}
	return is_exact ? MONGO_EXACT : MONGO_SUPERSET;
}
