/*-------------------------------------------------------------------------
 *
 * exec_internal.h
 *		Declarations that the files of src/exec share, by file.
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

/* ------------------------------- bson_table.c ------------------------------- */

/* The key of an entry, which it begins with: the bytes of a document. */
typedef struct MongoDocumentKey
{
	const uint8 *data;
	uint32		length;
} MongoDocumentKey;

extern HTAB *mongo_document_table_create(MemoryContext context, Size entrysize);
extern void *mongo_document_table_enter(HTAB *table, MemoryContext context,
										const bson_t *document, bool *found);

/* ----------------------------- temporary_file.c ----------------------------- */

/* Bytes in temporary files that can be given up, until a memory context is reset. */
typedef struct MongoFiledBytes
{
	Size		length;
	MemoryContextCallback callback;
} MongoFiledBytes;

extern void mongo_begin_filing(MongoFiledBytes *filed, MemoryContext context);
extern bool mongo_may_file(MongoFiledBytes *filed, Size length);
extern void mongo_read_temporary_file(BufFile *file, void *bytes, Size length);

/* ------------------------------ result_cache.c ------------------------------ */

/* One of its results is selected for reading and writing, or none. */
typedef struct MongoResultCache MongoResultCache;

/* How much of the selected result is cached. */
typedef enum MongoResultState
{
	MONGO_RESULT_NEW,			/* nothing */
	MONGO_RESULT_BEGUN,			/* its first rows, as the reader stopped early */
	MONGO_RESULT_WHOLE
} MongoResultState;

extern MongoResultCache *mongo_results_create(MemoryContext context);
extern void mongo_results_forget(MongoResultCache *cache);
extern void mongo_results_leave(MongoResultCache *cache);
extern MongoResultState mongo_results_begin(MongoResultCache *cache, const bson_t *command);
extern bool mongo_results_next(MongoResultCache *cache, TupleTableSlot *slot);
extern void mongo_results_add(MongoResultCache *cache, TupleTableSlot *slot);
extern void mongo_results_finish(MongoResultCache *cache);
extern bool mongo_results_is_whole(const MongoResultCache *cache);
extern void mongo_results_end(MongoResultCache *cache);

/* ------------------------------- hash_keys.c -------------------------------- */

/* A key of a hash table by rows, and its last value. */
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
	int			nasked;			/* the first keys, whose values are requested */
	TupleDesc	record;			/* with an array for each of these keys */
} MongoHashKeys;

/* Bytes of values after which they are requested. */
#define MONGO_LARGEST_KEYS	(1024 * 1024)

extern MongoHashKeys *mongo_hash_keys_create(const List *plan_keys, const List *expressions,
											 int first);
extern bool mongo_hash_keys(MongoHashKeys *keys, ExprContext *econtext, bool is_outer,
							uint32 *hash);
extern Size mongo_asked_size(const MongoHashKeys *keys);
extern void mongo_ask_for_keys(const MongoHashKeys *keys, Datum *const *values, const int *nvalues,
							   ExprContext *econtext);

/* ------------------------------ row_identity.c ------------------------------ */

/* Successive documents {_id: value}; opaque. */
typedef struct MongoIdentityLog MongoIdentityLog;

extern MongoIdentityLog *mongo_identity_log_create(MemoryContext context);
extern void mongo_identity_note(MongoIdentityLog *log, const uint8_t *data,
								uint32 length, ItemPointer ctid);
extern void mongo_identity_find(const MongoIdentityLog *log, ItemPointer ctid, bson_t *view);

/* ------------------------------ hashed_scan.c ------------------------------- */

/* A hash table of a scan's rows, which are in a file; opaque. */
typedef struct MongoHashedScan MongoHashedScan;

extern TupleTableSlot *mongo_hashed_row(ForeignScanState *scan);
extern void mongo_hashed_end(ForeignScanState *scan);
extern bool mongo_switch_plan(ForeignScanState *node);
extern bool mongo_has_batched_rows(ForeignScanState *node);
extern bool mongo_batch_begin(ForeignScanState *node);
extern bool mongo_batch_add(ForeignScanState *node);
extern bool mongo_batch_request(ForeignScanState *node);
extern TupleTableSlot *mongo_second_plan_row(ForeignScanState *node);

