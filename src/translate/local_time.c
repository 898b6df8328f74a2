/*-------------------------------------------------------------------------
 *
 * local_time.c
 *		Conditions on local time: ::date, date_trunc() and the year of a time; and on a time
 *		plus an interval.
 *
 * "f(time) OP value" is true before, between or after two local times: the first one for which
 * f is not before the value, and the first one for which it is after the value.  They are
 * computed when the scan starts, from the value and the session's time zone.
 *
 * In a segment, the time between two jumps of its clocks, a time zone has one offset from UTC.
 * The times between two local times are a part of each of these segments.
 *
 * That is exact for days and longer units.  For hours and shorter units, which clocks may show
 * twice, the local times are moved apart and PostgreSQL tests the rows again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "common/int.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/scansup.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

/* The part of a time that is compared: the beginning of the unit that it is in. */
typedef enum ClockUnit
{
	CLOCK_TIME,					/* the time itself */
	CLOCK_SECOND,
	CLOCK_MINUTE,
	CLOCK_HOUR,
	CLOCK_DAY,
	CLOCK_WEEK,
	CLOCK_MONTH,
	CLOCK_QUARTER,
	CLOCK_YEAR,
	CLOCK_YEAR_NUMBER			/* the number of the year, not its beginning */
} ClockUnit;

static const struct
{
	const char *name;			/* of date_trunc() */
	int64		micros;			/* its length, if it is fixed */
	int			months;
}			units[] =
{
	[CLOCK_TIME] = {"microseconds", 1, 0},
	[CLOCK_SECOND] = {"second", USECS_PER_SEC, 0},
	[CLOCK_MINUTE] = {"minute", USECS_PER_MINUTE, 0},
	[CLOCK_HOUR] = {"hour", USECS_PER_HOUR, 0},
	[CLOCK_DAY] = {"day", USECS_PER_DAY, 0},
	[CLOCK_WEEK] = {"week", 7 * USECS_PER_DAY, 0},
	[CLOCK_MONTH] = {"month", 0, 1},
	[CLOCK_QUARTER] = {"quarter", 0, 3},
	[CLOCK_YEAR] = {"year", 0, 12},
};

/* What a function returns for a time. */
typedef enum ClockResult
{
	RETURNS_DATE,
	RETURNS_TIME,				/* a timestamp, of a timestamptz */
	RETURNS_BEGINNING,			/* beginning of the unit in argument 0 */
	RETURNS_YEAR,
	RETURNS_WHOLE				/* the year, which has no fraction */
} ClockResult;

static const struct
{
	Oid			function;
	ClockResult result;
	int			time;			/* the number of the time's argument, from 0 */
	bool		of_instant;		/* of a timestamptz, not timestamp or date */
	int			zone;			/* the same for the time zone, or -1 */
}			rows[] =
{
	{F_DATE_TIMESTAMPTZ, RETURNS_DATE, 0, true, -1},
	{F_DATE_TIMESTAMP, RETURNS_DATE, 0, false, -1},
	{F_TIMESTAMP_TIMESTAMPTZ, RETURNS_TIME, 0, true, -1},
	{F_TIMEZONE_TEXT_TIMESTAMPTZ, RETURNS_TIME, 1, true, 0},
	{F_DATE_TRUNC_TEXT_TIMESTAMP, RETURNS_BEGINNING, 1, false, -1},
	{F_DATE_TRUNC_TEXT_TIMESTAMPTZ, RETURNS_BEGINNING, 1, true, -1},
	{F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT, RETURNS_BEGINNING, 1, true, 2},
	{F_EXTRACT_TEXT_TIMESTAMPTZ, RETURNS_YEAR, 1, true, -1},
	{F_EXTRACT_TEXT_TIMESTAMP, RETURNS_YEAR, 1, false, -1},
	{F_EXTRACT_TEXT_DATE, RETURNS_YEAR, 1, false, -1},
	{F_DATE_PART_TEXT_TIMESTAMPTZ, RETURNS_YEAR, 1, true, -1},
	{F_DATE_PART_TEXT_TIMESTAMP, RETURNS_YEAR, 1, false, -1},
	{F_INT4_NUMERIC, RETURNS_WHOLE, 0, false, -1},
	{F_INT8_NUMERIC, RETURNS_WHOLE, 0, false, -1},
	{F_INT4_FLOAT8, RETURNS_WHOLE, 0, false, -1},
	{F_TRUNC_NUMERIC_INT4, RETURNS_WHOLE, 0, false, -1},
	{F_TRUNC_FLOAT8, RETURNS_WHOLE, 0, false, -1},
};

