/*-------------------------------------------------------------------------
 *
 * uri.c
 *		From options to what libmongoc wants to know.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "uri.h"

#include "credentials.h"
#include "lib/stringinfo.h"
#include "stream.h"
#include "trace.h"
#include "uri_text.h"

/* Raise for options of which no URI can be made; 'detail' is a sentence. */
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

/* Raise for an option that libmongoc did not take, 'detail' being a sentence; the URI is freed. */
static void
refuse(mongoc_uri_t *uri, const MongoConnectionOptions *options,
	   const char *detail)
{
	mongoc_uri_destroy(uri);
	refuse_options(options, detail);
}

/*
 * append_host
 *		One host of a list, with the port unless it says its own: h, h:1, ::1, [::1].
 */
static void
append_host(StringInfo text, const char *host, int length, int port)
{
	const char *colon = memchr(host, ':', length);
	const char *bracket = memchr(host, ']', length);
	bool		bare_ipv6 = bracket == NULL && colon != NULL &&
		memchr(colon + 1, ':', host + length - colon - 1) != NULL;
	bool		has_port = bracket != NULL ? bracket + 1 < host + length :
		colon != NULL && !bare_ipv6;

	appendStringInfo(text, bare_ipv6 ? "[%.*s]" : "%.*s", length, host);
	/* libmongoc asserts that the port is not 0 */
	if (!has_port)
		appendStringInfo(text, ":%d", port > 0 ? port : 27017);
}

/* Hosts with commas between them. */
static void
append_hosts(StringInfo text, const MongoConnectionOptions *options)
{
	const char *host = options->address;

	for (;;)
	{
		int			length;

		host += strspn(host, " ");
		length = strcspn(host, ",");
		while (length > 0 && host[length - 1] == ' ')
			length--;
		append_host(text, host, length, options->port);
		host += strcspn(host, ",");
		if (*host == '\0')
			return;
		host++;
		appendStringInfoChar(text, ',');
	}
}

/* The path of a Unix-domain socket, percent-encoded. */
static void
append_path(StringInfo text, const char *path)
{
	for (const char *c = path; *c != '\0'; c++)
	{
		if (isalnum((unsigned char) *c) || strchr("-._~", *c) != NULL)
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
	/* what ends a host in a URI must not be in one */
	if (options->address[0] == '/' || strpbrk(options->address, "@/?") == NULL)
		uri = mongoc_uri_new_with_error(text.data, &error);
	pfree(text.data);
	if (uri == NULL)
		refuse_options(options, psprintf("The address \"%s\" is not valid.", options->address));
	return uri;
}

static mongoc_uri_t *
uri_from_text(const MongoConnectionOptions *options)
{
	bson_error_t error;
	const mongoc_uri_t *uri = mongo_uri_parse(options->uri, &error);
	const MongoUriSecret *secret = mongo_uri_secret_in_text(options->uri);

	if (secret == NULL && uri != NULL)
		secret = mongo_uri_secret(uri);

	/* an older version of ours may have let it in */
	if (secret != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"uri\" of server \"%s\" must not hold %s",
						options->server_name, secret->name),
				 errdetail("Options of a server can be read by every user of the database."),
				 errhint("Give the server another uri with ALTER SERVER, and change what was secret, as others may have read it. %s",
						 secret->hint)));

	/* the text is not shown: it may hold what ought to be in a mapping */
	if (uri == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
				 errmsg("could not connect to server \"%s\"",
						options->server_name),
				 errdetail("The option \"uri\" is not a valid MongoDB connection string.")));
	return mongoc_uri_copy(uri);
}

static void
set_read_mode(mongoc_uri_t *uri, mongoc_read_mode_t mode)
{
	mongoc_read_prefs_t *prefs = mongoc_read_prefs_new(mode);

	mongoc_uri_set_read_prefs_t(uri, prefs);
	mongoc_read_prefs_destroy(prefs);
}

/*
 * set_concerns
 *		write_concern is a number of members, "majority" or a name that the
 *		replica set's configuration defines.
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

static void
set_credentials(mongoc_uri_t *uri, const MongoConnectionOptions *options)
{
	const char *problem = mongo_credentials_set(uri, options);

	if (problem == NULL)
		return;
	mongoc_uri_destroy(uri);
	refuse_options(options, problem);
}

/* refuse_unacknowledged: a server may be older than the check of its option. */
static void
refuse_unacknowledged(mongoc_uri_t *uri, const MongoConnectionOptions *options)
{
	if (!mongo_uri_is_acknowledged(uri))
		refuse(uri, options, "The write concern in the option \"uri\" must not leave writes unacknowledged.");
}

/*
 * How long libmongoc trusts what it knows of the servers, and an idle
 * connection, before it asks with "hello" and "ping".  An error tells it as
 * well, and our streams notice a closed connection without asking.
 *
 * It counts the latter as an int of microseconds; where that overflows, it sends a
 * ping before each command.
 */
#define TRUST_MS			3600000
#define MAX_SOCKET_CHECK_MS	(PG_INT32_MAX / 1000)

