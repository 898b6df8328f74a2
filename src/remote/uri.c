/*-------------------------------------------------------------------------
 *
 * uri.c
 *		Makes libmongoc's URI from the options of server and user mapping.
 *
 * Functions return what is wrong as a sentence that shows no value.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "convert.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/stringinfo.h"
#include "storage/fd.h"

/* Raises 08001 for options that make no URI; 'detail' is a sentence. */
pg_noreturn static void refuse_options(const MongoConnectionOptions *options,
									   const char *detail);

static void
refuse_options(const MongoConnectionOptions *options, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
			 errmsg("could not connect to server \"%s\"", options->server_name),
			 errdetail_internal("%s", detail)));
}

/* Appends the hosts (h, h:1, ::1 or [::1]), with the option port unless a host has its own. */
static void
append_hosts(StringInfo text, const MongoConnectionOptions *options)
{
	const char *separator = "";

	foreach_ptr(const char, host, mongo_split_list(options->address))
	{
		const char *colon = strchr(host, ':');
		const char *bracket = strchr(host, ']');
		bool		bare_ipv6 = bracket == NULL && colon != NULL && strchr(colon + 1, ':') != NULL;
		bool		has_port = bracket != NULL ? bracket[1] != '\0' : colon != NULL && !bare_ipv6;

		appendStringInfo(text, bare_ipv6 ? "%s[%s]" : "%s%s", separator, host);
		/* libmongoc asserts that the port is not 0 */
		if (!has_port)
			appendStringInfo(text, ":%d", options->port > 0 ? options->port : 27017);
		separator = ",";
	}
}

/* Appends the path of a Unix-domain socket, percent-encoded. */
static void
append_path(StringInfo text, const char *path)
{
	for (const char *c = path; *c != '\0'; c++)
	{
		if ((!IS_HIGHBIT_SET(*c) && isalnum((unsigned char) *c)) || strchr("-._~", *c) != NULL)
			appendStringInfoChar(text, *c);
		else
			appendStringInfo(text, "%%%02X", (unsigned char) *c);
	}
}

static mongoc_uri_t *
uri_from_address(const MongoConnectionOptions *options)
{
	StringInfoData text;
	mongoc_uri_t *uri = NULL;
	bson_error_t error;

	initStringInfo(&text);
	appendStringInfoString(&text, "mongodb://");
	if (options->address[0] == '/')
		append_path(&text, options->address);
	else
		append_hosts(&text, options);
	/* a host must not contain a character that would end it in a URI */
	if ((options->address[0] == '/' || strpbrk(options->address, "@/?") == NULL) &&
		text.len <= 2 * MONGO_LONGEST_OPTION)
		uri = mongoc_uri_new_with_error(text.data, &error);
	if (uri == NULL)
		refuse_options(options, psprintf("The address \"%s\" is not valid.", options->address));
	return uri;
}

/* Returns the URI of the option uri, which must not contain secrets. */
static mongoc_uri_t *
uri_from_text(const MongoConnectionOptions *options)
{
	bson_error_t error;
	const mongoc_uri_t *uri = mongo_uri_parse(options->uri, &error);
	const MongoUriRefusal *refusal = mongo_uri_refusal_of_text(options->uri);

	if (refusal == NULL && uri != NULL)
		refusal = mongo_uri_refusal(uri);

	/* an older version of mongo_fdw may have accepted it */
	if (refusal != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"uri\" of server \"%s\" must not hold %s",
						options->server_name, refusal->name),
				 errdetail_internal("%s", refusal->detail),
				 errhint("Give the server another uri with ALTER SERVER, and change what was secret, as others may have read it. %s",
						 refusal->hint)));

	/* the error does not show the text, which may contain a password */
	if (uri == NULL)
		refuse_options(options, "The option \"uri\" is not a valid MongoDB connection string.");
	return mongoc_uri_copy(uri);
}

/*
 * Sets the read concern and the write concern.
 *
 * write_concern is a number of members, "majority", or a name defined in the replica set's
 * configuration.
 */
