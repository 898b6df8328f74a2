/*-------------------------------------------------------------------------
 *
 * modify.c
 *		Executes INSERT, COPY, UPDATE and DELETE row by row.
 *
 * PostgreSQL passes each row.  This file makes its document, filter or update
 * (src/translate/row.c), shows triggers, policies and RETURNING the row as it will be stored, and
 * adds it to a writer, which sends rows in batches (write_queue.c).
 *
 * What INSERT with insert_mode must check comes first, then how a statement begins, and what it
 * does for each row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/objectaddress.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rls.h"

/* The most rows that PostgreSQL may collect for one batch; each needs a tuple slot. */
#define LARGEST_CORE_BATCH	1000

/* ri_FdwState of a target relation. */
typedef struct MongoModifyState
{
	CmdType		operation;
	MemoryContext context;		/* of the query */
	MongoRowLayout *layout;
	MongoWriter *writer;
	MemoryContext row_context;	/* reset for each row */
	bson_t	   *document;		/* of the row; reused */
	bson_t	   *update;			/* of its document, if any; reused */
	WCOKind		policy_check;	/* of policies for INSERT and UPDATE */
	bool		checks_bounds;	/* of the partition that the table is */

	/* INSERT and COPY */
	MongoUpsertLayout *upsert;	/* of the option insert_mode, or NULL */
	bool		returns;		/* each upsert is sent by itself, because the
								 * resulting row is used */
	bool		reports_refused;	/* refused rows are reported as not
									 * inserted */
	bool		shares_collection;	/* with another target of the statement */
	bool		may_differ;		/* a seen column other than a generated _id
								 * may be stored as another value */
	MongoRowDecoder *decoder;	/* of the seen columns that may be stored as
								 * another value; all if 'returns'; NULL: none */

	/* UPDATE and DELETE */
	List	   *assigned;		/* attribute numbers that UPDATE sets */
	List	   *seen;			/* attribute numbers, see seen_columns() */
	List	   *shown;			/* those that differ if only 'assigned' change */
	MongoRowDecoder **decoders; /* of a column each, by number - 1; or NULL */
	bool		assigns_nested; /* so their old values matter */
	bool		compares_rows;	/* a trigger may set other columns */
	AttrNumber	identity_attribute; /* in the plan's tuple: the ctid */
	AttrNumber	row_attribute;	/* in the plan's tuple: the old row, or 0 */
	MongoIdentityLog *identities;
	bool		may_come_twice; /* the scan may return a row twice */
	struct MongoModifyState *routed;	/* for rows UPDATE moves; or NULL */
} MongoModifyState;

/*-------------------------------------------------------------------------
 * INSERT and COPY into foreign tables with the option insert_mode.
 *
 * PostgreSQL rejects ON CONFLICT DO UPDATE on foreign tables.  It treats the upserts of
 * insert_mode as inserts.  So the checks that an upsert needs are made here: the privilege to
 * update, and that there are no policies, which might hide the rows to be changed.
 *-------------------------------------------------------------------------
 */

/* Tells whether the user may update the table, or all columns that are written. */
static bool
may_update(Oid relid, Relation target, const MongoUpsertLayout *layout, Oid userid)
{
	ListCell   *cell;

	if (pg_class_aclcheck(relid, userid, ACL_UPDATE) == ACLCHECK_OK)
		return true;
	foreach(cell, mongo_upsert_updatable(layout))
	{
		/* a partition may number its columns differently */
		const char *name = NameStr(TupleDescAttr(RelationGetDescr(target),
												 lfirst_int(cell) - 1)->attname);

		if (pg_attribute_aclcheck(relid, get_attnum(relid, name), userid,
								  ACL_UPDATE) != ACLCHECK_OK)
			return false;
	}
	return mongo_upsert_updatable(layout) != NIL;
}

/* Checks the statement's views and table as for ON CONFLICT DO UPDATE. */
static void
check_privileges(EState *estate, const ModifyTable *plan, ResultRelInfo *rinfo,
				 const MongoUpsertLayout *layout, Oid userid)
{
	const ResultRelInfo *named = rinfo->ri_RootResultRelInfo != NULL ?
		rinfo->ri_RootResultRelInfo : rinfo;
	Oid			relid = RelationGetRelid(named->ri_RelationDesc);

	/* views of others that lead to the table check this user's privileges */
	foreach_ptr(const MongoPermissions, of, userid != GetUserId() ? mongo_permissions(estate) : NIL)
	{
		if ((of->requiredPerms & ACL_INSERT) != 0 && get_rel_relkind(of->relid) == RELKIND_VIEW &&
			pg_class_aclcheck(of->relid, of->checkAsUser ? of->checkAsUser : GetUserId(),
							  ACL_UPDATE) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_VIEW, get_rel_name(of->relid));
	}
	if (!may_update(relid, rinfo->ri_RelationDesc, layout, userid))
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
	if ((plan != NULL && plan->withCheckOptionLists != NIL) ||
		check_enable_rls(relid, userid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("insert_mode 'upsert' of foreign table \"%s\" cannot be used here",
						RelationGetRelationName(rinfo->ri_RelationDesc)),
				 errdetail("Row-level security or a view's CHECK OPTION cannot be tested on rows that an INSERT changes.")));
}

