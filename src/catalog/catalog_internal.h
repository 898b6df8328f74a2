/*-------------------------------------------------------------------------
 *
 * catalog_internal.h
 *		What the files of src/catalog share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CATALOG_INTERNAL_H
#define MONGO_FDW_CATALOG_INTERNAL_H

#include "compat.h"
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

/* mongo_require_own_table: its server; raises 42809 for what is no table of this wrapper. */
extern Oid	mongo_require_own_table(Relation relation);

/*
 * mongo_caller_mapping
 *		The current user's mapping for a server of this wrapper.
 *
 * Raises 42501 without USAGE, 42809 for a server of another wrapper, 42704 without a
 * mapping.
 */
extern UserMapping *mongo_caller_mapping(ForeignServer *server);

/*
 * mongo_try
 *		Call a function in a subtransaction; false, with *error, where it has raised
 *		what is expected, which is rolled back.  Other errors pass through.
 */
extern bool mongo_try(void (*function) (void *), void *argument,
					  bool (*is_expected) (int sqlstate), ErrorData **error);

/* mongo_ask_row_count: as mongo_remote_row_count(), asked for now whatever is remembered. */
extern double mongo_ask_row_count(UserMapping *user, const MongoTableOptions *options);

/* Documents may be large: so many of a sample come at a time. */
#define SAMPLE_BATCH	100

/*
 * sample_open
 *		A cursor over the documents of a table, or the rows that its stages make: a random
 *		sample of 'size', or all (0), as one more stage, if any, gives them.
 */
extern MongoCursor *sample_open(UserMapping *user, const MongoTableOptions *options,
								int size, const bson_t *last_stage, int batch);

/*
 * sample_columns
 *		A table's columns, for a decoder; the index of each is its attribute number - 1.
 */
extern MongoColumn *sample_columns(Relation relation, int *ncolumns);

/*-------------------------------------------------------------------------
 * The fields of a sample of documents: a tree, through which each document goes.
 *-------------------------------------------------------------------------
 */

/* BSON's types as numbers of the bits of MONGO_BSON_BIT. */
#define BSON_TYPE_COUNT	0x16
#define BSON_TYPE_OF_BIT(number) \
	((number) == 0x14 ? BSON_TYPE_MAXKEY : \
	 (number) == 0x15 ? BSON_TYPE_MINKEY : (bson_type_t) (number))

/* Kinds of values as bits of a set: BSON's types (MONGO_BSON_BIT), and these. */
#define IMPORT_WIDE			(1 << 24)	/* an Int64 beyond 2^53, too, which no
										 * double holds */
#define IMPORT_UUID			(1 << 25)	/* a Binary that is one */
#define IMPORT_OTHER		(1 << 26)	/* only jsonb holds it */
#define IMPORT_UNREADABLE	(1 << 27)	/* U+0000 or invalid UTF-8: no type
										 * holds it */

/*
 * A field, or the documents themselves (the root).  Children are in the order that
 * documents have them.
 */
typedef struct SampledField
{
	const char *name;			/* in UTF-8; NULL for a root and for elements */
	int			name_length;
	const char *path;			/* of a field that was asked for; else NULL */
	bool		is_above;		/* of such a field */
	double		counts[BSON_TYPE_COUNT];	/* documents, by type */
	uint64		seen_in;		/* number of the last document that had it */
	bson_type_t last_type;		/* in that one */
	uint32		kinds;			/* for an import */
	struct SampledField *elements;	/* of arrays; NULL: none seen */
	struct SampledField *parent;
	struct SampledField *first_child;
	struct SampledField *next;	/* sibling */
	int			nchildren;
	bool		overflow;		/* more children than anyone wants as columns */
	bool		unnameable;		/* some child's name fits into no path */
	bool		is_geometry;	/* some document is one of GeoJSON's */
} SampledField;

typedef struct FieldSample
{
	SampledField root;
	uint64		documents;
	bool		for_import;		/* note kinds and elements, too, and only
								 * fields that a path can name */
	int			nesting;		/* levels below the top that are looked at */
	MemoryContext context;
} FieldSample;

/* field_sample_create: nothing seen yet; lives in the current memory context. */
extern FieldSample *field_sample_create(bool for_import, int nesting);

/*
 * field_sample_find
 *		The field at a path (UTF-8).  With 'add' it is one that was asked for, made if need
 *		be, and documents are looked at as deep as that; else NULL where none was seen.
 */
extern SampledField *field_sample_find(FieldSample *sample, const char *path, bool add);

/* field_sample_observe: add one document.  Raises 08P01 for bytes that are not BSON. */
extern void field_sample_observe(FieldSample *sample, const uint8_t *data, uint32 length);

/*
 * sampled_field_counts
 *		How many documents have the field, be it as a null, in all and by type; *types is
 *		the set of its types (MONGO_BSON_BIT), null and undefined left out.
 *
 * sampled_field_last_type
 *		Its type in the last document as a set; 0 where that has not got it.
 *
 * For a field that was asked for, a part of the path that is an array counts as an array
 * for the whole path, as a column cannot read what is inside.
 */
extern double sampled_field_counts(const SampledField *field, double counts[BSON_TYPE_COUNT],
								   uint32 *types);
