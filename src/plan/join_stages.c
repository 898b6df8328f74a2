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
#include "bson_write.h"
#include "clauses.h"
#include "encoding.h"
#include "expression.h"
#include "feature.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"

/*
 * What no field of the documents is called: outer columns in a pipeline within
 * $lookup are known by what append_outer_fields() computes only.
 */
#define NOT_IN_DOCUMENT		"$"

/*
 * The elements of localField for a text key, as the field @3.  A String of 24
 * lower-case hexadecimal digits and the ObjectId of these are the same text.
 */
#define TEXT_KEY_TEMPLATE \
	"{@3: {$cond: [{$eq: [{$type: @1}, 'objectId']}, [@1, {$toString: @1}]," \
	" {$cond: [{$ne: [{$type: @1}, 'string']}, @1," \
	" {$cond: [{$regexMatch: {input: @1, regex: @2}}, [@1, {$toObjectId: @1}], @1]}]}]}}"
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

/*
 * append_key_not_null: of the outer key.  As an expression, for which MongoDB goes
 * through no index: {$ne: null} makes it read all of the collection by an index
 * on the key, in the index's order, where there is one.
 */
static void
append_key_not_null(const MongoJoin *join, bson_t *match)
{
	const MongoRelation *outer = join->outer->fdw_private;
	const char *path = join->key.outer.path;

	if (mongo_feature_enabled(outer->options, MONGO_FEATURE_EXPR))
		bson_append_template(match, "{$expr: {$ne: [{$ifNull: [@1, null]}, null]}}",
							 bson_field(path));
	else
		bson_append_condition(match, path, "$ne", bson_null());
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

/* append_unwind: which keeps what has found nothing in an outer join */
static void
append_unwind(const MongoJoin *join, MongoPipeline *pipeline)
{
	hold_or_append(join, pipeline, "$unwind",
				   bson_from_template(is_outer_join(join->type) ?
									  "{path: @1, preserveNullAndEmptyArrays: true}" :
									  "{path: @1}", bson_field(join->columns->prefix)));
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

/* begin_lookup: all but 'as', which comes last. */
static bson_t *
begin_lookup(const MongoJoin *join, const char *local_field)
{
	const MongoRelation *inner = join->inner->fdw_private;

	return bson_from_template("{from: @1, localField: @2, foreignField: @3}",
							  bson_utf8(mongo_to_utf8(inner->options->collection)),
							  bson_utf8(local_field), bson_utf8(join->key.inner.path));
}

static void
finish_lookup(const MongoJoin *join, MongoPipeline *pipeline, bson_t *lookup)
{
	BSON_APPEND_UTF8(lookup, "as", join->columns->prefix);
	mongo_pipeline_append(pipeline, "$lookup", lookup);
}

/* append_local_key: gives the localField, computed where the field itself is not it. */
static const char *
append_local_key(const MongoJoin *join, MongoPipeline *pipeline)
{
	/* stands where the documents found will stand, and goes with them */
	const char *name = join->columns->prefix;

	if (!join->key.is_text)
		return join->key.outer.path;
	pipeline->translation.compares_text = true;
	mongo_pipeline_append(pipeline, "$set",
						  bson_from_template(TEXT_KEY_TEMPLATE, bson_field(join->key.outer.path),
											 bson_utf8(OBJECTID_PATTERN), bson_utf8(name)));
	return name;
}

/*
 * MONGO_LOOKUP_PLAIN
 */

/* keep_found: of a semijoin or an inner join, what has a key and a partner */
static void
keep_found(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_t	   *match = bson_create_in(CurrentMemoryContext);

	append_key_not_null(join, match);
	bson_append_template(match, "{@1: {$ne: []}}", bson_utf8(join->columns->prefix));
	hold_or_append(join, pipeline, "$match", match);
}

/* keep_first: of a semijoin, one of the documents found; any will do */
static void
keep_first(const MongoJoin *join, MongoPipeline *pipeline)
{
	const char *prefix = join->columns->prefix;

	hold_or_append(join, pipeline, "$set",
				   bson_from_template("{@1: {$arrayElemAt: [@2, 0]}}", bson_utf8(prefix),
									  bson_field(prefix)));
}

/* keep_lonely: of an antijoin, what has no key or no partner */
static void
keep_lonely(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_value_t prefix = bson_utf8(join->columns->prefix);

	hold_or_append(join, pipeline, "$match",
				   bson_from_template("{$or: [{@1: {$eq: null}}, {@2: {$eq: []}}]}",
									  bson_utf8(join->key.outer.path), prefix));

	/* the inner columns are NULL from here on */
	hold_or_append(join, pipeline, "$project", bson_from_template("{@1: 0}", prefix));
}

/* drop_null_partners: of a left join; what has a null key has found nulls */
static void
drop_null_partners(const MongoJoin *join, MongoPipeline *pipeline)
{
	const char *prefix = join->columns->prefix;

	hold_or_append(join, pipeline, "$set",
				   bson_from_template("{@1: {$cond: [{$gt: [@2, null]}, @3, []]}}",
									  bson_utf8(prefix), bson_field(join->key.outer.path),
									  bson_field(prefix)));
}

/* A $lookup by localField and foreignField, and what each kind of join makes of the array found. */
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
	bson_t	   *match = bson_create_in(CurrentMemoryContext);
	const char *local_field;

	append_key_not_null(join, match);
	mongo_pipeline_append(pipeline, "$match", match);
	local_field = append_local_key(join, pipeline);
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

/* translate_vars: {v0: "$x", ...}; NULL when one of the columns has no translation. */
static bson_t *
translate_vars(MongoTranslation *translation, List *vars)
{
	bson_t	   *let = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	foreach(cell, vars)
	{
		bson_t	   *expression = mongo_translate_expression(translation, lfirst(cell));

		if (expression == NULL)
			return NULL;
		bson_append_member(let, psprintf("v%d", foreach_current_index(cell)), "@1",
						   bson_first(expression));
	}
	return let;
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
append_outer_fields(const MongoJoin *join, List *vars, BsonArray *stages)
{
	const MongoRelation *inner = join->inner->fdw_private;
	const char *name = mongo_unused_field(inner->columns, "o");
	bson_t	   *fields = bson_create_in(CurrentMemoryContext);
	List	   *computed = NIL;
	ListCell   *cell;

	foreach(cell, vars)
	{
		MongoComputed *one = palloc0(sizeof(MongoComputed));
		char	   *variable = psprintf("v%d", foreach_current_index(cell));

		BSON_APPEND_UTF8(fields, variable, psprintf("$$%s", variable));
		one->expression = lfirst(cell);
		one->path = psprintf("%s.%s", name, variable);
		computed = lappend(computed, one);
	}
	bson_array_append_template(stages, "{$set: {@1: @2}}", bson_utf8(name),
							   bson_document(fields));
	return computed;
}

/* append_inner_match: false when a clause is not exact. */
static bool
append_inner_match(MongoTranslation *translation, List *clauses, BsonArray *stages)
{
	MongoScanClauses classified;

	mongo_classify_clauses(translation, NULL, NIL, clauses, &classified);
	if (!bson_empty(classified.filter))
		bson_array_append_template(stages, "{$match: @1}", bson_document(classified.filter));
	return classified.local == NIL;
}

/*
 * append_inner_stages: those of the lookup's own pipeline; false when a clause
 * is not exact.
 */
static bool
append_inner_stages(const MongoJoin *join, MongoTranslation *translation, List *vars,
					BsonArray *stages)
{
	bool		exact;

	bson_array_append_template(stages, "{$match: {@1: {$ne: null}}}",
							   bson_utf8(join->key.inner.path));
	exact = append_inner_match(translation, join->inner->baserestrictinfo, stages);
	if (vars != NIL)
		translation->computed = append_outer_fields(join, vars, stages);
	exact &= append_inner_match(translation, join->clauses, stages);

	/* one will do, whichever it is */
	if (join->type == JOIN_SEMI || join->type == JOIN_ANTI)
	{
		bson_array_append_template(stages, "{$limit: 1}");
		if (join->type == JOIN_ANTI || !join->reads_inner)
			bson_array_append_template(stages, "{$project: {_id: 1}}");
	}
	return exact;
}

/* append_inner_pipeline: {let: {...}, pipeline: [...]}; false when a clause is not exact */
static bool
append_inner_pipeline(const MongoJoin *join, MongoPipeline *pipeline, bson_t *lookup)
{
	MongoTranslation *translation = &pipeline->translation;
	MongoColumns *outer = translation->columns;
	List	   *outer_computed = translation->computed;
	List	   *vars = outer_vars(join, outer);
	BsonArray	stages = bson_array_create();
	bool		exact;

	if (vars != NIL)
	{
		bson_t	   *let = translate_vars(translation, vars);

		if (let == NULL)
			return false;
		BSON_APPEND_DOCUMENT(lookup, "let", let);
	}
	translation->columns = inner_columns(join, outer);
	exact = append_inner_stages(join, translation, vars, &stages);
	BSON_APPEND_ARRAY(lookup, "pipeline", stages.bson);
	translation->columns = outer;
	translation->computed = outer_computed;
	return exact;
}

static bool
append_pipeline_lookup(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_t	   *lookup = begin_lookup(join, append_local_key(join, pipeline));

	if (!append_inner_pipeline(join, pipeline, lookup))
		return false;
	finish_lookup(join, pipeline, lookup);
	append_unwind(join, pipeline);
	if (join->type == JOIN_ANTI)
		mongo_pipeline_append(pipeline, "$match",
							  bson_from_template("{@1: {$exists: false}}",
												 bson_utf8(join->columns->prefix)));
	return true;
}

/*
 * MONGO_LOOKUP_PARENT
 */

static bool
append_parent(const MongoJoin *join, MongoPipeline *pipeline)
{
	bson_t	   *match = bson_create_in(CurrentMemoryContext);

	append_key_not_null(join, match);
	mongo_pipeline_append(pipeline, "$match", match);
	return append_match(join, pipeline,
						list_concat_copy(join->inner->baserestrictinfo, join->clauses));
}

MongoColumns *
mongo_joined_columns(const MongoJoin *join, MongoColumns *outer)
{
	MongoColumns *all = NULL;
	MongoColumns **next = &all;

	for (; outer != NULL; outer = outer->next)
	{
		*next = mongo_columns_under(outer, outer->prefix);
		next = &(*next)->next;
	}
	*next = mongo_columns_under(join->columns, join->columns->prefix);
	return all;
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
	MongoColumns **columns = &pipeline->translation.columns;

	if (join->form != MONGO_LOOKUP_PLAIN || needs_unwinding(join, pipeline))
		mongo_settle_lookups(pipeline);

	if (join->form == MONGO_LOOKUP_PARENT)
	{
		*columns = mongo_joined_columns(join, *columns);
		return append_parent(join, pipeline);
	}
	if (join->form == MONGO_LOOKUP_PIPELINE)
	{
		if (!append_pipeline_lookup(join, pipeline))
			return false;
		*columns = mongo_joined_columns(join, *columns);
		return append_match(join, pipeline, join->filters);
	}
	*columns = mongo_joined_columns(join, *columns);
	return join->form == MONGO_LOOKUP_PLAIN ?
		append_plain_lookup(join, pipeline) : append_unwound_lookup(join, pipeline);
}
