"""Questions about elements, dates and jsonb over 100,000 documents with an index on each field.

Each is asked twice: in SQL, and as one who knows MongoDB would ask it there, for the same fields through a client of its
own.  Beside the time of an answer stand the documents that MongoDB has looked at for it.  The variants have NULLs in
arrays, arrays in arrays, values of several types and fields that are not there.
"""
import datetime
import statistics
import time

import bson
import pymongo

DOCUMENTS = 100_000
COLUMNS = ("_id int, tags text[], items jsonb, d timestamptz, j jsonb, numbers int[], grid int[], mixed jsonb, rare jsonb, "
           "maybe text")
INDEXES = ("tags", "items.sku", "d", "j.x", "j.n", "j.day", "j.deep.y", "numbers", "mixed.v", "rare.kind", "maybe")
FIRST = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
MINUTES = 15			# from one document to the next


def at(number):
    return FIRST + datetime.timedelta(minutes=MINUTES * number)


def documents(count):
    for number in range(count):
        document = {
            "_id": number, "tags": [f"t{number % 1000}", f"u{number % 700}"],
            "items": [{"sku": f"s{number % 2000}", "n": number % 7}, {"sku": f"s{(number + 1) % 2000}", "n": 1}],
            "d": at(number), "j": {"x": f"a{number % 5000}", "n": number % 3000, "day": f"{at(number):%Y-%m-%d}",
                                                     "deep": {"y": number % 2500}},
            "numbers": [number % 1000, None, number % 7] if number % 3 else [number % 1000],
            "grid": [[number % 10, 1], [2, 3]],
            "mixed": {"v": number if number % 2 else f"{number}"}}
        if number % 500 == 0:
            document["rare"] = {"kind": f"k{number % 3000}"}
        if number % 1000 < 998:
            document["maybe"] = "here"
        yield document


def day(year, month, number):
    return datetime.datetime(year, month, number, tzinfo=datetime.timezone.utc)