/* -------------------------------- explain.c --------------------------------- */

#define MONGO_UNKNOWN_PARAMETERS	"its parameters are known only when it runs"

extern bool mongo_explain_may_show(const ExplainState *es);
extern void mongo_explain_remote(ForeignScanState *node, ExplainState *es, const char *database,
								 const bson_t *command, const char *unknown, int number);

/* ------------------------------ finalize_agg.c ------------------------------ */

/* Opaque; built once per scan. */
typedef struct MongoFinalizer MongoFinalizer;

extern MongoFinalizer *mongo_finalizer_create(const MongoScanPlan *plan, int natts);
extern void mongo_finalize_row(MongoFinalizer *finalizer, MongoRowDecoder *decoder,
							   const uint8_t *data, uint32 length, Datum *values, bool *isnull);

/* --------------------------------- unwind.c --------------------------------- */

/* Makes documents of array elements; opaque. */
typedef struct MongoUnwinder MongoUnwinder;

extern MongoUnwinder *mongo_unwinder_create(const MongoScanPlan *plan);
extern void mongo_unwinder_begin(MongoUnwinder *unwinder, const uint8_t *document, uint32 length);
extern const uint8_t *mongo_unwinder_next(MongoUnwinder *unwinder, uint32 *length);

/* --------------------------------- modify.c --------------------------------- */

extern MongoUpsertLayout *mongo_begin_upsert(EState *estate, const ModifyTable *plan,
											 ResultRelInfo *rinfo);
extern bool mongo_is_row_seen(const ModifyTable *plan, const ResultRelInfo *rinfo);
extern MongoRowDecoder *mongo_table_decoder_create(MemoryContext context, Relation relation,
												   const List *attributes);

/* ------------------------------ State of a scan ----------------------------- */

/* The state of one run of a scan: from Begin or ReScan to its end or the next ReScan. */
typedef struct MongoScanRun
{
	MemoryContext context;		/* of the command and its cursor */
	int			number;			/* index of the plan's command that runs */
	bool		any_document;	/* was received */
	bool		is_unwinding;	/* the scan's unwinder may have more rows */
	int64		rows;			/* received so far */
	bool		counts;			/* 'command' is the plan's count_command */
	bool		widened;		/* MongoDB tests less than the exact
								 * conditions; PostgreSQL tests the rest */
	bson_t	   *command;		/* as sent; NULL: none */
	MongoCursor *cursor;		/* NULL: nothing to read, or no more */
	List	   *ahead;			/* of the next commands, sent with the first */
	int64		most_rows;		/* of all of them together; 0, -1: no limit */
	bool		is_local;		/* rows come from the second plan */
	int64		rows_when_left; /* 'rows' at a ReScan with the cursor open */
	TimestampTz left_at;		/* time of the first ReScan with so many rows */
} MongoScanRun;

/* Whether a write that a scan may see has been sent, so that it is too late to begin it. */
typedef enum MongoOvertaken
{
	MONGO_NOT_OVERTAKEN,
	MONGO_MAYBE_OVERTAKEN,		/* if one of its tables is that of a view */
	MONGO_OVERTAKEN
} MongoOvertaken;

