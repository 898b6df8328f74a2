/*-------------------------------------------------------------------------
 *
 * batched_join.c
 *		Plans joins that look up the keys of many outer rows at once.
 *
 * A nested loop over 10,000 rows with a foreign table on its inner side sends 10,000 finds.  A
 * batched join, a CustomScan, reads a batch of outer rows, requests all documents with any of
 * their keys by one find ($in), and joins them in PostgreSQL.  The result does not depend on
 * MongoDB's notion of equality: PostgreSQL evaluates all clauses on each pair of rows whose keys
 * have the same hash value.
 *
 * The plan has two children: the outer plan, and a foreign scan with the additional condition "key
 * = ANY (keys)".  The keys are not a Param but a CaseTestExpr, whose value is in the scan's
 * expression context.
 *
 * First the keys are chosen, by cost; then the path and the plan are made.  The hook, which
 * decides whether the join may be batched at all, is at the end.  src/exec/batched_join.c executes
 * the plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"
#include "plan_internal.h"
#include "options.h"
#include "translate.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/*-------------------------------------------------------------------------
 * The keys of a batched join, and what looking them up costs.
 *
 * If several columns must be equal, one field may be looked up, or several.  Each field has a
 * list of keys of its own, so documents may come with a combination of values that no outer
 * row has.  A hash of all keys excludes these.
 *-------------------------------------------------------------------------
 */

/* A clause "outer expression = field". */
typedef struct Key
{
	RestrictInfo *rinfo;
	MongoEquality equality;
	MongoCondition condition;	/* field = ANY (keys) */
	double		distinct;		/* keys looked up, in all batches */
	double		share;			/* of the documents, with a key of one batch */
} Key;

/* Keys that are looked up together. */
typedef struct Choice
{
	List	   *keys;			/* Key * */
	bool		indexed;		/* an index finds these documents */
	bool		unique;
	bool		grouped;		/* MongoDB returns the keys that it finds */
	double		share;			/* of mongo_index_finds() */
	double		found;			/* documents returned, in all batches */
	Cost		cost;			/* of looking up and returning them */
} Choice;

/* What is the same for all choices. */
typedef struct Search
{
	PlannerInfo *root;
	const Path *outer;
	RelOptInfo *innerrel;
	double		batches;		/* finds for all outer rows */
} Search;

/*
 * Returns the condition field = ANY (keys), before the keys are known.  The keys of all fields
 * looked up form a record; 'number' is the member with this field's keys.
 */
static Expr *
any_of_keys(const MongoEquality *equality, int number)
{
	ScalarArrayOpExpr *condition = makeNode(ScalarArrayOpExpr);
	FieldSelect *values = makeNode(FieldSelect);
	CaseTestExpr *record = makeNode(CaseTestExpr);

	record->typeId = RECORDOID;
	record->typeMod = -1;
	values->arg = (Expr *) record;
	values->fieldnum = number;
	values->resulttype = get_array_type(equality->key.type);
	values->resulttypmod = -1;
	values->resultcollid = get_typcollation(values->resulttype);
	condition->opno = equality->opno;
	condition->opfuncid = get_opcode(equality->opno);
	condition->useOr = true;
	condition->inputcollid = equality->key.collation;
	condition->args = list_make2(equality->field, values);
	condition->location = -1;
	return (Expr *) condition;
}

/*
 * mongo_batched_conditions
 *		Returns the conditions (Expr *) that find documents by these keys (MongoEquality *).
 */
List *
mongo_batched_conditions(const List *keys)
{
	List	   *conditions = NIL;
	ListCell   *cell;

	foreach(cell, keys)
		conditions = lappend(conditions,
							 any_of_keys(lfirst(cell), foreach_current_index(cell) + 1));
	return conditions;
}

/*
 * Tells whether MongoDB can find the documents with these keys.  Not if values are rendered as
 * ranges, such as numeric's; a list would contain too many of them.
 */
static bool
can_look_up(RelOptInfo *innerrel, Key *key)
{
	const MongoRelation *relation = innerrel->fdw_private;
	bson_t	   *match = mongo_bson_create();
	MongoTranslation translation = mongo_translation_of(relation);
	const MongoComparison *comparison;
	MongoField	field;

	if (!OidIsValid(get_array_type(key->equality.key.type)) ||
		!mongo_field_of_node(relation->columns, (Node *) key->equality.field, &field))
		return false;
	comparison = mongo_comparison_lookup(mongo_base_type(field.type), field.typmod, field.bson_type);
	if (comparison == NULL || comparison->append_points == NULL)
		return false;
	key->condition = mongo_translate_condition(&translation, any_of_keys(&key->equality, 1), match);
	/* one key of the list, to estimate its cost */
	key->condition.seek = MONGO_SEEK_VALUE;
	key->condition.unique = strcmp(field.path, "_id") == 0 && !mongo_is_pipeline_table(relation->options);
	return key->condition.exactness != MONGO_NOT_SHIPPABLE &&
		mongo_is_securely_promotable(innerrel, key->rinfo, match);
}

