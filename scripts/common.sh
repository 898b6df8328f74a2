# Sourced by the other scripts: the places of files and the user that runs commands.
#
# All files of the laboratory are under .lab/ in the clone:
#	postgresql/	a private copy of the PostgreSQL that Debian installed
#	venv/		Python with pymongo, psycopg2 and a real mongod
#	src/		a copy of the source, built and tested there
#	old/		the same for PG_OLD_MAJOR, if set: the version that pg_upgrade upgrades from
#	run/		data folders, logs and sockets of the running servers
#	env			how to reach them, as shell assignments
#	sanitize/	postgresql/, src/ and test/ of "make sanitize"; also faults/, valgrind/
#
# PostgreSQL refuses to run as root.  So if root runs the scripts, .lab belongs to
# the user "postgres", and everything except the installation of packages runs as
# that user.  No file of .lab is ever executed as root.

set -euo pipefail

# Messages are English and databases UTF-8, whatever the caller's locale is; PostgreSQL's
# tests remove LC_ALL.
unset LANGUAGE "${!LC_@}"
export LANG=C.UTF-8

PG_MAJOR=${PG_MAJOR:-15}
PG_OLD_MAJOR=${PG_OLD_MAJOR-}
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
LAB=$ROOT/.lab
PYTHON=$LAB/venv/bin/python
# A variant has its own PostgreSQL and build, in .lab/VARIANT/.
VARIANT=${VARIANT-}

if [ "$(id -u)" = 0 ]; then
	LAB_USER=postgres
else
	LAB_USER=$(id -un)
fi

say() { printf '%s\n' "$*"; }
progress() { printf '== %s\n' "$*" >&2; }
fail() { printf 'mongo_fdw lab: %s\n' "$*" >&2; exit 1; }

# Run a command as the user that owns the laboratory, in the laboratory.
as_lab_user() {
	local home=$LAB/home
	if [ "$(id -u)" = 0 ]; then
		(cd "$LAB" && HOME=$home runuser -u "$LAB_USER" -- "$@")
	else
		(cd "$LAB" && HOME=$home "$@")
	fi
}

# Can the owner of the laboratory enter this folder?
lab_user_can_enter() {
	if [ "$(id -u)" = 0 ]; then
		(cd / && runuser -u "$LAB_USER" -- test -x "$1")
	else
		test -x "$1"
	fi
}

# Make .lab.  It is a link to a private folder under /tmp if the laboratory's user
# cannot enter the clone (such as one under /root), or if the clone's name contains
# blanks, which make does not support.
make_lab_folder() {
	if [ -L "$LAB" ] && [ ! -d "$LAB" ]; then
		rm "$LAB"				# its target was cleaned away
	fi
	if [ ! -d "$LAB" ]; then
		if [[ $ROOT != *[[:space:]]* ]] && lab_user_can_enter "$ROOT"; then
			mkdir "$LAB"
		else
			local place
			place=$(mktemp -d /tmp/mongo_fdw_lab.XXXXXXXX)
			chmod 755 "$place"
			ln -s "$place" "$LAB"
			progress "user $LAB_USER cannot work in $ROOT: .lab is a link to $place"
		fi
		if [ "$(id -u)" = 0 ]; then
			chown "$LAB_USER:" "$LAB/."
		fi
	fi
	# Checks the owner and not the access, as root has access to everything.
	if [ "$(stat -L -c %U "$LAB")" != "$LAB_USER" ]; then
		fail ".lab belongs to user $(stat -L -c %U "$LAB"), not $LAB_USER; run as that user, or remove .lab"
	fi
	LAB=$(cd "$LAB" && pwd -P)
	WORK=$LAB${VARIANT:+/$VARIANT}
	PG_BIN=$WORK/postgresql/lib/postgresql/$PG_MAJOR/bin
	PG_OLD_BIN=${PG_OLD_MAJOR:+$WORK/old/postgresql/lib/postgresql/$PG_OLD_MAJOR/bin}
	PYTHON=$LAB/venv/bin/python
	as_lab_user mkdir -p "$LAB/home" "$WORK"
}

# A folder for Unix-domain sockets, whose names are limited to 107 bytes.
socket_folder() {
	local folder=$RUN/sockets
	if [ ${#folder} -gt 80 ]; then
		folder=$(as_lab_user mktemp -d /tmp/mongo_fdw_sockets.XXXXXX)
	else
		as_lab_user mkdir -p -m 700 "$folder"
	fi
	printf '%s\n' "$folder"
}

free_port() {
	as_lab_user "$PYTHON" -c '
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    print(s.getsockname()[1])'
}

# Files that git tracks or would add; without git, all files.
list_source() {
	if [ -e "$ROOT/.git" ] && command -v git >/dev/null; then
		git -c safe.directory="$ROOT" -C "$ROOT" ls-files -z -c -o --exclude-standard |
			while IFS= read -r -d '' file; do
				if [ -f "$ROOT/$file" ]; then printf '%s\0' "$file"; fi
			done
	else
		(cd "$ROOT" && find . \( -name .git -o -name '.lab*' \) -prune -o -type f \
			! -name '*.o' ! -name '*.so' ! -name '*.bc' -printf '%P\0')
	fi
}
