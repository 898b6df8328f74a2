/*-------------------------------------------------------------------------
 *
 * clauses.c
 *		Classifies the clauses of a relation by who tests them.
 *
 * Decides for each clause whether MongoDB tests it, exactly or as a superset, or PostgreSQL does;
 * whether it may be tested early although others hide rows; and whether it gives a value to a
 * parameter of the table's pipeline.  Assumes that src/translate translates one condition
 * correctly.  Estimates, paths, pipelines and plans use it; it uses none of them.
 *
 * The rules of security come first, then the type checks of columns, then the translation of one
 * clause, the values of a pipeline's parameters, the clauses of a scan, and last the equalities by
 * which rows are looked up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"

#include "access/htup_details.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parse_coerce.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/*-------------------------------------------------------------------------
 * Row-level security and security barriers: which conditions may be tested early?
 *
 * A condition of the query must not see rows that a policy, or a security-barrier view, hides,
 * if it can reveal them: by an error or in any other way.  MongoDB tests a command's conditions
 * in an order of its own.  So every condition in a command is tested early, as an index's
 * conditions are in PostgreSQL, and PostgreSQL's rule applies: a condition that is pushed down
 * is leakproof, or of no higher security level than any condition on the same table
 * ("Security-level constraints on qual clauses" in src/backend/optimizer/README).  And MongoDB
 * must not fail where PostgreSQL's leakproof functions do not.
 *
 * Nor may an error reveal a document that does not fit its columns, if a restriction hides it
 * or cannot be tested.  Conditions that MongoDB tests have type checks, which exclude such
 * documents; for those that PostgreSQL tests, see "Deferred errors" in src/exec/scan_run.c.
 *-------------------------------------------------------------------------
 */

/* Tells whether this restriction hides rows from conditions of the query, or of one above it. */
static bool
hides_rows(RelOptInfo *baserel, const RestrictInfo *rinfo)
{
	const MongoRelation *relation = baserel->fdw_private;

	return relation->has_barrier &&
		(relation->below_barrier || rinfo->security_level < relation->query_level) &&
		bms_is_subset(rinfo->clause_relids, baserel->relids);
}

/*
 * mongo_is_securely_promotable
 *		Tells whether MongoDB may test this restriction, whose translation is 'match', early.
 */
bool
mongo_is_securely_promotable(RelOptInfo *baserel, RestrictInfo *rinfo, const bson_t *match)
{
	const MongoRelation *relation = baserel->fdw_private;

	return !relation->has_barrier ||
		(restriction_is_securely_promotable(rinfo, baserel) && mongo_cannot_fail(match));
}

/*
 * mongo_join_is_secure
 *		Tells whether MongoDB may test a join's clauses early.
 *
 * 'stages' test these RestrictInfos in addition to the restrictions of its tables.
 */
bool
mongo_join_is_secure(PlannerInfo *root, RelOptInfo *joinrel, List *clauses, const bson_t *stages)
{
	bool		has_barrier = false;
	int			relid = -1;

	while ((relid = bms_next_member(joinrel->relids, relid)) >= 0)
	{
		RelOptInfo *baserel = root->simple_rel_array[relid];
		ListCell   *cell;

		/* the number of an outer join is not a table */
		if (baserel == NULL || !((MongoRelation *) baserel->fdw_private)->has_barrier)
			continue;
		has_barrier = true;
		foreach(cell, clauses)
		{
			if (!restriction_is_securely_promotable(lfirst_node(RestrictInfo, cell), baserel))
				return false;
		}
	}
	return !has_barrier || mongo_cannot_fail(stages);
}

/* -- Type checks of the fields that conditions read, as a part of a filter --- */

/*
 * Tells whether this is "column = value" or "column = ANY (values)".
 *
 * Equality in MongoDB matches only the value itself, and arrays that contain it.  But the value
 * must be one that the column can represent.
 */
