/*-------------------------------------------------------------------------
 *
 * expression_time.c
 *		Rows of the functions and operators of dates and timestamps.
 *
 * MongoDB computes in UTC, as timestamp and date do.  What depends on the
 * session's time zone is not sent: a plan may outlive the setting.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression_parts.h"

#include "catalog/pg_type_d.h"
#include "local_time.h"
#include "nodes/nodeFuncs.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

/* translate_date expands a template over the one argument that is a date. */
static bool
translate_date(const MongoCall *call, Node *date, const char *template, MongoValue *result)
{
	MongoValue	value;

	if (!mongo_normal_value_of_node(call->scope, date, &value))
		return false;
	memset(result, 0, sizeof(*result));
	result->expression = mongo_expand_template(template, &value, 1);
	result->type = exprType(call->node);
	result->typmod = -1;
	result->nullable = value.nullable;
	return true;
}

/* MongoDB's units are called as PostgreSQL's, and so much smaller than these. */
static const struct
{
	const char *unit;
	const char *format;			/* of a template, from that of the date */
}			truncations[] =
{
	{"microseconds", "%s"},
	{"milliseconds", "%s"},
	{"second", "{$dateTrunc: {date: %s, unit: 'second'}}"},
	{"minute", "{$dateTrunc: {date: %s, unit: 'minute'}}"},
	{"hour", "{$dateTrunc: {date: %s, unit: 'hour'}}"},
	{"day", "{$dateTrunc: {date: %s, unit: 'day'}}"},
	{"week", "{$dateTrunc: {date: %s, unit: 'week', startOfWeek: 'monday'}}"},
	{"month", "{$dateTrunc: {date: %s, unit: 'month'}}"},
	{"quarter", "{$dateTrunc: {date: %s, unit: 'quarter'}}"},
	{"year", "{$dateTrunc: {date: %s, unit: 'year'}}"},
};

/*
 * fixed_offset: by how much the clocks of a time zone are ahead of UTC, in milliseconds,
 * if they always are.  Of others MongoDB has rules of its own.
 */
static bool
fixed_offset(Node *zone, int64 *offset)
{
	const char *name = mongo_constant_word(zone);
	pg_tz	   *rules;
	long int	seconds = 0;

	if (name == NULL)
		return false;
	if (strcmp(name, "gmt") != 0)
	{
		name = mongo_constant_zone(zone);
		rules = name == NULL ? NULL : pg_tzset(name);
		if (rules == NULL || !pg_get_timezone_offset(rules, &seconds))
			return false;
	}
	*offset = seconds * INT64CONST(1000);
	return true;
}

/* fixed_interval: the same of a constant interval, of which whole seconds count. */
static bool
fixed_interval(Node *zone, int64 *offset)
{
	const Const *constant = (Const *) zone;
	const Interval *interval;

	if (!IsA(zone, Const) || constant->constisnull || constant->consttype != INTERVALOID)
		return false;
	interval = DatumGetIntervalP(constant->constvalue);
	if (interval->month != 0 || interval->day != 0 || interval->time % USECS_PER_SEC != 0)
		return false;
	*offset = interval->time / 1000;
	return true;
}

/* later: the template of a date so many milliseconds later. */
static const char *
later(const char *template, int64 millis)
{
	return millis == 0 ? template :
		psprintf("{$add: [%s, " INT64_FORMAT "]}", template, millis);
}

/* date_trunc(unit, timestamp) and date_trunc(unit, timestamptz, zone) */
static bool
translate_date_trunc(const MongoCall *call, MongoValue *result)
{
	const char *unit = mongo_constant_word(linitial(call->args));
	int64		offset = 0;

	if (unit == NULL ||
		(list_length(call->args) > 2 && !fixed_offset(lthird(call->args), &offset)))
		return false;
	for (size_t i = 0; i < lengthof(truncations); i++)
	{
		if (strcmp(truncations[i].unit, unit) == 0)
			return translate_date(call, lsecond(call->args),
								  later(psprintf(truncations[i].format, later("@1", offset)),
										-offset), result);
	}
	return false;
}

