/*-------------------------------------------------------------------------
 *
 * join.c
 *		Plans joins as $lookup.
 *
 * Decides which joins MongoDB can compute exactly, what that costs, and makes their stages.  A
 * join is left-deep: the documents of the outer side, a table or a join of its own, flow through
 * the pipeline, and $lookup adds the document of the inner side, a table, under a prefix.
 *
 * https://www.mongodb.com/docs/v6.0/reference/operator/aggregation/lookup/
 *
 * The first part finds the equality by which documents are looked up, the second makes the stages,
 * the third decides.  The callback mongo_get_foreign_join_paths() is at the end.
 *
 * PostgreSQL asks for each pair of relations that make a join, which are thousands for a dozen
 * tables.  So a join is described and estimated first.  Its stages are made only for a path that
 * add_path() may keep, or if a larger join or an upper relation asks for them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"
#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"

#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

/*-------------------------------------------------------------------------
 * The equality by which $lookup finds documents through an index.
 *
 * localField and foreignField compare the stored values.  PostgreSQL compares the same for
 * types that read a value unchanged.  A text column reads ObjectIds in addition to Strings, so
 * its keys are looked up as both.
 *-------------------------------------------------------------------------
 */

/*
 * Returns the type class of a column that reads values without rounding, so that MongoDB may
 * compare the fields themselves; otherwise MONGO_KIND_OTHER.
 */
static MongoTypeKind
join_key_kind(const MongoField *field)
{
	MongoTypeKind kind = mongo_type_kind(field->type);

	return field->type == field->operator_type &&
		mongo_is_key(field->path, field->type, field->typmod) ? kind : MONGO_KIND_OTHER;
}

/* Tells whether the clause is "outer field = indexed inner field". */
static bool
try_key(MongoColumns *outer, const MongoRelation *inner, Node *left, Node *right,
		const OpExpr *clause, MongoJoinKey *key)
{
	MongoTypeKind kind;

	if (!mongo_field_of_node(outer, left, &key->outer) ||
		!mongo_field_of_node(inner->columns, right, &key->inner) ||
		mongo_default_strategy(clause->opno, key->inner.operator_type) != BTEqualStrategyNumber ||
		(key->inner.index_uses & MONGO_INDEX_EQUALITY) == 0)
		return false;
	kind = join_key_kind(&key->inner);
	if (kind == MONGO_KIND_OTHER || kind != join_key_kind(&key->outer))
		return false;
	if (kind == MONGO_KIND_TEXT &&
		(!OidIsValid(clause->inputcollid) ||
		 !get_collation_isdeterministic(clause->inputcollid)))
		return false;

	/* fields that are both declared as ObjectIds are never Strings */
	key->is_text = kind == MONGO_KIND_TEXT &&
		(key->inner.bson_type != key->outer.bson_type || key->inner.bson_type != BSON_TYPE_OID);
	key->unique = strcmp(key->inner.path, "_id") == 0 &&
		mongo_id_index(inner->columns->statistics) != NULL;
	return true;
}

/* Tells whether one key is better: it finds one document, or is a number and the other a text. */
static bool
is_better(const MongoJoinKey *one, const MongoJoinKey *other)
{
	return one->unique != other->unique ? one->unique : !one->is_text && other->is_text;
}

/*
 * Finds among RestrictInfos the equality that is best for finding documents of 'inner'; returns
 * false if no index serves any.  'outer' are the columns of the other side.
 */
static bool
find_join_key(MongoColumns *outer, const MongoRelation *inner, List *clauses, MongoJoinKey *key)
{
	bool		found = false;

	foreach_node(RestrictInfo, rinfo, clauses)
	{
		OpExpr	   *clause = (OpExpr *) rinfo->clause;
		MongoJoinKey candidate = {.rinfo = rinfo};

		if (!IsA(clause, OpExpr) || list_length(clause->args) != 2)
			continue;
		if (!try_key(outer, inner, linitial(clause->args), lsecond(clause->args), clause, &candidate) &&
			!try_key(outer, inner, lsecond(clause->args), linitial(clause->args), clause, &candidate))
			continue;
		if (!found || is_better(&candidate, key))
			*key = candidate;
		found = true;
	}
	return found;
}

