/*-------------------------------------------------------------------------
 *
 * expression.c
 *		SQL expressions as aggregation expressions of MongoDB, by node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "digits.h"
#include "expression_parts.h"
#include "types.h"

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

/* Parts of an expression within parts; of conditions too, see condition.c. */
#define MAX_DEPTH	64

/* MongoDB takes 200 levels of documents and arrays in a command. */
#define MAX_BSON_DEPTH	120

/*
 * arguments_fit: are the digits known, and the database in UTF-8, where the row needs
 * that?
 */
static bool
arguments_fit(const MongoCall *call)
{
	int			flags = call->row->flags;

	if ((flags & MONGO_ROW_DIGITS) &&
		!mongo_digits_fit(mongo_expression_digits(call->node)) &&
		!call->scope->guarded)
		return false;
	return !(flags & MONGO_ROW_CHARACTERS) || GetDatabaseEncoding() == PG_UTF8;
}

/* translate_arguments: in the form that the row asks for. */
static bool
translate_arguments(const MongoCall *call, MongoValue *arguments)
{
	MongoScope	scope = *call->scope;
	ListCell   *cell;
	int			i = 0;

	scope.guarded = false;
	if (list_length(call->args) > MONGO_MAX_ARGUMENTS)
		return false;
	foreach(cell, call->args)
	{
		MongoValue *argument = &arguments[i++];

		if (!mongo_value_of_node(&scope, lfirst(cell), argument))
			return false;
		if (!(call->row->flags & MONGO_ROW_RAW_ARGUMENTS) &&
			!mongo_normalize(&scope, argument))
			return false;
	}
	return true;
}

/* guard_template: null where an argument is. */
static const char *
guard_template(const char *template, const MongoValue *arguments, int narguments)
{
	StringInfoData guarded;
	int			nguards = 0;

	initStringInfo(&guarded);
	appendStringInfoString(&guarded, "{$cond: [{$and: [");
	for (int i = 0; i < narguments; i++)
	{
		if (arguments[i].nullable)
			appendStringInfo(&guarded, "%s{$gt: [@%d, null]}", nguards++ > 0 ? ", " : "", i + 1);
	}
	appendStringInfo(&guarded, "]}, %s, null]}", template);
	return nguards > 0 ? guarded.data : template;
}

/* value_of_template: of a call whose row has one. */
static bool
value_of_template(const MongoCall *call, const char *template, MongoValue *value)
{
	const MongoExpressionRow *row = call->row;
	MongoValue	arguments[MONGO_MAX_ARGUMENTS] = {{0}};
	int			narguments = list_length(call->args);

	if (!translate_arguments(call, arguments))
		return false;
	if (row->flags & MONGO_ROW_NULL_GUARD)
		template = guard_template(template, arguments, narguments);
	value->expression = mongo_expand_template(template, arguments, narguments);
	value->type = exprType(call->node);
	value->typmod = -1;
	value->raw = (row->flags & MONGO_ROW_RAW_RESULT) != 0;
	for (int i = 0; i < narguments; i++)
	{
		value->nullable |= arguments[i].nullable;
		value->nan |= arguments[i].nan;
		if (mongo_compares_text(arguments[i].type))
			call->scope->translation->compares_text = true;
	}
	value->nan &= mongo_kind_of_type(value->type)->has_nan;

	/* what floats make of infinities and zeros */
	if (value->type == FLOAT8OID)
		value->nan = true;
	return true;
}

static bool
translate_call(const MongoScope *scope, Node *node, Oid function, List *args,
			   MongoValue *value)
{
	MongoCall	call = {
		.scope = scope, .node = node, .args = args,
		.collation = exprInputCollation(node), .row = mongo_expression_row(function)
	};

	if (call.row == NULL || !arguments_fit(&call) ||
		!mongo_collation_suits(call.collation, call.row->flags))
		return false;
	if (call.row->translate != NULL)
		return call.row->translate(&call, value);
	return value_of_template(&call, call.row->template, value);
}

static bool
translate_operator(const MongoScope *scope, OpExpr *node, MongoValue *value)
{
	int			strategy = mongo_comparison_strategy(node->opno);

	if (strategy != 0 && list_length(node->args) == 2)
		return mongo_compare(scope, strategy, linitial(node->args), lsecond(node->args),
							 node->inputcollid, value);
	return translate_call(scope, (Node *) node, get_opcode(node->opno), node->args, value);
}

