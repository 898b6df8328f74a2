"""Produce docs/sql-to-mongodb.md: SQL statements and the commands that MongoDB gets for them.

    sql_to_mongodb.py --dsn DSN --port PORT --replica-set-port PORT --output FILE

t/platform/sql_to_mongodb.md is the page without the commands.  Its blocks of SQL are
executed, one statement after the other, through proxies that see what is
sent; that, an error or EXPLAIN's output is put below the block.  Comments that begin
with "run:" are executed and left out.
"""
import argparse
import datetime
import os
import re

import psycopg2
import pymongo
from bson import ObjectId, json_util
from wire_recorder import WireRecorder

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = 100
BLOCK = re.compile(r"```sql\n(?P<shown>.*?)```\n|<!-- run:(?P<hidden>.*?)-->\n", re.DOTALL)
# what libmongoc adds to say who asks, and what most commands have; the page names them
LEFT_OUT = {"$db", "lsid", "txnNumber", "$clusterTime", "allowDiskUse", "batchSize", "collation", "cursor", "ordered"}
NEW_ID = {"$oid": "…"}

# documents have more fields than tables have columns
REST = "…" * 200
PEOPLE = [{"_id": ObjectId(f"509a8fb2f3f4948bd2{number:06x}"), "user_id": f"{'abc'[number % 3]}bc{number:04}",
           "age": 20 + number % 60, "status": "ABCD"[number % 4], "rest": REST} for number in range(5000)]
ORDERS = [{"_id": number, "cust_id": f"abc{number % 50}", "ord_date": datetime.datetime(2012, 11, 2 + number % 5),
           "status": "AB"[number % 2], "price": 50 + number % 40, "items": [{"sku": "xxx", "qty": 25, "price": 1}],
           "rest": REST}
          for number in range(5000)]
LINES = [{"order_id": number // 2, "sku": ("xxx", "yyy")[number % 2], "qty": 25, "price": 1, "rest": REST}
         for number in range(9999)]


def compact(value):
    return json_util.dumps(value, json_options=json_util.RELAXED_JSON_OPTIONS, ensure_ascii=False)


def pretty(value, indent=""):
    """JSON in as few lines as fit into WIDTH."""
    if len(indent) + len(compact(value)) <= WIDTH or not isinstance(value, (dict, list)):
        return compact(value)
    deeper = indent + "  "
    if isinstance(value, list):
        parts, (opening, closing) = [pretty(item, deeper) for item in value], "[]"
    else:
        parts, (opening, closing) = [f'"{key}": {pretty(item, deeper)}' for key, item in value.items()], "{}"
    return opening + "".join(f"\n{deeper}{part}," for part in parts)[:-1] + f"\n{indent}{closing}"


def left_out(document):
    return {key: value for key, value in document.items() if key not in LEFT_OUT}


def shown_command(command):
    """As a reader would type it: without what names the session, and without accidental values."""
    command = left_out(command)
    for writes in ("updates", "deletes"):
        if writes in command:
            command[writes] = [left_out(write) for write in command[writes]]
    for document in command.get("documents", ()):
        document["_id"] = NEW_ID
    return pretty(command)


class Page:
    def __init__(self, options):
        self.client = pymongo.MongoClient("127.0.0.1", options.port)
        self.recorders = [WireRecorder("127.0.0.1", port) for port in (options.port, options.replica_set_port)]
        self.connection = psycopg2.connect(options.dsn)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()

    def set_up(self):
        test = self.client.test
        for name, documents in (("people", PEOPLE), ("orders", ORDERS), ("order_lineitem", LINES)):
            test[name].drop()
            test[name].insert_many(documents)
        test.order_lineitem.create_index("order_id")
        self.cursor.execute("CREATE EXTENSION IF NOT EXISTS mongo_fdw")
        self.cursor.execute("SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10")
        # commands that are sent at once arrive in no order
        self.cursor.execute("SET enable_async_append = off")
        for server, recorder in zip(("mongodb", "replica_set"), self.recorders):
            self.cursor.execute(f"DROP SERVER IF EXISTS {server} CASCADE; CREATE SERVER {server} FOREIGN DATA WRAPPER mongo_fdw "
                                f"OPTIONS (address '127.0.0.1', port '{recorder.port}', round_trip_time '0', bandwidth '1e9'); "
                                f"CREATE USER MAPPING FOR CURRENT_USER SERVER {server}")

    def execute(self, statement):
        """What there is to show of a statement."""
        for recorder in self.recorders:
            recorder.take()
        shown = []
        try:
            self.cursor.execute(statement)
            if statement.startswith("EXPLAIN"):
                shown = ["\n".join(row[0] for row in self.cursor.fetchall())]
        except psycopg2.Error as error:
            shown = [f"ERROR:  {error.diag.message_primary}"]
            shown += [f"{title}:  {text}" for title, text in
                      (("DETAIL", error.diag.message_detail), ("HINT", error.diag.message_hint)) if text]
        return shown + [shown_command(command) for recorder in self.recorders for command in recorder.take()]

    def replace(self, block):
        if block["hidden"]:
            self.cursor.execute(block["hidden"])
            return ""
        statements = [text.strip() for text in block["shown"].split(";\n")]
        shown = [line for statement in statements if statement for line in self.execute(statement)]
        return block[0] + ("```\n%s\n```\n" % "\n".join(shown) if shown else "Nothing is sent.\n")

    def produce(self):
        with open(os.path.join(HERE, "sql_to_mongodb.md")) as file:
            return BLOCK.sub(self.replace, file.read())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--replica-set-port", type=int, required=True)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    page = Page(options)
    page.set_up()
    with open(options.output, "w") as file:
        file.write(page.produce())


if __name__ == "__main__":
    main()
