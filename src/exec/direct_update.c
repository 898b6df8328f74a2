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
#include "catalog/pg_type_d.h"
#include "encoding.h"
#include "expression_rows.h"
#include "nodes/value.h"
#include "options.h"
#include "row_document.h"
#include "utils/float.h"

static void
append_value(bson_t *document, const char *key, const MongoNewValue *new)
{
	mongo_append_column_value(document, key, new->path, new->value,
							  new->attribute->atttypid,
							  new->attribute->atttypmod, new->name);
}

static char *
mismatch_message(const MongoNewValue *new)
{
	return psprintf("field %s does not fit its column: ", new->path);
}

/* new_argument: one of a template's. */
static MongoValue
new_argument(void)
{
	return (MongoValue) {.expression = bson_create_in(CurrentMemoryContext), .atomic = true};
}

static MongoValue
text_argument(const char *text)
{
	MongoValue	argument = new_argument();

	BSON_APPEND_UTF8(argument.expression, "", text);
	return argument;
}

/* An expression that fails for this document. */
#define MISMATCH_ERROR(message, field)	"{$toInt: {$concat: [" message ", {$type: " field "}]}}"

static void
append_mismatch_error(bson_t *document, const char *key, const MongoNewValue *new)
{
	MongoValue	arguments[] = {
		text_argument(mismatch_message(new)),
		text_argument(psprintf("$%s", new->path))
	};

	mongo_append_expression(document, key,
							mongo_expand_template(MISMATCH_ERROR("@1", "@2"), arguments,
												  lengthof(arguments)));
}

/*
 * Integers whose sums MongoDB can compute: the BSON type they are written as,
 * their range, and what makes any number one.
 */
typedef struct SumRule
{
	Oid			type;
	const char *bson_type;
	int64		min;
	int64		max;
	const char *conversion;
} SumRule;

static const SumRule sum_rules[] =
{
	{INT2OID, "int", PG_INT16_MIN, PG_INT16_MAX, "$toInt"},
	{INT4OID, "int", PG_INT32_MIN, PG_INT32_MAX, "$toInt"},
	{INT8OID, "long", PG_INT64_MIN, PG_INT64_MAX, "$toLong"},
};

static const SumRule *
find_sum_rule(Oid type)
{
	for (size_t i = 0; i < lengthof(sum_rules); i++)
	{
		if (sum_rules[i].type == type)
			return &sum_rules[i];
	}
	elog(ERROR, "type %u has no sums", type);
}

/*
 * The result where the field is what the column writes and the sum fits, which
 * is told first; else why it is not, and last the sum of an integer of another
 * BSON type.  An overflow is made one for MongoDB: its own would come only
 * where an Int32 or Int64 ends, and would be a number of the next type.
 *
 * @1 the field, @2 the value, @3 and @4 the least and the greatest number to
 * which it can be added, @5 the BSON type, @6 what NULL becomes, @7 a message;
 * in place of %s: operator and conversion.
 */
static const char sum_template[] =
"{$cond: [{$and: [{$eq: [{$type: @1}, @5]}, {$gte: [@1, @3]}, {$lte: [@1, @4]}]}, {%s: [@1, @2]},"
" {$switch: {branches: ["
"  {case: {$in: [{$type: @1}, ['missing', 'null', 'undefined']]}, then: @6},"
"  {case: {$or: [{$not: [{$isNumber: @1}]}, {$ne: [@1, {$trunc: @1}]}]},"
"   then: " MISMATCH_ERROR("@7", "@1") "},"
"  {case: {$or: [{$lt: [@1, @3]}, {$gt: [@1, @4]}]},"
"   then: {$toInt: {$cond: [{$isNumber: @1}, 2147483648, 0]}}}],"
"  default: {%s: [{%s: @1}, @2]}}}]}";

static MongoValue
integer_argument(int64 value)
{
	MongoValue	argument = new_argument();

	BSON_APPEND_INT64(argument.expression, "", value);
	return argument;
}

/*
 * append_sum
 *		column + value as PostgreSQL has it: an error on overflow and for what
 *		does not fit the column, NULL for NULL.
 */
