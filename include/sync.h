/*-------------------------------------------------------------------------
 *
 * sync.h
 *		The extension mongo_sync: local tables that equal collections at one cluster time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SYNC_H
#define MONGO_FDW_SYNC_H

extern void mongo_sync_initialize(void);

#endif							/* MONGO_FDW_SYNC_H */
