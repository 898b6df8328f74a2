/*-------------------------------------------------------------------------
 *
 * modify_state.h
 *		A modification in execution.  Private to src/exec.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_MODIFY_STATE_H
#define MONGO_FDW_MODIFY_STATE_H

#include "compat.h"

#include "identity.h"
#include "nodes/execnodes.h"
#include "options.h"
#include "row_document.h"
#include "utils/hsearch.h"
#include "write_queue.h"

/* Rows that core may hold for one batch; each costs it a tuple slot. */
#define LARGEST_CORE_BATCH	1000

/* The bytes of a document {_id: value}. */
typedef struct MongoIdentityKey
{
	uint32		length;
	const char *data;
} MongoIdentityKey;

/* ri_FdwState of a target relation. */
typedef struct MongoModifyState
{
	CmdType		operation;
	Relation	relation;
	MemoryContext context;		/* of the query */
	MongoTableOptions *options;
	UserMapping *user;
	MongoRowLayout *layout;
	MongoWriteKind kind;
	MongoWriteQueue *queue;
	MemoryContext row_context;	/* reset for each row */
	bson_t	   *document;		/* of the row; reused */
	bson_t	   *second;			/* its update, if any; reused */
	WCOKind		policy_check;	/* of INSERT and UPDATE: which of the policies' */

	/* INSERT and COPY */
	bool		skips_duplicates;	/* ON CONFLICT DO NOTHING */
	struct MongoRowDecoder *id_decoder; /* when a generated _id will be seen */

	/* UPDATE and DELETE */
	List	   *assigned;		/* attribute numbers that UPDATE sets */
	bool		assigns_nested; /* so what they were matters */
	bool		compares_rows;	/* a trigger may set others */
	AttrNumber	identity_attribute; /* in the plan's tuple: the ctid */
	AttrNumber	row_attribute;	/* likewise: the old row, or 0 */
	MongoIdentityLog *identities;
	HTAB	   *changed_rows;	/* NULL when no row can come twice */
	struct MongoModifyState *routed;	/* inserts of rows that UPDATE moves
										 * here, or NULL */
} MongoModifyState;

/*
 * mongo_scan_keep_identities
 *		Have a scan note in 'log' the _id of each row it returns.
 */
extern void mongo_scan_keep_identities(ForeignScanState *scan,
									   MongoIdentityLog *log);

#endif							/* MONGO_FDW_MODIFY_STATE_H */