/*-------------------------------------------------------------------------
 * The stages of a join: $lookup, $unwind, and conditions.
 *
 * MongoDB merges $lookup and the $unwind behind it, so the documents found are never in one
 * array.  The document found is under its prefix.  If an outer join finds none, the prefix is
 * missing.  MongoDB's null equals null and missing values, while SQL's NULL equals nothing, so
 * null keys are excluded: of an inner join before it, of an outer join within it.
 *-------------------------------------------------------------------------
 */

/*
 * Sets the field @3 to the values of localField for a text key.  A String of 24 lower-case
 * hexadecimal digits and the ObjectId of these are the same text.
 */
#define TEXT_KEY_TEMPLATE \
	"{@3: {$cond: [{$eq: [{$type: @1}, 'objectId']}, [@1, {$toString: @1}]," \
	" {$cond: [{$ne: [{$type: @1}, 'string']}, @1," \
	" {$cond: [{$regexMatch: {input: @1, regex: @2}}, [@1, {$toObjectId: @1}], @1]}]}]}}"
#define OBJECTID_PATTERN	"^[0-9a-f]{24}\\z"

/*
 * Returns a query filter for outer keys that are not null.  It is an expression, which uses no
 * index: with {$ne: null}, MongoDB would read the whole collection through an index on the key, if
 * there is one.
 */
static bson_t *
key_not_null(const MongoJoin *join)
{
	const MongoRelation *outer = join->outer->fdw_private;
	const char *path = join->key.outer.path;

	return mongo_feature_enabled(outer->options, MONGO_FEATURE_EXPR) ?
		mongo_from_template("{$expr: {$ne: [{$ifNull: [@1, null]}, null]}}", mongo_field_path(path)) :
		mongo_from_template("{@1: {$ne: null}}", mongo_utf8(path));
}

/* Appends a stage for clauses; returns false if one of them is not exact. */
static bool
append_match(MongoPipeline *pipeline, List *clauses)
{
	MongoScanClauses classified;

	mongo_classify_clauses(&pipeline->translation, NULL, clauses, false, &classified);
	if (!bson_empty(classified.filter))
		mongo_pipeline_append(pipeline, "$match", classified.filter);
	return classified.local == NIL;
}

/* Returns the localField, after appending a stage to compute it if needed. */
static const char *
append_local_key(const MongoJoin *join, MongoPipeline *pipeline)
{
	/* the documents found will replace it */
	const char *name = join->columns->prefix;

	if (!join->key.is_text)
		return join->key.outer.path;
	pipeline->translation.compares_text = true;
	mongo_pipeline_append(pipeline, "$set",
						  mongo_from_template(TEXT_KEY_TEMPLATE, mongo_field_path(join->key.outer.path),
											  mongo_utf8(OBJECTID_PATTERN), mongo_utf8(name)));
	return name;
}

/*
 * Appends the pipeline in which an outer join's inner documents are tested; returns false if a
 * clause is not exact, or needs the outer documents, which that pipeline lacks.
 */
static bool
append_inner_pipeline(const MongoJoin *join, List *clauses, MongoTranslation *translation,
					  bson_t *lookup)
{
	const MongoRelation *inner = join->inner->fdw_private;
	MongoColumns *outer = translation->columns;
	BsonArray	stages = mongo_array_create();
	MongoScanClauses classified;

	foreach_node(RestrictInfo, rinfo, clauses)
	{
		if (!bms_is_subset(rinfo->clause_relids, join->inner->relids))
			return false;
	}
	translation->columns = mongo_columns_under(inner->columns, NULL);
	mongo_classify_clauses(translation, NULL, clauses, false, &classified);
	translation->columns = outer;
	mongo_array_append_template(&stages, "{$match: {@1: {$ne: null}}}",
								mongo_utf8(join->key.inner.path));
	if (!bson_empty(classified.filter))
		mongo_array_append_template(&stages, "{$match: @1}", mongo_document(classified.filter));
	mongo_append(lookup, "pipeline", mongo_array(stages.bson));
	return classified.local == NIL;
}

