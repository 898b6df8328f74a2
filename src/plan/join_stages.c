/*-------------------------------------------------------------------------
 *
 * join_stages.c
 *		The stages of a join: $lookup and what makes SQL's join of it.
 *
 * MongoDB's null equals null and what is missing, SQL's NULL equals nothing, so
 * each form keeps null keys apart.  The document found replaces the array of
 * $lookup under its prefix, and nothing stands there where an outer join has
 * found none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "join_stages.h"

#include "bson_memory.h"
#include "clauses.h"
#include "encoding.h"
#include "expression_rows.h"
#include "feature.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

/*
 * What no field of the documents is called: outer columns in a pipeline within
 * $lookup are known by what append_outer_fields() computes only.
 */
#define NOT_IN_DOCUMENT		"$"

/*
 * The elements of localField for a text key.  A String of 24 lower-case
 * hexadecimal digits and the ObjectId of these are the same text.
 */
#define TEXT_KEY_TEMPLATE \
	"{$cond: [{$eq: [{$type: @1}, 'objectId']}, [@1, {$toString: @1}]," \
	" {$cond: [{$ne: [{$type: @1}, 'string']}, @1," \
	" {$cond: [{$regexMatch: {input: @1, regex: @2}}, [@1, {$toObjectId: @1}], @1]}]}]}"
#define OBJECTID_PATTERN	"^[0-9a-f]{24}\\z"

/* A stage to come after the lookups that stand in a row. */
typedef struct HeldStage
{
	const char *name;
	const bson_t *specification;
} HeldStage;

static bool
is_outer_join(JoinType type)
{
	return type == JOIN_LEFT || type == JOIN_ANTI;
}

static bson_t *
new_document(void)
{
	return bson_create_in(CurrentMemoryContext);
}

/* {path: {operator: null or []}} */
static void
append_test(bson_t *match, const char *path, const char *operator, bool empty_array)
{
	bson_t		test;
	bson_t		array;

	BSON_APPEND_DOCUMENT_BEGIN(match, path, &test);
	if (empty_array)
	{
		BSON_APPEND_ARRAY_BEGIN(&test, operator, &array);
		bson_append_array_end(&test, &array);
	}
	else
		BSON_APPEND_NULL(&test, operator);
	bson_append_document_end(match, &test);
}

/* A string as an argument of a template. */
static MongoValue
string_value(const char *string)
{
	MongoValue	value = {new_document(), .atomic = true};

	BSON_APPEND_UTF8(value.expression, "", string);
	return value;
}

/*
 * append_not_null: of the outer key.  As an expression, for which MongoDB goes
 * through no index: {$ne: null} makes it read all of the collection by an index
 * on the key, in the index's order, where there is one.
 */
static void
append_not_null(const MongoJoin *join, bson_t *match)
{
	const MongoRelation *outer = join->outer->fdw_private;
	MongoValue	argument;

	if (!mongo_feature_enabled(outer->options, MONGO_FEATURE_EXPR))
	{
		append_test(match, join->key.outer.path, "$ne", false);
		return;
	}
	argument = string_value(psprintf("$%s", join->key.outer.path));
	mongo_append_expression(match, "$expr",
							mongo_expand_template("{$ne: [{$ifNull: [@1, null]}, null]}",
												  &argument, 1));
}

/* hold_or_append: behind lookups that others may follow, or at once. */
static void
hold_or_append(const MongoJoin *join, MongoPipeline *pipeline, const char *name,
			   const bson_t *specification)
{
	HeldStage  *stage;

	if (join->form != MONGO_LOOKUP_PLAIN)
	{
		mongo_pipeline_append(pipeline, name, specification);
		return;
	}
	stage = palloc(sizeof(HeldStage));
	stage->name = name;
	stage->specification = specification;
	pipeline->held = lappend(pipeline->held, stage);
}