extern uint32 sampled_field_last_type(const FieldSample *sample, const SampledField *field);

/* import_is_array_of_documents: and of nothing else, whose members can be columns? */
extern bool import_is_array_of_documents(const SampledField *field);

/*
 * import_kinds_of_type
 *		What a column of a type may have held; 0 for a type that an import does not
 *		make, or jsonb.
 */
extern uint32 import_kinds_of_type(Oid type);

/*
 * import_field_type
 *		The narrowest type for all that was seen, as SQL; NULL for a document
 *		whose children are to be columns.
 *
 * 'objectid_type' is what the type objectid is called.  palloc'd or static.
 */
extern const char *import_field_type(const SampledField *field,
									 const char *objectid_type);

/* ------- The steps of an import, from import.c, which refresh.c takes too -- */

/* Beyond, PostgreSQL's tables have no room; one place is kept for __doc. */
#define IMPORT_MAX_COLUMNS	(MaxHeapAttributeNumber - 1)

/* What an import wants from where; names are in the database encoding. */
typedef struct ImportSource
{
	UserMapping *user;
	const char *server_name;
	const char *database;
	MongoImportOptions options;
	const char *objectid_type;	/* of a column of ObjectIds, as SQL */
} ImportSource;

/* A collection or view, as listCollections describes it. */
typedef struct ImportCollection
{
	const char *name;
	bool		is_view;
	const char *table_name;		/* filled by import.c */
} ImportCollection;

/* One column of a table to be. */
typedef struct ImportColumn
{
	const char *wanted;			/* the name it would have if it were free */
	const char *name;			/* the name it has; NULL: not chosen yet */
	const char *path;			/* database encoding */
	const char *type;			/* as SQL */
	bool		top_level;
	bool		indexed;
} ImportColumn;

/* One table to be. */
typedef struct ImportTable
{
	const ImportCollection *collection;
	const char *name;
	const char *unwound;		/* path of the array whose elements are the
								 * rows; NULL: documents are */
	const char *ordinality;		/* column of their numbers */
	FieldSample *sample;
	SampledField *root;			/* in it: whose children are the columns */
	List	   *columns;		/* ImportColumn *, without names */
	MongoStatistics indexes;
	bool		indexes_known;
	bool		whole_document; /* does it need a column __doc? */
	const char *unreadable;		/* path of a field no type can hold, or NULL */
} ImportTable;

/*
 * import_source
 *		What the options (DefElem *) say of a database; raises what
 *		mongo_import_options() and mongo_caller_mapping() do.
 */
extern ImportSource import_source(List *definitions, ForeignServer *server,
								  const char *database);

/*
 * import_table_read: the columns for a collection, from a sample of its documents and its
 * indexes; NULL, with a WARNING, for a view that fails.
 * import_table_name_columns: name those that have no name; those in 'names' are taken.
 */
extern ImportTable *import_table_read(const ImportSource *source,
									  const ImportCollection *collection);
extern void import_table_name_columns(List *columns, HTAB *names);

/* import_leads_index: does an index lead with this path (UTF-8)? */
extern bool import_leads_index(const ImportTable *table, const char *utf8_path);

/* import_append_column: "name type OPTIONS (...)", as CREATE and ALTER have it. */
extern void import_append_column(StringInfo command, const ImportColumn *column);

/*
 * import_list_collections
 *		The database's collections and views (ImportCollection *), by name, or the one of
 *		this name (NULL: all), without system.*; for a MongoDB user who may not list them,
 *		those of his privileges.
 */
extern List *import_list_collections(const ImportSource *source, const char *name);

/*
 * A set of used names.  import_name_reserve() takes a name, and is false if it was taken
 * or is too long to be an SQL name.
 */
extern HTAB *import_names_create(void);
extern bool import_name_reserve(HTAB *names, const char *name);

/* --------------- The indexes of a collection, asked for -------------------- */

/* What MongoDB answers when it is asked for a collection's indexes. */
typedef enum IndexAnswer
{
	INDEXES_LISTED,
	INDEXES_OF_A_VIEW,			/* there are none */
	INDEXES_OF_NOTHING,			/* there is no such collection */
	INDEXES_REFUSED				/* not allowed to know, or another error */
} IndexAnswer;

/*
 * index_list
 *		Ask for a collection's indexes, outside any transaction of MongoDB's.
 *
 * *refusal is MongoDB's message with INDEXES_REFUSED, else NULL.  Raises only what
 * the connection does: 08001, 08006, 08P01, 57014.
 */
extern IndexAnswer index_list(UserMapping *user, const char *database,
							  const char *collection, MongoStatistics *indexes,
							  const char **refusal);

/* ----------- What ANALYZE keeps beside PostgreSQL's own statistics --------- */

/*
 * mongo_learn
 *		Ask for the collection's indexes, and keep them with the number of its documents
 *		and their average size in bytes.
 *
 * Says NOTICE for a collection that does not exist, or whose indexes MongoDB does
 * not tell.  What was known before stays where this raises, or where the
 * transaction is rolled back.  Raises as index_list() does.
 */
extern void mongo_learn(Relation relation, UserMapping *user,
						const MongoTableOptions *options, double documents, double document_size);

#endif							/* MONGO_FDW_CATALOG_INTERNAL_H */
