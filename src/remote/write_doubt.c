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
mongo_write_doubt_text(const MongoWriteDoubt *doubt, bool more)
{
	const char *changed;

	if (doubt->commands == 0)
		return NULL;
	if (doubt->documents < 0)
		changed = more ?
			"A command that was broken off may have changed any number of other documents." :
			"A command that was broken off may have changed any number of documents.";
	else
		changed = psprintf(more ?
						   ngettext("A command that was broken off may have changed up to %lld more document.",
									"A command that was broken off may have changed up to %lld more documents.",
									doubt->documents) :
						   ngettext("A command that was broken off may have changed up to %lld document.",
									"A command that was broken off may have changed up to %lld documents.",
									doubt->documents),
						   (long long) doubt->documents);
	return psprintf("%s %s", changed,
					doubt->running ? "MongoDB may still be running it." :
					"MongoDB has ended it.");
}

void
mongo_warn_of_lasting_writes(const char *server_name, int64 documents,
							 const MongoWriteDoubt *doubt)
{
	char	   *doubtful = mongo_write_doubt_text(doubt, documents > 0);
	char	   *certain = psprintf(ngettext("%lld document had been written in this transaction; without a MongoDB transaction this cannot be undone.",
											"%lld documents had been written in this transaction; without a MongoDB transaction this cannot be undone.",
											documents), (long long) documents);

	if (documents == 0 && doubtful == NULL)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("changes on server \"%s\" were not rolled back", server_name),
			 doubtful == NULL ? errdetail_internal("%s", certain) :
			 documents == 0 ? errdetail("%s Without a MongoDB transaction this cannot be undone.",
										doubtful) :
			 errdetail_internal("%s\n%s", certain, doubtful),
			 doubt->running ?
			 errhint(MONGO_RUNNING_HINT) : 0));
}
