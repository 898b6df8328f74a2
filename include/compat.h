/*-------------------------------------------------------------------------
 *
 * compat.h
 *		Differences between versions of PostgreSQL, libmongoc and libbson.
 *
 * Every other file includes this one first, after postgres.h, and is written for the
 * newest API; this file adds what an older version lacks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMPAT_H
#define MONGO_FDW_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "mongo_fdw needs PostgreSQL 15 or newer"
#endif

/*
 * libbson and PostgreSQL both define a few macros.  The driver's headers come first, so that
 * PostgreSQL's definitions apply in our code.
 */
#include <bson/bson.h>
#include <mongoc/mongoc.h>

/* libbson 2 has a new name for the function that does not check keys. */
#if !BSON_CHECK_VERSION(2, 0, 0)
#define bson_append_array_unsafe_begin bson_append_array_begin
#endif

/* libmongoc 2 has no macro for w=-1, which older versions accept. */
#ifndef MONGOC_WRITE_CONCERN_W_ERRORS_IGNORED
#define MONGOC_WRITE_CONCERN_W_ERRORS_IGNORED (-1)
#endif

/*
 * A wait event set belongs to a memory context up to PostgreSQL 16, and to a resource owner
 * since 17.  Without an owner (NULL) it lives until it is freed, as our callers do.
 */
#if PG_VERSION_NUM >= 170000
#define mongo_create_wait_event_set(context, nevents) \
	CreateWaitEventSet(NULL, (nevents))
#else
#define mongo_create_wait_event_set(context, nevents) \
	CreateWaitEventSet((context), (nevents))
#endif

/* PostgreSQL 16 replaced the functions for each kind of object by one. */
#if PG_VERSION_NUM < 160000
#define object_aclcheck(class, object, role, mode) \
	(AssertMacro((class) == ForeignServerRelationId), \
	 pg_foreign_server_aclcheck(object, role, mode))
#endif

/* PostgreSQL 18 distinguishes cost-based delays of ANALYZE from those of VACUUM. */
#if PG_VERSION_NUM < 180000
#define mongo_analyze_delay_point() vacuum_delay_point()
#else
#define mongo_analyze_delay_point() vacuum_delay_point(true)
#endif

/* PostgreSQL 18 split commands/explain.h into three headers. */
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* PostgreSQL 18's base64 functions take uint8, older ones char. */
#if PG_VERSION_NUM < 180000
#define mongo_base64_encode(bytes, length, base64, size) \
	pg_b64_encode((const char *) (bytes), (length), (base64), (size))
#define mongo_base64_decode(base64, length, bytes, size) \
	pg_b64_decode((base64), (length), (char *) (bytes), (size))
#else
#define mongo_base64_encode pg_b64_encode
#define mongo_base64_decode pg_b64_decode
#endif

/*
 * PostgreSQL 17 has loops over lists that declare a variable for the element.  The outer loops
 * run once, for the declarations.
 */
