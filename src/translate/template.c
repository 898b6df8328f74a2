/*-------------------------------------------------------------------------
 *
 * template.c
 *		Command templates with placeholders for values, binding them, and what keeps MongoDB from
 *		reusing plans of $or.
 *
 * In the filters of a template, {$parameter: N} stands for a predicate whose value is known when
 * the scan starts.  {$verbatim: ...} stands for the stages of an array, for the members of a
 * document, or for such a predicate if it is a number.  These come from the user, so binding does
 * not search them for parameters, and they may fail.
 *
 * Binding walks only the logic of a query filter ($and, $or, $nor, $elemMatch), never the values in
 * it.  So no stored or constant value is treated as a parameter: a path that begins with '$' is not
 * addressable and never occurs there.
 *
 * The functions are in the order of their callees: a parameter, marks of $or, then the walk over a
 * command from bind_array() on, what is appended to it, and mongo_command_bind().  user_stages.c
 * binds the parameters of the user's stages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include "access/detoast.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/date.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* An array value of so many bytes may be too long a list. */
#define LONG_VALUE_SIZE		(1024 * 1024)

/*
 * mongo_command_to_const
 *		Converts a document to a node that a plan can contain.
 */
Const *
mongo_command_to_const(const bson_t *command)
{
	bytea	   *bytes = palloc(VARHDRSZ + command->len);

	SET_VARSIZE(bytes, VARHDRSZ + command->len);
	memcpy(VARDATA(bytes), bson_get_data(command), command->len);
	return makeConst(BYTEAOID, -1, InvalidOid, -1, PointerGetDatum(bytes),
					 false, false);
}

/*
 * mongo_command_from_const
 *		Returns a view of the document in the node of mongo_command_to_const(), palloc'd.
 */
const bson_t *
mongo_command_from_const(const Const *node)
{
	bytea	   *bytes = DatumGetByteaPP(node->constvalue);
	bson_t	   *view = mongo_bson_palloc(CurrentMemoryContext, sizeof(bson_t));

	if (!mongo_bson_view(view, (const uint8_t *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)))
		elog(ERROR, "malformed command in a plan");
	return view;
}

/* Appends the expression's text in place of its value. */
static void
describe_parameter(const MongoPredicate *predicate, const char *name, bson_t *match)
{
	const char *operator = mongo_find_operators[predicate->strategy];

	if (predicate->form == MONGO_PREDICATE_MATCH)
	{
		mongo_append_template(match, predicate->strategy == BTEqualStrategyNumber ?
							  "{$and: [@1]}" : "{$nor: [@1]}", mongo_utf8(name));
		return;
	}
	if (predicate->form == MONGO_PREDICATE_ANY)
		operator = "$in";
	else if (predicate->form == MONGO_PREDICATE_ALL)
		operator = "$nin";
	else if (predicate->form == MONGO_PREDICATE_EVERY)
		operator = "$all";

	mongo_append_condition(match, predicate->field.path, operator, mongo_utf8(name));
}

/*
 * Binds a long list if the command has enough space for it; otherwise binds nothing, so that all
 * documents match.  Returns false for anything but a long list.
 */
static bool
bind_long_list(const MongoBindContext *binding, int parameter, bson_t *match, MongoMatch *result)
{
	const MongoPredicate *predicate = list_nth(binding->template->predicates, parameter);
	Datum		value = binding->values[parameter];
	MemoryContext list_context;
	MemoryContext old_context;
	bson_t	   *list;

	if (binding->widened == NULL || predicate->form == MONGO_PREDICATE_SCALAR ||
		predicate->form == MONGO_PREDICATE_BETWEEN || predicate->form == MONGO_PREDICATE_MATCH ||
		binding->isnull[parameter] ||
		toast_raw_datum_size(value) < LONG_VALUE_SIZE)
		return false;

	list_context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw list of values",
										 ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(list_context);
	list = mongo_bson_create_in(list_context);
	*result = mongo_predicate_render(predicate, value, false, list);
	MemoryContextSwitchTo(old_context);
	if (*binding->size + list->len > MONGO_LARGEST_MATCH)
		*binding->widened = true;
	else
	{
		mongo_concat(match, list);
		*binding->size += list->len;
	}
	MemoryContextDelete(list_context);
	return true;
}

