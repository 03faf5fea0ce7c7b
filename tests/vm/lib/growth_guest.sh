#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# growth_guest.sh cost|size: in a guest, print "growth WHAT HOW-MUCH NUMBER" lines. "cost":
# nanoseconds of a fault, which are instructions with --icount, untraced and observed;
# "size": memory of the tracer and its maps, and how long it takes to start and end.
set -u

# ns HOW-MANY-FAULTS COMMAND...: the fastest repeat
ns()
{
	faults=$1
	shift
	"$@" 2>/dev/null </dev/null | sed -n 's/.*"touch_ns":\[\([^]]*\)\].*/\1/p' | tr ',' '\n' |
		sort -n | sed -n 1p | while read -r ns; do echo $((ns / faults)); done
}

# added WHAT HOW-MUCH FAULTS OPTIONS: what observing adds to a fault of a workload
added()
{
	what=$1 much=$2 faults=$3
	shift 3
	bare=$(ns "$faults" mmscope bench touch --json "$@")
	seen=$(ns "$faults" mmscope fault -o /dev/null -- mmscope bench touch --json "$@")
	echo "growth $what $much $bare $seen"
}

uptime()
{
	cut -d ' ' -f 1 /proc/uptime
}

# maps PID: KiB of its maps, each of which is counted once.
maps()
{
	for f in /proc/"$1"/fdinfo/*; do
		id=$(sed -n 's/^map_id:[^0-9]*//p' "$f")
		[ -z "$id" ] || echo "$id $(sed -n 's/^memlock:[^0-9]*//p' "$f")"
	done | sort -u | {
		sum=0
		while read -r _ bytes; do
			sum=$((sum + bytes))
		done
		echo $((sum / 1024))
	}
}

case $1 in
cost)
	for n in 1 2 4 8; do
		added threads "$n" 2048 --size 8M --threads "$n" -n 5
	done
	added faults 64 64 --size 256K -n 10
	added faults 2048 2048 --size 8M -n 5
	added faults 32768 32768 --size 128M -n 2
	for n in 1 100 5000; do
		bare=$(ns 256 mmscope bench touch --json --size 1M -n 12)
		seen=$(ns 256 mmscope fault -o /dev/null -- sh -c "empty threads $n & sleep 30
			mmscope bench touch --json --size 1M -n 12; kill \$!")
		echo "growth tasks $n $bare $seen"
	done
	;;
size)
	sleep 100000 &
	idle=$!
	for n in 1 2 3; do
		a=$(uptime)
		b=$(mmscope fault -o /dev/null -- cut -d ' ' -f 1 /proc/uptime)
		echo "growth start $n $a $b $(uptime)"
	done
	mmscope fault -p "$idle" -o /dev/null &
	tracer=$!
	sleep 30
	echo "growth memory $(maps $tracer)" \
		"$(mmscope probes | sed -n 's/^Memory of the maps.*, \([0-9]*\) KiB for.*/\1/p')" \
		"$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$tracer/status)"
	kill -INT "$tracer"
	wait "$tracer"
	empty threads 5000 &
	many=$!
	sleep 20
	a=$(uptime)
	mmscope fault -p "$many" -d 0.1 -o /dev/null
	echo "growth marking 5000 $a $(uptime)"
	kill "$idle" "$many"
	;;
esac
