/*-------------------------------------------------------------------------
 *
 * compat.h
 *		The one place where versions of PostgreSQL, libmongoc and libbson differ.
 *
 * Every other file includes this one first, after postgres.h, and writes for
 * the newest API; what an older version lacks is supplied here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMPAT_H
#define MONGO_FDW_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "mongo_fdw needs PostgreSQL 15 or newer"
#endif

/*
 * libbson and PostgreSQL both want the last word on a few macro names; the
 * driver's headers go first so that PostgreSQL's definitions are the ones in
 * force in our code.
 */
#include <bson/bson.h>
#include <mongoc/mongoc.h>

/* libbson 2 has a new name for the one that trusts the keys it is given. */
#if BSON_CHECK_VERSION(2, 0, 0)
#define bson_append_array_begin bson_append_array_unsafe_begin
#endif

/* libmongoc 2 has no name any more for w=-1, which its older versions accept. */
#ifndef MONGOC_WRITE_CONCERN_W_ERRORS_IGNORED
#define MONGOC_WRITE_CONCERN_W_ERRORS_IGNORED (-1)
#endif

/*
 * Wait event sets belong to a memory context up to PostgreSQL 16 and to a
 * resource owner since; none (NULL) there means until they are freed, which
 * is what our callers do.
 */
#if PG_VERSION_NUM >= 170000
#define mongo_create_wait_event_set(context, nevents) \
	CreateWaitEventSet(NULL, (nevents))
#else
#define mongo_create_wait_event_set(context, nevents) \
	CreateWaitEventSet((context), (nevents))
#endif

/* PostgreSQL 16 made one function of those for each kind of object. */
#if PG_VERSION_NUM < 160000
#define object_aclcheck(class, object, role, mode) \
	(AssertMacro((class) == ForeignServerRelationId), \
	 pg_foreign_server_aclcheck(object, role, mode))
#endif

/* PostgreSQL 18 tells the cost-based delays of ANALYZE from those of VACUUM. */
#if PG_VERSION_NUM < 180000
#define mongo_analyze_delay_point() vacuum_delay_point()
#else
#define mongo_analyze_delay_point() vacuum_delay_point(true)
#endif

/* PostgreSQL 18 made three headers of commands/explain.h. */
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* Its base64 is of uint8, that of older ones of char. */
#if PG_VERSION_NUM < 180000
#define mongo_base64_encode(bytes, length, base64, size) \
	pg_b64_encode((const char *) (bytes), (length), (base64), (size))
#define mongo_base64_decode(base64, length, bytes, size) \
	pg_b64_decode((base64), (length), (char *) (bytes), (size))
#else
#define mongo_base64_encode pg_b64_encode
#define mongo_base64_decode pg_b64_decode
#endif

/* PostgreSQL 16 moved these out of postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/*
 * As whom a relation is read or written, InvalidOid for the current user:
 * PostgreSQL 16 moved that from range table entries to plans.
 */
#if PG_VERSION_NUM >= 160000
#define mongo_scan_check_as_user(scan, relid, estate) ((scan)->checkAsUser)
#define mongo_result_check_as_user(result, estate) \
	ExecGetResultRelCheckAsUser((result), (estate))
#else
/* a partition that rows are routed to may have no entry of its own */
#define mongo_result_check_as_user(result, estate) \
	(exec_rt_fetch((result)->ri_RangeTableIndex ? (result)->ri_RangeTableIndex : \
				   (result)->ri_RootResultRelInfo->ri_RangeTableIndex, \
				   (estate))->checkAsUser)
#define mongo_scan_check_as_user(scan, relid, estate) \
	(exec_rt_fetch((relid), (estate))->checkAsUser)
#endif

/* PostgreSQL 18 knows a collation's properties from its locale alone. */
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
 * PostgreSQL 18 orders by comparison types, which have the numbers of B-tree's
 * strategies.
 */
#if PG_VERSION_NUM >= 180000
#define mongo_pathkey_is_ascending(pathkey) ((pathkey)->pk_cmptype == COMPARE_LT)
#else
#define mongo_pathkey_is_ascending(pathkey) \
	((pathkey)->pk_strategy == BTLessStrategyNumber)
#endif

/*
 * The members of an equivalence class: PostgreSQL 18 has those of partitions
 * apart.
 */
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

/* Is this Var among what find_nonnullable_vars() gives? A set since PostgreSQL 16. */
#if PG_VERSION_NUM >= 160000
#include "access/sysattr.h"
#include "nodes/multibitmapset.h"
#define mongo_is_nonnullable(var, vars) \
	mbms_is_member((var)->varno, \
				   (var)->varattno - FirstLowInvalidHeapAttributeNumber, (vars))
#else
#define mongo_is_nonnullable(var, vars) list_member((vars), (var))
#endif

/* PostgreSQL 17 does not raise this any more, MongoDB does. */
#ifndef ERRCODE_SNAPSHOT_TOO_OLD
#define ERRCODE_SNAPSHOT_TOO_OLD MAKE_SQLSTATE('7', '2', '0', '0', '0')
#endif

/* PostgreSQL 18 has it where C23 wants it, before the declaration. */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/* PostgreSQL 17 has one argument more for these paths, 18 two. */
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

/* Since 16 a Var or PlaceHolderVar says which outer joins may have made it NULL. */
#if PG_VERSION_NUM >= 160000
#define mongo_copy_nulling(to, from) \
	((to)->varnullingrels = (from) == NULL ? NULL : bms_copy((from)->varnullingrels))
#define mongo_copy_placeholder_nulling(to, from) \
	((to)->phnullingrels = (from) == NULL ? NULL : bms_copy((from)->phnullingrels))
#else
#define mongo_copy_nulling(to, from) ((void) (from))
#define mongo_copy_placeholder_nulling(to, from) ((void) (from))
#endif

/* Since 16 the planner leaves out of GROUP BY what is redundant. */
#if PG_VERSION_NUM >= 160000
#define mongo_group_clause(root) ((root)->processed_groupClause)
#else
#define mongo_group_clause(root) ((root)->parse->groupClause)
#endif

/* A lexer of a JSON text, for strings with escapes. */
#if PG_VERSION_NUM >= 170000
#define mongo_json_lexer(json) makeJsonLexContext(NULL, (json), true)
#else
#define mongo_json_lexer(json) makeJsonLexContext((json), true)
#endif

/* PostgreSQL 17 has a setting transaction_timeout. */
#if PG_VERSION_NUM >= 170000
#define mongo_transaction_timeout_is_pending() \
	(TransactionTimeoutPending && TransactionTimeout > 0)
#else
#define mongo_transaction_timeout_is_pending() false
#endif

/*
 * A conflict with recovery: up to PostgreSQL 15 the signal's handler makes a
 * cancel or termination of it, since then a flag that is not exported.
 */
#define MONGO_RECOVERY_CONFLICT_IS_HIDDEN (PG_VERSION_NUM >= 160000)

/* The rounding of timestamps may fail softly since 16. */
#if PG_VERSION_NUM >= 160000
#define mongo_round_timestamp(timestamp, typmod) \
	AdjustTimestampForTypmod((timestamp), (typmod), NULL)
#else
#define mongo_round_timestamp(timestamp, typmod) \
	AdjustTimestampForTypmod((timestamp), (typmod))
#endif

#include "driver_calls.h"

#endif							/* MONGO_FDW_COMPAT_H */
