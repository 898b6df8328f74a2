/*-------------------------------------------------------------------------
 *
 * command_template.h
 *		Commands that a plan holds, and the values that execution binds.
 *
 * A template is a whole command in which {$parameter: N} stands, inside the
 * filter, for a predicate whose value is known only when the scan starts.
 * Binding renders those and copies everything else.
 *
 * In a pipeline, {$verbatim: [...]} stands for the stages of the array, in which
 * nothing is looked for: they are a user's own.  So do, in a filter, the members of a
 * document under that key.  There also {$elements: {path: ...,
 * match: {...}}} stands for {path: {$elemMatch: {...}}}.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMMAND_TEMPLATE_H
#define MONGO_FDW_COMMAND_TEMPLATE_H

#include "compat.h"

#include "nodes/primnodes.h"

#include "predicate.h"

#define MONGO_VERBATIM_KEY	"$verbatim"
#define MONGO_ELEMENTS_KEY	"$elements"

/* A template made ready for one execution of a plan. */
typedef struct MongoCommandTemplate
{
	bson_t	   *command;
	int			nparameters;
	MongoPredicate **predicates;	/* one for each parameter */

	/* of a pipeline, if greater than 0 */
	int64		skip;			/* $skip and $limit become its last stages */
	int64		limit;
	int			batch_size;		/* documents in the first batch */
} MongoCommandTemplate;

/*
 * mongo_command_to_const, mongo_command_from_const
 *		A document as a node that a plan can hold, and back (a copy).
 */
extern Const *mongo_command_to_const(const bson_t *command);
extern bson_t *mongo_command_from_const(MemoryContext context, const Const *node);

/*
 * mongo_command_bind
 *		Append the template to 'command', its parameters replaced by values.
 *
 * values[] and isnull[] have an entry for each parameter.  Returns
 * MONGO_MATCH_NONE when the filter turns out to match no document at all, so
 * that nothing need be sent; 'command' is complete all the same.
 *
 * A list of values that makes the command longer than MongoDB takes is replaced
 * by the range that it spans, and *widened set: more documents are matched then than
 * the conditions mean, which PostgreSQL is to test.  Where 'widened' is NULL, or
 * where more documents below would be fewer above, that raises 54000.
 */
extern MongoMatch mongo_command_bind(const MongoCommandTemplate *template,
									 const Datum *values, const bool *isnull,
									 bool *widened, bson_t *command);

/*
 * mongo_command_describe
 *		The template with each parameter shown as the text of its expression.
 *
 * 'names' has a string for each parameter.  For EXPLAIN of a plan that is not
 * being executed.
 */
extern void mongo_command_describe(const MongoCommandTemplate *template,
								   const char *const *names, bson_t *command);

/* The value of a variable of a command's "let". */
typedef struct MongoVariable
{
	Oid			type;
	int32		typmod;
	Datum		value;
	bool		isnull;
} MongoVariable;

/*
 * mongo_bind_variables
 *		Append "let" with these values to 'command'.
 *
 * Raises 22003, 22008 or 22021 for a value that has no BSON form.
 */
extern void mongo_bind_variables(const MongoVariable *variables, int nvariables,
								 bson_t *command);

/*
 * mongo_describe_variables
 *		The same with the text of each value's expression, for EXPLAIN.
 */
extern void mongo_describe_variables(const char *const *names, int nvariables,
									 bson_t *command);

#endif							/* MONGO_FDW_COMMAND_TEMPLATE_H */
