#!/bin/sh
# Build Debian's packages of this source, for the majors of PostgreSQL that the system has.
# As root, in a root or a container that may be thrown away: it installs what they are
# built with, and writes debian/control anew.
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
apt-get -q -y build-dep --no-install-recommends ./
dpkg-buildpackage -us -uc -b

mkdir -p "$folder"
mv ../postgresql-*-mongo-fdw*.deb ../mongo-fdw_*.changes ../mongo-fdw_*.buildinfo "$folder/"
