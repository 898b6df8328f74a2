/*-------------------------------------------------------------------------
 *
 * columns.h
 *		From a foreign table's Vars to the fields of its documents.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COLUMNS_H
#define MONGO_FDW_COLUMNS_H

#include "compat.h"

#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "nodes/primnodes.h"

#include "options.h"

/* The name of the column that holds the whole document. */
#define MONGO_DOCUMENT_COLUMN	"__doc"

/* The columns of one foreign table in one query; looked up as they are met. */
typedef struct MongoColumns
{
	Oid			relid;			/* the foreign table */
	Index		varno;			/* its range table index */
	int			natts;
	MongoTypeMismatch type_mismatch;
	const char **names;			/* by attribute number - 1; NULL: not met yet */
	MongoColumnOptions **options;
} MongoColumns;

/*
 * mongo_columns_create
 *		Nothing looked up yet; lives in the current memory context.
 */
extern MongoColumns *mongo_columns_create(Oid relid, Index varno, int natts,
										  MongoTypeMismatch type_mismatch);

/*
 * mongo_column_of_var
 *		The options of the column that 'node' is, below binary-compatible
 *		relabelling; NULL when it is anything else.
 *
 * *var is set to the Var itself.  The whole-document column gives NULL.
 */
extern const MongoColumnOptions *mongo_column_of_var(MongoColumns *columns,
													 Node *node, Var **var);

/*
 * mongo_column_name, mongo_column_path
 *		Of an attribute number; the path is NULL for the whole document.
 */
extern const char *mongo_column_name(MongoColumns *columns, AttrNumber attnum);
extern const char *mongo_column_path(MongoColumns *columns, AttrNumber attnum);

/*
 * mongo_append_projection
 *		Append to 'command' a "projection" that fetches these attributes.
 *
 * 'attributes' are attribute numbers; _id always comes, to be named in errors.
 * Appends nothing when only the whole document will do: a column __doc, or a
 * path that find's language cannot name.
 */
extern void mongo_append_projection(bson_t *command, MongoColumns *columns,
									List *attributes);

#endif							/* MONGO_FDW_COLUMNS_H */
