/*-------------------------------------------------------------------------
 *
 * direct_modify.c
 *		Executes UPDATE and DELETE as one command, and TRUNCATE.
 *
 * The plan (src/plan/modify.c) has a filter that matches exactly the rows to change.  This file
 * computes the new values once, builds the update, and sends it through a writer (write_queue.c),
 * which keeps the order of the statement's writes.
 *
 * The update's document comes first, then the command, the execution, EXPLAIN and TRUNCATE.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/ruleutils.h"

/* An assignment with the value of its expression, as the column's type. */
typedef struct MongoNewValue
{
	const char *path;
	const char *name;
	bson_type_t bson_type;		/* the option bson_type */
	Form_pg_attribute attribute;
	MongoAssignmentKind kind;
	Datum		value;
	bool		isnull;
} MongoNewValue;

/* -------- What an UPDATE that is one command does to each document -------- */

/* Appends the value as the column stores it. */
static void
append_value(bson_t *document, const char *key, const MongoNewValue *new)
{
	mongo_append_column_value(document, key, new->path, new->value, new->attribute,
							  new->bson_type);
}

/* Returns the value as the column stores it, for a template. */
static bson_value_t
column_value(const MongoNewValue *new)
{
	bson_t	   *document = mongo_bson_create();

	append_value(document, "", new);
	return mongo_first_value(document);
}

/* Returns the value by which a $set makes the field NULL. */
static bson_value_t
null_value(bool write_null)
{
	return write_null ? mongo_null() : mongo_utf8("$$REMOVE");
}

/*
 * Column plus or minus value.  The common case is tested first: the field has the column's BSON
 * type and the result fits.  The other cases are NULL, errors, and at last an integer of another
 * BSON type.  An overflow raises MongoDB's error for $toInt, since MongoDB's own sum would
 * overflow only beyond Int32 or Int64, and result in a number of the next type.
 *
 * @1 the field, @2 the value, @3 and @4 the least and the greatest number to which it can be
 * added, @5 the BSON type, @6 the replacement of NULL, @7 a message, @8 the operator and @9 the
 * conversion.
 */
static const char sum_template[] =
"{$cond: [{$and: [{$eq: [{$type: @1}, @5]}, {$gte: [@1, @3]}, {$lte: [@1, @4]}]}, {@8: [@1, @2]},"
" {$switch: {branches: ["
"  {case: {$in: [{$type: @1}, ['missing', 'null', 'undefined']]}, then: @6},"
"  {case: {$or: [{$not: [{$isNumber: @1}]}, {$ne: [@1, {$trunc: @1}]}]},"
"   then: {$toInt: {$concat: [@7, {$type: @1}]}}},"
"  {case: {$or: [{$lt: [@1, @3]}, {$gt: [@1, @4]}]},"
"   then: {$toInt: {$cond: [{$isNumber: @1}, 2147483648, 0]}}}],"
"  default: {@8: [{@9: @1}, @2]}}}]}";

/*
 * Appends column + value, or column - value, as PostgreSQL computes it: an error on overflow and
 * for a field that does not fit the column, NULL for NULL.
 */
static void
append_sum(bson_t *stage, const MongoNewValue *new, bool write_null)
{
	const MongoType *type = mongo_type_facts(new->attribute->atttypid);
	bool		is_int64 = type->limit == PG_INT64_MAX;
	bool		adds = new->kind == MONGO_ASSIGN_SUM;
	int64		value = mongo_integer_of_datum(type->typid, new->value);
	bool		grows = adds == (value >= 0);
	int64		min = -type->limit - 1;
	int64		max = type->limit;
	int64		least = grows ? min : adds ? min - value : min + value;
	int64		greatest = !grows ? max : adds ? max - value : max + value;

	mongo_append_member(stage, new->path, sum_template, mongo_field_path(new->path),
						column_value(new), mongo_int64(least), mongo_int64(greatest),
						mongo_utf8(is_int64 ? "long" : "int"), null_value(write_null),
						mongo_utf8(psprintf("field %s does not fit its column: ", new->path)),
						mongo_utf8(adds ? "$add" : "$subtract"),
						mongo_utf8(is_int64 ? "$toLong" : "$toInt"));
}

/* Appends {"0": {$set: {...}}}, for values that depend on the document. */
static void
build_pipeline(const MongoNewValue *values, int count, bool write_null, bson_t *update)
{
	bson_t	   *set = mongo_bson_create();

	for (int i = 0; i < count; i++)
	{
		const MongoNewValue *new = &values[i];

		if (new->isnull)
			mongo_append_member(set, new->path, "@1", null_value(write_null));
		else if (new->kind == MONGO_ASSIGN_VALUE)
			mongo_append_condition(set, new->path, "$literal", column_value(new));
		else
			append_sum(set, new, write_null);
	}
	mongo_append_member(update, "0", "{$set: @1}", mongo_document(set));
}

