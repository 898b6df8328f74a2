/*-------------------------------------------------------------------------
 *
 * unwind.c
 *		Unwinds the arrays of documents that a find has returned.
 *
 * From a document, a document is made for each element of an array: it has the element in place of
 * the array, as after MongoDB's $unwind.  So whatever reads rows reads both.  MongoDB takes several
 * times as long for that, and sends as many documents.
 *
 * The planner (src/plan/scan_plan.c) decides where a scan unwinds.  It does not if the scan reads
 * whole documents, where the fields' order would matter, and a field that a number replaces.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "miscadmin.h"

/* One of the paths that are unwound, and the document that is unwound there. */
typedef struct UnwoundPath
{
	const char *path;
	int			nnames;
	char	  **names;			/* the path's components */
	const char *number;			/* field of the element's number; NULL: not
								 * read */

	const uint8_t *document;
	uint32		length;
	uint32	   *parents;		/* offsets of the documents on the path */
	uint32		value;			/* offset of the array */
	uint32		end;			/* and of what follows it */
	bool		is_row;			/* the document itself is the next row */
	bool		has_elements;	/* the next rows have 'elements' */
	bson_iter_t elements;
	int64		count;			/* elements so far */
	StringInfoData row;			/* the last one made */
	uint32		nbefore;		/* bytes in it before the value */
} UnwoundPath;

struct MongoUnwinder
{
	const MongoScanPlan *plan;
	StringInfoData document;	/* a copy, as the cursor's may not last */
	UnwoundPath *paths;
	int			npaths;
	int			current;		/* number of the path to go on with; -1: none */
};

/*
 * mongo_unwinder_create
 *		Returns the unwinder of a scan, in the current memory context; NULL if MongoDB unwinds.
 */
MongoUnwinder *
mongo_unwinder_create(const MongoScanPlan *plan)
{
	const MongoTableOptions options = {.unwind = plan->unwind, .ordinality = plan->ordinality};
	List	   *numbers = mongo_ordinality_fields(&options);
	List	   *paths = mongo_unwound_paths(&options);
	MongoUnwinder *unwinder;

	if (plan->unwind == NULL)
		return NULL;
	unwinder = palloc0(sizeof(MongoUnwinder));
	unwinder->plan = plan;
	unwinder->current = -1;
	unwinder->npaths = list_length(paths);
	unwinder->paths = mongo_bson_palloc(CurrentMemoryContext, sizeof(UnwoundPath) * unwinder->npaths);
	memset(unwinder->paths, 0, sizeof(UnwoundPath) * unwinder->npaths);
	initStringInfo(&unwinder->document);
	for (int i = 0; i < unwinder->npaths; i++)
	{
		UnwoundPath *path = &unwinder->paths[i];
		const char *rest = path->path = list_nth(paths, i);

		path->names = palloc(sizeof(char *) * (strlen(rest) + 1));
		for (;;)
		{
			size_t		length = strcspn(rest, ".");

			path->names[path->nnames++] = pnstrdup(rest, length);
			if (rest[length] == '\0')
				break;
			rest += length + 1;
		}
		path->parents = palloc(sizeof(uint32) * path->nnames);
		path->number = i < list_length(numbers) ? list_nth(numbers, i) : NULL;
		initStringInfo(&path->row);
	}
	return unwinder;
}

static void
set_length(StringInfo row, uint32 offset, uint32 length)
{
	length = BSON_UINT32_TO_LE(length);
	memcpy(row->data + offset, &length, sizeof(length));
}

/*
 * Begins path->row with what precedes the value, with the number's field first if 'numbered'; the
 * name of the value is the last of it.
 */
static void
begin_row(UnwoundPath *path, bool numbered)
{
	int64		number = 0;

	resetStringInfo(&path->row);
	appendBinaryStringInfo(&path->row, (const char *) path->document, sizeof(uint32));
	if (numbered && path->number != NULL)
	{
		appendStringInfoChar(&path->row, BSON_TYPE_INT64);
		appendBinaryStringInfo(&path->row, path->number, strlen(path->number) + 1);
		appendBinaryStringInfo(&path->row, (const char *) &number, sizeof(number));
	}
	appendBinaryStringInfo(&path->row, (const char *) path->document + sizeof(uint32),
						   path->value - sizeof(uint32));
	path->nbefore = path->row.len;
}

/* Ends path->row with a value of these bytes, and what follows it. */
static void
end_row(UnwoundPath *path, bson_type_t type, const uint8_t *value, uint32 size)
{
	uint32		added = path->nbefore - path->value;
	uint32		name = strlen(path->names[path->nnames - 1]) + 1;

	path->row.len = path->nbefore;
	path->row.data[path->nbefore - name - 1] = (char) type;
	appendBinaryStringInfo(&path->row, (const char *) value, size);
	appendBinaryStringInfo(&path->row, (const char *) path->document + path->end,
						   path->length - path->end);
	for (int i = 0; i < path->nnames; i++)
	{
		uint32		length;

		memcpy(&length, path->document + path->parents[i], sizeof(length));
		length = BSON_UINT32_FROM_LE(length) + size - (path->end - path->value);
		set_length(&path->row, path->parents[i] + (i == 0 ? 0 : added), length + (i == 0 ? added : 0));
	}
}

/*
 * Finds the value at the path; returns its type, and sets path->value and path->end.  Returns
 * BSON_TYPE_NULL if there is none, and BSON_TYPE_EOD if the path goes through an array.
 */
