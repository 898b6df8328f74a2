/*-------------------------------------------------------------------------
 *
 * validator.c
 *		Checking the options of DDL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options_internal.h"
#include "common.h"

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
#include "utils/jsonb.h"
#include "utils/varlena.h"

static void mongo_check_unwind_options(const char *unwind, const char *ordinality,
									   const char *unwind_empty);

/*-------------------------------------------------------------------------
 * What CREATE and ALTER may say: refuse options that are unknown, out of
 * place, bad or contradictory.
 *
 * Runs at DDL time and never touches the network.
 *-------------------------------------------------------------------------
 */

/* The catalogs whose rows carry options, and what hints call their objects. */
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

/* Options that say the same thing twice when both are given. */
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

/* given: the value of an option, or NULL. */
static const char *
given(List *definitions, const char *name)
{
	ListCell   *cell;

	foreach(cell, definitions)
	{
		if (strcmp(lfirst_node(DefElem, cell)->defname, name) == 0)
			return defGetString(lfirst(cell));
	}
	return NULL;
}

/*
 * closest_option
 *		The name that 'name' was probably meant to be, or NULL.
 *
 * A third of the letters may differ, and at most four, so that a hint is given
 * only when it helps.  Of two that are as close it is the first.
 */
static const char *
closest_option(const char *name, int object)
{
	const char *closest = NULL;
	int			length = (int) strlen(name);
	int			allowed = Min(4, length / 3);

	/* varstr_levenshtein_less_equal() raises for more than 255 characters */
	for (int i = 0; length <= NAMEDATALEN && allowed >= 0 && i < mongo_option_count; i++)
	{
		const char *candidate = mongo_option_table[i].name;
		int			distance;

		if ((mongo_option_table[i].objects & object) == 0)
			continue;
		distance = varstr_levenshtein_less_equal(name, length, candidate,
												 (int) strlen(candidate), 1, 1, 1,
												 allowed, true);
		if (distance <= allowed)
		{
			closest = candidate;
			allowed = distance - 1;
		}
	}
	return closest;
}

/* owners_of_option: "servers and user mappings", which have it; NULL: nothing has. */
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

/* options_of_import: as a list. */
static const char *
options_of_import(void)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < mongo_option_count; i++)
	{
		if (mongo_option_table[i].objects == ON_IMPORT)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", mongo_option_table[i].name);
	}
	return names.data;
}

const MongoOption *
mongo_require_option(const char *name, int object)
{
	const MongoOption *option = mongo_find_option(name, object);
	const char *owners;
	const char *closest;

	if (option != NULL)
		return option;
	owners = owners_of_option(name);
	closest = closest_option(name, object);
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 object == 0 ? errhint("There are no valid options in this context.") :
			 owners != NULL ? errhint("It is an option of %s.", owners) :
			 closest != NULL ? errhint("Perhaps you meant the option \"%s\".", closest) :
			 object == ON_IMPORT ? errhint("Valid options in this context are: %s",
										   options_of_import()) : 0));
}

/* check_contradictions: raise for options of which one makes the other needless. */
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

/*
 * mongo_fdw_validator
 *		Refuse options that are unknown, out of place, bad or contradictory.
 */
PG_FUNCTION_INFO_V1(mongo_fdw_validator);

Datum
mongo_fdw_validator(PG_FUNCTION_ARGS)
{
	List	   *definitions = untransformRelOptions(PG_GETARG_DATUM(0));
	int			object = 0;		/* of the wrapper itself, which takes none */
	ListCell   *cell;

	for (size_t i = 0; i < lengthof(objects); i++)
	{
		if (objects[i].catalog == PG_GETARG_OID(1))
			object = objects[i].object;
	}

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);
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

		option->parse(option, value, &ignored);
		if (option->check != NULL)
			option->check(option, value);
	}

	check_contradictions(definitions);
	if (object == ON_TABLE)
		mongo_check_unwind_options(given(definitions, "unwind"),
								   given(definitions, "ordinality"),
								   given(definitions, "unwind_empty"));

	PG_RETURN_VOID();
}

/*-------------------------------------------------------------------------
 * What DDL checks of an option's value beyond its form: URIs, who may name
 * files, write concerns, compressors, hints, pipelines, arrays to unwind, keys.
 *-------------------------------------------------------------------------
 */

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
 * refuse_uri
 *		Raise for a URI that holds what it must not, showing it neither to the client nor
 *		in the server's log.
 */
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

/* file_reason: what in a URI names a file of the server's, as a sentence; NULL: nothing. */
static const char *
file_reason(const mongoc_uri_t *uri)
{
	static const char *const file_options[] = {
		MONGOC_URI_TLSCERTIFICATEKEYFILE, MONGOC_URI_TLSCAFILE,
		/* older names; libmongoc 2 has no macros for them */
		"sslclientcertificatekeyfile", "sslcertificateauthorityfile"
	};

	for (size_t i = 0; i < lengthof(file_options); i++)
	{
		if (mongoc_uri_has_option(uri, file_options[i]))
			return psprintf("Its %s names a file on the database server.", file_options[i]);
	}
	return NULL;
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
	refuse_uri(mongo_uri_refusal_of_text(value));

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
	/* as w=0, safe=false, or a negative w */
	if (!mongo_uri_is_acknowledged(uri))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": writes would not be acknowledged",
						option->name),
				 errdetail("With \"w=0\" MongoDB does not tell whether it has written anything."),
				 errhint("Allowed for \"w\" are numbers of members from 1 to 50, \"majority\", and names that the replica set defines.")));
	check_uri_compressors(option->name, value);

	/* a misspelt option of the URI, say, which the driver passes over */
	if (mongo_last_driver_message()[0] != '\0')
		ereport(WARNING,
				(errmsg("option \"uri\": %s",
						mongo_uri_printable(mongo_last_driver_message(), false))));

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
	const MongoAuthMechanism *mechanism = mongo_auth_mechanism_named(value);

	if (mechanism->is_ambient)
		require_file_privilege(option->name, psprintf("%s uses the identity of the database server.",
													  mechanism->name));
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

/* refuse_repetition: of the name at a place by an earlier one. */
static void
refuse_repetition(const MongoOption *option, const char *value, List *names, int place)
{
	const char *name = list_nth(names, place);

	for (int i = 0; i < place; i++)
	{
		if (strcmp(list_nth(names, i), name) == 0)
			refuse_list(option->name, value, psprintf("\"%s\" is given twice.", name));
	}
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
		refuse_repetition(option, value, names, i);
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
		refuse_repetition(option, value, names, i);
	}
}

/*
 * mongo_check_unwind_options
 *		What of the options of one table only makes sense together: 'unwind',
 *		'ordinality' and 'unwind_empty' are their values, NULL where not given.
 *		Raises 22023.
 */
static void
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

/*-------------------------------------------------------------------------
 * How one may log in to MongoDB: the mechanisms, and their properties.
 *-------------------------------------------------------------------------
 */

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
