/*-------------------------------------------------------------------------
 *
 * decode_text_form.c
 *		Types that BSON has no counterpart for: Strings in the type's own
 *		text form, and enums.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "decode_text_form.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "encoding.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* What a reader of this kind keeps at hand. */
typedef struct TextFormReader
{
	FmgrInfo	input;
	Oid			ioparam;
	bool		may_fail;		/* is an error of the input function caught? */
} TextFormReader;

/*
 * string_value: a String or Symbol as a C string in the database's encoding,
 * or NULL when no text can hold it.
 */
static char *
string_value(MongoReadContext *context, const bson_iter_t *iter)
{
	uint32_t	length;
	const char *text = bson_iter_type(iter) == BSON_TYPE_SYMBOL ?
		bson_iter_symbol(iter, &length) : bson_iter_utf8(iter, &length);
	const char *converted;

	if (!mongo_text_is_valid(text, length))
	{
		mongo_mismatch(context, MONGO_MISMATCH_CHARACTERS, iter,
					   mongo_text_remark(text, length));
		return NULL;
	}
	converted = mongo_text_to_server(text, &length);
	return pnstrdup(converted, length);
}

void
mongo_prepare_text_form(MongoReader *reader)
{
	TextFormReader *form = MemoryContextAllocZero(reader->mcxt, sizeof(TextFormReader));
	Oid			function;

	getTypeInputInfo(reader->typid, &function, &form->ioparam);
	fmgr_info_cxt(function, &form->input, reader->mcxt);
	form->may_fail = OidIsValid(reader->type->typid);
	reader->extra = form;
}

/*
 * call_input_softly
 *		Call the input function; false and a message when it finds the text
 *		unfit.
 *
 * Before PostgreSQL 16 an input function can only raise.  Catching that
 * without a subtransaction is sound for the functions concerned and for no
 * others, hence their own rows in the table of types: they are PostgreSQL's,
 * compute on their argument alone, hold no lock, pin or other resource when
 * they raise, and allocate nothing outside the current memory context.  Only
 * data exceptions are caught; a cancel or lack of memory goes on its way.
 */
static bool
call_input_softly(const MongoReader *reader, char *text, Datum *value,
				  const char **message)
{
	TextFormReader *form = reader->extra;
	MemoryContext caller = CurrentMemoryContext;
	volatile bool fits = true;

	PG_TRY();
	{
		*value = InputFunctionCall(&form->input, text, form->ioparam,
								   reader->typmod);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		FlushErrorState();
		*message = error->message ? psprintf("PostgreSQL says: %s.", error->message) : NULL;
		fits = false;
	}
	PG_END_TRY();

	return fits;
}

bool
mongo_read_text_form(MONGO_READ_ARGS)
{
	TextFormReader *form = reader->extra;
	char	   *text = string_value(context, iter);
	const char *message = NULL;

	if (text == NULL)
		return false;
	if (!form->may_fail && context->defers_input)
	{
		context->unread = true;
		return false;
	}
	if (!form->may_fail)
		*value = InputFunctionCall(&form->input, text, form->ioparam,
								   reader->typmod);
	else if (!call_input_softly(reader, text, value, &message))
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter, message);
	pfree(text);
	return true;
}

bool
mongo_read_enum(MONGO_READ_ARGS)
{
	char	   *label = string_value(context, iter);
	HeapTuple	tuple;

	if (label == NULL)
		return false;
	tuple = strlen(label) < NAMEDATALEN ?
		SearchSysCache2(ENUMTYPOIDNAME, ObjectIdGetDatum(reader->typid),
						CStringGetDatum(label)) : NULL;
	if (!HeapTupleIsValid(tuple))
		return mongo_mismatch(context, MONGO_MISMATCH_SYNTAX, iter,
							  "The enum has no such label.");
	*value = ObjectIdGetDatum(((Form_pg_enum) GETSTRUCT(tuple))->oid);
	ReleaseSysCache(tuple);
	pfree(label);
	return true;
}
