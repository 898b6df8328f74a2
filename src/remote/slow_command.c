/*-------------------------------------------------------------------------
 *
 * slow_command.c
 *		The setting mongo_fdw.slow_command_ms.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "slow_command.h"

#include "bson_memory.h"
#include "frame.h"
#include "json_read.h"
#include "mb/pg_wchar.h"
#include "privileges.h"
#include "settings.h"

/* More of a command is not logged; of one that is longer, a list of values say, only its name. */
#define LONGEST_SHOWN		8192
#define LONGEST_COMMAND		1000000

/* took_long: how many milliseconds; false where it was not long. */
static bool
took_long(const MongoConnection *connection, uint64 waited_before, double *waited_ms)
{
	uint64		waited = connection->transport.traffic.counters[MONGO_COUNT_WAIT_US] - waited_before;

	*waited_ms = waited / 1000.0;
	return *waited_ms >= mongo_slow_command_ms;
}

static void
log_command(const MongoConnection *connection, double waited_ms, const char *command)
{
	ereport(mongo_query_log_level(),
			(errmsg("slow command: %.3f ms on server \"%s\": %s", waited_ms,
					connection->server_name, command)));
}

void
mongo_log_slow_request(MongoConnection *connection)
{
	const uint8 *document = connection->request.data + BODY_OFFSET;
	uint32		length = get_int32(document);
	double		waited_ms;
	bson_t		view;
	char	   *text;

	if (!took_long(connection, connection->waited_before, &waited_ms))
		return;
	if (length > LONGEST_COMMAND || !bson_view(&view, document, length))
		text = psprintf("%s (%u bytes)", (const char *) document + 5, length);
	else
	{
		text = mongo_json_show_document(&view);
		text[pg_mbcliplen(text, strlen(text), LONGEST_SHOWN)] = '\0';
	}
	log_command(connection, waited_ms, text);
	pfree(text);
}

void
mongo_log_slow_driver_command(MongoConnection *connection, uint64 waited_before)
{
	double		waited_ms;

	if (took_long(connection, waited_before, &waited_ms))
		log_command(connection, waited_ms, connection->transport.last_command);
}
