/*-------------------------------------------------------------------------
 *
 * options.c
 *		The options of servers, user mappings, tables and columns.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options_internal.h"
#include "convert.h"

#include <float.h>
#include <limits.h>

#include "commands/defrem.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* ------------- How the text of an option is read, by its kind ------------- */

/*
 * Each reads 'value' into 'field', of the type that it writes there, or raises 22023 (for
 * parse_port 22P02 and 22003), saying what is allowed.  Texts are not copied.
 */

/* parse_string takes any text, the empty one too. */
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

void
mongo_parse_path(const MongoOption *option, const char *value, void *field)
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
				 errhint("Valid values are true, on, yes, 1 and false, off, no, 0.")));
}

/* parse_indexed takes the same; what is not said at all is a third answer. */
static void
parse_indexed(const MongoOption *option, const char *value, void *field)
{
	bool		indexed;

	parse_boolean(option, value, &indexed);
	*(MongoIndexed *) field = indexed ? MONGO_INDEXED_YES : MONGO_INDEXED_NO;
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
				 errhint("Valid values are numbers from %g to %g.",
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
			 errhint("Valid values are: %s.", valid.data)));
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

/* What a column can be declared to hold, as MongoDB's $type calls it. */
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

/* ----------------------- The options, one row each ------------------------ */

/* In the order of MongoTypeMismatch. */
static const char *const type_mismatches[] = {"error", "null", NULL};

/* In the order of MongoInsertMode. */
static const char *const insert_modes[] = {"insert", "upsert", "ignore", NULL};

/* In the order of MongoTransactions. */
static const char *const transaction_modes[] = {"auto", "off", "required", NULL};

/* Of IMPORT: what is the second is true in MongoImportOptions. */
static const char *const array_choices[] = {"columns", "tables", NULL};
static const char *const existing_choices[] = {"error", "skip", NULL};
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
#define BETWEEN(low, high) \
	.min = (low), .max = (high)

