/*-------------------------------------------------------------------------
 *
 * template.c
 *		Commands with places for values, and binding them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "common.h"
#include "convert.h"

#include "access/detoast.h"
#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

static void mongo_predicate_render_span(const MongoPredicate *predicate, Datum value,
										bson_t *match);

/*-------------------------------------------------------------------------
 * Commands that a plan holds, and the values that execution binds.
 *
 * Only the logic of a match document ($and, $or, $nor) is walked, never the
 * values in it, so no stored or constant value can be taken for a parameter:
 * a field whose name begins with '$' is not addressable and never stands there.
 *-------------------------------------------------------------------------
 */

/* What a parameter is replaced by, for one walk over the template. */
typedef struct Binding
{
	const MongoCommandTemplate *template;
	const Datum *values;
	const bool *isnull;
	const char *const *names;	/* set for a description instead of values */
	Size	   *size;			/* of the predicates so far */
	bool	   *widened;		/* NULL: may not be */
} Binding;

/* A value of so many bytes may well be a list that is too long. */
#define LONG_VALUE_SIZE		(1024 * 1024)

static MongoMatch bind_match(const Binding *binding, const bson_iter_t *document,
							 bson_t *match);
static MongoMatch bind_fields(const Binding *binding, bson_iter_t *field, bool is_lookup,
							  bson_t *bound);

Const *
mongo_command_to_const(const bson_t *command)
{
	bytea	   *bytes = palloc(VARHDRSZ + command->len);

	SET_VARSIZE(bytes, VARHDRSZ + command->len);
	memcpy(VARDATA(bytes), bson_get_data(command), command->len);
	return makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(bytes),
					 false, false);
}

bson_t *
mongo_command_from_const(MemoryContext context, const Const *node)
{
	bytea	   *bytes = DatumGetByteaPP(node->constvalue);
	bson_t		view;

	if (!bson_view(&view, (const uint8_t *) VARDATA_ANY(bytes),
				   VARSIZE_ANY_EXHDR(bytes)))
		elog(ERROR, "malformed command in a plan");
	return bson_copy_in(context, &view);
}

/* describe_parameter: the expression as text in place of its value. */
static void
describe_parameter(const MongoPredicate *predicate, const char *name, bson_t *match)
{
	const char *operator = mongo_find_operators[predicate->strategy];

	if (predicate->form == MONGO_PREDICATE_ANY)
		operator = "$in";
	else if (predicate->form == MONGO_PREDICATE_ALL)
		operator = "$nin";
	else if (predicate->form == MONGO_PREDICATE_EVERY)
		operator = "$all";

	bson_append_condition(match, predicate->path, operator, bson_utf8(name));
}

/*
 * bind_long_list: a long list itself if the command has room for it, or else the
 * range that it spans, if there is room for that.  False for anything but a long list.
 */
static bool
bind_long_list(const Binding *binding, int parameter, bson_t *match, MongoMatch *result)
{
	const MongoPredicate *predicate = binding->template->predicates[parameter];
	Datum		value = binding->values[parameter];
	MemoryContext list_context;
	MemoryContext old_context;
	bson_t	   *list;

	if (binding->widened == NULL || predicate->form == MONGO_PREDICATE_SCALAR ||
		predicate->form == MONGO_PREDICATE_BETWEEN || binding->isnull[parameter] ||
		toast_raw_datum_size(value) < LONG_VALUE_SIZE)
		return false;

	list_context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw list of values",
										 ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(list_context);
	list = bson_create_in(list_context);
	*result = mongo_predicate_render(predicate, value, false, list);
	MemoryContextSwitchTo(old_context);
	if (*binding->size + list->len > MONGO_LARGEST_MATCH)
	{
		*binding->widened = true;
		bson_reinit(list);
		mongo_predicate_render_span(predicate, value, list);
	}
	/* even the two ends of the range may be too long */
	if (*binding->size + list->len <= MONGO_LARGEST_MATCH)
	{
		bson_concat(match, list);
		*binding->size += list->len;
	}
	MemoryContextDelete(list_context);
	return true;
}

