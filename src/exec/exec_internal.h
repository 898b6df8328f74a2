/*-------------------------------------------------------------------------
 *
 * exec_internal.h
 *		Declarations that the files of src/exec share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXEC_INTERNAL_H
#define MONGO_FDW_EXEC_INTERNAL_H

#include "common.h"
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
#include "storage/buffile.h"
#include "storage/itemptr.h"
#include "utils/hsearch.h"
#include "utils/rel.h"

/* -------------------- rescan.c: hash tables by documents -------------------- */

/* The key of an entry, which it begins with: the bytes of a document. */
typedef struct MongoDocumentKey
{
	const uint8 *data;
	uint32		length;
} MongoDocumentKey;

/* Create a table; find or add an entry.  Entries and copies of documents live in 'context'. */
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
	Datum		value;			/* of the last row */
	uint32		hash;
} MongoKeyState;

typedef struct MongoHashKeys
{
	int			nkeys;
	MongoKeyState *keys;
} MongoHashKeys;

/*
 * Builds the state of a plan's keys (MongoHashKey), in the current memory context.  From index
 * 'first' on, 'expressions' are the ExprStates of the outer sides, then of the inner sides.
 */
extern MongoHashKeys *mongo_hash_keys_create(const List *plan_keys, const List *expressions,
											 int first);

/*
 * Evaluates all keys of one side, in per-tuple memory, and sets *hash to their hash value.
 * Returns false if a key is NULL, which is equal to nothing.
 */
extern bool mongo_hash_keys(MongoHashKeys *keys, ExprContext *econtext, bool is_outer,
							uint32 *hash);

/*-------------------------------------------------------------------------
 * rescan.c: a cache of the results of one scan's commands.
 *
 * Within a statement the same command has the same result, as with one snapshot.  So a
 * restarted scan reads its earlier rows again.  They are in a tuplestore, which uses work_mem
 * and beyond that a temporary file, but at most half of temp_file_limit for all of them.  Several
 * results are kept as long as they fit into work_mem; a result in a file is dropped when the next
 * one begins.
 *-------------------------------------------------------------------------
 */

/* One of its results is selected for reading and writing, or none. */
typedef struct MongoResultCache MongoResultCache;

/* How much of the selected result is cached. */
typedef enum MongoResultState
{
	MONGO_RESULT_NEW,			/* nothing */
	MONGO_RESULT_BEGUN,			/* its first rows, as the reader stopped early */
	MONGO_RESULT_WHOLE
} MongoResultState;

/* Create a cache in 'context', with its file in CurrentResourceOwner; free it (NULL: nothing). */
extern MongoResultCache *mongo_results_create(MemoryContext context);
extern void mongo_results_end(MongoResultCache *cache);

/*
 * Selects the result of 'command', at its first row.  Only the last selected result can be BEGUN;
 * further rows are then added to it.
 */
extern MongoResultState mongo_results_begin(MongoResultCache *cache, const bson_t *command);

/*
 * Stores the next cached row in 'slot', of minimal tuples, where it is valid until the next call
 * of these functions.  Returns false after the last row.
 */
extern bool mongo_results_next(MongoResultCache *cache, TupleTableSlot *slot);

/*
 * These act on the selected result, if there is one; all but the first accept NULL.  add: appends
 * a row, after all cached rows have been read, or drops all results if they become too large.
 * finish: marks it as whole; at most a row that PostgreSQL makes may follow.  forget: drops it,
 * because its rows depend on more than the command.  leave: deselects it, and drops it unless it is
 * whole.
 */
extern void mongo_results_add(MongoResultCache *cache, TupleTableSlot *slot);
extern void mongo_results_finish(MongoResultCache *cache);
extern void mongo_results_forget(MongoResultCache *cache);
extern void mongo_results_leave(MongoResultCache *cache);

/* Tells whether the selected result is whole. */
extern bool mongo_results_is_whole(const MongoResultCache *cache);

/*-------------------------------------------------------------------------
 * rescan.c: a scan in a correlated subquery that switches to its second plan.
 *
 * Each run of the subquery sends a command with the values of its outer row.  After some
 * runs the hashed scan at the bottom of the second plan fetches all documents, once, into a
 * temporary file with a hash table.  See src/plan/plan_internal.h.
 *-------------------------------------------------------------------------
 */

