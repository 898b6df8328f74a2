/*-------------------------------------------------------------------------
 *
 * match_document.c
 *		mongo_match(): a user's own match document as a condition; mongo_score():
 *		what MongoDB has found it to be worth.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "match_document.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "command_template.h"
#include "derived.h"
#include "kept_json.h"

#include "catalog/dependency.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(mongo_match);
PG_FUNCTION_INFO_V1(mongo_score);

/*
 * mongo_match(row record, match json) -> boolean
 *		What MongoDB has not been asked for: PostgreSQL cannot tell.
 */
Datum
mongo_match(PG_FUNCTION_ARGS pg_attribute_unused())
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("mongo_match() can only be tested by MongoDB"),
			 errdetail("It must be a condition of WHERE on the row of a foreign table, with a constant match document, and may not be tested on rows that a policy or a security barrier hides."),
			 errhint("EXPLAIN (VERBOSE) shows by \"Filter\" what PostgreSQL tests.")));
}

/*
 * mongo_score(row record) -> double precision
 *		What MongoDB has not been asked for.
 */
Datum
mongo_score(PG_FUNCTION_ARGS pg_attribute_unused())
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("mongo_score() can only be computed by MongoDB"),
			 errdetail("It must be of the row of a foreign table over a collection, in the SELECT list or ORDER BY of a query over this table alone, without aggregates, that reads no whole row besides."),
			 errhint("Compute it in a sub-select that PostgreSQL does not take apart: WITH found AS MATERIALIZED (SELECT ...).")));
}

/* is_function: the one of this name of this extension? */
static bool
is_function(Oid function, const char *expected)
{
	const char *name = get_func_name(function);

	return name != NULL && strcmp(name, expected) == 0 &&
		getExtensionOfObject(ProcedureRelationId, function) == get_extension_oid("mongo_fdw", true);
}

/* is_row: the whole row of the only table, whose documents are as it has them? */
static bool
is_row(const MongoColumns *columns, Node *node)
{
	const Var  *var = (const Var *) node;

	return columns != NULL && columns->next == NULL && columns->prefix == NULL &&
		IsA(node, Var) && var->varlevelsup == 0 && var->varattno == 0 &&
		var->varno == (int) columns->varno;
}

/*
 * check_usage: as mongo_aggregate(), since the document may ask for fields that are no
 * columns.
 */
static void
check_usage(Oid relid)
{
	ForeignServer *server = GetForeignServer(GetForeignTable(relid)->serverid);
	AclResult	acl = object_aclcheck(ForeignServerRelationId, server->serverid, GetUserId(),
									  ACL_USAGE);

	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, OBJECT_FOREIGN_SERVER, server->servername);
}

bool
mongo_names_match(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcresulttype == BOOLOID &&
		is_function(((FuncExpr *) node)->funcid, "mongo_match"))
		return true;
	return expression_tree_walker(node, mongo_names_match, context);
}

bool
mongo_is_score(const Node *node, Index varno)
{
	const FuncExpr *call = (const FuncExpr *) node;
	const Var  *var;

	if (node == NULL || !IsA(node, FuncExpr) || call->funcresulttype != FLOAT8OID ||
		list_length(call->args) != 1 || !IsA(linitial(call->args), Var))
		return false;
	var = linitial_node(Var, call->args);
	return var->varno == (int) varno && var->varattno == 0 && var->varlevelsup == 0 &&
		is_function(call->funcid, "mongo_score");
}

bool
mongo_translate_match(const MongoTranslation *translation, const FuncExpr *node,
					  bool wanted, bson_t *match)
{
	const Const *constant;
	bson_t	   *holder;
	bson_iter_t document;
	bson_value_t verbatim;

	if (list_length(node->args) != 2 || !is_row(translation->columns, linitial(node->args)) ||
		!IsA(lsecond(node->args), Const) || !is_function(node->funcid, "mongo_match"))
		return false;
	constant = lsecond_node(Const, node->args);
	if (constant->constisnull)
		return false;

	check_usage(translation->columns->relid);
	holder = bson_create_in(CurrentMemoryContext);
	mongo_append_kept_json(holder, "match", constant->constvalue);
	if (!bson_iter_init_find(&document, holder, "match") ||
		!BSON_ITER_HOLDS_DOCUMENT(&document))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the match document of mongo_match() must be a JSON object")));
	mongo_check_javascript(mongo_table_options(translation->columns->relid), &document,
						   "mongo_match()");
	verbatim = *bson_iter_value(&document);
	bson_append_template(match, wanted ? "{" MONGO_VERBATIM_KEY ": @1}" :
						 "{$nor: [{" MONGO_VERBATIM_KEY ": @1}]}", verbatim);
	return true;
}