const MongoOption mongo_option_table[] =
{
	/* where the server is, and who we are there */
	{"uri", ON_SERVER, parse_name, mongo_check_uri, CONNECTION(uri)},
	{"address", ON_SERVER, parse_name, mongo_check_address, CONNECTION(address), "127.0.0.1"},
	{"port", ON_SERVER, parse_port, NULL, CONNECTION(port), "27017", BETWEEN(0, 65535)},
	{"replica_set", ON_SERVER, parse_name, NULL, CONNECTION(replica_set)},
	{"read_preference", ON_SERVER, parse_read_mode, NULL, CONNECTION(read_mode), .choices = read_preferences},
	{"authentication_database", ON_SERVER | ON_MAPPING, parse_name, NULL, CONNECTION(authentication_database)},
	{"auth_mechanism", ON_SERVER | ON_MAPPING, parse_word, mongo_check_mechanism, CONNECTION(auth_mechanism), .choices = mongo_auth_mechanism_names},
	{"auth_properties", ON_SERVER, parse_name, mongo_check_open_properties, CONNECTION(auth_properties)},
	{"auth_properties", ON_MAPPING, parse_name, mongo_check_properties, CONNECTION(auth_properties)},
	{"username", ON_MAPPING, parse_name, NULL, CONNECTION(username)},
	{"password", ON_MAPPING, parse_string, NULL, CONNECTION(password)},
	{"password_file", ON_MAPPING, parse_name, mongo_check_file, CONNECTION(password_file)},

	/* TLS */
	{"ssl", ON_SERVER, parse_boolean, NULL, CONNECTION(ssl), "false"},
	{"pem_file", ON_SERVER | ON_MAPPING, parse_name, mongo_check_file, CONNECTION(pem_file)},
	{"pem_pwd", ON_SERVER | ON_MAPPING, parse_string, NULL, CONNECTION(pem_pwd)},
	{"ca_file", ON_SERVER, parse_name, mongo_check_file, CONNECTION(ca_file)},
	{"ca_dir", ON_SERVER, parse_name, mongo_check_file, CONNECTION(ca_dir)},
	{"crl_file", ON_SERVER, parse_name, mongo_check_file, CONNECTION(crl_file)},
	{"weak_cert_validation", ON_SERVER, parse_boolean, NULL, CONNECTION(weak_cert_validation), "false"},

	/* how connections behave */
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
	{"compressors", ON_SERVER, parse_name, mongo_check_compressors, CONNECTION(compressors)},
	{"keep_connections", ON_SERVER, parse_boolean, NULL, CONNECTION(keep_connections), "true"},
	{"async_connections", ON_SERVER, parse_integer, NULL, CONNECTION(async_connections), "4", BETWEEN(1, 1000)},
	{"max_connections", ON_SERVER, parse_integer, mongo_check_max_connections, CONNECTION(max_connections), "0", BETWEEN(0, 100000)},
	{"idle_timeout", ON_SERVER, parse_duration, NULL, CONNECTION(idle_timeout), "0", BETWEEN(0, INT_MAX)},

	/* which collection */
	{"database", ON_TABLE, parse_name, NULL, TABLE(database), "test"},
	{"collection", ON_TABLE, parse_name, NULL, TABLE(collection)},
	{"pipeline", ON_TABLE, parse_name, mongo_check_pipeline, TABLE(pipeline)},
	{"unwind", ON_TABLE, parse_name, mongo_check_unwind, TABLE(unwind)},
	{"ordinality", ON_TABLE, parse_name, mongo_check_ordinality, TABLE(ordinality)},
	{"unwind_empty", ON_TABLE, parse_boolean, NULL, TABLE(unwind_empty), "false"},
	{"allow_javascript", ON_SERVER, parse_boolean, NULL, TABLE(allow_javascript), "false"},

	/* planning */
	{"estimated_rows", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(estimated_rows), "-1", BETWEEN(0, 1e15)},
	{"use_remote_estimate", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(use_remote_estimate), "false"},
	{"fdw_startup_cost", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(fdw_startup_cost), "25", BETWEEN(0, 1e15)},
	{"fdw_tuple_cost", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(fdw_tuple_cost), "0.1", BETWEEN(0, 1e15)},
	{"fdw_lookup_cost", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(fdw_lookup_cost), "5", BETWEEN(0, 1e15)},
	{"remote_parallelism", ON_SERVER | ON_TABLE, parse_number, NULL, TABLE(remote_parallelism), "1", BETWEEN(0, 1000)},
	{"parallel_field", ON_TABLE, mongo_parse_path, NULL, TABLE(parallel_field), "_id"},
	{"hint", ON_TABLE, parse_name, mongo_check_hint, TABLE(hint)},
	{"enable_join_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_join_pushdown), "true"},
	{"enable_aggregate_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_aggregate_pushdown), "true"},
	{"enable_order_by_pushdown", ON_SERVER | ON_TABLE, parse_boolean, NULL, TABLE(enable_order_by_pushdown), "true"},
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
	{"key_columns", ON_TABLE, parse_name, mongo_check_key_columns, TABLE(key_columns)},
	{"transactions", ON_SERVER, parse_choice, NULL, CONNECTION(transactions), "auto", .choices = transaction_modes},
	{"write_concern", ON_SERVER, parse_name, mongo_check_write_concern, CONNECTION(write_concern)},
	{"read_concern", ON_SERVER, parse_word, NULL, CONNECTION(read_concern), .choices = read_concerns},

	/* columns; column_name is what a fork of the older wrapper calls a path */
	{"path", ON_COLUMN, mongo_parse_path, NULL, COLUMN(path)},
	{"column_name", ON_COLUMN, mongo_parse_path, NULL, COLUMN(path)},
	{"indexed", ON_COLUMN, parse_indexed, NULL, COLUMN(indexed)},
	{"bson_type", ON_COLUMN, parse_bson_type, NULL, COLUMN(bson_type), .choices = bson_type_choices},

	{"sample_size", ON_IMPORT, parse_integer, NULL, IMPORT(sample_size), "1000", BETWEEN(1, INT_MAX)},
	{"nesting", ON_IMPORT, parse_integer, NULL, IMPORT(nesting), "1", BETWEEN(0, 100)},
	{"import_views", ON_IMPORT, parse_boolean, NULL, IMPORT(import_views), "true"},
	{"lower_case_names", ON_IMPORT, parse_boolean, NULL, IMPORT(lower_case_names), "false"},
	{"arrays", ON_IMPORT, parse_choice, NULL, IMPORT(array_tables), "columns", .choices = array_choices},
	{"if_exists", ON_IMPORT, parse_choice, NULL, IMPORT(skip_existing), "error", .choices = existing_choices},
	{"objectid", ON_IMPORT, parse_choice, NULL, IMPORT(objectid_as_text), "objectid", .choices = objectid_choices},
};

const int	mongo_option_count = lengthof(mongo_option_table);

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

/* ----------- The options in force, as the structs of options.h ------------ */

/* documents a getMore asks for first, where fetch_size is not given */
#define FIRST_FETCH_SIZE	10000

/* read_defaults: what the rows of the table say that holds when nothing is given. */
static void
read_defaults(void *result, MongoOptionTarget target)
{
	for (int i = 0; i < mongo_option_count; i++)
	{
		const MongoOption *option = &mongo_option_table[i];
		MongoOption unbounded = *option;

		if (option->target != target || option->initial == NULL)
			continue;

		/* a default may say "not given" by a value nobody else may give */
		unbounded.min = -DBL_MAX;
		option->parse(&unbounded, option->initial, (char *) result + option->offset);
	}
}

/*
 * What holds when nothing is given, parsed once in a session: each transaction
 * that writes asks for a connection's options.  Strings are those of the table.
 */
static MongoConnectionOptions connection_defaults;
static MongoTableOptions table_defaults;

static void
learn_defaults(void)
{
	static bool learned = false;

	if (learned)
		return;
	read_defaults(&connection_defaults, TARGET_CONNECTION);
	read_defaults(&table_defaults, TARGET_TABLE);
	learned = true;
}

/* read_options: those of one object that belong to the struct; others are passed over. */
static void
read_options(void *result, MongoOptionTarget target, int object, List *definitions)
{
	ListCell   *cell;

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);
		const MongoOption *option = mongo_find_option(definition->defname, object);

		if (option != NULL && option->target == target)
			option->parse(option, defGetString(definition),
						  (char *) result + option->offset);
	}
}

