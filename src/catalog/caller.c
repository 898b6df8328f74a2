/*-------------------------------------------------------------------------
 *
 * caller.c
 *		Checks that a function's caller may use a server, and that server and table are of
 *		mongo_fdw.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "catalog/pg_class.h"
#include "catalog/pg_foreign_server.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/rel.h"

/*
 * mongo_is_own_server
 *		Tells whether the server is of this wrapper.  Raises XX000 if there is no such server.
 */
bool
mongo_is_own_server(Oid serverid)
{
	ForeignServer *server = GetForeignServer(serverid);

	return OidIsValid(GetForeignDataWrapper(server->fdwid)->fdwhandler) &&
		GetFdwRoutineByServerId(serverid)->AnalyzeForeignTable == mongo_analyze_foreign_table;
}

/*
 * mongo_caller_mapping
 *		Returns the current user's mapping for a server of this wrapper.
 *
 * Raises 42501 without USAGE, 42809 for a server of another wrapper, 42704 without a user mapping.
 */
UserMapping *
mongo_caller_mapping(ForeignServer *server)
{
	AclResult	acl = object_aclcheck(ForeignServerRelationId, server->serverid,
									  GetUserId(), ACL_USAGE);

	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, OBJECT_FOREIGN_SERVER, server->servername);

	if (!mongo_is_own_server(server->serverid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" is not a MongoDB server", server->servername),
				 errdetail("Its foreign-data wrapper is not mongo_fdw.")));

	return mongo_user_mapping(GetUserId(), server->serverid);
}

/*
 * mongo_require_own_table
 *		Returns a foreign table's server.  Raises 42809 if the table is not one of mongo_fdw.
 */
Oid
mongo_require_own_table(Relation relation)
{
	Oid			serverid = InvalidOid;

	if (relation->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
		serverid = GetForeignServerIdByRelId(RelationGetRelid(relation));
	if (!OidIsValid(serverid) || !mongo_is_own_server(serverid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a foreign table of mongo_fdw",
						RelationGetRelationName(relation))));
	return serverid;
}
