/*-------------------------------------------------------------------------
 *
 * import.h
 *		The steps of IMPORT FOREIGN SCHEMA, for src/catalog only.
 *
 * import.c and refresh.c write the commands, from what import_remote.c reads,
 * import_fields.c infers, import_table.c arranges and import_names.c names.  What
 * these return lives in the current memory context; those that ask MongoDB raise as
 * mongo_cursor_next() does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_IMPORT_H
#define MONGO_FDW_IMPORT_H

#include "compat.h"

#include "access/htup_details.h"
#include "foreign/foreign.h"
#include "import_fields.h"
#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/hsearch.h"

/* Beyond, PostgreSQL's tables have no room; one place is kept for __doc. */
#define IMPORT_MAX_COLUMNS	(MaxHeapAttributeNumber - 1)

/* What an import wants from where; names are in the database encoding. */
typedef struct ImportSource
{
	UserMapping *user;
	const char *server_name;
	const char *database;
	const char *schema;			/* where tables are to be; NULL: said
								 * elsewhere */

	/* what OPTIONS says, see docs/import.md */
	int			sample_size;	/* documents */
	int			nesting;		/* levels of documents that become columns */
	bool		import_views;
	bool		lower_case_names;
	bool		skip_existing;	/* tables of a name that is taken */
	bool		array_tables;	/* for arrays of documents, too */
	const char *objectid_type;	/* of a column of ObjectIds, as SQL */
} ImportSource;

/* A collection or view, as listCollections describes it. */
typedef struct ImportCollection
{
	const char *name;
	bool		is_view;
	const bson_t *validator;	/* NULL: none */
	const char *table_name;		/* filled by import.c */
} ImportCollection;

/* One column of a table to be. */
typedef struct ImportColumn
{
	const char *wanted;			/* the name it would have if it were free */
	const char *name;			/* the name it has; NULL: not chosen yet */
	const char *path;			/* database encoding */
	const char *type;			/* as SQL */
	const ImportField *field;	/* what was seen */
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
	ImportField *root;
	List	   *columns;		/* ImportColumn *, without names */
	List	   *indexed_paths;	/* char *, UTF-8 */
	bool		indexes_known;
	bool		whole_document; /* does it need a column __doc? */
	const char *unreadable;		/* path of a field no type can hold, or NULL */
} ImportTable;

/*
 * import_read_options
 *		A source with what the options (DefElem *) say; the rest is zero.
 *
 * Raises HV00D for an unknown option, 22023 for a bad value.
 */
extern ImportSource import_read_options(List *definitions);

/*
 * import_name_tables
 *		Fill in the names of the tables for all collections, the excluded ones too,
 *		so that a name does not depend on what else is imported.  Returns them all.
 */
extern HTAB *import_name_tables(const ImportSource *source, List *collections,
								Oid namespace);

/*
 * import_table_read
 *		The columns for a collection, from a sample of its documents, its
 *		validator and its indexes; NULL, with a WARNING, for a view that fails.
 *
 * import_array_tables
 *		For a table that was read, one (ImportTable *) for each array of documents,
 *		named after both; those in 'names' are taken.
 *
 * import_table_name_columns
 *		Give names to the columns that have none; those in 'names' are taken.
 *
 * import_create_command
 *		CREATE FOREIGN TABLE, and the warnings that come with it.
 */
extern ImportTable *import_table_read(const ImportSource *source,
									  const ImportCollection *collection);
extern List *import_array_tables(const ImportSource *source, const ImportTable *table,
								 HTAB *names);
extern void import_table_name_columns(List *columns, HTAB *names);
extern char *import_create_command(const ImportSource *source, ImportTable *table);

/* import_append_column: "name type OPTIONS (...)", as CREATE and ALTER have it. */
extern void import_append_column(StringInfo command, const ImportColumn *column);

/*
 * import_list_collections
 *		The database's collections and views (ImportCollection *), by name,
 *		without system.*.  For a MongoDB user who may not list them all, those that he
 *		has a privilege for, without validators.
 */
extern List *import_list_collections(const ImportSource *source);

/*
 * import_sample
 *		The root of the fields that a sample of the collection and its validator
 *		show.
 */
extern ImportField *import_sample(const ImportSource *source,
								  const ImportCollection *collection);

/*
 * import_indexed_paths
 *		The paths (char *, UTF-8) that indexes lead with and that a query for
 *		any value can use; none for a view, which is not asked for.
 *
 * *known is false, with a NOTICE, where MongoDB does not let them be listed.
 */
extern List *import_indexed_paths(const ImportSource *source,
								  const ImportCollection *collection, bool *known);

/*
 * import_names_create, import_name_reserve, import_name_choose
 *		A set of used names.
 *
 * import_name_reserve() takes a name, and is false if it was taken or is too
 * long to be an SQL name.  import_name_choose() takes 'wanted' or what is
 * most like it: cut to 63 bytes between characters, with _1, _2, ... behind.
 */
extern HTAB *import_names_create(void);
extern bool import_name_reserve(HTAB *names, const char *name);
extern char *import_name_choose(HTAB *names, const char *wanted);

#endif							/* MONGO_FDW_IMPORT_H */
