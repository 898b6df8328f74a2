"""Thirty reports over the lending of a library: branches, members, books and 300,000 loans."""
import datetime
import random

import pymongo
from bson import Decimal128

BRANCHES, MEMBERS, BOOKS, LOANS = 20, 20_000, 30_000, 300_000
REGIONS = ("north", "south", "east", "west")
KINDS = ("adult", "child", "school", "reduced")
GENRES = tuple(f"genre {number:02}" for number in range(15))
LANGUAGES = ("en", "de", "fr", "tr", "ar", "ru")
FIRST = datetime.datetime(2022, 1, 1)
DAYS = 1095
NOW = FIRST + datetime.timedelta(days=DAYS)


def branches(_):
    for number in range(BRANCHES):
        yield {"_id": number, "city": f"City {number:02}", "region": REGIONS[number % len(REGIONS)]}


def members(count):
    generator = random.Random(1)
    for number in range(count):
        yield {"_id": number, "name": f"Member {number:05}", "branch": generator.randrange(BRANCHES),
               "joined": FIRST - datetime.timedelta(days=generator.randrange(3650)),
               "born": generator.randint(1930, 2018), "kind": generator.choice(KINDS)}


def books(count):
    generator = random.Random(2)
    for number in range(count):
        yield {"_id": number, "title": f"Title {generator.randrange(10**6):06} of book {number:05}",
               "genre": generator.choice(GENRES), "language": generator.choice(LANGUAGES),
               "pages": generator.randint(40, 1200), "price": Decimal128(f"{generator.randint(500, 9000)}e-2")}


