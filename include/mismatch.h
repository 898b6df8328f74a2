/*-------------------------------------------------------------------------
 *
 * mismatch.h
 *		What reading a document carries along, and how a reader says that a value
 *		does not fit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_MISMATCH_H
#define MONGO_FDW_MISMATCH_H

#include "compat.h"

/* Why a BSON value does not fit a PostgreSQL type; decides the SQLSTATE. */
typedef enum MongoMismatch
{
	MONGO_MISMATCH_TYPE,		/* a BSON type the column does not read: 22P02 */
	MONGO_MISMATCH_RANGE,		/* a number out of range or inexact: 22003 */
	MONGO_MISMATCH_DATETIME,	/* a date out of range: 22008 */
	MONGO_MISMATCH_CHARACTERS,	/* U+0000 or invalid UTF-8: 22021 */
	MONGO_MISMATCH_LENGTH,		/* a string too long: 22001 */
	MONGO_MISMATCH_SYNTAX,		/* not the type's text form: 22P02 */
	MONGO_MISMATCH_SHAPE,		/* a ragged array, an array in a path: 2202E */
	MONGO_MISMATCH_DOMAIN		/* breaks a domain's constraint: 23514 */
} MongoMismatch;

/* What reading one document carries along. */
typedef struct MongoReadContext
{
	bool		canonical_json; /* Extended JSON flavour of json, jsonb, text */
	bool		defers_checks;	/* are constraints of domains left untested? */
	bool		defers_input;	/* are input functions that may raise not
								 * called? */

	/* set by what was deferred, never reset by readers */
	bool		deferred;		/* a constraint; the value is there */
	bool		unread;			/* a value: the reading was false for that
								 * alone */

	/* set by mongo_mismatch(); valid after a reading that was false */
	MongoMismatch mismatch;
	bson_iter_t value;			/* that does not fit, in the document that is
								 * read */
	const char *remark;			/* one more sentence for DETAIL, or NULL */
} MongoReadContext;

/*
 * mongo_mismatch
 *		Note that the value at 'iter' does not fit; always returns false.
 *
 * 'remark' must live until the error is raised or the next reading.
 */
extern bool mongo_mismatch(MongoReadContext *context, MongoMismatch mismatch,
						   const bson_iter_t *iter, const char *remark);

#endif							/* MONGO_FDW_MISMATCH_H */