/* Returns a copy of the columns 'outer', with those of the join's inner table. */
static MongoColumns *
joined_columns(const MongoJoin *join, MongoColumns *outer)
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

/* Appends the stages of the join, with these columns; returns false if a clause is not exact. */
static bool
append_join(const MongoJoin *join, MongoColumns *columns, MongoPipeline *pipeline)
{
	const MongoTableOptions *inner = ((MongoRelation *) join->inner->fdw_private)->options;
	List	   *inner_clauses = list_concat_copy(join->inner->baserestrictinfo, join->clauses);
	bool		is_outer = join->type == JOIN_LEFT;
	const char *prefix = join->columns->prefix;

	if (!is_outer)
		mongo_pipeline_append(pipeline, "$match", key_not_null(join));
	if (prefix != NULL)
	{
		bson_t	   *lookup = mongo_from_template("{from: @1, localField: @2, foreignField: @3}",
												 mongo_utf8(mongo_to_utf8(inner->collection)),
												 mongo_utf8(append_local_key(join, pipeline)),
												 mongo_utf8(join->key.inner.path));

		if (is_outer && !append_inner_pipeline(join, inner_clauses, &pipeline->translation, lookup))
			return false;
		mongo_append(lookup, "as", mongo_utf8(prefix));
		mongo_pipeline_append(pipeline, "$lookup", lookup);
		mongo_pipeline_append(pipeline, "$unwind",
							  mongo_from_template(is_outer ?
												  "{path: @1, preserveNullAndEmptyArrays: true}" :
												  "{path: @1}", mongo_field_path(prefix)));
	}
	pipeline->translation.columns = columns;
	return append_match(pipeline, is_outer ? join->filters : inner_clauses);
}

/*
 * Makes the stages of a join; returns NULL unless all clauses have exact translations, and MongoDB
 * may test them together with those of the tables.
 */
static const MongoPipeline *
make_stages(PlannerInfo *root, RelOptInfo *joinrel)
{
	const MongoRelation *relation = joinrel->fdw_private;
	const MongoJoin *join = relation->join;
	const MongoPipeline *outer = mongo_pipeline_of(root, join->outer);
	MongoPipeline *pipeline = palloc(sizeof(MongoPipeline));
	MongoTranslation *translation = &pipeline->translation;

	if (outer == NULL)
		return NULL;
	*pipeline = mongo_pipeline_copy(outer);

	/*
	 * the command's collation, not that of the inner collection, counts in
	 * $lookup
	 */
	translation->compares_text |= ((MongoRelation *) join->inner->fdw_private)->calls_match;
	return append_join(join, relation->columns, pipeline) &&
		!(translation->keeps_collation && translation->compares_text) &&
		!(translation->variables != NIL &&
		  mongo_feature_is_disabled(translation->disabled, MONGO_FEATURE_LET)) &&
		mongo_join_is_secure(root, joinrel, join->restrictions, pipeline->stages) ? pipeline : NULL;
}

/*
 * mongo_pipeline_of
 *		Returns the stages of a foreign table or a join to which others may be appended, or NULL.
 *
 * NULL if the relation is lateral, or if PostgreSQL has to test any of its conditions.  The result
 * is the relation's, which makes it when it is asked for the first time; mongo_pipeline_copy()
 * makes one to append to.
 */
const MongoPipeline *
mongo_pipeline_of(PlannerInfo *root, RelOptInfo *rel)
{
	MongoRelation *relation = rel->fdw_private;
	MemoryContext old_context;

	if (!mongo_enable_pushdown || relation == NULL)
		return NULL;
	if (rel->reloptkind == RELOPT_JOINREL)
	{
		if (relation->asked_for_pipeline)
			return relation->pipeline;
		relation->asked_for_pipeline = true;
		old_context = mongo_enter_planning(rel);
		relation->pipeline = make_stages(root, rel);
		MemoryContextSwitchTo(old_context);
		return relation->pipeline;
	}
	if (!IS_SIMPLE_REL(rel) || !bms_is_empty(rel->lateral_relids) || relation->matches_outer ||
		(root->hasPseudoConstantQuals && mongo_has_pseudoconstant(rel->baserestrictinfo)))
		return NULL;
	return mongo_exact_pipeline(rel);
}

