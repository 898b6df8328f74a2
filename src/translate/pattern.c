/*-------------------------------------------------------------------------
 *
 * pattern.c
 *		LIKE, ILIKE and starts_with() as regular expressions.
 *
 * In the regular expression "." matches line feeds too, and a literal prefix is
 * a range of an index.  PCRE gives up after some 200,000 steps, and find takes that
 * for "does not match", so what costs a step for each character must not be
 * relied on.  A beginning and an end are looked at where they stand, and a text
 * in "%text%" is searched for by PCRE itself, which counts no steps.  Between two
 * "%" of a longer pattern the first place that fits is as good as any later one:
 * "(?>.*?text)", a step for each character and no way back.
 *
 * ILIKE folds ASCII alone under a C collation, and so do classes like [aA]; PCRE's
 * option "i" would fold other letters as well.
 *
 * https://www.postgresql.org/docs/current/functions-matching.html
 * https://www.mongodb.com/docs/manual/reference/operator/query/regex/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pattern.h"

#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"

/* PCRE takes about 32,000 bytes; no sensible pattern comes near. */
#define MAX_PATTERN_LENGTH	4000

static const struct
{
	Oid			function;
	bool		negated;
	MongoPatternKind kind;
}			functions[] =
{
	{F_TEXTLIKE, false, MONGO_PATTERN_LIKE},
	{F_TEXTNLIKE, true, MONGO_PATTERN_LIKE},
	{F_NAMELIKE, false, MONGO_PATTERN_LIKE},
	{F_NAMENLIKE, true, MONGO_PATTERN_LIKE},
	{F_TEXTICLIKE, false, MONGO_PATTERN_ILIKE},
	{F_TEXTICNLIKE, true, MONGO_PATTERN_ILIKE},
	{F_NAMEICLIKE, false, MONGO_PATTERN_ILIKE},
	{F_NAMEICNLIKE, true, MONGO_PATTERN_ILIKE},
	{F_STARTS_WITH, false, MONGO_PATTERN_PREFIX},
};

/* Characters of a text that PCRE gets through for sure, a step for each. */
#define SAFE_LENGTH			60000

/* What a pattern means. */
typedef struct Pattern
{
	StringInfoData expression;	/* in the server's encoding */
	bool		folds;			/* ASCII letters, as ILIKE does */
	bool		may_be_objectid;	/* 24 hexadecimal digits might match */
	bool		searches;		/* takes steps in number of the text's length */
} Pattern;

/* What stands before, between or after the "%"s. */
typedef struct Segment
{
	StringInfoData expression;
	int			length;			/* in characters of the text */
} Segment;

static void
append_literal(Pattern *pattern, StringInfo expression, char c)
{
	if (pattern->folds && isascii((unsigned char) c) && isalpha((unsigned char) c))
		appendStringInfo(expression, "[%c%c]", pg_ascii_tolower((unsigned char) c),
						 pg_ascii_toupper((unsigned char) c));
	else if (IS_HIGHBIT_SET(c) || isalnum((unsigned char) c) || c == ' ')
		appendStringInfoChar(expression, c);
	else if (c == '\n')
		appendStringInfoString(expression, "\\n");
	else
		appendStringInfo(expression, "\\%c", c);

	if (strchr("0123456789abcdef", pattern->folds ? pg_ascii_tolower((unsigned char) c) : c) == NULL)
		pattern->may_be_objectid = false;
}

/*
 * read_segment: up to the next "%"; gives what follows, or NULL for a pattern that
 * PostgreSQL itself raises an error on.
 */
static const char *
read_segment(Pattern *pattern, const char *string, const char *end, Segment *segment)
{
	initStringInfo(&segment->expression);
	segment->length = 0;
	for (; string < end && *string != '%'; segment->length++)
	{
		int			bytes;

		if (*string == '_')
		{
			appendStringInfoChar(&segment->expression, '.');
			string++;
			continue;
		}
		if (*string == '\\' && ++string >= end)
			return NULL;
		bytes = Min(pg_mblen(string), end - string);
		for (int i = 0; i < bytes; i++)
			append_literal(pattern, &segment->expression, string[i]);
		string += bytes;
	}
	return string;
}

