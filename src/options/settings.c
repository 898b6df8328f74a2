/*-------------------------------------------------------------------------
 *
 * settings.c
 *		Settings (GUCs), and the features of MongoDB that can be disabled.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options_internal.h"

#include "lib/stringinfo.h"
#include "utils/guc.h"
#include "utils/varlena.h"

/* ------------------------ The mongo_fdw.* settings ------------------------ */

bool		mongo_enable_pushdown = true;
static bool enable_join_pushdown = true;
bool		mongo_enable_batched_joins = true;
static bool enable_aggregate_pushdown = true;
static bool enable_order_by_pushdown = true;
bool		mongo_log_remote_query = false;
bool		mongo_explain_remote_plans = false;
bool		mongo_is_preloaded = false;
int			mongo_slow_command_ms = -1;
int			mongo_sync_interval = -1;
char	   *mongo_hint = "";
uint64		mongo_time_setting = 0;
static char *cluster_time_text = "";

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
		"If off, mongo_fdw reads whole collections and PostgreSQL does the rest.",
	&mongo_enable_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_join_pushdown",
		"Enables sending joins to MongoDB.",
		"If off, overrides the option enable_join_pushdown of servers and tables.",
	&enable_join_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_batched_joins",
		"Enables joins and subqueries that look up the keys of many rows with one command.",
		NULL,
	&mongo_enable_batched_joins, PGC_USERSET},
	{"mongo_fdw.enable_aggregate_pushdown",
		"Enables sending aggregates to MongoDB.",
		"If off, overrides the option enable_aggregate_pushdown of servers and tables.",
	&enable_aggregate_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_order_by_pushdown",
		"Enables sending ORDER BY to MongoDB.",
		"If off, overrides the option enable_order_by_pushdown of servers and tables.",
	&enable_order_by_pushdown, PGC_USERSET},
	{"mongo_fdw.explain_remote",
		"Shows MongoDB's own plans in EXPLAIN.",
		"If off, EXPLAIN without ANALYZE connects to MongoDB only for the option use_remote_estimate.",
	&mongo_explain_remote_plans, PGC_USERSET},
	/* only for superusers: the log may then contain other users' data */
	{"mongo_fdw.log_remote_query",
		"Logs each command that is sent to MongoDB.",
		NULL,
	&mongo_log_remote_query, PGC_SUSET},
};

/* --------------------- The setting mongo_fdw.cluster_time ------------------ */

static bool
check_cluster_time(char **value, void **extra pg_attribute_unused(),
				   GucSource source pg_attribute_unused())
{
	if (**value == '\0' || mongo_parse_cluster_time(*value) != 0)
		return true;
	GUC_check_errhint("A time is like \"1764381605:0000000003\", as mongo_cluster_time() returns it.");
	return false;
}

static void
assign_cluster_time(const char *value, void *extra pg_attribute_unused())
{
	mongo_time_setting = mongo_parse_cluster_time(value);
}

/*
 * mongo_define_settings
 *		Defines the mongo_fdw.* settings, and reserves their prefix.  Called once in a process, by
 *		_PG_init().
 */
void
mongo_define_settings(void)
{
	for (size_t i = 0; i < lengthof(settings); i++)
		DefineCustomBoolVariable(settings[i].name, settings[i].description,
								 settings[i].details, settings[i].variable,
								 *settings[i].variable, settings[i].context, 0,
								 NULL, NULL, NULL);

	DefineCustomIntVariable("mongo_fdw.slow_command_ms",
							"Sets the waiting time for MongoDB above which a command is logged.",
							"Zero logs all, -1 none.",
							&mongo_slow_command_ms, mongo_slow_command_ms, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);

	DefineCustomIntVariable("mongo_fdw.sync_interval",
							"Obsolete: zero is mongo_sync.enabled = off, all else has no effect.",
							"Background workers wait for changes, and need no interval.",
							&mongo_sync_interval, mongo_sync_interval, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);

	/* only for superusers: a sparse index hides documents from policies */
	DefineCustomStringVariable("mongo_fdw.hint",
							   "Sets the index that MongoDB must use for reading.",
							   "An index's name, or its keys as JSON; overrides the option hint of tables.",
							   &mongo_hint, mongo_hint, PGC_SUSET, 0, NULL, NULL, NULL);

	/* only for superusers: old documents may not be meant for all */
	DefineCustomStringVariable("mongo_fdw.cluster_time",
							   "Sets the time of MongoDB's clock as of which collections are read.",
							   "A time that mongo_cluster_time() has returned; empty to read the present.",
							   &cluster_time_text, cluster_time_text, PGC_SUSET, 0,
							   check_cluster_time, assign_cluster_time, NULL);

	MarkGUCPrefixReserved("mongo_fdw");
}

