/*-------------------------------------------------------------------------
 *
 * cluster_time.c
 *		The time of MongoDB's clock at which this session reads.
 *
 * A time is bound by the setting mongo_fdw.cluster_time, or by mongo_bind_reads().  While one is,
 * scans and mongo_aggregate() send read concern "snapshot" with atClusterTime (read_time.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

/* What mongo_bind_reads() has bound; NULL: nothing. */
MongoReadTime *mongo_bound_time = NULL;

/*
 * mongo_bind_reads
 *		Has this backend's scans read at *time, which must exist until another time is bound;
 *		NULL: at that of mongo_fdw.cluster_time.  Returns what was bound before.
 *
 * The end of a transaction unbinds it, too.  While a time is
 * bound, writes to MongoDB raise 25006, and reads in a MongoDB transaction 25001.
 */
MongoReadTime *
mongo_bind_reads(MongoReadTime *time)
{
	MongoReadTime *before = mongo_bound_time;

	mongo_bound_time = time;
	return before;
}

/*
 * mongo_reads_at_time
 *		Tells whether scans read at a time, and sets *time to it unless that is NULL; 0: MongoDB
 *		chooses it.
 */
bool
mongo_reads_at_time(uint64 *time)
{
	uint64		at = mongo_bound_time != NULL ? mongo_bound_time->at : mongo_time_setting;

	if (mongo_bound_time == NULL && at == 0)
		return false;
	if (time != NULL)
		*time = at;
	return true;
}

/*
 * mongo_note_failure_at_time
 *		Records that a read has failed, with MongoDB's code of the error; 0: it was not MongoDB's.
 */
void
mongo_note_failure_at_time(int code)
{
	if (mongo_bound_time != NULL)
		mongo_bound_time->failure = code;
}

/*
 * mongo_refuse_write_at_time
 *		Raises 25006 if reads are at a time.
 */
void
mongo_refuse_write_at_time(void)
{
	if (mongo_reads_at_time(NULL))
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot write to MongoDB while mongo_fdw.cluster_time is set"),
				 errhint("Set it to '' first.")));
}

/*
 * mongo_refuse_transaction_at_time
 *		Raises 25001 for a read in a MongoDB transaction.
 */
void
mongo_refuse_transaction_at_time(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
			 errmsg("cannot read as of mongo_fdw.cluster_time in a transaction that has read or written the present"),
			 errdetail("It has a MongoDB transaction, whose reads are all as of its beginning."),
			 errhint("Set mongo_fdw.cluster_time in a transaction of its own.")));
}

/*
 * mongo_append_time
 *		Appends a readConcern of level "snapshot", with the time as its member 'name' unless that
 *		is 0.
 */
void
mongo_append_time(bson_t *command, const char *name, uint64 time)
{
	bson_t		concern;

	mongo_append_document_begin(command, "readConcern", &concern);
	mongo_append(&concern, "level", mongo_utf8("snapshot"));
	if (time != 0)
		mongo_append(&concern, name, mongo_timestamp(time));
	mongo_append_document_end(command, &concern);
}
