/*-------------------------------------------------------------------------
 *
 * credentials.c
 *		Who one is to MongoDB: from options to libmongoc's URI.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "credentials.h"

#include "auth_mechanism.h"
#include "bson_memory.h"
#include "encoding.h"
#include "storage/fd.h"
#include "trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST_PASSWORD	65536
#define EXTERNAL_SOURCE		"$external"

/* ----------------------------- password_file ------------------------------- */

pg_noreturn static void refuse_file(const char *path, const char *detail);

static void
refuse_file(const char *path, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("could not use password file \"%s\"", path),
			 errdetail_internal("%s", detail)));
}

/*
 * open_file
 *		A regular file: another kind might keep the backend waiting.
 */
static int
open_file(const char *path)
{
	struct stat status;
	int			file = OpenTransientFile(path, O_RDONLY | O_NONBLOCK);

	if (file < 0 || fstat(file, &status) < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open password file \"%s\": %m", path)));
	if (!S_ISREG(status.st_mode))
		refuse_file(path, "It is not a regular file.");
	return file;
}

/* The file's only line, palloc'd. */
static const char *
read_password(const char *path)
{
	int			file = open_file(path);
	char	   *text = palloc(LONGEST_PASSWORD + 1);
	ssize_t		length = 0;
	ssize_t		count;

	while ((count = read(file, text + length, LONGEST_PASSWORD + 1 - length)) > 0)
		length += count;
	if (count < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read password file \"%s\": %m", path)));
	CloseTransientFile(file);

	if (length > LONGEST_PASSWORD)
		refuse_file(path, "It is too long for a password.");
	if (length > 0 && text[length - 1] == '\n')
		length--;
	if (length > 0 && text[length - 1] == '\r')
		length--;
	text[length] = '\0';
	if (length == 0)
		refuse_file(path, "It is empty.");
	if (strlen(text) != (size_t) length || strpbrk(text, "\r\n") != NULL)
		refuse_file(path, "It must hold one line, the password.");
	if (!bson_utf8_validate(text, length, false))
		refuse_file(path, "The password in it is not valid UTF-8.");
	return text;
}

static const char *
to_utf8(const char *text)
{
	return text != NULL ? mongo_to_utf8(text) : NULL;
}

MongoConnectionOptions *
mongo_credentials_read(const MongoConnectionOptions *options)
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

/* ------------------------------ into the URI -------------------------------- */

/* What a mechanism lacks or has too much of, as a sentence, or NULL. */
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
 * set_source
 *		Where the user is defined.
 *
 * Given or not, it is $external for users that MongoDB does not keep itself.
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
		bson_t	   *properties = bson_create_in(CurrentMemoryContext);

		if (!mongo_auth_properties(options->auth_properties, true, properties, &problem))
			return problem;
		if (!mongoc_uri_set_mechanism_properties(uri, properties))
			return "The option \"auth_properties\" is not valid.";
	}
	return NULL;
}

const char *
mongo_credentials_set(mongoc_uri_t *uri, const MongoConnectionOptions *options)
{
	const char *name = options->auth_mechanism != NULL ? options->auth_mechanism :
		mongoc_uri_get_auth_mechanism(uri);
	const MongoAuthMechanism *mechanism = name != NULL ? mongo_auth_mechanism_named(name) : NULL;
	const char *problem;

	if (options->username == NULL && mechanism == NULL)
		return NULL;
	if (options->username != NULL && !mongoc_uri_set_username(uri, options->username))
		return "The option \"username\" is not valid.";
	if (options->password != NULL && !mongoc_uri_set_password(uri, options->password))
		return "The option \"password\" is not valid.";
	if (mechanism != NULL)
	{
		problem = set_mechanism(uri, options, mechanism);
		if (problem != NULL)
			return problem;
	}
	return set_source(uri, options, mechanism);
}