static void
append_sum(bson_t *stage, const MongoNewValue *new, bool write_null)
{
	const SumRule *rule = find_sum_rule(new->attribute->atttypid);
	bool		adds = new->kind == MONGO_ASSIGN_SUM;
	const char *operator = adds ? "$add" : "$subtract";
	int64		value = rule->type == INT2OID ? DatumGetInt16(new->value) :
		rule->type == INT4OID ? DatumGetInt32(new->value) : DatumGetInt64(new->value);
	bool		grows = adds == (value >= 0);
	int64		least = grows ? rule->min : adds ? rule->min - value : rule->min + value;
	int64		greatest = !grows ? rule->max : adds ? rule->max - value : rule->max + value;
	MongoValue	arguments[] = {
		text_argument(psprintf("$%s", new->path)),
		new_argument(),
		integer_argument(least),
		integer_argument(greatest),
		text_argument(rule->bson_type),
		new_argument(),
		text_argument(mismatch_message(new))
	};

	append_value(arguments[1].expression, "", new);
	if (write_null)
		BSON_APPEND_NULL(arguments[5].expression, "");
	else
		BSON_APPEND_UTF8(arguments[5].expression, "", "$$REMOVE");
	mongo_append_expression(stage, new->path,
							mongo_expand_template(psprintf(sum_template, operator, operator,
														   rule->conversion),
												  arguments, lengthof(arguments)));
}

/* {$in: [{$type: field}, [types]]} */
static void
append_type_is(bson_t *document, const char *key, const char *field,
			   const char *const *types, int count)
{
	bson_t		test;
	bson_t		operands;
	bson_t		type;
	bson_t		list;

	BSON_APPEND_DOCUMENT_BEGIN(document, key, &test);
	BSON_APPEND_ARRAY_BEGIN(&test, "$in", &operands);
	BSON_APPEND_DOCUMENT_BEGIN(&operands, "0", &type);
	BSON_APPEND_UTF8(&type, "$type", field);
	bson_append_document_end(&operands, &type);
	BSON_APPEND_ARRAY_BEGIN(&operands, "1", &list);
	for (int i = 0; i < count; i++)
		BSON_APPEND_UTF8(&list, psprintf("%d", i), types[i]);
	bson_append_array_end(&operands, &list);
	bson_append_array_end(&test, &operands);
	bson_append_document_end(document, &test);
}

/* {$and: [{$gt: [field, -Infinity]}, {$lt: [field, Infinity]}]}, for doubles */
static void
append_is_finite(bson_t *document, const char *key, const char *field)
{
	static const char *const operators[] = {"$gt", "$lt"};
	bson_t		test;
	bson_t		both;

	BSON_APPEND_DOCUMENT_BEGIN(document, key, &test);
	BSON_APPEND_ARRAY_BEGIN(&test, "$and", &both);
	for (size_t i = 0; i < lengthof(operators); i++)
	{
		bson_t		comparison;
		bson_t		operands;

		BSON_APPEND_DOCUMENT_BEGIN(&both, i == 0 ? "0" : "1", &comparison);
		BSON_APPEND_ARRAY_BEGIN(&comparison, operators[i], &operands);
		BSON_APPEND_UTF8(&operands, "0", field);
		BSON_APPEND_DOUBLE(&operands, "1", i == 0 ? -get_float8_infinity() :
						   get_float8_infinity());
		bson_append_array_end(&comparison, &operands);
		bson_append_document_end(&both, &comparison);
	}
	bson_append_array_end(&test, &both);
	bson_append_document_end(document, &test);
}

static void append_member_below(bson_t *document, const char *key, const char *field,
								const MongoNewValue *new, int level);

/* {$mergeObjects: [field, {name: the new member}]} */
static void
append_merged(bson_t *document, const char *key, const char *field,
			  const MongoNewValue *new, int level)
{
	const char *name = mongo_to_utf8(strVal(list_nth(new->keys, level)));
	bson_t		merged;
	bson_t		parts;
	bson_t		member;
	bson_t		literal;

	BSON_APPEND_DOCUMENT_BEGIN(document, key, &merged);
	BSON_APPEND_ARRAY_BEGIN(&merged, "$mergeObjects", &parts);
	BSON_APPEND_UTF8(&parts, "0", field);
	BSON_APPEND_DOCUMENT_BEGIN(&parts, "1", &member);
	if (level == list_length(new->keys) - 1)
	{
		BSON_APPEND_DOCUMENT_BEGIN(&member, name, &literal);
		append_value(&literal, "$literal", new);
		bson_append_document_end(&member, &literal);
	}
	else
		append_member_below(&member, name, psprintf("%s.%s", field, name), new, level + 1);
	bson_append_document_end(&parts, &member);
	bson_append_array_end(&merged, &parts);
	bson_append_document_end(document, &merged);
}

/* One branch of $switch, to be filled with its "then". */
static void
begin_branch(bson_t *branches, int number, const char *field,
			 const char *const *types, int count, bson_t *branch)
{
	BSON_APPEND_DOCUMENT_BEGIN(branches, psprintf("%d", number), branch);
	append_type_is(branch, "case", field, types, count);
}

/*
 * append_member_below
 *		The value at 'field' with the member set at or below it, as jsonb_set()
 *		has it: nothing is set below what is missing or a scalar.
 *
 * Whatever JSON shows otherwise than it is (dates, decimals, infinity) and
 * arrays, whose elements have no names, make it fail.
 */
