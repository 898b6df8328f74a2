/*-------------------------------------------------------------------------
 *
 * count.c
 *		Where MongoDB takes the command count.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "count.h"

#include "transaction.h"

/*
 * is_no_condition: {}, or what MongoDB simplifies to that.  Recursion is as deep as the
 * translator's own, which is limited.
 */
static bool
is_no_condition(const bson_iter_t *match)
{
	bson_iter_t field;
	bson_iter_t branch;

	if (!BSON_ITER_HOLDS_DOCUMENT(match) || !bson_iter_recurse(match, &field))
		return false;
	while (bson_iter_next(&field))
	{
		bool		is_and = strcmp(bson_iter_key(&field), "$and") == 0;
		bool		none = is_and;

		if (!is_and && strcmp(bson_iter_key(&field), "$or") != 0)
			return false;
		if (!BSON_ITER_HOLDS_ARRAY(&field) || !bson_iter_recurse(&field, &branch))
			return false;
		while (bson_iter_next(&branch))
		{
			if (is_and)
				none = none && is_no_condition(&branch);
			else
				none = none || is_no_condition(&branch);
		}
		if (!none)
			return false;
	}
	return true;
}

bool
mongo_takes_count(UserMapping *user, const bson_t *command)
{
	bson_iter_t query;

	return !(bson_iter_init_find(&query, command, "query") && is_no_condition(&query)) &&
		mongo_session_for_read(user) == NULL;
}
