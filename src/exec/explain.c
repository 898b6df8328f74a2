/*-------------------------------------------------------------------------
 *
 * explain.c
 *		EXPLAIN of foreign scans: what is asked of MongoDB.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "encoding.h"
#include "exec.h"
#include "explain_remote.h"
#include "explain_statistics.h"
#include "json_read.h"
#include "scan.h"
#include "settings.h"

#include "nodes/nodeFuncs.h"
#include "utils/ruleutils.h"

/* are_batched_keys: of a batched join; see src/plan/batched_keys.c. */
static bool
are_batched_keys(const Node *parameter)
{
	return IsA(parameter, FieldSelect) &&
		IsA(((const FieldSelect *) parameter)->arg, CaseTestExpr);
}

/* parameter_names shows each parameter as the expression it comes from. */
static const char **
parameter_names(ForeignScanState *node, ExplainState *es, int nparameters)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	const char **names = palloc(sizeof(char *) * Max(nparameters, 1));
	List	   *context = es->deparse_cxt;

	/*
	 * EXPLAIN has just shown the output columns, if there are any, and so has
	 * set the context to this node and its ancestors, which a parameter of a
	 * nested loop is found in but which are not told to us.
	 */
	if (plan->scan.plan.targetlist == NIL)
		context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, NIL);

	for (int i = 0; i < nparameters; i++)
	{
		Node	   *parameter = list_nth(plan->fdw_exprs, i);

		if (are_batched_keys(parameter))
			names[i] = "keys of the outer rows";
		else
			names[i] = deparse_expression(parameter, context,
										  list_length(es->rtable) > 1, false);
	}
	return names;
}

/* A bound that is not known yet is left out: only constants are shown. */
static int64
known_bound(Node *expression, int64 otherwise)
{
	Const	   *constant = (Const *) expression;

	if (!IsA(expression, Const) || constant->constisnull)
		return otherwise;
	return DatumGetInt64(constant->constvalue);
}

/* describe_scan: the command of a plan that has not been executed. */
static bson_t *
describe_scan(ForeignScanState *node, ExplainState *es)
{
	MongoScanState *state = node->fdw_state;
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	bson_t	   *command = bson_create_in(CurrentMemoryContext);
	int			nparameters = state->template.nparameters;
	const char **names = parameter_names(node, es, nparameters + state->plan->nvariables);
	int64		limit = -1;
	int64		offset = 0;

	if (state->plan->limit >= 0)
		limit = known_bound(list_nth(plan->fdw_exprs, state->plan->limit), -1);
	if (state->plan->offset >= 0)
		offset = known_bound(list_nth(plan->fdw_exprs, state->plan->offset), 0);
	if (state->plan->is_pipeline)
		mongo_set_pipeline_bounds(state->plan, limit >= 0 ? limit : state->plan->enough_rows,
								  offset, &state->template);
	mongo_command_describe(&state->template, names, command);
	mongo_describe_variables(names + nparameters, state->plan->nvariables, command);
	if (!state->plan->is_pipeline)
		mongo_append_bounds(state->plan, limit >= 0 ? limit : state->plan->enough_rows,
							offset, command);
	return command;
}

/* explain_commands: as they were sent, or as they would be. */
static void
explain_commands(ForeignScanState *node, ExplainState *es)
{
	MongoScanState *state = node->fdw_state;
	bool		may_show = mongo_explain_may_show(es);

	for (int i = 0; i < state->ncommands; i++)
	{
		const char *label = i == 0 ? "Remote Command" :
			psprintf("Remote Command %d", i + 1);
		const bson_t *command = state->run.command;

		if (command == NULL || i != state->run.turn || !may_show)
		{
			mongo_choose_command(state, i, !state->started || state->run.counts);
			command = describe_scan(node, es);
		}
		ExplainPropertyText(label, mongo_json_show_document(command), es);
	}
}

/* is_execution_parameter: is there a value that only execution knows? */
static bool
is_execution_parameter(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, CaseTestExpr))
		return true;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC;
	return expression_tree_walker(node, is_execution_parameter, context);
}

/*
 * explain_remote_commands: MongoDB's plans of the commands that were sent, or
 * that would be, where all values are known.
 */
static void
explain_remote_commands(ForeignScanState *node, ExplainState *es)
{
	MongoScanState *state = node->fdw_state;
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	bool		is_known = !is_execution_parameter((Node *) plan->fdw_exprs, NULL);

	for (int i = 0; i < state->ncommands; i++)
	{
		bson_t	   *command = i == state->run.turn ? state->run.command : NULL;

		if (command == NULL && is_known)
		{
			command = bson_create_in(CurrentMemoryContext);
			mongo_choose_command(state, i, true);
			if (mongo_bind_scan_command(node, 0, command) == MONGO_MATCH_NONE)
			{
				mongo_explain_remote_unknown(es, i + 1, "no document can match, so nothing is sent");
				continue;
			}
		}
		if (command == NULL)
			mongo_explain_remote_unknown(es, i + 1, "its parameters are known only when it runs");
		else
			mongo_explain_remote(es, mongo_scan_user_mapping(node),
								 state->plan->database, command, i + 1);
	}
}

/* foreign_namespace: the collections of the command, and what is done to them. */
static const char *
foreign_namespace(const MongoScanPlan *plan)
{
	if (plan->joined != NULL)
		return psprintf("%s of %s", plan->is_grouped ? "Aggregate on join" : "Join",
						plan->joined);
	return psprintf(plan->is_grouped ? "Aggregate on (%s.%s)" : "%s.%s",
					plan->database, plan->collection);
}

/*
 * explain_usage
 *		What the scan has caused: what differs from run to run, as TIMING does.
 */
static void
explain_usage(const MongoUsage *usage, ExplainState *es)
{
	double		wait_ms = usage->wait_us / 1000.0;

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyInteger("Remote Commands", NULL, usage->commands, es);
		ExplainPropertyInteger("Remote Documents", NULL, usage->documents, es);
		if (es->timing)
		{
			ExplainPropertyInteger("Remote Bytes Sent", NULL, usage->bytes_sent, es);
			ExplainPropertyInteger("Remote Bytes Received", NULL, usage->bytes_received, es);
			ExplainPropertyFloat("Remote Wait Time", "ms", wait_ms, 3, es);
		}
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "Remote Traffic: commands=" UINT64_FORMAT " documents=" UINT64_FORMAT,
					 usage->commands, usage->documents);
	if (es->timing)
		appendStringInfo(es->str, " sent=" UINT64_FORMAT " received=" UINT64_FORMAT " waited=%.3f ms",
						 usage->bytes_sent, usage->bytes_received, wait_ms);
	appendStringInfoChar(es->str, '\n');
}

void
mongo_explain_foreign_scan(ForeignScanState *node, ExplainState *es)
{
	MongoScanState *state = node->fdw_state;

	ExplainPropertyText("Foreign Namespace", foreign_namespace(state->plan), es);
	if (state->plan->split_field != NULL)
		ExplainPropertyText("Split By", mongo_from_utf8(state->plan->split_field), es);
	if (es->analyze && state->answers != NULL && mongo_answers_reused(state->answers) > 0)
		ExplainPropertyInteger("Commands Saved", NULL, mongo_answers_reused(state->answers), es);
	if (es->verbose)
	{
		explain_commands(node, es);
		mongo_explain_statistics((ForeignScan *) node->ss.ps.plan, es);
	}
	if (es->analyze)
		explain_usage(&state->usage, es);
	if (mongo_explain_remote_plans)
		explain_remote_commands(node, es);
}
