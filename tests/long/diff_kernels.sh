#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 3000
#
# Seven boots each of 7.2, which populates a BPF array at mmap time, and of 7.3,
# which does it fault by fault; recorded in turns, compared in both directions.
# Two counts and two times decide: seven blocks are what two times need.
set -u

mmscope=${MMSCOPE:?}
out=${TMPDIR:?}/out
n=0
bad=0

# check NAME COMMAND...
check()
{
	name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		bad=1
		echo "not ok $n - $name"
		tail -n 40 "$out" | sed 's/^/# /'
	fi
}

# boot KERNEL FILE: two runs more, of a boot of their own. The guest's files are
# gone with it, so the recording goes in and comes back.
boot()
{
	if [ -f "$2" ]; then
		"$mmscope" vm --kernel "$1" --copy "$2:/tmp/rec.json" --get "/tmp/rec.json:$2" -- \
			mmscope record -n 2 --primary "$primary" --append -o /tmp/rec.json -- \
			mmscope bench arraymap --size 8M
	else
		"$mmscope" vm --kernel "$1" --get "/tmp/rec.json:$2" -- \
			mmscope record -n 2 --primary "$primary" -o /tmp/rec.json -- \
			mmscope bench arraymap --size 8M
	fi >"$out" 2>&1 </dev/null
}

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

primary=fault_completed,ptes_per_hold,mmap_ns,touch_ns
old=$TMPDIR/7.2.json
new=$TMPDIR/7.3.json
for i in 1 2 3 4 5 6 7; do
	# A B B A: a drift of this machine falls on both.
	case $i in
	1 | 3 | 5 | 7) first=7.2 second=7.3 ;;
	*) first=7.3 second=7.2 ;;
	esac
	check "boot $i of $first" boot $first "$TMPDIR/$first.json"
	check "boot $i of $second" boot $second "$TMPDIR/$second.json"
done

# The huge pages of a whole guest, the observer's among them, are not what is tested.
check '7.3 is worse than 7.2' diff 1 --all "$old" "$new"
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
echo "1..$n"
exit $bad