void
mongo_settle_lookups(MongoPipeline *pipeline)
{
	List	   *held = pipeline->held;
	ListCell   *cell;

	pipeline->held = NIL;
	pipeline->arrays = NIL;
	foreach(cell, held)
	{
		HeldStage  *stage = lfirst(cell);

		mongo_pipeline_append(pipeline, stage->name, stage->specification);
	}
}

/* {$unwind: "$t2"}, which keeps what has found nothing in an outer join */
static void
append_unwind(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_t	   *unwind = new_document();

	BSON_APPEND_UTF8(unwind, "path", psprintf("$%s", join->columns->prefix));
	if (is_outer_join(join->type))
		BSON_APPEND_BOOL(unwind, "preserveNullAndEmptyArrays", true);
	hold_or_append(join, pipeline, "$unwind", unwind);
}

/* append_match: a stage for clauses; false when one of them is not exact. */
static bool
append_match(const MongoJoin *join, MongoPipeline *pipeline, List *clauses)
{
	MongoScanClauses classified;

	mongo_classify_clauses(&pipeline->translation, NULL, NIL, clauses, &classified);
	if (classified.local != NIL)
		return false;
	if (!bson_empty(classified.filter))
		hold_or_append(join, pipeline, "$match", classified.filter);
	return true;
}

/* begin_lookup: {from, localField, foreignField}; 'as' comes last. */
static bson_t *
begin_lookup(const MongoJoin *join, const char *local_field)
{
	const MongoRelation *inner = join->inner->fdw_private;
	bson_t	   *lookup = new_document();

	BSON_APPEND_UTF8(lookup, "from", mongo_to_utf8(inner->options->collection));
	BSON_APPEND_UTF8(lookup, "localField", local_field);
	BSON_APPEND_UTF8(lookup, "foreignField", join->key.inner.path);
	return lookup;
}

static void
finish_lookup(const MongoJoin *join, MongoPipeline *pipeline, bson_t *lookup)
{
	BSON_APPEND_UTF8(lookup, "as", join->columns->prefix);
	mongo_pipeline_append(pipeline, "$lookup", lookup);
}

/* append_key: gives the localField, computed where the field itself is not it. */
static const char *
append_key(const MongoJoin *join, MongoPipeline *pipeline)
{
	MongoValue	arguments[2];
	bson_t	   *set;
	const char *name;

	if (!join->key.is_text)
		return join->key.outer.path;
	pipeline->translation.compares_text = true;

	/* stands where the documents found will stand, and goes with them */
	name = join->columns->prefix;
	arguments[0] = string_value(psprintf("$%s", join->key.outer.path));
	arguments[1] = string_value(OBJECTID_PATTERN);
	set = new_document();
	mongo_append_expression(set, name,
							mongo_expand_template(TEXT_KEY_TEMPLATE, arguments, 2));
	mongo_pipeline_append(pipeline, "$set", set);
	return name;
}

/*
 * MONGO_LOOKUP_PLAIN
 */

/* keep_found: of a semijoin or an inner join, what has a key and a partner */
static void
keep_found(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_t	   *match = new_document();

	append_not_null(join, match);
	append_test(match, join->columns->prefix, "$ne", true);
	hold_or_append(join, pipeline, "$match", match);
}

/* keep_first: of a semijoin, one of the documents found; any will do */
static void
keep_first(const MongoJoin *join, MongoPipeline *pipeline)
{
	const char *prefix = join->columns->prefix;
	MongoValue	argument = string_value(psprintf("$%s", prefix));
	bson_t	   *set = new_document();

	mongo_append_expression(set, prefix,
							mongo_expand_template("{$arrayElemAt: [@1, 0]}", &argument, 1));
	hold_or_append(join, pipeline, "$set", set);
}

