/*-------------------------------------------------------------------------
 *
 * direct_modify.c
 *		Executing UPDATE and DELETE as one command.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "direct_modify.h"

#include "bson_memory.h"
#include "bulk_write.h"
#include "catalog/pg_type_d.h"
#include "command_template.h"
#include "encoding.h"
#include "executor/executor.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "options.h"
#include "row_document.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

/* fdw_state of the ForeignScanState. */
typedef struct MongoDirectState
{
	MongoDirectPlan *plan;
	MongoCommandTemplate template;
	List	   *expressions;	/* ExprStates of fdw_exprs */
	Relation	relation;
	MongoTableOptions *options;
	UserMapping *user;			/* NULL under EXPLAIN without ANALYZE */
	bool		done;
	bson_t	   *filter;			/* as sent: {filter: {...}} */
	bson_t	   *update;			/* as sent; NULL for DELETE */
} MongoDirectState;

static void
prepare_template(MongoDirectState *state)
{
	MongoCommandTemplate *template = &state->template;
	ListCell   *cell;
	int			i = 0;

	template->command = mongo_command_from_const(CurrentMemoryContext,
												 state->plan->command);
	template->nparameters = list_length(state->plan->predicates);
	template->predicates = palloc(sizeof(MongoPredicate *) *
								  Max(template->nparameters, 1));
	foreach(cell, state->plan->predicates)
		template->predicates[i++] = mongo_predicate_from_list(lfirst(cell));
}

void
mongo_begin_direct_modify(ForeignScanState *node, int eflags)
{
	ForeignScan *scan = (ForeignScan *) node->ss.ps.plan;
	EState	   *estate = node->ss.ps.state;
	MongoDirectState *state = palloc0(sizeof(MongoDirectState));
	RangeTblEntry *entry = exec_rt_fetch(scan->resultRelation, estate);

	node->fdw_state = state;
	state->plan = mongo_direct_plan_from_list(scan->fdw_private);
	prepare_template(state);
	state->expressions = ExecInitExprList(scan->fdw_exprs, (PlanState *) node);
	state->relation = node->ss.ss_currentRelation;
	state->options = mongo_table_options(entry->relid);
	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY))
		state->user = GetUserMapping(entry->checkAsUser ? entry->checkAsUser : GetUserId(),
									 scan->fs_server);
}

/* ------------------------------ the update --------------------------------- */

/* The new value of each assignment. */
typedef struct NewValue
{
	const char *path;
	const char *name;
	Form_pg_attribute attribute;
	MongoAssignmentKind kind;
	Datum		value;
	bool		isnull;
} NewValue;

static void
append_value(bson_t *document, const char *key, const NewValue *new)
{
	mongo_append_column_value(document, key, new->path, new->value,
							  new->attribute->atttypid,
							  new->attribute->atttypmod, new->name);
}

/*
 * append_summand: a decimal for bigint, whose sums MongoDB would otherwise
 * round to a double on overflow, and that may look like one that fits.
 */
static void
append_summand(bson_t *array, const char *key, const NewValue *new)
{
	bson_decimal128_t decimal;
	char		text[32];

	if (new->attribute->atttypid != INT8OID)
	{
		append_value(array, key, new);
		return;
	}
	snprintf(text, sizeof(text), INT64_FORMAT, DatumGetInt64(new->value));
	if (!bson_decimal128_from_string(text, &decimal))
		elog(ERROR, "could not write %s as a decimal", text);
	BSON_APPEND_DECIMAL128(array, key, &decimal);
}

/*
 * append_misfit_error
 *		An expression that fails for this document: {$toInt: {$concat: [...]}}.
 */
static void
append_misfit_error(bson_t *document, const char *key, const NewValue *new)
{
	bson_t		conversion;
	bson_t		text;
	bson_t		parts;
	bson_t		type;

	BSON_APPEND_DOCUMENT_BEGIN(document, key, &conversion);
	BSON_APPEND_DOCUMENT_BEGIN(&conversion, "$toInt", &text);
	BSON_APPEND_ARRAY_BEGIN(&text, "$concat", &parts);
	BSON_APPEND_UTF8(&parts, "0", psprintf("field %s does not fit its column: ", new->path));
	BSON_APPEND_DOCUMENT_BEGIN(&parts, "1", &type);
	BSON_APPEND_UTF8(&type, "$type", psprintf("$%s", new->path));
	bson_append_document_end(&parts, &type);
	bson_append_array_end(&text, &parts);
	bson_append_document_end(&conversion, &text);
	bson_append_document_end(document, &conversion);
}