/*
 * Splits and translates a clause; its exactness is MONGO_NOT_SHIPPABLE if it is not a key.  All
 * this is the same for each outer side, and is kept with the table, unless the clause dies with a
 * join order.
 */
static const Key *
translate_clause(const Search *search, RestrictInfo *rinfo)
{
	MongoRelation *inner = search->innerrel->fdw_private;
	const Bitmapset *outer_relids = search->outer->parent->relids;
	MemoryContext old_context;
	Key		   *key;

	foreach_ptr(Key, known, inner->lookup_keys)
	{
		if (known->rinfo == rinfo && (bms_is_subset(rinfo->left_relids, outer_relids) ||
									  bms_is_subset(rinfo->right_relids, outer_relids)))
			return known;
	}
	old_context = mongo_enter_planning(search->innerrel);
	key = palloc0(sizeof(Key));
	key->rinfo = rinfo;
	if (!mongo_split_equality(search->root, search->innerrel, rinfo, outer_relids,
							  &key->equality) ||
		!can_look_up(search->innerrel, key))
		key->condition.exactness = MONGO_NOT_SHIPPABLE;
	if (GetMemoryChunkContext(rinfo) == CurrentMemoryContext)
		inner->lookup_keys = lappend(inner->lookup_keys, key);
	MemoryContextSwitchTo(old_context);
	return key;
}

/* Returns the clause as a key; NULL if it is not one. */
static Key *
try_clause(const Search *search, RestrictInfo *rinfo)
{
	const Key  *translated = rinfo->can_join ? translate_clause(search, rinfo) : NULL;
	Key		   *key;

	if (translated == NULL || translated->condition.exactness == MONGO_NOT_SHIPPABLE)
		return NULL;
	key = memcpy(palloc(sizeof(Key)), translated, sizeof(Key));
	key->distinct = mongo_batched_keys(search->root, key->equality.value, search->outer->rows,
									   search->batches);
	key->share = Min(1, key->distinct / search->batches *
					 mongo_join_key_selectivity(search->root, search->outer->parent,
												search->innerrel, rinfo));
	return key;
}

/*
 * Returns the number of index seeks for a batch.  A compound index is searched once for each value
 * of the first field, and then for each following value of the next field: those that occur or
 * those that are looked up, whichever are fewer.
 */
static double
count_seeks(const Search *search, const Choice *choice)
{
	double		documents = search->innerrel->tuples * choice->share;
	double		combinations = 1;
	double		seeks = 0;

	foreach_ptr(const Key, key, choice->keys)
	{
		combinations *= key->distinct / search->batches;
		seeks = seeks == 0 ? combinations : Min(combinations, seeks + documents);
		documents *= key->share;
	}
	return seeks;
}

/*
 * Returns the cost of a find for each batch.  The first key costs no more than in a nested loop
 * that looks up one key at a time, and the find costs a little less.  So this plan is chosen if
 * one outer row is expected, because there may be thousands.
 */
static Cost
indexed_cost(const Search *search, const Choice *choice, double examined)
{
	const MongoRelation *inner = search->innerrel->fdw_private;
	const Key  *first = linitial(choice->keys);
	double		more_seeks = count_seeks(search, choice) * search->batches - first->distinct;

	return search->batches * mongo_command_cost(inner) * MONGO_COST_BATCHED_FIND +
		Max(first->distinct - 1, 0) * MONGO_COST_BATCHED_KEY * MONGO_COST_UNIT +
		Max(more_seeks, 0) * MONGO_COST_BATCHED_SEEK * MONGO_COST_UNIT +
		mongo_indexed_cost(inner, examined, choice->unique ? 1 :
						   mongo_order_share(search->root, search->innerrel, first->condition.path,
											 (Node *) first->equality.field)) +
		mongo_transfer_cost(inner, choice->found, search->innerrel->reltarget);
}

/* Returns the cost of searching all documents of the table for the keys, in larger batches. */
static Cost
unindexed_cost(const Search *search, const Choice *choice)
{
	const MongoRelation *inner = search->innerrel->fdw_private;
	double		finds = Max(ceil(search->outer->rows / MONGO_COST_UNINDEXED_ROWS), 1);

	return finds * (mongo_command_cost(inner) +
					mongo_examined_cost(search->innerrel, inner->examined_rows)) +
		mongo_transfer_cost(inner, choice->found, search->innerrel->reltarget);
}

