#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In a virtual machine: six threads that fight for one page table, by mmscope and by perf at
# the same time; then threads that fight for mmap_lock, which perf does tell.
set -eu

# waits WORD: how many perf has told, in rows with that word
waits()
{
	awk -v word="$1" '$0 ~ word { n += $1 } END { print n + 0 }' /tmp/perf
}

perf lock contention -b -o /tmp/perf -- \
	mmscope lock -- mmscope bench contend page_table --threads 6 --seconds 4
echo "perf lock contention: $(waits spinlock) waits for spinlocks"
perf lock contention -b -o /tmp/perf -- mmscope bench contend mmap_lock
echo "perf lock contention: $(waits rwsem) waits for semaphores"
