# Start and stop the laboratory's PostgreSQL and MongoDB.  Sourced.
#
# PostgreSQL listens on a Unix-domain socket in a folder that only its owner can
# enter, MongoDB on the loopback address.

# "make test" has servers of its own, separate from those of "make lab".
ENV_FILE=${TEST_ENV:-$WORK/env}
RUN=${TEST_RUN:-$WORK/run}

# Is the process with the ID in this file running, and one of these servers?
process_of() {
	local number
	number=$(head -n 1 "$1" 2>/dev/null) || return 1
	[ -n "$number" ] && grep -qs "$2" "/proc/$number/cmdline" && printf '%s\n' "$number"
}

# Are both already running?
servers_run() {
	process_of "$RUN/mongod.pid" mongod >/dev/null &&
		process_of "$RUN/postgresql/postmaster.pid" postgres >/dev/null
}

wait_for_mongod() {
	as_lab_user "$PYTHON" - "$1" <<-'END'
		import sys, pymongo
		client = pymongo.MongoClient("127.0.0.1", int(sys.argv[1]), directConnection=True,
		                             serverSelectionTimeoutMS=60000)
		client.admin.command("ping")
	END
}

start_mongod() {
	local attempt
	if process_of "$RUN/mongod.pid" mongod >/dev/null; then
		return
	fi
	progress "starting mongod"
	as_lab_user mkdir -p "$RUN/mongod"
	for attempt in 1 2 3; do	# another process may take the port meanwhile
		MONGO_PORT=$(free_port)
		if as_lab_user "${MONGOD:-$LAB/bin/mongod}" --fork --quiet \
			--dbpath "$RUN/mongod" --logpath "$RUN/mongod.log" \
			--pidfilepath "$RUN/mongod.pid" --bind_ip 127.0.0.1 --port "$MONGO_PORT" \
			--nounixsocket --wiredTigerCacheSizeGB 1 \
			--setParameter diagnosticDataCollectionEnabled=false \
			"${MONGOD_ARGUMENTS[@]}" >/dev/null; then
			wait_for_mongod "$MONGO_PORT"
			return
		fi
	done
	tail -n 20 "$RUN/mongod.log" >&2
	fail "mongod does not start"
}

start_postgresql() {
	if [ -n "$(process_of "$RUN/postgresql/postmaster.pid" postgres)" ]; then
		return
	fi
	progress "starting PostgreSQL"
	if [ ! -f "$RUN/postgresql/PG_VERSION" ]; then
		as_lab_user mkdir -p "$RUN"
		as_lab_user "$PG_BIN/initdb" --pgdata="$RUN/postgresql" --username=postgres \
			--auth=trust --encoding=UTF8 --no-locale --no-sync >/dev/null
		as_lab_user sh -c "echo \"include 'temp_config.conf'\" >>'$RUN/postgresql/postgresql.conf'"
	fi
	# as for the servers of TAP tests
	as_lab_user sh -c "cat '${TEMP_CONFIG:-/dev/null}' >'$RUN/postgresql/temp_config.conf'"
	PGHOST=$(socket_folder)
	PGPORT=$(free_port)
	as_lab_user env "${SERVER_ENVIRONMENT[@]}" \
		"$PG_BIN/pg_ctl" --silent --wait --pgdata="$RUN/postgresql" --log="$RUN/postgresql.log" start \
		--options="-k '$PGHOST' -p $PGPORT -c listen_addresses='' -c unix_socket_permissions=0700 -c max_connections=200" || {
		tail -n 20 "$RUN/postgresql.log" >&2
		fail "PostgreSQL does not start"
	}
	if [ -n "${PGBOUNCER-}" ]; then start_pgbouncer; fi
}

# With PGBOUNCER, clients connect to this program, which connects them to PostgreSQL.
start_pgbouncer() {
	as_lab_user mkdir -p -m 700 "$RUN/pgbouncer"
	as_lab_user sh -c "cat >'$RUN/pgbouncer/pgbouncer.ini'" <<-END
		[databases]
		* = host=$PGHOST port=$PGPORT user=postgres
		[pgbouncer]
		unix_socket_dir = $RUN/pgbouncer
		listen_port = $PGPORT
		auth_type = any
		pool_mode = session
		default_pool_size = 1
		ignore_startup_parameters = options
		logfile = $RUN/pgbouncer.log
		pidfile = $RUN/pgbouncer/pgbouncer.pid
	END
	as_lab_user "$PGBOUNCER" --quiet --daemon "$RUN/pgbouncer/pgbouncer.ini"
	PGHOST=$RUN/pgbouncer
}

# Start each server unless it runs; the ports of running servers are recorded.
start_servers() {
	if [ -f "$ENV_FILE" ]; then
		# shellcheck disable=SC1090
		. "$ENV_FILE"
	fi
	start_mongod
	start_postgresql
	export MONGO_HOST=127.0.0.1 MONGO_PORT PGHOST PGPORT PGUSER=postgres PGDATABASE=postgres
	as_lab_user sh -c "cat >'$ENV_FILE'" <<-END
		export MONGO_HOST=127.0.0.1
		export MONGO_PORT=$MONGO_PORT
		export PGHOST=$PGHOST
		export PGPORT=$PGPORT
		export PGUSER=postgres
		export PGDATABASE=postgres
		export PYTHONPATH=$ROOT/t/lib
	END
}

stop_servers() {
	local number
	number=$(process_of "$RUN/pgbouncer/pgbouncer.pid" pgbouncer) && as_lab_user kill "$number"
	if [ -n "$(process_of "$RUN/postgresql/postmaster.pid" postgres)" ]; then
		as_lab_user "$PG_BIN/pg_ctl" --silent --wait --mode=fast \
			--pgdata="$RUN/postgresql" stop || true
	fi
	number=$(process_of "$RUN/mongod.pid" mongod) || number=
	if [ -n "$number" ]; then
		as_lab_user kill "$number" || true
		for _ in $(seq 300); do
			kill -0 "$number" 2>/dev/null || break
			sleep 0.1
		done
		# mongod leaves it, and another mongod may get the number
		kill -0 "$number" 2>/dev/null || as_lab_user rm -f "$RUN/mongod.pid"
	fi
	if [ -f "$ENV_FILE" ]; then
		number=$(sed -n 's,^export PGHOST=\(/tmp/mongo_fdw_sockets\.\),\1,p' "$ENV_FILE")
		[ -z "$number" ] || as_lab_user rm -rf "$number"
		as_lab_user rm -f "$ENV_FILE"
	fi
}

# Called however the script ends; servers of "make lab" keep running.
stop_servers_at_exit() {
	if servers_run; then
		return
	fi
	trap 'rm -rf "$SCRATCH"; stop_servers' EXIT
}

psql_lab() {
	as_lab_user "$PG_BIN/psql" -X "$@"
}