/* More than the 7 days by which a time zone may differ from UTC (POSIX). */
#define WINDOW			(8 * USECS_PER_DAY)

/* The last year of timestamps. */
#define LAST_YEAR		294276

/* Values before, and after, the range of timestamps. */
#define BEFORE_ALL		PG_INT64_MIN
#define AFTER_ALL		PG_INT64_MAX

/* ---- Nodes ---- */

/*
 * mongo_constant_word
 *		Returns a constant text in lower case, such as the name of a unit or of a time zone;
 *		palloc'd.  NULL for any other node.
 */
const char *
mongo_constant_word(Node *node)
{
	const Const *constant = (Const *) node;
	text	   *word;

	if (!IsA(node, Const) || constant->constisnull || constant->consttype != TEXTOID)
		return NULL;
	word = DatumGetTextPP(constant->constvalue);
	return downcase_identifier(VARDATA_ANY(word), VARSIZE_ANY_EXHDR(word), false, false);
}

/*
 * mongo_constant_zone
 *		Returns the name of a time zone if the node is a constant that PostgreSQL recognizes as one,
 *		and not an abbreviation, whose meaning is a setting; palloc'd.  Otherwise NULL.
 */
const char *
mongo_constant_zone(Node *node)
{
	const char *name = mongo_constant_word(node);

	if (name == NULL || strlen(name) > TZ_STRLEN_MAX ||
		(strchr(name, '/') == NULL && strcmp(name, "utc") != 0) || pg_tzset(name) == NULL)
		return NULL;
	return name;
}

static bool
find_unit(Node *node, int *unit)
{
	const char *name = mongo_constant_word(node);

	for (size_t i = 0; name != NULL && i < lengthof(units); i++)
	{
		if (strcmp(units[i].name, name) == 0)
		{
			*unit = i;
			return true;
		}
	}
	return false;
}

/* Returns the row of the function called; -1 for other nodes. */
static int
find_clock_row(Node *node, List **args)
{
	const FuncExpr *call = (const FuncExpr *) node;

	for (size_t i = 0; IsA(node, FuncExpr) && i < lengthof(rows); i++)
	{
		if (rows[i].function == call->funcid)
		{
			*args = call->args;
			return i;
		}
	}
	return -1;
}

/* Finds a timestamp or date column, or the local time of an instant. */
static bool
local_of_node(MongoColumns *columns, Node *node, MongoField *field)
{
	List	   *args;
	int			row = find_clock_row(node, &args);

	if (row < 0)
		return mongo_field_of_node(columns, node, field) &&
			(field->operator_type == TIMESTAMPOID || field->operator_type == DATEOID);
	return rows[row].result == RETURNS_TIME &&
		mongo_local_time_of_node(columns, node, TIMESTAMPOID, field);
}

/*
 * mongo_local_time_of_node
 *		Finds the field whose local time 'node' is, or is a function of; returns false for anything
 *		else.  A plain date or timestamp is treated so if it is compared with an instant, according
 *		to 'value_type'.
 */
