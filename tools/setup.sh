#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Name the Debian packages that are missing, and install them where that was
# asked for. What counts is the thing that is used (a command, a header, a
# static library), not the package: a compiler from elsewhere serves as well.
#
# setup.sh GROUP [--check]      GROUP: build, demo (build and run VMs), kernel (build
#                               kernels), perf (build it), test, long
# --check or NO_INSTALL=1: names them and fails, touches nothing.
set -eu

usage()
{
	echo 'usage: tools/setup.sh build|demo|kernel|perf|test|long [--check]' >&2
	exit 2
}

PATH=$PATH:/usr/sbin:/sbin
multiarch=$(gcc -print-multiarch 2>/dev/null) || multiarch=$(uname -m)-linux-gnu

have_command()
{
	command -v "$1" >/dev/null 2>&1
}

# have_file NAME DIRECTORY...
have_file()
{
	name=$1
	shift
	for dir; do
		[ -e "$dir/$name" ] && return 0
	done
	return 1
}

have_lib()
{
	have_file "$1" "/usr/lib/$multiarch" /usr/lib /usr/lib64 /usr/local/lib /lib64
}

have_header()
{
	have_file "$1" /usr/include "/usr/include/$multiarch" /usr/local/include
}

missing=
# need KIND NAME PACKAGE: one row of the lists below.
need()
{
	"have_$1" "$2" && return
	case " $missing " in
	*" $3 "*) ;;
	*) missing="${missing:+$missing }$3" ;;
	esac
}

# want PACKAGE NAME: the same for what not every release has.
want()
{
	have_command "$2" && return
	apt-cache show --no-all-versions "$1" >/dev/null 2>&1 && need command "$2" "$1"
	return 0
}

# have_tool NAME: of libbpf-tools, which Debian 13 calls NAME-libbpf.
have_tool()
{
	have_command "$1" || have_command "$1-libbpf"
}

needs_build()
{
	need command	make			make
	need command	gcc			gcc
	need header	stdio.h			libc6-dev
	need lib	libc.a			libc6-dev
	need header	linux/bpf.h		linux-libc-dev
	need command	"${CLANG:-clang}"	clang
	need command	"${BPFTOOL:-bpftool}"	bpftool
	need command	"${PKGCONFIG:-pkg-config}" pkg-config
	need lib	libbpf.a		libbpf-dev
	need lib	libelf.a		libelf-dev
	need lib	libz.a			zlib1g-dev
	need header	yajl/yajl_parse.h	libyajl-dev
	need lib	libyajl_s.a		libyajl-dev
	need_zstd
}

# elfutils compresses sections with zstd since 0.189; its .pc file tells.
need_zstd()
{
	if grep -qs 'zstd' "/usr/lib/$multiarch/pkgconfig/libelf.pc"; then
		need lib libzstd.a		libzstd-dev
	fi
}

needs_demo()
{
	need command	"qemu-system-$(uname -m | sed 's/^arm64$/aarch64/')" "$qemu"
	need command	apt-get			apt
	need command	dpkg-deb		dpkg
	need command	xz			xz-utils
	need file_in	debian-archive-keyring.gpg debian-archive-keyring
}

have_file_in()
{
	have_file "$1" /usr/share/keyrings
}

needs_kernel()
{
	need command	make			make
	need command	gcc			gcc
	need header	stdio.h			libc6-dev
	need command	flex			flex
	need command	bison			bison
	need command	bc			bc
	need command	perl			perl
	need command	python3			python3
	need command	pahole			pahole
	need command	lz4			lz4
	need command	patch			patch
	need command	cmp			diffutils
	need header	gelf.h			libelf-dev
	need header	zlib.h			zlib1g-dev
	need header	openssl/opensslv.h	libssl-dev
	need command	apt-get			apt
	need command	dpkg-deb		dpkg
	need command	xz			xz-utils
}

