"""PostgreSQL's settings, drawn at random for a block of random queries.

    settings = RandomSettings(execute, options, PLANNING)   # with test_arguments.add_drawn()
    settings.draw()             # before each block
    settings.path("schema")     # a search_path for it
    settings.restore()          # the settings before the draw

No setting of PLANNING changes a query's result, and those of SESSION change it in the same
way for foreign and local tables.  Settings that this PostgreSQL lacks are omitted.  "network"
stands for the options round_trip_time and bandwidth of all servers.
"""

import random


def off_or_on(chance):
    return lambda rng: rng.choice(["off", "on"]) if rng.random() < chance else None


def one_of(chance, *values):
    return lambda rng: rng.choice(values) if rng.random() < chance else None


def together(chance, **generators):
    """Returns settings that are drawn together or not at all."""
    def generate(rng):
        if rng.random() >= chance:
            return {}
        return {name: generator(rng) for name, generator in generators.items()}
    return generate


def exactly(value):
    return lambda rng: value


# Advice for plans of PostgreSQL 19's pg_plan_advice, by the names of the programs' tables; what
# does not apply is ignored.
ADVICE = ["JOIN_ORDER(%s %s)", "JOIN_ORDER({%s %s})", "HASH_JOIN(%s)", "MERGE_JOIN_PLAIN(%s)", "MERGE_JOIN_MATERIALIZE(%s)",
          "NESTED_LOOP_PLAIN(%s)", "NESTED_LOOP_MATERIALIZE(%s)", "NESTED_LOOP_MEMOIZE(%s)", "FOREIGN_JOIN((%s %s))",
          "SEMIJOIN_UNIQUE(%s)", "SEMIJOIN_NON_UNIQUE(%s)", "GATHER(%s)", "NO_GATHER(%s)"]


def random_advice(rng):
    names = rng.choice([["r0", "r1", "r2", "r3"], ["q1", "q2", "q3"], ["t", "d"]])
    return " ".join(pattern % tuple(rng.sample(names, pattern.count("%s")))
                    for pattern in rng.sample(ADVICE, rng.randint(1, 3)))


COST = one_of(0.7, "0", "0.0001", "1", "1000000")

# The role that blocks may run as.  It lacks privileges; the programs grant theirs to PUBLIC.
READER = "random_reader"

# Each row draws all of its settings, or none.
PLANNING = [
    # GEQO from two tables on; it frees the memory of all its trials
    together(0.5, geqo=exactly("on"), geqo_threshold=exactly("2"),
             geqo_seed=lambda rng: "%.4f" % rng.random(), geqo_effort=one_of(0.5, "1", "10")),
    together(0.4, join_collapse_limit=one_of(0.7, "1", "2", "3", "20"),
             from_collapse_limit=one_of(0.7, "1", "2", "3", "20")),
    together(0.6, **{"enable_" + name: off_or_on(0.25) for name in (
        "async_append", "bitmapscan", "distinct_reordering", "eager_aggregate", "gathermerge",
        "group_by_reordering", "hashagg", "hashjoin", "incremental_sort", "indexonlyscan", "indexscan",
        "material", "memoize", "mergejoin", "nestloop", "parallel_append", "parallel_hash",
        "partition_pruning", "partitionwise_aggregate", "partitionwise_join", "presorted_aggregate",
        "self_join_elimination", "seqscan", "sort", "tidscan")}),
    # PostgreSQL 19: aggregation before joins also where groups are small; advice
    together(0.4, min_eager_agg_group_size=exactly("0")),
    together(0.3, **{"pg_plan_advice.advice": random_advice}),
    together(0.25, **{"mongo_fdw.enable_" + name: off_or_on(0.4) for name in (
        "join_pushdown", "batched_joins", "aggregate_pushdown", "order_by_pushdown")}),
    # random costs
    together(0.3, seq_page_cost=COST, random_page_cost=COST, cpu_tuple_cost=COST, cpu_index_tuple_cost=COST,
             cpu_operator_cost=COST, parallel_setup_cost=COST, parallel_tuple_cost=COST,
             effective_cache_size=one_of(0.3, "8kB", "1TB")),
    # not a setting, but options of all servers
    together(0.6, network=one_of(1, ("0", "1GB"), ("1ms", "120MB"), ("20ms", "12MB"), ("300ms", "1MB"), ("0", "1kB"),
                                 ("100ms", "100GB"))),
    # the first is the name until PostgreSQL 15, the second since
    together(0.03, force_parallel_mode=exactly("on"), debug_parallel_query=exactly("on"),
             parallel_setup_cost=exactly("0"), parallel_tuple_cost=exactly("0"),
             min_parallel_table_scan_size=exactly("0")),
    # it takes nearly a second per query
    together(0.015, jit=exactly("on"), jit_above_cost=exactly("0"), jit_inline_above_cost=exactly("-1"),
             jit_optimize_above_cost=exactly("-1")),
    together(0.3, work_mem=exactly("64kB"), hash_mem_multiplier=exactly("1")),
    together(0.5, plan_cache_mode=one_of(1, "force_generic_plan", "force_custom_plan")),
    together(0.5, cursor_tuple_fraction=one_of(1, "0", "0.0001", "0.5", "1")),
    together(0.6, search_path=lambda rng: rng.choice(PATHS)),
    together(0.2, role=exactly(READER)),
]

