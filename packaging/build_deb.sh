#!/bin/sh
# Build Debian's packages of this source, for the majors of PostgreSQL that the system has.
# As root, in a root or a container that may be thrown away: it installs what they are
# built with, and writes debian/control and debian/changelog anew.
#
#	packaging/build_deb.sh FOLDER		where the packages shall be
#
# PG_SUPPORTED_VERSIONS="18 19" names majors.
set -eu
cd "$(dirname "$0")/.."
folder=$1
export DEBIAN_FRONTEND=noninteractive

apt-get -q update
apt-get -q -y install --no-install-recommends dpkg-dev build-essential postgresql-server-dev-all
pg_buildext updatecontrol
# One release of this source has a package for each release of the system: 2.1.0-1+debian12.
system=$(. /etc/os-release && echo "$ID${VERSION_ID:-$VERSION_CODENAME}")
sed -i "1s/)/+$system)/" debian/changelog
apt-get -q -y build-dep --no-install-recommends ./
MAKEFLAGS="-j$(nproc)" dpkg-buildpackage -us -uc -b

mkdir -p "$folder"
# Ubuntu calls packages with debug symbols .ddeb
mv ../postgresql-*-mongodb-fdw*.*deb ../mongodb-fdw_*.changes ../mongodb-fdw_*.buildinfo "$folder/"