MongoConnectionOptions *
mongo_connection_options(ForeignServer *server, UserMapping *user)
{
	MongoConnectionOptions *result = palloc(sizeof(MongoConnectionOptions));

	learn_defaults();
	*result = connection_defaults;
	result->server_name = server->servername;
	read_options(result, TARGET_CONNECTION, ON_SERVER, server->options);
	read_options(result, TARGET_CONNECTION, ON_MAPPING, user->options);

	return result;
}

MongoImportOptions
mongo_import_options(List *definitions)
{
	MongoImportOptions result = {0};
	ListCell   *cell;

	foreach(cell, definitions)
		mongo_require_option(lfirst_node(DefElem, cell)->defname, ON_IMPORT);
	read_defaults(&result, TARGET_IMPORT);
	read_options(&result, TARGET_IMPORT, ON_IMPORT, definitions);
	return result;
}

/*
 * mongo_read_concern
 *
 * Planning asks for it, so the other options are not read.
 */
const char *
mongo_read_concern(ForeignServer *server)
{
	ListCell   *cell;

	foreach(cell, server->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);
		const mongoc_uri_t *uri;
		bson_error_t error;

		if (strcmp(option->defname, "read_concern") == 0)
			return defGetString(option);
		if (strcmp(option->defname, "uri") != 0)
			continue;
		uri = mongo_uri_parse(defGetString(option), &error);
		if (uri != NULL)
			return mongoc_read_concern_get_level(mongoc_uri_get_read_concern(uri));
	}
	return NULL;
}

/*-------------------------------------------------------------------------
 * The options of tables and columns, remembered until they change.
 *
 * Reading them takes several catalog lookups and the parsing of texts, which
 * is a tenth of what this backend computes for a point query.
 *-------------------------------------------------------------------------
 */

/* What is known of a table, in a memory context of its own. */
typedef struct KnownTable
{
	MongoTableOptions *options; /* NULL: not read yet */
	int			ncolumns;		/* length of columns[] */
	MongoColumnOptions **columns;	/* by attribute number - 1; NULL: not read */
	MongoKept	kept;
} KnownTable;

typedef struct KnownTableEntry
{
	Oid			relid;			/* hash key */
	KnownTable *table;			/* NULL: there was no memory for it */
} KnownTableEntry;

static HTAB *known_tables = NULL;

/* forget_table: somebody may read what is known until the transaction is over. */
static void
forget_table(KnownTableEntry *entry)
{
	KnownTable *table = entry->table;

	hash_search(known_tables, &entry->relid, HASH_REMOVE, NULL);
	if (table == NULL)
		return;
	if (TopTransactionContext != NULL)
		MemoryContextSetParent(table->kept.context, TopTransactionContext);
	else
		MemoryContextDelete(table->kept.context);
}

