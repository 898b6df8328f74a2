/*-------------------------------------------------------------------------
 *
 * table.c
 *		The tables of a member: what is refused, which columns are copied, and SQL about them.
 *
 * All of it is read from the catalogs under locks on the tables, with the rights of their owner.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"
#include "exec.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "foreign/fdwapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* -------------------------------- Names ----------------------------------- */

/*
 * sync_qualified_name
 *		Returns a table's name with its schema, quoted; palloc'd.
 */
char *
sync_qualified_name(Oid relid)
{
	char	   *name = get_rel_name(relid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("a table that was synchronized does not exist any more: OID %u", relid)));
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name);
}

/* Returns an operator with its schema, as SQL. */
static const char *
operator_name(Oid operator)
{
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	Form_pg_operator form;
	char	   *result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", operator);
	form = (Form_pg_operator) GETSTRUCT(tuple);
	result = psprintf("OPERATOR(%s.%s)",
					  quote_identifier(get_namespace_name(form->oprnamespace)), NameStr(form->oprname));
	ReleaseSysCache(tuple);
	return result;
}

/*
 * sync_collation_name
 *		Returns a collation with its schema, quoted.
 */
char *
sync_collation_name(Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Form_pg_collation form;
	char	   *result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(tuple);
	result = quote_qualified_identifier(get_namespace_name(form->collnamespace), NameStr(form->collname));
	ReleaseSysCache(tuple);
	return result;
}

/*
 * sync_fdw_function
 *		Returns the qualified name of a function with two parameters of the extension that has the
 *		server's wrapper, which is found by its handler's schema.
 */
const char *
sync_fdw_function(Oid server, const char *name, Oid first, Oid second)
{
	ForeignDataWrapper *wrapper = GetForeignDataWrapper(GetForeignServer(server)->fdwid);
	Oid			schema = get_func_namespace(wrapper->fdwhandler);
	Oid			types[] = {first, second};

	if (!SearchSysCacheExists3(PROCNAMEARGSNSP, CStringGetDatum(name),
							   PointerGetDatum(buildoidvector(types, 2)),
							   ObjectIdGetDatum(schema)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("function %s() of the extension mongo_fdw does not exist", name),
				 errhint("ALTER EXTENSION mongo_fdw UPDATE creates it.")));
	return quote_qualified_identifier(get_namespace_name(schema), name);
}

/* ------------------------------- Columns ---------------------------------- */

/* Returns the number of the foreign table's column for _id; 0: it has none. */
static AttrNumber
key_column(Oid foreign)
{
	Relation	relation = relation_open(foreign, NoLock);
	AttrNumber	result = InvalidAttrNumber;

	for (int i = 0; i < RelationGetDescr(relation)->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), i);

		if (!attribute->attisdropped && !mongo_is_pseudo_column(NameStr(attribute->attname)) &&
			strcmp(mongo_column_options(foreign, attribute->attnum)->path, "_id") == 0)
			result = attribute->attnum;
	}
	relation_close(relation, NoLock);
	return result;
}

/*
 * sync_key_columns
 *		Returns the names of the columns that identify a row: that of _id, then the numbers of the
 *		elements of an unwound table; NIL if one of them is missing.
 */
List *
sync_key_columns(Oid foreign)
{
	const MongoTableOptions *options = mongo_table_options(foreign);
	AttrNumber	key = key_column(foreign);
	List	   *fields = mongo_split_list(options->ordinality);
	List	   *result = NIL;
	ListCell   *cell;

	if (key == InvalidAttrNumber ||
		list_length(fields) != list_length(mongo_split_list(options->unwind)))
		return NIL;
	result = list_make1(get_attname(foreign, key, false));
	foreach(cell, fields)
	{
		Relation	relation = relation_open(foreign, NoLock);
		char	   *found = NULL;

		for (int i = 0; i < RelationGetDescr(relation)->natts; i++)
		{
			Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), i);

			if (!attribute->attisdropped &&
				strcmp(mongo_column_options(foreign, attribute->attnum)->path, lfirst(cell)) == 0)
				found = pstrdup(NameStr(attribute->attname));
		}
		relation_close(relation, NoLock);
		if (found == NULL)
			return NIL;
		result = lappend(result, found);
	}
	return result;
}