/* {$eq: [path, {$trunc: path}]} */
static void
append_is_integral(bson_t *array, const char *key, const char *field)
{
	bson_t		test;
	bson_t		operands;
	bson_t		truncated;

	BSON_APPEND_DOCUMENT_BEGIN(array, key, &test);
	BSON_APPEND_ARRAY_BEGIN(&test, "$eq", &operands);
	BSON_APPEND_UTF8(&operands, "0", field);
	BSON_APPEND_DOCUMENT_BEGIN(&operands, "1", &truncated);
	BSON_APPEND_UTF8(&truncated, "$trunc", field);
	bson_append_document_end(&operands, &truncated);
	bson_append_array_end(&test, &operands);
	bson_append_document_end(array, &test);
}

/*
 * append_sum
 *		column + value as PostgreSQL has it: an error on overflow and for what
 *		does not fit the column, NULL for NULL.
 *
 * {$cond: [{$isNumber: f}, {to: {op: [{$cond: [integral, {to: f}, error]}, value]}},
 *			{$cond: [{$in: [{$type: f}, [missing, null, undefined]]}, null, error]}]}
 */
static void
append_sum(bson_t *stage, const NewValue *new, bool write_null)
{
	char	   *field = psprintf("$%s", new->path);
	const char *convert = new->attribute->atttypid == INT8OID ? "$toLong" : "$toInt";
	bson_t		outer, branches, test, converted, sum, operands, inner, inner_branches,
				literal, missing, missing_branches, in, in_operands, type, types;

	BSON_APPEND_DOCUMENT_BEGIN(stage, new->path, &outer);
	BSON_APPEND_ARRAY_BEGIN(&outer, "$cond", &branches);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "0", &test);
	BSON_APPEND_UTF8(&test, "$isNumber", field);
	bson_append_document_end(&branches, &test);

	BSON_APPEND_DOCUMENT_BEGIN(&branches, "1", &converted);
	BSON_APPEND_DOCUMENT_BEGIN(&converted, convert, &sum);
	BSON_APPEND_ARRAY_BEGIN(&sum, new->kind == MONGO_ASSIGN_SUM ? "$add" : "$subtract", &operands);
	BSON_APPEND_DOCUMENT_BEGIN(&operands, "0", &inner);
	BSON_APPEND_ARRAY_BEGIN(&inner, "$cond", &inner_branches);
	append_is_integral(&inner_branches, "0", field);
	BSON_APPEND_DOCUMENT_BEGIN(&inner_branches, "1", &literal);
	BSON_APPEND_UTF8(&literal, convert, field);
	bson_append_document_end(&inner_branches, &literal);
	append_misfit_error(&inner_branches, "2", new);
	bson_append_array_end(&inner, &inner_branches);
	bson_append_document_end(&operands, &inner);
	append_summand(&operands, "1", new);
	bson_append_array_end(&sum, &operands);
	bson_append_document_end(&converted, &sum);
	bson_append_document_end(&branches, &converted);

	BSON_APPEND_DOCUMENT_BEGIN(&branches, "2", &missing);
	BSON_APPEND_ARRAY_BEGIN(&missing, "$cond", &missing_branches);
	BSON_APPEND_DOCUMENT_BEGIN(&missing_branches, "0", &in);
	BSON_APPEND_ARRAY_BEGIN(&in, "$in", &in_operands);
	BSON_APPEND_DOCUMENT_BEGIN(&in_operands, "0", &type);
	BSON_APPEND_UTF8(&type, "$type", field);
	bson_append_document_end(&in_operands, &type);
	BSON_APPEND_ARRAY_BEGIN(&in_operands, "1", &types);
	BSON_APPEND_UTF8(&types, "0", "missing");
	BSON_APPEND_UTF8(&types, "1", "null");
	BSON_APPEND_UTF8(&types, "2", "undefined");
	bson_append_array_end(&in_operands, &types);
	bson_append_array_end(&in, &in_operands);
	bson_append_document_end(&missing_branches, &in);
	if (write_null)
		BSON_APPEND_NULL(&missing_branches, "1");
	else
		BSON_APPEND_UTF8(&missing_branches, "1", "$$REMOVE");
	append_misfit_error(&missing_branches, "2", new);
	bson_append_array_end(&missing, &missing_branches);
	bson_append_document_end(&branches, &missing);
	bson_append_array_end(&outer, &branches);
	bson_append_document_end(stage, &outer);
}

