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
#include "utils/palloc.h"

#include "options.h"
#include "statistics.h"

/* The name of the column that holds the whole document. */
#define MONGO_DOCUMENT_COLUMN	"__doc"

/*
 * The columns of one foreign table in one query; looked up as they are met.
 *
 * Whoever meets a column first may run in a memory context that is gone when the
 * next one does, such as that of one join order (planning_state.h).  Therefore
 * what is looked up is kept in 'context', whatever the current one is.  Copies
 * (mongo_columns_under) live where they are made and share it.
 *
 * Where a pipeline has joined several tables, theirs are a list, and each
 * table's document stands in the joined one under a prefix of its own.
 */
typedef struct MongoColumns
{
	Oid			relid;			/* the foreign table */
	Index		varno;			/* its range table index */
	int			natts;
	MongoTypeMismatch type_mismatch;
	MemoryContext context;		/* of the next two and what they point to */
	const char **names;			/* by attribute number - 1; NULL: not met yet */
	MongoColumnOptions **options;
	const MongoStatistics *statistics;	/* what is known of the collection, to
										 * be set by planning; NULL: nothing */
	const MongoTableOptions *derivation;	/* of a derived table, to be set
											 * by planning; NULL: of no other */
	const char *prefix;			/* NULL: the document itself */
	struct MongoColumns *next;	/* another table of the join, or NULL */
} MongoColumns;

/*
 * mongo_columns_create
 *		Nothing looked up yet; lives in 'context', with all that will be.
 */
extern MongoColumns *mongo_columns_create(MemoryContext context, Oid relid,
										  Index varno, int natts,
										  MongoTypeMismatch type_mismatch);

/*
 * mongo_check_columns
 *		Assert that the members of the list live as long as 'context', and what
 *		was looked up as long as the member; NULL is an empty list.
 */
#ifdef USE_ASSERT_CHECKING
extern void mongo_check_columns(const MongoColumns *columns, MemoryContext context);
#endif

/*
 * mongo_columns_find
 *		The member of the list that is about 'varno'; NULL when there is none.
 */
extern MongoColumns *mongo_columns_find(MongoColumns *columns, Index varno);

/*
 * mongo_columns_under
 *		The same table alone, with another prefix, palloc'd in the current memory
 *		context.
 */
extern MongoColumns *mongo_columns_under(const MongoColumns *columns,
										 const char *prefix);

/*
 * mongo_unused_field
 *		'name', or a longer one, that is no field of the columns of tables whose documents
 *		stand under no prefix.
 *
 * Where a document has such a field all the same, nobody reads it.
 */
extern const char *mongo_unused_field(MongoColumns *columns, const char *name);

/* A field of the documents, as an expression over the table names it. */
typedef struct MongoField
{
	MongoColumns *columns;		/* of its table */
	const char *path;			/* in the document, with the table's prefix */
	Oid			type;			/* of its row in comparison.c, or a domain
								 * over it */
	int32		typmod;			/* of the type below the domain */
	Oid			operator_type;	/* whose operators compare it */
	bson_type_t bson_type;		/* the one it is declared to have, or
								 * BSON_TYPE_EOD, see declared_type.h */
	int			index_uses;		/* MONGO_INDEX_*: of indexes that lead with it */
	bool		unindexed;		/* no index is to be thought of, says the user */
	int			element;		/* of an array of 'type': MONGO_ANY_ELEMENT of
								 * path.h, or which, counted from 1; 0: the
								 * field itself */
	Oid			cast_type;		/* of the text of json, or json: what it is
								 * cast to; InvalidOid: nothing */
	int			wrapper;		/* a MongoJsonWrapper of path.h */

	/* where it is what clocks show, see local_time.h */
	const char *zone;			/* of the clocks: a name, "" for the
								 * session's; NULL: the field itself */
	const char *result_zone;	/* in which that time is an instant again, or
								 * NULL */
	int			clock_unit;		/* what of the time: an enum of local_time.c */
} MongoField;

/*
 * mongo_strip_relabelling
 *		What is below binary-compatible relabelling, as a varchar read as text is;
 *		NULL for NULL.
 */
extern Node *mongo_strip_relabelling(Node *node);

/*
 * mongo_column_of_node
 *		The column that 'node' is, below binary-compatible relabelling, and its
 *		field; NULL for anything else, and for the whole-document column.
 */
extern const Var *mongo_column_of_node(MongoColumns *columns, Node *node,
									   MongoField *field);

/*
 * mongo_column_name, mongo_column_path
 *		Of an attribute number of the first table; the path, in the table's own
 *		documents, is NULL for the whole document.
 *
 * mongo_column_bson_type
 *		Likewise, what its option bson_type says; raises 42804 where the column's type
 *		cannot have that, as does whatever else looks up a column but its name.
 */
extern const char *mongo_column_name(MongoColumns *columns, AttrNumber attnum);
extern const char *mongo_column_path(MongoColumns *columns, AttrNumber attnum);
extern bson_type_t mongo_column_bson_type(MongoColumns *columns, AttrNumber attnum);

/*
 * mongo_append_paths
 *		Append to a projection that these paths, char *, are wanted; _id alone
 *		when there are none.  All must be addressable.
 */
extern void mongo_append_paths(bson_t *projection, List *paths);

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