/* Opaque. */
typedef struct MongoHashedScan MongoHashedScan;

/* Returns the next row of a filled hashed scan; an empty slot at the end. */
extern TupleTableSlot *mongo_hashed_row(ForeignScanState *scan);

/* Closes the file of a hashed scan; NULL: there is none. */
extern void mongo_hashed_end(MongoHashedScan *hashed);

/*
 * Tells, at the start of a run, whether its rows come from the second plan.  Tries once to fill
 * the hash table.  Raises what scans raise.
 */
extern bool mongo_switch_plan(ForeignScanState *node);

/* Returns the next row of the second plan; an empty slot at the end. */
extern TupleTableSlot *mongo_second_plan_row(ForeignScanState *node);

/* ---------------- scan.c: parameters of a plan, and their values --------------- */

/* Sets the template's parameters from a plan's 'predicates'. */
extern void mongo_prepare_parameters(MongoCommandTemplate *template, const List *predicates);

/* Calls mongo_command_bind() with the values of the first of 'expressions' (ExprStates). */
extern MongoMatch mongo_bind_parameters(const MongoCommandTemplate *template,
										const List *expressions, ExprContext *econtext,
										bool *widened, bson_t *command);

/* ------------------- explain.c: EXPLAIN, and the log of queries ------------------ */

#define MONGO_UNKNOWN_PARAMETERS	"its parameters are known only when it runs"

/*
 * Shows MongoDB's winning plan of 'command', one line for each stage.  Under ANALYZE also shows
 * what MongoDB examined, for which it runs the command once more (but changes nothing).  If
 * 'unknown' is not NULL, shows that as the reason why there is no plan.  'number' counts the
 * commands of a plan from 1, as in "Remote Command 2".  Shows an error in MongoDB's reply in
 * place of the plan; raises a lost connection.
 */
extern void mongo_explain_remote(ForeignScanState *node, ExplainState *es,
								 const char *database, const bson_t *command,
								 const char *unknown, int number);

/*
 * Tells whether EXPLAIN may show the values of parameters, and MongoDB's plan of a command.
 * PostgreSQL's own EXPLAIN shows no values.  They may come from rows, or from policies, of any
 * table in the query, so the user must have the privilege to read all of them.
 */
extern bool mongo_explain_may_show(const ExplainState *es);

/* ------------- finalize_agg.c: averages, which PostgreSQL divides -------------- */

/* Opaque; built once per scan. */
typedef struct MongoFinalizer MongoFinalizer;

/*
 * Makes a finalizer for a plan whose tuple has 'natts' attributes, in the current memory context;
 * returns NULL if the plan has no average.
 */
extern MongoFinalizer *mongo_finalizer_create(const MongoScanPlan *plan, int natts);

/* Calls mongo_row_decode(), and replaces sums by averages. */
extern void mongo_finalize_row(MongoFinalizer *finalizer, MongoRowDecoder *decoder,
							   const uint8_t *data, uint32 length,
							   Datum *values, bool *isnull);

/*-------------------------------------------------------------------------
 * modify.c: the _ids of the rows that a scan returned to an UPDATE or DELETE.
 *
 * The executor passes a row identity of six bytes, a ctid, from the scan to the place where
 * the row is changed, through any join and sort in between.  An _id may be any BSON value and
 * need not be a column.  So the scan appends the _ids to a log, and the ctid of a row is the
 * _id's offset in the log.
 *-------------------------------------------------------------------------
 */

/* Successive documents {_id: value}; opaque. */
typedef struct MongoIdentityLog MongoIdentityLog;

/*
 * Appends the _id of a document to the log, and sets *ctid to its offset.  Does not trust the
 * document's bytes; raises 08P01 if it finds no _id.
 */
extern void mongo_identity_note(MongoIdentityLog *log, const uint8_t *data,
								uint32 length, ItemPointer ctid);

/* Makes a decoder of these columns of the table's documents, in 'context'. */
extern MongoRowDecoder *mongo_table_decoder_create(MemoryContext context, Relation relation,
												   const List *attributes);

/* -------------- shared.c: a scan that several processes share --------------- */

/* In shared memory; opaque. */
typedef struct MongoSharedScan MongoSharedScan;

/*
 * Returns the plan's 'command' with the condition of the next range of the shared scan, in the
 * current memory context; NULL if all ranges have been taken.  Sets *at to the cluster time of the
 * snapshot that all ranges are read in; 0: there is none.  First splits the collection, by a
 * command, or waits until another participant has done that.
 */