/* Fills in the number of documents found and the cost. */
static void
estimate_choice(const Search *search, Choice *choice)
{
	const MongoRelation *inner = search->innerrel->fdw_private;
	const Key  *first = linitial(choice->keys);
	double		tuples = Max(search->innerrel->tuples, 1);
	double		with_keys = search->batches * tuples;
	double		examined;
	ListCell   *cell;

	foreach(cell, choice->keys)
		with_keys *= ((Key *) lfirst(cell))->share;
	examined = with_keys * choice->share;
	if (choice->unique && list_length(choice->keys) == 1)
		examined = Min(examined, first->distinct);
	choice->found = Min(examined, with_keys * Min(inner->remote_rows / tuples, 1));
	choice->cost = choice->indexed ? indexed_cost(search, choice, examined) :
		unindexed_cost(search, choice);
}

/* Tells whether an index finds the documents of all these keys together. */
static bool
is_indexed(const Search *search, Choice *choice)
{
	List	   *conditions = NIL;
	ListCell   *cell;

	foreach(cell, choice->keys)
		conditions = lappend(conditions, &((Key *) lfirst(cell))->condition);
	choice->indexed = mongo_index_finds(search->root, search->innerrel, conditions,
										&choice->share, &choice->unique);
	if (!choice->indexed)
	{
		choice->unique = false;
		choice->share = 1;
	}
	return choice->indexed;
}

/* Returns the best single key: one with an index, and one that finds one document. */
static Choice
choose_one(const Search *search, const List *candidates)
{
	Choice		best = {0};
	ListCell   *cell;

	foreach(cell, candidates)
	{
		Choice		choice = {.keys = list_make1(lfirst(cell))};

		(void) is_indexed(search, &choice);
		if (best.keys == NIL || (choice.indexed && !best.indexed) ||
			(choice.indexed == best.indexed && choice.unique && !best.unique))
			best = choice;
	}
	estimate_choice(search, &best);
	return best;
}

static bool
has_field(const Choice *choice, const Key *key)
{
	ListCell   *cell;

	foreach(cell, choice->keys)
	{
		if (strcmp(((Key *) lfirst(cell))->condition.path, key->condition.path) == 0)
			return true;
	}
	return false;
}

/*
 * Adds another key to the choice; returns false if that is better for none.  It is better if the
 * same index finds both, and excludes more documents than it adds seeks.  Without an index it
 * always is, because all documents are examined anyway.
 */
static bool
extend(const Search *search, const List *candidates, Choice *choice)
{
	foreach_ptr(Key, key, candidates)
	{
		Choice		more = *choice;

		if (key->condition.path == NULL || has_field(choice, key))
			continue;
		more.keys = lappend(list_copy(choice->keys), key);
		if (is_indexed(search, &more) != choice->indexed)
			continue;
		estimate_choice(search, &more);
		if (choice->indexed && more.cost >= choice->cost)
			continue;
		*choice = more;
		return true;
	}
	return false;
}

/*
 * Has MongoDB return each key that it finds once, if that costs less: a semijoin needs no more of a
 * table whose only clause is the key.
 *
 * MongoDB then goes from key to key of an index (DISTINCT_SCAN), so the key must be a field as it
 * is, and nothing else may be tested or read: a $group of documents takes no less than sending
 * them.  A value that does not fit the column is a key, too, and raises its error.  Under a
 * collation of MongoDB's, 'a' and 'A' would be one key.
 */
static void
consider_grouping(const Search *search, const List *clauses, Choice *choice)
{
	const RelOptInfo *innerrel = search->innerrel;
	const MongoRelation *inner = innerrel->fdw_private;
	const Key  *key = linitial(choice->keys);
	Choice		grouped = *choice;
	MongoField	field;

	if (!choice->indexed || choice->unique || list_length(clauses) != 1 || innerrel->baserestrictinfo != NIL ||
		list_length(innerrel->reltarget->exprs) != 1 ||
		!equal(linitial(innerrel->reltarget->exprs), key->equality.field) ||
		mongo_column_of_node(inner->columns, (Node *) key->equality.field, &field) == NULL ||
		strchr(field.path, '.') != NULL || !mongo_mismatches_are(inner, MONGO_TYPE_MISMATCH_ERROR) ||
		!mongo_feature_enabled(inner->options, MONGO_FEATURE_GROUP) ||
		(mongo_compares_text(field.operator_type) &&
		 !mongo_feature_enabled(inner->options, MONGO_FEATURE_COLLATION)) ||
		!mongo_index_walks(innerrel, field.path))
		return;
	grouped.grouped = true;
	grouped.found = Min(choice->found, key->distinct);
	grouped.cost = indexed_cost(search, &grouped, 0) +
		grouped.found * (MONGO_COST_GROUP + MONGO_COST_KEY) * MONGO_COST_UNIT;
	if (grouped.cost < choice->cost)
		*choice = grouped;
}

