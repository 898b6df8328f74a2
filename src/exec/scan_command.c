/*-------------------------------------------------------------------------
 *
 * scan_command.c
 *		Binds the commands of a scan: evaluates their parameters, LIMIT and OFFSET.
 *
 * The plan's commands have places for values (src/translate/template.c).  A run binds one of them
 * (mongo_bind_next_command()), and those after it, which do not know how many rows it finds.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "executor/executor.h"
#include "nodes/nodeFuncs.h"

/* The first batch of a scan that may stop early: MongoDB's own default. */
#define CAUTIOUS_BATCH_SIZE	101

/* ---------- The parameters of a plan's command, and their values ---------- */

/*
 * mongo_bind_parameters
 *		Calls mongo_command_bind() with the values of the first of 'expressions' (ExprStates).
 */
MongoMatch
mongo_bind_parameters(const MongoCommandTemplate *command_template, const List *expressions,
					  ExprContext *econtext, bool *widened, bson_t *command)
{
	int			count = list_length(command_template->predicates);
	Datum	   *values = palloc(sizeof(Datum) * Max(count, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(count, 1));

	for (int i = 0; i < count; i++)
		values[i] = ExecEvalExpr((ExprState *) list_nth(expressions, i), econtext, &isnull[i]);
	return mongo_command_bind(command_template, values, isnull, widened, command);
}

/* ------------------------------ One command ------------------------------- */

/*
 * Returns LIMIT (-1: none) or OFFSET (0: none), entry 'number' of fdw_exprs, by the rules of
 * nodeLimit.c.  For EXPLAIN, evaluates only constants.
 */
static int64
evaluate_limit(ForeignScanState *node, int number, bool is_limit, bool explains)
{
	const MongoScanState *state = node->fdw_state;
	bool		isnull = number < 0 ||
		(explains && !IsA(list_nth(((ForeignScan *) node->ss.ps.plan)->fdw_exprs, number), Const));
	Datum		value = (Datum) 0;
	int64		rows;

	if (!isnull)
		value = ExecEvalExpr((ExprState *) list_nth(state->expressions, number),
							 node->ss.ps.ps_ExprContext, &isnull);
	if (isnull)
		return is_limit ? -1 : 0;
	rows = DatumGetInt64(value);
	if (explains)
		return rows;
	if (rows < 0 && is_limit)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ROW_COUNT_IN_LIMIT_CLAUSE),
				 errmsg("LIMIT must not be negative")));
	if (rows < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE),
				 errmsg("OFFSET must not be negative")));
	return rows;
}

/* Returns the variables of "let", which the aggregation expressions use. */
static MongoVariable *
evaluate_variables(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	int			first = list_length(state->plan->predicates);
	MongoVariable *variables = palloc(sizeof(MongoVariable) * state->plan->nvariables);

	for (int i = 0; i < state->plan->nvariables; i++)
	{
		ExprState  *expression = list_nth(state->expressions, first + i);
		Node	   *node_expression = list_nth(((ForeignScan *) node->ss.ps.plan)->fdw_exprs,
											   first + i);

		variables[i].type = exprType(node_expression);
		variables[i].typmod = exprTypmod(node_expression);
		variables[i].value = ExecEvalExpr(expression, node->ss.ps.ps_ExprContext,
										  &variables[i].isnull);
	}
	return variables;
}

/*
 * mongo_bind_scan_command
 *		Evaluates the plan's expressions and appends its command 'number', from 0, to 'command'; or
 *		the count command, if there is one and 'counts'.
 *
 * 'rows' is the number of rows of the commands before it.  'names', if not NULL, replace the
 * values of parameters and variables, for EXPLAIN.  Returns MONGO_MATCH_NONE if no document can
 * match, so that nothing need be sent.  Raises 2201W and 2201X for a negative LIMIT or OFFSET.
 */
