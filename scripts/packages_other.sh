# The other wrapper's packages beside ours.  Sourced by packages.sh.
#
# Debian and PGDG publish another wrapper for MongoDB as postgresql-N-mongo-fdw and mongo_fdw_N.
# With both wrappers in the system's sources:
#
#	- either is installed in place of the other when it is asked for;
#	- no upgrade changes the one for the other, whatever their versions are.
#
# Where the system's own sources do not have the other's package, one of the same name and version
# with other files in the same places stands for it.

OTHER_VERSION=5.5.3
# Where PostgreSQL looks, in the root.
library_of() { printf '/usr/lib/postgresql/%s/lib/mongo_fdw.so\n' "$1"; }
bitcode_of() { printf '/usr/lib/postgresql/%s/lib/bitcode/mongo_fdw.index.bc\n' "$1"; }
control_of() { printf '/usr/share/postgresql/%s/extension/mongo_fdw.control\n' "$1"; }

# The files of the package that stands for the other's, in a folder.
make_other_files() {
	local folder=$1 major=$2
	install -D -m 644 /dev/null "$folder$(library_of "$major")"
	install -D -m 644 /dev/null "$folder$(control_of "$major")"
	echo "the other's" >"$folder$(library_of "$major")"
	printf '%s\n' "default_version = '1.1'" "module_pathname = '\$libdir/mongo_fdw'" \
		>"$folder$(control_of "$major")"
}

# Is the library one of this package, and is nothing left of the other's?
# replaced WHAT ROOT MAJOR OWNER DEFAULT_VERSION COMMAND..., which prints a file's package
replaced() {
	local what=$1 root=$2 major=$3 owner=$4 version=$5 is
	shift 5
	is="$(enter "$root" "$@" "$(library_of "$major")" 2>&1 || true)
$(cat "$ROOTS/$root$(control_of "$major")" 2>&1 || true)"
	if grep -qF "$owner" <<<"$is" && grep -qx "default_version = '$version'" <<<"$is"; then
		passed "$what"
	else
		failed "$what"
		printf '%s\n' "$is" >&2
	fi
}

# A folder of packages as a source of apt: theirs if there is none, ours, and a newer one of ours.
make_deb_source() {
	local root=$1 major=$2 folder=$ROOTS/$1/repository name=postgresql-$2-mongo-fdw
	rm -rf "$folder"
	mkdir -p "$folder"
	cp "$RELEASE/postgresql-$major-mongodb-fdw_"*.deb "$folder/"
	if [ -z "$(enter "$root" apt-cache pkgnames "$name" | grep -x "$name")" ]; then
		make_other_files "$ROOTS/$root/other" "$major"
		mkdir "$ROOTS/$root/other/DEBIAN"
		printf '%s\n' "Package: $name" "Version: $OTHER_VERSION-1" 'Architecture: all' \
			"Depends: postgresql-$major" 'Maintainer: nobody <nobody@example.com>' \
			'Description: stands for the other wrapper' >"$ROOTS/$root/other/DEBIAN/control"
		quietly enter "$root" dpkg-deb --root-owner-group -b /other /repository
		STANDS_FOR=" (a package that stands for it)"
	else
		STANDS_FOR=
	fi
	echo 'deb [trusted=yes] file:/repository ./' >"$ROOTS/$root/etc/apt/sources.list.d/repository.list"
	scan_deb_source "$root"
}

scan_deb_source() {
	quietly enter "$1" sh -c 'cd /repository && apt-ftparchive packages . >Packages && apt-get -q update'
}

add_newer_deb() {
	quietly enter "$1" sh -e -c '
		dpkg-deb -R /repository/postgresql-*-mongodb-fdw_*.deb /newer
		sed -i "s/^Version: .*/&+newer/" /newer/DEBIAN/control
		dpkg-deb -b /newer /repository'
	scan_deb_source "$1"
}

# A database with the other's extension, 1.1, and what a table in it has; with ours after that; and
# with the extension updated to ours.  Only the real package has an extension that works.
in_other_database() {
	local root=$1 major=$2
	in_cluster "$root" "$major" runuser -u postgres -- psql -XAtq -v ON_ERROR_STOP=1
}

