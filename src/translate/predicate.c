/*-------------------------------------------------------------------------
 *
 * predicate.c
 *		Renders "column OP value" as query predicates, at planning or at execution.
 *
 * This file decides what column types share: forms, exactness, NULLs, arrays, type checks, and
 * conversion to nodes of a plan.  What differs between types is in comparison.c; json, local time
 * and mongo_match() have renderers of their own, which mongo_predicate_render() chooses.  The last
 * part decides which documents of a command cannot fail.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include <math.h>

#include "access/stratnum.h"
#include "miscadmin.h"

static const MongoComparison *
comparison_of(const MongoPredicate *predicate)
{
	return mongo_comparison_lookup(mongo_base_type(predicate->field.type),
								   predicate->field.typmod, predicate->field.bson_type);
}

/*
 * Tells whether it is equality with points, on a column that reads every field that equals them,
 * unless that is in an array.
 */
static bool
equality_fits(const MongoPredicate *predicate)
{
	return predicate->strategy == BTEqualStrategyNumber &&
		mongo_equality_fits(predicate->field.type, predicate->field.typmod,
							predicate->field.bson_type, predicate->value_type);
}

/*
 * mongo_predicate_exactness
 *		Returns the exactness of the rendered predicate, for any value.
 */
MongoExactness
mongo_predicate_exactness(const MongoPredicate *predicate)
{
	const MongoComparison *comparison;
	Oid			base_type = mongo_base_type(predicate->field.type);
	bool		is_objectid = mongo_type_kind(base_type) == MONGO_KIND_OBJECTID;
	MongoExactness exactness;

	if (!mongo_path_is_addressable(predicate->field.path))
		return MONGO_NOT_SHIPPABLE;
	if (OidIsValid(predicate->json_test))
		return MONGO_SUPERSET;

	/* only a comparison finds the elements of arrays in arrays */
	if (predicate->field.element == MONGO_ANY_ELEMENT &&
		(predicate->field.wrapper != MONGO_WRAPPER_NONE || predicate->field.zone != NULL ||
		 OidIsValid(predicate->field.cast_type)))
		return MONGO_NOT_SHIPPABLE;
	if (predicate->field.wrapper != MONGO_WRAPPER_NONE || OidIsValid(predicate->field.cast_type))
		return mongo_json_cast_exactness(predicate);
	if (predicate->field.zone != NULL)
	{
		exactness = mongo_local_time_exactness(predicate);
		return predicate->field.type_mismatch == MONGO_TYPE_MISMATCH_NULL ||
			predicate->field.element != 0 || mongo_path_has_index(predicate->field.path) ?
			Min(exactness, MONGO_SUPERSET) : exactness;
	}

	comparison = comparison_of(predicate);
	if (comparison == NULL ||
		(!mongo_types_compare(base_type, predicate->value_type) &&
		 !mongo_depends_on_time_zone(predicate) &&
		 !(is_objectid && predicate->value_type == TEXTOID)))
		return MONGO_NOT_SHIPPABLE;
	if (!is_objectid && mongo_compares_text(predicate->value_type) &&
		!mongo_collation_suits(predicate->collation, mongo_asks_for_order(predicate->strategy)))
		return MONGO_NOT_SHIPPABLE;

	exactness = !mongo_asks_for_order(predicate->strategy) ?
		comparison->equality_exactness : comparison->order_exactness;

	/*
	 * If type mismatches read as NULL, a predicate is exact only if MongoDB
	 * does not match one.
	 */
	if (exactness == MONGO_EXACT &&
		predicate->field.type_mismatch == MONGO_TYPE_MISMATCH_NULL &&
		!predicate->tests_fit && !equality_fits(predicate))
		exactness = MONGO_SUPERSET;

	/* find does not look into arrays in arrays, nor at one element only */
	if (predicate->field.element != 0)
		exactness = predicate->strategy == MONGO_STRATEGY_NOT_EQUAL ?
			MONGO_NOT_SHIPPABLE : Min(exactness, MONGO_SUPERSET);

	/* "a.0" also matches a field named "0" in the elements of an array */
	if (exactness == MONGO_EXACT && mongo_path_has_index(predicate->field.path))
		exactness = MONGO_SUPERSET;

	/* ... and then a "<>" could miss rows */
	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL &&
		mongo_path_has_index(predicate->field.path))
		exactness = MONGO_NOT_SHIPPABLE;

	return exactness;
}

/*
 * mongo_predicate_compares_text
 *		Tells whether the command must specify the simple collation.
 */