/* timestamp or timestamptz AT TIME ZONE of a name or an interval */
static bool
translate_time_zone(const MongoCall *call, MongoValue *result)
{
	bool		is_local = exprType(call->node) == TIMESTAMPTZOID;
	int64		offset;

	return (fixed_offset(linitial(call->args), &offset) ||
			fixed_interval(linitial(call->args), &offset)) &&
		translate_date(call, lsecond(call->args), later("@1", is_local ? -offset : offset),
					   result);
}

/* There is no year 0: before year 1 comes -1. */
#define WITHOUT_ZERO(operator) \
	"{$add: [{" operator ": @1}, {$cond: [{$lte: [{" operator ": @1}, 0]}, -1, 0]}]}"
#define QUARTER "{$toInt: {$divide: [{$add: [{$month: @1}, 2]}, 3]}}"
#define MILLIS_OF_MINUTE "{$add: [{$multiply: [{$second: @1}, 1000]}, {$millisecond: @1}]}"

/*
 * Fields of a date.  extract() gives a numeric, date_part() a double, each
 * computed from whole numbers as PostgreSQL does it.
 */
typedef struct DateField
{
	const char *name;
	const char *whole;			/* template of an integer, or NULL */
	const char *numeric;		/* else: with the decimals that extract() has */
	const char *floating;
	bool		of_time;		/* a date has none */
} DateField;

static const DateField date_fields[] =
{
	{"year", .whole = WITHOUT_ZERO("$year")},
	{"isoyear", .whole = WITHOUT_ZERO("$isoWeekYear")},
	{"quarter", .whole = QUARTER},
	{"month", .whole = "{$month: @1}"},
	{"week", .whole = "{$isoWeek: @1}"},
	{"day", .whole = "{$dayOfMonth: @1}"},
	{"doy", .whole = "{$dayOfYear: @1}"},
	{"dow", .whole = "{$subtract: [{$dayOfWeek: @1}, 1]}"},
	{"isodow", .whole = "{$isoDayOfWeek: @1}"},
	{"hour", "{$hour: @1}", .of_time = true},
	{"minute", "{$minute: @1}", .of_time = true},
	{"second",
		.numeric = "{$multiply: [" MILLIS_OF_MINUTE ", {$toDecimal: '0.001000'}]}",
		.floating = "{$add: [{$second: @1}, {$divide: [{$multiply: [{$millisecond: @1}, 1000]}, 1000000]}]}",
	.of_time = true},
	{"milliseconds",
		.numeric = "{$multiply: [" MILLIS_OF_MINUTE ", {$toDecimal: '1.000'}]}",
		.floating = "{$add: [{$multiply: [{$second: @1}, 1000]}, {$millisecond: @1}]}",
	.of_time = true},
	{"microseconds", "{$multiply: [" MILLIS_OF_MINUTE ", 1000]}", .of_time = true},
	{"epoch",
		.numeric = "{$multiply: [{$toLong: @1}, {$toDecimal: '0.001000'}]}",
	.floating = "{$divide: [{$toDouble: {$multiply: [{$toLong: @1}, 1000]}}, 1000000]}"},
};

/* extract(field from ...) and date_part(field, ...) */
static bool
translate_field(const MongoCall *call, MongoValue *result)
{
	const char *name = mongo_constant_word(linitial(call->args));
	bool		is_numeric = exprType(call->node) == NUMERICOID;
	bool		is_date = exprType(lsecond(call->args)) == DATEOID;

	for (size_t i = 0; name != NULL && i < lengthof(date_fields); i++)
	{
		const DateField *field = &date_fields[i];
		const char *template = is_numeric ? field->numeric : field->floating;

		if (strcmp(field->name, name) != 0 || (is_date && field->of_time))
			continue;
		if (field->whole != NULL)
			template = field->whole;
		else if (is_date)
			template = "{$toLong: {$divide: [{$toLong: @1}, 1000]}}";
		return translate_date(call, lsecond(call->args),
							  psprintf(is_numeric ? "{$toDecimal: %s}" : "{$toDouble: %s}",
									   template), result);
	}
	return false;
}

