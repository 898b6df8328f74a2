/*-------------------------------------------------------------------------
 *
 * decode_number.c
 *		Numbers and booleans from BSON.
 *
 * A number is read when the column's type holds the same number, whatever
 * BSON type it came in; filters are sent to MongoDB on that understanding.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "decode_number.h"

#include <math.h>

#include "common/int.h"
#include "decimal128.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"

#define INEXACT_REMARK \
	"A double cannot hold this number exactly; the column could be numeric."

/* What a numeric(p,s) column keeps at hand. */
typedef struct NumericReader
{
	int			scale;
	Numeric		limit;			/* 10^(p-s): magnitudes below it fit */
	int64		unscaled_limit; /* 10^p; 0 where that is no int64 */
} NumericReader;

/* Powers of ten that an int64 holds. */
#define MAX_INT64_POWER		18

/*
 * A decimal of so many digits is the one that a Double nearest to it reads as
 * (DBL_DIG of them), and so many decimals are worth trying to find it.
 */
#define DOUBLE_DIGITS_LIMIT	1e15
#define MAX_DOUBLE_SCALE	6

static const int64 int64_powers[MAX_INT64_POWER + 1] = {
	INT64CONST(1), INT64CONST(10), INT64CONST(100), INT64CONST(1000), INT64CONST(10000),
	INT64CONST(100000), INT64CONST(1000000), INT64CONST(10000000), INT64CONST(100000000),
	INT64CONST(1000000000), INT64CONST(10000000000), INT64CONST(100000000000),
	INT64CONST(1000000000000), INT64CONST(10000000000000), INT64CONST(100000000000000),
	INT64CONST(1000000000000000), INT64CONST(10000000000000000),
	INT64CONST(100000000000000000), INT64CONST(1000000000000000000)
};

bool
mongo_read_bool(MONGO_READ_ARGS)
{
	*value = BoolGetDatum(bson_iter_bool(iter));
	return true;
}

/* unpack_decimal: the parts of the Decimal128 at 'iter'. */
static void
unpack_decimal(const bson_iter_t *iter, MongoDecimalParts *parts)
{
	bson_decimal128_t decimal;

	bson_iter_decimal128(iter, &decimal);
	mongo_decimal128_unpack(&decimal, parts);
}

/* read_integer: any number that is integral and within bounds. */
static bool
read_integer(MongoReadContext *context, const bson_iter_t *iter,
			 int64 minimum, int64 maximum, int64 *result)
{
	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_INT32:
			*result = bson_iter_int32(iter);
			break;
		case BSON_TYPE_INT64:
			*result = bson_iter_int64(iter);
			break;
		case BSON_TYPE_DOUBLE:
			{
				double		number = bson_iter_double(iter);

				if (isnan(number) || !FLOAT8_FITS_IN_INT64(number) ||
					rint(number) != number)
					return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
				*result = (int64) number;
				break;
			}
		default:
			{
				MongoDecimalParts parts;

				unpack_decimal(iter, &parts);
				if (!mongo_decimal128_to_int64(&parts, result))
					return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
				break;
			}
	}

	if (*result < minimum || *result > maximum)
		return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
	return true;
}

bool
mongo_read_int2(MONGO_READ_ARGS)
{
	int64		number;

	if (!read_integer(context, iter, PG_INT16_MIN, PG_INT16_MAX, &number))
		return false;
	*value = Int16GetDatum((int16) number);
	return true;
}

bool
mongo_read_int4(MONGO_READ_ARGS)
{
	int64		number;

	if (bson_iter_type(iter) == BSON_TYPE_INT32)
	{
		*value = Int32GetDatum(bson_iter_int32(iter));
		return true;
	}
	if (!read_integer(context, iter, PG_INT32_MIN, PG_INT32_MAX, &number))
		return false;
	*value = Int32GetDatum((int32) number);
	return true;
}

bool
mongo_read_int8(MONGO_READ_ARGS)
{
	int64		number;

	if (!read_integer(context, iter, PG_INT64_MIN, PG_INT64_MAX, &number))
		return false;
	*value = Int64GetDatum(number);
	return true;
}

/* Does a double hold this integer exactly? */
static inline bool
int64_is_double(int64 number)
{
	double		rounded = (double) number;

	return FLOAT8_FITS_IN_INT64(rounded) && (int64) rounded == number;
}

bool
mongo_read_float8(MONGO_READ_ARGS)
{
	double		number;

	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_DOUBLE:
			number = bson_iter_double(iter);
			break;
		case BSON_TYPE_INT32:
			number = bson_iter_int32(iter);
			break;
		case BSON_TYPE_INT64:
			if (!int64_is_double(bson_iter_int64(iter)))
				return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter,
									  INEXACT_REMARK);
			number = (double) bson_iter_int64(iter);
			break;
		default:
			{
				MongoDecimalParts parts;

				unpack_decimal(iter, &parts);
				if (!mongo_decimal128_to_float8(&parts, &number))
					return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter,
										  INEXACT_REMARK);
				break;
			}
	}
	*value = Float8GetDatum(number);
	return true;
}

/*
 * real is a lossy type and taken as one: every number is rounded to it, and
 * nothing about a real column is decided by MongoDB.
 */
bool
mongo_read_float4(MONGO_READ_ARGS)
{
	float		number;
	bool		infinite = false;

	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_DOUBLE:
			number = (float) bson_iter_double(iter);
			infinite = isinf(bson_iter_double(iter));
			break;
		case BSON_TYPE_INT32:
			number = (float) bson_iter_int32(iter);
			break;
		case BSON_TYPE_INT64:
			number = (float) bson_iter_int64(iter);
			break;
		default:
			{
				bson_decimal128_t decimal;
				char		text[BSON_DECIMAL128_STRING];

				/* the text, so that there is one rounding, not two */
				bson_iter_decimal128(iter, &decimal);
				mongo_decimal128_to_text(&decimal, text);
				number = strtof(text, NULL);
				infinite = strstr(text, "Infinity") != NULL;
				break;
			}
	}

	if (isinf(number) && !infinite)
		return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
	*value = Float4GetDatum(number);
	return true;
}