static bson_type_t
find_value(UnwoundPath *path)
{
	uint32		length = path->length;
	bson_iter_t iter;
	bson_type_t type;

	if (!bson_iter_init_from_data(&iter, path->document, length))
		mongo_report_bad_bson();
	for (int i = 0;; i++)
	{
		bson_iter_t child;

		path->parents[i] = iter.raw - path->document;
		if (!bson_iter_find(&iter, path->names[i]))
		{
			if (!mongo_iter_is_at_end(&iter, length))
				mongo_report_bad_bson();
			return BSON_TYPE_NULL;
		}
		type = bson_iter_type(&iter);
		if (i == path->nnames - 1)
			break;
		if (type == BSON_TYPE_ARRAY)
			return BSON_TYPE_EOD;
		if (type != BSON_TYPE_DOCUMENT)
			return BSON_TYPE_NULL;
		length = mongo_iter_descend(&iter, &child);
		iter = child;
	}
	path->value = path->parents[path->nnames - 1] + iter.key + strlen(path->names[path->nnames - 1]) + 1;
	path->end = path->parents[path->nnames - 1] + iter.next_off;
	if (type == BSON_TYPE_ARRAY)
		(void) mongo_iter_descend(&iter, &path->elements);
	return type == BSON_TYPE_UNDEFINED ? BSON_TYPE_NULL : type;
}

/*
 * Begins to unwind the document at the path.  What is no array is treated as append_array_test()
 * (src/translate/source.c) has MongoDB do.  Raises HV004, and 08P01 for invalid BSON.
 */
static void
begin_path(const MongoUnwinder *unwinder, UnwoundPath *path, const uint8_t *document, uint32 length)
{
	const MongoScanPlan *plan = unwinder->plan;
	bson_type_t type;
	bson_iter_t first;

	path->document = document;
	path->length = length;
	path->count = 0;
	path->is_row = path->has_elements = false;
	type = find_value(path);
	if (type == BSON_TYPE_NULL)
		path->is_row = plan->unwind_empty;
	else if (type == BSON_TYPE_ARRAY)
	{
		first = path->elements;
		path->has_elements = bson_iter_next(&first) || !plan->unwind_empty;
		begin_row(path, path->has_elements);
	}
	else if (plan->no_array == MONGO_NO_ARRAY_RAISES)
		mongo_raise_mismatch(mongo_from_utf8(path->path), psprintf("%s.%s", plan->database, plan->collection),
							 MONGO_MISMATCH_ARRAY, type == BSON_TYPE_EOD ? MONGO_MISMATCH_ARRAY :
							 linitial(mongo_bson_type_aliases(MONGO_BSON_BIT(type))));
	else if (!plan->unwind_empty || plan->no_array == MONGO_NO_ARRAY_IS_LEFT_OUT)
		return;
	else if (type == BSON_TYPE_EOD)
		path->is_row = true;
	else
		begin_row(path, false);

	/* an empty array, or what is read as null */
	if (plan->unwind_empty && !path->is_row && !path->has_elements)
	{
		end_row(path, BSON_TYPE_NULL, NULL, 0);
		path->document = (const uint8_t *) path->row.data;
		path->length = path->row.len;
		path->is_row = true;
	}
}

/* Makes the next row of the path; returns false if there is none. */
static bool
next_element(UnwoundPath *path, const uint8_t **row, uint32 *length)
{
	const bson_iter_t *element = &path->elements;
	uint32		value;
	int64		number;

	if (path->is_row)
	{
		path->is_row = false;
		*row = path->document;
		*length = path->length;
		return true;
	}
	if (!path->has_elements)
		return false;
	if (!bson_iter_next(&path->elements))
	{
		if (element->err_off != 0)
			mongo_report_bad_bson();
		return false;
	}
	value = element->key + bson_iter_key_len(element) + 1;
	end_row(path, bson_iter_type(element), element->raw + value, element->next_off - value);
	if (path->number != NULL)
	{
		number = (int64) BSON_UINT64_TO_LE(++path->count);
		memcpy(path->row.data + sizeof(uint32) + 1 + strlen(path->number) + 1, &number, sizeof(number));
	}
	*row = (const uint8_t *) path->row.data;
	*length = path->row.len;
	return true;
}

/*
 * mongo_unwinder_begin
 *		Begins to unwind this document, of which the unwinder makes a copy.
 *
 * Raises HV004 if it has anything but an array at a path, unless the plan treats that as null; so
 * does mongo_unwinder_next().
 */
void
mongo_unwinder_begin(MongoUnwinder *unwinder, const uint8_t *document, uint32 length)
{
	resetStringInfo(&unwinder->document);
	appendBinaryStringInfo(&unwinder->document, (const char *) document, length);
	begin_path(unwinder, &unwinder->paths[0], (const uint8_t *) unwinder->document.data, length);
	unwinder->current = 0;
}

/*
 * mongo_unwinder_next
 *		Returns the bytes of the next document that unwinding makes, or NULL if there are no more.
 *
 * They stay valid until the next call.
 */
const uint8_t *
mongo_unwinder_next(MongoUnwinder *unwinder, uint32 *length)
{
	while (unwinder->current >= 0)
	{
		const uint8_t *row;

		CHECK_FOR_INTERRUPTS();
		if (!next_element(&unwinder->paths[unwinder->current], &row, length))
			unwinder->current--;
		else if (unwinder->current == unwinder->npaths - 1)
			return row;
		else
		{
			begin_path(unwinder, &unwinder->paths[unwinder->current + 1], row, *length);
			unwinder->current++;
		}
	}
	return NULL;
}