/* read_segments: one more than there are "%"s, of which several in a row are as one. */
static List *
read_segments(Pattern *pattern, const char *string, int length)
{
	const char *end = string + length;
	List	   *segments = NIL;

	for (;;)
	{
		Segment    *segment = palloc(sizeof(Segment));

		string = read_segment(pattern, string, end, segment);
		if (string == NULL)
			return NIL;
		segments = lappend(segments, segment);
		if (string == end)
			return segments;
		while (string < end && *string == '%')
			string++;
	}
}

/*
 * convert_segments: several of them.  With 'admits_long', a text that is too long to
 * be searched matches as well.
 */
static void
convert_segments(Pattern *pattern, const List *segments, bool admits_long)
{
	StringInfo	expression = &pattern->expression;
	const Segment *first = linitial(segments);
	const Segment *last = llast(segments);
	int			ninner = list_length(segments) - 2;

	if (first->length == 0 && ninner == 1 && last->length == 0)
	{
		appendStringInfoString(expression, ((Segment *) lsecond(segments))->expression.data);
		return;
	}

	appendStringInfo(expression, "^%s", first->expression.data);
	pattern->searches = ninner > 0;
	if (pattern->searches && admits_long)
		appendStringInfo(expression, "(?:.{%d}|", SAFE_LENGTH);
	for (int i = 1; i <= ninner; i++)
		appendStringInfo(expression, "(?>.*?%s)",
						 ((Segment *) list_nth(segments, i))->expression.data);

	/* far enough from the end, and then what stands before it */
	if (last->length > 0)
		appendStringInfo(expression, "(?=.{%d}).*+(?<=%s)", last->length,
						 last->expression.data);
	if (pattern->searches && admits_long)
		appendStringInfoChar(expression, ')');
}

/* convert_like: false for what PostgreSQL itself raises an error on. */
static bool
convert_like(const char *string, int length, bool admits_long, Pattern *pattern)
{
	List	   *segments = read_segments(pattern, string, length);

	if (segments == NIL)
		return false;
	/* "$" would match before a final line feed as well */
	if (list_length(segments) == 1)
		appendStringInfo(&pattern->expression, "^%s\\z",
						 ((Segment *) linitial(segments))->expression.data);
	else
		convert_segments(pattern, segments, admits_long);
	return true;
}

static void
convert_prefix(const char *string, int length, Pattern *pattern)
{
	appendStringInfoChar(&pattern->expression, '^');
	for (int i = 0; i < length; i++)
		append_literal(pattern, &pattern->expression, string[i]);
}

/* {path: /expression/s}, or for the opposite {path: {$not: /.../s, $ne: null}} */
static void
append_regex(const char *path, const char *expression, bool positive, bson_t *match)
{
	bson_t		operators;

	if (positive)
	{
		BSON_APPEND_REGEX(match, path, expression, "s");
		return;
	}
	BSON_APPEND_DOCUMENT_BEGIN(match, path, &operators);
	BSON_APPEND_REGEX(&operators, "$not", expression, "s");
	BSON_APPEND_NULL(&operators, "$ne");
	bson_append_document_end(match, &operators);
}

/* {$or: [{path: /expression/s}, {path: {$type: "objectId"}}]} */
static void
append_regex_or_objectid(const char *path, const char *expression, bson_t *match)
{
	bson_t		branches;
	bson_t		branch;
	bson_t		operators;

	BSON_APPEND_ARRAY_BEGIN(match, "$or", &branches);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "0", &branch);
	append_regex(path, expression, true, &branch);
	bson_append_document_end(&branches, &branch);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "1", &branch);
	BSON_APPEND_DOCUMENT_BEGIN(&branch, path, &operators);
	BSON_APPEND_UTF8(&operators, "$type", "objectId");
	bson_append_document_end(&branch, &operators);
	bson_append_document_end(&branches, &branch);
	bson_append_array_end(match, &branches);
}

