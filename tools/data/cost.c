// SPDX-License-Identifier: GPL-2.0-only
/* What observing added, from what was counted. */
#include <stdbool.h>

#include "data/cost.h"

static const struct {
	enum metric_id metric;
	enum method method;
	enum event_id event;
	unsigned int runs;
} rows[] = {
#define COST_ROW(m, how, e, n)	{ METRIC_##m, how, EVENT_##e, n },
	COST_ROWS(COST_ROW)
};

static bool attached(const struct trust *t, enum event_id event)
{
	size_t i;

	for (i = 0; i < t->probes; i++)
		if (t->probe[i].event == event && t->probe[i].mechanism)
			return true;
	return false;
}

struct cost cost_of(const struct run *run)
{
	struct cost cost = { 0 };
	bool cut = false;
	unsigned int flags;
	uint64_t low, high;
	struct hist h;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *want[LABEL_MAX] = { NULL };
		struct total t;
		uint64_t *runs;

		if (rows[i].method != METHOD_MAX)
			want[LABEL_METHOD] = label_values(LABEL_METHOD)[rows[i].method];
		if (!attached(&run->trust, rows[i].event) ||
		    !run_total(run, rows[i].metric, want, &t, NULL))
			continue;
		runs = metrics[rows[i].metric].domain == DOMAIN_LOCK ? &cost.wait_runs : &cost.runs;
		*runs = sat_add(*runs, t.value * rows[i].runs, &cut);
	}
	cost.ns = (double)cost.runs * run->trust.program_ps / 1000;
	/* Half of them begin a wait, and half end it. The median: others may have run meanwhile. */
	if (run_hist(run, METRIC_LOCK_PROGRAMS, NULL, &h, &flags, NULL) &&
	    hist_percentile(&h, 50, &low, &high))
		cost.wait_ns = (double)cost.wait_runs * (low + (high - low) / 2.0) / 2;
	return cost;
}
