/*-------------------------------------------------------------------------
 *
 * command_name.c
 *		Which member of a document is the name of the command?
 *
 * MongoDB takes the first member.  A jsonb value has lost the order in which
 * its members were written, so there the name is looked up in a table.
 * https://www.mongodb.com/docs/manual/reference/command/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog.h"

#include "bson_memory.h"
#include "miscadmin.h"

/* Sorted bytewise: searched by halves. */
static const char *const command_names[] = {
	"_isSelf",
	"abortTransaction",
	"aggregate",
	"analyze",
	"analyzeShardKey",
	"appendOplogNote",
	"applyOps",
	"authenticate",
	"availableQueryOptions",
	"balancerCollectionStatus",
	"balancerStart",
	"balancerStatus",
	"balancerStop",
	"buildInfo",
	"buildinfo",
	"bulkWrite",
	"checkShardingIndex",
	"cleanupOrphaned",
	"clearJumboFlag",
	"clearLog",
	"cloneCollectionAsCapped",
	"collMod",
	"collStats",
	"collstats",
	"commitTransaction",
	"compact",
	"compactStructuredEncryptionData",
	"configureCollectionBalancing",
	"configureFailPoint",
	"configureQueryAnalyzer",
	"connPoolStats",
	"connPoolSync",
	"connectionStatus",
	"convertToCapped",
	"count",
	"create",
	"createIndexes",
	"createRole",
	"createSearchIndexes",
	"createUser",
	"currentOp",
	"dataSize",
	"datasize",
	"dbHash",
	"dbStats",
	"dbhash",
	"dbstats",
	"delete",
	"deleteIndexes",
	"distinct",
	"driverOIDTest",
	"drop",
	"dropAllRolesFromDatabase",
	"dropAllUsersFromDatabase",
	"dropConnections",
	"dropDatabase",
	"dropIndexes",
	"dropRole",
	"dropSearchIndex",
	"dropUser",
	"enableSharding",
	"endSessions",
	"explain",
	"features",
	"filemd5",
	"find",
	"findAndModify",
	"findandmodify",
	"flushRouterConfig",
	"fsync",
	"fsyncUnlock",
	"getAuditConfig",
	"getClusterParameter",
	"getCmdLineOpts",
	"getDefaultRWConcern",
	"getDiagnosticData",
	"getLog",
	"getMore",
	"getParameter",
	"getShardMap",
	"getShardVersion",
	"grantPrivilegesToRole",
	"grantRolesToRole",
	"grantRolesToUser",
	"hello",
	"hostInfo",
	"insert",
	"invalidateUserCache",
	"isMaster",
	"isdbgrid",
	"ismaster",
	"killAllSessions",
	"killAllSessionsByPattern",
	"killCursors",
	"killOp",
	"killSessions",
	"listCollections",
	"listCommands",
	"listDatabases",
	"listIndexes",
	"listSearchIndexes",
	"listShards",
	"lockInfo",
	"logApplicationMessage",
	"logRotate",
	"logout",
	"mapReduce",
	"mapreduce",
	"mergeChunks",
	"moveChunk",
	"moveCollection",
	"movePrimary",
	"netstat",
	"ping",
	"planCacheClear",
	"planCacheClearFilters",
	"planCacheListFilters",
	"planCacheSetFilter",
	"profile",
	"reIndex",
	"refineCollectionShardKey",
	"refreshSessions",
	"removeShard",
	"renameCollection",
	"replSetAbortPrimaryCatchUp",
	"replSetFreeze",
	"replSetGetConfig",
	"replSetGetStatus",
	"replSetInitiate",
	"replSetMaintenance",
	"replSetReconfig",
	"replSetResizeOplog",
	"replSetStepDown",
	"replSetSyncFrom",
	"reshardCollection",
	"revokePrivilegesFromRole",
	"revokeRolesFromRole",
	"revokeRolesFromUser",
	"rolesInfo",
	"rotateCertificates",
	"saslContinue",
	"saslStart",
	"serverStatus",
	"setAuditConfig",
	"setClusterParameter",
	"setDefaultRWConcern",
	"setFeatureCompatibilityVersion",
	"setIndexCommitQuorum",
	"setParameter",
	"setQuerySettings",
	"setUserWriteBlockMode",
	"shardCollection",
	"shardConnPoolStats",
	"shardingState",
	"shutdown",
	"split",
	"splitVector",
	"startSession",
	"top",
	"transitionFromDedicatedConfigServer",
	"transitionToDedicatedConfigServer",
	"unsetSharding",
	"update",
	"updateRole",
	"updateSearchIndex",
	"updateUser",
	"usersInfo",
	"validate",
	"validateDBMetadata",
	"voteCommitImportCollection",
	"waitForFailPoint",
	"whatsmysni",
	"whatsmyuri",
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
compare_names(const void *name, const void *entry)
{
	return strcmp((const char *) name, *(const char *const *) entry);
}

static bool
is_command_name(const char *name)
{
	return bsearch(name, command_names, lengthof(command_names),
				   sizeof(command_names[0]), compare_names) != NULL;
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

		if (!is_command_name(key) || is_argument_here(document, key))
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
