#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3000
# needs: kernels
#
# What a mapped BPF array does, tested in the guest by tests/kernel/arraymap.c, for
# each kernel as it must be: populated by mmap (vanilla), page by page (7.3), in
# windows that grow (patched). Told another behaviour, the same tests fail.
#
# arraymap_functional.sh [KERNEL BEHAVIOUR]...: on other kernels, as tests/long/kernels.sh
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

mmscope=${MMSCOPE:?}
tree=${MMSCOPE_TREE:?}
program=${TMPDIR:?}/arraymap
# Those that know what each behaviour brings.
telling="'pages that mmap installs' 'pages that each read in order brings' \
'pages that each write in order brings' 'MADV_DONTNEED and touch again'"

# kernel K RIGHT: all tests with the right behaviour, the telling ones with each other.
kernel()
{
	k=$1 right=$2
	others=
	for other in eager fault window ramp; do
		[ "$other" = "$right" ] || others="$others $other"
	done
	case $k in
	*+debug) memory=3G ;;	# KASAN's shadow, and what it keeps back of freed memory
	*) memory=1G ;;
	esac
	"$mmscope" vm --kernel "$k" --numa 2 --memory $memory --timeout 1000 \
		--copy "$program:/usr/bin/arraymap" -- sh -c "arraymap $right
			echo @status \$?
			for b in$others; do
				echo @other \$b
				arraymap \$b $telling
				echo @status \$?
			done" >"$out" 2>"$out.err" </dev/null
	status=$?
	sed '/^@other/,$d' "$out" >"$out.right"
	# Line by line, so that what a test says stands before its result.
	while IFS= read -r line; do
		case $line in
		'ok '*' # SKIP '*)
			rest=${line#ok * }
			skip "$k: ${rest% # SKIP *}" "${rest#* # SKIP }"
			;;
		'ok '*)
			result 0 "$k: ${line#ok * }"
			;;
		'not ok '*)
			result 1 "$k: ${line#not ok * }"
			;;
		'# '*)
			echo "$line"
			;;
		esac
	done <"$out.right"
	planned=$(sed -n 's/^1\.\.//p' "$out.right")
	[ "$(grep -cE '^(not )?ok ' "$out.right")" = "${planned:-none}" ]
	result $? "$k: all tests ran"
	[ "$status" = 0 ] || sed 's/^/# /' "$out.err" | tail -n 20
	result "$status" "$k: the guest ran to its end, and its log is clean"
	for other in $others; do
		sed -n "/^@other $other\$/,/^@status/p" "$out" | grep -qx '@status 1'
		result $? "$k: told that it is '$other', the tests fail"
	done
}

# shellcheck disable=SC2046
cc -static -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-parameter \
	-Wno-missing-field-initializers -pthread -o "$program" "$tree"/tests/kernel/arraymap*.c \
	$(pkg-config --static --libs libbpf) >"$out" 2>&1
status=$?
sed 's/^/# /' "$out"
result $status 'the tests are compiled'
[ $# != 0 ] || set -- 7.3 fault vanilla eager patched ramp
while [ $status = 0 ] && [ $# -ge 2 ]; do
	kernel "$1" "$2"
	status=0
	shift 2
done
finish
