/*-------------------------------------------------------------------------
 *
 * objectid.c
 *		An ObjectId as text and as Datum.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "objectid.h"

void
mongo_objectid_to_text(const uint8 *bytes, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < MONGO_OBJECTID_SIZE; i++)
	{
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 0xf];
	}
	text[MONGO_OBJECTID_TEXT_LENGTH] = '\0';
}

/* hex_digit: the value of a digit, or -1. */
static int
hex_digit(char digit, bool canonical)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (!canonical && digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

bool
mongo_objectid_from_text(const char *text, size_t length, bool canonical,
						 bson_oid_t *oid)
{
	if (length != MONGO_OBJECTID_TEXT_LENGTH)
		return false;
	for (int i = 0; i < MONGO_OBJECTID_SIZE; i++)
	{
		int			high = hex_digit(text[2 * i], canonical);
		int			low = hex_digit(text[2 * i + 1], canonical);

		if (high < 0 || low < 0)
			return false;
		oid->bytes[i] = (uint8) (high << 4 | low);
	}
	return true;
}

Datum
mongo_objectid_datum(const uint8 *bytes)
{
	uint8	   *copy = palloc(MONGO_OBJECTID_SIZE);

	memcpy(copy, bytes, MONGO_OBJECTID_SIZE);
	return PointerGetDatum(copy);
}
