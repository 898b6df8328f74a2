/*-------------------------------------------------------------------------
 *
 * relation.c
 *		Estimates a foreign table, and classifies its restrictions.
 *
 * Decides for each table of a query how many documents MongoDB examines and returns; which
 * restrictions MongoDB tests, exactly or as a superset, and which PostgreSQL tests; and which of
 * them may be tested early although others hide rows.  Assumes that src/translate translates one
 * condition correctly, and that index.c knows which documents an index finds.
 *
 * The rules of security come first, then what mongo_get_foreign_rel_size(), the callback, needs.
 * The clauses of a scan, which other files of this folder use, are at the end.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"
#include "catalog.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/heap.h"
#include "catalog/pg_type_d.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parse_coerce.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*-------------------------------------------------------------------------
 * Row-level security and security barriers: which conditions may be tested early?
 *
 * A condition of the query must not see rows that a policy, or a security-barrier view, hides,
 * if it can reveal them: by an error or in any other way.  MongoDB tests a command's conditions
 * in an order of its own.  So every condition in a command is tested early, as an index's
 * conditions are in PostgreSQL, and PostgreSQL's rule applies: a condition that is pushed down
 * is leakproof, or of no higher security level than any condition on the same table
 * ("Security-level constraints on qual clauses" in src/backend/optimizer/README).  And MongoDB
 * must not fail where PostgreSQL's leakproof functions do not.
 *
 * Nor may an error reveal a document that does not fit its columns, if a restriction hides it
 * or cannot be tested.  Conditions that MongoDB tests have type checks, which exclude such
 * documents; for those that PostgreSQL tests, see "Deferred errors" in src/exec/scan.c.
 *-------------------------------------------------------------------------
 */

/* Tells whether a query around this one is below a security barrier. */
static bool
is_below_barrier(const PlannerInfo *root)
{
	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		foreach_node(RangeTblEntry, entry, root->parse->rtable)
		{
			if (entry->rtekind == RTE_SUBQUERY && entry->security_barrier)
				return true;
		}
	}
	return false;
}

/* Tells whether this restriction hides rows from conditions of the query, or of one above it. */
static bool
mongo_hides_rows(RelOptInfo *baserel, const RestrictInfo *rinfo)
{
	const MongoRelation *relation = baserel->fdw_private;

	return relation->has_barrier &&
		(relation->below_barrier || rinfo->security_level < relation->query_level) &&
		bms_is_subset(rinfo->clause_relids, baserel->relids);
}

/*
 * mongo_is_securely_promotable
 *		Tells whether MongoDB may test this restriction, whose translation is 'match', early.
 */
bool
mongo_is_securely_promotable(RelOptInfo *baserel, RestrictInfo *rinfo, const bson_t *match)
{
	const MongoRelation *relation = baserel->fdw_private;

	return !relation->has_barrier ||
		(restriction_is_securely_promotable(rinfo, baserel) && mongo_cannot_fail(match));
}

/*
 * mongo_join_is_secure
 *		Tells whether MongoDB may test a join's clauses early.
 *
 * 'stages' test these RestrictInfos in addition to the restrictions of its tables.
 */
bool
mongo_join_is_secure(PlannerInfo *root, RelOptInfo *joinrel, List *clauses, const bson_t *stages)
{
	bool		has_barrier = false;
	int			relid = -1;

	while ((relid = bms_next_member(joinrel->relids, relid)) >= 0)
	{
		RelOptInfo *baserel = root->simple_rel_array[relid];
		ListCell   *cell;

		/* the number of an outer join is not a table */
		if (baserel == NULL || !((MongoRelation *) baserel->fdw_private)->has_barrier)
			continue;
		has_barrier = true;
		foreach(cell, clauses)
		{
			if (!restriction_is_securely_promotable(lfirst_node(RestrictInfo, cell), baserel))
				return false;
		}
	}
	return !has_barrier || mongo_cannot_fail(stages);
}

/* -- A foreign table at planning: its size, and the restrictions that MongoDB can test -- */

/* The estimate for a collection of unknown size. */
#define DEFAULT_ROWS	1000

/*
 * Sets the network's properties by options, or else by ANALYZE; by default the machine is the
 * same.
 */