SESSION = [
    together(0.6, TimeZone=one_of(1, "UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu",
                                  "America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Monrovia", "<+12:34>-12:34")),
    together(0.5, DateStyle=one_of(1, "ISO, YMD", "SQL, DMY", "German, DMY", "Postgres, MDY", "ISO, DMY"),
             IntervalStyle=one_of(0.5, "iso_8601", "sql_standard", "postgres_verbose")),
    together(0.5, extra_float_digits=one_of(1, "-15", "-3", "0", "3")),
    together(0.3, bytea_output=exactly("escape")),
    together(0.2, transform_null_equals=exactly("on")),
    together(0.25, standard_conforming_strings=exactly("off"), escape_string_warning=exactly("off"),
             backslash_quote=one_of(0.5, "on")),
]

# The search_path around a program's schema; schema "shadowing" has functions and operators with
# the names of PostgreSQL's that do something else.
ORDINARY_PATH = "%s, public"
PATHS = [ORDINARY_PATH, "%s", "pg_catalog, %s", "%s, pg_temp, public", "%s, pg_catalog, shadowing",
         "shadowing, %s, pg_catalog", "%s, shadowing, pg_catalog"]
SHADOWING = """
DROP SCHEMA IF EXISTS shadowing CASCADE;
CREATE SCHEMA shadowing;
GRANT USAGE ON SCHEMA shadowing TO PUBLIC;
CREATE FUNCTION shadowing.lower(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT pg_catalog.upper($1)$$;
CREATE FUNCTION shadowing.length(text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN 1; END$$;
CREATE FUNCTION shadowing.less_or_equal(integer, integer) RETURNS boolean LANGUAGE sql IMMUTABLE
    AS $$SELECT $1 OPERATOR(pg_catalog.>=) $2$$;
CREATE OPERATOR shadowing.<= (FUNCTION = shadowing.less_or_equal, LEFTARG = integer, RIGHTARG = integer);
CREATE FUNCTION shadowing.add(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN 7; END$$;
CREATE OPERATOR shadowing.+ (FUNCTION = shadowing.add, LEFTARG = integer, RIGHTARG = integer);
"""
ROLE = """
DO $$ BEGIN
    CREATE ROLE %s;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
""" % READER


class RandomSettings:
    def __init__(self, execute, options, table):
        """'execute' runs SQL as a superuser and returns its rows; 'table' is PLANNING or SESSION.

        A draw sets options.set, and with probability options.drawn also random settings.
        """
        self.execute = execute
        # not the queries' generator: a seed gives the same queries whatever is in the tables
        self.rng = random.Random("settings %s of %d" % ("PLANNING" if table is PLANNING else "SESSION", options.seed))
        self.table = table
        self.share = options.drawn
        self.fixed = dict(setting.split("=", 1) for setting in options.set) if table is PLANNING else {}
        self.before = {}
        self.drawn = {}
        execute("LOAD 'mongo_fdw'")
        execute("DO $$ BEGIN LOAD 'pg_plan_advice'; EXCEPTION WHEN undefined_file THEN NULL; END $$")
        self.known = {name.lower() for name, in execute("SELECT name FROM pg_settings")} | {"role", "search_path", "network"}
        if "escape_string_warning" not in self.known:       # in PostgreSQL 19 the other is always on
            self.known.discard("standard_conforming_strings")
        if not execute("SELECT pg_jit_available()")[0][0]:
            self.known -= {name for name in self.known if name.startswith("jit")}
        if table is PLANNING:
            execute(ROLE)
            execute(SHADOWING)

    def set(self, name, value):
        self.drawn[name] = value
        if name == "network":
            self.set_network(*value)
        elif name != "search_path":       # the program sets it by path()
            self.before.setdefault(name, self.execute("SELECT current_setting('%s')" % name)[0][0])
            self.execute("SELECT set_config('%s', '%s', false)" % (name, value))

    def set_network(self, *values):
        """Sets these options of all servers; without values it drops them, also another program's."""
        for name, options in self.execute(
                "SELECT srvname, srvoptions::text FROM pg_foreign_server"
                " JOIN pg_foreign_data_wrapper f ON f.oid = srvfdw WHERE fdwname = 'mongo_fdw'"):
            if "round_trip_time=" in (options or ""):
                self.execute('ALTER SERVER "%s" OPTIONS (DROP round_trip_time, DROP bandwidth)' % name)
            if values:
                self.execute('ALTER SERVER "%s" OPTIONS (ADD round_trip_time \'%s\', ADD bandwidth \'%s\')'
                             % (name, *values))

    def restore(self):
        """Restores the settings before the draw."""
        for name, value in self.before.items():
            self.execute("SELECT set_config('%s', '%s', false)" % (name, value))
        if "network" in self.drawn:
            self.set_network()
        self.before, self.drawn = {}, {}

    def draw(self):
        """Replaces the values drawn before, often by none; returns whether there are any."""
        self.restore()
        drawn = self.rng.random() < self.share
        if drawn:
            for row in self.table:
                for name, value in row(self.rng).items():
                    if value is not None and name.lower() in self.known:
                        self.set(name, value)
        for name, value in self.fixed.items():
            self.set(name, value)
        return drawn

    def path(self, schema):
        return self.drawn.get("search_path", ORDINARY_PATH) % schema

    def may_fail(self, code):
        """Can a setting be the cause of this SQLSTATE of PostgreSQL?"""
        # a backslash may then escape the quote, or begin an invalid escape
        return self.drawn.get("standard_conforming_strings") == "off" and code.startswith(("22", "42"))

    def describe(self):
        return "".join("  SET %s = '%s';\n" % (name, value if name != "network" else ", ".join(value))
                       for name, value in self.drawn.items())
