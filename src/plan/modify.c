/*-------------------------------------------------------------------------
 *
 * modify.c
 *		Planning INSERT, UPDATE and DELETE that go row by row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "modify.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "commands/trigger.h"
#include "nodes/makefuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/inherit.h"
#include "optimizer/pathnode.h"
#include "options.h"
#include "parser/parsetree.h"
#include "row_document.h"
#include "utils/rel.h"

/*
 * mongo_add_foreign_update_targets
 *		Have the scan identify its rows, by what identity.h says of ctids.
 */
void
mongo_add_foreign_update_targets(PlannerInfo *root, Index rtindex,
								 RangeTblEntry *target_rte,
								 Relation target_relation)
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

List *
mongo_plan_foreign_modify(PlannerInfo *root, ModifyTable *plan,
						  Index resultRelation, int subplan_index)
{
	RangeTblEntry *entry = planner_rt_fetch(resultRelation, root);
	List	   *attributes = NIL;

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

	return options->updatable ?
		(1 << CMD_INSERT) | (1 << CMD_UPDATE) | (1 << CMD_DELETE) : 0;
}
