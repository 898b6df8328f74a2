/*-------------------------------------------------------------------------
 *
 * nearest.c
 *		Finds what was probably meant by the name of a collection or field that does not exist.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "access/tupdesc.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/rel.h"
#include "utils/varlena.h"

/* Longer names are not compared: the effort grows with the square. */
#define LONGEST_NAME	100

/* Documents whose fields are compared. */
#define SAMPLED_DOCUMENTS	100

/*
 * Returns the name that differs in its cases only, or else in at most a third of its characters;
 * NULL if there is none.
 */
static const char *
nearest(const List *names, const char *name)
{
	int			length = strlen(name);
	int			least = length / 3 + 1;
	const char *result = NULL;
	char	   *lower = asc_tolower(name, length);

	if (length > LONGEST_NAME)
		return NULL;
	foreach_ptr(const char, each, names)
	{
		int			each_length = strlen(each);
		char	   *each_lower;
		int			distance;

		CHECK_FOR_INTERRUPTS();
		if (pg_strcasecmp(each, name) == 0)
			return each;
		if (each_length > LONGEST_NAME)
			continue;
		each_lower = asc_tolower(each, each_length);
		distance = varstr_levenshtein_less_equal(lower, length, each_lower, each_length, 1, 1, 1,
												 least, true);
		pfree(each_lower);
		if (distance < least)
		{
			least = distance;
			result = each;
		}
	}
	return result;
}

/*
 * nearest_collection
 *		Returns the collection of the database that was probably meant by another name.
 *
 * It is the same in other cases, or a few letters are changed.  NULL if there is none, or the user
 * may not list collections.  Palloc'd or static, in the database's encoding.
 */
const char *
nearest_collection(UserMapping *user, const char *database, const char *name)
{
	const ImportSource source = {.user = user, .database = database};
	List	   *names = NIL;
	ListCell   *cell;

	foreach(cell, import_list_collections(&source, NULL))
		names = lappend(names, unconstify(char *, ((ImportCollection *) lfirst(cell))->name));
	return nearest(names, name);
}

/*
 * nearest_field
 *		Returns the path of a field that was probably meant by this path (UTF-8), and that no
 *		column reads.
 *
 * NULL if there is none.  Palloc'd or static, in the database's encoding.
 */
const char *
nearest_field(FieldSample *sample, const char *path)
{
	const char *last = strrchr(path, '.');
	const SampledField *parent = last == NULL ? &sample->root :
		field_sample_find(sample, pnstrdup(path, last - path), false);
	List	   *names = NIL;
	const char *name;

	for (const SampledField *field = parent == NULL ? NULL : parent->first_child; field != NULL;
		 field = field->next)
	{
		if (field->path == NULL && !field->is_above &&
			mongo_text_is_valid(field->name, field->name_length))
			names = lappend(names, unconstify(char *, mongo_from_utf8(field->name)));
	}
	name = nearest(names, mongo_from_utf8(last == NULL ? path : last + 1));
	list_free(names);
	return name == NULL || last == NULL ? name :
		psprintf("%s.%s", mongo_from_utf8(pnstrdup(path, last - path)), name);
}

/*
 * warn_of_missing_fields
 *		Raises a WARNING for each of these attribute numbers if no document of a small sample has
 *		the column's field, but a similar one.
 */
void
warn_of_missing_fields(Relation relation, UserMapping *user, const Bitmapset *attributes)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(relation));
	FieldSample *sample = field_sample_create(false, 0);
	int			ncolumns;
	MongoColumn *columns = sample_columns(relation, MONGO_TYPE_MISMATCH_NULL, &ncolumns);
	MongoCursor *cursor;
	const uint8_t *data;
	uint32		length;

	for (int i = 0; i < ncolumns; i++)
	{
		if (columns[i].path != NULL)
			(void) field_sample_find(sample, columns[i].path, true);
	}
	cursor = sample_open(user, options, SAMPLED_DOCUMENTS, NULL, 0, NULL);
	while ((data = mongo_cursor_next(cursor, &length)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		field_sample_observe(sample, data, length);
	}
	mongo_cursor_close(cursor);

	for (int i = 0; i < ncolumns; i++)
	{
		const char *path = columns[i].path;
		double		counts[BSON_TYPE_COUNT];
		uint32		types;
		const char *meant;

		if (path == NULL || !bms_is_member(columns[i].index + 1, attributes) ||
			sampled_field_counts(field_sample_find(sample, path, false), counts, &types) > 0)
			continue;
		meant = nearest_field(sample, path);
		if (meant != NULL)
			ereport(WARNING,
					(errmsg("no sampled document of collection \"%s.%s\" has the field \"%s\"",
							options->database, options->collection, mongo_from_utf8(path)),
					 errhint("Perhaps column \"%s\" should read the field \"%s\": set its option path.",
							 columns[i].name, meant)));
	}
}
