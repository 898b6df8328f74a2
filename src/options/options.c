/*-------------------------------------------------------------------------
 *
 * options.c
 *		The table of options of servers, user mappings, tables and columns: how they are parsed,
 *		and what DDL checks.
 *
 * The functions to parse and to check come first, then the table, whose rows name them, then the
 * validator, which calls them by the table.  Other files read valid options by the same table
 * (effective.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options_internal.h"
#include "convert.h"

#include <float.h>
#include <limits.h>

#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/formatting.h"
#include "utils/guc.h"
#include "utils/jsonb.h"

/* --------------------- Parsing the text of an option ---------------------- */

/*
 * Each function parses 'value' into 'field', whose type is the one that it writes, or
 * raises 22023 (parse_port: 22P02 and 22003).  Strings are not copied.
 */

/* Accepts any string, also an empty one. */
static void
parse_string(const MongoOption *option pg_attribute_unused(),
			 const char *value, void *field)
{
	*(const char **) field = value;
}

static void
parse_name(const MongoOption *option, const char *value, void *field)
{
	if (value[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" must not be empty", option->name)));

	*(const char **) field = value;
}

/* More than the levels of MongoDB's documents; functions call themselves for each. */
#define MOST_DOTS	199

static void
parse_path(const MongoOption *option, const char *value, void *field)
{
	size_t		length = strlen(value);
	int			dots = 0;

	for (const char *next = value; (next = strchr(next, '.')) != NULL; next++)
		dots++;
	if (dots > MOST_DOTS || length == 0 || value[0] == '.' || value[length - 1] == '.' ||
		strstr(value, "..") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid path for option \"%s\": \"%s\"", option->name, value),
				 errdetail("A path is up to %d field names with single dots between them, like \"address.city\".", MOST_DOTS + 1)));

	*(const char **) field = value;
}

/* Accepts a boolean in any of PostgreSQL's spellings. */
static void
parse_boolean(const MongoOption *option, const char *value, void *field)
{
	if (!parse_bool(value, (bool *) field))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s requires a Boolean value", option->name),
				 errdetail("\"%s\" is neither true nor false.", value),
				 errhint("Valid values are true, on, yes, 1 and false, off, no, 0.")));
}

/* Accepts a boolean.  If the option is not given, the field has a third value. */
static void
parse_tristate(const MongoOption *option, const char *value, void *field)
{
	bool		given;

	parse_boolean(option, value, &given);
	*(MongoTristate *) field = given ? MONGO_YES : MONGO_NO;
}

static void
parse_integer(const MongoOption *option, const char *value, void *field)
{
	int			number;

	if (!parse_int(value, &number, 0, NULL) ||
		number < option->min || number > option->max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for integer option \"%s\": %s",
						option->name, value),
				 errhint("Valid values are integers from %.0f to %.0f.",
						 option->min, option->max)));

	*(int *) field = number;
}

static void
parse_duration(const MongoOption *option, const char *value, void *field)
{
	const char *hint = NULL;
	int			number;

	if (!parse_int(value, &number, GUC_UNIT_MS, &hint) ||
		number < option->min || number > option->max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": %s", option->name, value),
				 hint ? errhint("%s", _(hint)) :
				 errhint("Valid values are durations from %.0f to %.0f milliseconds.",
						 option->min, option->max)));

	*(int *) field = number;
}

/* Reads a number, with its unit if 'unit' is a GUC_UNIT. */
static void
parse_quantity(const MongoOption *option, const char *value, int unit, const char *kind,
			   void *field)
{
	const char *hint = NULL;
	double		number;

	/* this form of the condition also rejects NaN */
	if (!parse_real(value, &number, unit, &hint) ||
		!(number >= option->min && number <= option->max))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for floating point option \"%s\": %s",
						option->name, value),
				 hint ? errhint("%s", _(hint)) :
				 errhint("Valid values are %s from %g to %g.", kind,
						 option->min, option->max)));

	*(double *) field = number;
}

static void
parse_number(const MongoOption *option, const char *value, void *field)
{
	parse_quantity(option, value, 0, "numbers", field);
}

static void
parse_milliseconds(const MongoOption *option, const char *value, void *field)
{
	parse_quantity(option, value, GUC_UNIT_MS, "milliseconds", field);
}

static void
parse_bytes(const MongoOption *option, const char *value, void *field)
{
	parse_quantity(option, value, GUC_UNIT_BYTE, "numbers of bytes", field);
}

/* Accepts 0 as the default port, as in existing definitions. */
static void
parse_port(const MongoOption *option, const char *value, void *field)
{
	char	   *end;
	long		port;

	errno = 0;
	port = strtol(value, &end, 10);

	if (end == value || *end != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid value for option \"%s\": \"%s\"", option->name, value),
				 errhint("Valid values are integers from %.0f to %.0f.",
						 option->min, option->max)));
	if (errno == ERANGE || port < option->min || port > option->max)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("port value \"%s\" is out of range", value),
				 errhint("Valid values are integers from %.0f to %.0f.",
						 option->min, option->max)));

	*(int *) field = port != 0 ? (int) port : atoi(option->initial);
}