static void
set_network(MongoRelation *relation)
{
	const MongoTableOptions *options = relation->options;
	const MongoStatistics *statistics = relation->columns->statistics;

	relation->round_trip_time = MONGO_LOCAL_ROUND_TRIP;
	relation->bandwidth = MONGO_LOCAL_BANDWIDTH;
	if (options->round_trip_time >= 0)
		relation->round_trip_time = options->round_trip_time;
	else if (statistics != NULL && statistics->round_trip_time >= 0)
		relation->round_trip_time = statistics->round_trip_time;
	if (options->bandwidth >= 0)
		relation->bandwidth = options->bandwidth;
	else if (statistics != NULL && statistics->bandwidth >= 0 &&
			 (relation->round_trip_time > MONGO_LOCAL_ROUND_TRIP ||
			  statistics->bandwidth < MONGO_GIGABIT_BANDWIDTH))
		relation->bandwidth = Max(Min(statistics->bandwidth, MONGO_LOCAL_BANDWIDTH), 1000);
}

/* Adds the attributes that the node uses, but not the whole row if 'no_row'. */
static void
add_used(Node *node, const RelOptInfo *baserel, bool no_row, Bitmapset **used)
{
	Bitmapset  *more = NULL;

	pull_varattnos(node, baserel->relid, &more);
	if (no_row)
		more = bms_del_member(more, 0 - FirstLowInvalidHeapAttributeNumber);
	*used = bms_add_members(*used, more);
}

/*
 * Tells whether the query reads this column.  Whole rows contain it, but not those by which rows
 * are found again to change or lock them, and not the arguments of mongo_match() and
 * mongo_score().
 */
static bool
reads_column(PlannerInfo *root, const RelOptInfo *baserel, AttrNumber attnum)
{
	CmdType		command = root->parse->commandType;
	Bitmapset  *used = NULL;
	ListCell   *cell;

	add_used((Node *) baserel->reltarget->exprs, baserel,
			 (command != CMD_SELECT && command != CMD_INSERT) || root->parse->rowMarks != NIL ||
			 mongo_reads_score(root, baserel) != NULL, &used);
	foreach(cell, baserel->baserestrictinfo)
	{
		Node	   *clause = (Node *) lfirst_node(RestrictInfo, cell)->clause;

		add_used(clause, baserel, mongo_names_match(clause, unconstify(Index *, &baserel->relid)),
				 &used);
	}
	return bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, used) ||
		bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
}

/* Decides how fields are read that do not fit their columns. */
static void
set_mismatches(PlannerInfo *root, const RelOptInfo *baserel, MongoRelation *relation)
{
	const MongoColumnFacts *facts = mongo_column_facts(relation->relid);
	bson_t	   *fit;

	relation->mismatches = facts->mismatches;
	if (facts->shown_by != 0 && reads_column(root, baserel, facts->shown_by))
	{
		relation->columns->shows_mismatches = true;
		relation->mismatches = 1 << MONGO_TYPE_MISMATCH_NULL;
	}
	if ((relation->mismatches & (1 << MONGO_TYPE_MISMATCH_SKIP)) == 0)
		return;
	fit = mongo_bson_create();
	relation->skips_locally = !mongo_enable_pushdown ||
		!mongo_feature_enabled(relation->options, MONGO_FEATURE_EXPR) ||
		!mongo_append_all_fit(fit, relation->columns, true, false);
	relation->fit = bson_empty(fit) ? NULL : fit;
}

static MongoRelation *
create_table_relation(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid)
{
	MongoRelation *relation = palloc0(sizeof(MongoRelation));

	relation->relid = foreigntableid;
	relation->serverid = baserel->serverid;
	relation->subplans = root->glob->subplans;
	relation->options = mongo_table_options(foreigntableid);
	relation->columns = mongo_columns_create(CurrentMemoryContext, foreigntableid,
											 baserel->relid, baserel->max_attr);
	relation->columns->userid = baserel->userid ? baserel->userid : GetUserId();
	relation->columns->statistics = mongo_statistics_of(foreigntableid);
	set_network(relation);
	if (mongo_is_pipeline_table(relation->options))
		relation->columns->derivation = relation->options;
	set_mismatches(root, baserel, relation);
	return relation;
}

/*
 * mongo_keeps_collation
 *		Tells whether commands for this table must not specify a collation.
 *
 * A collation applies to all of a command.  What the user wrote, in the option pipeline or for
 * mongo_match(), is compared by the collection's default collation, which is the simple one if
 * ANALYZE has seen the index of _id without a collation.  Change streams have the simple one.
 *
 * By the simple one, MongoDB 6.0.5 loses documents of a clustered collection that has another one:
 * it searches the keys, which are made by that, for the plain text.
 */
