/*-------------------------------------------------------------------------
 *
 * options.h
 *		Options of servers, user mappings, tables and columns, and settings.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OPTIONS_H
#define MONGO_FDW_OPTIONS_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "foreign/foreign.h"
#include "nodes/pg_list.h"

/* ------ How one may log in to MongoDB: mechanisms and their properties ----- */

/* What a mechanism makes of a user name or a password. */
typedef enum MongoCredentialUse
{
	MONGO_CREDENTIAL_UNUSED,	/* giving one is a mistake */
	MONGO_CREDENTIAL_OPTIONAL,
	MONGO_CREDENTIAL_REQUIRED
} MongoCredentialUse;

typedef struct MongoAuthMechanism
{
	const char *name;
	MongoCredentialUse username;
	MongoCredentialUse password;
	bool		is_external;	/* users are not MongoDB's own: they are
								 * looked up in $external */
	bool		is_ambient;		/* logs in as what the database server is */
} MongoAuthMechanism;

/* mongo_auth_mechanism_named: in any case; or NULL. */
extern const MongoAuthMechanism *mongo_auth_mechanism_named(const char *name);

/*
 * mongo_auth_properties
 *		Add "NAME:value,NAME:value", of which some may be secret with 'secrets'; what is
 *		wrong with it as a palloc'd sentence that shows no value, or NULL.
 */
extern const char *mongo_auth_properties(const char *text, bool secrets, bson_t *document);

/* ------------- The options, read from the rows of options.c ---------------- */

/* What becomes of a field whose value its column's type cannot hold. */
typedef enum MongoTypeMismatch
{
	MONGO_TYPE_MISMATCH_ERROR,
	MONGO_TYPE_MISMATCH_NULL
} MongoTypeMismatch;

/* Whether writes are undone with the PostgreSQL transaction they belong to. */
typedef enum MongoTransactions
{
	MONGO_TRANSACTIONS_AUTO,	/* where the server can */
	MONGO_TRANSACTIONS_OFF,
	MONGO_TRANSACTIONS_REQUIRED /* or refuse to write */
} MongoTransactions;

/* What an INSERT does where a document with the row's key is there. */
typedef enum MongoInsertMode
{
	MONGO_INSERT_MODE_INSERT,	/* an error, if there is a unique index */
	MONGO_INSERT_MODE_UPSERT,	/* it is updated */
	MONGO_INSERT_MODE_IGNORE	/* it stays, and the row is passed over */
} MongoInsertMode;

/* When TCP takes the other end for dead; 0: the operating system decides. */
typedef struct MongoTcpOptions
{
	int			keepalives_idle;	/* seconds without traffic before a probe */
	int			keepalives_interval;	/* seconds between two probes */
	int			keepalives_count;	/* probes without an answer */
	int			user_timeout;	/* milliseconds without acknowledgement */
} MongoTcpOptions;

/* Everything that decides how a server is reached; from server and mapping. */
typedef struct MongoConnectionOptions
{
	const char *server_name;
	const char *uri;			/* NULL unless given; excludes the next five */
	const char *address;
	int			port;
	const char *replica_set;	/* NULL: not given, as with every string here */
	mongoc_read_mode_t read_mode;	/* 0: not given */
	bool		ssl;
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
	const char *password_file;	/* excludes the password */
	const char *appname;		/* with the escapes of remote_internal.h */
	const char *comment;		/* likewise */
	const char *compressors;	/* "zstd,zlib"; NULL: none */
	int			connect_timeout_ms; /* 0: not given, the URI's or the driver's */
	int			server_selection_timeout_ms;	/* likewise */
	int			socket_timeout_ms;	/* 0: none, or what the URI says */
	MongoTcpOptions tcp;
	bool		keep_connections;
	int			async_connections;	/* of one user mapping, for reading at
									 * once */
	int			idle_timeout;	/* milliseconds; 0: none */
	int			max_connections;	/* of all sessions together; 0: any number */
	MongoTransactions transactions;
	const char *write_concern;	/* "majority", a number, or a tag set's name */
	const char *read_concern;
} MongoConnectionOptions;

/* mongo_read_mode_name: as the option read_preference and $readPreference spell it. */
extern const char *mongo_read_mode_name(mongoc_read_mode_t mode);

