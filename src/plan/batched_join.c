/*-------------------------------------------------------------------------
 *
 * batched_join.c
 *		Planning nested loops that ask for many rows' keys at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"

#include "bson_memory.h"
#include "comparison.h"
#include "cost.h"
#include "derived.h"
#include "index_use.h"
#include "join.h"
#include "plan_nodes.h"
#include "planning_state.h"
#include "security.h"
#include "settings.h"

#include <math.h>

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

static set_join_pathlist_hook_type next_hook = NULL;
static const CustomScanMethods *scan_methods = NULL;

/* How the documents for outer rows are found. */
typedef struct BatchedKey
{
	RestrictInfo *rinfo;
	Expr	   *outer;
	Expr	   *inner;
	Expr	   *condition;		/* inner = ANY (keys) */
	bool		unique;
	double		share;			/* of mongo_index_finds() */
	MongoBatchedJoin join;
} BatchedKey;

/* any_of_keys: inner = ANY (keys), whatever these will be. */
static Expr *
any_of_keys(Oid operator, Oid collation, Expr *inner, Oid key_type)
{
	ScalarArrayOpExpr *condition = makeNode(ScalarArrayOpExpr);
	CaseTestExpr *keys = makeNode(CaseTestExpr);

	keys->typeId = get_array_type(key_type);
	keys->typeMod = -1;
	if (!OidIsValid(keys->typeId))
		return NULL;
	condition->opno = operator;
	condition->opfuncid = get_opcode(operator);
	condition->useOr = true;
	condition->inputcollid = collation;
	condition->args = list_make2(inner, keys);
	condition->location = -1;
	return (Expr *) condition;
}

/*
 * is_served: does an index find the documents with these keys?  Values that
 * are ranges to MongoDB, as numeric's are, would be too many of these.
 */
static bool
is_served(PlannerInfo *root, RelOptInfo *innerrel, BatchedKey *key)
{
	const MongoRelation *relation = innerrel->fdw_private;
	bson_t	   *match = bson_create_in(CurrentMemoryContext);
	MongoTranslation translation = mongo_translation_of(relation);
	const MongoComparison *comparison;
	MongoCondition condition;
	MongoField	field;

	if (!mongo_field_of_node(relation->columns, (Node *) key->inner, &field))
		return false;
	comparison = mongo_comparison_lookup(getBaseType(field.type), field.typmod);
	if (comparison == NULL || comparison->append_points == NULL)
		return false;
	condition = mongo_translate_condition(&translation, key->condition, match);
	/* one key of the list, for what a key costs */
	condition.seek = MONGO_SEEK_VALUE;
	condition.unique = strcmp(field.path, "_id") == 0 && !mongo_is_derived(relation->options);
	return condition.grade != MONGO_NOT_SHIPPABLE &&
		mongo_index_finds(root, innerrel, &condition, &key->share, &key->unique) &&
		mongo_is_securely_promotable(innerrel, key->rinfo, match);
}

/* try_clause: is it "something of the outer side = indexed field"? */
static bool
try_clause(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel,
		   RestrictInfo *rinfo, BatchedKey *key)
{
	OpExpr	   *clause = (OpExpr *) rinfo->clause;
	bool		inner_is_left;
	Oid			operator;

	if (!IsA(clause, OpExpr) || !rinfo->can_join ||
		contain_volatile_functions((Node *) clause) ||
		contain_subplans((Node *) clause))
		return false;
	inner_is_left = bms_equal(rinfo->left_relids, innerrel->relids);
	if (inner_is_left ? !bms_is_subset(rinfo->right_relids, outerrel->relids) :
		!(bms_equal(rinfo->right_relids, innerrel->relids) &&
		  bms_is_subset(rinfo->left_relids, outerrel->relids)))
		return false;

	operator = inner_is_left ? clause->opno : get_commutator(clause->opno);
	if (!OidIsValid(operator) ||
		!get_op_hash_functions(operator, &key->join.inner_hash, &key->join.outer_hash))
		return false;
	key->rinfo = rinfo;
	key->inner = inner_is_left ? linitial(clause->args) : lsecond(clause->args);
	key->outer = inner_is_left ? lsecond(clause->args) : linitial(clause->args);
	key->join.collation = clause->inputcollid;
	key->join.key_type = getBaseType(exprType((Node *) key->outer));
	key->condition = any_of_keys(operator, clause->inputcollid, key->inner,
								 key->join.key_type);
	return key->condition != NULL && is_served(root, innerrel, key);
}

