/*-------------------------------------------------------------------------
 *
 * user_stages.c
 *		What the user has written in MongoDB's language, as a part of a command: the stages of the
 *		option pipeline, and the filters of mongo_match().
 *
 * It comes as JSON, and is checked for JavaScript wherever it ends up.  match.c recognizes
 * mongo_match() in a query, and source.c places the stages.
 *
 * In stages with $values, {$param: name} stands for the value of a column with the option
 * parameter.  $values has, by name, the number of a predicate whose 'field' alone matters, or the
 * name of the column if no condition gives a value.  $table is the foreign table's name.  A value
 * is written as the column's values are, is not searched for parameters, and MongoDB never
 * evaluates it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "options.h"
#include "convert.h"

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

/* Settings under which the text of a date always means the same. */
static const struct
{
	const char *name;
	const char *value;
}			settings[] =
{
	{"TimeZone", "UTC"},
	{"DateStyle", "ISO, YMD"},
};

/*
 * mongo_append_kept_json
 *		Appends a json value under 'key', as mongo_append_datum() does, but independently of
 *		settings, which a plan may outlive: a $date without a time zone is in UTC.
 */
void
mongo_append_kept_json(bson_t *document, const char *key, Datum json)
{
	const char *string = TextDatumGetCString(json);
	int			level = 0;

	/* a key may contain escapes */
	if (strstr(string, "$date") != NULL || strstr(string, "\\u") != NULL)
	{
		level = NewGUCNestLevel();
		for (size_t i = 0; i < lengthof(settings); i++)
			(void) set_config_option(settings[i].name, settings[i].value, PGC_USERSET,
									 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	}
	mongo_append_datum(document, key, -1, json, false, JSONOID, -1);
	if (level > 0)
		AtEOXact_GUC(true, level);
}

/*
 * Operators that run JavaScript in MongoDB.  mongos rewrites mapReduce to the internal ones,
 * which MongoDB accepts from every client.
 */
static const char *const javascript_operators[] = {
	"$where", "$function", "$accumulator", "$_internalJsEmit", "$_internalJsReduce"
};

/* Returns the first of these operators in a document or array, at any depth, or NULL. */
static const char *
operator_in(bson_iter_t *iter, const char *const *names, int count)
{
	check_stack_depth();
	while (bson_iter_next(iter))
	{
		bson_iter_t child;
		const char *found = NULL;

		for (int i = 0; i < count; i++)
		{
			if (strcmp(bson_iter_key(iter), names[i]) == 0)
				return names[i];
		}
		if ((BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) &&
			bson_iter_recurse(iter, &child))
			found = operator_in(&child, names, count);
		if (found != NULL)
			return found;
	}
	return NULL;
}

/*
 * mongo_check_javascript
 *		Raises 42501, with 'what' first in the message, if the user's own array or document contains
 *		operators that run JavaScript and the server option allow_javascript does not allow that.
 */
void
mongo_check_javascript(const MongoTableOptions *options, const bson_iter_t *value, const char *what)
{
	bson_iter_t members;
	const char *found = NULL;

	if (!options->allow_javascript && bson_iter_recurse(value, &members))
		found = operator_in(&members, javascript_operators, lengthof(javascript_operators));
	if (found != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s over collection \"%s.%s\" must not use %s", what,
						options->database, options->collection, found),
				 errdetail("It runs JavaScript in MongoDB."),
				 errhint("The owner of the foreign server may allow that by its option allow_javascript.")));
}

/*
 * mongo_match_document
 *		Returns the second argument of mongo_match() as BSON.  MongoDB checks its contents; raises
 *		22023 if it is not a document, and 42501 for JavaScript as mongo_append_pipeline() does.
 */
bson_value_t
mongo_match_document(Oid relid, Datum json)
{
	bson_t	   *holder = mongo_bson_create();
	bson_iter_t document;

	mongo_append_kept_json(holder, "match", json);
	if (!bson_iter_init_find(&document, holder, "match") ||
		!BSON_ITER_HOLDS_DOCUMENT(&document))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the match document of mongo_match() must be a JSON object")));
	mongo_check_javascript(mongo_table_options(relid), &document, "mongo_match()");
	return *bson_iter_value(&document);
}

/*
 * mongo_append_user_filter
 *		Appends the members of a filter by the user.  Returns MONGO_MATCH_ALL unless one is a
 *		field's: to MongoDB, {$and: [{}]} or {$expr: true} is no condition.
 *
 * A filter with $where is one, since a pipeline, which would count the documents otherwise, refuses
 * it.
 */