/* Returns a cast to a type, as SQL behind a value. */
static const char *
cast_to(Oid type)
{
	return psprintf("::%s", format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY));
}

/*
 * Sets by which operator of a type a column of the key is compared.  Values are cast to exactly
 * that type if the operator is in a schema where others may define one for a domain over it.
 */
static void
set_equality(SyncTable *table, int place, Oid operator, Oid type)
{
	table->equals[place] = operator_name(operator);
	if (operator >= FirstUnpinnedObjectId)
		table->casts[place] = cast_to(type);
}

/*
 * Tells whether the table has a unique index on exactly these columns, and sets in 'table', unless
 * that is NULL, the operators by which it compares them.
 */
static bool
has_key(Relation relation, const List *columns, SyncTable *table)
{
	bool		found = false;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(relation))
	{
		Relation	index = relation_open(lfirst_oid(cell), AccessShareLock);
		Form_pg_index form = index->rd_index;
		int			matches = 0;

		if (form->indisunique && form->indisvalid && form->indnkeyatts == list_length(columns) &&
			heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
			heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL))
		{
			for (int i = 0; i < form->indnkeyatts; i++)
			{
				char	   *name = get_attname(RelationGetRelid(relation), form->indkey.values[i], false);
				int			place = 0;
				ListCell   *column;

				foreach(column, columns)
				{
					if (strcmp(lfirst(column), name) == 0)
					{
						Oid			type = index->rd_opcintype[i];

						if (table != NULL)
							set_equality(table, place, get_opfamily_member(index->rd_opfamily[i], type, type,
																		   BTEqualStrategyNumber), type);
						matches++;
					}
					place++;
				}
			}
		}
		relation_close(index, AccessShareLock);
		if (matches == list_length(columns))
		{
			found = true;
			break;
		}
	}
	return found;
}

/* Sets how a primary key that is to be added compares. */
static void
default_equals(Oid foreign, const List *columns, SyncTable *table)
{
	ListCell   *cell;
	int			place = 0;

	foreach(cell, columns)
	{
		Oid			type = getBaseType(get_atttype(foreign, get_attnum(foreign, lfirst(cell))));

		set_equality(table, place++, lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr, type);
	}
}

/* ------------------------------- Refusals --------------------------------- */

/*
 * sync_table_owner
 *		Returns a table's owner; InvalidOid if it is gone.
 */
