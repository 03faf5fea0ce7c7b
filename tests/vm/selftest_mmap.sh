#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3000
# needs: kernels
#
# The kernel's own BPF selftests of mapped maps, from the same source as the kernels
# and with a harness of ours (tests/kernel/selftest): the same results on vanilla and
# patched. Those that do not build here are named with the compiler's reason.
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

mmscope=${MMSCOPE:?}
tree=${MMSCOPE_TREE:?}
dir=${TMPDIR:?}/selftest
# run K FILE: all that were built, in one boot; "TEST STATUS" and what they printed.
run()
{
	copies=
	for test in $built; do
		copies="$copies --copy $dir/$test:/usr/bin/selftest.$test"
	done
	# shellcheck disable=SC2086
	"$mmscope" vm --kernel "$1" --timeout 300 $copies -- sh -c "for t in $built; do
			echo @\$t; selftest.\$t; echo @\$t status \$?
		done" >"$2" 2>"$out" </dev/null
}

# The checks' text has addresses and times in it: the results are what must be the same.
outcome()
{
	grep -E "^@|^(not )?ok |^# [0-9]+ checks" "$1"
}

: >"$out"
source=$(MMSCOPE=$mmscope "$tree/kernel/source" 2>"$out") &&
	"$mmscope" vm --kernel vanilla --get "/sys/kernel/btf/vmlinux:$TMPDIR/btf" -- true \
		>"$out" 2>&1 </dev/null
result $? 'the source is there, and what vanilla tells of its types'
[ "$bad" = 0 ] || finish

built=
"$tree/tests/kernel/selftest/build.sh" "$source" "$TMPDIR/btf" "$dir" mmap \
	test_mmap_inner_array map_in_map ringbuf ringbuf_multi user_ringbuf \
	arena_direct_value >"$dir.list" 2>"$out"
result $? 'selftests are compiled'
while IFS= read -r line; do
	case $line in
	'built '*) built="$built ${line#built }" ;;
	'cannot mmap:'*) result 1 "selftest mmap does not build: ${line#*: }" ;;
	cannot*)
		line=${line#cannot }
		skip "selftest ${line%%:*}" "does not build here: ${line#*: }"
		;;
	esac
done <"$dir.list"

for k in vanilla patched; do
	run $k "$TMPDIR/$k"
	result $? "$k: the guest ran all of them"
done
for test in $built; do
	for k in vanilla patched; do
		outcome "$TMPDIR/$k" | sed -n "/^@$test\$/,/^@$test status/p" >"$TMPDIR/$k.$test"
	done
	cat "$TMPDIR/vanilla" "$TMPDIR/patched" >"$out"
	[ -s "$TMPDIR/vanilla.$test" ] && cmp -s "$TMPDIR/vanilla.$test" "$TMPDIR/patched.$test"
	result $? "$test: the same on both ($(sed -n 's/^# //p' "$TMPDIR/patched.$test"))"
done
cat "$TMPDIR/vanilla" "$TMPDIR/patched" >"$out"
grep -qx '@mmap status 0' "$TMPDIR/vanilla" && grep -qx '@mmap status 0' "$TMPDIR/patched"
result $? 'mmap passes on both'
finish
