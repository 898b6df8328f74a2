#!/usr/bin/env bash
# make lab: builds, installs privately, starts both servers, prints how to connect.
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
. "$ROOT/scripts/servers.sh"

start_servers
as_lab_user "$PYTHON" "$WORK/src/demo/load_sample.py" --host "$MONGO_HOST" --port "$MONGO_PORT"

say "
MongoDB     $MONGO_HOST:$MONGO_PORT (database shop holds the sample)
PostgreSQL  connect with

    $PG_BIN/psql -h $PGHOST -p $PGPORT -U postgres

In there, \\i $WORK/src/demo/tables.sql makes the sample's foreign tables.
A shell gets the same settings from $ENV_FILE.  Stop both with: make lab-stop"
