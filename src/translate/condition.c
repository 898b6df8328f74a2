/*-------------------------------------------------------------------------
 *
 * condition.c
 *		Translates SQL conditions into query filters.
 *
 * SQL has three truth values, but a query filter either matches or does not.  So NOT is never
 * translated as such.  Each function translates where an expression is TRUE ('wanted') or where it
 * is FALSE, and NOT swaps the two.  A filter matches no document for which the expression is NULL.
 *
 * A condition is taken apart from its top: condition_of_node() decides between an equivalent
 * condition, query predicates and $expr, and condition_by_tag() goes on by the type of the node.
 * Which field an operand is, is decided by field.c, and what a comparison looks like by
 * predicate.c.  The functions that translate one kind of node come first, the entry
 * mongo_translate_condition() last.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

static MongoCondition condition_of_node(MongoTranslation *translation, Node *node,
										bool wanted, bson_t *match);

static const MongoCondition not_shippable = {.exactness = MONGO_NOT_SHIPPABLE};

/* Returns how the predicate would use an index on the field. */
static MongoSeek
sought_by(const MongoPredicate *predicate)
{
	const MongoComparison *comparison;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL)
		return MONGO_SEEK_NOTHING;
	if (predicate->strategy != BTEqualStrategyNumber)
		return MONGO_SEEK_RANGE;
	comparison = mongo_comparison_lookup(mongo_base_type(predicate->field.type),
										 predicate->field.typmod, predicate->field.bson_type);
	if (comparison->append_points == NULL || predicate->field.zone != NULL)
		return MONGO_SEEK_NARROW_RANGE;
	return predicate->form == MONGO_PREDICATE_SCALAR ? MONGO_SEEK_VALUE : MONGO_SEEK_VALUES;
}

/* Sets the field by which an index can find the predicate's documents. */
static void
note_seek(const MongoPredicate *predicate, MongoCondition *condition)
{
	const MongoField *field = &predicate->field;
	MongoSeek	seek = sought_by(predicate);

	if (seek == MONGO_SEEK_NOTHING || field->unindexed)
		return;
	condition->seek = seek;
	condition->path = field->path;
	condition->indexed = (field->index_uses & mongo_seek_use(seek)) != 0;
}

/* Tells whether a field that does not fit reads as NULL, and MongoDB can test that. */
static bool
tests_fit(const MongoTranslation *translation, const MongoField *field)
{
	return field->type_mismatch == MONGO_TYPE_MISMATCH_NULL && translation->use_expressions &&
		field->element == 0 && field->wrapper == MONGO_WRAPPER_NONE && field->zone == NULL &&
		!OidIsValid(field->cast_type) && mongo_can_test_fit(field);
}

/* Writes a predicate on 'value', a constant or a parameter, if shippable. */
static MongoCondition
translate_predicate(MongoTranslation *translation, const MongoPredicate *predicate,
					Node *value, bson_t *match)
{
	MongoCondition result = not_shippable;
	MongoPredicate tested;
	bool		is_id = strcmp(predicate->field.path, "_id") == 0;

	if (tests_fit(translation, &predicate->field))
	{
		tested = *predicate;
		tested.tests_fit = true;
		predicate = &tested;
	}
	result.exactness = mongo_predicate_exactness(predicate);
	if (result.exactness == MONGO_NOT_SHIPPABLE)
		return result;
	note_seek(predicate, &result);
	result.strict = predicate->form != MONGO_PREDICATE_ALL;
	result.unique = is_id && predicate->field.columns->derivation == NULL &&
		predicate->strategy == BTEqualStrategyNumber &&
		predicate->form == MONGO_PREDICATE_SCALAR;

	/* text can be a String or an ObjectId, a uuid of two subtypes */
	result.one_value = result.unique && sought_by(predicate) == MONGO_SEEK_VALUE &&
		!mongo_predicate_compares_text(predicate) &&
		mongo_type_kind(mongo_base_type(predicate->field.type)) != MONGO_KIND_UUID;

	if (mongo_predicate_compares_text(predicate) && !mongo_compare_text(translation))
	{
		/* what is the same text is equal under any collation */
		if (predicate->strategy != BTEqualStrategyNumber)
			return not_shippable;
		result.exactness = MONGO_SUPERSET;
	}
	if (IsA(value, Const) && !mongo_depends_on_time_zone(predicate))
		mongo_predicate_render(predicate, ((Const *) value)->constvalue,
							   ((Const *) value)->constisnull, match);
	else
		mongo_append_placeholder(translation, predicate, value, MONGO_PARAMETER_KEY, match);
	return result;
}