/* build_pipeline: {"0": {$set: {...}}}, when there is a sum. */
static void
build_pipeline(const NewValue *values, int count, bool write_null, bson_t *update)
{
	bson_t		stage;
	bson_t		set;

	BSON_APPEND_DOCUMENT_BEGIN(update, "0", &stage);
	BSON_APPEND_DOCUMENT_BEGIN(&stage, "$set", &set);
	for (int i = 0; i < count; i++)
	{
		const NewValue *new = &values[i];

		if (new->isnull && write_null)
			BSON_APPEND_NULL(&set, new->path);
		else if (new->isnull)
			BSON_APPEND_UTF8(&set, new->path, "$$REMOVE");
		else if (new->kind == MONGO_ASSIGN_VALUE)
		{
			bson_t		literal;

			BSON_APPEND_DOCUMENT_BEGIN(&set, new->path, &literal);
			append_value(&literal, "$literal", new);
			bson_append_document_end(&set, &literal);
		}
		else
			append_sum(&set, new, write_null);
	}
	bson_append_document_end(&stage, &set);
	bson_append_document_end(update, &stage);
}

/* build_operators: {$set: {...}, $unset: {...}}. */
static void
build_operators(const NewValue *values, int count, bool write_null, bson_t *update)
{
	bson_t	   *set = bson_create_in(CurrentMemoryContext);
	bson_t	   *unset = bson_create_in(CurrentMemoryContext);

	for (int i = 0; i < count; i++)
	{
		const NewValue *new = &values[i];

		if (!new->isnull)
			append_value(set, new->path, new);
		else if (write_null)
			BSON_APPEND_NULL(set, new->path);
		else
			BSON_APPEND_BOOL(unset, new->path, true);
	}
	if (!bson_empty(set))
		BSON_APPEND_DOCUMENT(update, "$set", set);
	if (!bson_empty(unset))
		BSON_APPEND_DOCUMENT(update, "$unset", unset);
}

/* widen: an int2 or int4 added to a wider column is encoded as the column. */
static Datum
widen(Datum value, Oid from, Oid to)
{
	int64		number;

	if (from == to)
		return value;
	number = from == INT2OID ? DatumGetInt16(value) :
		from == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
	return to == INT2OID ? Int16GetDatum((int16) number) :
		to == INT4OID ? Int32GetDatum((int32) number) : Int64GetDatum(number);
}

static bson_t *
build_update(MongoDirectState *state, const NewValue *values, int count)
{
	bson_t	   *update = bson_create_in(CurrentMemoryContext);
	bool		any_sum = false;

	for (int i = 0; i < count; i++)
		any_sum |= values[i].kind != MONGO_ASSIGN_VALUE && !values[i].isnull;
	if (any_sum)
		build_pipeline(values, count, state->options->write_null, update);
	else
		build_operators(values, count, state->options->write_null, update);
	return update;
}

static void
describe_assignment(MongoDirectState *state, const MongoAssignment *assignment,
					NewValue *new)
{
	new->attribute = TupleDescAttr(RelationGetDescr(state->relation),
								   assignment->attnum - 1);
	new->name = NameStr(new->attribute->attname);
	new->path = mongo_column_options(RelationGetRelid(state->relation),
									 assignment->attnum)->path;
	new->kind = assignment->kind;
}

