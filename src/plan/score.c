/*-------------------------------------------------------------------------
 *
 * score.c
 *		mongo_score(): what $text has found a document to be worth.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "score.h"

#include "bson_write.h"
#include "derived.h"
#include "match_document.h"
#include "settings.h"

#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/rel.h"

/* What the walkers look for. */
typedef struct ScoreSearch
{
	Index		varno;
	Expr	   *score;			/* the first call found */
} ScoreSearch;

static bool
find_score(Node *node, ScoreSearch *search)
{
	if (node == NULL)
		return false;
	if (mongo_is_score(node, search->varno))
	{
		search->score = (Expr *) node;
		return true;
	}
	return expression_tree_walker(node, find_score, search);
}

/* reads_row: is anything of the row needed, but columns and its score? */
static bool
reads_row(Node *node, ScoreSearch *search)
{
	if (node == NULL || mongo_is_score(node, search->varno))
		return false;
	if (IsA(node, Var))
		return ((Var *) node)->varno == (int) search->varno && ((Var *) node)->varattno <= 0;
	return expression_tree_walker(node, reads_row, search);
}

/* is_simple: does the scan give what the query does? */
static bool
is_simple(const PlannerInfo *root, const RelOptInfo *baserel)
{
	const Query *parse = root->parse;

	return parse->commandType == CMD_SELECT && parse->rowMarks == NIL && !parse->hasAggs &&
		parse->groupClause == NIL && parse->groupingSets == NIL &&
		!parse->hasWindowFuncs && !parse->hasTargetSRFs && parse->havingQual == NULL &&
		parse->setOperations == NULL && bms_equal(root->all_baserels, baserel->relids);
}

/* tests_row: does PostgreSQL test more than columns? */
static bool
tests_row(const RelOptInfo *baserel, ScoreSearch *search)
{
	const MongoRelation *relation = baserel->fdw_private;
	ListCell   *cell;

	foreach(cell, baserel->baserestrictinfo)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		bool		exact = false;
		ListCell   *known;

		foreach(known, relation->known)
		{
			const MongoKnownCondition *one = lfirst(known);

			exact |= one->rinfo == rinfo && one->grade == MONGO_EXACT;
		}
		if (!exact && reads_row((Node *) rinfo->clause, search))
			return true;
	}
	return false;
}

void
mongo_note_score(PlannerInfo *root, RelOptInfo *baserel)
{
	MongoRelation *relation = baserel->fdw_private;
	ScoreSearch search = {baserel->relid, NULL};

	if (!mongo_enable_pushdown || baserel->reloptkind != RELOPT_BASEREL ||
		mongo_is_derived(relation->options) || !is_simple(root, baserel) ||
		!find_score((Node *) root->processed_tlist, &search) ||
		reads_row((Node *) root->processed_tlist, &search) || tests_row(baserel, &search))
		return;
	relation->score = search.score;
	relation->score_field = mongo_unused_field(relation->columns, "score");

	/* what a worker would have to send is the whole row */
	baserel->consider_parallel = false;
}

bool
mongo_is_score_order(const MongoRelation *relation, const List *pathkeys)
{
	const PathKey *pathkey;
	ListCell   *cell;

	if (relation->score == NULL || list_length(pathkeys) != 1)
		return false;
	pathkey = linitial_node(PathKey, pathkeys);
	if (mongo_pathkey_is_ascending(pathkey))
		return false;
	foreach(cell, pathkey->pk_eclass->ec_members)
	{
		if (equal(((EquivalenceMember *) lfirst(cell))->em_expr, relation->score))
			return true;
	}
	return false;
}

void
mongo_append_score(bson_t *document, const MongoRelation *relation)
{
	bson_append_condition(document, relation->score_field, "$meta", bson_utf8("textScore"));
}

MongoScanColumn *
mongo_score_column(const RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoScanColumn *column = palloc0(sizeof(MongoScanColumn));

	column->index = baserel->max_attr;
	column->name = "mongo_score";
	column->path = relation->score_field;
	column->type = FLOAT8OID;
	column->typmod = -1;
	return column;
}

List *
mongo_score_tlist(const RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;
	Relation	table = table_open(relation->relid, NoLock);
	List	   *tlist = NIL;

	for (AttrNumber attnum = 1; attnum <= baserel->max_attr; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), attnum - 1);
		Expr	   *expression = attribute->attisdropped ?
			(Expr *) makeNullConst(INT4OID, -1, InvalidOid) :
			(Expr *) makeVar(baserel->relid, attnum, attribute->atttypid,
							 attribute->atttypmod, attribute->attcollation, 0);

		tlist = lappend(tlist, makeTargetEntry(expression, attnum, NULL, false));
	}
	table_close(table, NoLock);
	return lappend(tlist, makeTargetEntry(relation->score, baserel->max_attr + 1, NULL, false));
}
