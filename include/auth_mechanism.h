/*-------------------------------------------------------------------------
 *
 * auth_mechanism.h
 *		How one may log in to MongoDB: the mechanisms, and their properties.
 *
 * https://www.mongodb.com/docs/manual/reference/connection-string-options/
 * and the Authentication specification of MongoDB's drivers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_AUTH_MECHANISM_H
#define MONGO_FDW_AUTH_MECHANISM_H

#include "compat.h"

/* What a mechanism makes of a user name or a password. */
typedef enum MongoCredentialUse
{
	MONGO_CREDENTIAL_UNUSED,	/* giving one is a mistake */
	MONGO_CREDENTIAL_OPTIONAL,
	MONGO_CREDENTIAL_REQUIRED
} MongoCredentialUse;

typedef struct MongoAuthMechanism
{
	const char *name;
	MongoCredentialUse username;
	MongoCredentialUse password;
	bool		is_external;	/* users are not MongoDB's own: they are
								 * looked up in $external */
	bool		is_ambient;		/* logs in as what the database server is */
} MongoAuthMechanism;

/* The names, as option tables want them: with NULL for an end. */
extern const char *const mongo_auth_mechanism_names[];

/*
 * mongo_auth_mechanism_named
 *		That of a name in any case, or NULL.
 */
extern const MongoAuthMechanism *mongo_auth_mechanism_named(const char *name);

/*
 * mongo_auth_properties
 *		Add "NAME:value,NAME:value" to 'properties', which the caller owns; else false,
 *		with *problem a palloc'd sentence that shows no value.
 *
 * 'secrets' says whether a property may be one that is secret.
 */
extern bool mongo_auth_properties(const char *text, bool secrets,
								  bson_t *properties, const char **problem);

/*
 * mongo_auth_property_is_open
 *		Is it the name, in any case, of a property that is no secret?
 */
extern bool mongo_auth_property_is_open(const char *name);

#endif							/* MONGO_FDW_AUTH_MECHANISM_H */