extern bson_t *mongo_take_range(MongoSharedScan *shared, const MongoScanPlan *plan,
								UserMapping *user, const bson_t *command, uint64 *at);

/* -------------------- scan.c: a foreign scan in execution --------------------- */

/* The state of one run of a scan: from Begin or ReScan to its end or the next ReScan. */
typedef struct MongoScanRun
{
	MemoryContext context;		/* of the command and its cursor */
	int			number;			/* index of the plan's command that runs */
	bool		any_document;	/* was received */
	int64		rows;			/* received so far */
	bool		counts;			/* 'command' is the plan's count_command */
	bool		widened;		/* MongoDB tests less than the exact
								 * conditions; PostgreSQL tests the rest */
	bson_t	   *command;		/* as sent; NULL: none */
	uint64		at;				/* MongoRead's */
	MongoCursor *cursor;		/* NULL: nothing to read, or no more */
	List	   *ahead;			/* of the plan's next commands, sent with the
								 * first */
	int64		most_rows;		/* of all of them together; 0, -1: no limit */
	bool		is_local;		/* rows come from the second plan */
	int64		rows_when_left; /* 'rows' at a ReScan with the cursor open */
	TimestampTz left_at;		/* time of the first ReScan with so many rows */
} MongoScanRun;

/* Whether a write that a scan may see has been sent, so that it is too late to begin it. */
typedef enum MongoOvertaken
{
	NOT_OVERTAKEN,
	MAYBE_OVERTAKEN,			/* if one of its tables is that of a view */
	OVERTAKEN
} MongoOvertaken;

/* fdw_state of the ForeignScanState. */
typedef struct MongoScanState
{
	MongoActiveScan reader;		/* the first member; not listed under EXPLAIN
								 * without ANALYZE */
	ForeignScanState *node;
	MongoScanPlan *plan;
	MongoCommandTemplate template;	/* of the run's command */
	List	   *expressions;	/* ExprStates of fdw_exprs */
	List	   *relids;			/* of its foreign tables */
	UserMapping *user;			/* NULL under EXPLAIN without ANALYZE */
	Oid			userid;			/* who began it */
	struct PortalData *portal;	/* in which it began; or NULL */
	MemoryContextCallback callback; /* takes it from the list */
	bool		may_precede;	/* may be begun when another scan is */
	MongoOvertaken overtaken;
	bool		reads_collections;	/* no views, as MongoDB has said */
	MongoRowDecoder *decoder;	/* NULL under EXPLAIN without ANALYZE */
	struct MongoSharedScan *shared; /* shared with other processes; or NULL */
	ExprState  *hiding;			/* the quals that hide rows (scan.c); NULL:
								 * not needed yet */
	Bitmapset  *hiding_columns; /* indexes of the columns that they read */
	struct MongoFinalizer *finalizer;	/* of averages; NULL: it has none */
	MongoIdentityLog *identities;	/* of the rows to be changed; or NULL */
	int			nruns;			/* runs that have sent a command */
	bool		switched;		/* to the second plan */
	MongoHashedScan *hashed;	/* of a hashed scan; NULL: not filled */
	bool		keeps_results;	/* it may be restarted */
	MongoResultCache *results;	/* NULL: none is cached yet */
	int64		reused;			/* cache hits */
	TupleTableSlot *cached_slot;	/* for cached rows; NULL: not needed yet */

	bool		started;		/* a row was requested since Begin or ReScan,
								 * or it was begun ahead */
	bool		unread;			/* begun before a write, and no row was
								 * requested since */
	bool		must_wait;		/* an asynchronous scan returned no row
								 * because it would have to wait */
	MongoUsage	usage;			/* for EXPLAIN ANALYZE; since the scan began */
	MongoScanRun run;
} MongoScanState;

/*
 * Evaluates the plan's expressions and appends its command 'number', from 0, to 'command'; or the
 * count command, if there is one and 'counts'.  'rows' is the number of rows of the commands
 * before it.  'names', if not NULL, replace the values of parameters and variables, for EXPLAIN.
 * Returns MONGO_MATCH_NONE if no document can match, so that nothing need be sent.
 */
