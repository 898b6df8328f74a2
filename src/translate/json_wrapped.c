/*-------------------------------------------------------------------------
 *
 * json_wrapped.c
 *		Conditions on the text within a wrapper of Extended JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_wrapped.h"

#include "bson_write.h"
#include "json_cast.h"
#include "objectid.h"
#include "types.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* append_wrapped_oid: the ObjectId with these digits, in lower case, as JSON has them. */
static void
append_wrapped_oid(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	const text *packed = DatumGetTextPP(value);
	bson_oid_t	oid;

	if (mongo_objectid_from_text(VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed), true, &oid))
		bson_array_append_template(branches, "{@1: {$eq: @2}}", bson_utf8(predicate->path),
								   bson_oid(&oid));
}

/* append_wrapped_date: of a Date as it is cast, in UTC but for timestamptz. */
static void
append_wrapped_date(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	int64		low;
	int64		high;

	mongo_cast_date_bounds(predicate, value, &low, &high);
	bson_array_append_template(branches, "{@1: {$gte: @2, $lte: @3}}", bson_utf8(predicate->path),
							   bson_date(low), bson_date(high));
}

/* append_wrapped_decimal: beside numbers, NaN is one here and has no place among them. */
static void
append_wrapped_decimal(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	mongo_append_cast_number(predicate, value, branches);
	bson_array_append_template(branches, "{@1: NaN}", bson_utf8(predicate->path));
}

static const struct
{
	const char *type;			/* of $type */
	MongoTypeKind class;		/* what it is cast to */
	void		(*append) (const MongoPredicate *predicate, Datum value,
						   BsonArray *branches);
}			wrappers[] =
{
	[MONGO_WRAPPER_OID] = {"objectId", MONGO_KIND_TEXT, append_wrapped_oid},
	[MONGO_WRAPPER_DATE] = {"date", MONGO_KIND_TIMESTAMP, append_wrapped_date},
	[MONGO_WRAPPER_DECIMAL] = {"decimal", MONGO_KIND_NUMERIC, append_wrapped_decimal},
};

/* is_sought: is it compared as a value of its type, or else as any text? */
static bool
is_sought(const MongoPredicate *predicate)
{
	Oid			type = OidIsValid(predicate->cast_type) ? predicate->cast_type : TEXTOID;
	MongoTypeKind class = mongo_kind_of_type(type)->class;

	switch (wrappers[predicate->wrapper].class)
	{
		case MONGO_KIND_NUMERIC:
			return class == MONGO_KIND_NUMERIC || class == MONGO_KIND_INTEGER ||
				class == MONGO_KIND_DOUBLE;
		case MONGO_KIND_TIMESTAMP:
			return class == MONGO_KIND_TIMESTAMP || class == MONGO_KIND_TIMESTAMPTZ;
		default:
			return class == wrappers[predicate->wrapper].class;
	}
}

MongoGrade
mongo_wrapped_grade(const MongoPredicate *predicate)
{
	if (predicate->form == MONGO_PREDICATE_ALL || predicate->value_type == NAMEOID)
		return MONGO_NOT_SHIPPABLE;
	if (!OidIsValid(predicate->cast_type))
		return predicate->strategy != BTEqualStrategyNumber ||
			get_collation_isdeterministic(predicate->collation) ?
			MONGO_SUPERSET : MONGO_NOT_SHIPPABLE;
	return is_sought(predicate) ? mongo_json_cast_grade(predicate) : MONGO_NOT_SHIPPABLE;
}

MongoMatch
mongo_render_wrapped(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	const char *type = wrappers[predicate->wrapper].type;
	BsonArray	branches = bson_array_create();

	if (OidIsValid(predicate->cast_type) && predicate->strategy != BTEqualStrategyNumber)
	{
		mongo_append_cast_bound(predicate, value, type, "object", match);
		return MONGO_MATCH_SOME;
	}
	if (is_sought(predicate) && predicate->strategy == BTEqualStrategyNumber)
		mongo_append_each(predicate, value, wrappers[predicate->wrapper].append, &branches);
	else
		bson_array_append_template(&branches, "{@1: {$type: @2}}", bson_utf8(predicate->path),
								   bson_utf8(type));
	bson_array_append_template(&branches, "{@1: {$type: 'object'}}", bson_utf8(predicate->path));
	BSON_APPEND_ARRAY(match, "$or", branches.bson);
	return MONGO_MATCH_SOME;
}