bool
mongo_keeps_collation(const MongoRelation *relation)
{
	const MongoTableOptions *options = relation->options;
	const MongoIndex *id = mongo_id_index(relation->columns->statistics);
	bool		by_user = relation->names_match ||
		(options->pipeline != NULL && options->change_stream == NULL);

	return mongo_feature_enabled(options, MONGO_FEATURE_COLLATION) &&
		(id == NULL ? by_user : id->collated && (by_user || id->clustered));
}

/*
 * mongo_translation_of
 *		Returns an empty translation over this table, with what its options allow.
 *
 * It points to lists of the relation, and lives as long as this.
 */
MongoTranslation
mongo_translation_of(const MongoRelation *relation)
{
	MongoTranslation translation = {.columns = relation->columns};

	translation.use_expressions = mongo_feature_enabled(relation->options,
														MONGO_FEATURE_EXPR);
	translation.disabled = relation->options->pushdown_disable;
	translation.keeps_collation = mongo_keeps_collation(relation);
	translation.known_conditions = relation->restrictions;
	translation.subplans = relation->subplans;
	return translation;
}

/*
 * Returns the number of documents in the collection, or of rows that its pipeline makes.
 *
 * The option use_remote_estimate takes precedence, then the result of ANALYZE, of which pg_upgrade
 * keeps only the FDW's own statistics, then the option estimated_rows.
 */
static double
total_rows(const MongoRelation *relation, const RelOptInfo *baserel)
{
	const MongoTableOptions *options = relation->options;

	if (options->use_remote_estimate && options->change_stream == NULL &&
		mongo_column_facts(relation->columns->relid)->parameters == NIL)
		return mongo_remote_row_count(relation->columns->relid,
									  mongo_user_mapping(relation->columns->userid, relation->serverid));
	if (baserel->tuples > 0 || (baserel->tuples == 0 && baserel->pages > 0))
		return baserel->tuples;
	if (relation->columns->statistics != NULL)
		return relation->columns->statistics->documents;
	if (options->estimated_rows >= 0)
		return options->estimated_rows;
	return DEFAULT_ROWS;
}

/* Adds checks of its columns to a row-hiding restriction; returns false if that is not possible. */
static bool
add_type_checks(const MongoRelation *relation, const RestrictInfo *rinfo, bson_t *match)
{
	bson_t	   *conditions = mongo_bson_create();
	int			count;

	mongo_append(conditions, "0", mongo_document(match));
	count = mongo_append_column_checks(conditions, 1, relation->columns,
									   list_make1(rinfo->clause),
									   mongo_feature_enabled(relation->options, MONGO_FEATURE_EXPR));
	if (count > 1)
	{
		bson_reinit(match);
		mongo_append(match, "$and", mongo_array(conditions));
	}
	return count > 0;
}

/* Tells whether the restriction reads a column that is made of a change stream's tokens. */
static bool
reads_token(const MongoRelation *relation, RelOptInfo *baserel, const RestrictInfo *rinfo)
{
	Bitmapset  *read = NULL;
	ListCell   *cell;

	if (relation->options->change_stream == NULL)
		return false;
	pull_varattnos((Node *) rinfo->clause, baserel->relid, &read);
	foreach(cell, mongo_column_facts(relation->relid)->parameters)
	{
		if (bms_is_member(lfirst_int(cell) - FirstLowInvalidHeapAttributeNumber, read) &&
			strcmp(mongo_column_options(relation->relid, lfirst_int(cell))->parameter,
				   MONGO_STREAM_TIME) != 0)
			return true;
	}
	return false;
}

/*
 * mongo_translate_restriction
 *		Translates a restriction of the table, or a clause that a scan is parameterized by, like
 *		mongo_translate_condition().
 *
 * Appends to the empty 'match'.  A clause that MongoDB must not test early, or that reads a change
 * stream's token, is not shippable; 'translation' is then as before, and 'match' in any state.
 * One that hides rows gets type checks; it is a superset if there are none.
 */
