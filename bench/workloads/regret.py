"""Random queries of an ordinary application: the default plan beside those that settings lead to.

The regret of a query is the default's time as a ratio to the fastest's.  All plans of a query
must return the same rows.  The first half of the rounds chooses the fastest plan, and the others tell
how long both take: the least of many noisy figures would always be less than the truth.  The sum of
the CPU times of mongod and the backend gives another regret, which other work on the machine
disturbs less.  The environment variable SEED draws other queries, and QUERIES so many.
"""
import datetime
import io
import os
import random
import re
import statistics

import psycopg2

ON_DEMAND = True
ORDERS = 200_000
START = datetime.datetime(2024, 1, 1)
TABLES = {		# columns, share of the number of orders, and indexes
    "customers": ("_id int, name text, country text, segment text, since date", 0.1, ["country"]),
    "products": ("_id int, name text, category text, price int", 0.005, ["category"]),
    "orders": ("_id int, customer int, created timestamp, status text, amount int, discount int, priority int, "
               "shipped timestamp, channel text, note text", 1,
               ["customer", "created", "status", "amount", "discount", "priority", "shipped"]),
    "lines": ("_id int, orders int, product int, quantity int, price int", 2, ["orders", "product"]),
}
FDW = "mongo_fdw.enable_"
ALTERNATIVES = {
    "no pushdown": [FDW + "pushdown"],
    "no pushed joins": [FDW + "join_pushdown"],
    "no batched joins": [FDW + "batched_joins"],
    "no joins of ours": [FDW + "join_pushdown", FDW + "batched_joins"],
    "no pushed groups": [FDW + "aggregate_pushdown"],
    "no pushed sorts": [FDW + "order_by_pushdown"],
    "filters only": [FDW + name + "_pushdown" for name in ("join", "aggregate", "order_by")],
    "no nested loops": ["enable_nestloop"],
    "no hash joins": ["enable_hashjoin"],
    "no merge joins": ["enable_mergejoin"],
    "no hashed groups": ["enable_hashagg"],
}
STATUSES = ["done"] * 70 + ["sent"] * 15 + ["open"] * 10 + ["returned"] * 4 + ["lost"]
COUNTRIES = [f"country {int(number ** 0.5)}" for number in range(400)]


def documents(name, count, orders):
    """The documents of a collection, of which the distributions are uneven and the places of dates random."""
    chance = random.Random(name)
    places = chance.sample(range(count), count)
    for number in range(count):
        if name == "customers":
            yield {"_id": number, "name": f"customer {places[number]}", "country": chance.choice(COUNTRIES),
                   "segment": f"segment {number % 5}", "since": START - datetime.timedelta(days=number % 3000)}
        elif name == "products":
            yield {"_id": number, "name": f"product {number}", "category": f"category {number % 25}", "price": places[number]}
        elif name == "lines":
            yield {"_id": number, "orders": number // 2, "product": int(chance.random() ** 2 * orders * 0.005),
                   "quantity": chance.randint(1, 10), "price": chance.randint(1, 10_000)}
        else:
            created = START + datetime.timedelta(seconds=places[number] * 300)
            yield {"_id": number, "customer": int(chance.random() ** 2 * orders * 0.1), "created": created,
                   "status": chance.choice(STATUSES), "amount": chance.randint(1, 100_000), "discount": chance.choice((0, 0, 0, 5, 10, 20)),
                   "priority": chance.randint(1, 5), "shipped": created + datetime.timedelta(days=3) if chance.random() < 0.8 else None,
                   "channel": f"channel {number % 7}", "note": f"note {number % 1000} " + "-" * 100}


