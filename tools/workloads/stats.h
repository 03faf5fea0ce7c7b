/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_WORKLOADS_STATS_H
#define MMSCOPE_WORKLOADS_STATS_H

#include <stddef.h>
#include <stdint.h>

struct spread {
	uint64_t min, median, max;
};

/* Of n > 0 numbers, which are sorted in place; an even n has the lower mean of the middle two. */
struct spread spread_of(uint64_t *v, size_t n);

#endif
