#!/usr/bin/env bash
# make lab-stop: stops the servers.  With --remove (make lab-clean) it also removes
# .lab and the target of its links.
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
