/*-------------------------------------------------------------------------
 *
 * modify.c
 *		Executing INSERT, COPY, UPDATE and DELETE that go row by row, and TRUNCATE.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"
#include "common.h"
#include "options.h"
#include "convert.h"
#include "translate.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

static void mongo_identity_find(const MongoIdentityLog *log, ItemPointer ctid,
								bson_t *view);
static MongoIdentityLog *mongo_identity_log_create(MemoryContext context);

/*-------------------------------------------------------------------------
 * Executing INSERT, COPY, UPDATE and DELETE that go row by row.
 *
 * Rows come one by one and leave in batches, see exec_internal.h.
 *-------------------------------------------------------------------------
 */

/* Rows that core may hold for one batch; each costs it a tuple slot. */
#define LARGEST_CORE_BATCH	1000

/* ri_FdwState of a target relation. */
typedef struct MongoModifyState
{
	CmdType		operation;
	Relation	relation;
	MemoryContext context;		/* of the query */
	const MongoTableOptions *options;
	UserMapping *user;
	MongoRowLayout *layout;
	MongoWriteKind kind;
	MongoWriter *writer;
	MemoryContext row_context;	/* reset for each row */
	bson_t	   *document;		/* of the row; reused */
	bson_t	   *second;			/* its update, if any; reused */
	WCOKind		policy_check;	/* of INSERT and UPDATE: which of the
								 * policies' */

	/* INSERT and COPY */
	bool		skips_duplicates;	/* ON CONFLICT DO NOTHING */
	MongoUpsert *upsert;		/* of the option insert_mode, or NULL */
	bool		tells_refused;	/* rows that were not inserted are not counted */
	bool		shares_collection;	/* with another target of the statement */
	MongoRowDecoder *id_decoder;	/* when a generated _id will be seen */

	/* UPDATE and DELETE */
	List	   *assigned;		/* attribute numbers that UPDATE sets */
	bool		assigns_nested; /* so what they were matters */
	bool		compares_rows;	/* a trigger may set others */
	bool		checks_bounds;	/* of the partition that the table is */
	AttrNumber	identity_attribute; /* in the plan's tuple: the ctid */
	AttrNumber	row_attribute;	/* likewise: the old row, or 0 */
	MongoIdentityLog *identities;
	bool		may_come_twice; /* a row */
	struct MongoModifyState *routed;	/* inserts of rows that UPDATE moves
										 * to this table, or NULL */
} MongoModifyState;

/* ------------------------------- beginning --------------------------------- */

/*
 * find_other
 *		Does the statement have another target (else: another table) of which we do not
 *		know that it is of another collection than this one?
 */
static bool
find_other(EState *estate, const ResultRelInfo *rinfo, const MongoExtent *extent, bool target)
{
	const List *targets = estate->es_plannedstmt == NULL ? NIL :
		estate->es_plannedstmt->resultRelations;
	int			index = 0;
	ListCell   *cell;

	foreach(cell, estate->es_range_table)
	{
		RangeTblEntry *entry = lfirst(cell);
		MongoExtent other;

		if (++index == (int) rinfo->ri_RangeTableIndex || entry->rtekind != RTE_RELATION ||
			(target && !list_member_int(targets, index)))
			continue;
		/* some partition of it may be the same */
		if (target && entry->relkind == RELKIND_PARTITIONED_TABLE)
			return true;
		if (entry->relkind != RELKIND_FOREIGN_TABLE ||
			GetFdwRoutineByRelId(entry->relid)->BeginForeignModify != mongo_begin_foreign_modify)
			continue;
		other = mongo_extent_read(entry->relid);
		if (target)
			other.collection = mongo_to_utf8(mongo_table_options(entry->relid)->collection);
		if (mongo_extents_meet(&other, extent))
			return true;
	}
	return false;
}