/* Everything that decides how a collection is planned and read. */
typedef struct MongoTableOptions
{
	const char *database;
	const char *collection;
	double		estimated_rows; /* -1: not given */
	bool		use_remote_estimate;
	int			fetch_size;		/* documents a getMore asks for; what it
								 * begins with where batches grow */
	bool		batches_grow;	/* fetch_size is not given */
	double		fdw_startup_cost;
	double		fdw_tuple_cost;
	double		fdw_lookup_cost;
	double		remote_parallelism; /* scans that MongoDB serves at once; 0:
									 * one */
	const char *parallel_field; /* path by which scans are split */
	const char *pipeline;		/* JSON: stages that make the rows; NULL: none */
	bool		allow_javascript;	/* in these */
	const char *unwind;			/* paths, whose elements then make rows; NULL:
								 * none */
	const char *ordinality;		/* fields for their numbers; NULL: none */
	bool		unwind_empty;	/* a row for no elements, too */
	const char *hint;			/* an index: its name, or its keys as JSON;
								 * NULL: MongoDB chooses */
	mongoc_read_mode_t read_mode;	/* 0: as the server has it */
	const char *comment;		/* with the escapes of remote_internal.h;
								 * NULL: the server's */
	int			max_time_ms;	/* of a command; 0: no limit */
	bool		enable_join_pushdown;
	bool		enable_aggregate_pushdown;
	bool		enable_order_by_pushdown;
	uint32		pushdown_disable;	/* set of MongoFeature */
	MongoTypeMismatch type_mismatch;
	bool		canonical_json; /* documents as canonical Extended JSON */
	bool		count_from_metadata;	/* count(*) need not be exact */
	bool		analyze_sampling;
	bool		async_capable;	/* under an asynchronous Append */
	int			batch_size;		/* rows that a write command carries */
	bool		updatable;
	bool		truncatable;
	bool		write_null;		/* NULL is written as null, not left out */
	bool		generated_id;	/* an INSERT's _id is passed over */
	MongoInsertMode insert_mode;
	const char *key_columns;	/* names, of that mode; NULL: _id */
} MongoTableOptions;

/* Whether an index leads with a column's field. */
typedef enum MongoIndexed
{
	MONGO_INDEXED_LEARNED,		/* nothing is said: what ANALYZE has learned */
	MONGO_INDEXED_YES,
	MONGO_INDEXED_NO
} MongoIndexed;

/* One column: where in the document it is found. */
typedef struct MongoColumnOptions
{
	const char *path;			/* never NULL: the column's name by default;
								 * in UTF-8, as documents are */
	MongoIndexed indexed;		/* does an index lead with this field? */
	bson_type_t bson_type;		/* the one that the column reads and writes;
								 * BSON_TYPE_EOD: not given, see convert.h */
} MongoColumnOptions;

/*
 * mongo_connection_options, mongo_table_options, mongo_column_options
 *		The options in force, parsed; defaults filled in.
 *
 * A table's setting wins over its server's.  Raise nothing for options that
 * passed the validator.  Those of a connection are palloc'd; those of tables and
 * columns are remembered until an invalidation tells that they may have changed, and
 * what is given stays until the end of the transaction.
 */
extern MongoConnectionOptions *mongo_connection_options(ForeignServer *server,
														UserMapping *user);
extern const MongoTableOptions *mongo_table_options(Oid foreigntableid);
extern const MongoColumnOptions *mongo_column_options(Oid foreigntableid,
													  AttrNumber attnum);

/* What OPTIONS of IMPORT FOREIGN SCHEMA says, see docs/import.md. */
typedef struct MongoImportOptions
{
	int			sample_size;	/* documents */
	int			nesting;		/* levels of documents that become columns */
	bool		import_views;
	bool		lower_case_names;
	int			array_tables;	/* for arrays of documents, too */
	int			skip_existing;	/* tables of a name that is taken */
	int			objectid_as_text;
} MongoImportOptions;

/* mongo_import_options: raises HV00D for an unknown option, 22023 for a bad value. */
extern MongoImportOptions mongo_import_options(List *definitions);

/* What else is known of a table, by src/catalog. */
typedef struct MongoTableFacts
{
	MemoryContext context;		/* what it lives in */
	bool		statistics_read;
	const struct MongoStatistics *statistics;
	Oid			counted_by;		/* user mapping; InvalidOid: not yet */
	TimestampTz counted_at;
	double		documents;		/* that were counted */
} MongoTableFacts;

/* mongo_table_facts: a place for it, as long as for the table's options. */
extern MongoTableFacts *mongo_table_facts(Oid foreigntableid);