static bool
is_column_equality(MongoColumns *columns, Node *qual)
{
	Oid			operator = InvalidOid;
	List	   *arguments = NIL;
	Node	   *column;
	Node	   *value;
	Oid			value_type;
	char	   *name;

	if (IsA(qual, OpExpr))
	{
		operator = ((OpExpr *) qual)->opno;
		arguments = ((OpExpr *) qual)->args;
	}
	else if (IsA(qual, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) qual)->useOr)
	{
		operator = ((ScalarArrayOpExpr *) qual)->opno;
		arguments = ((ScalarArrayOpExpr *) qual)->args;
	}
	if (list_length(arguments) != 2 ||
		contain_var_clause(linitial(arguments)) == contain_var_clause(lsecond(arguments)))
		return false;
	name = get_opname(operator);
	if (name == NULL || strcmp(name, "=") != 0)
		return false;

	column = linitial(arguments);
	value = lsecond(arguments);
	if (contain_var_clause(value))
	{
		column = lsecond(arguments);
		value = linitial(arguments);
	}
	column = mongo_strip_relabelling(column);
	value_type = exprType(value);
	if (IsA(qual, ScalarArrayOpExpr))
		value_type = get_base_element_type(value_type);
	return IsA(column, Var) && ((Var *) column)->varattno > 0 &&
		mongo_equality_fits(((Var *) column)->vartype, ((Var *) column)->vartypmod,
							mongo_column_bson_type(columns, ((Var *) column)->varattno),
							value_type);
}

/* Returns the columns for which a qual rejects NULL, as strict operators do. */
static Bitmapset *
not_null_columns(List *quals)
{
	Bitmapset  *columns = NULL;

	foreach_ptr(OpExpr, operation, quals)
	{
		ListCell   *argument;

		if (!IsA(operation, OpExpr) || !op_strict(operation->opno))
			continue;
		foreach(argument, operation->args)
		{
			Node	   *node = mongo_strip_relabelling(lfirst(argument));

			if (IsA(node, Var) && ((Var *) node)->varattno > 0)
				columns = bms_add_member(columns, ((Var *) node)->varattno);
		}
	}
	return columns;
}

/*
 * Appends type checks of the columns that the qual reads, except *checked; returns -1 if one has
 * none.
 */
static int
append_column_check(bson_t *conditions, int index, MongoColumns *columns, Node *qual,
					bool only_arrays, bool use_expressions, const Bitmapset *not_null,
					Bitmapset **checked)
{
	foreach_node(Var, var, pull_var_clause(qual, 0))
	{
		const char *path;

		if (var->varattno <= 0)
			return -1;
		if (bms_is_member(var->varattno, *checked) ||
			mongo_column_mismatch(columns, var->varattno) != MONGO_TYPE_MISMATCH_ERROR)
			continue;
		*checked = bms_add_member(*checked, var->varattno);
		path = mongo_column_path(columns, var->varattno);
		if (path == NULL)
			return -1;

		index = only_arrays ?
			mongo_append_array_checks(conditions, index, path) :
			mongo_append_type_checks(conditions, index, path, var->vartype,
									 var->vartypmod,
									 mongo_column_bson_type(columns, var->varattno),
									 !bms_is_member(var->varattno, not_null),
									 use_expressions);
		if (index < 0)
			return -1;
	}
	return index;
}

/*
 * mongo_append_column_checks
 *		Appends to 'conditions', from 'index' on, checks that the columns of 'quals' (a list of
 *		clauses) fit; once for each column.
 *
 * A filter may match a document whose fields do not fit: an array that contains the value, a
 * number with a fraction.  Reading it raises an error.  But a document that is changed unread, or
 * that may be hidden, must not be matched at all.  Columns that are only compared by equality need
 * just a check against arrays.  Returns the next index; or -1 if query predicates, and $expr if
 * 'use_expressions', cannot test a column; 'conditions' is left in any state then.
 */