/* create_modify_state: what is common to all operations. */
static MongoModifyState *
create_modify_state(EState *estate, ResultRelInfo *rinfo, CmdType operation)
{
	MongoModifyState *state = palloc0(sizeof(MongoModifyState));
	Relation	relation = rinfo->ri_RelationDesc;
	Oid			relid = RelationGetRelid(relation);
	Oid			user = mongo_result_check_as_user(rinfo, estate);

	state->operation = operation;
	state->relation = relation;
	state->context = estate->es_query_cxt;
	state->options = mongo_table_options(relid);
	state->user = mongo_user_mapping(user ? user : GetUserId(),
									 GetForeignTable(relid)->serverid);
	state->layout = mongo_row_layout_create(state->context, relid,
											RelationGetDescr(relation),
											state->options->write_null,
											state->options->generated_id);
	state->row_context = AllocSetContextCreate(state->context, "mongo_fdw row",
											   ALLOCSET_DEFAULT_SIZES);
	state->document = bson_create_in(state->context);
	return state;
}

static void
create_writer(MongoModifyState *state, const EState *estate, MongoWriteKind kind, bool deferred)
{
	static const char *const messages[] = {
		[CMD_INSERT] = "could not insert into foreign table \"%s\"",
		[CMD_UPDATE] = "could not update foreign table \"%s\"",
		[CMD_DELETE] = "could not delete from foreign table \"%s\"",
	};

	/* COPY has no plan, and says no CommandId */
	state->writer = mongo_writer_create(state->context, state->user, state->options, kind,
										state->options->batch_size, deferred,
										psprintf(messages[state->operation],
												 RelationGetRelationName(state->relation)),
										RelationGetRelid(state->relation),
										estate->es_plannedstmt != NULL ?
										estate->es_output_cid : GetCurrentCommandId(true));
}

List *
mongo_table_attributes(Relation relation, const char *path)
{
	TupleDesc	tuple = RelationGetDescr(relation);
	List	   *attributes = NIL;

	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		if (!TupleDescAttr(tuple, attnum - 1)->attisdropped &&
			(path == NULL ||
			 strcmp(mongo_column_options(RelationGetRelid(relation), attnum)->path, path) == 0))
			attributes = lappend_int(attributes, attnum);
	}
	return attributes;
}

MongoRowDecoder *
mongo_table_decoder_create(MemoryContext context, Relation relation, const List *attributes)
{
	Oid			relid = RelationGetRelid(relation);
	const MongoTableOptions *options = mongo_table_options(relid);
	int			count = list_length(attributes);
	MongoColumn *columns = palloc0(sizeof(MongoColumn) * Max(count, 1));
	ListCell   *cell;

	foreach(cell, attributes)
	{
		MongoColumn *column = &columns[foreach_current_index(cell)];
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation),
													lfirst_int(cell) - 1);

		column->index = attribute->attnum - 1;
		column->name = NameStr(attribute->attname);
		column->typid = attribute->atttypid;
		column->typmod = attribute->atttypmod;
		if (strcmp(column->name, MONGO_DOCUMENT_COLUMN) != 0)
		{
			const MongoColumnOptions *column_options = mongo_column_options(relid,
																			attribute->attnum);

			column->path = column_options->path;
			column->bson_type = column_options->bson_type;
		}
	}
	return mongo_row_decoder_create(context, options->database, options->collection, columns,
									count, options->type_mismatch, options->canonical_json);
}

/* begin_upsert: gives the kind of its operations. */
static MongoWriteKind
begin_upsert(MongoModifyState *state, const ModifyTable *plan, const ResultRelInfo *rinfo)
{
	/*
	 * COPY counts the rows that it reads, but has a trigger see no row that
	 * is not there
	 */
	state->tells_refused = state->upsert->ignores &&
		(plan != NULL || (rinfo->ri_TrigDesc != NULL && rinfo->ri_TrigDesc->trig_insert_after_row));
	state->second = bson_create_in(state->context);
	return state->upsert->ignores ? MONGO_INSERT_UNLESS_THERE : MONGO_UPSERT;
}

