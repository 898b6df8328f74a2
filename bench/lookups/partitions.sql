\set id random(1, :documents)
SELECT value FROM lookups_hash WHERE _id = :id;
