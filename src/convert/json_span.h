/*-------------------------------------------------------------------------
 *
 * json_span.h
 *		What in a string is the same in JSON.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_SPAN_H
#define MONGO_FDW_JSON_SPAN_H

/*
 * mongo_json_span
 *		How many bytes from here on are neither quotes, backslashes nor control
 *		characters.
 *
 * Eight at a time: taking from each byte as much as it must have at least sets
 * its high bit, if it was not set, and so does taking 1 from what is zero.
 */
static inline uint32
mongo_json_span(const char *text, uint32 length)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);
	uint32		i = 0;

	for (; i + sizeof(uint64) <= length; i += sizeof(uint64))
	{
		uint64		bytes;
		uint64		quotes;
		uint64		backslashes;
		uint64		found;

		memcpy(&bytes, text + i, sizeof(bytes));
		quotes = bytes ^ (ones * '"');
		backslashes = bytes ^ (ones * '\\');
		found = ((bytes - ones * ' ') & ~bytes) |
			((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes);
		if ((found & (ones * 0x80)) != 0)
			break;
	}
	while (i < length && (unsigned char) text[i] >= ' ' && text[i] != '"' && text[i] != '\\')
		i++;
	return i;
}

#endif							/* MONGO_FDW_JSON_SPAN_H */