/*
 * mongo_read_concern
 *		The level that reads outside of transactions ask for, by the server's options
 *		or its URI; NULL: none.  In the current memory context.
 */
extern const char *mongo_read_concern(ForeignServer *server);

/*
 * What of MongoDB's language the option pushdown_disable may name, as older and
 * compatible servers lack it; in the order of the rows in settings.c.
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
	MONGO_FEATURE_SORT,			/* $sort, and the sort of find */
	MONGO_NFEATURES				/* how many there are */
} MongoFeature;

/*
 * mongo_feature_enabled
 *		May a command on this table use the feature?
 *
 * False when pushdown_disable names it, or when a switch that people know
 * under another name (enable_join_pushdown for LOOKUP,
 * enable_aggregate_pushdown for GROUP, enable_order_by_pushdown for SORT) is
 * off as a setting or an option.  mongo_fdw.enable_pushdown is another matter.
 */
extern bool mongo_feature_enabled(const MongoTableOptions *options,
								  MongoFeature feature);

/* mongo_feature_is_disabled: does pushdown_disable name the feature? */
extern bool mongo_feature_is_disabled(uint32 pushdown_disable, MongoFeature feature);

/* mongo_feature_in_message: the one that a server complains of not knowing, or NULL. */
extern const char *mongo_feature_in_message(const char *message);

/* -------------- Options that are lists: "lines, lines.parts" -------------- */

/*
 * mongo_split_list
 *		The parts between the commas, without the blanks around them, as char *; NIL
 *		for NULL.  Parts may be empty.  Palloc'd in the current memory context.
 */
extern List *mongo_split_list(const char *value);

/* mongo_path_is_under: is 'path' the same field as 'parent', or one inside it? */
extern bool mongo_path_is_under(const char *path, const char *parent);

/* ------------------------ The settings mongo_fdw.* ------------------------ */

/* GUCs, defined by mongo_define_settings() from _PG_init(). */
extern bool mongo_enable_pushdown;
extern bool mongo_enable_batched_joins;

/* The library is in shared_preload_libraries. */
extern bool mongo_is_preloaded;

/* Commands that were waited for so many milliseconds are logged; -1: none. */
extern int	mongo_slow_command_ms;

/* An index, as the option hint names it; empty: what that option says. */
extern char *mongo_hint;

extern bool mongo_log_remote_query;
extern bool mongo_explain_remote_plans;

/* mongo_define_settings: once a process; also reserves the prefix "mongo_fdw". */
extern void mongo_define_settings(void);

/*
 * mongo_uri_parse
 *		What libmongoc makes of the option uri; NULL, with *error set, if it refuses it.
 *
 * The result belongs to the current memory context and must not be destroyed.
 * Nothing is looked up on the network.  What libmongoc warns of is kept
 * (mongo_driver_message) and not logged, as it quotes the text.
 */
extern const mongoc_uri_t *mongo_uri_parse(const char *text,
										   bson_error_t *error);

/* What a URI must not hold, and why and where it belongs as sentences. */
typedef struct MongoUriRefusal
{
	const char *name;
	const char *detail;
	const char *hint;
} MongoUriRefusal;

/*
 * mongo_uri_refusal_of_text, mongo_uri_refusal
 *		Does a URI hold a secret, or how to log in?  NULL if it does not.
 *
 * Every user of the database can read a server's options, so such a URI is refused, by
 * DDL and again when it is used: an older version may have let it in, and another
 * version of the driver may read it otherwise.
 *
 * The first looks at the text alone: any @ that is not written as %40 may end a
 * user's name and password, and versions of libmongoc differ in which one does;
 * and options of the URI whose names speak of passwords, whether the driver
 * knows them or not.  The second asks libmongoc what it has found.
 */
extern const MongoUriRefusal *mongo_uri_refusal_of_text(const char *text);
extern const MongoUriRefusal *mongo_uri_refusal(const mongoc_uri_t *uri);

/* mongo_uri_is_acknowledged: does MongoDB tell what became of a write? */
extern bool mongo_uri_is_acknowledged(const mongoc_uri_t *uri);

/*
 * mongo_user_mapping
 *		As PostgreSQL's GetUserMapping().  Its error, 42704, has a HINT here, and the words
 *		of PostgreSQL 17 in all versions.
 */
extern UserMapping *mongo_user_mapping(Oid userid, Oid serverid);

#endif							/* MONGO_FDW_OPTIONS_H */
