/*-------------------------------------------------------------------------
 *
 * functions.c
 *		mongo_fdw_version(), mongo_command() and mongo_aggregate().
 *
 * A role with USAGE on a server may run what the user mapping's MongoDB user may run,
 * which depends on the user's roles in MongoDB.  Arguments become BSON values and are
 * never pasted into text.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "access/xact.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

/* Rows in the first batches of mongo_aggregate(), as in those of scans; see MongoRead. */
#define FIRST_BATCH_SIZE	10000

/* major * 10000 + minor * 100 + patch, as in the older wrapper of that name */
#define MONGO_FDW_VERSION	20100

/* Commands that change the user of a pooled connection, which later statements share. */
static const char *const refused_commands[] = {
	"authenticate", "logout", "saslStart", "saslContinue", NULL
};

/* Members that the transport adds itself, and a member of hello that authenticates. */
static const char *const refused_members[] = {
	"$db", "lsid", "txnNumber", "speculativeAuthenticate"
};

PG_FUNCTION_INFO_V1(mongo_fdw_version);
PG_FUNCTION_INFO_V1(mongo_command);
PG_FUNCTION_INFO_V1(mongo_aggregate);
PG_FUNCTION_INFO_V1(mongo_cluster_time);

/* -------------------- Commands and stages that only read -------------------- */

/* https://www.mongodb.com/docs/manual/reference/command/ */

/*
 * Commands that change nothing, whatever their arguments.  Not listed are: getMore, as it
 * starts an aggregation with $out that was opened with batchSize 0; validate, which
 * corrects counts; commands on sessions, which MongoDB stores; profile and mapReduce,
 * which write with some arguments.
 */
static const char *const reading_commands[] = {
	"_isSelf", "availableQueryOptions", "balancerCollectionStatus", "balancerStatus",
	"buildInfo", "buildinfo", "checkShardingIndex", "collStats", "collstats", "connPoolStats",
	"connectionStatus", "count", "currentOp", "dataSize", "datasize", "dbHash", "dbStats",
	"dbhash", "dbstats", "distinct", "driverOIDTest", "filemd5", "find", "getAuditConfig",
	"getClusterParameter", "getCmdLineOpts", "getDefaultRWConcern", "getDiagnosticData",
	"getLog", "getParameter", "getShardMap", "getShardVersion", "hello", "hostInfo", "isMaster",
	"isdbgrid", "ismaster", "killCursors", "listCollections", "listCommands", "listDatabases",
	"listIndexes", "listSearchIndexes", "listShards", "lockInfo", "netstat", "ping",
	"planCacheListFilters", "replSetGetConfig", "replSetGetStatus", "rolesInfo", "serverStatus",
	"shardConnPoolStats", "shardingState", "splitVector", "top", "usersInfo",
	"validateDBMetadata", "whatsmysni", "whatsmyuri", NULL
};

/*
 * Stages that only read.  $out and $merge write, and stages of later MongoDB versions are
 * assumed to write until they are listed here.
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation-pipeline/
 */
static const char *const reading_stages[] = {
	"$addFields", "$bucket", "$bucketAuto", "$changeStream", "$changeStreamSplitLargeEvent",
	"$collStats", "$count", "$currentOp", "$densify", "$documents", "$facet", "$fill",
	"$geoNear", "$graphLookup", "$group", "$indexStats", "$limit", "$listLocalSessions",
	"$listSampledQueries", "$listSearchIndexes", "$listSessions", "$lookup", "$match",
	"$planCacheStats", "$project", "$querySettings", "$queryStats", "$rankFusion", "$redact",
	"$replaceRoot", "$replaceWith", "$sample", "$scoreFusion", "$search", "$searchMeta", "$set",
	"$setWindowFields", "$shardedDataDistribution", "$skip", "$sort", "$sortByCount",
	"$unionWith", "$unset", "$unwind", "$vectorSearch", NULL
};

/* Tells whether the name is in a list that ends with NULL. */
static bool
is_listed(const char *name, const char *const *list)
{
	for (; *list != NULL; list++)
	{
		if (strcmp(*list, name) == 0)
			return true;
	}
	return false;
}

/* --------------------- Does a command write or read? ----------------------- */

/* Stages that write. */
static const char *const writing_stages[] = {"$out", "$merge", NULL};

/*
 * Return the name of the first stage of a pipeline that is (or is not) listed; NULL if
 * there is none.  A pipeline that is not an array of stages has one that is not.
 *
 * Pipelines nested in stages are not searched: MongoDB allows no writing stage in them.
 */