Oid
sync_table_owner(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/*
 * sync_is_trusted
 *		Tells whether what a foreign table's owner declares may run with the rights of a role.
 */
bool
sync_is_trusted(Oid foreign, Oid role)
{
	Oid			owner = sync_table_owner(foreign);

	return owner == role || superuser_arg(owner);
}

/*
 * sync_is_ours
 *		Tells whether a foreign table is of this wrapper, whatever that is called.
 */
bool
sync_is_ours(Oid foreign)
{
	return get_rel_relkind(foreign) == RELKIND_FOREIGN_TABLE &&
		GetFdwRoutineByRelId(foreign)->BeginForeignScan == mongo_begin_foreign_scan;
}

/* Returns the name of a stage that does not work on one document alone; NULL: none. */
static const char *
unsafe_stage(const char *pipeline)
{
	static const char *const safe[] = {"$match", "$set", "$addFields", "$project", "$unset", "$unwind"};
	static const char *const unsafe[] = {"$rand", "$$NOW", "$$CLUSTER_TIME", "$function", "$sampleRate", "$accumulator"};
	bson_error_t error;
	bson_t	   *stages;
	bson_iter_t iter;
	bson_iter_t stage;
	const char *found = NULL;

	if (pipeline == NULL)
		return NULL;
	for (size_t i = 0; i < lengthof(unsafe); i++)
	{
		if (strstr(pipeline, unsafe[i]) != NULL)
			return unsafe[i];
	}
	stages = bson_new_from_json((const uint8_t *) mongo_to_utf8(pipeline), -1, &error);
	if (stages == NULL)
		return "a stage that cannot be read";
	if (bson_iter_init(&iter, stages))
	{
		while (found == NULL && bson_iter_next(&iter))
		{
			bool		is_safe = false;

			if (!BSON_ITER_HOLDS_DOCUMENT(&iter) || !bson_iter_recurse(&iter, &stage) || !bson_iter_next(&stage))
				continue;
			for (size_t i = 0; i < lengthof(safe); i++)
				is_safe = is_safe || strcmp(bson_iter_key(&stage), safe[i]) == 0;
			if (!is_safe)
				found = pstrdup(bson_iter_key(&stage));
		}
	}
	bson_destroy(stages);
	return found;
}

/* Adds a refusal. */
static void
refuse(List **refusals, const char *message, const char *hint)
{
	SyncRefusal *refusal = palloc(sizeof(SyncRefusal));

	*refusal = (SyncRefusal) {.message = message,.hint = hint};
	*refusals = lappend(*refusals, refusal);
}

/* Adds why this foreign table cannot be a source. */
static void
refuse_foreign(Oid foreign, Oid owner, List **refusals)
{
	const MongoTableOptions *options;
	const char *stage;

	if (!sync_is_ours(foreign))
	{
		refuse(refusals, psprintf("\"%s\" is not a foreign table of mongo_fdw", get_rel_name(foreign)),
			   "Give a foreign table of mongo_fdw over a collection.");
		return;
	}
	if (!sync_is_trusted(foreign, owner))
		refuse(refusals, psprintf("foreign table \"%s\" belongs to another role, \"%s\"", get_rel_name(foreign),
								  GetUserNameFromId(sync_table_owner(foreign), false)),
			   "What its owner declares runs with the rights of the local table's owner: both tables must have one owner, or the foreign one a superuser.");
	options = mongo_table_options(foreign);
	if (options->change_stream != NULL)
		refuse(refusals, psprintf("\"%s\" is a change stream", get_rel_name(foreign)),
			   "Give the foreign table of the collection.");
	if (options->unwind_empty)
		refuse(refusals, psprintf("foreign table \"%s\" has the option unwind_empty", get_rel_name(foreign)),
			   "Its rows without an element have no number. Set unwind_empty to 'false'.");
	stage = unsafe_stage(options->pipeline);
	if (stage != NULL)
		refuse(refusals, psprintf("the pipeline of foreign table \"%s\" has %s", get_rel_name(foreign), stage),
			   "Each stage must work on one document alone: $match, $set, $project, $unset, $unwind. Use a view of PostgreSQL over synchronized tables for the rest.");
	if (sync_key_columns(foreign) == NIL)
		refuse(refusals, psprintf("foreign table \"%s\" has no columns that identify a row", get_rel_name(foreign)),
			   "It needs a column for _id, and one for each name of the option ordinality, which must name each array of unwind.");
}

/*
 * sync_has_foreign_keys
 *		Tells whether the table refers to another one, or another to it.
 */
bool
sync_has_foreign_keys(Oid relid)
{
	Relation	relation = relation_open(relid, AccessShareLock);
	const TriggerDesc *triggers = relation->trigdesc;
	bool		found = false;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
		found |= RI_FKey_trigger_type(triggers->triggers[i].tgfoid) != RI_TRIGGER_NONE;
	relation_close(relation, NoLock);
	return found;
}

/* Adds why this table's foreign keys are refused. */
static void
refuse_constraints(Relation local, List **refusals)
{
	foreach_ptr(ForeignKeyCacheInfo, key, RelationGetFKeyList(local))
	{
		HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(key->conoid));
		char		action;

		if (!HeapTupleIsValid(tuple))
			continue;
		action = ((Form_pg_constraint) GETSTRUCT(tuple))->confdeltype;
		ReleaseSysCache(tuple);
		if (action == FKCONSTR_ACTION_CASCADE || action == FKCONSTR_ACTION_SETNULL ||
			action == FKCONSTR_ACTION_SETDEFAULT)
			refuse(refusals, psprintf("a foreign key of table \"%s\" changes rows when others are deleted",
									  RelationGetRelationName(local)),
				   "It would change rows that MongoDB has. Create it with ON DELETE NO ACTION: it is checked when all tables have been changed.");
	}
}

