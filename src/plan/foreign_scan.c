/*-------------------------------------------------------------------------
 *
 * foreign_scan.c
 *		The ForeignScan node of a table, a join or an upper relation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "foreign_scan.h"

#include "join.h"

#include "optimizer/planmain.h"

/* joined_namespaces: "(db.a) and (db.b)", the collections of a join, for EXPLAIN. */
static const char *
joined_namespaces(const MongoRelation *relation)
{
	const char *names = psprintf("(%s.%s)", relation->options->database,
								 relation->options->collection);
	const char *inner_names = "";

	for (; relation->join != NULL; relation = relation->join->outer->fdw_private)
	{
		const MongoTableOptions *inner = ((MongoRelation *) relation->join->inner->fdw_private)->options;

		inner_names = psprintf(" and (%s.%s)%s", inner->database, inner->collection,
							   inner_names);
	}
	return psprintf("%s%s", names, inner_names);
}

/* is_inner: is what is planned now within the inner side of a nested loop? */
static bool
is_inner(const PlannerInfo *root)
{
	for (; root != NULL; root = root->parent_root)
	{
		if (!bms_is_empty(root->curOuterRels))
			return true;
	}
	return false;
}

void
mongo_scan_plan_init(MongoScanPlan *plan, PlannerInfo *root, const MongoRelation *relation)
{
	memset(plan, 0, sizeof(*plan));
	plan->limit = plan->offset = -1;
	plan->enough_rows = -1;
	plan->all_rows = root->tuple_fraction <= 0;
	plan->is_inner = is_inner(root);
	plan->database = relation->options->database;
	plan->collection = relation->options->collection;
	plan->joined = relation->join == NULL ? NULL : joined_namespaces(relation);
	plan->fetch_size = relation->options->fetch_size;
	plan->batches_grow = relation->options->batches_grow;
	plan->type_mismatch = relation->options->type_mismatch;
	plan->canonical_json = relation->options->canonical_json;
	plan->read_mode = relation->options->read_mode;
	plan->comment = relation->options->comment;
}

/* add_bound: LIMIT or OFFSET, if there is one; its number in fdw_exprs, or -1. */
static int
add_bound(List **expressions, Node *bound)
{
	if (bound == NULL)
		return -1;
	*expressions = lappend(*expressions, bound);
	return list_length(*expressions) - 1;
}

ForeignScan *
mongo_make_foreign_scan(PlannerInfo *root, MongoScanPlan *plan,
						const MongoTranslation *translation, bool limited,
						const MongoScanNode *node)
{
	List	   *expressions = list_concat_copy(translation->parameters,
											   translation->variables);

	plan->predicates = translation->predicates;
	plan->nvariables = list_length(translation->variables);
	if (limited)
	{
		plan->limit = add_bound(&expressions, root->parse->limitCount);
		plan->offset = add_bound(&expressions, root->parse->limitOffset);
	}
	return make_foreignscan(node->tlist, node->local, node->scanrelid, expressions,
							mongo_struct_to_list(&mongo_scan_plan_type, plan), node->scan_tlist, node->exact,
							node->outer_plan);
}
