/*-------------------------------------------------------------------------
 *
 * error.c
 *		MongoDB's and libmongoc's errors as PostgreSQL errors.
 *
 * MongoDB's own code, name and message go to DETAIL.  A HINT proposes what the user can do.  A
 * message that may quote documents is left out if the user may not read them (mongo_may_quote()).
 *
 * The tables come first: an error's code, or a part of its message, gives SQLSTATE and HINT.
 * Then come classes of errors, then the reading of failures from replies, and at the end what
 * raises them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "convert.h"

#include "utils/lsyscache.h"

/*
 * MongoDB's error codes that have an SQLSTATE.  Names and numbers are those of
 * https://www.mongodb.com/docs/manual/reference/error-codes/ .  "retryable"
 * follows the list of the Retryable Reads specification.
 */
typedef struct RemoteErrorRule
{
	int			code;
	int			sqlstate;
	bool		retryable;
	const char *hint;
} RemoteErrorRule;

#define TOO_LARGE_HINT \
	"MongoDB has no document of more than 16 MB. Write less into it; or where a query makes it, turn off what does so, for example by the options enable_aggregate_pushdown and enable_join_pushdown."

#define LARGE_TRANSACTION_HINT \
	"MongoDB holds what a transaction has written in its cache until it commits. Write less in one transaction, or through a server with the option transactions 'off'; or give MongoDB a larger cache."

#define OUTSIDE_HINT \
	"MongoDB writes to a capped or a time series collection only outside of its transactions: define its foreign table on a server with the option transactions 'off'."

#define CAPPED_SNAPSHOT_HINT \
	"MongoDB reads a capped collection only outside of snapshots: in READ COMMITTED, or through a server with the option transactions 'off', and with another read_concern than 'snapshot'."

#define TIME_SERIES_HINT \
	"MongoDB takes new documents of a time series collection. Which others it changes or deletes depends on its version; before 7.0 only those that are found by the metaField alone."

#define TOKEN_HINT \
	"A position is the __token of a row that the same change stream has given, and is compared by __token > value."

/* How much to show of MongoDB's details on a document that a validator refused. */
#define MAX_ERROR_INFO	2000

#define DOCUMENT_VALIDATION_FAILURE	121
#define UNAUTHORIZED	13
#define NOT_PRIMARY	10107
#define SNAPSHOT_UNAVAILABLE	246

/* Also raised for a stage that cannot run on a collection. */
#define INVALID_NAMESPACE	73