/* Returns the index of 'value' among the option's words, or raises 22023. */
static int
find_choice(const MongoOption *option, const char *value)
{
	StringInfoData valid;

	for (int i = 0; option->choices[i] != NULL; i++)
	{
		if (pg_strcasecmp(option->choices[i], value) == 0)
			return i;
	}

	initStringInfo(&valid);
	for (int i = 0; option->choices[i] != NULL; i++)
		appendStringInfo(&valid, "%s%s", i > 0 ? ", " : "", option->choices[i]);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", option->name, value),
			 errhint("Valid values are: %s.", valid.data)));
}

/* Stores the index of a word, which is the value of its enum. */
static void
parse_choice(const MongoOption *option, const char *value, void *field)
{
	StaticAssertStmt(sizeof(MongoTypeMismatch) == sizeof(int),
					 "enums are read as integers");
	*(int *) field = find_choice(option, value);
}

/* Stores the word itself, as MongoDB spells it. */
static void
parse_word(const MongoOption *option, const char *value, void *field)
{
	*(const char **) field = option->choices[find_choice(option, value)];
}

static const char *const read_preferences[] = {
	"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest", NULL
};

/* In the same order. */
static const mongoc_read_mode_t read_modes[] = {
	MONGOC_READ_PRIMARY, MONGOC_READ_PRIMARY_PREFERRED, MONGOC_READ_SECONDARY,
	MONGOC_READ_SECONDARY_PREFERRED, MONGOC_READ_NEAREST
};

static void
parse_read_mode(const MongoOption *option, const char *value, void *field)
{
	*(mongoc_read_mode_t *) field = read_modes[find_choice(option, value)];
}

/*
 * mongo_read_mode_name
 *		Returns the spelling of option read_preference and of $readPreference; that of "primary"
 *		for 0.
 */
const char *
mongo_read_mode_name(mongoc_read_mode_t mode)
{
	for (size_t i = 0; i < lengthof(read_modes); i++)
	{
		if (read_modes[i] == mode)
			return read_preferences[i];
	}
	return read_preferences[0];
}

/* The values of option bson_type, which are names for $type. */
static const char *const bson_type_choices[] = {
	"objectId", "string", "int", "long", "double", "decimal", "bool", "date", "binData", NULL
};

/* In the same order. */
static const bson_type_t bson_type_codes[] = {
	BSON_TYPE_OID, BSON_TYPE_UTF8, BSON_TYPE_INT32, BSON_TYPE_INT64, BSON_TYPE_DOUBLE,
	BSON_TYPE_DECIMAL128, BSON_TYPE_BOOL, BSON_TYPE_DATE_TIME, BSON_TYPE_BINARY
};

static void
parse_bson_type(const MongoOption *option, const char *value, void *field)
{
	*(bson_type_t *) field = bson_type_codes[find_choice(option, value)];
}

/*-------------------------------------------------------------------------
 * Checks that only DDL makes: URIs, privileges to name files, write concerns,
 * compressors, hints, pipelines, arrays to unwind, keys.
 *-------------------------------------------------------------------------
 */

/*
 * Raises 42501 if the user may not read the database server's files.
 *
 * The backend opens these files with its own privileges, and presents a certificate to whatever
 * host the same user has named.  'reason' is a sentence.
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

static void
check_file(const MongoOption *option, const char *value pg_attribute_unused())
{
	require_file_privilege(option->name, "It names a file on the database server.");
}

/* Raises 22023 for a URI that contains a secret, hiding it from the client and the log. */
static void
refuse_uri(const MongoUriRefusal *refusal)
{
	if (refusal != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"uri\" must not hold %s", refusal->name),
				 errdetail_internal("%s", refusal->detail),
				 errhint("%s", refusal->hint),
				 errhidestmt(true), errhidecontext(true)));
}

/* Returns a sentence if a URI names a file of the database server; else NULL. */
static const char *
file_reason(const mongoc_uri_t *uri)
{
	static const char *const file_options[] = {
		MONGOC_URI_TLSCERTIFICATEKEYFILE, MONGOC_URI_TLSCAFILE,
		/* older names, for which libmongoc 2 has no macros */
		"sslclientcertificatekeyfile", "sslcertificateauthorityfile"
	};

	for (size_t i = 0; i < lengthof(file_options); i++)
	{
		if (mongoc_uri_has_option(uri, file_options[i]))
			return psprintf("Its %s names a file on the database server.", file_options[i]);
	}
	return NULL;
}

/* Raises 22023 unless all compressors in a list of 'length' bytes are available. */
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

static void
check_compressors_option(const MongoOption *option, const char *value)
{
	check_compressors(option->name, value, strlen(value));
}

/* Checks the compressors in a URI: the driver would only warn about an unavailable one. */
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

