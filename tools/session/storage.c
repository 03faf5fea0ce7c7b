// SPDX-License-Identifier: GPL-2.0-only
/* How much the maps hold, and where each metric is in them. */
#include <bpf/libbpf.h>

#include "session/plan.h"

bool plan_has(const struct plan_options *opts, enum metric_domain domain)
{
	return !(domain & ~(opts->domains ?: DOMAIN_FAULT));
}

enum label plan_by(const struct plan_options *opts, enum label by, enum metric_domain domain)
{
	return label_domains(by) & domain && plan_has(opts, domain) ? by : 0;
}

void plan_storage(const struct plan_options *opts, uint32_t base[METRIC_MAX],
		  unsigned int *counters, unsigned int *batches, unsigned int *times)
{
	unsigned int next[3] = { 0 };
	size_t i;

	for (i = 0; i < METRIC_MAX; i++) {
		if (metrics[i].kind > KIND_BATCH || !plan_has(opts, metrics[i].domain))
			continue;
		base[i] = next[metrics[i].kind];
		next[metrics[i].kind] += shape_slots(metrics[i].shape);
	}
	*counters = next[KIND_COUNTER];
	*times = next[KIND_TIME];
	*batches = next[KIND_BATCH];
}

void plan_elements(const struct plan_options *opts, uint32_t base[METRIC_MAX],
		   unsigned int *pairs, unsigned int *times)
{
	unsigned int counters, batches;
	size_t i;

	plan_storage(opts, base, &counters, &batches, times);
	*pairs = 0;
	for (i = 0; i < METRIC_MAX; i++) {
		if (metrics[i].kind != KIND_BATCH || METRIC_LANE(i) ||
		    !plan_has(opts, metrics[i].domain))
			continue;
		base[i] = *pairs;
		*pairs += shape_slots(metrics[i].shape);
	}
	base[METRIC_PTES_PER_FAULT] = base[METRIC_PTES_PER_HOLD];
}

/* Two CPUs that begin the same one at once leave an element unused. */
#define ROOM_TO_LOSE	8

static unsigned int room(unsigned int n, unsigned int most)
{
	if (!n)
		return 1;
	return n + ROOM_TO_LOSE < most ? n + ROOM_TO_LOSE : most;
}

void plan_room(unsigned int *pairs, unsigned int *times)
{
	*pairs = room(*pairs, PAIRS_ROOM);
	*times = room(*times, TIMES_ROOM);
}

void plan_memory(struct plan_memory *mem, const struct plan_options *opts, bool by)
{
	int cpus = libbpf_num_possible_cpus();
	uint32_t base[METRIC_MAX];

	plan_storage(opts, base, &mem->counters, &mem->pairs, &mem->times);
	plan_elements(opts, base, &mem->pairs, &mem->times);
	plan_room(&mem->pairs, &mem->times);
	mem->cpus = cpus > 0 ? cpus : 1;
	mem->per_cpu = COUNTERS_MAX * sizeof(uint64_t) +
		       mem->pairs * sizeof(struct batch_pair) +
		       mem->times * sizeof(struct time_kinds) +
		       (by ? BY_SLOTS : 1) * sizeof(struct by_counts);
	if (plan_has(opts, DOMAIN_LOCK))
		mem->per_cpu += LOCK_ROWS * sizeof(struct lock_row_counts) + LOCK_SPINS_SIZE;
	mem->total = mem->per_cpu * mem->cpus;
	mem->stacks = 0;
	if (!plan_has(opts, DOMAIN_LOCK))
		return;
	mem->total += LOCK_ROWS * sizeof(struct lock_row);
	mem->stacks = LOCK_STACKS * sizeof(struct lock_stack) +
		      (LOCK_STACKS * sizeof(struct lock_row_counts) +
		       STACK_ROOMS * sizeof(struct stack_room)) * mem->cpus;
}
