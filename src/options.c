/*-------------------------------------------------------------------------
 *
 * options.c
 *		The table of options, its validator, its readers, and the settings.
 *
 * Who may give an option, how its text is read, where the value goes and
 * what holds when nothing is said stand in one row of option_table.  The
 * validator runs at DDL time and never touches the network.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options.h"

#include <float.h>
#include <limits.h>

#include "access/reloptions.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "encoding.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "remote_error.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

/* Kinds of objects that take options, as bits. */
#define ON_SERVER	0x01
#define ON_MAPPING	0x02
#define ON_TABLE	0x04
#define ON_COLUMN	0x08

/* Which of the structs in options.h a value is read into. */
typedef enum OptionTarget
{
	TARGET_CONNECTION,
	TARGET_TABLE,
	TARGET_COLUMN
} OptionTarget;

typedef struct MongoOption MongoOption;

/*
 * One option.  'parse' stores the value of a text into its field, or raises;
 * 'check' is what only DDL has to know.  A NULL 'initial' leaves the field
 * zero.  'choices' are the words that parse_choice and parse_word allow.
 */
struct MongoOption
{
	const char *name;
	int			objects;
	void		(*parse) (const MongoOption *option, const char *value, void *field);
	void		(*check) (const MongoOption *option, const char *value);
	OptionTarget target;
	size_t		offset;
	const char *initial;
	double		min;
	double		max;
	const char *const *choices;
};

static void parse_string(const MongoOption *option, const char *value, void *field);
static void parse_name(const MongoOption *option, const char *value, void *field);
static void parse_path(const MongoOption *option, const char *value, void *field);
static void parse_boolean(const MongoOption *option, const char *value, void *field);
static void parse_integer(const MongoOption *option, const char *value, void *field);
static void parse_number(const MongoOption *option, const char *value, void *field);
static void parse_port(const MongoOption *option, const char *value, void *field);
static void parse_choice(const MongoOption *option, const char *value, void *field);
static void parse_word(const MongoOption *option, const char *value, void *field);
static void check_uri(const MongoOption *option, const char *value);
static void check_file(const MongoOption *option, const char *value);
static void check_write_concern(const MongoOption *option, const char *value);

static const char *const read_preferences[] = {
	"primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest", NULL
};

/* In the order of MongoTypeMismatch. */
static const char *const type_mismatches[] = {"error", "null", NULL};

/* In the order of MongoTransactions. */
static const char *const transaction_modes[] = {"auto", "off", "required", NULL};

static const char *const read_concerns[] = {
	"local", "available", "majority", "linearizable", "snapshot", NULL
};

#define CONNECTION(field) \
	.target = TARGET_CONNECTION, .offset = offsetof(MongoConnectionOptions, field)
#define TABLE(field) \
	.target = TARGET_TABLE, .offset = offsetof(MongoTableOptions, field)
#define COLUMN(field) \
	.target = TARGET_COLUMN, .offset = offsetof(MongoColumnOptions, field)
#define BETWEEN(low, high) \
	.min = (low), .max = (high)