/* Parses a URI as the driver does.  Resolves no host, not even mongodb+srv. */
static void
check_uri(const MongoOption *option, const char *value)
{
	bson_error_t error;
	const mongoc_uri_t *uri;
	const char *reason;

	/* must be first, as the driver's messages quote parts of the URI */
	refuse_uri(mongo_uri_refusal_of_text(value));

	/* which the driver takes for a scheme that it does not know */
	if (strstr(value, "://") == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"uri\": it does not begin with mongodb:// or mongodb+srv://"),
				 errhint("A URI looks like mongodb://host1:27017,host2:27017/?replicaSet=name or mongodb+srv://host/."),
				 errhidestmt(true), errhidecontext(true)));
	uri = mongo_uri_parse(value, &error);
	if (uri == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"uri\""),
				 errdetail("%s.", mongo_uri_printable(error.message, true)),
				 errhint("A URI looks like mongodb://host1:27017,host2:27017/?replicaSet=name or mongodb+srv://host/."),
				 errhidestmt(true), errhidecontext(true)));
	refuse_uri(mongo_uri_refusal(uri));

	reason = file_reason(uri);
	/* w=0, safe=false, or a negative w */
	if (!mongo_uri_is_acknowledged(uri))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": writes would not be acknowledged",
						option->name),
				 errdetail("With \"w=0\" MongoDB does not tell whether it has written anything."),
				 errhint("Allowed for \"w\" are numbers of members from 1 to 50, \"majority\", and names that the replica set defines.")));
	check_uri_compressors(option->name, value);

	/* for example, about an unknown option, which the driver ignores */
	if (mongo_driver_message[0] != '\0')
		ereport(WARNING,
				(errmsg("option \"uri\": %s",
						mongo_uri_printable(mongo_driver_message, false))));

	if (reason != NULL)
		require_file_privilege(option->name, reason);
}

/* Refuses a URI, or a user name before '@'; a path of a socket may contain one. */
static void
check_address(const MongoOption *option, const char *value)
{
	/* the message does not show the value, as it may contain a password */
	if (strstr(value, "://") != NULL ||
		(strchr(value, '@') != NULL && (value[0] != '/' || strchr(value, ',') != NULL)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": it is a connection string, or a part of one",
						option->name),
				 errhint("Use the option \"uri\" for a connection string, and a user mapping for a user name and a password."),
				 errhidestmt(true), errhidecontext(true)));
}

/* Warns if sessions do not share memory to count connections in. */
static void
check_max_connections(const MongoOption *option, const char *value)
{
	if (strcmp(value, "0") != 0 && !mongo_is_preloaded)
		ereport(WARNING,
				(errmsg("option \"%s\" has no effect yet", option->name),
				 errhint("Add mongo_fdw to shared_preload_libraries and restart PostgreSQL.")));
}

static void
check_mechanism(const MongoOption *option, const char *value)
{
	const MongoAuthMechanism *mechanism = mongo_auth_mechanism_named(value);

	if (mechanism->is_ambient)
		require_file_privilege(option->name, psprintf("%s uses the identity of the database server.",
													  mechanism->name));
}

/* Raises 22023 for invalid properties; the message shows no value. */
static void
check_properties(const MongoOption *option, const char *value, bool secrets)
{
	const char *problem = mongo_auth_properties(value, secrets,
												mongo_bson_create());

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\"", option->name),
				 errdetail_internal("%s", problem),
				 errhint("Properties look like SERVICE_NAME:mongodb,CANONICALIZE_HOST_NAME:true."),
				 errhidestmt(true), errhidecontext(true)));
}

/* Checks properties of a server, which every user can read. */
static void
check_open_properties(const MongoOption *option, const char *value)
{
	check_properties(option, value, false);
}

static void
check_secret_properties(const MongoOption *option, const char *value)
{
	check_properties(option, value, true);
}

/* Refuses w=0, as an unacknowledged write may be lost unnoticed. */
static void
check_write_concern(const MongoOption *option, const char *value)
{
	if (strspn(value, "0123456789") == strlen(value) &&
		(strlen(value) > 2 || atoi(value) < 1 || atoi(value) > 50))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": %s", option->name, value),
				 errhint("Valid values are numbers of members from 1 to 50, \"majority\", and names that the replica set defines.")));
}

static void
check_hint(const MongoOption *option pg_attribute_unused(), const char *value)
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

/* Raises 22023 unless this is {"$name": ...}, and a stage that does not write. */
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

static void
check_pipeline(const MongoOption *option pg_attribute_unused(), const char *value)
{
	Jsonb	   *pipeline = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(value)));
	uint32		nstages = JB_ROOT_COUNT(pipeline);

	if (!JB_ROOT_IS_ARRAY(pipeline) || JB_ROOT_IS_SCALAR(pipeline))
		refuse_pipeline("It is not an array.");
	for (uint32 i = 0; i < nstages; i++)
	{
		JsonbValue *stage = getIthJsonbValueFromContainer(&pipeline->root, i);

		CHECK_FOR_INTERRUPTS();
		if (stage->type != jbvBinary || !JsonContainerIsObject(stage->val.binary.data))
			refuse_pipeline("One of its elements is not an object.");
		check_stage(stage->val.binary.data);
	}
}

/* Raises 22023 with a sentence as DETAIL. */
pg_noreturn static void
refuse_list(const char *option_name, const char *value, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", option_name, value),
			 errdetail_internal("%s", detail)));
}