MongoMatch
mongo_append_user_filter(bson_t *match, bson_iter_t *members)
{
	static const char *const where[] = {"$where"};
	bson_iter_t copy = *members;
	MongoMatch	result = operator_in(&copy, where, 1) != NULL ? MONGO_MATCH_SOME : MONGO_MATCH_ALL;

	while (bson_iter_next(members))
	{
		mongo_append_iter(match, NULL, members);
		if (bson_iter_key(members)[0] != '$')
			result = MONGO_MATCH_SOME;
	}
	return result;
}

/*
 * mongo_render_match
 *		Renders the predicate for a value that is not NULL, as mongo_predicate_render() does.
 *		Raises 22023 if the value is not a document, and 42501 for JavaScript.
 */
MongoMatch
mongo_render_match(const MongoPredicate *predicate, Datum json, bson_t *match)
{
	bson_value_t document = mongo_match_document(predicate->relid, json);
	bson_iter_t members;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL)
	{
		mongo_append_template(match, "{$nor: [@1]}", document);
		return MONGO_MATCH_SOME;
	}
	bson_iter_init_from_data(&members, document.value.v_doc.data, document.value.v_doc.data_len);
	return mongo_append_user_filter(match, &members);
}

/*
 * mongo_add_to_size
 *		Counts what bound values take; raises 54000 if that is too much.
 */
void
mongo_add_to_size(Size *size, uint32 length)
{
	*size += length;
	if (*size > MONGO_LARGEST_MATCH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("command for MongoDB is too large"),
				 errdetail("Its parameters have more than 16 MB."),
				 errhint("Give fewer values at a time, join with a table of them instead of = ANY, or turn off mongo_fdw.enable_aggregate_pushdown or mongo_fdw.enable_pushdown, so that PostgreSQL does more of the query.")));
}

/*-------------------------------------------------------------------------
 * The parameters of a user's stages.
 *
 * Whoever gives a parameter its value must not gain an operator or a field by it that the author of
 * the stages has not written.  In an expression the value becomes {$literal: value}.  Elsewhere
 * MongoDB would take some values for more than data, and these are refused.  In query predicates
 * these are documents with operators and regular expressions, unless they are the operand of a
 * comparison.  In the arguments of an unknown stage, Strings that name a field are refused, too.
 *-------------------------------------------------------------------------
 */

/* Where a part of the user's stages is. */
typedef enum Context
{
	STAGES,						/* an array of stages */
	STAGE,
	ARGUMENTS,					/* of a stage; nothing more is known */
	LOOKUP,						/* the same of one with pipelines or filters */
	FACETS,						/* arrays of stages, by name */
	FILTER,						/* query predicates */
	EXPRESSION,
	DATA						/* is not evaluated */
} Context;

static const struct
{
	Context		context;
	const char *key;
	Context		within;
}			contexts[] =
{
	{STAGE, "$changeStream", DATA},
	{STAGE, "$match", FILTER},
	{STAGE, "$search", FILTER},
	{STAGE, "$searchMeta", FILTER},
	{STAGE, "$vectorSearch", FILTER},
	{STAGE, "$geoNear", LOOKUP},
	{STAGE, "$graphLookup", LOOKUP},
	{STAGE, "$lookup", LOOKUP},
	{STAGE, "$unionWith", LOOKUP},
	{STAGE, "$facet", FACETS},
	{STAGE, "$addFields", EXPRESSION},
	{STAGE, "$group", EXPRESSION},
	{STAGE, "$project", EXPRESSION},
	{STAGE, "$redact", EXPRESSION},
	{STAGE, "$replaceRoot", EXPRESSION},
	{STAGE, "$replaceWith", EXPRESSION},
	{STAGE, "$set", EXPRESSION},
	{STAGE, "$sortByCount", EXPRESSION},
	{LOOKUP, "let", EXPRESSION},
	{LOOKUP, "startWith", EXPRESSION},
	{LOOKUP, "pipeline", STAGES},
	{LOOKUP, "query", FILTER},
	{LOOKUP, "restrictSearchWithMatch", FILTER},
	{FILTER, "$expr", EXPRESSION},
	{FILTER, "$eq", DATA},
	{FILTER, "$ne", DATA},
	{FILTER, "$gt", DATA},
	{FILTER, "$gte", DATA},
	{FILTER, "$lt", DATA},
	{FILTER, "$lte", DATA},
	{EXPRESSION, "$literal", DATA},
	{ARGUMENTS, "$literal", DATA},
};