class Queries:
    """Draws queries; the same seed draws the same ones."""

    def __init__(self, seed, orders):
        self.chance, self.orders = random.Random(seed), orders

    def share(self):
        """A share of the documents, of all magnitudes."""
        return min(1, 10 ** self.chance.uniform(-4, 0.2))

    def numbers(self, limit):
        return ", ".join(str(self.chance.randrange(limit)) for _ in range(self.chance.choice((2, 5, 20, 200))))

    def dates(self, column):
        first = self.chance.uniform(0, 1)
        begin, end = (START + datetime.timedelta(seconds=int(part * self.orders * 300)) for part in (first, first + self.share()))
        return self.chance.choice((f"{column} >= '{begin}' AND {column} < '{end}'", f"{column} >= '{begin}'", f"{column} < '{end}'"))

    def order_filters(self, count):
        """So many different conditions on an order."""
        customers = int(self.orders * 0.1)
        amount = int(self.chance.random() * 100_000)
        status = self.chance.choice(STATUSES + sorted(set(STATUSES)) * 25)
        return [condition() for condition in self.chance.sample((
            lambda: self.dates("o.created"), lambda: self.dates("o.created"), lambda: self.dates("o.shipped"),
            lambda: f"o.status = '{status}'", lambda: f"o.status <> '{status}'", lambda: f"o.status IN ('{status}', 'lost')",
            lambda: f"o.customer = {self.chance.randrange(customers)}", lambda: f"o.customer IN ({self.numbers(customers)})",
            lambda: f"o.customer < {1 + int(customers * self.share())}", lambda: f"o.amount > {amount}",
            lambda: f"o.amount BETWEEN {amount} AND {amount + int(100_000 * self.share())}",
            lambda: f"o.discount >= {self.chance.choice((5, 10, 20))}", lambda: f"o.priority = {self.chance.randint(1, 5)}",
            lambda: f"o.priority <> {self.chance.randint(1, 5)}", lambda: "o.shipped IS NULL",
            lambda: f"o.channel = 'channel {self.chance.randrange(7)}'", lambda: f"o.note LIKE '%{self.chance.randrange(100)}%'",
            lambda: f"date_trunc('month', o.created) = '2024-{self.chance.randint(1, 12):02}-01'",
            lambda: f"(o.status = '{status}' OR o.priority = 1)"), count)]

    def other_filter(self, table):
        return self.chance.choice({
            "c": (f"c.country = '{self.chance.choice(COUNTRIES)}'", f"c.segment = 'segment {self.chance.randrange(5)}'",
                  f"c.since < '2024-01-01'::date - {int(3000 * self.share())}", f"c.name LIKE 'customer {self.chance.randrange(100)}%'"),
            "p": (f"p.category = 'category {self.chance.randrange(25)}'", f"p.price < {1 + int(self.orders * 0.005 * self.share())}"),
            "l": (f"l.quantity >= {self.chance.randint(2, 10)}", f"l.product IN ({self.numbers(int(self.orders * 0.005))})",
                  f"l.product = {self.chance.randrange(int(self.orders * 0.005))}")}[table])

    def source(self):
        """Tables with conditions, and the aliases that are visible."""
        tables = self.chance.choice(("o", "o", "o", "oc", "oc", "ol", "olp", "ocl", "lp"))
        joins = {"o": "orders o", "c": "customers c ON c._id = o.customer", "p": "products p ON p._id = l.product",
                 "l": "lines l" if tables[0] == "l" else "lines l ON l.orders = o._id"}
        conditions = self.order_filters(self.chance.randint(0 if len(tables) > 1 else 1, 3)) \
            if tables[0] == "o" else []
        conditions += [self.other_filter(table) for table in tables if table != "o" and self.chance.random() < 0.5]
        if tables == "o" and self.chance.random() < 0.35:
            conditions.append(self.subquery())
        return tables, self.chance.choice((" JOIN ", " JOIN ", " LEFT JOIN ")).join(joins[table] for table in tables) + \
            (" WHERE " + " AND ".join(conditions) if conditions else "")

    def subquery(self):
        exists = self.chance.choice(("EXISTS", "EXISTS", "NOT EXISTS"))
        return self.chance.choice((
            f"{exists} (SELECT FROM lines l WHERE l.orders = o._id AND {self.other_filter('l')})",
            f"{exists} (SELECT FROM customers c WHERE c._id = o.customer AND {self.other_filter('c')})",
            f"o.customer IN (SELECT c._id FROM customers c WHERE {self.other_filter('c')})"))

    def query(self):
        tables, source = self.source()
        main = tables[0]
        limit = f" LIMIT {self.chance.choice((1, 10, 20, 100))}"
        kind = self.chance.random()
        if kind < 0.4:
            columns = ", ".join(f"{table}.*" if self.chance.random() < 0.4 else f"{table}._id" for table in tables)
            if self.chance.random() < 0.5:
                return f"SELECT {columns} FROM {source}"
            order = self.chance.choice(("o.created", "o.created DESC", "o._id", "o.amount DESC, o._id", "o.customer, o._id")
                                       if main == "o" else ("l.price DESC, l._id",))
            order += "".join(f", {table}._id" for table in tables[1:])
            return f"SELECT {columns} FROM {source} ORDER BY {order}{limit}" + \
                self.chance.choice(("", "", f" OFFSET {self.chance.randint(1, 500)}"))
        aggregates = ", ".join(self.chance.sample(
            ["count(*)", f"max({main}._id)"] + (["sum(o.amount)", "avg(o.discount)", "min(o.created)", "count(DISTINCT o.customer)"]
             if main == "o" else ["sum(l.price * l.quantity)"]), self.chance.randint(1, 2)))
        if kind < 0.5:
            return f"SELECT {aggregates} FROM {source}"
        keys = {"o": ["o.status", "o.customer", "o.created::date", "date_trunc('month', o.created)", "o.channel"],
                "c": ["c.country", "c.segment", "c._id"], "l": ["l.product"], "p": ["p.category"]}
        key = self.chance.choice([key for table in tables for key in keys[table]])
        if kind < 0.57:
            return f"SELECT DISTINCT {key} FROM {source}"
        return f"SELECT {key}, {aggregates} FROM {source} GROUP BY 1" + \
            self.chance.choice(("", "", " HAVING count(*) > 10", " ORDER BY 2 DESC, 1" + limit))