/*
 * mongo_begin_upsert
 *		Returns how insert_mode writes rows; NULL for plain inserts: without the option, under ON
 *		CONFLICT, and for rows that an UPDATE moves to a partition.
 *
 * 'plan' is NULL for COPY.  Raises what mongo_upsert_layout_create() raises, 42501 if the user may
 * not update the columns, and 0A000 under row-level security and for views with a CHECK OPTION.
 */
MongoUpsertLayout *
mongo_begin_upsert(EState *estate, const ModifyTable *plan, ResultRelInfo *rinfo)
{
	Relation	relation = rinfo->ri_RelationDesc;
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(relation));
	const TriggerDesc *triggers = rinfo->ri_TrigDesc;
	Oid			user = mongo_result_check_as_user(rinfo, estate);
	MongoUpsertLayout *layout;

	if (options->insert_mode == MONGO_INSERT_MODE_INSERT ||
		(plan != NULL && (plan->operation == CMD_UPDATE ||
						  plan->onConflictAction != ONCONFLICT_NONE)))
		return NULL;
	layout = mongo_upsert_layout_create(RelationGetRelid(relation), RelationGetDescr(relation),
										options, ExecGetInsertedCols(rinfo, estate),
										triggers != NULL && triggers->trig_insert_before_row);
	if (options->insert_mode != MONGO_INSERT_MODE_IGNORE)
		check_privileges(estate, plan, rinfo, layout, user ? user : GetUserId());
	return layout;
}

/*
 * mongo_is_row_seen
 *		Tells whether RETURNING, which rinfo may lack still, or an AFTER ROW trigger uses the row.
 */
bool
mongo_is_row_seen(const ModifyTable *plan, const ResultRelInfo *rinfo)
{
	return (plan != NULL && plan->returningLists != NIL) ||
		(rinfo->ri_TrigDesc != NULL && rinfo->ri_TrigDesc->trig_insert_after_row);
}

/* ------------------------------- beginning --------------------------------- */

/*
 * Tells whether the statement has another table, or with 'target' another target, that may have
 * the same collection as this one.
 */
static bool
find_other(EState *estate, const ResultRelInfo *rinfo, const MongoAccessScope *scope, bool target)
{
	const PlannedStmt *statement = estate->es_plannedstmt;
	int			index = 0;

	foreach_ptr(RangeTblEntry, entry, estate->es_range_table)
	{
		MongoAccessScope other;

		if (++index == (int) rinfo->ri_RangeTableIndex || entry->rtekind != RTE_RELATION ||
			(target && !mongo_is_result_relation(statement, index)))
			continue;
		/* one of its partitions may have the same collection */
		if (target && entry->relkind == RELKIND_PARTITIONED_TABLE)
			return true;
		if (entry->relkind != RELKIND_FOREIGN_TABLE ||
			GetFdwRoutineByRelId(entry->relid)->BeginForeignModify != mongo_begin_foreign_modify)
			continue;
		other = mongo_scope_read(entry->relid);
		if (target)
			other.collection = mongo_to_utf8(mongo_table_options(entry->relid)->collection);
		if (mongo_scopes_overlap(&other, scope))
			return true;
	}
	return false;
}

/* Creates a state, and sets what all operations have in common. */
static MongoModifyState *
create_modify_state(EState *estate, ResultRelInfo *rinfo, CmdType operation)
{
	static const char *const messages[] = {
		[CMD_INSERT] = "could not insert into foreign table \"%s\"",
		[CMD_UPDATE] = "could not update foreign table \"%s\"",
		[CMD_DELETE] = "could not delete from foreign table \"%s\"",
	};
	MongoModifyState *state = palloc0(sizeof(MongoModifyState));
	Relation	relation = rinfo->ri_RelationDesc;
	Oid			relid = RelationGetRelid(relation);
	const MongoTableOptions *options = mongo_table_options(relid);
	Oid			user = mongo_result_check_as_user(rinfo, estate);

	state->operation = operation;
	state->context = estate->es_query_cxt;
	state->layout = mongo_row_layout_create(state->context, relid, RelationGetDescr(relation),
											options->write_null, options->generated_id);
	state->row_context = AllocSetContextCreate(state->context, "mongo_fdw row",
											   ALLOCSET_DEFAULT_SIZES);
	state->document = mongo_bson_create_in(state->context);
	state->update = mongo_bson_create_in(state->context);

	/* COPY has no plan, and passes no CommandId */
	state->writer = mongo_writer_create(state->context, relation,
										mongo_user_mapping(user ? user : GetUserId(),
														   GetForeignTable(relid)->serverid),
										messages[operation], estate->es_plannedstmt != NULL ?
										estate->es_output_cid : GetCurrentCommandId(true));
	return state;
}

