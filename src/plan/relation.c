/*-------------------------------------------------------------------------
 *
 * relation.c
 *		Estimates a foreign table.
 *
 * Decides for each table of a query how many documents MongoDB examines and returns, and collects
 * in its MongoRelation what later steps need.  clauses.c classifies the restrictions, and index.c
 * knows which documents an index finds.
 *
 * The parts of mongo_get_foreign_rel_size(), the callback at the end, come in its order, but for
 * system columns, which are refused before all else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"
#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"
#include "catalog.h"

#include "access/sysattr.h"
#include "catalog/heap.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"

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
 * Returns the attributes that the query reads, as pull_varattnos() counts them, but not the whole
 * rows by which rows are found again to change or lock them, and not those that are arguments of
 * mongo_match() and mongo_score().
 */
static Bitmapset *
attributes_read(PlannerInfo *root, const RelOptInfo *baserel)
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

		add_used(clause, baserel, mongo_calls_match(clause, unconstify(Index *, &baserel->relid)),
				 &used);
	}
	return used;
}

/* Tells whether a column is among these attributes; whole rows contain it. */
static bool
reads_attribute(const Bitmapset *used, AttrNumber attnum)
{
	return bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, used) ||
		bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
}

/*
 * Sets reads_ordinality, and whether the scan unwinds.  It may not if it reads whole documents, or
 * if only MongoDB can test a condition, and does not if that costs more.
 */
static void
set_unwinding(PlannerInfo *root, RelOptInfo *baserel, MongoRelation *relation)
{
	const MongoTableOptions *options = relation->options;
	List	   *fields = mongo_ordinality_fields(options);
	Bitmapset  *used = attributes_read(root, baserel);
	bool		uses_all = relation->calls_match || relation->columns->shows_mismatches;
	Cost		cost;

	relation->reads_ordinality = relation->fit != NULL;
	relation->unwinds = mongo_enable_pushdown && !mongo_has_first_stages(options) &&
		!relation->calls_match && relation->fit == NULL && !relation->skips_locally;
	for (AttrNumber attnum = 1; attnum <= baserel->max_attr; attnum++)
	{
		const char *path;
		ListCell   *cell;

		if ((!uses_all && !reads_attribute(used, attnum)) ||
			!OidIsValid(get_atttype(relation->relid, attnum)))
			continue;
		path = mongo_column_path(relation->columns, attnum);
		relation->unwinds &= path != NULL && mongo_path_is_addressable(path);
		foreach(cell, fields)
		{
			relation->reads_ordinality |= path == NULL || mongo_path_is_under(path, lfirst(cell));
		}
	}
	if (!relation->unwinds)
		return;
	cost = mongo_estimate_plain_scan(baserel).total_cost;
	relation->unwinds = false;
	relation->unwinds = cost <= mongo_estimate_plain_scan(baserel).total_cost;
}