/* Adds why this table cannot be synchronized. */
static void
refuse_local(Relation local, Oid foreign, bool needs_key, List **refusals)
{
	const char *name = RelationGetRelationName(local);
	List	   *keys = sync_key_columns(foreign);
	PartitionKey partition;

	if (local->rd_rel->relkind != RELKIND_RELATION && local->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
	{
		refuse(refusals, psprintf("\"%s\" is not a table", name),
			   "Give an ordinary or partitioned table, or the name of a new one.");
		return;
	}
	if (local->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		refuse(refusals, psprintf("table \"%s\" is temporary or unlogged", name),
			   "After a crash its rows would be gone, and its position not. ALTER TABLE ... SET LOGGED, or give another table.");
	if (local->rd_rel->relrowsecurity && local->rd_rel->relforcerowsecurity)
		refuse(refusals, psprintf("table \"%s\" has row-level security that binds its owner", name),
			   "The policies would hide rows from their synchronization: ALTER TABLE ... NO FORCE ROW LEVEL SECURITY. Others are bound by them as before.");
	if (local->rd_rules != NULL)
		refuse(refusals, psprintf("table \"%s\" has rules", name),
			   "Drop the rule, or give another table.");
	if (local->rd_rel->relkind == RELKIND_RELATION && has_subclass(RelationGetRelid(local)))
		refuse(refusals, psprintf("table \"%s\" has inheritance children", name),
			   "Give a table without children, or a partitioned one.");
	if (keys != NIL && needs_key && !has_key(local, keys, NULL))
		refuse(refusals, psprintf("table \"%s\" has no unique index on the columns that identify a row", name),
			   psprintf("ALTER TABLE %s ADD PRIMARY KEY (%s).", sync_qualified_name(RelationGetRelid(local)),
						list_length(keys) == 1 ? quote_identifier(linitial(keys)) :
						"the columns of _id and of the option ordinality"));
	partition = RelationGetPartitionKey(local);
	for (int i = 0; partition != NULL && keys != NIL && i < partition->partnatts; i++)
	{
		if (partition->partattrs[i] == 0 ||
			strcmp(get_attname(RelationGetRelid(local), partition->partattrs[i], false), linitial(keys)) != 0)
			refuse(refusals, psprintf("table \"%s\" is partitioned by another column than that of _id", name),
				   "Partition it by the column of _id.");
	}
	refuse_constraints(local, refusals);
}

/* Adds why a column of the local table does not suit the foreign one. */
static void
refuse_column(Relation local, Form_pg_attribute foreign, List **refusals)
{
	AttrNumber	number = get_attnum(RelationGetRelid(local), NameStr(foreign->attname));
	const char *name = NameStr(foreign->attname);
	Form_pg_attribute attribute;

	if (number == InvalidAttrNumber)
	{
		if (!mongo_is_pseudo_column(name))
			refuse(refusals, psprintf("table \"%s\" has no column \"%s\"", RelationGetRelationName(local), name),
				   "Add the column to the local table, with the same type, or drop it from the foreign one.");
		return;
	}
	attribute = TupleDescAttr(RelationGetDescr(local), number - 1);
	if (attribute->attgenerated != '\0' || attribute->attidentity != '\0')
		refuse(refusals, psprintf("column \"%s\" of table \"%s\" is generated", name, RelationGetRelationName(local)),
			   "Drop the expression, or give it a column of its own.");
	if (getBaseType(attribute->atttypid) != getBaseType(foreign->atttypid) ||
		(attribute->atttypmod != -1 && attribute->atttypid == foreign->atttypid && attribute->atttypmod != foreign->atttypmod))
		refuse(refusals, psprintf("column \"%s\" of table \"%s\" has type %s, and %s in the foreign table", name,
								  RelationGetRelationName(local),
								  format_type_with_typemod(attribute->atttypid, attribute->atttypmod),
								  format_type_with_typemod(foreign->atttypid, foreign->atttypmod)),
			   "Give both columns the same type.");
}

/* Adds why the columns of both tables do not suit each other. */
static void
refuse_columns(Relation local, Relation foreign, List **refusals)
{
	for (int i = 0; i < RelationGetDescr(foreign)->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(foreign), i);

		if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), MONGO_MISMATCH_COLUMN) != 0)
			refuse_column(local, attribute, refusals);
	}
	for (int i = 0; i < RelationGetDescr(local)->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(local), i);

		if (!attribute->attisdropped && attribute->attnotnull && !attribute->atthasdef &&
			attribute->attgenerated == '\0' && attribute->attidentity == '\0' &&
			get_attnum(RelationGetRelid(foreign), NameStr(attribute->attname)) == InvalidAttrNumber)
			refuse(refusals, psprintf("column \"%s\" of table \"%s\" may not be NULL, and the foreign table has none of that name",
									  NameStr(attribute->attname), RelationGetRelationName(local)),
				   "Allow NULL in it, or give it a default.");
	}
}