/* Tells whether the query is in a correlated subquery or a recursion, with other keys each time. */
static bool
may_run_again(const PlannerInfo *root)
{
	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		if (root->plan_params != NIL || root->non_recursive_path != NULL)
			return true;
	}
	return false;
}

/*
 * Chooses the cheapest keys to look up among a join's clauses (RestrictInfo); returns false if
 * there is none.  *others are the keys (Key *) that are not looked up.
 */
static bool
choose_keys(const Search *search, const List *clauses, Choice *choice, List **others)
{
	const MongoRelation *inner = search->innerrel->fdw_private;
	List	   *candidates = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		Key		   *key = try_clause(search, lfirst_node(RestrictInfo, cell));

		if (key != NULL)
			candidates = lappend(candidates, key);
	}
	if (candidates == NIL)
		return false;

	*choice = choose_one(search, candidates);

	/* a pipeline may return other documents when it runs again */
	if (!choice->indexed && (mongo_is_pipeline_table(inner->options) || may_run_again(search->root)))
		return false;
	while (((Key *) linitial(choice->keys))->condition.path != NULL &&
		   extend(search, candidates, choice))
		;
	*others = list_difference_ptr(candidates, choice->keys);
	return true;
}

/*
 * mongo_choose_lookup
 *		Tells whether MongoDB can look up keys of many outer rows at a time for a correlated
 *		subquery; if so, sets *lookup.
 *
 * 'clauses' (RestrictInfo) compare with values of the outer row.  MongoDB also tests 'conditions'
 * (RestrictInfo), which leave so many rows of the table.
 */
bool
mongo_choose_lookup(PlannerInfo *root, RelOptInfo *baserel, const List *clauses, List *conditions,
					double rows, MongoLookup *lookup)
{
	/* the table, as if it had no other restrictions */
	RelOptInfo *table = memcpy(palloc(sizeof(RelOptInfo)), baserel, sizeof(RelOptInfo));
	MongoRelation *relation = memcpy(palloc(sizeof(MongoRelation)), baserel->fdw_private,
									 sizeof(MongoRelation));
	Path		outer = {.rows = MONGO_COST_BATCHED_ROWS};
	Search		search = {root, &outer, table, 1};
	List	   *candidates = NIL;
	Choice		choice;
	ListCell   *cell;

	table->fdw_private = relation;
	relation->indexable = NIL;
	foreach_ptr(MongoClause, clause, ((MongoRelation *) baserel->fdw_private)->indexable)
	{
		if (list_member_ptr(conditions, clause->rinfo))
			relation->indexable = lappend(relation->indexable, clause);
	}
	relation->remote_rows = rows;
	relation->examined_rows = mongo_examined_rows(root, table, relation->indexable, NULL);
	foreach(cell, clauses)
	{
		Key		   *key = palloc0(sizeof(Key));

		key->rinfo = lfirst_node(RestrictInfo, cell);
		key->distinct = outer.rows;
		key->share = Min(1, key->distinct * clause_selectivity(root, (Node *) key->rinfo,
															   baserel->relid, JOIN_INNER, NULL));
		if (mongo_split_equality(root, baserel, key->rinfo, NULL, &key->equality) &&
			can_look_up(table, key))
			candidates = lappend(candidates, key);
	}
	if (candidates == NIL)
		return false;
	choice = choose_one(&search, candidates);
	if (!choice.indexed && mongo_is_pipeline_table(relation->options))
		return false;
	while (((Key *) linitial(choice.keys))->condition.path != NULL &&
		   extend(&search, candidates, &choice))
		;
	*lookup = (MongoLookup) {
		.indexed = choice.indexed, .rows = outer.rows, .found = choice.found, .cost = choice.cost
	};
	foreach_ptr(Key, key, choice.keys)
	{
		lookup->clauses = lappend(lookup->clauses, key->rinfo);
		lookup->keys = lappend(lookup->keys, &key->equality);
	}
	return true;
}

/* ------- Planning nested loops that look up many rows' keys at once ------- */

static set_join_pathlist_hook_type next_hook = NULL;
static const CustomScanMethods *scan_methods = NULL;