static void
set_concerns(mongoc_uri_t *uri, const MongoConnectionOptions *options)
{
	if (options->write_concern != NULL)
	{
		mongoc_write_concern_t *concern = mongoc_write_concern_new();
		const char *w = options->write_concern;

		if (strspn(w, "0123456789") == strlen(w))
			mongoc_write_concern_set_w(concern, atoi(w));
		else if (strcmp(w, "majority") == 0)
			mongoc_write_concern_set_w(concern, MONGOC_WRITE_CONCERN_W_MAJORITY);
		else
			mongoc_write_concern_set_wtag(concern, w);
		mongoc_uri_set_write_concern(uri, concern);
		mongoc_write_concern_destroy(concern);
	}
	if (options->read_concern != NULL)
	{
		mongoc_read_concern_t *concern = mongoc_read_concern_new();

		mongoc_read_concern_set_level(concern, options->read_concern);
		mongoc_uri_set_read_concern(uri, concern);
		mongoc_read_concern_destroy(concern);
	}
}

/* -------------------------------- credentials -------------------------------- */

#define LONGEST_PASSWORD	4096
#define EXTERNAL_SOURCE		"$external"

/* Returns the file's only line, palloc'd. */
static const char *
read_password(const char *path)
{
	/* O_NONBLOCK: opening a FIFO, for example, must not block */
	int			file = OpenTransientFile(path, O_RDONLY | O_NONBLOCK);
	char	   *text = palloc(LONGEST_PASSWORD + 2);
	struct stat status;
	ssize_t		length = 0;
	ssize_t		count = 1;
	const char *problem = NULL;

	if (file < 0 || fstat(file, &status) < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open password file \"%s\": %m", path)));
	while (S_ISREG(status.st_mode) && count > 0)
	{
		count = read(file, text + length, LONGEST_PASSWORD + 1 - length);
		if (count < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read password file \"%s\": %m", path)));
		length += count;
	}
	CloseTransientFile(file);

	text[length] = '\0';
	if (!S_ISREG(status.st_mode))
		problem = "It is not a regular file.";
	else if (length > LONGEST_PASSWORD)
		problem = "It is too long for a password.";
	if (length > 0 && text[length - 1] == '\n')
		text[--length] = '\0';
	if (length > 0 && text[length - 1] == '\r')
		text[--length] = '\0';
	if (problem == NULL && length == 0)
		problem = "It is empty.";
	else if (problem == NULL && (strlen(text) != (size_t) length || strpbrk(text, "\r\n") != NULL))
		problem = "It must hold one line, the password.";
	else if (problem == NULL && !bson_utf8_validate(text, length, false))
		problem = "The password in it is not valid UTF-8.";
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("could not use password file \"%s\"", path),
				 errdetail_internal("%s", problem)));
	return text;
}

static const char *
to_utf8(const char *text)
{
	return text != NULL ? mongo_to_utf8(text) : NULL;
}

/*
 * Returns a copy of 'options' whose credentials are in UTF-8, with the password read from its
 * file and the appname prepared (mongo_trace_prepare()).
 *
 * The copy is in the current memory context.  Raises 22P05 for a character that UTF-8 lacks,
 * PostgreSQL's error for a file that cannot be read, and 22023 for a file without a password.
 * Errors never show the password.
 */
static MongoConnectionOptions *
read_credentials(const MongoConnectionOptions *options)
{
	MongoConnectionOptions *result = palloc(sizeof(MongoConnectionOptions));

	*result = *options;
	result->username = to_utf8(options->username);
	result->password = options->password_file != NULL ?
		read_password(options->password_file) : to_utf8(options->password);
	result->authentication_database = to_utf8(options->authentication_database);
	result->auth_properties = to_utf8(options->auth_properties);
	result->appname = mongo_trace_prepare(options->appname != NULL ? options->appname : "mongo_fdw");
	return result;
}

