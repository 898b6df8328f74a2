/*-------------------------------------------------------------------------
 *
 * modify.c
 *		Plans INSERT, UPDATE and DELETE, row by row or as one command.
 *
 * Row by row, the scan returns a ctid that identifies the document (src/exec/modify.c).  The last
 * part is about a whole UPDATE or DELETE as one command, which is possible if MongoDB tests all
 * conditions exactly, and each assigned value is the same for all documents or is added to the
 * column's own value.
 *
 * The callbacks for both ways are at the end of their parts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"
#include "translate.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc_d.h"
#include "catalog/pg_type_d.h"
#include "commands/trigger.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/inherit.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* ------------- Planning INSERT, UPDATE and DELETE row by row -------------- */

/*
 * mongo_add_foreign_update_targets
 *		Adds the ctid that identifies the scan's rows, and for DELETE ... RETURNING the whole row;
 *		a callback of PostgreSQL.
 */
void
mongo_add_foreign_update_targets(PlannerInfo *root, Index rtindex,
								 RangeTblEntry *target_rte pg_attribute_unused(),
								 Relation target_relation pg_attribute_unused())
{
	Var		   *var = makeVar(rtindex, SelfItemPointerAttributeNumber, TIDOID,
							  -1, InvalidOid, 0);

	add_row_identity_var(root, var, rtindex, "ctid");

	/* the row that DELETE ... RETURNING returns; UPDATE has it anyway */
	if (root->parse->commandType == CMD_DELETE && root->parse->returningList != NIL)
	{
		var = makeVar(rtindex, InvalidAttrNumber, RECORDOID, -1, InvalidOid, 0);
		add_row_identity_var(root, var, rtindex, "wholerow");
	}
}

/*
 * Tells whether anything but the statement itself sees the rows of this table.  Row triggers and
 * transition tables do; generated columns may be computed from any column.
 */
static bool
looks_at_rows(Oid relid, CmdType operation)
{
	Relation	relation = table_open(relid, NoLock);
	const TriggerDesc *triggers = relation->trigdesc;
	const TupleConstr *constraints = RelationGetDescr(relation)->constr;
	bool		looks = false;

	if (triggers != NULL && operation == CMD_UPDATE)
		looks = triggers->trig_update_before_row || triggers->trig_update_after_row ||
			triggers->trig_update_old_table || triggers->trig_update_new_table;
	else if (triggers != NULL)
		looks = triggers->trig_delete_before_row || triggers->trig_delete_after_row ||
			triggers->trig_delete_old_table;
	if (operation == CMD_UPDATE && constraints != NULL &&
		constraints->has_generated_stored)
		looks = true;
	table_close(relation, NoLock);
	return looks;
}

/*
 * Tells whether the target list contains the target's whole row, apart from junk that identifies
 * it.
 */
static bool
expressions_read_row(PlannerInfo *root, Index target)
{
	Bitmapset  *used = NULL;

	foreach_node(TargetEntry, entry, root->processed_tlist)
	{
		if (!entry->resjunk || !IsA(entry->expr, Var))
			pull_varattnos((Node *) entry->expr, target, &used);
	}
	return bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
}

/* Returns the columns that the UPDATE stores, including generated ones. */
static List *
assigned_attributes(PlannerInfo *root, Index rtindex)
{
	Bitmapset  *columns = get_rel_all_updated_cols(root,
												   find_base_rel(root, rtindex));
	List	   *attributes = NIL;
	int			column = -1;

	while ((column = bms_next_member(columns, column)) >= 0)
	{
		AttrNumber	attnum = column + FirstLowInvalidHeapAttributeNumber;

		if (attnum <= 0)
			elog(ERROR, "system-column update is not supported");
		if (get_attgenerated(planner_rt_fetch(rtindex, root)->relid, attnum) !=
			ATTRIBUTE_GENERATED_VIRTUAL)
			attributes = lappend_int(attributes, attnum);
	}
	return attributes;
}

