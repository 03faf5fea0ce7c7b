# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Results of a suite that is a shell script: to be read by it. The end of the file
# $out, which the suite's commands write, explains a failure.

n=0
bad=0
out=${TMPDIR:?}/out
: >"$out"

# What explains a failure, for a suite to replace.
explain()
{
	tail -n 40 "$out"
}

# result STATUS NAME: 0 is ok.
result()
{
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		bad=1
		echo "not ok $n - $2"
		explain 2>&1 | sed 's/^/# /'
	fi
}

# check NAME COMMAND...
check()
{
	name=$1
	shift
	if "$@"; then
		result 0 "$name"
	else
		result 1 "$name"
	fi
}

# skip NAME REASON
skip()
{
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

finish()
{
	echo "1..$n"
	exit $bad
}
