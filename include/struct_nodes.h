/*-------------------------------------------------------------------------
 *
 * struct_nodes.h
 *		Structs as nodes that a plan can hold, and back.
 *
 * A plan is copied, and written and read again for parallel workers, so all that
 * it holds must be nodes.  A table of the struct's fields says which of them are
 * kept; the others are zero when the struct is read back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_STRUCT_NODES_H
#define MONGO_FDW_STRUCT_NODES_H

#include "compat.h"

#include "nodes/pg_list.h"

typedef enum MongoFieldKind
{
	MONGO_FIELD_NUMBERS,		/* bools, ints, enums, Oids and the like that
								 * stand one behind the other */
	MONGO_FIELD_STRING,			/* char *, may be NULL */
	MONGO_FIELD_NODE,			/* a node, or a List of nodes or numbers */
	MONGO_FIELD_STRUCTS			/* a List of palloc'd structs */
} MongoFieldKind;

typedef struct MongoStructField
{
	MongoFieldKind kind;
	size_t		offset;
	size_t		size;			/* of all numbers */
	const struct MongoStructType *element;	/* of MONGO_FIELD_STRUCTS */
} MongoStructField;

typedef struct MongoStructType
{
	size_t		size;
	const MongoStructField *fields;
	int			nfields;
} MongoStructType;

/*
 * For rows of such a table, and the struct with a table 'fields'.  A row of numbers
 * has all fields from the first to the last one: numbers, with no padding between
 * them, which would be copied as it is.
 */
#define MONGO_STRUCT_FIELD(type, kind, field) \
	{MONGO_FIELD_##kind, offsetof(type, field), sizeof(((type *) NULL)->field), NULL}
#define MONGO_STRUCT_NUMBERS(type, first, last) \
	{MONGO_FIELD_NUMBERS, offsetof(type, first), \
	offsetof(type, last) + sizeof(((type *) NULL)->last) - offsetof(type, first), NULL}
#define MONGO_STRUCT_LIST(type, field, element) \
	{MONGO_FIELD_STRUCTS, offsetof(type, field), sizeof(List *), element}
#define MONGO_STRUCT_TYPE(type, fields) \
	{sizeof(type), fields, lengthof(fields)}

/*
 * mongo_struct_to_list, mongo_struct_from_list
 *		The fields of a struct as a List, and a struct, palloc'd, of such a List.
 *
 * The List has copies of the strings, and shares the nodes.  The struct shares both
 * with the List.
 */
extern List *mongo_struct_to_list(const MongoStructType *type, const void *source);
extern void *mongo_struct_from_list(const MongoStructType *type, const List *list);

#endif							/* MONGO_FDW_STRUCT_NODES_H */
