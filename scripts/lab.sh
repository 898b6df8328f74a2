#!/usr/bin/env bash
# make lab: builds, installs privately, starts both servers, prints how to connect.
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
. "$ROOT/scripts/servers.sh"

start_servers
as_lab_user "$PYTHON" "$WORK/src/demo/load_sample.py" --host "$MONGO_HOST" --port "$MONGO_PORT"
# The tables, unless this lab has had them before.
if [ -z "$(psql_lab -A -t -c "SELECT 1 FROM pg_foreign_server WHERE srvname = 'mongodb'")" ]; then
	psql_lab -q -v ON_ERROR_STOP=1 -f "$WORK/src/demo/tables.sql"
fi

say "
MongoDB at $MONGO_HOST:$MONGO_PORT has the sample in its database shop, PostgreSQL its tables in the
schema shop.  Connect with

    $PG_BIN/psql -h $PGHOST -p $PGPORT -U postgres postgres

and try

    SELECT status, count(*), sum(total) FROM shop.orders GROUP BY status;

. $ENV_FILE gives a shell the same settings.  \"make lab-stop\" stops both servers."
