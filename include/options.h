/*-------------------------------------------------------------------------
 *
 * options.h
 *		What CREATE SERVER, USER MAPPING and FOREIGN TABLE may say.
 *
 * Every option stands once, as a row of src/options/option_table.c: name,
 * the objects that take it, kind of value, bounds, default.  The validator,
 * the error hints, the readers below and a test over docs/options.md all work
 * from that table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OPTIONS_H
#define MONGO_FDW_OPTIONS_H

#include "compat.h"

#include "foreign/foreign.h"

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
	const char *auth_mechanism; /* as auth_mechanism.h spells it */
	const char *auth_properties;	/* see mongo_auth_properties() */
	const char *username;
	const char *password;
	const char *password_file;	/* excludes the password */
	const char *appname;		/* with the escapes of trace.h */
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

/*
 * mongo_read_mode_name
 *		A mode as the option read_preference and $readPreference spell it.
 */
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
	const char *comment;		/* with the escapes of trace.h; NULL: the
								 * server's */
	int			max_time_ms;	/* of a command; 0: no limit */
	bool		enable_join_pushdown;
	bool		enable_aggregate_pushdown;
	bool		enable_order_by_pushdown;
	uint32		pushdown_disable;	/* see feature.h */
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
								 * BSON_TYPE_EOD: not given, see
								 * declared_type.h */
} MongoColumnOptions;

/*
 * mongo_connection_options, mongo_table_options, mongo_column_options
 *		The options in force, parsed; defaults filled in.
 *
 * A table's setting wins over its server's.  Raise nothing for options that
 * passed the validator.  Those of tables and columns are remembered until an
 * invalidation tells that they may have changed; what is given is always a
 * copy of the caller's own, palloc'd in the current memory context.
 */
extern MongoConnectionOptions *mongo_connection_options(ForeignServer *server,
														UserMapping *user);
extern MongoTableOptions *mongo_table_options(Oid foreigntableid);
extern MongoColumnOptions *mongo_column_options(Oid foreigntableid,
												AttrNumber attnum);

/*
 * mongo_read_concern
 *		The level that reads outside of transactions ask for, by the server's options
 *		or its URI; NULL: none.  In the current memory context.
 */
extern const char *mongo_read_concern(ForeignServer *server);

#endif							/* MONGO_FDW_OPTIONS_H */
