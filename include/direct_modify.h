/*-------------------------------------------------------------------------
 *
 * direct_modify.h
 *		UPDATE and DELETE as one command: updateMany, deleteMany.
 *
 * Possible where MongoDB alone decides which documents are meant, and what
 * they become is known beforehand or is a sum with a column's own value.
 *
 * A document whose tested fields do not fit their columns cannot be read, and
 * is not touched either: the filter goes with guards for that.
 *
 * With RETURNING it is findAndModify, which gives back one document, so the
 * filter must be one that cannot mean several.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DIRECT_MODIFY_H
#define MONGO_FDW_DIRECT_MODIFY_H

#include "compat.h"

#include "commands/explain.h"
#include "foreign/fdwapi.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* What an assignment does with its expression's value. */
typedef enum MongoAssignmentKind
{
	MONGO_ASSIGN_VALUE,			/* column = value */
	MONGO_ASSIGN_SUM,			/* column = column + value */
	MONGO_ASSIGN_DIFFERENCE,	/* column = column - value */
	MONGO_ASSIGN_JSON_MEMBER	/* column = jsonb_set(column, keys, value) */
} MongoAssignmentKind;

typedef struct MongoAssignment
{
	AttrNumber	attnum;
	MongoAssignmentKind kind;
	List	   *keys;			/* String *, of MONGO_ASSIGN_JSON_MEMBER */
} MongoAssignment;

/* fdw_private of the ForeignScan that stands for a direct modification. */
typedef struct MongoDirectPlan
{
	const char *database;
	const char *collection;
	CmdType		operation;
	Const	   *command;		/* {filter, projection}, see command_template.h */
	List	   *predicates;		/* for the first of fdw_exprs, in step */
	List	   *assignments;	/* MongoAssignment *, for the rest of fdw_exprs */
	bool		simple_collation;
	bool		at_most_one;	/* document is meant */
	bool		counts;			/* its rows are the statement's */
	bool		returns;		/* RETURNING, of the only document */
	List	   *returned;		/* attributes in it, as numbers; then 'command'
								 * has their projection */
} MongoDirectPlan;

/*
 * mongo_direct_plan_to_list, mongo_direct_plan_from_list
 *		The plan's private part as nodes that copyObject() and the like know, and
 *		back, palloc'd; strings are shared with the list.
 */
extern List *mongo_direct_plan_to_list(const MongoDirectPlan *plan);
extern MongoDirectPlan *mongo_direct_plan_from_list(List *list);

/*
 * FDW callbacks; see PostgreSQL's "Foreign Data Wrapper Callback Routines".
 */

/* src/plan/direct_modify.c */
extern bool mongo_plan_direct_modify(PlannerInfo *root, ModifyTable *plan,
									 Index resultRelation, int subplan_index);

/* src/exec/direct_modify.c */
extern void mongo_begin_direct_modify(ForeignScanState *node, int eflags);
extern TupleTableSlot *mongo_iterate_direct_modify(ForeignScanState *node);
extern void mongo_end_direct_modify(ForeignScanState *node);
extern void mongo_explain_direct_modify(ForeignScanState *node, ExplainState *es);

/*
 * mongo_append_fits_guards
 *		Append to 'conditions', from 'index' on, that the field at 'path' fits a
 *		column of this type; returns the next index, or -1 when find's language
 *		cannot say that of the type.
 *
 * NULL fits if 'nullable'.  Without it, MongoDB takes a range into the bounds
 * of an index scan, and has no second plan to try.
 */
extern int	mongo_append_fits_guards(bson_t *conditions, int index,
									 const char *path, Oid typid, int32 typmod,
									 bool nullable);

/*
 * mongo_append_array_guards
 *		Likewise, that the path goes through no array and leads to none.
 */
extern int	mongo_append_array_guards(bson_t *conditions, int index,
									  const char *path);

#endif							/* MONGO_FDW_DIRECT_MODIFY_H */
