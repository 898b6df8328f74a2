/*-------------------------------------------------------------------------
 *
 * pattern.c
 *		LIKE, ILIKE, starts_with() and "~" as conditions of find.
 *
 * In the regular expression "." matches line feeds too, and a literal prefix is
 * a range of an index.
 *
 * Where case does not matter ASCII alone folds under a C collation, and so do classes
 * like [Aa]; PCRE's option "i" would fold other letters as well.
 *
 * https://www.postgresql.org/docs/current/functions-matching.html
 * https://www.mongodb.com/docs/manual/reference/operator/query/regex/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "json_text.h"
#include "objectid.h"
#include "pattern.h"
#include "pattern_tree.h"
#include "types.h"

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"

/* No sensible pattern comes near. */
#define MAX_PATTERN_LENGTH	4000

static const MongoPatternFunction functions[] =
{
	{F_TEXTLIKE, .kind = MONGO_PATTERN_LIKE},
	{F_TEXTNLIKE, .kind = MONGO_PATTERN_LIKE, .negated = true},
	{F_NAMELIKE, .kind = MONGO_PATTERN_LIKE},
	{F_NAMENLIKE, .kind = MONGO_PATTERN_LIKE, .negated = true},
	{F_TEXTICLIKE, .kind = MONGO_PATTERN_LIKE, .folds = true},
	{F_TEXTICNLIKE, .kind = MONGO_PATTERN_LIKE, .folds = true, .negated = true},
	{F_NAMEICLIKE, .kind = MONGO_PATTERN_LIKE, .folds = true},
	{F_NAMEICNLIKE, .kind = MONGO_PATTERN_LIKE, .folds = true, .negated = true},
	{F_TEXTREGEXEQ, .kind = MONGO_PATTERN_POSIX},
	{F_TEXTREGEXNE, .kind = MONGO_PATTERN_POSIX, .negated = true},
	{F_NAMEREGEXEQ, .kind = MONGO_PATTERN_POSIX},
	{F_NAMEREGEXNE, .kind = MONGO_PATTERN_POSIX, .negated = true},
	{F_TEXTICREGEXEQ, .kind = MONGO_PATTERN_POSIX, .folds = true},
	{F_TEXTICREGEXNE, .kind = MONGO_PATTERN_POSIX, .folds = true, .negated = true},
	{F_NAMEICREGEXEQ, .kind = MONGO_PATTERN_POSIX, .folds = true},
	{F_NAMEICREGEXNE, .kind = MONGO_PATTERN_POSIX, .folds = true, .negated = true},
	{F_STARTS_WITH, .kind = MONGO_PATTERN_PREFIX},
};

const MongoPatternFunction *
mongo_pattern_function(Oid function)
{
	for (size_t i = 0; i < lengthof(functions); i++)
	{
		if (functions[i].function == function)
			return &functions[i];
	}
	return NULL;
}

/* The branches of a pattern; NIL when they are not shippable. */
static List *
parse_pattern(const MongoPatternFunction *function, Node *node, Oid collation)
{
	const Const *constant = (Const *) node;
	text	   *packed;
	const char *string;
	int			length;

	/* a character is one there; it must not be a byte here */
	if (!IsA(node, Const) || constant->constisnull || constant->consttype != TEXTOID ||
		GetDatabaseEncoding() == PG_SQL_ASCII || !OidIsValid(collation) ||
		!get_collation_isdeterministic(collation) ||
		(function->folds && !mongo_ctype_is_c(collation)))
		return NIL;
	packed = DatumGetTextPP(constant->constvalue);
	string = VARDATA_ANY(packed);
	length = VARSIZE_ANY_EXHDR(packed);
	if (length > MAX_PATTERN_LENGTH)
		return NIL;
	switch (function->kind)
	{
		case MONGO_PATTERN_LIKE:
			return mongo_parse_like(string, length, function->folds);
		case MONGO_PATTERN_PREFIX:
			return mongo_parse_prefix(string, length);
		case MONGO_PATTERN_POSIX:
			return mongo_parse_posix(string, length, function->folds,
									 mongo_ctype_is_c(collation));
	}
	return NIL;
}

static const char *
in_utf8(const StringInfoData *text)
{
	return pg_server_to_any(text->data, text->len, PG_UTF8);
}

/* append_pattern_match: a text that the expression matches, or one that it does not. */
static void
append_pattern_match(const char *path, const MongoRegularExpression *expression, bool positive,
					 bson_t *match)
{
	bson_value_t regex = bson_regex(in_utf8(&expression->text), "s");

	if (!positive)
		bson_append_template(match, "{@1: {$not: @2, $ne: null}}", bson_utf8(path), regex);
	else if (expression->prefix.len > 0)
		bson_append_template(match, "{@1: {$all: [@2, @3]}}", bson_utf8(path),
							 bson_regex(in_utf8(&expression->prefix), "s"), regex);
	else
		BSON_APPEND_VALUE(match, path, &regex);
}