/*
 * Tells whether a row within these bounds of a partition may be outside as it is stored; a tree
 * walker.  Not if times are compared with whole milliseconds: cutting off what is smaller does not
 * lead over such a bound.  Numerics only lose zeros.
 */
static bool
bounds_may_break(Node *node, void *context)
{
	const MongoType *type;
	bool		exact = true;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
			type = mongo_type_facts(((Var *) node)->vartype);
			return !type->is_kept && type->kind != MONGO_KIND_NUMERIC &&
				type->kind != MONGO_KIND_TIMESTAMP && type->kind != MONGO_KIND_TIMESTAMPTZ;
		case T_Const:
			type = mongo_type_facts(((Const *) node)->consttype);
			if ((type->kind == MONGO_KIND_TIMESTAMP || type->kind == MONGO_KIND_TIMESTAMPTZ) &&
				!((Const *) node)->constisnull)
				(void) mongo_timestamp_to_millis(DatumGetTimestamp(((Const *) node)->constvalue), &exact);
			return !exact;
		case T_OpExpr:
			if (((OpExpr *) node)->opresulttype != BOOLOID)
				return true;
			break;
		case T_BoolExpr:
			if (((BoolExpr *) node)->boolop == NOT_EXPR)
				return true;
			break;
		case T_RelabelType:
		case T_NullTest:
		case T_List:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, bounds_may_break, context);
}

/*
 * Returns the numbers of the columns of new rows that RETURNING, policies, a view's CHECK OPTION
 * or the partition's bounds name; all columns if an AFTER ROW trigger sees the row.  Without
 * 'by_bounds' the bounds count only for an _id that may be generated.  'plan' is NULL for COPY.
 */
static List *
seen_columns(const MongoModifyState *state, EState *estate, const ModifyTable *plan,
			 const ResultRelInfo *rinfo, bool by_trigger, bool by_bounds)
{
	Relation	relation = rinfo->ri_RelationDesc;
	TupleDesc	tuple = RelationGetDescr(relation);
	Index		target = rinfo->ri_RangeTableIndex;
	Oid			named = InvalidOid;
	Bitmapset  *used = NULL;
	Bitmapset  *bounds = NULL;
	List	   *columns = NIL;

	/*
	 * for a row that is routed to a partition, the plan names another table's
	 * columns
	 */
	if (plan != NULL && !list_member_int(plan->resultRelations, target))
	{
		target = linitial_int(plan->resultRelations);
		named = exec_rt_fetch(target, estate)->relid;
	}
	if (plan != NULL)
	{
		pull_varattnos((Node *) plan->returningLists, target, &used);
		pull_varattnos((Node *) plan->withCheckOptionLists, target, &used);
	}
	pull_varattnos((Node *) RelationGetPartitionQual(relation), 1, &bounds);
	by_trigger |= bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, attnum - 1);
		AttrNumber	name = OidIsValid(named) ? get_attnum(named, NameStr(attribute->attname)) :
			attnum;

		if (!attribute->attisdropped &&
			(by_trigger || bms_is_member(name - FirstLowInvalidHeapAttributeNumber, used) ||
			 ((by_bounds || mongo_row_may_generate(state->layout, attnum)) &&
			  bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, bounds))))
			columns = lappend_int(columns, attnum);
	}
	return columns;
}

/*
 * mongo_table_decoder_create
 *		Returns a decoder of these columns of the table's documents, in 'context', which must not
 *		outlive the transaction.
 */
MongoRowDecoder *
mongo_table_decoder_create(MemoryContext context, Relation relation, const List *attributes)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(relation));
	MemoryContext caller = MemoryContextSwitchTo(context);
	List	   *columns = NIL;

	foreach_int(attnum, attributes)
		columns = lappend(columns, mongo_table_column(relation, attnum));
	MemoryContextSwitchTo(caller);
	return mongo_row_decoder_create(context, options->database, options->collection, columns,
									options->canonical_json);
}