extern MongoMatch mongo_bind_scan_command(ForeignScanState *node, int number, bool counts,
										  int64 rows, const char **names, bson_t *command);

/*
 * Returns the user mapping that the scan uses, palloc'd: that of the current user, or of the user
 * whose privileges are checked, such as a view's owner.
 */
extern UserMapping *mongo_scan_user_mapping(ForeignScanState *node);

/* Makes state->cached_slot, for minimal tuples of the scan. */
extern void mongo_scan_make_cached_slot(ForeignScanState *node);

/*
 * Binds the first command, and opens a cursor on it unless it matches nothing or its result is
 * cached.  'first' is the cursor of the scan that is read now if this one begins ahead, else NULL.
 */
extern void mongo_scan_start(ForeignScanState *node, MongoCursor *first);

/* ------------- ahead.c: scans that are begun before they are read ------------- */

extern void mongo_ahead_add(ForeignScanState *node, Oid serverid);
extern void mongo_ahead_send(ForeignScanState *first);
extern void mongo_check_overtaken(ForeignScanState *node);

/*-------------------------------------------------------------------------
 * write_queue.c: a statement's writes to one collection, sent in order and in batches.
 *
 * Each target of a statement (a table of a ModifyTable node) has a writer.  Writers of one
 * collection share a queue, which sends their writes in the order in which they were added.
 * The queue either sends each batch when it is full, or defers all batches to the end of the
 * statement, since its scans might read what it wrote.  It keeps one deferred batch in memory,
 * and the others on disk.  Deferred writes are sent earlier if another command writes to the
 * collection, or reads it in a snapshot that shows them (order.c).
 *-------------------------------------------------------------------------
 */

typedef struct MongoWriter
{
	struct MongoWriteQueue *queue;
	Relation	relation;		/* the foreign table */
	const MongoTableOptions *options;
	UserMapping *user;
	int			batch_size;
	bool		on_demand;		/* sends only in mongo_writer_send() */
	bool		is_command;		/* operations are whole statements, not rows;
								 * its caller logs them */
	MongoWriteBatch form;		/* template of its batches */
	int64		rows;			/* added */
	int64		sent;			/* including refused rows */
	int64		written;
} MongoWriter;

/* The scopes of writes to a foreign table, and of reads of it. */
extern MongoAccessScope mongo_scope_written(Oid serverid, const MongoTableOptions *options);
extern MongoAccessScope mongo_scope_read(Oid relid);

/*
 * mongo_writer_create
 *		Creates a writer to the table, with the table's batch_size, in 'context', which must be
 *		the statement's.
 *
 * 'message' is the message of an error, with "%s" for the table.  'command' is the statement's
 * CommandId.  The caller sets form.kind and other members before it adds an operation.
 *
 * mongo_writer_defer
 *		Makes the queue defer its batches until mongo_writer_finish(), or until another
 *		command requires them to be sent.
 */
extern MongoWriter *mongo_writer_create(MemoryContext context, Relation relation,
										UserMapping *user, const char *message,
										CommandId command);
extern void mongo_writer_defer(MongoWriter *writer);

/* Adds an operation of one document, or of two if 'second' is not NULL. */
extern void mongo_writer_add(MongoWriter *writer, const bson_t *first, const bson_t *second);

/* Sends all unsent writes of the queue.  The writer may be used again. */
extern void mongo_writer_finish(MongoWriter *writer);

/*
 * Sends deferred batches, then the added operations, at once.  Returns the indexes of refused
 * rows (see MongoWriteResult).
 */
extern Bitmapset *mongo_writer_send(MongoWriter *writer);

/*
 * Changes or deletes one document, at once, and decodes it; returns false if there is none.
 * 'update' is NULL for DELETE.  'fields' is NULL to read the whole document.
 */
extern bool mongo_writer_return(MongoWriter *writer, const bson_t *filter, const bson_t *update,
								const bson_t *fields, MongoRowDecoder *decoder,
								Datum *values, bool *isnull);

/* Records a change of the document {_id: value}; tells whether it is the statement's first. */
extern bool mongo_writer_changes_first(MongoWriter *writer, const bson_t *filter);

/* Reads so many bytes of a temporary file.  Raises XX000 if there are fewer. */
extern void mongo_read_temporary_file(BufFile *file, void *bytes, Size length);

#endif							/* MONGO_FDW_EXEC_INTERNAL_H */