def loans(count, member_count, book_count):
    generator = random.Random(3)
    for number in range(count):
        lent = FIRST + datetime.timedelta(days=number * DAYS // count, minutes=generator.randrange(600, 1080))
        returned = lent + datetime.timedelta(days=generator.randint(1, 40))
        yield {"_id": number, "member": int(member_count * generator.random() ** 2),
               "book": int(book_count * generator.random() ** 3), "branch": generator.randrange(BRANCHES), "lent": lent,
               "due": lent + datetime.timedelta(days=28), "returned": returned if returned < NOW else None,
               "renewals": generator.randrange(4), "fee": Decimal128(f"{generator.choice((0, 0, 0, 50, 120))}e-2")}


COLUMNS = {
    "branches": "_id integer NOT NULL, city text, region text",
    "members": "_id integer NOT NULL, name text, branch integer, joined timestamp, born integer, kind text",
    "books": "_id integer NOT NULL, title text, genre text, language text, pages integer, price numeric",
    "loans": "_id integer NOT NULL, member integer, book integer, branch integer, lent timestamp, due timestamp, "
             "returned timestamp, renewals integer, fee numeric"}

REPORTS = {
    "loans by branch": "SELECT branch, count(*) FROM loans GROUP BY branch",
    "loans by region": "SELECT region, count(*) FROM loans l JOIN branches b ON b._id = l.branch GROUP BY region",
    "loans by month": "SELECT date_trunc('month', lent) AS month, count(*), sum(renewals) FROM loans GROUP BY 1",
    "loans by weekday": "SELECT extract(isodow FROM lent) AS day, count(*) FROM loans GROUP BY 1",
    "on loan now, by branch": "SELECT branch, count(*) FROM loans WHERE returned IS NULL GROUP BY branch",
    "returned late, by branch": "SELECT branch, count(*) FILTER (WHERE returned > due) AS late, count(*) FROM loans GROUP BY branch",
    "the ten books lent most":
        "SELECT title, n FROM (SELECT book, count(*) AS n FROM loans GROUP BY book ORDER BY n DESC, book LIMIT 10) AS l "
        "JOIN books ON _id = book",
    "loans by genre": "SELECT genre, count(*) FROM loans JOIN books ON books._id = book GROUP BY genre",
    "fees by kind of member": "SELECT kind, sum(fee), count(*) FROM loans JOIN members ON members._id = member GROUP BY kind",
    "members who never lent": "SELECT count(*) FROM members m WHERE NOT EXISTS (SELECT 1 FROM loans WHERE member = m._id)",
    "books of a genre nobody lent":
        "SELECT _id, title FROM books b WHERE genre = 'genre 03' AND NOT EXISTS (SELECT 1 FROM loans WHERE book = b._id)",
    "the newest twenty loans":
        "SELECT title, lent FROM (SELECT book, lent FROM loans ORDER BY lent DESC, _id LIMIT 20) AS l JOIN books ON _id = book",
    "a member's history":
        "SELECT title, lent, returned FROM loans JOIN books ON books._id = book WHERE member = 17 ORDER BY lent, loans._id",
    "different members by branch": "SELECT branch, count(DISTINCT member) FROM loans GROUP BY branch",
    "different books lent": "SELECT count(DISTINCT book) FROM loans",
    "longest books by language": "SELECT language, max(pages), min(pages), count(*) FROM books WHERE pages > 800 GROUP BY language",
    "value of the stock by genre": "SELECT genre, sum(price), avg(price) FROM books GROUP BY genre",
    "books dearer than average": "SELECT count(*) FROM books WHERE price > (SELECT avg(price) FROM books)",
    "renewals": "SELECT renewals, count(*), sum(fee) FROM loans GROUP BY renewals",
    "loans by age":
        "SELECT CASE WHEN born > 2006 THEN 'child' WHEN born > 1960 THEN 'adult' ELSE 'senior' END AS age, count(*) "
        "FROM loans JOIN members ON members._id = member GROUP BY 1",
    "members by year of joining": "SELECT extract(year FROM joined) AS year, count(*) FROM members GROUP BY 1",
    "readers of more than sixty books":
        "SELECT member, count(*) FROM loans GROUP BY member HAVING count(*) > 60",
    "best reader of each region":
        "SELECT * FROM (SELECT region, member, n, rank() OVER (PARTITION BY region ORDER BY n DESC, member) AS place FROM "
        "(SELECT branch, member, count(*) AS n FROM loans GROUP BY branch, member) AS l JOIN branches ON _id = branch) AS r "
        "WHERE place = 1",
    "growth from month to month":
        "SELECT month, n, n - lag(n) OVER (ORDER BY month) FROM (SELECT date_trunc('month', lent) AS month, count(*) AS n "
        "FROM loans GROUP BY 1) AS m",
    "median of the fees": "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY fee) FROM loans WHERE fee > 0 AND branch = 3",
    "region and kind, with totals":
        "SELECT region, kind, count(*) FROM members JOIN branches ON branches._id = branch GROUP BY ROLLUP (region, kind)",
    "lent on two days at a branch":
        "SELECT name, lent FROM loans JOIN members ON members._id = member WHERE loans.branch = 5 "
        "AND lent >= '2023-05-02' AND lent < '2023-05-04'",
    "overdue by more than ten days":
        "SELECT name, title, due FROM loans l JOIN members m ON m._id = member JOIN books b ON b._id = book "
        "WHERE returned IS NULL AND due < timestamp '2024-12-31' - interval '10 days'",
    "totals of all tables":
        "SELECT 'loans' AS what, count(*) FROM loans UNION ALL SELECT 'members', count(*) FROM members "
        "UNION ALL SELECT 'books', count(*) FROM books",
    "titles that contain a text": "SELECT _id, title FROM books WHERE title LIKE '%0421%'"}


def load(lab):
    """Fills the collections, in database bench."""
    member_count, book_count, loan_count = (max(int(number * lab.scale), 100) for number in (MEMBERS, BOOKS, LOANS))
    lab.collection("branches", BRANCHES, branches(BRANCHES))
    lab.collection("members", member_count, members(member_count), indexes=["branch"])
    lab.collection("books", book_count, books(book_count), indexes=["genre"])
    lab.collection("loans", loan_count, loans(loan_count, member_count, book_count), indexes=["member", "book", "lent"])
    with pymongo.MongoClient(lab.uri) as client:
        return {name: client.bench[name].estimated_document_count() for name in COLUMNS}
