/*-------------------------------------------------------------------------
 *
 * query_log.c
 *		The setting mongo_fdw.log_remote_query.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "query_log.h"

#include "json_read.h"
#include "options.h"
#include "privileges.h"
#include "settings.h"

void
mongo_log_command(const char *database, const bson_t *command)
{
	if (mongo_log_remote_query)
		ereport(mongo_query_log_level(),
				(errmsg("remote query: %s: %s", database, mongo_json_show_document(command)),
				 errhidestmt(true)));
}
