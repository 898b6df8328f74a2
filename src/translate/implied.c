/*-------------------------------------------------------------------------
 *
 * implied.c
 *		What a condition on a function of a column says about the column.
 *
 * The table has a row for each function that grows with one of its arguments.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression.h"
#include "implied.h"
#include "strategy.h"

#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* "function(args) OP value" */
typedef struct Comparison
{
	Oid			function;
	List	   *args;
	int			strategy;
	Node	   *value;
	Oid			collation;
} Comparison;

static bool
bounds_below(int strategy)
{
	return strategy >= BTEqualStrategyNumber;
}

static bool
bounds_above(int strategy)
{
	return strategy <= BTEqualStrategyNumber;
}

/* implied_comparison: "left OP right" by the default order of left's type. */
static Expr *
implied_comparison(Node *left, int strategy, Node *right, Oid collation)
{
	Oid			operator = get_opfamily_member(mongo_default_opfamily(exprType(left)),
											   exprType(left), exprType(right), strategy);

	if (!OidIsValid(operator))
		return NULL;
	return make_opclause(operator, BOOLOID, false, (Expr *) left,
						 (Expr *) eval_const_expressions(NULL, right), InvalidOid, collation);
}

static List *
add(List *conditions, Expr *condition)
{
	return condition == NULL ? conditions : lappend(conditions, condition);
}

static Const *
interval_constant(int months, int days, int64 micros)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->month = months;
	interval->day = days;
	interval->time = micros;
	return makeConst(INTERVALOID, -1, InvalidOid, sizeof(Interval),
					 IntervalPGetDatum(interval), false, false);
}

static Const *
timestamp_constant(Oid type, Timestamp timestamp)
{
	return makeConst(type, -1, InvalidOid, sizeof(Timestamp), TimestampGetDatum(timestamp),
					 false, FLOAT8PASSBYVAL);
}

static DateADT
new_years_day(int year)
{
	return date2j(year, 1, 1) - POSTGRES_EPOCH_JDATE;
}

static Timestamp
new_year(int year)
{
	return (Timestamp) new_years_day(year) * USECS_PER_DAY;
}

/* beginning: of a year, as a constant of type timestamp or date */
static Node *
beginning(Oid type, int year)
{
	if (type == DATEOID)
		return (Node *) makeConst(DATEOID, -1, InvalidOid, sizeof(DateADT),
								  DateADTGetDatum(new_years_day(year)), false, true);
	return (Node *) timestamp_constant(type, new_year(year));
}

/*
 * shifted: a timestamp and an interval, which may be negative.  What would come
 * near the end of PostgreSQL's range becomes 'instead', an infinity.
 */
static Node *
shifted(Node *timestamp, Const *interval, Timestamp instead)
{
	Oid			type = exprType(timestamp);
	bool		has_zone = type == TIMESTAMPTZOID;
	Expr	   *after = implied_comparison(timestamp, BTGreaterStrategyNumber,
										   (Node *) timestamp_constant(type, new_year(-3000)), InvalidOid);
	Expr	   *before = implied_comparison(timestamp, BTLessStrategyNumber,
											(Node *) timestamp_constant(type, new_year(200000)), InvalidOid);
	CaseWhen   *when = makeNode(CaseWhen);
	CaseExpr   *guarded = makeNode(CaseExpr);

	when->expr = makeBoolExpr(AND_EXPR, list_make2(after, before), -1);
	when->result = (Expr *) makeFuncExpr(has_zone ? F_TIMESTAMPTZ_PL_INTERVAL :
										 F_TIMESTAMP_PL_INTERVAL, type,
										 list_make2(timestamp, interval),
										 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	when->location = -1;
	guarded->casetype = type;
	guarded->casecollid = InvalidOid;
	guarded->args = list_make1(when);
	guarded->defresult = (Expr *) timestamp_constant(type, instead);
	guarded->location = -1;
	return (Node *) guarded;
}

static const struct
{
	const char *unit;
	int			months;
	int			days;
	int64		micros;
}			units[] =
{
	{"second", 0, 0, USECS_PER_SEC},
	{"minute", 0, 0, USECS_PER_MINUTE},
	{"hour", 0, 0, USECS_PER_HOUR},
	{"day", 0, 1, 0},
	{"week", 0, 7, 0},
	{"month", 1, 0, 0},
	{"quarter", 3, 0, 0},
	{"year", 12, 0, 0},
};

/*
 * date_trunc(unit, x) is not after x, and less than a unit before it.  With a
 * time zone a day more is allowed for, whatever its clocks did: where they go back at
 * midnight, the day of what is before that begins after it.
 */
static List *
of_date_trunc(const Comparison *comparison)
{
	const Const *unit = linitial(comparison->args);
	Node	   *argument = lsecond(comparison->args);
	bool		has_zone = exprType(argument) == TIMESTAMPTZOID;
	List	   *result = NIL;

	if (!IsA(unit, Const) || unit->constisnull)
		return NIL;
	for (size_t i = 0; i < lengthof(units); i++)
	{
		if (pg_strcasecmp(units[i].unit, TextDatumGetCString(unit->constvalue)) != 0)
			continue;
		if (bounds_below(comparison->strategy))
			result = add(result, implied_comparison(argument, BTGreaterEqualStrategyNumber,
													has_zone ? shifted(comparison->value, interval_constant(0, -1, 0), DT_NOBEGIN) :
													comparison->value, InvalidOid));
		if (bounds_above(comparison->strategy))
			result = add(result, implied_comparison(argument, BTLessStrategyNumber,
													shifted(comparison->value,
															interval_constant(units[i].months,
																			  units[i].days + has_zone,
																			  units[i].micros), DT_NOEND),
													InvalidOid));
	}
	return result;
}

/* x::date with x a timestamp: the day that begins with the date */
static List *
of_date(const Comparison *comparison)
{
	const Const *value = (Const *) comparison->value;
	Node	   *argument = linitial(comparison->args);
	Timestamp	start;
	List	   *result = NIL;

	if (!IsA(value, Const) || value->constisnull || value->consttype != DATEOID ||
		DATE_NOT_FINITE(DatumGetDateADT(value->constvalue)) ||
		abs(DatumGetDateADT(value->constvalue)) > 3000000)
		return NIL;
	start = (Timestamp) DatumGetDateADT(value->constvalue) * USECS_PER_DAY;
	if (bounds_below(comparison->strategy))
		result = add(result, implied_comparison(argument, BTGreaterEqualStrategyNumber,
												(Node *) timestamp_constant(TIMESTAMPOID, start), InvalidOid));
	if (bounds_above(comparison->strategy))
		result = add(result, implied_comparison(argument, BTLessStrategyNumber,
												(Node *) timestamp_constant(TIMESTAMPOID, start + USECS_PER_DAY),
												InvalidOid));
	return result;
}

/* constant_year: a constant of extract() or date_part() that is a year AD. */
static bool
constant_year(const Const *constant, int *year)
{
	double		number;

	if (!IsA(constant, Const) || constant->constisnull)
		return false;
	if (constant->consttype == NUMERICOID)
		number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
													constant->constvalue));
	else if (constant->consttype == FLOAT8OID)
		number = DatumGetFloat8(constant->constvalue);
	else
		return false;
	*year = number >= 1 && number <= 9999 ? (int) number : 0;
	return *year == number;
}