/* Tells whether the UPDATE changes a column in the bounds of this partition. */
static bool
update_may_leave_partition(PlannerInfo *root, Index rtindex)
{
	Relation	relation = table_open(planner_rt_fetch(rtindex, root)->relid, NoLock);
	List	   *assigned = relation->rd_rel->relispartition ?
		assigned_attributes(root, rtindex) : NIL;
	bool		result = mongo_may_leave_partition(relation, list_concat(mongo_overlapped_columns(relation, assigned),
																		 assigned));

	table_close(relation, NoLock);
	return result;
}

/*
 * mongo_whole_row_is_junk
 *		Tells whether this scan returns the whole row only for the UPDATE or DELETE for which
 *		PostgreSQL adds it, so that columns may read as NULL.
 *
 * If so, the columns in RETURNING, which may not, are added to *attributes as pull_varattnos()
 * counts them.
 */
bool
mongo_whole_row_is_junk(PlannerInfo *root, RelOptInfo *baserel, Bitmapset **attributes)
{
	Query	   *parse = root->parse;
	Index		target = parse->resultRelation;
	Oid			target_relid;
	Oid			relid = planner_rt_fetch(baserel->relid, root)->relid;
	RelOptInfo *target_rel;
	Relids		needed;
	Bitmapset  *returned = NULL;
	int			column = -1;

	if ((parse->commandType != CMD_UPDATE && parse->commandType != CMD_DELETE) ||
		!bms_is_member(baserel->relid, root->leaf_result_relids) ||
		parse->withCheckOptions != NIL ||
		(parse->commandType == CMD_UPDATE &&
		 update_may_leave_partition(root, baserel->relid)))
		return false;
	target_rel = find_base_rel(root, target);
	target_relid = planner_rt_fetch(target, root)->relid;
	if (looks_at_rows(relid, parse->commandType) ||
		(target_relid != relid && looks_at_rows(target_relid, parse->commandType)))
		return false;

	/* attr_needed has 0 for the targetlist, other relations for their joins */
	needed = target_rel->attr_needed[0 - target_rel->min_attr];
	if (!bms_is_empty(needed) &&
		(bms_membership(needed) != BMS_SINGLETON || !bms_is_member(0, needed)))
		return false;
	pull_varattnos((Node *) parse->returningList, target, &returned);
	if (bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, returned) ||
		expressions_read_row(root, target))
		return false;

	/* a partition may number its columns differently */
	while ((column = bms_next_member(returned, column)) >= 0)
	{
		AttrNumber	attnum = column + FirstLowInvalidHeapAttributeNumber;

		if (attnum > 0 && target_relid != relid)
			attnum = get_attnum(relid, get_attname(target_relid, attnum, false));
		*attributes = bms_add_member(*attributes,
									 attnum - FirstLowInvalidHeapAttributeNumber);
	}
	return true;
}

/* Raises 55000 for a pipeline table, with a DETAIL that PostgreSQL lacks. */
static void
reject_pipeline_table(Oid relid, CmdType operation)
{
	const char *option = mongo_deriving_option(mongo_table_options(relid));

	if (option != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("foreign table \"%s\" does not allow %s", get_rel_name(relid),
						operation == CMD_INSERT ? "inserts" :
						operation == CMD_UPDATE ? "updates" : "deletes"),
				 errdetail("Its rows are made by its option \"%s\"; they are not documents of the collection.",
						   option),
				 errhint("Write to a foreign table over the collection itself.")));
}

/*
 * mongo_plan_foreign_modify
 *		Returns fdw_private of writes row by row; a callback of PostgreSQL.
 *
 * It is a List of the List of attributes that an UPDATE assigns, which is NIL for other
 * operations.  Raises 55000 for a pipeline table, 0A000 for ON CONFLICT DO UPDATE and for system
 * columns in RETURNING of an INSERT, and what mongo_check_assignable() raises.
 */
