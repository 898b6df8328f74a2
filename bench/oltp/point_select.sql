\set id random(1, :table_size)
SELECT c FROM sbtest WHERE id = :id;
