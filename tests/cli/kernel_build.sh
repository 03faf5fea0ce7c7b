#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 300
# kernel/build on a tiny source that behaves like kbuild: cache, series, errors, interruption.
# shellcheck disable=SC2016,SC2317 # text for other programs; functions for check()
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

tree=$TMPDIR/tree src=$TMPDIR/linux err=$TMPDIR/err
MMSCOPE_CACHE=$TMPDIR/cache
export MMSCOPE_CACHE MMSCOPE_KERNEL_SOURCE="$src"

explain()
{
	cat "$out" "$err"
	tail -n 5 "$MMSCOPE_CACHE"/build/*.log
}

# build K: what it prints is in $out and $err, its status in $status.
build()
{
	"$tree/kernel/build" "$@" >"$out" 2>"$err" </dev/null
	status=$?
}

# fails LINE: it failed, printed no kernel, and its only line is matched by LINE.
fails()
{
	[ "$status" != 0 ] && [ ! -s "$out" ] && [ "$(wc -l <"$err")" = 1 ] &&
		grep -qE -- "$1" "$err"
}

# The same after the line that says that it builds.
fails_late()
{
	sed -i '/: building; progress/d' "$err"
	fails "$1"
}

# compiled NAMES: exactly these, according to make's output for K's name.
compiled()
{
	log=$MMSCOPE_CACHE/build/$1.log
	shift
	[ "$(sed -n 's/^  CC *//p' "$log" | sort | tr '\n' ' ')" = "${*:+$* }" ]
}

published()
{
	[ "$status" = 0 ] && [ -d "$(cat "$out")" ] &&
		grep -q "^release 9.8.7-mmscope-$1\$" "$(cat "$out")/info" &&
		for file in vmlinuz config System.map btf modules.builtin; do
			[ -s "$(cat "$out")/$file" ] || return 1
		done
}

### The source: three objects, one of which includes a header.

mkdir -p "$src/arch/x86/boot" "$src/mm" "$src/include/config" "$tree/tools" "$tree/kernel/config"
cat >"$src/Makefile" <<'END'
VERSION = 9
PATCHLEVEL = 8
SUBLEVEL = 7
objects = mm/a.o mm/b.o mm/c.o
alldefconfig:
	echo CONFIG_DEFAULT=y >.config
	grep -v -E '^(# )?CONFIG_(ABSENT|FORCED)[= ]' $(KCONFIG_ALLCONFIG) >>.config
	echo CONFIG_FORCED=y >>.config
bzImage: vmlinux
	{ cat $(objects) && env | grep -E '^(KBUILD|KC)' | grep -v KCONFIG | sort; } \
		>arch/x86/boot/bzImage
	echo 9.8.7$(LOCALVERSION) >include/config/kernel.release
	echo map >System.map; echo kernel/x.ko >modules.builtin
vmlinux: $(objects)
	echo 'const int t __attribute__((section(".BTF"))) = 1;' | gcc -xc - -c -o vmlinux
%.o: %.c
	@echo '  CC      $@'
	@[ ! -e slow ] || sleep 1
	@! grep -n broken $< | sed 's/^\([0-9]*\):.*/$(subst /,\/,$<):\1:1: error: no such thing/' \
		| grep . >&2
	@! grep -q tool $< || no-such-tool
	@! grep -q full $< || { echo 'ld: mm/x: No space left on device' >&2; exit 1; }
	cat $< >$@
	echo 'deps := $<' >$(@D)/.$(@F).cmd
mm/b.o: include/b.h
END
for one in a b c; do
	printf 'one\ntwo\nthree\n%s\nfive\nsix\nseven\n' $one >"$src/mm/$one.c"
done
echo b >"$src/include/b.h"
cp "$MMSCOPE_TREE/kernel/build" "$MMSCOPE_TREE/kernel/lib.sh" "$MMSCOPE_TREE/kernel/source" \
	"$tree/kernel"
cp "$MMSCOPE_TREE/tools/setup.sh" "$tree/tools"
printf '# a comment\nCONFIG_ONE=y\n# CONFIG_TWO is not set\n' >"$tree/kernel/config/vm.config"
printf 'CONFIG_TWO=y\n' >"$tree/kernel/config/debug.config"

