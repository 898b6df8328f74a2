/*-------------------------------------------------------------------------
 *
 * equivalent.c
 *		Conditions in other words, which indexes serve.
 *
 * mongo_equivalent_condition() returns another condition of PostgreSQL, which condition.c
 * translates in place of the first.  The second part takes EXISTS over an array's elements apart,
 * so that it can be translated as a condition on an element.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"

#include "access/stratnum.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* Tells whether it is a constant other than NULL. */
static bool
is_known_value(const Node *node)
{
	return node != NULL && IsA(node, Const) && !((const Const *) node)->constisnull;
}

static Expr *
make_comparison(Oid operator, Node *left, Node *right, Oid collation)
{
	Expr	   *result = make_opclause(operator, BOOLOID, false, (Expr *) left, (Expr *) right,
									   InvalidOid, collation);

	set_opfuncid((OpExpr *) result);
	return result;
}

/* Returns x OP v, or that it is true or x is NULL, for coalesce(x, c) OP v of constants c and v. */
static Node *
without_coalesce(const OpExpr *node, bool wanted)
{
	CoalesceExpr *choice = linitial(node->args);
	Node	   *value = lsecond(node->args);
	Node	   *otherwise;
	NullTest   *is_null;
	Expr	   *compared;
	Oid			operator = node->opno;

	if (IsA(value, CoalesceExpr))
	{
		choice = lsecond(node->args);
		value = linitial(node->args);
		operator = get_commutator(operator);
	}
	/* a comparison does not fail, where a pattern may */
	if (!IsA(choice, CoalesceExpr) || list_length(choice->args) != 2 || !OidIsValid(operator) ||
		!is_known_value(lsecond(choice->args)) || !is_known_value(value) ||
		mongo_default_strategy(operator, exprType(lsecond(choice->args))) == 0)
		return NULL;
	otherwise = eval_const_expressions(NULL, (Node *) make_comparison(operator, lsecond(choice->args),
																	  value, node->inputcollid));
	if (!is_known_value(otherwise))
		return NULL;

	compared = make_comparison(operator, linitial(choice->args), value, node->inputcollid);
	if (!wanted)
		compared = make_notclause(compared);
	if (DatumGetBool(((Const *) otherwise)->constvalue) != wanted)
		return (Node *) compared;
	is_null = makeNode(NullTest);
	is_null->arg = linitial(choice->args);
	is_null->nulltesttype = IS_NULL;
	is_null->location = -1;
	return (Node *) make_orclause(list_make2(compared, is_null));
}

/* Returns the pattern that matches only this text. */
static Const *
like_pattern(const Const *value)
{
	StringInfoData pattern;

	initStringInfo(&pattern);
	for (const char *next = TextDatumGetCString(value->constvalue); *next != '\0'; next++)
	{
		if (strchr("%_\\", *next) != NULL)
			appendStringInfoChar(&pattern, '\\');
		appendStringInfoChar(&pattern, *next);
	}
	return makeConst(TEXTOID, -1, value->constcollid, -1, CStringGetTextDatum(pattern.data), false, false);
}

/* Returns the constant in lower or upper case, by PostgreSQL's function. */
static const char *
in_case(const FuncExpr *function, Const *value)
{
	const Const *result = (Const *)
		eval_const_expressions(NULL, (Node *) makeFuncExpr(function->funcid, TEXTOID, list_make1(value),
														   function->funccollid, function->inputcollid,
														   COERCE_EXPLICIT_CALL));

	return is_known_value((const Node *) result) ? TextDatumGetCString(result->constvalue) : NULL;
}

/*
 * Tells whether characters beyond ASCII may become one of the letters in upper case, as ligatures
 * become several under ICU.  ILIKE handles I, K and S.
 */