/* evaluate_assignments: the values are computed here, once. */
static NewValue *
evaluate_assignments(ForeignScanState *node, MongoDirectState *state)
{
	List	   *assignments = state->plan->assignments;
	NewValue   *values = palloc0(sizeof(NewValue) * Max(list_length(assignments), 1));
	int			next = state->template.nparameters;
	ListCell   *cell;
	int			i = 0;

	foreach(cell, assignments)
	{
		NewValue   *new = &values[i++];
		ExprState  *expression = list_nth(state->expressions, next++);

		describe_assignment(state, lfirst(cell), new);
		new->value = ExecEvalExpr(expression, node->ss.ps.ps_ExprContext,
								  &new->isnull);
		if (new->kind != MONGO_ASSIGN_VALUE && !new->isnull)
			new->value = widen(new->value, exprType((Node *) expression->expr),
							   new->attribute->atttypid);
	}
	return values;
}

/* ------------------------------- executing --------------------------------- */

static MongoMatch
bind_filter(ForeignScanState *node, MongoDirectState *state)
{
	int			nparameters = state->template.nparameters;
	Datum	   *values = palloc(sizeof(Datum) * Max(nparameters, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(nparameters, 1));

	for (int i = 0; i < nparameters; i++)
		values[i] = ExecEvalExpr((ExprState *) list_nth(state->expressions, i),
								 node->ss.ps.ps_ExprContext, &isnull[i]);
	state->filter = bson_create_in(CurrentMemoryContext);
	return mongo_command_bind(&state->template, values, isnull, state->filter);
}

/* command_document: as EXPLAIN and the log show it. */
static bson_t *
command_document(const MongoDirectState *state, const bson_t *filter,
				 const bson_t *update)
{
	const MongoDirectPlan *plan = state->plan;
	bool		is_update = plan->operation == CMD_UPDATE;
	bson_t	   *command = bson_create_in(CurrentMemoryContext);
	bson_t		operations;
	bson_t		operation;
	bson_t		collation;
	bson_iter_t iter;

	BSON_APPEND_UTF8(command, is_update ? "update" : "delete",
					 mongo_to_utf8(plan->collection));
	BSON_APPEND_ARRAY_BEGIN(command, is_update ? "updates" : "deletes", &operations);
	BSON_APPEND_DOCUMENT_BEGIN(&operations, "0", &operation);
	if (bson_iter_init_find(&iter, filter, "filter"))
		bson_append_iter(&operation, "q", 1, &iter);
	if (!is_update)
		BSON_APPEND_INT32(&operation, "limit", plan->at_most_one ? 1 : 0);
	else
	{
		if (bson_has_field(update, "0"))
			BSON_APPEND_ARRAY(&operation, "u", update);
		else
			BSON_APPEND_DOCUMENT(&operation, "u", update);
		BSON_APPEND_BOOL(&operation, "multi", !plan->at_most_one);
	}
	if (plan->simple_collation)
	{
		BSON_APPEND_DOCUMENT_BEGIN(&operation, "collation", &collation);
		BSON_APPEND_UTF8(&collation, "locale", "simple");
		bson_append_document_end(&operation, &collation);
	}
	bson_append_document_end(&operations, &operation);
	bson_append_array_end(command, &operations);
	return command;
}

static int64
send_modification(MongoDirectState *state)
{
	const MongoDirectPlan *plan = state->plan;
	bool		is_update = plan->operation == CMD_UPDATE;
	MongoWriteBatch batch = {0};
	MongoWriteResult result;
	bson_iter_t iter;
	const uint8_t *data;
	uint32_t	length;
	bson_t		filter;

	if (!bson_iter_init_find(&iter, state->filter, "filter"))
		elog(ERROR, "command has no filter");
	bson_iter_document(&iter, &length, &data);
	if (!bson_view(&filter, data, length))
		elog(ERROR, "malformed filter");

	batch.kind = is_update ? (plan->at_most_one ? MONGO_UPDATE_ONE : MONGO_UPDATE_MANY) :
		(plan->at_most_one ? MONGO_DELETE_ONE : MONGO_DELETE_MANY);
	batch.ordered = true;
	batch.simple_collation = plan->simple_collation;
	batch.count = 1;
	mongo_write_batch_add(&batch, CurrentMemoryContext, &filter);
	if (is_update)
		mongo_write_batch_add(&batch, CurrentMemoryContext, state->update);

	if (mongo_log_remote_query)
		ereport(LOG,
				(errmsg("remote query: %s: %s", plan->database,
						bson_to_relaxed_json(command_document(state, state->filter,
															  state->update))),
				 errhidestmt(true)));
	mongo_write_batch_send(mongo_session_for_write(state->user), plan->database,
						   plan->collection, &batch, false, 0, 0,
						   psprintf("could not %s foreign table \"%s\"",
									is_update ? "update" : "delete from",
									RelationGetRelationName(state->relation)),
						   &result);
	return result.written;
}

TupleTableSlot *
mongo_iterate_direct_modify(ForeignScanState *node)
{
	MongoDirectState *state = node->fdw_state;
	EState	   *estate = node->ss.ps.state;
	MemoryContext old_context;
	int64		count = 0;

	if (!state->done)
	{
		state->done = true;
		old_context = MemoryContextSwitchTo(estate->es_query_cxt);
		if (bind_filter(node, state) != MONGO_MATCH_NONE)
		{
			if (state->plan->operation == CMD_UPDATE)
				state->update = build_update(state, evaluate_assignments(node, state),
											 list_length(state->plan->assignments));
			count = send_modification(state);
		}
		MemoryContextSwitchTo(old_context);
		if (state->plan->counts)
			estate->es_processed += count;
		if (node->ss.ps.instrument != NULL)
			node->ss.ps.instrument->tuplecount += count;
	}
	return ExecClearTuple(node->ss.ss_ScanTupleSlot);
}

void
mongo_end_direct_modify(ForeignScanState *node)
{
	/* everything is in the query's memory context */
}

/* ------------------------------- EXPLAIN ----------------------------------- */

static char *
expression_text(ForeignScanState *node, ExplainState *es, int number)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, NIL);

	return deparse_expression(list_nth(plan->fdw_exprs, number), context, false, false);
}

