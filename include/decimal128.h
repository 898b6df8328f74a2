/*-------------------------------------------------------------------------
 *
 * decimal128.h
 *		Decimal128 in parts, and as PostgreSQL's numbers.
 *
 * IEEE 754-2008 decimal128 in its binary integer encoding, as BSON holds it:
 * https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DECIMAL128_H
#define MONGO_FDW_DECIMAL128_H

#include "compat.h"

#include "utils/numeric.h"

#ifndef HAVE_INT128
#error "mongo_fdw needs a compiler with 128-bit integers"
#endif

#define MONGO_DECIMAL128_MAX_DIGITS		34
#define MONGO_DECIMAL128_MIN_EXPONENT	(-6176)
#define MONGO_DECIMAL128_MAX_EXPONENT	6111

typedef enum MongoDecimalKind
{
	MONGO_DECIMAL_FINITE,
	MONGO_DECIMAL_INFINITE,
	MONGO_DECIMAL_NAN
} MongoDecimalKind;

/* (-1)^negative * coefficient * 10^exponent */
typedef struct MongoDecimalParts
{
	MongoDecimalKind kind;
	bool		negative;
	int			exponent;
	uint128		coefficient;	/* less than 10^34; 0 for greater ones, which
								 * are not canonical */
} MongoDecimalParts;

/*
 * mongo_decimal128_unpack
 *		Take a Decimal128 apart; every bit pattern has a meaning.
 */
extern void mongo_decimal128_unpack(const bson_decimal128_t *decimal,
									MongoDecimalParts *parts);

/*
 * mongo_decimal128_to_text
 *		Its text in Extended JSON, into BSON_DECIMAL128_STRING bytes.
 */
extern void mongo_decimal128_to_text(const bson_decimal128_t *decimal, char *text);

/*
 * mongo_decimal128_to_numeric
 *		The same number, scale included (1.10 stays 1.10), palloc'd.
 */
extern Numeric mongo_decimal128_to_numeric(const MongoDecimalParts *parts);

/*
 * mongo_decimal128_to_int64
 *		True when the number is integral and fits.
 */
extern bool mongo_decimal128_to_int64(const MongoDecimalParts *parts,
									  int64 *result);

/*
 * mongo_decimal128_to_float8
 *		True when a double holds exactly this number (or NaN, infinity).
 */
extern bool mongo_decimal128_to_float8(const MongoDecimalParts *parts,
									   double *result);

/*
 * mongo_numeric_to_decimal128
 *		The same number, with as much of its scale as there is room for; false
 *		when it has more than 34 digits or is out of the exponents' range.
 *
 * NaN and infinities convert.
 */
extern bool mongo_numeric_to_decimal128(Numeric value, bson_decimal128_t *decimal);

/*
 * mongo_numeric_typmod
 *		The precision and the scale of numeric(precision, scale); false for a
 *		numeric without them.
 */
extern bool mongo_numeric_typmod(int32 typmod, int *precision, int *scale);

#endif							/* MONGO_FDW_DECIMAL128_H */
