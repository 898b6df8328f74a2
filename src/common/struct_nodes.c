/*-------------------------------------------------------------------------
 *
 * struct_nodes.c
 *		Structs as nodes that a plan can hold, and back.
 *
 * The List begins with a List of all numbers; the other fields follow one by one,
 * each kind in the order of the table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "struct_nodes.h"

#include "nodes/value.h"

static int
get_number(const void *field, size_t size)
{
	switch (size)
	{
		case sizeof(bool):
			return *(const bool *) field;
		case sizeof(int16):
			return *(const int16 *) field;
		default:
			Assert(size == sizeof(int));
			return *(const int *) field;
	}
}

static void
set_number(void *field, size_t size, int number)
{
	switch (size)
	{
		case sizeof(bool):
			*(bool *) field = number != 0;
			break;
		case sizeof(int16):
			*(int16 *) field = (int16) number;
			break;
		default:
			*(int *) field = number;
			break;
	}
}

/* structs_to_lists: a List of structs as one of Lists. */
static List *
structs_to_lists(const MongoStructType *type, const List *structs)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, structs)
		result = lappend(result, mongo_struct_to_list(type, lfirst(cell)));
	return result;
}

static List *
structs_from_lists(const MongoStructType *type, const List *lists)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, lists)
		result = lappend(result, mongo_struct_from_list(type, lfirst(cell)));
	return result;
}

List *
mongo_struct_to_list(const MongoStructType *type, const void *source)
{
	List	   *numbers = NIL;
	List	   *result = list_make1(NIL);

	for (int i = 0; i < type->nfields; i++)
	{
		const MongoStructField *field = &type->fields[i];
		const void *at = (const char *) source + field->offset;
		void	   *pointer;

		if (field->kind == MONGO_FIELD_NUMBER)
		{
			numbers = lappend_int(numbers, get_number(at, field->size));
			continue;
		}
		pointer = *(void *const *) at;
		if (field->kind == MONGO_FIELD_STRUCTS)
			pointer = structs_to_lists(field->element, pointer);
		else if (field->kind == MONGO_FIELD_STRING && pointer != NULL)
			pointer = makeString(pstrdup(pointer));
		result = lappend(result, pointer);
	}
	linitial(result) = numbers;
	return result;
}

void *
mongo_struct_from_list(const MongoStructType *type, const List *list)
{
	char	   *result = palloc0(type->size);
	const List *numbers = linitial(list);
	int			next_number = 0;
	int			next_pointer = 1;

	for (int i = 0; i < type->nfields; i++)
	{
		const MongoStructField *field = &type->fields[i];
		void	   *at = result + field->offset;
		void	   *pointer;

		if (field->kind == MONGO_FIELD_NUMBER)
		{
			set_number(at, field->size, list_nth_int(numbers, next_number++));
			continue;
		}
		pointer = list_nth(list, next_pointer++);
		if (field->kind == MONGO_FIELD_STRUCTS)
			pointer = structs_from_lists(field->element, pointer);
		else if (field->kind == MONGO_FIELD_STRING && pointer != NULL)
			pointer = strVal(pointer);
		*(void **) at = pointer;
	}
	return result;
}
