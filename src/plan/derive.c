/*-------------------------------------------------------------------------
 *
 * derive.c
 *		How pipelines over one table begin: what makes its rows, and what tests
 *		them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "derive.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "command_template.h"
#include "derived.h"
#include "elements.h"
#include "path_list.h"
#include "types.h"

#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

/* append_verbatim: stages in which nothing stands for anything else. */
static void
append_verbatim(MongoPipeline *pipeline, const BsonArray *stages)
{
	pipeline->only_match = NULL;
	bson_append_member(pipeline->stages, psprintf("%d", pipeline->nstages++),
					   "{" MONGO_VERBATIM_KEY ": @1}", bson_array(stages->bson));
}

static void
append_matches(MongoPipeline *pipeline, const List *matches)
{
	bson_t	   *filter = bson_create_in(CurrentMemoryContext);

	mongo_append_conjuncts(filter, matches);
	if (!bson_empty(filter))
		mongo_pipeline_append(pipeline, "$match", filter);
}

/*
 * path_depth: how many of the arrays have to be unwound before the field at 'path' is
 * what the table's rows have there.
 */
static int
path_depth(const MongoTableOptions *options, const List *paths, const char *path)
{
	int			depth = 0;
	ListCell   *cell;

	if (path == NULL)
		return list_length(paths);
	foreach(cell, mongo_ordinality_fields(options))
	{
		if (mongo_path_is_under(path, lfirst(cell)))
			return list_length(paths);
	}
	foreach(cell, paths)
	{
		if (mongo_path_is_under(path, lfirst(cell)) || mongo_path_is_under(lfirst(cell), path))
			depth = foreach_current_index(cell) + 1;
	}
	return depth;
}

/* clause_depth: likewise, before a clause can be tested. */
static int
clause_depth(const MongoRelation *relation, const List *paths, Expr *clause)
{
	int			depth = 0;
	ListCell   *cell;

	foreach(cell, pull_var_clause((Node *) clause, PVC_RECURSE_PLACEHOLDERS))
	{
		Var		   *var = lfirst_node(Var, cell);

		if (var->varno != (int) relation->columns->varno)
			continue;
		depth = Max(depth, path_depth(relation->options, paths, var->varattno <= 0 ? NULL :
									  mongo_column_path(relation->columns, var->varattno)));
	}
	return depth;
}

/* may_hold_array: can an array be a value of this type? */
static bool
may_hold_array(Oid type)
{
	MongoTypeKind kind = mongo_type_kind(getBaseType(type));

	return kind == MONGO_KIND_OTHER || kind == MONGO_KIND_JSON || kind == MONGO_KIND_JSONB;
}

/*
 * narrows: may documents be asked for by the fields of the element at 'path'?  Not where
 * the element may be an array for SQL too: MongoDB looks into an array that is a field's
 * value, and not into one that is an element.
 */
static bool
narrows(const MongoRelation *relation, const char *path, Expr *clause)
{
	ListCell   *cell;

	foreach(cell, pull_var_clause((Node *) clause, PVC_RECURSE_PLACEHOLDERS))
	{
		Var		   *var = lfirst_node(Var, cell);
		const char *field;

		if (var->varno != (int) relation->columns->varno)
			continue;
		field = var->varattno <= 0 ? NULL :
			mongo_column_path(relation->columns, var->varattno);
		if (field == NULL || (strcmp(field, path) == 0 && may_hold_array(var->vartype)))
			return false;
	}
	return true;
}

/* no_array: what becomes of other things; nobody hears of documents that are hidden. */
static MongoNoArray
no_array(const MongoRelation *relation)
{
	if (relation->options->type_mismatch == MONGO_TYPE_MISMATCH_NULL)
		return MONGO_NO_ARRAY_IS_NULL;
	return relation->has_barrier ? MONGO_NO_ARRAY_IS_LEFT_OUT : MONGO_NO_ARRAY_RAISES;
}

/* unwind: the array with this number; the last is followed by the elements' numbers. */
static void
unwind(MongoPipeline *pipeline, const MongoRelation *relation, const List *paths, int number)
{
	BsonArray	stages = bson_array_create();

	mongo_append_unwind(&stages, relation->options, number, no_array(relation));
	if (number == list_length(paths) - 1)
		mongo_append_ordinality(&stages, relation->options);
	append_verbatim(pipeline, &stages);
}

void
mongo_pipeline_derive(MongoPipeline *pipeline, const MongoRelation *relation,
					  const MongoScanClauses *clauses)
{
	List	   *paths = mongo_unwound_paths(relation->options);
	List	  **at_depth = palloc0(sizeof(List *) * (list_length(paths) + 1));
	MongoElements elements;
	ListCell   *cell;

	if (relation->options->pipeline != NULL)
	{
		BsonArray	stages = bson_array_create();

		mongo_append_pipeline(&stages, relation->options);
		append_verbatim(pipeline, &stages);
		pipeline->may_need_disk = true;
	}

	mongo_elements_begin(&elements, &pipeline->translation, paths);
	foreach(cell, clauses->sent)
	{
		const MongoSentClause *sent = lfirst(cell);
		int			depth = clause_depth(relation, paths, sent->clause);

		at_depth[depth] = lappend(at_depth[depth], sent->match);
		if (depth > 0 && narrows(relation, list_nth(paths, depth - 1), sent->clause))
			mongo_elements_add(&elements, depth - 1, sent->match);
	}
	at_depth[0] = list_concat(at_depth[0], mongo_elements_end(&elements));

	append_matches(pipeline, at_depth[0]);
	for (int i = 0; i < list_length(paths); i++)
	{
		unwind(pipeline, relation, paths, i);
		append_matches(pipeline, at_depth[i + 1]);
	}
}