/* find_key: the best of the clauses; one that finds a single document is better. */
static bool
find_key(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel, List *clauses,
		 BatchedKey *key)
{
	bool		found = false;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		BatchedKey	candidate = {0};

		if (!try_clause(root, outerrel, innerrel, lfirst_node(RestrictInfo, cell),
						&candidate))
			continue;
		if (!found || (candidate.unique && !key->unique))
			*key = candidate;
		found = true;
	}
	return found;
}

/* estimate_batched_join: of the outer side once, and of a find for each batch of its rows. */
static void
estimate_batched_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *innerrel,
					  const BatchedKey *key, List *join_clauses, CustomPath *path)
{
	const MongoRelation *inner = innerrel->fdw_private;
	const MongoTableOptions *options = inner->options;
	const Path *outer = linitial(path->custom_paths);
	Path	   *inner_path = lsecond(path->custom_paths);
	double		batches = Max(ceil(outer->rows / MONGO_COST_BATCHED_ROWS), 1);
	double		tuples = Max(innerrel->tuples, 1);
	double		keys = mongo_batched_keys(root, key->outer, outer->rows, batches);
	double		with_key = keys * tuples *
		mongo_join_key_selectivity(root, outer->parent, innerrel, key->rinfo);
	double		examined = with_key * key->share;
	double		found;
	QualCost	quals;
	Cost		cost;

	if (key->unique)
		examined = Min(examined, keys);
	found = Min(examined, with_key * Min(inner->remote_rows / tuples, 1));
	cost_qual_eval(&quals, join_clauses, root);

	/* what EXPLAIN shows: a find's part */
	inner_path->rows = clamp_row_est(found / batches);
	inner_path->startup_cost = options->fdw_startup_cost;
	inner_path->total_cost = options->fdw_startup_cost +
		inner_path->rows * options->fdw_tuple_cost;

	cost = batches * options->fdw_startup_cost +
		keys * MONGO_COST_BATCHED_KEY * options->fdw_tuple_cost +
		outer->rows * 2 * cpu_operator_cost +
		examined * mongo_examined_cost(innerrel, tuples) / tuples +
		found * (options->fdw_tuple_cost + cpu_tuple_cost + quals.per_tuple) +
		found * innerrel->baserestrictcost.per_tuple;

	path->path.rows = joinrel->rows;
	path->path.startup_cost = outer->startup_cost + options->fdw_startup_cost +
		quals.startup + joinrel->reltarget->cost.startup;
	path->path.total_cost = path->path.startup_cost +
		outer->total_cost - outer->startup_cost + cost +
		joinrel->rows * (cpu_tuple_cost + joinrel->reltarget->cost.per_tuple);
}

/*
 * unify_nulling
 *		Let each Var have the outer joins of the same one among the Vars 'outputs',
 *		or none.
 *
 * The clauses see the inner side's Vars before this join, the target list after
 * it; both are to be found among the columns of the scan.
 */
static bool
unify_nulling(Node *node, void *outputs)
{
	Var		   *var = (Var *) node;
	const Var  *output = NULL;
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, Var))
		return expression_tree_walker(node, unify_nulling, outputs);
	foreach(cell, (List *) outputs)
	{
		const Var  *one = lfirst(cell);

		if (one->varno == var->varno && one->varattno == var->varattno)
			output = one;
	}
	mongo_copy_nulling(var, output);
	return false;
}

/* plan_batched_join: the callback of CustomPathMethods. */
static Plan *
plan_batched_join(PlannerInfo *root pg_attribute_unused(),
				  RelOptInfo *joinrel, CustomPath *path,
				  List *tlist, List *clauses pg_attribute_unused(), List *plans)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell   *cell;
	ListCell   *plan_cell;

	/* a pair of rows: all that the outer plan gives, then the foreign scan */
	foreach(plan_cell, plans)
	{
		foreach(cell, ((Plan *) lfirst(plan_cell))->targetlist)
		{
			TargetEntry *entry = lfirst_node(TargetEntry, cell);

			scan->custom_scan_tlist =
				lappend(scan->custom_scan_tlist,
						makeTargetEntry(copyObject(entry->expr),
										list_length(scan->custom_scan_tlist) + 1,
										NULL, false));
		}
	}
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = copyObject(lthird(path->custom_private));
	scan->custom_exprs = copyObject(lsecond(path->custom_private));
	unify_nulling((Node *) list_make3(scan->custom_scan_tlist, scan->scan.plan.qual,
									  scan->custom_exprs),
				  pull_var_clause((Node *) joinrel->reltarget->exprs,
								  PVC_RECURSE_PLACEHOLDERS));
	scan->custom_private = linitial(path->custom_private);
	scan->custom_plans = plans;
	scan->flags = path->flags;
	scan->methods = scan_methods;
	return (Plan *) scan;
}

/* A clause, and what says when its turn is. */
typedef struct OrderedClause
{
	RestrictInfo *rinfo;
	Cost		cost;
	int			number;
} OrderedClause;

