/*-------------------------------------------------------------------------
 *
 * privileges.h
 *		Who may see the values that a message quotes?
 *
 * MongoDB's errors quote values of documents ("Failed to parse number 'x'", the
 * key that is there already), and so do ours about documents that do not fit.
 * PostgreSQL shows a row's values in an error only to who may read them:
 * BuildIndexValueDescription() and ExecBuildSlotValueDescription() ask for SELECT
 * on the columns, and that no policies apply.  So do we.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PRIVILEGES_H
#define MONGO_FDW_PRIVILEGES_H

#include "compat.h"

#include "nodes/pg_list.h"

/*
 * mongo_may_read
 *		May the current user see any row's value of this column, or of all columns
 *		(NULL), of the foreign table or of a table that it is a partition of?
 *
 * Columns of partitions and of their parents are the same by name.
 */
extern bool mongo_may_read(Oid relid, const char *column);

/* The tables whose documents are at work; lives on the caller's stack. */
typedef struct MongoAtWork
{
	ErrorContextCallback callback;
	List	   *relids;			/* OIDs of foreign tables */
	const char *function;		/* whose argument is sent as it is; or NULL */
} MongoAtWork;

/*
 * mongo_begin_work, mongo_end_work
 *		What is raised in between may quote documents of these tables.
 *
 * An ERROR ends it as well.  'relids' must live until then.
 */
extern void mongo_begin_work(MongoAtWork *work, List *relids);
extern void mongo_end_work(MongoAtWork *work);

/*
 * mongo_begin_own_work
 *		Likewise, of what the user has written in MongoDB's own language and given to
 *		this function, such as "mongo_aggregate()".
 */
extern void mongo_begin_own_work(MongoAtWork *work, const char *function);

/*
 * mongo_function_at_work
 *		That function, if this is the innermost work; NULL otherwise.
 */
extern const char *mongo_function_at_work(void);

/*
 * mongo_tables_at_work
 *		The 'relids' of the innermost work that has not ended; NIL outside.
 */
extern List *mongo_tables_at_work(void);

/*
 * mongo_may_quote
 *		May a message that is raised now quote this column of the documents at work,
 *		or anything of them (NULL)?
 *
 * True when no tables are at work: ANALYZE and the SQL functions have privileges
 * of their own.
 */
extern bool mongo_may_quote(const char *column);

/*
 * mongo_query_log_level
 *		For mongo_fdw.log_remote_query, which shows values as well: a client sees
 *		it only as a superuser.
 */
extern int	mongo_query_log_level(void);

#endif							/* MONGO_FDW_PRIVILEGES_H */
