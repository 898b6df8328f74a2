/*-------------------------------------------------------------------------
 *
 * join.c
 *		Which joins MongoDB can make exactly, and what that costs.
 *
 * Elements need not be joined with their own document, which they come with.  Else
 * a $lookup is asked for only where an index finds the inner documents: for
 * every outer document without one, MongoDB would read the whole collection.
 * With one it still takes many times what fetching the documents and a hash
 * join do, so it pays for few outer documents or far more inner ones;
 * the costs decide.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "join.h"

#include "bson_memory.h"
#include "cost.h"
#include "derived.h"
#include "feature.h"
#include "join_stages.h"
#include "path_list.h"
#include "pipeline_input.h"
#include "plan.h"
#include "planning_state.h"
#include "security.h"

#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"

bool
mongo_is_plain_query(const PlannerInfo *root)
{
	return (root->parse->commandType == CMD_SELECT ||
			root->parse->commandType == CMD_INSERT) &&
		root->parse->rowMarks == NIL && root->rowMarks == NIL;
}

bool
mongo_join_type_is_known(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_LEFT ||
		type == JOIN_SEMI || type == JOIN_ANTI;
}

/* has_placeholders: must an expression be evaluated within this join? */
static bool
has_placeholders(const PlannerInfo *root, const RelOptInfo *joinrel)
{
	ListCell   *cell;

	foreach(cell, root->placeholder_list)
	{
		PlaceHolderInfo *info = lfirst(cell);

		if (bms_overlap(info->ph_eval_at, joinrel->relids))
			return true;
	}
	return false;
}

/*
 * reads_inner: does the join's output have columns of the inner table?
 *
 * A semijoin's may have as well: those that equal outer ones.
 */
static bool
reads_inner(const RelOptInfo *joinrel, const RelOptInfo *innerrel)
{
	return bms_overlap(pull_varnos(NULL, (Node *) joinrel->reltarget->exprs),
					   innerrel->relids);
}

/* output_is_fields: does the join give nothing but fields of its documents? */
static bool
output_is_fields(const RelOptInfo *joinrel, MongoColumns *columns)
{
	ListCell   *cell;

	foreach(cell, joinrel->reltarget->exprs)
	{
		MongoField	field;

		/* a domain's constraint is tested when it is read, like any other */
		if (!IsA(lfirst(cell), Var) ||
			!mongo_field_of_node(columns, lfirst(cell), &field) ||
			!mongo_path_is_addressable(field.path))
			return false;
	}
	return true;
}

/*
 * may_look_up: in one database, which $lookup does not leave, on the same member, and
 * among documents as the collection has them.
 */
static bool
may_look_up(const MongoRelation *outer, const MongoRelation *inner)
{
	return mongo_feature_enabled(outer->options, MONGO_FEATURE_LOOKUP) &&
		mongo_feature_enabled(inner->options, MONGO_FEATURE_LOOKUP) &&
		outer->serverid == inner->serverid && !mongo_is_derived(inner->options) &&
		strcmp(outer->options->database, inner->options->database) == 0 &&
		outer->options->canonical_json == inner->options->canonical_json &&
		outer->options->read_mode == inner->options->read_mode;
}

void
mongo_split_join_clauses(const RelOptInfo *joinrel, JoinType type, const List *restrictlist,
						 List **clauses, List **filters)
{
	ListCell   *cell;

	*clauses = *filters = NIL;
	foreach(cell, restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);

		if (IS_OUTER_JOIN(type) && RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
			*filters = lappend(*filters, rinfo);
		else
			*clauses = lappend(*clauses, rinfo);
	}
}

/* is_replaced: does unwinding put something else there, or around or inside it? */
static bool
is_replaced(const MongoTableOptions *unwound, const char *path)
{
	ListCell   *cell;

	foreach(cell, mongo_ordinality_fields(unwound))
	{
		if (mongo_path_is_under(path, lfirst(cell)))
			return true;
	}
	foreach(cell, mongo_unwound_paths(unwound))
	{
		if (mongo_path_is_under(path, lfirst(cell)) || mongo_path_is_under(lfirst(cell), path))
			return true;
	}
	return false;
}

/* reads_replaced: of the inner table, whose expressions these are. */
static bool
reads_replaced(const MongoJoin *join, const MongoTableOptions *unwound, List *expressions)
{
	const MongoRelation *inner = join->inner->fdw_private;
	ListCell   *cell;

	foreach(cell, pull_var_clause((Node *) expressions, PVC_RECURSE_PLACEHOLDERS))
	{
		const Var  *var = lfirst_node(Var, cell);
		const char *path;

		if (var->varno != (int) join->inner->relid)
			continue;
		path = var->varattno <= 0 ? NULL : mongo_column_path(inner->columns, var->varattno);
		if (path == NULL || is_replaced(unwound, path))
			return true;
	}
	return false;
}

