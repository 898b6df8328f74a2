/*-------------------------------------------------------------------------
 *
 * objectid_functions.c
 *		The functions of the SQL type objectid.
 *
 * Twelve bytes: four of seconds since 1970, big-endian, five that tell
 * processes apart, three of a counter.  Byte order is the order of MongoDB.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "objectid.h"

#include "bson_date.h"
#include "common/hashfn.h"
#include "datatype/timestamp.h"
#include "libpq/pqformat.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/sortsupport.h"
#include "utils/timestamp.h"

#define PG_GETARG_OBJECTID(n)	((const uint8 *) PG_GETARG_POINTER(n))

/*
 * Text
 */

/* parse_objectid: 24 digits as a Datum; raises 22P02. */
static Datum
parse_objectid(const char *text, size_t length)
{
	bson_oid_t	oid;

	if (!mongo_objectid_from_text(text, length, false, &oid))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s: \"%s\"", "objectid",
						pnstrdup(text, length)),
				 errdetail("An ObjectId is written as 24 hexadecimal digits.")));
	return mongo_objectid_datum(oid.bytes);
}

PG_FUNCTION_INFO_V1(mongo_objectid_in);
Datum
mongo_objectid_in(PG_FUNCTION_ARGS)
{
	const char *text = PG_GETARG_CSTRING(0);

	PG_RETURN_DATUM(parse_objectid(text, strlen(text)));
}

PG_FUNCTION_INFO_V1(mongo_objectid_out);
Datum
mongo_objectid_out(PG_FUNCTION_ARGS)
{
	char	   *text = palloc(MONGO_OBJECTID_TEXT_LENGTH + 1);

	mongo_objectid_to_text(PG_GETARG_OBJECTID(0), text);
	PG_RETURN_CSTRING(text);
}

PG_FUNCTION_INFO_V1(mongo_objectid_recv);
Datum
mongo_objectid_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);

	PG_RETURN_DATUM(mongo_objectid_datum((const uint8 *) pq_getmsgbytes(buffer, MONGO_OBJECTID_SIZE)));
}

PG_FUNCTION_INFO_V1(mongo_objectid_send);
Datum
mongo_objectid_send(PG_FUNCTION_ARGS)
{
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	pq_sendbytes(&buffer, (const char *) PG_GETARG_OBJECTID(0), MONGO_OBJECTID_SIZE);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

/*
 * Order
 */

static inline int
compare_objectids(const uint8 *left, const uint8 *right)
{
	return memcmp(left, right, MONGO_OBJECTID_SIZE);
}

#define COMPARISON(name, operator) \
	PG_FUNCTION_INFO_V1(mongo_objectid_##name); \
	Datum \
	mongo_objectid_##name(PG_FUNCTION_ARGS) \
	{ \
		PG_RETURN_BOOL(compare_objectids(PG_GETARG_OBJECTID(0), \
							   PG_GETARG_OBJECTID(1)) operator 0); \
	} \
	extern PGDLLEXPORT Datum mongo_objectid_##name(PG_FUNCTION_ARGS)

COMPARISON(eq, ==);
COMPARISON(ne, !=);
COMPARISON(lt, <);
COMPARISON(le, <=);
COMPARISON(gt, >);
COMPARISON(ge, >=);

PG_FUNCTION_INFO_V1(mongo_objectid_cmp);
Datum
mongo_objectid_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(compare_objectids(PG_GETARG_OBJECTID(0), PG_GETARG_OBJECTID(1)));
}

static int
compare_for_sort(Datum left, Datum right, SortSupport sort pg_attribute_unused())
{
	return compare_objectids((const uint8 *) DatumGetPointer(left),
							 (const uint8 *) DatumGetPointer(right));
}

PG_FUNCTION_INFO_V1(mongo_objectid_sortsupport);
Datum
mongo_objectid_sortsupport(PG_FUNCTION_ARGS)
{
	SortSupport sort = (SortSupport) PG_GETARG_POINTER(0);

	sort->comparator = compare_for_sort;
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(mongo_objectid_hash);
Datum
mongo_objectid_hash(PG_FUNCTION_ARGS)
{
	return hash_any(PG_GETARG_OBJECTID(0), MONGO_OBJECTID_SIZE);
}

PG_FUNCTION_INFO_V1(mongo_objectid_hash_extended);
Datum
mongo_objectid_hash_extended(PG_FUNCTION_ARGS)
{
	return hash_any_extended(PG_GETARG_OBJECTID(0), MONGO_OBJECTID_SIZE,
							 PG_GETARG_INT64(1));
}

/*
 * Casts and generators
 */

PG_FUNCTION_INFO_V1(mongo_objectid_to_text_cast);
Datum
mongo_objectid_to_text_cast(PG_FUNCTION_ARGS)
{
	char		text[MONGO_OBJECTID_TEXT_LENGTH + 1];

	mongo_objectid_to_text(PG_GETARG_OBJECTID(0), text);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(text, MONGO_OBJECTID_TEXT_LENGTH));
}

PG_FUNCTION_INFO_V1(mongo_objectid_from_text_cast);
Datum
mongo_objectid_from_text_cast(PG_FUNCTION_ARGS)
{
	text	   *string = PG_GETARG_TEXT_PP(0);

	PG_RETURN_DATUM(parse_objectid(VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string)));
}

