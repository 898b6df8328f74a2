"""What t/read/expressions.py tries: columns with edge values, and expressions.

CASES has the expressions of each row of src/translate/expression_*.c by the name
of its function, and of kinds of nodes by names in lower case.  In an expression,
columns of one type come as a pair (i4a, i4b), so that values meet each other.
"""
from bson_values import (array, boolean, date, decimal, decimal_bits, double, int32, int64, null, oid,
                         string, symbol, undefined)

NAN = float("nan")
INFINITY = float("inf")
OID = "65a000000000000000000001"

INT2 = [int32(1), int32(-1), int32(0), int32(7), int32(-7), int32(2), int32(32767), int32(-32768),
        int64(3), double(5.0), double(-0.0), decimal("4.00"), null, None, decimal("1E+2"), double(-9.0)]
INT4 = INT2 + [int32(2147483647), int32(-2147483648), double(2147483647.0), decimal("-2147483648")]
INT8 = INT2 + [int64(9223372036854775807), int64(-9223372036854775808), double(2.0 ** 62),
               int64(9007199254740993), decimal("9223372036854775807.0")]
FLOAT8 = [double(0.0), double(-0.0), double(1.5), double(-1.5), double(0.1), double(2.5), double(-2.5), double(3.5),
          double(0.49999999999999994), double(1e300), double(-1e300), double(5e-324), double(NAN), double(INFINITY),
          double(-INFINITY), int32(3), int64(9007199254740992), decimal("0.25"), decimal_bits(0x7e00000000000000, 0), null, None]
NUMERIC = [decimal("0"), decimal("1"), decimal("-1.5"), decimal("0.10"), decimal("2.5"), decimal("-0.5"), double(0.1),
           double(0.1 + 0.2), double(-2.5), int32(7), int64(9223372036854775807), decimal("NaN"), double(NAN),
           decimal("Infinity"), double(-INFINITY), decimal("1234567890123456789012345678901234"),
           decimal("-0.00"), decimal("1E+20"), double(1e20), decimal("-1E+40"), double(1e300),
           decimal("999999999999999999999999999999999.5"), decimal("1E+3"), decimal("-1.5E-310"), decimal("3E-324"),
           decimal_bits(0x7e00000000000000, 0), null, None]
MONEY = [decimal("0.00"), decimal("1.10"), decimal("-1.10"), decimal("7.1"), double(7.1), double(0.1 + 0.2), int32(5),
         decimal("1.005"), decimal("-1.005"), decimal("1.015"), double(2.675), decimal("9999999999999.99"), decimal("NaN"),
         decimal("0.0049999999999999999999999999999"), decimal("-0.001"), decimal("1.00499999999999999999999999999999"),
         decimal("3E+3"), null, None]
TEXT = [string(""), string("a"), string("A"), string("abc"), string("ABC def"), string("  padded "), string("äöü"), string("10"),
        string("\U0001f418 elephant"), string("a\nb"), string("$x"), string("%_\\"), symbol("sym"), oid(OID), string(OID),
        string("xyxyx"), null, None, string("-7"), string("aXbXc")]
DAYS = [0, 1, -1, 43200000, 86399999, 86400000, 86400001, -86400000, -86400001, 1700000000123, 1709164800000, 1709210096789, 1706659200000,
        -62135596800000, -62167219200000, 253402300799999, 253402300800000, 4102444800000]
DATES = [date(ms) for ms in DAYS] + [null, None, undefined]
BOOLEANS = [boolean(True), boolean(False), null, None]

ARRAYS = {
    "integer": [array(int32(1), int32(2), int32(3)), array(), array(null), array(int32(1), null), null, None,
                array(array(int32(1), int32(2)), array(int32(3), int64(4))), array(double(2.0), decimal("3.0")),
                array(array(array(int32(7)))), array(int32(1)), array(int32(-7), int32(7), int32(7))],
    "text": [array(string("a"), string("b")), array(), array(null), array(oid(OID), symbol("sym")), null, None,
             array(string("a"), null), array(array(string("a")), array(string("10"))), array(string(OID)), array(undefined)],
    "numeric(15,2)": [array(decimal("1.10"), double(7.1)), array(), array(decimal("1.005"), null), null, None,
                      array(decimal("NaN"), decimal("0")), array(decimal("1.01"))],
}

