/*-------------------------------------------------------------------------
 *
 * direct_update.c
 *		What an UPDATE that is one command does to each document.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "direct_update.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "encoding.h"
#include "nodes/value.h"
#include "options.h"
#include "row_document.h"
#include "types.h"

/* append_value: the value as the column's. */
static void
append_value(bson_t *document, const char *key, const MongoNewValue *new)
{
	mongo_append_column_value(document, key, new->path, new->value, new->attribute,
							  new->bson_type);
}

/* column_value: the same to be put into a template. */
static bson_value_t
column_value(const MongoNewValue *new)
{
	bson_t	   *document = bson_create_in(CurrentMemoryContext);

	append_value(document, "", new);
	return bson_first(document);
}

/* null_value: what makes the field NULL in a $set. */
static bson_value_t
null_value(bool write_null)
{
	return write_null ? bson_null() : bson_utf8("$$REMOVE");
}

static bson_value_t
mismatch_message(const MongoNewValue *new)
{
	return bson_utf8(psprintf("field %s does not fit its column: ", new->path));
}

/* An expression that fails for this document. */
#define MISMATCH_ERROR(message, field)	"{$toInt: {$concat: [" message ", {$type: " field "}]}}"

/*
 * The result where the field is what the column writes and the sum fits, which
 * is told first; else why it is not, and last the sum of an integer of another
 * BSON type.  An overflow is made one for MongoDB: its own would come only
 * where an Int32 or Int64 ends, and would be a number of the next type.
 *
 * @1 the field, @2 the value, @3 and @4 the least and the greatest number to
 * which it can be added, @5 the BSON type, @6 what NULL becomes, @7 a message,
 * @8 the operator and @9 the conversion.
 */
static const char sum_template[] =
"{$cond: [{$and: [{$eq: [{$type: @1}, @5]}, {$gte: [@1, @3]}, {$lte: [@1, @4]}]}, {@8: [@1, @2]},"
" {$switch: {branches: ["
"  {case: {$in: [{$type: @1}, ['missing', 'null', 'undefined']]}, then: @6},"
"  {case: {$or: [{$not: [{$isNumber: @1}]}, {$ne: [@1, {$trunc: @1}]}]},"
"   then: " MISMATCH_ERROR("@7", "@1") "},"
"  {case: {$or: [{$lt: [@1, @3]}, {$gt: [@1, @4]}]},"
"   then: {$toInt: {$cond: [{$isNumber: @1}, 2147483648, 0]}}}],"
"  default: {@8: [{@9: @1}, @2]}}}]}";

/*
 * append_sum
 *		column + value as PostgreSQL has it: an error on overflow and for what
 *		does not fit the column, NULL for NULL.
 */
static void
append_sum(bson_t *stage, const MongoNewValue *new, bool write_null)
{
	const MongoType *type = mongo_type_facts(new->attribute->atttypid);
	bool		is_int64 = mongo_is_int64(type);
	bool		adds = new->kind == MONGO_ASSIGN_SUM;
	int64		value = mongo_integer_of_datum(type->typid, new->value);
	bool		grows = adds == (value >= 0);
	int64		min = -type->limit - 1;
	int64		max = type->limit;
	int64		least = grows ? min : adds ? min - value : min + value;
	int64		greatest = !grows ? max : adds ? max - value : max + value;

	bson_append_member(stage, new->path, sum_template, bson_field(new->path),
					   column_value(new), bson_int64(least), bson_int64(greatest),
					   bson_utf8(is_int64 ? "long" : "int"), null_value(write_null),
					   mismatch_message(new), bson_utf8(adds ? "$add" : "$subtract"),
					   bson_utf8(is_int64 ? "$toLong" : "$toInt"));
}

/*
 * What jsonb_set() makes of the value @1 at or below which it sets the member @2 to
 * @3.  Nothing is set below what is missing or a scalar.  Whatever JSON shows
 * otherwise than it is (dates, decimals, infinity) and arrays, whose elements have no
 * names, make it fail with the message @4.
 */
#define OBJECT_BRANCH \
	"{case: {$in: [{$type: @1}, ['object']]}, then: {$mergeObjects: [@1, {@2: @3}]}}"

static const char column_template[] =
"{$switch: {branches: [" OBJECT_BRANCH "], default: " MISMATCH_ERROR("@4", "@1") "}}";

