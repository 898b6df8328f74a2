/*-------------------------------------------------------------------------
 *
 * relation.h
 *		What planning knows of a foreign table, or of a join that can be pushed down.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_RELATION_H
#define MONGO_FDW_RELATION_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "columns.h"
#include "condition.h"
#include "options.h"

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

/*
 * fdw_private of the RelOptInfo.  What is about one table is about the outermost
 * one of a join, on whose collection the command is.
 *
 * It lives as long as its RelOptInfo, and so does all that it points to, at
 * whatever time and in whatever memory context that is filled in: see
 * planning_state.h.
 */
typedef struct MongoRelation
{
	Oid			relid;
	Oid			serverid;
	Oid			userid;			/* whose user mapping counts */
	MongoTableOptions *options;
	MongoColumns *columns;
	List	   *known;			/* MongoKnownCondition * */
	List	   *without_nan;	/* columns that no base restriction lets be
								 * NaN; see nan_bound.h */
	List	   *restrictions;	/* RestrictInfo *, as baserestrictinfo was */
	bool		below_barrier;	/* the query is below a security barrier */
	bool		has_barrier;	/* restrictions hide rows from the query or
								 * from what is above it; see security.h */
	Index		query_level;	/* PlannerInfo.qual_security_level */
	bool		all_exact;		/* PostgreSQL has no base restriction left to
								 * test */
	int			can_be_exact;	/* of mongo_can_be_exact(); -1: not asked yet.
								 * A number, as joins ask */
	double		analyzed_rows;	/* documents that ANALYZE counted; 0: none yet */
	List	   *sought;			/* MongoSought *, of base restrictions; see
								 * index_use.h */
	double		remote_rows;	/* documents that come, before local checks */
	double		examined_rows;	/* documents that MongoDB looks at */
	const struct MongoJoin *join;	/* see join.h; NULL: a table */
	bool		names_match;	/* a restriction is mongo_match() */
	Expr	   *score;			/* mongo_score() of it; NULL: see score.h */
	const char *score_field;	/* where that stands in the documents */
} MongoRelation;

/*
 * mongo_translation_of
 *		The beginning of a translation over this table: with expressions, but for
 *		what the table's options disable.
 */
extern MongoTranslation mongo_translation_of(const MongoRelation *relation);

/*
 * mongo_translate_restriction
 *		mongo_translate_condition() of a restriction of the foreign table, or of a
 *		clause that a scan of it is parameterized by.
 *
 * Not shippable is also what MongoDB must not see so early: see security.h.
 */
extern MongoCondition mongo_translate_restriction(MongoTranslation *translation,
												  RelOptInfo *baserel,
												  RestrictInfo *rinfo, bson_t *match);

/*
 * mongo_can_be_exact
 *		Can MongoDB test all restrictions of 'baserel' exactly, if that is worth
 *		a $expr where find's language would leave something for PostgreSQL?
 */
extern bool mongo_can_be_exact(RelOptInfo *baserel);

#endif							/* MONGO_FDW_RELATION_H */
