/*-------------------------------------------------------------------------
 *
 * json_field.c
 *		Conditions on what is inside a json or jsonb column.
 *
 * A chain of accessors is a longer path.  On the way MongoDB also looks into
 * arrays, where jsonb's accessors by key give NULL; that only adds documents.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "columns.h"
#include "encode.h"
#include "encoding.h"
#include "json_field.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

/* A relative error that covers how a Double and a numeric of it may differ. */
#define NUMBER_ERROR	1e-14

/*
 * The accessors: by the function under the operator.
 *
 * jsonb's -> with an index is not among them: applied to a scalar, which jsonb
 * stores as an array of one, index 0 gives the scalar itself, and no path says
 * that.  #> and subscripts do not do this.
 */
static const struct
{
	Oid			function;
	bool		to_text;
}			accessors[] =
{
	{F_JSONB_OBJECT_FIELD, false},
	{F_JSONB_OBJECT_FIELD_TEXT, true},
	{F_JSONB_EXTRACT_PATH, false},
	{F_JSONB_EXTRACT_PATH_TEXT, true},
	{F_JSON_OBJECT_FIELD, false},
	{F_JSON_OBJECT_FIELD_TEXT, true},
	{F_JSON_ARRAY_ELEMENT, false},
	{F_JSON_ARRAY_ELEMENT_TEXT, true},
	{F_JSON_EXTRACT_PATH, false},
	{F_JSON_EXTRACT_PATH_TEXT, true},
};

/*
 * append_key adds one constant key to a path; false when it has no place
 * there, as a key with a dot or an index from the end.
 */
static bool
append_key(StringInfo path, Oid type, Datum value)
{
	const char *key;

	if (type == INT4OID)
	{
		if (DatumGetInt32(value) < 0)
			return false;
		appendStringInfo(path, ".%d", DatumGetInt32(value));
		return true;
	}
	if (type != TEXTOID)
		return false;
	key = mongo_to_utf8(TextDatumGetCString(value));

	/* jsonb takes "-1" and "+1" as an index too, where it is applied to an array */
	if (key[0] == '\0' || key[0] == '$' || key[0] == '-' || key[0] == '+' ||
		strchr(key, '.') != NULL || isspace((unsigned char) key[0]))
		return false;
	if (key[0] == '0' && key[1] != '\0')
		return false;
	appendStringInfo(path, ".%s", key);
	return true;
}

/* append_keys adds the constant argument of an accessor, of any kind. */
static bool
append_keys(StringInfo path, Node *argument)
{
	Const	   *constant = (Const *) argument;
	Datum	   *keys;
	bool	   *isnull;
	int			nkeys;

	if (!IsA(argument, Const) || constant->constisnull)
		return false;
	if (constant->consttype != TEXTARRAYOID)
		return append_key(path, constant->consttype, constant->constvalue);

	deconstruct_array(DatumGetArrayTypeP(constant->constvalue), TEXTOID, -1, false,
					  TYPALIGN_INT, &keys, &isnull, &nkeys);
	for (int i = 0; i < nkeys; i++)
	{
		if (isnull[i] || !append_key(path, TEXTOID, keys[i]))
			return false;
	}
	return true;
}

static bool
is_json(Oid type)
{
	return type == JSONBOID || type == JSONOID;
}

/* subscripts: column['a'][0] */
static bool
subscripted_field(MongoColumns *columns, SubscriptingRef *node, MongoField *field)
{
	StringInfoData path;
	ListCell   *cell;

	if (node->refassgnexpr != NULL || node->reflowerindexpr != NIL ||
		!mongo_field_of_node(columns, (Node *) node->refexpr, field) ||
		field->operator_type != JSONBOID)
		return false;

	initStringInfo(&path);
	appendStringInfoString(&path, field->path);
	foreach(cell, node->refupperindexpr)
	{
		if (!append_keys(&path, lfirst(cell)))
			return false;
	}
	field->path = path.data;
	field->index_uses = 0;
	return true;
}

