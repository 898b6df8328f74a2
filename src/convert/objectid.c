/*-------------------------------------------------------------------------
 *
 * objectid.c
 *		The SQL type objectid: twelve bytes, by reference, without alignment.
 *
 * It is not known at compile time which OID the type has, so its conversion comes first, then how
 * the type is recognized, then its SQL functions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include "access/htup_details.h"
#include "catalog/dependency.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "common/hashfn.h"
#include "libpq/pqformat.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"

/* -------------------- An ObjectId as text and as Datum -------------------- */

/*
 * mongo_objectid_from_text
 *		Parses exactly 24 hexadecimal digits, only in lower case if 'canonical' is set; returns
 *		false for any other text.
 */
bool
mongo_objectid_from_text(const char *text, size_t length, bool canonical, bson_oid_t *oid)
{
	if (length != MONGO_OBJECTID_TEXT_LENGTH || !bson_oid_is_valid(text, length))
		return false;
	for (int i = 0; canonical && i < MONGO_OBJECTID_TEXT_LENGTH; i++)
	{
		if (text[i] >= 'A' && text[i] <= 'F')
			return false;
	}
	bson_oid_init_from_string_unsafe(oid, text);
	return true;
}

static Datum
objectid_datum(const uint8 *bytes)
{
	uint8	   *copy = palloc(MONGO_OBJECTID_SIZE);

	memcpy(copy, bytes, MONGO_OBJECTID_SIZE);
	return PointerGetDatum(copy);
}

/*
 * mongo_read_objectid
 *		Reads an ObjectId.
 */
bool
mongo_read_objectid(MONGO_READ_ARGS)
{
	*value = objectid_datum(bson_iter_oid(iter)->bytes);
	return true;
}

/* -------------------- The OID of the SQL type objectid -------------------- */

/* The type's OID, or InvalidOid; and the type that is being looked up. */
static Oid	cached_type_oid = InvalidOid;
static Oid	looked_up = InvalidOid;
static Oid	cached_namespace;

/* Syscache callback: another type may be objectid now. */
static void
forget(Datum arg pg_attribute_unused(), int cacheid pg_attribute_unused(),
	   uint32 hashvalue pg_attribute_unused())
{
	cached_type_oid = looked_up = InvalidOid;
}

/*
 * mongo_objectid_type_oid
 *		Returns the OID of objectid in this database; InvalidOid if the extension is missing.
 */
Oid
mongo_objectid_type_oid(void)
{
	Oid			extension = get_extension_oid("mongo_fdw", true);

	return OidIsValid(extension) ? getExtensionType(extension, "objectid") : InvalidOid;
}

/*
 * mongo_is_objectid_type
 *		Tells whether this is the SQL type objectid.  Recognizes the type's input function, which
 *		saves a new session a scan of pg_extension.
 */
bool
mongo_is_objectid_type(Oid typid)
{
	static bool registered = false;
	HeapTuple	tuple;
	Form_pg_type type;
	FmgrInfo	input = {0};

	if (OidIsValid(cached_type_oid))
		return typid == cached_type_oid;

	if (!registered)
		CacheRegisterSyscacheCallback(TYPEOID, forget, (Datum) 0);
	registered = true;
	looked_up = typid;
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(typid));
	if (!HeapTupleIsValid(tuple))
		return false;
	type = (Form_pg_type) GETSTRUCT(tuple);
	cached_namespace = type->typnamespace;
	if (type->typtype == TYPTYPE_BASE && type->typlen == MONGO_OBJECTID_SIZE &&
		!type->typbyval)
		fmgr_info(type->typinput, &input);
	ReleaseSysCache(tuple);
	if (input.fn_addr != mongo_objectid_in)
		return false;
	cached_type_oid = looked_up;
	return true;
}

/*
 * mongo_objectid_opfamily
 *		Returns the default B-tree operator family of objectid, without a scan of pg_opclass;
 *		InvalidOid if there is none.  To be called after mongo_type_kind() has recognized the type.
 */
Oid
mongo_objectid_opfamily(void)
{
	HeapTuple	tuple = SearchSysCache3(CLAAMNAMENSP, ObjectIdGetDatum(BTREE_AM_OID),
										CStringGetDatum("objectid_ops"),
										ObjectIdGetDatum(cached_namespace));
	Oid			family = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		family = ((Form_pg_opclass) GETSTRUCT(tuple))->opcfamily;
		ReleaseSysCache(tuple);
	}
	return family;
}

