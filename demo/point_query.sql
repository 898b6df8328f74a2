\set id random(1, 20000)
SELECT * FROM orders WHERE _id = :id;