bool
mongo_predicate_compares_text(const MongoPredicate *predicate)
{
	const MongoComparison *comparison = comparison_of(predicate);

	return comparison != NULL && comparison->is_text;
}

/* Renders that the field is one of some values, or with "<>" none of them. */
static MongoMatch
render_points(const MongoPredicate *predicate, const MongoComparison *comparison,
			  Datum *values, bool *isnull, int nvalues, bson_t *match)
{
	bool		negated = predicate->strategy == MONGO_STRATEGY_NOT_EQUAL;
	bson_t		operators;
	bson_t		list;
	BsonArray	points = {.bson = &list};

	mongo_append_document_begin(match, predicate->field.path, &operators);
	mongo_append_array_begin(&operators, negated ? "$nin" : "$in", &list);
	for (int i = 0; i < nvalues && list.len <= MONGO_LARGEST_MATCH; i++)
	{
		if (isnull == NULL || !isnull[i])
			comparison->append_points(predicate, values[i], &points);
	}
	if (negated)
		mongo_array_append(&points, mongo_null());
	mongo_append_array_end(&operators, &list);
	mongo_append_document_end(match, &operators);

	return points.count == 0 ? MONGO_MATCH_NONE : MONGO_MATCH_SOME;
}

/* Renders equality, in the short form if there is a single point. */
static MongoMatch
render_equal(const MongoPredicate *predicate, const MongoComparison *comparison,
			 Datum value, bson_t *match)
{
	BsonArray	points = mongo_array_create();
	bson_value_t point;

	comparison->append_points(predicate, value, &points);
	if (points.count != 1)
		return render_points(predicate, comparison, &value, NULL, 1, match);
	point = mongo_first_value(points.bson);
	mongo_append_equal(match, predicate->field.path, &point);
	return MONGO_MATCH_SOME;
}

/* Renders "column OP value"; the value is not NULL. */
static MongoMatch
render_scalar(const MongoPredicate *predicate, const MongoComparison *comparison,
			  Datum value, bson_t *match)
{
	if (comparison->append_points != NULL && !mongo_may_be_cut(predicate, value))
	{
		if (predicate->strategy == BTEqualStrategyNumber)
			return render_equal(predicate, comparison, value, match);
		if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL)
			return render_points(predicate, comparison, &value, NULL, 1, match);
	}
	return comparison->render_range(predicate, value, match);
}

/* Tells whether each of the values is a few points. */
static bool
are_points(const MongoPredicate *predicate, const MongoComparison *comparison,
		   Datum *values, bool *isnull, int nvalues)
{
	if (comparison->append_points == NULL)
		return false;
	for (int i = 0; i < nvalues; i++)
	{
		if (!isnull[i] && mongo_may_be_cut(predicate, values[i]))
			return false;
	}
	return true;
}

/* Joins values that are not points by $or or $and. */
static MongoMatch
render_array_of_ranges(const MongoPredicate *predicate, const MongoComparison *comparison,
					   Datum *values, bool *isnull, int nvalues, bson_t *match)
{
	bool		is_any = predicate->form == MONGO_PREDICATE_ANY;
	bson_t		list;
	BsonArray	branches = {.bson = &list};

	mongo_append_array_begin(match, is_any ? "$or" : "$and", &list);
	for (int i = 0; i < nvalues && list.len <= MONGO_LARGEST_MATCH; i++)
	{
		bson_t		branch;

		if (isnull[i])
			continue;
		mongo_array_begin_document(&branches, &branch);
		render_scalar(predicate, comparison, values[i], &branch);
		mongo_array_end_document(&branches, &branch);
	}
	mongo_append_array_end(match, &list);
	return MONGO_MATCH_SOME;
}

/*
 * Renders "column = ANY (array)" or "column <> ALL (array)".  A NULL element never makes "= ANY"
 * true, and always prevents "<> ALL" from being true.  An empty array makes "<> ALL" true, even for
 * a NULL column.
 */
static MongoMatch
render_array(const MongoPredicate *predicate, const MongoComparison *comparison,
			 Datum value, bson_t *match)
{
	Datum	   *values;
	bool	   *isnull;
	int			nvalues = mongo_array_elements(value, &values, &isnull);
	int			nnulls = 0;

	for (int i = 0; i < nvalues; i++)
		nnulls += isnull[i];

	if (predicate->form == MONGO_PREDICATE_ANY)
	{
		if (nnulls == nvalues)
			return mongo_append_nothing(match, predicate->field.path);
	}
	else
	{
		if (nnulls > 0)
			return mongo_append_nothing(match, predicate->field.path);
		if (nvalues == 0)
			return MONGO_MATCH_SOME;
	}

	if (are_points(predicate, comparison, values, isnull, nvalues))
		return render_points(predicate, comparison, values, isnull, nvalues, match);
	return render_array_of_ranges(predicate, comparison, values, isnull, nvalues,
								  match);
}