/* Binds the predicate whose placeholder has this number. */
static MongoMatch
bind_parameter(const MongoBindContext *binding, int parameter, bson_t *match)
{
	const MongoPredicate *predicate;
	uint32		old_length = match->len;
	MongoMatch	result;

	if (parameter < 0 || parameter >= list_length(binding->template->predicates))
		elog(ERROR, "command has no parameter %d", parameter);
	predicate = list_nth(binding->template->predicates, parameter);

	if (binding->names != NULL)
	{
		describe_parameter(predicate, binding->names[parameter], match);
		return MONGO_MATCH_SOME;
	}
	if (!bind_long_list(binding, parameter, match, &result))
	{
		result = mongo_predicate_render(predicate, binding->values[parameter],
										binding->isnull[parameter], match);
		mongo_add_to_size(binding->size, match->len - old_length);
	}
	return match->len == old_length ? MONGO_MATCH_ALL : result;
}

/*-------------------------------------------------------------------------
 * Plans of $or in MongoDB's plan cache.
 *
 * A branch of an $or within an AND may use a partial index that has all documents the branch
 * matches.  MongoDB before SERVER-106023 takes that plan also for other constants, for which the
 * index lacks documents.  So such a filter gets a condition that is always true, and whose field
 * has a hash of the $or in its name: to MongoDB another query.  An $or that is the whole filter
 * needs none, since its branches are planned one by one, and within $nor and $elemMatch no
 * partial index is used.
 *-------------------------------------------------------------------------
 */

/* Returns the path of the first field in the branches, or NULL. */
static const char *
first_path(const bson_iter_t *branches)
{
	const char *path = NULL;
	bson_iter_t branch;
	bson_iter_t field;

	check_stack_depth();
	bson_iter_recurse(branches, &branch);
	while (path == NULL && bson_iter_next(&branch) && bson_iter_recurse(&branch, &field))
	{
		while (path == NULL && bson_iter_next(&field))
		{
			if (bson_iter_key(&field)[0] != '$')
				path = bson_iter_key(&field);
			else if (BSON_ITER_HOLDS_ARRAY(&field))
				path = first_path(&field);
		}
	}
	return path;
}

/* Returns FNV-1a, which is the same on every machine. */
static uint64
hash_of(const bson_t *array)
{
	const uint8_t *data = bson_get_data(array);
	uint64		hash = UINT64CONST(0xcbf29ce484222325);

	for (uint32_t i = 0; i < array->len; i++)
		hash = (hash ^ data[i]) * UINT64CONST(0x100000001b3);
	return hash;
}

/* Appends to 'marks' a condition for each $or that MongoDB plans within an AND. */
static void
mark_ors(const bson_t *filter, bool only_filter, bson_t *marks)
{
	bson_iter_t fields;

	check_stack_depth();
	only_filter = only_filter && bson_count_keys(filter) == 1;
	bson_iter_init(&fields, filter);
	while (bson_iter_next(&fields))
	{
		bool		is_or = strcmp(bson_iter_key(&fields), "$or") == 0;
		const char *path;
		const uint8_t *data;
		uint32_t	length;
		bson_t		branches;
		bson_iter_t iter;
		bson_t		branch;
		bool		is_single;

		if (!BSON_ITER_HOLDS_ARRAY(&fields) ||
			(!is_or && strcmp(bson_iter_key(&fields), "$and") != 0))
			continue;
		bson_iter_array(&fields, &length, &data);
		if (!mongo_bson_view(&branches, data, length) || !bson_iter_init(&iter, &branches))
			elog(ERROR, "malformed condition");
		is_single = bson_count_keys(&branches) == 1;
		if (!is_or || only_filter || is_single)
		{
			while (bson_iter_next(&iter) && mongo_bson_view_at(&branch, &iter))
				mark_ors(&branch, only_filter && (is_or || is_single), marks);
		}
		else if ((path = first_path(&fields)) != NULL)
			mongo_append_template(marks, "{@1: {$not: {$size: 2147483647}}}",
								  mongo_utf8(psprintf("%s.%016" PRIx64, path,
													  hash_of(&branches))));
	}
}

