#!/usr/bin/env bash
# make lab-stop: stop the servers.  With --remove (make lab-clean) remove .lab
# and what it links to.
. "$(dirname "$0")/common.sh"
if [ ! -d "$LAB" ]; then
	rm -f "$LAB"
	exit 0
fi
LINK=$LAB
make_lab_folder
. "$ROOT/scripts/servers.sh"
stop_servers
if [ "${1-}" = --remove ]; then
	if [ -L "$LINK" ]; then rm "$LINK"; fi
	cd /
	rm -rf "$LAB"
fi