static const char *
find_stage(const bson_iter_t *pipeline, const char *const *list, bool listed)
{
	static const char malformed[] = "a pipeline that is not an array of stages";
	bson_iter_t stages;
	bson_iter_t stage;

	if (!BSON_ITER_HOLDS_ARRAY(pipeline) || !bson_iter_recurse(pipeline, &stages))
		return listed ? NULL : malformed;
	while (bson_iter_next(&stages))
	{
		if (!BSON_ITER_HOLDS_DOCUMENT(&stages) || !bson_iter_recurse(&stages, &stage))
			return listed ? NULL : malformed;
		while (bson_iter_next(&stage))
		{
			if (is_listed(bson_iter_key(&stage), list) == listed)
				return bson_iter_key(&stage);
		}
	}
	return NULL;
}

/*
 * Does the command have a member of this name, and do all of them pass the test?
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
	return find_stage(pipeline, reading_stages, false) == NULL;
}

static bool command_only_reads(const bson_t *command);

static bool
explained_reads(const bson_iter_t *explained)
{
	bson_t		command;

	return mongo_bson_view_at(&command, explained) && command_only_reads(&command);
}

static bool
is_query_planner(const bson_iter_t *verbosity)
{
	return BSON_ITER_HOLDS_UTF8(verbosity) &&
		strcmp(bson_iter_utf8(verbosity, NULL), "queryPlanner") == 0;
}

/*
 * Is this command, whose first member is its name, known to change nothing?
 *
 * False for unknown commands.  If a member is repeated, each one is checked, because
 * MongoDB may use either.
 */
static bool
command_only_reads(const bson_t *command)
{
	bson_iter_t iter;
	const char *name;

	check_stack_depth();

	if (!bson_iter_init(&iter, command) || !bson_iter_next(&iter))
		return false;
	name = bson_iter_key(&iter);
	if (strcmp(name, "aggregate") == 0)
		return every_member(command, "pipeline", pipeline_reads);

	/*
	 * Like EXPLAIN without ANALYZE, "queryPlanner" may plan a write in a
	 * read-only transaction.  Other verbosities, such as the default, run the
	 * command.
	 */
	if (strcmp(name, "explain") == 0)
		return every_member(command, "verbosity", is_query_planner) ||
			every_member(command, "explain", explained_reads);
	return is_listed(name, reading_commands);
}

/* Raises 25006 or 25000 if writes are not allowed now. */
static void
prevent_write(const char *what)
{
	PreventCommandIfReadOnly(what);
	PreventCommandIfParallelMode(what);
}

/* ------------------------------ arguments ----------------------------------- */

/*
 * mongo_fdw_version
 *		Returns the library's version, for mongo_fdw_version().
 */
Datum
mongo_fdw_version(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_INT32(MONGO_FDW_VERSION);
}

/* Appends a json, or a text of one, under 'key', and points *iter to it. */
static void
append_json_at(bson_t *document, const char *key, Datum value, bson_iter_t *iter)
{
	/* of a text, the input function checks the syntax */
	value = DirectFunctionCall1(json_in, CStringGetDatum(TextDatumGetCString(value)));
	mongo_append_datum(document, key, -1, value, false, JSONOID, -1);
	if (!bson_iter_init_find(iter, document, key))
		elog(ERROR, "value was not appended");
}

/* Creates a decoder that reads a whole document as one jsonb. */
static MongoRowDecoder *
jsonb_decoder(MemoryContext context, const char *database, const char *collection)
{
	MongoColumn whole_document = {
		.index = 0, .name = "result", .path = NULL, .typid = JSONBOID, .typmod = -1
	};

	return mongo_row_decoder_create(context, database, collection,
									list_make1(&whole_document), false);
}

/* ------------------------------ mongo_command ------------------------------ */

static void
refuse_command(const bson_t *command, const char *name)
{
	if (is_listed(name, refused_commands))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("command \"%s\" cannot be run by mongo_command()", name),
				 errdetail("It would change the user of a connection that later statements share."),
				 errhint("Use CREATE or ALTER USER MAPPING.")));
	for (size_t i = 0; i < lengthof(refused_members); i++)
	{
		if (bson_has_field(command, refused_members[i]))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("a command must not hold \"%s\"", refused_members[i]),
					 errdetail("mongo_fdw sends it itself where it is needed.")));
	}
}

static const bson_t *
command_from_datum(Datum value)
{
	bson_t	   *parent = mongo_bson_create();
	bson_iter_t iter;
	bson_t		view;

	append_json_at(parent, "command", value, &iter);
	if (!mongo_bson_view_at(&view, &iter))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a command must be a JSON object")));
	if (bson_empty(&view))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a command must not be empty")));
	return mongo_bson_copy_in(CurrentMemoryContext, &view);
}

