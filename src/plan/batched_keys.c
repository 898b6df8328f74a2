/*-------------------------------------------------------------------------
 *
 * batched_keys.c
 *		By which keys a batched join finds documents, and what that costs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "batched_keys.h"

#include "bson_memory.h"
#include "comparison.h"
#include "cost.h"
#include "derived.h"
#include "index_use.h"
#include "join.h"
#include "plan_nodes.h"
#include "relation.h"
#include "security.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

/* A clause "something of the outer side = field". */
typedef struct Key
{
	RestrictInfo *rinfo;
	Expr	   *outer;
	Expr	   *inner;
	Oid			operator;		/* with the field on its left */
	MongoBatchedColumn column;
	MongoCondition condition;	/* field = ANY (keys) */
	double		distinct;		/* keys that are asked for, in all batches */
	double		share;			/* of all documents, that have one of a
								 * batch's */
} Key;

/* Keys that are asked for together. */
typedef struct Choice
{
	List	   *keys;			/* Key * */
	bool		indexed;
	bool		unique;
	double		share;			/* of mongo_index_finds() */
	double		found;			/* as in MongoBatchedKeys */
	Cost		cost;
} Choice;

/* What the choice depends on. */
typedef struct Search
{
	PlannerInfo *root;
	const Path *outer;
	RelOptInfo *innerrel;
	double		batches;
} Search;

double
mongo_batches(double outer_rows)
{
	return Max(ceil(outer_rows / MONGO_COST_BATCHED_ROWS), 1);
}

/*
 * any_of_keys: field = ANY (keys), whatever these will be.  The keys of all fields that
 * are asked for are a record, of which this is a member.
 */
static Expr *
any_of_keys(const Key *key, int number)
{
	ScalarArrayOpExpr *condition = makeNode(ScalarArrayOpExpr);
	FieldSelect *values = makeNode(FieldSelect);
	CaseTestExpr *record = makeNode(CaseTestExpr);

	record->typeId = RECORDOID;
	record->typeMod = -1;
	values->arg = (Expr *) record;
	values->fieldnum = number;
	values->resulttype = get_array_type(key->column.type);
	values->resulttypmod = -1;
	values->resultcollid = get_typcollation(values->resulttype);
	condition->opno = key->operator;
	condition->opfuncid = get_opcode(key->operator);
	condition->useOr = true;
	condition->inputcollid = key->column.collation;
	condition->args = list_make2(key->inner, values);
	condition->location = -1;
	return (Expr *) condition;
}

/*
 * can_ask: can MongoDB be asked for the documents with these keys?  Values that are
 * ranges to it, as numeric's are, would be too many of these.
 */
static bool
can_ask(const Search *search, Key *key)
{
	const MongoRelation *relation = search->innerrel->fdw_private;
	bson_t	   *match = bson_create_in(CurrentMemoryContext);
	MongoTranslation translation = mongo_translation_of(relation);
	const MongoComparison *comparison;
	MongoField	field;

	if (!OidIsValid(get_array_type(key->column.type)) ||
		!mongo_field_of_node(relation->columns, (Node *) key->inner, &field))
		return false;
	comparison = mongo_comparison_lookup(getBaseType(field.type), field.typmod, field.bson_type);
	if (comparison == NULL || comparison->append_points == NULL)
		return false;
	key->condition = mongo_translate_condition(&translation, any_of_keys(key, 1), match);
	/* one key of the list, for what a key costs */
	key->condition.seek = MONGO_SEEK_VALUE;
	key->condition.unique = strcmp(field.path, "_id") == 0 && !mongo_is_derived(relation->options);
	return key->condition.grade != MONGO_NOT_SHIPPABLE &&
		mongo_is_securely_promotable(search->innerrel, key->rinfo, match);
}

/* try_clause: the clause as a key; NULL if it is none. */
static Key *
try_clause(const Search *search, RestrictInfo *rinfo)
{
	const RelOptInfo *outerrel = search->outer->parent;
	const RelOptInfo *innerrel = search->innerrel;
	OpExpr	   *clause = (OpExpr *) rinfo->clause;
	Key		   *key;
	bool		inner_is_left;

	if (!IsA(clause, OpExpr) || !rinfo->can_join ||
		contain_volatile_functions((Node *) clause) ||
		contain_subplans((Node *) clause))
		return NULL;
	inner_is_left = bms_equal(rinfo->left_relids, innerrel->relids);
	if (inner_is_left ? !bms_is_subset(rinfo->right_relids, outerrel->relids) :
		!(bms_equal(rinfo->right_relids, innerrel->relids) &&
		  bms_is_subset(rinfo->left_relids, outerrel->relids)))
		return NULL;

	key = palloc0(sizeof(Key));
	key->rinfo = rinfo;
	key->operator = inner_is_left ? clause->opno : get_commutator(clause->opno);
	if (!OidIsValid(key->operator) ||
		!get_op_hash_functions(key->operator, &key->column.inner_hash, &key->column.outer_hash))
		return NULL;
	key->inner = inner_is_left ? linitial(clause->args) : lsecond(clause->args);
	key->outer = inner_is_left ? lsecond(clause->args) : linitial(clause->args);
	key->column.collation = clause->inputcollid;
	key->column.type = getBaseType(exprType((Node *) key->outer));
	return can_ask(search, key) ? key : NULL;
}