/*
 * sync_refusals
 *		Returns all reasons why the tables cannot be synchronized for this owner, SyncRefusal *; NIL
 *		if they can.  'local' may be invalid: it is to be created.
 *
 * The tables must be locked.
 */
List *
sync_refusals(Oid foreign, Oid local, Oid owner, bool needs_key)
{
	List	   *refusals = NIL;
	Relation	local_relation;
	Relation	foreign_relation;

	refuse_foreign(foreign, owner, &refusals);
	if (!OidIsValid(local) || !sync_is_ours(foreign))
		return refusals;
	local_relation = relation_open(local, NoLock);
	foreign_relation = relation_open(foreign, NoLock);
	foreach_oid(relid, find_all_inheritors(local, AccessShareLock, NULL))
	{
		if (sync_table_owner(relid) != owner)
			refuse(&refusals, psprintf("table \"%s\" belongs to another role", get_rel_name(relid)),
				   "All tables of a group, with their partitions, belong to one role.");
	}
	refuse_local(local_relation, foreign, needs_key, &refusals);
	refuse_columns(local_relation, foreign_relation, &refusals);
	relation_close(foreign_relation, NoLock);
	relation_close(local_relation, NoLock);
	return refusals;
}

/*
 * sync_refusal
 *		Returns the first refusal, and its remedy in *hint; NULL if there is none.
 */
const char *
sync_refusal(Oid foreign, Oid local, Oid owner, bool needs_key, const char **hint)
{
	List	   *refusals = sync_refusals(foreign, local, owner, needs_key);

	if (refusals == NIL)
		return NULL;
	*hint = ((SyncRefusal *) linitial(refusals))->hint;
	return ((SyncRefusal *) linitial(refusals))->message;
}

/*
 * sync_lock_tables
 *		Locks the tables of these members for reading and writing, in the order of their OIDs.
 */
void
sync_lock_tables(const List *members)
{
	List	   *relids = NIL;
	List	   *written = NIL;

	foreach_ptr(const SyncMember, member, members)
	{
		relids = list_append_unique_oid(relids, member->target);
		relids = list_append_unique_oid(relids, member->local);
		relids = list_append_unique_oid(relids, member->foreign);
		written = lappend_oid(written, member->target);
	}
	list_sort(relids, list_oid_cmp);
	foreach_oid(relid, relids)
	{
		LockRelationOid(relid, list_member_oid(written, relid) ? RowExclusiveLock : AccessShareLock);
		(void) sync_qualified_name(relid);	/* it may be gone */
	}
}

/* ------------------------------- SyncTable -------------------------------- */

/* Adds a column, quoted, and what defines its values. */
static void
add_shared_column(SyncTable *table, StringInfo definition, Oid foreign, const char *name)
{
	AttrNumber	number = get_attnum(foreign, name);
	const MongoColumnOptions *options = mongo_column_options(foreign, number);
	Oid			type;
	int32		typmod;
	Oid			collation;

	get_atttypetypmodcoll(foreign, number, &type, &typmod, &collation);
	table->names[table->ncolumns] = pstrdup(name);
	table->columns[table->ncolumns] = quote_identifier(table->names[table->ncolumns]);
	/* the tables may have different domains over it, or none */
	table->casts[table->ncolumns] = cast_to(getBaseType(type));
	table->ncolumns++;
	appendStringInfo(definition, "%s %s %s %d %d; ", quote_identifier(name),
					 format_type_extended(type, typmod, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY),
					 options->path == NULL ? "" : options->path, (int) options->bson_type,
					 (int) options->type_mismatch);
}

