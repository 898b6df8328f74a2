/*-------------------------------------------------------------------------
 *
 * local_time.c
 *		Conditions on what clocks show, and what they say of the column itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "common.h"
#include "convert.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "common/int.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/scansup.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/*-------------------------------------------------------------------------
 * Conditions on what clocks show: ::date, date_trunc() and the year of a time.
 *
 * In a segment of time between two jumps of its clocks a zone has one offset from UTC.
 * "Before B by the clocks" is a union of parts of such segments, kept as the instants
 * at which it begins or ceases to be true; and so is any union of ranges of local time,
 * for which the instants of all its bounds are taken together.
 *-------------------------------------------------------------------------
 */

/* What of a time is compared; the beginning of the unit that it is in. */
typedef enum ClockUnit
{
	CLOCK_TIME,					/* all of it */
	CLOCK_SECOND,
	CLOCK_MINUTE,
	CLOCK_HOUR,
	CLOCK_DAY,
	CLOCK_WEEK,
	CLOCK_MONTH,
	CLOCK_QUARTER,
	CLOCK_YEAR,
	CLOCK_YEAR_NUMBER			/* a number, and not the beginning */
} ClockUnit;

static const struct
{
	const char *name;			/* of date_trunc() */
	int64		micros;			/* its length, if all have one */
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

/* No zone's clocks are further from UTC than 7 days (POSIX), nor look further ahead. */
#define WINDOW			(8 * USECS_PER_DAY)

/* In place of what is before, and after, all that a timestamp can be. */
#define BEFORE_ALL		PG_INT64_MIN
#define AFTER_ALL		PG_INT64_MAX

/*
 * Nodes
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

/* instant_of_node: a column of type timestamptz. */
static bool
instant_of_node(MongoColumns *columns, Node *node, MongoField *field)
{
	return mongo_field_of_node(columns, node, field) && field->operator_type == TIMESTAMPTZOID;
}

/* local_of_node: a timestamp, which may be that of an instant in a zone. */
static bool
local_of_node(MongoColumns *columns, Node *node, MongoField *field, const char **zone)
{
	const FuncExpr *call = (FuncExpr *) node;

	*zone = "utc";
	if (mongo_field_of_node(columns, node, field))
		return field->operator_type == TIMESTAMPOID;
	if (!IsA(node, FuncExpr))
		return false;
	if (call->funcid == F_TIMESTAMP_TIMESTAMPTZ)
	{
		*zone = "";
		return instant_of_node(columns, linitial(call->args), field);
	}
	if (call->funcid != F_TIMEZONE_TEXT_TIMESTAMPTZ)
		return false;
	*zone = mongo_constant_zone(linitial(call->args));
	return *zone != NULL && instant_of_node(columns, lsecond(call->args), field);
}

/* is_year: of extract() and date_part() */
static bool
is_year(Node *node)
{
	const char *name = mongo_constant_word(node);

	return name != NULL && strcmp(name, "year") == 0;
}

/*
 * field_of_call: what the call reads, by clocks in which zone, and, of an instant, in
 * which zone it is that of the time.
 */
static bool
field_of_call(MongoColumns *columns, FuncExpr *call, MongoField *field,
			  const char **zone, int *unit, const char **result_zone)
{
	List	   *args = call->args;

	*zone = "";
	*unit = CLOCK_YEAR_NUMBER;
	*result_zone = NULL;
	switch (call->funcid)
	{
		case F_DATE_TIMESTAMPTZ:
			*unit = CLOCK_DAY;
			return instant_of_node(columns, linitial(args), field);
		case F_DATE_TIMESTAMP:
			*unit = CLOCK_DAY;
			return local_of_node(columns, linitial(args), field, zone);
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
			return find_unit(linitial(args), unit) &&
				local_of_node(columns, lsecond(args), field, zone);
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
			*result_zone = "";
			return find_unit(linitial(args), unit) &&
				instant_of_node(columns, lsecond(args), field);
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
			*zone = *result_zone = mongo_constant_zone(lthird(args));
			return *zone != NULL && find_unit(linitial(args), unit) &&
				instant_of_node(columns, lsecond(args), field);
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
			return is_year(linitial(args)) && instant_of_node(columns, lsecond(args), field);
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_DATE_PART_TEXT_TIMESTAMP:
			return is_year(linitial(args)) && local_of_node(columns, lsecond(args), field, zone);
		default:
			*unit = CLOCK_TIME;
			return local_of_node(columns, (Node *) call, field, zone);
	}
}

bool
mongo_local_time_of_node(MongoColumns *columns, Node *node, Oid value_type, MongoField *field)
{
	const char *zone = "utc";
	const char *result_zone = NULL;
	int			unit;

	if (IsA(node, FuncExpr))
	{
		if (!field_of_call(columns, (FuncExpr *) node, field, &zone, &unit, &result_zone))
			return false;
		field->operator_type = exprType(node);
	}
	else if (value_type != TIMESTAMPTZOID || !mongo_field_of_node(columns, node, field))
		return false;
	else if (field->operator_type == DATEOID || field->operator_type == TIMESTAMPOID)
		unit = field->operator_type == DATEOID ? CLOCK_DAY : CLOCK_TIME;
	else
		return false;
	field->zone = zone;
	field->clock_unit = unit;
	field->result_zone = value_type == TIMESTAMPTZOID && result_zone == NULL ? "" : result_zone;
	return true;
}

/*
 * Local time
 */

static int64
round_down(int64 value, int64 unit)
{
	int64		rest = value % unit;

	return value - (rest < 0 ? rest + unit : rest);
}

/* beginning_of_month: counted from any month on, in a year as astronomers count. */
static Timestamp
beginning_of_month(int year, int month)
{
	int			day;

	year += month > 12 ? 1 : 0;
	month -= month > 12 ? 12 : 0;
	if (year < -4713 || year > 294276)
		return year < 0 ? BEFORE_ALL : AFTER_ALL;
	day = date2j(year, month, 1) - POSTGRES_EPOCH_JDATE;
	return (Timestamp) day * USECS_PER_DAY;
}

/* unit_beginning: of the unit that a time is in, or of the one that follows it. */
static Timestamp
unit_beginning(int unit, Timestamp time, bool following)
{
	int64		micros = units[unit].micros;
	int			months = units[unit].months;

	/* weeks begin on Mondays, as 3 January 2000 was one */
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

/* year_beginning: of a year as SQL counts, which has no year 0. */
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

/* A range of local time, from 'low' on and before 'high'. */
typedef struct LocalRange
{
	Timestamp	low;
	Timestamp	high;
} LocalRange;

/* Two ranges for "<>", and as many as there are exceptions beside them. */
#define MAX_RANGES		32

typedef struct LocalRanges
{
	LocalRange	ranges[MAX_RANGES];
	int			count;
} LocalRanges;

static void
add_range(LocalRanges *ranges, Timestamp low, Timestamp high)
{
	if (low >= high)
		return;
	if (ranges->count > 0 && ranges->ranges[ranges->count - 1].high >= low)
		ranges->ranges[ranges->count - 1].high = high;
	else if (ranges->count < MAX_RANGES)
		ranges->ranges[ranges->count++] = (LocalRange) {low, high};
	else
		elog(ERROR, "too many ranges of local time");
}

/*
 * add_local_ranges: where "time OP value", when 'from' is the first time that is not before
 * the value, and 'after' the first one after it.
 */
static void
add_local_ranges(LocalRanges *ranges, int strategy, Timestamp from, Timestamp after)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			add_range(ranges, BEFORE_ALL, from);
			break;
		case BTLessEqualStrategyNumber:
			add_range(ranges, BEFORE_ALL, after);
			break;
		case BTEqualStrategyNumber:
			add_range(ranges, from, after);
			break;
		case BTGreaterEqualStrategyNumber:
			add_range(ranges, from, AFTER_ALL);
			break;
		case BTGreaterStrategyNumber:
			add_range(ranges, after, AFTER_ALL);
			break;
		default:
			add_range(ranges, BEFORE_ALL, from);
			add_range(ranges, after, AFTER_ALL);
			break;
	}
}

