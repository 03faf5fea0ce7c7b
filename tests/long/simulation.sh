#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 1800
#
# 10,000 pairs of equal kernels for each setting, and the shifts that a comparison
# finds, simulated (tests/unit/simulation_test.c).
#
# simulation.sh --write: renews docs/results/simulation.md, too.
set -eu

tree=${MMSCOPE_TREE:-$(cd "$(dirname "$0")/../.." && pwd)}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/simulation.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cd "$tree"
if ! make B="$scratch/build" LINK=dynamic "$scratch/build/unit/simulation_test" \
	>"$scratch/log" 2>&1; then
	tail -n 15 "$scratch/log" | sed "s/^/# /"
	echo 'not ok 1 - the simulation builds'
	echo '1..1'
	exit 1
fi
echo 'ok 1 - the simulation builds'

status=0
{
	echo '<!-- SPDX-License-Identifier: GPL-2.0-only -->'
	echo '<!-- Made by tests/long/simulation.sh --write. -->'
	echo '# Simulated comparisons'
	echo
	commit=$(git rev-parse --short HEAD 2>/dev/null) || commit=unknown
	echo "$(date -u +%Y-%m-%d), mmscope at commit $commit."
	echo
	echo 'The logarithm of a value is shift + boot + run, both normal. Standard deviations are'
	echo 'those of the logarithms.'
	echo
	"$scratch/build/unit/simulation_test" table
} >"$scratch/table" || status=$?
sed 's/^/# /' "$scratch/table"
if [ "$status" = 0 ]; then
	echo 'ok 2 - equal kernels are called worse in at most 2 % of 10,000 pairs'
else
	echo 'not ok 2 - equal kernels are called worse in at most 2 % of 10,000 pairs'
fi
if [ "${1:-}" = --write ]; then
	mkdir -p docs/results
	cp "$scratch/table" docs/results/simulation.md
fi
echo '1..2'
exit "$status"
