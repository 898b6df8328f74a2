/*-------------------------------------------------------------------------
 *
 * modify.c
 *		Planning INSERT, UPDATE and DELETE that go row by row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "modify.h"

#include "plan.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "commands/trigger.h"
#include "derived.h"
#include "nodes/makefuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/inherit.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "options.h"
#include "parser/parsetree.h"
#include "partition.h"
#include "row_document.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/*
 * mongo_add_foreign_update_targets
 *		Have the scan identify its rows, by what identity.h says of ctids.
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
 * looks_at_rows
 *		Does anything but the statement itself see the rows of this table?
 *
 * Row triggers and transition tables do; generated columns are computed from
 * any others.
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
 * expressions_read_row: does the targetlist name the target's whole row, apart
 * from the junk that identifies it?
 */
static bool
expressions_read_row(PlannerInfo *root, Index target)
{
	Bitmapset  *used = NULL;
	ListCell   *cell;

	foreach(cell, root->processed_tlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);

		if (!entry->resjunk || !IsA(entry->expr, Var))
			pull_varattnos((Node *) entry->expr, target, &used);
	}
	return bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
}

/* assigned_attributes: those that the UPDATE sets, generated ones included. */
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
		attributes = lappend_int(attributes, attnum);
	}
	return attributes;
}

bool
mongo_update_may_leave_partition(PlannerInfo *root, Index rtindex)
{
	Relation	relation = table_open(planner_rt_fetch(rtindex, root)->relid, NoLock);
	bool		result = relation->rd_rel->relispartition &&
		mongo_may_leave_partition(relation, assigned_attributes(root, rtindex));

	table_close(relation, NoLock);
	return result;
}

bool
mongo_whole_row_is_junk(PlannerInfo *root, RelOptInfo *baserel,
						Bitmapset **attributes)
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
		 mongo_update_may_leave_partition(root, baserel->relid)))
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

	/* a partition may number its columns otherwise */
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

/* refuse_derived: earlier than PostgreSQL would, to say why. */
static void
refuse_derived(Oid relid, CmdType operation)
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

List *
mongo_plan_foreign_modify(PlannerInfo *root, ModifyTable *plan,
						  Index resultRelation, int subplan_index pg_attribute_unused())
{
	RangeTblEntry *entry = planner_rt_fetch(resultRelation, root);
	List	   *attributes = NIL;

	refuse_derived(entry->relid, plan->operation);
	if (plan->onConflictAction == ONCONFLICT_UPDATE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ON CONFLICT DO UPDATE is not supported on foreign tables")));
	if (plan->operation == CMD_UPDATE)
	{
		attributes = assigned_attributes(root, resultRelation);
		mongo_check_assignable(entry->relid, attributes);
	}
	return list_make1(attributes);
}

int
mongo_is_foreign_rel_updatable(Relation rel)
{
	MongoTableOptions *options = mongo_table_options(RelationGetRelid(rel));

	return options->updatable && !mongo_is_derived(options) ?
		(1 << CMD_INSERT) | (1 << CMD_UPDATE) | (1 << CMD_DELETE) : 0;
}