/* Begins an INSERT, a COPY, or the insertion of rows moved to a partition. */
static void
begin_insert(EState *estate, ModifyTable *plan, ResultRelInfo *rinfo)
{
	MongoModifyState *state = create_modify_state(estate, rinfo, CMD_INSERT);
	MongoWriter *writer = state->writer;
	MongoAccessScope scope = mongo_scope_written(writer->user->serverid, writer->options);
	bool		moves = plan != NULL && plan->operation == CMD_UPDATE;
	bool		skips_duplicates = plan != NULL && plan->onConflictAction == ONCONFLICT_NOTHING;
	bool		ignores = writer->options->insert_mode == MONGO_INSERT_MODE_IGNORE;
	bool		is_seen = mongo_is_row_seen(plan, rinfo) ||
		(plan != NULL && plan->withCheckOptionLists != NIL);
	TriggerDesc *triggers = rinfo->ri_TrigDesc;
	bool		overlaps = mongo_row_layout_overlaps(state->layout);
	List	   *columns = seen_columns(state, estate, plan, rinfo,
									   triggers != NULL && triggers->trig_insert_after_row,
									   overlaps || bounds_may_break((Node *) RelationGetPartitionQual(writer->relation), NULL));
	ListCell   *cell;

	state->policy_check = moves ? WCO_RLS_UPDATE_CHECK : WCO_RLS_INSERT_CHECK;
	state->upsert = mongo_begin_upsert(estate, plan, rinfo);
	state->returns = state->upsert != NULL && !ignores && is_seen;
	if (state->upsert != NULL)
		writer->form.kind = ignores ? MONGO_INSERT_UNLESS_THERE : MONGO_UPSERT;
	/* a duplicate key would end MongoDB's transaction */
	else if (skips_duplicates && mongo_session_in_transaction(mongo_session_for_write(writer->user)))
		writer->form.kind = MONGO_INSERT_UNLESS_THERE;
	else
		writer->form.kind = MONGO_INSERT;

	/*
	 * COPY counts all rows that it reads, but a trigger must not see a row
	 * that was not inserted
	 */
	state->reports_refused = skips_duplicates ||
		(state->upsert != NULL && ignores && (plan != NULL || is_seen));
	foreach(cell, columns)
	{
		bool		differs = overlaps || !mongo_row_keeps(state->layout, lfirst_int(cell));

		state->may_differ |= differs;
		if (!differs && !state->returns && !mongo_row_may_generate(state->layout, lfirst_int(cell)))
			columns = foreach_delete_current(columns, cell);
	}
	state->checks_bounds = mongo_may_leave_partition(writer->relation, columns);
	if (columns != NIL || state->returns)
		state->decoder = mongo_table_decoder_create(state->context, writer->relation, columns);
	state->shares_collection = find_other(estate, rinfo, &scope, true);
	if (!state->reports_refused && (moves || find_other(estate, rinfo, &scope, false)))
		mongo_writer_defer(writer);
	writer->form.allow_duplicates = skips_duplicates;
	writer->on_demand = state->reports_refused;
	writer->form.ordered = !skips_duplicates;
	writer->form.by_key = state->upsert != NULL;
	writer->form.simple_collation = state->upsert != NULL &&
		mongo_feature_enabled(writer->options, MONGO_FEATURE_COLLATION);
	rinfo->ri_FdwState = state;
}

/* A search for the scan of a relation among the plan's states. */
typedef struct ScanSearch
{
	Index		scanrelid;
	ForeignScanState *found;
} ScanSearch;

static bool
find_scan(PlanState *node, ScanSearch *search)
{
	if (node == NULL || search->found != NULL)
		return false;
	if (IsA(node, ForeignScanState) &&
		((Scan *) node->plan)->scanrelid == search->scanrelid)
	{
		search->found = (ForeignScanState *) node;
		return true;
	}
	return planstate_tree_walker(node, find_scan, search);
}

/*
 * Returns the seen columns that an UPDATE of these may store or leave with another than the new
 * value.
 */
static List *
changed_columns(const MongoModifyState *state, List *attributes)
{
	List	   *columns = state->seen == NIL ? NIL :
		mongo_overlapped_columns(state->writer->relation, attributes);

	foreach_int(attnum, attributes)
	{
		if (!mongo_row_keeps(state->layout, attnum))
			columns = lappend_int(columns, attnum);
	}
	return list_intersection_int(columns, state->seen);
}