static const RemoteErrorRule rules[] =
{
	{6, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* HostUnreachable */
	{7, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* HostNotFound */
	{11, ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION, false, NULL}, /* UserNotFound */
	{13, ERRCODE_INSUFFICIENT_PRIVILEGE, false, /* Unauthorized */
	"Give the MongoDB user of the user mapping a role that allows this, or add username and password to the mapping."},
	{18, ERRCODE_INVALID_PASSWORD, false,	/* AuthenticationFailed */
	"Check username and password of the user mapping, and the server's authentication_database."},
	{26, ERRCODE_FDW_TABLE_NOT_FOUND, false, NULL}, /* NamespaceNotFound */
	{43, ERRCODE_INVALID_CURSOR_STATE, false,	/* CursorNotFound */
	"MongoDB closes a cursor that is not read from for 10 minutes (cursorTimeoutMillis), and when it is killed or the server restarts. Run the query again."},
	{50, ERRCODE_QUERY_CANCELED, false, /* MaxTimeMSExpired */
	"A command's time is limited by its maxTimeMS, which the option max_time_ms of the foreign table or server sets, or by MongoDB itself."},
	{52, ERRCODE_INVALID_PARAMETER_VALUE, false, NULL}, /* DollarPrefixedFieldName */
	{53, ERRCODE_INVALID_PARAMETER_VALUE, false, NULL}, /* InvalidIdField */
	{59, ERRCODE_FEATURE_NOT_SUPPORTED, false, NULL},	/* CommandNotFound */
	{61, ERRCODE_FEATURE_NOT_SUPPORTED, false,	/* ShardKeyNotFound */
	"The collection is sharded, and MongoDB finds a single document in it by the shard key. Add a condition on the shard key, or its columns to the option key_columns; or leave out RETURNING."},
	{63, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* StaleShardVersion */
	{73, ERRCODE_FDW_INVALID_STRING_FORMAT, false, NULL},	/* InvalidNamespace */
	{89, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* NetworkTimeout */
	{91, ERRCODE_ADMIN_SHUTDOWN, true, NULL},	/* ShutdownInProgress */
	{112, ERRCODE_T_R_SERIALIZATION_FAILURE, false, NULL},	/* WriteConflict */
	{115, ERRCODE_FEATURE_NOT_SUPPORTED, false, NULL},	/* CommandNotSupported */
	{121, ERRCODE_CHECK_VIOLATION, false, NULL},	/* DocumentValidationFailure */
	{133, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* FailedToSatisfyReadPreference */
	{134, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* ReadConcernMajorityNotAvailableYet */
	{136, ERRCODE_INVALID_CURSOR_STATE, false,	/* CappedPositionLost */
	"New documents in the capped collection have overtaken the scan. Run the query again."},
	{146, ERRCODE_OUT_OF_MEMORY, false, NULL},	/* ExceededMemoryLimit */
	{166, ERRCODE_WRONG_OBJECT_TYPE, false, /* CommandNotSupportedOnView */
	"MongoDB writes to no view, and to a time series collection not in this way. Create a foreign table over the view's source collection."},
	{167, ERRCODE_FEATURE_NOT_SUPPORTED, false, /* OptionNotSupportedOnView */
	"A view that has a collation compares text only by that. Create a foreign table over the view's source collection, with the view's stages as the option pipeline; or set mongo_fdw.enable_pushdown to off."},
	{175, ERRCODE_INVALID_CURSOR_STATE, false,	/* QueryPlanKilled */
	"The collection or an index was dropped or renamed while it was read. Run the query again."},
	{189, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* PrimarySteppedDown */
	{211, ERRCODE_DATA_EXCEPTION, false, NULL}, /* KeyNotFound */
	{237, ERRCODE_INVALID_CURSOR_STATE, false,	/* CursorKilled */
	"Somebody has closed the cursor in MongoDB (killCursors). Run the query again."},
	{239, ERRCODE_SNAPSHOT_TOO_OLD, false,	/* SnapshotTooOld */
	"Raise MongoDB's minSnapshotHistoryWindowInSeconds, or set the server's read_concern to 'local' to read without a snapshot."},
	{241, ERRCODE_DATA_EXCEPTION, false, NULL}, /* ConversionFailure */
	{246, ERRCODE_T_R_SERIALIZATION_FAILURE, false, NULL},	/* SnapshotUnavailable */
	{251, ERRCODE_T_R_SERIALIZATION_FAILURE, false, NULL},	/* NoSuchTransaction */
	{257, ERRCODE_PROGRAM_LIMIT_EXCEEDED, false,	/* TransactionTooLarge */
	LARGE_TRANSACTION_HINT},
	{260, ERRCODE_INVALID_PARAMETER_VALUE, false,	/* InvalidResumeToken */
	TOKEN_HINT},
	{262, ERRCODE_QUERY_CANCELED, true, NULL},	/* ExceededTimeLimit */
	{263, ERRCODE_FEATURE_NOT_SUPPORTED, false, /* OperationNotSupportedInTransaction */
	OUTSIDE_HINT},
	{280, ERRCODE_INVALID_PARAMETER_VALUE, false,	/* ChangeStreamFatalError */
	TOKEN_HINT},
	{286, ERRCODE_SNAPSHOT_TOO_OLD, false,	/* ChangeStreamHistoryLost */
	"MongoDB has removed these changes from its oplog. Start from the present, and copy the collection again. A larger oplog keeps changes for longer."},
	{290, ERRCODE_T_R_SERIALIZATION_FAILURE, false, /* TransactionExceededLifetimeLimitSeconds */
	"MongoDB aborts a transaction after a minute (transactionLifetimeLimitSeconds). Repeat it, or make it shorter."},
	{292, ERRCODE_OUT_OF_MEMORY, false, /* QueryExceededMemoryLimitNoDiskUseAllowed */
	"Let MongoDB use temporary files: give allowDiskUse, or take disk_use out of the option pushdown_disable."},
	{365, ERRCODE_INSUFFICIENT_RESOURCES, false, NULL}, /* TemporarilyUnavailable */
	{388, ERRCODE_PROGRAM_LIMIT_EXCEEDED, false,	/* TransactionTooLargeForCache */
	LARGE_TRANSACTION_HINT},
	{462, ERRCODE_INSUFFICIENT_RESOURCES, false, NULL}, /* IngressRequestRateLimitExceeded */
	{4568, ERRCODE_PROGRAM_LIMIT_EXCEEDED, false,	/* $lookup into too large
													 * an array */
	TOO_LARGE_HINT},
	{9001, ERRCODE_CONNECTION_FAILURE, true, NULL}, /* SocketException */
	{10107, ERRCODE_CONNECTION_FAILURE, true, MONGO_PRIMARY_HINT},	/* NotWritablePrimary */
	{10334, ERRCODE_PROGRAM_LIMIT_EXCEEDED, false, TOO_LARGE_HINT}, /* BSONObjectTooLarge */
	{11000, ERRCODE_UNIQUE_VIOLATION, false, NULL}, /* DuplicateKey */
	{11600, ERRCODE_ADMIN_SHUTDOWN, true, NULL},	/* InterruptedAtShutdown */
	{11601, ERRCODE_QUERY_CANCELED, false, NULL},	/* Interrupted */
	{11602, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* InterruptedDueToReplStateChange */
	{13388, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* StaleConfig */
	{13548, ERRCODE_PROGRAM_LIMIT_EXCEEDED, false,	/* a buffer of more than
													 * 64 MB */
	TOO_LARGE_HINT},
	{13435, ERRCODE_CONNECTION_FAILURE, true,	/* NotPrimaryNoSecondaryOk */
	"The server is a secondary: set replica_set, or a read_preference that allows it."},
	{13436, ERRCODE_CONNECTION_FAILURE, true, NULL},	/* NotPrimaryOrSecondary */
	{16493, ERRCODE_PROGRAM_LIMIT_EXCEEDED, false,	/* too long a string */
	"MongoDB makes no string of more than 16 MB. With the setting mongo_fdw.enable_pushdown off, PostgreSQL does."},
	{17419, ERRCODE_PROGRAM_LIMIT_EXCEEDED, false, TOO_LARGE_HINT}, /* a document after an
																	 * update */
	{17420, ERRCODE_PROGRAM_LIMIT_EXCEEDED, false,	/* likewise, after a
													 * replacement */
	TOO_LARGE_HINT},
	{40573, ERRCODE_FEATURE_NOT_SUPPORTED, false,	/* change stream of a
													 * standalone */
	"MongoDB has change streams only in replica sets, also of one member, and in sharded clusters."},
};

/* Codes of errors of operators that do not accept the type of their argument. */
static const int type_codes[] = {
	14,							/* TypeMismatch: $subtract, $multiply, $divide */
	16006, 16007,				/* to Date, to String */
	16554, 16611, 16702,		/* $add, $mod, $concat */
	17124, 17310,				/* $size, $setIsSubset */
	28651, 28664, 28689, 28724, 28765,	/* $filter, $concatArrays,
										 * $arrayElemAt, $slice, $abs and more */
	34450, 34471,				/* $substrCP, $strLenCP */
	40081, 40085, 40093, 50699, /* $in, $split, $indexOfCP, $trim */
	51104, 51746,				/* $regexMatch, $replaceAll */
	5166307, 5439012			/* $dateDiff, $dateTrunc */
};

/*
 * Errors that are recognized by a part of the message, because their codes are shared
 * (2 BadValue) or differ between MongoDB's engines.  Most come from the evaluation of an
 * expression; the SQLSTATE is that of PostgreSQL's own error.  Others refuse an operation on some
 * kinds of collections (20 IllegalOperation, 72 InvalidOptions, 246 SnapshotUnavailable).
 */
typedef struct EvaluationRule
{
	const char *part;
	int			sqlstate;
	const char *hint;
} EvaluationRule;

static const EvaluationRule evaluation_rules[] =
{
	{MONGO_INEXACT_SUM, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
	"Have PostgreSQL add up: set the table's option enable_aggregate_pushdown to 'false', or the setting mongo_fdw.enable_aggregate_pushdown to off."},
	{"can't $divide by zero", .sqlstate = ERRCODE_DIVISION_BY_ZERO},
	{"can't $mod by zero", .sqlstate = ERRCODE_DIVISION_BY_ZERO},
	{"Conversion would overflow target type", .sqlstate = ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE},
	{"Attempt to convert NaN", .sqlstate = ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE},
	{"Attempt to convert infinity", .sqlstate = ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE},
	{"$abs of long long min", .sqlstate = ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE},
	{"Failed to parse number", .sqlstate = ERRCODE_INVALID_TEXT_REPRESENTATION},
	{"Failed to parse objectId", .sqlstate = ERRCODE_INVALID_TEXT_REPRESENTATION},
	{"Error parsing date string", .sqlstate = ERRCODE_INVALID_DATETIME_FORMAT},
	{"Unsupported conversion from", .sqlstate = ERRCODE_FDW_INVALID_DATA_TYPE},
	{"$sqrt's argument", .sqlstate = ERRCODE_INVALID_ARGUMENT_FOR_POWER_FUNCTION},
	{"$pow cannot take a base of 0", .sqlstate = ERRCODE_INVALID_ARGUMENT_FOR_POWER_FUNCTION},
	{"$ln's argument", .sqlstate = ERRCODE_INVALID_ARGUMENT_FOR_LOG},
	{"$log10's argument", .sqlstate = ERRCODE_INVALID_ARGUMENT_FOR_LOG},
	{"$log's ", .sqlstate = ERRCODE_INVALID_ARGUMENT_FOR_LOG},
	{"the starting index must be nonnegative", .sqlstate = ERRCODE_SUBSTRING_ERROR},
	{"length must be a nonnegative", .sqlstate = ERRCODE_SUBSTRING_ERROR},
	{"$range requires a non-zero step", .sqlstate = ERRCODE_INVALID_PARAMETER_VALUE},
	{"date overflow", .sqlstate = ERRCODE_DATETIME_VALUE_OUT_OF_RANGE},
	{"dateAdd overflowed", .sqlstate = ERRCODE_DATETIME_VALUE_OUT_OF_RANGE},
	{"dateSubtract overflowed", .sqlstate = ERRCODE_DATETIME_VALUE_OUT_OF_RANGE},
	{"invalid dateAdd 'amount'", .sqlstate = ERRCODE_DATETIME_VALUE_OUT_OF_RANGE},
	{"'year' must evaluate to an integer", .sqlstate = ERRCODE_DATETIME_VALUE_OUT_OF_RANGE},
	{"hint provided does not correspond to an existing index", .sqlstate = ERRCODE_UNDEFINED_OBJECT,
	.hint = "Name an index of the collection in the table's option hint or the setting mongo_fdw.hint, or leave them out."},
	{"capped collection in a multi-document transaction", ERRCODE_FEATURE_NOT_SUPPORTED, OUTSIDE_HINT},
	{"Reading from capped collections with readConcern snapshot", ERRCODE_FEATURE_NOT_SUPPORTED,
	CAPPED_SNAPSHOT_HINT},
	{"on a time-series collection", ERRCODE_FEATURE_NOT_SUPPORTED, TIME_SERIES_HINT},
	{"running with 'notablescan'", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
	"MongoDB's parameter notablescan allows only queries that an index serves. Create an index, or add a condition on an indexed field."},
	{"resume token", ERRCODE_INVALID_PARAMETER_VALUE, TOKEN_HINT},
	{"KeyString format error", ERRCODE_INVALID_PARAMETER_VALUE, TOKEN_HINT},
	{"past end of buffer", ERRCODE_INVALID_PARAMETER_VALUE, TOKEN_HINT},
	{"levels of nesting", .sqlstate = ERRCODE_STATEMENT_TOO_COMPLEX},
	{"unrecognized time zone identifier", .sqlstate = ERRCODE_INVALID_PARAMETER_VALUE},
};

/* Errors of reads at a time (read_time.c), by code and a part of the message. */
static const struct
{
	int			code;
	const char *part;
	int			sqlstate;
	const char *hint;
}			time_rules[] =
{
	{50, "", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,	/* MaxTimeMSExpired */
	"A majority of the replica set's members may not have reached mongo_fdw.cluster_time yet, or the member that is read; or the option max_time_ms is too short."},
	{72, MONGO_TIME_TO_COME, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,	/* InvalidOptions */
	"The time in mongo_fdw.cluster_time has yet to come. mongo_cluster_time() returns the present one."},
	{72, "", ERRCODE_FEATURE_NOT_SUPPORTED, "Reading at a time takes MongoDB 5.0 or newer."},
	{123, "", ERRCODE_FEATURE_NOT_SUPPORTED,	/* NotAReplicaSet */
	"Make it a replica set, which may have one member."},
	{239, "", ERRCODE_SNAPSHOT_TOO_OLD, /* SnapshotTooOld */
	"MongoDB keeps earlier states for 300 seconds, or as long as its parameter minSnapshotHistoryWindowInSeconds says. Set mongo_fdw.cluster_time to a later time."},
	{246, "capped collections", ERRCODE_FEATURE_NOT_SUPPORTED,	/* SnapshotUnavailable */
	"MongoDB reads a capped collection only at present."},
	{246, "", ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, /* SnapshotUnavailable */
	"The collection has been created, dropped or renamed since, or the time is before MongoDB's. Set mongo_fdw.cluster_time to a later time."},
};

/*
 * Messages by which a server rejects a part of the query language that it does not know.
 * 'feature' is the feature to disable if the message names none.
 */
static const struct
{
	const char *part;
	const char *feature;
	bool		of_match;		/* a query predicate: the ones that mongo_fdw
								 * makes are known to all servers, except
								 * $expr */
}			unknown_rules[] =
{
	{"Unrecognized pipeline stage name", NULL, false},
	{"is an unknown field", NULL, false},
	{"Unrecognized field", NULL, false},	/* MongoDB 4.2 and older */
	{"unknown top level operator", NULL, true},
	{"is not allowed in user requests", NULL, false},
	{"no such command", NULL, false},
	{"unknown operator", NULL, true},
	{"Unrecognized expression", "expr", false},
	{"Unknown expression", "expr", false},
	{"unknown group operator", "group", false},
	/* FerretDB */
	{"$match :: caused by :: The operator", "expr", false},
	{"not implemented", NULL, false},
	{"is not yet supported", NULL, false},
	{"collation is not supported", "collation", false},
};

/* Hints for causes of a failed connection, recognized by a part of the message. */
static const struct
{
	const char *part;
	const char *hint;
}			connection_hints[] =
{
	{"certificate verif", "Set ca_file to the authority that signed the MongoDB server's certificate, and check that the certificate names the address."},
	{"could not set up TLS", "Check pem_file, pem_pwd, ca_file, ca_dir and crl_file of the foreign server; the files are read by the PostgreSQL server."},
	{"TLS handshake", "The MongoDB server may not use TLS: check the option ssl of the foreign server."},
	{"connection closed", "The MongoDB server may require TLS: check the option ssl of the foreign server."},
	{"Failed to receive length header", "The MongoDB server may require TLS or a client certificate: check the options ssl and pem_file of the foreign server."},
	{"Server closed connection", "The MongoDB server may require TLS: check the option ssl of the foreign server."},
	{"iterations of a password", "MongoDB uses 10000 for SCRAM-SHA-1 and 15000 for SCRAM-SHA-256, unless its parameters scramIterationCount and scramSHA256IterationCount are raised; a password has those of when it was set."},
	{"could not resolve", "Check the address of the foreign server."},
	{"Failed to look up SRV", "Check the host name in the option uri of the foreign server."},
	{"refused", "Check address and port of the foreign server, and that MongoDB is running there."},
	{"belongs to replica set", "Set the option replica_set, or replicaSet in the option uri, to that name."},
	{"belongs to no replica set", "Drop the option replica_set, or replicaSet in the option uri."},
	{"No suitable servers", "Check address, port, replica_set and read_preference of the foreign server."},
};

/* Returns the rule of a code, or an empty one if it has none. */
static const RemoteErrorRule *
find_rule(int code)
{
	static const RemoteErrorRule none;

	for (size_t i = 0; i < lengthof(rules); i++)
	{
		if (rules[i].code == code)
			return &rules[i];
	}
	return &none;
}

/*
 * mongo_error_is_retryable
 *		Tells whether a read that failed with this code may be sent once more (Retryable Reads
 *		specification).
 */
bool
mongo_error_is_retryable(int code)
{
	return find_rule(code)->retryable;
}

/*
 * mongo_catch_connection_error
 *		To be called in PG_CATCH(): clears an error of class 08, and raises any other one again.
 */
void
mongo_catch_connection_error(void)
{
	if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_TO_CATEGORY(ERRCODE_CONNECTION_EXCEPTION))
		PG_RE_THROW();
	FlushErrorState();
}

/*
 * mongo_failure_is_of_connection
 *		Tells whether the command has not begun, and may succeed over another connection: the
 *		member is no primary, or the user was dropped and perhaps created again.
 */
bool
mongo_failure_is_of_connection(const MongoFailure *failure)
{
	return failure->code == NOT_PRIMARY ||
		(failure->code == UNAUTHORIZED && strstr(failure->text, "requires authentication") != NULL);
}

/*
 * mongo_failure_is_retryable
 *		Tells whether mongo_error_is_retryable() or mongo_failure_is_of_connection() is true of a
 *		failure.
 */
bool
mongo_failure_is_retryable(const MongoFailure *failure)
{
	return mongo_error_is_retryable(failure->code) || mongo_failure_is_of_connection(failure);
}

/*
 * mongo_error_is_interruption
 *		Tells whether a command that failed with this code may have done a part of its work.
 */
bool
mongo_error_is_interruption(int code)
{
	int			sqlstate = find_rule(code)->sqlstate;

	return sqlstate == ERRCODE_QUERY_CANCELED || sqlstate == ERRCODE_ADMIN_SHUTDOWN ||
		sqlstate == ERRCODE_CONNECTION_FAILURE;
}

/*
 * mongo_error_is_lost_cursor
 *		Tells whether the server has closed the cursor of a getMore that failed with this code.
 */
bool
mongo_error_is_lost_cursor(int code)
{
	return find_rule(code)->sqlstate == ERRCODE_INVALID_CURSOR_STATE;
}

/* Returns a HINT if the message reports that a feature is missing, else NULL. */
static const char *
unknown_hint(const char *text)
{
	for (size_t i = 0; i < lengthof(unknown_rules); i++)
	{
		const char *part = strstr(text, unknown_rules[i].part);
		const char *feature;

		if (part == NULL)
			continue;
		if (strstr(text, "autocommit") != NULL)
			return "The server has no transactions: set its option transactions to 'off'. It may be older than MongoDB 5.0.";
		/* the message may begin with the whole command */
		feature = mongo_feature_in_message(part);
		if (feature == NULL)
			feature = mongo_feature_in_message(text);
		if (feature == NULL && unknown_rules[i].of_match)
			return "The document that mongo_match() was given has an operator that MongoDB does not know.";
		if (feature == NULL)
			feature = unknown_rules[i].feature;
		if (feature == NULL)
			return "The server may be older than MongoDB 5.0, or only compatible with it. The option pushdown_disable of servers and tables disables what it does not know.";
		return psprintf("The server may be older than MongoDB 5.0, or only compatible with it. Add \"%s\" to the option pushdown_disable of the foreign server or table.",
						feature);
	}
	return NULL;
}

/*
 * Tells whether the code may be that of a failed expression.  Messages with other codes may
 * contain text of a document, such as a duplicate key, so they are not searched for known parts.
 */
static bool
is_of_evaluation(int code)
{
	int			sqlstate = find_rule(code)->sqlstate;

	return sqlstate == 0 || sqlstate == ERRCODE_DATA_EXCEPTION;
}

/*
 * Tells whether MongoDB's message may contain values.  Messages about connections, privileges or
 * cursors contain none.
 */
static bool
quotes_documents(int code, int sqlstate)
{
	return sqlstate == ERRCODE_UNIQUE_VIOLATION || sqlstate == ERRCODE_CHECK_VIOLATION ||
		sqlstate == ERRCODE_PROGRAM_LIMIT_EXCEEDED || sqlstate == ERRCODE_OUT_OF_MEMORY ||
		is_of_evaluation(code);
}

/* Tells whether the user may read what the message quotes: of a duplicate key, its fields. */
static bool
may_quote_documents(const MongoFailure *failure)
{
	bson_iter_t pattern;
	bson_iter_t key;

	if (failure->document != NULL &&
		bson_iter_init_from_data(&pattern, failure->document, failure->length) &&
		bson_iter_find(&pattern, "keyPattern") && BSON_ITER_HOLDS_DOCUMENT(&pattern) &&
		bson_iter_recurse(&pattern, &key))
	{
		while (bson_iter_next(&key))
		{
			if (!mongo_may_quote_field(mongo_from_utf8(bson_iter_key(&key))))
				return false;
		}
	}
	return mongo_may_quote(NULL);
}

/* Tells whether the text names an operator or a stage, "$...", of the JSON. */
static bool
names_operator(const char *text, const char *json)
{
	for (const char *dollar = strchr(text, '$'); dollar != NULL; dollar = strchr(dollar + 1, '$'))
	{
		size_t		length = 1 + strspn(dollar + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

		if (length > 1 && strstr(json, psprintf("\"%.*s\"", (int) length, dollar)) != NULL)
			return true;
	}
	return false;
}

/*
 * Returns a HINT if the error may lie in the option pipeline of a table that is read, else
 * 'hint'.
 */
static const char *
pipeline_hint(int code, const char *text, int sqlstate, const char *hint)
{
	if (!is_of_evaluation(code) && code != INVALID_NAMESPACE)
		return hint;
	foreach_oid(relid, mongo_error_tables())
	{
		const char *pipeline = mongo_table_options(relid)->pipeline;

		if (pipeline != NULL &&
			(sqlstate != ERRCODE_FEATURE_NOT_SUPPORTED || names_operator(text, pipeline)))
			return psprintf("MongoDB runs the option pipeline of foreign table \"%s\" before what the query adds to it; the error may be in there.",
							get_rel_name(relid));
	}
	return hint;
}

/*
 * Returns a HINT if the error lies in a function's argument, which is sent to MongoDB unchanged,
 * else 'hint'.
 */
static const char *
function_hint(int code, int sqlstate, const char *hint)
{
	const char *function = mongo_error_function();

	if (function == NULL)
		return hint;
	if (sqlstate == ERRCODE_FEATURE_NOT_SUPPORTED || code == INVALID_NAMESPACE ||
		(hint != NULL && is_of_evaluation(code)))
		return psprintf("The argument of %s was sent to MongoDB unchanged; the error is in it.",
						function);
	return hint;
}

/* Returns the rule of a message, or NULL if it has none. */
static const EvaluationRule *
find_evaluation_rule(int code, const char *text)
{
	if (!is_of_evaluation(code) && code != SNAPSHOT_UNAVAILABLE)
		return NULL;
	for (size_t i = 0; i < lengthof(evaluation_rules); i++)
	{
		if (strstr(text, evaluation_rules[i].part) != NULL)
			return &evaluation_rules[i];
	}
	return NULL;
}

/*
 * mongo_failure_is_refusal
 *		Tells whether the server does not do such a thing at all, so that it has done no part of
 *		it.
 *
 * Allocates nothing: called at the end of transactions, too.
 */
bool
mongo_failure_is_refusal(const MongoFailure *failure)
{
	const EvaluationRule *evaluation = find_evaluation_rule(failure->code, failure->text);
	int			sqlstate = evaluation != NULL ? evaluation->sqlstate : find_rule(failure->code)->sqlstate;

	return sqlstate == ERRCODE_FEATURE_NOT_SUPPORTED || sqlstate == ERRCODE_WRONG_OBJECT_TYPE;
}

/* Returns the SQLSTATE of an error, and sets a HINT or NULL. */
static int
classify(int code, const char *text, const char **hint)
{
	const RemoteErrorRule *rule = find_rule(code);
	const EvaluationRule *evaluation = find_evaluation_rule(code, text);

	*hint = NULL;
	for (size_t i = 0; mongo_reads_at_time(NULL) && i < lengthof(time_rules); i++)
	{
		if (time_rules[i].code == code && strstr(text, time_rules[i].part) != NULL)
		{
			*hint = time_rules[i].hint;
			return time_rules[i].sqlstate;
		}
	}
	if (evaluation != NULL)
	{
		*hint = evaluation->hint;
		return evaluation->sqlstate;
	}
	for (size_t i = 0; i < lengthof(type_codes); i++)
	{
		if (type_codes[i] == code)
		{
			*hint = "A document may not fit its column. With the setting mongo_fdw.enable_pushdown off the error says which.";
			return ERRCODE_FDW_INVALID_DATA_TYPE;
		}
	}
	if (rule->hint != NULL ||
		(rule->sqlstate != 0 && rule->sqlstate != ERRCODE_FEATURE_NOT_SUPPORTED))
	{
		*hint = rule->hint;
		return rule->sqlstate;
	}
	*hint = unknown_hint(text);
	return rule->sqlstate != 0 ? rule->sqlstate :
		*hint != NULL ? ERRCODE_FEATURE_NOT_SUPPORTED : ERRCODE_FDW_ERROR;
}

/*
 * mongo_raise_mismatch
 *		Raises HV004: the field of a document in 'namespace' has a value of the BSON type 'found',
 *		an alias, which 'type' does not read.
 */
void
mongo_raise_mismatch(const char *field, const char *namespace, const char *type, const char *found)
{
	ereport(ERROR,
			(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
			 errmsg("could not read field \"%s\" of collection \"%s\" as type %s",
					field, namespace, type),
			 errdetail("A document holds a value of BSON type \"%s\".", found),
			 strcmp(type, MONGO_MISMATCH_ARRAY) == 0 ?
			 errhint("In MongoDB, find it with {\"%s\": {\"$type\": \"%s\"}}. With the table's option type_mismatch 'null' it is read as NULL.",
					 field, found) :
			 errhint("With the setting mongo_fdw.enable_pushdown off the error names the document; in MongoDB, find it with {\"%s\": {\"$type\": \"%s\"}}.",
					 field, found)));
}

/*
 * Raises the mismatch that a pipeline has found.  'text' begins with MONGO_MISMATCH.  It ends with
 * MongoDB's message on the $convert that raised the error.
 */
static void
raise_mismatch(const char *text)
{
	char	   *parts[4];
	char	   *next = pstrdup(text + strlen(MONGO_MISMATCH));
	char	   *end = strstr(next, "' in $convert");

	if (end != NULL)
		*end = '\0';
	for (size_t i = 0; i < lengthof(parts); i++)
	{
		parts[i] = next;
		end = strstr(next, MONGO_MISMATCH_SEPARATOR);
		next += strlen(next);
		if (end == NULL || i == lengthof(parts) - 1)
			continue;
		*end = '\0';
		next = end + strlen(MONGO_MISMATCH_SEPARATOR);
	}
	mongo_raise_mismatch(parts[0], parts[1], parts[2], parts[3]);
}

/* Shows MongoDB's code and message; 'text' is NULL if the user may not see it. */
static int
errdetail_remote(int code, const char *code_name, const char *text)
{
	const char *name = *code_name ? psprintf(" (%s)", code_name) : "";

	return text != NULL ? errdetail("MongoDB error %d%s: %s", code, name, text) :
		errdetail("MongoDB error %d%s.", code, name);
}

/*
 * mongo_report_connection_error
 *		Raises the failure to connect: 28P01 for refused credentials, 08P01 for invalid replies,
 *		08001 otherwise.
 */
void
mongo_report_connection_error(const char *server_name,
							  const bson_error_t *error)
{
	char	   *text = mongo_printable(error->message);
	bool		refused = error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE &&
		error->domain == MONGOC_ERROR_CLIENT;
	bool		invalid_reply = error->domain == MONGOC_ERROR_PROTOCOL &&
		error->code == MONGOC_ERROR_PROTOCOL_INVALID_REPLY;
	const char *hint;

	mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
	if ((error->domain == MONGOC_ERROR_SERVER ||
		 error->domain == MONGOC_ERROR_QUERY) &&
		(error->code == 18 || error->code == 11))
		refused = true;

	hint = refused ? find_rule(18)->hint : NULL;
	for (size_t i = 0; hint == NULL && i < lengthof(connection_hints); i++)
	{
		if (strstr(text, connection_hints[i].part) != NULL)
			hint = connection_hints[i].hint;
	}

	mongo_activity_note_failure(refused, text, hint);
	ereport(ERROR,
			(errcode(refused ? ERRCODE_INVALID_PASSWORD :
					 invalid_reply ? ERRCODE_PROTOCOL_VIOLATION :
					 ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
			 errmsg("could not connect to server \"%s\"", server_name),
			 errdetail("%s", text),
			 hint ? errhint("%s", hint) : 0));
}

/* Reads a failure from the document that reports it. */
static void
read_failure(const uint8 *document, uint32 length, MongoFailure *failure)
{
	bson_iter_t iter;

	*failure = (MongoFailure) {
		.index = -1,
		.code_name = "",
		.text = "no message was given",
		.document = document,
		.length = length
	};
	if (document == NULL || !bson_iter_init_from_data(&iter, document, length))
		return;
	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if (strcmp(key, "index") == 0 && BSON_ITER_HOLDS_NUMBER(&iter))
			failure->index = (int) bson_iter_as_int64(&iter);
		else if (strcmp(key, "code") == 0 && BSON_ITER_HOLDS_NUMBER(&iter))
			failure->code = (int) bson_iter_as_int64(&iter);
		else if (strcmp(key, "codeName") == 0 && BSON_ITER_HOLDS_UTF8(&iter))
			failure->code_name = bson_iter_utf8(&iter, NULL);
		else if (strcmp(key, "errmsg") == 0 && BSON_ITER_HOLDS_UTF8(&iter))
			failure->text = bson_iter_utf8(&iter, NULL);
	}
}

/*
 * mongo_read_failure
 *		Reads the failure of one operation from an element of writeErrors, or from
 *		writeConcernError.  Texts point into the reply.
 */
void
mongo_read_failure(const bson_iter_t *element, MongoFailure *failure)
{
	const uint8_t *document = NULL;
	uint32_t	length = 0;

	if (BSON_ITER_HOLDS_DOCUMENT(element))
		bson_iter_document(element, &length, &document);
	read_failure(document, length, failure);
}

/*
 * mongo_read_reply_failure
 *		Reads the failure of a command from a reply with {ok: 0}.  Texts point into the reply.
 */
void
mongo_read_reply_failure(const MongoReply *reply, MongoFailure *failure)
{
	read_failure(reply->document, reply->length, failure);
	failure->transient = mongo_reply_has_label(reply, "TransientTransactionError");
}

/*
 * mongo_reply_failure
 *		Tells whether a command has no reply or {ok: 0}, and sets *failure then.
 */
bool
mongo_reply_failure(const MongoConnection *connection, const MongoReply *reply,
					MongoFailure *failure)
{
	const char *violation = connection->transport.violation;

	if (reply->document == NULL)
	{
		*failure = (MongoFailure) {
			.lost = true,
			.transient = connection->in_transaction,
			.text = violation != NULL ? violation :
			"The connection was lost before MongoDB had answered."
		};
		return true;
	}
	if (mongo_reply_is_ok(reply))
		return false;
	mongo_read_reply_failure(reply, failure);
	return true;
}

/*
 * Returns MongoDB's message in printable form, with the details (errInfo) on a document that a
 * validator refused.
 */
static char *
error_text(const MongoFailure *failure)
{
	char	   *text = mongo_printable(failure->text);
	char	   *shown = NULL;
	bson_iter_t info;

	if (failure->code == DOCUMENT_VALIDATION_FAILURE && mongo_may_quote_field("") &&
		bson_iter_init_from_data(&info, failure->document, failure->length) &&
		bson_iter_find(&info, "errInfo") && BSON_ITER_HOLDS_DOCUMENT(&info))
		shown = mongo_json_show_value(&info, true, MAX_ERROR_INFO);
	return shown == NULL ? text : psprintf("%s: %s", text, shown);
}

/* Raises a lost connection (08006) or an aborted transaction (40001). */
pg_noreturn static void
raise_of_connection(const char *message, const MongoFailure *failure, const char *hint)
{
	const char *text = mongo_printable(failure->text);

	if (!failure->transient)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("%s", message),
				 errdetail("%s", text),
				 hint ? errhint("%s", hint) : 0));
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("%s", message),
			 failure->lost ? errdetail("MongoDB aborts the transaction: %s", text) :
			 errdetail("MongoDB aborted the transaction, error %d: %s", failure->code, text),
			 errhint("Retry the transaction.%s",
					 failure->code == NOT_PRIMARY ? " " MONGO_PRIMARY_HINT : "")));
}

/*
 * mongo_raise_failure
 *		Raises a failure.  'message' names the attempt ("could not read collection \"db.coll\"").
 *		Without a 'hint' (NULL), the error's code and text decide on one.
 *
 * Raises 08006 for a lost connection, 40001 for a transient error, and 0A000 if the server does
 * not know a part of the language.  For a failed expression, raises what PostgreSQL would raise.
 * Otherwise a table of MongoDB's codes gives the SQLSTATE (11000 -> 23505, ...), or HV000.
 */
void
mongo_raise_failure(const char *message, const MongoFailure *failure, const char *hint)
{
	int			code = failure->code;
	const char *text;
	const char *mismatch;
	const char *hint_for_code;
	int			sqlstate;
	bool		may_quote;

	mongo_note_failure_at_time(code);
	/* MongoDB also calls transient what no repetition would do */
	if (failure->lost || (failure->transient && !mongo_failure_is_refusal(failure)))
	{
		mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
		raise_of_connection(message, failure, hint);
	}
	text = error_text(failure);
	mismatch = is_of_evaluation(code) ? strstr(text, MONGO_MISMATCH) : NULL;
	if (mismatch != NULL)
		raise_mismatch(mismatch);
	sqlstate = classify(code, text, &hint_for_code);
	may_quote = !quotes_documents(code, sqlstate) || may_quote_documents(failure);
	if (hint == NULL)
		hint = function_hint(code, sqlstate,
							 pipeline_hint(code, text, sqlstate, hint_for_code));
	if (!may_quote && hint == NULL)
		hint = "MongoDB's message is shown only to users who may read all columns and rows of the table, and use the server if it is about other fields.";
	mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg("%s", message),
			 errdetail_remote(code, mongo_printable(failure->code_name),
							  may_quote ? text : NULL),
			 hint ? errhint("%s", hint) : 0));
}
