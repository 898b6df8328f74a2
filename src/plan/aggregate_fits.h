/*-------------------------------------------------------------------------
 *
 * aggregate_fits.h
 *		Do the values that a $group has accumulated fit their column?
 *
 * MongoDB's accumulators pass over what they do not take: $sum adds nothing
 * for a String.  In BSON's order every other type stands above or below those
 * that a column reads, so that the greatest and the least value of a group tell
 * of a value that does not belong there, and each is a plain accumulator.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_AGGREGATE_FITS_H
#define MONGO_FDW_AGGREGATE_FITS_H

#include "compat.h"

#include "expression.h"

typedef struct MongoAggregateFit
{
	const char *fits;			/* template: is this greatest or least value,
								 * which may be null, one that the type reads? */
	bool		has_lower;		/* do types stand below that documents hold?
								 * Then the least value is to be asked for,
								 * too */
} MongoAggregateFit;

/*
 * mongo_aggregate_fit
 *		How to see that a field of the type, which may be declared to have one BSON type,
 *		has values that it does not read; NULL when that cannot be seen.  palloc'd.
 *
 * Of numbers, the BSON type is not looked at: the greatest and the least do not tell
 * the types of those between them.
 */
extern const MongoAggregateFit *mongo_aggregate_fit(Oid typid, bson_type_t bson_type);

/*
 * mongo_fits_or_raise
 *		'result', unless the greatest or the least value does not fit 'column',
 *		which is an error then (HV004, see remote_error.h).
 *
 * 'least' is NULL unless fit->has_lower.  The values are atomic.
 */
extern bson_t *mongo_fits_or_raise(const MongoAggregateFit *fit, const Var *column,
								   const MongoField *field, const MongoValue *greatest,
								   const MongoValue *least, const MongoValue *result);

#endif							/* MONGO_FDW_AGGREGATE_FITS_H */