List *
mongo_plan_foreign_modify(PlannerInfo *root, ModifyTable *plan,
						  Index resultRelation, int subplan_index pg_attribute_unused())
{
	RangeTblEntry *entry = planner_rt_fetch(resultRelation, root);
	List	   *attributes = NIL;

	reject_pipeline_table(entry->relid, plan->operation);
	if (plan->onConflictAction > ONCONFLICT_NOTHING)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ON CONFLICT on foreign tables supports DO NOTHING only")));
	if (plan->operation == CMD_INSERT)
		mongo_refuse_returned_system_columns(plan->returningLists, resultRelation, entry->relid);
	if (plan->operation == CMD_UPDATE)
	{
		attributes = assigned_attributes(root, resultRelation);
		mongo_check_assignable(entry->relid, attributes);
	}
	return list_make1(attributes);
}

/*
 * mongo_is_foreign_rel_updatable
 *		Returns the operations that the table allows, as bits; a callback of PostgreSQL.
 */
int
mongo_is_foreign_rel_updatable(Relation rel)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(rel));

	return options->updatable && !mongo_is_pipeline_table(options) ?
		(1 << CMD_INSERT) | (1 << CMD_UPDATE) | (1 << CMD_DELETE) : 0;
}

/* ---------------- Can an UPDATE or DELETE be one command? ----------------- */

/* Sums and differences of integers whose result has the column's type. */
static const struct
{
	Oid			function;
	MongoAssignmentKind kind;
	int			column_argument;	/* may be the column; -1: either */
}			sums[] =
{
	{F_INT2PL, MONGO_ASSIGN_SUM, -1},
	{F_INT4PL, MONGO_ASSIGN_SUM, -1},
	{F_INT8PL, MONGO_ASSIGN_SUM, -1},
	{F_INT42PL, MONGO_ASSIGN_SUM, 0},
	{F_INT24PL, MONGO_ASSIGN_SUM, 1},
	{F_INT82PL, MONGO_ASSIGN_SUM, 0},
	{F_INT28PL, MONGO_ASSIGN_SUM, 1},
	{F_INT84PL, MONGO_ASSIGN_SUM, 0},
	{F_INT48PL, MONGO_ASSIGN_SUM, 1},
	{F_INT2MI, MONGO_ASSIGN_DIFFERENCE, 0},
	{F_INT4MI, MONGO_ASSIGN_DIFFERENCE, 0},
	{F_INT8MI, MONGO_ASSIGN_DIFFERENCE, 0},
	{F_INT42MI, MONGO_ASSIGN_DIFFERENCE, 0},
	{F_INT82MI, MONGO_ASSIGN_DIFFERENCE, 0},
	{F_INT84MI, MONGO_ASSIGN_DIFFERENCE, 0},
};

/* Returns the scan of the target, if there is only an Append in between; otherwise NULL. */
static ForeignScan *
scan_below(ModifyTable *plan, Index rtindex, int subplan_index)
{
	Plan	   *below = outerPlan(plan);

	/* a Result may compute the new values above the Append */
	if (IsA(below, Result) && outerPlan(below) != NULL &&
		IsA(outerPlan(below), Append))
		below = outerPlan(below);
	if (IsA(below, Append))
	{
		List	   *children = ((Append *) below)->appendplans;

		if (subplan_index >= list_length(children))
			return NULL;
		below = list_nth(children, subplan_index);
	}
	if (!IsA(below, ForeignScan) || ((Scan *) below)->scanrelid != rtindex)
		return NULL;
	return (ForeignScan *) below;
}

/*
 * Tells whether the node contains a column of a subquery that is assigned to several columns, as
 * in SET (a, b) = (SELECT ...); a tree walker.
 *
 * The subquery is elsewhere in the target list, may read columns of the row, and must run before
 * any of its columns has a value.
 */
static bool
has_multiexpr(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_MULTIEXPR)
		return true;
	return expression_tree_walker(node, has_multiexpr, context);
}