/* Raises 22023 if an earlier name equals the one at 'place'. */
static void
refuse_repetition(const MongoOption *option, const char *value, List *names, int place)
{
	const char *name = list_nth(names, place);

	CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < place; i++)
	{
		if (strcmp(list_nth(names, i), name) == 0)
			refuse_list(option->name, value, psprintf("\"%s\" is given twice.", name));
	}
}

/* Raises 22023 unless all names are valid paths in MongoDB. */
static void
check_names(const MongoOption *option, const char *value, List *names)
{
	foreach_ptr(const char, name, names)
	{
		const char *ignored;

		parse_path(option, name, &ignored);
		if (name[0] == '$' || strstr(name, ".$") != NULL)
			refuse_list(option->name, value, "A field whose name begins with \"$\" cannot be named.");
	}
}

static void
check_unwind(const MongoOption *option, const char *value)
{
	List	   *paths = mongo_split_list(value);

	check_names(option, value, paths);
	for (int i = 0; i < list_length(paths); i++)
	{
		const char *path = list_nth(paths, i);

		CHECK_FOR_INTERRUPTS();
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

static void
check_ordinality(const MongoOption *option, const char *value)
{
	List	   *names = mongo_split_list(value);

	check_names(option, value, names);
	for (int i = 0; i < list_length(names); i++)
	{
		const char *name = list_nth(names, i);

		if (strchr(name, '.') != NULL || strcmp(name, "_id") == 0)
			refuse_list(option->name, value,
						"An ordinality is the name of a new field, without dots and not \"_id\".");
		refuse_repetition(option, value, names, i);
	}
}

static void
check_key_columns(const MongoOption *option, const char *value)
{
	List	   *names = mongo_split_list(value);

	for (int i = 0; i < list_length(names); i++)
	{
		const char *name = list_nth(names, i);

		if (*name == '\0')
			refuse_list(option->name, value, "A column's name is missing.");
		refuse_repetition(option, value, names, i);
	}
}

/*
 * Checks the options of a table that depend on each other: 'unwind', 'ordinality' and
 * 'unwind_empty' are their values, NULL if not given.  Raises 22023.
 */
static void
check_unwind_options(const char *unwind, const char *ordinality, const char *unwind_empty)
{
	List	   *paths = mongo_split_list(unwind);
	List	   *names = mongo_split_list(ordinality);
	ListCell   *path;
	ListCell   *name;

	if (unwind == NULL && (ordinality != NULL || unwind_empty != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" cannot be given without option \"%s\"",
						ordinality != NULL ? "ordinality" : "unwind_empty", "unwind")));
	if (list_length(names) > list_length(paths))
		refuse_list("ordinality", ordinality, "It has more names than \"unwind\" has paths.");
	foreach(path, paths)
	{
		CHECK_FOR_INTERRUPTS();
		foreach(name, names)
		{
			if (mongo_path_is_under(lfirst(path), lfirst(name)))
				refuse_list("ordinality", ordinality,
							psprintf("\"%s\" contains the elements.", (char *) lfirst(name)));
		}
	}
}

/* Returns the value of an option, or NULL. */
static const char *
given(List *definitions, const char *name)
{
	foreach_node(DefElem, definition, definitions)
	{
		if (strcmp(definition->defname, name) == 0)
			return defGetString(definition);
	}
	return NULL;
}

/* Raises 22023 for options that a change stream excludes, or that need one. */
static void
check_stream_options(List *definitions)
{
	static const struct
	{
		const char *name;
		bool		excluded;
	}			others[] = {
		{"pipeline", true}, {"unwind", true}, {"full_document", false}, {"max_wait", false},
		{"split_events", false}
	};
	bool		is_stream = given(definitions, "change_stream") != NULL;

	for (size_t i = 0; i < lengthof(others); i++)
	{
		if (given(definitions, others[i].name) != NULL && is_stream == others[i].excluded)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 is_stream ?
					 errmsg("options \"%s\" and \"%s\" cannot be given together", "change_stream", others[i].name) :
					 errmsg("option \"%s\" cannot be given without option \"%s\"", others[i].name, "change_stream")));
	}
}

/* ---------------------- The options, one row per option ------------------- */

/* In the order of MongoTypeMismatch. */
static const char *const type_mismatches[] = {"error", "null", "skip", NULL};

/* What is the second is true in MongoTableOptions. */
static const char *const float_sum_places[] = {"local", "remote", NULL};

/* In the order of MongoInsertMode. */
static const char *const insert_modes[] = {"insert", "upsert", "ignore", NULL};

/* In the order of MongoTransactions. */
static const char *const transaction_modes[] = {"auto", "off", "required", NULL};

static const char *const change_streams[] = {"collection", "database", "server", NULL};
static const char *const full_documents[] = {"updateLookup", "whenAvailable", "required", NULL};

/* For IMPORT: the second word sets the boolean in MongoImportOptions to 1. */
static const char *const array_choices[] = {"columns", "tables", NULL};
static const char *const existing_choices[] = {"error", "skip", NULL};
static const char *const naming_choices[] = {"original", "snake_case", NULL};
static const char *const mismatch_choices[] = {"error", "null", NULL};
static const char *const objectid_choices[] = {"objectid", "text", NULL};