#if PG_VERSION_NUM < 170000
#define mongo_foreach(type, variable, list, element) \
	for (bool variable##_once = true; variable##_once;) \
		for (type variable = 0; variable##_once; variable##_once = false) \
			for (ForEachState variable##_state = {(list), 0}; \
				 variable##_state.i < list_length(variable##_state.l) && \
				 (variable = element(&variable##_state.l->elements[variable##_state.i]), true); \
				 variable##_state.i++)
#define foreach_ptr(type, variable, list) mongo_foreach(type *, variable, list, lfirst)
#define foreach_node(type, variable, list) mongo_foreach(type *, variable, list, (type *) lfirst)
#define foreach_int(variable, list) mongo_foreach(int, variable, list, lfirst_int)
#define foreach_oid(variable, list) mongo_foreach(Oid, variable, list, lfirst_oid)
#endif

/* PostgreSQL 18 has generated columns that are not stored. */
#if PG_VERSION_NUM < 180000
#define ATTRIBUTE_GENERATED_VIRTUAL 'v'
#endif

/* PostgreSQL 16 moved these macros out of postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/*
 * The role that reads or writes a relation; InvalidOid: the current user.  PostgreSQL 16
 * moved it from range table entries to plans, and their permissions to a list of their own.
 */
#if PG_VERSION_NUM >= 160000
#define mongo_scan_check_as_user(scan, relid, estate) ((scan)->checkAsUser)
#define mongo_result_check_as_user(result, estate) \
	ExecGetResultRelCheckAsUser((result), (estate))
typedef struct RTEPermissionInfo MongoPermissions;
#define mongo_permissions(estate) ((estate)->es_rteperminfos)
#else
/* a partition that rows are routed to may have no range table entry of its own */
#define mongo_result_check_as_user(result, estate) \
	(exec_rt_fetch((result)->ri_RangeTableIndex ? (result)->ri_RangeTableIndex : \
				   (result)->ri_RootResultRelInfo->ri_RangeTableIndex, \
				   (estate))->checkAsUser)
#define mongo_scan_check_as_user(scan, relid, estate) \
	(exec_rt_fetch((relid), (estate))->checkAsUser)
typedef struct RangeTblEntry MongoPermissions;
#define mongo_permissions(estate) ((estate)->es_range_table)
#endif

/* PostgreSQL 18 has a collation's properties in its locale only. */
#if PG_VERSION_NUM >= 180000
#define mongo_collate_is_c(collation) \
	(pg_newlocale_from_collation(collation)->collate_is_c)
#define mongo_ctype_is_c(collation) \
	(pg_newlocale_from_collation(collation)->ctype_is_c)
#else
#define mongo_collate_is_c(collation) lc_collate_is_c(collation)
#define mongo_ctype_is_c(collation) lc_ctype_is_c(collation)
#endif

/*
 * PostgreSQL 18 sorts by comparison types, whose numbers are those of B-tree strategies.
 */
#if PG_VERSION_NUM >= 180000
#define mongo_pathkey_is_ascending(pathkey) ((pathkey)->pk_cmptype == COMPARE_LT)
#else
#define mongo_pathkey_is_ascending(pathkey) \
	((pathkey)->pk_strategy == BTLessStrategyNumber)
#endif

/* PostgreSQL 18 stores an equivalence class's members for partitions separately. */
#if PG_VERSION_NUM >= 180000
#include "optimizer/paths.h"
#define MongoMembers EquivalenceMemberIterator
#define mongo_members_begin(members, class, relids) \
	setup_eclass_member_iterator((members), (class), (relids))
#define mongo_members_next(members) eclass_member_iterator_next(members)
#else
#include "nodes/pg_list.h"
typedef struct MongoMembers
{
	const List *list;
	int			next;
} MongoMembers;
#define mongo_members_begin(members, class, relids) \
	((members)->list = (class)->ec_members, (members)->next = 0)
#define mongo_members_next(members) \
	((members)->next >= list_length((members)->list) ? NULL : \
	 (EquivalenceMember *) list_nth((members)->list, (members)->next++))
#endif

/* Is a Var in the result of find_nonnullable_vars(), which is a set since PostgreSQL 16? */
#if PG_VERSION_NUM >= 160000
#include "access/sysattr.h"
#include "nodes/multibitmapset.h"
#define mongo_is_nonnullable(var, vars) \
	mbms_is_member((var)->varno, \
				   (var)->varattno - FirstLowInvalidHeapAttributeNumber, (vars))
#else
#define mongo_is_nonnullable(var, vars) list_member((vars), (var))
#endif

/* PostgreSQL 17 does not raise this error any more, but MongoDB does. */
#ifndef ERRCODE_SNAPSHOT_TOO_OLD
#define ERRCODE_SNAPSHOT_TOO_OLD MAKE_SQLSTATE('7', '2', '0', '0', '0')
#endif

/* PostgreSQL 18 has it before the declaration, where C23 requires it. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

#if PG_VERSION_NUM < 170000
#define INTERVAL_NOT_FINITE(interval)	false
#endif

/* These paths have one more argument in PostgreSQL 17, and another one in 18. */
#if PG_VERSION_NUM >= 180000
#define MONGO_NO_DISABLED_NODES	0,
#else
#define MONGO_NO_DISABLED_NODES
#endif
#if PG_VERSION_NUM >= 170000
#define MONGO_NO_RESTRICTINFO	NIL,
#else
#define MONGO_NO_RESTRICTINFO
#endif

/*
 * PostgreSQL 18 counts what a path has that settings disable.  In PostgreSQL 19 advice for plans
 * leaves fewer forms to a join than the settings do; a join of another form counts as disabled.
 * So does a custom scan below another join, which pg_plan_advice fails to describe.
 */
#if PG_VERSION_NUM >= 190000
#include "optimizer/extendplan.h"
#define mongo_join_is_advised_against(root, joinrel, extra) \
	(((root)->glob->default_pgs_mask & ~(extra)->pgs_mask & PGS_JOIN_ANY) != 0 || \
	 (!bms_is_subset((root)->all_baserels, (joinrel)->relids) && \
	  GetPlannerGlobalExtensionState((root)->glob, GetPlannerExtensionId("pg_plan_advice")) != NULL))
#else
#define mongo_join_is_advised_against(root, joinrel, extra) ((void) (extra), 0)
#endif
#if PG_VERSION_NUM >= 180000
#define mongo_join_disabled(path, root, outer, extra) \
	((path)->disabled_nodes = (outer)->disabled_nodes + \
	 mongo_join_is_advised_against((root), (path)->parent, (extra)))
#define mongo_disabled_nodes(path)	(path)->disabled_nodes,
#define mongo_copy_disabled_nodes(plan, below) ((plan)->disabled_nodes = (below)->disabled_nodes)
#else
#define mongo_join_disabled(path, root, outer, extra) ((void) (extra))
#define mongo_disabled_nodes(path)
#define mongo_copy_disabled_nodes(plan, below) ((void) (below))
#endif

/* PostgreSQL 19 may aggregate before it joins; the rows of such a relation have partial results. */
#if PG_VERSION_NUM >= 190000
#define mongo_has_partial_results(rel) IS_GROUPED_REL(rel)
#else
#define mongo_has_partial_results(rel) false
#endif

/* Make a path the last resort, even after paths that settings disable once or several times. */
#define MONGO_DISABLED_TIMES	1000
#if PG_VERSION_NUM >= 180000
#define mongo_count_disabled(path) ((path)->disabled_nodes += MONGO_DISABLED_TIMES)
#else
#define mongo_count_disabled(path) ((void) (path))
#endif
#define mongo_disable_path(path) \
	(mongo_count_disabled(path), \
	 (path)->startup_cost += MONGO_DISABLED_TIMES * disable_cost, \
	 (path)->total_cost += MONGO_DISABLED_TIMES * disable_cost)

/* Since PostgreSQL 16 a Var or PlaceHolderVar lists outer joins that may make it NULL. */
#if PG_VERSION_NUM >= 160000
#define mongo_copy_nulling(to, from) \
	((to)->varnullingrels = (from) == NULL ? NULL : bms_copy((from)->varnullingrels))
#define mongo_copy_placeholder_nulling(to, from) \
	((to)->phnullingrels = (from) == NULL ? NULL : bms_copy((from)->phnullingrels))
#else
#define mongo_copy_nulling(to, from) ((void) (from))
#define mongo_copy_placeholder_nulling(to, from) ((void) (from))
#endif

/* Since PostgreSQL 16 the planner removes redundant expressions from GROUP BY. */
#if PG_VERSION_NUM >= 160000
#define mongo_group_clause(root) ((root)->processed_groupClause)
#else
#define mongo_group_clause(root) ((root)->parse->groupClause)
#endif

/* Create a lexer for a JSON text that decodes escapes in strings. */
#if PG_VERSION_NUM >= 170000
#define mongo_json_lexer(json) makeJsonLexContext(NULL, (json), true)
#else
#define mongo_json_lexer(json) makeJsonLexContext((json), true)
#endif

/* PostgreSQL 17 has the setting transaction_timeout. */
#if PG_VERSION_NUM >= 170000
#define mongo_transaction_timeout_is_pending() \
	(TransactionTimeoutPending && TransactionTimeout > 0)
#else
#define mongo_transaction_timeout_is_pending() false
#endif

/*
 * Up to PostgreSQL 15 the signal handler turns a recovery conflict into a cancel or a
 * termination.  Since 16 it sets a flag that is not exported.
 */
#define MONGO_RECOVERY_CONFLICT_IS_HIDDEN (PG_VERSION_NUM >= 160000)

/* Since PostgreSQL 16 the rounding of timestamps may report errors softly. */
#if PG_VERSION_NUM >= 160000
#define mongo_round_timestamp(timestamp, typmod) \
	AdjustTimestampForTypmod((timestamp), (typmod), NULL)
#else
#define mongo_round_timestamp(timestamp, typmod) \
	AdjustTimestampForTypmod((timestamp), (typmod))
#endif

/* PostgreSQL 17 lets extensions name what they wait for. */
#if PG_VERSION_NUM >= 170000
#include "utils/wait_event.h"
#define mongo_new_wait_event(name) WaitEventExtensionNew(name)
#else
#define mongo_new_wait_event(name) ((void) (name), PG_WAIT_EXTENSION)
#endif

/* PostgreSQL 19 keeps the result and the stack of a jsonb that is built in one state. */
#include "utils/jsonb.h"
#if PG_VERSION_NUM >= 190000
typedef JsonbInState MongoJsonbState;
#define mongo_push_jsonb(state, token, value) pushJsonbValue((state), (token), (value))
#else
typedef struct MongoJsonbState
{
	JsonbValue *result;			/* of the outermost container */
	JsonbParseState *parseState;
} MongoJsonbState;
#define mongo_push_jsonb(state, token, value) \
	((void) ((state)->result = pushJsonbValue(&(state)->parseState, (token), (value))))
#endif

/* PostgreSQL 19 computes the places of columns when a tuple descriptor is complete. */
#if PG_VERSION_NUM < 190000
#define TupleDescFinalize(description) ((void) (description))
#endif

/* Is a table, by its index in the range table, a target of the statement? */
#if PG_VERSION_NUM >= 190000
#define mongo_is_result_relation(statement, index) \
	((statement) != NULL && bms_is_member((index), (statement)->resultRelationRelids))
#else
#define mongo_is_result_relation(statement, index) \
	((statement) != NULL && list_member_int((statement)->resultRelations, (index)))
#endif

/* PostgreSQL 19 has already removed the duplicates of an outer side that is to be unique. */
#if PG_VERSION_NUM >= 190000
#define mongo_unique_path(root, rel, path, sjinfo) (path)
#else
#define mongo_unique_path(root, rel, path, sjinfo) \
	((Path *) create_unique_path((root), (rel), (path), (sjinfo)))
#endif

/* PostgreSQL 19 passes the state of an EXPLAIN to the planner. */
#if PG_VERSION_NUM >= 190000
#define MONGO_EXPLAIN_PARAMETER	, ExplainState *explain_state
#define MONGO_EXPLAIN_ARGUMENT	, explain_state
#else
#define MONGO_EXPLAIN_PARAMETER
#define MONGO_EXPLAIN_ARGUMENT
#endif

/* A hash table in shared memory with a fixed number of entries. */
#if PG_VERSION_NUM >= 190000
#define mongo_shmem_hash(name, entries, control, flags) \
	ShmemInitHash((name), (entries), (control), (flags) | HASH_FIXED_SIZE)
#else
#define mongo_shmem_hash(name, entries, control, flags) \
	ShmemInitHash((name), (entries), (entries), (control), (flags) | HASH_FIXED_SIZE)
#endif

/* PostgreSQL 19 asks a wrapper for a table's statistics before it samples the table. */
#if PG_VERSION_NUM >= 190000
#define mongo_set_import_statistics(routine, function) \
	((routine)->ImportForeignStatistics = (function))
#else
#define mongo_set_import_statistics(routine, function) ((void) (routine), (void) (function))
#endif

/* Delete a row for all snapshots, without waiting for another transaction. */
#if PG_VERSION_NUM >= 190000
#define mongo_table_tuple_delete(table, tid, command, failure) \
	table_tuple_delete((table), (tid), (command), 0, InvalidSnapshot, InvalidSnapshot, false, \
					   (failure))
#else
#define mongo_table_tuple_delete(table, tid, command, failure) \
	table_tuple_delete((table), (tid), (command), InvalidSnapshot, InvalidSnapshot, false, \
					   (failure), false)
#endif

/*
 * Conversions of dates and timestamps that return infinity for what is out of range.
 * PostgreSQL 19 reports that in an ErrorSaveContext.
 */
#if PG_VERSION_NUM >= 190000
#include "nodes/miscnodes.h"
#define mongo_date_to_timestamptz(date) \
	date2timestamptz_safe((date), (Node *) &(ErrorSaveContext) {.type = T_ErrorSaveContext})
#define mongo_date_to_timestamp(date) \
	date2timestamp_safe((date), (Node *) &(ErrorSaveContext) {.type = T_ErrorSaveContext})
#define mongo_timestamp_to_timestamptz(timestamp) \
	timestamp2timestamptz_safe((timestamp), (Node *) &(ErrorSaveContext) {.type = T_ErrorSaveContext})
#else
#define mongo_date_to_timestamptz(date) date2timestamptz_opt_overflow((date), &(int) {0})
#define mongo_date_to_timestamp(date) date2timestamp_opt_overflow((date), &(int) {0})
#define mongo_timestamp_to_timestamptz(timestamp) \
	timestamp2timestamptz_opt_overflow((timestamp), &(int) {0})
#endif

/* Since PostgreSQL 19 such a worker is ended for the sake of its database's DROP, RENAME and copies. */
#ifndef BGWORKER_INTERRUPTIBLE
#include "postmaster/bgworker.h"
#endif
#ifndef BGWORKER_INTERRUPTIBLE
#define BGWORKER_INTERRUPTIBLE 0
#endif

#include "driver_calls.h"

#endif							/* MONGO_FDW_COMPAT_H */
