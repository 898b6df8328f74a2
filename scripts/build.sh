# Build a copy of the source under .lab/src and install it in .lab/postgresql.
# Sourced after setup.sh.
#
# A copy, so that the work tree is never written by another user and the
# objects of a developer's own build are left alone.  Files that did not
# change keep their time stamp, so only what changed is compiled.

TRANSPORT=${TRANSPORT:-wire}
BUILD_FLAGS=(PG_CONFIG="$PG_BIN/pg_config" with_llvm=no COPT=-Werror TRANSPORT="$TRANSPORT")

# What git knows of, plus what it would add; without git, everything.
list_source() {
	if [ -e "$ROOT/.git" ] && command -v git >/dev/null; then
		git -c safe.directory="$ROOT" -C "$ROOT" ls-files -z -c -o --exclude-standard |
			while IFS= read -r -d '' file; do
				if [ -f "$ROOT/$file" ]; then printf '%s\0' "$file"; fi
			done
	else
		(cd "$ROOT" && find . \( -name .git -o -name .lab \) -prune -o -type f \
			! -name '*.o' ! -name '*.so' ! -name '*.bc' -printf '%P\0')
	fi
}

copy_source() {
	as_lab_user mkdir -p "$LAB/src"
	list_source | LC_ALL=C sort -z >"$SCRATCH/list"
	# What was copied before and is gone from the tree must not be built.
	tr '\0' '\n' <"$SCRATCH/list" | as_lab_user sh -c '
		cat >src.list.new
		touch src.list
		LC_ALL=C comm -23 src.list src.list.new | while IFS= read -r gone; do
			rm -f "src/$gone" "src/${gone%.c}.o" src/mongo_fdw.so
		done
		mv src.list.new src.list'
	tar -C "$ROOT" --null -T "$SCRATCH/list" -cf - |
		as_lab_user tar -C "$LAB/src" -xf - --no-same-owner
}

build_and_install() {
	progress "building"
	as_lab_user make -s -C "$LAB/src" -j"$(nproc)" "${BUILD_FLAGS[@]}" >&2 ||
		fail "the build failed"
	as_lab_user make -s -C "$LAB/src" "${BUILD_FLAGS[@]}" install >"$SCRATCH/log" 2>&1 || {
		cat "$SCRATCH/log" >&2
		fail "could not install into .lab/postgresql"
	}
}

SCRATCH=$(mktemp -d)
if [ -z "$(trap -p EXIT)" ]; then
	trap 'rm -rf "$SCRATCH"' EXIT
fi
copy_source
build_and_install
