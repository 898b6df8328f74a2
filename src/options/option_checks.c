/*-------------------------------------------------------------------------
 *
 * option_checks.c
 *		What DDL checks of an option's value beyond its form: URIs, who may name
 *		files, write concerns, compressors, hints, pipelines, arrays to unwind, keys.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "option_checks.h"

#include "auth_mechanism.h"
#include "bson_memory.h"
#include "catalog/pg_authid.h"
#include "compression.h"
#include "driver_log.h"
#include "miscadmin.h"
#include "option_values.h"
#include "path_list.h"
#include "settings.h"
#include "uri_text.h"
#include "utils/acl.h"
#include "utils/fmgrprotos.h"
#include "utils/formatting.h"
#include "utils/jsonb.h"

/*
 * require_file_privilege
 *		Only who may read the database server's files may name one.
 *
 * The backend opens these files with its own rights, and shows a certificate
 * to whatever host the same user has named.  'reason' is a sentence.
 */
static void
require_file_privilege(const char *option_name, const char *reason)
{
	if (!has_privs_of_role(GetUserId(), ROLE_PG_READ_SERVER_FILES))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set option \"%s\"", option_name),
				 errdetail_internal("%s", reason),
				 errhint("Only superusers and members of pg_read_server_files may create or alter an object that has this option.")));
}

void
mongo_check_file(const MongoOption *option, const char *value pg_attribute_unused())
{
	require_file_privilege(option->name, "It names a file on the database server.");
}

/*
 * refuse_secret
 *		Raise for a URI that holds a secret, showing it neither to the client nor
 *		in the server's log.
 */
static void
refuse_secret(const MongoUriSecret *secret)
{
	if (secret != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"uri\" must not hold %s", secret->name),
				 errdetail("Options of a server can be read by every user of the database."),
				 errhint("%s", secret->hint),
				 errhidestmt(true), errhidecontext(true)));
}

/*
 * ambient_reason
 *		Why a mechanism needs the privilege, as a sentence; NULL if it does not.
 */
static const char *
ambient_reason(const char *mechanism)
{
	const MongoAuthMechanism *known = mongo_auth_mechanism_named(mechanism);

	return known == NULL || !known->is_ambient ? NULL :
		psprintf("%s uses the identity of the database server.", known->name);
}

/*
 * uri_privilege_reason
 *		What in a URI makes the backend use its own files or identity, as a
 *		sentence; NULL when nothing does.
 */
static const char *
uri_privilege_reason(const mongoc_uri_t *uri)
{
	static const char *const file_options[] = {
		MONGOC_URI_TLSCERTIFICATEKEYFILE, MONGOC_URI_TLSCAFILE,
		/* older names; libmongoc 2 has no macros for them */
		"sslclientcertificatekeyfile", "sslcertificateauthorityfile"
	};
	const char *mechanism = mongoc_uri_get_auth_mechanism(uri);

	for (size_t i = 0; i < lengthof(file_options); i++)
	{
		if (mongoc_uri_has_option(uri, file_options[i]))
			return psprintf("Its %s names a file on the database server.",
							file_options[i]);
	}
	return mechanism != NULL ? ambient_reason(mechanism) : NULL;
}

/*
 * check_compressors
 *		Each of a list of names, 'length' bytes in all, must be there.
 */
static void
check_compressors(const char *option_name, const char *list, size_t length)
{
	const char *end = list + length;

	for (;;)
	{
		const char *comma = memchr(list, ',', end - list);
		size_t		size = (comma ? comma : end) - list;

		if (mongo_compressor_named(list, size) == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid value for option \"%s\": there is no compressor \"%s\"",
							option_name, pnstrdup(list, size)),
					 errhint("Valid values are names from this list, separated by commas, the preferred one first: %s.",
							 mongo_compressor_names())));
		if (comma == NULL)
			return;
		list = comma + 1;
	}
}

void
mongo_check_compressors(const MongoOption *option, const char *value)
{
	check_compressors(option->name, value, strlen(value));
}

/* The driver would only warn of a compressor that it does not have. */
static void
check_uri_compressors(const char *option_name, const char *uri)
{
	char	   *folded = asc_tolower(uri, strlen(uri));
	const char *key = "compressors=";

	for (char *p = strpbrk(folded, "?&"); p != NULL; p = strpbrk(p + 1, "?&"))
	{
		char	   *value = p + 1 + strlen(key);

		if (strncmp(p + 1, key, strlen(key)) == 0)
			check_compressors(option_name, value, strcspn(value, "&"));
	}
}

/*
 * check_uri_acknowledged
 *		Refuse w=0 (also said as safe=false, or a negative w).
 *
 * MongoDB would not answer to writes then, so that one that fails, by a duplicate
 * key, say, would be reported as done.
 */
