# Fetches PostgreSQL's source package from the system's package archive.  Sourced before
# setup.sh; add SOURCE_PACKAGES to TEST_PACKAGES or PACKAGES.
#
# It uses its own list of package sources; the system's lists are only read.

SOURCE_PACKAGES="
dpkg-dev /usr/bin/dpkg-source
patch /usr/bin/patch
bzip2 /usr/bin/bzip2
xz-utils /usr/bin/xz
"

# Unpack into $1/source: the installed version, or another one if it is not available.
fetch_postgresql_source() {
	local folder=$1 package=postgresql-$PG_MAJOR version installed options
	as_lab_user mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
	apt-get indextargets --format \
		'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' | sort -u |
		as_lab_user sh -c "cat >'$folder/sources.list'"
	as_lab_user test -s "$folder/sources.list" || {
		say "apt knows no packages of Debian; run apt-get update"
		return 1
	}
	options=(-q -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder/cache")
	as_lab_user apt-get "${options[@]}" update || return 1
	installed=$(dpkg-query -W -f '${Version}' "$package")
	for version in "$installed" $(as_lab_user apt-cache "${options[@]}" showsrc "$package" |
		sed -n 's/^Version: //p'); do
		if as_lab_user env -C "$folder" apt-get "${options[@]}" source "$package=$version"; then
			as_lab_user sh -c "mv '$folder/$package'-*/ '$folder/source'"
			return
		fi
	done
	return 1
}