COLUMNS = [(name + side, sql_type, values) for name, sql_type, values in [
    ("i2", "smallint", INT2),
    ("i4", "integer", INT4),
    ("i8", "bigint", INT8),
    ("f", "double precision", FLOAT8),
    ("n", "numeric", NUMERIC),
    ("m", "numeric(15,2)", MONEY),
    ("t", 'text COLLATE "C"', TEXT),
    ("nm", "name", TEXT),
    ("d", "date", DATES),
    ("s", "timestamp", DATES),
    ("z", "timestamptz", DATES),
    ("b", "boolean", BOOLEANS),
    ("o", "objectid", [oid(OID), oid("0" * 24), oid("f" * 24), null, None]),
    ("il", "integer[]", ARRAYS["integer"]),
    ("tl", "text[]", ARRAYS["text"]),
    ("ml", "numeric(15,2)[]", ARRAYS["numeric(15,2)"]),
] for side in "ab"]


def binary(operator, *types):
    """The operator between columns of two types."""
    left, right = types if len(types) == 2 else types * 2
    return ["%sa %s %sb" % (left, operator, right)]


CASES = {
    "comparison": [
        "%sa %s %sb" % (left, operator, right)
        for left, right in [("i2", "i8"), ("i4", "i4"), ("i8", "i4"), ("f", "f"), ("n", "n"), ("m", "n"), ("t", "t"), ("d", "d"),
                            ("d", "s"), ("s", "s"), ("z", "z"), ("b", "b"), ("o", "o"), ("t", "nm"), ("i4", "n"), ("i8", "f")]
        for operator in ["=", "<>", "<", "<=", ">", ">="]]
        + ["fa * 2 %s 'NaN'::%s" % (operator, t) for operator in ["=", "<>", "<", "<=", ">", ">="] for t in ["real", "float8"]],
    "distinct": ["%sa IS %sDISTINCT FROM %sb" % (t, n, t) for t in ["i4", "f", "n", "t", "d", "s", "b"] for n in ["", "NOT "]],
    "logic": ["i4a > i4b AND fa > fb", "i4a > i4b OR ta > tb", "NOT (i4a > i4b AND ba)", "(i4a > i4b) IS TRUE",
              "(i4a > i4b) IS NOT TRUE", "(i4a > i4b) IS FALSE", "(i4a > i4b) IS NOT FALSE", "(i4a > i4b) IS UNKNOWN",
              "(i4a > i4b OR ba) IS NOT UNKNOWN", "(i4a > i4b) = (ba AND bb)", "ba AND bb", "ba OR bb", "NOT ba",
              "(i4a + i4b) IS NULL", "(i4a + i4b) IS NOT NULL"],
    "choice": ["CASE WHEN i4a > i4b THEN i4a ELSE i4b END", "CASE WHEN i4a > 5 THEN 1 WHEN i4a > i4b THEN 2 END",
               "CASE i4a WHEN i4b THEN 'same' WHEN 7 THEN 'seven' ELSE ta END", "CASE WHEN i4b <> 0 THEN i4a / i4b ELSE 0 END",
               "CASE WHEN ba THEN ma ELSE mb * 2 END", "CASE WHEN ba THEN sa ELSE sb END", "COALESCE(i4a, i4b)", "COALESCE(ma, mb, 0)",
               "COALESCE(ta, tb, '')", "COALESCE(fa, 0)", "COALESCE(i4a, 10 / i4b)", "NULLIF(i4a, i4b)", "NULLIF(fa, fb)", "NULLIF(ta, 'a')",
               "GREATEST(i4a, i4b)", "LEAST(i4a, i4b, 3)", "GREATEST(fa, fb)", "LEAST(fa, fb)", "GREATEST(na, nb)", "LEAST(na, nb)",
               "GREATEST(ta, tb)", "LEAST(da, db)", "GREATEST(sa, sb)", "LEAST(ma, mb)",
               # an operand that is computed once
               "CASE i4a - i4b WHEN 0 THEN i4a - i4b WHEN i4b THEN 2 ELSE (i4a - i4b) * 2 END", "NULLIF(NULLIF(i4a - i4b, 0), i4a)",
               "CASE ma * 2 WHEN 2.2 THEN ma * 2 WHEN mb THEN mb ELSE ma * 2 + 1 END", "NULLIF(ma * 2, 2.2)",
               "CASE upper(ta) WHEN 'A' THEN lower(upper(ta)) WHEN tb THEN upper(ta) ELSE tb END",
               "CASE NULLIF(fa * 2, fb) WHEN 3 THEN NULLIF(fa * 2, fb) ELSE fb END", "NULLIF(ba AND bb, ba)",
               "CASE ba AND bb WHEN true THEN 1 WHEN false THEN 2 ELSE 3 END", "NULLIF(COALESCE(da, db), db)",
               "CASE WHEN COALESCE(da, db) < db THEN 1 WHEN COALESCE(da, db) = COALESCE(db, da) THEN 2 ELSE 3 END",
               "CASE 10 / i4b WHEN 5 THEN 1 END", "CASE i4a + 0 WHEN NULL THEN 1 WHEN 1 THEN i4b ELSE 2 END"],
    "any": ["i4a + 1 IN (0, 1, 8)", "i4a + 1 NOT IN (0, 1, 8)", "i4a + 1 IN (0, NULL)", "i4a + 1 NOT IN (0, NULL)",
            "ma * 2 IN (2.2, 14.2, 0)", "COALESCE(ta, 'x') IN ('x', 'a', '%s')" % OID, "(fa * 1) IN ('NaN', 1.5)",
            "(fa * 1) = ANY ('{}'::float8[])"],
}