static MongoPredicate
make_predicate(const MongoField *field, MongoPredicateForm form, int strategy, Oid value_type,
			   Oid collation)
{
	return (MongoPredicate)
	{
		.field = *field,
			.form = form,
			.strategy = strategy,
			.value_type = value_type,
			.collation = collation
	};
}

/* Tells whether it is @> with a constant object. */
static bool
is_contained_object(Oid operator, const Node *value)
{
	const Const *constant = (const Const *) value;

	return get_opcode(operator) == F_JSONB_CONTAINS && IsA(value, Const) && !constant->constisnull &&
		JB_ROOT_IS_OBJECT(DatumGetJsonbP(constant->constvalue));
}

/* Translates @>, ? and the like on json: a superset, so only if TRUE is wanted. */
static MongoCondition
translate_json_test(MongoTranslation *translation, const MongoField *field, Oid operator,
					Node *value, bool wanted, bson_t *match)
{
	MongoCondition result = not_shippable;
	MongoPredicate predicate;

	/* only of an object can be tested what an element itself contains */
	if (field->path[0] == '\0' ? !is_contained_object(operator, value) :
		!mongo_path_is_addressable(field->path))
		return result;
	if (!wanted || field->element != 0 || OidIsValid(field->cast_type))
		return result;
	result.strict = true;
	if (IsA(value, Const))
	{
		if (!((Const *) value)->constisnull &&
			mongo_render_json_test(field->path, operator, ((Const *) value)->constvalue, match))
			result.exactness = MONGO_SUPERSET;
	}
	else
	{
		predicate = make_predicate(field, MONGO_PREDICATE_EVERY,
								   BTEqualStrategyNumber, exprType(value), InvalidOid);
		predicate.json_test = operator;
		mongo_append_placeholder(translation, &predicate, value, MONGO_PARAMETER_KEY, match);
		result.exactness = MONGO_SUPERSET;
	}
	return result;
}

/* Translates LIKE, ~ and starts_with(). */
static MongoCondition
translate_pattern_test(MongoTranslation *translation, const MongoField *field, Oid function,
					   Node *pattern, Oid collation, bool wanted, bson_t *match)
{
	MongoCondition result = not_shippable;
	BsonArray	conditions = mongo_array_create();
	bson_t	   *condition;

	if (field->element != 0 || field->wrapper != MONGO_WRAPPER_NONE || OidIsValid(field->cast_type))
		return result;
	result.strict = true;
	if (!tests_fit(translation, field))
	{
		result.exactness = mongo_translate_pattern(field, function, pattern, collation, wanted,
												   match);
		/* an array, which is a type mismatch, may contain a matching String */
		if (field->type_mismatch == MONGO_TYPE_MISMATCH_NULL)
			result.exactness = Min(result.exactness, MONGO_SUPERSET);
		return result;
	}
	condition = mongo_bson_create();
	result.exactness = mongo_translate_pattern(field, function, pattern, collation, wanted,
											   condition);
	mongo_array_append(&conditions, mongo_document(condition));
	mongo_append_fit(&conditions, field);
	mongo_append_template(match, "{$and: @1}", mongo_array(conditions.bson));
	return result;
}

/* Translates @> and && of an array column and a value. */
static MongoCondition
translate_array_test(MongoTranslation *translation, Node *column, Oid operator, Node *value,
					 Oid collation, bool wanted, bson_t *match)
{
	Oid			function = get_opcode(operator);
	MongoField	field;
	MongoPredicate predicate;

	if (!wanted || (function != F_ARRAYCONTAINS && function != F_ARRAYOVERLAP) ||
		!mongo_any_element(translation->columns, column, &field))
		return not_shippable;
	predicate = make_predicate(&field, function == F_ARRAYCONTAINS ?
							   MONGO_PREDICATE_EVERY : MONGO_PREDICATE_ANY,
							   BTEqualStrategyNumber, get_base_element_type(exprType(value)),
							   collation);
	return translate_predicate(translation, &predicate, value, match);
}

