/*-------------------------------------------------------------------------
 *
 * bind.c
 *		The parameters of a plan's command, and their values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bind.h"

#include "executor/executor.h"

void
mongo_prepare_parameters(MongoCommandTemplate *template, const List *predicates)
{
	ListCell   *cell;

	template->nparameters = list_length(predicates);
	template->predicates = palloc(sizeof(MongoPredicate *) * Max(template->nparameters, 1));
	foreach(cell, predicates)
		template->predicates[foreach_current_index(cell)] =
			mongo_predicate_from_list(lfirst(cell));
}

MongoMatch
mongo_bind_parameters(const MongoCommandTemplate *template, const List *expressions,
					  ExprContext *econtext, bool *widened, bson_t *command)
{
	int			count = template->nparameters;
	Datum	   *values = palloc(sizeof(Datum) * Max(count, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(count, 1));

	for (int i = 0; i < count; i++)
		values[i] = ExecEvalExpr((ExprState *) list_nth(expressions, i), econtext, &isnull[i]);
	return mongo_command_bind(template, values, isnull, widened, command);
}