MongoCondition
mongo_translate_restriction(MongoTranslation *translation, RelOptInfo *baserel,
							RestrictInfo *rinfo, bson_t *match)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoMark	before = mongo_mark(translation);
	MongoCondition condition = {.exactness = MONGO_NOT_SHIPPABLE};
	bool		promotable;

	if (reads_token(relation, baserel, rinfo))
		return condition;
	condition = mongo_translate_condition(translation, rinfo->clause, match);
	promotable = condition.exactness == MONGO_NOT_SHIPPABLE ||
		mongo_is_securely_promotable(baserel, rinfo, match);
	if (promotable && condition.exactness == MONGO_EXACT && mongo_hides_rows(baserel, rinfo) &&
		!mongo_mismatches_are(relation, MONGO_TYPE_MISMATCH_NULL) &&
		!add_type_checks(relation, rinfo, match))
	{
		/* PostgreSQL then tests the documents returned too */
		condition.exactness = MONGO_SUPERSET;
		promotable = !translation->need_exact;
	}
	if (promotable)
		return condition;

	mongo_return_to(translation, before);
	return (MongoCondition) {.exactness = MONGO_NOT_SHIPPABLE};
}

/* Tells whether any of these RestrictInfos matches the table's row by mongo_match(). */
static bool
clauses_name_match(const List *rinfos, RelOptInfo *baserel)
{
	ListCell   *cell;

	foreach(cell, rinfos)
	{
		if (mongo_names_match((Node *) lfirst_node(RestrictInfo, cell)->clause, &baserel->relid))
			return true;
	}
	return false;
}

/* --------- The values that conditions give to a pipeline's parameters -------- */

static Node *value_of_column(const MongoRelation *relation, const List *rinfos, AttrNumber attnum,
							 const Bitmapset *visited, RestrictInfo **rinfo);

/*
 * Tells whether "column operator value" gives the column its value.  A change stream's start is
 * given by "__token > value", "__time >= value", and either for __cluster_time.
 */
static bool
gives_value(const MongoRelation *relation, AttrNumber attnum, Oid operator, const MongoField *field)
{
	const char *parameter = mongo_column_options(relation->relid, attnum)->parameter;
	int			strategy = mongo_default_strategy(operator, field->operator_type);

	if (relation->options->change_stream == NULL || parameter == NULL)
		/* points have no order, and ~= in place of = */
		return strategy == BTEqualStrategyNumber || get_opcode(operator) == F_POINT_EQ;
	return (strategy == BTGreaterStrategyNumber && strcmp(parameter, MONGO_STREAM_TIME) != 0) ||
		(strategy == BTGreaterEqualStrategyNumber && strcmp(parameter, MONGO_STREAM_TOKEN) != 0);
}

/*
 * Returns what "column = value" gives to the column, or what 'rinfos' give to the other one of two
 * equal columns, if it is not among the visited ones; or NULL.  Clears *same if the value is
 * converted so that it may differ afterwards, or is not the clause's own.
 */
static Node *
clause_value(const MongoRelation *relation, Expr *clause, AttrNumber attnum, const List *rinfos,
			 const Bitmapset *visited, bool *same)
{
	MongoTranslation translation = {.columns = relation->columns};
	bool		is_not = is_notclause(clause);
	Node	   *tested = is_not ? (Node *) get_notclausearg(clause) : (Node *) clause;
	const OpExpr *operation = (const OpExpr *) clause;
	MongoField	field;
	const Var  *column = mongo_column_of_node(relation->columns, tested, &field);

	/* PostgreSQL simplifies "column = true" */
	if (column != NULL && column->varattno == attnum)
		return makeBoolConst(!is_not, false);
	if (!IsA(clause, OpExpr) || list_length(operation->args) != 2)
		return NULL;
	for (int side = 0; side < 2; side++)
	{
		Oid			operator = side == 0 ? operation->opno : get_commutator(operation->opno);
		Node	   *value = list_nth(operation->args, 1 - side);
		RestrictInfo *ignored;
		Oid			source;
		Oid			target;

		column = mongo_column_of_node(relation->columns, list_nth(operation->args, side), &field);
		if (column == NULL || column->varattno != attnum || !OidIsValid(operator) ||
			!gives_value(relation, attnum, operator, &field))
			continue;
		if (!mongo_is_local_value(&translation, value))
		{
			*same = false;
			column = mongo_column_of_node(relation->columns, value, &(MongoField) {0});
			value = column == NULL || bms_is_member(column->varattno, visited) ? NULL :
				value_of_column(relation, rinfos, column->varattno, visited, &ignored);
			if (value == NULL)
				continue;
		}
		source = exprType(value);
		target = getBaseType(field.type);
		if (source == target && field.typmod < 0)
			return value;
		*same &= field.typmod < 0 && can_coerce_type(1, &source, &target, COERCION_IMPLICIT);
		return eval_const_expressions(NULL,
									  coerce_to_target_type(NULL, copyObject(value), source, target,
															field.typmod, COERCION_EXPLICIT,
															COERCE_EXPLICIT_CAST, -1));
	}
	return NULL;
}

