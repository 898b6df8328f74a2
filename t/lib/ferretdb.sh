#!/bin/bash
# A FerretDB 2 that takes the arguments of a mongod: whatever starts a mongod can start it.
#
#	--dbpath, --port, --fork with --logpath and --pidfilepath, --version; ignores the others
#
# FERRETDB is its program.  The documents are in a PostgreSQL with the extension documentdb, below
# the folder of --dbpath, which ends with it.
set -eu

bin=/usr/lib/postgresql/18/bin
fork= log=/dev/null pid_file=
while [ $# != 0 ]; do
	case $1 in
		--version)
			printf 'db version vFerretDB %s\n' "$("$FERRETDB" --version | sed -n 's/^version: v//p')"
			exit
			;;
		--dbpath) data=$2; shift ;;
		--port) port=$2; shift ;;
		--logpath) log=$2; shift ;;
		--pidfilepath) pid_file=$2; shift ;;
		--fork) fork=yes ;;
	esac
	shift
done

cluster=$data/postgresql
if [ ! -e "$cluster/PG_VERSION" ]; then
	"$bin/initdb" --pgdata="$cluster" --username=postgres --auth=trust --encoding=UTF8 --no-locale --no-sync >/dev/null
	cat >>"$cluster/postgresql.conf" <<-END
		shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'
		cron.database_name = 'postgres'
		cron.host = '$cluster'
		documentdb.localhost_connection_string = 'host=$cluster'
		listen_addresses = ''
		unix_socket_directories = '$cluster'
		max_connections = 200
		fsync = off
		jit = off
	END
	"$bin/pg_ctl" --pgdata="$cluster" --log="$cluster/log" --silent --wait start
	"$bin/psql" -qX -h "$cluster" -U postgres -c 'CREATE EXTENSION documentdb CASCADE' 2>/dev/null
	"$bin/pg_ctl" --pgdata="$cluster" --silent --wait stop
fi
rm -f "$cluster/postmaster.pid"

run() {
	setpriv --pdeathsig INT "$bin/postgres" -D "$cluster" >>"$cluster/log" 2>&1 &
	until "$bin/pg_isready" -q -h "$cluster"; do sleep 0.1; done
	exec "$FERRETDB" --listen-addr="127.0.0.1:$port" --state-dir="$data" --no-auth --telemetry=disable \
		--debug-addr=- --log-level=ERROR \
		--postgresql-url="postgres://postgres@localhost/postgres?host=$cluster"
}

if [ -z "$fork" ]; then run; fi
(run) >>"$log" 2>&1 </dev/null &
printf '%s\n' $! >"$pid_file"
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
	kill -0 $! || exit 1
	sleep 0.1
done
