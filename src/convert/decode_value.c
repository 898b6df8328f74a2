/*-------------------------------------------------------------------------
 *
 * decode_value.c
 *		Reading single values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/expandeddatum.h"
#include "utils/geo_decls.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

/* -------------------- Texts, bytes and dates from BSON -------------------- */

/*
 * text_bytes
 *		The characters of a String, Symbol or ObjectId, in the database's
 *		encoding.
 *
 * 'hex' is room for the digits where it may be an ObjectId.  NULL, a type mismatch
 * noted, when no text can hold them.
 */
static const char *
text_bytes(MongoReadContext *context, const bson_iter_t *iter, char *hex,
		   uint32 *length)
{
	const char *text;

	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_OID:
			mongo_objectid_to_text(bson_iter_oid(iter)->bytes, hex);
			*length = MONGO_OBJECTID_TEXT_LENGTH;
			return hex;
		case BSON_TYPE_SYMBOL:
			text = bson_iter_symbol(iter, length);
			break;
		default:
			text = bson_iter_utf8(iter, length);
			break;
	}

	if (!mongo_text_is_valid(text, *length))
	{
		mongo_mismatch(context, MONGO_MISMATCH_CHARACTERS, iter,
					   mongo_text_remark(text, *length));
		return NULL;
	}
	return mongo_text_to_server(text, length);
}

/*
 * fit_characters
 *		Do these bytes fit 'limit' characters, trailing blanks not counted?
 *
 * *length is cut down to the limit as assignment to char(n) and varchar(n)
 * does; *characters gets their number.
 */
static bool
fit_characters(const char *text, uint32 *length, int limit, int *characters)
{
	uint32		kept;

	*characters = pg_mbstrlen_with_len(text, *length);
	if (*characters <= limit)
		return true;

	kept = pg_mbcharcliplen(text, *length, limit);
	for (uint32 i = kept; i < *length; i++)
	{
		if (text[i] != ' ')
			return false;
	}
	*length = kept;
	*characters = limit;
	return true;
}

/* mongo_read_text: of text and varchar(n). */
bool
mongo_read_text(MONGO_READ_ARGS)
{
	char		hex[MONGO_OBJECTID_TEXT_LENGTH + 1];
	uint32		length;
	int			characters;
	const char *text = text_bytes(context, iter, hex, &length);

	if (text == NULL)
		return false;
	if (reader->typmod >= (int32) VARHDRSZ &&
		!fit_characters(text, &length, reader->typmod - VARHDRSZ, &characters))
		return mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
	*value = PointerGetDatum(cstring_to_text_with_len(text, length));
	return true;
}

bool
mongo_read_bpchar(MONGO_READ_ARGS)
{
	char		hex[MONGO_OBJECTID_TEXT_LENGTH + 1];
	uint32		length;
	int			characters = 0;
	int			padding = 0;
	const char *text = text_bytes(context, iter, hex, &length);
	BpChar	   *result;

	if (text == NULL)
		return false;
	if (reader->typmod >= (int32) VARHDRSZ)
	{
		int			limit = reader->typmod - VARHDRSZ;

		if (!fit_characters(text, &length, limit, &characters))
			return mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
		padding = limit - characters;
	}

	result = palloc(VARHDRSZ + length + padding);
	SET_VARSIZE(result, VARHDRSZ + length + padding);
	memcpy(VARDATA(result), text, length);
	memset(VARDATA(result) + length, ' ', padding);
	*value = PointerGetDatum(result);
	return true;
}

bool
mongo_read_name(MONGO_READ_ARGS)
{
	char		hex[MONGO_OBJECTID_TEXT_LENGTH + 1];
	uint32		length;
	const char *text = text_bytes(context, iter, hex, &length);
	Name		name;

	if (text == NULL)
		return false;
	if (length >= NAMEDATALEN)
		return mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
	name = palloc0(NAMEDATALEN);
	memcpy(NameStr(*name), text, length);
	*value = NameGetDatum(name);
	return true;
}

/* "char": one byte, and none as PostgreSQL has it. */
bool
mongo_read_char(MONGO_READ_ARGS)
{
	char		hex[MONGO_OBJECTID_TEXT_LENGTH + 1];
	uint32		length;
	const char *text = text_bytes(context, iter, hex, &length);

	if (text == NULL)
		return false;
	/* a byte above 127 as PostgreSQL writes it, such as \303 */
	if (length == 4 && text[0] == '\\' && text[1] >= '2' && text[1] <= '3' &&
		text[2] >= '0' && text[2] <= '7' && text[3] >= '0' && text[3] <= '7')
		*value = DirectFunctionCall1(charin, CStringGetDatum(pnstrdup(text, length)));
	else if (length > 1)
		return mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
	else
		*value = CharGetDatum(length == 1 ? text[0] : '\0');
	return true;
}

