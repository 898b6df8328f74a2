# PostgreSQL from Debian's source package, built so that it looks for faults of
# the C code that it runs: assertions, freed memory overwritten, new memory filled
# at random, the ends of chunks checked.  Sourced by setup.sh for
# VARIANT=sanitize, faults and valgrind, each of which has a tree of its own.

. "$ROOT/scripts/fetch_source.sh"

PACKAGES+="$SOURCE_PACKAGES
libicu-dev /usr/include/unicode/ucol.h
"
if [ "$VARIANT" = valgrind ]; then
	PACKAGES+="valgrind /usr/bin/valgrind
"
fi
# what they make comes with the source before
if [ "$PG_MAJOR" -ge 17 ]; then
	PACKAGES+="bison /usr/bin/bison
flex /usr/bin/flex
"
fi

# Defined as nothing, as pg_config_manual.h defines them with assertions as well.
CHECKING_FLAGS="-DCLOBBER_FREED_MEMORY= -DMEMORY_CONTEXT_CHECKING= -DRANDOMIZE_ALLOCATED_MEMORY="
# with client requests for it, if its headers are there
if [ -e /usr/include/valgrind/memcheck.h ]; then
	CHECKING_FLAGS+=" -DUSE_VALGRIND="
fi

# In the folders of Debian's, so that what is said of one holds of the other.
# PostgreSQL's makefiles make some headers only where no other make is above.
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
		"${in_source[@]}" mkdir "$tree/lib/$ours/lib/pgxs/src/test/perl" &&
		"${in_source[@]}" cp -r src/test/perl/PostgreSQL \
			"$tree/lib/$ours/lib/pgxs/src/test/perl/"
}

make_postgresql_tree() {
	local tree=$WORK/postgresql build=$WORK/build mark log
	mark=$tree/built_with
	if [ "$(cat "$mark" 2>/dev/null)" = "$PG_MAJOR $CHECKING_FLAGS" ]; then
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
	as_lab_user sh -c "printf '%s\n' '$PG_MAJOR $CHECKING_FLAGS' >'$mark'"
}
