/*-------------------------------------------------------------------------
 *
 * explain.c
 *		Shows foreign scans in EXPLAIN, with MongoDB's own plan, and writes that go row by row.
 *
 * Commands are shown as they were sent, or with the text of expressions if a value is unknown or
 * must not be shown.  MongoDB's plan comes from its command explain, whose reply is read as text:
 * it is not trusted to have a known form or size.
 *
 * First come the plan's commands, then reading the reply, then showing it, and at the end writes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

/* What a command examined; all -1 without execution statistics. */
typedef struct Examined
{
	int64		keys;			/* of indexes */
	int64		documents;
	int64		milliseconds;
} Examined;

/* --------------- EXPLAIN of foreign scans: the plan's commands ------------ */

/* Returns the expression of each parameter as text. */
static const char **
parameter_names(ForeignScanState *node, ExplainState *es, int nparameters)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	const char **names = palloc(sizeof(char *) * Max(nparameters, 1));
	List	   *context = es->deparse_cxt;

	/*
	 * If there are output columns, EXPLAIN has just shown them, and for that
	 * has set the context to this node and its ancestors.  A nested loop's
	 * parameter is found in the ancestors, which are not passed to us.
	 */
	if (plan->scan.plan.targetlist == NIL)
		context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, NIL);

	for (int i = 0; i < nparameters; i++)
	{
		Node	   *parameter = list_nth(plan->fdw_exprs, i);

		/* see src/plan/batched_join.c */
		if (IsA(parameter, FieldSelect) && IsA(((FieldSelect *) parameter)->arg, CaseTestExpr))
			names[i] = "keys of the outer rows";
		else
			names[i] = deparse_expression(parameter, context,
										  list_length(es->rtable) > 1, false);
	}
	return names;
}

/* Returns "label", "label 2" and so on. */
static const char *
numbered(const char *label, int number)
{
	return number == 1 ? label : psprintf("%s %d", label, number);
}

/* Shows the commands that were sent, or would be. */
static void
explain_commands(ForeignScanState *node, ExplainState *es)
{
	MongoScanState *state = node->fdw_state;
	bool		may_show = mongo_explain_may_show(es);
	const char **names = parameter_names(node, es,
										 list_length(state->plan->predicates) + state->plan->nvariables);

	for (int i = 0; i < list_length(state->plan->commands); i++)
	{
		bson_t	   *command = state->run.command;

		if (command == NULL || i != state->run.number || !may_show)
		{
			command = mongo_bson_create();
			mongo_bind_scan_command(node, i, !state->started || state->run.counts, 0, names,
									command);
		}
		ExplainPropertyText(numbered("Remote Command", i + 1), mongo_json_show_document(command),
							es);
	}
}

/* Tells whether the expression has a value that only execution has; a tree walker. */
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
 * Shows MongoDB's plans of the commands that were sent, or would be; or that a value is not known.
 */
static void
explain_remote_commands(ForeignScanState *node, ExplainState *es)
{
	MongoScanState *state = node->fdw_state;
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;

	/* the command of a hashed scan does not depend on the values */
	bool		is_known = state->plan->hash_keys != NIL ||
		!is_execution_parameter((Node *) plan->fdw_exprs, NULL);

	for (int i = 0; i < list_length(state->plan->commands); i++)
	{
		bson_t	   *command = i == state->run.number ? state->run.command : NULL;
		const char *unknown = NULL;

		if (command == NULL && !is_known)
			unknown = MONGO_UNKNOWN_PARAMETERS;
		else if (command == NULL)
		{
			command = mongo_bson_create();
			if (mongo_bind_scan_command(node, i, true, 0, NULL, command) == MONGO_MATCH_NONE)
				unknown = "no document can match, so nothing is sent";
		}
		mongo_explain_remote(node, es, state->plan->database, command, unknown, i + 1);
	}
}

/* Returns the collections of the command, and the operation on them. */
static const char *
foreign_namespace(const MongoScanPlan *plan)
{
	if (plan->joined != NULL)
		return psprintf("%s of %s", plan->is_grouped ? "Aggregate on join" : "Join",
						plan->joined);
	return psprintf(plan->is_grouped ? "Aggregate on (%s.%s)" : "%s.%s",
					plan->database, plan->collection);
}