/* Finds the field that is compared with the value, itself or its local time. */
static bool
compared_field(MongoTranslation *translation, Node *node, Node *value, MongoField *field)
{
	return mongo_local_time_of_node(translation->columns, node, exprType(value), field) ?
		mongo_local_time_has_bounds(field, value) :
		mongo_operand_of_node(translation->columns, node, field);
}

/*
 * Two conditions that are bounds of one range.
 *
 * A field inside json, as text or cast, may be of several BSON types.  If each of two bounds
 * is an $or of these types, MongoDB uses only one bound for an index.  So each contains both.
 *
 * NaN is above all numbers in PostgreSQL, so "x > 5" includes it.  Together with "x < 9" two
 * plain bounds suffice: they are faster, and one range of an index.
 */

/* Tells whether the predicate can have the form MONGO_PREDICATE_BETWEEN. */
static bool
can_be_between(const MongoPredicate *predicate)
{
	MongoTypeKind class;

	if (predicate->field.type != JSONOID || predicate->field.wrapper != MONGO_WRAPPER_NONE)
		return false;
	if (!OidIsValid(predicate->field.cast_type))
		return predicate->value_type == TEXTOID;
	class = mongo_kind_of_type(predicate->field.cast_type)->compared_as;
	return class == MONGO_KIND_TIMESTAMP || class == MONGO_KIND_TIMESTAMPTZ;
}

/* Returns the value of a condition that is the operand's other bound, or NULL. */
static Node *
other_bound(const MongoTranslation *translation, const OpExpr *condition, const Node *operand,
			const MongoPredicate *predicate, int *strategy)
{
	Oid			operator = condition->opno;
	Node	   *value;

	if (!IsA(condition, OpExpr) || list_length(condition->args) != 2 ||
		condition->inputcollid != predicate->collation)
		return NULL;
	value = lsecond(condition->args);
	if (!equal(linitial(condition->args), operand))
	{
		if (!equal(value, operand))
			return NULL;
		value = linitial(condition->args);
		operator = get_commutator(operator);
	}
	if (!OidIsValid(operator) || exprType(value) != predicate->value_type ||
		!mongo_is_local_value(translation, value))
		return NULL;
	*strategy = mongo_default_strategy(operator, exprType(operand));
	return *strategy != 0 && mongo_asks_for_order(*strategy) &&
		mongo_is_upper_bound(*strategy) != mongo_is_upper_bound(predicate->strategy) ? value : NULL;
}

/* Tells whether "< value" or "<= value" excludes NaN.  Only "<= NaN" does not. */
static bool
excludes_nan(int strategy, const Node *value)
{
	const Const *constant = (const Const *) value;

	if (strategy == BTLessStrategyNumber)
		return true;
	if (strategy != BTLessEqualStrategyNumber || !IsA(value, Const) || constant->constisnull)
		return false;
	return constant->consttype == FLOAT8OID ? !isnan(DatumGetFloat8(constant->constvalue)) :
		constant->consttype == NUMERICOID &&
		!numeric_is_nan(DatumGetNumeric(constant->constvalue));
}

static Node *
make_pair(Node *value, Node *other)
{
	ArrayExpr  *pair = makeNode(ArrayExpr);

	pair->array_typeid = get_array_type(exprType(value));
	pair->array_collid = exprCollation(value);
	pair->element_typeid = exprType(value);
	pair->elements = list_make2(value, other);
	pair->location = -1;
	return eval_const_expressions(NULL, (Node *) pair);
}

/*
 * Adapts the predicate to a bound on the other side of 'operand', if another condition is one.
 * Returns 'value', or for the form MONGO_PREDICATE_BETWEEN an array of it and the other bound.
 */