/* describe_update shows expressions where execution puts values. */
static bson_t *
describe_update(ForeignScanState *node, ExplainState *es)
{
	MongoDirectState *state = node->fdw_state;
	bson_t	   *update = bson_create_in(CurrentMemoryContext);
	int			next = state->template.nparameters;
	bson_t		set;
	ListCell   *cell;

	BSON_APPEND_DOCUMENT_BEGIN(update, "$set", &set);
	foreach(cell, state->plan->assignments)
	{
		NewValue	new;
		char	   *text = expression_text(node, es, next++);

		describe_assignment(state, lfirst(cell), &new);
		if (new.kind != MONGO_ASSIGN_VALUE)
			text = psprintf("$%s %s %s", new.path,
							new.kind == MONGO_ASSIGN_SUM ? "+" : "-", text);
		BSON_APPEND_UTF8(&set, new.path, mongo_to_utf8(text));
	}
	bson_append_document_end(update, &set);
	return update;
}

void
mongo_explain_direct_modify(ForeignScanState *node, ExplainState *es)
{
	MongoDirectState *state = node->fdw_state;
	bson_t	   *filter = state->filter;
	bson_t	   *update = state->update;

	ExplainPropertyText("Foreign Namespace",
						psprintf("%s.%s", state->plan->database,
								 state->plan->collection), es);
	if (!es->verbose)
		return;
	if (filter == NULL)
	{
		int			nparameters = state->template.nparameters;
		const char **names = palloc(sizeof(char *) * Max(nparameters, 1));

		for (int i = 0; i < nparameters; i++)
			names[i] = mongo_to_utf8(expression_text(node, es, i));
		filter = bson_create_in(CurrentMemoryContext);
		mongo_command_describe(&state->template, names, filter);
	}
	if (update == NULL && state->plan->operation == CMD_UPDATE)
		update = describe_update(node, es);
	ExplainPropertyText("Remote Command",
						bson_to_relaxed_json(command_document(state, filter, update)),
						es);
}