int
mongo_append_column_checks(bson_t *conditions, int index, MongoColumns *columns, List *quals,
						   bool use_expressions)
{
	Bitmapset  *not_null = not_null_columns(quals);
	Bitmapset  *checked = NULL;

	for (int only_arrays = 0; only_arrays <= 1; only_arrays++)
	{
		ListCell   *cell;

		foreach(cell, quals)
		{
			if (is_column_equality(columns, lfirst(cell)) != (only_arrays == 1))
				continue;
			index = append_column_check(conditions, index, columns, lfirst(cell),
										only_arrays == 1, use_expressions, not_null,
										&checked);
			if (index < 0)
				return -1;
		}
	}
	return index;
}

/* -------------------- The translation of one clause ------------------------- */

/*
 * mongo_keeps_collation
 *		Tells whether commands for this table must not specify a collation.
 *
 * A collation applies to all of a command.  What the user wrote, in the option pipeline or for
 * mongo_match(), is compared by the collection's default collation, which is the simple one if
 * ANALYZE has seen the index of _id without a collation.  Change streams have the simple one.
 *
 * By the simple one, MongoDB 6.0.5 loses documents of a clustered collection that has another one:
 * it searches the keys, which are made by that, for the plain text.
 */
bool
mongo_keeps_collation(const MongoRelation *relation)
{
	const MongoTableOptions *options = relation->options;
	const MongoIndex *id = mongo_id_index(relation->columns->statistics);
	bool		by_user = relation->calls_match ||
		(options->pipeline != NULL && options->change_stream == NULL);

	return mongo_feature_enabled(options, MONGO_FEATURE_COLLATION) &&
		(id == NULL ? by_user : id->collated && (by_user || id->clustered));
}

/*
 * mongo_translation_of
 *		Returns an empty translation over this table, with what its options allow.
 *
 * It points to lists of the relation, and lives as long as this.
 */
MongoTranslation
mongo_translation_of(const MongoRelation *relation)
{
	MongoTranslation translation = {.columns = relation->columns};

	translation.use_expressions = mongo_feature_enabled(relation->options,
														MONGO_FEATURE_EXPR);
	translation.disabled = relation->options->pushdown_disable;
	translation.keeps_collation = mongo_keeps_collation(relation);
	translation.known_conditions = relation->restrictions;
	translation.subplans = relation->subplans;
	return translation;
}

/*
 * mongo_is_declared_not_null
 *		Tells whether the column is declared NOT NULL, and the query does not read fields that do
 *		not fit it as NULL.
 *
 * A foreign table's declaration is trusted, as by PostgreSQL.
 */
bool
mongo_is_declared_not_null(MongoColumns *columns, AttrNumber attnum)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(columns->relid),
										Int16GetDatum(attnum));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull;
	ReleaseSysCache(tuple);
	return result && mongo_column_mismatch(columns, attnum) != MONGO_TYPE_MISMATCH_NULL;
}

/* Adds checks of its columns to a row-hiding restriction; returns false if that is not possible. */
static bool
add_type_checks(const MongoRelation *relation, const RestrictInfo *rinfo, bson_t *match)
{
	bson_t	   *conditions = mongo_bson_create();
	int			count;

	mongo_append(conditions, "0", mongo_document(match));
	count = mongo_append_column_checks(conditions, 1, relation->columns,
									   list_make1(rinfo->clause),
									   mongo_feature_enabled(relation->options, MONGO_FEATURE_EXPR));
	if (count > 1)
	{
		bson_reinit(match);
		mongo_append(match, "$and", mongo_array(conditions));
	}
	return count > 0;
}

/* Tells whether the restriction reads a column that is made of a change stream's tokens. */
static bool
reads_token(const MongoRelation *relation, RelOptInfo *baserel, const RestrictInfo *rinfo)
{
	Bitmapset  *read = NULL;
	ListCell   *cell;

	if (relation->options->change_stream == NULL)
		return false;
	pull_varattnos((Node *) rinfo->clause, baserel->relid, &read);
	foreach(cell, mongo_column_facts(relation->relid)->parameters)
	{
		if (bms_is_member(lfirst_int(cell) - FirstLowInvalidHeapAttributeNumber, read) &&
			strcmp(mongo_column_options(relation->relid, lfirst_int(cell))->parameter,
				   MONGO_STREAM_TIME) != 0)
			return true;
	}
	return false;
}

