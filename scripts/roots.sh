# Roots: whole systems in folders, made by debootstrap, for tests on distributions
# other than this machine's, or on a clean system.  Sourced after common.sh by
# matrix.sh and packages.sh.
#
#	.lab.roots/base.SUITE	a distribution's smallest system, never changed; SUITE-ARCHITECTURE
#							for another processor than this machine's
#	.lab.roots/NAME			a copy for a test
#
# Commands in a root have their own namespaces of mounts and processes: nothing is
# mounted in the machine's namespace, and no server outlives the command that started
# it.  The network is the machine's.

ROOTS=$ROOT/.lab.roots

# suite, script of debootstrap, kind of mirror
ROOT_SUITES="
bookworm bookworm debian
trixie trixie debian
forky sid debian
sid sid debian
focal gutsy ubuntu
noble gutsy ubuntu"

need_roots() {
	[ "$(id -u)" = 0 ] || fail "roots are made by root: sudo make $1"
	command -v apt-get >/dev/null || fail "debootstrap and its kind need Debian or its like"
	local missing=()
	command -v debootstrap >/dev/null || missing+=(debootstrap)
	command -v unshare >/dev/null || missing+=(util-linux)
	if [ ${#missing[@]} != 0 ]; then
		progress "installing packages: ${missing[*]}"
		apt-get -q update >/dev/null
		DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends \
			"${missing[@]}" >/dev/null
	fi
	mkdir -p "$ROOTS"
}

# The address of this machine's packages, or of the distribution's archive.
mirror_of() {
	local mirror
	case $1 in
		debian)
			mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' \
				'Created-By: Packages' 'Origin: Debian' 'Component: main' |
				grep -v -- '-security' | head -n 1 || true)}
			printf '%s\n' "${mirror:-http://deb.debian.org/debian}"
			;;
		ubuntu)
			mirror=${UBUNTU_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' \
				'Created-By: Packages' 'Origin: Ubuntu' 'Component: main' |
				grep -v -- '-security' | head -n 1 || true)}
			printf '%s\n' "${mirror:-http://archive.ubuntu.com/ubuntu}"
			;;
	esac
}

# The keys of a distribution's packages.  Ubuntu's keys are in a Debian package that not
# every release has, so they are taken from a root of a release that has it.
keyring_of() {
	local keyring=/usr/share/keyrings/$1-archive-keyring.gpg
	if [ ! -e "$keyring" ]; then
		make_base trixie
		enter base.trixie sh -c "rm -rf /tmp/keyring && mkdir /tmp/keyring && cd /tmp/keyring &&
			apt-get -q download $1-keyring && dpkg -x $1-keyring_*.deb ." >/dev/null 2>&1
		keyring=$ROOTS/base.trixie/tmp/keyring$keyring
		[ -e "$keyring" ] || fail "no keyring of $1: neither here nor in trixie's $1-keyring"
	fi
	printf '%s\n' "$keyring"
}

# Run a command as root in a root: enter NAME COMMAND...  The environment contains only
# the machine's settings of proxies, certificates and pip.  All processes end with the
# command.  In the background, ENTER_BY=exec makes $! the process to kill.
enter() {
	local root=$ROOTS/$1 settings=() name
	shift
	for name in $(compgen -e | grep -E '^PIP_|_proxy$|_PROXY$|^SSL_CERT_|^CURL_CA_' |
		grep -vx PIP_FIND_LINKS || true); do		# a folder of this machine
		settings+=("$name=${!name}")
	done
	# shellcheck disable=SC2016
	ROOT_FOLDER=$root ${ENTER_BY-} unshare --mount --pid --fork --kill-child --propagation private sh -c '
		set -e
		# a mount, as programs that create containers expect
		mount --bind "$ROOT_FOLDER" "$ROOT_FOLDER"
		mount -t proc proc "$ROOT_FOLDER/proc"
		mount -t tmpfs -o mode=755 tmpfs "$ROOT_FOLDER/dev"
		cd "$ROOT_FOLDER/dev"
		mknod -m 666 null c 1 3
		mknod -m 666 zero c 1 5
		mknod -m 666 full c 1 7
		mknod -m 666 random c 1 8
		mknod -m 666 urandom c 1 9
		mknod -m 666 tty c 5 0
		ln -s /proc/self/fd fd
		ln -s fd/0 stdin
		ln -s fd/1 stdout
		ln -s fd/2 stderr
		mkdir pts shm
		mount -t devpts -o newinstance,ptmxmode=666 devpts pts
		ln -s pts/ptmx ptmx
		mount -t tmpfs -o mode=1777 tmpfs shm
		cd /
		exec chroot "$ROOT_FOLDER" "$@"' enter /usr/bin/env -i \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "${settings[@]}" "$@"
}

