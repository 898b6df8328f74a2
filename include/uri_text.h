/*-------------------------------------------------------------------------
 *
 * uri_text.h
 *		The text of the option uri: parsed as the driver does, and the
 *		secrets that it must not hold.
 *
 * A server's options can be read by every user of the database, so a URI that
 * holds a secret is refused, by DDL and again when it is used: an older version
 * may have let it in, and another version of the driver may read it otherwise.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_URI_TEXT_H
#define MONGO_FDW_URI_TEXT_H

#include "compat.h"

/*
 * mongo_uri_parse
 *		What libmongoc makes of 'text'; NULL, with *error set, if it refuses it.
 *
 * The result belongs to the current memory context and must not be destroyed.
 * Nothing is looked up on the network.  What libmongoc warns of is kept
 * (mongo_last_driver_message()) and not logged, as it quotes the text.
 */
extern const mongoc_uri_t *mongo_uri_parse(const char *text,
										   bson_error_t *error);

/* A kind of secret: what it is called, and a sentence on where it belongs. */
typedef struct MongoUriSecret
{
	const char *name;
	const char *hint;
} MongoUriSecret;

/*
 * mongo_uri_secret_in_text, mongo_uri_secret
 *		What secret does a URI hold, NULL if none?
 *
 * The first looks at the text alone: any @ that is not written as %40 may end a
 * user's name and password, and versions of libmongoc differ in which one does;
 * and options of the URI whose names speak of passwords, whether the driver
 * knows them or not.  The second asks libmongoc what it has found.
 */
extern const MongoUriSecret *mongo_uri_secret_in_text(const char *text);
extern const MongoUriSecret *mongo_uri_secret(const mongoc_uri_t *uri);

/*
 * mongo_uri_printable_error, mongo_uri_printable_warning
 *		libmongoc's message about a URI without what it quotes of the URI, in the
 *		current memory context.
 *
 * Names of options stay; in a warning, that is about a URI which holds no secret,
 * also words of letters alone, which may be a misspelt one.
 */
extern char *mongo_uri_printable_error(const bson_error_t *error);
extern char *mongo_uri_printable_warning(const char *message);

/*
 * mongo_uri_is_acknowledged
 *		Does MongoDB tell what became of a write, as the URI has it?
 */
extern bool mongo_uri_is_acknowledged(const mongoc_uri_t *uri);

#endif							/* MONGO_FDW_URI_TEXT_H */
