#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 7200
#
# What a maintainer asks of the patch series before he reads them: checkpatch, and
# the touched objects without warnings (W=1) after every step by gcc, and after the
# last one by clang and for other machines, of which one has no MMU.
# Only objects, not kernels: whether those boot is the business of tests/vm.
# shellcheck disable=SC2016,SC2086,SC2317 # words for other programs; lists; functions for check()
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

tree=$MMSCOPE_TREE
work=$TMPDIR
linux=$work/linux
export LC_ALL=C
unset MAKEFLAGS MFLAGS MAKELEVEL
patches()
{
	find "$tree/kernel/series/$1" -name '*.patch' | sort
}

# The series are written for others to sign.
style()
{
	"$linux/scripts/checkpatch.pl" --strict --no-tree --root="$linux" \
		--ignore MISSING_SIGN_OFF "$1" >"$out" 2>&1 &&
		grep -q '^total: 0 errors, 0 warnings, 0 checks' "$out"
}

apply()
{
	(cd "$linux" && patch -p1 -s -f --fuzz=0 --no-backup-if-mismatch <"$1") >"$out" 2>&1
}

# The .c files that a series touches. Without an MMU some of mm/ is not built at all.
sources()
{
	patches "$1" | xargs sed -n 's/^+++ b\/\(.*\.c\)$/\1/p' | sort -u | while IFS= read -r c; do
		if [ "$2" = no-mmu ] && sed -n '/^mmu-\$(CONFIG_MMU)/,/[^\\]$/p' \
			"$linux/mm/Makefile" | grep -qw "$(basename "$c" .c)\.o"; then
			continue
		fi
		[ -e "$linux/$c" ] && printf '%s\n' "${c%.c}.o"
	done
}

# Sets make for a machine: where its objects are, which compiler.
machine()
{
	case $1 in
	x86-64) set -- "$1" x86 '' gcc ;;
	clang) set -- "$1" x86 '' clang-19 ;;
	arm64) set -- "$1" arm64 aarch64-linux-gnu- gcc ;;
	riscv64) set -- "$1" riscv riscv64-linux-gnu- gcc ;;
	arm | no-mmu) set -- "$1" arm arm-linux-gnueabi- gcc ;;
	esac
	objects=$work/$1
	compiler=$3$4
	make="make -s -C $linux O=$objects ARCH=$2 CROSS_COMPILE=$3"
	[ "$4" = gcc ] || make="$make CC=$4"
}

# The smallest configuration that has what the series are about. An option that a
# machine has not is not asked for, so that each one that is missing is a failure.
options()
{
	printf 'CONFIG_%s=y\n' EXPERT NET BPF_SYSCALL CGROUPS MEMCG PROC_FS DEBUG_FS PROC_SYSCTL
	case $1 in
	no-mmu) echo '# CONFIG_MMU is not set' ;;
	arm) printf 'CONFIG_%s=y\n' MMU DEBUG_VM USERFAULTFD HIGHMEM HIGHPTE ;;
	*) printf 'CONFIG_%s=y\n' SMP MMU DEBUG_VM USERFAULTFD TRANSPARENT_HUGEPAGE ;;
	esac
	case $1 in
	x86-64 | clang) printf 'CONFIG_%s=y\n' 64BIT NUMA NUMA_MIGRATION NUMA_BALANCING ;;
	arm64) printf 'CONFIG_%s=y\n' NUMA NUMA_MIGRATION NUMA_BALANCING MEMORY_FAILURE ;;
	riscv64) echo CONFIG_64BIT=y ;;
	esac
}

configure()
{
	mkdir -p "$objects"
	options "$1" >"$objects/wanted"
	$make KCONFIG_ALLCONFIG="$objects/wanted" tinyconfig >"$out" 2>&1 || return
	while IFS= read -r line; do
		option=${line#\# }
		option=${option%%[= ]*}
		got=$(grep -E "^(# )?${option}[= ]" "$objects/.config")
		case $line in
		*=y) [ "$got" = "$line" ] ;;
		*) [ "${got:-$line}" = "$line" ] ;;
		esac || echo "wanted $line, got ${got:-nothing of it}"
	done <"$objects/wanted" >"$out"
	[ ! -s "$out" ]
}

# objects_build SERIES MACHINE: no error, and no word at all at W=1.
objects_build()
{
	list=$(sources "$1" "$2")
	[ -n "$list" ] || return
	# Once as it is, so that what is built on the way (tools, generated headers) does
	# not mix in; then anew what counts.
	$make prepare >"$out" 2>&1 || return
	(cd "$objects" && echo "$list" | xargs rm -f)
	echo "$list" | xargs $make -j"$(nproc)" W=1 >"$out" 2>&1 &&
		! grep -qiE 'warning|error' "$out"
}

warning_seen()
{
	file=$linux/$(sources "$1" x86-64 | head -n 1)
	file=${file%.o}.c
	cp "$file" "$work/saved"
	echo 'static int for_nobody;' >>"$file"
	objects_build "$1" x86-64
	status=$?
	cp "$work/saved" "$file"
	[ $status != 0 ] && grep -q for_nobody "$out"
}

# What is left for the linker to find must be there on a machine without an MMU.
no_mmu_symbols()
{
	(cd "$objects" && sources "$1" no-mmu | xargs arm-linux-gnueabi-nm -u) |
		grep -wE 'find_vm_area|vmf_map_pages|finish_fault' >"$out"
	[ ! -s "$out" ]
}

all=
for dir in "$tree"/kernel/series/*/; do
	[ -e "$dir" ] && all="$all $(basename "$dir")"
done
[ -n "$all" ] || {
	echo '1..0 # SKIP no series'
	exit 0
}

for series in $all; do
	rm -rf "$linux"
	if ! "$tree/kernel/source" vanilla "$linux" >"$out" 2>&1; then
		check "$series: the source" false
		continue
	fi
	chmod -R u+w "$linux"
	machine x86-64
	check "$series: x86-64 configured" configure x86-64
	step=0
	for patch in $(patches "$series"); do
		step=$((step + 1))
		check "$series: step $step: checkpatch" style "$patch"
		check "$series: step $step: applies" apply "$patch"
		check "$series: step $step: x86-64 objects without warnings" \
			objects_build "$series" x86-64
	done
	check "$series: a warning would have been seen" warning_seen "$series"
	for m in clang arm64 riscv64 arm no-mmu; do
		machine $m
		if ! command -v "$compiler" >/dev/null; then
			skip "$series: $m" "no $compiler"
			continue
		fi
		check "$series: $m configured" configure $m
		check "$series: $m objects without warnings" objects_build "$series" $m
		[ $m != no-mmu ] ||
			check "$series: no-mmu: nothing that is not there is called" \
				no_mmu_symbols "$series"
		rm -rf "$objects"
	done
	rm -rf "$work/x86-64"
done
finish
