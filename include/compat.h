/*-------------------------------------------------------------------------
 *
 * compat.h
 *		The one place where versions of PostgreSQL, libmongoc and libbson differ.
 *
 * Every other file includes this one first, after postgres.h, and writes for
 * the newest API; what an older version lacks is supplied here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMPAT_H
#define MONGO_FDW_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "mongo_fdw needs PostgreSQL 15 or newer"
#endif

/*
 * libbson and PostgreSQL both want the last word on a few macro names; the
 * driver's headers go first so that PostgreSQL's definitions are the ones in
 * force in our code.
 */
#include <bson/bson.h>
#include <mongoc/mongoc.h>

/*
 * Wait event sets belong to a memory context up to PostgreSQL 16 and to a
 * resource owner since; none (NULL) there means until they are freed, which
 * is what our callers do.
 */
#if PG_VERSION_NUM >= 170000
#define mongo_create_wait_event_set(context, nevents) \
	CreateWaitEventSet(NULL, (nevents))
#else
#define mongo_create_wait_event_set(context, nevents) \
	CreateWaitEventSet((context), (nevents))
#endif

/* PostgreSQL 16 made one function of those for each kind of object. */
#if PG_VERSION_NUM < 160000
#define object_aclcheck(class, object, role, mode) \
	(AssertMacro((class) == ForeignServerRelationId), \
	 pg_foreign_server_aclcheck(object, role, mode))
#endif

/* PostgreSQL 18 tells the cost-based delays of ANALYZE from those of VACUUM. */
#if PG_VERSION_NUM < 180000
#define mongo_analyze_delay_point() vacuum_delay_point()
#else
#define mongo_analyze_delay_point() vacuum_delay_point(true)
#endif

#endif							/* MONGO_FDW_COMPAT_H */
