/*-------------------------------------------------------------------------
 *
 * reader.c
 *		What the functions that read values have in common: iterators, mismatches and texts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include "catalog/namespace.h"
#include "utils/fmgroids.h"

/* --------------- Going through documents that a server sent --------------- */

/*
 * mongo_report_bad_bson
 *		Raises 08P01, "not valid BSON".
 */
void
mongo_report_bad_bson(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("MongoDB sent a document that is not valid BSON")));
}

/*
 * mongo_iter_is_at_end
 *		Tells whether 'iter', of which bson_iter_next() has returned false, is at the end of its
 *		document of this length.  Otherwise it is at invalid bytes, and nothing can be read from it.
 */
bool
mongo_iter_is_at_end(const bson_iter_t *iter, uint32 length)
{
	return iter->err_off == 0 && iter->off == length - 1;
}

/*
 * mongo_iter_descend
 *		Sets 'child' to enter the document or array at 'iter'; returns its length.  Raises 08P01 if
 *		its length or its end is not valid.
 */
uint32
mongo_iter_descend(const bson_iter_t *iter, bson_iter_t *child)
{
	const uint8_t *data;
	uint32_t	length;

	if (bson_iter_type(iter) == BSON_TYPE_ARRAY)
		bson_iter_array(iter, &length, &data);
	else
		bson_iter_document(iter, &length, &data);

	if (!bson_iter_init_from_data(child, data, length))
		mongo_report_bad_bson();
	return length;
}

/* ------------------------- Values that do not fit ------------------------- */

/*
 * mongo_mismatch
 *		Records that the value at 'iter' does not fit; always returns false.  'remark' must live
 *		until the error is raised, or until the next value is read.
 */
bool
mongo_mismatch(MongoReadContext *context, MongoMismatch mismatch,
			   const bson_iter_t *iter, const char *remark)
{
	context->mismatch = mismatch;
	context->value = *iter;
	context->remark = remark;
	return false;
}

/*
 * mongo_call_softly
 *		Calls a PostgreSQL function of up to three arguments.  If it raises a data exception,
 *		returns false and sets context->remark to a sentence about it.
 *
 * Before PostgreSQL 16 an input function can report bad input only by raising.  Catching an error
 * without a subtransaction is safe only for some of PostgreSQL's own functions, and only these have
 * rows in the table of types.  They compute on their arguments alone, hold no lock, pin or other
 * resource when they raise, and allocate only in the current memory context.
 */
bool
mongo_call_softly(MongoReadContext *context, FmgrInfo *function, Datum first, Datum second,
				  Datum third, Datum *value)
{
	MemoryContext caller = CurrentMemoryContext;
	volatile bool fits = true;

	PG_TRY();
	{
		*value = FunctionCall3(function, first, second, third);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		FlushErrorState();
		context->remark = error->message ? psprintf("PostgreSQL says: %s.", error->message) : NULL;
		fits = false;
	}
	PG_END_TRY();

	return fits;
}

/* ----- MongoDB's strings, which are UTF-8, in the database's encoding ----- */

/*
 * Tells whether the database's encoding can represent all of these characters.  Tries the
 * conversion and discards its result, as PostgreSQL has no cheaper check that does not raise.  Few
 * databases have an encoding other than UTF-8.
 */
static bool
encoding_holds(const char *text, uint32 length)
{
	int			encoding = GetDatabaseEncoding();
	int			size = length * MAX_CONVERSION_GROWTH + 1;
	unsigned char *converted;
	Oid			function;
	int			done;

	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII || length == 0)
		return true;

	function = FindDefaultConversionProc(PG_UTF8, encoding);
	if (!OidIsValid(function))
		return false;
	converted = palloc(size);
	done = pg_do_encoding_conversion_buf(function, PG_UTF8, encoding,
										 (unsigned char *) unconstify(char *, text),
										 length, converted, size, true);
	pfree(converted);
	return (uint32) done == length;
}

/*
 * mongo_text_is_valid
 *		Tells whether a text can store these bytes: UTF-8 without U+0000, whose characters the
 *		database's encoding can represent.
 */
bool
mongo_text_is_valid(const char *text, uint32 length)
{
	return mongo_is_plain_text(text, length) ||
		(pg_verify_mbstr(PG_UTF8, text, length, true) && encoding_holds(text, length));
}

/*
 * mongo_text_remark
 *		Returns why mongo_text_is_valid() is false, as a sentence for DETAIL; a static string.
 */
const char *
mongo_text_remark(const char *text, uint32 length)
{
	if (memchr(text, '\0', length) != NULL)
		return "It contains U+0000, which text cannot hold.";
	if (!pg_verify_mbstr(PG_UTF8, text, length, true))
		return "It is not valid UTF-8.";
	return "It contains a character that the database's encoding does not have.";
}

/*
 * mongo_text_to_server
 *		Converts valid UTF-8 to the database's encoding.  Returns 'text' itself if nothing changes,
 *		else a palloc'd copy, and sets *length to its length.
 */
const char *
mongo_text_to_server(const char *text, uint32 *length)
{
	const char *converted;

	if (GetDatabaseEncoding() == PG_UTF8)
		return text;
	converted = pg_any_to_server(text, *length, PG_UTF8);
	if (converted != text)
		*length = strlen(converted);
	return converted;
}

/*
 * mongo_cut_text
 *		Returns a palloc'd copy, truncated after at most 'limit' bytes and a whole character; "..."
 *		follows if it was truncated.
 */
char *
mongo_cut_text(const char *text, int limit)
{
	int			length = strlen(text);

	return length <= limit ? pstrdup(text) :
		psprintf("%.*s...", pg_mbcliplen(text, length, limit), text);
}

/*
 * mongo_limit_text
 *		Converts a text in *value to char(n) or varchar(n); a mismatch if it is too long.
 */
bool
mongo_limit_text(MONGO_READ_ARGS)
{
	FmgrInfo	assignment;

	fmgr_info(reader->typid == BPCHAROID ? F_BPCHAR_BPCHAR_INT4_BOOL :
			  F_VARCHAR_VARCHAR_INT4_BOOL, &assignment);
	return mongo_call_softly(context, &assignment, *value, Int32GetDatum(reader->typmod),
							 BoolGetDatum(false), value) ||
		mongo_mismatch(context, MONGO_MISMATCH_LENGTH, iter, NULL);
}
