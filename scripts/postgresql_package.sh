# PostgreSQL as built by Debian, copied from the folders of its package.  Sourced by
# setup.sh.

# PostgreSQL's programs find their libraries and shared files relative to their own
# path.  So the extension can be installed in a copy of the tree without root, and
# there can be any number of laboratories.
copy_postgresql() {
	local major=$1 tree=$2 mark version
	# including the files for building extensions, which are in a separate package
	version="$(/usr/lib/postgresql/$major/bin/postgres --version), $(dpkg-query -W \
		-f '${Package} ${Version}' "postgresql-server-dev-$major" 2>/dev/null || true)"
	mark=$tree/copied_from
	if [ "$(cat "$mark" 2>/dev/null)" = "$version" ]; then
		return
	fi
	progress "copying $version"
	as_lab_user rm -rf "$tree"
	as_lab_user mkdir -p "$tree/lib/postgresql" "$tree/share/postgresql"
	as_lab_user cp -r --preserve=mode,timestamps "/usr/lib/postgresql/$major" "$tree/lib/postgresql/"
	as_lab_user cp -rL --preserve=mode,timestamps "/usr/share/postgresql/$major" "$tree/share/postgresql/"
	as_lab_user ln -s /usr/include "$tree/include"
	as_lab_user sh -c "printf '%s\n' '$version' >'$mark'"
}

make_postgresql_tree() {
	copy_postgresql "$PG_MAJOR" "$WORK/postgresql"
	if [ -n "$PG_OLD_MAJOR" ]; then
		copy_postgresql "$PG_OLD_MAJOR" "$WORK/old/postgresql"
	fi
}
