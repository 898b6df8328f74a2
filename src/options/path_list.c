/*-------------------------------------------------------------------------
 *
 * path_list.c
 *		Options that are lists.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "path_list.h"

List *
mongo_split_list(const char *value)
{
	List	   *parts = NIL;

	while (value != NULL)
	{
		const char *comma = strchr(value, ',');
		const char *end = comma != NULL ? comma : value + strlen(value);

		while (value < end && isspace((unsigned char) *value))
			value++;
		while (end > value && isspace((unsigned char) end[-1]))
			end--;
		parts = lappend(parts, pnstrdup(value, end - value));
		value = comma != NULL ? comma + 1 : NULL;
	}
	return parts;
}

bool
mongo_path_is_under(const char *path, const char *parent)
{
	size_t		length = strlen(parent);

	return strncmp(path, parent, length) == 0 &&
		(path[length] == '\0' || path[length] == '.');
}
