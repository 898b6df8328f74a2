# Shared by the suites that others wrote: PostgreSQL's source, and new servers under
# .lab/$SUITE that stop when the script ends.  Sourced, with SUITE set.
. "$ROOT/scripts/fetch_source.sh"
TEST_PACKAGES+=$SOURCE_PACKAGES
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
RESULTS=$WORK/$SUITE
TEST_RUN=$RESULTS/run
TEST_ENV=$RESULTS/env
. "$ROOT/scripts/servers.sh"

REGRESS=$WORK/regress
if [ ! -f "$REGRESS/source/src/test/regress/sql/join.sql" ]; then
	progress "fetching PostgreSQL's source package"
	as_lab_user rm -rf "$REGRESS"
	fetch_postgresql_source "$REGRESS" >"$SCRATCH/log" 2>&1 || {
		tail -n 40 "$SCRATCH/log" >&2
		fail "could not fetch PostgreSQL's source package"
	}
fi

# A replica set of one member, for transactions.  The member's configuration contains its
# port, which is different each time.
stop_servers
as_lab_user mkdir -p "$RESULTS"
as_lab_user rm -rf "$TEST_RUN"
trap 'rm -rf "$SCRATCH"; stop_servers' EXIT
trap 'exit 143' INT TERM
MONGOD_ARGUMENTS=(--replSet rs --oplogSize 512 --setParameter transactionLifetimeLimitSeconds=3600)
start_servers

run_suite() {
	local program=$1
	shift
	as_lab_user "$PYTHON" "$WORK/src/scripts/suites/$program" \
		--mongo "mongodb://127.0.0.1:$MONGO_PORT" "$@"
}