static const MongoOption option_table[] =
{
	/* where the server is, and who we are there */
	{"uri", ON_SERVER, parse_name, check_uri, CONNECTION(uri)},
	{"address", ON_SERVER, parse_name, NULL, CONNECTION(address), "127.0.0.1"},
	{"port", ON_SERVER, parse_port, NULL, CONNECTION(port), "27017", BETWEEN(0, 65535)},
	{"replica_set", ON_SERVER, parse_name, NULL, CONNECTION(replica_set)},
	{"read_preference", ON_SERVER, parse_word, NULL, CONNECTION(read_preference), .choices = read_preferences},
	{"authentication_database", ON_SERVER, parse_name, NULL, CONNECTION(authentication_database)},
	{"username", ON_MAPPING, parse_name, NULL, CONNECTION(username)},
	{"password", ON_MAPPING, parse_string, NULL, CONNECTION(password)},

	/* TLS */
	{"ssl", ON_SERVER, parse_boolean, NULL, CONNECTION(ssl), "false"},
	{"pem_file", ON_SERVER | ON_MAPPING, parse_name, check_file, CONNECTION(pem_file)},
	{"pem_pwd", ON_SERVER | ON_MAPPING, parse_string, NULL, CONNECTION(pem_pwd)},
	{"ca_file", ON_SERVER, parse_name, check_file, CONNECTION(ca_file)},
	{"ca_dir", ON_SERVER, parse_name, check_file, CONNECTION(ca_dir)},
	{"crl_file", ON_SERVER, parse_name, check_file, CONNECTION(crl_file)},
	{"weak_cert_validation", ON_SERVER, parse_boolean, NULL, CONNECTION(weak_cert_validation), "false"},

	/* how connections behave */
	{"appname", ON_SERVER, parse_name, NULL, CONNECTION(appname), "mongo_fdw"},
	{"connect_timeout_ms", ON_SERVER, parse_integer, NULL, CONNECTION(connect_timeout_ms), BETWEEN(1, INT_MAX)},
	{"server_selection_timeout_ms", ON_SERVER, parse_integer, NULL, CONNECTION(server_selection_timeout_ms), BETWEEN(1, INT_MAX)},
	{"keep_connections", ON_SERVER, parse_boolean, NULL, CONNECTION(keep_connections), "true"},

	/* which collection */
	{"database", ON_TABLE, parse_name, NULL, TABLE(database), "test"},
	{"collection", ON_TABLE, parse_name, NULL, TABLE(collection)},

	/* planning */
	{"estimated_rows", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(estimated_rows), "-1", BETWEEN(0, 1e15)},
	{"use_remote_estimate", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(use_remote_estimate), "false"},
	{"fdw_startup_cost", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(fdw_startup_cost), "25", BETWEEN(0, 1e15)},
	{"fdw_tuple_cost", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(fdw_tuple_cost), "0.1", BETWEEN(0, 1e15)},
	{"enable_join_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_join_pushdown), "true"},
	{"enable_aggregate_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_aggregate_pushdown), "true"},
	{"enable_order_by_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_order_by_pushdown), "true"},

	/* reading */
	{"fetch_size", ON_SERVER | ON_TABLE, parse_integer, NULL, TABLE(fetch_size), "10000", BETWEEN(1, INT_MAX)},
	{"type_mismatch", ON_SERVER | ON_TABLE, parse_choice, NULL, TABLE(type_mismatch), "error", .choices = type_mismatches},
	{"canonical_json", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(canonical_json), "false"},
	{"analyze_sampling", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(analyze_sampling), "true"},
	{"async_capable", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(async_capable), "true"},

	/* writing */
	{"updatable", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(updatable), "true"},
	{"truncatable", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(truncatable), "true"},
	{"batch_size", ON_SERVER | ON_TABLE, parse_integer, NULL, TABLE(batch_size), "10000", BETWEEN(1, 100000)},
	{"write_null", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(write_null), "false"},
	{"transactions", ON_SERVER, parse_choice, NULL, CONNECTION(transactions), "auto", .choices = transaction_modes},
	{"write_concern", ON_SERVER, parse_name, check_write_concern, CONNECTION(write_concern)},
	{"read_concern", ON_SERVER, parse_word, NULL, CONNECTION(read_concern), .choices = read_concerns},

	/* columns; column_name is what a fork of the older wrapper calls a path */
	{"path", ON_COLUMN, parse_path, NULL, COLUMN(path)},
	{"column_name", ON_COLUMN, parse_path, NULL, COLUMN(path)},
	{"indexed", ON_COLUMN, parse_boolean, NULL, COLUMN(indexed), "false"},
};

/* The catalogs whose rows carry options, as the validator is told of them. */
static const struct
{
	Oid			catalog;
	int			object;
}			catalog_objects[] =
{
	{ForeignServerRelationId, ON_SERVER},
	{UserMappingRelationId, ON_MAPPING},
	{ForeignTableRelationId, ON_TABLE},
	{AttributeRelationId, ON_COLUMN},
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
	{"path", "column_name"},
};

bool		mongo_enable_pushdown = true;
bool		mongo_enable_join_pushdown = true;
bool		mongo_enable_aggregate_pushdown = true;
bool		mongo_enable_order_by_pushdown = true;
bool		mongo_log_remote_query = false;

/* ------------------------------ the validator ------------------------------ */

/* object_of_catalog is 0 for the wrapper itself, which takes no options. */
static int
object_of_catalog(Oid catalog)
{
	for (int i = 0; i < lengthof(catalog_objects); i++)
	{
		if (catalog_objects[i].catalog == catalog)
			return catalog_objects[i].object;
	}
	return 0;
}

static const MongoOption *
find_option(const char *name, int object)
{
	for (int i = 0; i < lengthof(option_table); i++)
	{
		if ((option_table[i].objects & object) != 0 &&
			strcmp(option_table[i].name, name) == 0)
			return &option_table[i];
	}
	return NULL;
}

static bool
is_given(List *definitions, const char *name)
{
	ListCell   *cell;

	foreach(cell, definitions)
	{
		if (strcmp(lfirst_node(DefElem, cell)->defname, name) == 0)
			return true;
	}
	return false;
}

/*
 * closest_option is the name that 'name' was probably meant to be, or NULL.
 *
 * A third of the letters may differ, and at most four, so that a hint is
 * given only when it helps.
 */
static const char *
closest_option(const char *name, int object)
{
	const char *closest = NULL;
	int			length = (int) strlen(name);
	int			allowed = Min(4, length / 3);

	if (length > NAMEDATALEN)
		return NULL;

	for (int i = 0; i < lengthof(option_table); i++)
	{
		const MongoOption *option = &option_table[i];
		int			distance;

		if ((option->objects & object) == 0)
			continue;

		distance = varstr_levenshtein_less_equal(name, length, option->name,
												 (int) strlen(option->name),
												 1, 1, 1, allowed, true);
		if (distance <= allowed)
		{
			closest = option->name;
			allowed = distance - 1;
		}
	}
	return closest;
}

/* report_unknown_option lists what the object does take. */
static void
report_unknown_option(const char *name, int object)
{
	const char *closest = closest_option(name, object);
	StringInfoData valid;

	initStringInfo(&valid);
	for (int i = 0; i < lengthof(option_table); i++)
	{
		if ((option_table[i].objects & object) != 0)
			appendStringInfo(&valid, "%s%s", valid.len > 0 ? ", " : "",
							 option_table[i].name);
	}

	if (valid.len == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
				 errmsg("invalid option \"%s\"", name),
				 errhint("There are no valid options in this context.")));

	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
			 errmsg("invalid option \"%s\"", name),
			 closest != NULL
			 ? errhint("Perhaps you meant the option \"%s\". Valid options in this context are: %s",
					   closest, valid.data)
			 : errhint("Valid options in this context are: %s", valid.data)));
}

