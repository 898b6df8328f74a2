/*-------------------------------------------------------------------------
 *
 * sync_internal.h
 *		The engine of the extension mongo_sync.
 *
 * A group of tables has a position P: all changes of their collections up to that cluster time
 * are applied.  A step moves it to T.  The change stream says which documents have changed until
 * T; they are read at S = max(T, R), where R is the latest time at which rows were read.  The
 * tables equal MongoDB at T if T >= R.  docs/internals/architecture.md has the reasons.
 *
 * From the bottom: state.c (what is stored), table.c (tables and their columns), events.c (the
 * change stream), rows.c (reading documents and writing rows), copy.c (the first copy), step.c
 * (a unit of work and its rights), launcher.c (which workers run), and on top functions.c (SQL),
 * status.c (what the views show), report.c (check and compare) and worker.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SYNC_INTERNAL_H
#define MONGO_FDW_SYNC_INTERNAL_H

#include "common.h"
#include "convert.h"
#include "options.h"
#include "remote.h"
#include "sync.h"

#include "catalog/pg_type_d.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "utils/jsonb.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

/* The most documents that a query fetches, and that a reply of the stream has. */
#ifndef SYNC_BATCH
#define SYNC_BATCH		10000
#endif

/* MongoDB's codes if it cannot read at a time any more, the first one of a collection that is gone. */
#define SYNC_NAMESPACE_NOT_FOUND	26
#define SYNC_SNAPSHOT_TOO_OLD		239
#define SYNC_SNAPSHOT_UNAVAILABLE	246

/* Bytes of a key that an index holds: a third of a page, with some room. */
#define SYNC_LONGEST_KEY	2600

/* Why a member is stopped. */
#define SYNC_CHANGED_DEFINITION	"columns or options have changed"

/* ------------------------------ rights.c ---------------------------------- */

/* The rights and settings that a unit of work runs with, and what it had before. */
typedef struct SyncRights
{
	Oid			userid;
	int			security;
	int			nest_level;
} SyncRights;

extern void sync_rights_take(SyncRights *rights, Oid owner);
extern void sync_rights_return(const SyncRights *rights);

/* ------------------------------- state.c ---------------------------------- */

typedef enum SyncState
{
	SYNC_COPYING,				/* ranges are left */
	SYNC_CATCHING_UP,			/* changed documents are left, or R > T */
	SYNC_SYNCHRONIZED,
	SYNC_STOPPED
} SyncState;

/* Rows that were written. */
typedef struct SyncCounts
{
	uint64		inserted;
	uint64		updated;
	uint64		deleted;
} SyncCounts;

/* A row of mongo_sync.members. */
typedef struct SyncMember
{
	Oid			target;			/* the local table, or its new copy */
	Oid			local;
	Oid			foreign;
	SyncState	state;
	const char *reason;			/* of SYNC_STOPPED */
	const char *collection;		/* in UTF-8 */
	const char *identity;		/* its UUID; NULL: not known yet */
	const char *definition;		/* NULL: not known yet */
	uint64		read_until;		/* R */
	const char *deleted_at;		/* a column, or NULL */
	bool		key_at_end;		/* the table gets its key when all is copied */
	bool		has_unfit;		/* documents without a row are noted */
	const struct SyncMember *stored;	/* as it was loaded; NULL: it is new */

	/* of the present unit */
	List	   *keys;			/* of documents, {_id: ...}, bytea * */
	bool		is_caught_up;	/* no changed document is left */
	struct SyncTable *table;
	struct SyncRows *rows;
	SyncCounts	counts;
} SyncMember;

/* A row of mongo_sync.groups, with its members. */
typedef struct SyncGroup
{
	int			id;
	const char *name;
	Oid			owner;
	Oid			server;
	const char *database;		/* of MongoDB, in UTF-8 */
	bool		follow;
	bool		paused;
	uint64		position;		/* P */
	uint64		seen_at;
	bool		is_consistent;
	const bson_t *last_event;	/* {time, collection, key}; NULL: none yet */
	const char *replica_set;	/* its id; NULL: it may not be read */
	const char *last_error;		/* NULL: it does not fail */
	List	   *members;		/* SyncMember *, by target */
} SyncGroup;

