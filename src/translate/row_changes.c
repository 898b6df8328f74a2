/*-------------------------------------------------------------------------
 *
 * row_changes.c
 *		What differs between the old and the new value of a nested column.
 *
 * Each level first looks whether paths can say what changed in it, and only
 * then appends: a level that cannot is written whole by the one above.  A
 * level of which nothing stays, or of which too much changes, is written whole
 * too, except for composites: their documents may have fields that no attribute
 * reads.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "common.h"
#include "convert.h"

#include "access/htup_details.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* MongoDB stores no deeper documents; paths end well before. */
#define DEEPEST_PATH	64

/*
 * In one array or object.  MongoDB looks for each path from the start, so that many take
 * longer than the whole: for 10,000 integers from 700 on, for 100,000 from 150.  $slice takes
 * what it cuts one by one as well: 14 s for 60,000.
 */
#define MOST_PATHS		200

/* A value, or a part of one, as a Datum or as what jsonb's iterators give. */
typedef struct Part
{
	const char *name;			/* its place in the whole: a number, a key or
								 * an attribute's name */
	int			name_length;
	Oid			typid;			/* JSONBOID: in 'json' */
	int32		typmod;
	bool		isnull;			/* of an array or composite */
	Datum		datum;
	JsonbValue	json;
} Part;

/* The elements of an array, the members of an object or the attributes of a composite. */
typedef struct Parts
{
	Part	   *parts;
	int			count;
} Parts;

bool
mongo_is_nested_type(Oid typid)
{
	Oid			base = getBaseType(typid);

	return base == JSONBOID || type_is_array(base) || type_is_rowtype(base);
}

/* ------------------------------ single parts ------------------------------- */

static bool
same_bytes(const void *a, int a_length, const void *b, int b_length)
{
	return a_length == b_length && memcmp(a, b, a_length) == 0;
}

static bool
equal_json(const JsonbValue *old, const JsonbValue *new)
{
	if (old->type != new->type)
		return false;
	switch (old->type)
	{
		case jbvNull:
			return true;
		case jbvString:
			return same_bytes(old->val.string.val, old->val.string.len,
							  new->val.string.val, new->val.string.len);
		case jbvNumeric:
			/* 1 and 1.0 are two */
			return same_bytes(old->val.numeric, VARSIZE_ANY(old->val.numeric),
							  new->val.numeric, VARSIZE_ANY(new->val.numeric));
		case jbvBool:
			return old->val.boolean == new->val.boolean;
		case jbvBinary:
			return same_bytes(old->val.binary.data, old->val.binary.len,
							  new->val.binary.data, new->val.binary.len);
		default:
			return false;
	}
}

/* equal_parts: would they be written as the same BSON? */
static bool
equal_parts(const Part *old, const Part *new)
{
	int16		length;
	bool		by_value;

	if (old->isnull || new->isnull)
		return old->isnull && new->isnull;
	if (new->typid == JSONBOID)
		return equal_json(&old->json, &new->json);
	get_typlenbyval(new->typid, &length, &by_value);
	return datum_image_eq(old->datum, new->datum, by_value, length);
}

/* make_part of a Datum; a domain's value is one of its base type. */
static Part
make_part(const char *name, Datum datum, bool isnull, Oid typid, int32 typmod)
{
	Part		part = {name, strlen(name),.typmod = typmod,.isnull = isnull,.datum = datum};

	part.typid = getBaseTypeAndTypmod(typid, &part.typmod);
	if (part.typid == JSONBOID && !isnull)
	{
		Jsonb	   *jsonb = DatumGetJsonbP(datum);

		if (JB_ROOT_IS_SCALAR(jsonb))
			(void) JsonbExtractScalar(&jsonb->root, &part.json);
		else
		{
			part.json.type = jbvBinary;
			part.json.val.binary.data = &jsonb->root;
			part.json.val.binary.len = VARSIZE(jsonb) - VARHDRSZ;
		}
	}
	return part;
}

/* set_part: $set the whole of it. */
static void
set_part(const MongoUpdateOperators *operators, const char *path, const Part *part)
{
	Datum		value = part->datum;

	if (part->typid == JSONBOID && !part->isnull)
	{
		JsonbValue	copy = part->json;

		value = JsonbPGetDatum(JsonbValueToJsonb(&copy));
	}
	mongo_append_datum(operators->set, path, -1, value, part->isnull, part->typid, part->typmod);
}

/* -------------------------------- its parts -------------------------------- */