/* extract(year) is whole, so a bound with a fraction is one between two years. */
static void
add_year_ranges(LocalRanges *ranges, const MongoPredicate *predicate, Datum value)
{
	double		number;
	double		above;

	if (predicate->value_type == FLOAT8OID)
	{
		number = ceil(DatumGetFloat8(value));
		above = floor(DatumGetFloat8(value)) + 1;
	}
	else
	{
		number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
													DirectFunctionCall1(numeric_ceil, value)));
		above = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
												   DirectFunctionCall1(numeric_floor, value))) + 1;
	}
	add_local_ranges(ranges, predicate->strategy, year_beginning(number), year_beginning(above));
}

/*
 * Zones
 */

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

/* instant_of_local: when clocks in the zone show this, as PostgreSQL sees it. */
static TimestampTz
instant_of_local(Timestamp time, pg_tz *zone)
{
	struct pg_tm tm;
	fsec_t		fraction;

	if (timestamp2tm(time, NULL, &tm, &fraction, NULL, NULL) != 0)
		return time;
	return time + DetermineTimeZoneOffset(&tm, zone) * USECS_PER_SEC;
}

/* A time between two jumps of the clocks, which has one offset. */
typedef struct Segment
{
	TimestampTz start;
	TimestampTz end;
	int64		offset;			/* to be added for the local time */
} Segment;

