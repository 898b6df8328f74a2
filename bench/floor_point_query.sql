\set id random(1, :documents)
SELECT floor_find('127.0.0.1', :port, 'bench.points', :id);
