/*-------------------------------------------------------------------------
 *
 * mismatch.c
 *		Values that do not fit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "mismatch.h"

bool
mongo_mismatch(MongoReadContext *context, MongoMismatch mismatch,
			   const bson_iter_t *iter, const char *remark)
{
	context->mismatch = mismatch;
	context->value = *iter;
	context->remark = remark;
	return false;
}