void
mongo_prepare_numeric(MongoReader *reader)
{
	NumericReader *numeric;
	MemoryContext caller;
	int			precision;
	int			scale;

	if (!mongo_numeric_typmod(reader->typmod, &precision, &scale))
		return;

	caller = MemoryContextSwitchTo(reader->mcxt);
	numeric = palloc(sizeof(NumericReader));
	numeric->scale = scale;
	numeric->unscaled_limit = precision <= MAX_INT64_POWER && numeric->scale >= 0 ?
		int64_powers[precision] : 0;
	numeric->limit =
		DatumGetNumeric(DirectFunctionCall3(numeric_in,
											CStringGetDatum(psprintf("1e%d", precision - numeric->scale)),
											ObjectIdGetDatum(InvalidOid),
											Int32GetDatum(-1)));
	reader->extra = numeric;
	MemoryContextSwitchTo(caller);
}

/*
 * apply_numeric_typmod
 *		Round to the column's scale; false when precision is exceeded.
 *
 * PostgreSQL's own numeric() would raise.
 */
static bool
apply_numeric_typmod(const MongoReader *reader, Datum *value)
{
	const NumericReader *numeric = reader->extra;
	Datum		magnitude;

	if (numeric_is_nan(DatumGetNumeric(*value)))
		return true;
	if (numeric_is_inf(DatumGetNumeric(*value)))
		return false;

	*value = DirectFunctionCall2(numeric_round, *value,
								 Int32GetDatum(numeric->scale));
	magnitude = DirectFunctionCall1(numeric_abs, *value);
	return DatumGetBool(DirectFunctionCall2(numeric_lt, magnitude,
											NumericGetDatum(numeric->limit)));
}

/*
 * unscale_double: is the number, as 15 digits show it, digits * 10^-scale?
 *
 * Both digits and the power of ten are exact doubles, so that their quotient is
 * the double nearest to that decimal; when it has no more than 15 digits, no
 * other one has the same nearest double.
 */
static bool
unscale_double(double number, int scale, int64 *digits)
{
	double		power = (double) int64_powers[scale];
	double		shifted = rint(number * power);

	/* NaN and infinities are not below the limit */
	if (!(fabs(shifted) < DOUBLE_DIGITS_LIMIT) || shifted / power != number)
		return false;
	*digits = (int64) shifted;
	return true;
}

/* unscale_decimal: the same of a Decimal128. */
static bool
unscale_decimal(const MongoDecimalParts *parts, int scale, int64 *digits)
{
	int			shift = parts->exponent + scale;

	if (parts->kind != MONGO_DECIMAL_FINITE || shift < 0 || shift > MAX_INT64_POWER ||
		parts->coefficient > PG_INT64_MAX ||
		pg_mul_s64_overflow((int64) parts->coefficient, int64_powers[shift], digits))
		return false;
	if (parts->negative)
		*digits = -*digits;
	return true;
}

/*
 * read_scaled_numeric: numeric(p,s) from a value that needs no rounding, without
 * any arithmetic of numerics; false for all others.
 */
static bool
read_scaled_numeric(const NumericReader *numeric, const bson_iter_t *iter, Datum *value)
{
	MongoDecimalParts parts;
	int64		digits;

	if (numeric->unscaled_limit == 0 || numeric->scale > MAX_INT64_POWER)
		return false;
	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_INT32:
		case BSON_TYPE_INT64:
			if (pg_mul_s64_overflow(bson_iter_as_int64(iter), int64_powers[numeric->scale],
									&digits))
				return false;
			break;
		case BSON_TYPE_DOUBLE:
			if (!unscale_double(bson_iter_double(iter), numeric->scale, &digits))
				return false;
			break;
		default:
			unpack_decimal(iter, &parts);
			if (!unscale_decimal(&parts, numeric->scale, &digits))
				return false;
			break;
	}
	if (digits >= numeric->unscaled_limit || digits <= -numeric->unscaled_limit)
		return false;
	*value = NumericGetDatum(int64_div_fast_to_numeric(digits, numeric->scale));
	return true;
}

/* numeric_of_double: with as many decimals as 15 digits show, zeros not counted. */
static Datum
numeric_of_double(double number)
{
	int64		digits;

	for (int scale = 0; scale <= MAX_DOUBLE_SCALE; scale++)
	{
		if (unscale_double(number, scale, &digits))
			return NumericGetDatum(int64_div_fast_to_numeric(digits, scale));
	}
	return DirectFunctionCall1(float8_numeric, Float8GetDatum(number));
}

bool
mongo_read_numeric(MONGO_READ_ARGS)
{
	if (reader->extra != NULL && read_scaled_numeric(reader->extra, iter, value))
		return true;
	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_INT32:
			*value = NumericGetDatum(int64_to_numeric(bson_iter_int32(iter)));
			break;
		case BSON_TYPE_INT64:
			*value = NumericGetDatum(int64_to_numeric(bson_iter_int64(iter)));
			break;
		case BSON_TYPE_DOUBLE:
			*value = numeric_of_double(bson_iter_double(iter));
			break;
		default:
			{
				MongoDecimalParts parts;

				unpack_decimal(iter, &parts);
				*value = NumericGetDatum(mongo_decimal128_to_numeric(&parts));
				break;
			}
	}

	if (reader->extra != NULL && !apply_numeric_typmod(reader, value))
		return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
	return true;
}