for _operator, _name in [("+", "PL"), ("-", "MI"), ("*", "MUL"), ("/", "DIV")]:
    for _left in "248":
        for _right in "248":
            _types = _left if _left == _right else _left + _right
            CASES["INT%s%s" % (_types, _name)] = binary(_operator, "i" + _left, "i" + _right)
for _size in "248":
    _a, _b = "i%sa" % _size, "i%sb" % _size
    CASES.update({
        "INT%sMOD" % _size: ["%s %% %s" % (_a, _b)],
        "MOD_INT%s_INT%s" % (_size, _size): ["mod(%s, %s)" % (_a, _b)],
        "INT%sUM" % _size: ["- %s" % _a, "(- %s)::float8" % _a],
        "INT%sUP" % _size: ["+ %s" % _a],
        "INT%sABS" % _size: ["@ %s" % _a],
        "ABS_INT%s" % _size: ["abs(%s)" % _a],
        "FLOAT8_INT%s" % _size: ["%s::float8" % _a, "(%s / 2::int2)::float8" % _a, "(%s %% 2::int2)::float8" % _a],
        "NUMERIC_INT%s" % _size: ["%s::numeric" % _a, "(%s * 2::int2)::numeric" % _a],
    })
    for _other in "248":
        CASES["INT%s_INT%s" % (_size, _other)] = ["i%sa::int%s" % (_other, _size)]

