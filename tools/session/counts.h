/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MMSCOPE_COUNTS_H
#define MMSCOPE_COUNTS_H

#include "bpf/shared.h"
#include "data/run.h"
#include "session/plan.h"

/* The programs' counts, summed over CPUs, and the start that they count from. */
struct counts;

struct counts_maps {
	const struct plan_options *plan;	/* what the storage was made for */
	int counters, batches, times;
	enum label by;		/* the open label; none if it is not an open one */
	int by_counts, by_slots;
	uint32_t *by_used;	/* slots in use, in memory shared with the programs */
	uint32_t *pair_at, *time_at;	/* 1 + the element of each, 0: none; shared as well */
	uint8_t *inferred;	/* [metric][slot], in memory shared with the programs */
};

struct counts *counts_new(const struct counts_maps *maps);	/* NULL after an error line */
void counts_free(struct counts *c);

/* The values of the open label so far get no row. 0, or -1 after an error line. */
int counts_forget_values(struct counts *c);

/* 0, or -1 after an error line. `observing`: programs may run meanwhile. */
int counts_read(struct counts *c, bool observing);
void counts_lap(struct counts *c);	/* count from what was read last */
/* Count n of a metric without labels as if it came after that. */
void counts_carry(struct counts *c, enum metric_id metric, uint64_t n);
uint64_t counts_trust(const struct counts *c, enum trust_counter which);

/*
 * Samples of every metric, from what was read last; lost[] are the runs that
 * each event's programs missed. Returns 0, or -1 after an error line.
 */
int counts_samples(const struct counts *c, const struct plan *plan,
		   const uint64_t lost[EVENT_MAX], struct run *run);

#endif
