#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The test runner itself: what it must count, and what it must not believe.
# shellcheck disable=SC2016,SC2317 # text for other programs; functions for check()
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

run=$MMSCOPE_TREE/tests/run
tests=$TMPDIR/tests
build=$TMPDIR/build
scratch=$TMPDIR/scratch
mkdir "$scratch"
export MMSCOPE_RUNNER_PID="$TMPDIR/pid"

# suite [ARGS]: run the suites that $tests holds; $status and $out tell.
suite()
{
	TMPDIR=$scratch python3 "$run" --tests "$tests" --build "$build" "$@" \
		>"$out" 2>&1 </dev/null
	status=$?
}

# fresh [KIND]: empty $tests; the next suite comes from stdin as KIND/a.sh.
fresh()
{
	rm -rf "$tests"
	mkdir -p "$tests/${1:-cli}"
	cat >"$tests/${1:-cli}/a.sh"
}

# counts STATUS PASSED FAILED SKIPPED: exit status and last line are these.
counts()
{
	[ "$status" = "$1" ] && [ "$(tail -n 1 "$out")" = "$2 passed, $3 failed, $4 skipped" ]
}

says()
{
	grep -qF -- "$1" "$out"
}

# gone: the process whose id a suite left ends within 5 s; one that nobody
# has waited for yet has ended.
gone()
{
	[ -s "$MMSCOPE_RUNNER_PID" ] || return 1
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' \
			"/proc/$(cat "$MMSCOPE_RUNNER_PID")/status" 2>/dev/null)
		case $state in
		'' | Z | X) return 0 ;;
		esac
		sleep 0.5
	done
	return 1
}

fresh <<'!'
echo 1..2; echo ok 1 - one; echo ok 2 - two
!
suite
check 'passes are counted' counts 0 2 0 0

fresh <<'!'
echo ok 1 - one; echo not ok 2 - two; echo '# because of this'; exit 1
!
suite
check 'a failure is counted once' counts 1 1 1 0
check 'a failure is named' says 'FAILED  two'
check 'its diagnostics are shown' says 'because of this'

fresh <<'!'
echo not ok 1 - one
!
suite
check 'status 0 does not hide a failure' counts 1 0 1 0

fresh <<'!'
echo ok 1 - one; echo 'ok 2 - two # SKIP no such kernel'
!
suite
check 'a skip is neither' counts 0 1 0 1
check 'a skip is named with its reason' says 'SKIP    two: no such kernel'

fresh <<'!'
echo 1..3; echo ok 1 - a; echo 'not ok 2 # SKIP b'; echo ok 3 - c
!
suite
check 'the form in which cmocka skips' counts 0 2 0 1

fresh <<'!'
echo '1..0 # SKIP nothing to test here'
!
suite
check 'a suite that skips itself' counts 0 0 0 1

fresh <<'!'
echo ok 1 - one; exit 3
!
suite
check 'a status without a failed test fails' counts 1 1 1 0
check 'that status is told' says 'status 3'

fresh <<'!'
echo ok 1 - one; kill -SEGV $$
!
suite
check 'a suite that crashes fails' counts 1 1 1 0
check 'the signal is named' says SIGSEGV

fresh <<'!'
echo hello
!
suite
check 'no result is a failure' counts 1 0 1 0

fresh <<'!'
echo 1..3; echo ok 1 - one; echo ok 2 - two
!
suite
check 'fewer results than planned' counts 1 2 1 0

fresh <<'!'
echo ok 1 - one; echo ok 2 - two; echo 1..1
!
suite
check 'more results than planned' counts 1 2 1 0

fresh <<'!'
echo ok 1 - one; echo ok 3 - three
!
suite
check 'a result that is missing in between' counts 1 2 1 0

fresh <<'!'
echo 1..2; echo ok 1 - a; echo ok 2 - b; echo 1..1; echo ok 1 - c
!
suite
check 'two groups with plans of their own' counts 0 3 0 0

fresh <<'!'
echo ok 1 - one; echo 'Bail out! no disk'
!
suite
check 'bail out is a failure' counts 1 1 1 0

fresh <<'!'
echo ok 1 - one; echo '    not ok 1 - nested'; echo 'okay 2'; echo 'ok 9 - on stderr' >&2
!
suite
check 'only lines that are results count' counts 0 1 0 0

fresh <<'!'
echo not ok 1 - one; echo 'why it failed' >&2; exit 1
!
suite
check 'the end of stderr is shown' says 'why it failed'

fresh <<'!'
printf 'not ok 1 - a\033[31mb\302\233c\n'
!
suite
check 'control characters stay off the terminal' says 'a\x1b[31mb\x9bc'

fresh <<'!'
# time-limit: 1
echo ok 1 - one
sleep 600 & echo $! >"$MMSCOPE_RUNNER_PID"
wait
!
suite
check 'a suite beyond its time limit fails' counts 1 1 1 0
check 'its children are gone, too' gone

fresh <<'!'
# time-limit: 1
trap '' TERM
echo ok 1 - one
while :; do sleep 1; done
!
suite
check 'a suite that ignores SIGTERM is ended' counts 1 1 1 0

fresh <<'!'
echo ok 1 - one
setsid sleep 600 >/dev/null 2>&1 & echo $! >"$MMSCOPE_RUNNER_PID"
!
suite
check 'a process left behind is a failure' counts 1 1 1 0
check 'it is named' says sleep
check 'and ended' gone

fresh <<'!'
echo ok 1 - one
touch "$TMPDIR/file"; mkdir "$TMPDIR/dir"
!
suite
check 'temporary files are removed' [ -z "$(ls -A "$scratch")" ]

