/*-------------------------------------------------------------------------
 *
 * pattern.c
 *		Translates LIKE, ILIKE, starts_with() and "~" to regular expressions of MongoDB.
 *
 * A pattern is read as branches of segments, with any text between two segments: "%" or ".*".
 * A segment is a sequence of characters and classes, so that all its matches have one length.
 * A LIKE pattern consists of nothing else.  A pattern of "~" may contain other parts; any text
 * matches those, and PostgreSQL tests the rows again.
 *
 * PCRE stops after some 200,000 steps at one place of a text; find treats that as "does not
 * match", an expression raises an error.  PCRE counts no step for moving to the next place,
 * for a character, and for characters matched possessively (".*+").  Between two places for
 * any text, the first match of a segment is as good as a later one, as all its matches have
 * one length.  So "(?>.*?text)" takes a step for each character and never backtracks.  Only
 * expressions contain such searches; find gets a superset without these segments.
 *
 * In the regular expression, "." also matches line feeds, and a literal prefix is a range of
 * an index.  If case does not matter, only ASCII letters fold under a C collation, as classes
 * like [Aa] do; PCRE's option "i" would fold other letters too.  Under another collation, any
 * text matches the characters that others may fold to.
 *
 * https://www.postgresql.org/docs/current/functions-matching.html
 * https://www.mongodb.com/docs/manual/reference/operator/query/regex/
 * https://www.pcre.org/original/doc/html/pcrepattern.html
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include <ctype.h>

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"

/*
 * The most characters of a pattern, and of the text that it matches.  MongoDB accepts regular
 * expressions of about 32,000 bytes, and PCRE compiles to at most 65,536 bytes: 33 for a class.
 */
#define MAX_LENGTH			1000

/* The part of a pattern between two places for any text. */
typedef struct Segment
{
	StringInfoData text;		/* of the regular expression */
	int			length;			/* in characters */
} Segment;

/*
 * One of several alternatives.  The first segment matches the beginning of a text and the last
 * one its end; if they are not the same segment, either may be empty.
 */
typedef struct Branch
{
	List	   *segments;
	char		first;			/* first character of a text; NUL: unknown */
	bool		may_be_hex;		/* may it match only hexadecimal digits? */
} Branch;

typedef struct Pattern
{
	List	   *branches;
	bool		lossy;			/* matches more than PostgreSQL's pattern */
	int			length;			/* in characters */

	/* while reading */
	const char *next;
	const char *end;
	bool		folds;			/* ASCII letters match in either case */
	bool		folds_others;	/* and a locale folds other characters */
} Pattern;

static bool translate_pattern(const MongoCall *call, MongoValue *result);

/* Flags of a row: the kind of pattern, by default LIKE; and is it true if that does not match? */
#define POSIX		0x100
#define PREFIX		0x200		/* a prefix without wildcards */
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

/* As a condition, starts_with() has a pattern; as an expression, it has a row elsewhere. */
static const MongoExpressionRow starts_with = {{F_STARTS_WITH}, .flags = PREFIX};

/* ---- Branches and segments ---- */

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

/* Matches any text here, as "%" does; repeating it changes nothing. */
static void
add_any_text(Branch *branch)
{
	const Segment *last = llast(branch->segments);

	if (list_length(branch->segments) == 1 || last->length > 0)
		add_segment(branch);
}

/* Appends a character, "|" as a code, because even "\|" keeps MongoDB from finding a prefix. */
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

/* A piece: one character or a class. */
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
	pattern->length += times;
}

/*
 * Tells whether a locale may fold other characters to this one of a pattern, or several.  ILIKE
 * compares the lower case of both sides.  U+0130 becomes "i", with a dot above it or not, and the
 * Kelvin sign becomes "k".  Turkish has an "I" that does not become "i".  A character beyond ASCII
 * may become several.
 */
static bool
is_irregular(char c)
{
	return IS_HIGHBIT_SET(c) || strchr("iIkKsS_", c) != NULL;
}

/* ---- LIKE ---- */

/* Reads a LIKE pattern; returns false if PostgreSQL raises an error for it. */
static bool
read_like(Pattern *pattern)
{
	Branch	   *branch = add_branch(pattern);
	Piece		piece;

	while (pattern->next < pattern->end)
	{
		bool		escaped = *pattern->next == '\\';

		if (*pattern->next == '%')
		{
			add_any_text(branch);
			pattern->next++;
			continue;
		}
		if (escaped && ++pattern->next >= pattern->end)
			return false;
		if (pattern->folds_others && is_irregular(*pattern->next))
		{
			add_any_text(branch);
			pattern->lossy = true;
			pattern->next += pg_mblen(pattern->next);
			continue;
		}
		if (*pattern->next == '_' && !escaped)
		{
			start_piece(&piece, ".");
			pattern->next++;
		}
		else
			read_character(pattern, &piece);
		add_piece(pattern, &piece, 1);
	}
	return true;
}

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
 * The pattern is known to be valid.  From a group, or any other unsupported part, any text is
 * assumed to match.
 */

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
 * Reads a quantifier if there is one; a 'maximum' of -1 is unlimited.  Greedy and non-greedy
 * quantifiers match the same texts.
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

