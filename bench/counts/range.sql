\set first random(0, :keys - :width - 1)
\set last :first + :width
SELECT count(*) FROM counts WHERE a >= :first AND a < :last;