#define EPOCH_DIFFERENCE	((pg_time_t) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY)

/*
 * next_segment: the first one from before_all on, and then those that follow, as far as
 * the window around 'middle'; false behind the last, which ends with all time.
 */
static bool
next_segment(pg_tz *zone, Timestamp middle, Segment *segment)
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
	time = round_down(is_first ? middle - WINDOW : segment->start, USECS_PER_SEC) /
		USECS_PER_SEC + EPOCH_DIFFERENCE;
	found = pg_next_dst_boundary(&time, &before, &before_dst, &jump, &after, &after_dst, zone);
	segment->end = AFTER_ALL;
	segment->offset = (found >= 0 ? before : 0) * USECS_PER_SEC;
	if (found > 0 && (jump - EPOCH_DIFFERENCE) < middle / USECS_PER_SEC + WINDOW / USECS_PER_SEC)
		segment->end = (jump - EPOCH_DIFFERENCE) * USECS_PER_SEC;
	return true;
}

/* The instants at which something begins or ceases to be true. */
typedef struct Changes
{
	TimestampTz instants[4 * MAX_RANGES];
	int			count;
	bool		at_first;		/* is it true before all of them? */
} Changes;

static void
add_change(Changes *changes, TimestampTz instant)
{
	int			i = changes->count;

	if (changes->count >= (int) lengthof(changes->instants))
		elog(ERROR, "too many ranges of instants");
	for (; i > 0 && changes->instants[i - 1] > instant; i--)
		changes->instants[i] = changes->instants[i - 1];
	changes->instants[i] = instant;
	changes->count++;
}

/* add_before: of "clocks show a time before 'bound'". */
static void
add_before(Changes *changes, Timestamp bound, pg_tz *zone)
{
	Segment		segment = {.end = BEFORE_ALL};
	bool		is_before = true;

	if (bound == BEFORE_ALL || bound == AFTER_ALL)
		return;
	while (next_segment(zone, bound, &segment))
	{
		TimestampTz instant = bound - segment.offset;

		if (is_before != (segment.start < instant))
		{
			add_change(changes, segment.start);
			is_before = !is_before;
		}
		if (is_before && instant < segment.end)
		{
			add_change(changes, instant);
			is_before = false;
		}
	}
}

/* changes_of_ranges: of "clocks show a time within one of the ranges". */
static void
changes_of_ranges(Changes *changes, const LocalRanges *ranges, pg_tz *zone)
{
	changes->at_first = ranges->count > 0 && ranges->ranges[0].low == BEFORE_ALL;
	for (int i = 0; i < ranges->count; i++)
	{
		add_before(changes, ranges->ranges[i].low, zone);
		add_before(changes, ranges->ranges[i].high, zone);
	}
}

/* compare: "left OP right" */
static bool
compare(int strategy, int64 left, int64 right)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return left < right;
		case BTLessEqualStrategyNumber:
			return left <= right;
		case BTEqualStrategyNumber:
			return left == right;
		case BTGreaterEqualStrategyNumber:
			return left >= right;
		case BTGreaterStrategyNumber:
			return left > right;
		default:
			return left != right;
	}
}

/*
 * add_instant_ranges: where the instant of the unit's beginning is as asked for.  Around
 * a jump two beginnings may have one instant.
 */