/* keep_lonely: of an antijoin, what has no key or no partner */
static void
keep_lonely(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_t	   *match = new_document();
	bson_t	   *project = new_document();
	bson_t		branches;
	bson_t		branch;

	BSON_APPEND_ARRAY_BEGIN(match, "$or", &branches);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "0", &branch);
	append_test(&branch, join->key.outer.path, "$eq", false);
	bson_append_document_end(&branches, &branch);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "1", &branch);
	append_test(&branch, join->columns->prefix, "$eq", true);
	bson_append_document_end(&branches, &branch);
	bson_append_array_end(match, &branches);
	hold_or_append(join, pipeline, "$match", match);

	/* the inner columns are NULL from here on */
	BSON_APPEND_INT32(project, join->columns->prefix, 0);
	hold_or_append(join, pipeline, "$project", project);
}

/* drop_null_partners: of a left join; what has a null key has found nulls */
static void
drop_null_partners(const MongoJoin *join, MongoPipeline *pipeline)
{
	const char *prefix = join->columns->prefix;
	MongoValue	arguments[2];
	bson_t	   *set = new_document();

	arguments[0] = string_value(psprintf("$%s", join->key.outer.path));
	arguments[1] = string_value(psprintf("$%s", prefix));
	mongo_append_expression(set, prefix,
							mongo_expand_template("{$cond: [{$gt: [@1, null]}, @2, []]}",
												  arguments, 2));
	hold_or_append(join, pipeline, "$set", set);
}

static bool
append_plain_lookup(const MongoJoin *join, MongoPipeline *pipeline)
{
	finish_lookup(join, pipeline, begin_lookup(join, join->key.outer.path));
	if (!join->key.unique)
		pipeline->arrays = lappend(pipeline->arrays, (char *) join->columns->prefix);

	switch (join->type)
	{
		case JOIN_SEMI:
			keep_found(join, pipeline);
			if (join->reads_inner)
				keep_first(join, pipeline);
			return true;
		case JOIN_ANTI:
			keep_lonely(join, pipeline);
			return append_match(join, pipeline, join->filters);
		case JOIN_LEFT:
			drop_null_partners(join, pipeline);
			append_unwind(join, pipeline);
			return append_match(join, pipeline, join->filters);
		default:
			keep_found(join, pipeline);
			append_unwind(join, pipeline);
			return append_match(join, pipeline,
								list_concat_copy(join->inner->baserestrictinfo,
												 join->clauses));
	}
}

/*
 * MONGO_LOOKUP_UNWOUND
 */

static bool
append_unwound_lookup(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_t	   *match = new_document();
	const char *local_field;

	append_not_null(join, match);
	mongo_pipeline_append(pipeline, "$match", match);
	local_field = append_key(join, pipeline);
	finish_lookup(join, pipeline, begin_lookup(join, local_field));
	append_unwind(join, pipeline);
	return append_match(join, pipeline,
						list_concat_copy(join->inner->baserestrictinfo, join->clauses));
}

/*
 * MONGO_LOOKUP_PIPELINE
 */

/* inner_columns: the inner table's own documents, and the outer tables' Vars */
static MongoColumns *
inner_columns(const MongoJoin *join, MongoColumns *outer)
{
	const MongoRelation *inner = join->inner->fdw_private;
	MongoColumns *result = mongo_columns_under(inner->columns, NULL);
	MongoColumns *last = result;

	for (; outer != NULL; outer = outer->next)
	{
		last->next = mongo_columns_under(outer, NOT_IN_DOCUMENT);
		last = last->next;
	}
	return result;
}

/* outer_vars: the columns of the outer side that the join's clauses use. */
static List *
outer_vars(const MongoJoin *join, MongoColumns *outer)
{
	List	   *vars = NIL;
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, join->clauses)
		vars = list_union(vars,
						  pull_var_clause((Node *) lfirst_node(RestrictInfo, cell)->clause,
										  PVC_RECURSE_PLACEHOLDERS));
	foreach(cell, vars)
	{
		if (mongo_columns_find(outer, lfirst_node(Var, cell)->varno) != NULL)
			result = lappend(result, lfirst(cell));
	}
	return result;
}

