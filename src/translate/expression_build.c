/*-------------------------------------------------------------------------
 *
 * expression_build.c
 *		Builds aggregation expressions from templates and arguments.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"

#include "lib/stringinfo.h"

/* Variables of $let, by argument number. */
static const struct
{
	const char *name;
	const char *reference;
}			variables[MONGO_MAX_ARGUMENTS] =
{
	{"a", "$$a"}, {"b", "$$b"}, {"c", "$$c"}, {"d", "$$d"},
	{"e", "$$e"}, {"f", "$$f"}, {"g", "$$g"}, {"h", "$$h"},
};

/*
 * mongo_append_expression
 *		Appends a translated expression's value to 'document' under 'key'.
 */
void
mongo_append_expression(bson_t *document, const char *key, const bson_t *expression)
{
	mongo_append(document, key, mongo_first_value(expression));
}

/*
 * mongo_expression_of_values
 *		Builds an expression from BSON values, in the current memory context; see
 *		mongo_expression().
 */
bson_t *
mongo_expression_of_values(const char *text, const BsonValue *values, int nvalues)
{
	bson_t	   *result = mongo_bson_create();

	mongo_append_member_values(result, "", text, values, nvalues);
	return result;
}

/*
 * mongo_argument
 *		Returns an argument of mongo_expand_template() for a BSON value.
 */
MongoValue
mongo_argument(bson_value_t value)
{
	return (MongoValue)
	{
		.expression = mongo_expression("@1", value), .typmod = -1
	};
}

/*
 * mongo_decimal_value
 *		Returns a Decimal128 constant, such as "0.005", as a value.
 */
MongoValue
mongo_decimal_value(const char *text)
{
	bson_value_t value = {.value_type = BSON_TYPE_DECIMAL128};

	if (!bson_decimal128_from_string(text, &value.value.v_decimal128))
		elog(ERROR, "not a Decimal128: %s", text);
	return mongo_argument(value);
}

/*
 * mongo_is_atomic
 *		Tells whether it is a field, variable or constant, so that $let would not be useful.
 */
bool
mongo_is_atomic(const bson_value_t *expression)
{
	bson_t		operator;

	if (expression->value_type != BSON_TYPE_DOCUMENT)
		return true;
	return mongo_bson_view(&operator, expression->value.v_doc.data, expression->value.v_doc.data_len) &&
		bson_has_field(&operator, "$literal");
}

/*
 * mongo_path_of_expression
 *		Returns the path of the field that the expression is, a part of it; NULL if it is anything
 *		else.
 */
const char *
mongo_path_of_expression(const bson_t *expression)
{
	bson_value_t value = mongo_first_value(expression);

	return value.value_type == BSON_TYPE_UTF8 && value.value.v_utf8.str[0] == '$' &&
		value.value.v_utf8.str[1] != '$' ? value.value.v_utf8.str + 1 : NULL;
}

static void
count_uses(const char *text, int *uses, int narguments)
{
	for (const char *c = strchr(text, '@'); c != NULL; c = strchr(c + 1, '@'))
	{
		int			argument = c[1] - '1';

		if (argument >= 0 && argument < narguments)
			uses[argument]++;
	}
}

/*
 * mongo_expand_template
 *		Builds an expression from a text, see common.h, whose arguments are @1, @2 and so on:
 *		{$add: [@1, @2]}.  An argument that occurs more than once is evaluated once, by $let, unless
 *		it is a field, variable or constant.
 */
bson_t *
mongo_expand_template(const char *text, const MongoValue *arguments, int narguments)
{
	int			uses[MONGO_MAX_ARGUMENTS] = {0};
	BsonValue	values[MONGO_MAX_ARGUMENTS] = {0};
	bson_t	   *bound = NULL;
	bson_t	   *in;

	Assert(narguments <= MONGO_MAX_ARGUMENTS);
	count_uses(text, uses, narguments);
	for (int i = 0; i < narguments; i++)
	{
		if (uses[i] == 0)
			continue;
		values[i] = mongo_first_value(arguments[i].expression);
		if (uses[i] == 1 || mongo_is_atomic(&values[i]))
			continue;
		if (bound == NULL)
			bound = mongo_bson_create();
		mongo_append(bound, variables[i].name, values[i]);
		values[i] = mongo_utf8(variables[i].reference);
	}
	in = mongo_expression_of_values(text, values, narguments);
	if (bound == NULL)
		return in;
	return mongo_expression("{$let: {vars: @1, in: @2}}", mongo_document(bound), mongo_first_value(in));
}

/*
 * mongo_result
 *		Returns what mongo_expand_template() builds as a value in normal form, of a type without a
 *		typmod.
 */
MongoValue
mongo_result(const char *text, const MongoValue *arguments, int narguments, Oid type,
			 bool nullable)
{
	return (MongoValue)
	{
		mongo_expand_template(text, arguments, narguments), type, -1,
			.nullable = nullable
	};
}

/*
 * mongo_guard_template
 *		Returns a template that is null if an argument that can be null is null, palloc'd;
 *		'template' itself if none can be.
 */
const char *
mongo_guard_template(const char *text, const MongoValue *arguments, int narguments)
{
	StringInfoData guards;
	int			nguards = 0;

	initStringInfo(&guards);
	for (int i = 0; i < narguments; i++)
	{
		if (arguments[i].nullable)
			appendStringInfo(&guards, "%s{$gt: [@%d, null]}", nguards++ > 0 ? ", " : "", i + 1);
	}
	return nguards == 0 ? text :
		psprintf(nguards == 1 ? "{$cond: [%s, %s, null]}" : "{$cond: [{$and: [%s]}, %s, null]}",
				 guards.data, text);
}

/*
 * mongo_variable_name
 *		Returns the name of a variable of "let", palloc'd: "p0" and so on.
 */
const char *
mongo_variable_name(int number)
{
	return psprintf("p%d", number);
}