fresh <<'!'
[ -z "$(cat)" ] && echo ok 1 - stdin is empty
[ -z "${MAKEFLAGS-}" ] && echo ok 2 - no flags of a make above
!
MAKEFLAGS=-k suite
check 'the environment of a suite' counts 0 2 0 0

fresh vm <<'!'
echo ok 1 - in vm
!
mkdir "$tests/cli" "$tests/long"
echo 'echo ok 1 - in cli' >"$tests/cli/b.sh"
echo 'echo ok 1 - long' >"$tests/long/c.sh"
echo 'print("ok 1 - python")' >"$tests/cli/d.py"
suite
check 'all kinds but the long ones run' counts 0 3 0 0
suite long
check 'the long ones run when named' counts 0 1 0 0
printf 'echo not ok 1 - bad\necho "ok 2 - less # SKIP no more"\n' >"$tests/long/c.sh"
suite --results "$TMPDIR/kept" --command 'make it' long
kept()
{
	sed -n 1p "$TMPDIR/kept" | grep -qx '# `make it`' &&
		grep -q "^| long/c | $(date +%Y-).* | 0 | $1 | $2 | 0.0 |\$" "$TMPDIR/kept" &&
		[ "$(grep -cx -- '- long/c: bad' "$TMPDIR/kept")" = "$1" ] &&
		[ "$(grep -cx -- '- long/c: less: no more' "$TMPDIR/kept")" = "$2" ]
}
check 'a run to be kept is written down' kept 1 1
echo 'echo ok 1 - else' >"$tests/long/f.sh"
suite --results "$TMPDIR/kept" --command 'make it' long/f
both()
{
	kept 1 1 && grep -q '^| long/f | .* | 1 | 0 | 0 | 0.0 |$' "$TMPDIR/kept"
}
check 'another one does not take it away' both
echo 'echo "ok 1 - less # SKIP no more"' >"$tests/long/c.sh"
suite --results "$TMPDIR/kept" --command 'make it' long/c
check 'the same one again renews it' kept 0 1
rm "$tests/long/f.sh"
suite --results "$TMPDIR/kept" --command 'make it' long
check 'what is no more is not kept' [ "$(grep -c long/f "$TMPDIR/kept")" = 0 ]
suite cli/b
check 'one suite by name' counts 0 1 0 0
suite tests/cli/b.sh vm
check 'by path and by kind' counts 0 2 0 0
suite 'cli/?'
check 'by pattern' counts 0 2 0 0
suite cli/nothing
check 'an unknown name is an error' [ "$status" = 2 ]

mkdir "$tests/unit"
echo 'int main(void) { return 0; }' >"$tests/unit/e_test.c"
suite unit/e
check 'a unit test that was not built fails' counts 1 0 1 0

# Slow first, quick second, both at once: order of printing is that of the names.
fresh <<'!'
sleep 1; echo ok 1 - slow
!
echo 'echo ok 1 - quick' >"$tests/cli/b.sh"
suite -j2
check 'output is in order' [ "$(sed -n 's/: .*//p' "$out" | xargs)" = 'cli/a cli/b' ]

cat >"$tests/cli/a.sh" <<'!'
touch "$MMSCOPE_RUNNER_PID.a"; sleep 1; rm "$MMSCOPE_RUNNER_PID.a"; echo ok 1 - a
!
cat >"$tests/cli/b.sh" <<'!'
# runs: alone
[ -e "$MMSCOPE_RUNNER_PID.a" ] && echo not ok 1 - b || echo ok 1 - b
!
suite -j2
check 'a suite that runs alone does' counts 0 2 0 0

# The kernels that a suite needs are built beside those that do not need them.
mkdir "$TMPDIR/bin"
cat >"$TMPDIR/bin/make" <<'!'
#!/bin/sh
echo "made: $*"; sleep 1; [ -e "$MMSCOPE_RUNNER_PID.b" ] && touch "$MMSCOPE_RUNNER_PID.kernels"
!
chmod +x "$TMPDIR/bin/make"
fresh <<'!'
# needs: kernels
[ -e "$MMSCOPE_RUNNER_PID.kernels" ] && echo ok 1 - a || echo not ok 1 - a
!
echo 'touch "$MMSCOPE_RUNNER_PID.b"; echo ok 1 - b' >"$tests/cli/b.sh"
PATH=$TMPDIR/bin:$PATH suite -j1
check 'a suite that needs kernels waits for them' counts 0 2 0 0
check 'which are built by make' says 'made: '
rm "$tests/cli/a.sh"
PATH=$TMPDIR/bin:$PATH suite -j1
check 'without such a suite nothing is built' sh -c '! grep -q made: "$0"' "$out"

fresh <<'!'
echo ok 1 - one; echo $$ >"$MMSCOPE_RUNNER_PID"; exec sleep 600
!
rm -f "$MMSCOPE_RUNNER_PID"
# A shell starts its background jobs with SIGINT ignored, which would be inherited.
python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["TMPDIR"] = sys.argv[1]
os.execvp(sys.argv[2], sys.argv[2:])' \
	"$scratch" python3 "$run" --tests "$tests" --build "$build" >"$out" 2>&1 </dev/null &
runner=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ -s "$MMSCOPE_RUNNER_PID" ] && break
	sleep 1
done
kill -INT "$runner"
wait "$runner"
status=$?
check 'SIGINT stops the run with its status' [ "$status" = 130 ]
check 'SIGINT ends the suites' gone
check 'SIGINT leaves no file' [ -z "$(ls -A "$scratch")" ]

fresh <<'!'
kill -HUP $PPID $$; sleep 1; echo ok 1 - one; echo 1..1
!
(
	trap '' HUP
	suite
	[ "$status" = 0 ]
)
check 'a hang-up that is ignored is that of runner and suites' [ $? = 0 ]

finish
