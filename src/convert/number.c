/*-------------------------------------------------------------------------
 *
 * number.c
 *		Converts numbers of all BSON types; Decimal128 to and from numeric.
 *
 * The conversions of Decimal128 come first, then the functions that read numbers into columns.
 * They decide which numbers fit; filters and type checks in src/translate assume the same rules.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include <float.h>
#include <math.h>

#include "common/int.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"

/* The powers of ten that fit into an int64. */
#define MAX_INT64_POWER		18

static const int64 int64_powers[MAX_INT64_POWER + 1] = {
	INT64CONST(1), INT64CONST(10), INT64CONST(100), INT64CONST(1000), INT64CONST(10000),
	INT64CONST(100000), INT64CONST(1000000), INT64CONST(10000000), INT64CONST(100000000),
	INT64CONST(1000000000), INT64CONST(10000000000), INT64CONST(100000000000),
	INT64CONST(1000000000000), INT64CONST(10000000000000), INT64CONST(100000000000000),
	INT64CONST(1000000000000000), INT64CONST(10000000000000000),
	INT64CONST(100000000000000000), INT64CONST(1000000000000000000)
};

/*-------------------------------------------------------------------------
 * Decimal128 in parts, and its conversions to PostgreSQL's types.
 *
 * The inner format of numeric is private to PostgreSQL, so it is converted as text.
 *-------------------------------------------------------------------------
 */

typedef enum DecimalKind
{
	DECIMAL_FINITE,
	DECIMAL_INFINITE,
	DECIMAL_NAN
} DecimalKind;

/* high * 2^64 + low, as compilers for 32 bits have no integer of 128 bits */
typedef struct Coefficient
{
	uint64		high;
	uint64		low;
} Coefficient;

/* (-1)^negative * coefficient * 10^exponent */
typedef struct DecimalParts
{
	DecimalKind kind;
	bool		negative;
	int			exponent;
	Coefficient coefficient;	/* less than 10^34; 0 if it is not, as such a
								 * Decimal128 is not canonical */
} DecimalParts;

#define EXPONENT_BIAS		6176
#define MIN_EXPONENT		(-6176)
#define MAX_EXPONENT		6111

static bool
is_zero(const Coefficient *value)
{
	return value->high == 0 && value->low == 0;
}

/* Sets the value to value * factor + summand, which must be less than 2^128. */
static void
multiply_add(Coefficient *value, uint32 factor, uint32 summand)
{
	uint64		lower = (value->low & PG_UINT32_MAX) * factor + summand;
	uint64		upper = (value->low >> 32) * factor + (lower >> 32);

	value->low = (upper << 32) | (lower & PG_UINT32_MAX);
	value->high = value->high * factor + (upper >> 32);
}

/* Divides the value, and returns the remainder. */
static uint32
divide(Coefficient *value, uint32 divisor)
{
	uint64		upper = ((value->high % divisor) << 32) | (value->low >> 32);
	uint64		lower = ((upper % divisor) << 32) | (value->low & PG_UINT32_MAX);

	value->high /= divisor;
	value->low = ((upper / divisor) << 32) | (lower / divisor);
	return lower % divisor;
}

/*
 * mongo_numeric_of_text
 *		Returns the numeric of a number's text.  Raises 22P02 if it is none.
 */