/* extract(year from x), with x a timestamp or a date */
static List *
of_year(const Comparison *comparison)
{
	const Const *field = linitial(comparison->args);
	Node	   *argument = lsecond(comparison->args);
	List	   *result = NIL;
	int			year;

	if (!IsA(field, Const) || field->constisnull ||
		pg_strcasecmp(TextDatumGetCString(field->constvalue), "year") != 0 ||
		!constant_year((Const *) comparison->value, &year))
		return NIL;
	if (bounds_below(comparison->strategy))
		result = add(result, implied_comparison(argument, BTGreaterEqualStrategyNumber,
												beginning(exprType(argument), year), InvalidOid));
	if (bounds_above(comparison->strategy))
		result = add(result, implied_comparison(argument, BTLessStrategyNumber,
												beginning(exprType(argument), year + 1), InvalidOid));
	return result;
}

/* x + interval, days and less: a day's slack covers all time zones */
static List *
of_interval(const Comparison *comparison)
{
	const Const *constant = lsecond(comparison->args);
	Node	   *argument = linitial(comparison->args);
	bool		minus = comparison->function == F_TIMESTAMP_MI_INTERVAL ||
		comparison->function == F_TIMESTAMPTZ_MI_INTERVAL;
	const Interval *interval;
	List	   *result = NIL;

	if (!IsA(constant, Const) || constant->constisnull)
		return NIL;
	interval = DatumGetIntervalP(constant->constvalue);
	if (interval->month != 0 || abs(interval->day) > 365000 ||
		interval->time > USECS_PER_DAY * 365000 || interval->time < -USECS_PER_DAY * 365000)
		return NIL;
	for (int below = 0; below <= 1; below++)
	{
		int			slack = below ? -1 : 1;
		Const	   *back = interval_constant(0, (minus ? interval->day : -interval->day) + slack,
											 minus ? interval->time : -interval->time);

		if (below ? bounds_below(comparison->strategy) : bounds_above(comparison->strategy))
			result = add(result, implied_comparison(argument, below ? BTGreaterStrategyNumber :
													BTLessStrategyNumber,
													shifted(comparison->value, back,
															below ? DT_NOBEGIN : DT_NOEND), InvalidOid));
	}
	return result;
}