/* Tells whether the expression can be computed once, before the command is sent. */
static bool
is_value(Node *expression)
{
	return !contain_var_clause(expression) &&
		!contain_volatile_functions(expression) &&
		!contain_subplans(expression) && !has_multiexpr(expression, NULL);
}

/* Tells whether this is "column + value" for the column that is assigned. */
static bool
match_sum(Expr *expression, Index rtindex, MongoAssignment *assignment, Expr **value)
{
	OpExpr	   *operation = (OpExpr *) expression;

	if (!IsA(expression, OpExpr))
		return false;
	set_opfuncid(operation);
	for (size_t i = 0; i < lengthof(sums); i++)
	{
		if (sums[i].function != operation->opfuncid)
			continue;
		for (int argument = 0; argument < 2; argument++)
		{
			Var		   *var = list_nth(operation->args, argument);
			Expr	   *other = list_nth(operation->args, 1 - argument);

			if ((sums[i].column_argument == -1 || sums[i].column_argument == argument) &&
				IsA(var, Var) && var->varno == (int) rtindex &&
				var->varattno == assignment->attnum && var->varlevelsup == 0 &&
				var->vartype == operation->opresulttype && is_value((Node *) other))
			{
				assignment->kind = sums[i].kind;
				*value = other;
				return true;
			}
		}
	}
	return false;
}

/*
 * Translates the SET list, and appends its expressions to *expressions; returns false if an
 * expression depends on the row in another way than by adding to the column.
 */
static bool
translate_assignments(PlannerInfo *root, Index rtindex, const MongoRelation *relation,
					  List **assignments, List **expressions)
{
	Oid			relid = relation->relid;
	List	   *targets;
	List	   *attributes;
	bool		any_own = false;
	bool		any_dotted = false;
	ListCell   *target;
	ListCell   *attribute;

	get_translated_update_targetlist(root, rtindex, &targets, &attributes);
	forboth(target, targets, attribute, attributes)
	{
		MongoAssignment *assignment = palloc0(sizeof(MongoAssignment));
		Expr	   *expression = lfirst_node(TargetEntry, target)->expr;
		const MongoColumnOptions *column;

		/* documents are replaced one by one, because each keeps its own _id */
		if (strcmp(get_attname(relid, lfirst_int(attribute), false),
				   MONGO_DOCUMENT_COLUMN) == 0)
			return false;
		assignment->attnum = lfirst_int(attribute);
		assignment->kind = MONGO_ASSIGN_VALUE;
		column = mongo_column_options(relid, assignment->attnum);
		if (!is_value((Node *) expression))
		{
			/*
			 * a sum in MongoDB has a BSON type of the column's type.  It
			 * equals SQL's sum only if type mismatches are errors.
			 */
			if (column->bson_type != BSON_TYPE_EOD ||
				mongo_column_mismatch(relation->columns, assignment->attnum) ==
				MONGO_TYPE_MISMATCH_NULL ||
				!mongo_feature_enabled(relation->options, MONGO_FEATURE_EXPR) ||
				!match_sum(expression, rtindex, assignment, &expression))
				return false;
			any_own = true;
		}
		if (strchr(column->path, '.') != NULL)
			any_dotted = true;
		*assignments = lappend(*assignments, assignment);
		*expressions = lappend(*expressions, expression);
	}

	/*
	 * a pipeline's $set changes fields within arrays; an update operator does
	 * not
	 */
	if (any_own && any_dotted)
		return false;
	mongo_check_assignable(relid, attributes);
	return true;
}

/* Tells whether a condition identifies one document. */
static bool
at_most_one(MongoColumns *columns, List *quals)
{
	MongoTranslation translation = {.columns = columns};
	ListCell   *cell;

	foreach(cell, quals)
	{
		if (mongo_translate_condition(&translation, lfirst(cell),
									  mongo_bson_create()).one_value)
			return true;
	}
	return false;
}

/* Tells whether a function is one that may read tables; an immutable one does not. */
static bool
is_user_function(Oid function, void *context pg_attribute_unused())
{
	return function >= FirstNormalObjectId && func_volatile(function) != PROVOLATILE_IMMUTABLE;
}

