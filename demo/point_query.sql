\set id random(1, 20000)
SELECT * FROM shop.orders WHERE _id = :id;
