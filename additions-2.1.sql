--
-- What version 2.1 adds to version 2.0.
--

COMMENT ON FUNCTION mongo_fdw_version() IS 'version of mongo_fdw as a number, such as 20100 for 2.1.0';

-- The present time of a server's clock, for mongo_fdw.cluster_time.
CREATE OR REPLACE FUNCTION mongo_cluster_time(server name)
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION mongo_cluster_time(name) IS 'the present time of a MongoDB server''s clock';