/*
 * Appends to a query filter the conditions that keep MongoDB from taking over plans.
 * 'only_filter' is true if MongoDB adds no other conditions to the filter.
 */
static void
mark_all_ors(bson_t *filter, bool only_filter)
{
	bson_t	   *marks;
	bson_iter_t fields;
	bool		has_branches = false;

	bson_iter_init(&fields, filter);
	while (!has_branches && bson_iter_next(&fields))
		has_branches = BSON_ITER_HOLDS_ARRAY(&fields);
	if (!has_branches)
		return;
	marks = mongo_bson_create();
	mark_ors(filter, only_filter, marks);

	/* with a mark, the whole filter is an AND */
	if (only_filter && !bson_empty(marks))
	{
		bson_reinit(marks);
		mark_ors(filter, false, marks);
	}
	mongo_concat(filter, marks);
}

/* The parts of a command that can contain placeholders. */
typedef enum Place
{
	NOWHERE,
	IN_COMMAND,
	IN_PIPELINE,				/* an array of stages */
	IN_STAGE,
	IN_LOOKUP,
	IN_MATCH,
	IN_BRANCHES,				/* an array of query filters */
	IN_FIELD					/* the operators on a field */
} Place;

static const struct
{
	Place		place;
	const char *key;
	Place		within;
}			places[] =
{
	{IN_COMMAND, "pipeline", IN_PIPELINE},
	{IN_COMMAND, "filter", IN_MATCH},
	{IN_COMMAND, "query", IN_MATCH},
	{IN_STAGE, "$match", IN_MATCH},
	{IN_STAGE, "$lookup", IN_LOOKUP},
	{IN_LOOKUP, "pipeline", IN_PIPELINE},
	{IN_MATCH, "$and", IN_BRANCHES},
	{IN_MATCH, "$or", IN_BRANCHES},
	{IN_MATCH, "$nor", IN_BRANCHES},
	{IN_FIELD, "$elemMatch", IN_MATCH},
};

static Place
place_within(Place place, const bson_iter_t *field)
{
	const char *key = bson_iter_key(field);

	if (!BSON_ITER_HOLDS_DOCUMENT(field) && !BSON_ITER_HOLDS_ARRAY(field))
		return NOWHERE;
	if (place == IN_MATCH && key[0] != '$')
		return BSON_ITER_HOLDS_DOCUMENT(field) ? IN_FIELD : NOWHERE;
	for (size_t i = 0; i < lengthof(places); i++)
	{
		if (places[i].place == place && strcmp(places[i].key, key) == 0)
			return places[i].within;
	}
	return NOWHERE;
}

static MongoMatch bind_document(const MongoBindContext *binding, bson_iter_t *fields, Place place,
								bson_t *bound);

/* Tells whether there is a single filter among the stages, and nothing that may have others. */
static bool
has_only_filter(const bson_iter_t *stages)
{
	int			nfilters = 0;
	bson_iter_t stage;
	bson_iter_t name;

	bson_iter_recurse(stages, &stage);
	while (bson_iter_next(&stage) && bson_iter_recurse(&stage, &name) && bson_iter_next(&name))
	{
		nfilters += strcmp(bson_iter_key(&name), "$match") == 0;
		if (strcmp(bson_iter_key(&name), "$lookup") == 0 ||
			strcmp(bson_iter_key(&name), MONGO_VERBATIM_KEY) == 0 ||
			bson_iter_find(&name, MONGO_VERBATIM_KEY))
			return false;
	}
	return nfilters == 1;
}

