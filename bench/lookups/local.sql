\set id random(1, :documents)
SELECT value FROM local_lookups WHERE _id = :id;
