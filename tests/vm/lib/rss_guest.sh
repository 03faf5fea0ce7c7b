# SPDX-License-Identifier: GPL-2.0-only
# Cases of rss.c, each under a tracer of its own: what both said, in order.
# $1: options of the tracer; the rest: cases.
options=$1
shift
for c; do
	echo "@case $c"
	# shellcheck disable=SC2086
	mmscope fault --reconcile $options --json -o /tmp/report -- rss "$c" 2>/tmp/log
	echo "@status $?"
	cat /tmp/log
	tail -n 20 /tmp/mmscope-load.* 2>/dev/null && rm -f /tmp/mmscope-load.*
	echo @report
	cat /tmp/report
	rm -f /tmp/report
done