bool
mongo_local_time_of_node(MongoColumns *columns, Node *node, Oid value_type, MongoField *field)
{
	List	   *args;
	int			row = find_clock_row(node, &args);
	const char *word;
	Node	   *time;

	if (row < 0)
	{
		if (value_type != TIMESTAMPTZOID || !mongo_field_of_node(columns, node, field) ||
			(field->operator_type != DATEOID && field->operator_type != TIMESTAMPOID))
			return false;
		field->zone = "utc";
		field->result_zone = "";
		field->time_part = field->operator_type == DATEOID ? CLOCK_DAY : CLOCK_TIME;
		return true;
	}
	time = list_nth(args, rows[row].time);
	if (rows[row].result == RETURNS_WHOLE)
	{
		const Const *digits = list_length(args) > 1 ? lsecond(args) : NULL;

		/* trunc(2024, -1) is 2020 */
		if ((digits != NULL && (!IsA(digits, Const) || digits->constisnull ||
								DatumGetInt32(digits->constvalue) < 0)) ||
			!mongo_local_time_of_node(columns, time, exprType(time), field) ||
			field->time_part != CLOCK_YEAR_NUMBER)
			return false;
	}
	else if (!rows[row].of_instant)
	{
		if (!local_of_node(columns, time, field))
			return false;
		if (field->zone == NULL)
			field->zone = "utc";
	}
	else if (!mongo_field_of_node(columns, time, field) || field->operator_type != TIMESTAMPTZOID)
		return false;
	else
		field->zone = rows[row].zone < 0 ? "" : mongo_constant_zone(list_nth(args, rows[row].zone));
	if (field->zone == NULL)
		return false;

	switch (rows[row].result)
	{
		case RETURNS_DATE:
			field->time_part = CLOCK_DAY;
			break;
		case RETURNS_TIME:
			field->time_part = CLOCK_TIME;
			break;
		case RETURNS_BEGINNING:
			if (!find_unit(linitial(args), &field->time_part))
				return false;
			break;
		case RETURNS_YEAR:
			word = mongo_constant_word(linitial(args));
			if (word == NULL || strcmp(word, "year") != 0)
				return false;
			field->time_part = CLOCK_YEAR_NUMBER;
			break;
		case RETURNS_WHOLE:
			break;
	}
	field->operator_type = exprType(node);
	if (field->operator_type == TIMESTAMPTZOID)
		field->result_zone = field->zone;
	else
		field->result_zone = value_type == TIMESTAMPTZOID ? "" : NULL;
	return true;
}

/* Tells whether it is a number with which a year can be compared. */
static bool
is_year_type(Oid type)
{
	return type == NUMERICOID || type == FLOAT8OID ||
		mongo_kind_of_type(type)->compared_as == MONGO_KIND_INTEGER;
}

/*
 * mongo_local_time_has_bounds
 *		Tells whether each local time that equals the value is between two timestamps.  Dates may be
 *		after all timestamps, so the year of a date must be a constant before the last of these.
 */
bool
mongo_local_time_has_bounds(const MongoField *field, Node *value)
{
	const Const *year = (const Const *) value;

	return field->time_part != CLOCK_YEAR_NUMBER || mongo_base_type(field->type) != DATEOID ||
		(IsA(year, Const) && !year->constisnull && is_year_type(year->consttype) &&
		 mongo_number_value(year->consttype, year->constvalue) < LAST_YEAR);
}

/* ---- Local time ---- */

static int64
round_down(int64 value, int64 unit)
{
	int64		rest = value % unit;

	return value - (rest < 0 ? rest + unit : rest);
}

/* Returns the beginning of a month, 1 to 24, of an astronomical year. */
static Timestamp
beginning_of_month(int year, int month)
{
	int			day;

	year += month > 12 ? 1 : 0;
	month -= month > 12 ? 12 : 0;
	/* the last year ends later in the east, but earlier than an int64 */
	if (year < -4713 || year > LAST_YEAR + (month == 1 ? 1 : 0))
		return year < 0 ? BEFORE_ALL : AFTER_ALL;
	day = date2j(year, month, 1) - POSTGRES_EPOCH_JDATE;
	return (Timestamp) day * USECS_PER_DAY;
}