static const char *const read_concerns[] = {
	"local", "available", "majority", "linearizable", "snapshot", NULL
};

#define CONNECTION(field) \
	.target = TARGET_CONNECTION, .offset = offsetof(MongoConnectionOptions, field)
#define TABLE(field) \
	.target = TARGET_TABLE, .offset = offsetof(MongoTableOptions, field)
#define COLUMN(field) \
	.target = TARGET_COLUMN, .offset = offsetof(MongoColumnOptions, field)
#define IMPORT(field) \
	.target = TARGET_IMPORT, .offset = offsetof(MongoImportOptions, field)
#define NONE(ignored) \
	.target = TARGET_NONE, .offset = 0
#define BETWEEN(low, high) \
	.min = (low), .max = (high)

const MongoOption mongo_option_table[] =
{
	/* location of the server, and authentication */
	{"uri", ON_SERVER, parse_name, check_uri, CONNECTION(uri)},
	{"address", ON_SERVER, parse_name, check_address, CONNECTION(address), "127.0.0.1"},
	{"port", ON_SERVER, parse_port, NULL, CONNECTION(port), "27017", BETWEEN(0, 65535)},
	{"replica_set", ON_SERVER, parse_name, NULL, CONNECTION(replica_set)},
	{"read_preference", ON_SERVER, parse_read_mode, NULL, CONNECTION(read_mode), .choices = read_preferences},
	{"authentication_database", ON_SERVER | ON_MAPPING, parse_name, NULL, CONNECTION(authentication_database)},
	{"auth_mechanism", ON_SERVER | ON_MAPPING, parse_word, check_mechanism, CONNECTION(auth_mechanism), .choices = mongo_auth_mechanism_names},
	{"auth_properties", ON_SERVER, parse_name, check_open_properties, CONNECTION(auth_properties)},
	{"auth_properties", ON_MAPPING, parse_name, check_secret_properties, CONNECTION(auth_properties)},
	{"username", ON_MAPPING, parse_name, NULL, CONNECTION(username)},
	{"password", ON_MAPPING, parse_string, NULL, CONNECTION(password)},
	{"password_file", ON_MAPPING, parse_name, check_file, CONNECTION(password_file)},

	/* TLS */
	{"ssl", ON_SERVER, parse_tristate, NULL, CONNECTION(ssl)},
	{"pem_file", ON_SERVER | ON_MAPPING, parse_name, check_file, CONNECTION(pem_file)},
	{"pem_pwd", ON_SERVER | ON_MAPPING, parse_string, NULL, CONNECTION(pem_pwd)},
	{"ca_file", ON_SERVER, parse_name, check_file, CONNECTION(ca_file)},
	{"ca_dir", ON_SERVER, parse_name, check_file, CONNECTION(ca_dir)},
	{"crl_file", ON_SERVER, parse_name, check_file, CONNECTION(crl_file)},
	{"weak_cert_validation", ON_SERVER, parse_boolean, NULL, CONNECTION(weak_cert_validation), "false"},

	/* connections */
	{"appname", ON_SERVER, parse_name, NULL, CONNECTION(appname), "mongo_fdw"},
	{"application_name", ON_SERVER, parse_name, NULL, CONNECTION(appname)},
	{"comment", ON_SERVER, parse_name, NULL, CONNECTION(comment)},
	{"connect_timeout_ms", ON_SERVER, parse_integer, NULL, CONNECTION(connect_timeout_ms), BETWEEN(1, INT_MAX)},
	{"server_selection_timeout_ms", ON_SERVER, parse_integer, NULL, CONNECTION(server_selection_timeout_ms), BETWEEN(1, INT_MAX)},
	{"socket_timeout_ms", ON_SERVER, parse_integer, NULL, CONNECTION(socket_timeout_ms), "0", BETWEEN(0, INT_MAX)},
	{"keepalives_idle", ON_SERVER, parse_integer, NULL, CONNECTION(tcp.keepalives_idle), "60", BETWEEN(0, 32767)},
	{"keepalives_interval", ON_SERVER, parse_integer, NULL, CONNECTION(tcp.keepalives_interval), "10", BETWEEN(0, 32767)},
	{"keepalives_count", ON_SERVER, parse_integer, NULL, CONNECTION(tcp.keepalives_count), "6", BETWEEN(0, 127)},
	{"tcp_user_timeout", ON_SERVER, parse_integer, NULL, CONNECTION(tcp.user_timeout), "120000", BETWEEN(0, INT_MAX)},
	{"compressors", ON_SERVER, parse_name, check_compressors_option, CONNECTION(compressors)},
	{"keep_connections", ON_SERVER, parse_boolean, NULL, CONNECTION(keep_connections), "true"},
	{"async_connections", ON_SERVER, parse_integer, NULL, CONNECTION(async_connections), "4", BETWEEN(1, 1000)},
	{"max_connections", ON_SERVER, parse_integer, check_max_connections, CONNECTION(max_connections), "0", BETWEEN(0, 100000)},
	{"idle_timeout", ON_SERVER, parse_duration, NULL, CONNECTION(idle_timeout), "0", BETWEEN(0, INT_MAX)},

	/* the collection */
	{"database", ON_TABLE, parse_name, NULL, TABLE(database), "test"},
	{"collection", ON_TABLE, parse_name, NULL, TABLE(collection)},
	{"pipeline", ON_TABLE, parse_name, check_pipeline, TABLE(pipeline), .longest = 16 * 1024 * 1024},
	{"change_stream", ON_TABLE, parse_word, NULL, TABLE(change_stream), .choices = change_streams},
	{"full_document", ON_TABLE, parse_word, NULL, TABLE(full_document), "updateLookup", .choices = full_documents},
	{"max_wait", ON_TABLE, parse_duration, NULL, TABLE(max_wait), "0", BETWEEN(0, INT_MAX)},
	{"split_events", ON_TABLE, parse_boolean, NULL, TABLE(split_events), "false"},
	{"unwind", ON_TABLE, parse_name, check_unwind, TABLE(unwind)},
	{"ordinality", ON_TABLE, parse_name, check_ordinality, TABLE(ordinality)},
	{"unwind_empty", ON_TABLE, parse_boolean, NULL, TABLE(unwind_empty), "false"},
	{"allow_javascript", ON_SERVER, parse_boolean, NULL, TABLE(allow_javascript), "false"},

	/* planning */
	{"estimated_rows", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(estimated_rows), "-1", BETWEEN(0, 1e15)},
	{"use_remote_estimate", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(use_remote_estimate), "false"},
	{"fdw_startup_cost", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(fdw_startup_cost), "25", BETWEEN(0, 1e15)},
	{"fdw_tuple_cost", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(fdw_tuple_cost), "0.1", BETWEEN(0, 1e15)},
	{"remote_parallelism", ON_SERVER | ON_TABLE, mongo_parse_obsolete, NULL, NONE(obsolete)},
	{"parallel_field", ON_TABLE, mongo_parse_obsolete, NULL, NONE(obsolete)},
	{"fdw_lookup_cost", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(fdw_lookup_cost), "5", BETWEEN(0, 1e15)},
	{"round_trip_time", ON_SERVER, parse_milliseconds, NULL, TABLE(round_trip_time), "-1", BETWEEN(0, 60000)},
	{"bandwidth", ON_SERVER, parse_bytes, NULL, TABLE(bandwidth), "-1", BETWEEN(1000, 1e12)},
	{"hint", ON_TABLE, parse_name, check_hint, TABLE(hint)},
	{"enable_join_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_join_pushdown), "true"},
	{"enable_aggregate_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_aggregate_pushdown), "true"},
	{"enable_order_by_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_order_by_pushdown), "true"},
	{"float_sums", ON_SERVER | ON_TABLE, parse_choice, NULL, TABLE(float_sums_remote), "local", .choices = float_sum_places},
	{"pushdown_disable", ON_SERVER | ON_TABLE, mongo_parse_features, NULL, TABLE(pushdown_disable)},

	/* reading */
	{"read_preference", ON_TABLE, parse_read_mode, NULL, TABLE(read_mode), .choices = read_preferences},
	{"comment", ON_TABLE, parse_name, NULL, TABLE(comment)},
	{"fetch_size", ON_SERVER | ON_TABLE, parse_integer, NULL, TABLE(fetch_size), BETWEEN(1, INT_MAX)},
	{"type_mismatch", ON_SERVER | ON_TABLE, parse_choice, NULL, TABLE(type_mismatch), "error", .choices = type_mismatches},
	{"max_time_ms", ON_SERVER | ON_TABLE, parse_duration, NULL, TABLE(max_time_ms), "0", BETWEEN(0, INT_MAX)},
	{"canonical_json", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(canonical_json), "false"},
	{"count_from_metadata", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(count_from_metadata), "false"},
	{"analyze_sampling", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(analyze_sampling), "true"},
	{"async_capable", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(async_capable), "true"},

	/* writing */
	{"updatable", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(updatable), "true"},
	{"truncatable", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(truncatable), "true"},
	{"batch_size", ON_SERVER | ON_TABLE, parse_integer, NULL, TABLE(batch_size), "10000", BETWEEN(1, 100000)},
	{"write_null", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(write_null), "false"},
	{"generated_id", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(generated_id), "false"},
	{"insert_mode", ON_TABLE, parse_choice, NULL, TABLE(insert_mode), "insert", .choices = insert_modes},
	{"key_columns", ON_TABLE, parse_name, check_key_columns, TABLE(key_columns)},
	{"transactions", ON_SERVER, parse_choice, NULL, CONNECTION(transactions), "auto", .choices = transaction_modes},
	{"write_concern", ON_SERVER, parse_name, check_write_concern, CONNECTION(write_concern)},
	{"read_concern", ON_SERVER, parse_word, NULL, CONNECTION(read_concern), .choices = read_concerns},

	/* columns; a fork of the older wrapper has column_name for path */
	{"path", ON_COLUMN, parse_path, NULL, COLUMN(path)},
	{"column_name", ON_COLUMN, parse_path, NULL, COLUMN(path)},
	{"indexed", ON_COLUMN, parse_tristate, NULL, COLUMN(indexed)},
	{"bson_type", ON_COLUMN, parse_bson_type, NULL, COLUMN(bson_type), .choices = bson_type_choices},
	{"type_mismatch", ON_COLUMN, parse_choice, NULL, COLUMN(type_mismatch), .choices = type_mismatches},
	{"parameter", ON_COLUMN, parse_name, NULL, COLUMN(parameter)},

	{"sample_size", ON_IMPORT, parse_integer, NULL, IMPORT(sample_size), "1000", BETWEEN(1, INT_MAX)},
	{"nesting", ON_IMPORT, parse_integer, NULL, IMPORT(nesting), "1", BETWEEN(0, 100)},
	{"import_views", ON_IMPORT, parse_boolean, NULL, IMPORT(import_views), "true"},
	{"lower_case_names", ON_IMPORT, parse_boolean, NULL, IMPORT(lower_case_names), "false"},
	{"names", ON_IMPORT, parse_choice, NULL, IMPORT(snake_case), "original", .choices = naming_choices},
	{"type_mismatch", ON_IMPORT, parse_choice, NULL, IMPORT(mismatch_null), "error", .choices = mismatch_choices},
	{"arrays", ON_IMPORT, parse_choice, NULL, IMPORT(array_tables), "columns", .choices = array_choices},
	{"if_exists", ON_IMPORT, parse_choice, NULL, IMPORT(skip_existing), "error", .choices = existing_choices},
	{"objectid", ON_IMPORT, parse_choice, NULL, IMPORT(objectid_as_text), "objectid", .choices = objectid_choices},
};

const int	mongo_option_count = lengthof(mongo_option_table);

/*
 * mongo_find_option
 *		Returns an option of objects of this kind (ON_SERVER, ...), or NULL.
 */
const MongoOption *
mongo_find_option(const char *name, int object)
{
	for (size_t i = 0; i < lengthof(mongo_option_table); i++)
	{
		if ((mongo_option_table[i].objects & object) != 0 &&
			strcmp(mongo_option_table[i].name, name) == 0)
			return &mongo_option_table[i];
	}
	return NULL;
}

/*-------------------------------------------------------------------------
 * The validator, which CREATE and ALTER call.  It accesses no network.
 *-------------------------------------------------------------------------
 */

/* Catalogs whose rows have options, and names of their objects for hints. */
static const struct
{
	Oid			catalog;
	int			object;
	const char *name;
}			objects[] =
{
	{ForeignServerRelationId, ON_SERVER, "servers"},
	{UserMappingRelationId, ON_MAPPING, "user mappings"},
	{ForeignTableRelationId, ON_TABLE, "foreign tables"},
	{AttributeRelationId, ON_COLUMN, "columns"},
};

/* Pairs of options that specify the same. */
static const struct
{
	const char *first;
	const char *second;
}			contradictory_options[] =
{
	{"uri", "address"},
	{"uri", "port"},
	{"uri", "replica_set"},
	{"uri", "read_preference"},
	{"uri", "ssl"},
	{"uri", "write_concern"},
	{"uri", "read_concern"},
	{"uri", "compressors"},
	{"password", "password_file"},
	{"appname", "application_name"},
	{"path", "column_name"},
};

/* Names that postgres_fdw's options have, and libpq's. */
static const struct
{
	const char *other;
	const char *name;
}			names_elsewhere[] =
{
	{"host", "address"},
	{"user", "username"},
	{"dbname", "database"},
	{"table_name", "collection"},
};

/* Returns the kinds of objects that have an option, as text; or NULL. */
static const char *
owners_of_option(const char *name)
{
	const char *owners = NULL;

	for (size_t i = 0; i < lengthof(objects); i++)
	{
		if (mongo_find_option(name, objects[i].object) != NULL)
			owners = owners == NULL ? objects[i].name :
				psprintf("%s and %s", owners, objects[i].name);
	}
	return owners;
}

/* Returns the HINT about an unknown option: what was probably meant, or else all that are valid. */
static const char *
valid_options(const char *name, int object)
{
	List	   *names = NIL;
	StringInfoData listed;
	const char *meant;

	initStringInfo(&listed);
	for (int i = 0; i < mongo_option_count; i++)
	{
		if ((mongo_option_table[i].objects & object) == 0 ||
			mongo_option_table[i].parse == mongo_parse_obsolete)
			continue;
		names = lappend(names, unconstify(char *, mongo_option_table[i].name));
		appendStringInfo(&listed, "%s%s", listed.len > 0 ? ", " : "", mongo_option_table[i].name);
	}
	meant = mongo_nearest_name(names, name);
	return meant != NULL ? psprintf("Perhaps the option \"%s\" is meant.", meant) :
		psprintf("Valid options in this context are: %s", listed.data);
}

/*
 * mongo_require_option
 *		Returns an option of objects of this kind.  Raises HV00D if there is none, with a HINT
 *		about valid options.
 */
const MongoOption *
mongo_require_option(const char *name, int object)
{
	const MongoOption *option = mongo_find_option(name, object);
	const char *ours = NULL;
	const char *owners;

	if (option != NULL)
		return option;
	owners = owners_of_option(name);
	for (size_t i = 0; i < lengthof(names_elsewhere); i++)
	{
		if (strcmp(names_elsewhere[i].other, name) == 0)
			ours = names_elsewhere[i].name;
	}
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 object == 0 ? errhint("There are no valid options in this context.") :
			 ours != NULL ? errhint("Use the option \"%s\" of %s.", ours, owners_of_option(ours)) :
			 owners != NULL ? errhint("It is an option of %s.", owners) :
			 errhint("%s", valid_options(name, object))));
}

/* Raises 22023 if two options specify the same. */
static void
check_contradictions(List *definitions)
{
	for (size_t i = 0; i < lengthof(contradictory_options); i++)
	{
		const char *first = contradictory_options[i].first;
		const char *second = contradictory_options[i].second;

		if (given(definitions, first) != NULL && given(definitions, second) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("options \"%s\" and \"%s\" cannot be given together",
							first, second),
					 errhint("Remove \"%s\"; \"%s\" can say the same.",
							 second, first)));
	}
}