/* Binds an array of stages or branches; the stages are an AND. */
static MongoMatch
bind_array(const MongoBindContext *binding, const bson_iter_t *array, Place place, BsonArray *bound)
{
	const char *key = bson_iter_key(array);
	bool		is_or = strcmp(key, "$or") == 0;
	MongoBindContext below = *binding;
	MongoMatch	result = is_or ? MONGO_MATCH_NONE : MONGO_MATCH_ALL;
	bson_iter_t element;

	if (strcmp(key, "$nor") == 0)
		below.widened = NULL;
	if (place == IN_PIPELINE)
		below.only_filter = binding->only_filter && has_only_filter(array);
	bson_iter_recurse(array, &element);
	while (bson_iter_next(&element))
	{
		MongoMatch	one;
		bson_iter_t fields;
		bson_t		document;

		bson_iter_recurse(&element, &fields);
		if (place == IN_PIPELINE && bson_iter_find(&fields, MONGO_VERBATIM_KEY))
			one = mongo_bind_stages(&below, &element, bound);
		else
		{
			bson_iter_recurse(&element, &fields);
			mongo_array_begin_document(bound, &document);
			one = bind_document(&below, &fields, place == IN_PIPELINE ? IN_STAGE : IN_MATCH,
								&document);
			mongo_array_end_document(bound, &document);
		}
		result = is_or ? Max(result, one) : Min(result, one);
	}
	return strcmp(key, "$nor") == 0 ? MONGO_MATCH_SOME : result;
}

/* Returns the number of documents to which the command is limited; -1 or 0: it is not. */
static int64
limit_of(const MongoBindContext *binding)
{
	const MongoCommandTemplate *template = binding->template;

	return template->limit >= 0 || (binding->widened != NULL && *binding->widened) ?
		template->limit : template->enough_rows;
}

/* Binds one field, and fills in $skip, $limit and the batch size of an aggregate. */
static MongoMatch
bind_field(const MongoBindContext *binding, const bson_iter_t *field, Place place, bson_t *bound)
{
	const MongoCommandTemplate *template = binding->template;
	const char *key = bson_iter_key(field);
	Place		within = place_within(place, field);
	MongoMatch	result = place == IN_MATCH ? MONGO_MATCH_SOME : MONGO_MATCH_ALL;
	bson_t		value;
	BsonArray	array = {.bson = &value};
	bson_iter_t fields;

	/* there is nothing to bind in operators but parameters */
	if (within == IN_FIELD && template->predicates == NIL)
		within = NOWHERE;
	if (place == IN_MATCH && BSON_ITER_HOLDS_INT32(field) &&
		(strcmp(key, MONGO_PARAMETER_KEY) == 0 || strcmp(key, MONGO_VERBATIM_KEY) == 0))
		return bind_parameter(binding, bson_iter_int32(field), bound);
	if (place == IN_MATCH && strcmp(key, MONGO_VERBATIM_KEY) == 0)
	{
		bson_iter_recurse(field, &fields);
		result = mongo_append_user_filter(bound, &fields);
	}
	else if (within == IN_PIPELINE || within == IN_BRANCHES)
	{
		mongo_append_array_begin(bound, key, &value);
		result = bind_array(binding, field, within, &array);
		if (place == IN_COMMAND && template->skip > 0)
			mongo_array_append_template(&array, "{$skip: @1}", mongo_int64(template->skip));
		if (place == IN_COMMAND && limit_of(binding) > 0)
			mongo_array_append_template(&array, "{$limit: @1}", mongo_int64(limit_of(binding)));
		mongo_append_array_end(bound, &value);
	}
	else if (within != NOWHERE)
	{
		MongoMatch	inside;

		bson_iter_recurse(field, &fields);
		mongo_append_document_begin(bound, key, &value);
		inside = bind_document(binding, &fields, within, &value);
		result = Min(result, inside);
		if (within == IN_MATCH && place != IN_FIELD && binding->names == NULL)
			mark_all_ors(&value, binding->only_filter);
		mongo_append_document_end(bound, &value);
	}
	else if (place == IN_COMMAND && strcmp(key, "cursor") == 0 && template->batch_size > 0)
		mongo_append_condition(bound, key, "batchSize", mongo_int32(template->batch_size));
	else
		mongo_append_iter(bound, NULL, field);

	/* a $lookup that finds nothing still keeps the outer documents */
	return place == IN_LOOKUP ? MONGO_MATCH_ALL : result;
}

/* Binds all fields, which are an AND. */
static MongoMatch
bind_document(const MongoBindContext *binding, bson_iter_t *fields, Place place, bson_t *bound)
{
	MongoMatch	result = MONGO_MATCH_ALL;

	while (bson_iter_next(fields))
	{
		MongoMatch	one = bind_field(binding, fields, place, bound);

		result = Min(result, one);
	}
	return result;
}