MongoMatch
mongo_bind_scan_command(ForeignScanState *node, int number, bool counts, int64 rows,
						const char **names, bson_t *command)
{
	MongoScanState *state = node->fdw_state;
	const MongoScanPlan *plan = state->plan;
	MongoCommandTemplate *command_template = &state->command_template;
	int64		limit = evaluate_limit(node, plan->limit, true, names != NULL);
	int64		offset = evaluate_limit(node, plan->offset, false, names != NULL);
	MongoMatch	match;

	state->run.counts = counts && plan->count_command != NULL;
	command_template->command = mongo_command_from_const(state->run.counts ? plan->count_command :
														 list_nth(plan->commands, number));
	/* rows of earlier commands count as well */
	command_template->limit = limit > 0 ? Max(limit - rows, 0) : limit;
	command_template->enough_rows = plan->enough_rows;
	command_template->skip = offset;
	command_template->batch_size = plan->all_rows ? plan->fetch_size :
		Min(plan->fetch_size, CAUTIOUS_BATCH_SIZE);
	command_template->nvariables = plan->nvariables;
	state->run.widened = false;
	if (names != NULL)
	{
		mongo_command_describe(command_template, names, command);
		return command_template->limit == 0 ? MONGO_MATCH_NONE : MONGO_MATCH_SOME;
	}
	if (plan->nvariables > 0)
		command_template->variables = evaluate_variables(node);

	/*
	 * A find may be widened, since PostgreSQL has the exact conditions as
	 * recheck conditions.  But a LIMIT or a pipeline would count the excess
	 * documents before the recheck.
	 */
	match = mongo_bind_parameters(command_template, state->expressions, node->ss.ps.ps_ExprContext,
								  !plan->is_pipeline && plan->limit < 0 && plan->offset < 0 ?
								  &state->run.widened : NULL, command);
	return command_template->limit == 0 ? MONGO_MATCH_NONE : match;
}

/* ------------- When the command count replaces the pipeline --------------- */

/*
 * Tells whether this command, {count: collection, query: filter}, whose filter matches 'match', may
 * replace the pipeline that counts the same.
 *
 * MongoDB refuses count in transactions and at a cluster time.  If all documents match, it would
 * count by the collection's metadata, which may be inexact.
 */
static bool
takes_count(UserMapping *user, const bson_t *command, MongoMatch match)
{
	return !(match == MONGO_MATCH_ALL && bson_has_field(command, "query")) &&
		mongo_session_for_read(user) == NULL && !mongo_reads_at_time(NULL);
}

/* --------------------------- The commands of a run -------------------------- */

/*
 * mongo_bind_next_command
 *		Sets the run's command, number run.number, in the current memory context; or the count
 *		command, if that may replace it.  Returns and raises as mongo_bind_scan_command() does.
 */
MongoMatch
mongo_bind_next_command(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	bool		counts = true;
	MongoMatch	match;

	for (;;)
	{
		state->run.command = mongo_bson_create();
		match = mongo_bind_scan_command(node, state->run.number, counts, state->run.rows, NULL,
										state->run.command);
		if (state->plan->is_stream && match != MONGO_MATCH_NONE)
			state->run.command = mongo_resume_through_matches(state->run.command);
		if (!state->run.counts || match == MONGO_MATCH_NONE ||
			takes_count(state->user, state->run.command, match))
			return match;
		counts = false;
	}
}

/*
 * mongo_bind_other_commands
 *		Returns the plan's commands after the run's, which do not know how many rows that finds.
 *		They may be needed when the values of their parameters are gone.
 */
List *
mongo_bind_other_commands(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	bool		widened = state->run.widened;
	List	   *commands = NIL;

	for (int i = state->run.number + 1; i < list_length(state->plan->commands); i++)
	{
		bson_t	   *command = mongo_bson_create();

		if (mongo_bind_scan_command(node, i, false, state->run.rows, NULL,
									command) != MONGO_MATCH_NONE)
			commands = lappend(commands, command);
		widened |= state->run.widened;
	}
	state->run.widened = widened;
	if (commands != NIL)
		state->run.most_rows = evaluate_limit(node, state->plan->limit, true, false);
	return commands;
}
