/*-------------------------------------------------------------------------
 *
 * options.h
 *		Options of servers, user mappings, tables and columns, and settings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OPTIONS_H
#define MONGO_FDW_OPTIONS_H

#include "common.h"

#include "datatype/timestamp.h"
#include "foreign/foreign.h"
#include "nodes/pg_list.h"

/* -------------------------------- effective.c ------------------------------ */

/* The result of reading a field whose value does not fit its column. */
typedef enum MongoTypeMismatch
{
	MONGO_TYPE_MISMATCH_ERROR,
	MONGO_TYPE_MISMATCH_NULL,
	MONGO_TYPE_MISMATCH_SKIP	/* the document is left out */
} MongoTypeMismatch;

/* Whether writes are undone if their PostgreSQL transaction is rolled back. */
typedef enum MongoTransactions
{
	MONGO_TRANSACTIONS_AUTO,	/* if the server supports it */
	MONGO_TRANSACTIONS_OFF,
	MONGO_TRANSACTIONS_REQUIRED /* if it does not, writes are refused */
} MongoTransactions;

/* What an INSERT does if a document with the row's key exists. */
typedef enum MongoInsertMode
{
	MONGO_INSERT_MODE_INSERT,	/* an error, if there is a unique index */
	MONGO_INSERT_MODE_UPSERT,	/* update it */
	MONGO_INSERT_MODE_IGNORE	/* keep it, and skip the row */
} MongoInsertMode;

/* When TCP considers a connection broken; 0: the operating system's default. */
typedef struct MongoTcpOptions
{
	int			keepalives_idle;	/* seconds without traffic before a probe */
	int			keepalives_interval;	/* seconds between two probes */
	int			keepalives_count;	/* unanswered probes */
	int			user_timeout;	/* milliseconds without acknowledgement */
} MongoTcpOptions;

/* A Boolean option without a default. */
typedef enum MongoTristate
{
	MONGO_NOT_GIVEN,
	MONGO_YES,
	MONGO_NO
} MongoTristate;

/* The options of a connection, from its server and user mapping. */
typedef struct MongoConnectionOptions
{
	const char *server_name;
	const char *uri;			/* NULL: not given; excludes the next five */
	const char *address;
	int			port;
	const char *replica_set;	/* NULL: not given, as for every string here */
	mongoc_read_mode_t read_mode;	/* 0: not given */
	MongoTristate ssl;			/* not given: if there are files for it */
	const char *pem_file;
	const char *pem_pwd;
	const char *ca_file;
	const char *ca_dir;
	const char *crl_file;
	bool		weak_cert_validation;
	const char *authentication_database;
	const char *auth_mechanism; /* one of mongo_auth_mechanism_names */
	const char *auth_properties;	/* see mongo_auth_properties() */
	const char *username;
	const char *password;
	const char *password_file;	/* excludes 'password' */
	const char *appname;		/* with the escapes of remote_internal.h */
	const char *comment;		/* with the same escapes */
	const char *compressors;	/* "zstd,zlib"; NULL: none */
	int			connect_timeout_ms; /* 0: not given, the URI's or the driver's */
	int			server_selection_timeout_ms;	/* 0: as above */
	int			socket_timeout_ms;	/* 0: none, or the URI's */
	MongoTcpOptions tcp;
	bool		keep_connections;
	int			async_connections;	/* of one user mapping, for concurrent
									 * reading */
	int			idle_timeout;	/* milliseconds; 0: none */
	int			max_connections;	/* of all sessions together; 0: no limit */
	MongoTransactions transactions;
	const char *write_concern;	/* "majority", a number, or a custom name */
	const char *read_concern;
} MongoConnectionOptions;