FIRST_CUSTOMER='SELECT number, name FROM customers WHERE number = 1;'

make_other_database() {
	in_other_database "$1" "$2" <<-END
		CREATE DATABASE other;
		\\connect other
		CREATE EXTENSION mongo_fdw;
		CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$MONGO_PORT');
		CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb;
		CREATE FOREIGN TABLE customers (_id name, number int, name text) SERVER mongodb
		    OPTIONS (database 'shop', collection 'customers');
		$FIRST_CUSTOMER
	END
}

try_other_database() {
	local what=$1 root=$2 major=$3 before=$4 after
	after=$(in_other_database "$root" "$major" 2>&1 <<-END
		\\connect other
		$FIRST_CUSTOMER
		ALTER EXTENSION mongo_fdw UPDATE;
		$FIRST_CUSTOMER
	END
	) || true
	if [ -n "$before" ] && [ "$after" = "$before"$'\n'"$before" ]; then
		passed "$what: a table of the other's extension has the same rows, before its update and after it"
	else
		failed "$what: a table of the other's extension has the same rows, before its update and after it"
		printf '%s\n' "$before" "$after" >&2
	fi
}

try_other_deb() {
	local what=$1 root=$2 major=$3 other=postgresql-$3-mongo-fdw ours=postgresql-$3-mongodb-fdw
	local to row
	quietly enter "$root" apt-get -q -y install --no-install-recommends apt-utils
	make_deb_source "$root" "$major"
	other_deb() { replaced "$what: $1" "$root" "$major" "$other" "${2:-1.1}" dpkg -S; }
	our_deb() { replaced "$what: $1" "$root" "$major" "$ours" "$DEFAULT_VERSION" dpkg -S; }
	apt() { quietly enter "$root" apt-get -q -y "$@" || failed "$what: apt-get $*"; }

	apt install "$other"
	other_deb "the other's is installed by its name$STANDS_FOR"
	apt upgrade
	apt dist-upgrade
	other_deb "and no upgrade puts ours in its place"
	if [ -z "$STANDS_FOR" ]; then row=$(make_other_database "$root" "$major") || true; fi
	apt install "$ours"
	our_deb "ours is installed over the other's"
	if [ -z "$STANDS_FOR" ]; then try_other_database "$what" "$root" "$major" "$row"; fi
	apt upgrade
	apt dist-upgrade
	our_deb "and no upgrade puts the other's in its place, with both in the sources"
	add_newer_deb "$root"
	apt upgrade
	our_deb "an upgrade to a newer one of ours"
	to=$(enter "$root" dpkg-query -W -f '${Version}' "$ours")
	if [[ $to = *+newer ]]; then passed "$what: is one"; else failed "$what: is one: $to"; fi
	apt install "$other"
	other_deb "the other's is installed over ours"
	apt install "$ours"
	our_deb "and ours over that again"
}