def questions(count):
    """What is asked, its condition in SQL, its match document, and whether it is one of the variants."""
    last, some = at(count - 1), at(count // 2)
    since = last - datetime.timedelta(days=7)
    month, following = day(some.year, some.month, 1), day(some.year + some.month // 12, some.month % 12 + 1, 1)
    date = day(some.year, some.month, some.day)
    one_day = datetime.timedelta(days=1)
    middle = count // 2 + 1		# odd or even, but there
    return [
        ("= ANY(array)", "'t5' = ANY(tags)", {"tags": "t5"}, False),
        ("array @> of two", "tags @> '{t5,u5}'", {"tags": {"$all": ["t5", "u5"]}}, False),
        ("array && of two", "tags && '{t5,t6}'", {"tags": {"$in": ["t5", "t6"]}}, False),
        ("jsonb @> into an array", "items @> '[{\"sku\": \"s77\"}]'", {"items": {"$elemMatch": {"sku": "s77"}}}, False),
        ("timestamptz >= a date", f"d >= date '{since:%Y-%m-%d}'", {"d": {"$gte": day(since.year, since.month, since.day)}}, False),
        ("d::date =", f"d::date = '{date:%Y-%m-%d}'", {"d": {"$gte": date, "$lt": date + one_day}}, False),
        ("date_trunc('month') =", f"date_trunc('month', d) = '{month:%Y-%m-%d}'", {"d": {"$gte": month, "$lt": following}}, False),
        ("extract(year) =", f"extract(year FROM d) = {some.year} AND d < '{some.year}-01-08'",
         {"d": {"$gte": day(some.year, 1, 1), "$lt": day(some.year, 1, 8)}}, False),
        ("(->>)::float >", "(j->>'n')::float > 2990", {"j.n": {"$gt": 2990}}, False),
        ("->> LIKE", "j->>'x' LIKE 'a49%'", {"j.x": {"$regex": "^a49"}}, False),
        ("->> IN", "j->>'x' IN ('a7', 'a8')", {"j.x": {"$in": ["a7", "a8"]}}, False),
        ("->> <", "(j->>'x') COLLATE \"C\" < 'a1001'", {"j.x": {"$lt": "a1001"}}, False),
        ("->> < a date", "(j->>'day') COLLATE \"C\" < '2024-01-03'", {"j.day": {"$lt": "2024-01-03"}}, False),
        ("->> >= and < a date", "(j->>'day') COLLATE \"C\" >= '2024-01-03' AND (j->>'day') COLLATE \"C\" < '2024-01-05'",
         {"j.day": {"$gte": "2024-01-03", "$lt": "2024-01-05"}}, True),
        ("= ANY(array with NULLs)", "5 = ANY(numbers)", {"numbers": 5}, True),
        ("@> of an array with NULLs", "numbers @> '{13,6}'", {"numbers": {"$all": [13, 6]}}, True),
        ("&& of an array with NULLs", "numbers && '{21,22}'", {"numbers": {"$in": [21, 22]}}, True),
        ("array of arrays, beside an index", "5 = ANY(grid) AND 't5' = ANY(tags)", {"grid": {"$elemMatch": {"$elemMatch": {"$eq": 5}}}, "tags": "t5"}, True),
        ("@> of two in one element", "items @> '[{\"sku\": \"s77\", \"n\": 1}]'", {"items": {"$elemMatch": {"sku": "s77", "n": 1}}}, True),
        ("->> of several types", f"mixed->>'v' = '{middle}'", {"mixed.v": {"$in": [middle, f"{middle}"]}}, True),
        ("(->>)::float of several types", f"(mixed->>'v')::float = {middle}", {"mixed.v": {"$in": [middle, f"{middle}"]}}, True),
        ("#>> of a deeper field", "(j #>> '{deep,y}')::int = 7", {"j.deep.y": 7}, True),
        ("@> of an absent field", "rare @> '{\"kind\": \"k500\"}'", {"rare.kind": "k500"}, True),
        ("->> of an absent field", "rare->>'kind' = 'k1000'", {"rare.kind": "k1000"}, True),
        ("IS NULL of an absent field", "maybe IS NULL", {"maybe": None}, True),
        ("two arrays, the first NULL in some", "5 = ANY(numbers) AND 't5' = ANY(tags)", {"numbers": 5, "tags": "t5"}, True),
    ]


def unwound(count):
    """The same of tables with the option unwind: a condition, and MongoDB's stages."""
    return [
        ("a row for each element", "sku = 's77'",
         [{"$match": {"items.sku": "s77"}}, {"$unwind": "$items"}, {"$match": {"items.sku": "s77"}}], False),
        ("an element of two conditions", "sku = 's77' AND n = 1",
         [{"$match": {"items": {"$elemMatch": {"sku": "s77", "n": 1}}}}, {"$unwind": "$items"},
          {"$match": {"items.sku": "s77", "items.n": 1}}], True),
        ("elements of one document", f"_id = {count // 2}", [{"$match": {"_id": count // 2}}, {"$unwind": "$items"}], True),
    ]


def computed():
    """Groups and orders of what ->> gives, which PostgreSQL makes: the query, MongoDB's stages, and whether by an index."""
    sort, kept = [{"$sort": {"j.x": 1}}, {"$limit": 10}], [{"$project": {"j.x": 1}}]
    return [
        ("GROUP BY ->>", "SELECT j->>'x', count(*) FROM documents GROUP BY 1",
         [{"$group": {"_id": "$j.x", "count": {"$sum": 1}}}], False),
        ("GROUP BY ->> of fewer groups", "SELECT j->>'day', count(*) FROM documents GROUP BY 1",
         [{"$group": {"_id": "$j.day", "count": {"$sum": 1}}}], False),
        ("DISTINCT ->>", "SELECT DISTINCT j->>'x' FROM documents", [{"$group": {"_id": "$j.x"}}], False),
        ("ORDER BY ->> LIMIT 10, no index", "SELECT _id, j->>'x' FROM documents ORDER BY (j->>'x') COLLATE \"C\" LIMIT 10", sort + kept, False),
        ("ORDER BY ->> LIMIT 10, an index", "SELECT _id, j->>'x' FROM documents ORDER BY (j->>'x') COLLATE \"C\" LIMIT 10", sort + kept, True),
    ]


class Asker:
    def __init__(self, lab, collection):
        self.lab, self.collection = lab, collection

    def timed(self, function):
        """How long it takes, in ms, how many come, and how many documents MongoDB has looked at."""
        before = self.lab.observer.command({"serverStatus": 1})["metrics"]["queryExecutor"]["scannedObjects"]
        started = time.perf_counter()
        rows = function()
        ms = (time.perf_counter() - started) * 1000
        after = self.lab.observer.command({"serverStatus": 1})["metrics"]["queryExecutor"]["scannedObjects"]
        return {"ms": ms, "rows": len(rows), "examined": after - before}

    def ask(self, name, sql, mongodb, variant):
        results = {"mongodb": [], "sql": []}
        for _ in range(self.lab.rounds + 1):		# the first is for the caches
            results["mongodb"].append(self.timed(mongodb))
            results["sql"].append(self.timed(lambda: self.lab.sql(sql)))
        row = {"question": name, "variant": variant}
        for who, rounds in results.items():
            row[f"{who}, ms"] = statistics.median(one["ms"] for one in rounds[1:])
            row[f"{who}, rows"] = rounds[-1]["rows"]
            row[f"{who}, documents examined"] = rounds[-1]["examined"]
        assert row["sql, rows"] == row["mongodb, rows"], row
        row["time as a ratio to MongoDB's"] = row["sql, ms"] / row["mongodb, ms"]
        return row


def run(lab):
    count = max(int(DOCUMENTS * lab.scale), 5000)
    lab.collection("documents", count, documents(count), INDEXES)
    lab.sql("SET timezone = 'UTC'")
    lab.sql(f"CREATE FOREIGN TABLE documents ({COLUMNS}) SERVER bench OPTIONS (database 'bench', collection 'documents')")
    lab.sql("CREATE FOREIGN TABLE document_items (_id int, k int, sku text OPTIONS (path 'items.sku'), n int OPTIONS (path 'items.n')) "
            "SERVER bench OPTIONS (database 'bench', collection 'documents', unwind 'items', ordinality 'k')")
    lab.sql("ANALYZE documents, document_items")
    table = []
    # raw, as the wrapper does not make Python's objects either
    codec = bson.CodecOptions(document_class=bson.raw_bson.RawBSONDocument)
    with pymongo.MongoClient(lab.uri) as client:
        collection = client.bench.get_collection("documents", codec_options=codec)
        asker = Asker(lab, collection)
        for name, condition, match, variant in questions(count):
            table.append(asker.ask(name, f"SELECT _id, d FROM documents WHERE {condition}",
                                   lambda: list(collection.find(match, {"_id": 1, "d": 1})), variant))
        for name, condition, stages, variant in unwound(count):
            stages = stages + [{"$project": {"items.sku": 1}}]
            table.append(asker.ask(name, f"SELECT _id, sku FROM document_items WHERE {condition}",
                                   lambda: list(collection.aggregate(stages)), variant))
        for name, sql, stages, by_index in computed():
            hint = {} if by_index else {"hint": {"$natural": 1}}
            table.append(asker.ask(name, sql, lambda: list(collection.aggregate(stages, **hint)), True))
    return table


def show(title, rows):
    print(f"\n{title}: documents examined for the rows returned; milliseconds, and MongoDB's own")
    for row in rows:
        print("  {0}{1:36} {2:7} of {3:7} {4:8.1f} {5:8.1f} {6:6.2f}".format(
            "+ " if row["variant"] else "  ", row["question"], row["sql, rows"], row["sql, documents examined"], row["sql, ms"],
            row["mongodb, ms"], row["time as a ratio to MongoDB's"]))
