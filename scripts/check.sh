#!/usr/bin/env bash
# make check: sql/ and a test of each subject, in less than five minutes.
export TESTS="sql/*.sql
	t/read/quiet.pl
	t/plan/batched_joins.pl
	t/write/writes_in_detail.pl
	t/transaction/transaction_messages.pl
	t/connection/pool.pl
	t/catalog/analyze.pl
	t/sync/synchronized_tables.pl
	t/platform/documentation.pl"
exec bash "$(dirname "$0")/test.sh"