static MongoMatch
render_unchecked(const MongoPredicate *predicate, const MongoComparison *comparison,
				 Datum value, bson_t *match)
{
	return predicate->form == MONGO_PREDICATE_SCALAR || predicate->form == MONGO_PREDICATE_BETWEEN ?
		render_scalar(predicate, comparison, value, match) :
		render_array(predicate, comparison, value, match);
}

/* Returns the least value of the elements' class; null if any other value may be one. */
static bson_value_t
least_value(const MongoPredicate *predicate)
{
	static const bson_oid_t first_oid = {{0}};

	switch (mongo_kind_of_type(mongo_base_type(predicate->field.type))->compared_as)
	{
		case MONGO_KIND_INTEGER:
		case MONGO_KIND_DOUBLE:
		case MONGO_KIND_NUMERIC:
			return mongo_double(-INFINITY);
		case MONGO_KIND_TEXT:
			return mongo_utf8("");
		case MONGO_KIND_BOOLEAN:
			return mongo_bool(false);
		case MONGO_KIND_UUID:
			return mongo_binary(BSON_SUBTYPE_BINARY, (const uint8_t *) "", 0);
		case MONGO_KIND_TIMESTAMP:
		case MONGO_KIND_TIMESTAMPTZ:
			return mongo_date(PG_INT64_MIN);
		case MONGO_KIND_OBJECTID:
			return mongo_oid(&first_oid);
		default:
			return mongo_null();
	}
}

static const bson_t *of_single_element(const char *path, const bson_t *condition);

/* Applies of_single_element() to the branches of an $or or $and. */
static const bson_t *
branches_of_single_element(const char *path, const bson_iter_t *logic)
{
	BsonArray	branches = mongo_array_create();
	bson_iter_t iter;

	if (!bson_iter_recurse(logic, &iter))
		elog(ERROR, "malformed condition");
	while (bson_iter_next(&iter))
	{
		const uint8_t *data;
		uint32_t	length;
		bson_t		branch;

		bson_iter_document(&iter, &length, &data);
		if (!mongo_bson_view(&branch, data, length))
			elog(ERROR, "malformed condition");
		mongo_array_append(&branches, mongo_document(of_single_element(path, &branch)));
	}
	return mongo_from_template("{@1: @2}", mongo_utf8(bson_iter_key(logic)),
							   mongo_array(branches.bson));
}

/*
 * Makes two bounds apply to the same element, or MongoDB would use only one of them for an index of
 * arrays; and "not null" to one element, not to all.
 */
static const bson_t *
of_single_element(const char *path, const bson_t *condition)
{
	bson_iter_t operators;
	bson_iter_t operator;

	if (bson_iter_init(&operators, condition) && bson_iter_next(&operators) &&
		BSON_ITER_HOLDS_ARRAY(&operators))
		return branches_of_single_element(path, &operators);
	if (bson_iter_init_find(&operators, condition, path) &&
		bson_iter_recurse(&operators, &operator) && bson_iter_next(&operator) &&
		(strcmp(bson_iter_key(&operator), "$ne") == 0 || bson_iter_next(&operator)))
		return mongo_from_template("{@1: {$elemMatch: @2}}", mongo_utf8(path),
								   *bson_iter_value(&operators));
	return condition;
}

/* Appends "element OP value" to the conditions. */
static MongoMatch
append_for_element(const MongoPredicate *predicate, const MongoComparison *comparison,
				   Datum value, BsonArray *conditions)
{
	bson_t	   *condition = mongo_bson_create();
	MongoMatch	result = render_unchecked(predicate, comparison, value, condition);

	mongo_array_append(conditions, mongo_document(of_single_element(predicate->field.path, condition)));
	return result;
}

/* After so many values of a contained array, more values hardly exclude documents. */
#define MAX_CONTAINED	16

/* Appends that an element equals each value of an array; NULL equals none. */
static MongoMatch
append_every(const MongoPredicate *predicate, const MongoComparison *comparison,
			 Datum value, BsonArray *conditions)
{
	MongoPredicate one = *predicate;
	MongoMatch	result = MONGO_MATCH_SOME;
	Datum	   *values;
	bool	   *isnull;
	int			count = mongo_array_elements(value, &values, &isnull);

	one.form = MONGO_PREDICATE_SCALAR;
	for (int i = 0; result == MONGO_MATCH_SOME && i < count; i++)
	{
		if (isnull[i])
			result = MONGO_MATCH_NONE;
		else if (conditions->count < MAX_CONTAINED)
			result = append_for_element(&one, comparison, values[i], conditions);
	}
	return result;
}

