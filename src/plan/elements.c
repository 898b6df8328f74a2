/*-------------------------------------------------------------------------
 *
 * elements.c
 *		Conditions on the elements of arrays, asked of the documents that hold them.
 *
 * {lines.product: 5} of a row is {lines: {$elemMatch: {product: 5}}} of its document.
 * All conditions on one element go into one $elemMatch, so that an index on several
 * of its fields, and both bounds of a range, serve.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "elements.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "clauses.h"
#include "command_template.h"
#include "path_list.h"
#include "strategy.h"

#include "miscadmin.h"

/* view_of: the document or array at the iterator; false for anything else. */
static bool
view_of(const bson_iter_t *iter, bson_t *view)
{
	const bson_value_t *value = bson_iter_value(unconstify(bson_iter_t *, iter));

	return (value->value_type == BSON_TYPE_DOCUMENT || value->value_type == BSON_TYPE_ARRAY) &&
		bson_view(view, value->value.v_doc.data, value->value.v_doc.data_len);
}

/* ------------------------ rows without the element -------------------------- */

static bool
is_null(const bson_iter_t *value)
{
	return BSON_ITER_HOLDS_NULL(value) || BSON_ITER_HOLDS_UNDEFINED(value);
}

static bool
holds_null(const bson_iter_t *list)
{
	bson_iter_t element;

	if (!BSON_ITER_HOLDS_ARRAY(list) || !bson_iter_recurse(list, &element))
		return true;
	while (bson_iter_next(&element))
	{
		if (is_null(&element))
			return true;
	}
	return false;
}

/* operator_rejects: is the condition {operator: value} false of what is missing? */
static bool
operator_rejects(const bson_iter_t *operator)
{
	static const char *const comparisons[] = {"$eq", "$gt", "$gte", "$lt", "$lte"};
	const char *name = bson_iter_key(operator);

	for (size_t i = 0; i < lengthof(comparisons); i++)
	{
		if (strcmp(name, comparisons[i]) == 0)
			return !is_null(operator) && bson_iter_type(operator) != BSON_TYPE_MINKEY &&
				bson_iter_type(operator) != BSON_TYPE_MAXKEY;
	}
	if (strcmp(name, "$in") == 0)
		return !holds_null(operator);
	if (strcmp(name, "$ne") == 0)
		return is_null(operator);
	if (strcmp(name, "$nin") == 0)
		return BSON_ITER_HOLDS_ARRAY(operator) && holds_null(operator);
	return strcmp(name, "$regex") == 0 || strcmp(name, "$type") == 0 ||
		strcmp(name, "$elemMatch") == 0;
}

/* field_rejects: is the condition on a field false where there is none? */
static bool
field_rejects(const bson_iter_t *field)
{
	bson_iter_t operator;
	bool		is_operators = false;

	if (BSON_ITER_HOLDS_DOCUMENT(field) && bson_iter_recurse(field, &operator))
	{
		while (bson_iter_next(&operator))
		{
			is_operators |= bson_iter_key(&operator)[0] == '$';
			if (operator_rejects(&operator))
				return true;
		}
	}
	return !is_operators && !is_null(field);
}

/* rejects_missing: is the match document false of what has none of its fields? */
static bool
rejects_missing(const bson_t *match)
{
	bson_iter_t field;

	check_stack_depth();
	if (!bson_iter_init(&field, match))
		return false;
	while (bson_iter_next(&field))
	{
		const char *key = bson_iter_key(&field);
		bool		any = false;
		bool		all = true;
		bson_iter_t branch;
		bson_t		view;

		/* what a parameter stands for is strict */
		if (key[0] != '$' ? field_rejects(&field) : strcmp(key, MONGO_PARAMETER_KEY) == 0)
			return true;
		if ((strcmp(key, "$and") != 0 && strcmp(key, "$or") != 0) ||
			!bson_iter_recurse(&field, &branch))
			continue;
		while (bson_iter_next(&branch))
		{
			bool		rejects = view_of(&branch, &view) && rejects_missing(&view);

			any |= rejects;
			all &= rejects;
		}
		if (strcmp(key, "$and") == 0 ? any : all)
			return true;
	}
	return false;
}

/* -------------------------- fields of the element --------------------------- */