/*-------------------------------------------------------------------------
 * Which joins MongoDB can compute exactly, and what that costs.
 *
 * Array elements need no join with their own document, because they come with it.  Otherwise a
 * $lookup is considered only if an index finds the inner documents: without one, MongoDB would
 * read the whole collection for every outer document.  Even with an index it takes many times
 * as long as fetching the documents and a hash join.  So it pays only for few outer documents
 * or far more inner ones, as the costs show.
 *-------------------------------------------------------------------------
 */

/* Tells whether a PlaceHolderVar must be evaluated within this join. */
static bool
has_placeholders(const PlannerInfo *root, const RelOptInfo *joinrel)
{
	foreach_ptr(PlaceHolderInfo, info, root->placeholder_list)
	{
		if (bms_overlap(info->ph_eval_at, joinrel->relids))
			return true;
	}
	return false;
}

/* Tells whether the join's output consists of fields of its documents. */
static bool
output_is_fields(const RelOptInfo *joinrel, MongoColumns *columns)
{
	ListCell   *cell;

	foreach(cell, joinrel->reltarget->exprs)
	{
		MongoField	field;

		/* a domain's constraints are tested when its value is read */
		if (!IsA(lfirst(cell), Var) ||
			!mongo_field_of_node(columns, lfirst(cell), &field) ||
			!mongo_path_is_addressable(field.path))
			return false;
	}
	return true;
}

/*
 * Tells whether a $lookup can join the tables.  Only collections of one database, with the same
 * read preference and json format, and only stored documents.
 */
static bool
may_look_up(const MongoRelation *outer, const MongoRelation *inner)
{
	return mongo_feature_enabled(outer->options, MONGO_FEATURE_LOOKUP) &&
		mongo_feature_enabled(inner->options, MONGO_FEATURE_LOOKUP) &&
		outer->serverid == inner->serverid && !mongo_is_pipeline_table(inner->options) &&
		!mongo_keeps_collation(inner) &&
		strcmp(outer->options->database, inner->options->database) == 0 &&
		outer->options->canonical_json == inner->options->canonical_json &&
		outer->options->read_mode == inner->options->read_mode;
}

/*
 * mongo_split_join_clauses
 *		Splits a join's RestrictInfos into 'clauses', which decide what is joined, and 'filters',
 *		which are tested above an outer join.
 */
