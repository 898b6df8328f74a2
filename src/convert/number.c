/*-------------------------------------------------------------------------
 *
 * number.c
 *		Reading numbers of every BSON type.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include <float.h>
#include <math.h>

#include "common/int.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"

static bool mongo_decimal128_to_float8(const MongoDecimalParts *parts,
									   double *result);
static Datum mongo_decimal128_to_numeric(const bson_decimal128_t *decimal);

/*-------------------------------------------------------------------------
 * Numbers and booleans from BSON.
 *
 * A number is read when the column's type holds the same number, whatever
 * BSON type it came in; filters are sent to MongoDB on that understanding.
 *-------------------------------------------------------------------------
 */

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

/* mongo_read_integer: any number that is integral and within the type's bounds. */
bool
mongo_read_integer(MONGO_READ_ARGS)
{
	int64		limit = reader->type->limit;
	int64		result;
	MongoDecimalParts parts;
	double		number;
	bool		fits = true;

	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_INT32:
			result = bson_iter_int32(iter);
			break;
		case BSON_TYPE_INT64:
			result = bson_iter_int64(iter);
			break;
		case BSON_TYPE_DOUBLE:
			number = bson_iter_double(iter);
			fits = !isnan(number) && FLOAT8_FITS_IN_INT64(number) && rint(number) == number;
			result = fits ? (int64) number : 0;
			break;
		default:
			unpack_decimal(iter, &parts);
			fits = mongo_decimal128_to_int64(&parts, &result);
			break;
	}
	if (!fits || result > limit || result < -limit - 1)
		return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
	*value = mongo_datum_of_integer(reader->typid, result);
	return true;
}

bool
mongo_read_int4(MONGO_READ_ARGS)
{
	if (bson_iter_type(iter) != BSON_TYPE_INT32)
		return mongo_read_integer(reader, context, iter, value);
	*value = Int32GetDatum(bson_iter_int32(iter));
	return true;
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
			number = (double) bson_iter_int64(iter);
			if (!FLOAT8_FITS_IN_INT64(number) || (int64) number != bson_iter_int64(iter))
				return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter,
									  INEXACT_REMARK);
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
				bson_decimal128_t decimal;

				bson_iter_decimal128(iter, &decimal);
				*value = mongo_decimal128_to_numeric(&decimal);
				break;
			}
	}

	if (reader->extra != NULL && !apply_numeric_typmod(reader, value))
		return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
	return true;
}

/*-------------------------------------------------------------------------
 * Decimal128 in parts, and as PostgreSQL's numbers.
 *
 * numeric's insides are private to PostgreSQL.  What is public is its text.
 *-------------------------------------------------------------------------
 */

#define EXPONENT_BIAS		6176
#define MIN_EXPONENT		(-6176)
#define MAX_EXPONENT		6111

#define LOW_HALF(value)		((uint64) (value))
#define HIGH_HALF(value)	((uint64) ((value) >> 64))

void
mongo_decimal128_unpack(const bson_decimal128_t *decimal,
						MongoDecimalParts *parts)
{
	uint64		high = decimal->high;

	parts->kind = MONGO_DECIMAL_FINITE;
	parts->negative = (high >> 63) != 0;
	parts->exponent = 0;
	parts->coefficient = 0;

	/* the combination field: 11110 is infinity, 11111 is NaN */
	if (((high >> 58) & 0x1f) == 0x1e)
		parts->kind = MONGO_DECIMAL_INFINITE;
	else if (((high >> 58) & 0x1f) == 0x1f)
		parts->kind = MONGO_DECIMAL_NAN;
	else if (((high >> 61) & 0x3) == 0x3)
	{
		/* a coefficient of 114 bits, always above 10^34: not canonical, zero */
		parts->exponent = (int) ((high >> 47) & 0x3fff) - EXPONENT_BIAS;
	}
	else
	{
		parts->exponent = (int) ((high >> 49) & 0x3fff) - EXPONENT_BIAS;
		parts->coefficient = ((uint128) (high & UINT64CONST(0x1ffffffffffff)) << 64) |
			decimal->low;
		/* 10^34 and more are not canonical either */
		if (parts->coefficient >= (uint128) int64_powers[17] * int64_powers[17])
			parts->coefficient = 0;
	}
}

/* pack: the caller sees to coefficient and exponent being in range. */
static void
pack(const MongoDecimalParts *parts, bson_decimal128_t *decimal)
{
	decimal->low = 0;
	if (parts->kind == MONGO_DECIMAL_NAN)
		decimal->high = UINT64CONST(0x7c00000000000000);
	else if (parts->kind == MONGO_DECIMAL_INFINITE)
		decimal->high = UINT64CONST(0x7800000000000000);
	else
	{
		decimal->low = LOW_HALF(parts->coefficient);
		decimal->high = HIGH_HALF(parts->coefficient) |
			((uint64) (parts->exponent + EXPONENT_BIAS) << 49);
	}
	if (parts->negative)
		decimal->high |= UINT64CONST(1) << 63;
}

void
mongo_decimal128_to_text(const bson_decimal128_t *decimal, char *text)
{
	MongoDecimalParts parts;
	bson_decimal128_t canonical = *decimal;

	/* libbson takes a coefficient of 35 digits for one */
	mongo_decimal128_unpack(decimal, &parts);
	if (parts.coefficient == 0)
		pack(&parts, &canonical);
	bson_decimal128_to_string(&canonical, text);
}

