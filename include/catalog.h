/*-------------------------------------------------------------------------
 *
 * catalog.h
 *		ANALYZE, IMPORT FOREIGN SCHEMA, and statistics of collections.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CATALOG_H
#define MONGO_FDW_CATALOG_H

#include "common.h"
#include "options.h"

#include "datatype/timestamp.h"
#include "foreign/fdwapi.h"
#include "nodes/parsenodes.h"

extern bool mongo_analyze_foreign_table(Relation relation,
										AcquireSampleRowsFunc *func,
										BlockNumber *totalpages);
extern void mongo_add_statistics_import(FdwRoutine *routine);
extern List *mongo_import_foreign_schema(ImportForeignSchemaStmt *statement,
										 Oid serverid);
extern double mongo_remote_row_count(Oid relid, UserMapping *user);
extern bool mongo_is_own_server(Oid serverid);

/*-------------------------------------------------------------------------
 * Statistics that ANALYZE has stored about a table's collection.
 *
 * They may be out of date, so they should only affect the cost of plans.  Results depend on
 * mongo_reads_one_collection() and mongo_id_index(), which stay true until another
 * collection, a view or a time series collection replaces the collection.
 *-------------------------------------------------------------------------
 */

/* How an index stores the values of one of its fields. */
typedef enum MongoKeyKind
{
	MONGO_KEY_ASCENDING,
	MONGO_KEY_DESCENDING,
	MONGO_KEY_HASHED,
	MONGO_KEY_WILDCARD,
	MONGO_KEY_OTHER				/* for example, of a text or geospatial index */
} MongoKeyKind;

/* One field of an index; the path is in UTF-8, like a column's path. */
typedef struct MongoIndexKey
{
	const char *path;
	MongoKeyKind kind;
} MongoIndexKey;

/* What the first field of an index can be used for, as bits of a set. */
#define MONGO_INDEX_EQUALITY	0x01	/* find a value, or a list of them */
#define MONGO_INDEX_RANGE		0x02	/* <, <=, > and >= */
#define MONGO_INDEX_ORDER		0x04	/* return documents, or values, in
										 * order */
#define MONGO_INDEX_ANY_USE		0x07

typedef struct MongoIndex
{
	const bson_t *document;		/* as listIndexes returns it, with "multikey" */
	const char *name;
	int			nkeys;
	MongoIndexKey *keys;
	bool		unique;
	bool		sparse;			/* lacks documents without the field */
	bool		hidden;			/* from MongoDB's planner */
	bool		partial;		/* has a filter, or is a wildcard index with a
								 * projection */
	bool		collated;		/* has a collation other than "simple" */
	bool		clustered;		/* is the collection itself */
	bool		multikey;		/* some document has an array in one of the
								 * fields */
	int			uses;			/* MONGO_INDEX_*; 0 if it cannot be used */
} MongoIndex;

typedef struct MongoStatistics
{
	double		documents;		/* in the collection */
	double		round_trip_time;	/* to the server, ms; -1: not measured */
	double		bandwidth;		/* bytes a second; -1: not measured */
	int			nindexes;		/* 0 also if MongoDB did not list them */
	MongoIndex *indexes;
} MongoStatistics;

extern const MongoStatistics *mongo_statistics_of(Oid relid);
extern bool mongo_reads_one_collection(Oid relid);
extern void mongo_note_scan(Oid relid, UserMapping *user, bool has_rows);
extern bool mongo_names_collection(UserMapping *user, Oid relid);

/*
 * mongo_key_covers
 *		Does this field of an index contain the values of this path (UTF-8)?  A wildcard
 *		field contains those of all paths below it, except _id.
 */
static inline bool
mongo_key_covers(const MongoIndexKey *key, const char *path)
{
	if (key->kind != MONGO_KEY_WILDCARD)
		return strcmp(key->path, path) == 0;
	return strncmp(key->path, path, strlen(key->path) - strlen("$**")) == 0 &&
		strcmp(path, "_id") != 0;
}

/*
 * mongo_index_uses
 *		Return a set of MONGO_INDEX_*: what the indexes whose first field is this path
 *		(UTF-8) can be used for.  Empty without statistics (NULL).
 */
static inline int
mongo_index_uses(const MongoStatistics *statistics, const char *path)
{
	int			uses = 0;

	if (statistics == NULL)
		return 0;
	for (int i = 0; i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (index->uses != 0 && mongo_key_covers(&index->keys[0], path))
			uses |= index->uses;
	}
	return uses;
}

/*
 * mongo_id_index
 *		Return the index that makes the collection's _id unique, or NULL.  Its collation is the
 *		collection's default.  Views and time series collections have none, nor statistics that
 *		are missing (NULL).
 */
static inline const MongoIndex *
mongo_id_index(const MongoStatistics *statistics)
{
	for (int i = 0; statistics != NULL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (index->unique && index->nkeys == 1 && strcmp(index->keys[0].path, "_id") == 0)
			return index;
	}
	return NULL;
}

#endif							/* MONGO_FDW_CATALOG_H */
