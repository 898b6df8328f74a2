/*-------------------------------------------------------------------------
 *
 * import.h
 *		The steps of IMPORT FOREIGN SCHEMA, for src/catalog only.
 *
 * import.c writes the commands, from what import_remote.c reads,
 * import_fields.c infers and import_names.c names.  What these return lives in the
 * current memory context; those that ask MongoDB raise as mongo_cursor_next() does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_IMPORT_H
#define MONGO_FDW_IMPORT_H

#include "compat.h"

#include "foreign/foreign.h"
#include "import_fields.h"
#include "nodes/pg_list.h"
#include "utils/hsearch.h"

/* What an import wants from where; names are in the database encoding. */
typedef struct ImportSource
{
	UserMapping *user;
	const char *database;
	int			sample_size;	/* documents */
	int			nesting;		/* levels of documents that become columns */
} ImportSource;

/* A collection or view, as listCollections describes it. */
typedef struct ImportCollection
{
	const char *name;
	bool		is_view;
	const bson_t *validator;	/* NULL: none */
	const char *table_name;		/* filled by import.c */
} ImportCollection;

/*
 * import_list_collections
 *		The database's collections and views (ImportCollection *), by name,
 *		without system.*.
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
 */
extern List *import_indexed_paths(const ImportSource *source,
								  const ImportCollection *collection);

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
