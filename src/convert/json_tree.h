/*-------------------------------------------------------------------------
 *
 * json_tree.h
 *		json, jsonb and text as one kind of tree, on the way to BSON.
 *
 * Between json_write.c and json_tree.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_TREE_H
#define MONGO_FDW_JSON_TREE_H

#include "compat.h"

typedef enum JsonKind
{
	JSON_OBJECT,
	JSON_ARRAY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_BOOLEAN,
	JSON_NULL
} JsonKind;

/* A value in the tree; strings and numbers are in the database's encoding. */
typedef struct JsonNode JsonNode;
struct JsonNode
{
	JsonKind	kind;
	const char *key;			/* as a member of an object, else NULL */
	int			key_length;
	const char *text;			/* of a string or number, NUL-terminated */
	int			text_length;
	bool		truth;
	JsonNode   *first;			/* members or elements */
	JsonNode   *last;
	JsonNode   *next;
	int			count;
	int			depth;			/* 1 for the root */
	JsonNode   *parent;
};

/*
 * mongo_json_tree
 *		The tree of a json, jsonb or text, palloc'd in the current context.
 *
 * Raises what PostgreSQL says of a text that is not JSON (22P02), and 54001
 * for nesting that no MongoDB server accepts.
 */
extern JsonNode *mongo_json_tree(Datum value, Oid typid);

#endif							/* MONGO_FDW_JSON_TREE_H */
