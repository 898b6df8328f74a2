/*-------------------------------------------------------------------------
 *
 * upsert.h
 *		INSERT and COPY into foreign tables with the option insert_mode.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_UPSERT_H
#define MONGO_FDW_UPSERT_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
#include "options.h"
#include "row_upsert.h"

/* One statement's; opaque. */
typedef struct MongoUpsert MongoUpsert;

/*
 * mongo_upsert_begin
 *		NULL where rows are inserted as everywhere: without the option, under ON
 *		CONFLICT, and of rows that an UPDATE moves to a partition.
 *
 * 'plan' is NULL for COPY.  Lives in the current memory context.  Raises what
 * mongo_upsert_layout_create() does, 42501 where 'userid' may not update the columns,
 * 0A000 under row-level security and views with a CHECK OPTION.
 */
extern MongoUpsert *mongo_upsert_begin(EState *estate, const ModifyTable *plan,
									   ResultRelInfo *rinfo,
									   const MongoTableOptions *options, Oid userid);

/*
 * mongo_upsert_layout
 *		How its rows are written.
 *
 * mongo_upsert_passes_over
 *		Are rows whose key is there already left as they are?
 */
extern const MongoUpsertLayout *mongo_upsert_layout(const MongoUpsert *upsert);
extern bool mongo_upsert_passes_over(const MongoUpsert *upsert);

/*
 * mongo_upsert_returns
 *		Will somebody see the row afterwards, by RETURNING or in an AFTER ROW trigger?
 *		Then each is sent by mongo_upsert_return().  Never where rows are passed over.
 */
extern bool mongo_upsert_returns(const MongoUpsert *upsert);

/*
 * mongo_upsert_return
 *		Send one upsert, now, and put the document that there is then in the slot.
 */
extern void mongo_upsert_return(MongoUpsert *upsert, EState *estate, UserMapping *user,
								const bson_t *filter, const bson_t *update,
								TupleTableSlot *slot);

/*
 * mongo_upsert_command
 *		What is sent for one row, for EXPLAIN.
 */
extern bson_t *mongo_upsert_command(const MongoUpsert *upsert);

#endif							/* MONGO_FDW_UPSERT_H */
