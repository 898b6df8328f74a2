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
#include "expression_rows.h"

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
	bson_value_t values[MONGO_MAX_ARGUMENTS];
	bson_t	   *bound = NULL;
	bson_t	   *result = bson_create_in(CurrentMemoryContext);
	bson_t		outer;
	bson_t		let;

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
	if (bound == NULL)
	{
		bson_append_member_values(result, "", template, values, narguments);
		return result;
	}

	BSON_APPEND_DOCUMENT_BEGIN(result, "", &outer);
	BSON_APPEND_DOCUMENT_BEGIN(&outer, "$let", &let);
	BSON_APPEND_DOCUMENT(&let, "vars", bound);
	bson_append_member_values(&let, "in", template, values, narguments);
	bson_append_document_end(&outer, &let);
	bson_append_document_end(result, &outer);
	return result;
}
