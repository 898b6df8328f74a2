/*-------------------------------------------------------------------------
 *
 * catalog_internal.h
 *		Declarations that the files of src/catalog share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CATALOG_INTERNAL_H
#define MONGO_FDW_CATALOG_INTERNAL_H

#include "common.h"
#include "options.h"
#include "catalog.h"
#include "convert.h"
#include "remote.h"

#include "access/htup_details.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/hsearch.h"
#include "utils/relcache.h"

/* ------------------------------- caller.c ----------------------------------- */

extern UserMapping *mongo_caller_mapping(ForeignServer *server);
extern Oid	mongo_require_own_table(Relation relation);

/* ------------------------------- listing.c ---------------------------------- */

/* A collection or view, as listCollections describes it. */
typedef struct MongoCollection
{
	const char *name;
	bool		is_view;
	bool		is_plain;		/* neither a view nor a time series */
	const char *table_name;		/* filled by import.c */
} MongoCollection;

/* The result of listing a collection's indexes. */
typedef enum IndexListing
{
	INDEXES_LISTED,
	INDEXES_OF_A_VIEW,			/* a view has none */
	INDEXES_OF_NOTHING,			/* the collection does not exist */
	INDEXES_REFUSED				/* not authorized, or another error */
} IndexListing;

extern List *mongo_list_collections(UserMapping *user, const char *database, const char *name);
extern const char *mongo_nearest_collection(UserMapping *user, const char *database,
											const char *name);
extern void mongo_parse_indexes(const bson_iter_t *array, MongoStatistics *result);
extern IndexListing mongo_list_indexes(UserMapping *user, const char *database,
									   const char *collection, MongoStatistics *indexes,
									   const char **refusal);

/* ------------------------------- sample.c ----------------------------------- */

/* Documents per batch of a sample: few, as documents may be large. */
#define SAMPLE_BATCH	100

extern MongoCursor *mongo_sample_open(UserMapping *user, const MongoTableOptions *options,
									  int size, int64 from, const bson_t *last_stage,
									  int batch, MongoUsage *usage);

/* for 'from' */
#define SAMPLE_AT_RANDOM	(-1)
#define SAMPLE_IN_ORDER		(-2)	/* at random, but by their _id */

extern List *mongo_sample_columns(Relation relation, MongoTypeMismatch type_mismatch);
extern double mongo_count_at(const bson_iter_t *iter, double most);
extern double mongo_fetch_row_count(UserMapping *user, const MongoTableOptions *options);

/*-------------------------------------------------------------------------
 * The fields of a sample of documents, as a tree to which each document is added.
 *-------------------------------------------------------------------------
 */

/* The number of bits that MONGO_BSON_BIT uses, and the BSON type of each. */
#define MONGO_TYPE_COUNT	0x16
#define MONGO_TYPE_OF_BIT(number) \
	((number) == 0x14 ? BSON_TYPE_MAXKEY : \
	 (number) == 0x15 ? BSON_TYPE_MINKEY : (bson_type_t) (number))

/* Kinds of values as bits of a set: BSON types (MONGO_BSON_BIT), and these. */
#define IMPORT_WIDE			(1 << 24)	/* also an Int64 beyond 2^53, which a
										 * double cannot represent */
#define IMPORT_UUID			(1 << 25)	/* a Binary that is a uuid */
#define IMPORT_OTHER		(1 << 26)	/* only jsonb can store it */
#define IMPORT_UNREADABLE	(1 << 27)	/* U+0000 or invalid UTF-8: no type
										 * can store it */
#define IMPORT_KINDS		28

/*
 * A field, or the documents themselves (the root).  Children are in the order in which
 * documents contain them.
 */
typedef struct SampledField
{
	const char *name;			/* in UTF-8; NULL for a root and for elements */
	int			name_length;
	const char *path;			/* of a requested field; else NULL */
	bool		is_above;		/* does it contain a requested field? */
	double		counts[IMPORT_KINDS];	/* documents, by type; of an import by
										 * the lowest kind, and of elements
										 * their number */
	uint64		seen_in;		/* number of the last list of members that had
								 * it */
	bson_type_t last_type;		/* in that list */
	uint32		kinds;			/* of its values, for an import */
	struct SampledField *elements;	/* of its arrays; NULL: none seen */
	struct SampledField *parent;
	struct SampledField *first_child;
	struct SampledField *next;	/* sibling */
	int			nchildren;
	struct SampledField **buckets;	/* the children by hash of their names, if
									 * they are many */
	struct SampledField *chained;	/* next one in the parent's bucket */
	bool		overflow;		/* were children beyond a limit ignored? */
	bool		unnameable;		/* can no path name one of its children? */
	bool		is_geometry;	/* was some value a GeoJSON object? */
} SampledField;

