\set id random(1, :documents)
SELECT * FROM far_points WHERE id = :id;
