#!/usr/bin/env bash
# make test: sets up, builds with warnings as errors, runs every test.
#
# TESTS="lint sql/options.sql t/read t/plan/geqo.pl" runs only these; "lint" are the checks
# of the source (scripts/lint/).  The last line is "N passed, N failed"; the exit status is 0
# only if nothing failed.
. "$(dirname "$0")/common.sh"

# The last line is printed however the script ends.
PASSED=0
FAILED=0
finish() {
	local status=$?
	rm -rf "${SCRATCH-/nonexistent}"
	if [ -n "${LOCK-}" ]; then rm -f "$LOCK"; fi
	if [ -n "${RUN-}" ]; then stop_servers; fi
	# of a variant with checks in addition to the tests
	if declare -F count_reports >/dev/null; then count_reports; fi
	if [ $status != 0 ] && [ $FAILED = 0 ]; then FAILED=1; fi
	say "$PASSED passed, $FAILED failed"
	if [ $FAILED != 0 ]; then exit 1; fi
}
trap finish EXIT
trap 'exit 143' INT TERM

# The source is the same for all versions, so it is checked with one of them.
TESTS=${TESTS-}
LINT=
case " $TESTS " in
	*' lint '*) LINT=yes ;;
	'  ') if [ "$VARIANT$PG_MAJOR" = 15 ]; then LINT=yes; fi ;;
esac

# Packages for t/fuzz/fuzz.py and for checks of the source, in addition to those that
# setup.sh installs.  Not every release has the packages for the checks.
TEST_PACKAGES="
clang /usr/bin/clang
libclang-rt-dev /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer_no_main-*.a
g++ /usr/bin/g++
"
if [ -n "$LINT" ]; then
	TEST_PACKAGES+="clang-tidy /usr/bin/clang-tidy
pg-bsd-indent /usr/bin/pg_bsd_indent
"
fi
. "$ROOT/scripts/setup.sh"

# A second run would build over the first one, and remove its tmp_check.
if ! (set -C && echo $$ >"$WORK/test.pid") 2>/dev/null; then
	OTHER=$(cat "$WORK/test.pid")
	if [ -n "$OTHER" ] && kill -0 "$OTHER" 2>/dev/null; then
		fail "tests run in this clone already, as process $OTHER: wait for it, or use another clone"
	fi
	echo $$ >"$WORK/test.pid"	# of a run that was killed
fi
LOCK=$WORK/test.pid
. "$ROOT/scripts/build.sh"
. "$ROOT/scripts/lint/source.sh"

# Servers separate from those of "make lab".
TEST_RUN=$WORK/test
TEST_ENV=$WORK/test/env
. "$ROOT/scripts/servers.sh"

SQL_TESTS=()
TAP_TESTS=()
cd "$WORK/src"
for file in ${TESTS:-sql/*.sql t}; do
	case $file in
		*'*'*) ;;				# a pattern without a match
		lint) ;;				# see above
		sql/*.sql) file=${file#sql/}; SQL_TESTS+=("${file%.sql}") ;;
		t | t/*) TAP_TESTS+=("$file") ;;
		*) fail "unknown test \"$file\"" ;;
	esac
done
cd "$ROOT"

run_lint() {
	local output=$SCRATCH/lint
	progress "looking at the source"
	check_source >"$output"
	cat "$output"
	PASSED=$((PASSED + $(grep -c '^ok ' "$output" || true)))
	FAILED=$((FAILED + $(grep -c '^not ok ' "$output" || true)))
}

# pg_regress, with its own server and the documents of load_regress.py.
run_sql_tests() {
	local output=$SCRATCH/regress passed
	start_servers
	as_lab_user "$PYTHON" "$WORK/src/t/lib/load_regress.py" --host "$MONGO_HOST" --port "$MONGO_PORT"
	progress "running ${#SQL_TESTS[@]} SQL tests"
	as_lab_user rm -f "$WORK/src/regression.diffs"
	as_lab_user make -s -C "$WORK/src" "${BUILD_FLAGS[@]}" installcheck \
		REGRESS="${SQL_TESTS[*]}" >"$output" 2>&1 || true
	# pg_regress writes TAP since PostgreSQL 16
	grep -E '^((test| ) .* \.\.\. |(not )?ok [0-9])' "$output" || cat "$output"
	passed=$(grep -cE '\.\.\. ok |^ok [0-9]' "$output" || true)
	PASSED=$((PASSED + passed))
	FAILED=$((FAILED + ${#SQL_TESTS[@]} - passed))
	if [ -s "$WORK/src/regression.diffs" ]; then
		cat "$WORK/src/regression.diffs"
	fi
	stop_servers
}

run_tap_tests() {
	local result=$WORK/src/tmp_check/result passed=0 failed=1
	progress "running ${#TAP_TESTS[@]} TAP tests"
	as_lab_user rm -rf "$WORK/src/tmp_check"
	as_lab_user mkdir "$WORK/src/tmp_check"
	as_lab_user env -C "$WORK/src" PATH="$PG_BIN:$PATH" PYTHON="$PYTHON" \
		MONGOD="${MONGOD:-$LAB/bin/mongod}" PG_OLD_BIN="$PG_OLD_BIN" "${SERVER_ENVIRONMENT[@]}" \
		PG_REGRESS="$PG_BIN/../lib/pgxs/src/test/regress/pg_regress" \
		PG_TEST_PERL="$PG_BIN/../lib/pgxs/src/test/perl" \
		perl scripts/run_tap.pl "$result" "${TAP_TESTS[@]}" || true
	if [ -s "$result" ]; then
		read -r passed failed <"$result"
	fi
	PASSED=$((PASSED + passed))
	FAILED=$((FAILED + failed))
}

if [ -n "$LINT" ]; then run_lint; fi
if [ ${#SQL_TESTS[@]} != 0 ]; then run_sql_tests; fi
if [ ${#TAP_TESTS[@]} != 0 ]; then run_tap_tests; fi