/* Returns which credential the mechanism lacks or does not take, or NULL. */
static const char *
check_use(const MongoAuthMechanism *mechanism, const MongoConnectionOptions *options)
{
	bool		has_user = options->username != NULL;
	bool		has_password = options->password != NULL;

	if (mechanism->username == MONGO_CREDENTIAL_REQUIRED && !has_user)
		return psprintf("%s needs the option \"username\" of the user mapping.",
						mechanism->name);
	if (mechanism->password == MONGO_CREDENTIAL_REQUIRED && !has_password)
		return psprintf("%s needs the option \"password\" or \"password_file\" of the user mapping.",
						mechanism->name);
	if (mechanism->password == MONGO_CREDENTIAL_UNUSED && has_password)
		return psprintf("%s takes no password, but the user mapping has one.",
						mechanism->name);
	if (has_password && !has_user)
		return psprintf("%s takes a password only with a user name.", mechanism->name);
	return NULL;
}

/*
 * Sets the database that defines the user; returns what is wrong, or NULL.
 *
 * It is always $external for mechanisms whose users are not stored in MongoDB.
 */
static const char *
set_source(mongoc_uri_t *uri, const MongoConnectionOptions *options,
		   const MongoAuthMechanism *mechanism)
{
	const char *source = options->authentication_database;

	if (mechanism != NULL && mechanism->is_external)
	{
		if (source != NULL && strcmp(source, EXTERNAL_SOURCE) != 0)
			return psprintf("The option \"authentication_database\" must be %s for %s, or not be given.",
							EXTERNAL_SOURCE, mechanism->name);
		source = EXTERNAL_SOURCE;
	}
	return source == NULL || mongoc_uri_set_auth_source(uri, source) ? NULL :
		"The option \"authentication_database\" is not valid.";
}

/* Sets mechanism and properties; returns what is wrong, or NULL. */
static const char *
set_mechanism(mongoc_uri_t *uri, const MongoConnectionOptions *options,
			  const MongoAuthMechanism *mechanism)
{
	const char *problem = check_use(mechanism, options);

	if (problem != NULL)
		return problem;
	if (!mongoc_uri_set_auth_mechanism(uri, mechanism->name))
		return "The option \"auth_mechanism\" is not valid.";
	if (options->auth_properties != NULL)
	{
		bson_t	   *properties = mongo_bson_create();

		problem = mongo_auth_properties(options->auth_properties, true, properties);
		if (problem != NULL)
			return problem;
		if (!mongoc_uri_set_mechanism_properties(uri, properties))
			return "The option \"auth_properties\" is not valid.";
	}
	return NULL;
}

/*
 * Sets user, password, mechanism, its properties and the authentication database; returns what is
 * wrong, as a sentence that shows no value, or NULL.
 *
 * Options override the URI.  Without a user and a mechanism there is no authentication.
 */
static const char *
set_credentials(mongoc_uri_t *uri, const MongoConnectionOptions *options)
{
	const MongoAuthMechanism *mechanism = options->auth_mechanism == NULL ? NULL :
		mongo_auth_mechanism_named(options->auth_mechanism);
	const char *problem;

	if (options->username == NULL && mechanism == NULL)
		return NULL;
	if (options->username != NULL && !mongoc_uri_set_username(uri, options->username))
		return "The option \"username\" is not valid.";
	if (options->password != NULL && !mongoc_uri_set_password(uri, options->password))
		return "The option \"password\" is not valid.";
	/* libmongoc takes a long time over a long one, and crashes without any */
	problem = options->password != NULL && strlen(options->password) > LONGEST_PASSWORD ?
		"The password has more than " CppAsString2(LONGEST_PASSWORD) " bytes." :
		mechanism != NULL ? set_mechanism(uri, options, mechanism) :
		options->password == NULL ?
		"A user name needs the option \"password\" or \"password_file\" of the user mapping." : NULL;
	return problem != NULL ? problem : set_source(uri, options, mechanism);
}

/* ------------------------------- the whole URI ------------------------------- */

/* Sets a timeout if the option is given and the URI has none. */
static void
set_timeout(mongoc_uri_t *uri, const char *name, int milliseconds)
{
	if (milliseconds > 0 && !mongoc_uri_has_option(uri, name))
		mongoc_uri_set_option_as_int32(uri, name, milliseconds);
}