/*
 * mongo_translate_restriction
 *		Translates a restriction of the table, or a clause that a scan is parameterized by, like
 *		mongo_translate_condition().
 *
 * Appends to the empty 'match'.  A clause that MongoDB must not test early, that costs less in
 * PostgreSQL, or that reads a change stream's token, is not shippable; 'translation' is then as
 * before, and 'match' in any state.  One that hides rows gets type checks; it is a
 * superset if there are none.
 */
MongoCondition
mongo_translate_restriction(MongoTranslation *translation, RelOptInfo *baserel,
							RestrictInfo *rinfo, bson_t *match)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoMark	before = mongo_mark(translation);
	MongoCondition condition = {.exactness = MONGO_NOT_SHIPPABLE};
	bool		promotable;

	if (list_member_ptr(relation->kept, rinfo) || reads_token(relation, baserel, rinfo))
		return condition;
	condition = mongo_translate_condition(translation, rinfo->clause, match);
	promotable = condition.exactness == MONGO_NOT_SHIPPABLE ||
		mongo_is_securely_promotable(baserel, rinfo, match);
	if (promotable && condition.exactness == MONGO_EXACT && hides_rows(baserel, rinfo) &&
		!mongo_mismatches_are(relation, MONGO_TYPE_MISMATCH_NULL) &&
		!add_type_checks(relation, rinfo, match))
	{
		/* PostgreSQL then tests the documents returned too */
		condition.exactness = MONGO_SUPERSET;
		promotable = !translation->need_exact;
	}
	if (promotable)
		return condition;

	mongo_return_to(translation, before);
	return (MongoCondition) {.exactness = MONGO_NOT_SHIPPABLE};
}

/* --------- The values that conditions give to a pipeline's parameters -------- */

static Node *value_of_column(const MongoRelation *relation, const List *rinfos, AttrNumber attnum,
							 const Bitmapset *visited, RestrictInfo **rinfo);

/*
 * Tells whether "column operator value" gives the column its value.
 */
static bool
gives_value(const MongoRelation *relation, AttrNumber attnum, Oid operator, const MongoField *field)
{
	const char *parameter = mongo_column_options(relation->relid, attnum)->parameter;
	int			strategy = mongo_default_strategy(operator, field->operator_type);

	if (relation->options->change_stream == NULL || parameter == NULL)
		/* points have no order, and ~= in place of = */
		return strategy == BTEqualStrategyNumber || get_opcode(operator) == F_POINT_EQ;
	return mongo_starts_stream(parameter, strategy);
}

/*
 * Returns what "column = value" gives to the column, or what 'rinfos' give to the other one of two
 * equal columns, if it is not among the visited ones; or NULL.  Clears *same if the value is
 * converted so that it may differ afterwards, or is not the clause's own.
 */