/* Returns the share of one find in the estimate, for EXPLAIN. */
static MongoEstimate
estimate_find(const Search *search, const Choice *choice)
{
	const MongoRelation *inner = search->innerrel->fdw_private;
	MongoEstimate estimate = {.rows = clamp_row_est(choice->found / search->batches)};

	estimate.startup_cost = mongo_command_cost(inner);
	estimate.total_cost = estimate.startup_cost +
		mongo_transfer_cost(inner, estimate.rows, search->innerrel->reltarget);
	return estimate;
}

/* Outer rows in the first batch of a query that may stop early. */
#define LEAST_FIRST_BATCH	10
#define MOST_FIRST_BATCH	1000
#define UNKNOWN_FIRST_BATCH	100

/*
 * Returns how many rows of the outer side the first batch has: a fourth more than those from which
 * the rows that the query wants are expected.  0 if it reads all.
 */
static int
first_batch(const PlannerInfo *root, const Path *path, double outer_rows)
{
	double		wanted = root->tuple_fraction;

	if (mongo_reads_all(root, path->pathkeys))
		return 0;
	if (wanted < 1 || root->parse->hasAggs || root->parse->groupClause != NIL)
		return UNKNOWN_FIRST_BATCH;
	return (int) Min(Max(ceil(1.25 * wanted * outer_rows / Max(path->rows, 1)), LEAST_FIRST_BATCH), MOST_FIRST_BATCH);
}

/*
 * Fills in the cost of one outer scan, and of looking up its keys.  An ordered join returns nothing
 * before it has the documents of a batch.
 */
static void
estimate_batched_join(const Search *search, const Choice *choice, List *join_clauses, Path *path)
{
	const RelOptInfo *innerrel = search->innerrel;
	const RelOptInfo *joinrel = path->parent;
	const Path *outer = search->outer;
	QualCost	quals;
	Cost		cost;

	cost_qual_eval(&quals, join_clauses, search->root);
	cost = choice->cost + outer->rows * 2 * cpu_operator_cost +
		choice->found * (cpu_tuple_cost + quals.per_tuple + innerrel->baserestrictcost.per_tuple);

	path->rows = joinrel->rows;
	path->startup_cost = outer->startup_cost + quals.startup +
		joinrel->reltarget->cost.startup + mongo_command_cost(innerrel->fdw_private) *
		(choice->indexed ? MONGO_COST_BATCHED_FIND : 1);
	path->total_cost = outer->total_cost + quals.startup +
		joinrel->reltarget->cost.startup + cost +
		joinrel->rows * (cpu_tuple_cost + joinrel->reltarget->cost.per_tuple);
	if (path->pathkeys != NIL)
	{
		double		first = Min(1, (choice->indexed ? first_batch(search->root, path, outer->rows) :
									MONGO_COST_UNINDEXED_ROWS) / outer->rows);
		double		wanted = mongo_wanted_share(search->root, path->rows);

		/* the planner adds the rows that are wanted, which are in it */
		path->startup_cost += (path->total_cost - path->startup_cost) *
			(wanted < 1 ? Max(first - wanted, 0) / (1 - wanted) : first);
	}
}

/* Returns the same Var or PlaceHolderVar among the outputs, or NULL. */
static Node *
same_output(const List *outputs, Node *node)
{
	foreach_ptr(Node, output, outputs)
	{
		if (nodeTag(output) == nodeTag(node) &&
			(IsA(node, Var) ?
			 ((Var *) output)->varno == ((Var *) node)->varno &&
			 ((Var *) output)->varattno == ((Var *) node)->varattno :
			 ((PlaceHolderVar *) output)->phid == ((PlaceHolderVar *) node)->phid))
			return output;
	}
	return NULL;
}

/*
 * Gives each Var and PlaceHolderVar the nulling relids of the same one among the 'outputs', or
 * none.  The clauses refer to the inner side's Vars before this join, the target list refers to
 * them after it.  Both must match the columns of the scan.
 */
static bool
unify_nulling(Node *node, void *outputs)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		mongo_copy_nulling((Var *) node, (Var *) same_output(outputs, node));
		return false;
	}
	if (IsA(node, PlaceHolderVar))
		mongo_copy_placeholder_nulling((PlaceHolderVar *) node,
									   (PlaceHolderVar *) same_output(outputs, node));
	return expression_tree_walker(node, unify_nulling, outputs);
}

/* A clause, and what decides its place in the order. */
typedef struct OrderedClause
{
	RestrictInfo *rinfo;
	Cost		cost;
	int			number;
} OrderedClause;

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
 * Returns bare clauses in the order in which PostgreSQL would evaluate them: those of a security
 * barrier first, and then by cost; see order_qual_clauses() in createplan.c.
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

