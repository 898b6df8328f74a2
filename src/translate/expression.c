/*-------------------------------------------------------------------------
 *
 * expression.c
 *		SQL expressions as aggregation expressions of MongoDB, by node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "encode.h"
#include "expression.h"
#include "feature.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"

/* MongoDB takes 200 levels of documents and arrays in a command. */
#define MAX_DEPTH	64

static bson_t *translate_node(MongoTranslation *translation, Node *node);

void
mongo_append_expression(bson_t *document, const char *key, const bson_t *expression)
{
	bson_iter_t value;

	if (!bson_iter_init(&value, expression) || !bson_iter_next(&value))
		elog(ERROR, "empty expression");
	bson_append_iter(document, key, -1, &value);
}

const char *
mongo_variable_name(int number)
{
	return psprintf("p%d", number);
}

bool
mongo_is_local_value(const MongoTranslation *translation, Node *node)
{
	Bitmapset  *varnos = pull_varnos(NULL, node);

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
static bson_t *
reference(const char *format, const char *name)
{
	bson_t	   *result = bson_create_in(CurrentMemoryContext);

	BSON_APPEND_UTF8(result, "", psprintf(format, name));
	return result;
}

/* What an earlier stage has computed. */
static bson_t *
translate_computed(const MongoTranslation *translation, Node *node)
{
	ListCell   *cell;

	foreach(cell, translation->computed)
	{
		MongoComputed *computed = lfirst(cell);

		if (equal(computed->expression, node))
			return reference("$%s", computed->path);
	}
	return NULL;
}

/* A column, or a field inside a json column where that is a value of its own. */
static bson_t *
translate_field(MongoTranslation *translation, Node *node)
{
	MongoField	field;

	if (!mongo_field_of_node(translation->columns, node, &field) ||
		field.columns->type_mismatch != MONGO_TYPE_MISMATCH_ERROR ||
		field.type != field.operator_type ||
		!mongo_path_is_addressable(field.path) || mongo_path_has_index(field.path))
		return NULL;
	return reference("$%s", field.path);
}

/* A value that needs no document: in place if constant, else a variable. */
static bson_t *
translate_value(MongoTranslation *translation, Node *node)
{
	Const	   *constant = (Const *) node;
	bson_t	   *result;
	bson_t		literal;

	if (!mongo_type_is_writable(exprType(node)) ||
		!mongo_is_local_value(translation, node))
		return NULL;
	if (!IsA(node, Const))
	{
		if (mongo_feature_is_held_back(translation->held_back, MONGO_FEATURE_LET))
			return NULL;
		translation->variables = lappend(translation->variables, node);
		return reference("$$%s", mongo_variable_name(list_length(translation->variables) - 1));
	}

	result = bson_create_in(CurrentMemoryContext);
	BSON_APPEND_DOCUMENT_BEGIN(result, "", &literal);
	mongo_append_datum(&literal, "$literal", -1, constant->constvalue,
					   constant->constisnull, constant->consttype,
					   constant->consttypmod, NULL);
	bson_append_document_end(result, &literal);
	return result;
}

static bson_t *
translate_by_tag(MongoTranslation *translation, Node *node)
{
	bson_t	   *result = translate_computed(translation, node);

	if (result == NULL && translation->columns != NULL)
		result = translate_field(translation, node);
	if (result == NULL)
		result = translate_value(translation, node);
	return result;
}

static bson_t *
translate_node(MongoTranslation *translation, Node *node)
{
	bson_t	   *result;

	if (translation->depth >= MAX_DEPTH)
		return NULL;
	translation->depth++;
	result = translate_by_tag(translation, node);
	translation->depth--;
	return result != NULL && result->len > MONGO_LARGEST_MATCH ? NULL : result;
}

bson_t *
mongo_translate_expression(MongoTranslation *translation, Node *node)
{
	int			nvariables = list_length(translation->variables);
	bson_t	   *result = NULL;

	if (translation->use_expressions)
		result = translate_node(translation, node);
	if (result == NULL)
		translation->variables = list_truncate(translation->variables, nvariables);
	return result;
}
