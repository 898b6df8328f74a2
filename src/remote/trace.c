/*-------------------------------------------------------------------------
 *
 * trace.c
 *		Who is asking: escapes in the options comment and appname.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "trace.h"

#include "commands/dbcommands.h"
#include "encoding.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/backend_status.h"
#include "utils/guc.h"

/* append_fixed: the escape's value, in which a % is none. */
static void
append_fixed(StringInfo result, const char *value)
{
	for (const char *c = value != NULL ? mongo_to_utf8(value) : ""; *c != '\0'; c++)
	{
		if (*c == '%')
			appendStringInfoChar(result, '%');
		appendStringInfoChar(result, *c);
	}
}

char *
mongo_trace_prepare(const char *text)
{
	StringInfoData result;

	initStringInfo(&result);
	for (const char *c = mongo_to_utf8(text); *c != '\0'; c++)
	{
		if (*c != '%')
		{
			appendStringInfoChar(&result, *c);
			continue;
		}
		switch (*++c)
		{
			case 'a':
			case 'Q':
			case '%':
				appendStringInfo(&result, "%%%c", *c);
				break;
			case 'c':
				appendStringInfo(&result, "%lx.%x", (long) MyStartTime, MyProcPid);
				break;
			case 'C':
				append_fixed(&result, cluster_name);
				break;
			case 'd':
				append_fixed(&result, get_database_name(MyDatabaseId));
				break;
			case 'p':
				appendStringInfo(&result, "%d", MyProcPid);
				break;
			case 'u':
				append_fixed(&result, GetUserNameFromId(GetAuthenticatedUserId(), true));
				break;
			case '\0':
				return result.data;
			default:
				break;
		}
	}
	return result.data;
}

/* put: as much as there is room for, NUL not included. */
static size_t
put(char *buffer, size_t size, size_t used, const char *text, size_t length)
{
	length = Min(length, size - 1 - used);
	memcpy(buffer + used, text, length);
	return used + length;
}

size_t
mongo_trace_fill(const char *prepared, char *buffer, size_t size)
{
	size_t		used = 0;
	const char *c;
	char		number[24];

	for (c = prepared; *c != '\0' && used < size - 1; c++)
	{
		if (*c != '%')
			buffer[used++] = *c;
		else if (*++c == 'a')
		{
			const char *name = application_name != NULL ? application_name : "";

			used = put(buffer, size, used, name, strlen(name));
		}
		else if (*c == 'Q')
		{
			/* signed, as the views show it */
			int			length = snprintf(number, sizeof(number), INT64_FORMAT,
										  (int64) pgstat_get_my_query_id());

			used = put(buffer, size, used, number, length);
		}
		else
			buffer[used++] = '%';
	}
	/* not within a character */
	if (*c != '\0' && (*c & 0xc0) == 0x80)
	{
		while (used > 0 && (buffer[used - 1] & 0xc0) == 0x80)
			used--;
		used -= used > 0;
	}
	buffer[used] = '\0';
	return used;
}

void
mongo_trace_append(const char *prepared, bson_t *document)
{
	char		comment[MONGO_COMMENT_SIZE];

	if (prepared == NULL)
		return;
	bson_append_utf8(document, "comment", -1, comment,
					 (int) mongo_trace_fill(prepared, comment, sizeof(comment)));
}
