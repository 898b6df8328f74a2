/*-------------------------------------------------------------------------
 *
 * command_name.c
 *		Which member of a document is the name of the command, and does that
 *		command only read?
 *
 * MongoDB takes the first member.  A jsonb value has lost the order in which
 * its members were written, so there the name is looked up in a table.
 * https://www.mongodb.com/docs/manual/reference/command/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "command_name.h"

#include "bson_memory.h"
#include "miscadmin.h"

typedef struct CommandRow
{
	const char *name;
	MongoCommandEffect effect;
} CommandRow;

/*
 * Sorted bytewise: searched by halves.  Not among those that only read: getMore,
 * which starts an aggregation with $out that was opened with batchSize 0;
 * validate, which corrects counts; commands on sessions, which MongoDB stores.
 */
static const CommandRow commands[] =
{
	{"_isSelf", MONGO_COMMAND_READS},
	{"abortTransaction", MONGO_COMMAND_WRITES},
	{"aggregate", MONGO_COMMAND_DEPENDS},
	{"analyze", MONGO_COMMAND_WRITES},
	{"analyzeShardKey", MONGO_COMMAND_WRITES},
	{"appendOplogNote", MONGO_COMMAND_WRITES},
	{"applyOps", MONGO_COMMAND_WRITES},
	{"authenticate", MONGO_COMMAND_WRITES},
	{"availableQueryOptions", MONGO_COMMAND_READS},
	{"balancerCollectionStatus", MONGO_COMMAND_READS},
	{"balancerStart", MONGO_COMMAND_WRITES},
	{"balancerStatus", MONGO_COMMAND_READS},
	{"balancerStop", MONGO_COMMAND_WRITES},
	{"buildInfo", MONGO_COMMAND_READS},
	{"buildinfo", MONGO_COMMAND_READS},
	{"bulkWrite", MONGO_COMMAND_WRITES},
	{"checkShardingIndex", MONGO_COMMAND_READS},
	{"cleanupOrphaned", MONGO_COMMAND_WRITES},
	{"clearJumboFlag", MONGO_COMMAND_WRITES},
	{"clearLog", MONGO_COMMAND_WRITES},
	{"cloneCollectionAsCapped", MONGO_COMMAND_WRITES},
	{"collMod", MONGO_COMMAND_WRITES},
	{"collStats", MONGO_COMMAND_READS},
	{"collstats", MONGO_COMMAND_READS},
	{"commitTransaction", MONGO_COMMAND_WRITES},
	{"compact", MONGO_COMMAND_WRITES},
	{"compactStructuredEncryptionData", MONGO_COMMAND_WRITES},
	{"configureCollectionBalancing", MONGO_COMMAND_WRITES},
	{"configureFailPoint", MONGO_COMMAND_WRITES},
	{"configureQueryAnalyzer", MONGO_COMMAND_WRITES},
	{"connPoolStats", MONGO_COMMAND_READS},
	{"connPoolSync", MONGO_COMMAND_WRITES},
	{"connectionStatus", MONGO_COMMAND_READS},
	{"convertToCapped", MONGO_COMMAND_WRITES},
	{"count", MONGO_COMMAND_READS},
	{"create", MONGO_COMMAND_WRITES},
	{"createIndexes", MONGO_COMMAND_WRITES},
	{"createRole", MONGO_COMMAND_WRITES},
	{"createSearchIndexes", MONGO_COMMAND_WRITES},
	{"createUser", MONGO_COMMAND_WRITES},
	{"currentOp", MONGO_COMMAND_READS},
	{"dataSize", MONGO_COMMAND_READS},
	{"datasize", MONGO_COMMAND_READS},
	{"dbHash", MONGO_COMMAND_READS},
	{"dbStats", MONGO_COMMAND_READS},
	{"dbhash", MONGO_COMMAND_READS},
	{"dbstats", MONGO_COMMAND_READS},
	{"delete", MONGO_COMMAND_WRITES},
	{"deleteIndexes", MONGO_COMMAND_WRITES},
	{"distinct", MONGO_COMMAND_READS},
	{"driverOIDTest", MONGO_COMMAND_READS},
	{"drop", MONGO_COMMAND_WRITES},
	{"dropAllRolesFromDatabase", MONGO_COMMAND_WRITES},
	{"dropAllUsersFromDatabase", MONGO_COMMAND_WRITES},
	{"dropConnections", MONGO_COMMAND_WRITES},
	{"dropDatabase", MONGO_COMMAND_WRITES},
	{"dropIndexes", MONGO_COMMAND_WRITES},
	{"dropRole", MONGO_COMMAND_WRITES},
	{"dropSearchIndex", MONGO_COMMAND_WRITES},
	{"dropUser", MONGO_COMMAND_WRITES},
	{"enableSharding", MONGO_COMMAND_WRITES},
	{"endSessions", MONGO_COMMAND_WRITES},
	{"explain", MONGO_COMMAND_DEPENDS},
	{"features", MONGO_COMMAND_WRITES},
	{"filemd5", MONGO_COMMAND_READS},
	{"find", MONGO_COMMAND_READS},
	{"findAndModify", MONGO_COMMAND_WRITES},
	{"findandmodify", MONGO_COMMAND_WRITES},
	{"flushRouterConfig", MONGO_COMMAND_WRITES},
	{"fsync", MONGO_COMMAND_WRITES},
	{"fsyncUnlock", MONGO_COMMAND_WRITES},
	{"getAuditConfig", MONGO_COMMAND_READS},
	{"getClusterParameter", MONGO_COMMAND_READS},
	{"getCmdLineOpts", MONGO_COMMAND_READS},
	{"getDefaultRWConcern", MONGO_COMMAND_READS},
	{"getDiagnosticData", MONGO_COMMAND_READS},
	{"getLog", MONGO_COMMAND_READS},
	{"getMore", MONGO_COMMAND_WRITES},
	{"getParameter", MONGO_COMMAND_READS},
	{"getShardMap", MONGO_COMMAND_READS},
	{"getShardVersion", MONGO_COMMAND_READS},
	{"grantPrivilegesToRole", MONGO_COMMAND_WRITES},
	{"grantRolesToRole", MONGO_COMMAND_WRITES},
	{"grantRolesToUser", MONGO_COMMAND_WRITES},
	{"hello", MONGO_COMMAND_READS},
	{"hostInfo", MONGO_COMMAND_READS},
	{"insert", MONGO_COMMAND_WRITES},
	{"invalidateUserCache", MONGO_COMMAND_WRITES},
	{"isMaster", MONGO_COMMAND_READS},
	{"isdbgrid", MONGO_COMMAND_READS},
	{"ismaster", MONGO_COMMAND_READS},
	{"killAllSessions", MONGO_COMMAND_WRITES},
	{"killAllSessionsByPattern", MONGO_COMMAND_WRITES},
	{"killCursors", MONGO_COMMAND_READS},
	{"killOp", MONGO_COMMAND_WRITES},
	{"killSessions", MONGO_COMMAND_WRITES},
	{"listCollections", MONGO_COMMAND_READS},
	{"listCommands", MONGO_COMMAND_READS},
	{"listDatabases", MONGO_COMMAND_READS},
	{"listIndexes", MONGO_COMMAND_READS},
	{"listSearchIndexes", MONGO_COMMAND_READS},
	{"listShards", MONGO_COMMAND_READS},
	{"lockInfo", MONGO_COMMAND_READS},
	{"logApplicationMessage", MONGO_COMMAND_WRITES},
	{"logRotate", MONGO_COMMAND_WRITES},
	{"logout", MONGO_COMMAND_WRITES},
	{"mapReduce", MONGO_COMMAND_DEPENDS},
	{"mapreduce", MONGO_COMMAND_DEPENDS},
	{"mergeChunks", MONGO_COMMAND_WRITES},
	{"moveChunk", MONGO_COMMAND_WRITES},
	{"moveCollection", MONGO_COMMAND_WRITES},
	{"movePrimary", MONGO_COMMAND_WRITES},
	{"netstat", MONGO_COMMAND_READS},
	{"ping", MONGO_COMMAND_READS},
	{"planCacheClear", MONGO_COMMAND_WRITES},
	{"planCacheClearFilters", MONGO_COMMAND_WRITES},
	{"planCacheListFilters", MONGO_COMMAND_READS},
	{"planCacheSetFilter", MONGO_COMMAND_WRITES},
	{"profile", MONGO_COMMAND_DEPENDS},
	{"reIndex", MONGO_COMMAND_WRITES},
	{"refineCollectionShardKey", MONGO_COMMAND_WRITES},
	{"refreshSessions", MONGO_COMMAND_WRITES},
	{"removeShard", MONGO_COMMAND_WRITES},
	{"renameCollection", MONGO_COMMAND_WRITES},
	{"replSetAbortPrimaryCatchUp", MONGO_COMMAND_WRITES},
	{"replSetFreeze", MONGO_COMMAND_WRITES},
	{"replSetGetConfig", MONGO_COMMAND_READS},
	{"replSetGetStatus", MONGO_COMMAND_READS},
	{"replSetInitiate", MONGO_COMMAND_WRITES},
	{"replSetMaintenance", MONGO_COMMAND_WRITES},
	{"replSetReconfig", MONGO_COMMAND_WRITES},
	{"replSetResizeOplog", MONGO_COMMAND_WRITES},
	{"replSetStepDown", MONGO_COMMAND_WRITES},
	{"replSetSyncFrom", MONGO_COMMAND_WRITES},
	{"reshardCollection", MONGO_COMMAND_WRITES},
	{"revokePrivilegesFromRole", MONGO_COMMAND_WRITES},
	{"revokeRolesFromRole", MONGO_COMMAND_WRITES},
	{"revokeRolesFromUser", MONGO_COMMAND_WRITES},
	{"rolesInfo", MONGO_COMMAND_READS},
	{"rotateCertificates", MONGO_COMMAND_WRITES},
	{"saslContinue", MONGO_COMMAND_WRITES},
	{"saslStart", MONGO_COMMAND_WRITES},
	{"serverStatus", MONGO_COMMAND_READS},
	{"setAuditConfig", MONGO_COMMAND_WRITES},
	{"setClusterParameter", MONGO_COMMAND_WRITES},
	{"setDefaultRWConcern", MONGO_COMMAND_WRITES},
	{"setFeatureCompatibilityVersion", MONGO_COMMAND_WRITES},
	{"setIndexCommitQuorum", MONGO_COMMAND_WRITES},
	{"setParameter", MONGO_COMMAND_WRITES},
	{"setQuerySettings", MONGO_COMMAND_WRITES},
	{"setUserWriteBlockMode", MONGO_COMMAND_WRITES},
	{"shardCollection", MONGO_COMMAND_WRITES},
	{"shardConnPoolStats", MONGO_COMMAND_READS},
	{"shardingState", MONGO_COMMAND_READS},
	{"shutdown", MONGO_COMMAND_WRITES},
	{"split", MONGO_COMMAND_WRITES},
	{"splitVector", MONGO_COMMAND_READS},
	{"startSession", MONGO_COMMAND_WRITES},
	{"top", MONGO_COMMAND_READS},
	{"transitionFromDedicatedConfigServer", MONGO_COMMAND_WRITES},
	{"transitionToDedicatedConfigServer", MONGO_COMMAND_WRITES},
	{"unsetSharding", MONGO_COMMAND_WRITES},
	{"update", MONGO_COMMAND_WRITES},
	{"updateRole", MONGO_COMMAND_WRITES},
	{"updateSearchIndex", MONGO_COMMAND_WRITES},
	{"updateUser", MONGO_COMMAND_WRITES},
	{"usersInfo", MONGO_COMMAND_READS},
	{"validate", MONGO_COMMAND_WRITES},
	{"validateDBMetadata", MONGO_COMMAND_READS},
	{"voteCommitImportCollection", MONGO_COMMAND_WRITES},
	{"waitForFailPoint", MONGO_COMMAND_WRITES},
	{"whatsmysni", MONGO_COMMAND_READS},
	{"whatsmyuri", MONGO_COMMAND_READS},
};

