/*-------------------------------------------------------------------------
 *
 * match.c
 *		mongo_match() uses a query filter of the user's as a condition; mongo_score() is the text
 *		score of a document that it matches.  This file finds both in a query.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "options.h"

#include "access/stratnum.h"
#include "catalog/dependency.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(mongo_match);
PG_FUNCTION_INFO_V1(mongo_score);

/*
 * mongo_match
 *		Raises 0A000.  mongo_match(row record, match json) is called only if the condition has not
 *		been sent to MongoDB.
 */
Datum
mongo_match(PG_FUNCTION_ARGS pg_attribute_unused())
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("mongo_match() can only be tested by MongoDB"),
			 errdetail("It must be a condition of WHERE on the row of a foreign table, with a match document that does not depend on it, and may not be tested on rows that a policy or a security barrier hides."),
			 errhint("In EXPLAIN (VERBOSE), \"Filter\" shows what PostgreSQL tests.")));
}

/*
 * mongo_score
 *		Raises 0A000.  mongo_score(row record) is called only if the score has not been requested
 *		from MongoDB.
 */
Datum
mongo_score(PG_FUNCTION_ARGS pg_attribute_unused())
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("mongo_score() can only be computed by MongoDB"),
			 errdetail("It must be of the row of a foreign table over a collection, in the SELECT list or ORDER BY of a query over this table alone, without aggregates, that does not also read the whole row."),
			 errhint("Compute it in a subquery that PostgreSQL does not take apart: WITH found AS MATERIALIZED (SELECT ...).")));
}

/* Tells whether it is this extension's function of that name. */
static bool
is_function(Oid function, const char *expected)
{
	const char *name = get_func_name(function);

	return name != NULL && strcmp(name, expected) == 0 &&
		getExtensionOfObject(ProcedureRelationId, function) == get_extension_oid("mongo_fdw", true);
}

/*
 * Tells whether it is the whole row of the only table, below no join or array.  mongo_sync() has
 * ROW(row), a record, since a function of somebody else's could suit the row's type better.
 */
static bool
is_row(const MongoColumns *columns, Node *node)
{
	const Var  *var;

	if (IsA(node, RowExpr) && list_length(((RowExpr *) node)->args) == 1)
		node = linitial(((RowExpr *) node)->args);
	var = (const Var *) node;
	return columns != NULL && columns->next == NULL && columns->prefix == NULL &&
		columns->array == NULL &&
		IsA(node, Var) && var->varlevelsup == 0 && var->varattno == 0 &&
		var->varno == (int) columns->varno;
}

/*
 * Requires USAGE on the server of a role, as mongo_aggregate() does, since the filter may test
 * fields that are not columns.
 */
static void
check_usage(Oid relid, Oid userid)
{
	ForeignServer *server = GetForeignServer(GetForeignTable(relid)->serverid);
	AclResult	acl = object_aclcheck(ForeignServerRelationId, server->serverid, userid,
									  ACL_USAGE);

	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, OBJECT_FOREIGN_SERVER, server->servername);
}

/*
 * mongo_calls_match
 *		Tells whether an expression contains mongo_match() of a row of the table 'varno', an Index
 *		*; an expression tree walker.
 */
bool
mongo_calls_match(Node *node, void *varno)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcresulttype == BOOLOID &&
		is_function(((FuncExpr *) node)->funcid, "mongo_match") &&
		bms_is_member(*(Index *) varno, pull_varnos(NULL, linitial(((FuncExpr *) node)->args))))
		return true;
	return expression_tree_walker(node, mongo_calls_match, varno);
}

/*
 * mongo_is_score
 *		Tells whether the node is mongo_score() of the whole row of that range table entry.
 */
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

/*
 * mongo_translate_match
 *		Writes to 'match' where mongo_match(table, value) over the only table of the translation is
 *		true (wanted) or false; returns false for any other node.  Raises 22023 if the value is not
 *		a document, and 42501 for JavaScript as mongo_append_pipeline() does and without USAGE on
 *		the server.
 */
bool
mongo_translate_match(MongoTranslation *translation, const FuncExpr *node, bool wanted,
					  bson_t *match)
{
	MongoPredicate predicate = {
		.form = MONGO_PREDICATE_MATCH,
		.strategy = wanted ? BTEqualStrategyNumber : MONGO_STRATEGY_NOT_EQUAL,
		.value_type = JSONOID
	};
	const Const *constant;

	if (list_length(node->args) != 2 || !is_row(translation->columns, linitial(node->args)) ||
		!is_function(node->funcid, "mongo_match") ||
		!mongo_is_local_value(translation, lsecond(node->args)))
		return false;
	predicate.relid = translation->columns->relid;

	/* of a view, the owner's mapping is used, perhaps for the caller's filter */
	check_usage(predicate.relid, GetUserId());
	check_usage(predicate.relid, translation->columns->userid);
	constant = lsecond(node->args);
	if (!IsA(constant, Const))
		mongo_append_placeholder(translation, &predicate, lsecond(node->args), MONGO_VERBATIM_KEY, match);
	else if (constant->constisnull)
		mongo_append_nothing(match, "_id");
	else
		mongo_append_template(match, wanted ? "{" MONGO_VERBATIM_KEY ": @1}" :
							  "{$nor: [{" MONGO_VERBATIM_KEY ": @1}]}",
							  mongo_match_document(predicate.relid, constant->constvalue));
	return true;
}
