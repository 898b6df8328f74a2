/*-------------------------------------------------------------------------
 *
 * import_fields.h
 *		Which fields have documents of a collection, and of which types?
 *
 * Pure inference for IMPORT FOREIGN SCHEMA: documents and a $jsonSchema go
 * in, a tree of fields with the narrowest type that holds all comes out.
 * Nothing here talks to a server or knows of SQL statements.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_IMPORT_FIELDS_H
#define MONGO_FDW_IMPORT_FIELDS_H

#include "compat.h"

/*
 * Kinds of values as bits of a set.  An INTEGER_WIDE is an INT8 beyond 2^53,
 * which a double does not hold; NUMBER and BINARY_DATA are what a schema says
 * that does not say which.
 */
#define IMPORT_BOOLEAN		(1 << 0)
#define IMPORT_INT4			(1 << 1)
#define IMPORT_INT8			(1 << 2)
#define IMPORT_INTEGER_WIDE (1 << 3)
#define IMPORT_DOUBLE		(1 << 4)
#define IMPORT_DECIMAL		(1 << 5)
#define IMPORT_STRING		(1 << 6)
#define IMPORT_OBJECTID		(1 << 7)
#define IMPORT_DATE			(1 << 8)
#define IMPORT_UUID			(1 << 9)
#define IMPORT_BINARY		(1 << 10)
#define IMPORT_DOCUMENT		(1 << 11)
#define IMPORT_ARRAY		(1 << 12)
#define IMPORT_OTHER		(1 << 13)	/* only jsonb holds it */
#define IMPORT_NUMBER		(1 << 14)
#define IMPORT_BINARY_DATA	(1 << 15)
#define IMPORT_UNREADABLE	(1 << 16)	/* U+0000 or invalid UTF-8: no type
										 * holds it */

/*
 * A field, or the documents of a collection themselves (the root).  Children
 * are in the order that documents have them.
 */
typedef struct ImportField
{
	const char *name;			/* in UTF-8; NULL for a root and for elements */
	int			name_length;
	uint32		kinds;
	struct ImportField *elements;	/* of arrays; NULL: none seen */
	struct ImportField *first_child;
	struct ImportField *next;	/* sibling */
	int			nchildren;
	bool		overflow;		/* more children than anyone wants as columns */
	bool		unnameable;		/* some child's name fits into no path */
	bool		is_geometry;	/* some document is one of GeoJSON's */
} ImportField;

/*
 * import_root_create
 *		Nothing seen yet.  The tree lives in the current memory context, which
 *		must be current for the observers too.
 */
extern ImportField *import_root_create(void);

/*
 * import_observe_document
 *		Add one document, looking 'nesting' levels below the top.
 *
 * Raises 08P01 for bytes that are not BSON.
 */
extern void import_observe_document(ImportField *root, const uint8_t *data,
									uint32 length, int nesting);

/*
 * import_observe_schema
 *		Add what a $jsonSchema (the document at 'schema') allows.
 *
 * https://www.mongodb.com/docs/manual/reference/operator/query/jsonSchema/
 *
 * Keywords that it does not know, and what is malformed, it passes over.
 */
extern void import_observe_schema(ImportField *root, const bson_iter_t *schema,
								  int nesting);

/*
 * import_is_array_of_documents
 *		Is the field an array of nothing but documents, whose members can be columns?
 */
extern bool import_is_array_of_documents(const ImportField *field);

/*
 * import_field_type
 *		The narrowest type for all that was seen, as SQL; NULL for a document
 *		whose children are to be columns.
 *
 * 'objectid_type' is what the type objectid is called.  palloc'd or static.
 */
extern const char *import_field_type(const ImportField *field,
									 const char *objectid_type);

#endif							/* MONGO_FDW_IMPORT_FIELDS_H */
