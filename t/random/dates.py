"""Random conditions on dates and times, for t/random/queries.py, and their columns.

Their meaning depends on the session's time zone, which is drawn with the other settings.  The
times are those at which clocks of these time zones jump, or close to them.
"""
import datetime

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

# Jumps of clocks forward and back, some at midnight, some by half an hour or a day.
JUMPS = ["2024-03-31 01:00", "2024-10-27 01:00",   # Europe/Berlin
         "2006-04-02 03:31", "2006-10-29 02:31",   # America/St_Johns, at one minute past midnight
         "2011-12-30 10:00", "2011-09-24 14:00",   # Pacific/Apia, which had no 30 December
         "2012-11-04 05:00", "2013-03-10 05:00",   # America/Havana, at 1 and at 0 o'clock
         "2018-11-04 03:00", "2018-02-18 02:00",   # America/Sao_Paulo, at midnight
         "2024-04-06 15:00", "2024-10-05 15:30",   # Australia/Lord_Howe, by half an hour
         "1972-01-07 00:44:30", "2024-01-01 00:00", "2024-12-31 23:00", "1969-12-31 23:59:59", "0001-01-01 12:00"]
# Beginnings of days, months and years.
BEGINNINGS = ["2024-03-31", "2024-10-27", "2006-10-29", "2011-12-30", "2011-12-31", "2012-11-04", "2018-11-04",
              "2024-10-06", "1972-01-07", "2024-01-01", "2025-01-01", "1970-01-01", "2006-11-01", "2012-01-01", "0001-01-01"]
EXTREMES = ["infinity", "-infinity", "4713-01-01 BC", "0044-03-15 BC", "294270-01-01"]
ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "America/Havana", "America/Sao_Paulo",
         "australia/lord_howe", "Africa/Monrovia", "EST", "<+12:34>-12:34"]
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "MONTH", "decade", "milliseconds"]
OPERATORS = ["=", "<", "<=", ">", ">=", "<>", "="]
COLUMNS = ["ck", "ck", "ck", "cn", "cd", "c0", "ts"]
SECONDS = [0, 0, 0, 1, -1, 60, 3600, -3600, 1800, 7200, 43200, -43200, 86400, -86400, 0.001, -0.001, 5400]


def moment(rng):
    value = datetime.datetime.fromisoformat(rng.choice(JUMPS + BEGINNINGS)).replace(tzinfo=datetime.timezone.utc)
    try:
        return value + datetime.timedelta(seconds=rng.choice(SECONDS) + rng.choice([0, 0, 3600 * rng.randint(-14, 14)]))
    except OverflowError:
        return value


def stored(rng):
    """Returns a date for a document: in whole milliseconds."""
    return moment(rng)


def literal(rng, sql_type):
    kind = rng.random()
    if kind < 0.06:
        text = rng.choice(EXTREMES)
    elif kind < 0.5 or sql_type == "date":
        text = rng.choice(BEGINNINGS)
    else:
        text = moment(rng).strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")
        if sql_type == "timestamptz" and rng.random() < 0.3:
            text += "+00"
    text = "'%s'::%s" % (text, sql_type)
    # the planner sees no constant
    return "(SELECT %s)" % text if rng.random() < 0.2 else text


def any_literal(rng):
    if rng.random() < 0.05:
        return rng.choice(["current_date", "now()", "current_date - 7000", "NULL::date"])
    return literal(rng, rng.choice(["date", "timestamp", "timestamptz"]))


def local_time(rng, column):
    """Returns an expression of local time."""
    kind = rng.random()
    if column in ("cn", "cd") and kind < 0.7:
        return column
    if column in ("cn", "cd") or kind < 0.5:
        return column + "::timestamp"
    return "(%s AT TIME ZONE '%s')" % (column, rng.choice(ZONES))


def date_condition(rng):
    column = rng.choice(COLUMNS)
    operator = rng.choice(OPERATORS)
    local = local_time(rng, column)
    kind = rng.random()
    if kind < 0.2:
        left, right = column, any_literal(rng)
    elif kind < 0.25:
        left = "(%s %s interval '%s')" % (column if column != "cd" else "ck", rng.choice("+-"), rng.choice(
            ["1 day", "30 days", "1 hour", "36 hours", "1 day 2 hours", "-2 days", "1 day -1 hour", "90 seconds", "0.5 seconds", "1 month", "0"]))
        right = any_literal(rng)
    elif kind < 0.3:
        left, right = local, literal(rng, rng.choice(["timestamp", "timestamp", "date", "timestamptz"]))
    elif kind < 0.5:
        left = "(%s)::date" % rng.choice([column, local])
        right = literal(rng, rng.choice(["date", "date", "date", "timestamp", "timestamptz"]))
    elif kind < 0.6:
        of = rng.choice(["extract(year from %s)", "date_part('year', %s)", "extract(YEAR from %s)::int", "extract(month from %s)"])
        left = of % rng.choice([column, local])
        right = rng.choice(["2024", "2012", "1970", "2011.5", "1", "0", "-1", "-44", "2025::numeric", "'NaN'::numeric", "1e9", "(SELECT 2024)"])
    elif kind < 0.75:
        left = "date_trunc('%s', %s)" % (rng.choice(UNITS), local)
        right = literal(rng, rng.choice(["timestamp", "timestamp", "date", "timestamptz"]))
    elif kind < 0.9:
        zone = rng.choice(["", "", ", '%s'" % rng.choice(ZONES)])
        if column == "cn":
            zone = ""
        left = "date_trunc('%s', %s%s)" % (rng.choice(UNITS), column if column != "cd" else "cd::timestamptz", zone)
        right = literal(rng, rng.choice(["timestamptz", "timestamptz", "date"]))
        if rng.random() < 0.3:
            right = "date_trunc('%s', %s)" % (rng.choice(UNITS), literal(rng, "timestamptz"))
    else:
        left = "%s BETWEEN %s AND %s" % (rng.choice([column, local, "(%s)::date" % local]), literal(rng, "date"), literal(rng, "date"))
        return left if rng.random() < 0.8 else "NOT " + left
    if rng.random() < 0.2:
        left, right = right, left
    condition = "%s %s %s" % (left, operator, right)
    return condition if rng.random() < 0.85 else "NOT (%s)" % condition
