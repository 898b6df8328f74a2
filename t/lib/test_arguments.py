"""Arguments that the test programs share."""

import argparse
import os
import random


def parser(documentation):
    """Returns the parser of a program that uses both servers, which adds its own arguments."""
    result = argparse.ArgumentParser(description=documentation.splitlines()[0])
    result.add_argument("--dsn", default="", help="libpq connection string of a scratch database")
    result.add_argument("--mongo", default="mongodb://%s:%s" % (
        os.environ.get("MONGO_HOST", "127.0.0.1"), os.environ.get("MONGO_PORT", "27017")))
    return result


def add_drawn(result):
    result.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="a setting of PostgreSQL for the whole run")
    result.add_argument("--drawn", type=float, default=0.4,
                        help="share of the queries that are asked under settings drawn at random")


def random_parser(documentation):
    """Returns the parser of a program with random queries."""
    result = parser(documentation)
    result.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    result.add_argument("--queries", type=int, default=1000)
    add_drawn(result)
    return result


def add_documents(result, *more):
    """Adds the argument of a program with documents that fit their columns, or do not."""
    result.add_argument("--documents", choices=["clean", "hostile"], default="clean")
    result.add_argument("--type-mismatch", choices=["error", "null"] + list(more), default="error")
