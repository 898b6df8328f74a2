/*-------------------------------------------------------------------------
 *
 * uri_text.c
 *		Texts of options with a form of their own, and the user mapping in force.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options_internal.h"
#include "common.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/pg_user_mapping.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/syscache.h"

/*-------------------------------------------------------------------------
 * The text of the option uri: parsed as the driver does, and the
 * secrets that it must not hold.
 *-------------------------------------------------------------------------
 */

static void
destroy_uri(void *uri)
{
	mongoc_uri_destroy(uri);
}

/*
 * take_option
 *		The text without an option of this name; *value becomes what it says, palloc'd,
 *		or stays as it is.
 */
static char *
take_option(const char *text, const char *name, char **value)
{
	size_t		length = strlen(name);
	char	   *rest = pstrdup(text);
	char	   *pair = strchr(rest, '?');

	while (pair != NULL)
	{
		char	   *start = pair + 1;
		char	   *end = start + strcspn(start, "&");
		char	   *decoded;

		if (pg_strncasecmp(start, name, length) != 0 || start[length] != '=')
		{
			pair = *end == '&' ? end : NULL;
			continue;
		}
		decoded = mongoc_uri_unescape(pnstrdup(start + length + 1, end - start - length - 1));
		*value = pstrdup(decoded != NULL ? decoded : "");
		bson_free(decoded);
		/* with the separator behind it, or else the one before it */
		if (*end == '&')
			memmove(start, end + 1, strlen(end + 1) + 1);
		else
		{
			*pair = '\0';
			pair = NULL;
		}
	}
	return rest;
}

/*
 * set_parsed_mechanism
 *		Have libmongoc's URI hold what authMechanism and its properties say; what is
 *		wrong with them as a sentence, or NULL.
 */
static const char *
set_parsed_mechanism(mongoc_uri_t *uri, const char *mechanism, const char *properties)
{
	const MongoAuthMechanism *known = NULL;
	bson_t	   *document = bson_create_in(CurrentMemoryContext);
	const char *problem = NULL;

	if (mechanism != NULL)
		known = mongo_auth_mechanism_named(mechanism);
	if (mechanism != NULL && known == NULL)
		return "Its authMechanism is none of SCRAM-SHA-1, SCRAM-SHA-256, MONGODB-X509, PLAIN, GSSAPI and MONGODB-AWS";
	if (known != NULL)
		mongoc_uri_set_auth_mechanism(uri, known->name);
	if (properties == NULL)
		return NULL;
	if (mongo_auth_properties(properties, true, document, &problem))
		mongoc_uri_set_mechanism_properties(uri, document);
	return problem != NULL ? "Its authMechanismProperties are not valid" : NULL;
}

/*
 * parse
 *		libmongoc refuses a mechanism without the user whom the mapping tells, so the
 *		mechanism is set when all else has been read.
 */
static mongoc_uri_t *
parse(const char *text, bson_error_t *error)
{
	char	   *mechanism = NULL;
	char	   *properties = NULL;
	const char *problem;
	mongoc_uri_t *uri;

	text = take_option(text, MONGOC_URI_AUTHMECHANISM, &mechanism);
	text = take_option(text, MONGOC_URI_AUTHMECHANISMPROPERTIES, &properties);
	uri = mongoc_uri_new_with_error(text, error);
	if (uri == NULL)
		return NULL;
	problem = set_parsed_mechanism(uri, mechanism, properties);
	if (problem == NULL)
		return uri;
	bson_set_error(error, MONGOC_ERROR_COMMAND, MONGOC_ERROR_COMMAND_INVALID_ARG, "%s", problem);
	mongoc_uri_destroy(uri);
	return NULL;
}

const mongoc_uri_t *
mongo_uri_parse(const char *text, bson_error_t *error)
{
	MemoryContextCallback *callback = palloc0(sizeof(MemoryContextCallback));
	mongoc_uri_t *uri;

	memset(error, 0, sizeof(*error));
	mongo_install_log_handler();
	mongo_forget_driver_message();
	mongo_hold_driver_log(true);
	uri = parse(text, error);
	mongo_hold_driver_log(false);

	callback->func = destroy_uri;
	callback->arg = uri;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
	return uri;
}

static const MongoUriSecret credentials = {
	"credentials",
	"Use CREATE USER MAPPING with the options username and password. An @ that ends neither is written as %40."
};
static const MongoUriSecret password = {
	"a password",
	"Use CREATE USER MAPPING with the option pem_pwd."
};
static const MongoUriSecret token = {
	"a token",
	"The driver takes it from the environment of the database server."
};

/*
 * Parts of the names of options that hold what is secret: libmongoc's own,
 * those of other drivers (proxyPassword) and what one may take for an option.
 */