/* estimate_key: how many values a batch has of it, and how many documents these. */
static void
estimate_key(const Search *search, Key *key)
{
	key->distinct = mongo_batched_keys(search->root, key->outer, search->outer->rows,
									   search->batches);
	key->share = Min(1, key->distinct / search->batches *
					 mongo_join_key_selectivity(search->root, search->outer->parent,
												search->innerrel, key->rinfo));
}

/*
 * count_seeks: how often an index is looked into for a batch.  Of a compound one, once
 * for each value of the first field, then for each value of the next that stands
 * behind this, or that is asked for, if these are fewer.
 */
static double
count_seeks(const Search *search, const Choice *choice)
{
	double		documents = search->innerrel->tuples * choice->share;
	double		combinations = 1;
	double		seeks = 0;
	ListCell   *cell;

	foreach(cell, choice->keys)
	{
		const Key  *key = lfirst(cell);

		combinations *= key->distinct / search->batches;
		seeks = seeks == 0 ? combinations : Min(combinations, seeks + documents);
		documents *= key->share;
	}
	return seeks;
}

/*
 * indexed_cost: of a find for each batch.  The first key is no dearer than it is to a
 * nested loop that asks for one at a time, and the find a little cheaper: so that this
 * is the plan where one row is expected, for there may be thousands.
 */
static Cost
indexed_cost(const Search *search, const Choice *choice, double examined)
{
	const MongoTableOptions *options = ((MongoRelation *) search->innerrel->fdw_private)->options;
	const Key  *first = linitial(choice->keys);
	double		tuples = Max(search->innerrel->tuples, 1);
	double		more_seeks = count_seeks(search, choice) * search->batches - first->distinct;

	return search->batches * options->fdw_startup_cost * MONGO_COST_BATCHED_FIND +
		Max(first->distinct - 1, 0) * MONGO_COST_BATCHED_KEY * options->fdw_tuple_cost +
		Max(more_seeks, 0) * MONGO_COST_BATCHED_SEEK * options->fdw_tuple_cost +
		examined * mongo_examined_cost(search->innerrel, tuples) / tuples +
		choice->found * options->fdw_tuple_cost;
}

/*
 * unindexed_cost: of looking for the first batch's keys in all documents that meet the
 * table's conditions, and then, if there are more, of fetching these documents.
 */
static Cost
unindexed_cost(const Search *search, const Choice *choice)
{
	const MongoRelation *inner = search->innerrel->fdw_private;
	const MongoTableOptions *options = inner->options;
	Cost		look = options->fdw_startup_cost +
		mongo_examined_cost(search->innerrel, inner->examined_rows);
	Cost		cost = look + choice->found / search->batches * options->fdw_tuple_cost;

	if (search->batches > 1)
		cost += look + inner->remote_rows * (options->fdw_tuple_cost + cpu_tuple_cost);
	return cost;
}

/* estimate_choice: fill in what is found and what that costs. */
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

/* is_indexed: does an index find the documents of all these keys together? */
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

/* choose_one: the best to be asked for alone: with an index, and finding a single document. */
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

/* has_field: is one of the keys of this field? */
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
 * extend: ask for another key as well; false if there is none for which that is better.
 * It is where the same index finds both, if that spares more documents than it takes
 * seeks; and without an index, as then all documents are looked at anyway.
 */
static bool
extend(const Search *search, const List *candidates, Choice *choice)
{
	ListCell   *cell;

	foreach(cell, candidates)
	{
		Key		   *key = lfirst(cell);
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

/* add_key: to what the path is made of. */
static void
add_key(MongoBatchedKeys *keys, Key *key)
{
	keys->outer = lappend(keys->outer, key->outer);
	keys->inner = lappend(keys->inner, key->inner);
	keys->columns = lappend(keys->columns, &key->column);
}

bool
mongo_find_batched_keys(PlannerInfo *root, const Path *outer, RelOptInfo *innerrel,
						List *clauses, MongoBatchedKeys *keys)
{
	const MongoRelation *inner = innerrel->fdw_private;
	Search		search = {root, outer, innerrel, mongo_batches(outer->rows)};
	List	   *candidates = NIL;
	Choice		choice;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		Key		   *key = try_clause(&search, lfirst_node(RestrictInfo, cell));

		if (key == NULL)
			continue;
		estimate_key(&search, key);
		candidates = lappend(candidates, key);
	}
	if (candidates == NIL)
		return false;

	choice = choose_one(&search, candidates);
	/* a pipeline may give other documents the second time */
	if (!choice.indexed && mongo_is_derived(inner->options))
		return false;
	while (((Key *) linitial(choice.keys))->condition.path != NULL &&
		   extend(&search, candidates, &choice))
		;

	memset(keys, 0, sizeof(*keys));
	keys->indexed = choice.indexed;
	keys->found = choice.found;
	keys->cost = choice.cost;
	foreach(cell, choice.keys)
	{
		Key		   *key = lfirst(cell);

		add_key(keys, key);
		key->column.asked = true;
		keys->conditions = lappend(keys->conditions,
								   any_of_keys(key, list_length(keys->columns)));
	}
	foreach(cell, candidates)
	{
		if (!list_member_ptr(choice.keys, lfirst(cell)))
			add_key(keys, lfirst(cell));
	}
	return true;
}
