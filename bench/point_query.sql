\set id random(1, :documents)
SELECT * FROM points WHERE id = :id;