static const struct
{
	const char *part;
	const MongoUriSecret *secret;
}			secret_names[] =
{
	{"passw", &password},
	{"pwd", &password},
	{"passphrase", &password},
	{"secret", &password},
	{"username", &credentials},
	{"credential", &credentials},
	{"token", &token},
};

/* secret_named is the secret that an option of this name holds, or NULL. */
static const MongoUriSecret *
secret_named(const char *name)
{
	for (size_t i = 0; i < lengthof(secret_names); i++)
	{
		if (strstr(name, secret_names[i].part) != NULL)
			return secret_names[i].secret;
	}
	return NULL;
}

const MongoUriSecret *
mongo_uri_secret_in_text(const char *text)
{
	char	   *folded = asc_tolower(text, strlen(text));
	const char *name = folded;

	if (strchr(text, '@') != NULL)
		return &credentials;
	/* a property of an authentication mechanism, wherever it stands */
	if (strstr(folded, "session_token") != NULL)
		return &token;

	/* names stand before =, wherever the driver sees a query begin */
	for (char *c = folded; *c != '\0'; c++)
	{
		if (*c == '?' || *c == '&')
			name = c + 1;
		else if (*c == '=')
		{
			const MongoUriSecret *secret;

			*c = '\0';
			secret = secret_named(name);
			if (secret != NULL)
				return secret;
			name = c + 1;
		}
	}
	return NULL;
}

const MongoUriSecret *
mongo_uri_secret(const mongoc_uri_t *uri)
{
	bson_t		properties;
	bson_iter_t iter;

	if (mongoc_uri_get_username(uri) != NULL || mongoc_uri_get_password(uri) != NULL)
		return &credentials;
	if (mongoc_uri_has_option(uri, MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD))
		return &password;
	if (!mongoc_uri_get_mechanism_properties(uri, &properties) ||
		!bson_iter_init(&iter, &properties))
		return NULL;
	while (bson_iter_next(&iter))
	{
		if (!mongo_auth_property_is_open(bson_iter_key(&iter)))
			return &token;
	}
	return NULL;
}

/* may_be_shown: an option's name, or in a warning a word. */
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
 *
 * What is quoted may hold quotes itself: so nothing is shown from the first quote
 * to the last, and to the message's end if it may have been cut short.  A name
 * stays that is all between these two, or that a colon and a value follow.
 */
char *
mongo_uri_printable(const char *message, bool is_error)
{
	static const char separator[] = "\": \"";
	bool		is_cut = strlen(message) >= sizeof(((bson_error_t *) NULL)->message) - 1;
	const char *start = strpbrk(message, "\"'[");
	const char *end = NULL;
	const char *value;

	if (start == NULL)
		return pstrdup(message);
	start++;
	for (const char *c = start; !is_cut && *c != '\0'; c++)
	{
		if (strchr("\"']", *c) != NULL)
			end = c;
	}
	if (end != NULL && may_be_shown(pnstrdup(start, end - start), is_error))
		return pstrdup(message);

	value = strstr(start, separator);
	if (value != NULL && may_be_shown(pnstrdup(start, value - start), is_error))
		start = value + strlen(separator);
	return psprintf("%.*s...%s", (int) (start - message), message,
					end != NULL && end >= start ? end : "");
}

bool
mongo_uri_is_acknowledged(const mongoc_uri_t *uri)
{
	int			w = mongoc_write_concern_get_w(mongoc_uri_get_write_concern(uri));

	/* whatever else is said: with journal=true libmongoc takes any for one */
	return w != MONGOC_WRITE_CONCERN_W_UNACKNOWLEDGED &&
		w != MONGOC_WRITE_CONCERN_W_ERRORS_IGNORED;
}

/* ------------------------- Options that are lists ------------------------- */

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

bool
mongo_path_is_under(const char *path, const char *parent)
{
	size_t		length = strlen(parent);

	return strncmp(path, parent, length) == 0 &&
		(path[length] == '\0' || path[length] == '.');
}

/* ----------------------- Who a role is on a server ------------------------ */

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

UserMapping *
mongo_user_mapping(Oid userid, Oid serverid)
{
	UserMapping *mapping;
	HeapTuple	tuple;
	Datum		options;
	bool		isnull;

	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(userid),
							ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid),
								ObjectIdGetDatum(serverid));
	if (!HeapTupleIsValid(tuple))
		report_missing_mapping(userid, serverid);

	mapping = palloc(sizeof(UserMapping));
	mapping->umid = ((Form_pg_user_mapping) GETSTRUCT(tuple))->oid;
	mapping->userid = userid;
	mapping->serverid = serverid;
	options = SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple,
							  Anum_pg_user_mapping_umoptions, &isnull);
	mapping->options = isnull ? NIL : untransformRelOptions(options);
	ReleaseSysCache(tuple);
	return mapping;
}