/*
 * append_regex_or_objectid: a regular expression looks at Strings only; an ObjectId
 * may match, too.
 */
static void
append_regex_or_objectid(const char *path, const MongoRegularExpression *expression,
						 bson_t *match)
{
	bson_t	   *matches = bson_create_in(CurrentMemoryContext);

	append_pattern_match(path, expression, true, matches);
	bson_append_template(match, "{$or: [@1, {@2: {$type: 'objectId'}}]}",
						 bson_document(matches), bson_utf8(path));
}

/* is_text_field: declared as one of the types that read Strings as they are. */
static bool
is_text_field(const MongoField *field)
{
	return mongo_compares_text(getBaseType(field->type));
}

/* is_short_field: can it only hold texts that PCRE gets through? */
static bool
is_short_field(const MongoField *field, int safe_length)
{
	Oid			type = getBaseType(field->type);

	return safe_length == 0 || (type == NAMEOID && safe_length >= NAMEDATALEN) ||
		(type == VARCHAROID && field->typmod >= (int32) VARHDRSZ &&
		 field->typmod - (int32) VARHDRSZ <= safe_length);
}

/* May the text of an ObjectId match? */
static bool
may_be_objectid(const List *branches)
{
	ListCell   *cell;

	foreach(cell, branches)
	{
		const MongoPatternBranch *branch = lfirst(cell);
		int			length = mongo_pieces_length(branch->pieces);

		if (branch->at_start && branch->at_end && length >= 0 &&
			length != MONGO_OBJECTID_TEXT_LENGTH)
			continue;
		if (mongo_pieces_may_be_hex(branch->pieces))
			return true;
	}
	return false;
}

const char *
mongo_pattern_expression(const MongoPatternFunction *function, Node *node, Oid collation)
{
	List	   *branches = parse_pattern(function, node, collation);
	MongoRegularExpression expression;

	if (branches == NIL || !mongo_write_regular_expression(branches, false, &expression) ||
		(expression.safe_length > 0 && expression.safe_length < MONGO_SAFE_LENGTH))
		return NULL;
	return in_utf8(&expression.text);
}

/* may_begin: may a text that one of the branches matches begin so? */
static bool
may_begin(const void *context, char first)
{
	MongoCharacterSet set = {0};
	ListCell   *cell;

	mongo_set_add(&set, (unsigned char) first, (unsigned char) first);
	foreach(cell, (const List *) context)
	{
		const MongoPatternBranch *branch = lfirst(cell);

		if (!branch->at_start || mongo_meets(branch->pieces, 0, 1, &set, true))
			return true;
	}
	return false;
}

/* json_text_pattern: the text of what is inside json, a superset. */
static MongoGrade
json_text_pattern(const MongoField *field, List *branches, bson_t *match)
{
	MongoRegularExpression expression;
	BsonArray	conditions = bson_array_create();
	bson_t		string;

	if (!mongo_write_regular_expression(branches, true, &expression))
		return MONGO_NOT_SHIPPABLE;
	bson_array_begin_document(&conditions, &string);
	append_pattern_match(field->path, &expression, true, &string);
	bson_array_end_document(&conditions, &string);
	mongo_append_other_json(&conditions, field->path, may_begin, branches);
	BSON_APPEND_ARRAY(match, "$or", conditions.bson);
	return MONGO_SUPERSET;
}

MongoGrade
mongo_translate_pattern(const MongoField *field, Oid function_oid, Node *node,
						Oid collation, bool wanted, bson_t *match)
{
	const MongoPatternFunction *function = mongo_pattern_function(function_oid);
	MongoRegularExpression expression;
	List	   *branches;
	bool		positive;
	bool		is_short;
	bool		admits_objectid;

	bool		is_json = field->type == JSONOID && field->operator_type == TEXTOID;

	if (function == NULL || (!is_text_field(field) && !is_json) ||
		!mongo_path_is_addressable(field->path) || mongo_path_has_index(field->path))
		return MONGO_NOT_SHIPPABLE;
	branches = parse_pattern(function, node, collation);
	positive = function->negated != wanted;
	if (is_json)
		return branches != NIL && positive ? json_text_pattern(field, branches, match) :
			MONGO_NOT_SHIPPABLE;
	if (branches == NIL || !mongo_write_regular_expression(branches, false, &expression))
		return MONGO_NOT_SHIPPABLE;

	is_short = is_short_field(field, expression.safe_length);
	if (positive && !is_short)
		mongo_write_regular_expression(branches, true, &expression);
	admits_objectid = field->bson_type != BSON_TYPE_UTF8 && may_be_objectid(branches);
	if (admits_objectid && positive)
		append_regex_or_objectid(field->path, &expression, match);
	else
		append_pattern_match(field->path, &expression, positive, match);
	return admits_objectid || !is_short ? MONGO_SUPERSET : MONGO_EXACT;
}