void
mongo_split_join_clauses(const RelOptInfo *joinrel, JoinType type, const List *restrictlist,
						 List **clauses, List **filters)
{
	*clauses = *filters = NIL;
	foreach_node(RestrictInfo, rinfo, restrictlist)
	{
		if (IS_OUTER_JOIN(type) && RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
			*filters = lappend(*filters, rinfo);
		else
			*clauses = lappend(*clauses, rinfo);
	}
}

/* Tells whether an expression reads a field that unwinding replaces, or a parent of it. */
static bool
reads_replaced(const MongoJoin *join, const MongoTableOptions *unwound, List *expressions)
{
	const MongoRelation *inner = join->inner->fdw_private;

	return mongo_unwound_depth(unwound, inner->columns, (Node *) expressions) > 0;
}

/*
 * Tells whether the outer rows are elements of the inner table's documents, joined by their _id,
 * and the query reads no field that unwinding replaces.
 */
static bool
is_with_parent(const RelOptInfo *joinrel, const MongoJoin *join)
{
	const MongoRelation *inner = join->inner->fdw_private;
	const MongoField *outer_key = &join->key.outer;
	const MongoTableOptions *unwound = outer_key->columns->derivation;

	return join->type == JOIN_INNER && unwound != NULL && unwound->unwind != NULL &&
		unwound->pipeline == NULL && outer_key->columns->prefix == NULL &&
		strcmp(unwound->collection, inner->options->collection) == 0 && !inner->has_barrier &&
		strcmp(outer_key->path, "_id") == 0 && join->key.unique &&
		outer_key->type == join->key.inner.type && outer_key->typmod == join->key.inner.typmod &&
		outer_key->bson_type == join->key.inner.bson_type &&
	/* a text _id can be a String and an ObjectId */
		(!join->key.is_text || outer_key->bson_type != BSON_TYPE_EOD) &&
		!reads_replaced(join, unwound, joinrel->reltarget->exprs) &&
		!reads_replaced(join, unwound, get_actual_clauses(join->inner->baserestrictinfo)) &&
		!reads_replaced(join, unwound, get_actual_clauses(join->clauses));
}

/*
 * mongo_join_key_selectivity
 *		Returns the share of all pairs of an outer row and an inner document that have equal keys.
 */
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

static void
estimate_join(PlannerInfo *root, MongoJoin *join)
{
	const MongoRelation *outer = join->outer->fdw_private;
	const MongoRelation *inner = join->inner->fdw_private;
	Cost		lookup_cost = outer->options->fdw_lookup_cost;
	double		outer_rows = join->outer->rows;
	double		found = outer_rows * join->inner->tuples *
		mongo_join_key_selectivity(root, join->outer, join->inner, join->key.rinfo);

	if (outer->join != NULL)
	{
		join->setup_cost = outer->join->setup_cost;
		join->cost = outer->join->cost;
	}
	else
		join->cost = mongo_examined_cost(join->outer, outer->examined_rows);
	if (!join->with_parent)
	{
		if (join->key.unique)
			found = Min(found, outer_rows);
		join->setup_cost += MONGO_COST_LOOKUP_SETUP * lookup_cost;
		join->cost += outer_rows * lookup_cost * MONGO_COST_LOOKUP +
			Max(found - outer_rows, 0) * MONGO_COST_UNIT * MONGO_COST_FOUND_DOCUMENT;
	}
	else if (outer->join == NULL)

		/*
		 * nothing is looked up, and conditions on the documents are tested
		 * before unwinding, so that indexes serve them too
		 */
		join->cost = mongo_examined_cost(join->outer, outer->examined_rows *
										 Min(inner->examined_rows / Max(join->inner->tuples, 1), 1));
}

/* Describes and estimates the join; returns false if it is known not to be pushed down. */
static bool
describe_join(PlannerInfo *root, RelOptInfo *joinrel, MongoJoin *join)
{
	const MongoRelation *outer = join->outer->fdw_private;
	const MongoRelation *inner = join->inner->fdw_private;

	mongo_split_join_clauses(joinrel, join->type, join->restrictions, &join->clauses,
							 &join->filters);
	if (mongo_has_pseudoconstant(join->restrictions) ||
		!find_join_key(outer->columns, inner, join->clauses, &join->key))
		return false;
	join->clauses = list_delete_ptr(join->clauses, join->key.rinfo);
	/* conditions that hide rows need type checks, as in a scan */
	if (inner->has_barrier && join->inner->baserestrictinfo != NIL)
		return false;
	join->with_parent = is_with_parent(joinrel, join);
	estimate_join(root, join);
	return true;
}

/* Returns the join's MongoRelation, with the columns of both sides. */
static MongoRelation *
create_join_relation(const RelOptInfo *joinrel, MongoJoin *join)
{
	const MongoRelation *outer = join->outer->fdw_private;
	const MongoRelation *inner = join->inner->fdw_private;
	MongoRelation *relation = palloc(sizeof(MongoRelation));
	const char *prefix = join->with_parent ? NULL :
		mongo_unused_field(outer->columns, psprintf("t%u", join->inner->relid));

	join->columns = mongo_columns_under(inner->columns, prefix);
	*relation = *outer;
	relation->columns = joined_columns(join, outer->columns);
	relation->pipeline = NULL;
	relation->asked_for_pipeline = false;
	relation->known = NIL;
	relation->all_exact = true;
	relation->analyzed_rows = 0;
	relation->remote_rows = joinrel->rows;
	relation->examined_rows = joinrel->rows;
	relation->join = memcpy(palloc(sizeof(MongoJoin)), join, sizeof(MongoJoin));
	relation->unwinds = join->with_parent && outer->join == NULL && outer->unwinds &&
		!outer->has_barrier && outer->score == NULL;
	relation->unwound_rows = relation->unwinds ? joinrel->rows : 0;
	return relation;
}

/* Tells whether the relation has a pipeline, or may have one, as a join whose stages are not made. */
static bool
may_have_pipeline(PlannerInfo *root, RelOptInfo *rel)
{
	const MongoRelation *relation = rel->fdw_private;

	return (rel->reloptkind == RELOPT_JOINREL && relation != NULL &&
			!relation->asked_for_pipeline) || mongo_pipeline_of(root, rel) != NULL;
}

/*
 * Tells whether the inner side is a base relation, and MongoDB can join the sides at all.  Not in
 * an UPDATE or SELECT FOR UPDATE, which joins rows again one by one if others have changed them.
 */
static bool
is_left_deep(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
			 RelOptInfo *innerrel, JoinType jointype)
{
	const Query *parse = root->parse;

	return (jointype == JOIN_INNER || jointype == JOIN_LEFT) &&
		(parse->commandType == CMD_SELECT || parse->commandType == CMD_INSERT) &&
		parse->rowMarks == NIL && root->rowMarks == NIL &&
		innerrel->reloptkind == RELOPT_BASEREL &&
		bms_is_empty(joinrel->lateral_relids) && !has_placeholders(root, joinrel) &&
		may_have_pipeline(root, outerrel) &&
		mongo_pipeline_of(root, innerrel) != NULL &&
		mongo_mismatches_are(outerrel->fdw_private, MONGO_TYPE_MISMATCH_ERROR) &&
		mongo_mismatches_are(innerrel->fdw_private, MONGO_TYPE_MISMATCH_ERROR) &&
		may_look_up(outerrel->fdw_private, innerrel->fdw_private);
}

/*
 * Makes this the join's MongoRelation if it is the cheapest so far, and adds a path with one
 * command if that is exact and add_path() may keep it.
 */
static void
offer_join(PlannerInfo *root, RelOptInfo *joinrel, MongoJoin *join)
{
	MongoRelation *earlier = joinrel->fdw_private;
	MongoRelation *relation;
	Path	   *path;

	if (!describe_join(root, joinrel, join) ||
		(earlier != NULL && earlier->join->cost <= join->cost))
		return;
	relation = create_join_relation(joinrel, join);
	if (!output_is_fields(joinrel, relation->columns))
		return;
	joinrel->fdw_private = relation;
	path = mongo_foreign_path(root, joinrel, NULL, mongo_estimate_plain_scan(joinrel), NIL, NULL,
							  NULL, NULL);
	if (!mongo_path_may_pay(joinrel, path))
	{
		/* an earlier path is planned by what describes it */
		if (earlier != NULL && earlier->pipeline != NULL)
			joinrel->fdw_private = earlier;
	}
	else if (mongo_pipeline_of(root, joinrel) != NULL)
		add_path(joinrel, path);
	else
		joinrel->fdw_private = earlier;
}

/*
 * mongo_get_foreign_join_paths
 *		Adds a path that executes the join as one command, if that returns exactly PostgreSQL's
 *		result; a callback of PostgreSQL.
 *
 * If there are several such paths for a join relation, its fdw_private describes the cheapest.
 */
void
mongo_get_foreign_join_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
							 RelOptInfo *innerrel, JoinType jointype, JoinPathExtraData *extra)
{
	MemoryContext old_context = mongo_enter_planning(joinrel);

	if (!mongo_has_partial_results(joinrel) &&
		is_left_deep(root, joinrel, outerrel, innerrel, jointype))
		offer_join(root, joinrel, &(MongoJoin) {
			.type = jointype, .outer = outerrel, .inner = innerrel, .restrictions = extra->restrictlist
		});
	MemoryContextSwitchTo(old_context);
}