CASES.update({
    "FLOAT8PL": ["fa + fb", "fa + fb + 0.1", "0.1 + (0.2 + fa)"],
    "FLOAT8MI": ["fa - fb", "fa - fb - 0.1"],
    "FLOAT8MUL": ["fa * fb", "fa * fb * 0.1", "0.1 * (10 * fa)"],
    "FLOAT8DIV": ["fa / fb"],
    "FLOAT8UM": ["- fa", "1 / (- fa)"],
    "FLOAT8UP": ["+ fa"],
    "FLOAT8ABS": ["@ fa"],
    "ABS_FLOAT8": ["abs(fa)"],
    "DSQRT": ["|/ fa"],
    "SQRT_FLOAT8": ["sqrt(fa)"],
    "CEIL_FLOAT8": ["ceil(fa)"],
    "CEILING_FLOAT8": ["ceiling(fa)"],
    "FLOOR_FLOAT8": ["floor(fa)"],
    "TRUNC_FLOAT8": ["trunc(fa)"],
    "NUMERIC_ADD": ["ma + mb", "ma + 1.005", "ma + i4a"],
    "NUMERIC_SUB": ["ma - mb", "1 - ma"],
    "NUMERIC_MUL": ["ma * mb", "ma * (1 - mb)", "ma * 0.5", "ma * i8a"],
    "NUMERIC_MOD": ["ma % mb", "ma % 0.3"],
    "MOD_NUMERIC_NUMERIC": ["mod(ma, mb)"],
    "NUMERIC_UMINUS": ["- ma", "- na"],
    "NUMERIC_UPLUS": ["+ ma", "+ na"],
    "NUMERIC_ABS": ["@ ma", "@ na"],
    "ABS_NUMERIC": ["abs(ma)", "abs(na)"],
    "CEIL_NUMERIC": ["ceil(ma)", "ceil(na)"],
    "CEILING_NUMERIC": ["ceiling(ma)"],
    "FLOOR_NUMERIC": ["floor(ma)", "floor(na)"],
    "FLOAT8_NUMERIC": ["ma::float8", "na::float8"],
})

for _size in "248":
    CASES["INT%s_FLOAT8" % _size] = ["fa::int%s" % _size]
    CASES["INT%s_NUMERIC" % _size] = ["ma::int%s" % _size, "na::int%s" % _size]

CASES.update({
    "DTRUNC": ["dtrunc(fa)"],
    "ROUND_FLOAT8": ["round(fa)", "round(fa * 3)"],
    "DROUND": ["dround(fa)"],
    "SIGN_FLOAT8": ["sign(fa)"],
    "SIGN_NUMERIC": ["sign(na)"],
    "ROUND_NUMERIC_INT4": ["round(ma, 1)", "round(ma)", "round(ma, 5)", "round(ma * 0.5, 2)"],
    "TRUNC_NUMERIC_INT4": ["trunc(ma, 1)", "trunc(ma)", "trunc(ma, 5)"],
    "NUMERIC_FLOAT8": ["fa::numeric"],
    "NUMERIC_NUMERIC_INT4": ["ma::numeric(15,1)", "(ma * 0.5)::numeric(20,2)"],
    "INT4_BOOL": ["ba::int"],
    "BOOL_INT4": ["i4a::boolean"],
})