/* Begins an UPDATE or DELETE, and makes its scan record the _ids. */
static void
begin_update_or_delete(ModifyTableState *mtstate, ResultRelInfo *rinfo, List *attributes)
{
	EState	   *estate = mtstate->ps.state;
	MongoModifyState *state = create_modify_state(estate, rinfo, mtstate->operation);
	MongoWriter *writer = state->writer;
	PlanState  *source = outerPlanState(mtstate);
	List	   *targetlist = source->plan->targetlist;
	ScanSearch	search = {rinfo->ri_RangeTableIndex, NULL};
	TriggerDesc *triggers = rinfo->ri_TrigDesc;
	MongoAccessScope scope;

	state->assigned = attributes;
	state->policy_check = WCO_RLS_UPDATE_CHECK;
	foreach_int(attnum, attributes)
		state->assigns_nested |= mongo_is_nested_type(TupleDescAttr(RelationGetDescr(writer->relation),
																	attnum - 1)->atttypid);
	if (state->operation == CMD_UPDATE)
		state->seen = seen_columns(state, estate, (ModifyTable *) mtstate->ps.plan, rinfo,
								   triggers != NULL && triggers->trig_update_after_row, true);
	state->shown = changed_columns(state, attributes);
	state->decoders = palloc0(sizeof(MongoRowDecoder *) *
							  Max(RelationGetDescr(writer->relation)->natts, 1));
	state->compares_rows = triggers != NULL && triggers->trig_update_before_row;
	state->checks_bounds = state->operation == CMD_UPDATE &&
		(mongo_may_leave_partition(writer->relation, list_concat_copy(attributes, state->shown)) ||
		 (state->compares_rows && writer->relation->rd_rel->relispartition));
	state->identity_attribute = ExecFindJunkAttributeInTlist(targetlist, "ctid");
	state->row_attribute = ExecFindJunkAttributeInTlist(targetlist, "wholerow");
	if (!AttributeNumberIsValid(state->identity_attribute))
		elog(ERROR, "could not find junk ctid column");

	find_scan(source, &search);
	state->identities = mongo_identity_log_create(state->context);
	if (search.found != NULL)
		((MongoScanState *) search.found->fdw_state)->identities = state->identities;
	scope = mongo_scope_written(writer->user->serverid, writer->options);
	state->may_come_twice = (!IsA(source, ForeignScanState) && !IsA(source, AppendState)) ||
		find_other(estate, rinfo, &scope, true);

	writer->form.kind = state->operation == CMD_UPDATE ? MONGO_UPDATE_ONE : MONGO_DELETE_ONE;
	mongo_writer_defer(writer);
	rinfo->ri_FdwState = state;

	/* begin the transaction first, so that rows cannot change after the scan */
	mongo_session_for_write(writer->user);
}

/*
 * mongo_begin_foreign_modify
 *		Begins writes to a target; a callback of PostgreSQL.
 *
 * Under EXPLAIN without ANALYZE it does nothing.  UPDATE and DELETE begin MongoDB's transaction
 * here, so that rows cannot change after the scan.  Raises what mongo_begin_upsert() raises.
 */
void
mongo_begin_foreign_modify(ModifyTableState *mtstate, ResultRelInfo *rinfo, List *fdw_private,
						   int subplan_index pg_attribute_unused(), int eflags)
{
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	if (mtstate->operation == CMD_INSERT)
		begin_insert(mtstate->ps.state, (ModifyTable *) mtstate->ps.plan, rinfo);
	else
		begin_update_or_delete(mtstate, rinfo, linitial(fdw_private));
}

/*
 * mongo_begin_foreign_insert
 *		Begins inserts by COPY, which has no plan, or of rows routed to a partition; a callback of
 *		PostgreSQL.
 *
 * Raises 0A000 for ON CONFLICT DO UPDATE and for MERGE with UPDATE, whose inserted rows cannot be
 * distinguished from moved ones, and what mongo_begin_upsert() raises.
 */
void
mongo_begin_foreign_insert(ModifyTableState *mtstate, ResultRelInfo *rinfo)
{
	ModifyTable *plan = (ModifyTable *) mtstate->ps.plan;
	MongoModifyState *updating = rinfo->ri_FdwState;
	ListCell   *cell;

	if (plan != NULL && plan->onConflictAction > ONCONFLICT_NOTHING)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ON CONFLICT on foreign tables supports DO NOTHING only")));
	foreach(cell, plan == NULL || plan->mergeActionLists == NIL ? NIL :
			(List *) linitial(plan->mergeActionLists))
	{
		if (lfirst_node(MergeAction, cell)->commandType == CMD_UPDATE)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("MERGE that may update rows cannot insert into foreign table \"%s\"",
							RelationGetRelationName(rinfo->ri_RelationDesc)),
					 errhint("Use UPDATE and INSERT.")));
	}
	begin_insert(mtstate->ps.state, plan, rinfo);

	/* the table is also a target of the same UPDATE: keep both states */
	if (updating != NULL)
	{
		updating->routed = rinfo->ri_FdwState;
		rinfo->ri_FdwState = updating;
	}
}

/*
 * mongo_get_foreign_modify_batch_size
 *		Returns the number of rows that PostgreSQL collects for mongo_exec_foreign_batch_insert();
 *		a callback of PostgreSQL.
 *
 * It is 1 unless rows may be refused: other inserts are batched in the queue, without copying
 * rows.
 */
int
mongo_get_foreign_modify_batch_size(ResultRelInfo *rinfo)
{
	MongoModifyState *state = rinfo->ri_FdwState;
	TriggerDesc *triggers = rinfo->ri_TrigDesc;

	if (state == NULL || !state->reports_refused || state->shares_collection ||
		rinfo->ri_projectReturning != NULL || rinfo->ri_WithCheckOptions != NIL ||
		(triggers != NULL && (triggers->trig_insert_before_row ||
							  triggers->trig_insert_after_row)))
		return 1;
	return Min(state->writer->options->batch_size, LARGEST_CORE_BATCH);
}

