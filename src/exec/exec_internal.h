/*-------------------------------------------------------------------------
 *
 * exec_internal.h
 *		What the files of src/exec share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXEC_INTERNAL_H
#define MONGO_FDW_EXEC_INTERNAL_H

#include "compat.h"
#include "options.h"
#include "convert.h"
#include "translate.h"
#include "plan.h"
#include "exec.h"
#include "remote.h"

#include "commands/explain.h"
#include "datatype/timestamp.h"
#include "executor/tuptable.h"
#include "foreign/foreign.h"
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"
#include "nodes/plannodes.h"
#include "storage/itemptr.h"
#include "utils/hsearch.h"
#include "utils/rel.h"

/* -------------------- rescan.c: hash tables by documents -------------------- */

/* The bytes of a document.  Each entry begins with this. */
typedef struct MongoDocumentKey
{
	const uint8 *data;
	uint32		length;
} MongoDocumentKey;

/* Entries, and their copies of the documents, live in 'context'. */
extern HTAB *mongo_document_table_create(MemoryContext context, Size entrysize);
extern void *mongo_document_table_enter(HTAB *table, MemoryContext context,
										const bson_t *document, bool *found);

/* ---------------------- rescan.c: hash values of keys ----------------------- */

typedef struct MongoKeyState
{
	ExprState  *outer;
	ExprState  *inner;
	FmgrInfo	outer_hash;
	FmgrInfo	inner_hash;
	Oid			collation;
	Oid			type;			/* of the outer side */
	int16		length;
	bool		by_value;
	char		align;
	Datum		value;			/* of the row that was hashed last */
	uint32		hash;
} MongoKeyState;

typedef struct MongoHashKeys
{
	int			nkeys;
	MongoKeyState *keys;
} MongoHashKeys;

/*
 * For MongoHashKeys of a plan: the ExprStates of their outer sides, then of their inner
 * ones, come 'first' among the expressions.  Lives in the current memory context.
 */
extern MongoHashKeys *mongo_hash_keys_create(const List *plan_keys, const List *expressions,
											 int first);

/*
 * The hash value of all keys of one side, which are left in per-tuple memory; false when
 * one is NULL, which is equal to nothing.
 */
extern bool mongo_hash_keys(MongoHashKeys *keys, ExprContext *econtext, bool is_outer,
							uint32 *hash);

/*-------------------------------------------------------------------------
 * rescan.c: a cache of the results of one scan's commands.
 *
 * Within a statement the same command has the same result, as with one snapshot.  So a
 * restarted scan reads the rows that it got before.  They are in a tuplestore, within
 * work_mem and then in a temporary file.  Several results are kept as long as they fit into
 * work_mem; one that is in a file is dropped when the next one begins.
 *-------------------------------------------------------------------------
 */

/* Opaque.  One of its results is selected, to be read or written. */
typedef struct MongoResultCache MongoResultCache;

/* How much of the selected result is cached. */
typedef enum MongoResultState
{
	MONGO_RESULT_NEW,			/* nothing */
	MONGO_RESULT_BEGUN,			/* its first rows: the reader stopped early */
	MONGO_RESULT_WHOLE
} MongoResultState;

/* Lives in 'context', and a file of it as long as CurrentResourceOwner.  NULL: none. */
extern MongoResultCache *mongo_results_create(MemoryContext context);
extern void mongo_results_end(MongoResultCache *cache);

/*
 * Select the result of 'command', at its first row.  Only the one selected last can be BEGUN;
 * further rows are then added to it.
 */
extern MongoResultState mongo_results_begin(MongoResultCache *cache, const bson_t *command);

/*
 * Store the next cached row in 'slot', of minimal tuples, where it is valid until the next call
 * of these functions; false after the last one.
 */
extern bool mongo_results_next(MongoResultCache *cache, TupleTableSlot *slot);