TEXT_PAIRS = ["ta", "tb"]
CASES.update({
    "TEXTCAT": ["ta || tb", "ta || i4a", "'x' || ta"],
    "CONCAT": ["concat(ta, tb)", "concat(ta, i4a, 'x')"],
    "TEXTLEN": ["textlen(ta)"],
    "LENGTH_TEXT": ["length(ta)", "length(i4a::text)", "length((i4a / 2)::text)", "length((i4a % 2)::text)"],
    "CHAR_LENGTH_TEXT": ["char_length(ta)"],
    "CHARACTER_LENGTH_TEXT": ["character_length(ta)"],
    "OCTET_LENGTH_TEXT": ["octet_length(ta)"],
    "LOWER_TEXT": ["lower(ta)"],
    "UPPER_TEXT": ["upper(ta)"],
    "SUBSTR_TEXT_INT4": ["substr(ta, 2)", "substr(ta, i4a)", "substr(ta, -1)"],
    "SUBSTR_TEXT_INT4_INT4": ["substr(ta, 2, 3)", "substr(ta, i4a, i4b)", "substr(ta, -1, 3)"],
    "SUBSTRING_TEXT_INT4": ["substring(ta from 2)", "substring(ta from i4a)"],
    "SUBSTRING_TEXT_INT4_INT4": ["substring(ta from 1 for 2)", "substring(ta from i4a for i2b)"],
    "LEFT": ["left(ta, 2)", "left(ta, -1)", "left(ta, i4b)"],
    "RIGHT": ["right(ta, 2)", "right(ta, -1)", "right(ta, i4b)"],
    "STRPOS": ["strpos(ta, tb)", "strpos(ta, 'x')", "strpos(ta, 'ü')"],
    "POSITION_TEXT_TEXT": ["position('b' in ta)", "position(tb in ta)"],
    "REPLACE": ["replace(ta, 'x', 'yy')", "replace(ta, tb, 'z')", "replace(ta, '', 'z')", "replace(ta, 'a', tb)"],
    "SPLIT_PART": ["split_part(ta, 'x', 2)", "split_part(ta, 'b', -1)", "split_part(ta, 'xy', -2)", "split_part(ta, tb, 1)",
                   "split_part(ta, tb, i4b)", "split_part(ta, '', 1)", "split_part(ta, '', -2)", "split_part(tb || ta || tb, ta, i4b)",
                   "split_part('xaxäx', ta, 2)", "split_part(ta || ta, 'xyx', i2b)"],
    "STARTS_WITH": ["starts_with(ta, tb)", "starts_with(ta || 'x', 'a')"],
    "BTRIM_TEXT": ["btrim(ta)", "trim(ta)"],
    "LTRIM_TEXT": ["ltrim(ta)"],
    "RTRIM_TEXT": ["rtrim(ta)"],
    "BTRIM_TEXT_TEXT": ["btrim(ta, 'axü')", "btrim(ta, tb)", "trim(both from ta)"],
    "LTRIM_TEXT_TEXT": ["ltrim(ta, 'xa ')", "ltrim(ta, tb)"],
    "RTRIM_TEXT_TEXT": ["rtrim(ta, 'c ')", "rtrim(ta, tb)"],
    "TEXTLIKE": ["(ta || 'z') LIKE '%b%'", "(ta || tb) LIKE 'a_%'"],
    "TEXTNLIKE": ["(ta || 'z') NOT LIKE '%b%'"],
    "TEXTICLIKE": ["(ta || 'z') COLLATE \"C\" ILIKE '%B%'", "(ta || tb) COLLATE \"C\" ILIKE 'A_%'", "(ta || '') COLLATE \"C\" ILIKE 'ABC%'",
                   "ta COLLATE \"C\" ILIKE '%Ö%'", "(ta || '') COLLATE \"C\" ILIKE '65A%'", "(ta || '') COLLATE \"C\" ILIKE '%X%c'"],
    "TEXTICNLIKE": ["(ta || 'z') COLLATE \"C\" NOT ILIKE '%B%'", "(ta || '') COLLATE \"C\" NOT ILIKE 'a%'"],
    "NAMEICLIKE": ["(nma ILIKE '%A%') = ba", "(nma ILIKE 'A%') IS UNKNOWN"],
    "NAMEICNLIKE": ["(nma NOT ILIKE '%A%') = ba"],
    "NAMELIKE": ["(nma LIKE '%a%') = ba", "(nma LIKE 'a%') IS UNKNOWN"],
    "NAMENLIKE": ["(nma NOT LIKE '%a%') = ba"],
    "TEXTREGEXEQ": ["(ta || 'z') ~ 'b'", "(ta || tb) ~ '^a.+c$'", "(ta || '') ~ '[^a-z]'", "(ta || '') ~ '^.{3}$'", "(ta || '') ~ 'b$'", "(ta || '') ~ '\\$|1'",
                    "(ta || '') ~ '.X.*X.$'", "(ta || '') ~ ''",
                    "(ta || '') SIMILAR TO 'a%[cf]'"],
    "TEXTREGEXNE": ["(ta || 'z') !~ '^a|c'", "(ta || '') !~ '^[0-9a-f]{24}$'", "(ta || '') NOT SIMILAR TO '_%\\%%'"],
    "TEXTICREGEXEQ": ["(ta || 'z') ~* 'B'", "(ta || '') ~* '^A.*C$'", "ta ~* 'Ö|C D'"],
    "TEXTICREGEXNE": ["(ta || '') !~* 'a.c'"],
    "NAMEREGEXEQ": ["(nma ~ '[A-Z]') = ba", "(nma ~ '^a') IS UNKNOWN"],
    "NAMEREGEXNE": ["(nma !~ 'a.+b') = ba"],
    "NAMEICREGEXEQ": ["(nma ~* 'a.C$') = ba"],
    "NAMEICREGEXNE": ["(nma !~* 'X.*X') = ba"],
    "TEXT_NAME": ["nma::text", "nma::text || 'x'"],
    "TEXT_BOOL": ["ba::text"],
    "text cast": ["i2a::text", "i4a::text", "(i4a + i4b)::text", "i8a::text"],
})