/* -------------------------------- inserting -------------------------------- */

/*
 * Checks the row against WITH CHECK of policies, which PostgreSQL does not do for a foreign table
 * that is a partition of a table with policies.
 */
static void
check_policies(const MongoModifyState *state, ResultRelInfo *rinfo,
			   TupleTableSlot *slot, EState *estate)
{
	if (rinfo->ri_WithCheckOptions != NIL)
		ExecWithCheckOptions(state->policy_check, rinfo, slot, estate);
}

/* Adds to CONTEXT the row in which a value cannot be stored. */
static void
row_error_context(void *arg)
{
	MongoModifyState *state = arg;

	errcontext("row %lld for foreign table \"%s\"",
			   (long long) state->writer->rows + 1,
			   RelationGetRelationName(state->writer->relation));
}

/* Stores the slot's values, which the caller has changed, as its row. */
static void
replace_row(const MongoModifyState *state, EState *estate, TupleTableSlot *slot)
{
	MemoryContext old_context = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));

	ExecForceStoreHeapTuple(heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values,
											slot->tts_isnull), slot, false);
	slot->tts_tableOid = RelationGetRelid(state->writer->relation);
	MemoryContextSwitchTo(old_context);
}

/*
 * Puts the new row into the slot as its document stores it, or if 'filter' is not NULL, as
 * returned by an upsert by that filter, which is sent now.  Raises 0A000 for what MongoDB replaces
 * when it inserts the document.
 */
static void
show_new_row(MongoModifyState *state, EState *estate, TupleTableSlot *slot, const bson_t *filter)
{
	if (filter == NULL)
	{
		if (state->writer->form.kind == MONGO_INSERT && mongo_has_empty_timestamp(state->document))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot compute a row that contains an empty Timestamp"),
					 errdetail("MongoDB replaces it by its clock when it inserts the document.")));
		mongo_row_decode(state->decoder, bson_get_data(state->document), state->document->len,
						 slot->tts_values, slot->tts_isnull);
	}
	else
	{
		memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
		if (!mongo_writer_find_and_modify(state->writer, filter, state->update, NULL, state->decoder,
										  slot->tts_values, slot->tts_isnull))
			elog(ERROR, "an upsert gave no document");
	}
	replace_row(state, estate, slot);
}

/*
 * Adds the row to the queue as a document, with a generated _id if it has none.  What sees the
 * row, policies and bounds included, sees what columns will read.
 */
static void
queue_insert(MongoModifyState *state, EState *estate, ResultRelInfo *rinfo, TupleTableSlot *slot)
{
	ErrorContextCallback callback = {error_context_stack, row_error_context, state};
	MemoryContext old_context;
	bson_t	   *filter = NULL;
	bool		generated;
	bson_oid_t	oid;

	MemoryContextReset(state->row_context);
	old_context = MemoryContextSwitchTo(state->row_context);
	error_context_stack = &callback;

	slot_getallattrs(slot);
	bson_reinit(state->document);
	mongo_row_to_document(state->layout, slot->tts_values, slot->tts_isnull,
						  state->document, &generated, &oid);
	if (state->writer->form.kind != MONGO_INSERT)
	{
		filter = mongo_bson_create_in(state->row_context);
		bson_reinit(state->update);
		if (state->upsert != NULL)
			mongo_row_to_upsert(state->upsert, slot->tts_values, slot->tts_isnull,
								state->document, generated, filter, state->update);
		else
			mongo_document_to_upsert(state->document, filter, state->update);
	}
	if (state->decoder != NULL && (generated || state->may_differ))
	{
		show_new_row(state, estate, slot, NULL);
		if (state->checks_bounds)
			ExecPartitionCheck(rinfo, slot, estate, true);
	}
	check_policies(state, rinfo, slot, estate);
	if (state->returns)
		show_new_row(state, estate, slot, filter);
	else if (filter != NULL)
		mongo_writer_add(state->writer, filter, state->update);
	else
		mongo_writer_add(state->writer, state->document, NULL);
	error_context_stack = callback.previous;
	MemoryContextSwitchTo(old_context);
}

/*
 * mongo_exec_foreign_insert
 *		Inserts a row, mostly later and in a batch; a callback of PostgreSQL.
 *
 * Returns the slot with the row as stored, or NULL if MongoDB refused the row as a duplicate.
 * Raises what encoding the row and sending the queue raise.
 */