/*-------------------------------------------------------------------------
 * The functions of the SQL type objectid.
 *
 * Its twelve bytes are: four of seconds since 1970, big-endian, five that differ between
 * processes, three of a counter.  MongoDB orders ObjectIds as memcmp() does.
 *-------------------------------------------------------------------------
 */

#define PG_GETARG_OBJECTID(n)	((const uint8 *) PG_GETARG_POINTER(n))

/* ---- Input and output, as text and binary ---- */

/*
 * mongo_objectid_in
 *		Returns the ObjectId of 24 hexadecimal digits in either case; raises 22P02 for other text.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_in);
Datum
mongo_objectid_in(PG_FUNCTION_ARGS)
{
	const char *text = PG_GETARG_CSTRING(0);
	bson_oid_t	oid;

	if (!mongo_objectid_from_text(text, strlen(text), false, &oid))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s: \"%s\"", "objectid", text),
				 errdetail("An ObjectId is written as 24 hexadecimal digits.")));
	PG_RETURN_DATUM(objectid_datum(oid.bytes));
}

/*
 * mongo_objectid_out
 *		Returns the 24 digits, in lower case.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_out);
Datum
mongo_objectid_out(PG_FUNCTION_ARGS)
{
	char	   *text = palloc(MONGO_OBJECTID_TEXT_LENGTH + 1);

	bson_oid_to_string((const bson_oid_t *) PG_GETARG_OBJECTID(0), text);
	PG_RETURN_CSTRING(text);
}

/*
 * mongo_objectid_recv
 *		Returns the ObjectId of twelve bytes.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_recv);
Datum
mongo_objectid_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);

	PG_RETURN_DATUM(objectid_datum((const uint8 *) pq_getmsgbytes(buffer, MONGO_OBJECTID_SIZE)));
}

/*
 * mongo_objectid_send
 *		Returns the twelve bytes; also the cast to bytea.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_send);
Datum
mongo_objectid_send(PG_FUNCTION_ARGS)
{
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	pq_sendbytes(&buffer, (const char *) PG_GETARG_OBJECTID(0), MONGO_OBJECTID_SIZE);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

/* ---- Comparisons, sort support and hashing ---- */

#define COMPARISON(name, operator) \
	PG_FUNCTION_INFO_V1(mongo_objectid_##name); \
	Datum \
	mongo_objectid_##name(PG_FUNCTION_ARGS) \
	{ \
		PG_RETURN_BOOL(memcmp(PG_GETARG_OBJECTID(0), PG_GETARG_OBJECTID(1), \
							  MONGO_OBJECTID_SIZE) operator 0); \
	} \
	extern PGDLLEXPORT Datum mongo_objectid_##name(PG_FUNCTION_ARGS)

COMPARISON(eq, ==);
COMPARISON(ne, !=);
COMPARISON(lt, <);
COMPARISON(le, <=);
COMPARISON(gt, >);
COMPARISON(ge, >=);

/*
 * mongo_objectid_cmp
 *		Compares two ObjectIds as MongoDB does.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_cmp);
Datum
mongo_objectid_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(memcmp(PG_GETARG_OBJECTID(0), PG_GETARG_OBJECTID(1), MONGO_OBJECTID_SIZE));
}

static int
compare_for_sort(Datum left, Datum right, SortSupport sort pg_attribute_unused())
{
	return memcmp(DatumGetPointer(left), DatumGetPointer(right), MONGO_OBJECTID_SIZE);
}

/*
 * mongo_objectid_sortsupport
 *		Has sorts compare without the function manager.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_sortsupport);
Datum
mongo_objectid_sortsupport(PG_FUNCTION_ARGS)
{
	SortSupport sort = (SortSupport) PG_GETARG_POINTER(0);

	sort->comparator = compare_for_sort;
	PG_RETURN_VOID();
}

/*
 * Comparisons with text, such as drivers send.  A text equals the ObjectId of which it has the
 * digits.  Others are above all ObjectIds.
 */

/*
 * mongo_objectid_of_text
 *		Parses a detoasted text of 24 hexadecimal digits in either case; returns false for any
 *		other.
 */
bool
mongo_objectid_of_text(const text *value, bson_oid_t *oid)
{
	return mongo_objectid_from_text(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), false, oid);
}

static int
compare_with_text(const uint8 *objectid, const text *value)
{
	bson_oid_t	oid;

	return mongo_objectid_of_text(value, &oid) ?
		memcmp(objectid, oid.bytes, MONGO_OBJECTID_SIZE) : -1;
}

