/*-------------------------------------------------------------------------
 *
 * decode_value.c
 *		Decodes single values.
 *
 * Each MongoReadFunction here reads one PostgreSQL type, or a kind of types; MONGO_READ_ARGS has
 * their contract, and types.c the BSON types that they get.  They decide which values fit, and with
 * which MongoMismatch others do not.  Numbers, JSON, ObjectIds and composite types are in files of
 * their own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include "catalog/pg_type.h"
#include "common/int.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/expandeddatum.h"
#include "utils/fmgroids.h"
#include "utils/geo_decls.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

/* -------------------- Texts, bytes and dates from BSON -------------------- */

/*
 * Returns the characters of a String, Symbol or ObjectId in the database's encoding, and their
 * length.  The digits of an ObjectId are written to 'hex'.  Returns NULL and records a mismatch if
 * a text cannot store the characters.
 */
static const char *
text_bytes(MongoReadContext *context, const bson_iter_t *iter, char *hex, uint32 *length)
{
	const char *text;

	switch (bson_iter_type_unsafe(iter))
	{
		case BSON_TYPE_OID:
			bson_oid_to_string(bson_iter_oid(iter), hex);
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
 * mongo_read_text
 *		Reads text, varchar(n), char(n) padded with blanks, and name.
 */
bool
mongo_read_text(MONGO_READ_ARGS)
{
	char		hex[MONGO_OBJECTID_TEXT_LENGTH + 1];
	uint32		length;
	const char *text = text_bytes(context, iter, hex, &length);
	int64		limit = (int64) reader->typmod - VARHDRSZ;

	if (text == NULL)
		return false;
	if (reader->typid == NAMEOID)
	{
		if (length >= NAMEDATALEN)
			return mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
		*value = PointerGetDatum(memcpy(palloc0(NAMEDATALEN), text, length));
		return true;
	}
	*value = PointerGetDatum(cstring_to_text_with_len(text, length));
	return limit < 0 || (length <= limit && reader->typid != BPCHAROID) ||
		mongo_limit_text(reader, context, iter, value);
}

/*
 * mongo_read_bytea
 *		Reads the bytes of a Binary of any subtype, or of an ObjectId.
 */
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

/*
 * mongo_read_uuid
 *		Reads a Binary of sixteen bytes and of subtype 4, or 3.
 */
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

/*
 * mongo_read_timestamp
 *		Reads timestamp and timestamptz, both in microseconds of UTC.
 */
bool
mongo_read_timestamp(MONGO_READ_ARGS)
{
	int64		timestamp;

	/* subtract epochs first: microseconds since 1970 overflow earlier */
	if (pg_sub_s64_overflow(bson_iter_date_time(iter),
							MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY, &timestamp) ||
		pg_mul_s64_overflow(timestamp, 1000, &timestamp) ||
		!IS_VALID_TIMESTAMP(timestamp))
		return mongo_mismatch(context, MONGO_MISMATCH_DATETIME, iter, NULL);

	/* timestamp(n): round as an assignment does */
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

/*
 * mongo_read_date
 *		Reads the day in UTC.
 */
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

/*-------------------------------------------------------------------------
 * Types without a BSON counterpart, enums too, are Strings in the type's text form.
 *-------------------------------------------------------------------------
 */

/* Private data of such a type's reader. */
typedef struct TextFormReader
{
	FmgrInfo	input;
	Oid			ioparam;
	bool		may_fail;		/* are the input function's errors caught? */
	pg_tz	   *utc;
} TextFormReader;

/*
 * mongo_prepare_text_form
 *		Prepares the type's input function.
 */
void
mongo_prepare_text_form(MongoReader *reader)
{
	TextFormReader *form = palloc0(sizeof(TextFormReader));
	Oid			function;

	getTypeInputInfo(reader->typid, &function, &form->ioparam);
	fmgr_info(function, &form->input);
	form->may_fail = OidIsValid(reader->type->typid) || function == F_ENUM_IN;
	form->utc = pg_tzset("UTC");
	reader->extra = form;
}

/*
 * mongo_read_text_form
 *		Reads the type's text form: intervals, dates and times of day under PostgreSQL's default
 *		settings and in UTC, so that all sessions read the same value.  The variables of the
 *		settings are set directly, as a GUC nest level costs more than most input functions.  Raises
 *		the errors of an input function that has no row in types.c.
 */
bool
mongo_read_text_form(MONGO_READ_ARGS)
{
	TextFormReader *form = reader->extra;
	int			date_style = DateStyle;
	int			date_order = DateOrder;
	int			interval_style = IntervalStyle;
	pg_tz	   *timezone = session_timezone;
	uint32		length;
	const char *bytes = text_bytes(context, iter, NULL, &length);
	char	   *text;
	volatile bool fits = true;

	if (bytes == NULL)
		return false;
	if (!form->may_fail && context->defers_input)
		return mongo_mismatch(context, MONGO_UNREAD, iter, NULL);
	text = pnstrdup(bytes, length);
	PG_TRY();
	{
		DateStyle = USE_ISO_DATES;
		DateOrder = DATEORDER_MDY;
		IntervalStyle = INTSTYLE_POSTGRES;
		session_timezone = form->utc;
		if (!form->may_fail)
			*value = InputFunctionCall(&form->input, text, form->ioparam, reader->typmod);
		else
			fits = mongo_call_softly(context, &form->input, CStringGetDatum(text),
									 ObjectIdGetDatum(form->ioparam),
									 Int32GetDatum(reader->typmod), value);
	}
	PG_FINALLY();
	{
		DateStyle = date_style;
		DateOrder = date_order;
		IntervalStyle = interval_style;
		session_timezone = timezone;
	}
	PG_END_TRY();
	pfree(text);
	return fits || mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, context->remark);
}

/* ------------- Arrays, composite types and domains from BSON -------------- */

/* ---- Arrays ---- */

/* The elements collected so far, and the shape of the array. */
typedef struct ArrayGathering
{
	Datum	   *values;
	bool	   *isnull;
	int			count;
	int			ndims;			/* 0: not known yet */
	int			lengths[MAXDIM];	/* -1: not known yet */
} ArrayGathering;

/*
 * mongo_prepare_array
 *		Prepares the reader of the elements.
 */
void
mongo_prepare_array(MongoReader *reader)
{
	MongoReader *element = mongo_reader_create(get_element_type(reader->typid), reader->typmod);

	get_typlenbyvalalign(element->typid, &element->typlen, &element->typbyval, &element->typalign);
	reader->extra = element;
}

/*
 * Collects the elements of the Array at 'iter', which is at nesting level 'depth'.  At each level
 * either all elements are arrays, of the same length, or none is.
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
			(element->accepts & MONGO_BSON_BIT(BSON_TYPE_ARRAY)) == 0;
		int			i = gathering->count;

		CHECK_FOR_INTERRUPTS();
		count++;
		if (nested && depth + 1 >= MAXDIM)
			return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
								  "PostgreSQL's arrays have at most six dimensions.");
		if (!nested && gathering->ndims == 0)
			gathering->ndims = depth + 1;
		if (gathering->ndims != 0 && nested != (depth + 1 < gathering->ndims))
			return mongo_mismatch(context, MONGO_MISMATCH_SHAPE, &child,
								  "Only some elements are arrays.");
		if (nested ? !gather_level(element, context, &child, depth + 1, gathering) :
			!mongo_read_value(element, context, &child, &gathering->values[i],
							  &gathering->isnull[i]))
			return false;
		if (!nested)
			gathering->count++;
	}
	if (!mongo_iter_is_at_end(&child, length))
		return mongo_mismatch(context, MONGO_MISMATCH_BSON, iter, NULL);

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

/*
 * mongo_read_array
 *		Reads an Array; nested ones become dimensions.
 */
bool
mongo_read_array(MONGO_READ_ARGS)
{
	const MongoReader *element = reader->extra;

	/* an element takes at least two bytes: its type and its key's zero */
	Size		most = (iter->next_off - iter->off) / 2;
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

/* ---- Types with casts from and to real[], such as vector ---- */

typedef struct VectorReader
{
	MongoReader *array;			/* of real[] */
	FmgrInfo	cast;
} VectorReader;

/*
 * mongo_prepare_vector
 *		Prepares a reader of real[] and the cast from it.
 */
void
mongo_prepare_vector(MongoReader *reader)
{
	VectorReader *vector = palloc0(sizeof(VectorReader));

	vector->array = mongo_reader_create(FLOAT4ARRAYOID, -1);
	fmgr_info(mongo_cast_function(FLOAT4ARRAYOID, reader->typid), &vector->cast);
	reader->extra = vector;
}

/*
 * mongo_read_vector
 *		Reads an Array as real[] and casts it; the cast may raise any error, as the input function
 *		of a text form may.
 */
bool
mongo_read_vector(MONGO_READ_ARGS)
{
	VectorReader *vector = reader->extra;

	if (context->defers_input)
		return mongo_mismatch(context, MONGO_UNREAD, iter, NULL);
	if (!mongo_read_array(vector->array, context, iter, value))
		return false;
	*value = mongo_call_cast(&vector->cast, *value, reader->typmod);
	return true;
}

/* ---- Domains ---- */

typedef struct DomainReader
{
	MongoReader *base;
	DomainConstraintRef constraints;
	ExprContext *econtext;
} DomainReader;

/*
 * mongo_prepare_domain
 *		Prepares a reader of the base type and the constraints, which are looked up again if they
 *		change.
 */
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
 * mongo_read_domain
 *		Reads a value of the base type and checks the constraints.  domain_check() would raise, but
 *		under type_mismatch 'null' a value that violates a constraint reads as NULL.
 */
bool
mongo_read_domain(MONGO_READ_ARGS)
{
	DomainReader *domain = reader->extra;
	ExprContext *econtext = domain->econtext;
	ListCell   *cell;

	if (!domain->base->read(domain->base, context, iter, value))
		return false;

	UpdateDomainConstraintRef(&domain->constraints);
	foreach(cell, domain->constraints.constraints)
	{
		DomainConstraintState *constraint = lfirst(cell);

		if (constraint->constrainttype != DOM_CONSTRAINT_CHECK)
			continue;			/* NOT NULL: BSON null is not read here */
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
			break;
	}
	ReScanExprContext(econtext);
	return cell == NULL || context->defers_checks ||
		mongo_mismatch(context, MONGO_MISMATCH_DOMAIN, iter,
					   "The value breaks a constraint of the domain.");
}

/* ------------------- The type point as a GeoJSON Point -------------------- */

#define NO_POINT_REMARK \
	"A point is a GeoJSON Point or an array of two numbers, without anything else in it."

/* Reads an array of exactly two numbers. */
static bool
read_coordinates(MongoReadContext *context, const bson_iter_t *iter, Point *point)
{
	bson_iter_t child;
	uint32		length = mongo_iter_descend(iter, &child);
	Datum		numbers[2];
	int			count = 0;

	while (bson_iter_next(&child))
	{
		if (count == lengthof(numbers) ||
			(MONGO_BSON_BIT(bson_iter_type(&child)) & MONGO_BSON_NUMBERS) == 0)
			return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, NO_POINT_REMARK);
		if (!mongo_read_float8(NULL, context, &child, &numbers[count++]))
			return false;
	}
	if (!mongo_iter_is_at_end(&child, length))
		return mongo_mismatch(context, MONGO_MISMATCH_BSON, iter, NULL);
	if (count != lengthof(numbers))
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, NO_POINT_REMARK);
	point->x = DatumGetFloat8(numbers[0]);
	point->y = DatumGetFloat8(numbers[1]);
	return true;
}

/*
 * mongo_read_point
 *		Reads the text form, an array of two numbers, or a Document with just "type" and
 *		"coordinates".
 */
bool
mongo_read_point(MONGO_READ_ARGS)
{
	Point	   *point = palloc(sizeof(Point));
	bson_t		document;
	bson_iter_t type;
	bson_iter_t coordinates;

	*value = PointPGetDatum(point);
	if (BSON_ITER_HOLDS_ARRAY(iter))
		return read_coordinates(context, iter, point);
	if (!BSON_ITER_HOLDS_DOCUMENT(iter))
		return mongo_read_text_form(reader, context, iter, value);
	if (!mongo_bson_view_at(&document, iter) || bson_count_keys(&document) != 2 ||
		!bson_iter_init_find(&type, &document, "type") ||
		!BSON_ITER_HOLDS_UTF8(&type) || strcmp(bson_iter_utf8(&type, NULL), "Point") != 0 ||
		!bson_iter_init_find(&coordinates, &document, "coordinates") ||
		!BSON_ITER_HOLDS_ARRAY(&coordinates))
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, NO_POINT_REMARK);
	return read_coordinates(context, &coordinates, point);
}