/* Tells whether an expression has a subquery that takes values of the row; a tree walker. */
static bool
has_correlated_subquery(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return (IsA(node, SubPlan) && ((SubPlan *) node)->parParam != NIL) ||
		expression_tree_walker(node, has_correlated_subquery, context);
}

/* Cuts the first clause with a correlated subquery, and those behind, off; returns them. */
static List *
cut_subqueries(List **clauses)
{
	int			first = 0;
	List	   *cut;

	while (first < list_length(*clauses) && !has_correlated_subquery(list_nth(*clauses, first), NULL))
		first++;
	cut = list_copy_tail(*clauses, first);
	*clauses = list_truncate(*clauses, first);
	return cut;
}

/*
 * Takes conditions with correlated subqueries, and those behind, from the plan of the inner side.
 * An inner join tests them above itself, where the subqueries can be batched
 * (batched_subqueries.c).  The plan outputs what they read.
 */
static List *
raise_subqueries(const RelOptInfo *innerrel, ForeignScan *scan)
{
	Plan	   *plan = &scan->scan.plan;
	List	   *kept = plan->qual;
	List	   *raised = cut_subqueries(&kept);

	/* rows that a view hides may be seen by no other clause */
	if (((const MongoRelation *) innerrel->fdw_private)->has_barrier ||
		contain_volatile_functions((Node *) raised))
		return NIL;
	plan->qual = kept;
	plan->targetlist = add_to_flat_tlist(plan->targetlist,
										 pull_var_clause((Node *) raised, PVC_RECURSE_PLACEHOLDERS));
	return raised;
}

/* What a path's plan is made of: the member of its custom_private. */
typedef struct BatchedPath
{
	JoinType	type;
	bool		indexed;
	List	   *keys;			/* Key *, of which the first ... */
	int			nasked;			/* ... are looked up */
	List	   *join_clauses;	/* RestrictInfo * */
	List	   *other_clauses;	/* RestrictInfo *, tested above an outer join */
} BatchedPath;

/* Makes the CustomScan; the callback of CustomPathMethods. */
static Plan *
plan_batched_join(PlannerInfo *root, RelOptInfo *joinrel, CustomPath *path,
				  List *tlist, List *scan_clauses pg_attribute_unused(), List *plans)
{
	const BatchedPath *batched = linitial(path->custom_private);
	MongoBatchedJoin join = {
		.type = batched->type, .indexed = batched->indexed,
		.first_batch = first_batch(root, &path->path, ((Path *) linitial(path->custom_paths))->rows),
		/* an antijoin returns outer rows alone, in their order */
		.ordered = path->path.pathkeys != NIL && batched->type != JOIN_ANTI
	};
	CustomScan *scan = makeNode(CustomScan);
	List	   *clauses = in_order(root, batched->join_clauses);
	List	   *filters = in_order(root, batched->other_clauses);
	List	   *values = NIL;
	List	   *fields = NIL;
	ListCell   *plan_cell;
	ListCell   *cell;

	if (batched->type == JOIN_INNER)
		filters = list_concat(cut_subqueries(&clauses),
							  raise_subqueries(((Path *) lsecond(path->custom_paths))->parent,
											   lsecond_node(ForeignScan, plans)));

	/*
	 * a pair of rows: the columns of the outer plan, then of the foreign scan
	 */
	foreach(plan_cell, plans)
	{
		foreach_node(TargetEntry, entry, ((Plan *) lfirst(plan_cell))->targetlist)
		{
			scan->custom_scan_tlist =
				lappend(scan->custom_scan_tlist,
						makeTargetEntry(copyObject(entry->expr),
										list_length(scan->custom_scan_tlist) + 1,
										NULL, false));
		}
	}
	foreach(cell, batched->keys)
	{
		MongoEquality *equality = &((Key *) lfirst(cell))->equality;

		equality->key.asked = foreach_current_index(cell) < batched->nasked;
		join.keys = lappend(join.keys, &equality->key);
		values = lappend(values, equality->value);
		fields = lappend(fields, equality->field);
	}
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = copyObject(filters);
	scan->custom_exprs = copyObject(list_make2(clauses, list_concat(values, fields)));
	unify_nulling((Node *) list_make3(scan->custom_scan_tlist, scan->scan.plan.qual,
									  scan->custom_exprs),
				  list_concat(pull_var_clause((Node *) joinrel->reltarget->exprs,
											  PVC_RECURSE_PLACEHOLDERS),
							  pull_var_clause((Node *) joinrel->reltarget->exprs,
											  PVC_INCLUDE_PLACEHOLDERS)));
	scan->custom_private = mongo_struct_to_list(&mongo_batched_join_type, &join);
	scan->custom_plans = plans;
	scan->flags = path->flags;
	scan->methods = scan_methods;
	return (Plan *) scan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "MongoDB Batched Join",
	.PlanCustomPath = plan_batched_join,
};

