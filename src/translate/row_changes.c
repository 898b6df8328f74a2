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

/* One walk through a value. */
typedef struct ChangeWalk
{
	MongoUpdateOperators *operators;
	int			depth;
	int			changed;		/* members of the object in hand */
} ChangeWalk;

/* A part of a value, as a Datum or as what jsonb's iterators give. */
typedef struct Part
{
	Oid			typid;			/* JSONBOID: in 'json' */
	int32		typmod;
	bool		isnull;			/* of an array or composite */
	Datum		datum;
	JsonbValue	json;
} Part;

static bool append_part_changes(ChangeWalk *walk, const char *path,
								const Part *old, const Part *new);

bool
mongo_is_nested_type(Oid typid)
{
	Oid			base = getBaseType(typid);

	return base == JSONBOID || type_is_array(base) || type_is_rowtype(base);
}

/* is_path_part: can it stand in a path, without being taken for another thing? */
static bool
is_path_part(const char *key, int length)
{
	return length > 0 && key[0] != '$' && memchr(key, '.', length) == NULL;
}

/* ------------------------------ single parts ------------------------------- */

static bool
equal_json_scalars(const JsonbValue *old, const JsonbValue *new)
{
	switch (old->type)
	{
		case jbvNull:
			return true;
		case jbvString:
			return old->val.string.len == new->val.string.len &&
				memcmp(old->val.string.val, new->val.string.val,
					   old->val.string.len) == 0;
		case jbvNumeric:
			/* to the byte: 1 and 1.0 are two */
			return VARSIZE_ANY(old->val.numeric) == VARSIZE_ANY(new->val.numeric) &&
				memcmp(old->val.numeric, new->val.numeric,
					   VARSIZE_ANY(old->val.numeric)) == 0;
		case jbvBool:
			return old->val.boolean == new->val.boolean;
		case jbvBinary:
			return old->val.binary.len == new->val.binary.len &&
				memcmp(old->val.binary.data, new->val.binary.data,
					   old->val.binary.len) == 0;
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
		return old->json.type == new->json.type &&
			equal_json_scalars(&old->json, &new->json);
	get_typlenbyval(new->typid, &length, &by_value);
	return datum_image_eq(old->datum, new->datum, by_value, length);
}

/* make_part of a Datum; a domain's value is one of its base type. */
static Part
make_part(Datum datum, bool isnull, Oid typid, int32 typmod)
{
	Part		part = {.typmod = typmod,.isnull = isnull,.datum = datum};

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

static Part
make_json_part(const JsonbValue *value)
{
	return (Part) {.typid = JSONBOID,.typmod = -1,.json = *value};
}

/* set_part: $set the whole of it. */
static void
set_part(ChangeWalk *walk, const char *path, const Part *part)
{
	Datum		value = part->datum;

	if (part->typid == JSONBOID && !part->isnull)
	{
		JsonbValue	copy = part->json;

		value = JsonbPGetDatum(JsonbValueToJsonb(&copy));
	}
	mongo_append_datum(walk->operators->set, path, -1, value, part->isnull,
					   part->typid, part->typmod);
}

/* change_part: as small a change as can be said, or the whole part. */
static void
change_part(ChangeWalk *walk, const char *path, const Part *old, const Part *new)
{
	if (!append_part_changes(walk, path, old, new))
		set_part(walk, path, new);
}

/* --------------------------------- arrays ---------------------------------- */

/* element_path: where an element is, counted through all dimensions. */
static char *
element_path(const char *path, int ndims, const int *lengths, int number)
{
	char	   *result;

	if (ndims == 0)
		return pstrdup(path);
	result = element_path(path, ndims - 1, lengths, number / lengths[ndims - 1]);
	return psprintf("%s.%d", result, number % lengths[ndims - 1]);
}

/*
 * append_element_changes
 *		Of two arrays whose elements are at the same places, one perhaps longer.
 */
static bool
append_element_changes(ChangeWalk *walk, const char *path, int ndims,
					   const int *lengths, const Part *old, int old_count,
					   const Part *new, int new_count)
{
	int			common = Min(old_count, new_count);
	int			kept = 0;

	for (int i = 0; i < common; i++)
		kept += equal_parts(&old[i], &new[i]);

	if (new_count == 0 ||
		(Max(old_count, new_count) - kept > MOST_PATHS && !type_is_rowtype(new[0].typid)))
		return false;

	/* a shorter one is cut, which does not go with changes inside */
	if (new_count < old_count)
	{
		if (kept < new_count)
			return false;
		bson_append_template(walk->operators->push, "{@1: {$each: [], $slice: @2}}",
							 bson_utf8(path), bson_int32(new_count));
		return true;
	}
	for (int i = 0; i < new_count; i++)
	{
		char	   *place;

		CHECK_FOR_INTERRUPTS();
		if (i < common && equal_parts(&old[i], &new[i]))
			continue;
		place = element_path(path, ndims, lengths, i);
		if (i < common)
			change_part(walk, place, &old[i], &new[i]);
		else
			set_part(walk, place, &new[i]);
		pfree(place);
	}
	return true;
}

/* stays_nothing: of two arrays without parts of their own; see the file's head */
static bool
stays_nothing(const Part *old, const Part *new, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (equal_parts(&old[i], &new[i]) ||
			(!new[i].isnull && mongo_is_nested_type(new[i].typid)))
			return false;
	}
	return true;
}

static Part *
array_parts(ArrayType *array, int32 typmod, int *count)
{
	Oid			element = ARR_ELEMTYPE(array);
	int16		length;
	bool		by_value;
	char		alignment;
	Datum	   *values;
	bool	   *isnull;
	Part	   *parts;

	get_typlenbyvalalign(element, &length, &by_value, &alignment);
	deconstruct_array(array, element, length, by_value, alignment, &values, &isnull,
					  count);
	parts = palloc(sizeof(Part) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
		parts[i] = make_part(values[i], isnull[i], element, typmod);
	return parts;
}

/* append_array_changes: false where the whole array is to be written. */
static bool
append_array_changes(ChangeWalk *walk, const char *path, const Part *old,
					 const Part *new)
{
	ArrayType  *old_array = DatumGetArrayTypeP(old->datum);
	ArrayType  *new_array = DatumGetArrayTypeP(new->datum);
	int			ndims = ARR_NDIM(new_array);
	int			old_count;
	int			new_count;
	Part	   *old_parts;
	Part	   *new_parts;

	if (ndims == 0 || ndims != ARR_NDIM(old_array))
		return false;

	/* only the first dimension may differ, and only when it is the only one */
	for (int i = ndims > 1 ? 0 : 1; i < ndims; i++)
	{
		if (ARR_DIMS(old_array)[i] != ARR_DIMS(new_array)[i])
			return false;
	}
	old_parts = array_parts(old_array, old->typmod, &old_count);
	new_parts = array_parts(new_array, new->typmod, &new_count);
	if (stays_nothing(old_parts, new_parts, Min(old_count, new_count)))
		return false;
	return append_element_changes(walk, path, ndims, ARR_DIMS(new_array), old_parts,
								  old_count, new_parts, new_count);
}

/* ------------------------------- composites -------------------------------- */

static Part *
composite_parts(Datum composite, TupleDesc tuple)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
	Datum	   *values = palloc(sizeof(Datum) * Max(tuple->natts, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(tuple->natts, 1));
	Part	   *parts = palloc0(sizeof(Part) * Max(tuple->natts, 1));
	HeapTupleData data = {.t_len = HeapTupleHeaderGetDatumLength(header),.t_data = header};

	heap_deform_tuple(&data, tuple, values, isnull);
	for (int i = 0; i < tuple->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, i);

		if (!attribute->attisdropped)
			parts[i] = make_part(values[i], isnull[i], attribute->atttypid,
								 attribute->atttypmod);
	}
	return parts;
}

/*
 * append_attribute_changes: false where a path cannot name an attribute that has
 * changed.
 */
static bool
append_attribute_changes(ChangeWalk *walk, const char *path, TupleDesc tuple,
						 const Part *old, const Part *new)
{
	for (int i = 0; i < tuple->natts; i++)
	{
		const char *name = NameStr(TupleDescAttr(tuple, i)->attname);

		if (!TupleDescAttr(tuple, i)->attisdropped &&
			!equal_parts(&old[i], &new[i]) && !is_path_part(name, strlen(name)))
			return false;
	}
	for (int i = 0; i < tuple->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, i);
		char	   *place;

		if (attribute->attisdropped || equal_parts(&old[i], &new[i]))
			continue;
		place = psprintf("%s.%s", path, mongo_to_utf8(NameStr(attribute->attname)));
		if (new[i].isnull)
			BSON_APPEND_BOOL(walk->operators->unset, place, true);
		else
			change_part(walk, place, &old[i], &new[i]);
	}
	return true;
}