/* repeat_parameter: its value in a predicate of its own. */
static void
repeat_parameter(MongoTranslation *translation, int number, const MongoPredicate *predicate,
				 bson_t *match)
{
	BSON_APPEND_INT32(match, MONGO_PARAMETER_KEY, list_length(translation->parameters));
	translation->parameters = lappend(translation->parameters,
									  list_nth(translation->parameters, number));
	translation->predicates = lappend(translation->predicates,
									  mongo_predicate_to_list(predicate));
}

/*
 * strip_parameter: the predicate once more, on the field as the element has it; false
 * if it is on another.
 */
static bool
strip_parameter(MongoTranslation *translation, int number, const char *path, bson_t *stripped)
{
	MongoPredicate *predicate = mongo_predicate_from_list(list_nth(translation->predicates,
																   number));

	if (!mongo_path_is_under(predicate->path, path) || predicate->path[strlen(path)] == '\0')
		return false;
	predicate->path += strlen(path) + 1;
	repeat_parameter(translation, number, predicate, stripped);
	return true;
}

static bool strip_match(MongoTranslation *translation, const bson_t *match, const char *path,
						bool negated, bson_t *stripped);

/*
 * strip_branches: of $and, $or and $nor.  What cannot be said may be left out of $and,
 * unless it is below a $nor.
 */
static bool
strip_branches(MongoTranslation *translation, const bson_iter_t *array, const char *path,
			   bool negated, bson_t *stripped)
{
	const char *operator = bson_iter_key(array);
	BsonArray	branches = bson_array_create();
	bson_iter_t branch;
	bson_t		view;

	negated |= strcmp(operator, "$nor") == 0;
	if (!BSON_ITER_HOLDS_ARRAY(array) || !bson_iter_recurse(array, &branch))
		return false;
	while (bson_iter_next(&branch))
	{
		bson_t	   *one = bson_create_in(CurrentMemoryContext);

		if (view_of(&branch, &view) && strip_match(translation, &view, path, negated, one))
			bson_array_append(&branches, bson_document(one));
		else if (negated || strcmp(operator, "$and") != 0)
			return false;
	}
	if (branches.count > 0)
		BSON_APPEND_ARRAY(stripped, operator, branches.bson);
	return branches.count > 0;
}

/*
 * strip_match: the conditions as the element at 'path' would have them, all of whose
 * fields are below that; false if that cannot be said.
 */
static bool
strip_match(MongoTranslation *translation, const bson_t *match, const char *path,
			bool negated, bson_t *stripped)
{
	bson_iter_t field;

	check_stack_depth();
	if (!bson_iter_init(&field, match))
		return false;
	while (bson_iter_next(&field))
	{
		const char *key = bson_iter_key(&field);
		bool		done = false;

		if (strcmp(key, MONGO_PARAMETER_KEY) == 0)
			done = strip_parameter(translation, bson_iter_int32(&field), path, stripped);
		else if (strcmp(key, "$and") == 0 || strcmp(key, "$or") == 0 ||
				 strcmp(key, "$nor") == 0)
			done = strip_branches(translation, &field, path, negated, stripped);
		else if (key[0] != '$' && mongo_path_is_under(key, path) && key[strlen(path)] == '.')
			done = bson_append_iter(stripped, key + strlen(path) + 1, -1, &field);
		if (!done)
			return false;
	}
	return !bson_empty(stripped);
}

/* --------------------------- the element itself ----------------------------- */

/* whole_field: {path: {$elemMatch: {operator: value}}}, or false. */
static bool
whole_field(const bson_iter_t *field, bson_t *result)
{
	const bson_value_t *value = bson_iter_value(unconstify(bson_iter_t *, field));
	bson_iter_t operator;

	if (BSON_ITER_HOLDS_REGEX(field))
		return false;
	if (BSON_ITER_HOLDS_DOCUMENT(field) && bson_iter_recurse(field, &operator) &&
		bson_iter_next(&operator) && bson_iter_key(&operator)[0] == '$')
		bson_append_condition(result, bson_iter_key(field), "$elemMatch", *value);
	else
		bson_append_member(result, bson_iter_key(field), "{$elemMatch: {$eq: @1}}", *value);
	return true;
}

/*
 * whole_parameter: an equality with a parameter means any element there as it is, but
 * for the guards of type_mismatch 'null', which ask for no array.
 */
