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

/* mongo_require_own_table: return its server; raise 42809 if it is not a mongo_fdw table. */
extern Oid	mongo_require_own_table(Relation relation);

/*
 * mongo_caller_mapping
 *		Return the current user's mapping for a server of this wrapper.
 *
 * Raises 42501 without USAGE, 42809 for a server of another wrapper, 42704 without a
 * user mapping.
 */
extern UserMapping *mongo_caller_mapping(ForeignServer *server);

/*
 * mongo_try
 *		Call a function in a subtransaction.  If it raises an expected error, roll back, set
 *		*error and return false.  Other errors are raised again.
 */
extern bool mongo_try(void (*function) (void *), void *argument,
					  bool (*is_expected) (int sqlstate), ErrorData **error);

/* mongo_fetch_row_count: as mongo_remote_row_count(), but always sends a command. */
extern double mongo_fetch_row_count(UserMapping *user, const MongoTableOptions *options);

/* Documents per batch of a sample: few, as documents may be large. */
#define SAMPLE_BATCH	100

/*
 * sample_open
 *		Open a cursor over a table's documents, or over the rows that its stages produce.
 *		It returns a random sample of 'size' of them, or all if that is 0, passed through
 *		'last_stage' unless that is NULL.
 *		'usage' may be NULL.
 */
extern MongoCursor *sample_open(UserMapping *user, const MongoTableOptions *options,
								int size, const bson_t *last_stage, int batch,
								MongoUsage *usage);

/*
 * sample_columns
 *		Return a table's columns for a decoder that treats fields that do not fit in this way;
 *		their indexes are attribute numbers - 1.
 */
extern MongoColumn *sample_columns(Relation relation, MongoTypeMismatch type_mismatch,
								   int *ncolumns);

/*-------------------------------------------------------------------------
 * The fields of a sample of documents, as a tree to which each document is added.
 *-------------------------------------------------------------------------
 */

/* The number of bits that MONGO_BSON_BIT uses, and the BSON type of each. */
#define BSON_TYPE_COUNT	0x16
#define BSON_TYPE_OF_BIT(number) \
	((number) == 0x14 ? BSON_TYPE_MAXKEY : \
	 (number) == 0x15 ? BSON_TYPE_MINKEY : (bson_type_t) (number))

/* Kinds of values as bits of a set: BSON types (MONGO_BSON_BIT), and these. */
#define IMPORT_WIDE			(1 << 24)	/* also an Int64 beyond 2^53, which a
										 * double cannot represent */
#define IMPORT_UUID			(1 << 25)	/* a Binary that is a uuid */
#define IMPORT_OTHER		(1 << 26)	/* only jsonb can store it */
#define IMPORT_UNREADABLE	(1 << 27)	/* U+0000 or invalid UTF-8: no type
										 * can store it */

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
	double		counts[BSON_TYPE_COUNT];	/* documents, by type */
	uint64		seen_in;		/* number of the last document that had it */
	bson_type_t last_type;		/* in that document */
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
	bool		for_import;		/* collect kinds and elements too, and only
								 * fields that a path can name */
	int			nesting;		/* levels below the top that are examined */
	int			nfields;		/* in all levels */
	MemoryContext context;
} FieldSample;

/* field_sample_create: an empty sample, in the current memory context. */
extern FieldSample *field_sample_create(bool for_import, int nesting);

/*
 * field_sample_find
 *		Return the field at a path (UTF-8), or NULL if no document had it.  With 'add' the
 *		field becomes a requested one: it is created if needed, and documents are examined
 *		down to its level.
 */
extern SampledField *field_sample_find(FieldSample *sample, const char *path, bool add);

/* field_sample_observe: add one document.  Raises 08P01 for bytes that are not BSON. */
extern void field_sample_observe(FieldSample *sample, const uint8_t *data, uint32 length);

/*
 * sampled_field_counts
 *		Return how many documents have the field, also as a null, and set 'counts' to their
 *		numbers by type, *types to the set of its types except null and undefined.
 *
 * sampled_field_last_type
 *		Return its type in the last document as a set; 0 if that document lacks it.
 *
 * If part of a requested field's path is an array, the whole path counts as an array,
 * because a column cannot read the array's elements.
 */
extern double sampled_field_counts(const SampledField *field, double counts[BSON_TYPE_COUNT],
								   uint32 *types);
extern uint32 sampled_field_last_type(const FieldSample *sample, const SampledField *field);

/*
 * Names that were probably meant by another one: the same in other cases, or a few letters
 * changed.  NULL if there is none.  Palloc'd or static, in the database's encoding.
 *
 * nearest_collection: of the database; also NULL if the user may not list collections.
 * nearest_field: the path of a field near the one at this path that no column reads (UTF-8).
 */
extern const char *nearest_collection(UserMapping *user, const char *database, const char *name);
extern const char *nearest_field(FieldSample *sample, const char *path);

/*
 * warn_of_missing_fields
 *		Raises a WARNING for each of these attribute numbers if no document of a small sample has
 *		the column's field, but a similar one.
 */