static Node *
join_bounds(const MongoTranslation *translation, const Node *operand, Node *value,
			MongoPredicate *predicate)
{
	bool		may_be_nan = predicate->value_type == FLOAT8OID || predicate->value_type == NUMERICOID;

	/* there may be hundreds of conditions */
	if (!mongo_asks_for_order(predicate->strategy) ||
		(!can_be_between(predicate) &&
		 (!may_be_nan || mongo_is_upper_bound(predicate->strategy))))
		return value;
	foreach_ptr(const Node, node, translation->known_conditions)
	{
		Node	   *other;
		int			strategy;

		if (IsA(node, RestrictInfo))
			node = (const Node *) ((const RestrictInfo *) node)->clause;
		other = other_bound(translation, (const OpExpr *) node, operand, predicate, &strategy);
		if (other != NULL && can_be_between(predicate))
		{
			predicate->form = MONGO_PREDICATE_BETWEEN;
			return make_pair(value, other);
		}
		if (other != NULL && excludes_nan(strategy, other))
			predicate->without_nan = true;
	}
	return value;
}

/* Translates "column OP value" and "value OP column". */
static MongoCondition
translate_operator(MongoTranslation *translation, OpExpr *node, bool wanted, bson_t *match)
{
	Node	   *left;
	Node	   *right;
	Oid			operator = node->opno;
	int			strategy;
	MongoField	field;
	MongoPredicate predicate;

	if (list_length(node->args) != 2)
		return not_shippable;
	left = linitial(node->args);
	right = lsecond(node->args);

	if (!compared_field(translation, left, right, &field))
	{
		if (!compared_field(translation, right, left, &field))
			return not_shippable;
		left = lsecond(node->args);
		right = linitial(node->args);
		operator = get_commutator(operator);
	}
	if (!OidIsValid(operator) || !mongo_is_local_value(translation, right))
		return not_shippable;

	strategy = mongo_default_strategy(operator, field.operator_type);
	if (strategy == 0)
	{
		MongoCondition result;

		if (mongo_is_json_test(operator))
			return translate_json_test(translation, &field, operator, right, wanted, match);
		result = translate_array_test(translation, left, operator, right, node->inputcollid, wanted,
									  match);
		return result.exactness != MONGO_NOT_SHIPPABLE ? result :
			translate_pattern_test(translation, &field, get_opcode(operator), right,
								   node->inputcollid, wanted, match);
	}
	predicate = make_predicate(&field, MONGO_PREDICATE_SCALAR,
							   wanted ? strategy : mongo_negated_strategy(strategy),
							   exprType(right), node->inputcollid);
	right = join_bounds(translation, left, right, &predicate);
	return translate_predicate(translation, &predicate, right, match);
}

/*
 * Translates "value OP ANY (array column)", and NOT "value OP ALL (...)", which looks for an
 * element for which OP is false.
 */
static MongoCondition
translate_any_element(MongoTranslation *translation, ScalarArrayOpExpr *node, bool wanted,
					  bson_t *match)
{
	Node	   *value = linitial(node->args);
	MongoField	field;
	MongoPredicate predicate;
	int			strategy = mongo_default_strategy(node->opno, exprType(value));

	if (strategy == 0 || node->useOr != wanted ||
		!mongo_any_element(translation->columns, lsecond(node->args), &field) ||
		!mongo_is_local_value(translation, value))
		return not_shippable;
	strategy = mongo_commuted_strategy(node->useOr ? strategy : mongo_negated_strategy(strategy));
	predicate = make_predicate(&field, MONGO_PREDICATE_SCALAR, strategy,
							   exprType(value), node->inputcollid);
	return translate_predicate(translation, &predicate, value, match);
}

/* Translates "column = ANY (array)" and "column <> ALL (array)", or IN and NOT IN. */
static MongoCondition
translate_array_operator(MongoTranslation *translation, ScalarArrayOpExpr *node,
						 bool wanted, bson_t *match)
{
	Node	   *array = lsecond(node->args);
	Oid			element = get_base_element_type(exprType(array));
	bool		is_any = node->useOr == wanted;
	MongoField	field;
	MongoPredicate predicate;

	if (!mongo_operand_of_node(translation->columns, linitial(node->args), &field))
		return translate_any_element(translation, node, wanted, match);
	if (!mongo_is_local_value(translation, array) || !OidIsValid(element) ||
		mongo_default_strategy(node->opno, field.operator_type) !=
		(node->useOr ? BTEqualStrategyNumber : MONGO_STRATEGY_NOT_EQUAL))
		return not_shippable;

	/*
	 * NOT turns x = ANY (a) and x <> ALL (a) into each other
	 */
	predicate = make_predicate(&field,
							   is_any ? MONGO_PREDICATE_ANY : MONGO_PREDICATE_ALL,
							   is_any ? BTEqualStrategyNumber : MONGO_STRATEGY_NOT_EQUAL,
							   element, node->inputcollid);
	return translate_predicate(translation, &predicate, array, match);
}

