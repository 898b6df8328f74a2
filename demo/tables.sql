-- The sample's collections as foreign tables of the schema shop.  psql reads MONGO_HOST and
-- MONGO_PORT from the environment.
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT

CREATE EXTENSION mongo_fdw;
CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb;

-- A whole database as tables: names and types come from the documents.
CREATE SCHEMA shop;
IMPORT FOREIGN SCHEMA shop FROM SERVER mongodb INTO shop;
ANALYZE shop.customers, shop.orders, shop.products, shop.reviews;
