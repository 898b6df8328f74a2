/*-------------------------------------------------------------------------
 *
 * user_mapping.c
 *		Who a role is on a server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "user_mapping.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/pg_user_mapping.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

pg_noreturn static void report_missing_mapping(Oid userid, Oid serverid);

static void
report_missing_mapping(Oid userid, Oid serverid)
{
	const char *server = GetForeignServer(serverid)->servername;
	const char *user = MappingUserName(userid);

	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("user mapping not found for user \"%s\", server \"%s\"", user, server),
			 errhint("Use CREATE USER MAPPING FOR %s SERVER %s OPTIONS (username '...', password '...'), or without OPTIONS where MongoDB asks for no user.",
					 quote_identifier(user), quote_identifier(server))));
}

UserMapping *
mongo_user_mapping(Oid userid, Oid serverid)
{
	UserMapping *mapping;
	HeapTuple	tuple;
	Datum		options;
	bool		isnull;

	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(userid),
							ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid),
								ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
		report_missing_mapping(userid, serverid);

	mapping = palloc(sizeof(UserMapping));
	mapping->umid = ((Form_pg_user_mapping) GETSTRUCT(tuple))->oid;
	mapping->userid = userid;
	mapping->serverid = serverid;
	options = SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple,
							  Anum_pg_user_mapping_umoptions, &isnull);
	mapping->options = isnull ? NIL : untransformRelOptions(options);
	ReleaseSysCache(tuple);
	return mapping;
}
