/*-------------------------------------------------------------------------
 *
 * fuzz.c
 *		libFuzzer inside a PostgreSQL process.
 *
 * What is fuzzed needs PostgreSQL's memory contexts, errors and type
 * functions, so the fuzzer is a function that a stand-alone backend calls.
 * libFuzzer ends the process when its time is up.
 *
 * https://llvm.org/docs/LibFuzzer.html
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fuzz.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "remote.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timeout.h"

#define LONGEST_INPUT_MS	1000

extern int	LLVMFuzzerRunDriver(int *argc, char ***argv,
								int (*run) (const uint8_t *data, size_t size));

PG_FUNCTION_INFO_V1(mongo_fdw_fuzz);

static const FuzzTarget *target;
static MemoryContext input_context;

void
fuzz_check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "fuzz: does not hold: %s\n", what);
	abort();
}

/*
 * fuzz_one: libFuzzer's callback.
 *
 * PostgreSQL's compiler of regular expressions may take time that is exponential in a pattern's
 * length, so that an input is cancelled as by statement_timeout.
 */
static int
fuzz_one(const uint8_t *data, size_t size)
{
	MemoryContext caller_context = MemoryContextSwitchTo(input_context);

	PG_TRY();
	{
		enable_timeout_after(STATEMENT_TIMEOUT, LONGEST_INPUT_MS);
		target->run(data, size);
		CHECK_FOR_INTERRUPTS();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(input_context);
		error = CopyErrorData();
		FlushErrorState();
		if (error->sqlerrcode == ERRCODE_INTERNAL_ERROR)
			fprintf(stderr, "fuzz: internal error: %s\n", error->message);
		fuzz_check(error->sqlerrcode != ERRCODE_INTERNAL_ERROR, "no internal error");
	}
	PG_END_TRY();
	disable_timeout(STATEMENT_TIMEOUT, false);
	MemoryContextSwitchTo(caller_context);
	MemoryContextReset(input_context);
	return 0;
}

/*
 * mongo_fdw_fuzz(target text, arguments text[])
 *		Fuzz until libFuzzer's arguments say that it is enough.
 */
Datum
mongo_fdw_fuzz(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Datum	   *values;
	int			count;
	int			argc;
	char	  **argv;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT,
					  &values, NULL, &count);
	argc = count + 1;
	argv = palloc(sizeof(char *) * (argc + 1));
	argv[0] = name;
	for (int i = 0; i < count; i++)
		argv[i + 1] = TextDatumGetCString(values[i]);
	argv[argc] = NULL;

	for (target = fuzz_targets; target->name != NULL && strcmp(target->name, name) != 0;)
		target++;
	if (target->name == NULL)
		elog(ERROR, "there is nothing to fuzz that is named \"%s\"", name);

	mongo_initialize_library();
	input_context = AllocSetContextCreate(CurrentMemoryContext, "fuzz input",
										  ALLOCSET_DEFAULT_SIZES);
	if (target->prepare != NULL)
		target->prepare();
	PG_RETURN_INT32(LLVMFuzzerRunDriver(&argc, &argv, fuzz_one));
}