# patch SERIES NUMBER FILE FROM TO: a patch that makes line FROM of FILE line TO.
patch_for()
{
	mkdir -p "$tree/kernel/series/$1" "$TMPDIR/ab/a/$(dirname "$3")" \
		"$TMPDIR/ab/b/$(dirname "$3")"
	cp "$src/$3" "$TMPDIR/ab/a/$3"
	sed "s/^$4\$/$5/" "$src/$3" >"$TMPDIR/ab/b/$3"
	(cd "$TMPDIR/ab" && diff -u "a/$3" "b/$3") >"$tree/kernel/series/$1/000$2-$5.patch"
}

### What K can be.

for k in '' vanilla: patched: none vanilla+x patched@1 'vanilla vanilla'; do
	# shellcheck disable=SC2086 # words
	build $k
	check "status 2: build $k" [ "$status" = 2 ]
done
build patched
check 'no series at all' fails 'kernel patched: there is no patch series in .*; use vanilla$'
patch_for first 1 mm/a.c a alpha
build patched:none
check 'an unknown series' fails 'kernel patched:none: no series of that name; there are: first$'
for step in 0 2 x 01 -1 ''; do
	build "patched:first@$step"
	check "no such step: '$step'" fails 'which step\? first has 1, counted from 1$'
done

### A build, and the cache.

KCFLAGS=-DOURS ARCH=arm build vanilla
check 'vanilla is built' published vanilla
check 'of all objects' compiled vanilla mm/a.o mm/b.o mm/c.o
vanilla=$(cat "$out")
check 'nothing of the environment is in it' \
	sh -c '[ "$(tail -n 4 "$0/vmlinuz" | cut -d = -f 1 | tr "\n" " ")" = \
	"KBUILD_BUILD_HOST KBUILD_BUILD_TIMESTAMP KBUILD_BUILD_USER KBUILD_BUILD_VERSION " ]' \
	"$vanilla"
build vanilla
check 'a second time it is in the cache' [ "$(cat "$out" "$err")" = "$vanilla" ]
cp "$vanilla/vmlinuz" "$TMPDIR/vmlinuz"
rm -rf "$MMSCOPE_CACHE"
build vanilla
check 'equal input, equal kernel' cmp "$TMPDIR/vmlinuz" "$vanilla/vmlinuz"
echo CONFIG_THREE=y >>"$tree/kernel/config/vm.config"
build vanilla
check 'another configuration, another kernel' [ "$(cat "$out")" != "$vanilla" ]
check 'which has it' grep -q '^CONFIG_THREE=y' "$(cat "$out")/config"
build vanilla+debug
check 'the debug configuration' published vanilla-debug
check 'wins over the plain one' grep -qx 'CONFIG_TWO=y' "$(cat "$out")/config"

### Series.

patch_for first 2 include/b.h b beta
patch_for second 1 mm/c.c c gamma
build patched:first@1
check 'the first step' published first-1
check 'compiles what it touches' compiled first-1 mm/a.o
build patched:first@2
check 'the second step is built on the first' compiled first-2 mm/b.o
build patched
check 'all series' published patched
check 'again only what differs' compiled patched mm/c.o
check 'are in it' sh -c 'grep -qx alpha "$0" && grep -qx gamma "$0"' "$(cat "$out")/vmlinuz"
check 'and named' grep -qx 'series first second' "$(cat "$out")/info"
rm -rf "$MMSCOPE_CACHE/kernels"
build vanilla
check 'back to the source' cmp "$TMPDIR/vmlinuz" "$(cat "$out")/vmlinuz"
check 'the source itself is as it was' sh -c '! grep -rqE "alpha|beta|gamma" "$0"' "$src"
"$tree/kernel/source" patched:second "$TMPDIR/copy" >"$out" 2>"$err"
check 'kernel/source makes a patched copy' sh -c \
	'grep -qx gamma "$0/mm/c.c" && grep -qx a "$0/mm/a.c" && [ -e "$0/Makefile" ]' \
	"$TMPDIR/copy"

### Patches that do not apply.

