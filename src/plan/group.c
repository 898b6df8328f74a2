/*-------------------------------------------------------------------------
 *
 * group.c
 *		The stages of a group; see group.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "group.h"

#include "aggregate_fits.h"
#include "bson_memory.h"
#include "bson_write.h"
#include "feature.h"
#include "types.h"

#include "access/htup_details.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"

/* The C collation goes by bytes, as MongoDB does without a collation. */
static bool
key_collation_suits(Oid collation, bool ordered)
{
	return OidIsValid(collation) &&
		(ordered ? mongo_collate_is_c(collation) :
		 get_collation_isdeterministic(collation));
}

/* value_as_stored: as mongo_group_value(), but in the form that documents have. */
static bool
value_as_stored(const MongoScope *scope, Node *node, bool ordered, MongoValue *value)
{
	Oid			type = getBaseType(exprType(node));

	if (!mongo_has_normal_form(type))
		return false;
	if (mongo_compares_text(type))
	{
		if (!key_collation_suits(exprCollation(node), ordered) ||
			mongo_feature_is_disabled(scope->translation->disabled,
									  MONGO_FEATURE_COLLATION))
			return false;
		scope->translation->compares_text = true;
	}
	return mongo_value_of_node(scope, node, value);
}

bool
mongo_group_value(const MongoScope *scope, Node *node, bool ordered, MongoValue *value)
{
	return value_as_stored(scope, node, ordered, value) &&
		(mongo_kind_of_type(value->type)->compares_raw || mongo_normalize(scope, value));
}

/*
 * mongo_group_never_null
 *
 * A NOT NULL of a foreign table is taken at its word, as PostgreSQL does; but of
 * a table that is joined to the first one, rows may be missing.
 */
bool
mongo_group_never_null(const MongoGroup *group, Node *node)
{
	const Var  *var = (const Var *) node;
	const MongoColumns *columns;
	HeapTuple	tuple;
	bool		result;

	if (!IsA(node, Var) || var->varattno <= 0)
		return false;
	columns = mongo_columns_find(group->scope.translation->columns, var->varno);
	if (columns == NULL || columns->prefix != NULL)
		return false;
	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(columns->relid),
							Int16GetDatum(var->varattno));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * mongo_group_add_key
 *
 * A text stays as it is in the documents, for two stages to merge.  Other types
 * do not: Doubles and Decimal128s that are equal need not read as equal
 * numerics, and there are as many times as documents for a few dates.
 */
bool
mongo_group_add_key(MongoGroup *group, Expr *expression)
{
	MongoGroupKey *key = palloc(sizeof(MongoGroupKey));

	/*
	 * Not a value without columns: it would stand in fdw_exprs as well, and
	 * setrefs.c would take the one for the other.
	 */
	if (mongo_is_local_value(group->scope.translation, (Node *) expression) ||
		!value_as_stored(&group->scope, (Node *) expression, false, &key->value))
		return false;
	if (!mongo_compares_text(key->value.type) &&
		!mongo_kind_of_type(key->value.type)->compares_raw &&
		!mongo_normalize(&group->scope, &key->value))
		return false;
	if (mongo_group_never_null(group, (Node *) expression))
		key->value.nullable = false;
	key->expression = expression;
	group->keys = lappend(group->keys, key);
	return true;
}

/* key_path: of a key in the documents that a stage gives. */
static const char *
key_path(const MongoGroup *group, int number, bool alone)
{
	return alone && list_length(group->keys) == 1 ? "_id" : psprintf("_id.k%d", number);
}

/*
 * normal_text: a column's text as a String, or an error where it is none: MongoDB
 * would make texts of numbers as well.
 */
static MongoValue
normal_text(const MongoGroup *group, Node *node, const MongoValue *raw)
{
	MongoValue	value = *raw;
	MongoField	field;
	const Var  *column;

	if (!mongo_normalize(&group->scope, &value))
		elog(ERROR, "text has no normal form");
	column = mongo_column_of_node(group->scope.translation->columns, node, &field);
	if (raw->raw && column != NULL)
		value.expression = mongo_fits_or_raise(mongo_aggregate_fit(TEXTOID, field.bson_type),
											   column, &field, raw, NULL, &value);
	return value;
}

/* append_group_key: 'final' makes equal what is equal in PostgreSQL. */
static void
append_group_key(const MongoGroup *group, bson_t *id, const char *name, Node *node,
				 MongoValue value, bool final)
{
	bson_t	   *expression;

	if (final && mongo_compares_text(value.type))
		value = normal_text(group, node, &value);
	expression = value.expression;
	if (final && value.nullable)
		expression = mongo_expand_template("{$ifNull: [@1, null]}", &value, 1);
	mongo_append_expression(id, name, expression);
}

bson_t *
mongo_field_expression(const char *path)
{
	bson_t	   *expression = bson_create_in(CurrentMemoryContext);

	bson_append_member(expression, "", "@1", bson_field(path));
	return expression;
}

/* append_group_id: the specification's _id, of values that the keys have now. */
static void
append_group_id(const MongoGroup *group, const List *values, bool final, bool distinct,
				bson_t *specification)
{
	bool		alone = list_length(values) == 1 && !distinct;
	bson_t	   *id = alone ? specification : bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	if (values == NIL && !distinct)
	{
		BSON_APPEND_NULL(specification, "_id");
		return;
	}
	foreach(cell, values)
	{
		int			number = foreach_current_index(cell);
		const MongoGroupKey *key = list_nth(group->keys, number);

		append_group_key(group, id, alone ? "_id" : psprintf("k%d", number),
						 (Node *) key->expression, *(MongoValue *) lfirst(cell), final);
	}
	if (distinct)
		append_group_key(group, id, "d", group->distinct, group->distinct_value, true);
	if (!alone)
		BSON_APPEND_DOCUMENT(specification, "_id", id);
}