# As above with dnf, in Debian's root.  One more package stands for the system's libraries, which
# are not from RPMs here.
make_rpm_source() {
	local root=$1 major=$2 folder=$ROOTS/$1/repository
	rm -rf "$folder"
	mkdir -p "$folder" "$ROOTS/$root/specs"
	cp "$BUILT/rpm/mongodb_fdw_$major-"*.rpm "$folder/"
	make_other_files "$ROOTS/$root/other" "$major"
	{
		printf '%s\n' 'Name: system' 'Version: 1' 'Release: 1' 'Summary: stands for it' 'License: PostgreSQL'
		enter "$root" sh -c "rpm -qp --requires /repository/mongodb_fdw_$major-*.rpm" |
			grep -v '^rpmlib' | sed 's/^/Provides: /'
		printf '%s\n' '%description' 'Stands for it.' '%files'
	} >"$ROOTS/$root/specs/system.spec"
	{
		printf '%s\n' "Name: mongo_fdw_$major" "Version: $OTHER_VERSION" 'Release: 1' \
			'Summary: stands for the other wrapper' 'License: PostgreSQL' 'AutoReqProv: no' \
			'%description' 'Stands for it.' '%package llvmjit' 'Summary: with its bitcode' \
			'Requires: %{name} = %{version}-%{release}' '%description llvmjit' 'Stands for it.' \
			'%install' 'cp -r /other/. %{buildroot}/' "install -D /dev/null %{buildroot}$(bitcode_of "$major")" \
			'%files' "$(library_of "$major")" "$(control_of "$major")" '%files llvmjit' "$(bitcode_of "$major")"
	} >"$ROOTS/$root/specs/other.spec"
	printf '%s\n' '[repository]' 'name=repository' 'baseurl=file:///repository' 'gpgcheck=0' \
		'metadata_expire=0' >"$ROOTS/$root/etc/yum.repos.d/repository.repo"
	quietly enter "$root" sh -e -c '
		rpmbuild -bb --define "_topdir /rpm" /specs/system.spec
		rpmbuild -bb --define "_topdir /rpm" /specs/other.spec
		cp /rpm/RPMS/*/*.rpm /repository/
		createrepo_c /repository'
}

# An RPM with our names and the same files.
add_newer_rpm() {
	local root=$1 major=$2
	{
		printf '%s\n' "Name: mongodb_fdw_$major" "Version: $VERSION" 'Release: 9.newer' \
			'Summary: newer' 'License: PostgreSQL' 'AutoReqProv: no' \
			"Conflicts: mongo_fdw_$major" "Provides: mongo_fdw_$major = $VERSION" \
			'%description' 'Newer.' '%install' 'cp -r /newer/. %{buildroot}/' \
			'%files' "$(library_of "$major")" "$(control_of "$major")"
	} >"$ROOTS/$root/specs/newer.spec"
	quietly enter "$root" sh -e -c "
		for file in $(library_of "$major") $(control_of "$major"); do
			install -D \$file /newer\$file
		done
		rpmbuild -bb --define '_topdir /rpm' /specs/newer.spec
		cp /rpm/RPMS/*/mongodb_fdw_*.rpm /repository/
		createrepo_c /repository"
}

try_other_rpm() {
	local what=$1 root=$2 major=$3 other=mongo_fdw_$3 ours=mongodb_fdw_$3 to
	quietly enter "$root" apt-get -q -y install --no-install-recommends dnf createrepo-c rpm
	mkdir -p "$ROOTS/$root/etc/yum.repos.d"
	make_rpm_source "$root" "$major"
	other_rpm() { replaced "$what: $1" "$root" "$major" "$other-$OTHER_VERSION" 1.1 rpm -qf; }
	our_rpm() { replaced "$what: $1" "$root" "$major" "$ours-$VERSION" "$DEFAULT_VERSION" rpm -qf; }
	dnf() { quietly enter "$root" dnf -y --releasever=1 "$@" || failed "$what: dnf $*"; }

	dnf install "$other-llvmjit"
	other_rpm "the other's is installed by its name (a package that stands for it)"
	dnf upgrade
	other_rpm "and no upgrade puts ours in its place"
	if enter "$root" dnf -y --releasever=1 install "$ours" >"$BUILT/log" 2>&1; then
		failed "$what: dnf install refuses ours beside the other's"
	else
		other_rpm "dnf install refuses ours beside the other's"
	fi
	dnf install --allowerasing "$ours"
	our_rpm "dnf install --allowerasing puts ours in its place"
	if [ -e "$ROOTS/$root$(bitcode_of "$major")" ]; then
		failed "$what: and takes the other's bitcode away"
	else
		passed "$what: and takes the other's bitcode away"
	fi
	gives_tutorial "$what" in_cluster "$root" "$major" runuser -u postgres -- psql -X
	dnf upgrade
	dnf distro-sync
	our_rpm "and no upgrade puts the other's in its place, with both in the sources"
	add_newer_rpm "$root" "$major"
	dnf upgrade
	our_rpm "an upgrade to a newer one of ours"
	to=$(enter "$root" rpm -q "$ours")
	if [[ $to = *newer* ]]; then passed "$what: is one"; else failed "$what: is one: $to"; fi
	dnf install --allowerasing "$other"
	other_rpm "dnf install --allowerasing puts the other's in place of ours"
	dnf install --allowerasing "$ours"
	our_rpm "and ours in place of that"
}