static bool
is_array(const Part *part)
{
	return part->typid == JSONBOID ? JsonContainerIsArray(part->json.val.binary.data) :
		type_is_array(part->typid);
}

/* have_parts: are both made of parts that can be compared one by one? */
static bool
have_parts(const Part *old, const Part *new)
{
	if (old->isnull || new->isnull)
		return false;
	if (new->typid == JSONBOID)
		return old->json.type == jbvBinary && new->json.type == jbvBinary &&
			is_array(old) == is_array(new);
	if (type_is_array(new->typid))
	{
		ArrayType  *from = DatumGetArrayTypeP(old->datum);
		ArrayType  *to = DatumGetArrayTypeP(new->datum);

		/* the length of a dimension may differ only when it is the only one */
		return ARR_NDIM(from) == ARR_NDIM(to) &&
			(ARR_NDIM(to) == 1 ||
			 memcmp(ARR_DIMS(from), ARR_DIMS(to), ARR_NDIM(to) * sizeof(int)) == 0);
	}
	if (type_is_rowtype(new->typid))
	{
		HeapTupleHeader from = DatumGetHeapTupleHeader(old->datum);
		HeapTupleHeader to = DatumGetHeapTupleHeader(new->datum);

		return HeapTupleHeaderGetTypeId(from) == HeapTupleHeaderGetTypeId(to) &&
			HeapTupleHeaderGetTypMod(from) == HeapTupleHeaderGetTypMod(to);
	}
	return false;
}

/* element_name: where an element is, counted through all dimensions. */
static char *
element_name(int ndims, const int *lengths, int number)
{
	int			last = lengths[ndims - 1];

	return ndims == 1 ? psprintf("%d", number) :
		psprintf("%s.%d", element_name(ndims - 1, lengths, number / last), number % last);
}

static Parts
array_parts(const Part *whole)
{
	ArrayType  *array = DatumGetArrayTypeP(whole->datum);
	Datum	   *values;
	bool	   *isnull;
	Parts		result;

	result.count = mongo_array_elements(whole->datum, &values, &isnull);
	result.parts = palloc(sizeof(Part) * Max(result.count, 1));
	for (int i = 0; i < result.count; i++)
		result.parts[i] = make_part(element_name(ARR_NDIM(array), ARR_DIMS(array), i),
									values[i], isnull[i], ARR_ELEMTYPE(array), whole->typmod);
	return result;
}

static Parts
composite_parts(const Part *whole)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(whole->datum);
	HeapTupleData data = {.t_len = HeapTupleHeaderGetDatumLength(header),.t_data = header};
	TupleDesc	tuple = lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header),
													HeapTupleHeaderGetTypMod(header));
	Datum	   *values = palloc(sizeof(Datum) * Max(tuple->natts, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(tuple->natts, 1));
	Parts		result = {.parts = palloc(sizeof(Part) * Max(tuple->natts, 1))};

	heap_deform_tuple(&data, tuple, values, isnull);
	for (int i = 0; i < tuple->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, i);

		if (!attribute->attisdropped)
			result.parts[result.count++] = make_part(NameStr(attribute->attname), values[i],
													 isnull[i], attribute->atttypid,
													 attribute->atttypmod);
	}
	return result;
}

/* json_parts: of an array, or of an object in jsonb's order of keys. */
static Parts
json_parts(const Part *whole)
{
	JsonbContainer *container = whole->json.val.binary.data;
	Parts		result = {.parts = palloc(sizeof(Part) * Max(JsonContainerSize(container), 1))};
	JsonbIterator *iterator = JsonbIteratorInit(container);
	JsonbIteratorToken token;
	JsonbValue	value;
	JsonbValue	key = {.type = jbvString};

	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			key = value;
		else if (token == WJB_ELEM)
		{
			key.val.string.val = psprintf("%d", result.count);
			key.val.string.len = strlen(key.val.string.val);
		}
		if (token == WJB_VALUE || token == WJB_ELEM)
			result.parts[result.count++] = (Part)
		{
			key.val.string.val, key.val.string.len, .typid = JSONBOID, .typmod = -1, .json = value
		};
	}
	return result;
}

static Parts
parts_of(const Part *whole)
{
	return whole->typid == JSONBOID ? json_parts(whole) :
		type_is_array(whole->typid) ? array_parts(whole) : composite_parts(whole);
}

/* Two values in step: the parts with one name, NULL for one that is not there. */
typedef struct Pair
{
	const Part *old;
	const Part *new;
	int			nold;			/* how many are done */
	int			nnew;
} Pair;

