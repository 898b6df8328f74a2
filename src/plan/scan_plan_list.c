/*-------------------------------------------------------------------------
 *
 * scan_plan_list.c
 *		The private part of a foreign scan's plan, as nodes and back.
 *
 * A plan is copied, and read back in parallel workers, so all that it holds
 * must be nodes.  The order of the lists is known here only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"

#include "nodes/makefuncs.h"
#include "nodes/value.h"

/* A NULL string as a node: an empty list. */
static Node *
string_node(const char *string)
{
	return string == NULL ? NULL : (Node *) makeString(pstrdup(string));
}

static const char *
node_string(Node *node)
{
	return node == NULL ? NULL : strVal(node);
}

List *
mongo_scan_plan_to_list(const MongoScanPlan *plan)
{
	List	   *flags = list_make5_int(plan->has_limit, plan->has_offset,
									   plan->all_rows, plan->is_pipeline,
									   plan->one_row);
	List	   *settings = list_make5_int(plan->fetch_size, plan->type_mismatch,
										  plan->canonical_json, plan->enough_rows,
										  plan->nvariables);
	List	   *columns = NIL;
	List	   *finishes = NIL;
	ListCell   *cell;
	List	   *result;

	flags = lappend_int(flags, plan->is_grouped);
	foreach(cell, plan->columns)
	{
		MongoScanColumn *column = lfirst(cell);

		columns = lappend(columns, list_make5(list_make4_int(column->index, (int) column->type,
															 column->typmod,
															 column->zero_if_empty),
											  string_node(column->name),
											  string_node(column->path),
											  string_node(column->collection),
											  string_node(column->prefix)));
	}
	foreach(cell, plan->finishes)
	{
		MongoScanFinish *finish = lfirst(cell);

		finishes = lappend(finishes, list_make3_int(finish->finish, finish->index,
													finish->first));
	}

	result = list_make5(string_node(plan->database), string_node(plan->collection),
						plan->commands, plan->predicates, flags);
	result = list_concat(result, list_make5(settings, columns,
											string_node(plan->split_field), finishes,
											string_node(plan->joined)));
	return list_concat(result, list_make2(plan->hiding, plan->hiding_columns));
}

MongoScanPlan *
mongo_scan_plan_from_list(List *list)
{
	MongoScanPlan *plan = palloc(sizeof(MongoScanPlan));
	List	   *flags = list_nth(list, 4);
	List	   *settings = list_nth(list, 5);
	ListCell   *cell;

	plan->database = node_string(linitial(list));
	plan->collection = node_string(lsecond(list));
	plan->commands = lthird(list);
	plan->predicates = lfourth(list);
	plan->has_limit = linitial_int(flags);
	plan->has_offset = lsecond_int(flags);
	plan->all_rows = lthird_int(flags);
	plan->is_pipeline = lfourth_int(flags);
	plan->one_row = list_nth_int(flags, 4);
	plan->is_grouped = list_nth_int(flags, 5);
	plan->fetch_size = linitial_int(settings);
	plan->type_mismatch = lsecond_int(settings);
	plan->canonical_json = lthird_int(settings);
	plan->enough_rows = lfourth_int(settings);
	plan->nvariables = list_nth_int(settings, 4);
	plan->split_field = node_string(list_nth(list, 7));
	plan->joined = node_string(list_nth(list, 9));
	plan->hiding = list_nth(list, 10);
	plan->hiding_columns = list_nth(list, 11);
	plan->columns = NIL;
	foreach(cell, (List *) list_nth(list, 6))
	{
		List	   *one = lfirst(cell);
		MongoScanColumn *column = palloc(sizeof(MongoScanColumn));

		column->index = linitial_int(linitial(one));
		column->type = (Oid) lsecond_int(linitial(one));
		column->typmod = lthird_int(linitial(one));
		column->zero_if_empty = lfourth_int(linitial(one));
		column->name = node_string(lsecond(one));
		column->path = node_string(lthird(one));
		column->collection = node_string(lfourth(one));
		column->prefix = node_string(list_nth(one, 4));
		plan->columns = lappend(plan->columns, column);
	}
	plan->finishes = NIL;
	foreach(cell, (List *) list_nth(list, 8))
	{
		List	   *one = lfirst(cell);
		MongoScanFinish *finish = palloc(sizeof(MongoScanFinish));

		finish->finish = linitial_int(one);
		finish->index = lsecond_int(one);
		finish->first = lthird_int(one);
		plan->finishes = lappend(plan->finishes, finish);
	}
	return plan;
}
