#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 6000
# needs: kernels
#
# mmscope ab with times: seven boots each of 7.2, which populates a BPF array at mmap
# time, and of 7.3, which does it fault by fault, compared in both directions. Two
# counts and two times decide: seven blocks are what two times need. And of vanilla, as
# 7.2, and the series arraymap, which does it by faults of whole page tables.
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

# ab STATUS DIR A B PRIMARY
ab()
{
	want=$1
	"$mmscope" ab -A "$3" -B "$4" -n 7 -o "$TMPDIR/$2" --all --primary "$5" -- \
		mmscope bench arraymap --size 8M >"$out" 2>"$out.err" </dev/null
	status=$?
	sed 's/^/# /' "$out.err" "$out"
	[ $status = "$want" ]
}

old=$TMPDIR/debian/A.json
new=$TMPDIR/debian/B.json
# The huge pages of a whole guest, the observer's among them, are not what is tested.
check '7.3 is worse than 7.2' \
	ab 1 debian 7.2 7.3 fault_completed,ptes_per_hold,mmap_ns,touch_ns
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

# Touching is what the faults are in now: that it got faster would be false.
old=$TMPDIR/series/A.json
new=$TMPDIR/series/B.json
check 'the series holds' ab 0 series vanilla patched ptes_per_hold,mmap_ns
check 'with more PTEs for each hold' row ptes_per_hold better
check 'and less time for mapping' row mmap_ns better
check 'the PTEs are the same' row ptes_installed same
check 'faults are more' row fault_completed worse
check 'there is a row for touching' row touch_ns '(worse|same|cannot tell)'
check 'swapped, it is worse' diff 1 --all "$new" "$old"
check 'in its PTEs for each hold' row ptes_per_hold worse
check 'and in the time for mapping' row mmap_ns worse
check 'the same PTEs' row ptes_installed same
check 'fewer faults' row fault_completed better
check 'touching is there, too' row touch_ns '(better|same|cannot tell)'
finish