/* bind_parameter: the predicate whose placeholder has this number. */
static MongoMatch
bind_parameter(const Binding *binding, int parameter, bson_t *match)
{
	const MongoPredicate *predicate;
	uint32		old_length = match->len;
	MongoMatch	result;

	if (parameter < 0 || parameter >= binding->template->nparameters)
		elog(ERROR, "command has no parameter %d", parameter);
	predicate = binding->template->predicates[parameter];

	if (binding->names != NULL)
	{
		describe_parameter(predicate, binding->names[parameter], match);
		return MONGO_MATCH_SOME;
	}
	if (bind_long_list(binding, parameter, match, &result))
		return result;
	result = mongo_predicate_render(predicate, binding->values[parameter],
									binding->isnull[parameter], match);

	/* libbson only hints at what has no place, so do not come near its limit */
	*binding->size += match->len - old_length;
	if (*binding->size > MONGO_LARGEST_MATCH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("command for MongoDB is too large"),
				 errdetail("Its parameters have more than 16 MB."),
				 errhint("Give fewer values at a time, join with a table of them instead of = ANY, or turn off mongo_fdw.enable_aggregate_pushdown or mongo_fdw.enable_pushdown, so that PostgreSQL does more of the query.")));
	return result;
}

/* bind_branches: the array under $and, $or or $nor. */
static MongoMatch
bind_branches(const Binding *binding, const bson_iter_t *array, bson_t *match)
{
	const char *operator = bson_iter_key(array);
	Binding		below = *binding;
	bool		any_none = false;
	bool		all_none = true;
	bson_iter_t element;
	bson_t		list;
	BsonArray	branches = {.bson = &list};

	if (strcmp(operator, "$nor") == 0)
		below.widened = NULL;
	BSON_APPEND_ARRAY_BEGIN(match, operator, &list);
	bson_iter_recurse(array, &element);
	while (bson_iter_next(&element))
	{
		bson_t		branch;

		bson_array_begin_document(&branches, &branch);
		if (bind_match(&below, &element, &branch) == MONGO_MATCH_NONE)
			any_none = true;
		else
			all_none = false;
		bson_array_end_document(&branches, &branch);
	}
	bson_append_array_end(match, &list);

	if (strcmp(operator, "$and") == 0)
		return any_none ? MONGO_MATCH_NONE : MONGO_MATCH_SOME;
	if (strcmp(operator, "$or") == 0)
		return all_none ? MONGO_MATCH_NONE : MONGO_MATCH_SOME;
	return MONGO_MATCH_SOME;
}

/* bind_elements: an array has an element that matches. */
static MongoMatch
bind_elements(const Binding *binding, const bson_iter_t *elements, bson_t *match)
{
	bson_iter_t path;
	bson_iter_t condition;
	bson_t		operators;
	bson_t		inner;
	MongoMatch	result;

	if (!bson_iter_recurse(elements, &path) || !bson_iter_next(&path))
		elog(ERROR, "malformed condition in a plan");
	condition = path;
	bson_iter_next(&condition);
	BSON_APPEND_DOCUMENT_BEGIN(match, bson_iter_utf8(&path, NULL), &operators);
	BSON_APPEND_DOCUMENT_BEGIN(&operators, "$elemMatch", &inner);
	result = bind_match(binding, &condition, &inner);
	bson_append_document_end(&operators, &inner);
	bson_append_document_end(match, &operators);
	return result;
}

/* bind_match copies a match document; its fields are all conditions to meet. */
static MongoMatch
bind_match(const Binding *binding, const bson_iter_t *document, bson_t *match)
{
	MongoMatch	result = MONGO_MATCH_SOME;
	bson_iter_t field;

	bson_iter_recurse(document, &field);
	while (bson_iter_next(&field))
	{
		const char *key = bson_iter_key(&field);
		MongoMatch	one = MONGO_MATCH_SOME;

		if (key[0] != '$')
			bson_append_iter(match, NULL, 0, &field);
		else if (strcmp(key, MONGO_VERBATIM_KEY) == 0)
		{
			bson_iter_t member;

			bson_iter_recurse(&field, &member);
			while (bson_iter_next(&member))
				bson_append_iter(match, NULL, 0, &member);
		}
		else if (strcmp(key, MONGO_PARAMETER_KEY) == 0)
			one = bind_parameter(binding, bson_iter_int32(&field), match);
		else if (strcmp(key, MONGO_ELEMENTS_KEY) == 0)
			one = bind_elements(binding, &field, match);
		else if (BSON_ITER_HOLDS_ARRAY(&field))
			one = bind_branches(binding, &field, match);
		else
			bson_append_iter(match, NULL, 0, &field);
		if (one == MONGO_MATCH_NONE)
			result = MONGO_MATCH_NONE;
	}
	return result;
}

/*
 * bind_pipeline: an array of stages, of which $match is like a filter.
 *
 * A $match behind others lets nothing through as well if it cannot be met.
 */