/* Sets the columns that both tables have, those of the key first. */
static void
list_shared_columns(SyncTable *table, Relation target, Relation foreign, bool key_at_end)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(foreign));
	List	   *keys = sync_key_columns(RelationGetRelid(foreign));
	StringInfoData definition;
	ListCell   *cell;

	initStringInfo(&definition);
	appendStringInfo(&definition, "%s %s %s %s %s %d: ",
					 options->database, options->collection,
					 options->pipeline == NULL ? "" : options->pipeline,
					 options->unwind == NULL ? "" : options->unwind,
					 options->ordinality == NULL ? "" : options->ordinality, options->canonical_json);
	table->columns = palloc(sizeof(char *) * RelationGetDescr(foreign)->natts);
	table->names = palloc(sizeof(char *) * RelationGetDescr(foreign)->natts);
	table->equals = palloc(sizeof(char *) * RelationGetDescr(foreign)->natts);
	table->casts = palloc(sizeof(char *) * RelationGetDescr(foreign)->natts);
	foreach(cell, keys)
		add_shared_column(table, &definition, RelationGetRelid(foreign), lfirst(cell));
	table->nkeys = list_length(keys);
	for (int i = 0; i < RelationGetDescr(foreign)->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(foreign), i);
		const char *name = NameStr(attribute->attname);
		bool		is_key = false;

		if (attribute->attisdropped)
			continue;
		table->has_mismatch |= strcmp(name, MONGO_MISMATCH_COLUMN) == 0;
		foreach(cell, keys)
			is_key |= strcmp(lfirst(cell), name) == 0;
		if (!is_key && get_attnum(RelationGetRelid(target), name) != InvalidAttrNumber)
			add_shared_column(table, &definition, RelationGetRelid(foreign), name);
	}
	table->definition = definition.data;
	if (key_at_end)
		default_equals(RelationGetRelid(foreign), keys, table);
	else if (keys == NIL || !has_key(target, keys, table))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no unique index on the columns that identify a row any more",
						RelationGetRelationName(target))));
	table->key_equals = psprintf("%s %s", table->casts[0], table->equals[0]);
}

/* Returns the decoder of documents {_id: ...} into values[0] and __mismatch, values[1]. */
static MongoRowDecoder *
create_key_decoder(const SyncTable *table, Oid foreign)
{
	const MongoTableOptions *options = mongo_table_options(foreign);
	const MongoColumnOptions *key = mongo_column_options(foreign, table->key_number);
	MongoColumn id = {
		.index = 0, .name = table->names[0], .path = "_id", .typid = table->key_type, .typmod = -1,
		.bson_type = key->bson_type, .type_mismatch = MONGO_TYPE_MISMATCH_NULL
	};
	MongoColumn mismatch = {
		.index = 1, .name = MONGO_MISMATCH_COLUMN, .typid = JSONBOID, .typmod = -1
	};

	return mongo_row_decoder_create(CurrentMemoryContext, pstrdup(options->database),
									pstrdup(options->collection),
									list_make2(&id, &mismatch), options->canonical_json);
}

/* Tells whether a trigger of the table is called before a row is written. */
static bool
has_row_triggers(Relation relation)
{
	const TriggerDesc *triggers = relation->trigdesc;

	return triggers != NULL && (triggers->trig_insert_before_row || triggers->trig_update_before_row ||
								triggers->trig_delete_before_row);
}

/* Returns a name that no column of the table has: this one, or with underscores after it. */
static const char *
free_name(Oid relid, const char *name)
{
	while (get_attnum(relid, name) != InvalidAttrNumber)
		name = psprintf("%s_", name);
	return name;
}

/*
 * sync_table_open
 *		Sets member->table, which lives in the current memory context.
 *
 * To be called with the owner's rights; the tables must be locked.  table->has_changed tells that
 * other columns or options were copied.  Raises 55000 if the tables do not suit each other, and
 * 42703 if member->deleted_at is no column of the local table alone.
 */