/*
 * Adds a path for the keys, if add_path() may keep it.  What the path keeps is copied, from lists
 * in a context that is deleted.
 */
static void
add_path_for(const Search *search, const Choice *choice, const List *other_keys, List *pathkeys,
			 const BatchedPath *batched, RelOptInfo *joinrel, const JoinPathExtraData *extra)
{
	PlannerInfo *root = search->root;
	CustomPath	estimate = {
		.path = {.type = T_CustomPath, .pathtype = T_CustomScan, .parent = joinrel,
		.pathtarget = joinrel->reltarget, .pathkeys = pathkeys}, .flags = CUSTOMPATH_SUPPORT_PROJECTION,
		.methods = &path_methods
	};
	MemoryContext old_context;
	CustomPath *path;
	BatchedPath *kept;
	List	   *asked = NIL;
	ListCell   *cell;

	estimate_batched_join(search, choice, batched->join_clauses, &estimate.path);
	mongo_join_disabled(&estimate.path, root, search->outer, extra);
	if (!mongo_path_may_pay(joinrel, &estimate.path))
		return;
	old_context = mongo_enter_planning(joinrel);
	path = memcpy(makeNode(CustomPath), &estimate, sizeof(CustomPath));
	path->path.pathkeys = list_copy(pathkeys);
	kept = memcpy(palloc(sizeof(BatchedPath)), batched, sizeof(BatchedPath));
	kept->join_clauses = list_copy(batched->join_clauses);
	kept->other_clauses = list_copy(batched->other_clauses);
	foreach(cell, list_concat_copy(choice->keys, other_keys))
	{
		Key		   *key = memcpy(palloc(sizeof(Key)), lfirst(cell), sizeof(Key));

		kept->keys = lappend(kept->keys, key);
		if (foreach_current_index(cell) < list_length(choice->keys))
			asked = lappend(asked, &key->equality);
	}
	kept->indexed = choice->indexed;
	kept->nasked = list_length(asked);
	path->custom_private = list_make1(kept);
	path->custom_paths = list_make2(unconstify(Path *, search->outer),
									mongo_foreign_path(root, search->innerrel, NULL,
													   estimate_find(search, choice), NIL, NULL, NULL,
													   &(MongoPathDetails) {
														   .batch_keys = asked,
														   .grouped = choice->grouped,
														   .all_rows = pathkeys != NIL || mongo_reads_all(root, NIL)
													   }));
	add_path(joinrel, (Path *) path);
	MemoryContextSwitchTo(old_context);
}

/*
 * Adds paths that keep an order of the outer side: of many rows, a query wants only the first.
 */
static void
add_ordered_paths(const Search *search, const Choice *choice, const List *other_keys,
				  const BatchedPath *batched, RelOptInfo *joinrel, const RelOptInfo *outerrel,
				  const JoinPathExtraData *extra)
{
	Search		ordered = *search;

	foreach_ptr(Path, outer, outerrel->pathlist)
	{
		List	   *pathkeys;

		if (outer->pathkeys == NIL || outer->param_info != NULL)
			continue;
		pathkeys = build_join_pathkeys(search->root, joinrel, batched->type, outer->pathkeys);
		if (pathkeys == NIL)
			continue;
		ordered.outer = outer;
		add_path_for(&ordered, choice, other_keys, pathkeys, batched, joinrel, extra);
	}
}

/*
 * Has the first rows of memoized nested loops cost what they do, if the query wants only these.
 *
 * PostgreSQL takes the share of keys that are found again to be the same from the first row on.  Of
 * 20 rows none may be, though 19 of 20 are in the end; each sends a find.  The costs of all rows
 * remain, so that the order of the list of paths does.
 */