/* Set a timeout unless the URI says its own or the option is not given. */
static void
set_timeout(mongoc_uri_t *uri, const char *name, int milliseconds)
{
	if (milliseconds > 0 && !mongoc_uri_has_option(uri, name))
		mongoc_uri_set_option_as_int32(uri, name, milliseconds);
}

/* set_appname: with its escapes, and as much as MongoDB takes. */
static bool
set_appname(mongoc_uri_t *uri, const char *text)
{
	char		name[MONGO_APPNAME_SIZE];

	mongo_trace_fill(text, name, sizeof(name));
	return mongoc_uri_set_appname(uri, *name != '\0' ? name : "mongo_fdw");
}

/*
 * set_heartbeat
 *		How long libmongoc trusts what it knows of the servers.
 *
 * Of how far a secondary is behind it knows what the last heartbeat said, so
 * maxStalenessSeconds must be 10 seconds more than that at least (Max Staleness
 * specification).
 */
static void
set_heartbeat(mongoc_uri_t *uri)
{
	int64		staleness =
		mongoc_read_prefs_get_max_staleness_seconds(mongoc_uri_get_read_prefs_t(uri));
	int64		heartbeat_ms = TRUST_MS;

	/* less than 90 seconds libmongoc refuses */
	if (staleness > 0)
		heartbeat_ms = Min(heartbeat_ms, (Max(staleness, 90) - 10) * 1000);
	set_timeout(uri, MONGOC_URI_HEARTBEATFREQUENCYMS, heartbeat_ms);
}

/* set_socket_check: how long it trusts an idle connection. */
static void
set_socket_check(mongoc_uri_t *uri)
{
	int			interval_ms = mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SOCKETCHECKINTERVALMS,
															 TRUST_MS);

	if (interval_ms > MAX_SOCKET_CHECK_MS)
		mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETCHECKINTERVALMS,
									   MAX_SOCKET_CHECK_MS);
}

mongoc_uri_t *
mongo_uri_create(const MongoConnectionOptions *options)
{
	mongoc_uri_t *uri;

	options = mongo_credentials_read(options);
	uri = options->uri != NULL ? uri_from_text(options) : uri_from_address(options);

	if (options->replica_set != NULL &&
		!mongoc_uri_set_option_as_utf8(uri, MONGOC_URI_REPLICASET,
									   options->replica_set))
		refuse(uri, options, "The option \"replica_set\" is not valid.");
	if (options->read_mode != 0)
		set_read_mode(uri, options->read_mode);
	set_concerns(uri, options);
	refuse_unacknowledged(uri, options);
	set_credentials(uri, options);

	if (mongoc_uri_get_appname(uri) == NULL && !set_appname(uri, options->appname))
		refuse(uri, options, "The option \"appname\" is not valid.");

	if (options->compressors != NULL &&
		!mongoc_uri_set_compressors(uri, options->compressors))
		refuse(uri, options, "The option \"compressors\" is not valid.");

	set_heartbeat(uri);
	set_socket_check(uri);
	set_timeout(uri, MONGOC_URI_CONNECTTIMEOUTMS, options->connect_timeout_ms);
	set_timeout(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS,
				options->server_selection_timeout_ms);
	return uri;
}

int
mongo_uri_take_socket_timeout(mongoc_uri_t *uri, const MongoConnectionOptions *options)
{
	int			timeout_ms = mongoc_uri_has_option(uri, MONGOC_URI_SOCKETTIMEOUTMS) ?
		mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, 0) :
		options->socket_timeout_ms;

	/* to libmongoc 0 is its default of five minutes */
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, MONGO_NO_TIMEOUT);
	return Max(timeout_ms, 0);
}

bool
mongo_uri_ssl_options(const MongoConnectionOptions *options,
					  const mongoc_uri_t *uri, mongoc_ssl_opt_t *ssl_options)
{
	bool		insecure = mongoc_uri_get_option_as_bool(uri, MONGOC_URI_TLSINSECURE, false);

	/* the default has libmongoc's own idea of where CAs are */
	*ssl_options = *mongoc_ssl_opt_get_default();
	if (!options->ssl && !mongoc_uri_get_tls(uri))
		return false;

	ssl_options->pem_file = options->pem_file ? options->pem_file :
		mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE, NULL);
	ssl_options->pem_pwd = options->pem_pwd ? options->pem_pwd :
		mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD, NULL);
	ssl_options->ca_file = options->ca_file ? options->ca_file :
		mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCAFILE, NULL);
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

bool
mongo_uri_is_single(const mongoc_uri_t *uri)
{
	const mongoc_host_list_t *hosts = mongoc_uri_get_hosts(uri);

	/* the same questions as mongoc_topology_new() asks */
	if (mongoc_uri_has_option(uri, MONGOC_URI_DIRECTCONNECTION))
		return mongoc_uri_get_option_as_bool(uri, MONGOC_URI_DIRECTCONNECTION,
											 false);
	return mongoc_uri_get_replica_set(uri) == NULL &&
		hosts != NULL && hosts->next == NULL;
}
