"""Connections of a test program to PostgreSQL and MongoDB."""

import psycopg2
from pymongo import MongoClient


class BothServers:
    def __init__(self, options):
        """Connects by the arguments of test_arguments.py; each statement is its own transaction."""
        self.options = options
        self.connection = psycopg2.connect(options.dsn)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        self.client = MongoClient(options.mongo)

    def execute(self, sql, *arguments):
        """Runs SQL; returns the last statement's rows, or None if it returns none."""
        self.cursor.execute(sql, arguments or None)
        return self.cursor.fetchall() if self.cursor.description else None
