/*-------------------------------------------------------------------------
 *
 * read_only.c
 *		What may run in a read-only transaction and on a hot standby: commands
 *		and pipelines that are known to only read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "read_only.h"

#include "bson_memory.h"
#include "command_name.h"
#include "miscadmin.h"

/*
 * Stages that only read.  $out and $merge write, and what a later MongoDB brings
 * is not known to only read before it is listed.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation-pipeline/
 */
static const char *const reading_stages[] = {
	"$addFields", "$bucket", "$bucketAuto", "$changeStream",
	"$changeStreamSplitLargeEvent", "$collStats", "$count", "$currentOp",
	"$densify", "$documents", "$facet", "$fill", "$geoNear", "$graphLookup",
	"$group", "$indexStats", "$limit", "$listLocalSessions",
	"$listSampledQueries", "$listSearchIndexes", "$listSessions", "$lookup",
	"$match", "$planCacheStats", "$project", "$querySettings", "$queryStats",
	"$rankFusion", "$redact", "$replaceRoot", "$replaceWith", "$sample",
	"$scoreFusion", "$search", "$searchMeta", "$set", "$setWindowFields",
	"$shardedDataDistribution", "$skip", "$sort", "$sortByCount", "$unionWith",
	"$unset", "$unwind", "$vectorSearch"
};

static bool
is_reading_stage(const char *name)
{
	for (size_t i = 0; i < lengthof(reading_stages); i++)
	{
		if (strcmp(reading_stages[i], name) == 0)
			return true;
	}
	return false;
}

const char *
mongo_stage_that_may_write(const bson_iter_t *pipeline)
{
	static const char malformed[] = "a pipeline that is not an array of stages";
	bson_iter_t stages;
	bson_iter_t stage;

	if (!BSON_ITER_HOLDS_ARRAY(pipeline) || !bson_iter_recurse(pipeline, &stages))
		return malformed;
	while (bson_iter_next(&stages))
	{
		if (!BSON_ITER_HOLDS_DOCUMENT(&stages) || !bson_iter_recurse(&stages, &stage))
			return malformed;
		while (bson_iter_next(&stage))
		{
			if (!is_reading_stage(bson_iter_key(&stage)))
				return bson_iter_key(&stage);
		}
	}
	return NULL;
}

/*
 * every_member
 *		Is there a member of this name, and does each of them pass the test?
 */
static bool
every_member(const bson_t *command, const char *name,
			 bool (*test) (const bson_iter_t *member))
{
	bson_iter_t iter;
	bool		found = false;

	if (!bson_iter_init(&iter, command))
		return false;
	while (bson_iter_next(&iter))
	{
		if (strcmp(bson_iter_key(&iter), name) != 0)
			continue;
		if (!test(&iter))
			return false;
		found = true;
	}
	return found;
}

static bool
pipeline_reads(const bson_iter_t *pipeline)
{
	return mongo_stage_that_may_write(pipeline) == NULL;
}

static bool
aggregate_reads(const bson_t *command)
{
	return every_member(command, "pipeline", pipeline_reads);
}

/* {inline: 1} and nothing else */
static bool
is_inline(const bson_iter_t *out)
{
	bson_iter_t members;

	return BSON_ITER_HOLDS_DOCUMENT(out) && bson_iter_recurse(out, &members) &&
		bson_iter_next(&members) &&
		strcmp(bson_iter_key(&members), "inline") == 0 &&
		!bson_iter_next(&members);
}

static bool
map_reduce_reads(const bson_t *command)
{
	return every_member(command, "out", is_inline);
}

static bool
explained_command(const bson_iter_t *explained, bson_t *command)
{
	const uint8_t *data;
	uint32_t	length;

	if (!BSON_ITER_HOLDS_DOCUMENT(explained))
		return false;
	bson_iter_document(explained, &length, &data);
	return bson_view(command, data, length);
}

static bool
explained_reads(const bson_iter_t *explained)
{
	bson_t		command;

	return explained_command(explained, &command) &&
		mongo_command_only_reads(&command);
}

static bool
explained_is_known(const bson_iter_t *explained)
{
	bson_t		command;
	bson_iter_t iter;

	return explained_command(explained, &command) &&
		bson_iter_init(&iter, &command) && bson_iter_next(&iter) &&
		mongo_command_effect(bson_iter_key(&iter)) != MONGO_COMMAND_UNKNOWN;
}

static bool
is_query_planner(const bson_iter_t *verbosity)
{
	return BSON_ITER_HOLDS_UTF8(verbosity) &&
		strcmp(bson_iter_utf8(verbosity, NULL), "queryPlanner") == 0;
}

/*
 * As EXPLAIN without ANALYZE may plan a write in a read-only transaction, so may
 * "queryPlanner".  The other verbosities, and so the default, run the command.
 */
static bool
explain_reads(const bson_t *command)
{
	if (every_member(command, "verbosity", is_query_planner))
		return every_member(command, "explain", explained_is_known);
	return every_member(command, "explain", explained_reads);
}

/* {profile: -1} asks; with a member more it sets. */
static bool
profile_reads(const bson_t *command)
{
	bson_iter_t iter;

	return bson_count_keys(command) == 1 && bson_iter_init(&iter, command) &&
		bson_iter_next(&iter) && BSON_ITER_HOLDS_INT(&iter) &&
		bson_iter_as_int64(&iter) == -1;
}

/* The commands of MONGO_COMMAND_DEPENDS. */
static const struct
{
	const char *name;
	bool		(*reads) (const bson_t *command);
}			dependent_commands[] =
{
	{"aggregate", aggregate_reads},
	{"explain", explain_reads},
	{"mapReduce", map_reduce_reads},
	{"mapreduce", map_reduce_reads},
	{"profile", profile_reads},
};

bool
mongo_command_only_reads(const bson_t *command)
{
	bson_iter_t iter;
	const char *name;

	check_stack_depth();

	if (!bson_iter_init(&iter, command) || !bson_iter_next(&iter))
		return false;
	name = bson_iter_key(&iter);
	if (mongo_command_effect(name) == MONGO_COMMAND_READS)
		return true;
	for (size_t i = 0; i < lengthof(dependent_commands); i++)
	{
		if (strcmp(dependent_commands[i].name, name) == 0)
			return dependent_commands[i].reads(command);
	}
	return false;
}

void
mongo_prevent_write(const char *what)
{
	PreventCommandIfReadOnly(what);
	PreventCommandIfParallelMode(what);
}