static void
append_member_below(bson_t *document, const char *key, const char *field,
					const MongoNewValue *new, int level)
{
	static const char *const objects[] = {"object"};
	static const char *const scalars[] = {"null", "string", "int", "long", "bool"};
	static const char *const doubles[] = {"double"};
	static const char *const none[] = {"missing"};
	bson_t		chosen;
	bson_t		arguments;
	bson_t		branches;
	bson_t		branch;
	int			next = 0;

	BSON_APPEND_DOCUMENT_BEGIN(document, key, &chosen);
	BSON_APPEND_DOCUMENT_BEGIN(&chosen, "$switch", &arguments);
	BSON_APPEND_ARRAY_BEGIN(&arguments, "branches", &branches);
	begin_branch(&branches, next++, field, objects, lengthof(objects), &branch);
	append_merged(&branch, "then", field, new, level);
	bson_append_document_end(&branches, &branch);
	if (level > 0)
	{
		bson_t		finite;
		bson_t		choice;

		begin_branch(&branches, next++, field, scalars, lengthof(scalars), &branch);
		BSON_APPEND_UTF8(&branch, "then", field);
		bson_append_document_end(&branches, &branch);

		begin_branch(&branches, next++, field, none, lengthof(none), &branch);
		BSON_APPEND_UTF8(&branch, "then", "$$REMOVE");
		bson_append_document_end(&branches, &branch);

		begin_branch(&branches, next++, field, doubles, lengthof(doubles), &branch);
		BSON_APPEND_DOCUMENT_BEGIN(&branch, "then", &finite);
		BSON_APPEND_ARRAY_BEGIN(&finite, "$cond", &choice);
		append_is_finite(&choice, "0", field);
		BSON_APPEND_UTF8(&choice, "1", field);
		append_mismatch_error(&choice, "2", new);
		bson_append_array_end(&finite, &choice);
		bson_append_document_end(&branch, &finite);
		bson_append_document_end(&branches, &branch);
	}
	bson_append_array_end(&arguments, &branches);
	append_mismatch_error(&arguments, "default", new);
	bson_append_document_end(&chosen, &arguments);
	bson_append_document_end(document, &chosen);
}

/* append_json_member: jsonb_set(column, keys, value), which is NULL for NULL. */
static void
append_json_member(bson_t *stage, const MongoNewValue *new, bool write_null)
{
	static const char *const nulls[] = {"missing", "null", "undefined"};
	char	   *field = psprintf("$%s", new->path);
	bson_t		outer;
	bson_t		branches;

	BSON_APPEND_DOCUMENT_BEGIN(stage, new->path, &outer);
	BSON_APPEND_ARRAY_BEGIN(&outer, "$cond", &branches);
	append_type_is(&branches, "0", field, nulls, lengthof(nulls));
	if (write_null)
		BSON_APPEND_NULL(&branches, "1");
	else
		BSON_APPEND_UTF8(&branches, "1", "$$REMOVE");
	append_member_below(&branches, "2", field, new, 0);
	bson_append_array_end(&outer, &branches);
	bson_append_document_end(stage, &outer);
}

/* build_pipeline: {"0": {$set: {...}}}, when a value depends on the document. */
static void
build_pipeline(const MongoNewValue *values, int count, bool write_null, bson_t *update)
{
	bson_t		stage;
	bson_t		set;

	BSON_APPEND_DOCUMENT_BEGIN(update, "0", &stage);
	BSON_APPEND_DOCUMENT_BEGIN(&stage, "$set", &set);
	for (int i = 0; i < count; i++)
	{
		const MongoNewValue *new = &values[i];

		if (new->isnull && write_null)
			BSON_APPEND_NULL(&set, new->path);
		else if (new->isnull)
			BSON_APPEND_UTF8(&set, new->path, "$$REMOVE");
		else if (new->kind == MONGO_ASSIGN_VALUE)
		{
			bson_t		literal;

			BSON_APPEND_DOCUMENT_BEGIN(&set, new->path, &literal);
			append_value(&literal, "$literal", new);
			bson_append_document_end(&set, &literal);
		}
		else if (new->kind == MONGO_ASSIGN_JSON_MEMBER)
			append_json_member(&set, new, write_null);
		else
			append_sum(&set, new, write_null);
	}
	bson_append_document_end(&stage, &set);
	bson_append_document_end(update, &stage);
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
	new->attribute = TupleDescAttr(RelationGetDescr(relation), assignment->attnum - 1);
	new->name = NameStr(new->attribute->attname);
	new->path = mongo_column_options(RelationGetRelid(relation), assignment->attnum)->path;
	new->kind = assignment->kind;
	new->keys = assignment->keys;
}