static Context
context_within(Context context, const char *key)
{
	for (size_t i = 0; i < lengthof(contexts); i++)
	{
		if (contexts[i].context == context && strcmp(contexts[i].key, key) == 0)
			return contexts[i].within;
	}
	switch (context)
	{
		case STAGES:
			return STAGE;
		case STAGE:
		case LOOKUP:
			return ARGUMENTS;
		case FACETS:
			return STAGES;
		default:
			return context;
	}
}

/* Tells whether it is more than data to MongoDB, as a query predicate or an argument. */
static bool
may_be_evaluated(const bson_iter_t *value, bool is_filter)
{
	bson_iter_t child;

	check_stack_depth();
	switch (bson_iter_type(value))
	{
		case BSON_TYPE_REGEX:
		case BSON_TYPE_CODE:
		case BSON_TYPE_CODEWSCOPE:
			return true;
		case BSON_TYPE_UTF8:
			return !is_filter && bson_iter_utf8(value, NULL)[0] == '$';
		case BSON_TYPE_DOCUMENT:
		case BSON_TYPE_ARRAY:
			bson_iter_recurse(value, &child);
			while (bson_iter_next(&child))
			{
				if (bson_iter_key(&child)[0] == '$' || may_be_evaluated(&child, is_filter))
					return true;
			}
			return false;
		default:
			return false;
	}
}

/* The stages that are being bound. */
typedef struct Stages
{
	const MongoBindContext *binding;
	const char *table;
	const bson_t *values;		/* by name of the parameter */
} Stages;

/* Appends the value of a parameter so that it remains data in this context. */
static void
append_param(const Stages *stages, const char *name, Context context, const char *key,
			 bson_t *bound)
{
	bson_iter_t value;
	uint32		old_length = bound->len;

	if (!bson_iter_init_find(&value, stages->values, name))
	{
		if (stages->binding->names == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_PARAMETER),
					 errmsg("the pipeline of foreign table \"%s\" has a parameter \"%s\" without a column",
							stages->table, mongo_printable(name)),
					 errhint("Give a column of the table the option parameter.")));
		mongo_append_condition(bound, key, MONGO_PARAM_KEY, mongo_utf8(name));
		return;
	}
	/* a time with a fraction is between two Timestamps of $changeStream */
	if (context == DATA && BSON_ITER_HOLDS_DATE_TIME(&value) && strcmp(key, "startAtOperationTime") == 0)
	{
		int64		seconds = (bson_iter_date_time(&value) + 999) / 1000;

		mongo_append(bound, key, mongo_timestamp((uint64) Max(0, Min(seconds, PG_UINT32_MAX)) << 32 | 1));
	}
	else if (context == EXPRESSION)
		mongo_append_condition(bound, key, "$literal", *bson_iter_value(&value));
	else if (context != DATA && stages->binding->names == NULL &&
			 may_be_evaluated(&value, context == FILTER))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("parameter \"%s\" of foreign table \"%s\" must be plain data",
						mongo_printable(name), stages->table),
				 errdetail("Where the pipeline has the parameter, MongoDB might evaluate its value."),
				 errhint("The pipeline may have it as operand of $eq or another comparison, or within $literal.")));
	else
		mongo_append(bound, key, *bson_iter_value(&value));
	if (stages->binding->size != NULL)
		mongo_add_to_size(stages->binding->size, bound->len - old_length);
}

/* Returns the name of the parameter if it is {$param: name}, or NULL. */
static const char *
parameter_name(const bson_iter_t *document)
{
	bson_iter_t member;
	const char *name;

	if (!BSON_ITER_HOLDS_DOCUMENT(document) || !bson_iter_recurse(document, &member) ||
		!bson_iter_next(&member) || strcmp(bson_iter_key(&member), MONGO_PARAM_KEY) != 0 ||
		!BSON_ITER_HOLDS_UTF8(&member))
		return NULL;
	name = bson_iter_utf8(&member, NULL);
	return bson_iter_next(&member) ? NULL : name;
}