/* begin_insert: of the statement INSERT, of COPY, and for rows moved to a partition. */
static void
begin_insert(EState *estate, ModifyTable *plan, ResultRelInfo *rinfo)
{
	MongoModifyState *state = create_modify_state(estate, rinfo, CMD_INSERT);
	MongoExtent extent = mongo_extent_written(state->user->serverid, state->options);
	MongoWriteKind kind = MONGO_INSERT;
	List	   *ids = NIL;
	bool		deferred = (plan != NULL && plan->operation == CMD_UPDATE) ||
		find_other(estate, rinfo, &extent, false);

	state->upsert = mongo_upsert_begin(estate, plan, rinfo);
	state->skips_duplicates = plan != NULL &&
		plan->onConflictAction == ONCONFLICT_NOTHING;
	if (state->skips_duplicates)
	{
		/* a duplicate key would end MongoDB's transaction */
		if (mongo_session_in_transaction(mongo_session_for_write(state->user)))
			kind = MONGO_INSERT_UNLESS_THERE;
		state->second = bson_create_in(state->context);
	}
	state->policy_check = plan != NULL && plan->operation == CMD_UPDATE ?
		WCO_RLS_UPDATE_CHECK : WCO_RLS_INSERT_CHECK;
	/* rinfo itself does not know of RETURNING yet */
	if ((plan != NULL && (plan->returningLists != NIL || plan->withCheckOptionLists != NIL)) ||
		(rinfo->ri_TrigDesc != NULL && rinfo->ri_TrigDesc->trig_insert_after_row))
		ids = mongo_table_attributes(state->relation, "_id");
	if (ids != NIL)
		state->id_decoder = mongo_table_decoder_create(state->context, state->relation, ids);
	if (state->upsert != NULL)
		kind = begin_upsert(state, plan, rinfo);
	state->kind = kind;
	state->tells_refused |= state->skips_duplicates;
	state->shares_collection = find_other(estate, rinfo, &extent, true);
	create_writer(state, estate, kind, deferred && !state->tells_refused);
	if (state->skips_duplicates)
		mongo_writer_allow_duplicates(state->writer);
	if (state->upsert != NULL)
		mongo_writer_upsert(state->writer, state->tells_refused);
	rinfo->ri_FdwState = state;
}

/* What to look for among the plan's states: the scan of this relation. */
typedef struct ScanSearch
{
	Index		scanrelid;
	ForeignScanState *found;
} ScanSearch;

/* find_scan: a walker over plan states. */
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

static void
begin_update_or_delete(ModifyTableState *mtstate, ResultRelInfo *rinfo,
					   List *attributes)
{
	EState	   *estate = mtstate->ps.state;
	MongoModifyState *state = create_modify_state(estate, rinfo, mtstate->operation);
	PlanState  *source = outerPlanState(mtstate);
	List	   *targetlist = source->plan->targetlist;
	ScanSearch	search = {rinfo->ri_RangeTableIndex, NULL};
	TriggerDesc *triggers = rinfo->ri_TrigDesc;
	MongoExtent extent;
	ListCell   *cell;

	state->assigned = attributes;
	state->policy_check = WCO_RLS_UPDATE_CHECK;
	foreach(cell, attributes)
		state->assigns_nested |= mongo_is_nested_type(TupleDescAttr(RelationGetDescr(state->relation),
																	lfirst_int(cell) - 1)->atttypid);
	state->compares_rows = triggers != NULL && triggers->trig_update_before_row;
	state->checks_bounds = state->operation == CMD_UPDATE &&
		(mongo_may_leave_partition(state->relation, attributes) ||
		 (state->compares_rows && state->relation->rd_rel->relispartition));
	state->identity_attribute = ExecFindJunkAttributeInTlist(targetlist, "ctid");
	state->row_attribute = ExecFindJunkAttributeInTlist(targetlist, "wholerow");
	if (!AttributeNumberIsValid(state->identity_attribute))
		elog(ERROR, "could not find junk ctid column");

	find_scan(source, &search);
	state->identities = mongo_identity_log_create(state->context);
	if (search.found != NULL)
		mongo_scan_keep_identities(search.found, state->identities);
	extent = mongo_extent_written(state->user->serverid, state->options);
	state->may_come_twice = (!IsA(source, ForeignScanState) && !IsA(source, AppendState)) ||
		find_other(estate, rinfo, &extent, true);

	state->second = bson_create_in(state->context);
	state->kind = state->operation == CMD_UPDATE ? MONGO_UPDATE_ONE : MONGO_DELETE_ONE;
	create_writer(state, estate, state->kind, true);
	rinfo->ri_FdwState = state;

	/* what the scan reads must not change before it is written */
	mongo_session_for_write(state->user);
}