static void
check_uri_acknowledged(const char *option_name, bool acknowledged)
{
	if (!acknowledged)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": writes would not be acknowledged",
						option_name),
				 errdetail("With \"w=0\" MongoDB does not tell whether it has written anything."),
				 errhint("Allowed for \"w\" are numbers of members from 1 to 50, \"majority\", and names that the replica set defines.")));
}

/*
 * mongo_check_uri parses as the driver will.  No host is looked up, not even for
 * mongodb+srv.
 */
void
mongo_check_uri(const MongoOption *option, const char *value)
{
	bson_error_t error;
	const mongoc_uri_t *uri;
	const char *reason;

	/* first, as the driver's messages repeat what they complain about */
	refuse_secret(mongo_uri_secret_in_text(value));

	uri = mongo_uri_parse(value, &error);
	if (uri == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"uri\""),
				 errdetail("%s.", mongo_uri_printable_error(&error)),
				 errhint("A URI looks like mongodb://host1:27017,host2:27017/?replicaSet=name or mongodb+srv://host/."),
				 errhidestmt(true), errhidecontext(true)));
	refuse_secret(mongo_uri_secret(uri));

	reason = uri_privilege_reason(uri);
	check_uri_acknowledged(option->name, mongo_uri_is_acknowledged(uri));
	check_uri_compressors(option->name, value);

	/* a misspelt option of the URI, say, which the driver passes over */
	if (mongo_last_driver_message()[0] != '\0')
		ereport(WARNING,
				(errmsg("option \"uri\": %s",
						mongo_uri_printable_warning(mongo_last_driver_message()))));

	if (reason != NULL)
		require_file_privilege(option->name, reason);
}

/* mongo_check_address: what does it look like that is no host? */
void
mongo_check_address(const MongoOption *option, const char *value)
{
	/* the value is not shown: it may hold a password */
	if (strstr(value, "://") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": it is a connection string",
						option->name),
				 errhint("Use the option \"uri\" for a connection string, and a user mapping for a user name and a password."),
				 errhidestmt(true), errhidecontext(true)));
}

/* mongo_check_max_connections: sessions know of each other by shared memory alone. */
void
mongo_check_max_connections(const MongoOption *option, const char *value)
{
	if (strcmp(value, "0") != 0 && !mongo_is_preloaded)
		ereport(WARNING,
				(errmsg("option \"%s\" has no effect yet", option->name),
				 errhint("Add mongo_fdw to shared_preload_libraries and restart PostgreSQL.")));
}

void
mongo_check_mechanism(const MongoOption *option, const char *value)
{
	const char *reason = ambient_reason(value);

	if (reason != NULL)
		require_file_privilege(option->name, reason);
}

/* check_properties: raise for what is wrong with them, showing no value. */
static void
check_properties(const MongoOption *option, const char *value, bool secrets)
{
	const char *problem;

	if (!mongo_auth_properties(value, secrets, bson_create_in(CurrentMemoryContext), &problem))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\"", option->name),
				 errdetail_internal("%s", problem),
				 errhint("Properties look like SERVICE_NAME:mongodb,CANONICALIZE_HOST_NAME:true."),
				 errhidestmt(true), errhidecontext(true)));
}

/* mongo_check_open_properties: those of a server, which everyone can read. */
void
mongo_check_open_properties(const MongoOption *option, const char *value)
{
	check_properties(option, value, false);
}

void
mongo_check_properties(const MongoOption *option, const char *value)
{
	check_properties(option, value, true);
}

/* mongo_check_write_concern: a write that nobody acknowledges may be lost unseen. */
void
mongo_check_write_concern(const MongoOption *option, const char *value)
{
	if (strspn(value, "0123456789") == strlen(value) &&
		(strlen(value) > 2 || atoi(value) < 1 || atoi(value) > 50))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": %s", option->name, value),
				 errhint("Valid values are numbers of members from 1 to 50, \"majority\", and names that the replica set defines.")));
}

void
mongo_check_hint(const MongoOption *option pg_attribute_unused(), const char *value)
{
	if (value[0] == '{')
		DirectFunctionCall1(json_in, CStringGetDatum(value));
}

pg_noreturn static void
refuse_pipeline(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"pipeline\""),
			 errdetail_internal("%s", detail),
			 errhint("A pipeline is a JSON array of stages, as in [{\"$match\": {\"status\": \"paid\"}}, {\"$unwind\": \"$lines\"}].")));
}

