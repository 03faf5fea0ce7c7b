#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# time-limit: 5400
#
# What make check proves on the oldest or the newest kernel only, on the others.
status=0
top=${TMPDIR:?}
for suite in oracle_6.12 oracle_7.2 backings_6.12 backings_7.2 reconcile_6.12 reconcile_7.2 \
	refused robust arraymap_functional; do
	TMPDIR=$top/$suite
	export TMPDIR
	mkdir "$TMPDIR"
	set -- "${MMSCOPE_TREE:?}/tests/vm/$suite".* all
	case $suite in
	backings_* | reconcile_*)
		set -- python3 -c "import ${suite%_*}; ${suite%_*}.main('${suite##*_}')" all ;;
	robust) set -- "$1" 7.2 6.12 6.1 ;;
	arraymap_functional) set -- sh "$1" 7.2 eager ;;
	esac
	"$@" || status=1
done
exit $status
