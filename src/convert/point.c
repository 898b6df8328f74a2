/*-------------------------------------------------------------------------
 *
 * point.c
 *		The type point as a GeoJSON Point.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "point.h"

#include "bson_walk.h"
#include "decode_number.h"
#include "decode_text_form.h"
#include "encode_scalar.h"
#include "mismatch.h"
#include "utils/geo_decls.h"

#define NO_POINT_REMARK \
	"A point is a GeoJSON Point or an array of two numbers, without anything else in it."

static bool
is_number(bson_type_t type)
{
	return type == BSON_TYPE_DOUBLE || type == BSON_TYPE_INT32 ||
		type == BSON_TYPE_INT64 || type == BSON_TYPE_DECIMAL128;
}

/* read_coordinates: two numbers, and no more. */
static bool
read_coordinates(const MongoReader *reader, MongoReadContext *context,
				 const bson_iter_t *iter, Point *point)
{
	bson_iter_t child;
	uint32		length = mongo_iter_descend(iter, &child);
	Datum		numbers[2];
	int			count = 0;

	while (bson_iter_next(&child))
	{
		if (count == lengthof(numbers) || !is_number(bson_iter_type(&child)))
			return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, NO_POINT_REMARK);
		if (!mongo_read_float8(reader, context, &child, &numbers[count++]))
			return false;
	}
	mongo_iter_check_end(&child, length);
	if (count != lengthof(numbers))
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, NO_POINT_REMARK);
	point->x = DatumGetFloat8(numbers[0]);
	point->y = DatumGetFloat8(numbers[1]);
	return true;
}

/* read_geojson: the members "type" and "coordinates", each once. */
static bool
read_geojson(const MongoReader *reader, MongoReadContext *context,
			 const bson_iter_t *iter, Point *point)
{
	bson_iter_t child;
	uint32		length = mongo_iter_descend(iter, &child);
	int			types = 0;
	int			coordinates = 0;

	while (bson_iter_next(&child))
	{
		const char *key = bson_iter_key(&child);

		if (strcmp(key, "type") == 0 && BSON_ITER_HOLDS_UTF8(&child) &&
			strcmp(bson_iter_utf8(&child, NULL), "Point") == 0)
			types++;
		else if (strcmp(key, "coordinates") == 0 && BSON_ITER_HOLDS_ARRAY(&child))
		{
			if (!read_coordinates(reader, context, &child, point))
				return false;
			coordinates++;
		}
		else
			return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, NO_POINT_REMARK);
	}
	mongo_iter_check_end(&child, length);
	if (types != 1 || coordinates != 1)
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, NO_POINT_REMARK);
	return true;
}

bool
mongo_read_point(MONGO_READ_ARGS)
{
	Point	   *point;

	if (!BSON_ITER_HOLDS_DOCUMENT(iter) && !BSON_ITER_HOLDS_ARRAY(iter))
		return mongo_read_text_form(reader, context, iter, value);
	point = palloc(sizeof(Point));
	*value = PointPGetDatum(point);
	return BSON_ITER_HOLDS_ARRAY(iter) ?
		read_coordinates(reader, context, iter, point) :
		read_geojson(reader, context, iter, point);
}

void
mongo_write_point(MONGO_WRITE_ARGS)
{
	const Point *point = DatumGetPointP(value);
	bson_t		geometry;
	bson_t		coordinates;

	mongo_write_check(bson_append_document_begin(target->document, target->key,
												 target->key_length, &geometry) &&
					  BSON_APPEND_UTF8(&geometry, "type", "Point") &&
					  BSON_APPEND_ARRAY_BEGIN(&geometry, "coordinates", &coordinates) &&
					  BSON_APPEND_DOUBLE(&coordinates, "0", point->x) &&
					  BSON_APPEND_DOUBLE(&coordinates, "1", point->y) &&
					  bson_append_array_end(&geometry, &coordinates) &&
					  bson_append_document_end(target->document, &geometry));
}