/* Translates a boolean column, or a field of json cast to boolean, as a condition of its own. */
static MongoCondition
translate_boolean_column(MongoTranslation *translation, Node *node, bool wanted, bson_t *match)
{
	MongoField	field;
	MongoPredicate predicate;

	if (!mongo_operand_of_node(translation->columns, node, &field))
		return not_shippable;
	predicate = make_predicate(&field, MONGO_PREDICATE_SCALAR,
							   BTEqualStrategyNumber, BOOLOID, InvalidOid);
	return translate_predicate(translation, &predicate, makeBoolConst(wanted, false), match);
}

/* Translates starts_with(column, value), mongo_match(row, document), and jsonb as a boolean. */
static MongoCondition
translate_function(MongoTranslation *translation, FuncExpr *node, bool wanted, bson_t *match)
{
	MongoField	field;

	if (mongo_translate_match(translation, node, wanted, match))
		return (MongoCondition) {.exactness = MONGO_EXACT};
	if (list_length(node->args) == 1)
		return translate_boolean_column(translation, (Node *) node, wanted, match);
	if (list_length(node->args) != 2 ||
		!mongo_field_of_node(translation->columns, linitial(node->args), &field))
		return not_shippable;
	return translate_pattern_test(translation, &field, node->funcid, lsecond(node->args),
								  node->inputcollid, wanted, match);
}

/* Translates __mismatch IS NULL, of a document that fits, and IS NOT NULL. */
static MongoCondition
translate_mismatch_test(MongoTranslation *translation, bool is_null, bson_t *match)
{
	bool		exact;

	if (!translation->use_expressions)
		return not_shippable;
	exact = mongo_append_all_fit(match, translation->columns, false, !is_null);
	return (MongoCondition) {
		.exactness = exact ? MONGO_EXACT : is_null ? MONGO_SUPERSET : MONGO_NOT_SHIPPABLE
	};
}

/* Translates IS NULL and IS NOT NULL, which are never NULL. */
static MongoCondition
translate_null_test(MongoTranslation *translation, NullTest *node, bool wanted, bson_t *match)
{
	MongoCondition result = not_shippable;
	MongoField	field;
	const MongoType *type;
	bool		is_null = (node->nulltesttype == IS_NULL) == wanted;

	if (IsA(node->arg, Var) && translation->columns->mismatch_column != 0 &&
		((Var *) node->arg)->varno == (int) translation->columns->varno &&
		((Var *) node->arg)->varattno == translation->columns->mismatch_column)
		return translate_mismatch_test(translation, is_null, match);
	if (node->argisrow ||
		!mongo_field_of_node(translation->columns, (Node *) node->arg, &field) ||
		field.element != 0 || !mongo_path_is_addressable(field.path) || mongo_path_has_index(field.path))
		return not_shippable;

	/* {$eq: null} looks into arrays, which some types read */
	type = mongo_type_lookup(field.type);
	if (field.type != field.operator_type || type == NULL ||
		(type->accepts & MONGO_BSON_BIT(BSON_TYPE_ARRAY)) != 0)
		return not_shippable;

	result.strict = !is_null;
	result.exactness = MONGO_EXACT;
	if (tests_fit(translation, &field))
	{
		BsonArray	conditions = mongo_array_create();

		if (is_null)
		{
			mongo_append_misfit(match, &field);
			return result;
		}
		mongo_append_fitting(&conditions, &field);
		mongo_append_template(match, "{$and: @1}", mongo_array(conditions.bson));
		return result;
	}

	/* a type mismatch that reads as NULL is not null in MongoDB */
	if (field.type_mismatch == MONGO_TYPE_MISMATCH_NULL)
	{
		if (is_null)
			return not_shippable;
		result.exactness = MONGO_SUPERSET;
	}

	/* {$eq: null} matches missing, null and undefined */
	mongo_append_condition(match, field.path, is_null ? "$eq" : "$ne", mongo_null());
	return result;
}

