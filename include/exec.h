/*-------------------------------------------------------------------------
 *
 * exec.h
 *		Executing foreign scans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXEC_H
#define MONGO_FDW_EXEC_H

#include "compat.h"

#include "commands/explain.h"
#include "foreign/foreign.h"
#include "nodes/execnodes.h"

#include "command_template.h"
#include "cursor.h"
#include "decode.h"
#include "plan.h"

/* A foreign scan in execution: fdw_state of its ForeignScanState. */
typedef struct MongoScanState
{
	MongoScanPlan *plan;
	MongoCommandTemplate template;	/* of the command in turn */
	bson_t	  **commands;		/* the plan's, in their order */
	int			ncommands;
	List	   *expressions;	/* ExprStates of fdw_exprs */
	List	   *relids;			/* of its foreign tables */
	UserMapping *user;			/* NULL under EXPLAIN without ANALYZE */
	MongoRowDecoder *decoder;	/* likewise */
	struct MongoSharedScan *shared; /* with other processes; NULL: the scan is ours */
	ExprState  *hiding;			/* of hidden.c; NULL: not needed so far */
	Bitmapset  *hiding_columns; /* likewise: indexes of those that it reads */
	struct MongoFinisher *finisher; /* of aggregates; NULL: nothing to finish */
	struct MongoIdentityLog *identities;	/* NULL: no row is to be changed */
	MemoryContext scan_context; /* of the command and its cursor */
	MemoryContext spare_context;	/* takes turns with it; empty, NULL before
									 * any ReScan */

	/* Valid from the first row on, until ReScan, which may keep the last two. */
	bool		started;
	int			turn;			/* which of the plan's commands, from 0 */
	bool		any_document;	/* has come */
	int64		rows;			/* that have come */
	bool		widened;		/* documents may come that are to be tested here */
	bool		must_wait;		/* why an asynchronous scan gave no row */
	bson_t	   *command;		/* as sent */
	MongoCursor *cursor;		/* NULL: nothing to read, or no more */
} MongoScanState;

/* FDW callbacks; see PostgreSQL's "Foreign Data Wrapper Callback Routines". */
extern void mongo_begin_foreign_scan(ForeignScanState *node, int eflags);
extern TupleTableSlot *mongo_iterate_foreign_scan(ForeignScanState *node);
extern void mongo_rescan_foreign_scan(ForeignScanState *node);
extern void mongo_end_foreign_scan(ForeignScanState *node);
extern void mongo_explain_foreign_scan(ForeignScanState *node, ExplainState *es);

/* src/exec/async.c; see also "Asynchronous Execution" there. */
extern bool mongo_is_foreign_path_async_capable(ForeignPath *path);
extern void mongo_foreign_async_request(AsyncRequest *request);
extern void mongo_foreign_async_configure_wait(AsyncRequest *request);
extern void mongo_foreign_async_notify(AsyncRequest *request);

/*
 * mongo_log_command
 *		Log what is sent, for the setting mongo_fdw.log_remote_query.
 */
extern void mongo_log_command(const MongoScanPlan *plan, const bson_t *command);

/*
 * mongo_append_bounds
 *		Append limit, skip and batchSize to a find command.
 *
 * limit is -1 for none.  With a limit the first batch holds one document more
 * than it, so that the server closes the cursor with its first answer.
 */
extern void mongo_append_bounds(const MongoScanPlan *plan, int64 limit,
								int64 offset, bson_t *command);

/*
 * mongo_set_pipeline_bounds
 *		The same for the pipeline that is to be bound to the template.
 */
extern void mongo_set_pipeline_bounds(const MongoScanPlan *plan, int64 limit,
									  int64 offset, MongoCommandTemplate *template);

/*
 * mongo_bind_scan_command
 *		Evaluate the plan's expressions and append the plan's command number
 *		'turn' (from 0) to 'command'.
 *
 * 'rows' have come from the commands before it.  NONE when it is known without
 * asking that no row will come.
 */
extern MongoMatch mongo_bind_scan_command(ForeignScanState *node, int turn,
										  int64 rows, bson_t *command);

/*
 * mongo_scan_user_mapping
 *		The user mapping that the scan reads with, palloc'd: of the current user, or
 *		of whom the relation is checked as (a view's owner).
 */
extern UserMapping *mongo_scan_user_mapping(ForeignScanState *node);

#endif							/* MONGO_FDW_EXEC_H */
