/*-------------------------------------------------------------------------
 *
 * count_command.c
 *		The command count, and the pipeline for where it is refused.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "count_command.h"

#include "bson_memory.h"

bool
mongo_is_count(const bson_t *command)
{
	bson_iter_t iter;

	return bson_iter_init(&iter, command) && bson_iter_next(&iter) &&
		strcmp(bson_iter_key(&iter), "count") == 0;
}

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
mongo_count_is_inexact(const bson_t *command)
{
	bson_iter_t iter;

	return bson_iter_init_find(&iter, command, "query") && is_no_condition(&iter);
}

bool
mongo_reads_snapshot(const bson_t *read_concern)
{
	bson_iter_t iter;
	bson_iter_t level;

	return read_concern != NULL &&
		bson_iter_init(&iter, read_concern) &&
		bson_iter_find_descendant(&iter, "readConcern.level", &level) &&
		BSON_ITER_HOLDS_UTF8(&level) &&
		strcmp(bson_iter_utf8(&level, NULL), "snapshot") == 0;
}

bson_t *
mongo_count_as_pipeline(MemoryContext context, const bson_t *command)
{
	bson_t	   *result = bson_create_in(context);
	bson_t	   *stages = bson_create_in(context);
	bson_t		stage;
	bson_t		cursor;
	bson_iter_t field;
	bool		has_match = false;

	bson_iter_init(&field, command);
	while (bson_iter_next(&field))
	{
		const char *key = bson_iter_key(&field);

		if (strcmp(key, "count") == 0)
			bson_append_iter(result, "aggregate", -1, &field);
		else if (strcmp(key, "query") == 0)
		{
			BSON_APPEND_DOCUMENT_BEGIN(stages, "0", &stage);
			bson_append_iter(&stage, "$match", -1, &field);
			bson_append_document_end(stages, &stage);
			has_match = true;
		}
		else
			bson_append_iter(result, NULL, 0, &field);
	}
	BSON_APPEND_DOCUMENT_BEGIN(stages, has_match ? "1" : "0", &stage);
	BSON_APPEND_UTF8(&stage, "$count", "n");
	bson_append_document_end(stages, &stage);

	BSON_APPEND_ARRAY(result, "pipeline", stages);
	BSON_APPEND_DOCUMENT_BEGIN(result, "cursor", &cursor);
	bson_append_document_end(result, &cursor);
	return result;
}