_FIELDS = ["year", "isoyear", "quarter", "month", "week", "day", "doy", "dow", "isodow", "epoch"]
_TIME_FIELDS = ["hour", "minute", "second", "milliseconds", "microseconds"]
_UNITS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"]
_INTERVALS = ["1 month", "-1 month", "1 day", "-400 days", "1 year 2 months 3 days 04:05:06.789", "00:00:00.001", "-13 months",
              "12 months", "0"]
CASES.update({
    "DATE_TRUNC_TEXT_TIMESTAMP": ["date_trunc('%s', sa)" % unit for unit in _UNITS],
    "DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT": ["date_trunc('%s', za, '%s')" % (unit, zone) for unit in _UNITS
                                         for zone in ("UTC", "Etc/GMT-14", "Etc/GMT+12")],
    "TIMEZONE_TEXT_TIMESTAMP": ["sa AT TIME ZONE 'UTC'", "sa AT TIME ZONE 'Etc/GMT+3'"],
    "TIMEZONE_TEXT_TIMESTAMPTZ": ["za AT TIME ZONE 'UTC'", "date_trunc('month', za AT TIME ZONE 'UTC')", "za AT TIME ZONE 'Etc/GMT-3'",
                                  "extract(hour from za AT TIME ZONE 'Etc/GMT+5')"],
    "TIMEZONE_INTERVAL_TIMESTAMP": ["sa AT TIME ZONE INTERVAL '-05:45'"],
    "TIMEZONE_INTERVAL_TIMESTAMPTZ": ["za AT TIME ZONE INTERVAL '05:45:30'", "date_trunc('day', za AT TIME ZONE INTERVAL '-09:30')"],
    "TO_CHAR_TIMESTAMP_TEXT": ["to_char(sa, '%s')" % format for format in
                               ("YYYY-MM-DD", "yyyy", "YYYYMMDD HH24MISS", "YYYY-Q", "Q", "DD.MM.YYYY, HH24:MI:SS", "MM/DD", " ", "hh24")]
                              + ["to_char(da::timestamp, 'YYYY_MM')", "to_char(sa + interval '1 day', 'YYYY-MM-DD')",
                                 "length(to_char(sa, 'YYYY'))"],
    "EXTRACT_TEXT_TIMESTAMP": ["extract(%s from sa)" % field for field in _FIELDS + _TIME_FIELDS],
    "EXTRACT_TEXT_DATE": ["extract(%s from da)" % field for field in _FIELDS],
    "DATE_PART_TEXT_TIMESTAMP": ["date_part('%s', sa)" % field for field in _FIELDS + _TIME_FIELDS]
                                + ["date_part('year', da)"],
    "TIMESTAMP_PL_INTERVAL": ["sa + interval '%s'" % i for i in _INTERVALS],
    "TIMESTAMP_MI_INTERVAL": ["sa - interval '%s'" % i for i in _INTERVALS],
    "TIMESTAMPTZ_PL_INTERVAL": ["za + interval '04:05:06.789'"],
    "TIMESTAMPTZ_MI_INTERVAL": ["za - interval '04:05:06.789'"],
    "DATE_PL_INTERVAL": ["da + interval '%s'" % i for i in _INTERVALS],
    "DATE_MI_INTERVAL": ["da - interval '%s'" % i for i in _INTERVALS],
    "DATE_PLI": ["da + 1", "da + i2a"],
    "DATE_MII": ["da - 1", "da - i2a"],
    "DATE_MI": ["da - db", "da - date '2000-01-01'"],
    "TIMESTAMP_DATE": ["da::timestamp"],
    "DATE_TIMESTAMP": ["sa::date", "sa::date + 1"],
})