static bool
comes_of_others(const FuncExpr *upper, const char *letters)
{
	static const char others[] = "\u00df\u0149\u01f0\u1e96\u1e97\u1e98\u1e99\u1e9a"
	"\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06";
	const char *capitals = GetDatabaseEncoding() != PG_UTF8 ? NULL :
		in_case(upper, makeConst(TEXTOID, -1, upper->inputcollid, -1, CStringGetTextDatum(others),
								 false, false));

	for (; capitals != NULL && *letters != '\0'; letters++)
	{
		if (*letters >= 'A' && *letters <= 'Z' && strchr("IKS", *letters) == NULL &&
			strchr(capitals, *letters) != NULL)
			return true;
	}
	return capitals == NULL;
}

/*
 * Returns x ILIKE 'a%' for lower(x) LIKE 'a%', and x ILIKE 'a' for lower(x) = 'a', if the constant
 * is in lower case; the same for upper().
 */
static Node *
without_case(const OpExpr *node, bool wanted)
{
	const FuncExpr *function = (FuncExpr *) mongo_strip_relabelling(linitial(node->args));
	Const	   *value = lsecond(node->args);
	const char *letters;
	const char *same;
	Expr	   *result;

	if ((node->opno != OID_TEXT_LIKE_OP && node->opno != TextEqualOperator) ||
		!IsA(function, FuncExpr) ||
		(function->funcid != F_LOWER_TEXT && function->funcid != F_UPPER_TEXT) ||
		function->inputcollid != node->inputcollid || !is_known_value((Node *) value))
		return NULL;
	letters = TextDatumGetCString(value->constvalue);
	same = in_case(function, value);
	if (same == NULL || strcmp(same, letters) != 0 ||
		(function->funcid == F_UPPER_TEXT && comes_of_others(function, letters)))
		return NULL;
	result = make_comparison(OID_TEXT_ICLIKE_OP, linitial(function->args),
							 (Node *) (node->opno == OID_TEXT_LIKE_OP ? value : like_pattern(value)),
							 node->inputcollid);
	return (Node *) (wanted ? result : make_notclause(result));
}

/*
 * Returns a <= x AND (a < x OR (a = x AND b < y)) for (a, b) < (x, y).  The first comparison only
 * bounds the scan of an index.
 */
static Node *
columns_of_rows(const RowCompareExpr *node)
{
	int			ncolumns = list_length(node->opnos);
	Expr	   *result = NULL;

	for (int i = ncolumns - 1; i >= 0; i--)
	{
		Oid			operator = list_nth_oid(node->opnos, i);
		Oid			family = list_nth_oid(node->opfamilies, i);
		Oid			collation = list_nth_oid(node->inputcollids, i);
		Node	   *left = list_nth(node->largs, i);
		Node	   *right = list_nth(node->rargs, i);
		int			strategy = get_op_opfamily_strategy(operator, family);
		bool		is_less = strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber;
		Oid			left_type;
		Oid			right_type;
		Oid			strict;
		Oid			equal;
		Oid			bound;

		op_input_types(operator, &left_type, &right_type);
		strict = get_opfamily_member(family, left_type, right_type,
									 is_less ? BTLessStrategyNumber : BTGreaterStrategyNumber);
		equal = get_opfamily_member(family, left_type, right_type, BTEqualStrategyNumber);
		bound = get_opfamily_member(family, left_type, right_type,
									is_less ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber);
		if (!OidIsValid(strict) || !OidIsValid(equal) || !OidIsValid(bound))
			return NULL;
		if (result == NULL)
			result = make_comparison(operator, left, right, collation);
		else
			result = make_orclause(list_make2(make_comparison(strict, left, right, collation),
											  make_andclause(list_make2(make_comparison(equal, left, right, collation),
																		result))));
		if (i == 0 && ncolumns > 1)
			result = make_andclause(list_make2(make_comparison(bound, left, right, collation), result));
	}
	return (Node *) result;
}

/*
 * mongo_equivalent_condition
 *		Returns a condition that is true exactly where 'node' is true, or without 'wanted', where it
 *		is false, and that indexes serve better; NULL if there is none.  Known are comparisons of
 *		rows, IS NOT DISTINCT FROM a value, coalesce() of a value, and lower() and upper() compared
 *		with a constant.
 */