/* Commands with an argument that bears the name of another command. */
static const struct
{
	const char *command;
	const char *argument;
}			ambiguous_arguments[] =
{
	{"aggregate", "explain"},
	{"findAndModify", "update"},
	{"findandmodify", "update"},
	{"serverStatus", "top"},
	{"hello", "startSession"},
};

static int
compare_names(const void *name, const void *row)
{
	return strcmp((const char *) name, ((const CommandRow *) row)->name);
}

MongoCommandEffect
mongo_command_effect(const char *name)
{
	const CommandRow *row = bsearch(name, commands, lengthof(commands),
									sizeof(commands[0]), compare_names);

	return row == NULL ? MONGO_COMMAND_UNKNOWN : row->effect;
}

/* is_argument_here: does 'document' hold a command that 'name' belongs to? */
static bool
is_argument_here(const bson_t *document, const char *name)
{
	for (size_t i = 0; i < lengthof(ambiguous_arguments); i++)
	{
		if (strcmp(ambiguous_arguments[i].argument, name) == 0 &&
			bson_has_field(document, ambiguous_arguments[i].command))
			return true;
	}
	return false;
}

static void
report_unclear_name(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot tell which member of the document is the command's name"),
			 errdetail_internal("%s", detail),
			 errhint("jsonb does not keep the order of members. Pass the command as json or text, with its name first.")));
}

