/*-------------------------------------------------------------------------
 *
 * remote_error.h
 *		MongoDB's and libmongoc's errors as PostgreSQL errors.
 *
 * This is the one border where a bson_error_t or a command reply with
 * {ok: 0} becomes an SQLSTATE.  MongoDB's own code, name and message go to
 * DETAIL; where a person can act, a HINT says how.  A message that may quote
 * documents is left out where the user may not read them: see privileges.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_REMOTE_ERROR_H
#define MONGO_FDW_REMOTE_ERROR_H

#include "compat.h"

/*
 * What a pipeline makes MongoDB's error say where it finds that a sum has been
 * rounded; raised as 22003.
 */
#define MONGO_INEXACT_SUM	"a sum has more digits than MongoDB can hold:"

/*
 * What a pipeline makes MongoDB's error say where it finds that a document does
 * not fit its column; raised as HV004.  What follows, each but the last with
 * MONGO_MISMATCH_SEPARATOR behind it: path, "database.collection", the type of the
 * column, the BSON type.
 */
#define MONGO_MISMATCH			"a field does not fit its column: "
#define MONGO_MISMATCH_SEPARATOR	"; "

/* What stands for the type where the option unwind wants an array. */
#define MONGO_MISMATCH_ARRAY	"array"

/* MongoDB's code for an operation that was killed. */
#define MONGO_INTERRUPTED		11601

/*
 * mongo_report_connection_error
 *		Raise what kept us from a usable connection to 'server_name'.
 *
 * SQLSTATE: 28P01 for refused credentials, 08P01 for replies that are no valid
 * ones, 08001 otherwise.
 */
pg_noreturn extern void mongo_report_connection_error(const char *server_name,
													  const bson_error_t *error);

/*
 * mongo_report_command_error
 *		Raise the error that a command reply carries.
 *
 * 'reply' is a document with {ok: 0, code, codeName, errmsg}; 'context_message' names
 * what was attempted ("could not read collection \"db.coll\"").  The SQLSTATE
 * comes from a table of MongoDB codes (11000 -> 23505, 13 -> 42501, 50 ->
 * 57014, 112 -> 40001, ...), else HV000.  Where evaluating an expression has
 * failed it is what PostgreSQL raises for the same (22012, 22003, 22P02, 22008,
 * ...); where the server does not know a part of the language it is 0A000, and
 * the HINT names what to disable (feature.h).
 */
pg_noreturn extern void mongo_report_command_error(const char *context_message,
												   const bson_t *reply);

/*
 * mongo_report_bson_error
 *		Like mongo_report_command_error, from what a libmongoc call gives back.
 *
 * 'reply' may be NULL.  08006 where the connection is lost, or the member that is reached
 * is none of the set's; HV000 for what else libmongoc itself has found.
 */
pg_noreturn extern void mongo_report_bson_error(const char *context_message,
												const bson_error_t *error,
												const bson_t *reply);

/*
 * mongo_error_text
 *		MongoDB's message for a code, printable, with what it tells beside it of a
 *		document that a validator refuses: 'info' is its errInfo, or NULL.
 */
extern char *mongo_error_text(int code, const char *message, const bson_iter_t *info);

/*
 * mongo_report_write_error
 *		Raise the error of one operation in a bulk write.
 *
 * The SQLSTATE is that of MongoDB's 'code', and so is the HINT where 'hint' is NULL;
 * 'text' goes to DETAIL.
 */
pg_noreturn extern void mongo_report_write_error(const char *context_message, int code,
												 const char *text, const char *hint);

/*
 * mongo_report_transient_error
 *		Raise 40001 for a transaction that MongoDB has ended and that may be tried
 *		again.
 */
pg_noreturn extern void mongo_report_transient_error(const char *context_message,
													 const bson_error_t *error);

/*
 * mongo_error_is_retryable
 *		May a read that failed with this server code be sent once more?
 *
 * The list is that of the Retryable Reads specification.
 */
extern bool mongo_error_is_retryable(int code);

/*
 * mongo_error_is_interruption
 *		May a command that failed with this code have done a part of its work?
 *
 * Those that MongoDB calls interruptions: killed, out of time, a server that
 * shuts down or steps down.
 */
extern bool mongo_error_is_interruption(int code);

/*
 * mongo_reply_is_ok
 *		Does the reply say that the command was carried out?
 */
extern bool mongo_reply_is_ok(const bson_t *reply);

/*
 * mongo_reply_has_label
 *		Does the reply carry this error label of the driver specifications?
 */
extern bool mongo_reply_has_label(const bson_t *reply, const char *label);

#endif							/* MONGO_FDW_REMOTE_ERROR_H */
