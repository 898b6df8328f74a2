--
-- Dates as people write them: what clocks show in the session's time zone or another, as ranges of
-- instants that an index serves.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER dates FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', fdw_startup_cost '0');
CREATE USER MAPPING FOR CURRENT_USER SERVER dates;
RESET client_min_messages;
SET timezone = 'Europe/Berlin';

CREATE FOREIGN TABLE d_times (
	_id		int,
	d		timestamptz,
	plain	timestamp OPTIONS (path 'd'),
	day		date OPTIONS (path 'd'),
	second	timestamptz(0) OPTIONS (path 'd')
) SERVER dates OPTIONS (database 'mongo_fdw_regress', collection 'written_dates');
DELETE FROM d_times;
-- every half hour of three days, in one of which clocks go forward, and when Samoa had no 30 December
INSERT INTO d_times (_id, d) SELECT n, timestamptz '2024-03-30 00:00+00' + n * interval '30 minutes' FROM generate_series(0, 143) n;
INSERT INTO d_times (_id, d) SELECT 200 + n, timestamptz '2011-12-29 00:00+00' + n * interval '30 minutes' FROM generate_series(0, 143) n;
INSERT INTO d_times (_id, d) VALUES (1000, '0044-03-15 12:00+00 BC'), (1001, now()), (1002, NULL);

-- a timestamptz and what is not one: an instant in the session's time zone, once it is known
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM d_times WHERE d >= current_date - 7 AND d < timestamp '2100-01-01 00:00';
SELECT _id FROM d_times WHERE d >= current_date - 7 AND d < timestamp '2100-01-01 00:00';
SELECT count(*) FROM d_times WHERE d >= date '2024-03-31' AND d < date '2024-04-01';
SELECT _id, d FROM d_times WHERE d IN (date '2024-03-31', date '2024-04-01', NULL) ORDER BY d;
SELECT _id, d FROM d_times WHERE d = timestamp '2024-03-31 02:30';
SELECT count(*) FROM d_times WHERE d <> date '2024-03-31';
SELECT count(*) FROM d_times WHERE d < date '0044-03-16 BC' OR NOT d < date 'infinity' OR d > date '500000-01-01';
SELECT count(*) FROM d_times WHERE d > date '-infinity' AND d < date '500000-01-01' AND d > date '4714-11-24 BC' AND d <= timestamp 'infinity';
SELECT count(*) FROM d_times WHERE second = timestamp '2024-03-31 03:30' OR NULL::date < d;

-- a plan is right under whatever setting it meets
SET plan_cache_mode = force_generic_plan;
PREPARE constant AS SELECT min(_id), max(_id), count(*) FROM d_times WHERE d >= date '2024-03-31' AND d < date '2024-04-01';
PREPARE parameters (date, timestamp) AS SELECT min(_id), max(_id), count(*) FROM d_times WHERE d >= $1 AND d < $2;
EXECUTE constant;
EXECUTE parameters ('2024-03-31', '2024-04-01');
SET timezone = 'Pacific/Apia';
EXECUTE constant;
EXECUTE parameters ('2024-03-31', '2024-04-01');
EXECUTE parameters ('2011-12-30', '2011-12-31');
EXECUTE parameters ('2011-12-30', '2012-01-01');
SET timezone = '<+12:34>-12:34';
EXPLAIN (VERBOSE, ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF, SUMMARY OFF) EXECUTE constant;
EXECUTE parameters ('2024-03-31', NULL);
-- the last moments, between milliseconds
PREPARE moments (timestamptz) AS SELECT count(*) FILTER (WHERE d + interval '1 hour' < $1), count(*) FILTER (WHERE d + interval '1 hour' >= $1), count(d) FROM d_times;
EXECUTE moments ('294276-12-31 23:59:59.999999+00');
EXECUTE moments ('2024-03-31 01:00:00.000001+00');
SET timezone = 'Europe/Berlin';