static MongoCondition
translate_constant(Const *node, bool wanted, bson_t *match)
{
	MongoCondition result = {.exactness = MONGO_EXACT};

	if (!node->constisnull && DatumGetBool(node->constvalue) == wanted)
		return result;

	/* $nor of a filter that matches every document */
	mongo_append_template(match, "{$nor: [{}]}");
	result.indexed = true;
	return result;
}

/* Combines the index use of the branches so far with that of one more, if all are on one field. */
static void
merge_seeks(MongoCondition *all, const MongoCondition *one, bool conjunction, bool is_first)
{
	if (is_first)
	{
		all->seek = one->seek;
		all->path = one->path;
	}
	else if (all->path == NULL || one->path == NULL || strcmp(all->path, one->path) != 0)
	{
		all->seek = MONGO_SEEK_NOTHING;
		all->path = NULL;
	}
	else if (conjunction)
		all->seek = Max(all->seek, one->seek);
	else
		all->seek = Min(Min(all->seek, one->seek), MONGO_SEEK_VALUES);
}

/* So many conditions of each kind that takes MongoDB's planner long may be in an AND. */
#define MAX_SLOW_TO_PLAN	4

/* Returns 1 for an $or, 2 for the exclusion of values, 0 for what is planned fast. */
static int
slow_kind_of(const bson_t *condition)
{
	bson_iter_t field;
	bson_iter_t operator;

	if (!bson_iter_init(&field, condition) || !bson_iter_next(&field))
		return 0;
	if (bson_iter_key(&field)[0] == '$')
		return BSON_ITER_HOLDS_ARRAY(&field) ? 1 : 0;
	return BSON_ITER_HOLDS_DOCUMENT(&field) && bson_iter_recurse(&field, &operator) &&
		bson_iter_next(&operator) && (strcmp(bson_iter_key(&operator), "$ne") == 0 ||
									  strcmp(bson_iter_key(&operator), "$nin") == 0) ? 2 : 0;
}

static void
append_negation(BsonArray *negations, const bson_t *condition)
{
	bson_iter_t field;

	if (bson_iter_init_find(&field, condition, "$or") && bson_count_keys(condition) == 1)
		mongo_array_append_template(negations, "{$nor: @1}", *bson_iter_value(&field));
	else
		mongo_array_append_template(negations, "{$nor: [@1]}", mongo_document(condition));
}

/*
 * mongo_append_branches
 *		Appends $and (a conjunction) or $or of conditions (bson_t).  MongoDB plans an AND in the
 *		square of the number of its conditions.  So of each kind that takes long, those beyond
 *		MAX_SLOW_TO_PLAN become a $nor of negations, which MongoDB does not plan.
 */
void
mongo_append_branches(bson_t *match, const List *conditions, bool conjunction)
{
	BsonArray	branches = mongo_array_create();
	BsonArray	negations = mongo_array_create();
	int			count[3] = {0};
	ListCell   *cell;

	foreach(cell, conditions)
	{
		int			kind = conjunction ? slow_kind_of(lfirst(cell)) : 0;

		if (kind > 0 && count[kind]++ >= MAX_SLOW_TO_PLAN)
			append_negation(&negations, lfirst(cell));
		else
			mongo_array_append(&branches, mongo_document(lfirst(cell)));
	}
	if (negations.count > 0)
		mongo_array_append_template(&branches, "{$nor: @1}", mongo_array(negations.bson));
	mongo_append(match, conjunction ? "$and" : "$or", mongo_array(branches.bson));
}

/*
 * Translates AND (a conjunction) or OR, after applying any NOT above it.  A conjunct that is not
 * shippable is left out, which gives a superset.
 */
