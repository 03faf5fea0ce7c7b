#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3000
#
# mmscope ab with times: seven boots each of 7.2, which populates a BPF array at mmap
# time, and of 7.3, which does it fault by fault, compared in both directions. Two
# counts and two times decide: seven blocks are what two times need.
set -u

mmscope=${MMSCOPE:?}
# shellcheck source=tests/lib/tap.sh
. "${MMSCOPE_TREE:?}/tests/lib/tap.sh"

# diff STATUS BASE NEW [OPTIONS]
diff()
{
	want=$1
	shift
	"$mmscope" diff "$@" >"$out" 2>&1
	status=$?
	[ "$status" = "$want" ]
}

# row NAME VERDICT: in the table that was printed.
row()
{
	grep -qE "^ *$1 .* $2( \*)?$" "$out"
}

ab()
{
	"$mmscope" ab -A 7.2 -B 7.3 -n 7 -o "$TMPDIR/ab" --all \
		--primary fault_completed,ptes_per_hold,mmap_ns,touch_ns -- \
		mmscope bench arraymap --size 8M >"$out" 2>"$out.err" </dev/null
	status=$?
	sed 's/^/# /' "$out.err"
	[ $status = 1 ]
}

old=$TMPDIR/ab/A.json
new=$TMPDIR/ab/B.json
# The huge pages of a whole guest, the observer's among them, are not what is tested.
check '7.3 is worse than 7.2' ab
sed 's/^/# /' "$out"
check 'in its faults' row fault_completed worse
check 'in refusals, which decide nothing' row fault_refused worse
check 'in attempts' row fault_attempts worse
check 'the PTEs for each hold are the same' row ptes_per_hold same
check 'so are the PTEs' row ptes_installed same
check 'mapping takes less time' row mmap_ns better
check 'touching takes more' row touch_ns worse
check 'the boots were taken in turns' grep -q '7 and 7 boots in blocks' "$out"
# A time for mapping that is now worse, as it must be: eager work moved there.
check 'swapped, every verdict is mirrored' diff 1 --all "$new" "$old"
check 'better in its faults' row fault_completed better
check 'and in refusals' row fault_refused better
check 'the same PTEs for each hold' row ptes_per_hold same
check 'mapping takes more time' row mmap_ns worse
check 'touching takes less' row touch_ns better
check '7.2 against itself is held' diff 0 "$old" "$old"
check 'as is 7.3' diff 0 "$new" "$new"
finish