bool
mongo_read_bytea(MONGO_READ_ARGS)
{
	const uint8_t *bytes;
	uint32_t	length = MONGO_OBJECTID_SIZE;
	bytea	   *result;

	if (bson_iter_type(iter) == BSON_TYPE_OID)
		bytes = bson_iter_oid(iter)->bytes;
	else
		bson_iter_binary(iter, NULL, &length, &bytes);

	result = palloc(VARHDRSZ + length);
	SET_VARSIZE(result, VARHDRSZ + length);
	memcpy(VARDATA(result), bytes, length);
	*value = PointerGetDatum(result);
	return true;
}

bool
mongo_read_uuid(MONGO_READ_ARGS)
{
	const uint8_t *bytes;
	uint32_t	length;
	bson_subtype_t subtype;
	pg_uuid_t  *uuid;

	bson_iter_binary(iter, &subtype, &length, &bytes);
	if ((subtype != BSON_SUBTYPE_UUID && subtype != BSON_SUBTYPE_UUID_DEPRECATED) ||
		length != UUID_LEN)
		return mongo_mismatch(context, MONGO_MISMATCH_TYPE, iter,
							  "Only sixteen bytes of Binary subtype 4 or 3 are a uuid.");
	uuid = palloc(sizeof(pg_uuid_t));
	memcpy(uuid->data, bytes, UUID_LEN);
	*value = UUIDPGetDatum(uuid);
	return true;
}

/* timestamp and timestamptz: both count microseconds UTC. */
bool
mongo_read_timestamp(MONGO_READ_ARGS)
{
	int64		timestamp;

	/* to PostgreSQL's epoch first: microseconds since 1970 end a little early */
	if (pg_sub_s64_overflow(bson_iter_date_time(iter),
							MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY, &timestamp) ||
		pg_mul_s64_overflow(timestamp, 1000, &timestamp) ||
		!IS_VALID_TIMESTAMP(timestamp))
		return mongo_mismatch(context, MONGO_MISMATCH_DATETIME, iter, NULL);

	/* timestamp(n): PostgreSQL rounds, as it does on assignment */
	if (reader->typmod >= 0 && reader->typmod < 3)
	{
		Timestamp	rounded = timestamp;

		mongo_round_timestamp(&rounded, reader->typmod);
		timestamp = rounded;
		if (!IS_VALID_TIMESTAMP(timestamp))
			return mongo_mismatch(context, MONGO_MISMATCH_DATETIME, iter, NULL);
	}
	*value = TimestampGetDatum(timestamp);
	return true;
}

/* date: the day in UTC. */
bool
mongo_read_date(MONGO_READ_ARGS)
{
	int64		millis = bson_iter_date_time(iter);
	int64		days = millis / MONGO_MILLIS_PER_DAY;

	if (days * MONGO_MILLIS_PER_DAY > millis)
		days--;
	days -= MONGO_EPOCH_DAYS;
	if (!IS_VALID_DATE(days))
		return mongo_mismatch(context, MONGO_MISMATCH_DATETIME, iter, NULL);
	*value = DateADTGetDatum((DateADT) days);
	return true;
}

bool
mongo_read_objectid(MONGO_READ_ARGS)
{
	*value = mongo_objectid_datum(bson_iter_oid(iter)->bytes);
	return true;
}

/*-------------------------------------------------------------------------
 * Types that BSON has no counterpart for: Strings in the type's own
 * text form, and enums.
 *-------------------------------------------------------------------------
 */

/* What a reader of this kind keeps at hand. */
typedef struct TextFormReader
{
	FmgrInfo	input;
	Oid			ioparam;
	bool		may_fail;		/* is an error of the input function caught? */
} TextFormReader;

/* string_value: a String or Symbol as a C string, or NULL when no text can hold it. */
static char *
string_value(MongoReadContext *context, const bson_iter_t *iter)
{
	uint32		length;
	const char *text = text_bytes(context, iter, NULL, &length);

	return text != NULL ? pnstrdup(text, length) : NULL;
}