static MongoCondition
translate_branches(MongoTranslation *translation, List *nodes, bool conjunction,
				   bool wanted, bson_t *match)
{
	MongoCondition result = {MONGO_EXACT, .indexed = !conjunction, .strict = !conjunction};
	List	   *outer_conditions = translation->known_conditions;
	List	   *branches = NIL;
	ListCell   *cell;

	if (conjunction && wanted)
		translation->known_conditions = list_concat_copy(nodes, outer_conditions);
	foreach(cell, nodes)
	{
		bson_t	   *branch = mongo_bson_create();
		MongoMark	before = mongo_mark(translation);
		MongoCondition one = condition_of_node(translation, lfirst(cell), wanted, branch);

		if (one.exactness == MONGO_NOT_SHIPPABLE)
		{
			if (!conjunction)
				break;
			mongo_return_to(translation, before);
			result.exactness = MONGO_SUPERSET;
			continue;
		}
		result.exactness = Min(result.exactness, one.exactness);
		if (conjunction)
		{
			result.strict |= one.strict;
			result.indexed |= one.indexed;
			result.unique |= one.unique;
			result.one_value |= one.one_value;
		}
		else
		{
			result.strict &= one.strict;
			result.indexed &= one.indexed;
		}
		merge_seeks(&result, &one, conjunction, branches == NIL);
		branches = lappend(branches, branch);
	}
	translation->known_conditions = outer_conditions;
	if (branches == NIL || cell != NULL)
		return not_shippable;
	mongo_append_branches(match, branches, conjunction);
	return result;
}

static MongoCondition
translate_boolean(MongoTranslation *translation, BoolExpr *node, bool wanted, bson_t *match)
{
	if (node->boolop == NOT_EXPR)
		return condition_of_node(translation, linitial(node->args), !wanted, match);
	return translate_branches(translation, node->args,
							  (node->boolop == AND_EXPR) == wanted, wanted, match);
}

/* Translates IS [NOT] TRUE and IS [NOT] FALSE, which are never NULL. */
static MongoCondition
translate_boolean_test(MongoTranslation *translation, BooleanTest *node, bool wanted, bson_t *match)
{
	MongoCondition result;
	bson_t	   *inner;
	bool		truth;
	bool		negated;

	switch (node->booltesttype)
	{
		case IS_TRUE:
		case IS_NOT_TRUE:
			truth = true;
			break;
		case IS_FALSE:
		case IS_NOT_FALSE:
			truth = false;
			break;
		default:
			return not_shippable;
	}
	negated = (node->booltesttype == IS_NOT_TRUE ||
			   node->booltesttype == IS_NOT_FALSE) == wanted;

	if (!negated)
		return condition_of_node(translation, (Node *) node->arg, truth, match);

	/* the complement of a superset would miss rows */
	inner = mongo_bson_create();
	result = condition_of_node(translation, (Node *) node->arg, truth, inner);
	if (result.exactness != MONGO_EXACT)
		return not_shippable;
	mongo_append_template(match, "{$nor: [@1]}", mongo_document(inner));
	return (MongoCondition) {.exactness = MONGO_EXACT};
}

/*
 * mongo_translate_for_element
 *		Translates the clause, in which the columns read the elements of the array at 'path', for
 *		one element.
 *
 * With 'element' 0, 'match' becomes a filter of what is inside the element, for $elemMatch.  With
 * MONGO_ANY_ELEMENT or MONGO_UNWOUND_ELEMENT it becomes a filter of the document, for clauses on
 * the element itself.  It matches a superset.  Otherwise as mongo_translate_condition(); not
 * shippable, too, if the clause may be true without an element.
 */
MongoCondition
mongo_translate_for_element(MongoTranslation *translation, const MongoColumns *columns,
							const char *path, int element, Expr *clause, bson_t *match)
{
	MongoTranslation within = *translation;
	MongoMark	before = mongo_mark(translation);
	MongoCondition result;

	within.columns = mongo_columns_of_element(columns, path, element);
	within.use_expressions = within.need_exact = false;
	result = mongo_translate_condition(&within, clause, match);
	translation->parameters = within.parameters;
	translation->predicates = within.predicates;
	translation->compares_text = within.compares_text;
	translation->work = within.work;
	result.exactness = Min(result.exactness, MONGO_SUPERSET);
	if (result.exactness != MONGO_NOT_SHIPPABLE && result.strict)
		return result;
	mongo_return_to(translation, before);
	return not_shippable;
}

