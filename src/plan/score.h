/*-------------------------------------------------------------------------
 *
 * score.h
 *		mongo_score(): what $text has found a document to be worth.
 *
 * MongoDB tells it beside the document, where it is asked to by {$meta: "textScore"}.
 * So the scan's tuple has one attribute more than the table, behind its columns: the
 * plan's fdw_scan_tlist says that it is the value of the function.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SCORE_H
#define MONGO_FDW_SCORE_H

#include "compat.h"

#include "plan_nodes.h"
#include "relation.h"

/*
 * mongo_note_score
 *		Fill in 'score' and 'score_field' of the table's MongoRelation.
 *
 * For a query over this table alone, without aggregates, that uses the row for nothing
 * else and tests nothing of it but columns.  Elsewhere the function is called, and
 * raises an error.
 */
extern void mongo_note_score(PlannerInfo *root, RelOptInfo *baserel);

/*
 * mongo_is_score_order
 *		Is this ORDER BY mongo_score(row) DESC, which is how MongoDB has it?
 */
extern bool mongo_is_score_order(const MongoRelation *relation, const List *pathkeys);

/*
 * mongo_append_score
 *		Append {score_field: {$meta: "textScore"}}, as it is in a projection and a sort.
 */
extern void mongo_append_score(bson_t *document, const MongoRelation *relation);

/*
 * mongo_score_column, mongo_score_tlist
 *		The attribute in the scan's tuple, and all of the tuple.
 */
extern MongoScanColumn *mongo_score_column(const RelOptInfo *baserel);
extern List *mongo_score_tlist(const RelOptInfo *baserel);

#endif							/* MONGO_FDW_SCORE_H */