void
mongo_begin_foreign_modify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
						   List *fdw_private,
						   int subplan_index pg_attribute_unused(), int eflags)
{
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	if (mtstate->operation == CMD_INSERT)
		begin_insert(mtstate->ps.state, (ModifyTable *) mtstate->ps.plan, rinfo);
	else
		begin_update_or_delete(mtstate, rinfo, linitial(fdw_private));
}

/* For COPY, which has no plan, and rows routed to a partition. */
void
mongo_begin_foreign_insert(ModifyTableState *mtstate, ResultRelInfo *rinfo)
{
	ModifyTable *plan = (ModifyTable *) mtstate->ps.plan;
	MongoModifyState *updating = rinfo->ri_FdwState;

	if (plan != NULL && plan->onConflictAction == ONCONFLICT_UPDATE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ON CONFLICT DO UPDATE is not supported on foreign tables")));
	begin_insert(mtstate->ps.state, plan, rinfo);

	/* also a target of the same UPDATE: both go on, the inserts last */
	if (updating != NULL)
	{
		updating->routed = rinfo->ri_FdwState;
		rinfo->ri_FdwState = updating;
	}
}

int
mongo_get_foreign_modify_batch_size(ResultRelInfo *rinfo)
{
	MongoModifyState *state = rinfo->ri_FdwState;
	TriggerDesc *triggers = rinfo->ri_TrigDesc;

	/* other inserts make their batches in the queue, without copying rows */
	if (state == NULL || !state->tells_refused || state->shares_collection ||
		rinfo->ri_projectReturning != NULL || rinfo->ri_WithCheckOptions != NIL ||
		(triggers != NULL && (triggers->trig_insert_before_row ||
							  triggers->trig_insert_after_row)))
		return 1;
	return Min(state->options->batch_size, LARGEST_CORE_BATCH);
}

/* -------------------------------- inserting -------------------------------- */

/*
 * check_policies: the row against WITH CHECK of the policies, which PostgreSQL
 * leaves out for a foreign table that is a partition of a table with some.
 */
static void
check_policies(const MongoModifyState *state, ResultRelInfo *rinfo,
			   TupleTableSlot *slot, EState *estate)
{
	if (rinfo->ri_WithCheckOptions != NIL)
		ExecWithCheckOptions(state->policy_check, rinfo, slot, estate);
}

/* row_error_context names the row in which a value cannot be stored. */
static void
row_error_context(void *arg)
{
	MongoModifyState *state = arg;

	errcontext("row %lld for foreign table \"%s\"",
			   (long long) mongo_writer_rows(state->writer) + 1,
			   RelationGetRelationName(state->relation));
}

/* show_generated_id puts the _id that we made where RETURNING finds it. */
static void
show_generated_id(MongoModifyState *state, EState *estate, TupleTableSlot *slot)
{
	TupleDesc	tuple = slot->tts_tupleDescriptor;
	MemoryContext old_context = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	Datum	   *values = palloc(sizeof(Datum) * tuple->natts);
	bool	   *isnull = palloc(sizeof(bool) * tuple->natts);

	memcpy(values, slot->tts_values, sizeof(Datum) * tuple->natts);
	memcpy(isnull, slot->tts_isnull, sizeof(bool) * tuple->natts);
	mongo_row_decode(state->id_decoder, bson_get_data(state->document),
					 state->document->len, values, isnull);
	ExecForceStoreHeapTuple(heap_form_tuple(tuple, values, isnull), slot, false);
	MemoryContextSwitchTo(old_context);
}

/* queue_insert: write the row as a document, with an _id of our own if it has none. */
static void
queue_insert(MongoModifyState *state, EState *estate, TupleTableSlot *slot)
{
	ErrorContextCallback callback = {error_context_stack, row_error_context, state};
	bool		returns = state->upsert != NULL && state->upsert->returns;
	MemoryContext old_context;
	bool		generated;
	bson_oid_t	oid;

	MemoryContextReset(state->row_context);
	old_context = MemoryContextSwitchTo(state->row_context);
	error_context_stack = &callback;

	slot_getallattrs(slot);
	bson_reinit(state->document);
	mongo_row_to_document(state->layout, slot->tts_values, slot->tts_isnull,
						  state->document, &generated, &oid);
	if (state->kind == MONGO_INSERT)
		mongo_writer_add(state->writer, state->document, NULL);
	else
	{
		bson_t	   *filter = bson_create_in(state->row_context);

		bson_reinit(state->second);
		if (state->upsert != NULL)
			mongo_row_to_upsert(state->upsert->layout, slot->tts_values,
								slot->tts_isnull, state->document, generated, filter,
								state->second);
		else
			mongo_document_to_upsert(state->document, filter, state->second);
		if (returns)
			mongo_upsert_return(state->upsert, estate, state->user, filter, state->second, slot);
		else
			mongo_writer_add(state->writer, filter, state->second);
	}

	error_context_stack = callback.previous;
	MemoryContextSwitchTo(old_context);
	if (generated && state->id_decoder != NULL && !returns)
		show_generated_id(state, estate, slot);
}

TupleTableSlot *
mongo_exec_foreign_insert(EState *estate, ResultRelInfo *rinfo,
						  TupleTableSlot *slot, TupleTableSlot *planSlot pg_attribute_unused())
{
	MongoModifyState *state = rinfo->ri_FdwState;

	if (state->operation != CMD_INSERT)
		state = state->routed;
	check_policies(state, rinfo, slot, estate);
	queue_insert(state, estate, slot);
	if (state->tells_refused &&
		!bms_is_empty(mongo_writer_send(state->writer)))
		return NULL;
	return slot;
}

/* Only used where rows may be refused, see the batch size. */
TupleTableSlot **
mongo_exec_foreign_batch_insert(EState *estate, ResultRelInfo *rinfo,
								TupleTableSlot **slots,
								TupleTableSlot **planSlots pg_attribute_unused(),
								int *numSlots)
{
	MongoModifyState *state = rinfo->ri_FdwState;
	Bitmapset  *refused = NULL;
	int			inserted = 0;

	for (int i = 0; i < *numSlots; i++)
	{
		check_policies(state, rinfo, slots[i], estate);
		queue_insert(state, estate, slots[i]);
	}
	if (state->tells_refused)
		refused = mongo_writer_send(state->writer);
	for (int i = 0; i < *numSlots; i++)
	{
		TupleTableSlot *slot = slots[i];

		if (bms_is_member(i, refused))
			continue;

		/* exchanged, not overwritten: the caller uses all of them again */
		slots[i] = slots[inserted];
		slots[inserted++] = slot;
	}
	*numSlots = inserted;
	return slots;
}

/* --------------------------- updating, deleting ---------------------------- */

/*
 * row_identity finds the _id of the row to change; false when this statement
 * has changed the row already, as SQL lets only the first change count.
 */
static bool
row_identity(MongoModifyState *state, TupleTableSlot *plan_slot, bson_t *filter)
{
	bool		isnull;
	Datum		ctid = ExecGetJunkAttribute(plan_slot, state->identity_attribute,
											&isnull);

	if (isnull)
		elog(ERROR, "ctid is NULL");
	mongo_identity_find(state->identities, (ItemPointer) DatumGetPointer(ctid),
						filter);
	return !state->may_come_twice || mongo_writer_changes_first(state->writer, filter);
}

/* old_row: the row as the scan read it, or NULL. */
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
	tuple->t_tableOid = RelationGetRelid(state->relation);
	return tuple;
}