/* append_accumulator: {a0: {$sum: operand}} */
static void
append_accumulator(bson_t *specification, int number, const char *operator,
				   const bson_t *operand)
{
	bson_append_condition(specification, psprintf("a%d", number), operator,
						  bson_first(operand));
}

/*
 * Over documents; what is distinct waits for the second stage.  Then keys must
 * be made equal in this stage already, or values would be distinct in each of them.
 */
static void
append_first_stage(const MongoGroup *group, bool final, MongoPipeline *pipeline)
{
	bson_t	   *specification = bson_create_in(CurrentMemoryContext);
	List	   *values = NIL;
	ListCell   *cell;

	foreach(cell, group->keys)
		values = lappend(values, &((MongoGroupKey *) lfirst(cell))->value);
	append_group_id(group, values, final, group->distinct != NULL, specification);
	foreach(cell, group->accumulators)
	{
		MongoAccumulator *accumulator = lfirst(cell);

		if (!accumulator->distinct)
			append_accumulator(specification, foreach_current_index(cell),
							   accumulator->operator, accumulator->operand);
	}
	mongo_pipeline_append(pipeline, "$group", specification);
}

/* Over the groups of the first. */
static void
append_second_stage(const MongoGroup *group, MongoPipeline *pipeline)
{
	bson_t	   *specification = bson_create_in(CurrentMemoryContext);
	List	   *values = NIL;
	ListCell   *cell;

	foreach(cell, group->keys)
	{
		MongoValue *value = palloc(sizeof(MongoValue));

		*value = ((MongoGroupKey *) lfirst(cell))->value;
		value->atomic = true;
		value->expression = mongo_field_expression(key_path(group, foreach_current_index(cell),
															group->distinct == NULL));
		values = lappend(values, value);
	}
	append_group_id(group, values, group->distinct == NULL, false, specification);
	foreach(cell, group->accumulators)
	{
		MongoAccumulator *accumulator = lfirst(cell);
		int			number = foreach_current_index(cell);

		append_accumulator(specification, number, accumulator->operator,
						   accumulator->distinct ? accumulator->operand :
						   mongo_field_expression(psprintf("a%d", number)));
	}
	mongo_pipeline_append(pipeline, "$group", specification);
}

/* differs_in_documents: may equal keys come as different values? */
static bool
differs_in_documents(const MongoGroup *group)
{
	ListCell   *cell;

	foreach(cell, group->keys)
	{
		MongoGroupKey *key = lfirst(cell);

		if (key->value.nullable || (mongo_compares_text(key->value.type) && key->value.raw))
			return true;
	}
	return false;
}

/* From now on the pipeline's values are those of the group. */
static void
begin_computed(const MongoGroup *group, MongoPipeline *pipeline)
{
	List	   *computed = list_copy(group->computed);
	ListCell   *cell;

	foreach(cell, group->keys)
	{
		MongoComputed *key = palloc0(sizeof(MongoComputed));
		const MongoGroupKey *group_key = lfirst(cell);

		key->expression = group_key->expression;
		key->path = key_path(group, foreach_current_index(cell), true);
		key->normal = !group_key->value.raw || mongo_compares_text(group_key->value.type);
		key->not_null = !group_key->value.nullable;
		computed = lappend(computed, key);
	}
	pipeline->translation.columns = NULL;
	pipeline->translation.computed = computed;
}

/*
 * keep_from_sparse: of a $group by one field alone, that MongoDB does not take a sparse
 * index for all documents.
 *
 * It would go from key to key of it, and lose the group of those without the field.
 * No value is greater than MaxKey; to find that, MongoDB takes any other index, but
 * not a sparse one.
 */
static void
keep_from_sparse(const MongoGroup *group, MongoPipeline *pipeline)
{
	bson_t	   *match = bson_create_in(CurrentMemoryContext);
	const MongoColumns *columns = pipeline->translation.columns;
	const MongoGroupKey *key;
	bson_iter_t iter;

	if (list_length(group->keys) != 1 || group->accumulators != NIL || group->distinct != NULL ||
		columns == NULL || (!bson_empty(pipeline->stages) && columns->derivation == NULL))
		return;
	key = linitial(group->keys);
	if (!key->value.nullable || !bson_iter_init(&iter, key->value.expression) ||
		!bson_iter_next(&iter) || !BSON_ITER_HOLDS_UTF8(&iter) ||
		strncmp(bson_iter_utf8(&iter, NULL), "$$", 2) == 0)
		return;
	bson_append_template(match, "{@1: {$not: {$gt: max}}}",
						 bson_utf8(bson_iter_utf8(&iter, NULL) + 1));
	mongo_pipeline_append(pipeline, "$match", match);
}

void
mongo_group_append(const MongoGroup *group, bool merge, MongoPipeline *pipeline)
{
	merge = group->distinct != NULL || (merge && differs_in_documents(group));
	if (merge)
		keep_from_sparse(group, pipeline);
	append_first_stage(group, !merge || group->distinct != NULL, pipeline);
	if (merge)
		append_second_stage(group, pipeline);
	if (group->nresults > 0)
		mongo_pipeline_append(pipeline, "$set", group->results);
	begin_computed(group, pipeline);
}
