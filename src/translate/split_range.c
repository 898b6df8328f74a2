/*-------------------------------------------------------------------------
 *
 * split_range.c
 *		A collection in ranges of one field, each document in exactly one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "split_range.h"

#include <math.h>

#include "bson_memory.h"
#include "miscadmin.h"

/* Each stage is a document {name: {...}} of its own in the pipeline's array. */
static void
append_stage(bson_t *pipeline, const char *index, const char *name, const bson_t *body)
{
	bson_t		stage;

	BSON_APPEND_DOCUMENT_BEGIN(pipeline, index, &stage);
	BSON_APPEND_DOCUMENT(&stage, name, body);
	bson_append_document_end(pipeline, &stage);
}

/* append_sample: the stages that find values, each once. */
static void
append_sample(bson_t *pipeline, const char *field, int sample_size)
{
	bson_t	   *sample = bson_create_in(CurrentMemoryContext);
	bson_t	   *group = bson_create_in(CurrentMemoryContext);
	bson_t	   *sort = bson_create_in(CurrentMemoryContext);

	BSON_APPEND_INT32(sample, "size", sample_size);
	BSON_APPEND_UTF8(group, "_id", psprintf("$%s", field));
	BSON_APPEND_INT32(sort, "_id", 1);
	append_stage(pipeline, "0", "$sample", sample);
	append_stage(pipeline, "1", "$group", group);
	append_stage(pipeline, "2", "$sort", sort);
}

void
mongo_append_split_pipeline(bson_t *command, const char *collection,
							const char *field, int sample_size)
{
	bson_t	   *statistics = bson_create_in(CurrentMemoryContext);
	bson_t	   *union_with = bson_create_in(CurrentMemoryContext);
	bson_t		pipeline;
	bson_t		stage;
	bson_t		inner;

	BSON_APPEND_DOCUMENT_BEGIN(statistics, "count", &inner);
	bson_append_document_end(statistics, &inner);
	BSON_APPEND_UTF8(union_with, "coll", collection);
	BSON_APPEND_ARRAY_BEGIN(union_with, "pipeline", &inner);
	append_sample(&inner, field, sample_size);
	bson_append_array_end(union_with, &inner);

	BSON_APPEND_ARRAY_BEGIN(command, "pipeline", &pipeline);
	append_stage(&pipeline, "0", "$collStats", statistics);
	BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "1", &stage);
	BSON_APPEND_INT32(&stage, "$limit", 1);
	bson_append_document_end(&pipeline, &stage);
	append_stage(&pipeline, "2", "$unionWith", union_with);
	bson_append_array_end(command, &pipeline);
}

/*
 * can_be_point: values of these types have neighbours on both sides; NaN, null
 * and arrays are compared in more than one way in different places.
 */
static bool
can_be_point(const bson_iter_t *value)
{
	bson_decimal128_t decimal;

	switch (bson_iter_type(value))
	{
		case BSON_TYPE_DOUBLE:
			return !isnan(bson_iter_double(value));
		case BSON_TYPE_DECIMAL128:
			bson_iter_decimal128(value, &decimal);
			return ((decimal.high >> 58) & 0x1f) != 0x1f;	/* NaN */
		case BSON_TYPE_UTF8:
		case BSON_TYPE_DOCUMENT:
		case BSON_TYPE_BINARY:
		case BSON_TYPE_OID:
		case BSON_TYPE_BOOL:
		case BSON_TYPE_DATE_TIME:
		case BSON_TYPE_INT32:
		case BSON_TYPE_TIMESTAMP:
		case BSON_TYPE_INT64:
			return true;
		default:
			return false;
	}
}

/* sampled_values: those that can be points, as one array. */
static bson_t *
sampled_values(const bson_iter_t *batch, int *count)
{
	bson_t	   *values = bson_create_in(CurrentMemoryContext);
	bson_iter_t elements;
	bson_iter_t value;

	*count = 0;
	if (!bson_iter_recurse(batch, &elements))
		return values;
	while (bson_iter_next(&elements))
	{
		CHECK_FOR_INTERRUPTS();
		if (!bson_iter_recurse(&elements, &value) || !bson_iter_find(&value, "_id") ||
			!can_be_point(&value))
			continue;
		if (!bson_append_iter(values, psprintf("%d", *count), -1, &value))
			break;
		(*count)++;
	}
	return values;
}

