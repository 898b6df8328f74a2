/*-------------------------------------------------------------------------
 *
 * plan_clauses.h
 *		The clauses of a scan, sorted by who tests them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_CLAUSES_H
#define MONGO_FDW_PLAN_CLAUSES_H

#include "compat.h"

#include "condition.h"
#include "plan.h"

/*
 * A restriction that was translated for the estimate and needs no parameter,
 * so that the plan can have it as it is.
 */
typedef struct MongoKnownCondition
{
	RestrictInfo *rinfo;
	MongoGrade	grade;
	bson_t	   *match;
} MongoKnownCondition;

typedef struct MongoScanClauses
{
	List	   *local;			/* tested here: not shippable, or a superset */
	List	   *hiding;			/* numbers, from 0, of those in 'local' that
								 * mongo_hides_rows() of */
	List	   *exact;			/* tested by MongoDB alone */
	bson_t	   *filter;			/* what MongoDB tests; empty when nothing */
} MongoScanClauses;

/*
 * mongo_translate_restriction
 *		mongo_translate_condition() of a restriction of the foreign table, or of a
 *		clause that a scan of it is parameterized by.
 *
 * Not shippable is also what MongoDB must not see so early: see plan_security.h.
 */
extern MongoCondition mongo_translate_restriction(MongoTranslation *translation,
												  RelOptInfo *baserel,
												  RestrictInfo *rinfo, bson_t *match);

/*
 * mongo_sort_scan_clauses
 *		Translate RestrictInfos and sort their clauses.
 *
 * 'baserel' is the foreign table whose restrictions they are; NULL for clauses
 * of a join that mongo_join_is_secure() has been asked about.  'known' are
 * MongoKnownConditions that need not be translated again, or NIL.  Parameters are gathered in 'translation'.  Pseudoconstant clauses are left
 * out: PostgreSQL tests them above the scan.
 */
extern void mongo_sort_scan_clauses(MongoTranslation *translation,
									RelOptInfo *baserel, List *known, List *scan_clauses,
									MongoScanClauses *clauses);

/*
 * mongo_translation_of
 *		The beginning of a translation over this table: with expressions, but
 *		for what the table's options hold back.
 */
extern MongoTranslation mongo_translation_of(const MongoRelation *relation);

/*
 * mongo_append_collation
 *		Append {collation: {locale: "simple"}} when the translation needs it.
 */
extern void mongo_append_collation(bson_t *command,
								   const MongoTranslation *translation);

/*
 * mongo_scan_plan_init
 *		Fill in what every scan of the relation has, and nothing else.
 */
extern void mongo_scan_plan_init(MongoScanPlan *plan,
								 const MongoRelation *relation);

#endif							/* MONGO_FDW_PLAN_CLAUSES_H */
