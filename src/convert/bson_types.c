/*-------------------------------------------------------------------------
 *
 * bson_types.c
 *		The names of BSON's types, one row each.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_types.h"

static const struct
{
	bson_type_t type;
	const char *name;
	const char *alias;			/* of $type */
}			bson_types[] =
{
	{BSON_TYPE_DOUBLE, "Double", "double"},
	{BSON_TYPE_UTF8, "String", "string"},
	{BSON_TYPE_SYMBOL, "Symbol", "symbol"},
	{BSON_TYPE_DOCUMENT, "Document", "object"},
	{BSON_TYPE_ARRAY, "Array", "array"},
	{BSON_TYPE_BINARY, "Binary", "binData"},
	{BSON_TYPE_UNDEFINED, "Undefined", "undefined"},
	{BSON_TYPE_OID, "ObjectId", "objectId"},
	{BSON_TYPE_BOOL, "Boolean", "bool"},
	{BSON_TYPE_DATE_TIME, "Date", "date"},
	{BSON_TYPE_NULL, "Null", "null"},
	{BSON_TYPE_REGEX, "Regex", "regex"},
	{BSON_TYPE_DBPOINTER, "DBPointer", "dbPointer"},
	{BSON_TYPE_CODE, "JavaScript", "javascript"},
	{BSON_TYPE_CODEWSCOPE, "JavaScript with scope", "javascriptWithScope"},
	{BSON_TYPE_INT32, "Int32", "int"},
	{BSON_TYPE_TIMESTAMP, "Timestamp", "timestamp"},
	{BSON_TYPE_INT64, "Int64", "long"},
	{BSON_TYPE_DECIMAL128, "Decimal128", "decimal"},
	{BSON_TYPE_MINKEY, "MinKey", "minKey"},
	{BSON_TYPE_MAXKEY, "MaxKey", "maxKey"},
};

const char *
mongo_bson_type_name(bson_type_t type)
{
	for (size_t i = 0; i < lengthof(bson_types); i++)
	{
		if (bson_types[i].type == type)
			return bson_types[i].name;
	}
	return "value of unknown type";
}

List *
mongo_bson_type_aliases(uint32 set)
{
	List	   *aliases = NIL;

	for (size_t i = 0; i < lengthof(bson_types); i++)
	{
		if (set & MONGO_BSON_BIT(bson_types[i].type))
			aliases = lappend(aliases, unconstify(char *, bson_types[i].alias));
	}
	return aliases;
}
