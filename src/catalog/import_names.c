/*-------------------------------------------------------------------------
 *
 * import_names.c
 *		SQL names that are not too long and not taken.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "import.h"

#include "mb/pg_wchar.h"

HTAB *
import_names_create(void)
{
	HASHCTL		control = {
		.keysize = NAMEDATALEN,
		.entrysize = NAMEDATALEN,
		.hcxt = CurrentMemoryContext
	};

	return hash_create("mongo_fdw imported names", 64, &control,
					   HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
}

bool
import_name_reserve(HTAB *names, const char *name)
{
	bool		found;

	if (strlen(name) >= NAMEDATALEN)
		return false;
	hash_search(names, name, HASH_ENTER, &found);
	return !found;
}

char *
import_name_choose(HTAB *names, const char *wanted)
{
	int			length = (int) strlen(wanted);

	for (int number = 0;; number++)
	{
		char		suffix[16] = "";
		char	   *name;
		int			kept;

		if (number > 0)
			snprintf(suffix, sizeof(suffix), "_%d", number);
		kept = pg_mbcliplen(wanted, length, NAMEDATALEN - 1 - (int) strlen(suffix));
		name = psprintf("%.*s%s", kept, wanted, suffix);
		if (import_name_reserve(names, name))
			return name;
		pfree(name);
	}
}
