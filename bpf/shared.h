/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_SHARED_H
#define MMSCOPE_SHARED_H

/*
 * What the programs and the loader agree on beyond the tables of tools/data.
 * Includable from both.
 */
#include "data/events.h"
#include "data/hist.h"
#include "data/labels.h"
#include "data/metrics.h"

/* Trust counters, kept behind the metrics' counters. */
enum trust_counter {
	TRUST_UNMATCHED = COUNTERS_MAX - 2,
	TRUST_MAP_FULL = COUNTERS_MAX - 1,
};

/* task_state.role */
enum task_role {
	ROLE_NONE,
	ROLE_PARENT,	/* not observed itself, but what it forks is */
	ROLE_TARGET,
};

#define KNOWN_OPS_MAX	16	/* vm_operations_struct symbols with a backing */
#define BY_SLOTS	64	/* distinct values of an open label */

/* Per CPU and slot of an open label: number and sum of what each metric counted. */
struct by_counts {
	hist_u64 count[METRIC_MAX];
	hist_u64 sum[METRIC_MAX];
};

#endif
