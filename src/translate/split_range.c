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

#include "bson_write.h"
#include "miscadmin.h"

void
mongo_append_split_pipeline(bson_t *command, const char *collection,
							const char *field, int sample_size)
{
	bson_append_template(command,
						 "{pipeline: ["
						 "{$collStats: {count: {}}}, "
						 "{$limit: 1}, "
						 "{$unionWith: {coll: @1, pipeline: ["
						 "{$sample: {size: @2}}, {$group: {_id: @3}}, {$sort: {_id: 1}}]}}]}",
						 bson_utf8(collection), bson_int32(sample_size), bson_field(field));
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
	BsonArray	values = bson_array_create();
	bson_iter_t elements;
	bson_iter_t value;

	*count = 0;
	if (!bson_iter_recurse(batch, &elements))
		return values.bson;
	while (bson_iter_next(&elements))
	{
		CHECK_FOR_INTERRUPTS();
		if (!bson_iter_recurse(&elements, &value) || !bson_iter_find(&value, "_id") ||
			!can_be_point(&value))
			continue;
		bson_array_append(&values, *bson_iter_value(&value));
	}
	*count = values.count;
	return values.bson;
}

/* pick_points: so many of the values, evenly. */
static bson_t *
pick_points(const bson_t *values, int count, int npoints)
{
	BsonArray	points = bson_array_create();
	bson_iter_t iter;

	bson_iter_init(&iter, values);
	for (int i = 0; points.count < (uint32) npoints && bson_iter_next(&iter); i++)
	{
		if (i >= (int64) (points.count + 1) * count / (npoints + 1))
			bson_array_append(&points, *bson_iter_value(&iter));
	}
	return points.bson;
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

/*
 * append_null_range: what $expr has as not above null.
 *
 * $or finds it, through an index or not; $nor takes arrays that hold a null
 * out again, which $expr alone does not meet.
 */
static void
append_null_range(const char *field, bson_t *match)
{
	bson_append_template(match,
						 "{$or: [{@1: null}, {@1: min}], $nor: [{$expr: {$gt: [@2, null]}}]}",
						 bson_utf8(field), bson_field(field));
}

void
mongo_append_split_range(const bson_t *points, const char *field, int range,
						 int nranges, bson_t *match)
{
	int			npoints = nranges - (is_id(field) ? 1 : 2);
	int			lower = range - (is_id(field) ? 1 : 2); /* of the points */
	BsonArray	conditions;
	bson_iter_t point;

	if (nranges == 1)
		return;
	if (!is_id(field) && range == 0)
	{
		append_null_range(field, match);
		return;
	}

	conditions = bson_array_create();
	if (lower >= 0 && bson_iter_init_find(&point, points, psprintf("%d", lower)))
		bson_array_append_template(&conditions, "{$gte: [@1, {$literal: @2}]}",
								   bson_field(field), *bson_iter_value(&point));
	else if (!is_id(field))
		bson_array_append_template(&conditions, "{$gt: [@1, null]}", bson_field(field));
	if (lower + 1 < npoints &&
		bson_iter_init_find(&point, points, psprintf("%d", lower + 1)))
		bson_array_append_template(&conditions, "{$lt: [@1, {$literal: @2}]}",
								   bson_field(field), *bson_iter_value(&point));
	bson_append_template(match, "{$expr: {$and: @1}}", bson_array(conditions.bson));
}