TupleTableSlot *
mongo_exec_foreign_insert(EState *estate, ResultRelInfo *rinfo,
						  TupleTableSlot *slot, TupleTableSlot *planSlot pg_attribute_unused())
{
	MongoModifyState *state = rinfo->ri_FdwState;

	if (state->operation != CMD_INSERT)
		state = state->routed;
	queue_insert(state, estate, rinfo, slot);
	if (state->reports_refused &&
		!bms_is_empty(mongo_writer_send(state->writer)))
		return NULL;
	return slot;
}

/*
 * mongo_exec_foreign_batch_insert
 *		Inserts rows that may be refused, and moves the slots of those that were not to the front;
 *		a callback of PostgreSQL.
 */
TupleTableSlot **
mongo_exec_foreign_batch_insert(EState *estate, ResultRelInfo *rinfo, TupleTableSlot **slots,
								TupleTableSlot **planSlots pg_attribute_unused(), int *numSlots)
{
	MongoModifyState *state = rinfo->ri_FdwState;
	Bitmapset  *refused = NULL;
	int			inserted = 0;

	for (int i = 0; i < *numSlots; i++)
		queue_insert(state, estate, rinfo, slots[i]);
	if (state->reports_refused)
		refused = mongo_writer_send(state->writer);
	for (int i = 0; i < *numSlots; i++)
	{
		TupleTableSlot *slot = slots[i];

		if (bms_is_member(i, refused))
			continue;

		/* exchange them, since the caller uses all slots again */
		slots[i] = slots[inserted];
		slots[inserted++] = slot;
	}
	*numSlots = inserted;
	return slots;
}

/* --------------------------- updating, deleting ---------------------------- */

/*
 * Finds the _id of the row to change; returns false if this statement has changed the row already,
 * since in SQL only the first change counts.
 */
static bool
row_identity(MongoModifyState *state, TupleTableSlot *plan_slot, bson_t *filter)
{
	bool		isnull;
	Datum		ctid = ExecGetJunkAttribute(plan_slot, state->identity_attribute,
											&isnull);

	if (isnull)
		elog(ERROR, "ctid is NULL");
	mongo_identity_find(state->identities, (ItemPointer) DatumGetPointer(ctid), filter);
	return !state->may_come_twice || mongo_writer_changes_first(state->writer, filter);
}

/* Returns the row as the scan read it, or NULL. */
static HeapTuple
old_row(MongoModifyState *state, TupleTableSlot *plan_slot, HeapTuple tuple)
{
	bool		isnull = true;
	Datum		datum = 0;

	if (AttributeNumberIsValid(state->row_attribute))
		datum = ExecGetJunkAttribute(plan_slot, state->row_attribute, &isnull);
	if (isnull)
		return NULL;
	tuple->t_data = DatumGetHeapTupleHeader(datum);
	tuple->t_len = HeapTupleHeaderGetDatumLength(tuple->t_data);
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = RelationGetRelid(state->writer->relation);
	return tuple;
}

/*
 * Returns the attributes that the UPDATE assigns, and those that a BEFORE trigger has changed in
 * addition; was_null is NULL if there is no old row.
 */
static List *
changed_attributes(MongoModifyState *state, TupleTableSlot *slot, const Datum *was,
				   const bool *was_null)
{
	TupleDesc	tuple = RelationGetDescr(state->writer->relation);
	List	   *attributes = list_copy(state->assigned);

	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, attnum - 1);
		bool		isnull = was_null == NULL || was_null[attnum - 1];

		if (attribute->attisdropped || list_member_int(state->assigned, attnum) ||
			attribute->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL)
			continue;
		if (isnull != slot->tts_isnull[attnum - 1] ||
			(!isnull && !datum_image_eq(was[attnum - 1], slot->tts_values[attnum - 1],
										attribute->attbyval, attribute->attlen)))
			attributes = lappend_int(attributes, attnum);
	}
	if (list_length(attributes) != list_length(state->assigned))
		mongo_check_assignable(RelationGetRelid(state->writer->relation), attributes);
	return attributes;
}

/*
 * Appends the update of the row's document, using the old row if that exists and is needed.
 * Returns the numbers of the columns that it assigns.
 */
static List *
append_update(MongoModifyState *state, TupleTableSlot *slot,
			  TupleTableSlot *plan_slot, bson_t *update)
{
	TupleDesc	tuple = RelationGetDescr(state->writer->relation);
	HeapTupleData old_data;
	HeapTuple	old = NULL;
	Datum	   *was = NULL;
	bool	   *was_null = NULL;
	List	   *attributes = state->assigned;

	if (state->assigns_nested || state->compares_rows)
		old = old_row(state, plan_slot, &old_data);
	if (old != NULL)
	{
		was = palloc(sizeof(Datum) * tuple->natts);
		was_null = palloc(sizeof(bool) * tuple->natts);
		heap_deform_tuple(old, tuple, was, was_null);
	}
	if (state->compares_rows)
		attributes = changed_attributes(state, slot, was, was_null);
	mongo_row_to_update(state->layout, attributes, slot->tts_values, slot->tts_isnull,
						was, was_null, update);
	return attributes;
}