/*
 * Tells whether an expression has a user's function or, if they count, a subquery; a tree walker.
 */
static bool
may_read_tables(Node *node, bool *subselects)
{
	return node != NULL &&
		((*subselects && (IsA(node, SubPlan) ||
						  (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC))) ||
		 check_functions_in_node(node, is_user_function, NULL) ||
		 expression_tree_walker(node, may_read_tables, subselects));
}

/*
 * Plans RETURNING from the one document that the command returns; returns false if there may be
 * several, if there is a node between scan and modification, if it may have to show mismatches, or
 * if it may read tables, in which the change must not be visible yet.
 */
static bool
plan_returning(PlannerInfo *root, ModifyTable *plan, ForeignScan *scan,
			   int subplan_index, MongoDirectPlan *direct)
{
	Index		rtindex = scan->scan.scanrelid;
	RangeTblEntry *entry = planner_rt_fetch(rtindex, root);
	const MongoColumns *columns = ((MongoRelation *) find_base_rel(root, rtindex)->fdw_private)->columns;
	Node	   *returned = list_nth(plan->returningLists, subplan_index);
	bool		subselects = true;
	Bitmapset  *used = NULL;
	bool		whole_row;

	if (!direct->at_most_one || outerPlan(plan) != (Plan *) scan || columns->shows_mismatches ||
		may_read_tables(returned, &subselects))
		return false;

	direct->returns = true;
	pull_varattnos(returned, rtindex, &used);
	whole_row = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	for (AttrNumber attnum = 1; attnum <= columns->natts; attnum++)
	{
		if ((!whole_row && !bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, used)) ||
			get_rte_attribute_is_dropped(entry, attnum))
			continue;
		if (attnum == columns->mismatch_column)
			return false;
		direct->returned = lappend_int(direct->returned, attnum);
	}
	return true;
}

/*
 * Removes from the scan's target list the values that an UPDATE row by row would assign: the row
 * that the command returns is already changed.
 */
static void
forget_new_values(ForeignScan *scan)
{
	List	   *targetlist = NIL;
	ListCell   *cell;

	foreach(cell, scan->scan.plan.targetlist)
	{
		TargetEntry *entry = copyObject(lfirst_node(TargetEntry, cell));
		Node	   *expression = (Node *) entry->expr;

		if (!entry->resjunk)
			entry->expr = (Expr *) makeNullConst(exprType(expression),
												 exprTypmod(expression),
												 exprCollation(expression));
		targetlist = lappend(targetlist, entry);
	}
	scan->scan.plan.targetlist = targetlist;
}

/* Tells whether the table has triggers that may write before the statement has ended. */
static bool
fires_triggers(Oid relid)
{
	Relation	relation = table_open(relid, NoLock);
	const TriggerDesc *triggers = relation->trigdesc;
	bool		fires = triggers != NULL &&
		(triggers->trig_insert_before_row || triggers->trig_insert_instead_row ||
		 triggers->trig_update_before_row || triggers->trig_update_instead_row ||
		 triggers->trig_delete_before_row || triggers->trig_delete_instead_row ||
		 triggers->trig_insert_before_statement || triggers->trig_update_before_statement ||
		 triggers->trig_delete_before_statement);

	table_close(relation, NoLock);
	return fires;
}

/*
 * Counts the tables of a query that may be foreign tables, or that have BEFORE triggers; returns
 * true at a function that may read some.  A tree walker.
 */
