#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 2400
# needs: kernels
#
# The expectations of mapped BPF arrays: each holds on its kernels, for reads and for
# writes, and fails on all others, with a line that says what is not so.
#
# expect_arraymap.sh [KERNEL KIND]...: on other kernels
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

mmscope=${MMSCOPE:?}
tree=${MMSCOPE_TREE:?}
# fails LINE: status 1, and this expectation is named as the one that fails.
fails()
{
	[ "$status" = 1 ] && grep -qE "^not ok [0-9]+ - $1" "$out"
}

# line EXPECTATIONS KERNEL: what fails first when a kernel is not as expected.
line()
{
	case $1-$2 in
	eager-*) echo 'ptes_installed\{backing=bpf_array,trigger=mmap\} == 2048' ;;
	*-eager) echo 'ptes_installed\{backing=bpf_array,trigger=mmap\} == 0' ;;
	lazy-batched) echo 'fault_refused\{backing=bpf_array,reason=no_map_pages\} == 2048' ;;
	batched-lazy) echo 'fault_completed\{backing=bpf_array\} <= 10' ;;
	esac
}

# kernel K KIND: recorded once, held against all expectations here.
kernel()
{
	k=$1 kind=$2
	"$mmscope" vm --kernel "$k" --get "/tmp/read:$TMPDIR/read" \
		--get "/tmp/write:$TMPDIR/write" -- sh -c 'for touch in read write; do
			mmscope record --exact -o /tmp/$touch -- mmscope bench arraymap \
				--size 8M --touch $touch --oracle -n 1 || exit
		done' >"$out" 2>&1 </dev/null
	status=$?
	result $status "$k: recorded"
	[ $status = 0 ] || return
	for touch in read write; do
		for expected in eager lazy batched; do
			"$mmscope" check "$tree/tests/expect/arraymap-$expected.expect" \
				"$TMPDIR/$touch" >"$out" 2>&1
			status=$?
			if [ $expected = "$kind" ]; then
				result $status "$k, $touch: $expected holds"
			else
				fails "$(line $expected "$kind")"
				result $? "$k, $touch: $expected fails, and it says where"
			fi
		done
	done
}

[ $# != 0 ] || set -- 7.2 eager 7.3 lazy vanilla eager patched batched
while [ $# -ge 2 ]; do
	kernel "$1" "$2"
	shift 2
done
finish