/* append_composite_changes: false where the whole value is to be written. */
static bool
append_composite_changes(ChangeWalk *walk, const char *path, const Part *old,
						 const Part *new)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(new->datum);
	HeapTupleHeader old_header = DatumGetHeapTupleHeader(old->datum);
	TupleDesc	tuple;

	if (HeapTupleHeaderGetTypeId(header) != HeapTupleHeaderGetTypeId(old_header) ||
		HeapTupleHeaderGetTypMod(header) != HeapTupleHeaderGetTypMod(old_header))
		return false;
	tuple = lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header),
										HeapTupleHeaderGetTypMod(header));
	return append_attribute_changes(walk, path, tuple,
									composite_parts(old->datum, tuple),
									composite_parts(new->datum, tuple));
}

/* ---------------------------------- jsonb ---------------------------------- */

static Part *
json_array_parts(JsonbContainer *container, int *count)
{
	Part	   *parts;

	*count = JsonContainerSize(container);
	parts = palloc(sizeof(Part) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
		parts[i] = make_json_part(getIthJsonbValueFromContainer(container, i));
	return parts;
}

/* append_json_array_changes: false where the whole array is to be written. */
static bool
append_json_array_changes(ChangeWalk *walk, const char *path,
						  JsonbContainer *old, JsonbContainer *new)
{
	int			old_count;
	int			new_count;
	Part	   *old_parts = json_array_parts(old, &old_count);
	Part	   *new_parts = json_array_parts(new, &new_count);

	if (old_count == 0 || new_count == 0)
		return false;
	return append_element_changes(walk, path, 1, &new_count, old_parts, old_count,
								  new_parts, new_count);
}

/* The members of an object, in jsonb's order of keys. */
typedef struct JsonMember
{
	JsonbValue	key;
	Part		value;
} JsonMember;

static JsonMember *
json_members(JsonbContainer *container, int *count)
{
	JsonMember *members = palloc(sizeof(JsonMember) * Max(JsonContainerSize(container), 1));
	JsonbIterator *iterator = JsonbIteratorInit(container);
	JsonbIteratorToken token;
	JsonbValue	value;

	*count = 0;
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			members[*count].key = value;
		else if (token == WJB_VALUE)
			members[(*count)++].value = make_json_part(&value);
	}
	return members;
}

