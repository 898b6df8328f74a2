# Builds the extension with the address and undefined behavior sanitizers, sets the
# environment in which PostgreSQL's server can load it, and reports their findings.
# Sourced by build.sh for VARIANT=sanitize and faults.

# PostgreSQL's hash functions shift into the sign bit.
COMPILER_FLAGS+=" -fsanitize=address,undefined -fno-sanitize-recover=undefined \
-fno-sanitize=shift-base -fno-omit-frame-pointer -O1 -g"

# Assertions of our own code, and of what it includes, if PostgreSQL was built without them.
if [ "${PG_BUILD-}" = package ]; then COMPILER_FLAGS+=" -DUSE_ASSERT_CHECKING=1"; fi

REPORTS=$WORK/reports
as_lab_user rm -rf "$REPORTS"
as_lab_user mkdir "$REPORTS"

# MongoDB and Python run without sanitizers, which would slow them down.
for program in "$LAB/bin/mongod" "$PYTHON"; do
	as_lab_user sh -c "mkdir -p '$WORK/bin' && cat >'$WORK/bin/${program##*/}' &&
		chmod +x '$WORK/bin/${program##*/}'" <<-END
		#!/bin/sh
		unset LD_PRELOAD
		exec '$program' "\$@"
	END
done

# PostgreSQL frees little of its memory before it ends, so leaks are not detected.  Tests
# recognize by SANITIZED that they need more time and memory.  An allocation that "make
# faults" makes fail requests more memory than there is.
SERVER_ENVIRONMENT=(
	SANITIZED=1
	LD_PRELOAD="$(gcc -print-file-name=libasan.so)"
	ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:log_path=$REPORTS/address"
	UBSAN_OPTIONS="print_stacktrace=1:abort_on_error=1:log_path=$REPORTS/undefined"
	MONGOD="$WORK/bin/mongod"
	PYTHON="$WORK/bin/python"
)

# Everything is three to ten times as slow.
export TEST_FILE_TIMEOUT=${TEST_FILE_TIMEOUT:-3600}

# Reports of the sanitizers, and failed assertions and crashes in the servers' logs;
# each is a failure.
count_reports() {
	local file reports=0 crashes found
	for file in "$REPORTS"/*; do
		if grep -qsv 'WARNING: AddressSanitizer failed to allocate' "$file"; then
			reports=$((reports + 1))
			if [ $reports -le 5 ]; then
				head -n 40 "$file"
			fi
		fi
	done
	found=$(cat "$RUN/postgresql.log" "$WORK"/src/tmp_check/log/*.log 2>/dev/null |
		grep -E '^TRAP: |was terminated by signal (4|6|7|8|11)\b' || true)
	crashes=$(printf '%s' "$found" | grep -c . || true)
	if [ "$crashes" != 0 ]; then
		printf '%s\n' "$found" | head -n 20
	fi
	say "$reports sanitizer reports, $crashes failed assertions and crashes"
	FAILED=$((FAILED + reports + crashes))
}