/*
 * changed_attributes: what the UPDATE assigns and what a BEFORE trigger has
 * changed beside that.
 */
static List *
changed_attributes(MongoModifyState *state, TupleTableSlot *slot,
				   TupleTableSlot *plan_slot)
{
	TupleDesc	tuple = RelationGetDescr(state->relation);
	HeapTupleData old_data;
	HeapTuple	old;
	List	   *attributes = list_copy(state->assigned);

	if (!state->compares_rows)
		return state->assigned;
	old = old_row(state, plan_slot, &old_data);
	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, attnum - 1);
		bool		was_null = true;
		Datum		was = 0;

		if (attribute->attisdropped || list_member_int(state->assigned, attnum))
			continue;
		if (old != NULL)
			was = heap_getattr(old, attnum, tuple, &was_null);
		if (was_null != slot->tts_isnull[attnum - 1] ||
			(!was_null && !datum_image_eq(was, slot->tts_values[attnum - 1],
										  attribute->attbyval, attribute->attlen)))
			attributes = lappend_int(attributes, attnum);
	}
	if (list_length(attributes) != list_length(state->assigned))
		mongo_check_assignable(RelationGetRelid(state->relation), attributes);
	return attributes;
}

/*
 * append_update
 *		What the row's document has to become, from its old row if that is at
 *		hand and matters.
 */