/* Decides how fields are read that do not fit their columns. */
static void
set_mismatches(PlannerInfo *root, const RelOptInfo *baserel, MongoRelation *relation)
{
	const MongoColumnFacts *facts = mongo_column_facts(relation->relid);
	bson_t	   *fit;

	relation->mismatches = facts->mismatches;
	if (facts->shown_by != 0 && reads_attribute(attributes_read(root, baserel), facts->shown_by))
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

/* The number of an array's elements if ANALYZE does not tell it. */
#define DEFAULT_ELEMENTS	4

/*
 * Estimates the arrays of a table with the option unwind: their length by the number of values that
 * _id has, and the bytes of an element by ANALYZE.
 */
static void
estimate_arrays(PlannerInfo *root, RelOptInfo *baserel, MongoRelation *relation)
{
	relation->array_length = DEFAULT_ELEMENTS;
	relation->element_bytes = baserel->pages > 0 && relation->analyzed_rows > 0 ?
		(double) baserel->pages * BLCKSZ / relation->analyzed_rows : baserel->reltarget->width;
	for (AttrNumber attnum = 1; attnum <= baserel->max_attr; attnum++)
	{
		const char *path;
		Oid			type;
		int32		typmod;
		Oid			collation;
		VariableStatData variable;
		double		documents;
		bool		is_default;

		get_atttypetypmodcoll(relation->relid, attnum, &type, &typmod, &collation);
		path = OidIsValid(type) ? mongo_column_path(relation->columns, attnum) : NULL;
		if (path == NULL || strcmp(path, "_id") != 0)
			continue;
		examine_variable(root, (Node *) makeVar(baserel->relid, attnum, type, typmod, collation, 0),
						 0, &variable);
		documents = get_variable_numdistinct(&variable, &is_default);
		ReleaseVariableStats(variable);
		if (!is_default)
			relation->array_length = Max(baserel->tuples / documents, 1);
	}
}

/*
 * Sets how many rows are unwound.  'documents' are the conditions that MongoDB tests before, and
 * 'elements' those on elements by which it finds documents.
 */
static void
estimate_unwinding(PlannerInfo *root, RelOptInfo *baserel, MongoRelation *relation,
				   List *documents, List *elements)
{
	double		rows;

	estimate_arrays(root, baserel, relation);
	rows = baserel->tuples * clauselist_selectivity(root, documents, baserel->relid, JOIN_INNER, NULL) *
		Min(1, relation->array_length *
			clauselist_selectivity(root, elements, baserel->relid, JOIN_INNER, NULL));
	relation->unwound_rows = Max(rows, relation->remote_rows);
}

static MongoRelation *
create_table_relation(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid)
{
	MongoRelation *relation = palloc0(sizeof(MongoRelation));

	relation->relid = foreigntableid;
	relation->serverid = baserel->serverid;
	relation->subplans = root->glob->subplans;
	relation->options = mongo_table_options(foreigntableid);
	relation->columns = mongo_columns_create(foreigntableid, baserel->relid, baserel->max_attr);
	relation->columns->userid = baserel->userid ? baserel->userid : GetUserId();
	relation->columns->statistics = mongo_statistics_of(foreigntableid);
	set_network(relation);
	if (mongo_is_pipeline_table(relation->options))
		relation->columns->derivation = relation->options;
	set_mismatches(root, baserel, relation);
	return relation;
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

/* Tells whether any of these RestrictInfos matches the table's row by mongo_match(). */
static bool
clauses_call_match(const List *rinfos, RelOptInfo *baserel)
{
	ListCell   *cell;

	foreach(cell, rinfos)
	{
		if (mongo_calls_match((Node *) lfirst_node(RestrictInfo, cell)->clause, &baserel->relid))
			return true;
	}
	return false;
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

	relation->bindings = mongo_find_bindings(relation, baserel->baserestrictinfo);
	relation->unbound = !mongo_binds_parameters(relation->bindings);
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
		if (!mongo_is_binding(relation->bindings, lfirst(cell)))
			others = lappend(others, lfirst(cell));
	}
	baserel->rows = clamp_row_est(baserel->tuples *
								  clauselist_selectivity(root, others, 0, JOIN_INNER, NULL));
}

/* A restriction that MongoDB can test, and what that costs. */
typedef struct TestedClause
{
	RestrictInfo *rinfo;
	const bson_t *match;		/* the translation */
	Cost		remote;			/* for each document, in MongoDB */
	Cost		local;			/* and in PostgreSQL, with sending the columns */
	double		selectivity;
	double		share_of_next;	/* of the documents that pass those behind it
								 * in the list */
} TestedClause;

/* Compares by the cost in MongoDB, the highest first; a list_sort_comparator. */
static int
compare_tested(const ListCell *left, const ListCell *right)
{
	Cost		one = ((const TestedClause *) lfirst(left))->remote;
	Cost		other = ((const TestedClause *) lfirst(right))->remote;

	return one > other ? -1 : one < other;
}

/* Sets what the clause costs PostgreSQL, and its selectivity. */
static void
estimate_local_test(PlannerInfo *root, RelOptInfo *baserel, TestedClause *tested)
{
	const MongoRelation *relation = baserel->fdw_private;
	Node	   *clause = (Node *) tested->rinfo;
	PathTarget	columns = {.exprs = pull_var_clause((Node *) tested->rinfo->clause, PVC_RECURSE_PLACEHOLDERS)};
	QualCost	local;

	foreach_node(Var, var, columns.exprs)
		columns.width += Max(get_attavgwidth(relation->relid, var->varattno), 1);
	cost_qual_eval_node(&local, clause, root);
	tested->local = local.per_tuple + mongo_transfer_cost(relation, 1, &columns) -
		mongo_transfer_cost(relation, 1, &(PathTarget) {0});
	tested->selectivity = clause_selectivity(root, clause, baserel->relid, JOIN_INNER, NULL);
}

/*
 * Returns the RestrictInfos that PostgreSQL tests alone, of these TestedClauses, which cost MongoDB
 * 'filter_cost' in all for each document.
 *
 * MongoDB tests one condition after another on each document, while PostgreSQL takes less for many
 * of them, such as a list of 1,000 numerics, but must receive the documents.  The conditions that
 * cost MongoDB most are left out of the command, as many as make it cheapest.  All of them are
 * sent if that costs little more, since groups and limits can then be; and those that an
 * index serves.
 */
static List *
conditions_to_keep(PlannerInfo *root, RelOptInfo *baserel, List *all_tested, double filter_cost)
{
	const MongoRelation *relation = baserel->fdw_private;
	const Query *parse = root->parse;
	Cost		sent = cpu_tuple_cost + mongo_transfer_cost(relation, 1, baserel->reltarget);
	bool		reduces = parse->hasAggs || parse->groupClause != NIL || parse->distinctClause != NIL ||
		parse->limitCount != NULL;
	double		examined = relation->examined_rows;
	double		selectivity = 1;
	Cost		all = MONGO_COST_EXAMINED * MONGO_COST_UNIT;
	Cost		remote;
	Cost		local = 0;
	Cost		best;
	int			nkept = 0;
	List	   *tested = NIL;
	List	   *kept = NIL;

	if ((all + filter_cost * MONGO_COST_UNIT) * examined < MONGO_COST_LEAST_KEPT)
		return NIL;
	foreach_ptr(TestedClause, one, all_tested)
	{
		if (list_member_ptr(relation->served, one->rinfo))
			continue;
		estimate_local_test(root, baserel, one);
		all += one->remote;
		tested = lappend(tested, one);
	}
	list_sort(tested, compare_tested);
	for (int i = list_length(tested) - 1; i >= 0; i--)
	{
		TestedClause *one = list_nth(tested, i);

		one->share_of_next = selectivity;
		selectivity *= one->selectivity;
	}
	remote = all;
	/* what MongoDB groups or limits is not sent */
	best = all += reduces ? 0 : selectivity * sent;
	for (int i = 0; i < list_length(tested); i++)
	{
		const TestedClause *one = list_nth(tested, i);
		Cost		cost;

		remote -= one->remote;
		local += one->local;
		cost = remote + one->share_of_next * (sent + local);
		if (cost >= best)
			continue;
		best = cost;
		nkept = i + 1;
	}
	if (all < best * MONGO_COST_KEPT || (all - best) * examined < MONGO_COST_LEAST_KEPT)
		return NIL;
	for (int i = 0; i < nkept; i++)
		kept = lappend(kept, ((const TestedClause *) list_nth(tested, i))->rinfo);
	return kept;
}

/*
 * Tells whether what conditions cost MongoDB matters: not for rows that MongoDB computes, for rows
 * that are changed, which then need a command each, or for conditions that only MongoDB can test.
 */
static bool
weighs_conditions(PlannerInfo *root, const RelOptInfo *baserel, const MongoRelation *relation)
{
	return mongo_enable_pushdown && !mongo_is_pipeline_table(relation->options) &&
		!bms_is_member(baserel->relid, root->all_result_relids) && !relation->has_barrier &&
		!relation->calls_match && !relation->columns->shows_mismatches;
}

/* So few documents are tested fast, whatever the conditions. */
#define FEW_EXAMINED	10

/*
 * Finds the restrictions that MongoDB can test, except MongoRelation.kept, and estimates what it
 * returns and examines by them.
 *
 * Returns a TestedClause for each, without its local costs, and sets *filter_cost to what all of
 * them cost MongoDB for each document, in the unit T; NIL and 0 if costs do not matter.
 */
static List *
classify_restrictions(PlannerInfo *root, RelOptInfo *baserel, MongoRelation *relation,
					  double *filter_cost)
{
	bool		weighs = weighs_conditions(root, baserel, relation);
	List	   *tested = NIL;
	MongoTranslation translation;
	List	   *remote = NIL;
	List	   *elements = NIL;
	List	   *documents = NIL;
	bool		unique = false;

	relation->known = relation->indexable = relation->served = NIL;
	*filter_cost = 0;
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

		if (mongo_is_binding(relation->bindings, rinfo))
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
		if (mongo_unwound_depth(relation->options, relation->columns,
								(Node *) rinfo->clause) == 0)
			documents = lappend(documents, rinfo);
		else if (condition.seek != MONGO_SEEK_NOTHING)
			elements = lappend(elements, rinfo);
		relation->indexable = mongo_append_indexable(relation->indexable, rinfo, &condition);
		unique |= condition.unique;
		if (weighs && !rinfo->pseudoconstant)
		{
			TestedClause *one = palloc(sizeof(TestedClause));

			one->rinfo = rinfo;
			one->match = match;
			tested = lappend(tested, one);
		}
	}

	relation->remote_rows = clamp_row_est(baserel->tuples *
										  clauselist_selectivity(root, remote, baserel->relid,
																 JOIN_INNER, NULL));
	relation->examined_rows = unique ? 1 :
		mongo_examined_rows(root, baserel, relation->indexable, &relation->served);
	relation->order_share = 1;
	relation->remote_rows = Min(relation->remote_rows, relation->examined_rows);
	baserel->rows = Min(baserel->rows, relation->remote_rows);
	if (relation->options->unwind != NULL)
		estimate_unwinding(root, baserel, relation, documents, elements);
	if (relation->examined_rows <= FEW_EXAMINED)
		return NIL;
	foreach_ptr(const MongoClause, clause, relation->indexable)
	{
		if (relation->served == NIL || clause->rinfo != linitial(relation->served))
			continue;
		relation->order_share = mongo_order_share(root, baserel, clause->condition.path,
												  (Node *) clause->rinfo->clause);
		if (clause->condition.seek == MONGO_SEEK_VALUE)
			relation->order_share = Max(relation->order_share,
										mongo_order_of_value(relation->examined_rows / Max(baserel->tuples, 1)));
	}
	foreach_ptr(TestedClause, one, tested)
	{
		double		cost = mongo_filter_cost(&translation, one->match);

		*filter_cost += cost;
		one->remote = cost * MONGO_COST_UNIT;
	}
	return tested;
}