/* Relcache callback: a table or its columns have changed, or it was analyzed; InvalidOid: any. */
static void
table_has_changed(Datum arg pg_attribute_unused(), Oid relid)
{
	HASH_SEQ_STATUS status;
	KnownTableEntry *entry;

	if (OidIsValid(relid))
	{
		entry = hash_search(known_tables, &relid, HASH_FIND, NULL);
		if (entry != NULL)
			forget_table(entry);
		return;
	}
	hash_seq_init(&status, known_tables);
	while ((entry = hash_seq_search(&status)) != NULL)
		forget_table(entry);
}

/* Syscache callback: options of some server, which hold for any of its tables, or of a table. */
static void
options_have_changed(Datum arg, int cacheid pg_attribute_unused(),
					 uint32 hashvalue pg_attribute_unused())
{
	table_has_changed(arg, InvalidOid);
}

/* known_table: it stays until the end of the transaction, whatever changes meanwhile. */
static KnownTable *
known_table(Oid relid)
{
	KnownTableEntry *entry;
	bool		found;

	if (known_tables == NULL)
	{
		HASHCTL		control = {
			.keysize = sizeof(Oid),
			.entrysize = sizeof(KnownTableEntry),
			.hcxt = CacheMemoryContext,
		};

		known_tables = hash_create("mongo_fdw tables", 16, &control,
								   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		CacheRegisterRelcacheCallback(table_has_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(FOREIGNTABLEREL, options_have_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(FOREIGNSERVEROID, options_have_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(USERMAPPINGOID, options_have_changed, (Datum) 0);
	}
	entry = hash_search(known_tables, &relid, HASH_ENTER, &found);
	if (!found)
		entry->table = NULL;
	if (entry->table == NULL)
	{
		/*
		 * the cache's only when it is complete, so that an ERROR leaves
		 * nothing
		 */
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw table",
													  ALLOCSET_SMALL_SIZES);
		KnownTable *table = MemoryContextAllocZero(context, sizeof(KnownTable));

		table->kept.context = context;
		MemoryContextSetParent(context, CacheMemoryContext);
		entry->table = table;
	}
	return entry->table;
}

MongoKept *
mongo_kept(Oid foreigntableid)
{
	return &known_table(foreigntableid)->kept;
}

static MongoTableOptions *
read_table_options(Oid relid)
{
	MongoTableOptions *result = palloc(sizeof(MongoTableOptions));
	ForeignTable *table = GetForeignTable(relid);
	ForeignServer *server = GetForeignServer(table->serverid);

	learn_defaults();
	*result = table_defaults;
	read_options(result, TARGET_TABLE, ON_SERVER, server->options);
	read_options(result, TARGET_TABLE, ON_TABLE, table->options);
	if (result->collection == NULL)
		result->collection = get_rel_name(relid);
	result->batches_grow = result->fetch_size == 0;
	if (result->batches_grow)
		result->fetch_size = FIRST_FETCH_SIZE;
	return result;
}

const MongoTableOptions *
mongo_table_options(Oid foreigntableid)
{
	KnownTable *table = known_table(foreigntableid);

	if (table->options == NULL)
	{
		MemoryContext previous = MemoryContextSwitchTo(table->kept.context);

		table->options = read_table_options(foreigntableid);
		MemoryContextSwitchTo(previous);
	}
	return table->options;
}

const MongoColumnOptions *
mongo_column_options(Oid foreigntableid, AttrNumber attnum)
{
	KnownTable *table = known_table(foreigntableid);
	MemoryContext previous;
	MongoColumnOptions *options;

	if (attnum <= table->ncolumns && table->columns[attnum - 1] != NULL)
		return table->columns[attnum - 1];

	previous = MemoryContextSwitchTo(table->kept.context);
	options = palloc0(sizeof(MongoColumnOptions));
	read_options(options, TARGET_COLUMN, ON_COLUMN,
				 GetForeignColumnOptions(foreigntableid, attnum));
	if (options->path == NULL)
		options->path = get_attname(foreigntableid, attnum, false);
	options->path = mongo_to_utf8(options->path);
	if (attnum > table->ncolumns)
	{
		MongoColumnOptions **columns = palloc0(sizeof(*columns) * (attnum + 8));

		if (table->ncolumns > 0)
			memcpy(columns, table->columns, sizeof(*columns) * table->ncolumns);
		table->columns = columns;
		table->ncolumns = attnum + 8;
	}
	table->columns[attnum - 1] = options;
	MemoryContextSwitchTo(previous);
	return options;
}
