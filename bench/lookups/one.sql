\set id random(1, :documents)
SELECT value FROM lookups WHERE _id = :id;
