#!/usr/bin/env bash
# make sanitize: the tests, in a PostgreSQL that checks its memory and with the
# extension built with sanitizers.
#
# TESTS= names some of them, as for make test.  What the sanitizers report, and
# each failed assertion and crash in a server's log, counts as a failure.
VARIANT=sanitize
. "$(dirname "$0")/test.sh"
