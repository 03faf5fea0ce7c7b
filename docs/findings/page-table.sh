#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In the virtual machine: six threads that fight for one page table, by mmscope and by perf
# at the same time; then threads that fight for mmap_lock, which perf does tell.
set -eu

# waits TYPE: how many perf has told, of locks of that type
waits()
{
	sum=0
	while read -r contended line; do
		case $line in
		*" $1"*) sum=$((sum + contended)) ;;
		esac
	done </tmp/perf
	echo $sum
}

perf lock contention -b --output /tmp/perf -- \
	mmscope lock -- mmscope bench contend page_table --threads 6 --seconds 4
echo "perf lock contention: $(waits spinlock) waits for spinlocks"
perf lock contention -b --output /tmp/perf -- mmscope bench contend mmap_lock
echo "perf lock contention: $(waits rwsem) waits for semaphores"
