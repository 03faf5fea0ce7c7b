#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1500
# needs: kernels, also: debug
#
# The kernels that are built: vanilla and patched boot, are what they say, have what the
# configuration promises, and a tree that was built serves as a kernel.
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

mmscope=${MMSCOPE:?}
plus=${MMSCOPE_PLUS:-}
# boot K OPTION...: what the guest says of itself is in $out, its status in $status.
boot()
{
	k=$1
	shift
	"$mmscope" vm --kernel "$k" --numa 2 --memory 2G "$@" -- sh -c '
		echo "release $(uname -r)"
		echo "version $(uname -v)"
		grep -qx CONFIG_EXPERT=y "/boot/config-$(uname -r)" && echo config yes
		sed "s/^.*[[:space:]]/filesystem /" /proc/filesystems
		[ -c /dev/kvm ] && echo kvm yes
		[ -c /dev/userfaultfd ] && echo userfaultfd yes
		[ -e /sys/kernel/btf/vmlinux ] && echo btf yes
		[ -d /sys/kernel/debug/fail_page_alloc ] && echo injection yes
		sed "s/^/thp /" /sys/kernel/mm/transparent_hugepage/enabled
		sed "s/^/nodes /" /sys/devices/system/node/online
		mmscope probes >/tmp/probes && sed -n "s/^Metrics lost: */lost /p" /tmp/probes
		mmscope record -n 1 --primary ptes_installed -o /tmp/r.json -- \
			mmscope bench arraymap --size 8M --touch read --repeat 1 &&
			echo recorded yes
		' >"$out" 2>&1 </dev/null
	status=$?
}

has()
{
	grep -qxE -- "$1" "$out"
}

# sound NAME RELEASE: what holds for each of them.
sound()
{
	check "$1: boots and ends well" [ "$status" = 0 ]
	check "$1: release" has "release $2"
	check "$1: of a fixed build, SMP, lazily preempted" has \
		'version #1 SMP PREEMPT_(LAZY|DYNAMIC) .*'
	check "$1: its configuration is in the guest" has 'config yes'
	for what in 'filesystem (exfat|ext4)' 'kvm yes' 'userfaultfd yes' 'btf yes' \
		'injection yes' 'thp \[always\] madvise never' 'nodes 0-1'; do
		check "$1: $what" has "$what"
	done
	check "$1: no metric is lost" has 'lost none'
	check "$1: a recording" has 'recorded yes'
}

# fact FILE PATH: the value of $.PATH in a recording.
fact()
{
	python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value[key]
print(value)' "$1" "$2"
}

# ptes FILE METHOD: PTEs of the array that were installed by a method.
ptes()
{
	python3 -c 'import json, sys
want = {"backing": "bpf_array", "method": sys.argv[2]}
samples = [m for r in json.load(open(sys.argv[1]))["runs"] for m in r["metrics"]
	if m["name"] == "ptes_installed" and want.items() <= m["labels"].items()]
print(sum(m["value"] for m in samples))' \
		"$1" "$2"
}

# A module that is built in is there already.
boot "vanilla$plus" --module kvm_amd --get "/tmp/r.json:$TMPDIR/vanilla.json"
vanilla=7.2.12-mmscope-vanilla${plus:+-debug}
sound vanilla "$vanilla"
check 'vanilla: the recording names it' \
	[ "$(fact "$TMPDIR/vanilla.json" machine.release)" = "$vanilla" ]
check 'vanilla: with its configuration' \
	[ "$(fact "$TMPDIR/vanilla.json" machine.config | grep -c PREEMPT_LAZY)" = 1 ]
check 'vanilla: mmap populates an array' [ "$(ptes "$TMPDIR/vanilla.json" eager)" = 2048 ]
if [ -n "$plus" ]; then
	for what in KASAN PROVE_LOCKING DEBUG_VM; do
		check "vanilla: the recording tells of $what" \
			[ "$(fact "$TMPDIR/vanilla.json" "machine.config.$what")" = y ]
	done
fi
"$mmscope" vm --kernel "vanilla$plus" --module no_such_module -- true >"$out" 2>&1 </dev/null
status=$?
check 'vanilla: a module that it does not have' \
	grep -q "module no_such_module: kernel $vanilla has none of that name" "$out"

# A tree as make leaves it.
built=$(MMSCOPE=$mmscope "$MMSCOPE_TREE/kernel/build" "vanilla$plus" 2>/dev/null)
mkdir -p "$TMPDIR/tree/arch/x86/boot"
ln -s "$built/vmlinuz" "$TMPDIR/tree/arch/x86/boot/bzImage"
cp "$built/config" "$TMPDIR/tree/.config"
boot "$TMPDIR/tree" --get "/tmp/r.json:$TMPDIR/tree.json"
check 'a kernel tree' has "release $vanilla"
check 'a kernel tree: its configuration is in the guest' has 'config yes'

sed -i '/CONFIG_VIRTIO_CONSOLE=/d' "$TMPDIR/tree/.config"
"$mmscope" vm --kernel "$TMPDIR/tree" -- true >"$out" 2>&1 </dev/null
status=$?
check 'a kernel tree that could not answer' \
	grep -q '^mmscope: kernel .*/tree: CONFIG_VIRTIO_CONSOLE is not set' "$out"

set -- "$MMSCOPE_TREE"/kernel/series/*/*.patch
if [ -e "$1" ]; then
	boot "patched$plus" --get "/tmp/r.json:$TMPDIR/patched.json"
	sound patched "7.2.12-mmscope-patched${plus:+-debug}"
	built=$(MMSCOPE=$mmscope "$MMSCOPE_TREE/kernel/build" "patched$plus" 2>/dev/null)
	for one in "$MMSCOPE_TREE"/kernel/series/*/; do
		one=$(basename "$one")
		check "patched: has the series $one" grep -q "^series .*\<$one\>" "$built/info"
	done
	if [ -d "$MMSCOPE_TREE/kernel/series/arraymap" ]; then
		check 'patched: mmap no longer populates an array' \
			[ "$(ptes "$TMPDIR/patched.json" eager)" = 0 ]
		check 'patched: faults do' [ "$(ptes "$TMPDIR/patched.json" fault_around)" -gt 0 ]
	fi
fi

finish