/* Appends a part of the user's stages, with the values of parameters in it. */
static void
bind_members(const Stages *stages, bson_iter_t *members, Context context, bson_t *bound)
{
	check_stack_depth();
	while (bson_iter_next(members))
	{
		const char *key = bson_iter_key(members);
		const char *name = parameter_name(members);
		Context		within = context_within(context, key);
		bool		is_array = BSON_ITER_HOLDS_ARRAY(members);
		bson_iter_t children;
		bson_t		nested;

		if (name != NULL)
			append_param(stages, name, within, key, bound);
		else if (is_array || BSON_ITER_HOLDS_DOCUMENT(members))
		{
			bson_iter_recurse(members, &children);
			if (is_array)
				mongo_append_array_begin(bound, key, &nested);
			else
				mongo_append_document_begin(bound, key, &nested);
			bind_members(stages, &children, within, &nested);
			if (is_array)
				mongo_append_array_end(bound, &nested);
			else
				mongo_append_document_end(bound, &nested);
		}
		else
			mongo_append_iter(bound, NULL, members);
	}
}

/*
 * Appends the parameters' values by name; no document matches if one is NULL.  Raises 42P02 for one
 * without a value.  For EXPLAIN, values are expressions, or missing.
 */
static MongoMatch
render_values(const Stages *stages, bson_iter_t *numbers, bson_t *values)
{
	const MongoBindContext *binding = stages->binding;
	MongoMatch	result = MONGO_MATCH_SOME;

	while (bson_iter_next(numbers))
	{
		const char *name = bson_iter_key(numbers);
		int			number = BSON_ITER_HOLDS_INT32(numbers) ? bson_iter_int32(numbers) : -1;

		if (number >= list_length(binding->template->predicates))
			elog(ERROR, "command has no parameter %d", number);
		if (binding->names != NULL && number >= 0)
			mongo_append(values, name, mongo_utf8(binding->names[number]));
		else if (number < 0 && binding->names == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_PARAMETER),
					 errmsg("parameter \"%s\" of foreign table \"%s\" has no value",
							mongo_printable(name), stages->table),
					 errhint("Add a condition %s = value, with a value of the column's type.",
							 mongo_from_utf8(bson_iter_utf8(numbers, NULL)))));
		else if (number >= 0 && binding->isnull[number])
		{
			mongo_append(values, name, mongo_null());
			result = MONGO_MATCH_NONE;
		}
		else if (number >= 0)
		{
			const MongoPredicate *predicate = list_nth(binding->template->predicates, number);
			const MongoField *field = &predicate->field;
			FormData_pg_attribute column = {.atttypid = field->type, .atttypmod = field->typmod};

			strlcpy(NameStr(column.attname), mongo_printable(name), NAMEDATALEN);
			/* no field has such a path */
			if (field->path[0] == '$')
			{
				mongo_append_start(values, name, field, binding->values[number]);
				continue;
			}
			mongo_append_column_value(values, name, field->path, binding->values[number], &column,
									  field->bson_type);
		}
	}
	return result;
}

/*
 * mongo_bind_stages
 *		Appends the user's stages of this placeholder, with the values of their parameters.
 *
 * Returns MONGO_MATCH_NONE if one of these is NULL.  Raises what mongo_command_bind() documents.
 */
MongoMatch
mongo_bind_stages(const MongoBindContext *binding, const bson_iter_t *placeholder, BsonArray *bound)
{
	Stages		stages = {.binding = binding};
	bson_t	   *values = mongo_bson_create();
	MongoMatch	result = MONGO_MATCH_SOME;
	bson_iter_t members;
	bson_iter_t part;

	stages.values = values;
	if (bson_iter_recurse(placeholder, &members) && bson_iter_find(&members, MONGO_TABLE_KEY))
		stages.table = mongo_from_utf8(bson_iter_utf8(&members, NULL));
	if (stages.table != NULL && bson_iter_find(&members, MONGO_VALUES_KEY) &&
		bson_iter_recurse(&members, &part))
		result = render_values(&stages, &part, values);
	bson_iter_recurse(placeholder, &members);
	if (!bson_iter_find(&members, MONGO_VERBATIM_KEY) || !bson_iter_recurse(&members, &part))
		elog(ERROR, "malformed stages in a plan");
	while (bson_iter_next(&part))
	{
		bson_iter_t stage;
		bson_t		document;

		if (stages.table == NULL)
		{
			mongo_array_append(bound, *bson_iter_value(&part));
			continue;
		}
		bson_iter_recurse(&part, &stage);
		mongo_array_begin_document(bound, &document);
		bind_members(&stages, &stage, STAGE, &document);
		mongo_array_end_document(bound, &document);
	}
	return result;
}