/* Decides which restrictions MongoDB tests, and whether by an index. */
static void
decide_restrictions(PlannerInfo *root, RelOptInfo *baserel, MongoRelation *relation)
{
	double		filter_cost;
	List	   *tested;

	relation->matches_outer = clauses_call_match(baserel->joininfo, baserel);
	relation->calls_match = relation->matches_outer || clauses_call_match(baserel->baserestrictinfo, baserel);
	/* the translation checks a privilege of this user */
	root->glob->dependsOnRole |= relation->calls_match;
	relation->restrictions = list_copy(baserel->baserestrictinfo);
	tested = classify_restrictions(root, baserel, relation, &filter_cost);
	relation->kept = conditions_to_keep(root, baserel, tested, filter_cost);
	if (relation->kept != NIL)
		classify_restrictions(root, baserel, relation, &filter_cost);
	mongo_choose_natural(root, baserel, filter_cost);
	if (relation->options->unwind != NULL)
		set_unwinding(root, baserel, relation);
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
 * Sets the share of rows that have a condition on local time: that of a range of the column, since
 * PostgreSQL would know nothing of it.
 */
static void
estimate_local_times(PlannerInfo *root, RelOptInfo *baserel, MongoColumns *columns)
{
	foreach_node(RestrictInfo, rinfo, baserel->baserestrictinfo)
	{
		List	   *range = mongo_local_time_range(root, columns, (OpExpr *) rinfo->clause);

		if (range != NIL)
			rinfo->norm_selec = clauselist_selectivity(root, range, baserel->relid, JOIN_INNER, NULL);
	}
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
	estimate_local_times(root, baserel, relation->columns);
	set_baserel_size_estimates(root, baserel);
	bind_parameters(root, baserel, relation);
	decide_restrictions(root, baserel, relation);
	mongo_note_score(root, baserel);
	MemoryContextSwitchTo(old_context);
}
