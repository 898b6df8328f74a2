/*-------------------------------------------------------------------------
 *
 * login.c
 *		Authentication: URIs, mechanisms and user mappings; also options that are lists.
 *
 * Every user of the database can read a server's options.  So a URI that contains a secret, or
 * specifies how to authenticate, or a proxy, is refused by DDL, and again before use: an older
 * version may have accepted it, and another version of the driver may parse it differently.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options_internal.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/pg_user_mapping.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/syscache.h"

/*-------------------------------------------------------------------------
 * Option uri, which the driver parses, and the secrets that it must not contain.
 *-------------------------------------------------------------------------
 */

static void
destroy_uri(void *uri)
{
	mongoc_uri_destroy(uri);
}

/*
 * mongo_uri_parse
 *		Parses option uri with libmongoc.  Returns NULL, with *error set, if libmongoc rejects it.
 *
 * The result belongs to the current memory context and must not be destroyed.  Nothing is
 * resolved over the network.  libmongoc's warnings are stored in mongo_driver_message and not
 * logged, as they quote the text.  A text of more than MONGO_LONGEST_OPTION bytes is rejected, as
 * libmongoc takes the square of the length, and cannot be interrupted.
 */
const mongoc_uri_t *
mongo_uri_parse(const char *text, bson_error_t *error)
{
	MemoryContextCallback *callback = palloc0(sizeof(MemoryContextCallback));
	mongoc_uri_t *uri;

	memset(error, 0, sizeof(*error));
	mongo_driver_message[0] = '\0';
	if (strlen(text) > MONGO_LONGEST_OPTION)
	{
		strlcpy(error->message, "It is too long", sizeof(error->message));
		return NULL;
	}
	mongo_install_log_handler();
	mongo_driver_log_is_held = true;
	uri = mongoc_uri_new_with_error(text, error);
	mongo_driver_log_is_held = false;

	callback->func = destroy_uri;
	callback->arg = uri;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return uri;
}

static const char readable[] = "Options of a server can be read by every user of the database.";

static const MongoUriRefusal credentials = {
	"credentials", readable,
	"Use CREATE USER MAPPING with the options username and password. An @ that ends neither is written as %40."
};
static const MongoUriRefusal password = {
	"a password", readable,
	"Use CREATE USER MAPPING with the option pem_pwd."
};
static const MongoUriRefusal token = {
	"a token", readable,
	"The driver takes it from the environment of the database server."
};
static const MongoUriRefusal mechanism = {
	"authMechanism", "It belongs to the user, who is in a user mapping.",
	"Use the options auth_mechanism and auth_properties."
};
static const MongoUriRefusal proxy = {
	"a proxy", "mongo_fdw connects to MongoDB itself, without a SOCKS5 proxy.",
	"Forward a local port to MongoDB, and use that as address and port."
};

/*
 * Parts of the names of options that are refused: those that contain secrets, which are
 * libmongoc's own options, those of other drivers (proxyPassword) and names that a user may
 * guess; and a proxy, which libmongoc would ignore with a warning, and connect directly.
 */
static const struct
{
	const char *part;
	const MongoUriRefusal *refusal;
}			refused_names[] =
{
	{"passw", &password},
	{"pwd", &password},
	{"passphrase", &password},
	{"secret", &password},
	{"username", &credentials},
	{"credential", &credentials},
	{"token", &token},
	{"authmechanism", &mechanism},
	{"proxy", &proxy},
};

/* Returns why an option of this name is refused, or NULL. */
static const MongoUriRefusal *
refused_name(const char *name)
{
	for (size_t i = 0; i < lengthof(refused_names); i++)
	{
		if (strstr(name, refused_names[i].part) != NULL)
			return refused_names[i].refusal;
	}
	return NULL;
}

/*
 * mongo_uri_refusal_of_text
 *		Returns why the text of a URI is refused; NULL if it is not.  The result is static.
 *
 * Any @ that is not written as %40 may end a user name and password, and versions of libmongoc
 * differ in which one does.  Refuses also options of the URI whose names suggest secrets, even if
 * the driver does not support them.
 */
const MongoUriRefusal *
mongo_uri_refusal_of_text(const char *text)
{
	char	   *folded = asc_tolower(text, strlen(text));
	const char *name = folded;

	if (strchr(text, '@') != NULL)
		return &credentials;
	/* a property of an authentication mechanism, at any place */
	if (strstr(folded, "session_token") != NULL)
		return &token;

	/* a name precedes "="; drivers differ in where the query starts */
	for (char *c = folded; *c != '\0'; c++)
	{
		if (*c == '?' || *c == '&')
			name = c + 1;
		else if (*c == '=')
		{
			const MongoUriRefusal *refusal;

			*c = '\0';
			refusal = refused_name(name);
			if (refusal != NULL)
				return refusal;
			name = c + 1;
		}
	}
	return NULL;
}