/* Writes a condition by query predicates, by the type of its node. */
static MongoCondition
condition_by_tag(MongoTranslation *translation, Node *node, bool wanted, bson_t *match)
{
	switch (nodeTag(node))
	{
		case T_Const:
			return translate_constant((Const *) node, wanted, match);
		case T_Var:
		case T_CoerceViaIO:
			return translate_boolean_column(translation, node, wanted, match);
		case T_OpExpr:
			return translate_operator(translation, (OpExpr *) node, wanted, match);
		case T_FuncExpr:
			return translate_function(translation, (FuncExpr *) node, wanted, match);
		case T_ScalarArrayOpExpr:
			return translate_array_operator(translation, (ScalarArrayOpExpr *) node,
											wanted, match);
		case T_BoolExpr:
			return translate_boolean(translation, (BoolExpr *) node, wanted, match);
		case T_NullTest:
			return translate_null_test(translation, (NullTest *) node, wanted, match);
		case T_BooleanTest:
			return translate_boolean_test(translation, (BooleanTest *) node, wanted,
										  match);
		case T_SubPlan:
			return wanted ? mongo_translate_exists(translation, (SubPlan *) node, match) : not_shippable;
		default:
			return not_shippable;
	}
}

/*
 * Uses query predicates alone if they are exact.  Otherwise adds $expr: alone, or together with
 * predicates that an index can serve.
 */
static MongoCondition
translate_with_expression(MongoTranslation *translation, Node *node, bool wanted, bson_t *match)
{
	MongoMark	before = mongo_mark(translation);
	MongoCondition result = condition_by_tag(translation, node, wanted, match);
	bson_t	   *expression;

	/* the parts of a BoolExpr are translated one by one */
	if (result.exactness == MONGO_EXACT || IsA(node, BoolExpr) ||
		(result.exactness == MONGO_SUPERSET && !translation->need_exact))
		return result;

	if (result.exactness == MONGO_NOT_SHIPPABLE)
	{
		mongo_return_to(translation, before);
		bson_reinit(match);
	}
	expression = mongo_translate_test(translation, node, wanted);
	if (expression == NULL)
		return result;

	/* the keys of 'match' are paths, never $expr */
	mongo_append_expression(match, "$expr", expression);
	result.exactness = MONGO_EXACT;
	return result;
}

/*
 * Writes to 'match', an empty document, a filter of where 'node' is TRUE (wanted) or FALSE (not
 * wanted).  Not shippable if too deep or too large for MongoDB.
 */
static MongoCondition
condition_of_node(MongoTranslation *translation, Node *node, bool wanted, bson_t *match)
{
	MongoCondition result = not_shippable;
	Node	   *equivalent = mongo_equivalent_condition(node, wanted);

	if (!mongo_enter_node(translation, 1))
		return not_shippable;
	if (equivalent != NULL)
	{
		bson_t	   *found = mongo_bson_create();
		MongoMark	before = mongo_mark(translation);

		result = condition_of_node(translation, equivalent, true, found);
		if (result.exactness == MONGO_NOT_SHIPPABLE)
			mongo_return_to(translation, before);
		else
			mongo_concat(match, found);
	}
	if (result.exactness == MONGO_NOT_SHIPPABLE)
		result = translation->use_expressions ?
			translate_with_expression(translation, node, wanted, match) :
			condition_by_tag(translation, node, wanted, match);
	mongo_leave_node(translation, 1, match->len);
	return match->len > MONGO_LARGEST_MATCH ? not_shippable : result;
}

/*
 * mongo_translate_condition
 *		Writes to 'match', an empty document, a filter of where 'clause' is true.
 *
 * With MONGO_NOT_SHIPPABLE, the contents of 'match' are undefined and 'translation' is unchanged.
 * Evaluates nothing but constants.  Does not modify 'clause', but the parameters point into it.
 */
MongoCondition
mongo_translate_condition(MongoTranslation *translation, Expr *clause, bson_t *match)
{
	MongoMark	before = mongo_mark(translation);
	MongoCondition result = condition_of_node(translation, (Node *) clause, true, match);

	if (result.exactness != MONGO_NOT_SHIPPABLE && mongo_is_too_deep(match))
		result = not_shippable;
	if (result.exactness == MONGO_NOT_SHIPPABLE)
		mongo_return_to(translation, before);
	return result;
}
