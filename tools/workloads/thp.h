/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_THP_H
#define MMSCOPE_THP_H

#include <stdbool.h>
#include <stdint.h>

enum thp_memory {
	THP_ANON,
	THP_SHMEM,	/* shared anonymous memory, memfd */
	THP_SYSV,	/* its vm_ops are not shmem's: the switches by size do not reach it */
};

/*
 * Let madvise(MADV_HUGEPAGE) give folios of exactly `size` bytes in memory of a
 * kind: sets the switches in sysfs for as long as the process runs, and leaves
 * them alone if they already do. Returns 0, or an exit status after printing one
 * line.
 */
int thp_allow(uint64_t size, enum thp_memory memory);

/* Is `word` the one in brackets in a line such as "always [madvise] never"? */
bool thp_is_chosen(const char *line, const char *word);

#endif