/* find_command_name gives a pointer into 'document'. */
static const char *
find_command_name(const bson_t *document)
{
	const char *name = NULL;
	bson_iter_t iter;

	if (bson_count_keys(document) == 1 &&
		bson_iter_init(&iter, document) && bson_iter_next(&iter))
		return bson_iter_key(&iter);

	if (!bson_iter_init(&iter, document))
		report_unclear_name("It is not a document.");
	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if (mongo_command_effect(key) == MONGO_COMMAND_UNKNOWN || is_argument_here(document, key))
			continue;
		if (name != NULL)
			report_unclear_name(psprintf("Both \"%s\" and \"%s\" are commands.",
										 name, key));
		name = key;
	}
	if (name == NULL)
		report_unclear_name("It holds no name of a known command.");
	return name;
}

/*
 * append_ordered
 *		Append the members of 'command' to 'target', the name first.
 *
 * What an explain explains is a command too.
 */
static void
append_ordered(bson_t *target, const bson_t *command)
{
	const char *name = find_command_name(command);
	bson_iter_t iter;

	check_stack_depth();

	if (!bson_iter_init_find(&iter, command, name))
		elog(ERROR, "command lost its name");
	if (strcmp(name, "explain") == 0 && BSON_ITER_HOLDS_DOCUMENT(&iter))
	{
		const uint8_t *data;
		uint32_t	length;
		bson_t		explained;
		bson_t	   *ordered = bson_create_in(CurrentMemoryContext);

		bson_iter_document(&iter, &length, &data);
		if (!bson_view(&explained, data, length))
			elog(ERROR, "command is malformed");
		append_ordered(ordered, &explained);
		BSON_APPEND_DOCUMENT(target, name, ordered);
	}
	else
		bson_append_iter(target, name, -1, &iter);

	bson_iter_init(&iter, command);
	while (bson_iter_next(&iter))
	{
		if (strcmp(bson_iter_key(&iter), name) != 0)
			bson_append_iter(target, NULL, 0, &iter);
	}
}

const bson_t *
mongo_ordered_command(const bson_t *command)
{
	bson_t	   *ordered = bson_create_in(CurrentMemoryContext);

	append_ordered(ordered, command);
	return ordered;
}