static void
append_update(MongoModifyState *state, TupleTableSlot *slot,
			  TupleTableSlot *plan_slot, bson_t *update)
{
	TupleDesc	tuple = RelationGetDescr(state->relation);
	HeapTupleData old_data;
	HeapTuple	old = NULL;
	Datum	   *old_values = NULL;
	bool	   *old_isnull = NULL;

	if (state->assigns_nested)
		old = old_row(state, plan_slot, &old_data);
	if (old != NULL)
	{
		old_values = palloc(sizeof(Datum) * tuple->natts);
		old_isnull = palloc(sizeof(bool) * tuple->natts);
		heap_deform_tuple(old, tuple, old_values, old_isnull);
	}
	mongo_row_to_update(state->layout, changed_attributes(state, slot, plan_slot),
						slot->tts_values, slot->tts_isnull, old_values, old_isnull,
						update);
}

TupleTableSlot *
mongo_exec_foreign_update(EState *estate, ResultRelInfo *rinfo,
						  TupleTableSlot *slot, TupleTableSlot *planSlot)
{
	MongoModifyState *state = rinfo->ri_FdwState;
	ErrorContextCallback callback = {error_context_stack, row_error_context, state};
	MemoryContext old_context;
	bson_t		filter;
	bool		is_new;

	check_policies(state, rinfo, slot, estate);
	MemoryContextReset(state->row_context);
	old_context = MemoryContextSwitchTo(state->row_context);
	error_context_stack = &callback;

	is_new = row_identity(state, planSlot, &filter);
	if (is_new && state->checks_bounds)
		ExecPartitionCheck(rinfo, slot, estate, true);
	if (is_new)
	{
		slot_getallattrs(slot);
		bson_reinit(state->second);
		append_update(state, slot, planSlot, state->second);
		if (!bson_empty(state->second))
			mongo_writer_add(state->writer, &filter, state->second);
	}

	error_context_stack = callback.previous;
	MemoryContextSwitchTo(old_context);
	return is_new ? slot : NULL;
}

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

/* ------ The _ids of the rows that a scan gave to an UPDATE or DELETE ------ */

#define INITIAL_CAPACITY	(64 * 1024)

struct MongoIdentityLog
{
	MemoryContext context;
	bson_t	   *scratch;
	char	   *data;
	Size		length;
	Size		capacity;
};

