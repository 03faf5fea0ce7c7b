#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh SECONDS: build the fuzz targets with libFuzzer (clang), ASan and UBSan and
# run each that long from the corpus here. Prints TAP. What breaks one is kept in
# build/fuzz/: run the target there with that file as its argument.
set -u

seconds=$1
tree=${MMSCOPE_TREE:-.}
here=$tree/tests/fuzz
tmp=$(mktemp -d "${TMPDIR:-/tmp}/fuzz.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

clang=${FUZZ_CLANG:-clang}
printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const char *d, size_t n) { return 0; }\n' \
	>"$tmp/try.c"
if ! $clang -fsanitize=fuzzer,address,undefined -o "$tmp/try" "$tmp/try.c" 2>"$tmp/log"; then
	echo "1..0 # SKIP no libFuzzer for $clang (packages clang and libclang-rt-*-dev)"
	exit 0
fi

# What the targets need of the tree: data and render stand on their own.
for source in "$tree"/tools/data/*.c "$tree"/tools/render/*.c; do
	echo "$source $tmp/$(echo "${source#"$tree"/}" | tr / _).o"
done >"$tmp/list"
while read -r source object; do
	echo "$clang -std=gnu11 -D_GNU_SOURCE '-DMMSCOPE_VERSION=\"0\"' -I$tree/tools" \
		"-I$tree -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all" \
		"-fsanitize=fuzzer-no-link,address,undefined -c -o $object $source"
done <"$tmp/list" >"$tmp/commands"
if ! tr '\n' '\0' <"$tmp/commands" | xargs -0 -P 2 -n 1 sh -c 2>"$tmp/log"; then
	echo '1..1'
	sed 's/^/# /' "$tmp/log"
	echo 'not ok 1 - build'
	exit 1
fi
objects=$(cut -d' ' -f2 "$tmp/list")

keep=$tree/build/fuzz
mkdir -p "$keep"
echo '1..2'
n=0
bad=0
for target in read expect; do
	n=$((n + 1))
	mkdir "$tmp/$target.corpus"
	# shellcheck disable=SC2086 # a list of files
	if ! $clang -std=gnu11 -D_GNU_SOURCE -I"$tree/tools" -I"$tree" -O1 -g \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-o "$keep/$target" "$here/${target}_fuzz.c" $objects -lyajl -lz -lm \
		2>"$tmp/log"; then
		sed 's/^/# /' "$tmp/log"
		echo "not ok $n - $target: build"
		bad=1
		continue
	fi
	seeds=$here/corpus/$target
	[ "$target" != read ] || seeds="$seeds $tree/tests/golden"
	# shellcheck disable=SC2086 # a list of directories
	if FUZZ_RECORDING="$tree/tests/golden/misses.json" "$keep/$target" \
		-max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=2048 \
		-dict="$here/$target.dict" -artifact_prefix="$keep/$target-" \
		-close_fd_mask=3 -print_final_stats=1 "$tmp/$target.corpus" $seeds \
		>"$tmp/log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$tmp/log")
		# A target that cannot run at all is clean, too, and proves nothing.
		if [ "${runs:-0}" -ge 1000 ]; then
			new=$(find "$tmp/$target.corpus" -type f | wc -l)
			echo "# $runs inputs, $new new in the corpus"
			echo "ok $n - $target: clean for $seconds s"
			continue
		fi
	fi
	tail -n 40 "$tmp/log" | sed 's/^/# /'
	echo "not ok $n - $target"
	bad=1
done
exit $bad