static void
add_instant_ranges(LocalRanges *ranges, const MongoPredicate *predicate, TimestampTz value,
				   pg_tz *zone)
{
	int			unit = predicate->clock_unit;
	Timestamp	time = unit_beginning(unit, value - WINDOW, false);
	Timestamp	low = BEFORE_ALL;
	bool		was = compare(predicate->strategy, time, value);

	while (time < value + WINDOW)
	{
		bool		is = time == BEFORE_ALL ? was :
			compare(predicate->strategy, instant_of_local(time, zone), value);

		if (was && !is)
			add_range(ranges, low, time);
		if (is && !was)
			low = time;
		was = is;
		time = time == BEFORE_ALL ? unit_beginning(unit, MIN_TIMESTAMP, true) : unit_beginning(unit, time, true);
	}
	if (was != compare(predicate->strategy, value + 1, value))
	{
		if (was)
			add_range(ranges, low, time);
		low = time;
		was = !was;
	}
	if (was)
		add_range(ranges, low, AFTER_ALL);
}

/*
 * add_near_ranges: a superset, where the time itself is taken for an instant or the unit
 * may be repeated: by the least and the greatest offset there is around.
 */
static void
add_near_ranges(LocalRanges *ranges, const MongoPredicate *predicate, TimestampTz value,
				pg_tz *zone)
{
	Segment		segment = {.end = BEFORE_ALL};
	int64		least = PG_INT64_MAX;
	int64		greatest = PG_INT64_MIN;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL)
	{
		add_range(ranges, BEFORE_ALL, AFTER_ALL);
		return;
	}
	while (next_segment(zone, value, &segment))
	{
		least = Min(least, segment.offset);
		greatest = Max(greatest, segment.offset);
	}
	add_local_ranges(ranges, predicate->strategy == BTLessStrategyNumber ? BTLessEqualStrategyNumber :
					 predicate->strategy == BTGreaterStrategyNumber ? BTGreaterEqualStrategyNumber :
					 predicate->strategy,
					 unit_beginning(predicate->clock_unit, value + least, false),
					 unit_beginning(predicate->clock_unit, value + greatest, true));
}

/*
 * Predicates
 */

static bool
is_near(const MongoPredicate *predicate)
{
	return predicate->clock_unit < CLOCK_DAY &&
		(predicate->result_zone != NULL || predicate->value_type == TIMESTAMPTZOID);
}

MongoGrade
mongo_local_time_grade(const MongoPredicate *predicate)
{
	bool		is_number = predicate->clock_unit == CLOCK_YEAR_NUMBER;
	MongoTypeKind class = mongo_kind_of_type(predicate->value_type)->class;

	if (predicate->form != MONGO_PREDICATE_SCALAR ||
		(is_number ? predicate->value_type != NUMERICOID && predicate->value_type != FLOAT8OID :
		 class != MONGO_KIND_TIMESTAMP && class != MONGO_KIND_TIMESTAMPTZ))
		return MONGO_NOT_SHIPPABLE;
	return is_near(predicate) ||
		mongo_rounds_timestamp(getBaseType(predicate->column_type), predicate->column_typmod) ?
		MONGO_SUPERSET : MONGO_EXACT;
}

/* value_of: as a time that clocks show, or as an instant. */
static Timestamp
value_of(const MongoPredicate *predicate, Datum value)
{
	int			overflow;

	if (predicate->result_zone != NULL && predicate->value_type == DATEOID)
		return date2timestamptz_opt_overflow(DatumGetDateADT(value), &overflow);
	if (predicate->result_zone != NULL && predicate->value_type == TIMESTAMPOID)
		return timestamp2timestamptz_opt_overflow(DatumGetTimestamp(value), &overflow);
	if (predicate->value_type == DATEOID)
		return date2timestamp_opt_overflow(DatumGetDateADT(value), &overflow);
	return DatumGetTimestamp(value);
}

/* find_ranges: of local time. */
static void
find_ranges(const MongoPredicate *predicate, Datum datum, LocalRanges *ranges)
{
	int			unit = predicate->clock_unit;
	Timestamp	value;
	Timestamp	low;

	if (unit == CLOCK_YEAR_NUMBER)
	{
		add_year_ranges(ranges, predicate, datum);
		return;
	}
	value = value_of(predicate, datum);
	if (TIMESTAMP_NOT_FINITE(value))
		low = TIMESTAMP_IS_NOEND(value) ? AFTER_ALL : BEFORE_ALL;
	else if (is_near(predicate))
	{
		add_near_ranges(ranges, predicate, value, find_zone(predicate->result_zone));
		return;
	}
	else if (predicate->result_zone != NULL)
	{
		add_instant_ranges(ranges, predicate, value, find_zone(predicate->result_zone));
		return;
	}
	else
		low = unit_beginning(unit, value, value != unit_beginning(unit, value, false));
	add_local_ranges(ranges, predicate->strategy, low,
					 TIMESTAMP_NOT_FINITE(value) ? low : unit_beginning(unit, value, true));
}

