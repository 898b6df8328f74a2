"""What a test program that talks to PostgreSQL and to MongoDB begins with."""

import psycopg2
from pymongo import MongoClient


class BothServers:
    def __init__(self, options):
        """With the arguments of test_arguments.py; each statement is a transaction of its own."""
        self.options = options
        self.connection = psycopg2.connect(options.dsn)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        self.client = MongoClient(options.mongo)

    def execute(self, sql, *arguments):
        """Run SQL; the last statement's rows, None when it has none to give."""
        self.cursor.execute(sql, arguments or None)
        return self.cursor.fetchall() if self.cursor.description else None
