/*-------------------------------------------------------------------------
 *
 * write_doubt.c
 *		What writes may have done that no MongoDB transaction holds together.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "write_doubt.h"

void
mongo_write_doubt_add(MongoWriteDoubt *doubt, MongoWriteEnd end, int64 documents)
{
	if (end == MONGO_WRITE_ANSWERED)
		return;
	doubt->commands++;
	doubt->documents = documents < 0 || doubt->documents < 0 ? -1 :
		doubt->documents + documents;
	if (end == MONGO_WRITE_UNKNOWN)
		doubt->running = true;
}

char *
mongo_write_doubt_text(const MongoWriteDoubt *doubt)
{
	if (doubt->commands == 0)
		return NULL;
	if (doubt->documents < 0)
		return pstrdup(doubt->running ?
					   _("MongoDB may still be running a command that may have changed any number of documents") :
					   _("MongoDB has ended a command that may have changed any number of documents"));
	return psprintf(doubt->running ?
					ngettext("MongoDB may still be running a command that may have changed up to %lld document",
							 "MongoDB may still be running a command that may have changed up to %lld documents",
							 doubt->documents) :
					ngettext("MongoDB has ended a command that may have changed up to %lld document",
							 "MongoDB has ended a command that may have changed up to %lld documents",
							 doubt->documents),
					(long long) doubt->documents);
}

void
mongo_warn_of_lasting_writes(const char *server_name, int64 documents,
							 const MongoWriteDoubt *doubt)
{
	char	   *doubtful = mongo_write_doubt_text(doubt);

	if (documents == 0 && doubtful == NULL)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("changes on server \"%s\" were not rolled back", server_name),
			 documents == 0 ?
			 errdetail("%s. Without a MongoDB transaction this cannot be undone.", doubtful) :
			 doubtful == NULL ?
			 errdetail_plural("%lld document had been written in this transaction. Without a MongoDB transaction this cannot be undone.",
							  "%lld documents had been written in this transaction. Without a MongoDB transaction this cannot be undone.",
							  documents, (long long) documents) :
			 errdetail_plural("%lld document had been written in this transaction. %s. Without a MongoDB transaction this cannot be undone.",
							  "%lld documents had been written in this transaction. %s. Without a MongoDB transaction this cannot be undone.",
							  documents, (long long) documents, doubtful),
			 doubt->running ? errhint(MONGO_RUNNING_HINT) : 0));
}