/*
 * Returns what the clauses give to the column, or NULL.  Of several values, that of a policy or a
 * security barrier counts.  *rinfo is the clause that need not be tested; NULL if there is none.
 */
static Node *
value_of_column(const MongoRelation *relation, const List *rinfos, AttrNumber attnum,
				const Bitmapset *visited, RestrictInfo **rinfo)
{
	Bitmapset  *more = bms_add_member(bms_copy(visited), attnum);
	Node	   *found = NULL;
	Index		level = 0;

	/* by way of another column only if no clause gives it a value itself */
	for (int way = 0; way < 2 && found == NULL; way++)
	{
		foreach_node(RestrictInfo, next, rinfos)
		{
			bool		same = true;
			Node	   *value = clause_value(relation, next->clause, attnum, way == 0 ? NIL : rinfos,
											 more, &same);

			if (value == NULL || (found != NULL && level <= next->security_level))
				continue;
			found = value;
			level = next->security_level;
			*rinfo = same ? next : NULL;
		}
	}
	return found;
}

/* Tells whether the clause is that of one of the bindings. */
static bool
is_binding(const List *bindings, const RestrictInfo *rinfo)
{
	ListCell   *cell;

	foreach(cell, bindings)
	{
		if (((MongoBinding *) lfirst(cell))->rinfo == rinfo)
			return true;
	}
	return false;
}

/*
 * Returns a MongoBinding for each parameter of the table's pipeline.  A change stream has one
 * start: the first one with a value, if there is one.
 */
static List *
find_bindings(const MongoRelation *relation, const List *rinfos)
{
	List	   *bindings = NIL;
	ListCell   *cell;

	foreach(cell, mongo_column_facts(relation->relid)->parameters)
	{
		MongoBinding *binding = palloc0(sizeof(MongoBinding));

		binding->attnum = lfirst_int(cell);
		binding->value = value_of_column(relation, rinfos, binding->attnum, NULL, &binding->rinfo);
		if (binding->value != NULL && relation->options->change_stream != NULL)
			return list_make1(binding);
		bindings = lappend(bindings, binding);
	}
	return bindings;
}

/*
 * mongo_binds_parameters
 *		Tells whether these RestrictInfos give each parameter of the table's pipeline a value.
 *
 * For a change stream, one parameter with a value is enough.
 */
bool
mongo_binds_parameters(const MongoRelation *relation, const List *rinfos)
{
	ListCell   *cell;

	foreach(cell, find_bindings(relation, rinfos))
	{
		if (((MongoBinding *) lfirst(cell))->value == NULL)
			return false;
	}
	return true;
}

/*
 * Binds parameters by the restrictions, which then do not narrow the rows of the pipeline.  Raises
 * 22023 if the table has a parameter but no pipeline.
 */
static void
bind_parameters(PlannerInfo *root, RelOptInfo *baserel, MongoRelation *relation)
{
	List	   *others = NIL;
	ListCell   *cell;

	relation->bindings = find_bindings(relation, baserel->baserestrictinfo);
	relation->unbound = !mongo_binds_parameters(relation, baserel->baserestrictinfo);
	if (relation->bindings == NIL)
		return;
	if (!mongo_has_first_stages(relation->options))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"parameter\" of column \"%s\" requires the option \"pipeline\" of its table",
						mongo_column_name(relation->columns,
										  ((MongoBinding *) linitial(relation->bindings))->attnum))));
	foreach(cell, baserel->baserestrictinfo)
	{
		if (!is_binding(relation->bindings, lfirst(cell)))
			others = lappend(others, lfirst(cell));
	}
	baserel->rows = clamp_row_est(baserel->tuples *
								  clauselist_selectivity(root, others, 0, JOIN_INNER, NULL));
}

/*
 * Finds the restrictions that MongoDB can test, and estimates what it returns and examines by
 * them.
 */
