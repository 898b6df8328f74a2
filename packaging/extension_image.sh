#!/bin/sh
# Lay out the extension as an image that is mounted beside PostgreSQL 18 or newer, as
# CloudNativePG does it:
#
#	share/extension/	for extension_control_path
#	lib/				for dynamic_library_path
#	system/				libraries that PostgreSQL's image has not, for LD_LIBRARY_PATH
#
#	packaging/extension_image.sh libraries >FILE		before anything is installed
#	packaging/extension_image.sh MAJOR PACKAGE.deb FILE FOLDER
set -eu
if [ "$1" = libraries ]; then
	ldconfig -p | sed -n 's/^\t\([^ ]*\) .*/\1/p' | sort -u
	exit
fi
major=$1 package=$2 libraries=$3 folder=$4
content=$(mktemp -d)
dpkg-deb -x "$package" "$content"
mkdir -p "$folder/share/extension" "$folder/lib" "$folder/system" "$folder/licenses"
cp "$content/usr/share/postgresql/$major/extension"/mongo_* "$folder/share/extension/"
cp "$content/usr/lib/postgresql/$major/lib/mongo_fdw.so" "$folder/lib/"
cp "$content"/usr/share/doc/*/copyright "$folder/licenses/mongo_fdw"
rm -rf "$content"

ldd "$folder/lib/mongo_fdw.so" | sed -n 's/^\t\([^ ]*\) => \([^ ]*\) .*/\1 \2/p' |
	while read -r name file; do
		if grep -qxF "$name" "$libraries"; then
			continue
		fi
		cp -L "$file" "$folder/system/$name"
		owner=$(dpkg -S "$(readlink -f "$file")" "*/${file##*/}" 2>/dev/null |
			head -n 1 | cut -d : -f 1)
		if [ -n "$owner" ]; then
			cp "/usr/share/doc/$owner/copyright" "$folder/licenses/$owner"
		fi
	done