/* The options for planning and reading a table. */
typedef struct MongoTableOptions
{
	const char *database;
	const char *collection;
	double		estimated_rows; /* -1: not given */
	bool		use_remote_estimate;
	int			fetch_size;		/* documents per getMore; if batches grow, of
								 * the first one */
	bool		batches_grow;	/* fetch_size is not given */
	double		fdw_startup_cost;
	double		fdw_tuple_cost;
	double		fdw_lookup_cost;
	double		round_trip_time;	/* ms; -1: not given */
	double		bandwidth;		/* bytes a second; -1: not given */
	const char *pipeline;		/* JSON: stages that produce rows; NULL: none */
	const char *change_stream;	/* of what: "collection", "database" or
								 * "server"; NULL: rows are no changes */
	const char *full_document;	/* of $changeStream */
	int			max_wait;		/* ms for the first change; 0: none */
	bool		split_events;	/* have MongoDB split those of more than 16 MB */
	bool		allow_javascript;	/* in the pipeline */
	const char *unwind;			/* paths of arrays whose elements are the
								 * rows; NULL: none */
	const char *ordinality;		/* fields for element numbers; NULL: none */
	bool		unwind_empty;	/* a row for an array without elements, too */
	const char *hint;			/* an index: its name, or its keys as JSON;
								 * NULL: MongoDB chooses */
	mongoc_read_mode_t read_mode;	/* 0: the server's */
	const char *comment;		/* with the escapes of remote_internal.h;
								 * NULL: the server's */
	int			max_time_ms;	/* per command; 0: no limit */
	bool		enable_join_pushdown;
	bool		enable_aggregate_pushdown;
	bool		enable_order_by_pushdown;
	int			float_sums_remote;	/* MongoDB may add up float8 */
	uint32		pushdown_disable;	/* set of MongoFeature */
	MongoTypeMismatch type_mismatch;
	bool		canonical_json; /* show documents as canonical Extended JSON */
	bool		count_from_metadata;	/* count(*) may be inexact */
	bool		analyze_sampling;
	bool		async_capable;	/* under an asynchronous Append */
	int			batch_size;		/* rows per write command */
	bool		updatable;
	bool		truncatable;
	bool		write_null;		/* write NULL as null instead of omitting it */
	bool		generated_id;	/* ignore the _id of an INSERT */
	MongoInsertMode insert_mode;
	const char *key_columns;	/* names, for insert_mode; NULL: _id */
} MongoTableOptions;

/* Where a change stream starts: behind a position, or at a time. */
#define MONGO_STREAM_TOKEN	"token"
#define MONGO_STREAM_TIME	"time"
#define MONGO_STREAM_CLUSTER_TIME	"cluster_time"

/* The columns that are made of an event's resume token (MongoColumn), and are not in MongoDB. */
#define MONGO_TOKEN_COLUMN	"__token"
#define MONGO_CLUSTER_TIME_COLUMN	"__cluster_time"

/* The document in a change stream's events.  Most columns read a field of it. */
#define MONGO_STREAM_DOCUMENT	"fullDocument"

/* The options of a column: where and how its field is stored. */
typedef struct MongoColumnOptions
{
	const char *path;			/* never NULL: by default the column's name;
								 * in UTF-8, like documents */
	bool		is_pseudo;		/* __doc or __mismatch, which reads no path */
	MongoTristate indexed;		/* does an index begin with this field?  Not
								 * given: use ANALYZE's statistics */
	bson_type_t bson_type;		/* the only type that it reads and writes;
								 * BSON_TYPE_EOD: not given, see convert.h */
	MongoTypeMismatch type_mismatch;	/* its own, or the table's */
	const char *parameter;		/* of the table's pipeline, to which a
								 * condition gives its value; in UTF-8; NULL:
								 * none.  Of a change stream its start, one of
								 * MONGO_STREAM_TOKEN and the others */
} MongoColumnOptions;

/* Name of the column that shows which fields do not fit their columns. */
#define MONGO_MISMATCH_COLUMN	"__mismatch"

/* Name of the column that contains the whole document. */
#define MONGO_DOCUMENT_COLUMN	"__doc"

/* Tells whether a column has one of these two names, so that it reads no field. */
static inline bool
mongo_is_pseudo_column(const char *name)
{
	return strcmp(name, MONGO_DOCUMENT_COLUMN) == 0 || strcmp(name, MONGO_MISMATCH_COLUMN) == 0;
}

/* What the columns of a table have in common. */
typedef struct MongoColumnFacts
{
	uint32		mismatches;		/* values of their type_mismatch, as bits 1 <<
								 * MongoTypeMismatch */
	AttrNumber	shown_by;		/* number of the column __mismatch; 0: none */
	List	   *parameters;		/* numbers of those with the option parameter */
} MongoColumnFacts;

/* The options of IMPORT FOREIGN SCHEMA, see docs/import.md. */
typedef struct MongoImportOptions
{
	int			sample_size;	/* documents */
	int			nesting;		/* levels of documents that become columns */
	bool		import_views;
	bool		lower_case_names;
	int			snake_case;		/* names that need no quotes */
	int			mismatch_null;	/* reads what does not fit as NULL */
	int			array_tables;	/* also for arrays of documents */
	int			skip_existing;	/* tables whose name is in use */
	int			objectid_as_text;
} MongoImportOptions;

/* Data about a table that src/catalog caches with its options. */
typedef struct MongoTableFacts
{
	MemoryContext context;		/* of this data and the options */
	bool		statistics_read;
	const struct MongoStatistics *statistics;
	Oid			counted_by;		/* user mapping; InvalidOid: not counted yet */
	TimestampTz counted_at;
	double		documents;		/* the last count */
	bool		scanned;		/* did a scan end in this session? */
} MongoTableFacts;

