/*-------------------------------------------------------------------------
 *
 * encoding.c
 *		MongoDB's strings, which are UTF-8, in the database's encoding.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "encoding.h"

#include "catalog/namespace.h"
#include "mb/pg_wchar.h"

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
	char	   *copy;

	if (length <= limit)
		return pstrdup(text);
	length = pg_mbcliplen(text, length, limit);
	copy = palloc(length + 4);
	memcpy(copy, text, length);
	strcpy(copy + length, "...");
	return copy;
}