static void
check_contradictions(List *definitions)
{
	for (int i = 0; i < lengthof(contradictory_options); i++)
	{
		const char *first = contradictory_options[i].first;
		const char *second = contradictory_options[i].second;

		if (is_given(definitions, first) && is_given(definitions, second))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("options \"%s\" and \"%s\" cannot be given together",
							first, second),
					 errhint("Remove one of them; what \"%s\" says can be said by \"%s\".",
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
	int			object = object_of_catalog(PG_GETARG_OID(1));
	ListCell   *cell;

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);
		const MongoOption *option = find_option(definition->defname, object);
		const char *value;
		union
		{
			const char *string;
			double		number;
			int			integer;
			bool		boolean;
		}			ignored;

		if (option == NULL)
			report_unknown_option(definition->defname, object);

		value = defGetString(definition);
		option->parse(option, value, &ignored);
		if (option->check != NULL)
			option->check(option, value);
	}

	check_contradictions(definitions);

	PG_RETURN_VOID();
}

/* ------------------------------ kinds of values ---------------------------- */

/* parse_string takes any text, the empty one too. */
static void
parse_string(const MongoOption *option, const char *value, void *field)
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

/* parse_path takes field names with dots between them. */
static void
parse_path(const MongoOption *option, const char *value, void *field)
{
	size_t		length = strlen(value);

	if (length == 0 || value[0] == '.' || value[length - 1] == '.' ||
		strstr(value, "..") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid path for option \"%s\": \"%s\"", option->name, value),
				 errdetail("A path is one or more field names with single dots between them, like \"address.city\".")));

	*(const char **) field = value;
}

/* parse_boolean takes what PostgreSQL takes as a boolean anywhere. */
static void
parse_boolean(const MongoOption *option, const char *value, void *field)
{
	if (!parse_bool(value, (bool *) field))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s requires a Boolean value", option->name),
				 errdetail("\"%s\" is neither true nor false.", value),
				 errhint("Allowed are true, on, yes, 1 and false, off, no, 0.")));
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
				 errhint("Allowed are whole numbers from %.0f to %.0f.",
						 option->min, option->max)));

	*(int *) field = number;
}