/*-------------------------------------------------------------------------
 * Resume tokens of change streams, {_data: hexadecimal text, _typeBits: binary}.
 *
 * As a text, a token is _data; with _typeBits a dot and their hexadecimal digits follow.  Such
 * texts sort as the events do.
 *-------------------------------------------------------------------------
 */

static bool
read_token(MONGO_READ_ARGS)
{
	bson_t	   *holder = mongo_bson_create();
	bson_iter_t data;
	bson_iter_t bits;
	const uint8_t *bytes;
	uint32_t	size;
	const char *text;
	bson_iter_t result;

	if (!bson_iter_recurse(iter, &data) || !bson_iter_find(&data, "_data") ||
		!BSON_ITER_HOLDS_UTF8(&data))
		return mongo_mismatch(context, MONGO_MISMATCH_TYPE, iter, NULL);
	text = bson_iter_utf8(&data, NULL);
	if (strcmp(reader->extra, MONGO_CLUSTER_TIME_COLUMN) == 0)
		text = mongo_format_cluster_time(mongo_token_time(text));
	else if (bson_iter_recurse(iter, &bits) && bson_iter_find(&bits, "_typeBits") &&
			 BSON_ITER_HOLDS_BINARY(&bits))
	{
		char	   *digits;

		bson_iter_binary(&bits, NULL, &size, &bytes);
		digits = palloc0(size * 2 + 1);
		(void) hex_encode((const char *) bytes, size, digits);
		text = psprintf("%s.%s", text, digits);
	}
	mongo_append(holder, "", mongo_utf8(text));
	bson_iter_init_find(&result, holder, "");
	return reader->type->read(reader, context, &result, value);
}