/*
 * is_with_parent: are the outer rows elements of the inner table's documents, joined by
 * their _id, and does the query read nothing of these that unwinding has replaced?
 */
static bool
is_with_parent(const RelOptInfo *joinrel, const MongoJoin *join)
{
	const MongoRelation *inner = join->inner->fdw_private;
	const MongoField *outer_key = &join->key.outer;
	const MongoTableOptions *unwound = outer_key->columns->derivation;
	List	   *rinfos = list_concat_copy(join->inner->baserestrictinfo, join->clauses);

	return join->type == JOIN_INNER && unwound != NULL && unwound->unwind != NULL &&
		unwound->pipeline == NULL && outer_key->columns->prefix == NULL &&
		strcmp(unwound->collection, inner->options->collection) == 0 &&
		strcmp(outer_key->path, "_id") == 0 && strcmp(join->key.inner.path, "_id") == 0 &&
		outer_key->type == join->key.inner.type && outer_key->typmod == join->key.inner.typmod &&
		outer_key->bson_type == join->key.inner.bson_type &&
		!reads_replaced(join, unwound, joinrel->reltarget->exprs) &&
		!reads_replaced(join, unwound, get_actual_clauses(rinfos));
}

/* choose_form: the cheapest that tests all that has to be tested in time. */
static void
choose_form(MongoJoin *join)
{
	const MongoRelation *outer = join->outer->fdw_private;
	bool		only_key = join->clauses == NIL && join->inner->baserestrictinfo == NIL;

	if (join->key.needs_restrictions ||
		(join->type != JOIN_INNER && (!only_key || !join->key.fits || join->key.is_text)))
		join->form = MONGO_LOOKUP_PIPELINE;
	else if (!join->key.fits || join->key.is_text)
		join->form = MONGO_LOOKUP_UNWOUND;
	else
		join->form = MONGO_LOOKUP_PLAIN;

	join->in_engine = join->form == MONGO_LOOKUP_PLAIN &&
		(outer->join == NULL ||
		 (outer->join->in_engine &&
		  (outer->join->key.unique || join->key.outer.columns->prefix == NULL)));
}

Selectivity
mongo_join_key_selectivity(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner,
						   RestrictInfo *key)
{
	SpecialJoinInfo inner_join = {
		.type = T_SpecialJoinInfo,
		.min_lefthand = outer->relids,
		.min_righthand = inner->relids,
		.syn_lefthand = outer->relids,
		.syn_righthand = inner->relids,
		.jointype = JOIN_INNER
	};

	return clauselist_selectivity(root, list_make1(key), 0, JOIN_INNER, &inner_join);
}

/*
 * estimate_with_parent: nothing is looked up, and MongoDB tests conditions on the
 * documents before it unwinds them, so that their indexes serve as well.
 */
static void
estimate_with_parent(MongoJoin *join)
{
	const MongoRelation *outer = join->outer->fdw_private;
	const MongoRelation *inner = join->inner->fdw_private;
	double		share = inner->examined_rows / Max(join->inner->tuples, 1);

	join->setup_cost = outer->join != NULL ? outer->join->setup_cost : 0;
	if (outer->join == NULL)
		join->cost = mongo_examined_cost(join->outer, outer->examined_rows * Min(share, 1));
}

/* estimate_join: fill in the costs. */
static void
estimate_join(PlannerInfo *root, MongoJoin *join)
{
	const MongoRelation *outer = join->outer->fdw_private;
	const MongoTableOptions *options = outer->options;
	double		outer_rows = join->outer->rows;
	double		found = outer_rows * join->inner->tuples *
		mongo_join_key_selectivity(root, join->outer, join->inner, join->key.rinfo);

	if (join->key.unique || join->type == JOIN_SEMI || join->type == JOIN_ANTI)
		found = Min(found, outer_rows);

	join->setup_cost = MONGO_COST_LOOKUP_SETUP * options->fdw_lookup_cost;
	if (outer->join != NULL)
	{
		join->setup_cost += outer->join->setup_cost;
		join->cost = outer->join->cost;
	}
	else
		join->cost = mongo_examined_cost(join->outer, outer->examined_rows);
	if (join->form == MONGO_LOOKUP_PARENT)
	{
		estimate_with_parent(join);
		return;
	}
	join->cost += outer_rows * options->fdw_lookup_cost *
		(join->in_engine ? 1 : MONGO_COST_CLASSIC_LOOKUP) +
		found * options->fdw_tuple_cost * MONGO_COST_FOUND_DOCUMENT;
}

/*
 * may_be_made: have all clauses exact translations, and may MongoDB test them
 * beside those of the tables?  Their stages tell.
 */