/* A group that the workers of a database divide between them. */
typedef struct SyncListed
{
	int			id;
	bool		is_slow;		/* its units of work take long */
	bool		is_copied;		/* a range is left */
} SyncListed;

/* A value of a statement's parameter. */
typedef struct SyncValue
{
	Oid			type;
	Datum		value;
	bool		isnull;
} SyncValue;

#define SYNC_INT4(number)	((SyncValue) {INT4OID, Int32GetDatum(number), false})
#define SYNC_INT8(number)	((SyncValue) {INT8OID, Int64GetDatum((int64) (number)), false})
#define SYNC_OID(oid)		((SyncValue) {OIDOID, ObjectIdGetDatum(oid), false})
#define SYNC_BOOL(truth)	((SyncValue) {BOOLOID, BoolGetDatum(truth), false})
#define SYNC_TEXT(string)	sync_text(string)
#define SYNC_DATUM(type, datum)	((SyncValue) {(type), (datum), false})
#define SYNC_NULL(type)		((SyncValue) {(type), (Datum) 0, true})

extern SyncValue sync_text(const char *string);

#define sync_run(sql, ...) \
	sync_run_values(sql, (const SyncValue[]) {__VA_ARGS__}, lengthof(((const SyncValue[]) {__VA_ARGS__})))

extern Oid	sync_extension_owner(void);
extern uint64 sync_run_values(const char *sql, const SyncValue *values, int nvalues);
extern uint64 sync_run_as(Oid role, const char *sql, long limit);
extern Datum sync_result(uint64 row, int column, bool *isnull);
extern char *sync_result_text(uint64 row, int column);
extern SyncGroup *sync_group_load(int id);
extern UserMapping *sync_group_user(const SyncGroup *group);
extern SyncGroup *sync_group_of(Oid local);
extern List *sync_groups(void);
extern void sync_group_note_slow(int id, int milliseconds);
extern SyncMember *sync_group_member(const SyncGroup *group, Oid target);
extern bool sync_is_copying(const SyncGroup *group);
extern bool sync_group_lock(int id, bool wait);
extern void sync_group_note_position(const SyncGroup *group, uint64 changes, bool is_well);
extern void sync_member_store(SyncMember *member);
extern void sync_member_note_rows(const SyncMember *member);
extern void sync_member_forget(Oid target);
extern void sync_group_note_failure(int id, const char *message, const char *kind);

/* ------------------------------- table.c ---------------------------------- */

/* A member's tables, open and locked, and the SQL about them. */
typedef struct SyncTable
{
	Oid			foreign;
	const char *target_name;	/* qualified and quoted, as all names here */
	const char *foreign_name;
	const char *row;			/* names a row of the foreign table, as no
								 * column of it does */
	const char *is_missing;		/* the same of a column of our own */
	const char *key;			/* the foreign table's column for _id */
	Oid			key_type;		/* its base type */
	AttrNumber	key_number;
	const char *key_equals;		/* "OPERATOR(schema.=)", behind a cast */
	const char *match_function; /* mongo_match, qualified */
	bool		finds_by_value; /* MongoDB finds values of the key's type by
								 * its index */
	bool		has_mismatch;
	bool		has_triggers;	/* row triggers, which may suppress a row */
	int			ncolumns;
	const char **names;			/* of columns of both tables, the key first */
	const char **columns;		/* the same, quoted */
	const char **equals;		/* operators of the key's columns, which come
								 * first */
	const char **casts;			/* of all columns, to their base types */
	int			nkeys;
	const char *definition;
	bool		has_changed;	/* it is not the member's */
	MongoRowDecoder *decoder;	/* of {_id: ...} into the key and __mismatch */
} SyncTable;

/* Why tables cannot be synchronized. */
typedef struct SyncRefusal
{
	const char *message;
	const char *hint;
} SyncRefusal;

