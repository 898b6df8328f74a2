/*-------------------------------------------------------------------------
 *
 * expression_date_bound.c
 *		Dates and timestamps that a document's are compared with.
 *
 * BSON has milliseconds.  What is between two of them is moved to the one that
 * divides all milliseconds alike; infinities become the first and the last
 * Date of BSON, which are beyond what a column reads.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_date.h"
#include "expression_parts.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

/* rounds_up: "a < t" and "a >= t" are the same of the next whole millisecond. */
static bool
rounds_up(int strategy)
{
	return strategy == BTLessStrategyNumber || strategy == BTGreaterEqualStrategyNumber;
}

static bool
rounds_down(int strategy)
{
	return strategy == BTLessEqualStrategyNumber || strategy == BTGreaterStrategyNumber;
}

/* constant_bound: a constant as a Date; false if it can be none for this operator. */
static bool
constant_bound(int strategy, const Const *constant, MongoValue *value)
{
	Timestamp	timestamp;
	int64		millis;

	if (constant->constisnull || mongo_literal(constant, value))
		return mongo_literal(constant, value);
	if (constant->consttype == DATEOID)
		timestamp = DATE_IS_NOEND(DatumGetDateADT(constant->constvalue)) ? DT_NOEND : DT_NOBEGIN;
	else
		timestamp = DatumGetTimestamp(constant->constvalue);

	if (TIMESTAMP_NOT_FINITE(timestamp))
		millis = TIMESTAMP_IS_NOEND(timestamp) ? PG_INT64_MAX : PG_INT64_MIN;
	else if (rounds_up(strategy) || rounds_down(strategy))
		millis = mongo_timestamp_to_millis(timestamp, NULL) + rounds_up(strategy);
	else
		return false;
	*value = mongo_atomic(bson_date(millis));
	value->type = constant->consttype;
	return true;
}

/* date_trunc('milliseconds', timestamp + interval '999 microseconds') */
static Node *
round_up(Node *node, Oid type)
{
	bool		has_zone = type == TIMESTAMPTZOID;
	Interval   *interval = palloc0(sizeof(Interval));
	Const	   *addend;
	Const	   *unit;
	FuncExpr   *sum;

	interval->time = 999;
	addend = makeConst(INTERVALOID, -1, InvalidOid, sizeof(Interval),
					   IntervalPGetDatum(interval), false, false);
	unit = makeConst(TEXTOID, -1, InvalidOid, -1, CStringGetTextDatum("milliseconds"),
					 false, false);
	sum = makeFuncExpr(has_zone ? F_TIMESTAMPTZ_PL_INTERVAL : F_TIMESTAMP_PL_INTERVAL, type,
					   list_make2(node, addend), InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	return (Node *) makeFuncExpr(has_zone ? F_DATE_TRUNC_TEXT_TIMESTAMPTZ :
								 F_DATE_TRUNC_TEXT_TIMESTAMP, type, list_make2(unit, sum),
								 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

bool
mongo_date_bound(const MongoScope *scope, int strategy, Node *node, MongoValue *value)
{
	Oid			type = exprType(node);

	if (IsA(node, Const))
		return constant_bound(strategy, (Const *) node, value);
	if (type == DATEOID)
		return mongo_variable(scope, node, value);

	/* sent as a value, a timestamp loses what is below a millisecond */
	if (rounds_up(strategy))
		node = round_up(node, type);
	else if (!rounds_down(strategy))
		return false;
	return mongo_variable(scope, node, value);
}
