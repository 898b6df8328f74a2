/*-------------------------------------------------------------------------
 *
 * temporary_file.c
 *		Temporary files, and how large those may be that can be given up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "utils/guc.h"

/* Bytes in files of caches and hashed scans of the session. */
static Size all_filed = 0;

static void
forget_filed(void *arg)
{
	MongoFiledBytes *filed = arg;

	all_filed -= filed->length;
	filed->length = 0;
}

/*
 * mongo_begin_filing
 *		Begins to count bytes that are in files as long as what is in 'context'.
 */
void
mongo_begin_filing(MongoFiledBytes *filed, MemoryContext context)
{
	filed->callback.func = forget_filed;
	filed->callback.arg = filed;
	MemoryContextRegisterResetCallback(context, &filed->callback);
}

/*
 * mongo_may_file
 *		Counts so many more bytes; returns false if half of temp_file_limit would be exceeded.
 *
 * The other half is for files that the session must have.
 */
bool
mongo_may_file(MongoFiledBytes *filed, Size length)
{
	if (temp_file_limit >= 0 && (all_filed + length) / 1024 > (Size) temp_file_limit / 2)
		return false;
	filed->length += length;
	all_filed += length;
	return true;
}

/*
 * mongo_read_temporary_file
 *		Reads so many bytes of a temporary file.  Raises XX000 if there are fewer.
 */
void
mongo_read_temporary_file(BufFile *file, void *bytes, Size length)
{
	if (BufFileRead(file, bytes, length) != length)
		elog(ERROR, "could not read a temporary file");
}
