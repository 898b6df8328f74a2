/*-------------------------------------------------------------------------
 *
 * encoding.h
 *		Strings between the database's encoding and BSON's, which is UTF-8.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ENCODING_H
#define MONGO_FDW_ENCODING_H

#include "compat.h"

#include "mb/pg_wchar.h"

/*
 * mongo_to_utf8, mongo_from_utf8
 *		The name itself where nothing has to be changed, else a palloc'd copy.
 *		Raise 22P05 for a character that the other encoding lacks, and 22021 for
 *		bytes that are not UTF-8, which a database in SQL_ASCII may hold.
 */
static inline const char *
mongo_to_utf8(const char *name)
{
	return pg_server_to_any(name, (int) strlen(name), PG_UTF8);
}

static inline const char *
mongo_from_utf8(const char *name)
{
	return pg_any_to_server(name, (int) strlen(name), PG_UTF8);
}

/*
 * mongo_is_plain_text
 *		Are these bytes ASCII without U+0000?
 *
 * Such text is the same in each of PostgreSQL's server encodings, and most text is
 * such.  Eight bytes at a time: taking 1 from each sets the high bit of a zero byte.
 */
static inline bool
mongo_is_plain_text(const char *text, uint32 length)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);
	const uint64 high_bits = UINT64CONST(0x8080808080808080);
	uint32		i = 0;
	unsigned char seen = 0;

	for (; i + sizeof(uint64) <= length; i += sizeof(uint64))
	{
		uint64		bytes;

		memcpy(&bytes, text + i, sizeof(bytes));
		if (((bytes | (bytes - ones)) & high_bits) != 0)
			return false;
	}
	for (; i < length; i++)
		seen |= (unsigned char) text[i] | ((unsigned char) text[i] - 1);
	return (seen & 0x80) == 0;
}

/*
 * mongo_text_is_valid
 *		Are these bytes UTF-8 without U+0000, of characters that the
 *		database's encoding has, so that a text may hold them?
 *
 * Raises 42883 where PostgreSQL has no conversion from UTF-8 to that encoding.
 */
extern bool mongo_text_is_valid(const char *text, uint32 length);

/*
 * mongo_text_remark
 *		Why mongo_text_is_valid() is false: a sentence for DETAIL, static.
 */
extern const char *mongo_text_remark(const char *text, uint32 length);

/*
 * mongo_text_to_server
 *		Valid UTF-8 in the database's encoding.
 *
 * Gives 'text' itself where that is UTF-8, else a palloc'd copy; *length is
 * adjusted.  Only for what mongo_text_is_valid() has passed.
 */
extern const char *mongo_text_to_server(const char *text, uint32 *length);

/*
 * mongo_cut_text
 *		A palloc'd C string of at most 'limit' bytes of 'text', cut between
 *		characters, with "..." where something was cut off.
 */
extern char *mongo_cut_text(const char *text, int limit);

#endif							/* MONGO_FDW_ENCODING_H */
