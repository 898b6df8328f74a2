#!/usr/bin/env bash
# make demo: shows the main features in psql.
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
. "$ROOT/scripts/servers.sh"

stop_servers_at_exit
start_servers
DEMO=$WORK/src/demo
as_lab_user "$PYTHON" "$DEMO/load_sample.py" --host "$MONGO_HOST" --port "$MONGO_PORT"
as_lab_user "$PG_BIN/dropdb" --if-exists demo 2>/dev/null
as_lab_user "$PG_BIN/createdb" demo
export PGDATABASE=demo PGTZ=UTC PGOPTIONS="-c client_min_messages=warning"
say "\$ psql demo"
psql_lab -v ON_ERROR_STOP=1 -a -P pager=off -P "null=(null)" -f "$DEMO/demo.sql"
say ""
PGBENCH=$PG_BIN/pgbench as_lab_user "$PYTHON" "$DEMO/point_queries.py"
say "
next: \"make lab\" starts the same servers and keeps them; docs/tutorial.md begins with your own MongoDB"
