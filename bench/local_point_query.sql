\set id random(1, :documents)
SELECT * FROM local_points WHERE id = :id;