patch_for wrong 1 mm/b.c b delta
sed -i 's/^ two/ 2/' "$tree/kernel/series/wrong/0001-delta.patch"
build patched:wrong
check 'a patch that does not apply' fails \
	'kernel patched:wrong: series wrong: 0001-delta.patch does not apply to mm/b.c of 9.8.7$'
rm -r "$tree/kernel/series/wrong"
patch_for third 1 mm/c.c c chi
build patched:third
check 'a series on its own' published third
build patched
check 'series that conflict' fails \
	'series third conflicts with second: after it, 0001-chi.patch does not apply to mm/c.c$'
rm -r "$tree/kernel/series/third"
build patched
check 'nothing remains of it' published patched

### Options.

echo CONFIG_ABSENT=y >>"$tree/kernel/config/vm.config"
build vanilla
check 'an option that is not in the result' fails \
	'CONFIG_ABSENT=y \(kernel/config/vm.config\) is not in the final .config, which has noth'
sed -i 's/^CONFIG_ABSENT=y/# CONFIG_FORCED is not set/' "$tree/kernel/config/vm.config"
build vanilla
check 'one that is there against the wish' fails \
	'# CONFIG_FORCED is not set \(.*\) is not in the final .config, which has CONFIG_FORC'
sed -i '/FORCED/d' "$tree/kernel/config/vm.config"

### Errors of the build.

patch_for broken 1 mm/b.c b broken
build patched:broken
check 'the first error of the compiler, and the log' fails_late \
	'broken: does not build: mm/b.c:4:1: error: no such thing \(.*/broken.log\)$'
check 'leave no kernel' [ "$(find "$MMSCOPE_CACHE/kernels" -name 'broken*')" = '' ]
rm -r "$tree/kernel/series/broken"
patch_for tool 1 mm/b.c b tool
build patched:tool
check 'a reason before those of make' fails_late 'does not build: .*no-such-tool.*not found'
rm -r "$tree/kernel/series/tool"
patch_for full 1 mm/b.c b full
build patched:full
check 'a full disk while it builds' fails_late 'full: does not build: the disk is full \('
rm -r "$tree/kernel/series/full"
build vanilla
check 'and the tree is still good' cmp "$TMPDIR/vmlinuz" "$(cat "$out")/vmlinuz"

