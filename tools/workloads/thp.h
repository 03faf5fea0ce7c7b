/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_THP_H
#define MMSCOPE_THP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Let madvise(MADV_HUGEPAGE) give folios of exactly `size` bytes in anonymous
 * (or, with shmem, in shared) memory: sets the switches in sysfs for as long as
 * the process runs, and leaves them alone if they already do. Returns 0, or an
 * exit status after printing one line.
 */
int thp_allow(uint64_t size, bool shmem);

/* Is `word` the one in brackets in a line such as "always [madvise] never"? */
bool thp_is_chosen(const char *line, const char *word);

#endif