void
mongo_prepare_text_form(MongoReader *reader)
{
	TextFormReader *form = MemoryContextAllocZero(reader->mcxt, sizeof(TextFormReader));
	Oid			function;

	getTypeInputInfo(reader->typid, &function, &form->ioparam);
	fmgr_info_cxt(function, &form->input, reader->mcxt);
	form->may_fail = OidIsValid(reader->type->typid);
	reader->extra = form;
}

/*
 * call_input_softly
 *		Call the input function; false and a message when it finds the text
 *		unfit.
 *
 * Before PostgreSQL 16 an input function can only raise.  Catching that
 * without a subtransaction is sound for the functions concerned and for no
 * others, hence their own rows in the table of types: they are PostgreSQL's,
 * compute on their argument alone, hold no lock, pin or other resource when
 * they raise, and allocate nothing outside the current memory context.  Only
 * data exceptions are caught; a cancel or lack of memory goes on its way.
 */
static bool
call_input_softly(const MongoReader *reader, char *text, Datum *value,
				  const char **message)
{
	TextFormReader *form = reader->extra;
	MemoryContext caller = CurrentMemoryContext;
	volatile bool fits = true;

	PG_TRY();
	{
		*value = InputFunctionCall(&form->input, text, form->ioparam,
								   reader->typmod);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		FlushErrorState();
		*message = error->message ? psprintf("PostgreSQL says: %s.", error->message) : NULL;
		fits = false;
	}
	PG_END_TRY();

	return fits;
}

bool
mongo_read_text_form(MONGO_READ_ARGS)
{
	TextFormReader *form = reader->extra;
	char	   *text = string_value(context, iter);
	const char *message = NULL;

	if (text == NULL)
		return false;
	if (!form->may_fail && context->defers_input)
	{
		context->unread = true;
		return false;
	}
	if (!form->may_fail)
		*value = InputFunctionCall(&form->input, text, form->ioparam,
								   reader->typmod);
	else if (!call_input_softly(reader, text, value, &message))
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, message);
	pfree(text);
	return true;
}

bool
mongo_read_enum(MONGO_READ_ARGS)
{
	char	   *label = string_value(context, iter);
	HeapTuple	tuple;

	if (label == NULL)
		return false;
	tuple = strlen(label) < NAMEDATALEN ?
		SearchSysCache2(ENUMTYPOIDNAME, ObjectIdGetDatum(reader->typid),
						CStringGetDatum(label)) : NULL;
	if (!HeapTupleIsValid(tuple))
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter,
							  "The enum has no such label.");
	*value = ObjectIdGetDatum(((Form_pg_enum) GETSTRUCT(tuple))->oid);
	ReleaseSysCache(tuple);
	pfree(label);
	return true;
}

/* ------------- Arrays, composite types and domains from BSON -------------- */

#define ACCEPTS_ARRAY(reader) \
	(((reader)->accepts & MONGO_BSON_BIT(BSON_TYPE_ARRAY)) != 0)

/*
 * Arrays
 */

/* The elements gathered so far, and the shape that they must have. */
typedef struct ArrayGathering
{
	Datum	   *values;
	bool	   *isnull;
	int			count;
	int			allocated;
	int			ndims;			/* 0: not known yet */
	int			lengths[MAXDIM];	/* -1: not known yet */
} ArrayGathering;

void
mongo_prepare_array(MongoReader *reader)
{
	reader->extra = mongo_reader_create(reader->mcxt,
										get_element_type(reader->typid),
										reader->typmod);
}

/* gather_element: one more; makes room for it if need be. */
static void
gather_element(ArrayGathering *gathering, Datum value, bool isnull)
{
	if (gathering->count == gathering->allocated)
	{
		gathering->allocated = gathering->allocated ? gathering->allocated * 2 : 16;
		if (gathering->values == NULL)
		{
			gathering->values = palloc(gathering->allocated * sizeof(Datum));
			gathering->isnull = palloc(gathering->allocated * sizeof(bool));
		}
		else
		{
			gathering->values = repalloc_huge(gathering->values,
											  gathering->allocated * sizeof(Datum));
			gathering->isnull = repalloc_huge(gathering->isnull,
											  gathering->allocated * sizeof(bool));
		}
	}
	gathering->values[gathering->count] = value;
	gathering->isnull[gathering->count] = isnull;
	gathering->count++;
}