#define TEXT_COMPARISON(name, objectid, value, type, expression) \
	PG_FUNCTION_INFO_V1(mongo_##name); \
	Datum \
	mongo_##name(PG_FUNCTION_ARGS) \
	{ \
		int			order = compare_with_text(PG_GETARG_OBJECTID(objectid), PG_GETARG_TEXT_PP(value)); \
		PG_RETURN_##type(expression); \
	} \
	extern PGDLLEXPORT Datum mongo_##name(PG_FUNCTION_ARGS)

TEXT_COMPARISON(objectid_eq_text, 0, 1, BOOL, order == 0);
TEXT_COMPARISON(objectid_ne_text, 0, 1, BOOL, order != 0);
TEXT_COMPARISON(objectid_lt_text, 0, 1, BOOL, order < 0);
TEXT_COMPARISON(objectid_le_text, 0, 1, BOOL, order <= 0);
TEXT_COMPARISON(objectid_gt_text, 0, 1, BOOL, order > 0);
TEXT_COMPARISON(objectid_ge_text, 0, 1, BOOL, order >= 0);
TEXT_COMPARISON(objectid_cmp_text, 0, 1, INT32, order);
TEXT_COMPARISON(text_eq_objectid, 1, 0, BOOL, order == 0);
TEXT_COMPARISON(text_ne_objectid, 1, 0, BOOL, order != 0);
TEXT_COMPARISON(text_lt_objectid, 1, 0, BOOL, order > 0);
TEXT_COMPARISON(text_le_objectid, 1, 0, BOOL, order >= 0);
TEXT_COMPARISON(text_gt_objectid, 1, 0, BOOL, order < 0);
TEXT_COMPARISON(text_ge_objectid, 1, 0, BOOL, order <= 0);
TEXT_COMPARISON(text_cmp_objectid, 1, 0, INT32, -order);

/*
 * mongo_text_cmp_text
 *		Orders texts as they are compared with ObjectIds.
 */
PG_FUNCTION_INFO_V1(mongo_text_cmp_text);
Datum
mongo_text_cmp_text(PG_FUNCTION_ARGS)
{
	const text *left = PG_GETARG_TEXT_PP(0);
	const text *right = PG_GETARG_TEXT_PP(1);
	Size		left_length = VARSIZE_ANY_EXHDR(left);
	Size		right_length = VARSIZE_ANY_EXHDR(right);
	bson_oid_t	oid;
	int			order;

	if (mongo_objectid_of_text(left, &oid))
		PG_RETURN_INT32(compare_with_text(oid.bytes, right));
	if (mongo_objectid_of_text(right, &oid))
		PG_RETURN_INT32(1);
	order = memcmp(VARDATA_ANY(left), VARDATA_ANY(right), Min(left_length, right_length));
	PG_RETURN_INT32(order != 0 ? order : (left_length > right_length) - (left_length < right_length));
}

/*
 * mongo_objectid_hash
 *		Returns the hash of an ObjectId.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_hash);
Datum
mongo_objectid_hash(PG_FUNCTION_ARGS)
{
	return hash_any(PG_GETARG_OBJECTID(0), MONGO_OBJECTID_SIZE);
}

/*
 * mongo_objectid_hash_extended
 *		Returns the hash of an ObjectId in 64 bits, with a seed.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_hash_extended);
Datum
mongo_objectid_hash_extended(PG_FUNCTION_ARGS)
{
	return hash_any_extended(PG_GETARG_OBJECTID(0), MONGO_OBJECTID_SIZE,
							 PG_GETARG_INT64(1));
}

/* ---- Casts and generators ---- */

/*
 * mongo_objectid_from_bytea
 *		Returns the ObjectId of twelve bytes; raises 22P03 for another length.
 */
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
	PG_RETURN_DATUM(objectid_datum((const uint8 *) VARDATA_ANY(bytes)));
}

/*
 * mongo_objectid_to_timestamptz
 *		Returns the second in which an ObjectId was generated.
 */
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

/*
 * mongo_objectid_generate
 *		Returns a new ObjectId.
 */
PG_FUNCTION_INFO_V1(mongo_objectid_generate);
Datum
mongo_objectid_generate(PG_FUNCTION_ARGS pg_attribute_unused())
{
	bson_oid_t	oid;

	bson_oid_init(&oid, NULL);
	PG_RETURN_DATUM(objectid_datum(oid.bytes));
}

/*
 * mongo_objectid_from_timestamptz
 *		Returns the lowest ObjectId of the second that contains a time, as a bound for ranges.
 *		Raises 22008 for times before 1970 and after 2106.
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
	PG_RETURN_DATUM(objectid_datum(bytes));
}
