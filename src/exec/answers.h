/*-------------------------------------------------------------------------
 *
 * answers.h
 *		What MongoDB has answered to the commands of one scan, to be given again.
 *
 * Within a statement the same command has the same answer, as one snapshot would
 * give.  So a scan that is begun again reads what it got before.  Rows are in a
 * tuplestore, within work_mem and then in a temporary file.  Answers to several
 * commands are there side by side as long as that is within work_mem; an answer
 * in a file is forgotten when the next one begins.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ANSWERS_H
#define MONGO_FDW_ANSWERS_H

#include "compat.h"

#include "executor/tuptable.h"

/* Opaque.  Of all answers, one is read or written at a time. */
typedef struct MongoAnswers MongoAnswers;

/* What is known of the answer that is read or written. */
typedef enum MongoAnswerState
{
	MONGO_ANSWER_NEW,			/* nothing */
	MONGO_ANSWER_BEGUN,			/* its first rows, as its reader stopped */
	MONGO_ANSWER_WHOLE
} MongoAnswerState;

/*
 * mongo_answers_create
 *		Without any answer; lives in 'context', and a file of it as long as
 *		CurrentResourceOwner.
 */
extern MongoAnswers *mongo_answers_create(MemoryContext context);

/*
 * mongo_answers_begin
 *		Begin with the answer to 'command', at its first row.
 *
 * BEGUN is only the answer that was dealt with last; to go on, the rows that follow
 * are added by mongo_answers_add().
 */
extern MongoAnswerState mongo_answers_begin(MongoAnswers *answers, const bson_t *command);

/*
 * mongo_answers_next
 *		The next row, into 'slot', of minimal tuples; false at the end of those that
 *		are known.
 *
 * The row is good until the next call of these functions.
 */
extern bool mongo_answers_next(MongoAnswers *answers, TupleTableSlot *slot);

/*
 * mongo_answers_leave
 *		Be at no answer, whose reader stopped: nothing can be added to it any more, and
 *		it is forgotten unless it is whole.
 */
extern void mongo_answers_leave(MongoAnswers *answers);

/*
 * mongo_answers_add, mongo_answers_finish, mongo_answers_forget
 *		Add a row to the answer, when all that is known has been read; say that there
 *		is nothing to be added but, at most, a row that PostgreSQL makes; forget all
 *		about this answer, whose rows depend on more than the command.
 *
 * All three have no effect at no answer.
 */
extern void mongo_answers_add(MongoAnswers *answers, TupleTableSlot *slot);
extern void mongo_answers_finish(MongoAnswers *answers);
extern void mongo_answers_forget(MongoAnswers *answers);

/* mongo_answers_is_whole: is there an answer, and nothing to be asked for to go on? */
extern bool mongo_answers_is_whole(const MongoAnswers *answers);

/* mongo_answers_reused: how often an answer was begun with that was there. */
extern int64 mongo_answers_reused(const MongoAnswers *answers);

/* mongo_answers_end: give back memory and files.  NULL is accepted. */
extern void mongo_answers_end(MongoAnswers *answers);

#endif							/* MONGO_FDW_ANSWERS_H */