Node *
mongo_equivalent_condition(Node *node, bool wanted)
{
	const DistinctExpr *distinct = (DistinctExpr *) node;

	if (IsA(node, OpExpr) && list_length(((OpExpr *) node)->args) == 2)
	{
		Node	   *result = without_coalesce((OpExpr *) node, wanted);

		return result != NULL ? result : without_case((OpExpr *) node, wanted);
	}
	if (IsA(node, RowCompareExpr) && wanted)
		return columns_of_rows((RowCompareExpr *) node);

	/* x IS NOT DISTINCT FROM a value is x = value */
	if (IsA(node, DistinctExpr) && !wanted &&
		(is_known_value(linitial(distinct->args)) || is_known_value(lsecond(distinct->args))))
		return (Node *) make_comparison(distinct->opno, linitial(distinct->args),
										lsecond(distinct->args), distinct->inputcollid);
	return NULL;
}

/*-------------------------------------------------------------------------
 * EXISTS over the elements of an array.
 *
 * PostgreSQL makes it a SubPlan, with a plan that scans a function.  What the function is given
 * are parameters there, whose values are expressions here.
 *-------------------------------------------------------------------------
 */

/* The functions that return the elements of an array, and whether as text. */
static const struct
{
	Oid			function;
	bool		to_text;
}			element_functions[] =
{
	{F_JSONB_ARRAY_ELEMENTS, false},
	{F_JSONB_ARRAY_ELEMENTS_TEXT, true},
	{F_JSON_ARRAY_ELEMENTS, false},
	{F_JSON_ARRAY_ELEMENTS_TEXT, true},
	{F_UNNEST_ANYARRAY, false},
};

/* A subquery whose expressions become expressions of the query around it. */
typedef struct ElementSearch
{
	const SubPlan *subquery;
	Index		scanrelid;		/* of the function in the subquery */
	Index		varno;			/* of the table that has the array */
	bool		has_init_plans; /* whose values are known in the subquery only */
	Node	   *element;		/* stands for the element; NULL: there is none */
	bool		failed;
} ElementSearch;

/* Returns what the subquery is given for a parameter, or the parameter. */
static Node *
value_of_parameter(Param *param, ElementSearch *search)
{
	ListCell   *number;
	ListCell   *value;

	forboth(number, search->subquery->parParam, value, search->subquery->args)
	{
		if (param->paramkind != PARAM_EXEC || lfirst_int(number) != param->paramid)
			continue;

		/* the table's columns stand for the element, and not for themselves */
		if (search->element != NULL && bms_is_member(search->varno, pull_varnos(NULL, lfirst(value))))
			search->failed = true;
		return lfirst(value);
	}
	search->failed |= param->paramkind == PARAM_EXEC && search->has_init_plans;
	return (Node *) param;
}

/* Replaces parameters and the element; an expression tree mutator. */
static Node *
take_out(Node *node, ElementSearch *search)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Param))
		return value_of_parameter((Param *) node, search);
	if (!IsA(node, Var))
		return expression_tree_mutator(node, take_out, search);
	if (search->element != NULL && ((Var *) node)->varattno == 1 &&
		((Var *) node)->varno == (int) search->scanrelid && exprType(node) == exprType(search->element))
		return search->element;
	search->failed = true;
	return node;
}