/*
 * append_let: {let: {v0: "$x", ...}} for these columns; false when one of them
 * has no translation.
 */
static bool
append_let(MongoTranslation *translation, List *vars, bson_t *lookup)
{
	bson_t		let;
	ListCell   *cell;

	BSON_APPEND_DOCUMENT_BEGIN(lookup, "let", &let);
	foreach(cell, vars)
	{
		bson_t	   *expression = mongo_translate_expression(translation, lfirst(cell));

		if (expression == NULL)
			return false;
		mongo_append_expression(&let, psprintf("v%d", foreach_current_index(cell)),
								expression);
	}
	bson_append_document_end(lookup, &let);
	return true;
}

/* begin_stage, end_stage: of an array of stages that is being written */
static void
begin_stage(bson_t *stages, const char *name, bson_t *stage, bson_t *specification)
{
	BSON_APPEND_DOCUMENT_BEGIN(stages, psprintf("%u", bson_count_keys(stages)), stage);
	BSON_APPEND_DOCUMENT_BEGIN(stage, name, specification);
}

static void
end_stage(bson_t *stages, bson_t *stage, bson_t *specification)
{
	bson_append_document_end(stage, specification);
	bson_append_document_end(stages, stage);
}

/*
 * append_outer_fields: {$set: {o: {v0: "$$v0", ...}}}, and in 'computed' what
 * they stand for.
 *
 * MongoDB evaluates what is made of variables alone before it looks at any
 * document, without regard to the conditions around it, and fails where that
 * fails.  Of fields it knows no value.
 */
static List *
append_outer_fields(const MongoJoin *join, List *vars, bson_t *stages)
{
	const MongoRelation *inner = join->inner->fdw_private;
	const char *name = mongo_unused_field(inner->columns, "o");
	List	   *computed = NIL;
	bson_t		stage;
	bson_t		set;
	bson_t		fields;
	ListCell   *cell;

	begin_stage(stages, "$set", &stage, &set);
	BSON_APPEND_DOCUMENT_BEGIN(&set, name, &fields);
	foreach(cell, vars)
	{
		MongoComputed *one = palloc0(sizeof(MongoComputed));
		char	   *variable = psprintf("v%d", foreach_current_index(cell));

		BSON_APPEND_UTF8(&fields, variable, psprintf("$$%s", variable));
		one->expression = lfirst(cell);
		one->path = psprintf("%s.%s", name, variable);
		computed = lappend(computed, one);
	}
	bson_append_document_end(&set, &fields);
	end_stage(stages, &stage, &set);
	return computed;
}

/* append_inner_match: false when a clause is not exact. */
static bool
append_inner_match(MongoTranslation *translation, List *clauses, bson_t *stages)
{
	MongoScanClauses classified;
	bson_t		stage;
	bson_t		match;

	mongo_classify_clauses(translation, NULL, NIL, clauses, &classified);
	if (!bson_empty(classified.filter))
	{
		begin_stage(stages, "$match", &stage, &match);
		bson_concat(&match, classified.filter);
		end_stage(stages, &stage, &match);
	}
	return classified.local == NIL;
}

/*
 * append_inner_stages: those of the lookup's own pipeline; false when a clause
 * is not exact.
 */