Datum
mongo_numeric_of_text(const char *text)
{
	return DirectFunctionCall3(numeric_in, CStringGetDatum(text),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}

/* Splits a Decimal128, of any bit pattern, into its parts. */
static void
unpack(const bson_decimal128_t *decimal, DecimalParts *parts)
{
	uint64		high = decimal->high;

	parts->kind = DECIMAL_FINITE;
	parts->negative = (high >> 63) != 0;
	parts->exponent = 0;
	parts->coefficient = (Coefficient) {0};

	/* the combination field: 11110 is infinity, 11111 is NaN */
	if (((high >> 58) & 0x1f) == 0x1e)
		parts->kind = DECIMAL_INFINITE;
	else if (((high >> 58) & 0x1f) == 0x1f)
		parts->kind = DECIMAL_NAN;
	else if (((high >> 61) & 0x3) == 0x3)
	{
		/* a coefficient of 114 bits exceeds 10^34: not canonical, so zero */
		parts->exponent = (int) ((high >> 47) & 0x3fff) - EXPONENT_BIAS;
	}
	else
	{
		parts->exponent = (int) ((high >> 49) & 0x3fff) - EXPONENT_BIAS;
		parts->coefficient = (Coefficient) {high & UINT64CONST(0x1ffffffffffff), decimal->low};
		/* 10^34 or more is not canonical either */
		if (parts->coefficient.high > UINT64CONST(0x1ed09bead87c0) ||
			(parts->coefficient.high == UINT64CONST(0x1ed09bead87c0) &&
			 parts->coefficient.low >= UINT64CONST(0x378d8e6400000000)))
			parts->coefficient = (Coefficient) {0};
	}
}

/* Builds a Decimal128 whose coefficient and exponent are in range. */
static void
pack(const DecimalParts *parts, bson_decimal128_t *decimal)
{
	decimal->low = 0;
	if (parts->kind == DECIMAL_NAN)
		decimal->high = UINT64CONST(0x7c00000000000000);
	else if (parts->kind == DECIMAL_INFINITE)
		decimal->high = UINT64CONST(0x7800000000000000);
	else
	{
		decimal->low = parts->coefficient.low;
		decimal->high = parts->coefficient.high |
			((uint64) (parts->exponent + EXPONENT_BIAS) << 49);
	}
	if (parts->negative)
		decimal->high |= UINT64CONST(1) << 63;
}

/*
 * mongo_decimal128_to_text
 *		Writes a Decimal128 as Extended JSON does to 'text', of BSON_DECIMAL128_STRING bytes.
 */
void
mongo_decimal128_to_text(const bson_decimal128_t *decimal, char *text)
{
	DecimalParts parts;
	bson_decimal128_t canonical = *decimal;

	/* libbson would print a non-canonical coefficient of 35 digits */
	unpack(decimal, &parts);
	if (is_zero(&parts.coefficient))
		pack(&parts, &canonical);
	bson_decimal128_to_string(&canonical, text);
}

/* Converts the number; returns false if it is not integral or out of range. */
static bool
decimal_to_int64(const DecimalParts *parts, int64 *result)
{
	Coefficient magnitude = parts->coefficient;
	uint64		limit = (uint64) PG_INT64_MAX + (parts->negative ? 1 : 0);
	int			exponent = parts->exponent;

	if (parts->kind != DECIMAL_FINITE)
		return false;

	for (; exponent < 0; exponent++)
	{
		if (divide(&magnitude, 10) != 0)
			return false;
	}
	for (; exponent > 0 && magnitude.high == 0 && magnitude.low <= limit; exponent--)
		multiply_add(&magnitude, 10, 0);
	if (magnitude.high != 0 || magnitude.low > limit)
		return false;
	*result = (int64) (parts->negative ? -magnitude.low : magnitude.low);
	return true;
}

/*
 * Converts a number, NaN or infinity that a double represents exactly; returns false for others.
 * coefficient * 10^exponent is coefficient * 5^exponent * 2^exponent.  A double represents it if
 * coefficient * 5^exponent, divided by all its factors of two, has at most 53 bits and the power of
 * two is in range.
 */
static bool
decimal_to_float8(const DecimalParts *parts, double *result)
{
	Coefficient odd = parts->coefficient;
	int			twos = parts->exponent;

	for (int fives = parts->exponent; fives < 0 && !is_zero(&odd); fives++)
	{
		if (divide(&odd, 5) != 0)
			return false;
	}
	for (; !is_zero(&odd) && odd.low % 2 == 0; twos++)
		divide(&odd, 2);
	for (int fives = parts->exponent; fives > 0 && !is_zero(&odd); fives--)
	{
		multiply_add(&odd, 5, 0);
		/* stop before an overflow: 2^53 * 5 has at most 56 bits */
		if (odd.high != 0 || odd.low >> 56 != 0)
			return false;
	}
	if (odd.high != 0 || odd.low >> DBL_MANT_DIG != 0)
		return false;

	*result = ldexp((double) odd.low, twos);
	/* an overflow, or a denormal that lost bits */
	if (isinf(*result) || ldexp(*result, -twos) != (double) odd.low)
		return false;
	if (parts->kind != DECIMAL_FINITE)
		*result = parts->kind == DECIMAL_NAN ? get_float8_nan() : get_float8_infinity();
	if (parts->negative && parts->kind != DECIMAL_NAN)
		*result = -*result;
	return true;
}

/*
 * Parses the unsigned text of a numeric; returns false if its exponent is out of range, or if it
 * has more than 34 digits before its trailing zeros.
 */
static bool
parts_of_text(const char *text, DecimalParts *parts)
{
	bool		is_fraction = false;
	int			length = 0;		/* of the coefficient */

	for (; *text != '\0'; text++)
	{
		if (*text == '.')
			is_fraction = true;
		else if (length < MONGO_DECIMAL128_MAX_DIGITS)
		{
			multiply_add(&parts->coefficient, 10, *text - '0');
			parts->exponent -= is_fraction;
			length += !is_zero(&parts->coefficient);
		}
		else if (*text == '0')
			parts->exponent += !is_fraction;
		else
			return false;
	}
	for (; parts->exponent < MIN_EXPONENT; parts->exponent++)
	{
		if (divide(&parts->coefficient, 10) != 0)
			return false;
	}
	return parts->exponent <= MAX_EXPONENT;
}

/*
 * mongo_numeric_to_decimal128
 *		Converts a numeric, also NaN and infinities, to the same number, with as much of its scale
 *		as fits into 34 digits.  Returns false for more significant digits, or an exponent out of
 *		range.
 *
 * Parses the text of the numeric, which is faster than taking the digits from its binary format.
 * libbson's bson_decimal128_from_string() would round a number with leading zeros.
 */
bool
mongo_numeric_to_decimal128(Numeric value, bson_decimal128_t *decimal)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(numeric_out,
														   NumericGetDatum(value)));
	DecimalParts parts = {.negative = *text == '-'};
	bool		fits = true;

	if (numeric_is_nan(value))
		parts.kind = DECIMAL_NAN;
	else if (numeric_is_inf(value))
		parts.kind = DECIMAL_INFINITE;
	else
		fits = parts_of_text(text + (parts.negative ? 1 : 0), &parts);
	pfree(text);
	if (fits)
		pack(&parts, decimal);
	return fits;
}