/* member_order: jsonb sorts keys by length, then by their bytes. */
static int
member_order(const JsonMember *a, const JsonMember *b)
{
	int			a_length = a->key.val.string.len;
	int			b_length = b->key.val.string.len;

	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return memcmp(a->key.val.string.val, b->key.val.string.val, a_length);
}

/* What merging two objects' members calls for each key, a NULL where it is not. */
typedef bool (*MemberVisitor) (ChangeWalk *walk, const char *path,
							   const JsonMember *old, const JsonMember *new);

/*
 * for_each_key: visit the members of both objects in the order of their keys, NULL for
 * one that is not there.
 */
static bool
for_each_key(ChangeWalk *walk, const char *path, JsonMember *old, int old_count,
			 JsonMember *new, int new_count, MemberVisitor visitor)
{
	int			i = 0;
	int			j = 0;

	while (i < old_count || j < new_count)
	{
		int			order = i == old_count ? 1 : j == new_count ? -1 :
			member_order(&old[i], &new[j]);
		JsonMember *from = order <= 0 ? &old[i++] : NULL;
		JsonMember *to = order >= 0 ? &new[j++] : NULL;

		CHECK_FOR_INTERRUPTS();
		if (!visitor(walk, path, from, to))
			return false;
	}
	return true;
}