static Node *
clause_value(const MongoRelation *relation, Expr *clause, AttrNumber attnum, const List *rinfos,
			 const Bitmapset *visited, bool *same)
{
	MongoTranslation translation = {.columns = relation->columns};
	bool		is_not = is_notclause(clause);
	Node	   *tested = is_not ? (Node *) get_notclausearg(clause) : (Node *) clause;
	const OpExpr *operation = (const OpExpr *) clause;
	MongoField	field;
	const Var  *column = mongo_column_of_node(relation->columns, tested, &field);

	/* PostgreSQL simplifies "column = true" */
	if (column != NULL && column->varattno == attnum)
		return makeBoolConst(!is_not, false);
	if (!IsA(clause, OpExpr) || list_length(operation->args) != 2)
		return NULL;
	for (int side = 0; side < 2; side++)
	{
		Oid			operator = side == 0 ? operation->opno : get_commutator(operation->opno);
		Node	   *value = list_nth(operation->args, 1 - side);
		RestrictInfo *ignored;
		Oid			source;
		Oid			target;

		column = mongo_column_of_node(relation->columns, list_nth(operation->args, side), &field);
		if (column == NULL || column->varattno != attnum || !OidIsValid(operator) ||
			!gives_value(relation, attnum, operator, &field))
			continue;
		if (!mongo_is_local_value(&translation, value))
		{
			*same = false;
			column = mongo_column_of_node(relation->columns, value, &(MongoField) {0});
			value = column == NULL || bms_is_member(column->varattno, visited) ? NULL :
				value_of_column(relation, rinfos, column->varattno, visited, &ignored);
			if (value == NULL)
				continue;
		}
		source = exprType(value);
		target = mongo_base_type(field.type);
		if (source == target && field.typmod < 0)
			return value;
		*same &= field.typmod < 0 && can_coerce_type(1, &source, &target, COERCION_IMPLICIT);
		return eval_const_expressions(NULL,
									  coerce_to_target_type(NULL, copyObject(value), source, target,
															field.typmod, COERCION_EXPLICIT,
															COERCE_EXPLICIT_CAST, -1));
	}
	return NULL;
}

/*
 * Returns what the clauses give to the column, or NULL.  Of several values, that of a policy or a
 * security barrier counts.  *rinfo is the clause that need not be tested; NULL if there is none.
 */
static Node *
value_of_column(const MongoRelation *relation, const List *rinfos, AttrNumber attnum,
				const Bitmapset *visited, RestrictInfo **rinfo)
{
	Bitmapset  *more = bms_add_member(bms_copy(visited), attnum);
	Node	   *found = NULL;
	Index		level = 0;

	/* by way of another column only if no clause gives it a value itself */
	for (int way = 0; way < 2 && found == NULL; way++)
	{
		foreach_node(RestrictInfo, next, rinfos)
		{
			bool		same = true;
			Node	   *value = clause_value(relation, next->clause, attnum, way == 0 ? NIL : rinfos,
											 more, &same);

			if (value == NULL || (found != NULL && level <= next->security_level))
				continue;
			found = value;
			level = next->security_level;
			*rinfo = same ? next : NULL;
		}
	}
	return found;
}

/*
 * mongo_is_binding
 *		Tells whether the clause is that of one of the bindings (MongoBinding *).
 */
bool
mongo_is_binding(const List *bindings, const RestrictInfo *rinfo)
{
	ListCell   *cell;

	foreach(cell, bindings)
	{
		if (((MongoBinding *) lfirst(cell))->rinfo == rinfo)
			return true;
	}
	return false;
}

/*
 * mongo_find_bindings
 *		Returns a MongoBinding for each parameter of the table's pipeline, by these RestrictInfos.
 *
 * A change stream has one start: the first one with a value, if there is one.
 */
List *
mongo_find_bindings(const MongoRelation *relation, const List *rinfos)
{
	List	   *bindings = NIL;
	ListCell   *cell;

	foreach(cell, mongo_column_facts(relation->relid)->parameters)
	{
		MongoBinding *binding = palloc0(sizeof(MongoBinding));

		binding->attnum = lfirst_int(cell);
		binding->value = value_of_column(relation, rinfos, binding->attnum, NULL, &binding->rinfo);
		if (binding->value != NULL && relation->options->change_stream != NULL)
			return list_make1(binding);
		bindings = lappend(bindings, binding);
	}
	return bindings;
}

/*
 * mongo_binds_parameters
 *		Tells whether each of a table's bindings (mongo_find_bindings()) has a value.
 *
 * For a change stream, one parameter with a value is enough.
 */
bool
mongo_binds_parameters(const List *bindings)
{
	foreach_ptr(const MongoBinding, binding, bindings)
	{
		if (binding->value == NULL)
			return false;
	}
	return true;
}

/* ---------- The clauses of a scan, classified by who tests them ----------- */