/* to_int8: a value of type int2 or int4, or NULL. */
static Node *
to_int8(Node *node)
{
	Oid			type = exprType(node);

	if (type != INT2OID && type != INT4OID)
		return NULL;
	return (Node *) makeFuncExpr(type == INT2OID ? F_INT8_INT2 : F_INT8_INT4, INT8OID,
								 list_make1(node), InvalidOid, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* x + k and x - k of int2 and int4, which an int8 holds without overflow */
static List *
of_integer_sum(const Comparison *comparison)
{
	bool		minus = comparison->function == F_INT4MI || comparison->function == F_INT24MI ||
		comparison->function == F_INT2MI;
	Node	   *addend = to_int8(lsecond(comparison->args));
	Node	   *value = to_int8(comparison->value);

	if (addend == NULL || value == NULL)
		return NIL;
	return add(NIL, implied_comparison(linitial(comparison->args), comparison->strategy,
									   (Node *) makeFuncExpr(minus ? F_INT8PL : F_INT8MI, INT8OID,
															 list_make2(value, addend), InvalidOid,
															 InvalidOid, COERCE_EXPLICIT_CALL), InvalidOid));
}

/* left(x, n) = 'abc' and substr(x, 1, n) = 'abc': x begins so */
static List *
of_prefix(const Comparison *comparison)
{
	const Const *start = lsecond(comparison->args);

	if (comparison->strategy != BTEqualStrategyNumber ||
		(comparison->function != F_LEFT &&
		 (!IsA(start, Const) || start->constisnull || DatumGetInt32(start->constvalue) != 1)))
		return NIL;
	return list_make1(makeFuncExpr(F_STARTS_WITH, BOOLOID,
								   list_make2(linitial(comparison->args), comparison->value),
								   InvalidOid, comparison->collation, COERCE_EXPLICIT_CALL));
}

/* The argument that does not grow is the one that PostgreSQL must know. */
static const struct
{
	Oid			function;
	List	   *(*imply) (const Comparison *comparison);
	int			growing;		/* the argument, from 0 */
}			rows[] =
{
	{F_DATE_TRUNC_TEXT_TIMESTAMP, of_date_trunc, 1},
	{F_DATE_TRUNC_TEXT_TIMESTAMPTZ, of_date_trunc, 1},
	{F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT, of_date_trunc, 1},
	{F_DATE_TIMESTAMP, of_date, 0},
	{F_EXTRACT_TEXT_TIMESTAMP, of_year, 1},
	{F_EXTRACT_TEXT_DATE, of_year, 1},
	{F_DATE_PART_TEXT_TIMESTAMP, of_year, 1},
	{F_TIMESTAMP_PL_INTERVAL, of_interval, 0},
	{F_TIMESTAMP_MI_INTERVAL, of_interval, 0},
	{F_TIMESTAMPTZ_PL_INTERVAL, of_interval, 0},
	{F_TIMESTAMPTZ_MI_INTERVAL, of_interval, 0},
	{F_INT2PL, of_integer_sum, 0},
	{F_INT24PL, of_integer_sum, 0},
	{F_INT42PL, of_integer_sum, 0},
	{F_INT4PL, of_integer_sum, 0},
	{F_INT2MI, of_integer_sum, 0},
	{F_INT24MI, of_integer_sum, 0},
	{F_INT42MI, of_integer_sum, 0},
	{F_INT4MI, of_integer_sum, 0},
	{F_LEFT, of_prefix, 0},
	{F_SUBSTR_TEXT_INT4_INT4, of_prefix, 0},
	{F_SUBSTRING_TEXT_INT4_INT4, of_prefix, 0},
};

/* split_call: the function and the arguments of a call or an operator. */
static bool
split_call(Node *node, Comparison *comparison)
{
	if (IsA(node, FuncExpr))
	{
		comparison->function = ((FuncExpr *) node)->funcid;
		comparison->args = ((FuncExpr *) node)->args;
		return true;
	}
	if (IsA(node, OpExpr))
	{
		comparison->function = get_opcode(((OpExpr *) node)->opno);
		comparison->args = ((OpExpr *) node)->args;
		return true;
	}
	return false;
}

List *
mongo_implied_conditions(const MongoTranslation *translation, OpExpr *clause)
{
	Comparison	comparison = {0};
	Oid			operator = clause->opno;
	Node	   *call;

	if (list_length(clause->args) != 2)
		return NIL;
	call = linitial(clause->args);
	comparison.value = lsecond(clause->args);
	if (mongo_is_local_value(translation, call))
	{
		call = lsecond(clause->args);
		comparison.value = linitial(clause->args);
		operator = get_commutator(operator);
	}
	if (!OidIsValid(operator) || !split_call(call, &comparison) ||
		!mongo_is_local_value(translation, comparison.value))
		return NIL;
	comparison.collation = clause->inputcollid;
	comparison.strategy = mongo_default_strategy(operator, exprType(call));
	if (comparison.strategy == 0 || comparison.strategy == MONGO_STRATEGY_NOT_EQUAL ||
		(exprType(comparison.value) != exprType(call) && to_int8(call) == NULL))
		return NIL;

	for (size_t i = 0; i < lengthof(rows); i++)
	{
		if (rows[i].function != comparison.function)
			continue;
		for (int j = 0; j < list_length(comparison.args); j++)
		{
			if (j != rows[i].growing &&
				!mongo_is_local_value(translation, list_nth(comparison.args, j)))
				return NIL;
		}
		return rows[i].imply(&comparison);
	}
	return NIL;
}

Oid
mongo_nth_implying_function(int number)
{
	return number < (int) lengthof(rows) ? rows[number].function : InvalidOid;
}