/*
 * gather_level
 *		The elements of the Array at 'iter', which is at nesting 'depth'.
 *
 * Either all of its elements are arrays of one length or none is, and the
 * same at this depth everywhere.
 */
static bool
gather_level(const MongoReader *element, MongoReadContext *context,
			 const bson_iter_t *iter, int depth, ArrayGathering *gathering)
{
	bson_iter_t child;
	uint32		length = mongo_iter_descend(iter, &child);
	int			count = 0;

	while (bson_iter_next(&child))
	{
		bool		nested = bson_iter_type(&child) == BSON_TYPE_ARRAY &&
			!ACCEPTS_ARRAY(element);

		CHECK_FOR_INTERRUPTS();
		count++;

		if (nested)
		{
			if (depth + 1 >= MAXDIM)
				return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
									  "PostgreSQL's arrays have at most six dimensions.");
			if (gathering->ndims != 0 && depth + 1 >= gathering->ndims)
				return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
									  "Only some elements are arrays.");
			if (!gather_level(element, context, &child, depth + 1, gathering))
				return false;
		}
		else
		{
			Datum		value;
			bool		isnull;

			if (gathering->ndims == 0)
				gathering->ndims = depth + 1;
			if (gathering->ndims != depth + 1)
				return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
									  "Only some elements are arrays.");
			if (!mongo_read_value(element, context, &child, &value, &isnull))
				return false;
			gather_element(gathering, value, isnull);
		}
	}
	mongo_iter_check_end(&child, length);

	if (depth > 0 && count == 0)
		return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, iter,
							  "An empty array within an array has no form in PostgreSQL.");
	if (gathering->lengths[depth] < 0)
		gathering->lengths[depth] = count;
	if (gathering->lengths[depth] != count)
		return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, iter,
							  "The arrays in it differ in length.");
	return true;
}

bool
mongo_read_array(MONGO_READ_ARGS)
{
	const MongoReader *element = reader->extra;
	ArrayGathering gathering = {0};
	int			lower_bounds[MAXDIM];
	ArrayType  *array;

	for (int i = 0; i < MAXDIM; i++)
	{
		gathering.lengths[i] = -1;
		lower_bounds[i] = 1;
	}
	if (!gather_level(element, context, iter, 0, &gathering))
		return false;

	if (gathering.count == 0)
		array = construct_empty_array(element->typid);
	else
		array = construct_md_array(gathering.values, gathering.isnull,
								   gathering.ndims, gathering.lengths,
								   lower_bounds, element->typid,
								   element->typlen, element->typbyval,
								   element->typalign);
	*value = PointerGetDatum(array);
	return true;
}

/*
 * Composite types
 */

typedef struct CompositeReader
{
	TupleDesc	tupdesc;
	MongoReader **attributes;	/* NULL for a dropped one */
	const char **names;			/* in UTF-8 */
	int		   *name_lengths;
} CompositeReader;

void
mongo_prepare_composite(MongoReader *reader)
{
	MemoryContext caller = MemoryContextSwitchTo(reader->mcxt);
	CompositeReader *composite = palloc0(sizeof(CompositeReader));
	TupleDesc	tupdesc = lookup_rowtype_tupdesc_copy(reader->typid, reader->typmod);

	composite->tupdesc = tupdesc;
	composite->attributes = palloc0(Max(tupdesc->natts, 1) * sizeof(MongoReader *));
	composite->names = palloc0(Max(tupdesc->natts, 1) * sizeof(char *));
	composite->name_lengths = palloc0(Max(tupdesc->natts, 1) * sizeof(int));
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tupdesc, i);

		if (attribute->attisdropped)
			continue;
		composite->attributes[i] = mongo_reader_create(reader->mcxt,
													   attribute->atttypid,
													   attribute->atttypmod);
		composite->names[i] = mongo_to_utf8(NameStr(attribute->attname));
		composite->name_lengths[i] = strlen(composite->names[i]);
	}
	reader->extra = composite;
	MemoryContextSwitchTo(caller);
}

/* find_attribute: the attribute a field belongs to, or -1; looks from 'start' on. */
static int
find_attribute(const CompositeReader *composite, const bson_iter_t *iter, int start)
{
	int			natts = composite->tupdesc->natts;
	int			length = bson_iter_key_len(iter);

	for (int i = 0; i < natts; i++)
	{
		int			number = (start + i) % natts;

		if (composite->attributes[number] != NULL &&
			composite->name_lengths[number] == length &&
			memcmp(composite->names[number], bson_iter_key(iter), length) == 0)
			return number;
	}
	return -1;
}