mkdir "$TMPDIR/bin"
ln -s /usr/bin/* /bin/* "$TMPDIR/bin" 2>/dev/null
rm -f "$TMPDIR/bin/flex" "$TMPDIR/bin/pahole"
PATH=$TMPDIR/bin build vanilla
check 'missing tools have the names of packages' fails \
	'missing packages: flex pahole; install them with: apt-get install .* flex pahole$'
MMSCOPE_KERNEL_SOURCE=/etc build vanilla
check 'no source' fails 'MMSCOPE_KERNEL_SOURCE: /etc is no kernel source$'
MMSCOPE_CACHE=/proc/none build vanilla
check 'no cache' fails '/proc/none: cannot be used as cache; MMSCOPE_CACHE names another$'
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	mkdir "$TMPDIR/small"
	unshare -m sh -c 'mount -t tmpfs -o size=9m none "$1" && MMSCOPE_CACHE=$1 "$2" vanilla' \
		sh "$TMPDIR/small" "$tree/kernel/build" >"$out" 2>"$err" </dev/null
	status=$?
	check 'a small disk' fails 'small/build: [89]M free, .*M are needed; MMSCOPE_CACHE'
else
	n=$((n + 1))
	echo "ok $n - a disk that is too small # SKIP mounting needs root"
fi

### Two at once; interruption.

touch "$src/slow"
rm -rf "$MMSCOPE_CACHE"
"$tree/kernel/build" vanilla >"$TMPDIR/out1" 2>"$TMPDIR/err1" </dev/null &
first=$!
until [ -e "$MMSCOPE_CACHE/build/vanilla.log" ]; do
	sleep 0.1
done
build patched
wait $first
check 'the second waits, and says for what' \
	grep -q 'kernel patched: waiting for the build of vanilla, process [0-9]*, since' "$err"
check 'and is built then' published patched
check 'the first is not disturbed' cmp "$TMPDIR/vmlinuz" "$(cat "$TMPDIR/out1")/vmlinuz"
check 'one tree for both' compiled patched mm/a.o mm/b.o mm/c.o

# stop SIGNAL: a build that gets it after its first object.
stop()
{
	rm -rf "$MMSCOPE_CACHE"
	setsid "$tree/kernel/build" vanilla >"$out" 2>"$err" </dev/null &
	first=$!
	until grep -q 'CC  *mm/b.o' "$MMSCOPE_CACHE/build/vanilla.log" 2>/dev/null; do
		sleep 0.1
	done
	kill "-$1" "$2$first"
	wait $first 2>/dev/null
	status=$?
	touched=$(stat -c %y "$MMSCOPE_CACHE/build/plain/linux/mm/a.o" 2>/dev/null)
}

# One job at a time: what was compiled is then known.
printf '#!/bin/sh\necho 1\n' >"$TMPDIR/bin/nproc.new"
chmod +x "$TMPDIR/bin/nproc.new"
mkdir "$TMPDIR/one"
mv "$TMPDIR/bin/nproc.new" "$TMPDIR/one/nproc"
PATH=$TMPDIR/one:$PATH

goes_on()
{
	[ -n "$touched" ] && published vanilla && cmp "$TMPDIR/vmlinuz" "$(cat "$out")/vmlinuz" &&
		[ "$(stat -c %y "$MMSCOPE_CACHE/build/plain/linux/mm/a.o")" = "$touched" ]
}

stop TERM ''
check 'SIGTERM ends it' [ "$status" = 130 ]
check 'and all that it started' flock -w 0.5 "$MMSCOPE_CACHE/build/lock" true
check 'with a line' grep -q 'interrupted after [12] objects; the next build goes on from there' \
	"$err"
check 'nothing is published' [ "$(ls -A "$MMSCOPE_CACHE/kernels")" = '' ]
build vanilla
check 'the next build goes on' goes_on
# All of it at once, as when the machine goes down; a compiler had written half an object.
stop KILL -
sleep 0.01
echo half >"$MMSCOPE_CACHE/build/plain/linux/mm/b.o"
: >"$MMSCOPE_CACHE/build/plain/linux/mm/.b.o.cmd"
touch -d '1 minute ago' "$MMSCOPE_CACHE/build/plain/linux/mm/.b.o.cmd"
build vanilla
check 'after SIGKILL as well, without half an object' goes_on
rm "$src/slow"

### Kernels that are no longer wanted.

for i in 1 2 3 4 5 6; do
	echo "CONFIG_N$i=y" >>"$tree/kernel/config/vm.config"
	build vanilla
done
check 'the last few of a name are kept' \
	[ "$(find "$MMSCOPE_CACHE/kernels" -name 'vanilla-*' | wc -l)" = 4 ]
check 'the last one among them' published vanilla

### mmscope's side of it.

cd "$TMPDIR" || exit
vm()
{
	"$MMSCOPE" vm "$@" -- true >"$out" 2>"$err" </dev/null
	status=$?
}

vm --tree "$tree" --kernel patched:none
check 'mmscope vm: an unknown series' fails \
	'^mmscope: kernel patched:none: no series of that name; there are: first second$'
check 'is a kernel that cannot be had' [ "$status" = 126 ]
vm --tree /etc --kernel vanilla
check 'mmscope vm: no tree' fails '^mmscope: --tree: /etc is not mmscope.s source tree'
vm --kernel patchy
check 'mmscope vm: neither of the two' fails \
	'^mmscope: kernel patchy: neither a pinned series .*, vanilla, patched, a bzImage nor a'
vm --kernel "$src/"
check 'mmscope vm: not built' fails 'is not built|no kernel tree'
rm -rf "$src/arch/x86/boot/bzImage"
touch "$src/Kconfig"
vm --kernel "$src"
check 'mmscope vm: a tree that is not built' fails \
	'^mmscope: kernel .*/linux: the tree is not built: make -C .*/linux bzImage$'
cp "$MMSCOPE" "$TMPDIR/mmscope"
cd / && "$TMPDIR/mmscope" vm --kernel vanilla -- true >"$out" 2>"$err" </dev/null
status=$?
check 'outside of the tree' fails 'kernel vanilla: is built from .* source tree: go there, or name'

finish