/* Returns the column that contains the array as if it were an element, or its text. */
static Node *
element_of(Node *array, bool to_text)
{
	Oid			element = get_element_type(exprType(array));
	List	   *columns = pull_var_clause(array, 0);
	Var		   *result;
	Const	   *no_keys;

	if (list_length(columns) != 1)
		return NULL;
	result = copyObject(linitial_node(Var, columns));
	result->vartype = OidIsValid(element) ? element : exprType(array);
	if (!to_text)
		return (Node *) result;
	no_keys = makeConst(TEXTARRAYOID, -1, InvalidOid, -1,
						PointerGetDatum(construct_empty_array(TEXTOID)), false, false);
	return (Node *) makeFuncExpr(result->vartype == JSONBOID ? F_JSONB_EXTRACT_PATH_TEXT :
								 F_JSON_EXTRACT_PATH_TEXT, TEXTOID, list_make2(result, no_keys),
								 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/*
 * Returns what the subquery asks of an element, for which the column with the array stands; NULL if
 * it is something else.  Leaves out what else refers to the table 'varno'.  *array is the
 * function's argument.
 */
static Expr *
condition_of_element(const SubPlan *subquery, const Plan *plan, Index varno, Node **array)
{
	const FunctionScan *scan;
	ElementSearch search = {subquery, .varno = varno};
	const FuncExpr *call;
	size_t		i = 0;
	List	   *conditions = NIL;
	ListCell   *cell;

	if (subquery->subLinkType != EXISTS_SUBLINK)
		return NULL;
	search.has_init_plans = plan->initPlan != NIL;

	/* above the scan are conditions that concern no element */
	if (IsA(plan, Result) && outerPlan(plan) != NULL)
		plan = outerPlan(plan);
	scan = (const FunctionScan *) plan;
	if (!IsA(plan, FunctionScan) || list_length(scan->functions) != 1)
		return NULL;
	search.scanrelid = scan->scan.scanrelid;
	call = (FuncExpr *) linitial_node(RangeTblFunction, scan->functions)->funcexpr;
	while (i < lengthof(element_functions) &&
		   !(IsA(call, FuncExpr) && element_functions[i].function == call->funcid))
		i++;
	if (i == lengthof(element_functions))
		return NULL;
	*array = take_out(linitial(call->args), &search);
	search.element = search.failed ? NULL : element_of(*array, element_functions[i].to_text);
	if (search.element == NULL)
		return NULL;

	foreach(cell, plan->qual)
	{
		Node	   *condition = take_out(lfirst(cell), &search);

		if (!search.failed)
			conditions = lappend(conditions, condition);
		search.failed = false;
	}
	return conditions == NIL ? NULL : make_ands_explicit(conditions);
}

/*
 * mongo_translate_exists
 *		Translates EXISTS over the elements of an array, as mongo_translate_condition() does: a
 *		superset.  'subquery' is its node in the plan.
 */
MongoCondition
mongo_translate_exists(MongoTranslation *translation, const SubPlan *subquery, bson_t *match)
{
	MongoColumns *columns = translation->columns;
	MongoColumns element;
	List	   *outer_conditions = translation->known_conditions;
	MongoCondition result = {.exactness = MONGO_NOT_SHIPPABLE};
	bson_t	   *inside = mongo_bson_create();
	bool		is_json;
	MongoField	field;
	Node	   *array;
	Expr	   *clause;

	if (translation->need_exact || subquery->plan_id > list_length(translation->subplans) ||
		columns == NULL || columns->next != NULL || columns->prefix != NULL || columns->array != NULL)
		return result;
	clause = condition_of_element(subquery, list_nth(translation->subplans, subquery->plan_id - 1),
								  columns->varno, &array);
	if (clause == NULL || !mongo_field_of_node(columns, array, &field) ||
		!mongo_path_is_addressable(field.path) || mongo_path_has_index(field.path))
		return result;
	element = *columns;
	element.element_column = linitial_node(Var, pull_var_clause(array, 0))->varattno;
	is_json = !OidIsValid(get_base_element_type(field.type));

	/*
	 * what is known of the column is not known of an element, for which it
	 * stands
	 */
	translation->known_conditions = NIL;
	if (is_json)
		result = mongo_translate_for_element(translation, &element, field.path, 0, clause, inside);
	if (result.exactness != MONGO_NOT_SHIPPABLE)
	{
		mongo_append_template(match, "{@1: {$elemMatch: @2}}", mongo_utf8(field.path),
							  mongo_document(inside));
		result = (MongoCondition) {.exactness = MONGO_SUPERSET, .strict = true};
	}
	else
		result = mongo_translate_for_element(translation, &element, field.path, is_json ?
											 MONGO_UNWOUND_ELEMENT : MONGO_ANY_ELEMENT, clause, match);
	translation->known_conditions = outer_conditions;
	return result;
}
