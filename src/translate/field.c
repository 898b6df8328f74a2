/*-------------------------------------------------------------------------
 *
 * field.c
 *		The field that an expression reads.
 *
 * A chain of accessors to json is a longer path.  On the way MongoDB also looks
 * into arrays, where jsonb's accessors by key give NULL; that only adds documents.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "encoding.h"
#include "field.h"
#include "path.h"

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

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

bool
mongo_append_json_key(StringInfo path, Oid type, Datum value)
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

	/*
	 * jsonb takes "-1" and "+1" as an index too, where it is applied to an
	 * array
	 */
	if (key[0] == '\0' || key[0] == '$' || key[0] == '-' || key[0] == '+' ||
		strchr(key, '.') != NULL || isspace((unsigned char) key[0]))
		return false;
	if (key[0] == '0' && key[1] != '\0')
		return false;
	appendStringInfo(path, ".%s", key);
	return true;
}

static const char *const wrapper_keys[] = {
	[MONGO_WRAPPER_OID] = "$oid",
	[MONGO_WRAPPER_DATE] = "$date",
	[MONGO_WRAPPER_DECIMAL] = "$numberDecimal",
};

/* is_wrapper: is the last key one of Extended JSON's wrappers, and which? */
static bool
is_wrapper(Oid type, Datum key, int *wrapper)
{
	if (wrapper == NULL || type != TEXTOID)
		return false;
	for (size_t i = MONGO_WRAPPER_NONE + 1; i < lengthof(wrapper_keys); i++)
	{
		if (strcmp(wrapper_keys[i], TextDatumGetCString(key)) == 0)
			*wrapper = i;
	}
	return *wrapper != MONGO_WRAPPER_NONE;
}

/*
 * append_keys adds the constant argument of an accessor, of any kind.  A wrapper's key
 * at the end is not added, but told if that is asked for.
 */
static bool
append_keys(StringInfo path, Node *argument, int *wrapper)
{
	Const	   *constant = (Const *) argument;
	Datum	   *keys;
	bool	   *isnull;
	int			nkeys;

	if (!IsA(argument, Const) || constant->constisnull)
		return false;
	if (constant->consttype != TEXTARRAYOID)
		return is_wrapper(constant->consttype, constant->constvalue, wrapper) ||
			mongo_append_json_key(path, constant->consttype, constant->constvalue);

	deconstruct_array(DatumGetArrayTypeP(constant->constvalue), TEXTOID, -1, false,
					  TYPALIGN_INT, &keys, &isnull, &nkeys);
	for (int i = 0; i < nkeys; i++)
	{
		if (isnull[i] ||
			(!(i == nkeys - 1 && is_wrapper(TEXTOID, keys[i], wrapper)) &&
			 !mongo_append_json_key(path, TEXTOID, keys[i])))
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
		if (!append_keys(&path, lfirst(cell), NULL))
			return false;
	}
	field->path = path.data;
	field->index_uses = 0;
	field->unindexed = true;
	return true;
}

/*
 * accessed_field: by one of the accessors.  With 'wrapped' it must be the text within a
 * wrapper, which only those may ask for who know what that is.
 */
static bool
accessed_field(MongoColumns *columns, Node *node, bool wrapped, MongoField *field)
{
	int			wrapper = MONGO_WRAPPER_NONE;
	OpExpr	   *accessor = (OpExpr *) node;
	StringInfoData path;
	size_t		i = 0;
	Oid			function;

	if (!IsA(node, OpExpr) || list_length(accessor->args) != 2)
		return false;
	function = get_opcode(accessor->opno);
	while (i < lengthof(accessors) && accessors[i].function != function)
		i++;
	if (i == lengthof(accessors) ||
		!mongo_field_of_node(columns, linitial(accessor->args), field) ||
		!is_json(field->operator_type))
		return false;

	initStringInfo(&path);
	appendStringInfoString(&path, field->path);
	if (!append_keys(&path, lsecond(accessor->args),
					 wrapped && accessors[i].to_text ? &wrapper : NULL) ||
		wrapped != (wrapper != MONGO_WRAPPER_NONE))
		return false;

	field->path = path.data;
	field->wrapper = wrapper;
	field->typmod = -1;
	field->index_uses = 0;
	field->unindexed = true;
	if (accessors[i].to_text)
	{
		field->type = JSONOID;
		field->operator_type = TEXTOID;
	}
	else
		field->type = field->operator_type;
	return true;
}