/*
 * mongo_numeric_typmod
 *		Sets precision and scale of a typmod; returns false if it has none.
 */
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

/*-------------------------------------------------------------------------
 * Reading numbers.
 *
 * A column reads a number of any BSON type if its type can represent the same number.
 * The filters that are sent to MongoDB rely on that.
 *-------------------------------------------------------------------------
 */

#define INEXACT_REMARK \
	"A double cannot hold this number exactly; the column could be numeric."

/*
 * A decimal below this limit has at most 15 digits (DBL_DIG), so the Double nearest to it
 * reads as this decimal.  Up to 6 decimal places are tried to find it.
 */
#define DOUBLE_DIGITS_LIMIT	1e15
#define MAX_DOUBLE_SCALE	6

/*
 * mongo_read_bool
 *		Reads a Boolean.
 */
bool
mongo_read_bool(MONGO_READ_ARGS)
{
	*value = BoolGetDatum(bson_iter_bool(iter));
	return true;
}

/* Splits the Decimal128 at 'iter' into its parts. */
static void
unpack_value(const bson_iter_t *iter, DecimalParts *parts)
{
	bson_decimal128_t decimal;

	bson_iter_decimal128(iter, &decimal);
	unpack(&decimal, parts);
}

/*
 * mongo_integer_of_value
 *		Sets *integer to the number at 'iter', of any numeric BSON type; returns false unless it is
 *		an int64.
 */
bool
mongo_integer_of_value(const bson_iter_t *iter, int64 *integer)
{
	DecimalParts parts;
	double		number;

	switch (bson_iter_type_unsafe(iter))
	{
		case BSON_TYPE_INT32:
		case BSON_TYPE_INT64:
			*integer = bson_iter_as_int64(iter);
			return true;
		case BSON_TYPE_DOUBLE:
			number = bson_iter_double(iter);
			if (isnan(number) || !FLOAT8_FITS_IN_INT64(number) || rint(number) != number)
				return false;
			*integer = (int64) number;
			return true;
		default:
			unpack_value(iter, &parts);
			return decimal_to_int64(&parts, integer);
	}
}

/*
 * mongo_read_integer
 *		Reads a number that is integral and within the type's range.
 */
bool
mongo_read_integer(MONGO_READ_ARGS)
{
	int64		limit = reader->type->limit;
	int64		result;
	bool		fits = true;

	if (bson_iter_type_unsafe(iter) == BSON_TYPE_INT32)
		result = bson_iter_int32(iter);
	else
		fits = mongo_integer_of_value(iter, &result);
	if (!fits || result > limit || result < -limit - 1)
		return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
	*value = mongo_datum_of_integer(reader->typid, result);
	return true;
}

/*
 * mongo_read_float8
 *		Reads a number that a double represents exactly.  'reader' may be NULL.
 */
bool
mongo_read_float8(MONGO_READ_ARGS)
{
	DecimalParts parts;
	double		number;

	switch (bson_iter_type_unsafe(iter))
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
			unpack_value(iter, &parts);
			if (!decimal_to_float8(&parts, &number))
				return mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter,
									  INEXACT_REMARK);
			break;
	}
	*value = Float8GetDatum(number);
	return true;
}

