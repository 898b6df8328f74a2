/*-------------------------------------------------------------------------
 *
 * expression_template.c
 *		Aggregation expressions from templates.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "expression.h"

/* Variables of $let, by the number of the argument. */
static const struct
{
	const char *name;
	const char *reference;
}			variables[MONGO_MAX_ARGUMENTS] =
{
	{"a", "$$a"}, {"b", "$$b"}, {"c", "$$c"}, {"d", "$$d"},
	{"e", "$$e"}, {"f", "$$f"}, {"g", "$$g"}, {"h", "$$h"},
};

void
mongo_append_expression(bson_t *document, const char *key, const bson_t *expression)
{
	bson_value_t value = bson_first(expression);

	BSON_APPEND_VALUE(document, key, &value);
}

bson_t *
mongo_expression_of_values(const char *template, const bson_value_t *values, int nvalues)
{
	bson_t	   *result = bson_create_in(CurrentMemoryContext);

	bson_append_member_values(result, "", template, values, nvalues);
	return result;
}

MongoValue
mongo_atomic(bson_value_t value)
{
	return (MongoValue)
	{
		.expression = mongo_expression("@1", value), .typmod = -1, .atomic = true
	};
}

/* count_uses: how often does each argument stand in the template? */
static void
count_uses(const char *template, int *uses, int narguments)
{
	for (const char *c = strchr(template, '@'); c != NULL; c = strchr(c + 1, '@'))
	{
		int			argument = c[1] - '1';

		if (argument >= 0 && argument < narguments)
			uses[argument]++;
	}
}

bson_t *
mongo_expand_template(const char *template, const MongoValue *arguments, int narguments)
{
	int			uses[MONGO_MAX_ARGUMENTS] = {0};
	bson_value_t values[MONGO_MAX_ARGUMENTS] = {0};
	bson_t	   *bound = NULL;
	bson_t	   *in;

	Assert(narguments <= MONGO_MAX_ARGUMENTS);
	count_uses(template, uses, narguments);
	for (int i = 0; i < narguments; i++)
	{
		if (uses[i] == 0)
			continue;
		values[i] = bson_first(arguments[i].expression);
		if (uses[i] == 1 || arguments[i].atomic)
			continue;
		if (bound == NULL)
			bound = bson_create_in(CurrentMemoryContext);
		BSON_APPEND_VALUE(bound, variables[i].name, &values[i]);
		values[i] = bson_utf8(variables[i].reference);
	}
	in = mongo_expression_of_values(template, values, narguments);
	if (bound == NULL)
		return in;
	return mongo_expression("{$let: {vars: @1, in: @2}}", bson_document(bound), bson_first(in));
}