/* Shows the scan's traffic; bytes and times, which differ from run to run, only with TIMING. */
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

/*
 * mongo_explain_foreign_scan
 *		Shows the scan's commands and traffic; a callback of PostgreSQL.
 *
 * With mongo_fdw.explain_remote_plans it sends the command explain.
 */
void
mongo_explain_foreign_scan(ForeignScanState *node, ExplainState *es)
{
	MongoScanState *state = node->fdw_state;

	ExplainPropertyText("Foreign Namespace", foreign_namespace(state->plan), es);
	if (es->verbose && state->plan->network != NULL)
		ExplainPropertyText("Network", state->plan->network, es);
	if (state->plan->unwind != NULL)
		ExplainPropertyText("Unwound Here", state->plan->unwind, es);
	if (es->analyze && state->reused > 0)
		ExplainPropertyInteger("Commands Saved", NULL, state->reused, es);
	if (es->verbose)
		explain_commands(node, es);
	if (es->analyze)
		explain_usage(&state->usage, es);
	if (mongo_explain_remote_plans)
		explain_remote_commands(node, es);
}

/*-------------------------------------------------------------------------
 * The reply to MongoDB's command explain, as lines of text.
 *
 * A find, count, update or delete has {queryPlanner: {winningPlan: PLAN}}.  An aggregate has
 * that, too, if all of it runs in one engine; otherwise it has
 * {stages: [{$cursor: {queryPlanner: ...}}, {$group: ...}, ...]}.  A PLAN is
 * {stage: NAME, inputStage: PLAN, ...} for the classic engine and {queryPlan: PLAN,
 * slotBasedPlan: ...} for the slot-based one.  Execution statistics are next to each
 * queryPlanner, and in $lookup stages.
 *
 * https://www.mongodb.com/docs/manual/reference/explain-results/
 *-------------------------------------------------------------------------
 */

/* The longest value shown in a line. */
#define LONGEST_DETAIL		300

/* Real plans are not so deep or long, but a reply may contain anything. */
#define DEEPEST_PLAN		100
#define LONGEST_PLAN		1000

/* The fields of a stage to show after its name, in this order. */
static const struct
{
	const char *field;
	const char *label;
	const char *unless;			/* a default value, not shown */
}			stage_details[] =
{
	{"indexName", "using", NULL},
	{"indexBounds", "bounds", NULL},
	{"direction", "direction", "forward"},
	{"filter", "filter", NULL},
	{"sortPattern", "key", NULL},
	{"limitAmount", "limit", NULL},
	{"skipAmount", "skip", NULL},
	{"indexesUsed", "indexesUsed", NULL},
	{"collectionScans", "collectionScans", NULL},
};

/* The fields that contain parts of a plan: documents, or arrays of them. */
static const char *const plan_parts[] = {
	"queryPlanner", "$cursor", "queryPlan", "inputStage", "inputStages", "outerStage",
	"innerStage", "winningPlan", "stages", "shards"
};

typedef struct PlanReader
{
	List	   *lines;
	Examined   *examined;
} PlanReader;

static void read_plan(PlanReader *reader, const bson_iter_t *plan, int depth);

static bool
find_field(const bson_iter_t *document, const char *name, bson_iter_t *field)
{
	return bson_iter_recurse(document, field) && bson_iter_find(field, name);
}

/* Returns a value of any type as compact text. */
static char *
value_text(const bson_iter_t *value)
{
	char	   *text;

	if (BSON_ITER_HOLDS_UTF8(value))
		return mongo_cut_text(mongo_printable(bson_iter_utf8(value, NULL)), LONGEST_DETAIL);
	text = mongo_json_show_value(value, true, LONGEST_DETAIL);
	return text != NULL ? text : pstrdup("...");
}

/* Adds a line, indented as by EXPLAIN, unless there are LONGEST_PLAN lines. */
static void
add_line(PlanReader *reader, int depth, const char *text)
{
	if (list_length(reader->lines) < LONGEST_PLAN)
		reader->lines = lappend(reader->lines, depth == 0 ? pstrdup(text) :
								psprintf("%*s->  %s", depth * 2, "", text));
}

