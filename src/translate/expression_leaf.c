/*-------------------------------------------------------------------------
 *
 * expression_leaf.c
 *		The leaves of aggregation expressions: fields, constants, variables, and what
 *		earlier stages have computed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression_parts.h"
#include "feature.h"
#include "path.h"
#include "types.h"

#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"

const char *
mongo_variable_name(int number)
{
	return psprintf("p%d", number);
}

bool
mongo_is_local_value(const MongoTranslation *translation, Node *node)
{
	Bitmapset  *varnos = pull_varnos(NULL, node);

	/* above a group, columns stand for what has been computed */
	if (translation->columns == NULL && !bms_is_empty(varnos))
		return false;
	for (MongoColumns *columns = translation->columns; columns; columns = columns->next)
	{
		if (bms_is_member(columns->varno, varnos))
			return false;
	}
	return !contain_volatile_functions(node) &&
		!contain_subplans(node) &&
		!contain_agg_clause(node) &&
		!contain_window_function(node) &&
		!expression_returns_set(node);
}

/* A reference to a field or a variable is a string with a dollar sign. */
static void
set_reference(MongoValue *value, const char *format, const char *name, Node *node)
{
	value->expression = mongo_expression("@1", bson_utf8(psprintf(format, name)));
	value->type = exprType(node);
	value->typmod = exprTypmod(node);
	value->nullable = true;
	value->nan = mongo_kind_of_type(value->type)->has_nan;
	value->atomic = true;
}

bool
mongo_computed_value(const MongoTranslation *translation, Node *node, MongoValue *value)
{
	ListCell   *cell;

	foreach(cell, translation->computed)
	{
		MongoComputed *computed = lfirst(cell);

		if (!equal(computed->expression, node))
			continue;
		set_reference(value, "$%s", computed->path, node);
		value->raw = !computed->normal;
		value->nullable = !computed->not_null;
		return true;
	}
	return false;
}

bool
mongo_is_same_reading(Oid type, Oid relabelled)
{
	return type == relabelled ||
		((type == TEXTOID || type == VARCHAROID) &&
		 (relabelled == TEXTOID || relabelled == VARCHAROID));
}

bool
mongo_field_value(MongoTranslation *translation, Node *node, MongoValue *value)
{
	MongoField	field;

	if (mongo_column_of_node(translation->columns, node, &field) == NULL ||
		field.columns->type_mismatch != MONGO_TYPE_MISMATCH_ERROR ||
		field.type != field.operator_type ||
		!mongo_is_same_reading(field.type, exprType(node)) ||
		!mongo_path_is_addressable(field.path) || mongo_path_has_index(field.path))
		return false;
	set_reference(value, "$%s", field.path, node);
	value->typmod = field.typmod;
	value->raw = true;
	return true;
}

/*
 * cannot_fail: can evaluating it locally raise no error?  Not a parameter of the
 * executor: it may be a sub-select, which runs when it is asked for.
 */
static bool
cannot_fail(Node *node)
{
	node = mongo_strip_relabelling(node);
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXTERN;
	return IsA(node, Var) || IsA(node, SQLValueFunction);
}

/*
 * is_variable_type: does every value of the type have a BSON form that is the
 * same value?  Not a timestamp with its microseconds or a date, which may be
 * infinite (comparisons can do with both: mongo_date_bound()), nor an array, which
 * may have several dimensions.
 */
static bool
is_variable_type(Oid type)
{
	return mongo_has_normal_form(type) &&
		type != TIMESTAMPOID && type != TIMESTAMPTZOID && type != DATEOID;
}

bool
mongo_variable(const MongoScope *scope, Node *node, MongoValue *value)
{
	MongoTranslation *translation = scope->translation;

	if ((scope->lazy && !cannot_fail(node)) ||
		mongo_feature_is_disabled(translation->disabled, MONGO_FEATURE_LET))
		return false;
	memset(value, 0, sizeof(*value));
	set_reference(value, "$$%s",
				  mongo_variable_name(list_length(translation->variables)), node);
	translation->variables = lappend(translation->variables, node);
	return true;
}

bool
mongo_local_value(const MongoScope *scope, Node *node, MongoValue *value)
{
	if (IsA(node, Const))
		return mongo_type_is_writable(exprType(node)) &&
			mongo_literal((Const *) node, value);
	return is_variable_type(exprType(node)) && mongo_variable(scope, node, value);
}