/* Appends {$set: {...}, $unset: {...}}. */
static void
build_operators(const MongoNewValue *values, int count, bool write_null, bson_t *update)
{
	bson_t	   *set = mongo_bson_create();
	bson_t	   *unset = mongo_bson_create();

	for (int i = 0; i < count; i++)
	{
		const MongoNewValue *new = &values[i];

		if (!new->isnull)
			append_value(set, new->path, new);
		else if (write_null)
			mongo_append(set, new->path, mongo_null());
		else
			mongo_append(unset, new->path, mongo_bool(true));
	}
	if (!bson_empty(set))
		mongo_append(update, "$set", mongo_document(set));
	if (!bson_empty(unset))
		mongo_append(update, "$unset", mongo_document(unset));
}

/*
 * Returns update operators, or a pipeline {"0": stage} if a value is computed from the column's
 * own, in the current memory context.  Raises what encoding raises.
 */
static bson_t *
build_update(const MongoNewValue *values, int count, bool write_null)
{
	bson_t	   *update = mongo_bson_create();
	bool		any_own = false;

	for (int i = 0; i < count; i++)
		any_own |= values[i].kind != MONGO_ASSIGN_VALUE && !values[i].isnull;
	if (any_own)
		build_pipeline(values, count, write_null, update);
	else
		build_operators(values, count, write_null, update);
	return update;
}

/* Sets the members that do not depend on the value. */
static void
describe_assignment(Relation relation, const MongoAssignment *assignment, MongoNewValue *new)
{
	const MongoColumnOptions *options;

	new->attribute = TupleDescAttr(RelationGetDescr(relation), assignment->attnum - 1);
	new->name = NameStr(new->attribute->attname);
	options = mongo_column_options(RelationGetRelid(relation), assignment->attnum);
	new->path = options->path;
	new->bson_type = options->bson_type;
	new->kind = assignment->kind;
}

/* --------------- Executing UPDATE and DELETE as one command --------------- */

/* fdw_state of the ForeignScanState. */
typedef struct MongoDirectState
{
	MongoDirectPlan *plan;
	MongoCommandTemplate command_template;
	List	   *expressions;	/* ExprStates of fdw_exprs */
	Relation	relation;
	const MongoTableOptions *options;
	UserMapping *user;			/* NULL under EXPLAIN without ANALYZE */
	bool		done;
	bson_t	   *bound;			/* as sent: {filter: ..., projection: ...} */
	bson_t	   *update;			/* as sent; NULL for DELETE */
} MongoDirectState;

/*
 * mongo_begin_direct_modify
 *		Begins the modification; a callback of PostgreSQL.  Sends nothing.
 */
void
mongo_begin_direct_modify(ForeignScanState *node, int eflags)
{
	ForeignScan *scan = (ForeignScan *) node->ss.ps.plan;
	EState	   *estate = node->ss.ps.state;
	MongoDirectState *state = palloc0(sizeof(MongoDirectState));
	RangeTblEntry *entry = exec_rt_fetch(scan->resultRelation, estate);

	node->fdw_state = state;
	state->plan = mongo_struct_from_list(&mongo_direct_plan_type, scan->fdw_private);
	state->command_template.command = mongo_command_from_const(state->plan->command);
	state->command_template.predicates = state->plan->predicates;
	state->expressions = ExecInitExprList(scan->fdw_exprs, (PlanState *) node);
	state->relation = node->ss.ss_currentRelation;
	state->options = mongo_table_options(entry->relid);
	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY))
	{
		Oid			user = mongo_scan_check_as_user(scan, scan->resultRelation, estate);

		state->user = mongo_user_mapping(user ? user : GetUserId(), scan->fs_server);
	}
}

/* ------------------------------ the update --------------------------------- */