bool
mongo_field_of_node(MongoColumns *columns, Node *node, MongoField *field)
{
	check_stack_depth();

	node = mongo_strip_relabelling(node);
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return mongo_column_of_node(columns, node, field) != NULL;
	if (IsA(node, SubscriptingRef))
		return subscripted_field(columns, (SubscriptingRef *) node, field);
	return accessed_field(columns, node, false, field);
}

bool
mongo_any_element(MongoColumns *columns, Node *node, MongoField *field)
{
	Oid			element;

	if (!mongo_field_of_node(columns, node, field))
		return false;
	element = get_base_element_type(field->type);
	if (!OidIsValid(element))
		return false;
	field->type = element;
	field->operator_type = getBaseType(element);
	field->element = MONGO_ANY_ELEMENT;
	return true;
}

/* subscript: of an element, counted from 1; 0 if no constant tells. */
static int
subscript(const SubscriptingRef *node)
{
	const Const *constant;

	if (node->refassgnexpr != NULL || node->reflowerindexpr != NIL ||
		list_length(node->refupperindexpr) != 1)
		return 0;
	constant = linitial(node->refupperindexpr);
	if (!IsA(constant, Const) || constant->constisnull || constant->consttype != INT4OID)
		return 0;
	return Max(DatumGetInt32(constant->constvalue), 0);
}

/* Casts of a jsonb that raise an error for a value of another JSON type. */
static bool
is_json_cast(Oid function)
{
	switch (function)
	{
		case F_BOOL_JSONB:
		case F_NUMERIC_JSONB:
		case F_INT2_JSONB:
		case F_INT4_JSONB:
		case F_INT8_JSONB:
		case F_FLOAT4_JSONB:
		case F_FLOAT8_JSONB:
			return true;
		default:
			return false;
	}
}

/* text_field: j ->> 'a', and j -> 'a' ->> '$date' */
static bool
text_field(MongoColumns *columns, Node *node, MongoField *field)
{
	node = mongo_strip_relabelling(node);
	if (node == NULL)
		return false;
	if (mongo_field_of_node(columns, node, field))
		return field->type == JSONOID && field->operator_type == TEXTOID;
	return accessed_field(columns, node, true, field);
}

/* cast_field: (j ->> 'a')::type, of text, and (j -> 'a')::type, of jsonb */
static bool
cast_field(MongoColumns *columns, Node *node, MongoField *field)
{
	int32		typmod = exprTypmod(node);

	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcid == F_NUMERIC_NUMERIC_INT4)
		node = linitial(((FuncExpr *) node)->args);
	if (IsA(node, CoerceViaIO))
	{
		if (!text_field(columns, (Node *) ((CoerceViaIO *) node)->arg, field))
			return false;
	}
	else if (!IsA(node, FuncExpr) || !is_json_cast(((FuncExpr *) node)->funcid) ||
			 !mongo_field_of_node(columns, linitial(((FuncExpr *) node)->args), field) ||
			 field->type != JSONBOID)
		return false;
	field->typmod = typmod;
	field->operator_type = field->cast_type = exprType(node);
	return true;
}

bool
mongo_operand_of_node(MongoColumns *columns, Node *node, MongoField *field)
{
	SubscriptingRef *reference;

	if (mongo_field_of_node(columns, node, field) || text_field(columns, node, field) ||
		cast_field(columns, node, field))
		return true;
	reference = (SubscriptingRef *) mongo_strip_relabelling(node);
	if (reference == NULL || !IsA(reference, SubscriptingRef) || subscript(reference) == 0 ||
		!mongo_any_element(columns, (Node *) reference->refexpr, field))
		return false;
	field->element = subscript(reference);
	return true;
}