/*
 * mongo_prepare_token
 *		Has the reader read a column of this name from resume tokens: __cluster_time gets the
 *		token's time, any other column the token as a text.  Raises 0A000 if its type does not read
 *		Strings, or reads everything, as json does.
 */
void
mongo_prepare_token(MongoReader *reader, const char *column)
{
	if (!(reader->accepts & MONGO_BSON_BIT(BSON_TYPE_UTF8)) || reader->accepts == MONGO_BSON_ANY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of a change stream cannot be of type %s", column,
						format_type_be(reader->typid)),
				 errhint("Declare it as text.")));
	reader->read = read_token;
	reader->accepts = MONGO_BSON_BIT(BSON_TYPE_DOCUMENT);
	reader->extra = pstrdup(column);
}

/*
 * mongo_token_time
 *		Returns the time in the text _data of a resume token, seconds << 32 | number within the
 *		second: it follows the byte 0x82.  0 if there is none.
 */
uint64
mongo_token_time(const char *data)
{
	char		digits[16 + 1];

	if (strncmp(data, "82", 2) != 0 ||
		strspn(data + 2, "0123456789ABCDEFabcdef") < sizeof(digits) - 1)
		return 0;
	strlcpy(digits, data + 2, sizeof(digits));
	return strtou64(digits, NULL, 16);
}

/*
 * mongo_append_token
 *		Appends the token of a text that a column __token has returned; other text becomes its
 *		_data.
 */
void
mongo_append_token(bson_t *document, const char *key, const char *text)
{
	const char *dot = strchr(text, '.');
	size_t		ndigits = dot == NULL ? 0 : strlen(dot + 1);
	char	   *bits = palloc(ndigits / 2 + 1);
	bson_t		token;

	/* MongoDB refuses what is no token */
	if (ndigits == 0 || ndigits % 2 != 0 || strspn(dot + 1, "0123456789ABCDEFabcdef") < ndigits)
		dot = NULL;
	mongo_append_document_begin(document, key, &token);
	mongo_append(&token, "_data", mongo_utf8_sized(text, dot == NULL ? (int) strlen(text) : (int) (dot - text)));
	if (dot != NULL)
	{
		(void) hex_decode(dot + 1, ndigits, bits);
		mongo_append(&token, "_typeBits", mongo_binary(BSON_SUBTYPE_BINARY, (const uint8_t *) bits, (uint32) (ndigits / 2)));
	}
	mongo_append_document_end(document, &token);
}