/*
 * Renders a predicate on a certain element of an array, or on any element of an array that may have
 * several dimensions.  A certain element must also satisfy the predicate for any element, which an
 * index can serve.
 */
static MongoMatch
render_element(const MongoPredicate *predicate, const MongoComparison *comparison,
			   Datum value, bson_t *match)
{
	BsonArray	conditions = mongo_array_create();
	BsonArray	branches = mongo_array_create();
	MongoPredicate at = *predicate;
	bson_t		there;
	MongoMatch	result;

	if (predicate->form == MONGO_PREDICATE_EVERY)
		result = append_every(predicate, comparison, value, &conditions);
	else
		result = append_for_element(predicate, comparison, value, &conditions);
	if (result == MONGO_MATCH_NONE)
		return mongo_append_nothing(match, predicate->field.path);
	if (conditions.count == 0)
		return MONGO_MATCH_SOME;
	if (predicate->field.element == MONGO_ANY_ELEMENT)
	{
		if (conditions.count == 1)
			mongo_array_append(&branches, mongo_first_value(conditions.bson));
		else
			mongo_array_append_template(&branches, "{$and: @1}", mongo_array(conditions.bson));
		mongo_append_within_arrays(&branches, predicate->field.path, least_value(predicate));
		mongo_append(match, "$or", mongo_array(branches.bson));
		return result;
	}
	at.field.path = psprintf("%s.%d", predicate->field.path, predicate->field.element - 1);
	mongo_array_begin_document(&conditions, &there);
	render_unchecked(&at, comparison, value, &there);
	mongo_array_end_document(&conditions, &there);
	mongo_append(match, "$and", mongo_array(conditions.bson));
	return result;
}

/*
 * Renders that an element matches; the rows of the elements are tested again.  The tests of
 * type_mismatch 'null', which exclude arrays, apply only to those rows.
 */
static MongoMatch
render_unwound(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	MongoPredicate field = *predicate;
	bson_t	   *condition = mongo_bson_create();
	MongoMatch	result;

	field.field.element = 0;
	field.field.type_mismatch = MONGO_TYPE_MISMATCH_ERROR;
	field.tests_fit = false;
	result = mongo_predicate_render(&field, value, false, condition);
	mongo_concat(match, of_single_element(predicate->field.path, condition));
	return result;
}

/*
 * mongo_predicate_render
 *		Appends to 'match', which is empty, a filter of where the predicate, which must be
 *		shippable, is true.  'value' is a Datum of value_type, or of its array type for all forms
 *		but SCALAR and MATCH.  If 'match' becomes longer than MONGO_LARGEST_MATCH, the rest of an
 *		array may be missing from it.
 */
MongoMatch
mongo_predicate_render(const MongoPredicate *predicate, Datum value, bool isnull, bson_t *match)
{
	const MongoComparison *comparison;
	bool		excludes_arrays;
	bson_t	   *condition;
	BsonArray	conditions;
	MongoMatch	result;

	if (predicate->form == MONGO_PREDICATE_MATCH)
		return isnull ? mongo_append_nothing(match, "_id") :
			mongo_render_match(predicate, value, match);
	comparison = comparison_of(predicate);
	if (comparison == NULL)
		elog(ERROR, "no comparison for type %u", predicate->field.type);
	if (isnull)
		return mongo_append_nothing(match, predicate->field.path);
	if (predicate->field.element == MONGO_UNWOUND_ELEMENT)
		return render_unwound(predicate, value, match);

	if (OidIsValid(predicate->json_test))
	{
		/* a predicate that excludes nothing matches everything */
		if (!mongo_render_json_test(predicate->field.path, predicate->json_test, value, match))
			bson_reinit(match);
		return MONGO_MATCH_SOME;
	}
	if (predicate->field.zone != NULL)
		return mongo_render_local_time(predicate, value, match);
	if (predicate->field.wrapper != MONGO_WRAPPER_NONE || OidIsValid(predicate->field.cast_type))
		return mongo_render_json_cast(predicate, value, match);
	if (predicate->field.element != 0)
		return render_element(predicate, comparison, value, match);

	/* only a predicate that can be exact must exclude type mismatches */
	excludes_arrays = predicate->field.type_mismatch == MONGO_TYPE_MISMATCH_NULL &&
		equality_fits(predicate) && !mongo_path_has_index(predicate->field.path);
	if (!excludes_arrays && !predicate->tests_fit)
		return render_unchecked(predicate, comparison, value, match);

	condition = mongo_bson_create();
	result = render_unchecked(predicate, comparison, value, condition);
	/* "<> ALL" of no values is true of NULL, too */
	if (bson_empty(condition))
		return result;
	conditions = mongo_array_create();
	mongo_array_append(&conditions, mongo_document(condition));
	if (excludes_arrays)
		mongo_append_no_arrays(&conditions, predicate->field.path);
	else
		mongo_append_fit(&conditions, &predicate->field);
	mongo_append_template(match, "{$and: @1}", mongo_array(conditions.bson));
	return result;
}