/*
 * These act on the selected result, if there is one; all but the first accept NULL.  add: append
 * a row, after all cached ones have been read.  finish: mark it as whole; at most a row that
 * PostgreSQL makes may follow.  forget: drop it, because its rows depend on more than the
 * command.  leave: deselect it, and drop it unless it is whole.
 */
extern void mongo_results_add(MongoResultCache *cache, TupleTableSlot *slot);
extern void mongo_results_finish(MongoResultCache *cache);
extern void mongo_results_forget(MongoResultCache *cache);
extern void mongo_results_leave(MongoResultCache *cache);

/* Is the selected result whole? */
extern bool mongo_results_is_whole(const MongoResultCache *cache);

/*-------------------------------------------------------------------------
 * rescan.c: a scan in a correlated subquery that switches to its second plan.
 *
 * Each run of the subquery sends a command with the values of its outer row.  After some
 * runs the hashed scan at the bottom of the second plan fetches all documents, once, into a
 * hash table.  See src/plan/plan_internal.h.
 *-------------------------------------------------------------------------
 */

/* Opaque. */
typedef struct MongoHashedScan MongoHashedScan;

/* The next row of a hashed scan that has its hash table; an empty slot at the end. */
extern TupleTableSlot *mongo_hashed_row(ForeignScanState *scan);

/*
 * At the start of a run: do its rows come from the second plan?  Filling the hash table is
 * tried once.  Raises what scans do.
 */
extern bool mongo_switch_plan(ForeignScanState *node);

/* The next row of the second plan; an empty slot at the end. */
extern TupleTableSlot *mongo_second_plan_row(ForeignScanState *node);

/* ---------------- scan.c: parameters of a plan, and their values --------------- */

/* Set the template's parameters from a plan's 'predicates'. */
extern void mongo_prepare_parameters(MongoCommandTemplate *template, const List *predicates);

/* mongo_command_bind() with the values of the first of 'expressions', ExprStates. */
extern MongoMatch mongo_bind_parameters(const MongoCommandTemplate *template,
										const List *expressions, ExprContext *econtext,
										bool *widened, bson_t *command);

/* ------------------- explain.c: EXPLAIN, and the log of queries ------------------ */

#define MONGO_UNKNOWN_PARAMETERS	"its parameters are known only when it runs"

/*
 * Ask MongoDB how it runs 'command', and show the winning plan, a line for each stage; under
 * ANALYZE also what it examined, for which MongoDB runs it once more (but changes nothing).  Or,
 * unless 'unknown' is NULL, show that as the reason why there is no plan.  'number' counts the
 * commands of a plan from 1, as in "Remote Command 2".  An error in MongoDB's reply is shown in
 * place of the plan; a lost connection is raised.
 */
extern void mongo_explain_remote(ForeignScanState *node, ExplainState *es,
								 const char *database, const bson_t *command,
								 const char *unknown, int number);

/*
 * May EXPLAIN show the values of parameters, and MongoDB's plan of a command?  PostgreSQL's own
 * EXPLAIN shows no values.  They may come from rows, or from policies, of any table in the
 * query, so the user must have the right to read all of these.
 */
extern bool mongo_explain_may_show(const ExplainState *es);

/* Log a command that is about to be sent, if mongo_fdw.log_remote_query asks for that. */
extern void mongo_log_command(const char *database, const bson_t *command);

/* ------------- finalize_agg.c: averages, which PostgreSQL divides -------------- */

/* Opaque: built once a scan. */
typedef struct MongoFinalizer MongoFinalizer;

/*
 * For a plan whose tuple has 'natts' attributes; NULL if it has no average.  Lives in the
 * current memory context.
 */
extern MongoFinalizer *mongo_finalizer_create(const MongoScanPlan *plan, int natts);

/* Like mongo_row_decode(), with averages in place of their sums. */
extern void mongo_finalize_row(MongoFinalizer *finalizer, MongoRowDecoder *decoder,
							   const uint8_t *data, uint32 length,
							   Datum *values, bool *isnull);

