/*-------------------------------------------------------------------------
 *
 * digits.h
 *		How many digits a number can have: is Decimal128's arithmetic exact?
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DIGITS_H
#define MONGO_FDW_DIGITS_H

#include "compat.h"

#include "nodes/primnodes.h"

/* Columns of more digits are not rounded to their scale by MongoDB. */
#define MONGO_MAX_PRECISION	32

/* An upper bound, of finite values. */
typedef struct MongoDigits
{
	bool		known;
	int			integral;		/* digits before the decimal point */
	int			scale;			/* and after it */
} MongoDigits;

/*
 * mongo_expression_digits
 *		Of the value of an expression of type int2, int4, int8 or numeric.
 *
 * Known where constants, the types of columns and exact functions of them tell.
 */
extern MongoDigits mongo_expression_digits(Node *node);

/*
 * mongo_digits_fit
 *		Does a Decimal128 hold every such number?
 */
extern bool mongo_digits_fit(MongoDigits digits);

#endif							/* MONGO_FDW_DIGITS_H */