static void
charge_first_lookups(PlannerInfo *root, RelOptInfo *joinrel, const RelOptInfo *outerrel,
					 const RelOptInfo *innerrel, JoinType type)
{
	double		wanted = mongo_wanted_share(root, joinrel->rows);

	if (wanted >= 1)
		return;
	foreach_ptr(NestPath, loop, joinrel->pathlist)
	{
		const JoinPath *join = &loop->jpath;
		const MemoizePath *memoize;
		double		rows;
		double		first;
		double		lookups;

		if (!IsA(loop, NestPath) || join->jointype != type || join->outerjoinpath->parent != outerrel)
			continue;
		memoize = (const MemoizePath *) join->innerjoinpath;
		if (!IsA(memoize, MemoizePath) || memoize->path.parent != innerrel)
			continue;
		rows = join->outerjoinpath->rows;
		first = clamp_row_est(rows * wanted);
		lookups = estimate_num_groups(root, memoize->param_exprs, first, NULL, NULL) -
			first * estimate_num_groups(root, memoize->param_exprs, rows, NULL, NULL) / rows;
		loop->jpath.path.startup_cost = Min(loop->jpath.path.startup_cost + Max(lookups, 0) * memoize->subpath->total_cost,
											loop->jpath.path.total_cost);
	}
}

/*
 * Tells whether this is a foreign table of this extension in which keys can be looked up.  Not if
 * it is known to be empty; then its other properties are not set.  Nor if a join clause needs a
 * scan for each outer row, or gives a value to a parameter of its pipeline.
 */
static bool
is_ours(RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL && rel->fdwroutine != NULL &&
		rel->fdwroutine->GetForeignRelSize == mongo_get_foreign_rel_size &&
		rel->fdw_private != NULL && !IS_DUMMY_REL(rel) &&
		!((const MongoRelation *) rel->fdw_private)->matches_outer &&
		!((MongoRelation *) rel->fdw_private)->unbound &&
		bms_is_empty(rel->lateral_relids);
}

/*
 * Adds a path for the cheapest keys; the planner's set_join_pathlist_hook.
 *
 * Not if a target of UPDATE or DELETE with children is joined: PostgreSQL identifies its rows by
 * ROWID_VARs, which no CustomScan may output.
 */
static void
consider_batched_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
					  RelOptInfo *innerrel, JoinType type, JoinPathExtraData *extra)
{
	Path	   *outer_path = outerrel->cheapest_total_path;
	BatchedPath batched = {0};
	List	   *other_keys;
	Choice		choice;
	Search		search;
	MemoryContext old_context;

	if (next_hook != NULL)
		next_hook(root, joinrel, outerrel, innerrel, type, extra);
	if (is_ours(innerrel))
		charge_first_lookups(root, joinrel, outerrel, innerrel, type);

	/*
	 * a semijoin with its sides exchanged: join the outer rows without their
	 * duplicates
	 */
	if (type == JOIN_UNIQUE_OUTER && is_ours(innerrel))
	{
		outer_path = mongo_unique_path(root, outerrel, outer_path, extra->sjinfo);
		type = JOIN_INNER;
	}
	if (!mongo_enable_pushdown || !mongo_enable_batched_joins || !is_ours(innerrel) ||
		(type != JOIN_INNER && type != JOIN_LEFT && type != JOIN_SEMI && type != JOIN_ANTI) ||
		(root->row_identity_vars != NIL && bms_overlap(joinrel->relids, root->all_result_relids)) ||
		mongo_has_partial_results(joinrel) ||
		!bms_is_empty(joinrel->lateral_relids) || root->hasPseudoConstantQuals ||
		outer_path == NULL || outer_path->param_info != NULL)
		return;

	/* PostgreSQL asks for thousands of pairs that make no path */
	old_context = MemoryContextSwitchTo(AllocSetContextCreate(GetMemoryChunkContext(joinrel),
															  "mongo_fdw batched join",
															  ALLOCSET_SMALL_SIZES));
	batched.type = type;
	mongo_split_join_clauses(joinrel, type, extra->restrictlist, &batched.join_clauses,
							 &batched.other_clauses);
	search = (Search) {
		root, outer_path, innerrel, Max(ceil(outer_path->rows / MONGO_COST_BATCHED_ROWS), 1)
	};
	if (choose_keys(&search, batched.join_clauses, &choice, &other_keys))
	{
		if (type == JOIN_SEMI || type == JOIN_ANTI)
			consider_grouping(&search, batched.join_clauses, &choice);
		add_path_for(&search, &choice, other_keys, NIL, &batched, joinrel, extra);
		/* rows without their duplicates have no other order */
		if (root->tuple_fraction > 0 && outer_path == outerrel->cheapest_total_path)
			add_ordered_paths(&search, &choice, other_keys, &batched, joinrel, outerrel, extra);
	}
	MemoryContextDelete(MemoryContextSwitchTo(old_context));
}

/*
 * mongo_install_batched_joins
 *		Makes the planner consider batched joins, executed by these methods.
 *
 * Called once, by _PG_init().
 */
void
mongo_install_batched_joins(const CustomScanMethods *methods)
{
	scan_methods = methods;
	RegisterCustomScanMethods(methods);
	next_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = consider_batched_join;
}