/*-------------------------------------------------------------------------
 * modify.c: the _ids of the rows that a scan gave to an UPDATE or DELETE.
 *
 * The executor carries a row identity of six bytes, a ctid, from the scan to
 * the place where the row is changed, through any join and sort in between.
 * An _id may be any BSON value and need not be a column.  So the scan notes
 * the _ids in a log, and the ctid of a row says where in it.
 *-------------------------------------------------------------------------
 */

/* Documents {_id: value}, one after the other; opaque. */
typedef struct MongoIdentityLog MongoIdentityLog;

/*
 * Note the _id of a document; *ctid then stands for it.  The document's bytes are not
 * trusted; raises 08P01 when no _id is found.
 */
extern void mongo_identity_note(MongoIdentityLog *log, const uint8_t *data,
								uint32 length, ItemPointer ctid);

/* A decoder of these columns of the table's documents; lives in 'context'. */
extern MongoRowDecoder *mongo_table_decoder_create(MemoryContext context, Relation relation,
												   const List *attributes);

/* -------------- shared.c: a scan that several processes share --------------- */

/* In shared memory; opaque. */
typedef struct MongoSharedScan MongoSharedScan;

/*
 * 'command', the next of the plan's, for the next range of the shared scan, in the current
 * memory context; NULL when all have been taken.  Splits the collection first, by a command,
 * or waits until another participant has done so.
 */
extern bson_t *mongo_take_range(MongoSharedScan *shared, const MongoScanPlan *plan,
								UserMapping *user, const bson_t *command);

/* -------------------- scan.c: a foreign scan in execution --------------------- */

/* What belongs to one run of a scan, from its first row on. */
typedef struct MongoScanRun
{
	MemoryContext context;		/* of the command and its cursor */
	int			number;			/* of the plan's command that runs, from 0 */
	bool		any_document;	/* has been received */
	int64		rows;			/* received so far */
	bool		counts;			/* 'command' is the plan's count_command */
	bson_t	   *command;		/* as sent; NULL: none */
	MongoCursor *cursor;		/* NULL: nothing to read, or no more */
	bool		is_local;		/* rows come from the second plan */
	int64		rows_when_left; /* by ReScan, with the cursor open */
	TimestampTz left_at;		/* since when no more have come */
} MongoScanRun;

/* fdw_state of the ForeignScanState. */
typedef struct MongoScanState
{
	MongoScanPlan *plan;
	MongoCommandTemplate template;	/* of the run's command */
	List	   *expressions;	/* ExprStates of fdw_exprs */
	List	   *relids;			/* of its foreign tables */
	UserMapping *user;			/* NULL under EXPLAIN without ANALYZE */
	MongoExtent extent;			/* what it reads */
	MongoRowDecoder *decoder;	/* likewise */
	struct MongoSharedScan *shared; /* with other processes; NULL: the scan is
									 * ours */
	ExprState  *hiding;			/* of scan.c; NULL: not needed so far */
	Bitmapset  *hiding_columns; /* likewise: indexes of those that it reads */
	struct MongoFinalizer *finalizer;	/* of averages; NULL: there is none */
	MongoIdentityLog *identities;	/* of the rows that it returns, to be
									 * changed; NULL: none is */
	int			nvalues;		/* runs that have sent a command */
	bool		switched;		/* to the second plan */
	MongoHashedScan *hashed;	/* of a hashed scan; NULL: not filled */
	bool		keeps_results;	/* it may be restarted */
	MongoResultCache *results;	/* NULL: none is kept so far */
	int64		reused;			/* cache hits */
	TupleTableSlot *kept_slot;	/* for their rows; NULL before any */

	bool		started;		/* a row was asked for since Begin or ReScan */
	bool		widened;		/* MongoDB tests less than the exact
								 * conditions; PostgreSQL tests the rest */
	bool		must_wait;		/* why an asynchronous scan gave no row */
	MongoUsage	usage;			/* for EXPLAIN ANALYZE; since the scan began */
	MongoScanRun run;
} MongoScanState;