/* Expands the escapes, and cuts the name to MongoDB's limit. */
static bool
set_appname(mongoc_uri_t *uri, const char *text)
{
	char		name[MONGO_APPNAME_SIZE];

	mongo_trace_fill(text, name, sizeof(name));
	return mongoc_uri_set_appname(uri, *name != '\0' ? name : "mongo_fdw");
}

/* Sets the options in 'uri'; returns what is not valid, as a sentence, or NULL. */
static const char *
set_options(mongoc_uri_t *uri, const MongoConnectionOptions *options)
{
	const char *problem;

	if (options->replica_set != NULL &&
		!mongoc_uri_set_option_as_utf8(uri, MONGOC_URI_REPLICASET, options->replica_set))
		return "The option \"replica_set\" is not valid.";
	if (options->read_mode != 0)
	{
		/* the URI's tags and maxStalenessSeconds stay; primary takes neither */
		mongoc_read_prefs_t *preference = options->read_mode == MONGOC_READ_PRIMARY ?
			mongoc_read_prefs_new(MONGOC_READ_PRIMARY) :
			mongoc_read_prefs_copy(mongoc_uri_get_read_prefs_t(uri));

		mongoc_read_prefs_set_mode(preference, options->read_mode);
		mongoc_uri_set_read_prefs_t(uri, preference);
		mongoc_read_prefs_destroy(preference);
	}
	set_concerns(uri, options);
	/* the server may have been created before this was checked */
	if (!mongo_uri_is_acknowledged(uri))
		return "The write concern in the option \"uri\" must not leave writes unacknowledged.";
	problem = set_credentials(uri, options);
	if (problem != NULL)
		return problem;
	if (mongoc_uri_get_appname(uri) == NULL && !set_appname(uri, options->appname))
		return "The option \"appname\" is not valid.";
	if (options->compressors != NULL && !mongoc_uri_set_compressors(uri, options->compressors))
		return "The option \"compressors\" is not valid.";
	set_timeout(uri, MONGOC_URI_CONNECTTIMEOUTMS, options->connect_timeout_ms);
	set_timeout(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS,
				options->server_selection_timeout_ms);
	return NULL;
}

/* Copies a setting of option or URI, since changes of the URI move its strings. */
static const char *
copy_setting(const char *option, const mongoc_uri_t *uri, const char *name)
{
	const char *value = option != NULL ? option : mongoc_uri_get_option_as_utf8(uri, name, NULL);

	return value != NULL ? pstrdup(value) : NULL;
}

/* Reads TLS settings of options, which override those of the URI; returns false if TLS is off. */
static bool
read_ssl_options(const MongoConnectionOptions *options, const mongoc_uri_t *uri,
				 mongoc_ssl_opt_t *ssl_options)
{
	bool		insecure = mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSINSECURE, false);

	/* the default has libmongoc's own locations of CA certificates */
	*ssl_options = *mongoc_ssl_opt_get_default();
	if (!mongo_uses_tls(options, uri))
	{
		/* a user mapping's, of which its DDL cannot warn */
		if (options->pem_file != NULL)
			ereport(WARNING,
					(errmsg("option \"%s\" has no effect", "pem_file"),
					 errdetail("The connection to server \"%s\" is not encrypted, as its option \"ssl\" or \"uri\" demands.",
							   options->server_name),
					 errhint("Set the option \"ssl\" to true.")));
		return false;
	}

	ssl_options->pem_file = copy_setting(options->pem_file, uri, MONGOC_URI_TLSCERTIFICATEKEYFILE);
	ssl_options->pem_pwd = copy_setting(options->pem_pwd, uri, MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD);
	/* without one, OpenSSL would ask for it on the terminal */
	if (ssl_options->pem_pwd == NULL)
		ssl_options->pem_pwd = "";
	ssl_options->ca_file = copy_setting(options->ca_file, uri, MONGOC_URI_TLSCAFILE);
	if (options->ca_dir)
		ssl_options->ca_dir = options->ca_dir;
	if (options->crl_file)
		ssl_options->crl_file = options->crl_file;

	ssl_options->weak_cert_validation = options->weak_cert_validation || insecure ||
		mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSALLOWINVALIDCERTIFICATES, false);
	ssl_options->allow_invalid_hostname = ssl_options->weak_cert_validation ||
		mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSALLOWINVALIDHOSTNAMES, false);
	return true;
}

