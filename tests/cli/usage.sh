#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Wrong input of every option: one line on stderr, nothing on stdout, status 2;
# and what `fault` and `probes` say where BPF is refused.
set -u

cd "$TMPDIR" || exit 1
n=0
bad=0
command=
ln -s missing dangling
mkdir directory
echo text >file

result()
{
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n - $1"
		return
	fi
	bad=1
	echo "# $2"
	sed 's/^/# stdout: /' out
	sed 's/^/# stderr: /' err
	echo "not ok $n - $1"
}

# check STATUS ARGS...: that status, one line on stderr, nothing on stdout. A
# time limit: what should not start at all must not be waited for.
check()
{
	want=$1
	shift
	timeout 20 "$MMSCOPE" "$@" >out 2>err </dev/null
	status=$?
	problem=
	[ "$status" = "$want" ] || problem="status $status, not $want"
	[ "$(wc -l <err)" = 1 ] || problem="$problem not one line on stderr"
	grep -q '^mmscope: [^ ]' err || problem="$problem; not 'mmscope: what: cause'"
	! grep -q '^mmscope: warning' err || problem="$problem; a warning"
	[ ! -s out ] || problem="$problem; something on stdout"
	result "$*" "$problem"
}

# rows COMMAND: check every line of stdin as its arguments; %E is an empty one.
rows()
{
	while IFS= read -r line; do
		[ -n "$line" ] || continue
		set -f
		# shellcheck disable=SC2086 # words of a row
		set -- $line
		set +f
		i=$#
		while [ "$i" -gt 0 ]; do
			word=$1
			shift
			[ "$word" != %E ] || word=
			set -- "$@" "$word"
			i=$((i - 1))
		done
		# shellcheck disable=SC2086 # "bench touch" is two words
		check 2 $command "$@"
	done
}

check 2
check 2 nothing
check 2 ''
check 2 --nothing
check 2 bench
check 2 bench nothing
check 2 bench ''

command=fault rows <<'EOT'
%E
--
true
--nothing
-Z
-a --
-a true
-o
-o %E -a
--output
--output= -a
-o -- true
-d
-d 0 -- true
-d -1 -- true
-d x -- true
-d 1x -- true
-d 1e3 -- true
-d nan -- true
-d inf -- true
-d %E -- true
-d 99999999999 -- true
--duration=0 -a
-i
-i 0 -a
-i -5 -a
-i 1h -a
-i %E -a
-i 0x10 -a
-i 5 -d 2 -a
--interval= -a
--by
--by nothing -- true
--by %E -- true
--by backing|method -- true
--by BACKING -- true
--format
--format xml -- true
--format %E -- true
--format jso -- true
--control
--control %E -- true
--control 3,4 -- true
--control fd: -- true
--control fd:x -- true
--control fd:0, -- true
--control fd:0,1,2 -- true
--control fd:-1 -- true
--control fd:99 -- true
-p
-p %E
-p x
-p 0
-p -1
-p 1x
-p 99999999999
-p 4194305
-p 1 -- true
-p 1 -a
-p 1 --comm x
-t
-t x
-t 4194305
-t 1 -- true
-t 1 --cgroup /
-c
-c /nowhere
-c /dev/null
-c /tmp
-c /tmp --comm x -a
--comm
--comm %E -a
--comm x -a
--control fd:0,99 -- true
--control fd:0,0 -- true
--control fd:99999999999 -- true
--control fifo:ctl -- true
--all=1 -- true
--exact=yes -- true
--json=1 -- true
--exac -a -d
EOT

command=probes rows <<'EOT'
word
-- true
--nothing
-Z
--btf
--btf %E
--btf=
--btf --
--kallsyms
--kallsyms file
--kallsyms %E --btf file
--kernel
--kernel %E
--kernel 6.1 --btf file
--kernel 6.1 --kallsyms file
--exact=1
EOT

command=audit rows <<'EOT'
word
-- true
--nothing
-Z
--kernel
--kernel %E
--module
--module exfat
--module %E --kernel 6.1
--json=1
EOT

command=list rows <<'EOT'
word
%E
-- word
--nothing
-Z
--json=1
--markdown=1
--json --markdown
EOT

command='bench arraymap' rows <<'EOT'
word
-- word
--nothing
-Z
-s
-s 0
-s 1
-s -1
-s 8X
-s %E
-s 99999999999999999999
-s 9999999G
--size=
--touch
--touch cow
--touch %E
-n
-n 0
-n -1
-n x
-n 1.5
-n 99999999999999999999
--repeat=
--populate=1
--oracle=1
--json=1
EOT

command='bench touch' rows <<'EOT'
word
--nothing
-b
-b nothing
-b %E
--backing=anon|file
--path
--path %E -b file
--path file
--touch
--touch nothing
--by
--by nothing
--pattern
--pattern nothing
--pattern %E
--pattern stride
--pattern stride=
--pattern stride=0
--pattern stride=-1
--pattern stride=x
-s
-s 0
-s 8X
-s 99999999999999999999
--thp
--thp 0
--thp 3K
--thp 5M
--thp x
--threads
--threads 0
--threads x
--threads 99999999
-n 0
-n x
--overwrite=1
--present
--present=1
--present -b file
--present -b memfd --touch beyond
--present -b shmem --touch fork
--json=1
--oracle=1
EOT