CASES.update({
    "ARRAYCONTAINS": ["ila @> ilb", "ila @> '{1,2}'", "tla @> tlb", "mla @> mlb", "ila @> '{}'", "ila @> '{NULL}'"],
    "ARRAYCONTAINED": ["ila <@ ilb", "ila <@ '{1,2,3,NULL}'", "tla <@ tlb"],
    "ARRAYOVERLAP": ["ila && ilb", "ila && '{1,NULL}'", "tla && tlb", "mla && mlb"],
    "CARDINALITY": ["cardinality(ila)", "cardinality(tla)"],
    "ARRAY_LENGTH": ["array_length(ila, 1)"],
    "ARRAY_UPPER": ["array_upper(ila, 1)"],
    "element": ["ila[1]", "ila[i4a]", "tla[1]", "mla[1]", "ila[2] + 1", "ila[0]"],
    "any of column": ["i4a = ANY (ila)", "i4a <> ALL (ila)", "1 = ANY (ila)", "ta = ANY (tla)", "ma = ANY (mla)", "ta <> ALL (tla)",
                      "i4a + 1 = ANY (ila)"],
    "between milliseconds":
        ["%s %s %s" % (left, operator, bound)
         for left in ["(sa + interval '1 ms')", "(da + interval '1 ms')"]
         for operator in ["<", "<=", ">", ">="]
         for bound in ["'2023-11-14 22:13:20.1240004'", "'2023-11-14 22:13:20.124'", "'1969-12-31 23:59:59.9990005'", "'infinity'",
                       "'-infinity'", "(SELECT timestamp '2023-11-14 22:13:20.1240004')", "(SELECT timestamp '2023-11-14 22:13:20.124')",
                       "(SELECT timestamp '-infinity')", "(SELECT timestamp 'infinity')"]]
        + ["'2023-11-14 22:13:20.1240004' %s sa + interval '1 ms'" % operator for operator in ["<", "<=", ">", ">="]]
        + ["(da + 1) < date 'infinity'", "(da + 1) <> date 'infinity'", "(da + 1) > (SELECT date '-infinity')"],
})

