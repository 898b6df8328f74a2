/*-------------------------------------------------------------------------
 *
 * change_stream.c
 *		Change streams: how they start, and what they look up.
 *
 * A stream starts where a condition says, "__token > value", "__time >= value" or either for
 * __cluster_time, whose value is a parameter of its first stage.  remote/event_stream.c reads the
 * stream for src/sync, and remote/cursor.c for scans.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "options.h"
#include "convert.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "utils/lsyscache.h"

/* The paths of predicates that are a change stream's start: a text of __token or __cluster_time. */
#define MONGO_START_TOKEN	"$token"
#define MONGO_START_AT		"$at"
#define MONGO_START_AFTER	"$after"

/*
 * mongo_starts_stream
 *		Tells whether an operator of this strategy gives its value to this parameter of a stream's
 *		start.
 */
bool
mongo_starts_stream(const char *parameter, int strategy)
{
	return (strategy == BTGreaterStrategyNumber && strcmp(parameter, MONGO_STREAM_TIME) != 0) ||
		(strategy == BTGreaterEqualStrategyNumber && strcmp(parameter, MONGO_STREAM_TOKEN) != 0);
}

/* Tells whether the query reads a column of this field, or of a field inside it. */
static bool
reads_under(MongoColumns *columns, const Bitmapset *read, const char *field)
{
	if (bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, read))
		return true;
	for (AttrNumber attnum = 1; attnum <= columns->natts; attnum++)
	{
		const char *path = !bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, read) ? "" :
			mongo_column_path(columns, attnum);

		if (path == NULL || mongo_path_is_under(path, field))
			return true;
	}
	return false;
}

/*
 * mongo_append_change_stream
 *		Appends $changeStream, which looks up only the columns of 'read', as pull_varattnos() counts
 *		them, and starts as the parameter 'start' specifies, or at the present if that is NULL.
 */
void
mongo_append_change_stream(BsonArray *stages, const MongoTableOptions *options, MongoColumns *columns,
						   const Bitmapset *read, const char *start)
{
	bson_t	   *stream = mongo_bson_create();

	if (reads_under(columns, read, MONGO_STREAM_DOCUMENT))
		mongo_append(stream, "fullDocument", mongo_utf8(options->full_document));
	if (reads_under(columns, read, "fullDocumentBeforeChange"))
		mongo_append(stream, "fullDocumentBeforeChange", mongo_utf8("whenAvailable"));
	if (strcmp(options->change_stream, "server") == 0)
		mongo_append(stream, "allChangesForCluster", mongo_bool(true));

	/*
	 * unlike resumeAfter, startAfter goes past what invalidated the stream
	 */
	if (start != NULL)
		mongo_append_template(stream, strcmp(start, MONGO_STREAM_TOKEN) == 0 ?
							  "{startAfter: {" MONGO_PARAM_KEY ": @1}}" :
							  "{startAtOperationTime: {" MONGO_PARAM_KEY ": @1}}",
							  mongo_utf8(start));
	mongo_array_append_template(stages, "{$changeStream: @1}", mongo_document(stream));
	/* MongoDB 5.0 has no $toDate of a timestamp */
	if (reads_under(columns, read, "clusterTime"))
		mongo_array_append_template(stages, "{$set: {clusterTime: {$dateTrunc: {date: '$clusterTime', unit: 'second'}}}}");
}

/*
 * mongo_set_start
 *		Completes the field of a predicate that is the stream's start: the value of this parameter,
 *		'after' which, or from which on, changes are read.
 */
void
mongo_set_start(MongoField *field, const char *parameter, bool after)
{
	/* changes are not before a time with a fraction of a millisecond */
	if (field->type == TIMESTAMPTZOID)
		field->typmod = MONGO_TYPMOD_ROUND_UP;
	if (strcmp(parameter, MONGO_STREAM_TOKEN) == 0)
		field->path = MONGO_START_TOKEN;
	else if (strcmp(parameter, MONGO_STREAM_CLUSTER_TIME) == 0)
		field->path = after ? MONGO_START_AFTER : MONGO_START_AT;
}

/*
 * mongo_append_start
 *		Appends the resume token, or the time, of a change stream's start, whose field is that of
 *		mongo_set_start().  Raises 22007 for a malformed time.
 */
void
mongo_append_start(bson_t *values, const char *name, const MongoField *field, Datum value)
{
	Oid			function;
	bool		is_varlena;
	char	   *text;
	uint64		time;

	getTypeOutputInfo(field->type, &function, &is_varlena);
	text = OidOutputFunctionCall(function, value);
	if (strcmp(field->path, MONGO_START_TOKEN) == 0)
	{
		mongo_append_token(values, name, mongo_to_utf8(text));
		return;
	}
	/* PostgreSQL compares times as texts, so only those of full length sort */
	time = mongo_parse_cluster_time(text);
	if (time == 0 || strcmp(mongo_format_cluster_time(time), text) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DATETIME_FORMAT),
				 errmsg("invalid cluster time: \"%s\"", text),
				 errhint("A time is like \"1764381605:0000000003\", with ten digits on each side.")));
	time += strcmp(field->path, MONGO_START_AFTER) == 0;
	mongo_append(values, name, mongo_timestamp(time));
}

/*
 * mongo_resume_through_matches
 *		Returns a bound command of a change stream in whose filters also the event passes that the
 *		stream starts after; 'command' itself if it starts otherwise.  MongoDB takes the position
 *		for lost if it does not get that far.
 */
bson_t *
mongo_resume_through_matches(const bson_t *command)
{
	bson_t	   *result = mongo_bson_create();
	bson_iter_t field;
	bson_iter_t stage;
	bson_iter_t name;
	bson_iter_t data;
	BsonArray	stages = mongo_array_create();

	if (!bson_iter_init(&field, command) ||
		!bson_iter_find_descendant(&field, "pipeline.0.$changeStream.startAfter._data", &data) ||
		!bson_iter_init_find(&field, command, "pipeline") || !bson_iter_recurse(&field, &stage))
		return unconstify(bson_t *, command);
	while (bson_iter_next(&stage))
	{
		if (bson_iter_recurse(&stage, &name) && bson_iter_find(&name, "$match"))
			mongo_array_append_template(&stages, "{$match: {$or: [{@1: @2}, @3]}}", mongo_utf8("_id._data"),
										*bson_iter_value(&data), *bson_iter_value(&name));
		else
			mongo_array_append(&stages, *bson_iter_value(&stage));
	}
	bson_iter_init(&field, command);
	while (bson_iter_next(&field))
	{
		if (strcmp(bson_iter_key(&field), "pipeline") == 0)
			mongo_append(result, "pipeline", mongo_array(stages.bson));
		else
			mongo_append_iter(result, NULL, &field);
	}
	return result;
}