command='bench ringbuf' rows <<'EOT'
word
-s
-s 0
-s 3M
-s x
-n 0
--json=1
EOT

command='bench contend' rows <<'EOT'
%E
word
mmap_lock word
mmap_lock --threads
mmap_lock --threads 1
mmap_lock --threads 257
vma_lock --threads 3
mmap_lock --threads x
mmap_lock --seconds
mmap_lock --seconds 0
mmap_lock --seconds x
--threads 4
mmap_lock --json=1
EOT

command=lock rows <<'EOT'
word
--
-a -d 0
--by method -a
--by %E -a
--yield -a
--exact -a
-e lock -a
--format xml -a
--stacks=0 -a
--stacks=16385 -a
--stacks=x -a
--stacks 10
--folded -i 1 -a
--in nothing -a
--in
-p 1 -- true
EOT

command=trace rows <<'EOT'
word
--
-e
-e %E -a -d 0
-e nothing -a
-e fault,nothing -a
-e fault -a -d 0
--by nothing -a
-e fault --by owner -a
-e lock --by file -a
-e fault --stacks -a
-e fault --folded -a
-e fault --user-stacks -a
--by holder -a
--in munmap -a
--reconcile -a
EOT

command='bench io_uring' rows <<'EOT'
word
--entries
--entries 0
--entries x
--entries 99999999
-n 0
--json=1
EOT

command=vm rows <<'EOT'
word
--
true -- true
--nothing
-Z
-k
-k %E -- true
--cpus
--cpus 0 -- true
--cpus -1 -- true
--cpus x -- true
--cpus %E -- true
--cpus 999 -- true
--cpus 2,max=1 -- true
--cpus 2,max= -- true
--cpus 2,min=1 -- true
--cpus 2, -- true
--cpus 2 --icount -- true
-m
-m 0 -- true
-m 1K -- true
-m x -- true
-m 99999999999999999999 -- true
--numa
--numa 0 -- true
--numa 65 -- true
--numa x -- true
--icount=1 -- true
--append
--append %E -- true
--copy
--copy %E -- true
--copy missing -- true
--copy dangling -- true
--get
--get %E -- true
--get file:missing/file -- true
--disk
--disk %E -- true
--disk missing -- true
--disk directory -- true
--module
--module %E -- true
--env
--env %E -- true
--env NAME -- true
--env =value -- true
--timeout
--timeout 0 -- true
--timeout x -- true
--log
--log %E -- true
--log missing/file -- true
EOT

# Where BPF is refused: nothing starts, and the reasons are told.
"$MMSCOPE" probes >out 2>err </dev/null
case $? in
0)
	n=$((n + 1))
	echo "ok $n - BPF is refused # SKIP BPF is permitted here"
	;;
3)
	problem=
	[ "$(wc -l <err)" = 1 ] || problem="not one line on stderr"
	grep -q '^EVENT  *MECHANISM  *SYMBOL  *NOTE$' out || problem="$problem; no table"
	grep -q '^fault entry  *unavailable  *- *no ' out || problem="$problem; no reason"
	grep -q '^  fault_completed  *no ' out || problem="$problem; no metrics lost"
	grep -q '^Memory of the maps: ' out || problem="$problem; no memory"
	result "probes where BPF is refused" "$problem"
	check 3 fault -- touch started
	check 3 fault --exact -a
	check 3 fault -o report -- touch started
	problem=
	[ ! -e started ] || problem="the command was started"
	[ ! -e report ] || problem="$problem there is a report"
	result "fault starts nothing where it sees nothing" "$problem"
	"$MMSCOPE" fault --json -- touch started >out 2>err </dev/null
	status=$?
	problem=
	[ "$status" = 3 ] || problem="status $status"
	[ ! -s out ] || problem="$problem; something on stdout"
	python3 -c 'import json, sys; sys.exit(list(json.load(sys.stdin)) != ["error"])' <err ||
		problem="$problem; not an object on stderr"
	result "fault --json where BPF is refused" "$problem"
	;;
*)
	result "probes where BPF may be refused" "neither 0 nor 3"
	;;
esac

for args in "--btf missing" "--btf file" "--btf directory" "--btf dangling" "--btf /dev/null"; do
	# shellcheck disable=SC2086 # words of a row
	check 4 probes $args
done

check 4 bench touch --backing file --path missing/file
check 4 bench touch --backing file --path directory

# The first process of a container is no guest's init.
if unshare -pf true 2>/dev/null; then
	unshare -pf "$MMSCOPE" --version >out 2>err </dev/null
	problem=
	grep -q '^mmscope' out || problem='no version'
	result 'as the first process of a container' "$problem"
fi

echo "1..$n"
exit $bad