static void
parse_number(const MongoOption *option, const char *value, void *field)
{
	double		number;

	/* written so that NaN is refused */
	if (!parse_real(value, &number, 0, NULL) ||
		!(number >= option->min && number <= option->max))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for floating point option \"%s\": %s",
						option->name, value),
				 errhint("Allowed are numbers from %g to %g.",
						 option->min, option->max)));

	*(double *) field = number;
}

/* parse_port: existing definitions use 0 for "the usual one". */
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
				 errhint("Allowed are whole numbers from %.0f to %.0f.",
						 option->min, option->max)));
	if (errno == ERANGE || port < option->min || port > option->max)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("port value \"%s\" is out of range", value),
				 errhint("Allowed are whole numbers from %.0f to %.0f.",
						 option->min, option->max)));

	*(int *) field = port != 0 ? (int) port : atoi(option->initial);
}

/* find_choice is the place of 'value' among the option's words, or raises. */
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
			 errhint("Allowed are: %s.", valid.data)));
}

/* parse_choice stores the word's place, which is its enum's value. */
static void
parse_choice(const MongoOption *option, const char *value, void *field)
{
	StaticAssertStmt(sizeof(MongoTypeMismatch) == sizeof(int),
					 "enums are read as integers");
	*(int *) field = find_choice(option, value);
}

/* parse_word stores the word itself, as MongoDB spells it. */
static void
parse_word(const MongoOption *option, const char *value, void *field)
{
	*(const char **) field = option->choices[find_choice(option, value)];
}

/* ------------------------------ checks at DDL time ------------------------- */

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

static void
check_file(const MongoOption *option, const char *value)
{
	require_file_privilege(option->name, "It names a file on the database server.");
}

/*
 * check_uri_secrets
 *		Refuse a URI with a secret in it, without showing any of it.
 *
 * A server's options can be read by every user of the database, those of a
 * user mapping by its owner only.  Done on the text, before the driver parses
 * it, as the driver's messages repeat what they complain about.
 */
static void
check_uri_secrets(const char *uri)
{
	size_t		before_options = strcspn(uri, "?");
	char	   *folded = asc_tolower(uri, strlen(uri));

	if (memchr(uri, '@', before_options) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"uri\" must not hold credentials"),
				 errdetail("Options of a server can be read by every user of the database."),
				 errhint("Use CREATE USER MAPPING with the options username and password.")));

	if (strstr(folded, "password=") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"uri\" must not hold a password"),
				 errdetail("Options of a server can be read by every user of the database."),
				 errhint("Use CREATE USER MAPPING with the option pem_pwd.")));
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
	static const char *const ambient_mechanisms[] = {"GSSAPI", "MONGODB-AWS"};
	const char *mechanism = mongoc_uri_get_auth_mechanism(uri);

	for (int i = 0; i < lengthof(file_options); i++)
	{
		if (mongoc_uri_has_option(uri, file_options[i]))
			return psprintf("Its %s names a file on the database server.",
							file_options[i]);
	}
	for (int i = 0; mechanism != NULL && i < lengthof(ambient_mechanisms); i++)
	{
		if (pg_strcasecmp(mechanism, ambient_mechanisms[i]) == 0)
			return psprintf("%s uses the identity of the database server.",
							ambient_mechanisms[i]);
	}
	return NULL;
}

/*
 * check_uri parses as the driver will.  No host is looked up, not even for
 * mongodb+srv.
 */
static void
check_uri(const MongoOption *option, const char *value)
{
	bson_error_t error = {0};
	mongoc_uri_t *uri;
	const char *reason;

	check_uri_secrets(value);

	/* what the driver warns of goes to the server's log, not to stderr */
	mongo_install_log_handler();
	mongo_forget_driver_message();
	uri = mongoc_uri_new_with_error(value, &error);
	if (uri == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"uri\""),
				 errdetail("%s.", error.message),
				 errhint("A URI looks like mongodb://host1:27017,host2:27017/?replicaSet=name or mongodb+srv://host/.")));

	reason = uri_privilege_reason(uri);
	mongoc_uri_destroy(uri);

	/* a misspelt option of the URI, say, which the driver passes over */
	if (mongo_last_driver_message()[0] != '\0')
		ereport(WARNING,
				(errmsg("option \"uri\": %s", mongo_last_driver_message())));

	if (reason != NULL)
		require_file_privilege(option->name, reason);
}