static bool
may_be_made(PlannerInfo *root, RelOptInfo *joinrel, const MongoJoin *join,
			MongoColumns *outer_columns, List *clauses)
{
	MongoPipeline pipeline = {.translation = mongo_translation_of(join->outer->fdw_private)};

	pipeline.translation.columns = outer_columns;
	pipeline.translation.need_exact = true;
	pipeline.stages = bson_create_in(CurrentMemoryContext);
	if (!mongo_append_join(join, &pipeline))
		return false;
	if (pipeline.translation.variables != NIL &&
		mongo_feature_is_disabled(pipeline.translation.disabled, MONGO_FEATURE_LET))
		return false;
	mongo_settle_lookups(&pipeline);
	return mongo_join_is_secure(root, joinrel, clauses, pipeline.stages);
}

/* create_join: NULL when the join cannot be pushed down. */
static MongoJoin *
create_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	const MongoRelation *outer = outerrel->fdw_private;
	const MongoRelation *inner = innerrel->fdw_private;
	MongoJoin  *join = palloc0(sizeof(MongoJoin));

	join->type = jointype;
	join->outer = outerrel;
	join->inner = innerrel;
	mongo_split_join_clauses(joinrel, jointype, extra->restrictlist, &join->clauses,
							 &join->filters);
	if (mongo_has_pseudoconstant(extra->restrictlist) ||
		!mongo_find_join_key(root, outer->columns, innerrel, join->clauses, &join->key))
		return NULL;
	join->clauses = list_delete_ptr(join->clauses, join->key.rinfo);
	join->reads_inner = reads_inner(joinrel, innerrel);
	if (is_with_parent(joinrel, join))
	{
		join->form = MONGO_LOOKUP_PARENT;
		join->columns = mongo_columns_under(inner->columns, NULL);
		return may_be_made(root, joinrel, join, outer->columns, extra->restrictlist) ?
			join : NULL;
	}
	join->columns = mongo_columns_under(inner->columns,
										mongo_unused_field(outer->columns,
														   psprintf("t%u", innerrel->relid)));
	choose_form(join);
	return may_be_made(root, joinrel, join, outer->columns, extra->restrictlist) ?
		join : NULL;
}

/* create_join_relation: what is known of the join, with the columns of both sides. */
static MongoRelation *
create_join_relation(const RelOptInfo *joinrel, const MongoJoin *join)
{
	const MongoRelation *outer = join->outer->fdw_private;
	MongoRelation *relation = palloc(sizeof(MongoRelation));

	*relation = *outer;
	relation->columns = mongo_joined_columns(join, outer->columns);
	relation->known = NIL;
	relation->all_exact = true;
	relation->analyzed_rows = 0;
	relation->remote_rows = joinrel->rows;
	relation->examined_rows = joinrel->rows;
	relation->join = join;
	return relation;
}

/* is_left_deep: are the sides such that MongoDB may join them at all? */
static bool
is_left_deep(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			 RelOptInfo *innerrel, JoinType jointype)
{
	return mongo_join_type_is_known(jointype) && mongo_is_plain_query(root) &&
		innerrel->reloptkind == RELOPT_BASEREL &&
		bms_is_empty(joinrel->lateral_relids) && !has_placeholders(root, joinrel) &&
		mongo_is_pipeline_input(root, outerrel) &&
		mongo_is_pipeline_input(root, innerrel) &&
		may_look_up(outerrel->fdw_private, innerrel->fdw_private);
}

/* offer_join: as one command, if it is exact and the cheapest way so far. */
static void
offer_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
		   RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	const MongoRelation *earlier = joinrel->fdw_private;
	MongoRelation *relation;
	MongoJoin  *join;
	Cost		startup_cost;
	Cost		total_cost;

	join = create_join(root, joinrel, outerrel, innerrel, jointype, extra);
	if (join == NULL)
		return;
	estimate_join(root, join);
	if (earlier != NULL && earlier->join->cost <= join->cost)
		return;
	relation = create_join_relation(joinrel, join);
	if (!output_is_fields(joinrel, relation->columns))
		return;
	mongo_keep_planning_state(joinrel, relation);

	mongo_estimate_scan(joinrel, joinrel->rows, joinrel->rows,
						&startup_cost, &total_cost);
	add_path(joinrel, (Path *)
			 mongo_foreign_join_path(root, joinrel, NULL, joinrel->rows,
									 startup_cost, total_cost, NIL,
									 joinrel->lateral_relids, NULL, NIL));
}

void
mongo_get_foreign_join_paths(PlannerInfo *root, RelOptInfo *joinrel,
							 RelOptInfo *outerrel, RelOptInfo *innerrel,
							 JoinType jointype, JoinPathExtraData *extra)
{
	MemoryContext old_context = mongo_enter_planning(joinrel);

	mongo_check_planning_state(outerrel);
	mongo_check_planning_state(innerrel);
	if (is_left_deep(root, joinrel, outerrel, innerrel, jointype))
		offer_join(root, joinrel, outerrel, innerrel, jointype, extra);
	MemoryContextSwitchTo(old_context);
}
