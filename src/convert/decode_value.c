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
#include "catalog/namespace.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "executor/executor.h"
#include "fmgr.h"
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

/* ----- MongoDB's strings, which are UTF-8, in the database's encoding ----- */

/*
 * encoding_holds
 *		Has the database's encoding all of these characters?
 *
 * Tries the conversion and throws the result away: there is no cheaper way
 * that does not raise, and databases that are not UTF-8 are few.
 */
static bool
encoding_holds(const char *text, uint32 length)
{
	int			encoding = GetDatabaseEncoding();
	int			size = length * MAX_CONVERSION_GROWTH + 1;
	unsigned char *converted;
	Oid			function;
	int			done;

	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII || length == 0)
		return true;

	function = FindDefaultConversionProc(PG_UTF8, encoding);
	if (!OidIsValid(function))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("default conversion function for encoding \"%s\" to \"%s\" does not exist",
						"UTF8", GetDatabaseEncodingName())));
	converted = palloc(size);
	done = pg_do_encoding_conversion_buf(function, PG_UTF8, encoding,
										 (unsigned char *) unconstify(char *, text),
										 length, converted, size, true);
	pfree(converted);
	return (uint32) done == length;
}

bool
mongo_text_is_valid(const char *text, uint32 length)
{
	return mongo_is_plain_text(text, length) ||
		(pg_verify_mbstr(PG_UTF8, text, length, true) && encoding_holds(text, length));
}

const char *
mongo_text_remark(const char *text, uint32 length)
{
	if (memchr(text, '\0', length) != NULL)
		return "It contains U+0000, which text cannot hold.";
	if (!pg_verify_mbstr(PG_UTF8, text, length, true))
		return "It is not valid UTF-8.";
	return "It contains a character that the database's encoding does not have.";
}

const char *
mongo_text_to_server(const char *text, uint32 *length)
{
	const char *converted;

	if (GetDatabaseEncoding() == PG_UTF8)
		return text;
	converted = pg_any_to_server(text, *length, PG_UTF8);
	if (converted != text)
		*length = strlen(converted);
	return converted;
}

char *
mongo_cut_text(const char *text, int limit)
{
	int			length = strlen(text);

	return length <= limit ? pstrdup(text) :
		psprintf("%.*s...", pg_mbcliplen(text, length, limit), text);
}

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

	switch (bson_iter_type_unsafe(iter))
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

/* text, varchar(n), char(n) with the blanks that it is padded with, and name. */
bool
mongo_read_text(MONGO_READ_ARGS)
{
	char		hex[MONGO_OBJECTID_TEXT_LENGTH + 1];
	uint32		length;
	int			characters;
	int			padding = 0;
	const char *text = text_bytes(context, iter, hex, &length);
	struct varlena *result;

	if (text == NULL)
		return false;
	if (reader->typid == NAMEOID)
	{
		if (length >= NAMEDATALEN)
			return mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
		*value = PointerGetDatum(memcpy(palloc0(NAMEDATALEN), text, length));
		return true;
	}
	if (reader->typmod >= (int32) VARHDRSZ)
	{
		int			limit = reader->typmod - VARHDRSZ;

		if (!fit_characters(text, &length, limit, &characters))
			return mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
		if (reader->typid == BPCHAROID)
			padding = limit - characters;
	}
	result = palloc(VARHDRSZ + length + padding);
	SET_VARSIZE(result, VARHDRSZ + length + padding);
	memcpy(VARDATA(result), text, length);
	if (padding > 0)
		memset(VARDATA(result) + length, ' ', padding);
	*value = PointerGetDatum(result);
	return true;
}

/* "char": what it writes as the same, one byte or \303 for one above 127. */
bool
mongo_read_char(MONGO_READ_ARGS)
{
	char		hex[MONGO_OBJECTID_TEXT_LENGTH + 1];
	uint32		length;
	const char *text = text_bytes(context, iter, hex, &length);
	char	   *copy;

	if (text == NULL)
		return false;
	copy = pnstrdup(text, length);
	*value = DirectFunctionCall1(charin, CStringGetDatum(copy));
	return length <= 1 ||
		strcmp(DatumGetCString(DirectFunctionCall1(charout, *value)), copy) == 0 ||
		mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
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
	TextFormReader *form = palloc0(sizeof(TextFormReader));
	Oid			function;

	getTypeInputInfo(reader->typid, &function, &form->ioparam);
	fmgr_info(function, &form->input);
	form->may_fail = OidIsValid(reader->type->typid);
	reader->extra = form;
}

/*
 * Before PostgreSQL 16 an input function can only raise.  Catching that
 * without a subtransaction is sound for the functions concerned and for no
 * others, hence their own rows in the table of types: they are PostgreSQL's,
 * compute on their argument alone, hold no lock, pin or other resource when
 * they raise, and allocate nothing outside the current memory context.
 */
bool
mongo_call_softly(MongoReadContext *context, FmgrInfo *function, Datum first, Datum second,
				  Datum third, Datum *value)
{
	MemoryContext caller = CurrentMemoryContext;
	volatile bool fits = true;

	PG_TRY();
	{
		*value = FunctionCall3(function, first, second, third);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		FlushErrorState();
		context->remark = error->message ? psprintf("PostgreSQL says: %s.", error->message) : NULL;
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

	if (text == NULL)
		return false;
	if (!form->may_fail && context->defers_input)
		return mongo_mismatch(context, MONGO_UNREAD, iter, NULL);
	if (!form->may_fail)
		*value = InputFunctionCall(&form->input, text, form->ioparam,
								   reader->typmod);
	else if (!mongo_call_softly(context, &form->input, CStringGetDatum(text),
								ObjectIdGetDatum(form->ioparam),
								Int32GetDatum(reader->typmod), value))
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, context->remark);
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
	int			ndims;			/* 0: not known yet */
	int			lengths[MAXDIM];	/* -1: not known yet */
} ArrayGathering;

void
mongo_prepare_array(MongoReader *reader)
{
	reader->extra = mongo_reader_create(get_element_type(reader->typid), reader->typmod);
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
			int			i = gathering->count++;

			if (gathering->ndims == 0)
				gathering->ndims = depth + 1;
			if (gathering->ndims != depth + 1)
				return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
									  "Only some elements are arrays.");
			if (!mongo_read_value(element, context, &child, &gathering->values[i],
								  &gathering->isnull[i]))
				return false;
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

	/* an element has a type, and a key of one digit and its end */
	Size		most = (iter->next_off - iter->off) / 3;
	ArrayGathering gathering = {
		.values = palloc_extended(most * sizeof(Datum), MCXT_ALLOC_HUGE),
		.isnull = palloc_extended(most * sizeof(bool), MCXT_ALLOC_HUGE)
	};
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
	DomainReader *domain = palloc0(sizeof(DomainReader));
	int32		typmod = reader->typmod;
	Oid			base = getBaseTypeAndTypmod(reader->typid, &typmod);

	domain->base = mongo_reader_create(base, typmod);
	reader->accepts = domain->base->accepts;
	InitDomainConstraintRef(reader->typid, &domain->constraints, CurrentMemoryContext, true);
	domain->econtext = CreateStandaloneExprContext();
	reader->extra = domain;
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
