#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Set-up and build where packages are missing, the product, what is installed.
# shellcheck disable=SC2016,SC2317 # words for other shells; functions for check()
set -u
. "$MMSCOPE_TREE/tests/lib/tap.sh"

# run COMMAND...: its output is in $out, its status in $status; no descriptor leaks in.
run()
{
	"$@" >"$out" 2>&1 </dev/null
	status=$?
}

# fails LINE: it failed, and its only line is matched by LINE.
fails()
{
	[ "$status" != 0 ] && [ "$(wc -l <"$out")" = 1 ] && grep -qE -- "$1" "$out"
}

cd "$MMSCOPE_TREE" || exit

run env BPFTOOL=no-such-bpftool tools/setup.sh build --check
check 'a missing package has a name and a way out' fails \
	'^mmscope: missing packages: bpftool; install them with: apt-get install .* bpftool$'
run env CLANG=no-such-clang BPFTOOL=no-such-bpftool tools/setup.sh build --check
check 'all that is missing is in one line' fails 'missing packages: clang bpftool;'
run env NO_INSTALL=1 CLANG=no-such-clang tools/setup.sh demo
check 'NO_INSTALL=1 refuses to install' fails 'missing packages: clang; install them with'
run env NO_INSTALL=0 tools/setup.sh build
check 'NO_INSTALL=0 is not a refusal' [ "$status" = 0 ]
if [ "$(id -u)" = 0 ]; then
	# As a text: who is not root may not be able to read this tree.
	run env CLANG=no-such-clang setpriv --reuid=65534 --clear-groups sh -c \
		"$(cat tools/setup.sh)" setup build
else
	run env CLANG=no-such-clang tools/setup.sh build
fi
check 'without root it says so' fails 'missing packages: clang; installing needs root: apt-get'
run tools/setup.sh
check 'no group is a usage error' [ "$status" = 2 ]
run tools/setup.sh everything
check 'an unknown group is a usage error' [ "$status" = 2 ]

run make B="$TMPDIR/b" CLANG=no-such-clang
check 'make stops where a package is missing' [ "$status" != 0 ]
check 'it names the package' grep -q '^mmscope: missing packages: clang;' "$out"
check 'it built nothing' [ ! -e "$TMPDIR/b" ]

run readelf -lW "$MMSCOPE_STATIC"
check 'the product is an ELF file' grep -q 'Program Headers' "$out"
check 'it needs no interpreter' sh -c '! grep -qE "INTERP|DYNAMIC" "$1"' - "$out"
run readelf -lW "$MMSCOPE"
check 'the tested one is dynamic' grep -q INTERP "$out"
run env -i "$MMSCOPE_STATIC" --version
check 'it runs without an environment' grep -q '^mmscope [0-9]' "$out"

run make install B="$(dirname "$MMSCOPE_STATIC")" DESTDIR="$TMPDIR/d" PREFIX=/opt/x
check 'make install' [ "$status" = 0 ]
check 'installs the binary' "$TMPDIR/d/opt/x/bin/mmscope" --version
run readelf -SW "$TMPDIR/d/opt/x/bin/mmscope"
check 'without symbols' sh -c '! grep -qE "\.symtab|\.debug_info" "$1"' - "$out"
for page in docs/*.1; do
	check "installs ${page#docs/}" cmp -s "$page" \
		"$TMPDIR/d/opt/x/share/man/man1/${page#docs/}"
done
if command -v man >/dev/null 2>&1; then
	for page in docs/*.1; do
		man --warnings -E UTF-8 -l "$page" 2>"$out" >/dev/null
		check "${page#docs/} formats without a warning" [ ! -s "$out" ]
	done
else
	n=$((n + 1))
	echo "ok $n - man pages format # SKIP no man (package man-db)"
fi
run find "$TMPDIR/d" -type f
check 'and nothing else' [ "$(wc -l <"$out")" = $(($(echo docs/*.1 | wc -w) + 1)) ]

finish