/* Reads a class after "["; returns false if it contains named classes or escapes. */
static bool
parse_bracket(Pattern *pattern, StringInfo class)
{
	const char *start;

	appendStringInfoString(class, takes(pattern, '^') ? "[^" : "[");
	start = pattern->next;
	while (pattern->next == start || !sees(pattern, ']'))
	{
		char		c = *pattern->next++;

		if (c == '[' || c == '\\' || IS_HIGHBIT_SET(c))
			return false;
		if (c == '-')
			appendStringInfoChar(class, c);
		else
			append_literal(class, c);
	}
	pattern->next++;
	appendStringInfoChar(class, ']');
	return true;
}

/* Reads what a quantifier may follow; returns false if it is not supported. */
static bool
parse_piece(Pattern *pattern, Piece *piece)
{
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
	else if (strchr("^$*()", *pattern->next) != NULL)
		return false;
	else if (!takes(pattern, '\\'))
		read_character(pattern, piece);
	else if (isalnum((unsigned char) *pattern->next) || IS_HIGHBIT_SET(*pattern->next))
		return false;
	else
		read_ascii(pattern, *pattern->next++, piece);
	return true;
}

/* Tells whether there may be a "|" outside of groups. */
static bool
branch_follows(const char *rest)
{
	int			depth = 0;
	bool		bracket = false;

	for (; *rest != '\0'; rest++)
	{
		if (*rest == '|' && (depth == 0 || bracket))
			return true;
		bracket |= *rest == '[';
		depth += *rest == '(' ? 1 : *rest == ')' ? -1 : 0;
		if (*rest == '\\' && rest[1] != '\0')
			rest++;
	}
	return false;
}

/* Reads up to "|", "$" or the end; returns false for an unsupported part. */
static bool
parse_pieces(Pattern *pattern)
{
	Branch	   *branch = llast(pattern->branches);

	while (pattern->next < pattern->end && !sees(pattern, '|') &&
		   !(sees(pattern, '$') && (pattern->next + 1 == pattern->end || pattern->next[1] == '|')))
	{
		const char *start = pattern->next;
		Piece		piece;
		int			minimum;
		int			maximum;

		if (!parse_piece(pattern, &piece))
		{
			if (branch_follows(start))
				return false;
			pattern->next = pattern->end;
			pattern->lossy = true;
			add_any_text(branch);
			return true;
		}
		parse_quantifier(pattern, &minimum, &maximum);
		add_piece(pattern, &piece, minimum);
		if (maximum != minimum)
			add_any_text(branch);
		if (maximum != minimum && (maximum >= 0 || strcmp(piece.text.data, ".") != 0))
			pattern->lossy = true;
	}
	return true;
}

/*
 * Tells whether it is the regular expression for a pattern of SIMILAR TO, without groups.  Then the
 * part inside the outer group is read.
 */
static bool
is_similar_to(Pattern *pattern)
{
	if (strncmp(pattern->next, "^(?:", 4) != 0 ||
		strpbrk(pattern->next + 4, "()") != pattern->end - 2 || pattern->end[-1] != '$')
		return false;
	pattern->next += 4;
	pattern->end -= 2;
	return true;
}

/* Reads a pattern of "~"; returns false if it is not supported, or would match any text. */
static bool
read_posix(Pattern *pattern)
{
	bool		is_whole = is_similar_to(pattern);

	do
	{
		Branch	   *branch = add_branch(pattern);

		if (!is_whole && !takes(pattern, '^'))
			add_any_text(branch);
		if (!parse_pieces(pattern))
			return false;
		if (!is_whole && !takes(pattern, '$'))
			add_any_text(branch);
		if (pattern->lossy && list_length(branch->segments) == 2 &&
			((Segment *) linitial(branch->segments))->length == 0 &&
			((Segment *) lsecond(branch->segments))->length == 0)
			return false;
	} while (takes(pattern, '|'));
	return pattern->next == pattern->end;
}