/* fdw_state of the ForeignScanState. */
typedef struct MongoScanState
{
	MongoActiveScan reader;		/* first; not listed under plain EXPLAIN */
	ForeignScanState *node;
	MongoScanPlan *plan;
	MongoCommandTemplate command_template;	/* of the run's command */
	List	   *expressions;	/* ExprStates of fdw_exprs */
	List	   *relids;			/* of its foreign tables */
	UserMapping *user;			/* NULL under EXPLAIN without ANALYZE */
	Oid			userid;			/* who began it */
	int			security;		/* with these restrictions */
	const char *search_path;	/* in which its functions find names */
	struct PortalData *portal;	/* in which it began; or NULL */
	MemoryContextCallback callback; /* takes it from the list */
	bool		may_precede;	/* may be begun when another scan is */
	MongoOvertaken overtaken;
	bool		reads_collections;	/* no views, as MongoDB has said */
	MongoRowDecoder *decoder;	/* NULL under EXPLAIN without ANALYZE */
	ExprState  *hiding;			/* quals that hide rows, or NULL */
	Bitmapset  *hiding_columns; /* indexes of the columns that they read */
	struct MongoFinalizer *finalizer;	/* of averages; NULL: it has none */
	MongoUnwinder *unwinder;	/* NULL: a document is a row */
	MongoIdentityLog *identities;	/* of the rows to be changed; or NULL */
	int			nruns;			/* whose cost its commands have had; for
								 * mongo_switch_plan() */
	bool		switched;		/* to the second plan, for all runs */
	bool		batch_abandoned;	/* it takes no values of batches any more */
	MongoHashedScan *hashed;	/* of a hashed scan; NULL: not filled */
	bool		keeps_results;	/* it may be restarted */
	MongoResultCache *results;	/* NULL: none is cached yet */
	int64		reused;			/* cache hits */
	TupleTableSlot *cached_slot;	/* for cached rows; NULL: not needed yet */

	bool		started;		/* a row was requested, or begun ahead */
	bool		unread;			/* begun before a write; no row requested */
	bool		must_wait;		/* returned no row, so as not to wait */
	MongoUsage	usage;			/* for EXPLAIN ANALYZE; since the scan began */
	MongoScanRun run;
} MongoScanState;

/* ------------------------------ scan_command.c ------------------------------ */

extern MongoMatch mongo_bind_parameters(const MongoCommandTemplate *command_template,
										const List *expressions, ExprContext *econtext,
										bool *widened, bson_t *command);
extern MongoMatch mongo_bind_scan_command(ForeignScanState *node, int number, bool counts,
										  int64 rows, const char **names, bson_t *command);
extern MongoMatch mongo_bind_next_command(ForeignScanState *node);
extern List *mongo_bind_other_commands(ForeignScanState *node);

/* -------------------------------- scan_run.c -------------------------------- */

extern void mongo_scan_defer_errors(ForeignScanState *node);
extern void mongo_run_close(MongoScanRun *run);
extern void mongo_run_reset(MongoScanRun *run);
extern void mongo_scan_make_cached_slot(ForeignScanState *node);
extern bool mongo_run_begin(ForeignScanState *node);
extern void mongo_run_open(ForeignScanState *node, MongoCursor *first);
extern TupleTableSlot *mongo_run_next(ForeignScanState *node);

/* --------------------------------- ahead.c ---------------------------------- */

extern void mongo_ahead_add(ForeignScanState *node, Oid serverid);
extern void mongo_scan_start(ForeignScanState *node);

/* ------------------------------ foreign_scan.c ------------------------------ */

extern UserMapping *mongo_scan_user_mapping(ForeignScanState *node);

/* ------------------------------ write_queue.c ------------------------------- */

/* Adds the writes to one target of a statement to a queue, which writers of its collection share. */
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

extern MongoAccessScope mongo_scope_written(Oid serverid, const MongoTableOptions *options);
extern MongoAccessScope mongo_scope_read(Oid relid);
extern MongoWriter *mongo_writer_create(MemoryContext context, Relation relation,
										UserMapping *user, const char *message, CommandId command);
extern void mongo_writer_defer(MongoWriter *writer);
extern void mongo_writer_add(MongoWriter *writer, const bson_t *first, const bson_t *second);
extern void mongo_writer_finish(MongoWriter *writer);
extern Bitmapset *mongo_writer_send(MongoWriter *writer);
extern bool mongo_writer_find_and_modify(MongoWriter *writer, const bson_t *filter, const bson_t *update,
										 const bson_t *fields, MongoRowDecoder *decoder,
										 Datum *values, bool *isnull);
extern bool mongo_writer_changes_first(MongoWriter *writer, const bson_t *filter);

#endif							/* MONGO_FDW_EXEC_INTERNAL_H */