/* millis_of: the first millisecond that is not before the instant. */
static int64
millis_of(TimestampTz instant)
{
	bool		exact;
	int64		millis = mongo_timestamp_to_millis(instant, &exact);

	return exact ? millis : millis + 1;
}

/* append_range: of instants, whose ends may be those of all time. */
static void
append_range(const char *path, TimestampTz low, TimestampTz high, int64 slack,
			 BsonArray *branches)
{
	bson_value_t name = bson_utf8(path);
	bson_value_t from = bson_date(low == BEFORE_ALL ? 0 : millis_of(low) - slack);
	bson_value_t to = bson_date(high == AFTER_ALL ? 0 : millis_of(high) + slack);

	if (low == BEFORE_ALL && high == AFTER_ALL)
		bson_array_append_template(branches, "{@1: {$type: 'date'}}", name);
	else if (low == BEFORE_ALL)
		bson_array_append_template(branches, "{@1: {$lt: @2}}", name, to);
	else if (high == AFTER_ALL)
		bson_array_append_template(branches, "{@1: {$gte: @2}}", name, from);
	else if (from.value.v_datetime < to.value.v_datetime)
		bson_array_append_template(branches, "{@1: {$gte: @2, $lt: @3}}", name, from, to);
}

/* What reading a timestamp of few decimals may move it by, in milliseconds. */
#define ROUNDING	500

MongoMatch
mongo_render_local_time(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	LocalRanges ranges = {.count = 0};
	Changes		changes = {.count = 0};
	BsonArray	branches = bson_array_create();
	bool		is_true;
	TimestampTz low = BEFORE_ALL;
	bool		rounds = mongo_rounds_timestamp(getBaseType(predicate->column_type),
												predicate->column_typmod);

	find_ranges(predicate, value, &ranges);
	changes_of_ranges(&changes, &ranges, find_zone(predicate->zone));
	is_true = changes.at_first;
	for (int i = 0; i <= changes.count; i++)
	{
		TimestampTz instant = i < changes.count ? changes.instants[i] : AFTER_ALL;

		/* what changes twice at once does not change */
		if (i + 1 < changes.count && changes.instants[i + 1] == instant)
		{
			i++;
			continue;
		}
		if (is_true)
			append_range(predicate->path, low, instant, rounds ? ROUNDING : 0, &branches);
		low = instant;
		is_true = !is_true;
	}
	if (branches.count == 0)
		return mongo_append_nothing(match, predicate->path);
	if (branches.count == 1)
	{
		bson_value_t only = bson_first(branches.bson);
		bson_t		document;

		bson_view(&document, only.value.v_doc.data, only.value.v_doc.data_len);
		bson_concat(match, &document);
	}
	else
		BSON_APPEND_ARRAY(match, "$or", branches.bson);
	return MONGO_MATCH_SOME;
}

/*-------------------------------------------------------------------------
 * What a condition on a function of a column says about the column.
 *
 * The table has a row for each function that grows with one of its arguments.
 *-------------------------------------------------------------------------
 */

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
}			trunc_units[] =
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
	for (size_t i = 0; i < lengthof(trunc_units); i++)
	{
		if (pg_strcasecmp(trunc_units[i].unit, TextDatumGetCString(unit->constvalue)) != 0)
			continue;
		if (bounds_below(comparison->strategy))
			result = add(result, implied_comparison(argument, BTGreaterEqualStrategyNumber,
													has_zone ? shifted(comparison->value, interval_constant(0, -1, 0), DT_NOBEGIN) :
													comparison->value, InvalidOid));
		if (bounds_above(comparison->strategy))
			result = add(result, implied_comparison(argument, BTLessStrategyNumber,
													shifted(comparison->value,
															interval_constant(trunc_units[i].months,
																			  trunc_units[i].days + has_zone,
																			  trunc_units[i].micros), DT_NOEND),
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
