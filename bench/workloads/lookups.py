"""Random lookups by _id among ten million documents: in one collection, and hash-partitioned over eight.

One pgbench script, prepared, 24 clients; the native program looks up in the
one collection, and an ordinary table with a primary key has the same rows.
"""
import pymongo

from laboratory import median
from workloads.point_query import rows

DOCUMENTS, PARTITIONS, CLIENTS = 10_000_000, 8, 24


def documents(numbers):
    for number in numbers:
        yield {"_id": number, "value": number * 7}


def prepare(lab, count):
    columns = "_id int, value bigint"
    lab.collection("lookups", count, documents(range(1, count + 1)))
    lab.sql(f"CREATE FOREIGN TABLE IF NOT EXISTS lookups ({columns}) SERVER bench "
            "OPTIONS (database 'bench', collection 'lookups', estimated_rows %s)", (str(count),))
    lab.local_table("local_lookups", "SELECT * FROM lookups", "_id")
    lab.sql("DROP TABLE IF EXISTS lookups_hash CASCADE")
    lab.sql(f"CREATE TABLE lookups_hash ({columns}) PARTITION BY HASH (_id)")
    for number in range(PARTITIONS):
        lab.sql(f"CREATE FOREIGN TABLE lookups_hash_{number} PARTITION OF lookups_hash "
                f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number}) SERVER bench "
                f"OPTIONS (database 'bench', collection 'lookups_hash_{number}')")
    with pymongo.MongoClient(lab.uri) as client:
        loaded = sum(client.bench[f"lookups_hash_{number}"].estimated_document_count() for number in range(PARTITIONS))
        if loaded != count:
            lab.say("routing them into the partitions")
            for number in range(PARTITIONS):
                client.bench[f"lookups_hash_{number}"].drop()
            lab.sql("INSERT INTO lookups_hash SELECT * FROM local_lookups")


def run(lab):
    count = int(DOCUMENTS * lab.scale)
    prepare(lab, count)

    def pgbench(script):
        return lab.pgbench(f"lookups/{script}.sql", lab.seconds, "-M", "prepared", "-n", "-c", CLIENTS, "-j", 2,
                           "-D", f"documents={count}")

    return rows(lab.alternate(**{
        "native": lambda: lab.native("point", lab.uri, "bench.lookups", CLIENTS, lab.seconds, count, "_id"),
        "mongo_fdw": lambda: pgbench("one"),
        "mongo_fdw, 8 partitions": lambda: pgbench("partitions"),
        "local table": lambda: pgbench("local"),
    }))