static void
classify_restrictions(PlannerInfo *root, RelOptInfo *baserel, MongoRelation *relation)
{
	MongoTranslation translation;
	List	   *remote = NIL;
	bool		unique = false;

	relation->matches_outer = clauses_name_match(baserel->joininfo, baserel);
	relation->names_match = relation->matches_outer || clauses_name_match(baserel->baserestrictinfo, baserel);
	/* the translation checks a privilege of this user */
	root->glob->dependsOnRole |= relation->names_match;
	relation->restrictions = list_copy(baserel->baserestrictinfo);
	translation = mongo_translation_of(relation);

	/*
	 * only PostgreSQL can test a change stream's position, which is its last
	 * row
	 */
	relation->all_exact = !relation->skips_locally && relation->options->change_stream == NULL;
	foreach_node(RestrictInfo, rinfo, baserel->baserestrictinfo)
	{
		bson_t	   *match = mongo_bson_create();
		MongoCondition condition = {.exactness = MONGO_NOT_SHIPPABLE};

		if (is_binding(relation->bindings, rinfo))
			continue;
		if (mongo_enable_pushdown)
			condition = mongo_translate_restriction(&translation, baserel, rinfo, match);
		if (condition.exactness != MONGO_EXACT)
			relation->all_exact = false;
		if (condition.exactness == MONGO_NOT_SHIPPABLE)
			continue;

		/*
		 * if a translation does not depend on others, the plan uses it
		 * unchanged
		 */
		if (translation.parameters == NIL && translation.variables == NIL &&
			!translation.compares_text)
			relation->known = lappend(relation->known, mongo_clause_create(rinfo, &condition, match));
		remote = lappend(remote, rinfo);
		relation->indexable = mongo_append_indexable(relation->indexable, rinfo, &condition);
		unique |= condition.unique;
	}

	relation->remote_rows = clamp_row_est(baserel->tuples *
										  clauselist_selectivity(root, remote, baserel->relid,
																 JOIN_INNER, NULL));
	relation->examined_rows = unique ? 1 :
		mongo_examined_rows(root, baserel, relation->indexable);
	relation->remote_rows = Min(relation->remote_rows, relation->examined_rows);
	baserel->rows = Min(baserel->rows, relation->remote_rows);
}

/*
 * mongo_exact_pipeline
 *		Returns the stages that make the rows of a foreign table and test all restrictions; NULL if
 *		PostgreSQL has to test one, or if the rows are a change stream's.
 *
 * They are made once, in the relation's memory context, and are not to be changed.  Raises what
 * mongo_pipeline_make_rows() raises.
 */
const MongoPipeline *
mongo_exact_pipeline(RelOptInfo *rel)
{
	MongoRelation *relation = rel->fdw_private;
	MongoPipeline pipeline = {.translation = mongo_translation_of(relation)};
	MongoScanClauses clauses;
	MemoryContext old_context;

	if (!mongo_enable_pushdown || relation->asked_for_pipeline || relation->skips_locally ||
		relation->unbound || relation->options->change_stream != NULL)
		return relation->pipeline;
	relation->asked_for_pipeline = true;
	old_context = mongo_enter_planning(rel);
	pipeline.translation.need_exact = true;
	pipeline.stages = mongo_bson_create();
	mongo_classify_clauses(&pipeline.translation, rel, rel->baserestrictinfo, &clauses);
	if (clauses.local == NIL)
	{
		mongo_pipeline_make_rows(&pipeline, relation, &clauses);
		pipeline.translation.skips = true;
		relation->pipeline = memcpy(palloc(sizeof(pipeline)), &pipeline, sizeof(pipeline));
	}
	MemoryContextSwitchTo(old_context);
	return relation->pipeline;
}

/* The system column to search for in a query. */
typedef struct SystemColumnSearch
{
	const Bitmapset *relids;	/* a table, and its parents */
	int			level;			/* number of nested queries */
	AttrNumber	found;
} SystemColumnSearch;

/* Finds a system column of the relids other than tableoid; a tree walker. */
static bool
find_system_column(Node *node, SystemColumnSearch *search)
{
	bool		result;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		const Var  *var = (const Var *) node;

		if (var->varattno >= 0 || var->varattno == TableOidAttributeNumber ||
			(int) var->varlevelsup != search->level || !bms_is_member(var->varno, search->relids))
			return false;
		search->found = var->varattno;
		return true;
	}
	/* added by the planner: identities of target rows and locked rows */
	if (IsA(node, TargetEntry) && search->level == 0 && ((TargetEntry *) node)->resjunk &&
		((TargetEntry *) node)->ressortgroupref == 0)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, find_system_column, search);
	search->level++;
	result = query_tree_walker((Query *) node, find_system_column, search,
							   QTW_IGNORE_JOINALIASES);
	search->level--;
	return result;
}