/*
 * Adds a line such as "IXSCAN using a_1, bounds { ... }", or "$group { ... }" for a pipeline's
 * stage; returns false if the document is no stage.
 */
static bool
add_stage(PlanReader *reader, const bson_iter_t *stage, int depth)
{
	StringInfoData line;
	bson_iter_t field;
	const char *separator = " ";

	initStringInfo(&line);
	if (find_field(stage, "stage", &field) && BSON_ITER_HOLDS_UTF8(&field))
		appendStringInfoString(&line, value_text(&field));
	else if (bson_iter_recurse(stage, &field) && bson_iter_next(&field) &&
			 bson_iter_key(&field)[0] == '$' && strcmp(bson_iter_key(&field), "$cursor") != 0)
	{
		appendStringInfo(&line, "%s %s", mongo_printable(bson_iter_key(&field)),
						 value_text(&field));
		separator = ", ";
	}
	else
		return false;

	for (size_t i = 0; i < lengthof(stage_details); i++)
	{
		char	   *text;

		if (!find_field(stage, stage_details[i].field, &field))
			continue;
		text = value_text(&field);
		if (stage_details[i].unless != NULL && strcmp(text, stage_details[i].unless) == 0)
			continue;
		appendStringInfo(&line, "%s%s %s", separator, stage_details[i].label, text);
		separator = ", ";
	}
	add_line(reader, depth, line.data);
	return true;
}

static void
add_number(const bson_iter_t *document, const char *name, int64 *sum)
{
	bson_iter_t field;

	if (find_field(document, name, &field) && BSON_ITER_HOLDS_NUMBER(&field))
		*sum = Max(*sum, 0) + bson_iter_as_int64(&field);
}

static void
add_statistics(PlanReader *reader, const bson_iter_t *document)
{
	add_number(document, "totalKeysExamined", &reader->examined->keys);
	add_number(document, "totalDocsExamined", &reader->examined->documents);
	add_number(document, "executionTimeMillis", &reader->examined->milliseconds);
}

/*
 * Reads at most 'most' stages, and shows the last one at the top, as PostgreSQL's plans do.
 * Returns the depth for what is below them.
 */
static int
read_pipeline(PlanReader *reader, bson_iter_t *stages, int depth, int most)
{
	bson_iter_t stage;

	if (most == 0 || !bson_iter_next(stages))
		return depth;
	stage = *stages;
	depth = read_pipeline(reader, stages, depth, most - 1);
	read_plan(reader, &stage, depth);
	return depth + 1;
}

static void
read_shards(PlanReader *reader, bson_iter_t *shards, int depth)
{
	while (bson_iter_next(shards))
	{
		add_line(reader, depth, psprintf("shard %s", mongo_printable(bson_iter_key(shards))));
		read_plan(reader, shards, depth + 1);
	}
}

/* Reads a plan, a part of one or an array of these, and the parts below. */
static void
read_plan(PlanReader *reader, const bson_iter_t *plan, int depth)
{
	bson_iter_t field;
	bson_iter_t part;

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	if (depth > DEEPEST_PLAN)
		return;
	if (BSON_ITER_HOLDS_ARRAY(plan) && bson_iter_recurse(plan, &field))
	{
		while (bson_iter_next(&field))
			read_plan(reader, &field, depth);
	}
	if (!BSON_ITER_HOLDS_DOCUMENT(plan))
		return;

	add_statistics(reader, plan);
	if (find_field(plan, "executionStats", &field) && BSON_ITER_HOLDS_DOCUMENT(&field))
		add_statistics(reader, &field);
	if (add_stage(reader, plan, depth))
		depth++;
	for (size_t i = 0; i < lengthof(plan_parts); i++)
	{
		if (!find_field(plan, plan_parts[i], &field))
			continue;
		if (strcmp(plan_parts[i], "stages") == 0 && BSON_ITER_HOLDS_ARRAY(&field) &&
			bson_iter_recurse(&field, &part))
			read_pipeline(reader, &part, depth, DEEPEST_PLAN);
		else if (strcmp(plan_parts[i], "shards") == 0 && BSON_ITER_HOLDS_DOCUMENT(&field) &&
				 bson_iter_recurse(&field, &part))
			read_shards(reader, &part, depth);
		else
			read_plan(reader, &field, depth);
	}
}

