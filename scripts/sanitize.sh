#!/usr/bin/env bash
# make sanitize: runs the tests in a PostgreSQL that checks its memory, with the
# extension built with sanitizers.
#
# TESTS= selects tests, as for make test.  Each report of the sanitizers, failed
# assertion and crash in a server's log counts as a failure.
VARIANT=sanitize
. "$(dirname "$0")/test.sh"