/* next_in_both: jsonb sorts keys by length, then by their bytes; all else has its places in common. */
static bool
next_in_both(const Parts *old, const Parts *new, Pair *pair)
{
	const Part *from = pair->nold < old->count ? &old->parts[pair->nold] : NULL;
	const Part *to = pair->nnew < new->count ? &new->parts[pair->nnew] : NULL;
	int			order = 0;

	CHECK_FOR_INTERRUPTS();
	if (from != NULL && to != NULL)
		order = from->name_length != to->name_length ? from->name_length - to->name_length :
			memcmp(from->name, to->name, to->name_length);
	pair->old = order <= 0 ? from : NULL;
	pair->new = order >= 0 ? to : NULL;
	pair->nold += pair->old != NULL;
	pair->nnew += pair->new != NULL;
	return from != NULL || to != NULL;
}

static bool
is_changed(const Pair *pair)
{
	return pair->old == NULL || pair->new == NULL || !equal_parts(pair->old, pair->new);
}

/* ------------------------------- what changes ------------------------------- */

/*
 * can_say: can paths say what changes, and are they not too many?
 *
 * Of an object no path can name a key such as "a.b", and a wrapper's members mean something
 * together only.  Of an array of scalars, something has to stay; what is cut off a shorter one
 * does not go with changes inside.
 */
static bool
can_say(const Part *whole, const Parts *old, const Parts *new)
{
	bool		in_array = is_array(whole);
	bool		some_stay = false;
	int			changed = 0;
	int			changed_within = 0; /* of what is in both */
	Pair		pair = {.nold = 0};

	if (in_array && (old->count == 0 || new->count == 0))
		return false;
	while (next_in_both(old, new, &pair))
	{
		const Part *part = pair.new != NULL ? pair.new : pair.old;
		bool		is_same = !is_changed(&pair);

		if (whole->typid == JSONBOID && !in_array && part->name_length > 0 &&
			part->name[0] == '$')
			return false;
		if (!is_same && !in_array &&
			(part->name_length == 0 || part->name[0] == '$' ||
			 memchr(part->name, '.', part->name_length) != NULL))
			return false;
		changed += !is_same;
		changed_within += !is_same && pair.old != NULL && pair.new != NULL;
		some_stay |= pair.old != NULL && pair.new != NULL &&
			(is_same || (!pair.new->isnull && mongo_is_nested_type(pair.new->typid)));
	}
	if (in_array && (!some_stay || (new->count < old->count && changed_within > 0)))
		return false;
	/* documents of composites may have fields that no attribute reads */
	return changed <= MOST_PATHS || type_is_rowtype(whole->typid) ||
		(in_array && type_is_rowtype(new->parts[0].typid));
}

/* append_part_changes: see mongo_append_changes() in the header. */
static bool
append_part_changes(const MongoUpdateOperators *operators, const char *path, const Part *whole_old,
					const Part *whole_new, int depth)
{
	Parts		old;
	Parts		new;
	Pair		pair = {.nold = 0};

	if (equal_parts(whole_old, whole_new))
		return true;
	if (depth >= DEEPEST_PATH || !have_parts(whole_old, whole_new))
		return false;
	old = parts_of(whole_old);
	new = parts_of(whole_new);
	if (!can_say(whole_new, &old, &new))
		return false;
	if (is_array(whole_new) && new.count < old.count)
	{
		bson_append_template(operators->push, "{@1: {$each: [], $slice: @2}}",
							 bson_utf8(path), bson_int32(new.count));
		return true;
	}
	while (next_in_both(&old, &new, &pair))
	{
		const Part *part = pair.new != NULL ? pair.new : pair.old;
		const char *place;

		if (!is_changed(&pair))
			continue;
		place = psprintf("%s.%s", path, mongo_to_utf8(pnstrdup(part->name, part->name_length)));
		if (pair.new == NULL || (pair.new->isnull && !is_array(whole_new)))
			BSON_APPEND_BOOL(operators->unset, place, true);
		else if (pair.old == NULL ||
				 !append_part_changes(operators, place, pair.old, pair.new, depth + 1))
			set_part(operators, place, pair.new);
	}
	return true;
}

bool
mongo_append_changes(MongoUpdateOperators *operators, const char *path, Datum old,
					 Datum new, Oid typid, int32 typmod)
{
	Part		from = make_part("", old, false, typid, typmod);
	Part		to = make_part("", new, false, typid, typmod);

	return append_part_changes(operators, path, &from, &to, 0);
}