static const MongoStructField predicate_fields[] = {
	MONGO_STRUCT_FIELD(MongoPredicate, STRING, field.path),
	MONGO_STRUCT_FIELD(MongoPredicate, STRING, field.zone),
	MONGO_STRUCT_FIELD(MongoPredicate, STRING, field.result_zone),
	MONGO_STRUCT_NUMBERS(MongoPredicate, field.time_part, field.wrapper),
	MONGO_STRUCT_NUMBERS(MongoPredicate, json_test, without_nan),
};
const MongoStructType mongo_predicate_type = MONGO_STRUCT_TYPE(MongoPredicate, predicate_fields);

/*
 * mongo_append_placeholder
 *		Appends a parameter of the command that stands for the predicate on 'value', and copies the
 *		predicate.  'key' is MONGO_PARAMETER_KEY, MONGO_VERBATIM_KEY for what the user writes, or
 *		among MONGO_VALUES_KEY the name of a parameter.
 */
void
mongo_append_placeholder(MongoTranslation *translation, const MongoPredicate *predicate,
						 Node *value, const char *key, bson_t *match)
{
	mongo_append(match, key, mongo_int32(list_length(translation->parameters)));
	translation->parameters = lappend(translation->parameters, value);
	translation->predicates = lappend(translation->predicates,
									  memcpy(palloc(sizeof(*predicate)), predicate,
											 sizeof(*predicate)));
}

/* ------- Error-free conditions, https://www.mongodb.com/docs/v6.0/reference/operator/ ------- */

/* Error-free operators in filters and expressions, and in either alone; error-free stages. */
static const char *const operators[] = {
	"$and", "$or", "$not", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$type"
};
static const char *const filter_operators[] = {
	"$nor", "$in", "$nin", "$all", "$size", "$exists", "$elemMatch", "$regex", "$options", "$expr",
	MONGO_PARAMETER_KEY
};
static const char *const expression_operators[] = {
	"$cmp", "$cond", "$ifNull", "$isArray", "$isNumber", "$let", "$literal"
};
static const char *const stages[] = {"$match", "$lookup", "$unwind", "$project", "$set", "$limit"};

/* Operators and stages whose arguments are expressions. */
static const char *const begin_expressions[] = {"$expr", "$project", "$set"};

static bool
is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/*
 * Tells whether all keys that begin with "$" are error-free, at any depth.  A value that is a
 * document with such keys is treated as operators too.
 */
static bool
only_error_free(bson_iter_t *iter, bool in_expression)
{
	check_stack_depth();
	while (bson_iter_next(iter))
	{
		const char *key = bson_iter_key(iter);
		bool		is_operator = key[0] == '$';
		bson_iter_t child;

		if (is_operator && !is_among(key, operators, lengthof(operators)) &&
			!(in_expression ? is_among(key, expression_operators, lengthof(expression_operators)) :
			  is_among(key, filter_operators, lengthof(filter_operators)) ||
			  is_among(key, stages, lengthof(stages))))
			return false;
		if (strcmp(key, "$literal") == 0)
			continue;
		if ((BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) &&
			(!bson_iter_recurse(iter, &child) ||
			 !only_error_free(&child, in_expression ||
							  is_among(key, begin_expressions,
									   lengthof(begin_expressions)))))
			return false;
	}
	return true;
}

/*
 * mongo_cannot_fail
 *		Tells whether MongoDB can evaluate this query filter, or array of stages, without an error
 *		on any document.  True only if all its operators have a result for every BSON type.  A
 *		placeholder {$parameter: N} counts as one, since query predicates replace it.
 */
bool
mongo_cannot_fail(const bson_t *document)
{
	bson_iter_t iter;

	return bson_iter_init(&iter, document) && only_error_free(&iter, false);
}
