/*-------------------------------------------------------------------------
 *
 * expression_template.c
 *		Aggregation expressions from templates.
 *
 * Templates are part of this program, so a fault in one is an internal error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "bson_memory.h"
#include "expression_rows.h"

typedef struct Template
{
	const char *text;
	const char *position;
	const MongoValue *arguments;
	int			narguments;
	bool		bound[MONGO_MAX_ARGUMENTS]; /* to a variable of $let */
} Template;

static void append_value(Template *template, bson_t *document, const char *key);

/* The variable of $let for an argument. */
static const char *
variable_name(int argument)
{
	return psprintf("%c", 'a' + argument);
}

static void
report_fault(const Template *template)
{
	elog(ERROR, "bad template at \"%s\": %s", template->position, template->text);
}

static char
next_character(Template *template)
{
	while (*template->position == ' ')
		template->position++;
	return *template->position;
}

static bool
take(Template *template, char c)
{
	if (next_character(template) != c)
		return false;
	template->position++;
	return true;
}

static void
expect(Template *template, char c)
{
	if (!take(template, c))
		report_fault(template);
}

/* read_word: a key, a number or a name of a constant. */
static char *
read_word(Template *template)
{
	const char *start;

	next_character(template);
	start = template->position;
	while (isalnum((unsigned char) *template->position) ||
		   strchr("$-", *template->position) != NULL)
	{
		if (*template->position == '\0')
			break;
		template->position++;
	}
	if (template->position == start)
		report_fault(template);
	return pnstrdup(start, template->position - start);
}

static void
append_object(Template *template, bson_t *document, const char *key)
{
	bson_t		object;

	expect(template, '{');
	BSON_APPEND_DOCUMENT_BEGIN(document, key, &object);
	while (!take(template, '}'))
	{
		char	   *word = read_word(template);

		expect(template, ':');
		append_value(template, &object, word);
		take(template, ',');
	}
	bson_append_document_end(document, &object);
}

static void
append_array(Template *template, bson_t *document, const char *key)
{
	bson_t		array;
	int			index = 0;

	expect(template, '[');
	BSON_APPEND_ARRAY_BEGIN(document, key, &array);
	while (!take(template, ']'))
	{
		append_value(template, &array, psprintf("%d", index++));
		take(template, ',');
	}
	bson_append_array_end(document, &array);
}

static void
append_string(Template *template, bson_t *document, const char *key)
{
	const char *start = ++template->position;

	while (*template->position != '\'' && *template->position != '\0')
		template->position++;
	bson_append_utf8(document, key, -1, start, template->position - start);
	expect(template, '\'');
}

static void
append_argument(Template *template, bson_t *document, const char *key)
{
	int			argument;

	expect(template, '@');
	argument = *template->position++ - '1';
	if (argument < 0 || argument >= template->narguments)
		report_fault(template);
	if (template->bound[argument])
		BSON_APPEND_UTF8(document, key, psprintf("$$%s", variable_name(argument)));
	else
		mongo_append_expression(document, key, template->arguments[argument].expression);
}

/* append_word: an integer or a named constant. */
static void
append_word(Template *template, bson_t *document, const char *key)
{
	char	   *word = read_word(template);
	char	   *end;
	int64		number = strtoi64(word, &end, 10);

	if (*end == '\0' && number >= PG_INT32_MIN && number <= PG_INT32_MAX)
		BSON_APPEND_INT32(document, key, (int32) number);
	else if (*end == '\0')
		BSON_APPEND_INT64(document, key, number);
	else if (strcmp(word, "null") == 0)
		BSON_APPEND_NULL(document, key);
	else if (strcmp(word, "true") == 0)
		BSON_APPEND_BOOL(document, key, true);
	else if (strcmp(word, "false") == 0)
		BSON_APPEND_BOOL(document, key, false);
	else if (strcmp(word, "NaN") == 0)
		BSON_APPEND_DOUBLE(document, key, NAN);
	else if (strcmp(word, "inf") == 0)
		BSON_APPEND_DOUBLE(document, key, INFINITY);
	else if (strcmp(word, "max") == 0)
		BSON_APPEND_MAXKEY(document, key);
	else
		report_fault(template);
}

static void
append_value(Template *template, bson_t *document, const char *key)
{
	switch (next_character(template))
	{
		case '{':
			append_object(template, document, key);
			break;
		case '[':
			append_array(template, document, key);
			break;
		case '\'':
			append_string(template, document, key);
			break;
		case '@':
			append_argument(template, document, key);
			break;
		default:
			append_word(template, document, key);
			break;
	}
}

/* bind_arguments: those that $let is to evaluate; how many? */
static int
bind_arguments(Template *template)
{
	int			uses[MONGO_MAX_ARGUMENTS] = {0};
	int			nbound = 0;

	for (const char *c = strchr(template->text, '@'); c != NULL; c = strchr(c + 1, '@'))
	{
		int			argument = c[1] - '1';

		if (argument >= 0 && argument < template->narguments)
			uses[argument]++;
	}
	for (int i = 0; i < template->narguments; i++)
	{
		template->bound[i] = uses[i] > 1 && !template->arguments[i].atomic;
		nbound += template->bound[i];
	}
	return nbound;
}

bson_t *
mongo_expand_template(const char *text, const MongoValue *arguments, int narguments)
{
	Template	template = {
		.text = text, .position = text, .arguments = arguments, .narguments = narguments
	};
	bson_t	   *result = bson_create_in(CurrentMemoryContext);
	bson_t		outer;
	bson_t		let;
	bson_t		variables;

	Assert(narguments <= MONGO_MAX_ARGUMENTS);
	if (bind_arguments(&template) == 0)
	{
		append_value(&template, result, "");
		return result;
	}

	BSON_APPEND_DOCUMENT_BEGIN(result, "", &outer);
	BSON_APPEND_DOCUMENT_BEGIN(&outer, "$let", &let);
	BSON_APPEND_DOCUMENT_BEGIN(&let, "vars", &variables);
	for (int i = 0; i < narguments; i++)
	{
		if (template.bound[i])
			mongo_append_expression(&variables, variable_name(i), arguments[i].expression);
	}
	bson_append_document_end(&let, &variables);
	append_value(&template, &let, "in");
	bson_append_document_end(&outer, &let);
	bson_append_document_end(result, &outer);
	return result;
}
