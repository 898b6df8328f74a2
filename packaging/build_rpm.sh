#!/bin/sh
# Build an RPM of this source for one major of PGDG's PostgreSQL.  As root, in a container of
# Fedora or of Enterprise Linux with EPEL that may be thrown away: it installs what the package is
# built with.  PGDG's repository has to be among the system's.
#
#	packaging/build_rpm.sh MAJOR ARCHIVE FOLDER		that "make dist" made; where the package shall be
set -eu
cd "$(dirname "$0")"
major=$1 archive=$2 folder=$3
build=$(mktemp -d)
mkdir "$build/SOURCES"
cp "$archive" "$build/SOURCES/"

if [ -e /etc/redhat-release ]; then
	dnf -y install 'dnf-command(builddep)' rpm-build
	dnf -y builddep --define "pgmajorversion $major" mongodb_fdw.spec
	rpmbuild -bb --define "_topdir $build" --define "pgmajorversion $major" mongodb_fdw.spec
else
	# a try on Debian, where the names of all that it is built with are others
	rpmbuild -bb --nodeps --define "_topdir $build" --define "pgmajorversion $major" \
		--define "pg_config /usr/lib/postgresql/$major/bin/pg_config" mongodb_fdw.spec
fi
mkdir -p "$folder"
mv "$build"/RPMS/*/*.rpm "$folder/"
rm -rf "$build"