extern void sync_lock_tables(const List *members);
extern void sync_table_open(const SyncGroup *group, SyncMember *member);
extern void sync_table_lock_and_open(const SyncGroup *group, SyncMember *member);
extern const char *sync_list(const SyncTable *table, const char *format, const char *separator,
							 int from, int to);
extern const char *sync_row_image(const SyncTable *table, const char *name);
extern const char *sync_same_key(const SyncTable *table, const char *one, const char *other);
extern char *sync_qualified_name(Oid relid);
extern char *sync_collation_name(Oid collation);
extern const char *sync_fdw_function(Oid server, const char *name, Oid first, Oid second);
extern List *sync_key_columns(Oid foreign);
extern bool sync_is_ours(Oid foreign);
extern Oid	sync_table_owner(Oid relid);
extern bool sync_is_trusted(Oid foreign, Oid role);
extern bool sync_has_foreign_keys(Oid relid);
extern List *sync_refusals(Oid foreign, Oid local, Oid owner, bool needs_key);
extern const char *sync_refusal(Oid foreign, Oid local, Oid owner, bool needs_key, const char **hint);

/* ------------------------------- events.c --------------------------------- */

/* What a process keeps of a group between units of work. */
typedef struct SyncRun
{
	int			group;
	MemoryContext context;
	MemoryContextCallback callback;
	MongoEventStream *stream;	/* NULL: not open */
	MemoryContext stream_context;
	const char *collections;	/* what the stream was opened for */
	uint64		position;		/* the group's, when it was opened */
	uint64		known_until;	/* all events up to it are in 'events' */
	uint64		last_event;		/* time of the last one received, 0: none */
	uint64		mark;			/* of the last reply */
	bool		is_at_end;		/* the last reply was empty */
	bool		has_more;		/* a reply with events is not applied yet */
	int			batch_size;		/* of replies; less after an interrupted step */
	Tuplestorestate *events;
	TupleTableSlot *slot;
	bool		has_slot;		/* the next event is in 'slot' */
	bool		choose_time;	/* MongoDB has no snapshot of T any more */
	bool		choose_copy_time;	/* nor of the position, for ranges */
	uint64		whole_until;	/* T must reach it before anything is written,
								 * for foreign keys */
	int			failure;		/* MongoDB's code of the stream's last error */
	MongoReadTime time;			/* of reads */
	ErrorData  *error;			/* of the last unit, in 'context' */
	bool		is_copying;		/* a member is still copied */
	bool		is_hurried;		/* a time limit is no failure: another process
								 * has a longer one */
	bool		copy_fails;		/* the last range could not be copied */
	Oid			copied;			/* target of the last range */
	Oid			copy_after;		/* the last one that failed: others come first */
} SyncRun;

/* An event: the document that has changed, or what has become of the collection. */
typedef struct SyncEvent
{
	uint64		time;
	const char *collection;
	const char *operation;		/* NULL: of a document */
	bytea	   *key;			/* {_id: ...} */
} SyncEvent;

extern SyncRun *sync_run_create(int group, MemoryContext parent);
extern void sync_run_close(SyncRun *run);
extern void sync_run_open(SyncRun *run, SyncGroup *group);
extern bool sync_run_is_lost(const SyncRun *run);
extern bool sync_run_is_current(const SyncRun *run, const SyncGroup *group);
extern void sync_run_receive(SyncRun *run, SyncGroup *group, int max_wait);
extern bool sync_run_next(SyncRun *run, uint64 until, SyncEvent *event);
extern bson_t *sync_stream_command(const bson_t *collections, int count, uint64 start, int batch_size);
extern uint64 sync_present(UserMapping *user);
extern uint64 sync_oplog_begin(UserMapping *user);
extern char *sync_replica_set(UserMapping *user);
extern uint64 sync_snapshot_time(UserMapping *user, const char *database, const char *collection);
extern char *sync_require_collection(UserMapping *user, const char *database, const char *collection);
extern char *sync_collection_identity(UserMapping *user, const char *database, const char *collection);

/* -------------------------------- rows.c ---------------------------------- */