# By row of src/translate/local_time.c: conditions that an index can serve.
_OPERATORS = ["=", "<", "<=", ">", ">="]
LOCAL_TIMES = {
    "DATE_TRUNC_TEXT_TIMESTAMP": ["date_trunc('%s', sa) %s date_trunc('%s', timestamp '2024-02-28 12:34:56.789')" % (u, o, u)
                                  for u in _UNITS for o in _OPERATORS]
                                 + ["date_trunc('day', sa) = (SELECT timestamp '1970-01-01')",
                                    "date_trunc('day', sa) < (SELECT timestamp 'infinity')",
                                    "date_trunc('day', sa) < timestamp '294276-12-31'", "timestamp '1970-01-01' = date_trunc('day', sa)"],
    "DATE_TRUNC_TEXT_TIMESTAMPTZ": ["date_trunc('%s', za) %s timestamptz '2023-11-14 00:00:00'" % (u, o)
                                    for u in ["day", "hour"] for o in _OPERATORS]
                                   + ["date_trunc('day', za) = '1970-01-01'", "date_trunc('year', za) = '2023-01-01'"],
    "DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT": ["date_trunc('day', za, 'UTC') %s '2023-11-14 00:00:00+00'" % o for o in _OPERATORS],
    "DATE_TIMESTAMP": ["sa::date %s date '2024-02-28'" % o for o in _OPERATORS],
    "EXTRACT_TEXT_TIMESTAMP": ["extract(year from sa) %s 1970" % o for o in _OPERATORS],
    "DATE_TIMESTAMPTZ": ["za::date %s date '2023-11-14'" % o for o in _OPERATORS] + ["za::date <> date '1970-01-01'"],
    "TIMESTAMP_TIMESTAMPTZ": ["za::timestamp %s '2023-11-14 22:13:20.123'" % o for o in _OPERATORS],
    "TIMEZONE_TEXT_TIMESTAMPTZ": ["(za AT TIME ZONE 'Europe/Berlin')::date %s '2023-11-14'" % o for o in _OPERATORS],
    "EXTRACT_TEXT_TIMESTAMPTZ": ["extract(year from za) %s 1970" % o for o in _OPERATORS],
    "DATE_PART_TEXT_TIMESTAMPTZ": ["date_part('year', za) %s 2023" % o for o in _OPERATORS],
    "EXTRACT_TEXT_DATE": ["extract(year from da) %s 1969" % o for o in _OPERATORS],
    "DATE_PART_TEXT_TIMESTAMP": ["date_part('year', sa) %s 2023" % o for o in _OPERATORS],
    "INT4_NUMERIC": ["extract(year from sa)::int %s 2023" % o for o in _OPERATORS],
    "INT8_NUMERIC": ["extract(year from za)::bigint %s 1970" % o for o in _OPERATORS],
    "INT4_FLOAT8": ["date_part('year', sa)::int %s 2024" % o for o in _OPERATORS],
    "TRUNC_NUMERIC_INT4": ["trunc(extract(year from za))::int %s 2023" % o for o in _OPERATORS],
    "TRUNC_FLOAT8": ["trunc(date_part('year', sa)) %s 2023" % o for o in _OPERATORS],
}

# Documented as not pushed.
LOCAL_CASES = [
    "na + nb", "na * 2", "ma / mb", "ln(fa)", "exp(fa)", "power(fa, 2)", "fa::real", "i4a & 1", "i4a << 1", "fa::text", "na::text",
    "ta ~ 'a(?=b)'", "(ta || '') ~ '^(A)b'", "(ta || '') ~ '^\\s'", "(ta || '') ~ '[[:alpha:]]'", "ta ~ '(?i)a'", "ta ~ '(a)\\1'", "ta ~ '^(ab|c)+$'", "ta ~ '^[ab]*a$'", "ta ~ '\\ya'", "ta ~ '[[=a=]]'", "ta COLLATE \"und-x-icu\" ~ '\\d'",
    "ta COLLATE \"und-x-icu\" ~* 'A'", "regexp_like(ta, 'a')", "substring(ta from 'a.')", "(ta || '') COLLATE \"und-x-icu\" ILIKE 'K%'", "lower(ta COLLATE \"und-x-icu\")", "initcap(ta)", "za::date", "date_trunc('day', za)", "date_trunc('day', za, 'Europe/Berlin')", "za AT TIME ZONE 'America/St_Johns'",
    "za AT TIME ZONE 'EST'",
    "extract(year from za)", "za + interval '1 day'", "sa - sb", "sa::text", "to_char(sa, 'Mon YYYY')", "to_char(sa, 'YYYYY')", "to_char(sa, 'SSSS')",
    "to_char(sa, 'DDD')", "to_char(sa, 'MMth')", "to_char(sa, 'FMMM')", "to_char(sa, 'D')", "to_char(sa, '%Y')", "to_char(da, 'YYYY')", "to_char(za, 'YYYY')", "round(na, 2)", "ta::numeric",
    "ta::date", "extract(julian from sa)", "sa + interval '1 microsecond'",
]
