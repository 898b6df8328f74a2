/*-------------------------------------------------------------------------
 *
 * printable.c
 *		What came from elsewhere, as text that may be shown.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "printable.h"

#include "mb/pg_wchar.h"

char *
mongo_printable_bytes(const char *text, size_t length)
{
	char	   *copy = pnstrdup(text, length);

	for (char *c = copy; *c != '\0';)
	{
		size_t		size = pg_utf_mblen((unsigned char *) c);

		if (strnlen(c, size) < size || !pg_utf8_islegal((unsigned char *) c, size) ||
			(unsigned char) *c < ' ')
		{
			if (*c != '\n' && *c != '\t')
				*c = '?';
			size = 1;
		}
		else if (size > 1 && GetDatabaseEncoding() != PG_UTF8)
		{
			/* a conversion could raise in its turn: show what is plain */
			memset(c, '?', size);
		}
		c += size;
	}
	return copy;
}

char *
mongo_printable(const char *text)
{
	return mongo_printable_bytes(text, strlen(text));
}