void
sync_table_open(const SyncGroup *group, SyncMember *member)
{
	SyncTable  *table = palloc0(sizeof(SyncTable));
	Relation	target = relation_open(member->target, NoLock);
	Relation	foreign = relation_open(member->foreign, NoLock);
	const char *hint = NULL;
	const char *refusal = sync_refusal(member->foreign, member->local, group->owner,
									   !sync_group_member(group, member->local)->key_at_end, &hint);

	if (refusal != NULL || target->rd_rel->relowner != group->owner)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s", refusal != NULL ? refusal : psprintf("table \"%s\" belongs to another role", RelationGetRelationName(target))),
				 hint != NULL ? errhint("%s", hint) : 0));
	if (member->deleted_at != NULL &&
		(get_attnum(member->foreign, member->deleted_at) != InvalidAttrNumber ||
		 get_atttype(member->local, get_attnum(member->local, member->deleted_at)) != TIMESTAMPTZOID))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("table \"%s\" has no column \"%s\" of its own of type timestamp with time zone",
						get_rel_name(member->local), member->deleted_at),
				 errhint("The column of deleted_at must not be a column of the foreign table: ALTER TABLE %s ADD COLUMN ... timestamptz.",
						 sync_qualified_name(member->local))));
	table->foreign = member->foreign;
	table->target_name = sync_qualified_name(member->target);
	table->foreign_name = sync_qualified_name(member->foreign);
	table->row = free_name(member->foreign, "f");
	table->is_missing = free_name(member->foreign, "__missing");
	table->match_function = sync_fdw_function(group->server, "mongo_match", RECORDOID, JSONOID);
	table->has_triggers = has_row_triggers(target);
	table->key_number = key_column(member->foreign);
	table->key_type = getBaseType(get_atttype(member->foreign, table->key_number));
	list_shared_columns(table, target, foreign, member->key_at_end);
	table->key = table->columns[0];
	switch (mongo_type_kind(table->key_type))
	{
		case MONGO_KIND_OTHER:
		case MONGO_KIND_JSON:
		case MONGO_KIND_JSONB:
			break;
		default:
			table->finds_by_value = true;
	}
	table->decoder = create_key_decoder(table, member->foreign);
	relation_close(foreign, NoLock);
	relation_close(target, NoLock);
	table->has_changed = member->definition != NULL && strcmp(member->definition, table->definition) != 0;
	if (!table->has_changed)
		member->definition = table->definition;
	member->table = table;
}

/*
 * sync_table_lock_and_open
 *		Locks a member's tables and opens them, with the owner's rights.
 */
void
sync_table_lock_and_open(const SyncGroup *group, SyncMember *member)
{
	SyncRights	rights;

	sync_lock_tables(list_make1(member));
	sync_rights_take(&rights, group->owner);
	sync_table_open(group, member);
	sync_rights_return(&rights);
}

/*
 * sync_list
 *		Returns the columns with numbers from 'from' to before 'to', each by a format with %s for
 *		its name, which may be there twice.
 */
const char *
sync_list(const SyncTable *table, const char *format, const char *separator, int from, int to)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = from; i < to; i++)
	{
		const char *position = format;
		const char *mark;

		if (i > from)
			appendStringInfoString(&list, separator);
		while ((mark = strstr(position, "%s")) != NULL)
		{
			appendBinaryStringInfo(&list, position, mark - position);
			appendStringInfoString(&list, table->columns[i]);
			position = mark + 2;
		}
		appendStringInfoString(&list, position);
	}
	return list.data;
}

/*
 * sync_row_image
 *		Returns a record of the columns of a range variable, whose bytes can be compared.
 */
const char *
sync_row_image(const SyncTable *table, const char *name)
{
	StringInfoData record;

	initStringInfo(&record);
	for (int i = 0; i < table->ncolumns; i++)
		appendStringInfo(&record, "%s%s.%s%s", i > 0 ? ", " : "ROW(", name, table->columns[i], table->casts[i]);
	appendStringInfoString(&record, ")::record");
	return record.data;
}

/*
 * sync_same_key
 *		Returns the condition that rows of two range variables have the same key.
 */
const char *
sync_same_key(const SyncTable *table, const char *one, const char *other)
{
	StringInfoData condition;

	initStringInfo(&condition);
	for (int i = 0; i < table->nkeys; i++)
		appendStringInfo(&condition, "%s%s.%s%s %s %s.%s%s", i > 0 ? " AND " : "",
						 one, table->columns[i], table->casts[i], table->equals[i], other, table->columns[i], table->casts[i]);
	return condition.data;
}
