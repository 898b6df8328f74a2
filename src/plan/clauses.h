/*-------------------------------------------------------------------------
 *
 * clauses.h
 *		The clauses of a scan, classified by who tests them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CLAUSES_H
#define MONGO_FDW_CLAUSES_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "condition.h"

/* A clause that MongoDB tests, exactly or as a superset. */
typedef struct MongoSentClause
{
	Expr	   *clause;
	bson_t	   *match;
} MongoSentClause;

typedef struct MongoScanClauses
{
	List	   *local;			/* tested by PostgreSQL: not shippable, or a
								 * superset */
	List	   *hiding;			/* numbers, from 0, of those in 'local' that
								 * mongo_hides_rows() of */
	List	   *exact;			/* tested by MongoDB alone */
	List	   *sent;			/* MongoSentClause *, of what MongoDB tests */
	bson_t	   *filter;			/* ... as one; empty when nothing */
} MongoScanClauses;

/*
 * mongo_classify_clauses
 *		Translate RestrictInfos, and tell which of their clauses MongoDB tests.
 *
 * 'baserel' is the foreign table whose restrictions they are; NULL for clauses
 * of a join that mongo_join_is_secure() has been asked about.  'known' are
 * MongoKnownConditions that need not be translated again, or NIL.  Parameters are
 * gathered in 'translation'.  Pseudoconstant clauses are left out: PostgreSQL tests
 * them above the scan.
 */
extern void mongo_classify_clauses(MongoTranslation *translation, RelOptInfo *baserel,
								   List *known, List *scan_clauses,
								   MongoScanClauses *clauses);

/*
 * mongo_append_conjuncts
 *		Append to the empty document 'filter' what asks for all of these match
 *		documents, bson_t *; nothing if there are none.
 */
extern void mongo_append_conjuncts(bson_t *filter, const List *conjuncts);

/*
 * mongo_append_collation
 *		Append {collation: {locale: "simple"}} when the translation needs it.
 */
extern void mongo_append_collation(bson_t *command, const MongoTranslation *translation);

/*
 * mongo_append_hint
 *		Append "hint" as the setting mongo_fdw.hint or else the option of the table
 *		says; nothing without them.  Raises 22P02 for what the setting has as JSON.
 */
extern void mongo_append_hint(bson_t *command, const MongoTableOptions *options);

/*
 * mongo_append_max_time
 *		Append "maxTimeMS" as the option says; nothing without it.
 */
extern void mongo_append_max_time(bson_t *command, const MongoTableOptions *options);

#endif							/* MONGO_FDW_CLAUSES_H */
