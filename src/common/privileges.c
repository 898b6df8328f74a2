/*-------------------------------------------------------------------------
 *
 * privileges.c
 *		Privileges to see the values that a message quotes.
 *
 * MongoDB's errors quote values of documents ("Failed to parse number 'x'", a duplicate key), and
 * so do ours about documents that do not fit.  PostgreSQL shows a row's values in an error only
 * to a role that may read them: BuildIndexValueDescription() and ExecBuildSlotValueDescription()
 * require SELECT on the columns, and no row-level security.  We require the same.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common.h"

#include "catalog/partition.h"
#include "catalog/pg_foreign_server.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"

/* ---------- Privileges to see the values that a message quotes ------------ */

/* Returns what mongo_may_read() does, without regard to the table's parents. */
static bool
may_read_table(Oid relid, const char *column)
{
	Oid			user = GetUserId();
	AttrNumber	attnum;

	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		return false;
	if (pg_class_aclcheck(relid, user, ACL_SELECT) == ACLCHECK_OK)
		return true;
	if (column == NULL)
		return pg_attribute_aclcheck_all(relid, user, ACL_SELECT, ACLMASK_ALL) == ACLCHECK_OK;
	attnum = get_attnum(relid, column);
	return attnum != InvalidAttrNumber &&
		pg_attribute_aclcheck(relid, attnum, user, ACL_SELECT) == ACLCHECK_OK;
}

/*
 * mongo_may_read
 *		Tells whether the current user may read this column, or all columns (NULL), in any row of
 *		the foreign table or of a table that it is a partition of.
 *
 * Columns of partitions and of their parents have the same names.
 */
bool
mongo_may_read(Oid relid, const char *column)
{
	List	   *ancestors = NIL;
	ListCell   *cell;

	if (may_read_table(relid, column))
		return true;
	if (get_rel_relispartition(relid))
		ancestors = get_partition_ancestors(relid);
	foreach(cell, ancestors)
	{
		if (may_read_table(lfirst_oid(cell), column))
			return true;
	}
	return false;
}

/* Adds nothing to an error.  Its address marks our entries in error_context_stack. */
static void
mark_source(void *arg pg_attribute_unused())
{
}

/*
 * mongo_push_error_source
 *		Until mongo_pop_error_source(), errors may quote documents of these tables, or the
 *		argument of the SQL function that the caller stores in source->function.
 *
 * An ERROR removes the source, too.  It and 'relids' must live until then.
 */
void
mongo_push_error_source(MongoErrorSource *source, List *relids)
{
	source->relids = relids;
	source->function = NULL;
	source->callback.callback = mark_source;
	source->callback.arg = source;
	source->callback.previous = error_context_stack;
	error_context_stack = &source->callback;
}

/*
 * mongo_pop_error_source
 *		Removes the source that mongo_push_error_source() was called with last.
 */
void
mongo_pop_error_source(MongoErrorSource *source)
{
	error_context_stack = source->callback.previous;
}

/* Returns the innermost source that has not been removed, or NULL. */
static const MongoErrorSource *
innermost_source(void)
{
	for (ErrorContextCallback *one = error_context_stack; one; one = one->previous)
	{
		if (one->callback == mark_source)
			return one->arg;
	}
	return NULL;
}

/*
 * mongo_error_tables
 *		Returns the tables of the innermost source, which owns the list; NIL if there is none.
 */
List *
mongo_error_tables(void)
{
	const MongoErrorSource *source = innermost_source();

	return source != NULL ? source->relids : NIL;
}

/*
 * mongo_error_function
 *		Returns the function of the innermost source; NULL if there is none.
 */
const char *
mongo_error_function(void)
{
	const MongoErrorSource *source = innermost_source();

	return source != NULL ? source->function : NULL;
}

/*
 * mongo_may_quote
 *		Tells whether a message may quote this column of the documents being processed, or any
 *		value in them (NULL).
 *
 * True if there are no tables: ANALYZE and the SQL functions check privileges of their own.
 */
bool
mongo_may_quote(const char *column)
{
	List	   *relids = mongo_error_tables();
	ListCell   *cell;

	foreach(cell, relids)
	{
		/* with several tables, it is unknown which of them has the column */
		if (!mongo_may_read(lfirst_oid(cell), list_length(relids) == 1 ? column : NULL))
			return false;
	}
	return true;
}

/*
 * Tells whether the table has a column of this field's name, or of that of a document that contains
 * it, and without a path, by which it could read another field.
 */
static bool
has_column_for(Oid relid, const char *field)
{
	char	   *name = pstrdup(field);

	for (char *dot = name; dot != NULL; dot = strrchr(name, '.'))
	{
		AttrNumber	attnum;
		bool		has_path = false;

		if (dot != name)
			*dot = '\0';
		attnum = get_attnum(relid, name);
		if (attnum == InvalidAttrNumber)
			continue;
		foreach_node(DefElem, option, GetForeignColumnOptions(relid, attnum))
		{
			if (strcmp(option->defname, "path") == 0 || strcmp(option->defname, "column_name") == 0)
				has_path = true;
		}
		if (!has_path)
			return true;
	}
	return false;
}

/*
 * mongo_may_quote_field
 *		Tells whether a message may quote this field, or any field (""), of the documents being
 *		processed: as mongo_may_quote(NULL), but if the field is no column, the user needs USAGE
 *		on the server, too, with which mongo_match() tests such fields.
 */
bool
mongo_may_quote_field(const char *field)
{
	foreach_oid(relid, mongo_error_tables())
	{
		if (!has_column_for(relid, field) && !has_column_for(relid, "__doc") &&
			object_aclcheck(ForeignServerRelationId, GetForeignServerIdByRelId(relid), GetUserId(),
							ACL_USAGE) != ACLCHECK_OK)
			return false;
	}
	return mongo_may_quote(NULL);
}