/* -------------------- Features that can be disabled ----------------------- */

/*
 * 'word' identifies the feature in a server's message that it is unknown.  'setting' and
 * 'option' are switches for the same feature that are older than pushdown_disable.
 */
typedef struct FeatureRow
{
	const char *name;
	const char *word;
	const bool *setting;
	bool		has_option;
	size_t		option;			/* offset in MongoTableOptions */
} FeatureRow;

#define SWITCH(setting, field) \
	&(setting), true, offsetof(MongoTableOptions, field)

/* The rows, in the order of MongoFeature. */
static const FeatureRow feature_rows[] =
{
	{"collation", .word = "collation"},
	{"count", .word = "count"},
	{"disk_use", .word = "allowDiskUse"},
	{"expr", .word = "$expr"},
	{"group", "$group", SWITCH(enable_aggregate_pushdown, enable_aggregate_pushdown)},
	{"let", .word = "let"},
	{"lookup", "$lookup", SWITCH(enable_join_pushdown, enable_join_pushdown)},
	{"natural", .word = "$natural"},
	{"sort", "$sort", SWITCH(enable_order_by_pushdown, enable_order_by_pushdown)},
};

StaticAssertDecl(lengthof(feature_rows) == MONGO_NFEATURES,
				 "each feature has its row");

/*
 * mongo_feature_is_disabled
 *		Tells whether pushdown_disable names the feature.
 */
bool
mongo_feature_is_disabled(uint32 pushdown_disable, MongoFeature feature)
{
	return (pushdown_disable & ((uint32) 1 << feature)) != 0;
}

/*
 * mongo_feature_enabled
 *		Tells whether a command on this table may use the feature.
 *
 * False if pushdown_disable names it, or if its older switch is off as a setting or as an option:
 * enable_join_pushdown for LOOKUP, enable_aggregate_pushdown for GROUP, enable_order_by_pushdown
 * for SORT.  Does not check mongo_fdw.enable_pushdown.
 */
bool
mongo_feature_enabled(const MongoTableOptions *options, MongoFeature feature)
{
	const FeatureRow *row = &feature_rows[feature];

	return !mongo_feature_is_disabled(options->pushdown_disable, feature) &&
		(row->setting == NULL || *row->setting) &&
		(!row->has_option || *(const bool *) ((const char *) options + row->option));
}

/*
 * mongo_parse_features
 *		Parses a list of features into a set of MongoFeature (a MongoOptionParser).  Raises 22023
 *		for the first unknown one.
 */
void
mongo_parse_features(const MongoOption *option, const char *value, void *field)
{
	const char *unknown = NULL;
	uint32		set = 0;
	List	   *names;
	StringInfoData valid;

	if (!SplitIdentifierString(pstrdup(value), ',', &names))
	{
		unknown = value;
		names = NIL;
	}
	foreach_ptr(const char, name, names)
	{
		size_t		feature = 0;

		while (feature < lengthof(feature_rows) &&
			   strcmp(feature_rows[feature].name, name) != 0)
			feature++;
		if (feature < lengthof(feature_rows))
			set |= (uint32) 1 << feature;
		else if (unknown == NULL)
			unknown = name;
	}
	*(uint32 *) field = set;
	if (unknown == NULL)
		return;

	initStringInfo(&valid);
	for (size_t i = 0; i < lengthof(feature_rows); i++)
		appendStringInfo(&valid, "%s%s", i > 0 ? ", " : "", feature_rows[i].name);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for option \"%s\": \"%s\"", option->name, value),
			 errdetail("There is no feature \"%s\".", unknown),
			 errhint("Valid values are names from this list, separated by commas: %s.",
					 valid.data)));
}

/*
 * mongo_feature_in_message
 *		Returns the name of the feature that a server's error is about, or NULL.
 */
const char *
mongo_feature_in_message(const char *message)
{
	for (size_t i = 0; i < lengthof(feature_rows); i++)
	{
		const char *word = feature_rows[i].word;
		const char *found = strstr(message, word);

		/* must be a whole word: "outlet" does not contain "let" */
		if (found != NULL && (found == message || !isalnum((unsigned char) found[-1])) &&
			!isalnum((unsigned char) found[strlen(word)]))
			return feature_rows[i].name;
	}
	return NULL;
}

/*
 * mongo_parse_obsolete
 *		Warns that an option has no effect any more (a MongoOptionParser).
 */
void
mongo_parse_obsolete(const MongoOption *option, const char *value pg_attribute_unused(), void *field pg_attribute_unused())
{
	ereport(WARNING,
			(errmsg("option \"%s\" has no effect any more", option->name),
			 errhint("Drop it: there are no parallel scans since mongo_fdw 2.1.")));
}