/*
 * mongo_uri_refusal
 *		Returns why a URI is refused by what libmongoc has parsed; NULL if it is not.  The result
 *		is static.
 */
const MongoUriRefusal *
mongo_uri_refusal(const mongoc_uri_t *uri)
{
	bson_t		properties;

	if (mongoc_uri_get_username(uri) != NULL || mongoc_uri_get_password(uri) != NULL)
		return &credentials;
	if (mongoc_uri_has_option(uri, MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD))
		return &password;
	if (mongoc_uri_get_auth_mechanism(uri) != NULL ||
		mongoc_uri_get_mechanism_properties(uri, &properties))
		return &mechanism;
	return NULL;
}

/* Tells whether this is the name of an option; or in a warning, a word of letters. */
static bool
may_be_shown(const char *quoted, bool is_error)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return is_error ? mongoc_uri_option_is_int32(quoted) || mongoc_uri_option_is_bool(quoted) ||
		mongoc_uri_option_is_utf8(quoted) :
		*quoted != '\0' && strspn(quoted, letters) == strlen(quoted);
}

/*
 * mongo_uri_printable
 *		Returns libmongoc's message about a URI up to the first quoted part, and including that if
 *		it is an option's name; palloc'd.
 *
 * What follows the first quoted part may contain values of the URI.  A warning is about a URI
 * without a secret, so there the part may be any word of letters, such as a misspelled option.
 */
char *
mongo_uri_printable(const char *message, bool is_error)
{
	const char *start = strpbrk(message, "\"'[");
	const char *end = start != NULL ? strpbrk(start + 1, "\"']") : NULL;

	if (start == NULL)
		return pstrdup(message);
	if (end != NULL && may_be_shown(pnstrdup(start + 1, end - start - 1), is_error))
		start = end;
	return start[1] == '\0' ? pstrdup(message) :
		psprintf("%.*s...", (int) (start + 1 - message), message);
}

/*
 * mongo_uri_is_acknowledged
 *		Tells whether MongoDB reports the result of writes.
 */
bool
mongo_uri_is_acknowledged(const mongoc_uri_t *uri)
{
	int			w = mongoc_write_concern_get_w(mongoc_uri_get_write_concern(uri));

	/* test w alone: libmongoc considers any w acknowledged if journal=true */
	return w != MONGOC_WRITE_CONCERN_W_UNACKNOWLEDGED &&
		w != MONGOC_WRITE_CONCERN_W_ERRORS_IGNORED;
}

/*-------------------------------------------------------------------------
 * Authentication mechanisms and their properties.
 *-------------------------------------------------------------------------
 */

static const MongoAuthMechanism mechanisms[] =
{
	/* user name, password, is_external, is_ambient */
	{"SCRAM-SHA-1", MONGO_CREDENTIAL_REQUIRED, MONGO_CREDENTIAL_REQUIRED, false, false},
	{"SCRAM-SHA-256", MONGO_CREDENTIAL_REQUIRED, MONGO_CREDENTIAL_REQUIRED, false, false},
	/* is_ambient: the certificate may belong to the foreign server */
	{"MONGODB-X509", MONGO_CREDENTIAL_OPTIONAL, MONGO_CREDENTIAL_UNUSED, true, true},
	{"PLAIN", MONGO_CREDENTIAL_REQUIRED, MONGO_CREDENTIAL_REQUIRED, true, false},
	{"GSSAPI", MONGO_CREDENTIAL_REQUIRED, MONGO_CREDENTIAL_OPTIONAL, true, true},
	{"MONGODB-AWS", MONGO_CREDENTIAL_OPTIONAL, MONGO_CREDENTIAL_OPTIONAL, true, true},
};

/* In the same order. */
const char *const mongo_auth_mechanism_names[] = {
	"SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509", "PLAIN", "GSSAPI", "MONGODB-AWS", NULL
};

/*
 * mongo_auth_mechanism_named
 *		Returns the mechanism of this name, ignoring case; NULL if there is none.
 */
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

/* The properties of mechanisms. */
static const struct
{
	const char *name;
	bool		is_secret;
	bool		is_boolean;
}			properties[] =
{
	{.name = "SERVICE_NAME"},
	{.name = "SERVICE_REALM"},
	{.name = "SERVICE_HOST"},
	{.name = "CANONICALIZE_HOST_NAME", .is_boolean = true},
	{.name = "AWS_SESSION_TOKEN", .is_secret = true},
};

