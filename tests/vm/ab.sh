#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
# needs: kernels
#
# mmscope ab on kernels whose difference is known, by counts: 7.2 populates a BPF array
# at mmap time, 7.3 fault by fault, the series arraymap by whole page tables. What is
# found must be found, and nothing else; the other way round, everything is mirrored.
# tests/long/ab.sh lets times decide, too.
set -u

mmscope=${MMSCOPE:?}
# shellcheck source=tests/lib/tap.sh
. "${MMSCOPE_TREE:?}/tests/lib/tap.sh"

# ab STATUS DIR A B BOOTS OPTIONS...
ab()
{
	want=$1 dir=$2 a=$3 b=$4 boots=$5
	shift 5
	"$mmscope" ab -A "$a" -B "$b" -n "$boots" --times 1 -o "$TMPDIR/$dir" --all "$@" -- \
		mmscope bench arraymap --size 2M --repeat 1 >"$out" 2>"$out.err" </dev/null
	status=$?
	sed 's/^/# /' "$out.err" "$out"
	[ "$status" = "$want" ]
}

# diff STATUS BASE NEW
diff()
{
	want=$1
	shift
	"$mmscope" diff --all "$@" >"$out" 2>&1
	[ "$?" = "$want" ]
}

# row NAME VERDICT: in the table that was printed.
row()
{
	grep -qE "^ *$1 .* $2( \*)?( .*)?$" "$out"
}

# absent NAME BESIDE: not in the table, in which BESIDE is.
absent()
{
	grep -qE "^ *$2( |\{)" "$out" && ! grep -qE "^ *$1( |\{)" "$out"
}

# only VERDICT NAME...: no other metric has it. Times have too few boots for a verdict.
only()
{
	verdict=$1
	shift
	grep -q '^primary .* verdict$' "$out" || return
	grep -E "^ +[a-z_]+(\.p[0-9]+)?(\{.*\})? .* $verdict( \*)?$|^[a-z_]+ .* $verdict$" "$out" |
		awk '{ print $1 }' | sort -u >"$out.have"
	printf '%s\n' "$@" | sed '/^$/d' | sort -u >"$out.want"
	cmp -s "$out.have" "$out.want" || {
		echo "# $verdict: $(tr '\n' ' ' <"$out.have")"
		return 1
	}
}

check '7.3 is worse than 7.2' ab 1 debian 7.2 7.3 5 --primary fault_completed
old=$TMPDIR/debian/A.json new=$TMPDIR/debian/B.json
check 'the boots were taken in turns' grep -q '5 and 5 boots in blocks' "$out"
check 'each had a run with probes, and one without' grep -q '5 boots, 10 runs' "$out"
check 'and the order is kept' [ "$(awk '{ printf "%s", $2 }' "$TMPDIR/debian/order")" = ABBAABBAAB ]
check 'in its faults, refusals and attempts, and in nothing else' \
	only worse fault_completed fault_refused fault_attempts
check 'better in nothing' only better ''
check 'the PTEs are the same' row ptes_installed same
check 'for each hold, too' row ptes_per_hold same
check 'swapped, it holds' diff 0 "$new" "$old"
check 'all that was worse is better' \
	only better fault_completed fault_refused fault_attempts
check 'and nothing is worse' only worse ''
check '7.2 against itself holds' diff 0 "$old" "$old"
check 'nothing of it is better' only better ''
check 'or worse' only worse ''

check 'patched is better than vanilla' ab 0 series vanilla patched 6 --primary ptes_per_hold
old=$TMPDIR/series/A.json new=$TMPDIR/series/B.json
check 'in its PTEs for each hold' row ptes_per_hold better
check 'the PTEs are the same' row ptes_installed same
check 'by faults, which vanilla does without' row fault_completed worse
# What is zero on both has no row.
check 'no attempt is refused on either' absent fault_refused ptes_installed
check 'swapped, it is worse' diff 1 "$new" "$old"
check 'in its PTEs for each hold' row ptes_per_hold worse
check 'the same PTEs' row ptes_installed same
check 'and no refusals' absent fault_refused ptes_installed
finish
