/*-------------------------------------------------------------------------
 *
 * fits.h
 *		"This field can be read by its column", in find's language.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FITS_H
#define MONGO_FDW_FITS_H

#include "compat.h"

/*
 * mongo_append_fits_guards
 *		Append to 'conditions', from 'index' on, that the field at 'path' fits a
 *		column of this type, which may be declared to have one BSON type
 *		(declared_type.h); returns the next index, or -1 when find's language cannot
 *		say that of the type.
 *
 * NULL fits if 'nullable'.  Without it, MongoDB takes a range into the bounds
 * of an index scan, and has no second plan to try.  Of integers it takes an $expr,
 * so -1 without 'use_expressions'.
 */
extern int	mongo_append_fits_guards(bson_t *conditions, int index,
									 const char *path, Oid typid, int32 typmod,
									 bson_type_t bson_type, bool nullable,
									 bool use_expressions);

/*
 * mongo_append_array_guards
 *		Likewise, that the path goes through no array and leads to none.
 */
extern int	mongo_append_array_guards(bson_t *conditions, int index,
									  const char *path);

#endif							/* MONGO_FDW_FITS_H */
