#!/usr/bin/env bash
# make indent: lays out the source like PostgreSQL's.
. "$(dirname "$0")/common.sh"
TEST_PACKAGES="pg-bsd-indent /usr/bin/pg_bsd_indent
"
. "$ROOT/scripts/setup.sh"
. "$ROOT/scripts/build.sh"
. "$ROOT/scripts/lint/source.sh"
lay_out_source
