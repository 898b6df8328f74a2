/*-------------------------------------------------------------------------
 *
 * digits.c
 *		How many digits a number can have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "decimal128.h"
#include "digits.h"
#include "types.h"

#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

static const MongoDigits unknown_digits = {false};

static MongoDigits
known_digits(int integral, int scale)
{
	return (MongoDigits)
	{
		true, integral, scale
	};
}

bool
mongo_digits_fit(MongoDigits digits)
{
	return digits.known && digits.integral + digits.scale <= MONGO_DECIMAL128_MAX_DIGITS;
}

/* Of any value of a type. */
static MongoDigits
digits_of_type(Oid type, int32 typmod)
{
	const MongoType *facts = mongo_type_facts(type);
	int			precision;
	int			scale;

	if (facts->kind == MONGO_KIND_INTEGER)
		return known_digits(snprintf(NULL, 0, INT64_FORMAT, facts->limit), 0);
	if (facts->kind == MONGO_KIND_NUMERIC &&
		mongo_numeric_typmod(typmod, &precision, &scale) &&
		scale >= 0 && precision <= MONGO_MAX_PRECISION)
		return known_digits(Max(precision - scale, 0), scale);
	return unknown_digits;
}

/* The text of the constant has them all. */
static MongoDigits
digits_of_constant(const Const *constant)
{
	Oid			output;
	bool		varlena;
	const char *text;
	const char *point;
	int			integral;

	if (constant->constisnull)
		return known_digits(0, 0);
	if (constant->consttype == NUMERICOID &&
		(numeric_is_nan(DatumGetNumeric(constant->constvalue)) ||
		 numeric_is_inf(DatumGetNumeric(constant->constvalue))))
		return unknown_digits;
	if (!digits_of_type(constant->consttype, -1).known && constant->consttype != NUMERICOID)
		return unknown_digits;

	getTypeOutputInfo(constant->consttype, &output, &varlena);
	text = OidOutputFunctionCall(output, constant->constvalue);
	if (*text == '-')
		text++;
	point = strchr(text, '.');
	integral = point == NULL ? (int) strlen(text) : point - text;
	if (*text == '0')
		integral = 0;
	return known_digits(integral, point == NULL ? 0 : strlen(point + 1));
}

/* From those of the arguments. */
typedef enum DigitRule
{
	DIGITS_SAME,				/* as the first argument */
	DIGITS_SUM,
	DIGITS_PRODUCT,
	DIGITS_REMAINDER,
	DIGITS_INTEGER,				/* the first, rounded to an integer */
	DIGITS_ROUNDED,				/* the first, to as many decimals as the
								 * second says */
	DIGITS_TYPMOD				/* numeric(precision, scale) of the first */
} DigitRule;

static const struct
{
	Oid			function;
	DigitRule	rule;
}			rules[] =
{
	{F_NUMERIC_ADD, DIGITS_SUM},
	{F_NUMERIC_SUB, DIGITS_SUM},
	{F_NUMERIC_MUL, DIGITS_PRODUCT},
	{F_NUMERIC_MOD, DIGITS_REMAINDER},
	{F_MOD_NUMERIC_NUMERIC, DIGITS_REMAINDER},
	{F_NUMERIC_UMINUS, DIGITS_SAME},
	{F_NUMERIC_UPLUS, DIGITS_SAME},
	{F_NUMERIC_ABS, DIGITS_SAME},
	{F_ABS_NUMERIC, DIGITS_SAME},
	{F_NUMERIC_INT2, DIGITS_SAME},
	{F_NUMERIC_INT4, DIGITS_SAME},
	{F_NUMERIC_INT8, DIGITS_SAME},
	{F_CEIL_NUMERIC, DIGITS_INTEGER},
	{F_CEILING_NUMERIC, DIGITS_INTEGER},
	{F_FLOOR_NUMERIC, DIGITS_INTEGER},
	{F_SIGN_NUMERIC, DIGITS_INTEGER},
	{F_ROUND_NUMERIC, DIGITS_INTEGER},
	{F_TRUNC_NUMERIC, DIGITS_INTEGER},
	{F_ROUND_NUMERIC_INT4, DIGITS_ROUNDED},
	{F_TRUNC_NUMERIC_INT4, DIGITS_ROUNDED},
	{F_NUMERIC_NUMERIC_INT4, DIGITS_TYPMOD},
};

