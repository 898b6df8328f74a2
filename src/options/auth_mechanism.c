/*-------------------------------------------------------------------------
 *
 * auth_mechanism.c
 *		How one may log in to MongoDB: the mechanisms, and their properties.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "auth_mechanism.h"

#include "lib/stringinfo.h"

static const MongoAuthMechanism mechanisms[] =
{
	/* user name, password, is_external, is_ambient */
	{"SCRAM-SHA-1", MONGO_CREDENTIAL_REQUIRED, MONGO_CREDENTIAL_REQUIRED, false, false},
	{"SCRAM-SHA-256", MONGO_CREDENTIAL_REQUIRED, MONGO_CREDENTIAL_REQUIRED, false, false},
	/* the certificate may be the foreign server's own */
	{"MONGODB-X509", MONGO_CREDENTIAL_OPTIONAL, MONGO_CREDENTIAL_UNUSED, true, true},
	{"PLAIN", MONGO_CREDENTIAL_REQUIRED, MONGO_CREDENTIAL_REQUIRED, true, false},
	{"GSSAPI", MONGO_CREDENTIAL_REQUIRED, MONGO_CREDENTIAL_OPTIONAL, true, true},
	{"MONGODB-AWS", MONGO_CREDENTIAL_OPTIONAL, MONGO_CREDENTIAL_OPTIONAL, true, true},
};

/* In the same order. */
const char *const mongo_auth_mechanism_names[] = {
	"SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509", "PLAIN", "GSSAPI", "MONGODB-AWS", NULL
};

const MongoAuthMechanism *
mongo_auth_mechanism_named(const char *name)
{
	for (size_t i = 0; i < lengthof(mechanisms); i++)
	{
		if (pg_strcasecmp(mechanisms[i].name, name) == 0)
			return &mechanisms[i];
	}
	return NULL;
}

typedef struct Property
{
	const char *name;
	bool		is_secret;
	bool		is_boolean;
} Property;

static const Property known_properties[] =
{
	{.name = "SERVICE_NAME"},
	{.name = "SERVICE_REALM"},
	{.name = "SERVICE_HOST"},
	{.name = "CANONICALIZE_HOST_NAME", .is_boolean = true},
	{.name = "AWS_SESSION_TOKEN", .is_secret = true},
};

static const Property *
find_property(const char *name)
{
	for (size_t i = 0; i < lengthof(known_properties); i++)
	{
		if (pg_strcasecmp(known_properties[i].name, name) == 0)
			return &known_properties[i];
	}
	return NULL;
}

bool
mongo_auth_property_is_open(const char *name)
{
	const Property *property = find_property(name);

	return property != NULL && !property->is_secret;
}

/* The names of properties that may be given, as a list in a sentence. */
static const char *
property_names(bool secrets)
{
	StringInfoData names;

	initStringInfo(&names);
	for (size_t i = 0; i < lengthof(known_properties); i++)
	{
		if (secrets || !known_properties[i].is_secret)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "",
							 known_properties[i].name);
	}
	return names.data;
}

/* add_property: what is wrong with it as a sentence, or NULL. */
static const char *
add_property(const char *name, const char *value, bool secrets, bson_t *properties)
{
	const Property *property = find_property(name);

	if (property == NULL)
		return psprintf("The names of properties are %s.", property_names(secrets));
	if (property->is_secret && !secrets)
		return psprintf("The property %s is a secret, which belongs in a user mapping.",
						property->name);
	if (*value == '\0')
		return psprintf("The property %s is empty.", property->name);
	if (property->is_boolean && pg_strcasecmp(value, "true") != 0 &&
		pg_strcasecmp(value, "false") != 0)
		return psprintf("The property %s must be true or false.", property->name);
	if (!bson_utf8_validate(value, strlen(value), false))
		return psprintf("The property %s is not valid UTF-8.", property->name);
	BSON_APPEND_UTF8(properties, property->name, value);
	return NULL;
}

bool
mongo_auth_properties(const char *text, bool secrets, bson_t *properties,
					  const char **problem)
{
	char	   *pair = pstrdup(text);

	*problem = NULL;
	while (pair != NULL && *problem == NULL)
	{
		char	   *next = strchr(pair, ',');
		char	   *value;

		if (next != NULL)
			*next++ = '\0';
		value = strchr(pair, ':');
		if (value == NULL)
			*problem = "A property is a name and a value with a colon between them.";
		else
		{
			*value++ = '\0';
			*problem = add_property(pair, value, secrets, properties);
		}
		pair = next;
	}
	return *problem == NULL;
}