/* From its midnight, for $dateAdd loses milliseconds of what is before 1970. */
#define MONTHS \
	"{$add: [{$dateAdd: {startDate: {$dateTrunc: {date: @1, unit: 'day'}}, " \
	"unit: 'month', amount: " INT64_FORMAT "}}, " \
	"{$subtract: [@1, {$dateTrunc: {date: @1, unit: 'day'}}]}]}"

/* interval_template: @1 plus (sign 1) or minus (-1) a constant interval, or NULL. */
static const char *
interval_template(const Const *constant, int sign, bool in_session_zone)
{
	const Interval *interval;
	const char *moved = "@1";
	int64		millis;

	if (!IsA(constant, Const) || constant->constisnull)
		return NULL;
	interval = DatumGetIntervalP(constant->constvalue);
	if (interval->time % 1000 != 0 ||
		(in_session_zone && (interval->month != 0 || interval->day != 0)))
		return NULL;
	if (interval->month != 0)
		moved = psprintf(MONTHS, (int64) sign * interval->month);
	millis = sign * (interval->day * INT64CONST(86400000) + interval->time / 1000);
	return later(moved, millis);
}

/* timestamp or date + interval; timestamptz + interval without days and months */
static bool
add_interval(const MongoCall *call, int sign, MongoValue *result)
{
	const char *template = interval_template(lsecond(call->args), sign,
											 exprType(call->node) == TIMESTAMPTZOID);

	return template != NULL && translate_date(call, linitial(call->args), template, result);
}

static bool
translate_plus_interval(const MongoCall *call, MongoValue *result)
{
	return add_interval(call, 1, result);
}

static bool
translate_minus_interval(const MongoCall *call, MongoValue *result)
{
	return add_interval(call, -1, result);
}

const MongoExpressionRow mongo_time_rows[] =
{
	{F_DATE_TRUNC_TEXT_TIMESTAMP, .translate = translate_date_trunc},
	{F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT, .translate = translate_date_trunc},
	{F_TIMEZONE_TEXT_TIMESTAMP, .translate = translate_time_zone},
	{F_TIMEZONE_TEXT_TIMESTAMPTZ, .translate = translate_time_zone},
	{F_TIMEZONE_INTERVAL_TIMESTAMP, .translate = translate_time_zone},
	{F_TIMEZONE_INTERVAL_TIMESTAMPTZ, .translate = translate_time_zone},
	{F_EXTRACT_TEXT_TIMESTAMP, .translate = translate_field},
	{F_EXTRACT_TEXT_DATE, .translate = translate_field},
	{F_DATE_PART_TEXT_TIMESTAMP, .translate = translate_field},
	{F_TO_CHAR_TIMESTAMP_TEXT, .translate = mongo_to_char},
	{F_TIMESTAMP_PL_INTERVAL, .translate = translate_plus_interval},
	{F_TIMESTAMP_MI_INTERVAL, .translate = translate_minus_interval},
	{F_TIMESTAMPTZ_PL_INTERVAL, .translate = translate_plus_interval},
	{F_TIMESTAMPTZ_MI_INTERVAL, .translate = translate_minus_interval},
	{F_DATE_PL_INTERVAL, .translate = translate_plus_interval},
	{F_DATE_MI_INTERVAL, .translate = translate_minus_interval},
	{F_DATE_PLI, .template = "{$add: [@1, {$multiply: [@2, 86400000]}]}"},
	{F_DATE_MII, .template = "{$subtract: [@1, {$multiply: [@2, 86400000]}]}"},
	{F_DATE_MI, .template = "{$toLong: {$divide: [{$subtract: [@1, @2]}, 86400000]}}"},
	{F_TIMESTAMP_DATE, .template = "@1"},
	{F_DATE_TIMESTAMP, "@1", .flags = MONGO_ROW_RAW_RESULT},
	{.function = InvalidOid}
};
