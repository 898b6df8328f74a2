"""Read 3 of the 50 fields of 200,000 wide documents."""
from laboratory import median
from workloads.scan import measured

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
    query = "SELECT field_07, name, field_40 FROM wide_scan"
    results = lab.alternate(
        native=lambda: lab.native("scan", lab.uri, "bench.wide", "field_07", "name", "field_40"),
        mongo_fdw=lambda: measured(lab, query, count))
    table = [{"program": name, "seconds": median(rounds, "seconds"),
              "client CPU seconds": median(rounds, "cpu_seconds")} for name, rounds in results.items()]
    native, wrapper = table
    wrapper["time as a ratio to native's"] = wrapper["seconds"] / native["seconds"]
    return table