/* check_stage: {"$name": ...}, which reads. */
static void
check_stage(JsonbContainer *stage)
{
	static const char *const writing_stages[] = {"$out", "$merge"};
	JsonbIterator *iterator = JsonbIteratorInit(stage);
	JsonbValue	name;

	if (JsonbIteratorNext(&iterator, &name, true) != WJB_BEGIN_OBJECT ||
		name.val.object.nPairs != 1 ||
		JsonbIteratorNext(&iterator, &name, true) != WJB_KEY ||
		name.val.string.len == 0 || name.val.string.val[0] != '$')
		refuse_pipeline("A stage is an object whose only member is named as the stage is, such as \"$match\".");
	for (size_t i = 0; i < lengthof(writing_stages); i++)
	{
		if ((size_t) name.val.string.len == strlen(writing_stages[i]) &&
			memcmp(name.val.string.val, writing_stages[i], name.val.string.len) == 0)
			refuse_pipeline(psprintf("A table's pipeline cannot write, as %s does.",
									 writing_stages[i]));
	}
}

void
mongo_check_pipeline(const MongoOption *option pg_attribute_unused(), const char *value)
{
	Jsonb	   *pipeline = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(value)));
	uint32		nstages = JB_ROOT_COUNT(pipeline);

	if (!JB_ROOT_IS_ARRAY(pipeline) || JB_ROOT_IS_SCALAR(pipeline))
		refuse_pipeline("It is not an array.");
	for (uint32 i = 0; i < nstages; i++)
	{
		JsonbValue *stage = getIthJsonbValueFromContainer(&pipeline->root, i);

		if (stage->type != jbvBinary || !JsonContainerIsObject(stage->val.binary.data))
			refuse_pipeline("One of its elements is not an object.");
		check_stage(stage->val.binary.data);
	}
}

/* refuse_list: 'detail' is a sentence. */
pg_noreturn static void
refuse_list(const char *option_name, const char *value, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", option_name, value),
			 errdetail_internal("%s", detail)));
}

/* check_names: each a path that MongoDB can name. */
static void
check_names(const MongoOption *option, const char *value, List *names)
{
	ListCell   *cell;

	foreach(cell, names)
	{
		const char *name = lfirst(cell);
		const char *ignored;

		mongo_parse_path(option, name, &ignored);
		if (name[0] == '$' || strstr(name, ".$") != NULL)
			refuse_list(option->name, value, "A field whose name begins with \"$\" cannot be named.");
	}
}

void
mongo_check_unwind(const MongoOption *option, const char *value)
{
	List	   *paths = mongo_split_list(value);

	check_names(option, value, paths);
	for (int i = 0; i < list_length(paths); i++)
	{
		const char *path = list_nth(paths, i);

		if (mongo_path_is_under(path, "_id"))
			refuse_list(option->name, value, "An _id has no elements.");
		for (int j = 0; j < i; j++)
		{
			const char *earlier = list_nth(paths, j);

			if (strcmp(path, earlier) != 0 && mongo_path_is_under(earlier, path))
				refuse_list(option->name, value,
							psprintf("\"%s\" must stand before \"%s\", which is in its elements.",
									 path, earlier));
		}
	}
}

void
mongo_check_ordinality(const MongoOption *option, const char *value)
{
	List	   *names = mongo_split_list(value);

	check_names(option, value, names);
	for (int i = 0; i < list_length(names); i++)
	{
		const char *name = list_nth(names, i);

		if (strchr(name, '.') != NULL || strcmp(name, "_id") == 0)
			refuse_list(option->name, value,
						"An ordinality is the name of a field that the documents need not have, without dots.");
		for (int j = 0; j < i; j++)
		{
			if (strcmp(list_nth(names, j), name) == 0)
				refuse_list(option->name, value, psprintf("\"%s\" is given twice.", name));
		}
	}
}

void
mongo_check_key_columns(const MongoOption *option, const char *value)
{
	List	   *names = mongo_split_list(value);

	for (int i = 0; i < list_length(names); i++)
	{
		const char *name = list_nth(names, i);

		if (*name == '\0')
			refuse_list(option->name, value, "A column's name is missing.");
		for (int j = 0; j < i; j++)
		{
			if (strcmp(list_nth(names, j), name) == 0)
				refuse_list(option->name, value, psprintf("\"%s\" is given twice.", name));
		}
	}
}

void
mongo_check_unwind_options(const char *unwind, const char *ordinality, const char *unwind_empty)
{
	List	   *paths = mongo_split_list(unwind);
	List	   *names = mongo_split_list(ordinality);
	ListCell   *path;
	ListCell   *name;

	if (unwind == NULL && (ordinality != NULL || unwind_empty != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" cannot be given without option \"unwind\"",
						ordinality != NULL ? "ordinality" : "unwind_empty")));
	if (list_length(names) > list_length(paths))
		refuse_list("ordinality", ordinality, "It has more names than \"unwind\" has paths.");
	foreach(path, paths)
	{
		foreach(name, names)
		{
			if (mongo_path_is_under(lfirst(path), lfirst(name)))
				refuse_list("ordinality", ordinality,
							psprintf("\"%s\" is where the elements are.", (char *) lfirst(name)));
		}
	}
}