/* check_write_concern: a write that nobody acknowledges may be lost unseen. */
static void
check_write_concern(const MongoOption *option, const char *value)
{
	if (strspn(value, "0123456789") == strlen(value) &&
		(strlen(value) > 2 || atoi(value) < 1 || atoi(value) > 50))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": %s", option->name, value),
				 errhint("Allowed are numbers of members from 1 to 50, \"majority\", and names that the replica set defines.")));
}

/* ------------------------------ the readers -------------------------------- */

static void
read_defaults(void *result, OptionTarget target)
{
	for (int i = 0; i < lengthof(option_table); i++)
	{
		const MongoOption *option = &option_table[i];
		MongoOption unbounded = *option;

		if (option->target != target || option->initial == NULL)
			continue;

		/* a default may say "not given" by a value nobody else may give */
		unbounded.min = -DBL_MAX;
		option->parse(&unbounded, option->initial, (char *) result + option->offset);
	}
}

static void
read_options(void *result, OptionTarget target, int object, List *definitions)
{
	ListCell   *cell;

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);
		const MongoOption *option = find_option(definition->defname, object);

		if (option != NULL && option->target == target)
			option->parse(option, defGetString(definition),
						  (char *) result + option->offset);
	}
}

MongoConnectionOptions *
mongo_connection_options(ForeignServer *server, UserMapping *user)
{
	MongoConnectionOptions *result = palloc0(sizeof(MongoConnectionOptions));

	read_defaults(result, TARGET_CONNECTION);
	result->server_name = server->servername;
	read_options(result, TARGET_CONNECTION, ON_SERVER, server->options);
	read_options(result, TARGET_CONNECTION, ON_MAPPING, user->options);

	return result;
}

MongoTableOptions *
mongo_table_options(Oid foreigntableid)
{
	MongoTableOptions *result = palloc0(sizeof(MongoTableOptions));
	ForeignTable *table = GetForeignTable(foreigntableid);
	ForeignServer *server = GetForeignServer(table->serverid);

	read_defaults(result, TARGET_TABLE);
	read_options(result, TARGET_TABLE, ON_SERVER, server->options);
	read_options(result, TARGET_TABLE, ON_TABLE, table->options);
	if (result->collection == NULL)
		result->collection = get_rel_name(foreigntableid);

	return result;
}

MongoColumnOptions *
mongo_column_options(Oid foreigntableid, AttrNumber attnum)
{
	MongoColumnOptions *result = palloc0(sizeof(MongoColumnOptions));

	read_options(result, TARGET_COLUMN, ON_COLUMN,
				 GetForeignColumnOptions(foreigntableid, attnum));
	if (result->path == NULL)
		result->path = get_attname(foreigntableid, attnum, false);
	result->path = mongo_to_utf8(result->path);

	return result;
}

/* ------------------------------ the settings ------------------------------- */

static const struct
{
	const char *name;
	const char *description;
	const char *details;
	bool	   *variable;
	GucContext	context;
}			settings[] =
{
	{"mongo_fdw.enable_pushdown",
		"Enables sending filters, limits, sorts, joins and aggregates to MongoDB.",
		"Off, MongoDB is asked for whole collections and PostgreSQL does the rest.",
	&mongo_enable_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_join_pushdown",
		"Enables sending joins to MongoDB.",
		"Off wins over the option enable_join_pushdown of servers and tables.",
	&mongo_enable_join_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_aggregate_pushdown",
		"Enables sending aggregates to MongoDB.",
		"Off wins over the option enable_aggregate_pushdown of servers and tables.",
	&mongo_enable_aggregate_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_order_by_pushdown",
		"Enables sending ORDER BY to MongoDB.",
		"Off wins over the option enable_order_by_pushdown of servers and tables.",
	&mongo_enable_order_by_pushdown, PGC_USERSET},
	/* the log is the superuser's, and what is sent may hold others' data */
	{"mongo_fdw.log_remote_query",
		"Logs each command that is sent to MongoDB.",
		NULL,
	&mongo_log_remote_query, PGC_SUSET},
};

/*
 * mongo_define_settings
 *		Define the mongo_fdw.* settings.  Called once, by _PG_init().
 */
void
mongo_define_settings(void)
{
	for (int i = 0; i < lengthof(settings); i++)
		DefineCustomBoolVariable(settings[i].name, settings[i].description,
								 settings[i].details, settings[i].variable,
								 *settings[i].variable, settings[i].context, 0,
								 NULL, NULL, NULL);

	MarkGUCPrefixReserved("mongo_fdw");
}