/* compare_clauses: for qsort(). */
static int
compare_clauses(const void *left, const void *right)
{
	const OrderedClause *one = left;
	const OrderedClause *other = right;

	if (one->rinfo->security_level != other->rinfo->security_level)
		return one->rinfo->security_level < other->rinfo->security_level ? -1 : 1;
	if (one->cost != other->cost)
		return one->cost < other->cost ? -1 : 1;
	return one->number - other->number;
}

/*
 * in_order: bare clauses as PostgreSQL would evaluate them, those of a security
 * barrier first and then by cost; see order_qual_clauses() in createplan.c.
 */
static List *
in_order(PlannerInfo *root, List *rinfos)
{
	int			count = list_length(rinfos);
	OrderedClause *clauses = palloc(sizeof(OrderedClause) * Max(count, 1));
	List	   *result = NIL;

	for (int i = 0; i < count; i++)
	{
		QualCost	cost;

		clauses[i].rinfo = list_nth_node(RestrictInfo, rinfos, i);
		clauses[i].number = i;
		cost_qual_eval_node(&cost, (Node *) clauses[i].rinfo, root);
		clauses[i].cost = cost.per_tuple;
	}
	qsort(clauses, count, sizeof(OrderedClause), compare_clauses);
	for (int i = 0; i < count; i++)
		result = lappend(result, clauses[i].rinfo->clause);
	return result;
}

static const CustomPathMethods path_methods = {
	.CustomName = "MongoDB Batched Join",
	.PlanCustomPath = plan_batched_join,
};

/* add_path_for: all is known but the costs. */
static void
add_path_for(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *innerrel,
			 Path *outer_path, const BatchedKey *key, List *join_clauses,
			 List *other_clauses)
{
	CustomPath *path = makeNode(CustomPath);
	Path	   *inner_path;

	inner_path = (Path *) mongo_foreignscan_path(root, innerrel, NULL, innerrel->rows,
												 0, 0, NIL, NULL, NULL,
												 list_make1(key->condition));
	path->path.pathtype = T_CustomScan;
	path->path.parent = joinrel;
	path->path.pathtarget = joinrel->reltarget;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	path->custom_paths = list_make2(outer_path, inner_path);
	path->custom_private = list_make3(mongo_struct_to_list(&mongo_batched_join_type, &key->join),
									  list_make3(in_order(root, join_clauses),
												 key->outer, key->inner),
									  in_order(root, other_clauses));
	estimate_batched_join(root, joinrel, innerrel, key, join_clauses, path);
	add_path(joinrel, (Path *) path);
}

/*
 * is_ours: a foreign table that can be asked for keys?  It may be one that is
 * known to give no rows, of which nothing else is known then.
 */
static bool
is_ours(RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL && rel->fdwroutine != NULL &&
		rel->fdwroutine->GetForeignRelSize == mongo_get_foreign_rel_size &&
		rel->fdw_private != NULL && !IS_DUMMY_REL(rel) &&
		bms_is_empty(rel->lateral_relids);
}

/*
 * consider_batched_join
 *		The planner's set_join_pathlist_hook.
 */
static void
consider_batched_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
					  RelOptInfo *innerrel, JoinType type, JoinPathExtraData *extra)
{
	Path	   *outer_path = outerrel->cheapest_total_path;
	List	   *join_clauses;
	List	   *other_clauses;
	BatchedKey	key;
	MemoryContext old_context;

	if (next_hook != NULL)
		next_hook(root, joinrel, outerrel, innerrel, type, extra);

	if (!mongo_enable_pushdown || !mongo_enable_batched_joins || !is_ours(innerrel) ||
		!mongo_join_type_is_known(type) || !mongo_is_plain_query(root) ||
		!bms_is_empty(joinrel->lateral_relids) || root->hasPseudoConstantQuals ||
		outer_path == NULL || outer_path->param_info != NULL)
		return;

	old_context = mongo_enter_planning(joinrel);
	mongo_check_planning_state(innerrel);
	mongo_split_join_clauses(joinrel, type, extra->restrictlist, &join_clauses,
							 &other_clauses);
	if (find_key(root, outerrel, innerrel, join_clauses, &key))
	{
		key.join.type = type;
		key.join.all_rows = root->tuple_fraction <= 0;
		add_path_for(root, joinrel, innerrel, outer_path, &key, join_clauses,
					 other_clauses);
	}
	MemoryContextSwitchTo(old_context);
}

void
mongo_install_batched_joins(const CustomScanMethods *methods)
{
	scan_methods = methods;
	RegisterCustomScanMethods(methods);
	next_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = consider_batched_join;
}