-- what clocks show, as ranges of instants: a day of 23 hours, none, two
SELECT count(*), min(d), max(d) FROM d_times WHERE d::date = '2024-03-31';
SELECT count(*), min(d), max(d) FROM d_times WHERE date_trunc('day', d) = date_trunc('day', timestamptz '2024-03-31 12:00');
SELECT count(*) FROM d_times WHERE extract(year from d) = 2024;
SELECT count(*) FROM d_times WHERE date_part('year', d) < 0 OR extract(year from d) BETWEEN 2010.5 AND 2011.5;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM d_times WHERE extract(year from d)::int = 2011;
SELECT count(*) FROM d_times WHERE extract(year from d)::int = 2011 OR date_part('year', d)::int < -43 OR extract(year from d)::bigint > 9000000000;
SELECT count(*) FROM d_times WHERE _id < 1000 AND (NOT extract(year from d)::int <> 2024 OR extract(day from d)::int = 29 OR extract(year from day)::bigint = 2012::smallint);
SELECT count(*) FROM d_times WHERE trunc(extract(year from d))::int = 2011 OR trunc(date_part('year', d))::int = -44;
SELECT count(*) FROM d_times WHERE _id < 1000 AND trunc(extract(year from d), -1) = 2020 AND trunc(extract(year from d), NULL) IS NULL;
SELECT count(*) FROM d_times WHERE (d AT TIME ZONE 'Pacific/Apia')::date <> '2011-12-31' AND date_trunc('month', d AT TIME ZONE 'Pacific/Apia') = '2011-12-01';
SELECT count(*) FROM d_times WHERE date_trunc('day', d, 'Pacific/Apia') = '2011-12-30 10:00+00';
SELECT count(*) FROM d_times WHERE plain < timestamptz '2024-03-31 03:00' AND day >= timestamptz '2024-03-31 00:00';
SELECT count(*) FROM d_times WHERE second::date = '2024-03-31' OR d::date > 'infinity' OR date_trunc('year', d) = '-infinity';
SELECT count(*) FROM d_times WHERE NOT d::date <> current_date AND d::timestamp >= current_date;
PREPARE day (date) AS SELECT count(*), min(d), max(d) FROM d_times WHERE d::date = $1;
EXECUTE day ('2024-03-31');
EXECUTE day (NULL);
SET timezone = 'Pacific/Apia';
EXECUTE day ('2011-12-30');
EXECUTE day ('2011-12-31');
RESET plan_cache_mode;
-- clocks that went back at one minute past midnight: the day begins, ends, and begins again
SET timezone = 'America/St_Johns';
INSERT INTO d_times (_id, d) SELECT 400 + n, timestamptz '2006-10-29 02:00+00' + n * interval '20 seconds' FROM generate_series(0, 400) n;
EXPLAIN (VERBOSE, ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF, SUMMARY OFF) SELECT _id FROM d_times WHERE d::date = '2006-10-29';
SELECT count(*), min(_id), max(_id) FROM d_times WHERE d::date = '2006-10-28';
-- and where they do at one o'clock, a day begins after its first hour
SET timezone = 'America/Havana';
INSERT INTO d_times (_id, d) VALUES (900, '2012-11-04 04:30+00'), (901, '2012-11-04 05:30+00');
SELECT _id, d, date_trunc('day', d) FROM d_times WHERE date_trunc('day', d) = timestamptz '2012-11-04 05:00+00' ORDER BY _id;
SELECT _id FROM d_times WHERE date_trunc('decade', d) >= '2010-01-01' AND date_trunc('day', d, 'America/Havana') = '2012-11-04 05:00+00' ORDER BY _id;
SELECT count(*) FROM d_times WHERE date_trunc('hour', d) = '2012-11-04 00:00';
SET timezone = 'Europe/Berlin';