static bool
append_inner_stages(const MongoJoin *join, MongoTranslation *translation, List *vars,
					bson_t *stages)
{
	bool		exact;
	bson_t		stage;
	bson_t		specification;

	begin_stage(stages, "$match", &stage, &specification);
	append_test(&specification, join->key.inner.path, "$ne", false);
	end_stage(stages, &stage, &specification);

	exact = append_inner_match(translation, join->inner->baserestrictinfo, stages);
	if (vars != NIL)
		translation->computed = append_outer_fields(join, vars, stages);
	exact &= append_inner_match(translation, join->clauses, stages);

	/* one will do, whichever it is */
	if (join->type == JOIN_SEMI || join->type == JOIN_ANTI)
	{
		BSON_APPEND_DOCUMENT_BEGIN(stages, psprintf("%u", bson_count_keys(stages)), &stage);
		BSON_APPEND_INT32(&stage, "$limit", 1);
		bson_append_document_end(stages, &stage);
		if (join->type == JOIN_ANTI || !join->reads_inner)
		{
			begin_stage(stages, "$project", &stage, &specification);
			BSON_APPEND_INT32(&specification, "_id", 1);
			end_stage(stages, &stage, &specification);
		}
	}
	return exact;
}

/* append_pipeline: {let: {...}, pipeline: [...]}; false when a clause is not exact */
static bool
append_pipeline(const MongoJoin *join, MongoPipeline *pipeline, bson_t *lookup)
{
	MongoTranslation *translation = &pipeline->translation;
	MongoColumns *outer = translation->columns;
	List	   *outer_computed = translation->computed;
	List	   *vars = outer_vars(join, outer);
	bool		exact;
	bson_t		stages;

	if (vars != NIL && !append_let(translation, vars, lookup))
		return false;
	translation->columns = inner_columns(join, outer);
	BSON_APPEND_ARRAY_BEGIN(lookup, "pipeline", &stages);
	exact = append_inner_stages(join, translation, vars, &stages);
	bson_append_array_end(lookup, &stages);
	translation->columns = outer;
	translation->computed = outer_computed;
	return exact;
}

static bool
append_pipeline_lookup(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_t	   *lookup = begin_lookup(join, append_key(join, pipeline));
	bson_t	   *match;
	bson_t		test;

	if (!append_pipeline(join, pipeline, lookup))
		return false;
	finish_lookup(join, pipeline, lookup);
	append_unwind(join, pipeline);
	if (join->type == JOIN_ANTI)
	{
		match = new_document();
		BSON_APPEND_DOCUMENT_BEGIN(match, join->columns->prefix, &test);
		BSON_APPEND_BOOL(&test, "$exists", false);
		bson_append_document_end(match, &test);
		mongo_pipeline_append(pipeline, "$match", match);
	}
	return true;
}

/* add_inner_columns: the documents now have those of the inner table as well. */
static void
add_inner_columns(const MongoJoin *join, MongoTranslation *translation)
{
	MongoColumns *all = NULL;
	MongoColumns **next = &all;

	for (MongoColumns *columns = translation->columns; columns; columns = columns->next)
	{
		*next = mongo_columns_under(columns, columns->prefix);
		next = &(*next)->next;
	}
	*next = mongo_columns_under(join->columns, join->columns->prefix);
	translation->columns = all;
}

/* needs_unwinding: is the outer key in what may be an array of several yet? */
static bool
needs_unwinding(const MongoJoin *join, const MongoPipeline *pipeline)
{
	ListCell   *cell;

	foreach(cell, pipeline->arrays)
	{
		const char *prefix = join->key.outer.columns->prefix;

		if (prefix != NULL && strcmp(prefix, lfirst(cell)) == 0)
			return true;
	}
	return false;
}

bool
mongo_append_join(const MongoJoin *join, MongoPipeline *pipeline)
{
	if (join->form != MONGO_LOOKUP_PLAIN || needs_unwinding(join, pipeline))
		mongo_settle_lookups(pipeline);

	if (join->form == MONGO_LOOKUP_PIPELINE)
	{
		if (!append_pipeline_lookup(join, pipeline))
			return false;
		add_inner_columns(join, &pipeline->translation);
		return append_match(join, pipeline, join->filters);
	}
	add_inner_columns(join, &pipeline->translation);
	return join->form == MONGO_LOOKUP_PLAIN ?
		append_plain_lookup(join, pipeline) : append_unwound_lookup(join, pipeline);
}