PG_FUNCTION_INFO_V1(mongo_objectid_to_bytea);
Datum
mongo_objectid_to_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = palloc(VARHDRSZ + MONGO_OBJECTID_SIZE);

	SET_VARSIZE(bytes, VARHDRSZ + MONGO_OBJECTID_SIZE);
	memcpy(VARDATA(bytes), PG_GETARG_OBJECTID(0), MONGO_OBJECTID_SIZE);
	PG_RETURN_BYTEA_P(bytes);
}

PG_FUNCTION_INFO_V1(mongo_objectid_from_bytea);
Datum
mongo_objectid_from_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);

	if (VARSIZE_ANY_EXHDR(bytes) != MONGO_OBJECTID_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("an ObjectId has 12 bytes, not %d",
						(int) VARSIZE_ANY_EXHDR(bytes))));
	PG_RETURN_DATUM(mongo_objectid_datum((const uint8 *) VARDATA_ANY(bytes)));
}

/* The second in which an ObjectId was made. */
PG_FUNCTION_INFO_V1(mongo_objectid_to_timestamptz);
Datum
mongo_objectid_to_timestamptz(PG_FUNCTION_ARGS)
{
	uint32		seconds;

	memcpy(&seconds, PG_GETARG_OBJECTID(0), sizeof(seconds));
	seconds = pg_ntoh32(seconds);
	PG_RETURN_TIMESTAMPTZ(((int64) seconds -
						   MONGO_EPOCH_DAYS * SECS_PER_DAY) * USECS_PER_SEC);
}

/* A new ObjectId. */
PG_FUNCTION_INFO_V1(mongo_objectid_generate);
Datum
mongo_objectid_generate(PG_FUNCTION_ARGS pg_attribute_unused())
{
	bson_oid_t	oid;

	bson_oid_init(&oid, NULL);
	PG_RETURN_DATUM(mongo_objectid_datum(oid.bytes));
}

/*
 * The lowest ObjectId of the second that a time lies in: a bound for ranges.
 * Raises 22008 for times before 1970 and after 2106.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_from_timestamptz);
Datum
mongo_objectid_from_timestamptz(PG_FUNCTION_ARGS)
{
	TimestampTz timestamp = PG_GETARG_TIMESTAMPTZ(0);
	uint8		bytes[MONGO_OBJECTID_SIZE] = {0};
	int64		millis = TIMESTAMP_NOT_FINITE(timestamp) ? -1 :
		mongo_timestamp_to_millis(timestamp, NULL);
	uint32		seconds;

	if (millis < 0 || millis / 1000 > PG_UINT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time out of range for type %s", "objectid"),
				 errdetail("An ObjectId holds seconds from 1970 to 2106.")));
	seconds = pg_hton32((uint32) (millis / 1000));
	memcpy(bytes, &seconds, sizeof(seconds));
	PG_RETURN_DATUM(mongo_objectid_datum(bytes));
}