-- groups of what clocks show are made in MongoDB where these have one offset for ever
SET cpu_tuple_cost = 10;
CREATE TABLE d_local AS SELECT _id, d FROM d_times;
EXPLAIN (VERBOSE, COSTS OFF) SELECT date_trunc('day', d, 'Etc/GMT-14'), count(*) FROM d_times GROUP BY 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT extract(hour from d AT TIME ZONE INTERVAL '05:45'), count(*) FROM d_times GROUP BY 1;
EXPLAIN (COSTS OFF) SELECT date_trunc('month', d), count(*) FROM d_times GROUP BY 1;
EXPLAIN (COSTS OFF) SELECT date_trunc('day', d, 'Europe/Berlin'), count(*) FROM d_times GROUP BY 1;
SELECT date_trunc('day', d, 'Etc/GMT-14') AT TIME ZONE 'UTC' AS day, count(*) FROM d_times WHERE _id < 200 GROUP BY 1 ORDER BY 1;
SELECT count(*), count(DISTINCT day) FROM (
	SELECT date_trunc('week', d, 'Etc/GMT+12') AS day, count(*) FROM d_times GROUP BY 1
	EXCEPT SELECT date_trunc('week', d, 'Etc/GMT+12'), count(*) FROM d_local GROUP BY 1) s;
SELECT count(*) FROM (
	SELECT extract(hour from d AT TIME ZONE INTERVAL '05:45'), count(*) FROM d_times GROUP BY 1
	EXCEPT SELECT extract(hour from d AT TIME ZONE INTERVAL '05:45'), count(*) FROM d_local GROUP BY 1) s;
SELECT count(*) FROM (
	SELECT plain AT TIME ZONE 'Etc/GMT+5', plain AT TIME ZONE INTERVAL '-05:00' FROM d_times
	EXCEPT SELECT (d AT TIME ZONE 'UTC') AT TIME ZONE 'Etc/GMT+5', (d AT TIME ZONE 'UTC') AT TIME ZONE INTERVAL '-05:00' FROM d_local) s;
DROP TABLE d_local;
RESET cpu_tuple_cost;

-- dates after all timestamps
CREATE FOREIGN TABLE d_late (_id int, d date) SERVER dates OPTIONS (database 'mongo_fdw_regress', collection 'dates_late');
DELETE FROM d_late;
INSERT INTO d_late VALUES (1, '5874897-12-31'), (2, '294277-01-01'), (3, '294276-12-31'), (4, '2024-02-29'), (5, '4713-01-01 BC');
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_late WHERE extract(year from d) = 5874897;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_late WHERE extract(year from d) > 294276;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_late WHERE extract(year from d) > 294275;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_late WHERE extract(year from d)::int = 294276;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_late WHERE extract(year from d) <= 294276;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_late WHERE extract(year from d) <> 5874897;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM d_late WHERE extract(year from d) = 2024;
DELETE FROM d_late;

-- east of UTC the last moments are in a year after the last
CREATE FOREIGN TABLE d_last (_id int, d timestamptz) SERVER dates OPTIONS (database 'mongo_fdw_regress', collection 'dates_late');
INSERT INTO d_last VALUES (1, '294276-12-31 14:59:59.999+00'), (2, '294276-12-31 15:00+00'), (3, '294276-12-31 23:59:59.999+00');
SET timezone = 'Asia/Tokyo';
SELECT _id, extract(year from d) FROM d_last ORDER BY 1;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_last WHERE extract(year from d) = 294276;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_last WHERE extract(year from d) > 294276;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_last WHERE extract(year from d) < 294277;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_last WHERE extract(year from d) <> 294277;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_last WHERE date_trunc('year', d) = '294276-01-01';
SET timezone = 'America/New_York';
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_last WHERE extract(year from d) = 294276;
SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM d_last WHERE extract(year from d) > 294276;
DELETE FROM d_last;

DELETE FROM d_times;
SET client_min_messages = warning;
DROP SERVER dates CASCADE;