/*
 * mongo_command
 *		mongo_command(server name, database text, command json | text): runs a command and returns
 *		MongoDB's reply, as jsonb.
 *
 * The command is not a jsonb because its first member must be its name, and jsonb does not keep
 * the order.
 */
Datum
mongo_command(PG_FUNCTION_ARGS)
{
	UserMapping *user = mongo_caller_mapping(GetForeignServerByName(NameStr(*PG_GETARG_NAME(0)), false));
	const char *shown_database = text_to_cstring(PG_GETARG_TEXT_PP(1));
	const char *database = mongo_to_utf8(shown_database);
	const bson_t *command = command_from_datum(PG_GETARG_DATUM(2));
	const bson_t *reply;
	const char *name;
	const char *context_message;
	bson_iter_t iter;
	Datum		result;
	bool		isnull;
	bool		only_reads;
	MongoErrorSource source;

	if (!bson_iter_init(&iter, command) || !bson_iter_next(&iter))
		elog(ERROR, "command is malformed");
	name = bson_iter_key(&iter);
	refuse_command(command, name);
	only_reads = command_only_reads(command);
	if (!only_reads)
		prevent_write(psprintf("mongo_command() with \"%s\"", mongo_printable(name)));

	mongo_begin_command(user, only_reads ? database : NULL, !only_reads);
	mongo_push_error_source(&source, NIL);
	source.function = "mongo_command()";
	context_message = psprintf("could not run command \"%s\" in database \"%s\"",
							   mongo_printable(name), shown_database);
	reply = only_reads ?
		mongo_run_command(CurrentMemoryContext, user, database, command, context_message) :
		mongo_run_write_command(CurrentMemoryContext, user, database, command,
								context_message);
	mongo_pop_error_source(&source);

	mongo_row_decode(jsonb_decoder(CurrentMemoryContext, shown_database, "$cmd"),
					 bson_get_data(reply), reply->len, &result, &isnull);
	return result;
}

/* ------------------------------ mongo_aggregate ---------------------------- */

/* The state of mongo_aggregate() between two rows. */
typedef struct AggregateState
{
	MongoCursor *cursor;		/* NULL: there are no more rows */
	MongoRowDecoder *decoder;
} AggregateState;

/* Members of the aggregate command that are allowed as options of mongo_aggregate(). */
static const char *const aggregate_options[] = {
	"allowDiskUse", "hint", "comment", "collation", "let", "maxTimeMS", "readConcern", NULL
};

static void
append_options(bson_t *command, Datum options)
{
	bson_t	   *holder = mongo_bson_create();
	bson_iter_t document;
	bson_iter_t option;

	append_json_at(holder, "options", options, &document);
	if (!BSON_ITER_HOLDS_DOCUMENT(&document) || !bson_iter_recurse(&document, &option))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the options of mongo_aggregate() must be a JSON object")));
	while (bson_iter_next(&option))
	{
		if (!is_listed(bson_iter_key(&option), aggregate_options))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("mongo_aggregate() has no option \"%s\"",
							mongo_from_utf8(bson_iter_key(&option))),
					 errhint("Its options are allowDiskUse, hint, comment, collation, let, maxTimeMS and readConcern.")));
		mongo_append_iter(command, bson_iter_key(&option), &option);
	}
}

/*
 * Send the pipeline and return a cursor in 'context'; NULL if it has no result.  The names are in
 * the database's encoding.
 *
 * A pipeline that writes is sent as a write command, so that it is not run again if the
 * connection breaks.
 */
static MongoCursor *
open_aggregate(MemoryContext context, UserMapping *user, const char *database,
			   const char *collection, FunctionCallInfo fcinfo)
{
	bson_t	   *command = mongo_bson_create_in(context);
	bson_iter_t iter;
	const char *utf8_database = MemoryContextStrdup(context, mongo_to_utf8(database));
	const char *stage;
	const char *dubious_stage;

	mongo_append(command, "aggregate", collection != NULL ? mongo_utf8(mongo_to_utf8(collection)) : mongo_int32(1));
	append_json_at(command, "pipeline", PG_GETARG_DATUM(3), &iter);
	if (!BSON_ITER_HOLDS_ARRAY(&iter))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a pipeline must be a JSON array of stages")));
	stage = find_stage(&iter, writing_stages, true);
	dubious_stage = find_stage(&iter, reading_stages, false);
	if (dubious_stage != NULL)
		prevent_write(psprintf("mongo_aggregate() with %s", mongo_printable(dubious_stage)));
	mongo_append_template(command, "{cursor: {}}");
	if (!PG_ARGISNULL(4))
		append_options(command, PG_GETARG_DATUM(4));
	if (stage != NULL)
		mongo_refuse_write_at_time();
	if (mongo_reads_at_time(NULL) && bson_has_field(command, "readConcern"))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("mongo_aggregate() takes no \"readConcern\" while mongo_fdw.cluster_time is set")));

	mongo_begin_command(user, utf8_database, stage != NULL);
	if (stage == NULL)
		return mongo_cursor_open(context, &(MongoRead) {
			.user = user,
			.database = utf8_database,
			.collection = MemoryContextStrdup(context, collection != NULL ? collection :
											  "$cmd.aggregate"),
			.command = command,
			.batch_size = FIRST_BATCH_SIZE,
			.batches_grow = true,
			.at_time = true
		});

	mongo_run_write_command(context, user, utf8_database, command,
							psprintf("could not aggregate collection \"%s.%s\"",
									 database, collection != NULL ? collection : ""));
	return NULL;
}