/* Returns the beginning of the unit of a time, or of the unit after it. */
static Timestamp
unit_beginning(int unit, Timestamp time, bool following)
{
	int64		micros = units[unit].micros;
	int			months = units[unit].months;

	/* weeks begin on Monday; 3 January 2000 was a Monday */
	int64		shift = unit == CLOCK_WEEK ? 2 * USECS_PER_DAY : 0;
	int64		day;
	int			year;
	int			month;
	int			ignored;
	Timestamp	result;

	if (months == 0)
	{
		result = round_down(time - shift, micros) + shift;
		return following && pg_add_s64_overflow(result, micros, &result) ? AFTER_ALL : result;
	}
	day = round_down(time, USECS_PER_DAY) / USECS_PER_DAY + POSTGRES_EPOCH_JDATE;
	if (day < 0)
		return BEFORE_ALL;
	j2date((int) day, &year, &month, &ignored);
	month = (month - 1) / months * months + 1;
	return beginning_of_month(year, month + (following ? months : 0));
}

/* Returns the beginning of a year in SQL, which has no year 0. */
static Timestamp
year_beginning(double year)
{
	if (isnan(year) || year > 300000)
		return AFTER_ALL;
	if (year < -5000)
		return BEFORE_ALL;
	if (year == 0)
		year = 1;
	return beginning_of_month((int) (year > 0 ? year : year + 1), 1);
}

/* Returns the beginning of the unit after the one that begins then. */
static Timestamp
next_beginning(int unit, Timestamp beginning)
{
	return unit_beginning(unit, beginning == BEFORE_ALL ? MIN_TIMESTAMP : beginning, true);
}

/* ---- Zones ---- */

static pg_tz *
find_zone(const char *name)
{
	pg_tz	   *zone = name[0] == '\0' ? session_timezone : pg_tzset(name);

	if (zone == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" not recognized", name)));
	return zone;
}

/* Returns the instant at which PostgreSQL takes the local time to be. */
static TimestampTz
instant_of_local(Timestamp time, pg_tz *zone)
{
	struct pg_tm tm;
	fsec_t		fraction;

	if (timestamp2tm(time, NULL, &tm, &fraction, NULL, NULL) != 0)
		return time;
	return time + DetermineTimeZoneOffset(&tm, zone) * USECS_PER_SEC;
}

/* A period between two jumps of the clocks, which has one offset. */
typedef struct Segment
{
	TimestampTz start;
	TimestampTz end;
	int64		offset;			/* add it to get the local time */
} Segment;

#define EPOCH_DIFFERENCE	((pg_time_t) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY)

/*
 * Returns the first segment, from BEFORE_ALL on, and then one after another, from a window before
 * 'first' to a window after 'last'.  The last one ends with AFTER_ALL; after it false is returned.
 */
static bool
next_segment(pg_tz *zone, Timestamp first, Timestamp last, Segment *segment)
{
	bool		is_first = segment->end == BEFORE_ALL;
	pg_time_t	time;
	pg_time_t	jump;
	long int	before;
	long int	after;
	int			before_dst;
	int			after_dst;
	int			found;

	if (segment->end == AFTER_ALL)
		return false;
	segment->start = segment->end;
	time = round_down(is_first ? first - WINDOW : segment->start, USECS_PER_SEC) /
		USECS_PER_SEC + EPOCH_DIFFERENCE;
	found = pg_next_dst_boundary(&time, &before, &before_dst, &jump, &after, &after_dst, zone);
	segment->end = AFTER_ALL;
	segment->offset = (found >= 0 ? before : 0) * USECS_PER_SEC;
	if (found > 0 && (jump - EPOCH_DIFFERENCE) < last / USECS_PER_SEC + WINDOW / USECS_PER_SEC)
		segment->end = (jump - EPOCH_DIFFERENCE) * USECS_PER_SEC;
	return true;
}

/* ---- Predicates ---- */

/* Tells whether the bounds of a comparison can be computed only approximately. */
static bool
is_near(const MongoPredicate *predicate)
{
	return predicate->field.time_part < CLOCK_DAY && predicate->field.result_zone != NULL;
}

