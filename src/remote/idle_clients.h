/*-------------------------------------------------------------------------
 *
 * idle_clients.h
 *		How long clients are kept that nobody has leased.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_IDLE_CLIENTS_H
#define MONGO_FDW_IDLE_CLIENTS_H

#include "compat.h"

#include "access/xact.h"

/*
 * mongo_idle_clients_initialize
 *		Once a process, when the pool is there.
 */
extern void mongo_idle_clients_initialize(void);

/*
 * mongo_idle_clients_sweep
 *		At a transaction's end: close those whose time is over, and have the next
 *		one end in time.
 */
extern void mongo_idle_clients_sweep(XactEvent event);

/*
 * mongo_idle_clients_make_room
 *		Close all that nobody reads from, as there are too many open files, or those to
 *		one server, as it is to have no more connections.
 */
extern void mongo_idle_clients_make_room(Oid serverid);

#endif							/* MONGO_FDW_IDLE_CLIENTS_H */
