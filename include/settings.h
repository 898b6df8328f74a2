/*-------------------------------------------------------------------------
 *
 * settings.h
 *		The settings mongo_fdw.*.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SETTINGS_H
#define MONGO_FDW_SETTINGS_H

#include "compat.h"

/* GUCs, defined by mongo_define_settings() from _PG_init(). */
extern bool mongo_enable_pushdown;
extern bool mongo_enable_join_pushdown;
extern bool mongo_enable_batched_joins;
extern bool mongo_enable_aggregate_pushdown;
extern bool mongo_enable_order_by_pushdown;

/* The library is in shared_preload_libraries. */
extern bool mongo_is_preloaded;

/* Commands that were waited for so many milliseconds are logged; -1: none. */
extern int	mongo_slow_command_ms;

/* MongoDB's plan of scans that have waited so long in all is logged, too. */
extern bool mongo_slow_command_plan;

/* An index, as the option hint names it; empty: what that option says. */
extern char *mongo_hint;

extern bool mongo_log_remote_query;
extern bool mongo_explain_remote_plans;

/* mongo_define_settings: once a process; also reserves the prefix "mongo_fdw". */
extern void mongo_define_settings(void);

#endif							/* MONGO_FDW_SETTINGS_H */