/* can_say_member: can a path say what becomes of it, and are there not too many? */
static bool
can_say_member(ChangeWalk *walk, const char *path pg_attribute_unused(),
			   const JsonMember *old, const JsonMember *new)
{
	const JsonbValue *key = new ? &new->key : &old->key;

	/* a wrapper's members mean something together only */
	if (key->val.string.len > 0 && key->val.string.val[0] == '$')
		return false;
	if (old != NULL && new != NULL && equal_parts(&old->value, &new->value))
		return true;
	return ++walk->changed <= MOST_PATHS &&
		is_path_part(key->val.string.val, key->val.string.len);
}

/* change_member: $set or $unset the member, or what has changed inside it. */
static bool
change_member(ChangeWalk *walk, const char *path, const JsonMember *old,
			  const JsonMember *new)
{
	const JsonbValue *key = new ? &new->key : &old->key;
	char	   *place;

	if (old != NULL && new != NULL && equal_parts(&old->value, &new->value))
		return true;
	place = psprintf("%s.%s", path,
					 mongo_to_utf8(pnstrdup(key->val.string.val, key->val.string.len)));
	if (new == NULL)
		BSON_APPEND_BOOL(walk->operators->unset, place, true);
	else if (old == NULL)
		set_part(walk, place, &new->value);
	else
		change_part(walk, place, &old->value, &new->value);
	return true;
}

/* append_json_changes: false where the whole value is to be written. */
static bool
append_json_changes(ChangeWalk *walk, const char *path, const Part *old,
					const Part *new)
{
	JsonbContainer *from;
	JsonbContainer *to;
	JsonMember *old_members;
	JsonMember *new_members;
	int			old_count;
	int			new_count;

	if (old->json.type != jbvBinary || new->json.type != jbvBinary)
		return false;
	from = old->json.val.binary.data;
	to = new->json.val.binary.data;
	if (JsonContainerIsArray(from) && JsonContainerIsArray(to))
		return append_json_array_changes(walk, path, from, to);
	if (!JsonContainerIsObject(from) || !JsonContainerIsObject(to))
		return false;

	old_members = json_members(from, &old_count);
	new_members = json_members(to, &new_count);
	walk->changed = 0;
	return for_each_key(walk, path, old_members, old_count, new_members, new_count,
						can_say_member) &&
		for_each_key(walk, path, old_members, old_count, new_members, new_count,
					 change_member);
}

/* -------------------------------- all of them ------------------------------ */

/* append_part_changes: see mongo_append_changes() in the header. */
static bool
append_part_changes(ChangeWalk *walk, const char *path, const Part *old,
					const Part *new)
{
	bool		appended = false;

	if (equal_parts(old, new))
		return true;
	if (old->isnull || new->isnull || walk->depth >= DEEPEST_PATH)
		return false;

	walk->depth++;
	if (new->typid == JSONBOID)
		appended = append_json_changes(walk, path, old, new);
	else if (type_is_array(new->typid))
		appended = append_array_changes(walk, path, old, new);
	else if (type_is_rowtype(new->typid))
		appended = append_composite_changes(walk, path, old, new);
	walk->depth--;
	return appended;
}

bool
mongo_append_changes(MongoUpdateOperators *operators, const char *path, Datum old,
					 Datum new, Oid typid, int32 typmod)
{
	ChangeWalk	walk = {.operators = operators};
	Part		from = make_part(old, false, typid, typmod);
	Part		to = make_part(new, false, typid, typmod);

	return append_part_changes(&walk, path, &from, &to);
}
