"""Read 3 of the 50 fields of 200,000 wide documents."""
from workloads.scan import measured, rows

FIELDS = 50


def documents(count):
    for number in range(1, count + 1):
        document = {f"field_{field:02}": number * field for field in range(FIELDS - 2)}
        document["name"] = f"document number {number}"
        document["text"] = "x" * 40
        yield document


def run(lab):
    count = int(200_000 * lab.scale)
    lab.collection("wide", count, documents(count))
    columns = ", ".join(f"field_{field:02} int" for field in range(FIELDS - 2))
    lab.sql(f"CREATE FOREIGN TABLE wide_scan ({columns}, name text, text text) SERVER bench "
            "OPTIONS (database 'bench', collection 'wide')")
    lab.sql("ANALYZE wide_scan")
    lab.local_table("local_wide", "SELECT * FROM wide_scan")
    fields = ("field_07", "name", "field_40")
    query = f"SELECT {', '.join(fields)} FROM "
    return rows(lab.alternate(**{
        "native": lambda: lab.native("scan", lab.uri, "bench.wide", *fields),
        "floor": lambda: lab.native("scan", lab.host, lab.port, "bench.wide", *fields, program="floor"),
        "mongo_fdw": lambda: measured(lab, query + "wide_scan", count),
        "local table": lambda: measured(lab, query + "local_wide", count),
    }), count)