/*
 * mongo_clause_create
 *		Returns a MongoClause with a copy of 'condition', palloc'd in the current memory context.
 *
 * 'rinfo' and 'match' may be NULL, and are not copied.
 */
MongoClause *
mongo_clause_create(RestrictInfo *rinfo, const MongoCondition *condition, bson_t *match)
{
	MongoClause *result = palloc(sizeof(MongoClause));

	result->rinfo = rinfo;
	result->condition = *condition;
	result->match = match;
	return result;
}

/*
 * mongo_known_clause
 *		Returns the clause's entry in MongoRelation.known, or NULL.
 */
const MongoClause *
mongo_known_clause(const RelOptInfo *baserel, const RestrictInfo *rinfo)
{
	ListCell   *cell;

	foreach(cell, ((const MongoRelation *) baserel->fdw_private)->known)
	{
		if (((MongoClause *) lfirst(cell))->rinfo == rinfo)
			return lfirst(cell);
	}
	return NULL;
}

/* Returns how many of the arrays at 'paths' must be unwound to get the field's value. */
static int
path_depth(const MongoTableOptions *options, const List *paths, const char *path)
{
	int			depth = 0;
	ListCell   *cell;

	if (path == NULL)
		return list_length(paths);
	foreach(cell, mongo_ordinality_fields(options))
	{
		if (mongo_path_is_under(path, lfirst(cell)))
			return list_length(paths);
	}
	foreach(cell, paths)
	{
		if (mongo_path_is_under(path, lfirst(cell)) || mongo_path_is_under(lfirst(cell), path))
			depth = foreach_current_index(cell) + 1;
	}
	return depth;
}

/*
 * mongo_unwound_depth
 *		Returns how many of the arrays that the options unwind must be unwound before 'expression'
 *		reads the right values of these columns' table; 0 if none.
 */
int
mongo_unwound_depth(const MongoTableOptions *options, MongoColumns *columns, Node *expression)
{
	List	   *paths = mongo_unwound_paths(options);
	int			depth = 0;

	foreach_node(Var, var, paths == NIL ? NIL : pull_var_clause(expression, PVC_RECURSE_PLACEHOLDERS))
	{
		if (var->varno == (int) columns->varno)
			depth = Max(depth, path_depth(options, paths, var->varattno <= 0 ? NULL :
										  mongo_column_path(columns, var->varattno)));
	}
	return depth;
}

/* Tells whether the clause can only be tested when arrays are unwound. */
static bool
reads_elements(const RelOptInfo *baserel, const RestrictInfo *rinfo)
{
	const MongoRelation *relation = baserel->fdw_private;

	return mongo_unwound_depth(relation->options, relation->columns, (Node *) rinfo->clause) > 0;
}

/*
 * mongo_classify_clauses
 *		Sets *clauses to these RestrictInfos, by who tests them.
 *
 * They are clauses of 'baserel' or, if that is NULL, of a join for which mongo_join_is_secure() is
 * called too.  'unwinds' specifies that the scan unwinds arrays itself.  Parameters are collected
 * in 'translation'.  Pseudoconstant clauses are left out, because PostgreSQL tests them above the
 * scan.  The result is in the current memory context, and points to translations of
 * MongoRelation.known.
 */