typedef struct FieldSample
{
	SampledField root;
	uint64		documents;
	uint64		lists;			/* of members: documents and nested ones */
	uint64		lists_before;	/* the last document */
	bool		for_import;		/* collect kinds and elements too, and only
								 * fields that a path can name */
	bool		is_complete;	/* are these all documents? */
	int			nesting;		/* levels below the top that are examined */
	int			nfields;		/* in all levels */
	MemoryContext context;
} FieldSample;

/* Values of a field that its column cannot read. */
typedef struct ImportMisfits
{
	double		values;			/* all values of the field, or of its arrays */
	double		count;			/* those that do not fit */
	uint32		kinds;			/* of these */
} ImportMisfits;

extern FieldSample *mongo_field_sample_create(bool for_import, int nesting);
extern SampledField *mongo_field_sample_find(FieldSample *sample, const char *path, bool add);
extern void mongo_field_sample_observe(FieldSample *sample, const uint8_t *data, uint32 length);
extern double mongo_sampled_field_counts(const SampledField *field, double counts[MONGO_TYPE_COUNT],
										 uint32 *types);
extern uint32 mongo_sampled_field_last_type(const FieldSample *sample, const SampledField *field);
extern const char *mongo_nearest_field(FieldSample *sample, const char *path);
extern bool mongo_is_array_of_documents(const SampledField *field);
extern uint32 mongo_import_kinds_of_type(Oid type);
extern const char *mongo_import_field_type(const SampledField *field, uint32 held,
										   const char *objectid_type, ImportMisfits *misfits);

/* --------- The steps of an import, in import.c; refresh.c uses them too ---- */

/* The most columns that a table can have, except __doc. */
#define IMPORT_MAX_COLUMNS	(MaxHeapAttributeNumber - 1)

/* What an import reads, and its options; names are in the database's encoding. */
typedef struct ImportSource
{
	UserMapping *user;
	const char *server_name;
	const char *database;
	const char *schema;			/* of the new tables; or NULL */
	MongoImportOptions options;
	const char *objectid_type;	/* SQL type for columns of ObjectIds */
} ImportSource;

/* One column of a table to be created. */
typedef struct ImportColumn
{
	const char *wanted;			/* the name it has if that is free */
	const char *name;			/* the final name; NULL: not chosen yet */
	const char *path;			/* database encoding */
	const char *type;			/* as SQL */
	bool		top_level;
	bool		indexed;
	ImportMisfits misfits;
} ImportColumn;

/* One table to be created. */
typedef struct ImportTable
{
	const MongoCollection *collection;
	const char *name;
	const char *unwound;		/* path of the array whose elements are the
								 * rows; NULL: the documents are */
	const char *ordinality;		/* column of the elements' numbers */
	FieldSample *sample;
	SampledField *root;			/* field whose children are the columns */
	List	   *columns;		/* ImportColumn *, without names */
	MongoStatistics indexes;
	bool		indexes_known;
	bool		whole_document; /* does it need a column __doc? */
	const char *unreadable;		/* path of an IMPORT_UNREADABLE field, or NULL */
	bool		has_misfits;	/* have columns ImportMisfits? */
} ImportTable;

extern ImportSource mongo_import_source(List *definitions, ForeignServer *server,
										const char *database);
extern ImportTable *mongo_import_table_read(const ImportSource *source,
											const MongoCollection *collection);
extern void mongo_import_name_columns(List *columns, HTAB *names);
extern bool mongo_import_leads_index(const ImportTable *table, const char *utf8_path);
extern bool mongo_import_reads_null(const ImportSource *source, const ImportTable *table);
extern void mongo_import_append_column(StringInfo command, const ImportColumn *column);
extern HTAB *mongo_import_names_create(void);
extern bool mongo_import_reserve_name(HTAB *names, const char *name);

/* -------- Statistics that ANALYZE stores in addition to PostgreSQL's -------- */

extern void mongo_store_statistics(Relation relation, UserMapping *user,
								   const MongoTableOptions *options, double documents,
								   double document_size, const MongoUsage *sample);

#endif							/* MONGO_FDW_CATALOG_INTERNAL_H */