/* pick_points: so many of the values, evenly. */
static bson_t *
pick_points(const bson_t *values, int count, int npoints)
{
	bson_t	   *points = bson_create_in(CurrentMemoryContext);
	int			picked = 0;
	bson_iter_t iter;

	bson_iter_init(&iter, values);
	for (int i = 0; picked < npoints && bson_iter_next(&iter); i++)
	{
		if (i < (int64) (picked + 1) * count / (npoints + 1))
			continue;
		bson_append_iter(points, psprintf("%d", picked), -1, &iter);
		picked++;
	}
	return points;
}

static bool
is_id(const char *field)
{
	return strcmp(field, "_id") == 0;
}

int
mongo_choose_split_points(const bson_iter_t *batch, const char *field, int nranges,
						  uint32 capacity, bson_t **points)
{
	int			count;
	bson_t	   *values = sampled_values(batch, &count);
	int			npoints = Min(nranges - 1, count);

	/* fewer where the values are large */
	for (;; npoints /= 2)
	{
		*points = pick_points(values, count, npoints);
		if (npoints == 0)
			return 1;
		if ((*points)->len <= capacity)
			return npoints + (is_id(field) ? 1 : 2);
	}
}

/* append_comparison: {operator: ["$field", {$literal: value}]} */
static void
append_comparison(bson_t *conditions, const char *operator, const char *field,
				  const bson_iter_t *value)
{
	const char *index = bson_empty(conditions) ? "0" : "1";
	bson_t		condition;
	bson_t		operands;
	bson_t		literal;

	BSON_APPEND_DOCUMENT_BEGIN(conditions, index, &condition);
	BSON_APPEND_ARRAY_BEGIN(&condition, operator, &operands);
	BSON_APPEND_UTF8(&operands, "0", psprintf("$%s", field));
	if (value == NULL)
		BSON_APPEND_NULL(&operands, "1");
	else
	{
		BSON_APPEND_DOCUMENT_BEGIN(&operands, "1", &literal);
		bson_append_iter(&literal, "$literal", -1, value);
		bson_append_document_end(&operands, &literal);
	}
	bson_append_array_end(&condition, &operands);
	bson_append_document_end(conditions, &condition);
}

/*
 * append_null_range: what $expr has as not above null.
 *
 * $or finds it, through an index or not; $nor takes arrays that hold a null
 * out again, which $expr alone does not meet.
 */
static void
append_null_range(const char *field, bson_t *match)
{
	bson_t		branches;
	bson_t		branch;
	bson_t		above;
	bson_t		operands;

	BSON_APPEND_ARRAY_BEGIN(match, "$or", &branches);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "0", &branch);
	BSON_APPEND_NULL(&branch, field);
	bson_append_document_end(&branches, &branch);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "1", &branch);
	BSON_APPEND_MINKEY(&branch, field);
	bson_append_document_end(&branches, &branch);
	bson_append_array_end(match, &branches);

	BSON_APPEND_ARRAY_BEGIN(match, "$nor", &branches);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "0", &branch);
	BSON_APPEND_DOCUMENT_BEGIN(&branch, "$expr", &above);
	BSON_APPEND_ARRAY_BEGIN(&above, "$gt", &operands);
	BSON_APPEND_UTF8(&operands, "0", psprintf("$%s", field));
	BSON_APPEND_NULL(&operands, "1");
	bson_append_array_end(&above, &operands);
	bson_append_document_end(&branch, &above);
	bson_append_document_end(&branches, &branch);
	bson_append_array_end(match, &branches);
}

void
mongo_append_split_range(const bson_t *points, const char *field, int range,
						 int nranges, bson_t *match)
{
	int			npoints = nranges - (is_id(field) ? 1 : 2);
	int			lower = range - (is_id(field) ? 1 : 2); /* of the points */
	bson_iter_t value;
	bson_t		expression;
	bson_t		conditions;

	if (nranges == 1)
		return;
	if (!is_id(field) && range == 0)
	{
		append_null_range(field, match);
		return;
	}

	BSON_APPEND_DOCUMENT_BEGIN(match, "$expr", &expression);
	BSON_APPEND_ARRAY_BEGIN(&expression, "$and", &conditions);
	if (lower >= 0 && bson_iter_init_find(&value, points, psprintf("%d", lower)))
		append_comparison(&conditions, "$gte", field, &value);
	else if (!is_id(field))
		append_comparison(&conditions, "$gt", field, NULL);
	if (lower + 1 < npoints &&
		bson_iter_init_find(&value, points, psprintf("%d", lower + 1)))
		append_comparison(&conditions, "$lt", field, &value);
	bson_append_array_end(&expression, &conditions);
	bson_append_document_end(match, &expression);
}