/*
 * Appends a value; infinite dates, which BSON lacks, as the first or last Date.  They are only
 * compared, see expression_compare.c.
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
		mongo_append(document, key, mongo_date(TIMESTAMP_IS_NOEND(value) ? PG_INT64_MAX : PG_INT64_MIN));
	else
		mongo_append_datum(document, key, -1, variable->value, variable->isnull,
						   variable->type, variable->typmod);
}

/* Appends "let", whose variables are the values, or for EXPLAIN the expressions' texts. */
static void
append_let(const MongoBindContext *binding, bson_t *command)
{
	const MongoCommandTemplate *template = binding->template;
	bson_t		let;

	mongo_append_document_begin(command, "let", &let);
	for (int i = 0; i < template->nvariables; i++)
	{
		const char *name = mongo_variable_name(i);
		bson_t		literal;

		if (binding->names != NULL)
		{
			mongo_append(&let, name, mongo_utf8(binding->names[list_length(template->predicates) + i]));
			continue;
		}
		/* $literal keeps strings and documents from being evaluated */
		mongo_append_document_begin(&let, name, &literal);
		append_variable(&template->variables[i], &literal, "$literal");
		mongo_append_document_end(&let, &literal);
	}
	mongo_append_document_end(command, &let);
}

/* The largest first batch that is requested because of a LIMIT. */
#define LARGEST_BATCH_SIZE	1000000

/*
 * Appends skip, limit and batchSize of a find.  With a limit, batchSize is one more, so that the
 * server closes the cursor with its first reply.
 */
static void
append_limits(const MongoBindContext *binding, bson_t *command)
{
	int64		limit = limit_of(binding);
	int64		batch_size = binding->template->batch_size;

	if (binding->template->skip > 0)
		mongo_append(command, "skip", mongo_int64(binding->template->skip));
	if (limit > 0)
	{
		mongo_append(command, "limit", mongo_int64(limit));
		batch_size = Min(limit, LARGEST_BATCH_SIZE - 1) + 1;
	}
	mongo_append(command, "batchSize", mongo_int32((int32) batch_size));
}

static MongoMatch
bind_command(const MongoBindContext *binding, bson_t *command)
{
	const MongoCommandTemplate *template = binding->template;
	bson_iter_t fields;
	MongoMatch	match;

	bson_iter_init(&fields, template->command);
	match = bind_document(binding, &fields, IN_COMMAND, command);
	if (template->nvariables > 0)
		append_let(binding, command);
	bson_iter_init(&fields, template->command);
	if (bson_iter_next(&fields) && strcmp(bson_iter_key(&fields), "find") == 0)
		append_limits(binding, command);
	return match;
}

/*
 * mongo_command_bind
 *		Appends the template to 'command', with values[] and isnull[] for its parameters, and with
 *		what it has of the run.  Returns MONGO_MATCH_NONE if the filter cannot match any document,
 *		so that no request is needed; 'command' is complete in this case too.
 *
 * A list of values that would make the command longer than MongoDB accepts is left out.  Then more
 * documents match, and *widened is set: PostgreSQL must test the documents.  Raises 54000 instead
 * if 'widened' is NULL, or if the list is within a $nor, which would then match fewer documents.
 *
 * A parameter of the user's stages that is NULL matches no document.  Raises 42P02 for one without
 * a value or without a column, 22023 for a value that MongoDB might evaluate, 22007 for a malformed
 * cluster time, and the errors of mongo_append_column_value() and, for variables,
 * mongo_append_datum(); but infinite dates of these become the first or last Date.
 */
MongoMatch
mongo_command_bind(const MongoCommandTemplate *template, const Datum *values,
				   const bool *isnull, bool *widened, bson_t *command)
{
	Size		size = 0;
	MongoBindContext binding = {template, values, isnull, NULL, &size, widened, true};

	return bind_command(&binding, command);
}

/*
 * mongo_command_describe
 *		Appends the template for EXPLAIN, with texts for the parameters, and then the variables.
 */
void
mongo_command_describe(const MongoCommandTemplate *template,
					   const char *const *names, bson_t *command)
{
	MongoBindContext binding = {.template = template, .names = names};

	bind_command(&binding, command);
}