/* Returns the reply's error as one line; NULL if it has none. */
static char *
reply_error(const bson_t *reply)
{
	bson_iter_t iter;
	const char *message = "";
	const char *name = "";

	if (bson_iter_init_find(&iter, reply, "ok") && bson_iter_as_bool(&iter))
		return NULL;
	if (bson_iter_init_find(&iter, reply, "errmsg") && BSON_ITER_HOLDS_UTF8(&iter))
		message = bson_iter_utf8(&iter, NULL);
	if (bson_iter_init_find(&iter, reply, "codeName") && BSON_ITER_HOLDS_UTF8(&iter))
		name = bson_iter_utf8(&iter, NULL);
	return psprintf("MongoDB cannot explain this command: %s%s%s",
					mongo_printable(name), *name ? ": " : "",
					mongo_printable(message));
}

/*
 * Returns the winning plan of 'command', by MongoDB's command explain: a line (char *) for each
 * stage, above those that it reads; or one line with the reason why there is none.
 *
 * *examined is all -1 if the verbosity does not include it.  Raises a lost connection.
 */
static List *
ask_for_plan(UserMapping *user, const char *database, const bson_t *command,
			 const char *verbosity, Examined *examined)
{
	bson_t	   *explain = mongo_bson_create();
	bson_t	   *wrapper = mongo_bson_create();
	PlanReader	reader = {NIL, examined};
	const bson_t *reply;
	bson_iter_t document;
	char	   *error;

	mongo_append(explain, "explain", mongo_document(command));
	mongo_append(explain, "verbosity", mongo_utf8(verbosity));
	reply = mongo_run_command(CurrentMemoryContext, user, mongo_to_utf8(database),
							  explain, NULL);

	*examined = (Examined)
	{
		-1, -1, -1
	};
	error = reply_error(reply);
	if (error != NULL)
		return list_make1(error);
	mongo_append(wrapper, "", mongo_document(reply));
	if (bson_iter_init(&document, wrapper) && bson_iter_next(&document))
		read_plan(&reader, &document, 0);
	return reader.lines != NIL ? reader.lines :
		list_make1("not shown: MongoDB answered without a winning plan");
}

/* --------------------- MongoDB's own plan in EXPLAIN ---------------------- */

/* Shows the lines below a heading, or as a list. */
static void
show_lines(ExplainState *es, const char *label, List *lines)
{
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyList(label, lines, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "%s:\n", label);
	foreach_ptr(const char, line, lines)
	{
		appendStringInfoSpaces(es->str, (es->indent + 1) * 2);
		appendStringInfo(es->str, "%s\n", line);
	}
}

/*
 * mongo_explain_may_show
 *		Tells whether EXPLAIN may show the values of parameters, and MongoDB's plan of a command.
 *
 * PostgreSQL's own EXPLAIN shows no values.  They may come from rows, or from policies, of any
 * table in the query, so the user must have the privilege to read all of them.
 */
bool
mongo_explain_may_show(const ExplainState *es)
{
	foreach_node(RangeTblEntry, entry, es->rtable)
	{
		if (entry->rtekind == RTE_RELATION && entry->relkind != RELKIND_VIEW &&
			!mongo_may_read(entry->relid, NULL))
			return false;
	}
	return true;
}

/*
 * mongo_explain_remote
 *		Shows MongoDB's winning plan of 'command', one line for each stage.
 *
 * Under ANALYZE also shows what MongoDB examined, for which it runs the command once more (but
 * changes nothing).  If 'unknown' is not NULL, shows that as the reason why there is no plan.
 * 'number' counts the commands of a plan from 1, as in "Remote Command 2".  Shows an error in
 * MongoDB's reply in place of the plan; raises a lost connection.
 */
