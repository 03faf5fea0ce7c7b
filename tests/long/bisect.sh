#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 7200
# needs: kernels
#
# git bisect run over a kernel tree (docs/bisect.md): the source with the series arraymap
# as commits, one of which spoils fault-around for the page cache in passing. Builds
# six kernels, each of what is there of the one before, and boots them.
set -u

mmscope=${MMSCOPE:?}
tree=${MMSCOPE_TREE:?}
# shellcheck source=tests/lib/tap.sh
. "$tree/tests/lib/tap.sh"
work=$TMPDIR
linux=$work/linux
export MMSCOPE GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat

# status WANT COMMAND...: in the kernel tree
status()
{
	want=$1
	shift
	(cd "$linux" && "$@") >"$out" 2>&1
	got=$?
	[ $got = "$want" ] || { echo "# status $got, not $want" && false; }
}

# What a patch could do: begin with a small window, and widen it when the page before is
# there. But the entry is not looked up yet when the window is chosen.
spoil()
{
	source=$("$mmscope" vm --source) || return
	first=$(find "$tree/kernel/series/arraymap" -name '0001-*.patch')
	mkdir -p "$work/a" "$work/b/mm"
	(cd "$source" && cp --parents MAINTAINERS mm/memory.c "$work/a") &&
		patch -d "$work/a" -p1 -s <"$first" &&
		awk '/^static void fault_around_window/ { inside = 1 }
		     inside && /The PTE offset of the start address/ {
			print "\t/* Begin with the page alone, and widen if its PTE was used. */"
			print "\tif (!vmf->pte || pte_none(ptep_get(vmf->pte)))"
			print "\t\tnr_pages = 1;"
			print ""
			inside = 0
		     }
		     { print }' "$work/a/mm/memory.c" >"$work/b/mm/memory.c" || return
	(cd "$work" && diff -u a/mm/memory.c b/mm/memory.c) >"$work/spoil.patch"
	[ $? = 1 ]
}

step="$tree/kernel/bisect-step"
cat >"$work/expect" <<'EOT'
# Fault-around maps the neighbours of a page that the page cache has: 16 in one hold.
ptes_per_hold{backing=shmem} >= 8
EOT

check 'a change that spoils' spoil
check 'a tree with it' "$tree/kernel/bisect-tree" "$linux" 4 "$work/spoil.patch"
check 'its commits' [ "$(git -C "$linux" rev-list --count base..master)" = \
	"$(find "$tree/kernel/series" -name '*.patch' | wc -l)" ]
check 'an expectation file that is missing stops' status 129 "$step" /none true
printf '#error not this one\n' >>"$linux/mm/memory.c"
check 'what does not build cannot be told' status 125 "$step" "$work/expect" true
check 'and why is said' grep -q 'does not build: .*not this one' "$out"
git -C "$linux" checkout -q mm/memory.c
check 'a command that fails cannot be told' status 125 "$step" "$work/expect" false
check 'and why is said' grep -q '^mmscope: bisect: .*command ended with status 1' "$out"
echo 'fault_around_extra >= 1' >"$work/undecided"
check 'what was not observed cannot be told' status 125 "$step" "$work/undecided" true
check 'and why is said' grep -q '^ok 1 - fault_around_extra >= 1 # SKIP ' "$out"
cat >>"$linux/init/main.c" <<'EOT'
static int __init not_this_one(void)
{
	panic("not this one");
}
early_initcall(not_this_one);
EOT
check 'what does not boot cannot be told' status 125 "$step" "$work/expect" true
check 'and why is said' grep -q '^mmscope: bisect: .*not this one' "$out"
git -C "$linux" checkout -q init/main.c
check 'a bisection begins' status 0 git bisect start master base
check 'and ends' status 0 git bisect run "$step" "$work/expect" \
	mmscope bench touch --backing file --touch read --size 4M --repeat 1
{ cat "$out" && echo; } | sed 's/^/# /'	# the last line may be none
check 'with the commit that is spoiled' [ "$(git -C "$linux" rev-parse refs/bisect/bad)" = \
	"$(git -C "$linux" rev-parse step-4)" ]
finish
