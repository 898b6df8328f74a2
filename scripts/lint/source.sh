# Checks of the source that need no server.  Sourced after build.sh.

# Names of types come from debugging information.
LAID_OUT="scripts/lint/indent.py --objects $WORK/src/mongo_fdw.so"

# Print "ok - NAME", or "not ok - NAME" and the violations, for each check.
check_source() {
	local flags
	flags="-std=gnu99 $("$PG_BIN/pg_config" --cppflags) -Iinclude
		-isystem $("$PG_BIN/pg_config" --includedir-server)
		$(pkg-config --cflags libmongoc-1.0 2>/dev/null || pkg-config --cflags mongoc2)"

	# shellcheck disable=SC2086
	as_lab_user env -C "$WORK/src" FLAGS="${flags//-I\//-isystem /}" CACHE="$LAB/lint" LAID_OUT="$LAID_OUT" bash -c '
		shopt -s globstar
		check() {
			local name=$1 output
			shift
			if output=$("$@" 2>&1) && [ -z "$output" ]; then
				echo "ok - $name"
			else
				echo "not ok - $name"
				printf "%s\n" "$output" | sed "s/^/#   /"
			fi
		}

		/usr/bin/python3 scripts/lint/check.py .
		check "the source is laid out as \"make indent\" does it" \
			/usr/bin/python3 $LAID_OUT src/**/*.[ch] include/*.h
		check "clang-tidy finds nothing" \
			/usr/bin/python3 scripts/lint/tidy.py --cache "$CACHE" --jobs "$(nproc)" src/**/*.c -- $FLAGS
	' || true
}

lay_out_source() {
	(cd "$ROOT" && shopt -s globstar && /usr/bin/python3 $LAID_OUT --write src/**/*.[ch] include/*.h)
}
