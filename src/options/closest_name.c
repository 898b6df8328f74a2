/*-------------------------------------------------------------------------
 *
 * closest_name.c
 *		What a misspelt name was probably meant to be.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "closest_name.h"

#include "utils/varlena.h"

void
mongo_closest_name_begin(MongoClosestName *search, const char *name)
{
	search->closest = NULL;
	search->name = name;
	search->length = (int) strlen(name);
	/* varstr_levenshtein_less_equal() raises for more than 255 characters */
	search->allowed = search->length > NAMEDATALEN ? -1 : Min(4, search->length / 3);
}

void
mongo_closest_name_try(MongoClosestName *search, const char *candidate)
{
	int			distance;

	if (search->allowed < 0)
		return;
	distance = varstr_levenshtein_less_equal(search->name, search->length, candidate,
											 (int) strlen(candidate), 1, 1, 1,
											 search->allowed, true);
	if (distance <= search->allowed)
	{
		search->closest = candidate;
		search->allowed = distance - 1;
	}
}
