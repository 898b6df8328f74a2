\ir tables.sql

-- One document by its key: one "find" command.
SELECT _id, customer, placed, status, total FROM orders WHERE _id = 4711;

EXPLAIN (VERBOSE, COSTS OFF)
SELECT _id, customer, placed, status, total FROM orders WHERE _id = 4711;

-- Conditions on nested fields; documents without a field.
SELECT number, name, email, "address.city", loyalty_points
FROM customers
WHERE "address.country" = 'JP' AND segment = 'public' AND number <= 500
ORDER BY number LIMIT 5;

EXPLAIN (VERBOSE, COSTS OFF)
SELECT number, name, email, "address.city", loyalty_points
FROM customers
WHERE "address.country" = 'JP' AND segment = 'public' AND number <= 500
ORDER BY number LIMIT 5;

-- Arrays and decimals.
SELECT _id, name, price, tags, weight
FROM products WHERE category IN ('garden', 'sport') AND price BETWEEN 20 AND 25
ORDER BY price;

-- The lines embedded in orders become rows and are joined to the products.
SELECT o._id, p.name, (line->>'quantity')::int AS quantity, p.price
FROM orders o
CROSS JOIN LATERAL jsonb_array_elements(o.lines) AS line
JOIN products p ON p._id = (line->>'product')::int
WHERE o._id IN (4711, 4712, 4713)
ORDER BY o._id, p.name;

-- A join and a group: the best customers in the sample's last year.
SELECT c.name, c."address.city" AS city, count(*) AS orders, sum(o.total) AS spent
FROM orders o JOIN customers c ON c.number = o.customer
WHERE o.placed >= '2024-01-01' AND o.status <> 'cancelled'
GROUP BY c.number, c.name, city
ORDER BY spent DESC LIMIT 5;

-- A prepared statement is translated once, and each run sends one command.
PREPARE order_of (int) AS SELECT _id, placed, total FROM orders WHERE customer = $1 ORDER BY _id;
EXECUTE order_of(42);
EXECUTE order_of(43);

-- A whole database as tables, with types derived from a sample of the documents.
CREATE SCHEMA shop;
IMPORT FOREIGN SCHEMA shop FROM SERVER mongodb INTO shop;
\d shop.customers
SELECT address_country, count(*) FROM shop.customers GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3;
