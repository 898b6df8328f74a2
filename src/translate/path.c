/*-------------------------------------------------------------------------
 *
 * path.c
 *		Paths to fields: what find's language makes of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "path.h"

/* MongoDB stores documents of 100 levels, see its "Limits and Thresholds". */
#define MAX_COMPONENTS	100

bool
mongo_path_is_addressable(const char *path)
{
	const char *component = path;

	for (int i = 0; i < MAX_COMPONENTS; i++)
	{
		if (*component == '\0' || *component == '.' || *component == '$')
			return false;
		component = strchr(component, '.');
		if (component == NULL)
			return true;
		component++;
	}
	return false;
}

bool
mongo_path_has_index(const char *path)
{
	const char *component = path;

	while (component != NULL)
	{
		size_t		digits = strspn(component, "0123456789");

		if (digits > 0 && (component[digits] == '.' || component[digits] == '\0'))
			return true;
		component = strchr(component, '.');
		if (component != NULL)
			component++;
	}
	return false;
}

/* append_no_array: neither the field nor an element of it is one. */
static void
append_no_array(BsonArray *conditions, const char *path, size_t length)
{
	bson_array_append_template(conditions, "{@1: {$not: {$type: 'array'}}}",
							   bson_utf8_sized(path, length));
}

void
mongo_append_no_parent_arrays(BsonArray *conditions, const char *path)
{
	for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
		append_no_array(conditions, path, dot - path);
}

void
mongo_append_no_arrays(BsonArray *conditions, const char *path)
{
	mongo_append_no_parent_arrays(conditions, path);
	append_no_array(conditions, path, strlen(path));
}

/*
 * mongo_append_within_arrays
 *
 * Unlike for $type, MongoDB has bounds of an index for this, and few keys are within them.
 */
void
mongo_append_within_arrays(BsonArray *branches, const char *path, bson_value_t least)
{
	bson_array_append_template(branches, "{@1: {$elemMatch: {$not: {$gte: @2}, $ne: null}}}",
							   bson_utf8(path), least);
}