static bool
translate_by_tag(const MongoScope *scope, Node *node, MongoValue *value)
{
	switch (nodeTag(node))
	{
		case T_OpExpr:
			return translate_operator(scope, (OpExpr *) node, value);
		case T_FuncExpr:
			return translate_call(scope, node, ((FuncExpr *) node)->funcid,
								  ((FuncExpr *) node)->args, value);
		case T_RelabelType:
			return mongo_is_same_reading(exprType((Node *) ((RelabelType *) node)->arg),
										 exprType(node)) &&
				mongo_value_of_node(scope, (Node *) ((RelabelType *) node)->arg, value);
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_DistinctExpr:
			return mongo_logic_of_node(scope, node, value);
		case T_CoerceViaIO:
			return mongo_text_cast(scope, (CoerceViaIO *) node, value);
		case T_ScalarArrayOpExpr:
			return mongo_array_comparison(scope, (ScalarArrayOpExpr *) node, value);
		case T_SubscriptingRef:
			return mongo_array_element(scope, (SubscriptingRef *) node, value);
		case T_CaseExpr:
		case T_CoalesceExpr:
		case T_NullIfExpr:
		case T_MinMaxExpr:
			return mongo_choice_of_node(scope, node, value);
		default:
			return false;
	}
}

static bool
translate_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	memset(value, 0, sizeof(*value));
	if (mongo_computed_value(scope->translation, node, value) ||
		mongo_field_value(scope->translation, node, value))
		return true;
	if (mongo_is_local_value(scope->translation, node))
		return mongo_local_value(scope, node, value);
	return translate_by_tag(scope, node, value);
}

/* is_too_deep: for MongoDB's parser, stages around it included. */
static bool
is_too_deep(const bson_iter_t *parent, int depth)
{
	bson_iter_t child;

	if (depth > MAX_BSON_DEPTH)
		return true;
	if (!bson_iter_recurse(parent, &child))
		return false;
	while (bson_iter_next(&child))
	{
		if ((BSON_ITER_HOLDS_DOCUMENT(&child) || BSON_ITER_HOLDS_ARRAY(&child)) &&
			is_too_deep(&child, depth + 1))
			return true;
	}
	return false;
}

bool
mongo_is_too_deep(const bson_t *document)
{
	bson_iter_t element;

	if (!bson_iter_init(&element, document))
		return true;
	while (bson_iter_next(&element))
	{
		if ((BSON_ITER_HOLDS_DOCUMENT(&element) || BSON_ITER_HOLDS_ARRAY(&element)) &&
			is_too_deep(&element, 0))
			return true;
	}
	return false;
}

bool
mongo_value_of_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	bool		result;

	if (!scope->translation->use_expressions || scope->translation->depth >= MAX_DEPTH)
		return false;
	scope->translation->depth++;
	result = translate_node(scope, node, value);
	scope->translation->depth--;
	return result && value->expression->len <= MONGO_LARGEST_MATCH &&
		(scope->translation->depth > 0 || !mongo_is_too_deep(value->expression));
}

bool
mongo_test_of_node(const MongoScope *scope, Node *node, bool wanted, MongoValue *value)
{
	bool		result;

	if (scope->translation->depth >= MAX_DEPTH)
		return false;
	scope->translation->depth++;
	result = mongo_logic_test(scope, node, wanted, value);
	scope->translation->depth--;
	return result &&
		(scope->translation->depth > 0 || !mongo_is_too_deep(value->expression));
}

bool
mongo_normal_value_of_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	return mongo_value_of_node(scope, node, value) && mongo_normalize(scope, value);
}

/* finish gives the expression, unless it failed. */
static bson_t *
finish(MongoTranslation *translation, MongoMark before, bool shippable,
	   const MongoValue *value)
{
	if (shippable)
		return value->expression;
	mongo_return_to(translation, before);
	return NULL;
}

bson_t *
mongo_translate_expression(MongoTranslation *translation, Node *node)
{
	MongoScope	scope = {translation, .scale = true};
	MongoMark	before = mongo_mark(translation);
	MongoValue	value;

	scope.guarded = translation->guards_digits;
	return finish(translation, before, mongo_value_of_node(&scope, node, &value), &value);
}

bson_t *
mongo_translate_test(MongoTranslation *translation, Node *node, bool wanted)
{
	MongoScope	scope = {.translation = translation};
	MongoMark	before = mongo_mark(translation);
	MongoValue	value;

	return finish(translation, before, mongo_test_of_node(&scope, node, wanted, &value), &value);
}