extern MongoConnectionOptions *mongo_connection_options(ForeignServer *server, UserMapping *user);
extern MongoImportOptions mongo_import_options(List *definitions);
extern const char *mongo_read_concern(ForeignServer *server);
extern MongoTableFacts *mongo_table_facts(Oid foreigntableid);
extern const MongoTableOptions *mongo_table_options(Oid foreigntableid);
extern const MongoColumnOptions *mongo_column_options(Oid foreigntableid, AttrNumber attnum);
extern const MongoColumnFacts *mongo_column_facts(Oid foreigntableid);

/* --------------------------------- login.c -------------------------------- */

/* How a mechanism uses a user name or a password. */
typedef enum MongoCredentialUse
{
	MONGO_CREDENTIAL_UNUSED,	/* must not be given */
	MONGO_CREDENTIAL_OPTIONAL,
	MONGO_CREDENTIAL_REQUIRED
} MongoCredentialUse;

typedef struct MongoAuthMechanism
{
	const char *name;
	MongoCredentialUse username;
	MongoCredentialUse password;
	bool		is_external;	/* users are defined outside of MongoDB: their
								 * database is $external */
	bool		is_ambient;		/* may use the database server's identity */
} MongoAuthMechanism;

/* What a URI must not contain; why, and where to put it instead, as sentences. */
typedef struct MongoUriRefusal
{
	const char *name;
	const char *detail;
	const char *hint;
} MongoUriRefusal;

extern const mongoc_uri_t *mongo_uri_parse(const char *text, bson_error_t *error);
extern const MongoUriRefusal *mongo_uri_refusal_of_text(const char *text);
extern const MongoUriRefusal *mongo_uri_refusal(const mongoc_uri_t *uri);
extern bool mongo_uri_is_acknowledged(const mongoc_uri_t *uri);
extern const MongoAuthMechanism *mongo_auth_mechanism_named(const char *name);
extern const char *mongo_auth_properties(const char *text, bool secrets, bson_t *document);
extern List *mongo_split_list(const char *value);
extern bool mongo_path_is_under(const char *path, const char *parent);
extern UserMapping *mongo_user_mapping(Oid userid, Oid serverid);

/* -------------------------------- options.c ------------------------------- */

extern const char *mongo_read_mode_name(mongoc_read_mode_t mode);
extern bool mongo_uses_tls(const MongoConnectionOptions *options, const mongoc_uri_t *uri);

/* -------------------------------- settings.c ------------------------------ */

/* GUCs, defined by mongo_define_settings() from _PG_init(). */
extern bool mongo_enable_pushdown;
extern bool mongo_enable_batched_joins;

/* Whether the library is in shared_preload_libraries. */
extern bool mongo_is_preloaded;

/* Commands that take at least so many milliseconds are logged; -1: none. */
extern int	mongo_slow_command_ms;

/* Zero: as mongo_sync.enabled = off; all else has no meaning any more. */
extern int	mongo_sync_interval;

/* The index to use, in the form of option hint; empty: that option's. */
extern char *mongo_hint;
extern uint64 mongo_time_setting;	/* seconds << 32 | number; 0: none */

extern bool mongo_log_remote_query;
extern bool mongo_explain_remote_plans;

/*
 * Features of MongoDB that option pushdown_disable may name, because older and compatible
 * servers lack them.  In the order of the rows in settings.c.
 */
typedef enum MongoFeature
{
	MONGO_FEATURE_COLLATION,	/* {collation: {locale: "simple"}} */
	MONGO_FEATURE_COUNT,		/* the command count */
	MONGO_FEATURE_DISK_USE,		/* allowDiskUse */
	MONGO_FEATURE_EXPR,			/* $expr in a filter */
	MONGO_FEATURE_GROUP,		/* $group, for GROUP BY, DISTINCT, aggregates */
	MONGO_FEATURE_LET,			/* variables of a command, "let" */
	MONGO_FEATURE_LOOKUP,		/* $lookup, for joins */
	MONGO_FEATURE_NATURAL,		/* the hint {$natural: 1} */
	MONGO_FEATURE_SORT,			/* $sort, and the sort of find */
	MONGO_NFEATURES				/* number of features */
} MongoFeature;

extern void mongo_define_settings(void);
extern bool mongo_feature_is_disabled(uint32 pushdown_disable, MongoFeature feature);
extern bool mongo_feature_enabled(const MongoTableOptions *options, MongoFeature feature);
extern const char *mongo_feature_in_message(const char *message);

/* Bytes of an option's text, with few exceptions. */
#define MONGO_LONGEST_OPTION	16384

#endif							/* MONGO_FDW_OPTIONS_H */