/* Adds a property; returns what is wrong with it as a sentence, or NULL. */
static const char *
add_property(const char *name, const char *value, bool secrets, bson_t *document)
{
	StringInfoData names;

	initStringInfo(&names);
	for (size_t i = 0; i < lengthof(properties); i++)
	{
		const char *known = properties[i].name;

		if (secrets || !properties[i].is_secret)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", known);
		if (pg_strcasecmp(known, name) != 0)
			continue;
		if (properties[i].is_secret && !secrets)
			return psprintf("The property %s is a secret, which belongs in a user mapping.", known);
		if (*value == '\0')
			return psprintf("The property %s is empty.", known);
		if (properties[i].is_boolean && pg_strcasecmp(value, "true") != 0 &&
			pg_strcasecmp(value, "false") != 0)
			return psprintf("The property %s must be true or false.", known);
		if (!bson_utf8_validate(value, strlen(value), false))
			return psprintf("The property %s is not valid UTF-8.", known);
		mongo_append(document, known, mongo_utf8(value));
		return NULL;
	}
	return psprintf("The names of properties are %s.", names.data);
}

/*
 * mongo_auth_properties
 *		Adds "NAME:value,NAME:value" to 'document'; secret properties only with 'secrets'.
 *		Returns NULL, or an error as a sentence that shows no value, palloc'd or static.
 */
const char *
mongo_auth_properties(const char *text, bool secrets, bson_t *document)
{
	const char *problem = NULL;

	for (char *pair = pstrdup(text), *next; pair != NULL && problem == NULL; pair = next)
	{
		char	   *value;

		next = strchr(pair, ',');
		if (next != NULL)
			*next++ = '\0';
		value = strchr(pair, ':');
		if (value == NULL)
			return "A property is a name and a value with a colon between them.";
		*value++ = '\0';
		problem = add_property(pair, value, secrets, document);
	}
	return problem;
}

/* ------------------------- Options that are lists ------------------------- */

/*
 * mongo_split_list
 *		Returns the parts (char *) of a text between its commas, with blanks trimmed.  They may be
 *		empty.  NIL for NULL.  Palloc'd in the current memory context.
 */
List *
mongo_split_list(const char *value)
{
	List	   *parts = NIL;

	while (value != NULL)
	{
		const char *comma = strchr(value, ',');
		const char *end = comma != NULL ? comma : value + strlen(value);

		while (value < end && isspace((unsigned char) *value))
			value++;
		while (end > value && isspace((unsigned char) end[-1]))
			end--;
		parts = lappend(parts, pnstrdup(value, end - value));
		value = comma != NULL ? comma + 1 : NULL;
	}
	return parts;
}

/*
 * mongo_path_is_under
 *		Tells whether 'path' is the field 'parent', or a field inside it.
 */
bool
mongo_path_is_under(const char *path, const char *parent)
{
	size_t		length = strlen(parent);

	return strncmp(path, parent, length) == 0 &&
		(path[length] == '\0' || path[length] == '.');
}

/* ----------------------------- User mappings ------------------------------ */

pg_noreturn static void report_missing_mapping(Oid userid, Oid serverid);

static void
report_missing_mapping(Oid userid, Oid serverid)
{
	const char *server = GetForeignServer(serverid)->servername;
	const char *user = MappingUserName(userid);

	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("user mapping not found for user \"%s\", server \"%s\"", user, server),
			 errhint("Use CREATE USER MAPPING FOR %s SERVER %s OPTIONS (username '...', password '...'), or without OPTIONS where MongoDB asks for no user.",
					 quote_identifier(user), quote_identifier(server))));
}

/*
 * mongo_user_mapping
 *		Returns what PostgreSQL's GetUserMapping() does, palloc'd, but error 42704 has a HINT, and
 *		the message of PostgreSQL 17 in all versions.
 */
UserMapping *
mongo_user_mapping(Oid userid, Oid serverid)
{
	UserMapping *mapping = palloc(sizeof(UserMapping));
	HeapTuple	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(userid),
										ObjectIdGetDatum(serverid));
	Datum		options;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid),
								ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
		report_missing_mapping(userid, serverid);
	mapping->umid = ((Form_pg_user_mapping) GETSTRUCT(tuple))->oid;
	mapping->userid = userid;
	mapping->serverid = serverid;
	options = SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple, Anum_pg_user_mapping_umoptions, &isnull);
	mapping->options = isnull ? NIL : untransformRelOptions(options);
	ReleaseSysCache(tuple);
	return mapping;
}
