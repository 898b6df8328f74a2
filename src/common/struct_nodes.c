/*-------------------------------------------------------------------------
 *
 * struct_nodes.c
 *		Converts structs to nodes that a plan can contain, and back.
 *
 * The first element of the List is a Const: a bytea of numbers in their binary form, of
 * strings, and of the structs in Lists.  Fields that are nodes are the other elements.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common.h"

#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"

typedef struct Writer
{
	StringInfoData bytes;
	List	   *nodes;
} Writer;

typedef struct Reader
{
	const char *bytes;			/* next byte to read */
	const List *nodes;
	int			next_node;
} Reader;

/* Appends whether the string is not NULL; if so, the string and its zero. */
static void
pack_string(Writer *writer, const char *string)
{
	appendStringInfoCharMacro(&writer->bytes, string != NULL);
	if (string != NULL)
		appendBinaryStringInfo(&writer->bytes, string, strlen(string) + 1);
}

/* Appends the fields of a struct. */
static void
pack_struct(Writer *writer, const MongoStructType *type, const char *source)
{
	for (int i = 0; i < type->nfields; i++)
	{
		const MongoStructField *field = &type->fields[i];
		const void *at = source + field->offset;
		const List *structs;
		int			count;

		switch (field->kind)
		{
			case MONGO_FIELD_NUMBERS:
				appendBinaryStringInfo(&writer->bytes, at, field->size);
				break;
			case MONGO_FIELD_STRING:
				pack_string(writer, *(const char *const *) at);
				break;
			case MONGO_FIELD_NODE:
				writer->nodes = lappend(writer->nodes, *(void *const *) at);
				break;
			case MONGO_FIELD_STRUCTS:
				structs = *(const List *const *) at;
				count = list_length(structs);
				appendBinaryStringInfo(&writer->bytes, (char *) &count, sizeof(count));
				for (int nth = 0; nth < count; nth++)
					pack_struct(writer, field->element, list_nth(structs, nth));
				break;
		}
	}
}

/* Returns a struct whose fields are read, palloc'd. */
static void *
unpack_struct(Reader *reader, const MongoStructType *type)
{
	char	   *result = palloc0(type->size);

	for (int i = 0; i < type->nfields; i++)
	{
		const MongoStructField *field = &type->fields[i];
		void	   *at = result + field->offset;
		List	   *structs = NIL;
		int			count;

		switch (field->kind)
		{
			case MONGO_FIELD_NUMBERS:
				memcpy(at, reader->bytes, field->size);
				reader->bytes += field->size;
				break;
			case MONGO_FIELD_STRING:
				*(const char **) at = *reader->bytes++ != 0 ? reader->bytes : NULL;
				if (*(const char **) at != NULL)
					reader->bytes += strlen(reader->bytes) + 1;
				break;
			case MONGO_FIELD_NODE:
				*(void **) at = list_nth(reader->nodes, reader->next_node++);
				break;
			case MONGO_FIELD_STRUCTS:
				memcpy(&count, reader->bytes, sizeof(count));
				reader->bytes += sizeof(count);
				for (int nth = 0; nth < count; nth++)
					structs = lappend(structs, unpack_struct(reader, field->element));
				*(List **) at = structs;
				break;
		}
	}
	return result;
}

/*
 * mongo_struct_to_list
 *		Returns a List of what the struct contains, which a plan can copy and write.  It contains
 *		copies of the strings, but shares the nodes.
 */
List *
mongo_struct_to_list(const MongoStructType *type, const void *source)
{
	Writer		writer = {.nodes = list_make1(NULL)};

	initStringInfo(&writer.bytes);
	writer.bytes.len = VARHDRSZ;
	pack_struct(&writer, type, source);
	SET_VARSIZE(writer.bytes.data, writer.bytes.len);
	linitial(writer.nodes) = makeConst(BYTEAOID, -1, InvalidOid, -1,
									   PointerGetDatum(writer.bytes.data), false, false);
	return writer.nodes;
}

/*
 * mongo_struct_from_list
 *		Returns the struct of such a List, palloc'd.  It shares strings and nodes with the List.
 */
void *
mongo_struct_from_list(const MongoStructType *type, const List *list)
{
	const Const *bytes = linitial(list);
	Reader		reader = {VARDATA(DatumGetPointer(bytes->constvalue)), list, 1};

	return unpack_struct(&reader, type);
}
