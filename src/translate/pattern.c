/*-------------------------------------------------------------------------
 *
 * pattern.c
 *		LIKE, NOT LIKE and starts_with() as regular expressions.
 *
 * A pattern becomes an anchored regular expression in which "." matches line
 * feeds too, so that a literal prefix is a range of an index.  "%" becomes the
 * lazy ".*?": the first place where the next literal fits is as good as any
 * later one, so a match is found without backtracking, and PCRE's limit on it
 * can only cut a search short that would not have found anything.
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

/* PCRE takes about 32,000 bytes; no sensible pattern comes near. */
#define MAX_PATTERN_LENGTH	4000

static const struct
{
	Oid			function;
	bool		negated;
	bool		prefix;			/* no wildcards: only what it begins with */
}			functions[] =
{
	{F_TEXTLIKE, false, false},
	{F_TEXTNLIKE, true, false},
	{F_NAMELIKE, false, false},
	{F_NAMENLIKE, true, false},
	{F_STARTS_WITH, false, true},
};

/* What a pattern means. */
typedef struct Pattern
{
	StringInfoData expression;	/* in the server's encoding */
	bool		may_be_objectid;	/* 24 hexadecimal digits might match */
} Pattern;

static void
append_literal(Pattern *pattern, char c)
{
	if (IS_HIGHBIT_SET(c) || isalnum((unsigned char) c) || c == ' ')
		appendStringInfoChar(&pattern->expression, c);
	else if (c == '\n')
		appendStringInfoString(&pattern->expression, "\\n");
	else
		appendStringInfo(&pattern->expression, "\\%c", c);

	if (strchr("0123456789abcdef", c) == NULL)
		pattern->may_be_objectid = false;
}

/* convert_like: false for what PostgreSQL itself raises an error on. */
static bool
convert_like(const char *string, int length, Pattern *pattern)
{
	bool		open_end = false;

	appendStringInfoChar(&pattern->expression, '^');
	for (int i = 0; i < length; i++)
	{
		char		c = string[i];

		open_end = false;
		if (c == '%')
		{
			/* several in a row are as one */
			while (i + 1 < length && string[i + 1] == '%')
				i++;
			if (i + 1 < length)
				appendStringInfoString(&pattern->expression, ".*?");
			open_end = true;
		}
		else if (c == '_')
			appendStringInfoChar(&pattern->expression, '.');
		else if (c == '\\')
		{
			if (++i >= length)
				return false;
			append_literal(pattern, string[i]);
		}
		else
			append_literal(pattern, c);
	}
	/* "$" would match before a final line feed as well */
	if (!open_end)
		appendStringInfoString(&pattern->expression, "\\z");
	return true;
}

static void
convert_prefix(const char *string, int length, Pattern *pattern)
{
	appendStringInfoChar(&pattern->expression, '^');
	for (int i = 0; i < length; i++)
		append_literal(pattern, string[i]);
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

/* build_pattern: the regular expression, in UTF-8; NULL when there is none. */
static const char *
build_pattern(const Const *constant, bool prefix, Pattern *pattern)
{
	text	   *packed = DatumGetTextPP(constant->constvalue);
	const char *string = VARDATA_ANY(packed);
	int			length = VARSIZE_ANY_EXHDR(packed);

	if (length > MAX_PATTERN_LENGTH)
		return NULL;
	initStringInfo(&pattern->expression);
	pattern->may_be_objectid = true;
	if (prefix)
		convert_prefix(string, length, pattern);
	else if (!convert_like(string, length, pattern))
		return NULL;
	return pg_server_to_any(pattern->expression.data, pattern->expression.len, PG_UTF8);
}

const char *
mongo_like_expression(const Const *constant)
{
	Pattern		pattern;

	if (constant->constisnull || constant->consttype != TEXTOID ||
		GetDatabaseEncoding() == PG_SQL_ASCII)
		return NULL;
	return build_pattern(constant, false, &pattern);
}

MongoGrade
mongo_translate_pattern(const MongoField *field, Oid function, Node *node,
						Oid collation, bool wanted, bson_t *match)
{
	const Const *constant = (Const *) node;
	const char *expression;
	Pattern		pattern;
	bool		positive;
	int			i = 0;

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

	expression = build_pattern(constant, functions[i].prefix, &pattern);
	if (expression == NULL)
		return MONGO_NOT_SHIPPABLE;

	positive = functions[i].negated != wanted;
	if (!pattern.may_be_objectid)
		append_regex(field->path, expression, positive, match);
	else if (positive)
		append_regex_or_objectid(field->path, expression, match);
	else
		append_regex(field->path, expression, false, match);
	return pattern.may_be_objectid ? MONGO_SUPERSET : MONGO_EXACT;
}