/* Returns the values, computed once, before anything is sent. */
static MongoNewValue *
evaluate_assignments(ForeignScanState *node, MongoDirectState *state)
{
	List	   *assignments = state->plan->assignments;
	MongoNewValue *values = palloc0(sizeof(MongoNewValue) * Max(list_length(assignments), 1));
	int			next = list_length(state->plan->predicates);
	ListCell   *cell;
	int			i = 0;

	foreach(cell, assignments)
	{
		MongoNewValue *new = &values[i++];
		ExprState  *expression = list_nth(state->expressions, next++);
		Oid			type;

		describe_assignment(state->relation, lfirst(cell), new);
		new->value = ExecEvalExpr(expression, node->ss.ps.ps_ExprContext,
								  &new->isnull);
		type = exprType((Node *) expression->expr);
		/* an int2 or int4 added to a wider column is encoded as the column */
		if (new->kind != MONGO_ASSIGN_VALUE && !new->isnull && type != new->attribute->atttypid)
			new->value = mongo_datum_of_integer(new->attribute->atttypid,
												mongo_integer_of_datum(type, new->value));
	}
	return values;
}

/* ------------------------------- executing --------------------------------- */

/* Sets *view to a part of the bound command, its filter or projection; false if there is none. */
static bool
bound_part(const bson_t *bound, const char *key, bson_t *view)
{
	bson_iter_t iter;

	return bson_iter_init_find(&iter, bound, key) && mongo_bson_view_at(view, &iter);
}

static MongoWriteKind
kind_of(const MongoDirectPlan *plan)
{
	if (plan->operation == CMD_UPDATE)
		return plan->at_most_one ? MONGO_UPDATE_ONE : MONGO_UPDATE_MANY;
	return plan->at_most_one ? MONGO_DELETE_ONE : MONGO_DELETE_MANY;
}

/* Returns the command for EXPLAIN and the log; 'update' is NULL for DELETE. */
static bson_t *
command_document(const MongoDirectPlan *plan, const bson_t *bound, const bson_t *update)
{
	bson_t		filter;
	bson_t		fields;

	if (!bound_part(bound, "filter", &filter))
		elog(ERROR, "command has no filter");
	if (!plan->returns)
		return mongo_write_document(kind_of(plan), plan->collection, &filter, update,
									plan->simple_collation);
	return mongo_find_and_modify_document(&(MongoFindAndModify) {
		.collection = plan->collection,
		.filter = &filter,
		.update = update,
		.fields = bound_part(bound, "projection", &fields) ? &fields : NULL,
		.simple_collation = plan->simple_collation
	});
}

/*-------------------------------------------------------------------------
 * The values of an UPDATE are computed once, before it is known whether there is a row to update.
 * In SQL they are computed for each row, so they must not fail, nor run a sub-select, for none.
 * Only then is MongoDB asked for a row first.
 *-------------------------------------------------------------------------
 */

/* Tells whether the bound filter matches a document, by asking MongoDB. */
static bool
finds_row(const MongoDirectState *state)
{
	const MongoDirectPlan *plan = state->plan;
	MongoAccessScope scope = mongo_scope_written(state->user->serverid, state->options);
	bson_t	   *command = mongo_from_template("{find: @1, limit: 1, singleBatch: true}",
											  mongo_utf8(scope.collection));
	MongoCursor *cursor;
	bson_t		filter;
	uint32		length;
	bool		found;

	if (bound_part(state->bound, "filter", &filter))
		mongo_append(command, "filter", mongo_document(&filter));
	if (plan->simple_collation)
		mongo_append_template(command, "{collation: {locale: 'simple'}}");
	mongo_before_read(&scope, GetCurrentCommandId(false));
	mongo_log_command(plan->database, command, 0);
	cursor = mongo_cursor_open(CurrentMemoryContext, &(MongoRead) {
		.user = state->user,
		.database = scope.database,
		.collection = plan->collection,
		.command = command,
		/* a secondary may lag behind */
		.read_mode = state->options->read_mode == 0 ? 0 : MONGOC_READ_PRIMARY,
		.comment = state->options->comment,
		.read_collection = scope.collection
	});
	found = mongo_cursor_next(cursor, &length) != NULL;
	mongo_cursor_close(cursor);
	return found;
}

/* What build_state_update() needs. */
typedef struct Computing
{
	ForeignScanState *node;
	MongoDirectState *state;
} Computing;

/* Sets state->update. */
static void
build_state_update(void *argument)
{
	const Computing *computing = argument;
	MongoDirectState *state = computing->state;

	state->update = build_update(evaluate_assignments(computing->node, state),
								 list_length(state->plan->assignments),
								 state->options->write_null);
}

/*
 * Computes state->update; returns false if that fails, or would run a subquery, and there is no
 * row.  Raises the failure if there is one.
 *
 * A subquery runs outside of the subtransaction, whose end would release what its plan keeps.
 */
