/*-------------------------------------------------------------------------
 *
 * decode_scalar.c
 *		Texts, bytes and dates from BSON.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "decode_scalar.h"

#include "bson_date.h"
#include "common/int.h"
#include "encoding.h"
#include "mb/pg_wchar.h"
#include "objectid.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/*
 * text_bytes
 *		The characters of a String, Symbol or ObjectId, in the database's
 *		encoding.
 *
 * 'hex' is room for an ObjectId's digits.  NULL, a type mismatch noted, when no text
 * can hold them.
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

bool
mongo_read_text(MONGO_READ_ARGS)
{
	char		hex[MONGO_OBJECTID_TEXT_LENGTH + 1];
	uint32		length;
	const char *text = text_bytes(context, iter, hex, &length);

	if (text == NULL)
		return false;
	*value = PointerGetDatum(cstring_to_text_with_len(text, length));
	return true;
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

bool
mongo_read_varchar(MONGO_READ_ARGS)
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

/* is_octal: a byte above 127 as PostgreSQL writes a "char", such as \303? */
static bool
is_octal(const char *text, uint32 length)
{
	return length == 4 && text[0] == '\\' && text[1] >= '2' && text[1] <= '3' &&
		text[2] >= '0' && text[2] <= '7' && text[3] >= '0' && text[3] <= '7';
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
	if (is_octal(text, length))
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