bool
mongo_json_field_of_node(MongoColumns *columns, Node *node, MongoField *field)
{
	OpExpr	   *accessor = (OpExpr *) node;
	StringInfoData path;
	size_t		i = 0;

	check_stack_depth();

	if (IsA(node, SubscriptingRef))
		return subscripted_field(columns, (SubscriptingRef *) node, field);
	if (!IsA(node, OpExpr) || list_length(accessor->args) != 2)
		return false;
	while (i < lengthof(accessors) &&
		   accessors[i].function != get_opcode(accessor->opno))
		i++;
	if (i == lengthof(accessors) ||
		!mongo_field_of_node(columns, linitial(accessor->args), field) ||
		!is_json(field->operator_type))
		return false;

	initStringInfo(&path);
	appendStringInfoString(&path, field->path);
	if (!append_keys(&path, lsecond(accessor->args)))
		return false;

	field->path = path.data;
	field->typmod = -1;
	field->index_uses = 0;
	if (accessors[i].to_text)
	{
		field->type = JSONOID;
		field->operator_type = TEXTOID;
	}
	else
		field->type = field->operator_type;
	return true;
}

/* {path: {$exists: true}}: all that is known is that there is something */
static void
append_exists(const char *path, bson_t *match)
{
	bson_t		operators;

	BSON_APPEND_DOCUMENT_BEGIN(match, path, &operators);
	BSON_APPEND_BOOL(&operators, "$exists", true);
	bson_append_document_end(match, &operators);
}

/* {path: {$eq: "string"}}, from the server's encoding */
static void
append_string(const char *path, const char *string, int length, bson_t *match)
{
	char	   *converted = pg_server_to_any(string, length, PG_UTF8);
	bson_t		operators;

	BSON_APPEND_DOCUMENT_BEGIN(match, path, &operators);
	bson_append_utf8(&operators, "$eq", -1, converted,
					 converted == string ? length : (int) strlen(converted));
	bson_append_document_end(match, &operators);
}

/* {path: {$gte: ..., $lte: ...}}: a number, give or take its last digits */
static void
append_number(const char *path, Numeric number, bson_t *match)
{
	double		middle = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
															NumericGetDatum(number)));
	double		slack = fabs(middle) * NUMBER_ERROR + 1e-290;
	bson_t		operators;

	if (isinf(middle) || isnan(middle))
	{
		append_exists(path, match);
		return;
	}
	BSON_APPEND_DOCUMENT_BEGIN(match, path, &operators);
	BSON_APPEND_DOUBLE(&operators, "$gte", middle - slack);
	BSON_APPEND_DOUBLE(&operators, "$lte", middle + slack);
	bson_append_document_end(match, &operators);
}

/* append_scalar: where a json field is a scalar; it may match arrays, too. */
static void
append_scalar(const char *path, const JsonbValue *value, bson_t *match)
{
	bson_t		operators;

	switch (value->type)
	{
		case jbvString:
			append_string(path, value->val.string.val, value->val.string.len, match);
			break;
		case jbvNumeric:
			append_number(path, value->val.numeric, match);
			break;
		case jbvBool:
			BSON_APPEND_DOCUMENT_BEGIN(match, path, &operators);
			BSON_APPEND_BOOL(&operators, "$eq", value->val.boolean);
			bson_append_document_end(match, &operators);
			break;
		default:
			append_exists(path, match);
			break;
	}
}

/*
 * append_element: where a json field is a scalar, or is an array that holds it.
 * Of what stands at an index, find does not look into an array.
 */
static void
append_element(const char *path, const JsonbValue *value, bson_t *match)
{
	const char *dot = strrchr(path, '.');
	const char *last = dot == NULL ? path : dot + 1;

	if (last[strspn(last, "0123456789")] == '\0')
		append_exists(path, match);
	else
		append_scalar(path, value, match);
}

/*
 * json text that is not a string's: what begins like a number, true, false, an
 * object or an array could come from a field of another type.
 */
static bool
may_be_other_json(const char *string, int length)
{
	return length > 0 && strchr("-0123456789tf{[NI", string[0]) != NULL;
}

MongoMatch
mongo_json_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	text	   *packed;

	if (predicate->strategy != BTEqualStrategyNumber || predicate->value_type == NAMEOID)
	{
		append_exists(predicate->path, match);
		return MONGO_MATCH_SOME;
	}

	packed = DatumGetTextPP(value);
	if (may_be_other_json(VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed)))
		append_exists(predicate->path, match);
	else
		append_string(predicate->path, VARDATA_ANY(packed),
					  VARSIZE_ANY_EXHDR(packed), match);
	return MONGO_MATCH_SOME;
}

