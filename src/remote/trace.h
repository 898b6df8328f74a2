/*-------------------------------------------------------------------------
 *
 * trace.h
 *		Who is asking: escapes in the options comment and appname.
 *
 * Those of postgres_fdw's application_name, and the query id: %a application_name,
 * %c session ID, %C cluster_name, %d database, %p process ID, %u user who has logged in,
 * %Q query id, %% a percent sign.  What else begins with % is left out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRACE_H
#define MONGO_FDW_TRACE_H

#include "compat.h"

/* The longest comment, and the longest name that MongoDB takes; with the NUL. */
#define MONGO_COMMENT_SIZE	1024
#define MONGO_APPNAME_SIZE	129

/*
 * mongo_trace_prepare
 *		Expand what stays as it is in a session; palloc'd, in UTF-8.
 */
extern char *mongo_trace_prepare(const char *text);

/*
 * mongo_trace_fill
 *		Expand the rest (%a, %Q, %%) of what was prepared into 'buffer', which may cut
 *		it between two characters.  The length, without the NUL.  Never raises.
 */
extern size_t mongo_trace_fill(const char *prepared, char *buffer, size_t size);

/*
 * mongo_trace_append
 *		Append the element "comment" where there is one to be sent; 'prepared' may be
 *		NULL.
 */
extern void mongo_trace_append(const char *prepared, bson_t *document);

#endif							/* MONGO_FDW_TRACE_H */