static const char member_template[] =
"{$switch: {branches: [" OBJECT_BRANCH ","
"  {case: {$in: [{$type: @1}, ['null', 'string', 'int', 'long', 'bool']]}, then: @1},"
"  {case: {$in: [{$type: @1}, ['missing']]}, then: '$$REMOVE'},"
"  {case: {$in: [{$type: @1}, ['double']]},"
"   then: {$cond: [{$and: [{$gt: [@1, -inf]}, {$lt: [@1, inf]}]}, @1, " MISMATCH_ERROR("@4", "@1") "]}}],"
"  default: " MISMATCH_ERROR("@4", "@1") "}}";

/* with_member: the value at 'path' with the member set that is at or below it. */
static bson_t *
with_member(const MongoNewValue *new, const char *path, int level)
{
	const char *name = mongo_to_utf8(strVal(list_nth(new->keys, level)));
	bson_t	   *member = level == list_length(new->keys) - 1 ?
		bson_from_template("{$literal: @1}", column_value(new)) :
		with_member(new, psprintf("%s.%s", path, name), level + 1);

	return bson_from_template(level == 0 ? column_template : member_template,
							  bson_field(path), bson_utf8(name), bson_document(member),
							  mismatch_message(new));
}

/* append_json_member: jsonb_set(column, keys, value), which is NULL for NULL. */
static void
append_json_member(bson_t *stage, const MongoNewValue *new, bool write_null)
{
	bson_append_member(stage, new->path,
					   "{$cond: [{$in: [{$type: @1}, ['missing', 'null', 'undefined']]}, @2, @3]}",
					   bson_field(new->path), null_value(write_null),
					   bson_document(with_member(new, new->path, 0)));
}

/* build_pipeline: {"0": {$set: {...}}}, when a value depends on the document. */
static void
build_pipeline(const MongoNewValue *values, int count, bool write_null, bson_t *update)
{
	bson_t	   *set = bson_create_in(CurrentMemoryContext);

	for (int i = 0; i < count; i++)
	{
		const MongoNewValue *new = &values[i];

		if (new->isnull)
			bson_append_member(set, new->path, "@1", null_value(write_null));
		else if (new->kind == MONGO_ASSIGN_VALUE)
			bson_append_condition(set, new->path, "$literal", column_value(new));
		else if (new->kind == MONGO_ASSIGN_JSON_MEMBER)
			append_json_member(set, new, write_null);
		else
			append_sum(set, new, write_null);
	}
	bson_append_member(update, "0", "{$set: @1}", bson_document(set));
}

/* build_operators: {$set: {...}, $unset: {...}}. */
static void
build_operators(const MongoNewValue *values, int count, bool write_null, bson_t *update)
{
	bson_t	   *set = bson_create_in(CurrentMemoryContext);
	bson_t	   *unset = bson_create_in(CurrentMemoryContext);

	for (int i = 0; i < count; i++)
	{
		const MongoNewValue *new = &values[i];

		if (!new->isnull)
			append_value(set, new->path, new);
		else if (write_null)
			BSON_APPEND_NULL(set, new->path);
		else
			BSON_APPEND_BOOL(unset, new->path, true);
	}
	if (!bson_empty(set))
		BSON_APPEND_DOCUMENT(update, "$set", set);
	if (!bson_empty(unset))
		BSON_APPEND_DOCUMENT(update, "$unset", unset);
}

bson_t *
mongo_build_update(const MongoNewValue *values, int count, bool write_null)
{
	bson_t	   *update = bson_create_in(CurrentMemoryContext);
	bool		any_own = false;

	for (int i = 0; i < count; i++)
		any_own |= values[i].kind != MONGO_ASSIGN_VALUE && !values[i].isnull;
	if (any_own)
		build_pipeline(values, count, write_null, update);
	else
		build_operators(values, count, write_null, update);
	return update;
}

void
mongo_describe_assignment(Relation relation, const MongoAssignment *assignment,
						  MongoNewValue *new)
{
	const MongoColumnOptions *options;

	new->attribute = TupleDescAttr(RelationGetDescr(relation), assignment->attnum - 1);
	new->name = NameStr(new->attribute->attname);
	options = mongo_column_options(RelationGetRelid(relation), assignment->attnum);
	new->path = options->path;
	new->bson_type = options->bson_type;
	new->kind = assignment->kind;
	new->keys = assignment->keys;
}
