#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# git bisect run mmscope check, on a repository made here whose commits each hold
# the recording of a kernel: it finds the first bad one, steps over what cannot be
# told, and stops where the expectations are wrong.
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

if ! command -v git >/dev/null; then
	echo '1..0 # SKIP no git'
	exit 0
fi
tmp=$TMPDIR
golden=$MMSCOPE_TREE/tests/golden
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME="$tmp" GIT_PAGER=cat
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@example.invalid
export GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@example.invalid

# commit MESSAGE STATE: good (2048 faults), bad (4096), lost (2048 to 9999), broken.
commit()
{
	case $2 in
	good) cp "$golden/lazy.json" "$tmp/repo/run.json" ;;
	bad) sed '/"name":"fault_completed".*per_page/s/"value":2048/"value":4096/' \
		"$golden/lazy.json" >"$tmp/repo/run.json" ;;
	lost) sed '/"name":"fault_completed".*per_page/s/"value":2048/"value":2048,"max":9999/' \
		"$golden/lazy.json" >"$tmp/repo/run.json" ;;
	broken) head -c 500 "$golden/lazy.json" >"$tmp/repo/run.json" ;;
	esac
	echo "$1" >"$tmp/repo/name"
	git -C "$tmp/repo" add run.json name
	git -C "$tmp/repo" commit -q -m "$1"
}

# bisect EXPECT: from the first commit (good) to the last (bad).
bisect()
{
	git -C "$tmp/repo" bisect start HEAD first >"$out" 2>&1
	(cd "$tmp/repo" && git bisect run "$MMSCOPE" check "$1" run.json) >>"$out" 2>&1
	status=$?
	found=$(git -C "$tmp/repo" show -s --format=%s refs/bisect/bad 2>/dev/null)
	git -C "$tmp/repo" bisect reset >/dev/null 2>&1
	return $status
}

repository()
{
	rm -rf "$tmp/repo"
	git init -q -b main "$tmp/repo"
	for state; do
		commit "$state" "${state%%-*}"
	done
	git -C "$tmp/repo" tag first "$(git -C "$tmp/repo" rev-list --max-parents=0 HEAD)"
}

echo 'fault_completed{backing=bpf_array} <= 3000' >"$tmp/expect"

# Each state by itself: what bisect sees.
repository good-1
for case in good:0 bad:1 lost:125 broken:125; do
	commit "alone" "${case%:*}"
	"$MMSCOPE" check "$tmp/expect" "$tmp/repo/run.json" >"$out" 2>&1
	[ $? = "${case#*:}" ]
	result $? "${case%:*} is ${case#*:}"
done
echo 'fault_completed <=' >"$tmp/wrong"
"$MMSCOPE" check "$tmp/wrong" "$tmp/repo/run.json" >"$out" 2>&1
[ $? = 129 ]
result $? 'malformed expectations are 129'

repository good-1 good-2 good-3 good-4 bad-5 bad-6 bad-7 bad-8
bisect "$tmp/expect" && [ "$found" = bad-5 ]
result $? 'the first bad commit is found'

repository good-1 good-2 lost-3 broken-4 good-5 bad-6 lost-7 bad-8 bad-9
bisect "$tmp/expect" && [ "$found" = bad-6 ]
result $? 'what cannot be told is stepped over, and blames nobody'

# The first bad one hides among those that cannot be told: said, not guessed.
repository good-1 good-2 lost-3 broken-4 bad-5 bad-6
bisect "$tmp/expect"
status=$?
[ $status != 0 ] && grep -q 'There are only .skip.ped commits left to test' "$out"
result $? 'where only such are left, none is blamed'

repository good-1 good-2 good-3 good-4 bad-5 bad-6 bad-7 bad-8
bisect "$tmp/wrong"
[ $? != 0 ] && ! grep -q 'is the first bad commit' "$out" &&
	grep -q 'line 1, column 19' "$out"
result $? 'malformed expectations stop it at once'

finish