/*
 * mongo_local_time_exactness
 *		Returns the exactness of a predicate on local time, as mongo_predicate_exactness() does.
 */
MongoExactness
mongo_local_time_exactness(const MongoPredicate *predicate)
{
	bool		is_number = predicate->field.time_part == CLOCK_YEAR_NUMBER;
	MongoTypeKind class = mongo_kind_of_type(predicate->value_type)->compared_as;

	if (predicate->form != MONGO_PREDICATE_SCALAR ||
		(is_near(predicate) && predicate->strategy == MONGO_STRATEGY_NOT_EQUAL) ||
		(is_number ? !is_year_type(predicate->value_type) :
		 class != MONGO_KIND_TIMESTAMP && class != MONGO_KIND_TIMESTAMPTZ))
		return MONGO_NOT_SHIPPABLE;
	return is_near(predicate) ||
		mongo_rounds_timestamp(mongo_base_type(predicate->field.type), predicate->field.typmod) ?
		MONGO_SUPERSET : MONGO_EXACT;
}

/*
 * Computes the bounds of a year: extract(year) is an integer, so a value with a fraction is between
 * two years.
 */
static void
year_bounds(const MongoPredicate *predicate, Datum value, Timestamp *from, Timestamp *after)
{
	Oid			type = predicate->value_type;
	bool		is_float = type == FLOAT8OID;
	bool		is_whole = !is_float && type != NUMERICOID;
	Datum		year = is_whole ? value : DirectFunctionCall1(is_float ? dceil : numeric_ceil, value);
	Datum		whole = is_whole ? value : DirectFunctionCall1(is_float ? dfloor : numeric_floor, value);

	*from = year_beginning(mongo_number_value(type, year));
	*after = year_beginning(mongo_number_value(type, whole) + 1);
}

/* Computes the first local time not before the value, and the first one after it. */
static void
find_bounds(const MongoPredicate *predicate, Datum datum, Timestamp *from, Timestamp *after)
{
	int			unit = predicate->field.time_part;
	pg_tz	   *zone = predicate->field.result_zone == NULL ? NULL : find_zone(predicate->field.result_zone);
	Timestamp	value;

	if (unit == CLOCK_YEAR_NUMBER)
	{
		year_bounds(predicate, datum, from, after);
		return;
	}
	value = mongo_timestamp_value(zone != NULL, predicate->value_type, datum);
	if (TIMESTAMP_NOT_FINITE(value))
		*from = *after = TIMESTAMP_IS_NOEND(value) ? AFTER_ALL : BEFORE_ALL;
	else if (is_near(predicate))
	{
		Segment		segment = {.end = BEFORE_ALL};
		int64		least = PG_INT64_MAX;
		int64		greatest = PG_INT64_MIN;

		while (next_segment(zone, value, value, &segment))
		{
			least = Min(least, segment.offset);
			greatest = Max(greatest, segment.offset);
		}
		*from = unit_beginning(unit, value + least, false);
		*after = unit_beginning(unit, value + greatest, true);
	}
	else if (zone != NULL)
	{
		/* around a jump, two beginnings may be the same instant */
		*from = unit_beginning(unit, value - WINDOW, false);
		while (*from == BEFORE_ALL ||
			   (*from != AFTER_ALL && instant_of_local(*from, zone) < value))
			*from = next_beginning(unit, *from);
		*after = *from;
		while (*after != AFTER_ALL && instant_of_local(*after, zone) <= value)
			*after = next_beginning(unit, *after);
	}
	else
	{
		*after = unit_beginning(unit, value, true);
		*from = unit_beginning(unit, value, value != unit_beginning(unit, value, false));
	}
}

