/*-------------------------------------------------------------------------
 *
 * option_readers.c
 *		The options in force, as the structs of options.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "option_readers.h"

#include <float.h>

#include "commands/defrem.h"
#include "encoding.h"
#include "option_table.h"
#include "uri_text.h"
#include "utils/lsyscache.h"

/* documents a getMore asks for first, where fetch_size is not given */
#define FIRST_FETCH_SIZE	10000

/* read_defaults: what the rows of the table say that holds when nothing is given. */
static void
read_defaults(void *result, MongoOptionTarget target)
{
	for (int i = 0; i < mongo_option_count; i++)
	{
		const MongoOption *option = &mongo_option_table[i];
		MongoOption unbounded = *option;

		if (option->target != target || option->initial == NULL)
			continue;

		/* a default may say "not given" by a value nobody else may give */
		unbounded.min = -DBL_MAX;
		option->parse(&unbounded, option->initial, (char *) result + option->offset);
	}
}

/*
 * What holds when nothing is given, parsed once in a session: each transaction
 * that writes asks for a connection's options.  Strings are those of the table.
 */
static MongoConnectionOptions connection_defaults;
static MongoTableOptions table_defaults;

static void
learn_defaults(void)
{
	static bool learned = false;

	if (learned)
		return;
	read_defaults(&connection_defaults, TARGET_CONNECTION);
	read_defaults(&table_defaults, TARGET_TABLE);
	learned = true;
}

/* read_options: those of one object that belong to the struct; others are passed over. */
static void
read_options(void *result, MongoOptionTarget target, int object, List *definitions)
{
	ListCell   *cell;

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);
		const MongoOption *option = mongo_find_option(definition->defname, object);

		if (option != NULL && option->target == target)
			option->parse(option, defGetString(definition),
						  (char *) result + option->offset);
	}
}

MongoConnectionOptions *
mongo_connection_options(ForeignServer *server, UserMapping *user)
{
	MongoConnectionOptions *result = palloc(sizeof(MongoConnectionOptions));

	learn_defaults();
	*result = connection_defaults;
	result->server_name = server->servername;
	read_options(result, TARGET_CONNECTION, ON_SERVER, server->options);
	read_options(result, TARGET_CONNECTION, ON_MAPPING, user->options);

	return result;
}

/*
 * mongo_read_concern
 *
 * Planning asks for it, so the other options are not read.
 */
const char *
mongo_read_concern(ForeignServer *server)
{
	ListCell   *cell;

	foreach(cell, server->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);
		const mongoc_uri_t *uri;
		bson_error_t error;

		if (strcmp(option->defname, "read_concern") == 0)
			return defGetString(option);
		if (strcmp(option->defname, "uri") != 0)
			continue;
		uri = mongo_uri_parse(defGetString(option), &error);
		if (uri != NULL)
			return mongoc_read_concern_get_level(mongoc_uri_get_read_concern(uri));
	}
	return NULL;
}

MongoTableOptions *
mongo_read_table_options(Oid foreigntableid)
{
	MongoTableOptions *result = palloc(sizeof(MongoTableOptions));
	ForeignTable *table = GetForeignTable(foreigntableid);
	ForeignServer *server = GetForeignServer(table->serverid);

	learn_defaults();
	*result = table_defaults;
	read_options(result, TARGET_TABLE, ON_SERVER, server->options);
	read_options(result, TARGET_TABLE, ON_TABLE, table->options);
	if (result->collection == NULL)
		result->collection = get_rel_name(foreigntableid);
	result->batches_grow = result->fetch_size == 0;
	if (result->batches_grow)
		result->fetch_size = FIRST_FETCH_SIZE;

	return result;
}

MongoColumnOptions *
mongo_read_column_options(Oid foreigntableid, AttrNumber attnum)
{
	MongoColumnOptions *result = palloc0(sizeof(MongoColumnOptions));

	read_options(result, TARGET_COLUMN, ON_COLUMN,
				 GetForeignColumnOptions(foreigntableid, attnum));
	if (result->path == NULL)
		result->path = get_attname(foreigntableid, attnum, false);
	result->path = mongo_to_utf8(result->path);

	return result;
}