/*
 * Evaluate the plan's expressions and append its command 'number', from 0, to 'command'; or the
 * count command, if there is one and 'counts'.  'rows' is the number of rows of the commands
 * before it.  'names', if not NULL, replace the values of parameters and variables, for EXPLAIN.
 * NONE if no document can match, so that nothing need be sent.
 */
extern MongoMatch mongo_bind_scan_command(ForeignScanState *node, int number, bool counts,
										  int64 rows, const char **names, bson_t *command);

/*
 * The user mapping that the scan reads with, palloc'd: of the current user, or of whom the
 * relation is checked as (a view's owner).
 */
extern UserMapping *mongo_scan_user_mapping(ForeignScanState *node);

/* Have state->kept_slot, for minimal tuples like those of the scan. */
extern void mongo_scan_make_kept_slot(ForeignScanState *node);

/*-------------------------------------------------------------------------
 * write_queue.c: a statement's writes to one collection, sent in order and in batches.
 *
 * Each target of a statement is a writer: a table of a ModifyTable node.  Those of one
 * collection share a queue, which sends what they write in the order in which they did.
 * The queue either sends each batch as soon as it is full, or keeps all of them (on disk
 * beyond one) until the statement has ended, as a scan of the statement might meet the
 * documents that it wrote.  Who may see what is kept, by SQL's rules, or writes there
 * immediately, has it sent before (order.c).
 *-------------------------------------------------------------------------
 */

typedef struct MongoWriter
{
	struct MongoWriteQueue *queue;
	Relation	relation;		/* the foreign table */
	const MongoTableOptions *options;
	UserMapping *user;
	int			batch_size;
	bool		on_demand;		/* sends by mongo_writer_send() alone */
	bool		is_command;		/* what is added is a statement, not a row;
								 * who adds it logs it */
	MongoWriteBatch form;		/* of its batches */
	int64		rows;			/* added */
	int64		sent;			/* rows sent, also those refused */
	int64		written;
} MongoWriter;

/* What is written to, or read, by the name of a foreign table. */
extern MongoExtent mongo_extent_written(Oid serverid, const MongoTableOptions *options);
extern MongoExtent mongo_extent_read(Oid relid);

/*
 * mongo_writer_create
 *		Operations on the table, with its batch_size; lives in 'context', which must be the
 *		statement's.
 *
 * 'message' says what failed, should it fail, of the table "%s".  'command' is the
 * statement's CommandId.  The kind of form, and what else differs, is to be set in the
 * writer before anything is added.
 *
 * mongo_writer_defer
 *		Its queue sends nothing before it is seen, or mongo_writer_finish().
 */
extern MongoWriter *mongo_writer_create(MemoryContext context, Relation relation,
										UserMapping *user, const char *message,
										CommandId command);
extern void mongo_writer_defer(MongoWriter *writer);

/* Add an operation of one document, or two (second may be NULL). */
extern void mongo_writer_add(MongoWriter *writer, const bson_t *first, const bson_t *second);

/* Send what the queue has not sent.  The writer may be used again. */
extern void mongo_writer_finish(MongoWriter *writer);

/*
 * Send what was added, now, and before it what the queue has kept; returns the indexes of the
 * rows refused, also as they are there already.
 */
extern Bitmapset *mongo_writer_send(MongoWriter *writer);

/*
 * Change or delete one document, now, as the writer's kind says, and decode it; false when
 * there is none.  'update' is NULL for DELETE, 'fields' where all of the document is read.
 */
extern bool mongo_writer_return(MongoWriter *writer, const bson_t *filter, const bson_t *update,
								const bson_t *fields, MongoRowDecoder *decoder,
								Datum *values, bool *isnull);

/*
 * Is the document {_id: value} changed for the first time in the statement, as far as this
 * was asked before?
 */
extern bool mongo_writer_changes_first(MongoWriter *writer, const bson_t *filter);

#endif							/* MONGO_FDW_EXEC_INTERNAL_H */
