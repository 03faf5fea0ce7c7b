#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
#
# mmscope vm on the command line: what goes in, what comes out, how it ends.
set -u

: "${MMSCOPE:?names the binary}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
TMPDIR=$work/tmp
mkdir "$TMPDIR"
export TMPDIR

count=0
failed=0

# result NAME STATUS: the status of the check before.
result()
{
	count=$((count + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $count - $1"
		return
	fi
	failed=1
	sed 's/^/# /' err 2>/dev/null | cut -c 1-200 | tail -n 5
	echo "not ok $count - $1"
}

# ends NAME WANTED GOT [PATTERN]: a status, and one line on stderr that has PATTERN.
ends()
{
	[ "$3" -eq "$2" ] || echo "# status $3, not $2"
	[ $# -lt 4 ] || grep -q -e "$4" err || echo "# no '$4' on stderr"
	[ $# -lt 4 ] || [ "$(grep -c ^mmscope: err)" -eq 1 ] || echo "# not one line"
	[ "$3" -eq "$2" ] && { [ $# -lt 4 ] ||
		{ grep -q -e "$4" err && [ "$(grep -c ^mmscope: err)" -eq 1 ]; }; }
	result "$1" $?
}

# vm ARGS: on the newest kernel, output to out and err.
vm()
{
	"$MMSCOPE" vm --kernel 7.3 "$@" >out 2>err </dev/null
}

log_of_err()
{
	sed -n 's/.*console log: //p' err
}

# No file of a run stays behind, only the log that was named.
nothing_left()
{
	[ -z "$(ls -A "$TMPDIR")" ]
	result "$1: no file left" $?
	rm -rf "$TMPDIR"
	mkdir "$TMPDIR"
}

### Wrong input: one line, nothing booted.

usage()
{
	want=$1
	shift
	vm "$@"
	status=$?
	[ "$status" -eq "$want" ] && [ "$(wc -l <err)" -eq 1 ] && [ ! -s out ]
	result "status $want and one line: $*" $?
}

for bad in '--cpus 0' '--cpus x' '--cpus 4,max=2' '--cpus 2,min=1' '--cpus 256' '--cpus' \
	'--memory 1' '--memory x' '--memory' '--numa 0' '--numa x' '--numa 64' '--icount --cpus 2' \
	'--icount=1' '--append' '--copy' '--copy /nonexistent' '--copy /proc/meminfo' \
	'--copy /etc/hostname:relative' '--get' '--get /' '--get x:' '--disk' \
	'--disk /nonexistent' '--disk /tmp' '--module' '--env' '--env =x' '--env x' \
	'--timeout' '--timeout 0' \
	'--timeout x' '--log' '--kernel' '--bogus'; do
	# shellcheck disable=SC2086 # words
	case $bad in
	--[a-z]*\ * | *=*) usage 2 $bad -- true ;;
	--bogus) usage 2 $bad -- true ;;
	*) usage 2 $bad ;;
	esac
done
usage 2 --
usage 2
usage 2 true
usage 127 -- /nonexistent
usage 127 -- no-such-program
usage 126 -- /etc/hostname
usage 126 --module no-such-module -- true

for bad in none 7.9 /nonexistent /etc/passwd "$work"; do
	"$MMSCOPE" vm --kernel "$bad" -- true >out 2>err </dev/null
	status=$?
	[ "$status" -eq 126 ] && [ "$(wc -l <err)" -eq 1 ]
	result "status 126 and one line: --kernel $bad" $?
done
"$MMSCOPE" vm --kernel 7.3.999 -- true >out 2>err </dev/null
status=$?
grep -q 'kernel 7.3.999: ' err
result 'an exact version that is not in the archive' $((status == 126 ? $? : 1))

### With neither network nor apt.

http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 APT_CONFIG=/nonexistent
export http_proxy https_proxy APT_CONFIG
vm -- true
ends 'true' 0 $?
unset http_proxy https_proxy APT_CONFIG

### In and out.

head -c 4000000 /dev/urandom >data1
head -c 3000000 /dev/urandom >data2
mkdir -p tree/sub
echo one >tree/sub/file
ln -s sub/file tree/link
printf '#!/bin/sh\necho "script $1"\n' >script
chmod 755 script
cat >inside <<'EOF'
cat /copied
cat "$1" >&2
[ "$(cat)" = "" ] && [ "$(readlink /proc/self/fd/0)" = /dev/null ] && echo stdin >>facts
[ "$NAME" = "a b=c" ] && [ "$MMSCOPE_TEST" = passed ] && echo env >>facts
[ "$MMSCOPE_CACHE$MMSCOPE_CONTROL_FD" = "" ] && echo private >>facts
echo "$MMSCOPE_VM" >>facts
[ "$PWD" = /root ] && echo home >>facts
[ "$(cat "$2/link")" = one ] && echo tree >>facts
"$3" works >>facts
mmscope --version >>facts
[ -s "/boot/config-$(uname -r)" ] && echo config >>facts
for d in /proc /sys /dev /tmp /run /dev/shm /sys/kernel/tracing /sys/kernel/debug /sys/fs/bpf \
	/sys/fs/cgroup; do
	grep -q " $d " /proc/mounts || [ "$d" = /tmp ] || echo "not mounted: $d" >>facts
done
printf '\000\001binary\377' >bytes
exit 7
EOF
MMSCOPE_TEST=passed MMSCOPE_CONTROL_FD=3,4 vm --copy data1:/copied --copy data2 --copy tree \
	--copy ./script --copy inside --env NAME='a b=c' --get facts --get bytes:local.bin \
	-- sh "$work/inside" "$work/data2" "$work/tree" "$work/script"
ends 'exit status 7 is passed on' 7 $?
cmp out data1
result 'stdout, 4 MB of it, byte for byte' $?
cmp err data2
result 'stderr apart, byte for byte' $?
for fact in stdin env private home tree 'script works' mmscope config; do
	grep -q "^$fact" facts 2>/dev/null
	result "in the guest: $fact" $?
done
grep -q '^not mounted' facts
result 'in the guest: file systems' $((! $?))
grep -Eq '^(tcg|kvm)$' facts
result 'in the guest: MMSCOPE_VM' $?
printf '\000\001binary\377' | cmp - local.bin
result '--get FILE:LOCAL' $?
nothing_left 'good run'

truncate -s 16M disk
vm --disk disk --cpus 2,max=4 --numa 2 --memory 512M --module ext4 --log kept.log \
	--get /nonexistent -- sh -c 'echo written >/dev/vda
	cat /sys/devices/system/cpu/online /sys/devices/system/cpu/possible
	cat /sys/devices/system/node/online; echo x >/dev/stdout; echo y >/dev/stderr'
ends '--get of a file that is not there' 71 $? "'/nonexistent' did not come back"
printf '0-1\n0-3\n0-1\nx\n' | cmp - out
result '--cpus 2,max=4 --numa 2' $?
[ "$(head -c 7 disk)" = written ]
result '--disk is written back' $?
grep -q 'Linux version 7.3' kept.log
result '--log' $?

vm --icount -- sh -c 'echo "$MMSCOPE_VM $(nproc)"; exec /root/x'
ends '--icount; a command that is not there in the guest' 127 $?
echo 'icount 1' | cmp - out
result '--icount has one CPU' $?

### Every kernel of the matrix.

while read -r series version release; do
	start=$(date +%s%3N)
	"$MMSCOPE" vm --kernel "$version" --disk disk -- \
		sh -c 'uname -r; [ -b /dev/vda ] && [ -r /sys/kernel/btf/vmlinux ] && kill -9 $$' \
		>out 2>err </dev/null
	status=$?
	end=$(date +%s%3N)
	[ "$status" -eq 137 ] && [ "$(cat out)" = "$release" ]
	result "$series: $release boots, has a disk and BTF; a killed command is 137" $?
	echo "# $series: $((end - start)) ms"
done <<'EOF'
6.1 6.1.190 6.1.0-54-cloud-amd64
6.12 6.12.117 6.12.117+deb13-cloud-amd64
7.2 7.2.12 7.2.12+deb13-cloud-amd64
EOF

image=$(echo "${MMSCOPE_CACHE:-$HOME/.cache/mmscope}"/kernels/7.3.4*/usr/lib/modules/*/vmlinuz)
"$MMSCOPE" vm --kernel "$image" -- mmscope vm --bogus >out 2>err </dev/null
ends 'a bzImage; mmscope in the guest' 2 $? 'bogus'
head -c 1000000 "$image" >short
"$MMSCOPE" vm --kernel ./short -- true >out 2>err </dev/null
ends 'a bzImage cut short' 126 $? 'cut short'

### Trouble.

vm -- sh -c 'echo before; sleep 1; echo c >/proc/sysrq-trigger; sleep 60'
ends 'panic' 71 $? 'panicked: Kernel panic'
log=$(log_of_err)
grep -q 'sysrq: Trigger a crash' "$log"
result 'panic: the log is kept and named' $?
echo before | cmp - out
result 'panic: output until then' $?
rm -f "$log"
nothing_left panic

vm --append rdinit=/nonexistent -- true
ends 'panic while booting' 126 $? 'panicked while booting'

vm -- sh -c 'echo "<4>------------[ cut here ]------------" >/dev/kmsg
	echo "<4>WARNING: CPU: 0 PID: 1 at mm/none.c:1 none+0x1/0x2" >/dev/kmsg'
ends 'a WARNING fails the run' 71 $? 'kernel report: WARNING: CPU: 0 PID: 1 at mm/none.c:1'

vm --memory 256M -- sh -c 'tail /dev/zero; echo "tail: $?"; exit 0'
ends 'out of memory' 71 $? 'ran out of memory'
echo 'tail: 137' | cmp - out
result 'out of memory: output' $?

start=$(date +%s)
vm --timeout 1 -- sh -c 'echo early; while :; do sleep 1000; done'
ends '--timeout' 124 $? 'not done after 1 s'
echo early | cmp - out
result '--timeout: output until then' $?
[ $(($(date +%s) - start)) -lt 60 ]
result '--timeout: in time' $?

"$MMSCOPE" vm --kernel 7.3 -- echo lost >/dev/full 2>err </dev/null
ends 'stdout on a full disk' 71 $? 'standard output: cannot be written: No space left'

# Not sh -c: the child's own memory must not count as a leak of ours.
mkdir full
if mount -t tmpfs -o size=64k tmpfs full 2>/dev/null; then
	vm --get big:full/big -- dd if=/dev/zero of=big bs=1M count=1 2>/dev/null
	status=$?
	grep -v -e records -e copied err >err2; mv err2 err
	ends '--get to a full disk' 71 $status 'cannot be written here'
	[ -z "$(ls -A full)" ]
	result '--get to a full disk: nothing half-written' $?
	umount full
else
	count=$((count + 1))
	echo "ok $count - --get to a full disk # SKIP cannot mount"
fi

### Signals: the guest goes with us.

# stopped SIGNAL: to a run whose command is at work; qemu must be gone afterwards.
stopped()
{
	rm -rf "$TMPDIR"
	mkdir "$TMPDIR"
	: >out
	"$MMSCOPE" vm --kernel 7.3 -- sh -c 'echo running; sleep 1000' >out 2>err </dev/null &
	pid=$!
	tries=0
	until [ -s out ] || [ $tries -ge 900 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	qemu=$(cat "/proc/$pid/task/$pid/children")
	kill "-$1" "$pid"
	wait "$pid"
	status=$?
	tries=0
	while [ $tries -lt 50 ] && running "$qemu"; do
		sleep 0.1
		tries=$((tries + 1))
	done
	[ -n "$qemu" ] && ! running "$qemu"
	result "SIG$1: the emulator is gone" $?
	ends "SIG$1: we die of it" $((128 + $2)) "$status"
	nothing_left "SIG$1"
}

running()
{
	grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/${1% }/status" 2>/dev/null
}

stopped TERM 15
stopped KILL 9

if command -v script >/dev/null; then
	# Typed once the prompt is there.
	cat >typist <<'EOF'
tries=0
until grep -q '# $' typed.out 2>/dev/null || [ $tries -ge 600 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
printf 'tty; echo $((40 + 2)) >&2; exit 5\r'
until grep -q '^42' typed.out || [ $tries -ge 900 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
sleep 3
EOF
	sh typist | script -qefc "$MMSCOPE vm --kernel 7.3" typed.out >/dev/null 2>&1
	status=$?
	tr -d '\r' <typed.out >out
	grep -q '^/dev/ttyS1$' out && grep -q '^42$' out
	result 'a shell on the terminal' $?
	ends 'a shell on the terminal: its status' 5 $status
fi

echo "1..$count"
exit $failed
