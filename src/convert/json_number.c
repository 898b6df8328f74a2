/*-------------------------------------------------------------------------
 *
 * json_number.c
 *		JSON's numbers as BSON's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_number.h"

#include "encode_scalar.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/shortest_dec.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

/* same_numeric: do two number texts mean the same number? */
static bool
same_numeric(const char *left, const char *right)
{
	Datum		numbers[2];

	numbers[0] = DirectFunctionCall3(numeric_in, CStringGetDatum(left),
									 ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	numbers[1] = DirectFunctionCall3(numeric_in, CStringGetDatum(right),
									 ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	return DatumGetBool(DirectFunctionCall2(numeric_eq, numbers[0], numbers[1]));
}

/* append_decimal: a number text as a Decimal128; raises 22003. */
static void
append_decimal(const MongoWriteTarget *target, const char *text)
{
	Datum		number = DirectFunctionCall3(numeric_in, CStringGetDatum(text),
											 ObjectIdGetDatum(InvalidOid),
											 Int32GetDatum(-1));

	mongo_write_numeric(target, number, NUMERICOID, -1);
}

/*
 * is_shortest
 *		Is a number text the Double's shortest one, but for zeros at its end?
 */
static bool
is_shortest(const char *shortest, const char *text)
{
	size_t		length = strlen(text);

	if (strchr(text, '.') != NULL && strpbrk(text, "eE") == NULL)
	{
		while (text[length - 1] == '0')
			length--;
		if (text[length - 1] == '.')
			length--;
	}
	return strlen(shortest) == length && memcmp(shortest, text, length) == 0;
}

void
mongo_write_json_integer(const MongoWriteTarget *target, int64 integer)
{
	if (integer >= PG_INT32_MIN && integer <= PG_INT32_MAX)
		MONGO_WRITE(target, int32, (int32) integer);
	else
		MONGO_WRITE(target, int64, integer);
}

void
mongo_write_json_number(const MongoWriteTarget *target, const char *text)
{
	char		shortest[DOUBLE_SHORTEST_DECIMAL_LEN];
	double		number;

	if (strpbrk(text, ".eE") == NULL)
	{
		int64		integer;

		errno = 0;
		integer = strtoll(text, NULL, 10);
		if (errno == 0)
		{
			mongo_write_json_integer(target, integer);
			return;
		}
	}

	number = strtod(text, NULL);
	if (!isinf(number))
	{
		double_to_shortest_decimal_buf(number, shortest);
		if (is_shortest(shortest, text) || same_numeric(shortest, text))
		{
			MONGO_WRITE(target, double, number);
			return;
		}
	}
	append_decimal(target, text);
}
