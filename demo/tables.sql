-- The sample's collections as foreign tables.  psql reads MONGO_HOST and
-- MONGO_PORT from the environment.
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT

CREATE EXTENSION IF NOT EXISTS mongo_fdw;

DROP SERVER IF EXISTS mongodb CASCADE;
CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');

CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb;

CREATE FOREIGN TABLE customers (
	_id					name,
	number				int,
	name				text,
	email				text,
	segment				text,
	active				bool,
	since				timestamptz,
	"address.city"		text,
	"address.country"	text,
	loyalty_points		int
) SERVER mongodb OPTIONS (database 'shop', collection 'customers', estimated_rows '5000');

CREATE FOREIGN TABLE products (
	_id					int,
	name				text,
	category			text,
	price				numeric(10,2),
	stock				int,
	tags				text[],
	weight				float8		OPTIONS (path 'dimensions.weight')
) SERVER mongodb OPTIONS (database 'shop', collection 'products', estimated_rows '1200');

CREATE FOREIGN TABLE orders (
	_id					int,
	customer			int,
	placed				timestamptz,
	shipped				timestamptz,
	status				text,
	total				numeric(10,2),
	lines				jsonb
) SERVER mongodb OPTIONS (database 'shop', collection 'orders', estimated_rows '20000');

CREATE FOREIGN TABLE reviews (
	_id					name,
	product				int,
	customer			int,
	stars				int2,
	written				timestamptz,
	text				text,
	helpful				jsonb
) SERVER mongodb OPTIONS (database 'shop', collection 'reviews', estimated_rows '12000');