/* Raises 54000 for a text that takes long to parse, which nothing may interrupt. */
static void
check_length(const MongoOption *option, const char *value)
{
	size_t		longest = option->longest > 0 ? option->longest : MONGO_LONGEST_OPTION;

	if (strlen(value) > longest)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("value of option \"%s\" is too long", option->name),
				 errdetail("It has %zu bytes, and may have %zu.", strlen(value), longest),
				 errhidestmt(true), errhidecontext(true)));
}

/* The options that name files for TLS, and so imply it. */
static const char *const tls_files[] = {"pem_file", "ca_file", "ca_dir", "crl_file"};

/*
 * mongo_uses_tls
 *		Tells whether a connection by 'options' and the option uri, parsed, has TLS: if 'ssl' or the
 *		URI says so, or if neither does and there are files for it.
 */
bool
mongo_uses_tls(const MongoConnectionOptions *options, const mongoc_uri_t *uri)
{
	bool		has_file = false;

	if (options->ssl != MONGO_NOT_GIVEN)
		return options->ssl == MONGO_YES;
	for (size_t i = 0; i < lengthof(tls_files); i++)
		has_file |= *(const char *const *)
			((const char *) options + mongo_find_option(tls_files[i], ON_SERVER)->offset) != NULL;
	return mongoc_uri_get_tls(uri) || (has_file && !mongoc_uri_has_option(uri, MONGOC_URI_TLS));
}