/*
 * apply_rule: digits of a result whose arguments have a and b; second is the second
 * argument.
 */
static MongoDigits
apply_rule(DigitRule rule, MongoDigits a, MongoDigits b, Node *second)
{
	int32		number = second != NULL && IsA(second, Const) &&
		!((Const *) second)->constisnull && ((Const *) second)->consttype == INT4OID ?
		DatumGetInt32(((Const *) second)->constvalue) : -1;

	switch (rule)
	{
		case DIGITS_SAME:
			return a;
		case DIGITS_SUM:
			return known_digits(Max(a.integral, b.integral) + 1, Max(a.scale, b.scale));
		case DIGITS_PRODUCT:
			return known_digits(a.integral + b.integral, a.scale + b.scale);
		case DIGITS_REMAINDER:
			return known_digits(Min(a.integral, b.integral), Max(a.scale, b.scale));
		case DIGITS_INTEGER:
			return known_digits(a.integral + 1, 0);
		case DIGITS_ROUNDED:
			if (number < 0 || number > MONGO_DECIMAL128_MAX_DIGITS)
				return unknown_digits;
			return known_digits(a.integral + 1, number);
		case DIGITS_TYPMOD:
			return digits_of_type(NUMERICOID, number);
	}
	return unknown_digits;
}

/* The first rule of the function says how the digits of its arguments become the result's. */
static MongoDigits
digits_of_call(Oid function, List *args)
{
	MongoDigits a = mongo_expression_digits(linitial(args));
	Node	   *second = list_length(args) > 1 ? lsecond(args) : NULL;

	for (size_t i = 0; i < lengthof(rules); i++)
	{
		MongoDigits b = {.known = true};

		if (rules[i].function != function)
			continue;
		if (rules[i].rule == DIGITS_SUM || rules[i].rule == DIGITS_PRODUCT ||
			rules[i].rule == DIGITS_REMAINDER)
			b = mongo_expression_digits(second);
		if (!b.known || (!a.known && rules[i].rule != DIGITS_TYPMOD))
			return unknown_digits;
		return apply_rule(rules[i].rule, a, b, second);
	}
	return unknown_digits;
}

/* Of the one that is largest: any of them may be the value. */
static MongoDigits
digits_of_any(List *nodes)
{
	MongoDigits result = {.known = true};
	ListCell   *cell;

	foreach(cell, nodes)
	{
		MongoDigits one = mongo_expression_digits(lfirst(cell));

		if (!one.known)
			return one;
		result.integral = Max(result.integral, one.integral);
		result.scale = Max(result.scale, one.scale);
	}
	return result;
}

static MongoDigits
digits_of_case(const CaseExpr *node)
{
	List	   *results = NIL;
	ListCell   *cell;

	foreach(cell, node->args)
		results = lappend(results, lfirst_node(CaseWhen, cell)->result);
	if (node->defresult != NULL)
		results = lappend(results, node->defresult);
	return digits_of_any(results);
}

MongoDigits
mongo_expression_digits(Node *node)
{
	MongoDigits digits = unknown_digits;

	switch (nodeTag(node))
	{
		case T_Const:
			return digits_of_constant((Const *) node);
		case T_OpExpr:
			digits = digits_of_call(get_opcode(((OpExpr *) node)->opno),
									((OpExpr *) node)->args);
			break;
		case T_FuncExpr:
			if (((FuncExpr *) node)->args != NIL)
				digits = digits_of_call(((FuncExpr *) node)->funcid, ((FuncExpr *) node)->args);
			break;
		case T_RelabelType:
			digits = mongo_expression_digits((Node *) ((RelabelType *) node)->arg);
			break;
		case T_CaseExpr:
			digits = digits_of_case((CaseExpr *) node);
			break;
		case T_CoalesceExpr:
			digits = digits_of_any(((CoalesceExpr *) node)->args);
			break;
		case T_MinMaxExpr:
			digits = digits_of_any(((MinMaxExpr *) node)->args);
			break;
		default:
			break;
	}
	return digits.known ? digits : digits_of_type(exprType(node), exprTypmod(node));
}