/*
 * mongo_identity_log_create
 *		An empty log, which lives in 'context'.
 */
static MongoIdentityLog *
mongo_identity_log_create(MemoryContext context)
{
	MongoIdentityLog *log = MemoryContextAllocZero(context,
												   sizeof(MongoIdentityLog));

	log->context = context;
	log->scratch = bson_create_in(context);
	log->capacity = INITIAL_CAPACITY;
	log->data = MemoryContextAlloc(context, log->capacity);
	return log;
}

void
mongo_identity_note(MongoIdentityLog *log, const uint8_t *data, uint32 length,
					ItemPointer ctid)
{
	bson_iter_t iter;
	bson_t		document;
	Size		needed;

	bson_reinit(log->scratch);
	if (!bson_view(&document, data, length) ||
		!bson_iter_init_find(&iter, &document, "_id"))
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("MongoDB sent a document without _id"),
				 errhint("Rows of a view without _id cannot be updated or deleted.")));
	mongo_append_equal(log->scratch, "_id", bson_iter_value(&iter));

	needed = log->length + log->scratch->len;
	if (needed > log->capacity)
	{
		while (log->capacity < needed)
			log->capacity *= 2;
		log->data = repalloc_huge(log->data, log->capacity);
	}
	/* an offset has 48 bits: the block number, and the offset number in it */
	BlockIdSet(&ctid->ip_blkid, (BlockNumber) (log->length >> 16));
	ctid->ip_posid = (OffsetNumber) (log->length & 0xFFFF);
	memcpy(log->data + log->length, bson_get_data(log->scratch), log->scratch->len);
	log->length = needed;
}

/*
 * mongo_identity_find
 *		A view of the filter by _id that a ctid stands for.
 *
 * The view is good until the next mongo_identity_note().
 */
static void
mongo_identity_find(const MongoIdentityLog *log, ItemPointer ctid, bson_t *view)
{
	Size		offset = ((Size) BlockIdGetBlockNumber(&ctid->ip_blkid) << 16) | ctid->ip_posid;
	uint32		length = 0;

	if (offset + sizeof(length) <= log->length)
	{
		memcpy(&length, log->data + offset, sizeof(length));
		length = BSON_UINT32_FROM_LE(length);
	}
	if (length < 5 || length > log->length - offset ||
		!bson_view(view, (const uint8_t *) log->data + offset, length))
		elog(ERROR, "row identity does not stand for an _id");
}

/*-------------------------------------------------------------------------
 * TRUNCATE of foreign tables: deletes every document.
 *
 * Dropping the collection would be faster, but would take its indexes along
 * and is not part of MongoDB's transactions.
 *-------------------------------------------------------------------------
 */

static void
check_truncatable(Relation relation)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(relation));

	if (!options->truncatable || mongo_is_derived(options))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("foreign table \"%s\" does not allow truncates",
						RelationGetRelationName(relation))));
}

static void
truncate_one(Relation relation)
{
	Oid			relid = RelationGetRelid(relation);
	const MongoTableOptions *options = mongo_table_options(relid);
	UserMapping *user = mongo_user_mapping(GetUserId(), GetForeignTable(relid)->serverid);
	MongoWriter *writer;

	writer = mongo_writer_create(CurrentMemoryContext, user, options, MONGO_DELETE_MANY, 1, false,
								 psprintf("could not truncate foreign table \"%s\"",
										  RelationGetRelationName(relation)),
								 relid, GetCurrentCommandId(true));
	mongo_writer_add(writer, bson_create_in(CurrentMemoryContext), NULL);
	mongo_writer_finish(writer);
}

void
mongo_exec_foreign_truncate(List *rels, DropBehavior behavior pg_attribute_unused(),
							bool restart_seqs pg_attribute_unused())
{
	ListCell   *cell;

	/* nothing is deleted when one of them must not be */
	foreach(cell, rels)
		check_truncatable(lfirst(cell));
	foreach(cell, rels)
		truncate_one(lfirst(cell));
}