static AggregateState *
start_aggregate(FunctionCallInfo fcinfo, MemoryContext context)
{
	MemoryContext previous = MemoryContextSwitchTo(context);
	AggregateState *state = palloc0(sizeof(AggregateState));

	/* the function is not strict, as the collection may be NULL */
	if (!PG_ARGISNULL(0) && !PG_ARGISNULL(1) && !PG_ARGISNULL(3))
	{
		UserMapping *user = mongo_caller_mapping(GetForeignServerByName(NameStr(*PG_GETARG_NAME(0)), false));
		const char *database = text_to_cstring(PG_GETARG_TEXT_PP(1));
		const char *collection = PG_ARGISNULL(2) ? NULL :
			text_to_cstring(PG_GETARG_TEXT_PP(2));

		state->decoder = jsonb_decoder(context, database,
									   collection != NULL ? collection : "$cmd.aggregate");
		state->cursor = open_aggregate(context, user, database, collection, fcinfo);
	}

	MemoryContextSwitchTo(previous);
	return state;
}

/* Closes the cursor; also called if the query ends early. */
static void
close_aggregate(Datum state)
{
	mongo_cursor_close(((AggregateState *) DatumGetPointer(state))->cursor);
}

/*
 * mongo_aggregate
 *		mongo_aggregate(server name, database text, collection text, pipeline json | text, options
 *		json): runs an aggregation pipeline and returns its documents, as jsonb.
 */
Datum
mongo_aggregate(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;
	AggregateState *state;
	const uint8_t *document = NULL;
	uint32		length;
	Datum		result;
	bool		isnull;
	MongoErrorSource source;

	mongo_push_error_source(&source, NIL);
	source.function = "mongo_aggregate()";
	if (SRF_IS_FIRSTCALL())
	{
		funcctx = SRF_FIRSTCALL_INIT();
		funcctx->user_fctx = start_aggregate(fcinfo,
											 funcctx->multi_call_memory_ctx);
		RegisterExprContextCallback(((ReturnSetInfo *) fcinfo->resultinfo)->econtext,
									close_aggregate, PointerGetDatum(funcctx->user_fctx));
	}
	funcctx = SRF_PERCALL_SETUP();
	state = funcctx->user_fctx;

	CHECK_FOR_INTERRUPTS();
	if (state->cursor != NULL)
		document = mongo_cursor_next(state->cursor, &length);
	mongo_pop_error_source(&source);
	if (document == NULL)
	{
		UnregisterExprContextCallback(((ReturnSetInfo *) fcinfo->resultinfo)->econtext,
									  close_aggregate, PointerGetDatum(state));
		mongo_cursor_close(state->cursor);
		SRF_RETURN_DONE(funcctx);
	}

	mongo_row_decode(state->decoder, document, length, &result, &isnull);
	SRF_RETURN_NEXT(funcctx, result);
}

/*
 * mongo_cluster_time
 *		mongo_cluster_time(server name) -> text: the present time of MongoDB's clock.
 */
Datum
mongo_cluster_time(PG_FUNCTION_ARGS)
{
	UserMapping *user = mongo_caller_mapping(GetForeignServerByName(NameStr(*PG_GETARG_NAME(0)), false));

	PG_RETURN_TEXT_P(cstring_to_text(mongo_format_cluster_time(mongo_present_time(user))));
}

PG_FUNCTION_INFO_V1(mongo_in_transaction_block);

/*
 * mongo_in_transaction_block
 *		Tells so; for databases that still have version 2.0 of the extension.
 */
Datum
mongo_in_transaction_block(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_BOOL(IsTransactionBlock());
}
