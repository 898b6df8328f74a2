/*-------------------------------------------------------------------------
 *
 * catalog.h
 *		ANALYZE, IMPORT FOREIGN SCHEMA, and what is known of collections.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CATALOG_H
#define MONGO_FDW_CATALOG_H

#include "compat.h"
#include "options.h"

#include "datatype/timestamp.h"
#include "foreign/fdwapi.h"
#include "nodes/parsenodes.h"

/*
 * mongo_analyze_foreign_table
 *		AnalyzeForeignTable of the wrapper: rows come from $sample, or from a
 *		scan of the whole collection with analyze_sampling off.
 *
 * As the table's owner.  *totalpages are those of all documents, as their number and
 * the average size of some say; planning finds the size of a document in it again.
 */
extern bool mongo_analyze_foreign_table(Relation relation,
										AcquireSampleRowsFunc *func,
										BlockNumber *totalpages);

/*
 * mongo_import_foreign_schema
 *		ImportForeignSchema of the wrapper: see docs/import.md.
 *
 * Raises HV00D for an unknown option, 22023 for a bad value, HV00Q for a database
 * without collections.
 */
extern List *mongo_import_foreign_schema(ImportForeignSchemaStmt *statement,
										 Oid serverid);

/*
 * mongo_remote_row_count
 *		How many documents a table's collection has, or how many rows a pipeline table,
 *		for the planner.
 *
 * Asked for with one command and remembered in this backend for five minutes, or
 * until the definition of the table, a server or a mapping changes.  A view counts all
 * that its pipeline returns, and 0 is the answer for a collection that does not exist.
 * Raises as mongo_run_command() and mongo_append_deriving_stages() do.
 */
extern double mongo_remote_row_count(Oid relid, UserMapping *user);

/*-------------------------------------------------------------------------
 * What ANALYZE has learned of a table's collection, for planning.
 *
 * It may be out of date: it may decide what a plan costs, and never what an answer is.
 *-------------------------------------------------------------------------
 */

/* How an index holds the values of one of its fields. */
typedef enum MongoKeyKind
{
	MONGO_KEY_ASCENDING,
	MONGO_KEY_DESCENDING,
	MONGO_KEY_HASHED,
	MONGO_KEY_WILDCARD,
	MONGO_KEY_OTHER				/* a text or geographical index, say */
} MongoKeyKind;

/* One field of an index; the path is in UTF-8, as a column's is. */
typedef struct MongoIndexKey
{
	const char *path;
	MongoKeyKind kind;
} MongoIndexKey;

/* What the first field of an index can serve, as bits of a set. */
#define MONGO_INDEX_EQUALITY	0x01	/* finding a value, or one of a list */
#define MONGO_INDEX_RANGE		0x02	/* <, <=, > and >= */
#define MONGO_INDEX_ORDER		0x04	/* giving documents, or values, in
										 * order */
#define MONGO_INDEX_ANY_USE		0x07

typedef struct MongoIndex
{
	const bson_t *document;		/* as MongoDB lists it, with "multikey" */
	const char *name;
	int			nkeys;
	MongoIndexKey *keys;
	bool		unique;
	bool		sparse;			/* lacks documents without the field */
	bool		hidden;			/* from MongoDB's planner */
	bool		partial;		/* has a filter, or a wildcard index a choice
								 * of fields */
	bool		collated;		/* has a collation other than the simple one */
	bool		multikey;		/* a document had an array in one of the
								 * fields */
	int			uses;			/* MONGO_INDEX_*; 0 for one that cannot serve */
} MongoIndex;

typedef struct MongoStatistics
{
	double		documents;		/* in the collection */
	int			nindexes;		/* 0 also where MongoDB would not tell */
	MongoIndex *indexes;
} MongoStatistics;

/*
 * mongo_statistics_of
 *		What is known of a foreign table's collection; NULL when nothing is, or
 *		when the table is now one of another collection.
 *
 * Must be called within a transaction, and holding a lock on the table.  The
 * result is valid until the end of the transaction, also when other things are
 * learned meanwhile.  Once read, it costs one look-up in a hash table.  Raises what
 * reading a table does.
 */
extern const MongoStatistics *mongo_statistics_of(Oid relid);

/*
 * mongo_reads_one_collection
 *		Is it known that reading the table reads no other collection?  It has no pipeline,
 *		and is no view, as it has indexes.
 */
extern bool mongo_reads_one_collection(Oid relid);

/*
 * mongo_key_covers
 *		Has this field of an index the values of this path (UTF-8)?  One with a
 *		wildcard has those of all paths below, but of _id.
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
 *		What the indexes that lead with this path (UTF-8) can serve: a set of
 *		MONGO_INDEX_*.  NULL knows of none.
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
 * mongo_id_is_unique
 *		Has the collection an index that makes its _id unique?  Views and time series
 *		have none.  NULL knows of none.
 */
static inline bool
mongo_id_is_unique(const MongoStatistics *statistics)
{
	for (int i = 0; statistics != NULL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (index->unique && index->nkeys == 1 && strcmp(index->keys[0].path, "_id") == 0)
			return true;
	}
	return false;
}

#endif							/* MONGO_FDW_CATALOG_H */
