/*-------------------------------------------------------------------------
 *
 * answers.c
 *		What MongoDB has answered to the commands of one scan, to be given again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "answers.h"

#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

/* The bytes of a command. */
typedef struct CommandKey
{
	const uint8 *bytes;
	uint32		length;
} CommandKey;

typedef struct Answer
{
	CommandKey	command;
	int64		first;			/* row, in the tuplestore */
	int64		nrows;
	bool		whole;
} Answer;

struct MongoAnswers
{
	MemoryContext context;
	MemoryContext keys_context; /* of 'known' and the commands */
	HTAB	   *known;
	Tuplestorestate *rows;
	Answer	   *current;		/* NULL: none, or it has been forgotten */
	Answer	   *last;			/* that was written; likewise */
	int64		position;		/* in it */
	int64		reused;
};

/* hash_command: for hash_create(). */
static uint32
hash_command(const void *key, Size keysize pg_attribute_unused())
{
	const CommandKey *command = key;

	return hash_bytes(command->bytes, command->length);
}

/* compare_commands: likewise. */
static int
compare_commands(const void *left, const void *right, Size keysize pg_attribute_unused())
{
	const CommandKey *one = left;
	const CommandKey *other = right;

	return one->length == other->length &&
		memcmp(one->bytes, other->bytes, one->length) == 0 ? 0 : 1;
}

/* create_known: an empty table of commands. */
static void
create_known(MongoAnswers *answers)
{
	HASHCTL		control = {
		.keysize = sizeof(CommandKey),
		.entrysize = sizeof(Answer),
		.hash = hash_command,
		.match = compare_commands,
		.hcxt = answers->keys_context,
	};

	answers->known = hash_create("mongo_fdw answers", 16, &control,
								 HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
}

MongoAnswers *
mongo_answers_create(MemoryContext context)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoAnswers *answers = palloc0(sizeof(MongoAnswers));

	answers->context = context;
	answers->keys_context = AllocSetContextCreate(context, "mongo_fdw answers",
												  ALLOCSET_SMALL_SIZES);
	create_known(answers);
	answers->rows = tuplestore_begin_heap(false, false, work_mem);
	tuplestore_set_eflags(answers->rows, EXEC_FLAG_REWIND);
	/* a second pointer stays where the last answer begins */
	(void) tuplestore_alloc_read_pointer(answers->rows, EXEC_FLAG_REWIND);
	MemoryContextSwitchTo(old_context);
	return answers;
}

void
mongo_answers_forget(MongoAnswers *answers)
{
	if (answers->current == NULL)
		return;
	hash_search(answers->known, &answers->current->command, HASH_REMOVE, NULL);
	if (answers->last == answers->current)
		answers->last = NULL;
	answers->current = NULL;
}

void
mongo_answers_leave(MongoAnswers *answers)
{
	if (answers->current != NULL && !answers->current->whole)
		mongo_answers_forget(answers);
	answers->current = NULL;
}

/* answers_are_full: is it time to forget, before another answer is written? */
static bool
answers_are_full(const MongoAnswers *answers)
{
	return !tuplestore_in_memory(answers->rows) ||
		MemoryContextMemAllocated(answers->keys_context, true) > (Size) work_mem * 1024;
}

/* forget_answers: nothing is known any more. */
static void
forget_answers(MongoAnswers *answers)
{
	tuplestore_clear(answers->rows);
	hash_destroy(answers->known);
	MemoryContextReset(answers->keys_context);
	create_known(answers);
	answers->current = answers->last = NULL;
}

/* add_answer: a new one, to be written behind all others. */
static void
add_answer(MongoAnswers *answers, const bson_t *command)
{
	CommandKey	key = {.length = command->len};
	uint8	   *bytes;

	if (answers_are_full(answers))
		forget_answers(answers);
	bytes = MemoryContextAlloc(answers->keys_context, command->len);
	memcpy(bytes, bson_get_data(command), command->len);
	key.bytes = bytes;
	answers->current = answers->last = hash_search(answers->known, &key, HASH_ENTER, NULL);
	answers->current->first = tuplestore_tuple_count(answers->rows);
	answers->current->nrows = 0;
	answers->current->whole = false;
}

/*
 * seek_answer: have the active read pointer stand before the current one's first
 * row.  In memory any row is as near as the first; in a file only the answer that
 * was written last is known.
 */
static void
seek_answer(MongoAnswers *answers)
{
	if (!tuplestore_in_memory(answers->rows))
	{
		tuplestore_copy_read_pointer(answers->rows, 1, 0);
		return;
	}
	tuplestore_rescan(answers->rows);
	if (answers->current->first > 0)
		(void) tuplestore_skiptuples(answers->rows, answers->current->first, true);
}

MongoAnswerState
mongo_answers_begin(MongoAnswers *answers, const bson_t *command)
{
	CommandKey	key = {bson_get_data(command), command->len};
	Answer	   *earlier = hash_search(answers->known, &key, HASH_FIND, NULL);

	if (earlier != answers->current)
		mongo_answers_leave(answers);
	/* in a file, only the last one has a pointer to begin from */
	if (earlier != NULL && earlier != answers->last && !tuplestore_in_memory(answers->rows))
		earlier = NULL;
	answers->position = 0;
	if (earlier == NULL)
	{
		add_answer(answers, command);
		seek_answer(answers);
		tuplestore_copy_read_pointer(answers->rows, 0, 1);
		return MONGO_ANSWER_NEW;
	}
	answers->current = earlier;
	answers->reused++;
	seek_answer(answers);
	return earlier->whole ? MONGO_ANSWER_WHOLE : MONGO_ANSWER_BEGUN;
}

bool
mongo_answers_next(MongoAnswers *answers, TupleTableSlot *slot)
{
	MemoryContext old_context;

	if (answers->current == NULL || answers->position >= answers->current->nrows)
		return false;
	/* the slot owns a row that was read from a file */
	old_context = MemoryContextSwitchTo(answers->context);
	if (!tuplestore_gettupleslot(answers->rows, true, false, slot))
		elog(ERROR, "a stored answer ends before its last row");
	MemoryContextSwitchTo(old_context);
	answers->position++;
	return true;
}

void
mongo_answers_add(MongoAnswers *answers, TupleTableSlot *slot)
{
	if (answers->current == NULL)
		return;
	Assert(answers->position == answers->current->nrows);
	tuplestore_puttupleslot(answers->rows, slot);
	answers->position++;
	answers->current->nrows++;
}

void
mongo_answers_finish(MongoAnswers *answers)
{
	if (answers->current != NULL)
		answers->current->whole = true;
}

bool
mongo_answers_is_whole(const MongoAnswers *answers)
{
	return answers->current != NULL && answers->current->whole;
}

int64
mongo_answers_reused(const MongoAnswers *answers)
{
	return answers->reused;
}

void
mongo_answers_end(MongoAnswers *answers)
{
	if (answers == NULL)
		return;
	tuplestore_end(answers->rows);
	MemoryContextDelete(answers->keys_context);
}
