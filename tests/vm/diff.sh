#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
#
# Five boots each of 7.2, which populates a BPF array at mmap time, and of 7.3,
# which does it fault by fault. One exact count decides; times are shown. The long
# test of the same kernels takes them in turns and lets times decide as well.
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

# boot KERNEL FILE: a recording of one boot, two runs.
boot()
{
	"$mmscope" vm --kernel "$1" --get "/tmp/rec.json:$2" -- \
		mmscope record -n 2 --primary fault_completed -o /tmp/rec.json -- \
		mmscope bench arraymap --size 8M --repeat 2 >"$out" 2>&1 </dev/null
}

# join FILE...: the boots of one kernel as one recording, on standard output.
join()
{
	python3 -c '
import json, sys
files = [json.load(open(p)) for p in sys.argv[1:]]
for f in files[1:]:
    files[0]["runs"] += f["runs"]
json.dump(files[0], sys.stdout)' "$@"
}

# diff STATUS BASE NEW [OPTIONS]
diff()
{
	want=$1
	shift
	"$mmscope" diff "$@" >"$out" 2>&1
	[ "$?" = "$want" ]
}

# row NAME VERDICT: in the table that was printed.
row()
{
	grep -qE "^ *$1 .* $2( \*)?( .*)?$" "$out"
}

old=$TMPDIR/7.2.json
new=$TMPDIR/7.3.json
for k in 7.2 7.3; do
	for i in 1 2 3 4 5; do
		check "$k: boot $i" boot $k "$TMPDIR/$k-$i.json"
	done
	join "$TMPDIR/$k"-[1-5].json >"$TMPDIR/$k.json"
done

check 'one boot a side: cannot tell' diff 125 "$TMPDIR/7.2-1.json" "$TMPDIR/7.3-1.json"
check 'and the unit is named' grep -q 'the unit is the boot' "$out"
check '7.3 is worse than 7.2' diff 1 --all "$old" "$new"
sed 's/^/# /' "$out"
check 'in its faults' row fault_completed worse
check 'in refusals' row fault_refused worse
check 'in attempts' row fault_attempts worse
check 'the PTEs for each hold are the same' row ptes_per_hold same
check 'so are the PTEs' row ptes_installed same
check 'mapping takes less time' row mmap_ns better
check 'touching takes more' row touch_ns worse
check 'swapped, it holds' diff 0 --all "$new" "$old"
check 'better in its faults' row fault_completed better
check 'in refusals' row fault_refused better
check 'in attempts' row fault_attempts better
check 'the same PTEs for each hold' row ptes_per_hold same
check 'mapping takes more time' row mmap_ns worse
check 'touching takes less' row touch_ns better
check '7.2 against itself holds' diff 0 "$old" "$old"
echo "1..$n"
exit $bad
