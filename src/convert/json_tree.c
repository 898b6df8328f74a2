/*-------------------------------------------------------------------------
 *
 * json_tree.c
 *		json, jsonb and text as one kind of tree, on the way to BSON.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_tree.h"

#include "catalog/pg_type.h"
#include "common/jsonapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/jsonfuncs.h"

/* The most that a server's parameter maxBSONDepth can be. */
#define MAX_DEPTH	200

/* new_node: a node at the end of 'parent', which may be NULL. */
static JsonNode *
new_node(JsonNode *parent, JsonKind kind)
{
	JsonNode   *node = palloc0(sizeof(JsonNode));

	node->kind = kind;
	node->parent = parent;
	node->depth = parent != NULL ? parent->depth + 1 : 1;
	if (node->depth > MAX_DEPTH && (kind == JSON_OBJECT || kind == JSON_ARRAY))
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				 errmsg("JSON is nested too deeply for MongoDB"),
				 errdetail("The limit is %d levels.", MAX_DEPTH)));
	if (parent == NULL)
		return node;
	if (parent->last != NULL)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
	parent->count++;
	return node;
}

static void
set_text(JsonNode *node, const char *text, int length)
{
	node->text = pnstrdup(text, length);
	node->text_length = length;
}

/*
 * The tree of a jsonb
 */

static JsonNode *
tree_of_jsonb(Jsonb *jsonb)
{
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	JsonNode   *root = NULL;
	JsonNode   *current = NULL;
	const char *key = NULL;
	int			key_length = 0;
	JsonbValue	value;
	JsonbIteratorToken token;
	bool		scalar = JB_ROOT_IS_SCALAR(jsonb);

	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		JsonNode   *node;

		CHECK_FOR_INTERRUPTS();
		switch (token)
		{
			case WJB_KEY:
				key = pnstrdup(value.val.string.val, value.val.string.len);
				key_length = value.val.string.len;
				continue;
			case WJB_BEGIN_ARRAY:
			case WJB_BEGIN_OBJECT:
				/* a scalar comes dressed as an array of one */
				if (scalar)
					continue;
				node = new_node(current, token == WJB_BEGIN_ARRAY ? JSON_ARRAY : JSON_OBJECT);
				node->key = key;
				node->key_length = key_length;
				if (root == NULL)
					root = node;
				current = node;
				break;
			case WJB_END_ARRAY:
			case WJB_END_OBJECT:
				if (!scalar)
					current = current->parent;
				break;
			default:
				node = new_node(current, JSON_NULL);
				node->key = key;
				node->key_length = key_length;
				if (root == NULL)
					root = node;
				if (value.type == jbvString)
				{
					node->kind = JSON_STRING;
					set_text(node, value.val.string.val, value.val.string.len);
				}
				else if (value.type == jbvNumeric)
				{
					const char *digits = DatumGetCString(DirectFunctionCall1(numeric_out,
																			 NumericGetDatum(value.val.numeric)));

					node->kind = JSON_NUMBER;
					set_text(node, digits, strlen(digits));
				}
				else if (value.type == jbvBool)
				{
					node->kind = JSON_BOOLEAN;
					node->truth = value.val.boolean;
				}
				break;
		}
		key = NULL;
		key_length = 0;
	}
	return root;
}

/*
 * The tree of a JSON text, by PostgreSQL's own parser
 */

typedef struct TreeParse
{
	JsonNode   *root;
	JsonNode   *current;
	const char *key;
} TreeParse;

/* parse_node: a node where the parser is, under the key that it met last. */
static JsonNode *
parse_node(TreeParse *parse, JsonKind kind)
{
	JsonNode   *node = new_node(parse->current, kind);

	node->key = parse->key;
	node->key_length = parse->key ? strlen(parse->key) : 0;
	parse->key = NULL;
	if (parse->root == NULL)
		parse->root = node;
	return node;
}

static MongoJsonAction
parse_object_start(void *state)
{
	TreeParse  *parse = state;

	parse->current = parse_node(parse, JSON_OBJECT);
	mongo_json_action_done();
}

static MongoJsonAction
parse_array_start(void *state)
{
	TreeParse  *parse = state;

	parse->current = parse_node(parse, JSON_ARRAY);
	mongo_json_action_done();
}

static MongoJsonAction
parse_container_end(void *state)
{
	TreeParse  *parse = state;

	parse->current = parse->current->parent;
	mongo_json_action_done();
}

static MongoJsonAction
parse_field_start(void *state, char *name, bool isnull pg_attribute_unused())
{
	((TreeParse *) state)->key = name;
	mongo_json_action_done();
}

static MongoJsonAction
parse_scalar(void *state, char *token, JsonTokenType type)
{
	JsonNode   *node = parse_node(state, JSON_NULL);

	if (type == JSON_TOKEN_STRING || type == JSON_TOKEN_NUMBER)
	{
		node->kind = type == JSON_TOKEN_STRING ? JSON_STRING : JSON_NUMBER;
		set_text(node, token, strlen(token));
	}
	else if (type != JSON_TOKEN_NULL)
	{
		node->kind = JSON_BOOLEAN;
		node->truth = type == JSON_TOKEN_TRUE;
	}
	mongo_json_action_done();
}

static JsonNode *
tree_of_text(text *json)
{
	TreeParse	parse = {.root = NULL};
	JsonSemAction actions = {0};
	JsonLexContext *lexer = mongo_json_lexer(json);

	actions.semstate = &parse;
	actions.object_start = parse_object_start;
	actions.object_end = parse_container_end;
	actions.array_start = parse_array_start;
	actions.array_end = parse_container_end;
	actions.object_field_start = parse_field_start;
	actions.scalar = parse_scalar;
	pg_parse_json_or_ereport(lexer, &actions);
	return parse.root;
}

JsonNode *
mongo_json_tree(Datum value, Oid typid)
{
	if (typid == JSONBOID)
		return tree_of_jsonb(DatumGetJsonbP(value));
	return tree_of_text(DatumGetTextP(value));
}
