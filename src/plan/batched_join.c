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
	bool		indexed;		/* an index finds them */
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
 * can_ask: can MongoDB be asked for the documents with these keys?  Values that are
 * ranges to it, as numeric's are, would be too many of these.
 */
static bool
can_ask(PlannerInfo *root, RelOptInfo *innerrel, BatchedKey *key)
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
	key->share = 1;
	key->unique = false;
	key->indexed = condition.grade != MONGO_NOT_SHIPPABLE &&
		mongo_index_finds(root, innerrel, &condition, &key->share, &key->unique);
	/* a pipeline may give other documents the second time */
	return condition.grade != MONGO_NOT_SHIPPABLE &&
		(key->indexed || !mongo_is_derived(relation->options)) &&
		mongo_is_securely_promotable(innerrel, key->rinfo, match);
}

/* try_clause: is it "something of the outer side = field"? */
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
	return key->condition != NULL && can_ask(root, innerrel, key);
}

/* is_better_key: has it an index, and does it find a single document? */
static bool
is_better_key(const BatchedKey *key, const BatchedKey *other)
{
	if (key->indexed != other->indexed)
		return key->indexed;
	return key->unique && !other->unique;
}

/* find_key: the best of the clauses. */
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
		if (!found || is_better_key(&candidate, key))
			*key = candidate;
		found = true;
	}
	return found;
}

/* What is asked for and what is found, in all. */
typedef struct BatchedRows
{
	double		keys;
	double		examined;
	double		found;
} BatchedRows;

/* estimate_rows: with so many batches; of them, those that meet the table's conditions. */
static BatchedRows
estimate_rows(PlannerInfo *root, const Path *outer, RelOptInfo *innerrel,
			  const BatchedKey *key, double batches)
{
	const MongoRelation *inner = innerrel->fdw_private;
	double		tuples = Max(innerrel->tuples, 1);
	BatchedRows rows = {.keys = mongo_batched_keys(root, key->outer, outer->rows, batches)};
	double		with_key = rows.keys * tuples *
		mongo_join_key_selectivity(root, outer->parent, innerrel, key->rinfo);

	rows.examined = with_key * key->share;
	if (key->unique)
		rows.examined = Min(rows.examined, rows.keys);
	rows.found = Min(rows.examined, with_key * Min(inner->remote_rows / tuples, 1));
	return rows;
}

/*
 * indexed_cost: of a find for each batch.  The first key is no dearer than it is to a
 * nested loop that asks for one at a time, and the find a little cheaper: so that this
 * is the plan where one row is expected, for there may be thousands.
 */
static Cost
indexed_cost(const RelOptInfo *innerrel, const BatchedRows *rows, double batches)
{
	const MongoTableOptions *options = ((MongoRelation *) innerrel->fdw_private)->options;
	double		tuples = Max(innerrel->tuples, 1);

	return batches * options->fdw_startup_cost * MONGO_COST_BATCHED_FIND +
		Max(rows->keys - 1, 0) * MONGO_COST_BATCHED_KEY * options->fdw_tuple_cost +
		rows->examined * mongo_examined_cost(innerrel, tuples) / tuples +
		rows->found * options->fdw_tuple_cost;
}

/*
 * unindexed_cost: of looking for the first batch's keys in all documents that meet the
 * table's conditions, and then, if there are more, of fetching these documents.
 */
static Cost
unindexed_cost(const RelOptInfo *innerrel, const BatchedRows *rows, double batches)
{
	const MongoRelation *inner = innerrel->fdw_private;
	const MongoTableOptions *options = inner->options;
	Cost		look = options->fdw_startup_cost +
		mongo_examined_cost(innerrel, inner->examined_rows);
	Cost		cost = look + rows->found / batches * options->fdw_tuple_cost;

	if (batches > 1)
		cost += look + inner->remote_rows * (options->fdw_tuple_cost + cpu_tuple_cost);
	return cost;
}