static bool
compute_update(ForeignScanState *node, MongoDirectState *state)
{
	List	   *values = list_copy_tail(((ForeignScan *) node->ss.ps.plan)->fdw_exprs,
										list_length(state->plan->predicates));
	Computing	computing = {node, state};
	ErrorData  *failure;

	if (mongo_has_exec_param((Node *) values, NULL))
	{
		if (!finds_row(state))
			return false;
		build_state_update(&computing);
		return true;
	}
	if (mongo_try(build_state_update, &computing, NULL, &failure))
		return true;
	if (ERRCODE_TO_CATEGORY(failure->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION || finds_row(state))
		ReThrowError(failure);
	return false;
}

/* Evaluates filter and values; returns false if no document can match. */
static bool
bind_plan(ForeignScanState *node, MongoDirectState *state)
{
	state->bound = mongo_bson_create();
	if (mongo_bind_parameters(&state->command_template, state->expressions, node->ss.ps.ps_ExprContext,
							  NULL, state->bound) == MONGO_MATCH_NONE)
		return false;
	return state->plan->operation != CMD_UPDATE || compute_update(node, state);
}

/* Returns a writer that sends the statement as one command. */
static MongoWriter *
command_writer(const MongoDirectState *state)
{
	bool		is_update = state->plan->operation == CMD_UPDATE;
	MongoWriter *writer;

	writer = mongo_writer_create(CurrentMemoryContext, state->relation, state->user,
								 is_update ? "could not update foreign table \"%s\"" :
								 "could not delete from foreign table \"%s\"",
								 GetCurrentCommandId(true));
	writer->form.kind = kind_of(state->plan);
	writer->on_demand = writer->is_command = true;
	writer->form.simple_collation = state->plan->simple_collation;
	return writer;
}

/*
 * Sends the command, and returns the number of documents; stores a row to be returned in the slot.
 */
static int64
execute_plan(MongoDirectState *state, TupleTableSlot *slot)
{
	const MongoDirectPlan *plan = state->plan;
	MongoWriter *writer = command_writer(state);
	MongoRowDecoder *decoder;
	bson_t		filter;
	bson_t		fields;

	if (!bound_part(state->bound, "filter", &filter))
		elog(ERROR, "command has no filter");
	if (mongo_log_remote_query)
		mongo_log_command(plan->database, command_document(plan, state->bound, state->update), 0);
	if (!plan->returns)
	{
		mongo_writer_add(writer, &filter, state->update);
		(void) mongo_writer_send(writer);
		return writer->written;
	}
	decoder = mongo_table_decoder_create(CurrentMemoryContext, state->relation, plan->returned);
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	if (!mongo_writer_find_and_modify(writer, &filter, state->update,
									  bound_part(state->bound, "projection", &fields) ? &fields : NULL,
									  decoder, slot->tts_values, slot->tts_isnull))
		return 0;
	ExecStoreVirtualTuple(slot);
	return 1;
}

/*
 * mongo_iterate_direct_modify
 *		Executes the command at the first call, and returns its row if it has RETURNING; otherwise,
 *		and at further calls, an empty slot.  A callback of PostgreSQL.
 *
 * Raises what encoding the values, mongo_writer_send() and mongo_writer_find_and_modify() raise.
 */
TupleTableSlot *
mongo_iterate_direct_modify(ForeignScanState *node)
{
	MongoDirectState *state = node->fdw_state;
	EState	   *estate = node->ss.ps.state;
	TupleTableSlot *slot = ExecClearTuple(node->ss.ss_ScanTupleSlot);
	MemoryContext old_context;
	int64		count = 0;

	if (state->done)
		return slot;

	/* this runs only once, so its memory may stay until the query ends */
	state->done = true;
	old_context = MemoryContextSwitchTo(estate->es_query_cxt);
	if (bind_plan(node, state))
		count = execute_plan(state, slot);
	MemoryContextSwitchTo(old_context);

	if (state->plan->counts)
		estate->es_processed += count;
	if (!state->plan->returns && node->ss.ps.instrument != NULL)
		node->ss.ps.instrument->tuplecount += count;

	/* ExecProcessReturning() expects the row there */
	if (!TupIsNull(slot))
		node->resultRelInfo->ri_projectReturning->pi_exprContext->ecxt_scantuple = slot;
	return slot;
}

/*
 * mongo_end_direct_modify
 *		Does nothing: all memory is in the query's context.  A callback of PostgreSQL.
 */
void
mongo_end_direct_modify(ForeignScanState *node pg_attribute_unused())
{
}

/* ------------------------------- EXPLAIN ----------------------------------- */

/* Returns one of fdw_exprs as text, for EXPLAIN. */
static char *
expression_text(ForeignScanState *node, ExplainState *es, int number)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, NIL);

	return deparse_expression(list_nth(plan->fdw_exprs, number), context, false, false);
}

