/*-------------------------------------------------------------------------
 *
 * trace.c
 *		Shows commands: by comments in them, and in PostgreSQL's log.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "convert.h"
#include "commands/dbcommands.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

/* ---------------- escapes in the options comment and appname -------------- */

/* Appends an escape's value, with each % doubled so that it is no escape. */
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

/*
 * mongo_trace_prepare
 *		Returns 'text' in UTF-8, palloc'd, with those escapes expanded that do not change within a
 *		session.  The escapes are described in remote_internal.h.
 */
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

/*
 * mongo_trace_fill
 *		Expands the other escapes (%a, %Q, %%) into 'buffer', and cuts the text between two
 *		characters if it is too long.  Returns its length, without the NUL.  Never raises.
 */
size_t
mongo_trace_fill(const char *prepared, char *buffer, size_t size)
{
	size_t		used = 0;
	char		number[24];

	for (const char *c = prepared; *c != '\0' && used < size - 1; c++)
	{
		const char *text = c;
		size_t		length = 1;

		if (*c == '%' && *++c != '%')
		{
			/* signed, as the statistics views show it */
			snprintf(number, sizeof(number), INT64_FORMAT, (int64) pgstat_get_my_query_id());
			text = *c == 'Q' ? number : application_name != NULL ? application_name : "";
			length = strlen(text);
		}
		length = Min(length, size - 1 - used);
		memcpy(buffer + used, text, length);
		used += length;
	}
	/* do not cut within a character */
	used = pg_encoding_mbcliplen(PG_UTF8, buffer, used, used);
	buffer[used] = '\0';
	return used;
}

/*
 * mongo_trace_append
 *		Appends the element "comment", unless 'prepared' is NULL.
 */
void
mongo_trace_append(const char *prepared, bson_t *document)
{
	char		comment[MONGO_COMMENT_SIZE];

	if (prepared == NULL)
		return;
	mongo_append(document, "comment", mongo_utf8_sized(comment, (int) mongo_trace_fill(prepared, comment, sizeof(comment))));
}

/* Returns the level at which commands are logged, so that only superusers see their values. */
static int
log_level(void)
{
	return superuser() ? LOG : LOG_SERVER_ONLY;
}

/* ------------------- The setting mongo_fdw.log_remote_query ----------------- */

/*
 * mongo_log_command
 *		Logs a command before it is sent, if mongo_fdw.log_remote_query is on.  'at' is the
 *		cluster time that it reads at; 0: none is known.
 */
void
mongo_log_command(const char *database, const bson_t *command, uint64 at)
{
	if (mongo_log_remote_query && at != 0)
	{
		bson_t	   *copy = mongo_bson_copy_in(CurrentMemoryContext, command);

		mongo_append_time(copy, "atClusterTime", at);
		command = copy;
	}
	if (mongo_log_remote_query)
		ereport(log_level(),
				(errmsg("remote query: %s: %s", database, mongo_json_show_document(command)),
				 errhidestmt(true)));
}

/*
 * mongo_log_write
 *		Logs what a batch writes, without the documents, if mongo_fdw.log_remote_query is on.
 */
void
mongo_log_write(const MongoWriteBatch *batch)
{
	if (mongo_log_remote_query)
		ereport(log_level(),
				(errmsg("remote query: %s.%s: %s, %d operations, %zu bytes",
						batch->database, batch->collection,
						batch->kind == MONGO_INSERT ? "insert" :
						batch->kind == MONGO_DELETE_ONE ? "delete" : "update",
						batch->count, batch->length),
				 errhidestmt(true)));
}

/* ----------------- The setting mongo_fdw.slow_command_ms ------------------ */

/*
 * Log only so many bytes of a command, and only the name of one over LONGEST_COMMAND bytes, or with
 * a password.
 */
#define LONGEST_SHOWN		8192
#define LONGEST_COMMAND		1000000

/* Tells whether a command has a password, as createUser and setParameter may. */
static bool
has_secret(const bson_t *command)
{
	bson_iter_t member;

	if (!bson_iter_init(&member, command))
		return true;
	while (bson_iter_next(&member))
	{
		const char *key = bson_iter_key(&member);

		if (strcmp(key, "pwd") == 0 || strstr(key, "assword") != NULL)
			return true;
	}
	return false;
}

/*
 * mongo_log_slow_command
 *		After the reply to a request, logs the command if it took at least
 *		mongo_fdw.slow_command_ms.
 */
void
mongo_log_slow_command(MongoConnection *connection)
{
	const uint8 *document = connection->request.data + BODY_OFFSET;
	uint64		waited = connection->transport.traffic.counters[MONGO_COUNT_WAIT_US] -
		connection->waited_before;
	uint32		length;
	bson_t		view;
	char	   *text;

	/*
	 * Log a request once, and not if its buffer was too large to keep, or has
	 * a later request.
	 */
	if (mongo_slow_command_ms < 0 || connection->has_queue)
		return;
	connection->waited_before += waited;
	if (waited / 1000.0 < mongo_slow_command_ms || connection->request.data == NULL)
		return;
	length = get_int32(document);
	if (length > LONGEST_COMMAND || !mongo_bson_view(&view, document, length) || has_secret(&view))
		text = psprintf("%s (%u bytes)", (const char *) document + 5, length);
	else
	{
		text = mongo_json_show_document(&view);
		text[pg_mbcliplen(text, strlen(text), LONGEST_SHOWN)] = '\0';
	}
	ereport(log_level(),
			(errmsg("slow command: %.3f ms on server \"%s\": %s", waited / 1000.0,
					connection->server_name, text)));
	pfree(text);
}