/* estimate_batched_join: of the outer side once, and of asking for its rows' keys. */
static void
estimate_batched_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *innerrel,
					  const BatchedKey *key, List *join_clauses, CustomPath *path)
{
	const MongoTableOptions *options = ((MongoRelation *) innerrel->fdw_private)->options;
	const Path *outer = linitial(path->custom_paths);
	Path	   *inner_path = lsecond(path->custom_paths);
	double		batches = Max(ceil(outer->rows / MONGO_COST_BATCHED_ROWS), 1);
	BatchedRows rows = estimate_rows(root, outer, innerrel, key, batches);
	QualCost	quals;
	Cost		cost;

	cost_qual_eval(&quals, join_clauses, root);

	/* what EXPLAIN shows: a find's part */
	inner_path->rows = clamp_row_est(rows.found / batches);
	inner_path->startup_cost = options->fdw_startup_cost;
	inner_path->total_cost = options->fdw_startup_cost +
		inner_path->rows * options->fdw_tuple_cost;

	cost = key->indexed ? indexed_cost(innerrel, &rows, batches) :
		unindexed_cost(innerrel, &rows, batches);
	cost += outer->rows * 2 * cpu_operator_cost +
		rows.found * (cpu_tuple_cost + quals.per_tuple + innerrel->baserestrictcost.per_tuple);

	path->path.rows = joinrel->rows;
	path->path.startup_cost = outer->startup_cost + quals.startup +
		joinrel->reltarget->cost.startup + options->fdw_startup_cost *
		(key->indexed ? MONGO_COST_BATCHED_FIND : 1);
	path->path.total_cost = outer->total_cost + quals.startup +
		joinrel->reltarget->cost.startup + cost +
		joinrel->rows * (cpu_tuple_cost + joinrel->reltarget->cost.per_tuple);
}

/* output_var: the same Var among the outputs, or NULL; so a placeholder. */
static const Var *
output_var(const List *outputs, const Var *var)
{
	ListCell   *cell;

	foreach(cell, outputs)
	{
		const Var  *output = lfirst(cell);

		if (IsA(output, Var) && output->varno == var->varno &&
			output->varattno == var->varattno)
			return output;
	}
	return NULL;
}

static const PlaceHolderVar *
output_placeholder(const List *outputs, const PlaceHolderVar *placeholder)
{
	ListCell   *cell;

	foreach(cell, outputs)
	{
		const PlaceHolderVar *output = lfirst(cell);

		if (IsA(output, PlaceHolderVar) && output->phid == placeholder->phid)
			return output;
	}
	return NULL;
}

/*
 * unify_nulling
 *		Let each Var and PlaceHolderVar have the outer joins of the same one among
 *		the 'outputs', or none.
 *
 * The clauses see the inner side's Vars before this join, the target list after
 * it; both are to be found among the columns of the scan.
 */
static bool
unify_nulling(Node *node, void *outputs)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		mongo_copy_nulling((Var *) node, output_var(outputs, (Var *) node));
		return false;
	}
	if (IsA(node, PlaceHolderVar))
		mongo_copy_placeholder_nulling((PlaceHolderVar *) node,
									   output_placeholder(outputs, (PlaceHolderVar *) node));
	return expression_tree_walker(node, unify_nulling, outputs);
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

	/*
	 * a pair of rows: all that the outer plan gives, then the foreign scan; a
	 * second scan gives the same
	 */
	foreach(plan_cell, plans)
	{
		if (foreach_current_index(plan_cell) > 1)
			break;
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
				  list_concat(pull_var_clause((Node *) joinrel->reltarget->exprs,
											  PVC_RECURSE_PLACEHOLDERS),
							  pull_var_clause((Node *) joinrel->reltarget->exprs,
											  PVC_INCLUDE_PLACEHOLDERS)));
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

/* plain_path: of all documents, where no index finds those with a key. */
static Path *
plain_path(PlannerInfo *root, RelOptInfo *innerrel)
{
	const MongoRelation *inner = innerrel->fdw_private;
	Cost		startup_cost;
	Cost		total_cost;

	mongo_estimate_scan(innerrel, inner->remote_rows, inner->examined_rows,
						&startup_cost, &total_cost);
	return (Path *) mongo_foreignscan_path(root, innerrel, NULL, innerrel->rows,
										   startup_cost, total_cost, NIL, NULL, NULL, NIL);
}

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
	if (!key->indexed)
		path->custom_paths = lappend(path->custom_paths, plain_path(root, innerrel));
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