extern void warn_of_missing_fields(Relation relation, UserMapping *user,
								   const Bitmapset *attributes);

/* import_is_array_of_documents: and of nothing else, with members that can be columns? */
extern bool import_is_array_of_documents(const SampledField *field);

/*
 * import_kinds_of_type
 *		Return the kinds of values that a column of a type can store; 0 for jsonb and for
 *		types that an import does not choose.
 */
extern uint32 import_kinds_of_type(Oid type);

/*
 * import_field_type
 *		Return the narrowest type for all values seen, as SQL; NULL for a document whose
 *		children become columns.
 *
 * 'objectid_type' is the SQL name of the type objectid.  The result is palloc'd or static.
 */
extern const char *import_field_type(const SampledField *field,
									 const char *objectid_type);

/* --------- The steps of an import, in import.c; refresh.c uses them too ---- */

/* The most columns that a table can have, except __doc. */
#define IMPORT_MAX_COLUMNS	(MaxHeapAttributeNumber - 1)

/* What an import reads, and its options; names are in the database's encoding. */
typedef struct ImportSource
{
	UserMapping *user;
	const char *server_name;
	const char *database;
	MongoImportOptions options;
	const char *objectid_type;	/* SQL type for columns of ObjectIds */
} ImportSource;

/* A collection or view, as listCollections describes it. */
typedef struct ImportCollection
{
	const char *name;
	bool		is_view;
	const char *table_name;		/* filled by import.c */
} ImportCollection;

/* One column of a table to be created. */
typedef struct ImportColumn
{
	const char *wanted;			/* the name it has if that is free */
	const char *name;			/* the final name; NULL: not chosen yet */
	const char *path;			/* database encoding */
	const char *type;			/* as SQL */
	bool		top_level;
	bool		indexed;
} ImportColumn;

/* One table to be created. */
typedef struct ImportTable
{
	const ImportCollection *collection;
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
} ImportTable;

/*
 * import_source
 *		Evaluate the options (DefElem *) of an import; raises what mongo_import_options()
 *		and mongo_caller_mapping() raise.
 */
extern ImportSource import_source(List *definitions, ForeignServer *server,
								  const char *database);

/*
 * import_table_read: derive a table from a sample of a collection's documents and from its
 * indexes; NULL, with a WARNING, for a view that fails.
 * import_table_name_columns: choose names, not in 'names', for columns without one.
 */
extern ImportTable *import_table_read(const ImportSource *source,
									  const ImportCollection *collection);
extern void import_table_name_columns(List *columns, HTAB *names);

/* import_leads_index: does an index begin with this path (UTF-8)? */
extern bool import_leads_index(const ImportTable *table, const char *utf8_path);

/* import_append_column: append "name type OPTIONS (...)", for CREATE and ALTER. */
extern void import_append_column(StringInfo command, const ImportColumn *column);

/*
 * import_list_collections
 *		List the database's collections and views (ImportCollection *) by name, without
 *		system.*; only the one with this name unless it is NULL.  If the MongoDB user may
 *		not list collections, MongoDB returns those on which the user has privileges.
 */
extern List *import_list_collections(const ImportSource *source, const char *name);

/*
 * A set of names in use.  import_name_reserve() adds a name; it returns false if the name
 * was there or is too long for an SQL name.
 */
extern HTAB *import_names_create(void);
extern bool import_name_reserve(HTAB *names, const char *name);

/* ------------------- The indexes of a collection ---------------------------- */

/* The result of listing a collection's indexes. */
typedef enum IndexListing
{
	INDEXES_LISTED,
	INDEXES_OF_A_VIEW,			/* a view has none */
	INDEXES_OF_NOTHING,			/* the collection does not exist */
	INDEXES_REFUSED				/* not authorized, or another error */
} IndexListing;

/*
 * index_list
 *		List a collection's indexes, outside of any MongoDB transaction.
 *
 * Sets *refusal to MongoDB's message if the result is INDEXES_REFUSED, else to NULL.
 * Raises only errors of the connection: 08001, 08006, 08P01, 57014.
 */
extern IndexListing index_list(UserMapping *user, const char *database,
							   const char *collection, MongoStatistics *indexes,
							   const char **refusal);

/* -------- Statistics that ANALYZE stores in addition to PostgreSQL's -------- */

/*
 * mongo_store_statistics
 *		List the collection's indexes and store them with the number of its documents,
 *		their average size in bytes, and the network's round trip time and bandwidth.
 *
 * 'sample' is what reading the sample has caused.
 *
 * Raises a WARNING for a collection that does not exist, and a NOTICE for one whose indexes
 * MongoDB does not list.  The former statistics remain if this raises an error, or if the
 * transaction is rolled back.  Raises what index_list() raises.
 */
extern void mongo_store_statistics(Relation relation, UserMapping *user,
								   const MongoTableOptions *options, double documents,
								   double document_size, const MongoUsage *sample);

#endif							/* MONGO_FDW_CATALOG_INTERNAL_H */