MongoMatch
mongo_jsonb_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	JsonbValue	scalar;

	if (predicate->strategy == BTEqualStrategyNumber && JB_ROOT_IS_SCALAR(jsonb) &&
		JsonbExtractScalar(&jsonb->root, &scalar))
		append_scalar(predicate->path, &scalar, match);
	else
		append_exists(predicate->path, match);
	return MONGO_MATCH_SOME;
}

/*
 * append_contained adds to an array of conditions what a document must hold
 * for "path @> container"; keys that no path can name are left out.
 */
static void
append_contained(const char *path, JsonbContainer *container, bson_t *conditions,
				 int *nconditions)
{
	JsonbIterator *iterator = JsonbIteratorInit(container);
	JsonbIteratorToken token;
	JsonbValue	value;
	StringInfoData field;

	check_stack_depth();
	initStringInfo(&field);
	appendStringInfoString(&field, path);

	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		bson_t		condition;
		char		key[16];

		if (token == WJB_KEY)
		{
			resetStringInfo(&field);
			appendStringInfoString(&field, path);
			if (!append_key(&field, TEXTOID,
							PointerGetDatum(cstring_to_text_with_len(value.val.string.val,
																	 value.val.string.len))) ||
				!mongo_path_is_addressable(field.data))
				resetStringInfo(&field);
			continue;
		}
		if ((token != WJB_VALUE && token != WJB_ELEM) || field.len == 0)
			continue;
		if (value.type == jbvBinary)
		{
			/* an object among an array's elements is not at any one path */
			if (token == WJB_VALUE)
				append_contained(field.data, value.val.binary.data, conditions,
								 nconditions);
			continue;
		}
		if (value.type == jbvNull)
			continue;
		snprintf(key, sizeof(key), "%d", (*nconditions)++);
		BSON_APPEND_DOCUMENT_BEGIN(conditions, key, &condition);
		if (token == WJB_ELEM)
			append_element(field.data, &value, &condition);
		else
			append_scalar(field.data, &value, &condition);
		bson_append_document_end(conditions, &condition);
	}
}

static bool
render_contains(const char *path, Datum value, bson_t *match)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	int			nconditions = 0;
	bson_t		conditions;

	BSON_APPEND_ARRAY_BEGIN(match, "$and", &conditions);
	append_contained(path, &jsonb->root, &conditions, &nconditions);
	bson_append_array_end(match, &conditions);
	return nconditions > 0;
}

/* A key of an object, an element of an array, or the string itself. */
static bool
render_exists(const char *path, Datum value, bson_t *match)
{
	text	   *packed = DatumGetTextPP(value);
	JsonbValue	string = {.type = jbvString};
	StringInfoData field;
	bson_t		branches;
	bson_t		branch;

	string.val.string.val = VARDATA_ANY(packed);
	string.val.string.len = VARSIZE_ANY_EXHDR(packed);
	initStringInfo(&field);
	appendStringInfoString(&field, path);
	if (!append_key(&field, TEXTOID, PointerGetDatum(packed)))
		return false;

	BSON_APPEND_ARRAY_BEGIN(match, "$or", &branches);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "0", &branch);
	append_exists(field.data, &branch);
	bson_append_document_end(&branches, &branch);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "1", &branch);
	append_element(path, &string, &branch);
	bson_append_document_end(&branches, &branch);
	bson_append_array_end(match, &branches);
	return true;
}

static const struct
{
	Oid			function;
	bool		(*render) (const char *path, Datum value, bson_t *match);
}			tests[] =
{
	{F_JSONB_CONTAINS, render_contains},
	{F_JSONB_EXISTS, render_exists},
};

bool
mongo_is_json_test(Oid operator)
{
	Oid			function = get_opcode(operator);

	for (size_t i = 0; i < lengthof(tests); i++)
	{
		if (tests[i].function == function)
			return true;
	}
	return false;
}

bool
mongo_render_json_test(const char *path, Oid operator, Datum value, bson_t *match)
{
	Oid			function = get_opcode(operator);

	for (size_t i = 0; i < lengthof(tests); i++)
	{
		if (tests[i].function == function)
			return tests[i].render(path, value, match);
	}
	return false;
}
