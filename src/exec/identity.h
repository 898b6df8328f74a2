/*-------------------------------------------------------------------------
 *
 * identity.h
 *		The _ids of the rows that a scan gave to an UPDATE or DELETE.
 *
 * The executor carries a row identity of six bytes, a ctid, from the scan to
 * the place where the row is changed, through any join and sort in between.
 * An _id may be any BSON value and need not be a column.  So the scan notes
 * the _ids in a log, and the ctid of a row says where in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_IDENTITY_H
#define MONGO_FDW_IDENTITY_H

#include "compat.h"

#include "storage/itemptr.h"

/* Documents {_id: value}, one after the other; opaque. */
typedef struct MongoIdentityLog MongoIdentityLog;

/*
 * mongo_identity_log_create
 *		An empty log, which lives in 'context'.
 */
extern MongoIdentityLog *mongo_identity_log_create(MemoryContext context);

/*
 * mongo_identity_note
 *		Note the _id of a document; *ctid then stands for it.
 *
 * The document's bytes are not trusted; raises 08P01 when no _id is found.
 */
extern void mongo_identity_note(MongoIdentityLog *log, const uint8_t *data,
								uint32 length, ItemPointer ctid);

/*
 * mongo_identity_find
 *		A view of the document {_id: value} that a ctid stands for.
 *
 * The view is good until the next mongo_identity_note().
 */
extern void mongo_identity_find(const MongoIdentityLog *log, ItemPointer ctid,
								bson_t *view);

#endif							/* MONGO_FDW_IDENTITY_H */