static bool
count_foreign(Node *node, int *count)
{
	Query	   *query = (Query *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return check_functions_in_node(node, is_user_function, NULL) ||
			expression_tree_walker(node, count_foreign, count);
	foreach_node(RangeTblEntry, entry, query->rtable)
	{
		if (entry->rtekind == RTE_RELATION &&
			(entry->relkind == RELKIND_FOREIGN_TABLE || has_subclass(entry->relid) ||
			 fires_triggers(entry->relid)))
			(*count)++;
	}
	return query_tree_walker(query, count_foreign, count, 0);
}

/*
 * Tells whether another target, or another part of the statement than a data-modifying CTE, may
 * use foreign tables.
 *
 * All parts must see the data from before the statement.  The changes of a single command would be
 * visible to the other parts at once; changes row by row wait for the statement's end.
 */
static bool
others_use_foreign_tables(PlannerInfo *root, const ModifyTable *plan)
{
	int			count = 0;
	ListCell   *cell;

	foreach(cell, list_length(plan->resultRelations) > 1 ? plan->resultRelations : NIL)
	{
		if (fires_triggers(planner_rt_fetch(lfirst_int(cell), root)->relid))
			return true;
	}
	while (root->parent_root != NULL)
		root = root->parent_root;
	return root->parse->hasModifyingCTE &&
		(count_foreign((Node *) root->parse, &count) || count > 1);
}

/*
 * mongo_plan_direct_modify
 *		Makes an UPDATE or DELETE one command, if it can be; a callback of PostgreSQL.
 *
 * Possible if MongoDB tests all conditions exactly, and each assigned value is the same for all
 * documents or is added to the column's own value.  PostgreSQL cannot read a document whose tested
 * fields do not fit their columns, so the filter has type checks that exclude it.
 *
 * With RETURNING the command is findAndModify, which returns only one document.  So the filter
 * must match at most one.
 */
bool
mongo_plan_direct_modify(PlannerInfo *root, ModifyTable *plan,
						 Index resultRelation, int subplan_index)
{
	ForeignScan *scan = scan_below(plan, resultRelation, subplan_index);
	MongoRelation *relation;
	MongoScanPlan *scan_plan;
	MongoDirectPlan direct = {.database = NULL};
	List	   *expressions;
	bool		subselects = false;

	if (!mongo_enable_pushdown || scan == NULL || scan->scan.plan.qual != NIL ||
		(plan->operation != CMD_UPDATE && plan->operation != CMD_DELETE) ||
		others_use_foreign_tables(root, plan))
		return false;
	if (plan->operation == CMD_UPDATE && update_may_leave_partition(root, resultRelation))
		return false;
	relation = find_base_rel(root, resultRelation)->fdw_private;
	scan_plan = mongo_struct_from_list(&mongo_scan_plan_type, scan->fdw_private);
	if (scan_plan->is_pipeline || scan_plan->unwind != NULL || scan_plan->skips || scan_plan->limit >= 0 || scan_plan->offset >= 0 ||
		scan_plan->nvariables > 0)
		return false;

	expressions = list_copy(scan->fdw_exprs);
	if (plan->operation == CMD_UPDATE &&
		!translate_assignments(root, resultRelation, relation, &direct.assignments, &expressions))
		return false;

	/* functions are called for each partition, sub-selects once */
	if (list_length(plan->resultRelations) > 1 &&
		may_read_tables((Node *) expressions, &subselects))
		return false;
	direct.at_most_one = at_most_one(relation->columns, scan->fdw_recheck_quals);
	if (plan->returningLists != NIL &&
		!plan_returning(root, plan, scan, subplan_index, &direct))
		return false;
	direct.command = mongo_direct_command(linitial(scan_plan->commands), relation, scan->fdw_recheck_quals,
										  &direct, &direct.simple_collation);
	if (direct.command == NULL)
		return false;

	direct.database = scan_plan->database;
	direct.collection = scan_plan->collection;
	direct.operation = plan->operation;
	direct.predicates = scan_plan->predicates;
	direct.counts = plan->canSetTag;

	if (direct.returns)
		forget_new_values(scan);
	scan->operation = plan->operation;
	scan->resultRelation = resultRelation;
	scan->fdw_exprs = expressions;
	scan->fdw_private = mongo_struct_to_list(&mongo_direct_plan_type, &direct);
	scan->scan.plan.async_capable = false;
	return true;
}
