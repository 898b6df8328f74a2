/*-------------------------------------------------------------------------
 *
 * json_text.c
 *		Conditions on the text of what is inside json: ->> and #>>.
 *
 * A String's text is the String.  Other values have their JSON for text, whose first
 * character tells what they are, so that few of them come into question.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_text.h"

#include "strategy.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "nodes/pathnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/*
 * What is no String, with the characters that its text begins with.  For arrays
 * MongoDB has no bounds of an index, and for Symbols those of Strings, but would read
 * all of that: $nor keeps it from it.
 */
static const struct
{
	const char *first;
	const char *template;
}			classes[] =
{
	{"-0123456789", "{@1: {$type: 'number'}}"},
	{"tf", "{@1: {$type: 'bool'}}"},
	{"[", "{$nor: [{@1: {$not: {$type: 'array'}}}]}"},
	{"{", "{@1: {$type: ['object', 'number', 'binData', 'objectId', 'date', 'regex', 'timestamp', "
	"'javascript', 'javascriptWithScope', 'dbPointer', 'undefined', 'minKey', 'maxKey']}}"},
	{"{", "{$nor: [{@1: {$not: {$type: 'symbol'}}}]}"},
};

void
mongo_append_other_json(BsonArray *branches, const char *path,
						bool (*may_begin) (const void *context, char first),
						const void *context)
{
	for (size_t i = 0; i < lengthof(classes); i++)
	{
		for (const char *first = classes[i].first; *first != '\0'; first++)
		{
			if (!may_begin(context, *first))
				continue;
			bson_array_append_template(branches, classes[i].template, bson_utf8(path));
			break;
		}
	}
}

/* A text that others are compared with, byte by byte. */
typedef struct TextBound
{
	int			strategy;
	const char *string;
	int			length;
	int			first;			/* what another condition lets texts begin
								 * with */
	int			last;
} TextBound;

/* may_compare: may a text that begins so be where the bound has it? */
static bool
may_compare(const void *context, char first)
{
	const TextBound *bound = context;

	if ((unsigned char) first < bound->first || (unsigned char) first > bound->last)
		return false;
	if (mongo_is_upper_bound(bound->strategy))
		return bound->length > 0 && (unsigned char) first <= (unsigned char) bound->string[0];
	return bound->length == 0 || (unsigned char) first >= (unsigned char) bound->string[0];
}

/* append_number_point: the number, if the whole text is one. */
static void
append_number_point(const char *text, BsonArray *points)
{
	char	   *end;
	double		number;
	int64		integer;

	if (strchr("-0123456789", text[0]) == NULL || strpbrk(text, "xXnN") != NULL)
		return;
	number = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(number))
		return;
	errno = 0;
	integer = strtoll(text, &end, 10);
	if (*end == '\0' && errno == 0)
		bson_array_append(points, bson_integer(integer));
	if (*end != '\0' || errno != 0 || (double) integer != number || fabs(number) >= INT64CONST(1) << 53)
		bson_array_append(points, bson_double(number));
}

/* append_equal: a String, or a number or Boolean with this text. */
static void
append_equal(const char *path, const char *string, int length, bson_t *match)
{
	char	   *text = pnstrdup(string, length);
	BsonArray	points = bson_array_create();

	if (length > 0 && strchr("{[", text[0]) != NULL)
	{
		bson_append_condition(match, path, "$exists", bson_bool(true));
		return;
	}
	bson_array_append(&points, bson_utf8_sized(string, length));
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		bson_array_append(&points, bson_bool(text[0] == 't'));
	else if (length > 0)
		append_number_point(text, &points);
	if (points.count == 1)
		bson_append_condition(match, path, "$eq", bson_first(points.bson));
	else
		bson_append_condition(match, path, "$in", bson_array(points.bson));
}

/* narrow_by: "text OP constant", or the other way round, if the condition is that. */
static void
narrow_by(const OpExpr *condition, const Node *side, MongoPredicate *predicate)
{
	Oid			operator = condition->opno;
	const Const *constant = lsecond(condition->args);
	text	   *packed;
	int			strategy;
	int			first;

	if (!equal(linitial(condition->args), side))
	{
		if (!equal(constant, side))
			return;
		constant = linitial(condition->args);
		operator = get_commutator(operator);
	}
	if (!IsA(constant, Const) || constant->constisnull || constant->consttype != TEXTOID ||
		!OidIsValid(operator))
		return;
	packed = DatumGetTextPP(constant->constvalue);
	first = VARSIZE_ANY_EXHDR(packed) == 0 ? 0 : (unsigned char) *VARDATA_ANY(packed);
	strategy = mongo_default_strategy(operator, TEXTOID);
	if (mongo_is_upper_bound(strategy))
		predicate->last_character = Min(predicate->last_character, first);
	else if (strategy == BTGreaterEqualStrategyNumber || strategy == BTGreaterStrategyNumber)
		predicate->first_character = Max(predicate->first_character, first);
}

void
mongo_narrow_json_text(const List *conditions, const Node *text, MongoPredicate *predicate)
{
	const ListCell *cell;

	foreach(cell, conditions)
	{
		const Node *node = lfirst(cell);

		if (IsA(node, RestrictInfo))
			node = (const Node *) ((const RestrictInfo *) node)->clause;
		if (IsA(node, OpExpr) && list_length(((const OpExpr *) node)->args) == 2 &&
			((const OpExpr *) node)->inputcollid == predicate->collation)
			narrow_by((const OpExpr *) node, text, predicate);
	}
}

MongoMatch
mongo_json_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	BsonArray	branches = bson_array_create();
	TextBound	bound = {
		.strategy = predicate->strategy,
		.first = predicate->first_character, .last = predicate->last_character
	};
	text	   *packed;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL || predicate->value_type == NAMEOID)
	{
		bson_append_condition(match, predicate->path, "$exists", bson_bool(true));
		return MONGO_MATCH_SOME;
	}
	packed = DatumGetTextPP(value);
	bound.string = pg_server_to_any(VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed), PG_UTF8);
	bound.length = bound.string == VARDATA_ANY(packed) ? (int) VARSIZE_ANY_EXHDR(packed) :
		(int) strlen(bound.string);
	if (predicate->strategy == BTEqualStrategyNumber)
	{
		append_equal(predicate->path, bound.string, bound.length, match);
		return MONGO_MATCH_SOME;
	}
	bson_array_append_template(&branches, "{@1: {@2: @3}}", bson_utf8(predicate->path),
							   bson_utf8(mongo_find_operators[predicate->strategy]),
							   bson_utf8_sized(bound.string, bound.length));
	mongo_append_other_json(&branches, predicate->path, may_compare, &bound);
	BSON_APPEND_ARRAY(match, "$or", branches.bson);
	return MONGO_MATCH_SOME;
}
