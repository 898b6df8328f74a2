/*-------------------------------------------------------------------------
 *
 * user_mapping.h
 *		Who a role is on a server.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_USER_MAPPING_H
#define MONGO_FDW_USER_MAPPING_H

#include "compat.h"

#include "foreign/foreign.h"

/*
 * mongo_user_mapping
 *		The user mapping of a role on a server, or that of PUBLIC; palloc'd.
 *
 * As PostgreSQL's GetUserMapping().  Its error, 42704, has a HINT here, and the
 * words of PostgreSQL 17 in all versions.
 */
extern UserMapping *mongo_user_mapping(Oid userid, Oid serverid);

#endif							/* MONGO_FDW_USER_MAPPING_H */
