-- A shop's data is in MongoDB.  We want to look after an order, then at the business.
\pset format wrapped
\pset columns 100
\ir tables.sql
SET search_path = shop;
\d orders

-- Order 4711: one "find" command, of the fields that are asked for.
SELECT placed, status, total, customer FROM orders WHERE _id = 4711;

EXPLAIN (VERBOSE, COSTS OFF) SELECT total FROM orders WHERE _id = 4711;

-- What is in it?  The lines, an array in the document, become rows, joined to the products.
SELECT p.name, (line->>'quantity')::int AS quantity, p.price
FROM orders o CROSS JOIN LATERAL jsonb_array_elements(o.lines) AS line
	JOIN products p ON p._id = (line->>'product')::int
WHERE o._id = 4711
ORDER BY p.name;

-- Whose is it?  Nested fields are columns, and a field that is missing is NULL.
SELECT name, email, address_city, address_country, loyalty_points
FROM customers c
WHERE number = (SELECT customer FROM orders WHERE _id = 4711);

-- The customer orders once more.  Writes reach MongoDB at once.
INSERT INTO orders (_id, customer, placed, status, total) VALUES (20001, 42, now(), 'paid', 12.50);
UPDATE orders SET status = 'shipped' WHERE _id = 20001 RETURNING _id, status, total;
DELETE FROM orders WHERE _id = 20001;

-- The business: the best customers since 2024.  What costs less in MongoDB is computed there.
SELECT c.name, c.address_city AS city, count(*) AS orders, sum(o.total) AS spent
FROM orders o JOIN customers c ON c.number = o.customer
WHERE o.placed >= '2024-01-01' AND o.status <> 'cancelled'
GROUP BY c.number, c.name, city
ORDER BY spent DESC LIMIT 5;

-- How many wait to be shipped?  MongoDB counts, and one number crosses the network.
SELECT count(*) FROM orders WHERE status = 'paid';
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM orders WHERE status = 'paid';