/* is_text_field: declared as one of the types that read Strings as they are. */
static bool
is_text_field(const MongoField *field)
{
	Oid			type = getBaseType(field->type);

	return type == TEXTOID || type == VARCHAROID || type == NAMEOID;
}

/* is_short_field: can it only hold texts that PCRE gets through? */
static bool
is_short_field(const MongoField *field)
{
	Oid			type = getBaseType(field->type);

	return type == NAMEOID ||
		(type == VARCHAROID && field->typmod >= (int32) VARHDRSZ &&
		 field->typmod - (int32) VARHDRSZ <= SAFE_LENGTH);
}

/* build_pattern: the regular expression, in UTF-8; NULL when there is none. */
static const char *
build_pattern(const Const *constant, MongoPatternKind kind, bool admits_long,
			  Pattern *pattern)
{
	text	   *packed = DatumGetTextPP(constant->constvalue);
	const char *string = VARDATA_ANY(packed);
	int			length = VARSIZE_ANY_EXHDR(packed);

	if (length > MAX_PATTERN_LENGTH)
		return NULL;
	initStringInfo(&pattern->expression);
	pattern->folds = kind == MONGO_PATTERN_ILIKE;
	pattern->may_be_objectid = true;
	pattern->searches = false;
	if (kind == MONGO_PATTERN_PREFIX)
		convert_prefix(string, length, pattern);
	else if (!convert_like(string, length, admits_long, pattern))
		return NULL;
	return pg_server_to_any(pattern->expression.data, pattern->expression.len, PG_UTF8);
}

const char *
mongo_like_expression(const Const *constant, MongoPatternKind kind)
{
	Pattern		pattern;

	if (constant->constisnull || constant->consttype != TEXTOID ||
		GetDatabaseEncoding() == PG_SQL_ASCII)
		return NULL;
	return build_pattern(constant, kind, false, &pattern);
}

MongoGrade
mongo_translate_pattern(const MongoField *field, Oid function, Node *node,
						Oid collation, bool wanted, bson_t *match)
{
	const Const *constant = (Const *) node;
	const char *expression;
	Pattern		pattern;
	bool		positive;
	bool		is_short;
	size_t		i = 0;

	while (i < lengthof(functions) && functions[i].function != function)
		i++;
	if (i == lengthof(functions) || !IsA(node, Const) || constant->constisnull ||
		constant->consttype != TEXTOID || !is_text_field(field) ||
		!mongo_path_is_addressable(field->path) || mongo_path_has_index(field->path))
		return MONGO_NOT_SHIPPABLE;

	/* "_" is a character there; it must not be a byte here */
	if (GetDatabaseEncoding() == PG_SQL_ASCII || !OidIsValid(collation) ||
		!get_collation_isdeterministic(collation))
		return MONGO_NOT_SHIPPABLE;

	if (functions[i].kind == MONGO_PATTERN_ILIKE && !mongo_ctype_is_c(collation))
		return MONGO_NOT_SHIPPABLE;

	positive = functions[i].negated != wanted;
	is_short = is_short_field(field);
	expression = build_pattern(constant, functions[i].kind, positive && !is_short,
							   &pattern);
	if (expression == NULL)
		return MONGO_NOT_SHIPPABLE;

	if (!pattern.may_be_objectid)
		append_regex(field->path, expression, positive, match);
	else if (positive)
		append_regex_or_objectid(field->path, expression, match);
	else
		append_regex(field->path, expression, false, match);
	return pattern.may_be_objectid || (pattern.searches && !is_short) ?
		MONGO_SUPERSET : MONGO_EXACT;
}