void
mongo_explain_remote(ForeignScanState *node, ExplainState *es, const char *database,
					 const bson_t *command, const char *unknown, int number)
{
	const char *label = numbered("Remote Plan", number);
	Examined	examined;

	if (unknown == NULL && !mongo_explain_may_show(es))
		unknown = "it is about rows or columns that you may not see";
	if (unknown != NULL)
	{
		show_lines(es, label, list_make1(psprintf("not shown: %s", unknown)));
		return;
	}
	show_lines(es, label, ask_for_plan(mongo_scan_user_mapping(node), database, command,
									   es->analyze ? "executionStats" : "queryPlanner",
									   &examined));
	if (!es->analyze || examined.keys < 0)
		return;
	ExplainPropertyInteger(numbered("Remote Keys Examined", number), NULL,
						   examined.keys, es);
	ExplainPropertyInteger(numbered("Remote Documents Examined", number), NULL,
						   examined.documents, es);
	if (es->timing)
		ExplainPropertyInteger(numbered("Remote Time", number), "ms",
							   examined.milliseconds, es);
}

/* -------- EXPLAIN of INSERT, UPDATE and DELETE that go row by row --------- */

/* Returns {path: "<column>", ...}. */
static bson_t *
describe_assignments(Oid relid, const List *attributes)
{
	bson_t	   *set = mongo_bson_create();

	foreach_int(attnum, attributes)
		mongo_append(set, mongo_column_options(relid, attnum)->path, mongo_utf8(mongo_to_utf8(psprintf("<%s>", get_attname(relid, attnum, false)))));
	return set;
}

/* Returns the command for one row. */
static bson_t *
describe_row_command(Oid relid, const char *collection, CmdType operation, const List *attributes)
{
	bson_value_t name = mongo_utf8(mongo_to_utf8(collection));

	switch (operation)
	{
		case CMD_INSERT:
			return mongo_from_template("{insert: @1}", name);
		case CMD_UPDATE:
			return mongo_from_template("{update: @1, updates: [{q: {_id: '<_id>'}, u: {$set: @2}}]}",
									   name, mongo_document(describe_assignments(relid, attributes)));
		default:
			return mongo_from_template("{delete: @1, deletes: [{q: {_id: '<_id>'}, limit: 1}]}",
									   name);
	}
}

/* Returns the command for one row under the option insert_mode. */
static bson_t *
describe_upsert(const MongoUpsertLayout *layout, const MongoTableOptions *options, bool returns)
{
	bson_t	   *filter = mongo_bson_create();
	bson_t	   *update = mongo_bson_create();

	mongo_describe_upsert(layout, filter, update);
	return mongo_from_template(returns ?
							   "{findAndModify: @1, query: @2, update: @3, upsert: true, new: true}" :
							   "{update: @1, updates: [{q: @2, u: @3, upsert: true}]}",
							   mongo_utf8(mongo_to_utf8(options->collection)),
							   mongo_document(filter), mongo_document(update));
}

/*
 * mongo_explain_foreign_modify
 *		Shows the command for one row, and the size of batches; a callback of PostgreSQL.
 */
void
mongo_explain_foreign_modify(ModifyTableState *mtstate, ResultRelInfo *rinfo, List *fdw_private,
							 int subplan_index pg_attribute_unused(), ExplainState *es)
{
	const ModifyTable *plan = (ModifyTable *) mtstate->ps.plan;
	Oid			relid = RelationGetRelid(rinfo->ri_RelationDesc);
	const MongoTableOptions *options = mongo_table_options(relid);
	MongoUpsertLayout *upsert = NULL;
	bool		returns;

	ExplainPropertyText("Foreign Namespace",
						psprintf("%s.%s", options->database, options->collection),
						es);
	if (!es->verbose)
		return;
	if (mtstate->operation == CMD_INSERT)
		upsert = mongo_begin_upsert(mtstate->ps.state, plan, rinfo);
	returns = upsert != NULL && options->insert_mode != MONGO_INSERT_MODE_IGNORE &&
		mongo_is_row_seen(plan, rinfo);
	ExplainPropertyText("Remote Command",
						mongo_json_show_document(upsert != NULL ?
												 describe_upsert(upsert, options, returns) :
												 describe_row_command(relid, options->collection,
																	  mtstate->operation,
																	  fdw_private != NIL ? linitial(fdw_private) : NIL)),
						es);
	ExplainPropertyInteger("Batch Size", NULL, returns ? 1 : options->batch_size, es);
}
