/*-------------------------------------------------------------------------
 *
 * kept_json.c
 *		A user's own JSON that becomes a part of a command.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "kept_json.h"

#include "encode.h"

#include "catalog/pg_type_d.h"
#include "utils/builtins.h"
#include "utils/guc.h"

/* Whatever form a date has, these say what it is. */
static const struct
{
	const char *name;
	const char *value;
}			settings[] =
{
	{"TimeZone", "UTC"},
	{"DateStyle", "ISO, YMD"},
};

void
mongo_append_kept_json(bson_t *document, const char *key, Datum json)
{
	const char *string = TextDatumGetCString(json);
	int			level = 0;

	/* a key may be written with escapes */
	if (strstr(string, "$date") != NULL || strstr(string, "\\u") != NULL)
	{
		level = NewGUCNestLevel();
		for (size_t i = 0; i < lengthof(settings); i++)
			(void) set_config_option(settings[i].name, settings[i].value, PGC_USERSET,
									 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	}
	mongo_append_datum(document, key, -1, json, false, JSONOID, -1);
	if (level > 0)
		AtEOXact_GUC(true, level);
}