/*
 * Puts the changed row into the slot as the update will store it: columns that are assigned, and
 * others that read a part of what is assigned, or what contains it.
 */
static void
show_changed_row(MongoModifyState *state, EState *estate, TupleTableSlot *slot, List *attributes,
				 const bson_t *filter, const bson_t *update)
{
	Relation	relation = state->writer->relation;
	List	   *columns = attributes == state->assigned ? state->shown :
		changed_columns(state, attributes);
	bool		is_replaced;
	ListCell   *cell;

	if (columns == NIL)
		return;
	bson_reinit(state->document);
	is_replaced = mongo_row_replacement(state->layout, attributes, slot->tts_values, filter,
										state->document);
	foreach(cell, columns)
	{
		AttrNumber	attnum = lfirst_int(cell);
		MongoRowDecoder **decoder = &state->decoders[attnum - 1];

		if (!is_replaced && strcmp(NameStr(TupleDescAttr(slot->tts_tupleDescriptor, attnum - 1)->attname),
								   MONGO_MISMATCH_COLUMN) == 0)
		{
			mongo_mismatch_after_update(state->layout, update, slot->tts_values, slot->tts_isnull);
			continue;
		}
		if (!is_replaced)
		{
			bson_reinit(state->document);
			mongo_row_after_update(state->layout, attnum, list_member_int(attributes, attnum),
								   slot->tts_values, slot->tts_isnull, update, state->document);
		}
		if (*decoder == NULL)
			*decoder = mongo_table_decoder_create(state->context, relation, list_make1_int(attnum));
		mongo_row_decode(*decoder, bson_get_data(state->document), state->document->len,
						 slot->tts_values, slot->tts_isnull);
	}
	replace_row(state, estate, slot);
}

/*
 * mongo_exec_foreign_update
 *		Updates a row, later and in a batch; a callback of PostgreSQL.
 *
 * Returns the slot with the row as stored, or NULL if the statement has changed the row already.
 */
TupleTableSlot *
mongo_exec_foreign_update(EState *estate, ResultRelInfo *rinfo,
						  TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	MongoModifyState *state = rinfo->ri_FdwState;
	ErrorContextCallback callback = {error_context_stack, row_error_context, state};
	MemoryContext old_context;
	bson_t		filter;
	bool		is_new;
	List	   *attributes;

	MemoryContextReset(state->row_context);
	old_context = MemoryContextSwitchTo(state->row_context);
	error_context_stack = &callback;

	is_new = row_identity(state, planSlot, &filter);
	slot_getallattrs(slot);
	bson_reinit(state->update);
	attributes = append_update(state, slot, planSlot, state->update);
	show_changed_row(state, estate, slot, attributes, &filter, state->update);
	check_policies(state, rinfo, slot, estate);
	if (state->checks_bounds)
		ExecPartitionCheck(rinfo, slot, estate, true);
	if (is_new && !bson_empty(state->update))
		mongo_writer_add(state->writer, &filter, state->update);

	error_context_stack = callback.previous;
	MemoryContextSwitchTo(old_context);
	return is_new ? slot : NULL;
}

/*
 * mongo_exec_foreign_delete
 *		Deletes a row, later and in a batch; a callback of PostgreSQL.
 *
 * Returns the slot, with the old row for RETURNING, or NULL if the statement has deleted the row
 * already.
 */
TupleTableSlot *
mongo_exec_foreign_delete(EState *estate, ResultRelInfo *rinfo,
						  TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	MongoModifyState *state = rinfo->ri_FdwState;
	HeapTupleData old_data;
	HeapTuple	old;
	bson_t		filter;

	MemoryContextReset(state->row_context);
	if (!row_identity(state, planSlot, &filter))
		return NULL;
	mongo_writer_add(state->writer, &filter, NULL);

	if (rinfo->ri_projectReturning != NULL &&
		(old = old_row(state, planSlot, &old_data)) != NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));

		ExecForceStoreHeapTuple(heap_copytuple(old), slot, false);
		MemoryContextSwitchTo(old_context);
	}
	return slot;
}

/* --------------------------------- the end --------------------------------- */

/*
 * mongo_end_foreign_modify
 *		Sends all writes of a target's queue that are left; a callback of PostgreSQL.
 *
 * Raises the errors of these writes.
 */
void
mongo_end_foreign_modify(EState *estate pg_attribute_unused(), ResultRelInfo *rinfo)
{
	MongoModifyState *state = rinfo->ri_FdwState;

	if (state == NULL)
		return;
	mongo_writer_finish(state->writer);
	if (state->routed != NULL)
		mongo_writer_finish(state->routed->writer);
}