/* Reads any pattern; returns NULL if it is not shippable. */
static Pattern *
read_pattern(int flags, Node *node, Oid collation)
{
	const Const *constant = (Const *) node;
	Pattern    *pattern = palloc0(sizeof(Pattern));

	/* in MongoDB a pattern matches characters; it must not match bytes here */
	if (!IsA(node, Const) || constant->constisnull || constant->consttype != TEXTOID ||
		GetDatabaseEncoding() == PG_SQL_ASCII || !OidIsValid(collation) ||
		!get_collation_isdeterministic(collation))
		return NULL;
	pattern->folds = (flags & FOLDS) != 0;
	pattern->folds_others = pattern->folds && !mongo_ctype_is_c(collation);
	if (pattern->folds_others && (flags & POSIX))
		return NULL;
	pattern->next = TextDatumGetCString(constant->constvalue);
	pattern->end = pattern->next + strlen(pattern->next);
	if (pattern->end - pattern->next > MAX_LENGTH)
		return NULL;
	if (flags & PREFIX)
		read_prefix(pattern);
	else if (!(flags & POSIX))
	{
		if (!read_like(pattern))
			return NULL;
	}
	/* a pattern without any of these is valid */
	else if ((strpbrk(pattern->next, "\\[](){}*+?") != NULL && !is_valid(pattern, collation)) ||
			 !read_posix(pattern))
		return NULL;
	return pattern->length > MAX_LENGTH ? NULL : pattern;
}

/* ---- Conditions ---- */

/*
 * Returns segments that match a superset, and that need no search between two other segments.  If
 * 'open', the text may continue after the last one.
 */
static List *
without_searches(const List *segments, bool open)
{
	static const Segment nothing;
	Segment    *first = linitial(segments);
	Segment    *last = open ? unconstify(Segment *, &nothing) : llast(segments);
	Segment    *longest = first;

	if (list_length(segments) == 1 && !open)
		return list_make1(first);
	for (int i = 1; i < list_length(segments) && first->length + last->length == 0; i++)
	{
		Segment    *segment = list_nth(segments, i);

		if (segment->length > longest->length)
			longest = segment;
	}
	return longest == first ? list_make2(first, last) : list_make3(first, longest, last);
}

static void
write_branch(const List *segments, StringInfo text)
{
	const Segment *first = linitial(segments);
	const Segment *last = llast(segments);

	/* "$" would also match before a final line feed */
	if (list_length(segments) == 1)
		appendStringInfo(text, "^%s\\z", first->text.data);
	/* PCRE itself searches for a single segment */
	else if (list_length(segments) == 3 && first->length + last->length == 0)
		appendStringInfoString(text, ((Segment *) lsecond(segments))->text.data);
	else
	{
		appendStringInfo(text, "^%s", first->text.data);
		for (int i = 1; i < list_length(segments) - 1; i++)
			appendStringInfo(text, "(?>.*?%s)", ((Segment *) list_nth(segments, i))->text.data);

		/* go to the end, and look back at the last segment */
		if (last->length > 0)
			appendStringInfo(text, "(?=.{%d}).*+(?<=%s)", last->length, last->text.data);
	}
}

/* Returns a regular expression for option "s"; NULL for searches in branches. */
static const char *
write_pattern(const Pattern *pattern)
{
	StringInfoData text;
	ListCell   *cell;

	initStringInfo(&text);
	foreach(cell, pattern->branches)
	{
		const List *segments = ((Branch *) lfirst(cell))->segments;

		if (list_length(pattern->branches) > 1 &&
			list_length(without_searches(segments, false)) < list_length(segments))
			return NULL;
		if (cell != list_head(pattern->branches))
			appendStringInfoChar(&text, '|');
		write_branch(segments, &text);
	}
	return pg_server_to_any(text.data, text.len, PG_UTF8);
}

/* Appends that the text matches the regular expression, or does not. */
static void
append_regex_match(const char *path, const char *expression, bool positive, bson_t *match)
{
	bson_value_t regex = mongo_regex(expression, "s");

	if (positive)
		mongo_append(match, path, regex);
	else
		mongo_append_template(match, "{@1: {$not: @2, $ne: null}}", mongo_utf8(path), regex);
}

/* Tells whether the first so many characters of a text decide if it matches. */
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

/* Reads the pattern for find, without searches; returns NULL if it is not shippable. */
static const Pattern *
read_for_find(const MongoField *field, int flags, Node *node, Oid collation)
{
	Pattern    *pattern = read_pattern(flags, node, collation);
	bool		open;

	if (pattern == NULL)
		return NULL;

	/* the stored text may continue after the part that the column reads */
	open = mongo_reading_changes(mongo_base_type(field->type), field->typmod) &&
		!is_within(pattern, field->typmod - (int) VARHDRSZ);
	foreach_ptr(Branch, branch, pattern->branches)
	{
		List	   *segments = without_searches(branch->segments, open);

		pattern->lossy |= open || list_length(segments) < list_length(branch->segments);
		branch->segments = segments;
	}
	return pattern;
}