typedef struct SyncRows SyncRows;

extern const char *sync_match_json(const bson_t *match);
extern SyncRows *sync_rows_create(const SyncTable *table);
extern void sync_rows_add(SyncRows *rows, bytea *key);
extern void sync_rows_fetch(SyncRows *rows);
extern void sync_rows_fetch_range(SyncRows *rows, const char *match);
extern SyncCounts sync_rows_apply(SyncRows *rows, const SyncMember *member, uint64 time);
extern uint64 sync_rows_compare(SyncRows *rows, SyncMember *member, bool mend, uint64 time,
								Tuplestorestate *store);
extern void sync_rows_call_triggers(void);
extern void sync_rows_note_unfit(SyncRows *rows, SyncMember *member);
extern SyncCounts sync_rows_swap(const SyncMember *member, const SyncTable *table,
								 const SyncTable *copy, uint64 time);
extern uint64 sync_rows_insert_range(const SyncTable *table, const char *match);

/* -------------------------------- copy.c ---------------------------------- */

extern double sync_number_at(const bson_t *reply, const char *path);
extern void sync_copy_begin(SyncGroup *group, SyncMember *member, UserMapping *user);
extern void sync_copy_drop_table(Oid copy);
extern void sync_copy_give_up(SyncGroup *group, Oid local);
extern void sync_copy_again(SyncGroup *group, SyncMember *member);

typedef bool SyncWanted (const SyncMember *member);
extern bool sync_copy_stopped(SyncGroup *group, SyncWanted *wanted);
extern bool sync_copy_range(SyncRun *run, SyncGroup *group);
extern void sync_copy_add_key(SyncGroup *group, SyncMember *member);
extern void sync_copy_end_ranges(SyncGroup *group, SyncMember *member);
extern void sync_copy_keep_changed(const SyncMember *member, Datum *keys, int count);
extern bool sync_copy_take_changed(const SyncMember *member, int limit, List **keys);

/* -------------------------------- step.c ---------------------------------- */

typedef enum SyncResult
{
	SYNC_DONE,					/* something; there may be more */
	SYNC_AT_PRESENT,			/* all that has happened is applied */
	SYNC_BUSY,					/* another session does it */
	SYNC_PAUSED,				/* or there is no such group any more */
	SYNC_FAILED					/* run->error */
} SyncResult;

typedef SyncResult SyncUnit (SyncRun *run, int max_wait);

extern SyncResult sync_run_unit(SyncRun *run, SyncUnit *unit, int max_wait);
extern SyncUnit sync_step;
extern SyncUnit sync_copy_unit;
extern SyncUnit sync_follow_unit;
extern bool sync_position_is_lost(SyncGroup *group);
extern void sync_begin_again(SyncGroup *group);
extern uint64 sync_applied_time;

/* ------------------------------- status.c --------------------------------- */

extern SyncUnit sync_oplog_unit;

/* ------------------------------ launcher.c -------------------------------- */

/* In milliseconds. */
#define LOOK_PAUSE			1000	/* between looks at what others do */
#define RESTART_PAUSE		5000	/* after an error */
#define LAST_RESORT			3000	/* from the first signal to the second one */

/* A range of a copy has more to do than a step, which takes fewer changes after it was interrupted. */
#define TIMES_FOR_RANGE		10

extern int	sync_time_limit;

extern bool sync_wake(bool second);
extern void sync_wake_worker(void);
extern bool sync_may_run(void);
extern const char *sync_worker_problem(void);
extern bool sync_is_database_locked(Oid database);
extern void sync_read_settings(void);
extern bool sync_place_enter(Oid database, bool second, int *group);
extern void sync_place_note_group(int group);
extern bool sync_place_take_changed(void);
extern void sync_place_note_known(void);
extern void sync_place_leave(bool nothing_left, int pause);

/* ------------------------------ functions.c ------------------------------- */

extern Oid	sync_owner_of(Oid relid);
extern SyncGroup *sync_own_group(Oid local);

#endif							/* MONGO_FDW_SYNC_INTERNAL_H */
