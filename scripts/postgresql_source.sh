# PostgreSQL from Debian's source package, built to find faults in C code: assertions,
# freed memory overwritten, new memory filled with random bytes, the ends of chunks
# checked.  Sourced by setup.sh for VARIANT=sanitize, faults and valgrind, each of
# which has its own tree.

. "$ROOT/scripts/fetch_source.sh"

PACKAGES+="$SOURCE_PACKAGES
libicu-dev /usr/include/unicode/ucol.h
"
if [ "$VARIANT" = valgrind ]; then
	PACKAGES+="valgrind /usr/bin/valgrind
"
fi
# their output is part of the source package
if [ "$PG_MAJOR" -ge 17 ]; then
	PACKAGES+="bison /usr/bin/bison
flex /usr/bin/flex
"
fi

# Defined as empty, as pg_config_manual.h defines them for assertions too.
CHECKING_FLAGS="-DCLOBBER_FREED_MEMORY= -DMEMORY_CONTEXT_CHECKING= -DRANDOMIZE_ALLOCATED_MEMORY="
# with client requests for valgrind, if its headers exist
if [ -e /usr/include/valgrind/memcheck.h ]; then
	CHECKING_FLAGS+=" -DUSE_VALGRIND="
fi

# The same folders as in Debian's package, so that one description suits both.
# PostgreSQL's makefiles create some headers only if no other make calls them.
configure_and_make() {
	local folder=$1 tree=$2 ours=postgresql/$PG_MAJOR
	local in_source=(as_lab_user env -u MAKELEVEL -u MAKEFLAGS -C "$folder/source" nice)
	"${in_source[@]}" ./configure --quiet --prefix="$tree" \
		--bindir="$tree/lib/$ours/bin" --libdir="$tree/lib/$ours/lib" \
		--datadir="$tree/share/$ours" --includedir="$tree/include/postgresql" \
		--enable-cassert --enable-debug --with-icu --without-readline --without-zlib \
		CFLAGS="-O1 -g -fno-omit-frame-pointer" CPPFLAGS="$CHECKING_FLAGS" &&
		"${in_source[@]}" make -s -j"$(nproc)" &&
		"${in_source[@]}" make -s install &&
		"${in_source[@]}" make -s -C src/test/isolation install &&
		"${in_source[@]}" make -s -C contrib/pg_stat_statements install &&
		"${in_source[@]}" make -s -C contrib/postgres_fdw install &&
		"${in_source[@]}" mkdir "$tree/lib/$ours/lib/pgxs/src/test/perl" &&
		"${in_source[@]}" cp -r src/test/perl/PostgreSQL \
			"$tree/lib/$ours/lib/pgxs/src/test/perl/"
}

make_postgresql_tree() {
	local tree=$WORK/postgresql build=$WORK/build mark log
	mark=$tree/built_with
	if [ "$(cat "$mark" 2>/dev/null)" = "$PG_MAJOR $CHECKING_FLAGS postgres_fdw" ]; then
		return
	fi
	progress "fetching and building PostgreSQL $PG_MAJOR with assertions, which takes some minutes"
	as_lab_user rm -rf "$tree" "$build"
	as_lab_user mkdir -p "$build"
	log=$(mktemp)
	{ fetch_postgresql_source "$build" && configure_and_make "$build" "$tree"; } >"$log" 2>&1 || {
		tail -n 40 "$log" >&2
		rm -f "$log"
		fail "could not build PostgreSQL from its source package"
	}
	rm -f "$log"
	as_lab_user rm -rf "$build/lists" "$build/cache"
	as_lab_user sh -c "printf '%s\n' '$PG_MAJOR $CHECKING_FLAGS postgres_fdw' >'$mark'"
}
