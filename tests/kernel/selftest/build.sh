#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh SOURCE VMLINUX DIR TEST...: build tests of SOURCE/tools/testing/selftests/bpf,
# each a static program DIR/TEST with its BPF programs in it; types of the kernel come
# from the BTF of VMLINUX. Prints "built TEST" or "cannot TEST: the first error".
# Nothing is written to SOURCE.
set -u

here=$(cd "$(dirname "$0")" && pwd)
source=$1 vmlinux=$2 dir=$3
shift 3
tests=$source/tools/testing/selftests/bpf
clang=${CLANG:-$(for c in /usr/bin/clang-[1-9][0-9] /usr/bin/clang; do
	[ -x "$c" ] && echo "$c"; done | sort -V | tail -n 1)}
bpftool=${BPFTOOL:-$(PATH=$PATH:/usr/sbin:/sbin command -v bpftool)}

mkdir -p "$dir/include" || exit
"$bpftool" btf dump file "$vmlinux" format c >"$dir/include/vmlinux.h" || exit

# bpf NAME HEADER SUFFIX [OPTIONS]: progs/NAME.c as a skeleton NAMESUFFIX.
bpf()
{
	name=$1 suffix=$2 end=$3
	shift 3
	[ -e "$dir/include/$name.$suffix" ] && return
	"$clang" -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -g -O2 -std=gnu11 -w \
		-I"$dir/include" -I"$tests" -I"$tests/progs" -I"$source/tools/include/uapi" \
		-idirafter /usr/include/"$(gcc -print-multiarch)" \
		-c -o "$dir/$name.bpf.o" "$tests/progs/$name.c" &&
		"$bpftool" gen object "$dir/$name.linked.o" "$dir/$name.bpf.o" &&
		"$bpftool" gen skeleton "$@" "$dir/$name.linked.o" name "$name$end" \
			>"$dir/include/$name.$suffix" && return
	rm -f "$dir/include/$name.$suffix"
	return 1
}

# one TEST: its skeletons by what it includes, then itself.
one()
{
	file=$tests/prog_tests/$1.c
	[ -e "$file" ] || { echo "error: there is no prog_tests/$1.c"; return 1; }
	for header in $(sed -n 's/^#include "\(.*skel\.h\)"$/\1/p' "$file"); do
		case $header in
		*.lskel.h) bpf "${header%.lskel.h}" lskel.h _lskel -L || return ;;
		*) bpf "${header%.skel.h}" skel.h '' || return ;;
		esac
	done
	function=$(sed -n 's/^void \(serial_\)\{0,1\}\(test_[a-z_]*\)(void)$/\1\2/p' "$file" |
		tail -n 1)
	# shellcheck disable=SC2046
	gcc -static -O2 -std=gnu11 -D_GNU_SOURCE -w -pthread -DTEST="$function" -I"$here" \
		-I"$dir/include" -I"$tests" -I"$source/tools/include/uapi" \
		-I"$source/tools/include" -o "$dir/$1" "$file" "$here/selftest.c" \
		$(pkg-config --static --libs libbpf)
}

for test; do
	if one "$test" >"$dir/$test.log" 2>&1; then
		echo "built $test"
	else
		echo "cannot $test: $(grep -iE 'error|undefined' "$dir/$test.log" | head -n 1 |
			sed "s|$source/||; s|$tests/||")"
	fi
done