/* Makes these bounds of a value those of the times for which the predicate is true. */
static void
bounds_to_range(const MongoPredicate *predicate, Timestamp *from, Timestamp *after)
{
	int			strategy = predicate->strategy;
	Timestamp	bounds[] = {*from, *after};

	if (mongo_is_upper_bound(strategy))
		*from = BEFORE_ALL;
	else if (strategy == BTGreaterStrategyNumber && !is_near(predicate))
		*from = bounds[1];
	if (strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber)
		*after = AFTER_ALL;
	else if (strategy == BTLessStrategyNumber && !is_near(predicate))
		*after = bounds[0];
}

/* Returns "column OP time". */
static Expr *
make_bound(Var *column, int strategy, Timestamp time)
{
	Oid			type = mongo_base_type(column->vartype);
	Oid			operator = get_opfamily_member(mongo_default_opfamily(type), type, type, strategy);
	Datum		value = type == DATEOID ? DateADTGetDatum((DateADT) (time / USECS_PER_DAY)) : TimestampGetDatum(time);

	return make_opclause(operator, BOOLOID, false, (Expr *) column,
						 (Expr *) makeConst(type, -1, InvalidOid, type == DATEOID ? sizeof(DateADT) : sizeof(Timestamp),
											value, false, type == DATEOID || FLOAT8PASSBYVAL),
						 InvalidOid, InvalidOid);
}

/*
 * mongo_local_time_range
 *		Returns a list of one or two conditions on a column, for estimates: about the same rows
 *		fulfil them as 'clause', which compares the column's local time with a value that can be
 *		estimated.  NIL for any other clause.
 *
 * PostgreSQL knows how a column's values are distributed, but nothing of those of a function
 * without statistics on the expression, which this overrides.
 */
List *
mongo_local_time_range(PlannerInfo *root, MongoColumns *columns, const OpExpr *clause)
{
	MongoPredicate predicate = {.form = MONGO_PREDICATE_SCALAR};
	Oid			operator;
	bool		is_left;
	Node	   *left;
	Node	   *right;
	List	   *variables;
	pg_tz	   *zone;
	Timestamp	from;
	Timestamp	after;
	List	   *range = NIL;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2)
		return NIL;
	is_left = IsA(linitial(clause->args), FuncExpr);
	left = is_left ? linitial(clause->args) : lsecond(clause->args);
	right = is_left ? lsecond(clause->args) : linitial(clause->args);
	operator = !IsA(left, FuncExpr) ? InvalidOid : is_left ? clause->opno : get_commutator(clause->opno);
	if (!OidIsValid(operator) || contain_var_clause(right) ||
		!mongo_local_time_of_node(columns, left, exprType(right), &predicate.field))
		return NIL;
	predicate.strategy = mongo_default_strategy(operator, predicate.field.operator_type);
	predicate.value_type = exprType(right);
	variables = pull_var_clause(left, 0);
	zone = predicate.field.zone[0] == '\0' ? session_timezone : pg_tzset(predicate.field.zone);
	if (predicate.strategy == 0 || predicate.strategy == MONGO_STRATEGY_NOT_EQUAL || zone == NULL ||
		mongo_local_time_exactness(&predicate) == MONGO_NOT_SHIPPABLE || list_length(variables) != 1 ||
		mongo_base_type(((Var *) linitial(variables))->vartype) != mongo_base_type(predicate.field.type))
		return NIL;
	/* calls no function that PostgreSQL would not call for its own estimate */
	right = estimate_expression_value(root, right);
	if (!IsA(right, Const) || ((Const *) right)->constisnull ||
		!mongo_local_time_has_bounds(&predicate.field, right))
		return NIL;
	find_bounds(&predicate, ((Const *) right)->constvalue, &from, &after);
	bounds_to_range(&predicate, &from, &after);
	if (from != BEFORE_ALL && from != AFTER_ALL)
		range = lappend(range, make_bound(linitial(variables), BTGreaterEqualStrategyNumber, instant_of_local(from, zone)));
	if (after != BEFORE_ALL && after != AFTER_ALL)
		range = lappend(range, make_bound(linitial(variables), BTLessStrategyNumber, instant_of_local(after, zone)));
	return range;
}

