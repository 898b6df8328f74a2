/*-------------------------------------------------------------------------
 *
 * nearest.c
 *		Finds what was probably meant by a name that does not exist.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common.h"

#include "miscadmin.h"
#include "utils/formatting.h"
#include "utils/varlena.h"

/* Longer names are not compared: the effort grows with the square. */
#define LONGEST_NAME	100

/*
 * mongo_nearest_name
 *		Returns the name (char *) that differs in its cases only, or else in at most a third of its
 *		characters; NULL if there is none.
 */
const char *
mongo_nearest_name(const List *names, const char *name)
{
	int			length = strlen(name);
	int			least = length / 3 + 1;
	const char *result = NULL;
	char	   *lower = asc_tolower(name, length);

	if (length > LONGEST_NAME)
		return NULL;
	foreach_ptr(const char, each, names)
	{
		int			each_length = strlen(each);
		char	   *each_lower;
		int			distance;

		CHECK_FOR_INTERRUPTS();
		if (pg_strcasecmp(each, name) == 0)
			return each;
		if (each_length > LONGEST_NAME)
			continue;
		each_lower = asc_tolower(each, each_length);
		distance = varstr_levenshtein_less_equal(lower, length, each_lower, each_length, 1, 1, 1,
												 least, true);
		pfree(each_lower);
		if (distance < least)
		{
			least = distance;
			result = each;
		}
	}
	return result;
}