/* Warns that a server's files for TLS have no effect. */
static void
warn_of_files(List *definitions)
{
	const char *ssl = given(definitions, "ssl");
	const char *text = given(definitions, "uri");
	bson_error_t error;
	const mongoc_uri_t *uri = text != NULL ? mongo_uri_parse(text, &error) : NULL;
	bool		use = true;

	if (ssl != NULL)
		(void) parse_bool(ssl, &use);
	else if (uri != NULL && mongoc_uri_has_option(uri, MONGOC_URI_TLS))
		use = mongoc_uri_get_tls(uri);
	for (size_t i = 0; i < lengthof(tls_files) && !use; i++)
	{
		if (given(definitions, tls_files[i]) != NULL)
			ereport(WARNING,
					(errmsg("option \"%s\" has no effect", tls_files[i]),
					 errdetail("The option \"%s\" is false, so that nothing is encrypted.",
							   ssl != NULL ? "ssl" : "tls\" of \"uri"),
					 errhint("Set the option \"ssl\" to true.")));
	}
}

PG_FUNCTION_INFO_V1(mongo_fdw_validator);

/*
 * mongo_fdw_validator
 *		Raises HV00D for options that are unknown or belong elsewhere, and the errors of the
 *		functions above for those that are invalid or contradictory.
 */
Datum
mongo_fdw_validator(PG_FUNCTION_ARGS)
{
	List	   *definitions = untransformRelOptions(PG_GETARG_DATUM(0));
	int			object = 0;		/* the wrapper itself, which has no options */

	for (size_t i = 0; i < lengthof(objects); i++)
	{
		if (objects[i].catalog == PG_GETARG_OID(1))
			object = objects[i].object;
	}

	foreach_node(DefElem, definition, definitions)
	{
		const MongoOption *option = mongo_require_option(definition->defname, object);
		const char *value = defGetString(definition);
		union
		{
			const char *string;
			double		number;
			int			integer;
			uint32		features;
			mongoc_read_mode_t read_mode;
			bool		boolean;
		}			ignored;

		CHECK_FOR_INTERRUPTS();
		check_length(option, value);
		option->parse(option, value, &ignored);
		if (option->check != NULL)
			option->check(option, value);
	}

	check_contradictions(definitions);
	warn_of_files(definitions);
	if (object == ON_TABLE)
		check_stream_options(definitions);
	if (object == ON_TABLE)
		check_unwind_options(given(definitions, "unwind"),
							 given(definitions, "ordinality"),
							 given(definitions, "unwind_empty"));

	PG_RETURN_VOID();
}
