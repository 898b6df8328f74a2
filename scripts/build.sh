# Build a copy of the source under .lab/src and install it in .lab/postgresql, or
# in the folders of a variant.
# Sourced after setup.sh.
#
# It is a copy, so that no other user writes to the work tree and the objects of a
# developer's own build remain unchanged.  Unchanged files keep their time stamp, so
# only changed files are compiled.

COMPILER_FLAGS=-Werror
# Environment of PostgreSQL's server; servers.sh and test.sh pass it on.
SERVER_ENVIRONMENT=()
MONGOD_ARGUMENTS=()
case $VARIANT in
	sanitize | faults) . "$ROOT/scripts/sanitizers.sh" ;;
esac
BUILD_FLAGS=(PG_CONFIG="$PG_BIN/pg_config" with_llvm=no COPT="$COMPILER_FLAGS")
if [ "$VARIANT" = faults ]; then
	BUILD_FLAGS+=(FAULTS=1)
fi
if [ "$VARIANT" = moment ]; then
	BUILD_FLAGS+=(MOMENT=1)
fi

copy_source() {
	as_lab_user mkdir -p "$WORK/src"
	list_source | LC_ALL=C sort -z >"$SCRATCH/list"
	# Files copied before that the tree no longer contains must not be built.
	tr '\0' '\n' <"$SCRATCH/list" | as_lab_user env -C "$WORK" sh -c '
		cat >src.list.new
		touch src.list
		LC_ALL=C comm -23 src.list src.list.new | while IFS= read -r gone; do
			rm -f "src/$gone" "src/${gone%.c}.o" "src/${gone%.c}.d" src/mongo_fdw.so
		done
		mv src.list.new src.list'
	tar -C "$ROOT" --null -T "$SCRATCH/list" -cf - |
		as_lab_user tar -C "$WORK/src" -xf - --no-same-owner
}

build_and_install() {
	progress "building"
	as_lab_user make -s -C "$WORK/src" -j"$(nproc)" "${BUILD_FLAGS[@]}" >&2 ||
		fail "the build failed"
	as_lab_user make -s -C "$WORK/src" "${BUILD_FLAGS[@]}" install >"$SCRATCH/log" 2>&1 || {
		cat "$SCRATCH/log" >&2
		fail "could not install into .lab/postgresql"
	}
}

# For the PostgreSQL that is upgraded from.  Objects of another version are not reused.
build_for_old() {
	local flags=(PG_CONFIG="$PG_OLD_BIN/pg_config" with_llvm=no)
	progress "building for PostgreSQL $PG_OLD_MAJOR"
	as_lab_user rm -rf "$WORK/old/src"
	as_lab_user mkdir -p "$WORK/old/src"
	tar -C "$ROOT" --null -T "$SCRATCH/list" -cf - |
		as_lab_user tar -C "$WORK/old/src" -xf - --no-same-owner
	as_lab_user make -s -C "$WORK/old/src" -j"$(nproc)" "${flags[@]}" >&2 ||
		fail "the build for PostgreSQL $PG_OLD_MAJOR failed"
	as_lab_user make -s -C "$WORK/old/src" "${flags[@]}" install >&2 ||
		fail "could not install into .lab/old"
}

# Each function of libmongoc that is called must be counted, except for those that only
# return properties.
check_driver_calls() {
	local missing
	missing=$(nm -D --undefined-only "$WORK/src/mongo_fdw.so" |
		sed -n 's/.* U \(mongoc_[a-z0-9_]*\).*/\1/p' |
		grep -Ev '^mongoc_(apm_topology_changed_get|uri_(get|has|option_is)|(read_prefs|read_concern|write_concern)_(get|is_default)|server_description_(host|id|type|hello_response))' |
		while read -r name; do
			grep -q "^#define $name(" "$WORK/src/include/driver_calls.h" || printf ' %s' "$name"
		done)
	[ -z "$missing" ] || fail "not in include/driver_calls.h:$missing"
}

SCRATCH=$(mktemp -d)
if [ -z "$(trap -p EXIT)" ]; then
	trap 'rm -rf "$SCRATCH"' EXIT
fi
copy_source
build_and_install
if [ -n "$PG_OLD_MAJOR" ]; then build_for_old; fi
check_driver_calls