void
mongo_classify_clauses(MongoTranslation *translation, RelOptInfo *baserel, List *scan_clauses,
					   bool unwinds, MongoScanClauses *clauses)
{
	const MongoRelation *relation = baserel == NULL ? NULL : baserel->fdw_private;
	List	   *conjuncts = NIL;
	bool		is_stream = false;

	memset(clauses, 0, sizeof(*clauses));
	clauses->unwinds = unwinds;
	if (relation != NULL)
	{
		clauses->bindings = mongo_find_bindings(relation, scan_clauses);
		is_stream = relation->options->change_stream != NULL;
		if (clauses->bindings != NIL || is_stream)
			pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &clauses->read);
	}
	foreach_node(RestrictInfo, rinfo, scan_clauses)
	{
		const MongoClause *clause = baserel == NULL ? NULL : mongo_known_clause(baserel, rinfo);

		/* pseudoconstants become a gating Result node */
		if (rinfo->pseudoconstant)
			continue;
		if (mongo_is_binding(clauses->bindings, rinfo))
		{
			clauses->bound = lappend(clauses->bound, rinfo->clause);
			continue;
		}
		if (clauses->bindings != NIL || is_stream)
			pull_varattnos((Node *) rinfo->clause, baserel->relid, &clauses->read);
		if (clause == NULL || (clause->condition.exactness != MONGO_EXACT && translation->need_exact))
		{
			bson_t	   *filter = mongo_bson_create();
			MongoCondition condition = {.exactness = MONGO_NOT_SHIPPABLE};

			if (mongo_enable_pushdown)
				condition = baserel != NULL ?
					mongo_translate_restriction(translation, baserel, rinfo, filter) :
					mongo_translate_condition(translation, rinfo->clause, filter);
			clause = mongo_clause_create(rinfo, &condition, filter);
		}
		if (clause->condition.exactness != MONGO_NOT_SHIPPABLE && !bson_empty(clause->match))
		{
			conjuncts = lappend(conjuncts, clause->match);
			clauses->sent = lappend(clauses->sent, unconstify(MongoClause *, clause));
		}
		if (clause->condition.exactness == MONGO_EXACT && !is_stream &&
			!(unwinds && reads_elements(baserel, rinfo)))
		{
			clauses->exact = lappend(clauses->exact, rinfo->clause);
			continue;
		}
		if (baserel != NULL && hides_rows(baserel, rinfo))
			clauses->hiding = lappend_int(clauses->hiding, list_length(clauses->local));
		clauses->local = lappend(clauses->local, rinfo->clause);
	}

	if (relation != NULL && relation->fit != NULL)
		conjuncts = lappend(conjuncts, unconstify(bson_t *, relation->fit));
	clauses->filter = mongo_conjunction(conjuncts);
}

/*
 * mongo_conjunction
 *		Returns the conjunction of these filters, bson_t *: the only one itself; for NIL an empty
 *		document.
 */
const bson_t *
mongo_conjunction(const List *filters)
{
	bson_t	   *filter;

	if (list_length(filters) == 1)
		return linitial(filters);
	filter = mongo_bson_create();
	if (filters != NIL)
		mongo_append_branches(filter, filters, true);
	return filter;
}

/*
 * mongo_split_equality
 *		Tells whether the clause compares a field of the table and a value of these relations alone
 *		by a hashable equality; if so, sets *equality.
 *
 * If not, *equality is in any state.
 */
bool
mongo_split_equality(PlannerInfo *root, RelOptInfo *baserel, const RestrictInfo *rinfo,
					 const Bitmapset *outer_relids, MongoEquality *equality)
{
	const MongoRelation *relation = baserel->fdw_private;
	OpExpr	   *clause = (OpExpr *) rinfo->clause;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2 ||
		contain_volatile_functions((Node *) clause) || contain_subplans((Node *) clause))
		return false;
	for (int side = 0; side < 2; side++)
	{
		MongoHashKey *key = &equality->key;
		MongoField	field;

		equality->field = list_nth(clause->args, side);
		equality->value = list_nth(clause->args, 1 - side);
		equality->opno = side == 0 ? clause->opno : get_commutator(clause->opno);
		key->type = mongo_base_type(exprType((Node *) equality->value));
		key->collation = clause->inputcollid;
		if (OidIsValid(equality->opno) &&
			get_op_hash_functions(equality->opno, &key->inner_hash, &key->outer_hash) &&
			mongo_field_of_node(relation->columns, (Node *) equality->field, &field) &&
			bms_equal(pull_varnos(root, (Node *) equality->field), baserel->relids) &&
			bms_is_subset(pull_varnos(root, (Node *) equality->value), outer_relids))
			return true;
	}
	return false;
}