/*
 * Sets the timeouts that the transport's streams apply to libmongoc's waits and our own.
 *
 * Sets socketTimeoutMS in the URI to a value that makes libmongoc wait for ever.  Its default is
 * five minutes, and it treats 0 as the default (mongoc_uri_get_option_as_int32(), seen in the
 * source of 1.23.1 and 2.6).
 */
static void
take_timeouts(mongoc_uri_t *uri, const MongoConnectionOptions *options, MongoTransport *transport)
{
	int			timeout_ms = mongoc_uri_has_option(uri, MONGOC_URI_SOCKETTIMEOUTMS) ?
		mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, 0) :
		options->socket_timeout_ms;

	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, MONGO_NO_TIMEOUT);
	/* no ping while connecting; libmongoc makes microseconds of it, in an int */
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETCHECKINTERVALMS, 1000000);
	transport->socket_timeout_ms = Max(timeout_ms, 0);
	/* libmongoc asserts that it is less than the largest int */
	timeout_ms = mongoc_uri_get_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, 0);
	transport->connect_timeout_ms = timeout_ms <= 0 ? 10000 : Min(timeout_ms, INT_MAX - 1);
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, transport->connect_timeout_ms);
}

/*
 * mongo_uri_create
 *		Sets *created to the URI of 'options' as soon as it exists; the caller destroys it, after an
 *		error, too (mongoc_uri_destroy()).  Stores TLS settings and timeouts in *transport, with
 *		strings in the current memory context.
 *
 * Options override the option uri, except for timeouts.  The user is looked up in
 * authentication_database, else in the URI's authSource, else in "admin" (libmongoc's default),
 * or in $external if the mechanism requires it.  Without a user name and a mechanism there is no
 * authentication.  Raises 08001 for what libmongoc does not accept, 22023 for an option uri that
 * contains a secret, and errors of password_file.  Errors never show the password.
 */
void
mongo_uri_create(const MongoConnectionOptions *options, MongoTransport *transport,
				 mongoc_uri_t **created)
{
	mongoc_uri_t *uri;
	const char *problem;

	options = read_credentials(options);
	*created = uri = options->uri != NULL ? uri_from_text(options) : uri_from_address(options);
	problem = set_options(uri, options);
	if (problem != NULL)
		refuse_options(options, problem);
	transport->use_tls = read_ssl_options(options, uri, &transport->ssl_options);
	transport->tcp = options->tcp;
	take_timeouts(uri, options, transport);
}

/*
 * mongo_uri_offer_compressors
 *		Has the handshake offer the compressors that suit slow networks, for commands that ask to
 *		be compressed.
 */
void
mongo_uri_offer_compressors(mongoc_uri_t *uri)
{
	/* zlib takes about as much time as it saves at 12.5 MB/s */
	static const char *const fast[] = {"zstd", "snappy"};
	StringInfoData names;

	initStringInfo(&names);
	for (size_t i = 0; i < lengthof(fast); i++)
	{
		if (mongo_compressor_named(fast[i], strlen(fast[i])) != NULL)
			appendStringInfo(&names, "%s%s", names.len > 0 ? "," : "", fast[i]);
	}
	if (names.len > 0)
		(void) mongoc_uri_set_compressors(uri, names.data);
}

/*
 * mongo_uri_is_single
 *		Tells whether libmongoc treats this as one server (topology type Single).
 */
bool
mongo_uri_is_single(const mongoc_uri_t *uri)
{
	const mongoc_host_list_t *hosts = mongoc_uri_get_hosts(uri);

	/* the same checks as in mongoc_topology_new() */
	if (mongoc_uri_has_option(uri, MONGOC_URI_DIRECTCONNECTION))
		return mongoc_uri_get_option_as_bool(uri, MONGOC_URI_DIRECTCONNECTION,
											 false);
	return mongoc_uri_get_replica_set(uri) == NULL &&
		hosts != NULL && hosts->next == NULL;
}
