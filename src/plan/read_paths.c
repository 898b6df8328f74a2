/*-------------------------------------------------------------------------
 *
 * read_paths.c
 *		What of a table's columns a query reads.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "read_paths.h"

#include "field.h"
#include "path.h"
#include "relation.h"

#include "nodes/nodeFuncs.h"

typedef struct Reading
{
	MongoColumns *columns;
	Bitmapset  *whole;			/* attribute numbers of columns that are read
								 * as a whole */
	Bitmapset  *inside;			/* and of those that are read by accessors */
	List	   *paths;			/* of the latter, char * */
	bool		whole_row;
} Reading;

/* column_below: that the accessors begin with. */
static const Var *
column_below(Node *node)
{
	for (;;)
	{
		node = mongo_strip_relabelling(node);
		if (IsA(node, OpExpr))
			node = linitial(((OpExpr *) node)->args);
		else if (IsA(node, SubscriptingRef))
			node = (Node *) ((SubscriptingRef *) node)->refexpr;
		else
			return (const Var *) node;
	}
}

static bool
note_reading(Node *node, void *context)
{
	Reading    *reading = context;
	const Var  *var = (const Var *) node;
	MongoField	field;

	if (node == NULL)
		return false;
	if ((IsA(node, OpExpr) || IsA(node, SubscriptingRef)) &&
		mongo_field_of_node(reading->columns, node, &field))
	{
		reading->paths = lappend(reading->paths, unconstify(char *, field.path));
		reading->inside = bms_add_member(reading->inside, column_below(node)->varattno);
		return false;
	}
	if (IsA(node, Var) && var->varlevelsup == 0 && var->varno == (int) reading->columns->varno)
	{
		if (var->varattno > 0)
			reading->whole = bms_add_member(reading->whole, var->varattno);
		else
			reading->whole_row = true;
		return false;
	}
	return expression_tree_walker(node, note_reading, context);
}

/*
 * is_all_there: is whatever reads the table's columns in the target list or among the
 * conditions?  Not where others may ask for them: a join, or who locks or changes rows.
 *
 * Under type_mismatch 'null' a String that no text can hold makes all of a json NULL.
 */
static bool
is_all_there(PlannerInfo *root, RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;

	return root->parse->commandType == CMD_SELECT && root->parse->rowMarks == NIL &&
		baserel->reloptkind == RELOPT_BASEREL &&
		bms_equal(root->all_baserels, baserel->relids) &&
		relation->options->type_mismatch == MONGO_TYPE_MISMATCH_ERROR;
}

List *
mongo_read_paths(PlannerInfo *root, RelOptInfo *baserel, List *attributes, bool has_json,
				 Bitmapset **narrowed)
{
	MongoRelation *relation = baserel->fdw_private;
	Reading		reading = {.columns = relation->columns};
	List	   *paths = NIL;
	bool		knows_all = has_json && is_all_there(root, baserel);
	ListCell   *cell;

	*narrowed = NULL;
	if (knows_all)
	{
		note_reading((Node *) root->processed_tlist, &reading);
		note_reading(root->parse->havingQual, &reading);
		foreach(cell, baserel->baserestrictinfo)
			note_reading((Node *) lfirst_node(RestrictInfo, cell)->clause, &reading);
	}
	foreach(cell, attributes)
	{
		int			attribute = lfirst_int(cell);
		const char *path = mongo_column_path(relation->columns, attribute);

		if (path == NULL || !mongo_path_is_addressable(path))
			return NIL;
		if (knows_all && !reading.whole_row && !bms_is_member(attribute, reading.whole) &&
			bms_is_member(attribute, reading.inside))
			*narrowed = bms_add_member(*narrowed, attribute);
		else
			paths = lappend(paths, unconstify(char *, path));
	}
	foreach(cell, *narrowed != NULL ? reading.paths : NIL)
	{
		if (!mongo_path_is_addressable(lfirst(cell)))
			return NIL;
	}
	return *narrowed != NULL ? list_concat(paths, reading.paths) : paths;
}
