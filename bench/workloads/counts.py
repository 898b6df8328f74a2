"""Count all documents and ranges of an indexed key, beside the count command.

After the table published with TokuMX 1.4: documents {a: random 0..1M,
the_big_string: 540 bytes, x: random 0..10M} with an index on a; ranges of 10
to 10,000 keys, alone (an index answers) and with a condition on x (every
document must be looked at).  One session, prepared, random ranges.
"""
import random

from laboratory import median

KEYS, WIDTHS, BOUND = 1_000_000, (10, 100, 1_000, 10_000), 5_000_000
SHARE = 4				# a round of each of the many cases has this part of the seconds


def documents(count, keys):
    generator = random.Random(1)
    filler = "".join(generator.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(540))
    for _ in range(count):
        yield {"a": generator.randrange(keys), "the_big_string": filler, "x": generator.randrange(10_000_000)}


def compare(lab, title, keys, seconds, native, script, *options):
    """One line of the table: the count command, the same in SQL, an empty round trip."""
    lab.say(f" {title}")
    results = lab.alternate(
        native=lambda: lab.native(lab.uri, "bench.counts", seconds, *native, program="counts"),
        ping=lambda: lab.native(lab.uri, "bench.counts", min(seconds, 1), "ping", program="counts"),
        mongo_fdw=lambda: lab.pgbench(script, seconds, "-M", "prepared", "-n", "-D", f"keys={keys}",
                                      *options))
    latency = {name: median(rounds, "latency_ms") for name, rounds in results.items()}
    seen = results["mongo_fdw"][-1]["seen"]["commands"]
    transactions = results["mongo_fdw"][-1]["transactions"]
    return {"count": title, "documents": results["native"][-1]["documents"],
            "native ms": latency["native"], "round trip ms": latency["ping"], "mongo_fdw ms": latency["mongo_fdw"],
            "ratio to 1.3 native + a round trip":
                latency["mongo_fdw"] / (1.3 * latency["native"] + latency["ping"]),
            "commands a count": {name: number / transactions for name, number in seen.items()}}


def run(lab):
    count = int(1_000_000 * lab.scale)
    keys = int(KEYS * lab.scale)
    seconds = max(lab.seconds // SHARE, 1)
    lab.collection("counts", count, documents(count, keys), indexes=["a"])
    lab.sql("CREATE FOREIGN TABLE counts (a int OPTIONS (indexed 'true'), the_big_string text, x int) SERVER bench "
            "OPTIONS (database 'bench', collection 'counts', estimated_rows %s)", (str(count),))
    assert lab.sql("SELECT count(*) FROM counts") == [(count,)]

    # The count command takes the number of all documents from the collection's metadata, which need not be exact.
    table = [compare(lab, "all, native from metadata", keys, seconds, (0, keys), "counts/all.sql"),
             compare(lab, "all, native exactly", keys, seconds, ("aggregate", keys), "counts/all.sql")]
    for width in WIDTHS:
        if width < keys:
            table.append(compare(lab, f"{width} keys", keys, seconds, (width, keys),
                                 "counts/range.sql", "-D", f"width={width}"))
            table.append(compare(lab, f"{width} keys and a condition", keys, seconds, (width, keys, BOUND),
                                 "counts/range_and.sql", "-D", f"width={width}", "-D", f"bound={BOUND}"))
    return table