/*
 * mongo_decimal128_to_numeric
 *		The same number, scale included (1.10 stays 1.10).
 */
static Datum
mongo_decimal128_to_numeric(const bson_decimal128_t *decimal)
{
	MongoDecimalParts parts;
	char		text[BSON_DECIMAL128_STRING];

	mongo_decimal128_unpack(decimal, &parts);
	/* most are decimals, and of few enough digits */
	if (parts.kind == MONGO_DECIMAL_FINITE && parts.exponent <= 0 &&
		parts.coefficient <= PG_INT64_MAX)
		return NumericGetDatum(int64_div_fast_to_numeric(parts.negative ? -(int64) parts.coefficient :
														 (int64) parts.coefficient,
														 -parts.exponent));
	mongo_decimal128_to_text(decimal, text);
	return DirectFunctionCall3(numeric_in, CStringGetDatum(text),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}

bool
mongo_decimal128_to_int64(const MongoDecimalParts *parts, int64 *result)
{
	uint128		magnitude = parts->coefficient;
	uint128		limit = (uint128) PG_INT64_MAX + (parts->negative ? 1 : 0);

	if (parts->kind != MONGO_DECIMAL_FINITE)
		return false;

	if (magnitude != 0)
	{
		int			exponent = parts->exponent;

		for (; exponent < 0; exponent++)
		{
			if (magnitude % 10 != 0)
				return false;
			magnitude /= 10;
		}
		for (; exponent > 0 && magnitude <= limit; exponent--)
			magnitude *= 10;
		if (magnitude > limit)
			return false;
	}

	*result = (int64) (parts->negative ? -LOW_HALF(magnitude) : LOW_HALF(magnitude));
	return true;
}

/*
 * mongo_decimal128_to_float8
 *		True when a double holds exactly this number (or NaN, infinity).
 *
 * coefficient * 10^exponent is coefficient * 5^exponent * 2^exponent; a double
 * holds it when what is left of coefficient * 5^exponent without its factors
 * of two has at most 53 bits, and the power of two is in range.
 */
static bool
mongo_decimal128_to_float8(const MongoDecimalParts *parts, double *result)
{
	uint128		odd = parts->coefficient;
	int			twos = parts->exponent;
	double		magnitude = 0;

	if (parts->kind == MONGO_DECIMAL_NAN)
		magnitude = get_float8_nan();
	else if (parts->kind == MONGO_DECIMAL_INFINITE)
		magnitude = get_float8_infinity();
	else if (odd != 0)
	{
		for (int fives = parts->exponent; fives < 0; fives++)
		{
			if (odd % 5 != 0)
				return false;
			odd /= 5;
		}
		for (; odd % 2 == 0; odd /= 2)
			twos++;
		for (int fives = parts->exponent; fives > 0 && HIGH_HALF(odd) == 0; fives--)
		{
			odd *= 5;
			/* 2^53 * 5 still fits into 64 bits; anything above is too long */
			if (odd >> 56 != 0)
				return false;
		}
		if (odd >> DBL_MANT_DIG != 0)
			return false;

		magnitude = ldexp((double) LOW_HALF(odd), twos);
		/* a denormal that lost bits, or an overflow: not the same number */
		if (isinf(magnitude) ||
			ldexp(magnitude, -twos) != (double) LOW_HALF(odd))
			return false;
	}

	*result = parts->negative && parts->kind != MONGO_DECIMAL_NAN ? -magnitude : magnitude;
	return true;
}

/*
 * parts_of_text
 *		The coefficient and exponent of what numeric_out() gives; false when they are
 *		out of range, or there are more than 34 digits but for zeros at the end.
 */
static bool
parts_of_text(const char *text, MongoDecimalParts *parts)
{
	bool		is_fraction = false;
	int			length = 0;		/* of the coefficient */

	for (; *text != '\0'; text++)
	{
		if (*text == '.')
			is_fraction = true;
		else if (length < MONGO_DECIMAL128_MAX_DIGITS)
		{
			parts->coefficient = parts->coefficient * 10 + (*text - '0');
			parts->exponent -= is_fraction;
			length += parts->coefficient != 0;
		}
		else if (*text == '0')
			parts->exponent += !is_fraction;
		else
			return false;
	}
	for (; parts->exponent < MIN_EXPONENT; parts->exponent++)
	{
		if (parts->coefficient % 10 != 0)
			return false;
		parts->coefficient /= 10;
	}
	return parts->exponent <= MAX_EXPONENT;
}

/*
 * By way of its text, which is faster than by the digits of its binary format.
 * libbson's own bson_decimal128_from_string() rounds where zeros are in front.
 */
bool
mongo_numeric_to_decimal128(Numeric value, bson_decimal128_t *decimal)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out,
														   NumericGetDatum(value)));
	MongoDecimalParts parts = {.negative = *text == '-'};
	bool		fits = true;

	if (numeric_is_nan(value))
		parts.kind = MONGO_DECIMAL_NAN;
	else if (numeric_is_inf(value))
		parts.kind = MONGO_DECIMAL_INFINITE;
	else
		fits = parts_of_text(text + (parts.negative ? 1 : 0), &parts);
	pfree(text);
	if (fits)
		pack(&parts, decimal);
	return fits;
}

bool
mongo_numeric_typmod(int32 typmod, int *precision, int *scale)
{
	/* the layout of numerictypmodin() */
	if (typmod < (int32) VARHDRSZ)
		return false;
	*precision = ((typmod - VARHDRSZ) >> 16) & 0xffff;
	*scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
	return true;
}