/* Tells whether the text of an ObjectId may match. */
static bool
may_be_objectid(const Pattern *pattern)
{
	foreach_ptr(const Branch, branch, pattern->branches)
	{
		const Segment *first = linitial(branch->segments);

		if (branch->may_be_hex && (list_length(branch->segments) > 1 ||
								   first->length == MONGO_OBJECTID_TEXT_LENGTH))
			return true;
	}
	return false;
}

/*
 * Translates LIKE, "~" and the like to an expression, which may raise an error for texts of more
 * than about 200,000 characters.
 */
static bool
translate_pattern(const MongoCall *call, MongoValue *result)
{
	const Pattern *pattern = read_pattern(call->row->flags, lsecond(call->args), call->collation);
	const char *expression;
	MongoValue	values[2];

	if (pattern == NULL || pattern->lossy)
		return false;
	expression = write_pattern(pattern);
	if (expression == NULL || !mongo_normal_value_of_node(call->scope, linitial(call->args), &values[0]))
		return false;
	values[1] = mongo_text_value(expression);
	*result = mongo_result(call->row->flags & NEGATED ?
						   "{$cond: [{$gt: [@1, null]}, "
						   "{$not: [{$regexMatch: {input: @1, regex: @2, options: 's'}}]}, null]}" :
						   "{$cond: [{$gt: [@1, null]}, "
						   "{$regexMatch: {input: @1, regex: @2, options: 's'}}, null]}",
						   values, 2, BOOLOID, values[0].nullable);
	return true;
}

/* Tells whether a text that matches may begin with this character. */
static bool
may_begin(const void *context, char first)
{
	foreach_ptr(const Branch, branch, ((const Pattern *) context)->branches)
	{
		if (branch->first == '\0' || branch->first == first)
			return true;
	}
	return false;
}

/*
 * mongo_translate_pattern
 *		Appends to 'match' a filter of where "field OP pattern" is true, or without 'wanted', where
 *		it is false.  'function' is the operator's function, 'node' the pattern.  Returns
 *		MONGO_NOT_SHIPPABLE for other functions, for patterns that are not constants, and if the two
 *		engines do not provably agree.
 */
MongoExactness
mongo_translate_pattern(const MongoField *field, Oid function, Node *node,
						Oid collation, bool wanted, bson_t *match)
{
	const MongoExpressionRow *row = function == F_STARTS_WITH ? &starts_with :
		mongo_find_row(mongo_pattern_rows, function);
	bool		is_json = field->type == JSONOID && field->operator_type == TEXTOID;
	const Pattern *pattern;
	const char *expression;
	bool		positive;
	bool		reads_objectids;
	BsonArray	branches = mongo_array_create();
	bson_t		string;

	if (row == NULL || (!is_json && !mongo_compares_text(mongo_base_type(field->type))) ||
		!mongo_path_is_addressable(field->path) || mongo_path_has_index(field->path))
		return MONGO_NOT_SHIPPABLE;
	positive = (row->flags & NEGATED) == 0 ? wanted : !wanted;
	pattern = read_for_find(field, row->flags, node, collation);
	if (pattern == NULL || (!positive && is_json))
		return MONGO_NOT_SHIPPABLE;

	/* only an expression can test the text as the column cuts it */
	if (!positive && pattern->lossy &&
		mongo_reading_changes(mongo_base_type(field->type), field->typmod))
		return MONGO_NOT_SHIPPABLE;
	if (!positive && pattern->lossy)
	{
		mongo_append_condition(match, field->path, "$ne", mongo_null());
		return MONGO_SUPERSET;
	}
	expression = write_pattern(pattern);

	/* a regular expression matches only Strings */
	reads_objectids = !is_json && field->bson_type != BSON_TYPE_UTF8 && may_be_objectid(pattern);
	if (!positive || (!is_json && !reads_objectids))
		append_regex_match(field->path, expression, positive, match);
	else
	{
		mongo_array_begin_document(&branches, &string);
		append_regex_match(field->path, expression, true, &string);
		mongo_array_end_document(&branches, &string);
		if (is_json)
			mongo_append_other_json(&branches, field->path, may_begin, pattern);
		else
			mongo_array_append_template(&branches, "{@1: {$type: 'objectId'}}",
										mongo_utf8(field->path));
		mongo_append(match, "$or", mongo_array(branches.bson));
	}
	return pattern->lossy || is_json || reads_objectids ? MONGO_SUPERSET : MONGO_EXACT;
}