static MongoMatch
bind_pipeline(const Binding *binding, const bson_iter_t *stages, BsonArray *pipeline)
{
	MongoMatch	result = MONGO_MATCH_SOME;
	bson_iter_t element;

	bson_iter_recurse(stages, &element);
	while (bson_iter_next(&element))
	{
		bson_iter_t stage;
		bson_iter_t member;
		bson_t		bound;
		bson_t		specification;
		const char *name;

		if (!bson_iter_recurse(&element, &stage) || !bson_iter_next(&stage))
			elog(ERROR, "malformed stage in a plan");
		if (strcmp(bson_iter_key(&stage), MONGO_VERBATIM_KEY) == 0)
		{
			bson_iter_recurse(&stage, &member);
			while (bson_iter_next(&member))
				bson_array_append(pipeline, *bson_iter_value(&member));
			continue;
		}
		if ((strcmp(bson_iter_key(&stage), "$match") != 0 &&
			 strcmp(bson_iter_key(&stage), "$lookup") != 0))
		{
			bson_array_append(pipeline, *bson_iter_value(&element));
			continue;
		}
		name = bson_iter_key(&stage);
		bson_array_begin_document(pipeline, &bound);
		BSON_APPEND_DOCUMENT_BEGIN(&bound, name, &specification);
		if (strcmp(name, "$lookup") == 0)
		{
			/*
			 * that nothing is found by it says nothing about the documents
			 * outside
			 */
			bson_iter_recurse(&stage, &member);
			(void) bind_fields(binding, &member, true, &specification);
		}
		else if (bind_match(binding, &stage, &specification) == MONGO_MATCH_NONE)
			result = MONGO_MATCH_NONE;
		bson_append_document_end(&bound, &specification);
		bson_array_end_document(pipeline, &bound);
	}
	return result;
}

/*
 * bind_fields: of the command, or of a $lookup, which has a pipeline of its own: with the
 * placeholders, and the command's row bounds and batch size, filled in.
 */
static MongoMatch
bind_fields(const Binding *binding, bson_iter_t *field, bool is_lookup, bson_t *bound)
{
	const MongoCommandTemplate *template = binding->template;
	MongoMatch	result = MONGO_MATCH_SOME;

	while (bson_iter_next(field))
	{
		const char *key = bson_iter_key(field);
		bson_t		value;
		BsonArray	pipeline = {.bson = &value};

		if (strcmp(key, "pipeline") == 0)
		{
			BSON_APPEND_ARRAY_BEGIN(bound, key, &value);
			result = bind_pipeline(binding, field, &pipeline);
			if (!is_lookup && template->skip > 0)
				bson_array_append_template(&pipeline, "{$skip: @1}", bson_int64(template->skip));
			if (!is_lookup && template->limit > 0)
				bson_array_append_template(&pipeline, "{$limit: @1}", bson_int64(template->limit));
			bson_append_array_end(bound, &value);
		}
		else if (!is_lookup && (strcmp(key, "filter") == 0 || strcmp(key, "query") == 0))
		{
			BSON_APPEND_DOCUMENT_BEGIN(bound, key, &value);
			result = bind_match(binding, field, &value);
			bson_append_document_end(bound, &value);
		}
		else if (!is_lookup && strcmp(key, "cursor") == 0 && template->batch_size > 0)
			bson_append_condition(bound, key, "batchSize", bson_int32(template->batch_size));
		else
			bson_append_iter(bound, NULL, 0, field);
	}
	return result;
}

static MongoMatch
bind_command(const Binding *binding, bson_t *command)
{
	bson_iter_t field;

	bson_iter_init(&field, binding->template->command);
	return bind_fields(binding, &field, false, command);
}

MongoMatch
mongo_command_bind(const MongoCommandTemplate *template, const Datum *values,
				   const bool *isnull, bool *widened, bson_t *command)
{
	Size		size = 0;
	Binding		binding = {template, values, isnull, NULL, &size, widened};

	return bind_command(&binding, command);
}

void
mongo_command_describe(const MongoCommandTemplate *template,
					   const char *const *names, bson_t *command)
{
	Binding		binding = {template, NULL, NULL, names, NULL, NULL};

	bind_command(&binding, command);
}

/*
 * append_variable: infinities of dates, which BSON has not, as its last Dates;
 * they are only compared, see expression_compare.c.
 */