# Programs of a processor that is not the machine's run in an emulator.  The kernel starts it as
# long as its table is mounted, which is only in the namespace of the script that calls this.
need_emulation() {
	local emulator
	case $1 in
		i386 | "$(dpkg --print-architecture)") return ;;
		arm64) emulator=qemu-aarch64 ;;
		*) emulator=qemu-$1 ;;
	esac
	if ! command -v "$emulator-static" >/dev/null || ! command -v update-binfmts >/dev/null; then
		progress "installing qemu-user-static"
		apt-get -q update >/dev/null
		DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends \
			qemu-user-static binfmt-support >/dev/null
	fi
	update-binfmts --enable "$emulator" 2>/dev/null || true	# a warning if it already is
	[ -e "/proc/sys/fs/binfmt_misc/$emulator" ] ||
		fail "programs for $1 cannot run here: the kernel has no binfmt_misc"
}

# Create the smallest system of a suite, once.
make_base() {
	local name=$1 suite=${1%%-*} architecture script mirror kind keyring base=$ROOTS/base.$1 log=$ROOTS/base.$1.log
	if [ -e "$base/made" ]; then
		return
	fi
	read -r _ script kind <<<"$(grep "^$suite " <<<"$ROOT_SUITES")"
	[ -n "$kind" ] || fail "there is no suite \"$suite\""
	mirror=$(mirror_of "$kind")
	keyring=$(keyring_of "$kind") || exit 1
	architecture=$(dpkg --print-architecture)
	if [ "$name" != "$suite" ]; then architecture=${name#*-}; fi
	progress "making a root of $name from $mirror"
	rm -rf --one-file-system "$base"
	mkdir -p "$base"
	local components=main
	if [ "$kind" = ubuntu ]; then components=main,universe; fi
	unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
		debootstrap --arch="$architecture" --variant=minbase --include=ca-certificates,sudo,git,make \
		--components="$components" --keyring="$keyring" \
		"$suite" "$base" "$mirror" "$script" >"$log" 2>&1 ||
		{ tail -n 20 "$log" >&2; fail "debootstrap failed"; }
	copy_settings "$name" "$suite" "$kind" "$mirror"
	enter "base.$name" apt-get -q update >>"$log" 2>&1 ||
		{ tail -n 20 "$log" >&2; fail "the packages of $suite cannot be read"; }
	touch "$base/made"
}

# Copy this machine's network settings: names, certificates, settings of apt and pip; and
# its package sources if the suite is the same.
copy_settings() {
	local base=$ROOTS/base.$1 suite=$2 kind=$3 mirror=$4 file
	cp -L /etc/resolv.conf "$base/etc/resolv.conf"
	for file in /etc/apt/apt.conf.d/*; do
		# not settings for other packages of this machine
		if ! grep -qE 'Invoke|NeverAutoRemove' "$file"; then
			cp "$file" "$base/etc/apt/apt.conf.d/"
		fi
	done
	if [ -d /usr/local/share/ca-certificates ]; then
		mkdir -p "$base/usr/local/share/ca-certificates"
		cp -rL /usr/local/share/ca-certificates/. "$base/usr/local/share/ca-certificates/"
		enter "base.$1" update-ca-certificates >/dev/null 2>&1
	fi
	if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
		cp -L /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/certs/ca-certificates.crt"
	fi
	# as in container images: after a crash, the root is created again
	echo force-unsafe-io >"$base/etc/dpkg/dpkg.cfg.d/roots"
	if [ -e /etc/pip.conf ]; then cp /etc/pip.conf "$base/etc/pip.conf"; fi
	{
		printf 'deb %s %s\n' "$mirror" "$suite main"
		if [ "$kind" = ubuntu ]; then
			printf 'deb %s %s\n' "$mirror" "$suite universe" \
				"$mirror" "$suite-updates main universe" "$mirror" "$suite-security main universe"
		# libraries of two processors must have one version, but their updates differ
		elif [ "$suite" != forky ] && [ "$suite" != sid ] && [ "$1" = "$suite" ]; then
			printf 'deb %s %s\n' "$mirror" "$suite-updates main" \
				"${mirror%/}-security" "$suite-security main"
		fi
	} >"$base/etc/apt/sources.list"
}

# Make a copy of a suite's smallest system: make_root NAME SUITE
make_root() {
	make_base "$2"
	remove_root "$1"
	cp -a --one-file-system "$ROOTS/base.$2" "$ROOTS/$1"
}

# PostgreSQL 19 is in Debian's experimental only, from which nothing else comes.
add_experimental() {
	echo "deb $(mirror_of debian) experimental main" >"$ROOTS/$1/etc/apt/sources.list.d/experimental.list"
	printf '%s\n' 'Package: src:postgresql-19' 'Pin: release a=experimental' 'Pin-Priority: 500' \
		>"$ROOTS/$1/etc/apt/preferences.d/experimental"
}

remove_root() {
	rm -rf --one-file-system "${ROOTS:?}/${1:?}"
}

# Copy the files that git tracks or would add to a folder of a root.
copy_source_to_root() {
	local folder=$ROOTS/$1$2 list
	list=$(mktemp)
	list_source >"$list"
	mkdir -p "$folder"
	tar -C "$ROOT" --null -T "$list" -cf - | tar -C "$folder" -xf - --no-same-owner
	rm -f "$list"
}
