#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# runs: alone
#
# What the README promises of a fresh machine, in minimal Debian systems that
# have neither make nor compiler: the committed files, one command line, the
# names of the missing packages, a static binary, an installed tree.
# Systems are kept in the cache; each run works on a copy.
# shellcheck disable=SC2016,SC2317 # words for other shells; functions for check()
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

tree=$MMSCOPE_TREE
cache=${MMSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mmscope}/chroot
root=

skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

[ "$(id -u)" = 0 ] || skip_all 'chroot needs root'
git -C "$tree" rev-parse -q --verify HEAD >/dev/null || skip_all 'not a git tree'
command -v debootstrap >/dev/null || skip_all 'no debootstrap (package debootstrap)'

# Whatever ends this script, nothing stays mounted under a directory to be removed.
cleanup()
{
	[ -n "$root" ] || return
	umount "$root/proc" 2>/dev/null
	mountpoint -q "$root/proc" || rm -rf --one-file-system "$root"
	root=
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# inside COMMAND: by a shell in the chroot, in the source tree, as a user's would.
inside()
{
	chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb PATH="$path" \
		sh -c "cd /src && $1" >"$out" 2>&1 </dev/null
}

says()
{
	grep -qE -- "$1" "$out"
}

mirror()
{
	apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' |
		grep -v -- '-security' | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }'
}

# base RELEASE: a minimal system in the cache, whole or not there at all.
base()
{
	[ -d "$cache/$1" ] && return
	mkdir -p "$cache"
	rm -rf --one-file-system "$cache/$1.part"
	debootstrap --variant=minbase "$1" "$cache/$1.part" "$(mirror)" >"$out" 2>&1 &&
		mv "$cache/$1.part" "$cache/$1"
}

try()
{
	release=$1
	out=$TMPDIR/out.$release
	root=$TMPDIR/$release
	path=/usr/sbin:/usr/bin:/sbin:/bin

	check "$release: minimal system" base "$release"
	[ -d "$cache/$release" ] || return
	cp -a "$cache/$release" "$root" && mkdir "$root/src" &&
		git -C "$tree" archive HEAD | tar -x -C "$root/src" &&
		mount -t proc proc "$root/proc" &&
		cp /etc/resolv.conf "$root/etc/resolv.conf"
	check "$release: copied, with the committed files" [ -x "$root/src/tools/setup.sh" ]

	check "$release: make can be installed" inside \
		'apt-get update && apt-get install -y --no-install-recommends make'
	check "$release: make fails without the packages" inside '! make'
	check "$release: and names them in one line" \
		says '^mmscope: missing packages: gcc .*libbpf-dev'
	check "$release: and the command that installs them" says 'apt-get install -y .*libbpf-dev'
	check "$release: NO_INSTALL=1 refuses" inside '! NO_INSTALL=1 make demo'
	check "$release: and names what a demo needs" says 'missing packages: gcc .*qemu-system'
	check "$release: nothing was installed" inside '! command -v gcc'
	check "$release: who is not root is told so" inside \
		'! setpriv --reuid=65534 --clear-groups tools/setup.sh build'
	check "$release: in one line" says 'installing needs root'
	check "$release: set-up installs" inside 'tools/setup.sh build'
	start=$(date +%s)
	check "$release: make builds" inside 'make'
	seconds=$(($(date +%s) - start))
	echo "# make took $seconds s"
	grep SIZE "$out" | sed 's/^/# /'
	[ -x "$root/src/build/mmscope" ] || return
	check "$release: in under a minute" [ "$seconds" -lt 60 ]
	check "$release: a second make has nothing to do" inside '[ -z "$(make)" ]'
	# The home of tools that are only for root is not on a user's PATH.
	path=/usr/bin:/bin
	check "$release: who is not root can build, too" inside \
		'make clean && chown -R 65534 . && setpriv --reuid=65534 --clear-groups make'
	path=/usr/sbin:/usr/bin:/sbin:/bin
	check "$release: the binary runs" inside 'build/mmscope --version'
	check "$release: it is static" inside 'ldd build/mmscope 2>&1 | grep "not a dynamic"'
	check "$release: make install" inside 'make install DESTDIR=/tmp/d PREFIX=/opt/mmscope'
	check "$release: installs the binary" [ -x "$root/tmp/d/opt/mmscope/bin/mmscope" ]
	check "$release: installs the man pages" \
		[ -f "$root/tmp/d/opt/mmscope/share/man/man1/mmscope.1" ]
	check "$release: set-up for the tests" inside 'tools/setup.sh test'
	check "$release: all builds of the tests" inside 'make check-build'
	check "$release: tests without a VM" inside 'make check T="unit cli"'
	sed -n 's/^/# /; $p' "$out"
	# From an empty cache, with this release's QEMU.
	check "$release: make demo" inside 'make demo'
	check "$release: and its lines" says '^The work moved .* first access: 2\.00 attempts a PTE'
	tail -n 4 "$out" | sed 's/^/# /'
}

try bookworm
cleanup
try trixie
finish
