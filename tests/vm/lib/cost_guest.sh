#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# cost_guest.sh REPEATS COLUMN...: in a guest, print "cost COLUMN WORKLOAD JSON" of each
# workload under each way to observe it; a tool that is not there or fails prints none.
# Of the default "line WORKLOAD JSON", too: its own report, which estimates what it added.
# WORKLOADS: which; POINTS: where the empty programs go; SETTLE: seconds at most for a tool
# to start; LOOPS: of a repeat of waits.c. A run of bench contend is one repeat.
set -u

repeats=$1
shift

# tell COLUMN WORKLOAD COMMAND...
tell()
{
	column=$1 workload=$2
	shift 2
	json=$("$@" 2>/tmp/error </dev/null) ||
		echo "# $column $workload: $(tail -n 1 /tmp/error)"
	[ -z "$json" ] || echo "cost $column $workload $json"
}

# one COLUMN WORKLOAD ARGUMENTS COMMAND...
one()
{
	column=$1 workload=$2 first=$3
	shift 3
	# shellcheck disable=SC2086 # a list of words
	tell "$column" "$workload" "$@" $first --json -n "$repeats"
	[ "$column" != default ] || echo "line $workload $(tr -d '\n' </tmp/report)"
}

# each COLUMN PREFIX...: all workloads, started behind PREFIX
each()
{
	column=$1
	shift
	for w in $WORKLOADS; do
		case $w in
		anon) one "$column" anon "--size 1M" "$@" mmscope bench touch ;;
		mthp) one "$column" mthp "--size 4M --thp 64K" "$@" mmscope bench touch ;;
		thp) one "$column" thp "--size 16M --thp 2M" "$@" mmscope bench touch ;;
		file) one "$column" file "--size 4M -b file --touch read" "$@" \
			mmscope bench touch ;;
		arraymap) one "$column" arraymap "--size 1M --touch none --populate" "$@" \
			mmscope bench arraymap ;;
		page_table | mmap_lock) tell "$column" "$w" "$@" \
			mmscope bench contend "$w" --json ;;
		*) tell "$column" "$w" "$@" waits "$w" "$LOOPS" "$repeats" ;;
		esac
	done
}

# settled PID: it has programs, and has opened nothing more for three seconds.
settled()
{
	before=0 same=0 second=0
	while [ $same -lt 3 ] && [ $second -lt "$SETTLE" ] && kill -0 "$1" 2>/dev/null; do
		sleep 1
		second=$((second + 1))
		now=$(cat /proc/"$1"/fdinfo/* 2>/dev/null | grep -c '^prog_id:')
		same=$((same + 1))
		[ "$now" = "$before" ] && [ "$now" != 0 ] || same=0
		before=$now
	done
}

# during COLUMN TOOL...: while a tool runs that was started before
during()
{
	column=$1
	shift
	"$@" >/tmp/tool 2>&1 </dev/null &
	tool=$!
	settled $tool
	if kill -0 "$tool" 2>/dev/null; then
		each "$column"
	else
		echo "# $column: $(tail -n 1 /tmp/tool)"
	fi
	kill -INT "$tool" 2>/dev/null
	wait "$tool"
}

latency='kfunc:handle_mm_fault { @start[tid] = nsecs; }'
latency_end='kretfunc:handle_mm_fault /@start[tid]/ {
	@latency = hist(nsecs - @start[tid]); delete(@start[tid]);'
ptes='kfunc:handle_mm_fault { @n[tid] = (uint64)0; }
	kfunc:folio_add_new_anon_rmap /@start[tid]/ { @n[tid]++; }
	kfunc:set_pte_range /@start[tid]/ { @n[tid] += args->nr; }'
waits='tracepoint:lock:contention_begin { @start[tid] = nsecs; }
	tracepoint:lock:contention_end /@start[tid]/ {
		@wait = hist(nsecs - @start[tid]); delete(@start[tid]); }'

sleep 100000 &
idle=$!
uname -r
for c; do
	case $c in
	untraced) each "$c" ;;
	empty)
		# shellcheck disable=SC2086 # a list of words
		each "$c" empty $POINTS --
		;;
	default) each "$c" mmscope fault --json -o /tmp/report -- ;;
	exact) each "$c" mmscope fault --exact -o /dev/null -- ;;
	other) during "$c" mmscope fault -p "$idle" -o /dev/null ;;
	all) during "$c" mmscope fault -a -o /dev/null ;;
	funclatency) during "$c" funclatency handle_mm_fault ;;
	bpftrace) during "$c" bpftrace -e "$latency $latency_end }" ;;
	bpftrace-ptes) during "$c" bpftrace -e "$latency $ptes $latency_end
			@ptes = hist(@n[tid]); delete(@n[tid]); }" ;;
	lock) each "$c" mmscope lock -o /dev/null -- ;;
	both) each "$c" mmscope trace -e fault,lock -o /dev/null -- ;;
	perf) each "$c" perf lock contention -b -- ;;
	perf-filter) each "$c" perf lock contention -b -Y rwsem,mutex,spinlock -- ;;
	klockstat) during "$c" klockstat ;;
	bpftrace-waits) during "$c" bpftrace -e "$waits" ;;
	esac
done
kill "$idle"