bool
mongo_read_composite(MONGO_READ_ARGS)
{
	const CompositeReader *composite = reader->extra;
	int			natts = composite->tupdesc->natts;
	Datum	   *values = palloc0(Max(natts, 1) * sizeof(Datum));
	bool	   *isnull = palloc(Max(natts, 1) * sizeof(bool));
	bool	   *found = palloc0(Max(natts, 1) * sizeof(bool));
	bson_iter_t child;
	uint32		length = mongo_iter_descend(iter, &child);
	int			next = 0;

	memset(isnull, true, Max(natts, 1) * sizeof(bool));
	while (bson_iter_next(&child))
	{
		int			number = find_attribute(composite, &child, next);

		CHECK_FOR_INTERRUPTS();
		if (number < 0 || found[number])
			continue;
		found[number] = true;
		next = number + 1;
		if (!mongo_read_value(composite->attributes[number], context, &child,
							  &values[number], &isnull[number]))
			return false;
	}
	mongo_iter_check_end(&child, length);

	*value = HeapTupleGetDatum(heap_form_tuple(composite->tupdesc, values, isnull));
	return true;
}

/*
 * Domains
 */

typedef struct DomainReader
{
	MongoReader *base;
	DomainConstraintRef constraints;
	ExprContext *econtext;
} DomainReader;

void
mongo_prepare_domain(MongoReader *reader)
{
	MemoryContext caller = MemoryContextSwitchTo(reader->mcxt);
	DomainReader *domain = palloc0(sizeof(DomainReader));
	int32		typmod = reader->typmod;
	Oid			base = getBaseTypeAndTypmod(reader->typid, &typmod);

	domain->base = mongo_reader_create(reader->mcxt, base, typmod);
	reader->accepts = domain->base->accepts;
	InitDomainConstraintRef(reader->typid, &domain->constraints, reader->mcxt, true);
	domain->econtext = CreateStandaloneExprContext();
	reader->extra = domain;
	MemoryContextSwitchTo(caller);
}

/*
 * The constraints are run here rather than by domain_check(), which would
 * raise: under type_mismatch 'null' a value that breaks one reads as NULL.
 */
bool
mongo_read_domain(MONGO_READ_ARGS)
{
	DomainReader *domain = reader->extra;
	ExprContext *econtext = domain->econtext;
	bool		fits = true;
	ListCell   *cell;

	if (!domain->base->read(domain->base, context, iter, value))
		return false;

	UpdateDomainConstraintRef(&domain->constraints);
	foreach(cell, domain->constraints.constraints)
	{
		DomainConstraintState *constraint = lfirst(cell);

		if (constraint->constrainttype != DOM_CONSTRAINT_CHECK)
			continue;			/* NOT NULL: the value is not */
		if (context->defers_checks)
		{
			context->deferred = true;
			break;
		}
		econtext->domainValue_datum =
			MakeExpandedObjectReadOnly(*value, false,
									   domain->constraints.tcache->typlen);
		econtext->domainValue_isNull = false;
		if (!ExecCheck(constraint->check_exprstate, econtext))
		{
			fits = false;
			break;
		}
	}
	ReScanExprContext(econtext);

	if (!fits)
		return mongo_mismatch(context, MONGO_MISMATCH_DOMAIN, iter,
							  "The value breaks a constraint of the domain.");
	return true;
}

/* ------------------- The type point as a GeoJSON Point -------------------- */

#define NO_POINT_REMARK \
	"A point is a GeoJSON Point or an array of two numbers, without anything else in it."

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
		if (count == lengthof(numbers) ||
			(!BSON_ITER_HOLDS_NUMBER(&child) && !BSON_ITER_HOLDS_DECIMAL128(&child)))
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

/* ----------- BSON's Date, which counts milliseconds since 1970 ------------ */

#define USECS_PER_MILLI		INT64CONST(1000)

int64
mongo_timestamp_to_millis(Timestamp value, bool *exact)
{
	int64		millis = value / USECS_PER_MILLI;
	int64		rest = value % USECS_PER_MILLI;

	if (rest < 0)
		millis--;
	if (exact != NULL)
		*exact = rest == 0;
	return millis + MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY;
}

int64
mongo_date_to_millis(DateADT value)
{
	return (value + MONGO_EPOCH_DAYS) * MONGO_MILLIS_PER_DAY;
}