/* Raises 0A000 if a system column was found. */
static void
report_system_column(const SystemColumnSearch *search, Oid foreigntableid)
{
	if (search->found != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("system column \"%s\" of foreign table \"%s\" cannot be used",
						NameStr(SystemAttributeDefinition(search->found)->attname),
						get_rel_name(foreigntableid)),
				 errdetail("A document has no row identity in PostgreSQL that two scans would agree on."),
				 errhint("Use the column that reads the field _id.")));
}

/*
 * Raises 0A000 if the query refers to system columns, because each scan gives its rows other
 * ctids.  Vars of a partition have its parent's number in the query; for a part of UNION ALL, they
 * are in translated_vars.
 */
static void
reject_system_columns(PlannerInfo *root, const RelOptInfo *baserel, Oid foreigntableid)
{
	Bitmapset  *relids = bms_make_singleton(baserel->relid);
	SystemColumnSearch search = {.relids = relids};
	Index		child = baserel->relid;

	while (root->append_rel_array != NULL && root->append_rel_array[child] != NULL)
	{
		const AppendRelInfo *part = root->append_rel_array[child];

		(void) find_system_column((Node *) part->translated_vars, &search);
		child = part->parent_relid;
		search.relids = relids = bms_add_member(relids, child);
	}
	(void) query_tree_walker(root->parse, find_system_column, &search, QTW_IGNORE_JOINALIASES);
	report_system_column(&search, foreigntableid);
	bms_free(relids);
}

/*
 * mongo_refuse_returned_system_columns
 *		Raises 0A000 for system columns of the table that an INSERT returns, but not for tableoid.
 *
 * mongo_get_foreign_rel_size() does so for tables that are scanned.
 */
void
mongo_refuse_returned_system_columns(List *returning, Index target, Oid foreigntableid)
{
	SystemColumnSearch search = {.relids = bms_make_singleton(target)};

	(void) find_system_column((Node *) returning, &search);
	report_system_column(&search, foreigntableid);
}

/*
 * mongo_get_foreign_rel_size
 *		Sets the relation's number of rows, and its MongoRelation; a callback of PostgreSQL.
 *
 * Sends nothing to MongoDB unless the option use_remote_estimate is set.  Raises 0A000 for system
 * columns, and 22023 for a parameter without a pipeline.
 */
void
mongo_get_foreign_rel_size(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid)
{
	MemoryContext old_context = mongo_enter_planning(baserel);
	MongoRelation *relation = create_table_relation(root, baserel, foreigntableid);

	reject_system_columns(root, baserel, foreigntableid);
	baserel->fdw_private = relation;

	/*
	 * Below a view that is a security barrier, conditions from above it may
	 * have been pushed down unmarked; PostgreSQL pushes down only leakproof
	 * ones.
	 */
	relation->below_barrier = is_below_barrier(root);
	relation->has_barrier = relation->below_barrier ||
		baserel->baserestrict_min_security < root->qual_security_level;
	relation->query_level = root->qual_security_level;

	relation->analyzed_rows = Max(baserel->tuples, 0);
	baserel->tuples = total_rows(relation, baserel);
	set_baserel_size_estimates(root, baserel);
	bind_parameters(root, baserel, relation);
	classify_restrictions(root, baserel, relation);
	mongo_note_score(root, baserel);
	MemoryContextSwitchTo(old_context);
}

/*
 * mongo_is_declared_not_null
 *		Tells whether the column is declared NOT NULL, and the query does not read fields that do
 *		not fit it as NULL.
 *
 * A foreign table's declaration is trusted, as by PostgreSQL.
 */
bool
mongo_is_declared_not_null(MongoColumns *columns, AttrNumber attnum)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(columns->relid),
										Int16GetDatum(attnum));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull;
	ReleaseSysCache(tuple);
	return result && mongo_column_mismatch(columns, attnum) != MONGO_TYPE_MISMATCH_NULL;
}

/* ---------- The clauses of a scan, classified by who tests them ----------- */

/*
 * mongo_clause_create
 *		Returns a MongoClause with a copy of 'condition', palloc'd in the current memory context.
 *
 * 'rinfo' and 'match' may be NULL, and are not copied.
 */