/*
 * mongo_read_float4
 *		Reads every number as the nearest real, which is lossy.  Therefore MongoDB compares no
 *		values of real columns.
 */
bool
mongo_read_float4(MONGO_READ_ARGS)
{
	float		number;
	bool		infinite = false;

	switch (bson_iter_type_unsafe(iter))
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

				/* rounds once; by way of a double it would round twice */
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

/*
 * Finds digits such that the number, with 15 significant digits, is digits * 10^-scale; returns
 * false if there are none.  The digits and the power of ten are exact doubles, so their quotient is
 * the double nearest to that decimal.  No other decimal with at most 15 digits has the same nearest
 * double.
 */
static bool
unscale_double(double number, int scale, int64 *digits)
{
	double		power = (double) int64_powers[scale];
	double		shifted = rint(number * power);

	/* the comparison is also false for NaN and infinities */
	if (!(fabs(shifted) < DOUBLE_DIGITS_LIMIT) || shifted / power != number)
		return false;
	*digits = (int64) shifted;
	return true;
}

/*
 * Splits a number into digits * 10^-scale; a Double with the fewest decimal places, at least
 * 'least', that give its 15 significant digits.  Returns false if the digits do not fit an int64,
 * or if numeric's own functions have to find them.
 */
static bool
unscale(const bson_iter_t *iter, int least, int64 *digits, int *scale)
{
	DecimalParts parts;

	*scale = 0;
	switch (bson_iter_type_unsafe(iter))
	{
		case BSON_TYPE_INT32:
		case BSON_TYPE_INT64:
			*digits = bson_iter_as_int64(iter);
			return true;
		case BSON_TYPE_DOUBLE:
			for (*scale = least; *scale <= Max(least, MAX_DOUBLE_SCALE); (*scale)++)
			{
				if (unscale_double(bson_iter_double(iter), *scale, digits))
					return true;
			}
			return false;
		default:
			unpack_value(iter, &parts);
			*scale = -parts.exponent;
			*digits = (int64) (parts.negative ? -parts.coefficient.low : parts.coefficient.low);
			return parts.kind == DECIMAL_FINITE && *scale >= 0 &&
				parts.coefficient.high == 0 && parts.coefficient.low <= PG_INT64_MAX;
	}
}

/* Rescales to numeric(precision, scale); returns false if that rounds or overflows. */
static bool
fit_digits(int64 *digits, int from, int precision, int scale)
{
	int64		rescaled;

	if (scale < from || scale - from > MAX_INT64_POWER || precision > MAX_INT64_POWER ||
		pg_mul_s64_overflow(*digits, int64_powers[scale - from], &rescaled) ||
		rescaled >= int64_powers[precision] || rescaled <= -int64_powers[precision])
		return false;
	*digits = rescaled;
	return true;
}

/*
 * mongo_read_numeric
 *		Reads a number, rounded to numeric(precision, scale).  A Double counts with its 15
 *		significant digits.  Avoids numeric's arithmetic for most numbers.
 */
bool
mongo_read_numeric(MONGO_READ_ARGS)
{
	int			precision;
	int			scale;
	int			digits_scale;
	int64		digits;
	bool		limited = mongo_numeric_typmod(reader->typmod, &precision, &scale);
	bson_decimal128_t decimal;
	char		text[BSON_DECIMAL128_STRING];
	FmgrInfo	round;
	int			least = limited ? Max(Min(scale, MAX_INT64_POWER), 0) : 0;

	if (unscale(iter, least, &digits, &digits_scale))
	{
		bool		fits = limited && fit_digits(&digits, digits_scale, precision, scale);

		*value = NumericGetDatum(int64_div_fast_to_numeric(digits, fits ? scale : digits_scale));
		if (fits || !limited)
			return true;
	}
	else if (BSON_ITER_HOLDS_DOUBLE(iter))
		*value = DirectFunctionCall1(float8_numeric, Float8GetDatum(bson_iter_double(iter)));
	else
	{
		bson_iter_decimal128(iter, &decimal);
		mongo_decimal128_to_text(&decimal, text);
		*value = mongo_numeric_of_text(text);
	}
	if (!limited)
		return true;
	fmgr_info(F_NUMERIC_NUMERIC_INT4, &round);
	return mongo_call_softly(context, &round, *value, Int32GetDatum(reader->typmod), (Datum) 0, value) ||
		mongo_mismatch(context, MONGO_MISMATCH_RANGE, iter, NULL);
}