/* Returns the update with expressions in place of values. */
static bson_t *
describe_update(ForeignScanState *node, ExplainState *es)
{
	MongoDirectState *state = node->fdw_state;
	bson_t	   *set = mongo_bson_create();
	int			next = list_length(state->plan->predicates);
	ListCell   *cell;

	foreach(cell, state->plan->assignments)
	{
		MongoNewValue new;
		char	   *text = expression_text(node, es, next++);

		describe_assignment(state->relation, lfirst(cell), &new);
		if (new.kind != MONGO_ASSIGN_VALUE)
			text = psprintf("$%s %s %s", new.path,
							new.kind == MONGO_ASSIGN_SUM ? "+" : "-", text);
		mongo_append(set, new.path, mongo_utf8(mongo_to_utf8(text)));
	}
	return mongo_from_template("{$set: @1}", mongo_document(set));
}

/* Returns the bound command with expressions in place of values. */
static bson_t *
describe_bound(ForeignScanState *node, ExplainState *es)
{
	const MongoDirectState *state = node->fdw_state;
	int			nparameters = list_length(state->plan->predicates);
	const char **names = palloc(sizeof(char *) * Max(nparameters, 1));
	bson_t	   *bound = mongo_bson_create();

	for (int i = 0; i < nparameters; i++)
		names[i] = mongo_to_utf8(expression_text(node, es, i));
	mongo_command_describe(&state->command_template, names, bound);
	return bound;
}

/*
 * mongo_explain_direct_modify
 *		Shows the command, with values only if the user may see them; a callback of PostgreSQL.
 */
void
mongo_explain_direct_modify(ForeignScanState *node, ExplainState *es)
{
	MongoDirectState *state = node->fdw_state;
	bson_t	   *bound = state->bound;
	bson_t	   *update = state->update;
	const bson_t *command;
	bool		is_known = bound != NULL || state->plan->predicates == NIL;

	ExplainPropertyText("Foreign Namespace",
						psprintf("%s.%s", state->plan->database,
								 state->plan->collection), es);
	if (!es->verbose && !mongo_explain_remote_plans)
		return;
	if (!mongo_explain_may_show(es))
		bound = update = NULL;
	if (bound == NULL)
		bound = describe_bound(node, es);
	if (update == NULL && state->plan->operation == CMD_UPDATE)
		update = describe_update(node, es);
	command = command_document(state->plan, bound, update);
	if (es->verbose)
		ExplainPropertyText("Remote Command", mongo_json_show_document(command), es);
	if (mongo_explain_remote_plans)
		mongo_explain_remote(node, es, state->plan->database, command,
							 is_known ? NULL : MONGO_UNKNOWN_PARAMETERS, 1);
}

/*-------------------------------------------------------------------------
 * TRUNCATE of foreign tables: deletes every document.
 *
 * Dropping the collection would be faster, but would also drop its indexes, and is not part of
 * MongoDB's transactions.
 *-------------------------------------------------------------------------
 */

/* Raises 55000 if the table's options forbid TRUNCATE. */
static void
check_truncatable(Relation relation)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(relation));

	if (!options->truncatable || mongo_is_pipeline_table(options))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("foreign table \"%s\" does not allow truncates",
						RelationGetRelationName(relation))));
}

static void
truncate_one(Relation relation)
{
	Oid			relid = RelationGetRelid(relation);
	UserMapping *user = mongo_user_mapping(GetUserId(), GetForeignTable(relid)->serverid);
	MongoWriter *writer = mongo_writer_create(CurrentMemoryContext, relation, user,
											  "could not truncate foreign table \"%s\"",
											  GetCurrentCommandId(true));

	writer->form.kind = MONGO_DELETE_MANY;
	mongo_writer_add(writer, mongo_bson_create(), NULL);
	mongo_writer_finish(writer);
}

/*
 * mongo_exec_foreign_truncate
 *		Deletes all documents of these tables' collections; a callback of PostgreSQL.
 *
 * Raises 55000, before it deletes anything, if one of the tables must not be truncated.
 */
void
mongo_exec_foreign_truncate(List *rels, DropBehavior behavior pg_attribute_unused(),
							bool restart_seqs pg_attribute_unused())
{
	foreach_ptr(RelationData, relation, rels)
		check_truncatable(relation);
	foreach_ptr(RelationData, relation, rels)
		truncate_one(relation);
}