MongoClause *
mongo_clause_create(RestrictInfo *rinfo, const MongoCondition *condition, bson_t *match)
{
	MongoClause *result = palloc(sizeof(MongoClause));

	result->rinfo = rinfo;
	result->condition = *condition;
	result->match = match;
	return result;
}

/*
 * mongo_known_clause
 *		Returns the clause's entry in MongoRelation.known, or NULL.
 */
const MongoClause *
mongo_known_clause(const RelOptInfo *baserel, const RestrictInfo *rinfo)
{
	ListCell   *cell;

	foreach(cell, ((const MongoRelation *) baserel->fdw_private)->known)
	{
		if (((MongoClause *) lfirst(cell))->rinfo == rinfo)
			return lfirst(cell);
	}
	return NULL;
}

/*
 * mongo_classify_clauses
 *		Sets *clauses to these RestrictInfos, by who tests them.
 *
 * They are clauses of 'baserel' or, if that is NULL, of a join for which mongo_join_is_secure() is
 * called too.  Parameters are collected in 'translation'.  Pseudoconstant clauses are left out,
 * because PostgreSQL tests them above the scan.  The result is in the current memory context, and
 * points to translations of MongoRelation.known.
 */
void
mongo_classify_clauses(MongoTranslation *translation, RelOptInfo *baserel, List *scan_clauses,
					   MongoScanClauses *clauses)
{
	List	   *conjuncts = NIL;
	bool		is_stream = false;

	memset(clauses, 0, sizeof(*clauses));
	if (baserel != NULL)
	{
		const MongoRelation *relation = baserel->fdw_private;

		clauses->bindings = find_bindings(relation, scan_clauses);
		is_stream = relation->options->change_stream != NULL;
		if (clauses->bindings != NIL || is_stream)
			pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &clauses->read);
	}
	foreach_node(RestrictInfo, rinfo, scan_clauses)
	{
		const MongoClause *clause = baserel == NULL ? NULL : mongo_known_clause(baserel, rinfo);

		/* pseudoconstants become a gating Result node */
		if (rinfo->pseudoconstant)
			continue;
		if (is_binding(clauses->bindings, rinfo))
		{
			clauses->bound = lappend(clauses->bound, rinfo->clause);
			continue;
		}
		if (clauses->bindings != NIL || is_stream)
			pull_varattnos((Node *) rinfo->clause, baserel->relid, &clauses->read);
		if (clause == NULL || (clause->condition.exactness != MONGO_EXACT && translation->need_exact))
		{
			bson_t	   *filter = mongo_bson_create();
			MongoCondition condition = {.exactness = MONGO_NOT_SHIPPABLE};

			if (mongo_enable_pushdown)
				condition = baserel != NULL ?
					mongo_translate_restriction(translation, baserel, rinfo, filter) :
					mongo_translate_condition(translation, rinfo->clause, filter);
			clause = mongo_clause_create(rinfo, &condition, filter);
		}
		if (clause->condition.exactness != MONGO_NOT_SHIPPABLE && !bson_empty(clause->match))
		{
			conjuncts = lappend(conjuncts, clause->match);
			clauses->sent = lappend(clauses->sent, unconstify(MongoClause *, clause));
		}
		if (clause->condition.exactness == MONGO_EXACT && !is_stream)
		{
			clauses->exact = lappend(clauses->exact, rinfo->clause);
			continue;
		}
		if (baserel != NULL && mongo_hides_rows(baserel, rinfo))
			clauses->hiding = lappend_int(clauses->hiding, list_length(clauses->local));
		clauses->local = lappend(clauses->local, rinfo->clause);
	}

	if (baserel != NULL && ((MongoRelation *) baserel->fdw_private)->fit != NULL)
		conjuncts = lappend(conjuncts,
							unconstify(bson_t *, ((MongoRelation *) baserel->fdw_private)->fit));
	clauses->filter = mongo_bson_create();
	mongo_append_conjuncts(clauses->filter, conjuncts);
}

/*
 * mongo_append_conjuncts
 *		Appends the conjunction of these filters, bson_t *, to the empty 'filter'; nothing for NIL.
 */
void
mongo_append_conjuncts(bson_t *filter, const List *conjuncts)
{
	if (list_length(conjuncts) == 1)
		mongo_concat(filter, linitial(conjuncts));
	if (list_length(conjuncts) > 1)
		mongo_append_branches(filter, conjuncts, true);
}