/* Returns the first millisecond that is not before the instant. */
static int64
millis_of(TimestampTz instant)
{
	bool		exact;
	int64		millis = mongo_timestamp_to_millis(instant, &exact);

	return exact ? millis : millis + 1;
}

/* Appends a range of instants, which may be unbounded. */
static void
append_range(const char *path, TimestampTz low, TimestampTz high, int64 slack, BsonArray *branches)
{
	bson_value_t name = mongo_utf8(path);
	bson_value_t from = mongo_date(low == BEFORE_ALL ? 0 : millis_of(low) - slack);
	bson_value_t to = mongo_date(high == AFTER_ALL ? 0 : millis_of(high) + slack);

	if (low == BEFORE_ALL && high == AFTER_ALL)
		mongo_array_append_template(branches, "{@1: {$type: 'date'}}", name);
	else if (low == BEFORE_ALL)
		mongo_array_append_template(branches, "{@1: {$lt: @2}}", name, to);
	else if (high == AFTER_ALL)
		mongo_array_append_template(branches, "{@1: {$gte: @2}}", name, from);
	else if (from.value.v_datetime < to.value.v_datetime)
		mongo_array_append_template(branches, "{@1: {$gte: @2, $lt: @3}}", name, from, to);
}

/* The most by which reading rounds a timestamp of few decimals, in milliseconds. */
#define ROUNDING	500

/* Appends instants with a local time from 'from' to before 'to'. */
static void
append_local_range(const MongoPredicate *predicate, Timestamp from, Timestamp to,
				   BsonArray *branches)
{
	pg_tz	   *zone = find_zone(predicate->field.zone);
	int64		slack = mongo_rounds_timestamp(mongo_base_type(predicate->field.type),
											   predicate->field.typmod) ? ROUNDING : 0;
	Timestamp	first = from == BEFORE_ALL ? to : from;
	Timestamp	last = to == AFTER_ALL ? from : to;
	Segment		segment = {.end = BEFORE_ALL};
	TimestampTz low = AFTER_ALL;
	TimestampTz high = AFTER_ALL;

	if (from >= to)
		return;
	if (first == AFTER_ALL || last == BEFORE_ALL)
	{
		append_range(predicate->field.path, BEFORE_ALL, AFTER_ALL, 0, branches);
		return;
	}
	while (next_segment(zone, first, last, &segment))
	{
		TimestampTz start = from == BEFORE_ALL ? segment.start :
			Max(segment.start, from - segment.offset);
		TimestampTz end = to == AFTER_ALL ? segment.end : Min(segment.end, to - segment.offset);

		if (start >= end)
			continue;
		if (start != high && low < high)
			append_range(predicate->field.path, low, high, slack, branches);
		if (start != high)
			low = start;
		high = end;
	}
	if (low < high)
		append_range(predicate->field.path, low, high, slack, branches);
}

/*
 * mongo_render_local_time
 *		Renders a predicate on local time for a scalar, as mongo_predicate_render() does.  An
 *		unknown time zone raises 22023.
 */
MongoMatch
mongo_render_local_time(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	BsonArray	branches = mongo_array_create();
	Timestamp	from;
	Timestamp	after;

	find_bounds(predicate, value, &from, &after);
	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL)
	{
		append_local_range(predicate, BEFORE_ALL, from, &branches);
		append_local_range(predicate, after, AFTER_ALL, &branches);
	}
	else
	{
		bounds_to_range(predicate, &from, &after);
		append_local_range(predicate, from, after, &branches);
	}
	if (branches.count == 0)
		return mongo_append_nothing(match, predicate->field.path);
	if (branches.count == 1)
	{
		bson_value_t only = mongo_first_value(branches.bson);
		bson_t		document;

		mongo_bson_view(&document, only.value.v_doc.data, only.value.v_doc.data_len);
		mongo_concat(match, &document);
	}
	else
		mongo_append(match, "$or", mongo_array(branches.bson));
	return MONGO_MATCH_SOME;
}
