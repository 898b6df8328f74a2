/*-------------------------------------------------------------------------
 *
 * credentials.h
 *		Who one is to MongoDB: from options to libmongoc's URI.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CREDENTIALS_H
#define MONGO_FDW_CREDENTIALS_H

#include "options.h"

/*
 * mongo_credentials_read
 *		A copy of 'options' that says who one is as libmongoc takes it: in UTF-8, and
 *		with the password in place of its file; appname is prepared (trace.h).
 *
 * In the current memory context.  Raises 22P05 for a character that UTF-8 lacks, what
 * PostgreSQL raises for a file that cannot be read, and 22023 for one that holds no
 * password, which is never shown.
 */
extern MongoConnectionOptions *mongo_credentials_read(const MongoConnectionOptions *options);

/*
 * mongo_credentials_set
 *		Give 'uri' user, password, mechanism, its properties and where the user is
 *		defined; what is missing or too much, as a sentence, or NULL.
 *
 * What options say wins over what the URI says.  Without a user and a mechanism
 * there is no authentication.  The sentence shows no value.
 */
extern const char *mongo_credentials_set(mongoc_uri_t *uri,
										 const MongoConnectionOptions *options);

#endif							/* MONGO_FDW_CREDENTIALS_H */
