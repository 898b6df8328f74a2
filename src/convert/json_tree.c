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

/* A tree of which the parts come in the order of the text. */
typedef struct TreeBuilder
{
	JsonNode   *root;
	JsonNode   *current;		/* object or array that is open; NULL: none */
	const char *key;			/* of the next node; NULL: in an array */
} TreeBuilder;

/* add_node: at the end of what is open. */
static JsonNode *
add_node(TreeBuilder *builder, JsonKind kind)
{
	JsonNode   *node = palloc0(sizeof(JsonNode));
	JsonNode   *parent = builder->current;

	node->kind = kind;
	node->key = builder->key;
	node->key_length = builder->key ? strlen(builder->key) : 0;
	node->parent = parent;
	node->depth = parent != NULL ? parent->depth + 1 : 1;
	builder->key = NULL;
	if (node->depth > MAX_DEPTH && (kind == JSON_OBJECT || kind == JSON_ARRAY))
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				 errmsg("JSON is nested too deeply for MongoDB"),
				 errdetail("The limit is %d levels.", MAX_DEPTH)));
	if (parent == NULL)
	{
		builder->root = node;
		return node;
	}
	if (parent->last != NULL)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
	parent->count++;
	return node;
}

/* add_text: a string, or a number as its digits. */
static void
add_text(TreeBuilder *builder, JsonKind kind, const char *text, int length)
{
	JsonNode   *node = add_node(builder, kind);

	node->text = pnstrdup(text, length);
	node->text_length = length;
}

/*
 * The tree of a jsonb
 */

static void
add_jsonb_scalar(TreeBuilder *builder, const JsonbValue *value)
{
	const char *digits;

	switch (value->type)
	{
		case jbvString:
			add_text(builder, JSON_STRING, value->val.string.val, value->val.string.len);
			break;
		case jbvNumeric:
			digits = DatumGetCString(DirectFunctionCall1(numeric_out,
														 NumericGetDatum(value->val.numeric)));
			add_text(builder, JSON_NUMBER, digits, strlen(digits));
			break;
		case jbvBool:
			add_node(builder, JSON_BOOLEAN)->truth = value->val.boolean;
			break;
		default:
			add_node(builder, JSON_NULL);
			break;
	}
}

static JsonNode *
tree_of_jsonb(Jsonb *jsonb)
{
	TreeBuilder builder = {.root = NULL};
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	JsonbValue	value;
	JsonbIteratorToken token;

	/* a scalar comes dressed as an array of one */
	bool		scalar = JB_ROOT_IS_SCALAR(jsonb);

	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		switch (token)
		{
			case WJB_KEY:
				builder.key = pnstrdup(value.val.string.val, value.val.string.len);
				break;
			case WJB_BEGIN_ARRAY:
			case WJB_BEGIN_OBJECT:
				if (!scalar)
					builder.current = add_node(&builder, token == WJB_BEGIN_ARRAY ?
											   JSON_ARRAY : JSON_OBJECT);
				break;
			case WJB_END_ARRAY:
			case WJB_END_OBJECT:
				if (!scalar)
					builder.current = builder.current->parent;
				break;
			default:
				add_jsonb_scalar(&builder, &value);
				break;
		}
	}
	return builder.root;
}

/*
 * The tree of a JSON text, by PostgreSQL's own parser
 */

static MongoJsonAction
parse_object_start(void *state)
{
	TreeBuilder *builder = state;

	builder->current = add_node(builder, JSON_OBJECT);
	mongo_json_action_done();
}

static MongoJsonAction
parse_array_start(void *state)
{
	TreeBuilder *builder = state;

	builder->current = add_node(builder, JSON_ARRAY);
	mongo_json_action_done();
}

static MongoJsonAction
parse_container_end(void *state)
{
	TreeBuilder *builder = state;

	builder->current = builder->current->parent;
	mongo_json_action_done();
}

static MongoJsonAction
parse_field_start(void *state, char *name, bool isnull pg_attribute_unused())
{
	((TreeBuilder *) state)->key = name;
	mongo_json_action_done();
}

static MongoJsonAction
parse_scalar(void *state, char *token, JsonTokenType type)
{
	if (type == JSON_TOKEN_STRING || type == JSON_TOKEN_NUMBER)
		add_text(state, type == JSON_TOKEN_STRING ? JSON_STRING : JSON_NUMBER,
				 token, strlen(token));
	else if (type == JSON_TOKEN_NULL)
		add_node(state, JSON_NULL);
	else
		add_node(state, JSON_BOOLEAN)->truth = type == JSON_TOKEN_TRUE;
	mongo_json_action_done();
}

static JsonNode *
tree_of_text(text *json)
{
	TreeBuilder builder = {.root = NULL};
	JsonSemAction actions = {
		.semstate = &builder,
		.object_start = parse_object_start,
		.object_end = parse_container_end,
		.array_start = parse_array_start,
		.array_end = parse_container_end,
		.object_field_start = parse_field_start,
		.scalar = parse_scalar
	};

	pg_parse_json_or_ereport(mongo_json_lexer(json), &actions);
	return builder.root;
}

JsonNode *
mongo_json_tree(Datum value, Oid typid)
{
	if (typid == JSONBOID)
		return tree_of_jsonb(DatumGetJsonbP(value));
	return tree_of_text(DatumGetTextP(value));
}
