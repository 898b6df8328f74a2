/*-------------------------------------------------------------------------
 *
 * json_wrapper.h
 *		Objects that stand for a value of another BSON type, such as {"$oid": ...}.
 *
 * A wrapper is told from a document by all of its keys, so what begins as one
 * is first made into a tree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_WRAPPER_H
#define MONGO_FDW_JSON_WRAPPER_H

#include "encode.h"

typedef enum JsonKind
{
	JSON_OBJECT,
	JSON_ARRAY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_BOOLEAN,
	JSON_NULL
} JsonKind;

/* A value in the tree; texts are UTF-8 and NUL-terminated. */
typedef struct JsonNode JsonNode;
struct JsonNode
{
	JsonKind	kind;
	const char *key;			/* as a member of an object, else NULL */
	int			key_length;
	const char *text;			/* of a string or number */
	int			text_length;
	bool		truth;
	JsonNode   *first;			/* members or elements */
	JsonNode   *last;
	JsonNode   *next;
	int			count;
	JsonNode   *parent;
};

/*
 * mongo_may_be_wrapper
 *		Can an object whose first key this is be a wrapper?
 */
extern bool mongo_may_be_wrapper(const char *key, uint32 length);

/*
 * mongo_json_node
 *		A new node at the end of 'parent', which may be NULL; palloc'd, as are
 *		copies of the key (NULL: none) and of the text that it is given.
 */
extern JsonNode *mongo_json_node(JsonNode *parent, const char *key, uint32 key_length,
								 JsonKind kind);
extern void mongo_json_node_set_text(JsonNode *node, const char *text, uint32 length);

/*
 * mongo_write_json_tree
 *		Append what the tree stands for.
 *
 * Raises 22P02 for a malformed wrapper, what timestamptz and uuid say of a $date
 * and a $uuid that are none, and 22003 for a number beyond Decimal128.
 */
extern void mongo_write_json_tree(const MongoWriteTarget *target, const JsonNode *node);

#endif							/* MONGO_FDW_JSON_WRAPPER_H */
