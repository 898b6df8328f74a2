/*-------------------------------------------------------------------------
 *
 * slow_plan.h
 *		The setting mongo_fdw.slow_command_plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SLOW_PLAN_H
#define MONGO_FDW_SLOW_PLAN_H

#include "compat.h"

#include "scan.h"

/*
 * mongo_log_slow_plan
 *		At the end of a scan that has waited for at least mongo_fdw.slow_command_ms in
 *		all: ask MongoDB for the plan of its last command, and log it.
 *
 * To be asked only where the setting is on.  MongoDB chooses the plan, without running
 * the command, and may take a second.  That it cannot be reached is raised.
 */
extern void mongo_log_slow_plan(const MongoScanState *state);

#endif							/* MONGO_FDW_SLOW_PLAN_H */
