/*-------------------------------------------------------------------------
 *
 * encoding.h
 *		Names between the database's encoding and BSON's, which is UTF-8.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ENCODING_H
#define MONGO_FDW_ENCODING_H

#include "compat.h"

#include "mb/pg_wchar.h"

/*
 * mongo_to_utf8, mongo_from_utf8
 *		The name itself where nothing has to be changed, else a palloc'd copy.
 *		Raise 22P05 for a character that the other encoding lacks, and 22021 for
 *		bytes that are not UTF-8, which a database in SQL_ASCII may hold.
 */
static inline const char *
mongo_to_utf8(const char *name)
{
	return pg_server_to_any(name, (int) strlen(name), PG_UTF8);
}

static inline const char *
mongo_from_utf8(const char *name)
{
	return pg_any_to_server(name, (int) strlen(name), PG_UTF8);
}

#endif							/* MONGO_FDW_ENCODING_H */