def under(lab, settings, function, *arguments):
    """Calls a function while these settings are off; None if it takes too long."""
    for setting in settings:
        lab.sql(f"SET {setting} = off")
    try:
        return function(lab, *arguments)
    except psycopg2.errors.QueryCanceled:
        return None
    finally:
        for setting in settings:
            lab.sql(f"RESET {setting}")


def plan(lab, query):
    return "\n".join(row[0] for row in lab.sql("EXPLAIN (VERBOSE, COSTS OFF) " + query))


def rows(lab, query):
    """The rows as sorted text."""
    output = io.StringIO()
    with lab.postgres.cursor() as cursor:
        cursor.copy_expert(f"COPY ({query}) TO STDOUT", output)
    return sorted(output.getvalue().splitlines())


def execution(lab, query):
    """How long a query takes: milliseconds on the clock, and of CPU."""
    before = lab.cpu()
    text = lab.sql("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) " + query)[-1][0]
    return float(re.search(r"Execution Time: ([\d.]+) ms", text).group(1)), (lab.cpu() - before) * 1000


def measure(lab, query):
    """One line of the table."""
    plans = {}
    for name, settings in {"default": [], **ALTERNATIVES}.items():
        text = under(lab, settings, plan, query)
        if text not in plans.values():
            plans[name] = text
    settings = {"default": [], **ALTERNATIVES}
    expected = under(lab, [], rows, query)
    times = {name: [] for name in plans}
    for number in range(lab.rounds):
        for name in list(times):
            if number == 0 and name != "default":
                lab.sql(f"SET statement_timeout = {int(1000 + 10 * times['default'][0][0])}")
                if under(lab, settings[name], rows, query) not in (None, expected):
                    raise AssertionError(f"{name} returns other rows: {query}")
            result = under(lab, settings[name], execution, query)
            lab.sql("RESET statement_timeout")
            if result is None or (number == 0 and name != "default" and
                                  all(one > 1.5 * other for one, other in zip(result, times["default"][0]))):
                del times[name]		# too slow to be the best
            else:
                times[name].append(result)
    line = {"query": query}
    for kind, name in enumerate(("time", "CPU")):
        chosen_by, medians = (
            {plan: statistics.median(result[kind] for result in results[rounds]) for plan, results in times.items()}
            for rounds in (slice(lab.rounds // 2 or 1), slice(lab.rounds // 2, None)))
        best = min(chosen_by, key=chosen_by.get)
        line |= {f"{name}: regret": medians["default"] / medians[best], f"{name}: default ms": medians["default"],
                 f"{name}: best": best, f"{name}: best ms": medians[best]}
        line |= {f"{name}: plans": plans["default"] + "\n-- " + best + "\n" + plans[best]}
    return line


def run(lab):
    orders = int(ORDERS * lab.scale)
    for name, (columns, share, indexes) in TABLES.items():
        count = int(orders * share)
        lab.collection(f"regret_{name}", count, documents(name, count, orders), indexes=indexes)
        lab.sql(f"CREATE FOREIGN TABLE {name} ({columns}) SERVER bench OPTIONS (database 'bench', collection 'regret_{name}')")
        lab.sql(f"ANALYZE {name}")
    queries = Queries(int(os.environ.get("SEED", "1")), orders)
    table = []
    for number in range(int(os.environ.get("QUERIES", "250"))):
        table.append(measure(lab, queries.query()))
        lab.say(f"  {number + 1}  {table[-1]['time: regret']:.2f}  {table[-1]['CPU: regret']:.2f}  {table[-1]['query']}")
    return table


def show(title, table):
    print(f"\n{title}: {len(table)} queries")
    for name in ("time", "CPU"):
        ordered = sorted(table, key=lambda row: row[f"{name}: regret"])
        print(f"  regret by {name}: " + ", ".join(
            f"{label} {ordered[int((len(ordered) - 1) * share)][f'{name}: regret']:.2f}"
            for label, share in (("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("worst", 1))))
    for row in sorted(table, key=lambda row: -row["time: regret"])[:10]:
        print(f"\n{row['time: regret']:.2f} (CPU {row['CPU: regret']:.2f})  {row['query']}\n"
              f"{row['time: default ms']:.1f} ms, {row['time: best']} {row['time: best ms']:.1f} ms\n{row['time: plans']}")