static bool
whole_parameter(MongoTranslation *translation, int number, const char *path, bson_t *result)
{
	MongoPredicate *predicate = mongo_predicate_from_list(list_nth(translation->predicates,
																   number));

	if (strcmp(predicate->path, path) != 0 || predicate->strategy != BTEqualStrategyNumber ||
		predicate->form == MONGO_PREDICATE_ALL)
		return false;
	predicate->type_mismatch = MONGO_TYPE_MISMATCH_ERROR;
	repeat_parameter(translation, number, predicate, result);
	return true;
}

/*
 * whole_match: conditions on the element at 'path' itself, such as a String, as
 * conditions on the document.
 */
static bool
whole_match(MongoTranslation *translation, const bson_t *match, const char *path,
			bson_t *result)
{
	bson_iter_t field;

	check_stack_depth();
	if (!bson_iter_init(&field, match) || !bson_iter_next(&field))
		return false;
	do
	{
		const char *key = bson_iter_key(&field);
		BsonArray	branches = bson_array_create();
		bson_iter_t branch;
		bson_t		view;

		if (strcmp(key, path) == 0)
		{
			if (!whole_field(&field, result))
				return false;
		}
		else if (strcmp(key, MONGO_PARAMETER_KEY) == 0)
		{
			if (!whole_parameter(translation, bson_iter_int32(&field), path, result))
				return false;
		}
		else if ((strcmp(key, "$and") == 0 || strcmp(key, "$or") == 0) &&
				 bson_iter_recurse(&field, &branch))
		{
			while (bson_iter_next(&branch))
			{
				bson_t	   *one = bson_create_in(CurrentMemoryContext);

				if (view_of(&branch, &view) && whole_match(translation, &view, path, one))
					bson_array_append(&branches, bson_document(one));
				else if (strcmp(key, "$or") == 0)
					return false;
			}
			if (branches.count == 0)
				return false;
			BSON_APPEND_ARRAY(result, key, branches.bson);
		}
		else
			return false;
	} while (bson_iter_next(&field));
	return true;
}

/* ------------------------------- all of them -------------------------------- */

void
mongo_elements_begin(MongoElements *elements, MongoTranslation *translation, List *paths)
{
	elements->translation = translation;
	elements->paths = paths;
	elements->within = palloc0(sizeof(List *) * Max(list_length(paths), 1));
	elements->conditions = NIL;
}

void
mongo_elements_add(MongoElements *elements, int number, const bson_t *match)
{
	const char *path = list_nth(elements->paths, number);
	MongoMark	before = mongo_mark(elements->translation);
	bson_t	   *result = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	/* elements of elements, under one name */
	foreach(cell, elements->paths)
	{
		if (foreach_current_index(cell) != number && strcmp(lfirst(cell), path) == 0)
			return;
	}
	if (!rejects_missing(match))
		return;
	if (strip_match(elements->translation, match, path, false, result))
	{
		elements->within[number] = lappend(elements->within[number], result);
		return;
	}
	mongo_return_to(elements->translation, before);
	result = bson_create_in(CurrentMemoryContext);
	if (whole_match(elements->translation, match, path, result))
		elements->conditions = lappend(elements->conditions, result);
}

/* around: the number of the array whose elements hold the one with this number, or -1. */
static int
around(const List *paths, int number)
{
	int			outer = number - 1;

	while (outer >= 0 && !mongo_path_is_under(list_nth(paths, number), list_nth(paths, outer)))
		outer--;
	return outer;
}

List *
mongo_elements_end(MongoElements *elements)
{
	for (int i = list_length(elements->paths) - 1; i >= 0; i--)
	{
		const char *path = list_nth(elements->paths, i);
		int			outer = around(elements->paths, i);
		bson_t	   *match = bson_create_in(CurrentMemoryContext);
		bson_t	   *condition;

		if (elements->within[i] == NIL)
			continue;
		mongo_append_conjuncts(match, elements->within[i]);
		if (outer >= 0)
			path += strlen(list_nth(elements->paths, outer)) + 1;
		condition = bson_from_template("{" MONGO_ELEMENTS_KEY ": {path: @1, match: @2}}",
									   bson_utf8(path), bson_document(match));
		if (outer >= 0)
			elements->within[outer] = lappend(elements->within[outer], condition);
		else
			elements->conditions = lappend(elements->conditions, condition);
	}
	return elements->conditions;
}
