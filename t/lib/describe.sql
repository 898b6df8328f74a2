-- What the library says of its own tables, see src/catalog/monitoring.c.

CREATE OR REPLACE FUNCTION describe_options(OUT name text, OUT objects int, OUT initial text,
    OUT lowest float8, OUT highest float8)
RETURNS SETOF record AS 'mongo_fdw', 'mongo_fdw_describe_options' LANGUAGE C STRICT;

CREATE OR REPLACE FUNCTION describe_names(kind text)
RETURNS SETOF text AS 'mongo_fdw', 'mongo_fdw_describe_names' LANGUAGE C STRICT;

-- Functions of PostgreSQL by the names of its fmgroids.h, without F_: with the
-- arguments' types where there are several of one name.
CREATE OR REPLACE FUNCTION describe_functions(kind text) RETURNS SETOF text LANGUAGE SQL AS $$
    SELECT upper(p.proname || CASE WHEN n.same > 1 THEN '_' || array_to_string(
        (SELECT array_agg(t.typname ORDER BY a.place)
         FROM unnest(p.proargtypes) WITH ORDINALITY a(type, place) JOIN pg_type t ON t.oid = a.type), '_') ELSE '' END)
    FROM describe_names(kind) d(function)
    LEFT JOIN pg_proc p ON p.oid = d.function::oid
    LEFT JOIN (SELECT proname, count(*) AS same FROM pg_proc WHERE oid < 10000 GROUP BY proname) n
        ON n.proname = p.proname
$$;