static void
append_variable(const MongoVariable *variable, bson_t *document, const char *key)
{
	bool		is_date = variable->type == DATEOID;
	bool		is_timestamp = variable->type == TIMESTAMPOID || variable->type == TIMESTAMPTZOID;
	Timestamp	value = 0;

	if (!variable->isnull && is_timestamp)
		value = DatumGetTimestamp(variable->value);
	else if (!variable->isnull && is_date && DATE_NOT_FINITE(DatumGetDateADT(variable->value)))
		value = DATE_IS_NOEND(DatumGetDateADT(variable->value)) ? DT_NOEND : DT_NOBEGIN;

	if (TIMESTAMP_NOT_FINITE(value))
		BSON_APPEND_DATE_TIME(document, key,
							  TIMESTAMP_IS_NOEND(value) ? PG_INT64_MAX : PG_INT64_MIN);
	else
		mongo_append_datum(document, key, -1, variable->value, variable->isnull,
						   variable->type, variable->typmod);
}

void
mongo_bind_variables(const MongoVariable *variables, int nvariables, bson_t *command)
{
	bson_t		let;

	BSON_APPEND_DOCUMENT_BEGIN(command, "let", &let);
	for (int i = 0; i < nvariables; i++)
	{
		bson_t		literal;

		/* what a string or a document might mean to MongoDB does not matter */
		BSON_APPEND_DOCUMENT_BEGIN(&let, mongo_variable_name(i), &literal);
		append_variable(&variables[i], &literal, "$literal");
		bson_append_document_end(&let, &literal);
	}
	bson_append_document_end(command, &let);
}

void
mongo_describe_variables(const char *const *names, int nvariables, bson_t *command)
{
	bson_t		let;

	if (nvariables == 0)
		return;
	BSON_APPEND_DOCUMENT_BEGIN(command, "let", &let);
	for (int i = 0; i < nvariables; i++)
		BSON_APPEND_UTF8(&let, mongo_variable_name(i), names[i]);
	bson_append_document_end(command, &let);
}

/* --------- Lists of values that are longer than a command may be ---------- */

/* The least and the greatest of an array's values, in the predicate's order. */
typedef struct Span
{
	Datum		least;
	Datum		greatest;
	bool		found;
} Span;

/* The least and the greatest element, in the order of the type; NULLs are passed over. */
static Span
find_span(const MongoPredicate *predicate, Datum array)
{
	TypeCacheEntry *type = lookup_type_cache(ARR_ELEMTYPE(DatumGetArrayTypeP(array)),
											 TYPECACHE_CMP_PROC_FINFO);
	Span		span = {0};
	Datum	   *values;
	bool	   *isnull;
	int			count;

	if (!OidIsValid(type->cmp_proc))
		return span;
	count = mongo_array_elements(array, &values, &isnull);
	for (int i = 0; i < count; i++)
	{
		if (isnull[i])
			continue;
		if (!span.found ||
			DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, predicate->collation,
											values[i], span.least)) < 0)
			span.least = values[i];
		if (!span.found ||
			DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, predicate->collation,
											values[i], span.greatest)) > 0)
			span.greatest = values[i];
		span.found = true;
	}
	return span;
}

/* append_span_end: "column OP value" as one of the conditions. */
static void
append_span_end(const MongoPredicate *predicate, int strategy, Datum value,
				BsonArray *conditions)
{
	MongoPredicate bound = *predicate;
	bson_t		condition;

	bound.form = MONGO_PREDICATE_SCALAR;
	bound.strategy = strategy;
	bson_array_begin_document(conditions, &condition);
	mongo_predicate_render(&bound, value, false, &condition);
	bson_array_end_document(conditions, &condition);
}

/*
 * mongo_predicate_render_span
 *		Append to 'match' a superset of an ANY or ALL predicate that is too long:
 *		from the least to the greatest of the array's values, or everything.
 *
 * The array, not NULL, has values that are not NULL.
 */
static void
mongo_predicate_render_span(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	MongoPredicate ordered = *predicate;
	bson_t		list;
	BsonArray	conditions = {.bson = &list};
	Span		span;

	ordered.form = MONGO_PREDICATE_SCALAR;
	ordered.strategy = BTGreaterEqualStrategyNumber;
	/* instants need not stand in the order of the times that clocks show */
	if (predicate->form != MONGO_PREDICATE_ANY || mongo_depends_on_time_zone(predicate) ||
		mongo_predicate_grade(&ordered) == MONGO_NOT_SHIPPABLE)
		return;
	span = find_span(predicate, value);
	if (!span.found)
		return;
	BSON_APPEND_ARRAY_BEGIN(match, "$and", &list);
	append_span_end(predicate, BTGreaterEqualStrategyNumber, span.least, &conditions);
	append_span_end(predicate, BTLessEqualStrategyNumber, span.greatest, &conditions);
	bson_append_array_end(match, &list);
}