needs_perf()
{
	needs_kernel
	need command	"${CLANG:-clang}"	clang
	need command	"${PKGCONFIG:-pkg-config}" pkg-config
	need header	traceevent/event-parse.h libtraceevent-dev
	need_zstd
}

needs_test()
{
	needs_kernel
	need header	cmocka.h		libcmocka-dev
	need command	python3			python3
	need command	sqlite3			sqlite3
	need command	mkfs.ext4		e2fsprogs
	need command	mkfs.exfat		exfatprogs
	need tool	funclatency		libbpf-tools
	# The oldest and a newer compiler for BPF; the default clang is either.
	want clang-14	clang-14
	want clang-19	clang-19
	# libFuzzer and the sanitizers of the default clang, which may be yet to come.
	major=$({ clang -dumpversion || apt-cache depends clang; } 2>/dev/null |
		sed -n '1s/^\([0-9]*\)\..*/\1/p; s/.*Depends: clang-\([0-9]*\)$/\1/p')
	need fuzzer	libclang_rt.fuzzer	"${major:+libclang-rt-$major-dev}"
}

needs_long()
{
	needs_perf
	need command	debootstrap		debootstrap
	need command	git			git
	need command	bpftrace		bpftrace
	# The patch series for other machines; not every machine has such compilers.
	want gcc-aarch64-linux-gnu	aarch64-linux-gnu-gcc
	want gcc-riscv64-linux-gnu	riscv64-linux-gnu-gcc
	want gcc-arm-linux-gnueabi	arm-linux-gnueabi-gcc
}

have_fuzzer()
{
	find /usr/lib/llvm-*/lib/clang -name "$1*.a" 2>/dev/null | grep -q .
}

find_missing()
{
	missing=
	case $group in
	kernel | perf)
		"needs_$group"
		return
		;;
	esac
	needs_build
	[ "$group" = build ] || needs_demo
	case $group in
	test | long) needs_test ;;
	esac
	[ "$group" != long ] || needs_long
}

group=${1:-}
case $group in
build | demo | kernel | perf | test | long) ;;
*) usage ;;
esac
check=${NO_INSTALL:-}
[ "$check" != 0 ] || check=
case $#,${2:-} in
1,) ;;
2,--check) check=1 ;;
*) usage ;;
esac
case $(uname -m) in
x86_64) qemu="qemu-system-x86" ;;
aarch64) qemu="qemu-system-arm" ;;
*) qemu="qemu-system-misc" ;;
esac

find_missing
[ -n "$missing" ] || exit 0

install="apt-get install -y --no-install-recommends $missing"
if ! have_command apt-get; then
	echo "mmscope: missing packages (names as in Debian): $missing" >&2
	exit 1
fi
if [ -n "$check" ]; then
	echo "mmscope: missing packages: $missing; install them with: $install" >&2
	exit 1
fi
if [ "$(id -u)" != 0 ]; then
	echo "mmscope: missing packages: $missing; installing needs root: $install" >&2
	exit 1
fi

echo "mmscope: installing missing packages: $missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Another apt may hold the lock for a while: wait for it.
run_install()
{
	# shellcheck disable=SC2086 # a list of names
	apt-get -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install -y \
		--no-install-recommends $missing </dev/null >"$log" 2>&1
}

# Old or absent package lists are the usual reason of a failure: renew them once.
if ! run_install; then
	echo "mmscope: reading the package lists anew"
	if ! apt-get -q -o DPkg::Lock::Timeout=300 update </dev/null >"$log" 2>&1; then
		tail -n 5 "$log" >&2
		echo "mmscope: apt-get update: failed (above); is there a network?" >&2
		exit 1
	fi
	find_missing
	if ! run_install; then
		tail -n 15 "$log" >&2
		echo "mmscope: apt-get install: failed (above); wanted: $missing" >&2
		exit 1
	fi
fi
find_missing
if [ -n "$missing" ]; then
	echo "mmscope: installed, yet not found: $missing" >&2
	exit 1
fi
